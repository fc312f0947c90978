"""Expressions for one element of a result, in terms of elements of operands.

The `element` rule of a primitive returns them, one for each result: the mathematics of its
docstring as data. Passes walk along it; tests/core/evaluation.py computes it in plain Python.

Integers in expressions are exact and have no dtype: an index is a tuple of Python's integers or of
`Place`, and operators on a `Place` make an `Integer`. Values have a dtype: an element that is read,
a number, or a primitive applied to values. A value of an integer dtype may be part of an index, and
a comparison of integers, or a value of dtype bool, a condition.
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from weft.core.aval import ShapedArray


class Operator(enum.Enum):
    """An operation on integers: how it is printed, and the function that computes it."""

    ADD = "+", operator.add
    SUBTRACT = "-", operator.sub
    MULTIPLY = "*", operator.mul
    DIVIDE = "//", operator.floordiv
    REMAINDER = "%", operator.mod
    LESS = "<", operator.lt
    AT_MOST = "<=", operator.le
    EQUAL = "==", operator.eq
    AND = "and", operator.and_
    SMALLER = "min", min
    LARGER = "max", max


class Expression:
    """A node whose fields never change. Operators on a node, and on a node and an int, make an
    `Integer`.
    """

    __slots__: ClassVar[Sequence[str]] = ()

    def __init__(self, *fields: Any):
        for name, x in zip(self.__slots__, fields, strict=True):
            object.__setattr__(self, name, x)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name}: fields of expressions never change; got {value!r}.")

    @property
    def parts(self) -> Sequence[Any]:
        """The expressions and ints that this one is made of."""
        return ()

    def __add__(self, other: Any) -> Any:
        return self if _is(other, 0) else Integer(Operator.ADD, self, other)

    def __radd__(self, other: Any) -> Any:
        return self if _is(other, 0) else Integer(Operator.ADD, other, self)

    def __sub__(self, other: Any) -> Any:
        return self if _is(other, 0) else Integer(Operator.SUBTRACT, self, other)

    def __rsub__(self, other: Any) -> Any:
        return Integer(Operator.SUBTRACT, other, self)

    def __mul__(self, other: Any) -> Any:
        return self if _is(other, 1) else Integer(Operator.MULTIPLY, self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self if _is(other, 1) else Integer(Operator.DIVIDE, self, other)

    def __mod__(self, other: Any) -> Any:
        return 0 if _is(other, 1) else Integer(Operator.REMAINDER, self, other)

    def __lt__(self, other: Any) -> Any:
        return Integer(Operator.LESS, self, other)

    def __le__(self, other: Any) -> Any:
        return Integer(Operator.AT_MOST, self, other)

    def __gt__(self, other: Any) -> Any:
        return Integer(Operator.LESS, other, self)

    def __ge__(self, other: Any) -> Any:
        return Integer(Operator.AT_MOST, other, self)

    def __bool__(self) -> bool:
        raise TypeError(f"element: a rule must not ask for the value of an index; got {self!r}.")


IntegerLike: TypeAlias = int | Expression


def _is(x: Any, number: int) -> bool:
    return type(x) is int and x == number


class Place(Expression):
    """The place along an axis of a result, or of a `Reduce`. It is equal to itself only."""

    __slots__ = ("name",)
    name: str

    def __repr__(self) -> str:
        return self.name


class Integer(Expression):
    """Arithmetic, or a comparison, of integers."""

    __slots__ = ("operator", "left", "right")
    operator: Operator
    left: IntegerLike
    right: IntegerLike

    @property
    def parts(self) -> Sequence[Any]:
        return self.left, self.right

    def __repr__(self) -> str:
        sign = self.operator.value[0]
        if sign.isalpha() and self.operator is not Operator.AND:
            return f"{sign}({self.left}, {self.right})"
        return f"({self.left} {sign} {self.right})"


class Read(Expression):
    """The element of an operand, by its number, at an index: one integer for each axis."""

    __slots__ = ("operand", "index")
    operand: int
    index: tuple[IntegerLike, ...]

    @property
    def parts(self) -> Sequence[Any]:
        return self.index

    def __repr__(self) -> str:
        return f"x{self.operand}[{', '.join(map(str, self.index))}]"


class Number(Expression):
    """An integer, or a number known now, in a dtype."""

    __slots__ = ("value", "dtype")
    value: Any
    dtype: np.dtype

    @property
    def parts(self) -> Sequence[Any]:
        return (self.value,) if isinstance(self.value, Expression) else ()

    def __repr__(self) -> str:
        return f"{self.dtype.name}({self.value})"


class Apply(Expression):
    """A primitive of scalars, applied to values."""

    __slots__ = ("primitive", "args", "params")
    primitive: Any
    args: tuple[Expression, ...]
    params: Mapping[str, Any]

    @property
    def parts(self) -> Sequence[Any]:
        return self.args

    def __repr__(self) -> str:
        given = ", ".join(f"{k}={v}" for k, v in self.params.items())
        return f"{self.primitive}{f'[{given}]' * bool(given)}({', '.join(map(str, self.args))})"


class Select(Expression):
    """One of two values, by a condition. The other may be no element: it is not looked at."""

    __slots__ = ("condition", "yes", "no")
    condition: Expression
    yes: Expression
    no: Expression

    @property
    def parts(self) -> Sequence[Any]:
        return self.condition, self.yes, self.no

    def __repr__(self) -> str:
        return f"({self.yes} if {self.condition} else {self.no})"


class Reduce(Expression):
    """The values of `body` for all places below `sizes`, combined, in order, after `start`.

    `combine` is a primitive of two operands; None adds.
    """

    __slots__ = ("combine", "start", "places", "sizes", "body")
    combine: Any
    start: Expression
    places: tuple[Place, ...]
    sizes: tuple[IntegerLike, ...]
    body: Expression

    @property
    def parts(self) -> Sequence[Any]:
        return self.start, *self.sizes, self.body

    def __repr__(self) -> str:
        over = ", ".join(f"{k} < {n}" for k, n in zip(self.places, self.sizes, strict=True))
        return f"{self.combine or 'sum'}({self.body} for {over})"


# --- the operands and tools of rules ----------------------------------------------------------


class Operand:
    """An operand of a rule: its number, and its type."""

    __slots__ = ("aval", "number")

    def __init__(self, number: int, aval: ShapedArray):
        self.number, self.aval = number, aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def dtype(self) -> np.dtype:
        return self.aval.dtype

    def __getitem__(self, index: Sequence[IntegerLike]) -> Read:
        """Return the element at an index."""
        return Read(self.number, tuple(index))

    def at(self, index: Sequence[IntegerLike]) -> Read:
        """Return the element that goes with an index: a scalar goes with any."""
        return self[index if self.shape else ()]


def smaller(x: IntegerLike, y: IntegerLike) -> IntegerLike:
    """Return the smaller of two integers."""
    known = type(x) is int and type(y) is int
    return min(x, y) if known else Integer(Operator.SMALLER, x, y)


def larger(x: IntegerLike, y: IntegerLike) -> IntegerLike:
    """Return the larger of two integers."""
    known = type(x) is int and type(y) is int
    return max(x, y) if known else Integer(Operator.LARGER, x, y)


def is_equal(x: IntegerLike, y: IntegerLike) -> Any:
    """Return the condition that two integers are equal."""
    return x == y if type(x) is int and type(y) is int else Integer(Operator.EQUAL, x, y)


def all_hold(conditions: Sequence[Any]) -> Any:
    """Return the condition that all of some hold; a bool where that is known."""
    if any(c is False for c in conditions):
        return False
    found: Any = True
    for c in conditions:
        if c is not True:
            found = c if found is True else Integer(Operator.AND, found, c)
    return found


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """Return one of two values, by a condition that may be known."""
    if isinstance(condition, Expression):
        return Select(condition, yes, no)
    return yes if condition else no


def reduce_over(
    combine: Any, start: Expression, sizes: Sequence[IntegerLike], body: Callable[..., Any]
) -> Reduce:
    """Return the values of `body(*places)` for all places below `sizes`, combined."""
    places = tuple([Place(f"k{n}" if len(sizes) > 1 else "k") for n in range(len(sizes))])
    return Reduce(combine, start, places, tuple(sizes), body(*places))


def sum_over(sizes: Sequence[IntegerLike], dtype: np.dtype, body: Callable[..., Any]) -> Reduce:
    """Return the sum of `body(*places)` for all places below `sizes`."""
    return reduce_over(None, Number(0, dtype), sizes, body)


# --- reading the rules ------------------------------------------------------------------------


def describe_elements(
    prim: Any, avals: Sequence[ShapedArray], params: Mapping[str, Any]
) -> list[tuple[tuple[Place, ...], Expression]]:
    """Return the places of each result's axes, and the expression for the element there.

    An empty list if the primitive has no rule.
    """
    if prim.element is None:
        return []
    operands, found = [Operand(n, a) for n, a in enumerate(avals)], []
    for n, out in enumerate(prim.type_of(tuple(avals), dict(params))):
        places = tuple([Place("ij"[k] if out.ndim < 3 else f"i{k}") for k in range(out.ndim)])
        found.append((places, prim.element(places, *operands, **params)[n]))
    return found


def walk(expression: Any) -> Iterator[Expression]:
    """Go over an expression and all that it is made of."""
    if isinstance(expression, Expression):
        yield expression
        for part in expression.parts:
            yield from walk(part)


def count_terms(expression: Any) -> int:
    """Count the values that are combined for one element, where that is the same for all."""
    sizes = [n for node in walk(expression) if type(node) is Reduce for n in node.sizes]
    return math.prod([n for n in sizes if type(n) is int])
