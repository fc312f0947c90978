"""Reductions to one number in loops: results as NumPy's, and which reductions are divided."""

import math

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import OVER_MESH, show_prepared
from weft import lax
from weft.cpu import folds

RNG = np.random.RandomState(0)
SIZES = [1, 15, 16, 17, 63, 64, 65, 100, 127, 128, 129, 512, 1000, 1024, 4095, 8192, 20000]


def in_scan(fun, x, n=3):
    """Return fun(x), fun(x + 1), ...: the results of the steps of a loop."""
    return lax.scan(lambda y, _: (y + 1, fun(y)), x, None, length=n)[1]


def in_while(fun, x, n=3):
    def step(state):
        i, y, outs = state
        return i + 1, y + 1, outs.at[i].set(fun(y))

    start = 0, x, jnp.zeros((n,), fun(x).dtype)
    return lax.while_loop(lambda s: (s[0] < n) & (jnp.max(s[1]) > -1e9), step, start)[2]


LOOPS = {"scan": in_scan, "while": in_while}
EXACT = {
    "sum": (jnp.sum, np.sum),
    "max": (jnp.max, np.max),
    "min": (jnp.min, np.min),
    "any": (lambda x: jnp.max(jnp.abs(x)), lambda x: np.max(np.abs(x))),
    "dot": (lambda x: jnp.dot(x, x), lambda x: np.dot(x, x)),
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("dtype", ["i4", "i8", "u4", "f4", "f8"])
def test_small_integers_are_exact(dtype, loop):
    """Sums of integers of any order are equal, in floats that hold them too."""
    with weft.enable_x64():
        xs = {n: RNG.randint(0, 50, n).astype(dtype) for n in SIZES[:-1:2] + [1000]}
        run = weft.jit(lambda xs: {n: [LOOPS[loop](f, x) for f, _ in EXACT.values()]
                                   for n, x in xs.items()})  # fmt: skip
        for n, found in run(xs).items():
            for (name, (_, oracle)), values in zip(EXACT.items(), found, strict=True):
                expected = [oracle(xs[n] + np.array(i, dtype)) for i in range(3)]
                np.testing.assert_array_equal(values, expected, f"{name} of {n}")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_are_as_precise_as_pairs(dtype):
    """An element is in at most 8 additions in each of 4 steps, and in 16 more."""
    with weft.enable_x64():
        eps = np.finfo(dtype).eps
        for n in SIZES:
            x = (RNG.randn(n) * 10.0 ** RNG.randint(-3, 4, n)).astype(dtype)
            values = np.asarray(weft.jit(lambda x: in_scan(jnp.sum, x, 1))(x))
            size = math.fsum(abs(x.astype("f8")))
            assert abs(values[0] - math.fsum(x.astype("f8"))) <= 50 * eps * size


@pytest.mark.parametrize("n", [128, 200, 1000])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_special_values_count_at_each_place(n, special):
    for place in (0, n // 8 - 1, n // 2, n - 2, n - 1):
        x = RNG.rand(n).astype("f")
        x[place] = special
        run = weft.jit(lambda x: [in_scan(f, x, 2) for f in (jnp.sum, jnp.max, jnp.min)])
        for values, oracle in zip(run(x), (np.sum, np.max, np.min), strict=True):
            expected = oracle(x)
            np.testing.assert_allclose(values[0], expected, rtol=1e-5)
    zeros = -np.zeros(n, np.float32)
    assert not np.signbit(weft.jit(lambda x: in_scan(jnp.sum, x, 1))(zeros))[0]


def test_shapes_axes_batches_and_derivatives():
    x = RNG.rand(7, 30).astype("f")
    programs = {
        "all axes": (lambda x: jnp.sum(x * x), lambda x: np.sum(x * x)),
        "one row": (lambda x: jnp.max(x.reshape(1, 210), 1)[0], np.max),
        "rows": (lambda x: jnp.sum(jnp.sum(x, 1)), np.sum),
        "mean": (lambda x: jnp.mean(x), np.mean),
    }
    run = weft.jit(lambda x: [in_scan(f, x, 2) for f, _ in programs.values()])
    for values, (_, oracle) in zip(run(x), programs.values(), strict=True):
        np.testing.assert_allclose(values, [oracle(x), oracle(x + 1)], rtol=1e-5)
    many = weft.jit(weft.vmap(lambda x: in_scan(jnp.sum, x, 2)))(np.stack([x, x + 1]))
    np.testing.assert_allclose(many[1], [np.sum(x + 1), np.sum(x + 2)], rtol=1e-5)
    slope = weft.jit(weft.grad(lambda x: jnp.sum(in_scan(lambda y: jnp.sum(y * y), x, 2))))(x)
    np.testing.assert_allclose(slope, 4 * x + 2, rtol=1e-5)


def test_nested_loops():
    def fun(x, n):
        inner = lambda i, y: y / jnp.sum(y) + i
        return lax.fori_loop(0, n, lambda i, y: lax.fori_loop(0, 3, inner, y), x)

    x, run = RNG.rand(150).astype("f"), weft.jit(fun)
    for n in (0, 1, 2, 5):
        expected = x.astype("f8")
        for _ in range(n):
            for i in range(3):
                expected = expected / expected.sum() + i
        np.testing.assert_allclose(run(x, n), expected, rtol=1e-4)


def test_divided_reductions():
    """Only reductions of enough elements to one number, in the bodies of loops."""
    count = lambda f, x, **k: show_prepared(lambda x: in_scan(f, x), x, **k).count("barrier")
    ones = lambda *shape: np.ones(shape, np.float32)
    assert count(jnp.sum, ones(1000)) == 3  # the operand, and sums of 125 and of 15
    assert count(jnp.max, ones(20, 50)) == 4  # the vector, too
    assert count(lambda x: jnp.dot(x, x * 2), ones(1000)) == 3
    assert count(jnp.sum, ones(folds.MIN_ELEMENTS - 1)) == 0
    assert count(jnp.sum, ones(folds.MAX_ELEMENTS + 1)) == 0
    assert count(lambda x: jnp.sum(x @ x), ones(40, 40)) == 0  # a product, which XLA calls
    assert count(lambda x: x.sum(1).max(), ones(10, 50)) == 0
    assert count(jnp.sum, ones(1000), target=OVER_MESH) == 0
    assert count(lambda x: jnp.max(x.astype(jnp.float16)), ones(1000)) == 0
    assert show_prepared(jnp.sum, ones(1000)).count("barrier") == 0
