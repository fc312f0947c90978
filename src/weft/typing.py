"""Types for annotations: `def f(x: weft.typing.ArrayLike) -> weft.Array`."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from weft.util import list_public
from weft.xla.array import Array

__all__ = ["ArrayLike", "DTypeLike"]
__dir__ = list_public(__name__)


class SupportsDType(Protocol):
    """What has a `dtype`."""

    @property
    def dtype(self) -> np.dtype: ...


# What functions of weft.numpy take as an array: no lists.
ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex

# What functions take as a dtype.
DTypeLike = str | type[Any] | np.dtype | SupportsDType
