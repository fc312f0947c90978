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
from weft.errors import ShapeError
from weft.mesh.typed import resolve_sharding
from weft.numpy import promotion
from weft.primitives import layout, slicing
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
        return list(slicing.unstack(promotion.as_array(xs, op)))
    if not isinstance(xs, list | tuple):
        raise not_array_error(op, xs)
    return [promotion.as_array(x, op) for x in xs]


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
    """The shape that `shape` asks for, -1 replaced by what is left."""
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
    if type(shape) is tuple and all(type(n) is int for n in shape):
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
    """Give an array another shape of equal size; one size may be -1.

    `order` is "C" (row-major) or "F" (column-major). `out_sharding` says how
    the result is split over explicit axes of a mesh.

    >>> jnp.reshape(jnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
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
    """All elements along one axis; `out_sharding` is as in `reshape`."""
    return reshape(promotion.as_array(a, "ravel"), (-1,), order, out_sharding=out_sharding)


@operation(static=("axes",))
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Permute the axes; by default reverse them."""
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
    """Permute the axes: `transpose` under the array standard's name."""
    return transpose(a, axes)


@operation
def matrix_transpose(x: ArrayLike, /) -> Array:
    """Swap the last two axes."""
    x = promotion.as_array(x, "matrix_transpose")
    promotion.check_axes_number("matrix_transpose", x, 2)
    return swapaxes(x, -2, -1)


@operation(static=("axis1", "axis2"))
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Exchange two axes."""
    a = promotion.as_array(a, "swapaxes")
    i, j = (promotion.axis_of("swapaxes", axis, a.ndim) for axis in (axis1, axis2))
    order = list(range(a.ndim))
    order[i], order[j] = j, i
    return layout.transpose(a, order)


@operation(static=("source", "destination"))
def moveaxis(a: ArrayLike, source: Axes, destination: Axes) -> Array:
    """Move axes to new positions; the others keep their order."""
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
    """Move one axis back until it stands before position `start`. `moveaxis` is clearer."""
    a = promotion.as_array(a, "rollaxis")
    axis = promotion.axis_of("rollaxis", axis, a.ndim)
    start = check_integer("rollaxis", "start", start, -a.ndim, a.ndim)
    start = start + a.ndim if start < 0 else start
    return moveaxis(a, axis, start - 1 if axis < start else start)


@operation(static=("axis",))
def squeeze(a: ArrayLike, axis: Axes | None = None) -> Array:
    """Remove axes of size 1: those named, or all."""
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
    """Insert axes of size 1, at the places they have in the result."""
    if type(a) not in promotion.NUMBERS:
        a = promotion.as_array(a, "expand_dims")
    count = len(axis) if promotion.is_collection(axis) else 1
    return layout.expand_dims(a, promotion.axes_of("expand_dims", axis, typeof(a).ndim + count))


def add_axes(op: str, arys: Sequence[Any], grow: Callable[[Any], Any]) -> Any:
    """Each array with axes added by `grow`: one result for one array, else a `GROUP`."""
    out = [grow(promotion.as_array(x, op)) for x in arys]
    return out[0] if len(arys) == 1 else GROUP(out)


def atleast_1d(*arys: ArrayLike) -> Any:
    """Give a scalar an axis; arrays stay as they are."""
    return add_axes("atleast_1d", arys, lambda x: x if x.ndim else layout.expand_dims(x, (0,)))


@operation
def atleast_2d(*arys: ArrayLike) -> Any:
    """Add axes in front until there are two."""
    return add_axes(
        "atleast_2d", arys, lambda x: layout.expand_dims(x, range(builtins.max(0, 2 - x.ndim)))
    )


@operation
def atleast_3d(*arys: ArrayLike) -> Any:
    """Add axes until there are three: a vector becomes (1, n, 1), a matrix (m, n, 1)."""
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return add_axes("atleast_3d", arys, lambda x: layout.expand_dims(x, new.get(x.ndim, ())))


@operation(static=("offset", "axis1", "axis2"))
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of the matrices along two axes, as the last axis of the result."""
    a = promotion.as_array(a, "diagonal")
    promotion.check_axes_number("diagonal", a, 2)
    i, j = promotion.axes_of("diagonal", (axis1, axis2), a.ndim)
    offset = check_integer("diagonal", "offset", offset)
    a = moveaxis(a, (i, j), (-2, -1))
    *batch, m, n = a.shape
    count = builtins.max(0, builtins.min(m + builtins.min(offset, 0), n - builtins.max(offset, 0)))
    first = offset if offset >= 0 else -offset * n
    if not count:
        return layout.full((*batch, 0), 0, a.dtype)
    # In row-major order the diagonal's elements are n + 1 apart.
    flat = layout.reshape(a, (*batch, m * n))
    return slicing.slice_in_dim(flat, first, first + (count - 1) * (n + 1) + 1, n + 1, len(batch))


# --- broadcasting -----------------------------------------------------------------------------


@operation(static=("shape", "out_sharding"))
def broadcast_to(array: ArrayLike, shape: Shape, *, out_sharding: ShardingLike = None) -> Array:
    """Repeat an array along new axes in front and along axes of size 1, to `shape`.

    `out_sharding` says how the result is split over explicit axes of a mesh.
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
    """Arrays repeated to their common shape, and split over explicit axes of a mesh as a sum is.

    A list, and under jaxlib 0.12 a tuple, as in the JAX that belongs to it.
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
    """Join arrays along an axis they have; with axis=None, all their elements in a row.

    >>> jnp.concatenate([jnp.zeros(2), jnp.ones(1)])
    Array([0., 0., 1.], dtype=float32)
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
    """Join arrays along an axis they have: `concatenate` under the array standard's name."""
    return join_arrays("concat", as_arrays("concat", arrays), axis)


@operation(static=("axis", "out", "dtype"))
def stack(
    arrays: ArrayLike | Sequence[ArrayLike],
    axis: int = 0,
    out: None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Join arrays of one shape along a new axis."""
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
    """Join arrays as rows: along the first axis, vectors standing for one row each."""
    return join_arrays("vstack", [atleast_2d(x) for x in as_arrays("vstack", tup)], 0, dtype)


@operation(static=("dtype",))
def hstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays side by side: along the second axis, vectors along their only one."""
    parts = [atleast_1d(x) for x in as_arrays("hstack", tup)]
    return join_arrays("hstack", parts, 0 if parts and parts[0].ndim == 1 else 1, dtype)


@operation(static=("dtype",))
def dstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays in depth: along the third axis; `dtype` is that of the result."""
    parts = as_arrays("dstack", tup)
    if parts and parts[0].ndim == 2 and all(x.shape == parts[0].shape for x in parts):
        return slicing.stack(convert_together("dstack", parts, dtype), 2)
    return join_arrays("dstack", [atleast_3d(x) for x in parts], 2, dtype)


@operation
def column_stack(tup: ArrayLike | Sequence[ArrayLike]) -> Array:
    """Join arrays as columns: vectors stand for one column each."""
    parts = as_arrays("column_stack", tup)
    if parts and parts[0].ndim == 1 and all(x.shape == parts[0].shape for x in parts):
        return slicing.stack(convert_together("column_stack", parts), 1)
    columns = [x if x.ndim > 1 else layout.expand_dims(atleast_1d(x), (1,)) for x in parts]
    return join_arrays("column_stack", columns, 1)


@operation
def block(arrays: Any) -> Array:
    """Put an array together from nested lists of blocks, innermost lists along the last axis."""
    depth = block_depth(arrays)
    if depth == 0:
        return promotion.as_array(arrays, "block")
    leaves = [promotion.as_array(x, "block") for x in block_leaves(arrays)]
    ndim = builtins.max(depth, *[x.ndim for x in leaves])
    return join_blocks(arrays, depth, ndim)


def block_depth(x: Any) -> int:
    """How deep the lists are nested; equally deep everywhere."""
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
    """The blocks of one level joined; the innermost lists lie along the last axis."""
    if depth == 0:
        x = promotion.as_array(x, "block")
        return layout.expand_dims(x, range(ndim - x.ndim))
    return join_arrays("block", [join_blocks(y, depth - 1, ndim) for y in x], ndim - depth)


@operation(static=("axis",))
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Join `values` to the end of an array; with axis=None both are flattened first."""
    return join_arrays(
        "append", [promotion.as_array(arr, "append"), promotion.as_array(values, "append")], axis
    )


# --- taking apart -----------------------------------------------------------------------------


def array_split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Cut an array into parts along an axis, as equal as may be, or at the given places."""
    return cut_array("array_split", ary, as_static_places(indices_or_sections), axis, equal=False)


def split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Cut an array into equal parts along an axis, or at the given places."""
    return cut_array("split", ary, as_static_places(indices_or_sections), axis)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Cut an array along its first axis."""
    return cut_array("vsplit", ary, as_static_places(indices_or_sections), 0, least=2)


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Cut an array along its second axis, a vector along its only one."""
    ary = promotion.as_array(ary, "hsplit")
    return cut_array(
        "hsplit", ary, as_static_places(indices_or_sections), 0 if ary.ndim == 1 else 1
    )


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Cut an array along its third axis."""
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
    """The elements along an axis, as a tuple of arrays without it."""
    x = promotion.as_array(x, "unstack")
    promotion.check_axes_number("unstack", x, 1)
    return tuple(slicing.unstack(x, promotion.axis_of("unstack", axis, x.ndim)))


# --- repeating, turning -----------------------------------------------------------------------


@operation(static=("reps",))
def tile(A: ArrayLike, reps: ArrayLike | Sequence[int]) -> Array:
    """Repeat a whole array `reps` times along each axis."""
    A = promotion.as_array(A, "tile")
    counts = promotion.shape_of("tile", reps)
    rank = builtins.max(len(counts), A.ndim)
    A = layout.expand_dims(A, range(rank - A.ndim))
    return slicing.tile(A, (1,) * (rank - len(counts)) + counts)


@operation(static=("axis",))
def flip(m: ArrayLike, axis: Axes | None = None) -> Array:
    """Reverse the order of elements along axes, by default along all."""
    m = promotion.as_array(m, "flip")
    return layout.rev(m, promotion.axes_of("flip", axis, m.ndim))


@operation
def fliplr(m: ArrayLike) -> Array:
    """Reverse the order of columns."""
    m = promotion.as_array(m, "fliplr")
    promotion.check_axes_number("fliplr", m, 2)
    return layout.rev(m, (1,))


def flipud(m: ArrayLike) -> Array:
    """Reverse the order of rows."""
    return flip(m, 0)


@operation(static=("k", "axes"))
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Turn an array by k quarter turns in the plane of two axes, from the first to the second."""
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
    """Shift elements along axes; what leaves at the end comes in at the front.

    `shift` may be traced. With axis=None the flattened array is shifted.
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
    if is_size or not isinstance(n, SymbolicSize) or k < 0 or not k <= n:
        k = k % n
    if k == 0:
        return a
    tail = slicing.slice_in_dim(a, n - k, n, 1, axis)
    return slicing.concatenate([tail, slicing.slice_in_dim(a, 0, n - k, 1, axis)], axis)


def reshape_array(
    self: Any, *shape: Any, order: str = "C", out_sharding: ShardingLike = None
) -> Array:
    """The same elements under another shape: x.reshape(2, 3) or x.reshape((2, 3))."""
    sizes = shape[0] if len(shape) == 1 else shape
    if order == "C" and out_sharding is None:
        return reshape(self, sizes)
    return reshape(self, sizes, order, out_sharding=out_sharding)


def transpose_array(self: Any, *axes: Any) -> Array:
    """Permute the axes: x.transpose(1, 0), x.transpose((1, 0)); without axes, reverse them."""
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], list | tuple)):
        return transpose(self, axes[0])
    return transpose(self, axes or None)
