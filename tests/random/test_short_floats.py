"""Samples of floats of 16 bits, and of parameters of 16 bits, against exact moments."""

import math

import numpy as np
import pytest
import scipy.stats as st

import weft
import weft.numpy as jnp
from weft import random

KEY, N = random.key(3), 40000
SAMPLERS = {  # name: parameters, the distribution
    "exponential": ((), st.expon()),
    "gumbel": ((), st.gumbel_r()),
    "laplace": ((), st.laplace()),
    "logistic": ((), st.logistic()),
    "pareto": ((6.0,), st.pareto(6)),
    "rayleigh": ((2.0,), st.rayleigh(scale=2)),
    "weibull_min": ((1.0, 2.0), st.weibull_min(2)),
    "maxwell": ((), st.maxwell()),
    "lognormal": ((0.5,), st.lognorm(0.5)),
    "triangular": ((0.0, 0.25, 1.0), st.triang(0.25)),
    "wald": ((1.0,), st.invgauss(1)),
    "truncated_normal": ((2.0, 3.0), st.truncnorm(2, 3)),
    "gamma": ((0.125,), st.gamma(0.125)),
    "beta": ((2.0, 3.0), st.beta(2, 3)),
    "chisquare": ((3.0,), st.chi2(3)),
}


@pytest.mark.parametrize("name", list(SAMPLERS))
def test_moments_of_short_floats(name):
    """Uniform numbers of bfloat16 have 7 bits: `logistic` had 19 times its variance."""
    params, exact = SAMPLERS[name]

    def draw(*params):
        return getattr(random, name)(KEY, *params, (N,), jnp.bfloat16)

    drawn = draw(*(jnp.bfloat16(v) for v in params))
    assert drawn.dtype == jnp.bfloat16
    found, variance = np.asarray(drawn).astype(float), exact.var()
    spread = math.sqrt((exact.stats(moments="k") + 2) / N)  # of the variance of a sample, relative
    assert abs(found.mean() - exact.mean()) < 5 * math.sqrt(variance / N) + 4e-4 * exact.mean()
    assert abs(found.var() / variance - 1) < 5 * spread + 4e-3


def test_bounds_of_short_floats():
    for dtype in (np.float16, jnp.bfloat16):
        low, high = np.array([2, 4, -8], dtype), np.array([3, 6, -4], dtype)
        drawn = random.truncated_normal(KEY, low, high, (2000, 3), dtype)
        assert drawn.dtype == dtype
        assert bool(((drawn > low) & (drawn < high)).all())


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
def test_chances_of_short_floats(dtype):
    """Probabilities keep their bits, and are compared with numbers of more."""
    n = 500
    for p in (2.0**-10, 1 - 2.0**-7):
        drawn = random.bernoulli(KEY, dtype(p), (N,))
        assert abs(float(drawn.mean()) - p) < 5 * math.sqrt(p * (1 - p) / N)
    same = jnp.full(n, 2.0**-9, dtype)
    draws = {
        "choice": random.choice(KEY, n, (N,), p=same),
        "first": weft.vmap(lambda k: random.choice(k, n, (1,), replace=False, p=same)[0])(
            random.split(KEY, 4000)
        ),
        "categorical": random.categorical(KEY, jnp.log(same), shape=(4000,)),
    }
    for name, places in draws.items():
        places = np.asarray(places)
        counts = np.bincount(places, minlength=n)
        expected = len(places) / n
        statistic = ((counts - expected) ** 2 / expected).sum()
        assert abs(statistic - n) < 6 * math.sqrt(2 * n), name  # chi squared of n numbers
