"""Dead code: `dce_jaxpr` drops it, `quiet_jaxpr` also drops effects that have happened already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.jaxpr import Eqn, Jaxpr, Literal, held_jaxprs, memo_jaxpr, read_vars, variables_in
from weft.core.pretty import equation_text


def has_effects(eqn: Eqn) -> bool:
    """Return True if an equation, or a program that it holds, has effects besides its results."""
    if eqn.primitive.effect is not None:
        return True
    return not eqn.primitive.memoize_type and any(p.effects for p in held_jaxprs(eqn))


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool] | None = None, keep_inputs: bool = True
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """`jaxpr` without the equations that its used results do not need, and which inputs they need.

    Results that are not used are dropped, and so are unneeded inputs unless `keep_inputs`;
    constvars stay. Equations with effects stay.
    """
    chosen = None if used_outputs is None else tuple(used_outputs)
    found, used = prune_jaxpr(jaxpr, chosen, keep_inputs)
    return found or jaxpr, used


@memo_jaxpr
def prune_jaxpr(
    jaxpr: Jaxpr, used_outputs: tuple[bool, ...] | None, keep_inputs: bool
) -> tuple[Jaxpr | None, tuple[bool, ...]]:
    outvars = jaxpr.outvars
    if used_outputs is not None:
        outvars = [v for v, used in zip(outvars, used_outputs, strict=True) if used]
    live: set[Any] = set()
    for v in outvars:
        if type(v) is not Literal:
            live.add(v)
    eqns: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        if live.isdisjoint(eqn.outvars) and not has_effects(eqn):
            continue
        if eqn.primitive.dce is not None:
            eqn = eqn.primitive.dce(eqn, [v in live for v in eqn.outvars])
            if eqn is None:
                continue
        eqns.append(eqn)
        for a in eqn.invars:
            if type(a) is not Literal:
                live.add(a)
    eqns.reverse()
    used_inputs = tuple([v in live for v in jaxpr.invars])
    invars = jaxpr.invars
    if not keep_inputs:
        invars = [v for v in invars if v in live]
    found = with_equations(jaxpr, invars, outvars, eqns)
    return None if found is jaxpr else found, used_inputs


@memo_jaxpr
def drop_dead_code(jaxpr: Jaxpr) -> Jaxpr:
    """Return a program without the equations that no result needs.

    The pass keeps all results, all inputs and all equations with side effects. It also removes dead
    code from the programs that the program holds.

    Args:
      jaxpr: a `Jaxpr`.

    Returns:
      An equivalent `Jaxpr`; `jaxpr` itself if nothing changes.

    >>> from weft.passes import drop_dead_code
    >>> def f(x):
    ...     jnp.sin(x)  # nothing reads it
    ...     return x + 1.0
    >>> print(drop_dead_code(weft.make_jaxpr(f)(1.0).jaxpr))
    { lambda ; a:f32[]. let b:f32[] = add a 1.0 in (b,) }
    """
    found, used = prune_jaxpr(jaxpr, None, True)
    out = found or jaxpr
    out.memo["used_inputs"] = used
    return out


def used_inputs(jaxpr: Jaxpr) -> tuple[bool, ...]:
    """Return True for inputs of a program that are read, by any equation or as a result."""
    found = jaxpr.memo.get("used_inputs")
    if found is None:
        read = read_vars(jaxpr)
        found = jaxpr.memo["used_inputs"] = tuple([v in read for v in jaxpr.invars])
    return found


@memo_jaxpr
def quiet_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """Return `jaxpr` for a second run: without the effects of the first run.

    Raises if a result is needed of an operation that may run only once.
    """
    live = {*variables_in(jaxpr.outvars)}
    eqns: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        effect = eqn.primitive.effect
        if effect is not None:
            if live.isdisjoint(eqn.outvars):
                continue
            if not effect.repeatable:
                raise NotImplementedError(
                    f"{eqn.primitive}: must happen once, but reverse mode computes its results "
                    f"again; got {equation_text(jaxpr, jaxpr.eqns.index(eqn))}. Hint: call it "
                    "outside of checkpoint and while_loop, and pass its results in."
                )
        if any(p.effects for p in held_jaxprs(eqn)):
            eqn = eqn.replace(params={k: quiet_param(x) for k, x in eqn.params.items()})
        eqns.append(eqn)
        live.update(variables_in(eqn.invars))
    eqns.reverse()
    return dce_jaxpr(with_equations(jaxpr, jaxpr.invars, jaxpr.outvars, eqns))[0]


def quiet_param(x: Any) -> Any:
    """A parameter with the programs that it holds made quiet."""
    if isinstance(x, tuple):
        return tuple(map(quiet_param, x))
    return quiet_jaxpr(x) if isinstance(x, Jaxpr) else x


def with_equations(jaxpr: Jaxpr, invars: list, outvars: list, eqns: list) -> Jaxpr:
    """Return a program with these equations; `jaxpr` itself, with its caches, if nothing is new."""
    same = eqns == jaxpr.eqns  # equations are compared by identity
    if same and len(invars) == len(jaxpr.invars) and len(outvars) == len(jaxpr.outvars):
        return jaxpr
    return jaxpr.replace(invars=invars, outvars=outvars, eqns=eqns)
