"""Integers that are known when the program runs: sums of variables, each times a number.

`Index` keeps the bounds of its variables. So the quotients and remainders of nested reshapes, and
the tests of padding and joining, become simple or known where a loop's bounds decide them. Factors
and bounds are sizes, so all of this holds for symbolic ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from weft.core.element import Operator
from weft.export.c.sizes import is_at_least, join_terms, list_terms, write_size
from weft.export.dims import Size

UNKNOWN = 1 << 62


class Term(NamedTuple):
    """An integer variable of C, or an expression of one, with a lower and an upper bound."""

    text: str
    low: Size = -UNKNOWN
    high: Size = UNKNOWN


class Index:
    """A sum of terms times numbers, and a number."""

    __slots__ = ("constant", "terms")

    def __init__(self, terms: Mapping[Term, Size] | None = None, constant: Size = 0):
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
    def size(self) -> Size | None:
        """The size that it always is; None if there are terms."""
        return None if self.terms else self.constant

    @property
    def number(self) -> int | None:
        """The number that it always is; None if that is not known."""
        return self.constant if not self.terms and type(self.constant) is int else None

    @property
    def low(self) -> Size:
        """The lower bound."""
        return self.find_end(False)

    @property
    def high(self) -> Size:
        """The largest value."""
        return self.find_end(True)

    def find_end(self, upper: bool) -> Size:
        """Return the upper bound if `upper`, else the lower bound."""
        total, unknown = self.constant, UNKNOWN if upper else -UNKNOWN
        for t, k in self.terms.items():
            if is_at_least(k, 0):
                end = t.high if upper else t.low
            elif is_at_least(0, k):
                end = t.low if upper else t.high
            else:
                return unknown
            if is_unknown(end):
                return unknown
            total = total + k * end
        return total

    @property
    def text(self) -> str:
        """The expression in C."""
        parts: list[tuple[str, str]] = []
        for t, k in self.terms.items():
            factors = list_terms(k)
            sign, factor = factors[0] if len(factors) == 1 else ("+", f"({write_size(k)})")
            parts.append((sign, t.text if factor == "1" else f"{factor} * {t.text}"))
        if not parts or type(self.constant) is not int or self.constant:
            parts += list_terms(self.constant)
        return join_terms(parts)

    def add(self, other: Index, factor: Size = 1) -> Index:
        """Return the sum with another one times a number."""
        terms = dict(self.terms)
        for t, k in other.terms.items():
            terms[t] = terms.get(t, 0) + factor * k
        return Index(terms, self.constant + factor * other.constant)

    def scale(self, factor: Size) -> Index:
        """Return the product with a number."""
        return Index().add(self, factor)

    def split(self, divisor: Size) -> tuple[Index, Index]:
        """Return the quotient of the terms that are divisible, and the remaining terms."""
        whole = {t: k // divisor for t, k in self.terms.items() if is_zero(k % divisor)}
        rest = {t: k for t, k in self.terms.items() if t not in whole}
        more = self.constant // divisor
        return Index(whole, more), Index(rest, self.constant - divisor * more)

    def divide(self, divisor: Size) -> Index:
        """Return the quotient, rounded down."""
        whole, rest = self.split(divisor)
        low, high = rest.low, rest.high
        if is_at_least(low, 0) and is_at_least(divisor - 1, high):
            return whole
        by = write_size(divisor)
        text = f"weft_floor({rest}, {by})"
        if is_at_least(low, 0):
            text = f"({rest}) / {by}" if is_name(by) else f"({rest}) / ({by})"
        ends = [x if is_unknown(x) else x // divisor for x in (low, high)]
        return whole.add(Index({Term(f"({text})", *ends): 1}))

    def remainder(self, divisor: Size) -> Index:
        """Return the remainder, which has the sign of the divisor."""
        _, rest = self.split(divisor)
        low, by = rest.low, write_size(divisor)
        if is_at_least(low, 0) and is_at_least(divisor - 1, rest.high):
            return rest
        by = by if is_name(by) else f"({by})"
        text = f"(({rest}) % {by})"
        if not is_at_least(low, 0):
            text = f"(({rest}) - {by} * weft_floor({rest}, {by}))"
        return Index({Term(text, 0, divisor - 1): 1})


def is_unknown(end: Size) -> bool:
    """Return True for a bound that stands for none."""
    return type(end) is int and abs(end) >= UNKNOWN


def is_zero(size: Size) -> bool:
    """Return True if a size is known to be 0."""
    return type(size) is int and size == 0


def is_name(text: str) -> bool:
    """Return True for a number or the name of a variable."""
    return text.isidentifier() or text.isdecimal()


def index_number(n: Size) -> Index:
    """Return a number, or a size, as an Index."""
    return Index(constant=n)


def index_term(text: str, low: Size = -UNKNOWN, high: Size = UNKNOWN) -> Index:
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
            if y.size is not None:
                return x.scale(y.size)
            if x.size is not None:
                return y.scale(x.size)
            return index_term(f"(({x}) * ({y}))")
        case Operator.DIVIDE if is_divisor(y.size):
            return x.divide(y.size)
        case Operator.REMAINDER if is_divisor(y.size):
            return x.remainder(y.size)
        case Operator.SMALLER | Operator.LARGER:
            return choose_extremum(operator is Operator.SMALLER, x, y)
        case Operator.DIVIDE:
            return index_term(f"weft_floor({x}, {y})")
    return index_term(f"(({x}) - ({y}) * weft_floor({x}, {y}))")


def is_divisor(size: Size | None) -> bool:
    """Return True for a size that is known, and known to be at least 1, or a number but 0."""
    return size is not None and (is_at_least(size, 1) or (type(size) is int and size < 0))


def choose_extremum(smaller: bool, x: Index, y: Index) -> Index:
    """Return the smaller or the larger of two integers."""
    low, high, least, most = x.low, x.high, y.low, y.high
    if is_at_least(least, high):
        return x if smaller else y
    if is_at_least(low, most):
        return y if smaller else x
    name = "min" if smaller else "max"
    low, high = choose_end(smaller, low, least, False), choose_end(smaller, high, most, True)
    return index_term(f"weft_{name}({x}, {y})", low, high)


def choose_end(smaller: bool, a: Size, b: Size, upper: bool) -> Size:
    """Return a bound of the minimum or the maximum of two integers, from a bound of each.

    If the bounds cannot be compared, either is an upper bound of the minimum and a lower bound of
    the maximum. The other end is unknown.
    """
    if is_at_least(a, b) or is_at_least(b, a):
        return (b if is_at_least(a, b) else a) if smaller else (a if is_at_least(a, b) else b)
    if smaller == upper:
        return b if is_unknown(a) else a
    return UNKNOWN if upper else -UNKNOWN


def compare_indices(operator: Operator, x: Index, y: Index) -> bool | str:
    """Return a comparison of two integers: True or False where it is known, else C."""
    gap = y.add(x, -1)  # y - x
    low, high = gap.low, gap.high
    match operator:
        case Operator.LESS:
            if is_at_least(low, 1) or is_at_least(0, high):
                return is_at_least(low, 1)
            return f"{x} < {y}"
        case Operator.AT_MOST:
            if is_at_least(low, 0) or is_at_least(-1, high):
                return is_at_least(low, 0)
            return f"{x} <= {y}"
    if is_at_least(low, 1) or is_at_least(-1, high):
        return False
    return True if gap.number == 0 else f"{x} == {y}"


COMPARISONS = frozenset((Operator.LESS, Operator.AT_MOST, Operator.EQUAL))
