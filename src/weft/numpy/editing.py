"""Elements put in, taken out or repeated along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft.core.aval import typeof
from weft.core.trace import Tracer
from weft.errors import ConcretizationTypeError, IndexingError, ShapeError
from weft.numpy.creation import asarray
from weft.numpy.indexing import Access, broadcast_last, check_integer_indices, getitem_with
from weft.numpy.manipulation import moveaxis, reshape, tile
from weft.numpy.promotion import as_array, as_operand, axes_of, axis_of, check_axes_number, shape_of
from weft.numpy.searching import require_concrete
from weft.numpy.sorting import search_by_halving
from weft.options import config
from weft.primitives.checks import check_inside
from weft.primitives.elementwise import convert
from weft.primitives.families import check_integer
from weft.primitives.layout import literal
from weft.primitives.reshard import compute_freely
from weft.run.operation import operation
from weft.util import SymbolicSize
from weft.xla.array import ArrayImpl, host_view
from weft.xla.typing import Array, ArrayLike, Shape, ShardingLike

INT32 = np.dtype(np.int32)
INSIDE = Access(lax.GatherScatterMode.CLIP, checked=False)


def take_places(x: Any, where: Any, axis: int) -> Any:
    """The slices of `x` along an axis at places that are inside."""
    return getitem_with(x, (*[slice(None)] * axis, where), INSIDE)


def read_known(x: Any) -> np.ndarray | None:
    """The values of an argument, where they are known now."""
    if isinstance(x, Tracer):
        return None
    return host_view(x) if type(x) is ArrayImpl else np.asarray(x)


# --- repeating --------------------------------------------------------------------------------


def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Each element along an axis several times; with axis=None of the flattened array.

    Where `repeats` is traced, `total_repeat_length` gives the length of the result: what is beyond
    is cut off, what is missing filled with the last element. `out_sharding` says how the
    result is split over explicit axes of a mesh.

    >>> jnp.repeat(jnp.array([1, 2]), jnp.array([1, 3]))
    Array([1, 2, 2, 2], dtype=int32)
    """
    if out_sharding is not None:
        how = {"axis": axis, "total_repeat_length": total_repeat_length}
        return compute_freely("repeat", out_sharding, repeat, a, repeats, **how)
    a = as_array(a, "repeat")
    is_size = type(repeats) is int or isinstance(repeats, SymbolicSize)
    if is_size and repeats >= 0 and total_repeat_length is None:
        return repeat_evenly(a, repeats, axis)
    if axis is None:
        a, axis = lax.reshape(a, (a.size,)), 0
    axis = axis_of("repeat", axis, a.ndim)
    n = a.shape[axis]
    repeats = check_integer_indices("repeat", repeats)
    shape = np.shape(repeats)
    if len(shape) > 1 or (shape and shape[0] not in (1, n)):
        raise ShapeError(
            f"repeat: repeats must be one number, or one for each of {n} elements; "
            f"got shape {shape}."
        )
    total = total_repeat_length
    if total is not None:
        total = check_integer("repeat", "total_repeat_length", total, 0)
    counts = read_known(repeats)
    if counts is None:
        if total is None:
            hint = "jnp.repeat(x, repeats, total_repeat_length=n) has a fixed length."
            repeats.concrete(ConcretizationTypeError, "repeat", hint)
        counts = broadcast_last(lax.reshape(repeats, shape or (1,)), (n,))
        return take_places(a, locate_repeats(convert(counts, INT32), total), axis)
    if (counts < 0).any():
        raise ShapeError(f"repeat: repeats must not be negative; got {counts.min()}.")
    if counts.size == 1 and total is None:
        return repeat_evenly(a, int(counts.reshape(())), axis)
    places = np.repeat(np.arange(n, dtype=np.int32), np.broadcast_to(counts, (n,)))
    if total is not None:
        missing = max(total - len(places), 0)
        places = np.pad(places[:total], (0, missing), constant_values=max(n - 1, 0))
    return take_places(a, places, axis)


@operation(static=("count", "axis"))
def repeat_evenly(a: Any, count: int, axis: int | None) -> Any:
    """Each element along an axis `count` times: a new axis beside it, merged into it."""
    if axis is None:
        a, axis = lax.reshape(a, (a.size,)), 0
    axis = axis_of("repeat", axis, a.ndim)
    shape = a.shape
    wide = (*shape[: axis + 1], count, *shape[axis + 1 :])
    dims = [i + (i > axis) for i in range(a.ndim)]
    merged = (*shape[:axis], shape[axis] * count, *shape[axis + 1 :])
    return lax.reshape(lax.broadcast_in_dim(a, wide, dims), merged)


@operation(static=("total",))
def locate_repeats(counts: Any, total: int) -> Any:
    """The place of the element that stands at each of `total` positions."""
    ends = lax.cumsum(counts)
    i = search_by_halving(ends, lax.broadcasted_iota(INT32, (total,), 0), "right")
    return lax.clamp(literal(0, INT32), i, literal(max(counts.size - 1, 0), INT32))


@operation(static=("new_shape",))
def resize(a: ArrayLike, new_shape: Shape) -> Array:
    """The elements in order, repeated or cut off to fill a new shape."""
    a = as_array(a, "resize")
    a = lax.reshape(a, (a.size,))
    shape = shape_of("resize", new_shape)
    size = math.prod(shape)
    if a.size == 0:
        return lax.full(shape, 0, a.dtype)
    if size > a.size:
        count = (size - 1) // a.size
        parts = [a] * count + [lax.slice_in_dim(a, 0, size - count * a.size, 1, 0)]
        a = lax.concatenate(parts, 0) if count < 8 else tile(a, count + 1)
    return reshape(lax.slice_in_dim(a, 0, size, 1, 0), shape)


# --- putting in -------------------------------------------------------------------------------


def insert(
    arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, axis: int | None = None
) -> Array:
    """An array with values put in before the places `obj`: a number, a slice or an index vector.

    With axis=None the array is flattened. `values` are cast to its dtype.

    >>> jnp.insert(jnp.array([1, 2, 3]), 1, 9)
    Array([1, 9, 2, 3], dtype=int32)
    """
    arr, values = as_array(arr, "insert"), asarray(values)
    if axis is None:
        arr, axis = lax.reshape(arr, (arr.size,)), 0
    axis = axis_of("insert", axis, arr.ndim)
    n = arr.shape[axis]
    where = find_places_along("insert", obj, n, n)
    if values.ndim < arr.ndim:
        values = lax.expand_dims(values, range(arr.ndim - values.ndim))
    if not isinstance(obj, slice) and not np.ndim(obj):  # a vector goes along the axis
        values = moveaxis(values, 0, axis)
    known = isinstance(where, np.ndarray)
    plain = known and isinstance(arr.dtype, np.dtype)  # no random keys
    if plain and where.size == 1 and isinstance(arr, Tracer):
        part = (*arr.shape[:axis], values.shape[axis], *arr.shape[axis + 1 :])
        values = broadcast_last(convert(values, arr.dtype), part)
        before, after = (lax.slice_in_dim(arr, *p, 1, axis) for p in ((0, *where), (*where, n)))
        return lax.concatenate([before, values, after], axis)
    if plain and where.size == 1 and math.prod(arr.shape[axis + 1 :]) < 64:
        return put_at(arr, values, where[0], axis)
    count = values.shape[axis] if where.size == 1 else where.size
    if where.size == 1:
        where = where[:1].repeat(count) if known else broadcast_last(where, (count,))
    return put_in(arr, values, order_insertion(where, n), axis)


@operation(static=("axis",))
def put_at(x: Any, values: Any, place: Any, axis: int) -> Any:
    """x with values put in along an axis, all before one place: no index for each element."""
    n, count = x.shape[axis], values.shape[axis]
    part = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    config = lambda *pair: [(*pair, 0) if i == axis else (0, 0, 0) for i in range(x.ndim)]
    before, after = (
        lax.pad(x, literal(False, x.dtype), config(*p)) for p in ((0, count), (count, 0))
    )
    numbers = lax.broadcasted_iota(INT32, (*part[:axis], n + count, *part[axis + 1 :]), axis)
    out = lax.select(lax.lt(numbers, lax.full_like(numbers, place)), before, after)
    values = broadcast_last(convert(values, x.dtype), part)
    return lax.dynamic_update_slice_in_dim(out, values, place, axis)


@operation(static=("axis",))
def put_in(x: Any, values: Any, order: Any, axis: int) -> Any:
    """The elements of x and of values along an axis, together in an order."""
    shape = (*x.shape[:axis], order.shape[0] - x.shape[axis], *x.shape[axis + 1 :])
    both = lax.concatenate([x, broadcast_last(convert(values, x.dtype), shape)], axis)
    return take_places(both, order, axis)


def find_places_along(op: str, obj: Any, n: int, last: int, exact: bool = False) -> Any:
    """The places along an axis of size n that a number, slice or index vector names, from 0 on.

    A number out of bounds raises; computed places do if `exact` and known, else they are clamped.
    """
    if isinstance(obj, slice):
        return np.arange(n, dtype=np.int32)[obj]
    if type(obj) is int and -n <= obj <= last:
        return np.array([obj + n if obj < 0 else obj], np.int32)
    obj = check_integer_indices(op, obj)
    text = f"{op}: places must be in [-{n}, {last}]; got {{}}."
    exact = exact or isinstance(obj, int | np.integer)
    if config.check_bounds == "all" or (exact and not isinstance(obj, Tracer)):
        check_inside(text, obj, -n, last + 1)
    known = read_known(obj)
    if known is None:
        where = lax.reshape(obj, (obj.size,))
        zero, size = literal(0, where.dtype), literal(n, where.dtype)
        where = lax.select(lax.lt(where, zero), lax.add(where, size), where)
        return convert(lax.clamp(zero, where, literal(last, where.dtype)), INT32)
    where = np.ravel(known)
    return np.clip(np.where(where < 0, where + n, where), 0, last).astype(np.int32)


def order_insertion(where: Any, n: int) -> Any:
    """Which of n old elements, then the new ones, stands at each place of the result.

    Sorted by twice the place, plus one for an old element: the new one comes before it.
    """
    if isinstance(where, np.ndarray):
        keys = np.concatenate([2 * np.arange(n) + 1, 2 * where])
        return np.argsort(keys, kind="stable").astype(np.int32)
    old = 2 * np.arange(n, dtype=np.int32) + 1
    keys = lax.concatenate([asarray(old), lax.mul(where, literal(2, INT32))], 0)
    numbers = lax.broadcasted_iota(INT32, keys.shape, 0)
    return lax.sort((keys, numbers), 0, num_keys=1)[1]


# --- taking out -------------------------------------------------------------------------------


def delete(
    arr: ArrayLike,
    obj: ArrayLike | slice,
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """An array without the places `obj`: a number, a slice, an index vector or a mask.

    With axis=None the array is flattened. A traced index vector needs `assume_unique_indices`, for
    the size of the result depends on how many places it names.
    """
    arr = as_array(arr, "delete")
    if axis is None:
        arr, axis = lax.reshape(arr, (arr.size,)), 0
    axis = axis_of("delete", axis, arr.ndim)
    n = arr.shape[axis]
    if not isinstance(obj, slice) and dtypes.is_bool(typeof(as_operand("delete", obj)).dtype):
        if np.shape(obj) != (n,):
            raise IndexingError(f"delete: a mask must have shape ({n},); got {np.shape(obj)}.")
        obj = np.flatnonzero(require_concrete("where", as_array(obj, "delete"), "places"))
    where = find_places_along("delete", obj, n, n - 1, not assume_unique_indices)
    if isinstance(where, np.ndarray):
        keep = np.delete(np.arange(n, dtype=np.int32), where)
        if len(keep) == n - 1:
            return take_out(arr, where[0], axis)
        return take_places(arr, keep, axis)
    if where.size > 1 and not assume_unique_indices:
        where.concrete(
            ConcretizationTypeError, "delete", "assume_unique_indices=True, if they are distinct."
        )
    # the places that are none of distinct traced ones: each one met moves the rest on
    kept = lax.broadcasted_iota(INT32, (n - where.size,), 0)
    for i in lax.unstack(lax.sort(where, 0)):
        kept = lax.add(kept, convert(lax.ge(kept, i), INT32))
    return take_places(arr, kept, axis)


@operation(static=("axis",))
def take_out(x: Any, place: Any, axis: int) -> Any:
    """`delete` of one place, an int32: XLA has no vector loop to concatenate two slices."""
    before, behind = (lax.slice_in_dim(x, i, i + x.shape[axis] - 1, 1, axis) for i in (0, 1))
    at = lax.broadcasted_iota(INT32, before.shape, axis)
    return lax.select(lax.lt(at, lax.full_like(at, place)), before, behind)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """An array without the zeros at its front ("f"), its back ("b"), or both.

    Along the axes named, or all. Not under jit: the size of the result depends on values.
    """
    x = as_array(filt, "trim_zeros")
    check_axes_number("trim_zeros", x, 1)
    if not isinstance(trim, str) or not set(trim.lower()) <= {"f", "b"}:
        raise ValueError(f"trim_zeros: trim must be 'f', 'b' or 'fb'; got {trim!r}.")
    axes = axes_of("trim_zeros", axis, x.ndim)
    found = np.nonzero(require_concrete("nonzero", x, "places"))
    starts, limits = [0] * x.ndim, list(x.shape)
    for i in axes:
        empty = not found[i].size
        if "f" in trim.lower():
            starts[i] = limits[i] if empty else int(found[i].min())
        if "b" in trim.lower():
            limits[i] = starts[i] if empty else int(found[i].max()) + 1
    return lax.slice(x, starts, limits)
