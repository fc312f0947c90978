"""The Poisson distribution: probability mu**k exp(-mu) / k! of k = 0, 1, ..."""

import math
from typing import Any

import weft.numpy as jnp
from weft.scipy.special import gammaincc
from weft.scipy.stats.families import exp_of, shifted, valid, whole, within
from weft.scipy.stats.kernels import log_poisson

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


@shifted
def logpmf(k: Any, mu: Any) -> Any:
    log = lambda k: log_poisson(k, mu, counts=True)
    return valid(mu >= 0, within((k >= 0) & whole(k), log, k, 0, -jnp.inf))


@shifted
def cdf(k: Any, mu: Any) -> Any:
    below = lambda k: gammaincc(jnp.floor(k) + 1, mu)
    return valid(mu >= 0, within(k >= 0, below, k, 0, 0))


@shifted
def entropy(mu: Any) -> Any:
    large = mu > 100
    low, high = jnp.where(large, 1, mu), jnp.where(large, mu, 100)
    log = log_poisson(jnp.arange(256, dtype=mu.dtype), low[..., None], counts=True)
    happens = log > -jnp.inf
    log = jnp.where(happens, log, 0)
    summed = -jnp.sum(jnp.where(happens, jnp.exp(log) * log, 0), -1)
    series = jnp.zeros_like(high)
    for c in (863 / 2520, 9 / 80, 19 / 360, 1 / 24, 1 / 12):  # (Evans and Boersma 1988)
        series = (series + c) / high
    many = 0.5 * (math.log(2 * math.pi) + 1 + jnp.log(high)) - series
    return valid(mu >= 0, jnp.where(large, many, summed))


pmf = exp_of(logpmf)
