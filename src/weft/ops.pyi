"""Written by tools/make_stubs.py; do not edit."""

from numpy.lib._index_tricks_impl import IndexExpression as _IndexExpression
from typing import Any as _Any
from weft.xla.array import Array as _Array
from weft.xla.typing import ArrayLike as _ArrayLike
from weft.xla.typing import ShardingLike as _ShardingLike

index: _IndexExpression

def index_add(
    x: _ArrayLike,
    idx: _Any,
    y: _ArrayLike,
    indices_are_sorted: bool = ...,
    unique_indices: bool = ...,
) -> _Array: ...
def index_max(
    x: _ArrayLike,
    idx: _Any,
    y: _ArrayLike,
    indices_are_sorted: bool = ...,
    unique_indices: bool = ...,
) -> _Array: ...
def index_min(
    x: _ArrayLike,
    idx: _Any,
    y: _ArrayLike,
    indices_are_sorted: bool = ...,
    unique_indices: bool = ...,
) -> _Array: ...
def index_mul(
    x: _ArrayLike,
    idx: _Any,
    y: _ArrayLike,
    indices_are_sorted: bool = ...,
    unique_indices: bool = ...,
) -> _Array: ...
def index_update(
    x: _ArrayLike,
    idx: _Any,
    y: _ArrayLike,
    indices_are_sorted: bool = ...,
    unique_indices: bool = ...,
) -> _Array: ...
def segment_max(
    data: _ArrayLike,
    segment_ids: _ArrayLike,
    num_segments: int | None = ...,
    indices_are_sorted: bool = ...,
    unique_indices: bool = ...,
    bucket_size: int | None = ...,
    mode: _Any = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def segment_min(
    data: _ArrayLike,
    segment_ids: _ArrayLike,
    num_segments: int | None = ...,
    indices_are_sorted: bool = ...,
    unique_indices: bool = ...,
    bucket_size: int | None = ...,
    mode: _Any = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def segment_prod(
    data: _ArrayLike,
    segment_ids: _ArrayLike,
    num_segments: int | None = ...,
    indices_are_sorted: bool = ...,
    unique_indices: bool = ...,
    bucket_size: int | None = ...,
    mode: _Any = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def segment_sum(
    data: _ArrayLike,
    segment_ids: _ArrayLike,
    num_segments: int | None = ...,
    indices_are_sorted: bool = ...,
    unique_indices: bool = ...,
    bucket_size: int | None = ...,
    mode: _Any = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
