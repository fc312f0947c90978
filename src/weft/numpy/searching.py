"""Finding the elements that satisfy a condition.

How many there are depends on values: eagerly the host counts them, under jit `size` fixes the
number. Sorting is in sorting.py, choosing by index in indexing.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft.core.aval import typeof
from weft.core.trace import Tracer
from weft.errors import ConcretizationTypeError, ShapeError
from weft.numpy.indexing import PLAIN, getitem_with, read_keywords
from weft.numpy.promotion import (
    as_array,
    as_operand,
    axis_of,
    cast_operand,
    check_vector,
    is_nonzero,
    promote_operands,
    refuse_out,
)
from weft.primitives.elementwise import convert
from weft.primitives.families import check_integer
from weft.primitives.layout import literal
from weft.primitives.sort import find_places
from weft.run.operation import operation
from weft.util import has_symbolic_size
from weft.xla.array import host_view, put
from weft.xla.typing import Array, ArrayLike


def require_concrete(op: str, x: Any, what: str) -> np.ndarray:
    """The values of an array that the size of a result depends on."""
    if isinstance(x, Tracer):
        x = x.concrete(
            ConcretizationTypeError,
            op,
            f"jnp.{op}(..., size=n) gives {what} of a fixed number n, padded with fill_value.",
        )
    return host_view(x)


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> tuple[Array, ...]:
    """Find the elements of an array that are not zero.

    Places are in row-major order. Their number depends on the values of the array. For this reason,
    `size` must be given under `jit`, as a static number.

    Args:
      a: an array with at least one axis, of any dtype. NaN counts as not zero.
      size: the number of places in the result, an int of at least 0. If there are more, the first
        ones are taken; if there are fewer, `fill_value` follows. None, the default, takes all,
        which is refused under `jit`.
      fill_value: the index that fills up the result, a scalar, or a tuple of scalars, one for each
        axis. None, the default, is 0.

    Returns:
      a tuple of vectors of the default integer dtype (int32, or int64 with enable_x64), one for
      each axis: the indices of the places along it. `a[nonzero(a)]` gives the elements.

    Raises:
      ShapeError: if `a` is a scalar, `size` is negative, or `fill_value` does not fit the axes.
      ConcretizationTypeError: if the operand is traced and `size` is None.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.array([[0, 5], [7, 0]])
    >>> jnp.nonzero(x)
    (Array([0, 1], dtype=int32), Array([1, 0], dtype=int32))
    >>> x[jnp.nonzero(x)]
    Array([5, 7], dtype=int32)
    >>> jnp.nonzero(jnp.array([0, 5, 7]), size=3, fill_value=-1)
    (Array([ 1,  2, -1], dtype=int32),)
    """
    a = as_array(a, "nonzero")
    if not a.ndim:
        raise ShapeError(
            f"nonzero: needs at least one axis; got {a.aval}. Hint: jnp.nonzero(x[None])."
        )
    if size is None:
        found = np.nonzero(require_concrete("nonzero", a, "places"))
        return tuple([put(i.astype(dtypes.default_int())) for i in found])
    if not isinstance(fill_value, tuple):
        fill_value = (0 if fill_value is None else fill_value,) * a.ndim
    if len(fill_value) != a.ndim:
        raise ShapeError(
            f"nonzero: fill_value must be one value, or one for each axis; got {len(fill_value)} "
            f"for {a.aval}."
        )
    fill_value = tuple([as_operand("nonzero", f) for f in fill_value])
    for f in fill_value:
        if typeof(f).ndim:
            raise ShapeError(
                f"nonzero: fill_value must be a scalar, or a tuple of them; got {typeof(f)}."
            )
    return find_places_of_size(a, check_integer("nonzero", "size", size, 0), fill_value)


@operation(static=("size",))
def find_places_of_size(a: Any, size: int, fill_value: tuple) -> tuple:
    """`nonzero` of a fixed size, in a dtype that holds places and fill values."""
    flat = find_places(lax.reshape(is_nonzero(a), (a.size,)), size)
    found = lax.lt(flat, literal(a.size, flat.dtype))
    out = []
    for axis, fill in enumerate(fill_value):
        stride = max(math.prod(a.shape[axis + 1 :]), 1)
        i = flat if stride == 1 else lax.div(flat, literal(stride, flat.dtype))
        if axis:
            i = lax.rem(i, literal(max(a.shape[axis], 1), flat.dtype))
        i, other = promote_operands("nonzero", convert(i, dtypes.default_int()), fill)
        out.append(lax.select(found, i, other))
    return tuple(out)


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Find the elements of the flattened array that are not zero.

    Places are in row-major order. Their number depends on the values of the array. For this reason,
    `size` must be given under `jit`, as a static number.

    Args:
      a: an array or scalar of any shape and dtype. NaN counts as not zero.
      size: the number of places in the result, an int of at least 0. If there are more, the first
        ones are taken; if there are fewer, `fill_value` follows. None, the default, takes all,
        which is refused under `jit`.
      fill_value: the index that fills up the result, a scalar. None, the default, is 0.

    Returns:
      a vector of the default integer dtype (int32, or int64 with enable_x64): indices into the
      flattened array.

    Raises:
      ShapeError: if `size` is negative.
      ConcretizationTypeError: if the operand is traced and `size` is None.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.array([[0, 5], [7, 0]])
    >>> jnp.flatnonzero(x)
    Array([1, 2], dtype=int32)
    >>> jnp.flatnonzero(x, size=3, fill_value=-1)
    Array([ 1,  2, -1], dtype=int32)
    """
    a = as_array(a, "flatnonzero")
    return nonzero(lax.reshape(a, (a.size,)), size=size, fill_value=fill_value)[0]


def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Find the elements of an array that are not zero, as rows of indices.

    Places are in row-major order. Their number depends on the values of the array. For this reason,
    `size` must be given under `jit`, as a static number. The result is `nonzero(a)`, transposed. To
    index an array, use `nonzero`.

    Args:
      a: an array or scalar of any shape and dtype. NaN counts as not zero.
      size: the number of places in the result, an int of at least 0. If there are more, the first
        ones are taken; if there are fewer, `fill_value` follows. None, the default, takes all,
        which is refused under `jit`.
      fill_value: the index that fills up the result, a scalar, or a tuple of scalars, one for each
        axis. None, the default, is 0.

    Returns:
      an array of shape (number of places, a.ndim) and the default integer dtype.

    Raises:
      ShapeError: if `size` is negative, or `fill_value` does not fit the axes.
      ConcretizationTypeError: if the operand is traced and `size` is None.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.array([[0, 5], [7, 0]])
    >>> jnp.argwhere(x)
    Array([[0, 1],
           [1, 0]], dtype=int32)
    """
    a = as_array(a, "argwhere")
    if not a.ndim:
        (found,) = nonzero(lax.expand_dims(a, (0,)), size=size, fill_value=fill_value)
        return lax.full((found.size, 0), 0, found.dtype)
    found = nonzero(a, size=size, fill_value=fill_value)
    return lax.stack(promote_operands("argwhere", *found), 1)


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """Return the slices along an axis where a condition is true.

    It selects rows or columns by a vector of truth values. Their number depends on the condition.
    For this reason, `size` must be given where the condition is traced.

    Args:
      condition: a vector of any dtype; elements other than 0 are true. It may be shorter than the
        axis; the rest counts as False.
      a: an array or scalar of any shape and dtype.
      axis: the axis, an int; a negative axis counts from the end. None, the default, flattens the
        array first.
      size: the number of slices in the result, an int of at least 0. If there are more, the first
        ones are taken; if there are fewer, `fill_value` follows. None, the default, takes all,
        which is refused under `jit`.
      fill_value: the value of the slices that fill up the result, a scalar. The default is 0.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.

    Returns:
      an array of the dtype of `a`: the slices along the axis, in their order.

    Raises:
      ShapeError: if `condition` is not a vector or is true beyond the axis, or `axis` is out of
        range.
      ConcretizationTypeError: if `condition` is traced and `size` is None.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.array([[0, 5], [7, 0]])
    >>> mask = jnp.array([False, True])
    >>> jnp.compress(mask, x, axis=0)
    Array([[7, 0]], dtype=int32)
    >>> jnp.compress(mask, x, axis=0, size=2, fill_value=-1)
    Array([[ 7,  0],
           [-1, -1]], dtype=int32)
    """
    refuse_out("compress", out)
    condition, a = as_array(condition, "compress"), as_array(a, "compress")
    check_vector("compress", "condition", condition)
    if axis is None:
        a, axis = lax.reshape(a, (a.size,)), 0
    axis = axis_of("compress", axis, a.ndim)
    n = a.shape[axis]
    # Of a symbolic size it is not known here: with `size` places beyond the axis are filled below.
    if not (has_symbolic_size((n,)) and size is not None) and condition.size > n:
        if not isinstance(condition, Tracer) and host_view(condition)[n:].any():
            raise ShapeError(
                f"compress: conditions beyond the axis must be False; got {condition.aval} for {n}."
            )
        condition = lax.slice_in_dim(condition, 0, n)
    whole = [slice(None)] * axis
    if size is None:
        known = require_concrete("compress", condition, "elements") != 0
        mask = np.zeros(n, bool)
        mask[: condition.size] = known
        return getitem_with(a, (*whole, mask), PLAIN)
    (found,) = nonzero(condition, size=size, fill_value=n)
    values = getitem_with(a, (*whole, found), read_keywords(a.aval, "clip"))
    there = lax.lt(found, literal(n, found.dtype))
    where = lax.broadcast_in_dim(there, values.shape, (axis,))
    return lax.select(where, values, cast_operand("compress", fill_value, a.dtype))


def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Array:
    """Return the elements of the flattened array where a condition is true.

    It is for masks of the shape of the array. The number of elements depends on the condition. For
    this reason, `size` must be given where the condition is traced.

    Args:
      condition: an array of any dtype, with as many elements as `arr` or fewer; elements other than
        0 are true.
      arr: an array or scalar of any shape and dtype.
      size: the number of elements in the result, an int of at least 0. If there are more, the first
        ones are taken; if there are fewer, `fill_value` follows. None, the default, takes all,
        which is refused under `jit`.
      fill_value: the value that fills up the result, a scalar. The default is 0.

    Returns:
      a vector of the dtype of `arr`.

    Raises:
      ConcretizationTypeError: if `condition` is traced and `size` is None.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.array([[0, 5], [7, 0]])
    >>> jnp.extract(x > 0, x)
    Array([5, 7], dtype=int32)
    >>> jnp.extract(x > 5, x, size=2, fill_value=-1)
    Array([ 7, -1], dtype=int32)
    """
    condition, arr = as_array(condition, "extract"), as_array(arr, "extract")
    flat = lax.reshape(condition, (condition.size,))
    return compress(flat, arr, size=size, fill_value=fill_value)


def compress_array(
    self: Any, condition: ArrayLike, axis: int | None = None, **kwargs: Any
) -> Array:
    """Return the slices of the array along an axis where a condition is true.

    It is `jnp.compress` as a method.

    Args:
      self: the array.
      condition: a vector of any dtype; elements other than 0 are true. It may be shorter than the
        axis; the rest counts as False.
      axis: the axis, an int; a negative axis counts from the end. None, the default, flattens the
        array first.
      **kwargs: `size` and `fill_value`, as in `jnp.compress`.

    Returns:
      an array of the dtype of the array: the slices along the axis, in their order.

    Raises:
      ShapeError: if `condition` is not a vector or is true beyond the axis, or `axis` is out of
        range.

    >>> jnp.arange(4).compress(jnp.array([False, True, True]))
    Array([1, 2], dtype=int32)
    """
    return compress(condition, self, axis, **kwargs)
