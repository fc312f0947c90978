"""The logistic distribution: density exp(-x) / (1 + exp(-x))**2."""

from typing import Any

import weft.numpy as jnp
from weft.scipy.special import expit, logit
from weft.scipy.stats.families import exp_of, located

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


@located
def logpdf(x: Any) -> Any:
    far = jnp.where(x < 0, x, -x)
    return far - 2 * jnp.log1p(jnp.exp(far))


@located
def cdf(x: Any) -> Any:
    return expit(x)


@located
def sf(x: Any) -> Any:
    return expit(-x)


@located
def ppf(x: Any) -> Any:
    return logit(x)


@located
def isf(x: Any) -> Any:
    return -logit(x)


pdf = exp_of(logpdf)
