"""Fourier transforms of any axes, lengths and norms: `weft.numpy.fft`.

One transform and its derivatives are in primitives/fft.py. The cosine transforms are in
scipy/fft.py.
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
from weft.numpy.creation import arange, asarray
from weft.numpy.manipulation import roll
from weft.numpy.promotion import as_array, axes_of
from weft.primitives import slicing
from weft.primitives.elementwise import complex, conj, imag, mul, real, sub
from weft.primitives.families import as_sequence, check_integer
from weft.primitives.fft import FftType
from weft.primitives.fft import fft as transform
from weft.primitives.layout import broadcast_in_dim, convert, literal, rev, transpose
from weft.primitives.transcendental import pow as power_of
from weft.run.operation import operation
from weft.util import (
    SymbolicSize,
    check_option,
    inverse_permutation,
    is_below,
    list_public,
    name_function,
)
from weft.xla.typing import Array, ArrayLike, DeviceLike, DTypeLike

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip
__dir__ = list_public(__name__)

Sizes: TypeAlias = Sequence[int] | None
STATIC = ("n", "s", "axis", "axes", "norm")
# Real values that are transformed as complex ones: up to MAX_WHOLE, and one row of up to
# MAX_WHOLE_ROW. The half of the transform and its mirror took CPUs 1.2 to 3 times as long.
MAX_WHOLE, MAX_WHOLE_ROW = 1 << 15, 100_000

# The power of the number of points that a result is multiplied by, beside what the transform does
# by itself, which is 1 forward and 1 / points backward.
FORWARD = {None: 0.0, "backward": 0.0, "ortho": -0.5, "forward": -1.0}
BACKWARD = {None: 0.0, "backward": 0.0, "ortho": 0.5, "forward": 1.0}
# The norm of a transform that is made of the one in the other direction.
OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def look_up_norm(op: str, norm: Any, powers: dict) -> Any:
    """Return the entry of `norm` in a table of powers."""
    check_option(op, "norm", norm, *powers)
    return powers[norm]


def transform_axes(op: str, kind: FftType, a: Any, s: Sizes, axes: Any, norm: Any) -> Any:
    """Transform `axes` of an array that is cut or padded to the sizes `s`; all forms of `op`."""
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
    if not power:
        return out
    points = math.prod(lengths)
    if isinstance(points, SymbolicSize):
        size = literal(points, dtypes.real_dtype(out.dtype))
        factor = power_of(size, literal(power, size.dtype))
        return mul(out, broadcast_in_dim(convert(factor, out.dtype), out.shape, ()))
    return mul(out, literal_like(points**power, out))


def convert_operand(op: str, x: Any, kind: FftType) -> Any:
    """Convert an operand to a dtype that has transforms."""
    if kind == FftType.RFFT and dtypes.is_complex(x.dtype):
        full = op.replace("rfft", "fft").replace("ihfft", "ifft")
        raise DtypeError(f"{op}: operands must be real; got {x.aval}. Hint: jnp.fft.{full}(x).")
    real = dtypes.real_dtype(dtypes.complex_dtype(x.dtype, op))
    return convert(x, real if kind == FftType.RFFT else dtypes.complex_dtype(real))


def find_lengths(op: str, x: Any, s: Sizes, axes: Sequence[int], kind: FftType) -> list[int]:
    """Return the number of points along each axis."""
    own = [x.shape[i] for i in axes]
    if s is None:
        out = [*own[:-1], 2 * (own[-1] - 1)] if kind == FftType.IRFFT else own
    else:
        given = [check_integer(op, "a number of points", n, -1) for n in s]
        if len(given) != len(axes):
            raise ShapeError(f"{op}: s must have a size for each of axes {axes}; got {tuple(s)}.")
        out = [n if g == -1 and len(own) > 1 else g for g, n in zip(given, own, strict=True)]
    empty = [n for n in out if n < 1]
    if empty:
        raise ShapeError(
            f"{op}: there must be at least one point along each axis; got {min(empty)} for "
            f"{x.aval}."
        )
    return out


def cut_or_pad(x: Any, axes: Sequence[int], sizes: Sequence[int]) -> Any:
    """Cut x, or pad it with zeros, at the end of axes to these sizes."""
    change = [0] * x.ndim
    for i, n in zip(axes, sizes, strict=True):
        change[i] = n - x.shape[i]
    if not any(change):
        return x
    return slicing.pad(x, literal_like(0, x), [(0, c, 0) for c in change])


def transform_in_groups(x: Any, kind: FftType, axes: Sequence[int], lengths: Sequence[int]) -> Any:
    """Transform any number of axes, in groups of three; the last axis is the halved one."""
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
    """Return the conjugate of z, with 0 for -0, as the transform of real values has there."""
    y = imag(z)
    return complex(real(z), sub(literal(0, y.dtype), y))


def transform_axis(op: str, kind: FftType, a: Any, n: int | None, axis: Any, norm: Any) -> Any:
    """Transform one axis."""
    sizes = None if n is None else (n,)
    x = as_array(a, op)
    n = x.shape[axis] if n is None and axis in range(-x.ndim, x.ndim) else n
    halves = kind in (FftType.FFT, FftType.IFFT) and not dtypes.is_complex(x.dtype)
    if not halves or not x.size or type(n) is not int or x.aval.sharded is not None:
        return transform_axes(op, kind, x, sizes, (axis,), norm)
    points = math.prod([*x.shape[:axis], n, *x.shape[axis % x.ndim + 1 :]])
    most = MAX_WHOLE_ROW if points == n else MAX_WHOLE
    if n > 0 and is_below(points, most + 1):
        return transform_axes(op, kind, x, sizes, (axis,), norm)
    # For real values, half of the transform and its conjugates: at 2**18 points, this reduces the
    # time to 70 %.
    norm = look_up_norm(op, norm, OPPOSITE) if kind == FftType.IFFT else norm
    out = transform_axes(op, FftType.RFFT, x, sizes, (axis,), norm)
    out = mirror(out) if kind == FftType.IFFT else out
    rest = mirror(slicing.slice_in_dim(out, 1, (n + 1) // 2, axis=axis))
    return slicing.concatenate([out, rev(rest, (axis % x.ndim,))], axis % x.ndim)


def make_transform(name: str, kind: FftType, doc: str) -> Callable:
    """Return the function that transforms one axis."""

    def fun(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
        return transform_axis(name, kind, a, n, axis, norm)

    return operation(name_function(fun, name, doc), static=STATIC)


fft = make_transform(
    "fft",
    FftType.FFT,
    """Compute the discrete Fourier transform along an axis.

    Element k of the result is the sum over j of `a[j] * exp(-2j * pi * j * k / n)`, for k from 0 to
    n - 1. `fftfreq` returns the frequencies of these elements. For real values, `rfft` computes
    only the half that determines the rest.

    Args:
      a: an array of at least one axis, of a real or complex dtype.
      n: the number of points. The axis is cut to n elements, or padded with zeros at its end. None
        stands for the size of the axis. Static under `jit`, as are `axis` and `norm`.
      axis: the axis to transform.
      norm: "backward" (None stands for it) leaves the transform as it is and divides its inverse by
        n, "forward" divides the transform by n and not its inverse, "ortho" divides both by the
        square root of n.

    Returns:
      The transform, with size n along `axis`: complex64, or complex128 for float64 and complex128.

    Raises:
      ShapeError: if the array lacks this axis, or if n is less than 1.
      ValueError: if `norm` is not one of these.

    >>> jnp.fft.fft(jnp.array([1.0, 2.0, 3.0, 4.0]))
    Array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
    >>> jnp.fft.fft(jnp.array([1.0, 2.0, 3.0, 4.0]), n=2, norm="forward")
    Array([ 1.5+0.j, -0.5+0.j], dtype=complex64)
    """,
)
ifft = make_transform(
    "ifft",
    FftType.IFFT,
    """Compute the inverse discrete Fourier transform along an axis.

    Element j of the result is the sum over k of `a[k] * exp(2j * pi * j * k / n) / n`, so that
    `ifft(fft(x))` is x.

    Args:
      a: an array of at least one axis, of a real or complex dtype.
      n: the number of points. The axis is cut to n elements, or padded with zeros at its end. None
        stands for the size of the axis. Static under `jit`, as are `axis` and `norm`.
      axis: the axis to transform.
      norm: "backward" (None stands for it) divides by n, "ortho" by the square root of n; "forward"
        does not divide. It must be the norm of the forward transform.

    Returns:
      The inverse transform, with size n along `axis`: complex64, or complex128 for float64 and
      complex128.

    Raises:
      ShapeError: if the array lacks this axis, or if n is less than 1.
      ValueError: if `norm` is not one of these.

    >>> jnp.fft.ifft(jnp.array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j]))
    Array([1.+0.j, 2.+0.j, 3.+0.j, 4.+0.j], dtype=complex64)
    """,
)
rfft = make_transform(
    "rfft",
    FftType.RFFT,
    """Compute the discrete Fourier transform of real values along an axis.

    The result is the first n // 2 + 1 elements of `fft(a, n)`. The other elements are their
    conjugates, in reverse order, so they are not computed.

    Args:
      a: an array of at least one axis, of a real dtype.
      n: the number of points. The axis is cut to n elements, or padded with zeros at its end. None
        stands for the size of the axis. Static under `jit`, as are `axis` and `norm`.
      axis: the axis to transform.
      norm: the factor of the transform, "backward", "forward" or "ortho", as in `fft`. None stands
        for "backward".

    Returns:
      The transform, with size n // 2 + 1 along `axis`: complex64, or complex128 for float64.

    Raises:
      DtypeError: if `a` is complex.
      ShapeError: if the array lacks this axis, or if n is less than 1.
      ValueError: if `norm` is not one of these.

    >>> jnp.fft.rfft(jnp.array([1.0, 2.0, 3.0, 4.0]))
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """,
)
irfft = make_transform(
    "irfft",
    FftType.IRFFT,
    """Compute the inverse of `rfft` along an axis: real values from half of their transform.

    Args:
      a: an array of at least one axis, of a real or complex dtype: the elements of the frequencies
        0 to n // 2. The axis is cut, or padded with zeros, to n // 2 + 1 elements.
      n: the number of real values. None stands for 2 * (size - 1), which is even; an odd number has
        to be given. Static under `jit`, as are `axis` and `norm`.
      axis: the axis to transform.
      norm: the factor of the transform, "backward", "forward" or "ortho", as in `ifft`. None stands
        for "backward".

    Returns:
      The values, with size n along `axis`: float32, or float64 for float64 and complex128.

    Raises:
      ShapeError: if the array lacks this axis, or if n is less than 1.
      ValueError: if `norm` is not one of these.

    >>> x = jnp.array([1.0, 2.0, 3.0])
    >>> print(jnp.fft.irfft(jnp.fft.rfft(x), n=3))
    [1. 2. 3.]
    >>> jnp.fft.irfft(jnp.fft.rfft(x)).shape
    (2,)
    """,
)


@operation(static=STATIC)
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the discrete Fourier transform of values with Hermitian symmetry along an axis.

    If the second half of a signal is the conjugate of the first half in reverse order, its
    transform is real, and the first half determines it. The function is to `ihfft` as `rfft` is to
    `irfft`, with time and frequency exchanged.

    Args:
      a: an array of at least one axis, of a real or complex dtype: the elements 0 to n // 2 of the
        signal.
      n: the number of results. None stands for 2 * (size - 1), which is even; an odd number has to
        be given. Static under `jit`, as are `axis` and `norm`.
      axis: the axis to transform.
      norm: the factor of the transform, "backward", "forward" or "ortho", as in `fft`. None stands
        for "backward".

    Returns:
      The transform, with size n along `axis`: float32, or float64 for float64 and complex128.

    Raises:
      ShapeError: if the array lacks this axis, or if n is less than 1.
      ValueError: if `norm` is not one of these.

    >>> jnp.fft.hfft(jnp.array([1.0, 2.0, 3.0]))
    Array([ 8., -2.,  0., -2.], dtype=float32)
    """
    look_up_norm("hfft", norm, FORWARD)
    x = convert_operand("hfft", as_array(a, "hfft"), FftType.FFT)
    return transform_axis("hfft", FftType.IRFFT, conj(x), n, axis, OPPOSITE[norm])


@operation(static=STATIC)
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the inverse of `hfft` along an axis: half of a signal from its real transform.

    The result is the first n // 2 + 1 elements of `ifft(a, n)`. The other elements are their
    conjugates, in reverse order.

    Args:
      a: an array of at least one axis, of a real dtype.
      n: the number of points. The axis is cut to n elements, or padded with zeros at its end. None
        stands for the size of the axis. Static under `jit`, as are `axis` and `norm`.
      axis: the axis to transform.
      norm: the factor of the transform, "backward", "forward" or "ortho", as in `ifft`. None stands
        for "backward".

    Returns:
      The first half of the signal, with size n // 2 + 1 along `axis`: complex64, or complex128 for
      float64.

    Raises:
      DtypeError: if `a` is complex.
      ShapeError: if the array lacks this axis, or if n is less than 1.
      ValueError: if `norm` is not one of these.

    >>> print(jnp.fft.ihfft(jnp.array([8., -2., 0., -2.])).real)
    [1. 2. 3.]
    """
    look_up_norm("ihfft", norm, FORWARD)
    return conj(transform_axis("ihfft", FftType.RFFT, a, n, axis, OPPOSITE[norm]))


# --- many axes ------------------------------------------------------------------------------


def make_transform_of_two(name: str, kind: FftType, doc: str) -> Callable:
    """Return the function that transforms two axes."""

    def fun(
        a: ArrayLike, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
    ) -> Array:
        if not isinstance(axes, list | tuple) or len(axes) != 2:
            hint = f"Hint: jnp.fft.{name[:-1]}n."
            raise ShapeError(f"{name}: axes must be two; got {axes!r}. {hint}")
        return transform_axes(name, kind, a, s, axes, norm)

    return operation(name_function(fun, name, doc), static=STATIC)


fft2 = make_transform_of_two(
    "fft2",
    FftType.FFT,
    """Compute the discrete Fourier transform in two axes, as for an image.

    Args:
      a: an array of at least two axes, of a real or complex dtype.
      s: the number of points along each axis. An axis is cut, or padded with zeros at its end; -1
        keeps its size. None keeps both sizes. Static under `jit`, as are `axes` and `norm`.
      axes: a list or tuple of two different axes.
      norm: "backward" (None stands for it) leaves the transform as it is and divides its inverse by
        the number of points, "forward" divides the transform and not its inverse, "ortho" divides
        both by the square root of the number.

    Returns:
      The transform, with the sizes `s` along `axes`: complex64, or complex128 for float64 and
      complex128.

    Raises:
      ShapeError: if `axes` are not two axes of the array, or if a size is less than 1.
      ValueError: if `norm` is not one of these.

    >>> print(jnp.fft.fft2(jnp.array([[1., 2.], [3., 4.]])).real)
    [[10. -2.]
     [-4.  0.]]
    """,
)
ifft2 = make_transform_of_two(
    "ifft2",
    FftType.IFFT,
    """Compute the inverse discrete Fourier transform in two axes, so that `ifft2(fft2(x))` is x.

    Args:
      a: an array of at least two axes, of a real or complex dtype.
      s: the number of points along each axis. An axis is cut, or padded with zeros at its end; -1
        keeps its size. None keeps both sizes. Static under `jit`, as are `axes` and `norm`.
      axes: a list or tuple of two different axes.
      norm: the factor of the transform, "backward", "forward" or "ortho", as in `fft2`. None stands
        for "backward", which divides by the number of points.

    Returns:
      The inverse transform, with the sizes `s` along `axes`: complex64, or complex128 for float64
      and complex128.

    Raises:
      ShapeError: if `axes` are not two axes of the array, or if a size is less than 1.
      ValueError: if `norm` is not one of these.

    >>> print(jnp.fft.ifft2(jnp.array([[10., -2.], [-4., 0.]])).real)
    [[1. 2.]
     [3. 4.]]
    """,
)
rfft2 = make_transform_of_two(
    "rfft2",
    FftType.RFFT,
    """Compute the discrete Fourier transform of real values in two axes.

    The result is the first half of `fft2` along the last axis of `axes`, which determines the rest.

    Args:
      a: an array of at least two axes, of a real dtype.
      s: the number of points along each axis. An axis is cut, or padded with zeros at its end; -1
        keeps its size. None keeps both sizes. Static under `jit`, as are `axes` and `norm`.
      axes: a list or tuple of two different axes. The second is halved.
      norm: the factor of the transform, "backward", "forward" or "ortho", as in `fft2`. None stands
        for "backward".

    Returns:
      The transform, with the sizes s[0] and s[1] // 2 + 1 along `axes`: complex64, or complex128
      for float64.

    Raises:
      DtypeError: if `a` is complex.
      ShapeError: if `axes` are not two axes of the array, or if a size is less than 1.
      ValueError: if `norm` is not one of these.

    >>> jnp.fft.rfft2(jnp.ones((5, 6))).shape
    (5, 4)
    """,
)
irfft2 = make_transform_of_two(
    "irfft2",
    FftType.IRFFT,
    """Compute the inverse of `rfft2`: real values from half of their transform in two axes.

    Args:
      a: an array of at least two axes, of a real or complex dtype.
      s: the number of real values along each axis. None stands for the size of the first axis and 2
        * (size - 1) for the second. An odd second number has to be given. Static under `jit`, as
        are `axes` and `norm`.
      axes: a list or tuple of two different axes. The second is the halved one.
      norm: the factor of the transform, "backward", "forward" or "ortho", as in `fft2`. None stands
        for "backward", which divides by the number of points.

    Returns:
      The values, with the sizes `s` along `axes`: float32, or float64 for float64 and complex128.

    Raises:
      ShapeError: if `axes` are not two axes of the array, or if a size is less than 1.
      ValueError: if `norm` is not one of these.

    >>> x = jnp.array([[1., 2., 3.], [4., 5., 6.]])
    >>> print(jnp.round(jnp.fft.irfft2(jnp.fft.rfft2(x), s=(2, 3))))
    [[1. 2. 3.]
     [4. 5. 6.]]
    """,
)


def make_transform_of_many(name: str, kind: FftType, doc: str) -> Callable:
    """Return the function that transforms any number of axes."""

    def fun(
        a: ArrayLike, s: Sizes = None, axes: Sequence[int] | None = None, norm: str | None = None
    ) -> Array:
        return transform_axes(name, kind, a, s, axes, norm)

    return operation(name_function(fun, name, doc), static=STATIC)


fftn = make_transform_of_many(
    "fftn",
    FftType.FFT,
    """Compute the discrete Fourier transform in any number of axes.

    Args:
      a: an array of a real or complex dtype.
      s: the number of points along each axis. An axis is cut, or padded with zeros at its end; -1
        keeps its size if there are two axes or more. None keeps all sizes. Static under `jit`, as
        are `axes` and `norm`.
      axes: the axes to transform. None stands for all axes, or for the last `len(s)` axes if `s` is
        given.
      norm: "backward" (None stands for it) leaves the transform as it is and divides its inverse by
        the number of points, "forward" divides the transform and not its inverse, "ortho" divides
        both by the square root of the number.

    Returns:
      The transform, with the sizes `s` along `axes`: complex64, or complex128 for float64 and
      complex128.

    Raises:
      ShapeError: if the array lacks one of the axes, if `s` and `axes` differ in length, or if a
        size is less than 1.
      ValueError: if `norm` is not one of these.

    >>> x = jnp.ones((2, 3, 4))
    >>> jnp.fft.fftn(x).shape, jnp.fft.fftn(x, s=(-1, 8)).shape, jnp.fft.fftn(x, axes=(0,)).shape
    ((2, 3, 4), (2, 3, 8), (2, 3, 4))
    """,
)
ifftn = make_transform_of_many(
    "ifftn",
    FftType.IFFT,
    """Compute the inverse discrete Fourier transform in any number of axes: `ifftn(fftn(x))` is x.

    Args:
      a: an array of a real or complex dtype.
      s: the number of points along each axis. An axis is cut, or padded with zeros at its end; -1
        keeps its size if there are two axes or more. None keeps all sizes. Static under `jit`, as
        are `axes` and `norm`.
      axes: the axes to transform. None stands for all axes, or for the last `len(s)` axes if `s` is
        given.
      norm: the factor of the transform, "backward", "forward" or "ortho", as in `fftn`. None stands
        for "backward", which divides by the number of points.

    Returns:
      The inverse transform, with the sizes `s` along `axes`: complex64, or complex128 for float64
      and complex128.

    Raises:
      ShapeError: if the array lacks one of the axes, if `s` and `axes` differ in length, or if a
        size is less than 1.
      ValueError: if `norm` is not one of these.

    >>> print(jnp.fft.ifftn(jnp.array([[10., -2.], [-4., 0.]])).real)
    [[1. 2.]
     [3. 4.]]
    """,
)
rfftn = make_transform_of_many(
    "rfftn",
    FftType.RFFT,
    """Compute the discrete Fourier transform of real values in any number of axes.

    The result is the first half of `fftn` along the last axis of `axes`, which determines the rest.

    Args:
      a: an array of a real dtype.
      s: the number of points along each axis. An axis is cut, or padded with zeros at its end; -1
        keeps its size if there are two axes or more. None keeps all sizes. Static under `jit`, as
        are `axes` and `norm`.
      axes: the axes to transform; there must be one at least, and the last named is halved. None
        stands for all axes, or for the last `len(s)` axes if `s` is given.
      norm: the factor of the transform, "backward", "forward" or "ortho", as in `fftn`. None stands
        for "backward".

    Returns:
      The transform, with the sizes `s` along `axes`, except for s[-1] // 2 + 1 along the last:
      complex64, or complex128 for float64.

    Raises:
      DtypeError: if `a` is complex.
      ShapeError: if the array lacks one of the axes, if `s` and `axes` differ in length, or if a
        size is less than 1.
      ValueError: if `norm` is not one of these.

    >>> jnp.fft.rfftn(jnp.ones((2, 3, 4))).shape
    (2, 3, 3)
    >>> jnp.fft.rfftn(jnp.ones((2, 3, 4)), axes=(2, 0)).shape
    (2, 3, 4)
    """,
)
irfftn = make_transform_of_many(
    "irfftn",
    FftType.IRFFT,
    """Compute the inverse of `rfftn`: real values from half of their transform.

    Args:
      a: an array of a real or complex dtype.
      s: the number of real values along each axis. None stands for the sizes of the axes, except
        for the last, where it stands for 2 * (size - 1). An odd last number has to be given. Static
        under `jit`, as are `axes` and `norm`.
      axes: the axes to transform; there must be one at least, and the last named is the halved one.
        None stands for all axes, or for the last `len(s)` axes if `s` is given.
      norm: the factor of the transform, "backward", "forward" or "ortho", as in `fftn`. None stands
        for "backward", which divides by the number of points.

    Returns:
      The values, with the sizes `s` along `axes`: float32, or float64 for float64 and complex128.

    Raises:
      ShapeError: if the array lacks one of the axes, if `s` and `axes` differ in length, or if a
        size is less than 1.
      ValueError: if `norm` is not one of these.

    >>> jnp.fft.irfftn(jnp.ones((2, 3, 4))).shape
    (2, 3, 6)
    >>> jnp.fft.irfftn(jnp.ones((2, 3, 4)), s=(2, 3, 5)).shape
    (2, 3, 5)
    """,
)


# --- frequencies ----------------------------------------------------------------------------


def divide_frequencies(op: str, k: Any, n: int, d: Any, dtype: Any, device: Any) -> Any:
    """Compute k / (n * d), where k is known."""
    dtype = dtypes.default_float() if dtype is None else dtypes.check_user_dtype(dtype, op)
    if not dtypes.is_inexact(dtype):
        raise DtypeError(f"{op}: dtype must be a float's; got {dtype.name}.")
    spacing = as_array(d, op)
    if spacing.ndim:
        raise ShapeError(f"{op}: d must be a scalar; got {spacing.aval}.")
    if isinstance(d, bool | int | float | np.number) and not isinstance(n, SymbolicSize):
        return asarray(k / (n * np.float64(d)), dtype, device=device)
    return asarray(asarray(k / n, dtype) / spacing.astype(dtype), device=device)


def check_points(op: str, n: Any) -> int:
    """Check a number of points."""
    if isinstance(n, SymbolicSize):
        return n
    n = check_integer(
        op, "n", int(n) if isinstance(n, float) and n.is_integer() else n, 0, math.inf
    )
    if not n:
        raise ShapeError(f"{op}: n must be positive; got {n}.")
    check_extent((n,), np.dtype(float))
    return n


def count_points(n: Any) -> Any:
    """Return the integers below a number, which may be symbolic."""
    return arange(n) if isinstance(n, SymbolicSize) else np.arange(n)


def fftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike = None
) -> Array:
    """Return the frequencies of the elements of `fft`.

    The frequencies are in cycles per unit of `d`: 0 and the positive ones in ascending order, then
    the negative ones in ascending order. For an even `n`, the frequency of element n / 2 is
    negative.

    Args:
      n: the number of points, a positive int. Static under `jit`.
      d: the time between two points, a scalar. It may be traced, and has a derivative.
      dtype: the float or complex dtype of the result. None stands for the default float dtype.
      device: a Device or a Sharding to put the result on. None stands for the default device.

    Returns:
      The frequencies (n,).

    Raises:
      ShapeError: if `n` is less than 1, or if `d` is not a scalar.
      DtypeError: if `dtype` is an integer or bool dtype.

    >>> jnp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    >>> jnp.fft.fftfreq(5, d=0.1)
    Array([ 0.,  2.,  4., -4., -2.], dtype=float32)
    """
    n = check_points("fftfreq", n)
    k = (count_points(n) + n // 2) % n - n // 2
    return divide_frequencies("fftfreq", k, n, d, dtype, device)


def rfftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike = None
) -> Array:
    """Return the frequencies of the elements of `rfft`, in ascending order.

    The frequencies are in cycles per unit of `d`, and not negative.

    Args:
      n: the number of real points, a positive int. Static under `jit`.
      d: the time between two points, a scalar. It may be traced, and has a derivative.
      dtype: the float or complex dtype of the result. None stands for the default float dtype.
      device: a Device or a Sharding to put the result on. None stands for the default device.

    Returns:
      The frequencies (n // 2 + 1,).

    Raises:
      ShapeError: if `n` is less than 1, or if `d` is not a scalar.
      DtypeError: if `dtype` is an integer or bool dtype.

    >>> jnp.fft.rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    n = check_points("rfftfreq", n)
    return divide_frequencies("rfftfreq", count_points(n // 2 + 1), n, d, dtype, device)


def shift_half(op: str, x: Any, axes: Any, sign: int) -> Any:
    """Roll x by half of each axis."""
    x = as_array(x, op)
    where = axes_of(op, axes, x.ndim)
    # rolling back by half of an odd size is not the same as rolling by half
    shifts = [x.shape[i] // 2 if sign > 0 else -(x.shape[i] // 2) for i in where]
    return roll(x, shifts, where) if where else x


@operation(static=("axes",))
def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Move the element of frequency 0 from the front to the middle of axes.

    This is for plots and for filters that are centered at frequency 0: it sorts the elements of
    `fft` in ascending order of frequency.

    Args:
      x: an array of any dtype.
      axes: one axis or several; None stands for all axes. Static under `jit`.

    Returns:
      An array of the shape and dtype of `x`, rolled by half of its size along each axis.

    Raises:
      ShapeError: if the array lacks one of the axes.

    >>> jnp.fft.fftshift(jnp.fft.fftfreq(5))
    Array([-0.4, -0.2,  0. ,  0.2,  0.4], dtype=float32)
    >>> print(jnp.fft.fftshift(jnp.arange(6).reshape(2, 3), axes=1))
    [[2 0 1]
     [5 3 4]]
    """
    return shift_half("fftshift", x, axes, 1)


@operation(static=("axes",))
def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Undo `fftshift`: move the element of frequency 0 from the middle of axes to the front.

    The two functions differ for axes of odd size.

    Args:
      x: an array of any dtype.
      axes: one axis or several; None stands for all axes. Static under `jit`.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      ShapeError: if the array lacks one of the axes.

    >>> print(jnp.fft.ifftshift(jnp.fft.fftshift(jnp.arange(5))))
    [0 1 2 3 4]
    >>> print(jnp.fft.fftshift(jnp.fft.fftshift(jnp.arange(5))))
    [1 2 3 4 0]
    """
    return shift_half("ifftshift", x, axes, -1)
