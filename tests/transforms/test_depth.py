"""Transformations within one another: the work grows slowly with the depth, and the values hold.

Work is how many Python functions a call enters: 2^d of them at depth d would show at depth 12.
"""

import sys

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, jit, jvp, lax, linearize, vjp

X = np.float32(0.3)
ONE = np.float32(1)


def with_rules(decorator, set_rules):
    """A function that is called within one that has rules of its own, which call it too."""

    def wrap(f):
        g = decorator(lambda x: f(x))
        set_rules(g, f)
        return g

    return wrap


DERIVATIVES = {
    "grad": grad,
    "vjp": lambda f: lambda x: vjp(f, x)[1](ONE)[0],
    "jvp": lambda f: lambda x: jvp(f, (x,), (ONE,))[1],
    "linearize": lambda f: lambda x: linearize(f, x)[1](ONE),
    "value_and_grad": lambda f: lambda x: weft.value_and_grad(f)(x)[1],
    "grad of jit": lambda f: jit(grad(f)),
    "grad of checkpoint": lambda f: weft.checkpoint(grad(f)),
}
VALUES = {  # of derivatives: nothing of theirs is used
    "value of linearize": lambda f: lambda x: linearize(f, x)[0],
    "value of vjp": lambda f: lambda x: vjp(f, x)[0],
}
OTHERS = {
    "jit": lambda f: jit(lambda x: f(x)),
    "checkpoint": lambda f: weft.checkpoint(lambda x: f(x)),
    "vmap": lambda f: lambda x: weft.vmap(f)(x[None])[0],
    "cond": lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    "while": lambda f: (
        lambda x: lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, f(c[1])), (0, x))[1]
    ),
    "custom_vjp": with_rules(
        weft.custom_vjp, lambda g, f: g.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * 2,))
    ),
    "custom_jvp": with_rules(
        weft.custom_jvp, lambda g, f: g.defjvp(lambda xs, ts: (f(*xs), ts[0]))
    ),
    "custom_vmap": with_rules(
        weft.custom_batching.custom_vmap,
        lambda g, f: g.def_vmap(lambda n, mapped, x: (weft.vmap(f)(x), True)),
    ),
}


def nest(wrap, depth, fun):
    for _ in range(depth):
        fun = wrap(fun)
    return fun


def count_calls(fun, *args):
    """Return the number of Python functions that a call enters."""
    count = 0

    def note(frame, event, _):
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        fun(*args)
    finally:
        sys.setprofile(before)
    return count


def count_staging(wrap, depth):
    """Return the number of calls for staging a new function within `depth` transformations."""
    return count_calls(jit(nest(wrap, depth, lambda x: jnp.sin(x) * x)).trace, X)


@pytest.mark.parametrize("name", DERIVATIVES)
def test_the_work_of_derivatives_of_derivatives(name):
    counts = [count_staging(DERIVATIVES[name], depth) for depth in (5, 10)]
    assert counts[1] < 16 * counts[0], counts  # the fourth power of the depth; 2^5 is 32


@pytest.mark.parametrize("name", VALUES)
def test_the_work_of_values_of_derivatives_that_nobody_uses(name):
    counts = [count_staging(VALUES[name], depth) for depth in (10, 20)]
    assert counts[1] < 2.5 * counts[0], counts


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("around", ["jit", "grad", "vmap"])
@pytest.mark.parametrize("name", OTHERS)
def test_the_work_of_other_transformations(name, around):
    outer = {"jit": lambda f: f, "grad": grad, "vmap": lambda f: lambda x: weft.vmap(f)(x[None])}
    wrap = OTHERS[name]
    trace = lambda depth: jit(outer[around](nest(wrap, depth, lambda x: jnp.sin(x) * x))).trace
    trace(2)(X)  # make caches
    counts = [count_calls(trace(depth), X) for depth in (8, 16)]
    assert counts[1] < 5 * counts[0], counts  # the square of the depth; 2^8 is 256


def count_equations(jaxpr):
    """Return the numbers of equations and of loops in a program and those that it holds."""
    counts = [np.array([1, eqn.primitive.name == "scan"]) for eqn in jaxpr.eqns]
    held = [x for eqn in jaxpr.eqns for x in eqn.params.values() if hasattr(x, "eqns")]
    return sum([*counts, *map(count_equations, held)])


def test_loops_of_derivatives_of_loops():
    """A derivative of a loop is two loops, so the work cannot but double with each level.

    Their bodies grow too, as the derivatives of a product do: JAX 0.10.2 writes 7 loops of 57
    equations, 15 of 165 and 31 of 485.
    """
    wrap = lambda f: OTHERS["scan"](grad(f))
    found = {}
    for depth in (3, 4):
        f = nest(wrap, depth, lambda x: jnp.sin(x) * x)
        found[depth] = count_equations(jit(f).trace(X).jaxpr.jaxpr)
    assert [n for _, n in found.values()] == [7, 15]
    assert found[3][0] <= 64 and found[4][0] <= 200


@pytest.mark.parametrize("mode", ["now", "jit"])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_high_derivatives(name, mode):
    """The d-th derivative of exp(2x) is 2^d exp(2x); compiled, and operation by operation."""
    if mode == "now" and name == "grad of jit":
        pytest.skip("each is a program of its own, which is compiled")
    for depth in (5, 8):
        f = nest(DERIVATIVES[name], depth, lambda x: jnp.exp(2 * x))
        found = jit(f)(X) if mode == "jit" else f(jnp.array(X))
        np.testing.assert_allclose(found, 2.0**depth * np.exp(0.6), rtol=1e-5)


def test_every_partial_derivative_of_a_product():
    """Directions that differ: the derivative of x0 x1 ... x5 in each variable once is 1."""
    f = lambda xs: xs[0] * xs[1] * xs[2] * xs[3] * xs[4] * xs[5]
    for wrap in (
        lambda f, t: lambda xs: jvp(f, (xs,), (t,))[1],
        lambda f, t: lambda xs: linearize(f, xs)[1](t),
        lambda f, t: lambda xs: jnp.vdot(grad(f)(xs), t),
    ):
        g = f
        for t in np.eye(6, dtype=np.float32):
            g = wrap(g, t)
        at = np.linspace(1, 2, 6, dtype=np.float32)
        np.testing.assert_allclose(jit(g)(at), 1.0, rtol=1e-5)


def test_numbers_that_are_equal_and_not_the_same():
    """0.0 and -0.0 make different operations, and so do 1 and 1.0 with another default type."""

    def f(x):
        plus, minus = (jnp.copysign(x, x * zero) for zero in (0.0, -0.0))
        with weft.enable_x64(True):
            wide = jnp.sin(x) * jnp.sin(x)
        return plus - minus + x * 1 + x * 1.0 + wide.astype(np.float32)

    found = jit(nest(VALUES["value of linearize"], 5, f))(X)
    np.testing.assert_allclose(found, 4 * X + np.sin(X) ** 2, rtol=1e-6)
