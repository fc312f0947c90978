"""Elementwise functions: calls of their kernel, and formulas for large arrays.

For the sine, the power and others, XLA:CPU calls the C library for each element: 3 to 13 ms for a
million elements. A formula (primitives/circular.py for float32, wide.py for float64) is vectorized
and takes 0.4 to 0.9 ms, but takes 10 ms to compile. The kernel, in native/functions.cc, takes 0.2
to 0.4 ms and no time to compile, but cannot be fused. The facts `kernel` and `formulas` of a
primitive name its kernel and its formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.core.facts import Cost
from weft.core.jaxpr import Eqn, Literal
from weft.core.primitive import Primitive
from weft.cpu.calls import call_kernel
from weft.cpu.formula import apply_formula
from weft.cpu.opcodes import Instruction, Kind, Operand, Own, Step, encode_program
from weft.cpu.scope import ROW_ELEMENTS, Scope
from weft.primitives.cumulative import log_of_sum
from weft.primitives.elementwise import Elementwise
from weft.primitives.expr import (
    BF16,
    F32,
    F64,
    LARGE,
    Expr,
    is_large,
    lower_integer_pow,
    write_int32_division,
)
from weft.primitives.kernels import Called
from weft.primitives.layout import broadcast_in_dim, convert
from weft.primitives.transcendental import HALVES
from weft.util import is_below

Found = Callable[..., list] | None

I32 = np.dtype(np.int32)
PIECE_ELEMENTS = 4096  # that are worth another thread
MAX_CALL_BYTES = 1 << 23  # from here on memory for intermediate values takes longer than is saved
MIN_ROOTS = 256  # elements of a power by a root
MAX_WAKING_SIZE = 1 << 14  # elements of a power that the kernel computes before XLA wakes a thread
MAX_ROOT_POWER = 6.5  # with larger ones, products of float32 may overflow in float64
KNOWN_POWERS = frozenset((0.5, 1, 2, 3))  # which XLA computes by products and roots


def pays(x: ShapedArray, scope: Scope, times: int = 1) -> bool:
    """Return True if an array is so large that a formula pays, in a program that has many."""
    return is_large(x) and x.size >= LARGE * times << (scope.target.functions // 4).bit_length()


# --- the kernel -------------------------------------------------------------------------------


def call_function(eqn: Eqn, scope: Scope, instruction: Instruction | None = None) -> Found:
    """Return the call of the kernel of a function, if it is quicker.

    It takes a third to two thirds of a formula's time, and XLA no time to compile it. A formula
    that is a loop takes ten times the kernel's time at any size, and 0.8 s to compile.
    """
    x, operands, prim = eqn.outvars[0].aval, eqn.invars, cast(Elementwise, eqn.primitive)
    part = F32 if x.dtype in HALVES else x.dtype
    called, is_loop = getattr(prim.kernel, part.name, None), prim.cost is Cost.ITERATIVE
    vectorized = called is Called.ALONE_LARGE
    least = 0 if is_loop else LARGE << 3 * vectorized
    known = called not in (None, Called.STEP) and (part == x.dtype or not vectorized)
    if not known or type(x.size) is not int or x.size <= least or not scope.target.kernels:
        return None
    far = x.size * part.itemsize > MAX_CALL_BYTES and not is_loop
    given = all(scope.is_argument(a) for a in operands if a.aval.shape)
    if far or vectorized or called is Called.ALONE:
        if not scope.alone or scope.target.donated:
            return None
    elif called is Called.ON_ARGUMENTS and not given:
        return None
    if x.dtype == BF16 and given:  # else the operand would be rounded before
        part = BF16

    def call(*xs: Any) -> list:
        xs = tuple([convert(x, part) for x in xs])
        program = encode_function(instruction or prim, [bool(x.shape) for x in xs], part, is_loop)
        out = ShapedArray(x.shape, part)
        (y,) = call_kernel("weft_program", xs, [out], {"program": program})
        return [convert(y, x.dtype)]

    return call


def encode_function(
    instruction: Instruction, full: Sequence[bool], dtype: np.dtype, is_loop: bool
) -> list[int]:
    """Return the program of a function, whose operands are arrays where `full` and else scalars.

    bfloat16 is computed in float32.
    """
    operands = [Operand(i, Kind.FULL if x else Kind.SCALAR) for i, x in enumerate(full)]
    piece = 1 if is_loop else PIECE_ELEMENTS // ROW_ELEMENTS
    if dtype != BF16:
        steps = [Step(instruction, "out", Kind.FULL, dtype, [x.value for x in operands])]
    else:
        convert = Own.CONVERT_ELEMENT_TYPE
        steps = [Step(convert, ("wide", x.value), x.kind, F32, [x.value]) for x in operands]
        steps.append(Step(instruction, "wide", Kind.FULL, F32, [step.value for step in steps]))
        steps.append(Step(convert, "out", Kind.FULL, BF16, ["wide"]))
    program = encode_program(operands, steps, ROW_ELEMENTS, piece)
    assert program is not None  # it has few steps
    return program


# --- the choices ------------------------------------------------------------------------------


def choose_function(eqn: Eqn, scope: Scope, instruction: Instruction | None = None) -> Found:
    """Compute a function by its kernel, or a large array by a formula."""
    if eqn.params.get("accuracy") is not None:
        return None
    found = call_function(eqn, scope, instruction) or choose_formula(eqn, scope)
    return found or (keep_nan(eqn) if scope.target.folds_nan else None)


def keep_nan(eqn: Eqn) -> Found:
    """Compute a function of one operand so that a known NaN stays NaN.

    LLVM leaves the conversion of a NaN to an integer undefined, if it knows the NaN.
    """
    out, prim = eqn.outvars[0].aval, eqn.primitive
    if len(eqn.invars) > 1 or not dtypes.is_inexact(out.dtype):
        return None
    plain = ShapedArray(out.shape, out.dtype)
    return lambda x: apply_formula(write_keeping_nan, [x], [plain], prim)


def choose_power_of_values(eqn: Eqn, scope: Scope) -> Found:
    """Compute a power as other functions, except for those that XLA computes in another way."""
    x, y = eqn.invars
    power = y.val if type(y) is Literal and y.aval.dtype == x.aval.dtype else None
    if power is not None and abs(power) in KNOWN_POWERS:
        return None
    least = MAX_WAKING_SIZE if scope.alone else MIN_ROOTS
    if power is not None and x.aval.dtype == F32 and not is_below(x.aval.size, least):
        by_root = float(2 * power).is_integer() and abs(power) <= MAX_ROOT_POWER
        if by_root and scope.target.kernels:
            out, given = ShapedArray(x.aval.shape, F32), float(power)
            return lambda x, y: apply_formula(write_root_power, [x], [out], given, by_element=True)
    return choose_function(eqn, scope, None if x.aval.shape else Own.POWER_OF)


def write_root_power(hlo: Any, x: Any, y: float) -> list:
    """Write x ** y of float32, for a multiple y of 1/2, by products and a root in float64.

    The result is rounded once. No product overflows in float64.
    """
    wide = base = Expr(hlo, x).convert(F64)
    count, half = divmod(round(abs(2 * y)), 2)
    if half:  # a root of -0 is 0, and of -inf inf
        root = wide.compare("EQ", -math.inf).select(wide.like(math.inf), abs(wide.apply("sqrt")))
        base = root if not count else abs(wide)
    out = Expr(hlo, lower_integer_pow(hlo, base.aval, base.value, y=max(count, 1)))
    out = out * root if half and count else out
    return [(out.inverse() if y < 0 else out).convert(F32).value]


def choose_log_of_sum(eqn: Eqn, scope: Scope) -> Found:
    """Compute the logarithm of a sum by the kernel, or by operations that are more exact."""
    out = eqn.outvars[0].aval
    plain = ShapedArray(out.shape, out.dtype)
    by_operations = lambda *xs: [log_of_sum(*[spread_scalar(x, plain) for x in xs])]
    return call_function(eqn, scope) or by_operations


def choose_formula(eqn: Eqn, scope: Scope) -> Found:
    """Return the formula of a function, if it pays for arrays of this size, or is more exact."""
    out, prim = eqn.outvars[0].aval, cast(Elementwise, eqn.primitive)
    formula = prim.formulas.get(out.dtype)
    if formula is None or (formula.looks and scope.target.devices):
        return None
    if formula.least and not pays(out, scope, formula.least):
        return None
    plain = ShapedArray(out.shape, out.dtype)
    return lambda *xs: apply_formula(write_function, xs, [plain], prim, plain)


def write_function(hlo: Any, *args: Any) -> list:
    """Write the formula of a function, with operands of the type of the result."""
    *values, prim, out = args
    values = [hlo.spread(hlo.convert(v, out.dtype), out) for v in values]
    return [prim.formulas[out.dtype].write(*[Expr(hlo, v) for v in values]).value]


def spread_scalar(x: Any, out: ShapedArray) -> Any:
    """Return a scalar repeated to the shape of a result; an array unchanged."""
    if x.shape == out.shape:
        return x
    return broadcast_in_dim(x, out.shape, ())


def write_keeping_nan(hlo: Any, x: Any, prim: Primitive) -> list:
    """Write a function whose NaN LLVM cannot fold: the exponential of it would be uninitialized.

    The imaginary part of a complex result stays 0 where the operand's part is 0, as of exp.
    """
    (y,), x = prim.lower(hlo, x), Expr(hlo, x)
    real = imag = x.part("real")
    if dtypes.is_complex(x.dtype):
        imag = x.part("imag")
        imag = imag.compare("NE", 0.0).select(real, imag)
    kept = imag if real is imag else real.make("complex", x.aval, imag)
    return [real.compare("NE", real).select(kept, Expr(hlo, y)).value]


# --- divisions --------------------------------------------------------------------------------


def choose_remainder(eqn: Eqn, scope: Scope) -> Found:
    """Compute the remainder of large arrays by the kernel or a formula."""
    out, y = eqn.outvars[0].aval, eqn.invars[1]
    if out.dtype not in (F32, F64):
        return choose_quotient(eqn, scope, "remainder")
    exact = type(y) is Literal and math.frexp(y.val)[0] == 0.5  # XLA rounds such a quotient exactly
    if exact or scope.target.devices or not pays(out, scope):
        return None
    return call_function(eqn, scope) or choose_formula(eqn, scope)


def choose_quotient(eqn: Eqn, scope: Scope, op: str = "divide") -> Found:
    """Divide large arrays of int32 by vectors of float64, or write their remainders.

    XLA divides by one number quickly, if it knows that it is one.
    """
    out, y = eqn.outvars[0].aval, eqn.invars[1]
    large = out.dtype == I32 and is_large(out) and not scope.target.devices
    if not large or not scope.find_repeated(y).aval.shape:
        return None
    plain = ShapedArray(out.shape, out.dtype)
    return lambda *xs: apply_formula(
        write_int32_division, [spread_scalar(x, plain) for x in xs], [plain], op
    )
