"""Written by tools/make_stubs.py; do not edit."""

from typing import Any as _Any
from weft.primitives.dot import PrecisionLike as _PrecisionLike
from weft.xla.array import Array as _Array
from weft.xla.typing import ArrayLike as _ArrayLike

def convolve(
    in1: _ArrayLike,
    in2: _ArrayLike,
    mode: str = ...,
    method: str = ...,
    precision: _PrecisionLike = ...,
) -> _Array: ...
def convolve2d(
    in1: _ArrayLike,
    in2: _ArrayLike,
    mode: str = ...,
    boundary: str = ...,
    fillvalue: _ArrayLike = ...,
    precision: _PrecisionLike = ...,
) -> _Array: ...
def correlate(
    in1: _ArrayLike,
    in2: _ArrayLike,
    mode: str = ...,
    method: str = ...,
    precision: _PrecisionLike = ...,
) -> _Array: ...
def correlate2d(
    in1: _ArrayLike,
    in2: _ArrayLike,
    mode: str = ...,
    boundary: str = ...,
    fillvalue: _ArrayLike = ...,
    precision: _PrecisionLike = ...,
) -> _Array: ...
def csd(
    x: _ArrayLike,
    y: _ArrayLike,
    fs: _ArrayLike = ...,
    window: str | _ArrayLike | tuple[_Any, ...] = ...,
    nperseg: int | None = ...,
    noverlap: int | None = ...,
    nfft: int | None = ...,
    detrend: _Any = ...,
    return_onesided: bool = ...,
    scaling: str = ...,
    axis: int = ...,
    average: str = ...,
) -> tuple[_Array, _Array]: ...
def detrend(
    data: _ArrayLike, axis: int = ..., type: str = ..., bp: _Any = ..., overwrite_data: None = ...
) -> _Array: ...
def fftconvolve(in1: _ArrayLike, in2: _ArrayLike, mode: str = ..., axes: _Any = ...) -> _Array: ...
def istft(
    Zxx: _ArrayLike,
    fs: _ArrayLike = ...,
    window: str | _ArrayLike | tuple[_Any, ...] = ...,
    nperseg: int | None = ...,
    noverlap: int | None = ...,
    nfft: int | None = ...,
    input_onesided: bool = ...,
    boundary: bool = ...,
    time_axis: int = ...,
    freq_axis: int = ...,
) -> tuple[_Array, _Array]: ...
def stft(
    x: _ArrayLike,
    fs: _ArrayLike = ...,
    window: str | _ArrayLike | tuple[_Any, ...] = ...,
    nperseg: int | None = ...,
    noverlap: int | None = ...,
    nfft: int | None = ...,
    detrend: _Any = ...,
    return_onesided: bool = ...,
    boundary: str | None = ...,
    padded: bool = ...,
    axis: int = ...,
) -> tuple[_Array, _Array, _Array]: ...
def welch(
    x: _ArrayLike,
    fs: _ArrayLike = ...,
    window: str | _ArrayLike | tuple[_Any, ...] = ...,
    nperseg: int | None = ...,
    noverlap: int | None = ...,
    nfft: int | None = ...,
    detrend: _Any = ...,
    return_onesided: bool = ...,
    scaling: str = ...,
    axis: int = ...,
    average: str = ...,
) -> tuple[_Array, _Array]: ...
