"""Gamma of complex numbers at its poles and zeros, and zeta far below 0, against mpmath."""

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import weft
from weft.options import config
from weft.scipy import special

NEAR = [1e-12, -1e-9, 1e-10j, -1e-12j, 1e-7 + 1e-9j, 1e-3, 0.1 - 0.05j, 0.19j]


@pytest.mark.parametrize("name", ["gamma", "loggamma"])
def test_complex_numbers_next_to_poles_and_zeros(name):
    z = np.array([k + d for k in (0, -1, -2, -7, 1, 2) for d in NEAR])
    with weft.enable_x64(), mp.workdps(40):
        got = np.asarray(getattr(special, name)(z))
        want = np.array([complex(getattr(mp, name)(mp.mpc(v))) for v in z])
    size = np.abs(want)
    assert (np.abs(got - want) / size).max() < 2e-14
    # of a zero at a real number, where the imaginary part is large, the real part too
    close = np.abs(want.imag) > 1e-14 * size
    np.testing.assert_allclose(got.imag[close], want.imag[close], rtol=1e-11)


@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
def test_poles_are_those_of_scipy(kind):
    z = np.array([0, -1, -2, -3, -40, complex(-0.0, -0.0), complex(-1, -0.0), 1, 2, 3], kind)
    with weft.enable_x64(kind is np.complex128), np.errstate(all="ignore"):
        for name in ("gamma", "loggamma"):
            want = getattr(scipy.special, name)(z)
            np.testing.assert_allclose(getattr(special, name)(z), want, rtol=1e-6, atol=1e-12)


BELOW = [(2, -10_000.3), (3, -123_456.75), (3, -0.3), (4, -1e9 - 0.5), (2, -1e-10), (5, -2.25)]


def test_zeta_far_below_zero():
    x, q = np.array(BELOW).T
    with weft.enable_x64(), mp.workdps(40):
        want = []
        for s, v in BELOW:
            whole = mp.floor(v)
            below = mp.zeta(s, whole + 1 - mp.mpf(v)) - mp.zeta(s, 1 - mp.mpf(v))
            want.append(float(mp.zeta(s, mp.mpf(v) - whole) + (-1) ** s * below))
        for native in (True, False):
            with config.scope(native=native):
                found = weft.jit(lambda x, q: special.zeta(x, q))(x, q)
            np.testing.assert_allclose(found, want, rtol=1e-12)
        slope = weft.vmap(weft.grad(special.zeta, 1))(x, q)
        near = [i for i, v in enumerate(q) if abs(v) < 10]  # mpmath adds the terms one by one
        exact = [float(mp.diff(lambda t, s=s: mp.zeta(s, t), q[i])) for i in near for s in [x[i]]]
        np.testing.assert_allclose(np.asarray(slope)[near], exact, rtol=1e-10)


def test_derivatives_of_zeta_in_the_exponent():
    x, q = (a.ravel() for a in np.meshgrid([1.0001, 1.5, 3.0, 20.0], [1e-3, 0.3, 2.0, 1e5]))
    with mp.workdps(60):
        want = [float(mp.zeta(*map(mp.mpf, v), 1)) for v in zip(x, q, strict=True)]
    slope = lambda x, q: weft.vmap(weft.grad(special.zeta))(x, q)
    want = np.array(want)
    held = (np.abs(want) > 1e-37) & (np.abs(want) < 1e37) & (x != 1.0001)
    found = np.asarray(weft.jit(slope)(np.float32(x), np.float32(q)))
    np.testing.assert_allclose(found[held], want[held], 2e-5)
    with weft.enable_x64():
        np.testing.assert_allclose(weft.jit(slope)(x, q), want, rtol=1e-12)
        assert weft.grad(special.zeta)(1e6, 1.5) == 0.0
