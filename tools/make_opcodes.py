"""Write native/opcodes.h: the opcodes of programs, in C++.

They are the opcodes of cpu/opcodes.py, and of primitives with a fact `kernel`. Run it after adding
one: `python tools/make_opcodes.py`. tests/cpu/test_opcodes.py fails while the file differs from the
output of this program.
"""

import textwrap
from pathlib import Path

import weft.scipy.special.elementary  # noqa: F401  # it defines primitives, too
from weft.cpu.opcodes import DTYPES, MAX_ROW, MAX_SLOTS, MAX_STEPS, Instruction, Kind, Own, code_of
from weft.jaxpr.values import index_primitives
from weft.primitives.elementwise import Elementwise

HEADER = Path(__file__).parents[1] / "src/weft/native/opcodes.h"
TEXT = """\
// Written by tools/make_opcodes.py from cpu/opcodes.py and the facts of primitives.

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


def list_instructions() -> dict[str, tuple[Instruction, int]]:
    """Return all instructions and their numbers of operands, by name, in the order of codes."""
    primitives = [p for named in index_primitives().values() for p in named.values()]
    given = {p for p in primitives if isinstance(p, Elementwise) and p.kernel is not None}
    found = {x.name.lower(): (x, x.value[1]) for x in Own}
    found |= {p.name: (p, len(p.derivs)) for p in given}
    rows = sorted(found.items(), key=lambda row: code_of(row[1][0]))
    codes = [code_of(x) for _, (x, _) in rows]
    assert codes == [*range(len(Own) + len(given))], f"codes must be 0, 1, ...; got {codes}"
    return dict(rows)


def write_header() -> str:
    """Return the text of the header."""
    found = list_instructions()
    checks = [
        f"static_assert(ffi::{INTERFACE[dtype.name]} == {number});"
        for dtype, number in DTYPES.items()
    ]
    return TEXT.format(
        codes=wrap([*map(constant, found)]),
        count=len(found),
        operands=wrap([str(count) for _, count in found.values()]),
        kinds=", ".join(constant(kind.name) for kind in Kind),
        slots=MAX_SLOTS,
        steps=MAX_STEPS,
        row=MAX_ROW,
        dtypes="\n".join(checks),
    )


if __name__ == "__main__":
    HEADER.write_text(write_header())
