"""Written by tools/make_stubs.py; do not edit."""

from weft.xla.array import Array as _Array
from weft.xla.typing import ArrayLike as _ArrayLike

def vq(
    obs: _ArrayLike, code_book: _ArrayLike, check_finite: bool = ...
) -> tuple[_Array, _Array]: ...
