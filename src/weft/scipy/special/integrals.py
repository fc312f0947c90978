"""Integrals of elementary functions: exponential, sine, cosine and Fresnel integrals, dilogarithm.

By Chebyshev series on intervals, of the functions themselves or of what multiplies their limits.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from weft.numpy.choice import where as select
from weft.numpy.elementwise import sinc_derivative
from weft.primitives import transcendental as ops
from weft.primitives.expr import Expr
from weft.primitives.special import tables
from weft.primitives.special.formula import (
    add_parts,
    choose,
    cos_pi,
    cosine,
    equal,
    exact_product,
    exp,
    floor,
    log,
    log1p,
    repeat,
    series,
    sign,
    sin_pi,
    sine,
    where,
)
from weft.primitives.special.gamma import write_digamma
from weft.run.operation import operation
from weft.scipy.special.definitions import define_pair, define_primitive, promote_floats
from weft.xla.typing import Array, ArrayLike

_EULER = 0.5772156649015329
_EI_ZERO = Fraction("0.37250741078136663446199186658011913353568949777165")


def exp1_formula(x: Expr) -> Expr:
    """E1(x); inf at 0, NaN below."""
    inverse = 1 / where(x > 1, x, 1.0)
    far = choose(
        series(inverse, tables.E1_4),
        (x < 16, series(inverse, tables.E1_3)),
        (x < 4, series(inverse, tables.E1_2)),
    )
    near = x * series(x, tables.E1_1) - (log(x) + _EULER)
    return choose(far * exp(-x) * inverse, (x <= 1, near), (x < 0, math.nan))


def expi_formula(x: Expr) -> Expr:
    """Ei(x), relatively exact at its zero; -inf at 0."""
    # the zero has two parts: what the second adds is constant near it, and nothing elsewhere
    zero = float(_EI_ZERO)
    d = x - zero
    logarithm = where(abs(d) < 0.2, log1p(d / zero), log(x / zero))
    near = logarithm + d * series(x, tables.EI_1)
    near = near - float(_EI_ZERO - Fraction(zero)) * (math.exp(zero) / zero)
    inverse = 1 / where(x > 1, x, 1.0)
    far = choose(
        series(inverse, tables.EI_6),
        (x < 48, series(inverse, tables.EI_5)),
        (x < 24, series(x, tables.EI_4)),
        (x < 12, series(x, tables.EI_3)),
        (x < 6, series(x, tables.EI_2)),
    )
    half = exp(x * 0.5)  # exp(x) may overflow where Ei does not
    return choose(
        half * inverse * far * half,
        (x < 3, near),
        (x < 0, -exp1_formula(abs(x))),
        (equal(x, 0), -math.inf),
        (equal(x, math.inf), math.inf),
    )


def expn_formula(n: Expr, x: Expr) -> Expr:
    """En(x), by its series to 1 and its continued fraction beyond."""
    good = (n >= 1) & (x > 0) & (x < math.inf) & equal(floor(n), n)
    sn, sx = where(good, n, 1.0), where(good, x, 1.0)
    near = sx <= 1

    def series_step(i: Expr, power: Expr, total: Expr) -> list:
        power = power * (sx / -i)
        pole = equal(i, sn - 1)
        away = -power / where(pole, 1.0, i - (sn - 1))
        term = where(pole, power * (write_digamma(sn) - log(sx)), away)
        return [(abs(term) > abs(total) * (x.eps / 8)) | (i < sn), power, total + term]

    def fraction_step(i: Expr, c: Expr, d: Expr, h: Expr) -> list:
        top = -(i * (sn - 1 + i))
        b = sx + sn + 2 * i
        d = 1 / (top * d + b)
        c = b + top / c
        return [abs(c * d - 1) > x.eps / 2, c, d, h * (c * d)]

    first = where(equal(sn, 1), -log(sx) - _EULER, 1 / where(equal(sn, 1), 1.0, sn - 1))
    total = repeat(series_step, [x.like(1.0), first], near & (sn < 30))[1]
    start = 1 / (sx + sn)
    large = x.like(0.1 / float(x.finfo.tiny) ** 0.5)
    fraction = repeat(fraction_step, [large, start, start], ~near | (sn >= 30))[2] * exp(-sx)
    return choose(
        where(near & (sn < 30), total, fraction),
        (equal(x, 0), where(n > 1, 1 / where(n > 1, n - 1, 1.0), math.inf)),
        (equal(n, 0), exp(-x) / abs(x)),
        (equal(x, math.inf), 0.0),
        ((x < 0) | (n < 0) | ~equal(floor(n), n), math.nan),
    )


def dilogarithm(x: Expr) -> Expr:
    """Li2(1 - x), reflected and inverted into |1 - x| <= 1/2."""
    beyond = x > 1.5
    y = where(beyond, 1 / x, x)
    low = y < 0.5
    z = where(low, y, 1 - y)
    part = z * series(z, tables.DILOG)
    log_y = log(where(equal(y, 0), 1.0, y))
    value = where(low, math.pi**2 / 6 - log_y * log1p(-y) - part, part)
    log_x = log(x)
    return choose(
        where(beyond, -0.5 * log_x * log_x - value, value),
        (equal(x, math.inf), -math.inf),
        (x < 0, math.nan),
    )


def sine_parts(x: Expr) -> tuple[Expr, Expr]:
    """f and g of Si = pi/2 - f cos - g sin and Ci = f sin - g cos, for x >= 4."""
    inverse = 1 / where(x > 4, x, 4.0)
    t = inverse * inverse
    near = x < 8
    f = where(near, series(t, tables.SICI_F1), series(t, tables.SICI_F2)) * inverse
    g = where(near, series(t, tables.SICI_G1), series(t, tables.SICI_G2)) * t
    return f, g


def sine_integral(x: Expr) -> Expr:
    """Si(x)."""
    y = abs(x)
    f, g = sine_parts(y)
    z = where(y < math.inf, y, 4.0)
    far = where(y < math.inf, math.pi / 2 - (f * cosine(z) + g * sine(z)), math.pi / 2)
    return where(y < 4, x * series(x * x, tables.SI), sign(x) * far)


def cosine_integral(x: Expr) -> Expr:
    """Ci(|x|)."""
    y = abs(x)
    f, g = sine_parts(y)
    z = where(y < math.inf, y, 4.0)
    far = where(y < math.inf, f * sine(z) - g * cosine(z), 0.0)
    t = x * x
    near = (log(y) + _EULER) - t * series(t, tables.CIN)
    return choose(far, (y < 4, near), (equal(x, -math.inf), math.nan))


def fresnel_integral(x: Expr, cosine: bool) -> Expr:
    """C(x) or S(x); pi x**2 / 2 is reduced exactly."""
    y = where(abs(x) < 1e15, abs(x), 1e15)
    square = y * y
    t = square * square
    if cosine:
        near = y * series(t, tables.FRESNEL_C)
    else:
        near = y * square * series(t, tables.FRESNEL_S)
    inverse = 1 / where(y > 1.6, square, 2.56)
    u = inverse * inverse
    first = u > 0.03
    f = where(first, series(u, tables.FRESNEL_F1), series(u, tables.FRESNEL_F2))
    g = where(first, series(u, tables.FRESNEL_G1), series(u, tables.FRESNEL_G2))
    f, g = f / (y * math.pi), g * inverse / (y * math.pi**2)
    high, low = exact_product(y, y)
    angle = add_parts(high - 4 * floor(high * 0.25), low) * 0.5
    s, c = sin_pi(angle), cos_pi(angle)
    far = 0.5 + (f * s - g * c) if cosine else 0.5 - (f * c + g * s)
    out = where(y < 1.6, near, where(abs(x) < 1e15, far, 0.5))
    return sign(x) * out


exp1_p, exp1 = define_pair(
    "exp1",
    exp1_formula,
    [lambda t, y, x: t * (-ops.exp(-x) / x)],
    """Compute the exponential integral E1: the integral of `exp(-t) / t` from x to infinity.

    It is inf at 0, and NaN for negative x.

    >>> jnp.array([0.5, 1.0, 5.0])
    [0.5598 0.2194 0.0011]
    """,
    strong=True,
)
expi_p, expi = define_pair(
    "expi",
    expi_formula,
    [lambda t, y, x: t * (ops.exp(x) / x)],
    """Compute the exponential integral Ei: the integral of `exp(t) / t` from -infinity to x.

    For positive x it is the principal value. It is -inf at 0.

    >>> jnp.array([-1.0, 0.5, 1.0])
    [-0.2194  0.4542  1.8951]
    """,
    strong=True,
)


def expn_slope(y: Any, n: Any, x: Any) -> Any:
    """Return E(n-1) of y = En, by the recurrence E(-1) = (e**-x + E0) / x where n is 0."""
    lower = expn_p.apply(select(n < 1, 0, n - 1), x)[0]
    return select(n < 1, (ops.exp(-x) + y) / x, lower)


expn_p, expn = define_pair(
    "expn",
    expn_formula,
    [None, lambda t, y, n, x: t * -expn_slope(y, n, x)],
    """Compute the generalized exponential integral: of `exp(-x t) / t**n` from 1 to infinity.

    Only x has a derivative.

    n: a whole number, not negative.
    x: not negative.

    >>> jnp.array([1, 2]), 1.0
    [0.2194 0.1485]
    """,
    strong=True,
)


def spence_slope(x: Any) -> Any:
    """log(x) / (1 - x); near 1 by its power series, which has all derivatives there."""
    near = abs(x - 1) < 0.25
    small, series = select(near, 1 - x, 0), 0.0 * x
    for k in range(36, 0, -1):
        series = 1 / k + series * small
    return select(near, -series, ops.log(x) / select(near, 1, 1 - x))


spence_p, spence = define_pair(
    "spence",
    dilogarithm,
    [lambda t, y, x: t * spence_slope(x)],
    """Compute the integral of `log(t) / (1 - t)` from 1 to x, the dilogarithm of 1 - x.

    It is NaN for x < 0.

    >>> jnp.array([0.0, 1.0, 2.0])
    [ 1.6449  0.     -0.8225]
    """,
    strong=True,
)
sine_p = define_primitive(
    "sine_integral", sine_integral, [lambda t, y, x: t * sinc_derivative(0, 1, x)], "Si(x)."
)
cosine_p = define_primitive(
    "cosine_integral", cosine_integral, [lambda t, y, x: t * ops.cos(x) / x], "Ci(x)."
)
fresnel_s_p = define_primitive(
    "fresnel_s",
    lambda x: fresnel_integral(x, cosine=False),
    [lambda t, y, x: t * ops.sin(x * x * (math.pi / 2))],
    "S(x).",
)
fresnel_c_p = define_primitive(
    "fresnel_c",
    lambda x: fresnel_integral(x, cosine=True),
    [lambda t, y, x: t * ops.cos(x * x * (math.pi / 2))],
    "C(x).",
)


@operation
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """Compute the sine integral and the cosine integral.

    Si(x) is the integral of `sin(t) / t` from 0 to x. Ci(x) is Euler's constant + log |x| + the
    integral of `(cos(t) - 1) / t` from 0 to x.

    Args:
      x: an array of floats, or a number. Integers and bools become floats first.

    Returns:
      A pair (Si, Ci) of arrays of floats, of the shape of the operand.

    Raises:
      DtypeError: the operand is complex, or not an array or a number.

    >>> from weft.scipy import special
    >>> si, ci = special.sici(jnp.array([1.0, 10.0]))
    >>> print(np.asarray(si).round(4), np.asarray(ci).round(4))
    [0.9461 1.6583] [ 0.3374 -0.0455]
    """
    (x,) = promote_floats("sici", x, strong=True)
    return sine_p.apply(x)[0], cosine_p.apply(x)[0]


@operation
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Compute the Fresnel integrals.

    They are the integrals of `sin(pi t**2 / 2)` and `cos(pi t**2 / 2)` from 0 to x.

    Args:
      x: an array of floats, or a number. Integers and bools become floats first.

    Returns:
      A pair (S, C) of arrays of floats, of the shape of the operand.

    Raises:
      DtypeError: the operand is complex, or not an array or a number.

    >>> from weft.scipy import special
    >>> s, c = special.fresnel(jnp.array([0.5, 2.0]))
    >>> print(np.asarray(s).round(4), np.asarray(c).round(4))
    [0.0647 0.3434] [0.4923 0.4883]
    """
    (x,) = promote_floats("fresnel", x, strong=True)
    return fresnel_s_p.apply(x)[0], fresnel_c_p.apply(x)[0]
