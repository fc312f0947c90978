"""custom_gradient, closure_convert and linear_call."""

import functools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import closure_convert, custom_gradient, custom_vjp, grad, jit, jvp, lax, vmap
from weft import custom_derivatives as cd

A = np.array([1.0, 2.0, 3.0], np.float32)


def squared(x):
    return x**2, lambda ct: ct * x


@pytest.mark.parametrize("around", [lambda f: f, jit, lambda f: jit(jit(f))])
def test_custom_gradient(around):
    f = around(custom_gradient(squared))
    assert [float(g(3.0)) for g in (f, grad(f), grad(grad(f)), jit(grad(f)))] == [9, 3, 1, 3]
    np.testing.assert_array_equal(vmap(grad(f))(A), A)
    np.testing.assert_array_equal(grad(lambda x: vmap(f)(x).sum())(A), A)
    twice = lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]
    assert float(grad(twice)(3.0)) == 27.0


def test_custom_gradient_takes_pytrees_and_keywords():
    @custom_gradient
    def f(p, n=2.0):
        return ({"o": p["a"] * n}, 3), lambda ct: ({"a": ct[0]["o"] * 7}, None)

    assert float(grad(lambda p: f(p, n=5.0)[0]["o"])({"a": 1.0})["a"]) == 7.0


# --- closure_convert ----------------------------------------------------------------------------


def test_closure_convert():
    def loss(y):
        converted, consts = closure_convert(lambda x: x * y + jnp.arange(3.0), A)
        assert len(consts) == isinstance(y, weft.core.Tracer)
        return converted(A, *consts).sum()

    assert float(loss(2.0)) == float(jit(loss)(2.0)) == 15.0
    assert float(grad(loss)(2.0)) == float(jit(grad(loss))(2.0)) == 6.0
    np.testing.assert_array_equal(vmap(grad(loss))(A), [6, 6, 6])


def test_closure_convert_makes_a_rule_that_takes_functions_differentiable():
    def apply(fun, x):
        converted, consts = closure_convert(fun, x)
        return called(converted, x, *consts)

    @functools.partial(custom_vjp, nondiff_argnums=0)
    def called(fun, x, *consts):
        return fun(x, *consts)

    def called_bwd(fun, residuals, ct):
        return tuple(weft.vjp(fun, *residuals)[1](ct))

    called.defvjp(lambda fun, x, *consts: (fun(x, *consts), (x, *consts)), called_bwd)
    f = lambda y: apply(lambda x: x * y, 5.0)
    assert float(grad(f)(2.0)) == float(jit(grad(jit(f)))(2.0)) == 5.0


# --- linear_call --------------------------------------------------------------------------------


def scaled(r, x):
    """r x, whose transpose is said to be ten times too large."""
    return cd.linear_call(lambda r, x: r * x, lambda r, ct: 10 * r * ct, r, x)


def test_linear_call():
    assert float(scaled(2.0, 3.0)) == float(jit(scaled)(2.0, 3.0)) == 6.0
    assert float(jvp(lambda x: scaled(2.0, x), (3.0,), (1.0,))[1]) == 2.0
    for f in (scaled, jit(scaled)):
        assert float(grad(f, 1)(2.0, 3.0)) == 20.0
        assert float(grad(f, 0)(2.0, 3.0)) == 3.0  # the residual has the function's derivative
    assert float(grad(lambda r: scaled(r, r))(2.0)) == 22.0
    assert float(grad(lambda r: grad(scaled, 1)(r, 3.0))(2.0)) == 10.0
    once = lambda ct: weft.linear_transpose(lambda x: scaled(2.0, x), 1.0)(ct)[0]
    assert [float(once(1.0)), float(weft.linear_transpose(once, 1.0)(1.0)[0])] == [20.0, 2.0]


def test_linear_call_mapped_and_closed():
    np.testing.assert_array_equal(vmap(scaled)(A, A), A * A)
    mapped = lambda dims: lambda r, x: vmap(scaled, dims)(r, x).sum()
    np.testing.assert_array_equal(grad(mapped((None, 0)), 1)(2.0, A), [20, 20, 20])
    assert float(jit(grad(mapped((0, None)), 1))(A, 2.0)) == 60.0

    def closed(y):
        f = lambda x: cd.linear_call(lambda r, x: y * x, lambda r, ct: 10 * ct * y, None, x)
        return grad(jit(f))(3.0)

    assert float(jit(closed)(2.0)) == 20.0
    assert float(grad(closed)(2.0)) == 10.0


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: custom_gradient(lambda x: x)(1.0), TypeError, "must return a pair (value, vjp f"),
        (lambda: grad(custom_gradient(lambda x: (x, lambda ct: (ct, ct))))(1.0), TypeError,
         "one cotangent for each of 1 arguments; got 2."),
        (lambda: closure_convert(lambda x: x, 1.0)[0]({"a": 1.0}), TypeError,
         "must be given arguments like the examples, then 0 consts; got"),
        (lambda: grad(lambda x: cd.linear_call(lambda r, x: x, lambda r, ct: [ct], 1.0, x))(1.0),
         TypeError, "the transpose of <lambda> must return what linear_args are like; got"),
        (lambda: grad(lambda x: cd.linear_call(lambda r, x: x, lambda r, ct: A, 1.0, x))(1.0),
         ValueError, "cotangents of the types of linear_args; got f32[3] where there is f32[]."),
        (lambda: custom_gradient(3.0), TypeError, "custom_gradient: needs a function"),
        (lambda: cd.linear_call(lambda r, x: x, None, 1.0, 1.0), TypeError, "linear_call: needs"),
    ],
)  # fmt: skip
def test_what_they_refuse(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)
