"""Reverse mode's second half: walk a linear program backwards.

Each equation that touches a linear variable gives its cotangents to its primitive's `transpose`;
the others are evaluated first. Making the linear program is linearize.py.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, enter_results, memo_jaxpr
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
    """Return cotangents of the `Linear` arguments of `jaxpr`, given cotangents of its results.

    `args` holds a value or a Linear for each invar; in `cts`, None is zero too. The result has for
    each argument a value, a Zero or, if it is not Linear, None.
    """
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, typed_values(consts, jaxpr.constvars)))
    env.update(zip(jaxpr.invars, args, strict=True))
    around = current.source
    try:
        try:
            steps = evaluate_known(jaxpr.eqns, env)
            sums: dict[Var, Any] = {}
            for atom, ct in zip(jaxpr.outvars, cts, strict=True):
                if ct is None or type(ct) is Zero or type(atom) is Literal:
                    continue
                if type(env[atom]) is Linear:  # type: ignore[index]
                    add_cotangent(sums, atom, lay_as_dual(ct, atom.aval))
            transpose = functools.partial(transpose_equation, current.trace.targets)
            pull_cotangents(steps, sums, transpose)
        finally:
            current.source = around
    finally:  # again, as in `run_once`
        current.source = around
    return [
        (sums.get(v) if v in sums else Zero(dual_aval(v.aval))) if type(x) is Linear else None
        for v, x in zip(jaxpr.invars, args, strict=True)
    ]


def evaluate_known(eqns: Sequence[Eqn], env: dict[Var, Any]) -> list[tuple]:
    """Apply the equations that touch nothing linear; return the others as steps of the walk."""
    steps = []
    for eqn in eqns:
        ins = []
        keys: list[Any] = []
        linear = False
        for atom in eqn.invars:
            x = atom.read() if type(atom) is Literal else env[atom]  # type: ignore[index]
            ins.append(x)
            if type(x) is Linear:
                linear = True
                keys.append(atom)
            else:
                keys.append(None)
        if linear:
            steps.append((keys, eqn.outvars, eqn, ins))
            for v in eqn.outvars:
                env[v] = Linear(v.aval)
        else:
            current.source = inner_source(eqn.source)
            outs = current.trace.process(eqn.primitive, ins, eqn.params)
            enter_results(env, eqn.outvars, outs)
    return steps


def pull_cotangents(
    steps: Sequence[tuple], sums: dict, pull: Callable[[tuple, list], Sequence]
) -> None:
    """Walk back along `steps` and add the cotangents of operands to `sums`, by key.

    A step begins with the keys of its operands, None for a nonlinear operand, and the keys of its
    results. The cotangents of the results are taken out of `sums`. `pull(step, cts)` returns a
    cotangent for each operand of a step. None is zero in `cts`; None or Zero is zero in the result.
    """
    for step in reversed(steps):
        results = step[1]
        if len(results) == 1:
            ct = sums.pop(results[0], None)
            if ct is None:
                continue
            cts = [ct]
        else:
            if not any(key in sums for key in results):
                continue
            cts = [sums.pop(key, None) for key in results]
        keys, pulled = step[0], pull(step, cts)
        if len(pulled) != len(keys):
            raise ValueError(
                f"transpose: a rule must return one cotangent for each operand; got {len(pulled)} "
                f"for {len(keys)}."
            )
        i = 0  # a third of the time of `zip`
        for ct in pulled:
            key = keys[i]
            i += 1  # noqa: SIM113
            if ct is not None and key is not None and type(ct) is not Zero:
                # as `add_cotangent`, without a call
                before = sums.get(key)
                sums[key] = ct if before is None else add(before, ct)


def add_cotangent(sums: dict, key: Any, ct: Any) -> None:
    """Add a cotangent to the sum at a key."""
    before = sums.get(key)
    sums[key] = ct if before is None else add(before, ct)


def transpose_equation(targets: Any, step: tuple, cts: list) -> list:
    """Apply the transpose rule of an equation; `targets` belong to the current trace.

    The equations that the rule writes have the source of this one.
    """
    keys, outvars, eqn, ins = step
    if len(cts) > 1:
        cts = [Zero(dual_aval(v.aval)) if ct is None else ct for v, ct in zip(outvars, cts)]
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
    for x in (*keys, *outs):
        aval = getattr(x, "aval", None)  # as `typeof`, without a call
        if aval is not None and aval.sharded is not None:
            return [
                ct if k is None or ct is None else lay_as_dual(ct, k.aval)
                for k, ct in zip(keys, outs, strict=True)
            ]
    return outs


def run_transpose(prim: Primitive, params: dict, cts: list, ins: list) -> list:
    """The cotangents of operands, by the rule of an operation."""
    return prim.transpose(cts, *ins, **params)


def lay_as_dual(ct: Any, aval: ShapedArray) -> Any:
    """Lay a cotangent out over a mesh as the type of its primal asks for."""
    if type(ct) is Zero:
        return ct
    lies = dual_of(aval)
    return ct if typeof(ct).sharded is lies else lay_as(cast_kinds(ct, lies), lies)


def dual_aval(aval: ShapedArray) -> ShapedArray:
    """The type of cotangents of values of a type, over a mesh."""
    return aval if aval.sharded is None else aval.update(sharded=dual_of(aval))


@memo_jaxpr
def backward_jaxpr(
    jaxpr: Jaxpr, linear: tuple[bool, ...], moved: tuple[bool, ...], force: tuple[bool, ...] = ()
) -> tuple[Jaxpr, list[bool]]:
    """Return the transpose of a closed jaxpr in its `linear` inputs, as a program.

    It maps (the other inputs, cotangents of the `moved` outputs) to the cotangents of the linear
    inputs that are not Zero; also returned: the marks of these inputs. `force`, with an entry for
    each linear input, returns zeros in place of Zero.
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
