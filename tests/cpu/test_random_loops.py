"""Random loops against NumPy, with each pass over loops let in at every size."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.random_loops import draw_loop
from tests.settings import ALL
from weft.cpu import blocks, buffers, in_place

THRESHOLDS = {
    blocks: ("MIN_BYTES", "MIN_STEPS", "VECTOR"),
    buffers: ("MIN_BYTES", "MIN_BYTES_OF_ROWS", "MIN_NEW_BYTES", "MIN_READ_BYTES", "MIN_STEPS"),
    in_place: ("MIN_BYTES",),
}


@pytest.fixture(autouse=True)
def any_size(monkeypatch):
    for module, names in THRESHOLDS.items():
        for name in names:
            monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 8)


def near(found, want):
    for x, y in zip(found, want, strict=True):
        size = max(1, np.max(np.abs(y)))  # sums that a step adds to may grow
        assert np.isfinite(size)
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9 * size)


@pytest.mark.parametrize("seed", range(1000 if ALL else 8))
def test_values(seed):
    run, args = draw_loop(seed)
    with weft.enable_x64():
        near(weft.jit(lambda *xs: run(jnp, *xs))(*args), run(np, *args))


@pytest.mark.parametrize("seed", range(200 if ALL else 2))
def test_batches_and_derivatives(seed):
    run, args = draw_loop(1000 + seed, ("fori", "scan", "unroll"))
    fun = lambda *xs: run(jnp, *xs)
    with weft.enable_x64():
        both = weft.jit(weft.vmap(fun))(*[np.stack([x, 0.5 * x]) for x in args])
        near([rows[0] for rows in both], run(np, *args))
        near([rows[1] for rows in both], run(np, *[0.5 * x for x in args]))
        ts = [np.cos(np.arange(x.size)).reshape(x.shape) for x in args]
        outs, dots = weft.jit(lambda xs, ts: weft.jvp(fun, xs, ts))(args, ts)
        near(outs, run(np, *args))
        cts = [np.sin(1.0 + np.arange(y.size)).reshape(y.shape) for y in outs]
        grads = weft.jit(lambda xs, cts: weft.vjp(fun, *xs)[1](cts))(args, cts)
        product = lambda xs, ys: sum(np.vdot(x, y) for x, y in zip(xs, ys, strict=True))
        near([product(grads, ts)], [product(cts, dots)])
