"""Written by tools/make_stubs.py; do not edit."""

from collections.abc import Callable as _Callable
from collections.abc import Sequence as _Sequence
from typing import Any as _Any
from weft.experimental.sparse.base import CoordinateArray as _CoordinateArray
from weft.experimental.sparse.base import JAXSparse as _JAXSparse
from weft.experimental.sparse.bcoo import BCOO as _BCOO
from weft.experimental.sparse.bcsr import BCSR as _BCSR
from weft.experimental.sparse.named import Named as _Named
from weft.experimental.sparse.products import DimensionNumbers as _DimensionNumbers
from weft.xla.array import Array as _Array

from weft.experimental.sparse.bcoo import BCOO as BCOO
from weft.experimental.sparse.bcsr import BCSR as BCSR
from weft.experimental.sparse.coo import COO as COO
from weft.experimental.sparse.coo import CSC as CSC
from weft.experimental.sparse.coo import CSR as CSR
from weft.experimental.sparse.base import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning
from weft.experimental.sparse.base import JAXSparse as JAXSparse
from weft.experimental.sparse.base import SparseEfficiencyError as SparseEfficiencyError
from weft.experimental.sparse.base import SparseEfficiencyWarning as SparseEfficiencyWarning
from weft.experimental.sparse.transform import SparseTracer as SparseTracer

def bcoo_broadcast_in_dim(
    mat: _CoordinateArray,
    *,
    shape: _Sequence[int],
    broadcast_dimensions: _Sequence[int],
    sharding: _Any = ...,
) -> _Any: ...
def bcoo_concatenate(operands: _Sequence[_CoordinateArray], *, dimension: int) -> _Any: ...
def bcoo_conv_general_dilated(
    lhs: _Any,
    rhs: _Any,
    *,
    window_strides: _Sequence[int],
    padding: _Any,
    lhs_dilation: _Sequence[int] | None = ...,
    rhs_dilation: _Sequence[int] | None = ...,
    dimension_numbers: _Any = ...,
    feature_group_count: int = ...,
    batch_group_count: int = ...,
    precision: _Any = ...,
    preferred_element_type: _Any = ...,
    out_sharding: _Any = ...,
) -> _Any: ...
def bcoo_dot_general(
    lhs: _Any,
    rhs: _Any,
    *,
    dimension_numbers: _DimensionNumbers,
    precision: _Any = ...,
    preferred_element_type: _Any = ...,
    out_sharding: _Any = ...,
) -> _Any: ...

bcoo_dot_general_p: _Named

def bcoo_dot_general_sampled(
    A: _Any, B: _Any, indices: _Any, *, dimension_numbers: _DimensionNumbers
) -> _Any: ...

bcoo_dot_general_sampled_p: _Named

def bcoo_dynamic_slice(
    mat: _CoordinateArray, start_indices: _Sequence[_Any], slice_sizes: _Sequence[int]
) -> _Any: ...
def bcoo_eliminate_zeros(mat: _CoordinateArray, nse: int | None = ...) -> _Any: ...
def bcoo_extract(
    sparr: _CoordinateArray, arr: _Any, *, assume_unique: bool | None = ...
) -> _Any: ...

bcoo_extract_p: _Named

def bcoo_fromdense(
    mat: _Any,
    *,
    nse: int | None = ...,
    n_batch: int = ...,
    n_dense: int = ...,
    index_dtype: _Any = ...,
) -> _BCOO: ...

bcoo_fromdense_p: _Named

def bcoo_gather(
    operand: _CoordinateArray,
    start_indices: _Any,
    dimension_numbers: _Any,
    slice_sizes: _Sequence[int],
    *,
    unique_indices: bool = ...,
    indices_are_sorted: bool = ...,
    mode: _Any = ...,
    fill_value: _Any = ...,
) -> _Any: ...
def bcoo_multiply_dense(sp_mat: _CoordinateArray, v: _Any) -> _Any: ...
def bcoo_multiply_sparse(lhs: _CoordinateArray, rhs: _CoordinateArray) -> _Any: ...
def bcoo_reduce_sum(mat: _CoordinateArray, *, axes: _Sequence[int]) -> _Any: ...
def bcoo_reshape(
    mat: _CoordinateArray,
    *,
    new_sizes: _Sequence[int],
    dimensions: _Sequence[int] | None = ...,
    sharding: _Any = ...,
) -> _Any: ...
def bcoo_rev(operand: _CoordinateArray, dimensions: _Sequence[int]) -> _Any: ...
def bcoo_slice(
    mat: _CoordinateArray,
    *,
    start_indices: _Sequence[int],
    limit_indices: _Sequence[int],
    strides: _Sequence[int] | None = ...,
) -> _Any: ...
def bcoo_sort_indices(mat: _CoordinateArray) -> _Any: ...

bcoo_sort_indices_p: _Named
bcoo_spdot_general_p: _Named

def bcoo_squeeze(arr: _CoordinateArray, *, dimensions: _Sequence[int]) -> _Any: ...
def bcoo_sum_duplicates(mat: _CoordinateArray, nse: int | None = ...) -> _Any: ...

bcoo_sum_duplicates_p: _Named

def bcoo_todense(mat: _CoordinateArray) -> _Array: ...

bcoo_todense_p: _Named

def bcoo_transpose(mat: _CoordinateArray, *, permutation: _Sequence[int]) -> _Any: ...

bcoo_transpose_p: _Named

def bcoo_update_layout(
    mat: _CoordinateArray,
    *,
    n_batch: int | None = ...,
    n_dense: int | None = ...,
    on_inefficient: str | None = ...,
) -> _Any: ...
def bcsr_broadcast_in_dim(
    mat: _BCSR, *, shape: _Sequence[int], broadcast_dimensions: _Sequence[int], sharding: _Any = ...
) -> _BCSR: ...
def bcsr_concatenate(operands: _Sequence[_BCSR], *, dimension: int) -> _BCSR: ...
def bcsr_dot_general(
    lhs: _Any,
    rhs: _Any,
    *,
    dimension_numbers: _Any,
    precision: _Any = ...,
    preferred_element_type: _Any = ...,
    out_sharding: _Any = ...,
) -> _Any: ...

bcsr_dot_general_p: _Named

def bcsr_extract(indices: _Any, indptr: _Any, mat: _Any) -> _Any: ...

bcsr_extract_p: _Named

def bcsr_fromdense(
    mat: _Any,
    *,
    nse: int | None = ...,
    n_batch: int = ...,
    n_dense: int = ...,
    index_dtype: _Any = ...,
) -> _BCSR: ...

bcsr_fromdense_p: _Named

def bcsr_sum_duplicates(mat: _BCSR, nse: int | None = ...) -> _BCSR: ...
def bcsr_todense(mat: _BCSR) -> _Array: ...

bcsr_todense_p: _Named

def coo_fromdense(mat: _Any, *, nse: int | None = ..., index_dtype: _Any = ...) -> _Any: ...

coo_fromdense_p: _Named

def coo_matmat(mat: _Any, B: _Any, *, transpose: bool = ...) -> _Any: ...

coo_matmat_p: _Named

def coo_matvec(mat: _Any, v: _Any, transpose: bool = ...) -> _Any: ...

coo_matvec_p: _Named

def coo_todense(mat: _Any) -> _Array: ...

coo_todense_p: _Named

def csr_fromdense(mat: _Any, *, nse: int | None = ..., index_dtype: _Any = ...) -> _Any: ...

csr_fromdense_p: _Named

def csr_matmat(mat: _Any, B: _Any, *, transpose: bool = ...) -> _Any: ...

csr_matmat_p: _Named

def csr_matvec(mat: _Any, v: _Any, transpose: bool = ...) -> _Any: ...

csr_matvec_p: _Named

def csr_todense(mat: _Any) -> _Array: ...

csr_todense_p: _Named

def empty(
    shape: _Sequence[int],
    dtype: _Any = ...,
    index_dtype: _Any = ...,
    sparse_format: str = ...,
    **kwds: _Any,
) -> _JAXSparse: ...
def eye(
    N: int,
    M: int | None = ...,
    k: int = ...,
    dtype: _Any = ...,
    index_dtype: _Any = ...,
    sparse_format: str = ...,
    **kwds: _Any,
) -> _JAXSparse: ...
def grad(
    fun: _Callable[..., _Any],
    argnums: int | _Sequence[int] = ...,
    has_aux: bool = ...,
    **kwargs: _Any,
) -> _Callable[..., _Any]: ...
def jacfwd(
    fun: _Callable[..., _Any],
    argnums: int | _Sequence[int] = ...,
    has_aux: bool = ...,
    **kwargs: _Any,
) -> _Callable[..., _Any]: ...
def jacobian(
    fun: _Callable[..., _Any],
    argnums: int | _Sequence[int] = ...,
    has_aux: bool = ...,
    **kwargs: _Any,
) -> _Callable[..., _Any]: ...
def jacrev(
    fun: _Callable[..., _Any],
    argnums: int | _Sequence[int] = ...,
    has_aux: bool = ...,
    **kwargs: _Any,
) -> _Callable[..., _Any]: ...

from weft.experimental.sparse import linalg as linalg

def random_bcoo(
    key: _Any,
    shape: _Sequence[int],
    *,
    dtype: _Any = ...,
    indices_dtype: _Any = ...,
    nse: float = ...,
    n_batch: int = ...,
    n_dense: int = ...,
    unique_indices: bool = ...,
    sorted_indices: bool = ...,
    generator: _Callable[..., _Any] = ...,
    **kwds: _Any,
) -> _BCOO: ...
def sparsify(f: _Callable[..., _Any], use_tracer: bool = ...) -> _Callable[..., _Any]: ...
def todense(arr: _Any) -> _Array: ...

from weft.experimental.sparse.transform import todense_p as todense_p

def value_and_grad(
    fun: _Callable[..., _Any],
    argnums: int | _Sequence[int] = ...,
    has_aux: bool = ...,
    **kwargs: _Any,
) -> _Callable[..., _Any]: ...
