"""Signatures that keep those of the functions they take; make_stubs.py puts them into stubs.

Under the name of each module, with _ for dots, stand the functions whose types follow from types of
their arguments; all others have their types where they are defined.
"""

import builtins as _builtins
from collections.abc import Callable, Sequence
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

from weft.api.jit import Inline
from weft.api.shape_struct import ShapeDtypeStruct as _ShapeDtypeStruct
from weft.api.stages import Lowered, Traced
from weft.core.jaxpr import ClosedJaxpr
from weft.mesh.mesh import Mesh
from weft.numpy.linalg import SVDResult as _SVDResult
from weft.xla.array import Array as _Array
from weft.xla.typing import ArrayLike as _ArrayLike

MYPY = False  # mypy takes it for True

_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R")  # a result
_R_co = TypeVar("_R_co", covariant=True)
_T = TypeVar("_T")  # what is differentiated
_S = TypeVar("_S")
_U = TypeVar("_U")
_A = TypeVar("_A")  # an auxiliary result
_C = TypeVar("_C")  # a carry
_Ts = TypeVarTuple("_Ts")  # operands
_X = TypeVar("_X")
_Y = TypeVar("_Y")

class weft:
    class _Staged(Protocol[_P, _R_co]):
        """The stages of a jitted function."""

        __name__: str
        __wrapped__: Callable[..., Any]
        def trace(self, *args: _P.args, **kwargs: _P.kwargs) -> Traced: ...
        def lower(self, *args: _P.args, **kwargs: _P.kwargs) -> Lowered: ...
        def eval_shape(self, *args: _P.args, **kwargs: _P.kwargs) -> Any: ...
        def plan(self, *args: _P.args, **kwargs: _P.kwargs) -> Any: ...
        def clear_cache(self) -> None: ...

    # mypy keeps the signature through `partial(jit, ...)` only if `jit` has one form. In that form
    # `jit(static_argnames=...)`, without a function, gives a `_Jitted` whose parameters are unknown
    # (`Never`). The first form of its call takes the function then.
    if MYPY:
        class _Jitted(_Staged[_P, _R_co], Protocol[_P, _R_co]):
            @overload
            def __call__(
                self: _Jitted[[Never], Never],  # noqa: F821
                fun: Callable[_Q, _S],
                /,
            ) -> _Jitted[_Q, _S]: ...  # noqa: F821
            @overload
            def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...

    else:
        class _Jitted(_Staged[_P, _R_co], Protocol[_P, _R_co]):
            """A jitted function, and its stages."""

            def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...

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
    def vmap(
        fun: Callable[_P, _R],
        in_axes: Any = ...,
        out_axes: Any = ...,
        axis_name: Any = ...,
        axis_size: int | None = ...,
        spmd_axis_name: Any = ...,
    ) -> Callable[_P, _R]: ...
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
    remat = checkpoint
    def jvp(
        fun: Callable[..., _R], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = ...
    ) -> tuple[_R, _R]: ...
    @overload
    def vjp(
        fun: Callable[[*_Ts], _R],
        *primals: *_Ts,
        has_aux: Literal[False] = ...,
        reduce_axes: Any = ...,
        saveable_args: Any = ...,
        in_nzs: Any = ...,
    ) -> tuple[_R, Callable[[_R], tuple[*_Ts]]]: ...
    @overload
    def vjp(
        fun: Callable[[*_Ts], tuple[_R, _A]],
        *primals: *_Ts,
        has_aux: Literal[True],
        reduce_axes: Any = ...,
        saveable_args: Any = ...,
        in_nzs: Any = ...,
    ) -> tuple[_R, Callable[[_R], tuple[*_Ts]], _A]: ...
    @overload
    def vjp(
        fun: Callable[..., Any],
        *primals: Any,
        has_aux: bool = ...,
        reduce_axes: Any = ...,
        saveable_args: Any = ...,
        in_nzs: Any = ...,
    ) -> tuple[Any, ...]: ...
    @overload
    def eval_shape(
        fun: Callable[_P, _Array], *args: _P.args, **kwargs: _P.kwargs
    ) -> _ShapeDtypeStruct: ...
    @overload
    def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any: ...
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
    def linearize(
        fun: Callable[..., _R], *primals: Any, has_aux: bool = ..., in_nzs: Any = ...
    ) -> tuple[_R, Callable[..., _R]]: ...
    def named_call(fun: Callable[_P, _R], *, name: str | None = ...) -> Callable[_P, _R]: ...
    def custom_gradient(fun: Callable[_P, tuple[_R, Any]]) -> Callable[_P, _R]: ...
    def make_jaxpr(
        fun: Callable[_P, Any],
        static_argnums: int | Sequence[int] = ...,
        axis_env: Sequence[tuple[Any, int]] | None = ...,
        return_shape: bool = ...,
    ) -> Callable[_P, ClosedJaxpr]: ...
    def block_until_ready(x: _T) -> _T: ...
    def device_put(
        x: _T,
        device: Any = ...,
        *,
        src: Any = ...,
        donate: bool = ...,
        may_alias: bool | None = ...,
    ) -> _T: ...
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

class tree:
    @overload
    def map(
        f: Callable[[_Array], _Array], tree: _T, /, *, is_leaf: Callable[[Any], bool] | None = ...
    ) -> _T: ...
    @overload
    def map(
        f: Callable[[_Array, _Array], _Array],
        tree: _T,
        rest: Any,
        /,
        *,
        is_leaf: Callable[[Any], bool] | None = ...,
    ) -> _T: ...
    @overload
    def map(
        f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = ...
    ) -> Any: ...

class numpy_linalg:
    @overload
    def svd(
        a: _ArrayLike,
        full_matrices: bool = ...,
        compute_uv: Literal[True] = ...,
        hermitian: bool = ...,
        subset_by_index: tuple[int, int] | None = ...,
    ) -> _SVDResult: ...
    @overload
    def svd(
        a: _ArrayLike,
        full_matrices: bool = ...,
        *,
        compute_uv: Literal[False],
        hermitian: bool = ...,
        subset_by_index: tuple[int, int] | None = ...,
    ) -> _Array: ...
    @overload
    def svd(
        a: _ArrayLike,
        full_matrices: bool = ...,
        compute_uv: bool = ...,
        hermitian: bool = ...,
        subset_by_index: tuple[int, int] | None = ...,
    ) -> Any: ...

class numpy:
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

class lax:
    def stop_gradient(x: _T) -> _T: ...
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
    def map(f: Callable[[_X], _Y], xs: _X, *, batch_size: int | None = ...) -> _Y: ...
    def associative_scan(
        fn: Callable[[_X, _X], _X], elems: _X, reverse: bool = ..., axis: int = ...
    ) -> _X: ...
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
    def cond(
        pred: _ArrayLike,
        true_fun: Callable[[*_Ts], _R],
        false_fun: Callable[[*_Ts], _R],
        *operands: *_Ts,
        operand: Any = ...,
        linear: Any = ...,
    ) -> _R: ...
    def switch(
        index: _ArrayLike,
        branches: Sequence[Callable[[*_Ts], _R]],
        *operands: *_Ts,
        operand: Any = ...,
        linear: Any = ...,
    ) -> _R: ...
    def custom_root(
        f: Callable[[_X], _X],
        initial_guess: _X,
        solve: Callable[..., Any],
        tangent_solve: Callable[..., _X],
        has_aux: bool = ...,
    ) -> Any: ...
    def psum(x: _T, axis_name: Any, *, axis_index_groups: Any = ...) -> _T: ...
    def pmean(x: _T, axis_name: Any, *, axis_index_groups: Any = ...) -> _T: ...
    def pmax(x: _T, axis_name: Any, *, axis_index_groups: Any = ...) -> _T: ...
    def pmin(x: _T, axis_name: Any, *, axis_index_groups: Any = ...) -> _T: ...
    def ppermute(x: _T, axis_name: Any, perm: Sequence[tuple[int, int]]) -> _T: ...
    def axis_index(axis_name: Any) -> _Array: ...
    def with_sharding_constraint(x: _T, shardings: Any) -> _T: ...
