"""The beta distribution: density x**(a - 1) (1 - x)**(b - 1) / beta(a, b) for 0 <= x <= 1."""

from typing import Any

import weft.numpy as jnp
from weft.scipy.special import betainc
from weft.scipy.stats.families import exp_of, located, valid, within
from weft.scipy.stats.kernels import log_poisson

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def log_density(x: Any, a: Any, b: Any) -> Any:
    """The log of the density for 0 <= x <= 1."""
    n = a + b
    ends = log_poisson(a - 1, n * x) + log_poisson(b - 1, n * (1 - x))
    return ends - log_poisson(n - 1, n) + jnp.log(n)


def tail(x: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Whether x is nearer to 1 than the mean, and the probability of its tail, which is exact."""
    upper = x > (a + 1) / (a + b + 2)
    swapped = jnp.where(upper, b, a), jnp.where(upper, a, b)
    return upper, betainc(*swapped, jnp.where(upper, 1 - x, x))


@located
def logpdf(x: Any, a: Any, b: Any) -> Any:
    log = lambda x: log_density(x, a, b)
    return valid((a > 0) & (b > 0), within((x >= 0) & (x <= 1), log, x, 0.5, -jnp.inf))


@located
def cdf(x: Any, a: Any, b: Any) -> Any:
    inside = (x > 0) & (x < 1)
    out = within(inside, lambda x: betainc(a, b, x), x, 0.5, jnp.where(x > 0, 1, 0))
    return valid((a > 0) & (b > 0), out)


@located
def logcdf(x: Any, a: Any, b: Any) -> Any:
    def log(x: Any) -> Any:
        upper, p = tail(x, a, b)
        return jnp.where(upper, jnp.log1p(-p), jnp.log(p))

    out = within((x > 0) & (x < 1), log, x, 0.5, jnp.where(x > 0, 0, -jnp.inf))
    return valid((a > 0) & (b > 0), out)


@located
def sf(x: Any, a: Any, b: Any) -> Any:
    def above(x: Any) -> Any:
        upper, p = tail(x, a, b)
        return jnp.where(upper, p, 1 - p)

    out = within((x > 0) & (x < 1), above, x, 0.5, jnp.where(x > 0, 0, 1))
    return valid((a > 0) & (b > 0), out)


@located
def logsf(x: Any, a: Any, b: Any) -> Any:
    def log(x: Any) -> Any:
        upper, p = tail(x, a, b)
        return jnp.where(upper, jnp.log(p), jnp.log1p(-p))

    out = within((x > 0) & (x < 1), log, x, 0.5, jnp.where(x > 0, -jnp.inf, 0))
    return valid((a > 0) & (b > 0), out)


pdf = exp_of(logpdf)
