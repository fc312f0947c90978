"""The exponential distribution: density exp(-x) for x >= 0."""

from typing import Any

import weft.numpy as jnp
from weft.scipy.stats.families import exp_of, located, quantile, within
from weft.scipy.stats.kernels import log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@located
def logpdf(x: Any) -> Any:
    return jnp.where(x < 0, -jnp.inf, -x)


@located
def cdf(x: Any) -> Any:
    return jnp.where(x < 0, 0, -jnp.expm1(-x))


@located
def logcdf(x: Any) -> Any:
    return within(x > 0, log1mexp, x, 1, -jnp.inf)


@located
def logsf(x: Any) -> Any:
    return jnp.where(x < 0, 0, -x)


@located
def ppf(q: Any) -> Any:
    return quantile(lambda q: -jnp.log1p(-q), q)


pdf, sf = exp_of(logpdf), exp_of(logsf)
