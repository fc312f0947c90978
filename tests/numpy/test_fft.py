"""`weft.numpy.fft` against NumPy; `lax.fft`'s conversions and errors."""

# ruff: noqa: E501  (a mistake is one row)

import ml_dtypes
import numpy as np
import pytest

import weft.numpy as jnp
from weft import config, grad, jit, jvp, lax, make_jaxpr, vmap
from weft.errors import DtypeError, ShapeError

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
MANY = ["fftn", "ifftn", "rfftn", "irfftn"]


def draw(rng, name, *shape, dtype=np.float32):
    """Values that the transform takes: real ones for rfft and ihfft."""
    x = rng.standard_normal(shape)
    if name in ("rfft", "ihfft", "rfft2", "rfftn"):
        return x.astype(dtype)
    return (x + 1j * rng.standard_normal(shape)).astype(np.result_type(dtype, np.complex64))


def check(name, x, *args, **kwargs):
    got = getattr(jnp.fft, name)(x, *args, **kwargs)
    want = getattr(np.fft, name)(x, *args, **kwargs)
    assert got.shape == want.shape
    assert got.dtype == (np.complex64 if np.iscomplexobj(want) else np.float32)
    np.testing.assert_allclose(
        got, want, rtol=1e-5, atol=1e-5 * max(1, np.abs(want).max(initial=0))
    )


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_one_axis(name, norm, rng):
    x = draw(rng, name, 5, 6)
    for n, axis in ((None, -1), (None, 0), (4, -1), (9, 0)):
        check(name, x, n=n, axis=axis, norm=norm)


@pytest.mark.parametrize("name", MANY)
def test_many_axes(name, rng):
    x = draw(rng, name, 4, 5, 6)
    check(name, x)
    check(name, x, axes=(2, 0), norm="ortho")
    check(name, x, s=(3, 9), axes=(0, 1), norm="forward")
    check(name, x, s=(-1, 5), axes=(-1, 1))
    check(name[:-1] + "2", x, s=(3, 8))
    check(name, draw(rng, name, 2, 3, 2, 3, 4))
    check(name, draw(rng, name, 2, 3, 2, 3, 4), axes=(4, 1, 0, 3))
    check(name, draw(rng, name, 0, 4), axes=(1,))
    got = getattr(jnp.fft, name)(x, s=(3, 4))  # NumPy warns of axes left out
    np.testing.assert_array_equal(got, getattr(jnp.fft, name)(x, s=(3, 4), axes=(1, 2)))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint32, np.float16, ml_dtypes.bfloat16])
def test_other_dtypes_become_single_precision(dtype, rng):
    x = rng.integers(0, 2, 6).astype(dtype)
    for name in ("fft", "rfft", "irfft"):
        got = getattr(jnp.fft, name)(x)
        want = getattr(np.fft, name)(x.astype(np.float32))
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, atol=1e-6)


def test_double_precision(rng):
    with config.scope(enable_x64=True):
        x = rng.standard_normal((3, 10))
        assert jnp.fft.rfft(x).dtype == np.complex128
        np.testing.assert_allclose(jnp.fft.irfft(jnp.fft.rfft(x)), x, rtol=1e-13)
        assert jnp.fft.fftfreq(4).dtype == np.float64


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", ["fft", "rfft", "irfft", "hfft", "rfftn", "irfftn"])
def test_derivatives(name, rng):
    with config.scope(enable_x64=True):
        x = draw(rng, name, 3, 5, dtype=np.float64)
        t = draw(rng, name, 3, 5, dtype=np.float64)
        f = getattr(jnp.fft, name)
        _, dot = jvp(f, (x,), (t,))
        np.testing.assert_allclose(dot, f(t), rtol=1e-12)

        def loss(x):
            return jnp.sum(jnp.abs(f(x)) ** 2)

        eps = 1e-6
        slope = (loss(x + eps * t) - loss(x - eps * t)) / (2 * eps)
        np.testing.assert_allclose(jnp.sum(grad(loss)(x) * t).real, slope, rtol=1e-7)


def test_transformations(rng):
    x = draw(rng, "rfft", 4, 6, 5)
    f = lambda x: jnp.fft.rfftn(x, s=(4, 8), norm="ortho")
    want = np.stack([f(row) for row in x])
    np.testing.assert_allclose(vmap(f)(x), want, atol=1e-6)
    np.testing.assert_allclose(
        jit(vmap(f, 1, 2))(x.swapaxes(0, 1)), np.moveaxis(want, 0, 2), atol=1e-6
    )


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies(n):
    for d in (1.0, 2, 0.1):
        np.testing.assert_allclose(jnp.fft.fftfreq(n, d), np.fft.fftfreq(n, d), rtol=1e-6)
        np.testing.assert_allclose(jnp.fft.rfftfreq(n, d), np.fft.rfftfreq(n, d), rtol=1e-6)
    assert jnp.fft.fftfreq(n, dtype=jnp.float16).dtype == np.float16
    np.testing.assert_allclose(jit(lambda d: jnp.fft.fftfreq(n, d))(2.0), np.fft.fftfreq(n, 2.0))


@pytest.mark.parametrize("axes", [None, 0, -1, (0, 1)])
def test_shifts(axes, rng):
    x = rng.integers(0, 9, (4, 5))
    for name in ("fftshift", "ifftshift"):
        np.testing.assert_array_equal(
            getattr(jnp.fft, name)(x, axes), getattr(np.fft, name)(x, axes)
        )


def test_lax_fft_converts_its_operand():
    assert lax.fft(jnp.arange(4), "fft", (4,)).dtype == np.complex64
    assert lax.fft(jnp.arange(4), lax.FftType.RFFT, [4]).shape == (3,)
    assert lax.fft(1.0, "FFT", ()).dtype == np.complex64
    jaxpr = make_jaxpr(lambda x: lax.fft(x, "irfft", (6,)))(jnp.ones(4))
    assert jaxpr.eqns[-1].params == {"fft_type": 3, "fft_lengths": (6,)}


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: jnp.fft.rfft(x + 1j), DtypeError, r"rfft: operands must be real; got c64\[3,4\]. Hint: jnp.fft.fft\(x\)"),
        (lambda x: jnp.fft.fft(x, 0), ShapeError, "fft: there must be at least one point along each axis; got 0"),
        (lambda x: jnp.fft.rfft(x[:0], axis=0), ShapeError, "at least one point"),
        (lambda x: jnp.fft.irfft(x[:, :1]), ShapeError, "irfft: there must be at least one point"),
        (lambda x: jnp.fft.fft(x, axis=2), ShapeError, "fft: axis must name an axis of an array of rank 2; got 2"),
        (lambda x: jnp.fft.fftn(x, axes=(0, 0)), ShapeError, "fftn: axes must be distinct"),
        (lambda x: jnp.fft.fftn(x, (2,), axes=(0, 1)), ShapeError, "fftn: s must have a size for each of axes"),
        (lambda x: jnp.fft.rfftn(x, axes=()), ShapeError, "rfftn: there must be an axis to transform"),
        (lambda x: jnp.fft.fft2(x, axes=(0,)), ShapeError, r"fft2: axes must be two; got \(0,\). Hint: jnp.fft.fftn"),
        (lambda x: jnp.fft.hfft(x, norm="x"), ValueError, "hfft: norm must be None, 'backward', 'ortho' or 'forward'; got 'x'"),
        (lambda x: jnp.fft.fft([1.0, 2.0]), DtypeError, "fft: operands must be arrays or numbers; got a list"),
        (lambda x: jnp.fft.fftfreq(0), ShapeError, "fftfreq: n must be positive; got 0"),
        (lambda x: jnp.fft.fftfreq(4, x), ShapeError, "fftfreq: d must be a scalar"),
        (lambda x: jnp.fft.rfftfreq(4, dtype=int), DtypeError, "rfftfreq: dtype must be a float's; got int32"),
        (lambda x: lax.fft(x, "fast", (4,)), ValueError, "fft: fft_type must be a FftType or one of"),
        (lambda x: lax.fft(x, "fft", (5,)), ShapeError, r"last axes of x must be of sizes \(5,\) for FFT"),
        (lambda x: lax.fft(x, "irfft", (8,)), ShapeError, r"last axes of x must be of sizes \(5,\) for IRFFT"),
        (lambda x: lax.fft(x, "fft", (1, 1, 3, 4)), ShapeError, "must have one to three sizes"),
        (lambda x: lax.fft(x + 1j, "rfft", (4,)), DtypeError, "RFFT takes float32 or float64"),
        (lambda x: lax.fft(x.astype(jnp.float16), "rfft", (4,)), DtypeError, "takes float32 or"),
    ],
)  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(jnp.ones((3, 4)))


def test_transforms_of_nothing_are_nothing():
    x = jnp.zeros((0, 3))
    assert jnp.fft.fftn(x).shape == jnp.fft.ifft(x, axis=0).shape == (0, 3)
    assert jnp.fft.fftn(x).dtype == jnp.complex64


def test_numbers_of_points_that_are_none():
    for call in (lambda: jnp.fft.fftfreq("a"), lambda: jnp.fft.fft(jnp.ones(3), "a")):
        with pytest.raises(TypeError, match=r"fft\w*: .* must be an integer; got 'a'"):
            call()
    with pytest.raises(ShapeError, match=r"2\*\*63 bytes"):
        jnp.fft.fftfreq(10**19)


def test_zeros_of_real_values_have_the_signs_of_numpy():
    for x in ([1.0, 0, 0, 0], [-1.0, 0, 0, 0], [0.0] * 6, [1.0, 2, 3, 4]):
        for fun, numpys in ((jnp.fft.fft, np.fft.fft), (jnp.fft.ifft, np.fft.ifft)):
            got, want = np.asarray(fun(jnp.array(x))), numpys(x)
            np.testing.assert_array_equal(np.signbit(got.imag), np.signbit(want.imag))
