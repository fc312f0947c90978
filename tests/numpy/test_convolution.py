"""`convolve`, `correlate` and the windows against NumPy. Large ones: test_channelwise.py."""

# ruff: noqa: E501  (a mistake is one row)

import functools

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import weft.numpy as jnp
from weft import config, grad, jit, vmap
from weft.errors import DtypeError, InconclusiveDimensionOperation, ShapeError
from weft.scipy import special

SIZES = [(1, 1), (5, 3), (3, 5), (4, 4), (6, 4), (2, 5), (70, 2), (30, 25)]


def draw(rng, n, dtype):
    x = rng.uniform(-3, 3, n)
    return (x + 1j * rng.uniform(-3, 3, n) if dtype == np.complex64 else x).astype(dtype)


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int32])
def test_values(name, mode, dtype, rng):
    pairs = [(draw(rng, n, dtype), draw(rng, m, dtype)) for n, m in SIZES]
    found = jit(lambda pairs: [getattr(jnp, name)(a, v, mode) for a, v in pairs])(pairs)
    for got, (a, v) in zip(found, pairs, strict=True):
        want = getattr(np, name)(a, v, mode)
        assert got.shape == want.shape
        assert got.dtype == (np.float32 if dtype == np.int32 else dtype)
        np.testing.assert_allclose(got, want, atol=2e-5)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float16, ml_dtypes.bfloat16, np.float64])
def test_dtypes(dtype, rng):
    a, v = (rng.integers(0, 3, n).astype(dtype) for n in (6, 3))
    got = jnp.convolve(a, v)
    narrow = dtype in (np.float16, ml_dtypes.bfloat16)
    assert got.dtype == (dtype if narrow else np.float32)
    want = np.convolve(a.astype(np.float32), v.astype(np.float32))
    np.testing.assert_array_equal(np.asarray(got, np.float32), want)
    wide = jnp.convolve(a, v, preferred_element_type=jnp.float32, precision="highest")
    assert wide.dtype == np.float32
    with config.scope(enable_x64=True):
        assert jnp.convolve(a.astype(float), v.astype(float)).dtype == np.float64


@pytest.mark.parametrize("sizes", [(6, 3), (40, 30)])
def test_derivatives(sizes, rng):
    with config.scope(enable_x64=True):
        a, v, da, dv = (rng.standard_normal(n) for n in (*sizes, *sizes))
        loss = lambda a, v: jnp.sum(jnp.convolve(a, v, "same") ** 3)
        ga, gv = grad(loss, (0, 1))(a, v)
        eps = 1e-6
        slope = (loss(a + eps * da, v + eps * dv) - loss(a - eps * da, v - eps * dv)) / (2 * eps)
        np.testing.assert_allclose(ga @ da + gv @ dv, slope, rtol=1e-6)


def test_transformations(rng):
    a, v = draw(rng, (3, 6), np.float32), draw(rng, (3, 4), np.float32)
    want = [np.correlate(x, y, "full") for x, y in zip(a, v, strict=True)]
    got = jit(vmap(lambda x, y: jnp.correlate(x, y, "full")))(a, v)
    np.testing.assert_allclose(got, want, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: jnp.convolve(x, x[None]), ShapeError, r"convolve: operands must be of rank 1; got f32\[3\], f32\[1,3\]"),
        (lambda x: jnp.convolve(x, 2.0), ShapeError, "convolve: operands must be of rank 1"),
        (lambda x: jnp.correlate(x, x[:0]), ShapeError, "correlate: operands must not be empty"),
        (lambda x: jnp.convolve(x, x, "most"), ValueError, "convolve: mode must be 'full', 'same' or 'valid'; got 'most'"),
        (lambda x: jnp.convolve(x, [1.0]), DtypeError, "convolve: operands must be arrays or numbers; got a list"),
        (lambda x: jnp.convolve(x, x, preferred_element_type=jnp.float16), DtypeError, "preferred_element_type must hold values of the operands' dtype; got float16"),
        (lambda x: jnp.kaiser(5, x), ShapeError, r"kaiser: beta must be a scalar or of shape \(5,\)"),
        (lambda x: jnp.kaiser(5, 1j), DtypeError, "kaiser: beta must be real"),
        (lambda x: jnp.hanning(2.5), TypeError, "hanning: M must be an integer; got 2.5"),
    ],
)  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(jnp.ones(3))


@pytest.mark.parametrize("name", ["bartlett", "hanning", "kaiser"])
def test_windows_of_symbolic_size_are_refused_by_name(name):
    window = functools.partial(getattr(jnp, name), **({"beta": 1.0} if name == "kaiser" else {}))
    with pytest.raises(InconclusiveDimensionOperation, match=f"{name}: M must be a number; got"):
        jit(lambda x: x * window(x.shape[0]), sizes="n")(np.ones(5, np.float32))


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
def test_windows(name):
    for M in (-1, 0, 1, 2, 5, 12):
        got = getattr(jnp, name)(M)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, getattr(np, name)(M), atol=1e-7)
    with config.scope(enable_x64=True):
        np.testing.assert_array_equal(getattr(jnp, name)(9), getattr(np, name)(9))


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("beta", [0.0, 2.5, 14.0, -3.0])
def test_kaiser(beta):
    for M in (0, 1, 2, 7):
        np.testing.assert_allclose(jnp.kaiser(M, beta), np.kaiser(M, beta), rtol=2e-6)
    with config.scope(enable_x64=True):
        total = lambda b: jnp.sum(jnp.kaiser(7, b))
        slope = (total(beta + 1e-6) - total(beta - 1e-6)) / 2e-6
        np.testing.assert_allclose(grad(total)(beta), slope, atol=1e-7)


def test_i0_is_as_large_as_its_dtype_allows():
    """The value is finite where exp(x) overflows; at infinity it is infinite."""
    x = np.array([0.0, 1.0, -3.0, 88.0, 91.5, 3e38, -3e38, np.inf, -np.inf, np.nan], np.float32)
    want = np.where(np.isinf(x), np.inf, scipy.special.i0(x.astype(float)))
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(jnp.i0(x), want.astype(np.float32), rtol=2e-6)
    np.testing.assert_allclose(special.i0(x), jnp.i0(x), rtol=2e-6)
    np.testing.assert_allclose(special.i1(x[:3]), scipy.special.i1(x[:3]), rtol=2e-6)
    assert special.i1(x[5:9]).tolist() == [np.inf, -np.inf, np.inf, -np.inf]


def test_derivatives_of_i0_at_zero():
    slope = grad(jnp.i0)
    assert slope(0.0) == slope(-0.0) == 0
    np.testing.assert_allclose(grad(slope)(0.0), 0.5)
    np.testing.assert_allclose(slope(-1.0), -0.5651591, rtol=1e-5)
