"""`BCSR`: matrices stored row by row, in batches. Products with dense arrays are quickest so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft import numpy as jnp
from weft.errors import DtypeError, ShapeError
from weft.experimental.sparse import base, entries
from weft.experimental.sparse.bcoo import BCOO, bcoo_fromdense
from weft.experimental.sparse.operators import SparseOperators
from weft.experimental.sparse.products import bcoo_dot_general, read_dimensions
from weft.experimental.sparse.shaping import bcoo_broadcast_in_dim, bcoo_concatenate
from weft.experimental.sparse.transform import convert_results
from weft.numpy.promotion import as_array
from weft.primitives.families import index_tuple
from weft.primitives.sparse import csr_dot, expand_rows
from weft.pytrees import register_pytree_node_class
from weft.xla.typing import Array


@register_pytree_node_class
class BCSR(SparseOperators, base.BatchedArray):
    """A sparse matrix: data [*batch, nse, *dense] of columns `indices`, rows begun at `indptr`.

    Its first `n_batch` axes are batch axes, the next two are rows and columns, and the last
    `n_dense` belong to blocks that are stored completely. Row i holds the entries from indptr[i] to
    indptr[i + 1]; entries after the last row are padding. It is a pytree of its three arrays, like
    `BCOO`. Operations other than products convert it to a BCOO and their results back.

    Args:
      args: data, indices and indptr, arrays or array-likes.
      shape: the shape of the array.
      indices_sorted: if True, the caller promises that the indices of each row are sorted. The
        default is False.
      unique_indices: if True, the caller promises that no index of a row repeats. The default is
        False.

    Raises:
      ShapeError: the arrays and the shape do not fit.

    >>> mat = sparse.BCSR(([1.0, 2.0], [1, 0], [0, 1, 2]), shape=(2, 2))
    >>> print(mat @ jnp.array([1.0, 10.0]))
    [10.  2.]
    """

    __slots__ = ("indptr",)

    arrays = ("data", "indices", "indptr")
    own = 1
    n_sparse = 2

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        if not isinstance(args, tuple | list) or len(args) != 3:
            raise TypeError(f"BCSR: must be given (data, indices, indptr); got {args!r:.80}.")
        self.data, self.indices, self.indptr = (jnp.asarray(x) for x in args)
        self.shape = index_tuple(shape, "BCSR", "shape")
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        data, indices, indptr = self.data, self.indices, self.indptr
        if not (dtypes.is_integer(indices.dtype) and dtypes.is_integer(indptr.dtype)):
            raise DtypeError(
                f"BCSR: indices and indptr must be integers; got {indices.aval}, {indptr.aval}."
            )
        n = indices.ndim - 1
        batch, nse, dense = self.shape[:n], indices.shape[-1:], self.shape[n + 2 :]
        fits = len(self.shape) >= n + 2 and data.shape == (*batch, *nse, *dense)
        fits = fits and indices.shape == (*batch, *nse)
        if not fits or indptr.shape != (*batch, self.shape[n] + 1):
            raise ShapeError(
                "BCSR: data must be [*batch, nse, *dense], indices [*batch, nse] and indptr "
                f"[*batch, rows + 1] for a shape [*batch, rows, columns, *dense]; got {data.aval}, "
                f"{indices.aval}, {indptr.aval} and {self.shape}."
            )

    @classmethod
    def fromdense(
        cls,
        mat: Any,
        *,
        nse: int | None = None,
        index_dtype: Any = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCSR:
        """See `bcsr_fromdense`."""
        return bcsr_fromdense(
            mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
        )

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """A BCSR of a matrix of scipy.sparse, of any format; dtypes are canonicalized.

        >>> import scipy.sparse
        >>> sparse.BCSR.from_scipy_sparse(scipy.sparse.eye_array(3, dtype=np.float32))
        BCSR(float32[3, 3], nse=3)
        """
        mat = mat.tocsr()
        dtype = base.read_index_dtype(cls, mat.indices, index_dtype, n_dense, n_batch)
        args = mat.data, mat.indices.astype(dtype), mat.indptr.astype(dtype)
        return cls(args, shape=mat.shape)

    def to_scipy_sparse(self) -> Any:
        """The same matrix as a `scipy.sparse.csr_array`, without padding; on the host."""
        return self.to_bcoo().to_scipy_sparse().tocsr()

    @classmethod
    def from_bcoo(cls, arr: base.CoordinateArray) -> BCSR:
        """A BCSR of a BCOO with two axes that indices count along."""
        if arr.n_sparse != 2:
            raise ShapeError(
                f"BCSR.from_bcoo: the array must have two sparse axes; got {arr!r}. "
                "Hint: x.update_layout(n_batch=..., n_dense=...)."
            )
        unique = arr.unique_indices
        arr = arr if arr.indices_sorted else entries.bcoo_sort_indices(arr)
        rows, columns = arr.sparse_shape

        def compress(indices: Any) -> tuple[Any, Any]:
            dtype = indices.dtype
            found = jnp.where(indices[:, 0] < rows, indices[:, 0], rows).astype(dtype)
            starts = jnp.searchsorted(found, np.arange(rows + 1, dtype=dtype)).astype(dtype)
            return jnp.where(found < rows, indices[:, 1], columns).astype(dtype), starts

        pair = base.map_batches(compress, arr.n_batch, arr.indices)
        return cls((arr.data, *pair), shape=arr.shape, indices_sorted=True, unique_indices=unique)

    @classmethod
    def convert_back(cls, arr: base.CoordinateArray) -> Any:
        """Return the result of an operation: a BCSR where it has two axes of indices."""
        return cls.from_bcoo(arr) if arr.n_sparse == 2 else arr

    def to_bcoo(self) -> BCOO:
        """The same array as a BCOO."""
        return BCOO(
            (self.data, expand_rows(self.indices, self.indptr)),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    def todense(self) -> Array:
        """The dense array."""
        return bcsr_todense(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Do as `BCOO.sum_duplicates` does."""
        mat = self.to_bcoo()
        return self.from_bcoo(
            entries.bcoo_sum_duplicates(entries.drop_zeros(mat) if remove_zeros else mat, nse=nse)
        )

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with its axes permuted, by default in reverse order."""
        return self.convert_back(self.to_bcoo().transpose(axes))

    def contract(self, pair: Sequence[Any], params: Any) -> Any:
        """The contraction of columns of this, the first of a pair, with a dense one; or None."""
        lhs, rhs = pair
        (lc, rc), (lb, rb) = params["dimension_numbers"]
        n = self.n_batch
        plain = lhs is self and not isinstance(rhs, base.JAXSparse) and not self.n_dense
        if not plain or list(lc) != [n + 1] or list(lb) != list(range(n)):
            return None
        rhs = as_array(rhs, "bcsr_dot_general")
        lc, rc, lb, rb = read_dimensions("bcsr_dot_general", ((lc, rc), (lb, rb)), lhs, rhs)
        wanted = params.get("preferred_element_type")
        dtype = jnp.promote_types(lhs.dtype, rhs.dtype)
        made = dtype if wanted is None else dtypes.canonicalize(np.dtype(wanted))
        work = jnp.promote_types(dtype, made)
        work = np.dtype(np.int32) if dtypes.is_bool(work) else work
        rest = [a for a in range(rhs.ndim) if a not in rc and a not in rb]
        dense = jnp.transpose(rhs, [*rb, *rc, *rest]).astype(work)
        tail = dense.shape[n + 1 :]
        dense = dense.reshape(*dense.shape[: n + 1], math.prod(tail))
        index = np.promote_types(self.indices.dtype, self.indptr.dtype)
        places = self.indices.astype(index), self.indptr.astype(index)
        out = base.map_batches(csr_dot, n, self.data.astype(work), dense, *places)
        return out.reshape(*out.shape[:-1], *tail).astype(made)


def bcsr_fromdense(
    mat: Any,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: Any = np.int32,
) -> BCSR:
    """Return a BCSR of the elements of a dense array that are not zero.

    Args:
      mat: a dense array.
      nse: the number of entries (in each batch) that it has room for; the rest is padding. None,
        the default, counts them. It must be given under `jit`.
      n_batch: the number of leading axes that are batch axes. The default is 0.
      n_dense: the number of trailing axes that are stored in full. The default is 0.
      index_dtype: the dtype of the indices. The default is int32.

    Returns:
      A BCSR of the shape and dtype of `mat`.

    >>> sparse.bcsr_fromdense(jnp.eye(3))
    BCSR(float32[3, 3], nse=3)
    """
    mat = jnp.asarray(mat)
    if mat.ndim - n_batch - n_dense != 2:
        raise ShapeError(
            "bcsr_fromdense: two axes must be left beside n_batch and n_dense; got "
            f"{n_batch} and {n_dense} for {mat.aval}."
        )
    found = bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return BCSR.from_bcoo(found)


def bcsr_todense(mat: BCSR) -> Array:
    """Return the dense array of a BCSR.

    Args:
      mat: a BCSR.

    Returns:
      A dense array of its shape and dtype.

    >>> print(sparse.bcsr_todense(sparse.BCSR.fromdense(jnp.eye(2))))
    [[1. 0.]
     [0. 1.]]
    """
    return entries.bcoo_todense(mat.to_bcoo())


def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Any:
    """Read the elements of a dense array at the positions of a BCSR.

    Args:
      indices: the columns of the entries, an integer array of shape (nse,).
      indptr: the first entry of each row, an integer array of shape (rows + 1,).
      mat: a dense array of shape (rows, columns).

    Returns:
      An array of shape (nse,): the data of that BCSR.

    >>> x = jnp.arange(4.0).reshape(2, 2)
    >>> print(sparse.bcsr_extract(jnp.array([1, 0]), jnp.array([0, 1, 2]), x))
    [1. 2.]
    """
    mat, indices, indptr = (as_array(x, "bcsr_extract") for x in (mat, indices, indptr))
    places = expand_rows(indices, indptr)
    return base.map_batches(entries.take_entries, indices.ndim - 1, mat, places)


def bcsr_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Multiply a BCSR by a dense array or by another BCSR, as `lax.dot_general` does.

    Args:
      lhs: a BCSR or a dense array.
      rhs: a BCSR or a dense array. At least one of the two is a BCSR.
      dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`.
      precision: a `Precision`. None is the default.
      preferred_element_type: the dtype of the result. None takes it from the operands.
      out_sharding: the sharding of a dense result over explicit axes of a mesh. None derives it.

    Returns:
      A dense array; a BCSR if both operands are BCSRs.

    >>> mat, numbers = sparse.BCSR.fromdense(2 * jnp.eye(2)), (([1], [0]), ([], []))
    >>> print(sparse.bcsr_dot_general(mat, jnp.ones(2), dimension_numbers=numbers))
    [2. 2.]
    """
    given = {
        "dimension_numbers": dimension_numbers,
        "preferred_element_type": preferred_element_type,
    }
    found = lhs.contract((lhs, rhs), given) if isinstance(lhs, BCSR) else None
    if found is not None:
        return found
    pair = [x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs)]
    return convert_results([lhs, rhs], [bcoo_dot_general(*pair, **given)])[0]


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCSR:
    """Repeat a BCSR along new axes and along axes of size 1, as `lax.broadcast_in_dim` does.

    Args:
      mat: a BCSR.
      shape: the shape of the result.
      broadcast_dimensions: for each axis of `mat`, its position in the result.
      sharding: it must be None, the default.

    Returns:
      A BCSR of that shape.

    >>> mat = sparse.BCSR.fromdense(jnp.eye(3))
    >>> sparse.bcsr_broadcast_in_dim(mat, shape=(2, 3, 3), broadcast_dimensions=(1, 2))
    BCSR(float32[2, 3, 3], nse=3, n_batch=1)
    """
    found = bcoo_broadcast_in_dim(
        mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions
    )
    return BCSR.from_bcoo(found)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Join BCSRs along an axis.

    Args:
      operands: a sequence of BCSRs with equal numbers of batch axes and dense axes.
      dimension: the axis, an int.

    Returns:
      A BCSR.

    >>> mat = sparse.BCSR.fromdense(jnp.eye(3))
    >>> sparse.bcsr_concatenate([mat, mat], dimension=1)
    BCSR(float32[3, 6], nse=6)
    """
    return BCSR.from_bcoo(bcoo_concatenate([x.to_bcoo() for x in operands], dimension=dimension))


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Add up the entries of a BCSR that have the same position.

    Args:
      mat: a BCSR.
      nse: the number of entries that the result has room for. None, the default, counts the
        positions. It must be given under `jit`.

    Returns:
      A BCSR with sorted indices and without duplicates.

    >>> sparse.bcsr_sum_duplicates(sparse.BCSR(([1, 2], [1, 1], [0, 2]), shape=(1, 2)))
    BCSR(int32[1, 2], nse=1)
    """
    return mat.sum_duplicates(nse, remove_zeros=False)
