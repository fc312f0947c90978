"""Distributions of counts, against SciPy in distribution."""

import numpy as np
import pytest
import scipy.stats as stats

from weft import random

KEY = random.PRNGKey(7)
N = 20000


COUNTS = [
    ("poisson", (3.0,), stats.poisson(3)),
    ("poisson", (100.0,), stats.poisson(100)),
    ("binomial", (10, 0.3), stats.binom(10, 0.3)),
    ("binomial", (1000, 0.7), stats.binom(1000, 0.7)),
    ("geometric", (0.3,), stats.geom(0.3)),
]


@pytest.mark.parametrize(("name", "args", "law"), COUNTS, ids=range(len(COUNTS)))
def test_counts(name, args, law):
    x = np.asarray(getattr(random, name)(KEY, *args, shape=(N,))).astype(int)
    found = np.bincount(x, minlength=x.max() + 2)
    expected = law.pmf(np.arange(len(found))) * N
    often = expected > 5
    found = np.append(found[often], found[~often].sum())
    expected = np.append(expected[often], N - expected[often].sum())
    assert stats.chisquare(found, expected, sum_check=False).pvalue > 1e-3
