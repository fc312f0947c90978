"""Networks under one checkpoint: computed again in stages, the same gradients in less memory."""

import itertools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import checkpoint, debug, grad, jit, lax, make_jaxpr, vmap
from weft.passes.stages import Stages, count_alive, find_cuts

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 6)).astype(np.float32)
WEIGHTS = (RNG.normal(size=(6, 6, 6)) * 0.3).astype(np.float32)


def layer(x, w):
    y = jnp.tanh(x @ w)
    return x + jnp.sin(y) * jnp.exp(-y * y)


def loop(weights, x):
    for w in weights:
        x = jit(layer)(x, w)
    return jnp.sum(x**2)


def skips(weights, x):
    """Values of the first layers are read by the last; one weight and one mask by all."""
    seen, mask = [], jnp.tril(jnp.ones(x.shape))
    for w in weights[:3]:
        x = layer(x, w)
        seen.append(x)
    for w in weights[3:]:
        x = layer(mask * x * seen.pop(), w @ weights[0])
    return jnp.sum(x**2)


def scanned(weights, x):
    x, ys = lax.scan(lambda h, w: (layer(h, w @ w), jnp.sum(h)), jnp.sin(x), weights)
    return jnp.sum(x * ys[0])


def backwards(weights, x):
    """One scan stacks values for the other; later equations read a part of them."""

    def body(h, row):
        h = jnp.tanh(h @ weights[0] + row @ weights[1])
        return h, (jnp.exp(h), 2.0)

    h, (ys, twos) = lax.scan(body, jnp.zeros(6), x, reverse=True)
    h, zs = lax.scan(lambda h, y: (jnp.tanh(h * y), jnp.sin(h)), h, jnp.sin(ys) * twos[:, None])
    return jnp.sum(h) + jnp.sum(zs[:, 0] * ys[:, 1])


NETS = {"loop": loop, "skips": skips, "scanned": scanned, "backwards": backwards}


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", NETS)
def test_gradients_are_the_same_and_the_budget_holds(name):
    f, stages = NETS[name], set()
    want = jit(grad(f, (0, 1)))(WEIGHTS, X)
    for amount in (0.0, 0.5, 700, *[0.75] * (name == "backwards")):
        g = checkpoint(f, budget=amount)
        plan = g.plan(WEIGHTS, X)
        saved = weft.ad_checkpoint.saved_residuals(g, WEIGHTS, X)
        bytes_saved = sum(a.size * a.dtype.itemsize for a, t in saved if t.startswith("output"))
        assert bytes_saved <= plan.bytes <= plan.limit
        stages.add(plan.stages)
        for a, b in zip(jit(grad(g, (0, 1)))(WEIGHTS, X), want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * abs(b).max())
    assert max(stages) > 1 and min(stages) == 1  # with nothing to keep there is nothing to cut at


@pytest.mark.parametrize("name", [pytest.param("skips", marks=pytest.mark.slow), "scanned"])
def test_under_transformations(name):
    f = NETS[name]
    g = checkpoint(f, budget=0.5)
    second = [jit(grad(lambda x, h=h: jnp.sum(grad(h, 1)(WEIGHTS, x) ** 2)))(X) for h in (g, f)]
    np.testing.assert_allclose(second[0], second[1], rtol=1e-3, atol=1e-2)
    xs = np.stack([X, -X])
    want = vmap(grad(f, 1), (None, 0))(WEIGHTS, xs)
    got = grad(lambda xs: jnp.sum(vmap(g, (None, 0))(WEIGHTS, xs)))(xs)
    for x in (got, vmap(grad(g, 1), (None, 0))(WEIGHTS, xs)):
        np.testing.assert_allclose(x, want, rtol=1e-4, atol=1e-4)
    _, push = weft.linearize(g, WEIGHTS, X)
    np.testing.assert_allclose(push(WEIGHTS, X), weft.jvp(f, (WEIGHTS, X), (WEIGHTS, X))[1], 1e-4)


@pytest.mark.parametrize("form", ["loop", "scan"])
def test_a_step_takes_half_the_memory(form):
    weights, x = np.zeros((8, 64, 64), np.float32), np.zeros((64, 64), np.float32)

    def net(weights, x):
        if form == "scan":
            return jnp.sum(lax.scan(lambda h, w: (layer(h, w), None), x, weights)[0] ** 2)
        for w in weights:
            x = layer(x, w)
        return jnp.sum(x**2)

    sizes = [
        jit(grad(f)).lower(weights, x).compile().memory_analysis().temp_size_in_bytes
        for f in (net, checkpoint(net, budget=0.4))
    ]
    assert sizes[1] < 0.7 * sizes[0]


def test_each_stage_that_computes_again_is_an_equation():
    g = checkpoint(loop, budget=0.5)
    eqns = make_jaxpr(grad(g, (0, 1)))(WEIGHTS, X).jaxpr.eqns
    again = [e for e in eqns if e.params.get("differentiated")]
    assert g.plan(WEIGHTS, X).stages >= len(again) > 3
    names = [[e.primitive.name for e in stage.params["jaxpr"].eqns] for stage in again]
    assert sum(n.count("tanh") + n.count("sin") + n.count("exp") for n in names) <= 18


def test_effects_happen_once():
    calls = []

    def net(weights, x):
        for w in weights:
            x = layer(x, w)
            debug.callback(lambda _: calls.append(1), x[0, 0])
        return jnp.sum(x)

    g = checkpoint(net, budget=0.5)
    assert g.plan(WEIGHTS, X).stages > 1
    weft.block_until_ready(grad(g)(WEIGHTS, X))
    weft.effects_barrier()
    assert len(calls) == len(WEIGHTS)


def test_without_prevent_cse_there_is_one_stage():
    assert checkpoint(loop, budget=0.5, prevent_cse=False).plan(WEIGHTS, X).stages == 1


def test_cuts_are_where_the_least_is_alive():
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 9):
        made, alive = rng.integers(0, 4, n).tolist(), rng.integers(0, 9, n + 1).tolist()
        for most in (0, 2, 4, 100):

            def fits(cuts, made=made, most=most):
                parts = [made[a:b] for a, b in itertools.pairwise([0, *cuts, len(made)])]
                return all(len(p) == 1 or sum(p) <= most for p in parts)

            every = [c for k in range(n) for c in itertools.combinations(range(1, n), k) if fits(c)]
            cost = lambda cuts, alive=alive: sum(alive[i] + 1 for i in cuts)
            found = find_cuts(made, alive, most)
            assert fits(found) and cost(found) == min(map(cost, every))


def test_what_is_alive():
    def f(x):
        a = jnp.sin(x)
        b = jnp.exp(a)
        return b * a, jnp.sum(b)

    eqns = make_jaxpr(f)(X).jaxpr.eqns
    every = [v for e in eqns for v in e.outvars]
    n = X.nbytes
    assert count_alive(eqns, every) == [0, n, 2 * n, n, 0]
    assert count_alive(eqns, every[:1]) == [0, n, n, 0, 0]
    assert Stages().count == 1


def test_what_only_the_backward_pass_needs_is_where_it_needs_it():
    """Equations of a mask that each iteration reads come after the equations of the scan."""

    def net(weights, x):
        def body(h, w):
            seen = jnp.tril(jnp.ones((6, 6), bool))
            return layer(h, w) @ jnp.where(seen, jnp.tanh(h.T @ h), -1.0), None

        return jnp.sum(jnp.log(1 + lax.scan(body, jnp.sin(x), weights)[0] ** 2))

    g = checkpoint(net, budget=0.5)
    text = str(make_jaxpr(grad(g))(WEIGHTS, X))
    assert text.count("= scan[") == 2  # no third that is the first again
    got, want = jit(grad(g))(WEIGHTS, X), grad(net)(WEIGHTS, X)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * abs(want).max())
