"""Formulas of special functions: elementary functions of `Expr`, series, loops, pairs of floats.

A formula is a Python function of `Expr`s, run when a program is lowered; `formula` makes it the
lowering of a primitive, which has the derivative.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.primitives.expr import Expr
from weft.primitives.special.tables import SIN_PI
from weft.primitives.wide import write_log, write_log1p

_NO_DOUBLES = ("METAL", "metal", "mps")  # platforms that have no float64


def define_function(op: str) -> Callable[[Expr], Expr]:
    """A function of one operand that StableHLO has."""
    return lambda x: x.apply(op)


exp = define_function("exponential")
expm1 = define_function("exponential_minus_one")
sqrt = define_function("sqrt")
sine = define_function("sine")
cosine = define_function("cosine")
floor = define_function("floor")
sign = define_function("sign")
nearest = define_function("round_nearest_even")


def log(x: Expr) -> Expr:
    """Return the logarithm, which is a formula in float64."""
    return write_log(x) if x.dtype == np.float64 else x.apply("log")


def log1p(x: Expr) -> Expr:
    """Return log(1 + x). XLA's function is less exact."""
    return x.apply("log_plus_one") if dtypes.is_complex(x.dtype) else write_log1p(x)


def equal(x: Expr, y: Any) -> Expr:
    """Return True where x is y."""
    return x.compare("EQ", y)


def minimum(x: Expr, y: Any) -> Expr:
    """The smaller."""
    return x.apply("minimum", y)


def maximum(x: Expr, y: Any) -> Expr:
    """The larger."""
    return x.apply("maximum", y)


def where(condition: Expr, x: Any, y: Any) -> Any:
    """x where the condition holds, else y; of numbers, Reals or Pairs."""
    if isinstance(x, Pair) or isinstance(y, Pair):
        x, y = to_pair(x), to_pair(y)
        alike = type(x.lo) is float and type(y.lo) is float and x.lo == y.lo
        lo = x.lo if alike else where(condition, x.lo, y.lo)
        return Pair(where(condition, x.hi, y.hi), lo)
    if x is y:
        return x
    return condition.select(x if isinstance(x, Expr) else y.like(x), y)


def choose(default: Any, *cases: tuple[Expr, Any]) -> Any:
    """The value of the last case whose condition holds, else the default."""
    out = default
    for condition, value in cases:
        out = where(condition, value, out)
    return out


def is_odd(x: Expr) -> Expr:
    """Return True where a whole number is odd."""
    half = x * 0.5
    return floor(half).compare("NE", half)


def sin_pi(x: Expr) -> Expr:
    """sin(pi x), exactly 0 at whole numbers."""
    whole = nearest(x)
    part = x - whole
    out = part * series(part * part, SIN_PI)
    return where(is_odd(whole), -out, out)


def cos_pi(x: Expr) -> Expr:
    """cos(pi x), exactly 0 halfway between whole numbers."""
    return sin_pi(0.5 - abs(x - 2 * nearest(x * 0.5)))


# --- polynomials ----------------------------------------------------------------------------


@functools.cache
def powers(coefficients: tuple[float, ...], eps: float) -> tuple[float, ...]:
    """A Chebyshev series, as far as floats of this spacing tell, as coefficients of powers."""
    largest_one = max(map(abs, coefficients))
    kept = [Fraction(c) for c in coefficients]
    while abs(kept[-1]) < largest_one * eps / 16:
        kept.pop()
    before, last = [Fraction(1)], [Fraction(0), Fraction(1)]  # of Chebyshev's polynomials
    out = [kept[0], *[Fraction(0)] * (len(kept) - 1)]
    for c in kept[1:]:
        for i, v in enumerate(last):
            out[i] += c * v
        following = [Fraction(0), *[2 * v for v in last]]
        for i, v in enumerate(before):
            following[i] -= v
        before, last = last, following
    return tuple(map(float, out))


def series(x: Expr, table: tuple[float, float, tuple[float, ...]]) -> Expr:
    """A function on an interval by its Chebyshev series; beyond the interval its value at the end.

    As many terms are summed as the dtype that is wanted can tell.
    """
    low, high, coefficients = table
    t = (x.clamp(low, high) - (low + high) / 2) * (2 / (high - low))
    return t.polynomial(powers(coefficients, x.eps))


# --- loops ----------------------------------------------------------------------------------


def repeat(step: Callable, start: Sequence[Expr], active: Expr, limit: int = 10_000) -> list[Expr]:
    """Repeat step(n, *state) -> (active, *state) for n = 1, 2, ..., from the state `start`.

    An element is updated while it is active. The loop ends when no element is active, or at
    `limit`.
    """
    hlo, eps = active.hlo, active.eps
    one = hlo.constant(1, ShapedArray((), np.dtype(np.int32)))
    flag = ShapedArray((), np.dtype(bool))

    def going(n: Any, active: Any, *state: Any) -> list:
        dims = ", ".join(map(str, range(active.aval.ndim)))
        (some,) = hlo.op(
            "stablehlo.reduce",
            [active, hlo.constant(False, flag)],
            [flag],
            [hlo.block([flag, flag], lambda x, y: hlo.like("or", x, y))],
            dimensions=f"array<i64: {dims}>" if dims else "array<i64>",
        )
        bounded = hlo.compare("LE", n, hlo.constant(limit, n.aval))
        return hlo.like("and", some, bounded)

    def body(n: Any, active: Any, *state: Any) -> list:
        mask = Expr(hlo, active, eps)
        now = [Expr(hlo, v, eps) for v in state]
        count = hlo.spread(hlo.convert(n, state[0].aval.dtype), state[0].aval)
        more, *after = step(Expr(hlo, count, eps), *now)
        kept = [where(mask, x, y).value for x, y in zip(after, now, strict=True)]
        return [*hlo.like("add", n, hlo.constant(1, n.aval)), (mask & more).value, *kept]

    values = [one, active.value, *[x.value for x in start]]
    return [Expr(hlo, v, eps) for v in hlo.while_loop(values, going, body)[2:]]


# --- pairs of floats ------------------------------------------------------------------------


class Pair:
    """hi + lo, unevaluated: twice the digits (Dekker 1971), if eps is the dtype's own.

    If the wanted accuracy is less than the dtype's, `lo` stays 0 and costs nothing.
    """

    __slots__ = ("hi", "lo")

    def __init__(self, hi: Any, lo: Any):
        self.hi, self.lo = hi, lo

    def __add__(self, other: Any) -> Pair:
        other = to_pair(other)
        hi, lo = exact_sum(self.hi, other.hi)
        return renormalize(hi, add_parts(lo, add_parts(self.lo, other.lo)))

    __radd__ = __add__

    def __neg__(self) -> Pair:
        return Pair(-self.hi, -self.lo)

    def __sub__(self, other: Any) -> Pair:
        return self + -to_pair(other)

    def __rsub__(self, other: Any) -> Pair:
        return -self + other

    def __mul__(self, other: Any) -> Pair:
        other = to_pair(other)
        hi, lo = exact_product(self.hi, other.hi)
        cross = add_parts(multiply_parts(self.hi, other.lo), multiply_parts(self.lo, other.hi))
        return renormalize(hi, add_parts(lo, cross))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Pair:
        other = to_pair(other)
        first = self.hi / other.hi
        if not is_doubled(self.hi, other.hi):
            return Pair(first, 0.0)
        rest = self - other * first
        return renormalize(first, rest.hi / other.hi)

    def __rtruediv__(self, other: Any) -> Pair:
        return to_pair(other) / self

    @property
    def value(self) -> Expr:
        """The nearest float."""
        return add_parts(self.hi, self.lo)


def to_pair(x: Any) -> Pair:
    """A number, an Expr or a Pair as a Pair; a Fraction has its second part."""
    if isinstance(x, Pair):
        return x
    if isinstance(x, Fraction):
        return Pair(float(x), float(x - Fraction(float(x))))
    return Pair(x, 0.0)


def is_doubled(*parts: Any) -> bool:
    """Return True if pairs of these have second parts: whether no wider dtype is computed in."""
    real = next(x for x in parts if isinstance(x, Expr))
    return real.eps <= float(real.finfo.eps)


def add_parts(x: Any, y: Any) -> Any:
    """x + y, where a second part may be none."""
    return y if type(x) is float and x == 0 else x if type(y) is float and y == 0 else x + y


def multiply_parts(x: Any, y: Any) -> Any:
    """x * y, where a second part may be none."""
    return 0.0 if any(type(v) is float and v == 0 for v in (x, y)) else x * y


def renormalize(x: Any, y: Any) -> Pair:
    """x + y as a pair, |x| >= |y|."""
    if type(y) is float and y == 0 or not is_doubled(x, y):
        return Pair(x, 0.0)
    hi = x + y
    return Pair(hi, y - (hi - x))


def exact_sum(x: Any, y: Any) -> tuple[Any, Any]:
    """x + y and its rounding error (Knuth)."""
    hi = x + y
    if not is_doubled(x, y):
        return hi, 0.0
    part = hi - x
    return hi, (x - (hi - part)) + (y - part)


def exact_product(x: Any, y: Any) -> tuple[Any, Any]:
    """x * y and its rounding error."""
    hi = x * y
    if not is_doubled(x, y):
        return hi, 0.0
    x, y = (x, y) if isinstance(x, Expr) else (y, x)
    return hi, x.product_error(y, hi)


def exp_pair(x: Pair) -> Expr:
    """exp of a pair, its second part taken to first order."""
    out = exp(x.hi)
    return out + where(out < math.inf, out * x.lo, 0.0) if isinstance(x.lo, Expr) else out


_LN2_HIGH = Fraction(0x162E42FEE, 2**33)  # so few bits that its product with an exponent is exact
_LN2_LOW = (
    Fraction("0.693147180559945309417232121458176568075500134360255254120680009493393621969694")
    - _LN2_HIGH
)


def log_pair(x: Any) -> Pair:
    """The logarithm of a positive pair, relatively exact to twice the digits, at 1 too.

    2 artanh((m - 1) / (m + 1)) + e log 2 of m 2**e, m between sqrt(1/2) and sqrt(2).
    """
    x = to_pair(x)
    if not is_doubled(x.hi):
        near = x.hi if type(x.lo) is float else x.hi + x.lo
        return Pair(log(near), 0.0)
    m, e = split_exponent(x)
    top = renormalize(*exact_sum(m.hi - 1, m.lo))
    s = top / (top + 2)
    squared = s * s
    out = to_pair(squared.hi.polynomial([1 / (2 * k + 1) for k in range(6, 16)]))
    for k in range(5, 0, -1):
        out = out * squared + Fraction(1, 2 * k + 1)
    out = (out * squared) * s + s
    out = Pair(out.hi * 2, out.lo * 2)
    return (to_pair(e) * _LN2_LOW + out) + e * float(_LN2_HIGH)


def split_exponent(x: Pair) -> tuple[Pair, Expr]:
    """m and e of x = m 2**e, m a pair between sqrt(1/2) and sqrt(2)."""
    hi = x.hi
    bits, mantissa, bias = (np.int64, 52, 1023) if hi.dtype == np.float64 else (np.int32, 23, 127)
    root = int(np.array(math.sqrt(0.5), hi.dtype).view(bits))
    exponent = (hi.bitcast(bits) - root).apply("shift_right_arithmetic", mantissa)
    scale = (bias - exponent).apply("shift_left", mantissa).bitcast(hi.dtype)
    e = exponent.convert(hi.dtype)
    return Pair(hi * scale, multiply_parts(x.lo, scale)), e


# --- lowerings ------------------------------------------------------------------------------


def formula(fun: Callable, wide: bool = True) -> Callable:
    """The lowering of a function of Reals, to be an `Elementwise`'s operation.

    With `wide` it is computed in float64, where the platform has it, and rounded once; without, in
    the dtype of the operands, or float32 if that is smaller. Where an operand is NaN, so is it.
    """

    def lower(hlo: Any, aval: ShapedArray, *values: Any, **params: Any) -> Any:
        part = dtypes.real_dtype(aval.dtype)
        double = part == np.float64 or wide and hlo.platform not in _NO_DOUBLES
        dtype = np.dtype(np.float64 if double else np.float32)
        if dtypes.is_complex(aval.dtype):
            dtype = dtypes.complex_dtype(dtype)
        eps = 2.0**-52 if part == np.float64 else 2.0**-23
        reals = [Expr(hlo, hlo.convert(v, dtype), eps) for v in values]
        out = fun(*reals, **params)
        for x in reals:
            out = where(x.compare("NE", x), x, out)  # NaN stays NaN
        return hlo.convert(out.value, aval.dtype)

    return lower
