"""Sums on the CPU; the kernel's are in tests/xla/test_native.py."""

import re

import numpy as np

import weft


def test_the_sum_of_a_few_long_rows():
    x = np.random.RandomState(0).randn(6, 10_000).astype(np.float32)
    x[:, :2] = [[0.0, -0.0]] * 6
    found = weft.jit(lambda x: (2 * x).sum(0))(x)
    np.testing.assert_allclose(found, 2 * x.astype(np.float64).sum(0), atol=1e-5)
    assert not np.signbit(found[:2]).any()


def test_log_sum_exp_of_a_few_long_rows():
    x = np.random.RandomState(0).randn(6, 10_000).astype(np.float32)
    found = weft.jit(lambda x: weft.nn.logsumexp(x, 0))(x)
    np.testing.assert_allclose(found, np.log(np.exp(x.astype(np.float64)).sum(0)), atol=1e-5)


def test_programs_lowered_before_do_not_decide_what_calls_the_kernel():
    x = weft.ShapeDtypeStruct((500, 128), np.float32)
    count = lambda f: weft.jit(f).lower(x).as_text().count("weft_sum")
    given, computed = lambda x: x.sum(0), lambda x: (2 * x).sum(0)
    first = count(given)
    for _ in range(3):  # each time, patterns are kept of what is written again
        assert [count(given), count(computed)] == [first, 0]


def test_sums_of_short_rows(rng):
    """Also of several axes, of what is computed on the way, and within loops."""
    for shape, axes in [((300, 2), 1), ((300, 8), -1), ((20, 30, 3), 2), ((300, 2, 3), (1, 2))]:
        x = rng.normal(size=shape).astype(np.float32)
        x[0], x[1], x[2] = -0.0, np.nan, np.inf

        def fun(x):
            loop = lambda _, y: x + y.sum(axes, keepdims=True)  # noqa: B023
            ways = x.sum(axes), (x * x - 1).sum(axes), weft.numpy.sin(x * 3).sum(axes)  # noqa: B023
            return *ways, weft.lax.fori_loop(0, 2, loop, x)

        wide = x.astype(np.float64)
        once = wide + wide.sum(axes, keepdims=True)
        sines = np.sin(np.where(np.isinf(x), np.nan, x * np.float32(3)).astype(np.float64))
        want = wide.sum(axes), (wide * wide - 1).sum(axes), sines.sum(axes)
        for y, z in zip(
            weft.jit(fun)(x), (*want, wide + once.sum(axes, keepdims=True)), strict=True
        ):
            np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-4)
        assert not np.signbit(np.ravel(weft.jit(fun)(x)[0])[0])


def test_short_rows_of_what_takes_long_are_computed_first():
    """A sine, or what is far away or unknown, would be slower within XLA's loop of the sum."""
    x = weft.ShapeDtypeStruct((5000, 4), np.float32)
    scalar = r'"stablehlo.negate"\(\S+\) : \(tensor<f32>\)'
    in_loop = lambda f, x=x: bool(re.search(scalar, weft.jit(f).lower(x).as_text()))
    jnp, total = weft.numpy, lambda y: jnp.sum(y, -1)
    for _ in range(3):  # what was written before does not decide
        assert in_loop(total)
        assert in_loop(lambda x: total((x[:, None] - x[None]) ** 2))
        assert in_loop(lambda x: total(jnp.diagonal(x.reshape(-1, 5, 4), axis1=1, axis2=2)))
        assert not in_loop(lambda x: total(jnp.sin(x)))
        assert not in_loop(lambda x: total(x * 2 + jnp.arctan(x)))
        assert not in_loop(lambda x: total(x.reshape(-1, 20)))
        assert not in_loop(total, weft.ShapeDtypeStruct((10, 4), np.float32))

    def long(x):
        for i in range(20):
            x = x * x + i
        return total(x)

    assert not in_loop(long)
