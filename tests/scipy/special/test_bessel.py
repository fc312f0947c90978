"""Bessel functions of integer order, stacked."""

import numpy as np
import pytest
import scipy.special as reference

import weft
from weft.scipy import special


def test_bessel_functions_are_stacked():
    z = np.array([[0.0, 0.5], [3.0, -12.0]], np.float32)
    got = special.bessel_jn(z, v=3)
    assert got.shape == (4, 2, 2)
    slopes = weft.jvp(lambda z: special.bessel_jn(z, v=3), (z,), (np.ones_like(z),))[1]
    for v in range(4):
        np.testing.assert_allclose(got[v], reference.jv(v, z.astype(float)), 2e-6)
        np.testing.assert_allclose(slopes[v], reference.jvp(v, z.astype(float)), 1e-5, 1e-6)


def test_many_steps_of_the_recurrence_take_time_in_proportion():
    z = np.linspace(0.1, 60, 50)
    got = special.bessel_jn(z, v=1, n_iter=300)  # two terms from two: written out, 2**150 of them
    np.testing.assert_allclose(got[1], reference.jv(1, z), 1e-4, 1e-5)


@pytest.mark.parametrize(("how", "error", "text"), [
    (dict(v=1.5), TypeError, "v and n_iter must be integers; got 1.5, 50"),
    (dict(v=1, n_iter="9"), TypeError, "v and n_iter must be integers; got 1, '9'"),
    (dict(v=-1), ValueError, "v must not be negative; got -1"),
    (dict(v=1, n_iter=2**16 + 1), ValueError, "must be at most 2\\*\\*16; got 1, 65537"),
])  # fmt: skip
def test_mistakes_are_named(how, error, text):
    with pytest.raises(error, match=text):
        special.bessel_jn(1.0, **how)
