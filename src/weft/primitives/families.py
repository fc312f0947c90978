"""The base of primitives: families of rules, arithmetic of axes, and checks of type rules.

`LeadingBatch` and `LinearTogether`, whose rules apply operations, are in layout.py.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.element import (
    Apply,
    Expression,
    IntegerLike,
    Number,
    Operand,
    Read,
    Reduce,
    all_hold,
    choose,
    is_equal,
    reduce_over,
)
from weft.core.facts import Cost, Elements, Linearity
from weft.core.primitive import Axes, Linear, Primitive, Zero
from weft.core.trace import Tracer
from weft.errors import DtypeError, ShapeError, TracerError, TracerIntegerConversionError
from weft.mesh.typed import entries_of
from weft.util import SymbolicSize, as_size, has_symbolic_size

# --- families -------------------------------------------------------------------------------


class LinearPrimitive(Primitive):
    """A family: linear in its one operand, so the tangent moves as the value does.

    A member writes `transpose` and the rest of its rules.
    """

    def jvp(self, primals, tangents, **params):
        outs = self.apply(*primals, **params)
        (t,) = tangents
        if isinstance(t, Zero):
            return outs, zero_tangents(outs)
        return outs, self.apply(t, **params)

    def series(self, k, xs, ys, **params):
        (x,) = xs
        return [None] * len(ys) if x[k] is None else self.apply(x[k], **params)


class LinearByElement(LinearPrimitive):
    """A family: linear, and each element of the result is made of that element of the operand."""

    def label_axes(self, avals, outs, **params):
        return along_each_other(avals, outs, Linearity.JOINT)

    def batch(self, axis, args, dims, **params):
        return self.apply(*args, **params), list(dims)


class Identity(LinearByElement):
    """A family: out = x. Members differ only in their names and parameters."""

    cost = Cost.FREE
    elements = Elements.CHOSEN

    def abstract_eval(self, x, **params):
        return [x]

    def lower(self, hlo, x, **params):
        return [x]

    def element(self, i, x, **params):
        return read_element(self, i, x)

    def transpose(self, cts, x, **params):
        return [cts[0]]


class Discrete(Primitive):
    """A family: the results do not move when the operands do a little; the derivative is zero."""

    def jvp(self, primals, tangents, **params):
        outs = self.apply(*primals, **params)
        return outs, zero_tangents(outs)


class OverAxes(Primitive):
    """A family: an operation along the axes `axes` of its one operand, which are removed.

    The parameter has the axes in ascending order. Rules may rely on it: `bind` sorts axes, the
    functions of `lax` do, and the type rules of reductions refuse others.
    """

    axes = "axes"  # the parameter that names them

    def bind(self, *args, **params):
        if self.axes in params:
            params[self.axes] = sort_axes(params[self.axes], self.name, self.axes)
        return super().bind(*args, **params)

    def label_axes(self, avals, outs, **params):
        rank, gone = avals[0].ndim, params[self.axes]
        kept = tuple(i for i in range(rank) if i not in gone)
        linear = Linearity.JOINT if isinstance(self, LinearPrimitive) else Linearity.NONE
        return Axes([range(rank)], [kept] * len(outs), linear)

    def batch(self, axis, args, dims, **params):
        (x,), (d,) = args, dims
        axes = params[self.axes] = shift_axes(params[self.axes], d)
        return self.apply(x, **params), [d - sum(a < d for a in axes)]

    def read_over(self, i: Sequence[IntegerLike], axes: Sequence[int], x: Any) -> Callable:
        """Return, for an `element` rule, the function from places along `axes` to the element."""
        kept = [a for a in range(x.ndim) if a not in axes]

        def read(*places: IntegerLike) -> Read:
            at = dict(zip((*kept, *axes), (*i, *places), strict=True))
            return x[[at[a] for a in range(x.ndim)]]

        return read


class AlongAxis(Primitive):
    """A family: an operation along the axis `axis` of its one operand, which stays."""

    def label_axes(self, avals, outs, *, axis, **params):
        return along_each_other(avals, outs, whole=(axis,))

    def batch(self, mapped, args, dims, *, axis, **params):
        (x,), (d,) = args, dims
        outs = self.apply(x, axis=axis + (axis >= d), **params)
        return outs, [d] * len(outs)


class ByCombination(Primitive):
    """A family: elements of one operand combined by an associative operation, `combine`.

    `identity(dtype)` is what no elements give; `takes` names the dtypes it is for.
    """

    def __init__(self, name: str, combine: Any, identity: Callable, takes: str, doc: str = ""):
        self.name, self.combine, self.identity, self.takes = name, combine, identity, takes
        if doc:
            self.__doc__ = doc

    def combine_over(self, sizes: Sequence[IntegerLike], dtype: np.dtype, body: Callable) -> Reduce:
        """Return, for an `element` rule, the values for all places below `sizes`, combined."""
        combine = None if isinstance(self, LinearPrimitive) else self.combine  # a linear one adds
        return reduce_over(combine, Number(self.identity(dtype), dtype), sizes, body)


class LinearInFirst(Primitive):
    """A family: linear in its first operand; in the others, whose tangents do not matter, not."""

    def jvp(self, primals, tangents, **params):
        outs = self.apply(*primals, **params)
        if type(tangents[0]) is Zero:
            return outs, zero_tangents(outs)
        return outs, self.apply(tangents[0], *primals[1:], **params)


class Part(NamedTuple):
    """The atoms of an equation that writes a small array into a larger one.

    A primitive that does so has a method `find_part`, which returns the Part of an equation, or
    None. `adds` is True if the equation adds the small array instead of replacing elements.
    """

    background: Any
    part: Any
    starts: list
    adds: bool = False


def zero_tangents(outs: Sequence[Any]) -> list:
    """Zero for each result."""
    return [Zero(typeof(y).to_tangent()) for y in outs]


def along_each_other(
    avals: Sequence, outs: Sequence, linear: Linearity = Linearity.NONE, whole: Sequence[int] = ()
) -> Axes:
    """Return labels where axis i of all results and operands is one axis, unless in `whole`.

    Operands with another rank than the results, such as scalars, must not be split.
    """
    rank = outs[0].ndim
    row = [None if i in whole else i for i in range(rank)]
    rows = [row if a.ndim == rank else (None,) * a.ndim for a in avals]
    return Axes(rows, [row] * len(outs), linear)


def apply_to_element(prim: Primitive, i: Sequence[IntegerLike], x: Operand, **params: Any) -> list:
    """The rule `element` of a primitive that acts on each element of one operand."""
    return [Apply(prim, (x[i],), params)]


def read_element(prim: Primitive, i: Sequence[IntegerLike], x: Operand, **params: Any) -> list:
    """The rule `element` of a primitive that leaves its operand unchanged."""
    return [x[i]]


def read_spread(
    x: Operand, places: Sequence[IntegerLike], steps: Sequence[int | None], other: Expression
) -> Any:
    """Return, for an `element` rule, the element at places along a dilated array.

    The elements of x are `steps` apart; `other` is between and outside of them. A step of None
    marks an axis with places inside of x.
    """
    index, inside = [], list[Any]()
    for place, step, n in zip(places, steps, x.shape, strict=True):
        index.append(place if step is None else place // step)
        if step is not None:
            inside += [place >= 0, is_equal(place % step, 0), place // step < n]
    return choose(all_hold(inside), x[index], other)


def label_along(prim: Primitive, avals: Sequence, outs: Sequence, **params: Any) -> Axes:
    """The method `label_axes` where results follow operands axis by axis."""
    return along_each_other(avals, outs)


def label_together(prim: Primitive, avals: Sequence, outs: Sequence, **params: Any) -> Axes:
    """Do as `label_along` does, for an operation that is linear in all operands together."""
    return along_each_other(avals, outs, Linearity.JOINT)


def group_axes(shape: Sequence[int], new_sizes: Sequence[int]) -> Iterator[tuple[range, range]]:
    """Go over the smallest groups of axes of one size before and after a reshape."""
    i = j = 0
    while i < len(shape) or j < len(new_sizes):
        first, start, have, want = i, j, 1, 1
        while have != want or (i == first and j == start):
            if (i < len(shape) and is_at_most(have, want)) or j == len(new_sizes):
                have, i = have * shape[i], i + 1
            else:
                want, j = want * new_sizes[j], j + 1
        yield range(first, i), range(start, j)


def is_at_most(have: Any, want: Any) -> bool:
    """Return True if a size is at most another one. Of symbolic ones a multiple is larger."""
    if want != 0 and any(isinstance(n, SymbolicSize) for n in (have, want)):
        return have % want != 0
    return have <= want


def label_reshaped(x: ShapedArray, new_sizes: Sequence[int]) -> Axes:
    """Return the labels of a reshape, by the smallest groups of axes of one size before and after.

    The axes of a group that are split must be whole if no result keeps the elements of each device.
    """
    row: list = [None] * len(new_sizes)
    old: list = [*range(x.ndim)]
    for before, after in group_axes(x.shape, new_sizes):
        long = [k for k in after if new_sizes[k] != 1]
        found = place_names(x, before, [new_sizes[k] for k in long])
        for k, label in zip(long, found or (), strict=found is not None):
            row[k] = label
        for k in before if found is None else ():
            old[k] = None
    hint = f"lax.reshape(x, {tuple(new_sizes)}, out_sharding=P(...))"
    return Axes([old], [row], Linearity.JOINT, hint=hint)


def place_names(x: ShapedArray, axes: range, sizes: Sequence[int]) -> list | None:
    """Return the labels of axes of these sizes, into which a reshape makes the axes `axes` of `x`.

    In row-major order an axis of `x` is one digit for each mesh axis that splits it, and one digit
    for the part of a device. The digits of mesh axes must come first in their axis of the result,
    so that no communication is needed. Axes that become a single one may each be split, as in JAX.

    Returns:
      For each size, pairs of an axis of `x` and the slice of its mesh axes that split the result.
      None if the digits do not fit, or if a split axis follows an unsplit one.
    """
    entries = entries_of(x)
    split = [k for k in axes if entries[k]]
    if not split or not sizes:
        return [[] for _ in sizes]
    if len(sizes) == 1:
        long = [k for k in axes if x.shape[k] != 1 or entries[k]]
        return [[(k, slice(None)) for k in split]] if long[: len(split)] == split else None
    labels: list[list] = [[] for _ in sizes]
    mesh = x.sharded.mesh.shape
    # The axis to fill, the size left, and whether it is empty.
    place, room, fresh = 0, sizes[0], True
    for k in range(axes.start, split[-1] + 1):
        digits = [(mesh[name], slice(n, n + 1)) for n, name in enumerate(entries[k])]
        rest = x.shape[k] // math.prod(size for size, _ in digits)
        for size, names in (*digits, (rest, None)):
            while size > 1 or names is not None:
                if room == 1 and place + 1 < len(sizes):
                    place, room, fresh = place + 1, sizes[place + 1], True
                if names is None and size % room == 0:
                    size, room = size // room, 1
                elif room % size or not (fresh or names is None):
                    return None
                else:
                    room, fresh = room // size, names is not None
                    labels[place] += [] if names is None else [(k, names)]
                    break
    return labels


def reshaped_index(
    i: Sequence[IntegerLike], shape: Sequence[int], new_sizes: Sequence[int]
) -> list[IntegerLike]:
    """Return the index before a reshape, where `i` is the one after it.

    In each of the smallest groups of axes of one size, the row-major place is the same.
    """
    if 0 in shape:
        return [0] * len(shape)
    index: list[IntegerLike] = []
    for old, new in group_axes(shape, new_sizes):
        place: IntegerLike = 0
        for k in new:
            place = place * new_sizes[k] + i[k]
        sizes = [shape[k] for k in old]
        for k, n in enumerate(sizes):
            along = place // math.prod(sizes[k + 1 :])
            index.append(along % n if k else along)
    return index


def label_windows(
    x: ShapedArray, indices: ShapedArray, made: ShapedArray, dims: Any, windows: Any, sizes: Any
) -> tuple[list, list]:
    """Labels of the axes of a gather's operand and indices, and of its result.

    Along a window as long as the operand the result is as that; the other axes of the operand are
    whole, except for those that are batching, and the axes of indices are texts.
    """
    batching = dict(zip(dims.operand_batching_dims, dims.start_indices_batching_dims, strict=True))
    full = [d if d in windows and sizes[d] == n else None for d, n in enumerate(x.shape)]
    for d in batching:
        full[d] = d
    back = {i: d for d, i in batching.items()}
    row = [back.get(i, f"index {i}") for i in range(indices.ndim - 1)]
    kept, batch = iter([full[d] for d in windows]), iter(row)
    result = [next(kept if d in dims.offset_dims else batch) for d in range(made.ndim)]
    return [full, [*row, None]], [result]


def is_linear(x: Any) -> bool:
    """Return True if a transpose rule has to solve for an operand.

    Args:
      x: an operand of a transpose rule: an array, or an `UndefinedPrimal`.

    Returns:
      A bool.

    >>> from weft.interpreters import ad
    >>> x = ad.UndefinedPrimal(weft.typeof(1.0))
    >>> ad.is_undefined_primal(x), ad.is_undefined_primal(1.0)
    (True, False)
    """
    return type(x) is Linear


# --- axes -----------------------------------------------------------------------------------


def index_tuple(xs: Sequence[Any], op: str, name: str) -> tuple[int, ...]:
    """Integers of any kind as a tuple of Python's."""
    try:
        return tuple(map(operator.index, xs))
    except TypeError as error:
        if isinstance(error, TracerError):
            for x in xs:
                check_integer(op, name, x)  # names the operation and the parameter
            raise
        if has_symbolic_size(xs):
            return tuple(map(as_size, xs))
        raise TypeError(f"{op}: {name} must be integers in a sequence; got {xs!r}.") from None


def sort_axes(axes: Sequence[int], op: str, name: str = "axes") -> tuple[int, ...]:
    """Return axes as a tuple of Python's integers, in ascending order."""
    if type(axes) is tuple and len(axes) == 1 and type(axes[0]) is int:  # the commonest
        return axes
    return tuple(sorted(index_tuple(axes, op, name)))


def check_integer(
    op: str, name: str, n: Any, least: float = -math.inf, most: float = 2**63 - 1
) -> int:
    """An integer that is known now, from `least` to `most`."""
    if isinstance(n, Tracer):
        hint = "a number, or x.shape, is known when the program is written."
        n = n.concrete(TracerIntegerConversionError, f"{op}: {name}", hint)
    try:
        found = operator.index(n)
    except TypeError:
        if isinstance(n, SymbolicSize):
            return n  # type: ignore[return-value]
        raise TypeError(f"{op}: {name} must be an integer; got {n!r}.") from None
    if not least <= found <= most:
        limit = f"at least {least}" if found < least else f"at most {most}"
        raise ShapeError(f"{op}: {name} must be {limit}; got {found}.")
    return found


def as_sequence(op: str, name: str, x: Any) -> tuple:
    """A sequence as a tuple; a text, a set and a dict are none."""
    if isinstance(x, str | bytes | set | dict) or not np.iterable(x):
        shown = getattr(x, "aval", repr(x))
        raise TypeError(f"{op}: {name} must be a sequence; got {shown}.")
    return tuple(x)


def check_parameter(op: str, name: str, x: Any, what: str, read: Callable[[Any], Any]) -> Any:
    """Return `read(x)`, or raise an error that says that a parameter must be `what`."""
    try:
        return read(x)
    except (TypeError, ValueError, AttributeError, LookupError, OverflowError) as error:
        if isinstance(error, TracerError):
            raise
        raise TypeError(f"{op}: {name} must be {what}; got {x!r}.") from None


def as_number(op: str, name: str, x: Any) -> float:
    """A real number that is known now."""
    return check_parameter(op, name, x, "a real number", float)


def index_pairs(op: str, name: str, xs: Any) -> tuple[tuple[int, int], ...]:
    """Pairs of integers of any kind, as tuples of Python's."""

    def read(pairs: Any) -> tuple:
        return tuple([(as_size(low), as_size(high)) for low, high in pairs])

    return check_parameter(op, name, xs, "pairs of integers", read)


def shift_axes(axes: Sequence[int], at: int = 0) -> tuple[int, ...]:
    """Return axis numbers after one more axis is inserted at `at`."""
    return tuple(a + (a >= at) for a in axes)


def insert_item(values: Sequence[Any], at: int, value: Any) -> tuple:
    """`values` with `value` inserted at position `at`."""
    return (*values[:at], value, *values[at:])


def drop_axes(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """`shape` without the sizes of `axes`."""
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def normalize_axis(op: str, axis: Any, ndim: int) -> int:
    """An axis of an array of rank `ndim` counted from the front, given from either end."""
    try:
        axis = operator.index(axis)
    except TypeError as error:
        if isinstance(error, TracerError):
            raise
        raise TypeError(f"{op}: an axis must be an integer; got {axis!r}.") from None
    if not -ndim <= axis < ndim:
        raise ShapeError(
            f"{op}: an axis of an array of rank {ndim} must be in [{-ndim}, {ndim}); got {axis}."
        )
    return axis % ndim


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that shapes are broadcast to, by the rule of NumPy.

    Args:
      *shapes: sequences of ints.

    Returns:
      A tuple of ints.

    Raises:
      ShapeError: the sizes of an axis, counted from the last, are not equal or 1.

    >>> lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    shapes = tuple([index_tuple(s, "broadcast_shapes", "shapes") for s in shapes])
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    out = tuple(next((n for n in sizes if n != 1), 1) for sizes in zip(*padded, strict=True))
    if any(n not in (1, m) for s in padded for n, m in zip(s, out, strict=True)):
        raise ShapeError(  # the last words are JAX's, which tests of libraries look for
            "broadcast_shapes: sizes of each axis must be equal or 1, counted from the last; "
            f"got {', '.join(str(tuple(s)) for s in shapes)}. Incompatible shapes for broadcasting."
        )
    return out


# --- checks ---------------------------------------------------------------------------------

KINDS: dict[str, Callable[[np.dtype], bool]] = {
    "any": lambda d: True,
    "number": lambda d: not dtypes.is_bool(d),
    "real": lambda d: not dtypes.is_complex(d),
    "real number": lambda d: not dtypes.is_complex(d) and not dtypes.is_bool(d),
    "inexact": dtypes.is_inexact,
    "float": dtypes.is_float,
    "float32 or float64": lambda d: d in (np.float32, np.float64),
    "complex": dtypes.is_complex,
    "integer": dtypes.is_integer,
    "bool or integer": lambda d: dtypes.is_bool(d) or dtypes.is_integer(d),
}


def show_types(avals: Sequence[ShapedArray]) -> str:
    """Types as an error lists them."""
    return ", ".join(map(str, avals)) or "none"


def check_kind(op: str, takes: str, x: ShapedArray) -> None:
    """Raise unless the operand is of the dtypes that `takes` names, a key of KINDS."""
    if not KINDS[takes](x.dtype):
        raise DtypeError(f"{op}: needs an operand of {takes} dtype; got {x}.")


def check_equal_dtypes(op: str, *avals: ShapedArray) -> None:
    """Raise unless there are operands and they have one dtype."""
    if len({a.dtype for a in avals}) != 1:
        raise DtypeError(f"{op}: operands must have equal dtypes; got {show_types(avals)}.")


def check_equal_shapes(op: str, avals: Sequence[ShapedArray]) -> None:
    """Raise unless there are operands and they have one shape."""
    if len({a.shape for a in avals}) != 1:
        raise ShapeError(f"{op}: operands must have equal shapes; got {show_types(avals)}.")


def check_axes(op: str, axes: Sequence[int], ndim: int) -> None:
    """Raise unless `axes` are distinct axes of an array of rank `ndim`."""
    if len(set(index_tuple(axes, op, "axes"))) != len(axes) or not all(0 <= a < ndim for a in axes):
        raise ShapeError(
            f"{op}: axes must be distinct and name axes of an array of rank {ndim}; "
            f"got {tuple(axes)}."
        )


def check_ascending_axes(op: str, axes: Sequence[int], ndim: int) -> None:
    """Raise unless `axes` are distinct axes of an array of rank `ndim`, in ascending order."""
    check_axes(op, axes, ndim)
    if list(axes) != sorted(axes):
        raise ShapeError(f"{op}: axes must be in ascending order; got {tuple(axes)}.")


def check_shape(op: str, shape: Sequence[int]) -> None:
    """Raise unless `shape` holds sizes."""
    if any(n < 0 for n in index_tuple(shape, op, "shape")):
        raise ShapeError(f"{op}: sizes must not be negative; got shape {tuple(shape)}.")
