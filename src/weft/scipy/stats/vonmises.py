"""The von Mises distribution: density exp(kappa cos(x)) / (2 pi i0(kappa)), x in radians."""

from typing import Any

import weft.numpy as jnp
from weft.scipy.special import i0e
from weft.scipy.stats.families import exp_of, fixed, valid
from weft.scipy.stats.kernels import LOG_2PI

__all__ = ["logpdf", "pdf"]


@fixed
def logpdf(x: Any, kappa: Any) -> Any:
    # cos(x) - 1 = -2 sin(x / 2)**2, which keeps what is small
    return valid(kappa > 0, -2 * kappa * jnp.sin(x / 2) ** 2 - LOG_2PI - jnp.log(i0e(kappa)))


pdf = exp_of(logpdf)
