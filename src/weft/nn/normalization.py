"""Operations along an axis: softmax and its logs, standardization; and one-hot codes.

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
    """Apply `fun` to x minus its maximum along `axis`; return `masked` where `where` is False.

    It is computed in float32 if x has 16 bits or fewer, since sums of many terms overflow there.
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
    """Compute exp(x) / sum(exp(x)) along an axis: positive numbers whose sum is 1.

    It turns scores (logits) into probabilities. The largest element is subtracted first, so that
    exp does not overflow; 16-bit floats are computed in float32. For a loss use `log_softmax`,
    which stays exact for small probabilities.

    Args:
      x: an array of scores, usually of a float dtype.
      axis: the axis, or a tuple of axes, along which the results sum to 1. By default the last;
        None stands for all axes. Static under `jit`.
      where: a bool array that broadcasts to x. Elements where it is False are left out: the sum
        skips them, and their result is 0. By default no element is left out.

    Returns:
      An array of the shape of x. It has the dtype of x; integers and booleans become the default
      float. A slice that holds inf, or only -inf, becomes NaN. A slice without any element where
      `where` is True becomes 0.

    Raises:
      ShapeError: x has no such axis.
      DtypeError: `where` is not of dtype bool.

    >>> print(nn.softmax(jnp.array([0.0, 0.0, -jnp.inf])))
    [0.5 0.5 0. ]
    >>> mask = jnp.array([True, False, True])
    >>> print(nn.softmax(jnp.array([1.0, 5.0, 1.0]), where=mask))
    [0.5 0.  0.5]
    """
    return shift_and_mask("softmax", x, axis, where, lambda x: divide_by_sum(x, axis), 0)


@operation(static=("axis",))
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """Compute log(softmax(x)) along an axis: x - log(sum(exp(x))).

    It is for losses such as cross-entropy. It stays exact where the probability is so small that
    `softmax` rounds to 0. The largest element is subtracted first, so that exp does not overflow;
    16-bit floats are computed in float32.

    Args:
      x: an array of scores, usually of a float dtype.
      axis: the axis, or a tuple of axes, along which the probabilities sum to 1. By default the
        last; None stands for all axes. Static under `jit`.
      where: a bool array that broadcasts to x. Elements where it is False are left out: the sum
        skips them, and their result is -inf. By default no element is left out.

    Returns:
      An array of the shape of x. It has the dtype of x; integers and booleans become the default
      float.

    Raises:
      ShapeError: x has no such axis.
      DtypeError: `where` is not of dtype bool.

    >>> print(nn.log_softmax(jnp.array([0.0, -200.0])))
    [   0. -200.]

    The cross-entropy of scores and integer labels:

    >>> logits, labels = jnp.array([[2.0, 0.0], [0.0, 0.0]]), jnp.array([0, 1])
    >>> logs = nn.log_softmax(logits)
    >>> print(f"{-jnp.mean(jnp.take_along_axis(logs, labels[:, None], 1)):.4f}")
    0.4100
    """
    take_log = lambda x: x - jnp.log(jnp.sum(jnp.exp(x), axis, keepdims=True))
    return shift_and_mask("log_softmax", x, axis, where, take_log, -jnp.inf)


@operation(static=("axis", "keepdims"))
def logmeanexp(
    x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """Compute log(mean(exp(x))) along an axis without overflow.

    It averages probabilities that are given by their logarithms, as in importance sampling.

    Args:
      x: an array, usually of a float dtype.
      axis: the axis, or a tuple of axes, to average over. By default None: all axes. Static under
        `jit`.
      where: a bool array that broadcasts to x. The mean skips elements where it is False. By
        default no element is skipped.
      keepdims: if True, the axes stay in the result with size 1. By default False. Static under
        `jit`.

    Returns:
      An array with the shape of x without the axes (or with size 1). It has the dtype of x;
      integers and booleans become the default float. The mean of no elements is NaN.

    Raises:
      ShapeError: x has no such axis.

    >>> print(nn.logmeanexp(jnp.array([1000.0, 1000.0])))
    1000.0
    >>> logs = jnp.log(jnp.array([[0.25, 0.75], [0.5, 0.1]]))
    >>> print(np.asarray(jnp.exp(nn.logmeanexp(logs, axis=1))).round(4))
    [0.5 0.3]
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
    """Compute (x - mean) / sqrt(variance + epsilon): normalize to mean 0 and variance 1.

    By default the mean and the variance are taken along `axis`, as in layer normalization. With
    given statistics, such as running averages, it is the rule of batch normalization.

    Args:
      x: an array, usually of a float dtype. 16-bit floats are computed in float32.
      axis: the axis, or a tuple of axes, along which the statistics are taken. By default the last;
        None stands for all axes. Static under `jit`.
      mean: an array that broadcasts with x. By default the mean of x along `axis`.
      variance: an array that broadcasts with x. By default the variance of x along `axis`, divided
        by the number of elements (not by one less).
      epsilon: a small positive number, which keeps the divisor away from 0. By default 1e-5.
      where: a bool array that broadcasts to x. The statistics skip elements where it is False;
        these elements are normalized like the others. By default no element is skipped.
      algorithm: "fast", the default, computes the variance as the mean of the squares minus the
        square of the mean. It loses digits where the mean is much larger than the deviation.
        "stable" takes a second pass over x. Static under `jit`.

    Returns:
      An array of the shape of x, of the dtype to which x, `mean` and `variance` promote. Integers
      become the default float.

    Raises:
      ValueError: `algorithm` is neither "fast" nor "stable".

    >>> print(nn.standardize(jnp.array([1.0, 3.0]), epsilon=0.0))
    [-1.  1.]
    >>> x = jnp.array([10001.0, 10003.0])
    >>> print(nn.standardize(x, epsilon=0.0, algorithm="stable"))
    [-1.  1.]
    """
    check_option("standardize", "algorithm", algorithm, "fast", "stable")
    x = as_inexact("standardize", x)
    given = [jnp.asarray(v) for v in (mean, variance) if v is not None]
    # A weak x of 32 bits keeps its dtype if 64-bit types are on.
    result = jnp.result_type(x, *given) if given else x.dtype
    # Squares may be more than 16 bits hold.
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
    """Encode each index as a vector of zeros with a 1 at the index.

    Class labels become rows that may be multiplied or compared with probabilities.

    Args:
      x: an array of indices, usually integers, of any shape.
      num_classes: the length of each vector, an integer. It must be static: under `jit`, name it in
        `static_argnames`.
      dtype: the dtype of the result. By default the default float.
      axis: where the new axis is inserted in the result. By default it is the last axis. Static
        under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default None: the
        sharding follows from x's sharding.

    Returns:
      An array with the shape of x and one more axis, of size `num_classes`. An index outside of [0,
      num_classes) becomes a vector of zeros; negative indices do not count from the end.

    Raises:
      ShapeError: `num_classes` is negative, or `axis` is out of range.
      TypeError: `num_classes` is not an integer.

    >>> print(nn.one_hot(jnp.array([0, 2]), 3))
    [[1. 0. 0.]
     [0. 0. 1.]]
    >>> print(nn.one_hot(jnp.array([1, 3, -1]), 3, dtype=int))
    [[0 1 0]
     [0 0 0]
     [0 0 0]]
    >>> nn.one_hot(jnp.array([0, 2]), 3, axis=0).shape
    (3, 2)
    """
    count = check_integer("one_hot", "num_classes", num_classes, 0)
    dtype = dtypes.default_float() if dtype is None else dtypes.check_user_dtype(dtype, "one_hot")
    x = jnp.asarray(x)
    if x.dtype.itemsize < 4:  # it may not hold num_classes, or every number below
        x = x.astype(np.float32 if dtypes.is_inexact(x.dtype) else np.int32)
    axis = axis_of("one_hot", axis, x.ndim + 1)
    shape = (*x.shape[:axis], count, *x.shape[axis:])
    places = broadcasted_iota(x.dtype, shape, axis)
    return lay_out("one_hot", (jnp.expand_dims(x, axis) == places).astype(dtype), out_sharding)
