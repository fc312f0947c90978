"""`COO`, `CSR` and `CSC`: matrices in three formats, without batches or blocks.

They are older than `BCOO` and `BCSR`, which do more; a product with a dense array is as quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import numpy as jnp
from weft.errors import ShapeError
from weft.experimental.sparse.base import CoordinateArray, JAXSparse
from weft.experimental.sparse.bcoo import BCOO
from weft.experimental.sparse.bcsr import BCSR
from weft.experimental.sparse.operators import SparseOperators
from weft.numpy.promotion import as_array
from weft.primitives.families import index_tuple
from weft.pytrees import register_pytree_node_class
from weft.util import name_function
from weft.xla.typing import Array


class COOInfo(NamedTuple):
    """The facts of a COO: its shape, and whether its rows and its columns are sorted."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


class Matrix(SparseOperators):
    """The base of the three formats."""

    __slots__ = ("first", "second")

    parts = ("indices", "indptr")  # the names of its arrays beside the data
    n_batch = n_dense = 0

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]):
        name = type(self).__name__
        if not isinstance(args, tuple | list) or len(args) != 3:
            names = ", ".join(("data", *self.parts))
            raise TypeError(f"{name}: must be given ({names}); got {args!r:.80}.")
        self.data, self.first, self.second = (jnp.asarray(x) for x in args)
        self.shape = index_tuple(shape, name, "shape")
        if len(self.shape) != 2:
            raise ShapeError(f"{name}: must have two axes; got shape {self.shape}.")

    @property
    def _bufs(self) -> tuple:
        return self.data, self.first, self.second

    def tree_flatten(self) -> tuple[tuple, Any]:
        return self._bufs, self.shape

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Any:
        out = object.__new__(cls)
        out.data, out.first, out.second = children
        out.shape = aux_data
        return out

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> Any:
        """The entries of a dense matrix that are not zero; see `bcoo_fromdense`."""
        mat = as_array(mat, f"{cls.__name__}.fromdense")
        if mat.ndim != 2:
            raise ShapeError(f"{cls.__name__}.fromdense: must have two axes; got {mat.aval}.")
        return cls.from_bcoo(BCOO.fromdense(mat, nse=nse, index_dtype=index_dtype))

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None) -> Any:
        """The same matrix as one of scipy.sparse, of any format."""
        return cls.from_bcoo(BCOO.from_scipy_sparse(mat, index_dtype=index_dtype))

    def to_scipy_sparse(self) -> Any:
        """The same matrix in scipy.sparse, in its format of this name; on the host."""
        return self.to_bcoo().to_scipy_sparse().asformat(type(self).__name__.lower())

    @classmethod
    def from_bcoo(cls, arr: CoordinateArray) -> Any:
        """The same matrix as a BCOO."""
        raise NotImplementedError

    @classmethod
    def convert_back(cls, arr: CoordinateArray) -> Any:
        """Return the result of an operation: of this class if it is a matrix."""
        return cls.from_bcoo(arr) if (arr.n_batch, arr.n_sparse, arr.n_dense) == (0, 2, 0) else arr

    def to_bcoo(self) -> BCOO:
        """The same matrix as a BCOO."""
        raise NotImplementedError

    def todense(self) -> Array:
        """The dense matrix."""
        return self.to_bcoo().todense()


@register_pytree_node_class
class COO(Matrix):
    """A sparse matrix in coordinate form: each entry has a row and a column. It is a pytree.

    Args:
      args: a tuple (data, rows, columns) of arrays of shape (nse,), or of sequences.
      shape: the shape of the matrix, two ints.
      rows_sorted: a promise that the rows ascend. The default is False.
      cols_sorted: a promise that the columns ascend. The default is False.

    >>> mat = sparse.COO(([1.0, 2.0], [0, 1], [1, 0]), shape=(2, 2))
    >>> print(mat @ jnp.array([1.0, 10.0]))
    [10.  2.]
    """

    __slots__ = ("_cols_sorted", "_rows_sorted")
    parts = ("row", "col")
    row = property(lambda self: self.first, doc="The row of each entry.")
    col = property(lambda self: self.second, doc="The column of each entry.")

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        rows_sorted: bool = False,
        cols_sorted: bool = False,
    ):
        super().__init__(args, shape=shape)
        self._rows_sorted, self._cols_sorted = bool(rows_sorted), bool(cols_sorted)
        if not self.data.shape == self.row.shape == self.col.shape or self.data.ndim != 1:
            raise ShapeError(
                "COO: data, row and col must be [nse]; got "
                f"{self.data.aval}, {self.row.aval}, {self.col.aval}."
            )

    @property
    def _info(self) -> COOInfo:
        return COOInfo(self.shape, self._rows_sorted, self._cols_sorted)

    def tree_flatten(self) -> tuple[tuple, Any]:
        return self._bufs, self._info

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> COO:
        out = super().tree_unflatten(aux_data[0], children)
        _, out._rows_sorted, out._cols_sorted = aux_data
        return out

    @classmethod
    def from_bcoo(cls, arr: CoordinateArray) -> COO:
        """The same matrix as a BCOO."""
        args = arr.data, arr.indices[:, 0], arr.indices[:, 1]
        return cls(args, shape=arr.shape, rows_sorted=arr.indices_sorted)

    def to_bcoo(self) -> BCOO:
        """The same matrix as a BCOO."""
        return BCOO((self.data, jnp.stack([self.row, self.col], axis=1)), shape=self.shape)

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """The matrix with its axes permuted, by default in reverse order."""
        if self.order_axes(axes) == (0, 1):
            return self
        given = {"rows_sorted": self._cols_sorted, "cols_sorted": self._rows_sorted}
        return COO((self.data, self.col, self.row), shape=self.shape[::-1], **given)


@register_pytree_node_class
class CSR(Matrix):
    """A sparse matrix in compressed rows. It is a pytree.

    Args:
      args: a tuple (data, indices, indptr) of arrays or sequences. `data` and `indices`, the
        columns of the entries, are of shape (nse,). Row i holds the entries from indptr[i] to
        indptr[i + 1].
      shape: the shape of the matrix, two ints.

    >>> mat = sparse.CSR(([1.0, 2.0], [1, 0], [0, 1, 2]), shape=(2, 2))
    >>> print(mat @ jnp.array([1.0, 10.0]))
    [10.  2.]
    """

    __slots__ = ()
    indices = property(lambda self: self.first, doc="The column of each entry.")
    indptr = property(lambda self: self.second, doc="Where each row begins, and the last ends.")

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]):
        super().__init__(args, shape=shape)
        self.as_bcsr()  # checks

    def as_bcsr(self) -> BCSR:
        """The same matrix as a BCSR: of the same arrays."""
        return BCSR(self._bufs, shape=self.shape)

    @classmethod
    def from_bcoo(cls, arr: CoordinateArray) -> CSR:
        """The same matrix as a BCOO."""
        return cls(BCSR.from_bcoo(arr)._bufs, shape=arr.shape)

    def to_bcoo(self) -> BCOO:
        """The same matrix as a BCOO."""
        return self.as_bcsr().to_bcoo()

    def contract(self, pair: Sequence[Any], params: Any) -> Any:
        """Do as `BCSR.contract` does."""
        lhs, rhs = pair
        if lhs is not self or isinstance(rhs, JAXSparse):
            return None
        mat = self.as_bcsr()
        return mat.contract((mat, rhs), params)

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The matrix with its axes permuted, by default in reverse order: a CSC."""
        if self.order_axes(axes) == (0, 1):
            return self
        return CSC(self._bufs, shape=self.shape[::-1])


@register_pytree_node_class
class CSC(Matrix):
    """A sparse matrix in compressed columns. It is a pytree.

    Args:
      args: a tuple (data, indices, indptr) of arrays or sequences. `data` and `indices`, the rows
        of the entries, are of shape (nse,). Column j holds the entries from indptr[j] to indptr[j +
        1].
      shape: the shape of the matrix, two ints.

    >>> mat = sparse.CSC(([2.0, 1.0], [1, 0], [0, 1, 2]), shape=(2, 2))
    >>> print(mat @ jnp.array([1.0, 10.0]))
    [10.  2.]
    """

    __slots__ = ()
    indices = property(lambda self: self.first, doc="The row of each entry.")
    indptr = property(lambda self: self.second, doc="Where each column begins, and the last ends.")

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]):
        super().__init__(args, shape=shape)
        self.transpose()  # checks

    @classmethod
    def from_bcoo(cls, arr: CoordinateArray) -> CSC:
        """The same matrix as a BCOO."""
        return CSR.from_bcoo(arr.transpose()).transpose()

    def to_bcoo(self) -> BCOO:
        """The same matrix as a BCOO."""
        return self.transpose().to_bcoo().transpose()

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The matrix with its axes permuted, by default in reverse order: a CSR."""
        if self.order_axes(axes) == (0, 1):
            return self
        return CSR(self._bufs, shape=self.shape[::-1])


def define_functions(cls: Any) -> list:
    """The functions of a format: from dense, to dense, products with a vector and a matrix."""
    name = cls.__name__.lower()

    def fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> Any:
        return cls.fromdense(mat, nse=nse, index_dtype=index_dtype)

    def todense(mat: Any) -> Array:
        return mat.todense()

    def matvec(mat: Any, v: Any, transpose: bool = False) -> Any:
        return multiply_by(f"{name}_matvec", mat, v, 1, transpose)

    def matmat(mat: Any, B: Any, *, transpose: bool = False) -> Any:
        return multiply_by(f"{name}_matmat", mat, B, 2, transpose)

    functions = (fromdense, todense, matvec, matmat)
    return [
        name_function(fun, f"{name}_{fun.__name__}", doc.format(kind=cls.__name__, name=name))
        for fun, doc in zip(functions, DOCS, strict=True)
    ]


DOCS = (
    """Return a {kind} of the elements of a dense matrix that are not zero.

    Args:
      mat: a dense matrix.
      nse: the number of entries that it has room for; the rest is padding. None, the default,
        counts them. It must be given under `jit`.
      index_dtype: the dtype of the indices. The default is int32.

    Returns:
      A {kind} of the shape and dtype of `mat`.

    >>> sparse.{name}_fromdense(jnp.eye(2)).nse
    2
    """,
    """Return the dense matrix of a {kind}.

    Args:
      mat: a {kind}.

    Returns:
      A dense array of its shape and dtype.

    >>> print(sparse.{name}_todense(sparse.{kind}.fromdense(jnp.eye(2))))
    [[1. 0.]
     [0. 1.]]
    """,
    """Multiply a {kind}, or its transpose, by a dense vector.

    Args:
      mat: a {kind} of shape (m, n).
      v: a dense vector of shape (n,), or (m,) for the transpose.
      transpose: if True, the transpose of the matrix is multiplied. The default is False.

    Returns:
      A dense vector.

    >>> print(sparse.{name}_matvec(sparse.{kind}.fromdense(2 * jnp.eye(2)), jnp.ones(2)))
    [2. 2.]
    """,
    """Multiply a {kind}, or its transpose, by a dense matrix.

    Args:
      mat: a {kind} of shape (m, n).
      B: a dense matrix of shape (n, k), or (m, k) for the transpose.
      transpose: if True, the transpose of the sparse matrix is multiplied. The default is False.

    Returns:
      A dense matrix.

    >>> print(sparse.{name}_matmat(sparse.{kind}.fromdense(2 * jnp.eye(2)), jnp.ones((2, 1))))
    [[2.]
     [2.]]
    """,
)


def multiply_by(op: str, mat: Any, x: Any, ndim: int, transpose: bool) -> Any:
    """The product of a matrix or of its transpose and a dense array of a known rank."""
    x = as_array(x, op)
    if x.ndim != ndim:
        raise ShapeError(f"{op}: the dense operand must have {ndim} axes; got {x.aval}.")
    return (mat.transpose() if transpose else mat) @ x


coo_fromdense, coo_todense, coo_matvec, coo_matmat = define_functions(COO)
csr_fromdense, csr_todense, csr_matvec, csr_matmat = define_functions(CSR)
