"""Cosine transforms against SciPy."""

import numpy as np
import pytest
import scipy.fft

import weft.scipy.fft as wf
from weft import config, jit, linear_transpose, vmap
from weft.errors import DtypeError, ShapeError


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("name", ["dct", "idct"])
@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_one_axis(name, type, norm, rng):
    with config.scope(enable_x64=True):
        xs = [rng.standard_normal((3, n)) for n in (1, 2, 5, 8) if (type, n) != (1, 1)]
        found = jit(lambda xs: [getattr(wf, name)(x, type, norm=norm) for x in xs])(xs)
        for x, got in zip(xs, found, strict=True):
            want = getattr(scipy.fft, name)(x, type, norm=norm)
            np.testing.assert_allclose(got, want, atol=1e-13)


@pytest.mark.parametrize("name", ["dct", "idct"])
def test_lengths_axes_and_dtypes(name, rng):
    x = rng.standard_normal((4, 5)).astype(np.float32)
    f, reference = getattr(wf, name), getattr(scipy.fft, name)
    for n, axis in ((3, 0), (7, -1)):
        np.testing.assert_allclose(f(x, n=n, axis=axis), reference(x, n=n, axis=axis), atol=2e-5)
    np.testing.assert_allclose(f(x + 1j * x[::-1]), reference(x + 1j * x[::-1]), atol=2e-5)
    whole = rng.integers(0, 5, 6)
    assert f(whole).dtype == f(whole.astype(np.float16)).dtype == np.float32
    np.testing.assert_allclose(f(whole), reference(whole), atol=2e-5)


@pytest.mark.parametrize("name", ["dctn", "idctn"])
@pytest.mark.parametrize(
    "options", [{}, {"axes": (0, 2)}, {"s": (3, 7)}, {"axes": 1, "norm": "ortho"}, {"type": 4}]
)
def test_many_axes(name, options, rng):
    x = rng.standard_normal((3, 4, 5)).astype(np.float32)
    got, want = getattr(wf, name)(x, **options), getattr(scipy.fft, name)(x, **options)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("type", [1, 2, 3, 4])
def test_derivatives_and_batching(type, rng):
    """An orthogonal transform is transposed by its inverse."""
    x = rng.standard_normal((3, 7)).astype(np.float32)
    f = lambda x: wf.dct(x, type)
    matrix = f(np.eye(7, dtype=np.float32)).T
    (back,) = jit(linear_transpose(f, x[0]))(x[1])
    np.testing.assert_allclose(back, x[1] @ matrix, atol=1e-4)
    np.testing.assert_allclose(jit(vmap(f, 1, 1))(x.T), f(x).T, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: wf.dct(x, 5), ValueError, "dct: type must be 1, 2, 3 or 4; got 5"),
        (lambda x: wf.idct(x, norm="x"), ValueError, "idct: norm must be None, 'backward',"),
        (lambda x: wf.dct(x, n=0), ShapeError, "dct: there must be at least one point"),
        (lambda x: wf.dct(x[:, :1], 1), ShapeError, "dct: type 1 needs two points or more"),
        (lambda x: wf.dctn(x, s=(2,), axes=(0, 1)), ShapeError, "dctn: s must have a size for"),
        (
            lambda x: wf.dct([1.0]),
            DtypeError,
            "dct: operands must be arrays or numbers; got a list",
        ),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(np.ones((3, 4), np.float32))
