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
from weft.primitives.element_docs import block, find_kind
from weft.run.operation import number_operation
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

    about = describe(name, prim, doc, 2, inexact, check)
    return number_operation(name_function(fun, name, about), prim.name)


def apply_together(name: str, applied: Callable, actions: Any, kinds: Sequence) -> tuple:
    """(what to apply, what to do to x before, and to y), of operands of these kinds.

    Arrays are brought to one type and operated on as one call under a transformation: there each
    operation more costs as much again.
    """
    if not all([getattr(k, "sharded", k) is None for k in kinds]):
        return applied, *actions
    act_x, act_y = actions
    program: list[Any] = []

    def apply(x: Any, y: Any) -> list:
        if current.trace.as_operation and isinstance(x, Tracer) | isinstance(y, Tracer):
            if not program:
                staged, _ = stage_closed(apply, kinds, name)
                program.extend(current.trace.as_operation(staged, name))
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

    about = describe(name, prim, doc, 1, inexact, check)
    return number_operation(name_function(fun, name, about), prim.name)


def describe(
    name: str, prim: Primitive, doc: str, count: int, inexact: bool, check: Callable | None
) -> str:
    """Compose the documentation of a function.

    The text of a row is a first line, remarks if there are any, and an example: the operands after
    `>>>`, and the result. The sections on arguments, results and errors follow from the row.
    """
    text, _, example = doc.partition(">>> ")
    given, _, result = example.partition("\n")
    takes = DTYPES.get(check or prim.takes)
    if count == 2 and check is check_not_bool:  # it refuses two bools; the row says so
        takes = None
    args = [f"x: an array of {takes or 'numbers of any dtype'}, or a number."]
    errors = ["NotImplementedError: `out` or `where` is not None."]
    shape = "the shape of the operand"
    if count == 2:
        args.append(args[0].replace("x", "y", 1) + " It broadcasts with `x`.")
        errors.append("ShapeError: the shapes do not broadcast together.")
        shape = "the broadcast shape"
    if inexact:
        args.append("  Integers and bools become floats first.")
        kind = "floats" if prim.takes == "float" else "floats or complex numbers"
        returns = f"An array of {kind} of {shape}."
    elif count == 2 and find_kind(prim, 2) == "bool":
        returns = f"An array of bools of {shape}."
    elif count == 2:
        returns = f"An array of {shape} and of the common dtype of the operands."
    else:
        returns = "An array of the shape and dtype of the operand."
    args += ["out: must be None.", "where: must be None."]
    of = f" of {takes}," if takes else ""
    errors.append(f"DtypeError: an operand is not an array{of} or a number.")
    parts = [text.strip(), block("Args:", args), block("Returns:", [returns])]
    parts += [block("Raises:", errors), f">>> jnp.{name}({given})\n{result}"]
    return "\n\n    ".join(parts)


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
    """Refuse floats and complex numbers, whose bits are not number."""
    if dtypes.is_inexact(dtype):
        raise DtypeError(
            f"{name}: operands must be bool or integers; got {dtypes.short_name(dtype)}. "
            "Hint: x.astype(int), or x.view(jnp.int32) for the bits of a float32."
        )


# The dtypes that functions take, by their checks, or by those that their primitives take.
DTYPES: dict[Any, str] = {
    check_not_bool: "integers, floats or complex numbers",
    check_not_inexact: "integers or bools",
    "float": "integers, floats or bools",
}

# --- arithmetic -----------------------------------------------------------------------------

add = make_binary(
    "add",
    ops.add_p,
    """Add two arrays, element by element.

    It is the function of the operator `x + y`. The sum of two bools is `x or y`.

    >>> jnp.array([1.0, 2.0]), 0.5
    Array([1.5, 2.5], dtype=float32)
    """,
    bools=ops.or_p,
)
subtract = make_binary(
    "subtract",
    ops.sub_p,
    """Subtract two arrays, element by element.

    It is the function of the operator `x - y`. It raises a DtypeError if both operands are
    bools; `logical_xor` is for these.

    >>> jnp.array([1.0, 2.0]), 0.5
    Array([0.5, 1.5], dtype=float32)
    """,
    check=check_not_bool,
)
multiply = make_binary(
    "multiply",
    ops.mul_p,
    """Multiply two arrays, element by element.

    It is the function of the operator `x * y`. The product of two bools is `x and y`.

    >>> jnp.array([1.0, 2.0]), 0.5
    Array([0.5, 1. ], dtype=float32)
    """,
    bools=ops.and_p,
)
divide = make_binary(
    "divide",
    ops.div_p,
    """Divide two arrays, element by element.

    It is the function of the operator `x / y`. The quotient of two integers is a float. A division
    by 0 gives infinity or NaN.

    >>> jnp.array([1, 0]), jnp.array([4, 0])
    Array([0.25,  nan], dtype=float32)
    """,
    inexact=True,
)
negative = make_unary(
    "negative",
    ops.neg_p,
    """Negate each number.

    It is the function of the operator `-x`.

    >>> jnp.array([1, -2])
    Array([-1,  2], dtype=int32)
    """,
    check=check_not_bool,
)
sign = make_unary(
    "sign",
    ops.sign_p,
    """Compute the sign of each number: -1, 0 or 1.

    The sign of a complex number is `x / abs(x)`. The sign of NaN is NaN. The derivative of a real
    operand is 0.

    >>> jnp.array([-2.5, 0.0, 3.0])
    Array([-1.,  0.,  1.], dtype=float32)
    """,
    check=check_not_bool,
)
square = make_unary(
    "square",
    ops.square_p,
    """Compute `x * x`, element by element.

    The square of a bool is an int32.

    >>> jnp.array([1, -2, 3])
    Array([1, 4, 9], dtype=int32)
    """,
    counts=True,
)

# --- bit by bit -----------------------------------------------------------------------------

bitwise_and = make_binary(
    "bitwise_and",
    ops.and_p,
    """Compute `x & y`, bit by bit.

    The result for bools is `x and y`.

    >>> jnp.array([12, 10]), 6
    Array([4, 2], dtype=int32)
    """,
    check=check_not_inexact,
)
bitwise_or = make_binary(
    "bitwise_or",
    ops.or_p,
    """Compute `x | y`, bit by bit.

    The result for bools is `x or y`.

    >>> jnp.array([12, 10]), 6
    Array([14, 14], dtype=int32)
    """,
    check=check_not_inexact,
)
bitwise_xor = make_binary(
    "bitwise_xor",
    ops.xor_p,
    """Compute `x ^ y`, bit by bit.

    The result for bools is True where the operands differ.

    >>> jnp.array([12, 10]), 6
    Array([10, 12], dtype=int32)
    """,
    check=check_not_inexact,
)
bitwise_not = make_unary(
    "bitwise_not",
    ops.not_p,
    """Compute `~x`: invert every bit.

    The result for bools is `not x`.

    >>> jnp.array([0, 5])
    Array([-1, -6], dtype=int32)
    """,
    check=check_not_inexact,
)

# --- comparison -----------------------------------------------------------------------------

equal = make_binary(
    "equal",
    ops.eq_p,
    """Compare two arrays for equality, element by element.

    It is the function of the operator `x == y`. NaN does not equal NaN.

    >>> jnp.array([1.0, 2.0, np.nan]), jnp.array([1.0, 3.0, np.nan])
    Array([ True, False, False], dtype=bool)
    """,
)
not_equal = make_binary(
    "not_equal",
    ops.ne_p,
    """Compare two arrays for inequality, element by element.

    It is the function of the operator `x != y`. NaN does not equal NaN.

    >>> jnp.array([1.0, 2.0, np.nan]), jnp.array([1.0, 3.0, np.nan])
    Array([False,  True,  True], dtype=bool)
    """,
)


def take_real(x: Any) -> Any:
    """The real part of a complex number."""
    return ops.real(x) if hasattr(x, "aval") else x.real


def take_imaginary(x: Any) -> Any:
    """The imaginary part of a complex number."""
    return ops.imag(x) if hasattr(x, "aval") else x.imag


def make_order(name: str, strict: Primitive, last: Primitive, doc: str) -> Callable:
    """A comparison by order; `strict` is it without equality."""

    def compare_complex(x: Any, y: Any) -> list:
        """By real part, and where those tie by imaginary part."""
        x, y = ops.match_numbers(x, y)
        a, b = take_real(x), take_real(y)
        (tie,) = last.apply(take_imaginary(x), take_imaginary(y))
        (less_,) = strict.apply(a, b)
        return [ops.bitwise_or(less_, ops.bitwise_and(ops.eq(a, b), tie))]

    return make_binary(name, last, doc, complexes=compare_complex)


less = make_order(
    "less",
    ops.lt_p,
    ops.lt_p,
    """Test where `x` is less than `y`.

    It is the function of the operator `x < y`. Complex numbers are compared by real parts, and by
    imaginary parts if these are equal. A comparison with NaN is False.

    >>> jnp.array([1, 2, 3]), 2
    Array([ True, False, False], dtype=bool)
    """,
)
less_equal = make_order(
    "less_equal",
    ops.lt_p,
    ops.le_p,
    """Test where `x` is less than or equal to `y`.

    It is the function of the operator `x <= y`. Complex numbers are compared by real parts, and by
    imaginary parts if these are equal. A comparison with NaN is False.

    >>> jnp.array([1, 2, 3]), 2
    Array([ True,  True, False], dtype=bool)
    """,
)
greater = make_order(
    "greater",
    ops.gt_p,
    ops.gt_p,
    """Test where `x` is greater than `y`.

    It is the function of the operator `x > y`. Complex numbers are compared by real parts, and by
    imaginary parts if these are equal. A comparison with NaN is False.

    >>> jnp.array([1, 2, 3]), 2
    Array([False, False,  True], dtype=bool)
    """,
)
greater_equal = make_order(
    "greater_equal",
    ops.gt_p,
    ops.ge_p,
    """Test where `x` is greater than or equal to `y`.

    It is the function of the operator `x >= y`. Complex numbers are compared by real parts, and by
    imaginary parts if these are equal. A comparison with NaN is False.

    >>> jnp.array([1, 2, 3]), 2
    Array([False,  True,  True], dtype=bool)
    """,
)
maximum = make_binary(
    "maximum",
    ops.max_p,
    """Take the larger of two numbers, element by element.

    The result is NaN where an operand is NaN; `fmax` ignores NaN. Complex numbers are compared by
    real parts, and by imaginary parts if these are equal. Where the operands are equal, each has
    half of the derivative.

    >>> jnp.array([1.0, 3.0, np.nan]), 2.0
    Array([ 2.,  3., nan], dtype=float32)
    """,
)
minimum = make_binary(
    "minimum",
    ops.min_p,
    """Take the smaller of two numbers, element by element.

    The result is NaN where an operand is NaN; `fmin` ignores NaN. Complex numbers are compared by
    real parts, and by imaginary parts if these are equal. Where the operands are equal, each has
    half of the derivative.

    >>> jnp.array([1.0, 3.0, np.nan]), 2.0
    Array([ 1.,  2., nan], dtype=float32)
    """,
)

# --- exponentials, roots and angles -----------------------------------------------------------

sqrt = make_unary(
    "sqrt",
    lax.sqrt_p,
    """Compute the square root, element by element.

    The root of a negative real number is NaN. The derivative at 0 is infinite.

    >>> jnp.array([4, 9, -1])
    Array([ 2.,  3., nan], dtype=float32)
    """,
    inexact=True,
)
cbrt = make_unary(
    "cbrt",
    lax.cbrt_p,
    """Compute the real cube root, element by element.

    It is defined for negative numbers as well. The derivative at 0 is infinite.

    >>> jnp.array([8.0, -27.0])
    Array([ 2., -3.], dtype=float32)
    """,
    inexact=True,
)
exp = make_unary(
    "exp",
    lax.exp_p,
    """Compute the exponential function `e ** x`, element by element.

    The result overflows to infinity where it does not fit the dtype.

    >>> jnp.array([0.0, 1.0, -np.inf])
    Array([1.       , 2.7182817, 0.       ], dtype=float32)
    """,
    inexact=True,
)
exp2 = make_unary(
    "exp2",
    lax.exp2_p,
    """Compute `2 ** x`, element by element.

    The result overflows to infinity where it does not fit the dtype.

    >>> jnp.array([0.0, 3.0, -1.0])
    Array([1. , 8. , 0.5], dtype=float32)
    """,
    inexact=True,
)
expm1 = make_unary(
    "expm1",
    lax.expm1_p,
    """Compute `exp(x) - 1`, element by element.

    It keeps its precision near 0, where the subtraction would lose digits.

    >>> jnp.array([0.0, 1e-6])
    Array([0.0000000e+00, 1.0000005e-06], dtype=float32)
    """,
    inexact=True,
)
log = make_unary(
    "log",
    lax.log_p,
    """Compute the natural logarithm, element by element.

    The logarithm of 0 is negative infinity; the logarithm of a negative real number is NaN.

    >>> jnp.array([1.0, 0.0, -1.0])
    Array([  0., -inf,  nan], dtype=float32)
    """,
    inexact=True,
)
log2 = make_unary(
    "log2",
    lax.log2_p,
    """Compute the logarithm to base 2, element by element.

    The logarithm of 0 is negative infinity; the logarithm of a negative real number is NaN.

    >>> jnp.array([1.0, 8.0, 0.0])
    Array([  0.,   3., -inf], dtype=float32)
    """,
    inexact=True,
    strong=True,
)
log1p = make_unary(
    "log1p",
    lax.log1p_p,
    """Compute `log(1 + x)`, element by element.

    It keeps its precision near 0, where the addition would lose digits. The result is NaN for real
    numbers below -1.

    >>> jnp.array([0.0, 1e-6])
    Array([0.000000e+00, 9.999995e-07], dtype=float32)
    """,
    inexact=True,
)
sin = make_unary(
    "sin",
    lax.sin_p,
    """Compute the sine of angles in radians.

    `deg2rad` converts angles from degrees. The sine of infinity is NaN.

    >>> jnp.array([0.0, np.pi / 2])
    Array([0., 1.], dtype=float32)
    """,
    inexact=True,
)
cos = make_unary(
    "cos",
    lax.cos_p,
    """Compute the cosine of angles in radians.

    `deg2rad` converts angles from degrees. The cosine of infinity is NaN.

    >>> jnp.array([0.0, np.pi])
    Array([ 1., -1.], dtype=float32)
    """,
    inexact=True,
)
tan = make_unary(
    "tan",
    lax.tan_p,
    """Compute the tangent of angles in radians.

    `deg2rad` converts angles from degrees. The tangent of infinity is NaN.

    >>> jnp.array([0.0, 1.0])
    Array([0.       , 1.5574077], dtype=float32)
    """,
    inexact=True,
)
arcsin = make_unary(
    "arcsin",
    lax.asin_p,
    """Compute the angle whose sine is the operand.

    Real results are in [-pi/2, pi/2]; they are NaN outside [-1, 1].

    >>> jnp.array([0.0, 1.0, 2.0])
    Array([0.       , 1.5707964,       nan], dtype=float32)
    """,
    inexact=True,
)
arccos = make_unary(
    "arccos",
    lax.acos_p,
    """Compute the angle whose cosine is the operand.

    Real results are in [0, pi]; they are NaN outside [-1, 1].

    >>> jnp.array([1.0, 0.0, 2.0])
    Array([0.       , 1.5707964,       nan], dtype=float32)
    """,
    inexact=True,
)
arctan = make_unary(
    "arctan",
    lax.atan_p,
    """Compute the angle whose tangent is the operand.

    Real results are in [-pi/2, pi/2].

    >>> jnp.array([0.0, np.inf])
    Array([0.       , 1.5707964], dtype=float32)
    """,
    inexact=True,
)
arctan2 = make_binary(
    "arctan2",
    lax.atan2_p,
    """Compute the angle of the point (y, x): the first operand is the vertical coordinate.

    The result is in [-pi, pi], with the sign of the first operand. The derivative at the
    origin is NaN.

    >>> jnp.array([0.0, 1.0, -1.0]), jnp.array([1.0, 0.0, -1.0])
    Array([ 0.       ,  1.5707964, -2.3561945], dtype=float32)
    """,
    inexact=True,
)
sinh = make_unary(
    "sinh",
    lax.sinh_p,
    """Compute the hyperbolic sine, element by element.

    It is `(exp(x) - exp(-x)) / 2`.

    >>> jnp.array([0.0, 1.0])
    Array([0.       , 1.1752012], dtype=float32)
    """,
    inexact=True,
)
cosh = make_unary(
    "cosh",
    lax.cosh_p,
    """Compute the hyperbolic cosine, element by element.

    It is `(exp(x) + exp(-x)) / 2`.

    >>> jnp.array([0.0, 1.0])
    Array([1.       , 1.5430806], dtype=float32)
    """,
    inexact=True,
)
tanh = make_unary(
    "tanh",
    lax.tanh_p,
    """Compute the hyperbolic tangent, element by element.

    It is `sinh(x) / cosh(x)`; real results are in [-1, 1].

    >>> jnp.array([0.0, 1.0])
    Array([0.       , 0.7615942], dtype=float32)
    """,
    inexact=True,
)
arcsinh = make_unary(
    "arcsinh",
    lax.asinh_p,
    """Compute the inverse hyperbolic sine, element by element.

    It is defined for every real number.

    >>> jnp.array([0.0, 1.0])
    Array([0.        , 0.88137364], dtype=float32)
    """,
    inexact=True,
)
arccosh = make_unary(
    "arccosh",
    lax.acosh_p,
    """Compute the inverse hyperbolic cosine, element by element.

    The result is NaN for real numbers below 1. The derivative at 1 is infinite.

    >>> jnp.array([1.0, 2.0, 0.0])
    Array([0.      , 1.316958,      nan], dtype=float32)
    """,
    inexact=True,
)
arctanh = make_unary(
    "arctanh",
    lax.atanh_p,
    """Compute the inverse hyperbolic tangent, element by element.

    The result is infinite at -1 and 1, and NaN for real numbers outside [-1, 1].

    >>> jnp.array([0.0, 1.0, 2.0])
    Array([ 0., inf, nan], dtype=float32)
    """,
    inexact=True,
)

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
