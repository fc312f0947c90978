"""Written by tools/make_stubs.py; do not edit."""

MYPY = False
_A = TypeVar("_A")
_C = TypeVar("_C")
_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R")
_R_co = TypeVar("_R_co", covariant=True)
_S = TypeVar("_S")
_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")
_U = TypeVar("_U")
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
from typing import Literal as _Literal
from weft.api.jit import Inline
from weft.api.shape_struct import ShapeDtypeStruct as _ShapeDtypeStruct
from weft.api.stages import Lowered, Traced
from weft.core.jaxpr import ClosedJaxpr
from weft.explain import CallableModule as _explain
from weft.mesh.mesh import Mesh
from weft.numpy.index_plans import Slice as _Slice
from weft.sparsity.derivatives import SparseDerivative as _SparseDerivative
from weft.xla.array import Array as _Array
from weft.xla.typing import ArrayLike as _ArrayLike

class _Staged(Protocol[_P, _R_co]):
    """The stages of a jitted function."""

    __name__: str
    __wrapped__: Callable[..., Any]

    def trace(self, *args: _P.args, **kwargs: _P.kwargs) -> Traced: ...
    def lower(self, *args: _P.args, **kwargs: _P.kwargs) -> Lowered: ...
    def eval_shape(self, *args: _P.args, **kwargs: _P.kwargs) -> Any: ...
    def plan(self, *args: _P.args, **kwargs: _P.kwargs) -> Any: ...
    def clear_cache(self) -> None: ...

if MYPY:
    class _Jitted(_Staged[_P, _R_co], Protocol[_P, _R_co]):
        @overload
        def __call__(
            self: _Jitted[[Never], Never], fun: Callable[_Q, _S], /
        ) -> _Jitted[_Q, _S]: ...
        @overload
        def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...

else:
    class _Jitted(_Staged[_P, _R_co], Protocol[_P, _R_co]):
        """A jitted function, and its stages."""

        def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...

from weft.xla.array import Array as Array
from weft.mesh.client import Device as Device
from weft.api.jit import Inline as Inline
from weft.mesh.sharding import NamedSharding as NamedSharding
from weft.mesh.spec import P as P
from weft.core.ref import Ref as Ref
from weft.api.shape_struct import ShapeDtypeStruct as ShapeDtypeStruct
from weft.xla.shards import Shard as Shard
from weft import ad as ad
from weft import ad_checkpoint as ad_checkpoint
from weft.api.contexts import allow_f16_reductions as allow_f16_reductions
from weft import api_util as api_util
from weft.api.contexts import array_garbage_collection_guard as array_garbage_collection_guard
from weft.api.contexts import auto_pcast as auto_pcast

def block_until_ready(x: _T) -> _T: ...

from weft import cache as cache
from weft.api.contexts import check_tracer_leaks as check_tracer_leaks
from weft.api.contexts import checking_leaks as checking_leaks

@overload
def checkpoint(
    fun: Callable[_P, _R],
    *,
    prevent_cse: bool | Sequence[bool] = ...,
    policy: Callable[..., Any] | None = ...,
    budget: int | float | None = ...,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Sequence[str] | None = ...,
    concrete: bool = ...,
) -> Callable[_P, _R]: ...
@overload
def checkpoint(
    fun: None = ...,
    *,
    prevent_cse: bool | Sequence[bool] = ...,
    policy: Callable[..., Any] | None = ...,
    budget: int | float | None = ...,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Sequence[str] | None = ...,
    concrete: bool = ...,
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...

from weft import checkpoint_policies as checkpoint_policies
from weft.api.jit import clear_caches as clear_caches
from weft.api.custom_gradient import closure_convert as closure_convert
from weft.options import config as config
from weft.api.devices import copy_to_host_async as copy_to_host_async
from weft import core as core
from weft import custom_batching as custom_batching
from weft import custom_derivatives as custom_derivatives

def custom_gradient(fun: Callable[_P, tuple[_R, Any]]) -> Callable[_P, _R]: ...

class custom_jvp(Generic[_P, _R]):
    def __init__(
        self,
        fun: Callable[_P, _R],
        nondiff_argnums: int | Sequence[int] = ...,
        nondiff_argnames: str | Sequence[str] = ...,
    ) -> None: ...
    def defjvp(self, jvp: _C, symbolic_zeros: bool = ...) -> _C: ...
    def defjvps(self, *jvps: Callable[..., Any] | None) -> None: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

class custom_vjp(Generic[_P, _R]):
    def __init__(
        self,
        fun: Callable[_P, _R],
        nondiff_argnums: int | Sequence[int] = ...,
        nondiff_argnames: str | Sequence[str] = ...,
    ) -> None: ...
    def defvjp(
        self,
        fwd: Callable[_P, tuple[_R, Any]],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = ...,
        optimize_remat: bool = ...,
    ) -> None: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

from weft import debug as debug
from weft.api.contexts import debug_infs as debug_infs
from weft.api.contexts import debug_key_reuse as debug_key_reuse
from weft.api.contexts import debug_nans as debug_nans
from weft.api.devices import default_backend as default_backend
from weft.api.contexts import default_device as default_device
from weft.api.contexts import default_matmul_precision as default_matmul_precision
from weft.api.contexts import default_prng_impl as default_prng_impl
from weft.api.devices import device_count as device_count
from weft.api.devices import device_get as device_get

def device_put(
    x: _T, device: Any = ..., *, src: Any = ..., donate: bool = ..., may_alias: bool | None = ...
) -> _T: ...

from weft.api.devices import devices as devices
from weft.api.contexts import disable_jit as disable_jit
from weft import distributed as distributed
from weft import dlpack as dlpack

def ds(start: _Any, size: _Any = ..., stride: int | None = ...) -> _Slice | slice: ...

from weft import dtypes as dtypes
from weft.api.callbacks import effects_barrier as effects_barrier

def empty_ref(ty: _Any, memory_space: _Any = ..., pin: bool = ...) -> _Any: ...

from weft.api.contexts import enable_checks as enable_checks
from weft.api.contexts import enable_custom_prng as enable_custom_prng
from weft.api.contexts import enable_x64 as enable_x64
from weft.core.trace import ensure_compile_time_eval as ensure_compile_time_eval
from weft import errors as errors

@overload
def eval_shape(
    fun: Callable[_P, _Array], *args: _P.args, **kwargs: _P.kwargs
) -> _ShapeDtypeStruct: ...
@overload
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any: ...

from weft import example_libraries as example_libraries
from weft import experimental as experimental

explain: _explain
from weft.api.contexts import explain_cache_misses as explain_cache_misses
from weft import export as export
from weft import extend as extend
from weft import ffi as ffi
from weft import flatten_util as flatten_util
from weft.dtypes import float0 as float0

def free_ref(ref: _Any) -> None: ...
def freeze(ref: _Any) -> _Any: ...

from weft.api.grad import fwd_and_bwd as fwd_and_bwd
from weft.mesh.mesh import get_abstract_mesh as get_abstract_mesh
from weft.mesh.mesh import get_mesh as get_mesh

@overload
def grad(
    fun: Callable[Concatenate[_T, _P], _ArrayLike],
    argnums: Literal[0] = ...,
    has_aux: Literal[False] = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
    reduce_axes: Sequence[Any] = ...,
) -> Callable[Concatenate[_T, _P], _T]: ...
@overload
def grad(
    fun: Callable[Concatenate[_T, _P], tuple[_ArrayLike, _A]],
    argnums: Literal[0] = ...,
    *,
    has_aux: Literal[True],
    holomorphic: bool = ...,
    allow_int: bool = ...,
    reduce_axes: Sequence[Any] = ...,
) -> Callable[Concatenate[_T, _P], tuple[_T, _A]]: ...
@overload
def grad(
    fun: Callable[Concatenate[_S, _T, _P], _ArrayLike],
    argnums: Literal[1],
    has_aux: Literal[False] = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
    reduce_axes: Sequence[Any] = ...,
) -> Callable[Concatenate[_S, _T, _P], _T]: ...
@overload
def grad(
    fun: Callable[Concatenate[_T, _P], _ArrayLike],
    argnums: tuple[Literal[0]],
    has_aux: Literal[False] = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
    reduce_axes: Sequence[Any] = ...,
) -> Callable[Concatenate[_T, _P], tuple[_T]]: ...
@overload
def grad(
    fun: Callable[Concatenate[_S, _T, _P], _ArrayLike],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
    reduce_axes: Sequence[Any] = ...,
) -> Callable[Concatenate[_S, _T, _P], tuple[_S, _T]]: ...
@overload
def grad(
    fun: Callable[Concatenate[_S, _T, _U, _P], _ArrayLike],
    argnums: tuple[Literal[0], Literal[1], Literal[2]],
    has_aux: Literal[False] = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
    reduce_axes: Sequence[Any] = ...,
) -> Callable[Concatenate[_S, _T, _U, _P], tuple[_S, _T, _U]]: ...
@overload
def grad(
    fun: Callable[_P, _ArrayLike | tuple[_ArrayLike, Any]],
    argnums: int | Sequence[int] = ...,
    has_aux: bool = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
    reduce_axes: Sequence[Any] = ...,
) -> Callable[_P, Any]: ...
@overload
def hessian(
    fun: Callable[Concatenate[_Array, _P], _Array],
    argnums: Literal[0] = ...,
    has_aux: Literal[False] = ...,
    holomorphic: bool = ...,
) -> Callable[Concatenate[_Array, _P], _Array]: ...
@overload
def hessian(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = ...,
    has_aux: bool = ...,
    holomorphic: bool = ...,
) -> Callable[_P, Any]: ...
def host_count(backend: str | None = ...) -> int: ...
def host_id(backend: str | None = ...) -> int: ...

from weft.api.devices import host_ids as host_ids
from weft import image as image
from weft import interpreters as interpreters

@overload
def jacfwd(
    fun: Callable[Concatenate[_Array, _P], _Array],
    argnums: Literal[0] = ...,
    has_aux: Literal[False] = ...,
    holomorphic: bool = ...,
) -> Callable[Concatenate[_Array, _P], _Array]: ...
@overload
def jacfwd(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = ...,
    has_aux: bool = ...,
    holomorphic: bool = ...,
) -> Callable[_P, Any]: ...

from weft.api.jacobians import jacobian as jacobian

@overload
def jacrev(
    fun: Callable[Concatenate[_Array, _P], _Array],
    argnums: Literal[0] = ...,
    has_aux: Literal[False] = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
) -> Callable[Concatenate[_Array, _P], _Array]: ...
@overload
def jacrev(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = ...,
    has_aux: bool = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
) -> Callable[_P, Any]: ...

from weft.api.contexts import (
    jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions,
)
from weft import jaxpr as jaxpr

if MYPY:
    def jit(
        fun: Callable[_P, _R] = ...,
        *,
        static_argnums: int | Sequence[int] | None = ...,
        static_argnames: str | Sequence[str] | None = ...,
        donate_argnums: int | Sequence[int] | None = ...,
        donate_argnames: str | Sequence[str] | None = ...,
        keep_unused: bool = ...,
        device: Any = ...,
        backend: str | None = ...,
        inline: bool | Inline = ...,
        compiler_options: dict[str, Any] | None = ...,
        in_shardings: Any = ...,
        out_shardings: Any = ...,
        passes: Any = ...,
        sizes: Any = ...,
        buckets: Any = ...,
        memory: str | int | None = ...,
    ) -> _Jitted[_P, _R]: ...
else:
    @overload
    def jit(
        fun: Callable[_P, _R],
        *,
        static_argnums: int | Sequence[int] | None = ...,
        static_argnames: str | Sequence[str] | None = ...,
        donate_argnums: int | Sequence[int] | None = ...,
        donate_argnames: str | Sequence[str] | None = ...,
        keep_unused: bool = ...,
        device: Any = ...,
        backend: str | None = ...,
        inline: bool | Inline = ...,
        compiler_options: dict[str, Any] | None = ...,
        in_shardings: Any = ...,
        out_shardings: Any = ...,
        passes: Any = ...,
        sizes: Any = ...,
        buckets: Any = ...,
        memory: str | int | None = ...,
    ) -> _Jitted[_P, _R]: ...
    @overload
    def jit(
        fun: None = ...,
        *,
        static_argnums: int | Sequence[int] | None = ...,
        static_argnames: str | Sequence[str] | None = ...,
        donate_argnums: int | Sequence[int] | None = ...,
        donate_argnames: str | Sequence[str] | None = ...,
        keep_unused: bool = ...,
        device: Any = ...,
        backend: str | None = ...,
        inline: bool | Inline = ...,
        compiler_options: dict[str, Any] | None = ...,
        in_shardings: Any = ...,
        out_shardings: Any = ...,
        passes: Any = ...,
        sizes: Any = ...,
        buckets: Any = ...,
        memory: str | int | None = ...,
    ) -> Callable[[Callable[_P, _R]], _Jitted[_P, _R]]: ...

def jvp(
    fun: Callable[..., _R], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = ...
) -> tuple[_R, _R]: ...

from weft import lax as lax
from weft.api.contexts import legacy_prng_key as legacy_prng_key
from weft.api.grad import linear_transpose as linear_transpose

def linearize(
    fun: Callable[..., _R], *primals: Any, has_aux: bool = ..., in_nzs: Any = ...
) -> tuple[_R, Callable[..., _R]]: ...

from weft.api.devices import live_arrays as live_arrays
from weft.api.devices import local_device_count as local_device_count
from weft.api.devices import local_devices as local_devices
from weft.api.contexts import log_compiles as log_compiles
from weft.api.arrays import make_array_from_callback as make_array_from_callback
from weft.api.arrays import make_array_from_process_local_data as make_array_from_process_local_data
from weft.api.arrays import (
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
)

def make_jaxpr(
    fun: Callable[_P, Any],
    static_argnums: int | Sequence[int] = ...,
    axis_env: Sequence[tuple[Any, int]] | None = ...,
    return_shape: bool = ...,
) -> Callable[_P, ClosedJaxpr]: ...

from weft.mesh.mesh import make_mesh as make_mesh
from weft.api.contexts import make_user_context as make_user_context
from weft import memory as memory
from weft import monitoring as monitoring

def named_call(fun: Callable[_P, _R], *, name: str | None = ...) -> Callable[_P, _R]: ...

from weft.api.named_scope import named_scope as named_scope

def new_ref(
    init_val: _Any, *, memory_space: _Any = ..., kind: str | None = ..., pin: bool = ...
) -> _Any: ...

from weft import nn as nn
from weft.api.contexts import no_execution as no_execution
from weft.api.contexts import no_tracing as no_tracing
from weft import numpy as numpy
from weft.api.contexts import numpy_dtype_promotion as numpy_dtype_promotion
from weft.api.contexts import numpy_rank_promotion as numpy_rank_promotion
from weft import ops as ops
from weft import passes as passes

def pmap(
    fun: Callable[_P, _R],
    axis_name: Any = ...,
    *,
    in_axes: Any = ...,
    out_axes: Any = ...,
    static_broadcasted_argnums: int | Sequence[int] = ...,
    devices: Sequence[Any] | None = ...,
    backend: str | None = ...,
    axis_size: int | None = ...,
    donate_argnums: int | Sequence[int] = ...,
) -> _Jitted[_P, _R]: ...

from weft.api.environment import print_environment_info as print_environment_info
from weft.api.devices import process_count as process_count
from weft.api.devices import process_index as process_index
from weft.api.devices import process_indices as process_indices
from weft import profiler as profiler
from weft.api.callbacks import pure_callback as pure_callback
from weft import random as random
from weft import ref as ref

remat = checkpoint
from weft.api.contexts import (
    remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
)
from weft.api.shard_map import reshard as reshard
from weft import scipy as scipy
from weft.mesh.mesh import set_mesh as set_mesh

def shard_map(
    f: Callable[_P, _R],
    /,
    *,
    out_specs: Any,
    in_specs: Any = ...,
    mesh: Mesh | None = ...,
    axis_names: Any = ...,
    check_vma: bool = ...,
) -> Callable[_P, _R]: ...

from weft import sharding as sharding
from weft.api.shard_map import smap as smap
from weft.api.contexts import softmax_custom_jvp as softmax_custom_jvp

def sparse_hessian(
    fun: _Callable[..., _Any],
    argnums: int | _Sequence[int] = ...,
    has_aux: bool = ...,
    *,
    format: _Literal["bcoo", "bcsr"] = ...,
    pattern: _Any = ...,
    holomorphic: bool = ...,
    coloring: _Literal["auto", "star", "acyclic"] = ...,
) -> _SparseDerivative: ...
def sparse_jacobian(
    fun: _Callable[..., _Any],
    argnums: int | _Sequence[int] = ...,
    has_aux: bool = ...,
    *,
    mode: _Literal["auto", "forward", "reverse", "both"] = ...,
    format: _Literal["bcoo", "bcsr"] = ...,
    pattern: _Any = ...,
    holomorphic: bool = ...,
) -> _SparseDerivative: ...

from weft import sparsity as sparsity
from weft import stages as stages
from weft import test_util as test_util
from weft.api.contexts import thread_guard as thread_guard
from weft.api.contexts import threefry_partitionable as threefry_partitionable
from weft.api.contexts import transfer_guard as transfer_guard
from weft.api.contexts import transfer_guard_device_to_device as transfer_guard_device_to_device
from weft.api.contexts import transfer_guard_device_to_host as transfer_guard_device_to_host
from weft.api.contexts import transfer_guard_host_to_device as transfer_guard_host_to_device
from weft import tree as tree
from weft import tree_util as tree_util
from weft.api.mutable import typeof as typeof
from weft import typing as typing
from weft.mesh.mesh import use_abstract_mesh as use_abstract_mesh

@overload
def value_and_grad(
    fun: Callable[Concatenate[_T, _P], _R],
    argnums: Literal[0] = ...,
    has_aux: bool = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
    reduce_axes: Sequence[Any] = ...,
) -> Callable[Concatenate[_T, _P], tuple[_R, _T]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[_S, _T, _P], _R],
    argnums: Literal[1],
    has_aux: bool = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
    reduce_axes: Sequence[Any] = ...,
) -> Callable[Concatenate[_S, _T, _P], tuple[_R, _T]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[_T, _P], _R],
    argnums: tuple[Literal[0]],
    has_aux: bool = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
    reduce_axes: Sequence[Any] = ...,
) -> Callable[Concatenate[_T, _P], tuple[_R, tuple[_T]]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[_S, _T, _P], _R],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: bool = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
    reduce_axes: Sequence[Any] = ...,
) -> Callable[Concatenate[_S, _T, _P], tuple[_R, tuple[_S, _T]]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[_S, _T, _U, _P], _R],
    argnums: tuple[Literal[0], Literal[1], Literal[2]],
    has_aux: bool = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
    reduce_axes: Sequence[Any] = ...,
) -> Callable[Concatenate[_S, _T, _U, _P], tuple[_R, tuple[_S, _T, _U]]]: ...
@overload
def value_and_grad(
    fun: Callable[_P, _R],
    argnums: int | Sequence[int] = ...,
    has_aux: bool = ...,
    holomorphic: bool = ...,
    allow_int: bool = ...,
    reduce_axes: Sequence[Any] = ...,
) -> Callable[_P, tuple[_R, Any]]: ...
@overload
def vjp(
    fun: Callable[[*_Ts], _R],
    *primals: *_Ts,
    has_aux: Literal[False] = ...,
    reduce_axes: Any = ...,
    saveable_args: Any = ...,
    in_nzs: Any = ...,
) -> tuple[_R, Callable[[_R], tuple[*_Ts,]]]: ...
@overload
def vjp(
    fun: Callable[[*_Ts], tuple[_R, _A]],
    *primals: *_Ts,
    has_aux: Literal[True],
    reduce_axes: Any = ...,
    saveable_args: Any = ...,
    in_nzs: Any = ...,
) -> tuple[_R, Callable[[_R], tuple[*_Ts,]], _A]: ...
@overload
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = ...,
    reduce_axes: Any = ...,
    saveable_args: Any = ...,
    in_nzs: Any = ...,
) -> tuple[Any, ...]: ...
def vmap(
    fun: Callable[_P, _R],
    in_axes: Any = ...,
    out_axes: Any = ...,
    axis_name: Any = ...,
    axis_size: int | None = ...,
    spmd_axis_name: Any = ...,
) -> Callable[_P, _R]: ...
