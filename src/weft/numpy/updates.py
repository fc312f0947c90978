"""Writing by index: `x.at[index].set(v)`, `.add(v)` and others, which return a changed copy.

index_plans.py has the meaning of an index. Static positions become slices and updates of slices;
only lookups become scatters. Slices are faster on CPU, have derivatives in both arguments, and
avoid a fault of XLA: it aborts if a scatter of a whole slice with `multiply` or `min` is fused with
a reversal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from weft import dtypes, lax
from weft.core.aval import ShapedArray, typeof
from weft.core.ref import AbstractRef
from weft.core.source import trim_traceback
from weft.core.trace import Tracer, is_eager
from weft.errors import MutationError, ShapeError
from weft.numpy import elementwise, index_plans, indexing, ufuncs
from weft.numpy.creation import asarray, asarray_beside
from weft.numpy.promotion import NUMBERS, as_array, axis_of, cast_operand, promote_operands
from weft.options import bounds_cell
from weft.primitives import dynamic_slicing, layout, slicing
from weft.primitives.elementwise import convert
from weft.primitives.reshard import compute_freely
from weft.run.eager import KERNELS
from weft.run.hot import is_hot
from weft.run.operation import NotForKernel, compile_function, operation
from weft.run.scalars import keep_number
from weft.util import check_option, warn_user
from weft.xla.array import ARRAYS, ArrayImpl
from weft.xla.typing import Array, ArrayLike, ShardingLike

# --- the operations ---------------------------------------------------------------------------


# What each method makes of old elements and values, and the scatter that does it.
OPERATIONS: dict[str, tuple[Callable, Callable | None]] = {
    "set": (lambda old, new: new, lax.scatter),
    "add": (ufuncs.add, lax.scatter_add),
    "subtract": (ufuncs.subtract, lax.scatter_sub),
    "multiply": (ufuncs.multiply, lax.scatter_mul),
    "divide": (ufuncs.divide, None),
    "power": (elementwise.power, None),
    "min": (ufuncs.minimum, lax.scatter_min),
    "max": (ufuncs.maximum, lax.scatter_max),
}
# Not to be applied to elements that stay: their derivative there may be NaN.
GUARDED = ("divide", "power", "apply")


def combine_values(op: str, old: Any, values: Any, func: Callable | None) -> Any:
    """Old elements combined with values, in the old ones' dtype."""
    aval = typeof(old)
    new = func(old) if func is not None else OPERATIONS[op][0](old, values)
    return convert(asarray(new), aval.dtype, aval.weak_type)


def check_cast(op: str, x: ShapedArray, values: Any) -> None:
    """Warn where values are cast to a dtype that does not hold all of their kind."""
    v = typeof(values)
    if x.dtype == v.dtype:
        return
    dtype, _ = dtypes.promote(((x.dtype, x.weak_type), (v.dtype, v.weak_type)), op)
    if dtype != x.dtype:
        warn_user(
            f"x.at[...].{op}: values should be of a dtype that casts safely to that of x; got {v} "
            f"for {x}. Hint: values.astype(x.dtype).",
            FutureWarning,
        )


def broadcast_values(op: str, values: Any, shape: Sequence[int]) -> Any:
    """Values broadcast to the shape of the places they are written to; scalars unchanged."""
    aval = typeof(values)
    rank = len(shape)
    if aval.ndim > rank or any(
        n not in (1, m) for n, m in zip(aval.shape, shape[rank - aval.ndim :], strict=True)
    ):
        raise ShapeError(
            f"x.at[...].{op}: values must broadcast to the shape of x[...], {tuple(shape)}; "
            f"got {aval}."
        )
    return indexing.broadcast_last(values, tuple(shape)) if aval.ndim else values


def convert_values(x: Any, values: Any, shape: Sequence[int]) -> Any:
    """Values as an array of the dtype of `x`; scalars are broadcast to `shape`."""
    (_, v) = promote_operands("set", x, values, shaped=False)
    if type(v) in NUMBERS:
        v = cast_operand("set", v, x.dtype)
    else:
        v = convert(v, x.dtype, x.aval.weak_type)
    return layout.broadcast_in_dim(v, shape, range(len(shape) - typeof(v).ndim, len(shape)))


# --- writing with a plan ----------------------------------------------------------------------


def write(
    x: Any,
    op: str,
    plan: index_plans.IndexPlan,
    arrays: Sequence[Any],
    values: Any,
    how: indexing.Access,
    func: Callable | None = None,
) -> Any:
    """`x` with the places that a plan asks for changed."""
    if op == "divide" and not dtypes.is_inexact(x.dtype):
        x = promote_operands(op, x, inexact=True)[0]
    fits = plan.inside or how.mode in (
        lax.GatherScatterMode.CLIP,
        lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )
    if not plan.lookups and not plan.slides and fits:
        return write_slice(x, op, plan, plan.slices.starts, values, func)
    return write_windows(x, op, plan, arrays, values, how, func)


def write_slice(
    x: Any,
    op: str,
    plan: index_plans.IndexPlan,
    starts: Sequence[Any],
    values: Any,
    func: Callable | None,
) -> Any:
    """`x` with a slice changed that starts at `starts`, numbers or scalars."""
    part = plan.slices
    sizes = part.sizes
    if func is None:
        values = shape_as_window(broadcast_values(op, values, plan.shape), part)
    if 0 in sizes:
        return x
    if op == "set":
        new = convert_values(x, values, sizes)
    else:
        old = x
        if part.steps is not None:
            old = slicing.slice(x, part.starts, part.limits, part.steps)
        elif not part.whole:
            old = slice_at(x, starts, sizes)
        new = combine_values(op, old, values, func)
    if part.steps is not None:
        return replace_strided(x, new, part)
    if part.whole:
        return new
    starts = dynamic_slicing.normalize_starts("dynamic_update_slice", x, starts, False)
    return lax.dynamic_update_slice_p.apply(x, new, *starts)[0]


def shape_as_window(values: Any, part: index_plans.Slices) -> Any:
    """Return values of x[...]'s shape in the shape of the slice they go to; scalars unchanged."""
    if not typeof(values).ndim:
        return values
    kept = [n for i, n in enumerate(part.sizes) if i not in part.squeezed]
    axes = [i - sum(d < i for d in part.squeezed) for i in part.rev]
    return layout.reshape(layout.rev(layout.reshape(values, kept), axes), part.sizes)


def slice_at(x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> Any:
    """A slice of `x`."""
    if all(type(i) is int for i in starts):
        return slicing.slice(x, starts, [i + n for i, n in zip(starts, sizes, strict=True)])
    return dynamic_slicing.slice_clamped(x, starts, sizes)


def replace_strided(x: Any, new: Any, part: index_plans.Slices) -> Any:
    """`x` with a strided slice replaced by `new`."""
    config = tuple(map(slicing.pad_around, x.shape, part.starts, part.sizes, part.steps or ()))
    rest = slicing.padding_mask(typeof(new), config)
    between = layout.zeros(typeof(x).update(shape=()))  # is not selected
    return lax.select(rest, x, slicing.pad(new, between, config))


def write_windows(
    x: Any,
    op: str,
    plan: index_plans.IndexPlan,
    arrays: Sequence[Any],
    values: Any,
    how: indexing.Access,
    func: Callable | None,
) -> Any:
    """`x` with looked-up places changed, by scatter."""
    whole = x
    if plan.grown:
        x = layout.expand_dims(x, plan.grown)
    windows = plan.windows
    dims = lax.ScatterDimensionNumbers(
        windows.offset_dims, windows.collapsed, tuple(c.axis for c in windows.columns)
    )
    indices = indexing.make_index_vectors(windows, arrays, how.wrap_negative_indices)
    flags = dict(
        indices_are_sorted=how.indices_are_sorted or not windows.batch,
        unique_indices=how.unique_indices or not windows.batch,
        mode=how.mode,
    )
    if func is None and op == "set" and not typeof(values).ndim and are_rows(x.aval, windows):
        dims = lax.ScatterDimensionNumbers((), windows.collapsed, windows.collapsed)
        no = layout.full(x.shape[: len(windows.collapsed)], False, bool)
        mask = lax.scatter(no, indices, layout.full(windows.batch, True, bool), dims, **flags)
        return layout.reshape(write_masked(x, op, mask, values, None), whole.shape)
    if func is None:
        values = broadcast_values(op, values, plan.shape)
    if 0 in windows.shape:  # nothing is written; and a window of x, if empty too, would not fit
        return whole
    if func is not None:
        out = lax.scatter_apply(x, indices, func, dims, update_shape=windows.shape, **flags)
        return layout.reshape(out, whole.shape)
    if op == "set":
        x_like, values = x, convert_values(x, values, plan.shape)
    else:
        x_like, values = promote_operands(op, x, values, shaped=False)
        values = layout.broadcast_in_dim(values, plan.shape, range(typeof(values).ndim))
    values = layout.reshape(values, windows.shape)
    combine, spread_out = OPERATIONS[op]
    if spread_out is None:  # 1 where nothing changes: x / 1 and x ** 1 are x
        ones = layout.full(x_like.shape, 1, x_like.dtype)
        return combine_values(
            op,
            whole,
            layout.reshape(lax.scatter_mul(ones, indices, values, dims, **flags), whole.shape),
            None,
        )
    out = spread_out(x_like, indices, values, dims, **flags)
    return layout.reshape(convert(out, whole.dtype, whole.aval.weak_type), whole.shape)


def are_rows(x: ShapedArray, windows: index_plans.Windows) -> bool:
    """Return True if windows cover so many rows of a large array that a select is faster."""
    k, size, places = len(windows.columns), x.size, [c.axis for c in windows.columns]
    whole = places == [*range(k)] == [*windows.collapsed] and windows.sizes[k:] == x.shape[k:]
    large = whole and x.sharded is None and type(size) is int and size >= 1 << 14
    return large and math.prod(x.shape[k:]) >= 16 and 4 * math.prod(windows.shape) >= size


def write_masked(x: Any, op: str, mask: Any, values: Any, func: Callable | None) -> Any:
    """`x` changed where `mask` holds, by values that do not depend on how many places these are."""
    if op == "divide" and not dtypes.is_inexact(x.dtype):
        x = promote_operands(op, x, inexact=True)[0]
    if func is None:
        if typeof(values).ndim > x.ndim - typeof(mask).ndim:  # the axis of places has size 1
            values = layout.squeeze(values, (0,))
        values = broadcast_values(op, values, x.shape[typeof(mask).ndim :])
    where = layout.broadcast_in_dim(mask, x.shape, range(typeof(mask).ndim))
    old = x
    if op in GUARDED:
        old = lax.select(where, x, layout.full(x.shape, 1, x.dtype))
    new = (
        convert_values(x, values, x.shape) if op == "set" else combine_values(op, old, values, func)
    )
    return lax.select(where, new, x)


def fits_mask(x: ShapedArray, mask: Any, values: Any) -> bool:
    """Return True if an index masks leading axes, and the values are the same at all places."""
    if not isinstance(mask, ArrayImpl | Tracer | np.ndarray):
        return False
    m = typeof(mask)
    if not dtypes.is_bool(m.dtype) or not m.ndim or x.shape[: m.ndim] != m.shape:
        return False
    v = typeof(values)
    rest = x.ndim - m.ndim
    return v.ndim <= rest or (v.ndim == rest + 1 and v.shape[0] == 1)


# --- x.at[...] --------------------------------------------------------------------------------


def update_places(
    x: Any, index: Any, op: str, values: Any, how: indexing.Access, func: Callable | None
) -> Any:
    """x with x[index] changed."""
    if type(values) is not ArrayImpl and type(values) not in NUMBERS:
        values = asarray_beside(values, x)
    if func is None and op != "divide":
        check_cast(op, x.aval, values)
    own, at = None, ()
    now = type(x) in ARRAYS and func is None and is_eager()
    if now and how.wrap_negative_indices:
        plain: Any = ((index,), ()) if type(index) is int else index_plans.split_plain(index)
        if plain and (not plain[1] or bounds_cell.value is True):
            key, at = plain
            own = KERNELS.get((x.aval, op, key, how if at else how.donates))
    if type(index) is tuple and len(index) == 1 and not isinstance(index[0], tuple | list):
        (index,) = index
    masked = own is None and fits_mask(x.aval, index, values)
    if now:
        values = keep_number(values)
        try:
            if masked:
                return remember_kernel(
                    ("mask", op), lambda x, mask, v: write_masked(x, op, mask, v, None)
                )(x, index, values)
            if own is not None:
                return own(x, values, *at) if at else own(x, values)
            return update_eagerly(x, index, op, values, how)
        except NotForKernel:
            pass
        except Exception as error:
            trim_traceback(error)
            raise
    if masked:
        return write_masked(x, op, index, values, func)
    plan, arrays = indexing.plan_traced(x.aval, index, how)
    return write(x, op, plan, arrays, values, how, func)


def remember_kernel(key: tuple, fun: Callable, donates: bool = False) -> Callable:
    """The compiled program remembered under a key, made of `fun` when it is new."""
    kernel = KERNELS.get(key)
    if kernel is None:
        kernel = KERNELS[key] = compile_function(fun, key[1], (0,) if donates else ())
    return kernel


def update_eagerly(x: Any, index: Any, op: str, values: Any, how: indexing.Access) -> Any:
    """x with x[index] changed now, by one compiled program that takes numbers as arguments."""
    aval = x.aval
    key = index_plans.static_key(index) if how.wrap_negative_indices else None
    if key is not None:
        plan = index_plans.plan_index(aval, key)
        if not plan.inside and how.checked:
            index_plans.check_places(aval, plan)
        if plan.inside:
            return update_slice_eagerly(x, key, plan, op, values, how.donates)
    key, arrays = index_plans.split_index(aval, index)
    plain = how.wrap_negative_indices and bounds_cell.value is True
    if not plain or not is_hot((aval, op), (key, how)):
        key, arrays = indexing.move_numbers(key, arrays)
    plan = indexing.check_plan(aval, key, arrays, how)
    kernel = remember_kernel(
        (aval, op, key, how),
        lambda x, values, *arrays: write(x, op, plan, arrays, values, how),
        how.donates,
    )
    return kernel(x, values, *arrays)


def update_slice_eagerly(
    x: Any, key: index_plans.Key, plan: index_plans.IndexPlan, op: str, values: Any, donates: bool
) -> Any:
    """x with a static slice changed now."""
    part = plan.slices
    own = (x.aval, op, key, donates)
    if own in KERNELS or part.fixed or is_hot((x.aval, op), own):
        return remember_kernel(
            own, lambda x, values: write(x, op, plan, (), values, indexing.PLAIN), donates
        )(x, values)
    sizes = part.sizes
    moving = [i for i, (m, n) in enumerate(zip(sizes, x.aval.shape, strict=True)) if m != n]

    def at(x: Any, values: Any, starts: Sequence[Any]) -> Any:
        every: list[Any] = [0] * len(sizes)
        for i, start in zip(moving, starts, strict=True):
            every[i] = start
        if op == "divide" and not dtypes.is_inexact(x.dtype):
            x = promote_operands(op, x, inexact=True)[0]
        return write_slice(x, op, plan, every, values, None)

    how = (sizes, part.rev, part.squeezed, plan.new, donates)
    kernel = remember_kernel((x.aval, op, *how), at, donates)
    return kernel(x, values, [part.starts[i] for i in moving])


def refuse_setitem(x: Any, index: Any, value: Any) -> None:
    """Refuse x[index] = value: arrays do not change, but what a reference holds does."""
    if type(x.aval) is AbstractRef:
        return x.aval.setitem(x, index, value)
    at = index_plans.show_index(index)
    raise MutationError(
        f"array: an array must not be assigned into; got x[{at}] = ... on {x.aval}. "
        f"Hint: x = x.at[{at}].set(value)."
    )


class At:
    """The result of `x.at`: x.at[index] names elements, to be read or written in a changed copy.

    Of a reference they are read and written in place.
    """

    __slots__ = ("array",)

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, index: Any) -> Places:
        if type(self.array.aval) is AbstractRef:
            return self.array.aval.part(self.array, index)
        return Places(self.array, index)

    def __repr__(self) -> str:
        return f"At({self.array!r})"


class Write(Protocol):
    """A method of `x.at[index]` that writes values."""

    def __call__(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | lax.GatherScatterMode | None = None,
        out_sharding: ShardingLike = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...


class Places:
    """The result of `x.at[index]`: elements of x. Each method returns an array; x stays unchanged.

    Every method takes these keywords. `mode` is the treatment of indices out of bounds. "drop" or
    "fill" ignores writes and reads `fill_value`; "clip" moves them inside; "promise_in_bounds" is
    the caller's promise that all are in bounds. By default a Python number out of bounds raises;
    computed indices out of bounds are ignored by writes and clamped by reads. `out_sharding` is the
    sharding of the result over explicit axes of a mesh. `indices_are_sorted` and `unique_indices`
    are promises of the caller. With `wrap_negative_indices=False` negative indices are out of
    bounds.

    >>> x = jnp.array([1.0, 2.0, 3.0])
    >>> x.at[0].set(9.0)
    Array([9., 2., 3.], dtype=float32)
    >>> x.at[jnp.array([1, 1])].add(1.0)
    Array([1., 4., 3.], dtype=float32)
    """

    __slots__ = ("array", "index")
    set: Write
    add: Write
    subtract: Write
    multiply: Write
    mul: Write
    divide: Write
    power: Write
    min: Write
    max: Write

    def __init__(self, array: Any, index: Any):
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"Places({self.array!r}, {self.index!r})"

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | lax.GatherScatterMode | None = None,
        fill_value: ArrayLike | None = None,
        out_sharding: ShardingLike = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return the elements x[index], with options for indices out of bounds."""
        flags = indices_are_sorted, unique_indices, wrap_negative_indices
        if mode is fill_value is out_sharding is None and flags == (False, False, True):
            return indexing.getitem(self.array, self.index)
        how = indexing.read_keywords(self.array.aval, mode, fill_value, *flags)
        read = lambda x, index: indexing.getitem_with(x, index, how)
        return compute_freely("x.at[...].get", out_sharding, read, self.array, self.index)

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | lax.GatherScatterMode | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x with an elementwise function applied to the elements, as often as each is named."""
        flags = indices_are_sorted, unique_indices, wrap_negative_indices
        how = indexing.read_keywords(self.array.aval, mode, None, *flags)
        return update_places(self.array, self.index, "apply", 0, how, func)


def make_writer(name: str, op: str, doc: str) -> Callable:
    """The method of Places that does an operation."""

    def method(
        self: Places,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | lax.GatherScatterMode | None = None,
        out_sharding: ShardingLike = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        x, how = self.array, indexing.PLAIN
        plain = mode is None and wrap_negative_indices is True
        if not plain or indices_are_sorted or unique_indices:
            flags = indices_are_sorted, unique_indices, wrap_negative_indices
            how = indexing.read_keywords(x.aval, mode, None, *flags)
        if out_sharding is None:
            return update_places(x, self.index, op, values, how, None)
        write = lambda x, index, values: update_places(x, index, op, values, how, None)
        return compute_freely(f"x.at[...].{op}", out_sharding, write, x, self.index, values)

    method.__name__, method.__qualname__, method.__doc__ = name, f"Places.{name}", doc
    return method


for _name, _op, _doc in (
    ("set", "set", "x with the elements replaced; which value stays where places repeat is open."),
    ("add", "add", "x with values added to the elements, once for each time a place is named."),
    ("subtract", "subtract", "x with values subtracted from the elements."),
    ("multiply", "multiply", "x with the elements multiplied by values."),
    ("mul", "multiply", "x with the elements multiplied by values."),
    ("divide", "divide", "x with the elements divided by values; integers become floats."),
    ("power", "power", "x with the elements raised to the power of values."),
    ("min", "min", "x with the smaller of elements and values."),
    ("max", "max", "x with the larger of elements and values."),
):
    setattr(Places, _name, make_writer(_name, _op, _doc))


# --- functions --------------------------------------------------------------------------------


def refuse_inplace(op: str, inplace: bool) -> None:
    """Refuse to write into an array."""
    if inplace:
        raise MutationError(
            f"{op}: an array must not be written into; got inplace=True, NumPy's way. "
            f"Hint: x = jnp.{op}(x, ..., inplace=False)."
        )


def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """Return a copy of an array with elements at positions of the flattened array replaced.

    Args:
      a: an array.
      ind: an array of integers, positions in the flattened array. Negative ones count from the end.
      v: the new elements. They are repeated if there are fewer of them than positions.
      mode: the treatment of positions out of range: "clip" moves them to the ends, and "wrap"
        counts modulo the size. None, the default, is "clip".
      inplace: it must be False, since arrays are immutable. The default is True, as in NumPy.

    Returns:
      An array of the shape and dtype of `a`.

    Raises:
      MutationError: `inplace` is True.

    >>> print(jnp.put(jnp.zeros(3), jnp.array([0, 2]), jnp.array([5.0, 6.0]), inplace=False))
    [5. 0. 6.]
    >>> print(jnp.put(jnp.zeros(3), jnp.array([4]), 1.0, mode="wrap", inplace=False))
    [0. 1. 0.]
    """
    refuse_inplace("put", inplace)
    a, ind = as_array(a, "put"), indexing.check_integer_indices("put", ind)
    v = asarray_beside(v, a)
    check_option("put", "mode", mode, None, "clip", "wrap")
    flat = layout.reshape(a, (a.size,))
    if mode is None:
        indexing.check_along(flat, 0, ind)
    ind = as_array(ind, "put")
    if not ind.size or not v.size:
        return a
    ind = layout.reshape(ind, (ind.size,))
    v = repeat_vector(layout.reshape(v, (v.size,)), ind.size)
    if mode == "wrap":
        ind = indexing.wrap_around(ind, a.size)
    how = indexing.read_keywords(flat.aval, "clip", wrap_negative_indices=mode is None)
    return layout.reshape(update_places(flat, ind, "set", v, how, None), a.shape)


def repeat_vector(v: Any, count: int) -> Any:
    """The first `count` elements of endless repetitions of a vector."""
    times = -(-count // max(v.size, 1))
    v = slicing.tile(v, (times,)) if times > 1 else v
    return slicing.slice_in_dim(v, 0, count) if v.size > count else v


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """Return a copy of an array with the elements that `take_along_axis` would read replaced.

    Args:
      arr: an array.
      indices: an array of integers, of the rank of `arr`. It broadcasts with `arr` in the other
        axes.
      values: the new elements, which broadcast with `indices`.
      axis: the axis that the indices count along, an int. None counts in the flattened array.
      inplace: it must be False, since arrays are immutable. The default is True, as in NumPy.
      mode: the treatment of indices out of range, as in `x.at[...]`. None is the default there.

    Returns:
      An array of the shape and dtype of `arr`.

    Raises:
      MutationError: `inplace` is True.

    >>> best = jnp.array([[0], [1]])
    >>> print(jnp.put_along_axis(jnp.zeros((2, 2)), best, 7.0, 1, inplace=False))
    [[7. 0.]
     [0. 7.]]
    """
    op = "put_along_axis"
    refuse_inplace(op, inplace)
    arr, indices = as_array(arr, op), as_array(indexing.check_integer_indices(op, indices), op)
    if axis is None:
        flat = put_along_axis(
            layout.reshape(arr, (arr.size,)), indices, values, 0, False, mode=mode
        )
        return layout.reshape(flat, arr.shape)
    axis = axis_of(op, axis, arr.ndim)
    shape = tuple(
        n if i == axis else m for i, (m, n) in enumerate(zip(arr.shape, indices.shape, strict=True))
    )
    if mode is None:
        indexing.check_along(arr, axis, indices)
    return put_planned(
        arr,
        indexing.broadcast_last(indices, shape),
        asarray_beside(values, arr),
        axis,
        indexing.read_keywords(arr.aval, mode),
    )


@operation(static=("axis", "how"))
def put_planned(arr: Any, indices: Any, values: Any, axis: int, how: indexing.Access) -> Any:
    """Compute `put_along_axis` for checked arguments; indices have the shape of the values."""
    found = indexing.plan_along("put_along_axis", arr.aval, indices.aval, axis)
    i = layout.reshape(indexing.wrap_positions(indices, arr.shape[axis], True), found.indices_shape)
    v = convert_values(arr, broadcast_values("set", values, indices.shape), indices.shape)
    return lax.scatter(arr, i, v, lax.ScatterDimensionNumbers(*found.dims), mode=how.mode)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """Return a copy of an array with the elements under a mask replaced, in order.

    Args:
      arr: an array.
      mask: an array of bools of the shape of `arr`.
      vals: the new elements. They are repeated if there are fewer of them than True elements.
      inplace: it must be False, since arrays are immutable. The default is True, as in NumPy.

    Returns:
      An array of the shape and dtype of `arr`.

    Raises:
      MutationError: `inplace` is True.

    >>> mask = jnp.array([True, False, True])
    >>> print(jnp.place(jnp.zeros(3), mask, jnp.array([5.0, 6.0]), inplace=False))
    [5. 0. 6.]
    """
    refuse_inplace("place", inplace)
    arr, mask = as_array(arr, "place"), as_array(mask, "place")
    vals = asarray_beside(vals, arr)
    if mask.size != arr.size:
        raise ShapeError(f"place: mask must be of the size of arr; got {mask.aval}, {arr.aval}.")
    if not vals.size:
        raise ShapeError(f"place: there must be values; got {vals.aval}.")
    return place_arrays(arr, mask, layout.reshape(vals, (vals.size,)))


@operation
def place_arrays(arr: Any, mask: Any, vals: Any) -> Any:
    """`place` for arrays."""
    flags = layout.reshape(convert(mask, np.dtype(bool)), (arr.size,))
    rank = lax.sub(
        lax.cumsum(convert(flags, np.dtype(np.int32))), layout.literal(1, np.dtype(np.int32))
    )
    new = indexing.getitem_with(vals, indexing.wrap_around(rank, vals.size), indexing.PLAIN)
    flat = layout.reshape(arr, (arr.size,))
    return layout.reshape(lax.select(flags, convert_values(flat, new, flat.shape), flat), arr.shape)
