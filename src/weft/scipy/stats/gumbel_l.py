"""The left-skewed Gumbel distribution: density exp(x - exp(x))."""

from typing import Any

import weft.numpy as jnp
from weft.scipy.stats.families import exp_of, located, quantile
from weft.scipy.stats.kernels import log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@located
def logpdf(x: Any) -> Any:
    return x - jnp.exp(x)


@located
def cdf(x: Any) -> Any:
    return -jnp.expm1(-jnp.exp(x))


@located
def logcdf(x: Any) -> Any:
    return log1mexp(jnp.exp(x))


@located
def logsf(x: Any) -> Any:
    return -jnp.exp(x)


@located
def ppf(p: Any) -> Any:
    return quantile(lambda p: jnp.log(-jnp.log1p(-p)), p)


pdf, sf = exp_of(logpdf), exp_of(logsf)
