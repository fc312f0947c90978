"""Convolutions of one channel by one kernel, written in the operations that a CPU is fast at.

XLA:CPU takes them element by element: ten to two hundred times as long as the sums of products that
they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.control.cond import cond_p
from weft.core.aval import ShapedArray, typeof
from weft.cpu.calls import call_kernel
from weft.cpu.conv_forms import convolve
from weft.cpu.scope import Scope
from weft.primitives import slicing
from weft.primitives.constant import stage_whole
from weft.primitives.conv import ConvDimensionNumbers
from weft.primitives.dot import dot_general
from weft.primitives.elementwise import add, is_finite, mul
from weft.primitives.layout import (
    broadcast_in_dim,
    convert,
    expand_dims,
    literal,
    reduce_sum,
    reshape,
    transpose,
)
from weft.util import inverse_permutation

# Up to this many elements of the kernel, or of the result, are each written as an operation; along
# one axis blocks are better sooner.
MAX_TAPS, MAX_TAPS_OF_ONE_AXIS = 64, 12
MAX_RESULTS, MAX_PRODUCTS = 32, 1 << 22
# From this many products on are blocks worth the time that it takes to compile them.
MIN_BLOCK_WORK = 1 << 15


def choose_channelwise(
    x: ShapedArray, k: ShapedArray, out: ShapedArray, params: dict, plain: Callable, scope: Scope
) -> Callable[..., Any] | None:
    """Return a function for a convolution with one kernel for each feature; None for others.

    `plain` computes the convolution like any other one. A product of blocks also multiplies by the
    zeros beside a kernel. They would turn values that are not finite into NaN, so `plain` computes
    such values.
    """
    numbers = params["dimension_numbers"]
    sizes = [k.shape[a] for a in numbers.rhs_spec]
    groups, taps = params["feature_group_count"], math.prod(sizes[2:])
    results = math.prod(out.shape[a] for a in numbers.out_spec[2:])
    floats = x.dtype in (np.float32, np.float64) and out.dtype == x.dtype
    if not floats or len(sizes) == 2 or 0 in (x.size, k.size, out.size) or taps == 1:
        return None
    if params["batch_group_count"] > 1:
        each = x.shape[numbers.lhs_spec[0]] == params["batch_group_count"] == sizes[0]
        if not each or results > MAX_TAPS:
            return None
        if len(sizes) <= 4 and max(params["lhs_dilation"]) == 1 and scope.target.kernels:
            return lambda x, k: call_each_batch(x, k, out, params)
        return write_padded(convolve_each_batch, out, params)
    if sizes[:2] != [groups, 1]:
        return None
    one_axis = groups == 1 and len(sizes) == 3
    if taps <= (MAX_TAPS_OF_ONE_AXIS if one_axis else MAX_TAPS):
        return write_padded(sum_slices, out, params)
    steps = (params[p] for p in ("window_strides", "lhs_dilation", "rhs_dilation"))
    if groups > 1 or any(n > 1 for step in steps for n in step) or results * taps < MIN_BLOCK_WORK:
        return None
    if results <= MAX_RESULTS and (results == 1 or results * x.size <= MAX_PRODUCTS):
        return write_padded(convolve_each_result, out, params)
    blocks = write_padded(multiply_blocks, out, params)
    branches = [stage_whole(lambda x, k, f=f: [f(x, k)], [x, k]) for f in (plain, blocks)]

    def choose_by_values(x: Any, k: Any) -> Any:
        index = convert(are_all_finite(x, k), np.dtype(np.int32))
        return cond_p.apply(index, x, k, branches=tuple(branches))[0]

    return choose_by_values


def write_padded(fun: Callable, out: ShapedArray, params: dict) -> Callable[..., Any]:
    """Return `fun`, in the layout of the convolution, of an lhs that is padded and dilated."""
    spec = params["dimension_numbers"].lhs_spec
    config = [(0, 0, 0)] * len(spec)
    for axis, pair, d in zip(spec[2:], params["padding"], params["lhs_dilation"], strict=True):
        config[axis] = (*pair, d - 1)

    def call(x: Any, k: Any) -> Any:
        if any(c != (0, 0, 0) for c in config):
            x = slicing.pad(x, literal(0, x.dtype), config)
        return fun(x, k, out.shape, params)

    return call


def canonicalize_layout(fun: Callable) -> Callable:
    """A convolution of x (batch, feature, spatial) and k (feature, spatial) for any layout."""

    def call(x: Any, k: Any, shape: tuple[int, ...], params: dict) -> Any:
        lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
        k = transpose(k, rhs_spec)
        k = reshape(k, (k.shape[0], *k.shape[2:]))
        y = fun(transpose(x, lhs_spec), k, tuple(shape[a] for a in out_spec), params)
        return transpose(y, inverse_permutation(out_spec))

    return call


def are_all_finite(x: Any, k: Any) -> Any:
    """Return True if all elements are finite; False too if they are so large that sums are not."""
    total, other = (reduce_sum(y, range(typeof(y).ndim)) for y in (x, k))
    return is_finite(add(total, other))


@canonicalize_layout
def sum_slices(x: Any, k: Any, shape: tuple[int, ...], params: dict) -> Any:
    """The sum over the elements of the kernel of each times a slice of x."""
    strides, dilations = params["window_strides"], params["rhs_dilation"]
    total = None
    for place in np.ndindex(*k.shape[1:]):
        starts = [i * d for i, d in zip(place, dilations, strict=True)]
        limits = [a + (n - 1) * s + 1 for a, n, s in zip(starts, shape[2:], strides, strict=True)]
        part = slicing.slice(x, (0, 0, *starts), (*shape[:2], *limits), (1, 1, *strides))
        tap = slicing.slice(k, (0, *place), (k.shape[0], *(i + 1 for i in place)))
        tap = broadcast_in_dim(reshape(tap, (k.shape[0],)), shape, (1,))
        term = mul(part, tap)
        total = term if total is None else add(total, term)
    return total


@canonicalize_layout
def convolve_each_result(x: Any, k: Any, shape: tuple[int, ...], params: dict) -> Any:
    """Each element of the result by itself, a product of the kernel and a window of x."""
    n, size, windows = shape[0], math.prod(k.shape), k.shape[1:]
    k = reshape(k, (size,))
    outs = []
    for place in np.ndindex(*shape[2:]):
        limits = (i + w for i, w in zip(place, windows, strict=True))
        window = reshape(slicing.slice(x, (0, 0, *place), (n, 1, *limits)), (n, size))
        outs.append(dot_general(window, k, (((1,), (0,)), ((), ())), params["precision"]))
    return reshape(slicing.concatenate([expand_dims(y, (1,)) for y in outs], 1), shape)


def call_each_batch(x: Any, k: Any, out: ShapedArray, params: dict) -> Any:
    """Do what `convolve_each_batch` does by a kernel, native/depthwise.cc."""
    numbers, last = params["dimension_numbers"], params["dimension_numbers"].lhs_spec[0] > 1
    one = [1] * (4 - x.ndim)  # an axis of one element, where there is one axis

    def images(x: Any, c: int, n: int, *space: int) -> Any:
        y = transpose(x, (n, *space, c) if last else (n, c, *space))
        at = 1 if last else 2
        return reshape(y, (*y.shape[:at], *one, *y.shape[at:]))

    many = lambda name: np.array([*one, *params[name]], np.int64)
    low = np.array([*(0 for _ in one), *(low for low, _ in params["padding"])], np.int64)
    how = {"steps": many("rhs_dilation"), "dilations": many("window_strides"), "low": low}
    _, c, *taps = (out.shape[a] for a in numbers.out_spec)
    given = [images(x, *numbers.lhs_spec), images(k, *numbers.rhs_spec)]
    made = ShapedArray((c, *one, *taps), out.dtype)
    (y,) = call_kernel("weft_depthwise", given, [made], {"last": last, **how})
    return transpose(reshape(y, (1, c, *taps)), inverse_permutation(numbers.out_spec))


def convolve_each_batch(x: Any, k: Any, shape: tuple[int, ...], params: dict) -> Any:
    """Each batch by a kernel of its own, features summed: the cotangent of a kernel per feature."""
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    k = transpose(k, [rhs_spec[lhs_spec.index(a)] for a in range(x.ndim)])
    strides, dilations = params["window_strides"], params["rhs_dilation"]
    others = [a for a in range(x.ndim) if a != lhs_spec[0]]
    outs = []
    for place in np.ndindex(*(shape[a] for a in out_spec[2:])):
        starts, limits, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
        for a, i, s, d in zip(lhs_spec[2:], place, strides, dilations, strict=True):
            starts[a], steps[a] = i * s, d
            limits[a] = i * s + (k.shape[a] - 1) * d + 1
        outs.append(reduce_sum(mul(slicing.slice(x, starts, limits, steps), k), others))
    y = reshape(slicing.stack(outs), (1, *(shape[a] for a in out_spec[2:]), x.shape[lhs_spec[0]]))
    return transpose(y, inverse_permutation((out_spec[0], *out_spec[2:], out_spec[1])))


def block_size(n: int) -> int:
    """Return the number of neighbours along an axis that form a block.

    Larger blocks make larger products, but a share of about block / n of them is with zeros.
    """
    return 16 if n < 64 else 32 if n < 512 else 64


@canonicalize_layout
def multiply_blocks(x: Any, k: Any, shape: tuple[int, ...], params: dict) -> Any:
    """Convolve by products of matrices: neighbours along the kernel's longest axis form blocks.

    The functions that this one calls take that axis last, and arrays without an axis of features.
    """
    axis = max(range(k.ndim - 1), key=lambda a: (k.shape[a + 1], a))
    order = [*(a for a in range(k.ndim - 1) if a != axis), axis]
    k = transpose(reshape(k, k.shape[1:]), order)
    x = transpose(reshape(x, (x.shape[0], *x.shape[2:])), (0, *(a + 1 for a in order)))
    sizes = [shape[a + 2] for a in order]
    combine = convolve_in_pairs if k.shape[-1] > sizes[-1] and x.shape[0] == 1 else convolve_in_turn
    y = combine(x, k, sizes, params)
    return expand_dims(transpose(y, inverse_permutation((0, *(a + 1 for a in order)))), (1,))


def convolve_in_turn(x: Any, k: Any, sizes: list[int], params: dict) -> Any:
    """A convolution over blocks of b, as features, for results no shorter than the kernel.

    out[q b + t] = sum over u, s of x[(q + u) b + s] * w[u, s, t], with w[u, s, t] = k[u b + s - t].
    """
    n, size, lead = k.shape[-1], sizes[-1], k.shape[:-1]
    b = block_size(n)
    turns, rows = -(-size // b), -(-(n - 1) // b) + 1
    x = split_blocks(x, turns + rows - 1, b)
    # rows of rows * b + 1 elements, read as rows one shorter: each starts one further to the right
    wide = rows * b + 1
    k = pad_last(k, wide)
    rank = len(lead)
    w = broadcast_in_dim(k, (*lead, b, wide), (*range(rank), rank + 1))
    w = reshape(w, (*lead, b * wide))
    w = slicing.slice_in_dim(w, 0, b * (wide - 1), 1, rank)
    w = reshape(w, (*lead, b, rows, b))
    w = transpose(w, (*range(rank), rank + 1, rank + 2, rank))  # what XLA has a fast kernel for
    y = convolve_blocks(x, w, params)
    y = reshape(y, (*y.shape[:-2], turns * b))
    return slicing.slice_in_dim(y, 0, size, 1, y.ndim - 1)


def convolve_in_pairs(x: Any, k: Any, sizes: list[int], params: dict) -> Any:
    """Products of blocks of b of x and of the kernel, for results shorter than the kernel.

    out[u b + s - t] = sum over v of x[(u + v) b + s] * k[v b + t], summed over s and t.
    """
    n, size, lead = k.shape[-1], sizes[-1], tuple(sizes[:-1])
    b = block_size(size)
    turns, rows = -(-(size - 1) // b) + 1, -(-n // b)
    x = split_blocks(x, turns + rows - 1, b)
    x = expand_dims(reshape(x, x.shape[1:]), (x.ndim - 1,))
    x = transpose(x, (x.ndim - 2, *range(x.ndim - 2), x.ndim - 1))  # s, spatial, 1
    k = expand_dims(split_blocks(k, rows, b), (k.ndim,))  # spatial, 1, t
    y = convolve_blocks(x, k, params)  # s, lead, u, t
    rank = len(lead)
    y = transpose(y, (*range(1, rank + 1), rank + 2, rank + 1, 0))  # lead, t, u, s
    y = reshape(y, (*lead, b * turns * b))
    # rows of turns * b elements, read as rows one longer: each starts one further to the right
    wide = turns * b + 1
    y = reshape(pad_last(y, b * wide), (*lead, b, wide))
    y = slicing.slice_in_dim(reduce_sum(y, (rank,)), 0, size, 1, rank)
    return expand_dims(y, (0,))


def pad_last(x: Any, size: int) -> Any:
    """x with zeros at the end of its last axis."""
    config = [(0, 0, 0)] * (x.ndim - 1) + [(0, size - x.shape[-1], 0)]
    return slicing.pad(x, literal(0, x.dtype), config)


def split_blocks(x: Any, count: int, b: int) -> Any:
    """x with its last axis as `count` blocks of b."""
    return reshape(pad_last(x, count * b), (*x.shape[:-1], count, b))


def convolve_blocks(x: Any, k: Any, params: dict) -> Any:
    """The convolution of x (batch, spatial, features) with k (spatial, in, out)."""
    rank = x.ndim - 2
    image = (0, rank + 1, *range(1, rank + 1))
    changed = {
        "dimension_numbers": ConvDimensionNumbers(image, (rank + 1, rank, *range(rank)), image),
        "padding": ((0, 0),) * rank,
    }
    return convolve(x, k, {**params, **changed})
