"""Initial values of weights: functions of (key, shape, dtype), `from weft.nn import initializers`.

The variance of most depends on how many numbers a unit takes in (fan-in) and gives (fan-out). A
`dtype` is that of the arrays, where the call says none; `out_sharding`, how they are split over
explicit axes of a mesh.
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
from weft.numpy.promotion import axes_of
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
    """A function that makes an array of a shape and dtype from a key."""

    def __call__(
        self, key: ArrayLike, shape: Sequence[int], dtype: DTypeLike | None = None
    ) -> Array:
        """The array."""


def zeros(
    key: ArrayLike,
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Zeros; the key is not used."""
    return jnp.zeros(shape, dtype, out_sharding=out_sharding)


def ones(
    key: ArrayLike,
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Ones; the key is not used."""
    return jnp.ones(shape, dtype, out_sharding=out_sharding)


def make_initializer(draw: Callable, default: Any) -> Initializer:
    """The initializer that calls `draw(key, shape, dtype)`, with a default dtype."""

    def init(
        key: Any, shape: Sequence[int], dtype: Any = default, out_sharding: ShardingLike = None
    ) -> Any:
        """An array of a shape and dtype, from a key."""
        found = dtypes.default_float() if dtype is None else dtypes.canonicalize(dtype)
        return lay_out("initializer", draw(key, tuple(shape), found), out_sharding)

    return init


def scale_draws(draw: Callable, scale: Any, dtype: Any) -> Initializer:
    """The initializer whose numbers are `scale` times those of `draw(key, shape, dtype)`."""
    scaled = lambda key, shape, dtype: draw(key, shape, dtype) * jnp.array(scale, dtype)
    return make_initializer(scaled, dtype)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Arrays of a value, which may be an array that broadcasts."""
    return make_initializer(lambda key, shape, dtype: jnp.full(shape, value, dtype), dtype)


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Numbers in [0, scale)."""
    return scale_draws(random.uniform, scale, dtype)


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Normal numbers of a standard deviation.

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
    """Normal numbers of a standard deviation, cut off at `lower` and `upper` times it."""
    draw = lambda key, *rest: random.truncated_normal(key, lower, upper, *rest)
    return scale_draws(draw, stddev, dtype)


def count_fans(
    shape: tuple, in_axis: Axes, out_axis: Axes, batch_axis: Axes
) -> tuple[float, float]:
    """How many numbers a unit takes in, and how many units one goes to."""
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
    """Numbers of variance scale / n, n the fan-in, the fan-out or a mean of both.

    Args:
      scale: a positive number.
      mode: "fan_in", "fan_out", "fan_avg" or "fan_geo_avg".
      distribution: "truncated_normal" (cut off at two standard deviations), "normal" or "uniform".
      in_axis, out_axis: the axes of inputs and of outputs.
      batch_axis: axes of weights that are apart; the others are the receptive field.
      dtype: of the arrays, where the call says none.
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


def define_scaled(
    name: str, scale: float, mode: str, distribution: str, doc: str
) -> Callable[..., Initializer]:
    """A named case of `variance_scaling`."""

    def named(
        in_axis: Axes = -2,
        out_axis: Axes = -1,
        batch_axis: Axes = (),
        dtype: DTypeLike | None = None,
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    kind = f"variance {scale:g} / {mode}, {distribution}"
    return name_function(named, name, f"{doc}: {kind}; the arguments are `variance_scaling`'s.")


glorot_uniform = define_scaled(
    "glorot_uniform", 1.0, "fan_avg", "uniform", "Glorot and Bengio (2010)"
)
xavier_uniform = glorot_uniform
glorot_normal = define_scaled(
    "glorot_normal", 1.0, "fan_avg", "truncated_normal", "Glorot and Bengio (2010)"
)
xavier_normal = glorot_normal
lecun_uniform = define_scaled("lecun_uniform", 1.0, "fan_in", "uniform", "LeCun et al. (1998)")
lecun_normal = define_scaled(
    "lecun_normal", 1.0, "fan_in", "truncated_normal", "LeCun et al. (1998)"
)
he_uniform = define_scaled("he_uniform", 2.0, "fan_in", "uniform", "He et al. (2015)")
kaiming_uniform = he_uniform
he_normal = define_scaled("he_normal", 2.0, "fan_in", "truncated_normal", "He et al. (2015)")
kaiming_normal = he_normal


def orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Matrices of orthonormal columns (or rows, where these are fewer), times `scale`.

    Axes but `column_axis` make up the rows. Source: Saxe, McClelland and Ganguli (2014).
    """
    draw = functools.partial(draw_orthonormal, scale=scale, column_axis=column_axis)
    return make_initializer(draw, dtype)


def draw_orthonormal(key: Any, shape: tuple, dtype: np.dtype, scale: Any, column_axis: int) -> Any:
    """An array of which the columns along an axis are orthonormal, times `scale`."""
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
    """Kernels of convolutions that are 0 but in the middle, and there as of `orthogonal`.

    Shapes (..., inputs, outputs) of 1 to 3 axes of space; there must be no fewer outputs than
    inputs. Source: Xiao et al. (2018).
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
