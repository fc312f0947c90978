"""Diagonals, triangles, grids of coordinates, and arrays made to be indices: eye, meshgrid, ix_."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.api.functions import check_callable
from weft.api.vmap import vmap
from weft.core.aval import check_extent, typeof
from weft.core.trace import Tracer
from weft.errors import (
    ConcretizationTypeError,
    InconclusiveDimensionOperation,
    IndexingError,
    ShapeError,
)
from weft.lax.values import put_on_device
from weft.numpy import creation
from weft.numpy.choice import literal_like
from weft.numpy.indexing import check_integer_indices, wrap_around
from weft.numpy.manipulation import GROUP, concatenate, diagonal, stack
from weft.numpy.promotion import (
    as_array,
    as_array_beside,
    check_axes_number,
    drop_weak_type,
    promote_operands,
    shape_of,
)
from weft.numpy.searching import nonzero
from weft.numpy.updates import repeat_vector
from weft.primitives import elementwise as ops
from weft.primitives import layout
from weft.primitives.cumulative import cumprod
from weft.primitives.dynamic_slicing import widen_index
from weft.primitives.elementwise import add, clamp, convert, div, gt, lt, mul, ne, rem, select, sub
from weft.primitives.families import check_integer
from weft.primitives.slicing import pad
from weft.run.operation import operation
from weft.util import check_option, has_symbolic_size
from weft.xla.array import array_from_host, host_view
from weft.xla.typing import Array, ArrayLike, DeviceLike, DTypeLike, Shape

# --- diagonals and triangles ----------------------------------------------------------------


def check_size(op: str, n: Any, default: int | None = None) -> int:
    """The number of rows or columns."""
    if n is None and default is not None:
        return default
    (size,) = shape_of(op, (n,))
    check_extent((size,), np.dtype(np.int64))
    return size


def make_offsets(shape: Sequence[int], k: Any) -> tuple[Any, Any]:
    """For each place of a matrix: its row plus k, and its column."""
    dtype = dtypes.default_int()
    ndim = len(shape)
    rows = layout.broadcasted_iota(dtype, shape, ndim - 2)
    columns = layout.broadcasted_iota(dtype, shape, ndim - 1)
    if not isinstance(k, int) or k:
        most = sum(shape[-2:])  # beyond it nothing changes, and the dtype may not hold it
        k = (
            layout.literal(min(max(k, -most), most), dtype)
            if isinstance(k, int)
            else ops.convert(as_array(k), dtype)
        )
        rows = ops.add(rows, k)
    return rows, columns


@operation(arrays=0)
def eye(
    N: int,
    M: int | None = None,
    k: int | ArrayLike = 0,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
) -> Array:
    """Make a matrix with ones on a diagonal and zeros elsewhere.

    With the defaults it is the identity matrix. Under `jit`, the sizes must be static; `k` may be
    traced.

    Args:
      N: the number of rows, an int.
      M: the number of columns, an int. None, the default, is `N`.
      k: the number of the diagonal, an int: 0, the default, is the main diagonal; positive numbers
        are above it, negative ones below.
      dtype: the dtype of the result. None, the default, is the default float dtype (float32, or
        float64 with enable_x64).
      device: a Device or a Sharding to put the result on. None, the default, is the default device.

    Returns:
      an array of shape (N, M).

    Raises:
      ShapeError: if a size is negative.
      TypeError: if a size is not an int.

    >>> jnp.eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    >>> jnp.eye(2, 3, k=1, dtype=int)
    Array([[0, 1, 0],
           [0, 0, 1]], dtype=int32)
    """
    found = creation.choose_dtype(dtype, dtypes.default_float, "eye")
    shape = (check_size("eye", N), check_size("eye", M, check_size("eye", N)))
    if type(k) is int and abs(k) < 2**31 and creation.is_written_by_host(shape):
        return put_on_device(array_from_host(np.eye(*shape, k, found), False), device)
    return put_on_device(write_diagonal(shape, k, found), device)


@operation(static=("shape", "dtype"), name="eye")
def write_diagonal(shape: tuple[int, int], k: Any, dtype: np.dtype) -> Any:
    """`eye`."""
    return ops.convert(ops.eq(*make_offsets(shape, k)), dtype)


@operation(arrays=0)
def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """Make an identity matrix.

    It is `eye` for square matrices.

    Args:
      n: the number of rows and columns, an int.
      dtype: the dtype of the result. None, the default, is the default float dtype (float32, or
        float64 with enable_x64).

    Returns:
      an array of shape (n, n).

    Raises:
      ShapeError: if a size is negative.

    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


@operation(arrays=0)
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Make a matrix with ones on and below a diagonal and zeros above.

    Multiplied with a matrix, it selects the lower triangle; `tril` does this in one step.

    Args:
      N: the number of rows, an int.
      M: the number of columns, an int. None, the default, is `N`.
      k: the number of the diagonal, an int: 0, the default, is the main diagonal; positive numbers
        are above it, negative ones below.
      dtype: the dtype of the result. None, the default, is the default float dtype (float32, or
        float64 with enable_x64).

    Returns:
      an array of shape (N, M).

    Raises:
      ShapeError: if a size is negative.

    >>> jnp.tri(3, k=-1)
    Array([[0., 0., 0.],
           [1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    found = creation.choose_dtype(dtype, dtypes.default_float, "tri")
    shape = (check_size("tri", N), check_size("tri", M, check_size("tri", N)))
    if type(k) is int and abs(k) < 2**31 and creation.is_written_by_host(shape):
        return put_on_device(array_from_host(np.tri(*shape, k, found), False), None)
    return ops.convert(ops.ge(*make_offsets(shape, k)), found)


@operation(static=("k",))
def tril(m: ArrayLike, k: int = 0) -> Array:
    """Return the lower triangles of matrices.

    Elements above a diagonal become zero. The function applies to each matrix of a stack. Under
    `jit`, `k` may be traced.

    Args:
      m: an array of shape (..., rows, columns) and any dtype.
      k: the number of the diagonal, an int: 0, the default, is the main diagonal; positive numbers
        are above it, negative ones below.

    Returns:
      an array with the shape and dtype of `m`.

    Raises:
      ShapeError: if `m` has fewer than two axes.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.arange(1, 7).reshape(2, 3)
    >>> jnp.tril(x)
    Array([[1, 0, 0],
           [4, 5, 0]], dtype=int32)
    >>> jnp.tril(x, k=1)
    Array([[1, 2, 0],
           [4, 5, 6]], dtype=int32)
    """
    return make_triangle("tril", ops.ge, m, k)


@operation(static=("k",))
def triu(m: ArrayLike, k: int = 0) -> Array:
    """Return the upper triangles of matrices.

    Elements below a diagonal become zero. The function applies to each matrix of a stack. Under
    `jit`, `k` may be traced.

    Args:
      m: an array of shape (..., rows, columns) and any dtype.
      k: the number of the diagonal, an int: 0, the default, is the main diagonal; positive numbers
        are above it, negative ones below.

    Returns:
      an array with the shape and dtype of `m`.

    Raises:
      ShapeError: if `m` has fewer than two axes.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.arange(1, 7).reshape(2, 3)
    >>> jnp.triu(x)
    Array([[1, 2, 3],
           [0, 5, 6]], dtype=int32)
    >>> jnp.triu(x, k=1)
    Array([[0, 2, 3],
           [0, 0, 6]], dtype=int32)
    """
    return make_triangle("triu", ops.le, m, k)


def make_triangle(op: str, inside: Callable, m: Any, k: int) -> Any:
    """Matrices with zeros on one side of a diagonal."""
    x = as_array(m, op)
    check_axes_number(op, x, 2)
    mask = inside(*make_offsets(x.shape[-2:], k))
    mask = layout.broadcast_in_dim(mask, x.shape, (x.ndim - 2, x.ndim - 1))
    return ops.select(mask, x, literal_like(False, x))


@operation(static=("k",))
def diag(v: ArrayLike, k: int = 0) -> Array:
    """Make a diagonal matrix of a vector, or return a diagonal of a matrix.

    For stacks of matrices, use `diagonal`. Under `jit`, `k` must be static.

    Args:
      v: a vector or a matrix of any dtype.
      k: the number of the diagonal, an int: 0, the default, is the main diagonal; positive numbers
        are above it, negative ones below.

    Returns:
      for a vector of n elements, a matrix of shape (n + abs(k), n + abs(k)) with zeros outside the
      diagonal. For a matrix, a vector. Both have the dtype of `v`.

    Raises:
      ShapeError: if `v` is not a vector or a matrix.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.arange(1, 7).reshape(2, 3)
    >>> jnp.diag(x)
    Array([1, 5], dtype=int32)
    >>> jnp.diag(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    >>> jnp.diag(jnp.array([1, 2]), k=1)
    Array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]], dtype=int32)
    """
    x, k = as_array(v, "diag"), check_integer("diag", "k", k)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError(f"diag: needs a vector or a matrix; got {x.aval}.")
    dtypes.inexact_dtype(x.dtype, "diag")  # refuses random keys, which have no zero
    before, after = max(0, -k), max(0, k)
    size = x.shape[0] + before + after
    column = pad(x, literal_like(False, x), [(before, after, 0)])
    shape = (size, size)
    column = layout.broadcast_in_dim(column, shape, (0,))
    return ops.select(ops.eq(*make_offsets(shape, k)), column, literal_like(False, x))


@operation(static=("k",))
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Make a diagonal matrix of all elements of an array.

    It is `diag` of the flattened array. Under `jit`, `k` must be static.

    Args:
      v: an array or scalar of any shape and dtype.
      k: the number of the diagonal, an int: 0, the default, is the main diagonal; positive numbers
        are above it, negative ones below.

    Returns:
      a matrix of shape (v.size + abs(k), v.size + abs(k)) and the dtype of `v`.

    Raises:
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.diagflat(jnp.array([[1, 2]]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    x = drop_weak_type(as_array(v, "diagflat"))
    return diag(layout.reshape(x, (x.size,)), k)


@operation(static=("wrap", "inplace"))
def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """Return a copy of an array with other values on its main diagonal.

    NumPy writes into its argument. Arrays of weft do not change: `inplace=False` must be given, and
    the result is a new array.

    Args:
      a: a matrix, or an array with more axes of equal sizes.
      val: a scalar, or an array. Its elements are repeated along the diagonal. They are converted
        to the dtype of `a`.
      wrap: True starts the diagonal of a tall matrix again, one row below its end. The default is
        False.
      inplace: must be False. The default, True, raises an error.

    Returns:
      an array with the shape and dtype of `a`.

    Raises:
      NotImplementedError: if `inplace` is True.
      ShapeError: if `a` has fewer than two axes, or more of different sizes.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 5, inplace=False)
    Array([[5., 0.],
           [0., 5.]], dtype=float32)
    >>> jnp.fill_diagonal(jnp.zeros((4, 2)), jnp.array([1, 2]), wrap=True, inplace=False)
    Array([[1., 0.],
           [0., 2.],
           [0., 0.],
           [1., 0.]], dtype=float32)
    """
    if inplace:
        raise NotImplementedError(
            "fill_diagonal: inplace must be False, for arrays do not change; got True. "
            "Hint: a = jnp.fill_diagonal(a, val, inplace=False)."
        )
    x = as_array(a, "fill_diagonal")
    value = as_array_beside("fill_diagonal", val, x)
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ShapeError(
            f"fill_diagonal: needs a matrix, or an array of equal sizes; got {x.aval}."
        )
    if has_symbolic_size(x.shape):
        if x.ndim > 2 or wrap or value.size != 1:
            raise InconclusiveDimensionOperation(
                "fill_diagonal: along symbolic sizes, needs a matrix and one number; got "
                f"{x.aval} and {value.aval}. Hint: jnp.where(jnp.eye(*a.shape, dtype=bool), b, a)."
            )
        number = ops.convert(layout.reshape(value, ()), x.dtype)
        return select(eye(*x.shape, dtype=bool), number, x)
    if x.ndim == 2:
        step = x.shape[1] + 1
        end = x.size if wrap else min(x.size, x.shape[1] * x.shape[1])
    else:
        step, end = int(sum(np.cumprod((1, *x.shape[:-1])))), x.size
    places = np.arange(0, end, step)
    flat = ops.convert(layout.reshape(value, (value.size,)), x.dtype)
    values = repeat_vector(flat, len(places))
    return layout.reshape(layout.reshape(x, (x.size,)).at[places].set(values), x.shape)


# --- positions ------------------------------------------------------------------------------


def find_mask_indices(mask: np.ndarray) -> tuple[Any, ...]:
    """Return the positions where a known mask holds, an array of indices for each axis."""
    return tuple(creation.array(i.astype(dtypes.default_int())) for i in np.nonzero(mask))


def clip_offset(op: str, k: Any, rows: int, columns: int) -> int:
    """The number of a diagonal, or of the nearest outside of the matrix."""
    return min(max(check_integer(op, "k", k, most=math.inf), -rows), columns)


@operation(arrays=0)
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return the indices of the lower triangle of a matrix.

    They index the elements on and below a diagonal: `x[tril_indices(n)]` is a vector of these
    elements. Under `jit`, all arguments must be static: they decide the shape of the result.

    Args:
      n: the number of rows, an int.
      k: the number of the diagonal, an int: 0, the default, is the main diagonal; positive numbers
        are above it, negative ones below.
      m: the number of columns, an int. None, the default, is `n`.

    Returns:
      a tuple of two vectors of the default integer dtype (int32, or int64 with enable_x64): row
      indices and column indices, in row-major order.

    Raises:
      ShapeError: if a size is negative.

    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = check_size("tril_indices", n), check_size("tril_indices", m, n)
    return find_mask_indices(
        np.tri(rows, columns, clip_offset("tril_indices", k, rows, columns), bool)
    )


@operation(arrays=0)
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return the indices of the upper triangle of a matrix.

    They index the elements on and above a diagonal: `x[triu_indices(n)]` is a vector of these
    elements. Under `jit`, all arguments must be static: they decide the shape of the result.

    Args:
      n: the number of rows, an int.
      k: the number of the diagonal, an int: 0, the default, is the main diagonal; positive numbers
        are above it, negative ones below.
      m: the number of columns, an int. None, the default, is `n`.

    Returns:
      a tuple of two vectors of the default integer dtype (int32, or int64 with enable_x64): row
      indices and column indices, in row-major order.

    Raises:
      ShapeError: if a size is negative.

    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    >>> jnp.triu_indices(2, k=1)
    (Array([0], dtype=int32), Array([1], dtype=int32))
    """
    rows, columns = check_size("triu_indices", n), check_size("triu_indices", m, n)
    return find_mask_indices(
        ~np.tri(rows, columns, clip_offset("triu_indices", k, rows, columns + 1) - 1, bool)
    )


def check_matrix_shape(op: str, x: Any) -> tuple[int, ...]:
    """The shape of a matrix."""
    shape = tuple(x.shape) if hasattr(x, "shape") else typeof(x, op).shape
    if len(shape) != 2:
        raise ShapeError(f"{op}: needs a matrix; got one of shape {shape}.")
    return shape


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of the lower triangle of a given matrix.

    It is `tril_indices` for the shape of an array. No element is read, so that `arr` may be traced.

    Args:
      arr: a matrix of any dtype.
      k: the number of the diagonal, an int: 0, the default, is the main diagonal; positive numbers
        are above it, negative ones below.

    Returns:
      a tuple of two vectors of the default integer dtype (int32, or int64 with enable_x64): row
      indices and column indices, in row-major order.

    Raises:
      ShapeError: if `arr` is not a matrix.

    >>> x = jnp.arange(1, 7).reshape(2, 3)
    >>> x[jnp.tril_indices_from(x)]
    Array([1, 4, 5], dtype=int32)
    """
    n, m = check_matrix_shape("tril_indices_from", arr)
    return tril_indices(n, k, m)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of the upper triangle of a given matrix.

    It is `triu_indices` for the shape of an array. No element is read, so that `arr` may be traced.

    Args:
      arr: a matrix of any dtype.
      k: the number of the diagonal, an int: 0, the default, is the main diagonal; positive numbers
        are above it, negative ones below.

    Returns:
      a tuple of two vectors of the default integer dtype (int32, or int64 with enable_x64): row
      indices and column indices, in row-major order.

    Raises:
      ShapeError: if `arr` is not a matrix.

    >>> x = jnp.arange(1, 7).reshape(2, 3)
    >>> x[jnp.triu_indices_from(x)]
    Array([1, 2, 3, 5, 6], dtype=int32)
    """
    n, m = check_matrix_shape("triu_indices_from", arr)
    return triu_indices(n, k, m)


@operation(arrays=0)
def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array.

    `x.at[diag_indices(n)]` updates the diagonal of an n by n matrix. Under `jit`, all arguments
    must be static: they decide the shape of the result.

    Args:
      n: the size of each axis, an int.
      ndim: the number of axes, an int. The default is 2.

    Returns:
      a tuple of `ndim` vectors of n indices, of the default integer dtype (int32, or int64 with
      enable_x64).

    Raises:
      ShapeError: if `n` is negative.

    >>> jnp.zeros((2, 2)).at[jnp.diag_indices(2)].set(5)
    Array([[5., 0.],
           [0., 5.]], dtype=float32)
    """
    ndim = check_integer("diag_indices", "ndim", ndim, 0, creation.MAX_AXES)
    return (creation.arange(check_size("diag_indices", n)),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of a given array.

    It is `diag_indices` for the shape of an array. No element is read, so that `arr` may be traced.

    Args:
      arr: an array with at least two axes, all of one size.

    Returns:
      a tuple of vectors of indices, one for each axis, of the default integer dtype (int32, or
      int64 with enable_x64).

    Raises:
      ShapeError: if `arr` has fewer than two axes, or axes of different sizes.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.diag_indices_from(jnp.zeros((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    x = as_array(arr, "diag_indices_from")
    if x.ndim < 2 or len(set(x.shape)) != 1:
        raise ShapeError(f"diag_indices_from: needs two or more axes of equal size; got {x.aval}.")
    return diag_indices(x.shape[0], x.ndim)


def mask_indices(
    n: int, mask_func: Callable, k: int = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """Return the indices of the elements that a function leaves nonzero in a matrix of ones.

    The function is one such as `triu` or `tril`. It is called once, with a matrix of ones and `k`,
    when the program is traced.

    Args:
      n: the number of rows and columns of the matrix, an int.
      mask_func: a function of a matrix and a number that returns a matrix.
      k: the number that is passed to the function. The default is 0.
      size: the number of places in the result, an int of at least 0. If there are more, the first
        ones are taken; if there are fewer, 0 follows. None, the default, takes all.

    Returns:
      a tuple of two vectors of the default integer dtype (int32, or int64 with enable_x64): row
      indices and column indices, in row-major order.

    Raises:
      ShapeError: if a size is negative.
      TypeError: if `mask_func` is not callable.

    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    >>> jnp.mask_indices(3, jnp.triu, 1, size=5)
    (Array([0, 0, 1, 0, 0], dtype=int32), Array([1, 2, 2, 0, 0], dtype=int32))
    """
    n = check_size("mask_indices", n)
    if not callable(mask_func):
        raise TypeError(f"mask_indices: mask_func must be a function; got {mask_func!r}.")
    mask = np.asarray(mask_func(np.ones((n, n), np.int32), k)) != 0
    rows, columns = np.nonzero(mask)
    if size is not None:
        size = check_integer("mask_indices", "size", size, 0)
        rows, columns = (np.pad(i[:size], (0, max(0, size - len(i)))) for i in (rows, columns))
    kind = dtypes.default_int()
    return creation.array(rows.astype(kind)), creation.array(columns.astype(kind))


# --- coordinates ----------------------------------------------------------------------------


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> Sequence[Array]:
    """Return the coordinates of a grid, given the coordinates along each axis.

    It serves to evaluate a function of several variables at all points of a grid.

    Args:
      xi: vectors of any dtype, one for each axis: the coordinates along it.
      copy: must be True, because arrays have no views; accepted for the signature of NumPy.
      sparse: True gives arrays of size 1 along all axes except their own, which broadcast to the
        grid. False, the default, gives arrays of the shape of the grid.
      indexing: "xy", the default, puts the first vector along the second axis and the second vector
        along the first axis, as for the pixels of an image. "ij" puts vector i along axis i.

    Returns:
      a list of arrays, one for each vector, of its dtype. Under jaxlib 0.12 it is a tuple, as in
      the JAX that belongs to it.

    Raises:
      ShapeError: if an argument is not a vector.
      ValueError: if `copy` is False or `indexing` is unknown.
      DtypeError: if the operand is a list or not numeric.

    >>> x, y = jnp.meshgrid(jnp.arange(3), jnp.arange(2))
    >>> x + 10 * y
    Array([[ 0,  1,  2],
           [10, 11, 12]], dtype=int32)
    >>> x, y = jnp.meshgrid(jnp.arange(2), jnp.arange(3), indexing="ij", sparse=True)
    >>> x, y
    (Array([[0],
           [1]], dtype=int32), Array([[0, 1, 2]], dtype=int32))
    """
    xs = [as_array(x, "meshgrid") for x in xi]
    if not copy:
        raise ValueError("meshgrid: copy must be True, for arrays have no views; got False.")
    check_option("meshgrid", "indexing", indexing, "xy", "ij")
    if any(x.ndim != 1 for x in xs):
        raise ShapeError(
            f"meshgrid: arguments must have one axis; got {', '.join(str(x.aval) for x in xs)}."
        )
    axes = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        axes[:2] = [1, 0]
    sizes = [0] * len(xs)
    for x, axis in zip(xs, axes, strict=True):
        sizes[axis] = x.shape[0]
    return GROUP(
        layout.broadcast_in_dim(
            x, [n if not sparse or i == axis else 1 for i, n in enumerate(sizes)], (axis,)
        )
        for x, axis in zip(xs, axes, strict=True)
    )


@operation(arrays=0)
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Array:
    """Return the index of each element of a grid along each axis.

    Under `jit`, all arguments must be static: they decide the shape of the result.

    Args:
      dimensions: the shape of the grid, a sequence of ints.
      dtype: the dtype of the result. None, the default, is the default integer dtype (int32, or
        int64 with enable_x64).
      sparse: True gives arrays of size 1 along all axes except their own, which broadcast to the
        grid. The default is False.

    Returns:
      an array of shape (number of axes, *dimensions). With `sparse`, a tuple of arrays, one for
      each axis.

    Raises:
      ShapeError: if a size is negative.

    >>> jnp.indices((2, 3))
    Array([[[0, 0, 0],
            [1, 1, 1]],
    <BLANKLINE>
           [[0, 1, 2],
            [0, 1, 2]]], dtype=int32)
    >>> jnp.indices((2, 3), sparse=True)
    (Array([[0],
           [1]], dtype=int32), Array([[0, 1, 2]], dtype=int32))
    """
    found = creation.choose_dtype(dtype, dtypes.default_int, "indices")
    sizes = shape_of("indices", dimensions)
    rank = len(sizes)
    if sparse:
        return tuple(
            layout.reshape(
                creation.arange(n, dtype=found), [n if j == i else 1 for j in range(rank)]
            )
            for i, n in enumerate(sizes)
        )
    grids = [layout.broadcasted_iota(found, sizes, i) for i in range(rank)]
    return stack(grids) if grids else layout.full((0,), 0, found)


def fromfunction(
    function: Callable, shape: Shape, *, dtype: DTypeLike = float, **kwargs: Any
) -> Any:
    """Make an array of the values of a function of the indices.

    Unlike in NumPy, the function is called with scalars, under `vmap`. For this reason, the result
    has an element for each place even if the function uses no index.

    Args:
      function: a function of one scalar for each axis that returns an array, or a pytree of arrays.
      shape: the shape of the grid, an int or a sequence of ints.
      dtype: the dtype of the indices. The default is the default float dtype.
      **kwargs: keyword arguments of the function.

    Returns:
      an array of the given shape; axes of the value of the function follow.

    Raises:
      TypeError: if `function` is not callable.
      ShapeError: if a size is negative.

    >>> jnp.fromfunction(lambda i, j: i + j, (2, 3), dtype=int)
    Array([[0, 1, 2],
           [1, 2, 3]], dtype=int32)
    >>> jnp.fromfunction(lambda i, j: 1.0, (2, 2))
    Array([[1., 1.],
           [1., 1.]], dtype=float32, weak_type=True)
    """
    sizes = shape_of("fromfunction", shape)
    check_callable("fromfunction", function)
    each = functools.partial(function, **kwargs)
    for k in reversed(range(len(sizes))):
        each = vmap(each, in_axes=tuple(0 if i == k else None for i in range(len(sizes))))
    return each(*(creation.arange(n, dtype=dtype) for n in sizes))


@operation(static=("N", "increasing"))
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Make a Vandermonde matrix: the powers of a vector as columns.

    It serves to fit and to evaluate polynomials. Under `jit`, `N` and `increasing` must be static.

    Args:
      x: a vector of n elements, of number or bool dtype.
      N: the number of columns, an int. None, the default, is n.
      increasing: True orders the columns from power 0 to N - 1. False, the default, puts the
        highest power first.

    Returns:
      an array of shape (n, N) and the dtype of `x`; bool becomes the default integer dtype.

    Raises:
      ShapeError: if `x` is not a vector, or `N` is negative.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.vander(jnp.array([1, 2, 3]))
    Array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]], dtype=int32)
    >>> jnp.vander(jnp.array([1, 2, 3]), 2, increasing=True)
    Array([[1, 1],
           [1, 2],
           [1, 3]], dtype=int32)
    """
    x = as_array(x, "vander")
    if x.ndim != 1:
        raise ShapeError(f"vander: needs a vector; got {x.aval}.")
    count = x.shape[0] if N is None else check_size("vander", N)
    x = ops.convert(x, dtypes.default_int()) if dtypes.is_bool(x.dtype) else x
    factors = [layout.full((x.size, min(count, 1)), 1, x.dtype)]
    if count > 1:
        factors.append(layout.broadcast_in_dim(x, (x.size, count - 1), (0,)))
    powers = cumprod(concatenate(factors, 1), 1)
    return powers if increasing else layout.rev(powers, (1,))


# --- index tricks ---------------------------------------------------------------------------


def read_span(s: slice) -> Any:
    """A slice as numbers: from start to stop by step, or in |step| parts where it is imaginary."""
    start = 0 if s.start is None else s.start
    step = 1 if s.step is None else s.step
    if s.stop is None:
        raise ValueError(f"mgrid: a slice must say where to stop; got {s}.")
    if isinstance(step, complex):
        return creation.linspace(start, s.stop, int(abs(step)))
    return creation.arange(start, s.stop, step)


class Grid:
    """A grid of coordinates that is written as slices: `mgrid[0:2, 0:3]`, or `ogrid[0:2, 0:3]`.

    A slice `start:stop:step` stands for `arange(start, stop, step)`. With an imaginary step, as in
    `0:1:5j`, it stands for 5 numbers from start to stop, both included. `mgrid` gives arrays of the
    shape of the grid, joined along a new first axis. `ogrid` gives a list of arrays of size 1 along
    all axes except their own (under jaxlib 0.12, a tuple). One slice gives a vector. All numbers
    must be known, not traced.

    Args:
      sparse: True for `ogrid`, False for `mgrid`.

    Raises:
      ValueError: if a slice has no stop.
      ZeroDivisionError: if a step is 0.

    >>> jnp.mgrid[0:2, 0:3]
    Array([[[0, 0, 0],
            [1, 1, 1]],
    <BLANKLINE>
           [[0, 1, 2],
            [0, 1, 2]]], dtype=int32)
    >>> x, y = jnp.ogrid[0:2, 0:3]
    >>> x + 10 * y
    Array([[ 0, 10, 20],
           [ 1, 11, 21]], dtype=int32)
    >>> jnp.mgrid[0:1:3j]
    Array([0. , 0.5, 1. ], dtype=float32)
    """

    def __init__(self, sparse: bool):
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return read_span(key)
        spans = promote_operands("mgrid", *[read_span(s) for s in key], shaped=False)
        grids = meshgrid(*spans, indexing="ij", sparse=self.sparse)
        return grids if self.sparse else stack(grids)


class Concatenator:
    """A way to join numbers, slices and arrays by indexing: `r_[1:3, 5]` and `c_[x, y]`.

    A slice stands for numbers, as in `mgrid`. `r_` joins along the first axis. `c_` makes vectors
    into columns and joins along the last axis. A string of up to three integers in front changes
    this, as in NumPy: the axis to join, the least number of axes, and the position of the axes of
    an array that has fewer.

    Args:
      axis: the axis to join.
      ndim: the least number of axes.
      place: the position of the axes of an array that has fewer axes.

    Raises:
      NotImplementedError: for the strings "r" and "c", which make matrices in NumPy.

    >>> jnp.r_[1:3, 5]
    Array([1, 2, 5], dtype=int32)
    >>> x, y = jnp.array([1, 2]), jnp.array([3, 4])
    >>> jnp.c_[x, y]
    Array([[1, 3],
           [2, 4]], dtype=int32)
    >>> jnp.r_["0,2", x, y]
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """

    def __init__(self, axis: int, ndim: int, place: int):
        self.settings = (axis, ndim, place)

    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndim, place = self.settings
        if items and isinstance(items[0], str):
            given = items.pop(0)
            if given in ("r", "c"):
                raise NotImplementedError(f"r_: matrices are not supported; got {given!r}.")
            numbers = [int(n) for n in given.split(",")]
            axis, ndim, place = [*numbers, *(axis, ndim, place)[len(numbers) :]]
        return concatenate([raise_rank(item, ndim, place) for item in items], axis)


def raise_rank(item: Any, ndim: int, place: int) -> Any:
    """An item of `r_` as an array with at least `ndim` axes, its own from `place` on."""
    x = read_span(item) if isinstance(item, slice) else creation.array(item, copy=False)
    if x.ndim >= ndim:
        return x if x.ndim else layout.reshape(x, (1,))
    extra = ndim - x.ndim
    first = place + extra + 1 if place < 0 else place
    before = min(max(first, 0), extra)
    return layout.reshape(x, (*[1] * before, *x.shape, *[1] * (extra - before)))


mgrid = Grid(sparse=False)
ogrid = Grid(sparse=True)
r_ = Concatenator(0, 1, -1)
c_ = Concatenator(-1, 2, 0)


# --- indices of several axes ----------------------------------------------------------------


index_exp = np.index_exp
s_ = np.s_


def ix_(*args: Any) -> tuple[Array, ...]:
    """Make indices that select rows, columns and so on independently.

    `x[ix_(i, j)]` has the element `x[i[a], j[b]]` at place (a, b). Bool vectors select the places
    where they are True; they must not be traced, because their number of places decides the shape.

    Args:
      args: vectors of integers or of bool dtype, one for each axis.

    Returns:
      a tuple of integer arrays. Array k has its elements along axis k, and size 1 along the others.

    Raises:
      ShapeError: if an argument is not a vector.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.arange(6).reshape(2, 3)
    >>> x[jnp.ix_(jnp.array([0, 1]), jnp.array([2, 0]))]
    Array([[2, 0],
           [5, 3]], dtype=int32)
    >>> x[jnp.ix_(jnp.array([False, True]), jnp.array([2, 0]))]
    Array([[5, 3]], dtype=int32)
    """
    out = []
    for k, arg in enumerate(args):
        i = as_array(arg, "ix_")
        if i.ndim != 1:
            raise ShapeError(f"ix_: arguments must be vectors; got {i.aval}.")
        if not i.size:
            i = convert(i, dtypes.default_int())
        if dtypes.is_bool(i.dtype):
            (i,) = nonzero(i)
        shape = [1] * len(args)
        shape[k] = i.size
        out.append(layout.reshape(i, shape))
    return tuple(out)


def unravel_index(indices: ArrayLike, shape: Shape) -> tuple[Array, ...]:
    """Return the indices along each axis of elements that are numbered in row-major order.

    It is the inverse of `ravel_multi_index`, for example for the result of `argmax`. Negative
    numbers count from the end. Numbers out of bounds give the first or the last element; NumPy
    raises an error for them. Under `jit`, `shape` must be static.

    Args:
      indices: an integer array or scalar of any shape: the numbers.
      shape: the shape of the array that is indexed, an int or a sequence of ints.

    Returns:
      a tuple of integer arrays, one for each axis, with the shape of `indices`.

    Raises:
      DtypeError: if `indices` are not integers.

    >>> jnp.unravel_index(jnp.array([1, 5]), (2, 3))
    (Array([0, 1], dtype=int32), Array([1, 2], dtype=int32))
    >>> x = jnp.array([[1, 9], [4, 2]])
    >>> x[jnp.unravel_index(jnp.argmax(x), x.shape)]
    Array(9, dtype=int32)
    """
    return unravel_array(
        as_array(check_integer_indices("unravel_index", indices)), shape_of("unravel_index", shape)
    )


@operation(static=("shape",))
def unravel_array(i: Any, shape: tuple[int, ...]) -> tuple:
    """`unravel_index` for an array."""
    i, dtype = widen_index(i, i.dtype, max([n for n in shape if type(n) is int], default=0))
    number = lambda n: layout.literal(n, dtype)
    out = []
    for n in reversed(shape):
        m = number(max(n, 1))
        left = rem(i, m)
        if dtypes.is_signed(dtype):  # rounded down, so that no number of all elements is needed
            below = lt(left, number(0))
            left = select(below, add(left, m), left)
            i = sub(div(i, m), convert(below, dtype, typeof(i).weak_type))
        else:
            i = div(i, m)
        out.append(left)
    if not dtypes.is_signed(dtype):
        i = convert(ne(i, number(0)), np.dtype(np.int32))
    # now 0 inside, -1 where it counts from the end; others are out of bounds
    low, high = (compare(i, layout.literal(n, i.dtype)) for compare, n in ((lt, -1), (gt, 0)))
    ends = zip(out, reversed(shape), strict=True)
    found = [select(low, number(0), select(high, number(max(n - 1, 0)), x)) for x, n in ends]
    return tuple(reversed(found))


def ravel_multi_index(
    multi_index: Sequence[Any],
    dims: Sequence[int],
    mode: str | Sequence[str] = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return the numbers of elements in an array, given their indices along each axis.

    It is the inverse of `unravel_index`.

    Args:
      multi_index: a sequence of integer arrays or scalars, one for each axis, that broadcast
        together.
      dims: the shape of the array that is indexed, a sequence of ints.
      mode: the treatment of indices out of bounds, one for all axes or a sequence with one for each
        axis. "raise", the default, raises an error; indices must then be known, not traced. "wrap"
        takes them modulo the size, "clip" takes the nearest index inside.
      order: "C", the default, numbers the elements in row-major order, "F" in column-major order.
      dtype: the integer dtype of the result. None, the default, is the default integer dtype
        (int32, or int64 with enable_x64).

    Returns:
      an integer array with the common shape of the indices.

    Raises:
      IndexingError: if an index is out of bounds and the mode is "raise".
      ConcretizationTypeError: if an index is traced and the mode is "raise".
      ShapeError: if the number of indices differs from the number of axes.
      ValueError: if a mode is unknown, or the dtype cannot hold the numbers.
      DtypeError: if indices are not integers.

    >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([1, 2])), (2, 3))
    Array([1, 5], dtype=int32)
    >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([-1, 7])), (2, 3), mode="clip")
    Array([0, 5], dtype=int32)
    >>> jnp.ravel_multi_index((1, 0), (2, 3), order="F")
    Array(1, dtype=int32)
    """
    op = "ravel_multi_index"
    sizes = shape_of(op, dims)
    if len(multi_index) != len(sizes):
        raise ShapeError(
            f"{op}: there must be places for each axis; got {len(multi_index)} for {sizes}."
        )
    check_option(op, "order", order, "C", "F")
    modes = (mode,) * len(sizes) if isinstance(mode, str) else tuple(mode)
    kept = dtypes.default_int() if dtype is None else dtypes.check_user_dtype(dtype, op)
    count = math.prod(sizes)
    if type(count) is int and count - 1 > dtypes.iinfo(kept).max:
        raise ValueError(
            f"{op}: dtype must hold the number of each element; got {kept} for dims {sizes}. "
            "Hint: dtype='int64', with config.update('enable_x64', True)."
        )
    arrays = [as_array(check_integer_indices(op, i)) for i in multi_index]
    arrays = [bring_inside(op, i, n, m) for i, n, m in zip(arrays, sizes, modes, strict=True)]
    total = creation.asarray(0, kept)
    steps = range(len(sizes)) if order == "C" else reversed(range(len(sizes)))
    for count, k in enumerate(steps):
        total, i = promote_operands(op, total, convert(arrays[k], kept))
        total = add(mul(total, layout.literal(sizes[k], kept)), i) if count else i
    return total


def bring_inside(op: str, i: Any, n: int, mode: str) -> Any:
    """Places along an axis brought inside, or refused."""
    check_option(op, "mode", mode, "raise", "wrap", "clip")
    if mode == "wrap":
        return wrap_around(i, n)
    if mode == "clip":
        return clamp(layout.literal(0, i.dtype), i, layout.literal(max(n - 1, 0), i.dtype))
    known = i
    if isinstance(i, Tracer):
        known = i.concrete(ConcretizationTypeError, op, "mode='clip' or mode='wrap'.")
    values = host_view(known)
    if values.size and not (values.min() >= 0 and values.max() < n):
        raise IndexingError(
            f"{op}: places must be in [0, {n}); got {values.min()} to {values.max()}."
        )
    return i
