"""Distinct elements, and vectors as sets of them.

Their number depends on values: eagerly the host finds them, under jit `size` fixes the number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes, lax
from weft.errors import ShapeError
from weft.numpy.indexing import Access, broadcast_last, getitem_with
from weft.numpy.manipulation import moveaxis
from weft.numpy.members import find_members
from weft.numpy.promotion import (
    as_array,
    as_arrays_together,
    as_operand,
    axis_of,
    cast_operand,
    drop_weak_type,
    promote_operands,
)
from weft.numpy.searching import find_places_of_size, require_concrete
from weft.numpy.sorting import search_by_halving
from weft.primitives import elementwise as ops
from weft.primitives.families import check_integer
from weft.primitives.layout import literal
from weft.run.operation import operation
from weft.util import name_function
from weft.xla.array import ArrayImpl, put
from weft.xla.typing import Array, ArrayLike

INT32 = np.dtype(np.int32)
BOOL = np.dtype(bool)
INSIDE = Access(lax.GatherScatterMode.CLIP, checked=False)


# --- distinct elements ------------------------------------------------------------------------


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:
    """Return the distinct elements of an array, sorted; with `axis`, the distinct slices.

    The number of distinct elements depends on the values, so a compiled program needs `size`.

    Args:
      ar: an array of any shape and dtype.
      return_index: if True, also return the index of the first occurrence of each element.
      return_inverse: if True, also return the indices into the result that rebuild the array.
      return_counts: if True, also return how often each element occurs. Elements that pad have the
        count 0.
      axis: the axis along which slices are compared, as for the rows of a table. None flattens the
        array.
      equal_nan: if True, all NaN count as one element, else each is distinct.
      size: the number of results. If there are more distinct elements, the largest are left out; if
        there are fewer, `fill_value` follows them. None returns all, which needs concrete values,
        so `size` is required under `jit`.
      fill_value: the value that pads the result, converted to the dtype of `ar`. None stands for
        the smallest element.
      sorted: accepted, without effect: the result is always sorted.

    Returns:
      The distinct elements (k,), in ascending order, or an array with k slices along `axis`. If
      flags are set, a tuple: the elements, then, where they are wanted, the indices (k,), the
      inverse in the shape of `ar`, or (n,) with `axis`, and the counts (k,), all of the default
      integer dtype. The inverse of an element that is left out is k or more.

    Raises:
      ConcretizationTypeError: if `size` is None and an operand is traced.
      ShapeError: if the array lacks the axis, if `size` is negative, or if an empty array is padded
        without a `fill_value`.

    >>> x = jnp.array([3, 1, 1])
    >>> values, inverse, counts = jnp.unique(x, return_inverse=True, return_counts=True)
    >>> print(values, inverse, counts)
    [1 3] [1 0 0] [2 1]
    >>> jnp.unique(x, size=3, fill_value=0)
    Array([1, 3, 0], dtype=int32)
    >>> print(jnp.unique(jnp.array([[3, 1], [3, 1], [0, 2]]), axis=0))
    [[0 2]
     [3 1]]
    """
    x = as_array(ar, "unique")
    asked = (True, return_index, return_inverse, return_counts)
    if size is None:
        found = find_unique_now(x, axis, equal_nan, *asked[1:])
    else:
        places = return_index or return_inverse
        size = check_integer("unique", "size", size, 0)
        found = find_unique_of_size(x, axis, equal_nan, size, fill_value, places)
    out = tuple(r for r, wanted in zip(found, asked, strict=True) if wanted)
    return out if len(out) > 1 else out[0]


def find_unique_now(x: Any, axis: int | None, equal_nan: bool, *asked: bool) -> tuple:
    """Find distinct elements, and the first indices, inverse and counts that are wanted.

    The host finds them: without indices, which need a sort of indices, several times faster.
    """
    values = require_concrete("unique", x, "elements")
    if axis is not None:
        axis = axis_of("unique", axis, x.ndim)
    found = np.unique(values, *asked, axis=axis, equal_nan=equal_nan)
    if not any(asked):
        return put(found), None, None, None
    rest = iter(found[1:])
    places = [put(next(rest).astype(dtypes.default_int())) if a else None for a in asked]
    if places[1] is not None:
        places[1] = lax.reshape(places[1], x.shape if axis is None else (x.shape[axis],))
    return put(found[0]), *places


def find_unique_of_size(
    x: Any, axis: int | None, equal_nan: bool, size: int, fill_value: Any, places: bool
) -> tuple:
    """Find distinct elements, first indices, inverse and counts, `size` of them.

    Unless `places` are wanted, first indices and inverse are None: only elements sort faster.
    """
    if axis is None:
        rows, shape = lax.reshape(x, (x.size,)), x.shape
    else:
        axis = axis_of("unique", axis, x.ndim)
        rows, shape = moveaxis(x, axis, 0), (x.shape[axis],)
    n = rows.shape[0]
    if not n and size and fill_value is None:
        raise ShapeError(
            f"unique: of no elements, a size above 0 needs a fill_value; got {x.aval}, size {size}."
        )
    fill = None if fill_value is None else cast_operand("unique", fill_value, x.dtype)
    if not rows.size:
        value = literal(False, x.dtype) if fill is None else fill
        values = lax.broadcast_in_dim(value, (size, *rows.shape[1:]), ())
        none = lax.full((size,), 0, dtypes.default_int())
        return values, none, lax.full(shape, 0, dtypes.default_int()), none
    values, first, inverse, counts = find_distinct_rows(rows, fill, size, equal_nan, places)
    values = values if axis is None else moveaxis(values, 0, axis)
    return values, first, lax.reshape(inverse, shape) if places else None, counts


@operation(static=("size", "equal_nan", "with_places"))
def find_distinct_rows(
    rows: Any, fill: Any, size: int, equal_nan: bool, with_places: bool
) -> tuple:
    """Find distinct rows, first indices, inverse and counts: sorted rows unlike the one before."""
    n = rows.shape[0]
    ordered, order, mark = sort_rows(rows, equal_nan, with_places)
    (bounds,) = find_places_of_size(mark, size + 1, (n,))
    bounds = ops.convert(bounds, INT32)
    starts, ends = (lax.slice_in_dim(bounds, i, size + i) for i in (0, 1))
    there = ops.lt(starts, literal(n, INT32))
    shown = ops.select(there, starts, lax.full((size,), 0, INT32))
    values = getitem_with(ordered, shown, INSIDE)
    if fill is not None:
        other = broadcast_last(fill, values.shape)
        values = ops.select(lax.broadcast_in_dim(there, values.shape, (0,)), values, other)
    dtype = dtypes.default_int()
    counts = ops.convert(ops.sub(ends, starts), dtype)
    if not with_places:
        return values, None, None, counts
    first = getitem_with(order, shown, INSIDE)
    rank = ops.sub(lax.cumsum(ops.convert(mark, INT32)), literal(1, INT32))
    index = lax.reshape(order, (n, 1))
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    flags = {"unique_indices": True, "mode": "promise_in_bounds"}
    inverse = lax.scatter(lax.full((n,), 0, INT32), index, rank, numbers, **flags)
    return values, ops.convert(first, dtype), ops.convert(inverse, dtype), counts


def sort_rows(rows: Any, equal_nan: bool, with_places: bool = True) -> tuple[Any, Any, Any]:
    """Sort rows in lexicographic order; return rows, indices, and a mask of distinct rows."""
    n = rows.shape[0]
    flat = lax.reshape(rows, (n, rows.size // n))
    columns = list(lax.unstack(flat, 1))
    places = [lax.broadcasted_iota(INT32, (n,), 0)] if with_places else []
    found = lax.sort((*columns, *places), 0, num_keys=len(columns))
    columns, order = list(found[: len(columns)]), found[-1] if with_places else None
    differs = None
    for c in columns:
        a, b = lax.slice_in_dim(c, 1, n), lax.slice_in_dim(c, 0, n - 1)
        d = ops.ne(a, b)
        if equal_nan and dtypes.is_inexact(c.dtype):
            d = ops.bitwise_and(d, ops.bitwise_not(ops.bitwise_and(ops.ne(a, a), ops.ne(b, b))))
        differs = d if differs is None else ops.bitwise_or(differs, d)
    mark = lax.concatenate([lax.full((1,), True, BOOL), differs], 0)
    ordered = lax.reshape(lax.stack(columns, 1), rows.shape)
    return ordered, order, mark


class UniqueAll(NamedTuple):
    """Distinct elements, and their first places, their numbers for each element, and counts."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """Distinct elements, and how often each is there."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """Distinct elements, and the number of the one that each element is."""

    values: Array
    inverse_indices: Array


def make_unique(name: str, result: Callable, asked: Sequence[str], doc: str) -> Callable:
    """Return a function of the array API: `unique` with the flags `asked`, as a `result`."""

    def fun(
        x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
    ) -> Any:
        flags = dict.fromkeys(asked, True)
        return result(*unique(x, equal_nan=False, size=size, fill_value=fill_value, **flags))

    fun.__annotations__["return"] = result.__name__
    return name_function(fun, name, doc)


unique_all = make_unique(
    "unique_all",
    UniqueAll,
    ("return_index", "return_inverse", "return_counts"),
    """Return the distinct elements with indices, inverse and counts.

    This is a part of `unique` in the array API standard, where each NaN is distinct.

    Args:
      x: an array of any shape and dtype.
      size: the number of results. If there are more distinct elements, the largest are left out; if
        there are fewer, `fill_value` follows them. None returns all, which needs concrete values,
        so `size` is required under `jit`.
      fill_value: the value that pads the result, converted to the dtype of `x`. None stands for the
        smallest element.

    Returns:
      A named tuple: values (k,), in ascending order; indices (k,), the first occurrence of each
      element in the flattened array; inverse_indices, of the shape of `x`, which rebuild it from
      the values; counts (k,).

    Raises:
      ConcretizationTypeError: if `size` is None and an operand is traced.
      ShapeError: if an empty array is padded without a `fill_value`.

    >>> values, indices, inverse, counts = jnp.unique_all(jnp.array([3, 1, 1]))
    >>> print(values, indices, inverse, counts)
    [1 3] [1 0] [1 0 0] [2 1]
    """,
)
unique_counts = make_unique(
    "unique_counts",
    UniqueCounts,
    ("return_counts",),
    """Return the distinct elements, and how often each occurs.

    This is a part of `unique` in the array API standard, where each NaN is distinct.

    Args:
      x: an array of any shape and dtype.
      size: the number of results. If there are more distinct elements, the largest are left out; if
        there are fewer, `fill_value` follows them. None returns all, which needs concrete values,
        so `size` is required under `jit`.
      fill_value: the value that pads the result, converted to the dtype of `x`. None stands for the
        smallest element.

    Returns:
      A named tuple: values (k,), in ascending order, and counts (k,).

    Raises:
      ConcretizationTypeError: if `size` is None and an operand is traced.
      ShapeError: if an empty array is padded without a `fill_value`.

    >>> values, counts = jnp.unique_counts(jnp.array([3, 1, 1]))
    >>> print(values, counts)
    [1 3] [2 1]
    """,
)
unique_inverse = make_unique(
    "unique_inverse",
    UniqueInverse,
    ("return_inverse",),
    """Return the distinct elements, and the indices that rebuild the array from them.

    This is a part of `unique` in the array API standard, where each NaN is distinct.

    Args:
      x: an array of any shape and dtype.
      size: the number of results. If there are more distinct elements, the largest are left out; if
        there are fewer, `fill_value` follows them. None returns all, which needs concrete values,
        so `size` is required under `jit`.
      fill_value: the value that pads the result, converted to the dtype of `x`. None stands for the
        smallest element.

    Returns:
      A named tuple: values (k,), in ascending order, and inverse_indices, of the shape of `x`.

    Raises:
      ConcretizationTypeError: if `size` is None and an operand is traced.
      ShapeError: if an empty array is padded without a `fill_value`.

    >>> values, inverse = jnp.unique_inverse(jnp.array([3, 1, 1]))
    >>> print(values, values[inverse])
    [1 3] [3 1 1]
    """,
)


def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return the distinct elements in ascending order.

    This is a part of `unique` in the array API standard, where each NaN is distinct.

    Args:
      x: an array of any shape and dtype.
      size: the number of results. If there are more distinct elements, the largest are left out; if
        there are fewer, `fill_value` follows them. None returns all, which needs concrete values,
        so `size` is required under `jit`.
      fill_value: the value that pads the result, converted to the dtype of `x`. None stands for the
        smallest element.

    Returns:
      The elements (k,), in the dtype of `x`.

    Raises:
      ConcretizationTypeError: if `size` is None and an operand is traced.
      ShapeError: if an empty array is padded without a `fill_value`.

    >>> print(jnp.unique_values(jnp.array([3, 1, 1])))
    [1 3]
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# --- vectors as sets --------------------------------------------------------------------------


def flatten_together(op: str, ar1: Any, ar2: Any) -> list:
    """Flatten two arrays, in their common dtype."""
    a, b = promote_operands(op, *as_arrays_together(op, ar1, ar2), shaped=False)
    return [lax.reshape(x, (x.size,)) for x in (a, b)]


@operation(known=2, static=("assume_unique", "invert"))
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Return True for the elements that are among the test elements.

    NaN is not equal to any element. A few test elements are compared with each element; more are
    sorted and searched, or, on CPUs, looked up in a table.

    Args:
      element: an array of any shape and dtype.
      test_elements: an array of any shape, which is flattened. The operands are promoted to one
        dtype.
      assume_unique: accepted, without effect.
      invert: if True, return the opposite. Static under `jit`.
      method: accepted for programs that were written for JAX, without effect.

    Returns:
      Booleans of the shape of `element`.

    >>> x = jnp.array([1, 2, 3])
    >>> print(jnp.isin(x, jnp.array([2, 5])), jnp.isin(x, jnp.array([2, 5]), invert=True))
    [False  True False] [ True False  True]
    """
    x = as_array(element, "isin")
    a, b = flatten_together("isin", x, test_elements)
    out = drop_weak_type(lax.reshape(find_members(a, b), x.shape))
    return ops.bitwise_not(out) if invert else out


@operation(static=("inside", "with_places"))
def mark_distinct(a: Any, b: Any, inside: bool, with_places: bool = False) -> tuple:
    """Sort a vector; return it, indices or None, and a mask of distinct elements.

    Those are marked that another vector has if `inside`, else those that it does not have.
    """
    ordered, order, mark = sort_rows(a, True, with_places)
    found = find_members(ordered, b)
    return ordered, order, ops.bitwise_and(found if inside else ops.bitwise_not(found), mark)


@operation
def mark_unshared(a: Any, b: Any) -> tuple:
    """Sort the elements of two vectors; return them, and a mask of those that only one has."""
    ordered, _, mark = sort_rows(lax.concatenate([a, b], 0), True, False)
    shared = ops.bitwise_and(find_members(ordered, a), find_members(ordered, b))
    return ordered, ops.bitwise_and(ops.bitwise_not(shared), mark)


def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return the distinct elements of two arrays, sorted.

    Args:
      ar1: an array of any shape and dtype, which is flattened.
      ar2: an array, which is flattened. The operands are promoted to one dtype.
      size: the number of results, padded with `fill_value` or cut. None returns all, which needs
        concrete values, so `size` is required under `jit`.
      fill_value: the value that pads the result, converted to its dtype. None stands for the
        smallest element.

    Returns:
      The elements (k,), in ascending order and the promoted dtype.

    Raises:
      ConcretizationTypeError: if `size` is None and an operand is traced.

    >>> a, b = jnp.array([1, 2]), jnp.array([2, 3])
    >>> print(jnp.union1d(a, b), jnp.union1d(a, b, size=5, fill_value=0))
    [1 2 3] [1 2 3 0 0]
    """
    both = lax.concatenate(flatten_together("union1d", ar1, ar2), 0)
    return unique(both, size=size, fill_value=fill_value)


def keep_elements(vector: Any, keep: Any, size: int | None, fill: Any, op: str) -> tuple[Any, Any]:
    """Return the elements that a mask keeps, and their indices: all, or `size` of them.

    With `size`, the elements have a dtype that holds the fill value.
    """
    size = None if size is None else check_integer(op, "size", size, 0)
    if size is None:
        mask = require_concrete(op, keep, "elements") != 0
        where = put(np.flatnonzero(mask).astype(np.int32))
        plain = type(vector) is ArrayImpl and not (vector.weak_type or vector.committed)
        if plain:  # the host has both, and needs no program
            return put(require_concrete(op, vector, "elements")[mask]), where
        return getitem_with(vector, where, INSIDE), where
    (where,) = find_places_of_size(keep, size, (vector.size,))
    where = ops.convert(where, INT32)
    there = ops.lt(where, literal(vector.size, INT32))
    safe = ops.select(there, where, lax.full((size,), 0, INT32))
    values, fill = promote_operands(op, getitem_with(vector, safe, INSIDE), fill)
    return ops.select(there, values, fill), where


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the elements of the first array that are not in the second.

    Args:
      ar1: an array of any shape and dtype, which is flattened.
      ar2: an array, which is flattened. The operands are promoted to one dtype.
      assume_unique: if True, the elements of `ar1` keep their order, and repeated ones stay. If
        False, the result is sorted and distinct.
      size: the number of results, padded with `fill_value` or cut. None returns all, which needs
        concrete values, so `size` is required under `jit`.
      fill_value: the value that pads the result, converted to its dtype. None stands for 0.

    Returns:
      The elements (k,), in the promoted dtype.

    Raises:
      ConcretizationTypeError: if `size` is None and an operand is traced.

    >>> a, b = jnp.array([3, 1, 2, 1]), jnp.array([2, 5])
    >>> print(jnp.setdiff1d(a, b), jnp.setdiff1d(a, b, size=4, fill_value=-1))
    [1 3] [ 1  3 -1 -1]
    """
    a, b = flatten_together("setdiff1d", ar1, ar2)
    if not a.size:
        return a if not size else lax.full((size,), 0, a.dtype)
    if assume_unique:
        keep = ops.bitwise_not(find_members(a, b))
    else:
        a, _, keep = mark_distinct(a, b, False)
    fill = cast_operand("setdiff1d", 0 if fill_value is None else fill_value, a.dtype)
    return keep_elements(a, keep, size, fill, "setdiff1d")[0]


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the elements that are in one of two arrays but not in both, sorted.

    Args:
      ar1: an array of any shape and dtype, which is flattened.
      ar2: an array, which is flattened. The operands are promoted to one dtype.
      assume_unique: accepted, without effect. The results of NumPy are wrong for repeated elements
        if it is True.
      size: the number of results, padded with `fill_value` or cut. None returns all, which needs
        concrete values, so `size` is required under `jit`.
      fill_value: the value that pads the result. The result has a dtype that holds it. None stands
        for the smallest element of the result, or 0 if it has none.

    Returns:
      The distinct elements (k,), in ascending order and the promoted dtype.

    Raises:
      ConcretizationTypeError: if `size` is None and an operand is traced.

    >>> a, b = jnp.array([1, 2, 3]), jnp.array([2, 5])
    >>> print(jnp.setxor1d(a, b), jnp.setxor1d(a, b, size=5, fill_value=0))
    [1 3 5] [1 3 5 0 0]
    """
    a, b = flatten_together("setxor1d", ar1, ar2)
    if not a.size + b.size:
        return a if not size else fill_vector("setxor1d", a, size, fill_value)
    both, keep = mark_unshared(a, b)
    fill = None if size is None else find_smallest_kept(both, keep, fill_value, "setxor1d")
    return keep_elements(both, keep, size, fill, "setxor1d")[0]


def fill_vector(op: str, like: Any, size: int, fill_value: Any) -> Any:
    """Return a vector of the fill value, by default 0, in a dtype that also holds `like`."""
    none, fill = promote_operands(op, like, 0 if fill_value is None else as_operand(op, fill_value))
    return lax.full((size,), fill, none.dtype)


def find_smallest_kept(ordered: Any, keep: Any, fill_value: Any, op: str) -> Any:
    """Return the fill value, by default the first element that a mask keeps, or 0."""
    if fill_value is not None:
        return as_operand(op, fill_value)
    n = ordered.size
    (where,) = find_places_of_size(keep, 1, (n,))
    place = getitem_with(where, 0, INSIDE)
    first = getitem_with(ordered, place, INSIDE)
    return ops.select(ops.lt(place, literal(n, place.dtype)), first, literal(0, first.dtype))


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the distinct elements that are in both of two arrays, sorted.

    Args:
      ar1: an array of any shape and dtype, which is flattened.
      ar2: an array, which is flattened. The operands are promoted to one dtype.
      assume_unique: accepted, without effect.
      return_indices: if True, also return the index of the first occurrence of each element in the
        two flattened arrays. For an element that pads, it is the size of the array.
      size: the number of results, padded with `fill_value` or cut. None returns all, which needs
        concrete values, so `size` is required under `jit`.
      fill_value: the value that pads the result. The result has a dtype that holds it. None stands
        for the smallest element of the result, or 0 if it has none.

    Returns:
      The elements (k,), in ascending order and the promoted dtype. If `return_indices` is True, a
      tuple (elements, indices in `ar1`, indices in `ar2`), where the indices (k,) have the default
      integer dtype.

    Raises:
      ConcretizationTypeError: if `size` is None and an operand is traced.

    >>> a, b = jnp.array([1, 2, 3]), jnp.array([3, 2])
    >>> print(jnp.intersect1d(a, b), jnp.intersect1d(a, b, size=4, fill_value=-1))
    [2 3] [ 2  3 -1 -1]
    >>> values, i, j = jnp.intersect1d(a, b, return_indices=True)
    >>> print(values, a[i], b[j])
    [2 3] [2 3] [2 3]
    """
    a, b = flatten_together("intersect1d", ar1, ar2)
    if not a.size or not b.size:
        none = lax.full((size or 0,), 0, dtypes.default_int())
        empty = fill_vector("intersect1d", a, size or 0, fill_value if size else None)
        return (empty, none, none) if return_indices else empty
    ordered, order, keep = mark_distinct(a, b, True, return_indices)
    fill = None if size is None else find_smallest_kept(ordered, keep, fill_value, "intersect1d")
    values, where = keep_elements(ordered, keep, size, fill, "intersect1d")
    if not return_indices:
        return values
    dtype = dtypes.default_int()
    return values, *[ops.convert(i, dtype) for i in find_first_places(order, b, values, where)]


@operation
def find_first_places(order: Any, b: Any, values: Any, where: Any) -> tuple[Any, Any]:
    """Return the first indices of the elements of an intersection in its two vectors."""
    n, m = order.size, b.size
    there = ops.lt(where, literal(n, INT32))
    first = getitem_with(order, where, INSIDE)
    sorted_b, order_b = lax.sort((b, lax.broadcasted_iota(INT32, (m,), 0)), 0, num_keys=1)
    second = getitem_with(order_b, search_by_halving(sorted_b, values, "left"), INSIDE)
    shape = where.shape
    return (
        ops.select(there, first, lax.full(shape, n, INT32)),
        ops.select(there, second, lax.full(shape, m, INT32)),
    )
