"""Functions of each element: calls of their kernel, and formulas for large arrays.

XLA:CPU calls the C library for each element of the sine, the power and others, in 3 to 13 ms for a
million elements. A formula (primitives/circular.py for float32, wide.py for float64) is vectorized
and takes 0.4 to 0.9 ms, but takes 10 ms to compile. The kernel, in native/functions.cc, takes 0.2
to 0.4 ms and nothing to compile, but fuses with nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.core.jaxpr import Atom, Eqn, Literal
from weft.core.primitive import Primitive
from weft.cpu.calls import call_kernel, cpu_call_p
from weft.cpu.counting import LONG
from weft.cpu.formula import apply_formula
from weft.cpu.opcodes import Kind, Operand, Step, encode_program
from weft.cpu.scope import Scope
from weft.primitives import circular, wide
from weft.primitives.cumulative import log_of_sum, logaddexp_p
from weft.primitives.elementwise import rem_p
from weft.primitives.expr import BF16, F32, F64, LARGE, Expr, is_large, write_int32_division
from weft.primitives.layout import broadcast_in_dim_p, convert
from weft.primitives.special.error import write_erf
from weft.primitives.special.formula import formula
from weft.primitives.special.gamma import writing_zeta
from weft.primitives.transcendental import HALVES, cosh_p, exp_p, log1p_p, pow_p, sinh_p
from weft.xla.foreign import Attribute

Found = Callable[..., list] | None

I32 = np.dtype(np.int32)
# Functions whose formulas are loops. They take ten times the kernel's time at any size, and 0.8 s
# to compile.
LOOPS = frozenset(("igamma", "igammac", "zeta", "zeta_single"))
# What the kernel computes if it is the whole program: XLA's loops take as long otherwise. Of
# float16 and bfloat16 in float32, except for WHOLE, which is for arrays 8 times as large.
WHOLE = frozenset("erf_inv erfc exp log logistic logit rsqrt sqrt tanh".split())  # noqa: SIM905
ALONE = {
    F32: WHOLE.union(("cosh", "exp2", "expm1", "log1p", "log2")),
    F64: frozenset(("exp", "log", "logistic")),
}
# What the kernel computes.
CALLED = {
    F32: ALONE[F32].union(
        circular.FORMULAS, ("pow", "rem", "sinh", "asinh", "acosh", "atanh", "logaddexp", "gelu")
    ),
    F64: ALONE[F64].union(("sin", "cos", "tan", "pow", "sinh", "cosh", "erf"), LOOPS),
}
# What it computes of arguments of the program only: a formula takes as long in one loop with what
# computes its operand.
GIVEN = {F32: frozenset(("atan2",)), F64: frozenset(("pow",))}
ROW_ELEMENTS = 256  # of an array that the kernel computes at once
PIECE_ELEMENTS = 4096  # that are worth another thread
MAX_CALL_BYTES = 1 << 23  # from here on memory for intermediate values takes longer than is saved
PERIODIC = frozenset(("sin", "cos", "tan"))  # formulas of float64 that first look at all elements
LATE = PERIODIC | {"log", "erf", "pow"}  # whose formulas pay from twice as many elements on
KNOWN_POWERS = frozenset((0.5, 1, 2, 3))  # which XLA computes by products and roots
INEXACT = frozenset((logaddexp_p, log1p_p, cosh_p))  # XLA's functions that are less exact
# XLA's code of these converts to integers, which LLVM leaves undefined for a NaN that it knows.
UNSAFE = frozenset((exp_p, sinh_p, cosh_p))


def pays(x: ShapedArray, scope: Scope, times: int = 1) -> bool:
    """Return True if an array is so large that a formula pays, in a program that has many."""
    return is_large(x) and x.size >= LARGE * times << (scope.target.functions // 4).bit_length()


# --- the kernel -------------------------------------------------------------------------------


def call_function(eqn: Eqn, scope: Scope) -> Found:
    """Return the call of the kernel of a function, if it is quicker.

    It takes a third to two thirds of a formula's time, and XLA no time to compile it. What would be
    a loop is a call at any size.
    """
    x, name, operands = eqn.outvars[0].aval, eqn.primitive.name, eqn.invars
    part = F32 if x.dtype in HALVES else x.dtype
    least = 0 if name in LOOPS else LARGE << 3 * (name in WHOLE)
    known = name in CALLED.get(part, ()) and (part == x.dtype or name not in WHOLE)
    if not known or type(x.size) is not int or x.size <= least or not scope.target.kernels:
        return None
    far = x.size * part.itemsize > MAX_CALL_BYTES and name not in LOOPS
    given = all(scope.is_argument(a) for a in operands if a.aval.shape)
    if far or name in ALONE[part]:
        if not scope.alone or scope.target.donated:
            return None
    elif name in GIVEN[part] and not given:
        return None
    if x.dtype == BF16 and given:  # else the operand would be rounded before
        part = BF16

    def call(*xs: Any) -> list:
        xs = tuple([convert(x, part) for x in xs])
        program = encode_function(name, [bool(x.shape) for x in xs], part)
        out = ShapedArray(x.shape, part)
        (y,) = call_kernel("weft_program", xs, [out], {"program": program})
        return [convert(y, x.dtype)]

    return call


def encode_function(name: str, full: Sequence[bool], dtype: np.dtype) -> list[int]:
    """Return the program of a function, whose operands are arrays where `full` and else scalars.

    bfloat16 is computed in float32.
    """
    operands = [Operand(i, Kind.FULL if x else Kind.SCALAR) for i, x in enumerate(full)]
    name = "power_of" if name == "pow" and not full[0] else name
    piece = 1 if name in LOOPS else PIECE_ELEMENTS // ROW_ELEMENTS
    if dtype != BF16:
        steps = [Step(name, "out", Kind.FULL, dtype, [x.value for x in operands])]
    else:
        convert = "convert_element_type"
        steps = [Step(convert, ("wide", i), kind, F32, [i]) for i, kind, _ in operands]
        steps.append(Step(name, "wide", Kind.FULL, F32, [step.value for step in steps]))
        steps.append(Step(convert, "out", Kind.FULL, BF16, ["wide"]))
    program = encode_program(operands, steps, ROW_ELEMENTS, piece)
    assert program is not None  # it has few steps
    return program


# --- the choices ------------------------------------------------------------------------------


def choose_function(eqn: Eqn, scope: Scope) -> Found:
    """Compute a function by its kernel, or a large array by a formula."""
    prim, size = eqn.primitive, eqn.outvars[0].aval.size
    if eqn.params.get("accuracy") is not None:
        return None
    if type(size) is int and size < LARGE and prim.name not in LOOPS:
        return choose_exact(eqn, scope) if prim in INEXACT or prim in UNSAFE else None
    if prim is pow_p and is_known_power(eqn.invars[1], eqn.outvars[0].aval.dtype):
        return None
    found = call_function(eqn, scope)
    return found or choose_formula(eqn, scope) or choose_exact(eqn, scope)


def is_known_power(atom: Atom, dtype: np.dtype) -> bool:
    """Return True if an exponent is a number that XLA computes powers by in another way."""
    return type(atom) is Literal and atom.aval.dtype == dtype and abs(atom.val) in KNOWN_POWERS


def choose_formula(eqn: Eqn, scope: Scope) -> Found:
    """Return the formula of a function, if it pays for arrays of this size."""
    out, name = eqn.outvars[0].aval, eqn.primitive.name
    if name not in LONG.get(out.dtype, ()):
        return None
    if out.dtype == F64 and name in PERIODIC and scope.target.devices:
        return None
    if not pays(out, scope, 1 << (out.dtype == F64 and name in LATE)):
        return None
    plain = ShapedArray(out.shape, out.dtype)
    return lambda *xs: apply_formula(write_function, xs, [plain], name, plain)


def write_function(hlo: Any, *args: Any) -> list:
    """Write the formula of a function, with operands of the type of the result."""
    *values, name, out = args
    values = [hlo.spread(hlo.convert(v, out.dtype), out) for v in values]
    if name == "erf":
        return [formula(write_erf)(hlo, out, *values)]
    operands = [Expr(hlo, v) for v in values]
    if name == "pow":
        return [circular.write_power(*operands).value]
    if name == "rem":
        return [circular.write_remainder(*operands).value]
    return [circular.write_circular(name, *operands).value]


def choose_exact(eqn: Eqn, scope: Scope) -> Found:
    """Return what is more exact than XLA's function, at any size."""
    prim, out = eqn.primitive, eqn.outvars[0].aval
    plain = ShapedArray(out.shape, out.dtype)
    if prim is logaddexp_p:
        return lambda *xs: [log_of_sum(*[spread_scalar(x, plain) for x in xs])]
    if prim is log1p_p and out.dtype in (F32, F64):
        return lambda x: apply_formula(write_log1p, [x], [plain])
    if prim is cosh_p and out.dtype == F64:
        return lambda x: apply_formula(write_cosh, [x], [plain])
    if prim in UNSAFE and scope.target.folds_nan and dtypes.is_float(out.dtype):
        return lambda x: apply_formula(write_keeping_nan, [x], [plain], prim)
    return None


def spread_scalar(x: Any, out: ShapedArray) -> Any:
    """Return a scalar repeated to the shape of a result; an array as it is."""
    if x.shape == out.shape:
        return x
    return broadcast_in_dim_p.apply(x, shape=out.shape, broadcast_dimensions=(), sharding=None)[0]


def write_log1p(hlo: Any, x: Any) -> list:
    """Write log(1 + x); XLA's is up to 128 units off near -0.4 in float64, and slower."""
    return [wide.write_log1p(Expr(hlo, x)).value]


def write_keeping_nan(hlo: Any, x: Any, prim: Primitive) -> list:
    """Write a function whose NaN LLVM cannot fold: the exponential of it would be uninitialized."""
    (y,), x = prim.lower(hlo, x), Expr(hlo, x)
    return [x.compare("NE", x).select(x, Expr(hlo, y)).value]


def write_cosh(hlo: Any, x: Any) -> list:
    """Write the hyperbolic cosine of float64."""
    return [wide.hyperbolic(False)(Expr(hlo, x)).value]


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
    name = "zeta" if x.eps < 1e-10 else "zeta_single"
    program = encode_function(name, [True, True], x.dtype)
    given = (("program", Attribute("program", program)),)
    outs = (ShapedArray(x.shape, x.dtype),)
    params = dict(kernel="weft_program", outs=outs, attributes=given, aliases=())
    return x.new(cpu_call_p.lower(x.hlo, x.value, q.value, **params)[0])


# --- divisions --------------------------------------------------------------------------------


def choose_remainder(eqn: Eqn, scope: Scope) -> Found:
    """Compute the remainder of large arrays by the kernel or a formula."""
    out, y = eqn.outvars[0].aval, eqn.invars[1]
    if out.dtype not in (F32, F64):
        return choose_quotient(eqn, scope)
    if is_power_of_two(y) or scope.target.devices or not pays(out, scope):
        return None
    return call_function(eqn, scope) or choose_formula(eqn, scope)


def is_power_of_two(atom: Atom) -> bool:
    """Return True for a divisor with which XLA rounds a quotient exactly."""
    return type(atom) is Literal and math.frexp(atom.val)[0] == 0.5


def choose_quotient(eqn: Eqn, scope: Scope) -> Found:
    """Divide large arrays of int32 by vectors of float64.

    XLA divides by one number quickly, if it knows that it is one.
    """
    out, y = eqn.outvars[0].aval, eqn.invars[1]
    if out.dtype != I32 or not is_large(out) or scope.target.devices or is_one_number(y, scope):
        return None
    op = "remainder" if eqn.primitive is rem_p else "divide"
    plain = ShapedArray(out.shape, out.dtype)
    return lambda *xs: apply_formula(
        write_int32_division, [spread_scalar(x, plain) for x in xs], [plain], op
    )


def is_one_number(atom: Atom, scope: Scope) -> bool:
    """Return True if an operand is a scalar, or one that is repeated."""
    maker = scope.maker(atom)
    if maker is not None and maker.primitive is broadcast_in_dim_p:
        (atom,) = maker.invars
    return not atom.aval.shape
