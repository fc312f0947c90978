"""Written by tools/make_stubs.py; do not edit."""

from collections.abc import Callable as _Callable
from typing import Any as _Any
from weft.primitives.eigen import EigImplementation as _EigImplementation
from weft.primitives.eigen import EighImplementation as _EighImplementation
from weft.primitives.eigen import SvdAlgorithm as _SvdAlgorithm
from weft.xla.array import Array as _Array
from weft.xla.typing import ArrayLike as _ArrayLike

from weft.primitives.eigen import EigImplementation as EigImplementation
from weft.primitives.eigen import EighImplementation as EighImplementation
from weft.primitives.eigen import SvdAlgorithm as SvdAlgorithm

def cholesky(x: _ArrayLike, *, symmetrize_input: bool = ...) -> _Array: ...

from weft.primitives.linalg import cholesky_p as cholesky_p

def cholesky_update(r_matrix: _ArrayLike, w_vector: _ArrayLike) -> _Array: ...

from weft.primitives.linalg import cholesky_update_p as cholesky_update_p

def eig(
    x: _ArrayLike,
    *,
    compute_left_eigenvectors: bool = ...,
    compute_right_eigenvectors: bool = ...,
    enable_eigvec_derivs: bool = ...,
    implementation: _EigImplementation | None = ...,
    use_magma: bool | None = ...,
) -> list[_Any]: ...

from weft.primitives.eigen import eig_p as eig_p

def eigh(
    x: _ArrayLike,
    *,
    lower: bool = ...,
    symmetrize_input: bool = ...,
    sort_eigenvalues: bool = ...,
    subset_by_index: tuple[int, int] | None = ...,
    implementation: _EighImplementation | None = ...,
) -> tuple[_Array, _Array]: ...

from weft.primitives.eigen import eigh_p as eigh_p

def hessenberg(a: _ArrayLike) -> tuple[_Array, _Array]: ...

from weft.primitives.eigen import hessenberg_p as hessenberg_p

def householder_product(a: _ArrayLike, taus: _ArrayLike) -> _Array: ...

from weft.primitives.factorizations import householder_product_p as householder_product_p

def lu(x: _ArrayLike) -> tuple[_Array, _Array, _Array]: ...

from weft.primitives.factorizations import lu_p as lu_p

def lu_pivots_to_permutation(pivots: _ArrayLike, permutation_size: int) -> _Array: ...

from weft.primitives.factorizations import lu_pivots_to_permutation_p as lu_pivots_to_permutation_p

def ormqr(
    a: _ArrayLike, taus: _ArrayLike, c: _ArrayLike, *, left: bool = ..., transpose: bool = ...
) -> _Array: ...

from weft.primitives.factorizations import ormqr_p as ormqr_p

def qdwh(
    x: _ArrayLike,
    *,
    is_hermitian: bool = ...,
    max_iterations: int | None = ...,
    eps: float | None = ...,
    dynamic_shape: tuple[int, int] | None = ...,
) -> tuple[_Array, _Array, _Array, _Array]: ...
def qr(
    x: _ArrayLike, *, pivoting: bool = ..., full_matrices: bool = ..., use_magma: bool | None = ...
) -> tuple[_Any, ...]: ...

from weft.primitives.factorizations import qr_p as qr_p

def schur(
    x: _ArrayLike,
    *,
    compute_schur_vectors: bool = ...,
    sort_eig_vals: bool = ...,
    select_callable: _Callable[..., _Any] | None = ...,
) -> tuple[_Any, ...]: ...

from weft.primitives.eigen import schur_p as schur_p

def svd(
    x: _ArrayLike,
    *,
    full_matrices: bool = ...,
    compute_uv: bool = ...,
    subset_by_index: tuple[int, int] | None = ...,
    algorithm: _SvdAlgorithm | None = ...,
) -> _Any: ...

from weft.primitives.eigen import svd_p as svd_p

def symmetric_product(
    a_matrix: _ArrayLike,
    c_matrix: _ArrayLike,
    *,
    alpha: float = ...,
    beta: float = ...,
    symmetrize_output: bool = ...,
) -> _Array: ...

from weft.primitives.linalg import symmetric_product_p as symmetric_product_p

def triangular_solve(
    a: _ArrayLike,
    b: _ArrayLike,
    *,
    left_side: bool = ...,
    lower: bool = ...,
    transpose_a: bool = ...,
    conjugate_a: bool = ...,
    unit_diagonal: bool = ...,
) -> _Array: ...

from weft.primitives.linalg import triangular_solve_p as triangular_solve_p

def tridiagonal(a: _ArrayLike, *, lower: bool = ...) -> tuple[_Array, _Array, _Array, _Array]: ...

from weft.primitives.eigen import tridiagonal_p as tridiagonal_p

def tridiagonal_solve(
    dl: _ArrayLike, d: _ArrayLike, du: _ArrayLike, b: _ArrayLike, *, perturb_singular: bool = ...
) -> _Array: ...

from weft.primitives.linalg import tridiagonal_solve_p as tridiagonal_solve_p
