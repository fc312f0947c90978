"""Arrays made to be indices: open meshes, and numbers for places of several axes.

Grids and triangles are grids.py's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.trace import Tracer
from weft.errors import ConcretizationTypeError, DtypeError, IndexingError, ShapeError
from weft.numpy.creation import asarray
from weft.numpy.fused import fused
from weft.numpy.indexing import around
from weft.numpy.promotion import as_array, operands, shape_of
from weft.numpy.searching import nonzero
from weft.primitives import layout
from weft.primitives.elementwise import add, clamp, convert, div, lt, mul, rem, select
from weft.primitives.layout import literal
from weft.xla.array import host_view

index_exp = np.index_exp
s_ = np.s_


def ix_(*args: Any) -> tuple:
    """Vectors as an open mesh: x[ix_(i, j)] has the elements x[i[a], j[b]]. Masks are places."""
    out = []
    for k, arg in enumerate(args):
        i = as_array(arg, "ix_")
        if i.ndim != 1:
            raise ShapeError(f"ix_: arguments must be vectors; got {i.aval}.")
        if not i.size:
            i = convert(i, dtypes.default_int())
        if dtypes.is_bool(i.dtype):
            (i,) = nonzero(i)
        shape = [1] * len(args)
        shape[k] = i.size
        out.append(layout.reshape(i, shape))
    return tuple(out)


def integers(op: str, x: Any) -> Any:
    """An array of integers."""
    x = as_array(x, op)
    if not dtypes.is_integer(x.dtype):
        raise DtypeError(f"{op}: indices must be integers; got {x.aval}.")
    return x


def unravel_index(indices: Any, shape: Any) -> tuple:
    """The places on each axis of elements numbered in row-major order.

    Negative numbers count from the end; numbers out of bounds give the first or the last place.

    >>> import weft.numpy as jnp
    >>> jnp.unravel_index(jnp.array([1, 5]), (2, 3))
    (Array([0, 1], dtype=int32), Array([1, 2], dtype=int32))
    """
    return unraveled(integers("unravel_index", indices), shape_of("unravel_index", shape))


@fused(static=("shape",))
def unraveled(i: Any, shape: tuple[int, ...]) -> tuple:
    """`unravel_index` for an array."""
    if i.dtype.itemsize < 4:
        i = convert(i, np.dtype(np.int32))
    size = literal(math.prod(shape), i.dtype)
    zero = literal(0, i.dtype)
    if dtypes.is_signed(i.dtype):
        i = select(lt(i, zero), add(i, size), i)
    i = clamp(zero, i, literal(max(math.prod(shape) - 1, 0), i.dtype))
    out = []
    for n in reversed(shape):
        m = literal(max(n, 1), i.dtype)
        out.append(rem(i, m))
        i = div(i, m)
    return tuple(reversed(out))


def ravel_multi_index(
    multi_index: Sequence[Any],
    dims: Sequence[int],
    mode: str | Sequence[str] = "raise",
    order: str = "C",
    *,
    dtype: Any = None,
) -> Any:
    """The numbers of elements, in row-major ("C") or column-major ("F") order, by places on axes.

    `mode`, one or one for each axis, says what becomes of places out of bounds: "raise", which
    needs known places, "wrap" or "clip".
    """
    op = "ravel_multi_index"
    sizes = shape_of(op, dims)
    if len(multi_index) != len(sizes):
        raise ShapeError(
            f"{op}: there must be places for each axis; got {len(multi_index)} for {sizes}."
        )
    if order not in ("C", "F"):
        raise ValueError(f'{op}: order must be "C" or "F"; got {order!r}.')
    modes = (mode,) * len(sizes) if isinstance(mode, str) else tuple(mode)
    kept = dtypes.default_int() if dtype is None else dtypes.check_user_dtype(dtype, op)
    arrays = [integers(op, i) for i in multi_index]
    arrays = [inside(op, i, n, m) for i, n, m in zip(arrays, sizes, modes, strict=True)]
    total = asarray(0, kept)
    steps = range(len(sizes)) if order == "C" else reversed(range(len(sizes)))
    for k in steps:
        total, i = operands(op, total, convert(arrays[k], kept))
        total = add(mul(total, literal(sizes[k], kept)), i)
    return total


def inside(op: str, i: Any, n: int, mode: str) -> Any:
    """Places along an axis brought inside, or refused."""
    if mode == "wrap":
        return around(i, n)
    if mode == "clip":
        return clamp(literal(0, i.dtype), i, literal(max(n - 1, 0), i.dtype))
    if mode != "raise":
        raise ValueError(f"{op}: mode must be 'raise', 'wrap' or 'clip'; got {mode!r}.")
    known = i
    if isinstance(i, Tracer):
        known = i.concrete(ConcretizationTypeError, op, "mode='clip' or mode='wrap'.")
    values = host_view(known)
    if values.size and not (values.min() >= 0 and values.max() < n):
        raise IndexingError(
            f"{op}: places must be in [0, {n}); got {values.min()} to {values.max()}."
        )
    return i
