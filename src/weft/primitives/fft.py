"""Discrete Fourier transforms of one to three trailing axes: `fft` and its four kinds.

Other axes, lengths, norms and any number of axes are numpy/fft.py's.
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost
from weft.core.form import Form
from weft.errors import DtypeError, ShapeError
from weft.primitives.elementwise import bitwise_or, conj, div, eq, mul, select
from weft.primitives.families import LinearPrimitive, index_tuple, label_together
from weft.primitives.layout import (
    broadcast_in_dim,
    convert,
    fill,
    host_constant,
    iota,
    literal,
    literal_size,
    move_to_front,
)
from weft.util import SymbolicSize
from weft.xla.hlo import i64s
from weft.xla.typing import Array, ArrayLike


class FftType(enum.IntEnum):
    """The kinds of Fourier transforms that `lax.fft` computes.

    Attributes:
      FFT: forward, from complex to complex.
      IFFT: inverse, from complex to complex.
      RFFT: forward, from real to half of the complex spectrum.
      IRFFT: inverse, from half of the spectrum to real.

    >>> lax.fft(jnp.ones(4), lax.FftType.RFFT, (4,)).shape
    (3,)
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


class FFT(LinearPrimitive):
    """out[k] = sum over n of x[n] * exp(-2 pi i (k[0] n[0] / N[0] + ...)), with N = fft_lengths.

    FFT: as above. IFFT: its inverse, with exp(+...) and divided by N[0] * N[1] * ... RFFT: the FFT
    of real x. Only the first N[-1] // 2 + 1 elements along the last axis are returned, since they
    determine the others. IRFFT: the inverse of RFFT; it ignores the imaginary parts of elements
    that are real in the transform of real values. Shapes: the last axes of x have the sizes
    fft_lengths; in IRFFT the last one has N[-1] // 2 + 1. Dtypes: complex; RFFT takes floats, IRFFT
    returns floats; 32 or 64 bits for each part. Source: StableHLO, fft.
    """

    name = "fft"
    form = Form.FFT
    cost = Cost.TRANSCENDENTAL
    label_axes = label_together

    def abstract_eval(self, x, *, fft_type, fft_lengths):
        takes, ok = "complex64 or complex128", dtypes.is_complex(x.dtype)
        if fft_type == FftType.RFFT:
            takes, ok = "float32 or float64", x.dtype in (np.float32, np.float64)
        if not ok:
            raise DtypeError(f"{self.name}: {fft_type.name} takes {takes}; got {x}.")
        rank = len(fft_lengths)
        if not 1 <= rank <= 3:
            raise ShapeError(
                f"{self.name}: fft_lengths must have one to three sizes; got {fft_lengths}. "
                "Hint: jnp.fft.fftn transforms any number of axes."
            )
        half = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1 if fft_lengths[-1] else 0)
        before, after = (
            half if fft_type == kind else fft_lengths for kind in (FftType.IRFFT, FftType.RFFT)
        )
        if x.shape[-rank:] != before:
            raise ShapeError(
                f"{self.name}: the last axes of x must be of sizes {before} for {fft_type.name} of "
                f"fft_lengths {fft_lengths}; got {x}."
            )
        real = dtypes.real_dtype(x.dtype)
        dtype = real if fft_type == FftType.IRFFT else dtypes.complex_dtype(real)
        return [ShapedArray((*x.shape[:-rank], *after), dtype)]

    def lower(self, hlo, x, *, fft_type, fft_lengths):
        (out,) = self.type_of((x.aval,), {"fft_type": fft_type, "fft_lengths": fft_lengths})
        if not out.size:
            return [hlo.constant(0, out)]
        kind = f"#stablehlo<fft_type {fft_type.name}>"
        return hlo.op("stablehlo.fft", [x], [out], fft_type=kind, fft_length=i64s(fft_lengths))

    def transpose(self, cts, x, *, fft_type, fft_lengths):
        """Apply the transposed transform. FFT and IFFT are symmetric; RFFT and IRFFT have half."""
        (ct,) = cts
        if fft_type in (FftType.FFT, FftType.IFFT):
            return self.apply(ct, fft_type=fft_type, fft_lengths=fft_lengths)
        counts, size, quotient = count_pairs(fft_lengths, dtypes.real_dtype(typeof(ct).dtype))
        if fft_type == FftType.RFFT:
            ct = scale_last(conj(ct), quotient(size, counts))
            return self.apply(ct, fft_type=FftType.IRFFT, fft_lengths=fft_lengths)
        (g,) = self.apply(ct, fft_type=FftType.RFFT, fft_lengths=fft_lengths)
        return [conj(scale_last(g, quotient(counts, size)))]

    def batch(self, axis, args, dims, *, fft_type, fft_lengths):
        (x,), (d,) = args, dims
        if d >= typeof(x).ndim - len(fft_lengths):
            x, d = move_to_front(x, d), 0
        return self.apply(x, fft_type=fft_type, fft_lengths=fft_lengths), [d]


def count_pairs(fft_lengths: Sequence[int], dtype: np.dtype) -> tuple[Any, Any, Callable]:
    """Return how often elements of an RFFT are in the full transform, and the size of it.

    Each element counts twice, for its conjugate, except for the first element and, if n is even,
    the last one. The third result is the function that divides the others by each other.
    """
    n, size = fft_lengths[-1], math.prod(fft_lengths)
    if not isinstance(size, SymbolicSize):
        k = np.arange(n // 2 + 1)
        return np.where((k == 0) | (2 * k == n), 1, 2).astype(dtype), size, operator.truediv
    k = iota(np.int32, n // 2 + 1)
    twice = mul(k, literal(2, k.dtype))
    is_single = bitwise_or(eq(k, literal(0, k.dtype)), eq(twice, literal_size(n, k)))
    counts = select(is_single, fill(k.shape, 1, dtype), fill(k.shape, 2, dtype))
    return counts, literal_size(size, counts), div


def is_smooth(n: int, largest: int) -> bool:
    """Return True if a positive number has no prime factor above `largest`."""
    for factor in range(2, largest + 1):
        while n % factor == 0:
            n //= factor
    return n == 1


def find_roots(n: int) -> np.ndarray:
    """Return the powers of exp(-2 pi i / n), as real and imaginary parts (n, 2).

    Angles are reduced to an eighth of a turn as integers, so each part is exact to about 1 ulp.
    """
    k = np.arange(n)
    quarters = (8 * k + n) // (2 * n)
    turns = np.exp(-0.5j * np.pi * (4 * k - quarters * n) / n)
    return (turns * np.array([1, -1j, -1, 1j])[quarters % 4]).view(np.float64).reshape(n, 2)


def scale_last(x: Any, factors: Any) -> Any:
    """x, complex, times real factors along its last axis."""
    aval = typeof(x)
    if isinstance(factors, np.ndarray):
        factors = host_constant(factors, aval.dtype)
    else:
        factors = convert(factors, aval.dtype)
    return mul(x, broadcast_in_dim(factors, aval.shape, (aval.ndim - 1,)))


fft_p = FFT()


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """Return the discrete Fourier transform over the last axes of an array.

    Integers are converted to floats, and real values to complex ones where the transform needs it.
    `jnp.fft` has the functions of NumPy.

    Args:
      x: an array of numbers.
      fft_type: a `FftType`, or its name: "fft", "ifft", "rfft" or "irfft".
      fft_lengths: the sizes of the axes that are transformed, ints; for "irfft" the sizes of the
        result.

    Returns:
      A complex array, or a real one for "irfft".

    Raises:
      ShapeError: the last axes do not have these sizes.

    >>> lax.fft(jnp.ones(4), "rfft", (4,))
    Array([4.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    kind = fft_type
    if isinstance(kind, str) and kind.upper() in FftType.__members__:
        kind = FftType[kind.upper()]
    if not isinstance(kind, FftType):
        raise ValueError(
            "fft: fft_type must be a FftType or one of 'fft', 'ifft', 'rfft', 'irfft'; "
            f"got {kind!r}."
        )
    lengths = index_tuple(fft_lengths, "fft", "fft_lengths")
    dtype = typeof(x).dtype
    if not dtypes.is_inexact(dtype):
        dtype = dtypes.default_float()
    if kind != FftType.RFFT and dtype in (np.float32, np.float64):
        dtype = dtypes.complex_dtype(dtype)
    x = convert(x, dtype)
    return fft_p.apply(x, fft_type=kind, fft_lengths=lengths)[0] if lengths else x
