"""Constant folding: operations on numbers that are known, done once and for all."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, memo_jaxpr
from weft.passes.rewrite import rewrite_equations

# Operations of which NumPy gives the same bits as the engine: those that IEEE 754 rounds correctly.
# The name is of the language; what a library calls so is left alone.
EXACT: dict[str, Callable] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg,
    "div": np.true_divide, "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "sqrt": np.sqrt,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "not": operator.invert,
}  # fmt: skip


@memo_jaxpr
def fold_constants(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` with numbers in place of operations on numbers: `2.0 * 3.0` is 6.0.

    Scalars alone, so that no program grows; and only what gives the same bits wherever it is
    computed, which leaves out subnormal numbers and division of integers.
    """
    return rewrite_equations(jaxpr, fold_constants, fold_equation)


def is_own(eqn: Eqn) -> bool:
    """Whether an equation is of an operation of weft's own, which is what its name says."""
    return type(eqn.primitive).__module__.startswith("weft.primitives.")


def fold_equation(eqn: Eqn) -> Sequence[Atom] | None:
    """The number that is the result of an equation, if it can be known."""
    if not is_own(eqn) or len(eqn.outvars) != 1 or eqn.outvars[0].aval.shape:
        return None
    if not eqn.invars or any(type(a) is not Literal for a in eqn.invars):
        return None
    name, aval = eqn.primitive.name, eqn.outvars[0].aval
    values = [a.aval.dtype.type(a.val) for a in eqn.invars]  # type: ignore[union-attr]
    if not all(is_plain(v) for v in values):
        return None
    with np.errstate(all="ignore"):
        if name == "convert_element_type" and is_exact_conversion(values[0], aval.dtype):
            found = aval.dtype.type(values[0])
        elif name in EXACT and not (name == "div" and dtypes.is_integer(aval.dtype)):
            found = EXACT[name](*values)
        else:
            return None
    found = aval.dtype.type(found)
    return [Literal(found, aval)] if is_plain(found) else None


def is_plain(x: Any) -> bool:
    """Whether a number is the same everywhere: no NaN, of which there are many; not subnormal."""
    if x.dtype.kind in "biu":
        return True
    if x.dtype not in (np.float32, np.float64):
        return False  # of narrower floats the engine may round in other places
    return bool(x == 0 or abs(x) >= np.finfo(x.dtype).tiny)


def is_exact_conversion(x: Any, dtype: np.dtype) -> bool:
    """Whether a number is one of another dtype as well, so that nothing is rounded or cut off."""
    if dtype.kind not in "biuf" or not np.isfinite(x):
        return False
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= x <= np.iinfo(dtype).max:
        return False
    return bool(dtype.type(x) == x)
