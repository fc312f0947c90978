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
    """Return the transpose rule of a primitive.

    Args:
      prim: the primitive.

    Returns:
      A function `rule(ct, *args, **params)`. It returns a list with an entry for each operand: a
      cotangent, or None.

    Raises:
      KeyError: the primitive has no transpose rule.

    >>> from weft.interpreters import ad
    >>> rule = ad.get_primitive_transpose(lax.neg_p)
    >>> [ct] = rule(2.0, ad.UndefinedPrimal(weft.typeof(1.0)))
    >>> print(ct)
    -2.0
    """
    return primitive_transposes[prim]


def add_tangents(x: Any, y: Any) -> Any:
    """Return the sum of two tangents or cotangents. A `Zero` costs nothing.

    Args:
      x: an array or a `Zero`.
      y: an array or a `Zero`, of the same shape and dtype as `x`.

    Returns:
      An array, or a `Zero` if both are.

    >>> from weft.interpreters import ad
    >>> print(ad.add_tangents(ad.Zero(weft.typeof(1.0)), 2.0))
    2.0
    """
    if isinstance(x, Zero):
        return y
    return x if isinstance(y, Zero) else add_jaxvals(x, y)


def defjvp(prim: Primitive, *rules: Callable | None) -> None:
    """Set the forward-mode derivative of a primitive, operand by operand.

    The tangent of the result is the sum of the terms of the operands. The primitive has one result.

    Args:
      prim: the primitive.
      *rules: a rule for each operand. `rules[k](t, *primals, **params)` returns the term for the
        tangent `t` of operand `k`. None stands for a term of zero.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import ad
    >>> cube_p = Primitive("cube")
    >>> _ = cube_p.def_impl(lambda x: x**3)
    >>> ad.defjvp(cube_p, lambda t, x: 3 * x**2 * t)
    >>> y, t = weft.jvp(cube_p.bind, (2.0,), (1.0,))
    >>> print(y, t)
    8.0 12.0
    """
    defjvp2(prim, *[rule and _without_out(rule) for rule in rules])


def _without_out(rule: Callable) -> Callable:
    return lambda t, out, *primals, **params: rule(t, *primals, **params)


def defjvp2(prim: Primitive, *rules: Callable | None) -> None:
    """Set the forward-mode derivative of a primitive by rules that also take the result.

    Use it in place of `defjvp` if the derivative is cheap to compute from the result.

    Args:
      prim: the primitive; it has one result.
      *rules: a rule for each operand. `rules[k](t, out, *primals, **params)` returns the term for
        the tangent `t` of operand `k`, where `out` is the result. None stands for a term of zero.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import ad
    >>> exponential_p = Primitive("exponential")
    >>> _ = exponential_p.def_impl(lambda x: jnp.exp(x))
    >>> ad.defjvp2(exponential_p, lambda t, out, x: out * t)
    >>> y, t = weft.jvp(exponential_p.bind, (0.0,), (3.0,))
    >>> print(y, t)
    1.0 3.0
    """

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
    """Set the derivative and the transpose of a primitive that is linear in all operands.

    The tangent of the result is the primitive of the tangents.

    Args:
      prim: the primitive.
      transpose_rule: `transpose_rule(ct, **params)` returns a sequence with the cotangent of each
        operand, for the cotangent `ct` of the result.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import ad
    >>> triple_p = Primitive("triple")
    >>> _ = triple_p.def_impl(lambda x: 3 * x)
    >>> _ = triple_p.def_abstract_eval(lambda x: x)
    >>> ad.deflinear(triple_p, lambda ct: [3 * ct])
    >>> print(weft.grad(triple_p.bind)(1.0))
    3.0
    """
    deflinear2(prim, lambda ct, *args, **params: transpose_rule(ct, **params))


def deflinear2(prim: Primitive, transpose_rule: Callable) -> None:
    """Set the derivative and the transpose of a linear primitive by a rule that takes operands.

    Use it in place of `deflinear` if the cotangents depend on the types of the operands.

    Args:
      prim: the primitive; it is linear in all operands.
      transpose_rule: `transpose_rule(ct, *args, **params)` returns a sequence with the cotangent of
        each operand, for the cotangent `ct` of the result. The `args` are `UndefinedPrimal`s, which
        have types and no values.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import ad
    >>> total_p = Primitive("total")
    >>> _ = total_p.def_impl(lambda x: jnp.sum(x))
    >>> _ = total_p.def_abstract_eval(lambda x: x.update(shape=()))
    >>> ad.deflinear2(total_p, lambda ct, x: [jnp.full(x.aval.shape, ct)])
    >>> weft.grad(total_p.bind)(jnp.ones(3))
    Array([1., 1., 1.], dtype=float32)
    """

    def jvp_rule(primals: Sequence, tangents: Sequence, **params: Any) -> tuple[Any, Any]:
        dots = prim.bind(*map(instantiate_zeros, tangents), **params)
        return prim.bind(*primals, **params), dots

    primitive_jvps[prim] = jvp_rule
    primitive_transposes[prim] = transpose_rule


def defbilinear(prim: Primitive, lhs_rule: Callable, rhs_rule: Callable) -> None:
    """Set the derivative and the transpose of a primitive that is linear in each of two operands.

    Args:
      prim: the primitive.
      lhs_rule: `lhs_rule(ct, x, y, **params)` returns the cotangent of the first operand, for the
        cotangent `ct` of the result. Its `x` is an `UndefinedPrimal`.
      rhs_rule: `rhs_rule(ct, x, y, **params)` returns the cotangent of the second operand. Its `y`
        is an `UndefinedPrimal`.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import ad
    >>> times_p = Primitive("times")
    >>> _ = times_p.def_impl(lambda x, y: x * y)
    >>> _ = times_p.def_abstract_eval(lambda x, y: x)
    >>> ad.defbilinear(times_p, lambda ct, x, y: ct * y, lambda ct, x, y: ct * x)
    >>> dx, dy = weft.grad(times_p.bind, argnums=(0, 1))(2.0, 5.0)
    >>> print(dx, dy)
    5.0 2.0
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
    """Compute cotangents of the inputs of a linear jaxpr.

    The equations run backward by their transpose rules. Equations that do not depend on an
    `UndefinedPrimal` are evaluated first.

    Args:
      jaxpr: a `Jaxpr` that is linear in the inputs to solve for.
      transform_stack: accepted for compatibility with JAX and ignored.
      consts: a sequence of values, one for each constvar.
      primals_in: a sequence with an entry for each input: its value, or an `UndefinedPrimal` for an
        input to solve for.
      cotangents_in: a sequence of the cotangents of the results; a `Zero` or None stands for zero.

    Returns:
      A list with an entry for each input: an array, a `Zero`, or None for an input with a value.

    >>> from weft.interpreters import ad
    >>> _, jaxpr, residuals, _ = ad.linearize(lambda x: [x * x], [3.0])
    >>> x = ad.UndefinedPrimal(weft.typeof(3.0))
    >>> [ct] = ad.backward_pass(jaxpr, None, residuals, [x], [1.0])
    >>> print(ct)
    6.0
    """
    return backward(jaxpr, consts, primals_in, cotangents_in)
