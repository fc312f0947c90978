"""Fourier transforms whose length is known only when the program runs.

A transform of length n is a convolution with a chirp: with w[j] = exp(-pi i j^2 / n),
X[k] = w[k] sum_j (x[j] w[j]) conj(w[k - j]). The convolution is computed by transforms of a fixed
length (Bluestein, "A linear filtering approach to the computation of discrete Fourier transform",
1970). The exponents are reduced modulo 2n as integers, so that angles are as exact as the dtype.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import weft.lax as lax
import weft.numpy as jnp
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Eqn
from weft.padding.sizes import INDEX, Sizes, refusal
from weft.primitives.elementwise import div, rem
from weft.primitives.fft import FftType, fft_p
from weft.primitives.layout import convert, iota

MAX_LENGTH = 2**20  # the products of `square_modulo` fit 32 bits up to here


def pad_fft(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Run a Fourier transform, one axis after the other if one of them is padded."""
    (x,), aval = ins, eqn.invars[0].aval
    kind, lengths = eqn.params["fft_type"], eqn.params["fft_lengths"]
    rank, last = aval.ndim, aval.ndim - 1
    axes = range(rank - len(lengths), rank)
    if all(type(n) is int for n in lengths):
        return fft_p.apply(x, **eqn.params)
    if any(sizes.bound(n) > MAX_LENGTH for n in lengths):
        raise refusal(eqn, f"a Fourier transform must have a bucket of at most {MAX_LENGTH}")
    length = dict(zip(axes, lengths, strict=True))
    complex_kind = FftType.IFFT if kind in (FftType.IFFT, FftType.IRFFT) else FftType.FFT
    if kind == FftType.RFFT:
        x = transform_axis(x, last, kind, length[last], sizes, aval)
    for axis in axes:
        if axis != last or kind in (FftType.FFT, FftType.IFFT):
            x = transform_axis(x, axis, complex_kind, length[axis], sizes, aval)
    if kind == FftType.IRFFT:
        x = transform_axis(x, last, kind, length[last], sizes, aval)
    return [x]


def transform_axis(
    x: Any, axis: int, kind: FftType, n: Any, sizes: Sizes, aval: ShapedArray
) -> Any:
    """Return the transform of length n along one axis.

    Args:
      x: the padded array.
      axis: the axis.
      kind: the kind of the transform.
      n: the length, a number or a symbolic size.
      sizes: the sizes of the program.
      aval: the symbolic type of the array that is padded along `axis` as `x` is.
    """
    if type(n) is int:
        rows = jnp.moveaxis(x, axis, -1)
        (rows,) = fft_p.apply(rows, fft_type=kind, fft_lengths=(n,))
        return jnp.moveaxis(rows, -1, axis)
    found = typeof(x)
    shape = [k if a == axis else m for a, (k, m) in enumerate(zip(aval.shape, found.shape))]
    x = sizes.mask(x, found.update(shape=tuple(shape)), (axis,), 0)
    rows, length = jnp.moveaxis(x, axis, -1), sizes.value(n)
    if kind == FftType.IRFFT:
        rows = double_pairs(rows, length)
    bound = sizes.bound(n)
    rows = transform_rows(rows, length, bound, kind in (FftType.IFFT, FftType.IRFFT))
    if kind == FftType.RFFT:
        rows = lax.slice_in_dim(rows, 0, bound // 2 + 1, axis=-1)
    if kind == FftType.IRFFT:
        rows = jnp.real(rows)
    return jnp.moveaxis(rows, -1, axis)


def double_pairs(x: Any, n: Any) -> Any:
    """Return half a spectrum, times 2 where an element stands for its conjugate as well.

    The real part of its inverse transform is that of the whole spectrum.
    """
    place = iota(INDEX, typeof(x).shape[-1])
    is_single = jnp.logical_or(jnp.equal(place, 0), jnp.equal(2 * place, n))
    return x * jnp.where(is_single, 1, 2).astype(typeof(jnp.real(x)).dtype)


def transform_rows(x: Any, n: Any, bound: int, inverse: bool) -> Any:
    """Return the transforms of length n along the last axis, in `bound` elements.

    Args:
      x: an array of at most `bound` elements along the last axis; they are 0 from n on.
      n: the length, an int32 scalar.
      bound: the largest length.
      inverse: True for the inverse transform.
    """
    if typeof(x).dtype.kind != "c":
        x = convert(x, np.dtype(np.complex128 if typeof(x).dtype.itemsize == 8 else np.complex64))
    dtype, size = typeof(x).dtype, typeof(x).shape[-1]
    real = typeof(jnp.real(x)).dtype
    length = choose_length(2 * bound - 1)
    place = iota(INDEX, length)
    distance = jnp.minimum(place, length - place)  # along the circle
    chirp = make_chirp(distance, n, real, inverse)
    nearby = jnp.where(jnp.less(distance, n), jnp.conj(chirp), np.zeros((), dtype))
    along = lambda a: fft_p.apply(a, fft_type=FftType.FFT, fft_lengths=(length,))[0]
    front = jnp.pad(x * chirp[:size], [(0, 0)] * (typeof(x).ndim - 1) + [(0, length - size)])
    (both,) = fft_p.apply(
        along(front) * along(nearby), fft_type=FftType.IFFT, fft_lengths=(length,)
    )
    found = both[..., :bound] * chirp[:bound]
    found = found / convert(n, real) if inverse else found
    # One element is its own transform, also where it is infinite.
    alone = jnp.pad(x, [(0, 0)] * (typeof(x).ndim - 1) + [(0, bound - size)])
    return jnp.where(jnp.equal(n, 1), alone, found)


def make_chirp(place: Any, n: Any, dtype: Any, inverse: bool) -> Any:
    """Return exp(-pi i j^2 / n) for integers j, or the conjugate for the inverse transform.

    The angle is split into quarter turns, which are exact, and at most an eighth of a turn.
    """
    phase = square_modulo(place, 2 * n)  # in half turns: phase / n
    quarters = div(4 * phase + n, jnp.broadcast_to(2 * n, typeof(phase).shape))
    rest = 2 * phase - quarters * n
    angle = convert(rest, dtype) * dtype.type(math.pi / 2) / convert(n, dtype)
    c, s, turns = jnp.cos(angle), jnp.sin(angle), jnp.bitwise_and(quarters, 3)
    is_odd = jnp.equal(jnp.bitwise_and(turns, 1), 1)
    real, imag = jnp.where(is_odd, s, c), jnp.where(is_odd, c, s)
    real = jnp.where((turns == 1) | (turns == 2), -real, real)
    imag = jnp.where(turns >= 2, -imag, imag)
    return lax.complex(real, imag if inverse else -imag)


def square_modulo(x: Any, m: Any) -> Any:
    """Return x^2 modulo m, for integers x up to 2^21 and m up to 2^21, without overflow."""
    m = jnp.broadcast_to(m, typeof(x).shape)
    if typeof(x).size <= 2**16:  # places along half a circle
        return rem(x * x, m)
    high, low = jnp.right_shift(x, 10), jnp.bitwise_and(x, 1023)
    # x^2 = high^2 2^20 + high low 2^11 + low^2; no product is as large as 2^31
    first = rem(rem(rem(high * high, m) * 1024, m) * 512, m) * 2
    second = rem(rem(high * low, m) * 1024, m) * 2
    return rem(first + second + low * low, m)


def choose_length(n: int) -> int:
    """Return the next length 2^k or 3 * 2^k, where transforms are quick."""
    power = 1 << max(0, n - 1).bit_length()
    return power // 4 * 3 if power // 4 * 3 >= n else power
