"""Convolutions, and their derivatives, as CPUs compute them quickest.

Convolutions of one channel are in channelwise.py, those that are written as others in
conv_forms.py. The kernel is in native/conv.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.core.jaxpr import Eqn
from weft.cpu.calls import call_kernel
from weft.cpu.channelwise import choose_channelwise
from weft.cpu.conv_forms import are_points, convolve, find_form
from weft.cpu.formula import apply_formula
from weft.cpu.kernels import are_floats
from weft.cpu.scope import Scope
from weft.primitives.conv import ConvDimensionNumbers, conv_general_dilated_p, multiply_in_parts
from weft.primitives.elementwise import add, complex, imag, real, sub
from weft.primitives.expr import Expr
from weft.primitives.layout import transpose
from weft.util import inverse_permutation

MAX_TAPS_HELD = 400  # the kernel stores the positions of at most this many taps
# Below these XLA's own convolution is as fast or faster: products in all; terms of the sum for each
# weight, or uses of each weight; input features; output features.
MIN_WORK, MIN_USES, MIN_INPUTS, MIN_OUTPUTS = 1 << 19, 256, 3, 8


def choose_convolution(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Convolve channel by channel, by the kernel, as other convolutions, or with features last."""
    x, k, out = (ShapedArray(a.aval.shape, a.aval.dtype) for a in (*eqn.invars, *eqn.outvars))
    params = {**eqn.params, "preferred_element_type": out.dtype, "out_sharding": None}
    if dtypes.is_complex(x.dtype):
        return lambda x, k: [convolve_parts(x, k, params)]
    whole = choose_whole(x, k, out, params, scope)

    def plain(x: Any, k: Any) -> Any:
        return write_features_last(x, k, out, params) if whole is None else whole(x, k)

    found = choose_channelwise(x, k, out, params, plain, scope) or whole
    return found and (lambda x, k: [found(x, k)])


def convolve_parts(x: Any, k: Any, params: dict) -> Any:
    """Convolve complex arrays by three convolutions of reals."""
    part = {**params, "preferred_element_type": dtypes.real_dtype(params["preferred_element_type"])}
    times = lambda x, k: convolve(x, k, part)
    parts = [take(v) for v in (x, k) for take in (real, imag)]
    return complex(*multiply_in_parts(times, add, sub, *parts))


def choose_whole(
    x: ShapedArray, k: ShapedArray, out: ShapedArray, params: dict, scope: Scope
) -> Callable[..., Any] | None:
    """Return what computes a convolution of many channels; None if it is best unchanged."""
    found = choose_conv_kernel(x, k, out, params, scope)
    if found is not None:
        return found
    form = find_form(x, k, out, params, scope.target.devices, scope.target.kernels)
    if form is not None:
        return lambda x, k: form(x, k, out)
    numbers = params["dimension_numbers"]
    if params["batch_group_count"] > 1 or numbers == put_features_last(numbers):
        return None
    return lambda x, k: write_features_last(x, k, out, params)


def choose_conv_kernel(
    x: ShapedArray, k: ShapedArray, out: ShapedArray, params: dict, scope: Scope
) -> Callable[..., Any] | None:
    """Return what calls the kernel; None where it does not know the convolution, or is slower."""
    (n, c, *space), (o, i, *window), (m, f, *places) = params["dimension_numbers"]
    if (
        not scope.target.kernels
        or scope.target.devices
        or len(space) != 2
        or (params["feature_group_count"], params["batch_group_count"]) != (1, 1)
        or max(params["lhs_dilation"]) > 1
        or not are_floats(x, k, out)
        or are_points(x, k, out, params)
    ):
        return None
    taps, results = math.prod(k.shape[a] for a in window), math.prod(out.shape[a] for a in places)
    is_derivative = results < taps  # then what moves over lhs is the larger, and not the result
    uses = taps * x.shape[c] if is_derivative else results * x.shape[n]
    wide = is_derivative or (x.shape[c] >= MIN_INPUTS and out.shape[f] >= MIN_OUTPUTS)
    products = out.size * taps * x.shape[c]
    few = min(taps, results)
    if not wide or few > MAX_TAPS_HELD or uses < MIN_USES or products < MIN_WORK:
        return None
    steps = params["window_strides"], params["rhs_dilation"]
    if is_derivative:
        orders, steps = ((c, *space, n), (i, *window, o), (*places, m, f)), steps[::-1]
    else:
        orders = (n, *space, c), (*window, i, o), (m, *places, f)
    attributes = dict(zip(("stride", "dilation"), steps, strict=True))
    attributes["low"] = tuple(low for low, _ in params["padding"])
    how = {key: np.array(v, np.int64) for key, v in attributes.items()}
    made = ShapedArray([out.shape[a] for a in orders[2]], out.dtype)

    def call(x: Any, k: Any) -> Any:
        operands = [transpose(x, orders[0]), transpose(k, orders[1])]
        given = {**how, "is_derivative": is_derivative}
        (y,) = call_kernel("weft_conv", operands, [made], given)
        return transpose(y, inverse_permutation(orders[2]))

    return call


def put_features_last(numbers: ConvDimensionNumbers) -> ConvDimensionNumbers:
    """Return the only order of axes that XLA:CPU has a fast kernel for, for the same rank."""
    last = len(numbers.lhs_spec) - 1
    ends = (0, last, *range(1, last))
    return ConvDimensionNumbers(ends, (last, last - 1, *range(last - 1)), ends)


def write_features_last(x: Any, k: Any, out: ShapedArray, params: dict) -> Any:
    """Convolve with features as the last axis, by XLA's own convolution.

    XLA:CPU transposes to that order itself, but not within branches and loops. There, the
    convolutions in the derivative of a convolution took 30 times as long. The result is a formula,
    so that no other form replaces it.
    """
    settings = tuple(params.items())
    return apply_formula(lower_features_last, [x, k], [out], *settings)[0]


def lower_features_last(hlo: Any, x: Any, k: Any, *settings: tuple[str, Any]) -> list:
    """Write a convolution between the transposes that put its features last."""
    params = dict(settings)
    numbers = params["dimension_numbers"]
    (n, c, *space), (o, i, *window), (m, f, *places) = numbers
    x = Expr(hlo, x).transpose((n, *space, c)).value
    k = Expr(hlo, k).transpose((*window, i, o)).value
    params["dimension_numbers"] = put_features_last(numbers)
    (y,) = conv_general_dilated_p.lower(hlo, x, k, **params)
    return [Expr(hlo, y).transpose(inverse_permutation((m, *places, f))).value]
