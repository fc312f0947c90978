"""The uniform distribution: density 1 for 0 <= x <= 1."""

from typing import Any

import weft.numpy as jnp
from weft.scipy.stats.families import exp_of, located, quantile, within

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


@located
def logpdf(x: Any) -> Any:
    return within((x >= 0) & (x <= 1), jnp.zeros_like, x, 0, -jnp.inf)


@located
def cdf(x: Any) -> Any:
    return jnp.clip(x, 0, 1)


@located
def ppf(q: Any) -> Any:
    return quantile(lambda q: q, q)


pdf = exp_of(logpdf)
