"""Initial weights: their spread, their shapes and dtypes, what is refused."""

import numpy as np
import pytest

import weft.numpy as jnp
from weft import nn, random
from weft.errors import ShapeError

KEY = random.PRNGKey(7)


def test_initializers():
    init = nn.initializers
    w = init.he_normal()(KEY, (200, 100))
    np.testing.assert_allclose(w.std(), np.sqrt(2 / 200), rtol=0.03)
    u = init.glorot_uniform()(KEY, (200, 100))
    assert float(jnp.abs(u).max()) <= np.sqrt(3 / 150)
    q = init.orthogonal()(KEY, (6, 4))
    np.testing.assert_allclose(q.T @ q, np.eye(4), atol=1e-5)
    d = init.delta_orthogonal()(KEY, (3, 3, 2, 4))
    np.testing.assert_allclose(d[1, 1] @ d[1, 1].T, np.eye(2), atol=1e-5)
    assert init.constant(3.0)(KEY, (2,)).tolist() == [3, 3]
    assert init.lecun_normal(dtype=jnp.bfloat16)(KEY, (4, 3)).dtype == jnp.bfloat16
    with pytest.raises(ValueError, match="mode must be .fan_in., .fan_out."):
        init.variance_scaling(1.0, "fan", "normal")
    with pytest.raises(ShapeError, match="an axis of inputs and one of outputs"):
        init.he_normal()(KEY, (3,))
