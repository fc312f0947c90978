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
from weft.errors import ConcretizationTypeError, IndexingError, ShapeError
from weft.lax.values import put_on_device
from weft.numpy import creation
from weft.numpy.choice import literal_like
from weft.numpy.indexing import check_integer_indices, wrap_around
from weft.numpy.manipulation import GROUP, concatenate, diagonal, stack
from weft.numpy.promotion import (
    as_array,
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
from weft.util import check_option
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
    """Ones on the k-th diagonal of an N by M matrix, zeros elsewhere.

    >>> jnp.eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
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
    """The identity matrix of n rows."""
    return eye(n, dtype=dtype)


@operation(arrays=0)
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Ones on and below the k-th diagonal of an N by M matrix, zeros above."""
    found = creation.choose_dtype(dtype, dtypes.default_float, "tri")
    shape = (check_size("tri", N), check_size("tri", M, check_size("tri", N)))
    if type(k) is int and abs(k) < 2**31 and creation.is_written_by_host(shape):
        return put_on_device(array_from_host(np.tri(*shape, k, found), False), None)
    return ops.convert(ops.ge(*make_offsets(shape, k)), found)


@operation(static=("k",))
def tril(m: ArrayLike, k: int = 0) -> Array:
    """Matrices with zeros above the k-th diagonal."""
    return make_triangle("tril", ops.ge, m, k)


@operation(static=("k",))
def triu(m: ArrayLike, k: int = 0) -> Array:
    """Matrices with zeros below the k-th diagonal."""
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
    """A matrix with the vector v on its k-th diagonal; or the k-th diagonal of the matrix v."""
    x, k = as_array(v, "diag"), check_integer("diag", "k", k)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError(f"diag: needs a vector or a matrix; got {x.aval}.")
    size = x.shape[0] + abs(k)
    column = pad(x, literal_like(False, x), [(max(0, -k), max(0, k), 0)])
    shape = (size, size)
    column = layout.broadcast_in_dim(column, shape, (0,))
    return ops.select(ops.eq(*make_offsets(shape, k)), column, literal_like(False, x))


@operation(static=("k",))
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """A matrix with all elements of v on its k-th diagonal."""
    x = drop_weak_type(as_array(v, "diagflat"))
    return diag(layout.reshape(x, (x.size,)), k)


@operation(static=("wrap", "inplace"))
def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """A copy of `a` with `val` on its diagonal; `inplace` must be False, for arrays do not change.

    Places past the last of `val` start from its first again; with `wrap`, the diagonal of a tall
    matrix starts again below its last row.
    """
    if inplace:
        raise NotImplementedError(
            "fill_diagonal: inplace must be False, for arrays do not change; got True. "
            "Hint: a = jnp.fill_diagonal(a, val, inplace=False)."
        )
    x, value = as_array(a, "fill_diagonal"), as_array(val, "fill_diagonal")
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ShapeError(
            f"fill_diagonal: needs a matrix, or an array of equal sizes; got {x.aval}."
        )
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
    """Where a mask known now holds, an array of indices for each axis."""
    return tuple(creation.array(i.astype(dtypes.default_int())) for i in np.nonzero(mask))


def clip_offset(op: str, k: Any, rows: int, columns: int) -> int:
    """The number of a diagonal, or of the nearest outside of the matrix."""
    return min(max(check_integer(op, "k", k, most=math.inf), -rows), columns)


@operation(arrays=0)
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The rows and columns of the lower triangle of an n by m matrix, up to its k-th diagonal."""
    rows, columns = check_size("tril_indices", n), check_size("tril_indices", m, n)
    return find_mask_indices(
        np.tri(rows, columns, clip_offset("tril_indices", k, rows, columns), bool)
    )


@operation(arrays=0)
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The rows and columns of the upper triangle of an n by m matrix, from its k-th diagonal."""
    rows, columns = check_size("triu_indices", n), check_size("triu_indices", m, n)
    return find_mask_indices(
        ~np.tri(rows, columns, clip_offset("triu_indices", k, rows, columns + 1) - 1, bool)
    )


def check_matrix_shape(op: str, x: Any) -> tuple[int, ...]:
    """The shape of a matrix."""
    shape = tuple(x.shape) if hasattr(x, "shape") else typeof(x).shape
    if len(shape) != 2:
        raise ShapeError(f"{op}: needs a matrix; got one of shape {shape}.")
    return shape


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """tril_indices of a matrix of arr's shape."""
    n, m = check_matrix_shape("tril_indices_from", arr)
    return tril_indices(n, k, m)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """triu_indices of a matrix of arr's shape."""
    n, m = check_matrix_shape("triu_indices_from", arr)
    return triu_indices(n, k, m)


@operation(arrays=0)
def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the diagonal of an array with `ndim` axes of size n."""
    ndim = check_integer("diag_indices", "ndim", ndim, 0, creation.MAX_AXES)
    return (creation.arange(check_size("diag_indices", n)),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The indices of the diagonal of arr, whose axes must be equal in size."""
    x = as_array(arr, "diag_indices_from")
    if x.ndim < 2 or len(set(x.shape)) != 1:
        raise ShapeError(f"diag_indices_from: needs two or more axes of equal size; got {x.aval}.")
    return diag_indices(x.shape[0], x.ndim)


def mask_indices(
    n: int, mask_func: Callable, k: int = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """Where mask_func(ones((n, n)), k) is not 0, as triu and tril are; known now.

    Args:
      size: how many places to give: cut off, or filled up with 0.
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
    """Coordinates of a grid from coordinates along each axis: for each axis an array of all places.

    With `sparse`, each array has size 1 along the other axes. With indexing "xy" the first two axes
    change places. A list, and under jaxlib 0.12 a tuple, as in the JAX that belongs to it.

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
    """The index of each place along each axis of a grid: an array with one axis more.

    With `sparse`, a tuple of arrays that broadcast to the grid.
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
    """function(i, j, ...) at every place of a grid.

    Unlike NumPy's, the function is called with scalars, under vmap: what it makes has an element
    for each place even where it uses no index.
    """
    sizes = shape_of("fromfunction", shape)
    check_callable("fromfunction", function)
    each = functools.partial(function, **kwargs)
    for k in reversed(range(len(sizes))):
        each = vmap(each, in_axes=tuple(0 if i == k else None for i in range(len(sizes))))
    return each(*(creation.arange(n, dtype=dtype) for n in sizes))


@operation(static=("N", "increasing"))
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Powers of x as the columns of a matrix, N of them, the highest first unless increasing."""
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
    """`mgrid[0:2, 0:3]`: coordinates of a grid; `ogrid` has size 1 along the other axes."""

    def __init__(self, sparse: bool):
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return read_span(key)
        spans = promote_operands("mgrid", *[read_span(s) for s in key], shaped=False)
        grids = meshgrid(*spans, indexing="ij", sparse=self.sparse)
        return grids if self.sparse else stack(grids)


class Concatenator:
    """`r_[1:3, 5]`: numbers, slices and arrays joined along an axis; `c_` makes them columns.

    A string first says how, as numpy.r_ takes it: the axis, the least number of axes, and where
    the axes of an array of fewer go.
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
    """Vectors as an open mesh: x[ix_(i, j)] has the elements x[i[a], j[b]]. Masks are places."""
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
    """The places on each axis of elements numbered in row-major order.

    Negative numbers count from the end; numbers out of bounds give the first or the last place.

    >>> jnp.unravel_index(jnp.array([1, 5]), (2, 3))
    (Array([0, 1], dtype=int32), Array([1, 2], dtype=int32))
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
    """The numbers of elements, in row-major ("C") or column-major ("F") order, by places on axes.

    `mode`, one or one for each axis, says what becomes of places out of bounds: "raise", which
    needs known places, "wrap" or "clip". `dtype` is the integer dtype of the result.
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
