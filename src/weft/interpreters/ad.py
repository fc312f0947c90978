"""Derivatives of primitives: the names of `jax.interpreters.ad`.

    primitive_jvps[prim] = rule          rule(primals, tangents, **params) -> out, tangent
    primitive_transposes[prim] = rule    rule(ct, *args, **params) -> a ct or None for each of args

A tangent or cotangent may be a `Zero`; the args that a transpose rule solves for are
`UndefinedPrimal`s.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from weft.core.aval import typeof
from weft.core.primitive import Linear as UndefinedPrimal
from weft.core.primitive import Primitive, Zero
from weft.interpreters.defining import Rules, list_pair, list_results, unlist_pair, unlist_results
from weft.primitives.elementwise import add as add_jaxvals
from weft.primitives.elementwise import add_p as add_jaxvals_p
from weft.primitives.families import is_linear as is_undefined_primal
from weft.primitives.layout import instantiate as instantiate_zeros
from weft.primitives.layout import zeros as zeros_like_aval
from weft.transforms.jvp import JVPTrace, JVPTracer, jvp, jvp_jaxpr
from weft.transforms.linearize import linearize
from weft.transforms.transpose import backward
from weft.util import list_public

__all__ = [
    "JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p",
    "add_tangents", "backward_pass", "defbilinear", "defjvp", "defjvp2", "deflinear", "deflinear2",
    "get_primitive_transpose", "instantiate_zeros", "is_undefined_primal", "jvp", "jvp_jaxpr",
    "linearize", "primitive_jvps", "primitive_transposes", "zeros_like_aval",
]  # fmt: skip
__dir__ = list_public(__name__)


def _make_transpose(prim: Primitive, rule: Callable) -> Callable:
    return lambda cts, *args, **params: list(rule(unlist_results(prim, list(cts)), *args, **params))


def _read_transpose(prim: Primitive, method: Callable) -> Callable:
    return lambda ct, *args, **params: method(list_results(prim, ct), *args, **params)


primitive_jvps = Rules("jvp", list_pair, unlist_pair)
primitive_transposes = Rules("transpose", _make_transpose, _read_transpose)


def get_primitive_transpose(prim: Primitive) -> Callable:
    """The transpose rule of a primitive."""
    return primitive_transposes[prim]


def add_tangents(x: Any, y: Any) -> Any:
    """Return the sum of two tangents, each of which may be a Zero."""
    if isinstance(x, Zero):
        return y
    return x if isinstance(y, Zero) else add_jaxvals(x, y)


def defjvp(prim: Primitive, *rules: Callable | None) -> None:
    """Set the derivative operand by operand: `rules[k](t, *primals, **params)`; None for zero."""
    defjvp2(prim, *[rule and _without_out(rule) for rule in rules])


def _without_out(rule: Callable) -> Callable:
    return lambda t, out, *primals, **params: rule(t, *primals, **params)


def defjvp2(prim: Primitive, *rules: Callable | None) -> None:
    """Do as `defjvp` does, for rules `rules[k](t, out, *primals, **params)`."""

    def jvp_rule(primals: Sequence, tangents: Sequence, **params: Any) -> tuple[Any, Any]:
        out = prim.bind(*primals, **params)
        dots = [
            rule(t, out, *primals, **params)
            for rule, t in zip(rules, tangents, strict=True)
            if rule is not None and not isinstance(t, Zero)
        ]
        return out, functools.reduce(add_tangents, dots, Zero(typeof(out).to_tangent()))

    primitive_jvps[prim] = jvp_rule


def deflinear(prim: Primitive, transpose_rule: Callable) -> None:
    """Set the derivative and the transpose of a linear primitive.

    `transpose_rule(ct, **params)` gives the cotangents of its operands.
    """
    deflinear2(prim, lambda ct, *args, **params: transpose_rule(ct, **params))


def deflinear2(prim: Primitive, transpose_rule: Callable) -> None:
    """Do as `deflinear` does, for a rule that takes the operands: `transpose_rule(ct, *args)`."""

    def jvp_rule(primals: Sequence, tangents: Sequence, **params: Any) -> tuple[Any, Any]:
        dots = prim.bind(*map(instantiate_zeros, tangents), **params)
        return prim.bind(*primals, **params), dots

    primitive_jvps[prim] = jvp_rule
    primitive_transposes[prim] = transpose_rule


def defbilinear(prim: Primitive, lhs_rule: Callable, rhs_rule: Callable) -> None:
    """Set the derivative and the transpose of a primitive that is linear in each of two operands.

    `lhs_rule(ct, x, y, **params)` gives the cotangent of x, which is undefined; `rhs_rule` of y.
    """
    defjvp(
        prim,
        lambda t, x, y, **params: prim.bind(t, y, **params),
        lambda t, x, y, **params: prim.bind(x, t, **params),
    )

    def transpose_rule(ct: Any, x: Any, y: Any, **params: Any) -> tuple[Any, Any]:
        if is_undefined_primal(x):
            return lhs_rule(ct, x, y, **params), None
        return None, rhs_rule(ct, x, y, **params)

    primitive_transposes[prim] = transpose_rule


def backward_pass(
    jaxpr: Any, transform_stack: Any, consts: Sequence, primals_in: Sequence,
    cotangents_in: Sequence,
) -> list:  # fmt: skip
    """Cotangents of the operands of a linear jaxpr that are UndefinedPrimals.

    `transform_stack` is taken so that calls carry over from JAX.
    """
    return backward(jaxpr, consts, primals_in, cotangents_in)
