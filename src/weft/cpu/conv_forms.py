"""Rewrite convolutions as other convolutions that XLA:CPU has a fast kernel for.

The kernel takes one or two axes, one group, and no zeros between the elements of lhs. XLA:CPU
computes all other convolutions in loops over elements, which are 2 to 100 times slower.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray
from weft.cpu.calls import call_kernel
from weft.dtypes import itemsize_bits
from weft.optimize.views import View, merge_axes, row_major_steps
from weft.primitives import slicing
from weft.primitives.conv import ConvDimensionNumbers, conv_general_dilated_p
from weft.primitives.dot import dot_general
from weft.primitives.layout import reduce_sum, reshape, transpose, zeros
from weft.util import inverse_permutation

# Up to this many slices along an axis, and convolutions of a group each, are written side by side.
MAX_SLICES, MAX_PARTS = 32, 32
MIN_GROUP_FEATURES = 8  # groups of fewer input features are not convolutions of their own
# Up to this many windows are multiplied, of this many elements in all: more are bound by memory.
MAX_WINDOWS, MAX_COPIES = 64, 1 << 21
# Below these, products of matrices do not pay for their transposes: multiplications; or the
# elements of an image, together with the elements of all images.
MIN_POINT_WORK, MIN_IMAGE_SIZE, MIN_IMAGES_SIZE = 3 << 20, 512, 1 << 20

SPATIAL = ("window_strides", "padding", "lhs_dilation", "rhs_dilation")


def find_form(
    lhs: ShapedArray,
    rhs: ShapedArray,
    out: ShapedArray,
    params: dict,
    over_mesh: bool,
    kernels: bool,
) -> Callable[..., Any] | None:
    """Return what writes a convolution as others, (x, k, out) -> y; None if it is best unchanged.

    Over a mesh, parts that are cut and joined would be sent between devices.
    """
    counts = lhs.size, rhs.size, out.size
    if {*map(type, counts)} != {int}:  # symbolic
        return None
    if 0 in counts:  # a sum of nothing; XLA fails on groups of it over a mesh
        return lambda x, k, out: zeros(out)
    (n, c, *_), (_, i, *window), (_, _, *places) = params["dimension_numbers"]
    sizes = [(out.shape[a], rhs.shape[b]) for a, b in zip(places, window, strict=True)]
    groups = params["feature_group_count"]
    cut = any(n < 0 for pair in params["padding"] for n in pair)
    if over_mesh:
        return functools.partial(cut_edges, params=params) if cut else None
    if params["batch_group_count"] > 1:
        return functools.partial(group_features, params=params)
    results, taps = (math.prod(each) for each in zip((1, 1), *sizes, strict=True))
    if results < taps:  # as of the derivative in the kernel
        for axis, dilation in enumerate(params["lhs_dilation"]):
            steps = params["window_strides"][axis], params["rhs_dilation"][axis]
            if dilation > 1 and steps == (1, 1) and dilation <= MAX_SLICES:
                return functools.partial(split_phases, axis=axis, params=params)
    copies = lhs.shape[n] * results * taps * lhs.shape[c]
    if groups == 1 and results <= min(taps, MAX_WINDOWS) and copies <= MAX_COPIES:
        return functools.partial(multiply_windows, params=params, kernels=kernels)
    if not sizes:
        return None
    if are_points(lhs, rhs, out, params):
        whole = results == 1 < taps
        return functools.partial(multiply_images if whole else multiply_points, params=params)
    if cut:
        return functools.partial(cut_edges, params=params)
    few = min(range(len(sizes)), key=lambda a: min(sizes[a]))
    if len(sizes) > 2 and min(sizes[few]) <= MAX_SLICES:
        return functools.partial(fold_axis, axis=few, params=params)
    if 1 < groups <= MAX_PARTS and rhs.shape[i] >= MIN_GROUP_FEATURES:
        return functools.partial(convolve_groups, params=params)
    if groups > 1 and math.prod(map(min, sizes)) <= MAX_SLICES:
        return functools.partial(fold_axis, axis=few, params=params)
    return None


def convolve(x: Any, k: Any, params: dict) -> Any:
    """Return the convolution with these parameters, which another form may take the place of."""
    return conv_general_dilated_p.apply(x, k, **params)[0]


def group_features(x: Any, k: Any, out: ShapedArray, params: dict) -> Any:
    """Groups of batches as groups of features."""
    n, c, *_ = params["dimension_numbers"].lhs_spec
    groups, shape = params["batch_group_count"], list(x.shape)
    shape[n], shape[c] = shape[n] // groups, shape[c] * groups
    x = reshape(x, (*x.shape[:n], groups, shape[n], *x.shape[n + 1 :]))
    order = [a for a in range(x.ndim) if a != n]
    order.insert(c, n)
    x = reshape(transpose(x, order), shape)
    return convolve(x, k, {**params, "feature_group_count": groups, "batch_group_count": 1})


def multiply_windows(x: Any, k: Any, out: ShapedArray, params: dict, kernels: bool) -> Any:
    """Few windows of many elements side by side, as one product.

    XLA:CPU compiles a loop for each slice that is a window: 2 s for two convolutions of 25 windows.
    So a kernel copies the windows, if kernels are called.
    """
    (n, c, *space), (_, i, *window), (m, f, *places) = params["dimension_numbers"]
    for axis in range(len(space)):
        x, params = pad_axis(x, axis, params)
    pairs = sorted(zip((c, *space), (i, *window), strict=True))
    seen, weights = zip(*pairs, strict=True)
    strides, gaps = params["window_strides"], params["rhs_dilation"]
    counts = [out.shape[a] for a in places]
    if kernels and itemsize_bits(x.dtype) >= 8:
        steps = row_major_steps(x.shape)
        gap_of = dict(zip(space, gaps, strict=True))
        sizes = *counts, x.shape[n], *(k.shape[b] for b in weights)
        moves = [steps[a] * stride for a, stride in zip(space, strides, strict=True)]
        moves += [steps[n], *(steps[a] * gap_of.get(a, 1) for a in seen)]
        made = ShapedArray((math.prod(counts), *sizes[len(counts) :]), x.dtype)
        lengths, apart = merge_axes(View(x, 0, sizes, tuple(moves)))
        attributes = {"start": 0, "sizes": lengths, "steps": apart}
        (y,) = call_kernel("weft_view", [x], [made], attributes)
        seen = tuple(range(2, y.ndim))
    else:
        parts = []
        for place in np.ndindex(*counts):
            starts, limits, by = [0] * x.ndim, list(x.shape), [1] * x.ndim
            for axis, (a, b) in enumerate(zip(space, window, strict=True)):
                starts[a], by[a] = place[axis] * strides[axis], gaps[axis]
                limits[a] = starts[a] + (k.shape[b] - 1) * by[a] + 1
            parts.append(slicing.slice(x, starts, limits, by))
        y, seen = slicing.stack(parts, n), tuple([a + (a >= n) for a in seen])
    kinds = params["precision"], params["preferred_element_type"]
    y = dot_general(y, k, ((seen, weights), ((), ())), *kinds)
    y = reshape(y, (*counts, *y.shape[1:]))
    return transpose(y, inverse_permutation((*places, m, f)))


def are_points(lhs: ShapedArray, rhs: ShapedArray, out: ShapedArray, params: dict) -> bool:
    """Return True if windows, or results, are of one element, and features precede an image's axis.

    The derivative in the kernel has one result where windows are of one element.
    """
    (n, c, *space), (_, _, *window), (_, _, *places) = params["dimension_numbers"]
    once = {*params["lhs_dilation"]} == {1} and not any(map(any, params["padding"]))
    alone = params["feature_group_count"] == params["batch_group_count"] == 1
    if type(out.size) is not int or not once or not alone:
        return False
    size = lambda x, axes: [x.shape[a] for a in axes]
    if {*size(rhs, window)} == {1}:
        return c < max(space) and out.size * lhs.shape[c] >= MIN_POINT_WORK
    images = {*size(out, places)} == {1} and size(lhs, space) == size(rhs, window)
    large = math.prod(size(lhs, space)) >= MIN_IMAGE_SIZE and lhs.size >= MIN_IMAGES_SIZE
    return images and n < max(space) and large


def multiply_points(x: Any, k: Any, out: ShapedArray, params: dict) -> Any:
    """Windows of one element: a product of matrices."""
    (n, c, *space), (o, i, *window), (m, f, *places) = params["dimension_numbers"]
    to, steps = {n: m, **dict(zip(space, places, strict=True))}, [1] * x.ndim
    for a, step in zip(space, params["window_strides"], strict=True):
        steps[a] = step
    x = slicing.slice(x, [0] * x.ndim, x.shape, steps)
    k = reshape(transpose(k, (o, i, *window)), (k.shape[o], k.shape[i]))
    kinds = params["precision"], params["preferred_element_type"]
    y = dot_general(k, x, (((1,), (c,)), ((), ())), *kinds)
    return transpose(y, inverse_permutation((f, *(to[a] for a in range(x.ndim) if a != c))))


def multiply_images(x: Any, k: Any, out: ShapedArray, params: dict) -> Any:
    """Windows as large as images: a product of matrices for each image, summed."""
    (n, c, *space), (o, i, *window), (m, f, *places) = params["dimension_numbers"]
    kinds = params["precision"], params["preferred_element_type"]
    y = reduce_sum(dot_general(k, x, ((window, space), ((i,), (c,))), *kinds), (0,))
    y = reshape(y, (*y.shape, *(1 for _ in places)))
    return transpose(y, inverse_permutation((f, m, *places)))


def cut_edges(x: Any, k: Any, out: ShapedArray, params: dict) -> Any:
    """Negative padding written out: of (-1, 1) XLA:CPU's kernel makes no padding."""
    params = dict(params)
    for axis, pair in enumerate(params["padding"]):
        if min(pair) < 0:
            x, params = pad_axis(x, axis, params)
    return convolve(x, k, params)


def pad_axis(x: Any, axis: int, params: dict) -> tuple[Any, dict]:
    """Pad and dilate a spatial axis of lhs. Return lhs, and the parameters that remain."""
    config = [(0, 0, 0)] * x.ndim
    space = params["dimension_numbers"].lhs_spec[axis + 2]
    config[space] = (*params["padding"][axis], params["lhs_dilation"][axis] - 1)
    left = replace_steps(params, axis, padding=(0, 0), lhs_dilation=1)
    return slicing.pad(x, zeros(ShapedArray((), x.dtype)), config), left


def replace_steps(params: dict, axis: int, **given: Any) -> dict:
    """Return the parameters, with some replaced for one spatial axis."""
    put = lambda name, value: (*params[name][:axis], value, *params[name][axis + 1 :])
    return {**params, **{name: put(name, value) for name, value in given.items()}}


def convolve_groups(x: Any, k: Any, out: ShapedArray, params: dict) -> Any:
    """Each group of features by itself."""
    (_, c, *_), (o, _, *_), (_, f, *_) = params["dimension_numbers"]
    groups = params["feature_group_count"]
    pairs = zip(cut_axis(x, c, groups), cut_axis(k, o, groups), strict=True)
    parts = [convolve(*pair, {**params, "feature_group_count": 1}) for pair in pairs]
    return slicing.concatenate(parts, f)


def cut_axis(x: Any, axis: int, count: int) -> list:
    """Equal parts along an axis."""
    n = x.shape[axis] // count
    return [slicing.slice_in_dim(x, j * n, (j + 1) * n, 1, axis) for j in range(count)]


def split_phases(x: Any, k: Any, out: ShapedArray, axis: int, params: dict) -> Any:
    """The results that are `lhs_dilation` apart along an axis are a convolution without zeros."""
    space, window, place = (spec[axis + 2] for spec in params["dimension_numbers"])
    step, (low, _) = params["lhs_dilation"][axis], params["padding"][axis]
    n, taps, size = x.shape[space], k.shape[window], out.shape[place]
    parts, most = [], -(-size // step)
    for r in range(step):  # result step * q + r takes elements first, first + step ... of k
        first = (low - r) % step
        start = (r + first - low) // step  # in x, for q = 0
        few = -(-(taps - first) // step)
        shape = list(out.shape)
        shape[place] = most
        if few <= 0:
            parts.append(zeros(ShapedArray(tuple(shape), out.dtype)))
            continue
        kernel = slicing.slice_in_dim(k, first, None, step, window)
        padding = -start, most + few - 1 - n + start
        changed = replace_steps(params, axis, padding=padding, lhs_dilation=1)
        parts.append(convolve(x, kernel, changed))
    y = slicing.stack(parts, place + 1)
    y = reshape(y, (*y.shape[:place], most * step, *y.shape[place + 2 :]))
    return slicing.slice_in_dim(y, 0, size, 1, place)


def fold_axis(x: Any, k: Any, out: ShapedArray, axis: int, params: dict) -> Any:
    """Convolve with a spatial axis moved to the batch, and its windows moved to the features."""
    (n, c, *space), (o, i, *window), (m, f, *places) = params["dimension_numbers"]
    kept, groups = [a for a in range(len(space)) if a != axis], params["feature_group_count"]
    x, params = pad_axis(x, axis, params)
    x = transpose(x, (n, space[axis], *(space[a] for a in kept), c))
    x = reshape(x, (*x.shape[:-1], groups, x.shape[-1] // groups))
    k = transpose(k, (*(window[a] for a in kept), window[axis], i, o))
    size, taps, rank = out.shape[places[axis]], k.shape[-3], len(kept)
    steps = (taps, params["rhs_dilation"][axis]), (size, params["window_strides"][axis])
    (few, step), (many, along) = sorted(steps, key=lambda pair: pair[0])
    parts = []
    for start in range(0, few * step, step):
        limit = start + (many - 1) * along + 1
        parts.append(slicing.slice_in_dim(x, start, limit, along, 1))
    if few == taps:
        x = slicing.stack(parts, rank + 3)
    else:
        x = transpose(slicing.stack(parts, 1), (0, 1, *range(3, rank + 4), 2, rank + 4))
    x = reshape(x, (x.shape[0] * size, *x.shape[2:-3], math.prod(x.shape[-3:])))
    k = reshape(k, (*k.shape[:-3], taps * k.shape[-2], k.shape[-1]))
    y = convolve_last(x, k, kept, params)
    y = reshape(y, (out.shape[m], size, *y.shape[1:]))
    return transpose(y, inverse_permutation((m, places[axis], *(places[a] for a in kept), f)))


def convolve_last(x: Any, k: Any, axes: Sequence[int], params: dict) -> Any:
    """The convolution over `axes` of x (batch, spatial, features) with k (spatial, in, out)."""
    rank, groups = len(axes), params["feature_group_count"]
    if rank == 0:
        x = reshape(x, (x.shape[0], groups, x.shape[1] // groups))
        k = reshape(k, (k.shape[0], groups, k.shape[1] // groups))
        contracted = ((2,), (0,)), ((1,), (1,))
        kinds = params["precision"], params["preferred_element_type"]
        y = dot_general(x, k, contracted, *kinds)
        return reshape(transpose(y, (1, 0, 2)), (x.shape[0], groups * k.shape[2]))
    images = (0, rank + 1, *range(1, rank + 1))
    numbers = ConvDimensionNumbers(images, (rank + 1, rank, *range(rank)), images)
    less = {p: tuple(params[p][a] for a in axes) for p in SPATIAL}
    return convolve(x, k, {**params, **less, "dimension_numbers": numbers})
