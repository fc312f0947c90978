"""The Laplace distribution: density exp(-abs(x)) / 2."""

from typing import Any

import weft.numpy as jnp
from weft.scipy.stats.families import exp_of, located
from weft.scipy.stats.kernels import LOG_2

__all__ = ["cdf", "logpdf", "pdf"]


@located
def logpdf(x: Any) -> Any:
    return -jnp.abs(x) - LOG_2


@located
def cdf(x: Any) -> Any:
    tail = 0.5 * jnp.exp(-jnp.abs(x))
    return jnp.where(x < 0, tail, 1 - tail)


pdf = exp_of(logpdf)
