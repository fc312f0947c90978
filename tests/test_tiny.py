"""The first thing to run: the whole of weft in five seconds."""

import numpy as np

import weft
import weft.numpy as jnp
from weft import grad, jit, make_jaxpr, vmap

X = np.linspace(0.0, 1.0, 8, dtype=np.float32)


def f(x):
    return jnp.sum(jnp.tanh(x) * x)


def df(x):
    return np.tanh(x) + x * (1 - np.tanh(x) ** 2)


def test_an_operation_computes():
    np.testing.assert_allclose(jnp.sin(X), np.sin(X), rtol=1e-6)


def test_arithmetic_reads_as_numpy():
    x = jnp.asarray(X)
    np.testing.assert_allclose((2 * x + 1) / (x - 3) ** 2, (2 * X + 1) / (X - 3) ** 2, rtol=1e-6)


def test_grad():
    np.testing.assert_allclose(grad(f)(X), df(X), rtol=1e-5)


def test_jit_of_grad_runs_again_without_tracing():
    traces = []

    @jit
    def g(x):
        traces.append(x)
        return grad(f)(x)

    for _ in range(3):
        np.testing.assert_allclose(g(X), df(X), rtol=1e-5)
    assert len(traces) == 1


def test_vmap_of_grad_is_a_loop():
    xs = np.stack([X, 2 * X, 3 * X])
    np.testing.assert_allclose(vmap(grad(f))(xs), np.stack([df(x) for x in xs]), rtol=1e-5)


def test_three_deep():
    second = vmap(lambda x: weft.jvp(jit(grad(f)), (x,), (jnp.ones(8),))[1])(np.stack([X, X]))
    eps = 1e-3
    expected = (df(X.astype(np.float64) + eps) - df(X.astype(np.float64) - eps)) / (2 * eps)
    np.testing.assert_allclose(second[0], expected, rtol=1e-3, atol=1e-3)


def test_a_jaxpr_reads():
    assert str(make_jaxpr(lambda x: jnp.sin(x) * 3.0)(X)) == (
        "{ lambda ; a:f32[8]. let b:f32[8] = sin a; c:f32[8] = mul b 3.0 in (c,) }"
    )


def test_pytrees_in_and_out():
    params = {"w": np.float32(2.0), "b": (X, None)}
    gradient = grad(lambda p: jnp.sum(p["w"] * p["b"][0]))(params)
    np.testing.assert_allclose(gradient["w"], X.sum(), rtol=1e-6)
    np.testing.assert_allclose(gradient["b"][0], np.full(8, 2.0), rtol=1e-6)
    assert gradient["b"][1] is None


def test_a_matrix_product_and_its_gradient():
    w = np.arange(12, dtype=np.float32).reshape(3, 4)
    got = grad(lambda w: jnp.sum(jnp.dot(w, jnp.ones(4)) ** 2))(w)
    np.testing.assert_allclose(got, 2 * w.sum(1, keepdims=True) * np.ones_like(w), rtol=1e-6)


def test_indexing_and_updating():
    x = jnp.arange(5.0)
    np.testing.assert_array_equal(x[1:4:2], [1.0, 3.0])
    np.testing.assert_array_equal(x.at[jnp.array([0, 0])].add(1.0), [2.0, 1.0, 2.0, 3.0, 4.0])
