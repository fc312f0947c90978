"""Cutting arrays apart and putting them together at static places.

Places known only when the program runs are dynamic_slicing.py's and indexing.py's; negative steps,
newaxis and what else NumPy's subscripts say is numpy/'s.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.element import choose
from weft.core.facts import Cost, Elements
from weft.core.form import Form
from weft.core.jaxpr import Literal
from weft.core.primitive import Axes
from weft.errors import IndexingError, ShapeError
from weft.primitives import families, layout
from weft.primitives.elementwise import select
from weft.primitives.expr import Expr, concatenate_exprs
from weft.util import max_size
from weft.xla.hlo import i64s
from weft.xla.typing import Array, ArrayLike

# --- static places --------------------------------------------------------------------------


def lower_slice(hlo: Any, x: Any, starts: Any, limits: Any, strides: Any, out: ShapedArray) -> Any:
    """Write one static slice of `x`."""
    if out.shape == x.aval.shape:
        return x
    return hlo.op(
        "stablehlo.slice",
        [x],
        [out],
        start_indices=i64s(starts),
        limit_indices=i64s(limits),
        strides=i64s(strides or (1,) * len(out.shape)),
    )[0]


def pad_around(size: Any, start: Any, count: Any, step: int) -> tuple:
    """Return the padding that puts a slice of `count` elements back into an axis of this size.

    The count may be symbolic, and 0.
    """
    covered = count + max_size(count - 1, 0) * (step - 1)
    return start, size - start - covered, step - 1


class Slice(families.LinearPrimitive):
    """out[i] = x[start_indices + i * strides], up to limit_indices. strides None is all ones.

    Shapes: axis k has ceil((limit_k - start_k) / stride_k) elements; 0 <= start <= limit <= size.
    Dtypes: any. Source: StableHLO, slice.
    """

    name = "slice"
    elements = Elements.MOVED
    cost = Cost.FREE
    label_axes = families.label_together

    def abstract_eval(self, x, *, start_indices, limit_indices, strides):
        steps = (1,) * x.ndim if strides is None else strides
        if not len(start_indices) == len(limit_indices) == len(steps) == x.ndim:
            raise ShapeError(
                f"{self.name}: start_indices, limit_indices and strides must have one entry for "
                f"each axis of x; got {start_indices}, {limit_indices}, {strides} for {x}."
            )
        bounds = list(zip(start_indices, limit_indices, x.shape, strict=True))
        if not all(0 <= a <= b <= n for a, b, n in bounds) or not all(s > 0 for s in steps):
            raise ShapeError(
                f"{self.name}: on each axis it must hold that 0 <= start <= limit <= size and "
                f"stride > 0; got start_indices {start_indices}, limit_indices {limit_indices}, "
                f"strides {strides} for {x}."
            )
        shape = [(b - a + s - 1) // s for (a, b, _), s in zip(bounds, steps, strict=True)]
        return [ShapedArray(shape, x.dtype, x.weak_type)]

    def lower(self, hlo, x, *, start_indices, limit_indices, strides):
        (out,) = self.type_of(
            (x.aval,),
            {"start_indices": start_indices, "limit_indices": limit_indices, "strides": strides},
        )
        return [lower_slice(hlo, x, start_indices, limit_indices, strides, out)]

    def element(self, i, x, *, start_indices, limit_indices, strides):
        steps = strides or (1,) * x.ndim
        return [x[[k * s + a for k, a, s in zip(i, start_indices, steps, strict=True)]]]

    def transpose(self, cts, x, *, start_indices, limit_indices, strides):
        (ct,) = cts
        steps = strides or (1,) * len(start_indices)
        config = [*map(pad_around, x.aval.shape, start_indices, typeof(ct).shape, steps)]
        return [pad(ct, layout.literal(0, x.aval.dtype), config)]

    def batch(self, axis, args, dims, *, start_indices, limit_indices, strides):
        (d,) = dims
        out = self.apply(
            args[0],
            start_indices=families.insert_item(start_indices, d, 0),
            limit_indices=families.insert_item(limit_indices, d, axis.size),
            strides=None if strides is None else families.insert_item(strides, d, 1),
        )
        return out, [d]


slice_p = Slice()


def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """Return the part of an array between two corners.

    It is `operand[start:limit:stride]` for every axis, with bounds that are checked: unlike in
    NumPy, a bound outside the array is an error, and negative bounds do not count from the end.

    Args:
      operand: an array of any dtype.
      start_indices: the first position on each axis, ints known while the program is traced.
      limit_indices: the end on each axis, which is not included.
      strides: the step on each axis, ints >= 1. By default all steps are 1.

    Returns:
      An array of the operand's dtype. Its size on an axis is ceil((limit - start) / stride).

    Raises:
      ShapeError: a bound is outside the array, a stride is not positive, or there is not one entry
        for each axis.

    >>> print(lax.slice(jnp.arange(6).reshape(2, 3), (0, 0), (2, 3), (1, 2)))
    [[0 2]
     [3 5]]
    """
    return slice_p.apply(
        operand,
        start_indices=families.index_tuple(start_indices, "slice", "start_indices"),
        limit_indices=families.index_tuple(limit_indices, "slice", "limit_indices"),
        strides=None if strides is None else families.index_tuple(strides, "slice", "strides"),
    )[0]


def slice_in_dim(
    operand: ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """Return the part of an array between two positions on one axis.

    Args:
      operand: an array of any dtype.
      start_index: the first position, an int; None is the start of the axis. A negative position
        counts from the end.
      limit_index: the end, which is not included; None is the end of the axis.
      stride: the step, an int >= 1. The default is 1.
      axis: the axis, an int. The default is the first.

    Returns:
      An array of the operand's dtype; the other axes are unchanged.

    Raises:
      ShapeError: a bound is outside the array, or the array does not have the axis.

    >>> print(lax.slice_in_dim(jnp.arange(5), 1, None, 2))
    [1 3]
    >>> print(lax.slice_in_dim(jnp.arange(5), -2, None))
    [3 4]
    """
    shape = typeof(operand, "slice_in_dim").shape
    op, check_integer = "slice_in_dim", families.check_integer
    axis = families.normalize_axis(op, axis, len(shape))
    n = shape[axis]
    start = 0 if start_index is None else check_integer(op, "start_index", start_index)
    limit = n if limit_index is None else check_integer(op, "limit_index", limit_index)
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis] = start + n if start < 0 else start
    limits[axis] = limit + n if limit < 0 else limit
    strides[axis] = check_integer(op, "stride", stride)
    return slice(operand, starts, limits, strides)


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """Return the elements at one position of an axis. The position is known while tracing.

    For a position that is traced use `dynamic_index_in_dim`.

    Args:
      operand: an array of any dtype.
      index: the position, an int. A negative position counts from the end.
      axis: the axis, an int. The default is the first.
      keepdims: if True, the default, the axis stays with size 1; otherwise it is removed.

    Returns:
      An array of the operand's dtype.

    Raises:
      IndexingError: the position is outside the axis.

    >>> print(lax.index_in_dim(jnp.arange(6).reshape(2, 3), -1, axis=1, keepdims=False))
    [2 5]
    """
    shape = typeof(operand, "index_in_dim").shape
    axis = families.normalize_axis("index_in_dim", axis, len(shape))
    n, index = shape[axis], families.check_integer("index_in_dim", "index", index)
    if not -n <= index < n:
        raise IndexingError(
            f"index_in_dim: index must be in [-{n}, {n}) on axis {axis} of {typeof(operand)}; "
            f"got {index}."
        )
    index %= n
    out = slice_in_dim(operand, index, index + 1, 1, axis)
    return out if keepdims else layout.squeeze(out, (axis,))


class Pad(layout.LinearTogether):
    """x with padding_value around (low, high) and between (interior) its elements, on each axis.

    Negative low or high cut away, after the interior padding. Shapes: padding_value is a scalar;
    axis k has low + high + n + max(n - 1, 0) * interior elements. Dtypes: any, equal.
    Source: StableHLO, pad.
    """

    name = "pad"
    elements = Elements.PLACED
    cost = Cost.JOIN
    form = Form.FRAME
    label_axes = families.label_together

    def abstract_eval(self, x, padding_value, *, padding_config):
        families.check_equal_dtypes(self.name, x, padding_value)
        if padding_value.shape or len(padding_config) != x.ndim:
            raise ShapeError(
                f"{self.name}: padding_value must be a scalar and padding_config have one "
                f"(low, high, interior) for each axis; got {x}, {padding_value}, {padding_config}."
            )
        shape = []
        for n, (low, high, interior) in zip(x.shape, padding_config, strict=True):
            size = low + high + n + (max_size(n - 1, 0) * interior if interior else 0)
            if interior < 0 or size < 0:
                raise ShapeError(
                    f"{self.name}: interior padding and the sizes that result must be >= 0; "
                    f"got {x}, padding_config {padding_config}."
                )
            shape.append(size)
        return [ShapedArray(shape, x.dtype, x.weak_type and padding_value.weak_type)]

    def lower(self, hlo, x, padding_value, *, padding_config):
        out = self.abstract_eval(x.aval, padding_value.aval, padding_config=padding_config)
        if not any(map(any, padding_config)):
            return [x]
        low, high, interior = zip(*padding_config, strict=True)
        return hlo.op(
            "stablehlo.pad",
            [x, padding_value],
            out,
            edge_padding_low=i64s(low),
            edge_padding_high=i64s(high),
            interior_padding=i64s(interior),
        )

    def element(self, i, x, padding_value, *, padding_config):
        places = [k - low for k, (low, _, _) in zip(i, padding_config, strict=True)]
        inside = [
            low == 0 and type(high) is int and high <= 0 and not n
            for low, high, n in padding_config
        ]
        steps = [None if s else n + 1 for s, (_, _, n) in zip(inside, padding_config, strict=True)]
        return [families.read_spread(x, places, steps, padding_value[()])]

    def transpose(self, cts, x, padding_value, *, padding_config):
        (ct,) = cts
        zero = layout.literal(0, typeof(ct).dtype)
        x_ct = value_ct = None
        if families.is_linear(x):
            back = pad(ct, zero, [(-low, -high, 0) for low, high, _ in padding_config])
            steps = [interior + 1 for _, _, interior in padding_config]
            x_ct = take_strided(back, steps)
        if families.is_linear(padding_value):
            # masked, not sum(ct) - sum(x_ct), which cancels
            padded = padding_mask(typeof(x), padding_config)
            shape = typeof(ct).shape
            value_ct = layout.reduce_sum(
                select(padded, ct, layout.fill(shape, 0, typeof(ct).dtype)), range(len(shape))
            )
        return [x_ct, value_ct]

    def find_part(self, eqn: Any) -> families.Part | None:
        x, value = eqn.invars
        config = eqn.params["padding_config"]
        if any(low < 0 or high < 0 or interior for low, high, interior in config):
            return None
        return families.Part(value, x, [Literal(low) for low, _, _ in config])

    def batch(self, axis, args, dims, *, padding_config):
        (x, value), (d, value_d) = args, dims
        if value_d is None:
            out = pad(x, value, families.insert_item(padding_config, d, (0, 0, 0)))
            return [out], [d]
        x = layout.batched_at_front(x, d, axis.size)
        aval = typeof(x)
        config = ((0, 0, 0), *padding_config)
        out = pad(x, layout.zeros(aval.update(shape=())), config)
        value = layout.broadcast_in_dim(value, typeof(out).shape, (0,))
        return [select(padding_mask(aval, config), value, out)], [0]


pad_p = Pad()


def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]
) -> Array:
    """Pad an array with a scalar, at its ends and between its elements.

    Args:
      operand: an array of any dtype.
      padding_value: a scalar of the same dtype, or a Python number.
      padding_config: a triple of ints (low, high, interior) for each axis: the number of elements
        before the first, after the last, and between any two. A negative low or high removes
        elements.

    Returns:
      An array of the operand's dtype. A size n becomes
      low + n + max(n - 1, 0) * interior + high.

    Raises:
      DtypeError: the padding value has another dtype.
      ShapeError: the interior padding or a size of the result is negative.

    >>> print(lax.pad(jnp.array([1, 2, 3]), 0, [(1, 2, 0)]))
    [0 1 2 3 0 0]
    >>> print(lax.pad(jnp.array([1, 2, 3]), 0, [(0, 0, 1)]))
    [1 0 2 0 3]
    >>> print(lax.pad(jnp.array([1, 2, 3]), 0, [(-1, 0, 0)]))
    [2 3]
    """
    if type(padding_value) in dtypes.NUMBERS:
        padding_value = layout.literal(padding_value, typeof(operand).dtype)

    def read(given: Any) -> tuple:
        rows = [families.index_tuple(row, "pad", "padding_config") for row in given]
        return tuple([(low, high, interior) for low, high, interior in rows])

    what = "(low, high, interior) for each axis"
    config = families.check_parameter("pad", "padding_config", padding_config, what, read)
    return pad_p.apply(operand, padding_value, padding_config=config)[0]


def padding_mask(aval: ShapedArray, config: Sequence[tuple[int, int, int]]) -> Any:
    """Return True for elements of an array like `aval`, padded by `config`, that are padding."""
    return pad(layout.fill(aval.shape, False, np.dtype(bool)), True, config)


def take_strided(x: Any, steps: Sequence[int]) -> Any:
    """Every steps[k]-th element along axis k."""
    if all(s == 1 for s in steps):
        return x
    shape = typeof(x).shape
    return slice(x, (0,) * len(shape), shape, steps)


# --- putting together and taking apart --------------------------------------------------------


class Concatenate(layout.LinearTogether):
    """The operands one after another along axis `dimension`.

    Shapes: equal but on that axis. Dtypes: any, equal. Source: StableHLO, concatenate.
    """

    name = "concatenate"
    elements = Elements.MOVED
    cost = Cost.JOIN
    form = Form.JOIN
    label_axes = families.label_together

    def abstract_eval(self, *avals, dimension):
        families.check_equal_dtypes(self.name, *avals)
        first = avals[0]
        families.check_axes(self.name, (dimension,), first.ndim)
        rest = {(a.ndim, *families.drop_axes(a.shape, (dimension,))) for a in avals}
        if len(rest) > 1:
            raise ShapeError(
                f"{self.name}: operands must have equal shapes but on axis {dimension}; "
                f"got {families.show_types(avals)}."
            )
        shape = list(first.shape)
        shape[dimension] = sum(a.shape[dimension] for a in avals)
        return [ShapedArray(shape, first.dtype, all(a.weak_type for a in avals))]

    def lower(self, hlo, *xs, dimension):
        return [concatenate_exprs([Expr(hlo, x) for x in xs], dimension).value]

    def element(self, i, *xs, dimension):
        ends, out = [*itertools.accumulate(x.shape[dimension] for x in xs)], None
        for x, end in reversed([*zip(xs, ends, strict=True)]):
            at = i[dimension] - (end - x.shape[dimension])
            part = x[(*i[:dimension], at, *i[dimension + 1 :])]
            out = part if out is None else choose(i[dimension] < end, part, out)
        return [out]

    def transpose(self, cts, *xs, dimension):
        (ct,) = cts
        sizes = [typeof(x).shape[dimension] for x in xs]
        ends = itertools.accumulate(sizes)
        return [
            slice_in_dim(ct, end - n, end, 1, dimension) if families.is_linear(x) else None
            for x, n, end in zip(xs, sizes, ends, strict=True)
        ]

    def batch(self, axis, args, dims, *, dimension):
        d = dims[0]
        if d is not None and all(other == d for other in dims):
            return self.apply(*args, dimension=dimension + (dimension >= d)), [d]
        args = [layout.batched_at_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)]
        return self.apply(*args, dimension=dimension + 1), [0]


concatenate_p = Concatenate()


def fill_to_power(x: Any, axis: int, value: float) -> Any:
    """Return an array with a number after an axis of symbolic size, up to the next power of 2.

    A comparison that depends on the size is an error, except where the program is one for sizes
    with the same answers.
    """
    n, size = typeof(x).shape[axis], 1
    while size < n:
        size *= 2
    config = [(0, 0, 0)] * typeof(x).ndim
    config[axis] = (0, size - n, 0)
    return pad(x, layout.literal(value, typeof(x).dtype), config)


def concatenate(operands: Any, dimension: int) -> Array:
    """Join arrays along an axis.

    Args:
      operands: a sequence of arrays of one dtype, equal in shape except on the axis. An array
        counts as the sequence of its rows.
      dimension: the axis, an int.

    Returns:
      An array of the same dtype. Its size on the axis is the sum of the sizes of the operands.

    Raises:
      DtypeError: the operands differ in dtype, or no operands are given.
      ShapeError: the operands differ in shape on another axis.

    >>> print(lax.concatenate([jnp.arange(2), jnp.arange(3)], 0))
    [0 1 0 1 2]
    """
    parts = (
        tuple(unstack(operands))
        if getattr(operands, "ndim", 0)
        else families.as_sequence("concatenate", "operands", operands)
    )
    dimension = families.check_integer("concatenate", "dimension", dimension)
    if len(parts) == 1 and typeof(parts[0]).ndim > dimension >= 0:
        return parts[0]
    return concatenate_p.apply(*parts, dimension=dimension)[0]


class Split(families.AlongAxis, families.LinearPrimitive):
    """Consecutive parts of x along `axis`, of the given sizes, which add up to the axis's."""

    name = "split"
    elements = Elements.MOVED
    cost = Cost.FREE
    multiple_results = True
    label_axes = families.label_together

    def abstract_eval(self, x, *, sizes, axis):
        families.check_axes(self.name, (axis,), x.ndim)
        if sum(sizes) != x.shape[axis] or any(n < 0 for n in sizes):
            raise ShapeError(
                f"{self.name}: sizes must be >= 0 and add up to the size of axis {axis}; "
                f"got sizes {sizes} for {x}."
            )
        shapes = [(*x.shape[:axis], n, *x.shape[axis + 1 :]) for n in sizes]
        return [ShapedArray(shape, x.dtype, x.weak_type) for shape in shapes]

    def lower(self, hlo, x, *, sizes, axis):
        whole, ends = Expr(hlo, x), itertools.accumulate(sizes)
        return [whole.slice_axis(e - n, e, axis).value for n, e in zip(sizes, ends, strict=True)]

    def element(self, i, x, *, sizes, axis):
        starts = itertools.accumulate((0, *sizes[:-1]))
        return [x[[k + start * (a == axis) for a, k in enumerate(i)]] for start in starts]

    def transpose(self, cts, x, *, sizes, axis):
        return [concatenate([layout.instantiate(ct) for ct in cts], axis)]


split_p = Split()


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Split an array along an axis into consecutive parts of given sizes.

    Args:
      operand: an array of any dtype.
      sizes: the sizes of the parts, ints >= 0 that add up to the size of the axis.
      axis: the axis, an int. The default is the first.

    Returns:
      A list of arrays of the operand's dtype.

    Raises:
      ShapeError: the sizes do not add up to the size of the axis.

    >>> a, b = lax.split(jnp.arange(5), [2, 3])
    >>> print(a, b)
    [0 1] [2 3 4]
    """
    axis = families.normalize_axis("split", axis, typeof(operand, "split").ndim)
    return split_p.apply(operand, sizes=families.index_tuple(sizes, "split", "sizes"), axis=axis)


class Stack(layout.LinearTogether):
    """The operands along a new axis. Shapes and dtypes: equal."""

    name = "stack"
    elements = Elements.MOVED
    cost = Cost.JOIN
    form = Form.STACK

    def abstract_eval(self, *avals, axis):
        families.check_equal_dtypes(self.name, *avals)
        families.check_equal_shapes(self.name, avals)
        shape = avals[0].shape
        families.check_axes(self.name, (axis,), len(shape) + 1)
        weak = all(a.weak_type for a in avals)
        return [ShapedArray(families.insert_item(shape, axis, len(avals)), avals[0].dtype, weak)]

    def label_axes(self, avals, outs, *, axis):
        row = range(avals[0].ndim)
        return Axes([row] * len(avals), [(*row[:axis], None, *row[axis:])])

    def lower(self, hlo, *xs, axis):
        row = families.insert_item(xs[0].aval.shape, axis, 1)
        return [concatenate_exprs([Expr(hlo, x).reshape(row) for x in xs], axis).value]

    def element(self, i, *xs, axis):
        *parts, out = [x[families.drop_axes(i, (axis,))] for x in xs]
        for k, part in reversed([*enumerate(parts)]):
            out = choose(i[axis] <= k, part, out)
        return [out]

    def transpose(self, cts, *xs, axis):
        rows = unstack(cts[0], axis)
        return [row if families.is_linear(x) else None for x, row in zip(xs, rows, strict=True)]

    def batch(self, mapped, args, dims, *, axis):
        args = [layout.batched_at_front(x, d, mapped.size) for x, d in zip(args, dims, strict=True)]
        return self.apply(*args, axis=axis + 1), [0]


stack_p = Stack()


def stack(operands: Sequence[Any], axis: int = 0) -> Array:
    """Join arrays of equal shape along a new axis.

    Args:
      operands: a sequence of arrays of one shape and one dtype.
      axis: the position of the new axis in the result, an int. The default is the first.

    Returns:
      An array of the same dtype with one more axis.

    Raises:
      ShapeError: the operands differ in shape.

    >>> print(lax.stack([jnp.arange(3), jnp.arange(3)], axis=1))
    [[0 0]
     [1 1]
     [2 2]]
    """
    operands = families.as_sequence("stack", "operands", operands)
    ndim = typeof(operands[0]).ndim if operands else 0
    return stack_p.apply(*operands, axis=families.normalize_axis("stack", axis, ndim + 1))[0]


class Unstack(families.LinearPrimitive):
    """The elements of x along `axis`, each without it."""

    name = "unstack"
    elements = Elements.MOVED
    cost = Cost.FREE
    multiple_results = True

    def abstract_eval(self, x, *, axis):
        families.check_axes(self.name, (axis,), x.ndim)
        row = ShapedArray(families.drop_axes(x.shape, (axis,)), x.dtype, x.weak_type)
        return [row] * x.shape[axis]

    def label_axes(self, avals, outs, *, axis):
        row = range(outs[0].ndim) if outs else ()
        return Axes([(*row[:axis], None, *row[axis:])], [row] * len(outs))

    def lower(self, hlo, x, *, axis):
        whole, row = Expr(hlo, x), families.drop_axes(x.aval.shape, (axis,))
        cuts = [whole.slice_axis(i, i + 1, axis) for i in range(x.aval.shape[axis])]
        return [y.reshape(row).value for y in cuts]

    def element(self, i, x, *, axis):
        return [x[families.insert_item(i, axis, k)] for k in range(x.shape[axis])]

    def transpose(self, cts, x, *, axis):
        return [stack([layout.instantiate(ct) for ct in cts], axis)]

    def batch(self, mapped, args, dims, *, axis):
        outs = self.apply(layout.move_to_front(args[0], dims[0]), axis=axis + 1)
        return outs, [0] * len(outs)


unstack_p = Unstack()


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Return the elements of an array along an axis as separate arrays.

    Args:
      x: an array of any dtype.
      axis: the axis, an int. The default is the first.

    Returns:
      A tuple of arrays without the axis, of the dtype of x.

    >>> a, b = lax.unstack(jnp.arange(6).reshape(2, 3))
    >>> print(a, b)
    [0 1 2] [3 4 5]
    """
    return tuple(
        unstack_p.apply(x, axis=families.normalize_axis("unstack", axis, typeof(x, "unstack").ndim))
    )


class Tile(families.LinearPrimitive):
    """x repeated reps[k] times along axis k."""

    name = "tile"
    elements = Elements.MOVED
    cost = Cost.JOIN
    form = Form.TILE

    def abstract_eval(self, x, *, reps):
        if len(reps) != x.ndim or any(r < 0 for r in reps):
            raise ShapeError(
                f"{self.name}: reps must have one entry >= 0 for each axis; got {reps} for {x}."
            )
        shape = [n * r for n, r in zip(x.shape, reps, strict=True)]
        return [ShapedArray(shape, x.dtype, x.weak_type)]

    def label_axes(self, avals, outs, *, reps):
        rank, more = avals[0].ndim, outs[0].ndim - avals[0].ndim
        row = [i + more if reps[i + more] == 1 else None for i in range(rank)]
        return Axes([row], [range(outs[0].ndim)])

    def lower(self, hlo, x, *, reps):
        shape = [n * r for n, r in zip(x.aval.shape, reps, strict=True)]
        dims = range(1, 2 * len(reps), 2)
        return [Expr(hlo, x).broadcast(tiled_shape(x.aval.shape, reps), dims).reshape(shape).value]

    def element(self, i, x, *, reps):
        axes = zip(i, x.shape, reps, strict=True)
        return [x[[k if r == 1 else k % n for k, n, r in axes]]]

    def transpose(self, cts, x, *, reps):
        wide = layout.reshape(cts[0], tiled_shape(x.aval.shape, reps))
        return [layout.reduce_sum(wide, range(0, 2 * len(reps), 2))]

    def batch(self, axis, args, dims, *, reps):
        (d,) = dims
        return self.apply(args[0], reps=families.insert_item(reps, d, 1)), [d]


tile_p = Tile()


def tiled_shape(shape: Sequence[int], reps: Sequence[int]) -> tuple[int, ...]:
    """(reps[0], shape[0], reps[1], shape[1], ...)."""
    return tuple(n for pair in zip(reps, shape, strict=True) for n in pair)


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeat an array along its axes.

    Args:
      operand: an array of any dtype.
      reps: the number of copies along each axis, ints >= 0. Unlike in `jnp.tile` there must be one
        for each axis.

    Returns:
      An array of the operand's dtype. Its size on axis k is `reps[k]` times the operand's size.

    Raises:
      ShapeError: there is not one entry >= 0 for each axis.

    >>> print(lax.tile(jnp.array([[1, 2]]), (2, 2)))
    [[1 2 1 2]
     [1 2 1 2]]
    """
    return tile_p.apply(operand, reps=families.index_tuple(reps, "tile", "reps"))[0]
