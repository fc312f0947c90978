"""Comparisons of indices whose results are known from the ranges of counters."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import jit, lax
from weft.cpu.ranges import bound_program
from weft.sharding import PartitionSpec as P

N = 7
X = np.random.default_rng(0).standard_normal((N, N)).astype(np.float32)


def count_choices(fun, *args) -> int:
    """Return the number of choices in a program and in its loops, after the pass."""
    jaxpr = weft.make_jaxpr(fun)(*args).jaxpr
    found = 0

    def walk(program) -> None:
        nonlocal found
        for eqn in program.eqns:
            found += eqn.primitive.name == "select_n"
            for held in eqn.params.values():
                if hasattr(held, "eqns"):
                    walk(held)

    walk(bound_program(jaxpr, (None,) * len(jaxpr.invars)))
    return found


def sum_rows(place, lower=0, upper=N):
    """Return a function that adds the row `x[place(i)]` to the first one, for each i of a loop."""
    return lambda x: lax.fori_loop(lower, upper, lambda i, y: y.at[0].add(x[place(i)]), x)


# Functions of a matrix, and the number of choices that are left: the number of indices whose sign
# is not known.
PROGRAMS = {
    "a counter": (sum_rows(lambda i: i), 0),
    "from above 0": (sum_rows(lambda i: i - 2, 2), 0),
    "below 0 at first": (sum_rows(lambda i: i - 1), 1),
    "from below 0": (sum_rows(lambda i: i, -2), 1),
    "backwards": (sum_rows(lambda i: N - 1 - i), 0),
    "backwards below 0": (sum_rows(lambda i: N - 2 - i), 1),
    "negative only": (sum_rows(lambda i: i - N), 0),
    "the less of two": (sum_rows(lambda i: jnp.minimum(i, 3)), 0),
    "at least 0": (sum_rows(lambda i: jnp.maximum(i - 3, 0)), 0),
    "in another dtype": (sum_rows(lambda i: i.astype(jnp.int8)), 0),
    "a product": (sum_rows(lambda i: i * 1 * (i - i + 1)), 1),
    "a value of the carry": (
        lambda x: lax.fori_loop(0, N, lambda i, c: (c[0] - 1, c[1] + x[c[0]]), (3, x[0])),
        1,
    ),
    "two counters": (
        lambda x: lax.fori_loop(
            0, N - 1, lambda i, y: lax.fori_loop(0, 2, lambda k, y: y + x[i - k, i + k], y), x[0]
        ),
        1,
    ),
    "rows of numbers": (lambda x: lax.scan(lambda y, i: (y + x[i], y), x[0], jnp.arange(N)), 0),
    "in a part on each device": (
        lambda x: weft.shard_map(
            sum_rows(lambda i: i), mesh=weft.make_mesh((1,), "x"), in_specs=P(), out_specs=P()
        )(x),
        0,
    ),
    "until a test fails": (
        lambda x: lax.while_loop(
            lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] + x[c[0]]), (0, x[0])
        ),
        1,
    ),
    "beyond the cases": (
        lambda x: lax.fori_loop(0, 2, lambda i, y: y + lax.select_n(np.int32(5), x[0], x[1]), x[0]),
        1,
    ),
    "an argument": (lambda x: x[jnp.int32(x[0, 0])], 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_choices_that_are_left_and_values(name):
    fun, left = PROGRAMS[name]
    assert count_choices(fun, X) == left
    with weft.disable_jit():
        expected = weft.tree.leaves(fun(X))
    for x, y in zip(weft.tree.leaves(jit(fun)(X)), expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
def test_counters_at_the_ends_of_their_dtype(dtype):
    info = np.iinfo(dtype)

    def fun(start):  # the counter overflows after some steps
        step = lambda c, _: ((c[0] + dtype(3), c[1] + jnp.where(c[0] < 0, 100, 1)), None)
        return lax.scan(step, (dtype(start), jnp.int32(0)), None, length=6)[0]

    for start in (info.max - 15, info.max - 18, info.max - 19, info.max - 4, info.min, 0):
        value, total = int(start), 0
        for _ in range(6):
            total += 100 if value < 0 else 1
            value = (value + 3 - info.min) % (info.max - info.min + 1) + info.min
        found = jit(lambda start=start: fun(start))()
        assert (int(found[0]), int(found[1])) == (value, total), start


@pytest.mark.parametrize("compare", ["less", "less_equal", "greater", "greater_equal", "equal"])
def test_comparisons_with_each_number(compare):
    test = getattr(np, compare)

    def fun(number):
        digit = lambda k: jnp.where(getattr(jnp, compare)(k, number), 1, 0)
        return lax.fori_loop(1, N, lambda k, y: y * 2 + digit(k), 0)

    for number in range(-2, N + 2):
        expected = 0
        for k in range(1, N):
            expected = expected * 2 + int(test(k, number))
        assert int(jit(fun, static_argnums=0)(number)) == expected
