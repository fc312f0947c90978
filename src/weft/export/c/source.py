"""The source and the header of a program in C: an expanded program, planned and printed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray
from weft.core.jaxpr import Jaxpr
from weft.export.c.control import CONTROL
from weft.export.c.emit import Array, Scalar
from weft.export.c.finite import ZeroDropper
from weft.export.c.fuse import Fuser
from weft.export.c.helpers import list_helpers
from weft.export.c.hoist import hoist
from weft.export.c.index import Index
from weft.export.c.kinds import KINDS, PARTS, Kind, list_elements
from weft.export.c.loops import LaneWriter, collapse
from weft.export.c.matrices import MATRICES
from weft.export.c.memory import ALIGNMENT, Arena, drop_unread, drop_unused, list_used, plan_arena
from weft.export.c.names import make_identifier
from weft.export.c.nodes import Buffer, For, Let, Role, Statement, blocks_in, walk_statements
from weft.export.c.printer import print_block, print_function
from weft.export.c.products import write_product
from weft.export.c.reductions import REDUCTIONS
from weft.export.c.sizes import DOUBLE, Limits, find_typical, write_bytes, write_size
from weft.export.c.sorting import SORTING
from weft.export.c.writer import Writer, is_same_place
from weft.export.dims import Dim, Size

OPERATIONS: Mapping[str, Any] = {
    **CONTROL, **REDUCTIONS, **SORTING, **MATRICES, "dot_general": write_product,
}  # fmt: skip
INCLUDES = ("math", "stdbool", "stddef", "stdint", "string")
NUMBERS_PER_LINE = 8
MEASURE = """\
{declaration} {{
  if (!({limits})) return SIZE_MAX;
  const double extents[] = {{
    {extents}}};
  for (size_t k = 0; k < sizeof extents / sizeof extents[0]; ++k) {{
    if (extents[k] > (double)(PTRDIFF_MAX / 2)) return SIZE_MAX;
  }}
  return {bytes};
}}"""


@dataclasses.dataclass(frozen=True)
class Parameter:
    """An argument or a result of the function in C.

    Attributes:
      name: the name in C.
      path: the name of the same value in Python.
      aval: the type.
      by_value: True if the argument is passed by value, False if by a pointer.
    """

    name: str
    path: str
    aval: ShapedArray
    by_value: bool = False

    @property
    def kind(self) -> Kind:
        """Return the representation of its elements in C."""
        return KINDS[self.aval.dtype]

    @property
    def shape_text(self) -> str:
        """Its type as a comment says it: `float [3][4]`."""
        sizes = "".join(f"[{write_size(n)}]" for n in self.aval.shape)
        half = f", {self.kind.dtype} as its bits" if self.kind.is_half else ""
        return f"{self.kind.stored} {sizes}".strip() + half

    def declare(self, is_result: bool = False, restrict: str = "") -> str:
        """Return its declaration, with `restrict` before the name of a pointer."""
        if self.by_value:
            return f"{self.kind.stored} {self.name}"
        return f"{'' if is_result else 'const '}{self.kind.stored} *{restrict}{self.name}"


@dataclasses.dataclass(frozen=True)
class Signature:
    """The function in C, as a caller sees it.

    Attributes:
      name: its name.
      parameters: the arguments.
      results: the results.
      limits: the variables of symbolic sizes, which come before the arguments, and their limits.
    """

    name: str
    parameters: Sequence[Parameter]
    results: Sequence[Parameter]
    limits: Limits

    @property
    def sizes(self) -> list[str]:
        """The names in C of the variables of symbolic sizes."""
        return list(map(make_identifier, self.limits.names))

    @property
    def measure(self) -> str:
        """Return the declaration of the function that gives the size of the arena."""
        return f"size_t {self.name}_workspace({', '.join(f'ptrdiff_t {n}' for n in self.sizes)})"

    def declare(self, weights: bool, restrict: str = "") -> str:
        """Return the declaration of the function, without a semicolon.

        The definition says "restrict ", since the header forbids memory that overlaps. A
        declaration need not repeat it, and C++, which includes the header, lacks the word.
        """
        listed = [f"ptrdiff_t {n}" for n in self.sizes]
        listed += [p.declare(False, restrict) for p in self.parameters]
        listed += [r.declare(True, restrict) for r in self.results]
        listed += ["const void *weights"] if weights else []
        listed.append(f"void *{restrict}workspace")
        lines, line = [], f"{'int' if self.sizes else 'void'} {self.name}("
        for k, text in enumerate(listed):
            text += ")" if k == len(listed) - 1 else ", "
            if len(line) + len(text.strip()) > 98:
                lines.append(line.rstrip())
                line = "    "
            line += text
        return "\n".join([*lines, line])


@dataclasses.dataclass(frozen=True)
class Source(Signature):
    """A program in C.

    Attributes:
      text: the source.
      workspace: the size of the arena in bytes, symbolic where sizes are.
      constants: the size of the arrays that are part of the program in bytes.
      operations: an estimate of the operations on numbers of one call.
      weights: the constants as the bytes of a file; None where they are part of the text.
      finite: True if terms are left out that are zero where numbers are finite.
    """

    text: str
    workspace: Size
    constants: int
    operations: int
    weights: bytes | None = None
    finite: bool = False

    @property
    def prototype(self) -> str:
        """Return the declaration of the function, without a semicolon."""
        return self.declare(self.weights is not None)


def write_source(
    jaxpr: Jaxpr, signature: Signature, apart: bool = False, finite: bool = False
) -> Source:
    """Write an expanded program as C.

    Args:
      jaxpr: the program.
      signature: the function in C.
      apart: True for constants as the bytes of a file, False for constants in the source.
      finite: True to leave terms out that are zero where numbers are finite.
    """
    w = Writer(OPERATIONS)
    args = []
    for p in signature.parameters:
        if p.by_value:
            args.append(Scalar(p.name, p.kind))
            continue
        buffer = w.new_buffer(p.kind, p.aval.size, Role.ARGUMENT, p.name)
        whole = Array(buffer, Index(), p.aval.shape)
        args.append(whole if p.aval.shape else Scalar(w.load(buffer, Index()), p.kind))
    targets = [
        Array(w.new_buffer(r.kind, r.aval.size, Role.RESULT, r.name), Index(), r.aval.shape)
        for r in signature.results
    ]
    outs = w.write_program(jaxpr, args, targets)
    for value, to in zip(outs, targets, strict=True):
        if not is_same_place(value, to):
            w.fill(to, value)
    drop_unused(w.block)
    drop_unread(w.block)
    Fuser(w.new_name).fuse(w.block)
    if finite:
        ZeroDropper(w.new_name).drop(w.block)
    drop_unused(w.block)
    drop_unread(w.block)
    hoist(w.block)
    collapse(w.block)
    LaneWriter(w.new_name).write(w.block)
    arena = plan_arena(w.block)
    constants = [b for b in list_used(w.block) if b.role is Role.CONSTANT]
    weights = pack_weights(constants) if apart and constants else None
    text = print_program(w, signature, arena, constants, weights)
    return Source(
        **vars(signature),
        text=f'#include "{signature.name}.h"\n\n{text}',
        workspace=arena.bytes,
        constants=sum(b.bytes for b in constants),
        operations=count_operations(w.block),
        weights=weights,
        finite=finite,
    )


def pack_weights(constants: Sequence[Buffer]) -> bytes:
    """Give constants their places in a file; the bytes of the file."""
    data = bytearray()
    for b in constants:
        data += bytes(-len(data) % ALIGNMENT)
        b.offset = len(data)
        data += np.ascontiguousarray(b.value).tobytes()
    return bytes(data)


def print_program(
    w: Writer,
    signature: Signature,
    arena: Arena,
    constants: Sequence[Buffer],
    weights: bytes | None,
) -> str:
    """Return the text of a program; its constants are in it, or in `weights`."""
    used = list_used(w.block)
    inner = list_slots(arena) if any(b.slot for b in used) else []
    inner += [declare_buffer(b) for b in used if b.role is Role.WORK]
    inner += [
        f"  {b.kind.stored} {b.name}[{b.size}] = {{0}};" for b in used if b.role is Role.LOCAL
    ]
    tables = []
    head = ["  unsigned char *const work = workspace;" if arena.bytes else "  (void)workspace;"]
    if weights is None:
        tables = [print_constant(b) for b in constants]
    else:
        head.append("  const unsigned char *const file = weights;")
        inner += [declare_weights(b) for b in constants]
    body = print_block(w.block)
    told = "\n".join(body)
    every = [*signature.parameters, *signature.results]
    head += [f"  (void){p.name};" for p in every if not mentions(told, p.name)]
    functions = print_functions(w, told)
    if signature.sizes:
        functions.append(print_measure(signature, list_extents(w.block), arena))
        test = f"{signature.name}_workspace({', '.join(signature.sizes)}) == SIZE_MAX"
        head.insert(0, f"  if ({test}) return 1;")
        body.append("  return 0;")
    prototype = signature.declare(weights is not None, "restrict ")
    main = "\n".join([prototype + " {", *head, *inner, *body, "}"])
    helpers = list_helpers("\n".join([*functions, main, *tables]))
    has_complex = any(mentions(part, "complex") for part in (*helpers, *functions, main, *tables))
    headers = [*["complex"] * has_complex, *INCLUDES]  # tcc has no complex numbers
    includes = "\n".join(f"#include <{h}.h>" for h in headers)
    return "\n\n".join([includes, *[h.strip() for h in helpers], *tables, *functions, main]) + "\n"


def print_measure(signature: Signature, extents: Sequence[Size], arena: Arena) -> str:
    """Return the function that gives the size of the arena, and SIZE_MAX for wrong sizes.

    Sizes are wrong if the program is not written for them, or if an array or the arena would be
    larger than the address space.
    """
    limits = signature.limits.text.replace(" && ", "\n      && ")
    rows = ",\n    ".join(write_size(n, DOUBLE) for n in dict.fromkeys([*extents, arena.bytes]))
    return MEASURE.format(
        declaration=signature.measure, limits=limits, extents=rows, bytes=write_bytes(arena.bytes)
    )


def list_extents(block: Sequence[Statement]) -> list[Size]:
    """Return the symbolic sizes of arrays, in bytes, and of loops."""
    found = [b.bytes for b in list_used(block)]
    found += [s.count.high for s in walk_statements(block) if isinstance(s, For)]
    return [n for n in found if isinstance(n, Dim)]


def mentions(text: str, name: str) -> bool:
    """Return True if a name is a word of a text."""
    at = text.find(name)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(name) : at + len(name) + 1]
        if not (before.isalnum() or before == "_" or after.isalnum() or after == "_"):
            return True
        at = text.find(name, at + 1)
    return False


def print_functions(w: Writer, body: str) -> list[str]:
    """Return the functions that a program calls. Callees come before their callers."""
    texts = {f.name: print_function(f) for f in w.functions.values()}
    for function in w.functions.values():
        drop_unused(function.block, function.result)
        texts[function.name] = print_function(function)
    texts |= dict(w.texts.values())
    order: dict[str, str] = {}

    def visit(text: str) -> None:
        for name, function in texts.items():
            if name not in order and mentions(text, name):
                visit(function.replace(f"{name}(", "("))
                order[name] = function

    visit(body)
    return list(order.values())


def list_slots(arena: Arena) -> list[str]:
    """Return the declarations of the parts of the arena for buffers of symbolic sizes."""
    lines = [f"  unsigned char *const s1 = work + {arena.fixed};"]
    for k, size in enumerate(arena.slots[:-1], 1):
        at = f"s{k} + weft_align({write_size(size)})"
        lines.append(f"  unsigned char *const s{k + 1} = {at};")
    return lines


def declare_buffer(b: Buffer) -> str:
    """Return the declaration of memory in the arena; there is none for arrays without elements."""
    place = f"s{b.slot}" if b.slot else f"work + {b.offset}"
    place = f"({b.kind.stored} *)(void *)({place})" if b.slot or b.size else "NULL"
    return f"  {b.kind.stored} *const {b.name} = {place};"


def declare_weights(b: Buffer) -> str:
    """Return the declaration of a constant in the file of weights."""
    kind = b.kind.stored
    return f"  const {kind} *const {b.name} = (const {kind} *)(const void *)(file + {b.offset});"


def print_constant(b: Buffer) -> str:
    """Return the definition of a constant array."""
    assert b.value is not None
    texts = list_elements(np.asarray(b.value), b.kind) or ["0"]
    rows = [
        ", ".join(texts[k : k + NUMBERS_PER_LINE]) for k in range(0, len(texts), NUMBERS_PER_LINE)
    ]
    inner = "{\n  " + ",\n  ".join(rows) + "}"
    if b.kind.letter != "c":
        return f"static const {b.kind.stored} {b.name}[{len(texts)}] = {inner};"
    part = PARTS[b.kind.name].stored
    return (
        f"static const union {{ {part} parts[{len(texts)}]; {b.kind.stored} all[{max(b.size, 1)}]; "
        f"}} {b.name}_ = {{{inner}}};\n#define {b.name} ({b.name}_.all)"
    )


def count_operations(block: Sequence[Statement], times: int = 1) -> int:
    """Return about how many operations on numbers statements do; a `while` counts once.

    Variables of sizes count as 64.
    """
    total = 0
    for statement in block:
        if isinstance(statement, Let) and statement.pattern != "{0}":
            total += times
        more = times
        if isinstance(statement, For) and statement.count.size is not None:
            more *= find_typical(statement.count.size)
        for inner in blocks_in(statement):
            total += count_operations(inner, more)
    return total
