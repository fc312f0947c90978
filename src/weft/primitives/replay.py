"""Rules replayed: what a rule has written for operands of some types is written again from memory.

A rule writes the same equations wherever its operands have the same types, and numbers the same
values. So it is run twice for these; from then on its equations are copied, at half the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.core.jaxpr import Eqn, Literal, Var
from weft.core.primitive import Linear, Primitive, Zero
from weft.core.stage import StagedTracer, StageTrace
from weft.core.trace import current
from weft.dtypes import NUMBERS
from weft.options import trace_context
from weft.util import allocate, keep_cache, keep_newest

MAX_RULES = 10_000  # that are remembered; a program has some hundreds

# Rules at types: their equations (here), and rules as programs (run/rules.py).
RULES: dict[tuple, Any] = keep_cache("rules", {})


class Written(NamedTuple):
    """The equations of a rule: if late, operands (places or a Literal), and result types.

    Places count the rule's inputs, then the results of equations; `results` has places too.
    """

    eqns: Sequence[tuple[bool, Primitive, dict, Sequence, Sequence]]
    results: Sequence


def apply_rule(
    rule: Callable[..., list], prim: Primitive, params: dict, xs: list, n: int, targets: Any
) -> list:
    """`rule(prim, params, xs[:n], xs[n:])`, which is run or replayed.

    `targets` are the traces that take equations: the second those that touch values of it, the
    first the others. Without them, the rule is run.
    """
    key = targets and find_key(rule, prim, params, xs, *targets)
    try:
        # True: the rule has run once; False: it must be run
        found = RULES.get(key) if key else False
    except TypeError:  # parameters without a hash
        found = False
    if type(found) is Written:
        return write_again(found, xs, *targets)
    if found is None:
        keep_newest(RULES, key, True, MAX_RULES)
    starts = found and [len(trace.eqns) for trace in targets]
    results = rule(prim, params, xs[:n], xs[n:])
    if starts:
        RULES[key] = read_written(xs, results, *targets, *starts)
    return results


def find_key(
    rule: Any, prim: Primitive, params: dict, xs: list, early: StageTrace, late: StageTrace
) -> tuple | None:
    """All that the equations depend on; None where that is not known."""
    if not prim.memoize_type or prim.impl is not None or current.source is None:
        return None
    key: list = [rule, prim, early is late, trace_context(), xs[0] is xs[1], xs[-2] is xs[-1]]
    for x in xs:
        kind = type(x)
        if kind is StagedTracer:
            key.append(x.aval)
            if x.owner is not early:
                if x.owner is not late:
                    return None
                key.append("late")
        elif kind is Zero or kind is Linear:
            key += kind, x.aval
        elif kind in NUMBERS and kind is not complex:
            key += kind, x if x and x == x else str(x)  # 0.0 equals -0.0, and NaN nothing
        else:
            return None
    if params:
        key += params.items()
    return tuple(key)


def read_written(
    xs: list, results: list, early: StageTrace, late: StageTrace, start: int, late_start: int
) -> Written | bool:
    """Return the rest that a rule wrote; False if it has to run, True if that is not known."""
    told = (1, len(xs) - 1)  # whose key says whether they are the ones before
    traced = [(i, x) for i, x in enumerate(xs) if type(x) is StagedTracer]
    traced = [(i, x) for i, x in traced if i not in told or x is not xs[i - 1]]
    places: dict[Any, int] = {x.variable: i for i, x in traced}
    if len(places) < len(traced):
        return True  # of operands that are the same by chance it does not show which one is meant
    count, eqns = len(xs), []
    kept = late.consts.values() if late is not early else ()
    home = {v: x.variable for v, x in kept if type(x) is StagedTracer}
    new = [(False, e) for e in early.eqns[start:]]
    new += [(True, e) for e in late.eqns[late_start:]] if late is not early else []
    for is_late, eqn in new:
        prim = eqn.primitive
        ins = [a if type(a) is Literal else places.get(home.get(a, a)) for a in eqn.invars]
        avals = [v.aval for v in eqn.outvars]
        plain = prim.memoize_type and prim.effect is None and eqn.source is current.source
        if not plain or None in ins or any(a.sharded is not None for a in avals):
            return False
        eqns.append((is_late, prim, eqn.params, ins, avals))
        for v in eqn.outvars:
            places[v] = count
            count += 1
    if not {StagedTracer, Zero, type(None)}.issuperset(map(type, results)):
        return False
    outs = [places.get(y.variable, -1) if type(y) is StagedTracer else y for y in results]
    return -1 not in outs and Written(eqns, outs)


def write_again(written: Written, xs: list, early: StageTrace, late: StageTrace) -> list:
    """Write a rule's equations for other operands; its results."""
    values = [*xs]
    source = current.source
    for is_late, prim, params, ins, avals in written.eqns:
        trace = late if is_late else early
        atoms: list = []
        for i in ins:
            if type(i) is int:
                x = values[i]
                i = x.variable if x.owner is trace else trace.atom(x)
            atoms.append(i)
        outvars: list = []
        for aval in avals:  # objects as in `StageTrace.process`
            var = allocate(Var)
            var.aval = aval
            outvars.append(var)
            out = allocate(StagedTracer)
            out.owner = trace
            out.aval = aval
            out.variable = var
            values.append(out)
        eqn = allocate(Eqn)
        eqn.primitive = prim
        eqn.invars = atoms
        eqn.params = params
        eqn.outvars = outvars
        eqn.source = source
        trace.eqns.append(eqn)
    return [values[y] if type(y) is int else y for y in written.results]
