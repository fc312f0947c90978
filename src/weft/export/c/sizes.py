"""Sizes of arrays, numbers or symbolic: comparing them by bounds, and writing them as text.

A symbolic size is a sum of products of variables. The C function takes the variables first.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.core.aval import ShapedArray
from weft.export.c.names import make_identifier
from weft.export.dims import MAX_SIZE, Dim, Size, evaluate_size, find_order

TYPICAL = 64  # of a variable, where a choice of loops depends on sizes
TRIED = (4, 8, 3, 2, 1, 5, 6, 7, *range(9, 65))  # sizes of the call in main.c

# How expressions of sizes are written: in C, in C as floating-point numbers, and in JavaScript.
C = {
    "name": "{0}", "floordiv": "weft_floor({0}, {1})", "max": "weft_max({0}, {1})",
    "min": "weft_min({0}, {1})",
}  # fmt: skip
DOUBLE = {
    "name": "(double){0}", "floordiv": "floor(({0}) / ({1}))", "max": "fmax({0}, {1})",
    "min": "fmin({0}, {1})",
}  # fmt: skip
JAVASCRIPT = {
    "name": "{0}", "floordiv": "Math.floor(({0}) / ({1}))", "max": "Math.max({0}, {1})",
    "min": "Math.min({0}, {1})",
}  # fmt: skip


def is_at_least(a: Size, b: Size) -> bool:
    """Return True if a size is known not to be less than another one."""
    if type(a) is int and type(b) is int:
        return a >= b
    return find_order(a, b, ">=") is True


def find_typical(size: Size) -> int:
    """Return the size where each variable is 64."""
    if type(size) is int:
        return size
    return int(size.evaluate(dict.fromkeys(size.variables(), TYPICAL)))


def list_variables(avals: Iterable[ShapedArray]) -> list[str]:
    """Return the variables of the sizes in types, each once."""
    found: dict[str, None] = {}
    for aval in avals:
        for n in aval.shape:
            if isinstance(n, Dim):
                found |= dict.fromkeys(sorted(n.variables()))
    return list(found)


def list_terms(size: Size, dialect: Mapping[str, str] = C) -> list[tuple[str, str]]:
    """Return the terms of a size: a sign, and a product."""
    if not isinstance(size, Dim):
        return [("-" if size < 0 else "+", str(abs(size)))]
    found = []
    for monomial, count in size.terms.items():
        factors = [write_factor(f, dialect) for f, power in monomial for _ in range(power)]
        if abs(count) != 1 or not factors:
            factors.insert(0, str(abs(count)))
        found.append(("-" if count < 0 else "+", " * ".join(factors)))
    return found


def write_factor(factor: Any, dialect: Mapping[str, str]) -> str:
    """Return a variable, or an operation on two sizes, as text."""
    if isinstance(factor, str):
        return dialect["name"].format(make_identifier(factor))
    kind, *operands = factor
    return dialect[kind].format(*[write_size(x, dialect) for x in operands])


def join_terms(terms: Sequence[tuple[str, str]]) -> str:
    """Return the sum of terms as text."""
    text = " ".join(f"{sign} {product}" for sign, product in terms)
    return text.removeprefix("+ ") if text.startswith("+ ") else f"-{text[2:]}"


def write_size(size: Size, dialect: Mapping[str, str] = C) -> str:
    """Return a size as text."""
    return join_terms(list_terms(size, dialect))


def write_bytes(size: Size) -> str:
    """Return a size in bytes as an argument of type `size_t`."""
    return str(size) if type(size) is int else f"(size_t)({write_size(size)})"


class Limits:
    """The sizes that a program is written for: each variable is at least 1, constraints hold.

    Attributes:
      names: the variables.
      rows: two sizes each, with one of ">=", "<=", "==" between them.
    """

    def __init__(self, names: Sequence[str], avals: Sequence[ShapedArray]):
        self.names = names
        dims = [n for a in avals for n in a.shape if isinstance(n, Dim)]
        self.rows: list[tuple[Size, str, Size]] = []
        for name in names:
            one = Dim.variable(name, dims[0].scope)
            self.rows += [(one, ">=", 1), (one, "<=", MAX_SIZE)]
        if dims:
            rows = [(a, sign, b) for _, a, sign, b in dims[0].scope.constraints]
            rows += [(n, ">=", 0) for n in dict.fromkeys(dims) if not is_at_least(n, 0)]
            self.rows += [row for row in rows if self.covers(row[0]) and self.covers(row[2])]

    def covers(self, size: Size) -> bool:
        """Return True if a size has no other variables."""
        return not isinstance(size, Dim) or size.variables() <= set(self.names)

    @property
    def text(self) -> str:
        """The condition in C."""
        tests = [f"{write_size(a)} {sign} {write_size(b)}" for a, sign, b in self.rows]
        return " && ".join(tests)

    def hold(self, sizes: Mapping[str, int]) -> bool:
        """Return True if sizes are as they have to be."""
        compare = {">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b, "==": lambda a, b: a == b}
        return all(
            compare[sign](evaluate_size(a, sizes), evaluate_size(b, sizes))
            for a, sign, b in self.rows
        )

    def find_sample(self) -> dict[str, int]:
        """Return small sizes that hold; ones where none are found soon."""
        draws = itertools.product(TRIED, repeat=len(self.names))
        for values in itertools.islice(draws, 1 << 12):
            sizes = dict(zip(self.names, values, strict=True))
            if self.hold(sizes):
                return sizes
        return dict.fromkeys(self.names, 1)
