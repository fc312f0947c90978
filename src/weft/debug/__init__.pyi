"""Written by tools/make_stubs.py; do not edit."""

from collections.abc import Callable as _Callable
from collections.abc import Sequence as _Sequence
from typing import Any as _Any
from typing import TextIO as _TextIO
from weft.debug.layout import Color as _Color

from weft.primitives.effects import DebugEffect as DebugEffect
from weft.primitives.effects import OrderedDebugEffect as OrderedDebugEffect

def breakpoint(
    *,
    backend: str | None = ...,
    filter_frames: bool = ...,
    num_frames: int | None = ...,
    ordered: bool = ...,
    token: _Any = ...,
    stdin: _TextIO | None = ...,
    stdout: _TextIO | None = ...,
) -> _Any: ...
def callback(
    callback: _Callable[..., _Any] | None = ...,
    *args: _Any,
    ordered: bool = ...,
    partitioned: bool = ...,
    **kwargs: _Any,
) -> _Any: ...
def inspect_array_sharding(value: _Any, *, callback: _Callable[[_Any], _Any]) -> None: ...
def log(
    fmt: str | None = ...,
    *args: _Any,
    ordered: bool = ...,
    partitioned: bool = ...,
    skip_format_check: bool = ...,
    **kwargs: _Any,
) -> _Any: ...
def print(
    fmt: str | None = ...,
    *args: _Any,
    ordered: bool = ...,
    partitioned: bool = ...,
    skip_format_check: bool = ...,
    **kwargs: _Any,
) -> _Any: ...
def visualize_array_sharding(arr: _Any, **kwargs: _Any) -> None: ...
def visualize_sharding(
    shape: _Sequence[int],
    sharding: _Any,
    *,
    use_color: bool = ...,
    scale: float = ...,
    min_width: int = ...,
    max_width: int = ...,
    color_map: _Callable[[float], _Color] | None = ...,
) -> None: ...
