"""Values kept within a budget: within the limit, optimal by brute force; equal gradients."""

import itertools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import checkpoint, debug, grad, jit, lax, linearize, make_jaxpr, vmap
from weft.experimental import io_callback
from weft.passes import budget
from weft.passes.budget import GAP, STAGED, Budget, Problem, choose_values, estimate_cost
from weft.passes.inline import inline_calls
from weft.passes.stages import keep_values

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 3)).astype(np.float32)
W = RNG.normal(size=(3, 3)).astype(np.float32)
BUDGETS = (0, 0.25, 0.5, 1.0)


def layer(x, w):
    y = jnp.tanh(x @ w)
    return x + jnp.exp(-jnp.square(y)) * jnp.sin(y)


def scanned(x, w):
    def body(h, v):
        h = jnp.tanh(jnp.sin(h @ w) * v)
        return h, jnp.exp(h)

    h, ys = lax.scan(body, x, jnp.arange(3.0))
    return jnp.sum(h * ys)


def branching(x, w):
    y = lax.cond(x[0, 0] > 0, jnp.sin, jnp.exp, x @ w)
    return jnp.sum(lax.fori_loop(0, 2, lambda _, z: jnp.tanh(z), y) * y)


PROGRAMS = {
    "layers": lambda x, w: jnp.sum(layer(jit(layer)(x, w), w)),
    "scan": scanned,
    "scan twice": lambda x, w: scanned(x, w) + scanned(jnp.sin(x), w),
    "branches": branching,
    "nested": lambda x, w: jnp.sum(checkpoint(layer, budget=48)(checkpoint(layer)(x, w), w)),
    "integers": lambda x, w: jnp.sum(jnp.exp(x[jnp.argsort(x[:, 0])] @ w)),
}


def random_program(seed):
    """A sum of values that are made of earlier ones."""

    def f(x, w):
        rng = np.random.default_rng(seed)
        values = [x @ w, x]
        one = (jnp.sin, jnp.exp, jnp.tanh, jnp.square, lambda a: a @ w)
        two = (jnp.multiply, jnp.add, jnp.maximum)
        for _ in range(8):
            a, b = (values[rng.integers(len(values))] * 0.1 for _ in range(2))
            made = one[rng.integers(5)](a) if rng.random() < 0.6 else two[rng.integers(3)](a, b)
            values.append(made)
        return sum(jnp.sum(v) for v in values)

    return f


ALL = {**PROGRAMS, **{f"random {i}": random_program(i) for i in range(3)}}


def kept_bytes(f, *args):
    """Return the bytes of the residuals of f, except for the arguments."""
    saved = weft.ad_checkpoint.saved_residuals(f, *args)
    return sum(
        aval.size * aval.dtype.itemsize
        for aval, text in saved
        if not text.startswith(("from the argument", "from a literal"))
    )


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", ALL)
def test_the_gradient_is_the_same_and_what_is_kept_is_within_the_budget(name):
    f, costs = ALL[name], []
    want = jit(grad(f, (0, 1)))(X, W)
    for amount in BUDGETS:
        g = checkpoint(f, budget=amount)
        plan = g.plan(X, W)
        kept = kept_bytes(g, X, W)  # less, where indices are kept that no derivative reads
        assert kept <= plan.bytes <= plan.limit and (kept == plan.bytes or name == "integers")
        assert plan.limit == int(amount * plan.without_budget)
        assert plan.without_budget <= kept_bytes(f, X, W)
        costs.append(plan.cost)
    more = STAGED * plan.forward_cost
    assert all(b <= a * (1 + GAP) + more for a, b in itertools.pairwise(costs))
    assert costs[0] > costs[-1]
    for got, expected in zip(jit(grad(checkpoint(f, budget=0.5), (0, 1)))(X, W), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_residuals_at_values_are_what_the_plan_says():
    g = checkpoint(scanned, budget=0.5)
    _, f_lin = linearize(g, X, W)
    leaves = [x for x in weft.tree.leaves(f_lin) if isinstance(x, weft.Array)]
    arguments = X.nbytes + W.nbytes + 3 * 4  # and what scan goes over
    assert g.plan(X, W).bytes <= sum(x.nbytes for x in leaves) <= arguments + g.plan(X, W).bytes


@pytest.mark.parametrize("seed", range(4))
def test_no_subset_is_better(seed):
    rng = np.random.default_rng(seed)

    def f(x, y):
        values = [x, y]
        for _ in range(7):
            a, b = (values[rng.integers(len(values))] for _ in range(2))
            made = [jnp.sin(a), a @ a, a * b, jnp.sum(a, 0), jnp.exp(b)][rng.integers(5)]
            values.append(made)
        return values[-4:]

    jaxpr = make_jaxpr(f)(W, W).jaxpr
    problem = Problem(jaxpr, jaxpr.outvars)
    subsets = [
        set(s) for n in range(len(problem.savable) + 1)
        for s in itertools.combinations(problem.savable, n)
    ]  # fmt: skip
    for limit in range(0, problem.asked + 1, 24):
        best = min(problem.cost(s) for s in subsets if problem.is_possible(s, limit))
        got = problem.solve(limit)
        assert problem.is_possible(got, limit)
        assert problem.cost(got) <= best + GAP * max(best, 1) + 1e-6 * problem.forward


def test_programs_cut_where_values_are_kept_compute_the_same():
    jaxpr = inline_calls(make_jaxpr(scanned)(X, W).jaxpr)
    choice = choose_values(jaxpr, 0, Budget(200))
    scan = next(e for e in jaxpr.eqns if e.primitive.name == "scan")
    inner = {v for e in scan.params["jaxpr"].eqns for v in e.outvars}
    every = {v for e in jaxpr.eqns for v in e.outvars} | inner
    for kept in ({v for v, _ in choice.kept}, inner, every):
        early, late, n = keep_values(jaxpr, kept)
        weft.passes.check.check_jaxpr(early)
        weft.passes.check.check_jaxpr(late)
        outs = early(X, W)
        assert n == len(outs) - len(jaxpr.outvars)
        for got in (outs[: len(jaxpr.outvars)], late(X, W, *outs[len(jaxpr.outvars) :])):
            np.testing.assert_allclose(got[0], scanned(X, W), rtol=1e-5)


def test_cheap_operations_are_computed_again_first():
    x, w = np.ones((4, 64), np.float32), np.ones((64, 64), np.float32)
    f = lambda x, w: jnp.sum(jnp.exp(jnp.sin(x @ w)))
    f = checkpoint(f, budget=x.nbytes)
    (kept,) = f.plan(x, w).kept
    assert kept.source.startswith("output of dot_general") and kept.bytes == x.nbytes


def test_costs():
    def cost(f, *args):
        return sum(map(estimate_cost, make_jaxpr(f)(*args).jaxpr.eqns))

    big = np.ones((64, 64), np.float32)
    assert cost(jnp.exp, big) > cost(jnp.negative, big) > 0
    assert cost(jnp.matmul, big, big) > 2 * 64**3
    assert cost(lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, 5)[0], big) == (
        5 * cost(jnp.sin, big)
    )
    image, kernel = np.ones((1, 8, 16, 16), np.float32), np.ones((4, 8, 3, 3), np.float32)
    work = 2 * 4 * 16 * 16 * 8 * 9
    assert work <= cost(lambda x, k: lax.conv(x, k, (1, 1), "SAME"), image, kernel) < 1.2 * work
    for f in (jnp.linalg.cholesky, jnp.linalg.qr, jnp.sort, jnp.cumsum):
        assert cost(f, big) > cost(jnp.negative, big)


def test_what_a_turn_reads_of_the_turn_before_is_computed_again_too():
    def f(x):
        return lax.scan(lambda h, _: (jnp.sin(h), jnp.exp(h)), x, None, 3)[1]

    jaxpr = make_jaxpr(f)(X).jaxpr
    (scan,) = jaxpr.eqns
    problem = Problem(jaxpr, jaxpr.outvars)
    assert problem.cost(set()) >= sum(map(estimate_cost, scan.params["jaxpr"].eqns)) * 3


def test_under_transformations():
    def f(x):
        return jnp.sum(layer(layer(x, W), W))

    xs = np.stack([X, -X])
    want = jit(vmap(grad(f)))(xs)
    for amount in (0.0, 0.5, 96):
        for g in (checkpoint(f, budget=amount), checkpoint(f, budget=amount, prevent_cse=False)):
            np.testing.assert_allclose(jit(grad(g))(X), want[0], rtol=1e-5)
        np.testing.assert_allclose(jit(vmap(grad(g)))(xs), want, rtol=1e-5)
        total = lambda xs, g=g: jnp.sum(vmap(g)(xs))
        np.testing.assert_allclose(jit(grad(total))(xs), want, rtol=1e-5)
    second = [jit(grad(lambda x, h=h: jnp.sum(grad(h)(x) ** 2)))(X) for h in (f, g)]
    np.testing.assert_allclose(second[0], second[1], rtol=1e-4)


def test_layers_by_scan_keep_within_the_budget_each_turn():
    weights = np.stack([W, -W, W])
    per_turn = checkpoint(layer, budget=0.5).plan(X, W)

    def net(layer, x, weights):
        return jnp.sum(lax.scan(lambda h, w: (layer(h, w), None), x, weights)[0])

    block = checkpoint(layer, budget=0.5, prevent_cse=False)
    kept = kept_bytes(lambda x, ws: net(block, x, ws), X, weights)
    assert kept == 3 * (X.nbytes + per_turn.bytes)  # the input of each layer besides
    got = grad(net, (1, 2))(block, X, weights)
    for a, b in zip(got, grad(net, (1, 2))(layer, X, weights), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_what_may_happen_only_once_is_kept_or_is_an_error():
    calls = []

    def read(x):
        calls.append(1)
        return np.asarray(x) * 2

    def f(x):
        y = io_callback(read, weft.ShapeDtypeStruct((4, 3), np.float32), lax.stop_gradient(x))
        debug.callback(lambda: None)
        return jnp.sum(jnp.sin(x) * jnp.exp(y * x))

    text = r"^checkpoint: budget must be at least 48 bytes here.*io_callback.*; got 47 bytes\. Hint"
    with pytest.raises(ValueError, match=text):
        grad(checkpoint(f, budget=47))(X)
    with pytest.raises(ValueError, match=text):
        checkpoint(f, budget=47).plan(X)
    calls.clear()
    grad(checkpoint(f, budget=48))(X)
    weft.effects_barrier()
    assert len(calls) == 1


def test_without_a_solution_of_the_solver_the_fewest_bytes_are_kept(monkeypatch):
    run = Problem.run_solver
    monkeypatch.setattr(
        Problem,
        "run_solver",
        lambda self, limit, r: run(self, limit, r) if limit is None else set(),
    )
    plan = checkpoint(random_program(9), budget=0.5).plan(X, W)
    assert plan.bytes == 0 and plan.cost > 0
    assert repr(budget.Budget(0.5)) == "budget(0.5)"


def test_the_text_of_a_program_holds_the_budget():
    jaxpr = make_jaxpr(checkpoint(layer, budget=0.5))(X, W)
    again = weft.jaxpr.parse(str(jaxpr))
    assert "policy=budget(0.5)" in str(jaxpr) and str(again) == str(jaxpr)
    assert weft.jaxpr.parse(again.show()).eqns[0].params["policy"] == Budget(0.5)
