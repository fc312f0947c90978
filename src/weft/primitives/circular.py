"""Circular functions, their inverses, cube roots and remainders on the CPU, as formulas.

XLA:CPU calls the C library for each element, which takes 3 to 13 ms for a million elements. A
formula in float64 is vectorized. It takes 0.4 to 0.9 ms, and its error is at most 0.51 ulp.
Formulas are for large arrays only, since a formula takes longer to compile than a call. The
formulas of float64 are in wide.py, except for remainders. Where a kernel exists, it is called: it
takes 0.2 to 0.4 ms, and its error is at most 1.7 ulp.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from weft.primitives import wide
from weft.primitives.expr import BF16, F32, F64, Expr
from weft.primitives.kernels import ElementFormula
from weft.primitives.wide import I32, I64, choose_if_any

HALVES = np.dtype(np.float16), BF16
BITS = {F32: I32, F64: I64}
# For remainders: the smallest biased exponent of a divisor, the exponent at which a quotient is
# too large, the bits of the mantissa, and the biased exponent of infinity.
LIMITS = {F32: (27, 27, 23, 255), F64: (54, 50, 52, 2047)}

# 1 / (2 pi) in parts of 29 bits, so that products with a float32 are exact in float64. The last
# part is for products below 2**-17.
_TURN = (
    *(0.15915494225919247, 8.327028684640414e-10, 5.69002511952534e-19),
    *(6.317065083361892e-27, 5.595982707708916e-36, 6.551007954373285e-45),
)
# pi in two parts. The first part has so few bits that its multiples are exact.
_PI = 3.14159265160560607910, 1.98418714791870343106e-09
# Fits of the relative error, in x**2: sin(x) = x + x**3 p for x up to pi / 2, tan(x) = x p / q up
# to pi / 4, atan(x) = x + x**3 p up to 1, log2((1 + x) / (1 - x)) = x p up to 0.2; in x: 2**x = p
# up to 1/2. Each is off by 1e-9 of the result or less.
_SIN = (
    *(-0.16666666663878466, 0.0083333327683050712, -0.00019841086452511645),
    *(2.7536455324321069e-06, -2.4079999741638779e-08),
)
_TAN = 1.0000000000182503, -0.11135673956026519, 0.0010748300703641667
_TAN_BELOW = 1.0, -0.44469007142300859, 0.015971502046276603
_LOG2 = (
    *(2.8853900817779272, 0.96179669392432954, 0.57707801724859842, 0.41219840167784738),
    *(0.32061641511412348, 0.26144335271104391, 0.24292716541903794),
)
_EXP2 = (
    *(0.99999999995956179, 0.69314718055683244, 0.24022651213498092, 0.055504109063258665),
    *(0.009618025613318034, 0.0013333478473685416, 0.00015469729214118296, 1.5303700711365693e-05),
)
_ATAN = (
    *(-0.333333332988677, 0.199999913424741, -0.142853521288634, 0.111051339539788),
    *(-0.0903946604820640, 0.0742750313090291, -0.0578314807122139, 0.0386392696068696),
    *(-0.0195234180464221, 0.00632959465485889, -0.000960571870189740),
)


def find_logarithm(x: Expr) -> Expr:
    """log2(x) of x > 0 in float64, to 1e-9."""
    bits = x.bitcast(I64)
    n = (bits - 0x3FE6A09E667F3BCD).apply("shift_right_arithmetic", 52)
    m = (bits - n.apply("shift_left", 52)).bitcast(F64)
    s = (m - 1) / (m + 1)
    return s * (s * s).polynomial(_LOG2) + n.convert(I32).convert(F64)


def single_power(a: Expr, y: Expr, usual: bool = False) -> Expr:
    """a**y of a >= 0 as float32, in float64; `usual` if a is positive and finite, and y small."""
    log = find_logarithm(a)
    if not usual:
        log = a.compare("EQ", 0).select(a.like(-math.inf), (a < math.inf).select(log, a))
    p = y * log
    if not usual:
        p = (p > 900).select(p.like(900), (p < -900).select(p.like(-900), p))
    n = p.apply("round_nearest_even")
    return (p - n).polynomial(_EXP2) * n.power_of_two()


def finish_power(out: Expr, x: Expr, y: Expr) -> Expr:
    """x**y, where |x|**y is given: its sign, NaN, and where it is 1."""
    half, whole = y * 0.5, y.apply("round_nearest_even").compare("EQ", y)
    odd = whole & half.apply("round_nearest_even").compare("NE", half)
    out = ((x.bitcast(BITS[x.dtype]) < 0) & odd).select(-out, out)
    out = (whole | (x >= 0) | x.compare("EQ", -math.inf) | x.compare("NE", x)).select(out, math.nan)
    out = y.compare("EQ", y).select(out, y)
    root = x.compare("EQ", -1) & abs(y).compare("EQ", math.inf)
    return (y.compare("EQ", 0) | x.compare("EQ", 1) | root).select(x.like(1), out)


def write_power(x: Expr, y: Expr) -> Expr:
    """x**y; of float32 by logarithms of float64."""
    if x.dtype == F64:
        out = wide.power(abs(x), y)
    else:
        out = single_power(abs(x).convert(F64), y.convert(F64)).convert(F32)
    return finish_power(out, x, y)


def find_quadrant(x: Expr) -> tuple[Expr, Expr]:
    """(r, k) of x = r + k pi / 2, |r| <= pi / 4: Payne and Hanek's reduction.

    Whole turns are taken off of each product of x with a part of 1 / (2 pi), which is exact.
    """
    *parts, last = _TURN
    turns = [t - t.apply("round_nearest_even") for t in (x * part for part in parts)]
    rest = sum(turns[2:], turns[1])
    k = ((turns[0] + rest) * 4).apply("round_nearest_even")
    return ((turns[0] - k * 0.25) + rest + x * last) * math.tau, k.convert(I32)


def half_turn_sine(r: Expr) -> Expr:
    """sin(r) of |r| <= pi / 2."""
    z = r * r
    return r + r * z * z.polynomial(_SIN)


def circular(turned: int) -> Callable[[Expr], Expr]:
    """Return the formula of the sine of x plus `turned` quarter turns."""

    def write(x: Expr) -> Expr:
        r, k = find_quadrant(x)
        k = k + turned if turned else k
        # sin(r + pi / 2) = cos r = sin(pi / 2 - |r|)
        out = half_turn_sine((k & 1).compare("NE", 0).select(math.pi / 2 - abs(r), r))
        return (k & 2).compare("NE", 0).select(-out, out)

    return write


def circular_near(turned: int) -> Callable[[Expr], Expr]:
    """The same of |x| < 2**20, by multiples of pi."""

    def write(x: Expr) -> Expr:
        k = (x * (1 / math.pi) + turned * 0.5).apply("round_nearest_even")
        n = k - turned * 0.5
        out = half_turn_sine((x - n * _PI[0]) - n * _PI[1])
        sign = k.convert(I32).convert(I64).apply("shift_left", 63)
        return (out.bitcast(I64) ^ sign).bitcast(F64)

    return write


def tangent(x: Expr) -> Expr:
    """sin / cos, or of odd quarters -cos / sin."""
    r, k = find_quadrant(x)
    z = r * r
    top, below = r * z.polynomial(_TAN), z.polynomial(_TAN_BELOW)
    odd = (k & 1).compare("NE", 0)
    return odd.select(-below, top) / odd.select(top, below)


def find_angle(y: Expr, x: Expr, usual: bool = False) -> Expr:
    """atan(y / x) in the quadrant of the point (x, y), x and y of either sign.

    Points are `usual` if one part at least is not 0, and one is finite.
    """
    a, b = abs(y), abs(x)
    low, high = a.apply("minimum", b), a.apply("maximum", b)
    if usual:
        t = low.ratio(high)
    else:
        t = low.ratio(high.apply("minimum", 1e300))
        t = a.compare("EQ", b).select(a.like(1), t)  # infinities have a ratio too
        t = high.compare("EQ", 0).select(high, t)
    z = t * t
    angle = t + t * z * z.polynomial(_ATAN)
    angle = (a > b).select(math.pi / 2 - angle, angle)
    angle = wide.copy_sign((x.bitcast(I64) < 0).select(math.pi - angle, angle), y)
    return angle if usual else x.compare("EQ", x).select(y.compare("EQ", y).select(angle, y), x)


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
    # The quotient may be too large, or the remainder so small that it would be flushed to 0.
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


def round_doubles(formula: Callable[..., Expr], keeps_zero: bool) -> Callable[..., Expr]:
    """Return a formula for float32, and for half the bits, of one that computes in float64."""

    def write(*operands: Expr) -> Expr:
        x = operands[0]
        out = formula(*[v.convert(F32).convert(F64) for v in operands])
        out = out.convert(F32).convert(x.dtype)
        return x.compare("EQ", 0).select(x, out) if keeps_zero else out  # -0 stays

    return write


def list_formulas(
    single: Callable[..., Expr],
    double: Callable[..., Expr],
    keeps_zero: bool = True,
    library: str = "",
    least: int = 1,
) -> dict[np.dtype, ElementFormula]:
    """Return the formulas of a function by dtype.

    Args:
      single: computes float32, in float64.
      double: computes float64.
      keeps_zero: True if `single` must return -0 for -0.
      library: the operation that computes arguments too large for `double`. The default, "", is for
        a `double` that computes all arguments.
      least: the smallest number of elements where `double` pays, as in `ElementFormula`.
    """
    rounded = ElementFormula(round_doubles(single, keeps_zero))
    exact = ElementFormula(double, least)
    if library:
        exact = ElementFormula(wide.call_library_beyond(library, double), least=2, looks=True)
    return {**dict.fromkeys((*HALVES, F32), rounded), F64: exact}


SINE = list_formulas(circular(0), wide.keep_zeros(wide.sine_after(0)), library="sine")
COSINE = list_formulas(circular(1), wide.sine_after(1), False, library="cosine")
TANGENT = list_formulas(tangent, wide.keep_zeros(wide.sine_ratio), library="tan")
ARC_SINE = list_formulas(
    lambda x: find_angle(x, find_leg(x), usual=True), wide.keep_zeros(wide.arc_sine)
)
ARC_COSINE = list_formulas(
    lambda x: find_angle(find_leg(x), x, usual=True), wide.arc_cosine, keeps_zero=False
)
ARC_TANGENT = list_formulas(
    lambda x: find_angle(x, x.like(1), usual=True),
    wide.keep_zeros(lambda x: wide.angle_of(x, x.like(1), scaled=False)),
)
ANGLE = list_formulas(find_angle, wide.angle_of, keeps_zero=False)
CUBE_ROOT = list_formulas(cube_root, wide.third_root, least=0)
POWER = {F32: ElementFormula(write_power), F64: ElementFormula(write_power, least=2)}
REMAINDER = dict.fromkeys((F32, F64), ElementFormula(write_remainder, looks=True))
