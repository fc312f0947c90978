"""The beta-binomial distribution: the binomial one whose p has a beta distribution of a, b."""

from typing import Any

import weft.numpy as jnp
from weft.scipy.stats.beta import log_density
from weft.scipy.stats.families import exp_of, shifted, valid, whole, within
from weft.scipy.stats.kernels import log_binomial

__all__ = ["logpmf", "pmf"]


@shifted
def logpmf(k: Any, n: Any, a: Any, b: Any) -> Any:
    def log(k: Any) -> Any:
        # Bayes' rule at the mean of p given k, where none of the terms is large
        p = (k + a) / (n + a + b)
        prior, posterior = log_density(p, a, b), log_density(p, k + a, jnp.maximum(n - k, 0) + b)
        return log_binomial(k, n, p) + prior - posterior

    out = within((k >= 0) & (k <= n) & whole(k), log, k, 0, -jnp.inf)
    return valid((n >= 0) & whole(n) & (a > 0) & (b > 0), out)


pmf = exp_of(logpmf)
