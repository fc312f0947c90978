"""Sizes in a padded program: the bound of a symbolic size in memory, and its value at run time.

The invariant of this folder: a value of a symbolic type, such as `f32[n,3]`, is stored in an array
of the padded type, such as `f32[8,3]`, where each size is replaced by its bound. Elements below the
true sizes are the elements of the value. All other elements are padding and may be anything. A
bound depends only on the expression of the size, so equal symbolic types have equal padded types.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import weft.numpy as jnp
from weft.core.aval import ShapedArray, typeof
from weft.core.element import Expression, Integer, Number, Operator, Place
from weft.core.jaxpr import Eqn, Jaxpr, Literal, bodies_of, memo_jaxpr
from weft.core.source import describe_maker
from weft.dtypes import is_extended
from weft.errors import ShapeError
from weft.export.dims import OPERATIONS, Dim, Size, evaluate_size, list_products
from weft.padding.contents import is_constant, is_same_number, is_zero, join_contents
from weft.primitives.elementwise import add, div, mul, select
from weft.primitives.layout import broadcast_in_dim, convert, fill, iota_p

INDEX = np.dtype(np.int32)
IDENTITY = "identity"  # the fact that the padding of a matrix is that of an identity matrix
FACTOR = "factor"  # the fact that a matrix is a Cholesky factor
NUMBER = "number"  # the number that a scalar is, or all elements of an array
FAR = 2**30  # larger than any index along an axis; the sum of two fits an int32

FUNCTIONS = {
    Operator.ADD: jnp.add, Operator.SUBTRACT: jnp.subtract, Operator.MULTIPLY: jnp.multiply,
    Operator.DIVIDE: jnp.floor_divide, Operator.REMAINDER: jnp.remainder, Operator.LESS: jnp.less,
    Operator.AT_MOST: jnp.less_equal, Operator.EQUAL: jnp.equal, Operator.AND: jnp.logical_and,
    Operator.SMALLER: jnp.minimum, Operator.LARGER: jnp.maximum,
}  # fmt: skip

Range = tuple[int, int]


class Sizes:
    """The sizes of the variables of a program: their buckets, and their values at run time.

    Attributes:
      buckets: the size in memory of each variable.
      values: the true size of each variable, an int32 scalar. It is at least 1.

    Sizes, masks and masked values are computed once in a program. `_known` keeps values alive that
    are keys by their identity.
    """

    def __init__(self, buckets: Mapping[str, int], values: Mapping[str, Any]):
        self.buckets = buckets
        self.values = values
        self._bounds: dict[Dim, int] = {}
        self._values: dict[Dim, Any] = {}
        self._places: dict[tuple, Any] = {}
        self._masks: dict[tuple, Any] = {}
        self._masked: dict[tuple, Any] = {}
        self._filled: dict[int, Any] = {}
        self._sources: dict[int, tuple[Any, set[int]]] = {}
        self._known: dict[int, tuple[Any, dict]] = {}

    def bound(self, size: Size) -> int:
        """Return the size in memory of an axis: the largest value that its size may have."""
        if type(size) is int:
            return size
        found = self._bounds.get(size)
        if found is None:
            found = max(0, find_range(size, self.buckets)[1])
            if found >= FAR:
                raise ShapeError(
                    f"sizes: an axis must have less than 2**30 elements in memory; got {found} for "
                    f"{size}. Hint: smaller buckets."
                )
            self._bounds[size] = found
        return found

    def pad_type(self, aval: ShapedArray) -> ShapedArray:
        """Return the type of the padded array of a value. It is not weakly typed."""
        shape = tuple([self.bound(n) for n in aval.shape])
        return aval.strong() if shape == aval.shape else aval.update(shape=shape, weak_type=False)

    def substitute(self, value: Any) -> Any:
        """Return a parameter of an equation with each symbolic size replaced by its bound."""
        if isinstance(value, Dim):
            return self.bound(value)
        if isinstance(value, tuple) and any(has_dim(x) for x in value):
            parts = [self.substitute(x) for x in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return value

    def value(self, size: Any) -> Any:
        """Return a size as an int32 scalar."""
        if not isinstance(size, Dim):
            return np.int32(size)
        found = self._values.get(size)
        if found is None:
            low, high = find_range(size, self.buckets)
            if low == high:
                return np.int32(low)
            terms = list_products(size, np.int32, self._compute_factor)
            found = functools.reduce(add, [functools.reduce(mul, factors) for factors in terms])
            self._values[size] = found
        return found

    def _compute_factor(self, factor: Any) -> Any:
        if isinstance(factor, str):
            return self.values[factor]
        kind, *operands = factor
        a, b = [self.value(x) for x in operands]
        if kind == "floordiv" and find_range(operands[0], self.buckets)[0] >= 0:
            return div(a, b)  # rounds toward 0, like floor for these
        functions = {"floordiv": jnp.floor_divide, "max": jnp.maximum, "min": jnp.minimum}
        return functions[kind](a, b)

    def is_inside(self, aval: ShapedArray, axes: Sequence[int]) -> Any:
        """Return a mask that is True where the indices along some axes are below the true sizes.

        The mask has the padded shape of `aval`. Return None if none of the axes is padded.
        """
        padded = self.pad_type(aval).shape
        found: Any = None
        key: tuple[Any, ...] = (padded,)
        for axis in axes:
            if isinstance(aval.shape[axis], Dim):
                key = (*key, axis, aval.shape[axis])
                both = self._masks.get(key)
                if both is None:
                    place = self.count_places(padded, axis)
                    both = jnp.less(place, self.value(aval.shape[axis]))
                    both = both if found is None else jnp.logical_and(found, both)
                    self._masks[key] = both
                found = both
        return found

    def count_places(self, shape: Sequence[int], axis: int) -> Any:
        """Return the index of each element along an axis of an array in memory."""
        key = tuple(shape), axis
        found = self._places.get(key)
        if found is None:
            params = {"dtype": INDEX, "shape": key[0], "dimension": axis, "sharding": None}
            found = self._places[key] = iota_p.apply(**params)[0]
        return found

    def is_on_diagonal(self, shape: Sequence[int]) -> Any:
        """Return a mask that is True on the diagonals of matrices in memory."""
        last = len(shape) - 1
        return jnp.equal(self.count_places(shape, last - 1), self.count_places(shape, last))

    def mask(self, x: Any, aval: ShapedArray, axes: Sequence[int], value: Any) -> Any:
        """Return a padded array with `value` in the padding of some axes."""
        value, known = read_number(value, typeof(x).dtype), self.find_known(x)
        axes = [a for a in axes if isinstance(aval.shape[a], Dim)]
        missing = [a for a in axes if not is_content(known.get(a), value)]
        if not missing:
            return x
        source, filled = self._sources.get(id(x), (x, set()))
        if filled <= set(missing):  # the new mask covers the earlier one
            x, known = source, self.find_known(source)
        key = id(x), tuple(missing), tell_apart(value)
        if key not in self._masked:
            inside = self.is_inside(aval, missing)
            found = self._masked[key] = choose_elements(inside, x, fill_like(x, value))
            self.note(x, {})  # their identities are in the key
            self.note(value, {})
            kept = {a: join_filled(c, value) for a, c in known.items() if type(a) is int}
            self.note(found, {**kept, **dict.fromkeys(missing, value)})
            self._sources[id(found)] = x, set(missing)
            if is_zero(value):
                self._filled[id(x)] = found
        return self._masked[key]

    def find_filled(self, x: Any) -> Any:
        """Return a value with zeros in its padding if there is one, and else the value."""
        return self._filled.get(id(x), x)

    def note(self, x: Any, facts: Mapping) -> None:
        """Note facts of the padding of a value: the content along an axis, or `IDENTITY`."""
        self._known[id(x)] = x, {**self.find_known(x), **facts}

    def find_known(self, x: Any) -> dict:
        """Return the facts that were noted of a value."""
        return self._known[id(x)][1] if id(x) in self._known else {}

    def note_zeros(self, x: Any, aval: ShapedArray) -> None:
        """Note that all padding of a value contains zeros."""
        axes = [a for a, n in enumerate(aval.shape) if isinstance(n, Dim)]
        if axes and not is_extended(aval.dtype):
            self.note(x, dict.fromkeys(axes, np.zeros((), aval.dtype)))


class TrueSizes(Sizes):
    """Sizes without padding: the size in memory is the true size, which is known."""

    def __init__(self, sizes: Mapping[str, int]):
        super().__init__(sizes, {name: np.int32(n) for name, n in sizes.items()})

    def bound(self, size: Size) -> int:
        return max(0, evaluate_size(size, self.buckets))

    def value(self, size: Any) -> Any:
        return np.int32(evaluate_size(size, self.buckets))

    def is_inside(self, aval: ShapedArray, axes: Sequence[int]) -> Any:
        return None

    def mask(self, x: Any, aval: ShapedArray, axes: Sequence[int], value: Any) -> Any:
        return x


def read_number(value: Any, dtype: Any) -> Any:
    """Return a number as a NumPy array of a dtype, and a traced scalar as it is."""
    if hasattr(value, "aval") or np.ndim(value) or is_extended(dtype):
        return value
    return np.asarray(value).astype(dtype)


def is_content(content: Any, value: Any) -> bool:
    """Return True if padding that contains `content` contains `value`, a number or a scalar."""
    if isinstance(content, np.ndarray) and isinstance(value, np.ndarray):
        return is_same_number(content, value)
    return content is value and value is not None


def join_filled(content: Any, value: Any) -> Any:
    """Return the content of padding that is filled with a value in part."""
    if is_content(content, value):
        return content
    return join_contents(*[x if is_constant(x) else None for x in (content, value)])


def tell_apart(value: Any) -> Any:
    """Return a key that is equal for equal numbers, and for one traced scalar only."""
    if hasattr(value, "aval"):
        return value.aval, id(value)
    array = np.asarray(value)
    return "number", array.dtype.kind, array.tobytes() if array.dtype.kind in "fcV" else str(array)


def fill_like(x: Any, value: Any) -> Any:
    """Return an array like `x` of one value: a number or a scalar array of the dtype of `x`."""
    aval = typeof(x)
    if np.ndim(value) == 0 and not hasattr(value, "aval"):
        return fill(aval.shape, value, aval.dtype)
    return broadcast_in_dim(convert(value, aval.dtype), aval.shape, ())


def choose_elements(condition: Any, yes: Any, no: Any) -> Any:
    """Return an array with elements of `yes` where the condition is True, and else of `no`."""
    return select(condition, yes, no)


def has_dim(x: Any) -> bool:
    """Return True if a parameter contains a symbolic size."""
    if isinstance(x, tuple | list):
        return any(has_dim(y) for y in x)
    return isinstance(x, Dim)


def is_symbolic(aval: Any) -> bool:
    """Return True if a type has a symbolic size."""
    return any(type(n) is not int for n in getattr(aval, "shape", ()))


def is_symbolic_eqn(eqn: Eqn) -> bool:
    """Return True if an equation, or a program nested in it, has a symbolic size."""
    values = (*eqn.invars, *eqn.outvars)
    literal = [a.val for a in eqn.invars if isinstance(a, Literal)]
    return (
        any(is_symbolic(v.aval) for v in values)
        or any(map(has_dim, eqn.params.values()))
        or any(map(has_dim, literal))
        or any(b.jaxpr is not None and is_symbolic_jaxpr(b.jaxpr) for b in bodies_of(eqn))
    )


@memo_jaxpr
def is_symbolic_jaxpr(jaxpr: Jaxpr) -> Any:
    """Return True if a program has a symbolic size anywhere."""
    return any(map(is_symbolic, jaxpr.in_avals)) or any(map(is_symbolic_eqn, jaxpr.eqns))


# --- ranges -----------------------------------------------------------------------------------


def find_range(size: Any, buckets: Mapping[str, int], places: Mapping = {}) -> Range:
    """Return the smallest and the largest value that an integer may have.

    Args:
      size: a size, or an integer of an `element` rule.
      buckets: the largest value of each variable; the smallest is 1.
      places: for each place, the size of its axis.
    """
    if isinstance(size, Dim):
        low = high = 0
        for monomial, count in size.terms.items():
            ends = (count, count)
            for factor, power in monomial:
                for _ in range(power):
                    ends = combine_ranges(Operator.MULTIPLY, ends, range_of_factor(factor, buckets))
            low, high = low + ends[0], high + ends[1]
        return low, high
    if isinstance(size, Place):
        return 0, max(0, places[size] - 1)
    if isinstance(size, Integer):
        left = find_range(size.left, buckets, places)
        return combine_ranges(size.operator, left, find_range(size.right, buckets, places))
    if isinstance(size, Expression):
        raise ShapeError(f"sizes: a size must not depend on values of arrays; got {size}.")
    return int(size), int(size)


def range_of_factor(factor: Any, buckets: Mapping[str, int]) -> Range:
    """Return the range of a factor of a size."""
    if isinstance(factor, str):
        return 1, buckets[factor]
    kind, *operands = factor
    low, high = [find_range(x, buckets) for x in operands]
    if kind == "floordiv":
        return combine_ranges(Operator.DIVIDE, low, high)
    choose = OPERATIONS[kind]
    return choose(low[0], high[0]), choose(low[1], high[1])


def combine_ranges(operator: Operator, a: Range, b: Range) -> Range:
    """Return the range of an operation on integers of two ranges."""
    if operator is Operator.SUBTRACT:
        return a[0] - b[1], a[1] - b[0]
    if operator is Operator.REMAINDER:
        return 0, max(abs(b[0]), abs(b[1]))
    if operator is Operator.DIVIDE and b[0] <= 0:
        raise ShapeError(f"sizes: a size must be divided by a size that is not 0; got {b}.")
    if operator in (Operator.LESS, Operator.AT_MOST, Operator.EQUAL, Operator.AND):
        return 0, 1
    if operator in (Operator.MULTIPLY, Operator.DIVIDE):
        ends = [operator.value[1](x, y) for x in a for y in b]
        return min(ends), max(ends)
    return operator.value[1](a[0], b[0]), operator.value[1](a[1], b[1])


# --- errors -----------------------------------------------------------------------------------

OTHERWISE = "jit without sizes for the part that needs this operation"


def refusal(eqn: Eqn, reason: str, hint: str = OTHERWISE) -> ShapeError:
    """Return the error for an equation that cannot be computed on padded arrays."""
    name = eqn.primitive.name
    operands = ", ".join(str(a.aval) for a in eqn.invars)
    axes = [
        f"axis {axis} of operand {i}"
        for i, a in enumerate(eqn.invars)
        for axis, n in enumerate(getattr(a.aval, "shape", ()))
        if isinstance(n, Dim)
    ]
    padded = f", padded along {' and '.join(axes)}," if axes else ""
    maker = describe_maker(eqn.source, name)
    return ShapeError(f"{name}: {reason}; got {operands}{padded} {maker}. Hint: {hint}.")


def number_of(x: Any, dtype: Any) -> Number:
    """Return a constant as an expression."""
    return Number(x, np.dtype(dtype))
