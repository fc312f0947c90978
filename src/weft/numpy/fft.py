"""Fourier transforms of any axes, lengths and norms: `weft.numpy.fft`.

What one transform computes, and its derivatives, is primitives/fft.py. The cosine transforms are
scipy/fft.py's.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import DtypeError, ShapeError
from weft.numpy.choice import number
from weft.numpy.creation import asarray
from weft.numpy.fused import fused
from weft.numpy.manipulation import roll
from weft.numpy.promotion import as_array, axes_of
from weft.primitives import slicing
from weft.primitives.elementwise import conj, mul
from weft.primitives.fft import FftType
from weft.primitives.fft import fft as transform
from weft.primitives.layout import convert, transpose
from weft.util import inverse_permutation, list_public

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
__dir__ = list_public(__name__)

Sizes = Sequence[int] | None
STATIC = ("n", "s", "axis", "axes", "norm")

# The power of the number of points that a result is multiplied by, beside what the transform does
# by itself, which is 1 forward and 1 / points backward.
FORWARD = {None: 0.0, "backward": 0.0, "ortho": -0.5, "forward": -1.0}
BACKWARD = {None: 0.0, "backward": 0.0, "ortho": 0.5, "forward": 1.0}
# The norm of a transform that is made of the one in the other direction.
OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def power_of(op: str, norm: Any, powers: dict) -> Any:
    """What stands for `norm` in a table of powers."""
    if norm not in powers:
        raise ValueError(
            f"{op}: norm must be None, 'backward', 'ortho' or 'forward'; got {norm!r}."
        )
    return powers[norm]


def transformed(op: str, kind: FftType, a: Any, s: Sizes, axes: Any, norm: Any) -> Any:
    """The transform of `axes` of an array, cut or padded to the sizes `s`; all forms of `op`."""
    inverse = kind in (FftType.IFFT, FftType.IRFFT)
    power = power_of(op, norm, BACKWARD if inverse else FORWARD)
    x = operand_of(op, as_array(a, op), kind)
    if axes is None and s is not None:
        axes = range(x.ndim - len(s), x.ndim)
    axes = axes_of(op, axes if axes is None else tuple(axes), x.ndim)
    if not axes:
        if kind in (FftType.FFT, FftType.IFFT):
            return x
        raise ShapeError(f"{op}: there must be an axis to transform; got {x.aval}, axes {axes}.")
    lengths = lengths_of(op, x, s, axes, kind)
    stored = [*lengths[:-1], lengths[-1] // 2 + 1] if kind == FftType.IRFFT else lengths
    x = fitted(x, axes, stored)
    out = over_axes(x, kind, axes, lengths)
    return mul(out, number(math.prod(lengths) ** power, out)) if power else out


def operand_of(op: str, x: Any, kind: FftType) -> Any:
    """An operand in a dtype that there are transforms of."""
    if kind == FftType.RFFT and dtypes.is_complex(x.dtype):
        full = op.replace("rfft", "fft").replace("ihfft", "ifft")
        raise DtypeError(f"{op}: operands must be real; got {x.aval}. Hint: jnp.fft.{full}(x).")
    real = dtypes.real_dtype(dtypes.complex_dtype(x.dtype))
    return convert(x, real if kind == FftType.RFFT else dtypes.complex_dtype(real))


def lengths_of(op: str, x: Any, s: Sizes, axes: Sequence[int], kind: FftType) -> list[int]:
    """The number of points along each axis."""
    own = [x.shape[i] for i in axes]
    if s is None:
        out = [*own[:-1], 2 * (own[-1] - 1)] if kind == FftType.IRFFT else own
    else:
        given = list(map(operator.index, s))
        if len(given) != len(axes):
            raise ShapeError(f"{op}: s must have a size for each of axes {axes}; got {tuple(s)}.")
        out = [n if g == -1 and len(own) > 1 else g for g, n in zip(given, own, strict=True)]
    if min(out) < 1:
        raise ShapeError(
            f"{op}: there must be at least one point along each axis; got {min(out)} for {x.aval}."
        )
    return out


def fitted(x: Any, axes: Sequence[int], sizes: Sequence[int]) -> Any:
    """x cut, or padded with zeros, at the end of axes until they have these sizes."""
    change = [0] * x.ndim
    for i, n in zip(axes, sizes, strict=True):
        change[i] = n - x.shape[i]
    if not any(change):
        return x
    return slicing.pad(x, number(0, x), [(0, c, 0) for c in change])


def over_axes(x: Any, kind: FftType, axes: Sequence[int], lengths: Sequence[int]) -> Any:
    """A transform of any number of axes, in groups of three; the last axis is the halved one."""
    *others, last = zip(axes, lengths, strict=True)
    pairs = [*sorted(others), last]  # in order, so that fewer axes have to be moved
    groups = [pairs[max(i - 3, 0) : i] for i in range(len(pairs), 0, -3)]
    kinds = [kind] + [FftType.IFFT if kind in (1, 3) else FftType.FFT] * (len(groups) - 1)
    steps = list(zip(kinds, groups, strict=True))
    for step, group in reversed(steps) if kind == FftType.IRFFT else steps:
        moved = [i for i, _ in group]
        order = [*(i for i in range(x.ndim) if i not in moved), *moved]
        x = transform(transpose(x, order), step, [n for _, n in group])
        x = transpose(x, inverse_permutation(order))
    return x


def along(op: str, kind: FftType, a: Any, n: int | None, axis: Any, norm: Any) -> Any:
    """A transform of one axis."""
    return transformed(op, kind, a, None if n is None else (n,), (operator.index(axis),), norm)


def over_two(op: str, kind: FftType, a: Any, s: Sizes, axes: Any, norm: Any) -> Any:
    """A transform of two axes."""
    if not isinstance(axes, list | tuple) or len(axes) != 2:
        raise ShapeError(f"{op}: axes must be two; got {axes!r}. Hint: jnp.fft.{op[:-1]}n.")
    return transformed(op, kind, a, s, axes, norm)


# --- one axis -------------------------------------------------------------------------------


@fused(static=STATIC)
def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The Fourier transform along an axis, cut or padded with zeros to `n` points.

    `norm` is "backward" (the forward transform unscaled, the inverse divided by n), "forward" (the
    other way round) or "ortho" (both by the root of n).

    >>> import weft.numpy as jnp
    >>> jnp.fft.fft(jnp.array([1.0, 0.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return along("fft", FftType.FFT, a, n, axis, norm)


@fused(static=STATIC)
def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of `fft`."""
    return along("ifft", FftType.IFFT, a, n, axis, norm)


@fused(static=STATIC)
def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The first n // 2 + 1 elements of the `fft` of real values; they determine the others."""
    return along("rfft", FftType.RFFT, a, n, axis, norm)


@fused(static=STATIC)
def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of `rfft`: `n` real values, or 2 * (size - 1) if n is None."""
    return along("irfft", FftType.IRFFT, a, n, axis, norm)


@fused(static=STATIC)
def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The `fft`, which is real, of values of which the second half is the first's conjugate.

    `n` is the number of results, 2 * (size - 1) if None.
    """
    power_of("hfft", norm, FORWARD)
    x = operand_of("hfft", as_array(a, "hfft"), FftType.FFT)
    return along("hfft", FftType.IRFFT, conj(x), n, axis, OPPOSITE[norm])


@fused(static=STATIC)
def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of `hfft`: the first n // 2 + 1 elements of the `ifft` of real values."""
    power_of("ihfft", norm, FORWARD)
    return conj(along("ihfft", FftType.RFFT, a, n, axis, OPPOSITE[norm]))


# --- many axes ------------------------------------------------------------------------------


@fused(static=STATIC)
def fft2(a: Any, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Any:
    """The Fourier transform of two axes."""
    return over_two("fft2", FftType.FFT, a, s, axes, norm)


@fused(static=STATIC)
def ifft2(a: Any, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Any:
    """The inverse of `fft2`."""
    return over_two("ifft2", FftType.IFFT, a, s, axes, norm)


@fused(static=STATIC)
def rfft2(a: Any, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Any:
    """The Fourier transform of two axes of real values, of which the last is halved."""
    return over_two("rfft2", FftType.RFFT, a, s, axes, norm)


@fused(static=STATIC)
def irfft2(a: Any, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Any:
    """The inverse of `rfft2`."""
    return over_two("irfft2", FftType.IRFFT, a, s, axes, norm)


@fused(static=STATIC)
def fftn(
    a: Any, s: Sizes = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Any:
    """The Fourier transform of `axes`: all of them, or as many last ones as `s` has sizes.

    Each axis is cut or padded with zeros to its size in `s`; -1 leaves it as it is.
    """
    return transformed("fftn", FftType.FFT, a, s, axes, norm)


@fused(static=STATIC)
def ifftn(
    a: Any, s: Sizes = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Any:
    """The inverse of `fftn`."""
    return transformed("ifftn", FftType.IFFT, a, s, axes, norm)


@fused(static=STATIC)
def rfftn(
    a: Any, s: Sizes = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Any:
    """The Fourier transform of axes of real values, of which the last named is halved."""
    return transformed("rfftn", FftType.RFFT, a, s, axes, norm)


@fused(static=STATIC)
def irfftn(
    a: Any, s: Sizes = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Any:
    """The inverse of `rfftn`; the last size is 2 * (size - 1) unless `s` says it."""
    return transformed("irfftn", FftType.IRFFT, a, s, axes, norm)


# --- frequencies ----------------------------------------------------------------------------


def frequencies(op: str, k: Any, n: int, d: Any, dtype: Any, device: Any) -> Any:
    """k / (n * d), where k is known."""
    dtype = dtypes.default_float() if dtype is None else dtypes.check_user_dtype(dtype, op)
    if not dtypes.is_inexact(dtype):
        raise DtypeError(f"{op}: dtype must be a float's; got {dtype.name}.")
    spacing = as_array(d, op)
    if spacing.ndim:
        raise ShapeError(f"{op}: d must be a scalar; got {spacing.aval}.")
    if isinstance(d, bool | int | float | np.number):
        return asarray(k / (n * np.float64(d)), dtype, device=device)
    return asarray(asarray(k / n, dtype) / spacing.astype(dtype), device=device)


def points(op: str, n: Any) -> int:
    """A number of points."""
    if isinstance(n, float) and n.is_integer():
        n = int(n)
    n = operator.index(n)
    if n < 1:
        raise ShapeError(f"{op}: n must be positive; got {n}.")
    return n


def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of the elements of `fft`, of n points a time `d` apart: 0 up, then below 0.

    >>> import weft.numpy as jnp
    >>> jnp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    n = points("fftfreq", n)
    k = (np.arange(n) + n // 2) % n - n // 2
    return frequencies("fftfreq", k, n, d, dtype, device)


def rfftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of the elements of `rfft`, of n points a time `d` apart."""
    n = points("rfftfreq", n)
    return frequencies("rfftfreq", np.arange(n // 2 + 1), n, d, dtype, device)


def shifted(op: str, x: Any, axes: Any, sign: int) -> Any:
    """x rolled by half of each axis."""
    x = as_array(x, op)
    where = axes_of(op, axes, x.ndim)
    # rolling back by half of an odd size is not the same as rolling by half
    shifts = [x.shape[i] // 2 if sign > 0 else -(x.shape[i] // 2) for i in where]
    return roll(x, shifts, where) if where else x


@fused(static=("axes",))
def fftshift(x: Any, axes: int | Sequence[int] | None = None) -> Any:
    """x with the element of frequency 0 moved from the front to the middle of axes."""
    return shifted("fftshift", x, axes, 1)


@fused(static=("axes",))
def ifftshift(x: Any, axes: int | Sequence[int] | None = None) -> Any:
    """The inverse of `fftshift`."""
    return shifted("ifftshift", x, axes, -1)
