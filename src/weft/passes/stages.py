"""Recomputation in stages: a program is divided where few bytes are alive, and so is its reader.

Each stage of the backward pass recomputes the values that it reads just before it runs, and then
frees them. budget.py chooses the values to keep; control/remat.py has the primitive of a stage.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var, bodies_of, variables_in
from weft.core.primitive import Body
from weft.passes.dce import has_effects, quiet_jaxpr
from weft.passes.inline import rename_atoms


class Stages(NamedTuple):
    """The stages of a program, and of a later program that reads its values.

    `places` has the stage of each equation that is not in the first stage. `readers` has the stages
    that read a value later, unless only the first does. `turns` has the scans whose values are
    recomputed iteration by iteration, each with its results that only such scans read.
    """

    places: dict[Eqn, int] = {}
    readers: dict[Var, set[int]] = {}
    turns: dict[Eqn, set[Var]] = {}

    @property
    def count(self) -> int:
        return 1 + max(self.places.values(), default=0)


def find_row_body(eqn: Eqn) -> Body | None:
    """Return the body of a loop along rows of its operands, as `scan` is; None for other equations.

    `with_consts` tells the loops of weft from a user's, whose parameters nobody knows.
    """
    if eqn.primitive.memoize_type or not hasattr(eqn.primitive, "with_consts"):
        return None
    return next((body for body in bodies_of(eqn) if body.turns is not None), None)


def count_alive(eqns: Sequence[Eqn], mattering: Iterable[Var]) -> list[int]:
    """The bytes in front of each equation that were made before it, and are read by it or later."""
    bounds: dict[Var, list[int]] = {}
    for i, eqn in enumerate(eqns):
        for v in variables_in(eqn.invars):
            if v in bounds:
                bounds[v][1] = i
        bounds.update((v, [i, i]) for v in eqn.outvars)
    change = [0] * (len(eqns) + 1)
    for v in mattering:
        first, last = bounds.get(v, (0, 0))
        size = v.aval.nbytes
        change[first + 1 if first < last else 0] += size
        change[last + 1 if first < last else 0] -= size
    alive = []
    total = 0
    for x in change:
        total += x
        alive.append(total)
    return alive


def find_cuts(made: Sequence[int], alive: Sequence[int], most: float) -> list[int]:
    """Choose where to divide equations so that the total of bytes alive there is the smallest.

    `made` are the bytes that each equation makes. No stage makes more than `most`, except for a
    stage of one equation. `alive` are the bytes alive in front of each equation.
    """
    best, source, until = [0], [0], [0]
    window: deque[int] = deque()
    for p in range(1, len(made) + 1):
        until.append(until[-1] + made[p - 1])
        while window and best[window[-1]] >= best[p - 1]:
            window.pop()
        window.append(p - 1)
        while until[p] - until[window[0]] > most and window[0] < p - 1:
            window.popleft()
        best.append(best[window[0]] + (alive[p] + 1 if p < len(made) else 0))
        source.append(window[0])
    cuts = []
    p = source[-1]
    while p > 0:
        cuts.append(p)
        p = source[p]
    return cuts[::-1]


def find_scans(eqns: Sequence[Eqn], late: Jaxpr) -> dict[Eqn, set[Var]]:
    """Return scans whose stacked results scans of `late` read row by row, and these results."""
    makers = {v: e for e in eqns if find_row_body(e) is not None for v in e.outvars}
    read = {v for e in eqns for v in variables_in(e.invars)} | {*variables_in(late.outvars)}
    found: dict[Eqn, set[Var]] = {}
    for eqn in late.eqns:
        for i, v in enumerate(eqn.invars):
            if type(v) is Literal or v not in makers:
                continue
            inside = reads_in_turns(eqn, i, makers[v], v)
            if inside and v not in read:
                found.setdefault(makers[v], set()).add(v)
            else:
                read.add(v)  # type: ignore[arg-type]
    return {scan: inside - read for scan, inside in found.items() if inside - read}


def reads_in_turns(eqn: Eqn, i: int, scan: Eqn, v: Var) -> bool:
    """Return True if the operand `i` of an equation is read turn by turn, a row of `scan` in each.

    The order of the turns may be the reverse: a row goes with the carry of its own turn.
    """
    if eqn.primitive is not scan.primitive:
        return False
    same = eqn.params["length"] == scan.params["length"]
    rows = eqn.params["num_consts"] + eqn.params["num_carry"]
    return same and i >= rows and list(scan.outvars).index(v) >= scan.params["num_carry"]


def divide(
    early: Jaxpr, n_outs: int, late: Jaxpr, made: Sequence[int], alive: Sequence[int], most: float
) -> Stages:
    """Stages that make at most this many bytes, of equations and of what reads their values.

    Each equation of `late` has the stage of the equations that read the same values as it does.
    Equations that only `late` needs, not the first `n_outs` results, are where it needs them.
    """
    stage = 0
    cuts = set(find_cuts(made, alive, most))
    places = dict[Eqn, int]()
    for i, eqn in enumerate(early.eqns):
        stage += i in cuts
        places[eqn] = stage
    ready = dict[Var, int]()
    side = []
    needed = {*variables_in(early.outvars[:n_outs])}
    for eqn in reversed(early.eqns):
        if needed.isdisjoint(eqn.outvars) and not has_effects(eqn):
            side.append(eqn)
        else:
            needed.update(variables_in(eqn.invars))
    aside = {*side}
    for eqn in early.eqns:  # a value is for the first stage that reads it
        if eqn not in aside:
            for v in variables_in(eqn.invars):
                ready.setdefault(v, places[eqn])
    for eqn in early.eqns:
        if eqn in aside:
            places[eqn] = max([ready.get(v, 0) for v in variables_in(eqn.invars)], default=0)
        for v in eqn.outvars:
            ready.setdefault(v, places[eqn])
    readers = {v: {places[e]} for e in early.eqns for v in e.outvars if v in late.outvars}
    for eqn in late.eqns:
        reads = variables_in(eqn.invars)
        places[eqn] = max([ready.get(v, 0) for v in reads], default=0)
        ready.update(dict.fromkeys(eqn.outvars, places[eqn]))
        for v in reads:
            readers.setdefault(v, set()).add(places[eqn])
    for eqn in side:  # the last first
        at = [stage for v in eqn.outvars for stage in readers.get(v, ())]
        places[eqn] = max(places[eqn], min(at, default=0))
        for v in variables_in(eqn.invars):
            if v in ready and v not in needed:
                readers.setdefault(v, set()).add(places[eqn])
    large = {e for e, size in zip(early.eqns, made, strict=True) if size > most}
    scans = {e: inside for e, inside in find_scans(early.eqns, late).items() if e in large}
    return Stages(places, readers, scans)


def keep_values(jaxpr: Jaxpr, kept: set[Var]) -> tuple[Jaxpr, Jaxpr, int]:
    """Return a closed jaxpr that also returns the values to keep, and one that takes them.

    The first maps the inputs to the outputs and then the kept values, the second the inputs and
    then the kept values to the outputs; also returned: the number of kept values.
    """
    saved = [v for v in jaxpr.invars if v in kept]  # what a scan carries
    early, late = [], []
    for eqn in jaxpr.eqns:
        more = less = eqn
        within: list[Var] = []
        if find_row_body(eqn) is not None:
            more, less, within = stack_values(eqn, kept)
        chosen = [v for v in eqn.outvars if v in kept]
        early.append(more)
        if len(chosen) < len(eqn.outvars) or not eqn.outvars:
            outvars = [Var(v.aval) if v in kept else v for v in eqn.outvars]
            late.append(less.replace(outvars=outvars))
        saved += [*chosen, *within]
    return (
        jaxpr.replace(outvars=[*jaxpr.outvars, *saved], eqns=early),
        jaxpr.replace(invars=[*jaxpr.invars, *saved], eqns=late),
        len(saved),
    )


def stack_values(eqn: Eqn, kept: set[Var]) -> tuple[Eqn, Eqn, list[Var]]:
    """A scan that also stacks the values to keep, as ys; one that reads them, as xs; and these."""
    first, second, n = keep_values(eqn.params["jaxpr"], kept)
    if not n:
        return eqn, eqn, []
    params = {**eqn.params, "jaxpr": first}
    avals = eqn.primitive.abstract_eval(*[a.aval for a in eqn.invars], **params)
    within = [Var(a) for a in avals[len(eqn.outvars) :]]
    more = eqn.replace(params=params, outvars=[*eqn.outvars, *within])
    linear = (*eqn.params["linear"], *[False] * n)
    params = {**eqn.params, "jaxpr": second, "linear": linear}
    return more, eqn.replace(params=params, invars=[*eqn.invars, *within]), within


def repeat_in_turns(scan: Eqn, again: Eqn, later: Eqn, kept: set[Var]) -> Eqn:
    """`later`, a scan of what `scan` stacks, that computes it in its turns, as `again` does."""
    n, m = scan.params["num_consts"], scan.params["num_carry"]
    body, rest = again.params["jaxpr"], later.params["jaxpr"]
    rows = later.params["num_consts"] + later.params["num_carry"]
    made = dict(zip(scan.outvars[m:], body.outvars[m:], strict=True))
    found = {
        v: made[a]
        for v, a in zip(rest.invars[rows:], later.invars[rows:], strict=True)
        if type(a) is not Literal and a in made and a not in kept
    }
    body = quiet_jaxpr(body.replace(outvars=variables_in(found.values())))
    used = {*body.outvars, *[v for e in body.eqns for v in variables_in(e.invars)]}
    given = list(zip(body.invars, again.invars, strict=True))
    fixed, rows_again = [[x for x in xs if x[0] in used] for xs in (given[:n], given[n + m :])]
    own = [x for x in zip(rest.invars, later.invars, strict=True) if x[0] not in found]
    operands = [*fixed, *own[:rows], *rows_again, *own[rows:]]
    linear = dict(zip(rest.invars, later.params["linear"], strict=True))
    eqns = [e.replace(invars=rename_atoms(e.invars, found)) for e in rest.eqns]
    jaxpr = rest.replace(
        invars=[v for v, _ in operands],
        outvars=rename_atoms(rest.outvars, found),
        eqns=[*body.eqns, *eqns],
    )
    params = {
        **later.params,
        "jaxpr": jaxpr,
        "linear": tuple(linear.get(v, False) for v in jaxpr.invars),
        "num_consts": later.params["num_consts"] + len(fixed),
    }
    return later.replace(invars=[a for _, a in operands], params=params)


def list_reads(eqns: Iterable[Eqn]) -> dict[Var, None]:
    return dict.fromkeys(v for e in eqns for v in variables_in(e.invars))


def name_residuals(late: Jaxpr, residuals: Sequence[Atom]) -> Jaxpr:
    """Return `late` without its first inputs: variables of another program replace them."""
    names = dict(zip(late.invars, residuals))
    return late.replace(
        invars=late.invars[len(residuals) :],
        outvars=rename_atoms(late.outvars, names),
        eqns=[e.replace(invars=rename_atoms(e.invars, names)) for e in late.eqns],
    )


def write_stages(
    early: Jaxpr, late: Jaxpr, kept: set[Var], stages: Stages, cut: Callable, wrap: Callable
) -> tuple[Jaxpr, Jaxpr, int]:
    """Split a program into one that also returns the values to keep, and one that uses them.

    `late` reads variables of `early`; its own inputs come last. The second program takes the inputs
    of `early`, the kept values and the inputs of `late`. `cut(jaxpr)` splits the program of a
    stage, as `keep_values` does. Recomputation in a stage is then one equation, `wrap(jaxpr,
    invars, outvars)`. Also returned: the number of kept values.
    """
    groups: list[tuple[list[Eqn], list[Eqn]]] = [([], []) for _ in range(stages.count)]
    for k, program in enumerate((early, late)):
        for eqn in program.eqns:
            groups[stages.places.get(eqn, 0)][k].append(eqn)
    needed = [{*variables_in(late.outvars)}]
    for _, own in groups[:0:-1]:
        needed.append(needed[-1] | {*list_reads(own)})
    first: list[Eqn] = []
    saved: list[Var] = []
    rest: list[Eqn] = []
    for (eqns, own), after in zip(groups, reversed(needed), strict=True):
        for scan in [e for e in eqns if e in stages.turns]:
            more, less, within = stack_values(scan, kept)
            first.append(more)
            saved += [*[v for v in scan.outvars if v in kept], *within]
            inside = stages.turns[scan] - kept
            own = [
                e
                if inside.isdisjoint(variables_in(e.invars))
                else repeat_in_turns(scan, less, e, kept)
                for e in own
            ]
        eqns = [e for e in eqns if e not in stages.turns]
        more, again, _ = cut(early.replace(eqns=eqns))
        first += more.eqns
        saved += again.invars[len(early.invars) :]
        reads = list_reads(own) | dict.fromkeys(after)
        made = {v for e in again.eqns for v in e.outvars}
        again = quiet_jaxpr(again.replace(outvars=[v for v in reads if v in made]))
        if again.eqns:
            own = [wrap(*enclose([*again.eqns, *own], after, late))]
        rest += own
    inputs = [*early.invars, *saved, *late.invars]
    return (
        early.replace(outvars=[*early.outvars, *saved], eqns=put_makers_first(first)),
        late.replace(invars=inputs, eqns=rest),
        len(saved),
    )


def put_makers_first(eqns: Sequence[Eqn]) -> list[Eqn]:
    """Return equations in an order where each follows the makers of its operands."""
    makers = {v: e for e in eqns for v in e.outvars}
    found: dict[Eqn, None] = {}
    waiting = list(reversed(eqns))
    while waiting:
        eqn = waiting[-1]
        before = [makers[v] for v in variables_in(eqn.invars) if v in makers]
        before = [e for e in before if e not in found]
        if before:
            waiting += before
        else:
            found[waiting.pop()] = None
    return list(found)


def enclose(
    eqns: Sequence[Eqn], needed: set[Var], late: Jaxpr
) -> tuple[Jaxpr, list[Var], list[Var]]:
    """Return equations as a program with the `needed` results, its inputs and its outputs.

    Its first inputs are known variables; then come variables that `late` takes or makes.
    """
    made = {v for e in eqns for v in e.outvars}
    unknown = {*late.invars, *[v for e in late.eqns for v in e.outvars]}
    free = [v for v in list_reads(eqns) if v not in made]
    invars = [v for v in free if v not in unknown] + [v for v in free if v in unknown]
    outvars = [v for e in eqns for v in e.outvars if v in needed]
    return Jaxpr([], invars, outvars, eqns, late.name), invars, outvars
