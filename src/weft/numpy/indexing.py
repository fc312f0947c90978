"""Reading by index: `x[...]`, `take`, `take_along_axis`, `choose`.

What an index means is in index_plans.py, writing by index in updates.py, making arrays of indices
in grids.py.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.ref import AbstractRef
from weft.core.source import boundary, trim_traceback
from weft.core.trace import Tracer, is_eager
from weft.errors import ConcretizationTypeError, DtypeError, IndexingError, ShapeError
from weft.numpy import index_plans, promotion
from weft.options import bounds_cell
from weft.primitives import layout, slicing
from weft.primitives.dynamic_slicing import index_dtype, is_long, slice_clamped, widen_index
from weft.primitives.elementwise import add, clamp, convert, lt, mul, rem
from weft.primitives.elementwise import min as smaller
from weft.primitives.elementwise import select as select_where
from weft.primitives.indexing import GatherDimensionNumbers, GatherScatterMode, fill_param, gather
from weft.primitives.layout import broadcast_in_dim, literal
from weft.run.eager import KERNELS
from weft.run.hot import is_hot
from weft.run.operation import NotForKernel, compile_function, operation
from weft.util import min_size
from weft.xla.array import ARRAYS, ArrayImpl, host_view, put, retype_array
from weft.xla.typing import Array, ArrayLike


class Access(NamedTuple):
    """Options for reading or writing windows: the keywords of `.at[...]`'s methods."""

    mode: GatherScatterMode | None = None  # None: in bounds, known or believed
    fill_value: Any = None
    indices_are_sorted: bool = False
    unique_indices: bool = False
    wrap_negative_indices: bool = True
    checked: bool = True  # an index known to be out of bounds raises
    donates: bool = False  # an eager write may take over the memory of the array

    @property
    def clamps(self) -> bool:
        """Return True if a place out of bounds may be moved inside."""
        return self.mode is not GatherScatterMode.FILL_OR_DROP


PLAIN = Access()
TAKE = "axis", "out", "mode", "unique_indices", "indices_are_sorted"  # of `take`


def read_keywords(
    x: ShapedArray,
    mode: Any = None,
    fill_value: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    wrap_negative_indices: bool = True,
) -> Access:
    """The keywords of a read or write of `x`, checked."""
    promises = indices_are_sorted or unique_indices
    if mode == "fill" and fill_value is None and wrap_negative_indices and not promises:
        return fill_access(x.physical.dtype)
    found = None if mode is None else GatherScatterMode.from_any(mode)
    if found is GatherScatterMode.FILL_OR_DROP:
        fill_value = fill_param(fill_value, x.physical.dtype)
    return Access(
        found,
        fill_value,
        bool(indices_are_sorted),
        bool(unique_indices),
        bool(wrap_negative_indices),
        mode is None,
    )


@functools.cache
def fill_access(dtype: np.dtype) -> Access:
    """The plain `fill` mode for arrays of a dtype."""
    return Access(GatherScatterMode.FILL_OR_DROP, fill_param(None, dtype), checked=False)


# --- reading with a plan ----------------------------------------------------------------------


def read(x: Any, plan: index_plans.IndexPlan, arrays: Sequence[Any], how: Access = PLAIN) -> Any:
    """Return the elements of `x` that a plan selects."""
    for e in plan.lookups:
        if not e.size and 0 not in plan.shape:
            raise IndexingError(
                f"x[...]: an axis looked up must not be empty; got axis {e.axis} of {x.aval}."
            )
    if plan.grown:
        x = layout.expand_dims(x, plan.grown)
    if plan.inside or how.clamps:
        if not plan.lookups and not plan.slides:
            return read_slices(x, plan)
        strided = any(s.step > 1 for s in plan.slides)  # looked up, element by element
        if not plan.looked and not plan.grown and how.clamps and not strided:
            return read_slices(slice_dynamically(x, plan, arrays, how), plan, cut=True)
    windows = plan.windows
    if 0 in windows.shape:  # a window of nothing need not fit x, which may be empty too
        return layout.full(plan.shape, 0, x.dtype)
    columns = tuple(c.axis for c in windows.columns)
    out = gather(
        x,
        make_index_vectors(windows, arrays, how.wrap_negative_indices),
        GatherDimensionNumbers(windows.offset_dims, windows.collapsed, columns),
        windows.sizes,
        unique_indices=how.unique_indices or not windows.batch,
        indices_are_sorted=how.indices_are_sorted or not windows.batch,
        mode=how.mode,
        fill_value=how.fill_value,
    )
    return layout.expand_dims(out, plan.new)


def read_slices(x: Any, plan: index_plans.IndexPlan, cut: bool = False) -> Any:
    """The static slices of `x` that a plan asks for; with `cut`, x is that slice already."""
    part = plan.slices
    if not cut and not part.whole:
        x = slicing.slice_p.apply(
            x, start_indices=part.starts, limit_indices=part.limits, strides=part.steps
        )[0]
    if part.rev:
        x = layout.rev(x, part.rev)
    if part.squeezed:
        x = layout.squeeze_p.apply(x, dimensions=part.squeezed)[0]
    return layout.expand_dims(x, plan.new) if plan.new else x


def slice_dynamically(
    x: Any, plan: index_plans.IndexPlan, arrays: Sequence[Any], how: Access
) -> Any:
    """The slice of `x` that a plan asks for, whose lookups are scalars."""
    part = plan.slices
    if part.steps is not None:  # slices with steps are static
        x = slicing.slice_p.apply(
            x, start_indices=part.starts, limit_indices=part.limits, strides=part.steps
        )[0]
        starts: list[Any] = [0] * len(part.starts)
    else:
        starts = list(part.starts)
    sizes = list(part.sizes)
    for e in plan.lookups:
        starts[e.axis] = wrap_positions(arrays[e.array], e.size, how.wrap_negative_indices)
        sizes[e.axis] = 1
    for s in plan.slides:
        starts[s.axis] = wrap_positions(arrays[s.array], s.size, how.wrap_negative_indices)
        sizes[s.axis] = s.count
    if len({typeof(i).dtype for i in starts if type(i) is not int}) > 1:  # int32 and int64
        starts = [convert_index(i, np.dtype(np.int64)) for i in starts]
    return slice_clamped(x, starts, sizes)


# --- index vectors ----------------------------------------------------------------------------


def wrap_positions(i: Any, size: int, wrap: bool) -> Any:
    """Indices into an axis as int32 or int64; negative ones count from its end if `wrap`."""
    if isinstance(i, int):
        return index_plans.clip_place(i + size if wrap and i < 0 else i, size)
    if isinstance(i, np.ndarray):
        wide = np.where(i < 0, i + np.int64(size), i) if wrap else i
        return wide.astype(index_dtype(i.dtype, size))
    dtype = typeof(i).dtype
    target = index_dtype(dtype, size)
    if dtypes.is_unsigned(dtype):
        # what int32 cannot hold is out of bounds, and stays so
        if dtype.itemsize >= 4 and size <= dtypes.iinfo(dtype).max:
            i = smaller(i, literal(size, dtype))
        return convert(i, target)
    if dtype != target:
        i = convert(i, target)
    if not wrap:
        return i
    return select_where(lt(i, literal(0, target)), add(i, literal(size, target)), i)


def make_index_vectors(windows: index_plans.Windows, arrays: Sequence[Any], wrap: bool) -> Any:
    """The index vectors of windows: an array of shape (*batch, number of columns)."""
    found = {}
    for c in windows.columns:
        if c.array is not None:
            found[c.array] = wrap_positions(arrays[c.array], c.size, wrap)
    wide = any(typeof(i).dtype.itemsize == 8 for i in found.values() if not isinstance(i, int))
    wide = wide or any(is_long(c.size) for c in windows.columns)
    dtype = np.dtype(np.int64 if wide else np.int32)
    columns = [
        make_column(c, convert_index(found.get(c.array), dtype), windows.batch, dtype)
        for c in windows.columns
    ]
    if not columns:
        return layout.full((*windows.batch, 0), 0, dtype)
    return slicing.concatenate(columns, len(windows.batch))


def convert_index(i: Any, dtype: np.dtype) -> Any:
    """Indices in `dtype`, as they stand if there are none."""
    return i if i is None or isinstance(i, int) else convert(i, dtype)


def make_column(c: index_plans.Column, i: Any, batch: tuple[int, ...], dtype: np.dtype) -> Any:
    """One entry of each index vector."""
    shape = (*batch, 1)
    if c.array is None and not c.step:
        return layout.full(shape, c.start, dtype)
    if c.step:
        count = batch[c.dims[0]]
        steps = layout.iota_p.apply(dtype=dtype, shape=(count,), dimension=0, sharding=None)[0]
        start = literal(c.start, dtype) if c.array is None else broadcast_in_dim(i, (count,), ())
        i = add(mul(steps, literal(c.step, dtype)), start)
    elif isinstance(i, int):
        return layout.full(shape, i, dtype)
    return broadcast_in_dim(i, shape, c.dims)


# --- x[...] -----------------------------------------------------------------------------------

# KERNELS has the compiled programs of eager reads. The keys (type, number), (type, start, stop),
# (type, start, stop, step) and (type, key, tuple) are for hot static indices, (type, key, how) for
# indices with arrays, and (type, key, ...) for other indices.
_STATIC = frozenset((int, type(None), type(...)))  # hashable static entries of an index


def getitem(x: Any, index: Any) -> Array:
    """x[index], with NumPy's meaning of all kinds of index.

    A number out of bounds raises IndexingError; computed indices are clamped.
    """
    if type(x) in ARRAYS and is_eager():
        kind = type(index)
        name, arrays = None, ()  # type: tuple | None, Sequence
        if kind is int:
            name = (x.aval, index)
        elif kind is slice:
            start, stop, step = index.start, index.stop, index.step
            bounded = (start is None or type(start) is int) and (stop is None or type(stop) is int)
            if bounded and (step is None or type(step) is int):
                name = (x.aval, start, stop) if step is None else (x.aval, start, stop, step)
        elif kind is ArrayImpl:
            if bounds_cell.value != "all":
                name, arrays = (x.aval, (index.aval,), PLAIN), (index,)
        elif index is None or (kind is tuple and _STATIC.issuperset(map(type, index))):
            name = (x.aval, (None,) if index is None else index, tuple)
        elif kind is tuple and (found := index_plans.split_plain(index)) is not None:
            key, arrays = found
            if not arrays or bounds_cell.value is True:  # a number in the program is not out
                name = (x.aval, key, PLAIN if arrays else tuple)
        kernel = None if name is None else KERNELS.get(name)
        try:
            if kernel is None:
                return read_eagerly(x, index, PLAIN, name)
            return kernel(x, *arrays) if arrays else kernel(x)
        except NotForKernel:  # a number that no array of indices holds
            pass
        except Exception as error:
            trim_traceback(error)
            raise
    if type(x.aval) is AbstractRef:
        return x.aval.getitem(x, index)
    return read_traced(x, index, PLAIN)


MOST_UNSTACKED = 64  # elements of an array that are made at once to iterate over it


@boundary
def iterate(x: Any) -> Iterator:
    """The elements along the first axis: of a short array at once, by one program."""
    if not x.ndim:
        raise ShapeError(f"iter(): needs an array with an axis; got {x.aval}.")
    if type(x) in ARRAYS and x.shape[0] <= MOST_UNSTACKED:
        return iter(slicing.unstack(x))
    return (x[i] for i in range(x.shape[0]))


def getitem_with(x: Any, index: Any, how: Access) -> Any:
    """x[index], read as `how` says."""
    if type(x) in ARRAYS and is_eager():
        try:
            return read_eagerly(x, index, how)
        except NotForKernel:  # a number that no array of indices holds
            pass
    return read_traced(x, index, how)


def read_traced(x: Any, index: Any, how: Access) -> Any:
    """x[index] operation by operation."""
    plan, arrays = plan_traced(x.aval, index, how)
    return read(x, plan, arrays, how)


def plan_traced(x: ShapedArray, index: Any, how: Access) -> tuple[index_plans.IndexPlan, Sequence]:
    """The plan for an index, its bounds checked, and the arrays in it."""
    key = index_plans.static_key(index) if how.wrap_negative_indices else None
    if key is not None:
        plan = index_plans.plan_index(x, key)
        if not plan.inside and how.checked:
            index_plans.check_places(x, plan)
        return plan, ()
    key, arrays = index_plans.split_index(x, index)
    if not how.wrap_negative_indices:
        key, arrays = move_numbers(key, arrays)
    return check_plan(x, key, arrays, how), arrays


def check_plan(
    x: ShapedArray, key: index_plans.Key, arrays: Sequence[Any], how: Access
) -> index_plans.IndexPlan:
    """Return the plan for a key. Check its bounds and, if the option says so, `arrays`."""
    plan = index_plans.plan_index(x, key)
    if how.checked:
        index_plans.check_places(x, plan)
        for e in plan.lookups:
            index_plans.check_lookup(x, e, arrays[e.array], how.wrap_negative_indices)
    return plan


def read_eagerly(x: Any, index: Any, how: Access, name: tuple | None = None) -> Any:
    """x[index] now, as one compiled program; `name` is where `getitem` looks for it."""
    aval = x.aval
    key = index_plans.static_key(index) if how.wrap_negative_indices else None
    if key is not None:
        plan = index_plans.plan_index(aval, key)
        if not plan.inside and how.checked:
            index_plans.check_places(aval, plan)
        if plan.inside or how.clamps:
            return read_slices_eagerly(x, key, plan, name or (aval, key))
    found = read_masked(x, index)
    if found is not None:
        return found
    key, arrays = index_plans.split_index(aval, index)
    if name != (aval, key, how) or not is_hot(aval, key):
        key, arrays = move_numbers(key, arrays)
    plan = check_plan(aval, key, arrays, how)
    kernel = KERNELS.get((aval, key, how))
    if kernel is None:

        def getitem(x: Any, *arrays: Any) -> Any:
            return read(x, plan, arrays, how)

        kernel = KERNELS[aval, key, how] = compile_function(getitem, "getitem")
    return kernel(x, *arrays)


def move_numbers(key: index_plans.Key, arrays: Sequence[Any]) -> tuple[index_plans.Key, list]:
    """The same index with its numbers among the arrays, so that programs do not depend on them."""
    scalar = typeof(0)
    rest = iter(arrays)
    out = []
    for k in key:
        if type(k) is int:
            out.append(k)
        elif k is not None and k is not Ellipsis and type(k) is not tuple:
            out.append(next(rest))
    return tuple(scalar if type(k) is int else k for k in key), out


def read_slices_eagerly(
    x: Any, key: index_plans.Key, plan: index_plans.IndexPlan, name: tuple
) -> Any:
    """A static index now: by a program of its own if hot, else by one that takes the starts."""
    aval = x.aval
    part = plan.slices
    kernel = KERNELS.get((aval, key))
    if kernel is None and (part.fixed or is_hot(aval, key)):

        def getitem(x: Any) -> Any:
            return read_slices(x, plan)

        kernel = KERNELS[aval, key] = compile_function(getitem, "getitem")
    if kernel is not None:
        KERNELS[name] = kernel
        return kernel(x)
    sizes = part.sizes
    moving = [i for i, (m, n) in enumerate(zip(sizes, aval.shape, strict=True)) if m != n]
    shared = (aval, sizes, part.rev, part.squeezed, plan.new)
    kernel = KERNELS.get(shared)
    if kernel is None:

        def getitem(x: Any, *starts: Any) -> Any:
            every: list[Any] = [0] * len(sizes)
            for i, start in zip(moving, starts, strict=True):
                every[i] = start
            window = slice_clamped(x, every, sizes)
            return read_slices(window, plan, cut=True)

        kernel = KERNELS[shared] = compile_function(getitem, "getitem")
    return kernel(x, *[part.starts[i] for i in moving])


def is_known_mask(index: Any) -> bool:
    """Return True if an index is a mask whose values are known."""
    kind = type(index)
    return (kind is ArrayImpl or kind is np.ndarray) and index.dtype == bool and index.ndim > 0


def read_masked(x: Any, index: Any) -> Any:
    """x[index] on the host: the size depends on values, so each would need a program of its own.

    None where x is not on the host, or the index has no masks, or other arrays too.
    """
    items = index if isinstance(index, tuple) else (index,)
    if not any(map(is_known_mask, items)) or x._sharding._device_assignment[0].platform != "cpu":
        return None
    entries = []
    for i in items:
        if not is_known_mask(i) and not (i is None or i is Ellipsis or type(i) in (int, slice)):
            return None
        entries.append(np.asarray(i) if is_known_mask(i) else i)
    try:
        found = host_view(x)[tuple(entries)]
    except (IndexError, TypeError):  # the other way has better words for it
        return None
    out = put(found, x._sharding, x._committed)
    return retype_array(out, out.aval.update(weak_type=True)) if x.weak_type else out


# --- functions --------------------------------------------------------------------------------


def check_integer_indices(op: str, indices: Any) -> Any:
    """The indices of a function, of an integer dtype."""
    indices = promotion.as_operand(op, indices)
    aval = typeof(indices)
    if not dtypes.is_integer(aval.dtype):
        raise DtypeError(f"{op}: indices must be integers; got {aval}.")
    if isinstance(indices, np.ndarray):
        return index_plans.narrow_indices(indices, aval.dtype)
    return indices


@operation(known=2, static=TAKE)
def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Take the elements at given indices along an axis.

    `jnp.take(a, i, axis=1)` is `a[:, i]` for indices in bounds. Indices out of bounds give a fill
    value by default.

    Args:
      a: array of any dtype.
      indices: integer or array of integers, of any shape. Negative ones count from the end.
      axis: the axis; None (default) flattens `a` first. A Python value, static under tracing.
      out: must be None.
      mode: how to treat indices out of bounds. "fill" gives `fill_value`. None (default) does the
        same, but raises an error for a Python int. "clip" takes the nearest element, also for
        negative indices; "wrap" counts modulo the size. A Python value, static under tracing.
      unique_indices: a promise that no index occurs twice. False by default.
      indices_are_sorted: a promise that indices ascend. False by default.
      fill_value: the element for indices out of bounds. None (default) for NaN, or for integers the
        lowest value, for unsigned ones the highest.

    Returns:
      An array of the dtype of `a` and its shape, with the axes of `indices` in place of the axis.

    Raises:
      IndexingError: if an index that is a Python int is out of bounds, and `mode` is None.
      DtypeError: if `indices` are not integers.
      ShapeError: if the axis does not exist.
      ValueError: if `mode` is another name.
      NotImplementedError: if `mode` is "raise", which traced values cannot do, or `out` is given.

    >>> jnp.take(jnp.array([5, 6, 7]), jnp.array([2, -1, 0]))
    Array([7, 7, 5], dtype=int32)
    >>> jnp.take(jnp.array([5., 6., 7.]), jnp.array([1, 3]))
    Array([ 6., nan], dtype=float32)
    >>> jnp.take(jnp.array([5., 6., 7.]), jnp.array([1, 3]), mode="clip")
    Array([6., 7.], dtype=float32)
    """
    promotion.refuse_out("take", out)
    a = promotion.as_array(a, "take")
    if mode == "raise":
        raise NotImplementedError(
            "take: mode must be None, 'fill', 'clip' or 'wrap'; got 'raise', which traced values "
            "cannot do. Hint: mode=None under config.update('check_bounds', 'all')."
        )
    indices = check_integer_indices("take", indices)
    if axis is None:
        a, axis = layout.reshape(a, (a.size,)), 0
    axis = promotion.axis_of("take", axis, a.ndim)
    n = a.shape[axis]
    if type(indices) is int and mode is fill_value is None and -n <= indices < n:
        return getitem(a, (*[slice(None)] * axis, indices))
    if mode == "wrap":
        indices = wrap_around(indices, n)
    kind = None if mode == "wrap" else mode or "fill"
    flags = indices_are_sorted, unique_indices, mode != "clip"
    how = read_keywords(a.aval, kind, fill_value, *flags)._replace(checked=mode is None)
    return getitem_with(a, (*[slice(None)] * axis, indices), how)


def wrap_around(i: Any, size: int) -> Any:
    """Indices brought into an axis by counting around."""
    if isinstance(i, int | np.ndarray):
        return i % size if size else i
    i, dtype = widen_index(i, i.dtype, size)
    n = literal(size, dtype)
    left = rem(i, n)
    return (
        left
        if dtypes.is_unsigned(dtype)
        else select_where(lt(left, literal(0, dtype)), add(left, n), left)
    )


class AlongAxis(NamedTuple):
    """Match the axes of arr and indices of `take_along_axis`.

    `squeezed` axes of arr are of size 1 and read at 0; `dims` are for arr and indices without the
    axes of size 1 that arr is read whole along.
    """

    indices_shape: tuple[int, ...]
    dims: GatherDimensionNumbers
    sizes: tuple[int, ...]


def plan_along(op: str, x: ShapedArray, i: ShapedArray, axis: int) -> AlongAxis:
    """The windows of `take_along_axis`."""
    if x.ndim != i.ndim:
        hint = f" Hint: jnp.expand_dims(indices, {axis})." if x.ndim == i.ndim + 1 else ""
        raise ShapeError(f"{op}: arr and indices must have equal ranks; got {x} and {i}.{hint}")
    offset, collapsed, batching, index_batching, sizes, shape = [], [axis], [], [], [], []
    for d, (m, n) in enumerate(zip(x.shape, i.shape, strict=True)):
        sizes.append(min_size(n, 1))  # 0 where nothing is looked up, so that x may be empty too
        if d == axis:
            shape.append(n)
        elif m == n:
            batching.append(d)
            index_batching.append(len(shape))
            shape.append(n)
        elif n == 1:
            offset.append(d)
            sizes[d] = m
        elif m == 1:
            collapsed.append(d)
            shape.append(n)
        else:
            raise ShapeError(
                f"{op}: arr and indices must broadcast together but for axis {axis}; "
                f"got {x} and {i}."
            )
    if x.shape[axis] == 0 and 0 in (*shape, *[x.shape[d] for d in offset]):
        sizes[axis] = 0  # no element is looked up
    dims = GatherDimensionNumbers(
        tuple(offset), tuple(sorted(collapsed)), (axis,), tuple(batching), tuple(index_batching)
    )
    return AlongAxis((*shape, 1), dims, tuple(sizes))


@operation(static=("axis", "how"))
def take_planned(arr: Any, indices: Any, axis: int, how: Access) -> Any:
    """`take_along_axis` for checked arguments."""
    found = plan_along("take_along_axis", arr.aval, indices.aval, axis)
    i = wrap_positions(indices, arr.shape[axis], how.wrap_negative_indices)
    i = layout.reshape(i, found.indices_shape)
    return gather(arr, i, found.dims, found.sizes, mode=how.mode, fill_value=how.fill_value)


@operation(known=2, static=("axis", "mode"))
def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Take, for each position, the element at its own index along an axis.

    It applies the result of `argsort` or `argmax` to an array.

    Args:
      arr: array of any dtype.
      indices: array of integers of the rank of `arr`. The two broadcast together along the other
        axes.
      axis: the axis, the last one by default; None flattens `arr` first. A Python value, static
        under tracing.
      mode: how to treat indices out of bounds: None (default) and "fill" give `fill_value`, "clip"
        takes the nearest element. A Python value, static under tracing.
      fill_value: the element for indices out of bounds. None (default) for NaN, or for integers the
        lowest value, for unsigned ones the highest.
      wrap_negative_indices: None (default) and True count negative indices from the end.

    Returns:
      An array of the dtype of `arr`, of the size of `indices` along the axis.

    Raises:
      ShapeError: if the ranks of `arr` and `indices` differ, or the axis does not exist.
      DtypeError: if `indices` are not integers.

    >>> x = jnp.array([[3, 1, 2]])
    >>> jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1)
    Array([[1, 2, 3]], dtype=int32)
    """
    op = "take_along_axis"
    arr = promotion.as_array(arr, op)
    indices = promotion.as_array(check_integer_indices(op, indices), op)
    if axis is None:
        arr, axis = layout.reshape(arr, (arr.size,)), 0
    axis = promotion.axis_of(op, axis, arr.ndim)
    wrap = True if wrap_negative_indices is None else wrap_negative_indices
    how = read_keywords(arr.aval, mode or "fill", fill_value, wrap_negative_indices=wrap)
    if mode is None and arr.ndim == indices.ndim:
        check_along(arr, axis, indices)
    return take_planned(arr, indices, axis, how)


def check_along(x: Any, axis: int, indices: Any) -> None:
    """Raise where indices along one axis are out of bounds, if the option says so."""
    index_plans.check_lookup(x.aval, index_plans.Lookup(axis, 0, (), x.shape[axis]), indices)


def broadcast_last(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` broadcast to a shape."""
    return broadcast_in_dim(x, shape, range(len(shape) - x.ndim, len(shape)))


def choose(
    a: ArrayLike, choices: ArrayLike | Sequence[ArrayLike], out: None = None, mode: str = "raise"
) -> Array:
    """Choose each element from one of several arrays: choices[a[i]][i] at position i.

    Args:
      a: array of integers, in [0, n) for n choices.
      choices: list or tuple of n arrays, or an array whose first axis holds them. They are
        converted to their common dtype, and broadcast together with `a`.
      out: must be None.
      mode: how to treat indices out of bounds: "raise" (default) raises an error and so needs
        concrete indices; "wrap" counts modulo n; "clip" takes the nearest choice.

    Returns:
      An array of the broadcast shape and the common dtype of `choices`.

    Raises:
      ValueError: if an index is out of bounds, `choices` is empty, or `mode` is another name.
      DtypeError: if `a` does not hold integers.
      ConcretizationTypeError: for `mode` "raise" under a transformation such as `jit`.

    >>> choices = [jnp.array([1, 2, 3]), jnp.array([10, 20, 30])]
    >>> jnp.choose(jnp.array([0, 1, 0]), choices)
    Array([ 1, 20,  3], dtype=int32)
    >>> jnp.choose(jnp.array([0, 5, 0]), choices, mode="clip")
    Array([ 1, 20,  3], dtype=int32)
    """
    promotion.refuse_out("choose", out)
    a = promotion.as_array(check_integer_indices("choose", a), "choose")
    if not isinstance(choices, list | tuple):
        choices = promotion.as_array(choices, "choose")
        if not choices.ndim:
            raise ShapeError(f"choose: choices must have an axis; got {choices.aval}.")
        choices = slicing.unstack(choices)
    arrays = list(choices)
    if not arrays:
        raise ValueError("choose: choices must hold an array; got none.")
    arrays = promotion.promote_operands(
        "choose", *promotion.as_arrays_together("choose", *arrays), shaped=False
    )
    n = len(arrays)
    if mode == "raise":
        known = (
            a.concrete(ConcretizationTypeError, "choose", "mode='clip' or mode='wrap'.")
            if isinstance(a, Tracer)
            else a
        )
        values = np.asarray(known)
        if values.size and not (values.min() >= 0 and values.max() < n):
            raise ValueError(
                f"choose: indices must be in [0, {n}); got {values.min()} to {values.max()}."
            )
    elif mode == "wrap":
        a = wrap_around(a, n)
    elif mode == "clip":
        a = clamp(literal(0, a.dtype), a, literal(n - 1, a.dtype))
    else:
        raise ValueError(f"choose: mode must be 'raise', 'wrap' or 'clip'; got {mode!r}.")
    shape = promotion.broadcast_shapes(a.shape, *[c.shape for c in arrays])
    stacked = slicing.stack([broadcast_last(c, shape) for c in arrays], 0)
    index = layout.expand_dims(broadcast_last(a, shape), (0,))
    return layout.squeeze(take_planned(stacked, index, 0, PLAIN), (0,))
