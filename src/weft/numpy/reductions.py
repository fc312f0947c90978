"""Functions that reduce axes: sums, products, extremes, means, variances, and those that skip NaN.

Running sums and products are in cumulative.py; what needs sorting (median, percentile) elsewhere.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import typeof
from weft.errors import DtypeError, ShapeError
from weft.numpy.choice import number, truth
from weft.numpy.fused import fused
from weft.numpy.promotion import as_array, as_operand, axes_of, axis_of, no_out, operands, spread
from weft.primitives import elementwise as ops
from weft.primitives import reduction, transcendental
from weft.primitives.layout import broadcast_in_dim, full, literal, reduce_sum, reshape, transpose

Axis = int | Sequence[int] | None
STATIC = ("axis", "dtype", "out", "keepdims", "promote_integers", "ddof", "correction", "returned")


def operand_of(op: str, a: Any, out: Any) -> Any:
    """The array to reduce."""
    no_out(op, out)
    return as_array(a, op)


def kept(y: Any, shape: Sequence[int], axes: Sequence[int], keepdims: bool) -> Any:
    """A result, with the reduced axes as axes of size 1 if they are to be kept."""
    if not keepdims or not axes:
        return y
    dims = tuple([i for i in range(len(shape)) if i not in axes])
    return broadcast_in_dim(y, [1 if i in axes else n for i, n in enumerate(shape)], dims)


def mask_of(op: str, mask: Any) -> Any:
    """A `where` argument, which has to be of truth values."""
    mask = as_array(mask, op)
    if not dtypes.is_bool(mask.dtype):
        raise DtypeError(f"{op}: where must be bool; got {mask.aval}. Hint: where=mask != 0.")
    return mask


def start_of(op: str, initial: Any, dtype: np.dtype) -> Any:
    """An `initial` argument, which has to be a scalar, in `dtype`."""
    initial = as_operand(op, initial)
    if typeof(initial).shape:
        raise ShapeError(f"{op}: initial must be a scalar; got {typeof(initial)}.")
    return ops.convert(initial, dtype)


def masked(op: str, x: Any, mask: Any, fill: Any) -> Any:
    """x where `mask` holds, and `fill`, which changes no result, elsewhere."""
    if mask is None:
        return x
    mask, x = spread(op, mask_of(op, mask), x)
    return ops.select(mask, x, literal(fill, typeof(x).dtype))


def widened(dtype: np.dtype) -> np.dtype:
    """The dtype to add numbers of `dtype` in: float32 for floats of 16 bits and fewer."""
    if dtypes.is_bool(dtype):
        return dtypes.default_int()
    return np.dtype(np.float32) if dtypes.is_float(dtype) and dtype.itemsize < 4 else dtype


def summed_dtype(op: str, x: Any, dtype: Any, promote_integers: bool) -> np.dtype:
    """The dtype of a sum or product of x."""
    if dtype is not None:
        return dtypes.check_user_dtype(dtype, op)
    own = typeof(x).dtype
    if dtypes.is_bool(own):
        return dtypes.default_int()
    if promote_integers and dtypes.is_integer(own):
        wide = np.uint64 if dtypes.is_unsigned(own) else np.int64
        return np.promote_types(own, dtypes.canonicalize(wide))
    return own


def accumulate(
    op: str,
    apply: Callable,
    combine: Callable,
    identity: int,
    a: Any,
    axis: Axis,
    dtype: Any,
    out: Any,
    keepdims: bool,
    initial: Any,
    mask: Any,
    promote_integers: bool,
) -> Any:
    """A sum or a product."""
    x = operand_of(op, a, out)
    shape = x.shape
    axes = axes_of(op, axis, len(shape))
    result = summed_dtype(op, x, dtype, promote_integers)
    if dtypes.is_bool(result):
        x = ops.convert(x, result)
    x = masked(op, ops.convert(x, widened(result)), mask, identity)
    y = kept(apply(x, axes), shape, axes, keepdims)
    if initial is not None:
        y = combine(start_of(op, initial, typeof(y).dtype), y)
    return ops.convert(y, result)


@fused(static=STATIC)
def sum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Any:
    """The sum over `axis`; small integers are added in the default integer dtype.

    >>> import weft.numpy as jnp
    >>> jnp.sum(jnp.arange(6).reshape(2, 3), axis=1)
    Array([ 3, 12], dtype=int32)
    """
    return accumulate(
        "sum", reduce_sum, ops.add, 0,
        a, axis, dtype, out, keepdims, initial, where, promote_integers,
    )  # fmt: skip


@fused(static=STATIC)
def prod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Any:
    """The product over `axis`; small integers are multiplied in the default integer dtype."""
    return accumulate(
        "prod", reduction.reduce_prod, ops.mul, 1,
        a, axis, dtype, out, keepdims, initial, where, promote_integers,
    )  # fmt: skip


def extremum(
    op: str,
    apply: Callable,
    combine: Callable,
    bound: Callable,
    a: Any,
    axis: Axis,
    out: Any,
    keepdims: bool,
    initial: Any,
    mask: Any,
) -> Any:
    """A maximum or a minimum."""
    x = operand_of(op, a, out)
    aval = x.aval
    axes = axes_of(op, axis, aval.ndim)
    if initial is None:
        if mask is not None:
            raise ValueError(
                f"{op}: with where=, initial must be given, for {op} has no identity; got None. "
                f"Hint: {op}(x, where=mask, initial=-jnp.inf)."
            )
        if builtins.any(aval.shape[i] == 0 for i in axes):
            raise ShapeError(
                f"{op}: needs at least one element to reduce; got {aval} over axes {axes}. "
                f"Hint: {op}(x, initial=0)."
            )
    x = masked(op, ops.convert(x, aval.dtype), mask, bound(aval.dtype))
    y = kept(apply(x, axes), aval.shape, axes, keepdims)
    if initial is not None:
        y = combine(start_of(op, initial, aval.dtype), y)
    return y


@fused(static=STATIC)
def max(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The largest element over `axis`; NaN where there is one."""
    return extremum(
        "max", reduction.reduce_max, ops.max, reduction.lowest,
        a, axis, out, keepdims, initial, where,
    )  # fmt: skip


@fused(static=STATIC)
def min(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The smallest element over `axis`; NaN where there is one."""
    return extremum(
        "min", reduction.reduce_min, ops.min, reduction.highest,
        a, axis, out, keepdims, initial, where,
    )  # fmt: skip


amax, amin = max, min


@fused(static=STATIC)
def minmax(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> tuple[Any, Any]:
    """The smallest and the largest element over `axis`."""
    no_out("minmax", out)
    return tuple(f(a, axis, None, keepdims, initial, where) for f in (min, max))


def truths(
    op: str,
    apply: Callable,
    identity: bool,
    a: Any,
    axis: Axis,
    out: Any,
    keepdims: bool,
    mask: Any,
) -> Any:
    """Whether any, or all, are true."""
    x = ops.convert(truth(operand_of(op, a, out)), np.dtype(bool))
    shape = x.shape
    axes = axes_of(op, axis, len(shape))
    return kept(apply(masked(op, x, mask, identity), axes), shape, axes, keepdims)


@fused(static=STATIC)
def any(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Any:
    """Whether any element over `axis` is not zero."""
    return truths("any", reduction.reduce_or, False, a, axis, out, keepdims, where)


@fused(static=STATIC)
def all(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Any:
    """Whether all elements over `axis` are not zero."""
    return truths("all", reduction.reduce_and, True, a, axis, out, keepdims, where)


@fused(static=STATIC)
def count_nonzero(a: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The number of elements over `axis` that are not zero."""
    return sum(truth(as_array(a, "count_nonzero")), axis, dtypes.default_int(), keepdims=keepdims)


@fused(static=STATIC)
def ptp(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False) -> Any:
    """The largest element over `axis` less the smallest."""
    x = operand_of("ptp", a, out)
    return ops.sub(max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


# --- means and variances --------------------------------------------------------------------


def mean_dtypes(op: str, x: Any, dtype: Any) -> tuple[np.dtype, np.dtype]:
    """The dtype to compute a mean in, and that of the result."""
    if dtype is None:
        result = dtypes.canonicalize(dtypes.inexact_dtype(x.dtype))
    else:
        result = dtypes.check_user_dtype(dtype, op)
    inexact = dtypes.canonicalize(dtypes.inexact_dtype(result))
    return widened(inexact), result


def mean_of(
    op: str, x: Any, axes: tuple[int, ...], keepdims: bool, mask: Any, ddof: float = 0
) -> Any:
    """The sum of x over `axes`, divided by how many elements that takes, less `ddof`."""
    shape, dtype = x.shape, x.dtype
    total = kept(reduce_sum(masked(op, x, mask, 0), axes), shape, axes, keepdims)
    if mask is None:
        count = math.prod([shape[i] for i in axes]) - ddof
        return ops.div(total, literal(count if count > 0 or not ddof else math.nan, dtype))
    mask = mask_of(op, mask)
    if mask.shape != shape:
        mask = broadcast_in_dim(mask, shape, range(len(shape) - mask.ndim, len(shape)))
    counts = reduce_sum(ops.convert(mask, dtypes.default_int()), axes)
    counts = kept(ops.convert(counts, dtypes.real_dtype(dtype)), shape, axes, keepdims)
    if ddof:
        counts = ops.sub(counts, number(ddof, counts))
        counts = ops.select(ops.gt(counts, number(0, counts)), counts, number(math.nan, counts))
    return ops.div(total, ops.convert(counts, dtype))


@fused(static=STATIC)
def mean(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Any:
    """The mean over `axis`; of integers, a float."""
    x = operand_of("mean", a, out)
    axes = axes_of("mean", axis, x.ndim)
    computed, result = mean_dtypes("mean", x, dtype)
    out = mean_of("mean", ops.convert(x, computed), axes, keepdims, where)
    return ops.convert(out, result)


@fused(static=STATIC)
def var(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: float | None = None,
) -> Any:
    """The mean squared distance from the mean, over `axis`; divides by n - ddof.

    It is NaN where n - ddof is not positive. `correction` is another name of `ddof`.
    """
    return variance("var", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@fused(static=STATIC)
def std(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: float | None = None,
) -> Any:
    """The square root of the variance over `axis`; divides by n - ddof."""
    return transcendental.sqrt(
        variance("std", a, axis, dtype, out, ddof, keepdims, where, mean, correction)
    )


def variance(
    op: str,
    a: Any,
    axis: Axis,
    dtype: Any,
    out: Any,
    ddof: float,
    keepdims: bool,
    mask: Any,
    center: Any,
    correction: float | None,
) -> Any:
    """The variance, as `var` and `std` take it."""
    if correction is not None:
        if ddof:
            raise ValueError(
                f"{op}: one of ddof and correction must be given; got {ddof} and {correction}."
            )
        ddof = correction
    x = operand_of(op, a, out)
    axes = axes_of(op, axis, x.ndim)
    computed, result = mean_dtypes(op, x, dtype)
    result = dtypes.real_dtype(result)
    x = ops.convert(x, computed)
    if center is None:
        center = mean_of(op, x, axes, True, mask)
    x = ops.sub(*spread(op, x, ops.convert(as_array(center, op), computed)))
    return ops.convert(mean_of(op, abs_squared(x), axes, keepdims, mask, ddof), result)


def abs_squared(x: Any) -> Any:
    """|x| ** 2, a real number."""
    if not dtypes.is_complex(typeof(x).dtype):
        return ops.square(x)
    return ops.add(ops.square(ops.real(x)), ops.square(ops.imag(x)))


@fused(static=STATIC)
def average(
    a: Any, axis: Axis = None, weights: Any = None, returned: bool = False, keepdims: bool = False
) -> Any:
    """The mean over `axis`, weighted by `weights` of a's shape or along the one axis.

    With `returned`, gives (average, sum of the weights).
    """
    x = as_array(a, "average")
    axes = axes_of("average", axis, x.ndim)
    if weights is None:
        out = mean(x, axes, keepdims=keepdims)
        count = math.prod([x.shape[i] for i in axes])
        return (out, full(out.shape, count, out.dtype)) if returned else out
    w = as_array(weights, "average")
    x, w = operands("average", x, w, inexact=True, shaped=False)
    if w.shape != x.shape:
        if axis is None or w.shape != tuple([x.shape[i] for i in axes]):
            raise ShapeError(
                "average: weights must have the shape of x, or of its axes that are averaged; "
                f"got {x.aval}, {w.aval}, axis {axis}."
            )
        order = np.argsort(axes).tolist()
        w = transpose(w, order)
        w = broadcast_in_dim(w, x.shape, sorted(axes))
    total = sum(w, axes, keepdims=keepdims)
    out = ops.div(sum(ops.mul(x, w), axes, keepdims=keepdims), total)
    return (out, total) if returned else out


# --- positions of extremes ------------------------------------------------------------------


def position(op: str, apply: Callable, a: Any, axis: Any, out: Any, keepdims: bool | None) -> Any:
    """argmax or argmin."""
    x = operand_of(op, a, out)
    shape = x.shape
    if axis is None:
        x = reshape(x, (x.size,))
        at, axes = 0, tuple(range(len(shape)))
    else:
        at = axis_of(op, axis, len(shape))
        axes = (at,)
    if x.shape[at] == 0:
        raise ShapeError(f"{op}: needs at least one element along the axis; got {x.aval}.")
    y = apply(x, at, dtypes.default_int())
    return kept(y, shape, axes, bool(keepdims))


@fused(static=STATIC)
def argmax(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """The index of the largest element along `axis`, the first if there are several.

    A NaN counts as largest. Without `axis`, the index is that into the flattened array.
    """
    return position("argmax", reduction.argmax, a, axis, out, keepdims)


@fused(static=STATIC)
def argmin(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """The index of the smallest element along `axis`, the first if there are several.

    A NaN counts as smallest. Without `axis`, the index is that into the flattened array.
    """
    return position("argmin", reduction.argmin, a, axis, out, keepdims)


# --- skipping NaN ---------------------------------------------------------------------------


def is_nan(x: Any) -> Any:
    """Which elements of an array are NaN; None where its dtype has none."""
    return ops.ne(x, x) if dtypes.is_inexact(x.dtype) else None


def without_nan(x: Any, fill: Any) -> Any:
    """x with `fill` for NaN."""
    nan = is_nan(x)
    return x if nan is None else ops.select(nan, literal(fill, x.dtype), x)


def nan_where_all(y: Any, nan: Any, axes: tuple[int, ...], keepdims: bool, fill: Any) -> Any:
    """A result y, with `fill` where every element that went into it was NaN."""
    empty = kept(reduction.reduce_and(nan, axes), nan.shape, axes, keepdims)
    return ops.select(empty, literal(fill, typeof(y).dtype), y)


@fused(static=STATIC)
def nansum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The sum over `axis` of what is not NaN."""
    x = operand_of("nansum", a, out)
    return sum(without_nan(x, 0), axis, dtype, None, keepdims, initial, where)


@fused(static=STATIC)
def nanprod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The product over `axis` of what is not NaN."""
    x = operand_of("nanprod", a, out)
    return prod(without_nan(x, 1), axis, dtype, None, keepdims, initial, where)


def nan_extremum(
    op: str,
    reducer: Callable,
    bound: Callable,
    a: Any,
    axis: Axis,
    out: Any,
    keepdims: bool,
    initial: Any,
    mask: Any,
) -> Any:
    """nanmax or nanmin."""
    x = operand_of(op, a, out)
    nan = is_nan(x)
    y = reducer(without_nan(x, bound(x.dtype)), axis, None, keepdims, initial, mask)
    if nan is None or initial is not None:
        return y
    return nan_where_all(y, nan, axes_of(op, axis, x.ndim), keepdims, float("nan"))


@fused(static=STATIC)
def nanmax(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The largest element over `axis` that is not NaN; NaN where all are."""
    return nan_extremum("nanmax", max, reduction.lowest, a, axis, out, keepdims, initial, where)


@fused(static=STATIC)
def nanmin(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The smallest element over `axis` that is not NaN; NaN where all are."""
    return nan_extremum("nanmin", min, reduction.highest, a, axis, out, keepdims, initial, where)


def not_nan(x: Any, mask: Any) -> Any:
    """Which elements count: those that are not NaN, and that `mask` lets through."""
    nan = is_nan(x)
    if nan is None:
        return mask
    counts = ops.bitwise_not(nan)
    if mask is None:
        return counts
    return ops.bitwise_and(*spread("where", mask_of("where", mask), counts))


@fused(static=STATIC)
def nanmean(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    where: Any = None,
) -> Any:
    """The mean over `axis` of what is not NaN; NaN where all is."""
    x = operand_of("nanmean", a, out)
    return mean(x, axis, dtype, None, keepdims, where=not_nan(x, where))


@fused(static=STATIC)
def nanvar(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Any:
    """The variance over `axis` of what is not NaN; NaN where no more than ddof are left."""
    x = operand_of("nanvar", a, out)
    where = not_nan(x, where)
    x = without_nan(x, 0)  # else a derivative would be 0 * NaN
    return variance("nanvar", x, axis, dtype, out, ddof, keepdims, where, mean, None)


@fused(static=STATIC)
def nanstd(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Any:
    """The standard deviation over `axis` of what is not NaN."""
    return transcendental.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where, mean))


def nan_position(
    op: str, apply: Callable, bound: Callable, a: Any, axis: Any, out: Any, keepdims: bool | None
) -> Any:
    """nanargmax or nanargmin."""
    x = operand_of(op, a, out)
    nan = is_nan(x)
    y = position(op, apply, without_nan(x, bound(x.dtype)), axis, out, keepdims)
    if nan is None:
        return y
    return nan_where_all(y, nan, axes_of(op, axis, x.ndim), bool(keepdims), -1)


@fused(static=STATIC)
def nanargmax(
    a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Any:
    """The index of the largest element along `axis` that is not NaN; -1 where all are."""
    return nan_position("nanargmax", reduction.argmax, reduction.lowest, a, axis, out, keepdims)


@fused(static=STATIC)
def nanargmin(
    a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Any:
    """The index of the smallest element along `axis` that is not NaN; -1 where all are."""
    return nan_position("nanargmin", reduction.argmin, reduction.highest, a, axis, out, keepdims)
