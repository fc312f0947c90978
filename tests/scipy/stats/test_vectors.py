"""Distributions of vectors against SciPy."""

import mpmath as mp
import numpy as np
import pytest
import scipy.stats

import weft.numpy as jnp
from weft import enable_x64, grad, hessian, jit, vmap
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


def dirichlet_log(*v):
    """The log density of points and parameters, one after the other, in mpmath."""
    x, a = v[: len(v) // 2], v[len(v) // 2 :]
    return mp.loggamma(sum(a)) - sum(
        mp.loggamma(c) - (c - 1) * mp.log(y) for y, c in zip(x, a, strict=True)
    )


def multinomial_log(*v, counts=(0, 1000, 3)):
    return mp.loggamma(sum(counts) + 1) + sum(
        c * mp.log(p) - mp.loggamma(c + 1) for c, p in zip(counts, v, strict=True)
    )


TWO = np.triu_indices(2)


def normal_log(*v):
    """The log density of a point, a mean and an upper half of a covariance."""
    d, c = mp.matrix([v[0] - v[2], v[1] - v[3]]), mp.matrix([[v[4], v[5]], [v[5], v[6]]])
    return -(d.T * c**-1 * d)[0] / 2 - mp.log(mp.det(c)) / 2 - mp.log(2 * mp.pi)


def split_normal(v):
    upper = jnp.zeros((2, 2)).at[TWO].set(v[4:])
    return v[:2], v[2:4], upper + jnp.triu(upper, 1).T


# name: the module, how one vector makes its arguments, the log density in mpmath, the vector
DIFFERENTIATED = {
    "dirichlet": (stats.dirichlet, lambda v: (v[:3], v[3:]), dirichlet_log, [
        [0.2, 0.3, 0.5, 0.5, 1.0, 20.0], [1e-6, 0.5, 0.5 - 1e-6, 3.0, 0.1, 900.0]
    ]),
    "multinomial": (stats.multinomial, lambda p: (jnp.array([0, 1000, 3]), 1003, p),
        multinomial_log, [[0.1, 0.8, 0.1], [1e-20, 1.0, 1e-3]]
    ),
    "multivariate_normal": (stats.multivariate_normal, split_normal, normal_log, [
        [0.3, -1.0, 2.0, 0.5, 2.0, 0.7, 1.5], [0.3, -1.0, 2.0, 0.5, 2.0, -1.4, 1.0]
    ]),
}  # fmt: skip


def expand(exact, v):
    """The value, the gradient and the matrix of second derivatives in mpmath, by differences."""
    with mp.workdps(80):
        v, n = [mp.mpf(x) for x in v], len(v)
        steps = [abs(x) * mp.mpf(10) ** -20 for x in v]

        def at(**moves):
            return exact(*[x + moves.get(f"d{k}", 0) * steps[k] for k, x in enumerate(v)])

        def second(i, j):
            if i == j:
                return (at(**{f"d{i}": 1}) - 2 * at() + at(**{f"d{i}": -1})) / steps[i] ** 2
            corner = lambda a, b: at(**{f"d{i}": a, f"d{j}": b})
            total = corner(1, 1) - corner(1, -1) - corner(-1, 1) + corner(-1, -1)
            return total / (4 * steps[i] * steps[j])

        first = [(at(**{f"d{i}": 1}) - at(**{f"d{i}": -1})) / (2 * steps[i]) for i in range(n)]
        matrix = [[float(second(i, j)) for j in range(n)] for i in range(n)]
        return float(at()), np.array(first, float), np.array(matrix)


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_derivatives_in_every_argument(name):
    """Orders 0 to 2 of the log density and of the density, against mpmath."""
    module, split, exact, vectors = DIFFERENTIATED[name]
    log, density = (
        getattr(module, kind, None) or getattr(module, kind.replace("pdf", "pmf"))
        for kind in ("logpdf", "pdf")
    )
    for v in vectors:
        value, slope, bend = expand(exact, v)
        size = np.exp(value)
        tables = [
            (log, (value, slope, bend)),
            (density, (size, size * slope, size * (bend + np.outer(slope, slope)))),
        ]
        for fun, wanted in tables:
            with enable_x64():
                apply = lambda v, fun=fun: fun(*split(v))
                got = jit(lambda v, f=apply: [f(v), grad(f)(v), hessian(f)(v)])(np.array(v))
            for order, (a, want) in enumerate(zip(got, wanted, strict=True)):
                atol = 1e-12 * np.abs(want).max()
                np.testing.assert_allclose(a, want, rtol=1e-8, atol=atol, err_msg=str((v, order)))


def test_derivatives_at_the_edge_of_the_support():
    """At an edge that the density reaches with a power, it has one-sided derivatives."""
    with enable_x64():
        p = jnp.array([0.0, 1.0])
        pmf = lambda p: stats.multinomial.pmf(jnp.array([1, 2]), 3, p)  # 3 p[0] p[1]**2
        np.testing.assert_allclose(grad(pmf)(p), [3, 0], atol=1e-12)
        np.testing.assert_allclose(hessian(pmf)(p), [[0, 6], [6, 0]], atol=1e-12)
        x = jnp.array([0.0, 0.25, 0.75])
        pdf = lambda x: stats.dirichlet.pdf(x, jnp.array([2.0, 1.0, 3.0]))  # 60 x[0] x[2]**2
        np.testing.assert_allclose(grad(pdf)(x), [33.75, 0, 0], rtol=1e-12)
        np.testing.assert_allclose(hessian(pdf)(x)[0], [0, 0, 90], rtol=1e-12)
