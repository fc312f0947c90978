"""Written by tools/make_stubs.py; do not edit."""

from collections.abc import Callable as _Callable
from collections.abc import Collection as _Collection
from collections.abc import Sequence as _Sequence
from typing import Any as _Any
from typing import (
    Any,
    Concatenate,
    Generic,
    Literal,
    Never,
    ParamSpec,
    Protocol,
    TypeVar,
    TypeVarTuple,
    overload,
)
from weft.dtypes import DTypeLike as _DTypeLike
from weft.numpy.scalars import ScalarType as _ScalarType
from weft.numpy.sets import UniqueAll as _UniqueAll
from weft.numpy.sets import UniqueCounts as _UniqueCounts
from weft.numpy.sets import UniqueInverse as _UniqueInverse
from weft.numpy.ufunc_objects import ufunc as _ufunc
from weft.primitives.dot import PrecisionLike as _PrecisionLike
from weft.primitives.indexing import GatherScatterMode as _GatherScatterMode
from weft.xla.array import Array as _Array
from weft.xla.typing import ArrayLike as _ArrayLike
from weft.xla.typing import Axes as _Axes
from weft.xla.typing import Axis as _Axis
from weft.xla.typing import DeviceLike as _DeviceLike
from weft.xla.typing import Shape as _Shape
from weft.xla.typing import ShardingLike as _ShardingLike
import builtins as _builtins
import numpy as _np

from weft.numpy.scalars import ComplexWarning as ComplexWarning
from weft.numpy.array_api import __array_api_version__ as __array_api_version__
from weft.numpy.array_api import __array_namespace_info__ as __array_namespace_info__

def abs(x: _ArrayLike, /) -> _Array: ...
def absolute(x: _ArrayLike, /) -> _Array: ...
def acos(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def acosh(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def add(x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def all(
    a: _ArrayLike,
    axis: _Axis = ...,
    out: None = ...,
    keepdims: _builtins.bool = ...,
    *,
    where: _ArrayLike | None = ...,
) -> _Array: ...
def allclose(
    a: _ArrayLike,
    b: _ArrayLike,
    rtol: _ArrayLike = ...,
    atol: _ArrayLike = ...,
    equal_nan: _builtins.bool = ...,
) -> _Array: ...
def amax(
    a: _ArrayLike,
    axis: _Axis = ...,
    out: None = ...,
    keepdims: _builtins.bool = ...,
    initial: _ArrayLike | None = ...,
    where: _ArrayLike | None = ...,
) -> _Array: ...
def amin(
    a: _ArrayLike,
    axis: _Axis = ...,
    out: None = ...,
    keepdims: _builtins.bool = ...,
    initial: _ArrayLike | None = ...,
    where: _ArrayLike | None = ...,
) -> _Array: ...
def angle(z: _ArrayLike, deg: _builtins.bool = ...) -> _Array: ...
def any(
    a: _ArrayLike,
    axis: _Axis = ...,
    out: None = ...,
    keepdims: _builtins.bool = ...,
    *,
    where: _ArrayLike | None = ...,
) -> _Array: ...
def append(arr: _ArrayLike, values: _ArrayLike, axis: int | None = ...) -> _Array: ...
def apply_along_axis(
    func1d: _Callable[..., _Any], axis: int, arr: _ArrayLike, *args: _Any, **kwargs: _Any
) -> _Array: ...
def apply_over_axes(
    func: _Callable[..., _Any], a: _ArrayLike, axes: int | _Sequence[int]
) -> _Array: ...
def arange(
    start: _ArrayLike,
    stop: _ArrayLike | None = ...,
    step: _ArrayLike | None = ...,
    dtype: _DTypeLike | None = ...,
    *,
    device: _DeviceLike = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def arccos(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def arccosh(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def arcsin(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def arcsinh(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def arctan(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def arctan2(x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def arctanh(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def argmax(
    a: _ArrayLike, axis: int | None = ..., out: None = ..., keepdims: _builtins.bool | None = ...
) -> _Array: ...
def argmin(
    a: _ArrayLike, axis: int | None = ..., out: None = ..., keepdims: _builtins.bool | None = ...
) -> _Array: ...
def argpartition(a: _ArrayLike, kth: int, axis: int = ...) -> _Array: ...
def argsort(
    a: _ArrayLike,
    axis: int | None = ...,
    *,
    kind: None = ...,
    order: None = ...,
    stable: _builtins.bool = ...,
    descending: _builtins.bool = ...,
    dtype: _DTypeLike | None = ...,
) -> _Array: ...
def argwhere(
    a: _ArrayLike, *, size: int | None = ..., fill_value: _ArrayLike | None = ...
) -> _Array: ...
def around(a: _ArrayLike, decimals: int = ..., out: None = ...) -> _Array: ...
def array(
    object: _Any,
    dtype: _DTypeLike | None = ...,
    copy: _builtins.bool = ...,
    order: str | None = ...,
    ndmin: int = ...,
    *,
    device: _DeviceLike = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def array_equal(a1: _ArrayLike, a2: _ArrayLike, equal_nan: _builtins.bool = ...) -> _Array: ...
def array_equiv(a1: _ArrayLike, a2: _ArrayLike) -> _Array: ...

from weft.numpy.scalars import array_repr as array_repr

def array_split(
    ary: _ArrayLike, indices_or_sections: int | _Sequence[int] | _ArrayLike, axis: int = ...
) -> list[_Array]: ...

from weft.numpy.scalars import array_str as array_str

def asarray(
    a: _Any,
    dtype: _DTypeLike | None = ...,
    order: str | None = ...,
    *,
    copy: _builtins.bool | None = ...,
    device: _DeviceLike = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def asin(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def asinh(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def astype(
    x: _ArrayLike, dtype: _DTypeLike, /, *, copy: _builtins.bool = ..., device: _DeviceLike = ...
) -> _Array: ...
def atan(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def atan2(x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def atanh(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def atleast_1d(*arys: _ArrayLike) -> _Any: ...
def atleast_2d(*arys: _ArrayLike) -> _Any: ...
def atleast_3d(*arys: _ArrayLike) -> _Any: ...
def average(
    a: _ArrayLike,
    axis: _Axis = ...,
    weights: _ArrayLike | None = ...,
    returned: _builtins.bool = ...,
    keepdims: _builtins.bool = ...,
) -> _Any: ...
def bartlett(M: int) -> _Array: ...

bfloat16: _ScalarType

def bincount(
    x: _ArrayLike,
    weights: _ArrayLike | None = ...,
    minlength: int = ...,
    *,
    length: int | None = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def bitwise_and(
    x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...
) -> _Array: ...
def bitwise_count(x: _ArrayLike, /) -> _Array: ...
def bitwise_invert(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def bitwise_left_shift(x: _ArrayLike, y: _ArrayLike, /) -> _Array: ...
def bitwise_not(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def bitwise_or(
    x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...
) -> _Array: ...
def bitwise_right_shift(x1: _ArrayLike, x2: _ArrayLike, /) -> _Array: ...
def bitwise_xor(
    x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...
) -> _Array: ...
def blackman(M: int) -> _Array: ...
def block(arrays: _Any) -> _Array: ...

bool: _ScalarType
bool_: _ScalarType

def broadcast_arrays(*args: _Any) -> _Sequence[_Array]: ...
def broadcast_shapes(*shapes: _Shape) -> tuple[int, ...]: ...
def broadcast_to(
    array: _ArrayLike, shape: _Shape, *, out_sharding: _ShardingLike = ...
) -> _Array: ...

from weft.numpy.grids import c_ as c_
from weft.numpy.scalars import can_cast as can_cast

def cbrt(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...

cdouble: _ScalarType

def ceil(x: _ArrayLike, /) -> _Array: ...

from numpy import character as character

def choose(
    a: _ArrayLike, choices: _ArrayLike | _Sequence[_ArrayLike], out: None = ..., mode: str = ...
) -> _Array: ...
def clip(
    arr: _ArrayLike, /, min: _ArrayLike | None = ..., max: _ArrayLike | None = ...
) -> _Array: ...
def column_stack(tup: _ArrayLike | _Sequence[_ArrayLike]) -> _Array: ...

complex128: _ScalarType
complex64: _ScalarType
complex_: _ScalarType
from numpy import complexfloating as complexfloating

def compress(
    condition: _ArrayLike,
    a: _ArrayLike,
    axis: int | None = ...,
    *,
    size: int | None = ...,
    fill_value: _ArrayLike = ...,
    out: None = ...,
) -> _Array: ...
def concat(arrays: _Sequence[_Any], /, *, axis: int | None = ...) -> _Array: ...
def concatenate(
    arrays: _ArrayLike | _Sequence[_ArrayLike],
    axis: int | None = ...,
    dtype: _DTypeLike | None = ...,
) -> _Array: ...
def conj(x: _ArrayLike, /) -> _Array: ...
def conjugate(x: _ArrayLike, /) -> _Array: ...
def convolve(
    a: _ArrayLike,
    v: _ArrayLike,
    mode: str = ...,
    *,
    precision: _PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
) -> _Array: ...
def copy(a: _ArrayLike, order: str | None = ...) -> _Array: ...
def copysign(x1: _ArrayLike, x2: _ArrayLike, /) -> _Array: ...
def corrcoef(
    x: _ArrayLike,
    y: _ArrayLike | None = ...,
    rowvar: _builtins.bool = ...,
    dtype: _DTypeLike | None = ...,
) -> _Array: ...
def correlate(
    a: _ArrayLike,
    v: _ArrayLike,
    mode: str = ...,
    *,
    precision: _PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
) -> _Array: ...
def cos(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def cosh(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def count_nonzero(a: _ArrayLike, axis: _Axis = ..., keepdims: _builtins.bool = ...) -> _Array: ...
def cov(
    m: _ArrayLike,
    y: _ArrayLike | None = ...,
    rowvar: _builtins.bool = ...,
    bias: _builtins.bool = ...,
    ddof: int | None = ...,
    fweights: _ArrayLike | None = ...,
    aweights: _ArrayLike | None = ...,
    dtype: _DTypeLike | None = ...,
) -> _Array: ...
def cross(
    a: _ArrayLike,
    b: _ArrayLike,
    axisa: int = ...,
    axisb: int = ...,
    axisc: int = ...,
    axis: int | None = ...,
) -> _Array: ...

csingle: _ScalarType

def cumprod(
    a: _ArrayLike, axis: int | None = ..., dtype: _DTypeLike | None = ..., out: None = ...
) -> _Array: ...
def cumsum(
    a: _ArrayLike, axis: int | None = ..., dtype: _DTypeLike | None = ..., out: None = ...
) -> _Array: ...
def cumulative_prod(
    x: _ArrayLike,
    /,
    *,
    axis: int | None = ...,
    dtype: _DTypeLike | None = ...,
    include_initial: _builtins.bool = ...,
) -> _Array: ...
def cumulative_sum(
    x: _ArrayLike,
    /,
    *,
    axis: int | None = ...,
    dtype: _DTypeLike | None = ...,
    include_initial: _builtins.bool = ...,
) -> _Array: ...
def deg2rad(x: _ArrayLike, /) -> _Array: ...
def degrees(x: _ArrayLike, /) -> _Array: ...
def delete(
    arr: _ArrayLike,
    obj: _ArrayLike | slice,
    axis: int | None = ...,
    *,
    assume_unique_indices: _builtins.bool = ...,
) -> _Array: ...
def diag(v: _ArrayLike, k: int = ...) -> _Array: ...
def diag_indices(n: int, ndim: int = ...) -> tuple[_Array, ...]: ...
def diag_indices_from(arr: _ArrayLike) -> tuple[_Array, ...]: ...
def diagflat(v: _ArrayLike, k: int = ...) -> _Array: ...
def diagonal(a: _ArrayLike, offset: int = ..., axis1: int = ..., axis2: int = ...) -> _Array: ...
def diff(
    a: _ArrayLike,
    n: int = ...,
    axis: int = ...,
    prepend: _ArrayLike | None = ...,
    append: _ArrayLike | None = ...,
) -> _Array: ...
def digitize(
    x: _ArrayLike, bins: _ArrayLike, right: _builtins.bool = ..., *, method: str | None = ...
) -> _Array: ...
def divide(x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def divmod(x1: _ArrayLike, x2: _ArrayLike, /) -> tuple[_Array, _Array]: ...
def dot(
    a: _ArrayLike,
    b: _ArrayLike,
    *,
    precision: _PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...

double: _ScalarType

def dsplit(
    ary: _ArrayLike, indices_or_sections: int | _Sequence[int] | _ArrayLike
) -> list[_Array]: ...
def dstack(tup: _ArrayLike | _Sequence[_ArrayLike], dtype: _DTypeLike | None = ...) -> _Array: ...

from numpy import dtype as dtype

e: float

def ediff1d(
    ary: _ArrayLike, to_end: _ArrayLike | None = ..., to_begin: _ArrayLike | None = ...
) -> _Array: ...
def einsum(
    subscripts: _Any,
    /,
    *operands: _Any,
    out: None = ...,
    optimize: _builtins.bool | str | _Sequence[_Any] = ...,
    precision: _PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
    _dot_general: _Callable[..., _Any] | None = ...,
    out_sharding: _ShardingLike = ...,
) -> _Any: ...
def einsum_path(
    subscripts: _Any, /, *operands: _Any, optimize: _builtins.bool | str | _Sequence[_Any] = ...
) -> tuple[list[_Any], _Any]: ...
def empty(
    shape: _Shape,
    dtype: _DTypeLike | None = ...,
    *,
    device: _DeviceLike = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def empty_like(
    prototype: _ArrayLike,
    dtype: _DTypeLike | None = ...,
    shape: _Shape | None = ...,
    *,
    device: _DeviceLike = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def equal(x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...

euler_gamma: float

def exp(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def exp2(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def expand_dims(a: _ArrayLike, axis: _Axes) -> _Array: ...
def expm1(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def extract(
    condition: _ArrayLike, arr: _ArrayLike, *, size: int | None = ..., fill_value: _ArrayLike = ...
) -> _Array: ...
def eye(
    N: int,
    M: int | None = ...,
    k: int | _ArrayLike = ...,
    dtype: _DTypeLike | None = ...,
    *,
    device: _DeviceLike = ...,
) -> _Array: ...
def fabs(x: _ArrayLike, /) -> _Array: ...

from weft.numpy import fft as fft

def fill_diagonal(
    a: _ArrayLike, val: _ArrayLike, wrap: _builtins.bool = ..., *, inplace: _builtins.bool = ...
) -> _Array: ...

from ml_dtypes import finfo as finfo

def flatnonzero(
    a: _ArrayLike, *, size: int | None = ..., fill_value: _ArrayLike | None = ...
) -> _Array: ...

from numpy import flexible as flexible

def flip(m: _ArrayLike, axis: _Axes | None = ...) -> _Array: ...
def fliplr(m: _ArrayLike) -> _Array: ...
def flipud(m: _ArrayLike) -> _Array: ...

float16: _ScalarType
float32: _ScalarType
float4_e2m1fn: _ScalarType
float64: _ScalarType
float6_e2m3fn: _ScalarType
float6_e3m2fn: _ScalarType
float8_e3m4: _ScalarType
float8_e4m3: _ScalarType
float8_e4m3b11fnuz: _ScalarType
float8_e4m3fn: _ScalarType
float8_e4m3fnuz: _ScalarType
float8_e5m2: _ScalarType
float8_e5m2fnuz: _ScalarType
float8_e8m0fnu: _ScalarType
float_: _ScalarType

def float_power(x: _ArrayLike, y: _ArrayLike, /) -> _Array: ...

from numpy import floating as floating

def floor(x: _ArrayLike, /) -> _Array: ...
def floor_divide(x1: _ArrayLike, x2: _ArrayLike, /) -> _Array: ...
def fmax(x1: _ArrayLike, x2: _ArrayLike) -> _Array: ...
def fmin(x1: _ArrayLike, x2: _ArrayLike) -> _Array: ...
def fmod(x1: _ArrayLike, x2: _ArrayLike, /) -> _Array: ...
def frexp(x: _ArrayLike, /) -> tuple[_Array, _Array]: ...
def from_dlpack(
    x: _Any, /, *, device: _DeviceLike = ..., copy: _builtins.bool | None = ...
) -> _Array: ...
def frombuffer(
    buffer: _Any, dtype: _DTypeLike = ..., count: int = ..., offset: int = ...
) -> _Array: ...
def fromfile(*args: _Any, **kwargs: _Any) -> _Array: ...
def fromfunction(
    function: _Callable[..., _Any], shape: _Shape, *, dtype: _DTypeLike = ..., **kwargs: _Any
) -> _Any: ...
def fromiter(*args: _Any, **kwargs: _Any) -> _Array: ...
def frompyfunc(
    func: _Callable[..., _Any], /, nin: int, nout: int, *, identity: _Any = ...
) -> _ufunc: ...
def fromstring(string: str, dtype: _DTypeLike = ..., count: int = ..., *, sep: str) -> _Array: ...
def full(
    shape: _Shape,
    fill_value: _ArrayLike,
    dtype: _DTypeLike | None = ...,
    *,
    device: _DeviceLike = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def full_like(
    a: _ArrayLike,
    fill_value: _ArrayLike,
    dtype: _DTypeLike | None = ...,
    shape: _Shape | None = ...,
    *,
    device: _DeviceLike = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def gcd(x1: _ArrayLike, x2: _ArrayLike) -> _Array: ...

from numpy import generic as generic

def geomspace(
    start: _ArrayLike,
    stop: _ArrayLike,
    num: int = ...,
    endpoint: _builtins.bool = ...,
    dtype: _DTypeLike | None = ...,
    axis: int = ...,
) -> _Array: ...

from weft.numpy.scalars import get_printoptions as get_printoptions

def gradient(
    f: _ArrayLike,
    *varargs: _ArrayLike | _Sequence[_ArrayLike],
    axis: int | _Sequence[int] | None = ...,
    edge_order: int | None = ...,
) -> _Any: ...
def greater(x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def greater_equal(
    x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...
) -> _Array: ...
def hamming(M: int) -> _Array: ...
def hanning(M: int) -> _Array: ...
def heaviside(x1: _ArrayLike, x2: _ArrayLike, /) -> _Array: ...
def histogram(
    a: _ArrayLike,
    bins: _ArrayLike = ...,
    range: _ArrayLike | _Sequence[_ArrayLike] | None = ...,
    weights: _ArrayLike | None = ...,
    density: _builtins.bool | None = ...,
) -> tuple[_Array, _Array]: ...
def histogram2d(
    x: _ArrayLike,
    y: _ArrayLike,
    bins: _ArrayLike = ...,
    range: _Sequence[_Any] | None = ...,
    weights: _ArrayLike | None = ...,
    density: _builtins.bool | None = ...,
) -> tuple[_Array, _Array, _Array]: ...
def histogram_bin_edges(
    a: _ArrayLike,
    bins: _ArrayLike = ...,
    range: _ArrayLike | _Sequence[_ArrayLike] | None = ...,
    weights: _ArrayLike | None = ...,
) -> _Array: ...
def histogramdd(
    sample: _ArrayLike | _Sequence[_ArrayLike],
    bins: _ArrayLike = ...,
    range: _Sequence[_Any] | None = ...,
    weights: _ArrayLike | None = ...,
    density: _builtins.bool | None = ...,
) -> tuple[_Array, list[_Any]]: ...
def hsplit(
    ary: _ArrayLike, indices_or_sections: int | _Sequence[int] | _ArrayLike
) -> list[_Array]: ...
def hstack(tup: _ArrayLike | _Sequence[_ArrayLike], dtype: _DTypeLike | None = ...) -> _Array: ...
def hypot(x1: _ArrayLike, x2: _ArrayLike, /) -> _Array: ...
def i0(x: _ArrayLike) -> _Array: ...
def identity(n: int, dtype: _DTypeLike | None = ...) -> _Array: ...

from ml_dtypes import iinfo as iinfo

def imag(val: _ArrayLike, /) -> _Array: ...

from weft.numpy.grids import index_exp as index_exp

def indices(
    dimensions: _Sequence[int], dtype: _DTypeLike | None = ..., sparse: _builtins.bool = ...
) -> _Array: ...

from numpy import inexact as inexact

inf: float

def inner(
    a: _ArrayLike,
    b: _ArrayLike,
    *,
    precision: _PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
) -> _Array: ...
def insert(
    arr: _ArrayLike, obj: _ArrayLike | slice, values: _ArrayLike, axis: int | None = ...
) -> _Array: ...

int1: _ScalarType
int16: _ScalarType
int2: _ScalarType
int32: _ScalarType
int4: _ScalarType
int64: _ScalarType
int8: _ScalarType
int_: _ScalarType
from numpy import integer as integer

def interp(
    x: _ArrayLike,
    xp: _ArrayLike,
    fp: _ArrayLike,
    left: _ArrayLike | None = ...,
    right: _ArrayLike | None = ...,
    period: _ArrayLike | None = ...,
) -> _Array: ...
def intersect1d(
    ar1: _ArrayLike,
    ar2: _ArrayLike,
    assume_unique: _builtins.bool = ...,
    return_indices: _builtins.bool = ...,
    *,
    size: int | None = ...,
    fill_value: _ArrayLike | None = ...,
) -> _Array: ...
def invert(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def isclose(
    a: _ArrayLike,
    b: _ArrayLike,
    rtol: _ArrayLike = ...,
    atol: _ArrayLike = ...,
    equal_nan: _builtins.bool = ...,
) -> _Array: ...
def iscomplex(x: _ArrayLike) -> _Array: ...
def iscomplexobj(x: _Any) -> _builtins.bool: ...
def isdtype(dtype: _DTypeLike, kind: _DTypeLike | str | tuple[_Any, ...]) -> _builtins.bool: ...
def isfinite(x: _ArrayLike, /) -> _Array: ...
def isin(
    element: _ArrayLike,
    test_elements: _ArrayLike,
    assume_unique: _builtins.bool = ...,
    invert: _builtins.bool = ...,
    *,
    method: str = ...,
) -> _Array: ...
def isinf(x: _ArrayLike, /) -> _Array: ...
def isnan(x: _ArrayLike, /) -> _Array: ...
def isneginf(x: _ArrayLike, /, out: None = ...) -> _Array: ...
def isposinf(x: _ArrayLike, /, out: None = ...) -> _Array: ...
def isreal(x: _ArrayLike) -> _Array: ...
def isrealobj(x: _Any) -> _builtins.bool: ...
def isscalar(element: _Any) -> _builtins.bool: ...
def issubdtype(arg1: _DTypeLike, arg2: _DTypeLike) -> _builtins.bool: ...

from weft.numpy.scalars import iterable as iterable

def ix_(*args: _Any) -> tuple[_Array, ...]: ...
def kaiser(M: int, beta: _ArrayLike) -> _Array: ...
def kron(a: _ArrayLike, b: _ArrayLike) -> _Array: ...
def lcm(x1: _ArrayLike, x2: _ArrayLike) -> _Array: ...
def ldexp(x1: _ArrayLike, x2: _ArrayLike, /) -> _Array: ...
def left_shift(x: _ArrayLike, y: _ArrayLike, /) -> _Array: ...
def less(x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def less_equal(
    x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...
) -> _Array: ...
def lexsort(
    keys: _ArrayLike | _Sequence[_ArrayLike], axis: int = ..., *, batch_size: int = ...
) -> _Array: ...

from weft.numpy import linalg as linalg

def linspace(
    start: _ArrayLike,
    stop: _ArrayLike,
    num: int = ...,
    endpoint: _builtins.bool = ...,
    retstep: _builtins.bool = ...,
    dtype: _DTypeLike | None = ...,
    axis: int = ...,
    *,
    device: _DeviceLike = ...,
) -> _Array: ...
def load(file: _Any, *args: _Any, **kwargs: _Any) -> _Any: ...
def log(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def log10(x: _ArrayLike, /) -> _Array: ...
def log1p(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def log2(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def logaddexp(
    x1: _ArrayLike, x2: _ArrayLike, /, *, out: None = ..., where: None = ...
) -> _Array: ...
def logaddexp2(
    x1: _ArrayLike, x2: _ArrayLike, /, *, out: None = ..., where: None = ...
) -> _Array: ...
def logical_and(
    x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...
) -> _Array: ...
def logical_not(x: _ArrayLike, /) -> _Array: ...
def logical_or(
    x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...
) -> _Array: ...
def logical_xor(
    x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...
) -> _Array: ...
def logspace(
    start: _ArrayLike,
    stop: _ArrayLike,
    num: int = ...,
    endpoint: _builtins.bool = ...,
    base: _ArrayLike = ...,
    dtype: _DTypeLike | None = ...,
    axis: int = ...,
) -> _Array: ...
def mask_indices(
    n: int, mask_func: _Callable[..., _Any], k: int = ..., *, size: int | None = ...
) -> tuple[_Array, _Array]: ...
def matmul(
    a: _ArrayLike,
    b: _ArrayLike,
    *,
    precision: _PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def matrix_transpose(x: _ArrayLike, /) -> _Array: ...
def matvec(x1: _ArrayLike, x2: _ArrayLike, /) -> _Array: ...
def max(
    a: _ArrayLike,
    axis: _Axis = ...,
    out: None = ...,
    keepdims: _builtins.bool = ...,
    initial: _ArrayLike | None = ...,
    where: _ArrayLike | None = ...,
) -> _Array: ...
def maximum(x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def mean(
    a: _ArrayLike,
    axis: _Axis = ...,
    dtype: _DTypeLike | None = ...,
    out: None = ...,
    keepdims: _builtins.bool = ...,
    *,
    where: _ArrayLike | None = ...,
) -> _Array: ...
def median(
    a: _ArrayLike,
    axis: _Axis = ...,
    out: None = ...,
    overwrite_input: _builtins.bool = ...,
    keepdims: _builtins.bool = ...,
) -> _Array: ...
def meshgrid(
    *xi: _ArrayLike, copy: _builtins.bool = ..., sparse: _builtins.bool = ..., indexing: str = ...
) -> _Sequence[_Array]: ...

from weft.numpy.grids import mgrid as mgrid

def min(
    a: _ArrayLike,
    axis: _Axis = ...,
    out: None = ...,
    keepdims: _builtins.bool = ...,
    initial: _ArrayLike | None = ...,
    where: _ArrayLike | None = ...,
) -> _Array: ...
def minimum(x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def minmax(
    a: _ArrayLike,
    axis: _Axis = ...,
    out: None = ...,
    keepdims: _builtins.bool = ...,
    initial: _ArrayLike | None = ...,
    where: _ArrayLike | None = ...,
) -> _Array: ...
def mod(x1: _ArrayLike, x2: _ArrayLike, /) -> _Array: ...
def modf(x: _ArrayLike, /, out: None = ...) -> tuple[_Array, _Array]: ...
def moveaxis(a: _ArrayLike, source: _Axes, destination: _Axes) -> _Array: ...
def multiply(x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...

nan: float

def nan_to_num(
    x: _ArrayLike,
    copy: _builtins.bool = ...,
    nan: _ArrayLike = ...,
    posinf: _ArrayLike | None = ...,
    neginf: _ArrayLike | None = ...,
) -> _Array: ...
def nanargmax(
    a: _ArrayLike, axis: int | None = ..., out: None = ..., keepdims: _builtins.bool | None = ...
) -> _Array: ...
def nanargmin(
    a: _ArrayLike, axis: int | None = ..., out: None = ..., keepdims: _builtins.bool | None = ...
) -> _Array: ...
def nancumprod(
    a: _ArrayLike, axis: int | None = ..., dtype: _DTypeLike | None = ..., out: None = ...
) -> _Array: ...
def nancumsum(
    a: _ArrayLike, axis: int | None = ..., dtype: _DTypeLike | None = ..., out: None = ...
) -> _Array: ...
def nanmax(
    a: _ArrayLike,
    axis: _Axis = ...,
    out: None = ...,
    keepdims: _builtins.bool = ...,
    initial: _ArrayLike | None = ...,
    where: _ArrayLike | None = ...,
) -> _Array: ...
def nanmean(
    a: _ArrayLike,
    axis: _Axis = ...,
    dtype: _DTypeLike | None = ...,
    out: None = ...,
    keepdims: _builtins.bool = ...,
    where: _ArrayLike | None = ...,
) -> _Array: ...
def nanmedian(
    a: _ArrayLike,
    axis: _Axis = ...,
    out: None = ...,
    overwrite_input: _builtins.bool = ...,
    keepdims: _builtins.bool = ...,
) -> _Array: ...
def nanmin(
    a: _ArrayLike,
    axis: _Axis = ...,
    out: None = ...,
    keepdims: _builtins.bool = ...,
    initial: _ArrayLike | None = ...,
    where: _ArrayLike | None = ...,
) -> _Array: ...
def nanpercentile(
    a: _ArrayLike,
    q: _ArrayLike,
    axis: _Axis = ...,
    out: None = ...,
    overwrite_input: _builtins.bool = ...,
    method: str = ...,
    keepdims: _builtins.bool = ...,
    *,
    weights: _ArrayLike | None = ...,
) -> _Array: ...
def nanprod(
    a: _ArrayLike,
    axis: _Axis = ...,
    dtype: _DTypeLike | None = ...,
    out: None = ...,
    keepdims: _builtins.bool = ...,
    initial: _ArrayLike | None = ...,
    where: _ArrayLike | None = ...,
) -> _Array: ...
def nanquantile(
    a: _ArrayLike,
    q: _ArrayLike,
    axis: _Axis = ...,
    out: None = ...,
    overwrite_input: _builtins.bool = ...,
    method: str = ...,
    keepdims: _builtins.bool = ...,
    *,
    weights: _ArrayLike | None = ...,
) -> _Array: ...
def nanstd(
    a: _ArrayLike,
    axis: _Axis = ...,
    dtype: _DTypeLike | None = ...,
    out: None = ...,
    ddof: int = ...,
    keepdims: _builtins.bool = ...,
    where: _ArrayLike | None = ...,
    mean: _ArrayLike | None = ...,
) -> _Array: ...
def nansum(
    a: _ArrayLike,
    axis: _Axis = ...,
    dtype: _DTypeLike | None = ...,
    out: None = ...,
    keepdims: _builtins.bool = ...,
    initial: _ArrayLike | None = ...,
    where: _ArrayLike | None = ...,
) -> _Array: ...
def nanvar(
    a: _ArrayLike,
    axis: _Axis = ...,
    dtype: _DTypeLike | None = ...,
    out: None = ...,
    ddof: int = ...,
    keepdims: _builtins.bool = ...,
    where: _ArrayLike | None = ...,
    mean: _ArrayLike | None = ...,
) -> _Array: ...

from weft.xla.array import Array as ndarray

def ndim(a: _Any) -> int: ...
def negative(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...

from weft.numpy.scalars import newaxis as newaxis

def nextafter(x: _ArrayLike, y: _ArrayLike, /) -> _Array: ...
def nonzero(
    a: _ArrayLike, *, size: int | None = ..., fill_value: _ArrayLike | None = ...
) -> tuple[_Array, ...]: ...
def not_equal(x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...

from numpy import number as number
from numpy import object_ as object_
from weft.numpy.grids import ogrid as ogrid

def ones(
    shape: _Shape,
    dtype: _DTypeLike | None = ...,
    *,
    device: _DeviceLike = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def ones_like(
    a: _ArrayLike,
    dtype: _DTypeLike | None = ...,
    shape: _Shape | None = ...,
    *,
    device: _DeviceLike = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def outer(a: _ArrayLike, b: _ArrayLike, out: None = ...) -> _Array: ...
def packbits(a: _ArrayLike, axis: int | None = ..., bitorder: str = ...) -> _Array: ...
def pad(
    array: _ArrayLike,
    pad_width: _ArrayLike | _Sequence[_Any],
    mode: str | _Callable[..., _Any] = ...,
    **kwargs: _Any,
) -> _Array: ...
def partition(a: _ArrayLike, kth: int, axis: int = ...) -> _Array: ...
def percentile(
    a: _ArrayLike,
    q: _ArrayLike,
    axis: _Axis = ...,
    out: None = ...,
    overwrite_input: _builtins.bool = ...,
    method: str = ...,
    keepdims: _builtins.bool = ...,
    *,
    weights: _ArrayLike | None = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def permute_dims(a: _ArrayLike, /, axes: _Sequence[int]) -> _Array: ...

pi: float

def piecewise(
    x: _ArrayLike,
    condlist: _ArrayLike | _Sequence[_ArrayLike],
    funclist: _Sequence[_Any],
    *args: _Any,
    **kw: _Any,
) -> _Array: ...
def place(
    arr: _ArrayLike, mask: _ArrayLike, vals: _ArrayLike, *, inplace: _builtins.bool = ...
) -> _Array: ...
def poly(seq_of_zeros: _ArrayLike) -> _Array: ...
def polyadd(a1: _ArrayLike, a2: _ArrayLike) -> _Array: ...
def polyder(p: _ArrayLike, m: int = ...) -> _Array: ...
def polydiv(
    u: _ArrayLike, v: _ArrayLike, *, trim_leading_zeros: _builtins.bool = ...
) -> tuple[_Array, _Array]: ...
def polyfit(
    x: _ArrayLike,
    y: _ArrayLike,
    deg: int,
    rcond: float | None = ...,
    full: _builtins.bool = ...,
    w: _ArrayLike | None = ...,
    cov: _builtins.bool | str = ...,
) -> _Any: ...
def polyint(p: _ArrayLike, m: int = ..., k: _ArrayLike | None = ...) -> _Array: ...
def polymul(
    a1: _ArrayLike, a2: _ArrayLike, *, trim_leading_zeros: _builtins.bool = ...
) -> _Array: ...
def polysub(a1: _ArrayLike, a2: _ArrayLike) -> _Array: ...
def polyval(p: _ArrayLike, x: _ArrayLike, *, unroll: int = ...) -> _Array: ...
def positive(x: _ArrayLike, /) -> _Array: ...
def pow(x1: _ArrayLike, x2: _ArrayLike, /) -> _Array: ...
def power(x1: _ArrayLike, x2: _ArrayLike, /) -> _Array: ...

from weft.numpy.scalars import printoptions as printoptions

def prod(
    a: _ArrayLike,
    axis: _Axis = ...,
    dtype: _DTypeLike | None = ...,
    out: None = ...,
    keepdims: _builtins.bool = ...,
    initial: _ArrayLike | None = ...,
    where: _ArrayLike | None = ...,
    promote_integers: _builtins.bool = ...,
) -> _Array: ...
def promote_types(a: _DTypeLike, b: _DTypeLike) -> _np.dtype: ...
def ptp(
    a: _ArrayLike, axis: _Axis = ..., out: None = ..., keepdims: _builtins.bool = ...
) -> _Array: ...
def put(
    a: _ArrayLike,
    ind: _ArrayLike,
    v: _ArrayLike,
    mode: str | None = ...,
    *,
    inplace: _builtins.bool = ...,
) -> _Array: ...
def put_along_axis(
    arr: _ArrayLike,
    indices: _ArrayLike,
    values: _ArrayLike,
    axis: int | None,
    inplace: _builtins.bool = ...,
    *,
    mode: str | None = ...,
) -> _Array: ...
def quantile(
    a: _ArrayLike,
    q: _ArrayLike,
    axis: _Axis = ...,
    out: None = ...,
    overwrite_input: _builtins.bool = ...,
    method: str = ...,
    keepdims: _builtins.bool = ...,
    *,
    weights: _ArrayLike | None = ...,
) -> _Array: ...

from weft.numpy.grids import r_ as r_

def rad2deg(x: _ArrayLike, /) -> _Array: ...
def radians(x: _ArrayLike, /) -> _Array: ...
def ravel(a: _ArrayLike, order: str = ..., *, out_sharding: _ShardingLike = ...) -> _Array: ...
def ravel_multi_index(
    multi_index: _Sequence[_Any],
    dims: _Sequence[int],
    mode: str | _Sequence[str] = ...,
    order: str = ...,
    *,
    dtype: _DTypeLike | None = ...,
) -> _Array: ...
def real(val: _ArrayLike, /) -> _Array: ...
def reciprocal(x: _ArrayLike, /) -> _Array: ...
def remainder(x1: _ArrayLike, x2: _ArrayLike, /) -> _Array: ...
def repeat(
    a: _ArrayLike,
    repeats: _ArrayLike,
    axis: int | None = ...,
    *,
    total_repeat_length: int | None = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def reshape(
    a: _ArrayLike,
    shape: _Shape,
    order: str = ...,
    *,
    copy: _builtins.bool | None = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def resize(a: _ArrayLike, new_shape: _Shape) -> _Array: ...
def result_type(*args: _Any, return_weak_type_flag: _builtins.bool = ...) -> _Any: ...
def right_shift(x1: _ArrayLike, x2: _ArrayLike, /) -> _Array: ...
def rint(x: _ArrayLike, /) -> _Array: ...
def roll(a: _ArrayLike, shift: _ArrayLike, axis: _Axes | None = ...) -> _Array: ...
def rollaxis(a: _ArrayLike, axis: int, start: int = ...) -> _Array: ...
def roots(p: _ArrayLike, *, strip_zeros: _builtins.bool = ...) -> _Array: ...
def rot90(m: _ArrayLike, k: int = ..., axes: tuple[int, int] = ...) -> _Array: ...
def round(a: _ArrayLike, decimals: int = ..., out: None = ...) -> _Array: ...

from weft.numpy.grids import s_ as s_

def save(file: _Any, arr: _ArrayLike, allow_pickle: _builtins.bool = ...) -> None: ...
def savez(
    file: _Any, *args: _ArrayLike, allow_pickle: _builtins.bool = ..., **kwds: _ArrayLike
) -> None: ...
def searchsorted(
    a: _ArrayLike,
    v: _ArrayLike,
    side: str = ...,
    sorter: _ArrayLike | None = ...,
    *,
    method: str = ...,
) -> _Array: ...
def select(
    condlist: _Sequence[_Any], choicelist: _Sequence[_Any], default: _ArrayLike = ...
) -> _Array: ...

from weft.numpy.scalars import set_printoptions as set_printoptions

def setdiff1d(
    ar1: _ArrayLike,
    ar2: _ArrayLike,
    assume_unique: _builtins.bool = ...,
    *,
    size: int | None = ...,
    fill_value: _ArrayLike | None = ...,
) -> _Array: ...
def setxor1d(
    ar1: _ArrayLike,
    ar2: _ArrayLike,
    assume_unique: _builtins.bool = ...,
    *,
    size: int | None = ...,
    fill_value: _ArrayLike | None = ...,
) -> _Array: ...
def shape(a: _Any) -> tuple[int, ...]: ...
def sign(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def signbit(x: _ArrayLike, /) -> _Array: ...

from numpy import signedinteger as signedinteger

def sin(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def sinc(x: _ArrayLike, /) -> _Array: ...

single: _ScalarType

def sinh(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def size(a: _Any, axis: int | _Sequence[int] | None = ...) -> int: ...
def sort(
    a: _ArrayLike,
    axis: int | None = ...,
    *,
    kind: None = ...,
    order: None = ...,
    stable: _builtins.bool = ...,
    descending: _builtins.bool = ...,
) -> _Array: ...
def sort_complex(a: _ArrayLike) -> _Array: ...
def spacing(x: _ArrayLike, /) -> _Array: ...
def split(
    ary: _ArrayLike, indices_or_sections: int | _Sequence[int] | _ArrayLike, axis: int = ...
) -> list[_Array]: ...
def sqrt(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def square(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def squeeze(a: _ArrayLike, axis: _Axes | None = ...) -> _Array: ...
def stack(
    arrays: _ArrayLike | _Sequence[_ArrayLike],
    axis: int = ...,
    out: None = ...,
    dtype: _DTypeLike | None = ...,
) -> _Array: ...
def std(
    a: _ArrayLike,
    axis: _Axis = ...,
    dtype: _DTypeLike | None = ...,
    out: None = ...,
    ddof: int = ...,
    keepdims: _builtins.bool = ...,
    *,
    where: _ArrayLike | None = ...,
    mean: _ArrayLike | None = ...,
    correction: float | None = ...,
) -> _Array: ...
def subtract(x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def sum(
    a: _ArrayLike,
    axis: _Axis = ...,
    dtype: _DTypeLike | None = ...,
    out: None = ...,
    keepdims: _builtins.bool = ...,
    initial: _ArrayLike | None = ...,
    where: _ArrayLike | None = ...,
    promote_integers: _builtins.bool = ...,
) -> _Array: ...
def swapaxes(a: _ArrayLike, axis1: int, axis2: int) -> _Array: ...
def take(
    a: _ArrayLike,
    indices: _ArrayLike,
    axis: int | None = ...,
    out: None = ...,
    mode: str | None = ...,
    unique_indices: _builtins.bool = ...,
    indices_are_sorted: _builtins.bool = ...,
    fill_value: _ArrayLike | None = ...,
) -> _Array: ...
def take_along_axis(
    arr: _ArrayLike,
    indices: _ArrayLike,
    axis: int | None = ...,
    mode: str | _GatherScatterMode | None = ...,
    fill_value: _ArrayLike | None = ...,
    *,
    wrap_negative_indices: _builtins.bool | None = ...,
) -> _Array: ...
def tan(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def tanh(x: _ArrayLike, /, *, out: None = ..., where: None = ...) -> _Array: ...
def tensordot(
    a: _ArrayLike,
    b: _ArrayLike,
    axes: int | _Sequence[int] | _Sequence[_Sequence[int]] = ...,
    *,
    precision: _PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def tile(A: _ArrayLike, reps: _ArrayLike | _Sequence[int]) -> _Array: ...
def top_k(
    x: _ArrayLike, k: int, /, *, axis: int = ..., mode: str = ..., sorted: _builtins.bool = ...
) -> tuple[_Array, _Array]: ...
def trace(
    a: _ArrayLike,
    offset: int = ...,
    axis1: int = ...,
    axis2: int = ...,
    dtype: _DTypeLike | None = ...,
    out: None = ...,
) -> _Array: ...
def transpose(a: _ArrayLike, axes: _Sequence[int] | None = ...) -> _Array: ...
def trapezoid(
    y: _ArrayLike, x: _ArrayLike | None = ..., dx: _ArrayLike = ..., axis: int = ...
) -> _Array: ...
def tri(N: int, M: int | None = ..., k: int = ..., dtype: _DTypeLike | None = ...) -> _Array: ...
def tril(m: _ArrayLike, k: int = ...) -> _Array: ...
def tril_indices(n: int, k: int = ..., m: int | None = ...) -> tuple[_Array, _Array]: ...
def tril_indices_from(arr: _ArrayLike, k: int = ...) -> tuple[_Array, _Array]: ...
def trim_zeros(
    filt: _ArrayLike, trim: str = ..., axis: int | _Sequence[int] | None = ...
) -> _Array: ...
def triu(m: _ArrayLike, k: int = ...) -> _Array: ...
def triu_indices(n: int, k: int = ..., m: int | None = ...) -> tuple[_Array, _Array]: ...
def triu_indices_from(arr: _ArrayLike, k: int = ...) -> tuple[_Array, _Array]: ...
def true_divide(
    x: _ArrayLike, y: _ArrayLike, /, *, out: None = ..., where: None = ...
) -> _Array: ...
def trunc(x: _ArrayLike) -> _Array: ...

from weft.numpy.ufunc_objects import ufunc as ufunc

uint: _ScalarType
uint1: _ScalarType
uint16: _ScalarType
uint2: _ScalarType
uint32: _ScalarType
uint4: _ScalarType
uint64: _ScalarType
uint8: _ScalarType

def union1d(
    ar1: _ArrayLike, ar2: _ArrayLike, *, size: int | None = ..., fill_value: _ArrayLike | None = ...
) -> _Array: ...
@overload
def unique(
    ar: _ArrayLike,
    return_index: Literal[False] = ...,
    return_inverse: Literal[False] = ...,
    return_counts: Literal[False] = ...,
    axis: int | None = ...,
    *,
    equal_nan: _builtins.bool = ...,
    size: int | None = ...,
    fill_value: _ArrayLike | None = ...,
    sorted: _builtins.bool = ...,
) -> _Array: ...
@overload
def unique(
    ar: _ArrayLike,
    return_index: _builtins.bool = ...,
    return_inverse: _builtins.bool = ...,
    return_counts: _builtins.bool = ...,
    axis: int | None = ...,
    *,
    equal_nan: _builtins.bool = ...,
    size: int | None = ...,
    fill_value: _ArrayLike | None = ...,
    sorted: _builtins.bool = ...,
) -> tuple[_Array, ...]: ...
def unique_all(
    x: _ArrayLike, /, *, size: int | None = ..., fill_value: _ArrayLike | None = ...
) -> _UniqueAll: ...
def unique_counts(
    x: _ArrayLike, /, *, size: int | None = ..., fill_value: _ArrayLike | None = ...
) -> _UniqueCounts: ...
def unique_inverse(
    x: _ArrayLike, /, *, size: int | None = ..., fill_value: _ArrayLike | None = ...
) -> _UniqueInverse: ...
def unique_values(
    x: _ArrayLike, /, *, size: int | None = ..., fill_value: _ArrayLike | None = ...
) -> _Array: ...
def unpackbits(
    a: _ArrayLike, axis: int | None = ..., count: int | None = ..., bitorder: str = ...
) -> _Array: ...
def unravel_index(indices: _ArrayLike, shape: _Shape) -> tuple[_Array, ...]: ...

from numpy import unsignedinteger as unsignedinteger

def unstack(x: _ArrayLike, /, *, axis: int = ...) -> tuple[_Array, ...]: ...
def unwrap(
    p: _ArrayLike, discont: _ArrayLike | None = ..., axis: int = ..., period: _ArrayLike = ...
) -> _Array: ...
def vander(x: _ArrayLike, N: int | None = ..., increasing: _builtins.bool = ...) -> _Array: ...
def var(
    a: _ArrayLike,
    axis: _Axis = ...,
    dtype: _DTypeLike | None = ...,
    out: None = ...,
    ddof: int = ...,
    keepdims: _builtins.bool = ...,
    *,
    where: _ArrayLike | None = ...,
    mean: _ArrayLike | None = ...,
    correction: float | None = ...,
) -> _Array: ...
def vdot(
    a: _ArrayLike,
    b: _ArrayLike,
    *,
    precision: _PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
) -> _Array: ...
def vecdot(
    x1: _ArrayLike,
    x2: _ArrayLike,
    /,
    *,
    axis: int = ...,
    precision: _PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
) -> _Array: ...
def vecmat(x1: _ArrayLike, x2: _ArrayLike, /) -> _Array: ...
def vectorize(
    pyfunc: _Callable[..., _Any],
    *,
    excluded: _Collection[int | str] = ...,
    signature: str | None = ...,
) -> _Callable[..., _Any]: ...
def vsplit(
    ary: _ArrayLike, indices_or_sections: int | _Sequence[int] | _ArrayLike
) -> list[_Array]: ...
def vstack(tup: _ArrayLike | _Sequence[_ArrayLike], dtype: _DTypeLike | None = ...) -> _Array: ...
def where(
    condition: _ArrayLike,
    x: _ArrayLike | None = ...,
    y: _ArrayLike | None = ...,
    /,
    *,
    size: int | None = ...,
    fill_value: _ArrayLike | None = ...,
) -> _Array: ...
def zeros(
    shape: _Shape,
    dtype: _DTypeLike | None = ...,
    *,
    device: _DeviceLike = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def zeros_like(
    a: _ArrayLike,
    dtype: _DTypeLike | None = ...,
    shape: _Shape | None = ...,
    *,
    device: _DeviceLike = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
