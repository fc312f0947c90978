"""Cotangents of elements that loops read: the values, and that no array is made for each."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.core.jaxpr import eval_jaxpr, subjaxprs
from weft.passes.check import check_jaxpr
from weft.passes.dce import dce_jaxpr
from weft.primitives.accumulate import add_in_place

N = 40
X = jnp.linspace(0.1, 1.0, N)
PLACES = jnp.array([3, 3, 39, -1, 0])


def step(x, i, c):
    """Reads by number, by slice, by computed place and by several places; each one small."""
    part = lax.dynamic_slice(x, (i,), (3,))
    return jnp.sin(c * x[i]) + x[7] * x[2:5].sum() + (part * x[PLACES[:3]]).sum() * x[-1]


LOOPS = {
    "scan": lambda x: lax.scan(lambda c, i: (step(x, i, c), c), 0.5, jnp.arange(5))[0],
    "fori": lambda x: lax.fori_loop(0, 5, lambda i, c: step(x, i, c), 0.5),
    "while": lambda x: lax.while_loop(
        lambda s: s[1] < 5, lambda s: (step(x, s[1], s[0]), s[1] + 1), (0.5, 0)
    )[0],
    "carried": lambda x: lax.fori_loop(0, 5, lambda i, x: x.at[i].set(step(x, i, 0.5)), x).sum(),
}


def loop_in_python(name, x):
    if name == "carried":
        for i in range(5):
            x = x.at[i].set(step(x, i, 0.5))
        return x.sum()
    c = 0.5
    for i in range(5):
        c = step(x, i, c)
    return c


def iter_eqns(jaxpr):
    yield from jaxpr.eqns
    for inner in subjaxprs(jaxpr):
        yield from iter_eqns(inner)


@pytest.mark.parametrize("name", LOOPS)
def test_gradients_of_elements(name):
    want = weft.jit(weft.grad(lambda x: loop_in_python(name, x)))(X)
    f = weft.jit(weft.grad(LOOPS[name]))
    np.testing.assert_allclose(f(X), want, rtol=2e-5, atol=1e-6)
    jaxpr = weft.make_jaxpr(weft.grad(LOOPS[name]))(X).jaxpr
    check_jaxpr(jaxpr)
    backward = [e for e in jaxpr.eqns if held_sums(e)]
    assert backward
    for inner in (j for e in backward for j in subjaxprs(jaxpr.replace(eqns=[e]))):
        adds = [e for e in iter_eqns(inner) if e.primitive.name in ("add", "pad")]
        assert all(e.outvars[0].aval.size < N for e in adds), inner


def held_sums(eqn):
    """Return True if an equation is a loop that carries a cotangent of X."""
    return eqn.primitive.name in ("scan", "reversal") and any(
        v.aval.shape == (N,) for v in eqn.outvars
    )


def test_what_is_shared_or_large_stays():
    def f(x, u, i):
        spread = lax.dynamic_update_slice(jnp.zeros(8), u, (i,))
        large = lax.dynamic_update_slice(jnp.zeros(8), jnp.ones(6), (i,))
        other = lax.dynamic_update_slice(x * 2, u, (i,))
        return x + spread, spread * 2, x + large, x + other

    jaxpr = weft.make_jaxpr(f)(jnp.ones(8), jnp.ones(2), 1).jaxpr
    assert add_in_place(jaxpr) is jaxpr

    def g(x, u, i):
        parts = [lax.dynamic_update_slice(jnp.zeros(8), u, (i,)), jnp.pad(u, (6, 0)), x * 3]
        return (parts[0] + parts[2]) + (x + parts[1])

    args = jnp.arange(8.0), jnp.array([10.0, 20.0]), 7
    closed = weft.make_jaxpr(g)(*args)
    after = dce_jaxpr(add_in_place(closed.jaxpr))[0]
    assert after.eqns[-1].primitive.name == "dynamic_update_slice"
    np.testing.assert_allclose(eval_jaxpr(after, closed.consts, *args)[0], g(*args))
