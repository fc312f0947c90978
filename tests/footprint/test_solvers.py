"""Solvers in place of linear systems: the same results, and no system is left."""

import numpy as np

import weft.numpy as jnp
from weft import lax
from weft.core.aval import typeof
from weft.core.stage import stage
from weft.footprint.solvers import holds_solver, inline_solvers
from weft.primitives.constant import write_consts


def test_systems_in_programs_and_in_loops():
    a = 3 * jnp.eye(20) + 0.1

    def fun(b):
        solve = lambda c, _: (jnp.linalg.solve(a, c), None)
        return lax.scan(solve, jnp.linalg.solve(a, b) + 1, None, length=2)[0] * 2

    jaxpr, consts = stage(lambda b: [fun(b)], [typeof(jnp.ones(20))])
    assert holds_solver(jaxpr)
    inlined = inline_solvers(write_consts(jaxpr, consts))
    assert not holds_solver(inlined) and inline_solvers(inlined) is inlined
    (out,) = inlined(jnp.ones(20))
    np.testing.assert_allclose(out, fun(jnp.ones(20)), rtol=1e-6)
