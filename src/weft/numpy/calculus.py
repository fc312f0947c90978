"""Differences and sums along an axis as approximations of calculus, and interpolation in a table.

Running sums are in reductions.py; `weft.grad` and others differentiate functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import DtypeError, ShapeError
from weft.numpy.choice import clip, isfinite, literal_like, subtract_integers, where
from weft.numpy.elementwise import mod
from weft.numpy.indexing import PLAIN, getitem_with
from weft.numpy.manipulation import concatenate, moveaxis
from weft.numpy.promotion import (
    as_array,
    as_array_beside,
    as_arrays_together,
    as_inexact,
    as_operand,
    axes_of,
    axis_of,
    drop_weak_type,
    promote_operands,
)
from weft.numpy.reductions import compute_widely, subtract_least, widen_dtype
from weft.numpy.sorting import search_by_halving
from weft.numpy.ufuncs import maximum
from weft.primitives import elementwise as ops
from weft.primitives.cumulative import cumsum
from weft.primitives.families import check_integer
from weft.primitives.layout import broadcast_in_dim, broadcast_to_rank, reduce_sum, reshape
from weft.primitives.slicing import slice_in_dim
from weft.primitives.sort import sort as sort_together
from weft.run.operation import operation
from weft.xla.typing import Array, ArrayLike

# --- differences ----------------------------------------------------------------------------


def keep_apart(x: Any) -> Any:
    """Return an array for its differences: integers that floats would round, less the least."""
    if not x.ndim or not dtypes.is_integer(x.dtype) or x.aval.weak_type:
        return x
    return subtract_least(x, tuple(range(x.ndim)), dtypes.default_float())


def split_neighbors(x: Any, axis: int) -> tuple[Any, Any]:
    """The elements along an axis except for the first, and those except for the last."""
    n = x.shape[axis]
    return slice_in_dim(x, min(1, n), n, 1, axis), slice_in_dim(x, 0, max(n - 1, 0), 1, axis)


@operation(static=("n", "axis"))
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """Compute the differences of neighbours along an axis.

    The result is x[i + 1] - x[i], and that again `n` times. For bools it is x[i + 1] != x[i].

    Args:
      a: array of any dtype, with one axis or more.
      n: how often to take differences, 0 or more; 1 by default. A Python value, static under
        tracing.
      axis: the axis, the last one by default. A Python value, static under tracing.
      prepend: number or array to put before `a` along the axis; None (default) for nothing.
      append: number or array to put after `a` along the axis; None (default) for nothing.

    Returns:
      An array of the dtype of `a`, with n elements fewer along the axis (not fewer than 0).

    Raises:
      ShapeError: if `a` has no axis, the axis does not exist, or `n` is negative.

    >>> jnp.diff(jnp.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    >>> jnp.diff(jnp.array([1, 4, 9]), n=2)
    Array([2], dtype=int32)
    >>> jnp.diff(jnp.array([1, 4, 9]), append=16)
    Array([3, 5, 7], dtype=int32)
    """
    x = as_array(a, "diff")
    n = check_integer("diff", "n", n, 0, math.inf)
    if n == 0:
        return x
    if not x.ndim:
        raise ShapeError(f"diff: needs at least one axis; got {x.aval}. Hint: jnp.atleast_1d(x).")
    axis = axis_of("diff", axis, x.ndim)
    edge = [1 if i == axis else m for i, m in enumerate(x.shape)]
    parts = [
        broadcast_in_dim(p, edge, ()) if not p.ndim else p
        for p in as_arrays_together("diff", *[p for p in (prepend, x, append) if p is not None])
    ]
    x = concatenate(parts, axis) if len(parts) > 1 else x
    for _ in range(n):
        if x.shape[axis] == 0:
            break
        later, earlier = split_neighbors(x, axis)
        x = ops.ne(later, earlier) if dtypes.is_bool(x.dtype) else ops.sub(later, earlier)
    return x


@operation
def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """Compute the differences of neighbours in the flattened array.

    Args:
      ary: array of numbers, of any shape.
      to_end: number or array to put after the differences; None (default) for nothing.
      to_begin: number or array to put before the differences; None (default) for nothing.

    Returns:
      A vector of the dtype of `ary`. `to_begin` and `to_end` are flattened and converted to that
      dtype, also where NumPy raises an error because the conversion loses values.

    Raises:
      DtypeError: if the elements are bools.

    >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_begin=0, to_end=jnp.array([1, 2]))
    Array([0, 3, 5, 1, 2], dtype=int32)
    """
    x = as_array(ary, "ediff1d")
    if dtypes.is_bool(x.dtype):
        raise DtypeError(f"ediff1d: operands must be numbers; got {x.aval}. Hint: x.astype(int).")
    later, earlier = split_neighbors(reshape(x, (x.size,)), 0)
    around = [None if p is None else as_array_beside("ediff1d", p, x) for p in (to_begin, to_end)]
    around = [None if p is None else reshape(ops.convert(p, x.dtype), (p.size,)) for p in around]
    parts = [p for p in (around[0], ops.sub(later, earlier), around[1]) if p is not None]
    return concatenate(parts) if len(parts) > 1 else parts[0]


@operation(static=("axis", "edge_order"))
def gradient(
    f: ArrayLike,
    *varargs: ArrayLike | Sequence[ArrayLike],
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Any:
    """Estimate the slope of sampled values along each axis, by central differences.

    Inside, the slope at a sample comes from its two neighbours, with error of second order. At the
    two ends the difference is one-sided. `weft.grad` differentiates functions.

    Args:
      f: array of samples. Integers are converted to floats.
      varargs: nothing, for samples at distance 1; or a distance for all axes; or one distance for
        each axis. In place of a distance there may be a vector of the coordinates of the samples.
      axis: an axis, or several, to differentiate along; None (default) for all. A Python value,
        static under tracing.
      edge_order: the order of the error at the ends, 1 (the meaning of None, the default) or 2. An
        axis needs at least edge_order + 1 elements.

    Returns:
      An array of the shape of `f` if there is one axis, else a list of such arrays, one for each
      axis. The dtype is the common inexact dtype of `f` and the distances.

    Raises:
      ShapeError: if an axis is too short, or the numbers of coordinates and samples differ.
      TypeError: if the number of distances is wrong.
      ValueError: if `edge_order` is another number.

    >>> jnp.gradient(jnp.array([1., 4., 9., 16.]))
    Array([3., 4., 6., 7.], dtype=float32)
    >>> jnp.gradient(jnp.array([1., 4., 9., 16.]), 2.0, edge_order=2)
    Array([1., 2., 3., 4.], dtype=float32)
    >>> [x.shape for x in jnp.gradient(jnp.ones((2, 3)))]
    [(2, 3), (2, 3)]
    """
    given = [keep_apart(v) for v in as_arrays_together("gradient", f, *varargs)]
    x, *places = promote_operands("gradient", *given, inexact=True, shaped=False)
    if not places:
        x, *places = promote_operands("gradient", x, as_array(1.0), shaped=False)
    axes = axes_of("gradient", axis, x.ndim)
    order = 1 if edge_order is None else edge_order
    if order not in (1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2; got {edge_order}.")
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(
            "gradient: distances must be none, one, or one for each axis; "
            f"got {len(varargs)} for {len(axes)} axes."
        )
    spacings = places * len(axes) if len(places) == 1 else places
    out = []
    for i, spacing in zip(axes, spacings, strict=True):
        if x.shape[i] <= order:
            raise ShapeError(
                f"gradient: needs at least {order + 1} elements along an axis; "
                f"got {x.aval} for axis {i}."
            )
        out.append(compute_widely(lambda x, h, i=i: find_slope(x, i, h, order), x, spacing))
    return out[0] if len(out) == 1 and (axis is not None or x.ndim == 1) else out


def find_slope(x: Any, axis: int, spacing: Any, order: int) -> Any:
    """The slope along an axis; `spacing` is a distance, or the places of samples."""
    n = x.shape[axis]
    if spacing.shape not in ((), (n,)):
        raise ShapeError(
            f"gradient: places must be a vector as long as the axis, {n}; got {spacing.aval}."
        )
    regular = not spacing.ndim
    h = spacing
    h = broadcast_in_dim(h, (n - 1,), ()) if regular else ops.sub(*split_neighbors(h, 0))

    def at(*places: int) -> list:
        return [slice_in_dim(x, i, (i + 1) or n, 1, axis) for i in places]

    h = broadcast_in_dim(h, [n - 1 if i == axis else 1 for i in range(x.ndim)], (axis,))

    def step(i: int) -> Any:
        return slice_in_dim(h, i, (i + 1) or n - 1, 1, axis)

    if order == 1:
        ((a, b), (c, d)) = at(0, 1), at(-2, -1)
        first, last = (b - a) / step(0), (d - c) / step(-1)
    else:
        first = find_end_slope(*at(0, 1, 2), step(0), step(1))
        last = -find_end_slope(*at(-1, -2, -3), step(-1), step(-2))
    if n < 3:
        return concatenate([first, last], axis)
    before, after = slice_in_dim(h, 0, n - 2, 1, axis), slice_in_dim(h, 1, n - 1, 1, axis)
    low, mid, high = (slice_in_dim(x, i, n - 2 + i, 1, axis) for i in range(3))
    if regular:
        inner = (high - low) / (2 * before)
    else:  # weighted so that each side counts as the other one is long
        change = (high - mid) * (before / after) + (mid - low) * (after / before)
        inner = change / (before + after)
    return concatenate([first, inner, last], axis)


def find_end_slope(x0: Any, x1: Any, x2: Any, h0: Any, h1: Any) -> Any:
    """The slope at x0 of the parabola through three samples."""
    near, far = (x1 - x0) / h0, (x2 - x1) / h1
    return near - (far - near) * (h0 / (h0 + h1))


# --- integrals and phases -------------------------------------------------------------------


@operation(static=("axis",))
def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Integrate samples along an axis by the trapezoidal rule.

    Args:
      y: array of samples. Integers are converted to floats.
      x: the coordinates of the samples: a vector as long as the axis, or an array of the shape of
        `y`. None (default) takes samples at distance `dx`.
      dx: the distance of samples, 1 by default; not read where `x` is given.
      axis: the axis, the last one by default. A Python value, static under tracing.

    Returns:
      An array of the shape of `y` without the axis, of the common inexact dtype of the operands.

    >>> jnp.trapezoid(jnp.array([1.0, 2.0, 3.0]), dx=0.5)
    Array(2., dtype=float32)
    >>> jnp.trapezoid(jnp.array([1.0, 2.0, 3.0]), x=jnp.array([0.0, 1.0, 3.0]))
    Array(6.5, dtype=float32)
    """
    if x is None:
        y = drop_weak_type(as_inexact("trapezoid", y))
        dx = as_array_beside("trapezoid", dx, y)
        y, dx = promote_operands("trapezoid", y, dx, shaped=False)
        return compute_widely(lambda y, dx: add_trapezoids(y, None, dx, axis), y, dx)
    y, x = as_array(y, "trapezoid"), keep_apart(as_array(x, "trapezoid"))
    y, x = promote_operands("trapezoid", y, x, inexact=True, shaped=False)
    y, x = drop_weak_type(y), drop_weak_type(x)
    return compute_widely(lambda y, x: add_trapezoids(y, x, None, axis), y, x)


def add_trapezoids(y: Any, x: Any, dx: Any, axis: int) -> Any:
    """Integrate arrays of one dtype."""
    last = axis_of("trapezoid", axis, y.ndim)
    if x is None:
        y = moveaxis(y, last, -1)
        if not dx.ndim and y.shape[-1] not in (0, 1):  # all samples, less half of the ends: one sum
            total = reduce_sum(y, (y.ndim - 1,))
            half = ops.mul(ops.add(y[..., 0], y[..., -1]), literal_like(0.5, y))
            return where(isfinite(total), ops.sub(total, half), total) * dx
    else:
        dx = diff(x) if x.ndim == 1 else moveaxis(diff(x, axis=axis), axis, -1)
        y = moveaxis(y, last, -1)
        dx = broadcast_to_rank(dx, y.ndim) if x.ndim == 1 else dx
    areas = ops.add(*split_neighbors(y, y.ndim - 1)) * dx
    return ops.mul(reduce_sum(areas, (areas.ndim - 1,)), literal_like(0.5, areas))


@operation(static=("axis",))
def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi
) -> Array:
    """Remove jumps from angles along an axis, by adding multiples of the period.

    With the default `discont`, no step between neighbours is then larger than half the period.

    Args:
      p: array of real numbers, with one axis or more.
      discont: leave steps that are smaller than this unchanged; None (default) stands for half
        the period, which is also the least value that has an effect.
      axis: the axis, the last one by default. A Python value, static under tracing.
      period: the period, 2 pi by default.

    Returns:
      An array of the shape of `p` and the common dtype of `p` and `period`. Integers with an
      integer period stay integers.

    Raises:
      DtypeError: if `p` is complex.
      ShapeError: if the axis does not exist.

    >>> jnp.unwrap(jnp.array([350., 355., 2., 8.]), period=360)
    Array([350., 355., 362., 368.], dtype=float32)
    >>> jnp.unwrap(jnp.array([0, 1, 8, 9]), period=6)
    Array([0, 1, 2, 3], dtype=int32)
    """
    x = as_array(p, "unwrap")
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"unwrap: operands must be real; got {x.aval}.")
    axis = axis_of("unwrap", axis, x.ndim)
    found = dtypes.result_type(x, period)
    whole = dtypes.is_integer(found)
    # a step between short integers, and half of a period, may be beyond their dtype
    dtype = np.dtype(np.int32) if whole and dtypes.itemsize_bits(found) < 32 else found
    beside = ops.convert(x, dtype)
    x, period = beside, ops.convert(as_array_beside("unwrap", period, beside), dtype)
    half = period // 2 if whole else period / 2
    step = ops.sub(*split_neighbors(x, axis))
    wrapped = mod(step + half, period) - half
    ambiguous = (wrapped == -half) & (step > 0)
    if whole:  # an odd period has no step of exactly one half
        ambiguous = ambiguous & (mod(period, literal_like(2, period)) == 0)
    wrapped = where(ambiguous, half, wrapped)
    limit = half if discont is None else as_operand("unwrap", discont)
    correction = where(abs(step) < limit, literal_like(0, step), ops.sub(wrapped, step))
    first = slice_in_dim(x, 0, min(1, x.shape[axis]), 1, axis)
    rest = ops.add(slice_in_dim(x, min(1, x.shape[axis]), None, 1, axis), cumsum(correction, axis))
    return ops.convert(concatenate([first, rest], axis), found)


# --- tables ---------------------------------------------------------------------------------


def keep_together(x: Any, xp: Any) -> tuple[Any, Any]:
    """Return coordinates as floats from the first of `xp`, if both are long integers."""
    whole = dtypes.is_integer(x.dtype) and dtypes.is_integer(xp.dtype)
    if not whole or (x.aval.weak_type and xp.aval.weak_type):
        return x, xp
    x, xp = promote_operands("interp", x, xp, shaped=False)
    dtype = dtypes.default_float()
    if dtypes.itemsize_bits(x.dtype) <= int(dtypes.finfo(dtype).nmant) + 1:
        return x, xp
    first = xp[0]

    def measure(v: Any) -> Any:
        distance = ops.convert(subtract_integers(v, broadcast_in_dim(first, v.shape, ())), dtype)
        return where(v < first, -distance, distance)

    return measure(x), measure(xp)


@operation(static=("left", "right"), name="interp")
def interpolate_table(
    x: Any, xp: Any, fp: Any, left: Any, right: Any, ends: Any, period: Any
) -> Any:
    """`interp` of arrays; `ends` has the values on both sides, None for the nearest point's."""
    if period is not None:
        period = abs(ops.convert(as_array_beside("interp", period, x), x.dtype))
        x, xp = mod(x, period), mod(xp, period)
        xp, fp = sort_together((xp, fp), 0, num_keys=1)
        xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = concatenate([fp[-1:], fp, fp[:1]])
    last = xp.shape[0] - 1  # 0 where there is one point, and then i is 0 as well
    i = clip(search_by_halving(xp, x, "right"), 1, last)
    x0, f0 = (getitem_with(v, maximum(i - 1, 0), PLAIN) for v in (xp, fp))
    x1, f1 = (getitem_with(v, i, PLAIN) for v in (xp, fp))
    width = ops.sub(x1, x0)
    none = width == 0
    share = where(
        none, literal_like(0, width), ops.sub(x, x0) / where(none, literal_like(1, width), width)
    )
    rise = ops.sub(f1, f0)
    # at a point, and between equal infinities, nothing is added: 0 * inf and inf - inf are NaN
    level = ((share == 0) | (f0 == f1)) & ~ops.is_finite(abs(rise))
    y = f0 + share * where(level, literal_like(0, rise), rise)
    if period is not None:
        return y
    for side, value, outside, edge in (
        (left, ends[0], x < xp[0], fp[0]),
        (right, ends[1], x > xp[-1], fp[-1]),
    ):
        if side != "extrapolate":
            y = where(outside, edge if value is None else value, y)
    return y


@operation(known=3)
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """Interpolate linearly between points (xp, fp).

    The derivative in `x` is the slope of the line; at a point, the slope to its right. It is 0
    where the result is constant.

    Args:
      x: array of any shape: where to evaluate the function.
      xp: vector of n real numbers, n at least 1, in ascending order (this is not checked).
      fp: vector of n real or complex numbers: the values at `xp`.
      left: the value for x < xp[0]; None (default) for fp[0]; or "extrapolate" (not in NumPy), to
        prolong the first line.
      right: the value for x > xp[-1]; None (default) for fp[-1]; or "extrapolate".
      period: a period of `x` and `xp`, whose order then does not matter; `left` and `right` are
        ignored. None (default) for functions that are not periodic.

    Returns:
      An array of the shape of `x`, of a float dtype, or complex if `fp` is.

    Raises:
      ShapeError: if `xp` and `fp` are not vectors of the same length, at least 1.
      DtypeError: if `x` or `xp` is complex.
      ValueError: if `left` or `right` is a text other than "extrapolate".

    >>> xp, fp = jnp.array([1.0, 2.0, 3.0]), jnp.array([3.0, 2.0, 0.0])
    >>> jnp.interp(2.5, xp, fp)
    Array(1., dtype=float32)
    >>> jnp.interp(jnp.array([0.0, 4.0]), xp, fp, left=-1.0, right="extrapolate")
    Array([-1., -2.], dtype=float32)
    """
    for name, side in (("left", left), ("right", right)):
        if isinstance(side, str) and side != "extrapolate":
            raise ValueError(f"interp: {name} must be a value or 'extrapolate'; got {side!r}.")
    xp, fp = as_array(xp, "interp"), as_array(fp, "interp")
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        raise ShapeError(
            "interp: xp and fp must be vectors of the same length, 1 at least; "
            f"got {xp.aval}, {fp.aval}."
        )
    x, xp = keep_together(as_array_beside("interp", x, xp), xp)
    x, xp = promote_operands("interp", x, xp, inexact=True, shaped=False)
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"interp: x and xp must be real; got {x.aval}, {xp.aval}.")
    fp = as_inexact("interp", fp)
    types = [(dtypes.real_dtype(v.dtype), v.aval.weak_type) for v in (x, fp)]
    dtype, weak = dtypes.promote(tuple(types), "interp")
    x, xp = ops.convert(x, dtype, weak), ops.convert(xp, dtype, weak)
    fp = ops.convert(
        fp, dtypes.complex_dtype(dtype) if dtypes.is_complex(fp.dtype) else dtype, weak
    )
    names = [side if isinstance(side, str) else None for side in (left, right)]
    values = tuple(None if isinstance(side, str) else side for side in (left, right))
    wide = widen_dtype(dtype)  # as differences of two finite numbers may be infinite
    if wide == dtype:
        return interpolate_table(x, xp, fp, *names, values, period)
    x, xp, fp = (ops.convert(v, wide) for v in (x, xp, fp))
    return ops.convert(interpolate_table(x, xp, fp, *names, values, period), dtype)
