"""Legendre functions and spherical harmonics against SciPy."""

import numpy as np
import pytest
import scipy.special as reference

import weft
from tests.scipy.test_special import slope
from weft.errors import DtypeError, ShapeError
from weft.scipy import special


def test_spherical_harmonics():
    n, m = (np.array(v) for v in zip(*[(n, m) for n in range(5) for m in range(-n, n + 1)]))
    theta, phi = np.linspace(0, np.pi, n.size), np.linspace(-3, 7, n.size)
    want = reference.sph_harm_y(n, m, theta, phi)
    with weft.enable_x64(True):
        np.testing.assert_allclose(special.sph_harm_y(n, m, theta, phi), want, 1e-12, 1e-14)
    got = weft.jit(lambda *xs: special.sph_harm_y(*xs, n_max=4))(n, m, theta, phi)
    assert got.dtype == np.complex64
    np.testing.assert_allclose(got, want, 1e-4, 1e-6)
    theta = np.linspace(-7, 7, 29)  # beyond [0, pi] too
    for order in (-3, -1, 1, 3):
        got = special.sph_harm_y(np.array([3]), np.array([order]), theta, theta)
        np.testing.assert_allclose(got, reference.sph_harm_y(3, order, theta, theta), 1e-4, 1e-6)
    with pytest.raises(TypeError, match=r"sph_harm_y: n_max must be given"):
        weft.jit(special.sph_harm_y)(n, m, theta, phi)
    for bad, error, text in (
        ({"n": "a"}, DtypeError, "sph_harm_y: .* got"),
        ({"n": 2, "n_max": 2.5}, TypeError, "sph_harm_y: n_max must be an integer; got 2.5"),
        ({"n": 2, "n_max": -1}, ShapeError, "sph_harm_y: n_max must be at least 0; got -1"),
    ):
        with pytest.raises(error, match=text):
            special.sph_harm_y(m=1, theta=0.5, phi=0.5, **bad)


def test_legendre():
    z = np.linspace(-0.9, 0.9, 5)
    orders, degrees = np.meshgrid(range(4), range(4), indexing="ij")
    want = reference.lpmv(orders[..., None], degrees[..., None], z)
    with weft.enable_x64(True):
        values, slopes = special.lpmn(3, 3, z)
        np.testing.assert_allclose(values, want, 1e-12, 1e-13)
        np.testing.assert_allclose(special.lpmn_values(3, 3, z, False), want, 1e-12, 1e-13)
        difference = slope(lambda z: special.lpmn_values(3, 3, z, False), (z,), 0)
        np.testing.assert_allclose(slopes, difference, 1e-7, 1e-8)
        scaled = special.lpmn_values(3, 3, z, True)
        harmonics = special.sph_harm_y(np.array([3]), np.array([2]), np.arccos(z), 0 * z)
        np.testing.assert_allclose(scaled[2, 3], harmonics.real, 1e-12, 1e-15)
    with pytest.raises(NotImplementedError, match=r"lpmn: m and n must be equal"):
        special.lpmn(2, 3, z)
    with pytest.raises(ShapeError, match=r"lpmn: z must be a scalar or have one axis"):
        special.lpmn(2, 2, z[None])
