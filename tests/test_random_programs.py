"""Random programs against NumPy, in every mode: eager, jitted, mapped, differentiated, composed."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.random_programs import draw_program
from tests.settings import ALL
from weft import config

STEP = 1e-6


def near(found, want, tolerance=1e-6):
    found = [*map(np.asarray, weft.tree.leaves(found))]
    want = [*map(np.asarray, weft.tree.leaves(want))]
    assert [x.shape for x in found] == [x.shape for x in want]
    for x, y in zip(found, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("seed", range(2000 if ALL else 3))
def test_in_every_mode(seed):
    program, args = draw_program(seed)
    run = lambda *xs: program(jnp, *xs)
    with config.scope(enable_x64=True):
        want = program(np, *args)
        near(run(*map(jnp.asarray, args)), want)
        near(weft.jit(run)(*args), want)
        # as NumPy's values, mapped along different axes
        others = [0.5 * x + 0.1 for x in args]
        mapped = weft.vmap(run, (-1, 0))
        pair = np.stack([args[0], others[0]], -1), np.stack([args[1], others[1]])
        wants = [program(np, *xs) for xs in (args, others)]
        near(mapped(*pair), [np.stack(rows) for rows in zip(*wants, strict=True)])
        # derivatives along one direction, from both sides
        ts = [np.cos(3 * np.arange(x.size) + k).reshape(x.shape) for k, x in enumerate(args)]
        ahead, behind = (
            program(np, *[x + sign * STEP * t for x, t in zip(args, ts, strict=True)])
            for sign in (1, -1)
        )
        slope = [(a - b) / (2 * STEP) for a, b in zip(ahead, behind, strict=True)]
        outs, dots = weft.jit(lambda xs, ts: weft.jvp(run, xs, ts))(tuple(args), tuple(ts))
        near(outs, want)
        near(dots, slope, 2e-4)
        outs, pull = weft.vjp(run, *args)
        cts = [np.sin(1.0 + np.arange(y.size)).reshape(y.shape) for y in map(np.asarray, outs)]
        grads = pull(tuple(cts))
        product = lambda xs, ys: sum(np.vdot(x, y) for x, y in zip(xs, ys, strict=True))
        near(product(grads, ts), product(cts, dots), 1e-8)
        # composed: the gradients of examples, jitted, and the derivative of a gradient
        loss = lambda *xs: run(*xs)[1]
        both = weft.jit(weft.vmap(weft.grad(loss, (0, 1)), (-1, 0)))(*pair)
        rows = [weft.grad(loss, (0, 1))(*xs) for xs in (args, others)]
        near(both, [np.stack([r[k] for r in rows]) for k in (0, 1)], 1e-8)
        grad = weft.grad(loss, (0, 1))
        second = weft.jvp(grad, tuple(args), tuple(ts))[1]
        forward = weft.grad(lambda *xs: weft.jvp(loss, xs, tuple(ts))[1], (0, 1))(*args)
        near(second, forward, 1e-7)
