"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import dtypes
from weft.errors import ShapeError
from weft.numpy.fused import fused
from weft.numpy.promotion import axis_of
from weft.numpy.reductions import operand_of, summed_dtype, without_nan
from weft.primitives import cumulative, elementwise, layout, slicing

STATIC = ("axis", "dtype", "out")


def running(
    op: str, apply: Callable, a: Any, axis: int | None, dtype: Any, out: Any, fill: Any = None
) -> Any:
    """A running sum or product; `fill` takes the place of NaN."""
    x = operand_of(op, a, out)
    if axis is None:
        x, axis = layout.reshape(x, (x.size,)), 0
    axis = axis_of(op, axis, x.ndim)
    if dtype is not None:
        found = dtypes.check_user_dtype(dtype, op)
    else:
        found = dtypes.default_int() if dtypes.is_bool(x.dtype) else x.dtype
    if fill is not None:
        x = without_nan(x, fill)
    x = elementwise.convert(x, found)
    if dtypes.is_bool(found):  # counted, and then true where any was
        return elementwise.convert(apply(elementwise.convert(x, dtypes.default_int()), axis), found)
    return apply(x, axis)


@fused(static=STATIC)
def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """The sum of the elements so far along `axis`, or along the flattened array.

    >>> import weft.numpy as jnp
    >>> jnp.cumsum(jnp.arange(4))
    Array([0, 1, 3, 6], dtype=int32)
    """
    return running("cumsum", cumulative.cumsum, a, axis, dtype, out)


@fused(static=STATIC)
def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """The product of the elements so far along `axis`, or along the flattened array."""
    return running("cumprod", cumulative.cumprod, a, axis, dtype, out)


@fused(static=STATIC)
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """The sum of the elements so far that are not NaN."""
    return running("nancumsum", cumulative.cumsum, a, axis, dtype, out, 0)


@fused(static=STATIC)
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """The product of the elements so far that are not NaN."""
    return running("nancumprod", cumulative.cumprod, a, axis, dtype, out, 1)


@fused(static=("axis", "dtype", "include_initial"))
def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """As cumsum, by the array API: `axis` may be left out for one axis only; may start from 0.

    Small integers are added in the default integer dtype, as `sum` adds them.
    """
    x = operand_of("cumulative_sum", x, None)
    dtype = summed_dtype("cumulative_sum", x, dtype, promote_integers=True)
    return from_start("cumulative_sum", cumulative.cumsum, 0, x, axis, dtype, include_initial)


@fused(static=("axis", "dtype", "include_initial"))
def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """As cumprod, by the array API: `axis` may be left out for one axis only; may start from 1."""
    return from_start("cumulative_prod", cumulative.cumprod, 1, x, axis, dtype, include_initial)


def from_start(
    op: str, apply: Callable, start: int, x: Any, axis: int | None, dtype: Any, initial: bool
) -> Any:
    """cumulative_sum or cumulative_prod."""
    x = operand_of(op, x, None)
    if axis is None and x.ndim != 1:
        raise ShapeError(f"{op}: axis must be given unless x has one axis; got {x.aval}.")
    axis = axis_of(op, 0 if axis is None else axis, x.ndim)
    y = running(op, apply, x, axis, dtype, None)
    if not initial:
        return y
    first = layout.full([1 if i == axis else n for i, n in enumerate(y.shape)], start, y.dtype)
    return slicing.concatenate([first, y], axis)
