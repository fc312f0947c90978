"""Convolution in any number of dimensions, trends, and spectra: `weft.scipy.signal`.

numpy/convolution.py convolves vectors; numpy/fft.py has Fourier transforms.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft import numpy as jnp
from weft.errors import ShapeError
from weft.numpy import fft as fourier
from weft.numpy.convolution import MODES, check_operands, choose_padding, slide_kernel
from weft.numpy.elementwise import conj
from weft.numpy.promotion import as_array, as_inexact, axes_of, axis_of, promote_operands
from weft.primitives.dot import PrecisionLike
from weft.primitives.elementwise import complex, convert
from weft.primitives.families import check_integer, check_parameter
from weft.primitives.layout import broadcast_to_rank, rev
from weft.run.operation import operation
from weft.util import SymbolicSize, check_option, list_public, memoize, name_function, warn_user
from weft.xla.typing import Array, ArrayLike

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft",
    "stft", "welch",
]  # fmt: skip
__dir__ = list_public(__name__)

# For kernels with this many elements or more, Fourier transforms are faster than matrix products.
MIN_FFT = 4096


# --- convolution ----------------------------------------------------------------------------


def order_operands(
    op: str, x: Any, k: Any, mode: str, axes: Sequence[int]
) -> tuple[Any, Any, bool]:
    """The operand that is slid over and what slides, and whether these were exchanged."""
    pairs = [(x.shape[i], k.shape[i]) for i in axes]
    if all(n >= m for n, m in pairs):
        return x, k, False
    if all(n <= m for n, m in pairs):
        return k, x, True
    if mode == "valid":
        raise ShapeError(
            f"{op}: for mode 'valid', one operand must be at least as large as the other along "
            f"each axis; got {x.aval}, {k.aval}."
        )
    return x, k, False


def convolve_arrays(op: str, a: Any, v: Any, mode: str, method: str, precision: Any) -> Any:
    """A convolution, as `convolve` takes it."""
    check_option(op, "mode", mode, *MODES)
    check_option(op, "method", method, "auto", "direct", "fft")
    x, k = check_operands(op, a, v)
    if x.ndim and (method == "fft" or (method == "auto" and min(x.size, k.size) >= MIN_FFT)):
        return convolve_by_fft(op, x, k, mode, range(x.ndim))
    shape = x.shape
    x, k, _ = order_operands(op, x, k, mode, range(x.ndim))
    padding = [choose_padding("valid" if mode == "valid" else "full", n) for n in k.shape]
    if mode == "same":  # as much of "full" as the first operand has, from its middle
        starts = [(n + m - 1 - s) // 2 for n, m, s in zip(x.shape, k.shape, shape, strict=True)]
        padding = [
            (m - 1 - a, s - n + a)
            for n, m, s, a in zip(x.shape, k.shape, shape, starts, strict=True)
        ]
    return slide_kernel(op, x, rev(k, range(k.ndim)), padding, precision)


STATIC = ("mode", "method", "precision", "boundary", "axes")


@operation(static=STATIC)
def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: PrecisionLike = None,
) -> Array:
    """Convolve two arrays of equal rank: out[i] is the sum over j of in1[i - j] * in2[j].

    It applies a filter to a signal, an image or a volume; all axes are convolved.

    Args:
      in1: an array of a numeric dtype.
      in2: an array of the rank of `in1`.
      mode: "full", the default: all places where the operands overlap. "valid": the places where
        they overlap completely; one operand must then be at least as large as the other along every
        axis. "same": the center of "full", with the shape of `in1`. Static under `jit`.
      method: "direct" sums products. "fft" uses Fourier transforms, whose error is relative to the
        largest result. "auto", the default, uses them if both operands are large. Static under
        `jit`.
      precision: the precision of the products, as for `lax.conv`. By default None. Static under
        `jit`.

    Returns:
      An array of the promoted float or complex dtype of the operands.

    Raises:
      ShapeError: the operands differ in their number of axes, are empty, or do not fit the mode
        "valid".
      ValueError: `mode` or `method` is another name.

    >>> from weft.scipy import signal
    >>> signal.convolve(jnp.array([[1.0, 2.0]]), jnp.array([[1.0], [3.0]]))
    Array([[1., 2.],
           [3., 6.]], dtype=float32)
    >>> x, k = jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0])
    >>> print(signal.convolve(x, k), signal.convolve(x, k, "same"), signal.convolve(x, k, "valid"))
    [1. 3. 5. 3.] [1. 3. 5.] [3. 5.]
    """
    return convolve_arrays("convolve", in1, in2, mode, method, precision)


@operation(static=STATIC)
def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: PrecisionLike = None,
) -> Array:
    """Correlate two arrays of equal rank: sums over j of in1[i + j] * conj(in2[j]).

    It finds where a pattern occurs in a signal: the correlation is largest at the matching shift.
    All axes are correlated.

    Args:
      in1: an array of a numeric dtype.
      in2: an array of the rank of `in1`.
      mode: "full", the default: all places where the operands overlap. "valid": the places where
        they overlap completely; one operand must then be at least as large as the other along every
        axis. "same": the center of "full", with the shape of `in1`. Static under `jit`.
      method: "direct" sums products. "fft" uses Fourier transforms, whose error is relative to the
        largest result. "auto", the default, uses them if both operands are large. Static under
        `jit`.
      precision: the precision of the products, as for `lax.conv`. By default None. Static under
        `jit`.

    Returns:
      An array of the promoted float or complex dtype of the operands.

    Raises:
      ShapeError: the operands differ in their number of axes, are empty, or do not fit the mode
        "valid".
      ValueError: `mode` or `method` is another name.

    >>> from weft.scipy import signal
    >>> x = jnp.array([0.0, 0.0, 1.0, 2.0, 0.0])
    >>> print(signal.correlate(x, jnp.array([1.0, 2.0]), "valid"))
    [0. 2. 5. 2.]
    """
    in1, in2 = as_array(in1, "correlate"), as_array(in2, "correlate")
    in2 = rev(conj(in2), range(in2.ndim))
    return convolve_arrays("correlate", in1, in2, mode, method, precision)


BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def define_matrix_convolution(name: str, correlates: bool, doc: str) -> Callable:
    """`convolve2d` or `correlate2d`."""

    def fun(
        in1: ArrayLike,
        in2: ArrayLike,
        mode: str = "full",
        boundary: str = "fill",
        fillvalue: ArrayLike = 0,
        precision: PrecisionLike = None,
    ) -> Array:
        check_option(name, "mode", mode, *MODES)
        check_option(name, "boundary", boundary, *BOUNDARIES)
        x, k = check_operands(name, in1, in2, 2)
        swapped, margins = False, [(0, 0), (0, 0)]
        if mode == "valid":
            x, k, swapped = order_operands(name, x, k, mode, (0, 1))
        elif mode == "full":
            margins = [choose_padding(mode, n) for n in k.shape]
        else:
            margins = [choose_padding(mode, n)[:: -1 if correlates else 1] for n in k.shape]
        if boundary != "fill" or type(fillvalue) not in (int, float) or fillvalue:
            more = {"constant_values": fillvalue} if boundary == "fill" else {}
            x, margins = jnp.pad(x, margins, BOUNDARIES[boundary], **more), [(0, 0), (0, 0)]
        k = conj(k) if correlates else rev(k, (0, 1))
        out = slide_kernel(name, x, k, margins, precision)
        return rev(out, (0, 1)) if correlates and swapped else out

    return operation(name_function(fun, name, doc), static=STATIC)


convolve2d = define_matrix_convolution(
    "convolve2d",
    False,
    """Convolve two matrices, with a choice of boundary.

    It applies a filter to an image. For other numbers of axes, use `convolve`.

    Args:
      in1: a matrix.
      in2: a matrix.
      mode: "full", the default: all places where the operands overlap. "valid": the places where
        they overlap completely; one operand must then be at least as large as the other along every
        axis. "same": the center of "full", with the shape of `in1`. Static under `jit`.
      boundary: the extension of `in1` beyond its edges: "fill", the default, with `fillvalue`;
        "wrap": the matrix is repeated; "symm": it is reflected. Static under `jit`.
      fillvalue: the value beyond the edges for "fill", a scalar. By default 0.
      precision: the precision of the products, as for `lax.conv`. By default None. Static under
        `jit`.

    Returns:
      An array of the promoted float or complex dtype of the operands.

    Raises:
      ShapeError: an operand does not have two axes, or the operands do not fit the mode "valid".
      ValueError: `mode` or `boundary` is another name.

    >>> from weft.scipy import signal
    >>> x, k = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[1.0, 1.0]])
    >>> print(signal.convolve2d(x, k))
    [[1. 3. 2.]
     [3. 7. 4.]]
    >>> print(signal.convolve2d(x, k, boundary="wrap"))
    [[3. 3. 3.]
     [7. 7. 7.]]
    """,
)
correlate2d = define_matrix_convolution(
    "correlate2d",
    True,
    """Correlate two matrices, with a choice of boundary.

    It is the matrix form of `correlate`. As in SciPy, if `in2` is larger and `mode` is "valid",
    `in1` is conjugated instead of `in2`. Also as in SciPy, the center of an even number of elements
    is the first of the two, where `convolve2d` takes the second.

    Args:
      in1: a matrix.
      in2: a matrix.
      mode: "full", the default: all places where the operands overlap. "valid": the places where
        they overlap completely; one operand must then be at least as large as the other along every
        axis. "same": the center of "full", with the shape of `in1`. Static under `jit`.
      boundary: the extension of `in1` beyond its edges: "fill", the default, with `fillvalue`;
        "wrap": the matrix is repeated; "symm": it is reflected. Static under `jit`.
      fillvalue: the value beyond the edges for "fill", a scalar. By default 0.
      precision: the precision of the products, as for `lax.conv`. By default None. Static under
        `jit`.

    Returns:
      An array of the promoted float or complex dtype of the operands.

    Raises:
      ShapeError: an operand does not have two axes, or the operands do not fit the mode "valid".
      ValueError: `mode` or `boundary` is another name.

    >>> from weft.scipy import signal
    >>> x, k = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[1.0, 2.0]])
    >>> print(signal.correlate2d(x, k))
    [[ 2.  5.  2.]
     [ 6. 11.  4.]]
    """,
)


@memoize
def fast_length(n: int) -> int:
    """The least number from n on with no prime factors but 2, 3 and 5, fast to transform."""
    while True:
        rest = n
        for p in (2, 3, 5):
            while rest % p == 0:
                rest //= p
        if rest == 1:
            return n
        n += 1


def convolve_by_fft(op: str, x: Any, k: Any, mode: str, axes: Sequence[int]) -> Any:
    """A convolution along `axes` by Fourier transforms; the other axes broadcast."""
    dtype, shape = x.dtype, x.shape
    if mode == "valid":
        x, k, _ = order_operands(op, x, k, mode, axes)
    sizes = [x.shape[i] + k.shape[i] - 1 for i in axes]
    # The prime factors of a symbolic size are not known.
    lengths = [n if isinstance(n, SymbolicSize) else fast_length(n) for n in sizes]
    forward, backward = fourier.rfftn, fourier.irfftn
    if dtypes.is_complex(dtype):
        forward, backward = fourier.fftn, fourier.ifftn
    out = backward(forward(x, lengths, axes) * forward(k, lengths, axes), lengths, axes)
    kept = list(out.shape)
    for i, n in zip(axes, sizes, strict=True):
        kept[i] = n
    out = out[tuple(map(slice, kept))]
    for i in axes:
        if mode == "same":
            kept[i] = shape[i]
        elif mode == "valid":
            kept[i] = x.shape[i] - k.shape[i] + 1
    starts = [(n - m) // 2 for n, m in zip(out.shape, kept, strict=True)]  # of the middle
    return convert(out[tuple(slice(a, a + m) for a, m in zip(starts, kept, strict=True))], dtype)


@operation(static=STATIC)
def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Any = None) -> Array:
    """Convolve two arrays along some axes by Fourier transforms.

    It is faster than direct sums for large operands. The error is relative to the largest result.
    Axes that are not convolved broadcast.

    Args:
      in1: an array of a numeric dtype.
      in2: an array of the rank of `in1`.
      mode: "full", the default: all places where the operands overlap. "valid": the places where
        they overlap completely; one operand must then be at least as large as the other along every
        axis. "same": the center of "full", with the shape of `in1`. Static under `jit`.
      axes: the axes to convolve, an integer or a sequence of integers. By default all axes. Static
        under `jit`.

    Returns:
      An array of the promoted float or complex dtype of the operands.

    Raises:
      ShapeError: the operands differ in their number of axes, have no such axis, do not broadcast
        along the other axes, or do not fit the mode "valid".
      ValueError: `mode` is another name.

    >>> from weft.scipy import signal
    >>> x, k = jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0])
    >>> print(np.asarray(signal.fftconvolve(x, k)).round(3))
    [1. 3. 5. 3.]
    >>> signal.fftconvolve(jnp.ones((3, 4)), jnp.ones((3, 2)), axes=1).shape
    (3, 5)
    """
    check_option("fftconvolve", "mode", mode, *MODES)
    x, k = check_operands("fftconvolve", in1, in2)
    axes = axes_of("fftconvolve", tuple(axes) if isinstance(axes, list) else axes, x.ndim)
    rest = [i for i in range(x.ndim) if i not in axes]
    if any(x.shape[i] != k.shape[i] and 1 not in (x.shape[i], k.shape[i]) for i in rest):
        raise ShapeError(
            f"fftconvolve: axes other than {axes} must broadcast together; got {x.aval}, {k.aval}."
        )
    if not axes:
        return x * k
    return convolve_by_fft("fftconvolve", x, k, mode, axes)


# --- trends ---------------------------------------------------------------------------------


def detrend(
    data: ArrayLike, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: None = None
) -> Array:
    """Subtract the mean or a least-squares line from data along an axis.

    It removes an offset or a drift before a spectrum is computed.

    Args:
      data: an array, usually of a float dtype.
      axis: the axis of the trend, an integer. By default the last.
      type: "linear" (or "l"), the default, subtracts a line; "constant" (or "c") subtracts the
        mean.
      bp: an integer or a sequence of integers: positions that divide the axis into parts. With
        "linear" each part has its own line. By default 0: one part.
      overwrite_data: must be None: arrays do not change. It is there for programs that were written
        for SciPy.

    Returns:
      An array of the shape of `data`. It has the dtype of `data`; integers become the default
      float.

    Raises:
      ValueError: `type` is another name.
      ShapeError: the axis does not exist, or a position is beyond the axis.
      TypeError: `bp` are not integers.
      NotImplementedError: `overwrite_data` is not None.

    >>> from weft.scipy import signal
    >>> x = jnp.array([1.0, 3.0, 2.0, 6.0])
    >>> print(signal.detrend(x, type="constant"))
    [-2.  0. -1.  3.]
    >>> print(np.asarray(signal.detrend(x)).round(2))
    [ 0.1  0.7 -1.7  0.9]
    """
    if overwrite_data is not None:
        raise NotImplementedError(
            "detrend: overwrite_data must be None, for arrays do not change; "
            f"got {overwrite_data!r}."
        )
    read = lambda bp: tuple(np.unique(np.asarray(bp, int).ravel()).tolist())
    breaks = check_parameter("detrend", "bp", bp, "integers", read)
    check_option("detrend", "type", type, "linear", "l", "constant", "c")
    return detrend_segments(data, check_integer("detrend", "axis", axis), type, breaks)


@operation(static=("axis", "type", "breaks"), name="detrend")
def detrend_segments(data: Any, axis: int, type: str, breaks: tuple[int, ...]) -> Any:
    """`detrend`, its arguments in one form."""
    type = {"l": "linear", "c": "constant"}.get(type, type)
    x = as_inexact("detrend", data)
    axis = axis_of("detrend", axis, x.ndim)
    n = x.shape[axis]
    if type == "constant":
        return x - jnp.mean(x, axis, keepdims=True)
    if any(not 0 <= b <= n for b in breaks):
        raise ShapeError(
            f"detrend: bp must be positions along the axis, of size {n}; got {breaks}."
        )
    bounds = sorted({0, *breaks, n})
    x, parts = jnp.moveaxis(x, axis, -1), []
    for start, stop in zip(bounds[:-1], bounds[1:], strict=True):
        part = x[..., start:stop] - jnp.mean(x[..., start:stop], -1, keepdims=True)
        if stop - start > 1:
            t = np.arange(stop - start) - (stop - start - 1) / 2  # the mean is 0
            weights, t = (
                broadcast_to_rank(jnp.asarray(v, x.dtype), x.ndim) for v in (t / np.sum(t * t), t)
            )
            part = part - jnp.sum(part * weights, -1, keepdims=True) * t
        parts.append(part)
    return jnp.moveaxis(jnp.concatenate(parts, -1) if parts else x, -1, axis)


# --- spectra --------------------------------------------------------------------------------

# Windows that are sums of cosines, by their coefficients.
COSINES = {
    "boxcar": (1.0,),
    "hann": (0.5, 0.5),
    "hamming": (0.54, 0.46),
    "blackman": (0.42, 0.5, 0.08),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
}


def make_window(op: str, window: Any, nperseg: int, dtype: np.dtype) -> Any:
    """A window of `nperseg` points: by name, as SciPy names it, or as an array."""
    if isinstance(window, str | tuple):
        if nperseg == 1:
            return jnp.asarray(np.ones(1), dtype)
        if window in COSINES:
            angles = 2 * np.pi * np.arange(nperseg) / nperseg
            terms = [(-1) ** i * c * np.cos(i * angles) for i, c in enumerate(COSINES[window])]
            return jnp.asarray(np.sum(terms, 0), dtype)
        import scipy.signal

        read = lambda window: scipy.signal.get_window(window, nperseg)
        what = "the name of a window, or its values"
        return jnp.asarray(check_parameter(op, "window", window, what, read), dtype)
    window = as_array(window, op)
    if window.shape != (nperseg,):
        raise ShapeError(f"{op}: window must be of shape ({nperseg},); got {window.aval}.")
    return convert(window, dtype)


def segment_sizes(
    op: str, window: Any, nperseg: Any, noverlap: Any, nfft: Any, size: int | None
) -> tuple[int, int, int]:
    """Points in a segment, at most `size`; from one to the next; and in a transform."""
    if not isinstance(window, str | tuple):
        length = as_array(window, op).size
        if nperseg is not None and nperseg != length:
            raise ShapeError(
                f"{op}: nperseg must be the length of the window; got {nperseg} for {length}."
            )
        nperseg = length
    nperseg = 256 if nperseg is None else check_integer(op, "nperseg", nperseg)
    if nperseg < 1:
        raise ShapeError(f"{op}: nperseg must be positive; got {nperseg}.")
    if size is not None and nperseg > size:
        if not isinstance(window, str | tuple):
            raise ShapeError(f"{op}: window must not be longer than x, {size}; got {nperseg}.")
        if nperseg != 256:
            text = f"{op}: nperseg is {nperseg}, of {size} points; taking {size}."
            warn_user(text)
        nperseg = size
    noverlap = nperseg // 2 if noverlap is None else check_integer(op, "noverlap", noverlap)
    if not 0 <= noverlap < nperseg:
        raise ShapeError(f"{op}: noverlap must be below nperseg, {nperseg}; got {noverlap}.")
    nfft = nperseg if nfft is None else check_integer(op, "nfft", nfft)
    if nfft < nperseg:
        raise ShapeError(f"{op}: nfft must be at least nperseg, {nperseg}; got {nfft}.")
    return nperseg, nperseg - noverlap, nfft


def cut_segments(x: Any, size: int, step: int) -> Any:
    """The segments of a last axis: (..., count, size), each `step` after the one before."""
    count, rows = (x.shape[-1] - size) // step + 1, -(-size // step)
    x = fourier.cut_or_pad(x, (x.ndim - 1,), ((count + rows - 1) * step,))
    x = x.reshape(*x.shape[:-1], count + rows - 1, step)
    return jnp.concatenate([x[..., i : i + count, :] for i in range(rows)], -1)[..., :size]


def add_overlaps(x: Any, step: int) -> Any:
    """The sum of segments (..., count, size), each `step` after the one before."""
    *lead, count, size = x.shape
    rank, rows = len(lead), -(-size // step)
    x = fourier.cut_or_pad(x, (rank + 1,), (rows * step,)).reshape(*lead, count, rows, step)
    # rows of count + rows segments, read as rows one shorter: each starts one further to the right
    x = fourier.cut_or_pad(jnp.swapaxes(x, -3, -2), (rank + 1,), (count + rows,))
    x = x.reshape(*lead, rows * (count + rows), step)[..., : rows * (count + rows - 1), :]
    x = jnp.sum(x.reshape(*lead, rows, count + rows - 1, step), rank)
    return x.reshape(*lead, (count + rows - 1) * step)[..., : (count - 1) * step + size]


def choose_detrend(op: str, how: Any) -> Callable[[Any], Any]:
    """Return the function that removes the trend of segments along their last axis."""
    if callable(how):
        return how
    if isinstance(how, str):
        return functools.partial(detrend, axis=-1, type=how)
    if how:
        raise ValueError(f"{op}: detrend must be a name, a function or False; got {how!r}.")
    return lambda x: x


def transform_segments(
    op: str, x: Any, window: Any, sizes: tuple[int, int, int], how: Any, onesided: bool
) -> Any:
    """The transforms of the windowed segments of a last axis: (..., count, frequency)."""
    nperseg, step, nfft = sizes
    x = as_array(choose_detrend(op, how)(cut_segments(x, nperseg, step)), op)
    x = x * broadcast_to_rank(convert(window, x.dtype), x.ndim)
    return (fourier.rfft if onesided else fourier.fft)(x, nfft)


def list_frequencies(nfft: int, fs: Any, onesided: bool, dtype: np.dtype) -> Any:
    """The frequencies of a transform of samples `fs` a second."""
    steps = (np.fft.rfftfreq if onesided else np.fft.fftfreq)(nfft)
    return jnp.asarray(steps, dtype) * convert(as_array(fs), dtype)


def check_onesided(op: str, wanted: bool, *xs: Any) -> bool:
    """Return True if half of the frequencies are given: where wanted, and values are real."""
    if wanted and any(dtypes.is_complex(x.dtype) for x in xs):
        warn_user(f"{op}: of complex values, all frequencies are given.")
        return False
    return wanted


def average_segments(op: str, x: Any, average: str) -> Any:
    """The average over a last axis, of segments."""
    check_option(op, "average", average, "mean", "median")
    if average == "mean":
        return jnp.mean(x, -1)
    if dtypes.is_complex(x.dtype):
        out = complex(jnp.median(x.real, -1), jnp.median(x.imag, -1))
    else:
        out = jnp.median(x, -1)
    # the expected median of n periodograms of noise, relative to their mean
    even = 2 * np.arange(1.0, (x.shape[-1] - 1) // 2 + 1)
    return out / float(1 + np.sum(1 / (even + 1) - 1 / even))


def prepare_signal(op: str, x: Any, axis: Any) -> tuple[Any, int]:
    """Return a signal in a dtype with Fourier transforms, time last; and the old axis of time."""
    x = as_inexact(op, x)
    axis = axis_of(op, axis, x.ndim)
    wide = dtypes.complex_dtype(x.dtype)
    x = convert(x, wide if dtypes.is_complex(x.dtype) else dtypes.real_dtype(wide))
    return jnp.moveaxis(x, axis, -1), axis


def csd(
    x: ArrayLike,
    y: ArrayLike,
    fs: ArrayLike = 1.0,
    window: str | ArrayLike | tuple[Any, ...] = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Estimate the cross power spectral density of two signals by Welch's method.

    It shows at which frequencies two signals vary together. The signals are divided into
    overlapping segments; these are detrended, multiplied by a window, transformed and averaged.
    Source: Welch, IEEE Transactions on Audio and Electroacoustics 15 (1967).

    Args:
      x: an array, real or complex, with time along `axis`.
      y: an array with the same number of axes as x. The shorter signal is padded with zeros. None
        stands for x.
      fs: the sampling frequency, a real scalar. By default 1.
      window: the name of a window, as for `scipy.signal.get_window`, or an array of its values. By
        default "hann".
      nperseg: the number of points of a segment. By default 256, or the length of a window that is
        given as an array. It is at most the length of the signal.
      noverlap: the number of points that a segment shares with the next. By default half of
        `nperseg`.
      nfft: the number of points of the Fourier transforms; segments are padded with zeros to it. By
        default `nperseg`.
      detrend: "constant" or "linear", as for `detrend`; a function that is applied to segments
        along their last axis; or False for nothing. By default "constant".
      return_onesided: if True, the default, and the signal is real, return the frequencies that are
        not negative only.
      scaling: "density", the default: power per frequency; "spectrum": power.
      axis: the axis of time, an integer. By default the last.
      average: "mean", the default, or "median", which is robust to outliers; it is corrected for
        its bias.

    Returns:
      A pair: the frequencies, a float vector, and the spectral density, with the frequencies along
      `axis`.

    Raises:
      ShapeError: x and y differ in their number of axes; `nperseg`, `noverlap` or `nfft` do not fit
        each other; or a window does not have `nperseg` values.
      TypeError: `window` is not the name of a window.
      ValueError: `scaling`, `average` or `detrend` is another name.

    >>> from weft.scipy import signal
    >>> x = jnp.sin(jnp.arange(64.0) * jnp.pi / 4)
    >>> frequencies, power = signal.csd(x, 2 * x, nperseg=16)
    >>> frequencies[abs(power).argmax()]
    Array(0.125, dtype=float32)
    """
    lengths, how = (nperseg, noverlap, nfft), (detrend, return_onesided, scaling, average)
    return spectral_density("csd", x, y, fs, window, lengths, how, axis)


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: str | ArrayLike | tuple[Any, ...] = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Estimate the power spectral density of a signal by Welch's method.

    It shows how the power of a signal is distributed over frequencies. It is `csd` of x with
    itself. Source: Welch, IEEE Transactions on Audio and Electroacoustics 15 (1967).

    Args:
      x: an array, real or complex, with time along `axis`.
      fs: the sampling frequency, a real scalar. By default 1.
      window: the name of a window, as for `scipy.signal.get_window`, or an array of its values. By
        default "hann".
      nperseg: the number of points of a segment. By default 256, or the length of a window that is
        given as an array. It is at most the length of the signal.
      noverlap: the number of points that a segment shares with the next. By default half of
        `nperseg`.
      nfft: the number of points of the Fourier transforms; segments are padded with zeros to it. By
        default `nperseg`.
      detrend: "constant" or "linear", as for `detrend`; a function that is applied to segments
        along their last axis; or False for nothing. By default "constant".
      return_onesided: if True, the default, and the signal is real, return the frequencies that are
        not negative only.
      scaling: "density", the default: power per frequency; "spectrum": power.
      axis: the axis of time, an integer. By default the last.
      average: "mean", the default, or "median", which is robust to outliers; it is corrected for
        its bias.

    Returns:
      A pair: the frequencies, a float vector, and the spectral density, a real array with the
      frequencies along `axis`.

    Raises:
      ShapeError: `nperseg`, `noverlap` or `nfft` do not fit each other, or a window does not have
        `nperseg` values.
      TypeError: `window` is not the name of a window.
      ValueError: `scaling`, `average` or `detrend` is another name.

    >>> from weft.scipy import signal
    >>> frequencies, power = signal.welch(jnp.sin(jnp.arange(64.0) * jnp.pi / 4), nperseg=16)
    >>> frequencies[power.argmax()]
    Array(0.125, dtype=float32)
    """
    lengths, how = (nperseg, noverlap, nfft), (detrend, return_onesided, scaling, average)
    return spectral_density("welch", x, None, fs, window, lengths, how, axis)


def spectral_density(
    op: str, x: Any, y: Any, fs: Any, window: Any, lengths: tuple, how: tuple, axis: Any
) -> tuple[Any, Any]:
    """`csd` and `welch`; `how` is (detrend, whether onesided, scaling, average)."""
    detrend, onesided, scaling, average = how
    if y is not None:
        x, y = as_array(x, op), as_array(y, op)
        if x.ndim != y.ndim:
            raise ShapeError(f"{op}: x and y must be of equal rank; got {x.aval}, {y.aval}.")
        y, _ = prepare_signal(op, y, axis)
    x, axis = prepare_signal(op, x, axis)
    if y is not None:
        x, y = promote_operands(op, x, y, shaped=False)
        n = max(x.shape[-1], y.shape[-1])
        x, y = (fourier.cut_or_pad(v, (v.ndim - 1,), (n,)) for v in (x, y))
    onesided = check_onesided(op, onesided, x)
    real_type = dtypes.real_dtype(x.dtype)
    if not x.size:
        lead = x.shape[:-1] if y is None else jnp.broadcast_shapes(x.shape[:-1], y.shape[:-1])
        return jnp.zeros(0, real_type), jnp.moveaxis(jnp.zeros((*lead, 0), real_type), -1, axis)
    sizes = segment_sizes(op, window, *lengths, x.shape[-1])
    taper = make_window(op, window, sizes[0], real_type)
    out = average_powers(x, y, fs, taper, op, sizes, (detrend, onesided, scaling, average))
    return list_frequencies(sizes[2], fs, onesided, real_type), jnp.moveaxis(out, -1, axis)


@operation(static=("op", "sizes", "how"), name="csd")
def average_powers(
    x: Any, y: Any, fs: Any, window: Any, op: str, sizes: tuple[int, int, int], how: tuple
) -> Any:
    """The spectral density, frequency last, of signals with time last."""
    detrend, onesided, scaling, average = how
    fs = convert(as_array(fs, op), window.dtype)
    check_option(op, "scaling", scaling, "density", "spectrum")
    is_density = scaling == "density"
    scale = 1.0 / (fs * jnp.sum(window * window) if is_density else jnp.sum(window) ** 2)
    first = transform_segments(op, x, window, sizes, detrend, onesided)
    if y is None:
        out = first.real**2 + first.imag**2
    else:
        out = conj(first) * transform_segments(op, y, window, sizes, detrend, onesided)
    out = out * convert(scale, out.dtype)
    if onesided:  # the frequencies below 0 have as much
        twice = np.full(out.shape[-1], 2.0)
        twice[0] = 1
        if sizes[2] % 2 == 0:
            twice[-1] = 1
        out = out * broadcast_to_rank(jnp.asarray(twice, out.dtype), out.ndim)
    return average_segments(op, jnp.moveaxis(out, -2, -1), average)


# How a signal is extended beyond its ends, as modes of `pad`.
EXTENSIONS: dict[Any, dict[str, Any]] = {
    "zeros": {"mode": "constant"},
    "constant": {"mode": "edge"},
    "even": {"mode": "reflect"},
    "odd": {"mode": "reflect", "reflect_type": "odd"},
}


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: str | ArrayLike | tuple[Any, ...] = "hann",
    nperseg: int | None = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """Compute the short-time Fourier transform of a signal.

    It shows how the frequencies of a signal change in time. The signal is divided into overlapping
    segments; these are multiplied by a window and transformed. `istft` is the inverse.

    Args:
      x: an array, real or complex, with time along `axis`.
      fs: the sampling frequency, a real scalar. By default 1.
      window: the name of a window, as for `scipy.signal.get_window`, or an array of its values. By
        default "hann".
      nperseg: the number of points of a segment. By default 256, or the length of a window that is
        given as an array. It is at most the length of the signal.
      noverlap: the number of points that a segment shares with the next. By default half of
        `nperseg`.
      nfft: the number of points of the Fourier transforms; segments are padded with zeros to it. By
        default `nperseg`.
      detrend: "constant" or "linear", as for `detrend`; a function that is applied to segments
        along their last axis; or False for nothing. By default False.
      return_onesided: if True, the default, and the signal is real, return the frequencies that are
        not negative only.
      boundary: the extension of x by half a segment at both ends: "zeros", the default, "constant",
        "even", "odd", or None for no extension.
      padded: if True, the default, zeros at the end complete the last segment.
      axis: the axis of time, an integer. By default the last.

    Returns:
      A triple: the frequencies and the times of the segments, float vectors; and the transforms, a
      complex array with the frequencies along `axis` and the segments along the last axis.

    Raises:
      ShapeError: `nperseg`, `noverlap` or `nfft` do not fit each other, or a window does not have
        `nperseg` values.
      TypeError: `window` is not the name of a window.
      ValueError: `boundary` is another name.

    >>> from weft.scipy import signal
    >>> x = jnp.sin(2 * jnp.pi * 5 * jnp.arange(256) / 64)
    >>> frequencies, times, z = signal.stft(x, fs=64.0, nperseg=64)
    >>> z.shape
    (33, 9)
    >>> print(frequencies[abs(z[:, 4]).argmax()])
    5.0
    """
    x, along = prepare_signal("stft", x, axis)
    onesided = check_onesided("stft", return_onesided, x)
    sizes = segment_sizes("stft", window, nperseg, noverlap, nfft, x.shape[-1])
    n, step, length = sizes
    real_type = dtypes.real_dtype(x.dtype)
    taper = make_window("stft", window, n, real_type)
    check_option("stft", "boundary", boundary, None, *EXTENSIONS)
    if boundary is not None:
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n // 2, n // 2)], **EXTENSIONS[boundary])
    if padded:
        x = fourier.cut_or_pad(x, (x.ndim - 1,), (x.shape[-1] + -(x.shape[-1] - n) % step % n,))
    times = np.arange(n / 2, x.shape[-1] - n / 2 + 1, step) - (n / 2 if boundary else 0)
    times = jnp.asarray(times, real_type) / convert(as_array(fs, "stft"), real_type)
    out = jnp.moveaxis(transform_signal(x, taper, sizes, detrend, onesided), -1, along)
    return list_frequencies(length, fs, onesided, real_type), times, out


@operation(static=("sizes", "detrend", "onesided"), name="stft")
def transform_signal(
    x: Any, window: Any, sizes: tuple[int, int, int], detrend: Any, onesided: bool
) -> Any:
    """The transforms of a signal with time last: (..., count, frequency)."""
    window = window / jnp.abs(jnp.sum(window))
    return transform_segments("stft", x, window, sizes, detrend, onesided)


def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: str | ArrayLike | tuple[Any, ...] = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """Return the signal with a given short-time Fourier transform: the inverse of `stft`.

    If the transforms were modified and belong to no signal, the result is the signal whose
    transforms are nearest in the least-squares sense. Source: Griffin and Lim, IEEE Transactions on
    Acoustics, Speech and Signal Processing 32 (1984).

    Args:
      Zxx: a complex array of transforms, with at least two axes.
      fs: the sampling frequency, a real scalar. By default 1.
      window: the name of a window, as for `scipy.signal.get_window`, or an array of its values. By
        default "hann". Use the window of `stft`.
      nperseg: the number of points of a segment. By default it follows from the number of
        frequencies, as an even number for one-sided transforms.
      noverlap: the number of points that a segment shares with the next. By default half of
        `nperseg`.
      nfft: the number of points of the Fourier transforms. By default it follows from the number of
        frequencies.
      input_onesided: True, the default, if `Zxx` holds only the frequencies that are not negative.
      boundary: True, the default, if `stft` extended the signal; half a segment is then cut off at
        both ends.
      time_axis: the axis of the segments, an integer. By default the last.
      freq_axis: the axis of the frequencies, an integer. By default the last but one.

    Returns:
      A pair: the times, a float vector, and the signal, real for one-sided transforms.

    Raises:
      ShapeError: `Zxx` has fewer than two axes, the axes are equal, or `nperseg`, `noverlap` or
        `nfft` do not fit each other.

    >>> from weft.scipy import signal
    >>> x = jnp.sin(jnp.arange(256.0))
    >>> _, _, z = signal.stft(x, nperseg=64)
    >>> times, y = signal.istft(z, nperseg=64)
    >>> bool(jnp.allclose(x, y, atol=1e-5))
    True
    """
    x = as_array(Zxx, "istft")
    x = convert(x, dtypes.complex_dtype(x.dtype, "istft"))
    if x.ndim < 2:
        raise ShapeError(f"istft: Zxx must be of rank 2 or more; got {x.aval}.")
    time, freq = axis_of("istft", time_axis, x.ndim), axis_of("istft", freq_axis, x.ndim)
    if time == freq:
        raise ShapeError(f"istft: time_axis and freq_axis must differ; got {time_axis}.")
    count = 2 * (x.shape[freq] - 1) if input_onesided else x.shape[freq]
    if nperseg is None and isinstance(window, str | tuple):
        nperseg = count
    odd = input_onesided and nfft is None and nperseg == count + 1
    nfft = (count + 1 if odd else count) if nfft is None else nfft
    sizes = segment_sizes("istft", window, nperseg, noverlap, nfft, None)
    real_type = dtypes.real_dtype(x.dtype)
    taper = make_window("istft", window, sizes[0], real_type)
    x = jnp.moveaxis(x, (time, freq), (-2, -1))
    out = restore_signal(x, taper, sizes, bool(input_onesided), bool(boundary))
    times = jnp.arange(out.shape[-1], dtype=real_type) / convert(as_array(fs, "istft"), real_type)
    return times, jnp.moveaxis(out, -1, time - (freq < time))


@operation(static=("sizes", "onesided", "boundary"), name="istft")
def restore_signal(
    x: Any, window: Any, sizes: tuple[int, int, int], onesided: bool, boundary: bool
) -> Any:
    """The signal, time last, of transforms (..., count, frequency)."""
    n, step, nfft = sizes
    x = (fourier.irfft if onesided else fourier.ifft)(x, nfft)[..., :n]
    taper = convert(window * jnp.abs(jnp.sum(window)), x.dtype)
    out = add_overlaps(x * broadcast_to_rank(taper, x.ndim), step)
    weight = add_overlaps(jnp.broadcast_to(window * window, (x.shape[-2], n)), step)
    # Where no window reaches, the sum is not divided.
    weight = convert(jnp.where(weight > 1e-10, weight, 1.0), out.dtype)
    out = out / broadcast_to_rank(weight, out.ndim)
    return out[..., n // 2 : out.shape[-1] - n // 2] if boundary else out
