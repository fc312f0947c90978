"""Reverse mode's second half: walk a linear program backwards.

Each equation that touches a linear variable gives its cotangents to its primitive's `transpose`;
the others are evaluated first. Making the linear program is linearize.py.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, memo_jaxpr
from weft.core.primitive import Linear, LinearUsed, Primitive, Zero, not_linear
from weft.core.source import inner_source, transposed_source
from weft.core.trace import current, typed_values
from weft.errors import ShardingTypeError
from weft.mesh.typed import dual_of
from weft.primitives.constant import stage_whole
from weft.primitives.elementwise import add
from weft.primitives.layout import instantiate
from weft.primitives.replay import apply_rule
from weft.primitives.reshard import lay_as
from weft.primitives.varying import add_terms, cast_kinds


def backward(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], cts: Sequence[Any]) -> list:
    """Cotangents of the arguments of `jaxpr` that are `Linear`, given those of its results.

    `args` holds a value or a Linear for each invar. The answer has a value, a Zero or, where the
    argument is not Linear, None for each.
    """
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, typed_values(consts, jaxpr.constvars)))
    env.update(zip(jaxpr.invars, args, strict=True))
    around = current.source
    try:
        try:
            todo = evaluate_known(jaxpr.eqns, env)
            sums: dict[Var, Any] = {}
            for atom, ct in zip(jaxpr.outvars, cts, strict=True):
                if type(atom) is not Literal and type(env[atom]) is Linear:  # type: ignore[index]
                    accumulate(sums, atom, ct)
            pull_cotangents(todo, sums)
        finally:
            current.source = around
    finally:  # again, as in `run_once`
        current.source = around
    return [
        (sums.get(v) if v in sums else Zero(dual_aval(v.aval))) if type(x) is Linear else None
        for v, x in zip(jaxpr.invars, args, strict=True)
    ]


def evaluate_known(eqns: Sequence[Eqn], env: dict[Var, Any]) -> list[tuple[Eqn, list]]:
    """Apply the equations that touch nothing linear; give the others, and their operands."""
    todo = []
    for eqn in eqns:
        ins = []
        linear = False
        for atom in eqn.invars:
            x = atom.read() if type(atom) is Literal else env[atom]  # type: ignore[index]
            linear = linear or type(x) is Linear
            ins.append(x)
        if linear:
            todo.append((eqn, ins))
            for v in eqn.outvars:
                env[v] = Linear(v.aval)
        else:
            current.source = inner_source(eqn.source)
            outs = current.trace.process(eqn.primitive, ins, eqn.params)
            env.update(zip(eqn.outvars, outs, strict=True))
    return todo


def pull_cotangents(todo: Sequence[tuple[Eqn, list]], sums: dict[Var, Any]) -> None:
    """Transpose the equations, last first. What a rule writes has the source of its equation."""
    targets = current.trace.targets
    for eqn, ins in reversed(todo):
        outvars = eqn.outvars
        if len(outvars) == 1:
            ct = sums.pop(outvars[0], None)
            if ct is None:
                continue
            cts = [ct]
        else:
            if not any(v in sums for v in outvars):
                continue
            cts = [sums.pop(v) if v in sums else Zero(dual_aval(v.aval)) for v in outvars]
        current.source = transposed_source(eqn.source)
        try:
            xs = [*cts, *ins]
            outs = apply_rule(run_transpose, eqn.primitive, eqn.params, xs, len(cts), targets)
        except LinearUsed:
            raise not_linear(eqn.primitive.name, ins) from None
        except ShardingTypeError:  # what cannot be done with terms of a sum is done with the sum
            added = list(map(add_terms, cts))
            if all(map(operator.is_, added, cts)):
                raise
            outs = eqn.primitive.transpose(added, *ins, **eqn.params)
        for atom, x, ct in zip(eqn.invars, ins, outs, strict=True):
            if ct is not None and type(x) is Linear:
                accumulate(sums, atom, ct)


def run_transpose(prim: Primitive, params: dict, cts: list, ins: list) -> list:
    """The cotangents of operands, by the rule of an operation."""
    return prim.transpose(cts, *ins, **params)


def accumulate(sums: dict[Var, Any], var: Any, ct: Any) -> None:
    """Add a cotangent to what a variable has."""
    if type(ct) is not Zero:
        lies = dual_of(var.aval)
        if typeof(ct).sharded is not lies:
            ct = lay_as(cast_kinds(ct, lies), lies)
        before = sums.get(var)
        sums[var] = ct if before is None else add(before, ct)


def dual_aval(aval: ShapedArray) -> ShapedArray:
    """The type of cotangents of values of a type, over a mesh."""
    return aval if aval.sharded is None else aval.update(sharded=dual_of(aval))


@memo_jaxpr
def backward_jaxpr(
    jaxpr: Jaxpr, linear: tuple[bool, ...], moved: tuple[bool, ...], force: tuple[bool, ...] = ()
) -> tuple[Jaxpr, list[bool]]:
    """The transpose of a closed jaxpr in its `linear` inputs, as a program.

    It maps (the other inputs, cotangents of the `moved` outputs) to the cotangents of the linear
    inputs that are not Zero; also returned: which those are. `force`, with an entry for each
    linear input, gives zeros in place of Zero.
    """
    out_moved: list[bool] = []
    forced = force or (False,) * sum(linear)

    def fun(*values: Any) -> list:
        given = iter(values)
        args = [
            Linear(a) if lin else next(given) for a, lin in zip(jaxpr.in_avals, linear, strict=True)
        ]
        cts = [next(given) if m else Zero(dual_aval(a)) for a, m in zip(jaxpr.out_avals, moved)]
        grads = backward(jaxpr, (), args, cts)
        grads = [g for g, lin in zip(grads, linear, strict=True) if lin]
        grads = [instantiate(g) if f else g for g, f in zip(grads, forced, strict=True)]
        out_moved[:] = [type(g) is not Zero for g in grads]
        return [g for g in grads if type(g) is not Zero]

    avals = [a for a, lin in zip(jaxpr.in_avals, linear, strict=True) if not lin]
    avals += [dual_aval(a) for a, m in zip(jaxpr.out_avals, moved, strict=True) if m]
    return stage_whole(fun, avals, jaxpr.name), out_moved
