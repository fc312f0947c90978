"""Arguments and methods that JAX 0.11 and 0.12 added to transformations and their results."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.api.custom_rules import NullAccum, ValAccum
from weft.core.primitive import Zero


def f(x, y):
    return jnp.sin(x) * y


def test_vjp_and_linearize_of_some_arguments():
    x, y = jnp.float32(2.0), jnp.float32(3.0)
    slope = jnp.cos(x) * y
    for marks in ((True, False), [True, False]):
        _, f_vjp = weft.vjp(f, x, y, in_nzs=marks)
        assert np.allclose(f_vjp(1.0), (slope, 0))
    _, f_jvp = weft.linearize(f, x, y, in_nzs=(True, False))
    assert np.allclose(f_jvp(1.0, 1.0), slope)
    assert np.allclose(weft.vjp(f, x, y, in_nzs=False)[1](1.0), 0)


def test_a_pullback_without_the_arguments():
    x, y = jnp.float32(2.0), jnp.ones(5)
    whole = weft.vjp(f, x, y)[1]
    held = lambda f_vjp: [leaf for leaf in weft.tree.leaves(f_vjp) if leaf is y]
    _, some = weft.vjp(f, x, y, saveable_args=(True, False))
    assert held(whole) and not held(some)
    ct = jnp.ones(5)
    with pytest.raises(ValueError, match="must|needs arguments.*with_args"):
        some(ct)
    for found, wanted in zip(some.with_args(x, y)(ct), whole(ct), strict=True):
        np.testing.assert_allclose(found, wanted)
    np.testing.assert_allclose(weft.jit(lambda p: p.with_args(x, y)(ct)[0])(some), whole(ct)[0])


def test_a_traced_function_with_its_constants_as_argument():
    c = jnp.arange(3.0)
    traced = weft.jit(lambda x, *, k: x * c + k["a"], donate_argnums=0).trace(c, k={"a": 1.0})
    consts, fun = traced.closure_convert()
    assert np.array_equal(fun(consts, c, k={"a": 1.0}), c * c + 1)
    consts, opened = traced.with_consts_as_arg()
    assert opened.jaxpr.num_consts == 0 and traced.jaxpr.num_consts == 1
    assert opened.donate_argnums == (1,)
    run = opened.lower().compile()
    assert np.array_equal(run([c + 1], jnp.ones(3), k={"a": 1.0}), c + 2)
    with pytest.raises(TypeError, match="must be called with 1 consts"):
        fun([], c, k={"a": 1.0})


def test_when_a_jitted_function_is_inlined():
    for when in weft.Inline:
        inner = weft.jit(lambda x: x * 2, inline=when)
        outer = lambda x, inner=inner: inner(x) + 1
        called = weft.make_jaxpr(outer)(1.0).eqns[0].primitive.name == "jit"
        assert called == (when is not weft.Inline.JAX_EARLY) and inner(1.0) == 2


def test_rules_that_save_little():
    g, calls = weft.custom_vjp(lambda n, x, d: x**n + d["a"], nondiff_argnums=(0,)), []

    def rem(saved, n, x, d):
        calls.append(n)
        return x**n + d["a"], (saved, 10.0 * x)

    g.defremat(
        lambda n, x, d: (x**n + d["a"], 2.0),
        rem,
        lambda n, residuals, ct: (residuals[0] * residuals[1] * ct, {"a": n * ct}),
    )
    slope = weft.grad(lambda x, a: g(3, x, {"a": a}), (0, 1))
    assert slope(1.5, 0.0) == (30, 3) and calls == [3]
    again = weft.grad(weft.checkpoint(lambda x: g(3, x, {"a": x})))
    assert again(1.5) == weft.jit(again)(1.5) == 33


def test_rules_that_accumulate():
    g = weft.custom_vjp(lambda x, d: x * d["a"])

    def bwd(residuals, ct, x, d):
        assert isinstance(x, ValAccum) and x.aval.shape == ()
        x.accum(ct * residuals[0])
        x.accum(ct)

    g.defvjp_with_accums(lambda x, d: (x * d["a"], (d["a"],)), bwd)
    assert weft.grad(g, (0, 1))(2.0, {"a": 3.0}) == (4, {"a": 0})
    g.defvjp(lambda x, d: (x * d["a"], None), lambda _, ct: (ct, {"a": ct}))
    assert weft.grad(g)(2.0, {"a": 3.0}) == 1


def test_accumulators():
    total, none = ValAccum(weft.typeof(1.0)), NullAccum(weft.typeof(1.0))
    none.accum(1.0)
    assert type(total.freeze()) is Zero and type(none.freeze()) is Zero
    total.accum(jnp.float32(1))
    total.accum(jnp.float32(2))
    total.accum(total_zero := Zero(total.aval))
    assert total.freeze() == 3 and type(total_zero) is Zero


def test_parts_of_jaxprs():
    c = jnp.arange(3.0)
    closed = weft.make_jaxpr(lambda x: x + c)(1.0)
    assert closed.num_consts == closed.jaxpr.num_consts == 1 and not closed.is_high
    assert closed.all_invars == [*closed.jaxpr.constvars, *closed.jaxpr.invars]
    assert np.array_equal(closed.with_consts([c + 1])(1.0)[0], c + 2)
    assert np.array_equal(closed.jaxpr.with_consts([c])(1.0)[0], c + 1)
