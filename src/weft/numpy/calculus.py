"""Differences and sums along an axis as approximations of calculus, and interpolation in a table.

Running sums are in reductions.py; `weft.grad` and others differentiate functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft import dtypes
from weft.errors import DtypeError, ShapeError
from weft.numpy.choice import clip, isfinite, literal_like, where
from weft.numpy.elementwise import mod
from weft.numpy.indexing import PLAIN, getitem_with
from weft.numpy.manipulation import concatenate, moveaxis
from weft.numpy.promotion import (
    as_array,
    as_inexact,
    as_operand,
    axes_of,
    axis_of,
    drop_weak_type,
    promote_operands,
)
from weft.numpy.reductions import compute_widely, widen_dtype
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


def split_neighbors(x: Any, axis: int) -> tuple[Any, Any]:
    """The elements along an axis but for the first, and those but for the last."""
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
    """The differences of neighbours along an axis, taken `n` times; of truth values, x != y.

    `prepend` and `append`, arrays or numbers, are joined to the axis first.

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
        for p in (as_array(p, "diff") for p in (prepend, x, append) if p is not None)
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
    """The differences of neighbours in the flattened array, between what is put around them.

    `to_begin` and `to_end` are converted to the dtype of the array.
    """
    x = as_array(ary, "ediff1d")
    if dtypes.is_bool(x.dtype):
        raise DtypeError(f"ediff1d: operands must be numbers; got {x.aval}. Hint: x.astype(int).")
    later, earlier = split_neighbors(reshape(x, (x.size,)), 0)
    around = [None if p is None else as_array(p, "ediff1d") for p in (to_begin, to_end)]
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
    """The slope of f along each axis, by central differences; one array for each of several axes.

    `varargs` is the distance between samples, or one for each axis, or for an axis the places of
    its samples. At the ends differences are one-sided, of order 1 or 2 as `edge_order` says.
    """
    places = [as_array(v) for v in varargs]
    x, *places = promote_operands("gradient", as_array(f), *places, inexact=True, shaped=False)
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
    """The integral of y along an axis by the trapezoidal rule; samples at `x`, or `dx` apart.

    >>> jnp.trapezoid(jnp.array([1.0, 2.0, 3.0]), dx=0.5)
    Array(2., dtype=float32)
    """
    if x is None:
        y, dx = drop_weak_type(as_inexact("trapezoid", y)), as_array(dx)
        y, dx = promote_operands("trapezoid", y, dx, shaped=False)
        return compute_widely(lambda y, dx: add_trapezoids(y, None, dx, axis), y, dx)
    y, x = promote_operands("trapezoid", as_array(y), as_array(x), inexact=True, shaped=False)
    y, x = drop_weak_type(y), drop_weak_type(x)
    return compute_widely(lambda y, x: add_trapezoids(y, x, None, axis), y, x)


def add_trapezoids(y: Any, x: Any, dx: Any, axis: int) -> Any:
    """Integrate arrays of one dtype."""
    if x is None:
        y = moveaxis(y, axis, -1)
        if not dx.ndim and y.shape[-1] not in (0, 1):  # all samples, less half of the ends: one sum
            total = reduce_sum(y, (y.ndim - 1,))
            half = ops.mul(ops.add(y[..., 0], y[..., -1]), literal_like(0.5, y))
            return where(isfinite(total), ops.sub(total, half), total) * dx
    else:
        dx = diff(x) if x.ndim == 1 else moveaxis(diff(x, axis=axis), axis, -1)
        y = moveaxis(y, axis, -1)
        dx = broadcast_to_rank(dx, y.ndim) if x.ndim == 1 else dx
    areas = ops.add(*split_neighbors(y, y.ndim - 1)) * dx
    return ops.mul(reduce_sum(areas, (areas.ndim - 1,)), literal_like(0.5, areas))


@operation(static=("axis",))
def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi
) -> Array:
    """Angles along an axis without jumps: multiples of the period take away steps over half of it.

    Steps of less than `discont` stay as they are. Integers with an integer period stay integers.
    """
    x = as_array(p, "unwrap")
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"unwrap: operands must be real; got {x.aval}.")
    axis = axis_of("unwrap", axis, x.ndim)
    dtype = dtypes.result_type(x, period)
    x, period = ops.convert(x, dtype), ops.convert(as_array(period), dtype)
    whole = dtypes.is_integer(dtype)
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
    return concatenate([first, rest], axis)


# --- tables ---------------------------------------------------------------------------------


@operation(static=("left", "right"), name="interp")
def interpolate_table(
    x: Any, xp: Any, fp: Any, left: Any, right: Any, ends: Any, period: Any
) -> Any:
    """`interp` of arrays; `ends` has the values on both sides, None for the nearest point's."""
    if period is not None:
        period = abs(ops.convert(as_array(period), x.dtype))
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
    """The values at x of the line through points (xp, fp), whose `xp` ascend.

    Outside of them the value is that of the nearest point, or `left` and `right`, which may also be
    "extrapolate". With a `period`, x and xp are angles of it, and xp need not ascend.

    >>> jnp.interp(2.5, jnp.array([1.0, 2.0, 3.0]), jnp.array([3.0, 2.0, 0.0]))
    Array(1., dtype=float32)
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
    x, xp = promote_operands("interp", as_array(x, "interp"), xp, inexact=True, shaped=False)
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
