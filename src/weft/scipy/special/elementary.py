"""Entropies, logits, Box-Cox transforms: functions of a few elementary operations.

Limits such as 0 log 0 = 0 hold for the derivatives too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from weft import dtypes
from weft.numpy.choice import where as pick
from weft.primitives import transcendental as ops
from weft.primitives.elementwise import select
from weft.primitives.expr import Expr
from weft.primitives.kernels import Called, Kernel
from weft.primitives.special import formula
from weft.run.operation import operation
from weft.scipy.special import definitions
from weft.xla.typing import Array, ArrayLike

INF = math.inf


quotient_p = definitions.define_primitive(
    "quotient",
    lambda x, y: formula.choose(x / y, (formula.equal(x, 0), 0.0)),
    [lambda t, z, x, y: t / y, lambda t, z, x, y: -t * divide_or_zero(z, y)],
    "x / y, and 0 where x is.",
    wide=False,
    takes="inexact",
)


def divide_or_zero(x: Any, y: Any) -> Any:
    """x / y, and 0 where x is; its derivative in x is 1 / y there too."""
    return quotient_p.apply(x, y)[0]


xlogy_p, xlogy = definitions.define_pair(
    "xlogy",
    lambda x, y: formula.choose(x * formula.log(y), (formula.equal(x, 0), 0.0)),
    [lambda t, z, x, y: t * ops.log(y), lambda t, z, x, y: t * divide_or_zero(x, y)],
    """Compute `x log(y)`, with the result 0 where x is 0.

    Entropies and likelihoods need this limit at y = 0. The derivatives are right there as well.

    >>> jnp.array([0.0, 2.0]), jnp.array([0.0, 3.0])
    [0.     2.1972]
    """,
    wide=False,
    takes="inexact",
)
xlog1py_p, xlog1py = definitions.define_pair(
    "xlog1py",
    lambda x, y: formula.choose(x * formula.log1p(y), (formula.equal(x, 0), 0.0)),
    [lambda t, z, x, y: t * ops.log1p(y), lambda t, z, x, y: t * divide_or_zero(x, 1 + y)],
    """Compute `x log(1 + y)`, with the result 0 where x is 0.

    The logarithm is exact for small y.

    >>> jnp.array([0.0, 2.0]), jnp.array([-1.0, 0.5])
    [0.     0.8109]
    """,
    wide=False,
    takes="inexact",
)


def write_logit(x: Expr) -> Expr:
    """Write log(x / (1 - x)); near 1/2 the quotient is computed as 1 plus a small part."""
    if x.dtype.kind == "c":
        return formula.log(x / (1 - x))
    near = abs(x - 0.5) < 0.2
    part = formula.where(near, 2 * x - 1, x) / (1 - x)
    y = formula.where(near, part + 1, part)
    return formula.log(y) + formula.where(near, (part - (y - 1)) / y, 0.0)


logit_p, logit = definitions.define_pair(
    "logit",
    write_logit,
    [lambda t, z, x: t / (x * (1 - x))],
    """Compute `log(x / (1 - x))`, the inverse of `expit`.

    It maps probabilities to log-odds. The result keeps its relative accuracy near its zero at x =
    1/2. It is -inf at 0, inf at 1, and NaN for real x outside [0, 1].

    >>> jnp.array([0.0, 0.5, 0.9])
    [  -inf 0.     2.1972]
    """,
    wide=False,
    takes="inexact",
)
logit_p.kernel = Kernel(29, Called.ALONE_LARGE)


# ((u - 1) exp(u) + 1) / u**2: the terms that a derivative of order 6 needs in float64.
_POWER_SERIES = [(k + 1) / math.factorial(k + 2) for k in range(24)]


def power_derivative(z: Any, x: Any, lmbda: Any, log: Callable) -> Any:
    """The derivative of (x**lmbda - 1) / lmbda in lmbda, from its value z; x**lmbda is exp of log.

    ((lmbda z + 1) log x - z) / lmbda, or its series in u = lmbda log x where that cancels. Where
    the power overflows, exp(u) (u - 1) / lmbda**2 may not.
    """
    # where the power is 0 it outweighs the logarithm, and z is -1 / lmbda
    edge = (log(x) == -INF) & (lmbda > 0)
    log_x = log(pick(edge, 1, x))
    u = lmbda * log_x
    small = (abs(u) < 1) & ~edge  # farther out, higher derivatives do not cancel either
    v = pick(small, u, 0)
    series = log_x * log_x * functools.reduce(lambda y, c: y * v + c, reversed(_POWER_SERIES))
    over = (abs((lmbda * z + 1) * log_x) == INF) & ~edge & ~small
    held, power = pick(over, 0, z), pick(small, 1, lmbda)
    rest = pick(edge, 1 / pick(edge, lmbda, 1), (lmbda * held + 1) * log_x - held)
    half, u = ops.exp(pick(over, u, 0) / 2), pick(over, u, 1)
    large = (u - 1) / power / power * half * half
    return select(small, series, pick(over, large, rest / power))


def box_cox(log_x: Any, lmbda: Any, base: Any, least: float) -> Any:
    """(exp(lmbda log_x) - 1) / lmbda, log_x for lmbda 0.

    In float64 it is a power of `base` where that is not near 1, as the exponent is rounded. `least`
    is the least log_x whose base is exact enough for that.
    """
    safe = formula.choose(lmbda, (formula.equal(lmbda, 0), 1.0))
    exponent = lmbda * log_x
    grown = formula.expm1(exponent)
    if log_x.dtype == np.float64 and formula.is_doubled(log_x):
        far = (abs(exponent) > 0.5) & (log_x > least)
        grown = formula.where(far, formula.where(far, base, 1.0).apply("power", lmbda) - 1, grown)
    return formula.choose(grown / safe, (formula.equal(lmbda, 0), log_x))


boxcox_p, boxcox = definitions.define_pair(
    "boxcox",
    lambda x, lmbda: box_cox(formula.log(x), lmbda, x, -math.inf),
    [
        lambda t, z, x, lmbda: t * ops.pow(x, lmbda - 1),
        lambda t, z, x, lmbda: t * power_derivative(z, x, lmbda, ops.log),
    ],
    """Compute the Box-Cox transform `(x**lmbda - 1) / lmbda`, and `log(x)` where lmbda is 0.

    Statistics makes skewed positive data more normal with it. Small lmbda lose no digits.

    lmbda: the power.

    >>> jnp.array([1.0, 4.0]), jnp.array([0.0, 0.5])
    [0. 2.]
    """,
    takes="inexact",
)
boxcox1p_p, boxcox1p = definitions.define_pair(
    "boxcox1p",
    lambda x, lmbda: box_cox(formula.log1p(x), lmbda, 1 + x, 2.0),
    [
        lambda t, z, x, lmbda: t * ops.pow(1 + x, lmbda - 1),
        lambda t, z, x, lmbda: t * power_derivative(z, x, lmbda, ops.log1p),
    ],
    """Compute the Box-Cox transform of `1 + x`, exactly for small x.

    lmbda: the power.

    >>> jnp.array([0.0, 3.0]), 0.5
    [0. 2.]
    """,
    takes="inexact",
)


def divergence(p: Expr, q: Expr) -> Expr:
    """p log(p / q) - p + q; as a pair, or where that is enough with log1p near p = q."""
    inside = (p > 0) & (q > 0) & (p < math.inf) & (q < math.inf)
    sp, sq = formula.where(inside, p, 1.0), formula.where(inside, q, 1.0)
    if formula.is_doubled(p):
        # Second parts of pairs vanish for the least numbers, and if p and q differ far in size.
        ratio = sp / sq
        alike = (ratio > 1e-6) & (ratio < 1e6)
        unit = formula.where(alike & (sp < 1e-200), sp.like(2.0**400), 1.0)
        up, uq = formula.where(alike, sp, 1.0) * unit, formula.where(alike, sq, 1.0) * unit
        value = (up * formula.log_pair(formula.to_pair(up) / uq) - up + uq).value / unit
        value = formula.where(alike, value, multiply_log_ratio(sp, sq) - sp + sq)
    else:
        rest = (sp - sq) / sq
        near = (rest > -0.5) & (rest < 1)
        log = formula.where(near, formula.log1p(rest), formula.log(sp / sq))
        value = sp * log - (sp - sq)
    return formula.choose(
        formula.where(inside, value, math.inf),
        (formula.equal(p, 0) & (q >= 0), q),
        (~inside & (p > 0) & (q > 0), math.nan),
    )


def divide_inside(z: Any, p: Any, q: Any) -> Any:
    """p / q, and 1 where the divergence z is infinite or both are 0."""
    outside = (z == INF) | ((p == 0) & (q == 0))
    return pick(outside, 1, p) / pick(outside, 1, q)


kl_div_p, kl_div = definitions.define_pair(
    "kl_div",
    divergence,
    [
        lambda t, z, p, q: t * ops.log(divide_inside(z, p, q)),
        lambda t, z, p, q: t * (1 - divide_inside(z, p, q)),
    ],
    """Compute the terms of the Kullback-Leibler divergence: `p log(p / q) - p + q`.

    The result keeps its accuracy where p is near q and the terms cancel. It is inf where p or q is
    negative, or q is 0 and p is not.

    p: weights of the first distribution.
    q: weights of the second distribution.

    >>> jnp.array([0.5, 0.0]), jnp.array([0.25, 0.5])
    [0.0966 0.5   ]
    """,
)


@operation
def entr(x: ArrayLike) -> Array:
    """Compute the terms of the entropy: `-x log(x)`.

    The result is 0 at 0, and -inf for negative x.

    Args:
      x: an array of floats, or a number. Integers and bools become floats first.

    Returns:
      An array of floats, of the shape of the operand.

    Raises:
      DtypeError: the operand is complex, or not an array or a number.

    >>> from weft.scipy import special
    >>> p = jnp.array([0.5, 0.25, 0.25, 0.0])
    >>> print(np.asarray(special.entr(p).sum()).round(4))  # log 2 * 1.5
    1.0397
    """
    (x,) = definitions.promote_floats("entr", x)
    return pick(x < 0, -INF, -xlogy_p.apply(x, x)[0])


def multiply_log_ratio(p: Expr, q: Expr) -> Expr:
    """p log(p / q) of positive p and q, whose ratio may overflow, be subnormal, or be near 1."""
    ratio = p / q
    near = (ratio > 0.5) & (ratio < 2)
    gap = formula.log1p(formula.where(near, p - q, 0.0) / q)
    held = (ratio > float(dtypes.finfo(p.dtype).tiny)) & (ratio < math.inf)
    log = formula.log(formula.where(held, ratio, p))
    return p * formula.where(near, gap, formula.where(held, log, log - formula.log(q)))


multiply_log_ratio_p = definitions.define_primitive(
    "multiply_log_ratio",
    multiply_log_ratio,
    [lambda t, z, p, q: t * (z / p + 1), lambda t, z, p, q: -t * (p / q)],
    "p log(p / q) of positive p and q.",
    wide=False,
)


@operation
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute the terms of the relative entropy: `p log(p / q)`.

    The result is 0 where p is 0 and q is not negative, and inf elsewhere outside of positive p and
    q. The sum over two distributions is their Kullback-Leibler divergence.

    Args:
      p: an array of floats, or a number: weights of the first distribution.
      q: an array of floats, or a number: weights of the second distribution. Integers and bools
        become floats first. The operands broadcast together.

    Returns:
      An array of the broadcast shape and the common dtype of the operands.

    Raises:
      DtypeError: an operand is complex, or not an array or a number.

    >>> from weft.scipy import special
    >>> p, q = jnp.array([0.5, 0.5, 0.0]), jnp.array([0.25, 0.25, 0.5])
    >>> print(np.asarray(special.rel_entr(p, q)).round(4))
    [0.3466 0.3466 0.    ]
    """
    p, q = definitions.promote_floats("rel_entr", p, q)
    positive = (p > 0) & (q > 0)
    none = (p == 0) & (q >= 0)
    out = multiply_log_ratio_p.apply(pick(positive, p, 1), pick(positive, q, 1))[0]
    undefined = (p != p) | (q != q)
    finite = pick(positive, out, 0)
    # INF is the last choice but NaN, so that `debug_infs` finds none where it is not the result.
    return pick(undefined, p + q, pick(positive | none, finite, INF))


def log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) for x >= 0, to full precision at both ends (Maechler 2012)."""
    near = x < math.log(2)
    low, high = pick(near, x, math.log(2)), pick(near, math.log(2), x)
    return pick(near, ops.log(-ops.expm1(-low)), ops.log1p(-ops.exp(-high)))


expit = definitions.define_function(
    "expit",
    lambda x: ops.logistic(x),
    """Compute the logistic function `1 / (1 + exp(-x))`.

    It maps log-odds to probabilities. `logit` is its inverse.

    >>> jnp.array([-100.0, 0.0, 2.0])
    [0.     0.5    0.8808]
    """,
    takes_complex=True,
)
