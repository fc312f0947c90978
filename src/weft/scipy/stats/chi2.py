"""The chi-squared distribution: that of 2 y where y has a gamma distribution with a = df / 2."""

from typing import Any

from weft.scipy.stats import gamma
from weft.scipy.stats.families import exp_of, located

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@located
def logpdf(x: Any, df: Any) -> Any:
    return gamma.logpdf(x, df / 2, scale=2)


@located
def cdf(x: Any, df: Any) -> Any:
    return gamma.cdf(x, df / 2, scale=2)


@located
def logcdf(x: Any, df: Any) -> Any:
    return gamma.logcdf(x, df / 2, scale=2)


@located
def sf(x: Any, df: Any) -> Any:
    return gamma.sf(x, df / 2, scale=2)


@located
def logsf(x: Any, df: Any) -> Any:
    return gamma.logsf(x, df / 2, scale=2)


pdf = exp_of(logpdf)
