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
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from weft.core.facts import Elements
from weft.core.primitive import Primitive
from weft.cpu.elements import chooses_by_element
from weft.dtypes import bfloat16
from weft.primitives.elementwise import Elementwise
from weft.primitives.kernels import Called


class Kind(enum.IntEnum):
    """The elements that an operand or the result of a step has."""

    SCALAR = 0  # one element
    PER_ROW = 1  # one element for each row
    SHARED_ROW = 2  # one row, which all rows share
    FULL = 3  # all elements


SCALAR, PER_ROW, SHARED_ROW, FULL = Kind  # reading a member of an enum takes longer
_SHARED = SCALAR, SHARED_ROW


class Own(enum.Enum):
    """The instructions that are not elementwise primitive: their code, and number of operands.

    An elementwise primitive has its code by the fact `kernel`, and rounds to the even number.

    - INVERSE: 1 / x.
    - AT_LEAST, AT_MOST: the maximum and the minimum if an operand is not zero and not NaN.
    - CHOOSE_LT(x, y, no, yes) and so on: yes where x < y, else no; y is a scalar. In REPLACE_LT and
      so on, `yes` is a scalar too.
    - POWER_OF: x**y of a scalar x. ZETA_SINGLE: zeta to the digits of float32.
    - REDUCE_SUM, REDUCE_MAX: of a row. SPREAD: one element for each row on all of the row.
    - REDUCE_SQUARES(x, y): the sum of `(y - x)**2` of a row y, for one element x for each row.
    - MULTIPLY_ADD, MULTIPLY_SUBTRACT, SUBTRACT_PRODUCT: x * y + z, x * y - z and z - x * y of
      floats, rounded once if the processor can.

    Those of programs on 16-bit floats, which compute in float32:

    - LOAD_MASK: bool as a mask, a float32 of all bits or none. STORE_MASK: back.
    - MASK_EQ(x, y) and so on: a comparison as a mask. KEEP, DROP: x & mask, x & ~mask; the mask is
      the first operand. JOIN: x | y.
    - ROUND_FLOAT16, ROUND_BFLOAT16: a float32 rounded to fewer digits.
    """

    INVERSE = 9, 1
    CONVERT_ELEMENT_TYPE = 10, 1
    LOAD_MASK = 38, 1
    STORE_MASK = 39, 1
    ROUND_FLOAT16 = 40, 1
    ROUND_BFLOAT16 = 41, 1
    REDUCE_SUM = 42, 1
    REDUCE_MAX = 43, 1
    SPREAD = 44, 1
    AT_LEAST = 51, 2
    AT_MOST = 52, 2
    POWER_OF = 65, 2
    ZETA_SINGLE = 70, 2
    MASK_EQ = 71, 2
    MASK_NE = 72, 2
    MASK_LT = 73, 2
    MASK_LE = 74, 2
    KEEP = 75, 2
    DROP = 76, 2
    JOIN = 77, 2
    SELECT_N = 78, 3
    CHOOSE_EQ, CHOOSE_NE, CHOOSE_GT = (80, 4), (81, 4), (82, 4)
    CHOOSE_GE, CHOOSE_LT, CHOOSE_LE = (83, 4), (84, 4), (85, 4)
    REPLACE_EQ, REPLACE_NE, REPLACE_GT = (86, 4), (87, 4), (88, 4)
    REPLACE_GE, REPLACE_LT, REPLACE_LE = (89, 4), (90, 4), (91, 4)
    REDUCE_SQUARES = 92, 2
    MULTIPLY_ADD = 93, 3
    MULTIPLY_SUBTRACT = 94, 3
    SUBTRACT_PRODUCT = 95, 3


# What a step computes: an instruction of the kernel's own, or a primitive; or the number of either.
Instruction: TypeAlias = Own | Elementwise | int
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
MAX_ROW = 4096  # elements of at most 4 bytes in a row; a slot holds one row


def find_instruction(prim: Primitive) -> Instruction | None:
    """Return the instruction that computes a primitive on each element; None if there is none."""
    if isinstance(prim, Elementwise):
        return None if prim.kernel is None else prim
    if prim.elements is Elements.CONVERTED:
        return Own.CONVERT_ELEMENT_TYPE
    return Own.SELECT_N if chooses_by_element(prim) else None


def is_instruction(prim: Primitive, *wanted: Instruction) -> bool:
    """Return True if a primitive is computed by one of some instructions."""
    return find_instruction(prim) in wanted


def cheap_instruction(prim: Primitive) -> Instruction | None:
    """Return the instruction of a primitive of a few machine operations; None for others."""
    found = find_instruction(prim)
    kernel = getattr(found, "kernel", None)
    return found if kernel is None or kernel.float32 is Called.STEP else None


def code_of(instruction: Instruction) -> int:
    """Return the number of an instruction in native/opcodes.h."""
    if isinstance(instruction, int):
        return instruction
    if isinstance(instruction, Own):
        return instruction.value[0]
    assert instruction.kernel is not None
    return instruction.kernel.code


class Operand(NamedTuple):
    """An operand of a program: `value` names it, `start` is its first element that is read.

    An operand with a dtype is part of the program, and no operand of its call: a scalar has the
    bits `start`, and others are the integers from `start` on, of int32.
    """

    value: Hashable
    kind: Kind
    start: int = 0
    dtype: np.dtype | None = None


def number_operand(value: Hashable, number: Any, dtype: np.dtype) -> Operand:
    """Return a number as an operand that is part of the program."""
    bits = np.asarray(number, dtype).tobytes()
    return Operand(value, Kind.SCALAR, int.from_bytes(bits, "little", signed=True), dtype)


class Step(NamedTuple):
    """A step: the instruction, and the name, kind and dtype of its result."""

    instruction: Instruction
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
        held = 0 if operand.dtype is None else DTYPES[operand.dtype]
        code += int(operand.kind) + held * len(Kind), operand.start
    last_use = {value: i for i, step in enumerate(steps) for value in step.reads}
    widths: dict[Any, int] = {}  # of results
    free = [*range(len(operands), MAX_SLOTS)]
    for i, (instruction, made, kind, dtype, values) in enumerate(steps):
        if i == len(early):  # what rows share and read stays in its slot from here on
            present: list[Any] = [*operands, *early]
            last_use.update({x.value: -1 for x in present if x.kind in _SHARED})
        code += code_of(instruction), int(kind), DTYPES[dtype], -1
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
