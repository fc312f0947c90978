"""Names of `jax._src.nn.initializers` that libraries import: draws of complex numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import weft.numpy as jnp
from weft.nn.initializers import draw_polar
from weft.numpy.promotion import shape_of
from weft.util import list_public

__all__ = ["_complex_truncated_normal", "_complex_uniform"]
__dir__ = list_public(__name__)


def _complex_uniform(key: Any, shape: Sequence[Any], dtype: Any) -> Any:
    """Draw from the disk of radius sqrt(2), where numbers have variance 1."""
    cut = lambda u: jnp.sqrt(2 * u)
    return draw_polar(key, shape_of("initializers", shape), np.dtype(dtype), cut)


def _complex_truncated_normal(key: Any, upper: Any, shape: Sequence[Any], dtype: Any) -> Any:
    """Draw standard normal numbers whose absolute value is at most `upper`."""
    cut = lambda u: jnp.sqrt(-jnp.log1p((jnp.exp(-jnp.square(1.0 * upper)) - 1) * u))
    return draw_polar(key, shape_of("initializers", shape), np.dtype(dtype), cut)
