"""The Pareto distribution: density b / x**(b + 1) for x >= 1."""

from typing import Any

import weft.numpy as jnp
from weft.scipy.stats.families import exp_of, located, quantile, valid, within
from weft.scipy.stats.kernels import log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@located
def logpdf(x: Any, b: Any) -> Any:
    log = lambda x: jnp.log(b) - (b + 1) * jnp.log(x)
    return valid(b > 0, within(x >= 1, log, x, 1, -jnp.inf))


@located
def cdf(x: Any, b: Any) -> Any:
    below = lambda x: -jnp.expm1(-b * jnp.log(x))
    return valid(b > 0, within(x >= 1, below, x, 1, 0))


@located
def logcdf(x: Any, b: Any) -> Any:
    return valid(b > 0, within(x > 1, lambda x: log1mexp(b * jnp.log(x)), x, 2, -jnp.inf))


@located
def logsf(x: Any, b: Any) -> Any:
    return valid(b > 0, within(x >= 1, lambda x: -b * jnp.log(x), x, 1, 0))


@located
def ppf(q: Any, b: Any) -> Any:
    return valid(b > 0, quantile(lambda q: jnp.exp(-jnp.log1p(-q) / b), q))


pdf, sf = exp_of(logpdf), exp_of(logsf)
