"""A long transform is written as transforms of its rows and columns; rules are in cases_fft.py."""

import numpy as np
import pytest

import weft
from weft.primitives.fft import FftType, fft, find_roots


@pytest.mark.parametrize("kind", [FftType.FFT, FftType.IFFT])
def test_one_long_transform(kind, rng):
    n = 390 * 410
    x = (rng.standard_normal((1, n)) + 1j * rng.standard_normal((1, n))).astype(np.complex64)
    f = weft.jit(lambda x: fft(x, kind, (n,)))
    text = f.lower(x).as_text()
    assert "fft_length = array<i64: 390>" in text and "fft_length = array<i64: 410>" in text
    want = (np.fft.fft if kind == FftType.FFT else np.fft.ifft)(x.astype(np.complex128))
    assert np.abs(f(x) - want).max() < 4e-7 * np.abs(want).max()


def test_which_are_long():
    written = lambda n, rows=1: weft.jit(lambda x: fft(x, "FFT", (n,))).lower(
        weft.ShapeDtypeStruct((rows, n), np.complex64)
    ).as_text().count("stablehlo.fft")  # fmt: skip
    with weft.config.scope(hints=False):
        # short, a prime number, a power of two whose columns meet in the caches, and many
        assert [written(n) for n in (5000, 150_001, 1 << 20, 1_000_000)] == [1, 1, 1, 2]
        assert written(250_000, 2) == 1


@pytest.mark.parametrize("n", [1, 2, 3, 8, 12, 100, 1001])
def test_roots_of_unity(n):
    angles = np.arange(n, dtype=np.longdouble) / n * 2 * np.arctan2(np.longdouble(0), -1)
    want = np.stack([np.cos(angles), -np.sin(angles)], 1)
    np.testing.assert_allclose(find_roots(n), want, rtol=0, atol=2.0**-52)
