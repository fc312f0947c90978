"""Circular functions, their inverses, cube roots, remainders of float32 on the CPU, as formulas.

XLA:CPU calls the C library for each element, in 3 to 13 ms for a million; a formula in float64 is
vectorized, takes 0.4 to 0.9, and is exact to 0.51 units. It is written for large arrays alone, as
it takes longer to compile than a call. Those of float64 are in wide.py, but for remainders. The
kernel that is called where there is one takes 0.2 to 0.4, and is exact to 1.7 units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray
from weft.passes.opcodes import Kind, Operand, Step, encode_program
from weft.primitives import wide
from weft.primitives.expr import BF16, F32, F64, LARGE, Expr, is_large, polynomial, write_division
from weft.primitives.wide import I32, I64, choose_if_any, write_log
from weft.xla.native import call_native, has_kernels

BITS = {F32: I32, F64: I64}
# of remainders: the least exponent of a divisor, as it is stored, that of a quotient that is too
# large, bits of the mantissa, the exponent of infinity
LIMITS = {F32: (27, 27, 23, 255), F64: (54, 50, 52, 2047)}

# 1 / (2 pi) in parts of 29 bits, whose products with a float32 are exact in float64, and a last one
# for products below 2**-17
_TURN = (
    *(0.15915494225919247, 8.327028684640414e-10, 5.69002511952534e-19),
    *(6.317065083361892e-27, 5.595982707708916e-36, 6.551007954373285e-45),
)
# Fits at Chebyshev's nodes, in x**2: sin(x) = x + x**3 p, cos(x) = 1 - x**2 / 2 + x**4 p for x up
# to pi / 4, atan(x) = x + x**3 p up to 1; each to 1e-9 of the result.
_SIN = (-0.166666666638356, 0.00833333186677624, -0.000198400823650868, 2.72493520493614e-06)
_COS = (0.0416666666643044, -0.00138888876652974, 2.48005966873925e-05, -2.73004757666554e-07)
_ATAN = (
    *(-0.333333332988677, 0.199999913424741, -0.142853521288634, 0.111051339539788),
    *(-0.0903946604820640, 0.0742750313090291, -0.0578314807122139, 0.0386392696068696),
    *(-0.0195234180464221, 0.00632959465485889, -0.000960571870189740),
)


def write_power(x: Expr, y: Expr) -> Expr:
    """x**y, of float32 as exp(y log |x|) of float64, but for signs and where that is 0 inf."""
    infinite, odd = abs(y).compare("EQ", math.inf), y * 0.5
    whole = y.apply("floor").compare("EQ", y)
    odd = whole & odd.apply("floor").compare("NE", odd)
    if x.dtype == F64:
        out = wide.power(abs(x), y)
    else:
        out = (write_log(abs(x).convert(F64)) * y.convert(F64)).apply("exponential").convert(F32)
    out = ((x.bitcast(BITS[x.dtype]) < 0) & odd).select(-out, out)
    out = (whole | (x >= 0) | (x <= -math.inf)).select(out, math.nan)
    one = y.compare("EQ", 0) | x.compare("EQ", 1) | (infinite & x.compare("EQ", -1))
    return one.select(x.like(1), out)


def find_quadrant(x: Expr) -> tuple[Expr, Expr, Expr]:
    """(sin r, cos r, k) of x = r + k pi / 2, |r| <= pi / 4: Payne and Hanek's reduction.

    Whole turns are taken off of each product of x with a part of 1 / (2 pi), which is exact.
    """
    *parts, last = _TURN
    turns = [t - t.apply("round_nearest_even") for t in (x * part for part in parts)]
    k = (sum(turns[1:], turns[0]) * 4).apply("round_nearest_even")
    r = (sum(turns[1:], turns[0] - k * 0.25) + x * last) * math.tau
    z = r * r
    cosine = 1 - z * 0.5 + z * z * polynomial(z, _COS)
    return r + r * z * polynomial(z, _SIN), cosine, k.convert(I32)


def circular(turned: int) -> Callable[[Expr], Expr]:
    """The sine, or that of x and `turned` quarters of a turn."""

    def write(x: Expr) -> Expr:
        sine, cosine, k = find_quadrant(x)
        k = k + turned if turned else k
        out = (k & 1).compare("NE", 0).select(cosine, sine)
        return (k & 2).compare("NE", 0).select(-out, out)

    return write


def tangent(x: Expr) -> Expr:
    """sin / cos, or of odd quarters -cos / sin."""
    sine, cosine, k = find_quadrant(x)
    odd = (k & 1).compare("NE", 0)
    return odd.select(-cosine, sine) / odd.select(sine, cosine)


def find_angle(y: Expr, x: Expr) -> Expr:
    """atan(y / x) in the quadrant of the point (x, y), x and y of either sign."""
    a, b = abs(y), abs(x)
    low, high = a.apply("minimum", b), a.apply("maximum", b)
    t = low.compare("EQ", high).select(low.like(1), low / high)  # infinities have a ratio too
    t = high.compare("EQ", 0).select(high, t)
    z = t * t
    angle = t + t * z * polynomial(z, _ATAN)
    angle = (a > b).select(math.pi / 2 - angle, angle)
    angle = (x.bitcast(I64) < 0).select(math.pi - angle, angle)
    angle = (y.bitcast(I64) < 0).select(-angle, angle)
    return x.compare("EQ", x).select(angle, x)  # a NaN in y is still there


def cube_root(x: Expr) -> Expr:
    """Two steps of Halley's method, from a third of the exponent (Kahan)."""
    a = abs(x)
    high = a.bitcast(I64).apply("shift_right_logical", 32).convert(I32)
    y = (high.apply("divide", 3) + 715094163).convert(I64).apply("shift_left", 32).bitcast(F64)
    for _ in range(2):
        cube = y * y * y
        y = y * (cube + a + a) / (cube + cube + a)
    y = (a < math.inf).select(y, a)
    return (x < 0).select(-y, y)


def write_remainder(hlo: Any, aval: ShapedArray, x: Any, y: Any) -> Any:
    """The remainder of x / y: of large arrays x - y floor(x / y), exact for quotients below 2**28.

    XLA:CPU calls the C library for each element, in 3 to 9 ms for a million; as it still is where
    there is any larger quotient. Of float64 multiples of 2**25 y are taken off first, and the limit
    is 2**50: a product with half of the bits of y is exact.
    """
    plain = lambda: Expr(hlo, write_division("remainder")(hlo, aval, x, y))
    number = next((key[0] for key, v in hlo.constants.items() if v is y), None)
    quick = isinstance(number, np.floating) and math.frexp(number)[0] == 0.5  # XLA rounds x / y
    if quick or not is_large(hlo, aval, F64, times=hlo.least) or hlo.devices:
        return plain().value
    if called := call_function(hlo, "rem", x, y):
        return called
    integer, (low, high, digits, limit) = BITS[aval.dtype], LIMITS[aval.dtype]
    sign = np.iinfo(integer).min
    bits, below = (Expr(hlo, v).bitcast(integer) & ~sign for v in (x, y))
    # where the quotient may be too large, or what is left so small that it is flushed to 0
    far = ((bits - below >= high << digits) & (bits < limit << digits)) | (below < low << digits)
    far = far & below.compare("NE", 0)

    def near() -> Expr:
        a, b = (abs(Expr(hlo, v).convert(F64)) for v in (x, y))
        half, rest = (b.bitcast(I64) & -(1 << 27)).bitcast(F64), a
        for unit in (1.0,) if aval.dtype == F32 else (2.0**25, 1.0):
            whole = (rest / b * (1 / unit)).apply("floor") * unit
            rest = (rest - whole * half) - whole * (b - half)
        # a / b may have been rounded to a whole number
        rest = (rest < 0).select(rest + b, rest).convert(aval.dtype).bitcast(integer)
        signed = rest | (Expr(hlo, x).bitcast(integer) & sign)
        return (a < b).select(Expr(hlo, x), signed.bitcast(aval.dtype))

    return choose_if_any(far, aval.dtype, near, plain).value


# of a right triangle whose hypotenuse is 1, the other leg
find_leg: Callable[[Expr], Expr] = lambda x: ((1 - x) * (1 + x)).apply("sqrt")
FORMULAS: dict[str, Callable[..., Expr]] = {
    "sin": circular(0), "cos": circular(1), "tan": tangent,
    "asin": lambda x: find_angle(x, find_leg(x)), "acos": lambda x: find_angle(find_leg(x), x),
    "atan": lambda x: find_angle(x, x.like(1)), "atan2": find_angle, "cbrt": cube_root,
}  # fmt: skip


def write_circular(name: str, *operands: Expr) -> Expr:
    """Write the formula of a function of floats of 64 bits, 32, or half as many."""
    x = operands[0]
    if x.dtype == F64:
        return wide.FORMULAS[name](*operands)
    out = FORMULAS[name](*[v.convert(F32).convert(F64) for v in operands])
    out = out.convert(F32).convert(x.dtype)
    odd = name not in ("cos", "acos", "atan2")
    return x.compare("EQ", 0).select(x, out) if odd else out  # -0 stays


BLOCK = 256  # elements for which a function has one formula
PIECE = 4096  # elements that are worth a thread
# of which formulas are loops: they take ten times as long at any size, and 0.8 s to compile
_LOOPS = ("igamma", "igammac", "zeta", "zeta_single")
# What native/functions.cc computes, and what of that where it is all of a program, as XLA's loops
# take as long; of float16 and bfloat16 in float32, but for WHOLE, which is of larger arrays.
WHOLE = frozenset("erf_inv erfc exp log logistic logit rsqrt sqrt tanh".split())  # noqa: SIM905
ALONE = {
    F32: WHOLE.union(("cosh", "exp2", "expm1", "log1p", "log2")),
    F64: frozenset(("exp", "log", "logistic")),
}
CALLED = {
    F32: ALONE[F32].union(
        FORMULAS, ("pow", "rem", "sinh", "asinh", "acosh", "atanh", "logaddexp", "gelu")
    ),
    F64: ALONE[F64].union(("sin", "cos", "tan", "pow", "sinh", "cosh", "erf"), _LOOPS),
}
# of what is computed before, a formula in the same loop takes as long
GIVEN = {F32: frozenset(("atan2",)), F64: frozenset(("pow",))}
_VAST = 1 << 23  # bytes from which on memory for intermediate values takes longer than is saved


def call_function(hlo: Any, name: str, *operands: Any) -> Any:
    """Write a call of the kernel of a function of a large array, or give None.

    It takes a third to two thirds of a formula's time, and XLA none to compile it. What would be
    a loop is a call at any size.
    """
    aval = operands[0 if operands[0].aval.shape else -1].aval
    part = F32 if aval.dtype.itemsize == 2 else aval.dtype
    least = 0 if name in _LOOPS else LARGE << 3 * (name in WHOLE)
    known = name in CALLED.get(part, ()) and (part == aval.dtype or name not in WHOLE)
    large = type(aval.size) is int and aval.size > least and known
    if not large or not has_kernels(hlo):
        return None
    vast = aval.size * part.itemsize > _VAST and name not in _LOOPS
    vast = vast or name in ALONE[part]
    given = all(v.is_argument for v in operands if v.aval.shape)
    if vast or name in GIVEN[part]:
        hlo.choices += 1
        if not (hlo.alone if vast else given):
            return None
    if aval.dtype == BF16:  # else the operand is not rounded before
        hlo.choices += 1
        part = BF16 if given else part
    out = aval.update(dtype=part).strong()
    values = [hlo.convert(v, part) for v in operands]
    program = write_program(name, [bool(v.aval.shape) for v in values], part)
    (y,) = call_native(hlo, "weft_program", values, [out], {"program": program})
    return hlo.convert(y, aval.dtype)


def write_program(name: str, full: Sequence[bool], dtype: np.dtype) -> list[int]:
    """Return the program of a function, whose operands are arrays where `full` and else scalars.

    bfloat16 is computed in float32.
    """
    operands = [Operand(i, Kind.FULL if x else Kind.SCALAR) for i, x in enumerate(full)]
    name = "power_of" if name == "pow" and not full[0] else name
    row, piece = BLOCK, 1 if name in _LOOPS else PIECE // BLOCK
    if dtype != BF16:
        steps = [Step(name, "out", Kind.FULL, dtype, [x.value for x in operands])]
    else:
        convert = "convert_element_type"
        steps = [Step(convert, ("wide", i), kind, F32, [i]) for i, kind, _ in operands]
        steps.append(Step(name, "wide", Kind.FULL, F32, [step.value for step in steps]))
        steps.append(Step(convert, "out", Kind.FULL, BF16, ["wide"]))
    program = encode_program(operands, steps, row, piece)
    assert program is not None  # it has few steps
    return program
