"""Loops that update arrays in place: results as NumPy's, and which values have barriers."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import NO_KERNELS, OVER_MESH, show_prepared
from weft import lax
from weft.cpu import in_place
from weft.util import JAXLIB

RNG = np.random.RandomState(0)


def repeat(step):
    return lambda a, n: lax.fori_loop(0, n, step, a)


def put(a, index, value):
    if isinstance(a, np.ndarray):
        a = a.copy()
        a[index] = value
        return a
    return a.at[index].set(value)


def find(a):
    return np if isinstance(a, np.ndarray) else jnp


def eliminate(k, a):
    """One column of an LU factorization."""
    xp, places = find(a), np.arange(len(a))
    column = xp.where(places > k, a[:, k] / a[k, k], 0)
    a = a - column[:, None] * xp.where(places > k, a[k], 0)
    return put(a, np.s_[:, k], xp.where(places > k, column, a[:, k]))


def jordan(k, a):
    """One row of an inverse by Gauss and Jordan; the row is written last, and read before."""
    row = put(a[k], k, 1) / a[k, k]
    column = put(a[:, k], k, 0)
    a = put(a, np.s_[:, k], find(a).where(np.arange(len(a)) == k, 1, 0) * 1.0)
    a = a - column[:, None] * row
    return put(a, k, row)


def shortest(k, a):
    return find(a).minimum(a, a[:, k, None] + a[k])


def scale(k, a):
    """Each element by one of the array, and a row that depends on the new elements."""
    a = a / a[k, k] + 1
    return put(a, 0, a[1] * 0.5)


def join(k, a):
    """Two rows of old elements, of which one is written back where it was not read."""
    old = a[k] * 2
    a = a * 0.5 + a[0]
    return put(put(a, -1, old), 1, a[:, k][: a.shape[1]])


PROGRAMS = {f.__name__: f for f in (eliminate, jordan, shortest, scale, join)}


@pytest.fixture
def any_size(monkeypatch):
    monkeypatch.setattr(in_place, "MIN_BYTES", 1)


@pytest.mark.sample(one_in=3)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
@pytest.mark.parametrize("n", [9, 16, 50])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_as_of_loops(name, n, dtype, any_size):
    if name == "shortest" and dtype == "c8":
        return
    with weft.enable_x64():
        a = (RNG.rand(n, n) + n * np.eye(n)).astype(dtype)
        expected = a
        for k in range(n - 1):
            expected = PROGRAMS[name](k, expected).astype(dtype)
        found = weft.jit(lambda a: repeat(PROGRAMS[name])(a, n - 1))(a)
        np.testing.assert_allclose(found, expected, rtol=1e-3 if dtype != "f8" else 1e-9)


def test_derivatives_and_batches(any_size):
    fun = lambda a: repeat(eliminate)(a, 11)
    a, t = RNG.rand(12, 12).astype("f") + 12 * np.eye(12, dtype="f"), RNG.rand(12, 12).astype("f")
    both = weft.jit(weft.vmap(fun))(np.stack([a, a.T]))
    np.testing.assert_allclose(both[1], fun(a.T), rtol=1e-4, atol=1e-5)
    moved = weft.jit(lambda a: weft.jvp(fun, (a,), (t,))[1])(a)
    slope = weft.jit(weft.grad(lambda a: jnp.sum(fun(a) * t)))(a)
    np.testing.assert_allclose(np.sum(slope * t), np.sum(moved * t), rtol=1e-3)


@pytest.mark.skipif(JAXLIB < (0, 12), reason="XLA of jaxlib 0.10 removes barriers before it fuses")
def test_parts_have_barriers():
    count = lambda f, a, **k: show_prepared(lambda a: repeat(f)(a, 20), a, **k).count("barrier")
    a = np.ones((64, 64), np.float32)
    assert count(eliminate, a) == 4  # the column, the row, the new array, and the column written
    assert count(shortest, a) == 2
    assert count(shortest, a[:9, :9]) == 0
    assert count(shortest, a, target=NO_KERNELS) == count(shortest, a, target=OVER_MESH) == 0
    assert count(lambda k, a: a + jnp.roll(a, 1, 0), a) == 0
    assert count(lambda k, a: a * 2 + 1, a) == 0
    assert count(lambda k, a: a + a.sum(0), a) == 0
