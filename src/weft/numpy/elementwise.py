"""NumPy's elementwise functions of several operations each: rounding, powers, division, bits.

Functions of one operation are rows of ufuncs.py; `where`, `isnan` and others are in choice.py.
Called eagerly, each runs as one compiled program.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft.api.custom_rules import custom_jvp
from weft.core.aval import typeof
from weft.errors import DtypeError
from weft.numpy import promotion
from weft.numpy.choice import check_real, literal_like, signbit
from weft.numpy.reductions import compute_widely, widen_dtype
from weft.numpy.ufunc_methods import attach_ufunc_methods
from weft.numpy.ufuncs import greater, refuse_out_and_where
from weft.primitives import bits, cumulative, transcendental
from weft.primitives import elementwise as ops
from weft.primitives.families import check_integer
from weft.primitives.layout import full, literal
from weft.run.operation import number_operation, operation
from weft.util import JAXLIB, alias
from weft.xla.typing import Array, ArrayLike


def promote_pair(op: str, x: Any, y: Any, inexact: bool = False) -> list:
    """Two operands as arrays of one dtype and shape, scalars apart; truth values as integers."""
    x, y = promotion.as_operand(op, x), promotion.as_operand(op, y)
    x, y = (promotion.as_array(v) for v in promotion.promote_operands(op, x, y, inexact=inexact))
    if x.aval.weak_type != y.aval.weak_type:  # one was a number
        x, y = promotion.drop_weak_type(x), promotion.drop_weak_type(y)
    if dtypes.is_bool(x.dtype):
        x, y = (ops.convert(v, np.dtype(np.int32)) for v in (x, y))
    return [x, y]


def promote_reals(op: str, x: Any, y: Any) -> list:
    """Two operands as arrays of one float dtype."""
    x, y = promote_pair(op, x, y, inexact=True)
    check_real(op, x)
    return [x, y]


def promote_integers(op: str, x: Any, y: Any) -> list:
    """Two operands as arrays of one integer dtype."""
    x, y = promote_pair(op, x, y)
    if dtypes.is_inexact(x.dtype):
        raise DtypeError(f"{op}: operands must be integers; got {x.aval}, {y.aval}.")
    return [x, y]


# --- signs and parts ------------------------------------------------------------------------


@operation
def abs(x: ArrayLike, /) -> Array:
    """Compute the absolute value, element by element.

    The absolute value of a complex number is its modulus. The least integer of a signed dtype has
    no absolute value in that dtype and is returned unchanged, as in NumPy. The derivative at 0 is 1
    for real operands and 0 for complex ones.

    Args:
      x: an array of numbers of any dtype, or a number.

    Returns:
      An array of the shape and dtype of the operand; real if the operand is complex.

    Raises:
      DtypeError: the operand is not an array or a number: a list, for example.

    >>> jnp.abs(jnp.array([-2, 0, 3]))
    Array([2, 0, 3], dtype=int32)
    >>> jnp.abs(3 + 4j)
    Array(5., dtype=float32, weak_type=True)
    """
    x = promotion.as_array(x, "abs")
    return x if dtypes.is_bool(x.dtype) or dtypes.is_unsigned(x.dtype) else ops.abs(x)


absolute = alias(abs, "absolute")


@operation
def fabs(x: ArrayLike, /) -> Array:
    """Compute the absolute value of real numbers, as floats.

    It is `abs` with a float result for integers as well.

    Args:
      x: an array of integers, floats or bools, or a number.

    Returns:
      An array of floats of the shape of the operand. Floats keep their dtype; integers and bools
      become the default float dtype.

    Raises:
      DtypeError: the operand is complex.

    >>> jnp.fabs(jnp.array([-2, 0, 3]))
    Array([2., 0., 3.], dtype=float32)
    """
    x = promotion.as_inexact("fabs", x)
    check_real("fabs", x)
    return ops.abs(x)


def positive(x: ArrayLike, /) -> Array:
    """Return the operand unchanged, as an array.

    It is the function of the operator `+x`. Unlike NumPy's it also takes bools.

    Args:
      x: an array of numbers of any dtype, or a number.

    Returns:
      An array of the shape, dtype and values of the operand.

    Raises:
      DtypeError: the operand is not an array or a number: a list, for example.

    >>> jnp.positive(jnp.array([-1, 2]))
    Array([-1,  2], dtype=int32)
    """
    return promotion.as_array(x, "positive")


@operation
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Combine the absolute value of `x1` with the sign of `x2`.

    The signs of -0.0 and of NaN count. The derivative with respect to `x2` is 0.

    Args:
      x1: an array of integers, floats or bools, or a number. Integers and bools become floats
        first.
      x2: an array of integers, floats or bools, or a number. It broadcasts with `x1`.

    Returns:
      An array of floats of the broadcast shape.

    Raises:
      DtypeError: an operand is complex.
      ShapeError: the shapes do not broadcast together.

    >>> jnp.copysign(jnp.array([1.0, 2.0]), jnp.array([-0.0, 5.0]))
    Array([-1.,  2.], dtype=float32)
    """
    x, y = promote_reals("copysign", x1, x2)
    size = ops.abs(x)
    return ops.select(signbit(y), ops.neg(size), size)


@operation
def real(val: ArrayLike, /) -> Array:
    """Return the real part, element by element.

    A real operand is returned unchanged.

    Args:
      val: an array of numbers of any dtype, or a number.

    Returns:
      An array of the shape of the operand. It has the dtype of the operand, or of the real parts
      of a complex operand.

    Raises:
      DtypeError: the operand is not an array or a number: a list, for example.

    >>> jnp.real(jnp.array([1 + 2j, 3 - 1j]))
    Array([1., 3.], dtype=float32)
    """
    x = promotion.as_array(val, "real")
    return ops.real(x) if dtypes.is_complex(x.dtype) else x


@operation
def imag(val: ArrayLike, /) -> Array:
    """Return the imaginary part, element by element.

    The imaginary part of a real number is 0.

    Args:
      val: an array of numbers of any dtype, or a number.

    Returns:
      An array of the shape of the operand. It has the dtype of the operand, or of the imaginary
      parts of a complex operand.

    Raises:
      DtypeError: the operand is not an array or a number: a list, for example.

    >>> jnp.imag(jnp.array([1 + 2j, 3 - 1j]))
    Array([ 2., -1.], dtype=float32)
    """
    x = promotion.as_array(val, "imag")
    if dtypes.is_complex(x.dtype):
        return ops.imag(x)
    return ops.convert(full(x.shape, 0, x.dtype), x.dtype, x.aval.weak_type)


@operation
def conj(x: ArrayLike, /) -> Array:
    """Compute the complex conjugate, element by element.

    A real operand is returned unchanged.

    Args:
      x: an array of numbers of any dtype, or a number.

    Returns:
      An array of the shape and dtype of the operand.

    Raises:
      DtypeError: the operand is not an array or a number: a list, for example.

    >>> jnp.conj(jnp.array([1 + 2j, 3 - 1j]))
    Array([1.-2.j, 3.+1.j], dtype=complex64)
    """
    x = promotion.as_array(x, "conj")
    return ops.conj(x) if dtypes.is_complex(x.dtype) else x


conjugate = alias(conj, "conjugate")


@operation(static=("deg",))
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Compute the angle of complex numbers from the positive real axis.

    A positive real number has the angle 0 and a negative one the angle pi. The sign of zeros
    counts: the angle of -0.0 is pi.

    Args:
      z: an array of numbers of any dtype, or a number. Integers and bools become floats first.
      deg: True for degrees; the default is radians. It must be static under `jit`.

    Returns:
      An array of floats of the shape of `z`, from -pi to pi, or from -180 to 180.

    Raises:
      DtypeError: the operand is not an array or a number: a list, for example.

    >>> jnp.angle(jnp.array([1j, -1 + 0j]))
    Array([1.5707964, 3.1415927], dtype=float32)
    >>> jnp.angle(1j, deg=True)
    Array(90., dtype=float32, weak_type=True)
    """
    x = promotion.as_array(z, "angle")
    if not dtypes.is_inexact(x.dtype):
        x = ops.convert(x, dtypes.default_float())
    is_complex = dtypes.is_complex(x.dtype)
    re, im = (ops.real(x), ops.imag(x)) if is_complex else (x, literal_like(0, x))
    out = transcendental.atan2(im, re)
    return ops.mul(out, literal_like(180 / np.pi, out)) if deg else out


# --- rounding -------------------------------------------------------------------------------


def round_floats(op: str, apply: Any, x: Any) -> Any:
    """A rounding of floats; integers are round."""
    x = promotion.as_array(x, op)
    check_real(op, x)
    return apply(x) if dtypes.is_float(x.dtype) else x


@operation
def floor(x: ArrayLike, /) -> Array:
    """Round each number down to the largest integer that is not above it.

    Integers and bools are returned unchanged. The derivative is 0 everywhere.

    Args:
      x: an array of integers, floats or bools, or a number.

    Returns:
      An array of the shape and dtype of the operand.

    Raises:
      DtypeError: the operand is complex.

    >>> jnp.floor(jnp.array([1.7, -1.2]))
    Array([ 1., -2.], dtype=float32)
    """
    return round_floats("floor", ops.floor, x)


@operation
def ceil(x: ArrayLike, /) -> Array:
    """Round each number up to the smallest integer that is not below it.

    Integers and bools are returned unchanged. The derivative is 0 everywhere.

    Args:
      x: an array of integers, floats or bools, or a number.

    Returns:
      An array of the shape and dtype of the operand.

    Raises:
      DtypeError: the operand is complex.

    >>> jnp.ceil(jnp.array([1.2, -1.7]))
    Array([ 2., -1.], dtype=float32)
    """
    return round_floats("ceil", ops.ceil, x)


def round_toward_zero(x: Any) -> Any:
    """Floats rounded towards 0."""
    return ops.select(ops.lt(x, literal_like(0, x)), ops.ceil(x), ops.floor(x))


@operation
def trunc(x: ArrayLike) -> Array:
    """Round each number toward 0.

    Integers and bools are returned unchanged. The derivative is 0 everywhere.

    Args:
      x: an array of integers, floats or bools, or a number.

    Returns:
      An array of the shape and dtype of the operand.

    Raises:
      DtypeError: the operand is complex.

    >>> jnp.trunc(jnp.array([1.7, -1.7]))
    Array([ 1., -1.], dtype=float32)
    """
    return round_floats("trunc", round_toward_zero, x)


def round_to_even(x: Any) -> Any:
    """Floats or complex numbers rounded to the nearest integer, ties to the even one."""
    if dtypes.is_complex(x.dtype):
        return ops.complex(round_to_even(ops.real(x)), round_to_even(ops.imag(x)))
    return ops.round(x, 1)


@operation
def rint(x: ArrayLike, /) -> Array:
    """Round each number to the nearest integer, and ties to the even integer.

    The parts of complex numbers are rounded apart. The derivative is 0 everywhere.

    Args:
      x: an array of numbers of any dtype, or a number.

    Returns:
      An array of the shape of the operand. Floats and complex numbers keep their dtype; integers
      and bools become the default float dtype.

    Raises:
      DtypeError: the operand is not an array or a number: a list, for example.

    >>> jnp.rint(jnp.array([0.5, 1.5, 1.7]))
    Array([0., 2., 2.], dtype=float32)
    """
    x = promotion.as_array(x, "rint")
    if not dtypes.is_inexact(x.dtype):
        x = ops.convert(x, dtypes.default_float())
    return round_to_even(x)


@operation(static=("decimals", "out"))
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round each number to a number of decimal places, and ties to the even digit.

    Floats are multiplied by a power of 10, rounded and divided again, so that the decimal digits
    of a number whose binary form is not exact may round either way. Integers are returned
    unchanged. The parts of complex numbers are rounded apart.

    Args:
      a: an array of integers, floats or complex numbers, or a number.
      decimals: an int, the number of digits after the point; 0 by default. A negative number
        rounds digits before the point, for floats and complex numbers. It must be static under
        `jit`.
      out: must be None.

    Returns:
      An array of the shape and dtype of `a`.

    Raises:
      DtypeError: `a` is an array of bools.
      NotImplementedError: `out` is not None.
      TypeError: `decimals` is not an integer.

    >>> jnp.round(jnp.array([0.5, 1.5, 2.34]))
    Array([0., 2., 2.], dtype=float32)
    >>> jnp.round(jnp.array([0.26, 2.34]), 1)
    Array([0.3, 2.3], dtype=float32)
    >>> jnp.round(jnp.array([123.0, 777.0]), -2)
    Array([100., 800.], dtype=float32)
    """
    promotion.refuse_out("round", out)
    x, decimals = promotion.as_array(a, "round"), check_integer("round", "decimals", decimals)
    if dtypes.is_bool(x.dtype):
        raise DtypeError(f"round: operands must be numbers; got {x.aval}.")
    if dtypes.is_integer(x.dtype):
        return x if decimals >= 0 else round_integers(x, 10**-decimals)
    if decimals == 0:
        return round_to_even(x)
    dtype = x.dtype
    if dtypes.is_short_float(dtype):  # 10 ** decimals would not fit
        x = ops.convert(x, np.dtype(np.float32))
    most = 300 if dtypes.real_dtype(x.dtype) == np.float64 else 37  # 10 ** decimals would not fit
    if not -most <= decimals <= most:  # all digits are exact, or none is left
        return ops.convert(x if decimals > 0 else ops.mul(x, literal_like(0, x)), dtype)
    factor = literal_like(10.0**decimals, x)
    return ops.convert(ops.div(round_to_even(ops.mul(x, factor)), factor), dtype)


def round_integers(x: Any, step: int) -> Any:
    """Return the multiple of `step` that is nearest to x; of two, the even one."""
    if step > int(dtypes.iinfo(x.dtype).max):  # the nearest that the dtype has is 0
        return ops.mul(x, literal_like(0, x))
    unit = literal_like(step, x)
    rest = ops.rem(x, unit)
    down = ops.sub(x, rest)  # towards 0
    size = ops.abs(rest)
    gap = ops.sub(unit, size)
    is_odd = ops.ne(ops.rem(ops.div(down, unit), literal_like(2, x)), literal_like(0, x))
    far = ops.bitwise_or(ops.gt(size, gap), ops.bitwise_and(ops.eq(size, gap), is_odd))
    up = ops.add(down, ops.mul(ops.sign(rest), unit))
    return ops.select(far, up, down)


def python_round(x: Array, ndigits: int | None = None) -> Array:
    """Python's round(x): integers where no number of digits is given."""
    if ndigits is not None or not dtypes.is_float(x.dtype):
        return round(x, ndigits or 0)
    return ops.convert(round(x), dtypes.default_int())


around = alias(round, "around")

# --- division -------------------------------------------------------------------------------


@operation
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Divide and round down to an integer.

    It is the function of the operator `x1 // x2`. Floats are divided by 0 to infinity or NaN; the
    quotient of an integer by 0 is 0, as in NumPy. The derivative is 0 everywhere.

    Args:
      x1: an array of integers, floats or bools, or a number.
      x2: an array of integers, floats or bools, or a number. It broadcasts with `x1`.

    Returns:
      An array of the broadcast shape and of the common dtype of the operands. Bools become int32.

    Raises:
      DtypeError: an operand is complex.
      ShapeError: the shapes do not broadcast together.

    >>> jnp.floor_divide(jnp.array([7, -7]), 2)
    Array([ 3, -4], dtype=int32)
    >>> jnp.floor_divide(7.5, 2)
    Array(3., dtype=float32, weak_type=True)
    """
    x, y = promote_pair("floor_divide", x1, x2)
    check_real("floor_divide", x)
    if dtypes.is_float(x.dtype):
        return divmod_floats(x, y)[0]
    return divide_integers(x, y)


@operation
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the remainder of a division that is rounded down.

    It is `x1 - x2 * floor(x1 / x2)`, the function of the operator `x1 % x2`. The result has the
    sign of `x2`, a zero too; `fmod` keeps the sign of `x1`. The remainder of a division by 0 is 0
    for integers, as in NumPy, and NaN for floats.

    Args:
      x1: an array of integers, floats or bools, or a number.
      x2: an array of integers, floats or bools, or a number. It broadcasts with `x1`.

    Returns:
      An array of the broadcast shape and of the common dtype of the operands. Bools become int32.

    Raises:
      DtypeError: an operand is complex.
      ShapeError: the shapes do not broadcast together.

    >>> jnp.remainder(jnp.array([7, -7]), 3)
    Array([1, 2], dtype=int32)
    >>> jnp.remainder(-7.5, 2)
    Array(0.5, dtype=float32, weak_type=True)
    """
    x, y = promote_pair("remainder", x1, x2)
    check_real("remainder", x)
    return compute_remainder(x, y)


def replace_zero(y: Any) -> Any:
    """A divisor, with 1 for 0 among integers."""
    if dtypes.is_float(y.dtype):
        return y
    return ops.select(ops.eq(y, literal_like(0, y)), literal_like(1, y), y)


def divide_integers(x: Any, y: Any) -> Any:
    """Divide integers and round downward; a quotient by 0 is 0."""
    zero = literal_like(0, x)
    by_zero = ops.eq(y, zero)
    quotient = ops.div(x, y)
    if not dtypes.is_unsigned(x.dtype):
        below = ops.bitwise_and(ops.ne(ops.sign(x), ops.sign(y)), ops.ne(ops.rem(x, y), zero))
        quotient = ops.select(below, ops.sub(quotient, literal_like(1, x)), quotient)
    return ops.select(by_zero, zero, quotient)


def compute_remainder(x: Any, y: Any) -> Any:
    """Return the remainder with the sign of the divisor; integers have 0 by 0."""
    if dtypes.is_float(x.dtype):
        return take_remainder(*face_divisor(x, y))
    y, zero = replace_zero(y), literal_like(0, x)
    rest = ops.rem(x, y)
    crosses = ops.ne(ops.lt(rest, zero), ops.lt(y, zero))
    return ops.select(ops.bitwise_and(crosses, ops.ne(rest, zero)), ops.add(rest, y), rest)


def face_divisor(x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """Negate both floats where the divisor is negative, so that divisors are positive.

    The quotient stays the same and the remainder changes its sign.

    Returns:
      Where the divisor is negative; the two operands; and the remainder of their division, which
      has the sign of the dividend.
    """
    flipped = ops.lt(y, literal_like(0, y))
    x, y = ops.select(flipped, ops.neg(x), x), ops.abs(y)
    return flipped, x, y, ops.rem(x, y)


def take_remainder(flipped: Any, x: Any, y: Any, rest: Any) -> Any:
    """Return the remainder with the sign of the divisor, from the results of `face_divisor`.

    0.0 is added to a remainder of -0.0, so that a zero has the sign of the divisor too and keeps
    its derivative.
    """
    zero = literal_like(0, x)
    rest = ops.add(rest, ops.select(ops.lt(rest, zero), y, zero))
    return ops.select(flipped, ops.neg(rest), rest)


def divmod_floats(x: Any, y: Any) -> tuple[Any, Any]:
    """Return quotients rounded downward, and the remainders.

    Quotients of floats of 16 bits and fewer are computed in float32: the difference of dividend and
    remainder may need more digits than their dtype has, as in 2056 // 3.
    """
    if widen_dtype(x.dtype) != x.dtype:
        quotient = compute_widely(lambda x, y: divmod_floats(x, y)[0], x, y)
        return quotient, compute_remainder(x, y)
    faced = _, dividend, divisor, rest = face_divisor(x, y)
    zero, exact = literal_like(0, x), ops.div(x, y)
    quotient = ops.div(ops.sub(dividend, rest), divisor)
    below = ops.lt(rest, zero)
    quotient = ops.round(ops.select(below, ops.sub(quotient, literal_like(1, x)), quotient))
    # A quotient of 0, and the infinity of a division by 0, have the sign of x / y.
    quotient = ops.select(ops.eq(quotient, zero), ops.mul(exact, zero), quotient)
    return ops.select(ops.eq(divisor, zero), exact, quotient), take_remainder(*faced)


@operation
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """Compute the quotient that is rounded down, and the remainder.

    The results equal `floor_divide` and `remainder`; one division computes both.

    Args:
      x1: an array of integers, floats or bools, or a number.
      x2: an array of integers, floats or bools, or a number. It broadcasts with `x1`.

    Returns:
      A pair of arrays, quotient and remainder, of the broadcast shape and of the common dtype of
      the operands. Bools become int32.

    Raises:
      DtypeError: an operand is complex.
      ShapeError: the shapes do not broadcast together.

    >>> jnp.divmod(jnp.array([7, -7]), 2)
    (Array([ 3, -4], dtype=int32), Array([1, 1], dtype=int32))
    """
    x, y = promote_pair("divmod", x1, x2)
    check_real("divmod", x)
    return (
        divmod_floats(x, y)
        if dtypes.is_float(x.dtype)
        else (divide_integers(x, y), compute_remainder(x, y))
    )


@operation
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the remainder of a division that is rounded toward 0.

    The result has the sign of `x1`, as in C; `remainder` has the sign of `x2`. The remainder of a
    division by 0 is 0 for integers, as in NumPy, and NaN for floats.

    Args:
      x1: an array of integers, floats or bools, or a number.
      x2: an array of integers, floats or bools, or a number. It broadcasts with `x1`.

    Returns:
      An array of the broadcast shape and of the common dtype of the operands. Bools become int32.

    Raises:
      DtypeError: an operand is complex.
      ShapeError: the shapes do not broadcast together.

    >>> jnp.fmod(jnp.array([7, -7]), 3)
    Array([ 1, -1], dtype=int32)
    """
    x, y = promote_pair("fmod", x1, x2)
    check_real("fmod", x)
    return ops.rem(x, replace_zero(y))


mod = alias(remainder, "mod")


@operation
def reciprocal(x: ArrayLike, /) -> Array:
    """Compute `1 / x`, element by element.

    Unlike NumPy's, the reciprocal of an integer is a float: `np.reciprocal(2)` is 0.

    Args:
      x: an array of numbers of any dtype, or a number. Integers and bools become floats first.

    Returns:
      An array of floats or complex numbers of the shape of the operand.

    Raises:
      DtypeError: the operand is not an array or a number: a list, for example.

    >>> jnp.reciprocal(jnp.array([2, 4]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return transcendental.integer_pow(promotion.as_inexact("reciprocal", x), -1)


def find_common_divisor(x: Any, y: Any) -> Any:
    """Euclid's algorithm, until no element has a rest."""

    def step(pair: tuple[Any, Any]) -> tuple[Any, Any]:
        x, y = pair
        done = ops.eq(y, literal_like(0, y))
        return ops.select(done, x, y), ops.select(done, y, ops.rem(x, replace_zero(y)))

    return lax.while_loop(lambda pair: (pair[1] != 0).any(), step, step((x, y)))[0]


def promote_counts(op: str, x: Any, y: Any) -> list:
    """Return two operands in absolute value, unsigned, and the dtype and weak type of results."""
    x, y = promotion.as_operand(op, x), promotion.as_operand(op, y)
    if all(dtypes.is_bool(typeof(v).dtype) for v in (x, y)):
        raise DtypeError(f"{op}: operands must be integers; got {typeof(x)}, {typeof(y)}.")
    x, y = map(promotion.strengthen_array, promote_integers(op, x, y))
    # the least integer has no absolute value in its own dtype
    unsigned = dtypes.from_short_name(f"u{dtypes.itemsize_bits(x.dtype)}")
    weak = x.aval.weak_type and y.aval.weak_type
    return [ops.convert(abs(v), unsigned) for v in (x, y)] + [x.dtype, weak]


@operation
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Compute the greatest common divisor of integers.

    The result is not negative. The greatest common divisor of 0 and 0 is 0. The algorithm is
    Euclid's, in a loop that runs until every element is done, so it has no derivative.

    Args:
      x1: an array of integers, or a number.
      x2: an array of integers, or a number. It broadcasts with `x1`.

    Returns:
      An array of integers of the broadcast shape and of the common dtype of the operands.

    Raises:
      DtypeError: an operand has floats or complex numbers, or both have bools.
      ShapeError: the shapes do not broadcast together.

    >>> jnp.gcd(jnp.array([12, -9, 0]), 6)
    Array([6, 3, 6], dtype=int32)
    """
    x, y, dtype, weak = promote_counts("gcd", x1, x2)
    return ops.convert(find_common_divisor(x, y), dtype, weak)


@operation
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Compute the least common multiple of integers.

    The result is 0 where an operand is 0. A multiple that does not fit the dtype wraps around, as
    products do.

    Args:
      x1: an array of integers, or a number.
      x2: an array of integers, or a number. It broadcasts with `x1`.

    Returns:
      An array of integers of the broadcast shape and of the common dtype of the operands.

    Raises:
      DtypeError: an operand has floats or complex numbers, or both have bools.
      ShapeError: the shapes do not broadcast together.

    >>> jnp.lcm(jnp.array([4, -6, 0]), 6)
    Array([12,  6,  0], dtype=int32)
    """
    x, y, dtype, weak = promote_counts("lcm", x1, x2)
    divisor = replace_zero(find_common_divisor(x, y))
    return ops.convert(ops.mul(x, ops.div(y, divisor)), dtype, weak)


# --- powers and logarithms ------------------------------------------------------------------


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Raise `x1` to the power `x2`, element by element.

    It is the function of the operator `x1 ** x2`. A Python int as `x2` is static and becomes
    multiplications, which is faster than a general power. Integers wrap around, as their products
    do. A negative real number to a power that is not an integer is NaN.

    Args:
      x1: an array of numbers of any dtype, or a number.
      x2: an array of numbers of any dtype, or a number. It broadcasts with `x1`.

    Returns:
      An array of the broadcast shape and of the common dtype of the operands. Powers of bools are
      integers.

    Raises:
      DtypeError: integers are raised to a negative power that is known when the function is
        called: an int or a NumPy array. A negative power in an array of weft gives the reciprocal
        without its fraction: 0, except for the bases 1 and -1.
      ShapeError: the shapes do not broadcast together.

    >>> jnp.power(jnp.array([1.0, 2.0]), -1)
    Array([1. , 0.5], dtype=float32)
    >>> jnp.power(2, jnp.array([0, 1, 5]))
    Array([ 1,  2, 32], dtype=int32)
    """
    if type(x2) is int and hasattr(x1, "aval"):
        return power_by_integer(x1, x2)
    if isinstance(x2, HOST_INTEGERS):
        refuse_negative_power(x1, np.asarray(x2))
    return power_of_operands(x1, x2)


HOST_INTEGERS = int, np.integer, np.ndarray


def refuse_negative_power(x: Any, y: np.ndarray) -> None:
    """Raise if a concrete exponent is a negative integer and the base is an integer."""
    if y.dtype.kind == "i" and y.size and y.min() < 0:
        aval = typeof(promotion.as_operand("power", x), "power")
        if not dtypes.is_inexact(aval.dtype):
            shown = y if y.ndim else y.item()
            raise DtypeError(
                f"power: integers must not be raised to negative powers; got {aval}, {shown}. "
                f"Hint: x.astype(float) ** {shown}."
            )


@operation(static=("n",), name="integer_pow")
def power_by_integer(x: Any, n: int) -> Any:
    """x ** n for a Python integer n."""
    if dtypes.is_bool(x.dtype):
        x = ops.convert(x, dtypes.default_int())
    if n < 0:
        refuse_negative_power(x, np.asarray(n))
    return transcendental.integer_pow(x, n)


@functools.partial(number_operation, name="pow", whole=True)
def power_of_operands(x1: Any, x2: Any) -> Any:
    """`power` as written."""
    x, y = promotion.as_operand("power", x1), promotion.as_operand("power", x2)
    inexact = dtypes.is_inexact(
        promotion.plan_promotion(
            "power", (promotion.kind_of("power", x), promotion.kind_of("power", y))
        ).dtype
    )
    if inexact and dtypes.is_inexact(typeof(x).dtype) and dtypes.is_integer(typeof(y).dtype):
        return transcendental.pow(
            *promotion.broadcast_operands("power", x, y)
        )  # y stays: 0 ** 0 has a derivative
    if inexact:
        return transcendental.pow(*promotion.promote_operands("power", x, y))
    dtype = typeof(y).dtype  # the exponent has the same bits in any wider dtype
    out = power_by_squaring(*promote_pair("power", x, y), count_value_bits(dtype))
    if any(dtypes.is_bool(typeof(v).dtype) for v in (x, y)):
        return promotion.drop_weak_type(out)  # a number to a truth value is not weak
    return promotion.strengthen_array(out)


def count_value_bits(dtype: Any) -> int:
    """Return how many bits of the integers of a dtype, or of bools, are not the sign."""
    if dtypes.is_bool(dtype):
        return 1
    return dtypes.itemsize_bits(dtype) - dtypes.is_signed(dtype)


def power_by_squaring(x: Any, y: Any, bits: int) -> Any:
    """Return x ** y modulo 2 to the bits of x, by the lowest `bits` of y.

    For a negative y it is 1 / x ** -y, rounded towards 0, and 0 for an x of 0. The lowest bit of y
    decides the powers of 1 and -1.
    """
    zero, signed = literal_like(0, y), not dtypes.is_unsigned(y.dtype)
    base, out = x, literal_like(1, x)
    bits = min(bits, dtypes.itemsize_bits(y.dtype) - signed)
    for i in range(bits):
        bit = ops.ne(ops.bitwise_and(y, literal_like(1 << i, y)), zero)
        out = ops.select(bit, ops.mul(x, out), out)
        if i < bits - 1:
            x = ops.mul(x, x)
    if not signed:
        return out
    size = base if dtypes.is_unsigned(base.dtype) else ops.abs(base)
    inverse = ops.select(ops.eq(size, literal_like(1, size)), out, literal_like(0, out))
    return ops.select(ops.lt(y, zero), inverse, out)


pow = alias(power, "pow")


@operation
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Raise `x` to the power `y`, in floats for integers as well.

    Negative powers of integers are allowed, unlike in `power`. Unlike NumPy's, floats keep their
    dtype; NumPy computes in float64.

    Args:
      x: an array of numbers of any dtype, or a number. Integers and bools become floats first.
      y: an array of numbers of any dtype, or a number. It broadcasts with `x`.

    Returns:
      An array of floats or complex numbers of the broadcast shape.

    Raises:
      ShapeError: the shapes do not broadcast together.

    >>> jnp.float_power(jnp.array([2, 4]), -1)
    Array([0.5 , 0.25], dtype=float32)
    """
    return transcendental.pow(*promote_pair("float_power", x, y, inexact=True))


@operation
def log10(x: ArrayLike, /) -> Array:
    """Compute the logarithm to base 10.

    The logarithm of 0 is negative infinity; the logarithm of a negative real number is NaN.

    Args:
      x: an array of numbers of any dtype, or a number. Integers and bools become floats first.

    Returns:
      An array of floats or complex numbers of the shape of the operand.

    Raises:
      DtypeError: the operand is not an array or a number: a list, for example.

    >>> jnp.log10(jnp.array([1, 1000, 0]))
    Array([  0.,   3., -inf], dtype=float32)
    """
    x = promotion.drop_weak_type(promotion.as_inexact("log10", x))
    return compute_widely(divide_log, x)


def divide_log(x: Any) -> Any:
    """Return log(x) / log(10)."""
    y = transcendental.log(x)
    if dtypes.is_complex(y.dtype):  # part by part: 0 times infinity is not a number
        y, z = ops.real(y), ops.imag(y)
        return ops.complex(*(ops.mul(v, literal_like(1 / math.log(10), v)) for v in (y, z)))
    return ops.mul(y, literal_like(1 / math.log(10), y))


def add_in_logs(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)), of complex numbers that with its angle in (-pi, pi]."""
    out = cumulative.logaddexp(x, y)
    if not dtypes.is_complex(out.dtype):
        return out
    angle, turn = ops.imag(out), literal_like(2 * np.pi, ops.imag(out))
    turns = ops.ceil(ops.sub(ops.div(angle, turn), literal_like(0.5, angle)))
    return ops.complex(ops.real(out), ops.sub(angle, ops.mul(turns, turn)))


@operation
def logaddexp(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """Compute `log(exp(x1) + exp(x2))` without overflow.

    It adds probabilities that are given by their logarithms. The angle of a complex result is in
    (-pi, pi].

    Args:
      x1: an array of numbers of any dtype, or a number. Integers and bools become floats first.
      x2: an array of numbers of any dtype, or a number. It broadcasts with `x1`.
      out: must be None.
      where: must be None.

    Returns:
      An array of floats or complex numbers of the broadcast shape.

    Raises:
      ShapeError: the shapes do not broadcast together.
      NotImplementedError: `out` or `where` is not None.

    >>> jnp.logaddexp(jnp.array([0.0, 1000.0]), jnp.array([0.0, 1000.0]))
    Array([6.9314718e-01, 1.0006932e+03], dtype=float32)
    """
    refuse_out_and_where("logaddexp", out, where)
    return add_in_logs(*promote_pair("logaddexp", x1, x2, inexact=True))


@operation
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """Compute `log2(2 ** x1 + 2 ** x2)` without overflow.

    It adds probabilities that are given by their logarithms to base 2.

    Args:
      x1: an array of numbers of any dtype, or a number. Integers and bools become floats first.
      x2: an array of numbers of any dtype, or a number. It broadcasts with `x1`.
      out: must be None.
      where: must be None.

    Returns:
      An array of floats or complex numbers of the broadcast shape.

    Raises:
      ShapeError: the shapes do not broadcast together.
      NotImplementedError: `out` or `where` is not None.

    >>> jnp.logaddexp2(jnp.array([0.0, 1000.0]), jnp.array([0.0, 1000.0]))
    Array([1.000e+00, 1.001e+03], dtype=float32)
    """
    refuse_out_and_where("logaddexp2", out, where)
    pair = promote_pair("logaddexp2", x1, x2, inexact=True)
    x, y = map(promotion.strengthen_array, pair)
    return compute_widely(add_in_binary_logs, x, y)


def add_in_binary_logs(x: Any, y: Any) -> Any:
    """Return log2(2**x + 2**y).

    Real numbers are not multiplied by log 2, as products would be rounded: near the zeros, such as
    (-1, -1), the rest cancels, and a small power of 2 would be off by many units.
    """
    if dtypes.is_complex(x.dtype):
        scale = literal_like(math.log(2), x)
        return ops.div(add_in_logs(ops.mul(x, scale), ops.mul(y, scale)), scale)
    ahead = ops.ge(x, y)
    high, low = ops.select(ahead, x, y), ops.select(ahead, y, x)
    far = ops.select(ops.ne(low, low), low, literal_like(-math.inf, x))
    gap = ops.select(ops.lt(ops.abs(high), literal_like(math.inf, x)), ops.sub(low, high), far)
    more = transcendental.log1p(transcendental.exp2(gap))
    # a sum is added to `high`: a product would be, unrounded, in one instruction
    more = ops.add(more, ops.mul(more, literal_like(1 / math.log(2) - 1, x)))
    return ops.add(high, more)


@operation
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the hypotenuse `sqrt(x1**2 + x2**2)` without overflow.

    The result is infinite where an operand is infinite, even if the other is NaN.

    Args:
      x1: an array of integers, floats or bools, or a number. Integers and bools become floats
        first.
      x2: an array of integers, floats or bools, or a number. It broadcasts with `x1`.

    Returns:
      An array of floats of the broadcast shape.

    Raises:
      DtypeError: an operand is complex.
      ShapeError: the shapes do not broadcast together.

    >>> jnp.hypot(jnp.array([3.0, 3e30]), jnp.array([4.0, 4e30]))
    Array([5.e+00, 5.e+30], dtype=float32)
    """
    return compute_widely(
        find_hypotenuse, *map(promotion.strengthen_array, promote_reals("hypot", x1, x2))
    )


def find_hypotenuse(x: Any, y: Any) -> Any:
    """Return the root of x**2 + y**2, with the larger number taken out of it."""
    x, y = ops.abs(x), ops.abs(y)
    infinite = ops.bitwise_or(
        ops.eq(x, literal_like(np.inf, x)), ops.eq(y, literal_like(np.inf, y))
    )
    high = ops.max(x, y)
    none = ops.eq(high, literal_like(0, high))
    # the scale cancels, so nothing is lost by taking it for constant; max is not smooth at a tie
    scale = ops.stop_gradient_p.apply(ops.select(none, literal_like(1, high), high))[0]
    total = ops.add(ops.square(ops.div(x, scale)), ops.square(ops.div(y, scale)))
    out = ops.mul(scale, transcendental.sqrt(ops.select(none, literal_like(1, total), total)))
    return ops.select(infinite, literal_like(np.inf, x), ops.select(none, high, out))


# --- angles and functions of their own ------------------------------------------------------


@operation
def deg2rad(x: ArrayLike, /) -> Array:
    """Convert degrees to radians.

    It multiplies by pi / 180.

    Args:
      x: an array of numbers of any dtype, or a number. Integers and bools become floats first.

    Returns:
      An array of floats or complex numbers of the shape of the operand.

    Raises:
      DtypeError: the operand is not an array or a number: a list, for example.

    >>> jnp.deg2rad(jnp.array([0, 90, 180]))
    Array([0.       , 1.5707964, 3.1415927], dtype=float32)
    """
    x = promotion.strengthen_array(promotion.as_inexact("deg2rad", x))
    return ops.mul(x, literal_like(np.pi / 180, x))


@operation
def rad2deg(x: ArrayLike, /) -> Array:
    """Convert radians to degrees.

    It multiplies by 180 / pi.

    Args:
      x: an array of numbers of any dtype, or a number. Integers and bools become floats first.

    Returns:
      An array of floats or complex numbers of the shape of the operand.

    Raises:
      DtypeError: the operand is not an array or a number: a list, for example.

    >>> jnp.rad2deg(jnp.array([0, np.pi / 2]))
    Array([ 0., 90.], dtype=float32)
    """
    x = promotion.strengthen_array(promotion.as_inexact("rad2deg", x))
    return ops.mul(x, literal_like(180 / np.pi, x))


radians = alias(deg2rad, "radians")
degrees = alias(rad2deg, "degrees")


@operation
def sinc(x: ArrayLike, /) -> Array:
    """Compute the normalized sinc function `sin(pi x) / (pi x)`.

    Its value at 0 is 1. Derivatives of every order are finite there as well.

    Args:
      x: an array of numbers of any dtype, or a number. Integers and bools become floats first.

    Returns:
      An array of floats or complex numbers of the shape of the operand.

    Raises:
      DtypeError: the operand is not an array or a number: a list, for example.

    >>> jnp.sinc(jnp.array([0.0, 0.5]))
    Array([1.        , 0.63661975], dtype=float32)
    >>> weft.grad(weft.grad(jnp.sinc))(0.0)
    Array(-3.2898684, dtype=float32, weak_type=True)
    """
    x = promotion.strengthen_array(promotion.as_inexact("sinc", x))
    if dtypes.is_float(x.dtype) and x.dtype.itemsize < 4:  # pi x has too few bits
        return ops.convert(sinc(ops.convert(x, np.dtype(np.float32))), x.dtype)
    return sinc_derivative(0, np.pi, x)


def make_waves(x: Any, t: Any, unit: float, count: int) -> list[Any]:
    """Return sin(t) and, for a `count` of 2, cos(t) of t = x or t = pi x, as `unit` is 1 or pi.

    Real numbers are reduced before they are multiplied by pi. So the sine of a whole multiple of pi
    is 0, and the sine of a large t has correct digits.
    """
    dtype = typeof(x).dtype
    if unit == 1 or dtypes.is_complex(dtype):
        return [transcendental.sin(t), transcendental.cos(t)][:count]
    pi, half, one, zero = (literal(v, dtype) for v in (np.pi, 0.5, 1, 0))
    turns = ops.round(ops.mul(x, half), 1)
    rest = ops.sub(x, ops.add(turns, turns))  # in [-1, 1], and exact
    size = ops.abs(rest)
    sine = transcendental.sin(ops.mul(pi, ops.min(size, ops.sub(one, size))))
    waves = [ops.select(ops.lt(rest, zero), ops.neg(sine), sine)]
    if count > 1:
        waves.append(transcendental.sin(ops.mul(pi, ops.sub(half, size))))
    return waves


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def sinc_derivative(n: int, unit: float, x: Any) -> Any:
    """Return the derivative of order n of sin(t) / t at t = unit * x; `unit` is 1 or pi.

    It is the integral of u**n cos(t u + n pi / 2) over u from 0 to 1. Its power series is for small
    t, where the terms of the recurrence by parts cancel.
    """
    dtype = typeof(x).dtype
    least = 1 + n / 2 if n else 0
    t = x if unit == 1 else ops.mul(x, literal(unit, dtype))
    small = ops.le(ops.abs(t), literal_like(least, ops.abs(t)))
    far = ops.select(small, literal(least or 1, dtype), t)
    waves = make_waves(x, far, unit, 2 if n else 1)  # sin(t + k pi / 2): k = 0, 1
    out = ops.div(waves[0], far)
    for k in range(1, n + 1):
        wave = waves[k % 2] if k % 4 < 2 else ops.neg(waves[k % 2])
        out = ops.div(ops.sub(wave, ops.mul(literal(k, dtype), out)), far)
    near = ops.select(small, t, literal(0, dtype))
    square, series = ops.square(near), literal(0, dtype)
    for c in reversed(sinc_series(n, least, float(dtypes.finfo(dtype).eps))):
        series = ops.add(literal(c, dtype), ops.mul(series, square))
    return ops.select(small, ops.mul(series, near) if n % 2 else series, out)


def sinc_series(n: int, reach: float, eps: float) -> list[float]:
    """Return coefficients of t**0, t**2, ... (of t**1, t**3, ... for odd n) up to |t| = reach."""
    out: list[float] = []
    while not out or math.fabs(out[-1]) * reach ** (2 * len(out)) > eps / 8:
        k = 2 * len(out) + n % 2
        sign = (-1) ** (len(out) + (n + 1) // 2)
        out.append(sign / (math.factorial(k) * (k + n + 1)))
    return out


@sinc_derivative.defjvp
def sinc_derivative_jvp(n: int, unit: float, primals: tuple, tangents: tuple) -> tuple:
    """The next derivative."""
    (x,), (tangent,) = primals, tangents
    slope = sinc_derivative(n + 1, unit, x)
    slope = slope if unit == 1 else ops.mul(slope, literal(unit, typeof(x).dtype))
    return sinc_derivative(n, unit, x), ops.mul(slope, tangent)


@operation
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the step function: 0 for negative `x1`, 1 for positive `x1`, `x2` where `x1` is 0.

    The result is NaN where `x1` is NaN. The derivative with respect to `x1` is 0.

    Args:
      x1: an array of integers, floats or bools, or a number. Integers and bools become floats
        first.
      x2: an array of integers, floats or bools, or a number. It broadcasts with `x1`.

    Returns:
      An array of floats of the broadcast shape.

    Raises:
      DtypeError: an operand is complex.
      ShapeError: the shapes do not broadcast together.

    >>> jnp.heaviside(jnp.array([-2.0, 0.0, 3.0]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x, y = promote_reals("heaviside", x1, x2)
    x = promotion.strengthen_array(x)
    step = ops.select(ops.lt(x, literal_like(0, x)), literal_like(0, x), literal_like(1, x))
    return ops.select(ops.ne(x, x), x, ops.select(ops.eq(x, literal_like(0, x)), y, step))


@operation
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Take the larger of two numbers, and ignore NaN.

    Where one of them is NaN the result is the other; `maximum` gives NaN. Complex numbers are
    compared by real parts, and by imaginary parts if these are equal. Where the operands are
    equal, the derivative with respect to `x2` is 1 and that with respect to `x1` is 0.

    Args:
      x1: an array of numbers of any dtype, or a number.
      x2: an array of numbers of any dtype, or a number. It broadcasts with `x1`.

    Returns:
      An array of the broadcast shape and of the common dtype of the operands.

    Raises:
      ShapeError: the shapes do not broadcast together.

    >>> jnp.fmax(jnp.array([1.0, np.nan]), 2.0)
    Array([2., 2.], dtype=float32)
    """
    x, y = promotion.promote_operands("fmax", *promotion.as_arrays_together("fmax", x1, x2))
    return ops.select(ops.bitwise_or(greater(x, y), ops.ne(y, y)), x, y)


@operation
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Take the smaller of two numbers, and ignore NaN.

    Where one of them is NaN the result is the other; `minimum` gives NaN. Complex numbers are
    compared by real parts, and by imaginary parts if these are equal. Where the operands are
    equal, the derivative with respect to `x2` is 1 and that with respect to `x1` is 0.

    Args:
      x1: an array of numbers of any dtype, or a number.
      x2: an array of numbers of any dtype, or a number. It broadcasts with `x1`.

    Returns:
      An array of the broadcast shape and of the common dtype of the operands.

    Raises:
      ShapeError: the shapes do not broadcast together.

    >>> jnp.fmin(jnp.array([1.0, np.nan]), 2.0)
    Array([1., 2.], dtype=float32)
    """
    x, y = promotion.promote_operands("fmin", *promotion.as_arrays_together("fmin", x1, x2))
    return ops.select(ops.bitwise_or(greater(y, x), ops.ne(y, y)), x, y)


# --- bits -----------------------------------------------------------------------------------


@operation
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Shift the bits of integers up: `x * 2**y`.

    It is the function of the operator `x << y`. The result is 0 where `y` is negative or not below
    the number of bits of the dtype.

    Args:
      x: an array of integers or bools, or a number.
      y: an array of integers or bools, or a number. The number of bits to shift by. It broadcasts
        with `x`.

    Returns:
      An array of integers of the broadcast shape and of the common dtype of the operands. Bools
      become int32.

    Raises:
      DtypeError: an operand has floats or complex numbers.
      ShapeError: the shapes do not broadcast together.

    >>> jnp.left_shift(jnp.array([1, 3]), 4)
    Array([16, 48], dtype=int32)
    """
    return bits.shift_left_p.apply(*promote_integers("left_shift", x, y))[0]


@operation
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Shift the bits of integers down: `x1 / 2**x2`, rounded down.

    It is the function of the operator `x1 >> x2`. The sign of signed integers is kept. Where `x2`
    is negative or not below the number of bits of the dtype, the result is 0, or -1 for negative
    `x1`.

    Args:
      x1: an array of integers or bools, or a number.
      x2: an array of integers or bools, or a number. The number of bits to shift by. It broadcasts
        with `x1`.

    Returns:
      An array of integers of the broadcast shape and of the common dtype of the operands. Bools
      become int32.

    Raises:
      DtypeError: an operand has floats or complex numbers.
      ShapeError: the shapes do not broadcast together.

    >>> jnp.right_shift(jnp.array([17, -8]), 2)
    Array([ 4, -2], dtype=int32)
    """
    x, y = promote_integers("right_shift", x1, x2)
    if dtypes.is_unsigned(x.dtype):
        return bits.shift_right_logical_p.apply(x, y)[0]
    return bits.shift_right_arithmetic_p.apply(x, y)[0]


bitwise_left_shift = alias(left_shift, "bitwise_left_shift")
bitwise_right_shift = alias(right_shift, "bitwise_right_shift")


@operation
def bitwise_count(x: ArrayLike, /) -> Array:
    """Count the bits that are set in the absolute value of integers.

    It counts the elements of a set that is stored as a bit mask, for example. A bool counts as 0
    or 1.

    Args:
      x: an array of integers or bools, or a number.

    Returns:
      An array of uint8 of the shape of the operand.

    Raises:
      DtypeError: the operand has floats or complex numbers.

    >>> jnp.bitwise_count(jnp.array([7, -7, 0]))
    Array([3, 3, 0], dtype=uint8)
    """
    x = promotion.as_array(x, "bitwise_count")
    if dtypes.is_inexact(x.dtype):
        raise DtypeError(f"bitwise_count: operands must be bool or integers; got {x.aval}.")
    if dtypes.is_bool(x.dtype):
        return ops.convert(x, np.dtype(np.uint8))
    return ops.convert(bits.population_count_p.apply(abs(x))[0], np.dtype(np.uint8))


# --- the parts of floats --------------------------------------------------------------------


@operation
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return the next float after `x` in the direction of `y`.

    The result is `y` where the operands are equal. The function has no derivative.

    Args:
      x: an array of integers, floats or bools, or a number. Integers and bools become floats
        first.
      y: an array of integers, floats or bools, or a number. It broadcasts with `x`.

    Returns:
      An array of floats of the broadcast shape.

    Raises:
      DtypeError: an operand is complex.
      ShapeError: the shapes do not broadcast together.
      MissingRule: the function is differentiated.

    >>> jnp.nextafter(1.0, 2.0) - 1.0
    Array(1.1920929e-07, dtype=float32, weak_type=True)
    """
    return bits.nextafter_p.apply(*promote_reals("nextafter", x, y))[0]


@operation
def spacing(x: ArrayLike, /) -> Array:
    """Compute the distance from each number to the next float away from 0.

    The distance has the sign of the operand. It is NaN for infinity and NaN. As in NumPy, the
    distance of a float16 is that to the next number above it, which has no sign. The derivative is
    0.

    Args:
      x: an array of integers, floats or bools, or a number. Integers and bools become floats
        first.

    Returns:
      An array of floats of the shape of the operand.

    Raises:
      DtypeError: the operand is complex.

    >>> jnp.spacing(jnp.array([1.0, -1024.0]))
    Array([ 1.1920929e-07, -1.2207031e-04], dtype=float32)
    """
    x = promotion.as_inexact("spacing", x)
    check_real("spacing", x)
    word, mantissa, _ = describe_float(x.dtype)
    # in bits, since the processor may take a subnormal for 0
    pattern, shift = bits.bitcast_convert_type(x, word), full(x.shape, mantissa, word)
    zero, one = literal(0, word), full(x.shape, 1, word)
    size = ops.bitwise_and(pattern, literal(int(np.iinfo(word).max), word))
    below = ops.bitwise_and(ops.lt(pattern, zero), ops.gt(size, zero))
    if x.dtype == np.float16:
        size = ops.select(below, ops.sub(size, one), size)
    field = bits.shift_right_arithmetic_p.apply(size, shift)[0]
    normal = bits.shift_left_p.apply(ops.sub(field, shift), shift)[0]
    tiny = bits.shift_left_p.apply(one, ops.max(ops.sub(field, one), zero))[0]
    gap = bits.bitcast_convert_type(ops.select(ops.gt(field, shift), normal, tiny), x.dtype)
    gap = ops.select(ops.is_finite(x), gap, literal_like(np.nan, x))
    return gap if x.dtype == np.float16 else ops.select(below, ops.neg(gap), gap)


@operation(static=("out",))
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """Split numbers into their fractional and their integral parts.

    The integral part is rounded toward 0, so that both parts have the sign of the operand, zeros
    too. The fractional part of an infinity is 0.

    Args:
      x: an array of integers, floats or bools, or a number. Integers and bools become floats
        first.
      out: must be None.

    Returns:
      A pair of arrays of floats of the shape of the operand: the fractional part and the integral
      part.

    Raises:
      DtypeError: the operand is complex.
      NotImplementedError: `out` is not None.

    >>> jnp.modf(jnp.array([2.75, -1.5]))
    (Array([ 0.75, -0.5 ], dtype=float32), Array([ 2., -1.], dtype=float32))
    """
    promotion.refuse_out("modf", out)
    x = promotion.as_inexact("modf", x)
    check_real("modf", x)
    negative, size = ops.lt(x, literal_like(0, x)), ops.abs(x)
    # The fraction of the size is negated, as x - x is +0.0; -0.0 has no size and stays itself.
    rest = ops.sub(ops.select(negative, ops.neg(x), x), ops.floor(size))
    endless = ops.eq(size, literal_like(np.inf, x))
    rest = ops.select(endless, literal_like(0, x), rest)
    return ops.select(negative, ops.neg(rest), rest), round_toward_zero(x)


def describe_float(dtype: np.dtype) -> tuple[np.dtype, int, int]:
    """The integer dtype of a float's bits, how many are mantissa, and the exponent's bias."""
    limits = dtypes.finfo(dtype)
    return np.dtype(f"int{8 * dtype.itemsize}"), int(limits.nmant), 1 - int(limits.minexp)


@operation
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Split floats into a fraction and a power of 2: `x = m * 2**e` with `0.5 <= |m| < 1`.

    For 0, infinity and NaN the fraction is the operand and the exponent is 0. The derivative of
    the fraction is `2**-e`. `ldexp` is the inverse.

    Args:
      x: an array of integers, floats or bools, or a number. Integers and bools become floats
        first.

    Returns:
      A pair of arrays of the shape of the operand: fractions, which are floats, and exponents,
      which are int32.

    Raises:
      DtypeError: the operand is complex.

    >>> jnp.frexp(jnp.array([8.0, -0.75, 0.0]))
    (Array([ 0.5 , -0.75,  0.  ], dtype=float32), Array([4, 0, 0], dtype=int32))
    """
    x = promotion.as_inexact("frexp", x)
    check_real("frexp", x)
    if x.dtype.itemsize == 1:  # formats of a byte have no infinity, or no sign
        fraction, exponent = split_exponent(ops.convert(x, np.dtype(np.float32)))
        return ops.convert(fraction, x.dtype), exponent
    return split_exponent(x)


@custom_jvp
def split_exponent(x: Any) -> tuple[Any, Any]:
    """Compute `frexp` from bits, which have no derivative; the fraction's is that of x * 2**-e."""
    word, mantissa, bias = describe_float(x.dtype)
    mask = (1 << (8 * word.itemsize - 1 - mantissa)) - 1
    pattern = bits.bitcast_convert_type(x, word)
    size = ops.bitwise_and(pattern, literal(int(np.iinfo(word).max), word))
    # a subnormal is a count of the least steps; the processor may take it for 0, but not the count
    tiny = ops.lt(size, literal(1 << mantissa, word))
    scaled = bits.bitcast_convert_type(ops.select(tiny, ops.convert(size, x.dtype), x), word)
    shifted = bits.shift_right_arithmetic_p.apply(scaled, full(x.shape, mantissa, word))[0]
    field = ops.bitwise_and(shifted, literal(mask, word))
    shift = ops.select(tiny, literal(2 * bias + mantissa - 2, word), literal(bias - 1, word))
    sign = ops.bitwise_and(pattern, literal(int(np.iinfo(word).min), word))
    half = ops.bitwise_and(scaled, literal((1 << mantissa) - 1, word))
    half = ops.bitwise_or(ops.bitwise_or(half, literal((bias - 1) << mantissa, word)), sign)
    as_is = ops.bitwise_or(ops.eq(size, literal(0, word)), ops.eq(field, literal(mask, word)))
    exponent = ops.convert(ops.sub(field, shift), np.dtype(np.int32))
    exponent = ops.select(as_is, literal(0, exponent.dtype), exponent)
    return ops.select(as_is, x, bits.bitcast_convert_type(half, x.dtype)), exponent


@split_exponent.defjvp
def split_exponent_jvp(primals: Any, tangents: Any) -> Any:
    """Write the derivative of the fraction."""
    fraction, exponent = split_exponent(*primals)
    slopes = ldexp(tangents[0], ops.neg(exponent)), np.zeros(exponent.shape, dtypes.float0)
    return (fraction, exponent), slopes


@operation
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute `x1 * 2**x2` for integers `x2`.

    The result is exact unless it overflows or is subnormal. The function is the inverse of
    `frexp`.

    Args:
      x1: an array of integers, floats or bools, or a number. Integers and bools become floats
        first.
      x2: an array of integers, or a number. It broadcasts with `x1`.

    Returns:
      An array of floats of the broadcast shape and of the dtype of `x1`.

    Raises:
      DtypeError: `x1` is complex, or `x2` has floats or complex numbers.
      ShapeError: the shapes do not broadcast together.

    >>> jnp.ldexp(jnp.array([0.5, -0.75]), jnp.array([4, 0]))
    Array([ 8.  , -0.75], dtype=float32)
    """
    x, n = promotion.as_inexact("ldexp", x1), promotion.as_array(x2, "ldexp")
    check_real("ldexp", x)
    if dtypes.is_inexact(n.dtype):
        raise DtypeError(f"ldexp: x2 must be integers; got {n.aval}.")
    if x.dtype.itemsize < 4:  # rounded once
        return ops.convert(ldexp(ops.convert(x, np.dtype(np.float32)), n), x.dtype)
    word, mantissa, bias = describe_float(x.dtype)
    n = ops.convert(n, dtypes.default_int())
    limit = 3 * (bias - 1)
    n = ops.max(literal(-limit, n.dtype), ops.min(n, literal(limit, n.dtype)))
    third = ops.div(n, literal(3, n.dtype))
    for part in (third, third, ops.sub(n, ops.mul(third, literal(2, n.dtype)))):
        field = ops.convert(ops.add(part, literal(bias, n.dtype)), word)
        power = bits.shift_left_p.apply(field, full(field.shape, mantissa, word))[0]
        power = bits.bitcast_convert_type(power, x.dtype)
        if JAXLIB < (0, 12) or not power.shape:
            # XLA multiplies powers that it knows with each other first, which may overflow. XLA
            # 0.12 does so with numbers only.
            power = lax.optimization_barrier(power)
        x = ops.mul(*promotion.broadcast_operands("ldexp", x, power))
    return x


attach_ufunc_methods(globals())
