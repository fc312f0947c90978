"""Integers that are known when the program runs: sums of variables, each times a number.

`Index` keeps the bounds of its variables. So the quotients and remainders of nested reshapes, and
the tests of padding and joining, become simple or known where a loop's bounds decide them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from weft.core.element import Operator

UNKNOWN = 1 << 62


class Term(NamedTuple):
    """An integer variable of C, or an expression of one, with its least and its largest value."""

    text: str
    low: int = -UNKNOWN
    high: int = UNKNOWN


class Index:
    """A sum of terms times numbers, and a number."""

    __slots__ = ("constant", "terms")

    def __init__(self, terms: Mapping[Term, int] | None = None, constant: int = 0):
        self.terms = {t: k for t, k in (terms or {}).items() if k}
        self.constant = constant

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Index)
            and self.constant == other.constant
            and self.terms == other.terms
        )

    def __hash__(self) -> int:
        return hash((self.constant, frozenset(self.terms.items())))

    def __repr__(self) -> str:
        return self.text

    @property
    def number(self) -> int | None:
        """The number that it always is; None if there are terms."""
        return None if self.terms else self.constant

    @property
    def low(self) -> int:
        """The least value."""
        ends = (t.low if k > 0 else t.high for t, k in self.terms.items())
        return self.constant + sum(k * e for k, e in zip(self.terms.values(), ends, strict=True))

    @property
    def high(self) -> int:
        """The largest value."""
        ends = (t.high if k > 0 else t.low for t, k in self.terms.items())
        return self.constant + sum(k * e for k, e in zip(self.terms.values(), ends, strict=True))

    @property
    def text(self) -> str:
        """The expression in C."""
        parts: list[str] = []
        for t, k in self.terms.items():
            product = t.text if abs(k) == 1 else f"{abs(k)} * {t.text}"
            parts.append(f"{'-' if k < 0 else '+'} {product}")
        if self.constant or not parts:
            parts.append(f"{'-' if self.constant < 0 else '+'} {abs(self.constant)}")
        text = " ".join(parts)
        return text.removeprefix("+ ") if text.startswith("+ ") else f"-{text[2:]}"

    def add(self, other: Index, factor: int = 1) -> Index:
        """Return the sum with another one times a number."""
        terms = dict(self.terms)
        for t, k in other.terms.items():
            terms[t] = terms.get(t, 0) + factor * k
        return Index(terms, self.constant + factor * other.constant)

    def scale(self, factor: int) -> Index:
        """Return the product with a number."""
        return Index().add(self, factor)

    def split(self, divisor: int) -> tuple[Index, Index]:
        """Return the quotient of what is divisible, and the rest."""
        whole = {t: k // divisor for t, k in self.terms.items() if k % divisor == 0}
        rest = {t: k for t, k in self.terms.items() if k % divisor}
        return (Index(whole, self.constant // divisor), Index(rest, self.constant % divisor))

    def divide(self, divisor: int) -> Index:
        """Return the quotient, rounded down."""
        whole, rest = self.split(divisor)
        if rest.low >= 0 and rest.high < divisor:
            return whole
        text = f"({rest}) / {divisor}" if rest.low >= 0 else f"weft_floor({rest}, {divisor})"
        bounds = max(rest.low // divisor, -UNKNOWN), min(rest.high // divisor, UNKNOWN)
        return whole.add(Index({Term(f"({text})", *bounds): 1}))

    def remainder(self, divisor: int) -> Index:
        """Return the remainder, which has the sign of the divisor."""
        _, rest = self.split(divisor)
        if rest.low >= 0 and rest.high < divisor:
            return rest
        if rest.low >= 0:
            return Index({Term(f"(({rest}) % {divisor})", 0, divisor - 1): 1})
        text = f"(({rest}) - {divisor} * weft_floor({rest}, {divisor}))"
        return Index({Term(text, 0, divisor - 1): 1})


def index_number(n: int) -> Index:
    """Return a number as an Index."""
    return Index(constant=n)


def index_term(text: str, low: int = -UNKNOWN, high: int = UNKNOWN) -> Index:
    """Return a variable as an Index."""
    return Index({Term(text, low, high): 1})


def combine_indices(operator: Operator, x: Index, y: Index) -> Index:
    """Return the result of an operation on two integers."""
    match operator:
        case Operator.ADD:
            return x.add(y)
        case Operator.SUBTRACT:
            return x.add(y, -1)
        case Operator.MULTIPLY:
            if y.number is not None:
                return x.scale(y.number)
            if x.number is not None:
                return y.scale(x.number)
            return index_term(f"(({x}) * ({y}))")
        case Operator.DIVIDE if y.number:
            return x.divide(y.number)
        case Operator.REMAINDER if y.number:
            return x.remainder(y.number)
        case Operator.SMALLER | Operator.LARGER:
            return choose_extremum(operator is Operator.SMALLER, x, y)
        case Operator.DIVIDE:
            return index_term(f"weft_floor({x}, {y})")
    return index_term(f"(({x}) - ({y}) * weft_floor({x}, {y}))")


def choose_extremum(smaller: bool, x: Index, y: Index) -> Index:
    """Return the smaller or the larger of two integers."""
    if x.high <= y.low:
        return x if smaller else y
    if y.high <= x.low:
        return y if smaller else x
    pick = min if smaller else max
    bounds = pick(x.low, y.low), pick(x.high, y.high)
    return index_term(f"weft_{pick.__name__}({x}, {y})", *bounds)


def compare_indices(operator: Operator, x: Index, y: Index) -> bool | str:
    """Return a comparison of two integers: True or False where it is known, else C."""
    gap = y.add(x, -1)  # y - x
    match operator:
        case Operator.LESS:
            if gap.low > 0 or gap.high <= 0:
                return gap.low > 0
            return f"{x} < {y}"
        case Operator.AT_MOST:
            if gap.low >= 0 or gap.high < 0:
                return gap.low >= 0
            return f"{x} <= {y}"
    if gap.low > 0 or gap.high < 0:
        return False
    return True if gap.number == 0 else f"{x} == {y}"


COMPARISONS = frozenset((Operator.LESS, Operator.AT_MOST, Operator.EQUAL))
