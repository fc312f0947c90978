"""Operations on each element: rows of names of operators, and formulas where ONNX has none.

Operands are tensors that broadcast to the shape of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.export.onnx.graph import BITS_OPSET, Graph, NotInOnnx
from weft.export.onnx.kinds import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I64,
    U32,
    U64,
    has_kind,
    is_unsigned,
    unsigned_dtype,
    wide_dtype,
)
from weft.export.recorder import read_numbers
from weft.xla.hlo import Value


class Term:
    """A tensor with the operators of Python; numbers become tensors of its dtype."""

    def __init__(self, graph: Graph, name: str, dtype: np.dtype):
        self.graph, self.name, self.dtype = graph, name, dtype

    def number(self, x: Any) -> Term:
        """Return a number of the same dtype."""
        return (
            x
            if isinstance(x, Term)
            else Term(self.graph, self.graph.tensor(x, self.dtype), self.dtype)
        )

    def apply(self, operator: str, *others: Any, out: Any = None, **attrs: Any) -> Term:
        """Write an operator on this tensor and others of its dtype."""
        names = [self.name, *[self.number(x).name for x in others]]
        name = self.graph.apply(operator, self.dtype, *names, out=out, **attrs)
        return Term(self.graph, name, out or self.dtype)

    def cast(self, dtype: Any) -> Term:
        """Convert to a dtype."""
        return Term(
            self.graph, self.graph.cast(self.name, self.dtype, np.dtype(dtype)), np.dtype(dtype)
        )

    def bits(self, dtype: np.dtype) -> Term:
        """Read the same bits as another dtype of the same width."""
        if dtype == self.dtype:
            return self
        if not {dtype.kind, self.dtype.kind} - {"i", "u"}:
            return self.cast(dtype)
        self.graph.opset = BITS_OPSET
        name = self.graph.node("BitCast", self.name, to=self.graph.type_number(dtype))
        return Term(self.graph, name, dtype)

    def where(self, yes: Any, no: Any) -> Term:
        """Choose between two values by this condition."""
        some = yes if isinstance(yes, Term) else no
        wide = wide_dtype("Where", some.dtype)
        yes, no = (some.number(x).cast(wide) for x in (yes, no))
        name = self.graph.node("Where", self.name, yes.name, no.name)
        return Term(self.graph, name, wide).cast(some.dtype)

    def compare(self, operator: str, other: Any) -> Term:
        return self.apply(operator, other, out=BOOL)

    def shift(self, direction: str, count: Any) -> Term:
        """Shift an unsigned integer by less than its width."""
        return self.apply("BitShift", count, direction=direction)

    def __add__(self, other: Any) -> Term:
        return self.apply("Add", other)

    def __sub__(self, other: Any) -> Term:
        return self.apply("Sub", other)

    def __rsub__(self, other: Any) -> Term:
        return self.number(other) - self

    def __mul__(self, other: Any) -> Term:
        return self.apply("Mul", other)

    def __truediv__(self, other: Any) -> Term:
        return self.apply("Div", other)

    def __neg__(self) -> Term:
        return self.apply("Neg")

    def __and__(self, other: Any) -> Term:
        return self.apply("And" if self.dtype == BOOL else "BitwiseAnd", other)

    def __or__(self, other: Any) -> Term:
        return self.apply("Or" if self.dtype == BOOL else "BitwiseOr", other)

    def __xor__(self, other: Any) -> Term:
        return self.apply("Xor" if self.dtype == BOOL else "BitwiseXor", other)

    def __invert__(self) -> Term:
        return self.apply("Not" if self.dtype == BOOL else "BitwiseNot")

    __radd__, __rmul__ = __add__, __mul__


# --- integers ---


def divide(x: Term, y: Term) -> Term:
    """x / y. An integer divided by 0 is -1. The smallest integer divided by -1 is itself."""
    if not dtypes.is_integer(x.dtype):
        return x / y
    zero = y.compare("Equal", 0)
    if is_unsigned(x.dtype):
        return zero.where(int(dtypes.iinfo(x.dtype).max), x / zero.where(1, y))
    flips = y.compare("Equal", -1)
    whole = x / (zero | flips).where(1, y)
    return zero.where(-1, flips.where(-x, whole))


def remainder(x: Term, y: Term) -> Term:
    """The remainder of x / y, with the sign of x. That of an integer divided by 0 is x."""
    if not dtypes.is_integer(x.dtype):
        return x.apply("Mod", y, fmod=1)
    zero = y.compare("Equal", 0)
    some = zero.where(1, y)
    if not is_unsigned(x.dtype):
        some = some.compare("Equal", -1).where(1, some)
    return zero.where(x, x - (x / some) * some)


def power(x: Term, y: Term) -> Term:
    """x ** y; of integers by squaring, since operators compute it in floats."""
    if not dtypes.is_integer(x.dtype):
        return x.apply("Pow", y)
    total, base = x.number(1), x
    for k in range(x.dtype.itemsize * 8 if is_unsigned(x.dtype) else x.dtype.itemsize * 8 - 1):
        bit = y & x.number(1 << k)
        total = bit.compare("Equal", 0).where(total, total * base)
        base = base * base
    ones = x.compare("Equal", 1).where(x.number(1), x.number(0))
    if is_unsigned(x.dtype):
        return total
    odd = (y & x.number(1)).compare("Equal", 0).where(x.number(1), x)
    small = x.compare("Equal", -1).where(odd, ones)
    return y.compare("Less", 0).where(small, total)


def shift_left(x: Term, y: Term) -> Term:
    """Shift bits to the left. The result is 0 if the count is at least the width."""
    return shift(x, y, "LEFT")


def shift_right(x: Term, y: Term) -> Term:
    """Shift bits to the right, and fill with zeros."""
    return shift(x, y, "RIGHT")


def shift(x: Term, y: Term, direction: str) -> Term:
    """Shift the bits of an integer. The result is 0 if the count is at least the width."""
    dtype, width = x.dtype, x.dtype.itemsize * 8
    x, y = x.cast(unsigned_dtype(dtype)), y.cast(unsigned_dtype(dtype))
    if is_constant_below(y, width):
        return x.shift(direction, y).cast(dtype)
    some = y.compare("Less", width)
    return some.where(x.shift(direction, some.where(y, 0)), 0).cast(dtype)


def is_constant_below(x: Term, limit: int) -> bool:
    """Return True if a tensor is a constant and its elements are below a limit."""
    found = next((t for t in x.graph.initializers.values() if t.name == x.name), None)
    return found is not None and bool((x.graph.onnx.numpy_helper.to_array(found) < limit).all())


def shift_right_signed(x: Term, y: Term) -> Term:
    """Bits moved to the right, with copies of the sign in front."""
    if is_unsigned(x.dtype):
        low = shift_right(x, y)
        huge = y.compare("Less", x.dtype.itemsize * 8)
        sign = shift_right(x, y.number(x.dtype.itemsize * 8 - 1)).compare("Equal", 0)
        ones = ~shift_right(x.number(int(dtypes.iinfo(x.dtype).max)), y)
        return huge.where(sign.where(low, low | ones), sign.where(x.number(0), ~x.number(0)))
    negative = x.compare("Less", 0)
    moved = shift_right(negative.where(~x, x), y)
    return negative.where(~moved, moved)


def count_bits(x: Term) -> Term:
    """The number of bits that are 1."""
    dtype = x.dtype
    wide = np.dtype(np.uint64) if dtype.itemsize == 8 else U32
    y = x.cast(unsigned_dtype(dtype)).cast(wide)
    masks = (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F)
    first, second, third = (m & int(dtypes.iinfo(wide).max) for m in masks)
    y = y - (y.shift("RIGHT", 1) & first)
    y = (y & second) + (y.shift("RIGHT", 2) & second)
    y = (y + y.shift("RIGHT", 4)) & third
    ones = 0x0101010101010101 & int(dtypes.iinfo(wide).max)
    return (y * ones).shift("RIGHT", wide.itemsize * 8 - 8).cast(dtype)


def count_leading_zeros(x: Term) -> Term:
    """The number of zeros in front of the first bit that is 1."""
    dtype, width = x.dtype, x.dtype.itemsize * 8
    y, step = x.cast(unsigned_dtype(dtype)), 1
    while step < width:
        y = y | y.shift("RIGHT", step)
        step *= 2
    return count_bits(~y).cast(dtype)


def multiply_high(x: Term, y: Term) -> Term:
    """The upper half of the bits of a product of 32-bit integers."""
    if x.dtype.itemsize > 4:
        raise NotInOnnx("mulhi of 64-bit integers")
    wide = U64 if is_unsigned(x.dtype) else I64
    product = (x.cast(wide) * y.cast(wide)).cast(U64)
    return product.shift("RIGHT", 8 * x.dtype.itemsize).cast(x.dtype)


# --- floats ---


def in_float32(formula: Callable[..., Term]) -> Callable[..., Term]:
    """Compute a formula of 16-bit floats in float32."""

    def compute(*xs: Term) -> Term:
        dtype = xs[0].dtype
        wide = wide_dtype("", dtype)
        return formula(*[x.cast(wide) for x in xs]).cast(dtype)

    return compute


@in_float32
def expm1(x: Term) -> Term:
    """exp(x) - 1 as tanh(x / 2) * (exp(x) + 1), which loses nothing near 0."""
    return (x * 0.5).apply("Tanh") * (x.apply("Exp") + 1)


@in_float32
def log1p(x: Term) -> Term:
    """log(1 + x): the rounding of u = 1 + x is undone by x / (u - 1) (Higham 2002, problem 1.5)."""
    u = x + 1
    plain = u.apply("Log")
    near = u.compare("Equal", 1)
    ratio = x / near.where(1, u - 1)
    exact = near.where(x, plain * ratio)
    return u.apply("Abs").compare("Less", 1e6).where(exact, plain)


@in_float32
def cbrt(x: Term) -> Term:
    """The cube root: a power, with one step of Newton's method."""
    size = x.apply("Abs")
    y = size.apply("Pow", 1 / 3)
    zero = (size.compare("Equal", 0)) | size.apply("IsInf", out=BOOL)
    step = y - (y * y * y - size) / zero.where(1, y * y * 3)
    return x.apply("Sign") * zero.where(size, step)


@in_float32
def atan2(y: Term, x: Term) -> Term:
    """The angle of the point (x, y). The sign of a zero y decides on the side of a cut."""
    flat = y.apply("Abs").compare("LessOrEqual", x.apply("Abs"))
    both = (x.compare("Equal", 0)) & (y.compare("Equal", 0))
    infinite = x.apply("IsInf", out=BOOL) & y.apply("IsInf", out=BOOL)
    a, b = (infinite.where(v.apply("Sign"), v) for v in (x, y))
    small = (flat.where(b, a) / both.where(1, flat.where(a, b))).apply("Atan")
    minus = is_negative(y)
    half = minus.where(y.number(-math.pi), math.pi)
    right = is_negative(x).where(small + half, small)
    steep = minus.where(y.number(-math.pi / 2), math.pi / 2) - small
    flat_zero = is_negative(x).where(half, y)
    return both.where(flat_zero, flat.where(right, steep))


def is_negative(x: Term) -> Term:
    """Return where a float has the sign bit, as -0.0 has too."""
    zero = x.compare("Equal", 0)
    return zero.where(x.number(1) / x, x).compare("Less", 0)


def round_away(x: Term) -> Term:
    """Round to the nearest integer, and halves away from zero."""
    size = x.apply("Abs")
    low = size.apply("Floor")
    return x.apply("Sign") * (low + (size - low).compare("Less", 0.5).where(x.number(0), 1))


# Giles, Approximating the erfinv function (2011), the single precision of table 5.
NEAR = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
        -0.00125372503, -0.00417768164, 0.246640727, 1.50140941)  # fmt: skip
FAR = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
       -0.0076224613, 0.00943887047, 1.00167406, 2.83297682)  # fmt: skip


@in_float32
def erf_inv(x: Term) -> Term:
    """The inverse of erf, by two polynomials; in float64 with two steps of Halley's method."""
    w = -((1 - x) * (x + 1)).apply("Log")
    near = w.compare("Less", 5)
    base = near.where(w - 2.5, near.where(w.number(5), w).apply("Sqrt") - 3)
    total = near.where(x.number(NEAR[0]), FAR[0])
    for a, b in zip(NEAR[1:], FAR[1:], strict=True):
        total = total * base + near.where(x.number(a), b)
    y = total * x
    if x.dtype == F64:
        for _ in range(2):
            error = (y.apply("Erf") - x) / ((-(y * y)).apply("Exp") * (2 / math.sqrt(math.pi)))
            y = y - error / (y * error + 1)
    edge = x.apply("Abs").compare("Equal", 1)
    return edge.where(x * math.inf, y)


def next_after(x: Term, y: Term) -> Term:
    """The next float from x towards y: the next or the previous integer of its bits."""
    whole = np.dtype(f"int{8 * x.dtype.itemsize}")
    tiny = float(dtypes.finfo(x.dtype).smallest_subnormal)
    bits = x.bits(whole)
    up = x.compare("Less", y)
    outward = up.apply("Equal", x.compare("Greater", 0))
    moved = (bits + outward.where(bits.number(1), -1)).bits(x.dtype)
    least = up.where(x.number(tiny), -tiny)
    some = x.compare("Equal", 0).where(least, moved)
    some = x.compare("Equal", y).where(y, some)
    nan = x.apply("IsNaN", out=BOOL) | y.apply("IsNaN", out=BOOL)
    return nan.where(x.number(math.nan), some)


@in_float32
def sign(x: Term) -> Term:
    """The sign of a number; x itself where that is 0 or NaN."""
    if dtypes.is_integer(x.dtype):
        return x.apply("Sign")
    keeps = x.apply("IsNaN", out=BOOL) | x.compare("Equal", 0)
    return keeps.where(x, x.apply("Sign"))


# The operator of ONNX, or a formula of terms, for each operation of StableHLO and CHLO on each
# element, which gives the dtype of its operands.
ELEMENTWISE: dict[str, str | Callable[..., Term]] = {
    "abs": "Abs", "add": lambda x, y: x | y if x.dtype == BOOL else x + y,
    "and": lambda x, y: x & y, "atan2": atan2, "cbrt": cbrt, "ceil": "Ceil",
    "chlo.acos": "Acos", "chlo.acosh": "Acosh", "chlo.asin": "Asin", "chlo.asinh": "Asinh",
    "chlo.atan": "Atan", "chlo.atanh": "Atanh", "chlo.cosh": "Cosh", "chlo.erf": "Erf",
    "chlo.erf_inv": erf_inv, "chlo.mulhi": multiply_high, "chlo.next_after": next_after,
    "chlo.sinh": "Sinh", "chlo.tan": "Tan", "cosine": "Cos",
    "count_leading_zeros": count_leading_zeros, "divide": divide, "exponential": "Exp",
    "exponential_minus_one": expm1, "floor": "Floor", "log": "Log", "log_plus_one": log1p,
    "logistic": "Sigmoid",
    "maximum": lambda x, y: x | y if x.dtype == BOOL else x.apply("Max", y),
    "minimum": lambda x, y: x & y if x.dtype == BOOL else x.apply("Min", y),
    "multiply": lambda x, y: x & y if x.dtype == BOOL else x * y, "negate": "Neg",
    "not": lambda x: ~x, "or": lambda x, y: x | y, "popcnt": count_bits, "power": power,
    "remainder": remainder, "round_nearest_afz": round_away, "round_nearest_even": "Round",
    "rsqrt": lambda x: x.apply("Sqrt").apply("Reciprocal"),
    "shift_left": shift_left, "shift_right_arithmetic": shift_right_signed,
    "shift_right_logical": shift_right, "sign": sign, "sine": "Sin", "sqrt": "Sqrt",
    "subtract": "Sub", "tan": "Tan", "tanh": "Tanh", "xor": lambda x, y: x ^ y,
}  # fmt: skip

COMPARISONS = {
    "EQ": "Equal", "GE": "GreaterOrEqual", "GT": "Greater", "LE": "LessOrEqual", "LT": "Less",
    "NE": "Equal",
}  # fmt: skip


def compare(xs: Sequence[Term], out: ShapedArray, attrs: dict) -> Term:
    """Compare, as IEEE 754 says."""
    x, y = xs
    direction = attrs["comparison_direction"].rstrip(">").split()[-1]
    if "TOTALORDER" in attrs["compare_type"]:
        x, y = order_bits(x), order_bits(y)
    if x.dtype == BOOL and direction not in ("EQ", "NE"):
        x, y = x.cast(np.uint8), y.cast(np.uint8)
    found = x.compare(COMPARISONS[direction], y)
    return ~found if direction == "NE" else found


def order_bits(x: Term) -> Term:
    """The bits of a float as an integer whose order is total: -0 before 0, NaN at the ends."""
    whole = np.dtype(f"int{8 * x.dtype.itemsize}")
    bits = x.bits(whole)
    flipped = bits ^ int(dtypes.iinfo(whole).max)
    return bits.compare("Less", 0).where(flipped, bits)


def clamp(xs: Sequence[Term], out: ShapedArray, attrs: dict) -> Term:
    """Keep a number between two others."""
    low, x, high = xs
    return x.apply("Max", low).apply("Min", high)


def convert(xs: Sequence[Term], out: ShapedArray, attrs: dict) -> Term:
    """Convert to another dtype."""
    return xs[0].cast(out.dtype)


def bitcast(xs: Sequence[Term], out: ShapedArray, attrs: dict) -> Term:
    """Read the same bits as another dtype."""
    if xs[0].dtype.itemsize != out.dtype.itemsize or BOOL in (xs[0].dtype, out.dtype):
        raise NotInOnnx("a bitcast between widths")
    return xs[0].bits(out.dtype)


def is_finite(xs: Sequence[Term], out: ShapedArray, attrs: dict) -> Term:
    """Return True where a float is finite: not infinite and not NaN."""
    (x,) = xs
    return ~(x.apply("IsInf", out=BOOL) | x.apply("IsNaN", out=BOOL))


def reduce_precision(xs: Sequence[Term], out: ShapedArray, attrs: dict) -> Term:
    """Round to a narrower dtype that ONNX has."""
    widths = tuple(read_numbers(attrs[f"{name}_bits"])[0] for name in ("exponent", "mantissa"))
    narrow = {(5, 10): F16, (8, 7): BF16, (8, 23): F32, (11, 52): F64}.get(widths)
    if narrow is None:
        raise NotInOnnx("reduce_precision to a format that is no dtype")
    return xs[0].cast(narrow).cast(out.dtype)


def select(xs: Sequence[Term], out: ShapedArray, attrs: dict) -> Term:
    """Choose between two values."""
    mask, yes, no = xs
    return mask.where(yes, no)


TYPED: dict[str, Callable[[Sequence[Term], ShapedArray, dict], Term]] = {
    "bitcast_convert": bitcast, "clamp": clamp, "compare": compare, "convert": convert,
    "is_finite": is_finite, "reduce_precision": reduce_precision, "select": select,
}  # fmt: skip


def write_terms(name: str) -> Callable:
    """Return a function that writes an operation of the tables on each element."""
    row = ELEMENTWISE.get(name)

    def write(g: Graph, xs: Sequence[Value], outs: Sequence[ShapedArray], attrs: dict) -> list[str]:
        for v in (*[x.aval for x in xs], outs[0]):
            if not has_kind(v.dtype):
                raise NotInOnnx(str(v))
        terms = [Term(g, g.broadcastable(x), x.aval.dtype) for x in xs]
        if row is None:
            made = TYPED[name](terms, outs[0], attrs)
        elif isinstance(row, str):
            made = terms[0].apply(row, *terms[1:])
        else:
            made = row(*terms)
        if all(x.name in g.small for x in xs):
            rank = max(g.small[x.name][1] for x in xs)
            return [g.shrink(made.name, rank, outs[0])]
        return [made.name]

    return write


WRITERS = {name: write_terms(name) for name in (*ELEMENTWISE, *TYPED)}
