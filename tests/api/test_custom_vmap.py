"""weft.custom_batching: vmap uses the rule, under every transformation; errors."""

import copy

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import checkpoint, grad, jit, jvp, lax, linearize, make_jaxpr, vmap
from weft.custom_batching import custom_vmap, sequential_vmap

A = np.array([0.0, 1.0, 2.0], np.float32)


@pytest.fixture(autouse=True)
def checked():
    """Every program that a pass makes is checked."""
    with weft.enable_checks(True):
        yield


def ruled(rule=lambda size, batched, x: (jnp.cos(x), batched[0]), fun=jnp.sin):
    """sin, said to be cos where it is mapped."""
    f = custom_vmap(fun)
    f.def_vmap(rule)
    return f


@pytest.mark.parametrize(
    "program, want",
    [
        (lambda f: f, np.sin(A)),
        (lambda f: vmap(f), np.cos(A)),
        (lambda f: jit(vmap(jit(f))), np.cos(A)),
        (lambda f: lambda x: vmap(vmap(f))(x[None])[0], np.cos(A)),
        (lambda f: lambda x: vmap(f, in_axes=1)(x[None])[:, 0], np.cos(A)),
        (lambda f: vmap(grad(f)), np.cos(A)),
        (lambda f: jit(grad(lambda x: vmap(f)(x).sum())), -np.sin(A)),
        (lambda f: grad(lambda x: vmap(jit(f))(x).sum()), -np.sin(A)),
        (lambda f: lambda x: jvp(f, (x,), (x,))[1], A * np.cos(A)),
        (lambda f: vmap(lambda x: jvp(f, (x,), (x,))[0]), np.cos(A)),
        (lambda f: jit(vmap(lambda x: jvp(jit(f), (x,), (x,))[1])), -A * np.sin(A)),
        (lambda f: lambda x: linearize(vmap(f), x)[1](x), -A * np.sin(A)),
        (lambda f: lambda x: vmap(lambda t: jvp(f, (1.0,), (t,))[1])(x), -A * np.sin(1.0)),
        (lambda f: lambda x: vmap(lambda x: jvp(f, (x,), (1.0,))[1])(x), -np.sin(A)),
        (lambda f: vmap(grad(grad(f))), -np.sin(A)),
        (lambda f: vmap(weft.hessian(f)), -np.sin(A)),
        (lambda f: vmap(weft.value_and_grad(f)), (np.cos(A), np.cos(A))),
        (lambda f: vmap(checkpoint(f)), np.cos(A)),
        (lambda f: vmap(grad(checkpoint(f))), np.cos(A)),
        (lambda f: vmap(lambda x: lax.scan(lambda c, _: (f(c), 0), x, None, length=2)[0]),
         np.cos(np.cos(A))),
        (lambda f: lambda x: lax.scan(lambda c, _: (vmap(f)(c), 0), x, None, length=2)[0],
         np.cos(np.cos(A))),
        (lambda f: lambda x: lax.map(f, x), np.sin(A)),
    ],
)  # fmt: skip
def test_vmap_uses_the_rule(program, want):
    np.testing.assert_allclose(program(ruled())(A), want, rtol=1e-5, atol=1e-6)


def test_what_the_rule_is_given():
    calls = []

    def rule(size, batched, d, y):
        calls.append((size, batched, d["a"].shape, jnp.shape(d["b"])))
        return {"o": d["a"] + d["b"] + y}, {"o": True}

    f = ruled(rule, lambda d, y=1.0: {"o": d["a"] + d["b"] + y})
    out = vmap(f, in_axes=({"a": 1, "b": None},))({"a": np.ones((2, 3), np.float32), "b": A[:2]})
    np.testing.assert_array_equal(out["o"], np.tile(2 + A[:2], (3, 1)))
    assert calls == [(3, [{"a": True, "b": False}, False], (3, 2), (2,))]
    assert float(f({"a": 1.0, "b": 2.0}, y=3.0)["o"]) == 6.0


def test_a_result_that_is_not_mapped_stays_so():
    f = ruled(lambda size, batched, x: ((jnp.float32(7.0), x), (False, True)), lambda x: (x, x))
    first, second = vmap(f, out_axes=(None, 0))(A)
    assert float(first) == 7.0
    np.testing.assert_array_equal(second, A)
    np.testing.assert_array_equal(vmap(f)(A)[0], [7, 7, 7])


def test_derivatives_of_arguments_some_of_which_are_mapped():
    f = ruled(lambda size, batched, x, y: (x * y * 10, True), lambda x, y: x * y)
    np.testing.assert_array_equal(vmap(grad(f), (0, None))(A, 3.0), [3, 3, 3])
    np.testing.assert_array_equal(vmap(grad(f, 1), (0, None))(A, 3.0), A)
    total = lambda x, y: vmap(f, (0, None))(x, y).sum()
    np.testing.assert_array_equal(grad(total)(A, 3.0), [30, 30, 30])
    assert float(jit(grad(total, 1))(A, 3.0)) == 30.0


def test_it_may_close_over_values_that_are_not_mapped():
    def outer(y):
        f = ruled(lambda size, batched, x: (x * y * 10, True), lambda x: x * y)
        return vmap(jit(f))(A).sum()

    assert float(outer(2.0)) == float(jit(outer)(2.0)) == float(jit(jit(outer))(2.0)) == 60.0
    assert float(grad(outer)(2.0)) == float(jit(grad(outer))(2.0)) == 30.0
    one = lambda y: ruled(fun=lambda x: x * y)(3.0)
    assert float(grad(one)(2.0)) == 3.0


def test_integers_have_no_derivative():
    f = ruled(lambda size, batched, x, i: (x * i, True), lambda x, i: x * i)
    np.testing.assert_array_equal(vmap(grad(f))(A, np.arange(3)), [0, 1, 2])
    np.testing.assert_array_equal(grad(lambda x: vmap(f)(x, np.arange(3)).sum())(A), [0, 1, 2])


def test_it_stands_in_the_program():
    (eqn,) = make_jaxpr(ruled())(1.0).eqns
    assert eqn.primitive.name == "custom_vmap_call"
    (eqn,) = make_jaxpr(vmap(ruled()))(A).eqns
    assert eqn.primitive.name == "cos"


def test_calls_outside_jit_compile_once():
    f = ruled()
    f(A)
    programs = lambda: len(weft.api.programs.programs_of(jnp.sin))
    before = programs()
    f(A)
    assert programs() == before


def test_sequential_vmap():
    f = sequential_vmap(jnp.sin)
    np.testing.assert_allclose(vmap(f)(A), np.sin(A), rtol=1e-6)
    assert [e.primitive.name for e in make_jaxpr(vmap(f))(A).eqns] == ["scan"]
    np.testing.assert_allclose(jit(vmap(vmap(f)))(A[None]), np.sin(A[None]), rtol=1e-6)
    np.testing.assert_allclose(vmap(grad(f))(A), np.cos(A), rtol=1e-5)
    np.testing.assert_allclose(grad(lambda x: vmap(f)(x).sum())(A), np.cos(A), rtol=1e-5)
    g = sequential_vmap(lambda x, d: {"o": x * d["w"]})
    out = vmap(g, (0, None))(A, {"w": 2.0})
    np.testing.assert_array_equal(out["o"], 2 * A)


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: custom_vmap(jnp.sin)(1.0), AttributeError,
         "the batching rule of sin must be set before a call. Hint: sin.def_vmap(rule)."),
        (lambda: vmap(ruled(lambda n, b, x: x))(A), TypeError, "must return a pair (out, out_b"),
        (lambda: vmap(ruled(lambda n, b, x: (x, (True, True))))(A), TypeError,
         "must return out_batched of the output's structure; got PyTreeDef((*, *)) for"),
        (lambda: vmap(ruled(lambda n, b, x: ((x, x), (True, True))))(A), TypeError,
         "an output of the function's structure; got PyTreeDef((*, *)) where"),
        (lambda: vmap(ruled(lambda n, b, x: (jnp.ones(5), True)))(A), ValueError,
         "mapped over 3; got f32[5] for out, which is mapped and must be f32[3]."),
        (lambda: vmap(ruled(lambda n, b, x: (x, False)))(A), ValueError,
         "got f32[3] for out, which is unmapped and must be f32[]."),
        (lambda: vmap(ruled(lambda n, b, x: ([x.astype(int)], [True]), lambda x: [x]))(A),
         TypeError, "got i32[3] for out[0], which is mapped and must be f32[3]."),
        (lambda: vmap(ruled(lambda n, b, x: ("a", True)))(A), TypeError, "at out of the rule of"),
        (lambda: vmap(lambda y: ruled(fun=lambda x: x * y)(1.0))(A), TypeError,
         "must not close over values that are mapped. Hint: pass them as arguments."),
        (lambda: vmap(lambda y: ruled(lambda n, b, x: (x * y, True))(y))(A), TypeError,
         "must not close over values that are mapped."),
        (lambda: ruled(fun=lambda x, *, y=2.0: x)(1.0, y=3.0), TypeError, "keyword-only arguments"),
        (lambda: custom_vmap(3.0), TypeError, "custom_vmap: needs a function"),
        (lambda: custom_vmap(jnp.sin).def_vmap(None), TypeError, "def_vmap: needs a function"),
    ],
)  # fmt: skip
def test_what_they_refuse(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


def test_a_method_and_a_copy():
    class Scaled:
        double = custom_vmap(lambda self, x: 2 * x)
        double.def_vmap(lambda size, batched, self, x: (2 * x, batched[1]))

    assert Scaled.double is vars(Scaled)["double"]
    bound = vars(Scaled)["double"].__get__(5.0)
    assert bound.args == (5.0,) and bound.func is Scaled.double and bound(3.0) == 6.0
    again = copy.copy(Scaled.double)
    assert again is not Scaled.double and again(0.0, 3.0) == 6.0
    assert copy.copy(plain) is plain and repr(plain) == "custom_vmap(sin)"


plain = custom_vmap(jnp.sin)
plain.__module__, plain.__qualname__ = __name__, "plain"


# --- derivatives of mapped calls --------------------------------------------------------------


def cosine(log):
    """Return sin, or cos where it is mapped; `log` gets the arguments of the rule."""
    f = custom_vmap(jnp.sin)

    @f.def_vmap
    def rule(size, batched, x):
        log.append(batched[0])
        return jnp.cos(x), batched[0]

    return f


MAPPED_TANGENTS = {  # the transformation, and the values that are mapped along with their tangents
    "both": (lambda f, x: vmap(lambda x, t: weft.jvp(f, (x,), (t,)))(x, x), [True]),
    "tangents": (
        lambda f, x: vmap(lambda t: weft.jvp(f, (x,), (t,)), out_axes=(None, 0))(jnp.stack([x, x])),
        [False],
    ),
    "values": (lambda f, x: vmap(lambda x: weft.jvp(f, (x,), (jnp.float32(2),)))(x), [False]),
    "jacfwd": (lambda f, x: weft.jacfwd(f)(x), [False]),
    "jacfwd of jit": (lambda f, x: weft.jacfwd(weft.jit(f))(x), [False]),
    "jit of jacfwd": (lambda f, x: weft.jit(weft.jacfwd(f))(x), [False]),
    "linearize": (lambda f, x: vmap(weft.linearize(f, x)[1])(jnp.stack([x, x])), [False]),
    "jacfwd of vmap": (lambda f, x: weft.jacfwd(vmap(f))(x), [True]),
    "jvp of vmap": (lambda f, x: weft.jvp(vmap(f), (x,), (x,)), [True]),
}


@pytest.mark.parametrize("name", MAPPED_TANGENTS)
def test_derivatives_of_calls_that_are_mapped(name):
    """They are the rule's; the rule knows which values are mapped along with their tangents."""
    transformed, told = MAPPED_TANGENTS[name]
    x, log = jnp.array([0.3, 0.7, 1.1]), []
    found, want = transformed(cosine(log), x), transformed(jnp.cos, x)
    assert log == told
    for y, z in zip(weft.tree.leaves(found), weft.tree.leaves(want), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-6)


MAPPED_RESULTS = {  # rules that say of every result that it is mapped
    "shape of the operand": lambda size, x: jnp.sin(x),
    "shape with the axis": lambda size, x: jnp.broadcast_to(jnp.sin(x), (size, *jnp.shape(x)[:0])),
}


@pytest.mark.parametrize("kind", MAPPED_RESULTS)
@pytest.mark.parametrize("value, tangent", [(0, 0), (0, None), (None, 0)])
def test_rules_that_always_say_mapped(kind, value, tangent):
    """A derivative calls the rule with no mapped operand where a value or its tangent is not."""
    x = jnp.array([0.3, 0.7, 1.1])
    f = custom_vmap(jnp.sin)
    f.def_vmap(lambda size, batched, x: (MAPPED_RESULTS[kind](size, x), True))
    args = [x[0] if axis is None else x for axis in (value, tangent)]
    for made in (
        lambda f: lambda x, t: weft.jvp(f, (x,), (t,)),
        lambda f: lambda x, t: weft.linearize(f, x)[1](t),
        lambda f: lambda x, t: weft.jvp(lambda x: weft.jvp(f, (x,), (t,))[1], (x,), (t,)),
        lambda f: lambda x, t: weft.jacfwd(f)(x) * t,
    ):
        found, want = (vmap(made(g), in_axes=(value, tangent))(*args) for g in (f, jnp.sin))
        for y, z in zip(weft.tree.leaves(found), weft.tree.leaves(want), strict=True):
            np.testing.assert_allclose(y, z, rtol=1e-6)


def test_sequential_vmap_where_only_tangents_are_mapped():
    f = weft.custom_batching.sequential_vmap(jnp.sin)
    np.testing.assert_allclose(weft.jacfwd(f)(0.3), jnp.cos(0.3), rtol=1e-6)
    x = jnp.array([0.3, 0.7])
    out = vmap(lambda t: weft.jvp(f, (x[0],), (t,))[1])(x)
    np.testing.assert_allclose(out, jnp.cos(0.3) * x, rtol=1e-6)


def test_reverse_mode_is_that_of_the_function():
    """Cotangents are mapped, and not the call."""
    x, log = jnp.array([0.3, 0.7, 1.1]), []
    f = cosine(log)
    np.testing.assert_allclose(weft.jacrev(f)(x), weft.jacrev(jnp.sin)(x), rtol=1e-6)
    np.testing.assert_allclose(weft.grad(lambda x: f(x).sum())(x), jnp.cos(x), rtol=1e-6)
    assert not log


def test_a_call_beside_what_is_mapped():
    log = []
    f = cosine(log)
    np.testing.assert_allclose(vmap(lambda x: f(0.5) + x)(jnp.zeros(2)), jnp.sin(0.5))
    assert not log


def test_a_function_that_closes_over_an_array():
    table = jnp.arange(3.0)
    f = custom_vmap(lambda x: x + table)
    f.def_vmap(lambda size, batched, x: (x[:, None] + table * 10, True))
    for run in (lambda f: f, weft.jit):
        np.testing.assert_array_equal(run(f)(1.0), table + 1)
        np.testing.assert_array_equal(run(vmap(f))(jnp.ones(2)), jnp.stack([table * 10 + 1] * 2))


def test_a_custom_jvp_function_with_a_batching_rule():
    f = weft.custom_jvp(lambda x: x * 2)
    g = custom_vmap(f)
    g.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 7))
    g.def_vmap(lambda size, batched, x: (f(x) * 10, batched[0]))
    assert weft.grad(g)(1.0) == 7 and weft.jvp(g, (1.0,), (1.0,)) == (2, 7)
    x = jnp.ones(3)
    np.testing.assert_array_equal(vmap(g)(x), 20)
    np.testing.assert_array_equal(vmap(lambda x, t: weft.jvp(g, (x,), (t,)))(x, x)[1], 70)
    np.testing.assert_array_equal(weft.jvp(vmap(g), (x,), (x,))[1], 70)


def set_jvp(f):
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * 7))


def set_vjp(f):
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * 7,))


SETTERS = {weft.custom_jvp: set_jvp, weft.custom_vjp: set_vjp}


@pytest.mark.parametrize("outer", [*SETTERS])
@pytest.mark.parametrize("wrap", [lambda f: f, jit, checkpoint])
def test_rules_are_set_through_a_function_with_a_derivative(outer, wrap):
    """`@custom_jvp` above `@custom_vmap`, as libraries write it."""
    f = outer(ruled())
    f.def_vmap(lambda size, batched, x: (x * 100, batched[0]))
    SETTERS[outer](f)
    g = wrap(f)
    np.testing.assert_allclose(g(1.0), np.sin(1.0), rtol=1e-6)
    np.testing.assert_array_equal(vmap(g)(A), 100 * A)
    assert weft.grad(g)(1.0) == 7
    value, slope = vmap(weft.value_and_grad(g))(A)
    np.testing.assert_array_equal(value, 100 * A)
    np.testing.assert_array_equal(slope, 7)
    np.testing.assert_array_equal(grad(lambda x: vmap(g)(x).sum())(A), 7)


def test_names_that_set_rules_are_those_of_the_functions_within():
    both = weft.custom_vjp(weft.custom_jvp(custom_vmap(jnp.sin)))
    assert both.def_vmap == both.fun.fun.def_vmap and both.defjvps == both.fun.defjvps
    for f in (weft.custom_jvp(jnp.sin), both):
        with pytest.raises(AttributeError, match=f"{type(f).__name__}: has no attribute 'nothing'"):
            f.nothing
    with pytest.raises(AttributeError, match="custom_jvp: has no attribute 'def_vmap'"):
        weft.custom_jvp(jnp.sin).def_vmap
