"""logsumexp, softmax and log_softmax: sums of exponentials without overflow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft import dtypes
from weft.numpy import reductions
from weft.numpy.choice import where as where_
from weft.numpy.promotion import as_inexact, as_operand
from weft.primitives import elementwise as ops
from weft.primitives import transcendental
from weft.primitives.reduction import reduce_max_p
from weft.run.operation import operation
from weft.scipy.special.definitions import promote_floats
from weft.xla.typing import Array, ArrayLike

INF = float("inf")


def real_part(x: Any) -> Any:
    """The part that decides how large exp(x) is."""
    return ops.real(x) if dtypes.is_complex(x.dtype) else x


def largest_real(op: str, x: Any, axis: Any) -> Any:
    """The largest real part along `axis`, a constant; with NaN there it may be any number."""
    y = real_part(x)
    axes = reductions.axes_of(op, axis, y.ndim)
    top = reduce_max_p.bind(y, axes=axes, nan="any") if axes else y
    return ops.stop_gradient_p.apply(reductions.keep_axes(top, y.shape, axes, True))[0]


@operation(static=("axis", "keepdims", "return_sign"))
def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """Compute `log(sum(b * exp(a)))` over axes, without overflow.

    It adds probabilities that are stored as logarithms. The largest exponent is taken out of the
    sum.

    Args:
      a: an array of floats or complex numbers. Integers and bools become floats first.
      axis: the axis or the axes of the sum, an int or a sequence of ints. None, the default, sums
        over all axes.
      b: an array of weights that broadcasts with `a`. Where it is 0, the element does not count,
        even if its exponential overflows. None, the default, is a weight of 1.
      keepdims: if True, the reduced axes stay in the result with size 1. The default is False.
      return_sign: if True, the result is a pair. The default is False.
      where: an array of bools that broadcasts with `a`. Elements where it is False do not count.
        None, the default, counts all.

    Returns:
      An array of the shape of `a` without the reduced axes. A negative sum gives NaN, and a sum of
      no elements -inf. With `return_sign` it is a pair: the logarithm of the size of the sum, and
      the sign of the sum, which for complex sums is a number of size 1.

    >>> from weft.scipy import special
    >>> special.logsumexp(jnp.array([1000.0, 1000.0]))
    Array(1000.6932, dtype=float32)
    >>> size, sign = special.logsumexp(jnp.zeros(2), b=jnp.array([1.0, -3.0]), return_sign=True)
    >>> print(np.asarray(size).round(4), sign)
    0.6931 -1.0
    """
    if b is None:
        (x,) = promote_floats("logsumexp", a, strong=True, takes_complex=True)
        weight = None
    else:
        x, weight = promote_floats("logsumexp", a, as_operand("logsumexp", b), strong=True,
                           takes_complex=True)  # fmt: skip
    dtype = x.dtype
    # in 16 bits a sum of many is not finite, though its logarithm is
    x, weight = (
        v if v is None else ops.convert(v, reductions.widen_dtype(dtype)) for v in (x, weight)
    )
    if where is not None:  # the exponential of a masked element must not overflow
        x = where_(reductions.check_mask("logsumexp", where), x, -INF)
    # Elements of weight 0 do not decide the scale.
    top = largest_real("logsumexp", x if weight is None else where_(weight == 0, -INF, x), axis)
    top = where_(ops.is_finite(top), top, 0)
    x = x - top.astype(x.dtype)
    if weight is None:
        terms = transcendental.exp(x)
    else:  # terms of weight 0 must not overflow; their weights have derivatives
        held = (weight == 0) & ~(real_part(x) < math.log(float(dtypes.finfo(x.dtype).max)))
        terms = weight * transcendental.exp(where_(held, 0, x))
    total = reductions.sum(terms, axis=axis, keepdims=True)
    if return_sign or not dtypes.is_complex(total.dtype):
        sign = ops.sign(total)
        # The derivative of the magnitude is the derivative of the sum over the sum, safe where it
        # is 0.
        out = transcendental.log(ops.abs(total)) + top
        out = where_(sign < 0, float("nan"), out) if not return_sign else out
    else:
        sign, out = None, transcendental.log(total) + top.astype(x.dtype)
    if not keepdims:
        axes = tuple(range(x.ndim)) if axis is None else axis
        out, sign = (v if v is None else v.squeeze(axes) for v in (out, sign))
    if dtypes.is_float(dtype):
        out, sign = (v if v is None else ops.convert(v, dtype) for v in (out, sign))
    return (out, sign) if return_sign else out


def subtract_largest(op: str, x: Any, axis: Any) -> Any:
    """x less its maximum along `axis`."""
    (x,) = promote_floats(op, x, strong=True, takes_complex=True)
    return x - largest_real(op, x, axis).astype(x.dtype)


@operation(static=("axis",))
def softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Compute `exp(x) / sum(exp(x))`, without overflow.

    It turns scores into probabilities that add up to 1.

    Args:
      x: an array of floats or complex numbers. Integers and bools become floats first.
      axis: the axis or the axes of the sum, an int or a tuple of ints. None, the default, sums over
        all elements. `nn.softmax` has -1 as its default.

    Returns:
      An array of the shape of the operand.

    >>> from weft.scipy import special
    >>> print(np.asarray(special.softmax(jnp.array([1.0, 2.0, 1000.0]))).round(4))
    [0. 0. 1.]
    >>> print(special.softmax(jnp.ones((2, 2)), axis=-1))
    [[0.5 0.5]
     [0.5 0.5]]
    """

    def divide(x: Any) -> Any:
        terms = transcendental.exp(subtract_largest("softmax", x, axis))
        return terms / reductions.sum(terms, axis=axis, keepdims=True)

    return reductions.compute_widely(divide, as_inexact("softmax", x))


@operation(static=("axis",))
def log_softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Compute `log(softmax(x))`, exactly where softmax underflows.

    Args:
      x: an array of floats or complex numbers. Integers and bools become floats first.
      axis: the axis or the axes of the sum, an int or a tuple of ints. None, the default, sums over
        all elements.

    Returns:
      An array of the shape of the operand.

    >>> from weft.scipy import special
    >>> print(special.log_softmax(jnp.array([0.0, 1000.0])))
    [-1000.     0.]
    """

    def subtract(x: Any) -> Any:
        y, sum = subtract_largest("log_softmax", x, axis), reductions.sum
        return y - transcendental.log(sum(transcendental.exp(y), axis=axis, keepdims=True))

    return reductions.compute_widely(subtract, as_inexact("log_softmax", x))
