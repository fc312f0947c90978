"""Loops that roll the vectors of their carry: results as NumPy's, and how they are computed."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import KERNELS, OVER_MESH, show_prepared
from weft import lax
from weft.util import JAXLIB

RNG = np.random.RandomState(0)


def rolled(xp, u):
    return xp.roll(u, 1) - xp.roll(u, -1)


def both(xp, u):
    return u * 2 + xp.roll(u, 1) * xp.roll(u, -1) - xp.roll(u, 3)


def ends(xp, u):
    """The last element first and twice, and the first one last."""
    return xp.concatenate([u[-1:], u[:-1]]) + xp.concatenate([u[1:], u[:1]]) * 3


def halves(xp, u):
    """Joins of two slices, of which no roll is made."""
    return xp.concatenate([u[-1:], u[1:]]) - xp.concatenate([u[:-1], u[3:4]])


STEPS = {f.__name__: f for f in (rolled, both, ends, halves)}


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u4", "c8"])
@pytest.mark.parametrize("step", STEPS)
def test_loops_are_as_of_numpy(step, dtype):
    """Integers are exact in any dtype; they wrap around alike."""
    with weft.enable_x64():
        xs = {n: RNG.randint(-3, 4, n).astype(dtype) for n in (5, 64, 65, 300)}

        def loop(x, n):
            return lax.fori_loop(0, n, lambda i, u: STEPS[step](jnp, u) % 7
                                 if dtype != "c8" else STEPS[step](jnp, u), x)  # fmt: skip

        lengths = (0, 1, 2, 7, 8, 9) if dtype != "c8" else (0, 1, 2, 3)
        run = weft.jit(lambda xs: {(k, n): loop(x, n) for k, x in xs.items() for n in lengths})
        for (k, n), found in run(xs).items():
            u = xs[k]
            for _ in range(n):
                u = STEPS[step](np, u)
                u = u % np.array(7, dtype) if dtype != "c8" else u
            np.testing.assert_array_equal(found, u, f"{k} elements, {n} steps")


def test_number_of_steps_is_not_known():
    run = weft.jit(lambda x, n: lax.fori_loop(0, n, lambda i, u: ends(jnp, u) / 4, x))
    until = weft.jit(
        lambda x: lax.while_loop(lambda u: jnp.sum(u) > 1, lambda u: ends(jnp, u) / 8, x)
    )
    x = RNG.rand(300).astype("f")
    for n in (0, 1, 2, 9):
        u = x
        for _ in range(n):
            u = ends(np, u) / 4
        np.testing.assert_allclose(run(x, n), u, rtol=1e-5)
    u = x
    while u.sum() > 1:
        u = ends(np, u) / 8
    np.testing.assert_allclose(until(x), u, rtol=1e-5)
    np.testing.assert_array_equal(until(x * 0), x * 0)


def test_two_vectors_special_values_batches_and_derivatives():
    def leap(carry, shift):
        u, v = carry
        u = u + 0.5 * (jnp.roll(v, 1) - v) + shift
        return (u, v + 0.5 * (jnp.roll(u, -1) - u)), u[0]

    run = lambda u: lax.scan(leap, (u, u * 2), jnp.arange(9.0))
    x = RNG.rand(300).astype("f")
    u, v, firsts = x, x * 2, []
    for i in range(9):
        u = u + np.float32(0.5) * (np.roll(v, 1) - v) + i
        v = v + np.float32(0.5) * (np.roll(u, -1) - u)
        firsts.append(u[0])
    (found, other), stacked = weft.jit(run)(x)
    for a, b in ((found, u), (other, v), (stacked, firsts)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    many = weft.jit(weft.vmap(run))(np.stack([x * 3, x]))
    np.testing.assert_allclose(many[0][1][1], v, rtol=1e-4, atol=1e-4)
    nan = np.isnan(weft.jit(lambda u: lax.fori_loop(0, 8, lambda i, u: ends(jnp, u), u))(
        np.where(np.arange(300) == 0, np.nan, x)))  # fmt: skip
    assert nan.sum() == 9 and nan[0] and nan[8] and nan[292]
    moved = weft.jit(lambda u: weft.jvp(lambda u: run(u)[0][0].sum(), (u,), (u,))[1])(x)
    slope = weft.jit(weft.grad(lambda u: run(u)[0][0].sum()))(x)
    np.testing.assert_allclose(np.sum(slope * x), moved, rtol=1e-4)


def test_rolls_by_one_are_chosen_by_place():
    def count(f, x, word, target=KERNELS):
        text = show_prepared(lambda x: lax.fori_loop(0, 20, lambda i, u: f(u), x), x, target=target)
        return text.count(word)

    x = np.ones(1000, np.float32)
    add_rolls = lambda u: rolled(jnp, u) + u
    assert count(add_rolls, x, "concatenate") == 0
    assert count(add_rolls, x[:40], "concatenate") == 2
    assert count(add_rolls, x, "concatenate", OVER_MESH) == 2
    assert count(lambda u: jnp.roll(u, 2) + u, x, "concatenate") == 1
    assert count(lambda u: jnp.roll(u * u, 1) + u, x, "concatenate") == 1
    assert count(lambda u: jnp.roll(u, 1, 0) + u, x.reshape(50, 20), "concatenate") == 1
    assert show_prepared(add_rolls, x).count("concatenate") == 2
    kept = 1 if JAXLIB >= (0, 12) else 0
    assert count(add_rolls, x, "barrier") == kept
    assert count(lambda u: u * 2, x, "barrier") == count(add_rolls, x[:200], "barrier") == 0
