"""Symbolic sizes: polynomials with integer coefficients over variables, and bounds of them.

A size that turns out to be a number is a Python int; a `Dim` is one that depends on variables. Sums
and products are normal forms, so that equal expressions are equal objects; quotients, remainders,
maxima and minima are factors like variables, where they do not simplify. Comparisons are decided by
bounds: a variable is from 1 to 2**31 - 1, and the constraints of its scope hold.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import weft.numpy as jnp
from weft.core.aval import ShapedArray, python_scalar_aval
from weft.core.element import Number
from weft.core.primitive import Primitive
from weft.errors import InconclusiveDimensionOperation, ShapeError
from weft.util import SymbolicSize

# A factor is a variable, by name, or an operation with its two operands; a monomial is a product of
# factors with their powers, in order.
Factor = Any
Monomial = tuple[tuple[Factor, int], ...]
Size = Any  # int | Dim

OPERATIONS: dict[str, Callable[[Size, Size], Size]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": lambda a, b: choose_size(a, b, "max"),
    "min": lambda a, b: choose_size(a, b, "min"),
}
MAX_SIZE = 2**31 - 1  # of a symbolic dimension: sizes are computed as 32-bit integers
# Limits of one expression, so that no text takes long to parse: the number of factors, counting
# the factors of operands; the nesting of operations; the degree of a term; the bits of an integer.
# Expressions in programs are far smaller.
MAX_FACTORS, MAX_NESTING, MAX_DEGREE, MAX_BITS = 500, 32, 64, 64
# The number of expressions of one scope whose bounds are found with the help of constraints. Later
# expressions have only the bounds that follow from the variables.
MAX_BOUNDS = 1_500
_DEPTH = 3  # of constraints that are used one after another to bound an expression


class DimAsValue(Primitive):
    """A symbolic size as a scalar of an integer dtype, which is weak."""

    name = "dim_as_value"

    def abstract_eval(self, *, dim, dtype):
        return [ShapedArray((), dtype, weak_type=True)]

    def impl(self, *, dim, dtype):
        return [dtype.type(dim.__index__())]

    def element(self, i, *, dim, dtype):
        return [Number(dim, dtype)]

    def lower(self, hlo, *, dim, dtype):
        (aval,) = self.abstract_eval(dim=dim, dtype=dtype)
        write = getattr(hlo, "size_value", lambda size: hlo.constant(size.__index__(), aval))
        return [hlo.convert(write(dim), dtype)]


dim_as_value_p = DimAsValue()


def value_of_size(dim: Any) -> Any:
    """Return a symbolic size as a scalar of the dtype that Python's integers have here."""
    return dim_as_value_p.apply(dim=dim, dtype=python_scalar_aval(0).dtype)[0]


class Dim(SymbolicSize):
    """A size that depends on the variables of a scope; `symbolic_shape` makes them.

    It is a number to shapes: `+`, `-`, `*`, `//`, `%`, `**`, comparisons. In a traced function it
    is a scalar array wherever it is computed with.
    """

    __slots__ = ("_hash", "extent", "nesting", "scope", "terms")

    def __init__(self, terms: Mapping[Monomial, int], scope: Any):
        self.extent, self.nesting = measure_terms(terms)
        self.terms = dict(sorted(terms.items(), key=lambda t: order_monomial(t[0])))
        self.scope = scope
        self._hash = hash(tuple(self.terms.items()))

    @staticmethod
    def variable(name: str, scope: Any) -> Size:
        """The size of this name."""
        return make_size({((name, 1),): 1}, scope)

    @property
    def aval(self) -> ShapedArray:
        """The type that it has as a value."""
        return python_scalar_aval(0)

    def stage(self, trace: Any) -> Any:
        params = {"dim": self, "dtype": python_scalar_aval(0).dtype}
        return trace.process(dim_as_value_p, (), params)[0]

    def choose(self, other: Size, kind: str) -> Size:
        return choose_size(self, other, kind)

    def is_below(self, limit: int) -> bool:
        return bool(find_order(self, limit, "<"))

    def __jax_array__(self) -> Any:
        return value_of_size(self)

    # -- arithmetic ---------------------------------------------------------------------------

    def _combine(self, other: Any, combine: Callable, values: Callable) -> Any:
        """Combine two sizes by `combine`. For a float or complex number, use `values`."""
        if isinstance(other, Dim):
            self.scope.check_same(other)
            return combine(self, other)
        if isinstance(other, int | np.integer):
            return combine(self, int(other))
        return values(self, other) if isinstance(other, float | complex) else NotImplemented

    def __add__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: add_sizes(a, b, 1), jnp.add)

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: add_sizes(a, b, -1), jnp.subtract)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        return self._combine(other, multiply_sizes, jnp.multiply)

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __pow__(self, power: int) -> Any:
        return raise_size(self, power)

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __floordiv__(self, other: Any) -> Any:
        return self._combine(other, divide_sizes, jnp.floor_divide)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._combine(
            other, lambda a, b: divide_sizes(b, a), lambda a, b: jnp.floor_divide(b, a)
        )

    def __mod__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a - b * (a // b), jnp.remainder)

    def __rmod__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: b - a * (b // a), lambda a, b: jnp.remainder(b, a))

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        return jnp.true_divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return jnp.true_divide(other, self)

    # -- comparisons --------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if type(other) is Dim:
            if self.scope is not other.scope:  # a size of another program, in a key of a cache
                return False
            if self._hash == other._hash and self.terms == other.terms:
                return True
        if self.scope.compared is not None and isinstance(other, Dim | int | float | np.number):
            self.scope.compared.append((self, other, sys._getframe(1).f_code))
        return False

    def __hash__(self) -> int:
        return self._hash

    def _compare(self, other: Any, sign: str) -> Any:
        if not isinstance(other, Dim | int | np.integer):
            return NotImplemented
        other = other if isinstance(other, Dim) else int(other)
        found = find_order(self, other, sign)
        if found is None:
            found = self.scope.decide(self, sign, other, sys._getframe(2))
        if found is None:
            least = other + 1 if sign in ("<=", ">") else other
            raise InconclusiveDimensionOperation(
                f"comparison: must have the same answer for all sizes; got {self} {sign} {other}"
                f"{self.scope.describe()}. Hint: constraints=('{self} >= {least}',) of "
                "symbolic_shape, or weft.core.max_dim and min_dim in place of max and min."
            )
        return found

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, "<")

    def __le__(self, other: Any) -> Any:
        return self._compare(other, "<=")

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, ">")

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, ">=")

    def __bool__(self) -> bool:
        return True  # because it is not equal to 0

    def __index__(self) -> int:
        raise InconclusiveDimensionOperation(
            f"index(): needs a number; got the symbolic size {self}. Hint: x.shape[0] where it is "
            "a size, jnp.arange(x.shape[0]) for range, lax.fori_loop for a loop."
        )

    __int__ = __float__ = __index__

    def __array__(self, *_: Any, **__: Any) -> Any:
        self.__index__()

    # -- variables and factors ------------------------------------------------------------------

    def variables(self) -> set[str]:
        """The names of the variables in it."""
        found: set[str] = set()
        for factor in self.factors():
            if isinstance(factor, str):
                found.add(factor)
            else:
                found.update(*[x.variables() for x in factor[1:] if isinstance(x, Dim)])
        return found

    def factors(self) -> Iterator[Factor]:
        """The factors of its monomials."""
        return (factor for monomial in self.terms for factor, _ in monomial)

    def evaluate(self, sizes: Mapping[str, Size]) -> Size:
        """Its value where its variables have these sizes."""
        total: Size = 0
        for monomial, count in self.terms.items():
            value: Size = count
            for factor, power in monomial:
                if isinstance(factor, str):
                    base = sizes[factor]
                else:
                    kind, *operands = factor
                    base = OPERATIONS[kind](*[evaluate_size(x, sizes) for x in operands])
                value = value * base**power
            total = total + value
        return total

    def __str__(self) -> str:
        text = ""
        for monomial, count in self.terms.items():
            sign = ("- " if count < 0 else "") if not text else (" - " if count < 0 else " + ")
            parts = [str(abs(count))] if abs(count) != 1 or not monomial else []
            parts += [factor_text(f) + (f"^{n}" if n > 1 else "") for f, n in monomial]
            text += sign + "*".join(parts)
        return text

    __repr__ = __str__

    def __reduce__(self) -> Any:
        raise TypeError(
            f"pickle: a symbolic size is of its scope alone; got {self}. Hint: its text, and "
            "export.symbolic_shape."
        )


def order_monomial(monomial: Monomial) -> tuple:
    """By which terms are ordered: higher degrees first, then by name."""
    return -sum(n for _, n in monomial), [(factor_text(f), -n) for f, n in monomial]


def factor_text(factor: Factor) -> str:
    """A factor as it prints."""
    if isinstance(factor, str):
        return factor
    kind, a, b = factor
    return f"{kind}({a}, {b})"


def evaluate_size(x: Size, sizes: Mapping[str, Size]) -> Size:
    """A size where variables have these sizes."""
    return x.evaluate(sizes) if isinstance(x, Dim) else x


def make_size(terms: Mapping[Monomial, int], scope: Any) -> Size:
    """A sum of terms, by what the scope knows to be equal; an int where no variable is left."""
    left = {m: c for m, c in terms.items() if c}
    for monomial in left:
        for factor, power in monomial:
            for multiple, value in scope.equal.get(factor, ()):
                count, rest = divmod(left[monomial], multiple)
                if count and not rest:
                    others = tuple([(f, n) for f, n in monomial if f != factor])
                    others = (*others, (factor, power - 1)) if power > 1 else others
                    del left[monomial]
                    return add_sizes(
                        make_size(left, scope),
                        multiply_sizes(make_size({others: count}, scope), value),
                        1,
                        scope,
                    )
    if not left:
        return 0
    if [*left] == [()]:
        return left[()]
    return Dim(left, scope)


def list_products(
    size: Dim, number: Callable[[int], Any], factor: Callable[[Factor], Any]
) -> list[list]:
    """Return the terms of a size as lists of factors, made by `factor`.

    `number` makes the count of a term, which is left out if it is 1 and there are factors.
    """
    products = []
    for monomial, count in size.terms.items():
        parts = [factor(f) for f, power in monomial for _ in range(power)]
        products.append(parts if count == 1 and parts else [*parts, number(count)])
    return products


def terms_of(x: Size) -> Mapping[Monomial, int]:
    """The terms of a size."""
    return x.terms if isinstance(x, Dim) else {(): x} if x else {}


def add_sizes(a: Size, b: Size, times: int, scope: Any = None) -> Size:
    """a + times * b."""
    if isinstance(a, int) and isinstance(b, int):
        return a + times * b
    terms = dict(terms_of(a))
    for monomial, count in terms_of(b).items():
        terms[monomial] = terms.get(monomial, 0) + times * count
    return make_size(terms, scope or pick_scope(a, b))


def multiply_sizes(a: Size, b: Size) -> Size:
    """a * b."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    terms: dict[Monomial, int] = {}
    for m, c in terms_of(a).items():
        for n, d in terms_of(b).items():
            powers = dict(m)
            for factor, power in n:
                powers[factor] = powers.get(factor, 0) + power
            key = tuple(sorted(powers.items(), key=lambda p: factor_text(p[0])))
            terms[key] = terms.get(key, 0) + c * d
    return make_size(terms, pick_scope(a, b))


def raise_size(a: Size, power: Any) -> Size:
    """a**power."""
    if isinstance(power, Dim) or not 0 <= operator.index(power) <= MAX_DEGREE:
        raise ShapeError(
            f"symbolic sizes: a power must be a number from 0 to {MAX_DEGREE}; got {a}^{power}."
        )
    found: Size = 1
    for _ in range(power):
        found = multiply_sizes(a, found)
    return found


def measure_terms(terms: Mapping[Monomial, int]) -> tuple[int, int]:
    """The number of factors of an expression, and how often operands are in operands.

    Raises where there are too many.
    """
    extent, nesting, degree = len(terms), 0, 0
    for monomial in terms:
        degree = max(degree, sum([n for _, n in monomial]))
        for factor, _ in monomial:
            operands = () if isinstance(factor, str) else factor[1:]
            held = [x for x in operands if isinstance(x, Dim)]
            extent += 1 + sum([x.extent for x in held])
            nesting = max([nesting, *[1 + x.nesting for x in held]])
    bits = max([count.bit_length() for count in terms.values()], default=0)
    if extent > MAX_FACTORS or nesting > MAX_NESTING or degree > MAX_DEGREE or bits > MAX_BITS:
        raise ShapeError(
            f"symbolic sizes: an expression must have at most {MAX_FACTORS} factors, of degree "
            f"{MAX_DEGREE}, nested {MAX_NESTING} times, and numbers of {MAX_BITS} bits; got "
            f"{extent} factors, of degree {degree}, nested {nesting} times, numbers of {bits} bits."
        )
    return extent, nesting


def pick_scope(*sizes: Size) -> Any:
    """The scope of the symbolic ones."""
    return next(x.scope for x in sizes if isinstance(x, Dim))


def divide_sizes(a: Size, b: Size) -> Size:
    """a // b: what divides exactly, and of the rest a number, or a factor of its own."""
    scope, whole, rest = pick_scope(a, b), 0, a
    if b == 0:
        raise ZeroDivisionError(f"floordiv: must not divide by 0; got {a} // 0.")
    for _ in range(50):  # long division by the leading term of b
        part = divide_term(rest, b, scope)
        if part is None:
            break
        whole, rest = whole + part, add_sizes(rest, multiply_sizes(part, b), -1)
    if isinstance(rest, int) and isinstance(b, int):
        return whole + rest // b
    if find_order(rest, 0, ">=") and find_order(rest, b, "<"):
        return whole
    factor = ("floordiv", rest, b)
    low, high = bound_factor(factor, scope, _DEPTH)
    return whole + (int(low) if low == high else make_size({((factor, 1),): 1}, scope))


def divide_term(a: Size, b: Size, scope: Any) -> Size | None:
    """A term of `a` divided by the leading term of `b`; None where none is a multiple of it."""
    lead, count = next(iter(terms_of(b).items()))
    for monomial, c in terms_of(a).items():
        more = divide_monomial(monomial, lead)
        if c % count == 0 and more is not None:
            return make_size({more: c // count}, scope)
    return None


def choose_size(a: Size, b: Size, kind: str) -> Size:
    """The larger or the smaller of two sizes, where it is known which that is."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b) if kind == "max" else min(a, b)
    for x, y in ((a, b), (b, a)):
        if find_order(x, y, ">="):
            return x if kind == "max" else y
    return make_size({(((kind, a, b), 1),): 1}, pick_scope(a, b))


# --- bounds -------------------------------------------------------------------------------------


def find_order(a: Size, b: Size, sign: str) -> bool | None:
    """Return True if a < b, a <= b, a > b or a >= b; None where it depends on the variables."""
    if sign[0] == "<":
        a, b, sign = b, a, ">" + sign[1:]
    low, high = find_bounds(add_sizes(a, b, -1))
    least = 0 if sign == ">=" else 1
    return True if low >= least else False if high < least else None


def find_bounds(x: Size, depth: int = _DEPTH) -> tuple[float, float]:
    """Return a lower and an upper bound of an expression."""
    if not isinstance(x, Dim):
        return x, x
    key = (x, depth)
    found = x.scope.bounds.get(key)
    if found is None:
        if len(x.scope.bounds) > MAX_BOUNDS:
            depth = 0
        x.scope.bounds[key] = -math.inf, math.inf
        low, high = 0.0, 0.0
        for monomial, count in x.terms.items():
            ends = [count * e for e in bound_monomial(monomial, x.scope, depth)]
            low, high = low + min(ends), high + max(ends)
        for constraint in x.scope.known(x) if depth else ():
            less, times = remove_term(x, constraint, depth)  # x = less + times * (a value >= 0)
            if times:
                ends = find_bounds(less, depth - 1)
                low, high = (max(low, ends[0]), high) if times > 0 else (low, min(high, ends[1]))
        for factor in sorted(set(x.factors()) if depth else (), key=factor_text):
            if factor[0] in ("max", "min"):  # it is one of the two
                ends = [find_bounds(put_factor(x, factor, y), depth - 1) for y in factor[1:]]
                low = max(low, min(ends[0][0], ends[1][0]))
                high = min(high, max(ends[0][1], ends[1][1]))
            elif factor[0] == "floordiv" and type(factor[2]) is int and factor[2] > 0:
                least, most = bound_without_quotient(x, factor, depth - 1)
                low, high = max(low, least), min(high, most)
        found = x.scope.bounds[key] = low, high
    return found


def bound_without_quotient(x: Dim, factor: Factor, depth: int) -> tuple[float, float]:
    """Bounds of `x` = rest + c * (a // n), from the bounds of n * rest + c * a.

    n * (a // n) is a minus a remainder. The remainder is between 0 and n - 1.
    """
    _, a, n = factor
    count = x.terms.get(((factor, 1),), 0)
    rest = make_size({m: c for m, c in x.terms.items() if m != ((factor, 1),)}, x.scope)
    if not count or (isinstance(rest, Dim) and factor in rest.factors()):
        return -math.inf, math.inf
    low, high = find_bounds(add_sizes(multiply_sizes(rest, n), a, count), depth)
    least, most = low - max(count, 0) * (n - 1), high - min(count, 0) * (n - 1)
    return -divide_ends(-least, n), divide_ends(most, n)


def put_factor(x: Dim, factor: Factor, value: Size) -> Size:
    """`x` with a size in the place of one of its factors."""
    total: Size = 0
    for monomial, count in x.terms.items():
        rest = make_size({tuple([t for t in monomial if t[0] != factor]): count}, x.scope)
        total = add_sizes(
            total, rest * raise_size(value, dict(monomial).get(factor, 0)), 1, x.scope
        )
    return total


def remove_term(x: Dim, constraint: Dim, depth: int) -> tuple[Size, int]:
    """Subtract a multiple of a constraint to cancel a term of `x`; return the rest and the factor.

    The multiple may have further factors, if they are at least 0.
    """
    for monomial, count in constraint.terms.items():
        for whole, c in x.terms.items():
            more = divide_monomial(whole, monomial)
            times, rest = divmod(c, count)
            if not monomial or more is None or not times or rest:
                continue
            if bound_monomial(more, x.scope, depth - 1)[0] >= 0:
                part = multiply_sizes(constraint, make_size({more: times}, x.scope))
                return add_sizes(x, part, -1), times
    return x, 0


def divide_monomial(a: Monomial, b: Monomial) -> Monomial | None:
    """Return the monomial `a` / `b`, or None if `b` does not divide `a`."""
    powers = dict(a)
    for factor, power in b:
        powers[factor] = powers.get(factor, 0) - power
    if min(powers.values(), default=0) < 0:
        return None
    return tuple([(f, n) for f, n in powers.items() if n])


def bound_monomial(monomial: Monomial, scope: Any, depth: int) -> tuple[float, float]:
    """The bounds of a product of factors."""
    low, high = 1.0, 1.0
    for factor, power in monomial:
        for _ in range(power):
            ends = [times(a, b) for a in (low, high) for b in bound_factor(factor, scope, depth)]
            low, high = min(ends), max(ends)
    return low, high


def times(a: float, b: float) -> float:
    """a * b, where 0 times infinity is 0."""
    return 0.0 if not a or not b else a * b


def bound_factor(factor: Factor, scope: Any, depth: int) -> tuple[float, float]:
    """Bounds of a variable, or of an operation from the bounds of its operands."""
    if isinstance(factor, str):
        return 1, MAX_SIZE
    kind, a, b = factor
    depth = max(depth - 1, 0)
    (low, high), (least, most) = find_bounds(a, depth), find_bounds(b, depth)
    if kind in ("max", "min"):
        choose = max if kind == "max" else min
        return choose(low, least), choose(high, most)
    if least <= 0:
        return -math.inf, math.inf
    return divide_ends(low, most if low >= 0 else least), divide_ends(
        high, least if high >= 0 else most
    )


def divide_ends(a: float, b: float) -> float:
    """Return a // b for a positive b. Both may be infinite."""
    return a if abs(a) == math.inf else a // b
