"""Of Student's t distribution: density proportional to (1 + x**2 / df)**(-(df + 1) / 2)."""

from typing import Any

import weft.numpy as jnp
from weft.scipy.stats.families import exp_of, located, valid
from weft.scipy.stats.kernels import LOG_2PI, log1p_square, log_poisson

__all__ = ["logpdf", "pdf"]


@located
def logpdf(x: Any, df: Any) -> Any:
    normal = df == jnp.inf
    m = jnp.where(normal, 1, df / 2)
    # log of gamma(m + 1/2) / (gamma(m) sqrt(2 pi m)), by kernels that stay small
    constant = log_poisson(m - 1, m) - log_poisson(m - 0.5, m) - 0.5 * LOG_2PI
    out = constant - (m + 0.5) * log1p_square(x / jnp.sqrt(2 * m))
    return valid(df > 0, jnp.where(normal, -0.5 * (x * x + LOG_2PI), out))


pdf = exp_of(logpdf)
