"""NumPy's elementwise functions: promotion and broadcasting around one primitive each, as a table.

Functions that need more than one operation are in elementwise.py of this folder; promotion itself is
promotion.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import typeof
from weft.core.primitive import Primitive
from weft.core.trace import current
from weft.numpy.promotion import as_operand, operands
from weft.primitives import elementwise as ops
from weft.primitives.layout import literal
from weft.xla.array import ArrayImpl
from weft.xla.eager import EVAL, new_kernel


def binary(
    name: str, prim: Primitive, inexact: bool = False, bools: Primitive | None = None
) -> Callable[[Any, Any], Any]:
    """A function of two operands; `bools` is the primitive for truth values, where it differs."""

    def fun(x: Any, y: Any, /) -> Any:
        if type(x) is ArrayImpl and type(y) is ArrayImpl and x.aval is y.aval and not inexact:
            if bools is None or x.dtype != np.bool_:
                return prim.bind(x, y)[0]
        x, y = operands(name, as_operand(name, x), as_operand(name, y), inexact=inexact)
        if bools is not None and dtypes.is_bool(typeof(x).dtype):
            return bools.bind(x, y)[0]
        return prim.bind(x, y)[0]

    return documented(fun, name)


def unary(name: str, prim: Primitive, inexact: bool = False) -> Callable[[Any], Any]:
    """A function of one operand; with `inexact`, integers become floats first."""

    def fun(x: Any, /) -> Any:
        if type(x) is ArrayImpl and (not inexact or dtypes.is_inexact(x.dtype)):
            return prim.bind(x)[0]
        (x,) = operands(name, as_operand(name, x), inexact=inexact)
        return prim.bind(x)[0]

    return documented(fun, name)


def documented(fun: Callable, name: str) -> Callable:
    """`fun` with its name, and a pointer to what NumPy says of it."""
    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = f"Elementwise `{name}`, as numpy.{name}; results have the promoted dtype."
    fun.__module__ = "weft.numpy"
    return fun


add = binary("add", ops.add_p, bools=ops.or_p)
subtract = binary("subtract", ops.sub_p)
multiply = binary("multiply", ops.mul_p)
true_divide = divide = binary("divide", ops.div_p, inexact=True)
maximum = binary("maximum", ops.max_p)
minimum = binary("minimum", ops.min_p)
equal = binary("equal", ops.eq_p)
not_equal = binary("not_equal", ops.ne_p)
less = binary("less", ops.lt_p)
less_equal = binary("less_equal", ops.le_p)
greater = binary("greater", ops.gt_p)
greater_equal = binary("greater_equal", ops.ge_p)
bitwise_and = binary("bitwise_and", ops.and_p)
bitwise_or = binary("bitwise_or", ops.or_p)
bitwise_xor = binary("bitwise_xor", ops.xor_p)
arctan2 = atan2 = binary("arctan2", ops.atan2_p, inexact=True)

negative = unary("negative", ops.neg_p)
sin = unary("sin", ops.sin_p, True)
cos = unary("cos", ops.cos_p, True)
tan = unary("tan", ops.tan_p, True)
tanh = unary("tanh", ops.tanh_p, True)
exp = unary("exp", ops.exp_p, True)
log = unary("log", ops.log_p, True)
sqrt = unary("sqrt", ops.sqrt_p, True)
expm1 = unary("expm1", ops.expm1_p, True)
log1p = unary("log1p", ops.log1p_p, True)
square = unary("square", ops.square_p)


def power(x: Any, y: Any, /) -> Any:
    """x ** y elementwise, as numpy.power. A Python int y multiplies; int ** negative int raises."""
    if type(y) is int and not dtypes.is_bool(typeof(x).dtype):
        return ops.integer_pow(x, y) if y != 2 else ops.square_p.bind(x)[0]
    x, y = operands("power", x, y)
    if dtypes.is_integer(typeof(x).dtype):
        raise NotImplementedError("power of integer arrays")
    return ops.pow_p.bind(x, y)[0]


_ = (current, EVAL, new_kernel, literal)
