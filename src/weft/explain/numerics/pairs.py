"""Arithmetic on pairs of float64: numbers of about 100 bits, to judge results in float64.

A pair is the unevaluated sum of two floats; the second is at most half a unit in the last place of
the first. Products are split such that each partial product is exact, so that XLA may contract a
product and a sum into one operation without changing the result. Sums and products of matrices are
computed from slices of few bits, whose sums are exact in any order (Ozaki's method).

Sources: T. J. Dekker, Numerische Mathematik 18 (1971); Y. Hida, X. S. Li, D. H. Bailey, "Algorithms
for quad-double precision floating point arithmetic" (2001); K. Ozaki, T. Ogita, S. Oishi, S. M.
Rump, "Error-free transformations of matrix multiplication", Numerical Algorithms 59 (2012).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import weft.numpy as jnp
from weft import dtypes, lax

F64 = np.dtype(np.float64)
PI = Fraction(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899863"
)
LN2 = Fraction(
    "0.693147180559945309417232121458176568075500134360255254120680009493393621969694716"
)
MAX_ANGLE = 2.0**45  # beyond it the reduction to a quadrant would need more bits of pi
BITS = 104  # of a sum that is computed from slices
HALVINGS = 8  # of the argument of exp; its power series then needs 10 terms


class Pair(NamedTuple):
    """A number as the sum of two float64 arrays, or of two complex128 arrays."""

    high: Any
    low: Any


# --- exact sums and products ----------------------------------------------------------------------


def pair_of(x: Any) -> Pair:
    """Return a float64 or complex128 array as a pair."""
    return Pair(x, jnp.zeros_like(x))


def split_number(x: Fraction) -> tuple[float, float]:
    """Return the floats of a pair for a rational number."""
    high = float(x)
    return high, float(x - Fraction(high))


def number(x: Fraction | int, like: Any) -> Pair:
    """Return a rational number as a pair of arrays of the shape of `like`.

    The barrier hides the number from XLA, which otherwise simplifies (x + 1) - 1 to x.
    """
    high, low = lax.optimization_barrier(jnp.asarray(split_number(Fraction(x)), F64))
    return Pair(*[jnp.broadcast_to(part, jnp.shape(like)) for part in (high, low)])


def sum_exactly(x: Any, y: Any) -> Pair:
    """Return x + y without rounding (Knuth)."""
    total = x + y
    part = total - x
    return Pair(total, (x - (total - part)) + (y - part))


def join(x: Any, y: Any) -> Pair:
    """Return x + y without rounding, where |x| >= |y| or x is 0 (Dekker)."""
    total = x + y
    return Pair(total, y - (total - x))


def halve_bits(x: Any) -> tuple[Any, Any]:
    """Return two floats of at most 26 and 27 bits with the sum x."""
    whole = lax.bitcast_convert_type(x, np.int64)
    high = lax.bitcast_convert_type(whole & -(1 << 27), F64)
    return high, x - high


def multiply_exactly(x: Any, y: Any) -> Pair:
    """Return x * y with an error of at most 2**-104 of it.

    The three larger partial products are exact.
    """
    a, b = halve_bits(x)
    c, d = halve_bits(y)
    middle, rest = sum_exactly(a * d, b * c)
    high, low = join(a * c, middle)
    return join(high, low + (rest + b * d))


# --- arithmetic -----------------------------------------------------------------------------------


def guard(plain: Any, found: Pair) -> Pair:
    """Return a pair; where it is not finite, the result of the operation in float64."""
    good = jnp.isfinite(found.high) & jnp.isfinite(plain) & jnp.isfinite(found.low)
    return Pair(jnp.where(good, found.high, plain), jnp.where(good, found.low, 0))


def is_complex(x: Pair) -> bool:
    """Return True for a pair of complex128 arrays."""
    return dtypes.is_complex(jnp.result_type(x.high))


def negate(x: Pair) -> Pair:
    """Return -x."""
    return Pair(-x.high, -x.low)


def add(x: Pair, y: Pair) -> Pair:
    """Return x + y."""
    high, low = sum_exactly(x.high, y.high)
    more, least = sum_exactly(x.low, y.low)
    high, low = join(high, low + more)
    return join(high, low + least)


def subtract(x: Pair, y: Pair) -> Pair:
    """Return x - y."""
    return add(x, negate(y))


def multiply(x: Pair, y: Pair) -> Pair:
    """Return x * y."""
    if is_complex(x) or is_complex(y):
        a, b, c, d = real(x), imag(x), real(y), imag(y)
        return complex_of(
            subtract(multiply(a, c), multiply(b, d)), add(multiply(a, d), multiply(b, c))
        )
    high, low = multiply_exactly(x.high, y.high)
    return join(high, low + (x.high * y.low + x.low * y.high))


def scale(x: Pair, power: float) -> Pair:
    """Return x times a power of two."""
    return Pair(x.high * power, x.low * power)


def divide(x: Pair, y: Pair) -> Pair:
    """Return x / y, by long division. Quotients of complex numbers are left to the caller."""
    first = x.high / y.high
    rest = subtract(x, multiply(y, pair_of(first)))
    second = rest.high / y.high
    rest = subtract(rest, multiply(y, pair_of(second)))
    third = rest.high / y.high
    return add(join(first, second), pair_of(third))


def square_pair(x: Pair) -> Pair:
    """Return x * x."""
    return multiply(x, x)


def sqrt(x: Pair) -> Pair:
    """Return the square root, by a step of Newton's method (Karp)."""
    root = jnp.sqrt(x.high)
    rest = subtract(x, multiply(pair_of(root), pair_of(root)))
    return join(root, rest.high / (2 * root))


def cbrt(x: Pair) -> Pair:
    """Return the cube root, by a step of Newton's method."""
    root = jnp.cbrt(x.high)
    rest = subtract(x, multiply(square_pair(pair_of(root)), pair_of(root)))
    return join(root, rest.high / (3 * root * root))


def power(x: Pair, n: int) -> Pair:
    """Return x**n for an integer n."""
    found, factor, left = None, x, abs(n)
    while left:
        if left & 1:
            found = factor if found is None else multiply(found, factor)
        left >>= 1
        factor = square_pair(factor) if left else factor
    if found is None:
        return number(1, x.high)
    return divide(number(1, x.high), found) if n < 0 else found


def choose(mask: Any, x: Pair, y: Pair) -> Pair:
    """Return x where the mask is true, and y elsewhere."""
    return Pair(jnp.where(mask, x.high, y.high), jnp.where(mask, x.low, y.low))


def absolute(x: Pair) -> Pair:
    """Return |x| of a real pair."""
    return choose(jnp.signbit(x.high), negate(x), x)


def is_less(x: Pair, y: Pair) -> Any:
    """Return where x < y."""
    return (x.high < y.high) | ((x.high == y.high) & (x.low < y.low))


def maximum(x: Pair, y: Pair) -> Pair:
    """Return the larger of x and y."""
    return choose(is_less(x, y), y, x)


def minimum(x: Pair, y: Pair) -> Pair:
    """Return the smaller of x and y."""
    return choose(is_less(y, x), y, x)


def real(x: Pair) -> Pair:
    """Return the real part."""
    return Pair(jnp.real(x.high), jnp.real(x.low))


def imag(x: Pair) -> Pair:
    """Return the imaginary part."""
    return Pair(jnp.imag(x.high), jnp.imag(x.low))


def complex_of(x: Pair, y: Pair) -> Pair:
    """Return x + iy."""
    return Pair(lax.complex(x.high, y.high), lax.complex(x.low, y.low))


# --- exponential functions and logarithms ---------------------------------------------------------


def sum_series(x: Pair, terms: Sequence[Fraction]) -> Pair:
    """Return a polynomial of x by Horner's rule; the coefficient of the highest power is last."""
    rows = tuple(np.array([split_number(t) for t in reversed(terms)]).T)
    zero = pair_of(jnp.zeros_like(x.high))

    def step(total: Pair, row: Any) -> tuple[Pair, None]:
        term = Pair(*[jnp.broadcast_to(r, jnp.shape(x.high)) for r in row])
        return add(multiply(total, x), term), None

    return lax.scan(step, zero, rows)[0]


def ldexp(x: Pair, k: Any) -> Pair:
    """Return x * 2**k for a float array k of whole numbers, in two steps to reach all exponents."""
    half = jnp.floor(k / 2)
    for part in (half, k - half):
        bits = (jnp.clip(part, -1022, 1023).astype(np.int64) + 1023) << 52
        factor = lax.bitcast_convert_type(bits, F64)
        x = Pair(x.high * factor, x.low * factor)
    return x


def reduce_exp(x: Pair) -> tuple[Pair, Any]:
    """Return exp(x) * 2**-k - 1, and the whole number k; k is 0 if |x| is small."""
    k = jnp.round(jnp.clip(x.high, -800, 800) / float(LN2))
    rest = subtract(x, multiply(number(LN2, k), pair_of(k)))
    small = scale(rest, 2.0**-HALVINGS)
    series = sum_series(small, [Fraction(1, math.factorial(n)) for n in range(1, 12)])
    found = multiply(series, small)

    def double(i: Any, e: Pair) -> Pair:
        return add(scale(e, 2.0), square_pair(e))

    return lax.fori_loop(0, HALVINGS, double, found), k


def exp(x: Pair) -> Pair:
    """Return the exponential function."""
    found, k = reduce_exp(x)
    return ldexp(add(found, number(1, k)), k)


def expm1(x: Pair) -> Pair:
    """Return exp(x) - 1."""
    found, k = reduce_exp(x)
    one = number(1, k)
    far = subtract(ldexp(add(found, one), k), one)
    return choose(k == 0, found, far)


def log(x: Pair) -> Pair:
    """Return the logarithm, by a step of Newton's method."""
    k = jnp.round(jnp.log2(x.high))
    k = jnp.where(jnp.isfinite(k), k, 0.0)
    part = ldexp(x, -k)
    start = jnp.log(part.high)
    grown = expm1(pair_of(-start))
    one = number(1, start)
    off = add(subtract(part, one), multiply(part, grown))
    found = add(pair_of(start), subtract(off, scale(square_pair(off), 0.5)))
    return add(found, multiply(number(LN2, k), pair_of(k)))


def log1p(x: Pair) -> Pair:
    """Return log(1 + x). Near zero it is found without the sum."""
    start = jnp.log1p(x.high)
    grown = expm1(pair_of(-start))
    off = add(add(x, grown), multiply(x, grown))
    near = add(pair_of(start), subtract(off, scale(square_pair(off), 0.5)))
    far = log(add(x, number(1, start)))
    return choose(jnp.abs(x.high) < 0.5, near, far)


def exp2(x: Pair) -> Pair:
    """Return 2**x."""
    return exp(multiply(x, number(LN2, x.high)))


def log2(x: Pair) -> Pair:
    """Return the logarithm with base 2."""
    return divide(log(x), number(LN2, x.high))


def raise_to(x: Pair, y: Pair) -> Pair:
    """Return x**y."""
    plain = jnp.power(x.high, y.high)
    size = exp(multiply(y, log(absolute(x))))
    return choose(plain < 0, negate(size), size)


def logistic(x: Pair) -> Pair:
    """Return 1 / (1 + exp(-x))."""
    small = exp(negate(absolute(x)))
    one = number(1, x.high)
    top = choose(x.high < 0, small, one)
    return divide(top, add(one, small))


def logaddexp(x: Pair, y: Pair) -> Pair:
    """Return log(exp(x) + exp(y))."""
    apart = negate(absolute(subtract(x, y)))
    return add(maximum(x, y), log1p(exp(apart)))


def sinh(x: Pair) -> Pair:
    """Return the hyperbolic sine."""
    grown = expm1(absolute(x))
    one = number(1, x.high)
    found = scale(add(grown, divide(grown, add(grown, one))), 0.5)
    return choose(x.high < 0, negate(found), found)


def cosh(x: Pair) -> Pair:
    """Return the hyperbolic cosine."""
    grown = exp(absolute(x))
    one = number(1, x.high)
    return scale(add(grown, divide(one, grown)), 0.5)


def tanh(x: Pair) -> Pair:
    """Return the hyperbolic tangent."""
    grown = expm1(scale(absolute(x), 2.0))
    two = number(2, x.high)
    found = divide(grown, add(grown, two))
    return choose(x.high < 0, negate(found), found)


def asinh(x: Pair) -> Pair:
    """Return the inverse of the hyperbolic sine."""
    size, one = absolute(x), number(1, x.high)
    root = sqrt(add(one, square_pair(size)))
    found = log1p(add(size, divide(square_pair(size), add(one, root))))
    return choose(x.high < 0, negate(found), found)


def acosh(x: Pair) -> Pair:
    """Return the inverse of the hyperbolic cosine."""
    one = number(1, x.high)
    above = subtract(x, one)
    root = sqrt(multiply(above, add(x, one)))
    return log1p(add(above, root))


def atanh(x: Pair) -> Pair:
    """Return the inverse of the hyperbolic tangent."""
    size, one = absolute(x), number(1, x.high)
    found = scale(log1p(divide(scale(size, 2.0), subtract(one, size))), 0.5)
    return choose(x.high < 0, negate(found), found)


# --- circular functions ---------------------------------------------------------------------------


def split_half_pi() -> list[float]:
    """Return pi / 2 as a sum of three floats."""
    left, parts = PI / 2, []
    for _ in range(3):
        parts.append(float(left))
        left -= Fraction(parts[-1])
    return parts


HALF_PI = split_half_pi()


def turn(x: Pair) -> tuple[Pair, Pair]:
    """Return the sine and the cosine."""
    k = jnp.round(x.high * (2 / math.pi))
    rest = x
    for part in HALF_PI:
        rest = subtract(rest, multiply_exactly(k, jnp.full_like(k, part)))
    squared = negate(square_pair(rest))
    odd = sum_series(squared, [Fraction(1, math.factorial(2 * n + 1)) for n in range(15)])
    even = sum_series(squared, [Fraction(1, math.factorial(2 * n)) for n in range(15)])
    sine, cosine = multiply(odd, rest), even
    quarter = jnp.mod(k, 4.0)
    swap = (quarter == 1) | (quarter == 3)
    sine, cosine = choose(swap, cosine, sine), choose(swap, sine, cosine)
    sine = choose(quarter >= 2, negate(sine), sine)
    return sine, choose((quarter == 1) | (quarter == 2), negate(cosine), cosine)


def near_only(x: Pair, found: Pair, plain: Any, slope: Any) -> Pair:
    """Return a function of an angle; to first order for angles beyond `MAX_ANGLE`."""
    far = sum_exactly(plain, slope * x.low)
    return choose(jnp.abs(x.high) < MAX_ANGLE, found, far)


def sin(x: Pair) -> Pair:
    """Return the sine."""
    return near_only(x, turn(x)[0], jnp.sin(x.high), jnp.cos(x.high))


def cos(x: Pair) -> Pair:
    """Return the cosine."""
    return near_only(x, turn(x)[1], jnp.cos(x.high), -jnp.sin(x.high))


def tan(x: Pair) -> Pair:
    """Return the tangent."""
    plain = jnp.tan(x.high)
    return near_only(x, divide(*turn(x)), plain, 1 + plain * plain)


def atan2(y: Pair, x: Pair) -> Pair:
    """Return the angle of the point (x, y), by a step of Newton's method."""
    start = jnp.arctan2(y.high, x.high)
    sine, cosine = turn(pair_of(start))
    across = subtract(multiply(y, cosine), multiply(x, sine))
    along = add(multiply(x, cosine), multiply(y, sine))
    return add(pair_of(start), divide(across, along))


def atan(x: Pair) -> Pair:
    """Return the inverse of the tangent."""
    return atan2(x, number(1, x.high))


def find_other_leg(x: Pair) -> Pair:
    """Return sqrt(1 - x**2)."""
    one = number(1, x.high)
    return sqrt(multiply(subtract(one, x), add(one, x)))


def asin(x: Pair) -> Pair:
    """Return the inverse of the sine."""
    return atan2(x, find_other_leg(x))


def acos(x: Pair) -> Pair:
    """Return the inverse of the cosine."""
    return atan2(find_other_leg(x), x)


# --- sums and products of matrices ----------------------------------------------------------------


def slice_bits(x: Pair, bits: int, count: int, axes: Sequence[int] | None = None) -> list:
    """Return arrays with the sum x, each with at most `bits` bits above a common unit.

    The units are relative to the largest element along `axes`, or of all.
    """
    top = jnp.max(jnp.abs(x.high), axis=axes, keepdims=True, initial=2.0**-900)
    whole = lax.bitcast_convert_type(top, np.int64)
    unit = lax.bitcast_convert_type(whole & -(1 << 52), F64) * 2  # a power of two above all
    found, rest = [], x
    for _ in range(count):
        unit = unit * 2.0**-bits
        taken = jnp.round(rest.high / unit) * unit
        found.append(taken)
        rest = sum_exactly(rest.high - taken, rest.low)
    return found


def add_slices(terms: Sequence[Any]) -> Pair:
    """Return the sum of exact terms, which should come from the smallest to the largest."""
    total = pair_of(terms[0])
    for term in terms[1:]:
        total = add(total, pair_of(term))
    return total


def sum_linearly(
    call: Callable, xs: Sequence[Any], terms: int, axes: Sequence[int] | None = None
) -> Pair:
    """Return a sum of elements of operands; `call(*xs)` computes it in float64.

    Args:
      call: the operation, which adds and subtracts elements of its operands.
      xs: the operands: pairs, or arrays of indices, which are passed as they are.
      terms: the largest number of terms of an element of the result.
      axes: the axes that are summed over, if the sum is over all of them and of one operand.
    """
    bits = 53 - max(1, math.ceil(math.log2(max(terms, 1) + 1)))
    count = -(-BITS // bits) + 1
    pairs = [x for x in xs if isinstance(x, Pair)]
    tops = [jnp.max(jnp.abs(p.high), initial=0.0) for p in pairs]
    if len(pairs) > 1:  # all with the units of the largest: an element more, removed again
        top = jnp.max(jnp.stack(tops))
        slices = [
            [s[:-1].reshape(jnp.shape(p.high)) for s in slice_bits(Pair(
                jnp.append(jnp.ravel(p.high), top), jnp.append(jnp.ravel(p.low), 0.0)
            ), bits, count)]
            for p in pairs
        ]  # fmt: skip
    else:
        slices = [slice_bits(pairs[0], bits, count, axes)]
    found = []
    for group in zip(*slices, strict=True):
        rows = iter(group)
        found.append(call(*[next(rows) if isinstance(x, Pair) else x for x in xs]))
    return add_slices(found[::-1])


def contract(
    call: Callable,
    x: Pair,
    y: Pair,
    terms: int,
    axes: Sequence[Sequence[int] | None] = (None, None),
) -> Pair:
    """Return a sum of products, as of two matrices; `call(x, y)` computes it in float64.

    `terms` is the number of products that are added up, `axes` are those of each operand that are
    summed over.
    """
    bits = (53 - math.ceil(math.log2(max(terms, 1)))) // 2
    count = -(-BITS // bits)
    left, right = slice_bits(x, bits, count, axes[0]), slice_bits(y, bits, count, axes[1])
    orders = sorted(
        ((i, j) for i in range(count) for j in range(count) if i + j < count), key=sum, reverse=True
    )
    found = [call(left[i], right[j]) for i, j in orders]
    return add_slices(found)
