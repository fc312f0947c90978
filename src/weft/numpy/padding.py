"""`pad`, with all of NumPy's modes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.api.vmap import vmap
from weft.core.trace import Tracer
from weft.errors import ShapeError, TracerArrayConversionError
from weft.numpy import elementwise, reductions
from weft.numpy.creation import asarray_beside, blend_integers
from weft.numpy.manipulation import moveaxis
from weft.numpy.promotion import as_array, axis_of
from weft.numpy.sorting import sort
from weft.primitives import layout, slicing
from weft.primitives.dynamic_slicing import dynamic_update_slice
from weft.primitives.elementwise import add, bitwise_and, convert, mul, ne, select, sub
from weft.primitives.layout import literal
from weft.pytrees import flatten, unflatten
from weft.run.operation import operation
from weft.util import SymbolicSize, as_size, min_size
from weft.xla.typing import Array, ArrayLike

Widths = tuple[tuple[int, int], ...]

# The keywords of each mode, with their defaults.
KEYWORDS: dict[str, dict[str, Any]] = {
    "constant": {"constant_values": 0}, "edge": {}, "empty": {}, "linear_ramp": {"end_values": 0},
    "maximum": {"stat_length": None}, "mean": {"stat_length": None},
    "median": {"stat_length": None}, "minimum": {"stat_length": None},
    "reflect": {"reflect_type": "even"}, "symmetric": {"reflect_type": "even"}, "wrap": {},
}  # fmt: skip


def median(x: Any, axis: int, keepdims: bool) -> Any:
    """The middle of the elements along an axis, NaN if one is."""
    x = sort(x if dtypes.is_inexact(x.dtype) else convert(x, dtypes.default_float()), axis)
    n = x.shape[axis]
    low, high, last = (
        slicing.slice_in_dim(x, i, i + 1, 1, axis) for i in ((n - 1) // 2, n // 2, n - 1)
    )
    wide = reductions.widen_dtype(x.dtype)
    middle = mul(add(convert(low, wide), convert(high, wide)), literal(0.5, wide))
    return select(ne(last, last), last, convert(middle, x.dtype))


STATISTICS: dict[str, Callable] = {
    "maximum": reductions.max,
    "mean": reductions.mean,
    "median": median,
    "minimum": reductions.min,
}


def pad(
    array: ArrayLike,
    pad_width: ArrayLike | Sequence[Any],
    mode: str | Callable = "constant",
    **kwargs: Any,
) -> Array:
    """Add elements to an array before and after each axis.

    The modes decide the new elements. "constant": `constant_values`. "edge": the nearest element.
    "reflect": the elements mirrored at the edge element, which is not repeated. "symmetric": the
    elements mirrored at the edge, with the edge element repeated. "wrap": the elements from the
    other end. "linear_ramp": numbers that go evenly from the edge element to `end_values`.
    "maximum", "mean", "median" and "minimum": this statistic of the elements along the axis.
    "empty": zeros; in NumPy the elements are arbitrary. Several axes are padded one after another.
    Under `jit`, `pad_width`, `mode`, `stat_length` and `reflect_type` must be static.

    Args:
      array: an array or scalar of any shape and dtype.
      pad_width: the numbers of new elements, which are not negative: an int for all sides, a pair
        of ints (before, after) for all axes, a sequence of one pair for each axis, or a dict from
        axes to ints or pairs, where other axes are not padded.
      mode: one of these names, or a function `fun(vector, pair, axis, kwargs)`. It is called for
        each axis and each vector along it, which is padded with zeros already, and returns the new
        vector. The keyword arguments are passed to it as a dict. The default is "constant".
      **kwargs: the keyword argument of the mode. `constant_values` and `end_values`: a scalar, a
        pair, or a pair for each axis; the default is 0. `stat_length`: the number of elements next
        to the edge that count, in the form of `pad_width`; by default all. `reflect_type`: "even",
        the default, or "odd", for "reflect" and "symmetric"; odd values are twice the edge element
        minus the mirrored element.

    Returns:
      an array of the dtype of `array`; each size grows by the numbers of new elements.

    Raises:
      ShapeError: if `pad_width` is negative or has another form, if an axis without elements is
        padded in a mode that needs them, or `stat_length` is not positive.
      ValueError: if the mode does not take a keyword argument.
      NotImplementedError: if the mode is unknown.
      TracerArrayConversionError: if `pad_width` is traced.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.array([1, 2, 3])
    >>> jnp.pad(x, (1, 2), constant_values=9)
    Array([9, 1, 2, 3, 9, 9], dtype=int32)
    >>> jnp.pad(x, (2, 1), mode="reflect")
    Array([3, 2, 1, 2, 3, 2], dtype=int32)
    >>> jnp.pad(x, 2, mode="symmetric")
    Array([2, 1, 1, 2, 3, 3, 2], dtype=int32)
    >>> jnp.pad(x, 2, mode="wrap")
    Array([2, 3, 1, 2, 3, 1, 2], dtype=int32)
    >>> jnp.pad(x, 2, mode="reflect", reflect_type="odd")
    Array([-1,  0,  1,  2,  3,  4,  5], dtype=int32)
    >>> jnp.pad(jnp.ones((1, 2)), {1: (0, 1)})
    Array([[1., 1., 0.]], dtype=float32)
    >>> def mark(vector, pair, axis, kwargs):
    ...     return vector.at[: pair[0]].set(kwargs["value"])
    >>> jnp.pad(x, 1, mode=mark, value=7)
    Array([7, 1, 2, 3, 0], dtype=int32)
    """
    if callable(mode):
        x = as_array(array, "pad")
        return pad_by_function(x, read_widths(pad_width, x.ndim), mode, kwargs)
    return pad_by_name(array, pad_width, mode, **kwargs)


@operation(static=("pad_width", "mode", "reflect_type", "stat_length"))
def pad_by_name(array: Any, pad_width: Any, mode: str, **kwargs: Any) -> Any:
    """`pad` in a mode that has a name."""
    x = as_array(array, "pad")
    widths = read_widths(pad_width, x.ndim)
    if not isinstance(mode, str) or mode not in KEYWORDS:
        raise NotImplementedError(f"pad: mode must be one of {', '.join(KEYWORDS)}; got {mode!r}.")
    unknown = set(kwargs) - set(KEYWORDS[mode])
    if unknown:
        raise ValueError(
            f"pad: mode {mode!r} takes {', '.join(KEYWORDS[mode]) or 'no keywords'}; "
            f"got {', '.join(sorted(unknown))}."
        )
    options = {**KEYWORDS[mode], **kwargs}
    if mode in ("constant", "linear_ramp"):
        return pad_with_values(x, read_pairs(options.popitem()[1], x.ndim, x), widths, mode)
    if mode in STATISTICS:
        lengths = options["stat_length"]
        if lengths is not None:
            lengths = read_widths(lengths, x.ndim)
            if any(n < 1 for pair in lengths for n in pair):
                raise ShapeError(f"pad: stat_length must be positive; got {lengths}.")
        return pad_by_statistic(x, widths, mode, lengths)
    if mode == "empty":
        return pad_with_values(x, [[literal(False, x.dtype)] * 2] * x.ndim, widths, "constant")
    empty = [i for i, n in enumerate(x.shape) if n == 0 and widths[i] != (0, 0)]
    if empty:
        raise ShapeError(f"pad: mode {mode!r} needs elements on axis {empty[0]}; got {x.aval}.")
    return pad_by_elements(x, widths, mode, options.get("reflect_type", "even") == "odd")


def read_widths(given: Any, ndim: int) -> Widths:
    """A pair of numbers for each axis."""
    if isinstance(given, dict):
        rows = [(0, 0)] * ndim
        for axis, row in given.items():
            rows[axis_of("pad", axis, ndim)] = row if isinstance(row, tuple | list) else (row, row)
        given = rows
    if isinstance(given, Tracer):
        given = given.concrete(TracerArrayConversionError, "pad", "a tuple of numbers is static.")
    leaves, tree = flatten(given)
    symbolic = any(isinstance(n, SymbolicSize) for n in leaves)
    try:
        # NumPy makes no array of symbolic sizes, so it broadcasts their numbers.
        rows = unflatten(tree, range(len(leaves))) if symbolic else given
        pairs = np.broadcast_to(np.asarray(rows), (ndim, 2)).tolist()
        sizes = [[as_size(leaves[n] if symbolic else n) for n in pair] for pair in pairs]
        out = tuple([(before, after) for before, after in sizes])
    except (TypeError, ValueError):
        raise ShapeError(
            "pad: pad_width must be a whole number, a pair, or a pair for each axis; "
            f"got {given!r}."
        ) from None
    if any(n < 0 for pair in out for n in pair):
        raise ShapeError(f"pad: pad_width must not be negative; got {given!r}.")
    return out


def read_pairs(values: Any, ndim: int, x: Any) -> list:
    """Read values before and after `x` for each axis: a scalar, a pair or a pair for each axis."""
    if not isinstance(values, list | tuple):
        values = asarray_beside(values, x)
        if not values.ndim:
            return [[values, values]] * ndim
        values = list(slicing.unstack(values))
    if len(values) == 1:
        return read_pairs(values[0], ndim, x)
    rows = [v if isinstance(v, list | tuple) else asarray_beside(v, x) for v in values]
    if len(rows) == 2 and all(not isinstance(r, list | tuple) and not r.ndim for r in rows):
        return [rows] * ndim
    if len(rows) != ndim:
        raise ShapeError(f"pad: there must be values for each of {ndim} axes; got {len(rows)}.")
    return [read_pairs(r, 1, x)[0] for r in rows]


def join_beside(x: Any, before: Any, after: Any, axis: int) -> Any:
    """`x` with arrays before and after it along an axis, those that have elements."""
    return slicing.concatenate([p for p in (before, x, after) if p.shape[axis]] or [x], axis)


def repeat_edge(edge: Any, axis: int, count: int) -> Any:
    """A slice of size 1 along an axis, `count` times."""
    shape = (*edge.shape[:axis], count, *edge.shape[axis + 1 :])
    return layout.broadcast_in_dim(edge, shape, range(edge.ndim))


def pad_with_values(x: Any, values: list, widths: Widths, mode: str) -> Any:
    """Padding with constants, or with ramps towards them."""
    if mode == "constant" and len({id(v) for row in values for v in row}) == 1:
        value = convert(values[0][0], x.dtype)
        return slicing.pad(x, value, [(*w, 0) for w in widths]) if any(map(any, widths)) else x
    values = [[convert(v, x.dtype) for v in row] for row in values]
    for axis, (before, after) in enumerate(widths):
        if mode == "linear_ramp":
            x = pad_with_ramp(x, values[axis], before, after, axis) if before or after else x
            continue
        for value, pair in zip(values[axis], ((before, 0), (0, after)), strict=True):
            config = [(*pair, 0) if i == axis else (0, 0, 0) for i in range(x.ndim)]
            x = slicing.pad(x, value, config) if any(pair) else x
    return x


def pad_with_ramp(x: Any, ends: Sequence[Any], before: int, after: int, axis: int) -> Any:
    """Padding along one axis with values that go evenly from the ends to the edges."""
    n = x.shape[axis]
    low = make_ramp(x, ends[0], before, 0, axis)
    high = make_ramp(x, ends[1], after, n - 1, axis)
    return join_beside(x, low, layout.rev(high, (axis,)), axis)


def make_ramp(x: Any, end: Any, count: int, at: int, axis: int) -> Any:
    """Return `count` values that go evenly from `end` to the elements at a place along an axis.

    Integers are rounded down, by division of integers: floats would round large ones.
    """
    whole = not dtypes.is_inexact(x.dtype)
    narrow = whole and dtypes.itemsize_bits(x.dtype) < 32
    dtype = np.dtype(np.int32) if narrow else reductions.widen_dtype(x.dtype)
    edge = convert(slicing.slice_in_dim(x, at, at + 1, 1, axis), dtype)
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    edge, first = repeat_edge(edge, axis, count), convert(end, dtype)
    first = layout.broadcast_in_dim(first, shape, ())
    steps = convert(layout.broadcasted_iota(np.int32, shape, axis), dtype)
    if not whole:
        share = mul(steps, literal(1 / max(count, 1), dtype))
        return convert(add(first, mul(sub(edge, first), share)), x.dtype)
    return convert(blend_integers(first, edge, steps, max(count, 1)), x.dtype)


def pad_by_statistic(x: Any, widths: Widths, mode: str, lengths: Widths | None) -> Any:
    """Padding with a statistic of the elements next to each side."""
    for axis, (before, after) in enumerate(widths):
        n = x.shape[axis]
        sizes = (n, n) if lengths is None else [min_size(k, n) for k in lengths[axis]]
        parts = []
        for count, start, stop in ((before, 0, sizes[0]), (after, n - sizes[1], n)):
            near = slicing.slice_in_dim(x, start, stop, 1, axis)
            parts.append(repeat_edge(summarize(near, mode, axis), axis, count))
        x = join_beside(x, *parts, axis)
    return x


def summarize(x: Any, mode: str, axis: int) -> Any:
    """Return a statistic along an axis, which stays, in the dtype of x; of integers rounded.

    Means and medians of integers are computed from the distances to the least, an even number, so
    that floats hold integers that are near each other.
    """
    if mode in ("maximum", "minimum") or dtypes.is_inexact(x.dtype):
        return convert(STATISTICS[mode](x, axis=axis, keepdims=True), x.dtype)
    if dtypes.is_bool(x.dtype) or dtypes.itemsize_bits(x.dtype) < 32:
        value = STATISTICS[mode](x, axis=axis, keepdims=True)
        return convert(elementwise.round(value), x.dtype)
    unsigned = np.dtype(f"uint{dtypes.itemsize_bits(x.dtype)}")
    least = convert(reductions.min(x, axis=axis, keepdims=True), unsigned)
    least = sub(least, bitwise_and(least, literal(1, unsigned)))
    near = sub(convert(x, unsigned), layout.broadcast_in_dim(least, x.shape, range(x.ndim)))
    value = elementwise.round(STATISTICS[mode](near, axis=axis, keepdims=True))
    return convert(add(least, convert(value, unsigned)), x.dtype)


def pad_by_elements(x: Any, widths: Widths, mode: str, odd: bool = False) -> Any:
    """Pad with elements of the array; NumPy's padding of element numbers says which.

    Runs of elements are written into the space that one `pad` makes. XLA:CPU takes ten times as
    long to concatenate pieces of an array, since it finds the piece for each element. A run is read
    from the array padded along the axes before; if it were read from the written array, XLA would
    copy all of it.
    """
    if odd:
        for axis, (n, pair) in enumerate(zip(x.shape, widths, strict=True)):
            for count in pair if n > 1 else ():
                x = layout.rev(extend_reflected(x, axis, count, n, mode), (axis,))
        widths = tuple([w if n == 1 else (0, 0) for w, n in zip(widths, x.shape, strict=True)])
    if not any(map(any, widths)):
        return x
    out = slicing.pad(x, literal(False, x.dtype), [(*pair, 0) for pair in widths])
    for axis, (before, after) in enumerate(widths):
        n = x.shape[axis]
        size = find_enough(n, before, after, mode)
        where = np.pad(np.arange(size), (before, after), mode)  # type: ignore[call-overload]
        ends = ((0, where[:before]), (before + n, where[before + size :]))
        for (at, part), far in zip(ends, (mode == "wrap", mode != "wrap"), strict=True):
            for first, count, step in find_runs(part):
                run = take_run(x, axis, first + (n - size) * far, count, step)
                run = pad_by_elements(run, (*widths[:axis], *[(0, 0)] * (x.ndim - axis)), mode)
                starts = [0] * axis, [at], [low for low, _ in widths[axis + 1 :]]
                out = dynamic_update_slice(out, run, [*itertools.chain(*starts)])
                at += count
    return out


def find_enough(size: Any, before: int, after: int, mode: str) -> int:
    """Return the size of an axis; for a symbolic size, the number of elements the padding uses.

    These are the first elements or, counted after the size, the last.
    """
    if not isinstance(size, SymbolicSize):
        return size
    needed = 1 if mode == "edge" else max(before, after) + (mode == "reflect")
    if not size >= needed:
        raise ShapeError(
            f"pad: mode {mode!r} must find {needed} elements on a symbolic axis; got {size}."
        )
    return needed


def find_runs(where: np.ndarray) -> list[tuple[int, int, int]]:
    """Indices as runs (first, count, step) with steps 1, -1 or 0."""
    out: list[tuple[int, int, int]] = []
    for i in where.tolist():
        if out:
            first, count, step = out[-1]
            ahead = i - (first + (count - 1) * step)
            if (count == 1 and ahead in (-1, 0, 1)) or (count > 1 and ahead == step):
                out[-1] = (first, count + 1, ahead)
                continue
        out.append((i, 1, 1))
    return out


def take_run(x: Any, axis: int, first: int, count: int, step: int) -> Any:
    """A run of elements along an axis."""
    if step == 0:
        return repeat_edge(slicing.slice_in_dim(x, first, first + 1, 1, axis), axis, count)
    low = first if step > 0 else first - count + 1
    part = slicing.slice_in_dim(x, low, low + count, 1, axis)
    return part if step > 0 else layout.rev(part, (axis,))


def extend_reflected(x: Any, axis: int, count: int, size: int, mode: str) -> Any:
    """`x` with elements before it: its first `size` reflected at the first, in place and value."""
    least = 1 if mode == "reflect" else 0  # whether the first element itself is left out
    size -= least
    while count:
        n = min(count, size)
        edge = slicing.slice_in_dim(x, 0, 1, 1, axis)
        part = layout.rev(slicing.slice_in_dim(x, least, least + n, 1, axis), (axis,))
        twice = repeat_edge(add(edge, edge), axis, n)
        x = slicing.concatenate([sub(twice, part), x], axis)
        count -= n
    return x


def pad_by_function(x: Any, widths: Widths, function: Callable, kwargs: dict) -> Any:
    """Padding by a user's function of a vector, its widths, its axis and kwargs."""
    x = pad_with_values(x, [[literal(False, x.dtype)] * 2] * x.ndim, widths, "constant")
    for axis, pair in enumerate(widths):

        def along(vector: Any, axis: int = axis, pair: tuple[int, int] = pair) -> Any:
            return function(vector, pair, axis, kwargs)

        moved = moveaxis(x, axis, -1)
        rows = layout.reshape(moved, (moved.size // moved.shape[-1], moved.shape[-1]))
        x = moveaxis(layout.reshape(vmap(along)(rows), moved.shape), -1, axis)
    return x
