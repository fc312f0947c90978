"""The generalized normal distribution: density beta exp(-abs(x)**beta) / (2 gamma(1 / beta))."""

from typing import Any

import weft.numpy as jnp
from weft.scipy.special import gammaincc, gammaln
from weft.scipy.stats.families import exp_of, fixed, valid

__all__ = ["cdf", "logpdf", "pdf"]


def power(x: Any, beta: Any) -> Any:
    """abs(x)**beta, whose derivative at 0 is 0."""
    away = x != 0
    return jnp.where(away, jnp.abs(jnp.where(away, x, 1)) ** beta, 0)


@fixed
def logpdf(x: Any, beta: Any) -> Any:
    return valid(beta > 0, jnp.log(beta / 2) - gammaln(1 / beta) - power(x, beta))


@fixed
def cdf(x: Any, beta: Any) -> Any:
    tail = 0.5 * gammaincc(1 / beta, power(x, beta))
    return valid(beta > 0, jnp.where(x < 0, tail, 1 - tail))


pdf = exp_of(logpdf)
