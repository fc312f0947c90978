"""The polar decomposition."""

import numpy as np
import pytest

from tests.primitives.matrix_helpers import close, random, t, unitary
from weft import jit, lax
from weft.primitives import polar

linalg = lax.linalg


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3)])
def test_qdwh(dtype, shape):
    x = random(shape, dtype)
    qdwh = jit(linalg.qdwh, static_argnames=("dynamic_shape", "max_iterations"))
    u, h, count, converged = qdwh(x)
    unitary(u)
    close(u @ h, x)
    close(h, t(h))
    assert bool(converged)
    assert count < 8
    padded = np.zeros((*shape[:-2], 7, 6), dtype)
    padded[..., : shape[-2], : shape[-1]] = x
    noisy = np.where(padded == 0, dtype.type(3), padded)
    got = qdwh(noisy, dynamic_shape=shape[-2:])[0]
    close(got[..., : shape[-2], : shape[-1]], u)
    assert not bool(qdwh(x, max_iterations=1)[3])


@pytest.mark.parametrize("low", [1e-12, 1e-7, 1e-3, 0.1, 0.7])
def test_weights_are_the_best(low):
    """They maximize the minimum of x (a + b x^2) / (1 + c x^2) among maps of [low, 1] into itself.

    The minimum is at `low` and once more inside; 1 stays 1. So few steps are enough.
    """
    bound, x, steps = low, np.linspace(0, 1, 20001)[1:], 0
    for a, b, c in polar.weights(low):
        image = lambda x: x * (a + b * x * x) / (1 + c * x * x)  # noqa: B023
        inside = np.concatenate([x, np.geomspace(bound, 1, 20001)])
        inside = inside[inside >= bound]
        first, values = image(bound), image(inside)
        assert abs(image(1.0) - 1) < 1e-12 and values.max() < 1 + 1e-12
        assert values.min() > first * (1 - 1e-6)
        later = values[inside > 3 * bound]  # the other minimum, where there is room for one
        assert not later.size or bound > 0.3 or later.min() < first * (1 + 1e-3)
        bound, steps = min(first, 1.0), steps + 1
    assert abs(bound - 1) <= 10 * low and steps <= 6
