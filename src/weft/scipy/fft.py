"""Cosine transforms: `dct`, `idct`, `dctn`, `idctn`. Fourier transforms are numpy/fft.py's.

Each is a Fourier transform of the same length, or nearly, of its input put in another order
(J. Makhoul, A fast cosine transform in one and two dimensions, IEEE Trans. ASSP 28, 1980).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft import numpy as jnp
from weft.errors import ShapeError
from weft.numpy import fft as fourier
from weft.numpy.promotion import as_array, axes_of, axis_of
from weft.primitives.elementwise import complex, convert
from weft.primitives.families import as_sequence, check_integer
from weft.primitives.layout import broadcast_to_rank
from weft.run.operation import operation
from weft.util import check_option, list_public, name_function
from weft.xla.typing import Array, ArrayLike

__all__ = ["dct", "dctn", "idct", "idctn"]
__dir__ = list_public(__name__)

STATIC = ("type", "n", "s", "axis", "axes", "norm")
# The power of the length of a whole period that results are multiplied by: forward, and inverse.
POWERS = {None: (0, -1), "backward": (0, -1), "ortho": (-0.5, -0.5), "forward": (-1, 0)}
INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def twist(x: Any, angles: np.ndarray) -> Any:
    """x times exp(i * angles) along its last axis; complex."""
    turn = np.exp(1j * angles).astype(dtypes.complex_dtype(x.dtype))
    return convert(x, turn.dtype) * broadcast_to_rank(turn, x.ndim)


def type1(x: Any) -> Any:
    """x[0] + (-1)^k x[n-1] + 2 sum over 0 < j < n-1 of x[j] cos(pi j k / (n - 1))."""
    n = x.shape[-1]
    if n < 2:
        raise ShapeError(f"dct: type 1 needs two points or more along the axis; got {n}.")
    return fourier.rfft(jnp.concatenate([x, x[..., n - 2 : 0 : -1]], -1)).real


def type2(x: Any) -> Any:
    """2 sum over j of x[j] cos(pi (2 j + 1) k / (2 n)): the even points, then the odd ones back."""
    n = x.shape[-1]
    half = n // 2 + 1
    folded = jnp.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], -1)
    y = 2 * twist(fourier.rfft(folded), -np.pi * np.arange(half) / (2 * n))
    back = -y.imag[..., 1 : n - half + 1]  # element n - k is minus the imaginary part of element k
    return jnp.concatenate([y.real, back[..., ::-1]], -1)


def type3(x: Any) -> Any:
    """x[0] + 2 sum over j > 0 of x[j] cos(pi j (2 k + 1) / (2 n)): type 2 the other way."""
    n = x.shape[-1]
    half, middle = n // 2 + 1, (n + 1) // 2
    zero = jnp.zeros_like(x[..., :1])
    y = complex(x[..., :half], jnp.concatenate([zero, -x[..., n - 1 : n - half : -1]], -1))
    y = n * fourier.irfft(twist(y, np.pi * np.arange(half) / (2 * n)), n)
    odd = jnp.concatenate([y[..., middle:][..., ::-1], zero], -1)[..., :middle]
    y = jnp.stack([y[..., :middle], odd], -1)
    return y.reshape(*x.shape[:-1], 2 * middle)[..., :n]


def type4(x: Any) -> Any:
    """2 sum over j of x[j] cos(pi (2 j + 1) (2 k + 1) / (4 n))."""
    n = x.shape[-1]
    k = np.arange(n)
    y = fourier.fft(twist(x, -np.pi * k / (2 * n)), 2 * n)[..., :n]
    return 2 * twist(y, -np.pi * (2 * k + 1) / (4 * n)).real


TYPES: dict[int, Callable] = {1: type1, 2: type2, 3: type3, 4: type4}


def end_factors(n: int, type: int, last: bool) -> np.ndarray:
    """Return the factors of the input of an orthogonal transform or, with `last`, of its result."""
    out = np.ones(n)
    if type == 1:
        out[[0, -1]] = np.sqrt(0.5) if last else np.sqrt(2)
    if (type, last) == (2, True):
        out[0] = np.sqrt(0.5)
    if (type, last) == (3, False):
        out[0] = np.sqrt(2)
    return out


def transform_axis(op: str, x: Any, type: int, n: int | None, axis: int, norm: str | None) -> Any:
    """Transform one axis; the name `op` gives the direction."""
    inverse = op.startswith("i")
    power = fourier.look_up_norm(op, norm, POWERS)[inverse]
    size = x.shape[axis] if n is None else check_integer(op, "n", n)
    if size < 1:
        raise ShapeError(f"{op}: there must be at least one point along the axis; got {size}.")
    if inverse:
        type = INVERSE[type]
    x = jnp.moveaxis(fourier.cut_or_pad(x, (axis,), (size,)), axis, -1)
    ends = [end_factors(size, type, last).astype(x.dtype) for last in (False, True)]
    factors = [broadcast_to_rank(f, x.ndim) for f in ends]
    y = TYPES[type](x * factors[0]) * factors[1] if norm == "ortho" else TYPES[type](x)
    period = 2 * (size - 1) if type == 1 else 2 * size
    return jnp.moveaxis(y * period**power if power else y, -1, axis)


def transform_axes(
    op: str, x: Any, type: Any, sizes: Any, axes: Sequence[int], norm: str | None
) -> Any:
    """A transform of axes, one after another; of complex values, of both parts."""
    check_option(op, "type", type, *TYPES)
    if dtypes.is_complex(x.dtype):
        return complex(*(transform_axes(op, y, type, sizes, axes, norm) for y in (x.real, x.imag)))
    x = convert(x, dtypes.real_dtype(dtypes.complex_dtype(x.dtype, op)))
    for axis, n in zip(axes, sizes, strict=True):
        x = transform_axis(op, x, type, n, axis, norm)
    return x


def define_transform(name: str, doc: str) -> Callable:
    """A transform of one axis under its public name."""

    def fun(
        x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
    ) -> Array:
        x = as_array(x, name)
        return transform_axes(name, x, type, [n], [axis_of(name, axis, x.ndim)], norm)

    return operation(name_function(fun, name, doc), static=STATIC)


def define_transforms(name: str, doc: str) -> Callable:
    """A transform of many axes under its public name."""

    def fun(
        x: ArrayLike,
        type: int = 2,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str | None = None,
    ) -> Array:
        x = as_array(x, name)
        s = None if s is None else as_sequence(name, "s", s)
        if axes is None and s is not None:
            axes = range(x.ndim - len(s), x.ndim)
        axes = axes_of(name, tuple(axes) if isinstance(axes, range | list) else axes, x.ndim)
        if s is not None and len(s) != len(axes):
            raise ShapeError(f"{name}: s must have a size for each of axes {axes}; got {tuple(s)}.")
        return transform_axes(name, x, type, [None] * len(axes) if s is None else s, axes, norm)

    return operation(name_function(fun, name, doc), static=STATIC)


dct = define_transform(
    "dct",
    """Compute the discrete cosine transform along an axis.

    It writes a real signal as a sum of cosines. Smooth signals need few of them, so it is used for
    compression and for spectral methods.

    Without scaling, for x of n points, type 2 is y[k] = 2 sum over j of x[j] cos(pi (2 j + 1) k /
    (2 n)). Type 3 is its inverse up to a factor: x[0] + 2 sum over j > 0 of x[j] cos(pi j (2 k + 1)
    / (2 n)). Type 1 is x[0] + (-1)**k x[n-1] + 2 sum over 0 < j < n - 1 of x[j] cos(pi j k / (n -
    1)). Type 4 is 2 sum over j of x[j] cos(pi (2 j + 1) (2 k + 1) / (4 n)).

    Source: Makhoul, IEEE Transactions on Acoustics, Speech and Signal Processing 28 (1980).

    Args:
      x: a real or complex array. Of complex numbers, both parts are transformed.
      type: the type of the transform, 1, 2, 3 or 4. By default 2. Static under `jit`.
      n: the number of points. The axis is cut or padded with zeros to it. By default the size of
        the axis. Static under `jit`.
      axis: the axis to transform, an integer. By default the last. Static under `jit`.
      norm: None (the default) or "backward": the transform is not scaled, and the inverse divides
        by the period. "forward": the transform divides by the period instead. "ortho": both are
        scaled so that they are orthogonal. The period is 2 n, for type 1 2 (n - 1), for a size n.
        Static under `jit`.

    Returns:
      A float32 array, float64 for 64-bit input; complex input gives complex results. It has the
      shape of x with the given numbers of points.

    Raises:
      ValueError: `type` or `norm` is another value.
      ShapeError: there is no such axis, or fewer points than one (for type 1, than two).
      TypeError: `n` is not an integer.

    >>> from weft.scipy.fft import dct
    >>> dct(jnp.array([3.0, 3.0]), norm="forward")
    Array([3., 0.], dtype=float32)
    >>> print(dct(jnp.array([1.0, 2.0]), type=1))
    [ 3. -1.]
    """,
)
idct = define_transform(
    "idct",
    """Compute the inverse of `dct` along an axis.

    `idct(dct(x, type, norm=norm), type, norm=norm)` is x, up to rounding.

    Args:
      x: a real or complex array. Of complex numbers, both parts are transformed.
      type: the type of the transform, 1, 2, 3 or 4. By default 2. Static under `jit`.
      n: the number of points. The axis is cut or padded with zeros to it. By default the size of
        the axis. Static under `jit`.
      axis: the axis to transform, an integer. By default the last. Static under `jit`.
      norm: None (the default) or "backward": the transform is not scaled, and the inverse divides
        by the period. "forward": the transform divides by the period instead. "ortho": both are
        scaled so that they are orthogonal. The period is 2 n, for type 1 2 (n - 1), for a size n.
        Static under `jit`.

    Returns:
      A float32 array, float64 for 64-bit input; complex input gives complex results. It has the
      shape of x with the given numbers of points.

    Raises:
      ValueError: `type` or `norm` is another value.
      ShapeError: there is no such axis, or fewer points than one (for type 1, than two).
      TypeError: `n` is not an integer.

    >>> from weft.scipy.fft import dct, idct
    >>> x = jnp.array([1.0, 2.0, 4.0])
    >>> print(jnp.allclose(idct(dct(x)), x, atol=1e-5))
    True
    """,
)
dctn = define_transforms(
    "dctn",
    """Compute the discrete cosine transform along several axes.

    It applies `dct` along one axis after another, for images and fields on a grid.

    Args:
      x: a real or complex array. Of complex numbers, both parts are transformed.
      type: the type of the transform, 1, 2, 3 or 4. By default 2. Static under `jit`.
      s: the numbers of points along `axes`, a sequence of integers. The axes are cut or padded with
        zeros to them. By default the sizes of the axes. Static under `jit`.
      axes: the axes to transform, a sequence of integers. By default all axes, or with `s` as many
        of the last axes as `s` has elements. Static under `jit`.
      norm: None (the default) or "backward": the transform is not scaled, and the inverse divides
        by the period. "forward": the transform divides by the period instead. "ortho": both are
        scaled so that they are orthogonal. The period is 2 n, for type 1 2 (n - 1), for a size n.
        Static under `jit`.

    Returns:
      A float32 array, float64 for 64-bit input; complex input gives complex results. It has the
      shape of x with the given numbers of points.

    Raises:
      ValueError: `type` or `norm` is another value.
      ShapeError: there is no such axis, an axis is named twice, `s` and `axes` differ in length, or
        there are fewer points than one (for type 1, than two).

    >>> from weft.scipy.fft import dctn
    >>> print(dctn(jnp.ones((2, 2)), norm="forward"))
    [[1. 0.]
     [0. 0.]]
    >>> dctn(jnp.ones((3, 4)), s=(2,)).shape
    (3, 2)
    """,
)
idctn = define_transforms(
    "idctn",
    """Compute the inverse of `dctn` along several axes.

    `idctn(dctn(x, type, norm=norm), type, norm=norm)` is x, up to rounding.

    Args:
      x: a real or complex array. Of complex numbers, both parts are transformed.
      type: the type of the transform, 1, 2, 3 or 4. By default 2. Static under `jit`.
      s: the numbers of points along `axes`, a sequence of integers. The axes are cut or padded with
        zeros to them. By default the sizes of the axes. Static under `jit`.
      axes: the axes to transform, a sequence of integers. By default all axes, or with `s` as many
        of the last axes as `s` has elements. Static under `jit`.
      norm: None (the default) or "backward": the transform is not scaled, and the inverse divides
        by the period. "forward": the transform divides by the period instead. "ortho": both are
        scaled so that they are orthogonal. The period is 2 n, for type 1 2 (n - 1), for a size n.
        Static under `jit`.

    Returns:
      A float32 array, float64 for 64-bit input; complex input gives complex results. It has the
      shape of x with the given numbers of points.

    Raises:
      ValueError: `type` or `norm` is another value.
      ShapeError: there is no such axis, an axis is named twice, `s` and `axes` differ in length, or
        there are fewer points than one (for type 1, than two).

    >>> from weft.scipy.fft import dctn, idctn
    >>> x = jnp.arange(6.0).reshape(2, 3)
    >>> print(jnp.allclose(idctn(dctn(x)), x, atol=1e-5))
    True
    """,
)
