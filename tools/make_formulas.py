"""Write native/derived.h: formulas of primitives/ in C++, for the vectors of the kernels.

A formula is a Python function of `Expr`s, which write StableHLO where XLA computes it. Here it is
called with `Lanes`, which write C++ for a vector of float64 (`D`). Each lane is an element.
Run it when one of these formulas is changed: `python tools/make_formulas.py`.
tests/cpu/test_opcodes.py fails while the file is not the one that this program writes.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weft.core.aval import ShapedArray
from weft.primitives import circular, wide
from weft.primitives.expr import F64, Expr
from weft.primitives.special import error, gamma

HEADER = Path(__file__).parents[1] / "src/weft/native/derived.h"
TEXT = """\
// Written by tools/make_formulas.py, from the formulas of primitives/.

{tables}

{functions}
"""
BOOL, I32, I64 = (np.dtype(t) for t in ("bool", "int32", "int64"))
VECTORS = {F64: "D", I64: "I", I32: "I", BOOL: "I"}
MAX_INLINE = 60  # characters of an expression that is written where it is used

# Operations in C++, of operands {0}, {1}, ... of vectors of float64. Where the first operand of a
# minimum or a maximum is NaN, the result is the second one, so a formula has to choose NaN itself.
# Integers of 32 bits are kept in 64, and are not cut to 32.
DOUBLES = {
    "add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}", "divide": "{0} / {1}",
    "minimum": "Least({0}, {1})", "maximum": "Largest({0}, {1})", "negate": "-{0}",
    "exponential_minus_one": "EachExpm1({0})", "power": "WidePowerUsual({0}, {1})",
    "abs": "Abs({0})", "sqrt": "FullRoot({0})", "exponential": "WideExp({0})",
    "round_nearest_even": "Nearest({0})", "select": "{0} ? {1} : {2}",
}  # fmt: skip
# Of integers, whose sums and differences wrap, and of bools, which are masks of all bits.
INTEGERS = {
    "add": "(I)({0} + {1})", "subtract": "(I)({0} - {1})", "and": "{0} & {1}",
    "or": "{0} | {1}", "xor": "{0} ^ {1}", "not": "~{0}", "select": "{0} ? {1} : {2}",
    "shift_left": "(I)({0} << {1})", "shift_right_arithmetic": "{0} >> {1}",
    "shift_right_logical": "(I)({0} >> {1})",
}  # fmt: skip
CONVERSIONS = {
    (F64, I32): "Whole({0})", (I32, F64): "Number({0})", (I64, I32): "{0}", (I32, I64): "{0}",
    (I64, F64): "__builtin_convertvector({0}, D)",
}  # fmt: skip
COMPARISONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


class Node:
    """A value of a C++ function: an operation on others, or a constant, or an operand."""

    def __init__(self, aval: ShapedArray, pattern: str, *operands: Node, constant: Any = None):
        self.aval, self.pattern, self.operands, self.constant = aval, pattern, operands, constant


class Lanes(Expr):
    """An `Expr` of the lanes of a vector."""

    def scale(self, n: Expr) -> Expr:
        """x 2**n of a whole number, rounded once."""
        return self.new(Node(self.aval, "Scale({0}, {1})", self.value, n.value))

    def product_error(self, other: Any, product: Expr) -> Expr:
        """The rounding error of a product, by a product and a sum that are rounded once."""
        operands = self.value, self.like(other).value, product.value
        return self.new(Node(self.aval, "ProductError({0}, {1}, {2})", *operands))

    def inverse(self) -> Expr:
        """Return 1 / x with an error of 1 ulp, for x neither huge nor tiny."""
        return self.new(Node(self.aval, "Inverse({0})", self.value))

    def ratio(self, other: Expr) -> Expr:
        """Return x / y with 42 correct bits, for y neither huge nor tiny."""
        return self.new(Node(self.aval, "Quotient({0}, {1})", self.value, other.value))

    def polynomial(self, coefficients: Sequence[float]) -> Expr:
        """The sum of coefficients[k] x**k, by even and odd powers."""
        table = self.hlo.find_table(tuple(map(float, coefficients)))
        return self.new(Node(self.aval, f"Polynomial({{0}}, {table})", self.value))


class Writer:
    """Writes operations as `Builder` does for lowerings, but in C++."""

    platform = "cpu"

    def __init__(self) -> None:
        self.tables: dict[tuple[float, ...], str] = {}

    def find_table(self, numbers: tuple[float, ...]) -> str:
        """Return the name of the coefficients of a polynomial."""
        return self.tables.setdefault(numbers, f"kTable{len(self.tables)}")

    def constant(self, value: Any, aval: ShapedArray) -> Node:
        """Return a number."""
        return Node(aval, "", constant=value)

    def op(self, name: str, operands: Sequence[Node], outs: Sequence[ShapedArray]) -> list[Node]:
        """Return the result of an operation of StableHLO."""
        name, (out,) = name.removeprefix("stablehlo."), outs
        if name == "bitcast_convert":
            pattern = f"({VECTORS[out.dtype]}){{0}}"
        elif name == "clamp":
            low, x, high = operands
            return self.like("minimum", *self.like("maximum", x, low), high)
        else:
            pattern = (DOUBLES if out.dtype == F64 else INTEGERS)[name]
            if pattern.startswith("(I)("):  # of bits without a sign
                for i in [i for i, x in enumerate(operands) if x.constant is None]:
                    pattern = pattern.replace(f"{{{i}}}", f"(U){{{i}}}")
        return [Node(out, pattern, *operands)]

    def like(self, name: str, *operands: Node) -> list[Node]:
        """Return an operation whose result has the type of its first operand."""
        return self.op(name, operands, [operands[0].aval])

    def compare(self, direction: str, x: Node, y: Node) -> Node:
        """Return a comparison, whose result is a mask of all bits."""
        out = ShapedArray((), BOOL)
        return Node(out, f"{{0}} {COMPARISONS[direction]} {{1}}", x, y)

    def convert(self, x: Node, dtype: np.dtype) -> Node:
        """Return a conversion."""
        if x.aval.dtype == dtype:
            return x
        return Node(ShapedArray((), dtype), CONVERSIONS[x.aval.dtype, dtype], x)


class Function(NamedTuple):
    """A function of C++: the formula, the names of its operands, and the digits that it is for.

    It is inlined, except if it is `called`.
    """

    formula: Callable[..., Expr]
    operands: str = "x"
    eps: float = 2.0**-52
    called: bool = False


raise_single = lambda x, y: circular.single_power(x, y, usual=True)
FUNCTIONS = {
    "SineNear": Function(circular.circular_near(0)),
    "CosineNear": Function(circular.circular_near(1)),
    "SineFar": Function(circular.circular(0)),
    "CosineFar": Function(circular.circular(1)),
    "TangentFar": Function(circular.tangent),
    "AngleUsual": Function(lambda y, x: circular.find_angle(y, x, usual=True), "y x"),
    "Angle": Function(circular.find_angle, "y x"),
    "PowerUsual": Function(lambda x, y: circular.single_power(x, y, usual=True), "x y"),
    "Power": Function(
        lambda x, y: circular.finish_power(circular.single_power(abs(x), y), x, y), "x y"
    ),
    "SineUsual": Function(wide.sine_after(0)),
    "CosineUsual": Function(wide.sine_after(1)),
    "TangentUsual": Function(wide.sine_ratio),
    "HyperbolicSine": Function(wide.hyperbolic(True)),
    "HyperbolicCosine": Function(wide.hyperbolic(False)),
    "ErrorFunction": Function(error.write_erf),
    "Exponential": Function(wide.exponential, "r low"),
    "WidePowerUsual": Function(lambda x, y: wide.power(x, y, usual=True), "x y"),
    "WidePower": Function(lambda x, y: circular.finish_power(wide.power(abs(x), y), x, y), "x y"),
    "Density": Function(gamma.gamma_density, "a x", called=True),
    "TemmeTail": Function(lambda a, x: gamma.temme_tail(a, x)[1], "a x", called=True),
    "SmallUpper": Function(gamma.small_upper, "a x", called=True),
    "ZetaUsual": Function(lambda s, q: gamma.hurwitz_sum(s, q, s.like(0)), "s q", called=True),
    "ZetaSingle": Function(
        lambda s, q: gamma.hurwitz_sum(s, q, s.like(0), raise_single), "s q", 2.0**-23, called=True
    ),
    "LogUsual": Function(lambda x: wide.write_log(x, usual=True)),
    "LogAny": Function(wide.write_log_of_all),
}


def write_number(node: Node, pattern: str) -> str:
    """Return a constant as an operand of a pattern: most take a scalar, calls take a vector."""
    value = node.constant
    if node.aval.dtype != F64:
        large = "INT64_MIN" if value == -(1 << 63) else f"INT64_C({value})"
        return str(value) if abs(value) < 1 << 31 else large
    text = repr(float(value))
    if not math.isfinite(value):
        text = ("-" if value < 0 else "") + ("NAN" if value != value else "INFINITY")
    return f"Full({text})" if is_call(pattern) or "?" in pattern else text


def is_call(pattern: str) -> bool:
    """Return True for the call of a function, which needs no parentheses around it."""
    return re.match(r"\w+\(\{0\}", pattern) is not None


def write_function(name: str, function: Function, writer: Writer) -> str:
    """Return the text of a function in C++."""
    operands = function.operands.split()
    nodes = [Node(ShapedArray((), F64), operand) for operand in operands]
    result = function.formula(*[Lanes(writer, node, function.eps) for node in nodes]).value
    uses: dict[Node, int] = {}

    def count(node: Node) -> None:
        uses[node] = uses.get(node, 0) + 1
        if uses[node] == 1:
            for operand in node.operands:
                count(operand)

    count(result)
    lines: list[str] = []
    names = dict(zip(nodes, operands, strict=True))

    def write(node: Node, pattern: str) -> str:
        """Return an operand of a pattern, after writing the computations it needs."""
        if node.constant is not None:
            return write_number(node, pattern)
        if node in names:
            return names[node]
        text = node.pattern.format(*[write(x, node.pattern) for x in node.operands])
        if uses[node] == 1 and len(text) <= MAX_INLINE:
            return text if is_call(node.pattern) or is_call(pattern) else f"({text})"
        names[node] = f"t{len(names) - len(nodes)}"
        lines.append(f"const {VECTORS[node.aval.dtype]} {names[node]} = {text};")
        return names[node]

    last = write(result, "return({0})")
    lines.append(f"return {last};")
    kind = "WEFT_HERE_CALLED" if function.called else "WEFT_HERE"
    head = f"{kind} D {name}({', '.join('D ' + x for x in operands)}) {{"
    wrap = lambda line: textwrap.fill(
        line, 100, initial_indent="  ", subsequent_indent="      ", break_long_words=False
    )
    return "\n".join([head, *map(wrap, lines), "}"])


def write_table(name: str, numbers: Sequence[float]) -> str:
    """Return the text of the coefficients of a polynomial."""
    text = f"constexpr double {name}[] = {{{', '.join(map(repr, numbers))}}};"
    return textwrap.fill(text, 100, subsequent_indent="    ", break_long_words=False)


def write_header() -> str:
    """Return the text of the header."""
    writer = Writer()
    functions = [write_function(name, f, writer) for name, f in FUNCTIONS.items()]
    tables = [write_table(name, numbers) for numbers, name in writer.tables.items()]
    return TEXT.format(tables="\n".join(tables), functions="\n\n".join(functions))


if __name__ == "__main__":
    HEADER.write_text(write_header())
