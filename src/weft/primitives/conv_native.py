"""Convolutions, and their derivatives in the kernel, by a kernel of our own on CPUs.

Which convolutions are for it is said here; what it computes is in native/conv.cc.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray
from weft.primitives.conv_forms import are_points
from weft.primitives.expr import Expr
from weft.util import inverse_permutation
from weft.xla.native import are_floats, call_native, has_kernels

MOST_TAPS = 400  # whose places the kernel keeps
# Below these XLA's own is as quick or quicker: products in all, sums of as many terms for each
# weight (or weights used as many times), input and output features of a convolution.
FEWEST_PRODUCTS, FEWEST_USES, FEWEST_INPUTS, FEWEST_OUTPUTS = 1 << 19, 256, 3, 8


def lower_native_conv(hlo: Any, lhs: Any, rhs: Any, out: ShapedArray, params: dict) -> Any:
    """Write a call of the kernel; None where it does not know the convolution, or is slower."""
    (n, c, *space), (o, i, *window), (m, f, *places) = params["dimension_numbers"]
    x, k = lhs.aval, rhs.aval
    if (
        len(space) != 2
        or (params["feature_group_count"], params["batch_group_count"]) != (1, 1)
        or max(params["lhs_dilation"]) > 1
        or hlo.devices
        or not are_floats(x, k, out)
        or are_points(x, k, out, params)
    ):
        return None
    taps, results = math.prod(k.shape[a] for a in window), math.prod(out.shape[a] for a in places)
    is_derivative = results < taps  # then what moves over lhs is the larger, and not the result
    uses = taps * x.shape[c] if is_derivative else results * x.shape[n]
    wide = is_derivative or (x.shape[c] >= FEWEST_INPUTS and out.shape[f] >= FEWEST_OUTPUTS)
    products = out.size * taps * x.shape[c]
    few = min(taps, results)
    if not wide or few > MOST_TAPS or uses < FEWEST_USES or products < FEWEST_PRODUCTS:
        return None
    if not has_kernels(hlo):
        return None
    steps = params["window_strides"], params["rhs_dilation"]
    if is_derivative:
        orders, steps = ((c, *space, n), (i, *window, o), (*places, m, f)), steps[::-1]
    else:
        orders = (n, *space, c), (*window, i, o), (m, *places, f)
    attributes = dict(zip(("stride", "dilation"), steps, strict=True))
    attributes["low"] = tuple(low for low, _ in params["padding"])
    (y,) = call_native(
        hlo,
        "weft_conv",
        [Expr(hlo, v).transpose(order).value for v, order in zip((lhs, rhs), orders, strict=False)],
        [ShapedArray(tuple(out.shape[a] for a in orders[2]), out.dtype)],
        {k: np.array(v, np.int64) for k, v in attributes.items()}
        | {"is_derivative": is_derivative},
    )
    return Expr(hlo, y).transpose(inverse_permutation(orders[2])).value
