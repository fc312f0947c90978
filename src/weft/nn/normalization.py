"""What looks along an axis: softmax and its logs, standardization; and one-hot codes.

`where=` leaves elements out of each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import weft.numpy as jnp
from weft import dtypes
from weft.numpy.promotion import as_inexact, as_operand, axis_of
from weft.numpy.reductions import Axis, check_mask, compute_widely, widen_dtype
from weft.primitives.elementwise import convert
from weft.primitives.families import check_integer
from weft.primitives.layout import broadcasted_iota
from weft.primitives.reshard import lay_out
from weft.run.operation import operation
from weft.scipy.special.sums import largest_real, logsumexp
from weft.util import check_option
from weft.xla.typing import Array, ArrayLike, DTypeLike, ShardingLike


def shift_and_mask(op: str, x: Any, axis: Axis, where: Any, fun: Callable, masked: float) -> Any:
    """Apply `fun` to x less its greatest element along `axis`; `masked` stands where `where` fails.

    It is computed in float32 where x has 16 bits or fewer, in which a sum of many is not finite.
    """
    x = as_inexact(op, x)
    mask = None if where is None else check_mask(op, where)
    if mask is not None:
        x = jnp.where(mask, x, -jnp.inf)
    shift = lambda x: x - convert(largest_real(op, x, axis), x.dtype, x.weak_type)
    out = compute_widely(lambda x: fun(shift(x)), x)
    return out if mask is None else jnp.where(mask, out, masked)


def divide_by_sum(x: Any, axis: Axis) -> Any:
    """Return exp(x) over its sum along `axis`."""
    powers = jnp.exp(x)
    return powers / jnp.sum(powers, axis, keepdims=True)


@operation(static=("axis",))
def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """exp(x) over its sum along `axis`: positive numbers of sum 1, 0 where `where` is False.

    >>> print(nn.softmax(jnp.array([0.0, 0.0, -jnp.inf])))
    [0.5 0.5 0. ]
    """
    return shift_and_mask("softmax", x, axis, where, lambda x: divide_by_sum(x, axis), 0)


@operation(static=("axis",))
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """log(softmax(x)) along `axis`, exact where it is small; -inf where `where` is False."""
    take_log = lambda x: x - jnp.log(jnp.sum(jnp.exp(x), axis, keepdims=True))
    return shift_and_mask("log_softmax", x, axis, where, take_log, -jnp.inf)


@operation(static=("axis", "keepdims"))
def logmeanexp(
    x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """log(mean(exp(x))) along `axis` of the elements where `where` holds; NaN of no elements.

    Without overflow; `keepdims` keeps the axes, with size 1.
    """
    x = as_inexact("logmeanexp", x)
    counted = jnp.broadcast_to(True if where is None else where, x.shape)
    count = jnp.sum(counted, axis, keepdims=keepdims)

    def divide(x: Any) -> Any:
        total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
        return total - jnp.log(count.astype(total.dtype))

    return compute_widely(divide, x)


@operation(static=("axis", "algorithm"))
def standardize(
    x: ArrayLike,
    axis: Axis = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """(x - mean) / sqrt(variance + epsilon), by default with the mean and variance along `axis`.

    With algorithm "fast" the variance is the mean of squares less the squared mean, which is off
    where that is large; "stable" takes a second pass.

    >>> print(nn.standardize(jnp.array([1.0, 3.0]), epsilon=0.0))
    [-1.  1.]
    """
    check_option("standardize", "algorithm", algorithm, "fast", "stable")
    x = as_inexact("standardize", x)
    given = [jnp.asarray(v) for v in (mean, variance) if v is not None]
    result = jnp.result_type(x, *given)  # squares may be more than 16 bits hold
    x = convert(x, widen_dtype(x.dtype), x.weak_type)
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None and algorithm == "fast":
        squares = jnp.mean(jnp.square(x), axis, keepdims=True, where=where)
        variance = squares - jnp.square(mean)
        variance = jnp.where(variance < 0, 0, variance)
    elif variance is None:
        variance = jnp.mean(jnp.square(x - mean), axis, keepdims=True, where=where)
    variance, epsilon = jnp.asarray(variance), as_operand("standardize", epsilon)
    out = (x - mean) / jnp.sqrt(variance + epsilon)
    return out if out.dtype == result else convert(out, result)


@operation(static=("num_classes", "dtype", "axis", "out_sharding"))
def one_hot(
    x: ArrayLike,
    num_classes: int,
    *,
    dtype: DTypeLike | None = None,
    axis: int = -1,
    out_sharding: ShardingLike = None,
) -> Array:
    """For each index in x, zeros with a 1 at the index, along a new axis of size `num_classes`.

    An index that is not in [0, num_classes) gives zeros alone. The dtype is the default float.
    `out_sharding` says how the result is split over explicit axes of a mesh.

    >>> print(nn.one_hot(jnp.array([0, 2]), 3))
    [[1. 0. 0.]
     [0. 0. 1.]]
    """
    count = check_integer("one_hot", "num_classes", num_classes, 0)
    dtype = dtypes.default_float() if dtype is None else dtypes.check_user_dtype(dtype, "one_hot")
    x = jnp.asarray(x)
    if x.dtype.itemsize < 4 and not dtypes.is_inexact(x.dtype):  # as num_classes may be larger
        x = x.astype(np.int32)
    axis = axis_of("one_hot", axis, x.ndim + 1)
    shape = (*x.shape[:axis], count, *x.shape[axis:])
    places = broadcasted_iota(x.dtype, shape, axis)
    return lay_out("one_hot", (jnp.expand_dims(x, axis) == places).astype(dtype), out_sharding)
