"""Programs of calls of kernels in a thread of XLA's, so that calls one after another overlap."""

import time

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import show_prepared
from weft.cpu import kernels
from weft.cpu.threads import MIN_COUNTED, counts_enough, find_side

pytestmark = pytest.mark.skipif(bool(kernels.load_kernels()), reason="the kernels are not built")


def draw(*shapes, dtype=np.float32):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def layer(x, w, b):
    return 2 * x @ w + b


def is_threaded(fun, *args):
    return "cpu_threaded_call" in show_prepared(fun, *args)


@pytest.mark.parametrize(
    ("fun", "shapes", "threaded"),
    [
        (layer, [(32, 16), (16, 64), (64,)], False),  # which takes less time than to wake a thread
        (layer, [(300, 300), (300, 300), (300,)], True),
        (layer, [(130, 170), (170, 67), (67,)], True),
        (lambda x, w, b: 2 * x @ b - b, [(1200, 1200), (9,), (1200,)], True),
        (lambda x, w, b: (x @ w) @ w, [(200, 200), (200, 200), (1,)], True),
        (lambda x, w, b: x @ w, [(200, 200), (200, 200), (1,)], False),  # as it was called alone
        (lambda x, w, b: jnp.tanh(x @ w), [(300, 300), (300, 300), (1,)], False),  # XLA counts
        (lambda x, w, b: jnp.sort(x), [(300, 300), (1,), (1,)], False),
    ],
)
def test_programs_with_much_work(fun, shapes, threaded):
    args = draw(*shapes)
    assert is_threaded(fun, *args) == threaded
    with weft.config.scope(native=False):
        want = weft.jit(lambda *xs: fun(*xs))(*args)
    np.testing.assert_allclose(weft.jit(fun)(*args), want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transformed_and_repeated(dtype):
    x, w, b = draw((150, 160), (160, 170), (170,), dtype=dtype)
    with weft.config.scope(enable_x64=True):
        assert is_threaded(layer, x, w, b)
        run = weft.jit(layer)
        want = 2 * x.astype(np.float64) @ w + b
        for _ in range(3):
            np.testing.assert_allclose(run(x, w, b), want, rtol=0, atol=1e-3)
        many = weft.jit(weft.vmap(layer, (0, None, None)))(x.reshape(3, 50, 160), w, b)
        np.testing.assert_allclose(np.reshape(many, (150, 170)), want, rtol=0, atol=1e-3)
        gradient = weft.jit(weft.grad(lambda w: jnp.sum(layer(x, w, b) ** 2)))(w)
        np.testing.assert_allclose(gradient, 4 * x.T.astype(np.float64) @ want, rtol=0, atol=0.5)


def test_donated_and_unused_operands():
    x, w, b = draw((200, 200), (200, 200), (200, 200))
    run = weft.jit(layer, donate_argnums=2)
    np.testing.assert_allclose(run(x, w, jnp.asarray(b)), 2 * x @ w + b, rtol=1e-3, atol=1e-3)


def test_the_caller_does_not_wait():
    """A call returns before its products are computed, as if XLA multiplied."""
    x, w, b = map(jnp.asarray, draw((1000, 1000), (1000, 60), (1000, 60)))
    chain = lambda x, w, b: x @ (2 * x @ (2 * x @ w - b) + b)
    assert is_threaded(chain, x, w, b)
    run = weft.jit(chain)
    run(x, w, b).block_until_ready()
    ratios = []
    for _ in range(20):
        start = time.perf_counter()
        out = run(x, w, b)
        returned = time.perf_counter()
        out.block_until_ready()
        ratios.append((returned - start) / (time.perf_counter() - start))
    assert min(ratios) < 0.5


def test_factors_of_the_product_that_is_counted():
    for size in [1, 2, 63, 97, 250, 251, 1000, 1024, 10007, 3 * 10007]:
        side = find_side(size)
        assert side == 0 or (size % side == 0 and 1 < side <= 16)
        (v,) = weft.make_jaxpr(jnp.sin)(weft.ShapeDtypeStruct((size,), np.float32)).jaxpr.invars
        assert counts_enough(v) == (2 * side * size >= MIN_COUNTED)
