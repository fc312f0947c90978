"""The negative binomial distribution: k failures before the n-th success of probability p."""

from typing import Any

import weft.numpy as jnp
from weft.scipy.stats.families import exp_of, shifted, valid, whole, within
from weft.scipy.stats.kernels import log_poisson

__all__ = ["logpmf", "pmf"]


@shifted
def logpmf(k: Any, n: Any, p: Any) -> Any:
    def log(k: Any) -> Any:
        trials = n + k
        ends = log_poisson(k, trials * (1 - p), counts=True) + log_poisson(n - 1, trials * p)
        return ends - log_poisson(trials - 1, trials) + jnp.log(p)

    out = within((k >= 0) & whole(k), log, k, 0, -jnp.inf)
    return valid((n > 0) & (p > 0) & (p <= 1), out)


pmf = exp_of(logpmf)
