"""The polar decomposition."""

import numpy as np
import pytest

from tests.primitives.matrix_helpers import close, random, t, unitary
from weft import jit, lax

linalg = lax.linalg


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
