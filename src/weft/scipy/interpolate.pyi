"""Written by tools/make_stubs.py; do not edit."""

from collections.abc import Sequence as _Sequence
from typing import Any as _Any

class RegularGridInterpolator:
    def __init__(
        self,
        points: _Sequence[_Any],
        values: _Any,
        method: str = ...,
        bounds_error: bool = ...,
        fill_value: _Any = ...,
    ): ...
    def __call__(self, xi: _Any, method: str | None = ...) -> _Any: ...
    def __repr__(self) -> str: ...
