"""Incomplete gamma and beta functions over their range, and at its ends."""

import numpy as np
import pytest
import scipy.special

from weft.options import config
from weft.primitives.special import functions as special


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_incomplete_gamma_and_beta_over_their_range(rng, dtype):
    """The bounds that special.py states, where the values are not small."""
    a = np.exp(rng.uniform(np.log(1e-2), np.log(1e4), 500)).astype(dtype)
    x = (a * np.exp(rng.normal(size=500) * np.minimum(1, 2 / np.sqrt(a)))).astype(dtype)
    b = np.exp(rng.uniform(np.log(1e-1), np.log(1e3), 500)).astype(dtype)
    p = np.clip(rng.beta(a, b), 1e-6, 1 - 1e-6).astype(dtype)
    wide = lambda *xs: [v.astype(np.float64) for v in xs]
    with config.scope(enable_x64=True):
        pairs = [
            (special.igamma(a, x), scipy.special.gammainc(*wide(a, x)), 300),
            (special.igammac(a, x), scipy.special.gammaincc(*wide(a, x)), 300),
            (special.betainc(a, b, p), scipy.special.betainc(*wide(a, b, p)), 8000),
        ]
    for got, want, bound in pairs:
        assert got.dtype == dtype
        plain = want > 0.05
        np.testing.assert_allclose(
            np.asarray(got)[plain], want[plain], rtol=bound * np.finfo(dtype).eps
        )


def test_ends_of_incomplete_gamma_and_beta():
    ends = np.array([0, 1, np.inf, -1], np.float32)
    a, x = (v.ravel() for v in np.meshgrid(ends, ends))
    np.testing.assert_allclose(special.igamma(a, x), scipy.special.gammainc(a, x), rtol=1e-6)
    np.testing.assert_allclose(special.igammac(a, x), scipy.special.gammaincc(a, x), rtol=1e-6)
    p = np.array([0, 0.5, 1, -1, 2, np.nan], np.float32)
    a, b, p = (v.ravel() for v in np.meshgrid(ends, ends, p))
    np.testing.assert_allclose(special.betainc(a, b, p), scipy.special.betainc(a, b, p), rtol=1e-6)
