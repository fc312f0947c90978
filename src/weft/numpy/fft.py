"""Fourier transforms of any axes, lengths and norms: `weft.numpy.fft`.

What one transform computes, and its derivatives, is primitives/fft.py. The cosine transforms are
scipy/fft.py's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from weft import dtypes
from weft.core.aval import check_extent
from weft.errors import DtypeError, ShapeError
from weft.numpy.choice import literal_like
from weft.numpy.creation import asarray
from weft.numpy.manipulation import roll
from weft.numpy.promotion import as_array, axes_of
from weft.primitives import slicing
from weft.primitives.elementwise import complex, conj, imag, mul, real, sub
from weft.primitives.families import as_sequence, check_integer
from weft.primitives.fft import FftType
from weft.primitives.fft import fft as transform
from weft.primitives.layout import convert, literal, rev, transpose
from weft.run.operation import operation
from weft.util import check_option, inverse_permutation, list_public, name_function
from weft.xla.typing import Array, ArrayLike, DeviceLike, DTypeLike

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip
__dir__ = list_public(__name__)

Sizes: TypeAlias = Sequence[int] | None
STATIC = ("n", "s", "axis", "axes", "norm")

# The power of the number of points that a result is multiplied by, beside what the transform does
# by itself, which is 1 forward and 1 / points backward.
FORWARD = {None: 0.0, "backward": 0.0, "ortho": -0.5, "forward": -1.0}
BACKWARD = {None: 0.0, "backward": 0.0, "ortho": 0.5, "forward": 1.0}
# The norm of a transform that is made of the one in the other direction.
OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def look_up_norm(op: str, norm: Any, powers: dict) -> Any:
    """What stands for `norm` in a table of powers."""
    check_option(op, "norm", norm, *powers)
    return powers[norm]


def transform_axes(op: str, kind: FftType, a: Any, s: Sizes, axes: Any, norm: Any) -> Any:
    """The transform of `axes` of an array, cut or padded to the sizes `s`; all forms of `op`."""
    inverse = kind in (FftType.IFFT, FftType.IRFFT)
    power = look_up_norm(op, norm, BACKWARD if inverse else FORWARD)
    x = convert_operand(op, as_array(a, op), kind)
    s = None if s is None else as_sequence(op, "s", s)
    if axes is None and s is not None:
        axes = range(x.ndim - len(s), x.ndim)
    axes = axes_of(op, axes if axes is None else as_sequence(op, "axes", axes), x.ndim)
    if not axes:
        if kind in (FftType.FFT, FftType.IFFT):
            return x
        raise ShapeError(f"{op}: there must be an axis to transform; got {x.aval}, axes {axes}.")
    if s is None and not x.size and kind in (FftType.FFT, FftType.IFFT):
        return x
    lengths = find_lengths(op, x, s, axes, kind)
    stored = [*lengths[:-1], lengths[-1] // 2 + 1] if kind == FftType.IRFFT else lengths
    x = cut_or_pad(x, axes, stored)
    out = transform_in_groups(x, kind, axes, lengths)
    return mul(out, literal_like(math.prod(lengths) ** power, out)) if power else out


def convert_operand(op: str, x: Any, kind: FftType) -> Any:
    """An operand in a dtype that there are transforms of."""
    if kind == FftType.RFFT and dtypes.is_complex(x.dtype):
        full = op.replace("rfft", "fft").replace("ihfft", "ifft")
        raise DtypeError(f"{op}: operands must be real; got {x.aval}. Hint: jnp.fft.{full}(x).")
    real = dtypes.real_dtype(dtypes.complex_dtype(x.dtype))
    return convert(x, real if kind == FftType.RFFT else dtypes.complex_dtype(real))


def find_lengths(op: str, x: Any, s: Sizes, axes: Sequence[int], kind: FftType) -> list[int]:
    """The number of points along each axis."""
    own = [x.shape[i] for i in axes]
    if s is None:
        out = [*own[:-1], 2 * (own[-1] - 1)] if kind == FftType.IRFFT else own
    else:
        given = [check_integer(op, "a number of points", n, -1) for n in s]
        if len(given) != len(axes):
            raise ShapeError(f"{op}: s must have a size for each of axes {axes}; got {tuple(s)}.")
        out = [n if g == -1 and len(own) > 1 else g for g, n in zip(given, own, strict=True)]
    if min(out) < 1:
        raise ShapeError(
            f"{op}: there must be at least one point along each axis; got {min(out)} for {x.aval}."
        )
    return out


def cut_or_pad(x: Any, axes: Sequence[int], sizes: Sequence[int]) -> Any:
    """x cut, or padded with zeros, at the end of axes until they have these sizes."""
    change = [0] * x.ndim
    for i, n in zip(axes, sizes, strict=True):
        change[i] = n - x.shape[i]
    if not any(change):
        return x
    return slicing.pad(x, literal_like(0, x), [(0, c, 0) for c in change])


def transform_in_groups(x: Any, kind: FftType, axes: Sequence[int], lengths: Sequence[int]) -> Any:
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


# --- one axis -------------------------------------------------------------------------------


def mirror(z: Any) -> Any:
    """The conjugate of z, with 0 and not -0 for 0, as the transform of real values has there."""
    y = imag(z)
    return complex(real(z), sub(literal(0, y.dtype), y))


def transform_axis(op: str, kind: FftType, a: Any, n: int | None, axis: Any, norm: Any) -> Any:
    """A transform of one axis."""
    sizes = None if n is None else (n,)
    x = as_array(a, op)
    n = x.shape[axis] if n is None and axis in range(-x.ndim, x.ndim) else n
    halves = kind in (FftType.FFT, FftType.IFFT) and not dtypes.is_complex(x.dtype)
    if not halves or not x.size or type(n) is not int or x.aval.sharded is not None:
        return transform_axes(op, kind, x, sizes, (axis,), norm)
    # of real values one half of it, and what is conjugate to that: at 2**18 points 0.7 of the time
    norm = look_up_norm(op, norm, OPPOSITE) if kind == FftType.IFFT else norm
    out = transform_axes(op, FftType.RFFT, x, sizes, (axis,), norm)
    out = mirror(out) if kind == FftType.IFFT else out
    rest = mirror(slicing.slice_in_dim(out, 1, (n + 1) // 2, axis=axis))
    return slicing.concatenate([out, rev(rest, (axis % x.ndim,))], axis % x.ndim)


def make_transform(name: str, kind: FftType, doc: str) -> Callable:
    """The function that transforms one axis."""

    def fun(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
        return transform_axis(name, kind, a, n, axis, norm)

    return operation(name_function(fun, name, doc), static=STATIC)


fft = make_transform(
    "fft",
    FftType.FFT,
    """The Fourier transform along an axis, cut or padded with zeros to `n` points.

    `norm` is "backward" (the forward transform unscaled, the inverse divided by n), "forward" (the
    other way round) or "ortho" (both by the root of n).

    >>> jnp.fft.fft(jnp.array([1.0, 2.0, 3.0, 4.0]))
    Array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
    """,
)
ifft = make_transform("ifft", FftType.IFFT, "The inverse of `fft`.")
rfft = make_transform(
    "rfft",
    FftType.RFFT,
    "The first n // 2 + 1 elements of the `fft` of real values; they determine the others.",
)
irfft = make_transform(
    "irfft",
    FftType.IRFFT,
    "The inverse of `rfft`: `n` real values, or 2 * (size - 1) if n is None.",
)


@operation(static=STATIC)
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The `fft`, which is real, of values of which the second half is the first's conjugate.

    `n` is the number of results, 2 * (size - 1) if None.
    """
    look_up_norm("hfft", norm, FORWARD)
    x = convert_operand("hfft", as_array(a, "hfft"), FftType.FFT)
    return transform_axis("hfft", FftType.IRFFT, conj(x), n, axis, OPPOSITE[norm])


@operation(static=STATIC)
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`: the first n // 2 + 1 elements of the `ifft` of real values."""
    look_up_norm("ihfft", norm, FORWARD)
    return conj(transform_axis("ihfft", FftType.RFFT, a, n, axis, OPPOSITE[norm]))


# --- many axes ------------------------------------------------------------------------------


def make_transform_of_two(name: str, kind: FftType, doc: str) -> Callable:
    """The function that transforms two axes."""

    def fun(
        a: ArrayLike, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
    ) -> Array:
        if not isinstance(axes, list | tuple) or len(axes) != 2:
            hint = f"Hint: jnp.fft.{name[:-1]}n."
            raise ShapeError(f"{name}: axes must be two; got {axes!r}. {hint}")
        return transform_axes(name, kind, a, s, axes, norm)

    return operation(name_function(fun, name, doc), static=STATIC)


fft2 = make_transform_of_two("fft2", FftType.FFT, "The Fourier transform of two axes.")
ifft2 = make_transform_of_two("ifft2", FftType.IFFT, "The inverse of `fft2`.")
rfft2 = make_transform_of_two(
    "rfft2",
    FftType.RFFT,
    "The Fourier transform of two axes of real values, of which the last is halved.",
)
irfft2 = make_transform_of_two("irfft2", FftType.IRFFT, "The inverse of `rfft2`.")


def make_transform_of_many(name: str, kind: FftType, doc: str) -> Callable:
    """The function that transforms any number of axes."""

    def fun(
        a: ArrayLike, s: Sizes = None, axes: Sequence[int] | None = None, norm: str | None = None
    ) -> Array:
        return transform_axes(name, kind, a, s, axes, norm)

    return operation(name_function(fun, name, doc), static=STATIC)


fftn = make_transform_of_many(
    "fftn",
    FftType.FFT,
    """The Fourier transform of `axes`: all of them, or as many last ones as `s` has sizes.

    Each axis is cut or padded with zeros to its size in `s`; -1 leaves it as it is.
    """,
)
ifftn = make_transform_of_many("ifftn", FftType.IFFT, "The inverse of `fftn`.")
rfftn = make_transform_of_many(
    "rfftn",
    FftType.RFFT,
    "The Fourier transform of axes of real values, of which the last named is halved.",
)
irfftn = make_transform_of_many(
    "irfftn",
    FftType.IRFFT,
    "The inverse of `rfftn`; the last size is 2 * (size - 1) unless `s` says it.",
)


# --- frequencies ----------------------------------------------------------------------------


def divide_frequencies(op: str, k: Any, n: int, d: Any, dtype: Any, device: Any) -> Any:
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


def check_points(op: str, n: Any) -> int:
    """A number of points."""
    n = check_integer(
        op, "n", int(n) if isinstance(n, float) and n.is_integer() else n, 0, math.inf
    )
    if not n:
        raise ShapeError(f"{op}: n must be positive; got {n}.")
    check_extent((n,), np.dtype(float))
    return n


def fftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike = None
) -> Array:
    """The frequencies of the elements of `fft`, of n points a time `d` apart: 0 up, then below 0.

    Args:
      dtype: that of the result, float32 by default.
      device: a Device or a Sharding to put it on.

    >>> jnp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    n = check_points("fftfreq", n)
    k = (np.arange(n) + n // 2) % n - n // 2
    return divide_frequencies("fftfreq", k, n, d, dtype, device)


def rfftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike = None
) -> Array:
    """The frequencies of the elements of `rfft`, of n points a time `d` apart.

    `dtype` and `device` are as in `fftfreq`.
    """
    n = check_points("rfftfreq", n)
    return divide_frequencies("rfftfreq", np.arange(n // 2 + 1), n, d, dtype, device)


def shift_half(op: str, x: Any, axes: Any, sign: int) -> Any:
    """x rolled by half of each axis."""
    x = as_array(x, op)
    where = axes_of(op, axes, x.ndim)
    # rolling back by half of an odd size is not the same as rolling by half
    shifts = [x.shape[i] // 2 if sign > 0 else -(x.shape[i] // 2) for i in where]
    return roll(x, shifts, where) if where else x


@operation(static=("axes",))
def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """x with the element of frequency 0 moved from the front to the middle of axes."""
    return shift_half("fftshift", x, axes, 1)


@operation(static=("axes",))
def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of `fftshift`."""
    return shift_half("ifftshift", x, axes, -1)
