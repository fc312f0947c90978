"""Slices at places known only when the program runs: reading one, and replacing one.

Under batching with an index for each element they become gather and scatter, which are
indexing.py's; places known now are slicing.py's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.element import Operand, all_hold, choose, larger, smaller
from weft.core.facts import Cost, Elements
from weft.core.form import Form
from weft.core.primitive import Primitive, Zero
from weft.errors import DtypeError, ShapeError
from weft.options import config
from weft.primitives import families, indexing, layout
from weft.primitives.checks import check_inside
from weft.primitives.elementwise import add, convert, lt, select
from weft.primitives.slicing import lower_slice, stack, unstack
from weft.xla.hlo import i64s
from weft.xla.typing import Array, ArrayLike

MOST = np.iinfo(np.int32).max


def check_starts(op: str, x: ShapedArray, starts: Sequence[ShapedArray]) -> None:
    """Raise unless there is one scalar index for each axis, of one integer dtype."""
    listed = families.show_types(starts)
    if len(starts) != x.ndim or any(s.shape for s in starts):
        raise ShapeError(
            f"{op}: there must be one scalar index for each axis of x; got ({listed}) for {x}."
        )
    if len({s.dtype for s in starts}) > 1 or not all(dtypes.is_integer(s.dtype) for s in starts):
        raise DtypeError(f"{op}: indices must be integers of equal dtypes; got ({listed}).")


class DynamicSlice(families.LinearInFirst):
    """out = the slice of x of shape slice_sizes that starts at `starts`, one scalar for each axis.

    A slice that would reach out of x is moved back inside. Dtypes: x any; starts integers.
    Source: StableHLO, dynamic_slice.
    """

    name = "dynamic_slice"
    elements = Elements.MOVED
    cost = Cost.PART
    form = Form.SLICE
    label_axes = families.label_along

    def abstract_eval(self, x, *starts, slice_sizes):
        check_starts(self.name, x, starts)
        check_window(self.name, x, "slice_sizes", slice_sizes)
        return [ShapedArray(slice_sizes, x.dtype, x.weak_type)]

    def lower(self, hlo, x, *starts, slice_sizes):
        if slice_sizes == x.aval.shape:
            return [x]
        out = [ShapedArray(slice_sizes, x.aval.dtype)]
        sizes = i64s(slice_sizes)
        return hlo.op("stablehlo.dynamic_slice", [x, *starts], out, slice_sizes=sizes)

    def element(self, i, x, *starts, slice_sizes):
        return [x[[s + k for s, k in zip(clamp_starts(x, starts, slice_sizes), i, strict=True)]]]

    def transpose(self, cts, x, *starts, slice_sizes):
        placed = dynamic_update_slice_p.apply(layout.zeros(x.aval), cts[0], *starts)
        return [*placed, *[None] * len(starts)]

    def batch(self, axis, args, dims, *, slice_sizes):
        (x, *starts), (d, *start_dims) = args, dims
        if all(s is None for s in start_dims):
            starts = families.insert_item(starts, d, zero_like(starts))
            return self.apply(
                x, *starts, slice_sizes=families.insert_item(slice_sizes, d, axis.size)
            ), [d]
        axes = tuple(range(len(starts)))
        nums = indexing.GatherDimensionNumbers(
            offset_dims=axes, collapsed_slice_dims=(), start_index_map=axes
        )
        indices, index_dim = stack_starts(axis, starts, start_dims)
        return indexing.gather_p.batch(
            axis, (x, indices), (d, index_dim), dimension_numbers=nums, slice_sizes=slice_sizes,
            unique_indices=True, indices_are_sorted=True, mode=indexing.GatherScatterMode.CLIP,
            fill_value=None,
        )  # fmt: skip

    def checked(self, trace, args, params):
        check_starts_inside(trace, args[0], args[1:], params["slice_sizes"])
        return trace.apply(self, args, params)


dynamic_slice_p = DynamicSlice()


class DynamicUpdateSlice(Primitive):
    """x with the slice of update's shape that starts at `starts` replaced by `update`.

    A slice that would reach out of x is moved back inside. Dtypes: x and update equal; starts
    integers. Source: StableHLO, dynamic_update_slice.
    """

    name = "dynamic_update_slice"
    elements = Elements.PLACED
    cost = Cost.PART
    form = Form.UPDATE
    label_axes = families.label_along

    def abstract_eval(self, x, update, *starts):
        check_starts(self.name, x, starts)
        families.check_equal_dtypes(self.name, x, update)
        check_window(self.name, x, "update's shape", update.shape)
        return [x.strong()]

    def lower(self, hlo, x, update, *starts):
        if update.aval.shape == x.aval.shape:
            return [update]
        dtype = x.aval.dtype
        if dtypes.is_of_two_bits(dtype):
            x, update = (hlo.convert(v, dtypes.whole_byte_dtype(dtype)) for v in (x, update))
            return [hlo.convert(hlo.like("dynamic_update_slice", x, update, *starts)[0], dtype)]
        return hlo.like("dynamic_update_slice", x, update, *starts)

    def element(self, i, x, update, *starts):
        first = clamp_starts(x, starts, update.shape)
        index = [k - s for k, s in zip(i, first, strict=True)]
        inside = [c for k, n in zip(index, update.shape, strict=True) for c in (k >= 0, k < n)]
        return [choose(all_hold(inside), update[index], x[i])]

    def jvp(self, primals, tangents):
        outs = self.apply(*primals)
        moved = tangents[:2]
        if all(type(t) is Zero for t in moved):
            return outs, families.zero_tangents(outs)
        return outs, self.apply(*map(layout.instantiate, moved), *primals[2:])

    def transpose(self, cts, x, update, *starts):
        (ct,) = cts
        shape = typeof(update).shape
        dtype = typeof(ct).dtype
        x_ct = (
            self.apply(ct, layout.fill(shape, 0, dtype), *starts)[0]
            if families.is_linear(x)
            else None
        )
        update_ct = None
        if families.is_linear(update):
            (update_ct,) = dynamic_slice_p.apply(ct, *starts, slice_sizes=shape)
        return [x_ct, update_ct, *[None] * len(starts)]

    def batch(self, axis, args, dims):
        (x, update, *starts), (d, update_d, *start_dims) = args, dims
        if all(s is None for s in start_dims):
            x = layout.batched_at_front(x, d, axis.size)
            update = layout.batched_at_front(update, update_d, axis.size)
            return self.apply(x, update, zero_like(starts), *starts), [0]
        axes = tuple(range(len(starts)))
        indices, index_dim = stack_starts(axis, starts, start_dims)
        return indexing.scatter_p.batch(
            axis,
            (x, indices, update),
            (d, index_dim, update_d),
            dimension_numbers=indexing.ScatterDimensionNumbers(axes, (), axes),
            indices_are_sorted=True,
            unique_indices=True,
            mode=indexing.GatherScatterMode.CLIP,
            update_jaxpr=None,
            update_consts=(),
        )

    def find_part(self, eqn: Any) -> families.Part:
        x, update, *starts = eqn.invars
        return families.Part(x, update, starts)

    def checked(self, trace, args, params):
        check_starts_inside(trace, args[0], args[2:], typeof(args[1]).shape)
        return trace.apply(self, args, params)


dynamic_update_slice_p = DynamicUpdateSlice()


def clamp_starts(x: Operand, starts: Sequence[Operand], window: Sequence[int]) -> list[Any]:
    """Return, for an `element` rule, where a window starts that is moved inside of x."""
    sizes = zip(starts, x.shape, window, strict=True)
    return [smaller(larger(s[()], 0), n - m) for s, n, m in sizes]


def check_window(op: str, x: ShapedArray, what: str, sizes: Sequence[int]) -> None:
    """Raise unless a window of these sizes fits into `x`."""
    if len(sizes) != x.ndim or not all(0 <= m <= n for m, n in zip(sizes, x.shape, strict=True)):
        raise ShapeError(
            f"{op}: {what} must have a size for each axis of x, at most that of x; "
            f"got {tuple(sizes)} for {x}."
        )


def check_starts_inside(trace: Any, x: Any, starts: Sequence[Any], window: Sequence[int]) -> None:
    """Under checkify, look whether the slice at `starts` reaches out of `x`."""
    if starts:
        dtype = next((typeof(i).dtype for i in starts if type(i) is not int), np.dtype(np.int32))
        vector = stack([layout.fill((), i, dtype) if type(i) is int else i for i in starts], 0)
        trace.check_indices(typeof(x).shape, vector, window, range(len(starts)))


def stack_starts(axis: Any, starts: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, int]:
    """The mapped scalars `starts` as vectors of indices, and the mapped axis."""
    rows = [layout.batched_at_front(i, d, axis.size) for i, d in zip(starts, dims, strict=True)]
    return stack(rows, 1), 0


def zero_like(starts: Sequence[Any]) -> Any:
    """The index 0 in the dtype of the others."""
    return layout.literal(0, typeof(starts[0]).dtype) if starts else 0


def normalize_starts(
    op: str, x: Any, start_indices: Any, allow_negative: bool | Sequence[bool]
) -> list:
    """One index for each axis, in one dtype where only Python numbers differ, none negative."""
    shape = typeof(x).shape
    what = "a sequence of an index for each axis of x"
    if hasattr(start_indices, "aval"):
        if not start_indices.aval.shape:
            raise TypeError(f"{op}: start_indices must be {what}; got {start_indices.aval}.")
        start_indices = unstack(start_indices)
    starts = families.check_parameter(op, "start_indices", start_indices, what, list)
    if len(starts) != len(shape):
        raise ShapeError(
            f"{op}: there must be one index for each axis of x; got {len(starts)} for {typeof(x)}."
        )
    if isinstance(allow_negative, bool):
        allow_negative = [allow_negative] * len(shape)
    elif not isinstance(allow_negative, tuple | list) or len(allow_negative) != len(shape):
        raise TypeError(
            f"{op}: allow_negative_indices must be a bool, or one for each axis of x; "
            f"got {allow_negative!r}."
        )
    starts = [
        normalize_start(op, i, n, wrap)
        for i, n, wrap in zip(starts, shape, allow_negative, strict=True)
    ]
    found = [typeof(i).dtype for i in starts if type(i) is not int]
    if any(is_long(n) for n in shape) and all(map(dtypes.is_integer, found)):
        found = [np.dtype(np.int64)]
        starts = [i if type(i) is int else convert(i, found[0]) for i in starts]
    return [layout.literal(i, found[0]) if type(i) is int and found else i for i in starts]


def is_long(size: Any) -> bool:
    """Return True for a size that an int32 does not hold; symbolic sizes are computed as such."""
    return type(size) is int and size > MOST


def index_dtype(dtype: np.dtype, size: int) -> np.dtype:
    """int32 or int64: what indices of a dtype into an axis of `size` are computed in."""
    return np.dtype(np.int64 if dtype.itemsize == 8 or is_long(size) else np.int32)


def widen_index(i: Any, dtype: np.dtype, size: int) -> tuple[Any, np.dtype]:
    """An index of a dtype, and its dtype, in one that holds `size` + i."""
    if dtype.itemsize < 4 or is_long(size):
        dtype = index_dtype(dtype, size)
        i = convert(i, dtype)
    return i, dtype


def normalize_start(op: str, i: Any, size: int, wrap: bool) -> Any:
    """An index into an axis of `size`, negative ones counted from its end if `wrap`."""
    if isinstance(i, int | np.integer):
        return int(i) + size if wrap and i < 0 else int(i)
    dtype = typeof(i, op).dtype
    if not dtypes.is_integer(dtype):
        return i  # the type rule raises the error
    i, dtype = widen_index(i, dtype, size)
    if not wrap or np.issubdtype(dtype, np.unsignedinteger):
        return i
    return select(lt(i, layout.literal(0, dtype)), add(i, layout.literal(size, dtype)), i)


def check_starts_option(op: str, x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> None:
    """Raise, now or when the program runs, where a slice reaches out of `x`."""
    aval = typeof(x)
    for d, (i, size) in enumerate(zip(starts, sizes, strict=False)):
        last = aval.shape[d] - size
        text = f"{op}: start must be in [0, {last}] on axis {d} of {aval}; got {{}}."
        check_inside(text, i, 0, last + 1)


def dynamic_slice(
    operand: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Return a slice of static size from a position that may be traced.

    The size must be known while the program is traced; the position need not. A slice that would
    reach out of the operand is moved inside, so positions are clamped and no error is raised. Under
    the option `check_bounds` "all" such a slice raises an error. The derivative adds the cotangent
    at the position that was read.

    Args:
      operand: an array of any dtype.
      start_indices: the position on each axis: a sequence of scalar integers, or an array of rank
        1. A negative position counts from the end.
      slice_sizes: the size of the slice on each axis, ints.
      allow_negative_indices: a bool, or one for each axis. If False, negative positions are not
        counted from the end but clamped to 0, which saves two operations. The default is True.

    Returns:
      An array of shape `slice_sizes` and the operand's dtype.

    Raises:
      DtypeError: the positions are not integers of one dtype.
      ShapeError: there is not one position for each axis; a size is larger than the operand's size.

    >>> print(lax.dynamic_slice(jnp.arange(10), (4,), (3,)))
    [4 5 6]
    >>> print(lax.dynamic_slice(jnp.arange(10), (9,), (3,)))  # moved inside
    [7 8 9]
    >>> window = weft.jit(lambda x, i: lax.dynamic_slice(x, (i,), (2,)))
    >>> print(window(jnp.arange(10), 3), window(jnp.arange(10), -2))
    [3 4] [8 9]
    """
    op, sizes = "dynamic_slice", families.index_tuple(slice_sizes, "dynamic_slice", "slice_sizes")
    starts = normalize_starts(op, operand, start_indices, allow_negative_indices)
    if config.check_bounds == "all":
        check_starts_option(op, operand, starts, sizes)
    return dynamic_slice_p.apply(operand, *starts, slice_sizes=sizes)[0]


def slice_clamped(x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> Any:
    """`dynamic_slice` at starts that are not negative, never checked."""
    starts = normalize_starts("dynamic_slice", x, starts, False)
    return dynamic_slice_p.apply(x, *starts, slice_sizes=tuple(sizes))[0]


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Return an array with a slice replaced, at a position that may be traced.

    The operand is not changed; in a compiled program the update is made in place where its memory
    may be reused. A slice that would reach out of the operand is moved inside. Under the option
    `check_bounds` "all" such a slice raises an error.

    Args:
      operand: an array of any dtype.
      update: an array of the same rank and dtype, on no axis larger than the operand.
      start_indices: the position on each axis: a sequence of scalar integers, or an array of rank
        1. A negative position counts from the end.
      allow_negative_indices: a bool, or one for each axis. If False, negative positions are clamped
        to 0. The default is True.

    Returns:
      An array of the shape and dtype of the operand.

    Raises:
      DtypeError: the update has another dtype.
      ShapeError: the update is larger than the operand.

    >>> print(lax.dynamic_update_slice(jnp.zeros(5), jnp.ones(2), (1,)))
    [0. 1. 1. 0. 0.]
    >>> print(lax.dynamic_update_slice(jnp.zeros(5), jnp.ones(2), (4,)))  # moved inside
    [0. 0. 0. 1. 1.]
    """
    op = "dynamic_update_slice"
    starts = normalize_starts(op, operand, start_indices, allow_negative_indices)
    if type(update) in dtypes.NUMBERS:
        update = layout.literal(update, typeof(operand, "dynamic_update_slice").dtype)
    if config.check_bounds == "all":
        check_starts_option(op, operand, starts, typeof(update, "dynamic_update_slice").shape)
    return dynamic_update_slice_p.apply(operand, update, *starts)[0]


def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Return a slice of static size along one axis, from a position that may be traced.

    The other axes are returned in full. The slice is moved inside the operand, as by
    `dynamic_slice`.

    Args:
      operand: an array of any dtype.
      start_index: the position, a scalar integer. A negative position counts from the end.
      slice_size: the size of the slice, an int.
      axis: the axis, an int. The default is the first.
      allow_negative_indices: if False, a negative position is clamped to 0. The default is True.

    Returns:
      An array of the operand's dtype.

    Raises:
      ShapeError: the size is larger than the operand's size.

    >>> print(lax.dynamic_slice_in_dim(jnp.arange(6).reshape(2, 3), 1, 2, axis=1))
    [[1 2]
     [4 5]]
    """
    shape = typeof(operand, "dynamic_slice_in_dim").shape
    axis = families.normalize_axis("dynamic_slice_in_dim", axis, len(shape))
    starts, sizes = [0] * len(shape), list(shape)
    starts[axis] = start_index
    sizes[axis] = families.check_integer("dynamic_slice_in_dim", "slice_size", slice_size)
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: ArrayLike,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Return the elements at one position of an axis. The position may be traced.

    A position outside the axis is clamped to its end, as by `dynamic_slice`.

    Args:
      operand: an array of any dtype.
      index: the position, a scalar integer. A negative position counts from the end.
      axis: the axis, an int. The default is the first.
      keepdims: if True, the default, the axis stays with size 1; otherwise it is removed.
      allow_negative_indices: if False, a negative position is clamped to 0. The default is True.

    Returns:
      An array of the operand's dtype.

    >>> x = jnp.arange(6).reshape(2, 3)
    >>> print(lax.dynamic_index_in_dim(x, 1, keepdims=False))
    [3 4 5]
    """
    out = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return out if keepdims else layout.squeeze(out, (axis,))


def dynamic_update_slice_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Return an array with a slice along one axis replaced, at a position that may be traced.

    On the other axes the update starts at 0. The slice is moved inside the operand, as by
    `dynamic_update_slice`.

    Args:
      operand: an array of any dtype.
      update: an array of the same rank and dtype, on no axis larger than the operand.
      start_index: the position, a scalar integer. A negative position counts from the end.
      axis: the axis, an int.
      allow_negative_indices: if False, a negative position is clamped to 0. The default is True.

    Returns:
      An array of the shape and dtype of the operand.

    >>> print(lax.dynamic_update_slice_in_dim(jnp.zeros((2, 3)), jnp.ones((2, 1)), 2, axis=1))
    [[0. 0. 1.]
     [0. 0. 1.]]
    """
    ndim = typeof(operand).ndim
    starts: list[Any] = [0] * ndim
    starts[families.normalize_axis("dynamic_update_slice_in_dim", axis, ndim)] = start_index
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Return an array with one position of an axis replaced. The position may be traced.

    Args:
      operand: an array of any dtype.
      update: an array of the same dtype, with or without the axis.
      index: the position, a scalar integer. A negative position counts from the end; a position
        outside the axis is clamped to its end.
      axis: the axis, an int.
      allow_negative_indices: if False, a negative position is clamped to 0. The default is True.

    Returns:
      An array of the shape and dtype of the operand.

    >>> print(lax.dynamic_update_index_in_dim(jnp.zeros((2, 3)), jnp.ones(2), 1, axis=1))
    [[0. 1. 0.]
     [0. 1. 0.]]
    """
    ndim = typeof(operand).ndim
    axis = families.normalize_axis("dynamic_update_index_in_dim", axis, ndim)
    if type(update) in dtypes.NUMBERS:
        update = layout.literal(update, typeof(operand).dtype)
    if typeof(update).ndim != ndim:
        update = layout.expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )


# --- rows of what a loop goes along, as text ------------------------------------------------------


def read_at(hlo: Any, x: Any, at: Any) -> Any:
    """The element of `x` at a place along its first axis."""
    shape = x.aval.shape
    row = ShapedArray((1, *shape[1:]), x.aval.dtype)
    behind = (0,) * (len(shape) - 1)
    if isinstance(at, int):
        ones = (1,) * len(shape)
        y = lower_slice(hlo, x, (at, *behind), (at + 1, *shape[1:]), ones, row)
    else:
        starts = [at, *[hlo.constant(0, at.aval)] * len(behind)]
        (y,) = hlo.op("stablehlo.dynamic_slice", [x, *starts], [row], slice_sizes=i64s(row.shape))
    return hlo.op("stablehlo.reshape", [y], [ShapedArray(shape[1:], row.dtype)])[0]


def write_at(hlo: Any, stack: Any, y: Any, at: Any) -> Any:
    """`stack` with `y` at a place along its first axis."""
    index = ShapedArray((), np.dtype(np.int32))
    at = hlo.constant(at, index) if isinstance(at, int) else at
    starts = [at, *[hlo.constant(0, index)] * (stack.aval.ndim - 1)]
    (row,) = hlo.op("stablehlo.reshape", [y], [ShapedArray((1, *y.aval.shape), y.aval.dtype)])
    return hlo.like("dynamic_update_slice", stack, row, *starts)[0]
