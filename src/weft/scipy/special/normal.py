"""The error function and what is made of it: the normal distribution, Dawson, Faddeeva, Owen.

The formulas are in primitives/special/error.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft.api.custom_rules import custom_jvp
from weft.numpy.choice import where as pick
from weft.numpy.promotion import as_array
from weft.primitives import elementwise as ops
from weft.primitives.expr import Expr
from weft.primitives.special import error as error_formulas
from weft.primitives.special.formula import choose, equal, exp, where
from weft.run.operation import operation
from weft.scipy.special import definitions
from weft.xla.typing import Array, ArrayLike

_ROOT_PI = math.sqrt(math.pi)
_ROOT_2PI = math.sqrt(2 * math.pi)


def tail_series(x: Any, sign: int) -> Any:
    """The sum of (2n - 1)!! (sign / (2 x**2))**n over n = 1, 2, ..., for x beyond `tail_start`.

    Asymptotic: 2 x dawsn(x) - 1 for the sign 1, sqrt(pi) x erfcx(x) - 1 for -1 (DLMF 7.12.1). Each
    of them cancels as it is written.
    """
    square, total = 0.5 * sign / (x * x), x * 0
    for n in reversed(range(1, 25)):
        total = (2 * n - 1) * square * (1 + total)
    return total


def tail_start(x: Any) -> float:
    """Where `tail_series` is as exact as the dtype."""
    return 7.0 if x.dtype == np.float64 else 4.0


def erfcx_slope(x: Any, y: Any) -> Any:
    """2 x y - 2 / sqrt(pi) of y = erfcx(x)."""
    far = x > tail_start(x)
    tail = tail_series(pick(far, x, 10), -1) * (2 / _ROOT_PI)
    return pick(far, tail, 2 * x * y - 2 / _ROOT_PI)


def dawsn_slope(x: Any, y: Any) -> Any:
    """1 - 2 x y of y = dawsn(x)."""
    far = abs(x) > tail_start(x)
    return pick(far, -tail_series(pick(far, x, 10), 1), 1 - 2 * x * y)


erfcx_p = definitions.define_primitive(
    "erfcx",
    error_formulas.scaled_erfc,
    [lambda t, y, x: t * erfcx_slope(x, y)],
    "exp(x**2) erfc(x).",
    wide=False,
)
erfcinv_p, erfcinv = definitions.define_pair(
    "erfcinv",
    error_formulas.erfc_inverse,
    [lambda t, y, x: t * (-_ROOT_PI / 2) * lax.exp(y * y)],
    "The y whose erfc is x; NaN outside of [0, 2].",
    wide=False,
)
ndtr_p, ndtr = definitions.define_pair(
    "ndtr",
    error_formulas.normal_cdf,
    [lambda t, y, x: t * lax.exp(-0.5 * x * x) * (1 / _ROOT_2PI)],
    "The distribution function of the normal distribution, exact in the lower tail.",
    wide=False,
    strong=True,
)
ndtri_p, ndtri = definitions.define_pair(
    "ndtri",
    error_formulas.normal_quantile,
    [lambda t, y, p: t * _ROOT_2PI * lax.exp(0.5 * y * y)],
    "The x whose normal distribution function is p; NaN outside of [0, 1].",
    wide=False,
    strong=True,
)
log_ndtr_p = definitions.define_primitive(
    "log_ndtr",
    error_formulas.log_normal_cdf,
    # the density over the distribution function; erfcx of a large negative number is inf, and
    # then the quotient 0, which is its limit
    [lambda t, y, x: t * (math.sqrt(2 / math.pi) / erfcx_p.apply(x * -math.sqrt(0.5))[0])],
    "log of the distribution function of the normal distribution.",
    wide=False,
)
dawsn_p, dawsn = definitions.define_pair(
    "dawsn",
    error_formulas.dawson,
    [lambda t, y, x: t * dawsn_slope(x, y)],
    "Dawson's integral: exp(-x**2) times the integral of exp(t**2) from 0 to x.",
    wide=False,
    strong=True,
)


def owen_quadrature(h: Expr, a: Expr) -> Expr:
    """Owen's T by Gauss-Legendre quadrature of its integral, whose terms are all positive.

    T(h, a) = (Q(h) + Q(ah)) / 2 - Q(h) Q(ah) - T(ah, 1/a) for a > 1, Q = 1 - ndtr.
    """
    h, size = abs(h), abs(a)
    turned = size > 1
    width = where(turned, h * where(equal(h, 0), 1.0, size), h)
    slope = where(turned, 1 / where(turned, size, 1.0), size)
    bounded = where(width > 40, 40.0, width)
    end = where(slope * bounded > 9, 9 / where(equal(bounded, 0), 1.0, bounded), slope)
    total = h.like(0.0)
    for node, weight in zip(*np.polynomial.legendre.leggauss(28), strict=True):
        x = end * float((1 + node) / 2)
        square = x * x
        total = total + float(weight) * exp(-0.5 * (bounded * bounded) * square) / (1 + square)
    scale = error_formulas.exp_square(bounded, -0.5)
    part = where(width > 40, 0.0, total * end * scale * (1 / (4 * math.pi)))
    upper = error_formulas.normal_cdf(-h)
    steep = error_formulas.normal_cdf(-where(equal(h, 0), 0.0, h * size))
    whole = choose(part, (turned, (upper + steep) * 0.5 - upper * steep - part))
    return where(a < 0, -whole, whole)


owens_t_p, owens_t = definitions.define_pair(
    "owens_t",
    owen_quadrature,
    [
        lambda t, y, h, a: (
            t * lax.exp(-0.5 * h * h) * lax.erf(a * h * math.sqrt(0.5)) * (-0.5 / _ROOT_2PI)
        ),
        lambda t, y, h, a: t * lax.exp(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a)),
    ],
    """Owen's T function: 1 / 2 pi times the integral over x from 0 to a of
    exp(-h**2 (1 + x**2) / 2) / (1 + x**2).""",
    strong=True,
)


def faddeeva(z: Any) -> Any:
    """w(z) in the first quadrant by trapezoidal rules (Al Azah and Chandler-Wilde 2021), N = 11.

    The rule halfway between multiples of h, or at them where z is near halfway; with the residue at
    z, but far above the axis.
    """
    n = 11
    h = math.sqrt(math.pi / (n + 1))
    x, y = ops.real(z), ops.imag(z)
    phase = x * (1 / h)
    phase = phase - ops.floor(phase)
    corrected = y < ops.max(x, x * 0 + math.pi / h)
    halfway = (phase < 0.25) | (phase > 0.75) | ~corrected
    square = ops.select(halfway, z * 0 + 1, z * z)  # each rule away from its own poles
    whole = sum(math.exp(-((k * h) ** 2)) / (square - (k * h) ** 2) for k in range(1, n + 1))
    whole = whole + 0.5 / square
    square = ops.select(halfway, z * z, z * 0 + 1)
    nodes = [(k + 0.5) * h for k in range(n + 1)]
    middle = sum(math.exp(-t * t) / (square - t * t) for t in nodes)
    total = ops.select(halfway, middle, whole) * z * (2j * h / math.pi)
    near = ops.select(corrected, z, z * 0 + 0.25)
    turn = lax.exp(near * (-2j * math.pi / h))
    residue = 2 * lax.exp(-near * near) / ops.select(halfway, 1 + turn, 1 - turn)
    return ops.select(corrected, total + residue, total)


def extend_faddeeva(z: Any) -> Any:
    """w(z) from the first quadrant by w(-conj z) = conj w(z) and w(-z) = 2 exp(-z**2) - w(z)."""
    x, y = ops.real(z), ops.imag(z)
    w = faddeeva(ops.complex(ops.abs(x), ops.abs(y)))
    w = ops.select(x < 0, ops.conj(w), w)
    # below the axis w is that of conj(z), and w(z) = 2 exp(-z**2) - w(-z), -z = -conj(conj z)
    below = y < 0
    return ops.select(below, 2 * lax.exp(-z * z) - ops.conj(w), w)


@custom_jvp
def wofz_complex(z: Any) -> Any:
    """wofz of complex numbers."""
    return definitions.compute_wide(extend_faddeeva, z)


wofz_complex.defjvps(lambda t, w, z: t * (2j / _ROOT_PI - 2 * z * w))


@operation
def wofz(z: ArrayLike) -> Array:
    """The Faddeeva function exp(-z**2) erfc(-i z), complex."""
    z = as_array(z, "wofz")
    (z,) = definitions.promote_floats("wofz", z, strong=True, takes_complex=True)
    return wofz_complex(ops.convert(z, dtypes.complex_dtype(z.dtype)))


@operation
def erfcx(x: ArrayLike) -> Array:
    """exp(x**2) erfc(x), also of complex x."""
    (x,) = definitions.promote_floats("erfcx", x, strong=True, takes_complex=True)
    return wofz_complex(x * 1j) if dtypes.is_complex(x.dtype) else erfcx_p.apply(x)[0]


@operation(static=("series_order",))
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of ndtr(x), exact in both tails.

    `series_order`, an integer from 0 to 30, is taken as JAX does; no such series is summed here.
    """
    if type(series_order) is not int:
        raise TypeError(f"log_ndtr: series_order must be an integer; got {series_order!r}.")
    if not 0 <= series_order <= 30:
        raise ValueError(f"log_ndtr: series_order must be from 0 to 30; got {series_order}.")
    return log_ndtr_p.apply(*definitions.promote_floats("log_ndtr", x, strong=True))[0]


erf = definitions.define_function(
    "erf",
    lambda x: lax.erf(x),
    """The error function, 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x.

    >>> from weft.scipy import special
    >>> special.erf(0.0)
    Array(0., dtype=float32, weak_type=True)
    """,
)
erfc = definitions.define_function("erfc", lambda x: lax.erfc(x), "1 - erf(x), exact in the tail.")
erfinv = definitions.define_function(
    "erfinv", lambda x: lax.erf_inv(x), "The y whose erf is x; NaN outside of [-1, 1]."
)
