"""custom_jvp and custom_vjp: that every transformation uses the rule, and what rules may not do."""

import functools

import numpy as np
import pytest

import weft
from weft import custom_jvp, custom_vjp, grad, jit, jvp, lax, make_jaxpr, vjp, vmap
from weft import numpy as jnp
from weft.control import custom
from weft.core.primitive import Zero
from weft.dtypes import float0

A = np.array([1.0, 2.0, 3.0], np.float32)
M = np.arange(6, dtype=np.float32).reshape(2, 3)


def total(x):
    return lax.reduce_sum(x, tuple(range(x.ndim)))


def forward(fun=lax.sin, rule=None, **options):
    """A custom_jvp function whose derivative is wrong on purpose: ten times the tangent."""
    f = custom_jvp(fun, **options)
    f.defjvp(rule or (lambda primals, tangents: (f(*primals), 10.0 * tangents[0])))
    return f


def backward(fun=lax.sin, fwd=None, bwd=None, **options):
    """A custom_vjp function whose pullback is wrong on purpose: ten x times the cotangent."""
    f = custom_vjp(fun, **options)
    f.defvjp(fwd or (lambda x: (f(x), x)), bwd or (lambda x, ct: (ct * 10.0 * x,)))
    return f


# --- the rule is used, whatever the order -------------------------------------------------------


@pytest.mark.parametrize(
    "reverse",
    [
        lambda f: grad(lambda x: total(f(x))),
        lambda f: jit(grad(lambda x: total(f(x)))),
        lambda f: grad(lambda x: total(jit(f)(x))),
        lambda f: lambda x: vjp(f, x)[1](np.ones(3, np.float32))[0],
        lambda f: vmap(grad(f)),
        lambda f: grad(lambda x: total(vmap(f)(x))),
        lambda f: grad(lambda x: total(jit(vmap(f))(x))),
        lambda f: jit(vmap(jit(grad(jit(f))))),
    ],
)
def test_reverse_mode_uses_the_rule(reverse):
    np.testing.assert_array_equal(reverse(forward())(A), [10, 10, 10])
    np.testing.assert_array_equal(reverse(backward())(A), 10 * A)


@pytest.mark.parametrize(
    "push",
    [
        lambda f: lambda x: jvp(f, (x,), (x,))[1],
        lambda f: jit(lambda x: jvp(f, (x,), (x,))[1]),
        lambda f: lambda x: jvp(jit(f), (x,), (x,))[1],
        lambda f: vmap(lambda x: jvp(f, (x,), (x,))[1]),
        lambda f: lambda x: jvp(vmap(f), (x,), (x,))[1],
        lambda f: lambda x: weft.linearize(f, x)[1](x),
    ],
)
def test_forward_mode_uses_the_rule(push):
    np.testing.assert_array_equal(push(forward())(A), 10 * A)


def test_higher_derivatives_are_those_of_the_rule():
    f = forward(rule=lambda p, t: (lax.sin(p[0]), t[0] * p[0] * p[0]))
    assert [float(g(3.0)) for g in (grad(f), grad(grad(f)), weft.hessian(f))] == [9.0, 6.0, 6.0]
    assert float(grad(grad(backward()))(3.0)) == 10.0
    assert float(weft.jacrev(weft.jacrev(backward()))(3.0)) == 10.0


def test_the_rule_is_not_used_where_nothing_is_differentiated():
    for f in (forward(), backward()):
        np.testing.assert_allclose(f(A), np.sin(A), rtol=1e-6)
        np.testing.assert_allclose(jit(vmap(f))(M), np.sin(M), rtol=1e-6)


def test_arguments_that_are_not_mapped():
    f = backward(
        lambda x, y: x * y, lambda x, y: (x * y, (x, y)), lambda s, ct: (ct * s[1], ct * s[0])
    )
    gx, gy = vmap(grad(f, (0, 1)), (None, 0))(2.0, A)
    np.testing.assert_array_equal(gx, A)
    np.testing.assert_array_equal(gy, [2, 2, 2])
    assert float(grad(lambda x: total(vmap(f, (None, 0))(x, A)))(2.0)) == 6.0
    g = forward(lambda x, y: x * y, lambda p, t: (p[0] * p[1], t[0] * p[1] * 2 + t[1] * p[0]))
    assert float(grad(lambda x: total(vmap(g, (None, 0))(x, A)))(2.0)) == 12.0


def test_it_stands_in_the_jaxpr_under_its_name():
    @custom_jvp
    def scaled(x):
        return x * 2

    scaled.defjvp(lambda p, t: (scaled(*p), t[0]))
    (eqn,) = make_jaxpr(scaled)(1.0).eqns
    assert eqn.primitive.name == "custom_jvp_call" and eqn.params["name"] == "scaled"


# --- arguments -----------------------------------------------------------------------------------


def test_defjvps():
    f = custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda t, out, x, y: 7 * t, None)
    assert [float(g) for g in grad(f, (0, 1))(1.0, 2.0)] == [7.0, 0.0]
    f.defjvps(lambda t, out, x, y: 7 * t, lambda t, out, x, y: t * out)
    assert [float(g) for g in grad(f, (0, 1))(1.0, 2.0)] == [7.0, 2.0]
    f.defjvps(None, None)
    assert float(grad(f)(1.0, 2.0)) == 0.0


def test_nondiff_arguments_of_custom_jvp():
    f = custom_jvp(lambda g, x: g(x), nondiff_argnums=(0,))
    f.defjvp(lambda g, p, t: (f(g, *p), 3.0 * t[0]))
    assert float(grad(f, 1)(lax.sin, 1.0)) == float(jit(lambda x: grad(f, 1)(lax.sin, x))(1.0)) == 3
    np.testing.assert_allclose(vmap(lambda x: f(lax.sin, x))(A), np.sin(A), rtol=1e-6)
    h = custom_jvp(lambda x, n: x**n, nondiff_argnums=1)
    h.defjvp(lambda n, p, t: (h(p[0], n), n * t[0]))
    assert float(jit(grad(h), static_argnums=1)(2.0, 3)) == 3.0


@pytest.mark.parametrize("options", [{"nondiff_argnums": (1,)}, {"nondiff_argnames": "n"}])
def test_nondiff_arguments_of_custom_vjp(options):
    f = custom_vjp(lambda x, n: x**n, **options)
    f.defvjp(lambda x, n: (x**n, x), lambda n, x, ct: (ct * n * x,))
    assert float(f(2.0, 3)) == 8.0
    assert float(grad(f)(2.0, 3)) == float(grad(f)(2.0, n=3)) == 6.0
    np.testing.assert_array_equal(vmap(grad(f), (0, None))(A, 3), 3 * A)


def test_defaults_and_keywords_go_by_position():
    f = backward(lambda x, y=3.0: x * y, lambda x, y: (x * y, y), lambda y, ct: (ct * y, None))
    assert float(f(2.0)) == 6.0 and float(f(2.0, y=5.0)) == float(f(y=5.0, x=2.0)) == 10.0
    assert float(grad(f)(2.0)) == 3.0 and float(grad(lambda x: f(x, y=5.0))(2.0)) == 5.0
    g = forward(lambda *xs: xs[0] * xs[1], lambda p, t: (p[0] * p[1], t[0]))
    assert float(grad(g)(2.0, 3.0)) == 1.0


def test_pytrees_in_and_out():
    f = backward(
        lambda p: {"o": p["a"] * p["b"]},
        lambda p: (f(p), p),
        lambda p, ct: ({"a": ct["o"] * 2, "b": None},),
    )
    for transform in (lambda g: g, jit):
        got = transform(grad(lambda p: total(f(p)["o"])))({"a": A, "b": A})
        np.testing.assert_array_equal(got["a"], [2, 2, 2])
        np.testing.assert_array_equal(got["b"], [0, 0, 0])
    g = forward(lambda x: (x, [x]), lambda p, t: ((p[0], [p[0]]), (t[0], [2 * t[0]])))
    _, (dx, [dy]) = jvp(g, (1.0,), (1.0,))
    assert (float(dx), float(dy)) == (1.0, 2.0)


def test_residuals_may_be_any_pytree():
    f = backward(
        fwd=lambda x: (lax.sin(x), {"a": A, "none": None, "rest": [x, 3]}),
        bwd=lambda s, ct: (ct * s["a"] * s["rest"][1],),
    )
    np.testing.assert_array_equal(grad(lambda x: total(f(x)))(A), 3 * A)
    np.testing.assert_array_equal(jit(grad(jit(lambda x: total(f(x)))))(A), 3 * A)


TABLE = weft.device_put(A)


@pytest.mark.parametrize(
    "f",
    [
        backward(fwd=lambda x: (lax.sin(x), None), bwd=lambda _, ct: (ct * TABLE,)),
        forward(rule=lambda p, t: (lax.sin(p[0]), t[0] * TABLE)),
    ],
)
def test_arrays_that_rules_close_over_are_written_into_programs(f):
    loss = jit(lambda x: total(f(x)))
    for transformed in (grad(loss), jit(grad(loss)), grad(jit(jit(loss)))):
        np.testing.assert_array_equal(transformed(A), A)
    got = vmap(grad(jit(lambda x: total(jit(f)(x)))))(M)
    np.testing.assert_array_equal(got, np.stack([A, A]))


def twice_of(y, kind):
    """Return 2x, with a rule that gives the derivative y; the rules close over y."""
    if kind == "jvp":
        return forward(lambda x: x * 2, lambda p, t: (p[0] * 2, t[0] * jit(lambda q: q * y)(1.0)))
    return backward(lambda x: x * 2, lambda x: (x * 2, y), lambda r, ct: (ct * (r + y) / 2,))


def sums(f):
    return lambda xs: total(f(xs))


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
@pytest.mark.parametrize(
    "program, want",
    [
        (lambda f: grad(lambda y: f(y)(2.0))(3.0), 0.0),
        (lambda f: grad(lambda y: f(y)(y))(3.0), 3.0),
        (lambda f: grad(lambda y: grad(f(y))(y))(3.0), 1.0),
        (lambda f: grad(jit(lambda y: grad(jit(f(y)))(y)))(3.0), 1.0),
        (lambda f: jit(lambda y: grad(jit(f(y)))(2.0))(3.0), 3.0),
        (lambda f: grad(jit(jit(lambda x: f(lax.stop_gradient(lax.sin(x)))(x))))(3.0), np.sin(3.0)),
        (lambda f: grad(lambda y: jit(f(y))(2.0))(3.0), 0.0),
        (lambda f: jit(vmap(lambda y: grad(jit(f(y)))(2.0)))(A), A),
        (lambda f: grad(sums(lambda x: vmap(lambda y, z: f(y)(z))(A, x)))(A), A),
        (lambda f: grad(sums(lambda x: vmap(lambda y: f(y)(x))(A)))(1.0), 6.0),
        (lambda f: grad(lambda x: lax.scan(lambda c, y: (f(y)(c), None), x, A)[0])(1.0), 6.0),
        (lambda f: jit(vmap(lambda y: grad(lambda x: lax.scan(
            lambda c, _: (f(y)(c), None), x, None, length=3)[0])(1.0)))(A), A**3),
        (lambda f: grad(lambda x: lax.cond(x > 0, f(lax.stop_gradient(x)), lax.sin, x))(3.0), 3.0),
    ],
)  # fmt: skip
def test_rules_that_close_over_traced_values(kind, program, want):
    np.testing.assert_allclose(program(lambda y: twice_of(y, kind)), want, rtol=1e-6)


def test_what_rules_close_over_is_found_in_objects_and_returned_as_it_is():
    class Scale:
        def __init__(self, y):
            self.inner = {"y": [y]}

        def pull(self, residuals, ct):
            return (self.inner["y"][0],)

    def outer(y):
        f = backward(fwd=lambda x: (x, y), bwd=Scale(y).pull)
        return grad(jit(f))(2.0)

    assert float(jit(outer)(3.0)) == float(grad(jit(outer))(3.0)) + 2.0 == 3.0


HIDDEN = {}  # where the search for what rules close over does not look


@pytest.mark.parametrize(
    "transform, inner, x, text",
    [
        (jit, lambda f: grad(jit(f)), 3.0, "a rule in a staged program must not close over traced"),
        (grad, lambda f: f, 3.0, "used outside of its transformation, as in a custom rule"),
        (vmap, lambda f: f, A, "used outside of its transformation, as in a custom rule"),
    ],
)
def test_traced_values_hidden_from_the_search_are_an_error(transform, inner, x, text):
    f = custom_vjp(lambda x: x * HIDDEN["y"])
    f.defvjp(lambda x: (x, None), lambda _, ct: (ct * HIDDEN["y"],))

    def outer(y):
        HIDDEN["y"] = y
        return inner(f)(2.0)

    with pytest.raises(weft.errors.UnexpectedTracerError) as caught:
        transform(outer)(x)
    assert text in str(caught.value) and "Hint: pass it to the function" in str(caught.value)


def test_integer_arguments_and_results():
    f = backward(lambda x, i: x * i, lambda x, i: (x * i, i), lambda i, ct: (ct * i, None))
    g = backward(
        lambda x, i: x * i, lambda x, i: (x * i, i), lambda i, ct: (ct * i, np.zeros((), float0))
    )
    for h in (f, g):
        assert float(grad(h)(1.0, 2)) == float(jit(grad(h))(1.0, 2)) == 2.0
    np.testing.assert_array_equal(vmap(grad(f))(A, np.arange(3)), [0, 1, 2])
    rule = lambda p, t: (p[0] * p[1], t[0] * (3 if t[1].dtype == float0 else 5))
    assert float(grad(forward(lambda x, i: x * i, rule))(1.0, 2)) == 3.0
    pair = forward(lambda x: (x, 3), lambda p, t: ((p[0], 3), (t[0] * 2, np.zeros((), float0))))
    _, (dx, di) = jvp(pair, (1.0,), (1.0,))
    assert float(dx) == 2.0 and di.dtype == float0
    np.testing.assert_array_equal(vmap(lambda x: jvp(pair, (x,), (x,))[1][0])(A), 2 * A)


def test_python_control_flow_on_values():
    f = backward(
        lambda x: x * 2 if x > 0 else x,
        lambda x: ((x * 2 if x > 0 else x), x),
        lambda x, ct: (ct * 5 if x > 0 else ct,),
    )
    assert [float(grad(f)(x)) for x in (1.0, -1.0)] == [5.0, 1.0]
    g = forward(
        lambda x: x * 2 if x > 0 else x, lambda p, t: (g(*p), t[0] * (5 if p[0] > 0 else 1))
    )
    assert [float(grad(g)(x)) for x in (1.0, -1.0)] == [5.0, 1.0]


def test_values_closed_over():
    def outer(y):
        f = backward(lambda x: x * y, lambda x: (x * y, None), lambda _, ct: (ct * 100.0,))
        return grad(f)(2.0) * y

    assert float(outer(3.0)) == float(jit(outer)(3.0)) == 300.0
    np.testing.assert_array_equal(vmap(outer)(A), 100 * A)


def test_methods():
    class Layer:
        def __init__(self, scale):
            self.scale = scale

        @functools.partial(custom_jvp, nondiff_argnums=(0,))
        def f(self, x):
            return x * self.scale

        @f.defjvp
        def f_jvp(self, primals, tangents):
            return self.f(*primals), tangents[0] * self.scale * 2

    assert float(grad(Layer(3.0).f)(1.0)) == 6.0


def test_stop_gradient_takes_pytrees():
    assert float(grad(lambda x: x * lax.stop_gradient(x))(2.0)) == 2.0
    value, dot = jvp(lambda x: lax.stop_gradient({"a": x, "i": 1}), (2.0,), (1.0,))
    assert float(value["a"]) == 2.0 and float(dot["a"]) == 0.0 and dot["i"].dtype == float0
    np.testing.assert_array_equal(vmap(grad(lambda x: lax.stop_gradient(x) * x))(A), A)
    np.testing.assert_array_equal(grad(jit(lambda x: total(lax.stop_gradient(x) * x)))(A), A)


# --- what rules may not do ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: custom_jvp(lax.sin)(1.0), AttributeError, "must be set before a call. Hint:"),
        (lambda: custom_vjp(lax.sin)(1.0), AttributeError, "must be set before a call. Hint:"),
        (lambda: jvp(backward(), (1.0,), (1.0,)), TypeError, "no forward-mode derivative"),
        (lambda: weft.jacfwd(backward())(1.0), TypeError, "no forward-mode derivative"),
        (lambda: grad(backward(fwd=lambda x: x))(1.0), TypeError, "a pair (output, residuals)"),
        (lambda: grad(jit(backward(fwd=lambda x: ((x, x), x))))(1.0), TypeError, "function's str"),
        (lambda: grad(backward(bwd=lambda s, ct: ct))(1.0), TypeError, "a tuple with one"),
        (lambda: grad(backward(bwd=lambda s, ct: (ct, ct)))(1.0), TypeError, "got 2"),
        (lambda: grad(backward(bwd=lambda s, ct: ({"a": ct},)))(1.0), TypeError, "structure"),
        (lambda: grad(lambda x: total(backward(bwd=lambda s, ct: (total(ct),))(x)))(A),
         ValueError, "got f32[] for argument 0, which is f32[3]"),
        (lambda: grad(forward(rule=lambda p, t: p[0]))(1.0), TypeError, "a pair (output, tangent)"),
        (lambda: grad(forward(rule=lambda p, t: (p[0], (t[0],))))(1.0), TypeError, "one structure"),
        (lambda: grad(jit(forward(rule=lambda p, t: ((p[0],), (t[0],)))))(1.0),
         TypeError, "function's structure"),
        (lambda: jvp(forward(rule=lambda p, t: (p[0], total(t[0]))), (A,), (A,)),
         TypeError, "got f32[] for an output f32[3]"),
        (lambda: forward(lambda x, *, y=3.0: x * y)(2.0, y=5.0), TypeError, "keyword-only"),
        (lambda: forward(lambda x, y=3.0: x * y)(2.0, z=5.0),
         TypeError, "<lambda>(x, y=3.0): got an unexpected keyword argument 'z'."),
        (lambda: custom_jvp(3.0), TypeError, "needs a function"),
    ],
)  # fmt: skip
def test_what_they_refuse(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


def test_a_value_closed_over_must_not_be_differentiated():
    def outer(y):
        f = forward(lambda x: x * y, lambda p, t: (p[0], t[0]))
        return jit(f)(2.0)

    for program in (grad(outer), grad(jit(outer)), jit(grad(outer))):
        with pytest.raises(TypeError, match="must not close over values that are differentiated"):
            program(3.0)
    # what the function uses of it has no derivative
    f = lambda y: forward(lambda x: x * len(y), lambda p, t: (p[0], t[0]))
    np.testing.assert_array_equal(grad(lambda y: f(y)(2.0))(A), np.zeros(3))
    np.testing.assert_array_equal(grad(lambda y: jit(f(y))(2.0))(A), np.zeros(3))


def test_axes_of_mapped_cotangents():
    """Axes move from the front to each place; sums; for zeros, the types."""
    ct = np.arange(120, dtype=np.float32).reshape(5, 2, 3, 4)
    for dim in range(4):
        want, zero = np.moveaxis(ct, 0, dim), Zero(weft.typeof(ct))
        np.testing.assert_array_equal(custom.move_ct_axis(ct, dim), want)
        assert custom.move_ct_axis(zero, dim).aval.shape == want.shape
        assert custom.unbatch_ct(zero).aval.shape == (2, 3, 4)
    np.testing.assert_array_equal(custom.unbatch_ct(ct), ct.sum(0))


@weft.custom_vjp
def scaled(ref, x):
    return ref[...] * x


@weft.custom_vjp
def stored(ref, x):
    ref[...] = 2 * x
    return x * x


def store_forward(ref, x):
    ref[...] = 3 * x
    return x * x, x


scaled.defvjp(lambda r, x: (r[...] * x, (r[...], x)), lambda res, g: (None, 5 * g * res[0]))
stored.defvjp(store_forward, lambda x, g: (None, 7 * g * x))

# Each makes a reference of 3 * x**0 in what is transformed: the derivatives are 15 and 7 * x.
TRANSFORMED = {
    "grad": weft.grad,
    "grad of jit": lambda f: weft.grad(weft.jit(f)),
    "jit of grad": lambda f: weft.jit(weft.grad(f)),
    "vmap of grad": lambda f: lambda x: weft.vmap(weft.grad(f))(jnp.stack([x, x]))[1],
    "grad of vmap": lambda f: weft.grad(lambda x: weft.vmap(f)(jnp.stack([x, x]))[1]),
    "checkpoint": lambda f: weft.grad(weft.checkpoint(f)),
    "vjp": lambda f: lambda x: weft.vjp(f, x)[1](jnp.float32(1))[0],
    "cond": lambda f: weft.grad(lambda x: weft.lax.cond(x > 0, f, f, x)),
    "scan": lambda f: weft.grad(lambda x: weft.lax.scan(lambda c, _: (c, f(x)), 0, None, 1)[1][0]),
}


@pytest.mark.parametrize("transformed", TRANSFORMED.values(), ids=TRANSFORMED)
def test_functions_with_rules_are_given_references_made_inside(transformed):
    def after(x):
        ref = weft.new_ref(jnp.float32(3))
        return stored(ref, x) + 0 * ref[...]

    x = jnp.float32(2)
    assert transformed(lambda x: scaled(weft.new_ref(jnp.float32(3)), x))(x) == 15
    assert transformed(lambda x: scaled(weft.new_ref(jnp.full(2, 3.0)).at[1], x))(x) == 15
    assert transformed(after)(x) == 14


def test_a_mapped_reference_is_given_to_a_function_with_rules():
    x = jnp.arange(3.0)
    assert (weft.vmap(lambda x: scaled(weft.new_ref(x), x))(x) == x * x).all()
