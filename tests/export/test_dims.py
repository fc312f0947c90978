"""Symbolic sizes: normal forms, comparisons and bounds, against numbers in their place."""

import itertools
import operator

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import core, export
from weft.errors import InconclusiveDimensionOperation, ShapeError
from weft.export import dims, specs

B, N = export.symbolic_shape("b, n")
EXPRESSIONS = [
    lambda b, n: 3 * b * b + n - 1,
    lambda b, n: (4 * b + 3) // 2 - n,
    lambda b, n: (b * n + n) // n,
    lambda b, n: (b + n) // 2 % 4,
    lambda b, n: -b // 3 + 7 // n,
    lambda b, n: (b * b - 1) // (b + 1) + (-n) % b,
    lambda b, n: 2**2 * b - (n - b) * 2,
    lambda b, n: core.max_dim(b, n) - core.min_dim(b, 2) + core.max_dim(b // 2, 1),
    lambda b, n: divmod(b + 5, n)[1] + (b - n) ** 2,
    lambda b, n: ((b - 5) // 2) * n - ((b - 5) // 2),
]


@pytest.mark.parametrize("place", range(len(EXPRESSIONS)))
def test_values_bounds_and_text(place):
    """The value, the text and the bounds of an expression at many numbers."""
    found = EXPRESSIONS[place](B, N)
    (again,) = specs.read_sizes(str(found), B.scope)
    assert again == found and hash(again) == hash(found)
    low, high = export.symbolic_dim_bounds(found)
    for b, n in itertools.product((1, 2, 3, 5, 8), (1, 2, 7)):
        value = EXPRESSIONS[place](b, n)
        assert dims.evaluate_size(found, {"b": b, "n": n}) == value
        assert low <= value <= high


least, greatest = core.min_dim, core.max_dim
BOUNDED = [
    lambda b, n: greatest(b, 3) - least(b, 2), lambda b, n: 5 - greatest(least(b, 4), 2),
    lambda b, n: greatest(least(b, 4), 2) * least(n, 3), lambda b, n: greatest(b, n) - b,
    lambda b, n: b % 4 - n % 3, lambda b, n: 7 // b, lambda b, n: -7 // b, lambda b, n: -b % 5,
    lambda b, n: (b + 5) // 3, lambda b, n: 2 - b * n, lambda b, n: b * b - 3, lambda b, n: b - n,
    lambda b, n: least(b, 5) ** 2, lambda b, n: (3 - least(b, 5)) * least(n, 2),
    lambda b, n: (least(b, 9) - 4) // 2, lambda b, n: least(b, 9) // least(n, 2),
    lambda b, n: (2 - least(b, 9)) // least(n, 3), lambda b, n: least(b, n) - n,
    lambda b, n: greatest(b, 3) - b, lambda b, n: b - greatest(b, 4), lambda b, n: b - least(b, 5),
    lambda b, n: least(b, 4) - least(b, 6), lambda b, n: greatest(b, 4) - greatest(b, 6),
    lambda b, n: greatest(b, n) - b + least(n, 3), lambda b, n: b + n - greatest(b, n),
]  # fmt: skip
BETWEEN = [
    lambda a, c: a, lambda a, c: c, lambda a, c: c - a, lambda a, c: a * c, lambda a, c: 3 - 2 * a,
    lambda a, c: greatest(a, 4) - a, lambda a, c: 2 * least(a, 4), lambda a, c: 12 // a,
    lambda a, c: (a - 4) // 2, lambda a, c: a // 4, lambda a, c: a % 4,
]  # fmt: skip


def test_bounds_are_the_least_and_the_greatest_value():
    """They hold for all sizes; an end of the tried range counts as unbounded."""
    for k, formula in enumerate(BOUNDED):
        low, high = export.symbolic_dim_bounds(formula(B, N))
        values = {formula(b, n) for b, n in itertools.product(range(1, 30), repeat=2)}
        small = {formula(b, n) for b, n in itertools.product(range(1, 27), repeat=2)}
        for bound, best in ((low, min), (high, max)):
            met = best(values) == best(small)
            assert bound == best(values) if met else abs(bound) > 2**28, (k, bound, best)
    a, c = export.symbolic_shape("a, c", constraints=["a >= 2", "a <= 6", "c >= a", "c <= 2*a + 1"])
    for k, formula in enumerate(BETWEEN):
        values = [formula(i, j) for i in range(2, 7) for j in range(i, 2 * i + 2)]
        assert export.symbolic_dim_bounds(formula(a, c)) == (min(values), max(values)), k


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (B - N, "b - n"), (N * B * 2, "2*b*n"), (B**2 + B, "b^2 + b"), (-B, "- b"),
        (2 * B // N, "floordiv(2*b, n)"), (B % 3, "b - 3*floordiv(b, 3)"),
    ],
)  # fmt: skip
def test_text(size, text):
    assert str(size) == repr(size) == text


def test_what_simplifies_is_a_number():
    assert B - B == 0 and type(B - B) is int
    assert (4 * B + 2) // 2 == 2 * B + 1 and (B * N) // N == B and (2 * B + 1) % 2 == 1
    assert core.max_dim(B, 1) is B and core.min_dim(B + 1, B) == B


def test_comparisons_that_have_an_answer():
    assert B > 0 and B >= 1 and not B < 1 and B + 1 > B and B // 2 <= B and B % 3 < 3
    assert B == B and B != N and B != 1 and bool(B)
    assert core.max_dim(B, N) >= B and core.min_dim(B, N) <= N
    assert B * N - B >= 0 and (B - 1) // 2 + 1 <= B


@pytest.mark.parametrize(("a", "b"), [(B, 2), (B, N), (B * N, 2 * N)])
def test_comparisons_that_have_none(a, b):
    for compare in (operator.lt, operator.ge, operator.gt, operator.le):
        with pytest.raises(InconclusiveDimensionOperation, match="^comparison: must have the same"):
            compare(a, b)


def test_a_size_is_no_number():
    for use in (int, range, float, [1].__getitem__, jnp.asarray):
        with pytest.raises(
            InconclusiveDimensionOperation, match="^index\\(\\): needs a number; got"
        ):
            use(B)
    with pytest.raises(ZeroDivisionError):
        B // 0
    with pytest.raises(TypeError, match="^pickle: a symbolic size is of its scope"):
        B.__reduce__()
    with pytest.raises(TypeError):
        B + "1"


def test_constraints_decide_comparisons():
    texts = ["b >= 4", "n <= 2*b", "mod(b, 2) == 0", "k == 3*n"]
    b, n, k = export.symbolic_shape("b, n, k", constraints=texts)
    assert b >= 4 and b > 3 and n < 3 * b and not n > 2 * b and b * n - 4 * n >= 0
    assert b % 2 == 0 and b // 2 * 2 == b and k == 3 * n
    with pytest.raises(InconclusiveDimensionOperation, match="got b >= 5 where b >= 4, n <= 2"):
        b >= 5  # noqa: B015
    assert repr(b.scope) == f"SymbolicScope({texts})"
    assert export.symbolic_shape("b", constraints=["b == 4"]) == (4,)


@pytest.mark.parametrize("equal", ["m == n", "n == m", "m == n - 2", "n == 2*m", "m == 3*n + k"])
@pytest.mark.parametrize("first", [True, False], ids=["equal first", "equal last"])
def test_an_equality_keeps_the_bounds_of_what_it_replaces(equal, first):
    texts = ["m >= 3", "m <= 20", "n >= 2"]
    texts = [equal, *texts] if first else [*texts, equal]
    m, n = export.symbolic_shape("m, n, k", constraints=texts)[:2]
    assert m >= 3 and m <= 20 and n >= 2
    (bare, _) = export.symbolic_shape("m, n", constraints=[equal])
    assert bare >= 1  # as every variable is


def test_sizes_of_two_scopes():
    (other,) = export.symbolic_shape("b")
    assert other != B
    with pytest.raises(ShapeError, match="^symbolic sizes: must be of one scope; got b of another"):
        other + B
    structs = [weft.ShapeDtypeStruct((n,), np.float32) for n in (B, other)]
    with pytest.raises(ShapeError, match="^symbolic sizes: must be of one scope; got b of another"):
        export.export(weft.jit(jnp.add))(*structs)
    (same,) = export.symbolic_shape("b", scope=B.scope)
    assert same == B and same + B == 2 * B


FORMULAS = [
    lambda n, m: 17 % n, lambda n, m: 17 // n, lambda n, m: divmod(17, n)[0] - divmod(17, n)[1],
    lambda n, m: divmod(n, 3)[0] * 5 + divmod(n, 3)[1], lambda n, m: (n + m) * (n - m),
    lambda n, m: n**3 - 2 * m, lambda n, m: (3 * n + 1) % (m + 1), lambda n, m: 7 - n - -m,
    lambda n, m: (n * m + m) // m, lambda n, m: n // -2, lambda n, m: -7 // n, lambda n, m: -7 % n,
    lambda n, m: (n + 5) // 2 % 3,
]  # fmt: skip


def test_arithmetic_is_that_of_the_numbers():
    n, m = export.symbolic_shape("n, m")
    for k, formula in enumerate(FORMULAS):
        size = formula(n, m)
        assert size.variables() <= {"n", "m"}
        for i, j in itertools.product(range(1, 7), range(1, 5)):
            assert size.evaluate({"n": i, "m": j}) == formula(i, j), (k, i, j)
    for convert in (int, float, operator.index, np.asarray):
        with pytest.raises(InconclusiveDimensionOperation, match="got the symbolic size"):
            convert(n * m)


def test_a_remainder_is_below_its_divisor():
    b, n = export.symbolic_shape("b, n")
    for size, least in (((b + 13) % b, b), ((b * n + 1) % n, n), ((3 * b + n) % b, b)):
        assert size >= 0 and size < least and not size < 0
    assert (b + 13) // b >= 1
