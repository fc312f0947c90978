"""Values of a softmax and of its derivative, as sums of products of symbols.

There are many ways to write a softmax, and differentiation makes more. Ways that are equal for real
numbers have equal terms here, such as `e / sum(e)` and `exp(x - max(x) - log(sum(e)))`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from weft.core.facts import Cost
from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Literal
from weft.core.primitive import Primitive
from weft.cpu.elements import chooses_by_element
from weft.cpu.opcodes import is_instruction
from weft.optimize.views import View, find_views, merge_axes, view_whole
from weft.primitives import elementwise as ops
from weft.primitives.elementwise import Elementwise
from weft.primitives.transcendental import exp_p, log_p

F32 = np.dtype(np.float32)
MAX_DEPTH = 40  # operations from a value back to the symbols: a derivative has about 20
MAX_TERMS = 6  # a derivative has two, and four on the way


class Kind(enum.Enum):
    """The kinds of symbols, and how many of them an array of scores has.

    A symbol of a pair has a value for each score, a symbol of a row one for each row of scores.
    """

    __hash__ = object.__hash__  # by identity; that of `Enum` is in Python
    NUMBER = "a scalar: its atom"
    TOP = "the largest score of a row: the atom of the scores"
    SUM = "the sum of a row: the product that is summed"
    LOG = "the logarithm of a value of a row: its terms"
    EXP = "exp(x - the largest x of the row): the atom of the scores x"
    PRODUCT = "a product of matrices: its atom"
    MASK = "1 where a mask has a value, else 0: what the mask is a view of, and the value"


OF_PAIRS = frozenset((Kind.EXP, Kind.PRODUCT, Kind.MASK))


class Symbol(NamedTuple):
    """A value that is not taken apart; `key` tells it from others of its kind."""

    kind: Kind
    key: Any


# Symbols with their exponents.
Factors: TypeAlias = frozenset[tuple[Symbol, int]]
# The coefficient of each product of a sum; a sum of no products is 0.
Terms: TypeAlias = Mapping[Factors, float]
ONE: Factors = frozenset()


def of_symbol(kind: Kind, key: Any, exponent: int = 1) -> Terms:
    """Return the terms of one symbol."""
    return {frozenset([(Symbol(kind, key), exponent)]): 1.0}


def add_terms(x: Terms, y: Terms, sign: float = 1.0) -> Terms:
    """Return `x + sign * y`, without terms that cancel."""
    made = dict(x)
    for f, c in y.items():
        made[f] = made.get(f, 0.0) + sign * c
    least = 1e-6 * max(map(abs, [*x.values(), *y.values()]), default=0.0)
    return {f: c for f, c in made.items() if abs(c) > least}


def multiply_terms(x: Terms, y: Terms) -> Terms:
    """Return `x * y`."""
    made: Terms = {}
    for f, a in x.items():
        for g, b in y.items():
            powers = dict(f)
            for symbol, exponent in g:
                powers[symbol] = powers.get(symbol, 0) + exponent
                if symbol.kind is Kind.MASK:
                    powers[symbol] = 1
            made = add_terms(made, {frozenset([p for p in powers.items() if p[1]]): a * b})
    return made


def invert_terms(x: Terms) -> Terms | None:
    """Return `1 / x` of one term; None for other numbers of terms."""
    if len(x) != 1:
        return None
    ((factors, c),) = x.items()
    return {frozenset([(symbol, -exponent) for symbol, exponent in factors]): 1 / c}


def sum_terms(x: Terms, count: int) -> Terms:
    """Return the sums of rows of `count` elements."""
    made: Terms = {}
    for factors, c in x.items():
        pairs = frozenset([p for p in factors if p[0].kind in OF_PAIRS])
        total = of_symbol(Kind.SUM, pairs) if pairs else {ONE: float(count)}
        made = add_terms(made, multiply_terms({factors - pairs: c}, total))
    return made


def are_close(x: Terms, y: Terms) -> bool:
    """Return True if terms are equal, except for the rounding of coefficients."""
    return not add_terms(x, y, -1.0)


def softmax_terms(scores: Atom) -> Terms:
    """Return the terms of the softmax of rows of scores."""
    power = of_symbol(Kind.EXP, scores)
    return multiply_terms(power, of_symbol(Kind.SUM, next(iter(power)), -1))


def pull_terms(scores: Atom, product: Atom) -> Terms:
    """Return the terms of the cotangent of scores; `product` is the cotangent of their softmax."""
    weights = softmax_terms(scores)
    moves = multiply_terms(weights, of_symbol(Kind.PRODUCT, product))
    return add_terms(moves, multiply_terms(weights, sum_terms(moves, 1)), -1.0)


class Reader:
    """A reader of the terms of values, for scores of `rows` rows of `count` elements.

    A value has an element for each score, or for each row. Its elements are in row-major order, and
    its shape is free.
    """

    def __init__(self, maker: Callable[[Atom], Eqn | None], rows: int, count: int):
        self.maker, self.rows, self.count = maker, rows, count
        self.known: dict[Atom, Terms | None] = {}
        self.merged: dict[tuple, Any] = {}  # by operation and type, see `merge_view`

    def read(self, atom: Atom, depth: int = 0) -> Terms | None:
        """Return the terms of a value; None if they are not known."""
        if atom.aval.dtype != F32:
            return None
        if type(atom) is Literal:
            x = float(atom.val)
            return ({ONE: x} if x else {}) if math.isfinite(x) else None
        if atom not in self.known:
            eqn = self.maker(atom)
            self.known[atom] = found = None  # as for values that are too deep
            if not atom.aval.shape:
                found = of_symbol(Kind.NUMBER, atom)
            elif eqn is not None and depth < MAX_DEPTH:
                found = self.read_equation(eqn, depth + 1)
            self.known[atom] = found if found is None or len(found) <= MAX_TERMS else None
        return self.known[atom]

    def read_equation(self, eqn: Eqn, depth: int) -> Terms | None:
        """Return the terms of the result of an equation."""
        prim, operands = eqn.primitive, eqn.invars
        if prim.form is Form.PRODUCT:
            return of_symbol(Kind.PRODUCT, eqn.outvars[0]) if self.is_full(eqn.outvars[0]) else None
        if prim.form is Form.EXTREMUM:
            largest = getattr(prim, "largest", False) and self.reduces_rows(eqn)
            return of_symbol(Kind.TOP, operands[0]) if largest else None
        if is_instruction(prim, exp_p):
            return self.read_power(operands[0], depth)
        if chooses_by_element(prim):
            return self.read_choice(operands, depth)
        if prim.cost is Cost.FREE and len(operands) == 1:
            x = self.read(operands[0], depth)
            return x if not x or self.is_alike(eqn, x) else None
        if prim.form is Form.SUM:
            x = self.read(operands[0], depth)
            if x is None or all(operands[0].aval.shape[a] == 1 for a in eqn.params["axes"]):
                return x
            return sum_terms(x, self.count) if self.reduces_rows(eqn) else None
        if isinstance(prim, Elementwise) and len(operands) <= 2:
            return combine_terms(prim, [self.read(a, depth) for a in operands])
        return None

    def is_full(self, atom: Atom) -> bool:
        """Return True if a value has an element for each score."""
        return atom.aval.size == self.rows * self.count and type(atom) is not Literal

    def reduces_rows(self, eqn: Eqn) -> bool:
        """Return True if an equation reduces rows of scores."""
        (x,), last = eqn.invars, eqn.invars[0].aval.ndim - 1
        return self.is_full(x) and eqn.params["axes"] == (last,) and x.aval.shape[-1] == self.count

    def is_alike(self, eqn: Eqn, terms: Terms) -> bool:
        """Return True if a view keeps the order of elements, or repeats each one in a row."""
        kinds = {symbol.kind for factors in terms for symbol, _ in factors}
        if kinds <= {Kind.NUMBER}:
            return True
        (x,) = eqn.invars
        key = (eqn.primitive, x.aval, *eqn.params.items())
        if key not in self.merged:
            self.merged[key] = merge_view(eqn)
        merged = self.merged[key]
        repeats = x.aval.size == self.rows and kinds.isdisjoint(OF_PAIRS)
        spread = (self.rows, self.count), (1, 0)
        return merged == ((x.aval.size,), (1,)) or (repeats and merged == spread)

    def read_choice(self, operands: Sequence[Atom], depth: int) -> Terms | None:
        """Return the terms of a value where a mask is one truth value, and 0 elsewhere."""
        mask, *cases = operands
        values = [self.read(a, depth) for a in cases]
        if (
            len(values) != 2
            or {} not in values
            or mask.aval.dtype != bool
            or not self.is_full(mask)
        ):
            return None
        keeps = values[0] == {}
        value = values[keeps]
        chosen = of_symbol(Kind.MASK, (find_source(mask, self.maker), keeps))
        return None if value is None else multiply_terms(value, chosen)

    def read_power(self, atom: Atom, depth: int) -> Terms | None:
        """Return the terms of `exp(x - max(x))`, possibly divided by an exponentiated logarithm."""
        shift: Terms = {}
        while (eqn := self.maker(atom)) and is_instruction(eqn.primitive, ops.sub_p):
            atom, moved = eqn.invars
            value = self.read(moved, depth)
            if value is None or not self.is_full(atom):
                return None
            shift = add_terms(shift, value)
            rest = add_terms(shift, of_symbol(Kind.TOP, atom), -1)
            if len(rest) < len(shift):
                power = of_symbol(Kind.EXP, atom)
                if not rest:
                    return power
                total = find_logarithm(rest)
                if total is not None:
                    return multiply_terms(power, total)
        return None


def merge_view(eqn: Eqn) -> Any:
    """Return sizes and steps of the elements of an operand in the result, in its order.

    Returns None if the result is no view of the operand from its first element on.
    """
    (x,) = eqn.invars
    views = find_views(eqn, {x: view_whole(x)})
    return merge_axes(views[0]) if views and not views[0].start else None


def find_source(atom: Atom, maker: Callable[[Atom], Eqn | None]) -> tuple:
    """Return the array that an array is a view of, and what tells the view from others."""
    path, source = list[Eqn](), atom
    while (eqn := maker(source)) and eqn.primitive.cost is Cost.FREE and len(eqn.invars) == 1:
        path.append(eqn)
        (source,) = eqn.invars
    views: dict[Any, View] = {} if type(source) is Literal else {source: view_whole(source)}
    for eqn in reversed(path):
        views.update(zip(eqn.outvars, find_views(eqn, views) or (), strict=False))
    view = views.get(atom)
    return (atom,) if view is None else (source, view.start, merge_axes(view))


def find_logarithm(x: Terms) -> Terms | None:
    """Return `exp(-x)` for terms that are one logarithm of one term; None for others."""
    for factors, c in x.items():
        for symbol, exponent in factors:
            if len(x) == len(factors) == c == exponent == 1 and symbol.kind is Kind.LOG:
                inside: Any = symbol.key
                return invert_terms(dict(inside))
    return None


def combine_terms(prim: Primitive, values: Sequence[Terms | None]) -> Terms | None:
    """Return the terms of an elementwise operation; a factor of 0 makes any product 0."""
    x, y = values[0], values[-1]
    if is_instruction(prim, ops.mul_p) and (x == {} or y == {}):
        return {}
    if x is None or y is None:
        return {} if x == {} and prim.form is Form.QUOTIENT else None
    if prim.form is Form.QUOTIENT:
        inverse = invert_terms(y)
        return None if inverse is None else multiply_terms(x, inverse)
    if is_instruction(prim, ops.mul_p):
        return multiply_terms(x, y)
    if is_instruction(prim, ops.add_p, ops.sub_p):
        return add_terms(x, y, 1.0 if is_instruction(prim, ops.add_p) else -1.0)
    if is_instruction(prim, ops.neg_p):
        return add_terms({}, x, -1.0)
    return of_symbol(Kind.LOG, frozenset(x.items())) if is_instruction(prim, log_p) else None
