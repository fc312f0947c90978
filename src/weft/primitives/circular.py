"""Circular functions, their inverses, cube roots, remainders of float32 on the CPU, as formulas.

XLA:CPU calls the C library for each element, in 3 to 13 ms for a million; a formula in float64 is
vectorized, takes 0.4 to 0.9, and is exact to 0.51 units. It is written for large arrays alone, as
it takes longer to compile than a call. Those of float64 are in wide.py, but for remainders. The
kernel that is called where there is one takes 0.2 to 0.4, and is exact to 1.7 units.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from weft.primitives import wide
from weft.primitives.expr import F32, F64, Expr, polynomial
from weft.primitives.wide import I32, I64, choose_if_any, write_log

BITS = {F32: I32, F64: I64}
# of remainders: the least exponent of a divisor, as it is stored, that of a quotient that is too
# large, bits of the mantissa, the exponent of infinity
LIMITS = {F32: (27, 27, 23, 255), F64: (54, 50, 52, 2047)}

# 1 / (2 pi) in parts of 29 bits, whose products with a float32 are exact in float64, and a last one
# for products below 2**-17
_TURN = (
    *(0.15915494225919247, 8.327028684640414e-10, 5.69002511952534e-19),
    *(6.317065083361892e-27, 5.595982707708916e-36, 6.551007954373285e-45),
)
# Fits at Chebyshev's nodes, in x**2: sin(x) = x + x**3 p, cos(x) = 1 - x**2 / 2 + x**4 p for x up
# to pi / 4, atan(x) = x + x**3 p up to 1; each to 1e-9 of the result.
_SIN = (-0.166666666638356, 0.00833333186677624, -0.000198400823650868, 2.72493520493614e-06)
_COS = (0.0416666666643044, -0.00138888876652974, 2.48005966873925e-05, -2.73004757666554e-07)
_ATAN = (
    *(-0.333333332988677, 0.199999913424741, -0.142853521288634, 0.111051339539788),
    *(-0.0903946604820640, 0.0742750313090291, -0.0578314807122139, 0.0386392696068696),
    *(-0.0195234180464221, 0.00632959465485889, -0.000960571870189740),
)


def write_power(x: Expr, y: Expr) -> Expr:
    """x**y, of float32 as exp(y log |x|) of float64, but for signs and where that is 0 inf."""
    infinite, odd = abs(y).compare("EQ", math.inf), y * 0.5
    whole = y.apply("floor").compare("EQ", y)
    odd = whole & odd.apply("floor").compare("NE", odd)
    if x.dtype == F64:
        out = wide.power(abs(x), y)
    else:
        out = (write_log(abs(x).convert(F64)) * y.convert(F64)).apply("exponential").convert(F32)
    out = ((x.bitcast(BITS[x.dtype]) < 0) & odd).select(-out, out)
    out = (whole | (x >= 0) | (x <= -math.inf)).select(out, math.nan)
    one = y.compare("EQ", 0) | x.compare("EQ", 1) | (infinite & x.compare("EQ", -1))
    return one.select(x.like(1), out)


def find_quadrant(x: Expr) -> tuple[Expr, Expr, Expr]:
    """(sin r, cos r, k) of x = r + k pi / 2, |r| <= pi / 4: Payne and Hanek's reduction.

    Whole turns are taken off of each product of x with a part of 1 / (2 pi), which is exact.
    """
    *parts, last = _TURN
    turns = [t - t.apply("round_nearest_even") for t in (x * part for part in parts)]
    k = (sum(turns[1:], turns[0]) * 4).apply("round_nearest_even")
    r = (sum(turns[1:], turns[0] - k * 0.25) + x * last) * math.tau
    z = r * r
    cosine = 1 - z * 0.5 + z * z * polynomial(z, _COS)
    return r + r * z * polynomial(z, _SIN), cosine, k.convert(I32)


def circular(turned: int) -> Callable[[Expr], Expr]:
    """The sine, or that of x and `turned` quarters of a turn."""

    def write(x: Expr) -> Expr:
        sine, cosine, k = find_quadrant(x)
        k = k + turned if turned else k
        out = (k & 1).compare("NE", 0).select(cosine, sine)
        return (k & 2).compare("NE", 0).select(-out, out)

    return write


def tangent(x: Expr) -> Expr:
    """sin / cos, or of odd quarters -cos / sin."""
    sine, cosine, k = find_quadrant(x)
    odd = (k & 1).compare("NE", 0)
    return odd.select(-cosine, sine) / odd.select(sine, cosine)


def find_angle(y: Expr, x: Expr) -> Expr:
    """atan(y / x) in the quadrant of the point (x, y), x and y of either sign."""
    a, b = abs(y), abs(x)
    low, high = a.apply("minimum", b), a.apply("maximum", b)
    t = low.compare("EQ", high).select(low.like(1), low / high)  # infinities have a ratio too
    t = high.compare("EQ", 0).select(high, t)
    z = t * t
    angle = t + t * z * polynomial(z, _ATAN)
    angle = (a > b).select(math.pi / 2 - angle, angle)
    angle = (x.bitcast(I64) < 0).select(math.pi - angle, angle)
    angle = (y.bitcast(I64) < 0).select(-angle, angle)
    return x.compare("EQ", x).select(angle, x)  # a NaN in y is still there


def cube_root(x: Expr) -> Expr:
    """Two steps of Halley's method, from a third of the exponent (Kahan)."""
    a = abs(x)
    high = a.bitcast(I64).apply("shift_right_logical", 32).convert(I32)
    y = (high.apply("divide", 3) + 715094163).convert(I64).apply("shift_left", 32).bitcast(F64)
    for _ in range(2):
        cube = y * y * y
        y = y * (cube + a + a) / (cube + cube + a)
    y = (a < math.inf).select(y, a)
    return (x < 0).select(-y, y)


def write_remainder(x: Expr, y: Expr) -> Expr:
    """Return the remainder of x / y as x - y floor(x / y), exact for quotients below 2**28.

    XLA:CPU calls the C library for each element, in 3 to 9 ms for a million; so does this where any
    quotient is larger. In float64 multiples of 2**25 y are taken off first, and the limit is 2**50:
    a product with half of the bits of y is exact.
    """
    integer, (low, high, digits, limit) = BITS[x.dtype], LIMITS[x.dtype]
    sign = np.iinfo(integer).min
    bits, below = (v.bitcast(integer) & ~sign for v in (x, y))
    # where the quotient may be too large, or what is left so small that it is flushed to 0
    far = ((bits - below >= high << digits) & (bits < limit << digits)) | (below < low << digits)
    far = far & below.compare("NE", 0)

    def near() -> Expr:
        a, b = (abs(v.convert(F64)) for v in (x, y))
        half, rest = (b.bitcast(I64) & -(1 << 27)).bitcast(F64), a
        for unit in (1.0,) if x.dtype == F32 else (2.0**25, 1.0):
            whole = (rest / b * (1 / unit)).apply("floor") * unit
            rest = (rest - whole * half) - whole * (b - half)
        # a / b may have been rounded to a whole number
        rest = (rest < 0).select(rest + b, rest).convert(x.dtype).bitcast(integer)
        signed = rest | (x.bitcast(integer) & sign)
        return (a < b).select(x, signed.bitcast(x.dtype))

    return choose_if_any(far, x.dtype, near, lambda: x.apply("remainder", y))


# of a right triangle whose hypotenuse is 1, the other leg
find_leg: Callable[[Expr], Expr] = lambda x: ((1 - x) * (1 + x)).apply("sqrt")
FORMULAS: dict[str, Callable[..., Expr]] = {
    "sin": circular(0), "cos": circular(1), "tan": tangent,
    "asin": lambda x: find_angle(x, find_leg(x)), "acos": lambda x: find_angle(find_leg(x), x),
    "atan": lambda x: find_angle(x, x.like(1)), "atan2": find_angle, "cbrt": cube_root,
}  # fmt: skip


def write_circular(name: str, *operands: Expr) -> Expr:
    """Write the formula of a function of floats of 64 bits, 32, or half as many."""
    x = operands[0]
    if x.dtype == F64:
        return wide.FORMULAS[name](*operands)
    out = FORMULAS[name](*[v.convert(F32).convert(F64) for v in operands])
    out = out.convert(F32).convert(x.dtype)
    odd = name not in ("cos", "acos", "atan2")
    return x.compare("EQ", 0).select(x, out) if odd else out  # -0 stays
