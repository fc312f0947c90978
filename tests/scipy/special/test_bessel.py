"""Bessel functions of integer order, stacked."""

import numpy as np
import scipy.special as reference

from weft.scipy import special


def test_bessel_functions_are_stacked():
    z = np.array([[0.0, 0.5], [3.0, -12.0]], np.float32)
    got = special.bessel_jn(z, v=3)
    assert got.shape == (4, 2, 2)
    for v in range(4):
        np.testing.assert_allclose(got[v], reference.jv(v, z.astype(float)), 2e-6)
