"""How many equations of a program may be written as formulas: XLA takes long to compile many.

The formulas are in primitives/circular.py and wide.py. Each is some 60 operations, which XLA:CPU
compiles in 10 ms; no way of calling one that is written once is any shorter, for it copies what is
called.
"""

from __future__ import annotations

import numpy as np

from weft.core.jaxpr import Jaxpr, held_jaxprs, memo_jaxpr

LONG = frozenset(("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "cbrt", "pow", "rem"))
WIDE = frozenset(("log", "sinh", "asinh", "erf"))  # of float64 alone


@memo_jaxpr
def count_formulas(jaxpr: Jaxpr) -> int:
    """How many equations of a program, and of those that it holds, compute such a function."""
    count = 0
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in LONG or (name in WIDE and eqn.outvars[0].aval.dtype == np.float64):
            count += 1
        elif not eqn.primitive.memoize_type:  # else it holds nothing
            count += sum(map(count_formulas, held_jaxprs(eqn)))
    return count
