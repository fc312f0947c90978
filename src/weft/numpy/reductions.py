"""Functions that reduce axes (sum, max, mean, argmax, their nan forms), and running sums.

Functions of one signature are made by one function each, from a row of a table. What needs sorting
(median, percentile) is in statistics.py.
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
from weft.numpy.choice import literal_like
from weft.numpy.promotion import (
    as_array,
    as_operand,
    axes_of,
    axis_of,
    broadcast_operands,
    is_nonzero,
    promote_operands,
    refuse_out,
)
from weft.primitives import cumulative, layout, reduction, slicing, transcendental
from weft.primitives import elementwise as ops
from weft.run.operation import operation
from weft.util import SymbolicSize, alias, name_function
from weft.xla.typing import Array, ArrayLike, Axis, DTypeLike

STATIC = (
    "axis", "dtype", "out", "keepdims", "promote_integers", "ddof", "correction", "returned",
    "include_initial",
)  # fmt: skip


# --- what reductions share ------------------------------------------------------------------


def publish(fun: Callable, name: str, doc: str) -> Callable:
    """A reduction under its public name, compiled when it is called eagerly."""
    return operation(name_function(fun, name, doc), static=STATIC)


def take_operand(op: str, a: Any, out: Any) -> Any:
    """The array to reduce; NumPy's `out=` is refused."""
    refuse_out(op, out)
    return as_array(a, op)


def keep_axes(y: Any, shape: Sequence[int], axes: Sequence[int], keepdims: bool) -> Any:
    """A result, with the reduced axes as axes of size 1 if they are to be kept."""
    if not keepdims or not axes:
        return y
    dims = tuple([i for i in range(len(shape)) if i not in axes])
    return layout.broadcast_in_dim(y, [1 if i in axes else n for i, n in enumerate(shape)], dims)


def check_mask(op: str, mask: Any) -> Any:
    """A `where` argument, which has to be of truth values."""
    mask = as_array(mask, op)
    if not dtypes.is_bool(mask.dtype):
        raise DtypeError(f"{op}: where must be bool; got {mask.aval}. Hint: where=mask != 0.")
    return mask


def check_initial(op: str, initial: Any, dtype: np.dtype) -> Any:
    """An `initial` argument, which has to be a scalar, in `dtype`."""
    initial = as_operand(op, initial)
    if typeof(initial).shape:
        raise ShapeError(f"{op}: initial must be a scalar; got {typeof(initial)}.")
    return ops.convert(initial, dtype)


def apply_mask(op: str, x: Any, mask: Any, fill: Any) -> Any:
    """x where `mask` holds, and `fill`, which changes no result, elsewhere."""
    if mask is None:
        return x
    mask, x = broadcast_operands(op, check_mask(op, mask), x, check_ranks=False)
    return ops.select(mask, x, layout.literal(fill, typeof(x).dtype))


def widen_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype to add numbers of `dtype` in: float32 for floats of 16 bits and fewer."""
    if dtypes.is_bool(dtype):
        return dtypes.default_int()
    return np.dtype(np.float32) if dtypes.is_float(dtype) and dtype.itemsize < 4 else dtype


def compute_widely(fun: Callable, *xs: Any) -> Any:
    """Return `fun(*xs)` of floats, computed in float32 where they have 16 bits or fewer.

    A square or a sum that the dtype of the operands cannot hold may lead to a result that it can.
    """
    dtype = typeof(xs[0]).dtype
    wide = widen_dtype(dtype)
    if wide == dtype:
        return fun(*xs)
    return ops.convert(fun(*[ops.convert(x, wide) for x in xs]), dtype)


def choose_sum_dtype(op: str, x: Any, dtype: Any, promote_integers: bool) -> np.dtype:
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


def find_nan(x: Any) -> Any:
    """Which elements of an array are NaN; None where its dtype has none."""
    return ops.ne(x, x) if dtypes.is_inexact(x.dtype) else None


def replace_nan(x: Any, fill: Any) -> Any:
    """x with `fill` for NaN."""
    nan = find_nan(x)
    return x if nan is None else ops.select(nan, layout.literal(fill, x.dtype), x)


def fill_all_nan(y: Any, nan: Any, axes: tuple[int, ...], keepdims: bool, fill: Any) -> Any:
    """A result y, with `fill` where every element that went into it was NaN."""
    empty = keep_axes(reduction.reduce_and(nan, axes), nan.shape, axes, keepdims)
    return ops.select(empty, layout.literal(fill, typeof(y).dtype), y)


# --- sums and products ----------------------------------------------------------------------


def make_sum(name: str, apply: Callable, combine: Callable, identity: int, doc: str) -> Callable:
    """A sum or a product: `apply` reduces, `combine` adds `initial`."""

    def fun(
        a: ArrayLike,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        x = take_operand(name, a, out)
        shape = x.shape
        axes = axes_of(name, axis, len(shape))
        result = choose_sum_dtype(name, x, dtype, promote_integers)
        if dtypes.is_bool(result):
            x = ops.convert(x, result)
        x = apply_mask(name, ops.convert(x, widen_dtype(result)), where, identity)
        y = keep_axes(apply(x, axes), shape, axes, keepdims)
        if initial is not None:
            y = combine(check_initial(name, initial, typeof(y).dtype), y)
        return ops.convert(y, result)

    return publish(fun, name, doc)


sum = make_sum(
    "sum",
    layout.reduce_sum,
    ops.add,
    0,
    """The sum over `axis`; small integers are added in the default integer dtype.

    Args:
      promote_integers: False adds integers in their own dtype.

    >>> jnp.sum(jnp.arange(6).reshape(2, 3), axis=1)
    Array([ 3, 12], dtype=int32)
    """,
)
prod = make_sum(
    "prod",
    reduction.reduce_prod,
    ops.mul,
    1,
    """The product over `axis`; small integers are multiplied in the default integer dtype.

    Args:
      promote_integers: False multiplies integers in their own dtype.
    """,
)


def sum_numbers(
    x: Any, dtype: np.dtype, axes: Any, keepdims: bool, mask: Any, counted: bool = True
) -> Any:
    """The sum in `dtype` of what is not NaN in an array, and if `counted` the number of those.

    None where it has no NaN, for a mask, and where `dtype` is not one that floats are summed in.
    """
    is_wide = dtypes.is_float(dtype) and widen_dtype(dtype) == dtype
    if not axes or mask is not None or not dtypes.is_float(x.dtype) or not is_wide:
        return None
    x = ops.convert(x, dtype)
    find = lambda counts: reduction.reduce_nansum_p.bind(x, axes=axes, counts=counts)
    wanted = (False, True) if counted else (False,)
    return [keep_axes(find(counts), x.shape, axes, keepdims) for counts in wanted]


def make_nan_sum(name: str, reduce: Callable, fill: int, doc: str) -> Callable:
    """A sum or a product, by `reduce`, of what is not NaN."""

    def fun(
        a: ArrayLike,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        x = take_operand(name, a, out)
        if fill == 0 and dtype is initial is None:
            axes = axes_of(name, axis, x.ndim)
            numbers = sum_numbers(x, x.dtype, axes, keepdims, where, counted=False)
            if numbers:
                return numbers[0]
        return reduce(replace_nan(x, fill), axis, dtype, None, keepdims, initial, where)

    return publish(fun, name, doc)


nansum = make_nan_sum("nansum", sum, 0, "The sum over `axis` of what is not NaN.")
nanprod = make_nan_sum("nanprod", prod, 1, "The product over `axis` of what is not NaN.")


@operation(static=STATIC)
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """The number of elements over `axis` that are not zero."""
    return sum(
        is_nonzero(as_array(a, "count_nonzero")), axis, dtypes.default_int(), keepdims=keepdims
    )


# --- extremes and truth values --------------------------------------------------------------


def make_extremum(name: str, doc: str, apply: Callable) -> Callable:
    """A maximum or a minimum: `apply` takes the operand and all arguments but `out`."""

    def fun(
        a: ArrayLike,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        return apply(name, take_operand(name, a, out), axis, keepdims, initial, where)

    return publish(fun, name, doc)


def reduce_extremum(reduce: Callable, combine: Callable, bound: Callable) -> Callable:
    """What `max` and `min` do: `bound(dtype)` is the number that changes no result."""

    def apply(op: str, x: Any, axis: Axis, keepdims: bool, initial: Any, mask: Any) -> Any:
        aval = x.aval
        axes = axes_of(op, axis, aval.ndim)
        if initial is None:
            if mask is not None:
                raise ValueError(
                    f"{op}: with where=, initial must be given, for {op} has no identity; got "
                    f"None. Hint: {op}(x, where=mask, initial=-jnp.inf)."
                )
            if builtins.any(aval.shape[i] == 0 for i in axes):
                raise ShapeError(
                    f"{op}: needs at least one element to reduce; got {aval} over axes {axes}. "
                    f"Hint: {op}(x, initial=0)."
                )
        x = apply_mask(op, ops.convert(x, aval.dtype), mask, bound(aval.dtype))
        y = keep_axes(reduce(x, axes), aval.shape, axes, keepdims)
        return y if initial is None else combine(check_initial(op, initial, aval.dtype), y)

    return apply


def reduce_nan_extremum(prim: Any, reduce: Callable) -> Callable:
    """What `nanmax` and `nanmin` do, by the primitive, or by `max` or `min`."""

    def apply(op: str, x: Any, axis: Axis, keepdims: bool, initial: Any, mask: Any) -> Any:
        axes = axes_of(op, axis, x.ndim)
        empty = builtins.any(x.shape[i] == 0 for i in axes)
        if dtypes.is_float(x.dtype) and axes and initial is None and mask is None and not empty:
            y = prim.bind(ops.convert(x, x.dtype), axes=axes, nan="skip")
            return keep_axes(y, x.shape, axes, keepdims)
        y = reduce(replace_nan(x, prim.identity(x.dtype)), axis, None, keepdims, initial, mask)
        nan = find_nan(x) if initial is None else None
        return y if nan is None else fill_all_nan(y, nan, axes, keepdims, math.nan)

    return apply


max = make_extremum(
    "max",
    "The largest element over `axis`; NaN where there is one.",
    reduce_extremum(reduction.reduce_max, ops.max, reduction.lowest_value),
)
min = make_extremum(
    "min",
    "The smallest element over `axis`; NaN where there is one.",
    reduce_extremum(reduction.reduce_min, ops.min, reduction.highest_value),
)
amax = alias(max, "amax")
amin = alias(min, "amin")
minmax = make_extremum(
    "minmax",
    "(smallest, largest): the least and the greatest element over `axis`.",
    lambda op, x, axis, *rest: (min(x, axis, None, *rest), max(x, axis, None, *rest)),
)
nanmax = make_extremum(
    "nanmax",
    "The largest element over `axis` that is not NaN; NaN where all are.",
    reduce_nan_extremum(reduction.reduce_max_p, max),
)
nanmin = make_extremum(
    "nanmin",
    "The smallest element over `axis` that is not NaN; NaN where all are.",
    reduce_nan_extremum(reduction.reduce_min_p, min),
)


@operation(static=STATIC)
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """The largest element over `axis` less the smallest."""
    x = take_operand("ptp", a, out)
    return ops.sub(max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


def make_truth(name: str, reduce: Callable, identity: bool, doc: str) -> Callable:
    """`any` or `all`."""

    def fun(
        a: ArrayLike,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array:
        x = ops.convert(is_nonzero(take_operand(name, a, out)), np.dtype(bool))
        shape = x.shape
        axes = axes_of(name, axis, len(shape))
        return keep_axes(reduce(apply_mask(name, x, where, identity), axes), shape, axes, keepdims)

    return publish(fun, name, doc)


any = make_truth("any", reduction.reduce_or, False, "Whether any element over `axis` is not zero.")
all = make_truth("all", reduction.reduce_and, True, "Whether all elements over `axis` are nonzero.")


# --- positions of extremes ------------------------------------------------------------------


def make_position(name: str, find: Callable, bound: Callable | None, doc: str) -> Callable:
    """argmax or argmin; with `bound`, whose numbers stand for NaN, nanargmax or nanargmin."""

    def fun(
        a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array:
        x = take_operand(name, a, out)
        shape = x.shape
        nan = None if bound is None else find_nan(x)
        if nan is not None:
            x = replace_nan(x, bound(x.dtype))
        if axis is None:
            x, at, axes = layout.reshape(x, (x.size,)), 0, tuple(range(len(shape)))
        else:
            at = axis_of(name, axis, len(shape))
            axes = (at,)
        if x.shape[at] == 0:
            raise ShapeError(f"{name}: needs at least one element along the axis; got {x.aval}.")
        y = keep_axes(find(x, at, dtypes.default_int()), shape, axes, bool(keepdims))
        return y if nan is None else fill_all_nan(y, nan, axes, bool(keepdims), -1)

    return publish(fun, name, doc)


argmax = make_position(
    "argmax",
    reduction.argmax,
    None,
    """The index of the largest element along `axis`, the first if there are several.

    A NaN counts as largest. Without `axis`, the index is that into the flattened array.
    """,
)
argmin = make_position(
    "argmin",
    reduction.argmin,
    None,
    """The index of the smallest element along `axis`, the first if there are several.

    A NaN counts as smallest. Without `axis`, the index is that into the flattened array.
    """,
)
nanargmax = make_position(
    "nanargmax",
    reduction.argmax,
    reduction.lowest_value,
    "The index of the largest element along `axis` that is not NaN; -1 where all are.",
)
nanargmin = make_position(
    "nanargmin",
    reduction.argmin,
    reduction.highest_value,
    "The index of the smallest element along `axis` that is not NaN; -1 where all are.",
)


# --- means and variances --------------------------------------------------------------------


def choose_mean_dtypes(op: str, x: Any, dtype: Any) -> tuple[np.dtype, np.dtype]:
    """The dtype to compute a mean in, and that of the result."""
    if dtype is None:
        result = dtypes.canonicalize(dtypes.inexact_dtype(x.dtype))
    else:
        result = dtypes.check_user_dtype(dtype, op)
    return widen_dtype(dtypes.canonicalize(dtypes.inexact_dtype(result))), result


def compute_mean(
    op: str, x: Any, axes: Any, keepdims: bool, mask: Any, ddof: float = 0, counts: Any = None
) -> Any:
    """The sum of x over `axes`, divided by how many elements that takes, less `ddof`.

    Those are counted, unless `counts` says how many `mask` lets through.
    """
    shape, dtype = x.shape, x.dtype
    if not isinstance(ddof, int | float | np.number):
        raise TypeError(f"{op}: ddof must be a number known now; got {ddof!r}.")
    total = keep_axes(layout.reduce_sum(apply_mask(op, x, mask, 0), axes), shape, axes, keepdims)
    if mask is None:
        count = math.prod([shape[i] for i in axes]) - ddof
        known = not ddof or isinstance(count, SymbolicSize) or count > 0
        if not known:  # NaN, and constant
            return layout.full(total.shape, math.nan, total.dtype)
        return ops.div(total, layout.literal_size(count, total))
    if counts is None:
        mask = check_mask(op, mask)
        if mask.shape != shape:
            mask = layout.broadcast_in_dim(mask, shape, range(len(shape) - mask.ndim, len(shape)))
        counts = layout.reduce_sum(ops.convert(mask, dtypes.default_int()), axes)
        counts = keep_axes(ops.convert(counts, dtypes.real_dtype(dtype)), shape, axes, keepdims)
    if not ddof:
        return ops.div(total, ops.convert(counts, dtype))
    counts = ops.sub(counts, literal_like(ddof, counts))
    known = ops.gt(counts, literal_like(0, counts))
    counts = ops.select(known, counts, literal_like(1, counts))
    return ops.select(
        known, ops.div(total, ops.convert(counts, dtype)), literal_like(math.nan, total)
    )


@operation(static=STATIC)
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """The mean over `axis`; of integers, a float."""
    x = take_operand("mean", a, out)
    axes = axes_of("mean", axis, x.ndim)
    computed, result = choose_mean_dtypes("mean", x, dtype)
    out = compute_mean("mean", ops.convert(x, computed), axes, keepdims, where)
    return ops.convert(out, result)


def compute_variance(
    op: str,
    x: Any,
    axis: Axis,
    dtype: Any,
    ddof: float,
    keepdims: bool,
    mask: Any,
    center: Any,
    skips: bool = False,
) -> Any:
    """The variance, or standard deviation for std and nanstd; of what is not NaN if it `skips`."""
    axes = axes_of(op, axis, x.ndim)
    computed, result = choose_mean_dtypes(op, x, dtype)
    if center is None and dtypes.is_integer(x.dtype):
        x = subtract_least(x, axes, computed)
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(computed):
        raise DtypeError(
            f"{op}: dtype must be complex, as the operand is; got {dtypes.short_name(computed)} "
            f"for {x.aval}. Hint: jnp.{op}(x), which is real."
        )
    counts = numbers = None
    if skips:
        numbers = sum_numbers(x, computed, axes, True, mask)
        mask = combine_masks(x, mask)
        x = replace_nan(x, 0)  # else a derivative would be 0 * NaN
    x = ops.convert(x, computed)
    if numbers:
        total, counts = numbers
        center = ops.div(total, counts) if center is None else center
        counts = counts if keepdims else layout.squeeze(counts, axes)
    if center is None:
        center = compute_mean(op, x, axes, True, mask)
    x = ops.sub(*broadcast_operands(op, x, ops.convert(as_array(center, op), computed)))
    out = compute_mean(op, square_size(x), axes, keepdims, mask, ddof, counts)
    out = transcendental.sqrt(out) if op.endswith("std") else out
    return ops.convert(out, dtypes.real_dtype(result))


def subtract_least(x: Any, axes: Sequence[int], computed: np.dtype) -> Any:
    """Integers less the least along axes, unsigned, where the dtype `computed` would round them.

    A variance is the same, and numbers that are near each other stay apart.
    """
    digits = int(dtypes.finfo(dtypes.real_dtype(computed)).nmant)
    if dtypes.itemsize_bits(x.dtype) <= digits + 1 or not axes:
        return x
    unsigned = np.dtype(f"uint{dtypes.itemsize_bits(x.dtype)}")
    least = keep_axes(reduction.reduce_min(x, axes), x.shape, axes, True)
    y, least = ops.convert(x, unsigned), ops.convert(least, unsigned)  # modulo 2**bits
    return ops.sub(*broadcast_operands("var", y, least))


def square_size(x: Any) -> Any:
    """|x| ** 2, a real number."""
    if not dtypes.is_complex(typeof(x).dtype):
        return ops.square(x)
    return ops.add(ops.square(ops.real(x)), ops.square(ops.imag(x)))


def make_variance(name: str, doc: str) -> Callable:
    """`var` or `std`."""

    def fun(
        a: ArrayLike,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: float | None = None,
    ) -> Array:
        if correction is not None and ddof:
            raise ValueError(
                f"{name}: one of ddof and correction must be given; got {ddof} and {correction}."
            )
        x = take_operand(name, a, out)
        ddof = ddof if correction is None else correction
        return compute_variance(name, x, axis, dtype, ddof, keepdims, where, mean)

    return publish(fun, name, doc)


var = make_variance(
    "var",
    """The mean squared distance from the mean, over `axis`; divides by n - ddof.

    It is NaN where n - ddof is not positive. `correction` is another name of `ddof`.
    """,
)
std = make_variance(
    "std", "The square root of the variance over `axis`; divides by n - ddof, as `var` does."
)


def combine_masks(x: Any, mask: Any) -> Any:
    """Which elements count: those that are not NaN, and that `mask` lets through."""
    nan = find_nan(x)
    if nan is None:
        return mask
    counts = ops.bitwise_not(nan)
    if mask is None:
        return counts
    operands = broadcast_operands("where", check_mask("where", mask), counts, check_ranks=False)
    return ops.bitwise_and(*operands)


@operation(static=STATIC)
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The mean over `axis` of what is not NaN; NaN where all is."""
    x = take_operand("nanmean", a, out)
    computed, result = choose_mean_dtypes("mean", x, dtype)
    numbers = sum_numbers(x, computed, axes_of("mean", axis, x.ndim), keepdims, where)
    if numbers:
        return ops.convert(ops.div(*numbers), result)
    return mean(x, axis, dtype, None, keepdims, where=combine_masks(x, where))


def make_nan_variance(name: str, doc: str) -> Callable:
    """`nanvar` or `nanstd`."""

    def fun(
        a: ArrayLike,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
    ) -> Array:
        x = take_operand(name, a, out)
        return compute_variance(name, x, axis, dtype, ddof, keepdims, where, mean, True)

    return publish(fun, name, doc)


nanvar = make_nan_variance(
    "nanvar", "The variance over `axis` of what is not NaN; NaN where no more than ddof are left."
)
nanstd = make_nan_variance("nanstd", "The standard deviation over `axis` of what is not NaN.")


def broadcast_weights(op: str, x: Any, weights: Any, axes: tuple[int, ...], axis: Axis) -> Any:
    """Weights in the shape of x, given in that shape or in that of the axes that are reduced."""
    if weights.shape == x.shape:
        return weights
    if axis is None or weights.shape != tuple([x.shape[i] for i in axes]):
        raise ShapeError(
            f"{op}: weights must have the shape of x, or of its axes that are reduced; "
            f"got {x.aval}, {weights.aval}, axis {axis}."
        )
    weights = layout.transpose(weights, np.argsort(axes).tolist())
    return layout.broadcast_in_dim(weights, x.shape, sorted(axes))


@operation(static=STATIC)
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The mean over `axis`, weighted by `weights` of a's shape or along the one axis.

    With `returned`, gives (average, sum of the weights).
    """
    x = as_array(a, "average")
    axes = axes_of("average", axis, x.ndim)
    if weights is None:
        out = mean(x, axes, keepdims=keepdims)
        count = math.prod([x.shape[i] for i in axes])
        return (out, layout.full(out.shape, count, out.dtype)) if returned else out
    w = as_array(weights, "average")
    x, w = promote_operands("average", x, w, inexact=True, shaped=False)
    w = broadcast_weights("average", x, w, axes, axis)
    wide = widen_dtype(x.dtype)
    total = sum(w, axes, wide, keepdims=keepdims)
    out = ops.mul(ops.convert(x, wide), ops.convert(w, wide))
    out = ops.convert(ops.div(sum(out, axes, keepdims=keepdims), total), x.dtype)
    return (out, ops.convert(total, x.dtype)) if returned else out


# --- running sums and products --------------------------------------------------------------


def make_running(name: str, apply: Callable, fill: int | None, doc: str) -> Callable:
    """A running sum or product; `fill`, if not None, takes the place of NaN."""

    def fun(
        a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        x = take_operand(name, a, out)
        if axis is None:
            x, axis = layout.reshape(x, (x.size,)), 0
        axis = axis_of(name, axis, x.ndim)
        if dtype is not None:
            found = dtypes.check_user_dtype(dtype, name)
        else:
            found = dtypes.default_int() if dtypes.is_bool(x.dtype) else x.dtype
        x = ops.convert(x if fill is None else replace_nan(x, fill), found)
        if dtypes.is_bool(found):  # counted, and then true where any was
            return ops.convert(apply(ops.convert(x, dtypes.default_int()), axis), found)
        return apply(x, axis)

    return publish(fun, name, doc)


cumsum = make_running(
    "cumsum",
    cumulative.cumsum,
    None,
    """The sum of the elements so far along `axis`, or along the flattened array.

    >>> jnp.cumsum(jnp.arange(4))
    Array([0, 1, 3, 6], dtype=int32)
    """,
)
cumprod = make_running(
    "cumprod",
    cumulative.cumprod,
    None,
    "The product of the elements so far along `axis`, or along the flattened array.",
)
nancumsum = make_running(
    "nancumsum", cumulative.cumsum, 0, "The sum of the elements so far that are not NaN."
)
nancumprod = make_running(
    "nancumprod", cumulative.cumprod, 1, "The product of the elements so far that are not NaN."
)


def make_running_from(name: str, running: Callable, start: int, doc: str) -> Callable:
    """A running sum or product by the array API, which may begin with `start`."""

    def fun(
        x: ArrayLike,
        /,
        *,
        axis: int | None = None,
        dtype: DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Array:
        x = as_array(x, name)
        if axis is None and x.ndim != 1:
            raise ShapeError(f"{name}: axis must be given unless x has one axis; got {x.aval}.")
        axis = axis_of(name, 0 if axis is None else axis, x.ndim)
        y = running(x, axis, choose_sum_dtype(name, x, dtype, promote_integers=True))
        if not include_initial:
            return y
        first = layout.full([1 if i == axis else n for i, n in enumerate(y.shape)], start, y.dtype)
        return slicing.concatenate([first, y], axis)

    return publish(fun, name, doc)


cumulative_sum = make_running_from(
    "cumulative_sum",
    cumsum,
    0,
    """As cumsum, by the array API: `axis` may be left out for one axis only; may start from 0.

    Small integers are added in the default integer dtype, as `sum` adds them.
    """,
)
cumulative_prod = make_running_from(
    "cumulative_prod",
    cumprod,
    1,
    """As cumprod, by the array API: `axis` may be left out for one axis only; may start from 1.

    Small integers are multiplied in the default integer dtype, as `prod` multiplies them.
    """,
)
