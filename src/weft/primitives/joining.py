"""How large arrays are joined and framed on the CPU.

XLA:CPU copies pieces one after the other on one thread, or asks of each element which piece it is
of. A kernel copies them on all. It fuses with nothing, so it is for programs that only move
elements. The columns of a stack are chosen by their number, for which there are vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.primitives.expr import Expr, count_along
from weft.xla.native import call_native, has_kernels

_LARGE = 1 << 18  # bytes of a result from which on the call of a kernel pays
_RUN = 2048  # bytes that lie together from which on copies are quicker than loops
_MANY = 64  # parts, of which each is an operand
_FEW = 8  # columns, up to which they are chosen
_WORTH = 1 << 15  # elements of a result from which on they are


def can_copy(hlo: Any, out: ShapedArray, run: int) -> bool:
    """Whether a kernel is to write a result, in runs of so many elements."""
    bits = dtypes.itemsize_bits(out.dtype)
    large = bits >= 8 and out.size * bits >= 8 * _LARGE and run * bits >= 8 * _RUN
    return large and has_kernels(hlo)


def write_join(hlo: Any, parts: Sequence[Any], axis: int, out: ShapedArray) -> Any:
    """Write a call of the kernel for parts one after another along an axis, or give None.

    A part that is a slice along this axis is read where it lies.
    """
    n, lanes = out.shape[axis], math.prod(out.shape[axis + 1 :])
    if hlo.cuts is None or len(parts) > _MANY or not can_copy(hlo, out, n * lanes):
        return None
    rows = math.prod(out.shape[:axis])
    operands, starts, sizes = [], [], []
    for part in parts:
        shape = part.aval.shape
        whole, at = hlo.cuts.get(part.name, (part, [0] * len(shape)))
        if any(a != b for i, (a, b) in enumerate(zip(whole.aval.shape, shape)) if i != axis):
            whole, at = part, [0] * len(shape)
        operands.append(Expr(hlo, whole).reshape((rows, whole.aval.shape[axis], lanes)).value)
        starts.append(at[axis])
        sizes.append(shape[axis])
    result = out.update(shape=(rows, n, lanes)).strong()
    attributes = {"starts": tuple(starts), "sizes": tuple(sizes)}
    (y,) = call_native(hlo, "weft_concatenate", operands, [result], attributes)
    return Expr(hlo, y).reshape(out.shape).value


def write_columns(hlo: Any, xs: Sequence[Any], out: ShapedArray) -> Any:
    """Write what a program is called with as the columns of a result, or give None.

    Of what is computed XLA would compute all for each column.
    """
    few = type(out.size) is int and out.size >= _WORTH and out.shape[-1] <= _FEW
    if not few or hlo.platform != "cpu" or hlo.devices or dtypes.itemsize_bits(out.dtype) < 8:
        return None
    hlo.choices += 1
    if not all(x.is_argument for x in xs):
        return None
    axis = len(out.shape) - 1
    number = count_along(hlo, ShapedArray(out.shape, np.int32), axis)
    *columns, y = (Expr(hlo, x).broadcast(out.shape, range(axis)) for x in xs)
    for k, column in reversed([*enumerate(columns)]):
        y = number.compare("EQ", k).select(column, y)
    return y.value


def write_frame(hlo: Any, x: Any, fill: Any, config: Sequence[tuple], out: ShapedArray) -> Any:
    """Write a call of the kernel for an array within a frame of one value, or give None."""
    if hlo.cuts is None or min(map(min, config)) < 0 or any(step for _, _, step in config):
        return None
    last = max(i for i, widths in enumerate(config) if any(widths))  # what follows lies together
    lanes = math.prod(out.shape[last + 1 :])
    if not can_copy(hlo, out, out.shape[last] * lanes):
        return None
    low = [*(a for a, _, _ in config[:last]), config[last][0] * lanes]
    flat = lambda shape: (*shape[:last], shape[last] * lanes)
    result = out.update(shape=flat(out.shape)).strong()
    operands = [Expr(hlo, x).reshape(flat(x.aval.shape)).value, fill]
    (y,) = call_native(hlo, "weft_pad", operands, [result], {"low": tuple(low)})
    return Expr(hlo, y).reshape(out.shape).value
