"""Formulas of the gamma family: gamma, its logarithm and derivatives, beta, the incomplete ones.

functions.py has the primitives that they lower. Exponents such as a log x - x - log gamma(a + 1)
are sums of large terms. They are represented as pairs of floats, so that exponentials are exact.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from fractions import Fraction
from typing import Any

import numpy as np

from weft.primitives.expr import Expr
from weft.primitives.special import tables
from weft.primitives.special.error import erfcx, normal_cdf
from weft.primitives.special.formula import (
    Pair,
    choose,
    cos_pi,
    equal,
    exp,
    exp_pair,
    expm1,
    floor,
    is_doubled,
    is_odd,
    log,
    log1p,
    log_pair,
    maximum,
    repeat,
    series,
    sign,
    sin_pi,
    sqrt,
    to_pair,
    where,
)

_HALF_LOG_2PI = Fraction("0.918938533204672741780329736405617639861397473637783412817151540")
# Bernoulli's numbers over 2k (2k - 1), and over 2k (DLMF 5.11.1, 5.11.2)
_STIRLING = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400,
    43867 / 244188,
)  # fmt: skip
_PSI_SERIES = (
    1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160,
    43867 / 14364, -174611 / 6600,
)  # fmt: skip
_PSI_ZERO = Fraction("1.4616321449683623412626595423257213284681962040064")

_PSI_SLOPE = 0.96767224544762117  # of digamma at its zero


def is_whole(x: Expr) -> Expr:
    """Return True where x is a whole number."""
    return equal(floor(x), x)


# --- gamma ----------------------------------------------------------------------------------


def log_gamma_far(x: Pair) -> Pair:
    """log gamma(x) for x >= 10, by Stirling's series."""
    correction = (1 / (x.hi * x.hi)).polynomial(_STIRLING) / x.hi
    return (x - 0.5) * log_pair(x) - x + _HALF_LOG_2PI + correction


def gamma_parts(x: Any) -> tuple[Pair, Pair]:
    """(e, d) with gamma(x) = exp(e) / d, for x > 0; d is 1 from 10 on, below x (x+1) ... (x+9)."""
    x = to_pair(x)
    small = x.hi < 10
    held = where(small, x, 1.0)
    u = held * (held + 9)
    product = u
    for c in (8, 14, 18, 20):
        product = product * (u + c)
    return log_gamma_far(where(small, held + 10, x)), where(small, product, 1.0)


def positive_gamma(x: Any) -> Expr:
    """gamma(x) of a float or a pair > 0; inf where it is too large."""
    x = to_pair(x)
    top = 180.0 if x.hi.finfo.max > 1e100 else 40.0
    exponent, divisor = gamma_parts(where(x.hi < top, x, top))
    return exp_pair(exponent) / divisor.value


def gamma(x: Expr) -> Expr:
    """gamma(x), by reflection for negative x; NaN at negative whole numbers, as SciPy has it."""
    y = abs(x)
    up = positive_gamma(where(equal(y, 0), 1.0, y))
    down = -math.pi / (sin_pi(y) * up * y)  # sin_pi(y) * y of a small y would underflow
    return choose(where(x < 0, down, up), (y < 1e-20, 1 / x), ((x < 0) & is_whole(x), math.nan))


def gamma_sign(x: Expr) -> Expr:
    """The sign of gamma(x): of zeros their own, NaN at negative whole numbers."""
    negative = where(is_odd(floor(x)), x.like(-1.0), 1.0)
    return choose(
        where(x > 0, x.like(1.0), negative),
        ((x < 0) & is_whole(x), math.nan),
        (equal(x, 0), sign(1 / x)),
    )


def log_gamma_near(x: Expr) -> Expr:
    """log gamma(x) for x in [1/2, 8], relatively exact at its zeros 1 and 2."""
    middle = (
        (x - 1) * (x - 2) * where(x < 1.5, series(x, tables.LGAMMA_1), series(x, tables.LGAMMA_2))
    )
    return where(x < 3, middle, series(x, tables.LGAMMA_3))


def log_gamma(x: Expr) -> Expr:
    """log |gamma(x)|; inf at 0 and the negative whole numbers.

    Absolutely exact to rounding, not relatively, at the zeros between negative whole numbers.
    """
    y = abs(x)
    small = y < 0.5
    # log gamma(1 + y) of a small y without rounding 1 + y: (x - 1) (x - 2) = y (y - 1)
    near = where(small, y * (y - 1) * series(y + 1, tables.LGAMMA_1), log_gamma_near(y))
    log_y = log(y)
    inverse = 1 / y
    far = (y - 0.5) * (log_y - 1) + (float(_HALF_LOG_2PI) - 0.5)
    far = far + (inverse * inverse).polynomial(_STIRLING) * inverse
    base = where(y < 8, near, far)
    up = where(small, base - log_y, base)
    ratio = y * math.pi / abs(sin_pi(y))
    down = log(ratio) - where(small, log_y, 2 * log_y) - base
    inf = x.like(math.inf)
    whole = (x <= 0) & is_whole(x)
    return choose(where(x < 0, down, up), (whole | equal(y, math.inf), inf))


def log_gamma_slope(a: Expr) -> Expr:
    """log gamma(1 + a) / (a (a - 1)) for a in [0, 1]."""
    x = a + 1
    return where(a < 0.5, series(x, tables.LGAMMA_1), series(x, tables.LGAMMA_2))


def write_digamma(x: Expr) -> Expr:
    """The derivative of log gamma; relatively exact at its positive zero."""
    low = x < 1
    y = where(low, abs(x) + 1, x)
    # the zero has two parts: what the second adds is constant near it, and nothing elsewhere
    zero = float(_PSI_ZERO)
    first = (y - zero) * series(y, tables.DIGAMMA_1)
    first = first - float(_PSI_ZERO - Fraction(zero)) * _PSI_SLOPE
    inverse = 1 / (y * y)
    far = log(y) - 0.5 / y - inverse.polynomial(_PSI_SERIES) * inverse
    up = choose(
        far, (y < 8, series(y, tables.DIGAMMA_3)), (y < 4, series(y, tables.DIGAMMA_2)),
        (y < 2, first),
    )  # fmt: skip
    cot = cos_pi(x) * math.pi / sin_pi(x)
    added = where(x > 0, 1 / x, cot)
    out = where(low, up - added, up)
    return choose(out, ((x < 0) & is_whole(x), math.nan), (equal(x, 0), -1 / x))


# --- zeta -----------------------------------------------------------------------------------

# Bernoulli's numbers over (2k)!
_EULER_MACLAURIN = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    1 / 74724249600, -3617 / 10670622842880000, 43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
)  # fmt: skip


def power(x: Expr, y: Expr) -> Expr:
    """x**y; in a wider dtype than is wanted by the logarithm, as XLA:CPU calls the C library."""
    if is_doubled(x):
        return x.apply("power", y)
    size = exp(log(abs(x)) * y)
    return where((x < 0) & is_odd(y), -size, size)


# What writes zeta(x, q) in place of the sum below, for x and q of float64.
_ZETA: ContextVar[Callable[[Expr, Expr], Expr] | None] = ContextVar("zeta", default=None)


@contextlib.contextmanager
def writing_zeta(write: Callable[[Expr, Expr], Expr]) -> Iterator[None]:
    """Let formulas that are written meanwhile have `write(x, q)` for zeta(x, q) in float64."""
    token = _ZETA.set(write)
    try:
        yield
    finally:
        _ZETA.reset(token)


def hurwitz_sum(s: Expr, a: Expr, total: Expr, raise_to: Callable = power) -> Expr:
    """`total` and (k + a)**-s over k = 0, 1, ... of positive a and s > 1; the powers are positive.

    By Euler and Maclaurin's formula from k = 9 on. Where single precision is asked for, from k = 4
    on with half the terms: then it is off by 1e-9.
    """
    first, terms = (9, 10) if s.eps < 1e-10 else (4, 5)
    for _ in range(first):
        total = total + raise_to(a, -s)
        a = a + 1
    last = raise_to(a, -s)
    tail = last * (a / (s - 1) + 0.5)
    inverse = 1 / a
    term = last * s * inverse
    for k, factor in enumerate(_EULER_MACLAURIN[:terms], 1):
        tail = tail + term * factor
        term = term * ((s + (2 * k - 1)) * inverse) * ((s + 2 * k) * inverse)
    return total + tail


def hurwitz(x: Expr, q: Expr) -> Expr:
    """Return the sum of (k + q)**-x over k = 0, 1, ...

    For negative q, where x has to be an integer, the terms below 0 are the difference of two such
    sums. The large terms on both sides of 0 are added first, because for odd x they cancel each
    other.
    """
    write = _ZETA.get()
    if write is not None and x.dtype == np.float64:
        return write(x, q)
    bad = (q <= 0) & (equal(floor(q), q) | ~equal(floor(x), x))
    good = (x > 1) & ~bad & (q < math.inf) & (x < math.inf)
    s, a = where(good, x, 2.0), where(good, q, 1.0)
    below, zero, negative = floor(a), x.like(0.0), a < 0
    from_0, to_0 = where(negative, a - below, a), where(negative, below + 1 - a, 1.0)
    odd = is_odd(s)

    def sum_below(n: Expr, mirrored: Expr, rest: Expr) -> list:
        mirrored = hurwitz_sum(s, to_0, zero)
        rest = hurwitz_sum(s, where(negative, 1 - a, 1.0), zero)
        return [n < 0, where(odd, -mirrored, mirrored), where(odd, rest, -rest)]

    # a loop, so that it costs only where it is due
    mirrored, rest = repeat(sum_below, [zero, zero], negative)
    total = hurwitz_sum(s, from_0, zero) + mirrored
    # halfway between two whole numbers the terms of odd powers cancel, however large they are
    total = where(negative & odd & equal(from_0, to_0), 0.0, total) + rest
    at_inf = where(q > 1, 0.0, where(q < 1, math.inf, x.like(1.0)))
    return choose(
        total,
        (equal(q, math.inf), 0.0),
        (equal(x, math.inf), at_inf),
        (bad, where(equal(floor(q), q), x.like(math.inf), math.nan)),
        (equal(x, 1), math.inf),
        (x < 1, math.nan),
    )


def write_polygamma(m: Expr, x: Expr) -> Expr:
    """Return the derivative of order m of digamma: (-1)**(m+1) m! zeta(m + 1, x).

    NaN if m is not a whole number, or negative.
    """
    good = (m >= 0) & equal(floor(m), m)
    n = where(good, m, 1.0)
    size = positive_gamma(to_pair(n) + 1) * hurwitz(n + 1, x)
    signed = where(is_odd(n), size, -size)
    return choose(signed, (equal(m, 0), write_digamma(x)), (~good, math.nan))


# --- beta -----------------------------------------------------------------------------------


def inverse_beta_parts(a: Expr, b: Expr) -> tuple[Pair, Pair]:
    """(e, d) with gamma(a + b) / (gamma(a) gamma(b)) = exp(e) d, for positive a and b."""
    (ea, da), (eb, db) = gamma_parts(a), gamma_parts(b)
    en, dn = gamma_parts(to_pair(a) + b)
    # Stirling's series of gamma(a + b) / gamma(b) for a vast b, where en - eb would cancel
    small, large = where(a < b, a, b), where(a < b, b, a)
    r = where(is_vast(a, b), small / large, 0.0)
    rest = small * r * r.polynomial((-1 / 2, 1 / 3, -1 / 4, 1 / 5)) - r / 2
    vast = log_pair(to_pair(small) + large) * small + rest - where(a < b, ea, eb)
    exponent = where(is_vast(a, b), vast, (en - ea) - eb)
    return exponent, where(is_vast(a, b), where(a < b, da, db), da * db / dn)


def is_vast(a: Expr, b: Expr) -> Expr:
    """Return True where the rounding of the logarithm of gamma shows in one of two numbers."""
    limit = 1e16 if a.eps < 1e-10 else 1e8
    return ((a > limit) & (b < 0.01 * a)) | ((b > limit) & (a < 0.01 * b))


# --- incomplete gamma -----------------------------------------------------------------------


def gamma_density(a: Expr, x: Expr) -> Expr:
    """x**a exp(-x) / gamma(a + 1)."""
    exponent, divisor = gamma_parts(to_pair(a) + 1)
    return exp_pair(a * log_pair(x) - x - exponent) * divisor.value


def temme_coefficients(rows: int, columns: int) -> list[list[float]]:
    """d[k][n], of a**-k eta**n in Temme's expansion (Temme 1979; DLMF 8.12).

    They cancel, so they are computed as whole multiples of 2**-192.
    """
    size, one = 2 * rows + columns + 2, 1 << 192
    alpha = [0, one]
    for n in range(2, size + 1):
        inner = sum(j * alpha[j] * alpha[n - j + 1] for j in range(2, n)) // one
        alpha.append((alpha[n - 1] - inner) // (n + 1))
    first = [-one // 3] + [(n + 2) * alpha[n + 2] for n in range(1, size - 2)]
    out, row = [first], first
    for k in range(1, rows):
        stirling = math.prod(range(1, 2 * k + 2, 2)) * alpha[2 * k + 1] * (-1) ** k
        row = [stirling * first[n] // one + (n + 2) * row[n + 2] for n in range(len(row) - 2)]
        out.append(row)
    kept = [r[: max(columns - 2 * k, 4)] for k, r in enumerate(out)]
    return [[v / one for v in r] for r in kept]


_TEMME = temme_coefficients(8, 20)
# Of single precision, from a = 12 on and within half of a: the error is 2e-9 then.
_TEMME_SINGLE = [row[: max(12 - 2 * k, 4)] for k, row in enumerate(_TEMME[:5])]


def is_proper(a: Expr, x: Expr) -> Expr:
    """Return True where both arguments are positive and finite."""
    return (a > 0) & (a < math.inf) & (x > 0) & (x < math.inf)


def make_proper(a: Expr, x: Expr) -> tuple[Expr, Expr]:
    """Both arguments, 1 where they are not proper."""
    good = is_proper(a, x)
    return where(good, a, 1.0), where(good, x, 1.0)


def uses_series(a: Expr, x: Expr, always: float = 1) -> Expr:
    """Return True where the power series converges fast, and not the continued fraction."""
    return (x <= always) | (x <= a)


def series_sum(a: Expr, x: Expr, active: Expr) -> Expr:
    """P(a, x) gamma(a + 1) / (x**a exp(-x)): the sum of x**n / ((a+1) ... (a+n))."""

    def step(n: Expr, c: Expr, s: Expr) -> list:
        c = c * x / (a + n)
        return [c > s * (x.eps / 4), c, s + c]

    return repeat(step, [x.like(1.0), x.like(1.0)], active)[1]


def fraction_value(a: Expr, x: Expr, active: Expr) -> Expr:
    """Q(a, x) gamma(a) / (x**a exp(-x)), by the modified algorithm of Lentz."""
    d = 1 / (x - a + 1)
    c = x.like(0.1 / float(x.finfo.tiny) ** 0.5)

    def step(n: Expr, c: Expr, d: Expr, h: Expr) -> list:
        top = n * (a - n)
        b = x - a + 1 + 2 * n
        c = b + top / c
        d = 1 / (b + top * d)
        factor = c * d
        return [abs(factor - 1) > x.eps / 2, c, d, h * factor]

    return repeat(step, [c, d, d], active)[2]


def short_series(a: Expr, x: Expr, count: int = 30) -> Expr:
    """Return `series_sum` to `count` terms. The error is 1e-9 for x up to 2, a up to 12, or a / 2.

    The sum is evaluated backwards as one fraction over max(a, 1)**count, with a single
    division.
    """
    scale = 1 / maximum(a, 1.0)
    first, ratio = a * scale, x * scale
    u = v = x.like(1.0)
    for n in range(count, 0, -1):
        v = v * (first + n * scale)
        u = v + ratio * u
    return u / v


def short_fraction(a: Expr, x: Expr, count: int = 18) -> Expr:
    """`fraction_value` to such a depth, off by 2e-9 for x from 2 on where `short_series` is not.

    From its end on, with one division; both parts are over x**count.
    """
    scale = 1 / x
    first, squared = (x - a) * scale, scale * scale
    p, q = first + (2 * count + 1) * scale, x.like(1.0)
    for n in range(count, 0, -1):
        p, q = (first + (2 * n - 1) * scale) * p + (a - n) * (squared * n) * q, p
    return q / p * scale


def temme_tail(a: Expr, x: Expr) -> tuple[Expr, Expr]:
    """(above, tail): Q(a, x) where x > a, else P(a, x), uniformly in x near a large a."""
    if is_doubled(x):
        deviance = to_pair(x) - a - a * log_pair(to_pair(x) / a)
    else:
        deviance = to_pair(x - a - a * log1p((x - a) / a))
    size = maximum(deviance.value, 0.0)
    above = x >= a
    inverse = 1 / a
    eta = sqrt(2 * size * inverse)
    eta = where(above, eta, -eta)
    total = x.like(0.0)
    for row in reversed(_TEMME if is_doubled(x) else _TEMME_SINGLE):
        total = total * inverse + eta.polynomial(row)
    correction = total / sqrt(a * (2 * math.pi))
    half = erfcx(sqrt(size)) * 0.5
    return above, exp_pair(-deviance) * where(above, half + correction, half - correction)


def small_upper(a: Expr, x: Expr) -> Expr:
    """Q(a, x) for x <= 2 and a < 1, where it is small against P (Gautschi 1979)."""
    total, power = x.like(0.0), x.like(1.0)
    for n in range(1, 20):
        power = power * x * (-1 / n)
        total = total + power / (a + n)
    # of the least a, a product of it with log gamma(1 + a) / a would be taken for 0
    exponent = a * (log_pair(x) + (1 - a) * log_gamma_slope(a)).value
    size = expm1(exponent)
    return -size - (1 + size) * (a * total)


def fix_ends(out: Expr, a: Expr, x: Expr, at_low: float, at_high: float) -> Expr:
    """`out`, except for the ends: `at_low` for x = 0 or a = inf, `at_high` for x = inf or a = 0.

    NaN where an argument is negative or NaN, both are 0, or both are inf.
    """
    undecided = (equal(a, 0) & equal(x, 0)) | (equal(a, math.inf) & equal(x, math.inf))
    valid = (a >= 0) & (x >= 0) & ~undecided
    return choose(
        out,
        (equal(x, 0) | equal(a, math.inf), at_low),
        (equal(x, math.inf) | equal(a, 0), at_high),
        (~valid, math.nan),
    )


def incomplete_gamma(a: Expr, x: Expr, lower: bool) -> Expr:
    """Return P(a, x) if `lower`, otherwise Q(a, x) = 1 - P(a, x), each from a nearby expansion.

    Single precision has no loops, so that intermediate values are not written to memory.
    """
    sa, sx = make_proper(a, x)
    single = not is_doubled(sx)
    least, reach, always = (12, 0.5, 2) if single else (100, 0.4, 1)
    uniform = (sa > least) & (abs(sx - sa) < reach * sa)
    by_series = uses_series(sa, sx, always) & ~uniform
    density = gamma_density(sa, sx)
    if single:
        s, h = short_series(sa, sx), short_fraction(sa, sx)
    else:
        s = series_sum(sa, sx, by_series)
        h = fraction_value(sa, sx, ~by_series & ~uniform)
    p, q = density * s, density * sa * h
    ta, tx = where(uniform, sa, 200.0), where(uniform, sx, 200.0)
    above, tail = temme_tail(ta, tx)
    p, q = where(uniform, tail, p), where(uniform, tail, q)
    has_p = where(uniform, ~above, by_series)
    if lower:
        return fix_ends(where(has_p, p, 1 - q), a, x, 0.0, 1.0)
    small = (sx <= always) & (sa < 1)
    out = where(has_p, 1 - p, q)
    return fix_ends(where(small, small_upper(sa, sx), out), a, x, 1.0, 0.0)


def derivative_sums(a: Expr, x: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """The sums of P and of Q with their derivatives in a: s, ds/da, h, d(log h)/da."""
    zero, one = x.like(0.0), x.like(1.0)

    def series_step(n: Expr, c: Expr, s: Expr, dc: Expr, ds: Expr) -> list:
        r = a + n
        c = c * x / r
        dc = (dc * x - c) / r
        s, ds = s + c, ds + dc
        return [(c > s * x.eps) | (abs(dc) > abs(ds) * x.eps), c, s, dc, ds]

    def fraction_step(n: Expr, c: Expr, d: Expr, dc: Expr, dd: Expr, h: Expr, slope: Expr) -> list:
        top = n * (a - n)
        b = x - a + 1 + 2 * n
        dc = (n - top * (dc / c)) / c - 1
        c = b + top / c
        bottom = b + top * d
        dbottom = n * d + top * dd - 1
        d = 1 / bottom
        dd = -dbottom * d * d
        factor = c * d
        change = dc / c + dd / d
        slope = slope + change
        more = (abs(factor - 1) > x.eps) | (abs(change) > abs(slope) * x.eps)
        return [more, c, d, dc, dd, h * factor, slope]

    inside = uses_series(a, x)
    _, s, _, ds = repeat(series_step, [one, one, zero, zero], inside)
    bottom = x - a + 1
    d = 1 / where(equal(bottom, 0), 1.0, bottom)
    far = x.like(0.1 / float(x.finfo.tiny) ** 0.5)
    *_, h, slope = repeat(fraction_step, [far, d, zero, d * d, d, d], ~inside)
    return s, ds, h, slope


def gamma_derivative(a: Expr, x: Expr) -> Expr:
    """dP/da = -dQ/da."""
    sa, sx = make_proper(a, x)
    s, ds, h, slope = derivative_sums(sa, sx)
    density = gamma_density(sa, sx)
    by_series = density * (s * (log(sx) - write_digamma(sa + 1)) + ds)
    by_fraction = -(density * sa * (h * (log(sx) - write_digamma(sa) + slope)))
    return fix_ends(where(uses_series(sa, sx), by_series, by_fraction), a, x, 0.0, 0.0)


def sample_derivative(a: Expr, x: Expr) -> Expr:
    """-(dP/da) / (dP/dx): the density, which may underflow, cancels.

    Of a large a and an x near it, where the sums would be too long, by the cube root of Wilson
    and Hilferty, which is nearly normal, and the next term of Cornish and Fisher's expansion.
    """
    sa, sx = make_proper(a, x)
    many, reach = (4e6, 0.01) if x.eps < 1e-10 else (1e5, 0.05)
    way = (sx - sa) / sa
    near = (sa > many) & (abs(way) < reach)
    q, n = expm1(log1p(where(near, way, 0.0)) / 3), 1 / sa
    w, r = 3 * q + n / 3, 1 + q
    far = r * r * (r + n / 6 - 1.5 * q) + w * (w * w - 3 * n) / 216
    sa, sx = where(near, 1.0, sa), where(near, 1.0, sx)
    s, ds, h, slope = derivative_sums(sa, sx)
    by_series = -(sx / sa * (s * (log(sx) - write_digamma(sa + 1)) + ds))
    by_fraction = sx * (h * (log(sx) - write_digamma(sa) + slope))
    found = where(near, far, where(uses_series(sa, sx), by_series, by_fraction))
    return fix_ends(found, a, x, 0.0, 0.0)


# --- incomplete beta ------------------------------------------------------------------------


def avoid_zero(x: Expr) -> Expr:
    """x, or something tiny where it is 0."""
    return where(equal(x, 0), float(x.finfo.tiny) ** 0.5, x)


def beta_fraction(a: Expr, b: Expr, x: Expr, y: Expr) -> Expr:
    """Return I(x; a, b) beta(a, b) / (x**a y**b), y = 1 - x, by the modified Lentz algorithm.

    The fraction is DiDonato and Morris 1992 (9). It subtracts neither x nor y from 1.
    """
    last = max(float(x.finfo.eps), x.eps / 8) / 2
    mean = a * y - b * x + 1
    start = avoid_zero(a / (a + 1) * mean)

    def step(m: Expr, c: Expr, d: Expr, h: Expr) -> list:
        odd = a + (2 * m - 1)
        move = m * ((b - m) * x / odd)
        top = (a + (m - 1)) * ((a + b + (m - 1)) * x / odd) * move
        bottom = m + move + (a + m) / (odd + 2) * (mean + m * (y + 1))
        d = 1 / avoid_zero(bottom + top * d)
        c = avoid_zero(bottom + top / c)
        return [abs(c * d - 1) > last, c, d, h * (c * d)]

    return 1 / repeat(step, [start, x.like(0.0), start], equal(x, x))[2]


def normal_beta(a: Expr, b: Expr, x: Pair) -> Expr:
    """I(x; a, b) of large a and b: as of a normal distribution, corrected once for its skewness."""
    n = a + b
    width = sqrt(n / a / b)  # the width of the distribution times sqrt(n)
    deviate = (x - to_pair(a) / (to_pair(a) + b)).value * n * width
    v = where(abs(deviate) < 50, deviate, where(deviate < 0, -50.0, x.hi.like(50.0)))
    skew = (b / n - a / n) * (width / 3)
    z = v / (1 + skew * v)
    return normal_cdf(z) + exp(-0.5 * z * z) * skew * (2 * math.pi) ** -0.5


def make_proper_beta(a: Expr, b: Expr, x: Expr) -> tuple[Expr, Expr, Expr]:
    """The arguments of an incomplete beta function, harmless ones where they are not proper."""
    good = is_proper(a, x) & (x < 1) & (b > 0) & (b < math.inf)
    return where(good, a, 1.0), where(good, b, 1.0), where(good, x, 0.5)


def beta_tail(a: Expr, b: Expr, x: Expr) -> tuple[Expr, Pair, Pair, Expr]:
    """Return (turned, e, d, f): exp(e) d f is I(x; a, b), or 1 - I(x; a, b) where it is `turned`.

    It is the tail that x is in. exp(e) d is x**a (1 - x)**b / beta(a, b).
    """
    rest = 1 - to_pair(x)
    # of a small b, 1 - part would cancel, and the fraction converges, though slowly, near x = 1
    spare = x.finfo.eps < x.eps / 2
    cancels = ((b < 0.5) & (x < (0.9 if spare else 0.995))) | ((b < 0.05) & (x < 0.995))
    turned = (x > (a + 1) / (a + b + 2)) & ~cancels
    ca, cb = where(turned, b, a), where(turned, a, b)
    exponent, factor = inverse_beta_parts(a, b)
    log_x, log_rest = log_pair(x), log_pair(rest)
    # For huge b, the logarithm of a pair near 0 has too few digits.
    log_rest = where(is_vast(a, b) & (b > a), to_pair(log1p(-x)), log_rest)
    exponent = exponent + a * log_x + b * log_rest
    here, there = where(turned, rest.value, x), where(turned, x, rest.value)
    return turned, exponent, factor, beta_fraction(ca, cb, here, there)


def incomplete_beta(a: Expr, b: Expr, x: Expr) -> Expr:
    """The regularized incomplete beta function I(x; a, b), from the nearer end."""
    proper = make_proper_beta(a, b, x)
    turned, exponent, factor, fraction = beta_tail(*proper)
    part = exp_pair(exponent) * factor.value * fraction
    return fix_beta_ends(where(turned, 1 - part, part), proper, a, b, x)


def log_incomplete_beta(a: Expr, b: Expr, x: Expr, upper: bool) -> Expr:
    """log I(x; a, b), or with `upper` log(1 - I(x; a, b)); finite where the tail underflows."""
    proper = make_proper_beta(a, b, x)
    turned, exponent, factor, fraction = beta_tail(*proper)
    part = exp_pair(exponent) * factor.value * fraction
    rare = part < 0.1
    size = (exponent + log_pair(factor) + log_pair(fraction)).value
    size = where(rare, size, log(where(rare, 0.5, part)))
    small = turned if upper else ~turned
    out = where(small, size, log1p(-where(small, 0.5, part)))
    ends = (0.0, -math.inf) if upper else (-math.inf, 0.0)
    return fix_beta_ends(out, proper, a, b, x, ends, lambda v: log(1 - v if upper else v))


def log_beta_slope(a: Expr, b: Expr, x: Expr, upper: bool) -> Expr:
    """The derivative of `log_incomplete_beta` in x, for 0 < x < 1."""
    a, b, x = make_proper_beta(a, b, x)
    turned, exponent, factor, fraction = beta_tail(a, b, x)
    small = turned if upper else ~turned
    density = exp_pair(exponent) * factor.value
    slope = where(small, 1 / fraction, density / (1 - where(small, 0.5, density * fraction)))
    return (-slope if upper else slope) / (x * (1 - x))


def fix_beta_ends(
    out: Expr,
    proper: tuple,
    a: Expr,
    b: Expr,
    x: Expr,
    ends: tuple[float, float] = (0.0, 1.0),
    apply: Callable = lambda v: v,
) -> Expr:
    """`out`, except for the ends, and for huge parameters, where it is `apply(I(x; a, b))`.

    NaN where an argument is out of range, or both parameters are 0 or infinite.
    """
    sa, sb, sx = proper
    undecided = (equal(a, 0) & equal(b, 0)) | (equal(a, math.inf) & equal(b, math.inf))
    valid = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1) & ~undecided
    many = where(sa < sb, sa, sb) > (1e10 if x.eps < 1e-10 else 1e6)
    zero, one = ends
    return choose(
        out,
        (many, apply(normal_beta(where(many, sa, 1.0), where(many, sb, 1.0), to_pair(sx)))),
        (equal(a, 0) | equal(b, math.inf), one),
        (equal(b, 0) | equal(a, math.inf), zero),
        (equal(x, 1), one),
        (equal(x, 0), zero),
        (~valid, math.nan),
    )
