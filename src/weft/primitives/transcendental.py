"""Exponentials, logarithms, powers, roots, trigonometric and hyperbolic functions: rows of a table.

The family and arithmetic are in elementwise.py, special functions in special/. Members that
StableHLO gives in several accuracies take `accuracy=`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost
from weft.core.form import Form
from weft.dtypes import NUMBERS
from weft.errors import DtypeError, ShapeError
from weft.primitives import circular, complex_formulas, wide
from weft.primitives.elementwise import (
    Costly,
    Elementwise,
    abs,
    add,
    binary_op,
    bind_spread,
    bitwise_and,
    div,
    eq,
    ge,
    gt,
    mul,
    name_function,
    neg,
    one_minus_square,
    select,
    square,
    stop_gradient_p,
    sub,
    unary_op,
)
from weft.primitives.expr import F32, Expr, lower_integer_pow
from weft.primitives.families import check_integer
from weft.primitives.kernels import Called, ElementFormula, Kernel
from weft.primitives.layout import convert, literal, zeros
from weft.util import Record
from weft.xla.typing import Array, ArrayLike

_LN2 = math.log(2)
ANYWHERE, ALONE, ALONE_LARGE = Called.ANYWHERE, Called.ALONE, Called.ALONE_LARGE
NO_FORMULAS: Mapping[np.dtype, ElementFormula] = MappingProxyType({})
HALVES = np.float16, ml_dtypes.bfloat16


class AccuracyMode(enum.Enum):
    """The accuracy of an elementwise function.

    Functions such as `lax.exp` take a member as `accuracy`; a `Tolerance` states an error bound
    instead.

    Attributes:
      DEFAULT: the platform chooses. It is usually the fastest.
      HIGHEST: as accurately as the platform can.

    >>> print(lax.exp(jnp.array([0.0, 1.0]), accuracy=lax.AccuracyMode.HIGHEST))
    [1.        2.7182817]
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance(Record):
    """A bound on the error of an elementwise function, for the parameter `accuracy`.

    XLA may compute the function faster if the result stays within the bound.

    Args:
      atol: the absolute error that is allowed, a float. The default is 0.
      rtol: the relative error that is allowed, a float. The default is 0.
      ulps: the error that is allowed in units in the last place, an int. The default is 0.

    >>> print(lax.exp(jnp.array([0.0, 1.0]), accuracy=lax.Tolerance(rtol=1e-3)))
    [1.        2.7182817]
    """

    __slots__ = ("atol", "rtol", "ulps")

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> None:
        if min(atol, rtol, ulps) < 0 or not (atol or rtol or ulps):
            raise ValueError(
                "Tolerance: one bound must be positive and none negative; "
                f"got atol {atol}, rtol {rtol}, ulps {ulps}."
            )
        self.atol, self.rtol, self.ulps = atol, rtol, ulps


def accuracy_attribute(accuracy: Tolerance | AccuracyMode) -> str:
    """An accuracy in StableHLO's notation."""
    if isinstance(accuracy, Tolerance):
        mode = "TOLERANCE"
        bounds = f"atol = {accuracy.atol:e}, rtol = {accuracy.rtol:e}, ulps = {accuracy.ulps}, "
    else:
        mode, bounds = AccuracyMode(accuracy).name, ""
    mode = f"#stablehlo.result_accuracy_mode<{mode}>"
    return f"#stablehlo.result_accuracy<{bounds}mode = {mode}>"


# Operations that XLA computes in float32 if the operand is shorter. Conversions around them would
# let it omit the rounding of the operand, too.
ROUNDED_ONCE = frozenset(
    f"stablehlo.{name}" for name in ("cosine", "exponential", "log", "sine", "sqrt", "tanh")
)


def is_rounded_once(operation: str | Callable, dtype: np.dtype) -> bool:
    """Return True if XLA computes an operation on short floats in float32."""
    if operation == "stablehlo.rsqrt":  # of float16 it rounds the root, too
        return dtype == dtypes.bfloat16
    return operation in ROUNDED_ONCE


class Transcendental(Costly):
    """Members of `Elementwise` with an optional accuracy, which is a parameter only if given.

    `signs` has an entry for each part of a complex result: 1 if it has the sign of the same part
    of the operand, -1 if it is the opposite, 0 otherwise. `of_parts` writes the function of a
    complex number with real functions of its parts, where that is more exact.

    Floats of 16 bits and fewer are computed in float32 and rounded once. XLA does so for some
    operations. It and `op` write the others as several, and each of them would round, and might
    overflow.
    """

    signs: tuple[int, int] = (0, 0)
    of_parts: Callable[[Expr], Expr] | None = None

    def lower(self, hlo, *values, accuracy=None):
        dtype = values[0].aval.dtype
        is_short = dtypes.is_float(dtype) and dtype.itemsize < F32.itemsize
        if is_short and not is_rounded_once(self.op, dtype):
            values = tuple(hlo.convert(v, F32) for v in values)
            return [hlo.convert(y, dtype) for y in self.lower(hlo, *values, accuracy=accuracy)]
        if accuracy is None and self.of_parts and dtypes.is_complex(values[0].aval.dtype):
            return [self.of_parts(Expr(hlo, values[0])).value]
        if accuracy is None:
            outs = Elementwise.lower(self, hlo, *values)
        else:
            (x,) = values
            attribute = accuracy_attribute(accuracy)
            if callable(self.op):
                outs = [self.op(hlo, x.aval.strong(), x, result_accuracy=attribute)]
            else:
                outs = hlo.op(self.op, [x], [x.aval], result_accuracy=attribute)
        if self.signs == (0, 0) or not dtypes.is_complex(outs[0].aval.dtype):
            return outs
        return [copy_signs(Expr(hlo, outs[0]), Expr(hlo, values[0]), self.signs).value]

    def jvp(self, primals, tangents, accuracy=None):
        outs, dots = Elementwise.jvp(self, primals, tangents)
        return (outs if accuracy is None else self.apply(*primals, accuracy=accuracy)), dots


def copy_signs(y: Expr, x: Expr, signs: tuple[int, int]) -> Expr:
    """Give the parts of y the signs of the parts of x, or the opposite ones.

    On a branch cut the sign of a zero says on which side x is. XLA's formulas lose it.
    """
    parts = []
    for name, sign in zip(("real", "imag"), signs, strict=True):
        part, like = y.part(name), x.part(name)
        if sign:
            bits = like.bitcast(np.int64 if like.dtype == np.float64 else np.int32)
            negative = bits < 0 if sign > 0 else bits >= 0
            size = part.apply("abs")
            part = negative.select(-size, size)
        parts.append(part)
    return parts[0].make("complex", y.aval, parts[1])


def define_tuned(
    name: str,
    op: str | Callable,
    deriv: Callable,
    doc: str,
    kernel: Kernel,
    formulas: Mapping[np.dtype, ElementFormula] = NO_FORMULAS,
    takes: str = "inexact",
) -> Transcendental:
    """Return a member of one operand."""
    prim = Transcendental(name, op, [deriv], takes=takes, doc=doc)
    prim.kernel, prim.formulas = kernel, formulas
    return prim


def check_accuracy(op: str, accuracy: Any) -> Any:
    """A Tolerance or an AccuracyMode, or the number of one."""
    try:
        return accuracy if isinstance(accuracy, Tolerance) else AccuracyMode(accuracy)
    except (TypeError, ValueError):
        raise ValueError(
            f"{op}: accuracy must be a lax.Tolerance or a lax.AccuracyMode; got {accuracy!r}."
        ) from None


def tuned_op(prim: Transcendental) -> Callable:
    """The function of a member with accuracies."""

    def fun(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
        if accuracy is None:
            return plain(x)
        return prim.apply(x, accuracy=check_accuracy(prim.name, accuracy))[0]

    plain = fun.plain = unary_op(prim)  # type: ignore[attr-defined]
    return name_function(fun, prim)


# --- exponentials and logarithms ------------------------------------------------------------

exp_p = define_tuned(
    "exp",
    "exponential",
    lambda t, y, x: mul(t, y),
    """Return the exponential e ** x.

    >>> jnp.array([0.0, 1.0])
    [1.    2.718]
    """,
    Kernel(22, ALONE_LARGE, ALONE_LARGE),
)
exp2_p = define_tuned(
    "exp2",
    lambda hlo, aval, x, **attrs: lower_exp2(hlo, aval, x, **attrs),
    lambda t, y, x: mul(t, mul(_LN2, y)),
    """Return the power 2 ** x.

    It is exact if x is a whole number.

    >>> jnp.array([0.0, 3.0])
    [1. 8.]
    """,
    Kernel(23, ALONE),
)


def lower_exp2(hlo: Any, aval: ShapedArray, x: Any, **attrs: str) -> Any:
    """Write 2**x as 2**r * 2**n, x = n + r: rounding x log 2 would cost |x| / 2 ulp.

    2**n is assembled from bits, as two factors, since n may exceed the largest exponent by one.
    2**r is exp(r log 2); in float32 it is a polynomial with an error of 5e-9, which is three times
    as fast.
    """
    x = Expr(hlo, x)
    if aval.dtype not in _EXPONENT:
        return (x * _LN2).make("exponential", aval, **attrs).value
    bits, mantissa, bias = _EXPONENT[aval.dtype]
    low, high = x.like(-float(bias + mantissa + 1)), x.like(bias + 1.0)
    held = low.make("clamp", aval, x, high)
    whole = held.apply("round_nearest_even")
    if attrs or bits.itemsize > 4:
        out = ((held - whole) * _LN2).make("exponential", aval, **attrs)
    else:
        out = (held - whole).polynomial(_EXP2)
    whole = whole.convert(bits)
    half = whole.apply("shift_right_arithmetic", 1)
    for part in (half, whole - half):
        out = out * (part + bias).apply("shift_left", mantissa).bitcast(aval.dtype)
    return out.value


# 2**r for |r| <= 1/2: 1, and (2**r - 1) / r as at six of Chebyshev's points
_EXP2 = (
    1.0, 0.6931471880262288, 0.24022650760568126, 0.05550357114219078, 0.009618082557277852,
    0.0013390863364671234, 0.0001545316294512069,
)  # fmt: skip
# dtype -> the integer dtype of its width, bits of its mantissa, the bias of its exponent
_EXPONENT = {
    np.dtype(np.float32): (np.dtype(np.int32), 23, 127),
    np.dtype(np.float64): (np.dtype(np.int64), 52, 1023),
}
expm1_p = define_tuned(
    "expm1",
    "exponential_minus_one",
    lambda t, y, x: mul(t, exp(x)),  # not y + 1, which for x < -17 is 0 in float32
    """Return exp(x) - 1, which is accurate near 0 too.

    >>> jnp.array([0.0, 1.0])
    [0.    1.718]
    """,
    Kernel(24, ALONE),
)
log_p = define_tuned(
    "log",
    "log",
    lambda t, y, x: div(t, x),
    """Return the natural logarithm.

    It is -inf at 0, and NaN for negative floats.

    >>> jnp.array([1.0, 10.0])
    [0.    2.303]
    """,
    Kernel(25, ALONE_LARGE, ALONE_LARGE),
    wide.LOGARITHM,
)


def lower_log2(hlo: Any, aval: ShapedArray, x: Any, **attrs: str) -> Any:
    """log x / log 2; of a complex one part by part: 0 times infinity is not a number."""
    if not dtypes.is_complex(aval.dtype):
        y = Expr(hlo, x).make("log", aval, **attrs)
        return (y / y.like(2).apply("log")).value
    z = Expr(hlo, x)
    y = z.make("log", aval, **attrs) if attrs else complex_formulas.write_complex_log(z)
    re, im = (y.part(name) for name in ("real", "imag"))
    return (re / _LN2).make("complex", aval, im / _LN2).value


log2_p = define_tuned(
    "log2",
    lower_log2,
    lambda t, y, x: div(t, mul(_LN2, x)),
    """Return the logarithm to base 2.

    >>> jnp.array([1.0, 8.0])
    [0. 3.]
    """,
    Kernel(26, ALONE),
)


log1p_p = define_tuned(
    "log1p",
    "log_plus_one",
    lambda t, y, x: div(t, add(x, 1)),
    """Return log(1 + x), which is accurate near 0 too.

    >>> jnp.array([0.0, 1.0])
    [0.    0.693]
    """,
    Kernel(27, ALONE),
    wide.LOGARITHM_NEAR_ONE,
)
# Elements of arrays whose derivatives of the logistic function and the hyperbolic tangent are exact
# where the result is 1. They need the operand. For larger arrays they are computed of the result,
# which gradients of networks keep anyway: of six layers of tanh, (1024, 256), gradients would take
# 1.7 times the temporary memory, and of an LSTM 1.3 times. A loop stacks the operands of all its
# steps: as many elements as fit into the caches nearest to a core.
MAX_EXACT_SLOPE = 1024
MAX_EXACT_STACK = 16 * 1024


def has_exact_slope(x: Any) -> bool:
    """Return True if a derivative may keep the operand of a function besides the result."""
    size = typeof(x).size
    return type(size) is int and size <= MAX_EXACT_SLOPE


def may_stack_operand(aval: ShapedArray, steps: Any) -> bool:
    """Return True if a loop may stack an operand of such a function besides the result."""
    size = aval.size * steps
    return type(size) is int and size <= MAX_EXACT_STACK


class Slope(Costly):
    """The derivative of a function, which is exact where the function is flat.

    `function` is the primitive of the function. `of_result` computes the derivative from the
    result of the function, with cancellation where it is flat.
    """

    function: Elementwise
    of_result: Callable[[Any], Any]


logistic_p = define_tuned(
    "logistic",
    "logistic",
    lambda t, y, x: mul(t, logistic_slope(x) if has_exact_slope(x) else mul(y, sub(1, y))),
    """Return the logistic function 1 / (1 + exp(-x)), also called sigmoid.

    >>> jnp.array([0.0, 1.0])
    [0.5   0.731]
    """,
    Kernel(28, ALONE_LARGE, ALONE_LARGE),
)


def write_slope(hlo: Any, aval: ShapedArray, x: Any, name: str, scale: float) -> Any:
    """Write scale**2 e / (1 + e)**2 with e = exp(-scale |x|), where no difference cancels.

    It is the derivative of tanh for a scale of 2, and of the logistic function for 1. The
    derivative of complex x is computed from the result of the function.
    """
    x = Expr(hlo, x)
    if dtypes.is_complex(aval.dtype):
        y = x.apply(name)
        return ((1 - y * y) if scale == 2 else y * (1 - y)).value
    power = (x.apply("abs") * -scale).apply("exponential")
    share = x.like(scale) / (power + 1)
    return (power * share * share).value


tanh_slope_p = Slope(
    "tanh_slope",
    lambda hlo, aval, x: write_slope(hlo, aval, x, "tanh", 2),
    [lambda t, y, x: mul(t, mul(-2, mul(y, tanh(x))))],
    takes="inexact",
    doc="The derivative of tanh(x), 1 / cosh(x)**2; 1 - tanh(x)**2 is 0 in float32 for |x| > 9.",
)
logistic_slope_p = Slope(
    "logistic_slope",
    lambda hlo, aval, x: write_slope(hlo, aval, x, "logistic", 1),
    [lambda t, y, x: mul(t, mul(neg(y), tanh(mul(0.5, x))))],
    takes="inexact",
    doc="The derivative of logistic(x), exact also where logistic(x) is rounded to 1.",
)
logistic_slope_p.function, logistic_slope_p.of_result = logistic_p, lambda y: mul(y, sub(1, y))

# --- powers and roots -----------------------------------------------------------------------


class IntegerPow(Elementwise):
    """x ** y for an integer y known now. x ** 0 is 1, also where x is 0 or NaN."""

    form = Form.POWER

    def checked(self, trace, args, params):
        if params["y"] < 0:
            trace.check_divisor(args[0])
        return trace.apply(self, args, params)

    def abstract_eval(self, x, *, y):
        if y < 0 and dtypes.is_integer(x.dtype):
            raise DtypeError(
                f"integer_pow: a negative power needs a float or complex base; got {x}, power {y}."
            )
        return super().abstract_eval(x)


integer_pow_p = IntegerPow(
    "integer_pow",
    lower_integer_pow,
    [
        lambda t, z, x, *, y: (
            mul(t, zeros(typeof(t)))
            if y == 0
            else mul(t, mul(literal(y, typeof(x).dtype), integer_pow(x, y - 1)))
        )
    ],
    doc="x ** y for an integer y known now. x ** 0 is 1, also where x is 0 or NaN.",
)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Return the power x ** y for an integer y that is known while the program is traced.

    The result is made of products; it is faster and more accurate than `pow`. x ** 0 is 1, also
    where x is 0 or NaN.

    Args:
      x: an array of numbers; of floats or complex numbers if y is negative.
      y: the power, an int.

    Returns:
      An array of the shape and dtype of x.

    Raises:
      DtypeError: y is not an int; y is negative and x is of integers.

    >>> print(lax.integer_pow(jnp.array([2.0, 3.0]), 3))
    [ 8. 27.]
    """
    if y == 1:
        return x
    if not hasattr(y, "__index__"):
        raise DtypeError(
            f"integer_pow: y must be a Python integer; got {y!r}. Hint: lax.pow(x, y)."
        )
    return integer_pow_p.apply(x, y=check_integer("integer_pow", "y", y))[0]


def reciprocal(x: ArrayLike) -> Array:
    """Return 1 / x for each element.

    Args:
      x: an array of floats or complex numbers.

    Returns:
      An array of the shape and dtype of x; infinite where x is 0.

    Raises:
      DtypeError: the operand is of integers.

    >>> print(lax.reciprocal(jnp.array([2.0, 4.0])))
    [0.5  0.25]
    """
    return integer_pow(x, -1)


class Pow(Costly):
    """x ** y. NaN for a negative real x and a y that is not an integer; x ** 0 is 1.

    Dtypes: float or complex, the two equal; or y of any integer dtype. The derivative in x at
    0 ** 0 is 0; those in y are 0 where x is 0 and y is not negative.
    """

    form = Form.POWER_OF_VALUES
    kernel = Kernel(64, ANYWHERE, Called.ON_ARGUMENTS)
    formulas = circular.POWER

    def abstract_eval(self, x, y):
        if not dtypes.is_integer(y.dtype):
            return Elementwise.abstract_eval(self, x, y)
        if not dtypes.is_inexact(x.dtype):
            raise DtypeError(
                f"pow: the base must be of inexact dtype; got {x}, {y}. "
                "Hint: lax.integer_pow(x, n) for an integer base and a power known now."
            )
        if x.shape != y.shape and x.shape and y.shape:
            raise ShapeError(f"pow: operands must have equal shapes; got {x}, {y}.")
        return [ShapedArray(x.shape or y.shape, x.dtype, x.weak_type and y.weak_type)]

    def lower(self, hlo, x, y):
        y = hlo.convert(y, x.aval.dtype)
        outs = Elementwise.lower(self, hlo, x, y)
        if not dtypes.is_complex(x.aval.dtype):
            return outs
        return [self.keep_zero(Expr(hlo, outs[0]), x, y).value]

    def keep_zero(self, out, x, y):
        """The power, which is 0 for x = 0 if y has a positive real part: XLA gives NaN."""
        x, y = (out.new(out.hlo.spread(v, out.aval)) for v in (x, y))
        finite = y.part("imag").apply("abs") < math.inf
        zero = x.compare("EQ", 0) & (y.part("real") > 0) & finite
        return zero.select(out.like(0), out)


pow_p = Pow(
    "pow",
    "power",
    [lambda t, z, x, y: mul(t, pow_slope(x, y)), lambda t, z, x, y: mul(t, pow_growth(x, z))],
    takes="inexact",
    doc=Pow.__doc__,
)


def pow_slope(x: Any, y: Any) -> Any:
    """y * x ** (y-1); 0 for y of 0 at x = 0, where the power is inf.

    At x = 0 y is held: `pow_growth` has no derivative in x there, and the two have to agree.
    """
    below, none = sub(y, 1), eq(y, 0)
    if not dtypes.is_integer(typeof(y).dtype):
        at_zero = eq(x, 0)
        none = bitwise_and(at_zero, none)
        y = select(at_zero, stop_gradient_p.apply(y)[0], y)
    return mul(convert(y, typeof(x).dtype), pow(x, select(none, 0, below)))


def pow_growth(x: Any, z: Any) -> Any:
    """log(x) * z, which is 0 for x = 0 < y, where log(0) * 0 would be NaN."""
    return mul(log(select(eq(x, 0), literal(1, typeof(x).dtype), x)), z)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the power x ** y.

    A negative real x with a y that is not an integer gives NaN; x ** 0 is 1. The derivative with
    respect to x at 0 ** 0 is 0; the derivative with respect to y is 0 where x is 0 and y is not
    negative.

    Args:
      x: the base, an array of floats or complex numbers.
      y: the power, an array of the same dtype or of integers, of the same shape or with axes of
        size 1, or a scalar.

    Returns:
      An array of the dtype of x.

    Raises:
      DtypeError: the base is of integers; use `integer_pow`.

    >>> print(lax.pow(jnp.array([4.0, 9.0]), 0.5))
    [2. 3.]
    """
    if type(y) is int:
        y = literal(y, dtypes.default_int()) if type(x) not in NUMBERS else y
    elif type(y) in NUMBERS and type(x) not in NUMBERS:
        y = literal(y, typeof(x).dtype)
    elif type(x) in NUMBERS and dtypes.is_inexact(typeof(y).dtype):
        x = literal(x, typeof(y).dtype)
    try:
        return pow_p.apply(x, y)[0]
    except ShapeError:
        return bind_spread(pow_p, x, y)


sqrt_p = define_tuned(
    "sqrt",
    "sqrt",
    lambda t, y, x: mul(t, div(0.5, y)),
    """Return the square root.

    It is NaN for negative floats. The derivative at 0 is infinite.

    >>> jnp.array([4.0, 9.0])
    [2. 3.]
    """,
    Kernel(32, ALONE_LARGE, Called.STEP),
)
rsqrt_p = define_tuned(
    "rsqrt",
    "rsqrt",
    lambda t, y, x: mul(t, mul(-0.5, div(y, x))),
    """Return the reciprocal of the square root: 1 / sqrt(x).

    >>> jnp.array([1.0, 4.0])
    [1.  0.5]
    """,
    Kernel(33, ALONE_LARGE, Called.STEP),
)
sqrt_p.cost = rsqrt_p.cost = Cost.CHEAP  # machine operations


def lower_cbrt(hlo: Any, aval: ShapedArray, x: Any, **attrs: str) -> Any:
    """The operation, and x where it is taken for 0.

    XLA:CPU takes subnormal numbers for 0, and calls a function of the C library that reads their
    bits: it would give -5.6e-16 for each of them in float32.
    """
    given = Expr(hlo, x)
    return given.compare("EQ", 0).select(given, given.make("cbrt", aval, **attrs)).value


cbrt_p = define_tuned(
    "cbrt",
    lower_cbrt,
    lambda t, y, x: mul(t, mul(1 / 3, integer_pow(y, -2))),
    """Return the real cube root.

    >>> jnp.array([8.0, -8.0])
    [ 2. -2.]
    """,
    Kernel(31, ANYWHERE),
    circular.CUBE_ROOT,
    takes="float",
)
cbrt_p.operation = "stablehlo.cbrt"

# --- trigonometric and hyperbolic -----------------------------------------------------------

sin_p = define_tuned(
    "sin",
    "sine",
    lambda t, y, x: mul(t, cos(x)),
    """Return the sine.

    The operand is in radians.

    >>> jnp.array([0.0, 1.0])
    [0.    0.841]
    """,
    Kernel(11, ANYWHERE, ANYWHERE),
    circular.SINE,
)
cos_p = define_tuned(
    "cos",
    "cosine",
    lambda t, y, x: neg(mul(t, sin(x))),
    """Return the cosine.

    The operand is in radians.

    >>> jnp.array([0.0, 1.0])
    [1.   0.54]
    """,
    Kernel(12, ANYWHERE, ANYWHERE),
    circular.COSINE,
)
tan_p = define_tuned(
    "tan",
    "tan",
    lambda t, y, x: mul(t, add(1, square(y))),
    """Return the tangent.

    The operand is in radians.

    >>> jnp.array([0.0, 1.0])
    [0.    1.557]
    """,
    Kernel(13, ANYWHERE, ANYWHERE),
    circular.TANGENT,
)
tanh_p = define_tuned(
    "tanh",
    "tanh",
    lambda t, y, x: mul(t, tanh_slope(x) if has_exact_slope(x) else one_minus_square(y)),
    """Return the hyperbolic tangent.

    >>> jnp.array([0.0, 1.0])
    [0.    0.762]
    """,
    Kernel(30, ALONE_LARGE),
)
tanh_slope_p.function, tanh_slope_p.of_result = tanh_p, one_minus_square
asin_p = define_tuned(
    "asin",
    "chlo.asin",
    lambda t, y, x: mul(t, rsqrt(one_minus_square(x))),
    """Return the inverse sine.

    The result is NaN outside of the domain of the real function.

    >>> jnp.array([0.0, 1.0])
    [0.    1.571]
    """,
    Kernel(14, ANYWHERE),
    circular.ARC_SINE,
)
acos_p = define_tuned(
    "acos",
    "chlo.acos",
    lambda t, y, x: neg(mul(t, rsqrt(one_minus_square(x)))),
    """Return the inverse cosine.

    The result is NaN outside of the domain of the real function.

    >>> jnp.array([0.0, 1.0])
    [1.571 0.   ]
    """,
    Kernel(15, ANYWHERE),
    circular.ARC_COSINE,
)
atan_p = define_tuned(
    "atan",
    "chlo.atan",
    lambda t, y, x: div(t, add(1, square(x))),
    """Return the inverse tangent.

    >>> jnp.array([0.0, 1.0])
    [0.    0.785]
    """,
    Kernel(16, ANYWHERE),
    circular.ARC_TANGENT,
)
sinh_p = define_tuned(
    "sinh",
    "chlo.sinh",
    lambda t, y, x: mul(t, cosh(x)),
    """Return the hyperbolic sine.

    >>> jnp.array([0.0, 1.0])
    [0.    1.175]
    """,
    Kernel(17, ANYWHERE, ANYWHERE),
    wide.HYPERBOLIC_SINE,
)
cosh_p = define_tuned(
    "cosh",
    "chlo.cosh",
    lambda t, y, x: mul(t, sinh(x)),
    """Return the hyperbolic cosine.

    >>> jnp.array([0.0, 1.0])
    [1.    1.543]
    """,
    Kernel(18, ALONE, ANYWHERE),
    wide.HYPERBOLIC_COSINE,
)
asinh_p = define_tuned(
    "asinh",
    "chlo.asinh",
    lambda t, y, x: mul(t, asinh_slope(x)),
    """Return the inverse hyperbolic sine.

    >>> jnp.array([0.0, 1.0])
    [0.    0.881]
    """,
    Kernel(19, ANYWHERE),
    wide.AREA_SINE,
)


def asinh_slope(x: Any) -> Any:
    """1 / sqrt(1 + x**2), and 1 / |x| where the square overflows, in float16 from 256 on."""
    aval = typeof(x)
    if dtypes.is_complex(aval.dtype):
        return rsqrt(add(square(x), 1))
    size, one = abs(x), literal(1, aval.dtype)
    far = gt(size, 0.5 * float(dtypes.finfo(aval.dtype).max) ** 0.5)
    near = rsqrt(add(square(select(far, one, x)), 1))
    return select(far, div(one, select(far, size, one)), near)


acosh_p = define_tuned(
    "acosh",
    "chlo.acosh",
    # two roots, not sqrt(x**2 - 1): the product has acosh's branch cuts
    lambda t, y, x: mul(t, mul(rsqrt(sub(x, 1)), rsqrt(add(x, 1)))),
    """Return the inverse hyperbolic cosine.

    The result is NaN outside of the domain of the real function.

    >>> jnp.array([1.0, 2.0])
    [0.    1.317]
    """,
    Kernel(20, ANYWHERE),
)
atanh_p = define_tuned(
    "atanh",
    "chlo.atanh",
    lambda t, y, x: div(t, one_minus_square(x)),
    """Return the inverse hyperbolic tangent.

    The result is NaN outside of the domain of the real function.

    >>> jnp.array([0.0, 0.5])
    [0.    0.549]
    """,
    Kernel(21, ANYWHERE),
    wide.AREA_TANGENT,
)


def divide_by_squares(y: Any, x: Any) -> Any:
    """Return y / (x**2 + y**2) without squares, which overflow or vanish where this does not."""
    if dtypes.is_complex(typeof(x).dtype):
        return div(y, add(square(x), square(y)))
    steep = ge(abs(y), abs(x))
    large, small = select(steep, y, x), select(steep, x, y)
    ratio = div(small, large)
    return div(select(steep, literal(1, typeof(x).dtype), ratio), add(large, mul(small, ratio)))


atan2_p = Transcendental(
    "atan2",
    "atan2",
    [
        lambda t, z, x, y: mul(t, divide_by_squares(y, x)),
        lambda t, z, x, y: neg(mul(t, divide_by_squares(x, y))),
    ],
    takes="inexact",
    doc="""Return the angle of the point (y, x), in radians from -pi to pi.

    It is the inverse tangent of x / y in the right quadrant: the first operand is the ordinate.

    >>> jnp.array([1.0, -1.0]), 1.0
    [ 0.785 -0.785]
    """,
)
atan2_p.kernel, atan2_p.formulas = Kernel(63, Called.ON_ARGUMENTS), circular.ANGLE

sin_p.of_parts, sinh_p.of_parts = complex_formulas.SINES
cos_p.of_parts, cosh_p.of_parts = complex_formulas.COSINES
tan_p.of_parts, tanh_p.of_parts = complex_formulas.TANGENTS
expm1_p.of_parts = complex_formulas.write_expm1
log_p.of_parts = complex_formulas.write_complex_log
log1p_p.of_parts = complex_formulas.write_complex_log1p
sqrt_p.signs = acosh_p.signs = (0, 1)
acos_p.signs = rsqrt_p.signs = (0, -1)
asin_p.signs = atan_p.signs = asinh_p.signs = atanh_p.signs = (1, 1)

exp = tuned_op(exp_p)
exp2 = tuned_op(exp2_p)
expm1 = tuned_op(expm1_p)
log = tuned_op(log_p)
log2 = tuned_op(log2_p)
log1p = tuned_op(log1p_p)
logistic = tuned_op(logistic_p)

sqrt = tuned_op(sqrt_p)
rsqrt = tuned_op(rsqrt_p)
cbrt = tuned_op(cbrt_p)
sin = tuned_op(sin_p)
cos = tuned_op(cos_p)
tan = tuned_op(tan_p)
tanh = tuned_op(tanh_p)
tanh_slope = unary_op(tanh_slope_p)
logistic_slope = unary_op(logistic_slope_p)
asin = unary_op(asin_p)
acos = unary_op(acos_p)
atan = unary_op(atan_p)
sinh = unary_op(sinh_p)
cosh = unary_op(cosh_p)
asinh = unary_op(asinh_p)
acosh = unary_op(acosh_p)
atanh = unary_op(atanh_p)
atan2 = binary_op(atan2_p)
