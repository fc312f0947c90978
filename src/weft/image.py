"""Images, or any arrays, at another size: `resize`, and its general form `scale_and_translate`.

Each axis is resampled by a matrix of weights: a kernel around the input position of each output
pixel. A large image has a matrix for each block of output pixels, with only the input pixels that
the block reads. Pixel i covers the range from i to i + 1.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft import numpy as jnp
from weft.api.contexts import enable_x64
from weft.api.grad import linear_transpose
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost, Linearity
from weft.core.form import Form
from weft.core.source import boundary
from weft.errors import ShapeError
from weft.numpy.promotion import as_array, as_inexact, axis_of, shape_of
from weft.primitives import families
from weft.primitives.constant import stage_whole
from weft.primitives.dot import Precision, PrecisionLike
from weft.primitives.layout import batched_at_front
from weft.primitives.sparse import resample_p
from weft.run.operation import operation
from weft.util import SymbolicSize, has_symbolic_size, list_public
from weft.xla.lower import lower_jaxpr
from weft.xla.typing import Array, ArrayLike

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]
__dir__ = list_public(__name__)


class ResizeMethod(enum.Enum):
    """The method of interpolation between pixels.

    `resize` and `scale_and_translate` take a member, or one of its names as a string. `from_string`
    returns the member of a name.

    Attributes:
      NEAREST: "nearest". The value of the nearest pixel.
      LINEAR: "linear", "bilinear", "trilinear" or "triangle".
      CUBIC: "cubic", "bicubic" or "tricubic". Keys' kernel with a = -0.5.
      CUBIC_PYTORCH: "cubic-pytorch" or "bicubic-pytorch". PyTorch's bicubic interpolation, which
        repeats the pixels at the edges. It has a = -0.75 where `antialias` is False.
      LANCZOS3, LANCZOS5: "lanczos3" and "lanczos5". Lanczos kernels of radius 3 and 5.
      AREA: "area". The mean of the pixels that an output pixel covers.

    >>> ResizeMethod.from_string("bicubic")
    <ResizeMethod.CUBIC: 4>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name, as "linear" or "bilinear".

        >>> ResizeMethod.from_string("bicubic")
        <ResizeMethod.CUBIC: 4>
        """
        if not isinstance(s, str) or s not in NAMES:
            raise ValueError(f"resize: method must be one of {', '.join(NAMES)}; got {s!r}.")
        return NAMES[s]


NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "area": ResizeMethod.AREA,
}


# --- kernels: weights by distance, in pixels --------------------------------------------------


def make_cubic(a: float) -> Callable:
    """Keys' cubic convolution ("Cubic convolution interpolation", 1981, eq. 3) of slope a at 1."""

    def kernel(x: Any) -> Any:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return jnp.where(x < 1, near, jnp.where(x < 2, far, 0))

    return kernel


def make_lanczos(radius: float) -> Callable:
    """The sinc function under a window that is the inner lobe of a wider one."""
    return lambda x: jnp.where(x < radius, jnp.sinc(x) * jnp.sinc(x / radius), 0)


# How far kernels reach, and their values at a distance.
KERNELS = {
    ResizeMethod.LINEAR: (1, lambda x: jnp.maximum(0, 1 - x)),
    ResizeMethod.CUBIC: (2, make_cubic(-0.5)),
    ResizeMethod.CUBIC_PYTORCH: (2, make_cubic(-0.5)),
    ResizeMethod.LANCZOS3: (3, make_lanczos(3.0)),
    ResizeMethod.LANCZOS5: (5, make_lanczos(5.0)),
}


def choose_windows(
    source: int, target: int, step: float | None, method: ResizeMethod, antialias: bool
) -> tuple[int, int, np.ndarray]:
    """One window of all pixels; many where the products with the weights would be mostly with 0.

    A block of `size` output pixels is made of `width` from starts[i] on, or outside of the image.
    Symbolic sizes have one window.
    """
    outside = 2 if repeats_edges(method, antialias) else 0
    symbolic = has_symbolic_size((source, target))
    if step is not None and not symbolic and source * target > DENSE:
        reach = find_reach(step, method, antialias)
        width = math.ceil((BLOCK - 1) * step + 2 * reach) + 2
        if 4 * width < source:
            starts = np.floor((np.arange(0, target, BLOCK) + 0.5) * step - 0.5 - reach).astype(int)
            return BLOCK, width, starts
    return target, source + 2 * outside, np.array([-outside])


def find_reach(step: float, method: ResizeMethod, antialias: bool) -> float:
    """Return the distances of input pixels from the middle of the output pixel that they make."""
    wide = max(step, 1) if antialias else 1
    return (step + 1) / 2 if method is ResizeMethod.AREA else KERNELS[method][0] * wide


DENSE = 1 << 16  # with fewer weights, one dense product is as fast as many small products
BLOCK = 32


def repeats_edges(method: ResizeMethod, antialias: bool) -> bool:
    """Return True if pixels outside of the image repeat its edges, in place of counting nothing."""
    return method is ResizeMethod.CUBIC_PYTORCH and not antialias


def make_weights(
    here: Any, pixels: np.ndarray, source: int, step: Any, method: ResizeMethod, antialias: bool
) -> Any:
    """Return weights [..., pixels, here] of input pixels [..., n] for each output pixel [..., k].

    `here` has the centers of the output pixels in the input; `step` is the width of an output
    pixel.
    """
    dtype = here.dtype
    here, places = here[..., None, :], jnp.asarray(pixels, dtype)[..., None]
    if method is ResizeMethod.AREA:
        low, high = here + 0.5 - step / 2, here + 0.5 + step / 2
        shared = jnp.minimum(high, places + 1) - jnp.maximum(low, places)
        weights = jnp.maximum(0, shared)
    elif repeats_edges(method, antialias):
        weights = make_cubic(-0.75)(jnp.abs(here - places))
    else:
        wide = jnp.maximum(step, 1) if antialias else 1
        weights = KERNELS[method][1](jnp.abs(here - places) / wide)
    inside = (pixels >= 0) & (pixels < source)
    known = isinstance(inside, np.ndarray) and inside.all()
    if not known and not repeats_edges(method, antialias):
        weights = jnp.where(inside[..., None], weights, 0)
    total = jnp.sum(weights, axis=-2, keepdims=True)
    reached = jnp.abs(total) > 1000 * jnp.finfo(dtype).eps
    reached &= (here >= -0.5) & (here <= source - 0.5)
    return jnp.where(reached, weights / jnp.where(reached, total, 1), 0)


# --- functions --------------------------------------------------------------------------------


def as_method(method: Any) -> ResizeMethod:
    """A method, given as one or by name."""
    return method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


def check_shape(op: str, image: Any, shape: Any) -> tuple[int, ...]:
    """The shape of the result."""
    shape = shape_of(op, shape)
    if len(shape) != image.ndim:
        raise ShapeError(
            f"{op}: shape must have a size for each axis of image; got {shape} for {image.aval}."
        )
    return shape


def check_source(op: str, image: Any, axes: Sequence[int]) -> None:
    """Raise where there is nothing to resample."""
    if any(not image.shape[axis] for axis in axes):
        raise ShapeError(f"{op}: image must have pixels along resized axes; got {image.aval}.")


@boundary
def resize(
    image: ArrayLike,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = Precision.HIGHEST,
) -> Array:
    """Resize an image.

    Axes that keep their size, such as batch and channel axes, are not touched.

    Args:
      image: an array of any rank.
      shape: the shape of the result, with a size for each axis.
      method: a `ResizeMethod`, or a name: "nearest", "linear", "cubic", "cubic-pytorch",
        "lanczos3", "lanczos5", "area", or another name that `ResizeMethod` lists.
      antialias: if True, the default, kernels are widened where an axis becomes smaller, so that
        every input pixel takes part.
      precision: the `Precision` of the products with the weights. The default is the highest.

    Returns:
      An array of that shape. Integers become floats unless the method is "nearest".

    Raises:
      ShapeError: `shape` has not a size for each axis.
      ValueError: no method has that name.

    >>> print(resize(jnp.array([0.0, 2.0, 4.0, 6.0]), (2,), "linear"))
    [1.4285715 4.5714293]
    >>> print(resize(jnp.array([0.0, 2.0, 4.0, 6.0]), (2,), "nearest"))
    [2. 6.]
    """
    image = as_array(image, "resize")
    shape, method = check_shape("resize", image, shape), as_method(method)
    axes = tuple(i for i in range(image.ndim) if image.shape[i] != shape[i])
    check_source("resize", image, axes)
    if method is ResizeMethod.NEAREST:
        return take_nearest(image, shape, axes)
    return resample(image, None, None, shape, axes, method, bool(antialias), precision)


@operation(static=("shape", "axes"), name="resize")
def take_nearest(image: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """Return the image made of the input pixels that contain the centers of the output pixels."""
    for axis in axes:
        source, target = image.shape[axis], shape[axis]
        symbolic = has_symbolic_size((source, target))
        whole = jnp.arange(target) if symbolic else np.arange(target)
        middles = (2 * whole + 1) * source // (2 * target)
        image = jnp.take(image, middles.astype(np.int32), axis=axis, mode="clip")
    return image


@operation(static=("shape", "axes", "method", "antialias", "precision"), name="resize")
def resample(
    image: Any, scale: Any, translation: Any, shape: tuple[int, ...], axes: tuple[int, ...],
    method: ResizeMethod, antialias: bool, precision: Any,
) -> Any:  # fmt: skip
    """The image with each of some axes resampled, those first that become smaller.

    What was at x is at x * scale + translation; None for the scale that takes an axis to its size.
    """
    image = as_inexact("resize", image)
    dtype = np.promote_types(jnp.finfo(image.dtype).dtype, np.float32)
    ratios = [1.0 if has_symbolic_size((n, m)) else m / n for n, m in zip(image.shape, shape)]
    for i in sorted(range(len(axes)), key=lambda i: ratios[axes[i]]):
        sizes, how = (image.shape[axes[i]], shape[axes[i]]), (method, antialias, precision)
        if scale is not None:
            wide = 1 / scale.astype(dtype)[i]
            start = -translation.astype(dtype)[i] * wide
            windows = choose_windows(*sizes, None, method, antialias)
            image = resample_axis(image, axes[i], sizes[1], windows, wide, start, *how)
        elif has_narrow_bands(image, *sizes, method, antialias):
            params = dict(zip(("method", "antialias", "precision"), how, strict=True))
            (image,) = resize_axis_p.apply(
                image, axis=axes[i], sizes=sizes, adjoint=False, **params
            )
        else:
            image = resample_to_size(image, axes[i], *sizes, *how)
    return image


def resample_to_size(
    image: Any, axis: int, source: int, target: int, method: ResizeMethod, antialias: bool,
    precision: Any,
) -> Any:  # fmt: skip
    """Return the image with an axis at another size."""
    dtype = np.promote_types(jnp.finfo(image.dtype).dtype, np.float32)
    step = source / (target if isinstance(target, SymbolicSize) else max(target, 1))
    windows, wide = choose_windows(source, target, step, method, antialias), jnp.array(step, dtype)
    start = wide.dtype.type(0)
    return resample_axis(image, axis, target, windows, wide, start, method, antialias, precision)


def resample_axis(
    image: Any, axis: int, target: int, windows: tuple, step: Any, start: Any,
    method: ResizeMethod, antialias: bool, precision: Any,
) -> Any:  # fmt: skip
    """Return the image with an axis resampled, block by block of the windows.

    Output pixel i stands for the input from start + i * step to start + (i + 1) * step.
    """
    size, width, starts = windows
    source = image.shape[axis]
    count, n = len(starts), image.ndim
    before, behind = [*range(axis)], [*range(axis + 1, n)]
    here = start + (jnp.arange(count * size, dtype=step.dtype) + 0.5) * step - 0.5
    xp = jnp if has_symbolic_size((width,)) else np
    pixels = starts[:, None] + xp.arange(width)
    weights = make_weights(here.reshape(count, size), pixels, source, step, method, antialias)
    if count > 1 or width > source:
        image = jnp.take(image, xp.clip(pixels, 0, source - 1).astype(np.int32), axis=axis)
    else:
        image = jnp.expand_dims(image, axis)
    weights = weights.astype(image.dtype)
    out = jnp.einsum(
        image, [*before, n, n + 1, *behind], weights, [n, n + 1, n + 2],
        [*before, n, n + 2, *behind], precision=precision,
    )  # fmt: skip
    out = out.reshape(*(out.shape[i] for i in before), count * size, *out.shape[axis + 2 :])
    return lax.slice_in_dim(out, 0, target, axis=axis)


def has_narrow_bands(
    image: Any, source: int, target: int, method: ResizeMethod, antialias: bool
) -> bool:
    """Return True if a large image is resampled by a matrix of few numbers beside zeros."""
    if has_symbolic_size((*image.shape, source, target)):
        return False
    reach = find_reach(source / max(target, 1), method, antialias)
    few = image.size * target <= 2 * DENSE * source or 4 * reach >= min(source, target)
    plain = typeof(image).sharded is None and image.dtype.itemsize >= 4
    return not few and plain and not repeats_edges(method, antialias)


class ResizeAxis(families.LinearPrimitive):
    """An image with an axis resampled from the first to the second of two `sizes`.

    If it is the `adjoint`, the transpose of that. Shapes: any, one of the sizes along `axis`.
    Dtypes: float32, float64, or complex.
    """

    name = "resize_axis"
    form = Form.RESIZE
    cost = Cost.CONTRACTION

    def abstract_eval(self, image, *, axis, sizes, adjoint, **how):
        shape = families.insert_item(
            families.drop_axes(image.shape, (axis,)), axis, sizes[not adjoint]
        )
        return [ShapedArray(shape, image.dtype)]

    def label_axes(self, avals, outs, *, axis, **params):
        return families.along_each_other(avals, outs, Linearity.JOINT, whole=(axis,))

    def lower(self, hlo, image, **params):
        program = stage_whole(lambda x: [self.resize_by_windows(x, **params)], [image.aval])
        return lower_jaxpr(hlo, program, [image])

    def transpose(self, cts, image, *, adjoint, **params):
        return self.apply(cts[0], adjoint=not adjoint, **params)

    def batch(self, mapped, args, dims, *, axis, **params):
        image = batched_at_front(args[0], dims[0], mapped.size)
        return self.apply(image, axis=axis + 1, **params), [0]

    def resize_by_windows(
        self, image: Any, *, axis: int, sizes: tuple, adjoint: bool, **how: Any
    ) -> Any:
        """Return the result by products with blocks of the matrix."""
        resize = lambda x: resample_to_size(x, axis, *sizes, **how)
        shape = (*image.shape[:axis], sizes[0], *image.shape[axis + 1 :])
        with enable_x64(is_double(image)):
            if not adjoint:
                return resize(image)
            return linear_transpose(resize, ShapedArray(shape, image.dtype))(image)[0]

    def resize_by_bands(
        self, image: Any, *, axis: int, sizes: tuple, adjoint: bool, **how: Any
    ) -> Any:
        """Return the result by the numbers beside zeros, for platforms that have a kernel."""
        shape = image.shape
        with enable_x64(is_double(image)):
            weights, starts, back, firsts = make_bands(
                *sizes, image.dtype, how["method"], how["antialias"]
            )
        if adjoint:
            weights, starts, back, firsts = back, firsts, weights, starts
        x = image.reshape(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
        (out,) = resample_p.apply(x, weights, starts, back, firsts)
        return out.reshape(*shape[:axis], sizes[not adjoint], *shape[axis + 1 :])


resize_axis_p = ResizeAxis()


def is_double(image: Any) -> bool:
    """Return True if an image needs numbers of float64, also where it is lowered later."""
    return dtypes.real_dtype(image.dtype) == np.float64


def make_bands(
    source: int, target: int, dtype: np.dtype, method: ResizeMethod, antialias: bool
) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Return the nonzero weights of each row and their starts, for the matrix and its transpose."""
    step = source / max(target, 1)
    reach = find_reach(step, method, antialias)
    taps = math.ceil(2 * reach)
    here = (np.arange(target) + 0.5) * step - 0.5
    starts = np.clip(np.floor(here - reach).astype(np.int32) + 1, 0, source - taps)
    # Relative to the first weight, which reduces rounding errors.
    middles = jnp.asarray((here - starts)[:, None], dtype)
    near = np.arange(taps)[None]
    weights = make_weights(middles, near, source, dtype.type(step), method, antialias)[..., 0]
    # of the transpose: which output pixels each input pixel takes part in
    inputs = np.arange(source)
    firsts = np.searchsorted(starts + taps, inputs, "right")
    most = (np.searchsorted(starts, inputs, "right") - firsts).max()
    firsts = np.minimum(firsts, target - most).astype(np.int32)
    outputs = firsts[:, None] + np.arange(most)
    tap = inputs[:, None] - starts[outputs]
    there = (tap >= 0) & (tap < taps)
    back = jnp.where(there, weights[outputs, np.where(there, tap, 0)], 0)
    return weights, starts, back, firsts


@boundary
def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = Precision.HIGHEST,
) -> Array:
    """Scale and move an image.

    The value at x is moved to x * scale + translation. Pixels that nothing reaches are 0. It can be
    differentiated in `scale` and `translation` as well. `resize` is the case where the scale is the
    ratio of the sizes, and the translation is 0.

    Args:
      image: an array of any rank.
      shape: the shape of the result, with a size for each axis.
      spatial_dims: the axes that are scaled. The others keep their size, whatever `shape` says.
      scale, translation: arrays with a number for each of `spatial_dims`.
      method: a `ResizeMethod` or a name, as in `resize`, except for "nearest".
      antialias: if True, the default, kernels are widened where an axis becomes smaller.
      precision: the `Precision` of the products with the weights. The default is the highest.

    Returns:
      An array of that shape.

    >>> image = jnp.array([1.0, 2.0, 3.0])
    >>> print(scale_and_translate(image, (4,), (0,), jnp.array([1.0]), jnp.array([1.0]), "linear"))
    [0. 1. 2. 3.]
    """
    op = "scale_and_translate"
    image = as_array(image, op)
    shape, method = check_shape(op, image, shape), as_method(method)
    if method is ResizeMethod.NEAREST:
        raise ValueError(f"{op}: method must not be 'nearest', which has no weights; got {method}.")
    axes = tuple(axis_of(op, d, image.ndim) for d in spatial_dims)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{op}: spatial_dims must be distinct axes; got {tuple(spatial_dims)}.")
    scale, translation = as_array(scale, op), as_array(translation, op)
    for name, x in (("scale", scale), ("translation", translation)):
        if x.shape != (len(axes),):
            raise ShapeError(
                f"{op}: {name} must be a vector of a number for each of spatial_dims, {len(axes)}; "
                f"got {x.aval}."
            )
    check_source(op, image, axes)
    return resample(image, scale, translation, shape, axes, method, bool(antialias), precision)
