"""`jit` as a primitive: each of its rules on programs, and the programs that XLA gets."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, jit, jvp, lax, make_jaxpr, vmap
from weft.control.jit import jit_p
from weft.core.jaxpr import jaxpr_uses_axis
from weft.core.primitive import Primitive, References
from weft.passes.check import check_jaxpr
from weft.passes.dce import dce_jaxpr
from weft.passes.inline import inline_calls

A = np.array([1.0, 2.0, 3.0], np.float32)


def total(x):
    return lax.reduce_sum(x, (0,))


def equations(jaxpr, name):
    """The equations of a program and of those it holds that apply the named primitive."""
    found = [e for e in jaxpr.eqns if e.primitive.name == name]
    for sub in weft.extend.core.subjaxprs(jaxpr):
        found += equations(sub, name)
    return found


@pytest.fixture(autouse=True)
def checked():
    """Every program is checked after every pass."""
    with weft.enable_checks():
        yield


@jit
def helper(x, y):
    return lax.sin(x) * y, y + 1.0, 3


def test_the_equation_of_a_call():
    closed = make_jaxpr(lambda x: helper(x, 2.0))(A)
    check_jaxpr(closed)
    (eqn,) = [e for e in closed.eqns if e.primitive is jit_p]
    assert eqn.params["name"] == "helper" and not eqn.params["jaxpr"].constvars
    assert "jit[\n      name=helper\n" in str(closed)


def test_a_program_called_twice_is_written_once():
    text = jit(lambda x: helper(helper(x, x)[0], x)[0]).lower(A).as_text()
    assert text.count("func.func private") == 1 and text.count("callee = @helper") == 2


def test_calls_give_what_their_programs_give():
    out = jit(lambda x: helper(x, x))(A)
    np.testing.assert_allclose(out[0], np.sin(A) * A, rtol=1e-6)
    closed = make_jaxpr(lambda x: helper(x, x))(A)
    np.testing.assert_allclose(closed(A)[0], np.sin(A) * A, rtol=1e-6)


def test_results_that_nothing_uses_are_not_computed():
    closed = make_jaxpr(lambda x, y: helper(x, y)[1])(A, A)
    pruned, used = dce_jaxpr(closed.jaxpr)
    check_jaxpr(pruned)
    assert used == (False, True) and not equations(pruned, "sin")
    assert "sine" not in jit(lambda x, y: helper(x, y)[1]).lower(A, A).as_text()
    nothing = make_jaxpr(lambda x: (helper(x, x), x)[1])(A)
    assert dce_jaxpr(nothing.jaxpr)[0].eqns == []


def test_derivatives_only_of_what_moves():
    f = lambda x, y: helper(x, y)[:2]
    value, dot = jvp(lambda x: f(x, 2.0), (A,), (A,))
    np.testing.assert_allclose(dot[0], np.cos(A) * A * 2, rtol=1e-5)
    np.testing.assert_array_equal(dot[1], 0)
    closed = make_jaxpr(lambda x, t: jvp(lambda x: f(x, 2.0), (x,), (t,))[1][0])(A, A)
    check_jaxpr(closed)


def test_the_gradient_is_two_programs_and_each_is_made_once():
    f = jit(lambda x: total(lax.sin(x) * x))
    first, second = (make_jaxpr(grad(f))(A) for _ in range(2))
    check_jaxpr(first)
    programs = [[e.params["jaxpr"] for e in closed.eqns] for closed in (first, second)]
    assert len(programs[0]) == 2
    assert all(a is b for a, b in zip(*programs, strict=True))


def test_inputs_are_residuals_without_passing_through_the_first_program():
    f = jit(lambda w, x: total(w * x))
    closed = make_jaxpr(lambda x: grad(f)(A, x))(A)
    early = closed.eqns[0].params["jaxpr"]
    assert len(early.outvars) <= 1


def test_integers_pass_through_a_call_that_is_differentiated():
    f = jit(lambda x, i: (x * i, i + 1, x > 0))
    (out, i, sign), pull = weft.vjp(lambda x: f(x, 2), A)
    np.testing.assert_array_equal(out, A * 2)
    assert int(i) == 3 and sign.dtype == bool
    zero = np.zeros((), weft.dtypes.float0), np.zeros(3, weft.dtypes.float0)
    np.testing.assert_array_equal(pull((A, *zero))[0], A * 2)


def test_batching_leaves_what_is_not_mapped_alone():
    f = jit(lambda x, y: (x * 2, y * 2))
    closed = make_jaxpr(vmap(f, (0, None), (0, None)))(np.ones((4, 3), np.float32), A)
    check_jaxpr(closed)
    assert [v.aval.shape for v in closed.jaxpr.outvars] == [(4, 3), (3,)]


class Named(Primitive):
    """Stands for a collective: it refers to the axis "i"."""

    name = "named"

    def abstract_eval(self, x):
        return [x]

    def refers(self, params):
        return References(uses=("i",))

    def batch(self, axis, args, dims):
        return [jnp.multiply(args[0], axis.size)], dims


def test_a_call_is_mapped_for_the_axis_it_names_though_no_argument_is():
    named_p = Named()
    f = jit(lambda x: named_p.apply(x)[0])
    g = vmap(lambda x, y: f(y), in_axes=(0, None), axis_name="i", out_axes=None)
    np.testing.assert_array_equal(g(np.ones(4), A), A * 4)
    closed = make_jaxpr(f)(A)
    assert jaxpr_uses_axis(closed.jaxpr, "i") and not jaxpr_uses_axis(closed.jaxpr, "j")


def test_a_deep_nest_of_calls():
    f = lambda x: lax.sin(x)
    for _ in range(30):
        f = jit(lambda x, f=f: f(x) * 1.0)
    np.testing.assert_allclose(f(A), np.sin(A), rtol=1e-6)
    np.testing.assert_allclose(grad(lambda x: total(f(x)))(A), np.cos(A), rtol=1e-6)
    assert len(inline_calls(make_jaxpr(f)(A).jaxpr).eqns) >= 1
