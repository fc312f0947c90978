"""Loops that are one in place of two, and sums in lanes."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.export.c.sanitized import run_sanitized
from weft import export, lax

RNG = np.random.default_rng(0)


def draw(*shape, dtype=np.float32):
    return RNG.normal(size=shape).astype(dtype)


def write(fun, *args, name="program"):
    return export.to_c(fun, name=name)(*args)


def loops_of(fun, *args):
    source = write(fun, *args).source
    return [line.split(" < ")[1].split(";")[0] for line in source.splitlines() if "for (" in line]


@pytest.mark.parametrize(
    ("fun", "shape", "loops"),
    [
        (lambda x: x * 2, (6, 5, 3), ["90"]),
        (lambda x: x[:, :, None] * 2, (6, 5), ["30"]),
        (lambda x: x * x[:, :1], (6, 5), ["6", "5"]),
        (lambda x: x.T * 2, (6, 5), ["5", "6"]),
        (lambda x: x[:, :2] * 2, (6, 5), ["6", "2"]),
        (lambda x: x[:, ::-1] * 2, (6, 5), ["6", "5"]),
        (lambda x: x + jnp.arange(5.0), (6, 5), ["6", "5"]),
        (lambda x: x + jnp.arange(30.0).reshape(6, 5), (6, 5), ["6", "5"]),
        (lambda x: jnp.max(x, (1, 2)), (4, 5, 6), ["4", "30"]),
    ],
)
def test_nested_loops_over_neighbours_are_one(fun, shape, loops):
    assert loops_of(fun, draw(*shape)) == loops


SUMS = {
    "a vector": lambda x: jnp.sum(x),
    "squares of a part": lambda x: jnp.sum(x[1:] ** 2),
    "two sums": lambda x: (jnp.sum(x), jnp.mean(jnp.sin(x))),
    "rows": lambda x: jnp.sum(jnp.stack([x, x * 2, x[::-1]]), 1),
    "from the end": lambda x: jnp.sum(x[::-1] * jnp.arange(x.size)),
    "a product": lambda x: x @ x[::-1],
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_sums_of_all_lengths(dtype):
    """Under the sanitizers: full lanes, the rest, and lengths that are shorter than the lanes."""
    calls = []
    with weft.enable_x64(dtype is np.float64):
        for n in (1, 7, 8, 9, 15, 16, 17, 24, 31):
            x = draw(n, dtype=dtype)
            fun = lambda x: [f(x) for f in SUMS.values()]
            calls.append((write(fun, x, name=f"sums_{n}"), (x,)))
        wants = [weft.tree.leaves([f(x) for f in SUMS.values()]) for _, (x,) in calls]
    tolerance = {np.float16: 2e-2, np.float32: 1e-5, np.float64: 1e-13}[dtype]
    for outs, want in zip(run_sanitized(calls), wants, strict=True):
        for got, expected in zip(outs, want, strict=True):
            np.testing.assert_allclose(got, expected, tolerance, 4 * tolerance)


def test_long_sums_lose_no_digits():
    x = draw(10_000) + 100
    program = write(lambda x: jnp.sum(x), x)
    assert "[8]" in program.source
    np.testing.assert_allclose(program.build()(x), np.sum(x.astype(np.float64)), 1e-6)
    assert program.build()(np.full(10_000, -0.0, np.float32)) == 0
    assert np.isnan(program.build()(np.where(np.arange(10_000) == 7, np.nan, x)))


def test_the_order_of_a_loop_of_the_user_is_kept():
    """Each step of it adds to the result of the step before, as a correction for rounding needs."""

    def add_up(x):
        return lax.fori_loop(0, x.size, lambda i, total: total + x[i], jnp.float32(0))

    x = draw(100)
    program = write(add_up, x)
    assert "[8]" not in program.source
    total = np.float32(0)
    for item in x:
        total += item
    assert program.build(flags=["-O1"])(x) == total
    running = write(lambda x: jnp.cumsum(x), x)
    assert "[8]" not in running.source
