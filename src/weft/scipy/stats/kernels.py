"""Logs of probabilities where the usual formulas would cancel: tails, and large parameters.

distribution.py adds location, scale and promotion for users.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import weft.numpy as jnp
from weft import dtypes
from weft.scipy.special import gammainc, gammaincc, gammaln

LOG_2 = math.log(2)
LOG_2PI = math.log(2 * math.pi)

# The series of log gamma(a + 1) less Stirling's formula (Loader 2000), in 1 / a**2.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def log_of_part(p: Any, rest: Any) -> Any:
    """Return log p, given p and 1 - p; each of the two is accurate where it is small."""
    small = p < 0.5
    return jnp.where(
        small, jnp.log(jnp.where(small, p, 0.5)), jnp.log1p(-jnp.where(small, 0.5, rest))
    )


def log1p_square(x: Any) -> Any:
    """log(1 + x**2), without overflow."""
    half = int(dtypes.finfo(x.dtype).maxexp) // 2
    far = jnp.abs(x) > 2.0 ** (half - 1)  # and 1 is nothing: log(x**2) then
    y = jnp.where(far, x * 2.0**-half, x)
    return jnp.log1p(y * y - jnp.where(far, 1, 0)) + jnp.where(far, 2 * half * LOG_2, 0)


def deviance(a: Any, x: Any) -> Any:
    """a log(a / x) + x - a for positive a, x, by a series where x is near a (Loader 2000)."""
    v = (a - x) / (a + x)
    terms = 0.0 * v
    for j in range(8, 0, -1):
        terms = v * v * (terms + 1 / (2 * j + 1))
    near = (a - x) * v + 2 * a * v * terms
    return jnp.where(jnp.abs(v) < 0.1, near, a * jnp.log(a / x) + x - a)


def log_poisson(a: Any, x: Any, counts: bool = False) -> Any:
    """log(x**a exp(-x) / gamma(a + 1)) for a > -1 and x >= 0; with `counts`, for whole a >= 0.

    By the saddle point for large a (Loader 2000), where the terms of that formula cancel. At x = 0
    it is 0 for a = 0, and with derivatives of zero -inf for a > 0 and inf for a < 0.
    """
    positive = x > 0
    safe = jnp.where(positive, x, 1)
    big = a >= 10
    low, high = jnp.where(big, 0, a), jnp.where(big, a, 10)
    direct = low * jnp.log(safe) - x - (log_factorial(low) if counts else gammaln(low + 1))
    series = 0.0 * high
    for c in reversed(_STIRLING):
        series = c + series / (high * high)
    saddle = -(series / high + deviance(high, safe)) - 0.5 * (LOG_2PI + jnp.log(high))
    finite = jnp.where(positive, jnp.where(big, saddle, direct), -x)
    # Infinities are chosen last, so that `debug_infs` finds none where it is not the result.
    at_zero = ~positive
    out = jnp.where(at_zero & (a < 0), jnp.inf, finite)
    return jnp.where(at_zero & (a > 0), -jnp.inf, out)


def replace_edge(at_edge: Any, log: Callable, x: Any, inner: Any, edge: Callable) -> Any:
    """exp(log(x)); at the edge of the support by powers, which have derivatives there.

    `edge(c, x)` is the density from the logarithm at `inner`, where the other x are held there.
    """
    c = log(jnp.where(at_edge, inner, x))
    return jnp.where(
        at_edge, edge(jnp.where(at_edge, c, 0), jnp.where(at_edge, x, inner)), jnp.exp(c)
    )


def split_edges(a: Any, total: Any, x: Any, counts: bool = False) -> tuple[Any, Any]:
    """Return the log of a factor of `log_poisson(a, total * x)`, and the other factor, a power.

    The power is x**a where x is 0, so that the product has derivatives there; elsewhere it is 1,
    and the log is all.
    """
    edge = x == 0
    log = log_poisson(a, total * jnp.where(edge, 0.5, x), counts)
    log = log + jnp.where(edge, a * LOG_2 + total * (0.5 - x), 0)
    return log, jnp.where(edge, jnp.where(edge, x, 1) ** a, 1)


def log_factorial(k: Any) -> Any:
    """log k! for k = 0, 1, ... 9; a few selections, where gammaln is a hundred operations."""
    out = 0.0 * k
    for n in range(2, 10):
        out = jnp.where(k >= n, math.log(math.factorial(n)), out)
    return out


def log_binomial(k: Any, n: Any, p: Any) -> Any:
    """log(p**k (1 - p)**(n - k) times the binomial coefficient of n over k), 0 <= k <= n whole."""
    rest = jnp.maximum(n - k, 0)
    ends = log_poisson(k, n * p, True) + log_poisson(rest, n * (1 - p), True)
    return ends - log_poisson(n, n, True)


def log_beta_density(x: Any, a: Any, b: Any) -> Any:
    """The log of the density of the beta distribution for 0 <= x <= 1."""
    n = a + b
    ends = log_poisson(a - 1, n * x) + log_poisson(b - 1, n * (1 - x))
    return ends - log_poisson(n - 1, n) + jnp.log(n)


# --- logs of probabilities that underflow -----------------------------------------------------

# Terms of the continued fractions below. With them the error is a few ulp, where each is used.
DEPTH = 12


def is_wide(x: Any) -> bool:
    """Return True if x has more than 32 bits, so that its tails begin farther out."""
    return dtypes.finfo(x.dtype).bits > 32


def log_upper_gamma(a: Any, x: Any) -> Any:
    """Return log(gammaincc(a, x)) for x >= 0, by a continued fraction far above a.

    There the probability underflows, and derivatives of its log cancel. Source: DLMF 8.9.2.
    """
    width, margin = (8, 20) if is_wide(x) else (4, 6)
    far = (x > a + width * jnp.sqrt(a) + margin) & (x < jnp.inf)
    b, y = jnp.where(far, a, 1), jnp.where(far, x, 40)
    fraction = y + (2 * DEPTH + 1) - b
    for n in range(DEPTH, 0, -1):
        fraction = y + (2 * n - 1) - b - n * (n - b) / fraction
    tail = log_poisson(b - 1, y) + jnp.log(y / fraction)
    near = jnp.where(far, a, x)  # a point whose derivatives are finite
    return jnp.where(far, tail, log_of_part(gammaincc(a, near), gammainc(a, near)))


def log_lower_gamma(a: Any, x: Any) -> Any:
    """Return log(gammainc(a, x)) for x > 0, by a continued fraction far below a.

    Source: Gauss's continued fraction for the series (DLMF 8.7.1).
    """
    width, share = (8, 0.25) if is_wide(x) else (4, 0.5)
    far = (x < jnp.maximum(share * a, a - width * jnp.sqrt(a))) | (x < 0.1)
    b, y = jnp.where(far, a, 1), jnp.where(far, x, 0.05)
    fraction = b + DEPTH - y
    for n in range(DEPTH, 0, -1):
        fraction = b + (n - 1) - y + n * y / fraction
    tail = log_poisson(b, y) + jnp.log(b / fraction)
    near = jnp.where(far, a, x)
    return jnp.where(far, tail, log_of_part(gammainc(a, near), gammaincc(a, near)))
