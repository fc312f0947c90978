"""Written by tools/make_stubs.py; do not edit."""

from collections.abc import Sequence as _Sequence
from weft.primitives.dot import PrecisionLike as _PrecisionLike
from weft.xla.array import Array as _Array
from weft.xla.typing import ArrayLike as _ArrayLike
import enum as _enum

class ResizeMethod(_enum.Enum):
    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod: ...

def resize(
    image: _ArrayLike,
    shape: _Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = ...,
    precision: _PrecisionLike = ...,
) -> _Array: ...
def scale_and_translate(
    image: _ArrayLike,
    shape: _Sequence[int],
    spatial_dims: _Sequence[int],
    scale: _ArrayLike,
    translation: _ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = ...,
    precision: _PrecisionLike = ...,
) -> _Array: ...
