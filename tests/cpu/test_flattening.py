"""Programs on rows of few elements, which are compiled as on all elements in one row."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, jit, vmap
from weft.cpu.kernels import load_kernels

kernels = pytest.mark.skipif(bool(load_kernels()), reason="the kernels are not built")
X = np.random.default_rng(0).standard_normal((1000, 6)).astype(np.float32)


def is_flat(fun, *args) -> bool:
    return "weft_keep" in jit(fun).lower(*args).compile().as_text()


@kernels
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.bool_, np.float16])
def test_results_are_those_of_numpy(dtype):
    x = X.astype(dtype).reshape(2, 500, 6)
    fun = lambda x: (jnp.where(x > 0, x, (x == 1).astype(dtype)), x, x == 1)
    with weft.config.scope(enable_x64=True):
        compiled = jit(fun).lower(x).compile()
        assert "weft_keep" in compiled.as_text()
        a, b, c = compiled(x)
    np.testing.assert_array_equal(a, np.where(x > 0, x, (x == 1).astype(dtype)))
    np.testing.assert_array_equal(b, x)
    np.testing.assert_array_equal(c, x == 1)
    assert a.shape == x.shape and a.dtype == dtype and c.dtype == np.bool_


@kernels
def test_under_transformations_and_at_special_values():
    x = X.copy()
    x[0] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30]
    with np.errstate(invalid="ignore"):
        t = np.tanh(x.astype(np.float64))
        slope = (1 - t * t) * x + t
        expected = np.tanh(x) + np.float32(2) * x
    fun = lambda x, s: jnp.tanh(x) + s * x
    assert is_flat(fun, x, np.float32(2)) and is_flat(vmap(fun, (0, None)), x, np.float32(2))
    np.testing.assert_allclose(jit(vmap(fun, (0, None)))(x, 2.0), expected, rtol=1e-5)
    np.testing.assert_allclose(jit(fun)(x, 2.0), expected, rtol=1e-5)
    derived = grad(lambda x: (jnp.tanh(x) * x).sum())
    assert is_flat(derived, x)
    np.testing.assert_allclose(jit(derived)(x), slope, rtol=1e-5, atol=1e-5)


@kernels
def test_a_donated_array_and_results_that_are_equal():
    fun = lambda x, s: (x + s, x + s, s + 1, x)
    x = weft.device_put(X)
    a, b, c, d = jit(fun, donate_argnums=0)(x, np.float32(3))
    np.testing.assert_array_equal(a, X + 3)
    np.testing.assert_array_equal(b, X + 3)
    np.testing.assert_array_equal(d, X)
    assert c == 4


@kernels
def test_what_stays_as_it_is(monkeypatch):
    for fun, x in [
        (jnp.exp, X[:100]),  # few elements
        (jnp.exp, X.reshape(60, 100)),  # long rows
        (lambda x: x + x.sum(1, keepdims=True), X),
        (lambda x: x + x[0], X),
        (lambda x: x[::-1] + x, X),
        (lambda x: x, X),
        (lambda x: x + 1, X.astype(np.complex64)),
    ]:
        assert not is_flat(fun, x)
    monkeypatch.setattr("os.cpu_count", lambda: 7)  # which do not share them evenly
    assert not is_flat(lambda x: x * 5, X)
    monkeypatch.undo()
    with weft.config.scope(native=False):
        assert not is_flat(lambda x: x * 7, X)
