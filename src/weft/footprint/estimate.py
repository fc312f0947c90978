"""`Measure`: estimate the memory of a compiled program from its jaxpr.

The estimate counts the arguments, the results, and the temporaries that are live at the same time.
Like XLA, it fuses cheap operations into their readers, and writes results over operands that have
no more readers. It is not a bound. XLA's own figure is known after the program is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft.core.facts import Cost, Runs
from weft.core.jaxpr import Eqn, Jaxpr, Var, bodies_of, memo_jaxpr, variables_in
from weft.core.primitive import Body

# Operations that XLA fuses into their readers, and operations that such operands are fused into.
FUSED = frozenset((Cost.FREE, Cost.CHEAP, Cost.TRANSCENDENTAL))
READING = FUSED | {Cost.PART}
# Operations that XLA computes again in each of several readers, instead of storing the result.
REPEATED = frozenset((Cost.FREE, Cost.CHEAP))
# Operations that may write the result over an operand. Transcendental kernels do not.
OVERWRITING = frozenset((Cost.FREE, Cost.CHEAP, Cost.REDUCTION, Cost.PART))


class Peak(NamedTuple):
    """The memory of a program at its peak.

    Attributes:
      bytes: the total of arguments, results and temporaries.
      live: the arrays in memory, largest first. Each is a pair with the equation that makes it, or
        None for an argument.
      place: the index of the equation that runs at the peak.
      inner: the bytes of temporaries in the nested programs of this equation.
      totals: the bytes in memory while each equation runs, in the order of the program.
    """

    bytes: int
    live: Sequence[tuple[Var, Eqn | None]]
    place: int
    inner: int
    totals: Sequence[int] = ()

    def excess(self, limit: int) -> int:
        """Return the bytes above a limit, summed over the equations.

        A program may have several peaks. The sum falls if one of them does.
        """
        return sum(total - limit for total in self.totals if total > limit)


class Measure(NamedTuple):
    """Estimates the memory of programs that have the same inputs and results.

    Attributes:
      free: the positions of inputs that results may overwrite: donated arguments and the carry of
        a loop.
      inner: True for a nested program. Its inputs are not counted.
      fuses: False if arithmetic that XLA can fuse counts as if it was not, as kernels are not.
      depth: the number of programs around a nested program.
    """

    free: tuple[int, ...] = ()
    inner: bool = False
    fuses: bool = True
    depth: int = 0

    def estimate(self, jaxpr: Jaxpr) -> Peak:
        """Return the peak memory of a closed program with inlined calls."""
        return Liveness(jaxpr, self).find_peak()

    def within(self, body: Body) -> Measure:
        """Return the measure for a nested program."""
        carry = tuple(body.carry) if body.runs is Runs.LOOP else ()
        return Measure(carry, True, self.fuses, self.depth + 1)


@memo_jaxpr
def count_inner(jaxpr: Jaxpr, measure: Measure) -> int:
    """Return the peak bytes of a nested program, without its operands."""
    return measure.estimate(jaxpr).bytes


class Liveness:
    """The live ranges of the arrays of a program.

    A fused value is computed in its readers and takes no memory. The arrays that it is computed
    from stay live until these readers have run.
    """

    def __init__(self, jaxpr: Jaxpr, measure: Measure):
        self.jaxpr = jaxpr
        self.measure = measure
        self.given = {jaxpr.invars[i] for i in measure.free}
        self.makers: dict[Var, Eqn] = {v: e for e in jaxpr.eqns for v in e.outvars}
        self.readers: dict[Var, list[Eqn]] = {}
        for eqn in jaxpr.eqns:
            for v in dict.fromkeys(variables_in(eqn.invars)):
                self.readers.setdefault(v, []).append(eqn)
        self.results = {*variables_in(jaxpr.outvars)}
        self.fused = {v for v in self.makers if self._is_fused(v)}
        self.roots: dict[Var, tuple[Var, ...]] = {}

    def _is_fused(self, v: Var) -> bool:
        """Return True if the operation that makes a value is fused into its readers."""
        eqn = self.makers[v]
        kind, readers = eqn.primitive.cost, self.readers.get(v, [])
        if kind not in FUSED or v in self.results or len(eqn.outvars) > 1:
            return False
        if kind is Cost.FREE and any(a.aval.size == v.aval.size for a in eqn.invars):
            return True  # a view, or a change of layout
        if kind is not Cost.FREE and not self.measure.fuses:
            return False
        if not all(reads_fused(e) for e in readers):
            return False
        if len(readers) == 1:
            return True
        return kind in REPEATED and all(e.primitive.cost in READING for e in readers)

    def find_roots(self, v: Var) -> tuple[Var, ...]:
        """Return the arrays in memory that are read to compute a value: itself if not fused."""
        if v not in self.fused:
            return (v,)
        found = self.roots.get(v)
        if found is None:
            reads = variables_in(self.makers[v].invars)
            every = [r for u in reads for r in self.find_roots(u)]
            found = self.roots[v] = tuple(dict.fromkeys(every))
        return found

    def find_peak(self) -> Peak:
        """Return the peak memory."""
        jaxpr = self.jaxpr
        end = len(jaxpr.eqns)
        last: dict[Var, int] = {}
        for i, eqn in enumerate(jaxpr.eqns):
            if self.fused.issuperset(eqn.outvars):
                continue
            for v in variables_in(eqn.invars):
                last.update(dict.fromkeys(self.find_roots(v), i))
        for v in self.results:
            last.update(dict.fromkeys(self.find_roots(v), end))
        sizes, ends = self._list_buffers(last)
        given = sum(v.aval.nbytes for v in self.given)
        fixed = 0 if self.measure.inner else sum(v.aval.nbytes for v in jaxpr.invars) - given
        now = most = fixed + given
        place, inner, alive = 0, 0, dict[Var, None]()
        best: list[Var] = []
        totals: list[int] = []
        dying: dict[int, list[Var]] = {}
        for v, n in ends.items():
            dying.setdefault(n, []).append(v)
        for i, eqn in enumerate(jaxpr.eqns):
            for v in eqn.outvars:
                if v in sizes:
                    now += sizes[v]
                    alive[v] = None
            within = count_within(eqn, self.measure)
            totals.append(now + within)
            if now + within > most:
                most, place, inner, best = now + within, i, within, [*alive]
            for v in dying.get(i, ()):
                now -= sizes[v]
                alive.pop(v, None)
        if self.measure.inner:
            most -= given
        live = [
            (v, self.makers.get(v)) for v in (*(() if self.measure.inner else jaxpr.invars), *best)
        ]
        live.sort(key=lambda x: -x[0].aval.nbytes)
        return Peak(most, live, place, inner, totals)

    def _list_buffers(self, last: dict[Var, int]) -> tuple[dict[Var, int], dict[Var, int]]:
        """Return the bytes of each array in memory, and the index of its last reader.

        An array that is written over an operand has no entry. The live range of the operand is
        extended instead.
        """
        sizes: dict[Var, int] = {}
        ends: dict[Var, int] = {}
        owners: dict[Var, Var] = {v: v for v in self.given}
        for v in self.given:
            sizes[v], ends[v] = v.aval.nbytes, last.get(v, 0)
        for i, eqn in enumerate(self.jaxpr.eqns):
            taken: set[Var] = set()
            for k, v in enumerate(eqn.outvars):
                if v in self.fused:
                    continue
                until = max(last.get(v, i), i)
                owner = self._find_overwritten(eqn, k, i, last, owners, taken)
                if owner is None:
                    sizes[v], ends[v] = v.aval.nbytes, until
                    owners[v] = v
                    continue
                taken.add(owner)
                owners[v] = owner
                ends[owner] = max(ends[owner], until)
        return sizes, ends

    def _find_overwritten(
        self, eqn: Eqn, k: int, i: int, last: dict[Var, int], owners: dict[Var, Var], taken: set
    ) -> Var | None:
        """Return the array that a result is written over; None if it has its own memory."""
        v = eqn.outvars[k]
        if eqn.primitive.cost in OVERWRITING:
            reads = [r for u in variables_in(eqn.invars) for r in self.find_roots(u)]
        else:
            reads = list_carried(eqn, k)
        for r in reads:
            if r in owners and r.aval.nbytes == v.aval.nbytes and last.get(r) == i:
                owner = owners[r]
                if owner not in taken:
                    return owner
        return None


def reads_fused(eqn: Eqn) -> bool:
    """Return True if XLA fuses operands into an operation.

    XLA fuses operands into a reduction only if it reduces the last axis.
    """
    if eqn.primitive.cost is not Cost.REDUCTION:
        return eqn.primitive.cost in READING
    axes = eqn.params.get("axes", ())
    return bool(axes) and max(axes) == eqn.invars[0].aval.ndim - 1


def list_carried(eqn: Eqn, k: int) -> list[Var]:
    """Return a list with the carried operand that a loop overwrites with its result `k`."""
    for body in bodies_of(eqn):
        if body.runs is Runs.LOOP and k < len(body.carry):
            return variables_in([eqn.invars[body.operands[body.carry[k]]]])
    return []


def count_within(eqn: Eqn, measure: Measure) -> int:
    """Return the largest number of bytes that a nested program needs, without its operands."""
    found = 0
    for body in bodies_of(eqn):
        if body.jaxpr is not None:
            found = max(found, count_inner(body.jaxpr, measure.within(body)))
    return found
