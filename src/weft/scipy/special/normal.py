"""The error function and related functions: the normal distribution, Dawson, Faddeeva, Owen.

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
    """Return the sum of (2n - 1)!! (sign / (2 x**2))**n over n = 1, 2, ..., x beyond `tail_start`.

    The series is asymptotic: 2 x dawsn(x) - 1 for the sign 1, sqrt(pi) x erfcx(x) - 1 for -1 (DLMF
    7.12.1). Evaluated in that form, both would cancel.
    """
    square, total = 0.5 * sign / (x * x), x * 0
    for n in reversed(range(1, 25)):
        total = (2 * n - 1) * square * (1 + total)
    return total


def tail_start(x: Any) -> float:
    """Return the number beyond which `tail_series` is as exact as the dtype."""
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
    """Compute the inverse of `erfc`: the y with erfc(y) = x.

    It is NaN for x outside [0, 2]. Small x, for which 1 - x is rounded to 1, keep their accuracy.

    >>> jnp.array([1e-10, 1.0, 1.5])
    [ 4.5728  0.     -0.4769]
    """,
    wide=False,
)
ndtr_p, ndtr = definitions.define_pair(
    "ndtr",
    error_formulas.normal_cdf,
    [lambda t, y, x: t * lax.exp(-0.5 * x * x) * (1 / _ROOT_2PI)],
    """Compute the distribution function of the standard normal distribution.

    It keeps its relative accuracy in the lower tail. `log_ndtr` is its logarithm, for tails where
    it underflows.

    >>> jnp.array([-2.0, 0.0, 1.0])
    [0.0228 0.5    0.8413]
    """,
    wide=False,
    strong=True,
)
ndtri_p, ndtri = definitions.define_pair(
    "ndtri",
    error_formulas.normal_quantile,
    [lambda t, y, p: t * _ROOT_2PI * lax.exp(0.5 * y * y)],
    """Compute the quantiles of the standard normal distribution, the inverse of `ndtr`.

    It is -inf at 0, inf at 1, and NaN outside [0, 1].

    p: a probability.

    >>> jnp.array([0.025, 0.5, 0.975])
    [-1.96  0.    1.96]
    """,
    wide=False,
    strong=True,
)


def log_ndtr_slope(x: Any, y: Any) -> Any:
    """Return the density over the distribution function, whose logarithm is y.

    Below 1 it is by `erfcx`, which keeps the relative accuracy of the lower tail. Above, `erfcx`
    overflows, and the derivatives of its quotient are NaN. Far below, the quotient is nearly -x,
    and its second derivative cancels: there it is -x divided by a series.
    """
    low = x < 1
    far = x < -math.sqrt(2) * tail_start(x)
    scaled = erfcx_p.apply(pick(low & ~far, x, 0) * -math.sqrt(0.5))[0]
    high = pick(low, 1, x)
    density = lax.exp(-0.5 * high * high - pick(low, 0, y)) * (1 / _ROOT_2PI)
    depth = pick(far, -x, 20)
    tail = depth / (1 + tail_series(depth * math.sqrt(0.5), -1))
    return pick(far, tail, pick(low, math.sqrt(2 / math.pi) / scaled, density))


log_ndtr_p = definitions.define_primitive(
    "log_ndtr",
    error_formulas.log_normal_cdf,
    [lambda t, y, x: t * log_ndtr_slope(x, y)],
    "log of the distribution function of the normal distribution.",
    wide=False,
)
dawsn_p, dawsn = definitions.define_pair(
    "dawsn",
    error_formulas.dawson,
    [lambda t, y, x: t * dawsn_slope(x, y)],
    """Compute Dawson's integral: `exp(-x**2)` times the integral of `exp(t**2)` from 0 to x.

    >>> jnp.array([0.0, 1.0, 10.0])
    [0.     0.5381 0.0503]
    """,
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
    """Compute Owen's T function.

    It is the integral of `exp(-h**2 (1 + t**2) / 2) / (1 + t**2)` over t from 0 to a, divided by 2
    pi: the probability that X > h and 0 < Y < a X for independent standard normal X and Y.

    >>> jnp.array([0.0, 1.0]), 1.0
    [0.125  0.0667]
    """,
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
    # For y < 0, w is computed for conj(z): w(z) = 2 exp(-z**2) - w(-z), and -z = -conj(conj z).
    below = y < 0
    return ops.select(below, 2 * lax.exp(-z * z) - ops.conj(w), w)


@custom_jvp
def wofz_complex(z: Any) -> Any:
    """wofz of complex numbers."""
    return definitions.compute_wide(extend_faddeeva, z)


wofz_complex.defjvps(lambda t, w, z: t * (2j / _ROOT_PI - 2 * z * w))


@operation
def wofz(z: ArrayLike) -> Array:
    """Compute the Faddeeva function `exp(-z**2) erfc(-i z)`.

    Its real part is the Voigt profile of spectral lines. The method is the trapezoidal rule of Al
    Azah and Chandler-Wilde (2021).

    Args:
      z: an array of floats or complex numbers, or a number. Integers and bools become floats first.

    Returns:
      An array of complex numbers, of the shape of the operand.

    Raises:
      DtypeError: the operand is not an array or a number.

    >>> from weft.scipy import special
    >>> print(np.asarray(special.wofz(jnp.array([0.0, 1.0 + 1.0j]))).round(4))
    [1.    +0.j     0.3047+0.2082j]
    """
    z = as_array(z, "wofz")
    (z,) = definitions.promote_floats("wofz", z, strong=True, takes_complex=True)
    return wofz_complex(ops.convert(z, dtypes.complex_dtype(z.dtype)))


@operation
def erfcx(x: ArrayLike) -> Array:
    """Compute the scaled complementary error function `exp(x**2) erfc(x)`.

    It stays finite for large x, where erfc underflows. Complex x are taken as well.

    Args:
      x: an array of floats or complex numbers, or a number. Integers and bools become floats first.

    Returns:
      An array of the shape of the operand, of floats or complex numbers.

    Raises:
      DtypeError: the operand is not an array or a number.

    >>> from weft.scipy import special
    >>> print(np.asarray(special.erfcx(jnp.array([0.0, 1.0, 100.0]))).round(4))
    [1.     0.4276 0.0056]
    """
    (x,) = definitions.promote_floats("erfcx", x, strong=True, takes_complex=True)
    return wofz_complex(x * 1j) if dtypes.is_complex(x.dtype) else erfcx_p.apply(x)[0]


@operation(static=("series_order",))
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """Compute the logarithm of the distribution function of the standard normal distribution.

    It is exact in both tails: where `ndtr` underflows, and where it rounds to 1.

    Args:
      x: an array of floats, or a number. Integers and bools become floats first.
      series_order: an int from 0 to 30, for compatibility with JAX. It has no effect, since no such
        series is summed. The default is 3.

    Returns:
      An array of floats, of the shape of the operand.

    Raises:
      TypeError: `series_order` is not an int.
      ValueError: `series_order` is not from 0 to 30.
      DtypeError: the operand is complex, or not an array or a number.

    >>> from weft.scipy import special
    >>> print(np.asarray(special.log_ndtr(jnp.array([-20.0, -1.0]))).round(4))
    [-203.9172   -1.841 ]
    """
    if type(series_order) is not int:
        raise TypeError(f"log_ndtr: series_order must be an integer; got {series_order!r}.")
    if not 0 <= series_order <= 30:
        raise ValueError(f"log_ndtr: series_order must be from 0 to 30; got {series_order}.")
    return log_ndtr_p.apply(*definitions.promote_floats("log_ndtr", x, strong=True))[0]


erf = definitions.define_function(
    "erf",
    lambda x: lax.erf(x),
    """Compute the error function: 2 / sqrt(pi) times the integral of `exp(-t**2)` from 0 to x.

    >>> jnp.array([-1.0, 0.0, 2.0])
    [-0.8427  0.      0.9953]
    """,
)
erfc = definitions.define_function(
    "erfc",
    lambda x: lax.erfc(x),
    """Compute the complementary error function, 1 - erf(x).

    It keeps its relative accuracy for large x, where `1 - erf(x)` would be rounded to 0.

    >>> jnp.array([0.0, 1.0, 2.0])
    [1.     0.1573 0.0047]
    """,
)
erfinv = definitions.define_function(
    "erfinv",
    lambda x: lax.erf_inv(x),
    """Compute the inverse of `erf`: the y with erf(y) = x.

    It is -inf at -1, inf at 1, and NaN outside [-1, 1].

    >>> jnp.array([-0.5, 0.0, 0.9])
    [-0.4769  0.      1.1631]
    """,
)
