"""Written by tools/make_stubs.py; do not edit."""

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
from typing import NamedTuple as _NamedTuple
from weft.dtypes import DTypeLike as _DTypeLike
from weft.primitives.dot import PrecisionLike as _PrecisionLike
from weft.xla.array import Array as _Array
from weft.xla.typing import ArrayLike as _ArrayLike
from weft.xla.typing import Axis as _Axis
from weft.xla.typing import ShardingLike as _ShardingLike

class SVDResult(_NamedTuple):
    U: _Array
    S: _Array
    Vh: _Array

_SVDResult = SVDResult

class EigResult(_NamedTuple):
    eigenvalues: _Array
    eigenvectors: _Array

class EighResult(_NamedTuple):
    eigenvalues: _Array
    eigenvectors: _Array

class SlogdetResult(_NamedTuple):
    sign: _Array
    logabsdet: _Array

def cholesky(a: _ArrayLike, *, upper: bool = ..., symmetrize_input: bool = ...) -> _Array: ...
def cond(x: _ArrayLike, p: _ArrayLike | None = ...) -> _Array: ...
def cross(x1: _ArrayLike, x2: _ArrayLike, /, *, axis: int = ...) -> _Array: ...
def det(a: _ArrayLike) -> _Array: ...
def diagonal(x: _ArrayLike, /, *, offset: int = ...) -> _Array: ...
def eig(a: _ArrayLike) -> EigResult: ...
def eigh(a: _ArrayLike, UPLO: str | None = ..., symmetrize_input: bool = ...) -> EighResult: ...
def eigvals(a: _ArrayLike) -> _Array: ...
def eigvalsh(a: _ArrayLike, UPLO: str | None = ..., *, symmetrize_input: bool = ...) -> _Array: ...
def inv(a: _ArrayLike) -> _Array: ...
def lstsq(
    a: _ArrayLike, b: _ArrayLike, rcond: _ArrayLike | None = ..., *, numpy_resid: bool = ...
) -> tuple[_Array, _Array, _Array, _Array]: ...
def matmul(
    a: _ArrayLike,
    b: _ArrayLike,
    *,
    precision: _PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def matrix_norm(
    x: _ArrayLike, /, *, keepdims: bool = ..., ord: int | float | str = ...
) -> _Array: ...
def matrix_power(a: _ArrayLike, n: int) -> _Array: ...
def matrix_rank(
    M: _ArrayLike,
    rtol: _ArrayLike | None = ...,
    *,
    hermitian: bool = ...,
    tol: _ArrayLike | None = ...,
) -> _Array: ...
def matrix_transpose(x: _ArrayLike, /) -> _Array: ...
def multi_dot(arrays: _Sequence[_Any], *, precision: _PrecisionLike = ...) -> _Array: ...
def norm(
    x: _ArrayLike, ord: int | float | str | None = ..., axis: _Axis = ..., keepdims: bool = ...
) -> _Array: ...
def outer(x1: _ArrayLike, x2: _ArrayLike, /) -> _Array: ...
def pinv(
    a: _ArrayLike,
    rtol: _ArrayLike | None = ...,
    hermitian: bool = ...,
    *,
    rcond: _ArrayLike | None = ...,
) -> _Array: ...
def qr(a: _ArrayLike, mode: str = ...) -> _Any: ...
def slogdet(a: _ArrayLike, *, method: str | None = ...) -> SlogdetResult: ...
def solve(a: _ArrayLike, b: _ArrayLike) -> _Array: ...
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
def svdvals(x: _ArrayLike, /) -> _Array: ...
def tensordot(
    a: _ArrayLike,
    b: _ArrayLike,
    axes: int | _Sequence[int] | _Sequence[_Sequence[int]] = ...,
    *,
    precision: _PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def tensorinv(a: _ArrayLike, ind: int = ...) -> _Array: ...
def tensorsolve(a: _ArrayLike, b: _ArrayLike, axes: _Sequence[int] | None = ...) -> _Array: ...
def trace(x: _ArrayLike, /, *, offset: int = ..., dtype: _DTypeLike | None = ...) -> _Array: ...
def vecdot(
    x1: _ArrayLike,
    x2: _ArrayLike,
    /,
    *,
    axis: int = ...,
    precision: _PrecisionLike = ...,
    preferred_element_type: _DTypeLike | None = ...,
) -> _Array: ...
def vector_norm(
    x: _ArrayLike, /, *, axis: _Axis = ..., keepdims: bool = ..., ord: int | float | str = ...
) -> _Array: ...
