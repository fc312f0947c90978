"""Draws of complex numbers under the private names that libraries import."""

import numpy as np

import weft
from weft.compat import initializers


def test_complex_draws_have_variance_one():
    many = initializers._complex_uniform(weft.random.key(0), (4000,), np.complex64)
    cut = initializers._complex_truncated_normal(weft.random.key(1), 2, (4000,), np.complex64)
    assert np.max(np.abs(many)) < 2**0.5 and np.max(np.abs(cut)) < 2
    # the part beyond 2 has the probability exp(-4), and the mean square 5 there
    want = (1 - 5 * np.exp(-4)) / (1 - np.exp(-4))
    np.testing.assert_allclose(np.mean(np.abs(many) ** 2), 1, rtol=0.05)
    np.testing.assert_allclose(np.mean(np.abs(cut) ** 2), want, rtol=0.05)
