"""Images, or any arrays, at another size: `resize`, and its general form `scale_and_translate`.

Each axis is resampled by a matrix of weights: a kernel around the place in the input where an
output pixel comes from. A pixel i covers the range from i to i + 1.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import numpy as jnp
from weft.core.source import boundary
from weft.errors import ShapeError
from weft.numpy.fused import fused
from weft.numpy.promotion import as_array, as_inexact, axis_of, shape_of
from weft.primitives.dot import Precision, PrecisionLike
from weft.util import list_public
from weft.xla.typing import Array, ArrayLike

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]
__dir__ = list_public(__name__)


class ResizeMethod(enum.Enum):
    """How pixels between pixels are made. `resize` takes the names in `from_string`, too."""

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


KERNELS = {
    ResizeMethod.LINEAR: lambda x: jnp.maximum(0, 1 - x),
    ResizeMethod.CUBIC: make_cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: make_cubic(-0.5),
    ResizeMethod.LANCZOS3: make_lanczos(3.0),
    ResizeMethod.LANCZOS5: make_lanczos(5.0),
}


def make_weights(
    source: int, target: int, step: Any, start: Any, method: ResizeMethod, antialias: bool
) -> Any:
    """The weights [source, target] of input pixels for each output pixel.

    Output pixel i stands for the input from start + i * step to start + (i + 1) * step.
    """
    dtype = jnp.result_type(step)
    here = (start + (jnp.arange(target, dtype=dtype) + 0.5) * step - 0.5)[None]
    pixels = jnp.arange(source, dtype=dtype)[:, None]
    if method is ResizeMethod.AREA:
        low, high = here + 0.5 - step / 2, here + 0.5 + step / 2
        shared = jnp.minimum(high, pixels + 1) - jnp.maximum(low, pixels)
        weights = jnp.maximum(0, shared)
    elif method is ResizeMethod.CUBIC_PYTORCH and not antialias:  # two pixels more at each edge
        pixels = jnp.arange(-2, source + 2, dtype=dtype)[:, None]
        weights = make_cubic(-0.75)(jnp.abs(here - pixels))
        ends = [jnp.sum(part, axis=0, keepdims=True) for part in (weights[:3], weights[-3:])]
        inner = [ends[0], weights[3:-3], ends[1]] if source > 1 else [weights.sum(0)[None]]
        weights = jnp.concatenate(inner)
    else:
        wide = jnp.maximum(step, 1) if antialias else 1
        weights = KERNELS[method](jnp.abs(here - pixels) / wide)
    total = jnp.sum(weights, axis=0, keepdims=True)
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
    """The image at another size.

    Axes that keep their size, as those of batches and channels, are not touched. Integers become
    floats unless the method is "nearest".

    Args:
      image: an array of any rank.
      shape: the shape of the result, a size for each axis.
      method: "nearest"; "linear" (also "bilinear", "trilinear", "triangle"); "cubic" (also
        "bicubic", "tricubic"), Keys' with a = -0.5; "cubic-pytorch", as PyTorch's bicubic, which
        repeats the pixels at the edges and has a = -0.75 where `antialias` is False; "lanczos3" and
        "lanczos5"; "area", the mean of what an output pixel covers.
      antialias: whether the kernels are widened where an axis becomes smaller, so that every input
        pixel takes part.
      precision: that of the products with the weights.

    >>> print(resize(jnp.array([0.0, 2.0, 4.0, 6.0]), (2,), "linear"))
    [1.4285715 4.5714293]
    """
    image = as_array(image, "resize")
    shape, method = check_shape("resize", image, shape), as_method(method)
    axes = tuple(i for i in range(image.ndim) if image.shape[i] != shape[i])
    check_source("resize", image, axes)
    if method is ResizeMethod.NEAREST:
        return take_nearest(image, shape, axes)
    return resample(image, None, None, shape, axes, method, bool(antialias), precision)


@fused(static=("shape", "axes"), name="resize")
def take_nearest(image: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """The image made of the pixels in whose range the middles of the new ones lie."""
    for axis in axes:
        source, target = image.shape[axis], shape[axis]
        middles = (2 * np.arange(target) + 1) * source // (2 * target)
        image = jnp.take(image, middles.astype(np.int32), axis=axis, mode="clip")
    return image


@fused(static=("shape", "axes", "method", "antialias", "precision"), name="resize")
def resample(
    image: Any, scale: Any, translation: Any, shape: tuple[int, ...], axes: tuple[int, ...],
    method: ResizeMethod, antialias: bool, precision: Any,
) -> Any:  # fmt: skip
    """The image with each of some axes resampled, those first that become smaller.

    What was at x is at x * scale + translation; None for the scale that takes an axis to its size.
    """
    image = as_inexact("resize", image)
    dtype = np.promote_types(jnp.finfo(image.dtype).dtype, np.float32)
    if scale is None:
        steps = [jnp.array(image.shape[a] / max(shape[a], 1), dtype) for a in axes]
        starts = [jnp.zeros((), dtype)] * len(axes)
    else:
        steps = [1 / scale.astype(dtype)[i] for i in range(len(axes))]
        starts = [-translation.astype(dtype)[i] * step for i, step in enumerate(steps)]
    for i in sorted(range(len(axes)), key=lambda i: shape[axes[i]] / image.shape[axes[i]]):
        axis = axes[i]
        sizes = image.shape[axis], shape[axis]
        weights = make_weights(*sizes, steps[i], starts[i], method, antialias).astype(image.dtype)
        image = jnp.tensordot(image, weights, axes=([axis], [0]), precision=precision)
        image = jnp.moveaxis(image, -1, axis)
    return image


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
    """The image scaled and moved: what was at x is at x * scale + translation, and 0 where nothing.

    Differentiable in `scale` and `translation`, too; `resize` is the case where scale is the ratio
    of sizes and translation 0.

    Args:
      image: an array of any rank.
      shape: the shape of the result, a size for each axis.
      spatial_dims: the axes that are scaled; others keep their size, whatever `shape` says.
      scale, translation: a number for each of `spatial_dims`, an array of them.
      method, antialias, precision: those of `resize`, without "nearest".

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
