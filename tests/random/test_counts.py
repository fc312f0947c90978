"""Distributions of counts, against SciPy in distribution."""

import numpy as np
import pytest
import scipy.special
import scipy.stats as stats

import weft
import weft.numpy as jnp
from weft import random
from weft.errors import ShapeError
from weft.random import counts

KEY = random.PRNGKey(7)
N = 20000


LAWS = {  # name: (SciPy's law, arguments, one column for each case)
    "poisson": (stats.poisson, [[0.02, 0.3, 1, 3, 9.9, 10, 11, 100, 3000]]),
    "binomial": (
        stats.binom,
        [[1, 3, 10, 1000, 1000, 50, 20], [0.5, 0.1, 0.3, 0.7, 0.02, 0.95, 1]],
    ),
    "geometric": (stats.geom, [[0.003, 0.3, 0.5, 0.9, 1]]),
}


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize(
    ("name", "more"),
    [*((name, {}) for name in LAWS), ("poisson", {"method": "approximate"})],
    ids=[*LAWS, "poisson-approximate"],
)
def test_counts(name, more):
    law, args = LAWS[name]
    args = np.array(args, np.float32)
    shape = (N, args.shape[1])
    drawn = np.asarray(getattr(random, name)(KEY, *args, shape=shape, **more)).astype(int)
    for x, each in zip(drawn.T, args.astype(float).T, strict=True):
        found = np.bincount(x, minlength=x.max() + 2)
        expected = law.pmf(np.arange(len(found)), *each) * N
        often = expected > 5
        found = np.append(found[often], found[~often].sum() + 5)
        expected = np.append(
            expected[often], N - expected[often].sum() + 5
        )  # of few it says little
        assert stats.chisquare(found, expected, sum_check=False).pvalue > 1e-4, each


def check_moments(name, drawn, mean, variance):
    """The mean and the variance of each row are within five of their standard errors."""
    drawn, n = np.asarray(drawn, np.float64), drawn.shape[-1]
    off = (drawn.mean(-1) - mean) / np.sqrt(variance / n)
    spread = (drawn.var(-1) / variance - 1) * np.sqrt(n / 2)
    assert (np.abs(off) < 5).all() and (np.abs(spread) < 5).all(), (name, off, spread)


def test_moments_of_large_counts():
    """Up to 1e9, where float32 can represent neither the counts nor logarithms of factorials."""
    n = np.float32([1e4, 1e6, 1e9, 1e9, 1e9])
    p = np.float32([0.02, 0.5, 0.3, 0.97, 5e-9])
    trials, chance = n.astype(np.float64), p.astype(np.float64)
    drawn = random.binomial(KEY, n[:, None], p[:, None], (5, 100000))
    check_moments("binomial", drawn, trials * chance, trials * chance * (1 - chance))
    lam = np.float32([20, 1e3, 1e5, 1e7, 1e9])
    drawn = random.poisson(KEY, lam[:, None], (5, 100000))
    check_moments("poisson", drawn, lam.astype(np.float64), lam.astype(np.float64))


def test_multinomial():
    """In one call: of any number, and where some or all results but one have no chance."""
    n = jnp.array([[20.0], [3.0], [0.0]])
    p = jnp.array([[0.2, 0.3, 0.5], [0.5, 0.5, 0], [0, 0, 1], [1, 0, 0]])
    found = np.asarray(random.multinomial(KEY, n, p, shape=(1000, 3, 4, 3)))
    assert (found.sum(-1) == n).all() and (found >= 0).all() and not found[:, 2].any()
    counts = found[:, 0, 0]
    np.testing.assert_allclose(counts.mean(0), [4, 6, 10], rtol=0.05)
    np.testing.assert_allclose(
        np.corrcoef(counts.T)[0, 1], -np.sqrt(0.2 / 0.8 * 0.3 / 0.7), atol=0.1
    )
    assert not found[:, :, 1, 2].any()
    assert (found[:, 1, 2] == [0, 0, 3]).all() and (found[:, 0, 3] == [20, 0, 0]).all()
    assert random.multinomial(KEY, n, jnp.array([1.0])).ravel().tolist() == [20, 3, 0]
    assert random.multinomial(KEY, 3, jnp.zeros(0)).shape == (0,)
    with pytest.raises(ShapeError, match=r"multinomial: p must be \(..., k\); got f32\[\]"):
        random.multinomial(KEY, 3, jnp.float32(1))


def test_logarithms_of_factorials():
    k = np.concatenate([np.arange(30.0), np.geomspace(30, 1e6, 20)])
    with weft.enable_x64(True):
        got = counts.log_factorial(jnp.asarray(k))
    np.testing.assert_allclose(got, scipy.special.gammaln(k + 1), rtol=3e-8, atol=2e-7)
    np.testing.assert_allclose(
        counts.log_factorial(jnp.float32(k)), scipy.special.gammaln(k + 1), rtol=1e-6, atol=2e-6
    )
