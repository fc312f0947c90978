"""The geometric distribution: probability p (1 - p)**(k - 1) of k = 1, 2, ..."""

from typing import Any

import weft.numpy as jnp
from weft.scipy.special import xlog1py
from weft.scipy.stats.families import exp_of, shifted, valid, whole, within

__all__ = ["logpmf", "pmf"]


@shifted
def logpmf(k: Any, p: Any) -> Any:
    log = lambda k: xlog1py(k - 1, -p) + jnp.log(p)
    return valid((p > 0) & (p <= 1), within((k >= 1) & whole(k), log, k, 1, -jnp.inf))


pmf = exp_of(logpmf)
