"""Derivatives and maps of `jit(f, sizes=...)` are compiled for buckets, not for sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.padding.compiles import count_compiles
from tests.padding.programs import PROGRAMS
from weft.padding.run import fix_sizes
from weft.tree_util import tree_leaves

W = np.arange(6, dtype=np.float32).reshape(3, 2) / 8


def score(w, x):
    return jnp.log1p(jnp.exp(x @ w)).mean() + (x / x.std()).max() * w.sum()


def spread(w, x):
    return nn_softmax(jnp.tanh(x @ w)), x - x.mean(0)


def nn_softmax(x):
    return weft.nn.softmax(x, 0)


# Functions of f, w and x; f(w, x) has a number or arrays as long as x.
NUMBERS: dict[str, Callable] = {
    "grad": lambda f, w, x: weft.grad(f)(w, x),
    "value and grad of both": lambda f, w, x: weft.value_and_grad(f, (0, 1))(w, x),
    "grad of grad": lambda f, w, x: weft.grad(lambda w: (weft.grad(f)(w, x) ** 2).sum())(w),
    "grad of vmap": lambda f, w, x: weft.grad(
        lambda w: weft.vmap(f, (0, None))(jnp.stack([w, 2 * w]), x).sum()
    )(w),
    "vmap of grad": lambda f, w, x: weft.vmap(weft.grad(f), (0, None))(jnp.stack([w, 2 * w]), x),
    "jvp of grad": lambda f, w, x: weft.jvp(lambda w: weft.grad(f)(w, x), (w,), (w,)),
}
ARRAYS: dict[str, Callable] = {
    "jvp": lambda f, w, x: weft.jvp(f, (w, x), (w, x)),
    "vmap": lambda f, w, x: weft.vmap(f, (0, None))(jnp.stack([w, 2 * w]), x),
    "vmap of another axis": lambda f, w, x: weft.vmap(f, (None, 2), (1, 2))(
        w, jnp.stack([x, x * x], 2)
    ),
    "vjp": lambda f, w, x: weft.vjp(f, w, x)[1](f(w, x)),
    "linearize": lambda f, w, x: weft.linearize(f, w, x)[1](w, x),
}
CASES = [
    *[pytest.param(score, run, id=name) for name, run in NUMBERS.items()],
    *[pytest.param(spread, run, id=name) for name, run in ARRAYS.items()],
]


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("fun, run", CASES)
def test_transformations_are_compiled_for_buckets(fun, run):
    jitted, rng = weft.jit(fun, sizes="(...), (n, _)"), np.random.default_rng(0)
    x = rng.normal(size=(7, 3)).astype(np.float32)
    run(jitted, W, jnp.asarray(x))
    for n in (5, 3):
        xs = jnp.asarray(x[:n])
        want = tree_leaves(run(fun, W, xs))
        with count_compiles() as count:
            got = run(jitted, W, xs)
            if fun is score:  # results of f have no size that operations around it depend on
                assert count == [0]
        for g, v in zip(tree_leaves(got), want, strict=True):
            assert g.dtype == v.dtype and g.aval.weak_type == v.aval.weak_type
            np.testing.assert_allclose(g, v, 2e-4, 1e-5)


def test_a_derivative_within_another_program():
    jitted, x = weft.jit(score, sizes="(...), (n, _)"), jnp.sin(jnp.arange(15.0)).reshape(5, 3)
    pull = weft.vjp(lambda w: jitted(w, x), W)[1]
    assert "padded_call" in str(weft.make_jaxpr(pull)(1.0))
    np.testing.assert_allclose(weft.jit(pull)(1.0)[0], weft.grad(score)(W, x), 1e-4, 1e-5)


def test_functions_that_close_over_tracers():
    x = jnp.arange(1.0, 6.0)

    def loss(w):
        return weft.jit(lambda x: jnp.tanh(x * w).mean(), sizes="n")(x)

    def shared(w):  # one jitted function, which closes over another tracer at each call
        held.append(w)
        return jitted(x)

    held: list = []
    jitted = weft.jit(lambda x: jnp.tanh(x * held[-1]).mean(), sizes="n")
    want = weft.grad(lambda w: jnp.tanh(x * w).mean())
    for w in (0.5, 0.25):
        np.testing.assert_allclose(weft.grad(loss)(w), want(w), 1e-5)
        np.testing.assert_allclose(weft.grad(shared)(w), want(w), 1e-5)


def test_named_axes_and_checks_take_the_plain_function():
    jitted = weft.jit(lambda x: x - weft.lax.psum(x, "i"), sizes="n")
    np.testing.assert_array_equal(
        weft.vmap(jitted, axis_name="i")(jnp.ones((2, 3))), -np.ones((2, 3))
    )
    checked = weft.experimental.checkify.checkify(weft.jit(jnp.log, sizes="n"))
    assert checked(jnp.ones(3))[0].get() is None


@pytest.mark.sample(one_in=16)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_at_true_sizes(name):
    """The program that is lowered within others needs no padding, and equals the function."""
    fun, texts, kinds = PROGRAMS[name]
    jitted = weft.jit(fun, sizes=f"({'), ('.join(texts)})")
    xs = PROGRAMS[name].arrays(np.random.default_rng(1), n=9, m=8)
    plan, leaves = jitted.find_plan(tuple(xs), {})
    program = fix_sizes(plan.program.jaxpr, plan.variables)
    outs = weft.jit(lambda *xs: program(*xs))(*plan.program.consts, *leaves)
    for g, w in zip(outs, tree_leaves(fun(*xs)), strict=True):
        np.testing.assert_allclose(g, np.asarray(w), 2e-4, 2e-4)


def test_a_function_that_is_jitted_again_is_padded_too():
    """Types of both are compared in caches; sizes of two scopes decide nothing in a program."""
    fun, texts, _ = PROGRAMS["searchsorted"]
    xs = PROGRAMS["searchsorted"].arrays(np.random.default_rng(1), n=9, m=8)
    for _ in range(2):
        jitted = weft.jit(lambda *xs: fun(*xs), sizes=f"({'), ('.join(texts)})")
        assert jitted.find_plan(tuple(xs), {})[0] is not None
