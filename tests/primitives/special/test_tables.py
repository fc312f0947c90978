"""Coefficients of series: functions over the ranges of all their pieces, in double precision."""

import numpy as np
import pytest
import scipy.special as reference

import weft
from weft.scipy import special

POSITIVE = np.concatenate([np.geomspace(1e-3, 0.1, 20), np.linspace(0.1, 40, 1500), [60.0, 150.0]])
BOTH = np.concatenate([-POSITIVE[::-1], POSITIVE])
CHANCES = np.concatenate([np.geomspace(1e-280, 1e-3, 300), np.linspace(1e-3, 1, 400)[:-1]])
# Each with the tolerance, relative to the value or where that is small to 1.
FUNCTIONS = {
    "digamma": (POSITIVE, 1e-14), "gammaln": (POSITIVE, 1e-14), "erfcx": (BOTH[BOTH > -5], 2e-15),
    "erf": (BOTH, 1e-15), "erfinv": (2 * CHANCES[1:] - 1, 1e-13), "erfcinv": (2 * CHANCES, 1e-14),
    "ndtri": (CHANCES, 1e-14), "dawsn": (BOTH, 3e-14), "exp1": (POSITIVE, 1e-14),
    "expi": (BOTH[BOTH < 30], 1e-13), "spence": (POSITIVE, 1e-14), "sici": (BOTH, 5e-14),
    "fresnel": (BOTH, 1e-14), "i0e": (BOTH, 1e-15), "i1e": (BOTH, 3e-15),
    "zeta": (np.linspace(1.01, 2.5, 300), 5e-15),
}  # fmt: skip


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_piece_in_double_precision(name):
    x, tol = FUNCTIONS[name]
    with weft.enable_x64(True), np.errstate(all="ignore"):
        got = weft.jit(getattr(special, name))(x)
        want = getattr(reference, "psi" if name == "digamma" else name)(x)
    for y, z in zip(np.atleast_2d(got), np.atleast_2d(want), strict=True):
        y, z = y[np.isfinite(z)], z[np.isfinite(z)]
        assert (np.abs(y - z) / np.maximum(np.abs(z), 1e-2)).max() < tol
