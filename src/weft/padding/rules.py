"""Rules that run primitives on padded arrays, if the `element` rule does not suffice.

A rule takes an equation with symbolic sizes, the sizes, and the padded operands. It returns the
padded results, or None if the equation needs one of the general methods (interpret.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import weft.lax as lax
import weft.numpy as jnp
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Eqn
from weft.export.dims import Dim
from weft.padding.contents import OrNaN, is_zero
from weft.padding.elements import run_elements
from weft.padding.fourier import pad_fft
from weft.padding.sizes import (
    FACTOR,
    FAR,
    IDENTITY,
    INDEX,
    NUMBER,
    Sizes,
    choose_elements,
    fill_like,
    refusal,
)
from weft.primitives import indexing, window
from weft.primitives.bits import BitcastConvertType
from weft.primitives.conv import ConvGeneralDilated
from weft.primitives.cumulative import Cumulative
from weft.primitives.fft import FFT
from weft.primitives.layout import Iota, LeadingBatch, broadcast_in_dim, convert
from weft.primitives.random import RandomBits, RandomSplit
from weft.primitives.reduction import ArgExtremum, Reduce, highest_value, lowest_value
from weft.primitives.sort import FindPlaces, Partition, Sort, TopK, sort_p
from weft.primitives.tokens import OptimizationBarrier

Rule = Callable[[Eqn, Sizes, Sequence[Any]], list | None]


def apply_padded(eqn: Eqn, sizes: Sizes, ins: Sequence[Any], **changes: Any) -> list:
    """Apply the primitive of an equation to padded operands."""
    params = {k: sizes.substitute(v) for k, v in {**eqn.params, **changes}.items()}
    return eqn.primitive.apply(*ins, **params)


def is_padded(aval: ShapedArray, axis: int) -> bool:
    """Return True if an axis has a symbolic size."""
    return isinstance(aval.shape[axis], Dim)


def padded_axes(aval: ShapedArray) -> list[int]:
    """Return the axes of symbolic size."""
    return [a for a in range(aval.ndim) if is_padded(aval, a)]


def pad_iota(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list | None:
    """Count places, once in a program."""
    params = eqn.params
    if params["dtype"] != INDEX or params["sharding"] is not None:
        return None
    return [sizes.count_places(sizes.pad_type(eqn.outvars[0].aval).shape, params["dimension"])]


# --- along an axis ----------------------------------------------------------------------------


def pad_cumulative(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Run a cumulative reduction.

    In reverse, it reads the padding first, so the padding is filled with the identity element.
    """
    (x,), aval, prim = ins, eqn.invars[0].aval, eqn.primitive
    assert isinstance(prim, Cumulative)
    if eqn.params["reverse"]:
        value = prim.identity(aval.dtype)
        x = sizes.mask(x, aval, (eqn.params["axis"],), value)
    return apply_padded(eqn, sizes, [x])


def pad_arg_extremum(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Run argmin or argmax with the worst value in the padding.

    The padding never wins: of equal elements, the first is returned.
    """
    (x,), aval, prim = ins, eqn.invars[0].aval, eqn.primitive
    assert isinstance(prim, ArgExtremum)
    worst = lowest_value if prim.largest else highest_value
    return apply_padded(eqn, sizes, [sizes.mask(x, aval, eqn.params["axes"], worst(aval.dtype))])


def sort_padded(eqn: Eqn, sizes: Sizes, xs: Sequence[Any], axis: int, **params: Any) -> list:
    """Sort arrays along an axis, with the padding last for any values in it."""
    inside = sizes.is_inside(eqn.invars[0].aval, (axis,))
    if inside is None:
        return sort_p.apply(*xs, dimension=axis, **params)
    last = convert(jnp.logical_not(inside), np.dtype(np.int8))
    params["num_keys"] += 1
    return sort_p.apply(last, *xs, dimension=axis, **params)[1:]


def pad_sort(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Sort with an additional first key that is 1 for padding, so that padding comes last."""
    params = dict(eqn.params)
    return sort_padded(eqn, sizes, ins, params.pop("dimension"), **params)


def pad_partition(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list | None:
    """Partition by a full sort, since a sorted array is partitioned at every position."""
    aval, axis = eqn.invars[0].aval, eqn.params["axis"]
    if not is_padded(aval, axis):
        return apply_padded(eqn, sizes, ins)
    xs = [ins[0]]
    if eqn.params["places"]:
        xs.append(sizes.count_places(sizes.pad_type(aval).shape, axis))
    return sort_padded(eqn, sizes, xs, axis, is_stable=True, num_keys=1)[-1:]


def pad_top_k(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Run `top_k` with the lowest value in the padding, which comes after equal elements."""
    (x,), aval = ins, eqn.invars[0].aval
    axis = eqn.params["axis"]
    return apply_padded(eqn, sizes, [sizes.mask(x, aval, (axis,), lowest_value(aval.dtype))])


def pad_find_places(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Find the places of true elements, with False in the padding.

    If fewer elements are true than places are asked for, the other places are the true size.
    """
    (x,), aval = ins, eqn.invars[0].aval
    axis = eqn.params["axis"]
    (places,) = apply_padded(eqn, sizes, [sizes.mask(x, aval, (axis,), False)])
    if not is_padded(aval, axis):
        return [places]
    size = convert(sizes.value(aval.shape[axis]), typeof(places).dtype)
    return [jnp.minimum(places, size)]


def pad_reduce(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Reduce with the start of the reduction in the padding, which changes nothing."""
    n = len(ins) // 2
    xs = [
        sizes.mask(x, a.aval, eqn.params["dimensions"], init)
        for x, a, init in zip(ins[:n], eqn.invars[:n], ins[n:], strict=True)
    ]
    return apply_padded(eqn, sizes, [*xs, *ins[n:]])


# --- independent along leading axes -----------------------------------------------------------


def pad_batch(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Run an operation on matrices with padded batch axes. Matrices are independent."""
    assert isinstance(eqn.primitive, LeadingBatch)
    rank = eqn.invars[0].aval.ndim - eqn.primitive.core_rank
    for aval in [v.aval for v in (*eqn.invars, *eqn.outvars)]:
        if any(is_padded(aval, a) for a in range(rank, aval.ndim)):
            raise refusal(
                eqn, "must have matrices of known sizes; only the axes before them may be padded"
            )
    return apply_padded(eqn, sizes, ins)


def pad_bitcast(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list | None:
    """Run a bitcast, which may merge the last axis into elements or split it off.

    That axis must not be padded. The other axes do not change.
    """
    aval, out = eqn.invars[0].aval, eqn.outvars[0].aval
    rank = min(aval.ndim, out.ndim)
    if aval.shape[:rank] != out.shape[:rank] or any(map(has_padded_tail, (aval, out), (rank,) * 2)):
        raise refusal(eqn, "the axis that is cut into words must have a known size")
    return apply_padded(eqn, sizes, ins)


def has_padded_tail(aval: ShapedArray, rank: int) -> bool:
    """Return True if axis `rank` or a later axis is padded."""
    return any(is_padded(aval, a) for a in range(rank, aval.ndim))


# --- random numbers ---------------------------------------------------------------------------


def pad_random(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Draw random numbers for a longer array.

    Each number depends only on the key and its position in C order, so the first numbers are right.
    """
    shape = eqn.params["shape"]
    keys = eqn.invars[0].aval
    varies = [a for a, n in enumerate(shape) if isinstance(n, Dim)]
    if varies and not eqn.params["partitionable"]:
        raise refusal(
            eqn,
            "each random number must depend on its own place only",
            "weft.threefry_partitionable(True)",
        )
    if any(a > 0 for a in varies):
        raise refusal(
            eqn,
            f"only the first axis of random numbers may be padded, not those of shape {shape}",
            "random.normal(key, (n, 3)).T, or random.split(key, m) and vmap",
        )
    if is_padded(keys, keys.ndim - 1):
        raise refusal(eqn, "the words of a key must be known")
    return apply_padded(eqn, sizes, ins)


# --- gather and scatter -----------------------------------------------------------------------


def pad_gather(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list | None:
    """Run a gather, with indices that are moved inside the true sizes or out of bounds.

    If indices are promised to be in bounds, they are clipped: indices in the padding may have any
    value and break the promise. XLA clips indices too if the promise is broken.
    """
    x, indices = ins
    of_x = eqn.invars[0].aval
    if is_of_diagonal(eqn, sizes, indices):
        return [take_diagonal(x, sizes)]
    mode, modes = eqn.params["mode"], indexing.GatherScatterMode
    whole, mapped = eqn.params["slice_sizes"], eqn.params["dimension_numbers"].start_index_map
    if mode is modes.PROMISE_IN_BOUNDS:
        mode = modes.CLIP
        eqn = eqn.replace(params={**eqn.params, "mode": mode})
    symbolic = [isinstance(n, Dim) and (a in mapped or n != of_x.shape[a])
                for a, n in enumerate(whole)]  # fmt: skip
    if mode is modes.ONE_HOT or any(symbolic):
        return run_elements(eqn, sizes, ins)
    if any(is_padded(of_x, a) for a in mapped):
        indices = widen_indices(indices)
        limit = make_row([sizes.value(of_x.shape[d] - whole[d]) for d in mapped], indices)
        if mode is modes.CLIP:
            indices = jnp.minimum(indices, limit)
        else:
            indices = choose_elements(indices <= limit, indices, fill_like(indices, FAR))
    return apply_padded(
        eqn, sizes, [x, indices], mode=mode, indices_are_sorted=False, unique_indices=False
    )


def is_of_diagonal(eqn: Eqn, sizes: Sizes, indices: Any) -> bool:
    """Return True if a gather or scatter is of the diagonal of square matrices in the last axes.

    The index vectors are (0, 0), (1, 1) and so on, also in the padding.
    """
    aval, of_indices, rank = eqn.invars[0].aval, eqn.invars[1].aval, eqn.invars[0].aval.ndim
    if rank < 2 or not is_padded(aval, -1) or aval.shape[-2] != aval.shape[-1]:
        return False
    if of_indices.ndim != 2 or of_indices.shape[0] != aval.shape[-1]:
        return False
    dims = eqn.params["dimension_numbers"]
    batch, matrix = tuple(range(rank - 2)), (rank - 2, rank - 1)
    gathers = indexing.GatherDimensionNumbers(batch, matrix, matrix)
    scatters = indexing.ScatterDimensionNumbers(batch, matrix, matrix)
    if dims not in (gathers, scatters):
        return False
    return indices is sizes.count_places(sizes.pad_type(of_indices).shape, 0)


def make_row(numbers: Sequence[Any], indices: Any) -> Any:
    """Return an array like index vectors, which all have the entries `numbers`."""
    if len(numbers) == 1:
        return fill_like(indices, numbers[0])
    row = jnp.stack([jnp.asarray(n, INDEX) for n in numbers])
    return broadcast_in_dim(row, typeof(indices).shape, (typeof(indices).ndim - 1,))


def pad_scatter(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Run a scatter that drops updates in the padding and updates that reach into it.

    The indices of such updates are set out of bounds. Windows of size 1 beyond the true size may be
    written, because the padding may be anything.
    """
    x, indices, updates = ins
    of_x, of_indices, of_updates = [a.aval for a in eqn.invars]
    assert isinstance(eqn.primitive, indexing.Scatter)
    if eqn.primitive.adds and is_of_diagonal(eqn, sizes, indices):
        return [add_to_diagonal(x, updates, sizes)]
    dims, mode = eqn.params["dimension_numbers"], eqn.params["mode"]
    modes = indexing.GatherScatterMode
    whole = indexing.window_sizes(of_x, of_updates, dims)
    mapped = dims.scatter_dims_to_operand_dims
    for axis, size in enumerate(whole):
        if isinstance(size, Dim) and (axis in mapped or size != of_x.shape[axis]):
            raise refusal(eqn, "windows of symbolic size must be as long as the array")
    indices = widen_indices(indices)
    inside = sizes.is_inside(of_indices, range(of_indices.ndim - 1))
    reaches = any(is_padded(of_x, d) and whole[d] != 1 for d in mapped)
    if reaches or (mapped and mode is modes.CLIP):
        limits = [sizes.value(of_x.shape[d] - whole[d]) for d in mapped]
        limit = make_row(limits, indices)
        if mode is modes.CLIP:
            indices = jnp.maximum(jnp.minimum(indices, limit), 0)
        else:
            fits = indices <= limit
            inside = fits if inside is None else jnp.logical_and(inside, fits)
    if inside is not None and not mapped and padded_axes(of_indices):
        raise refusal(eqn, "updates in the padding must have an index")
    if inside is not None:
        indices = choose_elements(inside, indices, fill_like(indices, FAR))
    return apply_padded(
        eqn, sizes, [x, indices, updates], mode=modes.FILL_OR_DROP, indices_are_sorted=False,
        unique_indices=False,
    )  # fmt: skip


def take_diagonal(x: Any, sizes: Sizes) -> Any:
    """Return the diagonals of square matrices. The padding of an identity matrix contains 1."""
    found, facts = jnp.diagonal(x, axis1=-2, axis2=-1), sizes.find_known(x)
    if facts.get(IDENTITY) is True:
        one = np.ones((), typeof(x).dtype)
        sizes.note(found, {typeof(found).ndim - 1: OrNaN(one) if FACTOR in facts else one})
    return found


def add_to_diagonal(x: Any, updates: Any, sizes: Sizes) -> Any:
    """Return square matrices with updates added to their diagonals, the padding included."""
    shape = typeof(x).shape
    rank = len(shape)
    if is_zero(sizes.find_known(x).get(NUMBER)):
        gaps = [*[(0, 0, 0)] * (rank - 2), (0, 0, shape[-1])]
        return jnp.reshape(lax.pad(updates, np.zeros((), typeof(x).dtype), gaps), shape)
    more = broadcast_in_dim(updates, shape, (*range(rank - 2), rank - 1))
    return choose_elements(sizes.is_on_diagonal(shape), jnp.add(x, more), x)


def widen_indices(indices: Any) -> Any:
    """Return indices as int32. Indices that are too large for any axis stay too large."""
    dtype = typeof(indices).dtype
    if dtype.itemsize >= 4 and dtype != INDEX:
        top = np.asarray(FAR, dtype)
        indices = jnp.minimum(indices, top)
        indices = indices if dtype.kind == "u" else jnp.maximum(indices, -top)
    return convert(indices, INDEX)


# --- windows ----------------------------------------------------------------------------------


def pad_convolution(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list | None:
    """Run a convolution with zeros in the padding, as for its own padding."""
    lhs, rhs = ins
    of_lhs, of_rhs = [a.aval for a in eqn.invars]
    (batch, *summed), rhs_spec, _ = eqn.params["dimension_numbers"]
    low = [pair[0] for pair in eqn.params["padding"]]
    groups = eqn.params["feature_group_count"], eqn.params["batch_group_count"]
    if any(is_padded(of_rhs, a) for a in rhs_spec[2:]) or any(type(n) is not int for n in low):
        return None
    if max(groups) > 1 and any(is_padded(of_lhs, a) for a in (batch, summed[0])):
        return None
    lhs = sizes.mask(lhs, of_lhs, summed, 0)
    rhs = sizes.mask(rhs, of_rhs, rhs_spec[1:2], 0)
    return apply_padded(eqn, sizes, [lhs, rhs], padding=fit_padding(eqn, sizes))


def fit_padding(eqn: Eqn, sizes: Sizes) -> tuple[tuple[int, int], ...]:
    """Return the padding of a convolution that makes the result as long as its bound."""
    params = eqn.params
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    lhs, rhs, out = [
        sizes.pad_type(v.aval).shape for v in (eqn.invars[0], eqn.invars[1], eqn.outvars[0])
    ]
    found = []
    for k, (low, high) in enumerate(params["padding"]):
        if type(high) is int and not is_padded(eqn.invars[0].aval, lhs_spec[2 + k]):
            found.append((low, high))
            continue
        n, window, count = lhs[lhs_spec[2 + k]], rhs[rhs_spec[2 + k]], out[out_spec[2 + k]]
        extent = (n - 1) * params["lhs_dilation"][k] + 1 if n else 0
        window = (window - 1) * params["rhs_dilation"][k] + 1
        found.append((low, (count - 1) * params["window_strides"][k] + window - extent - low))
    return tuple(found)


def pad_selection(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Run select-and-add with padding that is never selected and adds 0."""
    first, operand = ins
    avals = [a.aval for a in eqn.invars]
    lows = [pair[0] for pair in eqn.params["padding"]]
    if any(type(n) is not int for n in lows):
        raise refusal(eqn, "padding in front must have a known size")
    worst = window.worst_value(eqn.params["select_prim"], avals[1].dtype)
    operand = sizes.mask(operand, avals[1], range(avals[1].ndim), worst)
    first = sizes.mask(first, avals[0], range(avals[0].ndim), 0)
    return apply_padded(eqn, sizes, [first, operand])


RULES: dict[type, Rule] = {
    Iota: pad_iota,
    Cumulative: pad_cumulative,
    ArgExtremum: pad_arg_extremum,
    Sort: pad_sort,
    Partition: pad_partition,
    TopK: pad_top_k,
    FindPlaces: pad_find_places,
    Reduce: pad_reduce,
    FFT: pad_fft,
    BitcastConvertType: pad_bitcast,
    OptimizationBarrier: apply_padded,
    RandomBits: pad_random,
    RandomSplit: pad_random,
    indexing.Gather: pad_gather,
    indexing.Scatter: pad_scatter,
    ConvGeneralDilated: pad_convolution,
    window.SelectAndGatherAdd: pad_selection,
    window.SelectAndScatterAdd: pad_selection,
}
