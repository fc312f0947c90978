"""The gamma distribution: density x**(a - 1) exp(-x) / gamma(a) for x >= 0."""

from typing import Any

import weft.numpy as jnp
from weft.scipy.special import gammainc, gammaincc
from weft.scipy.stats.families import exp_of, located, valid, within
from weft.scipy.stats.kernels import log_of, log_poisson

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@located
def logpdf(x: Any, a: Any) -> Any:
    return valid(a > 0, within(x >= 0, lambda x: log_poisson(a - 1, x), x, 1, -jnp.inf))


@located
def cdf(x: Any, a: Any) -> Any:
    return valid(a > 0, within(x > 0, lambda x: gammainc(a, x), x, 1, 0))


@located
def logcdf(x: Any, a: Any) -> Any:
    log = lambda x: log_of(gammainc(a, x), gammaincc(a, x))
    return valid(a > 0, within(x > 0, log, x, 1, -jnp.inf))


@located
def sf(x: Any, a: Any) -> Any:
    return valid(a > 0, within(x > 0, lambda x: gammaincc(a, x), x, 1, 1))


@located
def logsf(x: Any, a: Any) -> Any:
    log = lambda x: log_of(gammaincc(a, x), gammainc(a, x))
    return valid(a > 0, within(x > 0, log, x, 1, 0))


pdf = exp_of(logpdf)
