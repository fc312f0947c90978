"""Scatters along one axis, within rows, by a kernel of our own on CPUs.

Which scatters are for it is said here; what it computes is in native/scatter.cc.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft import dtypes
from weft.primitives.expr import Expr
from weft.util import has_symbolic_size
from weft.xla.native import call_native, has_kernels

DTYPES = frozenset(map(np.dtype, ("i4", "i8", "u4", "u8", "f4", "f8")))
FEWEST_UPDATES = 1 << 13  # below which XLA's loop is as quick
MOST_ELEMENTS = 16  # of x for each update: where more are copied than written, that is what counts
MOST_LANES = 64  # of longer windows, which XLA writes as vectors


def lower_native_scatter(hlo: Any, name: str, x: Any, indices: Any, updates: Any, dims: Any) -> Any:
    """Write a call of the kernel; None where it has none for such a scatter, or XLA is quicker.

    It takes indices along one axis d whose updates lie along d in the place of x's elements: all
    rows, of the axes before it, have the same indices, or all of these are batching axes.
    """
    shape, aval, indexed = x.aval.shape, updates.aval, indices.aval
    if len(dims.scatter_dims_to_operand_dims) != 1 or has_symbolic_size((*shape, *aval.shape)):
        return None
    (d,), batching = dims.scatter_dims_to_operand_dims, tuple(dims.operand_batching_dims)
    before, batch = tuple(range(d)), indexed.ndim - 1 - len(batching)
    rows, lanes = math.prod(shape[:d]), math.prod(shape[d + 1 :])
    windows = [i for i in range(aval.ndim) if not d <= i < d + batch and i not in batching]
    fits = (
        tuple(dims.inserted_window_dims) == (d,)
        and batching in ((), before)
        and tuple(dims.scatter_indices_batching_dims) == batching
        and list(dims.update_window_dims) == windows
        and aval.shape[:d] == shape[:d]
        and aval.shape[d + batch :] == shape[d + 1 :]
    )
    counted = rows == lanes == 1 and name == "scatter-add" and dtypes.is_integer(x.aval.dtype)
    if not fits or not (rows > 1 or counted) or lanes > MOST_LANES:
        return None
    if aval.size < max(FEWEST_UPDATES, x.aval.size // (1 if counted else MOST_ELEMENTS)):
        return None
    signed = name in ("scatter-max", "scatter-min") and dtypes.is_unsigned(x.aval.dtype)
    if x.aval.dtype not in DTYPES or signed or not has_kernels(hlo):
        return None
    if counted:
        number = next((key[0] for key, v in hlo.constants.items() if v is updates), None)
        same = isinstance(number, int | np.integer) and hlo.constant(number, aval.update(shape=()))
        return call_scatter(hlo, "count", x, indices, same or updates, d, False)
    return call_scatter(hlo, name, x, indices, updates, d, bool(batching))


def call_scatter(
    hlo: Any, kind: str, x: Any, indices: Any, updates: Any, axis: int, apart: bool
) -> Any:
    """Write the call: each row has its own indices, or all have some.

    x keeps its shape, for in a loop XLA would copy another view of it.
    """
    given, rows = indices.aval.dtype, math.prod(x.aval.shape[:axis])
    wide = given.itemsize == 8 or given == np.dtype(np.uint32)
    taken = given if kind == "count" and given == np.uint8 else np.int64 if wide else np.int32
    at = Expr(hlo, hlo.convert(indices, np.dtype(taken)))
    at = at.reshape((rows, at.aval.size // rows) if apart else (at.aval.size,))
    attributes = {"kind": kind, "axis": axis}
    operands = [x, at.value, updates]
    return call_native(hlo, "weft_scatter", operands, [x.aval], attributes, {0: 0})[0]
