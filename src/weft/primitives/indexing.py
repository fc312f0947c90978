"""Gather and the scatter family: windows of an array, read or written at places from an array.

They are each other's transposes. numpy/ implements NumPy's subscripts and `.at` with them;
dynamic_slicing.py has slices at a single dynamic place.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.element import Number, all_hold, choose, larger, smaller
from weft.core.facts import Cost, Elements
from weft.core.form import Form
from weft.core.jaxpr import Jaxpr
from weft.core.primitive import Axes, Primitive, Zero
from weft.errors import DtypeError, MissingRule, ShapeError
from weft.primitives import elementwise, families, layout
from weft.primitives.constant import stage_whole
from weft.primitives.expr import Expr, scalar
from weft.primitives.reshard import compute_freely, sharding_of_cotangent
from weft.primitives.slicing import stack
from weft.primitives.tokens import keep_p
from weft.util import has_symbolic_size, min_size, name_function
from weft.xla.hlo import bool_text, i64s
from weft.xla.lower import lower_jaxpr
from weft.xla.typing import Array, ArrayLike


class GatherDimensionNumbers(NamedTuple):
    """The correspondence between the axes of the operand, the indices and the result of a gather.

    The last axis of the indices holds index vectors. Each of them is the start of a window of the
    operand.

    Args:
      offset_dims: the axes of the result that are axes of a window, in order.
      collapsed_slice_dims: the axes of the operand whose windows have size 1 and which the result
        lacks.
      start_index_map: entry k of an index vector is a position on axis `start_index_map[k]` of the
        operand.
      operand_batching_dims: axes of the operand that go together with axes of the indices. Their
        windows have size 1. The default is none.
      start_indices_batching_dims: the axes of the indices that go with `operand_batching_dims`, in
        the same order.

    >>> rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> print(lax.gather(jnp.arange(6).reshape(3, 2), jnp.array([[2], [0]]), rows, (1, 2)))
    [[4 5]
     [0 1]]
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """The correspondence between the axes of the operand, the indices and the updates of a scatter.

    The last axis of the indices holds index vectors. Each index vector is the start of a window of
    the operand. A window of the updates is written there.

    Args:
      update_window_dims: the axes of the updates that are axes of a window, in order.
      inserted_window_dims: the axes of the operand on which windows have size 1, and which the
        updates lack.
      scatter_dims_to_operand_dims: entry k of an index vector is a position on axis
        `scatter_dims_to_operand_dims[k]` of the operand.
      operand_batching_dims: axes of the operand that correspond to batch axes of the indices. Their
        windows have size 1. The default is none.
      scatter_indices_batching_dims: the axes of the indices that correspond to
        `operand_batching_dims`, in the same order.

    >>> rows = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    >>> print(lax.scatter_add(jnp.zeros((3, 2)), jnp.array([[2], [0]]), jnp.ones((2, 2)), rows))
    [[1. 1.]
     [0. 0.]
     [1. 1.]]
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


class GatherScatterMode(enum.Enum):
    """The treatment of windows that reach out of the operand, in gathers and scatters.

    Functions take a member, or its name in lower case such as "clip", as `mode`. "fill" and "drop"
    both name FILL_OR_DROP.

    Attributes:
      CLIP: such a window is moved inside.
      FILL_OR_DROP: a gather reads the fill value, and a scatter drops the update.
      PROMISE_IN_BOUNDS: the caller promises that all are inside, and nothing is checked.
      ONE_HOT: a gather reads zeros, and a scatter drops the update.

    >>> print(jnp.arange(3).at[5].get(mode="fill", fill_value=-1))
    -1
    >>> print(jnp.arange(3).at[5].get(mode=lax.GatherScatterMode.CLIP))
    2
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()

    @staticmethod
    def from_any(s: Any) -> GatherScatterMode:
        """A mode from its name, itself, or None, which is FILL_OR_DROP."""
        if isinstance(s, GatherScatterMode):
            return s
        try:
            return _MODES[s]
        except (KeyError, TypeError):
            raise ValueError(
                "mode: must be 'clip', 'fill', 'drop', 'promise_in_bounds', 'one_hot' or a "
                f"GatherScatterMode; got {s!r}."
            ) from None


_CLIP, _FILL, _PROMISE, _ONE_HOT = GatherScatterMode
_MODES = {
    None: _FILL, "clip": _CLIP, "fill": _FILL, "drop": _FILL, "promise_in_bounds": _PROMISE,
    "one_hot": _ONE_HOT,
}  # fmt: skip


# --- what gather and scatter share ------------------------------------------------------------


def window_axes(ndim: int, collapsed: Sequence[int], batching: Sequence[int]) -> list[int]:
    """The operand's axes along which a window extends."""
    return [d for d in range(ndim) if d not in collapsed and d not in batching]


def is_ascending(dims: Sequence[int], stop: int) -> bool:
    """Return True if `dims` are distinct axes below `stop`, in order."""
    return all(a < b for a, b in zip((-1, *dims), (*dims, stop), strict=True))


def check_dims(op: str, x: ShapedArray, indices: ShapedArray, dims: Any, window_rank: int) -> None:
    """Raise unless dimension numbers of either kind fit operand and indices.

    `window_rank` is the number of window axes that the other array must have room for.
    """
    windows, collapsed, mapped, batching, index_batching = dims
    if not dtypes.is_integer(indices.dtype):
        raise DtypeError(f"{op}: indices must be integers; got {indices}.")
    if not indices.shape or indices.shape[-1] != len(mapped):
        raise ShapeError(
            f"{op}: the last axis of the indices must have one entry for each of "
            f"{dims._fields[2]}; got {indices} for {tuple(mapped)}."
        )
    ok = (
        is_ascending(collapsed, x.ndim)
        and is_ascending(batching, x.ndim)
        and is_ascending(windows, indices.ndim - 1 + window_rank)
        and len({*collapsed, *batching}) == len(collapsed) + len(batching)
        and len({*mapped, *batching}) == len(mapped) + len(batching)
        and all(0 <= d < x.ndim for d in mapped)
        and len(batching) == len(index_batching) == len(set(index_batching))
        and all(0 <= d < indices.ndim - 1 for d in index_batching)
        and len(windows) == x.ndim - len(collapsed) - len(batching)
    )
    if not ok:
        raise ShapeError(
            f"{op}: dimension_numbers must name distinct axes, in ascending order, and a window "
            f"axis for each axis of x that is neither dropped nor batching; "
            f"got {dims} for {x}, {indices}."
        )
    for d, i in zip(batching, index_batching, strict=True):
        if x.shape[d] != indices.shape[i]:
            raise ShapeError(
                f"{op}: batching axes of x and of the indices must have equal sizes; got axis {d} "
                f"of {x}, axis {i} of {indices}."
            )


def clamp_indices(
    hlo: Any, indices: Any, shape: Sequence[int], window: Sequence[int], mapped: Any
) -> Any:
    """Write the indices clamped so that each window is inside an operand of `shape`."""
    indices = Expr(hlo, indices)
    top = dtypes.iinfo(indices.dtype).max
    last = [min_size(shape[d] - window[d], top) for d in mapped]
    if has_symbolic_size(last):
        upper = Expr(hlo, hlo.convert(hlo.shape_value(last), indices.dtype))
    else:
        found = np.array(last, indices.dtype)
        upper = Expr(hlo, hlo.constant(found, ShapedArray(found.shape, found.dtype)))
    upper = upper.broadcast(indices.shape, [len(indices.shape) - 1])
    return indices.like(0).make("clamp", indices.aval, indices, upper).value


def lower_inside(hlo: Any, indices: Any, moved: Any) -> Expr:
    """Write which index vectors clamping left unchanged: those in bounds."""
    aval = indices.aval
    (same,) = elementwise.eq_p.lower(hlo, indices, moved)
    cell = ShapedArray((), bool)
    both = hlo.block([cell, cell], lambda a, b: hlo.like("and", a, b))
    out, dims = ShapedArray(aval.shape[:-1], bool), i64s([aval.ndim - 1])
    operands = [same, hlo.constant(True, cell)]
    return Expr(hlo, hlo.op("stablehlo.reduce", operands, [out], [both], dimensions=dims)[0])


def dims_text(kind: str, names: Sequence[str], dims: Sequence[Any], index_vector_dim: int) -> str:
    """Dimension numbers as an attribute."""
    rows = [f"{n} = {list(d)}" for n, d in zip(names, dims, strict=True) if d]
    return f"#stablehlo.{kind}<{', '.join([*rows, f'index_vector_dim = {index_vector_dim}'])}>"


# --- gather -----------------------------------------------------------------------------------


class Gather(Primitive):
    """out[b, w] = x[indices[b] + w]: windows of shape slice_sizes of x, one for each index vector.

    Shapes: see GatherDimensionNumbers. Dtypes: x any; indices integers. Windows that reach out of
    x are what `mode` says; fill_value is a number, or '-0.0' (a params' 0.0 would equal it).
    Source: StableHLO, gather.
    """

    name = "gather"
    elements = Elements.PLACED
    cost = Cost.LOOKUP

    def abstract_eval(self, x, indices, *, dimension_numbers, slice_sizes, **params):
        dims = dimension_numbers
        dropped = (*dims.collapsed_slice_dims, *dims.operand_batching_dims)
        if len(slice_sizes) != x.ndim or not all(
            0 <= m <= n for m, n in zip(slice_sizes, x.shape, strict=True)
        ):
            raise ShapeError(
                f"{self.name}: slice_sizes must have a size for each axis of x, at most that of x; "
                f"got {slice_sizes} for {x}."
            )
        check_dims(self.name, x, indices, dims, len(dims.offset_dims))
        if any(slice_sizes[d] > 1 for d in dropped):
            raise ShapeError(
                f"{self.name}: slice_sizes must be 1 on collapsed and batching axes; "
                f"got {slice_sizes} with {dims}."
            )
        kept = iter([n for d, n in enumerate(slice_sizes) if d not in dropped])
        batch = iter(indices.shape[:-1])
        rank = indices.ndim - 1 + len(dims.offset_dims)
        shape = [next(kept if d in dims.offset_dims else batch) for d in range(rank)]
        return [ShapedArray(shape, x.dtype, x.weak_type)]

    def label_axes(self, avals, outs, *, dimension_numbers, slice_sizes, **params):
        (x, indices), dims = avals, dimension_numbers
        windows = window_axes(x.ndim, dims.collapsed_slice_dims, dims.operand_batching_dims)
        rows = families.label_windows(x, indices, outs[0], dims, windows, slice_sizes)
        return Axes(*rows, hint="x.at[i].get(out_sharding=P(...))")

    def lower(self, hlo, x, indices, *, dimension_numbers, slice_sizes, **params):
        dims, mode = dimension_numbers, params["mode"]
        (out,) = self.abstract_eval(
            x.aval, indices.aval, dimension_numbers=dims, slice_sizes=slice_sizes
        )
        fill = 0 if mode is not _FILL else params["fill_value"]
        other = hlo.constant(float(fill) if isinstance(fill, str) else fill, out.strong())
        if not x.aval.size:
            return [other]
        names = dims._fields
        (found,) = hlo.op(
            "stablehlo.gather",
            [x, indices],
            [out.strong()],
            dimension_numbers=dims_text("gather", names, dims, indices.aval.ndim - 1),
            slice_sizes=i64s(slice_sizes),
            indices_are_sorted=bool_text(params["indices_are_sorted"]),
        )
        if mode in (_CLIP, _PROMISE):  # XLA clips
            return [found]
        moved = clamp_indices(hlo, indices, x.aval.shape, slice_sizes, dims.start_index_map)
        batch_dims = [d for d in range(out.ndim) if d not in dims.offset_dims]
        inside = lower_inside(hlo, indices, moved).broadcast(out.shape, batch_dims)
        return [inside.select(Expr(hlo, found), Expr(hlo, other)).value]

    def element(self, i, x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, **params):
        dims, clips = dimension_numbers, mode in (_CLIP, _PROMISE)
        fill = 0 if mode is not _FILL else float(fill_value) if fill_value == "-0.0" else fill_value
        if not x.size:
            return [Number(fill, x.dtype)]
        place = [k for d, k in enumerate(i) if d not in dims.offset_dims]
        start: list[Any] = [0] * x.ndim
        inside = []
        for k, d in enumerate(dims.start_index_map):
            at, last = indices[(*place, k)], x.shape[d] - slice_sizes[d]
            inside += [at >= 0, at <= last]
            start[d] = smaller(larger(at, 0), last) if clips else at
        for d, k in zip(dims.operand_batching_dims, dims.start_indices_batching_dims, strict=True):
            start[d] = place[k]
        windows = window_axes(x.ndim, dims.collapsed_slice_dims, dims.operand_batching_dims)
        for d, k in zip(windows, dims.offset_dims, strict=True):
            start[d] = start[d] + i[k]
        return [x[start] if clips else choose(all_hold(inside), x[start], Number(fill, x.dtype))]

    def jvp(self, primals, tangents, **params):
        outs = self.apply(*primals, **params)
        if type(tangents[0]) is Zero:
            return outs, families.zero_tangents(outs)
        fill = None if params["fill_value"] is None else 0
        return outs, self.apply(tangents[0], primals[1], **{**params, "fill_value": fill})

    def transpose(self, cts, x, indices, *, dimension_numbers, slice_sizes, fill_value, **params):
        dims, (ct,) = ScatterDimensionNumbers(*dimension_numbers), cts
        add = lambda *operands: scatter_add(*operands, dims, **params)
        how = {"dimension_numbers": dimension_numbers, "slice_sizes": slice_sizes}
        (row,) = self.label_axes((x.aval, typeof(indices)), (typeof(ct),), **how).results
        lies, to = typeof(ct).sharded, None
        if lies and any(type(d) is str and names for d, names in zip(row, lies.entries)):
            to = sharding_of_cotangent(x.aval, (ct,))  # the compiler sums what devices add up
        return [compute_freely(self.name, to, add, layout.zeros(x.aval), indices, ct), None]

    def batch(self, axis, args, dims, *, dimension_numbers, slice_sizes, **params):
        (x, indices), (d, index_d), nums = args, dims, dimension_numbers
        if index_d is None:
            return self.batch_operand(axis, x, indices, d, nums, slice_sizes, params)
        indices = layout.move_to_front(indices, index_d)
        offsets = families.shift_axes(nums.offset_dims)
        index_batching = families.shift_axes(nums.start_indices_batching_dims)
        if d is None:
            nums = nums._replace(offset_dims=offsets, start_indices_batching_dims=index_batching)
            params |= {"indices_are_sorted": False, "unique_indices": False}
        else:
            x = layout.move_to_front(x, d)
            nums = GatherDimensionNumbers(
                offsets,
                families.shift_axes(nums.collapsed_slice_dims),
                families.shift_axes(nums.start_index_map),
                (0, *families.shift_axes(nums.operand_batching_dims)),
                (0, *index_batching),
            )
            slice_sizes = (min_size(axis.size, 1), *slice_sizes)
        outs = self.apply(x, indices, dimension_numbers=nums, slice_sizes=slice_sizes, **params)
        return outs, [0]

    def batch_operand(self, axis, x, indices, d, nums, slice_sizes, params):
        """The mapped axis, where it is in x, is one more axis of every window."""
        windows = window_axes(
            typeof(x).ndim - 1, nums.collapsed_slice_dims, nums.operand_batching_dims
        )
        before = sum(w < d for w in windows)
        rank = typeof(indices).ndim - 1 + len(windows)
        at = nums.offset_dims[before] if before < len(windows) else rank
        nums = nums._replace(
            offset_dims=families.insert_item(families.shift_axes(nums.offset_dims, at), before, at),
            collapsed_slice_dims=families.shift_axes(nums.collapsed_slice_dims, d),
            start_index_map=families.shift_axes(nums.start_index_map, d),
            operand_batching_dims=families.shift_axes(nums.operand_batching_dims, d),
        )
        sizes = families.insert_item(slice_sizes, d, axis.size)
        outs = self.apply(x, indices, dimension_numbers=nums, slice_sizes=sizes, **params)
        return outs, [at]

    def checked(self, trace, args, params):
        axes = params["dimension_numbers"].start_index_map
        trace.check_indices(typeof(args[0]).shape, args[1], params["slice_sizes"], axes)
        return trace.apply(self, args, params)


gather_p = Gather()


def default_fill(dtype: np.dtype) -> Any:
    """Return a gather's value out of bounds: NaN, True, the smallest or largest integer."""
    if dtypes.is_inexact(dtype):
        return math.nan
    if dtypes.is_bool(dtype):
        return True
    info = dtypes.iinfo(dtype)
    return int(info.min if dtypes.is_signed(dtype) else info.max)


def fill_param(value: Any, dtype: np.dtype) -> Any:
    """Return a fill value as a parameter: a Python number, or a text for -0.0, which equals 0.0.

    An integer wraps, as in arrays. For integers NaN stands for the default fill value.
    """
    if value is None or (value != value and dtypes.is_integer(dtype)):
        return default_fill(dtype)
    number = value
    if not isinstance(value, dtypes.NUMBERS):
        read = lambda x: dtypes.cast_on_host(x, dtype).item()
        number = families.check_parameter("gather", "fill_value", value, "a number", read)
    if type(number) is int and dtypes.is_integer(dtype):
        return dtypes.wrap_int(number, dtype, "gather")
    if number != number and not isinstance(number, complex):
        return math.nan  # one object: NaN is not equal to itself
    return "-0.0" if str(number) == "-0.0" else number


def read_numbers(op: str, kind: Callable, given: Any) -> Any:
    """Dimension numbers, a tuple of their class or of tuples like its own."""

    def read(parts: Any) -> Any:
        return kind(*[families.index_tuple(axes, op, "dimension_numbers") for axes in parts])

    return families.check_parameter(op, "dimension_numbers", given, f"a {kind.__name__}", read)


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return windows of an array at positions that are given by an array of indices.

    It is the general form of indexing with integer arrays; `x[i, j]` and `jnp.take_along_axis` are
    written with it, and are easier to use. `dimension_numbers` say how the axes correspond.

    Args:
      operand: an array of any dtype.
      start_indices: an integer array whose last axis holds the position of a window, one index for
        each axis in `dimension_numbers.start_index_map`.
      dimension_numbers: a `GatherDimensionNumbers`.
      slice_sizes: the size of a window on each axis of the operand, ints.
      unique_indices: if True, the caller promises that no two windows overlap. The default is
        False.
      indices_are_sorted: if True, the caller promises that the positions are in ascending order.
        The default is False.
      mode: what happens to a window that reaches out of the operand. "clip" moves it inside. "fill"
        returns the fill value for it. "promise_in_bounds" promises that all are inside, and is
        the default; "one_hot" reads zeros. Under the option `check_bounds` "all" such a window
        raises an error if no mode is given.
      fill_value: a number for the mode "fill". The default is NaN for floats.

    Returns:
      An array of the operand's dtype: the axes of the indices except for the last, and the windows'
      axes at `dimension_numbers.offset_dims`.

    Raises:
      DtypeError: the indices are not integers.
      ShapeError: a window is larger than the operand.
      ValueError: the mode is another one.

    >>> x = jnp.array([10.0, 11.0, 12.0])
    >>> one = lax.GatherDimensionNumbers((), (0,), (0,))
    >>> print(lax.gather(x, jnp.array([[0], [2], [7]]), one, (1,), mode="fill"))
    [10. 12. nan]
    >>> pairs = lax.GatherDimensionNumbers((1,), (), (0,))
    >>> print(lax.gather(x, jnp.array([[0], [1]]), pairs, (2,)))
    [[10. 11.]
     [11. 12.]]
    """
    mode = _PROMISE if mode is None else GatherScatterMode.from_any(mode)
    fill = fill_param(fill_value, typeof(operand).physical.dtype) if mode is _FILL else None
    return gather_p.apply(
        operand,
        start_indices,
        dimension_numbers=read_numbers("gather", GatherDimensionNumbers, dimension_numbers),
        slice_sizes=families.index_tuple(slice_sizes, "gather", "slice_sizes"),
        unique_indices=bool(unique_indices),
        indices_are_sorted=bool(indices_are_sorted),
        mode=mode,
        fill_value=fill,
    )[0]


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """Return the elements of an array at positions on some of its axes.

    Args:
      src: an array of any dtype.
      idxs: a sequence of integer arrays of rank 1 and of one length n, one for each of `axes`. The
        positions are taken modulo the size of the axis.
      axes: the axes, ints.

    Returns:
      An array of shape (n, other axes) and the dtype of `src`.

    Raises:
      ValueError: there is not one array of positions for each axis.

    >>> x = jnp.arange(6).reshape(2, 3)
    >>> print(lax.index_take(x, [jnp.array([0, 1]), jnp.array([2, -1])], (0, 1)))
    [2 5]
    """
    shape = typeof(src, "index_take").shape
    idxs = families.as_sequence("index_take", "idxs", idxs)
    axes = families.index_tuple(axes, "index_take", "axes")
    if len(idxs) != len(axes):
        raise ValueError(
            f"index_take: idxs must be one for each of axes; got {len(idxs)} for {axes}."
        )
    families.check_axes("index_take", axes, len(shape))
    indices = stack([wrap_index(i, shape[a]) for i, a in zip(idxs, axes, strict=True)], 1)
    sizes = [1 if d in axes else n for d, n in enumerate(shape)]
    dims = GatherDimensionNumbers(
        offset_dims=tuple(range(1, len(shape) - len(axes) + 1)),
        collapsed_slice_dims=tuple(sorted(axes)),
        start_index_map=tuple(axes),
    )
    return gather(src, indices, dims, sizes)


def wrap_index(index: Any, size: int) -> Any:
    """index modulo size."""
    left = elementwise.rem(index, size)
    return elementwise.select(elementwise.lt(left, 0), elementwise.add(left, size), left)


# --- scatter ----------------------------------------------------------------------------------


class Scatter(Primitive):
    """A family: x with updates[b, w] put to, or combined with, the element at indices[b] + w.

    Shapes: see ScatterDimensionNumbers. Dtypes: x and updates equal; indices integers. `mode` is
    the treatment of windows that reach out of x; they are dropped as a whole. Where windows
    overlap, they are combined one after another; putting keeps one of them. update_jaxpr is
    (element of x, update) -> element, and None for putting. Source: StableHLO, scatter.
    """

    form = Form.SCATTER
    cost = Cost.LOOKUP
    adds = False  # updates are added

    def __init__(self, name: str, combine: Primitive | None = None):
        self.name = name
        self.combine = combine

    def abstract_eval(self, x, indices, updates, *, dimension_numbers, **params):
        dims = dimension_numbers
        families.check_equal_dtypes(self.name, x, updates)
        check_dims(self.name, x, indices, dims, len(dims.update_window_dims))
        if self.combine is not None:
            self.combine.abstract_eval(x, x)
        batch = [n for d, n in enumerate(updates.shape) if d not in dims.update_window_dims]
        fits = (
            updates.ndim == indices.ndim - 1 + len(dims.update_window_dims)
            and tuple(batch) == indices.shape[:-1]
            and all(m <= n for m, n in zip(window_sizes(x, updates, dims), x.shape, strict=True))
        )
        if not fits:
            raise ShapeError(
                f"{self.name}: updates must have the shape of the indices but for their last axis, "
                f"and windows that fit into x; got {x}, {indices}, {updates} with {dims}."
            )
        return [x]

    def label_axes(self, avals, outs, *, dimension_numbers, **params):
        (x, indices, updates), dims = avals, GatherDimensionNumbers(*dimension_numbers)
        windows = window_axes(x.ndim, dims.collapsed_slice_dims, dims.operand_batching_dims)
        sizes = window_sizes(x, updates, dimension_numbers)
        (of_x, of_indices), (row,) = families.label_windows(
            x, indices, updates, dims, windows, sizes
        )
        alone = lambda row: [None if type(label) is str else label for label in row]
        hint = "x.at[i].set(values, out_sharding=P(...))"
        return Axes([of_x, alone(of_indices), alone(row)], [of_x], hint=hint)

    def lower(self, hlo, x, indices, updates, *, dimension_numbers, mode, **params):
        dims = dimension_numbers
        sizes = window_sizes(x.aval, updates.aval, dims)
        program = params["update_jaxpr"]
        mapped = dims.scatter_dims_to_operand_dims
        if not x.aval.size:
            return [x]
        if math.prod(indices.aval.shape[:-1]) == 1:
            return [self.lower_one(hlo, x, indices, updates, sizes, mapped, mode, program)]
        if mode is _CLIP:
            indices = clamp_indices(hlo, indices, x.aval.shape, sizes, mapped)
        if indices.aval.dtype.itemsize < 4:  # XLA compares them with sizes that they may not hold
            indices = hlo.convert(indices, np.dtype(np.int32))
        names = (*dims._fields[:3], "input_batching_dims", "scatter_indices_batching_dims")
        cell = ShapedArray((), x.aval.dtype)
        region = hlo.block(
            [cell, cell], lambda a, b: [b] if program is None else lower_jaxpr(hlo, program, [a, b])
        )
        return hlo.op(
            "stablehlo.scatter",
            [x, indices, updates],
            [x.aval],
            [region],
            scatter_dimension_numbers=dims_text("scatter", names, dims, indices.aval.ndim - 1),
            indices_are_sorted=bool_text(params["indices_are_sorted"]),
            unique_indices=bool_text(params["unique_indices"]),
        )

    def lower_one(self, hlo, x, indices, updates, sizes, mapped, mode, program):
        """Write the scatter of one window as slices. XLA makes a `map` of such a scatter where it
        covers x, and aborts on the reverse of a `map` of two operands."""
        x, flat = Expr(hlo, x), Expr(hlo, indices).reshape((len(mapped),))
        starts = [scalar(hlo, 0, flat.dtype)] * len(x.shape)
        for k, d in enumerate(mapped):
            starts[d] = flat.slice_axis(k, k + 1).reshape(())
        before = x.slice_at(starts, sizes)
        after = Expr(hlo, updates).reshape(sizes)
        if self.combine is not None:
            (y,) = self.combine.lower(hlo, before.value, after.value)
            after = Expr(hlo, y)
        elif program is not None:
            cell = before.aval.update(shape=())
            region = hlo.block([cell], lambda a: lower_jaxpr(hlo, program, [a, a]))
            dimensions = i64s(range(len(sizes)))
            after = before.make("map", before.aval, regions=[region], dimensions=dimensions)
        if mode in (_FILL, _ONE_HOT):  # a dynamic slice is clipped
            moved = clamp_indices(hlo, indices, x.shape, sizes, mapped)
            after = lower_inside(hlo, indices, moved).reshape(()).select(after, before)
        return x.update_at(after, starts).value

    def checked(self, trace, args, params):
        if params["mode"] is not _ONE_HOT:  # whose drops are meant
            dims, x, updates = params["dimension_numbers"], typeof(args[0]), typeof(args[2])
            trace.check_indices(x.shape, args[1], window_sizes(x, updates, dims), dims[2])
        return trace.apply(self, args, params)

    def batch(self, axis, args, dims, *, dimension_numbers, **params):
        (x, indices, updates), (d, index_d, update_d), nums = args, dims, dimension_numbers
        x = layout.batched_at_front(x, d, axis.size)
        updates = layout.batched_at_front(updates, update_d, axis.size)
        windows = families.shift_axes(nums.update_window_dims)
        batching = families.shift_axes(nums.operand_batching_dims)
        index_batching = nums.scatter_indices_batching_dims
        if index_d is None:
            windows = (0, *windows)
        else:
            indices = layout.move_to_front(indices, index_d)
            batching, index_batching = (0, *batching), (0, *families.shift_axes(index_batching))
        nums = ScatterDimensionNumbers(
            windows,
            families.shift_axes(nums.inserted_window_dims),
            families.shift_axes(nums.scatter_dims_to_operand_dims),
            batching,
            index_batching,
        )
        return self.apply(x, indices, updates, dimension_numbers=nums, **params), [0]


def window_sizes(x: ShapedArray, updates: ShapedArray, dims: Any) -> tuple[int, ...]:
    """The size of a window on each axis of x: 1 where it has no axis in the updates."""
    sizes = [min_size(n, 1) for n in x.shape]
    windows = window_axes(x.ndim, dims.inserted_window_dims, dims.operand_batching_dims)
    for d, w in zip(windows, dims.update_window_dims, strict=True):
        sizes[d] = updates.shape[w]
    return tuple(sizes)


def gather_windows(x: Any, indices: Any, updates: ShapedArray, params: dict, **fill: Any) -> Any:
    """The windows of x that a scatter with these params writes to, in the shape of its updates."""
    dims = params["dimension_numbers"]
    return gather(
        x, indices, GatherDimensionNumbers(*dims), window_sizes(typeof(x), updates, dims),
        unique_indices=params["unique_indices"], indices_are_sorted=params["indices_are_sorted"],
        **fill,
    )  # fmt: skip


def add_at(x: Any, indices: Any, updates: Any, params: dict) -> Any:
    """The scatter_add with the params of another scatter."""
    shared = {k: v for k, v in params.items() if not k.startswith("update_")}
    return scatter_add(x, indices, updates, shared.pop("dimension_numbers"), **shared)


def has_one_writer(indices: Any, params: dict) -> bool:
    """Return True if no two windows can overlap: promised, or there is only one."""
    aval, batching = typeof(indices), params["dimension_numbers"].scatter_indices_batching_dims
    rest = [n for d, n in enumerate(aval.shape[:-1]) if d not in batching]
    return params["unique_indices"] or math.prod(rest) <= 1


class ScatterPut(Scatter):
    """Scatter that replaces; linear in x and updates together where no windows overlap."""

    elements = Elements.PLACED

    def jvp(self, primals, tangents, **params):
        x, indices, updates = primals
        t, _, update_t = tangents
        if params["update_jaxpr"] is not None:
            raise self.missing("jvp")
        if type(t) is type(update_t) is Zero:
            outs = self.apply(*primals, **params)
            return outs, families.zero_tangents(outs)
        t, update_t = layout.instantiate(t), layout.instantiate(update_t)
        if has_one_writer(indices, params):
            return self.apply(*primals, **params), self.apply(t, indices, update_t, **params)
        # Which of the overlapping updates is left is open, so that is settled once, for ids; then
        # value and tangent both add up what stays of x and the updates that are left.
        ids = update_ids(indices, typeof(updates), params)
        there = self.apply(layout.fill(typeof(x).shape, 0, ids.dtype), indices, ids, **params)[0]
        stays = elementwise.eq(there, layout.literal(0, ids.dtype))
        left = elementwise.eq(ids, gather_windows(there, indices, typeof(updates), params))

        def put(x: Any, updates: Any) -> Any:
            zero = layout.literal(0, typeof(x).dtype)
            return add_at(
                elementwise.select(stays, x, zero),
                indices,
                elementwise.select(left, updates, zero),
                params,
            )

        return [put(x, updates)], [put(t, update_t)]

    def transpose(self, cts, x, indices, updates, **params):
        (ct,) = cts
        aval = typeof(updates)
        if params["update_jaxpr"] is not None or not has_one_writer(indices, params):
            raise self.missing("transpose")
        x_ct = update_ct = None
        if families.is_linear(x):
            (x_ct,) = self.apply(ct, indices, layout.zeros(aval), **params)
        if families.is_linear(updates):
            update_ct = gather_windows(ct, indices, aval, params, mode=params["mode"], fill_value=0)
        return [x_ct, None, update_ct]


class ScatterSum(Scatter):
    """Scatter that adds or subtracts: linear in x and updates together."""

    @property
    def adds(self) -> bool:  # type: ignore[override]
        return self.combine is elementwise.add_p

    def find_part(self, eqn: Any) -> families.Part | None:
        x, indices, updates = eqn.invars
        if not self.adds:
            return None
        return families.Part(x, updates, [indices], adds=True)

    def jvp(self, primals, tangents, **params):
        outs = self.apply(*primals, **params)
        t, _, update_t = tangents
        if type(update_t) is Zero:
            return outs, [t]
        return outs, self.apply(layout.instantiate(t), primals[1], update_t, **params)

    def transpose(self, cts, x, indices, updates, **params):
        (ct,) = cts
        update_ct = None
        if families.is_linear(updates):
            update_ct = gather_windows(
                ct, indices, updates.aval, params, mode=params["mode"], fill_value=0
            )
            if not self.adds:
                update_ct = elementwise.neg(update_ct)
        return [ct if families.is_linear(x) else None, None, update_ct]


class ScatterMul(Scatter):
    """Scatter that multiplies: linear in x; in updates too where no windows overlap."""

    def jvp(self, primals, tangents, **params):
        x, indices, updates = primals
        t, _, update_t = tangents
        outs = self.apply(*primals, **params)
        parts = []
        if type(t) is not Zero:
            parts += self.apply(t, indices, updates, **params)
        if type(update_t) is not Zero:
            if not has_one_writer(indices, params):
                raise MissingRule(
                    "scatter_mul: a derivative in the updates needs unique indices; got "
                    f"{typeof(indices)} that may repeat. Hint: unique_indices=True"
                )
            windows = gather_windows(x, indices, typeof(updates), params)
            parts.append(
                add_at(layout.zeros(typeof(x)), indices, elementwise.mul(windows, update_t), params)
            )
        if not parts:
            return outs, families.zero_tangents(outs)
        return outs, [functools.reduce(elementwise.add, parts)]

    def transpose(self, cts, x, indices, updates, **params):
        return [*self.apply(cts[0], indices, updates, **params), None, None]


class ScatterExtremum(Scatter):
    """Scatter that keeps the smaller or the larger; where several tie, each has an equal share."""

    elements = Elements.CHOSEN

    def jvp(self, primals, tangents, **params):
        x, indices, updates = primals
        t, _, update_t = tangents
        kept = keep_p.apply(x, updates)  # else XLA may round them in two ways
        (out,) = self.apply(*primals, **params)
        aval = typeof(out)
        if type(t) is type(update_t) is Zero:
            return [out], families.zero_tangents([out])
        zero, one = layout.literal(0, aval.dtype), layout.literal(1, aval.dtype)
        stays = elementwise.eq(kept[0], out)
        won = elementwise.eq(kept[1], gather_windows(out, indices, typeof(updates), params))
        ones = layout.fill(typeof(updates).shape, 1, aval.dtype)
        winners = add_at(
            elementwise.select(stays, layout.fill(aval.shape, 1, aval.dtype), zero),
            indices,
            elementwise.select(won, ones, zero),
            params,
        )
        share = elementwise.div(one, elementwise.max(winners, one))  # none wins where out is NaN
        dot = elementwise.mul(elementwise.select(stays, layout.instantiate(t), zero), share)
        if type(update_t) is not Zero:
            moved = add_at(
                layout.zeros(aval), indices, elementwise.select(won, update_t, zero), params
            )
            dot = elementwise.add(dot, elementwise.mul(moved, share))
        return [out], [dot]


scatter_p = ScatterPut("scatter")
scatter_add_p = ScatterSum("scatter-add", elementwise.add_p)
scatter_sub_p = ScatterSum("scatter-sub", elementwise.sub_p)
scatter_mul_p = ScatterMul("scatter-mul", elementwise.mul_p)
scatter_min_p = ScatterExtremum("scatter-min", elementwise.min_p)
scatter_max_p = ScatterExtremum("scatter-max", elementwise.max_p)


def update_ids(indices: Any, updates: ShapedArray, params: dict) -> Any:
    """1, 2, ... for the windows of a scatter, in the shape of its updates."""
    batch = typeof(indices).shape[:-1]
    windows = params["dimension_numbers"].update_window_dims
    count = layout.broadcasted_iota(np.dtype(np.uint32), (math.prod(batch),), 0)
    ids = layout.reshape(elementwise.add(count, layout.literal(1, np.dtype(np.uint32))), batch)
    outer = tuple(d for d in range(updates.ndim) if d not in windows)
    return layout.broadcast_in_dim(ids, updates.shape, outer)


@functools.cache
def stage_combiner(combine: Primitive, dtype: np.dtype) -> Jaxpr:
    """The program of one element that a scatter's parameters show."""
    cell = ShapedArray((), dtype)
    return stage_whole(lambda a, b: combine.apply(a, b), [cell, cell])


SCATTER_DOC = """Return the operand with {what} at given positions.

    It is the general form of updates such as `x.at[i].set(y)` and `x.at[i].add(y)`, which are
    easier to use. `dimension_numbers` say how the axes correspond.

    Args:
      operand: an array of any dtype.
      scatter_indices: an integer array whose last axis holds the position of a window, one index
        for each axis in `dimension_numbers.scatter_dims_to_operand_dims`.
      updates: an array of the operand's dtype, or a Python number. It has the axes of the indices
        except for the last, and the axes of the windows at
        `dimension_numbers.update_window_dims`.
      dimension_numbers: a `ScatterDimensionNumbers`.
      indices_are_sorted: if True, the caller promises that the positions are in ascending order.
        The default is False.
      unique_indices: if True, the caller promises that no two windows overlap. The default is
        False.
      mode: what happens to a window that reaches out of the operand. "clip" moves it inside; any
        other mode leaves it out, and so does None, the default. Under the option `check_bounds`
        "all" such a window raises an error if no mode is given.

    Returns:
      An array of the shape and dtype of the operand.

    Raises:
      DtypeError: the updates have another dtype.
      ShapeError: the updates do not fit the indices.

    >>> one = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> x, places = jnp.array([4, 4, 4]), jnp.array([[0], [2]])
    >>> print(lax.{name}(x, places, jnp.array([1, 9]), one))
    {example}
    """


def define_scatter(prim: Scatter, what: str, example: str) -> Callable[..., Any]:
    """Return the function of a member of the scatter family.

    Its documentation says `what` becomes of the operand, and has the result of an `example`.
    """

    def fun(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Array:
        dtype = typeof(operand).dtype
        if type(updates) in dtypes.NUMBERS:
            updates = layout.literal(updates, dtype)
        program = None if prim.combine is None else stage_combiner(prim.combine, dtype)
        dims = read_numbers("scatter", ScatterDimensionNumbers, dimension_numbers)
        return prim.apply(
            operand,
            scatter_indices,
            updates,
            dimension_numbers=dims,
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            mode=GatherScatterMode.from_any(mode),
            update_jaxpr=program,
            update_consts=(),
        )[0]

    name = prim.name.replace("-", "_")
    return name_function(fun, name, SCATTER_DOC.format(name=name, what=what, example=example))


scatter = define_scatter(scatter_p, "windows replaced by `updates`", "[1 4 9]")
scatter_add = define_scatter(scatter_add_p, "`updates` added", "[ 5  4 13]")
scatter_sub = define_scatter(scatter_sub_p, "`updates` subtracted", "[ 3  4 -5]")
scatter_mul = define_scatter(scatter_mul_p, "elements multiplied by `updates`", "[ 4  4 36]")
scatter_min = define_scatter(scatter_min_p, "the smaller of elements and `updates`", "[1 4 4]")
scatter_max = define_scatter(scatter_max_p, "the larger of elements and `updates`", "[4 4 9]")
