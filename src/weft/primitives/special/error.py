"""Formulas of the error function family: erf, erfc, erfcx, their inverses, Dawson's integral.

The primitives they lower are in functions.py and weft.scipy.special. Where exp(-x**2) is a factor,
x is cut in two so that the square is exact and the tail as exact as exp itself.
"""

from __future__ import annotations

import math

from weft.primitives.expr import Expr
from weft.primitives.special import formula, tables
from weft.primitives.wide import copy_sign


def exp_square(x: Expr, factor: float) -> Expr:
    """exp(factor x**2), factor 1, -1 or -1/2, without rounding the square."""
    high, low = x.split_bits()
    out = formula.exp(high * high * factor)
    rest = (x + high) * low * factor  # small; a product of two exp the compiler would make one
    more = rest * rest.polynomial((1, 1 / 2, 1 / 6, 1 / 24))
    usual = out + formula.where(out < math.inf, out * more, 0.0)
    # of a result near the least normal number, the part that is added would be taken for 0
    return formula.where(out < float(out.finfo.tiny) * 2.0**60, out * (1 + more), usual)


def erfcx(x: Expr) -> Expr:
    """exp(x**2) erfc(x) for x >= 0."""
    t = formula.where(formula.equal(x, math.inf), 1.0, (x - 2) / (x + 2))
    return formula.series(t, tables.ERFCX) / (1 + 2 * x)


def scaled_erfc(x: Expr) -> Expr:
    """exp(x**2) erfc(x)."""
    up = erfcx(abs(x))
    return formula.where(x < 0, 2 * exp_square(bound_square(abs(x)), 1.0) - up, up)


def bound_square(x: Expr) -> Expr:
    """x >= 0, cut where exp(-x**2) is long 0, so that the parts of a square are finite."""
    return formula.where(x > 100, 100.0, x)


# erf(x) = x + x p / q up to 0.84375, in x**2 (fdlibm; see NOTICE). Beyond, it is
# 1 - e**(-x**2) w p(w - middle) with w = 1 / (1 + x / 2).
_ERF = (
    *(1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02),
    *(-5.77027029648944159157e-03, -2.37630166566501626084e-05),
)
_ERF_BELOW = (
    *(1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03),
    *(1.32494738004321644526e-04, -3.96022827877536812320e-06),
)
_ERF_MIDDLE = 0.4766483516483517
_ERF_TAIL = (
    *(0.49504790332795579, 0.66130321836031969, 0.54818295637709868, 0.16125293532571763),
    *(-0.15919801351856436, -0.1168500713527517, 0.088858445694603883, 0.069153502826113017),
    *(-0.081143421456569886, -0.02698312626910401, 0.081139956125324, -0.019655714832747667),
    *(-0.065271324184945814, 0.064342724350497052, 0.025307344556201136, -0.073915236545198354),
)


def write_erf(x: Expr) -> Expr:
    """The error function of float64, within a unit."""
    a = abs(x)
    held = formula.minimum(a, 6.0)
    s, near = held * held, a < 0.84375
    top = near.select(s.polynomial(_ERF), 1.0)
    ratio = top / near.select(s.polynomial(_ERF_BELOW), held * 0.5 + 1)
    far = 1 - formula.exp(-s) * (ratio * (ratio - _ERF_MIDDLE).polynomial(_ERF_TAIL))
    out = near.select(held + held * ratio, far)
    # of the least numbers, the part that is added would be taken for 0
    out = (held < 1e-290).select(held * 1.1283791670955126, out)
    return x.compare("EQ", x).select(copy_sign(out, x), x)


def write_erfc(x: Expr) -> Expr:
    """1 - erf(x)."""
    y = abs(x)
    tail = exp_square(bound_square(y), -1.0) * erfcx(y)
    near = 1 - x * formula.series(x * x, tables.ERF)
    return formula.choose(tail, (x < 0, 2 - tail), (y < 0.5, near))


def normal_cdf(x: Expr) -> Expr:
    """The distribution function of the normal distribution, erfc(-x / sqrt(2)) / 2."""
    y = abs(x)
    z = y * math.sqrt(0.5)
    tail = 0.5 * exp_square(bound_square(y), -0.5) * erfcx(z)
    near = 0.5 + 0.5 * (x * math.sqrt(0.5)) * formula.series(z * z, tables.ERF)
    return formula.choose(tail, (x > 0, 1 - tail), (z < 0.5, near))


def log_normal_cdf(x: Expr) -> Expr:
    """The logarithm of the normal distribution function, in both tails."""
    y = abs(x)
    z = y * math.sqrt(0.5)
    scaled = 0.5 * erfcx(z)
    upper = formula.log1p(-(exp_square(bound_square(y), -0.5) * scaled))
    lower = formula.log(scaled) - 0.5 * x * x
    return formula.where(x > 0, upper, formula.where(formula.equal(y, math.inf), -math.inf, lower))


def inverse_tail(y: Expr) -> Expr:
    """The x whose erfc is y, for y in (0, 1/4]; inf at 0."""
    r = formula.sqrt(-formula.log(y))
    out = formula.choose(
        formula.series(r, tables.ERFCINV_3),
        (r < 7, formula.series(r, tables.ERFCINV_2)),
        (r < 2.5, formula.series(r, tables.ERFCINV_1)),
    )
    return formula.where(formula.equal(y, 0), math.inf, out)


def erf_inverse(x: Expr) -> Expr:
    """The y whose error function is x; NaN beyond 1."""
    y = abs(x)
    near = x * formula.series(x * x, tables.ERFINV)
    tail = formula.sign(x) * inverse_tail(formula.where(y < 0.75, 0.25, 1 - y))
    return formula.choose(formula.where(y < 0.75, near, tail), (~(y <= 1), math.nan))


def erfc_inverse(y: Expr) -> Expr:
    """The x whose erfc is y; NaN outside of [0, 2]."""
    other = 2 - y
    d = 1 - y
    near = d * formula.series(d * d, tables.ERFINV)
    low, high = y < 0.25, other < 0.25
    tail = inverse_tail(formula.where(low, y, formula.where(high, other, 0.25)))
    return formula.choose(near, (low, tail), (high, -tail), (~((y >= 0) & (y <= 2)), math.nan))


def normal_quantile(p: Expr) -> Expr:
    """The x whose normal distribution function is p; NaN outside of [0, 1]."""
    d = 2 * p - 1
    root2 = math.sqrt(2)
    near = d * formula.series(d * d, tables.ERFINV)
    low, high = p < 0.125, p > 0.875
    tail = inverse_tail(2 * formula.where(low, p, formula.where(high, 1 - p, 0.125)))
    return formula.choose(
        near * root2, (low, -tail * root2), (high, tail * root2), (~((p >= 0) & (p <= 1)), math.nan)
    )


def dawson(x: Expr) -> Expr:
    """Dawson's integral, exp(-x**2) times the integral of exp(t**2) from 0 to x."""
    y = abs(x)
    inverse = 1 / formula.maximum(y, 1.0)
    far = formula.series(inverse * inverse, tables.DAWSON_4) * inverse
    up = formula.choose(
        far,
        (y < 6, formula.series(y, tables.DAWSON_3)),
        (y < 3, formula.series(y, tables.DAWSON_2)),
    )
    return formula.where(
        y < 1.224744, x * formula.series(x * x, tables.DAWSON_1), formula.sign(x) * up
    )
