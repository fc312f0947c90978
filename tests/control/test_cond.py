import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, jit, lax, make_jaxpr, vmap
from weft.control.cond import cond_p
from weft.core.primitive import Zero
from weft.passes.check import check_jaxpr
from weft.passes.dce import dce_jaxpr
from weft.transforms.jvp import jvp as jvp_flat

X = np.array([0.3, -0.7, 1.1], np.float32)


def conds(jaxpr, found=None):
    """The cond equations of a program and of those it holds."""
    found = [] if found is None else found
    for eqn in jaxpr.jaxpr.eqns:
        if eqn.primitive is cond_p:
            found.append(eqn)
        elif "jaxpr" in eqn.params:
            conds(eqn.params["jaxpr"], found)
    return found


def avals(atoms):
    return [str(a.aval) for a in atoms]


def test_the_type_rule_wants_an_int32_index():
    branches = conds(make_jaxpr(lambda p: lax.cond(p, jnp.sin, jnp.cos, 1.0))(True))[0].params
    with pytest.raises(TypeError, match=r"cond: the index must be an int32 scalar; got bool\[\]."):
        cond_p.apply(np.bool_(True), 1.0, **branches)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_an_index_out_of_the_range_runs_the_last_branch(count):
    programs = [make_jaxpr(lambda x, i=i: x * (i + 1.0))(1.0).jaxpr for i in range(count)]
    call = lambda i, x: cond_p.apply(i, x, branches=tuple(programs))[0]
    index = np.arange(-2, 5, dtype=np.int32)
    want = [i + 1 if 0 <= i < count else count for i in index]
    compiled = jit(call)
    assert [compiled(i, 1.0) for i in index] == want
    assert jit(lambda: [call(i, 1.0) for i in index])() == want
    each = vmap(lambda i: weft.value_and_grad(call, 1)(i, 1.0))
    np.testing.assert_array_equal(jit(each)(index), [want, want])
    with weft.disable_jit():
        assert [call(i, 1.0) for i in index] == want


def test_a_known_index_leaves_no_branch_in_the_compiled_program():
    def f(x):
        return lax.cond(True, jnp.sin, jnp.cos, x) + lax.switch(7, [jnp.exp, jnp.tanh], x)

    text = jit(f).lower(X).as_text()
    assert "case" not in text and "cosine" not in text and "exponential" not in text
    assert "sine" in text and "tanh" in text
    assert jit(lambda i: lax.switch(i, [jnp.exp] * 3, 1.0)).lower(1).as_text().count(".case") == 1


def test_an_unmoved_result_has_no_tangent():
    def f(p, x):
        return lax.cond(p, lambda x: (x, 1.0, jnp.sin(x)), lambda x: (2 * x, 2.0, 3.0), x)

    _, dots = jvp_flat(lambda x: list(f(True, x)), [X[0]], [np.float32(1.0)])
    assert [type(t) is Zero for t in dots] == [False, True, False]


def test_dce_prunes_results_and_operands_in_every_branch():
    def f(p, x, y, z):
        true = lambda x, y, z: (jnp.sin(x), y * z)
        return lax.cond(p, true, lambda x, y, z: (x * 2, y), x, y, z)[0]

    jaxpr, used = dce_jaxpr(make_jaxpr(f)(True, 1.0, 2.0, 3.0).jaxpr)
    check_jaxpr(jaxpr)
    (eqn,) = conds(jaxpr)
    assert used == (True, True, False, False)
    assert len(eqn.invars) == 2 and [len(b.eqns) for b in eqn.params["branches"]] == [1, 1]
    whole = make_jaxpr(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x))(True, 1.0).jaxpr
    assert dce_jaxpr(whole)[0] is whole


def test_residuals_share_slots_and_operands_are_not_copied():
    def f(p, x, w):
        sines = lambda x: jnp.sum(jnp.sin(x) * jnp.cos(x) * w)
        return lax.cond(p, sines, lambda x: jnp.sum(jnp.tanh(x) * w), x)

    early, late = conds(make_jaxpr(grad(f, argnums=(1, 2)))(True, X, X))
    for eqn in (early, late):
        for b in eqn.params["branches"]:
            check_jaxpr(b)
    made = [a for a in avals(early.outvars) if a == "f32[3]"]
    assert len(made) <= 5  # what the sines need; tanh needs fewer, and they have places there
    assert not set(early.outvars) & set(early.invars)
    assert any(v in early.invars for v in late.invars)  # w


def test_zeros_are_not_kept():
    f = lambda p, x: jnp.sum(lax.cond(p, jnp.sin, lambda x: jnp.ones(3), x))
    early, _ = conds(make_jaxpr(grad(f, argnums=1))(True, X))
    assert avals(early.outvars) == ["f32[3]", "f32[3]"]  # the result, and a cosine


def test_an_operand_that_no_branch_depends_on_has_no_cotangent():
    f = lambda p, x, y: lax.cond(p, lambda x, y: x, lambda x, y: 2 * x, x, y)
    assert len(conds(make_jaxpr(grad(f, argnums=2))(True, 1.0, 2.0))) == 1  # forward only
    assert grad(f, argnums=2)(True, 1.0, 2.0) == 0.0


def test_an_unmapped_index_stays_a_branch_and_maps_only_what_it_must():
    def f(p, x, y):
        return lax.cond(p, lambda x, y: (x, y), lambda x, y: (x * y, y + 1), x, y)

    (eqn,) = conds(make_jaxpr(vmap(f, (None, 0, None), (0, None)))(True, X, 2.0))
    assert avals(eqn.outvars) == ["f32[3]", "f32[]"]
    jaxpr = make_jaxpr(vmap(f, (0, 0, None), (0, 0)))(X > 0, X, 2.0)
    assert not conds(jaxpr) and "select_n" in str(jaxpr)


def test_what_every_branch_passes_on_is_not_selected():
    f = lambda p, x, y: lax.cond(p, lambda x, y: (x, y), lambda x, y: (-x, y), x, y)
    jaxpr = make_jaxpr(vmap(f, (0, 0, None), (0, None)))(X > 0, X, 2.0)
    assert str(jaxpr).count("select_n") == 2  # the result -x or x, and its operand


def test_named_axes_reach_into_branches():
    if not hasattr(lax, "psum"):
        pytest.skip("no collectives yet")
    f = lambda x: lax.cond(True, lambda x: x / lax.psum(x, "i"), lambda x: x, x)
    np.testing.assert_allclose(vmap(f, axis_name="i")(X), X / X.sum(), rtol=1e-6)


def test_a_loop_of_calls_traces_and_compiles_once():
    traced = []
    true, false = (lambda x: (traced.append(1), x * 3.0)[1]), (lambda x: x - 1.0)
    x = jnp.float32(1.0)
    for i in range(4):
        x = lax.cond(i % 2 == 0, true, false, x)
    assert x == 5.0 and len(traced) == 1
    (body,) = false.__weft_programs__.values()
    assert sum(isinstance(k, tuple) and k[0] == "compiled" for k in body.jaxpr.memo) == 1


def test_a_checkpoint_policy_sees_into_branches():
    f = lambda x: jnp.sum(lax.cond(x[0] > 0, lambda x: jnp.sin(jnp.exp(x)), jnp.exp, x))
    for policy in weft.checkpoint_policies.everything_saveable, lambda p, *a, **k: p.name == "exp":
        g = weft.checkpoint(f, policy=policy)
        np.testing.assert_allclose(grad(g)(X), grad(f)(X), rtol=1e-6)
        np.testing.assert_allclose(grad(g)(-X), grad(f)(-X), rtol=1e-6)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("chosen", [[1.0, 0.0, 2.0, -1.0], [0.0, -1.0], [1.0, 2.0]])
@pytest.mark.parametrize(
    "apply",
    [
        lambda w, x: jnp.sum(w @ (w[0] / x)),
        lambda w, x: jnp.sum(lax.fori_loop(0, 2, lambda i, c: w @ c / x, w[0])),
        lambda w, x: lax.cond(x > 1.5, lambda: jnp.sum(w * jnp.log(x)), lambda: jnp.sum(w / x)),
        lambda w, x: jnp.sum(jit(lambda w: w @ w)(w) / x),
    ],
    ids=["product", "loop", "branch", "call"],
)
def test_what_is_not_chosen_leaves_the_gradient_of_a_shared_matrix(apply, chosen):
    """A branch that a row does not take may divide by zero there."""
    w, xs = jnp.array([[1.0, 2.0], [3.0, 0.5]]), jnp.array(chosen)
    one = lambda w, x: lax.cond(x > 0, lambda: apply(w, x), lambda: jnp.sum(w) * x)
    got = grad(lambda w: vmap(lambda x: one(w, x))(xs).sum())(w)
    want = sum(np.asarray(grad(one)(w, x)) for x in xs)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_branch_that_is_never_taken_has_no_gradient():
    f = lambda w, x: lax.cond(x > 0, lambda: jnp.sum(w) * x, lambda: jnp.sum(w * jnp.inf))
    w, xs = jnp.ones((2, 2)), jnp.array([1.0, 2.0])
    got = grad(lambda w: vmap(lambda x: f(w, x))(xs).sum())(w)
    np.testing.assert_array_equal(got, np.full((2, 2), 3.0))


def test_a_switch_of_an_index_out_of_bounds_without_jit():
    """The nearest, as in compiled programs."""
    branches = [lambda x, k=k: x * k for k in (1.0, 2.0, 3.0)]
    with weft.disable_jit():
        got = [weft.lax.switch(i, branches, 1.0) for i in (-3, 0, 1, 2, 7)]
    assert got == [1.0, 1.0, 2.0, 3.0, 3.0]
