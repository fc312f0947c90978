"""BCOO arrays in other shapes: transposed, broadcast, joined, reshaped, cut, and summed over axes.

What cannot be done in the layout of an operand is done after axes of batches or of dense blocks
have become ones that indices count along, which stores no more elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft import numpy as jnp
from weft.api.vmap import vmap
from weft.errors import ShapeError
from weft.experimental.sparse.base import (
    CoordinateArray,
    lay_along_last,
    mark_valid,
    normalize_axes,
    padding_indices,
)
from weft.experimental.sparse.entries import (
    bcoo_sum_duplicates,
    bcoo_update_layout,
    check_bcoo,
    mask_data,
)
from weft.primitives.families import index_tuple


def sparse_axes(mat: CoordinateArray) -> range:
    """The axes that indices count along."""
    return range(mat.n_batch, mat.n_batch + mat.n_sparse)


def data_axes(mat: CoordinateArray) -> list[int | None]:
    """Return for each axis of the data the axis of the array; None for the axis of entries."""
    stop = mat.n_batch + mat.n_sparse
    return [*range(mat.n_batch), None, *range(stop, mat.ndim)]


def drop_invalid(mat: CoordinateArray, valid: Any, columns: Any, shape: Sequence[int]) -> Any:
    """Return data and indices with padding for invalid entries, for sparse axes of this shape."""
    padding = padding_indices(shape, columns.dtype)
    return mask_data(valid, mat.data), jnp.where(valid[..., None], columns, padding)


def shrink(mat: CoordinateArray) -> Any:
    """An array with no more entries than there are places."""
    room = math.prod(mat.sparse_shape)
    return bcoo_sum_duplicates(mat, nse=room) if mat.nse > room else mat


def bcoo_transpose(mat: CoordinateArray, *, permutation: Sequence[int]) -> Any:
    """Permute the axes of a BCOO.

    Args:
      mat: a BCOO.
      permutation: the new order of its axes. Batch axes, sparse axes and dense axes stay among
        themselves.

    Returns:
      A BCOO.

    >>> sparse.bcoo_transpose(sparse.BCOO.fromdense(jnp.ones((2, 3))), permutation=(1, 0))
    BCOO(float32[3, 2], nse=6)
    """
    check_bcoo("bcoo_transpose", mat)
    order = index_tuple(permutation, "transpose", "permutation")
    if sorted(order) != list(range(mat.ndim)):
        raise ShapeError(
            f"bcoo_transpose: permutation must be one of the axes; got {order} for {mat!r}."
        )
    n, stop = mat.n_batch, mat.n_batch + mat.n_sparse
    batch, inner, dense = order[:n], order[n:stop], order[stop:]
    if sorted(batch) != list(range(n)):
        return bcoo_transpose(bcoo_update_layout(mat, n_batch=0), permutation=order)
    if sorted(dense) != list(range(stop, mat.ndim)):
        return bcoo_transpose(bcoo_update_layout(mat, n_dense=0), permutation=order)
    columns = [a - n for a in inner]
    moved = columns != list(range(mat.n_sparse))
    indices = mat.indices[..., np.array(columns, int)] if moved else mat.indices
    shift = n + 1 - stop
    data = jnp.transpose(mat.data, (*batch, n, *[a + shift for a in dense]))
    return mat.make(
        data,
        jnp.transpose(indices, (*batch, n, n + 1)),
        [mat.shape[a] for a in order],
        indices_sorted=mat.indices_sorted and not moved,
        unique_indices=mat.unique_indices,
    )


def bcoo_broadcast_in_dim(
    mat: CoordinateArray,
    *,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    sharding: Any = None,
) -> Any:
    """Repeat a BCOO along new axes and along axes of size 1, as `lax.broadcast_in_dim` does.

    New axes in front of the sparse axes become batch axes. New axes behind them become dense axes,
    unless they have size 1. Along a new axis between, the entries are stored again for each
    element.

    Args:
      mat: a BCOO.
      shape: the shape of the result.
      broadcast_dimensions: for each axis of `mat`, its position in the result.
      sharding: it must be None, the default.

    Returns:
      A BCOO of that shape.

    >>> mat = sparse.BCOO.fromdense(jnp.eye(3))
    >>> sparse.bcoo_broadcast_in_dim(mat, shape=(2, 3, 3), broadcast_dimensions=(1, 2))
    BCOO(float32[2, 3, 3], nse=3, n_batch=1)
    """
    shape, dims = read_broadcast("bcoo_broadcast_in_dim", mat, shape, broadcast_dimensions)
    stop = mat.n_batch + mat.n_sparse
    first = dims[mat.n_batch] if mat.n_batch < mat.ndim else len(shape)
    last = dims[stop - 1] if mat.n_sparse else first - 1
    while not mat.n_dense and mat.n_sparse and last + 1 < len(shape) and shape[last + 1] == 1:
        last += 1
    inner = range(first, last + 1)
    source = {d: i for i, d in enumerate(dims)}
    # along these, entries are stored once for each element
    again = [d for d in inner if d not in source or mat.shape[source[d]] != shape[d]]
    sizes = [shape[d] for d in again]
    times = math.prod(sizes)
    grid = np.indices(sizes).reshape(len(sizes), times).astype(mat.indices.dtype)
    batch, room = shape[:first], (mat.nse, times)

    def repeat(x: Any, own: int) -> Any:
        """[*batch, nse, ...] as [*batch of the result, nse, times, ...]."""
        x = lax.expand_dims(x, (mat.n_batch + 1,))
        places = [*dims[: mat.n_batch], *range(first, first + 2)]
        tail = x.shape[mat.n_batch + 2 :]
        if own:  # dense blocks
            tail = shape[last + 1 :]
            places += [d - inner.start - len(inner) + first + 2 for d in dims[stop:]]
        else:
            places += [first + 2]
        return lax.broadcast_in_dim(x, (*batch, *room, *tail), places)

    columns, old = [], repeat(mat.indices, 0)
    for d in inner:
        column = old[..., source[d] - mat.n_batch] if d in source else None
        if d in again:
            new = jnp.broadcast_to(grid[again.index(d)], (*batch, *room))
            column = new if column is None else jnp.where(column == 0, new, shape[d])
        columns.append(column)
    indices = jnp.stack(columns, axis=-1) if columns else old[..., :0]
    count = mat.nse * times
    data = repeat(mat.data, 1)
    return mat.make(
        data.reshape(*batch, count, *data.shape[first + 2 :]),
        indices.reshape(*batch, count, len(inner)),
        shape,
        unique_indices=mat.unique_indices,
    )


def read_broadcast(op: str, mat: Any, shape: Any, dims: Any) -> tuple[tuple, tuple]:
    """The new shape and the axis of it for each of the array, checked."""
    check_bcoo(op, mat)
    shape, dims = index_tuple(shape, op, "shape"), index_tuple(dims, op, "broadcast_dimensions")
    fits = len(dims) == mat.ndim and list(dims) == sorted({d for d in dims if d < len(shape)})
    if not fits or any(n not in (1, shape[d]) for n, d in zip(mat.shape, dims, strict=True)):
        raise ShapeError(
            f"{op}: broadcast_dimensions must be increasing axes of the shape, one for each of the "
            f"array, of equal size or that of 1; got {dims} for {mat!r} and {shape}."
        )
    return shape, dims


def bcoo_concatenate(operands: Sequence[CoordinateArray], *, dimension: int) -> Any:
    """Join BCOOs along an axis.

    Args:
      operands: a sequence of BCOOs with equal numbers of batch axes and dense axes.
      dimension: the axis, an int.

    Returns:
      A BCOO.

    >>> mat = sparse.BCOO.fromdense(jnp.eye(3))
    >>> sparse.bcoo_concatenate([mat, mat], dimension=0)
    BCOO(float32[6, 3], nse=6)
    """
    op = "bcoo_concatenate"
    mats = [check_bcoo(op, x) for x in operands]
    if not mats:
        raise ValueError(f"{op}: must be given at least one array; got none.")
    first = mats[0]
    (axis,) = normalize_axes(op, dimension, first.ndim)
    kinds = {(m.n_batch, m.n_dense, m.shape[:axis], m.shape[axis + 1 :]) for m in mats}
    if len(kinds) > 1:
        raise ShapeError(
            f"{op}: arrays must have equal shapes beside axis {axis}, n_batch and n_dense; got "
            f"{', '.join(map(repr, mats))}. Hint: x.update_layout(n_batch=..., n_dense=...)."
        )
    dtype = jnp.result_type(*[m.dtype for m in mats])
    index = jnp.result_type(*[m.indices.dtype for m in mats])
    sizes = [m.shape[axis] for m in mats]
    shape = (*first.shape[:axis], sum(sizes), *first.shape[axis + 1 :])
    starts = np.cumsum([0, *sizes])
    n, unique = first.n_batch, all(m.unique_indices for m in mats)
    inner = shape[n : n + first.n_sparse]
    datas, places = [], []
    for m, start in zip(mats, starts, strict=False):
        data, indices = m.data.astype(dtype), m.indices.astype(index)
        if axis in sparse_axes(m):
            offset = np.zeros(m.n_sparse, index)
            offset[axis - n] = start
            valid = mark_valid(indices, m.sparse_shape)
            moved = indices + lay_along_last(offset, indices.ndim)
            indices = jnp.where(valid[..., None], moved, padding_indices(inner, index))
        elif axis < n:
            missing = max(x.nse for x in mats) - m.nse
            data = pad_axis(data, n, 0, missing, 0)
            fill = jnp.broadcast_to(
                padding_indices(inner, index), (*m.shape[:n], missing, m.n_sparse)
            )
            indices = jnp.concatenate([indices, fill], axis=n)
        else:
            after = int(starts[-1]) - int(start) - m.shape[axis]
            data = pad_axis(data, axis + 1 - m.n_sparse, int(start), after, 0)
            unique = False
        datas.append(data)
        places.append(indices)
    along = axis if axis < n else n
    pair = [jnp.concatenate(xs, axis=along) for xs in (datas, places)]
    return first.make(*pair, shape, unique_indices=unique)


def pad_axis(x: Any, axis: int, before: int, after: int, value: Any) -> Any:
    """An array with elements added along one axis."""
    widths = [(0, 0)] * x.ndim
    widths[axis] = (before, after)
    return jnp.pad(x, widths, constant_values=value) if before or after else x


def bcoo_reshape(
    mat: CoordinateArray,
    *,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    sharding: Any = None,
) -> Any:
    """Change the shape of a BCOO.

    Args:
      mat: a BCOO.
      new_sizes: the shape of the result, which has the same number of elements.
      dimensions: a permutation of the axes of `mat`, which is applied first. None keeps the
        order.
      sharding: it must be None, the default.

    Returns:
      A BCOO of that shape.

    >>> sparse.bcoo_reshape(sparse.BCOO.fromdense(jnp.eye(4)), new_sizes=(2, 8))
    BCOO(float32[2, 8], nse=4)
    """
    op = "bcoo_reshape"
    check_bcoo(op, mat)
    if dimensions is not None and tuple(dimensions) != tuple(range(mat.ndim)):
        mat = bcoo_transpose(mat, permutation=dimensions)
    shape = index_tuple(new_sizes, op, "new_sizes")
    if math.prod(shape) != mat.size:
        raise ShapeError(f"{op}: sizes must be equal; got {mat!r} and {shape}.")
    n_batch = count_axes(shape, mat.shape[: mat.n_batch])
    n_dense = count_axes(shape[::-1], mat.dense_shape[::-1])
    if n_batch is None or n_dense is None or n_batch + n_dense > len(shape):
        zero = {"n_batch": 0} if n_batch is None or not mat.n_dense else {"n_dense": 0}
        return bcoo_reshape(bcoo_update_layout(mat, **zero), new_sizes=shape)
    inner = shape[n_batch : len(shape) - n_dense]
    batch, dense = shape[:n_batch], shape[len(shape) - n_dense :]
    indices = reshape_indices(op, mat.indices, mat.sparse_shape, inner)
    return mat.make(
        mat.data.reshape(*batch, mat.nse, *dense),
        indices.reshape(*batch, mat.nse, len(inner)),
        shape,
        unique_indices=mat.unique_indices,
    )


def count_axes(shape: tuple[int, ...], part: tuple[int, ...]) -> int | None:
    """Return the number of leading axes that hold the elements of `part`; None if none do."""
    if not part:
        return 0
    products = [math.prod(shape[: k + 1]) for k in range(len(shape))]
    found = [k + 1 for k, n in enumerate(products) if n == math.prod(part)]
    return len(part) if shape[: len(part)] == part else found[0] if found else None


def reshape_indices(op: str, indices: Any, old: tuple[int, ...], new: tuple[int, ...]) -> Any:
    """Convert indices into an array of shape `old` to indices into one of shape `new`."""
    if math.prod(old) != math.prod(new):  # of size 0, or it would not have come here
        return jnp.broadcast_to(
            padding_indices(new, indices.dtype), (*indices.shape[:-1], len(new))
        )
    valid = mark_valid(indices, old)
    columns: list = []
    i = 0
    for j in range(len(new)):
        if j < len(columns):
            continue
        rows, cols = [i], [j]  # axes that hold the same elements
        i += 1
        if i > len(old):
            columns.append(jnp.zeros(indices.shape[:-1], indices.dtype))
            continue
        while (a := math.prod(old[k] for k in rows)) != (b := math.prod(new[k] for k in cols)):
            if (a < b or not b) and i < len(old):
                rows.append(i)
                i += 1
            else:
                cols.append(cols[-1] + 1)
        if a > np.iinfo(indices.dtype).max:
            dtype = dtypes.canonicalize(np.dtype(np.int64))
            if a > np.iinfo(dtype).max:
                raise ShapeError(
                    f"{op}: an axis of {a} elements needs indices of 64 bits; got "
                    f"{indices.dtype} for {old} to {new}. Hint: config.enable_x64 = True."
                )
            indices = indices.astype(dtype)
        flat = jnp.zeros(indices.shape[:-1], indices.dtype)
        for k in rows:
            flat = flat * old[k] + indices[..., k]
        found = []
        for k in reversed(cols):
            found.append(flat % max(new[k], 1) if k != cols[0] else flat)
            flat = flat // max(new[k], 1)
        columns += reversed(found)
    dtype = indices.dtype
    stacked = jnp.stack([c.astype(dtype) for c in columns], -1) if columns else indices[..., :0]
    return jnp.where(valid[..., None], stacked, padding_indices(new, dtype))


def bcoo_rev(operand: CoordinateArray, dimensions: Sequence[int]) -> Any:
    """Reverse the order of the elements of a BCOO along axes.

    Args:
      operand: a BCOO.
      dimensions: the axes, a sequence of ints.

    Returns:
      A BCOO of the same shape.

    >>> print(sparse.bcoo_rev(sparse.BCOO.fromdense(jnp.array([0, 1, 2])), (0,)).todense())
    [2 1 0]
    """
    mat = check_bcoo("bcoo_rev", operand)
    axes = normalize_axes("bcoo_rev", dimensions, mat.ndim)
    data = lax.rev(mat.data, [i for i, a in enumerate(data_axes(mat)) if a in axes])
    indices = lax.rev(mat.indices, [a for a in axes if a < mat.n_batch])
    inner = [a - mat.n_batch for a in axes if a in sparse_axes(mat)]
    if inner:
        sizes = padding_indices(mat.sparse_shape, indices.dtype)
        sizes = lay_along_last(sizes, indices.ndim)
        turned = lay_along_last(np.isin(np.arange(mat.n_sparse), inner), indices.ndim)
        valid = mark_valid(indices, mat.sparse_shape)[..., None]
        indices = jnp.where(turned & valid, sizes - 1 - indices, indices)
    return mat.make(data, indices, mat.shape, unique_indices=mat.unique_indices)


def cut(mat: CoordinateArray, starts: Sequence[Any], sizes: Sequence[int], steps: Any) -> Any:
    """The part of a BCOO from `starts`, which are inside, of `sizes`, in steps if not None."""
    limits = None
    if steps is not None:
        limits = [s + n * k for s, n, k in zip(starts, sizes, steps, strict=True)]

    def cut_dense(x: Any, axes: Sequence[int | None]) -> Any:
        if limits is None:
            begin = [starts[a] if a is not None else 0 for a in axes]
            size = [sizes[a] if a is not None else n for a, n in zip(axes, x.shape, strict=True)]
            return lax.dynamic_slice(x, begin, size)
        keys = [slice(None) if a is None else slice(starts[a], limits[a], steps[a]) for a in axes]
        return x[tuple(keys)]

    data = cut_dense(mat.data, data_axes(mat))
    indices = cut_dense(mat.indices, [*range(mat.n_batch), None, None])
    inner = [sizes[a] for a in sparse_axes(mat)]
    dtype = indices.dtype
    part = mat.make(data, indices, sizes, unique_indices=mat.unique_indices)
    if mat.n_sparse:
        begin = jnp.stack([jnp.asarray(starts[a], dtype) for a in sparse_axes(mat)])
        valid = mark_valid(indices, mat.sparse_shape)
        indices = indices - lay_along_last(begin, indices.ndim)
        if steps is not None:
            step = np.array([steps[a] for a in sparse_axes(mat)], dtype)
            step = lay_along_last(step, indices.ndim)
            valid &= jnp.all(indices % step == 0, axis=-1)
            indices = indices // step
        valid &= mark_valid(indices, inner)
        part = part.make(*drop_invalid(part, valid, indices, inner), sizes)
    return shrink(part)


def bcoo_slice(
    mat: CoordinateArray,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Any:
    """Cut a part out of a BCOO, as `lax.slice` does.

    Entries outside of the part become padding.

    Args:
      mat: a BCOO.
      start_indices: the start of the part along each axis, ints.
      limit_indices: its end along each axis.
      strides: the distance between elements along each axis. None, the default, is 1.

    Returns:
      A BCOO.

    >>> mat = sparse.BCOO.fromdense(jnp.eye(4))
    >>> sparse.bcoo_slice(mat, start_indices=(0, 1), limit_indices=(2, 4))
    BCOO(float32[2, 3], nse=4)
    """
    op = "bcoo_slice"
    check_bcoo(op, mat)
    starts, limits = (index_tuple(x, op, "indices") for x in (start_indices, limit_indices))
    steps = (1,) * mat.ndim if strides is None else index_tuple(strides, op, "strides")
    rows = list(zip(starts, limits, mat.shape, strict=False))
    good = len(starts) == len(limits) == len(steps) == mat.ndim and min(steps, default=1) > 0
    if not good or not all(0 <= a <= b <= n for a, b, n in rows):
        raise ShapeError(
            f"{op}: must be given 0 <= start <= limit <= size and a stride above 0 for each axis; "
            f"got {starts}, {limits}, {steps} for {mat!r}."
        )
    sizes = [-(-(b - a) // k) for (a, b, _), k in zip(rows, steps, strict=True)]
    return cut(mat, starts, sizes, steps)


def bcoo_dynamic_slice(
    mat: CoordinateArray, start_indices: Sequence[Any], slice_sizes: Sequence[int]
) -> Any:
    """Cut a part of a static size out of a BCOO, from a start that may be traced.

    Args:
      mat: a BCOO.
      start_indices: the start along each axis. If the part would reach out of `mat`, the start is
        moved back.
      slice_sizes: the size of the part along each axis, ints.

    Returns:
      A BCOO of the shape `slice_sizes`.

    >>> print(sparse.bcoo_dynamic_slice(sparse.BCOO.fromdense(jnp.arange(4)), (9,), (2,)).todense())
    [2 3]
    """
    op = "bcoo_dynamic_slice"
    check_bcoo(op, mat)
    sizes = index_tuple(slice_sizes, op, "slice_sizes")
    fits = len(start_indices) == len(sizes) == mat.ndim
    if not fits or not all(0 <= k <= n for k, n in zip(sizes, mat.shape, strict=True)):
        raise ShapeError(
            f"{op}: start_indices and slice_sizes must have one for each axis, at most its size; "
            f"got {len(start_indices)} and {sizes} for {mat!r}."
        )
    pairs = zip(start_indices, sizes, mat.shape, strict=True)
    starts = [jnp.clip(jnp.asarray(i), 0, n - k) for i, k, n in pairs]
    return cut(mat, starts, sizes, None)


def bcoo_squeeze(arr: CoordinateArray, *, dimensions: Sequence[int]) -> Any:
    """Remove axes of size 1 from a BCOO.

    Args:
      arr: a BCOO.
      dimensions: the axes, a sequence of ints.

    Returns:
      A BCOO without these axes.

    >>> sparse.bcoo_squeeze(sparse.BCOO.fromdense(jnp.ones((1, 3))), dimensions=(0,))
    BCOO(float32[3], nse=3)
    """
    mat = check_bcoo("bcoo_squeeze", arr)
    axes = normalize_axes("bcoo_squeeze", dimensions, mat.ndim)
    if any(mat.shape[a] != 1 for a in axes):
        raise ShapeError(f"bcoo_squeeze: axes must have size 1; got {axes} of {mat!r}.")
    data = lax.squeeze(mat.data, [i for i, a in enumerate(data_axes(mat)) if a in axes])
    indices = lax.squeeze(mat.indices, [a for a in axes if a < mat.n_batch])
    shape = [n for a, n in enumerate(mat.shape) if a not in axes]
    out = mat.make(data, indices, shape, unique_indices=mat.unique_indices)
    return drop_columns(out, mat.sparse_shape, [a - mat.n_batch for a in axes])


def drop_columns(mat: CoordinateArray, inner: Sequence[int], columns: Sequence[int]) -> Any:
    """`mat` without some columns of its indices, which are of sparse axes of sizes `inner`."""
    kept = [i for i in range(len(inner)) if i not in columns]
    if len(kept) == len(inner):
        return mat
    valid = mark_valid(mat.indices, inner)
    indices = mat.indices[..., np.array(kept, int)]
    unique = mat.unique_indices and all(inner[i] == 1 for i in set(range(len(inner))) - {*kept})
    pair = drop_invalid(mat, valid, indices, [inner[i] for i in kept])
    return mat.make(*pair, mat.shape, unique_indices=unique)


def bcoo_reduce_sum(mat: CoordinateArray, *, axes: Sequence[int]) -> Any:
    """Sum a BCOO over axes.

    Args:
      mat: a BCOO.
      axes: the axes, a sequence of ints.

    Returns:
      A BCOO without these axes. Several of its entries may have the same position;
      `bcoo_sum_duplicates` adds them up.

    >>> sparse.bcoo_reduce_sum(sparse.BCOO.fromdense(jnp.ones((2, 3))), axes=(0,))
    BCOO(float32[3], nse=6)
    """
    check_bcoo("bcoo_reduce_sum", mat)
    axes = normalize_axes("bcoo_reduce_sum", axes, mat.ndim)
    summed = [i for i, a in enumerate(data_axes(mat)) if a in axes and i > mat.n_batch]
    data = jnp.sum(mat.data, axis=tuple(summed), dtype=mat.dtype) if summed else mat.data
    kept = [a for a in range(mat.n_batch) if a not in axes]
    gone = [a for a in range(mat.n_batch) if a in axes]
    batch = [mat.shape[a] for a in kept]
    count = mat.nse * math.prod(mat.shape[a] for a in gone)

    def merge(x: Any) -> Any:  # the batches that are summed up become entries
        if not gone:
            return x
        rest = range(mat.n_batch, x.ndim)
        return jnp.transpose(x, (*kept, *gone, *rest)).reshape(
            *batch, count, *x.shape[mat.n_batch + 1 :]
        )

    shape = [n for a, n in enumerate(mat.shape) if a not in axes]
    out = mat.make(merge(data), merge(mat.indices), shape)
    return drop_columns(out, mat.sparse_shape, [a - mat.n_batch for a in axes])


def bcoo_gather(
    operand: CoordinateArray,
    start_indices: Any,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Any:
    """Cut parts out of a BCOO, as `lax.gather` does.

    Each part has room for all entries of the operand, or for all its elements if these are fewer.

    Args:
      operand: a BCOO.
      start_indices: an integer array; its last axis holds the starts of parts.
      dimension_numbers: a `lax.GatherDimensionNumbers`.
      slice_sizes: the size of a part along each axis.
      unique_indices: a promise that no part is read twice. The default is False.
      indices_are_sorted: a promise that the starts ascend. The default is False.
      mode: the treatment of parts that reach out of the operand: they are moved inside, or are
        zeros. None is the default of `lax.gather`.
      fill_value: it must be None or 0, as another value would not be sparse.

    Returns:
      A BCOO of the parts.

    >>> mat = sparse.BCOO.fromdense(jnp.eye(3))
    >>> dims = lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> sparse.bcoo_gather(mat, jnp.array([[2], [0]]), dims, (1, 3))
    BCOO(float32[2, 3], nse=3, n_batch=1)
    """
    op, mat, dims = "bcoo_gather", check_bcoo("bcoo_gather", operand), dimension_numbers
    sizes = index_tuple(slice_sizes, op, "slice_sizes")
    indices = jnp.asarray(start_indices)
    if dims.operand_batching_dims or (fill_value is not None and fill_value != 0):
        raise NotImplementedError(
            f"{op}: must have no batching dims, and 0 as fill_value; got {dims}, {fill_value}. "
            f"Hint: x.todense()."
        )
    fills = lax.GatherScatterMode.from_any(mode) is lax.GatherScatterMode.FILL_OR_DROP
    most = np.array([mat.shape[a] - sizes[a] for a in dims.start_index_map], np.int64)

    def take(index: Any) -> Any:
        starts: list[Any] = [0] * mat.ndim
        for k, a in enumerate(dims.start_index_map):
            starts[a] = index[k]
        part = bcoo_dynamic_slice(mat, starts, sizes)
        if dims.collapsed_slice_dims:
            part = bcoo_squeeze(part, dimensions=dims.collapsed_slice_dims)
        if fills and mode is not None:
            inside = jnp.all((index >= 0) & (index <= most.astype(index.dtype)))
            part = part.make(jnp.where(inside, part.data, 0))
        return part

    for _ in range(indices.ndim - 1):
        take = vmap(take)
    out = take(indices)
    offset = list(dims.offset_dims)
    if offset == list(range(indices.ndim - 1, out.ndim)):
        return out
    order = [*[a for a in range(out.ndim) if a not in offset], *offset]
    return bcoo_transpose(out, permutation=np.argsort(order))
