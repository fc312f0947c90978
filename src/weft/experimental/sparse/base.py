"""The base of sparse arrays: `JAXSparse`, the arrays of BCOO, errors, and maps over batches.

A sparse array is a pytree of arrays: the values of its entries, and where they are. What tells its
structure beside them is static, so that programs are compiled for a shape and a number of entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft import numpy as jnp
from weft.api.vmap import vmap
from weft.core.trace import Tracer
from weft.errors import ConcretizationTypeError, DtypeError, ShapeError
from weft.numpy.promotion import axes_of
from weft.primitives.families import index_tuple
from weft.xla.typing import Array


class SparseEfficiencyError(ValueError):
    """A change of layout would store much more than the array has entries.

    >>> mat = sparse.BCOO.fromdense(jnp.eye(3))
    >>> sparse.bcoo_update_layout(mat, n_batch=1)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    weft.experimental.sparse.base.SparseEfficiencyError: more would be stored.
    """


class SparseEfficiencyWarning(UserWarning):
    """An operation on a sparse array is slow, or takes much memory.

    >>> issubclass(sparse.SparseEfficiencyWarning, UserWarning)
    True
    """


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """The warning of JAX that a product on a GPU runs without cuSPARSE. weft never emits it.

    >>> issubclass(sparse.CuSparseEfficiencyWarning, UserWarning)
    True
    """


class SparseInfo(NamedTuple):
    """The facts of a sparse array: its shape, and whether its indices are sorted and unique."""

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


class JAXSparse:
    """The base class of sparse arrays: `isinstance(x, sparse.JAXSparse)` is true for every format.

    >>> isinstance(sparse.BCOO.fromdense(jnp.eye(2)), sparse.JAXSparse)
    True
    """

    __slots__ = ("__weakref__", "data", "ranks", "shape")
    __array_priority__ = 1000
    __array_ufunc__ = None  # NumPy's arrays leave binary operators to us

    data: Any
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of elements, stored or not."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements."""
        return self.data.dtype

    @property
    def nse(self) -> int:
        """Return the number of stored elements, with padding (in each batch)."""
        return self.data.shape[0]

    @property
    def T(self) -> Any:
        """The array with its axes in reverse order."""
        return self.transpose()

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        raise NotImplementedError

    def order_axes(self, axes: Sequence[int] | None) -> tuple[int, ...]:
        """Return the order that `transpose` is asked for: every axis once, by default reversed."""
        order = axes_of("transpose", axes, self.ndim)
        if len(order) != self.ndim:
            raise ShapeError(
                f"transpose: axes must name every axis once; got {tuple(axes)} for {self!r}."
            )
        return order[::-1] if axes is None else order

    def todense(self) -> Array:
        raise NotImplementedError

    def tree_flatten(self) -> tuple[tuple, Any]:
        raise NotImplementedError

    def block_until_ready(self) -> JAXSparse:
        """Wait for the computation of the stored arrays; return this array."""
        for x in self.tree_flatten()[0]:
            x.block_until_ready()
        return self

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"len(): needs an array with an axis; got {self!r}.")
        return self.shape[0]

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"numpy: a sparse array is not made dense unasked; got {self!r}. {DENSE}")

    def __bool__(self) -> bool:
        raise TypeError(f"bool(): must be of one element, not of a sparse array; got {self!r}.")

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            more = "".join(
                f", {k}={v}" for k in ("n_batch", "n_dense") if (v := getattr(self, k, 0))
            )
            return f"{name}({self.dtype.name}{[*self.shape]}, nse={self.nse}{more})"
        except (AttributeError, IndexError, TypeError):  # a pytree of something else
            return f"{name}({', '.join(map(repr, self.tree_flatten()[0]))})"


DENSE = "Hint: x.todense()."


class BatchedArray(JAXSparse):
    """The base of `BCOO` and `BCSR`: batches, and promises on indices.

    `arrays` are the names of the arrays they hold; the last one has `own` axes beside batches.
    """

    __slots__ = ("indices", "indices_sorted", "unique_indices")

    indices: Any
    arrays: tuple[str, ...] = ("data", "indices")
    own = 2

    @property
    def n_batch(self) -> int:
        """The number of axes of batches, which come first."""
        return self.indices.ndim - self.own

    @property
    def n_dense(self) -> int:
        """The number of axes that are stored whole, which come last."""
        return self.data.ndim - 1 - self.n_batch

    @property
    def nse(self) -> int:
        return self.indices.shape[-self.own]

    @property
    def _bufs(self) -> tuple:
        return tuple([getattr(self, name) for name in self.arrays])

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    def tree_flatten(self) -> tuple[tuple, Any]:
        return self._bufs, (self._info, *ranks_of(self._bufs, self))

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Any:
        info, *ranks = aux_data
        out = object.__new__(cls)
        out.ranks = ranks
        for name, x in zip(cls.arrays, children, strict=True):
            setattr(out, name, x)
        _, out.indices_sorted, out.unique_indices = info
        out.shape = follow_batches(cls.__name__, info.shape, ranks, children, own=cls.own)
        return out


class CoordinateArray(BatchedArray):
    """The arrays of a `BCOO`; the functions of this package make such of such.

    Shapes: data [*batch, nse, *dense], indices [*batch, nse, n_sparse]. The axes of the array are
    `n_batch` ones of batches, `n_sparse` that the indices count along, `n_dense` of dense blocks.
    """

    __slots__ = ()

    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        name = type(self).__name__
        if not isinstance(args, tuple | list) or len(args) != 2:
            raise TypeError(f"{name}: must be given a pair (data, indices); got {args!r:.80}.")
        self.data, self.indices = (jnp.asarray(x) for x in args)
        self.shape = index_tuple(shape, name, "shape")
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        self.check()

    def check(self) -> None:
        """Raise where data, indices and shape do not go together; batches of 1 are repeated."""
        name, data, indices, shape = type(self).__name__, self.data, self.indices, self.shape
        if not dtypes.is_integer(indices.dtype):
            raise DtypeError(f"{name}: indices must be integers; got {indices.aval}.")
        n_batch = indices.ndim - 2
        n_sparse = indices.shape[-1] if indices.ndim > 1 else -1
        n_dense = len(shape) - n_batch - n_sparse
        fits = min(n_batch, n_sparse, n_dense) >= 0 and data.ndim == n_batch + 1 + n_dense
        if fits:
            nse, batch = indices.shape[-2], shape[:n_batch]
            fits = data.shape[n_batch:] == (nse, *shape[n_batch + n_sparse :])
            for x in (data, indices):
                fits &= all(n in (1, b) for n, b in zip(x.shape, batch, strict=False))
        if not fits:
            raise ShapeError(
                f"{name}: data must be [*batch, nse, *dense] and indices [*batch, nse, n_sparse], "
                f"with the shape made of batch, sparse and dense axes; got data {data.aval}, "
                f"indices {indices.aval}, shape {shape}."
            )
        if data.shape[:n_batch] != batch:
            self.data = jnp.broadcast_to(data, (*batch, *data.shape[n_batch:]))
        if indices.shape[:n_batch] != batch:
            self.indices = jnp.broadcast_to(indices, (*batch, *indices.shape[n_batch:]))

    @property
    def n_sparse(self) -> int:
        """The number of axes that indices count along."""
        return self.indices.shape[-1]

    @property
    def sparse_shape(self) -> tuple[int, ...]:
        """The part of the shape that indices count along."""
        return self.shape[self.n_batch : self.n_batch + self.n_sparse]

    @property
    def dense_shape(self) -> tuple[int, ...]:
        """The part of the shape that is stored whole."""
        return self.shape[self.n_batch + self.n_sparse :]

    def make(
        self,
        data: Any,
        indices: Any = None,
        shape: Sequence[int] | None = None,
        *,
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> Any:
        """Return an array of the same class, with other data or with all parts replaced."""
        out = object.__new__(type(self))
        out.data = data
        if indices is None:
            indices, shape = self.indices, self.shape
            indices_sorted, unique_indices = self.indices_sorted, self.unique_indices
        out.indices, out.shape = indices, self.shape if shape is None else tuple(shape)
        out.indices_sorted, out.unique_indices = indices_sorted, unique_indices
        return out


def ranks_of(arrays: Sequence[Any], holder: Any = None) -> tuple:
    """The ranks of the arrays of a sparse one.

    What has no shape, as a placeholder of a transformation, has that which `holder` came with.
    """
    shapes = [getattr(x, "shape", None) for x in arrays]
    before = getattr(holder, "ranks", (None,) * len(shapes))
    return tuple([len(s) if type(s) is tuple else r for s, r in zip(shapes, before, strict=True)])


def follow_batches(
    name: str, shape: tuple[int, ...], ranks: Sequence[int | None], arrays: Sequence[Any], own: int
) -> tuple[int, ...]:
    """Return the shape of a sparse array whose arrays have gained or lost batch axes.

    `vmap`, `scan` and `tree_map` split a batch into elements, and join elements to a batch, in this
    way. `ranks` are the former ranks of the arrays; the last array, the indices, has `own` axes
    besides batch axes.
    """
    found = ranks_of(arrays)
    if None in found or None in ranks:
        return shape
    changes = {n - m for n, m in zip(found, ranks, strict=True)}
    if len(changes) != 1 or changes == {0}:
        return shape
    before, after = ranks[-1] - own, found[-1] - own
    if after < 0:
        raise ShapeError(
            f"{name}: only axes of batches can be mapped or taken away; got one with {before} of "
            f"them, of shape {shape}. Hint: x.update_layout(n_batch=1)."
        )
    return (*arrays[-1].shape[:after], *shape[before:])


def map_batches(fun: Callable, n_batch: int, *args: Any) -> Any:
    """A function of arrays mapped over the axes of batches that they begin with."""
    for _ in range(n_batch):
        fun = vmap(fun)
    return fun(*args)


def padding_indices(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """The indices of padding: one past the end along each axis."""
    return np.array(shape, dtype).reshape(len(shape))


def lay_along_last(vector: Any, ndim: int) -> Any:
    """Return a vector as an array of `ndim` axes, so that it goes with the last axis of others."""
    return vector.reshape(*[1] * (ndim - 1), vector.shape[0])


def mark_valid(indices: Any, shape: Sequence[int]) -> Any:
    """Return True for the indices [..., nse, n_sparse] of elements, and not of padding."""
    dtype = dtypes.canonicalize(np.promote_types(indices.dtype, np.int32))
    limits = np.minimum(np.array(shape, np.int64).reshape(len(shape)), np.iinfo(dtype).max)
    indices = indices.astype(dtype)
    limits = lay_along_last(limits.astype(dtype), indices.ndim)
    return jnp.all((indices >= 0) & (indices < limits), axis=-1)


def require_count(op: str, count: Any) -> int:
    """Return the number of entries, where it is known now."""
    if isinstance(count, Tracer):
        hint = "give nse, the number of entries to make room for."
        count = count.concrete(ConcretizationTypeError, f"{op}: nse", hint)
    return int(count)


def normalize_axes(op: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """Axes as a sorted tuple of non-negative integers."""
    given = index_tuple((axes,) if np.ndim(axes) == 0 else axes, op, "axes")
    found = tuple(sorted(a + ndim if a < 0 else a for a in given))
    if len(set(found)) < len(found) or not all(0 <= a < ndim for a in found):
        raise ShapeError(f"{op}: axes must be distinct ones of {ndim}; got {given}.")
    return found


def read_index_dtype(
    cls: type, indices: np.ndarray, index_dtype: Any, n_dense: int, n_batch: int
) -> np.dtype:
    """The dtype for the indices of a matrix of scipy.sparse, which has no batches or blocks."""
    if n_dense or n_batch:
        raise NotImplementedError(
            f"{cls.__name__}.from_scipy_sparse: n_dense and n_batch must be 0; got {n_dense}, "
            f"{n_batch}. Hint: BCOO.from_scipy_sparse(mat).update_layout(n_batch=...)."
        )
    return dtypes.canonicalize(np.dtype(indices.dtype if index_dtype is None else index_dtype))
