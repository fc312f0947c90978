"""The Cauchy distribution: density 1 / (pi (1 + x**2))."""

import math
from typing import Any

import weft.numpy as jnp
from weft.scipy.stats.families import exp_of, located, quantile
from weft.scipy.stats.kernels import log1p_square, log_of

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def below(x: Any) -> Any:
    """The probability of a value that is not greater, for both tails."""
    return jnp.arctan2(1, -x) / math.pi


def point(q: Any) -> Any:
    """-1 / tan(pi q), from the end or the middle that q is near."""
    end = jnp.minimum(q, 1 - q)
    middle = end > 0.25
    far = jnp.where(q < 0.5, -1, 1) / jnp.tan(math.pi * jnp.where(middle, 0.25, end))
    return jnp.where(middle, jnp.tan(math.pi * jnp.where(middle, q - 0.5, 0)), far)


@located
def logpdf(x: Any) -> Any:
    return -math.log(math.pi) - log1p_square(x)


@located
def cdf(x: Any) -> Any:
    return below(x)


@located
def logcdf(x: Any) -> Any:
    return log_of(below(x), below(-x))


@located
def sf(x: Any) -> Any:
    return below(-x)


@located
def logsf(x: Any) -> Any:
    return log_of(below(-x), below(x))


@located
def ppf(q: Any) -> Any:
    return quantile(point, q)


@located
def isf(q: Any) -> Any:
    return -quantile(point, q)


pdf = exp_of(logpdf)
