"""Tests of elements, and choosing elements by them: isnan, isclose, where, clip, select.

Comparisons of one operation are rows of ufuncs.py.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import typeof
from weft.errors import DtypeError, ShapeError
from weft.numpy.promotion import (
    PLANS,
    as_array,
    as_array_beside,
    as_arrays_together,
    as_operand,
    axes_of,
    broadcast_avals,
    broadcast_operands,
    choose_array_action,
    choose_number_action,
    drop_weak_type,
    is_nonzero,
    kind_of,
    plan_promotion,
    promote_operands,
    refuse_out,
    strengthen_array,
)
from weft.numpy.searching import nonzero
from weft.numpy.ufunc_methods import attach_ufunc_methods
from weft.numpy.ufuncs import refuse_out_and_where
from weft.options import trace_context
from weft.primitives import elementwise as ops
from weft.primitives.bits import bitcast_convert_type
from weft.primitives.families import as_sequence
from weft.primitives.layout import full, literal
from weft.primitives.reduction import reduce_and
from weft.run.operation import number_operation, operation
from weft.util import name_function, warn_user
from weft.xla.typing import Array, ArrayLike


def literal_like(value: Any, like: Any) -> Any:
    """Return a Python number as a literal of the dtype of `like`, weak where `like` is weak."""
    found = literal(value, like.dtype)
    if isinstance(found, np.generic) and typeof(like).weak_type:  # of another than Python's types
        return ops.convert(found, like.dtype, True)
    return found


def fill_answer(x: Any, value: bool) -> Any:
    """One answer for every element of x."""
    return full(x.shape, value, np.dtype(bool))


def check_real(op: str, *xs: Any) -> None:
    """Refuse complex operands."""
    if any(dtypes.is_complex(x.dtype) for x in xs):
        avals = ", ".join(str(x.aval) for x in xs)
        raise DtypeError(f"{op}: operands must be real; got {avals}.")


# --- questions ------------------------------------------------------------------------------


@operation
def isnan(x: ArrayLike, /) -> Array:
    """Return True where elements are NaN.

    A complex number is NaN if one of its parts is. Integers and bool are never NaN.

    Args:
      x: an array or scalar of any shape and number or bool dtype.

    Returns:
      an array of dtype bool, with the shape of `x`.

    Raises:
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.array([1.0, jnp.nan, jnp.inf, -jnp.inf])
    >>> jnp.isnan(x)
    Array([False,  True, False, False], dtype=bool)
    """
    x = as_array(x, "isnan")
    return ops.ne(x, x)


@operation
def isinf(x: ArrayLike, /) -> Array:
    """Return True where elements are infinite, with either sign.

    A complex number is infinite if one of its parts is. Integers and bool are never infinite.

    Args:
      x: an array or scalar of any shape and number or bool dtype.

    Returns:
      an array of dtype bool, with the shape of `x`.

    Raises:
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.array([1.0, jnp.nan, jnp.inf, -jnp.inf])
    >>> jnp.isinf(x)
    Array([False, False,  True,  True], dtype=bool)
    """
    x = as_array(x, "isinf")
    if dtypes.is_complex(x.dtype):
        return ops.bitwise_or(is_infinite_float(ops.real(x)), is_infinite_float(ops.imag(x)))
    return is_infinite_float(x) if dtypes.is_float(x.dtype) else fill_answer(x, False)


def is_infinite_float(x: Any) -> Any:
    """Return True for floats that are infinite."""
    return ops.eq(ops.abs(x), make_strong(np.inf, x))


def make_strong(value: Any, like: Any) -> Any:
    """A number of the dtype of `like`; unlike a literal it makes no answer weak."""
    return np.asarray(value, like.dtype)[()]


@operation
def isfinite(x: ArrayLike, /) -> Array:
    """Return True where elements are neither infinite nor NaN.

    A complex number is finite if both of its parts are. Integers and bool are always finite.

    Args:
      x: an array or scalar of any shape and number or bool dtype.

    Returns:
      an array of dtype bool, with the shape of `x`.

    Raises:
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.array([1.0, jnp.nan, jnp.inf, -jnp.inf])
    >>> jnp.isfinite(x)
    Array([ True, False, False, False], dtype=bool)
    """
    x = as_array(x, "isfinite")
    if dtypes.is_complex(x.dtype):
        return ops.bitwise_and(ops.is_finite(ops.real(x)), ops.is_finite(ops.imag(x)))
    return ops.is_finite(x) if dtypes.is_float(x.dtype) else fill_answer(x, True)


def is_signed_infinity(op: str, x: Any, out: Any, value: float) -> Any:
    """isposinf or isneginf."""
    refuse_out(op, out)
    x = as_array(x, op)
    check_real(op, x)
    return ops.eq(x, make_strong(value, x)) if dtypes.is_float(x.dtype) else fill_answer(x, False)


@operation(static=("out",))
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Return True where elements are positive infinity.

    Integers and bool are never infinite.

    Args:
      x: an array or scalar of any shape and real or bool dtype.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.

    Returns:
      an array of dtype bool, with the shape of `x`.

    Raises:
      DtypeError: if the operand is complex, a list or not numeric.

    >>> x = jnp.array([1.0, jnp.nan, jnp.inf, -jnp.inf])
    >>> jnp.isposinf(x)
    Array([False, False,  True, False], dtype=bool)
    """
    return is_signed_infinity("isposinf", x, out, np.inf)


@operation(static=("out",))
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Return True where elements are negative infinity.

    Integers and bool are never infinite.

    Args:
      x: an array or scalar of any shape and real or bool dtype.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.

    Returns:
      an array of dtype bool, with the shape of `x`.

    Raises:
      DtypeError: if the operand is complex, a list or not numeric.

    >>> x = jnp.array([1.0, jnp.nan, jnp.inf, -jnp.inf])
    >>> jnp.isneginf(x)
    Array([False, False, False,  True], dtype=bool)
    """
    return is_signed_infinity("isneginf", x, out, -np.inf)


@operation
def isreal(x: ArrayLike) -> Array:
    """Return True where the imaginary part of elements is 0.

    The elements of real arrays are all real. `isrealobj` tests the dtype instead.

    Args:
      x: an array or scalar of any shape and number or bool dtype.

    Returns:
      an array of dtype bool, with the shape of `x`.

    Raises:
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.isreal(jnp.array([1 + 0j, 2 + 1j]))
    Array([ True, False], dtype=bool)
    """
    x = as_array(x, "isreal")
    return (
        drop_weak_type(ops.eq(ops.imag(x), 0))
        if dtypes.is_complex(x.dtype)
        else fill_answer(x, True)
    )


@operation
def iscomplex(x: ArrayLike) -> Array:
    """Return True where the imaginary part of elements is not 0.

    No element of a real array is complex. `iscomplexobj` tests the dtype instead.

    Args:
      x: an array or scalar of any shape and number or bool dtype.

    Returns:
      an array of dtype bool, with the shape of `x`.

    Raises:
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.iscomplex(jnp.array([1 + 0j, 2 + 1j]))
    Array([False,  True], dtype=bool)
    """
    x = as_array(x, "iscomplex")
    return (
        drop_weak_type(ops.ne(ops.imag(x), 0))
        if dtypes.is_complex(x.dtype)
        else fill_answer(x, False)
    )


def iscomplexobj(x: Any) -> bool:
    """Return True if an object is of complex dtype.

    The values do not matter, so that it works on traced arrays in Python's `if`.

    Args:
      x: an array, a number, a list or a dtype such as `jnp.complex64`.

    Returns:
      a Python bool.

    >>> jnp.iscomplexobj(jnp.array([1 + 0j])), jnp.iscomplexobj(3.0)
    (True, False)
    """
    if x is None or isinstance(x, str | list | tuple):
        return np.iscomplexobj(x)
    if isinstance(x, type):  # jnp.complex64, which has a dtype
        return dtypes.is_complex(np.dtype(x))
    return dtypes.is_complex(typeof(as_operand("iscomplexobj", x)).dtype)


def isrealobj(x: Any) -> bool:
    """Return True if an object is not of complex dtype.

    The values do not matter, so that it works on traced arrays in Python's `if`.

    Args:
      x: an array, a number, a list or a dtype such as `jnp.complex64`.

    Returns:
      a Python bool.

    >>> jnp.isrealobj(jnp.array([1 + 0j])), jnp.isrealobj(3.0)
    (False, True)
    """
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Return True if an object is a scalar.

    Scalars are Python's and NumPy's scalars, as for NumPy, and also arrays of weft without axes.

    Args:
      element: any object.

    Returns:
      a Python bool.

    >>> jnp.isscalar(3), jnp.isscalar(jnp.array(3.0)), jnp.isscalar(jnp.ones(1))
    (True, True, False)
    """
    if np.isscalar(element):
        return True
    return hasattr(element, "aval") and element.aval.shape == ()


def find_shape(op: str, a: Any) -> tuple[int, ...]:
    """The shape that an operand has; if it is not an array, NumPy's with a warning, as in JAX."""
    if hasattr(a, "shape"):
        return tuple(a.shape)
    try:
        return typeof(as_operand(op, a)).shape
    except DtypeError as error:
        warn_user(f"{error} JAX will refuse it too.", DeprecationWarning)
        return np.shape(a)


def shape(a: Any) -> tuple[int, ...]:
    """Return the shape of an array.

    It is known under tracing.

    Args:
      a: an array, a number, or any object with a shape. Lists are accepted with a
        DeprecationWarning.

    Returns:
      a tuple of ints.

    >>> jnp.shape(jnp.zeros((2, 3))), jnp.shape(3.0)
    ((2, 3), ())
    """
    return find_shape("shape", a)


def ndim(a: Any) -> int:
    """Return the number of axes of an array.

    It is known under tracing.

    Args:
      a: an array, a number, or any object with a shape. Lists are accepted with a
        DeprecationWarning.

    Returns:
      an int.

    >>> jnp.ndim(jnp.zeros((2, 3))), jnp.ndim(3.0)
    (2, 0)
    """
    return len(find_shape("ndim", a))


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """Return the number of elements of an array.

    It is known under tracing.

    Args:
      a: an array, a number, or any object with a shape. Lists are accepted with a
        DeprecationWarning.
      axis: an int or a sequence of distinct ints: the axes whose sizes are multiplied; negative
        axes count from the end. None, the default, takes all axes.

    Returns:
      an int.

    Raises:
      ShapeError: if an axis is out of range or named twice.

    >>> jnp.size(jnp.zeros((2, 3))), jnp.size(jnp.zeros((2, 3)), axis=1)
    (6, 3)
    """
    sizes = find_shape("size", a)
    return math.prod(sizes[i] for i in axes_of("size", axis, len(sizes)))


@operation
def signbit(x: ArrayLike, /) -> Array:
    """Return True where the sign bit of elements is set.

    It is set for negative numbers, and also for -0.0 and for a NaN with a sign, unlike in `x < 0`.

    Args:
      x: an array or scalar of any shape and real or bool dtype.

    Returns:
      an array of dtype bool, with the shape of `x`.

    Raises:
      DtypeError: if the operand is complex, a list or not numeric.

    >>> jnp.signbit(jnp.array([-1.0, 0.0, -0.0]))
    Array([ True, False,  True], dtype=bool)
    """
    x = as_array(x, "signbit")
    check_real("signbit", x)
    if not dtypes.is_float(x.dtype):
        x = drop_weak_type(x)
        return ops.lt(x, literal_like(0, x)) if dtypes.is_signed(x.dtype) else fill_answer(x, False)
    if float(dtypes.finfo(x.dtype).min) > 0:  # float8_e8m0fnu has no sign
        return fill_answer(x, False)
    bits = dtypes.from_short_name(f"i{dtypes.itemsize_bits(x.dtype)}")
    return ops.lt(bitcast_convert_type(x, bits), literal(0, bits))


# --- truth values ---------------------------------------------------------------------------


def make_logical(op: str, prim: Any, doc: str) -> Callable:
    """A function of two truth values."""

    def fun(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
        if out is not None or where is not None:
            refuse_out_and_where(op, out, where)
        x, y = (is_nonzero(as_operand(op, z), op) for z in (x, y))
        x, y = broadcast_operands(op, x, y)
        return strengthen_array(prim.apply(x, y)[0])

    return operation(name_function(fun, op, doc))


logical_and = make_logical(
    "logical_and",
    ops.and_p,
    """Return True where both operands are not zero.

    NaN counts as True. On bool arrays it is the operator `&`.

    Args:
      x: an array or scalar of any shape and number or bool dtype.
      y: an array or scalar that broadcasts together with `x`.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      where: must be None; accepted for the signature of NumPy. Use `jnp.where` on the result.

    Returns:
      an array of dtype bool, with the common shape of the operands.

    Raises:
      ShapeError: if the shapes do not broadcast together.
      DtypeError: if the operand is a list or not numeric.
      NotImplementedError: if `out` or `where` is given.

    >>> jnp.logical_and(jnp.array([0, 1, 2]), jnp.array([1, 0, 3]))
    Array([False, False,  True], dtype=bool)
    """,
)
logical_or = make_logical(
    "logical_or",
    ops.or_p,
    """Return True where at least one operand is not zero.

    NaN counts as True. On bool arrays it is the operator `|`.

    Args:
      x: an array or scalar of any shape and number or bool dtype.
      y: an array or scalar that broadcasts together with `x`.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      where: must be None; accepted for the signature of NumPy. Use `jnp.where` on the result.

    Returns:
      an array of dtype bool, with the common shape of the operands.

    Raises:
      ShapeError: if the shapes do not broadcast together.
      DtypeError: if the operand is a list or not numeric.
      NotImplementedError: if `out` or `where` is given.

    >>> jnp.logical_or(jnp.array([0, 1, 2]), jnp.array([0, 0, 3]))
    Array([False,  True,  True], dtype=bool)
    """,
)
logical_xor = make_logical(
    "logical_xor",
    ops.xor_p,
    """Return True where exactly one operand is not zero.

    NaN counts as True. On bool arrays it is the operator `^`.

    Args:
      x: an array or scalar of any shape and number or bool dtype.
      y: an array or scalar that broadcasts together with `x`.
      out: must be None, because arrays do not change; accepted for the signature of NumPy.
      where: must be None; accepted for the signature of NumPy. Use `jnp.where` on the result.

    Returns:
      an array of dtype bool, with the common shape of the operands.

    Raises:
      ShapeError: if the shapes do not broadcast together.
      DtypeError: if the operand is a list or not numeric.
      NotImplementedError: if `out` or `where` is given.

    >>> jnp.logical_xor(jnp.array([0, 1, 2]), jnp.array([0, 0, 3]))
    Array([False,  True, False], dtype=bool)
    """,
)


@operation
def logical_not(x: ArrayLike, /) -> Array:
    """Return True where elements are zero.

    NaN counts as True, so that its result is False. On bool arrays it is the operator `~`.

    Args:
      x: an array or scalar of any shape and number or bool dtype.

    Returns:
      an array of dtype bool, with the shape of `x`.

    Raises:
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.logical_not(jnp.array([0, 1, 2]))
    Array([ True, False, False], dtype=bool)
    """
    return strengthen_array(
        ops.bitwise_not(is_nonzero(as_operand("logical_not", x), "logical_not"))
    )


# --- choosing -------------------------------------------------------------------------------


def choose_elements(condition: Any, x: Any, y: Any) -> Any:
    """`where` with its three arguments, as written."""
    kinds = tuple([getattr(v, "aval", None) or type(v) for v in (condition, x, y)])
    actions = PLANS.get(("where", kinds, trace_context()))  # the action for each operand, or None
    if actions is None:
        condition, x, y = (as_operand("where", v) for v in (condition, x, y))
        kinds = tuple(kind_of("where", v) for v in (condition, x, y))
        actions = PLANS["where", kinds, trace_context()] = make_choice_actions(*kinds)
    to_bool, act_x, act_y = actions
    if to_bool is not None:
        condition = to_bool(condition)
    if act_x is not None:
        x = act_x(x)
    if act_y is not None:
        y = act_y(y)
    return ops.select_n_p.apply(condition, y, x)[0]


def make_choice_actions(condition: Any, x: Any, y: Any) -> tuple:
    """Return the conversions of a condition and two operands of these kinds."""
    avals = [typeof(k(0)) if isinstance(k, type) else k for k in (condition, x, y)]
    shape = broadcast_avals("where", avals, check_ranks=False)
    plan = plan_promotion("where", (x, y), shaped=False)
    mask = choose_array_action(avals[0].update(dtype=np.bool_), np.dtype(bool), True, shape, avals)
    if not dtypes.is_bool(avals[0].dtype):
        to_bool = lambda c: is_nonzero(c) if mask is None else mask(is_nonzero(c))
    else:
        to_bool = mask
    return to_bool, *(
        choose_number_action(k, plan.dtype)
        if isinstance(k, type)
        else choose_array_action(k, plan.dtype, plan.weak, shape, avals)
        for k in (x, y)
    )


choose_operands = number_operation(choose_elements, "where", whole=True)


def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Choose elements of two arrays by a condition; with a condition only, find where it is true.

    With `x` and `y`, the result is `x` where the condition is not zero, and `y` elsewhere. It
    replaces an `if` on each element of an array. Both operands are computed everywhere. For this
    reason, a NaN or infinity in the derivative of the operand that is not chosen makes the gradient
    NaN. To avoid it, choose a harmless operand first, as in the last example. Without `x` and `y`,
    the call is `nonzero(condition)`; `size` must then be given under `jit`.

    Args:
      condition: an array or scalar of any shape and dtype; elements other than 0 are true.
      x: an array or scalar that broadcasts together with the others: the elements where the
        condition is true. None, the default, goes with None for `y`.
      y: an array or scalar that broadcasts together with the others: the elements where the
        condition is false.
      size: without `x` and `y`, the number of places in the result, an int; see `nonzero`. None,
        the default, takes all places.
      fill_value: without `x` and `y`, the index that fills up the result if there are fewer places
        than `size`. None, the default, is 0.

    Returns:
      an array with the common shape and the common dtype of `x` and `y`. Without them, a tuple of
      vectors of indices, one for each axis of the condition.

    Raises:
      TypeError: if only one of `x` and `y` is given.
      ValueError: if `size` or `fill_value` is given with `x` and `y`.
      ShapeError: if the shapes do not broadcast together.
      ConcretizationTypeError: if `x` and `y` are not given, the condition is traced, and `size` is
        None.
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.arange(4)
    >>> jnp.where(x > 1, x, -1)
    Array([-1, -1,  2,  3], dtype=int32)
    >>> jnp.where(x > 1)
    (Array([2, 3], dtype=int32),)
    >>> weft.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0))(0.0)
    Array(nan, dtype=float32, weak_type=True)
    >>> weft.grad(lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0))(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    if x is not None and y is not None:
        if size is not None or fill_value is not None:
            raise ValueError("where: size and fill_value must be left out where x and y are given.")
        return choose_operands(condition, x, y)
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    raise TypeError("where: there must be both x and y, or neither; got one of them.")


def clip(arr: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """Limit the elements of an array to an interval.

    The result is `minimum(max, maximum(min, arr))`: if `min` is greater than `max`, it is `max`.
    The result is NaN where the element or a bound is NaN. The derivative is 1 inside the interval,
    0 outside, and 1/2 where an element is equal to a bound.

    Args:
      arr: an array or scalar of any shape and real dtype.
      min: the lower bound, an array or scalar that broadcasts against `arr`. None, the default,
        sets no bound.
      max: the upper bound, in the same way.

    Returns:
      an array with the common shape and the common dtype of the arguments.

    Raises:
      DtypeError: if an argument is complex, a list or not numeric.
      ShapeError: if the shapes do not broadcast together.

    >>> jnp.clip(jnp.arange(5), 1, 3)
    Array([1, 1, 2, 3, 3], dtype=int32)
    >>> jnp.clip(jnp.array([-2.0, 0.5]), min=-1)
    Array([-1. ,  0.5], dtype=float32)
    >>> weft.grad(jnp.clip)(1.0, 0.0, 1.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return clip_operands(arr, min, max)


@functools.partial(number_operation, name="clip", whole=True)
def clip_operands(arr: Any, min: Any, max: Any) -> Any:
    """`clip` as written."""
    x = as_array(arr, "clip")
    bounds = [b if b is None else as_operand("clip", b) for b in (min, max)]
    if any(b is not None and dtypes.is_complex(typeof(b).dtype) for b in (x, *bounds)):
        raise DtypeError(
            f"clip: operands must be real; got {x.aval}. Hint: clip x.real and x.imag."
        )
    for bound, hold in zip(bounds, (ops.max, ops.min), strict=True):
        if bound is not None:
            x = hold(*promote_operands("clip", bound, x))
    return x


@operation(static=("copy",))
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Replace NaN and infinities by numbers.

    The parts of complex numbers are replaced one by one. Integers and bool are returned unchanged.
    The derivative is 0 where an element is replaced.

    Args:
      x: an array or scalar of any shape and number or bool dtype.
      copy: accepted for the signature of NumPy, without effect, because arrays do not change.
      nan: the number for NaN, a scalar or an array that broadcasts to `x`. The default is 0.
      posinf: the number for positive infinity. None, the default, is the largest finite number of
        the dtype.
      neginf: the number for negative infinity. None, the default, is the lowest finite number of
        the dtype.

    Returns:
      an array with the shape and dtype of `x`.

    Raises:
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.array([1.0, jnp.nan, jnp.inf, -jnp.inf])
    >>> jnp.nan_to_num(x, nan=-1.0, posinf=9.0, neginf=-9.0)
    Array([ 1., -1.,  9., -9.], dtype=float32)
    >>> jnp.nan_to_num(jnp.array([jnp.nan, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    x = as_array(x, "nan_to_num")
    if dtypes.is_complex(x.dtype):
        parts = (nan_to_num(p(x), copy, nan, posinf, neginf) for p in (ops.real, ops.imag))
        return ops.complex(*parts)
    if not dtypes.is_float(x.dtype):
        return x
    x, limits = drop_weak_type(x), dtypes.finfo(x.dtype)
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    x = replace_where(x, ops.ne(x, x), nan)
    x = replace_where(x, ops.eq(x, literal_like(np.inf, x)), high)
    return replace_where(x, ops.eq(x, literal_like(-np.inf, x)), low)


def replace_where(x: Any, where: Any, value: Any) -> Any:
    """x, with `value` in x's dtype where it holds."""
    value = ops.convert(value, x.dtype) if hasattr(value, "aval") else literal_like(value, x)
    where, value, x = broadcast_operands("nan_to_num", where, value, x)
    return ops.select(where, value, x)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: ArrayLike = 0) -> Array:
    """Choose each element from the first array whose condition is true.

    It is a chain of `if` and `elif` on each element. All choices are computed everywhere.

    Args:
      condlist: a sequence of bool arrays; the conditions, in order of priority.
      choicelist: a sequence of arrays or scalars, one for each condition. All shapes broadcast
        together.
      default: an array or scalar: the elements where no condition is true. The default is 0.

    Returns:
      an array with the common shape, and the common dtype of the choices and the default.

    Raises:
      ValueError: if there is no condition, or the numbers of conditions and choices differ.
      DtypeError: if a condition is not of dtype bool.

    >>> x = jnp.arange(4)
    >>> jnp.select([x < 1, x > 2], [x + 10, x - 10], 0)
    Array([10,  0,  0, -7], dtype=int32)
    """
    condlist, choicelist = (
        list(as_sequence("select", name, x))
        for name, x in (("condlist", condlist), ("choicelist", choicelist))
    )
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ValueError(
            "select: there must be as many choices as conditions, and one at least; "
            f"got {len(condlist)} conditions, {len(choicelist)} choices."
        )
    for c in condlist:
        if not dtypes.is_bool(typeof(as_operand("select", c)).dtype):
            raise DtypeError(f"select: conditions must be bool; got {typeof(c)}.")
    return select_first(condlist, choicelist, default)


@operation
def select_first(conditions: list, choices: list, default: Any) -> Any:
    """`select`, its arguments checked."""
    *choices, out = promote_operands(
        "select", *[as_operand("select", c) for c in (*choices, default)]
    )
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        out = choose_elements(condition, choice, out)
    return as_array(out)


def piecewise(
    x: ArrayLike,
    condlist: ArrayLike | Sequence[ArrayLike],
    funclist: Sequence[Any],
    *args: Any,
    **kw: Any,
) -> Array:
    """Compute a function that is defined by cases.

    Each element is the result of the function whose condition is true there. If several are true,
    the last one counts. Unlike in NumPy, each function is applied to all of `x`, not only to the
    elements of its case. For this reason, functions must be elementwise.

    Args:
      x: an array or scalar of any shape and dtype.
      condlist: a sequence of arrays, or one array: the conditions, which broadcast against `x`.
        Elements other than 0 are true.
      funclist: a sequence of functions and scalars, one for each condition. One more is for the
        elements where no condition is true; without it they are 0.
      *args: further arguments of each function, after `x`.
      **kw: keyword arguments of each function.

    Returns:
      an array with the shape and dtype of `x`.

    Raises:
      ValueError: if the number of functions does not fit the number of conditions.

    >>> x = jnp.array([-2.0, 0.5, 3.0])
    >>> jnp.piecewise(x, [x < 0, x > 1], [-1.0, lambda x: 10 * x, lambda x: x + 0.25])
    Array([-1.  ,  0.75, 30.  ], dtype=float32)
    """
    x = as_array(x, "piecewise")
    if isinstance(condlist, list | tuple):
        conditions = list(condlist)
    else:
        rows = as_array(condlist, "piecewise")
        conditions = [rows] if rows.ndim == x.ndim else list(rows)
    funs = [*as_sequence("piecewise", "funclist", funclist)]
    extra = len(funs) - len(conditions)
    if extra not in (0, 1):
        raise ValueError(
            "piecewise: there must be as many functions as conditions, or one more; "
            f"got {len(funs)} functions, {len(conditions)} conditions."
        )
    otherwise = funs.pop() if extra else 0
    apply = lambda fun: fun(x, *args, **kw) if callable(fun) else fun
    out = ops.convert(as_array_beside("piecewise", apply(otherwise), x), x.dtype)
    out = ops.add(*promote_operands("piecewise", out, full(x.shape, 0, x.dtype)))
    for condition, fun in zip(conditions, funs, strict=True):
        value = ops.convert(as_array_beside("piecewise", apply(fun), x), x.dtype)
        out = choose_operands(condition, value, out)
    return out


# --- whether arrays agree -------------------------------------------------------------------


def subtract_integers(x: Any, y: Any) -> Any:
    """Return the distances of integers, unsigned, so that none overflows."""
    unsigned = np.dtype(f"uint{dtypes.itemsize_bits(x.dtype)}")
    above, below = (ops.convert(hold(x, y), unsigned) for hold in (ops.max, ops.min))
    return ops.sub(above, below)


@operation(static=("equal_nan",))
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Return True where two arrays are equal within a tolerance.

    The test is `abs(a - b) <= atol + rtol * abs(b)`. It is not symmetric: `b` is the reference. An
    infinity is close only to itself, and a random key only to an equal key. Under `jit`,
    `equal_nan` must be static.

    Args:
      a: an array or scalar of any shape and dtype.
      b: an array or scalar that broadcasts together with `a`: the reference.
      rtol: the relative tolerance, a scalar or an array. The default is 1e-5.
      atol: the absolute tolerance, a scalar or an array. The default is 1e-8.
      equal_nan: True lets NaN be close to NaN. The default is False.

    Returns:
      an array of dtype bool, with the common shape of the operands.

    Raises:
      ShapeError: if the shapes do not broadcast together.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.isclose(jnp.array([1.0, 2.0, jnp.nan]), jnp.array([1.000001, 2.1, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    >>> jnp.isclose(jnp.nan, jnp.nan, equal_nan=True)
    Array(True, dtype=bool)
    """
    x, y = promote_operands("isclose", as_operand("isclose", a), as_operand("isclose", b))
    x, y = broadcast_operands("isclose", as_array(x), as_array(y))
    if dtypes.is_extended(x.dtype):
        return ops.eq(x, y)
    distance = None
    if not dtypes.is_inexact(x.dtype):
        if dtypes.is_integer(x.dtype):
            distance = subtract_integers(x, y)
        x, y = promote_operands("isclose", x, y, inexact=True)
    real = dtypes.real_dtype(x.dtype)
    rtol, atol = (ops.convert(t, real) for t in (rtol, atol))
    bound = ops.add(atol, ops.mul(rtol, ops.abs(y)))
    distance = ops.abs(ops.sub(x, y)) if distance is None else ops.convert(distance, real)
    near = ops.le(*broadcast_operands("isclose", distance, bound))
    finite = ops.bitwise_and(isfinite(x), isfinite(y))
    out = ops.select(finite, near, ops.eq(x, y))
    if equal_nan:
        out = ops.bitwise_or(out, ops.bitwise_and(ops.ne(x, x), ops.ne(y, y)))
    return out


def reduce_all(x: Any) -> Any:
    """Return True if all elements are true."""
    return reduce_and(x, tuple(range(x.ndim)))


@operation(static=("equal_nan",))
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Return True if two arrays are equal within a tolerance everywhere.

    The test is `abs(a - b) <= atol + rtol * abs(b)`, as in `isclose`. Under `jit`, `equal_nan` must
    be static.

    Args:
      a: an array or scalar of any shape and dtype.
      b: an array or scalar that broadcasts together with `a`: the reference.
      rtol: the relative tolerance, a scalar or an array. The default is 1e-5.
      atol: the absolute tolerance, a scalar or an array. The default is 1e-8.
      equal_nan: True lets NaN be close to NaN. The default is False.

    Returns:
      a scalar array of dtype bool.

    Raises:
      ShapeError: if the shapes do not broadcast together.
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.000001, 2.0]))
    Array(True, dtype=bool)
    >>> jnp.allclose(jnp.array([1.0, 2.0]), 1.0)
    Array(False, dtype=bool)
    """
    return reduce_all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Return True if two arrays have one shape and equal elements.

    Arrays of different shapes are not equal; `array_equiv` broadcasts them. Their dtypes may
    differ.

    Args:
      a1: an array or scalar of any shape and dtype.
      a2: an array or scalar of any shape and dtype.
      equal_nan: True lets NaN be equal to NaN. The default is False.

    Returns:
      a scalar array of dtype bool.

    Raises:
      DtypeError: if the operand is a list or not numeric.

    >>> x = jnp.array([1.0, jnp.nan])
    >>> jnp.array_equal(x, x), jnp.array_equal(x, x, equal_nan=True)
    (Array(False, dtype=bool), Array(True, dtype=bool))
    """
    x, y = as_arrays_together("array_equal", a1, a2)
    if x.shape != y.shape:
        return full((), False, np.dtype(bool))
    return is_equal_everywhere(x, y, bool(equal_nan))


@operation(static=("equal_nan",))
def is_equal_everywhere(x: Any, y: Any, equal_nan: bool) -> Any:
    """Return True if arrays of one shape are equal everywhere."""
    x, y = promote_operands("array_equal", x, y)
    equal = ops.eq(x, y)
    if equal_nan:
        equal = ops.bitwise_or(equal, ops.bitwise_and(ops.ne(x, x), ops.ne(y, y)))
    return drop_weak_type(reduce_all(equal))


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Return True if two arrays are equal after broadcasting.

    Arrays whose shapes do not broadcast together are not equivalent. NaN is not equal to NaN.

    Args:
      a1: an array or scalar of any shape and dtype.
      a2: an array or scalar of any shape and dtype.

    Returns:
      a scalar array of dtype bool.

    Raises:
      DtypeError: if the operand is a list or not numeric.

    >>> jnp.array_equiv(jnp.array([1, 2]), jnp.array([[1, 2], [1, 2]]))
    Array(True, dtype=bool)
    >>> jnp.array_equiv(jnp.ones(2), jnp.ones(3))
    Array(False, dtype=bool)
    """
    x, y = as_arrays_together("array_equiv", a1, a2)
    try:
        x, y = broadcast_operands("array_equiv", x, y)
    except ShapeError:
        return full((), False, np.dtype(bool))
    return is_equal_everywhere(x, y, False)


attach_ufunc_methods(globals())
