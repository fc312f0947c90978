"""Scans and their reverse passes in segments: the results equal the program's as written."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.settings import ALL
from weft import lax
from weft.footprint.estimate import Measure
from weft.footprint.segments import list_pairs
from weft.passes.inline import inline_calls

LENGTH = 37  # a prime, so that the last segment is shorter
W, H = jnp.eye(8) * 0.9 + 0.01, jnp.linspace(-1, 1, 8)
XS = jnp.asarray(np.random.default_rng(0).normal(size=(LENGTH, 8)) * 0.3)


def recurrence(w, h, xs, **how):
    def step(h, x):
        h = jnp.tanh(w @ h + x)
        return h, jnp.sum(h**2)

    h, ys = lax.scan(step, h, xs, **how)
    return jnp.sum(ys * jnp.cos(ys)) + jnp.sum(h)


def two_carries(w, h, xs):
    def step(state, x):
        h, c = state
        c = jnp.sin(c + x * h)
        return (jnp.tanh(w @ h) + c, c), None

    (h, c), _ = lax.scan(step, (h, h), xs)
    return jnp.sum(h * c)


def without_rows(w, h, xs):
    return jnp.sum(lax.scan(lambda h, _: (jnp.tanh(w @ h), None), h, None, length=LENGTH)[0])


def with_sums_after(w, h, xs):
    ys = lax.scan(lambda h, x: (jnp.tanh(w @ h + x), h), h, jnp.sin(xs))[1]
    return jnp.sum(ys**2) + jnp.max(xs)


def with_values(w, h, xs):
    """Results that are stacked over time, and a value beside the gradient."""
    loss = lambda w, h, xs: (recurrence(w, h, xs), xs * 2)
    return weft.value_and_grad(loss, (0, 1, 2), has_aux=True)(w, h, xs)


PROGRAMS = {
    "rows": weft.grad(recurrence, (0, 1, 2)),
    "reversed": weft.grad(lambda *a: recurrence(*a, reverse=True), (0, 1, 2)),
    "two carries": weft.grad(two_carries, (0, 1, 2)),
    "no rows": weft.grad(without_rows, (0, 1)),
    "sums after": weft.grad(with_sums_after, (0, 1, 2)),
    "values": with_values,
    "a batch": weft.vmap(weft.grad(recurrence, 1), (None, 0, None)),
    "checkpoint": weft.grad(
        lambda w, h, xs: jnp.sum(
            lax.scan(
                weft.checkpoint(lambda h, x: (jnp.tanh(jnp.sin(w @ h) + x), None)), h, xs
            )[0]
        ),
        (0, 1, 2),
    ),
}  # fmt: skip


def stage(fun, *args):
    traced = weft.jit(fun).trace(*args)
    return inline_calls(traced.jaxpr.jaxpr, True)


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_the_same(name):
    h = jnp.stack([H, H + 1]) if name == "a batch" else H
    fun, args = PROGRAMS[name], (W, h, XS)
    jaxpr = stage(fun, *args)
    want = weft.jit(lambda *xs: jaxpr(*xs))(*args)
    pairs = list(list_pairs(jaxpr))
    assert pairs
    for count in (2, 5) if ALL else (2 + 3 * (list(PROGRAMS).index(name) % 2),):
        split = pairs[0].split(count)
        found = weft.jit(lambda *xs, split=split: split(*xs))(*args)
        for x, y in zip(found, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-6)


def test_memory_falls_with_the_root_of_the_length():
    xs = jnp.zeros((4096, 8))
    jaxpr = stage(weft.grad(recurrence), W, H, xs)
    (pair,) = list_pairs(jaxpr)
    own = Measure().estimate(jaxpr).bytes - xs.nbytes
    assert Measure().estimate(pair.split(64)).bytes - xs.nbytes < own / 15


def test_a_limit_runs_a_gradient_in_segments():
    xs = jnp.zeros((4096, 8))
    limited = weft.jit(weft.grad(recurrence), memory="300KB")
    plan = limited.plan(W, H, xs)
    assert plan.used <= plan.limit < plan.before
    assert "4096 iterations" in plan.steps[0]
    assert "segments, computed again" in plan.steps[0]
    np.testing.assert_allclose(limited(W, H, xs), weft.grad(recurrence)(W, H, xs), rtol=1e-4)


def test_scans_that_do_not_reverse_each_other_are_left():
    def fun(xs):
        add = lambda c, x: (c + x, c)
        return lax.scan(add, H, lax.scan(add, H, xs)[1])[0]

    assert not list(list_pairs(stage(fun, XS)))


def test_effects_are_left():
    def step(h, x):
        weft.debug.print("{}", x[0])
        return jnp.tanh(h + x), None

    jaxpr = stage(weft.grad(lambda h: jnp.sum(lax.scan(step, h, XS)[0])), H)
    assert not list(list_pairs(jaxpr))
