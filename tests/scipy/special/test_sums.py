"""logsumexp and softmax against SciPy, and at edges."""

import numpy as np
import pytest
import scipy.special as reference

import weft
import weft.numpy as jnp
from weft.scipy import special

TABLE = np.random.RandomState(1).normal(size=(3, 4)).astype(np.float32) * 40


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_logsumexp(axis, keepdims, weighted):
    b = np.where(TABLE > 30, 0, TABLE / 40).astype(np.float32) if weighted else None
    options = dict(axis=axis, keepdims=keepdims, return_sign=True)
    got = special.logsumexp(TABLE, b=b, **options)
    want = reference.logsumexp(TABLE, b=b, **options)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape and g.dtype == np.float32
        np.testing.assert_allclose(g, w, rtol=2e-5)
    if not weighted:
        where = TABLE > 0
        got = special.logsumexp(TABLE, axis, keepdims=keepdims, where=where)
        masked = np.where(where, TABLE, -np.inf)
        np.testing.assert_allclose(got, reference.logsumexp(masked, axis, keepdims=keepdims), 1e-6)


def test_logsumexp_at_edges():
    inf = np.inf
    assert special.logsumexp(np.zeros((0,), np.float32)) == -inf
    assert special.logsumexp(np.array([-inf, -inf])) == -inf
    assert special.logsumexp(np.array([inf, 1.0])) == inf
    assert np.isnan(special.logsumexp(np.array([np.nan, 1.0])))
    assert np.isnan(special.logsumexp(np.array([0.0, 1.0]), b=np.array([1.0, -1.0])))
    assert special.logsumexp(np.array([1e4, 0.0]), b=np.array([0.0, 1.0])) == 0
    np.testing.assert_allclose(special.logsumexp(np.array([1e4, 1e4])), 1e4 + np.log(2))
    grads = weft.grad(special.logsumexp)(jnp.array([-inf, 0.0, 0.0]))
    np.testing.assert_allclose(grads, [0, 0.5, 0.5])
    hidden = lambda x: special.logsumexp(x, where=np.array([True, False, True]))
    np.testing.assert_allclose(weft.grad(hidden)(jnp.array([0.0, 500.0, 0.0])), [0.5, 0, 0.5])
    z = np.array([1 + 1j, 2 - 3j], np.complex64)
    np.testing.assert_allclose(special.logsumexp(z), np.log(np.sum(np.exp(z))), rtol=1e-5)
    size, sign = special.logsumexp(z, return_sign=True)
    np.testing.assert_allclose(sign * np.exp(size), np.sum(np.exp(z)), rtol=1e-5)
    assert special.logsumexp(np.arange(3)).dtype == np.float32


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_softmax(axis):
    np.testing.assert_allclose(
        special.softmax(TABLE, axis=axis), reference.softmax(TABLE, axis=axis), 2e-5, 1e-30
    )
    np.testing.assert_allclose(
        special.log_softmax(TABLE, axis=axis), reference.log_softmax(TABLE, axis=axis), 1e-5, 1e-5
    )
