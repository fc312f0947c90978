"""The entries of BCOO arrays: to dense and from it, in order, without duplicates, in other layouts.

What is written for the arrays of one matrix is mapped over batches (`map_batches`).
"""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft import numpy as jnp
from weft.errors import ShapeError
from weft.experimental.sparse.base import (
    CoordinateArray,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    map_batches,
    mark_valid,
    padding_indices,
    require_count,
)
from weft.numpy.promotion import as_array
from weft.util import check_option
from weft.xla.typing import Array


def check_bcoo(op: str, x: Any) -> CoordinateArray:
    """Raise where the operand is not a BCOO."""
    if not isinstance(x, CoordinateArray):
        raise TypeError(f"{op}: must be given a BCOO; got {x!r:.80}. Hint: BCOO.fromdense(x).")
    return x


def add_entries(data: Any, indices: Any, shape: tuple[int, ...]) -> Any:
    """The dense array [*shape, *dense] with data [n, *dense] added at indices [n, len(shape)]."""
    if dtypes.is_bool(data.dtype):
        return add_entries(data.astype(np.int32), indices, shape) > 0
    if not shape:
        return jnp.sum(data, axis=0, dtype=data.dtype)
    ndim, n_dense = len(shape), data.ndim - 1
    dims = lax.ScatterDimensionNumbers(
        tuple(range(1, 1 + n_dense)), tuple(range(ndim)), tuple(range(ndim))
    )
    zeros = jnp.zeros((*shape, *data.shape[1:]), data.dtype)
    return lax.scatter_add(zeros, widen_indices(indices), data, dims, mode="drop")


def take_entries(x: Any, indices: Any, fill: Any = 0) -> Any:
    """The elements [n, *dense] of a dense array at indices [n, n_sparse]; `fill` outside."""
    n, n_sparse = indices.shape
    if not n_sparse:
        return jnp.broadcast_to(x, (n, *x.shape))
    if not math.prod(x.shape[:n_sparse]):
        return jnp.full((n, *x.shape[n_sparse:]), fill, x.dtype)
    dims = lax.GatherDimensionNumbers(
        tuple(range(1, 1 + x.ndim - n_sparse)), tuple(range(n_sparse)), tuple(range(n_sparse))
    )
    sizes = (*[1] * n_sparse, *x.shape[n_sparse:])
    return lax.gather(x, widen_indices(indices), dims, sizes, mode="fill", fill_value=fill)


def widen_indices(indices: Any) -> Any:
    """Indices of a dtype that holds the sizes of arrays."""
    return indices.astype(np.int32) if indices.dtype.itemsize < 4 else indices


def mask_data(mask: Any, data: Any) -> Any:
    """data [n, ...] where a mask [n] holds, else 0."""
    return jnp.where(jnp.reshape(mask, (*mask.shape, *[1] * (data.ndim - mask.ndim))), data, 0)


# --- dense ------------------------------------------------------------------------------------


def bcoo_todense(mat: CoordinateArray) -> Array:
    """Return the dense array of a BCOO.

    Entries at the same position are added up, and entries outside of the array are left out.

    Args:
      mat: a BCOO.

    Returns:
      A dense array of its shape and dtype.

    >>> sparse.bcoo_todense(sparse.BCOO(([1.0, 2.0], [[0, 1], [0, 1]]), shape=(2, 2)))
    Array([[0., 3.],
           [0., 0.]], dtype=float32)
    """
    check_bcoo("bcoo_todense", mat)
    fun = functools.partial(add_entries, shape=mat.sparse_shape)
    return map_batches(fun, mat.n_batch, mat.data, mat.indices)


def find_entries(
    op: str, mat: Any, nse: int | None, n_batch: int, n_dense: int, index_dtype: Any
) -> tuple[Any, Any]:
    """The data and indices of the elements of a dense array that are not zero."""
    n_sparse = mat.ndim - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0:
        raise ShapeError(
            f"{op}: n_batch and n_dense must be at least 0, and no more than the axes together; "
            f"got {n_batch} and {n_dense} for {mat.aval}."
        )
    dtype = dtypes.canonicalize(np.dtype(index_dtype))
    if not dtypes.is_integer(dtype):
        raise TypeError(f"{op}: index_dtype must be one of integers; got {dtype}.")
    mask = mat != 0
    if n_dense:
        mask = jnp.any(mask, axis=tuple(range(mat.ndim - n_dense, mat.ndim)))
    if nse is None:
        counts = jnp.sum(mask, axis=tuple(range(n_batch, mask.ndim)), dtype=np.int32)
        nse = require_count(op, jnp.max(counts, initial=0))
    nse = int(nse)

    def find(mask: Any, x: Any) -> tuple[Any, Any]:
        shape = mask.shape
        if not shape:
            found = jnp.arange(nse) < mask
            return mask_data(found, jnp.broadcast_to(x, (nse, *x.shape))), jnp.zeros(
                (nse, 0), dtype
            )
        places = jnp.nonzero(mask, size=nse, fill_value=shape)
        indices = jnp.stack(places, axis=1).astype(dtype)
        return take_entries(x, indices), indices

    return map_batches(find, n_batch, mask, mat)


def bcoo_extract(sparr: CoordinateArray, arr: Any, *, assume_unique: bool | None = None) -> Any:
    """Read the elements of a dense array at the positions of a BCOO.

    Args:
      sparr: a BCOO.
      arr: a dense array of its shape.
      assume_unique: if True, no position occurs twice. If it is not so, only the first entry of a
        position gets the element. None, the default, is the promise of the BCOO (`unique_indices`).

    Returns:
      A BCOO with the positions of `sparr` and the elements of `arr`.

    >>> mat = sparse.BCOO(([1.0, 2.0], [[0, 1], [1, 0]]), shape=(2, 2))
    >>> sparse.bcoo_extract(mat, jnp.arange(4.0).reshape(2, 2)).data
    Array([1., 2.], dtype=float32)
    """
    check_bcoo("bcoo_extract", sparr)
    arr = as_array(arr, "bcoo_extract")
    if arr.shape != sparr.shape:
        raise ShapeError(
            f"bcoo_extract: the arrays must have one shape; got {sparr.shape} and {arr.aval}."
        )
    unique = sparr.unique_indices if assume_unique is None else assume_unique

    def take(indices: Any, x: Any) -> Any:
        found = take_entries(x, indices)
        if unique:
            return found
        order, _, new = group_entries(indices, sparr.sparse_shape)
        is_first = jnp.zeros(new.shape, bool).at[order].set(new, unique_indices=True)
        return mask_data(is_first, found)

    return sparr.make(map_batches(take, sparr.n_batch, sparr.indices, arr))


# --- order and duplicates -----------------------------------------------------------------------


def order_entries(indices: Any) -> Any:
    """The permutation that sorts indices [n, n_sparse], stable."""
    n, n_sparse = indices.shape
    place = lax.iota(np.int32, n)
    if not n_sparse:
        return place
    columns = [indices[:, i] for i in range(n_sparse)]
    return lax.sort((*columns, place), dimension=0, num_keys=n_sparse, is_stable=True)[-1]


def group_entries(indices: Any, shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Return the order of entries by place, padding last; sorted places; marks of new places."""
    valid = mark_valid(indices, shape)
    indices = jnp.where(valid[:, None], indices, padding_indices(shape, indices.dtype))
    order = order_entries(indices)
    indices = indices[order]
    before = jnp.concatenate([indices[:1], indices[:-1]])
    place = lax.iota(np.int32, indices.shape[0])
    new = (jnp.any(indices != before, axis=1) | (place == 0)) & valid[order]
    return order, indices, new


def bcoo_sort_indices(mat: CoordinateArray) -> Any:
    """Sort the entries of a BCOO by their indices.

    Args:
      mat: a BCOO.

    Returns:
      A BCOO with the same elements.

    >>> sparse.bcoo_sort_indices(sparse.BCOO(([1, 2], [[3], [0]]), shape=(4,))).data
    Array([2, 1], dtype=int32)
    """
    check_bcoo("bcoo_sort_indices", mat)

    def sort(data: Any, indices: Any) -> tuple[Any, Any]:
        order = order_entries(indices)
        return data[order], indices[order]

    pair = map_batches(sort, mat.n_batch, mat.data, mat.indices)
    return mat.make(*pair, mat.shape, indices_sorted=True, unique_indices=mat.unique_indices)


def bcoo_sum_duplicates(mat: CoordinateArray, nse: int | None = None) -> Any:
    """Add up the entries of a BCOO that have the same position.

    Args:
      mat: a BCOO.
      nse: the number of entries that the result has room for. The rest is padding, and entries
        beyond are lost. None, the default, counts the positions. It must be given under `jit`.

    Returns:
      A BCOO with sorted indices and without duplicates.

    >>> mat = sparse.BCOO(([1, 2, 3], [[3], [0], [3]]), shape=(4,))
    >>> print(sparse.bcoo_sum_duplicates(mat).data)
    [2 4]
    """
    check_bcoo("bcoo_sum_duplicates", mat)
    shape = mat.sparse_shape
    fun = functools.partial(group_entries, shape=shape)
    order, indices, new = map_batches(fun, mat.n_batch, mat.indices)
    if nse is None:
        counts = jnp.sum(new, axis=-1, dtype=np.int32)
        nse = require_count("bcoo_sum_duplicates", jnp.max(counts, initial=0))
    room = int(nse)

    def add(data: Any, order: Any, indices: Any, new: Any) -> tuple[Any, Any]:
        group = jnp.cumsum(new, dtype=np.int32) - 1
        group = jnp.where(mark_valid(indices, shape), group, room)[:, None]
        padding = jnp.broadcast_to(padding_indices(shape, indices.dtype), (room, len(shape)))
        dims = lax.ScatterDimensionNumbers((1,), (0,), (0,))
        places = lax.scatter(padding, group, indices, dims, mode="drop")
        return add_entries(data[order], group, (room,)), places

    pair = map_batches(add, mat.n_batch, mat.data, order, indices, new)
    return mat.make(*pair, mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_eliminate_zeros(mat: CoordinateArray, nse: int | None = None) -> Any:
    """Remove the entries of a BCOO that are zero.

    Args:
      mat: a BCOO.
      nse: the number of entries that the result has room for. None, the default, counts them. It
        must be given under `jit`.

    Returns:
      A BCOO with sorted indices and without duplicates.

    >>> sparse.bcoo_eliminate_zeros(sparse.BCOO(([0, 2], [[3], [0]]), shape=(4,))).nse
    1
    """
    return bcoo_sum_duplicates(drop_zeros(mat), nse)


def drop_zeros(mat: CoordinateArray) -> Any:
    """Return a BCOO with padding in place of entries that are zero."""
    zero = mat.data == 0
    zero = jnp.all(zero, axis=tuple(range(mat.n_batch + 1, zero.ndim)))
    padding = padding_indices(mat.sparse_shape, mat.indices.dtype)
    return mat.make(mat.data, jnp.where(zero[..., None], padding, mat.indices), mat.shape)


# --- layouts ----------------------------------------------------------------------------------


def bcoo_update_layout(
    mat: CoordinateArray,
    *,
    n_batch: int | None = None,
    n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> Any:
    """Change the number of batch axes and of dense axes of a BCOO.

    Args:
      mat: a BCOO.
      n_batch: the number of batch axes. None, the default, keeps it.
      n_dense: the number of dense axes. None, the default, keeps it.
      on_inefficient: the reaction where much more is stored than before, as with a new batch axis
        whose elements each need room for all entries: "error", the default, "warn", or None.

    Returns:
      A BCOO of the same elements.

    Raises:
      SparseEfficiencyError: much more would be stored, and `on_inefficient` is "error".

    >>> sparse.bcoo_update_layout(sparse.BCOO.fromdense(jnp.eye(3), n_batch=1), n_batch=0)
    BCOO(float32[3, 3], nse=3)
    """
    op = "bcoo_update_layout"
    check_bcoo(op, mat)
    check_option(op, "on_inefficient", on_inefficient, "error", "warn", None)
    n_batch = mat.n_batch if n_batch is None else int(n_batch)
    n_dense = mat.n_dense if n_dense is None else int(n_dense)
    if min(n_batch, n_dense) < 0 or n_batch + n_dense > mat.ndim:
        raise ShapeError(
            f"{op}: n_batch and n_dense must be at least 0, and no more than the axes together; "
            f"got {n_batch} and {n_dense} for an array of shape {mat.shape}."
        )
    first_dense = mat.ndim - mat.n_dense
    grown = mat.shape[mat.n_batch : n_batch] + mat.shape[mat.ndim - n_dense : first_dense]
    if math.prod(grown) > 1 and on_inefficient is not None:
        message = (
            f"{op}: n_batch and n_dense must not make storage grow; got {n_batch} and {n_dense} "
            f"for {mat!r}, which store its entries {math.prod(grown)} times. "
            "Hint: on_inefficient=None."
        )
        if on_inefficient == "error":
            raise SparseEfficiencyError(message)
        warnings.warn(message, SparseEfficiencyWarning, stacklevel=2)
    if mat.n_dense > n_dense:
        mat = scatter_dense(mat, mat.n_dense - n_dense)
    while mat.n_batch > n_batch:
        mat = merge_batch(mat)
    if mat.n_dense < n_dense:
        mat = gather_dense(mat, n_dense - mat.n_dense)
    while mat.n_batch < n_batch:
        mat = split_batch(mat)
    return mat


def scatter_dense(mat: CoordinateArray, count: int) -> Any:
    """The first `count` axes of dense blocks as ones that indices count along."""
    sizes = mat.dense_shape[:count]
    each = math.prod(sizes)
    inner = np.indices(sizes).reshape(count, each).T.astype(mat.indices.dtype)

    def spread(data: Any, indices: Any) -> tuple[Any, Any]:
        n, n_sparse = indices.shape
        outer = jnp.broadcast_to(indices[:, None], (n, each, n_sparse))
        both = [outer, jnp.broadcast_to(inner, (n, each, count))]
        places = jnp.concatenate(both, axis=2).reshape(n * each, n_sparse + count)
        return data.reshape(n * each, *data.shape[1 + count :]), places

    pair = map_batches(spread, mat.n_batch, mat.data, mat.indices)
    return mat.make(
        *pair,
        mat.shape,
        indices_sorted=mat.indices_sorted and mat.unique_indices,
        unique_indices=mat.unique_indices,
    )


def merge_batch(mat: CoordinateArray) -> Any:
    """The last axis of batches as the first that indices count along."""
    size = mat.shape[mat.n_batch - 1]

    def merge(data: Any, indices: Any) -> tuple[Any, Any]:
        n, n_sparse = indices.shape[1:]
        index = lax.broadcasted_iota(indices.dtype, (size, n, 1), 0)
        # padding of one batch stays outside along the other axes
        both = jnp.concatenate([index, indices], axis=2)
        if not n_sparse:
            both = index
        return data.reshape(size * n, *data.shape[2:]), both.reshape(size * n, n_sparse + 1)

    pair = map_batches(merge, mat.n_batch - 1, mat.data, mat.indices)
    return mat.make(
        *pair, mat.shape, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices
    )


def gather_dense(mat: CoordinateArray, count: int) -> Any:
    """The last `count` axes that indices count along as ones of dense blocks."""
    kept = mat.n_sparse - count
    sizes = mat.sparse_shape[kept:]

    def gather(data: Any, indices: Any) -> tuple[Any, Any]:
        n = data.shape[0]
        rows = jnp.concatenate([lax.iota(np.int32, n)[:, None], indices[:, kept:]], axis=1)
        return add_entries(data, rows, (n, *sizes)), indices[:, :kept]

    pair = map_batches(gather, mat.n_batch, mat.data, mat.indices)
    return mat.make(*pair, mat.shape, indices_sorted=mat.indices_sorted)


def split_batch(mat: CoordinateArray) -> Any:
    """The first axis that indices count along as one of batches, each with room for all entries."""
    size, *rest = mat.sparse_shape

    def split(data: Any, indices: Any) -> tuple[Any, Any]:
        mine = indices[None, :, 0] == lax.iota(indices.dtype, size)[:, None]
        places = jnp.where(mine[..., None], indices[:, 1:], padding_indices(rest, indices.dtype))
        return mask_data(mine, jnp.broadcast_to(data, (size, *data.shape))), places

    pair = map_batches(split, mat.n_batch, mat.data, mat.indices)
    return mat.make(*pair, mat.shape, unique_indices=mat.unique_indices)
