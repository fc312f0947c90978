"""Reductions over segments: rows of one array, grouped by the numbers in another.

`segment_sum` and others; and `index_update` and others, the functions that `x.at[...]` replaced.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from weft import dtypes
from weft.api.associative_scan import associative_scan
from weft.api.custom_rules import custom_jvp
from weft.core.source import boundary
from weft.errors import DtypeError, ShapeError, TracerError
from weft.numpy import choice, elementwise, reductions
from weft.numpy.creation import arange, full
from weft.numpy.grids import index_exp as index
from weft.numpy.manipulation import broadcast_to, concatenate, roll
from weft.numpy.promotion import as_array, broadcast_shapes
from weft.numpy.sorting import argsort
from weft.numpy.updates import At
from weft.primitives.families import check_integer
from weft.primitives.reduction import highest_value, lowest_value
from weft.primitives.reshard import compute_freely
from weft.run.operation import operation
from weft.util import list_public, name_function
from weft.xla.typing import Array, ArrayLike, ShardingLike

__all__ = [
    "index", "index_add", "index_max", "index_min", "index_mul", "index_update", "segment_max",
    "segment_min", "segment_prod", "segment_sum",
]  # fmt: skip
__dir__ = list_public(__name__)


# For each function: the method of x.at that gathers rows, what reduces buckets, what stands in a
# segment that has no rows.
REDUCTIONS: dict[str, tuple[str, Callable, Callable[[np.dtype], Any]]] = {
    "segment_sum": ("add", reductions.sum, lambda dtype: 0),
    "segment_prod": ("multiply", reductions.prod, lambda dtype: 1),
    "segment_max": ("max", reductions.max, lambda dtype: lowest_value(dtypes.real_dtype(dtype))),
    "segment_min": ("min", reductions.min, lambda dtype: highest_value(dtypes.real_dtype(dtype))),
}


def define_segment_reduction(op: str, doc: str) -> Callable:
    """One function of the family."""

    def reduction(
        data: ArrayLike,
        segment_ids: ArrayLike,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: Any = None,
        out_sharding: ShardingLike = None,
    ) -> Array:
        data, ids = as_array(data, op), as_array(segment_ids, op)
        check_segments(op, data, ids)
        count = count_segments(op, num_segments, ids)
        bucket = None if bucket_size is None else check_integer(op, "bucket_size", bucket_size, 1)
        how = op, count, bucket, bool(indices_are_sorted), bool(unique_indices), mode or "drop"
        return compute_freely(op, out_sharding, lambda x, i: reduce_segments(x, i, *how), data, ids)

    return boundary(name_function(reduction, op, describe_reduction(doc)))


def describe_reduction(doc: str) -> str:
    """Compose the documentation of a function of the family: its text, the sections, an example."""
    text, _, example = doc.partition("\n\n    >>> ")
    return f"""{text}

    Rows with a number below 0, or not below `num_segments`, are left out, unless `mode` says
    otherwise. The segments need not be contiguous.

    Args:
      data: an array; its rows are along the first axis.
      segment_ids: an array with an integer for each row, the number of its segment.
      num_segments: the number of segments, an int. None, the default, is one more than the largest
        number. Under `jit` it must be given, since it is a size.
      indices_are_sorted: a promise that `segment_ids` ascend. The default is False.
      unique_indices: a promise that no number comes twice. The default is False.
      bucket_size: reduce the rows in groups of this size, and then the results of the groups. A
        long sum of float16 or bfloat16 is more exact this way. None, the default, makes one group.
      mode: the treatment of numbers out of range, as in `x.at[...]`. None, the default, is "drop".
      out_sharding: the sharding of the result over explicit axes of a mesh. None derives it.

    Returns:
      An array of shape (num_segments, *data.shape[1:]) and of the dtype of `data`.

    Raises:
      DtypeError: `segment_ids` are not integers.
      ShapeError: `data` has not a row for each of `segment_ids`.
      TracerError: `segment_ids` are traced, and `num_segments` is None.

    >>> {example}"""


def check_segments(op: str, data: Any, ids: Any) -> None:
    """Raise unless there is an integer for each row of the data."""
    if not dtypes.is_integer(ids.dtype):
        raise DtypeError(
            f"{op}: segment_ids must be integers; got {ids.aval}. "
            "Hint: segment_ids.astype(jnp.int32)."
        )
    if dtypes.is_bool(data.dtype) and op in ("segment_sum", "segment_prod"):
        other = "max" if op == "segment_sum" else "min"
        raise DtypeError(
            f"{op}: data must be numbers; got {data.aval}. "
            f"Hint: data.astype(jnp.int32), or segment_{other} for truth values."
        )
    want = ids.shape + data.shape[1:]
    try:
        fits = broadcast_shapes(data.shape, want) == want
    except ShapeError:
        fits = False
    if not fits:
        raise ShapeError(
            f"{op}: data must have a row for each of segment_ids; got {data.aval}, {ids.aval}."
        )


def count_segments(op: str, num_segments: Any, ids: Any) -> int:
    """Return the number of segments: the given one, or one more than the largest number."""
    if num_segments is not None:
        return check_integer(op, "num_segments", num_segments, 0)
    try:
        return int(reductions.max(ids, initial=-1)) + 1 if ids.size else 0
    except TracerError:
        raise TracerError(
            f"{op}: num_segments must be given where segment_ids are traced, for it decides a "
            f"shape; got None. Hint: {op}(data, segment_ids, num_segments=10)."
        ) from None


@operation(static=("op", "count", "bucket", "sorted_ids", "unique_ids", "mode"))
def reduce_segments(
    data: Any, ids: Any, op: str, count: int, bucket: int | None, sorted_ids: bool,
    unique_ids: bool, mode: Any,
) -> Any:  # fmt: skip
    """A segment reduction of checked arguments."""
    how = op, count, bucket, sorted_ids, unique_ids, mode
    if op == "segment_prod" and dtypes.is_inexact(data.dtype) and not unique_ids:
        return multiply_segments(data, ids, how)
    return gather_rows(data, ids, how)


def gather_rows(data: Any, ids: Any, settings: tuple) -> Any:
    """Return the reduction of the rows of each segment."""
    op, count, bucket, sorted_ids, unique_ids, mode = settings
    method, reduce, identity = REDUCTIONS[op]
    how = {
        "mode": mode,
        "indices_are_sorted": sorted_ids,
        "unique_indices": unique_ids,
        "wrap_negative_indices": False,
    }
    shape, place = (count, *data.shape[1:]), ids
    if bucket is not None:  # rows of a bucket go to a copy of their own: sums of fewer terms each
        rows = ids.shape[0] if ids.ndim else 1
        shape = (-(-rows // bucket), *shape)
        place = elementwise.floor_divide(arange(rows), bucket), ids
    empty = full(shape, identity(data.dtype), data.dtype)
    out = getattr(At(empty)[place], method)(data, **how)
    return out if bucket is None else reduce(out, axis=0).astype(data.dtype)


@functools.partial(custom_jvp, nondiff_argnums=(2,))
def multiply_segments(data: Any, ids: Any, settings: tuple) -> Any:
    """Return the product of the rows of each segment."""
    return gather_rows(data, ids, settings)


@multiply_segments.defjvp
def multiply_segments_jvp(settings: tuple, primals: tuple, tangents: tuple) -> tuple:
    """Add up the tangent of each row times the other rows of its segment."""
    data, ids = primals
    _, count, bucket, sorted_ids, unique_ids, mode = settings
    moved = tangents[0] * multiply_others(data, ids, count, mode)
    added = gather_rows(moved, ids, ("segment_sum", count, bucket, sorted_ids, unique_ids, mode))
    return multiply_segments(data, ids, settings), added


def multiply_others(data: Any, ids: Any, count: int, mode: Any) -> Any:
    """Return, for each row, the product of the other rows of its segment.

    It is the product of the rows before it and of those after it, in the order of their segments.
    Nothing is divided, so it is exact where rows are zero, and so are its derivatives.
    """
    if mode == "clip":
        ids = choice.clip(ids, 0, count - 1)
    shape, rest = ids.shape, data.shape[1:]
    rows = broadcast_to(data, (*ids.shape, *rest)).reshape(ids.size, *rest)
    order = argsort(ids.reshape(-1))
    ids, rows = ids.reshape(-1)[order], rows[order]
    change = ids[1:] != ids[:-1]
    edge = full((min(1, ids.size),), True)
    spread = (slice(None), *[None] * len(rest))

    def combine(before: tuple, after: tuple) -> tuple:
        (x, starts), (y, starts_anew) = before, after
        return choice.where(starts_anew, y, x * y), starts | starts_anew

    def multiply_along(starts: Any, neighbours: Any, reverse: bool) -> Any:
        starts = broadcast_to(starts[spread], rows.shape)
        factors = choice.where(starts, 1, neighbours).astype(rows.dtype)
        return associative_scan(combine, (factors, starts), reverse=reverse)[0]

    first, last = concatenate([edge, change]), concatenate([change, edge])
    products = multiply_along(first, roll(rows, 1, 0), False)
    products = products * multiply_along(last, roll(rows, -1, 0), True)
    others = At(full(rows.shape, 0, rows.dtype))[order].set(products)
    return others.reshape(*shape, *rest)


segment_sum = define_segment_reduction(
    "segment_sum",
    """Sum the rows of an array in each segment: out[i] is the sum of rows with segment_ids == i.

    Graph networks add up messages by receiver with it. The sum of a segment without rows is 0.

    >>> print(segment_sum(jnp.array([1.0, 2.0, 4.0]), jnp.array([0, 0, 2]), num_segments=3))
    [3. 0. 4.]
    """,
)
segment_prod = define_segment_reduction(
    "segment_prod",
    """Multiply the rows of an array in each segment.

    The product of a segment without rows is 1. Derivatives are exact where rows are 0.

    >>> print(segment_prod(jnp.array([3.0, 2.0, 4.0]), jnp.array([0, 0, 2]), num_segments=3))
    [6. 1. 4.]
    """,
)
segment_max = define_segment_reduction(
    "segment_max",
    """Take the maximum of the rows of an array in each segment.

    The result of a segment without rows is the lowest number of the dtype: -inf for floats.

    >>> print(segment_max(jnp.array([3, 2, 4]), jnp.array([0, 0, 1])))
    [3 4]
    """,
)
segment_min = define_segment_reduction(
    "segment_min",
    """Take the minimum of the rows of an array in each segment.

    The result of a segment without rows is the highest number of the dtype: inf for floats.

    >>> print(segment_min(jnp.array([3, 2, 4]), jnp.array([0, 0, 1])))
    [2 4]
    """,
)


def define_index_function(name: str, method: str, doc: str) -> Callable:
    """A function of an array, an index and values, which does what a method of x.at does."""

    def fun(
        x: ArrayLike,
        idx: Any,
        y: ArrayLike,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> Array:
        write = getattr(At(as_array(x, name))[idx], method)
        return write(y, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)

    first, _, result = doc.partition("\n")
    about = f"""{first}

    It is an older way to write `x.at[idx].{method}(y)`. The operand itself stays unchanged.

    Args:
      x: an array.
      idx: an index as in `x[idx]`. `ops.index[...]` makes one from slices, as `ops.index[0, 1:]`.
      y: an array or a number that broadcasts with `x[idx]`.
      indices_are_sorted: a promise that the indices ascend. The default is False.
      unique_indices: a promise that no element is addressed twice. The default is False.

    Returns:
      An array of the shape and dtype of x.

    >>> print(weft.ops.{name}(jnp.array([1, 2, 3]), weft.ops.index[1:], 2))
    {result}
    """
    return boundary(name_function(fun, name, about))


index_update = define_index_function(
    "index_update", "set", "Set the elements of an array at an index.\n[1 2 2]"
)
index_add = define_index_function(
    "index_add", "add", "Add to the elements of an array at an index.\n[1 4 5]"
)
index_mul = define_index_function(
    "index_mul", "multiply", "Multiply the elements of an array at an index.\n[1 4 6]"
)
index_min = define_index_function(
    "index_min", "min", "Take the minimum with the elements of an array at an index.\n[1 2 2]"
)
index_max = define_index_function(
    "index_max", "max", "Take the maximum with the elements of an array at an index.\n[1 2 3]"
)
