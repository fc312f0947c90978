"""NumPy's elementwise functions of several operations each, `where` and comparisons of arrays among them.

Functions of one operation are rows of ufuncs.py. Called eagerly, each runs as one compiled program.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import typeof
from weft.core.trace import current
from weft.errors import DtypeError, ShapeError
from weft.numpy.fused import fused, kernel_for
from weft.numpy.promotion import (
    as_array,
    as_operand,
    kind_of,
    no_out,
    operands,
    plan_for,
    spread,
)
from weft.numpy.ufuncs import documented
from weft.primitives import elementwise as ops
from weft.primitives import transcendental
from weft.primitives.layout import broadcast_in_dim, full, literal
from weft.xla.eager import EVAL

__all__ = ["clip", "float_power", "pow", "power", "where"]


def number(value: float, like: Any) -> Any:
    """A Python number as a literal of the dtype of `like`."""
    return literal(value, typeof(like).dtype)


def dtype_of(x: Any) -> np.dtype:
    """The dtype of an operand."""
    return typeof(x).dtype


def real_only(op: str, *xs: Any) -> None:
    """Refuse complex operands."""
    if any(dtypes.is_complex(dtype_of(x)) for x in xs):
        avals = ", ".join(str(typeof(x)) for x in xs)
        raise DtypeError(f"{op}: operands must be real; got {avals}.")


def integers_only(op: str, *xs: Any) -> None:
    """Refuse what are no integers."""
    if not all(dtypes.is_integer(dtype_of(x)) for x in xs):
        avals = ", ".join(str(typeof(x)) for x in xs)
        raise DtypeError(f"{op}: operands must be integers; got {avals}.")


def truth(x: Any) -> Any:
    """x != 0, as a truth value."""
    return x if dtypes.is_bool(dtype_of(x)) else ops.ne(x, number(0, x))


# --- choosing -------------------------------------------------------------------------------


def choose_between(condition: Any, x: Any, y: Any) -> Any:
    """`where` with its three arguments, as written."""
    condition = truth(as_operand("where", condition))
    x, y = operands("where", as_operand("where", x), as_operand("where", y), shaped=False)
    condition, x, y = spread("where", condition, x, y)
    return ops.select_n_p.bind(condition, y, x)[0]


choose_kernel = kernel_for(choose_between, "where")


def where(condition: Any, x: Any, y: Any) -> Any:
    """x where `condition` holds and y elsewhere."""
    if current.trace is EVAL:
        try:
            return choose_kernel(condition, x, y)
        except Exception:
            pass
    return choose_between(condition, x, y)


@fused
def clip(arr: Any, /, min: Any = None, max: Any = None) -> Any:
    """x held between two bounds, either of which may be None: minimum(max, maximum(min, x)).

    >>> import weft.numpy as jnp
    >>> jnp.clip(jnp.arange(5), 1, 3)
    Array([1, 1, 2, 3, 3], dtype=int32)
    """
    x = as_operand("clip", arr)
    if any(b is not None and dtypes.is_complex(kind_dtype("clip", b)) for b in (x, min, max)):
        raise DtypeError(
            f"clip: operands must be real; got {typeof(x)}. Hint: clip x.real and x.imag."
        )
    if min is not None:
        x = ops.max(*operands("clip", as_operand("clip", min), x))
    if max is not None:
        x = ops.min(*operands("clip", as_operand("clip", max), x))
    return as_array(x)


def kind_dtype(op: str, x: Any) -> np.dtype:
    """The dtype of an operand that may be anything."""
    kind = kind_of(op, as_operand(op, x))
    return dtypes.canonicalize(kind) if isinstance(kind, type) else kind.dtype


# --- powers ---------------------------------------------------------------------------------


def power(x1: Any, x2: Any, /) -> Any:
    """x1 ** x2. A Python int x2 multiplies; of integers, x2 must not be negative.

    >>> import weft.numpy as jnp
    >>> jnp.power(jnp.array([1.0, 2.0]), -1)
    Array([1. , 0.5], dtype=float32)
    """
    if type(x2) is int:
        x1 = as_operand("power", x1)
        if hasattr(x1, "dtype") and not dtypes.is_bool(x1.dtype):
            if current.trace is EVAL:
                return integer_power_kernel(x1, x2)
            return integer_power(x1, x2)
    if current.trace is EVAL:
        try:
            return power_kernel(x1, x2)
        except Exception:
            pass
    return power_of(x1, x2)


def integer_power(x: Any, n: int) -> Any:
    """x ** n for a Python integer n."""
    if n < 0 and dtypes.is_integer(dtype_of(x)):
        raise DtypeError(
            f"power: integers must not be raised to negative powers; got {typeof(x)}, {n}. "
            f"Hint: x.astype(float) ** {n}."
        )
    return ops.integer_pow(as_array(x), n)


def power_of(x1: Any, x2: Any) -> Any:
    """`power` as written."""
    x, y = as_operand("power", x1), as_operand("power", x2)
    plan = plan_for("power", (kind_of("power", x), kind_of("power", y)))
    if dtypes.is_inexact(plan.dtype) and dtypes.is_integer(kind_dtype("power", y)):
        (x,) = operands("power", x, inexact=True) if plan.weak else [x]
    x, y = operands("power", x, y)
    if dtypes.is_inexact(plan.dtype):
        return transcendental.pow(x, y)
    if dtypes.is_bool(plan.dtype):
        x, y = (ops.convert(v, dtypes.default_int()) for v in (x, y))
    return power_by_squaring(x, y)


def power_by_squaring(x: Any, y: Any) -> Any:
    """x ** y of integers, by the six lowest bits of y: more would overflow, but for |x| < 2."""
    zero, one = number(0, x), number(1, x)
    out = where(ops.eq(y, number(0, y)), one, one)
    for i in range(6):
        bit = ops.bitwise_and(y, number(1 << i, y))
        out = where(bit, ops.mul(out, x), out)
        if i < 5:
            x = ops.mul(x, x)
    return out


integer_power_kernel = kernel_for(integer_power, "integer_pow", ("n",))
power_kernel = kernel_for(power_of, "power")
pow = power


@fused
def float_power(x: Any, y: Any, /) -> Any:
    """x ** y in floats of the widest kind there is, as numpy.float_power."""
    x, y = operands(
        "float_power", as_operand("float_power", x), as_operand("float_power", y), inexact=True
    )
    return transcendental.pow(x, y)
