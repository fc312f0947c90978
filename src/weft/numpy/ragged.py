"""`ragged_all_to_all`: slices of any size from each copy along a mapped axis to each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.api.collectives import AxisIndexGroups, AxisName, all_gather, axis_index
from weft.core.aval import typeof
from weft.core.source import boundary
from weft.errors import ShapeError
from weft.numpy.choice import where
from weft.numpy.creation import arange, asarray
from weft.numpy.manipulation import stack


@boundary
def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: AxisName,
    axis_index_groups: AxisIndexGroups = None,
) -> Any:
    """Send slices of different lengths to the copies along a named axis.

    Each copy writes slices of its `operand` into the `output` of the others. Of K slices, equal
    numbers go to each of the copies, in their order. Slice i consists of the `send_sizes[i]` rows
    of `operand` from `input_offsets[i]`. In the output of the receiver it begins at row
    `output_offsets[i]`.

    It is made of an `all_gather` and a gather, so it runs on every platform and can be
    differentiated.

    Args:
      operand: an array of shape (N, ...) whose rows are sent.
      output: an array of shape (M, ...), which has the rows of the result that nothing is written
        to.
      input_offsets, send_sizes, output_offsets, recv_sizes: integer arrays of shape (K,). K is a
        multiple of the size of the axis. `recv_sizes` has the sizes of the slices that arrive.
      axis_name: the name of an axis that is in scope, or a tuple of names.
      axis_index_groups: groups of equal size of indices along the axis. Slices are exchanged within
        groups. None, the default, makes one group.

    Returns:
      An array of the shape and dtype of `output`.

    >>> send = lambda x, sizes, at: lax.ragged_all_to_all(
    ...     x, jnp.zeros(4, int), jnp.array([0, 1]), sizes, at, sizes, axis_name="i")
    >>> print(weft.vmap(send, axis_name="i")(
    ...     jnp.array([[1, 2, 2], [3, 4, 0]]), jnp.array([[1, 2], [1, 1]]),
    ...     jnp.array([[0, 0], [1, 2]])))
    [[1 3 0 0]
     [2 2 4 0]]
    """
    tables = [asarray(t) for t in (input_offsets, send_sizes, output_offsets, recv_sizes)]
    if {t.ndim for t in tables} != {1} or len({t.shape for t in tables}) > 1:
        raise ShapeError(
            "ragged_all_to_all: offsets and sizes must have one shape (K,); got "
            f"{', '.join(str(typeof(t)) for t in tables)}."
        )
    every, told = map(asarray, all_gather(
        (operand, stack(tables[:3])), axis_name, axis_index_groups=axis_index_groups
    ))  # fmt: skip
    copies, _, count = told.shape
    if count % copies:
        raise ShapeError(
            "ragged_all_to_all: the number of slices must be a multiple of the size of the axis; "
            f"got {count} for {copies}."
        )
    place = axis_index(axis_name)
    if axis_index_groups is not None:
        order = np.argsort(np.concatenate([np.asarray(g) for g in axis_index_groups]))
        place = asarray(order)[place] % copies
    told = told.reshape(copies, 3, copies, count // copies)[:, :, place]
    start, size, at = told.transpose(1, 0, 2).reshape(3, count)
    rows = arange(output.shape[0])
    inside = (at[:, None] <= rows) & (rows < (at + size)[:, None])
    which = inside.argmax(0)
    found = every[which // (count // copies), start[which] + rows - at[which]]
    received = inside.any(0).reshape(-1, *[1] * (output.ndim - 1))
    return where(received, found, output)
