"""The instructions of the kernel of programs by name, and programs as text."""

from tools.make_opcodes import list_instructions
from weft.cpu.opcodes import DTYPES, Kind

# In the order of the codes.
NAMED = {name: instruction for name, (instruction, _) in list_instructions().items()}
OPERANDS = {name: count for name, (_, count) in list_instructions().items()}
OPCODES = {name: code for code, name in enumerate(NAMED)}


def format_program(code):
    """Return the text of a program that `encode_program` wrote, one step on each line."""
    kind_names = [kind.name.lower() for kind in Kind]
    names, dtypes = [*NAMED], {number: dtype for dtype, number in DTYPES.items()}
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
