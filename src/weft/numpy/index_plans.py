"""The meaning of an index: from `x[i, 2:5, ..., idx]` to slices of axes and gathers.

An index is split into its static part, a hashable key, and the arrays in it; what the key asks for
of an array type is worked out once, an `IndexPlan`, and remembered. Reading with a plan is in
indexing.py, writing in updates.py.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes, errors
from weft.core.aval import ShapedArray, typeof
from weft.core.trace import Tracer
from weft.numpy.creation import asarray
from weft.numpy.promotion import broadcast_shapes
from weft.options import config
from weft.primitives.checks import check_index, check_inside
from weft.primitives.dynamic_slicing import MOST
from weft.primitives.families import check_integer
from weft.util import as_size, max_size, memoize, min_size
from weft.xla.array import ArrayImpl

# Entries of a key: an int, None, Ellipsis, a slice as (start, stop, step), the type of an array, a
# Sliding slice.
Key = tuple[Any, ...]


class Slice:
    """A slice of static size from a start that may be traced: what `weft.ds` gives, an index.

    It has `start`, `size` and `stride`.
    """

    __slots__ = ("size", "start", "stride")

    def __init__(self, start: Any, size: int, stride: int = 1):
        self.start = start
        self.size = as_static("size", size)
        self.stride = as_static("stride", stride)
        if self.size < 0 or self.stride < 1:
            raise ValueError(
                f"ds: size must be 0 or more, and stride 1 or more; got {size} and {stride}."
            )

    def __repr__(self) -> str:
        return f"Slice(start={self.start}, size={self.size}, stride={self.stride})"

    def enter(self, size: int, key: list, arrays: list) -> None:
        """Enter it into key and arrays, for an axis of this size."""
        span = (self.size - 1) * self.stride + 1
        if isinstance(self.start, int | np.integer) and 0 <= self.start <= size - span:
            start = int(self.start)
            key.append((start, start + span, self.stride) if self.size else (0, 0, 1))
            return
        start = convert_to_index(self.start)
        aval = typeof(start)
        if aval.ndim or not dtypes.is_integer(aval.dtype):
            raise errors.IndexingError(f"ds: start must be a scalar integer; got {aval}.")
        key.append(Sliding(self.size, self.stride))
        arrays.append(start)


def as_static(name: str, x: Any) -> int:
    """A size or stride of a slice, which must be known now."""
    if isinstance(x, Tracer):
        hint = "the size is part of the type; jnp.where or a mask hides what is too much."
        x = x.concrete(errors.IndexingError, f"ds: {name}", hint)
    return check_integer("ds", name, x)


def ds(start: Any, size: Any = None, stride: int | None = None) -> Slice | slice:
    """Return an index of `size` elements from a start that may be traced: `x[ds(i, 3)]`.

    Slices such as `x[i:i + 3]` need numbers that are known while a function is traced, since they
    decide a shape. A dynamic slice has a static size and a start that may be computed.

    Args:
      start: an int, or a traced integer. Negative starts count from the end. Without `size` it is
        the end, so that `ds(n)` is `:n`, and `ds(None)` is `:`.
      size: the number of elements, an int.
      stride: the distance between elements, an int. None, the default, is 1.

    Returns:
      An index for `x[...]` and `x.at[...]`. Where the elements would not fit, reading moves the
      start back, as `lax.dynamic_slice` does. Writing there has no effect.

    >>> x = jnp.arange(10)
    >>> weft.jit(lambda i: x[weft.ds(i, 3)])(4)
    Array([4, 5, 6], dtype=int32)
    >>> x.at[weft.ds(8, 2)].set(0)
    Array([0, 1, 2, 3, 4, 5, 6, 7, 0, 0], dtype=int32)
    """
    if start is None:
        return slice(None)
    if size is None:
        start, size = 0, start
    return Slice(start, size, 1 if stride is None else stride)


# --- from an index to a key and arrays --------------------------------------------------------


def split_plain(index: Any) -> tuple[Key, list] | None:
    """Do as `split_index` does, if all items are numbers, slices, None, `...` or Arrays."""
    key, arrays = [], []  # type: list[Any], list[Any]
    for item in index if type(index) is tuple else (index,):
        kind = type(item)
        if kind is slice:
            item = item.start, item.stop, item.step
            for b in item:
                if b is not None and type(b) is not int:
                    return None
        elif kind is ArrayImpl:
            arrays.append(item)
            item = item.aval
        elif kind is not int and item is not None and item is not Ellipsis:
            return None
        key.append(item)
    return tuple(key), arrays


def static_key(index: Any) -> Key | None:
    """The key of an index of numbers, slices of numbers, None and `...`; else None."""
    found = split_plain(index)
    return None if found is None or found[1] else found[0]


def split_index(x: ShapedArray, index: Any) -> tuple[Key, list]:
    """The key of any index and the arrays in it; masks become the places where they are true."""
    if isinstance(index, list):
        raise errors.IndexingError(
            f"x[...]: an index must not be a list; got {show_index(index)}. "
            f"Hint: x[jnp.array({show_index(index)})], or x[tuple(...)] for an index for each axis."
        )
    items = [convert_to_index(i) for i in (index if isinstance(index, tuple) else (index,))]
    key: list[Any] = []
    arrays: list[Any] = []
    for i, item in enumerate(items):
        kind = type(item)
        if kind is int or item is None or item is Ellipsis:
            key.append(item)
        elif kind is slice:
            key.append(tuple([slice_bound(b, item) for b in (item.start, item.stop, item.step)]))
        elif kind is Slice:
            axis = find_axis(x, items, i)
            item.enter(x.shape[axis] if axis < x.ndim else 0, key, arrays)
        elif dtypes.is_bool(typeof(item).dtype):
            add_mask(x, items, i, key, arrays)
        else:
            add_array(item, key, arrays)
    return tuple(key), arrays


def show_index(x: Any) -> str:
    """An index as code, if short."""
    if type(x) is tuple and x:
        return ", ".join(map(show_index, x))
    if type(x) is slice:
        bounds = (x.start, x.stop, x.step)[: 2 + (x.step is not None)]
        return ":".join("" if b is None else show_index(b) for b in bounds)
    text = repr(x)
    return "..." if x is Ellipsis else "i" if isinstance(x, Tracer) or len(text) > 40 else text


def slice_bound(b: Any, item: slice) -> int | None:
    """A bound of a slice, which must be known now."""
    if b is None or type(b) is int:
        return b
    if isinstance(b, Tracer):
        op = "x[start:stop]"
        hint = "lax.dynamic_slice(x, (start,), (size,)) has a static size and a traced start."
        if not (isinstance(item.start, Tracer) and isinstance(item.stop, Tracer)):
            op = f"x[{show_index(item).replace('i', 'n')}]: the size"
            hint = "jnp.where(jnp.arange(len(x)) < n, x, 0), a mask."
            if b is item.start:
                hint = hint.replace("<", ">=")
        b = b.concrete(errors.IndexingError, op, hint)
    try:
        return as_size(b)
    except TypeError:
        raise errors.IndexingError(f"x[start:stop]: bounds must be integers; got {b!r}.") from None


def convert_to_index(item: Any) -> Any:
    """An entry of an index as an int, a slice, None, `...`, or an array or tracer."""
    kind = type(item)
    if kind is int or kind is slice or item is None or item is Ellipsis or kind is Slice:
        return item
    if kind is ArrayImpl or isinstance(item, Tracer | np.ndarray | bool | np.bool_):
        return item
    if isinstance(item, list | tuple):  # within a tuple, as in x[[0, 1], [1, 2]]
        try:
            found = np.asarray(item) if len(item) else np.zeros(0, np.int32)
        except errors.TracerError:
            return asarray(item)
        if found.dtype != object:
            return found
    if hasattr(item, "__jax_array__"):
        return item.__jax_array__()
    try:
        return operator.index(item)
    except TypeError:
        raise errors.IndexingError(
            "x[...]: an index must be an integer, a slice, `...`, None or an array of integers or "
            f"bools; got {show_index(item)} of type {type(item).__name__}."
        ) from None


def add_array(item: Any, key: list, arrays: list) -> None:
    """Enter an array of integers into key and arrays."""
    aval = typeof(item)
    if not dtypes.is_integer(aval.dtype):
        raise errors.IndexingError(f"x[...]: an index must be of integers or bools; got {aval}.")
    if isinstance(item, np.ndarray):
        if aval.ndim == 0:
            key.append(int(item))
            return
        item = narrow_indices(item, aval.dtype)
    key.append(aval)
    arrays.append(item)


def narrow_indices(i: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return indices in an integer dtype. If it cannot hold one, that stays out of bounds."""
    if i.dtype == dtype:
        return i
    limits = np.iinfo(dtype)
    return np.clip(i, limits.min, limits.max).astype(dtype)


def add_mask(x: ShapedArray, items: list, at: int, key: list, arrays: list) -> None:
    """Enter the places where entry `at` of an index, a mask, is true."""
    mask = typeof(items[at])
    if mask.ndim == 0:
        key.append(ScalarMask(int(bool(require_mask(items[at])))))
        arrays.append(np.zeros(key[-1].count, np.int32))
        return
    first = find_axis(x, items, at)
    covered = x.shape[first : first + mask.ndim]
    if mask.shape != covered:
        raise errors.IndexingError(
            f"x[mask]: a mask must have the shape of the axes it indexes, {covered}; "
            f"got {mask} for {x}."
        )
    for places in np.nonzero(require_mask(items[at])):
        arrays.append(places.astype(np.int32))
        key.append(typeof(arrays[-1]))


def find_axis(x: ShapedArray, items: list, at: int) -> int:
    """The first axis of `x` that entry `at` of an index is for."""
    first = sum(map(count_axes, items[:at]))
    if any(i is Ellipsis for i in items[:at]):
        first += x.ndim - sum(map(count_axes, items))
    return first


def count_axes(item: Any) -> int:
    """Return the number of axes that an entry of an index stands for."""
    if item is None or item is Ellipsis:
        return 0
    if type(item) in (int, slice, Slice):
        return 1
    aval = typeof(item)
    return aval.ndim if dtypes.is_bool(aval.dtype) else 1


class ScalarMask(NamedTuple):
    """A key's entry for x[True] or x[False]: `count` places along a new axis of size 1."""

    count: int


class Sliding(NamedTuple):
    """A key's entry for a Slice: `count` elements from where an array says, `step` apart."""

    count: int
    step: int


def require_mask(item: Any) -> np.ndarray:
    """A mask's values, which must be known now."""
    if isinstance(item, Tracer):
        hint = (
            "jnp.where(mask, x, 0) keeps the shape; jnp.nonzero(mask, size=n) gives at most n "
            "places; x.at[mask].set(0) works."
        )
        item = item.concrete(errors.NonConcreteBooleanIndexError, "x[mask]", hint)
    return np.asarray(item)


# --- from a key to a plan ---------------------------------------------------------------------


class Span(NamedTuple):
    """A slice of an axis: `count` elements from `start` on, `step` apart."""

    axis: int
    start: int
    count: int
    step: int
    size: int
    stop: Any = None  # the stop of a symbolic slice forward


class Place(NamedTuple):
    """One position on an axis, known now."""

    axis: int
    index: int
    size: int


class Lookup(NamedTuple):
    """Positions on an axis given by array number `array` of the index."""

    axis: int
    array: int
    shape: tuple[int, ...]
    size: int


class Slide(NamedTuple):
    """A slice of an axis as Span is, from where array number `array` of the index says."""

    axis: int
    array: int
    count: int
    step: int
    size: int


class IndexPlan:
    """The meaning of an index for an array x.

    `entries` has an entry for each axis of x, in order. `new` are the axes of size 1 in the result,
    of shape `shape`. `lookups` are the entries that are Lookup. Their arrays broadcast to `looked`;
    in the result, these axes come after `before` axes of spans. `slides` are the entries that are
    Slide. `grown` are axes of size 1 that x gets first, for x[True]. `inside`: no number is out of
    bounds.
    """

    def __init__(
        self,
        entries: Sequence[Span | Place | Lookup | Slide],
        new: Sequence[int],
        shape: Sequence[int],
        looked: tuple[int, ...] = (),
        before: int = 0,
        grown: tuple[int, ...] = (),
    ):
        self.entries = tuple(entries)
        self.new = tuple(new)
        self.shape = tuple(shape)
        self.looked = looked
        self.before = before
        self.grown = grown
        self.lookups = tuple(e for e in entries if type(e) is Lookup)
        self.slides = tuple(e for e in entries if type(e) is Slide)
        self.inside = all(type(e) is not Place or 0 <= e.index < e.size for e in entries)

    @functools.cached_property
    def windows(self) -> Windows:
        """The plan as windows at looked-up places."""
        return make_windows(self)

    @functools.cached_property
    def slices(self) -> Slices:
        """The plan as static slices."""
        return make_slices(self)


def expand_key(x: ShapedArray, key: Key) -> Key:
    """Return the key with `...` and the axes not mentioned written out as slices of everything.

    An `...` for no axes stays: NumPy takes arrays on its two sides to be apart.
    """
    used = sum(1 for k in key if k is not None and k is not Ellipsis and type(k) is not ScalarMask)
    if used > x.ndim:
        raise errors.IndexingError(
            f"x[...]: there must be at most one index for each axis; got {used} for {x}."
        )
    dots = [i for i, k in enumerate(key) if k is Ellipsis]
    if len(dots) > 1:
        raise errors.IndexingError(
            f"x[...]: at most one `...` may stand in an index; got {len(dots)}."
        )
    if dots and used == x.ndim:
        return key
    at = dots[0] if dots else len(key)
    return (*key[:at], *[(None, None, None)] * (x.ndim - used), *key[at + 1 :])


@memoize
def plan_index(x: ShapedArray, key: Key) -> IndexPlan:
    """Work out what a key asks for of an array of type `x`."""
    entries: list[Any] = []
    order: list[Any] = []  # as written: the entries, None for each new axis, `...` for no axes
    grown: list[int] = []
    sizes = list(x.shape)
    count = 0
    for k in expand_key(x, key):
        axis = len(entries)
        if k is None or k is Ellipsis:
            order.append(k)
            continue
        if type(k) is ScalarMask:
            sizes.insert(axis, 1)
            grown.append(axis)
            entries.append(Lookup(axis, count, (k.count,), 1))
            count += 1
        elif isinstance(k, ShapedArray):
            entries.append(Lookup(axis, count, k.shape, sizes[axis]))
            count += 1
        elif type(k) is int:
            n = sizes[axis]
            entries.append(Place(axis, k + n if k < 0 else k, n))
        elif type(k) is Sliding:
            if (k.count - 1) * k.step >= sizes[axis]:
                raise errors.IndexingError(
                    f"ds: a slice must fit the axis; got {k.count} elements, {k.step} apart, for "
                    f"axis {axis} of {x}."
                )
            entries.append(Slide(axis, count, *k, sizes[axis]))
            count += 1
        else:
            entries.append(make_span(axis, k, sizes[axis]))
        order.append(entries[-1])
    return arrange_entries(entries, order, tuple(grown))


def make_span(axis: int, bounds: tuple, size: int) -> Span:
    """A slice of an axis of this size."""
    try:
        found = range(*slice(*bounds).indices(size))
    except errors.InconclusiveDimensionOperation:
        return make_symbolic_span(axis, bounds, size)
    except ValueError:
        raise ValueError("x[start:stop:step]: the step must not be zero; got 0.") from None
    return Span(
        axis,
        found.start if len(found) else 0,
        len(found),
        found.step if len(found) > 1 else 1,
        size,
    )


def make_symbolic_span(axis: int, bounds: tuple, size: Any) -> Span:
    """Return a slice with a symbolic bound or size: Python's rule, written with min and max."""
    start, stop, step = bounds
    step = 1 if step is None else step
    if step == 0:
        raise ValueError("x[start:stop:step]: the step must not be zero; got 0.")
    low, high = (0, size) if step > 0 else (-1, size - 1)
    first, last = (low, high) if step > 0 else (high, low)
    place = lambda b: max_size(b + size, low) if b < 0 else min_size(b, high)
    start = first if start is None else place(start)
    stop = last if stop is None else place(stop)
    span = stop - start if step > 0 else start - stop
    count = max_size((span + abs(step) - 1) // abs(step), 0)
    return Span(axis, start, count, step, size, stop if step > 0 else None)


def arrange_entries(entries: list, order: list, grown: tuple[int, ...]) -> IndexPlan:
    """The plan for entries in the order written: NumPy's rule for where looked-up axes go."""
    lookups = [e for e in entries if type(e) is Lookup]
    looked = broadcast_lookups(lookups)
    at = [i for i, e in enumerate(order) if type(e) in (Lookup, Place)] if lookups else []
    together = bool(at) and at[-1] - at[0] == len(at) - 1
    first = at[0] if together else 0
    kept = [
        [e for e in part if type(e) in (Span, Slide, NoneType)]
        for part in (order[:first], order[first:])
    ]
    shape: list[int] = []
    new: list[int] = []
    for e in (*kept[0], *looked, *kept[1]):
        if e is None:
            new.append(len(shape))
        shape.append(1 if e is None else e.count if type(e) in (Span, Slide) else e)
    before = sum(1 for e in kept[0] if e is not None)
    return IndexPlan(entries, new, shape, looked, before, grown)


def broadcast_lookups(lookups: Sequence[Lookup]) -> tuple[int, ...]:
    """The shape that the arrays of an index broadcast to together; () where there are none."""
    shapes = [e.shape for e in lookups]
    try:
        return broadcast_shapes(*shapes)
    except errors.ShapeError:
        raise errors.IndexingError(
            f"x[...]: arrays in an index must broadcast together; got shapes {shapes}."
        ) from None


# --- a plan as slices, and as windows ---------------------------------------------------------


class Slices(NamedTuple):
    """A plan without lookups: a slice of x, then reversed along `rev`, then without `squeezed`.

    `steps` is None where all are 1; `whole`: the slice is all of x.
    """

    starts: tuple[int, ...]
    limits: tuple[int, ...]
    steps: tuple[int, ...] | None
    rev: tuple[int, ...]
    squeezed: tuple[int, ...]
    whole: bool

    @property
    def fixed(self) -> bool:
        """Return True if no program can take the start as an operand: strided, or not an int32."""
        return self.steps is not None or self.whole or max(self.starts, default=0) > MOST

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape of the slice."""
        steps = self.steps or (1,) * len(self.starts)
        return tuple(
            (b - a + s - 1) // s for a, b, s in zip(self.starts, self.limits, steps, strict=True)
        )


def find_limit(low: Any, span: Span) -> Any:
    """Return where a slice that is not empty ends, if it begins at `low`.

    One of a symbolic size ends where the axis or the slice does, if that holds for all sizes: the
    end after the last element is before the start where there is none.
    """
    step = abs(span.step)
    ends = () if type(span.count) is int else (span.size, span.stop)
    for end in ends:
        if end is not None and (end - low + step - 1) // step == span.count:
            return end
    return low + (span.count - 1) * step + 1


def make_slices(plan: IndexPlan) -> Slices:
    """A plan as slices: lookups and slides as whole axes, a number out of bounds clamped."""
    starts, limits, steps, rev, squeezed = [], [], [], [], []
    whole = True
    for e in plan.entries:
        if type(e) is Span:
            low = e.start if e.step > 0 else e.start + (e.count - 1) * e.step
            starts.append(0 if e.count == 0 else low)
            limits.append(0 if e.count == 0 else find_limit(low, e))
            steps.append(abs(e.step))
            if e.step < 0:
                rev.append(e.axis)
            whole = whole and e.count == e.size
        elif type(e) is Place:
            i = min(max(e.index, 0), e.size - 1)
            starts.append(i)
            limits.append(i + 1)
            steps.append(1)
            squeezed.append(e.axis)
            whole = whole and e.size == 1
        else:
            starts.append(0)
            limits.append(e.size)
            steps.append(1)
            squeezed += [e.axis] * (type(e) is Lookup)
    strides = None if all(s == 1 for s in steps) else tuple(steps)
    return Slices(tuple(starts), tuple(limits), strides, tuple(rev), tuple(squeezed), whole)


class Column(NamedTuple):
    """One entry of the index vectors: of array `array`, a constant, or `step` apart from it on.

    The entry is laid out along `dims` of the vectors' axes.
    """

    axis: int
    size: int
    array: int | None
    dims: tuple[int, ...]
    start: int = 0
    step: int = 0


class Windows(NamedTuple):
    """A plan as gather and scatter see it: index vectors, and a window of x at each.

    The vectors have shape (*batch, len(columns)); the result, before its new axes, `shape`.
    """

    columns: tuple[Column, ...]
    batch: tuple[int, ...]
    offset_dims: tuple[int, ...]
    collapsed: tuple[int, ...]
    sizes: tuple[int, ...]
    shape: tuple[int, ...]


def make_windows(plan: IndexPlan) -> Windows:
    """A plan as windows. Spans with steps other than 1 are looked up like arrays."""
    spans = [e for e in plan.entries if type(e) in (Span, Slide)]
    batch: list[int] = []
    shape: list[int] = []
    offset_dims = []
    place: dict[int, int] = {}  # axis of a span that is looked up -> its axis of the vectors
    block = 0
    for i in range(len(spans) + 1):
        if i == plan.before:
            block = len(batch)
            batch += plan.looked
            shape += plan.looked
        if i == len(spans):
            break
        e = spans[i]
        if e.step == 1:
            offset_dims.append(len(shape))
        else:
            place[e.axis] = len(batch)
            batch.append(e.count)
        shape.append(e.count)
    columns = []
    for e in plan.entries:
        if type(e) is Lookup:
            end = block + len(plan.looked)
            dims = tuple(range(end - len(e.shape), end))
            columns.append(Column(e.axis, e.size, e.array, dims))
        elif type(e) is Place:
            start = clip_place(e.index, e.size)
            columns.append(Column(e.axis, e.size, None, (), start))
        elif type(e) is Slide:
            along = (place[e.axis],) if e.axis in place else ()
            columns.append(Column(e.axis, e.size, e.array, along, 0, e.step * bool(along)))
        elif e.axis in place:
            columns.append(Column(e.axis, e.size, None, (place[e.axis],), e.start, e.step))
        elif e.start:
            columns.append(Column(e.axis, e.size, None, (), e.start))
    windows = {e.axis: e.count for e in spans if e.axis not in place}
    axes = range(len(plan.entries))
    collapsed = tuple(a for a in axes if a not in windows)
    sizes = tuple(windows.get(a, 1) for a in axes)
    return Windows(tuple(columns), tuple(batch), tuple(offset_dims), collapsed, sizes, tuple(shape))


def clip_place(i: int, size: Any) -> int:
    """Return a position on an axis. If it is out of bounds, it is moved next to the axis."""
    return i if type(size) is not int else min(max(i, -1), size)


# --- bounds -----------------------------------------------------------------------------------


def check_places(x: ShapedArray, plan: IndexPlan) -> None:
    """Raise where a number is out of bounds and the option does not forbid it."""
    for e in plan.entries:
        if type(e) is Place and not 0 <= e.index < e.size:
            index = e.index - e.size if e.index < 0 else e.index
            if e.size == 0 or config.check_bounds:
                raise errors.IndexingError(bounds_text(x, e).format(index))
            check_index(x.shape, e.axis, e.index)


def check_lookup(x: ShapedArray, e: Lookup, index: Any, wrap: bool = True) -> None:
    """Raise where a number is out of bounds; with the option "all", where any index is.

    One that is traced is checked when the program runs.
    """
    option = config.check_bounds
    if option == "all" or (option and isinstance(index, int | np.integer)):
        check_inside(bounds_text(x, e), index, -e.size if wrap else 0, e.size)


def bounds_text(x: ShapedArray, e: Place | Lookup) -> str:
    """Return the error message for an index, `{}`, that is out of bounds of an axis."""
    return (
        f"x[...]: index must be in [-{e.size}, {e.size}) on axis {e.axis} of {x}; got {{}}. "
        "Hint: x.at[i].get(mode='fill') or x.at[i].set(y, mode='drop'), or without a check "
        "config.update('check_bounds', False)."
    )
