"""Derivatives of hypergeometric functions in each argument, against mpmath."""

import itertools

import mpmath as mp
import numpy as np
import pytest

import weft
from weft.errors import MissingRule
from weft.scipy import special

POINTS = (0.3, -3.0, 20.0, -60.0, 150.0, -150.0)
KUMMER = [*itertools.product((0.5, 2.0, -3.0, 7.3), (1.0, 2.5, -0.5), POINTS)][::5]
GAUSS = [*itertools.product((0.5, 2.0, -2.0), (1.0, 2.5), (1.5, 4.0), (0.3, 0.95, -0.95, -50.0))][
    ::7
]


def slopes(fun, exact, points, k):
    """Derivatives in argument k at points, here and in mpmath."""
    got = weft.vmap(weft.grad(fun, k))(*np.array(points).T)
    along = lambda p: lambda t: exact(*[t if i == k else mp.mpf(v) for i, v in enumerate(p)])
    with mp.workdps(25):
        return got, [float(mp.re(mp.diff(along(p), p[k]))) for p in points]


@pytest.mark.parametrize("k", [0, 1, 2])
def test_derivatives_of_hyp1f1(k):
    with weft.enable_x64():
        got, want = slopes(special.hyp1f1, mp.hyp1f1, KUMMER, k)
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_derivatives_of_hyp2f1():
    with weft.enable_x64():
        got, want = slopes(special.hyp2f1, mp.hyp2f1, GAUSS, 3)
        np.testing.assert_allclose(got, want, rtol=1e-8)
    for k, name in enumerate("abc"):
        with pytest.raises(MissingRule, match=f"hyp2f1: must not be differentiated in {name}"):
            weft.grad(special.hyp2f1, k)(0.5, 1.0, 2.0, 0.3)
