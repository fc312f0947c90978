"""Products of matrices, and of batches of them, by a kernel of our own on CPUs.

Which products are for it is said here; what it computes is in native/dot.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.core.aval import ShapedArray
from weft.primitives.expr import Expr
from weft.xla.native import are_floats, call_native, has_kernels

# XLA's own is as quick or quicker for less than this in all, for fewer rows and columns and larger
# results of each, and where more is added up. Left factors that lie beside each other are read by
# line of the caches, so they have to stay in one of these.
FEWEST_PRODUCTS, FEWEST_ROWS, FEWEST_COLUMNS, MOST_RESULTS = 1 << 21, 8, 32, 1 << 17
LEAST, MOST, MOST_ADDED, MOST_TURNED = 1 << 18, 3 << 26, 1 << 10, 1 << 18  # of one product
# Elements that follow each other in a matrix that a vector is multiplied by, and of one by columns.
FEWEST_LONG, MOST_COLUMNS = 1 << 9, 1 << 23
# For a program of more than 1000 operations, as it counts, the engine wakes a thread, which takes
# longer than so many products of float32. Of the call of a kernel it counts none.
COUNTED, WAKING = 100, 1 << 18


def lower_native_dot(hlo: Any, lhs: Any, rhs: Any, out: ShapedArray, numbers: Any) -> Any:
    """Write a call of the kernel; None where XLA is quicker, as with one large product."""
    (lc, rc), (lb, rb) = numbers
    if not are_floats(lhs.aval, rhs.aval, out):
        return None
    batch, k = (math.prod(lhs.aval.shape[a] for a in axes) for axes in (lb, lc))
    m, n = (x.aval.size // (batch * k) for x in (lhs, rhs))
    products = batch * m * n * k
    wide = m >= FEWEST_ROWS and min(n, k) >= FEWEST_COLUMNS and m * n <= MOST_RESULTS
    several = wide and batch > 1 and products >= FEWEST_PRODUCTS
    tall = min(m, n) >= FEWEST_ROWS and k <= MOST_ADDED
    one = tall and batch == 1 and LEAST < products <= MOST
    padded = batch * max(m, 6) * max(n, 16) * k * out.dtype.itemsize // 4  # as tiles compute
    quick = products > COUNTED and padded <= WAKING
    vector = batch == 1 == min(m, n) and products >= LEAST
    if not (several or one or vector or (quick and hlo.brief)) or not has_kernels(hlo):
        return None
    left, left_turned = arrange_matrices(Expr(hlo, lhs), lb, lc, (m, k))
    right, right_turned = arrange_matrices(Expr(hlo, rhs), rb, rc, (n, k))
    if vector:
        x, y, turned = (right, left, right_turned) if m == 1 else (left, right, left_turned)
        if (m * n if turned else k) < FEWEST_LONG or (turned and products > MOST_COLUMNS):
            return None
        operands = [Expr(hlo, x).reshape(x.aval.shape[-2:]).value, Expr(hlo, y).reshape((k,)).value]
        made, attributes, name = ShapedArray((m * n,), out.dtype), {"turned": turned}, "weft_matvec"
    elif left_turned and m * k > MOST_TURNED:
        return None
    else:
        made, name = ShapedArray((*[batch] * bool(lb), m, n), out.dtype), "weft_dot"
        operands = [left, right]
        attributes = {"left_turned": left_turned, "right_turned": not right_turned}
    (z,) = call_native(hlo, name, operands, [made], attributes)
    return Expr(hlo, z).reshape(out.shape).value


def arrange_matrices(
    x: Expr, batch: Sequence[int], summed: Sequence[int], sizes: tuple[int, int]
) -> tuple[Any, bool]:
    """Write x as [*batch, free, summed]; or [*batch, summed, free] if it lies so: (x, so)."""
    free = [a for a in range(len(x.shape)) if a not in (*batch, *summed)]
    turned = [*batch, *summed, *free] == [*range(len(x.shape))]
    count = [math.prod(x.shape) // math.prod(sizes)] * bool(batch)
    if turned:
        return x.reshape((*count, *sizes[::-1])).value, True
    x = x.transpose([*batch, *free, *summed])
    return x.reshape((*count, *sizes)).value, False
