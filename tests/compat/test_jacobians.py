"""Jacobians computed by the private steps of JAX are those of `jacfwd`."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.compat import jacobians


def test_jacobians_by_the_steps_of_jax():
    a, b = jnp.arange(2.0), jnp.float32(3.0)
    f = lambda a, b: a * b + a[0]
    basis = jacobians._std_basis((a, b))
    columns = weft.vmap(lambda t: jacobians._jvp(f, (a, b), t)[1])(basis)
    by_columns = jacobians._jacfwd_unravel((a, b), a, columns.T)
    y, pull = jacobians._vjp(f, a, b)
    rows = weft.vmap(pull)(jacobians._std_basis(y))
    by_rows = [jacobians._jacrev_unravel(y, x, row) for x, row in zip((a, b), rows, strict=True)]
    for want, one, other in zip(weft.jacfwd(f, (0, 1))(a, b), by_columns, by_rows, strict=True):
        np.testing.assert_array_equal(want, one)
        np.testing.assert_array_equal(want, other)
    jacobians._check_input_dtype_jacfwd(False, 1.0)
    jacobians._check_output_dtype_jacfwd(False, 1)
    jacobians._check_output_dtype_jacrev(True, 1j)
    jacobians._check_input_dtype_jacrev(False, True, 1)
    jacobians._check_input_dtype_jacrev(False, False, 1j)
    for check, args in (
        (jacobians._check_input_dtype_jacfwd, (False, 1j)),
        (jacobians._check_output_dtype_jacfwd, (True, 1.0)),
        (jacobians._check_input_dtype_jacrev, (False, False, 1)),
        (jacobians._check_output_dtype_jacrev, (False, 1)),
    ):
        with pytest.raises(TypeError, match=r"jac(fwd|rev): .* must be"):
            check(*args)
