"""Written by tools/make_stubs.py; do not edit."""

from collections.abc import Sequence as _Sequence
from typing import Any as _Any
from weft.xla.array import Array as _Array
from weft.xla.typing import ArrayLike as _ArrayLike

def map_coordinates(
    input: _ArrayLike,
    coordinates: _Sequence[_Any],
    order: int,
    mode: str = ...,
    cval: _ArrayLike = ...,
) -> _Array: ...
