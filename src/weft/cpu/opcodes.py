"""Programs of the kernel `weft_program`: their opcodes, and how they are written.

A program computes one array from others, step by step: each step is an operation on the results of
earlier steps. The kernel takes one row of elements through all steps before the next row, so that
intermediate results stay in the nearest cache. Where nothing goes along rows, a row is a block of
elements that the cache holds.

native/programs.cc runs programs. Its header native/opcodes.h holds the tables of this module in
C++; tools/make_opcodes.py writes it.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.core.facts import Cost
from weft.core.form import Form
from weft.core.primitive import Primitive
from weft.dtypes import bfloat16


class Kind(enum.IntEnum):
    """The elements that an operand or the result of a step has."""

    SCALAR = 0  # one element
    PER_ROW = 1  # one element for each row
    SHARED_ROW = 2  # one row, which all rows share
    FULL = 3  # all elements


SCALAR, PER_ROW, SHARED_ROW, FULL = Kind  # reading a member of an enum takes longer
_SHARED = SCALAR, SHARED_ROW
COMPARISONS = ("eq", "ne", "gt", "ge", "lt", "le")
# Names by number of operands. Those that are also primitives compute what the primitive does:
# `round` to the nearest even number. Others:
# - inverse: 1 / x.
# - at_least, at_most: the maximum and the minimum where one of two is neither zero nor NaN.
# - choose_lt(x, y, no, yes) and so on: yes where x < y, else no; y is a scalar. In replace_lt and
#   so on `yes` is a scalar too.
# - power_of: x**y of a scalar x. zeta_single: zeta to the digits of float32.
# Those of programs on 16-bit floats, which compute in float32:
# - load_mask: bool as a mask, a float32 of all bits or none; store_mask: back.
# - mask_eq(x, y) and so on: a comparison as a mask. keep, drop: x & mask, x & ~mask, where the mask
#   is the first operand; join: x | y.
# - round_float16, round_bfloat16: a float32 rounded to fewer digits.
# - reduce_sum, reduce_max: of a row; spread: one element for each row on all of the row.
_NAMES = {
    1: (
        *("abs", "sign", "neg", "not", "floor", "ceil", "round", "is_finite", "square", "inverse"),
        *("convert_element_type", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh"),
        *("asinh", "acosh", "atanh", "exp", "exp2", "expm1", "log", "log2", "log1p", "logistic"),
        *("logit", "tanh", "cbrt", "sqrt", "rsqrt", "erf", "erfc", "erf_inv", "gelu"),
        *("load_mask", "store_mask", "round_float16", "round_bfloat16"),
        *("reduce_sum", "reduce_max", "spread"),
    ),
    2: (
        *("add", "sub", "mul", "div", "max", "min", "at_least", "at_most", *COMPARISONS),
        *("and", "or", "xor", "rem", "atan2", "pow", "power_of", "logaddexp", "igamma", "igammac"),
        *("zeta", "zeta_single", "mask_eq", "mask_ne", "mask_lt", "mask_le", "keep", "drop"),
        "join",
    ),
    3: ("select_n", "clamp"),
    4: tuple(f"{how}_{test}" for how in ("choose", "replace") for test in COMPARISONS),
}
OPERANDS = {name: count for count, names in _NAMES.items() for name in names}
OPCODES = {name: code for code, name in enumerate(OPERANDS)}
REDUCTIONS = frozenset(("reduce_sum", "reduce_max"))
FLOAT64_ONLY = frozenset(("erf",))  # there is no instruction in float32, and it is no loop
# The numbers that XLA's foreign function interface has for dtypes.
DTYPES = {
    np.dtype(dtype): number
    for dtype, number in {
        "bool": 1, "int8": 2, "int32": 4, "int64": 5, "uint8": 6, "float16": 10, "float32": 11,
        "float64": 12, bfloat16: 16,
    }.items()
}  # fmt: skip
MAX_SLOTS = 16  # operands and intermediate results at one time
MAX_STEPS = 80
MAX_ROW = 4096  # elements of a row, of 4 bytes at most, for which there are MAX_SLOTS slots


def cheap_instruction(prim: Primitive) -> str | None:
    """Return the name of the instruction that computes a primitive of a few machine operations."""
    cheap = prim.cost is Cost.CHEAP and prim.form is not Form.FUNCTION
    return prim.name if cheap and prim.name in OPCODES else None


class Operand(NamedTuple):
    """An operand of a program: `value` names it, `start` is its first element that is read."""

    value: Hashable
    kind: Kind
    start: int = 0


class Step(NamedTuple):
    """A step: the operation, and the name, kind and dtype of its result."""

    name: str
    value: Hashable
    kind: Kind
    dtype: np.dtype
    reads: Sequence[Hashable]


def encode_program(
    operands: Sequence[Operand], steps: Sequence[Step], row: int, piece: int
) -> list[int] | None:
    """Return a program as numbers; None if it needs more slots or steps than the kernel has.

    Args:
      operands: the operands, in the order of the call.
      steps: the steps in order. The last step makes the result of the program, of all elements or
        of one for each row.
      row: the elements of a row.
      piece: the rows that are worth a thread.
    """
    early = [step for step in steps if step.kind in _SHARED]
    if early:
        steps = early + [step for step in steps if step.kind not in _SHARED]
    slots = {operand.value: i for i, operand in enumerate(operands)}
    if max(len(slots), len(early)) > MAX_SLOTS or len(steps) > MAX_STEPS:
        return None
    code = [row, piece, len(operands)]
    for operand in operands:
        code += int(operand.kind), operand.start
    last_use = {value: i for i, step in enumerate(steps) for value in step.reads}
    widths: dict[Any, int] = {}  # of results
    free = [*range(len(operands), MAX_SLOTS)]
    for i, (name, made, kind, dtype, values) in enumerate(steps):
        if i == len(early):  # what rows share and read stays in its slot from here on
            present: list[Any] = [*operands, *early]
            last_use.update({x.value: -1 for x in present if x.kind in _SHARED})
        code += OPCODES[name], int(kind), DTYPES[dtype], -1
        wider: list[int] = []
        place = len(code) - 1
        width = dtype.itemsize
        for value in values:
            slot = slots[value]
            code.append(slot)
            if last_use[value] == i:
                # a result may replace an operand of its own width; others are read to the end
                (free if widths.get(value) == width else wider).append(slot)
                last_use[value] = -1
        if not free:
            return None
        slots[made] = code[place] = free.pop()
        free += wider
        widths[made] = width
    return code


def format_program(code: Sequence[int]) -> str:
    """Return the text of a program that `encode_program` wrote, one step on each line."""
    kind_names = [kind.name.lower() for kind in Kind]
    names, dtypes = [*OPCODES], {number: dtype for dtype, number in DTYPES.items()}
    row, piece, given = code[:3]
    lines = [f"rows of {row} elements, {piece} for a thread"]
    for slot in range(given):
        kind, start = code[3 + 2 * slot : 5 + 2 * slot]
        lines.append(f"{slot}: {kind_names[kind]}" + f" from element {start}" * (start > 0))
    rest = [*code[3 + 2 * given :]]
    while rest:
        name = names[rest[0]]
        (_, kind, dtype, slot), reads = rest[:4], rest[4 : 4 + OPERANDS[name]]
        operands = ", ".join(map(str, reads))
        lines.append(f"{slot} = {name}({operands}): {kind_names[kind]} {dtypes[dtype].name}")
        rest = rest[4 + len(reads) :]
    return "\n".join(lines)
