"""Written by tools/make_stubs.py; do not edit."""

from collections.abc import Sequence as _Sequence
from typing import Protocol as _Protocol
from weft.dtypes import DTypeLike as _DTypeLike
from weft.xla.array import Array as _Array
from weft.xla.typing import ArrayLike as _ArrayLike
from weft.xla.typing import Axes as _Axes
from weft.xla.typing import ShardingLike as _ShardingLike

class Initializer(_Protocol):
    def __call__(
        self, key: _ArrayLike, shape: int | _Sequence[int], dtype: _DTypeLike | None = ...
    ) -> _Array: ...

def constant(value: _ArrayLike, dtype: _DTypeLike | None = ...) -> Initializer: ...
def delta_orthogonal(
    scale: _ArrayLike = ..., column_axis: int = ..., dtype: _DTypeLike | None = ...
) -> Initializer: ...
def glorot_normal(
    in_axis: _Axes = ...,
    out_axis: _Axes = ...,
    batch_axis: _Axes = ...,
    dtype: _DTypeLike | None = ...,
) -> Initializer: ...
def glorot_uniform(
    in_axis: _Axes = ...,
    out_axis: _Axes = ...,
    batch_axis: _Axes = ...,
    dtype: _DTypeLike | None = ...,
) -> Initializer: ...
def he_normal(
    in_axis: _Axes = ...,
    out_axis: _Axes = ...,
    batch_axis: _Axes = ...,
    dtype: _DTypeLike | None = ...,
) -> Initializer: ...
def he_uniform(
    in_axis: _Axes = ...,
    out_axis: _Axes = ...,
    batch_axis: _Axes = ...,
    dtype: _DTypeLike | None = ...,
) -> Initializer: ...
def kaiming_normal(
    in_axis: _Axes = ...,
    out_axis: _Axes = ...,
    batch_axis: _Axes = ...,
    dtype: _DTypeLike | None = ...,
) -> Initializer: ...
def kaiming_uniform(
    in_axis: _Axes = ...,
    out_axis: _Axes = ...,
    batch_axis: _Axes = ...,
    dtype: _DTypeLike | None = ...,
) -> Initializer: ...
def lecun_normal(
    in_axis: _Axes = ...,
    out_axis: _Axes = ...,
    batch_axis: _Axes = ...,
    dtype: _DTypeLike | None = ...,
) -> Initializer: ...
def lecun_uniform(
    in_axis: _Axes = ...,
    out_axis: _Axes = ...,
    batch_axis: _Axes = ...,
    dtype: _DTypeLike | None = ...,
) -> Initializer: ...
def normal(stddev: _ArrayLike = ..., dtype: _DTypeLike | None = ...) -> Initializer: ...
def ones(
    key: _ArrayLike,
    shape: int | _Sequence[int],
    dtype: _DTypeLike | None = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def orthogonal(
    scale: _ArrayLike = ..., column_axis: int = ..., dtype: _DTypeLike | None = ...
) -> Initializer: ...
def truncated_normal(
    stddev: _ArrayLike = ...,
    dtype: _DTypeLike | None = ...,
    lower: _ArrayLike = ...,
    upper: _ArrayLike = ...,
) -> Initializer: ...
def uniform(scale: _ArrayLike = ..., dtype: _DTypeLike | None = ...) -> Initializer: ...
def variance_scaling(
    scale: _ArrayLike,
    mode: str,
    distribution: str,
    in_axis: _Axes = ...,
    out_axis: _Axes = ...,
    batch_axis: _Axes = ...,
    dtype: _DTypeLike | None = ...,
) -> Initializer: ...
def xavier_normal(
    in_axis: _Axes = ...,
    out_axis: _Axes = ...,
    batch_axis: _Axes = ...,
    dtype: _DTypeLike | None = ...,
) -> Initializer: ...
def xavier_uniform(
    in_axis: _Axes = ...,
    out_axis: _Axes = ...,
    batch_axis: _Axes = ...,
    dtype: _DTypeLike | None = ...,
) -> Initializer: ...
def zeros(
    key: _ArrayLike,
    shape: int | _Sequence[int],
    dtype: _DTypeLike | None = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
