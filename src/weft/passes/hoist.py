"""Loop-invariant code motion: values that all iterations share are computed before a loop."""

from __future__ import annotations

from weft.core.facts import Runs
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Var, bodies_of, memo_jaxpr, read_vars, variables_in
from weft.core.primitive import Body, Primitive
from weft.core.source import nested_source
from weft.passes.dce import has_effects, with_equations
from weft.passes.inline import rename_atoms
from weft.passes.rewrite import rewrite_held


@memo_jaxpr
def hoist_invariants(jaxpr: Jaxpr) -> Jaxpr:
    """Return a program with loop-invariant equations moved in front of their loops.

    Equations with effects or named axes stay. So do equations with results larger than their
    operands, such as a broadcast: the result would be kept in memory. Only loops with a primitive
    that has `with_consts`, as `scan` and `while` have, are transformed.

    Args:
      jaxpr: a `Jaxpr`.
    Returns:
      An equivalent `Jaxpr`; `jaxpr` itself if nothing changes.

    >>> from weft.passes import hoist_invariants
    >>> def f(x):
    ...     return lax.fori_loop(0, 4, lambda i, total: total + jnp.sin(x), 0.0)
    >>> jaxpr = weft.make_jaxpr(f)(1.0).jaxpr
    >>> [eqn.primitive.name for eqn in jaxpr.eqns]
    ['scan']
    >>> [eqn.primitive.name for eqn in hoist_invariants(jaxpr).eqns]
    ['sin', 'scan']
    """
    eqns: list[Eqn] = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.memoize_type:
            eqns.append(eqn)
            continue
        eqn = rewrite_held(eqn, hoist_invariants)
        for body in bodies_of(eqn):
            is_whole = body.jaxpr is not None and eqn.params.get(body.key) is body.jaxpr
            if body.runs is Runs.LOOP and is_whole and hasattr(eqn.primitive, "with_consts"):
                eqn = hoist_body(eqn, body, eqns)
        eqns.append(eqn)
    return with_equations(jaxpr, jaxpr.invars, jaxpr.outvars, eqns)


def hoist_body(loop: Eqn, body: Body, eqns: list[Eqn]) -> Eqn:
    """Return a loop whose body takes its invariants as consts; add their equations to `eqns`."""
    jaxpr: Jaxpr = body.jaxpr
    outer: dict[Var, Atom] = find_fixed_inputs(loop, body)
    moved = []
    for eqn in jaxpr.eqns:
        if can_move(eqn, outer):
            moved.append(eqn)
            outer.update({v: type(v)(v.aval) for v in eqn.outvars})
    if not moved:
        return loop
    scope = loop.source_info.scope
    for eqn in moved:
        ins, outs = rename_atoms(eqn.invars, outer), rename_atoms(eqn.outvars, outer)
        eqns.append(eqn.replace(invars=ins, outvars=outs, source=nested_source(scope, eqn.source)))
    gone = set(map(id, moved))
    rest = [eqn for eqn in jaxpr.eqns if id(eqn) not in gone]
    read = read_vars(jaxpr.replace(eqns=rest))
    given = [v for eqn in moved for v in eqn.outvars if v in read]
    first = body.carry.start
    invars = [*jaxpr.invars[:first], *given, *jaxpr.invars[first:]]
    inner = jaxpr.replace(invars=invars, eqns=rest)
    return loop.primitive.with_consts(loop, inner, rename_atoms(given, outer))  # type: ignore


def find_fixed_inputs(loop: Eqn, body: Body) -> dict[Var, Atom]:
    """Return the inputs of a body that are the same in each iteration, with their values outside.

    They are the consts, and the values of the carry that the body does not change.
    """
    jaxpr = body.jaxpr
    fixed = dict(zip(jaxpr.invars, [loop.invars[i] for i in body.operands], strict=False))
    return {
        v: a
        for i, (v, a) in enumerate(fixed.items())
        if i < body.carry.start
        or (i in body.carry and jaxpr.outvars[i - body.carry.start] is v and v.aval is a.aval)
    }


def can_move(eqn: Eqn, fixed: dict[Var, Atom]) -> bool:
    """Return True if an equation is loop-invariant, and no larger than its operands."""
    prim = eqn.primitive
    read = variables_in(eqn.invars)
    if not read or not all(v in fixed for v in read):
        return False
    if has_effects(eqn) or type(prim).refers is not Primitive.refers or not prim.memoize_type:
        return False
    return sum(v.aval.nbytes for v in eqn.outvars) <= sum(v.aval.nbytes for v in read)
