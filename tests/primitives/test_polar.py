"""The polar decomposition."""

import numpy as np
import pytest

from tests.primitives.matrix_helpers import close, random, t, unitary
from weft import lax

linalg = lax.linalg


@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3)])
def test_qdwh(dtype, shape):
    x = random(shape, dtype)
    u, h, count, converged = linalg.qdwh(x)
    unitary(u)
    close(u @ h, x)
    close(h, t(h))
    assert bool(converged)
    assert count < 8
    padded = np.zeros((*shape[:-2], 7, 6), dtype)
    padded[..., : shape[-2], : shape[-1]] = x
    noisy = np.where(padded == 0, dtype.type(3), padded)
    got = linalg.qdwh(noisy, dynamic_shape=shape[-2:])[0]
    close(got[..., : shape[-2], : shape[-1]], u)
    assert not bool(linalg.qdwh(x, max_iterations=1)[3])
