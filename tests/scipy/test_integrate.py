import numpy as np
import pytest
import scipy.integrate

import weft.numpy as jnp
from weft.scipy import integrate


@pytest.mark.parametrize("options", [{}, {"dx": 0.5}, {"axis": 0}, {"x": np.array([0.0, 1, 4, 5])}])
def test_trapezoid_is_scipys(options, rng):
    y = rng.normal(size=(3, 4)).astype(np.float32)
    want = scipy.integrate.trapezoid(y, **options)
    np.testing.assert_allclose(integrate.trapezoid(y, **options), want, rtol=1e-5, atol=1e-6)
    assert integrate.trapezoid is jnp.trapezoid
