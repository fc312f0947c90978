"""The parts of JAX's LOBPCG that libraries copy it with."""

import pytest

import weft.numpy as jnp
from weft.compat import sparse


def test_parts_of_lobpcg():
    values, vectors = sparse._eigh_ascending(jnp.array([[2.0, 1.0], [1.0, 3.0]]))
    assert values[0] > values[1]
    again = sparse._mm(vectors * values, vectors.T)
    assert jnp.allclose(again, jnp.array([[2.0, 1.0], [1.0, 3.0]]), atol=1e-5)
    sparse._check_inputs(lambda x: x, jnp.ones((6, 1)))
    for multiply, shape, text in (
        (abs, (6, 2), "with 0 < 5 k < n; got \\(6, 2\\)"),
        (lambda x: x[:3], (6, 1), "must map X to its own type; got f32\\[3,1\\]"),
    ):
        with pytest.raises(ValueError, match=text):
            sparse._check_inputs(multiply, jnp.ones(shape))
