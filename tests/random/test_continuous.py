"""Continuous distributions, against SciPy in distribution."""

import numpy as np
import pytest
import scipy.stats as stats

import weft
from tests.random.golden import GOLDEN, check_bits
from weft import random

KEY = random.PRNGKey(7)
N = 20000


CONTINUOUS = [
    ("uniform", (), dict(minval=-1.0, maxval=3.0), stats.uniform(-1, 4)),
    ("normal", (), {}, stats.norm()),
    ("truncated_normal", (-1.0, 2.0), {}, stats.truncnorm(-1, 2)),
    ("exponential", (), {}, stats.expon()),
    ("gumbel", (), {}, stats.gumbel_r()),
    ("gumbel", (), dict(mode="high"), stats.gumbel_r()),
    ("laplace", (), {}, stats.laplace()),
    ("logistic", (), {}, stats.logistic()),
    ("cauchy", (), {}, stats.cauchy()),
    ("lognormal", (0.5,), {}, stats.lognorm(0.5)),
    ("maxwell", (), {}, stats.maxwell()),
    ("pareto", (2.0,), {}, stats.pareto(2)),
    ("rayleigh", (2.0,), {}, stats.rayleigh(scale=2)),
    ("weibull_min", (2.0, 3.0), {}, stats.weibull_min(3, scale=2)),
    ("triangular", (0.0, 1.0, 3.0), {}, stats.triang(1 / 3, 0, 3)),
    ("wald", (2.0,), {}, stats.invgauss(2)),
    ("gamma", (2.5,), {}, stats.gamma(2.5)),
    ("gamma", (0.3,), {}, stats.gamma(0.3)),
    ("loggamma", (0.5,), {}, stats.loggamma(0.5)),
    ("beta", (0.5, 2.0), {}, stats.beta(0.5, 2)),
    ("chisquare", (3.0,), {}, stats.chi2(3)),
    ("f", (3.0, 5.0), {}, stats.f(3, 5)),
    ("t", (3.0,), {}, stats.t(3)),
    ("generalized_normal", (3.0,), {}, stats.gennorm(3)),
]


@pytest.mark.parametrize(("name", "args", "more", "law"), CONTINUOUS, ids=range(len(CONTINUOUS)))
def test_continuous_distributions(name, args, more, law):
    x = getattr(random, name)(KEY, *args, shape=(N,), **more)
    assert x.shape == (N,) and x.dtype == np.float32
    assert stats.kstest(np.asarray(x), law.cdf).pvalue > 1e-3


def test_means_move_with_their_parameters():
    mean = lambda name, *more: lambda a: getattr(random, name)(KEY, a, *more, shape=(N,)).mean()
    np.testing.assert_allclose(weft.grad(mean("beta", 2.0))(1.5), 2 / 3.5**2, rtol=0.02)
    np.testing.assert_allclose(weft.grad(mean("chisquare"))(3.0), 1, rtol=0.02)
    np.testing.assert_allclose(weft.grad(mean("gamma"))(0.3), 1, rtol=0.05)


@pytest.mark.parametrize("setting", GOLDEN)
def test_bits_are_those_of_jax(setting, kernels_as_for_users):
    drawn = "uniform normal truncated_normal exponential gumbel laplace logistic cauchy"
    check_bits(setting, f"{drawn} bernoulli rademacher lognormal maxwell")
