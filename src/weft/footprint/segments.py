"""`Pair.split`: a program that runs a scan and its reverse pass segment by segment.

The scan of a gradient stacks values of all its iterations for a scan in the other direction. Here
the first one keeps its carry at the start of each segment. The second one runs the segments from
the last to the first, and computes the values of a segment again. So the iterations run once more,
and memory is that of one segment, plus a carry for each segment. Source: T. Chen, B. Xu, C. Zhang,
C. Guestrin, "Training deep nets with sublinear memory cost" (2016).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from weft.control.scan import Scan, bind_scan, count_groups
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, variables_in
from weft.core.source import inner_source
from weft.core.stage import stage
from weft.core.trace import current
from weft.footprint.bodies import find_every_line
from weft.footprint.chunks import evaluate, put_slice, read, take_slice, total_type
from weft.footprint.lines import Line, Total
from weft.passes.dce import dce_jaxpr
from weft.primitives.constant import stage_whole, write_consts
from weft.primitives.elementwise import add, mul
from weft.primitives.layout import broadcast_in_dim, convert, iota_p, zeros

INDEX = np.dtype(np.int32)


def list_pairs(jaxpr: Jaxpr) -> Iterator[Pair]:
    """Yield the pairs of a scan and its reverse that can run in segments."""
    scans = [eqn for eqn in jaxpr.eqns if is_scan(eqn)]
    for first in scans:
        for second in scans:
            if is_reverse(first, second):
                pair = Pair(jaxpr, first, second)
                if pair.is_whole:
                    yield pair


def is_scan(eqn: Eqn) -> bool:
    """Return True for a scan of known length without side effects."""
    if not isinstance(eqn.primitive, Scan) or type(eqn.params["length"]) is not int:
        return False
    return not eqn.params["jaxpr"].effects


def is_reverse(first: Eqn, second: Eqn) -> bool:
    """Return True if a scan reads what another has stacked, in the other direction."""
    if second is first or not is_scan(second):
        return False
    same = second.params["length"] == first.params["length"] > 3
    stacked = set(first.outvars[count_groups(first.params)[1] :])
    rows = second.invars[sum(count_groups(second.params)) :]
    opposite = second.params["reverse"] != first.params["reverse"]
    return same and opposite and not stacked.isdisjoint(variables_in(rows))


class Pair:
    """A scan, the scan that reverses it, and the operations that both can be cut with.

    Attributes:
      lines: the operations that run in each segment, in order, with the axis along which they are
        cut; the second scan is among them, with None.
      axes: the axis of time of the values that are cut.
      totals: the sums over all segments.
      middle, after: the other equations that read results of the first scan, and of the segments.
      is_whole: False if the second scan needs a value that is not known before it.
    """

    def __init__(self, jaxpr: Jaxpr, first: Eqn, second: Eqn):
        self.jaxpr, self.first, self.second = jaxpr, first, second
        self.length: int = first.params["length"]
        self.lines: dict[Eqn, Line | None] = {}
        self.axes: dict[Var, int] = dict.fromkeys(first.outvars[count_groups(first.params)[1] :], 0)
        self.totals: dict[Var, Total] = {}
        self.middle: list[Eqn] = []
        self.after: list[Eqn] = []
        self._sort()
        self.is_whole = second in self.lines
        if self.is_whole:
            outside = [a for e in (*self.middle, *self.after) for a in e.invars]
            read_whole = {*variables_in(outside), *variables_in(jaxpr.outvars)}
            self.kept = [v for v in self.axes if v in read_whole]  # stacked for all of time

    def _sort(self) -> None:
        """Decide for each equation where it runs."""
        past_first: set[Var] = {*self.first.outvars} - set(self.axes)
        late: set[Var] = set()  # known after the last segment
        seen = False
        for eqn in self.jaxpr.eqns:
            reads = set(variables_in(eqn.invars))
            seen = seen or eqn is self.first
            if not seen or eqn is self.first:
                continue
            line = None if reads & late else self._find_line(eqn)
            if eqn is self.second and not reads & late and self._reads_rows(reads):
                self.lines[eqn] = None
                number = count_groups(eqn.params)[1]
                late.update(eqn.outvars[:number])
                self.axes.update(dict.fromkeys(eqn.outvars[number:], 0))
            elif line is not None:
                self.lines[eqn] = line
                for v, axis in zip(eqn.outvars, line.results, strict=True):
                    if isinstance(axis, Total):
                        self.totals[v] = axis
                        late.add(v)
                    else:
                        self.axes[v] = axis
            elif reads & late or reads & set(self._made_inside()):
                self.after.append(eqn)
                late.update(eqn.outvars)
            elif reads & past_first or reads & set(self.axes):
                self.middle.append(eqn)
                past_first.update(eqn.outvars)

    def _made_inside(self) -> Iterator[Var]:
        """Yield the values that are computed in segments after the first scan."""
        for eqn in self.lines:
            yield from eqn.outvars

    def _reads_rows(self, reads: set[Var]) -> bool:
        """Return True if the second scan reads values that are cut as its rows only."""
        others = self.second.invars[: sum(count_groups(self.second.params))]
        return not any(v in self.axes for v in variables_in(others))

    def _find_line(self, eqn: Eqn) -> Line | None:
        """Return the line of an operation along the axis of time; None if it has none."""
        known = [self.axes.get(a) if isinstance(a, Var) else None for a in eqn.invars]
        if eqn is self.second or all(k is None for k in known):
            return None
        for line in find_every_line(eqn):
            pairs = zip(known, line.operands, strict=True)
            cut = [k is None or k == axis for k, axis in pairs]
            if all(cut) and all(type(r) is int or isinstance(r, Total) for r in line.results):
                return line
        return None

    # --- the program in segments ---

    def split(self, count: int) -> Jaxpr:
        """Return the closed program that runs in at least `count` segments."""
        size = -(-self.length // count)

        def run(*args: Any) -> list:
            env: dict[Var, Any] = dict(zip(self.jaxpr.invars, args, strict=True))
            around = current.source
            try:
                skipped = {self.first, *self.lines, *self.middle, *self.after}
                evaluate(env, [e for e in self.jaxpr.eqns if e not in skipped])
                starts = self._run_first(env, size)
                evaluate(env, self.middle)
                self._run_second(env, size, starts)
                evaluate(env, self.after)
            finally:
                current.source = around
            return [read(env, a) for a in self.jaxpr.outvars]

        closed = write_consts(*stage(run, self.jaxpr.in_avals, self.jaxpr.name))
        return dce_jaxpr(closed)[0]

    def _place(self, size: int, k: Any) -> Any:
        """Return the start of segment k, counted in the order of the first scan."""
        if not self.first.params["reverse"]:
            return mul(k, np.int32(size))
        return add(mul(k, np.int32(-size)), np.int32(self.length - size))

    def _place_rest(self, size: int) -> tuple[Any, int]:
        """Return the start and the length of the last segment of the first scan, if shorter."""
        count, rest = divmod(self.length, size)
        return np.int32(0 if self.first.params["reverse"] else count * size), rest

    def _run_rows(self, eqn: Eqn, consts: Any, carry: Any, rows: Sequence, size: int) -> list:
        """Return the results of a scan for the rows of a segment."""
        current.source = inner_source(eqn.source)
        how = {**eqn.params, "length": size}
        return bind_scan(eqn.params["jaxpr"], consts, carry, rows, how)

    def _run_first(self, env: dict[Var, Any], size: int) -> tuple[list, list]:
        """Run the first scan; return the carry at the start of each segment, and of the rest."""
        eqn = self.first
        n, m = count_groups(eqn.params)
        given = [read(env, a) for a in eqn.invars]
        consts, rows = given[:n], given[n + m :]
        kept = [v for v in eqn.outvars[m:] if v in self.kept]
        state = [*given[n : n + m], *[zeros(v.aval.strong()) for v in kept]]

        def segment(start: Any, length: int, given: Sequence, state: Sequence) -> list:
            cut = [take_slice(x, 0, start, length) for x in given[n:]]
            outs = self._run_rows(eqn, given[:n], state[:m], cut, length)
            made = dict(zip(eqn.outvars, outs, strict=True))
            stacked = [put_slice(x, made[v], 0, start) for v, x in zip(kept, state[m:])]
            return [*outs[:m], *stacked]

        def body(given: Sequence, state: Sequence, rows: Sequence) -> list:
            return [*segment(self._place(size, rows[0]), size, given, state), *state[:m]]

        given = [*consts, *rows]
        count = self.length // size
        outs = self._loop(body, given, state, [count_up(count)], count, False)
        state, starts = outs[: len(state)], outs[len(state) :]
        before = state[:m]
        start, rest = self._place_rest(size)
        if rest:
            state = segment(start, rest, given, state)
        env.update(zip([*eqn.outvars[:m], *kept], state, strict=True))
        return starts, before

    def _run_second(self, env: dict[Var, Any], size: int, starts: tuple[list, list]) -> None:
        """Run the segments from the last to the first, and add their results to `env`."""
        second = self.second
        k, number = count_groups(second.params)
        stacked, totals = self._list_stacked(), list(self.totals)
        state = [
            *[read(env, a) for a in second.invars[k : k + number]],
            *[fill(total_type(v.aval), self.totals[v].start) for v in totals],
            *[zeros(v.aval.strong()) for v in stacked],
        ]
        free = self._list_free()

        def segment(start: Any, length: int, values: Sequence, state: Sequence, at: Any) -> list:
            given = dict(zip(free, values, strict=True))
            own, carry = self._reverse(given, start, length, state[:number], at)
            return [*carry, *self._update(own, start, state[number:])]

        def body(given: Sequence, state: Sequence, rows: Sequence) -> list:
            return segment(self._place(size, rows[-1]), size, given, state, rows[:-1])

        given = [env[v] for v in free]
        each, of_rest = starts
        start, rest = self._place_rest(size)
        if rest:
            state = segment(start, rest, given, state, of_rest)
        count = self.length // size
        state = self._loop(body, given, state, [*each, count_up(count)], count, True)
        for v, x in zip([*second.outvars[:number], *totals, *stacked], state, strict=True):
            env[v] = convert(x, v.aval.dtype, v.aval.weak_type)

    def _list_stacked(self) -> list[Var]:
        """Return the values of the segments that are stacked for all of time."""
        return [v for v in self.kept if v not in self.first.outvars]

    def _list_free(self) -> list[Var]:
        """Return the values that segments read from outside."""
        _, m = count_groups(self.first.params)
        inside = {*self._made_inside(), *self.first.outvars[m:]}
        atoms = [a for e in (self.first, *self.lines) for a in e.invars]
        return [v for v in dict.fromkeys(variables_in(atoms)) if v not in inside]

    def _reverse(
        self, given: dict[Var, Any], start: Any, length: int, carry: Sequence, at: Sequence
    ) -> tuple[dict[Var, Any], Sequence]:
        """Compute the values of a segment again, and go back through it.

        Args:
          given: the values from outside.
          start, length: the place of the segment.
          carry: the carry of the second scan at the end of the segment.
          at: the carry of the first scan at the start of the segment.

        Returns:
          The values that are cut and the sums, of the segment; the carry of the second scan.
        """
        n, m = count_groups(self.first.params)
        k, number = count_groups(self.second.params)
        pick = lambda a: a.read() if type(a) is Literal else given[a]
        rows = [take_slice(pick(a), 0, start, length) for a in self.first.invars[n + m :]]
        consts = list(map(pick, self.first.invars[:n]))
        outs = self._run_rows(self.first, consts, at, rows, length)
        own = dict(zip(self.first.outvars[m:], outs[m:], strict=True))
        for eqn, line in self.lines.items():
            whole = (None,) * (k + number)
            axes = (
                (*whole, *[0] * (len(eqn.invars) - k - number)) if line is None else line.operands
            )
            ins = []
            for a, axis in zip(eqn.invars, axes, strict=True):
                x = own[a] if isinstance(a, Var) and a in own else pick(a)
                is_cut = axis is None or (isinstance(a, Var) and a in own)
                ins.append(x if is_cut else take_slice(x, axis, start, length))
            current.source = inner_source(eqn.source)
            if line is None:
                outs = self._run_rows(eqn, ins[:k], carry, ins[k + number :], length)
                carry = outs[:number]
                own.update(zip(eqn.outvars[number:], outs[number:], strict=True))
            else:
                own.update(zip(eqn.outvars, line.apply(eqn, ins, start, length), strict=True))
        kinds = [v.aval.dtype for v in self.second.outvars[:number]]
        return own, [convert(x, d) for x, d in zip(carry, kinds, strict=True)]

    def _update(self, own: dict[Var, Any], start: Any, state: Sequence) -> list:
        """Add the sums of a segment to the sums so far, and its values to the stacked values."""
        n = len(self.totals)
        own = {v: x for v, x in own.items() if v in self.totals or v in self.kept}
        sums = [
            convert(total.join(x, convert(own[v], typeof(x).dtype)), typeof(x).dtype)
            for (v, total), x in zip(self.totals.items(), state[:n], strict=True)
        ]
        wholes = [
            put_slice(x, convert(own[v], typeof(x).dtype), self.axes[v], start)
            for v, x in zip(self._list_stacked(), state[n:], strict=True)
        ]
        return [*sums, *wholes]

    def _loop(
        self, body: Any, given: Sequence, state: Sequence, rows: Sequence, count: int, back: bool
    ) -> list:
        """Return the results of a scan over segments."""
        n, m = len(given), len(state)
        avals = [*map(typeof, given), *map(typeof, state)]
        avals += [typeof(x).update(shape=typeof(x).shape[1:]) for x in rows]
        run = lambda *xs: body(xs[:n], xs[n : n + m], xs[n + m :])
        how = {"length": count, "reverse": back, "unroll": 1}
        return bind_scan(stage_whole(run, avals, self.jaxpr.name), given, state, rows, how)


def count_up(count: int) -> Any:
    """Return the integers from 0."""
    params = {"dtype": INDEX, "shape": (count,), "dimension": 0, "sharding": None}
    return iota_p.apply(**params)[0]


def fill(aval: ShapedArray, number: Any) -> Any:
    """Return an array of one number."""
    return broadcast_in_dim(np.asarray(number, aval.dtype), aval.shape, ())
