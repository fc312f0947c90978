"""The normal distribution for a <= x <= b alone; a, b are before loc and scale, as SciPy's."""

from typing import Any

import weft.numpy as jnp
from weft.scipy.special import log_ndtr, ndtr
from weft.scipy.stats.families import exp_of, located, valid, within
from weft.scipy.stats.kernels import LOG_2PI, log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def log_mass(a: Any, b: Any) -> Any:
    """The log of the normal probability of [a, b], a < b, from the tail that they are in."""
    apart = a < b
    a, b = jnp.where(apart, a, -1), jnp.where(apart, b, 1)
    right, left = a > 0, b <= 0
    tail = right | left
    near = jnp.where(tail, jnp.where(right, -a, b), -1)  # mirrored to the left tail
    far = jnp.where(tail, jnp.where(right, -b, a), -2)
    top = log_ndtr(near)
    in_tail = top + log1mexp(top - log_ndtr(far))
    low, high = jnp.where(tail, -1, a), jnp.where(tail, 1, b)
    across = jnp.log1p(-ndtr(low) - ndtr(-high))
    return jnp.where(apart, jnp.where(tail, in_tail, across), -jnp.inf)


@located
def logpdf(x: Any, a: Any, b: Any) -> Any:
    log = lambda x: -0.5 * (x * x + LOG_2PI) - log_mass(a, b)
    return valid(a < b, within((x >= a) & (x <= b), log, x, 0, -jnp.inf))


def log_share(part: Any, rest: Any, total: Any) -> Any:
    """log of part / total, from the rest of it where that is small."""
    most = part > rest
    direct = jnp.where(most, 0, part) - total
    others = jnp.where(most, rest, total - 1) - total
    return jnp.where(most, jnp.log1p(-jnp.exp(others)), direct)


@located
def logcdf(x: Any, a: Any, b: Any) -> Any:
    share = lambda x: log_share(log_mass(a, x), log_mass(x, b), log_mass(a, b))
    middle = jnp.clip(0, a, b)
    out = within((x > a) & (x < b), share, x, middle, jnp.where(x >= b, 0, -jnp.inf))
    return valid(a < b, out)


@located
def logsf(x: Any, a: Any, b: Any) -> Any:
    share = lambda x: log_share(log_mass(x, b), log_mass(a, x), log_mass(a, b))
    middle = jnp.clip(0, a, b)
    out = within((x > a) & (x < b), share, x, middle, jnp.where(x <= a, 0, -jnp.inf))
    return valid(a < b, out)


pdf, cdf, sf = exp_of(logpdf), exp_of(logcdf), exp_of(logsf)
