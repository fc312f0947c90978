"""Initial values of weights: functions of (key, shape, dtype), `from weft.nn import initializers`.

The variance of most depends on the number of inputs of a unit (fan-in) and of outputs (fan-out).
`dtype` is the default dtype of the arrays. `out_sharding` is their sharding over explicit axes of a
mesh.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

import weft.numpy as jnp
from weft import dtypes, random
from weft.errors import ShapeError
from weft.numpy.promotion import axes_of, shape_of
from weft.primitives.reshard import lay_out
from weft.util import check_option, list_public, name_function
from weft.xla.typing import Array, ArrayLike, Axes, DTypeLike, ShardingLike

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal",
    "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal",
    "ones", "orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal",
    "xavier_uniform", "zeros",
]  # fmt: skip
__dir__ = list_public(__name__)

# The standard deviation of a standard normal number cut off at two.
CUT = 0.87962566103423978


class Initializer(Protocol):
    """A function of (key, shape, dtype) that returns an array of initial weights.

    The functions of this module return such functions, so that a layer can be told how to make its
    weights before their shape is known. `zeros` and `ones` are such functions themselves.

    Attributes:
      __call__: takes a random key, a shape, and a dtype, which is the default float dtype if it is
        left out.

    >>> from weft.nn import initializers
    >>> make_weights = initializers.he_normal()
    >>> make_weights(random.PRNGKey(0), (64, 32)).shape
    (64, 32)
    """

    def __call__(
        self, key: ArrayLike, shape: int | Sequence[int], dtype: DTypeLike | None = None
    ) -> Array:
        """Make the array.

        Args:
          key: a random key.
          shape: the shape of the array, an integer or a sequence of integers.
          dtype: the dtype of the array. By default the dtype that the initializer was made with, or
            else the default float.

        Returns:
          An array of the shape and dtype.
        """


def zeros(
    key: ArrayLike,
    shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return an array of zeros. It is an initializer itself, usual for biases.

    Args:
      key: not used; it is there because every initializer takes a key. It may be None.
      shape: the shape of the array, an integer or a sequence of integers.
      dtype: the dtype of the array. By default the default float.
      out_sharding: how the array is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      ShapeError: a size is negative.

    >>> from weft.nn import initializers
    >>> print(initializers.zeros(random.PRNGKey(0), (3,)))
    [0. 0. 0.]
    """
    return jnp.zeros(shape, dtype, out_sharding=out_sharding)


def ones(
    key: ArrayLike,
    shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return an array of ones. It is an initializer itself, usual for the scales of normalization.

    Args:
      key: not used; it is there because every initializer takes a key. It may be None.
      shape: the shape of the array, an integer or a sequence of integers.
      dtype: the dtype of the array. By default the default float.
      out_sharding: how the array is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      ShapeError: a size is negative.

    >>> from weft.nn import initializers
    >>> print(initializers.ones(random.PRNGKey(0), (3,), "int32"))
    [1 1 1]
    """
    return jnp.ones(shape, dtype, out_sharding=out_sharding)


def make_initializer(draw: Callable, default: Any) -> Initializer:
    """The initializer that calls `draw(key, shape, dtype)`, with a default dtype."""

    def init(
        key: Any,
        shape: int | Sequence[int],
        dtype: Any = default,
        out_sharding: ShardingLike = None,
    ) -> Any:
        """An array of a shape and dtype, from a key."""
        found = dtypes.default_float() if dtype is None else dtypes.canonicalize(dtype)
        return lay_out(
            "initializer", draw(key, shape_of("initializer", shape), found), out_sharding
        )

    return init


def scale_draws(draw: Callable, scale: Any, dtype: Any) -> Initializer:
    """Return the initializer that multiplies `draw(key, shape, dtype)` by `scale`."""
    scaled = lambda key, shape, dtype: draw(key, shape, dtype) * jnp.array(scale, dtype)
    return make_initializer(scaled, dtype)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Return an initializer that fills arrays with a value.

    Args:
      value: a scalar, or an array that broadcasts to the shapes that the initializer is called
        with.
      dtype: the dtype of the arrays if the call names none. By default the default float.

    Returns:
      An initializer: a function of (key, shape, dtype=None). It does not use the key.

    Raises:
      ShapeError: at the call, `value` does not broadcast to the shape.

    >>> from weft.nn import initializers
    >>> print(initializers.constant(0.5)(random.PRNGKey(0), (3,)))
    [0.5 0.5 0.5]
    """
    return make_initializer(lambda key, shape, dtype: jnp.full(shape, value, dtype), dtype)


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Return an initializer of numbers that are uniform in [0, scale).

    Args:
      scale: the upper bound, a scalar. By default 0.01.
      dtype: a float dtype, for calls that name no dtype. By default the default float.

    Returns:
      An initializer: a function of (key, shape, dtype=None).

    Raises:
      DtypeError: at the call, the dtype is not a float dtype.

    >>> from weft.nn import initializers
    >>> x = initializers.uniform(2.0)(random.PRNGKey(0), (1000,))
    >>> bool((x >= 0).all() & (x < 2).all())
    True
    """
    return scale_draws(random.uniform, scale, dtype)


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Return an initializer of normal numbers with mean 0 and a given standard deviation.

    Args:
      stddev: the standard deviation, a scalar. By default 0.01.
      dtype: a float or complex dtype, for calls that name no dtype. By default the
        default float.

    Returns:
      An initializer: a function of (key, shape, dtype=None). In complex arrays the variance
      stddev**2 is the complex number's, one half in each part.

    Raises:
      DtypeError: at the call, the dtype is neither a float nor a complex dtype.

    >>> from weft.nn import initializers
    >>> initializers.normal(0.1)(random.PRNGKey(0), (2, 3)).shape
    (2, 3)
    """
    return scale_draws(random.normal, stddev, dtype)


def truncated_normal(
    stddev: ArrayLike = 1e-2,
    dtype: DTypeLike | None = None,
    lower: ArrayLike = -2.0,
    upper: ArrayLike = 2.0,
) -> Initializer:
    """Return an initializer of normal numbers that are cut off on both sides.

    The numbers are `stddev` times standard normal numbers in (lower, upper). Cutting reduces the
    deviation: with the default bounds it is 0.88 stddev. `variance_scaling` corrects for this.

    Args:
      stddev: the standard deviation before the cut, a scalar. By default 0.01.
      dtype: a float dtype, for calls that name no dtype. By default the default float.
      lower: the lower bound, in units of `stddev`. By default -2.
      upper: the upper bound, in units of `stddev`. By default 2.

    Returns:
      An initializer: a function of (key, shape, dtype=None).

    Raises:
      DtypeError: at the call, the dtype is not a float dtype.

    >>> from weft.nn import initializers
    >>> x = initializers.truncated_normal(0.1)(random.PRNGKey(0), (10000,))
    >>> bool((abs(x) < 0.2).all())
    True
    """
    draw = lambda key, *rest: random.truncated_normal(key, lower, upper, *rest)
    return scale_draws(draw, stddev, dtype)


def count_fans(
    shape: tuple, in_axis: Axes, out_axis: Axes, batch_axis: Axes
) -> tuple[float, float]:
    """Return the numbers of inputs and of outputs of a unit."""
    if len(shape) < 2:
        raise ShapeError(
            f"variance_scaling: shape must have an axis of inputs and one of outputs; got {shape}. "
            "Hint: initializers.normal(stddev)."
        )
    of = lambda axes: math.prod(shape[a] for a in axes_of("variance_scaling", axes, len(shape)))
    taken, given = of(in_axis), of(out_axis)
    field = math.prod(shape) / max(taken * given * of(batch_axis), 1)
    return taken * field, given * field


def variance_scaling(
    scale: ArrayLike,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Return an initializer of numbers with mean 0 and variance scale / n, where n is a fan.

    The fan-in is the number of inputs of a unit, the fan-out the number of units that use an input.
    Scaling by them keeps the variance of activations, or of gradients, the same from layer to
    layer. The named initializers (`glorot_normal`, `he_uniform` and others) are cases of this
    function. Sizes of axes that are not named, such as the spatial axes of a convolution, multiply
    both fans.

    Args:
      scale: a number, not negative.
      mode: "fan_in", "fan_out", "fan_avg" (their mean) or "fan_geo_avg" (their geometric mean): the
        meaning of n.
      distribution: "truncated_normal" (cut off at two standard deviations, and scaled so that the
        variance is right), "normal" or "uniform".
      in_axis: the axis, or a tuple of axes, of inputs. By default the last but one.
      out_axis: the axis, or a tuple of axes, of outputs. By default the last.
      batch_axis: the axis, or a tuple of axes, along which the weights belong to separate units; it
        counts for neither fan. By default none.
      dtype: a float or complex dtype, for calls that name no dtype. By default the
        default float.

    Returns:
      An initializer: a function of (key, shape, dtype=None).

    Raises:
      ValueError: `mode` or `distribution` is another name.
      ShapeError: at the call, the shape has fewer than two axes, or lacks an axis that is named.

    >>> from weft.nn import initializers
    >>> init = initializers.variance_scaling(2.0, "fan_in", "normal")
    >>> x = init(random.PRNGKey(0), (500, 100))
    >>> print(f"{x.var() * 500:.2f}")
    2.00
    """
    kinds = ("truncated_normal", "normal", "uniform")
    modes = {
        "fan_in": lambda a, b: a,
        "fan_out": lambda a, b: b,
        "fan_avg": lambda a, b: (a + b) / 2,
        "fan_geo_avg": lambda a, b: math.sqrt(a * b),
    }
    check_option("variance_scaling", "mode", mode, *modes)
    check_option("variance_scaling", "distribution", distribution, *kinds)

    def draw(key: Any, shape: tuple, dtype: np.dtype) -> Any:
        count = modes[mode](*count_fans(shape, in_axis, out_axis, batch_axis))
        variance = jnp.array(scale / max(count, 1e-30), dtypes.real_dtype(dtype))
        if distribution == "uniform":
            if dtypes.is_complex(dtype):
                # of the unit disk, all as likely, the variance is 1/2
                disk = draw_polar(key, shape, dtype, jnp.sqrt)
                return disk * jnp.sqrt(2 * variance).astype(dtype)
            return random.uniform(key, shape, dtype, -1) * jnp.sqrt(3 * variance)
        if distribution == "normal":
            return random.normal(key, shape, dtype) * jnp.sqrt(variance).astype(dtype)
        if dtypes.is_complex(dtype):
            root = jnp.sqrt(variance) / math.sqrt(1 - 5 * math.exp(-4))
            # the radius of a normal number of variance 1, cut off at 2
            cut = lambda u: jnp.sqrt(-jnp.log1p(-u * (1 - math.exp(-4))))
            return draw_polar(key, shape, dtype, cut) * root.astype(dtype)
        spread = jnp.sqrt(variance) / jnp.array(CUT, dtype)
        return random.truncated_normal(key, -2, 2, shape, dtype) * spread

    return make_initializer(draw, dtype)


def draw_polar(key: Any, shape: tuple, dtype: np.dtype, radius: Callable) -> Any:
    """Complex numbers of any angle, whose radius is a function of a uniform number."""
    part = dtypes.real_dtype(dtype)
    first, second = random.split(key)
    angle = 2 * math.pi * random.uniform(second, shape, part)
    r = radius(random.uniform(first, shape, part))
    return r.astype(dtype) * jnp.exp(1j * angle.astype(dtype))


SCALED_DOC = """Return an initializer with variance {variance} ({law}).

It is `variance_scaling` with scale {scale:g}, mode "{mode}" and distribution "{law}".
{purpose} Source: {source}.

Args:
  in_axis: the axis, or a tuple of axes, of inputs. By default the last but one.
  out_axis: the axis, or a tuple of axes, of outputs. By default the last.
  batch_axis: the axis, or a tuple of axes, along which the weights belong to separate units; it
    counts for neither fan. By default none.
  dtype: a float or complex dtype, for calls that name no dtype. By default the
    default float.

Returns:
  An initializer: a function of (key, shape, dtype=None).

Raises:
  ShapeError: at the call, the shape has fewer than two axes, or lacks an axis that is named.

>>> from weft.nn import initializers
>>> initializers.{name}()(random.PRNGKey(0), (64, 32)).shape
(64, 32)
"""
PURPOSES = {
    "fan_avg": "It suits layers that are followed by tanh or by no activation.",
    "fan_in": "It keeps the variance of activations that follow a linear layer or `nn.selu`.",
    "fan_in of relu": "It keeps the variance of activations where `nn.relu` follows each layer.",
}


def define_scaled(
    name: str, scale: float, mode: str, distribution: str, source: str
) -> Callable[..., Initializer]:
    """Return a named case of `variance_scaling`."""

    def named(
        in_axis: Axes = -2,
        out_axis: Axes = -1,
        batch_axis: Axes = (),
        dtype: DTypeLike | None = None,
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    doc = SCALED_DOC.format(
        name=name, variance=f"{scale:g} / {mode}", scale=scale, mode=mode, law=distribution,
        purpose=PURPOSES["fan_in of relu" if scale == 2 else mode], source=source,
    )  # fmt: skip
    return name_function(named, name, doc)


glorot_uniform = define_scaled(
    "glorot_uniform",
    1.0,
    "fan_avg",
    "uniform",
    "Glorot and Bengio (2010); `xavier_uniform` is another name",
)
xavier_uniform = glorot_uniform
glorot_normal = define_scaled(
    "glorot_normal",
    1.0,
    "fan_avg",
    "truncated_normal",
    "Glorot and Bengio (2010); `xavier_normal` is another name",
)
xavier_normal = glorot_normal
lecun_uniform = define_scaled("lecun_uniform", 1.0, "fan_in", "uniform", "LeCun et al. (1998)")
lecun_normal = define_scaled(
    "lecun_normal", 1.0, "fan_in", "truncated_normal", "LeCun et al. (1998)"
)
he_uniform = define_scaled(
    "he_uniform", 2.0, "fan_in", "uniform", "He et al. (2015); `kaiming_uniform` is another name"
)
kaiming_uniform = he_uniform
he_normal = define_scaled(
    "he_normal",
    2.0,
    "fan_in",
    "truncated_normal",
    "He et al. (2015); `kaiming_normal` is another name",
)
kaiming_normal = he_normal


def orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer of matrices with orthonormal columns, times `scale`.

    Such a matrix changes no length if it is square, so that signals neither grow nor shrink in deep
    and in recurrent networks. The matrices are uniform among the orthogonal ones. Where the matrix
    has fewer rows than columns, the rows are orthonormal. Source: Saxe, McClelland and Ganguli
    (2014).

    Args:
      scale: the factor, a scalar. By default 1.
      column_axis: the axis whose size is the number of columns. The other axes together form the
        rows. By default the last.
      dtype: a float or complex dtype, for calls that name no dtype. By default the
        default float.

    Returns:
      An initializer: a function of (key, shape, dtype=None).

    Raises:
      ShapeError: at the call, the shape has fewer than two axes, or has no axis `column_axis`.

    >>> from weft.nn import initializers
    >>> q = initializers.orthogonal()(random.PRNGKey(0), (6, 3))
    >>> bool(jnp.allclose(q.T @ q, jnp.eye(3), atol=1e-6))
    True
    """
    draw = functools.partial(draw_orthonormal, scale=scale, column_axis=column_axis)
    return make_initializer(draw, dtype)


def draw_orthonormal(key: Any, shape: tuple, dtype: np.dtype, scale: Any, column_axis: int) -> Any:
    """Return an array with orthonormal columns along an axis, times `scale`."""
    if len(shape) < 2:
        raise ShapeError(f"orthogonal: shape must have two axes at least; got {shape}.")
    (axis,) = axes_of("orthogonal", column_axis, len(shape))
    columns = shape[axis]
    rows = math.prod(shape) // max(columns, 1)
    tall = (max(rows, columns), min(rows, columns))
    q, r = jnp.linalg.qr(random.normal(key, tall, dtype))
    d = jnp.diagonal(r)
    q = q * jnp.sign(d)[None]
    q = q.T if rows < columns else q
    moved = (*shape[:axis], *shape[axis + 1 :], columns)
    return jnp.array(scale, dtype) * jnp.moveaxis(q.reshape(moved), -1, axis)


def delta_orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer of convolution kernels that are orthogonal matrices at the center.

    All other entries of the kernel are 0. A convolution with such a kernel changes no length, so
    that very deep networks of convolutions can be trained. Source: Xiao et al. (2018).

    Args:
      scale: the factor, a scalar. By default 1.
      column_axis: the axis of the central matrix, (outputs, outputs), that its columns run along,
        as for `orthogonal`. By default the last.
      dtype: a float or complex dtype, for calls that name no dtype. By default the
        default float.

    Returns:
      An initializer: a function of (key, shape, dtype=None). A shape is (..., inputs, outputs) with
      1 to 3 spatial axes.

    Raises:
      ShapeError: at the call, the shape does not have 3 to 5 axes, or it has fewer outputs than
        inputs.

    >>> from weft.nn import initializers
    >>> kernel = initializers.delta_orthogonal()(random.PRNGKey(0), (3, 2, 2))
    >>> print(kernel[0])
    [[0. 0.]
     [0. 0.]]
    >>> bool(jnp.allclose(kernel[1].T @ kernel[1], jnp.eye(2), atol=1e-6))
    True
    """

    def draw(key: Any, shape: tuple, dtype: np.dtype) -> Any:
        if not 3 <= len(shape) <= 5 or shape[-1] < shape[-2]:
            raise ShapeError(
                "delta_orthogonal: shape must have 3 to 5 axes, and no fewer outputs (the last) "
                f"than inputs (the one before); got {shape}."
            )
        middle = tuple((n - 1) // 2 for n in shape[:-2])
        matrix = draw_orthonormal(key, (shape[-1], shape[-1]), dtype, scale, column_axis)
        return jnp.zeros(shape, dtype).at[middle].set(matrix[: shape[-2]])

    return make_initializer(draw, dtype)
