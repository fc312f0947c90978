"""Scatters along one axis, within rows, by a kernel on CPUs: native/scatter.cc."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Elements
from weft.core.jaxpr import Atom, Eqn, Literal
from weft.cpu.calls import call_kernel
from weft.cpu.formula import apply_formula
from weft.cpu.scope import Scope
from weft.primitives.indexing import GatherScatterMode, Scatter, clamp_indices, window_sizes
from weft.primitives.layout import convert, literal, reshape
from weft.util import has_symbolic_size

KERNEL_DTYPES = frozenset(map(np.dtype, ("i4", "i8", "u4", "u8", "f4", "f8")))
MIN_UPDATES = 1 << 13  # below which XLA's loop is as quick
# Elements of the operand for each update. The kernel copies the operand, which takes longer than to
# write few updates.
MAX_ELEMENTS_PER_UPDATE = 16
MAX_LANES = 64  # XLA writes longer windows as vectors


def choose_scatter(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Write updates by the kernel; None where it has none for such a scatter, or XLA is quicker.

    The kernel takes indices along one axis d. Updates have the shape of the operand with other axes
    in the place of d. All rows, of the axes before d, have the same indices, or all these axes are
    batching axes.
    """
    prim, params = eqn.primitive, eqn.params
    assert isinstance(prim, Scatter)
    x, indices, updates = (a.aval for a in eqn.invars)
    by_function = params["update_jaxpr"] is not None and prim.combine is None
    if not scope.target.kernels or by_function or x.dtype not in KERNEL_DTYPES:
        return None
    if dtypes.is_unsigned(x.dtype) and prim.elements is Elements.CHOSEN:
        return None  # the kernel compares signed numbers
    dims = params["dimension_numbers"]
    mapped = dims.scatter_dims_to_operand_dims
    if len(mapped) != 1 or has_symbolic_size((*x.shape, *updates.shape)):
        return None
    if not x.size or math.prod(indices.shape[:-1]) == 1 or not are_rows(x, indices, updates, dims):
        return None
    (d,), batched = mapped, bool(dims.operand_batching_dims)
    rows, lanes = math.prod(x.shape[:d]), math.prod(x.shape[d + 1 :])
    counted = rows == lanes == 1 and prim.adds and dtypes.is_integer(x.dtype)
    if not (rows > 1 or counted) or lanes > MAX_LANES:
        return None
    if updates.size < max(MIN_UPDATES, x.size // (1 if counted else MAX_ELEMENTS_PER_UPDATE)):
        return None
    kind = "count" if counted else prim.name
    number = find_number(eqn.invars[2], scope) if counted else None
    bounds = x.shape, window_sizes(x, updates, dims), tuple(mapped)

    def scatter(x: Any, indices: Any, updates: Any) -> list:
        if params["mode"] is GatherScatterMode.CLIP:
            (indices,) = apply_formula(lower_clamped, [indices], [typeof(indices)], *bounds)
        if number is not None:
            updates = literal(number, x.dtype)
        return [call_scatter(x, indices, updates, kind, d, batched)]

    return scatter


def are_rows(x: ShapedArray, indices: ShapedArray, updates: ShapedArray, dims: Any) -> bool:
    """Return True if a scatter with one index writes within rows, in the order of their axes."""
    (d,), batching = dims.scatter_dims_to_operand_dims, tuple(dims.operand_batching_dims)
    before, batch = tuple(range(d)), indices.ndim - 1 - len(batching)
    windows = [i for i in range(updates.ndim) if not d <= i < d + batch and i not in batching]
    return (
        tuple(dims.inserted_window_dims) == (d,)
        and batching in ((), before)
        and tuple(dims.scatter_indices_batching_dims) == batching
        and list(dims.update_window_dims) == windows
        and updates.shape[:d] == x.shape[:d]
        and updates.shape[d + batch :] == x.shape[d + 1 :]
    )


def find_number(atom: Atom, scope: Scope) -> Any:
    """Return the number that all elements of an operand are, if it is known; else None."""
    source = scope.find_repeated(atom)
    return source.val if type(source) is Literal else None


def lower_clamped(
    hlo: Any, indices: Any, shape: Sequence[int], window: Sequence[int], mapped: Sequence[int]
) -> list:
    """Clamp the indices, so that each window is within an operand of `shape`."""
    return [clamp_indices(hlo, indices, shape, window, mapped)]


def call_scatter(x: Any, indices: Any, updates: Any, kind: str, axis: int, batched: bool) -> Any:
    """Call the kernel. Each row has its own indices if `batched`, else all have the same.

    The operand keeps its shape, for in a loop XLA would copy another view of it.
    """
    given, rows = typeof(indices).dtype, math.prod(x.shape[:axis])
    wide = given.itemsize == 8 or given == np.dtype(np.uint32)
    bytewise = kind == "count" and given == np.uint8
    taken = given if bytewise else np.dtype(np.int64 if wide else np.int32)
    size = typeof(indices).size
    at = reshape(convert(indices, taken), (rows, size // rows) if batched else (size,))
    attributes = {"kind": kind, "axis": axis}
    return call_kernel("weft_scatter", [x, at, updates], [typeof(x)], attributes, {0: 0})[0]
