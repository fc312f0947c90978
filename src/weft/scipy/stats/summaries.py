"""Statistics of samples: the most frequent value, ranks, the error of a mean.

All of them are made of one sort and of where runs of equal elements begin and end.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import weft.numpy as jnp
from weft import dtypes, lax
from weft.numpy.promotion import as_array, axis_of
from weft.run.operation import operation
from weft.util import SymbolicSize, check_option
from weft.xla.typing import Array, ArrayLike


class ModeResult(NamedTuple):
    """The result of `mode`: the value, and its number of occurrences."""

    mode: Any
    count: Any


def check_nan_policy(op: str, policy: str, known: tuple[str, ...] = ("propagate",)) -> None:
    """Refuse what a function does not do with NaN."""
    if policy not in known:
        raise NotImplementedError(
            f"{op}: nan_policy must be {' or '.join(map(repr, known))}; got {policy!r}. "
            "Hint: x[~jnp.isnan(x)], outside of jit."
        )


def flatten_axis(op: str, a: Any, axis: int | None) -> tuple[Any, int]:
    """The array to look at, all of it in one axis for None, and the axis."""
    x = as_array(a, op)
    if axis is None or (x.ndim == 0 and axis in (0, -1)):
        return x.reshape(-1), 0
    return x, axis_of(op, axis, x.ndim)


def find_runs(x: Any, axis: int) -> tuple[Any, Any]:
    """Return the place of each element of sorted x, and True where it differs from the last one."""
    place = lax.broadcasted_iota(dtypes.default_int(), x.shape, axis)
    before = jnp.roll(x, 1, axis)
    differs = (x != before) & ~((x != x) & (before != before))
    return place, differs | (place == 0)


@operation(static=("axis", "nan_policy", "keepdims"))
def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """Return the most frequent element along an axis, and its number of occurrences.

    Args:
      a: an array of real numbers.
      axis: the axis, an int; 0 by default. None looks at all elements.
      nan_policy: it must be "propagate", the default. NaN counts as a value, the greatest.
      keepdims: if True, the axis stays in the results with size 1. The default is False.

    Returns:
      A `ModeResult` (mode, count), two arrays without the axis. Of several elements that are
      equally frequent, the mode is the smallest. Of no elements it is NaN, and the count is 0.

    >>> from weft.scipy.stats import mode
    >>> mode(jnp.array([3, 1, 3, 1, 2]))
    ModeResult(mode=Array(1, dtype=int32), count=Array(2, dtype=int32))
    """
    check_nan_policy("mode", nan_policy)
    x, at = flatten_axis("mode", a, axis)
    if x.shape[at] == 0:
        some = jnp.sum(x, at, keepdims=keepdims, dtype=dtypes.inexact_dtype(x.dtype))
        out = ModeResult(jnp.full_like(some, jnp.nan), some)
    else:
        x = jnp.sort(x, at)
        place, starts = find_runs(x, at)
        length = place - lax.cummax(jnp.where(starts, place, 0), axis=at) + 1
        best = jnp.argmax(length, at, keepdims=True)
        found = [jnp.take_along_axis(v, best, at) for v in (x, length)]
        out = ModeResult(*[v if keepdims else jnp.squeeze(v, at) for v in found])
    if keepdims and axis is None:
        shape = (1,) * jnp.ndim(a)
        out = ModeResult(*[v.reshape(shape) for v in out])
    return out


@operation(static=("method", "axis", "nan_policy"))
def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """Return the ranks of elements, counted from 1.

    Args:
      a: an array of real numbers.
      method: the ranks of equal elements. "average", the default: the mean of the ranks that they
        take up. "min" and "max": the least and the greatest of them. "dense": ranks count the
        different elements. "ordinal": ranks follow the order in the array.
      axis: the axis along which elements are compared, an int. None, the default, compares all
        elements, and the result has one axis.
      nan_policy: it must be "propagate", the default. Where there is a NaN, all ranks are NaN.

    Returns:
      An array of floats.

    >>> from weft.scipy.stats import rankdata
    >>> print(rankdata(jnp.array([30, 10, 30, 20])))
    [3.5 1.  3.5 2. ]
    >>> print(rankdata(jnp.array([30, 10, 30, 20]), "dense"))
    [3. 1. 3. 2.]
    """
    check_nan_policy("rankdata", nan_policy)
    check_option("rankdata", "method", method, "average", "min", "max", "dense", "ordinal")
    x, at = flatten_axis("rankdata", a, axis)
    dtype = dtypes.default_float()
    n = x.shape[at]
    if n == 0:
        return jnp.zeros(x.shape, dtype)
    order = lax.broadcasted_iota(dtypes.default_int(), x.shape, at)
    sorted_x, order = lax.sort_key_val(x, order, dimension=at, is_stable=True)
    place, starts = find_runs(sorted_x, at)
    first = last = place
    if method in ("average", "min"):
        first = lax.cummax(jnp.where(starts, place, 0), axis=at)
    if method in ("average", "max"):
        ends = jnp.roll(starts, -1, at)
        last = lax.cummin(jnp.where(ends, place, n - 1), axis=at, reverse=True)
    middle = 0.5 * (first + last).astype(dtype)
    ranks = {"average": middle + 1, "max": last + 1}.get(method, first + 1)
    if method == "dense":
        ranks = jnp.cumsum(starts, at)
    _, ranks = lax.sort_key_val(order, ranks, dimension=at)
    missing = jnp.any(x != x, at, keepdims=True)
    return jnp.where(missing, jnp.nan, ranks.astype(dtype))


@operation(static=("axis", "ddof", "nan_policy", "keepdims"))
def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Compute the standard error of the mean: the standard deviation over the square root of n.

    Args:
      a: an array of numbers.
      axis: the axis, an int; 0 by default. None takes all elements.
      ddof: the number that is subtracted from n in the variance. The default is 1.
      nan_policy: "propagate", the default, or "omit", which leaves out NaN.
      keepdims: if True, the axis stays in the result with size 1. The default is False.

    Returns:
      An array of floats without the axis.

    >>> from weft.scipy.stats import sem
    >>> print(sem(jnp.array([0.0, 2.0, 4.0, 6.0, 8.0])))
    1.4142135
    """
    check_nan_policy("sem", nan_policy, ("propagate", "omit"))
    x = as_array(a, "sem")
    if nan_policy == "omit":
        count = jnp.sum(~jnp.isnan(x), axis, keepdims=keepdims)
        spread = jnp.nanstd(x, axis, ddof=ddof, keepdims=keepdims)
        return spread / jnp.sqrt(count.astype(spread.dtype))
    spread = jnp.std(x, axis, ddof=ddof, keepdims=keepdims)
    n = jnp.size(x, axis)
    return spread / (jnp.sqrt(n) if isinstance(n, SymbolicSize) else math.sqrt(n))
