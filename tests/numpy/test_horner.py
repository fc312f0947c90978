"""lax.polynomial against NumPy's polynomials."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import lax
from weft.errors import ShapeError
from weft.numpy import horner


@pytest.mark.parametrize("unroll", [None, 1, 2])
def test_values_and_slopes(unroll):
    x, coeffs = jnp.linspace(-1.0, 2.0, 5), [1.5, -2.0, 0.25, 3.0]
    f = lambda x: lax.polynomial(x, coeffs, unroll=unroll)
    wanted = np.polynomial.Polynomial(coeffs)
    np.testing.assert_allclose(f(x), wanted(np.asarray(x)), rtol=1e-5)
    np.testing.assert_allclose(weft.vmap(weft.grad(f))(x), wanted.deriv()(np.asarray(x)), rtol=1e-5)


def test_kinds_of_coefficients():
    x = jnp.ones((2, 3))
    assert lax.polynomial(x, jnp.arange(4)).dtype == jnp.float32  # rows of one array
    assert jnp.array_equal(lax.polynomial(x, [jnp.ones(3), x * 2]), x * 3)
    assert jnp.array_equal(lax.polynomial(x, [1.0], unroll=1), x)
    assert jnp.array_equal(lax.polynomial(x, []), x * 0)
    assert lax.polynomial(2, [1, 3]) == 7
    with pytest.raises(ShapeError):
        lax.polynomial(x, [jnp.ones(2)])


@pytest.mark.parametrize("coeffs", [1j, jnp.float32(1), {1: 2}, "ab"], ids=str)
def test_coefficients_are_a_sequence(coeffs):
    with pytest.raises(TypeError, match="polynomial: coeffs must be a sequence; got"):
        lax.polynomial(1.0, coeffs)


def test_examples():
    check_examples(horner)
