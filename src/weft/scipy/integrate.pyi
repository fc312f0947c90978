"""Written by tools/make_stubs.py; do not edit."""

from weft.xla.array import Array as _Array
from weft.xla.typing import ArrayLike as _ArrayLike

def trapezoid(
    y: _ArrayLike, x: _ArrayLike | None = ..., dx: _ArrayLike = ..., axis: int = ...
) -> _Array: ...
