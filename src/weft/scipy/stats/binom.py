"""The binomial distribution: probability of k successes in n trials, each with probability p."""

from typing import Any

import weft.numpy as jnp
from weft.scipy.stats.families import exp_of, shifted, valid, whole, within
from weft.scipy.stats.kernels import log_binomial

__all__ = ["logpmf", "pmf"]


@shifted
def logpmf(k: Any, n: Any, p: Any) -> Any:
    possible = (k >= 0) & (k <= n) & whole(k)
    log = lambda k: log_binomial(k, n, p)
    proper = (n >= 0) & whole(n) & (p >= 0) & (p <= 1)
    return valid(proper, within(possible, log, k, 0, -jnp.inf))


pmf = exp_of(logpmf)
