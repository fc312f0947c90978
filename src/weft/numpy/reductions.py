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
    """Return a result, with the reduced axes as axes of size 1 if `keepdims`."""
    if not keepdims or not axes:
        return y
    dims = tuple([i for i in range(len(shape)) if i not in axes])
    sizes = [*shape]
    for i in axes:
        sizes[i] = 1
    return layout.broadcast_in_dim(y, sizes, dims)


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
    return np.dtype(np.float32) if dtypes.is_short_float(dtype) else dtype


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
    """Return True for NaN elements; None where the dtype has no NaN."""
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
    """Sum the elements of an array over axes.

    The sum of zero elements is 0. Floats of 16 bits and fewer are added in float32 and the sum is
    rounded to their dtype once. Integers wrap around on overflow. Under `jit`, `axis`, `dtype` and
    `keepdims` must be static: they decide the type of the result.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      dtype: the dtype of the result. By default, bool becomes the default integer dtype (int32, or
        int64 with enable_x64), integers follow `promote_integers`, and other dtypes stay.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.
      initial: a scalar that is added to the result. None, the default, stands for 0.
      where: a bool array that broadcasts against the operand. Elements where it is False are not
        added. None, the default, includes every element.
      promote_integers: True, the default, adds integers that are smaller than the default integer
        dtype in that dtype, as NumPy does. False adds integers in their own dtype.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1).

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice, or `initial` is not a scalar.
      DtypeError: if the operand is a list or not numeric, or `where` is not of dtype bool.

    >>> x = jnp.arange(6).reshape(2, 3)
    >>> jnp.sum(x)
    Array(15, dtype=int32)
    >>> jnp.sum(x, axis=1, keepdims=True)
    Array([[ 3],
           [12]], dtype=int32)
    >>> jnp.sum(x, where=x > 2, initial=100)
    Array(112, dtype=int32)
    >>> jnp.sum(jnp.array([100, 100], dtype=jnp.int8), promote_integers=False)
    Array(-56, dtype=int8)
    """,
)
prod = make_sum(
    "prod",
    reduction.reduce_prod,
    ops.mul,
    1,
    """Multiply the elements of an array over axes.

    The product of zero elements is 1. Floats of 16 bits and fewer are multiplied in float32 and the
    product is rounded to their dtype once. Integers wrap around on overflow. The derivative is
    exact where elements are 0: it is the product of the other elements, not a quotient. Under
    `jit`, `axis`, `dtype` and `keepdims` must be static: they decide the type of the result.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      dtype: the dtype of the result. By default, bool becomes the default integer dtype (int32, or
        int64 with enable_x64), integers follow `promote_integers`, and other dtypes stay.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.
      initial: a scalar that is multiplied with the result. None, the default, stands for 1.
      where: a bool array that broadcasts against the operand. Elements where it is False are not
        multiplied. None, the default, includes every element.
      promote_integers: True, the default, multiplies integers that are smaller than the default
        integer dtype in that dtype, as NumPy does. False multiplies integers in their own dtype.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1).

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice, or `initial` is not a scalar.
      DtypeError: if the operand is a list or not numeric, or `where` is not of dtype bool.

    >>> x = jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> jnp.prod(x, axis=0)
    Array([ 4., 10., 18.], dtype=float32)
    >>> weft.grad(jnp.prod)(jnp.array([0.0, 2.0, 3.0]))
    Array([6., 0., 0.], dtype=float32)
    """,
)


def sum_numbers(
    x: Any, dtype: np.dtype, axes: Any, keepdims: bool, mask: Any, counted: bool = True
) -> Any:
    """Return the sum in `dtype` of elements that are not NaN and, if `counted`, their number.

    None for dtypes without NaN, for a mask, and if `dtype` is not a dtype for sums of floats.
    """
    is_wide = dtypes.is_float(dtype) and widen_dtype(dtype) == dtype
    if not axes or mask is not None or not dtypes.is_float(x.dtype) or not is_wide:
        return None
    x = ops.convert(x, dtype)
    find = lambda counts: reduction.reduce_nansum_p.bind(x, axes=axes, counts=counts)
    wanted = (False, True) if counted else (False,)
    return [keep_axes(find(counts), x.shape, axes, keepdims) for counts in wanted]


def make_nan_sum(name: str, reduce: Callable, fill: int, doc: str) -> Callable:
    """Make a sum or a product, by `reduce`, of elements that are not NaN."""

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


nansum = make_nan_sum(
    "nansum",
    sum,
    0,
    """Sum the elements of an array that are not NaN, over axes.

    NaN counts as 0, so that the sum of NaN only is 0. The derivative at a NaN is 0. Under `jit`,
    `axis`, `dtype` and `keepdims` must be static: they decide the type of the result.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      dtype: the dtype of the result. None, the default, chooses it as `sum` does.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.
      initial: a scalar that is added to the result. None, the default, stands for 0.
      where: a bool array that broadcasts against the operand. Elements where it is False are not
        added. None, the default, includes every element.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1).

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice, or `initial` is not a scalar.
      DtypeError: if the operand is a list or not numeric, or `where` is not of dtype bool.

    >>> x = jnp.array([[1.0, jnp.nan], [3.0, 4.0]])
    >>> jnp.nansum(x, axis=0)
    Array([4., 4.], dtype=float32)
    >>> weft.grad(jnp.nansum)(jnp.array([jnp.nan, 1.0]))
    Array([0., 1.], dtype=float32)
    """,
)
nanprod = make_nan_sum(
    "nanprod",
    prod,
    1,
    """Multiply the elements of an array that are not NaN, over axes.

    NaN counts as 1, so that the product of NaN only is 1. The derivative at a NaN is 0. Under
    `jit`, `axis`, `dtype` and `keepdims` must be static: they decide the type of the result.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      dtype: the dtype of the result. None, the default, chooses it as `prod` does.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.
      initial: a scalar that is multiplied with the result. None, the default, stands for 1.
      where: a bool array that broadcasts against the operand. Elements where it is False are not
        multiplied. None, the default, includes every element.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1).

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice, or `initial` is not a scalar.
      DtypeError: if the operand is a list or not numeric, or `where` is not of dtype bool.

    >>> x = jnp.array([[1.0, jnp.nan], [3.0, 4.0]])
    >>> jnp.nanprod(x, axis=0)
    Array([3., 4.], dtype=float32)
    """,
)


@operation(static=STATIC)
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """Count the elements of an array that are not zero, over axes.

    NaN counts as not zero. Under `jit`, `axis` and `keepdims` must be static: they
    decide the type of the result.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1),
      of the default integer dtype (int32, or int64 with enable_x64).

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.count_nonzero(jnp.array([[0, 1, 2], [0, 0, 3]]), axis=1)
    Array([2, 1], dtype=int32)
    """
    return sum(
        is_nonzero(as_array(a, "count_nonzero"), "count_nonzero"),
        axis,
        dtypes.default_int(),
        keepdims=keepdims,
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
    """Compute `max` or `min`: `bound(dtype)` is the number that changes no result."""

    def apply(op: str, x: Any, axis: Axis, keepdims: bool, initial: Any, mask: Any) -> Any:
        aval = x.aval
        axes = axes_of(op, axis, aval.ndim)
        if initial is None:
            if mask is not None:
                raise ValueError(
                    f"{op}: with where=, initial must be given, for {op} has no identity; got "
                    f"None. Hint: {op}(x, where=mask, initial=-jnp.inf)."
                )
            if 0 in [aval.shape[i] for i in axes]:
                raise ShapeError(
                    f"{op}: needs at least one element to reduce; got {aval} over axes {axes}. "
                    f"Hint: {op}(x, initial=0)."
                )
        x = apply_mask(op, ops.convert(x, aval.dtype), mask, bound(aval.dtype))
        y = keep_axes(reduce(x, axes), aval.shape, axes, keepdims)
        return y if initial is None else combine(check_initial(op, initial, aval.dtype), y)

    return apply


def reduce_nan_extremum(prim: Any, reduce: Callable) -> Callable:
    """Compute `nanmax` or `nanmin` by the primitive, or by `max` or `min`."""

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
    """Return the largest element of an array over axes.

    The result is NaN where an element is NaN; `nanmax` skips NaN. Complex numbers are compared by
    their real parts, then by their imaginary parts. Where several elements are equal to the result,
    the derivative is divided equally among them. Under `jit`, `axis` and `keepdims` must be static:
    they decide the type of the result.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.
      initial: a scalar that takes part in the comparison; it is also the result for zero elements.
        None, the default, allows no empty axes and no `where`.
      where: a bool array that broadcasts against the operand. Elements where it is False are left
        out. It needs `initial`. None, the default, includes every element.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1),
      of the dtype of the operand.

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice, if `initial` is not a scalar, or
        if there is no element to reduce and no `initial`.
      DtypeError: if the operand is a list or not numeric, or `where` is not of dtype bool.
      ValueError: if `where` is given without `initial`.

    >>> x = jnp.array([[1.0, 5.0, 2.0], [4.0, 0.0, 3.0]])
    >>> jnp.max(x, axis=1)
    Array([5., 4.], dtype=float32)
    >>> jnp.max(x, axis=1, where=x < 5, initial=-jnp.inf)
    Array([2., 4.], dtype=float32)
    >>> weft.grad(jnp.max)(jnp.array([2.0, 2.0, 1.0]))
    Array([0.5, 0.5, 0. ], dtype=float32)
    """,
    reduce_extremum(reduction.reduce_max, ops.max, reduction.lowest_value),
)
min = make_extremum(
    "min",
    """Return the smallest element of an array over axes.

    The result is NaN where an element is NaN; `nanmin` skips NaN. Complex numbers are compared by
    their real parts, then by their imaginary parts. Where several elements are equal to the result,
    the derivative is divided equally among them. Under `jit`, `axis` and `keepdims` must be static:
    they decide the type of the result.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.
      initial: a scalar that takes part in the comparison; it is also the result for zero elements.
        None, the default, allows no empty axes and no `where`.
      where: a bool array that broadcasts against the operand. Elements where it is False are left
        out. It needs `initial`. None, the default, includes every element.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1),
      of the dtype of the operand.

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice, if `initial` is not a scalar, or
        if there is no element to reduce and no `initial`.
      DtypeError: if the operand is a list or not numeric, or `where` is not of dtype bool.
      ValueError: if `where` is given without `initial`.

    >>> x = jnp.array([[1.0, 5.0, 2.0], [4.0, 0.0, 3.0]])
    >>> jnp.min(x, axis=1)
    Array([1., 0.], dtype=float32)
    >>> jnp.min(x, axis=1, where=x > 0, initial=jnp.inf)
    Array([1., 3.], dtype=float32)
    >>> weft.grad(jnp.min)(jnp.array([1.0, 1.0, 2.0]))
    Array([0.5, 0.5, 0. ], dtype=float32)
    """,
    reduce_extremum(reduction.reduce_min, ops.min, reduction.highest_value),
)
amax = alias(max, "amax")
amin = alias(min, "amin")
minmax = make_extremum(
    "minmax",
    """Return the smallest and the largest element of an array over axes.

    It is for the range of data, for example to scale it. NumPy has no such function. Both results
    are NaN where an element is NaN. Where several elements are equal to the result, the derivative
    is divided equally among them. Under `jit`, `axis` and `keepdims` must be static: they decide
    the type of the result.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.
      initial: a scalar that takes part in the comparison; it is also the result for zero elements.
        None, the default, allows no empty axes and no `where`.
      where: a bool array that broadcasts against the operand. Elements where it is False are left
        out. It needs `initial`. None, the default, includes every element.

    Returns:
      a tuple of two arrays: the smallest elements and the largest elements. Each has the shape of
      the operand without the reduced axes (with `keepdims`, of size 1) and the dtype of the
      operand.

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice, if `initial` is not a scalar, or
        if there is no element to reduce and no `initial`.
      DtypeError: if the operand is a list or not numeric, or `where` is not of dtype bool.
      ValueError: if `where` is given without `initial`.

    >>> x = jnp.array([[1.0, 5.0, 2.0], [4.0, 0.0, 3.0]])
    >>> jnp.minmax(x, axis=1)
    (Array([1., 0.], dtype=float32), Array([5., 4.], dtype=float32))
    >>> low, high = jnp.minmax(x)
    >>> (x - low) / (high - low)
    Array([[0.2, 1. , 0.4],
           [0.8, 0. , 0.6]], dtype=float32)
    """,
    lambda op, x, axis, *rest: (min(x, axis, None, *rest), max(x, axis, None, *rest)),
)
nanmax = make_extremum(
    "nanmax",
    """Return the largest element of an array that is not NaN, over axes.

    The result is NaN where every element is NaN and no `initial` is given. NumPy also returns NaN
    there, with a warning. The derivative at a NaN is 0. Where several elements are equal to the
    result, the derivative is divided equally among them. Under `jit`, `axis` and `keepdims` must be
    static: they decide the type of the result.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.
      initial: a scalar that takes part in the comparison; it is also the result for zero elements.
        None, the default, allows no empty axes and no `where`.
      where: a bool array that broadcasts against the operand. Elements where it is False are left
        out. It needs `initial`. None, the default, includes every element.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1),
      of the dtype of the operand.

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice, if `initial` is not a scalar, or
        if there is no element to reduce and no `initial`.
      DtypeError: if the operand is a list or not numeric, or `where` is not of dtype bool.
      ValueError: if `where` is given without `initial`.

    >>> x = jnp.array([[1.0, jnp.nan], [jnp.nan, jnp.nan]])
    >>> jnp.nanmax(x, axis=1)
    Array([ 1., nan], dtype=float32)
    """,
    reduce_nan_extremum(reduction.reduce_max_p, max),
)
nanmin = make_extremum(
    "nanmin",
    """Return the smallest element of an array that is not NaN, over axes.

    The result is NaN where every element is NaN and no `initial` is given. NumPy also returns NaN
    there, with a warning. The derivative at a NaN is 0. Where several elements are equal to the
    result, the derivative is divided equally among them. Under `jit`, `axis` and `keepdims` must be
    static: they decide the type of the result.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.
      initial: a scalar that takes part in the comparison; it is also the result for zero elements.
        None, the default, allows no empty axes and no `where`.
      where: a bool array that broadcasts against the operand. Elements where it is False are left
        out. It needs `initial`. None, the default, includes every element.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1),
      of the dtype of the operand.

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice, if `initial` is not a scalar, or
        if there is no element to reduce and no `initial`.
      DtypeError: if the operand is a list or not numeric, or `where` is not of dtype bool.
      ValueError: if `where` is given without `initial`.

    >>> x = jnp.array([[1.0, jnp.nan], [jnp.nan, jnp.nan]])
    >>> jnp.nanmin(x, axis=1)
    Array([ 1., nan], dtype=float32)
    """,
    reduce_nan_extremum(reduction.reduce_min_p, min),
)


@operation(static=STATIC)
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the difference between the largest and the smallest element, over axes.

    The name is short for "peak to peak". Integers keep their dtype, so that the difference may wrap
    around, as in NumPy. The result is NaN where an element is NaN. Where several elements are
    largest or smallest, the derivative is divided equally among them. Under `jit`, `axis` and
    `keepdims` must be static: they decide the type of the result.

    Args:
      a: an array or scalar of any shape and number dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1),
      of the dtype of the operand.

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice, or there is no element to
        reduce.
      DtypeError: if the operand is a list, not numeric or of dtype bool.

    >>> x = jnp.array([[1.0, 5.0, 2.0], [4.0, 0.0, 3.0]])
    >>> jnp.ptp(x, axis=0)
    Array([3., 5., 1.], dtype=float32)
    """
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
        x = ops.convert(is_nonzero(take_operand(name, a, out), name), np.dtype(bool))
        shape = x.shape
        axes = axes_of(name, axis, len(shape))
        return keep_axes(reduce(apply_mask(name, x, where, identity), axes), shape, axes, keepdims)

    return publish(fun, name, doc)


any = make_truth(
    "any",
    reduction.reduce_or,
    False,
    """Return True where at least one element is not zero, over axes.

    NaN is not zero, so that it counts as True. The result for zero elements is False. Under `jit`,
    `axis` and `keepdims` must be static: they decide the type of the result.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.
      where: a bool array that broadcasts against the operand. Elements where it is False are left
        out. None, the default, includes every element.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1),
      of dtype bool.

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice.
      DtypeError: if the operand is a list or not numeric, or `where` is not of dtype bool.

    >>> x = jnp.array([[1.0, 5.0, 2.0], [4.0, 0.0, 3.0]])
    >>> jnp.any(x > 4, axis=1)
    Array([ True, False], dtype=bool)
    """,
)
all = make_truth(
    "all",
    reduction.reduce_and,
    True,
    """Return True where all elements are not zero, over axes.

    NaN is not zero, so that it counts as True. The result for zero elements is True. Under `jit`,
    `axis` and `keepdims` must be static: they decide the type of the result.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.
      where: a bool array that broadcasts against the operand. Elements where it is False are left
        out. None, the default, includes every element.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1),
      of dtype bool.

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice.
      DtypeError: if the operand is a list or not numeric, or `where` is not of dtype bool.

    >>> x = jnp.array([[1.0, 5.0, 2.0], [4.0, 0.0, 3.0]])
    >>> jnp.all(x, axis=1)
    Array([ True, False], dtype=bool)
    """,
)


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
    """Return the index of the largest element along an axis.

    The result is the first index if several elements are equal. A NaN counts as the largest
    element, as in NumPy. Under `jit`, `axis` and `keepdims` must be static. Complex operands are
    not accepted.

    Args:
      a: an array or scalar of any shape and real or bool dtype. It needs at least one element along
        the axis.
      axis: the axis to search, an int; a negative axis counts from the end. None, the default,
        searches the flattened array.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps each axis that was searched as an axis of size 1. None, the default, and
        False drop them.

    Returns:
      an array of indices, with the shape of the operand without `axis` (a scalar if `axis` is
      None), of the default integer dtype (int32, or int64 with enable_x64).

    Raises:
      ShapeError: if `axis` is out of range, or there is no element along it.
      TypeError: if `axis` is not an int. A sequence of axes is not accepted.
      DtypeError: if the operand is complex, a list or not numeric.

    >>> x = jnp.array([[1.0, 5.0, 2.0], [4.0, 0.0, 3.0]])
    >>> jnp.argmax(x, axis=1)
    Array([1, 0], dtype=int32)
    >>> jnp.argmax(x)
    Array(1, dtype=int32)
    >>> jnp.unravel_index(jnp.argmax(x), x.shape)
    (Array(0, dtype=int32), Array(1, dtype=int32))
    """,
)
argmin = make_position(
    "argmin",
    reduction.argmin,
    None,
    """Return the index of the smallest element along an axis.

    The result is the first index if several elements are equal. A NaN counts as the smallest
    element, as in NumPy. Under `jit`, `axis` and `keepdims` must be static. Complex operands are
    not accepted.

    Args:
      a: an array or scalar of any shape and real or bool dtype. It needs at least one element along
        the axis.
      axis: the axis to search, an int; a negative axis counts from the end. None, the default,
        searches the flattened array.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps each axis that was searched as an axis of size 1. None, the default, and
        False drop them.

    Returns:
      an array of indices, with the shape of the operand without `axis` (a scalar if `axis` is
      None), of the default integer dtype (int32, or int64 with enable_x64).

    Raises:
      ShapeError: if `axis` is out of range, or there is no element along it.
      TypeError: if `axis` is not an int. A sequence of axes is not accepted.
      DtypeError: if the operand is complex, a list or not numeric.

    >>> x = jnp.array([[1.0, 5.0, 2.0], [4.0, 0.0, 3.0]])
    >>> jnp.argmin(x, axis=1)
    Array([0, 1], dtype=int32)
    >>> jnp.argmin(x)
    Array(4, dtype=int32)
    >>> jnp.unravel_index(jnp.argmin(x), x.shape)
    (Array(1, dtype=int32), Array(1, dtype=int32))
    """,
)
nanargmax = make_position(
    "nanargmax",
    reduction.argmax,
    reduction.lowest_value,
    """Return the index of the largest element along an axis, NaN left out.

    The result is the first index if several elements are equal. Where every element is NaN, the
    index is -1; NumPy raises an error there. Under `jit`, `axis` and `keepdims` must be static.
    Complex operands are not accepted.

    Args:
      a: an array or scalar of any shape and real or bool dtype. It needs at least one element along
        the axis.
      axis: the axis to search, an int; a negative axis counts from the end. None, the default,
        searches the flattened array.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps each axis that was searched as an axis of size 1. None, the default, and
        False drop them.

    Returns:
      an array of indices, with the shape of the operand without `axis` (a scalar if `axis` is
      None), of the default integer dtype (int32, or int64 with enable_x64).

    Raises:
      ShapeError: if `axis` is out of range, or there is no element along it.
      TypeError: if `axis` is not an int. A sequence of axes is not accepted.
      DtypeError: if the operand is complex, a list or not numeric.

    >>> x = jnp.array([[1.0, jnp.nan], [jnp.nan, jnp.nan]])
    >>> jnp.nanargmax(x, axis=1)
    Array([ 0, -1], dtype=int32)
    """,
)
nanargmin = make_position(
    "nanargmin",
    reduction.argmin,
    reduction.highest_value,
    """Return the index of the smallest element along an axis, NaN left out.

    The result is the first index if several elements are equal. Where every element is NaN, the
    index is -1; NumPy raises an error there. Under `jit`, `axis` and `keepdims` must be static.
    Complex operands are not accepted.

    Args:
      a: an array or scalar of any shape and real or bool dtype. It needs at least one element along
        the axis.
      axis: the axis to search, an int; a negative axis counts from the end. None, the default,
        searches the flattened array.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps each axis that was searched as an axis of size 1. None, the default, and
        False drop them.

    Returns:
      an array of indices, with the shape of the operand without `axis` (a scalar if `axis` is
      None), of the default integer dtype (int32, or int64 with enable_x64).

    Raises:
      ShapeError: if `axis` is out of range, or there is no element along it.
      TypeError: if `axis` is not an int. A sequence of axes is not accepted.
      DtypeError: if the operand is complex, a list or not numeric.

    >>> x = jnp.array([[1.0, jnp.nan], [jnp.nan, jnp.nan]])
    >>> jnp.nanargmin(x, axis=1)
    Array([ 0, -1], dtype=int32)
    """,
)


# --- means and variances --------------------------------------------------------------------


def choose_mean_dtypes(op: str, x: Any, dtype: Any) -> tuple[np.dtype, np.dtype]:
    """Return the dtype in which a mean is computed, and the dtype of the result."""
    if dtype is None:
        result = dtypes.canonicalize(dtypes.inexact_dtype(x.dtype, op))
        return widen_dtype(result), result
    result = dtypes.check_user_dtype(dtype, op)
    return widen_dtype(dtypes.canonicalize(dtypes.inexact_dtype(result, op))), result


def compute_mean(
    op: str, x: Any, axes: Any, keepdims: bool, mask: Any, ddof: float = 0, counts: Any = None
) -> Any:
    """Return the sum of x over `axes`, divided by the number of summed elements, less `ddof`.

    The elements are counted, unless `counts` is the number that `mask` selects.
    """
    shape, dtype = x.shape, x.dtype
    if type(ddof) is not int and not isinstance(ddof, int | float | np.number):
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
    """Return the arithmetic mean of an array, over axes.

    The sum is divided by the number of elements. Floats of 16 bits and fewer are added in float32.
    The mean of zero elements is NaN. Under `jit`, `axis`, `dtype` and `keepdims` must be static:
    they decide the type of the result.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      dtype: the dtype of the result. By default, integers and bool become the default float dtype
        (float32, or float64 with enable_x64), and other dtypes stay.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.
      where: a bool array that broadcasts against the operand. Elements where it is False are left
        out of the sum and of the number. None, the default, includes every element.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1).

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice.
      DtypeError: if the operand is a list or not numeric, or `where` is not of dtype bool.

    >>> x = jnp.array([[1.0, 5.0, 2.0], [4.0, 0.0, 3.0]])
    >>> jnp.mean(x, axis=0)
    Array([2.5, 2.5, 2.5], dtype=float32)
    >>> jnp.mean(x, axis=1, where=x > 1)
    Array([3.5, 3.5], dtype=float32)
    >>> jnp.mean(jnp.array([1, 2]))
    Array(1.5, dtype=float32)
    """
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
    """Return the variance, or for std and nanstd its root; without NaN if it `skips`."""
    axes = axes_of(op, axis, x.ndim)
    computed, result = choose_mean_dtypes(op, x, dtype)
    if center is None:
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

    A variance and differences are the same, and numbers that are near each other stay apart.
    """
    if not axes or not dtypes.is_integer(x.dtype) or not dtypes.is_inexact(computed):
        return x
    if dtypes.itemsize_bits(x.dtype) <= int(dtypes.finfo(dtypes.real_dtype(computed)).nmant) + 1:
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
    """Return the variance of an array, over axes.

    The variance is the sum of `abs(a - mean) ** 2`, divided by n - ddof. Here n is the number of
    elements. `ddof=0` describes the data; `ddof=1` estimates the variance of the population from a
    sample. The result is NaN where n - ddof is not positive. Floats of 16 bits and fewer are
    computed in float32. The mean is rounded, which adds an error of `(eps * mean) ** 2`: for data
    that are far from 0, such as 1e6 with a deviation of 1, compute `var(a - a[0])`. Under `jit`,
    `axis`, `dtype`, `ddof` and `keepdims` must be static.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      dtype: the dtype of the computation; the result has the real dtype of it. By default, integers
        and bool become the default float dtype (float32, or float64 with enable_x64), and other
        dtypes stay.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      ddof: the number that is subtracted from n, a Python number; "delta degrees of freedom". The
        default is 0.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.
      where: a bool array that broadcasts against the operand. Elements where it is False are left
        out. None, the default, includes every element.
      mean: the mean if it is known, an array that broadcasts against the operand, as `mean`
        computes it with `keepdims=True`. None, the default, computes it.
      correction: another name of `ddof`, that of the array API. Only one of them may be given.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1),
      of real dtype; complex operands have real results.

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice.
      DtypeError: if the operand is a list or not numeric, or `where` is not of dtype bool.
      TypeError: if `ddof` is traced or not a number.
      ValueError: if both `ddof` and `correction` are given.

    >>> x = jnp.array([[1.0, 5.0, 2.0], [4.0, 0.0, 3.0]])
    >>> jnp.var(x)
    Array(2.9166667, dtype=float32)
    >>> jnp.var(x, ddof=1)
    Array(3.5, dtype=float32)
    >>> jnp.var(x, axis=1, mean=jnp.mean(x, axis=1, keepdims=True))
    Array([2.888889, 2.888889], dtype=float32)
    """,
)
std = make_variance(
    "std",
    """Return the standard deviation of an array, over axes.

    The standard deviation is `sqrt(sum(abs(a - mean) ** 2) / (n - ddof))`. Here n is the number of
    elements. `ddof=0` describes the data; `ddof=1` estimates the standard deviation of the
    population from a sample. The result is NaN where n - ddof is not positive. Floats of 16 bits
    and fewer are computed in float32. The derivative is NaN where all elements are equal, because
    the square root has none at 0. Under `jit`, `axis`, `dtype`, `ddof` and `keepdims` must be
    static.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      dtype: the dtype of the computation; the result has the real dtype of it. By default, integers
        and bool become the default float dtype (float32, or float64 with enable_x64), and other
        dtypes stay.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      ddof: the number that is subtracted from n, a Python number; "delta degrees of freedom". The
        default is 0.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.
      where: a bool array that broadcasts against the operand. Elements where it is False are left
        out. None, the default, includes every element.
      mean: the mean if it is known, an array that broadcasts against the operand, as `mean`
        computes it with `keepdims=True`. None, the default, computes it.
      correction: another name of `ddof`, that of the array API. Only one of them may be given.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1),
      of real dtype; complex operands have real results.

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice.
      DtypeError: if the operand is a list or not numeric, or `where` is not of dtype bool.
      TypeError: if `ddof` is traced or not a number.
      ValueError: if both `ddof` and `correction` are given.

    >>> jnp.std(jnp.array([1, 2, 3, 4]))
    Array(1.118034, dtype=float32)
    >>> jnp.std(jnp.array([1, 2, 3, 4]), ddof=1)
    Array(1.2909945, dtype=float32)
    >>> weft.grad(jnp.std)(jnp.ones(3))
    Array([nan, nan, nan], dtype=float32)
    """,
)


def combine_masks(x: Any, mask: Any) -> Any:
    """Return True for elements that count: those that are not NaN, and that `mask` selects."""
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
    """Return the arithmetic mean of the elements that are not NaN, over axes.

    The sum is divided by the number of elements that are not NaN. Floats of 16 bits and fewer are
    added in float32. The mean of zero elements is NaN. The derivative at a NaN is 0. Under `jit`,
    `axis`, `dtype` and `keepdims` must be static: they decide the type of the result.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      dtype: the dtype of the result. By default, integers and bool become the default float dtype
        (float32, or float64 with enable_x64), and other dtypes stay.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.
      where: a bool array that broadcasts against the operand. Elements where it is False are left
        out of the sum and of the number. None, the default, includes every element.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1).

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice.
      DtypeError: if the operand is a list or not numeric, or `where` is not of dtype bool.

    >>> x = jnp.array([[1.0, jnp.nan], [3.0, 4.0], [jnp.nan, jnp.nan]])
    >>> jnp.nanmean(x, axis=1)
    Array([1. , 3.5, nan], dtype=float32)
    """
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
    "nanvar",
    """Return the variance of the elements that are not NaN, over axes.

    The variance is the sum of `abs(a - mean) ** 2`, divided by n - ddof. Here n is the number of
    elements that are not NaN. `ddof=0` describes the data; `ddof=1` estimates the variance of the
    population from a sample. The result is NaN where n - ddof is not positive. Floats of 16 bits
    and fewer are computed in float32. The derivative at a NaN is 0. Under `jit`, `axis`, `dtype`,
    `ddof` and `keepdims` must be static.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      dtype: the dtype of the computation; the result has the real dtype of it. By default, integers
        and bool become the default float dtype (float32, or float64 with enable_x64), and other
        dtypes stay.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      ddof: the number that is subtracted from n, a Python number; "delta degrees of freedom". The
        default is 0.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.
      where: a bool array that broadcasts against the operand. Elements where it is False are left
        out. None, the default, includes every element.
      mean: the mean if it is known, an array that broadcasts against the operand, as `mean`
        computes it with `keepdims=True`. None, the default, computes it.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1),
      of real dtype; complex operands have real results.

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice.
      DtypeError: if the operand is a list or not numeric, or `where` is not of dtype bool.
      TypeError: if `ddof` is traced or not a number.

    >>> x = jnp.array([[1.0, jnp.nan], [3.0, 4.0]])
    >>> jnp.nanvar(x, axis=1)
    Array([0.  , 0.25], dtype=float32)
    >>> jnp.nanvar(x, axis=1, ddof=1)
    Array([nan, 0.5], dtype=float32)
    """,
)
nanstd = make_nan_variance(
    "nanstd",
    """Return the standard deviation of the elements that are not NaN, over axes.

    The standard deviation is `sqrt(sum(abs(a - mean) ** 2) / (n - ddof))`. Here n is the number of
    elements that are not NaN. `ddof=0` describes the data; `ddof=1` estimates the standard
    deviation of the population from a sample. The result is NaN where n - ddof is not positive.
    Floats of 16 bits and fewer are computed in float32. The derivative is NaN where all elements
    are equal, because the square root has none at 0. Under `jit`, `axis`, `dtype`, `ddof` and
    `keepdims` must be static.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      dtype: the dtype of the computation; the result has the real dtype of it. By default, integers
        and bool become the default float dtype (float32, or float64 with enable_x64), and other
        dtypes stay.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      ddof: the number that is subtracted from n, a Python number; "delta degrees of freedom". The
        default is 0.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.
      where: a bool array that broadcasts against the operand. Elements where it is False are left
        out. None, the default, includes every element.
      mean: the mean if it is known, an array that broadcasts against the operand, as `mean`
        computes it with `keepdims=True`. None, the default, computes it.

    Returns:
      an array with the shape of the operand without the reduced axes (with `keepdims`, of size 1),
      of real dtype; complex operands have real results.

    Raises:
      ShapeError: if `axis` is out of range or names an axis twice.
      DtypeError: if the operand is a list or not numeric, or `where` is not of dtype bool.
      TypeError: if `ddof` is traced or not a number.

    >>> jnp.nanstd(jnp.array([[1.0, jnp.nan], [3.0, 4.0]]), axis=1)
    Array([0. , 0.5], dtype=float32)
    """,
)


def broadcast_weights(op: str, x: Any, weights: Any, axes: tuple[int, ...], axis: Axis) -> Any:
    """Return weights in the shape of x, given that shape or the shape of the reduced axes."""
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
    """Return the weighted mean of an array over axes.

    The result is `sum(a * weights) / sum(weights)`. Without weights it is `mean`. Where the weights
    add up to 0, the result is NaN or infinite; NumPy raises ZeroDivisionError there. Under `jit`,
    `axis`, `returned` and `keepdims` must be static.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: an int, or a sequence of distinct ints: the axes to reduce. Negative axes count from the
        end. None, the default, reduces all axes; `()` reduces none.
      weights: an array of number dtype: with the shape of `a`, or, if `axis` is given, with the
        sizes of the reduced axes in the order of `axis`. None, the default, weighs all elements
        equally.
      returned: True returns the sum of the weights as well. The default is False.
      keepdims: True keeps the reduced axes as axes of size 1, so that the result broadcasts against
        the operand. False, the default, drops them.

    Returns:
      an array of float or complex dtype, with the shape of the operand without the reduced axes.
      With `returned`, a tuple of it and the sum of the weights, in the same shape and dtype.

    Raises:
      ShapeError: if `axis` is out of range, or the shape of `weights` does not fit.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.array([[1.0, 5.0, 2.0], [4.0, 0.0, 3.0]])
    >>> weights = jnp.array([1, 0, 3])
    >>> jnp.average(x, axis=1, weights=weights)
    Array([1.75, 3.25], dtype=float32)
    >>> jnp.average(x, axis=1, weights=weights, returned=True)
    (Array([1.75, 3.25], dtype=float32), Array([4., 4.], dtype=float32))
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
    """Return the running sum of the elements along an axis.

    Element i of the result is the sum of the elements 0 to i of the operand. Integers stay in their
    dtype and wrap around on overflow; NumPy computes small integers in its default integer dtype.
    Bool becomes the default integer dtype. `cumulative_sum` is the form of the array API. Under
    `jit`, `axis` and `dtype` must be static.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: the axis, an int; a negative axis counts from the end. None, the default, flattens the
        array first.
      dtype: the dtype of the computation and of the result. None, the default, is the dtype of the
        operand, and the default integer dtype (int32, or int64 with enable_x64) for bool.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.

    Returns:
      an array with the shape of the operand, or with one axis if `axis` is None.

    Raises:
      ShapeError: if `axis` is out of range.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.cumsum(jnp.arange(4))
    Array([0, 1, 3, 6], dtype=int32)
    >>> jnp.cumsum(jnp.ones((2, 3)), axis=1)
    Array([[1., 2., 3.],
           [1., 2., 3.]], dtype=float32)
    """,
)
cumprod = make_running(
    "cumprod",
    cumulative.cumprod,
    None,
    """Return the running product of the elements along an axis.

    Element i of the result is the product of the elements 0 to i of the operand. Integers stay in
    their dtype and wrap around on overflow; NumPy computes small integers in its default integer
    dtype. Bool becomes the default integer dtype. `cumulative_prod` is the form of the array API.
    Under `jit`, `axis` and `dtype` must be static.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: the axis, an int; a negative axis counts from the end. None, the default, flattens the
        array first.
      dtype: the dtype of the computation and of the result. None, the default, is the dtype of the
        operand, and the default integer dtype (int32, or int64 with enable_x64) for bool.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.

    Returns:
      an array with the shape of the operand, or with one axis if `axis` is None.

    Raises:
      ShapeError: if `axis` is out of range.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.cumprod(jnp.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """,
)
nancumsum = make_running(
    "nancumsum",
    cumulative.cumsum,
    0,
    """Return the running sum of the elements along an axis.

    Element i of the result is the sum of the elements 0 to i of the operand, where NaN counts as 0.
    Integers stay in their dtype and wrap around on overflow; NumPy computes small integers in its
    default integer dtype. Bool becomes the default integer dtype. `cumulative_sum` is the form of
    the array API. Under `jit`, `axis` and `dtype` must be static.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: the axis, an int; a negative axis counts from the end. None, the default, flattens the
        array first.
      dtype: the dtype of the computation and of the result. None, the default, is the dtype of the
        operand, and the default integer dtype (int32, or int64 with enable_x64) for bool.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.

    Returns:
      an array with the shape of the operand, or with one axis if `axis` is None.

    Raises:
      ShapeError: if `axis` is out of range.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 3.0]))
    Array([1., 1., 4.], dtype=float32)
    """,
)
nancumprod = make_running(
    "nancumprod",
    cumulative.cumprod,
    1,
    """Return the running product of the elements along an axis.

    Element i of the result is the product of the elements 0 to i of the operand, where NaN counts
    as 1. Integers stay in their dtype and wrap around on overflow; NumPy computes small integers in
    its default integer dtype. Bool becomes the default integer dtype. `cumulative_prod` is the form
    of the array API. Under `jit`, `axis` and `dtype` must be static.

    Args:
      a: an array or scalar of any shape and number or bool dtype.
      axis: the axis, an int; a negative axis counts from the end. None, the default, flattens the
        array first.
      dtype: the dtype of the computation and of the result. None, the default, is the dtype of the
        operand, and the default integer dtype (int32, or int64 with enable_x64) for bool.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.

    Returns:
      an array with the shape of the operand, or with one axis if `axis` is None.

    Raises:
      ShapeError: if `axis` is out of range.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.nancumprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array([2., 2., 6.], dtype=float32)
    """,
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
    """Return the running sum of the elements along an axis, in the form of the array API.

    Element i of the result is the sum of the elements 0 to i of the operand. Unlike in `cumsum`,
    `axis` may be left out only for arrays with one axis, the result may begin with 0, and integers
    that are smaller than the default integer dtype are added in that dtype. Under `jit`, `axis`,
    `dtype` and `include_initial` must be static.

    Args:
      x: an array with at least one axis, of number or bool dtype.
      axis: the axis, an int; a negative axis counts from the end. None, the default, is for arrays
        with one axis.
      dtype: the dtype of the computation and of the result. None, the default, chooses it as `sum`
        does.
      include_initial: True puts 0, the sum of zero elements, in front. The default is False.

    Returns:
      an array with the shape of the operand; with `include_initial`, the axis is longer by 1.

    Raises:
      ShapeError: if `axis` is out of range, or is None and the operand has no axis or several.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.cumulative_sum(jnp.arange(4))
    Array([0, 1, 3, 6], dtype=int32)
    >>> jnp.cumulative_sum(jnp.arange(4), include_initial=True)
    Array([0, 0, 1, 3, 6], dtype=int32)
    """,
)
cumulative_prod = make_running_from(
    "cumulative_prod",
    cumprod,
    1,
    """Return the running product of the elements along an axis, in the form of the array API.

    Element i of the result is the product of the elements 0 to i of the operand. Unlike in
    `cumprod`, `axis` may be left out only for arrays with one axis, the result may begin with 1,
    and integers that are smaller than the default integer dtype are multiplied in that dtype. Under
    `jit`, `axis`, `dtype` and `include_initial` must be static.

    Args:
      x: an array with at least one axis, of number or bool dtype.
      axis: the axis, an int; a negative axis counts from the end. None, the default, is for arrays
        with one axis.
      dtype: the dtype of the computation and of the result. None, the default, chooses it as `prod`
        does.
      include_initial: True puts 1, the product of zero elements, in front. The default is False.

    Returns:
      an array with the shape of the operand; with `include_initial`, the axis is longer by 1.

    Raises:
      ShapeError: if `axis` is out of range, or is None and the operand has no axis or several.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.cumulative_prod(jnp.array([2, 3]), include_initial=True)
    Array([1, 2, 6], dtype=int32)
    """,
)
