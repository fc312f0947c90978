"""The Bernoulli distribution: probability p of k = 1, and 1 - p of k = 0."""

from typing import Any

import weft.numpy as jnp
from weft.scipy.stats.families import fixed, quantile, shifted, valid

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


def choice(k: Any, p: Any, one: Any, none: Any, other: Any) -> Any:
    """One value for k = 1, one for k = 0, and one for other k; NaN of NaN."""
    out = jnp.where(k == 1, one, jnp.where(k == 0, none, other))
    return valid((p >= 0) & (p <= 1) & ~jnp.isnan(k), out)


@shifted
def pmf(k: Any, p: Any) -> Any:
    return choice(k, p, p, 1 - p, 0)


@shifted
def logpmf(k: Any, p: Any) -> Any:
    log, log_rest = jnp.log(jnp.where(k == 1, p, 1)), jnp.log1p(-jnp.where(k == 0, p, 0))
    return choice(k, p, log, log_rest, -jnp.inf)


@fixed
def cdf(k: Any, p: Any) -> Any:
    return choice(jnp.clip(jnp.floor(k), -1, 1), p, 1, 1 - p, 0)


@fixed
def ppf(q: Any, p: Any) -> Any:
    out = quantile(lambda q: jnp.where(q > 1 - p, 1, 0), q)
    return valid((p >= 0) & (p <= 1), out)
