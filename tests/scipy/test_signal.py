"""`weft.scipy.signal` against SciPy."""

# ruff: noqa: E501  (a mistake is one row)

import warnings

import numpy as np
import pytest
from scipy import signal

import weft.numpy as jnp
import weft.scipy.signal as ws
from weft import config, grad, jit, vmap
from weft.errors import ShapeError
from weft.scipy.signal import fast_length

SHAPES = [((7,), (3,)), ((3,), (6,)), ((5, 6), (3, 2)), ((3, 2), (5, 6)), ((2, 3, 4), (2, 2, 2))]
MODES = ["full", "same", "valid"]


def draw(rng, shape, dtype=np.float32):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype == np.complex64 else x).astype(dtype)


def check(name, *args, **options):
    got, want = getattr(ws, name)(*args, **options), getattr(signal, name)(*args, **options)
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    for y, w in pairs:
        assert y.shape == w.shape
        assert y.dtype == (np.complex64 if np.iscomplexobj(w) else np.float32)
        np.testing.assert_allclose(y, w, atol=1e-5 * max(1, np.abs(w).max(initial=0)))


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_convolutions(mode, dtype, rng):
    for shapes in SHAPES:
        x, k = (draw(rng, s, dtype) for s in shapes)
        for name in ("convolve", "correlate"):
            check(name, x, k, mode)
        check("convolve", x, k, mode, method="fft")
        check("fftconvolve", x, k, mode)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "options", [{}, {"boundary": "wrap"}, {"boundary": "symm"}, {"fillvalue": 1.5}]
)
def test_matrices(name, mode, options, rng):
    for shapes in SHAPES[2:4]:
        check(name, *(draw(rng, s, np.complex64) for s in shapes), mode, **options)


def test_large_and_small(rng):
    check("convolve", draw(rng, 5000), draw(rng, 4500))  # by Fourier transforms
    assert ws.convolve(2, 3) == 6
    assert ws.convolve(jnp.arange(3), jnp.arange(2)).dtype == np.float32


def test_convolution_along_some_axes(rng):
    check("fftconvolve", draw(rng, (4, 6)), draw(rng, (1, 6)), axes=1)
    check("fftconvolve", draw(rng, (4, 6)), draw(rng, (4, 8)), "valid", axes=[1])
    check("fftconvolve", draw(rng, (4, 6)), draw(rng, (4, 3)), "same", axes=-1)


@pytest.mark.parametrize(
    "options",
    [{}, {"axis": 0}, {"type": "constant"}, {"bp": 3}, {"bp": [2, 5], "axis": 1}, {"bp": 6}],
)
def test_detrend(options, rng):
    check("detrend", draw(rng, (5, 7)), **options)
    check("detrend", draw(rng, (5, 7), np.complex64), **options)


SPECTRA = [
    {},
    {"nperseg": 16, "noverlap": 3, "nfft": 21, "fs": 3.0},
    {"nperseg": 15, "scaling": "spectrum", "detrend": "linear"},
    {"nperseg": 16, "return_onesided": False, "window": "blackman"},
    {"nperseg": 16, "average": "median", "window": ("tukey", 0.5)},
    {"nperseg": 4, "noverlap": 3, "detrend": False, "window": "nuttall"},
    {"window": np.hamming(20)},
    {"nperseg": 1},
]


@pytest.mark.sample(one_in=4)
@pytest.mark.filterwarnings("ignore:nperseg=256 is greater:UserWarning")  # SciPy's
@pytest.mark.parametrize("options", SPECTRA, ids=str)
def test_power_spectra(options, rng):
    x, y = draw(rng, (3, 100)), draw(rng, (3, 100))
    check("welch", x, **options)
    check("csd", x, y, **options)
    check("csd", x, y[:, :70], **options)
    check("welch", x.T, **options, axis=0)
    check("welch", draw(rng, 100, np.complex64), **{**options, "return_onesided": False})


STFTS = [
    {"nperseg": 16},
    {"nperseg": 15, "noverlap": 4, "nfft": 21, "fs": 3.0, "window": "hamming"},
    {"nperseg": 16, "noverlap": 15, "return_onesided": False},
]
BOUNDARIES = [{"boundary": "even"}, {"boundary": "odd"}, {"boundary": "constant", "padded": False}]


@pytest.mark.parametrize("options", [*STFTS, *({"nperseg": 17, **b} for b in BOUNDARIES)], ids=str)
def test_stft(options, rng):
    check("stft", draw(rng, (3, 50)), **options)
    check("stft", draw(rng, (50, 3)), **options, axis=0)
    check(
        "stft", draw(rng, 50), **options, detrend="constant", boundary=None
    ) if options in STFTS else None


@pytest.mark.parametrize("options", STFTS, ids=str)
def test_istft(options, rng):
    x = draw(rng, (3, 50))
    z = signal.stft(x, **options)[2].astype(np.complex64)
    options = {("input_onesided" if n == "return_onesided" else n): v for n, v in options.items()}
    want = signal.istft(z, **options)[1]
    got = ws.istft(z, **options)[1]
    np.testing.assert_allclose(got, want, atol=1e-5)
    moved = ws.istft(np.moveaxis(z, -1, 0), **options, time_axis=0, freq_axis=2)
    np.testing.assert_allclose(moved[1], want.T, atol=1e-5)
    assert moved[0].shape == want.shape[-1:]
    real = got if np.isrealobj(want) else got.real
    np.testing.assert_allclose(real[:, :50], x, atol=1e-5)


def test_empty_signals():
    frequencies, power = ws.welch(jnp.ones((3, 0)))
    assert frequencies.shape == (0,)
    assert power.shape == (3, 0)


def test_complex_values_have_all_frequencies(rng):
    with pytest.warns(UserWarning, match="stft: of complex values, all frequencies"):
        frequencies, _, _ = ws.stft(draw(rng, 50, np.complex64), nperseg=16)
    assert frequencies.shape == (16,)
    with pytest.warns(UserWarning, match="welch: nperseg is 60, of 50 points; taking 50"):
        assert ws.welch(draw(rng, 50), nperseg=60)[0].shape == (26,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ws.welch(draw(rng, 50))


LOSSES = {
    "convolve2d": lambda x: ws.convolve2d(x, x[:2, :3], "same", boundary="wrap"),
    "correlate": lambda x: ws.correlate(x, x[:2], "valid"),
    "fftconvolve": lambda x: ws.fftconvolve(x, x[:, :2], axes=1),
    "detrend": lambda x: ws.detrend(x, bp=2),
    "welch": lambda x: ws.welch(x, nperseg=4)[1],
    "csd": lambda x: ws.csd(x, x**2, nperseg=4, average="median")[1],
    "istft": lambda x: ws.istft(ws.stft(x, nperseg=4)[2] ** 2, nperseg=4)[1],
}


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", LOSSES)
def test_transformations(name, rng):
    f = LOSSES[name]
    with config.scope(enable_x64=True):
        x, t = rng.standard_normal((2, 4, 6))
        loss = jit(lambda x: jnp.sum(jnp.abs(f(x)) ** 2))
        slope = (loss(x + 1e-6 * t) - loss(x - 1e-6 * t)) / 2e-6
        np.testing.assert_allclose(jnp.sum(grad(loss)(x) * t), slope, rtol=1e-6)
        xs = rng.standard_normal((2, 4, 6))
        np.testing.assert_allclose(jit(vmap(f))(xs), np.stack([f(x) for x in xs]), atol=1e-10)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: ws.convolve(x, x, "most"), ValueError, "convolve: mode must be 'full', 'same' or 'valid'; got 'most'"),
        (lambda x: ws.convolve(x, x, method="slow"), ValueError, "convolve: method must be 'auto', 'direct' or 'fft'; got 'slow'"),
        (lambda x: ws.correlate(x, x[0]), ShapeError, r"correlate: operands must be of equal rank; got f32\[4,6\], f32\[6\]"),
        (lambda x: ws.convolve(x, x[:0]), ShapeError, "convolve: operands must not be empty"),
        (lambda x: ws.convolve(x, x.T, "valid"), ShapeError, "convolve: for mode 'valid', one operand must be at least as large"),
        (lambda x: ws.convolve2d(x[0], x[0]), ShapeError, "convolve2d: operands must be of rank 2"),
        (lambda x: ws.convolve2d(x, x, boundary="b"), ValueError, "convolve2d: boundary must be 'fill', 'wrap' or 'symm'; got 'b'"),
        (lambda x: ws.fftconvolve(x, x[:3], axes=1), ShapeError, r"fftconvolve: axes other than \(1,\) must broadcast together"),
        (lambda x: ws.detrend(x, type="t"), ValueError, "detrend: type must be 'linear', 'l', 'constant' or 'c'; got 't'"),
        (lambda x: ws.detrend(x, bp=9), ShapeError, "detrend: bp must be positions along the axis, of size 6"),
        (lambda x: ws.detrend(x, overwrite_data=True), NotImplementedError, "detrend: overwrite_data must be None"),
        (lambda x: ws.welch(x, nperseg=4, noverlap=4), ShapeError, "welch: noverlap must be below nperseg, 4; got 4"),
        (lambda x: ws.welch(x, nperseg=4, nfft=2), ShapeError, "welch: nfft must be at least nperseg, 4; got 2"),
        (lambda x: ws.welch(x, nperseg=0), ShapeError, "welch: nperseg must be positive"),
        (lambda x: ws.welch(x, nperseg=4, scaling="s"), ValueError, "welch: scaling must be 'density' or 'spectrum'; got 's'"),
        (lambda x: ws.welch(x, nperseg=4, average="s"), ValueError, "welch: average must be 'mean' or 'median'; got 's'"),
        (lambda x: ws.welch(x, nperseg=4, detrend=3), ValueError, "welch: detrend must be a name, a function or False; got 3"),
        (lambda x: ws.welch(x, window=np.ones(3), nperseg=4), ShapeError, "welch: nperseg must be the length of the window; got 4 for 3"),
        (lambda x: ws.welch(x, window=np.ones(9)), ShapeError, "welch: window must not be longer than x, 6; got 9"),
        (lambda x: ws.csd(x, x[0]), ShapeError, "csd: x and y must be of equal rank"),
        (lambda x: ws.stft(x, boundary="b"), ValueError, "stft: boundary must be None, 'zeros'"),
        (lambda x: ws.istft(x[0]), ShapeError, "istft: Zxx must be of rank 2 or more"),
        (lambda x: ws.istft(x, time_axis=0, freq_axis=0), ShapeError, "istft: time_axis and freq_axis must differ"),
    ],
)  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(jnp.ones((4, 6)))


def test_lengths_that_are_fast_to_transform():
    smooth = {2**i * 3**j * 5**k for i in range(9) for j in range(6) for k in range(4)}
    for n in range(1, 200):
        assert fast_length(n) == min(m for m in smooth if m >= n)


def test_spectra_of_nothing_have_the_shapes_of_scipys():
    for x, y in (((0,), (0,)), ((2, 1, 0), (1, 3, 0))):
        x, y = np.zeros(x, np.float32), np.zeros(y, np.float32)
        assert ws.csd(x, y)[1].shape == signal.csd(x, y)[1].shape
        for axis in range(x.ndim):
            moved = np.moveaxis(x, -1, axis)
            assert ws.welch(moved, axis=axis)[1].shape == signal.welch(moved, axis=axis)[1].shape
