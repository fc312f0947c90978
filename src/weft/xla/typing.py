"""Types for annotations of what functions take and give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from weft.dtypes import DTypeLike as DTypeLike
from weft.mesh.spec import PartitionSpec
from weft.xla.array import Array as Array

# What functions of weft.numpy take as an array: no lists.
ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex

# The sizes of the axes of an array; a number for one axis.
Shape: TypeAlias = int | Sequence[int]

# Axes of an array: one, several, or where that is meant all of them.
Axes: TypeAlias = int | Sequence[int]
Axis: TypeAlias = Axes | None


class Device(Protocol):
    """A device of `weft.devices()`. jaxlib's classes have no types: this is for type checkers."""

    @property
    def platform(self) -> str: ...
    @property
    def id(self) -> int: ...


class Sharding(Protocol):
    """The distribution of an array over devices, such as a `NamedSharding`."""

    @property
    def device_set(self) -> set[Any]: ...


# The device or sharding of a function's results. None is the function's default.
DeviceLike: TypeAlias = Device | Sharding | None
ShardingLike: TypeAlias = Sharding | PartitionSpec | None
