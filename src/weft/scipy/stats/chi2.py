"""The chi-squared distribution: that of 2 y where y has a gamma distribution with a = df / 2."""

from collections.abc import Callable
from typing import Any

from weft.scipy.stats import gamma
from weft.scipy.stats.families import exp_of, located

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def of_gamma(fun: Callable) -> Callable:
    """The function of this distribution that `fun` is of the gamma distribution."""

    def general(x: Any, df: Any) -> Any:
        return fun(x, df / 2, scale=2)

    general.__name__ = fun.__name__
    return located(general)


logpdf, cdf, logcdf, sf, logsf = map(
    of_gamma, (gamma.logpdf, gamma.cdf, gamma.logcdf, gamma.sf, gamma.logsf)
)
pdf = exp_of(logpdf)
