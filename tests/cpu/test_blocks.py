"""Loops that run block by block: results as NumPy's loops, and which loops are run so."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import NO_KERNELS, OVER_MESH, show_prepared
from weft import lax
from weft.cpu import blocks

RNG = np.random.RandomState(0)


def newton(xp, loop, x, n):
    """Square roots; a number of the carry grows with the steps."""

    def step(_, state):
        y, t = state
        return (y + abs(x) / y) * np.float32(0.5), t + 1

    y, t = loop(n, step, (xp.ones_like(x), np.float32(0)))
    return y + t


def orbit(xp, loop, c, n):
    """Powers of complex numbers, with masks and a count of steps."""

    def step(i, state):
        z, count = state
        inside = z.real**2 + z.imag**2 < 4
        return xp.where(inside, z * z + c, z), xp.where(inside, count + i, count)

    z, count = loop(n, step, (xp.zeros_like(c), xp.zeros(c.shape, np.int32)))
    return z + count.astype(z.real.dtype)


def bits(xp, loop, x, n):
    """Random bits by shifts, of unsigned integers."""

    def step(i, y):
        y = y ^ (y << 13)
        y = y ^ (y >> 17)
        return (y ^ (y << 5)) + xp.full(x.shape, i, x.dtype)

    return loop(n, step, x)


def division(xp, loop, x, n):
    """Quotients, of which those of the padding of a block are not finite."""
    return loop(n, lambda i, y: np.float64(2) / y + x, x)


def exchange(xp, loop, x, n):
    """Arrays that change places, and one that no step changes."""
    a, b, c = loop(n, lambda i, s: (s[1], s[0] + s[2], s[2]), (x, x * 2, x % 3))
    return a - b + c


PROGRAMS = {
    "newton": (newton, np.float32),
    "orbit": (orbit, np.complex64),
    "orbit of c16": (orbit, np.complex128),
    "bits": (bits, np.uint32),
    "division": (division, np.float64),
    "exchange": (exchange, np.int16),
}


def draw(shape, dtype):
    x = RNG.randn(*shape) * 2
    if np.dtype(dtype).kind == "c":
        return ((x + 1j * RNG.randn(*shape)) * 0.5).astype(dtype)
    return abs(x * 9 + 1).astype(dtype) if np.dtype(dtype).kind in "iu" else x.astype(dtype)


def count_on(n, step, state):
    for i in range(n):
        state = step(np.int32(i), state)
    return state


def run(name, x, n):
    fun = PROGRAMS[name][0]
    return fun(jnp, lambda n, step, state: lax.fori_loop(0, n, step, state), x, n)


def runs_in_blocks(text):
    return text.count("scan[") == 2


@pytest.fixture
def any_size(monkeypatch):
    """Let loops on small arrays, and few steps, run in blocks of few elements."""
    for name in ("MIN_BYTES", "MIN_STEPS", "VECTOR"):
        monkeypatch.setattr(blocks, name, 1)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 8)


@pytest.mark.sample(one_in=3)
@pytest.mark.parametrize("shape", [(1,), (5,), (24,), (7, 31), (3, 4, 5), (64, 64)], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_as_of_loops(name, shape, any_size):
    fun, dtype = PROGRAMS[name]
    with weft.enable_x64():
        x = draw(shape, dtype)
        for n in (1, 2, 9):
            program = lambda x, n=n: run(name, x, n)
            assert x.size < 200 or runs_in_blocks(show_prepared(program, x))
            with np.errstate(all="ignore"):
                expected = fun(np, count_on, x, n)
            found = np.asarray(weft.jit(program)(x))
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_large_arrays_are_as_of_steps():
    """Without changes of thresholds: each step by itself gives the same, up to rounding."""
    x = draw((601, 811), np.complex64)
    program = lambda x: run("orbit", x, 40)
    assert runs_in_blocks(show_prepared(program, x))
    difference = np.asarray(weft.jit(program)(x)) - orbit(np, count_on, x, 40)
    assert (abs(difference) > 1e-3).mean() < 1e-2  # points at the edge may leave a step apart


def test_derivatives_and_batches():
    x = abs(draw((1100, 1000), np.float32)) + 1
    fun = lambda x: run("newton", x, 40)
    root = np.sqrt(x)
    both = weft.jit(weft.vmap(fun))(np.stack([x, 4 * x]))
    np.testing.assert_allclose(both, np.stack([root, 2 * root]) + 40, rtol=1e-5)
    slope = weft.jit(weft.grad(lambda x: jnp.sum(fun(x))))(x)
    np.testing.assert_allclose(slope, 0.5 / root, rtol=1e-4)
    moved = weft.jit(lambda x: weft.jvp(fun, (x,), (x,))[1])(x)
    np.testing.assert_allclose(moved, 0.5 * root, rtol=1e-4)


def repeat(step, n=40):
    return lambda x: lax.fori_loop(0, n, lambda _, y: step(y), x)


LARGE = np.ones((1500, 1500), np.float32)


@pytest.mark.parametrize(
    "fun",
    [
        repeat(lambda y: y + jnp.roll(y, 1, 0)),
        repeat(lambda y: y - jnp.sum(y)),
        repeat(lambda y: y * y[0]),
        repeat(lambda y: jnp.cumsum(y, 0)),
        repeat(lambda y: y * jnp.arange(1500.0)),
        repeat(lambda y: y.T),
        repeat(lambda y: jnp.sin(y)),
        repeat(lambda y: y + 1, 8),
        lambda x: lax.scan(lambda y, _: (y + 1, y), x, length=40),
        lambda x: lax.scan(lambda y, x: (y + x, None), x[0], x),
        lambda x: lax.while_loop(lambda y: y[0, 0] < 9, lambda y: y + 1, x),
        lambda x: repeat(lambda y: y + 1)(x[:9]),
    ],
)
def test_other_loops_run_as_before(fun):
    assert not runs_in_blocks(show_prepared(fun, LARGE))


@pytest.mark.parametrize("target", [NO_KERNELS, OVER_MESH], ids=["no kernels", "mesh"])
def test_targets_without_kernels_run_as_before(target):
    fun = repeat(lambda y: y + 1)
    assert runs_in_blocks(show_prepared(fun, LARGE))
    assert not runs_in_blocks(show_prepared(fun, LARGE, target=target))


def test_many_cores_share_the_arrays(monkeypatch):
    fun = repeat(lambda y: y + 1)
    assert runs_in_blocks(show_prepared(fun, LARGE))
    monkeypatch.setattr(blocks.os, "cpu_count", lambda: 64)
    assert not runs_in_blocks(show_prepared(fun, LARGE))
