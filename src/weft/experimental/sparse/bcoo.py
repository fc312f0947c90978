"""`BCOO`: arrays given by the values of their entries and an index for each, in batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft import numpy as jnp
from weft.errors import ShapeError
from weft.experimental.sparse import entries, shaping
from weft.experimental.sparse.base import CoordinateArray, padding_indices, read_index_dtype
from weft.experimental.sparse.operators import SparseOperators
from weft.primitives.families import index_tuple
from weft.pytrees import register_pytree_node_class
from weft.xla.typing import Array


@register_pytree_node_class
class BCOO(SparseOperators, CoordinateArray):
    """A sparse array: data [*batch, nse, *dense] at indices [*batch, nse, n_sparse].

    Its first `n_batch` axes are batch axes; every batch has the same number of entries. Its last
    `n_dense` axes belong to blocks that are stored completely. Indices run along the `n_sparse`
    axes between them. Entries at the same position are added up; entries outside of the array are
    padding. It is a pytree of `data` and `indices`. It may be used with jit, vmap over its batches,
    scan and the derivatives of this package, which are taken in `data`. Functions of dense arrays
    take it through `sparsify`.

    Args:
      args: data and indices, arrays or array-likes.
      shape: the shape of the array.
      indices_sorted: if True, the caller promises that the indices are sorted. The default is
        False.
      unique_indices: if True, the caller promises that no index repeats. The default is False.

    Raises:
      ShapeError: data, indices and shape do not fit.

    >>> mat = sparse.BCOO(([1.0, 2.0], [[0, 1], [1, 0]]), shape=(2, 2))
    >>> mat
    BCOO(float32[2, 2], nse=2)
    >>> print(mat @ jnp.array([1.0, 10.0]))
    [10.  2.]
    """

    __slots__ = ()

    @classmethod
    def fromdense(
        cls,
        mat: Any,
        *,
        nse: int | None = None,
        index_dtype: Any = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:
        """See `bcoo_fromdense`."""
        return bcoo_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """A BCOO of a matrix of scipy.sparse, of any format; dtypes are canonicalized.

        >>> import scipy.sparse
        >>> sparse.BCOO.from_scipy_sparse(scipy.sparse.eye_array(3, dtype=np.float32))
        BCOO(float32[3, 3], nse=3)
        """
        found = mat.tocoo()
        indices = np.stack(getattr(found, "coords", None) or (found.row, found.col), axis=1)
        dtype = read_index_dtype(cls, indices, index_dtype, n_dense, n_batch)
        return cls((found.data, indices.astype(dtype)), shape=found.shape)

    def to_scipy_sparse(self) -> Any:
        """The same matrix as a `scipy.sparse.coo_array`, without padding; on the host."""
        import scipy.sparse

        mat = entries.bcoo_update_layout(self, n_batch=0, n_dense=0)
        data, indices = np.asarray(mat.data), np.asarray(mat.indices)
        valid = np.all((indices >= 0) & (indices < padding_indices(mat.shape, np.int64)), axis=1)
        return scipy.sparse.coo_array((data[valid], tuple(indices[valid].T)), shape=mat.shape)

    @classmethod
    def _empty(
        cls,
        shape: Sequence[int],
        *,
        dtype: Any = None,
        index_dtype: Any = "int32",
        n_dense: int = 0,
        n_batch: int = 0,
        nse: int = 0,
    ) -> BCOO:
        shape = index_tuple(shape, "BCOO", "shape")
        n_sparse = len(shape) - n_dense - n_batch
        if min(n_sparse, n_batch, n_dense, nse) < 0:
            raise ShapeError(
                f"BCOO: n_batch, n_dense and nse must be at least 0, and no more than the axes "
                f"together; got {n_batch}, {n_dense}, {nse} for shape {shape}."
            )
        batch, rest = shape[:n_batch], shape[n_batch:]
        padding = padding_indices(rest[:n_sparse], dtypes.canonicalize(np.dtype(index_dtype)))
        data = jnp.zeros((*batch, nse, *rest[n_sparse:]), dtype)
        indices = jnp.broadcast_to(padding, (*batch, nse, n_sparse))
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(
        cls,
        N: int,
        M: int,
        k: int,
        *,
        dtype: Any = None,
        index_dtype: Any = "int32",
        n_batch: int = 0,
        n_dense: int = 0,
    ) -> BCOO:
        count = max(0, min(N + min(k, 0), M - max(k, 0)))
        rows = np.arange(count) + max(-k, 0)
        indices = np.stack([rows, rows + k], axis=1)
        indices = indices.astype(dtypes.canonicalize(np.dtype(index_dtype)))
        data = jnp.ones(count, dtype)
        out = cls((data, indices), shape=(N, M), indices_sorted=True, unique_indices=True)
        if not n_batch and not n_dense:
            return out
        return bcoo_fromdense(out.todense(), n_batch=n_batch, n_dense=n_dense)

    def todense(self) -> Array:
        """The dense array."""
        return entries.bcoo_todense(self)

    def sort_indices(self) -> BCOO:
        """The array with its entries in the order of their indices."""
        return entries.bcoo_sort_indices(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The array with entries at one place added up, and without those that are zero.

        Args:
          nse: how many entries to make room for; needed within jit.
          remove_zeros: whether entries that are zero before the sum are left out.
        """
        mat = entries.drop_zeros(self) if remove_zeros else self
        return entries.bcoo_sum_duplicates(mat, nse=nse)

    def update_layout(
        self,
        *,
        n_batch: int | None = None,
        n_dense: int | None = None,
        on_inefficient: str | None = "error",
    ) -> BCOO:
        """See `bcoo_update_layout`."""
        return entries.bcoo_update_layout(
            self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient
        )

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """The array with its axes permuted, by default in reverse order."""
        return shaping.bcoo_transpose(self, permutation=self.order_axes(axes))

    def reshape(self, *args: Any, **kwargs: Any) -> BCOO:
        """Return the array in another shape; one size may be -1."""
        sizes = args[0] if len(args) == 1 and not isinstance(args[0], int | np.integer) else args
        sizes = list(index_tuple(kwargs.get("shape", sizes), "reshape", "shape"))
        if sizes.count(-1) == 1:
            known = -math.prod(sizes)
            sizes[sizes.index(-1)] = self.size // known if known else 0
        return shaping.bcoo_reshape(self, new_sizes=sizes)


def bcoo_fromdense(
    mat: Any,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: Any = np.int32,
) -> BCOO:
    """Return a BCOO of the elements of a dense array that are not zero.

    Args:
      mat: a dense array.
      nse: the number of entries (in each batch) that it has room for; the rest is padding. None,
        the default, counts them. It must be given under `jit`.
      n_batch: the number of leading axes that are batch axes. The default is 0.
      n_dense: the number of trailing axes that are stored in full. The default is 0.
      index_dtype: the dtype of the indices. The default is int32.

    Returns:
      A BCOO of the shape and dtype of `mat`.

    Raises:
      ConcretizationTypeError: the array is traced, and `nse` is None.

    >>> mat = sparse.bcoo_fromdense(jnp.array([[0, 7], [0, 0]]), nse=2)
    >>> print(mat.data, *mat.indices)
    [7 0] [0 1] [2 2]
    """
    mat = jnp.asarray(mat)
    pair = entries.find_entries("bcoo_fromdense", mat, nse, n_batch, n_dense, index_dtype)
    return BCOO(pair, shape=mat.shape, indices_sorted=True, unique_indices=True)
