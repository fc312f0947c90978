"""Formulas of Bessel functions, by Chebyshev series on intervals.

The primitives they lower are in functions.py.
"""

from __future__ import annotations

from weft.primitives.expr import Expr
from weft.primitives.special import tables
from weft.primitives.special.formula import choose, series, sign, sqrt, where


def join_intervals(x: Expr, near: Expr, middle: tuple, far: tuple) -> Expr:
    """`near` to 4, a series to 10, and a series in 1 / x over sqrt(x) beyond; of x >= 0."""
    inverse = 4 / where(x > 10, x, 10.0)  # of the largest x, 1 / x is subnormal and flushed to 0
    beyond = series(inverse * 0.25, far) * (sqrt(inverse) * 0.5)
    return choose(beyond, (x < 10, series(x, middle)), (x < 4, near))


def i0e(x: Expr) -> Expr:
    """exp(-|x|) I0(x)."""
    x = abs(x)
    return join_intervals(x, series(x, tables.I0E_1), tables.I0E_2, tables.I0E_3)


def i1e(x: Expr) -> Expr:
    """exp(-|x|) I1(x)."""
    y = abs(x)
    near = y * series(y, tables.I1E_1)
    return sign(x) * join_intervals(y, near, tables.I1E_2, tables.I1E_3)
