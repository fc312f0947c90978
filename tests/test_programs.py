"""Programs as users write them: training, modules, optimizers, simulation, indexing, precision.

What is expected comes from NumPy, finite differences, closed forms or loops, never from weft.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, hessian, jacfwd, jacrev, jit, jvp, lax, vjp, vmap
from weft.tree_util import (
    GetAttrKey,
    keystr,
    register_dataclass,
    register_pytree_with_keys,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
)

close = functools.partial(np.testing.assert_allclose, rtol=2e-5, atol=2e-5)


def slope(fun, x, t, eps=1e-6):
    """The derivative of `fun` at x along t, by central differences in float64."""
    high, low = (tree_map(lambda a, d, s=s: a + s * d, x, t) for s in (eps, -eps))
    return tree_map(lambda a, b: (np.asarray(a) - np.asarray(b)) / (2 * eps), fun(high), fun(low))


def inner(a, b):
    """The inner product of two pytrees."""
    return sum(np.vdot(x, y) for x, y in zip(tree_leaves(a), tree_leaves(b), strict=True))


def like(tree, rng):
    """A pytree of random numbers."""
    return tree_map(lambda a: jnp.array(rng.standard_normal(np.shape(a))), tree)


@pytest.fixture
def double():
    with weft.enable_x64(True):
        yield


# --- training -------------------------------------------------------------------------------


def mlp(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def cross_entropy(params, x, labels):
    logits = mlp(params, x)
    shifted = logits - logits.max(1, keepdims=True)
    logp = shifted - jnp.log(jnp.exp(shifted).sum(1, keepdims=True))
    return -jnp.take_along_axis(logp, labels[:, None], axis=1).mean()


def mlp_data(rng):
    params = [(rng.standard_normal((m, n)) / 2, np.zeros(n)) for m, n in ((5, 4), (4, 3))]
    params = tree_map(lambda a: jnp.array(a, jnp.float32), params)
    return params, jnp.array(rng.standard_normal((8, 5)), jnp.float32), rng.integers(0, 3, 8)


def backpropagation(params, x, labels):
    """cross_entropy and its gradient for two layers, written out in NumPy."""
    (w1, b1), (w2, b2) = params
    h = np.tanh(x @ w1 + b1)
    e = np.exp(h @ w2 + b2)
    p = e / e.sum(1, keepdims=True)
    rows = np.arange(len(x))
    d = (p - np.eye(p.shape[1])[labels]) / len(x)
    dh = d @ w2.T * (1 - h * h)
    return -np.log(p[rows, labels]).mean(), [(x.T @ dh, dh.sum(0)), (h.T @ d, d.sum(0))]


def adam(params, moments, variances, g, t):
    """One step of Adam (Kingma and Ba 2015), on pytrees of NumPy's or weft's arrays alike."""
    moments = tree_map(lambda m, g: 0.9 * m + 0.1 * g, moments, g)
    variances = tree_map(lambda v, g: 0.999 * v + 0.001 * g**2, variances, g)
    params = tree_map(
        lambda p, m, v: p - 0.05 * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)) ** 0.5 + 1e-8),
        params,
        moments,
        variances,
    )
    return params, moments, variances


def test_training_with_adam_is_traced_once_and_agrees_with_numpy(rng):
    params, x, labels = mlp_data(rng)
    traces = []

    @jit
    def step(state, t, x, labels):
        traces.append(t)
        loss, g = weft.value_and_grad(cross_entropy)(state[0], x, labels)
        return adam(*state, g, t), loss

    state = (params, *[tree_map(jnp.zeros_like, params)] * 2)
    host = tree_map(np.float64, state)
    for t in range(1, 11):
        state, loss = step(state, t, x, labels)
        expected, g = backpropagation(host[0], np.float64(x), labels)
        host = adam(*host, g, t)
        close(loss, expected)
    assert len(traces) == 1
    tree_map(functools.partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-4), state, host)


def test_gradients_of_each_example(rng):
    params, x, labels = mlp_data(rng)
    each = jit(vmap(grad(cross_entropy), in_axes=(None, 0, 0)))(params, x[:, None], labels[:, None])
    loop = [backpropagation(params, x[i : i + 1], labels[i : i + 1])[1] for i in range(len(x))]
    tree_map(close, each, tree_map(lambda *gs: np.stack(gs), *loop))


def test_hessian_vector_products_agree(rng, double):
    params, x, labels = mlp_data(rng)
    params = tree_map(np.float64, params)
    v = like(params, rng)
    f = lambda p: cross_entropy(p, x, labels)
    ways = [
        lambda p, v: jvp(grad(f), (p,), (v,))[1],
        lambda p, v: grad(lambda p: jvp(f, (p,), (v,))[1])(p),
        lambda p, v: vjp(grad(f), p)[1](v)[0],
        lambda p, v: weft.linearize(grad(f), p)[1](v),
    ]
    gradient = jit(grad(f))
    expected = slope(gradient, params, v, 1e-5)
    for way in ways:
        tree_map(functools.partial(close, rtol=1e-6, atol=1e-8), jit(way)(params, v), expected)


def test_logistic_regression():
    inputs = np.array(
        [[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]]
    )
    targets = np.array([True, True, False, True])

    def loss(weights, inputs, targets):
        preds = 0.5 * (jnp.tanh(jnp.dot(inputs, weights) / 2.0) + 1)
        return -jnp.sum(jnp.log(preds) * targets + jnp.log(1 - preds) * (1 - targets))

    gradient = jit(grad(loss))
    weights, host = jnp.array([0.0, 0.0, 0.0]), np.zeros(3)
    assert f"{loss(weights, jnp.array(inputs), jnp.array(targets)):0.2f}" == "2.77"
    for _ in range(100):
        weights -= 0.1 * gradient(weights, inputs, targets)
        host -= 0.1 * inputs.T @ (1 / (1 + np.exp(-inputs @ host)) - targets)
    close(weights, host, rtol=1e-4)


def convnet(params, x):
    layout = ("NHWC", "HWIO", "NHWC")
    x = lax.conv_general_dilated(x, params["k1"], (1, 1), "SAME", dimension_numbers=layout)
    x = jnp.maximum(x + params["b1"], 0)
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = lax.conv_general_dilated(x, params["k2"], (2, 1), "VALID", dimension_numbers=layout)
    return jnp.tanh(x).reshape(x.shape[0], -1) @ params["w"]


def test_convolutional_network(rng, double):
    shapes = {"k1": (3, 3, 1, 2), "b1": (2,), "k2": (2, 2, 2, 3), "w": (9, 2)}
    params = {k: jnp.array(rng.standard_normal(s)) for k, s in shapes.items()}
    x, t = jnp.array(rng.standard_normal((2, 4, 8, 1))[:, :, :8]), like(params, rng)
    f = jit(lambda p: jnp.sum(convnet(p, x) ** 2))
    close(inner(jit(grad(f))(params), t), slope(f, params, t), rtol=1e-6)
    one_by_one = np.concatenate([convnet(params, x[i : i + 1]) for i in range(2)])
    close(vmap(lambda x: convnet(params, x[None])[0])(x), one_by_one)


def attention(p, x):
    q, k, v = (jnp.einsum("td,dhk->thk", x, p[n]) for n in "qkv")
    scores = jnp.einsum("thk,shk->hts", q, k) / jnp.sqrt(q.shape[-1])
    causal = jnp.tril(jnp.ones((x.shape[0],) * 2, bool))
    scores = jnp.where(causal, scores, jnp.finfo(scores.dtype).min)
    weights = jnp.exp(scores - lax.stop_gradient(scores.max(-1, keepdims=True)))
    weights = weights / weights.sum(-1, keepdims=True)
    return jnp.einsum("hts,shk,hkd->td", weights, v, p["o"])


def test_attention_is_causal_and_differentiable(rng, double):
    p = {n: jnp.array(rng.standard_normal((3, 2, 2))) for n in "qkv"}
    p["o"] = jnp.array(rng.standard_normal((2, 2, 3)))
    x = jnp.array(rng.standard_normal((4, 3)))
    influence = np.abs(jit(jacrev(functools.partial(attention, p)))(x)).sum((1, 3))
    assert (np.triu(influence, 1) == 0).all() and (
        np.tril(influence) + np.triu(np.ones((4, 4)), 1) > 0
    ).all()
    f, t = jit(lambda p: jnp.sum(jnp.sin(attention(p, x)))), like(p, rng)
    close(inner(jit(grad(f))(p), t), slope(f, p, t), rtol=1e-6)


def test_layer_norm_has_its_known_gradient(rng):
    x, ct = rng.standard_normal((2, 3, 5)).astype(np.float32)

    def norm(x):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True))

    y = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    expected = ct - ct.mean(-1, keepdims=True) - y * (ct * y).mean(-1, keepdims=True)
    close(jit(lambda x: vjp(norm, x)[1](ct)[0])(x), expected / x.std(-1, keepdims=True), rtol=1e-4)


def test_mixed_precision_keeps_master_weights_in_float32(rng):
    w, x = jnp.array(rng.standard_normal((4, 3)), jnp.float32), rng.standard_normal((5, 4))

    def loss(w, x, scale):
        y = jnp.tanh(jnp.asarray(x, jnp.bfloat16) @ w.astype(jnp.bfloat16))
        assert y.dtype == jnp.bfloat16
        return jnp.mean(y.astype(jnp.float32) ** 2) * scale

    g = jit(grad(loss))(w, x, 128.0)
    y = np.tanh(x @ w)
    assert g.dtype == np.float32
    np.testing.assert_allclose(g / 128, x.T @ (2 * y / y.size * (1 - y * y)), rtol=0.1, atol=5e-3)


# --- derivatives of one's own ---------------------------------------------------------------


def test_a_fixed_point_is_differentiated_implicitly():
    @functools.partial(weft.custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f, a, x):
        for _ in range(12):
            x = f(a, x)
        return x

    def forward(f, a, x):
        x = fixed_point(f, a, x)
        return x, (a, x)

    def backward(f, residuals, ct):
        a, x = residuals
        _, pull = vjp(f, a, x)
        u = ct
        for _ in range(12):
            u = ct + pull(u)[1]
        return pull(u)[0], jnp.zeros_like(x)

    fixed_point.defvjp(forward, backward)
    root = lambda a: fixed_point(lambda a, x: 0.5 * (x + a / x), a, jnp.float32(1.0))
    close(jit(vmap(root))(jnp.array([2.0, 3.0])), np.sqrt([2, 3]))
    for g in (vmap(grad(root)), jit(vmap(grad(root))), vmap(jit(grad(root)))):
        close(g(jnp.array([2.0, 3.0])), 0.5 / np.sqrt([2, 3]))


def test_custom_rules_are_what_transformations_see():
    @functools.partial(weft.custom_jvp, nondiff_argnums=(0, 2))
    def apply(f, x, n):
        return f(x) * n

    @apply.defjvp
    def _(f, n, primals, tangents):
        return apply(f, primals[0], n), 100.0 * n * tangents[0]

    @weft.custom_vjp
    def bounded(x):
        return x

    bounded.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -1, 1),))
    x = jnp.arange(3.0)
    for wrap in (lambda f: f, jit, lambda f: jit(jit(f))):
        close(vmap(grad(wrap(lambda x: apply(jnp.sin, x, 3))))(x), [300] * 3)
        close(
            wrap(vmap(grad(lambda x: 5 * bounded(x) * x)))(x),
            np.clip(5 * np.arange(3), -1, 1) + 5 * np.arange(3),
        )
    round_through = weft.custom_jvp(lambda x: jnp.round(x))
    round_through.defjvps(lambda t, ans, x: t)
    assert grad(lambda x: round_through(x) ** 2)(1.7) == 4.0


def test_gradients_where_the_other_branch_is_nan():
    x = jnp.array([-1.0, 0.0, 1.0, 4.0])
    safe = lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0).sum()
    close(grad(safe)(x), [0, 0, 0.5, 0.25])
    unsafe = grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0).sum())(x)
    assert np.isnan(unsafe[:2]).all() and (unsafe[2:] == jnp.array([0.5, 0.25])).all()


# --- optimisation and simulation ------------------------------------------------------------


def test_newtons_method_finds_where_the_gradient_vanishes(double):
    f = lambda x: (x[0] - 1) ** 4 + (x[0] - x[1] ** 2) ** 2 + jnp.cosh(x[1])

    @jit
    def step(x):
        (a, b), (c, d) = hessian(f)(x)
        inverse = jnp.array([[d, -b], [-c, a]]) / (a * d - b * c)
        return x - inverse @ grad(f)(x)

    x = jnp.array([3.0, 2.0])
    for _ in range(30):
        x = step(x)
    assert np.abs(slope(f, x, jnp.array([1.0, 0.0]))) < 1e-8
    assert np.abs(slope(f, x, jnp.array([0.0, 1.0]))) < 1e-8


def test_optimisation_of_complex_numbers():
    target = np.array([0.5 - 1j, 2j], np.complex64)
    gradient = jit(grad(lambda z: jnp.sum(jnp.abs(z - target) ** 2)))
    z = jnp.array([1 + 2j, 3.0])
    for _ in range(40):
        z = z - 0.2 * jnp.conj(gradient(z))
    close(z, target)
    holomorphic = grad(lambda z: jnp.sin(z) * z**2, holomorphic=True)
    w = 0.3 + 0.4j
    close(holomorphic(w), np.cos(w) * w**2 + 2 * w * np.sin(w))


def test_high_derivatives():
    chain = lambda f, n: functools.reduce(lambda f, _: grad(f), range(n), f)
    for n, expected in enumerate((np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin), 1):
        close(jit(chain(jnp.sin, n))(0.7), expected(0.7))
    close([chain(lambda x: x**5, n)(2.0) for n in (3, 4, 5, 6)], [240, 240, 120, 0])
    third = jacfwd(jacrev(jacfwd(lambda x: jnp.prod(x))))(jnp.array([0.0, 2.0, 3.0]))
    assert third[0, 1, 2] == third[2, 1, 0] == 1 and third.sum() == 6


def test_a_leapfrog_step_keeps_energy_and_is_reversible():
    @functools.partial(register_dataclass, data_fields=["q", "p"], meta_fields=["mass"])
    @dataclasses.dataclass(frozen=True)
    class State:
        q: Any
        p: Any
        mass: float = 1.0

    energy = lambda s: 0.5 * jnp.sum(s.p**2) / s.mass + 0.5 * jnp.sum(s.q**2)

    @jit
    def leap(s, dt):
        for _ in range(10):
            p = s.p - 0.5 * dt * grad(energy)(s).q
            q = s.q + dt * p / s.mass
            p = p - 0.5 * dt * grad(energy)(dataclasses.replace(s, q=q)).q
            s = State(q, p, s.mass)
        return s

    start = State(jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0]))
    end = leap(start, 0.05)
    close(end.q, [np.cos(0.5), np.sin(0.5)], atol=1e-3)
    close(energy(end), 1.0, atol=1e-3)
    tree_map(close, leap(end, -0.05), start)
    many = vmap(leap, (None, 0))(start, jnp.array([0.05, 0.0]))
    close(many.q[0], end.q)


# --- modules and optimizers as libraries write them -----------------------------------------


def test_an_optimizer_made_of_transformations_of_gradients():
    class Optimizer(NamedTuple):
        init: Any
        update: Any

    class Momentum(NamedTuple):
        count: Any
        trace: Any

    def momentum(decay):
        def update(g, state, params=None):
            trace = tree_map(lambda m, g: decay * m + g, state.trace, g)
            return trace, Momentum(state.count + 1, trace)

        return Optimizer(
            lambda p: Momentum(jnp.zeros([], jnp.int32), tree_map(jnp.zeros_like, p)), update
        )

    def clip(bound):
        def update(g, state, params=None):
            norm = jnp.sqrt(sum(jnp.sum(x**2) for x in tree_leaves(g)))
            return tree_map(lambda x: lax.select(norm < bound, x, x / norm * bound), g), state

        return Optimizer(lambda p: (), update)

    def chain(*parts):
        def update(g, state, params=None):
            new = []
            for part, s in zip(parts, state, strict=True):
                g, s = part.update(g, s, params)
                new.append(s)
            return g, tuple(new)

        return Optimizer(lambda p: tuple(part.init(p) for part in parts), update)

    params = {"w": jnp.array([3.0, 4.0]), "none": None}
    optimizer = chain(clip(1.0), momentum(0.5))
    state = optimizer.init(params)

    @jit
    def step(params, state):
        g = grad(lambda p: 0.5 * jnp.sum(p["w"] ** 2))(params)
        g, state = optimizer.update(g, state, params)
        return tree_map(lambda p, g: p - g, params, g), state

    w, m = np.array([3.0, 4.0]), 0.0
    for _ in range(4):
        params, state = step(params, state)
        norm = np.sqrt(w @ w)
        m = 0.5 * m + (w if norm < 1 else w / norm)
        w = w - m
    close(params["w"], w)
    assert state[1].count == 4 and params["none"] is None


def test_modules_that_are_pytrees(rng):
    @dataclasses.dataclass(frozen=True)
    class Linear:
        weight: Any
        bias: Any
        activation: Any = None

        def __call__(self, x):
            y = self.weight @ x + (0 if self.bias is None else self.bias)
            return y if self.activation is None else self.activation(y)

    register_pytree_with_keys(
        Linear,
        lambda m: ([(GetAttrKey("weight"), m.weight), (GetAttrKey("bias"), m.bias)], m.activation),
        lambda activation, parts: Linear(*parts, activation),
    )
    a, b, x = (rng.standard_normal(s).astype(np.float32) for s in ((4, 3), (2, 4), (5, 3)))
    model = [Linear(jnp.array(a), jnp.zeros(4), jnp.tanh), Linear(jnp.array(b), None)]
    predict = lambda m, x: m[1](m[0](x))
    loss = lambda m, x: jnp.sum(vmap(functools.partial(predict, m))(x) ** 2)
    g = jit(grad(loss))(model, x)
    assert [keystr(k) for k, _ in tree_leaves_with_path(g)] == [
        "[0].weight",
        "[0].bias",
        "[1].weight",
    ]
    h = np.tanh(x @ a.T)
    close(g[1].weight, 2 * (h @ b.T).T @ h, rtol=1e-4)
    ensemble = vmap(lambda s: tree_map(lambda p: p * s, model))(jnp.arange(3.0))
    outs = vmap(predict, (0, None))(ensemble, x[0])
    close(outs, [s * b @ np.tanh(s * (a @ x[0])) for s in range(3)], rtol=1e-4)


# --- indexing and sorting -------------------------------------------------------------------


def test_embeddings_and_segments(rng):
    table = jnp.array(rng.standard_normal((6, 3)), jnp.float32)
    tokens = np.array([[1, 2, 2], [5, 0, -1]])
    expected = np.zeros((6, 3))
    np.add.at(expected, tokens, 2 * np.asarray(table)[tokens])
    close(jit(grad(lambda e: (e[tokens] ** 2).sum()))(table), expected)
    close(jit(grad(lambda e: (jnp.take(e, tokens, axis=0) ** 2).sum()))(table), expected)
    segments = np.array([0, 2, 2, 1, 0, 2])
    total = jit(lambda d: jnp.zeros((3, 3)).at[segments].add(d))
    close(total(table), np.eye(3)[segments].T @ table)
    close(jacrev(lambda d: total(d).sum(0))(table)[1, :, 1], np.ones(6))
    high = lambda d: jnp.full((3, 3), -jnp.inf).at[segments].max(d)
    close(high(table), [np.asarray(table)[segments == s].max(0) for s in range(3)])
    assert (jit(grad(lambda d: high(d).sum()))(table).sum(0) == 3).all()


INDICES = [
    np.s_[::-2, None, 1], np.s_[..., 0], np.s_[None, 3:0:-1, ..., ::2], np.s_[:, [2, 0, 2]],
    np.s_[[0, 3, -1], 1:, ::-1], np.s_[[[1], [2]], :, [0, 4]], np.s_[:, None, [1, 1], ..., -3:],
    np.s_[[True, False, True, True]], np.s_[0, [False, True, True], 2:], np.s_[True, 1], np.s_[2:2],
]  # fmt: skip


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_reading_and_writing_mixed_indices(index):
    host = np.arange(60.0, dtype=np.float32).reshape(4, 3, 5)
    index = tuple(
        np.array(i) if isinstance(i, list) else i
        for i in (index if isinstance(index, tuple) else (index,))
    )
    x = jnp.array(host)
    close(x[index], host[index])
    added, expected = jit(lambda x: x.at[index].add(2.0))(x), host.copy()
    np.add.at(expected, index, 2.0)
    close(added, expected)
    g, counts = jit(grad(lambda x: (x[index] ** 2).sum()))(x), np.zeros_like(host)
    np.add.at(counts, index, 1)
    close(g, 2 * host * counts)
    each = vmap(lambda x: x[index], in_axes=3, out_axes=0)(jnp.stack([x, -x], 3))
    close(each, np.stack([host[index], -host[index]]))


def test_gradients_flow_through_orderings(rng):
    x, w = rng.permutation(20).reshape(4, 5).astype(np.float32), np.arange(20.0).reshape(4, 5)
    for axis in (0, 1):
        ranks = np.argsort(np.argsort(x, axis), axis)
        g = jit(grad(lambda x: (jnp.sort(x, axis) * w).sum()))(x)  # noqa: B023
        close(g, np.take_along_axis(w, ranks, axis))
        best = jit(grad(lambda x: jnp.take_along_axis(x, jnp.argsort(x, axis), axis).max()))(x)  # noqa: B023
        close(best, x == 19)
    values, places = jit(lambda x: lax.top_k(x, 2))(x)
    close(values, -np.sort(-x)[:, :2])
    close(places, np.argsort(-x)[:, :2])
    close(grad(lambda x: lax.top_k(x, 2)[0].sum())(x), (x >= values[:, 1:]).astype(float))


# --- transformations of functions made of many operations -----------------------------------

C = np.linspace(0.3, 1.4, 12).reshape(3, 4)
PLACES = np.array([2, 0, 2])
FUNCTIONS = {
    "normalise": lambda x: (x - x.mean(0)) / (1 + jnp.sum(x**2, 1, keepdims=True)),
    "scatter and gather": lambda x: x.at[PLACES].add(x[::-1] * x[PLACES]),
    "shift": lambda x: jnp.pad(x, ((1, 0), (0, 0)))[:-1] * jnp.roll(x, 1, 1),
    "products": lambda x: jnp.einsum("ij,kj,kl->il", x, x, C) + jnp.outer(x[:, 0], x[0]),
    "windows": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 3), (1, 1), "SAME")
    * lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "SAME"),
    "running": lambda x: jnp.cumprod(x, 0) + lax.cummax(x, 1) + lax.cumlogsumexp(x, reverse=True),
    "ordering": lambda x: jnp.sort(x, 0) * lax.top_k(x, 2)[0][:, 1:],
    "slices": lambda x: lax.dynamic_update_slice(
        x, lax.dynamic_slice(x, (1, 0), (2, 3)) ** 2, (1, 1)
    ),
    "powers": lambda x: jnp.logaddexp(x, C) * jnp.abs(x) ** 1.5 + jnp.hypot(x, C) + 2.0**x,
    "writes": lambda x: x.at[1, ::2].set(x[0, 1::2] ** 2).at[:, 1].multiply(3.0),
    "convolution": lambda x: lax.conv(x[None, None], x[None, None, :2, :2], (1, 1), "SAME")[0, 0],
    "statistics": lambda x: jnp.prod(x, 0) * jnp.std(x) + jnp.max(x, 1, keepdims=True),
    "complex": lambda x: jnp.abs((x + 1j * C) ** 2) + jnp.real(jnp.exp(1j * x)),
    "inner map": lambda x: vmap(lambda r, i: r.at[i].set(r[i] ** 2) * r.sum())(x, PLACES),
    "inner gradient": lambda x: grad(lambda y: jnp.sum(y**3 * C) * y[0, 0])(x),
    "inner tangent": lambda x: jvp(lambda y: jnp.sin(y) @ C.T @ y, (x,), (x**2,))[1],
    "inner jit": lambda x: jit(lambda y: y * jnp.tanh(x))(x) + lax.stop_gradient(x),
}  # fmt: skip


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_transformations_agree(name, double, rng):
    f = FUNCTIONS[name]
    x, t, ct = rng.uniform(0.1, 1.2, (3, 3, 4))
    out, tangent = jit(lambda x, t: jvp(f, (x,), (t,)))(x, t)
    if name != "inner jit":  # which stops a gradient
        close(tangent, slope(jit(f), x, t), rtol=1e-6, atol=1e-7)
    pull = jit(lambda x, ct: vjp(f, x)[1](ct)[0])
    close(np.vdot(ct, tangent), np.vdot(pull(x, ct), t), rtol=1e-9)
    mapped = jit(vmap(lambda x: vjp(f, x)[1](ct)[0], in_axes=1, out_axes=2))
    pulls = mapped(jnp.stack([x, t**2 + 0.1], 1))
    close(pulls, np.stack([pull(x, ct), pull(t**2 + 0.1, ct)], 2), rtol=1e-9)
    forward_over_reverse = jit(lambda x, t: jvp(lambda x: pull(x, ct), (x,), (t,))[1])(x, t)
    reverse_over_forward = jit(grad(lambda x: jnp.vdot(ct, jvp(f, (x,), (t,))[1])))(x)
    if name != "inner jit":
        close(forward_over_reverse, reverse_over_forward, rtol=1e-8, atol=1e-9)


# --- size, calls and threads ----------------------------------------------------------------


def test_a_thousand_layers():
    def f(x):
        for _ in range(1000):
            x = x * 1.001 + 0.5
        return x.sum()

    x = jnp.ones(3)
    close(jit(grad(f))(x), np.full(3, 1.001**1000), rtol=1e-4)
    assert len(weft.make_jaxpr(grad(f))(x).eqns) <= 3100


def test_hundreds_of_parameters():
    params = {f"layer{i}": {"w": jnp.full(2, float(i)), "b": (None, [1.0])} for i in range(200)}
    loss = lambda p: sum(jnp.sum(v["w"] ** 2) * v["b"][1][0] for v in p.values())
    g = jit(grad(loss))(params)
    assert len(tree_leaves(g)) == 400 and list(g) == sorted(params)
    close(g["layer7"]["w"], [14, 14])
    assert g["layer7"]["b"][1][0] == 98


def test_when_programs_are_traced():
    seen = []

    @functools.partial(jit, static_argnames=("k",))
    def f(x, k=2):
        seen.append(k)
        return tree_map(lambda x: x * k, x)

    for arg in (1, 2, np.int32(3), jnp.int32(4), 1.0, 2.0, (1, 2), (3, 4), {"a": 1.0}, {"a": 2.0}):
        f(arg)
    assert len(seen) == 5  # a NumPy number is not weak
    f(1, k=3), f(2, k=3)
    assert len(seen) == 6
    f(jnp.float32(1.0))
    for _ in range(2):  # transformations share the program of the function that they transform
        grad(f)(jnp.float32(2.0)), vmap(f)(jnp.ones(3)), jit(vmap(grad(f)))(jnp.ones(4))
        jvp(f, (jnp.float32(1.0),), (jnp.float32(1.0),))
    assert len(seen) == 7


def test_compiled_ahead_of_time():
    struct = functools.partial(weft.ShapeDtypeStruct, dtype=np.float32)
    f = jit(lambda x, y: {"product": x @ y, "rest": (x.sum(), None)})
    lowered = f.lower(struct((2, 3)), struct((3, 2)))
    assert "stablehlo.dot_general" in lowered.as_text()
    compiled = lowered.compile()
    out = compiled(jnp.ones((2, 3)), np.ones((3, 2), np.float32))
    close(out["product"], np.full((2, 2), 3.0))
    assert out["rest"] == (6.0, None)
    with pytest.raises(TypeError, match="f32"):
        compiled(jnp.ones((3, 2)), jnp.ones((2, 3)))
    huge = weft.eval_shape(lambda x: x @ x.T, struct((10**6, 8)))
    assert huge.shape == (10**6, 10**6)


def test_methods_and_closures():
    class Model:
        def __init__(self, scale):
            self.scale, self.traces = scale, 0

        @functools.partial(jit, static_argnums=0)
        def __call__(self, x):
            self.traces += 1
            return self.scale * x

    double, triple = Model(2.0), Model(3.0)
    assert [double(1.0), double(5.0), triple(1.0)] == [2.0, 10.0, 3.0]
    assert (double.traces, triple.traces) == (1, 1)
    nested = lambda x: grad(lambda y: jit(lambda z: x * y * z)(x))(x)
    assert nested(3.0) == 9.0 and grad(nested)(3.0) == 6.0
    each = vmap(lambda b: jit(grad(lambda a: a * b * a))(b))
    close(each(jnp.arange(3.0)), 2 * np.arange(3.0) ** 2)


def test_threads_share_functions():
    traces, results = [], [None] * 6
    f = jit(lambda x: traces.append(x.shape) or jnp.sum(jnp.sin(x) * x))
    g = jit(vmap(grad(lambda x: jnp.sum(x**3))))

    def work(i):
        x = jnp.full(4, float(i))
        results[i] = [float(f(x)) + float(g(x[None])[0, 0]) for _ in range(10)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, result in enumerate(results):
        close(result, [4 * i * np.sin(i) + 3 * i**2] * 10, rtol=1e-4)


def test_arrays_of_no_elements():
    f = lambda x: jnp.sum(jnp.exp(x) @ jnp.ones((3, 2)), 0) + x.max(1, initial=0.0).sum()
    x = jnp.zeros((0, 3))
    close(jit(f)(x), [0, 0])
    assert jacrev(f)(x).shape == (2, 0, 3) == jacfwd(f)(x).shape
    assert vmap(grad(lambda r: (r**2).sum()))(x).shape == (0, 3)
    assert hessian(lambda x: (x**2).sum())(x).shape == (0, 3, 0, 3)
    with pytest.raises(ValueError, match="max"):
        x.max(0)
