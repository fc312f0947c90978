"""Written by tools/make_stubs.py; do not edit."""

from collections.abc import Sequence as _Sequence
from weft.xla.array import Array as _Array
from weft.xla.typing import ArrayLike as _ArrayLike

def dct(
    x: _ArrayLike, type: int = ..., n: int | None = ..., axis: int = ..., norm: str | None = ...
) -> _Array: ...
def dctn(
    x: _ArrayLike,
    type: int = ...,
    s: _Sequence[int] | None = ...,
    axes: _Sequence[int] | None = ...,
    norm: str | None = ...,
) -> _Array: ...
def idct(
    x: _ArrayLike, type: int = ..., n: int | None = ..., axis: int = ..., norm: str | None = ...
) -> _Array: ...
def idctn(
    x: _ArrayLike,
    type: int = ...,
    s: _Sequence[int] | None = ...,
    axes: _Sequence[int] | None = ...,
    norm: str | None = ...,
) -> _Array: ...
