"""Write native/opcodes.h: the opcodes of programs, in C++, from cpu/opcodes.py.

Run it when an opcode is added: `python tools/make_opcodes.py`. tests/passes/test_opcodes.py fails
while the file is not the one that this program writes.
"""

import textwrap
from pathlib import Path

from weft.cpu.opcodes import DTYPES, MAX_ROW, MAX_SLOTS, MAX_STEPS, OPERANDS, Kind

HEADER = Path(__file__).parents[1] / "src/weft/native/opcodes.h"
TEXT = """\
// Written by tools/make_opcodes.py from cpu/opcodes.py, which says what the opcodes compute.

#ifndef WEFT_NATIVE_OPCODES_H_
#define WEFT_NATIVE_OPCODES_H_

#include "ffi.h"

namespace weft {{

namespace op {{
enum Code : int64_t {{
{codes}
}};
}}  // namespace op

constexpr int64_t kOpcodes = {count};
// The operands that each opcode has.
constexpr int8_t kOperands[kOpcodes] = {{
{operands}
}};

enum class Kind : int64_t {{ {kinds} }};

constexpr int64_t kMaxSlots = {slots}, kMaxSteps = {steps}, kMaxRow = {row};

{dtypes}

}}  // namespace weft

#endif  // WEFT_NATIVE_OPCODES_H_
"""
INTERFACE = {
    "bool": "PRED", "int8": "S8", "int32": "S32", "int64": "S64", "uint8": "U8", "float16": "F16",
    "bfloat16": "BF16", "float32": "F32", "float64": "F64",
}  # fmt: skip


def constant(name: str) -> str:
    """Return the name of a constant in C++: kSelectN of select_n or SELECT_N."""
    return "k" + "".join(part.capitalize() for part in name.lower().split("_"))


def wrap(items: list[str]) -> str:
    """Return items separated by commas, in lines."""
    text = ", ".join(items)
    return textwrap.fill(text, 100, initial_indent="  ", subsequent_indent="  ")


def write_header() -> str:
    """Return the text of the header."""
    checks = [
        f"static_assert(ffi::{INTERFACE[dtype.name]} == {number});"
        for dtype, number in DTYPES.items()
    ]
    return TEXT.format(
        codes=wrap([constant(name) for name in OPERANDS]),
        count=len(OPERANDS),
        operands=wrap([str(count) for count in OPERANDS.values()]),
        kinds=", ".join(constant(kind.name) for kind in Kind),
        slots=MAX_SLOTS,
        steps=MAX_STEPS,
        row=MAX_ROW,
        dtypes="\n".join(checks),
    )


if __name__ == "__main__":
    HEADER.write_text(write_header())
