"""Integers of index arithmetic: the text in C, computed in Python, against exact arithmetic."""

import random

import pytest

from weft.core.element import Operator
from weft.export.c.index import combine_indices, compare_indices, index_number, index_term

SIZES = {"i": 4, "j": 6, "k": 5}
NAMES = {"weft_floor": lambda a, b: a // b, "weft_min": min, "weft_max": max}


def evaluate_text(text, values):
    """The value of an expression in C of integers, whose quotients are of numbers not below 0."""
    return eval(text.replace(" / ", " // ").replace("&&", "and"), NAMES, dict(values))


def draw_index(rng, depth):
    """An index, and the function of the variables that it should be."""
    if depth == 0 or rng.random() < 0.2:
        if rng.random() < 0.3:
            n = rng.randrange(-3, 12)
            return index_number(n), lambda v: n
        name = rng.choice(list(SIZES))
        return index_term(name, 0, SIZES[name] - 1), lambda v: v[name]
    operator = rng.choice([Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY, Operator.DIVIDE,
                           Operator.REMAINDER, Operator.SMALLER, Operator.LARGER])  # fmt: skip
    x, f = draw_index(rng, depth - 1)
    if operator in (Operator.MULTIPLY, Operator.DIVIDE, Operator.REMAINDER):
        n = rng.randrange(1, 9)
        y, g = index_number(n), lambda v: n
    else:
        y, g = draw_index(rng, depth - 1)
    return combine_indices(operator, x, y), lambda v: operator.value[1](f(v), g(v))


def list_values(rng):
    ends = [dict.fromkeys(SIZES, 0), {n: s - 1 for n, s in SIZES.items()}]
    return ends + [{n: rng.randrange(s) for n, s in SIZES.items()} for _ in range(8)]


@pytest.mark.parametrize("seed", range(20))
def test_text_and_bounds(seed):
    rng = random.Random(seed)
    for _ in range(20):
        index, fun = draw_index(rng, 4)
        for values in list_values(rng):
            want = fun(values)
            assert evaluate_text(index.text, values) == want, index.text
            assert index.low <= want <= index.high
            if index.number is not None:
                assert index.number == want


@pytest.mark.parametrize("operator", [Operator.LESS, Operator.AT_MOST, Operator.EQUAL])
def test_comparisons(operator):
    rng = random.Random(1)
    for _ in range(100):
        (x, f), (y, g) = draw_index(rng, 2), draw_index(rng, 2)
        found = compare_indices(operator, x, y)
        for values in list_values(rng):
            want = operator.value[1](f(values), g(values))
            got = found if isinstance(found, bool) else evaluate_text(found, values)
            assert got == want, f"{x} {operator} {y}"


def test_nested_reshapes_are_simple():
    i, j, k = (index_term(n, 0, s - 1) for n, s in SIZES.items())
    flat = i.scale(30).add(j.scale(5)).add(k)
    assert flat.divide(30) == i
    assert flat.divide(5).remainder(6) == j
    assert flat.remainder(5) == k
