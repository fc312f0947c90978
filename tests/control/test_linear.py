import numpy as np

from weft import disable_jit, make_jaxpr, vmap
from weft import numpy as jnp
from weft.control.linear import linear_solve_p
from weft.lax import custom_linear_solve
from weft.passes.check import check_jaxpr

D = np.array([2.0, 4.0], np.float32)


def scaled(d, b):
    return custom_linear_solve(lambda x: d * x, b, lambda f, b: b / d, lambda f, b: b / d)


def equations(jaxpr):
    return [e for e in jaxpr.jaxpr.eqns if e.primitive is linear_solve_p]


def test_the_programs_are_closed_and_take_what_they_close_over_first():
    jaxpr = make_jaxpr(scaled)(D, D)
    check_jaxpr(jaxpr)
    (eqn,) = equations(jaxpr)
    assert eqn.params["counts"] == (1, 1, 1, 1)
    assert [v.aval.shape for v in eqn.invars] == [(2,)] * 5
    b = eqn.params["vecmat"](D, jnp.ones(2))
    np.testing.assert_array_equal(b[0], D)  # the transpose of a diagonal is itself


def test_batching_maps_what_is_mapped():
    jaxpr = make_jaxpr(vmap(scaled, (None, 0)))(D, jnp.ones((3, 2)))
    check_jaxpr(jaxpr)
    (eqn,) = equations(jaxpr)
    assert [v.aval.shape for v in eqn.invars] == [(2,)] * 4 + [(3, 2)]


def test_disable_jit_runs_the_solver():

    with disable_jit():
        np.testing.assert_array_equal(scaled(D, D), [1.0, 1.0])
