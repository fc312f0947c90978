"""custom_jvp and custom_vjp: both rules on one function, symbolic zeros, errors."""

import functools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import (
    checkpoint,
    custom_jvp,
    custom_vjp,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    lax,
    linearize,
    make_jaxpr,
    vmap,
)
from weft import custom_derivatives as cd
from weft.dtypes import float0
from weft.experimental import checkify

A = np.array([1.0, 2.0, 3.0], np.float32)


@pytest.fixture(autouse=True)
def checked():
    """Every program that a pass makes is checked."""
    with weft.enable_checks(True):
        yield


# --- both rules on one function -----------------------------------------------------------------


def with_both(kind):
    """sin, said to have the derivative x^3 in forward mode, and x^2 in reverse mode."""
    f = kind(lambda x: jnp.sin(x))
    f.defjvp(lambda p, t: (jnp.sin(p[0]), t[0] * p[0] ** 3))
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * x**2,))
    return f


@pytest.mark.parametrize("kind", [custom_jvp, custom_vjp])
@pytest.mark.parametrize(
    "program, want",
    [
        (lambda f: grad(f), 9),
        (lambda f: jit(grad(jit(f))), 9),
        (lambda f: lambda x: jvp(f, (x,), (1.0,))[1], 27),
        (lambda f: jit(lambda x: jvp(jit(f), (x,), (1.0,))[1]), 27),
        (lambda f: lambda x: linearize(jit(f), x)[1](1.0), 27),
        (lambda f: lambda x: weft.linear_transpose(linearize(f, x)[1], 1.0)(1.0)[0], 9),
        (lambda f: jacfwd(grad(f)), 6),
        (lambda f: hessian(jit(f)), 6),
        (lambda f: jit(jacrev(jacrev(f))), 6),
        (lambda f: jacfwd(jacfwd(f)), 27),
        (lambda f: jit(jacrev(jacfwd(f))), 27),
        (lambda f: grad(checkpoint(f)), 9),
    ],
)
def test_forward_mode_takes_the_one_rule_and_reverse_mode_the_other(kind, program, want):
    assert float(program(with_both(kind))(3.0)) == pytest.approx(want)


@pytest.mark.parametrize("kind", [custom_jvp, custom_vjp])
def test_both_rules_mapped_and_in_loops(kind):
    f = with_both(kind)
    np.testing.assert_allclose(vmap(lambda x: jvp(f, (x,), (1.0,))[1])(A), A**3, rtol=1e-5)
    np.testing.assert_allclose(jit(lambda x: jvp(vmap(f), (x,), (x,))[1])(A), A**4, rtol=1e-5)
    np.testing.assert_allclose(jacfwd(vmap(f))(A), np.diag(A**3), rtol=1e-5)
    np.testing.assert_allclose(jacrev(vmap(f))(A), np.diag(A**2), rtol=1e-5)
    twice = lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]
    s = np.sin(3.0)
    np.testing.assert_allclose(jvp(twice, (3.0,), (1.0,))[1], 27 * s**3, rtol=1e-5)
    np.testing.assert_allclose(grad(twice)(3.0), 9 * s**2, rtol=1e-5)


# --- rules that are right, under two words ------------------------------------------------------

WORDS = {
    "jit": jit,
    "grad": grad,
    "jvp": lambda f: lambda x: jvp(f, (x,), (1.5,))[1],
    "vmap": lambda f: lambda x: vmap(f)(jnp.stack([x, 2 * x])).sum(),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c) * 0.5, c), x, None, length=2)[0],
    "cond": lambda f: lambda x: lax.cond(x > -9.0, f, lambda z: z, x),
    "checkpoint": checkpoint,
}


def right(kind, c):
    """2 sin(x), by rules that close over c."""
    one = lambda: c * 0 + 1
    fun = lambda x: jnp.sin(x) * 2
    f = kind(fun)
    f.defjvp(lambda p, t: (fun(p[0]), 2 * jnp.cos(p[0]) * t[0] * one()))
    if kind is custom_vjp:
        bwd = lambda x, ct: (2 * jnp.cos(x) * ct * one(),)
        f.defvjp(lambda x: (fun(x.value) * one(), x.value), bwd, True, optimize_remat=True)
    return f


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("kind", [custom_jvp, custom_vjp])
@pytest.mark.parametrize("outer", WORDS)
@pytest.mark.parametrize("inner", WORDS)
def test_rules_that_are_right_are_not_noticed(kind, inner, outer):
    def program(make):
        f = lambda y: WORDS[inner](make(y))(y) * y
        return WORDS[outer](f)(0.7)

    want = program(lambda c: lambda x: jnp.sin(x) * 2)
    np.testing.assert_allclose(program(lambda c: right(kind, c)), want, rtol=1e-5)


@pytest.mark.parametrize("kind", [custom_jvp, custom_vjp])
def test_results_that_are_not_used_are_removed(kind):
    f = kind(lambda x: (jnp.sin(x), jnp.exp(x), jnp.tanh(x)))
    f.defjvp(lambda p, t: ((p[0], p[0], p[0]), (2 * t[0], 3 * t[0], 5 * t[0])))
    if kind is custom_vjp:
        bwd = lambda _, cts: (2 * cts[0] + 3 * cts[1] + 5 * cts[2],)
        f.defvjp(lambda x: ((x, x, x), None), bwd)
    jaxpr, _ = weft.passes.dce.dce_jaxpr(make_jaxpr(f)(1.0).jaxpr, (False, True, False))
    (eqn,) = jaxpr.eqns
    assert [e.primitive.name for e in eqn.params["call_jaxpr"].eqns] == ["exp"]
    one = lambda x: jaxpr(x)[0]
    np.testing.assert_allclose(one(1.0), np.exp(1.0), rtol=1e-6)
    assert float(grad(one)(1.0)) == float(jvp(jit(one), (1.0,), (1.0,))[1]) == 3.0
    np.testing.assert_array_equal(grad(lambda x: vmap(one)(x).sum())(A), [3, 3, 3])


# --- symbolic zeros -----------------------------------------------------------------------------


@pytest.mark.parametrize("around", [lambda f: f, jit, lambda f: jit(jit(f))])
def test_symbolic_zeros_of_custom_jvp(around):
    f = custom_jvp(lambda x, y, i: (x * y, y))
    seen = []

    def rule(primals, tangents):
        x, y, _ = primals
        tx, ty, ti = tangents
        seen.append((type(tx) is cd.SymbolicZero, ty, ti))
        return (x * y, y), (tx * y, ty)

    f.defjvp(rule, symbolic_zeros=True)
    _, (dx, dy) = jvp(around(lambda x: f(x, 2.0, 3)), (1.0,), (1.0,))
    assert float(dx) == 2.0 and float(dy) == 0.0
    ((moving_is_zero, ty, ti),) = seen
    assert not moving_is_zero and ty == cd.SymbolicZero.from_primal_value(2.0)
    assert (ty.shape, ty.dtype, ti.dtype) == ((), np.float32, float0)
    mapped = vmap(around(lambda x: f(x, 2.0, 3)[0]))
    np.testing.assert_array_equal(grad(lambda x: mapped(x).sum())(A), [2, 2, 2])
    assert type(seen[-1][1]) is cd.SymbolicZero


@pytest.mark.parametrize("around", [lambda f: f, jit])
def test_symbolic_zeros_of_custom_vjp(around):
    f = custom_vjp(lambda x, p: (x * p["y"], x))
    seen = []

    def fwd(x, p):
        seen.append((x.perturbed, p["y"].perturbed))
        values = cd.custom_vjp_primal_tree_values(p)
        return (x.value * values["y"], x.value), values["y"]

    def bwd(y, ct):
        seen.append(type(ct[1]) is cd.SymbolicZero)
        return ct[0] * y, {"y": ct[1]}

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    g = around(lambda x: f(x, {"y": 2.0})[0])
    assert float(grad(g)(1.0)) == 2.0 and seen == [(True, False), True]
    np.testing.assert_array_equal(vmap(grad(g))(A), [2, 2, 2])
    np.testing.assert_array_equal(grad(lambda x: vmap(g)(x).sum())(A), [2, 2, 2])
    assert set(seen) == {(True, False), True}


def test_what_stands_for_zero():
    zero = cd.zero_from_primal(A, symbolic_zeros=True)
    assert repr(zero) == "SymbolicZero(f32[3])" and len({zero, cd.SymbolicZero(zero.aval)}) == 1
    np.testing.assert_array_equal(cd.zero_from_primal(A), np.zeros(3))
    assert cd.zero_from_primal(1, True).dtype == float0
    with pytest.raises(AttributeError, match="has no attribute 'T'. Hint: zeros"):
        zero.T


# --- arguments and types ------------------------------------------------------------------------


def test_nondiff_arguments_may_be_traced_functions_and_names():
    f = custom_vjp(lambda h, n, x: h(x) * n, nondiff_argnums=0, nondiff_argnames="n")
    f.defvjp(lambda h, n, x: (h(x) * n, None), lambda h, n, _, ct: (ct * n * 10,))
    outer = lambda n: grad(jit(lambda x: f(lambda z: z * n, n, x)))(2.0)
    for transformed in (outer, jit(outer)):
        assert float(transformed(3.0)) == 30.0
    np.testing.assert_array_equal(vmap(outer)(A), 10 * A)
    assert float(grad(lambda n: grad(f, 2)(lambda z: z, n, n))(3.0)) == 10.0


def test_methods_of_objects_that_hold_traced_values():
    class Layer:
        def __init__(self, w):
            self.w = w

        @functools.partial(custom_vjp, nondiff_argnums=0)
        def apply(self, x):
            return self.w * x

        def fwd(self, x):
            return self.w * x, None

        def bwd(self, _, ct):
            return (ct * self.w * 2,)

        apply.defvjp(fwd, bwd)

    outer = lambda w: grad(jit(Layer(w).apply))(1.0)
    assert float(jit(outer)(3.0)) == 6.0
    np.testing.assert_array_equal(vmap(outer)(A), 2 * A)
    with pytest.raises(TypeError, match="must not close over values that are differentiated"):
        grad(lambda w: Layer(w).apply(1.0))(3.0)


def test_complex_and_narrow_types():
    f = custom_vjp(lambda z: z * z)
    f.defvjp(lambda z: (z * z, z), lambda z, ct: (ct * 3 * z,))
    z = np.complex64(1 + 2j)
    assert complex(weft.vjp(f, z)[1](z)[0]) == 3 * z * z
    g = custom_vjp(lambda x: x * 1)
    g.defvjp(lambda x: (x * 1, None), lambda _, ct: (ct.astype(jnp.float32) * 2,))
    got = grad(lambda x: g(x).sum() + x.sum())(jnp.ones(3, jnp.bfloat16))
    assert got.dtype == jnp.bfloat16
    np.testing.assert_array_equal(got.astype(np.float32), [3, 3, 3])


def test_rules_are_not_run_where_nothing_is_differentiated():
    calls = []
    f = custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: calls.append("fwd") or (x, None), lambda _, ct: calls.append("bwd") or (ct,))
    f.defjvp(lambda p, t: calls.append("jvp") or (p[0], t[0]))
    jit(vmap(jit(f)))(A)
    f(A)
    assert calls == []
    jit(grad(lambda x: jit(f)(x)))(1.0)
    assert calls == ["fwd", "bwd"]


def test_the_rules_are_named_in_the_program():
    f = with_both(custom_vjp)
    text = str(make_jaxpr(f)(1.0))
    assert "custom_vjp_call[" in text and "name=<lambda>" in text
    (eqn,) = make_jaxpr(lambda x: jvp(f, (x,), (x,))[1])(1.0).eqns[-1:]
    assert eqn.primitive.name == "custom_linear"
    assert (
        make_jaxpr(weft.custom_gradient(lambda x: (x**2, lambda ct: ct)))(1.0).eqns[0].primitive
        is cd.custom_vjp_call_p
    )
    assert cd.custom_jvp_call_p.name == "custom_jvp_call"


# --- rematerialization --------------------------------------------------------------------------


def test_optimize_remat_calls_the_function_where_no_residual_is_needed():
    f = custom_vjp(lambda x: jnp.sin(x))
    f.defvjp(lambda x: (jnp.tanh(x), jnp.exp(x)), lambda r, ct: (ct * r,), optimize_remat=True)
    g = grad(checkpoint(lambda x: f(f(x))))
    early, late = make_jaxpr(g)(1.0).eqns
    assert [e.primitive.name for e in early.params["jaxpr"].eqns] == ["custom_vjp_call"] * 2
    assert late.params["jaxpr"].eqns[0].primitive is cd.remat_opt_p
    want = np.exp(1.0) * np.exp(np.tanh(1.0))
    for transformed in (g, jit(g), lambda x: vmap(g)(x * A)[0]):
        np.testing.assert_allclose(transformed(1.0), want, rtol=1e-5)
    np.testing.assert_allclose(grad(f)(1.0), np.exp(1.0), rtol=1e-6)
    np.testing.assert_allclose(jit(hessian(f))(1.0), np.exp(1.0), rtol=1e-6)
    np.testing.assert_allclose(grad(lambda x: vmap(f)(x).sum())(A), np.exp(A), rtol=1e-6)
    assert np.isfinite(grad(g)(1.0))


def test_checks_look_into_the_forward_rule():
    f = custom_vjp(lambda x: jnp.sin(x))
    f.defvjp(lambda x: (jnp.log(x), x), lambda x, ct: (ct * x,), optimize_remat=True)
    for transformed in (grad(f), jit(grad(checkpoint(f)))):
        error, _ = checkify.checkify(transformed, errors=checkify.float_checks)(-1.0)
        assert "nan generated by primitive: log" in error.get()
    with weft.debug_nans(True), pytest.raises(FloatingPointError, match="log: results must hold"):
        jit(weft.value_and_grad(f))(-1.0)


# --- errors -------------------------------------------------------------------------------------


def pulled(bwd=lambda x, ct: (ct,), fwd=lambda x: (x * 2, x), fun=lambda x: x * 2):
    f = custom_vjp(fun)
    f.defvjp(fwd, bwd)
    return lambda x: jnp.sum(jit(f)(x))


def pushed(rule, fun=lambda x: (x, x)):
    f = custom_jvp(fun)
    f.defjvp(rule)
    return lambda x: jvp(jit(f), (x,), (x,))


def few_rules():
    f = custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda t, out, x, y: t)
    return jvp(f, (1.0, 1.0), (1.0, 1.0))


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: grad(pulled(fwd=lambda x: (x.sum(), x)))(A), ValueError,
         "fwd of <lambda> must return an output of the function's type; got f32[] where the "
         "function gives f32[3]."),
        (lambda: grad(pulled(fwd=lambda x: (x.astype(int), x)))(A), TypeError, "got i32[3] where"),
        (lambda: grad(pulled(fwd=lambda x: (x, "abc")))(A), TypeError,
         "residuals must be arrays or numbers; got 'abc' of type str at residuals of <lambda>"),
        (lambda: grad(pulled(bwd=lambda x, ct: (ct * 1j,)))(A), TypeError,
         "got c64[3] for argument 0, which is f32[3]"),
        (lambda: pushed(lambda p, t: ((p[0], p[0].sum()), (t[0], t[0].sum())))(A), ValueError,
         "got f32[] where the function gives f32[3] at output[1]."),
        (lambda: pushed(lambda p, t: ((p[0], p[0]), (t[0], t[0].astype(jnp.int8))))(A), TypeError,
         "must have the type of its output; got i8[3] for an output f32[3] at output[1]."),
        (few_rules, ValueError, "one rule for each argument of <lambda>; got 1 for 2. Hint: None"),
        (lambda: custom_jvp(jnp.sin, nondiff_argnames="z"), ValueError,
         "nondiff_argnames must name arguments of sin; got 'z'."),
        (lambda: with_rule(custom_jvp(lambda x: x, nondiff_argnums=3))(1.0), ValueError,
         "nondiff_argnums must be positions of arguments of <lambda>, called with 1; got 3."),
        (lambda: with_rule(custom_jvp(max))(x=1.0), TypeError, "max: must have a signature"),
        (lambda: jvp(pulled(), (A,), (A,)), TypeError, "Hint: give it one with <lambda>.defjvp("),
        (lambda: custom_jvp(max)(1.0), AttributeError, "the derivative rule of max must be set"),
        (lambda: custom_vjp(max)(1.0), AttributeError, "Hint: max.defvjp("),
        (lambda: custom_jvp(3), TypeError, "custom_jvp: "),
        (lambda: custom_vjp(A).defvjp(1, 2), TypeError, "custom_vjp: "),
        (lambda: custom_vjp(max).defvjp(max, 2), TypeError, "defvjp: "),
        (lambda: with_rule(custom_jvp(lambda x: x))(1.0, 2.0), TypeError, "too many positional"),
        (lambda: with_rule(custom_jvp(lambda x, *, k: x))(1.0, k=2), TypeError,
         "keyword-only arguments have no place in its rules; got k. Hint: make them positional."),
        (lambda: custom_jvp(lambda x: x, nondiff_argnums=0).defjvps(None), TypeError,
         "the function must have no nondiff_argnums; got (0,). Hint: use defjvp."),
        (lambda: pushed(lambda p, t: p[0])(A), TypeError, "must return a pair (output, tangent)"),
        (lambda: pushed(lambda p, t: ((p[0], p[0]), t[0]))(A), TypeError,
         "must return an output and a tangent of one structure; got PyTreeDef((*, *)) and"),
        (lambda: pushed(lambda p, t: (p[0], t[0]))(A), TypeError,
         "must return an output of the function's structure; got PyTreeDef(*) where"),
        (lambda: pushed(lambda p, t: ((p[0], "a"), (t[0], t[0])))(A), TypeError,
         "results must be arrays or numbers; got 'a' of type str at the output at output[1] of"),
        (lambda: grad(pulled(fwd=lambda x: (x, x, x)))(A), TypeError, "got tuple"),
        (lambda: grad(pulled(fwd=lambda x: x[:2]))(A), TypeError, "must return a pair"),
        (lambda: pushed(lambda p, t: (p[0], p[0], t[0]))(A), TypeError, "must return a pair (o"),
        (lambda: pushed(lambda p, t: p[0][:2])(A), TypeError, "must return a pair (o"),
        (lambda: grad(pulled(fwd=lambda x: x))(A), TypeError, "must return a pair (output, resid"),
        (lambda: grad(pulled(bwd=lambda x, ct: ct))(A), TypeError,
         "must return a tuple with one cotangent for each of 1 arguments; got "),
        (lambda: grad(pulled(bwd=lambda x, ct: (ct, ct)))(A), TypeError, "1 arguments; got 2."),
        (lambda: grad(pulled(bwd=lambda x, ct: ([ct],)))(A), TypeError,
         "the argument's structure; got a leaf at argument 0 where its cotangent has"),
        (lambda: grad(pulled(bwd=lambda x, ct: (ct[:1],)))(A), (TypeError, ValueError),
         "for argument 0, which is f32[3]"),
    ],
)  # fmt: skip
def test_what_they_refuse(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


def test_rules_argument_by_argument():
    f = custom_jvp(lambda x, n, y: (x * y, n))
    f.defjvps(lambda t, out, x, n, y: (t * y, np.zeros((), float0)), None, None)
    out, dots = jvp(f, (2.0, 3, 5.0), (1.0, np.zeros((), float0), 1.0))
    assert out == (10, 3) and dots[0] == 5 and dots[1].dtype == float0
    g = custom_jvp(lambda x, y: x * y)
    g.defjvps(lambda t, out, x, y: t * out, lambda t, out, x, y: t * x)
    assert jvp(g, (2.0, 5.0), (1.0, 3.0))[1] == 10 + 6
    none = custom_jvp(lambda x: (x, 2 * x))
    none.defjvps(None)
    assert jvp(none, (2.0,), (1.0,))[1] == (0, 0)


def test_cotangents_may_leave_out_what_is_zero():
    f = custom_vjp(lambda tree, y: tree["a"] * y + tree["b"][0])
    f.defvjp(lambda tree, y: (f(tree, y), y), lambda y, ct: ({"a": ct * y, "b": None}, None))
    tree = {"a": 2.0, "b": [3.0, 4.0]}
    grads = grad(f, argnums=(0, 1))(tree, 5.0)
    assert weft.tree.leaves(grads) == [5, 0, 0, 0]
    f.defvjp(lambda tree, y: (f(tree, y), y), lambda y, ct: (None, ct))
    assert weft.tree.leaves(grad(f, argnums=(0, 1))(tree, 5.0)) == [0, 0, 0, 1]


def test_stop_gradient_leaves_what_has_none():
    x = {"a": jnp.arange(2), "b": jnp.ones(2), "c": 3}
    out = lax.stop_gradient(x)
    assert out["a"] is x["a"] and out["c"] == 3 and (out["b"] == 1).all()
    assert "stop_gradient" not in str(make_jaxpr(lax.stop_gradient)(x["a"]))


def test_zeros_that_stand_for_types_are_equal_by_type():
    zero = cd.SymbolicZero(weft.typeof(A))
    assert zero == cd.SymbolicZero(weft.typeof(A)) and hash(zero) == hash(
        cd.SymbolicZero(zero.aval)
    )
    assert zero != cd.SymbolicZero(weft.typeof(A[:2])) and zero != weft.typeof(A) and zero != 0
    assert cd.SymbolicZero.from_primal_value(np.int32(1)).dtype == float0
    assert repr(zero) == "SymbolicZero(f32[3])" and (zero.shape, zero.ndim, zero.size) == (
        (3,),
        1,
        3,
    )


def with_rule(f):
    f.defjvp(lambda p, t: (p[0], t[0]))
    return f


def test_what_says_whether_a_value_is_perturbed_is_a_leaf():
    """A rule can therefore map over trees of such values; zeros can be made from trees, too."""
    seen = []
    f = weft.custom_vjp(lambda x: x["a"])

    def fwd(x):
        seen.append(weft.tree.map(lambda p: p.perturbed, x))
        return x["a"].value, None

    f.defvjp(fwd, lambda _, ct: ({"a": ct, "b": jnp.zeros(())},), symbolic_zeros=True)
    assert weft.grad(lambda a: f({"a": a, "b": 1.0}))(2.0) == 1
    assert seen == [{"a": True, "b": False}]
    zero = weft.custom_derivatives.zero_from_primal({"a": jnp.ones(2), "b": (1.0,)})
    assert zero["a"].tolist() == [0, 0] and zero["b"][0] == 0
    symbols = weft.custom_derivatives.zero_from_primal((1.0, 2), symbolic_zeros=True)
    assert [type(s).__name__ for s in symbols] == ["SymbolicZero"] * 2


def test_bwd_takes_arrays_and_may_give_one_for_a_whole_subtree():
    seen = []
    f = weft.custom_vjp(lambda p: (p["a"][0] * p["a"][1], 1.0))
    f.defvjp(lambda p: (f(p), None), lambda _, cts: (seen.extend(cts), ({"a": cts[0] * 3},))[1])
    for take in (grad, lambda g: weft.jit(grad(g))):
        assert take(lambda p: f(p)[0])({"a": (2.0, 5.0)}) == {"a": (3.0, 3.0)}
    assert all(ct.shape == () and isinstance(ct, weft.Array) for ct in seen) and len(seen) == 4


def test_an_argument_by_name_after_one_left_out():
    @functools.partial(weft.custom_jvp, nondiff_argnums=(2,))
    def f(x, y=2.0, negate=False):
        return -x * y if negate else x * y

    @f.defjvp
    def rule(negate, primals, tangents):
        return f(*primals, negate), 10 * tangents[0]

    assert f(3.0, negate=True) == -6 and weft.grad(lambda x: f(x, negate=True))(3.0) == 10


def test_a_cotangent_of_none_reaches_the_rule_before():
    """Rules may give more than derivatives, as scales of 8-bit floats: each is run."""
    note = weft.custom_vjp(lambda x, state: x)
    note.defvjp(lambda x, state: (x, state + 1), lambda state, ct: (ct, state))
    stop = weft.custom_vjp(lambda x: x * 2)
    stop.defvjp(lambda x: (x * 2, None), lambda _, ct: (None,))
    loss = lambda x, state: stop(-note(x, state)) + x
    for take in (grad, lambda g, argnums: weft.jit(grad(g, argnums))):
        assert take(loss, (0, 1))(1.0, 2.0) == (1, 3)
    narrow = weft.custom_vjp(lambda x: x.astype(jnp.float32))
    narrow.defvjp(lambda x: (x.astype(jnp.float32), None), lambda _, ct: (None,))
    assert grad(lambda x: narrow(x.astype(jnp.float8_e4m3fn)) + x)(1.0) == 1
