"""Elementary functions of float64 on the CPU, as formulas.

XLA:CPU calls the C library for each element; a formula is vectorized, and within a unit or two. The
polynomials, and how they are put together, are those of fdlibm (Sun Microsystems, 1993), whose
notice is in NOTICE.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from weft.core.aval import ShapedArray
from weft.primitives.expr import F32, F64, Expr, polynomial
from weft.xla.hlo import i64s

I32, I64 = map(np.dtype, (np.int32, np.int64))
SIGN = -(1 << 63)
LARGEST = float(np.finfo(F64).max)
FAR = (1 << 19) * math.pi / 2  # from here on, multiples of the parts of pi / 2 are rounded

# pi / 2 in parts of 33 bits, and a last one
_QUARTER = (
    *(1.57079632673412561417e00, 6.07710050630396597660e-11),
    *(2.02226624871116645580e-21, 8.47842766036889956997e-32),
)
# sin(x) = x + x**3 p, cos(x) = 1 - x**2 / 2 + x**4 p for x up to pi / 4, atan(x) = x + x**3 p up to
# 7 / 16, asin(x) = x + x**3 p / q up to 1 / 2, all in x**2
_SIN = (
    *(-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04),
    *(2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10),
)
_COS = (
    *(4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05),
    *(-2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11),
)
_ATAN = (
    *(-3.33333333333329318027e-01, 1.99999999998764832476e-01, -1.42857142725034663711e-01),
    *(1.11111104054623557880e-01, -9.09088713343650656196e-02, 7.69187620504482999495e-02),
    *(-6.66107313738753120669e-02, 5.83357013379057348645e-02, -4.97687799461593236017e-02),
    *(3.65315727442169155270e-02, -1.62858201153657823623e-02),
)
_ASIN = (
    *(1.66666666666666657415e-01, -3.25565818622400915405e-01, 2.01212532134862925881e-01),
    *(-4.00555345006794114027e-02, 7.91534994289814532176e-04, 3.47933107596021167570e-05),
)
_ASIN_BELOW = (
    *(1.0, -2.40339491173441421878e00, 2.02094576023350569471e00),
    *(-6.88283971605453293030e-01, 7.70381505559019352791e-02),
)
_CBRT = (
    *(1.87595182427177009643, -1.88497979543377169875, 1.621429720105354466140),
    *(-0.758397934778766047437, 0.145996192886612446982),
)
_LOG = (
    *(0.6666666666666735, 0.3999999999940942, 0.2857142874366239, 0.22222198432149784),
    *(0.1818357216161805, 0.15313837699209373, 0.14798198605116586),
)
# of log2: (2/3 of the powers of s), 2 / (3 log 2) and its parts, of exp: those of x - t
_LOG2 = (
    *(5.99999999999994648725e-01, 4.28571428578550184252e-01, 3.33333329818377432918e-01),
    *(2.72728123808534006489e-01, 2.30660745775561754067e-01, 2.06975017800338417784e-01),
)
_THIRDS = 9.61796693925975554329e-01, 9.61796700954437255859e-01, -7.02846165095275826516e-09
_BASE = 1.5, 5.84962487220764160156e-01, 1.35003920212974897128e-08  # log2 of 1.5 in parts
_EXP = (
    *(1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05),
    *(-1.65339022054652515390e-06, 4.13813679705723846039e-08),
)
_LN2 = 6.93147180559945286227e-01, 6.93147182464599609375e-01, -1.90465429995776804525e-09
_PI_4 = math.pi / 4, 3.061616997868383e-17  # of so few bits that multiples are exact; the rest


def split_turns(x: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """(r, the rounding error of r, r**2, k) of x = r + k pi / 2, |r| <= pi / 4, |x| < FAR."""
    k = (x * (2 / math.pi)).apply("round_nearest_even")
    first, second, third, last = [k * part for part in _QUARTER]
    a = x - first
    b = a - second
    c = b - third
    rest = ((a - b) - second) + ((b - c) - third) - last
    r = c + rest
    return r, (c - r) + rest, r * r, k.convert(I32)


def sine(r: Expr, low: Expr, z: Expr) -> tuple[Expr, Expr]:
    """sin(r + low) and its rounding error, z = r**2."""
    cube = z * r
    less = (z * (low * 0.5 - cube * polynomial(z, _SIN[1:])) - low) - cube * _SIN[0]
    out = r - less
    return out, (r - out) - less


def cosine(r: Expr, low: Expr, z: Expr) -> tuple[Expr, Expr]:
    """cos(r + low) and its rounding error, z = r**2."""
    half = z * 0.5
    w = 1 - half
    more = ((1 - w) - half) + (z * z * polynomial(z, _COS) - r * low)
    out = w + more
    return out, (w - out) + more


def sine_after(turned: int) -> Callable[[Expr], Expr]:
    """The sine, or that of x and `turned` quarters of a turn."""

    def write(x: Expr) -> Expr:
        *r, k = split_turns(x)
        k = k + turned if turned else k
        out = (k & 1).compare("NE", 0).select(cosine(*r)[0], sine(*r)[0])
        return (k & 2).compare("NE", 0).select(-out, out)

    return write


def sine_ratio(x: Expr) -> Expr:
    """sin / cos, or of odd quarters -cos / sin."""
    *r, k = split_turns(x)
    (top, more), (below, less) = sine(*r), cosine(*r)
    odd = (k & 1).compare("NE", 0)
    top, below, more, less = (
        odd.select(u, v) for u, v in [(-below, top), (top, below), (-less, more), (more, less)]
    )
    out = top / below
    return out + (more - out * less) / below


def add_quarters(count: Expr, x: Expr, more: Expr) -> Expr:
    """The small number of pi / 4, and x, and what is smaller than x."""
    high, low = _PI_4
    return count * high + (x + (more + count * low))


def angle_of(y: Expr, x: Expr, scaled: bool = True) -> Expr:
    """atan(y / x) in the quadrant of the point (x, y), x and y of either sign.

    Of a ratio t above tan(pi / 8) as pi / 4 + atan((t - 1) / (t + 1)).
    """
    a, b = abs(y), abs(x)
    low, high = a.apply("minimum", b), a.apply("maximum", b)
    if scaled:  # so that sums are finite, and differences not flushed to 0
        scale = (high > 1e30).select(high.like(0.25), 2.0**120)
        low, high = low * scale, high * scale
    steep = high.apply("minimum", LARGEST) * 0.4142135623730950 < low  # infinities too
    ratio = steep.select(low - high, low) / steep.select(low + high, high)
    ratio = low.compare("EQ", high).select(low.like(0), ratio)
    over, back = a > b, x.bitcast(I64) < 0
    t = (over ^ back).select(-ratio, ratio)
    count = steep.select(t.like(1), 0)
    count = over.select(2 - count, count)
    count = back.select(4 - count, count)
    z = t * t
    angle = add_quarters(count, t, t * z * polynomial(z, _ATAN))
    return x.compare("EQ", x).select(copy_sign(angle, y), x)


def copy_sign(x: Expr, y: Expr) -> Expr:
    """x >= 0 with the sign of y."""
    return (x.bitcast(I64) | (y.bitcast(I64) & SIGN)).bitcast(F64)


def split_arc(x: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """(|x| > 1/2, |x| or twice the root of (1 - |x|) / 2, and what its arc sine is more)."""
    a = abs(x)
    large = a > 0.5
    z = large.select((1 - a) * 0.5, a * a)
    s = large.select(z.apply("sqrt") * 2, a)
    return large, s, z * polynomial(z, _ASIN) / polynomial(z, _ASIN_BELOW)


def arc_sine(x: Expr) -> Expr:
    """Beyond 1/2 pi / 2 - 2 asin(sqrt((1 - |x|) / 2))."""
    large, s, more = split_arc(x)
    s = large.select(-s, s)
    return copy_sign(add_quarters(large.select(s.like(2), 0), s, s * more), x)


def arc_cosine(x: Expr) -> Expr:
    """Up to 1/2 pi / 2 - asin(x); beyond 2 asin(sqrt((1 - |x|) / 2)), or pi less that."""
    large, s, more = split_arc(x)
    s = (large ^ (x < 0)).select(s, -s)
    count = large.select((x < 0).select(s.like(4), 0), 2)
    return add_quarters(count, s, s * more)


def third_root(x: Expr) -> Expr:
    """A polynomial, exact to 23 bits, rounded to these, and a step of Newton's method."""
    a = abs(x)
    bits = a.bitcast(I64)
    tiny = bits < 1 << 52  # what the engine may take for 0, times 2**1074
    a = tiny.select(bits.convert(F64), a)
    high = a.bitcast(I64).apply("shift_right_logical", 32).convert(I32)
    t = (high.apply("divide", 3) + 715094163).convert(I64).apply("shift_left", 32).bitcast(F64)
    t = t * polynomial((t * t) * (t / a), _CBRT)
    t = ((t.bitcast(I64) + (1 << 31)) & -(1 << 30)).bitcast(F64)
    r = a / (t * t)
    t = t + t * ((r - t) / (t + t + r))
    t = tiny.select(t * 2.0**-358, t)
    t = ((a > 0) & (a < math.inf)).select(t, a)
    return copy_sign(t, x)


def write_log(x: Expr) -> Expr:
    """The logarithm in float64, within a unit: XLA:CPU calls the C library for each element.

    2 artanh(f / (2 + f)) + e log 2 of x = (1 + f) 2**e, 1 + f between sqrt(1/2) and sqrt(2); the
    sum is that of fdlibm's e_log.c.
    """
    bits = x.bitcast(I64)
    high = bits.apply("shift_right_logical", 32).convert(I32)
    e = (high - 0x3FE6A09E).apply("shift_right_arithmetic", 20)
    f = (bits - e.convert(I64).apply("shift_left", 52)).bitcast(F64) - 1
    s, e = f / (f + 2), e.convert(F64)
    z, half = s * s, f * f * 0.5
    rest = half - (s * (half + z * polynomial(z, _LOG)) + e * 1.9082149292705877e-10)
    out = (x < math.inf).select(e * 0.6931471803691238 - (rest - f), x)
    return (x > 0).select(out, x.compare("EQ", 0).select(x.like(-math.inf), math.nan))


def write_log1p(x: Expr) -> Expr:
    """log(y) + (x - (y - 1)) / y where y is x + 1 rounded: within 2 units.

    The engine's is up to 128 units off near -0.4 in float64. It would take y - 1 for x, were y not
    made of halves. Of large x nothing is lost.
    """
    held = x.apply("minimum", 1e15)
    half = held * 0.5 + 0.5
    y = half + half
    y1 = x + 1
    out = (write_log(y1) if x.dtype == F64 else y1.apply("log")) + (held - (y - 1)) / y.apply(
        "maximum", 1e-30
    )
    return y.compare("EQ", y.like(1)).select(x, out)


def write_log_of_all(x: Expr) -> Expr:
    """The logarithm, also of what the engine may take for 0: times 2**1074."""
    bits = x.bitcast(I64)
    tiny = (bits > 0) & (bits < 1 << 52)
    out = write_log(tiny.select(bits.convert(F64), x))
    return tiny.select(out - 1074 * math.log(2), out)


def hyperbolic_sine(x: Expr) -> Expr:
    """By exp(x) - 1; of large x from exp(x - 64), which is finite."""
    a = abs(x)
    large = a > 600
    e = large.select(a - 64, a).apply("exponential_minus_one")
    return copy_sign(large.select(e * (math.exp(64) / 2), (e + e / (e + 1)) * 0.5), x)


def hyperbolic_cosine(x: Expr) -> Expr:
    """Return (e**x + e**-x) / 2 by the square of e**|x / 2|.

    XLA's rounds x - log 2, and is up to 495 units off; in float32 up to 24, in a tenth less time.
    """
    a = -abs(x)
    root = (a * -0.5).apply("exponential")
    return root * 0.5 * root + a.apply("exponential") * 0.5


def area_sine(x: Expr) -> Expr:
    """log(|x| + sqrt(x**2 + 1)), by log(1 + y) where x is not large."""
    a = abs(x)
    large = a > 1e100
    held = a.apply("minimum", 1e100)
    square = held * held
    near = write_log1p(held + square / (1 + (square + 1).apply("sqrt")))
    return copy_sign(large.select(write_log(a) + math.log(2), near), x)


def cut_bits(x: Expr) -> Expr:
    """x without the lower half of its bits."""
    return (x.bitcast(I64) & -(1 << 32)).bitcast(F64)


def log2_parts(a: Expr) -> tuple[Expr, Expr]:
    """log2(a) of a positive number as a sum, of which the first has 21 bits."""
    bits = a.bitcast(I64)
    tiny = bits < 1 << 52
    bits = tiny.select(bits.convert(F64).bitcast(I64), bits)
    # as m 2**n, m between sqrt(3) / 2 and sqrt(3), near to 1 or to 1.5
    n = (bits - 0x3FEBB67AE8584CAA).apply("shift_right_arithmetic", 52)
    m = (bits - n.apply("shift_left", 52)).bitcast(F64)
    upper = m >= math.sqrt(1.5)
    n = (n - tiny.convert(I64) * 1074).convert(F64)
    base, log_high, log_low = (upper.select(m.like(v), v == 1.5) for v in _BASE)
    u, v = m - base, 1 / (m + base)
    s = u * v
    s_high = cut_bits(s)
    t_high = cut_bits(m + base)
    s_low = v * ((u - s_high * t_high) - s_high * (m - (t_high - base)))
    z, square = s * s, s_high * s_high
    r = z * z * polynomial(z, _LOG2) + s_low * (s_high + s)
    t_high = cut_bits(square + r + 3)
    t_low = r - ((t_high - 3) - square)
    u, v = s_high * t_high, s_low * t_high + t_low * s
    high = cut_bits(u + v)
    low = v - (high - u)
    whole, first, second = _THIRDS
    z_high, z_low = high * first, high * second + low * whole + log_low
    out = cut_bits(((z_high + z_low) + log_high) + n)
    return out, z_low - (((out - n) - log_high) - z_high)


def power(a: Expr, y: Expr) -> Expr:
    """a**y of a >= 0, where neither is 1 and y not 0: 2**(y log2(a))."""
    high, low = log2_parts(a)
    held = y.like(-1e30).make("clamp", y.aval, y, y.like(1e30))
    top = cut_bits(held)
    low, high = (held - top) * high + held * low, top * high
    z = low + high
    held = z.like(-1080).make("clamp", z.aval, z, z.like(1030.0))
    n = held.apply("round_nearest_even")
    beyond = z.compare("NE", held)
    low, rest = beyond.select(low.like(0), low), beyond.select(held, high) - n
    t = cut_bits(low + rest)
    both, first, second = _LN2
    u, v = t * first, (low - (t - rest)) * both + t * second
    z = u + v
    w = v - (z - u)
    square = z * z
    t = z - square * polynomial(square, _EXP)
    out = 1 - (((z * t) / (t - 2) - (w + z * w)) - z)
    n = n.convert(I64)
    half = n.apply("shift_right_arithmetic", 1)
    for part in (half, n - half):
        out = out * (part + 1023).apply("shift_left", 52).bitcast(F64)
    zero = a.bitcast(I64).compare("EQ", 0)
    out = (zero | a.compare("EQ", math.inf)).select(
        (zero ^ (y > 0)).select(a.like(math.inf), 0), out
    )
    return (a.compare("EQ", a) & y.compare("EQ", y)).select(out, math.nan)


def keep_zeros(formula: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    """A function that is x near 0: of -0 and of what the engine takes for 0 too."""
    return lambda x: x.compare("EQ", 0).select(x, formula(x))


def choose_if_any(
    flags: Expr, dtype: np.dtype, usual: Callable[[], Expr], other: Callable[[], Expr]
) -> Expr:
    """What `usual` writes, or if any of the flags is true what `other` does.

    A sum of float32 compiles in 1 ms, "or" in 50; it calls YNNPACK, which runs as fast.
    """
    hlo, cell = flags.hlo, ShapedArray((), F32)
    zero = Expr(hlo, hlo.constant(0, cell))
    every = i64s(range(len(flags.shape)))
    given = [flags.convert(F32).value, zero.value], [cell], [hlo.scalar_block("add", cell)]
    count = zero.new(hlo.op("stablehlo.reduce", *given, dimensions=every)[0])
    branches = [lambda: [usual().value], lambda: [other().value]]
    out = flags.aval.update(dtype=dtype)
    return zero.new(hlo.case((count > 0).convert(I32).value, branches, [out])[0])


def call_library_beyond(op: str, formula: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    """A formula for |x| < FAR; of an array with any larger element all are the C library's."""

    def write(x: Expr) -> Expr:
        far = (abs(x) >= FAR) & (abs(x) < math.inf)
        return choose_if_any(far, F64, lambda: formula(x), lambda: x.apply(op))

    return write


FORMULAS: dict[str, Callable[..., Expr]] = {
    "sin": call_library_beyond("sine", keep_zeros(sine_after(0))),
    "cos": call_library_beyond("cosine", sine_after(1)),
    "tan": call_library_beyond("tan", keep_zeros(sine_ratio)),
    "asin": keep_zeros(arc_sine), "acos": arc_cosine,
    "atan": keep_zeros(lambda x: angle_of(x, x.like(1), scaled=False)),
    "atan2": angle_of, "cbrt": third_root,
    "log": write_log_of_all, "sinh": keep_zeros(hyperbolic_sine), "asinh": keep_zeros(area_sine),
}  # fmt: skip
