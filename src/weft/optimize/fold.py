"""Constant folding: operations on numbers that are known, done once and for all."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, memo_jaxpr
from weft.core.primitive import Primitive
from weft.passes.rewrite import rewrite_equations
from weft.primitives import elementwise as ops
from weft.primitives.layout import convert_element_type_p
from weft.primitives.transcendental import sqrt_p


@memo_jaxpr
def fold_constants(jaxpr: Jaxpr) -> Jaxpr:
    """Return a program with numbers in place of operations on numbers: `2.0 * 3.0` is 6.0.

    Only scalars are folded, so that no program grows. Only results with the same bits on all
    machines are folded, which excludes subnormal numbers and division of integers.

    Args:
      jaxpr: a `Jaxpr`.
    Returns:
      An equivalent `Jaxpr`; `jaxpr` itself if nothing changes.

    >>> from weft.passes import fold_constants
    >>> jaxpr = weft.make_jaxpr(lambda x: x * lax.mul(2.0, 3.0))(1.0).jaxpr
    >>> print(fold_constants(jaxpr))
    { lambda ; a:f32[]. let b:f32[] = mul a 6.0 in (b,) }
    """
    return rewrite_equations(jaxpr, fold_constants, fold_equation)


def fold_equation(eqn: Eqn) -> Sequence[Atom] | None:
    """Return the number that is the result of an equation; None where it cannot be known."""
    compute = EXACT.get(eqn.primitive)
    if compute is None or eqn.outvars[0].aval.shape:
        return None
    if not eqn.invars or any(type(a) is not Literal for a in eqn.invars):
        return None
    aval = eqn.outvars[0].aval
    values = [a.aval.dtype.type(a.val) for a in eqn.invars]  # type: ignore[union-attr]
    if not all(is_plain(v) for v in values):
        return None
    with np.errstate(all="ignore"):
        found = compute(aval.dtype, *values)
    if found is None:
        return None
    found = aval.dtype.type(found)
    return [Literal(found, aval)] if is_plain(found) else None


def convert_exactly(dtype: np.dtype, x: Any) -> Any:
    """Return a number in another dtype; None where that would round it."""
    return dtype.type(x) if is_exact_conversion(x, dtype) else None


def divide_floats(dtype: np.dtype, x: Any, y: Any) -> Any:
    """Return x / y; None for integers: NumPy has no result for their division by zero."""
    return None if dtypes.is_integer(dtype) else np.true_divide(x, y)


def is_plain(x: Any) -> bool:
    """Return True if a number has one representation: it is not NaN, and not subnormal."""
    if x.dtype.kind in "biu":
        return True
    if x.dtype not in (np.float32, np.float64):
        return False  # of narrower floats XLA may round in other places
    return bool(x == 0 or abs(x) >= np.finfo(x.dtype).tiny)


def is_exact_conversion(x: Any, dtype: np.dtype) -> bool:
    """Return True if a number exists in another dtype as well, so that it is not rounded."""
    if dtype.kind not in "biuf" or not np.isfinite(x):
        return False
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= x <= np.iinfo(dtype).max:
        return False
    return bool(dtype.type(x) == x)


def ignore_dtype(compute: Callable) -> Callable:
    """Return a function (dtype, *numbers) that computes with the numbers."""
    return lambda dtype, *numbers: compute(*numbers)


# Operations that IEEE 754 rounds correctly, so that NumPy and XLA return the same bits.
EXACT: dict[Primitive, Callable] = {
    convert_element_type_p: convert_exactly,
    ops.div_p: divide_floats,
    ops.add_p: ignore_dtype(operator.add),
    ops.sub_p: ignore_dtype(operator.sub),
    ops.mul_p: ignore_dtype(operator.mul),
    ops.neg_p: ignore_dtype(operator.neg),
    ops.abs_p: ignore_dtype(np.abs),
    ops.floor_p: ignore_dtype(np.floor),
    ops.ceil_p: ignore_dtype(np.ceil),
    sqrt_p: ignore_dtype(np.sqrt),
    ops.eq_p: ignore_dtype(operator.eq),
    ops.ne_p: ignore_dtype(operator.ne),
    ops.lt_p: ignore_dtype(operator.lt),
    ops.le_p: ignore_dtype(operator.le),
    ops.gt_p: ignore_dtype(operator.gt),
    ops.ge_p: ignore_dtype(operator.ge),
    ops.and_p: ignore_dtype(operator.and_),
    ops.or_p: ignore_dtype(operator.or_),
    ops.xor_p: ignore_dtype(operator.xor),
    ops.not_p: ignore_dtype(operator.invert),
}
