"""Functions of complex numbers near zeros, poles and the largest numbers, against mpmath.

tests/numpy/test_elementary_accuracy.py compares them over their whole domains.
"""

import mpmath as mp
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax

PI = np.pi
POINTS = [
    1e-9j, 1e-300 + 1e-9j, -1e-9 + 3j, PI + 1e-8j, PI / 2 + 1e-7j, 2j * PI, 1e-9 + 2j * PI, 1 - 20j,
    0.5 + 600j, 600 + 0.5j, -1e-200 + 1000j, 1000 - 1e-200j, -30 - 2j, 340 + 1j, 1 + 360j,
]  # fmt: skip
NAMES = ["sin", "cos", "tan", "sinh", "cosh", "tanh", "expm1"]


@pytest.fixture(scope="module")
def found():
    """The values and derivatives of all functions, of one program."""

    def program(z):
        slope = lambda f: weft.vmap(weft.grad(f, holomorphic=True))(z)
        return {n: (getattr(lax, n)(z), slope(getattr(lax, n))) for n in NAMES}

    with weft.config.scope(enable_x64=True):
        return weft.jit(program)(np.array(POINTS))


@pytest.mark.parametrize("name", NAMES)
def test_values_and_derivatives(name, found):
    exact = getattr(mp, name)
    with mp.workprec(300):
        for z, got, slope in zip(POINTS, *map(np.asarray, found[name]), strict=True):
            want = exact(mp.mpc(z))
            if abs(want) < 1e300:
                assert abs(mp.mpc(complex(got)) - want) <= 1e-15 * abs(want), z
            want = mp.diff(exact, mp.mpc(z)) if abs(z) < 100 else None
            if want is not None:
                assert abs(mp.mpc(complex(slope)) - want) <= 1e-13 * max(abs(want), 1e-3), z


def test_parts_that_are_zero_stay_zero():
    z = np.array([800j, -800j], np.complex64)
    assert np.array_equal(lax.sin(z), [complex(0, np.inf), complex(0, -np.inf)])
    assert np.array_equal(np.imag(lax.cosh(np.array([800, 0], np.complex64))), [0, 0])
    z = np.array([complex(2, 0), complex(2, -0.0)], np.complex64)  # the cosine gives the sign
    assert np.signbit(np.imag(lax.sin(z))).tolist() == [True, False]
    assert np.array_equal(lax.tanh(np.array([800, -800], np.complex64)), [1, -1])


def test_powers_of_zero_are_zero_where_the_real_part_of_the_power_is_positive():
    powers = np.array([2 - 2j, 0.5 + 1j, 1e-3 - 7j, 3, complex(1, np.inf), -1 + 1j], np.complex64)
    zeros = np.zeros(6, np.complex64)
    for call in (lax.pow, weft.jit(lax.pow), weft.vmap(lax.pow)):
        assert np.array_equal(np.isnan(call(zeros, powers)), [0, 0, 0, 0, 1, 1])
        assert not np.any(call(zeros, powers)[:4])
    assert weft.grad(lambda x: lax.pow(x, powers[0]), holomorphic=True)(zeros[0]) == 0
    assert weft.grad(lambda y: lax.pow(zeros[0], y), holomorphic=True)(powers[0]) == 0


SQUARES = [1e20 + 1e20j, 1e20 - 1e20j, 3e19 + 2.9999998e19j, 1 + 0.99999994j, -2 + 3j, np.inf + 1j]


@pytest.mark.parametrize("fun", [lax.square, lambda z: z**2, lambda z: lax.integer_pow(z, 2)])
def test_parts_of_squares_are_exact_and_do_not_cancel(fun):
    z = np.array(SQUARES, np.complex64)
    wide = z.astype(np.complex128)
    real = (wide.real - wide.imag) * (wide.real + wide.imag)
    with np.errstate(over="ignore"):
        want = np.float32(real), np.float32(2 * wide.real * wide.imag)
    for call in (fun, weft.jit(fun), weft.vmap(fun)):
        got = np.asarray(call(jnp.asarray(z)))
        np.testing.assert_allclose(got.real, want[0], 3e-7)
        np.testing.assert_allclose(got.imag, want[1], 3e-7)
    assert abs(np.asarray(lax.integer_pow(z, 4))[0].real) == np.inf
