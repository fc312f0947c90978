"""The normal distribution: density exp(-x**2 / 2) / sqrt(2 pi)."""

from typing import Any

from weft.scipy.special import log_ndtr, ndtr, ndtri
from weft.scipy.stats.families import exp_of, located
from weft.scipy.stats.kernels import LOG_2PI

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@located
def logpdf(x: Any) -> Any:
    return -0.5 * (x * x + LOG_2PI)


@located
def cdf(x: Any) -> Any:
    return ndtr(x)


@located
def logcdf(x: Any) -> Any:
    return log_ndtr(x)


@located
def sf(x: Any) -> Any:
    return ndtr(-x)


@located
def logsf(x: Any) -> Any:
    return log_ndtr(-x)


@located
def ppf(q: Any) -> Any:
    return ndtri(q)


@located
def isf(q: Any) -> Any:
    return -ndtri(q)


pdf = exp_of(logpdf)
