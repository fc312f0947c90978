"""Sums on the CPU; the kernel's are in tests/xla/test_native.py."""

import re

import numpy as np

import weft
import weft.numpy as jnp
from weft.core.aval import ShapedArray
from weft.primitives.summing import split_row


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


def test_long_rows_are_reduced_side_by_side():
    """Of each number of steps: one row and many, short, and of a length without divisors."""
    rng = np.random.default_rng(1)
    shapes = {(600, 500): None, (50, 1000): 1, (3, 20, 128): (1, 2), (40, 1024): -1, (36_000,): 0}
    shapes |= {(262_147,): 0, (10, 10_000): 1, (2, 131_072): 1, (270_000,): 0, (32768, 1): 0}
    kinds = ("sum", "prod", "max", "min", "any", "all")
    for shape, axis in shapes.items():
        x = rng.integers(-50, 50, shape)
        far = np.where(x == 7, 3, 1).astype(np.int32)  # whose product wraps
        fun = lambda x, far, axis=axis: [
            *(getattr(jnp, k)(y, axis) for k in kinds[:1] for y in (x, x > 3, x.astype(np.uint8))),
            jnp.prod(far, axis),
            *(getattr(jnp, k)(y, axis) for k in kinds[2:] for y in (x, x + 1)),
            jnp.sum(x + 1j * x, axis),
            jnp.prod(jnp.where(x == 7, 1j, 1), axis),
        ]
        found = weft.jit(fun)(x.astype(np.int32), far)
        expected = [
            *(np.sum(y, axis) for y in (x, x > 3, x.astype(np.uint8))),
            np.prod(far, axis, dtype=np.int32),
            *(getattr(np, k)(y, axis) for k in kinds[2:] for y in (x, x + 1)),
            np.sum(x + 1j * x, axis),
            1j ** ((x == 7).sum(axis) % 4),
        ]
        for y, z in zip(found, expected):
            np.testing.assert_allclose(y, z, rtol=1e-6, atol=1e-3 if np.iscomplexobj(z) else 0)


def test_how_a_row_is_cut():
    known = lambda n, dtype="int32", alone=False: split_row(
        n, ShapedArray((n,), np.dtype(dtype)), alone
    )
    assert known(1_000_000, alone=True) == (32, 125)
    assert known(1000) == (25, 40) and known(1000, "complex64") == (10, 100)
    assert known(1_000_000) == known(10_000, alone=True) == known(1009) == known(64) == (0, 0)


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
        with weft.config.scope(native=False):  # else functions are a kernel's
            assert not in_loop(lambda x: total(jnp.sin(x)))
            assert not in_loop(lambda x: total(x * 2 + jnp.arctan(x)))
        assert not in_loop(lambda x: total(x.reshape(-1, 20)))
        assert not in_loop(total, weft.ShapeDtypeStruct((10, 4), np.float32))

    def long(x):
        for i in range(20):
            x = x * x + i
        return total(x)

    assert not in_loop(long)
