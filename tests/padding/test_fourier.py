"""Fourier transforms of lengths that vary, against NumPy's in double precision."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.padding.fourier import choose_length, square_modulo

LENGTHS = (1, 2, 7, 12, 13, 100, 243, 251, 1000)
KINDS = {
    "fft": (lambda x: jnp.fft.fft(x), np.fft.fft),
    "ifft": (lambda x: jnp.fft.ifft(x, norm="ortho"), lambda x: np.fft.ifft(x, norm="ortho")),
    "rfft": (lambda x: jnp.fft.rfft(jnp.real(x)), lambda x: np.fft.rfft(x.real)),
    "irfft": (
        lambda x: jnp.fft.irfft(jnp.concatenate([x, x])),
        lambda x: np.fft.irfft(np.concatenate([x, x])),
    ),
    "derivative": (
        weft.grad(lambda x: (jnp.fft.rfft(jnp.real(x)) * jnp.arange(x.size // 2 + 1)).real.sum()),
        lambda x: sum(
            k * np.cos(2 * np.pi * k * np.arange(x.size) / x.size) for k in range(x.size // 2 + 1)
        ),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_transforms_are_as_exact_as_those_of_a_fixed_length(kind):
    padded, reference = KINDS[kind]
    run, rng = weft.jit(padded, sizes="n"), np.random.default_rng(0)
    for n in LENGTHS if kind == "fft" else LENGTHS[3:6]:
        x = (rng.normal(size=n) + 1j * rng.normal(size=n)).astype(np.complex64)
        want = reference(x.astype(complex))
        error = np.abs(np.asarray(run(x)) - want).max() / np.abs(want).max()
        assert error < 1e-6, (n, error)


def test_axes_in_any_order_and_padding_of_any_values():
    run = weft.jit(lambda x: jnp.fft.rfftn(x), sizes="n, m")
    x = np.random.default_rng(0).normal(size=(9, 13)).astype(np.float32)
    np.testing.assert_allclose(run(x), np.fft.rfftn(x), 1e-4, 1e-4)
    memory = np.full((16, 16), np.nan, np.float32)
    memory[:9, :13] = x
    (found,) = run.lower(x).compile()(jnp.int32(9), jnp.int32(13), memory)
    np.testing.assert_allclose(found[:9, :7], np.fft.rfftn(x), 1e-4, 1e-4)
    grad = weft.jit(weft.grad(lambda x: (jnp.fft.irfft(x + 1j * x) ** 2).sum()), sizes="_, n")
    plain = weft.grad(lambda x: (jnp.fft.irfft(x + 1j * x) ** 2).sum())(jnp.asarray(x))
    np.testing.assert_allclose(grad(x), plain, 1e-4, 1e-5)


@pytest.mark.parametrize("transform", [jnp.fft.fft, jnp.fft.ifft, jnp.fft.rfft])
def test_one_infinite_element_is_its_own_transform(transform):
    fun = lambda x: transform(x, norm="ortho").real
    for value in (np.inf, 2.0):
        x = np.array([value], np.float32)
        np.testing.assert_array_equal(weft.jit(fun, sizes="n")(x), fun(x))


def test_squares_do_not_overflow():
    x = np.concatenate([np.arange(2**15), np.arange(2**21 - 2**17, 2**21)]).astype(np.int32)
    for n in (1, 2, 997, 2**19 + 7, 2**20):
        want = x.astype(np.int64) ** 2 % (2 * n)
        np.testing.assert_array_equal(square_modulo(jnp.asarray(x), 2 * n), want)
    assert [choose_length(n) for n in (1, 2, 3, 5, 9, 13, 100)] == [1, 2, 3, 6, 12, 16, 128]


def test_a_transform_that_is_too_long_is_refused():
    run = weft.jit(jnp.fft.fft, sizes="n", buckets=[2**21])
    with pytest.raises(weft.errors.ShapeError, match="fft: .* bucket of at most 1048576"):
        run(jnp.ones(5))
