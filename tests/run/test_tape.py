"""Reverse mode operation by operation, against the derivative that `jit` compiles as a whole.

Most tests of derivatives run on a tape. This file tests properties of the tape: when it is used,
the values that it keeps, and the kinds of values that it accepts.
"""

import gc
import weakref

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import custom_vjp, grad, jit, lax, nn, value_and_grad, vjp, vmap
from weft.run import hot, rules, tape

W = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
X = np.float32([0.3, -0.7, 1.1])


def many_operations(w, x):
    """Operations with one result and several, with operands that do not move, and integers."""
    h = jnp.tanh(x @ w) + jnp.concatenate([x[:1], jnp.flip(x)])
    largest, place = lax.top_k(h, 2)
    order = jnp.argsort(h)
    q, r = jnp.linalg.qr(w + jnp.eye(3, 4))
    h = jnp.where(h > 0, h, jnp.exp(h))[order] * place[0].astype(h.dtype)
    return h.sum() + largest @ largest + jnp.trace(q @ r[:, :3]) ** 3 + nn.logsumexp(w * 2)


@custom_vjp
def halved(x):
    return jnp.sin(x)


halved.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.cos(x) / 2,))

PROGRAMS = {
    "many operations": many_operations,
    "a value used often": lambda w, x: (x * x + x).sum() * w.sum() + (x @ w).sum() * x[0],
    "nothing of one argument": lambda w, x: (w**3).sum(),
    "results that are not used": lambda w, x: jnp.linalg.qr(w)[1].sum() + x[0],
    "a loop, a branch and a jitted function": lambda w, x: lax.fori_loop(
        0, 3, lambda i, c: lax.cond(i == 1, jnp.sin, jit(lambda c: c @ w[:, :3]), c), x
    ).sum(),
    "a rule of the user's": lambda w, x: halved(w).sum() * halved(x[0]),
    "a mapped derivative": lambda w, x: vmap(grad(lambda v: jnp.sin(v @ x)))(w.T).sum(),
    "a complex value": lambda w, x: jnp.abs(jnp.fft.fft(w) * (1 + 2j)).sum() + x.sum(),
    "a derivative": lambda w, x: grad(lambda v: (v @ w).sum() ** 3)(x).sum(),
}


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_gives_what_the_compiled_derivative_gives(name):
    fun = PROGRAMS[name]
    w, x = jnp.asarray(W), jnp.asarray(X)
    value, grads = value_and_grad(fun, (0, 1))(w, x)
    expected, others = jit(value_and_grad(fun, (0, 1)))(w, x)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for a, b in zip(grads, others, strict=True):
        assert a.aval is b.aval
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


def test_a_pullback_is_mapped_and_compiled_and_has_residuals_as_leaves():
    y, pull = vjp(lambda w, x: jnp.tanh(x @ w), jnp.asarray(W), X)
    cts = np.eye(4, dtype=np.float32)
    rows = [pull(ct) for ct in cts]
    for mapped in (vmap(pull)(jnp.asarray(cts)), jit(vmap(pull))(jnp.asarray(cts))):
        for i in range(2):
            np.testing.assert_allclose(mapped[i], np.stack([row[i] for row in rows]), rtol=1e-6)
    leaves, tree = weft.tree.flatten(pull)
    assert leaves and all(isinstance(x, jnp.ndarray | np.ndarray) for x in leaves)
    again = weft.tree.unflatten(tree, leaves)(cts[1])
    np.testing.assert_array_equal(again[0], rows[1][0])
    doubled = weft.tree.map(lambda x: 2 * x, pull)  # of (1 - y^2), x and w
    np.testing.assert_allclose(doubled(cts[1])[1], 4 * rows[1][1], rtol=1e-6)
    (ct,) = jit(lambda pull, ct: pull(ct)[1:])(pull, cts[2])
    np.testing.assert_allclose(ct, rows[2][1], rtol=1e-6)


def test_types_are_those_of_the_arguments():
    for x in (2.0, np.float32(2), jnp.float16(2), jnp.bfloat16(2), 2 + 1j):
        holomorphic = isinstance(x, complex)
        g = grad(lambda x: x * x * 3, holomorphic=holomorphic)
        assert g(x).aval is jit(g)(x).aval
    f = grad(lambda x, n: x**2 * n, (0, 1), allow_int=True)
    (a, b) = f(3.0, 2)
    assert float(a) == 12 and b.dtype == weft.float0


def smooth(x):
    """Operations that run as one, that have a rule of the user's, and that hold programs."""
    picked = jnp.take_along_axis(nn.softmax(x * 2), jnp.argsort(x)[:2], 0)
    looped = lax.fori_loop(0, 2, lambda i, c: jnp.tanh(c) + x[i], x)
    return (picked * looped[:2]).mean() * halved(x).sum() + jnp.where(x > 0, x, x**3).prod()


def along(f, direction=np.float32([1, -2, 0.5])):
    return lambda x: weft.jvp(f, (x,), (direction,))[1]


def pulled(f):
    return lambda x: vjp(lambda x: vjp(f, x)[1](jnp.float32(2))[0], x)[1](jnp.cos(x))


ROWS = np.stack([X, X[::-1] + 1])
NESTED = {
    "vmap of grad": (lambda f: vmap(value_and_grad(f)), ROWS),
    "grad of vmap": (lambda f: grad(lambda x: (vmap(f)(x) ** 2).sum()), ROWS),
    "jvp of grad": (lambda f: along(grad(f)), X),
    "linearize of grad": (lambda f: lambda x: weft.linearize(grad(f), x)[1](X), X),
    "vjp of vjp": (pulled, X),
    "jacfwd of jacrev": (weft.hessian, X),
    "jacrev of jacfwd": (lambda _: weft.jacrev(weft.jacfwd(lambda x: jnp.tanh(x) * x[0])), X),
    "vmap of vmap of grad": (lambda f: vmap(vmap(grad(f))), ROWS[None]),
    "vmap of jvp of grad": (lambda f: vmap(along(grad(f))), ROWS),
    "jvp of vmap of grad": (lambda f: along(vmap(grad(f)), ROWS), ROWS),
    "grad of grad of grad": (
        lambda f: grad(lambda x: (grad(lambda x: grad(f)(x)[0] ** 2)(x) * X).sum()),
        X,
    ),
}


@pytest.fixture
def by_the_second_use(monkeypatch):
    """Compile rules, and all operations on a tape, at their second use."""
    weft.clear_caches()
    monkeypatch.setattr(hot, "HOT", 2)


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("name", NESTED)
def test_nested_transformations_give_what_they_give_compiled_whole(name, by_the_second_use):
    derive, x = NESTED[name]
    found, expected = derive(smooth), weft.tree.leaves(jit(derive(smooth))(x))
    for _ in range(3):
        for a, b in zip(weft.tree.leaves(found(jnp.asarray(x))), expected, strict=True):
            assert a.aval is b.aval
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-4)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize(
    "way",
    [
        lambda f, x: grad(f, (0, 1))(*x),
        lambda f, x: grad(lambda x, y: weft.checkpoint(f)(x, y) * y, (0, 1))(*x),
        lambda f, x: weft.linearize(lambda x: f(*x), x)[1](x),
        lambda f, x: vmap(grad(f, (0, 1)), (0, None))(x[0][None], x[1]),
        lambda f, x: weft.jacrev(lambda x, y: f(x, y) * x)(*x),
        lambda f, x: weft.jacfwd(lambda x, y: f(x, y) * x)(*x),
    ],
)
def test_used_often_a_derivative_is_one_program(way, by_the_second_use):
    fun = lambda x, y: (jnp.sinh(x) * y + x).sum()
    given = jnp.asarray(X), 1.5
    first, *others = [weft.tree.leaves(way(fun, given)) for _ in range(4)]
    (whole,) = rules.WALKS.values()
    assert whole.uses == 2 and whole.program.jaxpr.eqns
    for leaves in others:
        for a, b in zip(leaves, first, strict=True):
            assert a.aval is b.aval
            np.testing.assert_allclose(a, b, rtol=1e-6)
    weft.clear_caches()
    assert not rules.WALKS


def test_of_many_derivatives_few_are_kept(monkeypatch, by_the_second_use):
    monkeypatch.setattr(tape, "MAX_WALKS", 3)
    monkeypatch.setattr(tape, "MAX_STEPS", 6)

    def power(x, n):
        for _ in range(n):
            x = lax.sin(x)
        return x

    for n in range(1, 9):
        pull = vjp(lambda x, n=n: power(x, n), 1.0)[1]
        assert [float(pull(2.0)[0]) for _ in range(3)] == pytest.approx(
            [2 * float(jit(grad(power), static_argnums=1)(1.0, n))] * 3
        )
    assert [len(key[2]) for key in rules.WALKS] == [4, 5, 6]


def test_what_moves_is_asked_of_operands_not_of_values():
    seen = []

    def fun(x, y):
        a = jnp.sin(x) if x > 0 else x  # values are there
        seen.append((type(a).__name__, type(y + 1).__name__))
        return a * y

    assert float(grad(fun)(1.0, jnp.float32(2))) == pytest.approx(2 * np.cos(1.0))
    assert seen == [("JVPTracer", "ArrayImpl")]


def test_rules_are_made_once_and_forgotten():
    fun = lambda x: (jnp.sinh(x) * 1.5).sum()
    x = jnp.asarray(X)
    weft.clear_caches()
    assert not rules.RULES
    grad(fun)(x)
    made = [r for r in rules.RULES.values() if type(r) is rules.LinearizeRule]
    assert [r.made_of[0].name for r in made] == ["sinh", "mul", "reduce_sum"]
    grad(fun)(x + 1)
    assert [r for r in rules.RULES.values() if type(r) is rules.LinearizeRule] == made


def test_an_operand_that_is_a_residual_is_kept_itself():
    x = jnp.asarray(W)
    _, pull = vjp(lambda x: x * x, x)
    assert all(leaf is x for leaf in weft.tree.leaves(pull))


def test_values_go_with_the_pullback():
    y, pull = vjp(lambda x: jnp.exp(jnp.sin(x)), jnp.asarray(X))
    kept = [weakref.ref(leaf) for leaf in weft.tree.leaves(pull)]
    del y, pull
    gc.collect()
    assert not [r for r in kept if r() is not None]


def test_where_programs_are_asked_for_there_is_no_tape(monkeypatch):
    monkeypatch.setattr(tape, "record", None)  # what would fail
    monkeypatch.setattr("weft.api.grad.record", None)
    g = grad(lambda x: jnp.sin(x).sum())
    x = jnp.asarray(X)
    expected = np.cos(X)
    np.testing.assert_allclose(jit(g)(x), expected, rtol=1e-5)
    assert "cos" in str(weft.make_jaxpr(g)(x))
    with weft.debug_nans(True):
        np.testing.assert_allclose(g(x), expected, rtol=1e-5)
