"""The wrapped Cauchy distribution: density (1 - c**2) / (2 pi (1 + c**2 - 2 c cos(x))).

It is 0 but for 0 <= x <= 2 pi; c must be between 0 and 1.
"""

import math
from typing import Any

import weft.numpy as jnp
from weft.scipy.stats.families import exp_of, fixed, valid, within
from weft.scipy.stats.kernels import LOG_2PI

__all__ = ["logpdf", "pdf"]


@fixed
def logpdf(x: Any, c: Any) -> Any:
    def log(x: Any) -> Any:
        spread = (1 - c) ** 2 + 4 * c * jnp.sin(x / 2) ** 2  # 1 + c**2 - 2 c cos(x)
        return jnp.log((1 - c) * (1 + c)) - LOG_2PI - jnp.log(spread)

    out = within((x >= 0) & (x <= 2 * math.pi), log, x, 1, -jnp.inf)
    return valid((c > 0) & (c < 1), out)


pdf = exp_of(logpdf)
