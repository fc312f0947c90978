"""Shapes: the same elements in another arrangement, joined, taken apart or repeated.

Choosing elements by index is in indexing.py, padding in padding.py, sorting in sorting.py.
"""

from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, not_array_error, typeof
from weft.core.trace import Tracer
from weft.errors import InconclusiveDimensionOperation, ShapeError
from weft.mesh.typed import resolve_sharding
from weft.numpy import promotion
from weft.primitives import indexing, layout, slicing
from weft.primitives.dynamic_slicing import dynamic_slice, widen_index
from weft.primitives.elementwise import add, convert, rem, sub
from weft.primitives.families import as_sequence, check_integer
from weft.primitives.reshard import lay_out, lay_out_alike
from weft.run.operation import operation
from weft.util import JAXLIB, SymbolicSize, max_size, min_size
from weft.xla.array import ARRAYS, put
from weft.xla.typing import Array, ArrayLike, Axes, DTypeLike, Shape, ShardingLike

# What holds the results of functions with a result for each argument: as in the JAX of this jaxlib.
GROUP: type = tuple if JAXLIB >= (0, 12) else list
MAX_SECTIONS = 2**16  # of an axis with fewer elements: each section is an array of its own


# --- what functions of arrays need of their arguments -----------------------------------------


def as_arrays(op: str, xs: Any) -> list:
    """A sequence of arguments as arrays; an array stands for its rows."""
    if type(xs) in ARRAYS or isinstance(xs, Tracer | np.ndarray):
        xs = promotion.as_array(xs, op)
        if not xs.ndim:
            raise ShapeError(f"{op}: needs a sequence of arrays; got {xs.aval}.")
        return list(slicing.unstack(xs))
    if not isinstance(xs, list | tuple):
        raise not_array_error(op, xs)
    return promotion.as_arrays_together(op, *xs)


def convert_together(op: str, xs: Sequence[Any], dtype: Any = None) -> list:
    """Arrays in their common dtype, or in `dtype`."""
    if dtype is None:
        return promotion.promote_operands(op, *xs, shaped=False)
    found = dtypes.check_user_dtype(dtype, op)
    return [convert(x, found) for x in xs]


def read_sizes(op: str, shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of numbers, -1 among them or not; one number is a shape of one axis."""
    if isinstance(shape, list | tuple) or (
        not isinstance(shape, SymbolicSize) and np.ndim(shape) == 1
    ):
        return tuple([check_integer(op, "a size", n) for n in shape])
    return (check_integer(op, "a size", shape),)


# --- one array under another shape ------------------------------------------------------------


def resolve_shape(x: ShapedArray, shape: Any) -> tuple[int, ...]:
    """Return the shape that `shape` asks for; -1 stands for the remaining size."""
    try:
        return promotion.PLANS[x, shape]  # parsing it costs more than the rest
    except (KeyError, TypeError):
        pass
    out = read_sizes("reshape", shape)
    unknown = [i for i, n in enumerate(out) if n == -1]
    if len(unknown) > 1:
        raise ShapeError(f"reshape: at most one size may be -1; got {out}.")
    if unknown:
        known = math.prod(n for n in out if n != -1)
        if known == 0 or x.size % known:
            raise ShapeError(
                f"reshape: the sizes given must divide the size of x, {x.size}; got {out} for {x}."
            )
        out = tuple(x.size // known if n == -1 else n for n in out)
    elif math.prod(out) != x.size:
        raise ShapeError(
            f"reshape: the new shape must have as many elements as x; got {x}, of {x.size}, to "
            f"{out}, of {math.prod(out)}."
        )
    if type(shape) is tuple and all([type(n) is int for n in shape]):
        promotion.PLANS[x, shape] = out
    return out


@operation(static=("shape", "order", "copy", "out_sharding"))
def reshape(
    a: ArrayLike,
    shape: Shape,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Give an array another shape with the same number of elements.

    The elements keep their order. Under `jit`, `shape` and `order` must be static; sizes such as
    `x.shape[0]` are known there.

    Args:
      a: an array or scalar of any shape and dtype.
      shape: the new shape, an int or a sequence of ints. One size may be -1, which is then computed
        from the others.
      order: "C", the default, reads and writes the elements with the last axis fastest (row-major);
        "F" with the first axis fastest (column-major).
      copy: accepted for the signature of NumPy, without effect, because arrays do not change.
      out_sharding: how the result is split over explicit axes of a mesh: a spec over the mesh in
        scope, or a NamedSharding. None, the default, follows from the operand.

    Returns:
      an array of the given shape and the dtype of `a`.

    Raises:
      ShapeError: if the sizes do not fit the number of elements, or several are -1.
      NotImplementedError: if `order` is "A" or "K"; ValueError for other values.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.reshape(jnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    >>> jnp.reshape(jnp.arange(6), (2, 3), order="F")
    Array([[0, 2, 4],
           [1, 3, 5]], dtype=int32)
    """
    a = promotion.as_array(a, "reshape")
    sizes = resolve_shape(a.aval, shape)
    if order == "F":
        axes = tuple(range(a.ndim))[::-1]
        back = tuple(range(len(sizes)))[::-1]
        sharding = resolve_sharding("reshape", out_sharding, len(sizes), a)
        if sharding is not None:
            spec = sharding.spec
            sharding = sharding.with_spec(spec.update(partitions=spec.partitions[::-1]))
        a = layout.reshape(layout.transpose(a, axes), sizes[::-1], out_sharding=sharding)
        return layout.transpose(a, back)
    if order != "C":
        error = NotImplementedError if order in ("A", "K") else ValueError
        raise error(f'reshape: order must be "C" or "F"; got {order!r}.')
    if sizes == a.aval.shape:
        return lay_out("reshape", a, out_sharding)
    sharding = resolve_sharding("reshape", out_sharding, len(sizes), a)
    return layout.reshape_p.apply(a, new_sizes=sizes, dimensions=None, sharding=sharding)[0]


@operation(static=("order", "out_sharding"))
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: ShardingLike = None) -> Array:
    """Flatten an array: put all elements along one axis.

    It is `reshape` to one axis. Under `jit`, `order` must be static.

    Args:
      a: an array or scalar of any shape and dtype.
      order: "C", the default, for the last axis fastest (row-major); "F" for the first axis fastest
        (column-major).
      out_sharding: how the result is split over explicit axes of a mesh: a spec over the mesh in
        scope, or a NamedSharding. None, the default, follows from the operand.

    Returns:
      an array with one axis, of the size and dtype of `a`.

    Raises:
      NotImplementedError: if `order` is "A" or "K"; ValueError for other values.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.arange(6).reshape(2, 3)
    >>> jnp.ravel(x)
    Array([0, 1, 2, 3, 4, 5], dtype=int32)
    >>> jnp.ravel(x, order="F")
    Array([0, 3, 1, 4, 2, 5], dtype=int32)
    """
    return reshape(promotion.as_array(a, "ravel"), (-1,), order, out_sharding=out_sharding)


@operation(static=("axes",))
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Permute the axes of an array, by default in reverse.

    Axis i of the result is axis `axes[i]` of the operand. Under `jit`, `axes` must be static.

    Args:
      a: an array or scalar of any shape and dtype.
      axes: a sequence of ints that names each axis once; negative axes count from the end. None,
        the default, reverses the axes.

    Returns:
      an array of the dtype of `a`, with its sizes permuted.

    Raises:
      ShapeError: if `axes` does not name each axis exactly once.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.transpose(jnp.arange(6).reshape(2, 3))
    Array([[0, 3],
           [1, 4],
           [2, 5]], dtype=int32)
    >>> jnp.transpose(jnp.zeros((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    a = promotion.as_array(a, "transpose")
    ndim = a.ndim
    if axes is None:
        order = tuple(range(ndim))[::-1]
    else:
        order = promotion.axes_of("transpose", as_sequence("transpose", "axes", axes), ndim)
        if len(order) != ndim:
            raise ShapeError(
                f"transpose: axes must name every axis of x once; got {tuple(axes)} for {a.aval}."
            )
    if ndim < 2:
        return a
    return layout.transpose(a, order)


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """Permute the axes of an array.

    It is `transpose` under its name in the array API standard, where `axes` must be given.

    Args:
      a: an array or scalar of any shape and dtype.
      axes: a sequence of ints that names each axis once; negative axes count from the end.

    Returns:
      an array of the dtype of `a`, with its sizes permuted.

    Raises:
      ShapeError: if `axes` does not name each axis exactly once.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.permute_dims(jnp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return transpose(a, axes)


@operation
def matrix_transpose(x: ArrayLike, /) -> Array:
    """Swap the last two axes of an array.

    It transposes each matrix of a stack of matrices.

    Args:
      x: an array of shape (..., m, n) and any dtype.

    Returns:
      an array of shape (..., n, m) and the dtype of `x`.

    Raises:
      ShapeError: if `x` has fewer than two axes.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.matrix_transpose(jnp.zeros((4, 2, 3))).shape
    (4, 3, 2)
    """
    x = promotion.as_array(x, "matrix_transpose")
    promotion.check_axes_number("matrix_transpose", x, 2)
    return swapaxes(x, -2, -1)


@operation(static=("axis1", "axis2"))
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Exchange two axes of an array.

    Under `jit`, the axes must be static.

    Args:
      a: an array or scalar of any shape and dtype.
      axis1: the first axis, an int; a negative axis counts from the end.
      axis2: the second axis, an int.

    Returns:
      an array of the dtype of `a`, with the two sizes exchanged.

    Raises:
      ShapeError: if an axis is out of range.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.swapaxes(jnp.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    a = promotion.as_array(a, "swapaxes")
    i, j = (promotion.axis_of("swapaxes", axis, a.ndim) for axis in (axis1, axis2))
    order = list(range(a.ndim))
    order[i], order[j] = j, i
    return layout.transpose(a, order)


@operation(static=("source", "destination"))
def moveaxis(a: ArrayLike, source: Axes, destination: Axes) -> Array:
    """Move axes of an array to new positions.

    The other axes keep their order. Under `jit`, the axes must be static.

    Args:
      a: an array or scalar of any shape and dtype.
      source: the axes to move, an int or a sequence of distinct ints; negative axes count from the
        end.
      destination: the positions of these axes in the result, one for each.

    Returns:
      an array of the dtype of `a`, with its sizes permuted.

    Raises:
      ShapeError: if an axis is out of range or named twice, or the numbers of axes differ.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.moveaxis(jnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    >>> jnp.moveaxis(jnp.zeros((2, 3, 4)), (0, 1), (-1, -2)).shape
    (4, 3, 2)
    """
    a = promotion.as_array(a, "moveaxis")
    old = promotion.axes_of("moveaxis", source, a.ndim)
    new = promotion.axes_of("moveaxis", destination, a.ndim)
    if len(old) != len(new):
        raise ShapeError(
            f"moveaxis: source and destination must be equally many; got {source}, {destination}."
        )
    order = [i for i in range(a.ndim) if i not in old]
    for at, axis in sorted(zip(new, old, strict=True)):
        order.insert(at, axis)
    return layout.transpose(a, order)


@operation(static=("axis", "start"))
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Move one axis of an array back until it is before another axis.

    It is an old function of NumPy; `moveaxis` is clearer. Under `jit`, `axis` and `start` must be
    static.

    Args:
      a: an array or scalar of any shape and dtype.
      axis: the axis to move, an int; a negative axis counts from the end.
      start: the axis is moved before the axis with this number in the operand, from `-a.ndim` to
        `a.ndim`. The default, 0, moves it to the front.

    Returns:
      an array of the dtype of `a`, with its sizes permuted.

    Raises:
      ShapeError: if `axis` or `start` is out of range.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.rollaxis(jnp.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    >>> jnp.rollaxis(jnp.zeros((2, 3, 4)), 0, 3).shape
    (3, 4, 2)
    """
    a = promotion.as_array(a, "rollaxis")
    axis = promotion.axis_of("rollaxis", axis, a.ndim)
    start = check_integer("rollaxis", "start", start, -a.ndim, a.ndim)
    start = start + a.ndim if start < 0 else start
    return moveaxis(a, axis, start - 1 if axis < start else start)


@operation(static=("axis",))
def squeeze(a: ArrayLike, axis: Axes | None = None) -> Array:
    """Remove axes of size 1.

    Name the axes in programs for any shape: without `axis`, an axis that has size 1 by chance is
    removed too. Under `jit`, `axis` must be static.

    Args:
      a: an array or scalar of any shape and dtype.
      axis: the axes to remove, an int or a sequence of distinct ints; negative axes count from the
        end. None, the default, removes all axes of size 1.

    Returns:
      an array of the dtype of `a`, without these axes.

    Raises:
      ShapeError: if an axis is not of size 1 or out of range.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.zeros((1, 3, 1))
    >>> jnp.squeeze(x).shape, jnp.squeeze(x, axis=0).shape
    ((3,), (3, 1))
    """
    a = promotion.as_array(a, "squeeze")
    shape = a.aval.shape
    if axis is None:
        return layout.squeeze(a, [i for i, n in enumerate(shape) if n == 1])
    axes = promotion.axes_of("squeeze", axis, len(shape))
    if any(shape[i] != 1 for i in axes):
        raise ShapeError(f"squeeze: axes must be of size 1; got axis {axis} of {a.aval}.")
    return layout.squeeze(a, axes)


@operation(static=("axis",))
def expand_dims(a: ArrayLike, axis: Axes) -> Array:
    """Insert axes of size 1 into an array.

    Use it to make an array broadcast against another. Under `jit`, `axis` must be static.

    Args:
      a: an array or scalar of any shape and dtype.
      axis: the positions of the new axes in the result, an int or a sequence of distinct ints;
        negative positions count from the end of the result.

    Returns:
      an array of the dtype of `a`, with the new axes.

    Raises:
      ShapeError: if a position is out of range or named twice.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.zeros(3)
    >>> jnp.expand_dims(x, 0).shape, jnp.expand_dims(x, (0, -1)).shape
    ((1, 3), (1, 3, 1))
    """
    if type(a) not in promotion.NUMBERS:
        a = promotion.as_array(a, "expand_dims")
    count = len(axis) if promotion.is_collection(axis) else 1
    return layout.expand_dims(a, promotion.axes_of("expand_dims", axis, typeof(a).ndim + count))


def add_axes(op: str, arys: Sequence[Any], grow: Callable[[Any], Any]) -> Any:
    """Each array with axes added by `grow`: one result for one array, else a `GROUP`."""
    out = [grow(promotion.as_array(x, op)) for x in arys]
    return out[0] if len(arys) == 1 else GROUP(out)


def atleast_1d(*arys: ArrayLike) -> Any:
    """Add axes of size 1 until an array has at least one axis.

    A scalar becomes an array of shape (1,); arrays stay.

    Args:
      arys: arrays or scalars of any shapes and dtypes.

    Returns:
      for one argument, an array. For several or no arguments, a list of arrays (under jaxlib 0.12,
      a tuple, as in the JAX that belongs to it).

    Raises:
      DtypeError: if an argument is a list or not numeric.

    >>> jnp.atleast_1d(jnp.float32(3))
    Array([3.], dtype=float32)
    >>> [x.shape for x in jnp.atleast_1d(3.0, jnp.zeros((2, 3)))]
    [(1,), (2, 3)]
    """
    return add_axes("atleast_1d", arys, lambda x: x if x.ndim else layout.expand_dims(x, (0,)))


@operation
def atleast_2d(*arys: ArrayLike) -> Any:
    """Add axes of size 1 until an array has at least two axes.

    Axes are added in front: a vector becomes a matrix with one row. Arrays with two or more axes
    stay.

    Args:
      arys: arrays or scalars of any shapes and dtypes.

    Returns:
      for one argument, an array. For several or no arguments, a list of arrays (under jaxlib 0.12,
      a tuple, as in the JAX that belongs to it).

    Raises:
      DtypeError: if an argument is a list or not numeric.

    >>> jnp.atleast_2d(jnp.arange(3))
    Array([[0, 1, 2]], dtype=int32)
    """
    return add_axes(
        "atleast_2d", arys, lambda x: layout.expand_dims(x, range(builtins.max(0, 2 - x.ndim)))
    )


@operation
def atleast_3d(*arys: ArrayLike) -> Any:
    """Add axes of size 1 until an array has at least three axes.

    A vector of n elements becomes an array of shape (1, n, 1), a matrix one of shape (m, n, 1).
    Arrays with three or more axes stay.

    Args:
      arys: arrays or scalars of any shapes and dtypes.

    Returns:
      for one argument, an array. For several or no arguments, a list of arrays (under jaxlib 0.12,
      a tuple, as in the JAX that belongs to it).

    Raises:
      DtypeError: if an argument is a list or not numeric.

    >>> jnp.atleast_3d(jnp.zeros(4)).shape, jnp.atleast_3d(jnp.zeros((2, 4))).shape
    ((1, 4, 1), (2, 4, 1))
    """
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return add_axes("atleast_3d", arys, lambda x: layout.expand_dims(x, new.get(x.ndim, ())))


@operation(static=("offset", "axis1", "axis2"))
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return diagonals of the matrices along two axes.

    The diagonal becomes the last axis of the result. `diag` also builds a matrix from its diagonal.
    Under `jit`, `offset` and the axes must be static.

    Args:
      a: an array with at least two axes, of any dtype.
      offset: the number of the diagonal, an int: 0, the default, is the main diagonal; positive
        numbers are above it, negative ones below.
      axis1: the axis of the rows of the matrices. The default is 0.
      axis2: the axis of their columns. The default is 1.

    Returns:
      an array of the dtype of `a`: the other axes in their order, then the elements of the
      diagonal. A diagonal outside the matrix has no elements.

    Raises:
      ShapeError: if `a` has fewer than two axes, or the axes are equal or out of range.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.arange(6).reshape(2, 3)
    >>> jnp.diagonal(x)
    Array([0, 4], dtype=int32)
    >>> jnp.diagonal(x, offset=1)
    Array([1, 5], dtype=int32)
    """
    a = promotion.as_array(a, "diagonal")
    promotion.check_axes_number("diagonal", a, 2)
    i, j = promotion.axes_of("diagonal", (axis1, axis2), a.ndim)
    offset = check_integer("diagonal", "offset", offset)
    a = moveaxis(a, (i, j), (-2, -1))
    *batch, m, n = a.shape
    count = max_size(0, min_size(m + builtins.min(offset, 0), n - builtins.max(offset, 0)))
    if isinstance(m, SymbolicSize) or isinstance(n, SymbolicSize):
        return take_diagonal(a, count, offset)
    first = offset if offset >= 0 else -offset * n
    if not count:
        return layout.full((*batch, 0), 0, a.dtype)
    # In row-major order the diagonal's elements are n + 1 apart.
    flat = layout.reshape(a, (*batch, m * n))
    return slicing.slice_in_dim(flat, first, first + (count - 1) * (n + 1) + 1, n + 1, len(batch))


def take_diagonal(a: Any, count: Any, offset: int) -> Any:
    """Gather diagonals of the last two axes of an array, for sizes that are symbolic.

    A slice of the flat matrix would step by a symbolic size, and a padded matrix has other steps.
    """
    rank = a.ndim - 2
    place = layout.broadcasted_iota(np.int32, (count, 2), 0)
    if offset:
        first = np.array([[builtins.max(0, -offset), builtins.max(0, offset)]], np.int32)
        place = add(place, broadcast_to(first, (count, 2)))
    dims = indexing.GatherDimensionNumbers(tuple(range(rank)), (rank, rank + 1), (rank, rank + 1))
    return indexing.gather(
        a, place, dims, (*a.shape[:-2], 1, 1),
        indices_are_sorted=True, unique_indices=True, mode="promise_in_bounds",
    )  # fmt: skip


# --- broadcasting -----------------------------------------------------------------------------


@operation(static=("shape", "out_sharding"))
def broadcast_to(array: ArrayLike, shape: Shape, *, out_sharding: ShardingLike = None) -> Array:
    """Repeat an array along new axes in front and along axes of size 1.

    Operations on arrays broadcast their operands themselves, so that it is rarely needed. The
    gradient is summed over the repetitions. Under `jit`, `shape` must be static.

    Args:
      array: an array or scalar of any shape and dtype.
      shape: the shape of the result, an int or a sequence of ints.
      out_sharding: how the result is split over explicit axes of a mesh: a spec over the mesh in
        scope, or a NamedSharding. None, the default, follows from the operand.

    Returns:
      an array of the given shape and the dtype of the operand.

    Raises:
      ShapeError: if the array does not broadcast to the shape.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.broadcast_to(jnp.arange(3), (2, 3))
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    if type(array) not in promotion.NUMBERS:
        array = promotion.as_array(array, "broadcast_to")
    aval = typeof(array)
    sizes = promotion.shape_of("broadcast_to", shape)
    before = len(sizes) - aval.ndim
    if before < 0 or any(n not in (1, m) for n, m in zip(aval.shape, sizes[before:], strict=True)):
        raise ShapeError(
            f"broadcast_to: the shape must be one that the array broadcasts to; "
            f"got {aval} to {sizes}."
        )
    if type(array) in promotion.NUMBERS and not sizes:
        return put(array)
    dims = range(before, len(sizes))
    return layout.broadcast_in_dim(array, sizes, dims, out_sharding=out_sharding)


@operation
def broadcast_arrays(*args: Any) -> Sequence[Array]:
    """Repeat arrays to their common shape.

    Over explicit axes of a mesh, the results are split as the sum of the arrays would be.

    Args:
      args: arrays or scalars of any dtypes. Their shapes must broadcast together.

    Returns:
      a list of arrays of one shape, each of the dtype of its argument. Under jaxlib 0.12 it is a
      tuple, as in the JAX that belongs to it.

    Raises:
      ShapeError: if the shapes do not broadcast together.
      DtypeError: if an argument is a list or not numeric.

    >>> [x.shape for x in jnp.broadcast_arrays(jnp.zeros(3), jnp.zeros((2, 1)))]
    [(2, 3), (2, 3)]
    """
    arrays = [promotion.as_array(x, "broadcast_arrays") for x in args]
    shape = promotion.broadcast_shapes(*[x.shape for x in arrays])
    wide = lay_out_alike("broadcast_arrays", [broadcast_to(x, shape) for x in arrays])
    return GROUP(wide)


# --- joining ----------------------------------------------------------------------------------


@operation(static=("axis", "dtype"))
def concatenate(
    arrays: ArrayLike | Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """Join arrays along an axis that they have.

    `stack` joins along a new axis. Under `jit`, `axis` and `dtype` must be static.

    Args:
      arrays: a sequence of arrays, or one array, which stands for its rows. Their shapes are equal
        except along `axis`.
      axis: the axis, an int; a negative axis counts from the end. The default is 0. None flattens
        the arrays first.
      dtype: the dtype of the result. None, the default, is the common dtype of the arrays.

    Returns:
      an array. Its size along the axis is the sum of the sizes.

    Raises:
      ShapeError: if no array is given, an array is a scalar, or the shapes differ along another
        axis.
      DtypeError: if an element is a list or not numeric.

    >>> jnp.concatenate([jnp.zeros(2), jnp.ones(1)])
    Array([0., 0., 1.], dtype=float32)
    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.concatenate([x, x], axis=1)
    Array([[1, 2, 1, 2],
           [3, 4, 3, 4]], dtype=int32)
    >>> jnp.concatenate([x, jnp.array([5])], axis=None)
    Array([1, 2, 3, 4, 5], dtype=int32)
    """
    parts = as_arrays("concatenate", arrays)
    return join_arrays("concatenate", parts, axis, dtype)


def join_arrays(op: str, parts: Sequence[Any], axis: int | None, dtype: Any = None) -> Any:
    """Arrays in their common dtype, one after another along an axis."""
    if not parts:
        raise ShapeError(f"{op}: needs at least one array; got none.")
    if axis is None:
        parts, axis = [ravel(x) for x in parts], 0
    if parts[0].ndim == 0:
        raise ShapeError(f"{op}: scalars cannot be joined; got {parts[0].aval}. Hint: jnp.stack.")
    axis = promotion.axis_of(op, axis, parts[0].ndim)
    rest = [(*x.shape[:axis], *x.shape[axis + 1 :]) for x in parts]
    if any(x.ndim != parts[0].ndim for x in parts) or any(r != rest[0] for r in rest):
        listed = ", ".join(str(x.aval) for x in parts)
        raise ShapeError(f"{op}: shapes must be equal but for axis {axis}; got {listed}.")
    return slicing.concatenate(convert_together(op, parts, dtype), axis)


@operation(static=("axis",))
def concat(arrays: Sequence[Any], /, *, axis: int | None = 0) -> Array:
    """Join arrays along an axis that they have.

    It is `concatenate` under its name in the array API standard.

    Args:
      arrays: a sequence of arrays, or one array, which stands for its rows. Their shapes are equal
        except along `axis`.
      axis: the axis, an int; a negative axis counts from the end. The default is 0. None flattens
        the arrays first.

    Returns:
      an array of the common dtype. Its size along the axis is the sum of the sizes.

    Raises:
      ShapeError: if no array is given, an array is a scalar, or the shapes differ along another
        axis.
      DtypeError: if an element is a list or not numeric.

    >>> jnp.concat([jnp.zeros(2), jnp.ones(1)])
    Array([0., 0., 1.], dtype=float32)
    """
    return join_arrays("concat", as_arrays("concat", arrays), axis)


@operation(static=("axis", "out", "dtype"))
def stack(
    arrays: ArrayLike | Sequence[ArrayLike],
    axis: int = 0,
    out: None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Join arrays of one shape along a new axis.

    `unstack` is its inverse. Under `jit`, `axis` and `dtype` must be static.

    Args:
      arrays: a sequence of arrays, or one array, which stands for its rows. All have one shape.
      axis: the position of the new axis in the result, an int; a negative position counts from the
        end. The default is 0.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      dtype: the dtype of the result. None, the default, is the common dtype of the arrays.

    Returns:
      an array with the shape of the operands and a new axis, whose size is the number of operands.

    Raises:
      ShapeError: if no array is given, the shapes differ, or `axis` is out of range.
      DtypeError: if an element is a list or not numeric.

    >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    promotion.refuse_out("stack", out)
    parts = as_arrays("stack", arrays)
    if not parts:
        raise ShapeError("stack: needs at least one array; got none.")
    axis = promotion.axis_of("stack", axis, parts[0].ndim + 1)
    if any(x.shape != parts[0].shape for x in parts):
        listed = ", ".join(str(x.aval) for x in parts)
        raise ShapeError(f"stack: shapes must be equal; got {listed}.")
    return slicing.stack(convert_together("stack", parts, dtype), axis)


@operation(static=("dtype",))
def vstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays as rows, along the first axis.

    A vector stands for one row, a scalar for a row of one element. Under `jit`, `dtype` must be
    static.

    Args:
      tup: a sequence of arrays, or one array, which stands for its rows. Their shapes are equal
        except along the first axis.
      dtype: the dtype of the result. None, the default, is the common dtype of the arrays.

    Returns:
      an array with at least two axes.

    Raises:
      ShapeError: if no array is given, or the shapes do not fit together.
      DtypeError: if an element is a list or not numeric.

    >>> jnp.vstack([jnp.array([1, 2]), jnp.array([[3, 4], [5, 6]])])
    Array([[1, 2],
           [3, 4],
           [5, 6]], dtype=int32)
    """
    return join_arrays("vstack", [atleast_2d(x) for x in as_arrays("vstack", tup)], 0, dtype)


@operation(static=("dtype",))
def hstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays side by side, along the second axis.

    Vectors are joined along their only axis, and scalars count as vectors of one element. Under
    `jit`, `dtype` must be static.

    Args:
      tup: a sequence of arrays, or one array, which stands for its rows. Their shapes are equal
        except along the axis that is joined.
      dtype: the dtype of the result. None, the default, is the common dtype of the arrays.

    Returns:
      an array with at least one axis.

    Raises:
      ShapeError: if no array is given, or the shapes do not fit together.
      DtypeError: if an element is a list or not numeric.

    >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3])])
    Array([1, 2, 3], dtype=int32)
    >>> jnp.hstack([jnp.zeros((2, 1)), jnp.ones((2, 2))])
    Array([[0., 1., 1.],
           [0., 1., 1.]], dtype=float32)
    """
    parts = [atleast_1d(x) for x in as_arrays("hstack", tup)]
    return join_arrays("hstack", parts, 0 if parts and parts[0].ndim == 1 else 1, dtype)


@operation(static=("dtype",))
def dstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays in depth, along the third axis.

    A matrix of shape (m, n) counts as (m, n, 1), a vector of n elements as (1, n, 1). Under `jit`,
    `dtype` must be static.

    Args:
      tup: a sequence of arrays, or one array, which stands for its rows. Their shapes are equal
        except along the third axis.
      dtype: the dtype of the result. None, the default, is the common dtype of the arrays.

    Returns:
      an array with at least three axes.

    Raises:
      ShapeError: if no array is given, or the shapes do not fit together.
      DtypeError: if an element is a list or not numeric.

    >>> jnp.dstack([jnp.zeros((2, 3)), jnp.ones((2, 3))]).shape
    (2, 3, 2)
    """
    parts = as_arrays("dstack", tup)
    if parts and parts[0].ndim == 2 and all(x.shape == parts[0].shape for x in parts):
        return slicing.stack(convert_together("dstack", parts, dtype), 2)
    return join_arrays("dstack", [atleast_3d(x) for x in parts], 2, dtype)


@operation
def column_stack(tup: ArrayLike | Sequence[ArrayLike]) -> Array:
    """Join arrays as columns.

    A vector stands for one column; matrices are joined along their second axis.

    Args:
      tup: a sequence of arrays, or one array, which stands for its rows. All have the same number
        of rows.

    Returns:
      an array of the common dtype, with at least two axes.

    Raises:
      ShapeError: if no array is given, or the shapes do not fit together.
      DtypeError: if an element is a list or not numeric.

    >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    parts = as_arrays("column_stack", tup)
    if parts and parts[0].ndim == 1 and all(x.shape == parts[0].shape for x in parts):
        return slicing.stack(convert_together("column_stack", parts), 1)
    columns = [x if x.ndim > 1 else layout.expand_dims(atleast_1d(x), (1,)) for x in parts]
    return join_arrays("column_stack", columns, 1)


@operation
def block(arrays: Any) -> Array:
    """Put an array together from nested lists of blocks.

    The innermost lists are joined along the last axis, the lists around them along the axis before
    it, and so on.

    Args:
      arrays: an array or scalar, or nested lists of them. The lists are equally deep everywhere,
        and not empty. Blocks with fewer axes get axes of size 1 in front.

    Returns:
      an array of the common dtype.

    Raises:
      ShapeError: if a list is empty, the lists are not equally deep, or the blocks do not fit
        together.
      TypeError: if blocks are in a tuple.

    >>> a, b = jnp.eye(2), jnp.full((2, 1), 7.0)
    >>> jnp.block([[a, b], [jnp.zeros((1, 2)), 5.0]])
    Array([[1., 0., 7.],
           [0., 1., 7.],
           [0., 0., 5.]], dtype=float32)
    """
    depth = block_depth(arrays)
    if depth == 0:
        return promotion.as_array(arrays, "block")
    leaves = [promotion.as_array(x, "block") for x in block_leaves(arrays)]
    ndim = builtins.max(depth, *[x.ndim for x in leaves])
    return join_blocks(arrays, depth, ndim)


def block_depth(x: Any) -> int:
    """Return the depth of nested lists, which is the same everywhere."""
    if isinstance(x, tuple):
        raise TypeError("block: blocks must be in lists; got a tuple. Hint: list(...).")
    if not isinstance(x, list):
        return 0
    if not x:
        raise ShapeError("block: lists must not be empty; got [].")
    depths = {block_depth(y) for y in x}
    if len(depths) > 1:
        raise ShapeError(f"block: lists must be equally deep; got depths {sorted(depths)}.")
    return 1 + depths.pop()


def block_leaves(x: Any) -> list:
    """The blocks, in order."""
    return [leaf for y in x for leaf in block_leaves(y)] if isinstance(x, list) else [x]


def join_blocks(x: Any, depth: int, ndim: int) -> Any:
    """Join the blocks of one level; the innermost lists are joined along the last axis."""
    if depth == 0:
        x = promotion.as_array(x, "block")
        return layout.expand_dims(x, range(ndim - x.ndim))
    return join_arrays("block", [join_blocks(y, depth - 1, ndim) for y in x], ndim - depth)


@operation(static=("axis",))
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Join values to the end of an array.

    The result is a new array: to collect values in a loop, put them in a list and join them once.
    Under `jit`, `axis` must be static.

    Args:
      arr: an array or scalar of any shape and dtype.
      values: an array or scalar. With `axis`, it has the shape of `arr` except along the axis.
      axis: the axis, an int; a negative axis counts from the end. None, the default, flattens both
        first.

    Returns:
      an array of the common dtype.

    Raises:
      ShapeError: if the shapes differ along another axis.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.append(jnp.array([1, 2]), 3)
    Array([1, 2, 3], dtype=int32)
    >>> jnp.append(jnp.zeros((1, 2)), jnp.ones((1, 2)), axis=0)
    Array([[0., 0.],
           [1., 1.]], dtype=float32)
    """
    return join_arrays("append", promotion.as_arrays_together("append", arr, values), axis)


# --- taking apart -----------------------------------------------------------------------------


def array_split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Cut an array into parts along an axis, of equal sizes or nearly so.

    If the number of parts does not divide the size of the axis, the first parts are larger by one.
    `split` refuses this. Under `jit`, the number or the indices must be static.

    Args:
      ary: an array with at least one axis, of any dtype.
      indices_or_sections: an int, the number of nearly equal parts; or a sequence of ints, the
        indices where the parts after the first begin. Negative indices count from the end, and
        indices beyond the end are the end.
      axis: the axis to cut, an int; a negative axis counts from the end. The default is 0.

    Returns:
      a list of arrays of the dtype of `ary`.

    Raises:
      ShapeError: if the number is not positive, or `axis` is out of range.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.array_split(jnp.arange(5), 2)
    [Array([0, 1, 2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    return cut_array("array_split", ary, as_static_places(indices_or_sections), axis, equal=False)


def split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Cut an array into equal parts along an axis, or at indices.

    `array_split` also accepts a number of parts that does not divide the size of the axis. Under
    `jit`, the number or the indices must be static.

    Args:
      ary: an array with at least one axis, of any dtype.
      indices_or_sections: an int, the number of equal parts; or a sequence of ints, the indices
        where the parts after the first begin. Negative indices count from the end, and indices
        beyond the end are the end.
      axis: the axis to cut, an int; a negative axis counts from the end. The default is 0.

    Returns:
      a list of arrays of the dtype of `ary`.

    Raises:
      ShapeError: if the number does not divide the size of the axis, or `axis` is out of range.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.split(jnp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    >>> jnp.split(jnp.arange(6), [2, 3])
    [Array([0, 1], dtype=int32), Array([2], dtype=int32), Array([3, 4, 5], dtype=int32)]
    """
    return cut_array("split", ary, as_static_places(indices_or_sections), axis)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Cut an array into parts along its first axis.

    It is `split` with `axis=0`, for arrays with at least two axes. Under `jit`, the number or the
    indices must be static.

    Args:
      ary: an array with at least two axes, of any dtype.
      indices_or_sections: an int, the number of equal parts; or a sequence of ints, the indices
        where the parts after the first begin. Negative indices count from the end, and indices
        beyond the end are the end.

    Returns:
      a list of arrays of the dtype of `ary`.

    Raises:
      ShapeError: if the number does not divide the size of the axis, or `ary` has too few axes.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.vsplit(jnp.arange(4).reshape(2, 2), 2)
    [Array([[0, 1]], dtype=int32), Array([[2, 3]], dtype=int32)]
    """
    return cut_array("vsplit", ary, as_static_places(indices_or_sections), 0, least=2)


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Cut an array into parts along its second axis.

    A vector is cut along its only axis. Under `jit`, the number or the indices must be static.

    Args:
      ary: an array with at least one axis, of any dtype.
      indices_or_sections: an int, the number of equal parts; or a sequence of ints, the indices
        where the parts after the first begin. Negative indices count from the end, and indices
        beyond the end are the end.

    Returns:
      a list of arrays of the dtype of `ary`.

    Raises:
      ShapeError: if the number does not divide the size of the axis, or `ary` has too few axes.
      DtypeError: if the operand is a list or not numeric.

    >>> [x.shape for x in jnp.hsplit(jnp.zeros((2, 6)), 3)]
    [(2, 2), (2, 2), (2, 2)]
    >>> jnp.hsplit(jnp.arange(3), [1])
    [Array([0], dtype=int32), Array([1, 2], dtype=int32)]
    """
    ary = promotion.as_array(ary, "hsplit")
    return cut_array(
        "hsplit", ary, as_static_places(indices_or_sections), 0 if ary.ndim == 1 else 1
    )


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Cut an array into parts along its third axis.

    It is `split` with `axis=2`. Under `jit`, the number or the indices must be static.

    Args:
      ary: an array with at least three axes, of any dtype.
      indices_or_sections: an int, the number of equal parts; or a sequence of ints, the indices
        where the parts after the first begin. Negative indices count from the end, and indices
        beyond the end are the end.

    Returns:
      a list of arrays of the dtype of `ary`.

    Raises:
      ShapeError: if the number does not divide the size of the axis, or `ary` has too few axes.
      DtypeError: if the operand is a list or not numeric.

    >>> [x.shape for x in jnp.dsplit(jnp.zeros((2, 3, 4)), 2)]
    [(2, 3, 2), (2, 3, 2)]
    """
    return cut_array("dsplit", ary, as_static_places(indices_or_sections), 2, least=3)


def as_static_places(where: Any) -> Any:
    """Places in a list as a tuple, which has a hash."""
    return tuple(where) if type(where) is list else where


def find_cut(place: Any, size: Any) -> Any:
    """A place along an axis, perhaps counted from its end, within the axis."""
    if type(size) is int:
        return builtins.slice(place, None).indices(size)[0]
    return max_size(size + place, 0) if place < 0 else min_size(place, size)


@operation(static=("op", "where", "axis", "equal", "least"))
def cut_array(op: str, ary: Any, where: Any, axis: int, equal: bool = True, least: int = 1) -> list:
    """The parts along an axis: `where` is how many, or where each but the first starts."""
    x = promotion.as_array(ary, op)
    promotion.check_axes_number(op, x, least)
    axis = promotion.axis_of(op, axis, x.ndim)
    n = x.shape[axis]
    if isinstance(where, list | tuple) or (not isinstance(where, int) and np.ndim(where) == 1):
        cuts = [check_integer(op, "an index", i) for i in where]
        starts = [0, *cuts]
        spans = [(find_cut(a, n), find_cut(b, n)) for a, b in zip(starts, [*cuts, n], strict=True)]
    else:
        count = check_integer(op, "the number of sections", where, most=math.inf)
        if count <= 0 or (equal and n % count):
            raise ShapeError(
                f"{op}: the number of sections must divide the axis; got {count} for axis {axis} "
                f"of {x.aval}. Hint: jnp.array_split."
            )
        if count > MAX_SECTIONS and count > n:
            raise ShapeError(f"{op}: there must be at most {MAX_SECTIONS} sections; got {count}.")
        sizes = [(n + count - 1 - i) // count for i in range(count - 1)]  # the first are larger
        ends = [*itertools.accumulate(sizes), n]
        spans = list(zip([0, *ends[:-1]], ends, strict=True))
    if all(a <= b for a, b in spans) and all(
        s[1] == t[0] for s, t in zip(spans, spans[1:], strict=False)
    ):
        return list(slicing.split(x, [b - a for a, b in spans], axis))
    return [slicing.slice_in_dim(x, a, builtins.max(a, b), 1, axis) for a, b in spans]


@operation(static=("axis",))
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Take an array apart along an axis.

    It is the inverse of `stack`.

    Args:
      x: an array with at least one axis, of any dtype.
      axis: the axis, an int; a negative axis counts from the end. The default is 0.

    Returns:
      a tuple of arrays without the axis, one for each index.

    Raises:
      ShapeError: if `x` is a scalar, or `axis` is out of range.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.unstack(jnp.arange(6).reshape(2, 3))
    (Array([0, 1, 2], dtype=int32), Array([3, 4, 5], dtype=int32))
    """
    x = promotion.as_array(x, "unstack")
    promotion.check_axes_number("unstack", x, 1)
    return tuple(slicing.unstack(x, promotion.axis_of("unstack", axis, x.ndim)))


# --- repeating, turning -----------------------------------------------------------------------


@operation(static=("reps",))
def tile(A: ArrayLike, reps: ArrayLike | Sequence[int]) -> Array:
    """Repeat a whole array along its axes.

    `repeat` repeats each element instead. Under `jit`, `reps` must be static.

    Args:
      A: an array or scalar of any shape and dtype.
      reps: the number of repetitions along each axis, an int or a sequence of ints. Fewer numbers
        than axes count for the last axes; more numbers add axes in front.

    Returns:
      an array of the dtype of `A`; each size is multiplied by the number of repetitions.

    Raises:
      ShapeError: if a number of repetitions is negative.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.tile(jnp.array([1, 2]), 2)
    Array([1, 2, 1, 2], dtype=int32)
    >>> jnp.tile(jnp.array([1, 2]), (2, 1))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    A = promotion.as_array(A, "tile")
    counts = promotion.shape_of("tile", reps)
    rank = builtins.max(len(counts), A.ndim)
    A = layout.expand_dims(A, range(rank - A.ndim))
    return slicing.tile(A, (1,) * (rank - len(counts)) + counts)


@operation(static=("axis",))
def flip(m: ArrayLike, axis: Axes | None = None) -> Array:
    """Reverse the order of the elements along axes.

    Under `jit`, `axis` must be static.

    Args:
      m: an array or scalar of any shape and dtype.
      axis: the axes to reverse, an int or a sequence of distinct ints; negative axes count from the
        end. None, the default, reverses all axes.

    Returns:
      an array with the shape and dtype of `m`.

    Raises:
      ShapeError: if an axis is out of range or named twice.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.arange(6).reshape(2, 3)
    >>> jnp.flip(x, axis=1)
    Array([[2, 1, 0],
           [5, 4, 3]], dtype=int32)
    >>> jnp.flip(x)
    Array([[5, 4, 3],
           [2, 1, 0]], dtype=int32)
    """
    m = promotion.as_array(m, "flip")
    return layout.rev(m, promotion.axes_of("flip", axis, m.ndim))


@operation
def fliplr(m: ArrayLike) -> Array:
    """Reverse the order of the columns of an array.

    The name stands for "left" and "right". The second axis is reversed.

    Args:
      m: an array with at least two axes, of any dtype.

    Returns:
      an array with the shape and dtype of `m`.

    Raises:
      ShapeError: if `m` has fewer than two axes.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.arange(6).reshape(2, 3)
    >>> jnp.fliplr(x)
    Array([[2, 1, 0],
           [5, 4, 3]], dtype=int32)
    """
    m = promotion.as_array(m, "fliplr")
    promotion.check_axes_number("fliplr", m, 2)
    return layout.rev(m, (1,))


def flipud(m: ArrayLike) -> Array:
    """Reverse the order of the rows of an array.

    The name stands for "up" and "down". The first axis is reversed.

    Args:
      m: an array with at least one axis, of any dtype.

    Returns:
      an array with the shape and dtype of `m`.

    Raises:
      ShapeError: if `m` is a scalar.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.arange(6).reshape(2, 3)
    >>> jnp.flipud(x)
    Array([[3, 4, 5],
           [0, 1, 2]], dtype=int32)
    """
    return flip(m, 0)


@operation(static=("k", "axes"))
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotate an array by quarter turns in the plane of two axes.

    A positive turn goes from the first axis to the second: counterclockwise for a printed matrix.
    Under `jit`, `k` and `axes` must be static.

    Args:
      m: an array with at least two axes, of any dtype.
      k: the number of quarter turns, an int; negative numbers turn the other way. The default is 1.
      axes: two distinct axes. The default is (0, 1).

    Returns:
      an array of the dtype of `m`. For odd `k`, the sizes of the two axes are exchanged.

    Raises:
      ShapeError: if the axes are equal, out of range or not two.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.arange(6).reshape(2, 3)
    >>> jnp.rot90(x)
    Array([[2, 5],
           [1, 4],
           [0, 3]], dtype=int32)
    >>> jnp.rot90(x, -1)
    Array([[3, 0],
           [4, 1],
           [5, 2]], dtype=int32)
    """
    m = promotion.as_array(m, "rot90")
    axes = promotion.axes_of("rot90", as_sequence("rot90", "axes", axes), m.ndim)
    if len(axes) != 2:
        raise ShapeError(f"rot90: axes must be two; got {axes}.")
    i, j = axes
    k = check_integer("rot90", "k", k, most=math.inf) % 4
    if k == 0:
        return m
    if k == 2:
        return layout.rev(m, (i, j))
    return swapaxes(layout.rev(m, (j if k == 1 else i,)), i, j)


@operation(static=("shift", "axis"))
def roll(a: ArrayLike, shift: ArrayLike, axis: Axes | None = None) -> Array:
    """Shift the elements of an array cyclically along axes.

    Elements that leave at the end enter at the front. Under `jit`, `shift` may be traced; `axis`
    must be static.

    Args:
      a: an array or scalar of any shape and dtype.
      shift: the number of places to shift by: an integer, or a sequence or vector of integers, one
        for each axis. Negative numbers shift to the front.
      axis: the axes to shift along, an int or a sequence of ints. One shift counts for all axes.
        None, the default, shifts the flattened array and restores its shape.

    Returns:
      an array with the shape and dtype of `a`.

    Raises:
      ShapeError: if an axis is out of range, or the numbers of shifts and axes do not fit.
      TypeError: if `shift` is not an integer.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.roll(jnp.arange(5), 2)
    Array([3, 4, 0, 1, 2], dtype=int32)
    >>> x = jnp.arange(6).reshape(2, 3)
    >>> jnp.roll(x, 1, axis=1)
    Array([[2, 0, 1],
           [5, 3, 4]], dtype=int32)
    >>> jnp.roll(x, (1, -1), axis=(0, 1))
    Array([[4, 5, 3],
           [1, 2, 0]], dtype=int32)
    """
    a = promotion.as_array(a, "roll")
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), a.shape)
    given = axis if promotion.is_collection(axis) else (axis,)
    axes = tuple(promotion.axis_of("roll", i, a.ndim) for i in given)
    if isinstance(shift, list | tuple):
        shifts = list(shift)
    else:
        single = isinstance(shift, SymbolicSize) or np.ndim(shift) == 0
        shifts = [shift] if single else list(unstack(shift))
    if len(shifts) == 1:
        shifts *= len(axes)
    axes = axes * len(shifts) if len(axes) == 1 else axes
    if len(shifts) != len(axes):
        raise ShapeError(
            f"roll: there must be a shift for each axis; got {len(shifts)} for axes {axes}."
        )
    for n, i in zip(shifts, axes, strict=True):
        a = roll_axis(a, n, i)
    return a


def roll_axis(a: Any, shift: Any, axis: int) -> Any:
    """`a` shifted along one axis, by a number or by a traced scalar."""
    n = a.shape[axis]
    if n == 0:
        return a
    if isinstance(shift, Tracer):
        if not dtypes.is_integer(shift.dtype):
            raise TypeError(f"roll: shift must be an integer; got {shift.aval}.")
        shift, dtype = widen_index(shift, shift.dtype, n)
        size = layout.literal(n, dtype)
        starts: list[Any] = [0] * a.ndim
        starts[axis] = sub(size, rem(add(rem(shift, size), size), size))
        return dynamic_slice(slicing.concatenate([a, a], axis), starts, a.shape)
    is_size = isinstance(shift, SymbolicSize)
    k = shift if is_size else check_integer("roll", "shift", shift, most=math.inf)
    if is_size or not isinstance(n, SymbolicSize) or not fits_size(k, n):
        k = k % n
    if k == 0:
        return a
    tail = slicing.slice_in_dim(a, n - k, n, 1, axis)
    return slicing.concatenate([tail, slicing.slice_in_dim(a, 0, n - k, 1, axis)], axis)


def fits_size(k: Any, n: SymbolicSize) -> bool:
    """Return True if k is known to be a place in an axis of a symbolic size, or its end."""
    try:
        return k >= 0 and bool(k <= n)
    except InconclusiveDimensionOperation:
        return False


def reshape_array(
    self: Any, *shape: Any, order: str = "C", out_sharding: ShardingLike = None
) -> Array:
    """Give the array another shape with the same number of elements.

    It is `jnp.reshape` as a method. The sizes are given as one sequence or as several arguments.

    Args:
      self: the array.
      shape: the new shape: ints, or one sequence of ints. One size may be -1, which is then
        computed from the others.
      order: "C", the default, reads and writes the elements with the last axis fastest (row-major);
        "F" with the first axis fastest (column-major).
      out_sharding: how the result is split over explicit axes of a mesh. None, the default, follows
        from the operand.

    Returns:
      an array of the given shape and the dtype of the array.

    Raises:
      ShapeError: if the sizes do not fit the number of elements, or several are -1.

    >>> jnp.arange(6).reshape(2, -1)
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    sizes = shape[0] if len(shape) == 1 else shape
    if order == "C" and out_sharding is None:
        return reshape(self, sizes)
    return reshape(self, sizes, order, out_sharding=out_sharding)


def transpose_array(self: Any, *axes: Any) -> Array:
    """Permute the axes of the array, by default in reverse.

    It is `jnp.transpose` as a method. The axes are given as one sequence or as several arguments.

    Args:
      self: the array.
      axes: ints that name each axis once, or one sequence of them; negative axes count from the
        end. Without axes, or with None, the axes are reversed.

    Returns:
      an array of the dtype of the array, with its sizes permuted.

    Raises:
      ShapeError: if the axes do not name each axis exactly once.

    >>> jnp.zeros((2, 3, 4)).transpose(1, 0, 2).shape
    (3, 2, 4)
    >>> jnp.zeros((2, 3, 4)).transpose().shape
    (4, 3, 2)
    """
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], list | tuple)):
        return transpose(self, axes[0])
    return transpose(self, axes or None)
