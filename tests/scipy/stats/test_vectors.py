"""Distributions of vectors against SciPy."""

import numpy as np
import pytest
import scipy.stats

import weft.numpy as jnp
from weft import enable_x64, vmap
from weft.errors import ShapeError
from weft.scipy import stats
from weft.test_util import check_grads

INF, NAN = np.inf, np.nan


def test_dirichlet(rng):
    alpha = np.array([0.5, 1.0, 20.0])
    x = rng.dirichlet(alpha + 1, 5).T.astype(np.float32)
    want = scipy.stats.dirichlet.logpdf(x / x.sum(0, dtype=np.float64), alpha)
    np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha.astype("f")), want, rtol=1e-4)
    np.testing.assert_allclose(stats.dirichlet.logpdf(x[:2], alpha.astype("f")), want, rtol=1e-3)
    np.testing.assert_allclose(stats.dirichlet.pdf(x, alpha.astype("f")), np.exp(want), rtol=1e-3)
    assert stats.dirichlet.logpdf(x[:, 0] * 1.1, alpha.astype("f")) == -INF
    assert np.isnan(stats.dirichlet.logpdf(x[:, 0], -alpha.astype("f")))
    with pytest.raises(ShapeError, match=r"dirichlet.logpdf: alpha must be of shape \(k,\)"):
        stats.dirichlet.logpdf(jnp.ones(5), jnp.ones(3))


def test_multinomial():
    x, p = np.array([[1, 2, 3], [6, 0, 0], [1, 1, 1]]), np.array([0.2, 0.3, 0.5])
    want = scipy.stats.multinomial.logpmf(x, [6, 6, 6], p)
    np.testing.assert_allclose(stats.multinomial.logpmf(x, 6, p.astype("f")), want, rtol=1e-5)
    np.testing.assert_allclose(
        stats.multinomial.pmf(x, jnp.array([6, 6, 3]), p.astype("f")),
        scipy.stats.multinomial.pmf(x, [6, 6, 3], p),
        rtol=1e-5,
    )
    assert stats.multinomial.logpmf(jnp.array([0, 3]), 3, jnp.array([0.0, 1.0])) == 0
    for n, p in ((3, [-0.5, 1.5]), (3, [1.5, 0.0]), (-1, [0.5, 0.5])):  # none is a distribution
        assert np.isnan(stats.multinomial.pmf(jnp.array([1, 2]), n, jnp.array(p)))
    with pytest.raises(ShapeError, match="last axes of equal size"):
        stats.multinomial.logpmf(jnp.ones(3), 3, jnp.ones(2))


def test_multivariate_normal(rng):
    a = rng.standard_normal((3, 3))
    mean, cov = a[0], a @ a.T + np.eye(3)
    x = rng.standard_normal((4, 5, 3))
    want = scipy.stats.multivariate_normal.logpdf(x, mean, cov)
    f = stats.multivariate_normal.logpdf
    args = [v.astype(np.float32) for v in (x, mean, cov)]
    np.testing.assert_allclose(f(*args), want, rtol=1e-4)
    np.testing.assert_allclose(vmap(f, (0, None, None))(*args), want, rtol=1e-4)
    covs = np.stack([cov, 2 * cov, np.eye(3), cov, cov])
    want = [scipy.stats.multivariate_normal.logpdf(x[:, i], mean, c) for i, c in enumerate(covs)]
    np.testing.assert_allclose(f(*args[:2], covs.astype("f")), np.transpose(want), rtol=1e-4)
    np.testing.assert_allclose(
        f(args[0], args[1], 2.0), f(*args[:2], 2 * np.eye(3, dtype="f")), 1e-5
    )
    np.testing.assert_allclose(f(args[0], 0.5, 4.0), stats.norm.logpdf(args[0], 0.5, 2.0), 1e-5)
    np.testing.assert_allclose(stats.multivariate_normal.pdf(*args), np.exp(f(*args)), rtol=1e-6)
    assert np.isnan(f(*args[:2], -args[2])).all()
    with enable_x64():
        check_grads(f, (x[0, 0], mean, cov), order=1)
    with pytest.raises(ShapeError, match="multivariate_normal.logpdf: for x and mean"):
        f(*args[:2], jnp.eye(2))
    with pytest.raises(NotImplementedError, match="allow_singular must be None"):
        f(*args, allow_singular=True)
