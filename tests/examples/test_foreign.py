"""The layer in C++: its values and derivatives against weft's own operations, and a run of it."""

import numpy as np
import pytest

import weft.numpy as jnp
from tests.examples.running import check_run, load_example
from tests.test_ffi import COMPILER
from weft import grad, jit, vmap

pytestmark = pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")


def test_the_layer_is_the_formula():
    example = load_example("foreign")
    example.build()
    rng = np.random.default_rng(0)
    x, w, ct = (rng.normal(size=s).astype(np.float32) for s in [(5, 3, 4), 4, (5, 3, 4)])
    loss = lambda norm: lambda x, w: jnp.sum(norm(x, w) * ct[0])
    one, other = (
        jit(lambda x, w, n=norm: (n(x, w), vmap(grad(loss(n), (0, 1)), (0, None))(x, w)))(x, w)
        for norm in (example.foreign_norm, example.own_norm)
    )
    np.testing.assert_allclose(one[0], w * x / np.sqrt((x**2).mean(-1, keepdims=True)), 1e-4)
    for a, b in zip((one[0], *one[1]), (other[0], *other[1])):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_a_run_reaches_the_bar_and_draws(tmp_path):
    check_run("foreign", tmp_path, 95, "--epochs", 10)
