"""Derivatives of tanh and the logistic function in loops, with NumPy's formulas as the oracle."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, lax
from weft.control.scan import scan_p
from weft.passes.dce import dce_jaxpr


@pytest.mark.parametrize("name, steps", [("tanh", 6000), ("sigmoid", 6000), ("tanh", 400)])
def test_slopes_of_long_loops_are_made_of_results(name, steps):
    """A loop stacks the result only, unless its operands are few, for which slopes are exact."""
    function = {"tanh": jnp.tanh, "sigmoid": weft.nn.sigmoid}[name]
    xs = jnp.linspace(0.1, 20.0, steps * 3).reshape(steps, 3)

    def f(w):
        step = lambda c, x: (c + function(w * x), function(w * x))
        return lax.scan(step, jnp.zeros(3), xs)[1].sum()

    jaxpr, _ = dce_jaxpr(weft.make_jaxpr(weft.value_and_grad(f))(jnp.ones(3)).jaxpr)
    early = next(e for e in jaxpr.eqns if e.primitive is scan_p)
    assert len(early.outvars) == (1 if steps > 400 else 2)  # results, and slopes
    wide = np.float64(xs)
    slope = 1 / np.cosh(wide) ** 2 if name == "tanh" else 1 / (2 + 2 * np.cosh(wide))
    np.testing.assert_allclose(grad(f)(jnp.ones(3)), (slope * wide).sum(0), rtol=1e-4)
