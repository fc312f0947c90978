"""Special functions with zeta functions in their formula, by the kernel of zeta functions.

They are apart from functions.py, which most programs need: special functions have large tables.
"""

from __future__ import annotations

from typing import Any

from weft.core.aval import ShapedArray
from weft.core.jaxpr import Eqn
from weft.cpu.formula import apply_formula
from weft.cpu.functions import Found, call_function, encode_function
from weft.cpu.kernels import call_native
from weft.cpu.opcodes import Own
from weft.cpu.scope import Scope
from weft.primitives.expr import Expr
from weft.primitives.special.functions import zeta_p
from weft.primitives.special.gamma import writing_zeta


def choose_zeta(eqn: Eqn, scope: Scope) -> Found:
    """Compute zeta by its kernel, also within the formulas of other functions."""
    prim, out = eqn.primitive, eqn.outvars[0].aval
    if not scope.target.kernels or type(out.size) is not int or not out.size:
        return None
    if found := call_function(eqn, scope):
        return found
    plain = ShapedArray(out.shape, out.dtype)
    return lambda *xs: apply_formula(write_by_zeta, xs, [plain], prim)


def write_by_zeta(hlo: Any, *args: Any) -> list:
    """Write a special function with calls of the kernel for zeta functions in its formula."""
    *values, prim = args
    with writing_zeta(write_zeta):
        return prim.lower(hlo, *values)


def write_zeta(x: Expr, q: Expr) -> Expr:
    """Write a call of the kernel of zeta(x, q), as exact as is wanted."""
    instruction = zeta_p if x.eps < 1e-10 else Own.ZETA_SINGLE
    program = encode_function(instruction, [True, True], x.dtype, is_loop=True)
    out = ShapedArray(x.shape, x.dtype)
    given = {"program": program}
    return x.new(call_native(x.hlo, "weft_program", [x.value, q.value], [out], given)[0])
