"""Types for annotations of what functions take and give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from weft.dtypes import DTypeLike as DTypeLike
from weft.xla.array import Array as Array

# What functions of weft.numpy take as an array: no lists.
ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex

# The sizes of the axes of an array; a number for one axis.
Shape: TypeAlias = int | Sequence[int]

# Axes of an array: one, several, or where that is meant all of them.
Axes: TypeAlias = int | Sequence[int]
Axis: TypeAlias = Axes | None
