"""The names of `jax._src.typing` for annotations that weft itself does not need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from weft.util import list_public
from weft.xla.typing import Array, ArrayLike, DTypeLike

__all__ = [
    "Array", "ArrayLike", "DType", "DTypeLike", "DimSize", "DuckTypedArray", "Shape",
    "StaticScalar", "SupportsDType", "SupportsNdim", "SupportsShape", "SupportsSize",
]  # fmt: skip
__dir__ = list_public(__name__)

DType = np.dtype
DimSize = int | Any  # a symbolic size is not an int
Shape = Sequence[DimSize]
StaticScalar = np.bool_ | np.number | bool | int | float | complex


@runtime_checkable
class SupportsDType(Protocol):
    """An object with a dtype."""

    @property
    def dtype(self) -> np.dtype: ...


@runtime_checkable
class SupportsShape(Protocol):
    """An object with a shape."""

    @property
    def shape(self) -> tuple[int, ...]: ...


@runtime_checkable
class SupportsNdim(Protocol):
    """An object with a number of axes."""

    @property
    def ndim(self) -> int: ...


@runtime_checkable
class SupportsSize(Protocol):
    """An object with a number of elements."""

    @property
    def size(self) -> int: ...


@runtime_checkable
class DuckTypedArray(SupportsDType, SupportsShape, Protocol):
    """An object with a dtype and a shape."""
