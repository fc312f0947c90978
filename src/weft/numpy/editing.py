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
from weft.numpy.creation import arange, asarray, asarray_beside
from weft.numpy.indexing import PLAIN, Access, broadcast_last, check_integer_indices, getitem_with
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
from weft.util import SymbolicSize, has_symbolic_size
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
    """Repeat each element of an array along an axis.

    `tile` repeats the whole array instead. The length of the result is the sum of the repetitions.
    For this reason, `total_repeat_length` must be given where `repeats` is traced.

    Args:
      a: an array or scalar of any shape and dtype.
      repeats: the number of repetitions: an integer, or a vector of integers, one for each element
        along the axis; none of them negative.
      axis: the axis, an int; a negative axis counts from the end. None, the default, flattens the
        array first.
      total_repeat_length: the size of the result along the axis, an int. Elements beyond it are cut
        off; if elements are missing, the last one along the axis of the operand follows. None, the
        default, computes the size.
      out_sharding: how the result is split over explicit axes of a mesh: a spec over the mesh in
        scope, or a NamedSharding. None, the default, follows from the operand.

    Returns:
      an array of the dtype of `a`.

    Raises:
      ShapeError: if a number of repetitions is negative, or their number does not fit the axis.
      DtypeError: if `repeats` are not integers.
      ConcretizationTypeError: if `repeats` is traced and `total_repeat_length` is None.

    >>> jnp.repeat(jnp.array([1, 2]), 2)
    Array([1, 1, 2, 2], dtype=int32)
    >>> jnp.repeat(jnp.array([1, 2]), jnp.array([1, 3]))
    Array([1, 2, 2, 2], dtype=int32)
    >>> jnp.repeat(jnp.array([1, 2]), jnp.array([2, 1]), total_repeat_length=5)
    Array([1, 1, 2, 2, 2], dtype=int32)
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
    """Return an array of any shape with the elements of another, repeated or cut off.

    The elements are taken in row-major order, from the first again where they are used up. An empty
    array gives zeros. Under `jit`, `new_shape` must be static.

    Args:
      a: an array or scalar of any shape and dtype.
      new_shape: the shape of the result, an int or a sequence of ints.

    Returns:
      an array of the given shape and the dtype of `a`.

    Raises:
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.resize(jnp.arange(3), (2, 2))
    Array([[0, 1],
           [2, 0]], dtype=int32)
    >>> jnp.resize(jnp.arange(3), 2)
    Array([0, 1], dtype=int32)
    """
    a = as_array(a, "resize")
    a = lax.reshape(a, (a.size,))
    shape = shape_of("resize", new_shape)
    size = math.prod(shape)
    if has_symbolic_size((a.size, size)):  # which is longer is not known
        places = lax.rem(arange(size), as_array(a.size, "resize"))
        return reshape(getitem_with(a, (places,), PLAIN), shape)
    if a.size == 0:
        return lax.full(shape, 0, a.dtype)
    if size > a.size:
        count = (size - 1) // a.size
        if count < 8:
            rest = lax.slice_in_dim(a, 0, size - count * a.size, 1, 0)
            a = lax.concatenate([a] * count + [rest], 0)
        else:
            a = tile(a, count + 1)
    return reshape(lax.slice_in_dim(a, 0, size, 1, 0), shape)


# --- putting in -------------------------------------------------------------------------------


def insert(
    arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, axis: int | None = None
) -> Array:
    """Insert values into an array, before given places.

    The result is a new array. The places refer to the array without the new values. Under `jit`,
    `obj` may be traced. In arrays of places and in traced places, numbers out of bounds mean the
    first place or the end; NumPy raises an error for them.

    Args:
      arr: an array or scalar of any shape and dtype.
      obj: the places: an integer from `-n` to `n`, where n is the size of the axis, or a slice, or
        a vector of integers. Negative numbers count from the end.
      values: the values, an array or scalar that broadcasts to the places. They are converted to
        the dtype of `arr`. With one place, a vector is inserted there as a whole.
      axis: the axis, an int; a negative axis counts from the end. None, the default, flattens the
        array first.

    Returns:
      an array of the dtype of `arr`, longer along the axis.

    Raises:
      IndexingError: if `obj` is a Python or NumPy integer out of bounds.
      DtypeError: if places are not integers.
      ShapeError: if `axis` is out of range.

    >>> x = jnp.array([1, 2, 3])
    >>> jnp.insert(x, 1, 9)
    Array([1, 9, 2, 3], dtype=int32)
    >>> jnp.insert(x, 1, jnp.array([7, 8]))
    Array([1, 7, 8, 2, 3], dtype=int32)
    >>> jnp.insert(x, jnp.array([0, 2]), jnp.array([7, 8]))
    Array([7, 1, 2, 8, 3], dtype=int32)
    >>> jnp.insert(jnp.zeros((2, 2)), 1, 5, axis=1)
    Array([[0., 5., 0.],
           [0., 5., 0.]], dtype=float32)
    """
    arr = as_array(arr, "insert")
    values = asarray_beside(values, arr)
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
    """Return for each place of the result its number among n old elements, then the new ones.

    Elements are sorted by twice their place, plus one for an old element: a new one comes before
    it.
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
    """Return an array without the elements at given places.

    The number of distinct places decides the shape of the result. For this reason, a traced vector
    of places needs `assume_unique_indices`, and a mask must not be traced. A single place may be
    traced; out of bounds it means the nearest place.

    Args:
      arr: an array or scalar of any shape and dtype.
      obj: the places: an integer, a slice, a vector of integers, or a bool vector of the size of
        the axis. Negative numbers count from the end.
      axis: the axis, an int; a negative axis counts from the end. None, the default, flattens the
        array first.
      assume_unique_indices: True promises that the places are distinct, so that they may be traced.
        The default is False.

    Returns:
      an array of the dtype of `arr`, shorter along the axis.

    Raises:
      IndexingError: if a known place is out of bounds, without `assume_unique_indices`, or a mask
        has another size than the axis.
      ConcretizationTypeError: if `obj` is a traced mask, or a traced vector without
        `assume_unique_indices`.
      ShapeError: if `axis` is out of range.

    >>> x = jnp.arange(5)
    >>> jnp.delete(x, 1)
    Array([0, 2, 3, 4], dtype=int32)
    >>> jnp.delete(x, jnp.array([0, -1]))
    Array([1, 2, 3], dtype=int32)
    >>> jnp.delete(x, x > 2)
    Array([0, 1, 2], dtype=int32)
    >>> remove = weft.jit(lambda x, i: jnp.delete(x, i, assume_unique_indices=True))
    >>> remove(x, jnp.array([1, 3]))
    Array([0, 2, 4], dtype=int32)
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
    if isinstance(n, SymbolicSize) and not isinstance(obj, Tracer):
        where = list_symbolic_places("delete", obj, n)
        assume_unique_indices = True
    else:
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
    # Find the remaining places if distinct places are traced: each removed place shifts those after
    # it.
    kept = lax.broadcasted_iota(INT32, (n - where.size,), 0)
    for i in lax.unstack(lax.sort(where, 0)):
        kept = lax.add(kept, convert(lax.ge(kept, i), INT32))
    return take_places(arr, kept, axis)


def list_symbolic_places(op: str, obj: Any, n: SymbolicSize) -> Any:
    """Return the distinct places that a number, slice or vector names on an axis of size n."""
    if isinstance(obj, slice):
        if obj.stop is None:
            raise ShapeError(
                f"{op}: a slice of an axis of symbolic size must have an end; got {obj}, {n}. "
                "Hint: x[start:stop]."
            )
        obj = np.arange(obj.start or 0, obj.stop, obj.step or 1)
    places = np.unique(np.asarray(check_integer_indices(op, obj)))
    if places.size and not (-n <= int(places[0]) and int(places[-1]) < n):
        raise IndexingError(f"{op}: places must be in [-{n}, {n - 1}]; got {obj}.")
    if places.size and places[0] < 0 <= places[-1]:
        raise IndexingError(
            f"{op}: places on an axis of symbolic size must be of one sign; got {obj}, {n}."
        )
    from_end = bool(places.size) and places[0] < 0
    where = asarray(places.astype(np.int32))
    return lax.add(where, asarray(n, dtype=INT32)) if from_end else where


@operation(static=("axis",))
def take_out(x: Any, place: Any, axis: int) -> Any:
    """`delete` of one place, an int32: XLA has no vector loop to concatenate two slices."""
    before, behind = (lax.slice_in_dim(x, i, i + x.shape[axis] - 1, 1, axis) for i in (0, 1))
    at = lax.broadcasted_iota(INT32, before.shape, axis)
    return lax.select(lax.lt(at, lax.full_like(at, place)), before, behind)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """Remove the zeros at the front and at the back of an array.

    Zeros between other elements stay. Along several axes, the result is the smallest block that
    holds all elements that are not zero. The values decide the shape of the result, so that it does
    not work under `jit`.

    Args:
      filt: an array with at least one axis, of any dtype.
      trim: "f" for the front, "b" for the back, or "fb", the default, for both.
      axis: the axes to trim, an int or a sequence of distinct ints. None, the default, trims all
        axes.

    Returns:
      an array of the dtype of `filt`.

    Raises:
      ValueError: if `trim` has other letters.
      ShapeError: if `filt` is a scalar, or an axis is out of range.
      ConcretizationTypeError: if `filt` is traced.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.trim_zeros(jnp.array([0, 0, 1, 0, 2, 0]))
    Array([1, 0, 2], dtype=int32)
    >>> jnp.trim_zeros(jnp.array([0, 1, 0]), trim="f")
    Array([1, 0], dtype=int32)
    >>> jnp.trim_zeros(jnp.array([[0, 0], [0, 1]]))
    Array([[1]], dtype=int32)
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
