"""The facts about functions in a whole program, on which choices for each of them depend.

functions.py makes the choices. It is imported with its formulas when a program has a function.
"""

from __future__ import annotations

import math

import numpy as np

from weft import dtypes
from weft.core.facts import Elements
from weft.core.form import Form
from weft.core.jaxpr import Jaxpr, Literal, held_jaxprs, memo_jaxpr
from weft.primitives import circular, wide
from weft.primitives.expr import F32, F64
from weft.primitives.transcendental import HALVES

HALF_FORMULAS = frozenset(circular.FORMULAS)
LONG = {  # functions that have a formula, by dtype; it is some 60 operations
    F32: HALF_FORMULAS.union(("pow", "rem")),
    F64: frozenset(wide.FORMULAS).union(("pow", "rem", "erf")),
    **dict.fromkeys(map(np.dtype, HALVES), HALF_FORMULAS),
}


@memo_jaxpr
def count_functions(jaxpr: Jaxpr) -> int:
    """Return how many equations of a program, and of those that it holds, may become formulas.

    XLA:CPU compiles a formula in 10 ms. No way of calling one that is written once is any shorter,
    for it copies what is called. So formulas are for larger arrays where there are many.
    """
    count = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.form in (Form.FUNCTION, Form.REMAINDER):
            count += eqn.primitive.name in LONG.get(eqn.outvars[0].aval.dtype, ())
        elif not eqn.primitive.memoize_type:  # else it holds nothing
            count += sum(map(count_functions, held_jaxprs(eqn)))
    return count


@memo_jaxpr
def may_fold_nan(jaxpr: Jaxpr) -> bool:
    """Return True if numbers in a program, or in one that it holds, may show that a value is NaN.

    That is so for a NaN, for an infinity except where elements are only chosen, for a division by
    0, and for a function of numbers.
    """
    for eqn in jaxpr.eqns:
        prim, numbers = eqn.primitive, [a.val for a in eqn.invars if type(a) is Literal]
        if numbers and dtypes.is_float(eqn.invars[-1].aval.dtype):
            only = len(numbers) == len(eqn.invars) and prim.form is Form.FUNCTION
            if only or (prim.form is Form.QUOTIENT and numbers[-1] == 0):
                return True
            new = prim.elements is Elements.NEW
            if any(x != x or (new and abs(x) == math.inf) for x in numbers):
                return True
        if not prim.memoize_type and any(map(may_fold_nan, held_jaxprs(eqn))):
            return True
    return False
