"""Distributions made of gamma samples, against SciPy, and their derivatives."""

import numpy as np
import pytest
import scipy.stats as stats

import weft
import weft.numpy as jnp
from tests.random.compare import N, check_law
from weft import random

KEY = random.PRNGKey(7)
INF = np.inf
LARGEST = float(np.finfo(np.float32).max)


LAWS = [
    ("gamma", (2.5,), {}, stats.gamma(2.5)),
    ("gamma", (0.3,), {}, stats.gamma(0.3)),
    ("loggamma", (0.5,), {}, stats.loggamma(0.5)),
    ("beta", (0.5, 2.0), {}, stats.beta(0.5, 2)),
    ("chisquare", (3.0,), {}, stats.chi2(3)),
    ("f", (3.0, 5.0), {}, stats.f(3, 5)),
    ("t", (3.0,), {}, stats.t(3)),
    ("generalized_normal", (3.0,), {}, stats.gennorm(3)),
    ("gamma", (0.3,), {"method": "approximate"}, stats.gamma(0.3)),
    ("gamma", (20.0,), {"method": "approximate"}, stats.gamma(20)),
    ("loggamma", (0.5,), {"method": "approximate"}, stats.loggamma(0.5)),
    ("beta", (0.5, 2.0), {"method": "approximate"}, stats.beta(0.5, 2)),
    ("chisquare", (3.0,), {"method": "approximate"}, stats.chi2(3)),
]


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize(("name", "args", "more", "law"), LAWS, ids=range(len(LAWS)))
def test_distributions(name, args, more, law):
    check_law(name, args, more, law)


SHORT_LAWS = {
    "gamma": ((3e4,), stats.gamma(3e4)),
    "loggamma": ((30.0,), stats.loggamma(30)),
    "beta": ((1e3, 1e3), stats.beta(1e3, 1e3)),
    "chisquare": ((1e4,), stats.chi2(1e4)),
    "f": ((1e4, 1e3), stats.f(1e4, 1e3)),
    "t": ((5.0,), stats.t(5)),
    "generalized_normal": ((0.5,), stats.gennorm(0.5)),
}


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize(
    "case", [f"{dtype} {name}" for name in SHORT_LAWS for dtype in ("float16", "bfloat16")]
)
def test_quantiles_of_samples_of_short_floats(case):
    """A quantile is that of the law, or one of its two neighbours in the dtype."""
    dtype, name = case.split()
    eps = float(jnp.finfo(dtype).eps)
    chances = np.array([0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98])
    args, law = SHORT_LAWS[name]
    draw = weft.jit(lambda key: getattr(random, name)(key, *args, shape=(20_000,), dtype=dtype))
    samples = np.asarray(draw(KEY)).astype(np.float64)
    params = np.asarray(args).astype(jnp.dtype(dtype)).astype(float)
    law = law.dist(*params)  # of the parameters that the dtype holds
    found = np.quantile(samples, chances)
    ends = [law.cdf(found - side * eps * np.abs(found)) for side in (1, -1)]
    assert (ends[0] < chances + 0.015).all() and (ends[1] > chances - 0.015).all()


def test_approximate_samples_at_the_edges_and_their_slope():
    draw = lambda a, shape=None: random.gamma(KEY, jnp.array(a), shape, method="approximate")
    np.testing.assert_array_equal(draw([0.0, INF, -1.0, np.nan]), [0, INF, np.nan, np.nan])
    slope = weft.grad(lambda a: draw(a, (N,)).mean())(0.3)
    np.testing.assert_allclose(slope, 1, rtol=0.05)
    with pytest.raises(ValueError, match="method must be 'exact' or 'approximate'; got 'quick'"):
        random.gamma(KEY, 1.0, method="quick")


def test_means_move_with_their_parameters():
    mean = lambda name, *more: lambda a: getattr(random, name)(KEY, a, *more, shape=(N,)).mean()
    slope = lambda mean, a: weft.jit(weft.grad(mean))(a)
    np.testing.assert_allclose(slope(mean("beta", 2.0), 1.5), 2 / 3.5**2, rtol=0.02)
    np.testing.assert_allclose(slope(mean("chisquare"), 3.0), 1, rtol=0.02)
    np.testing.assert_allclose(slope(mean("gamma"), 0.3), 1, rtol=0.05)


def test_vectors():
    alpha = jnp.array([1.0, 2.0, 3.0])
    x = random.dirichlet(KEY, alpha, (N,))
    assert stats.kstest(np.asarray(x[:, 1]), stats.beta(2, 4).cdf).pvalue > 1e-3
    np.testing.assert_allclose(x.sum(-1), 1, rtol=1e-5)
    assert random.dirichlet(KEY, jnp.ones((4, 1, 3))).shape == (4, 1, 3)
    for p, power in ((2, 3), (1, 3)):
        x = np.asarray(random.ball(KEY, 3, p, shape=(N,)))
        radius = (np.abs(x) ** p).sum(-1) ** (1 / p)
        assert stats.kstest(radius**power, stats.uniform().cdf).pvalue > 1e-3
        assert abs((x > 0).mean() - 0.5) < 0.02


@pytest.mark.parametrize("a", [0.4, 2.5])
def test_gamma_samples_move_at_a_fixed_quantile(a):
    with weft.enable_x64(True):
        shapes = jnp.full(5, a, np.float64)
        move = lambda a: weft.jvp(lambda a: random.gamma(KEY, a), (a,), (jnp.ones_like(a),))
        x, dx = weft.jit(move)(shapes)
    at, step = stats.gamma(a).cdf(x), 1e-5
    slope = (stats.gamma.ppf(at, a + step) - stats.gamma.ppf(at, a - step)) / (2 * step)
    np.testing.assert_allclose(dx, slope, rtol=1e-4)


def test_the_derivative_of_gamma_samples_of_many():
    """They are near a + z sqrt(a), of derivative 1 + z / (2 sqrt(a)), where a is large."""
    a = jnp.array([1e5, 1e8, 1e12, LARGEST])
    draw = lambda a: random.gamma(KEY, a)
    x, slope = weft.jit(lambda a: weft.jvp(draw, (a,), (jnp.ones_like(a),)))(a)
    np.testing.assert_allclose(slope, 1 + (x / a - 1) / 2, rtol=2e-5)
    log_slope = weft.jit(weft.grad(lambda a: random.loggamma(KEY, a).sum()))(a)
    np.testing.assert_allclose((log_slope * a)[:3], 1, rtol=1e-2)
    assert weft.jit(weft.grad(draw))(INF) == 1


def test_infinite_parameters_of_shares_and_powers():
    """One infinite parameter takes all; of two, NumPy and JAX say NaN."""
    for b, want in ((np.inf, np.nan), (1.0, 1.0)):
        np.testing.assert_equal(np.asarray(random.beta(KEY, np.inf, b)), np.float32(want))
        got = random.dirichlet(KEY, jnp.array([np.inf, b]))
        np.testing.assert_array_equal(got, np.float32([want, 1 - want]))
    above = random.f(KEY, np.inf, 30.0, (N,))
    assert stats.kstest(30 / np.asarray(above), stats.chi2(30).cdf).pvalue > 1e-3
    x = np.sort(random.generalized_normal(KEY, np.inf, (500,)))
    assert np.abs(x - np.linspace(-1, 1, 500)).max() < 0.15
