"""Reverse mode's second half: walk a linear program backwards.

Each equation that touches a linear variable gives its cotangents to its primitive's `transpose`;
the others are evaluated first. Making the linear program is linearize.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.jaxpr import Jaxpr, Literal, Var, memo_jaxpr
from weft.core.primitive import Linear, Zero
from weft.core.stage import stage_closed
from weft.primitives.elementwise import add


def backward(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], cts: Sequence[Any]) -> list:
    """Cotangents of the arguments of `jaxpr` that are `Linear`, given those of its results.

    `args` holds a value or a Linear for each invar. The answer has a value, a Zero or, where the
    argument is not Linear, None for each.
    """
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    linear: set[Var] = set()
    for var, x in zip(jaxpr.invars, args, strict=True):
        if type(x) is Linear:
            linear.add(var)
        else:
            env[var] = x
    todo = []
    for eqn in jaxpr.eqns:
        if any(type(a) is not Literal and a in linear for a in eqn.invars):
            linear.update(eqn.outvars)
            todo.append(eqn)
        else:
            ins = [a.val if type(a) is Literal else env[a] for a in eqn.invars]  # type: ignore
            env.update(zip(eqn.outvars, eqn.primitive.bind(*ins, **eqn.params), strict=True))

    sums: dict[Var, Any] = {}

    def accumulate(atom: Any, ct: Any) -> None:
        if ct is None or type(ct) is Zero or type(atom) is Literal or atom not in linear:
            return
        before = sums.get(atom)
        sums[atom] = ct if before is None else add(before, ct)

    for atom, ct in zip(jaxpr.outvars, cts, strict=True):
        accumulate(atom, ct)
    for eqn in reversed(todo):
        eqn_cts = [sums.pop(v, None) for v in eqn.outvars]
        if all(ct is None for ct in eqn_cts):
            continue
        eqn_cts = [
            Zero(v.aval) if ct is None else ct for ct, v in zip(eqn_cts, eqn.outvars, strict=True)
        ]
        ins = [
            a.val if type(a) is Literal else Linear(a.aval) if a in linear else env[a]
            for a in eqn.invars
        ]
        outs = eqn.primitive.transpose(eqn_cts, *ins, **eqn.params)
        for atom, ct in zip(eqn.invars, outs, strict=True):
            accumulate(atom, ct)
    return [
        (sums.get(v) if v in sums else Zero(v.aval)) if type(x) is Linear else None
        for v, x in zip(jaxpr.invars, args, strict=True)
    ]


@memo_jaxpr
def backward_jaxpr(
    jaxpr: Jaxpr, linear: tuple[bool, ...], moved: tuple[bool, ...]
) -> tuple[Jaxpr, list[bool]]:
    """The transpose of a closed jaxpr in its `linear` inputs, as a program.

    It maps (the other inputs, cotangents of the `moved` outputs) to the cotangents of the linear
    inputs that are not Zero; also returned: which those are.
    """
    out_moved: list[bool] = []

    def fun(*values: Any) -> list:
        given = iter(values)
        args = [
            Linear(a) if lin else next(given) for a, lin in zip(jaxpr.in_avals, linear, strict=True)
        ]
        cts = [next(given) if m else Zero(a) for a, m in zip(jaxpr.out_avals, moved, strict=True)]
        grads = backward(jaxpr, (), args, cts)
        grads = [g for g, lin in zip(grads, linear, strict=True) if lin]
        out_moved[:] = [type(g) is not Zero for g in grads]
        return [g for g in grads if type(g) is not Zero]

    avals = [a for a, lin in zip(jaxpr.in_avals, linear, strict=True) if not lin]
    avals += [a for a, m in zip(jaxpr.out_avals, moved, strict=True) if m]
    out, consts = stage_closed(fun, avals, jaxpr.name)
    assert not consts, "a closed jaxpr has no consts"
    return out, out_moved
