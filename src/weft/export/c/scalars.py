"""Operations on scalars in C: `ScalarWriter` is a Builder whose lowerings write statements of C.

The values of a lowering are scalars here, and named by variables of C. An operation of StableHLO is
one statement, by the tables below: {0}, {1} are operands, @ is the suffix of functions of libm for
the type, T, U and W types, N the name of the kind (helpers.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.export.c.elementary import use_elementary
from weft.export.c.expand import COLLECTIVE, NotInC
from weft.export.c.helpers import suffix_of
from weft.export.c.kinds import KINDS, Kind, write_number
from weft.export.c.nodes import Assign, Let, Statement, Switch, While
from weft.export.recorder import read_numbers
from weft.xla.hlo import Builder, Value

FLOATS = {
    "add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}", "divide": "{0} / {1}",
    "negate": "-{0}", "abs": "fabs@({0})", "sqrt": "sqrt@({0})", "rsqrt": "1 / sqrt@({0})",
    "cbrt": "cbrt@({0})", "exponential": "exp@({0})", "exponential_minus_one": "expm1@({0})",
    "log": "log@({0})", "log_plus_one": "log1p@({0})", "sine": "sin@({0})",
    "cosine": "cos@({0})", "tan": "tan@({0})", "tanh": "tanh@({0})",
    "logistic": "1 / (1 + exp@(-{0}))", "floor": "floor@({0})", "ceil": "ceil@({0})",
    "round_nearest_even": "nearbyint@({0})", "round_nearest_afz": "round@({0})",
    "sign": "weft_sign_N({0})", "maximum": "weft_max_N({0}, {1})",
    "minimum": "weft_min_N({0}, {1})", "power": "pow@({0}, {1})", "remainder": "fmod@({0}, {1})",
    "atan2": "atan2@({0}, {1})", "real": "{0}", "imag": "0 * {0}",
    "chlo.acos": "acos@({0})", "chlo.acosh": "acosh@({0})", "chlo.asin": "asin@({0})",
    "chlo.asinh": "asinh@({0})", "chlo.atan": "atan@({0})", "chlo.atanh": "atanh@({0})",
    "chlo.sinh": "sinh@({0})", "chlo.cosh": "cosh@({0})", "chlo.tan": "tan@({0})",
    "chlo.erf": "erf@({0})", "chlo.erf_inv": "weft_erf_inv_N({0})",
    "chlo.next_after": "nextafter@({0}, {1})",
}  # fmt: skip
COMPLEX = {
    "add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}", "divide": "{0} / {1}",
    "negate": "-{0}", "sqrt": "csqrt@({0})", "rsqrt": "1 / csqrt@({0})",
    "exponential": "cexp@({0})", "exponential_minus_one": "weft_expm1_N({0})",
    "log": "clog@({0})", "log_plus_one": "weft_log1p_N({0})", "sine": "csin@({0})",
    "cosine": "ccos@({0})", "tan": "ctan@({0})", "tanh": "ctanh@({0})",
    "logistic": "1 / (1 + cexp@(-{0}))", "sign": "weft_csign_N({0})",
    "power": "cpow@({0}, {1})", "chlo.acos": "cacos@({0})", "chlo.acosh": "cacosh@({0})",
    "chlo.asin": "casin@({0})", "chlo.asinh": "casinh@({0})", "chlo.atan": "catan@({0})",
    "chlo.atanh": "catanh@({0})", "chlo.sinh": "csinh@({0})", "chlo.cosh": "ccosh@({0})",
    "chlo.tan": "ctan@({0})",
}  # fmt: skip
PARTS_OF_COMPLEX = {"abs": "cabs@({0})", "real": "creal@({0})", "imag": "cimag@({0})"}
INTEGERS = {
    "add": "(T)((W){0} + (W){1})", "subtract": "(T)((W){0} - (W){1})",
    "multiply": "(T)((W){0} * (W){1})", "negate": "(T)((W)0 - (W){0})",
    "divide": "weft_div_N({0}, {1})", "remainder": "weft_rem_N({0}, {1})",
    "maximum": "(T)({0} > {1} ? {0} : {1})", "minimum": "(T)({0} < {1} ? {0} : {1})",
    "and": "(T)({0} & {1})", "or": "(T)({0} | {1})", "xor": "(T)({0} ^ {1})", "not": "(T)~{0}",
    "sign": "(T)(({0} > 0) - ({0} < 0))", "abs": "(T)({0} < 0 ? (W)0 - (W){0} : (W){0})",
    "shift_left": "weft_shl_N({0}, {1})", "shift_right_logical": "weft_shr_N({0}, {1})",
    "shift_right_arithmetic": "weft_sar_N({0}, {1})", "popcnt": "weft_popcount_N({0})",
    "count_leading_zeros": "weft_clz_N({0})", "power": "weft_pow_N({0}, {1})",
    "chlo.mulhi": "weft_mulhi_N({0}, {1})", "real": "{0}",
}  # fmt: skip
UNSIGNED = {"sign": "(T)({0} != 0)", "abs": "{0}"}
BOOLS = {
    "add": "{0} || {1}", "multiply": "{0} && {1}", "and": "{0} && {1}", "or": "{0} || {1}",
    "xor": "{0} != {1}", "not": "!{0}", "maximum": "{0} || {1}", "minimum": "{0} && {1}",
}  # fmt: skip
COMPARISONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
TABLES = {
    "f": FLOATS, "c": COMPLEX, "i": INTEGERS, "u": {**INTEGERS, **UNSIGNED}, "b": BOOLS,
}  # fmt: skip
I32 = np.dtype(np.int32)


def fill_pattern(pattern: str, kind: Kind) -> str:
    """Return a pattern of the tables for a kind."""
    words = {"T": kind.computed, "U": kind.unsigned, "W": kind.wide}
    pattern = re.sub(r"\b[TUW]\b", lambda m: words[m[0]], pattern)
    computed = kind.name
    if kind.is_half:
        computed = "f32"
    pattern = re.sub(r"_N\b", f"_{computed}", pattern).replace("@", suffix_of(kind))
    return use_elementary(pattern) if kind.computed == "float" else pattern


def round_pattern(pattern: str, kind: Kind) -> str:
    """Return a pattern whose result is rounded to a 16-bit float, where the kind is one."""
    return f"weft_round_{kind.name}({pattern})" if kind.is_half else pattern


def convert_pattern(source: Kind, to: Kind) -> str:
    """Return the pattern of a conversion."""
    if to.letter == "b":
        return "{0} != 0" if source.letter != "b" else "{0}"
    if source.letter == "c" and to.letter != "c":
        part = f"creal{suffix_of(source)}({{0}})"
        single = source.name == "c64"
        real = KINDS[np.dtype(np.float32 if single else np.float64)]
        return convert_pattern(real, to).replace("{0}", part)
    if to.letter == "c":
        if source.letter == "c":
            return f"({to.computed}){{0}}"
        part = "float" if to.name == "c64" else "double"
        return f"weft_{to.name}(({part}){{0}}, 0)"
    if source.letter == "f" and to.letter in "iu":
        return f"weft_{'f64' if source.computed == 'double' else 'f32'}_to_{to.name}({{0}})"
    if source.computed == to.computed:
        return round_pattern("{0}", to) if source.dtype != to.dtype else "{0}"
    return round_pattern(f"({to.computed}){{0}}", to)


def compare_pattern(direction: str, kind: Kind, total: bool) -> str:
    """Return the pattern of a comparison."""
    sign = COMPARISONS[direction]
    if total and kind.letter == "f":
        order = f"weft_order_{'f64' if kind.computed == 'double' else 'f32'}"
        return f"{order}({{0}}) {sign} {order}({{1}})"
    if kind.letter == "b" and direction not in ("EQ", "NE"):
        return f"(int){{0}} {sign} (int){{1}}"
    return f"{{0}} {sign} {{1}}"


def find_pattern(name: str, kinds: Sequence[Kind], out: Kind) -> str:
    """Return the pattern of an operation on operands of some kinds; NotInC if there is none."""
    kind = kinds[0]
    if name == "select":
        return "{0} ? {1} : {2}"
    if name == "clamp":
        if kind.letter == "f":
            low = "weft_max_N({1}, {0})"
            return fill_pattern(f"weft_min_N({low}, {{2}})", kind)
        high = "({1} > {0} ? {1} : {0})"
        return fill_pattern(f"(T)({high} < {{2}} ? {high} : {{2}})", kind)
    if name == "convert":
        return convert_pattern(kind, out)
    if name == "is_finite":
        return "isfinite({0}) != 0"
    if name == "complex":
        return f"weft_{out.name}({{0}}, {{1}})"
    if name == "bitcast_convert":
        if kind.is_half or out.is_half:
            return bitcast_half(kind, out)
        return "{0}" if kind == out else f"weft_bits_{kind.name}_to_{out.name}({{0}})"
    if kind.letter == "c" and name in PARTS_OF_COMPLEX:
        return fill_pattern(PARTS_OF_COMPLEX[name], kind)
    pattern = TABLES[kind.letter].get(name)
    if pattern is None or (kind.is_half and name == "chlo.next_after"):
        raise NotInC(f"{name} of {kind.dtype}")
    return round_pattern(fill_pattern(pattern, kind), out)


def bitcast_half(kind: Kind, out: Kind) -> str:
    """Return the pattern of the bits of a 16-bit float, or of the float of 16 bits."""
    text = f"weft_store_{kind.name}({{0}})" if kind.is_half else "(uint16_t){0}"
    return f"weft_load_{out.name}({text})" if out.is_half else f"({out.computed}){text}"


class ScalarWriter(Builder):
    """Writes what lowerings compute of scalars as statements.

    `block` is the list of statements being written; `new_name` gives names of variables.
    """

    def __init__(self, block: list[Statement], new_name: Callable[[], str]):
        super().__init__()
        self.written = {}
        self.block_now, self.new_name = block, new_name
        self.bodies: dict[str, Callable] = {}

    def let(self, pattern: str, args: Sequence[str], aval: ShapedArray) -> Value:
        """Write a new variable."""
        name = self.new_name()
        self.block_now.append(Let(name, KINDS[aval.dtype].computed, pattern, args))
        return Value(name, aval)

    def constant(self, value, aval):
        """Return a number."""
        array = np.asarray(dtypes.cast_on_host(value, aval.dtype))
        if array.ndim or aval.shape:
            raise NotInC("a table")
        return Value(write_number(array[()], KINDS[aval.dtype]), aval, array[()])

    def spread(self, x, aval):
        """Return a scalar unchanged."""
        return x

    def convert(self, x, dtype):
        """Write a conversion."""
        if x.aval.dtype == dtype:
            return x
        return self.op("stablehlo.convert", [x], [x.aval.update(dtype=dtype)])[0]

    def op(self, name, /, operands, out_avals, regions=(), discardable=None, **attrs):
        """Write an operation as a statement."""
        name, (out, *rest) = name.removeprefix("stablehlo."), out_avals
        if name in ("broadcast_in_dim", "reshape", "transpose") and not out.shape:
            return [Value(operands[0].name, out)]
        if name == "optimization_barrier":
            return list(operands)
        if name == "reduce" and not any(x.aval.shape for x in operands):
            return list(operands[: len(out_avals)])  # of one element; the start is an identity
        if rest or regions or out.shape or name in COLLECTIVE:
            raise NotInC(name)
        kinds = [KINDS[x.aval.dtype] for x in operands]
        if name == "compare":
            direction = attrs["comparison_direction"].split()[-1].rstrip(">")
            pattern = compare_pattern(direction, kinds[0], "TOTALORDER" in attrs["compare_type"])
        elif name == "reduce_precision":
            bits = [read_numbers(attrs[f"{k}_bits"])[0] for k in ("exponent", "mantissa")]
            double = kinds[0].computed == "double"
            pattern = f"weft_reduce_{'f64' if double else 'f32'}({{0}}, {bits[0]}, {bits[1]})"
            pattern = round_pattern(pattern, kinds[0])
        else:
            pattern = find_pattern(name, kinds, KINDS[out.dtype])
        return [self.let(pattern, [x.name for x in operands], out)]

    def elementwise(self, name, operands, aval):
        """Write an operation as a statement."""
        return self.op(name, operands, [aval])

    def within(self, block: list[Statement], write: Callable[[], Any]) -> Any:
        """Return what a function gives that writes its statements into a block."""
        around, self.block_now = self.block_now, block
        constants, self.constants = self.constants, {}
        try:
            return write()
        finally:
            self.block_now, self.constants = around, constants

    def declare(self, values: Sequence[Value]) -> list[Value]:
        """Write a variable that changes for each value."""
        outs = []
        for x in values:
            name = self.new_name()
            ctype = KINDS[x.aval.dtype].computed
            self.block_now.append(Let(name, ctype, "{0}", [x.name], mutable=True))
            outs.append(Value(name, x.aval))
        return outs

    def assign(self, names: Sequence[Value], values: Sequence[Value]) -> None:
        """Write new values of variables, which may depend on the old ones."""
        changing = {v.name for v in names}
        fresh = [
            self.let("{0}", [x.name], x.aval) if x.name in changing and x.name != v.name else x
            for v, x in zip(names, values, strict=True)
        ]
        for v, x in zip(names, fresh, strict=True):
            if v.name != x.name:
                self.block_now.append(Assign(v.name, x.name))

    def while_loop(self, values, condition, body, ordered=False):
        """Write a loop."""
        state = self.declare(values)
        head: list[Statement] = []
        inner: list[Statement] = []
        (test,) = self.within(head, lambda: list(condition(*state)))
        self.within(inner, lambda: self.assign(state, list(body(*state))))
        self.block_now.append(While(head, test.name, inner))
        return state

    def case(self, index, branches, out_avals, ordered=False):
        """Write a choice between branches."""
        names = self.declare([self.constant(0, a) for a in out_avals])
        cases: list[list[Statement]] = [[] for _ in branches]
        for block, branch in zip(cases, branches, strict=True):
            self.within(block, lambda b=branch: self.assign(names, list(b())))
        self.block_now.append(Switch(index.name, cases))
        return names

    def function(self, name, in_avals, write, visibility="private", attrs=((), ()), path=""):
        """Remember a function; each call of it is inlined."""
        name = self.unique(name)
        self.bodies[name] = write
        return name

    def call(self, name, operands, out_avals, discardable=None):
        """Write what a function does."""
        return list(self.bodies[name](*operands))
