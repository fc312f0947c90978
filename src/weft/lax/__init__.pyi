"""Written by tools/make_stubs.py; do not edit."""

_C = TypeVar("_C")
_R = TypeVar("_R")
_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")
_X = TypeVar("_X")
_Y = TypeVar("_Y")
from collections.abc import Callable as _Callable
from collections.abc import Callable, Sequence
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
from weft.api.collectives import AxisIndexGroups as _AxisIndexGroups
from weft.api.collectives import AxisName as _AxisName
from weft.dtypes import DTypeLike as _DTypeLike
from weft.primitives.conv import ConvDimensionNumbers as _ConvDimensionNumbers
from weft.primitives.conv import (
    ConvGeneralDilatedDimensionNumbers as _ConvGeneralDilatedDimensionNumbers,
)
from weft.primitives.conv import Padding as _Padding
from weft.primitives.dot import DotDimensionNumbers as _DotDimensionNumbers
from weft.primitives.dot import PrecisionLike as _PrecisionLike
from weft.primitives.dot import RaggedDotDimensionNumbers as _RaggedDotDimensionNumbers
from weft.primitives.elementwise import RoundingMethod as _RoundingMethod
from weft.primitives.fft import FftType as _FftType
from weft.primitives.indexing import GatherDimensionNumbers as _GatherDimensionNumbers
from weft.primitives.indexing import GatherScatterMode as _GatherScatterMode
from weft.primitives.indexing import ScatterDimensionNumbers as _ScatterDimensionNumbers
from weft.primitives.random import RngBitGenerator as _RngBitGenerator
from weft.primitives.random import RngUniform as _RngUniform
from weft.primitives.sort import Operands as _Operands
from weft.primitives.tokens import AfterAll as _AfterAll
from weft.primitives.tokens import CreateToken as _CreateToken
from weft.primitives.tokens import OptimizationBarrier as _OptimizationBarrier
from weft.primitives.tokens import Value as _Value
from weft.primitives.transcendental import AccuracyMode as _AccuracyMode
from weft.primitives.transcendental import Tolerance as _Tolerance
from weft.xla.array import Array as _Array
from weft.xla.typing import ArrayLike as _ArrayLike
from weft.xla.typing import ShardingLike as _ShardingLike
import builtins as _builtins
import weft.primitives.dot as _dot

from weft.primitives.transcendental import AccuracyMode as AccuracyMode
from weft.primitives.conv import ConvDimensionNumbers as ConvDimensionNumbers
from weft.primitives.conv import (
    ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers,
)
from weft.primitives.dot import DotAlgorithm as DotAlgorithm
from weft.primitives.dot import DotAlgorithmPreset as DotAlgorithmPreset
from weft.primitives.dot import DotDimensionNumbers as DotDimensionNumbers
from weft.primitives.fft import FftType as FftType
from weft.primitives.indexing import GatherDimensionNumbers as GatherDimensionNumbers
from weft.primitives.indexing import GatherScatterMode as GatherScatterMode
from weft.primitives.dot import Precision as Precision
from weft.primitives.dot import PrecisionLike as PrecisionLike
from weft.primitives.dot import RaggedDotDimensionNumbers as RaggedDotDimensionNumbers
from weft.primitives.random import RandomAlgorithm as RandomAlgorithm
from weft.primitives.elementwise import RoundingMethod as RoundingMethod
from weft.primitives.indexing import ScatterDimensionNumbers as ScatterDimensionNumbers
from weft.primitives.transcendental import Tolerance as Tolerance

def abs(x: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import abs_p as abs_p

def acos(x: _ArrayLike) -> _Array: ...

from weft.primitives.transcendental import acos_p as acos_p

def acosh(x: _ArrayLike) -> _Array: ...

from weft.primitives.transcendental import acosh_p as acosh_p

def add(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import add_p as add_p

def after_all(*operands: _Any) -> _Any: ...

after_all_p: _AfterAll
from weft.api.collectives import all_gather as all_gather
from weft.primitives.collective import all_gather_p as all_gather_p
from weft.api.collectives import all_to_all as all_to_all
from weft.primitives.collective import all_to_all_p as all_to_all_p
from weft.primitives.elementwise import and_p as and_p

def approx_max_k(
    operand: _ArrayLike,
    k: int,
    reduction_dimension: int = ...,
    recall_target: float = ...,
    reduction_input_size_override: int = ...,
    aggregate_to_topk: bool = ...,
) -> tuple[_Array, _Array]: ...
def approx_min_k(
    operand: _ArrayLike,
    k: int,
    reduction_dimension: int = ...,
    recall_target: float = ...,
    reduction_input_size_override: int = ...,
    aggregate_to_topk: bool = ...,
) -> tuple[_Array, _Array]: ...

from weft.primitives.sort import approx_top_k_p as approx_top_k_p

def argmax(operand: _ArrayLike, axis: int, index_dtype: _DTypeLike) -> _Array: ...

from weft.primitives.reduction import argmax_p as argmax_p

def argmin(operand: _ArrayLike, axis: int, index_dtype: _DTypeLike) -> _Array: ...

from weft.primitives.reduction import argmin_p as argmin_p

def asin(x: _ArrayLike) -> _Array: ...

from weft.primitives.transcendental import asin_p as asin_p

def asinh(x: _ArrayLike) -> _Array: ...

from weft.primitives.transcendental import asinh_p as asinh_p

def associative_scan(
    fn: Callable[[_X, _X], _X], elems: _X, reverse: bool = ..., axis: int = ...
) -> _X: ...
def atan(x: _ArrayLike) -> _Array: ...
def atan2(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.transcendental import atan2_p as atan2_p
from weft.primitives.transcendental import atan_p as atan_p

def atanh(x: _ArrayLike) -> _Array: ...

from weft.primitives.transcendental import atanh_p as atanh_p

def axis_index(axis_name: Any) -> _Array: ...

from weft.primitives.collective import axis_index_p as axis_index_p
from weft.api.collectives import axis_size as axis_size

def batch_matmul(lhs: _ArrayLike, rhs: _ArrayLike, precision: _PrecisionLike = ...) -> _Array: ...
def bessel_i0e(x: _ArrayLike) -> _Array: ...

from weft.primitives.special.functions import bessel_i0e_p as bessel_i0e_p

def bessel_i1e(x: _ArrayLike) -> _Array: ...

from weft.primitives.special.functions import bessel_i1e_p as bessel_i1e_p

def betainc(a: _ArrayLike, b: _ArrayLike, x: _ArrayLike) -> _Array: ...
def bitcast_convert_type(operand: _ArrayLike, new_dtype: _DTypeLike) -> _Array: ...

from weft.primitives.bits import bitcast_convert_type_p as bitcast_convert_type_p

def bitwise_and(x: _ArrayLike, y: _ArrayLike) -> _Array: ...
def bitwise_not(x: _ArrayLike) -> _Array: ...
def bitwise_or(x: _ArrayLike, y: _ArrayLike) -> _Array: ...
def bitwise_xor(x: _ArrayLike, y: _ArrayLike) -> _Array: ...
def broadcast(
    operand: _ArrayLike, sizes: _Sequence[int], *, out_sharding: _Any = ...
) -> _Array: ...
def broadcast_in_dim(
    operand: _ArrayLike,
    shape: _Sequence[int],
    broadcast_dimensions: _Sequence[int],
    *,
    out_sharding: _Any = ...,
) -> _Array: ...

from weft.primitives.layout import broadcast_in_dim_p as broadcast_in_dim_p

def broadcast_like(arr: _ArrayLike, like_arr: _ArrayLike) -> _Array: ...
def broadcast_shapes(*shapes: _Sequence[int]) -> tuple[int, ...]: ...
def broadcast_to_rank(x: _ArrayLike, rank: int) -> _Array: ...
def broadcasted_iota(
    dtype: _DTypeLike, shape: _Sequence[int], dimension: int, *, out_sharding: _Any = ...
) -> _Array: ...
def cbrt(x: _ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = ...) -> _Array: ...

from weft.primitives.transcendental import cbrt_p as cbrt_p

def ceil(x: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import ceil_p as ceil_p

def clamp(min: _ArrayLike, x: _ArrayLike, max: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import clamp_p as clamp_p

def clz(x: _ArrayLike) -> _Array: ...

from weft.primitives.bits import clz_p as clz_p

def collapse(
    operand: _ArrayLike, start_dimension: int, stop_dimension: int | None = ...
) -> _Array: ...
def complex(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import complex_p as complex_p
from weft.api.composite import composite as composite

def concatenate(operands: _Any, dimension: int) -> _Array: ...

from weft.primitives.slicing import concatenate_p as concatenate_p

def cond(
    pred: _ArrayLike,
    true_fun: Callable[[*_Ts], _R],
    false_fun: Callable[[*_Ts], _R],
    *operands: *_Ts,
    operand: Any = ...,
    linear: Any = ...,
) -> _R: ...

from weft.control.cond import cond_p as cond_p

def conj(x: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import conj_p as conj_p

def conv(
    lhs: _ArrayLike,
    rhs: _ArrayLike,
    window_strides: _Sequence[int],
    padding: str,
    precision: _dot.PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
) -> _Array: ...
def conv_dimension_numbers(
    lhs_shape: _Sequence[int], rhs_shape: _Sequence[int], dimension_numbers: _Any
) -> _ConvDimensionNumbers: ...
def conv_general_dilated(
    lhs: _ArrayLike,
    rhs: _ArrayLike,
    window_strides: _Sequence[int],
    padding: _Padding,
    lhs_dilation: _Sequence[int] | None = ...,
    rhs_dilation: _Sequence[int] | None = ...,
    dimension_numbers: _ConvGeneralDilatedDimensionNumbers = ...,
    feature_group_count: int = ...,
    batch_group_count: int = ...,
    precision: _dot.PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
    out_sharding: _Any = ...,
) -> _Array: ...
def conv_general_dilated_local(
    lhs: _ArrayLike,
    rhs: _ArrayLike,
    window_strides: _Sequence[int],
    padding: _Padding,
    filter_shape: _Sequence[int],
    lhs_dilation: _Sequence[int] | None = ...,
    rhs_dilation: _Sequence[int] | None = ...,
    dimension_numbers: _ConvGeneralDilatedDimensionNumbers = ...,
    precision: _dot.PrecisionLike = ...,
) -> _Array: ...

from weft.primitives.conv import conv_general_dilated_p as conv_general_dilated_p

def conv_general_dilated_patches(
    lhs: _ArrayLike,
    filter_shape: _Sequence[int],
    window_strides: _Sequence[int],
    padding: _Padding,
    lhs_dilation: _Sequence[int] | None = ...,
    rhs_dilation: _Sequence[int] | None = ...,
    dimension_numbers: _ConvGeneralDilatedDimensionNumbers = ...,
    precision: _dot.PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
) -> _Array: ...
def conv_general_permutations(dimension_numbers: _Sequence[str]) -> tuple[tuple[int, ...], ...]: ...
def conv_general_shape_tuple(
    lhs_shape: _Sequence[int],
    rhs_shape: _Sequence[int],
    window_strides: _Sequence[int],
    padding: _Padding,
    dimension_numbers: _Any,
) -> tuple[int, ...]: ...
def conv_shape_tuple(
    lhs_shape: _Sequence[int],
    rhs_shape: _Sequence[int],
    strides: _Sequence[int],
    pads: _Padding,
    batch_group_count: int = ...,
) -> tuple[int, ...]: ...
def conv_transpose(
    lhs: _ArrayLike,
    rhs: _ArrayLike,
    strides: _Sequence[int],
    padding: _Padding,
    rhs_dilation: _Sequence[int] | None = ...,
    dimension_numbers: _ConvGeneralDilatedDimensionNumbers = ...,
    transpose_kernel: bool = ...,
    precision: _dot.PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
    use_consistent_padding: bool = ...,
) -> _Array: ...
def conv_transpose_shape_tuple(
    lhs_shape: _Sequence[int],
    rhs_shape: _Sequence[int],
    window_strides: _Sequence[int],
    padding: _Padding,
    dimension_numbers: _Any,
) -> tuple[int, ...]: ...
def conv_with_general_padding(
    lhs: _ArrayLike,
    rhs: _ArrayLike,
    window_strides: _Sequence[int],
    padding: _Padding,
    lhs_dilation: _Sequence[int] | None,
    rhs_dilation: _Sequence[int] | None,
    precision: _dot.PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
) -> _Array: ...
def convert_element_type(operand: _ArrayLike, new_dtype: _DTypeLike) -> _Array: ...

from weft.primitives.layout import convert_element_type_p as convert_element_type_p
from weft.primitives.layout import copy_p as copy_p

def cos(x: _ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = ...) -> _Array: ...

from weft.primitives.transcendental import cos_p as cos_p

def cosh(x: _ArrayLike) -> _Array: ...

from weft.primitives.transcendental import cosh_p as cosh_p

def create_token(_: _Any = ...) -> _Any: ...

create_token_p: _CreateToken

def cumlogsumexp(operand: _ArrayLike, axis: int = ..., reverse: bool = ...) -> _Array: ...

from weft.primitives.cumulative import cumlogsumexp_p as cumlogsumexp_p

def cummax(operand: _ArrayLike, axis: int = ..., reverse: bool = ...) -> _Array: ...

from weft.primitives.cumulative import cummax_p as cummax_p

def cummin(operand: _ArrayLike, axis: int = ..., reverse: bool = ...) -> _Array: ...

from weft.primitives.cumulative import cummin_p as cummin_p

def cumprod(operand: _ArrayLike, axis: int = ..., reverse: bool = ...) -> _Array: ...

from weft.primitives.cumulative import cumprod_p as cumprod_p

def cumsum(operand: _ArrayLike, axis: int = ..., reverse: bool = ...) -> _Array: ...

from weft.primitives.cumulative import cumsum_p as cumsum_p
from weft.api.custom_root import custom_linear_solve as custom_linear_solve

def custom_root(
    f: Callable[[_X], _X],
    initial_guess: _X,
    solve: Callable[..., Any],
    tangent_solve: Callable[..., _X],
    has_aux: bool = ...,
) -> Any: ...
def dce_sink(val: _Any, *, prevent_mlir_dce: bool = ...) -> None: ...

from weft.parallel.constraint import device_put_p as device_put_p

def digamma(x: _ArrayLike) -> _Array: ...

from weft.primitives.special.functions import digamma_p as digamma_p

def div(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import div_p as div_p

def dot(
    lhs: _ArrayLike,
    rhs: _ArrayLike,
    *,
    dimension_numbers: _DotDimensionNumbers | None = ...,
    precision: _PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
    out_sharding: _Any = ...,
) -> _Array: ...
def dot_general(
    lhs: _ArrayLike,
    rhs: _ArrayLike,
    dimension_numbers: _DotDimensionNumbers,
    precision: _PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...

from weft.primitives.dot import dot_general_p as dot_general_p

def dtype(x: _Any) -> _Any: ...
def dynamic_index_in_dim(
    operand: _ArrayLike,
    index: _ArrayLike,
    axis: int = ...,
    keepdims: bool = ...,
    *,
    allow_negative_indices: bool = ...,
) -> _Array: ...
def dynamic_slice(
    operand: _ArrayLike,
    start_indices: _ArrayLike | _Sequence[_ArrayLike],
    slice_sizes: _Sequence[int],
    *,
    allow_negative_indices: bool | _Sequence[bool] = ...,
) -> _Array: ...
def dynamic_slice_in_dim(
    operand: _ArrayLike,
    start_index: _ArrayLike,
    slice_size: int,
    axis: int = ...,
    *,
    allow_negative_indices: bool = ...,
) -> _Array: ...

from weft.primitives.dynamic_slicing import dynamic_slice_p as dynamic_slice_p

def dynamic_update_index_in_dim(
    operand: _ArrayLike,
    update: _ArrayLike,
    index: _ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = ...,
) -> _Array: ...
def dynamic_update_slice(
    operand: _ArrayLike,
    update: _ArrayLike,
    start_indices: _ArrayLike | _Sequence[_ArrayLike],
    *,
    allow_negative_indices: bool | _Sequence[bool] = ...,
) -> _Array: ...
def dynamic_update_slice_in_dim(
    operand: _ArrayLike,
    update: _ArrayLike,
    start_index: _ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = ...,
) -> _Array: ...

from weft.primitives.dynamic_slicing import dynamic_update_slice_p as dynamic_update_slice_p

def empty(
    shape: _Sequence[int], dtype: _DTypeLike | None = ..., *, out_sharding: _Any = ...
) -> _Array: ...
def eq(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import eq_p as eq_p
from weft.primitives.elementwise import eq_to_p as eq_to_p

def erf(x: _ArrayLike) -> _Array: ...
def erf_inv(x: _ArrayLike) -> _Array: ...

from weft.primitives.special.functions import erf_inv_p as erf_inv_p
from weft.primitives.special.functions import erf_p as erf_p

def erfc(x: _ArrayLike) -> _Array: ...

from weft.primitives.special.functions import erfc_p as erfc_p

def exp(x: _ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = ...) -> _Array: ...
def exp2(x: _ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = ...) -> _Array: ...

from weft.primitives.transcendental import exp2_p as exp2_p
from weft.primitives.transcendental import exp_p as exp_p

def expand_dims(array: _ArrayLike, dimensions: _Sequence[int]) -> _Array: ...
def expm1(x: _ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = ...) -> _Array: ...

from weft.primitives.transcendental import expm1_p as expm1_p

def fft(x: _ArrayLike, fft_type: _FftType | str, fft_lengths: _Sequence[int]) -> _Array: ...

from weft.primitives.fft import fft_p as fft_p

def floor(x: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import floor_p as floor_p

@overload
def fori_loop(
    lower: _ArrayLike,
    upper: _ArrayLike,
    body_fun: Callable[[_Array, _Array], _ArrayLike],
    init_val: _builtins.complex,
    *,
    unroll: int | bool | None = ...,
) -> _Array: ...
@overload
def fori_loop(
    lower: _ArrayLike,
    upper: _ArrayLike,
    body_fun: Callable[[_Array, _C], _C],
    init_val: _C,
    *,
    unroll: int | bool | None = ...,
) -> _C: ...
def full(
    shape: _Sequence[int],
    fill_value: _ArrayLike,
    dtype: _DTypeLike | None = ...,
    *,
    sharding: _ShardingLike = ...,
) -> _Array: ...
def full_like(
    x: _ArrayLike,
    fill_value: _ArrayLike,
    dtype: _DTypeLike | None = ...,
    shape: _Sequence[int] | None = ...,
    sharding: _ShardingLike = ...,
) -> _Array: ...
def gather(
    operand: _ArrayLike,
    start_indices: _ArrayLike | _Sequence[_ArrayLike],
    dimension_numbers: _GatherDimensionNumbers,
    slice_sizes: _Sequence[int],
    *,
    unique_indices: bool = ...,
    indices_are_sorted: bool = ...,
    mode: str | _GatherScatterMode | None = ...,
    fill_value: _ArrayLike | None = ...,
) -> _Array: ...

from weft.primitives.indexing import gather_p as gather_p

def ge(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import ge_p as ge_p

def gt(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import gt_p as gt_p

def igamma(a: _ArrayLike, x: _ArrayLike) -> _Array: ...
def igamma_grad_a(a: _ArrayLike, x: _ArrayLike) -> _Array: ...

from weft.primitives.special.functions import igamma_grad_a_p as igamma_grad_a_p
from weft.primitives.special.functions import igamma_p as igamma_p

def igammac(a: _ArrayLike, x: _ArrayLike) -> _Array: ...

from weft.primitives.special.functions import igammac_p as igammac_p

def imag(x: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import imag_p as imag_p

def index_in_dim(
    operand: _ArrayLike, index: int, axis: int = ..., keepdims: bool = ...
) -> _Array: ...
def index_take(src: _Any, idxs: _Sequence[_Any], axes: _Sequence[int]) -> _Array: ...
def integer_pow(x: _ArrayLike, y: int) -> _Array: ...

from weft.primitives.transcendental import integer_pow_p as integer_pow_p

def iota(dtype: _DTypeLike, size: int) -> _Array: ...

from weft.primitives.layout import iota_p as iota_p

def is_finite(x: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import is_finite_p as is_finite_p

def le(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import le_p as le_p
from weft.primitives.elementwise import le_to_p as le_to_p

def lgamma(x: _ArrayLike) -> _Array: ...

from weft.primitives.special.functions import lgamma_p as lgamma_p
from weft.lax import linalg as linalg
from weft.control.linear import linear_solve_p as linear_solve_p

def log(x: _ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = ...) -> _Array: ...
def log1p(x: _ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = ...) -> _Array: ...

from weft.primitives.transcendental import log1p_p as log1p_p

def log2(x: _ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = ...) -> _Array: ...

from weft.primitives.transcendental import log2_p as log2_p
from weft.primitives.transcendental import log_p as log_p

def logistic(x: _ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = ...) -> _Array: ...

from weft.primitives.transcendental import logistic_p as logistic_p

def lt(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import lt_p as lt_p
from weft.primitives.elementwise import lt_to_p as lt_to_p

def map(f: Callable[[_X], _Y], xs: _X, *, batch_size: int | None = ...) -> _Y: ...
def max(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import max_p as max_p

def min(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import min_p as min_p

def mul(x: _ArrayLike, y: _ArrayLike, *, out_dtype: _DTypeLike | None = ...) -> _Array: ...

from weft.primitives.elementwise import mul_p as mul_p

def mulhi(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.bits import mulhi_p as mulhi_p

def ne(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import ne_p as ne_p

def neg(x: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import neg_p as neg_p

def nextafter(x1: _ArrayLike, x2: _ArrayLike) -> _Array: ...

from weft.primitives.bits import nextafter_p as nextafter_p
from weft.primitives.elementwise import not_p as not_p

def one_minus_square(x: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import one_minus_square_p as one_minus_square_p

def optimization_barrier(operand: _Value, /) -> _Value: ...

optimization_barrier_p: _OptimizationBarrier
from weft.primitives.elementwise import or_p as or_p

def pad(
    operand: _ArrayLike, padding_value: _ArrayLike, padding_config: _Sequence[tuple[int, int, int]]
) -> _Array: ...

from weft.primitives.slicing import pad_p as pad_p

def padtype_to_pads(
    in_shape: _Sequence[int],
    window_shape: _Sequence[int],
    window_strides: _Sequence[int],
    padding: str | _Sequence[tuple[int, int]],
) -> list[tuple[int, int]]: ...

from weft.api.collectives import pbroadcast as pbroadcast
from weft.api.collectives import pcast as pcast
from weft.api.cond import platform_dependent as platform_dependent

def pmax(x: _T, axis_name: Any, *, axis_index_groups: Any = ...) -> _T: ...

from weft.primitives.collective import pmax_p as pmax_p

def pmean(x: _T, axis_name: Any, *, axis_index_groups: Any = ...) -> _T: ...
def pmin(x: _T, axis_name: Any, *, axis_index_groups: Any = ...) -> _T: ...

from weft.primitives.collective import pmin_p as pmin_p

def polygamma(m: _ArrayLike, x: _ArrayLike) -> _Array: ...

from weft.primitives.special.functions import polygamma_p as polygamma_p

def polynomial(
    x: _ArrayLike, coeffs: _Sequence[_ArrayLike], *, unroll: int | None = ...
) -> _Array: ...
def population_count(x: _ArrayLike) -> _Array: ...

from weft.primitives.bits import population_count_p as population_count_p

def pow(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.transcendental import pow_p as pow_p

def ppermute(x: _T, axis_name: Any, perm: Sequence[tuple[int, int]]) -> _T: ...

from weft.primitives.collective import ppermute_p as ppermute_p
from weft.api.collectives import precv as precv
from weft.api.collectives import psend as psend
from weft.api.collectives import pshuffle as pshuffle

def psum(x: _T, axis_name: Any, *, axis_index_groups: Any = ...) -> _T: ...

from weft.primitives.collective import psum_p as psum_p
from weft.api.collectives import psum_scatter as psum_scatter
from weft.api.collectives import pswapaxes as pswapaxes
from weft.api.collectives import pvary as pvary

def ragged_all_to_all(
    operand: _Any,
    output: _Any,
    input_offsets: _Any,
    send_sizes: _Any,
    output_offsets: _Any,
    recv_sizes: _Any,
    *,
    axis_name: _AxisName,
    axis_index_groups: _AxisIndexGroups = ...,
) -> _Any: ...
def ragged_dot(
    lhs: _ArrayLike,
    rhs: _ArrayLike,
    group_sizes: _ArrayLike,
    precision: _PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
    group_offset: _ArrayLike | None = ...,
    out_sharding: _Any = ...,
) -> _Array: ...
def ragged_dot_general(
    lhs: _ArrayLike,
    rhs: _ArrayLike,
    group_sizes: _ArrayLike,
    ragged_dot_dimension_numbers: _RaggedDotDimensionNumbers,
    precision: _PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
    group_offset: _ArrayLike | None = ...,
    out_sharding: _Any = ...,
) -> _Array: ...
def random_gamma_grad(x: _ArrayLike, y: _ArrayLike) -> _Array: ...
def real(x: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import real_p as real_p

def reciprocal(x: _ArrayLike) -> _Array: ...
def reduce(
    operands: _Any,
    init_values: _Any,
    computation: _Callable[[_Any, _Any], _Any],
    dimensions: _Sequence[int],
    out_sharding: _Any = ...,
) -> _Any: ...
def reduce_and(operand: _ArrayLike, axes: _Sequence[int]) -> _Array: ...

from weft.primitives.reduction import reduce_and_p as reduce_and_p

def reduce_max(operand: _ArrayLike, axes: _Sequence[int]) -> _Array: ...

from weft.primitives.reduction import reduce_max_p as reduce_max_p

def reduce_min(operand: _ArrayLike, axes: _Sequence[int]) -> _Array: ...

from weft.primitives.reduction import reduce_min_p as reduce_min_p

def reduce_or(operand: _ArrayLike, axes: _Sequence[int]) -> _Array: ...

from weft.primitives.reduction import reduce_or_p as reduce_or_p
from weft.primitives.reduction import reduce_p as reduce_p

def reduce_precision(operand: _ArrayLike, exponent_bits: int, mantissa_bits: int) -> _Array: ...

from weft.primitives.bits import reduce_precision_p as reduce_precision_p

def reduce_prod(operand: _ArrayLike, axes: _Sequence[int]) -> _Array: ...

from weft.primitives.reduction import reduce_prod_p as reduce_prod_p

def reduce_sum(
    operand: _ArrayLike, axes: _Sequence[int], *, out_sharding: _Any = ...
) -> _Array: ...

from weft.primitives.layout import reduce_sum_p as reduce_sum_p

def reduce_window(
    operand: _Any,
    init_value: _Any,
    computation: _Callable[[_Any, _Any], _Any],
    window_dimensions: _Sequence[int],
    window_strides: _Sequence[int] | None = ...,
    padding: str | _Sequence[tuple[int, int]] = ...,
    base_dilation: _Sequence[int] | None = ...,
    window_dilation: _Sequence[int] | None = ...,
) -> _Any: ...

from weft.primitives.window import reduce_window_max_p as reduce_window_max_p
from weft.primitives.window import reduce_window_min_p as reduce_window_min_p
from weft.primitives.window import reduce_window_p as reduce_window_p

def reduce_window_shape_tuple(
    operand_shape: _Sequence[int],
    window_dimensions: _Sequence[int],
    window_strides: _Sequence[int] | None,
    padding: _Sequence[tuple[int, int]],
    base_dilation: _Sequence[int] | None = ...,
    window_dilation: _Sequence[int] | None = ...,
) -> tuple[int, ...]: ...

from weft.primitives.window import reduce_window_sum_p as reduce_window_sum_p

def reduce_xor(operand: _ArrayLike, axes: _Sequence[int]) -> _Array: ...

from weft.primitives.reduction import reduce_xor_p as reduce_xor_p
from weft.primitives.special.functions import (
    regularized_incomplete_beta_p as regularized_incomplete_beta_p,
)

def rem(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import rem_p as rem_p

def reshape(
    operand: _ArrayLike,
    new_sizes: _Sequence[int],
    dimensions: _Sequence[int] | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...

from weft.primitives.layout import reshape_p as reshape_p

def rev(operand: _ArrayLike, dimensions: _Sequence[int]) -> _Array: ...

from weft.primitives.layout import rev_p as rev_p

def rng_bit_generator(
    key: _ArrayLike,
    shape: _Sequence[int],
    dtype: _DTypeLike = ...,
    algorithm: _Any = ...,
    *,
    out_sharding: _Any = ...,
) -> tuple[_Array, _Array]: ...

rng_bit_generator_p: _RngBitGenerator

def rng_uniform(a: _ArrayLike, b: _ArrayLike, shape: _Sequence[int]) -> _Array: ...

rng_uniform_p: _RngUniform

def round(x: _ArrayLike, rounding_method: _RoundingMethod = ...) -> _Array: ...

from weft.primitives.elementwise import round_p as round_p

def rsqrt(x: _ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = ...) -> _Array: ...

from weft.primitives.transcendental import rsqrt_p as rsqrt_p
from weft.api.composite import scaled_dot as scaled_dot

@overload
def scan(
    f: Callable[[_Array, _X], tuple[_ArrayLike, _Y]],
    init: _builtins.complex,
    xs: _X | None = ...,
    length: int | None = ...,
    reverse: bool = ...,
    unroll: int | bool = ...,
    _split_transpose: bool = ...,
) -> tuple[_Array, _Y]: ...
@overload
def scan(
    f: Callable[[_C, _X], tuple[_C, _Y]],
    init: _C,
    xs: _X | None = ...,
    length: int | None = ...,
    reverse: bool = ...,
    unroll: int | bool = ...,
    _split_transpose: bool = ...,
) -> tuple[_C, _Y]: ...

from weft.control.scan import scan_p as scan_p

def scatter(
    operand: _ArrayLike,
    scatter_indices: _ArrayLike,
    updates: _ArrayLike,
    dimension_numbers: _ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = ...,
    unique_indices: bool = ...,
    mode: str | _GatherScatterMode | None = ...,
) -> _Array: ...
def scatter_add(
    operand: _ArrayLike,
    scatter_indices: _ArrayLike,
    updates: _ArrayLike,
    dimension_numbers: _ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = ...,
    unique_indices: bool = ...,
    mode: str | _GatherScatterMode | None = ...,
) -> _Array: ...

from weft.primitives.indexing import scatter_add_p as scatter_add_p

def scatter_apply(
    operand: _ArrayLike,
    scatter_indices: _ArrayLike,
    func: _Callable[[_Any], _Any],
    dimension_numbers: _ScatterDimensionNumbers,
    *,
    update_shape: _Sequence[int] = ...,
    indices_are_sorted: bool = ...,
    unique_indices: bool = ...,
    mode: str | _GatherScatterMode | None = ...,
) -> _Array: ...
def scatter_max(
    operand: _ArrayLike,
    scatter_indices: _ArrayLike,
    updates: _ArrayLike,
    dimension_numbers: _ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = ...,
    unique_indices: bool = ...,
    mode: str | _GatherScatterMode | None = ...,
) -> _Array: ...

from weft.primitives.indexing import scatter_max_p as scatter_max_p

def scatter_min(
    operand: _ArrayLike,
    scatter_indices: _ArrayLike,
    updates: _ArrayLike,
    dimension_numbers: _ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = ...,
    unique_indices: bool = ...,
    mode: str | _GatherScatterMode | None = ...,
) -> _Array: ...

from weft.primitives.indexing import scatter_min_p as scatter_min_p

def scatter_mul(
    operand: _ArrayLike,
    scatter_indices: _ArrayLike,
    updates: _ArrayLike,
    dimension_numbers: _ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = ...,
    unique_indices: bool = ...,
    mode: str | _GatherScatterMode | None = ...,
) -> _Array: ...

from weft.primitives.indexing import scatter_mul_p as scatter_mul_p
from weft.primitives.indexing import scatter_p as scatter_p

def scatter_sub(
    operand: _ArrayLike,
    scatter_indices: _ArrayLike,
    updates: _ArrayLike,
    dimension_numbers: _ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = ...,
    unique_indices: bool = ...,
    mode: str | _GatherScatterMode | None = ...,
) -> _Array: ...

from weft.primitives.indexing import scatter_sub_p as scatter_sub_p

def select(pred: _ArrayLike, on_true: _ArrayLike, on_false: _ArrayLike) -> _Array: ...

from weft.primitives.window import select_and_gather_add_p as select_and_gather_add_p
from weft.primitives.window import select_and_scatter_add_p as select_and_scatter_add_p
from weft.primitives.window import select_and_scatter_p as select_and_scatter_p

def select_n(which: _ArrayLike, *cases: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import select_n_p as select_n_p

def shape_as_value(shape: _Sequence[int]) -> _Array: ...

from weft.parallel.constraint import sharding_constraint_p as sharding_constraint_p

def shift_left(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.bits import shift_left_p as shift_left_p

def shift_right_arithmetic(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.bits import shift_right_arithmetic_p as shift_right_arithmetic_p

def shift_right_logical(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.bits import shift_right_logical_p as shift_right_logical_p

def sign(x: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import sign_p as sign_p

def sin(x: _ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = ...) -> _Array: ...

from weft.primitives.transcendental import sin_p as sin_p

def sinh(x: _ArrayLike) -> _Array: ...

from weft.primitives.transcendental import sinh_p as sinh_p

def slice(
    operand: _ArrayLike,
    start_indices: _Sequence[int],
    limit_indices: _Sequence[int],
    strides: _Sequence[int] | None = ...,
) -> _Array: ...
def slice_in_dim(
    operand: _ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = ...,
    axis: int = ...,
) -> _Array: ...

from weft.primitives.slicing import slice_p as slice_p

def sort(
    operand: _Operands, dimension: int = ..., is_stable: bool = ..., num_keys: int = ...
) -> _Operands: ...
def sort_key_val(
    keys: _ArrayLike, values: _ArrayLike, dimension: int = ..., is_stable: bool = ...
) -> tuple[_Array, _Array]: ...

from weft.primitives.sort import sort_p as sort_p

def split(operand: _ArrayLike, sizes: _Sequence[int], axis: int = ...) -> list[_Array]: ...

from weft.primitives.slicing import split_p as split_p

def sqrt(x: _ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = ...) -> _Array: ...

from weft.primitives.transcendental import sqrt_p as sqrt_p

def square(x: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import square_p as square_p

def squeeze(array: _ArrayLike, dimensions: _Sequence[int]) -> _Array: ...

from weft.primitives.layout import squeeze_p as squeeze_p

def stack(operands: _Sequence[_Any], axis: int = ...) -> _Array: ...

from weft.primitives.slicing import stack_p as stack_p

def stage(x: _Any, /) -> _Any: ...
def stop_gradient(x: _T) -> _T: ...

from weft.primitives.elementwise import stop_gradient_p as stop_gradient_p

def sub(x: _ArrayLike, y: _ArrayLike) -> _Array: ...

from weft.primitives.elementwise import sub_p as sub_p

def switch(
    index: _ArrayLike,
    branches: Sequence[Callable[[*_Ts], _R]],
    *operands: *_Ts,
    operand: Any = ...,
    linear: Any = ...,
) -> _R: ...
def tan(x: _ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = ...) -> _Array: ...

from weft.primitives.transcendental import tan_p as tan_p

def tanh(x: _ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = ...) -> _Array: ...

from weft.primitives.transcendental import tanh_p as tanh_p

def tile(operand: _ArrayLike, reps: _Sequence[int]) -> _Array: ...

from weft.primitives.slicing import tile_p as tile_p

def top_k(
    operand: _ArrayLike, k: int, *, axis: int = ..., is_stable: bool = ...
) -> tuple[_Array, _Array]: ...

from weft.primitives.sort import top_k_p as top_k_p

def transpose(operand: _ArrayLike, permutation: _Sequence[int]) -> _Array: ...

from weft.primitives.layout import transpose_p as transpose_p

def unstack(x: _ArrayLike, axis: int = ...) -> tuple[_Array, ...]: ...

from weft.primitives.slicing import unstack_p as unstack_p

@overload
def while_loop(
    cond_fun: Callable[[_Array], _ArrayLike],
    body_fun: Callable[[_Array], _ArrayLike],
    init_val: _builtins.complex,
    *,
    max_steps: int | None = ...,
    checkpoints: int | None = ...,
) -> _Array: ...
@overload
def while_loop(
    cond_fun: Callable[[_C], _ArrayLike],
    body_fun: Callable[[_C], _C],
    init_val: _C,
    *,
    max_steps: int | None = ...,
    checkpoints: int | None = ...,
) -> _C: ...

from weft.control.loop import while_p as while_p

def with_sharding_constraint(x: _T, shardings: Any) -> _T: ...

from weft.primitives.elementwise import xor_p as xor_p

def zeta(x: _ArrayLike, q: _ArrayLike) -> _Array: ...

from weft.primitives.special.functions import zeta_p as zeta_p
