"""NumPy's elementwise functions of one operation each: promotion and broadcasting, as a table.

Functions that need more than one operation are in elementwise.py; promotion itself is in
promotion.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft.core.aval import typeof
from weft.core.primitive import Primitive
from weft.core.stage import stage_closed
from weft.core.trace import Tracer, current
from weft.errors import DtypeError
from weft.numpy.promotion import (
    PLANS,
    as_operand,
    drop_weak_type,
    kind_of,
    plan_promotion,
    refuse_out,
)
from weft.numpy.ufunc_methods import attach_ufunc_methods
from weft.options import trace_context
from weft.primitives import elementwise as ops
from weft.run.operation import number_operation
from weft.run.rules import RuleTrace, as_operation
from weft.util import alias, name_function
from weft.xla.typing import Array, ArrayLike


def make_binary(
    name: str,
    prim: Primitive,
    doc: str,
    inexact: bool = False,
    bools: Primitive | None = None,
    complexes: Callable[[Any, Any], list] | None = None,
    check: Callable[[str, Any], None] | None = None,
) -> Callable[[Any, Any], Any]:
    """A function of two operands; with `inexact`, integers become floats first.

    `bools` is the primitive for truth values and `complexes` what to apply to complex numbers,
    where these differ; `check(name, dtype)` may refuse a dtype.
    """

    def fun(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
        if out is not None or where is not None:
            refuse_out_and_where(name, out, where)
        key = (getattr(x, "aval", None) or type(x), getattr(y, "aval", None) or type(y))
        plan = PLANS.get((name, key, trace_context()))
        if plan is None:
            x, y = as_operand(name, x), as_operand(name, y)
            plan = remembered(x, y)
        applied, act_x, act_y = plan
        x, y = x if act_x is None else act_x(x), y if act_y is None else act_y(y)
        if applied is None:
            return current.trace.process(prim, (x, y), {})[0]
        return applied(x, y)[0]

    def remembered(x: Any, y: Any) -> tuple:
        kinds = (kind_of(name, x), kind_of(name, y))
        plan = plan_promotion(name, kinds, inexact)
        if check is not None:
            check(name, plan.dtype)
        applied: Callable | None = None  # for `prim` itself
        if bools is not None and dtypes.is_bool(plan.dtype):
            applied = bools.apply
        elif complexes is not None and dtypes.is_complex(plan.dtype):
            applied = complexes
        out = applied, None, None
        if plan.actions is not None:
            out = apply_together(name, applied or prim.apply, plan.actions, kinds)
        PLANS[name, kinds, trace_context()] = out
        return out

    return number_operation(name_function(fun, name, doc), prim.name)


def apply_together(name: str, applied: Callable, actions: Any, kinds: Sequence) -> tuple:
    """(what to apply, what to do to x before, and to y), of operands of these kinds.

    Arrays are brought to one type and operated on as one call under a transformation: there each
    operation more costs as much again.
    """
    if not all([getattr(k, "sharded", k) is None for k in kinds]):  # noqa: C419
        return applied, *actions
    act_x, act_y = actions
    program: list[Any] = []

    def apply(x: Any, y: Any) -> list:
        if isinstance(current.trace, RuleTrace) and isinstance(x, Tracer) | isinstance(y, Tracer):
            if not program:
                program.extend(as_operation(stage_closed(apply, kinds, name)[0], name))
            return current.trace.process(program[0], (x, y), program[1])
        return applied(x if act_x is None else act_x(x), y if act_y is None else act_y(y))

    return apply, None, None


def make_unary(
    name: str,
    prim: Primitive,
    doc: str,
    inexact: bool = False,
    check: Callable[[str, Any], None] | None = None,
    counts: bool = False,
    strong: bool = False,
) -> Callable[[Any], Any]:
    """A function of one operand; with `inexact`, integers become floats first.

    With `counts`, truth values become integers, with `strong`, the result is never weakly typed;
    `check(name, dtype)` may refuse a dtype.
    """

    def fun(x: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
        if out is not None or where is not None:
            refuse_out_and_where(name, out, where)
        key = (name, getattr(x, "aval", None) or type(x), trace_context())
        steps = PLANS.get(key)
        if steps is None:
            x = as_operand(name, x)
            kind, steps = kind_of(name, x), ()
            if inexact:
                steps = plan_promotion(name, (kind,), True).actions or ()
            if strong:
                steps = (*filter(None, steps), drop_weak_type)
            if check is not None:
                check(name, typeof(x).dtype)
            if counts and dtypes.is_bool(typeof(x).dtype):
                steps = (functools.partial(ops.convert, dtype=np.dtype(np.int32)),)
            PLANS[name, kind, trace_context()] = steps
        for step in steps:
            x = step(x)
        return current.trace.process(prim, (x,), {})[0]

    return number_operation(name_function(fun, name, doc), prim.name)


def refuse_out_and_where(name: str, out: Any, where: Any) -> None:
    """Refuse NumPy's `out=` and `where=`."""
    refuse_out(name, out)
    if where is not None:
        raise NotImplementedError(
            f"{name}: where must be None, for there is no array to leave as it is; "
            f"got {type(where).__name__}. Hint: jnp.where(mask, jnp.{name}(...), x)."
        )


def check_not_bool(name: str, dtype: Any) -> None:
    """Refuse truth values, as NumPy does for - and sign."""
    if dtypes.is_bool(dtype):
        hint = "Hint: jnp.logical_xor(x, y)" if name == "subtract" else "Hint: jnp.logical_not(x)"
        raise DtypeError(f"{name}: operands must be numbers; got bool. {hint}, or x.astype(int).")


def check_not_inexact(name: str, dtype: Any) -> None:
    """Refuse floats and complex numbers, whose bits are no number."""
    if dtypes.is_inexact(dtype):
        raise DtypeError(
            f"{name}: operands must be bool or integers; got {dtypes.short_name(dtype)}. "
            "Hint: x.astype(int), or x.view(jnp.int32) for the bits of a float32."
        )


# --- arithmetic -----------------------------------------------------------------------------

add = make_binary("add", ops.add_p, "x + y; of truth values, x or y.", bools=ops.or_p)
subtract = make_binary("subtract", ops.sub_p, "x - y.", check=check_not_bool)
multiply = make_binary("multiply", ops.mul_p, "x * y; of truth values, x and y.", bools=ops.and_p)
divide = make_binary("divide", ops.div_p, "x / y; of integers, a float.", inexact=True)
negative = make_unary("negative", ops.neg_p, "-x.", check=check_not_bool)
sign = make_unary(
    "sign",
    ops.sign_p,
    "-1, 0 or 1 as x is negative, zero or positive; x / abs(x) for complex x.",
    check=check_not_bool,
)
square = make_unary("square", ops.square_p, "x * x; of truth values, an integer.", counts=True)

# --- bit by bit -----------------------------------------------------------------------------

bitwise_and = make_binary("bitwise_and", ops.and_p, "x & y, bit by bit.", check=check_not_inexact)
bitwise_or = make_binary("bitwise_or", ops.or_p, "x | y, bit by bit.", check=check_not_inexact)
bitwise_xor = make_binary("bitwise_xor", ops.xor_p, "x ^ y, bit by bit.", check=check_not_inexact)
bitwise_not = make_unary("bitwise_not", ops.not_p, "~x, bit by bit.", check=check_not_inexact)

# --- comparison -----------------------------------------------------------------------------

equal = make_binary("equal", ops.eq_p, "x == y, elementwise.")
not_equal = make_binary("not_equal", ops.ne_p, "x != y, elementwise.")


def take_real(x: Any) -> Any:
    """The real part of a complex number."""
    return ops.real(x) if hasattr(x, "aval") else x.real


def take_imaginary(x: Any) -> Any:
    """The imaginary part of a complex number."""
    return ops.imag(x) if hasattr(x, "aval") else x.imag


def make_order(name: str, sign: str, strict: Primitive, last: Primitive) -> Callable:
    """A comparison by order; `strict` is it without equality."""

    def compare_complex(x: Any, y: Any) -> list:
        """By real part, and where those tie by imaginary part."""
        x, y = ops.match_numbers(x, y)
        a, b = take_real(x), take_real(y)
        (tie,) = last.apply(take_imaginary(x), take_imaginary(y))
        (less_,) = strict.apply(a, b)
        return [ops.bitwise_or(less_, ops.bitwise_and(ops.eq(a, b), tie))]

    doc = f"x {sign} y; of complex numbers, by real part first."
    return make_binary(name, last, doc, complexes=compare_complex)


less = make_order("less", "<", ops.lt_p, ops.lt_p)
less_equal = make_order("less_equal", "<=", ops.lt_p, ops.le_p)
greater = make_order("greater", ">", ops.gt_p, ops.gt_p)
greater_equal = make_order("greater_equal", ">=", ops.gt_p, ops.ge_p)
maximum = make_binary("maximum", ops.max_p, "The larger of x and y; NaN where either is.")
minimum = make_binary("minimum", ops.min_p, "The smaller of x and y; NaN where either is.")

# --- exponentials, roots and angles -----------------------------------------------------------

sqrt = make_unary("sqrt", lax.sqrt_p, "The square root; NaN for a negative real x.", True)
cbrt = make_unary("cbrt", lax.cbrt_p, "The real cube root, of negative x too.", True)
exp = make_unary("exp", lax.exp_p, "e ** x.", True)
exp2 = make_unary("exp2", lax.exp2_p, "2 ** x.", True)
expm1 = make_unary("expm1", lax.expm1_p, "exp(x) - 1, exact to rounding near 0.", True)
log = make_unary("log", lax.log_p, "The natural logarithm; NaN for a negative real x.", True)
log2 = make_unary("log2", lax.log2_p, "The logarithm to base 2.", True, strong=True)
log1p = make_unary("log1p", lax.log1p_p, "log(1 + x), exact to rounding near 0.", True)
sin = make_unary("sin", lax.sin_p, "The sine of x in radians.", True)
cos = make_unary("cos", lax.cos_p, "The cosine of x in radians.", True)
tan = make_unary("tan", lax.tan_p, "The tangent of x in radians.", True)
arcsin = make_unary("arcsin", lax.asin_p, "The angle in [-pi/2, pi/2] whose sine is x.", True)
arccos = make_unary("arccos", lax.acos_p, "The angle in [0, pi] whose cosine is x.", True)
arctan = make_unary("arctan", lax.atan_p, "The angle in [-pi/2, pi/2] whose tangent is x.", True)
arctan2 = make_binary("arctan2", lax.atan2_p, "The angle of the point (y, x): arctan2(y, x).", True)
sinh = make_unary("sinh", lax.sinh_p, "The hyperbolic sine.", True)
cosh = make_unary("cosh", lax.cosh_p, "The hyperbolic cosine.", True)
tanh = make_unary("tanh", lax.tanh_p, "The hyperbolic tangent.", True)
arcsinh = make_unary("arcsinh", lax.asinh_p, "The inverse hyperbolic sine.", True)
arccosh = make_unary("arccosh", lax.acosh_p, "The inverse hyperbolic cosine; NaN below 1.", True)
arctanh = make_unary("arctanh", lax.atanh_p, "The inverse hyperbolic tangent.", True)

# --- other names ----------------------------------------------------------------------------

true_divide = alias(divide, "true_divide")
acos = alias(arccos, "acos")
acosh = alias(arccosh, "acosh")
asin = alias(arcsin, "asin")
asinh = alias(arcsinh, "asinh")
atan = alias(arctan, "atan")
atan2 = alias(arctan2, "atan2")
atanh = alias(arctanh, "atanh")
bitwise_invert = alias(bitwise_not, "bitwise_invert")
invert = alias(bitwise_not, "invert")


attach_ufunc_methods(globals())
