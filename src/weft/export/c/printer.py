"""Statements as text of C99."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.export.c.emit import Function
from weft.export.c.index import Index
from weft.export.c.nodes import (
    Assign,
    Call,
    Copy,
    For,
    If,
    Let,
    Load,
    Pointer,
    Statement,
    Store,
    Switch,
    While,
)
from weft.export.c.sizes import write_bytes


def print_atom(atom: Any) -> str:
    """Return an operand."""
    if isinstance(atom, Load):
        return f"{atom.buffer.name}[{atom.index}]"
    if isinstance(atom, Pointer):
        if atom.index == Index():
            return atom.buffer.name
        return f"{atom.buffer.name} + {atom.index}"
    return str(atom)


def print_block(block: Sequence[Statement], depth: int = 1) -> list[str]:
    """Return the lines of statements."""
    lines: list[str] = []
    for statement in block:
        lines += ["  " * depth + line for line in print_statement(statement)]
    return lines


def print_statement(statement: Statement) -> list[str]:
    """Return the lines of a statement."""
    match statement:
        case Let():
            text = statement.pattern.format(*map(print_atom, statement.args))
            const = "" if statement.mutable else "const "
            return [f"{const}{statement.ctype} {statement.name} = {text};"]
        case Assign():
            return [f"{statement.name} = {print_atom(statement.atom)};"]
        case Store():
            name = statement.buffer.name
            return [f"{name}[{statement.index}] = {print_atom(statement.atom)};"]
        case Call():
            return [f"{statement.function}({', '.join(map(print_atom, statement.args))});"]
        case Copy():
            to, source = print_atom(statement.to), print_atom(statement.source)
            return [f"memcpy({to}, {source}, {write_bytes(statement.bytes)});"]
        case For():
            i = statement.name
            head = f"for (ptrdiff_t {i} = 0; {i} < {statement.count}; ++{i}) {{"
            if statement.reverse:
                head = f"for (ptrdiff_t {i} = ({statement.count}) - 1; {i} >= 0; --{i}) {{"
            return [head, *print_block(statement.body), "}"]
        case If():
            lines = [f"if ({statement.condition}) {{", *print_block(statement.yes)]
            if statement.no:
                lines += ["} else {", *print_block(statement.no)]
            return [*lines, "}"]
        case While():
            test = f"  if (!{statement.condition}) break;"
            return ["for (;;) {", *print_block(statement.head), test,
                    *print_block(statement.body), "}"]  # fmt: skip
    return print_switch(statement)


def print_switch(statement: Switch) -> list[str]:
    """Return the lines of a choice between blocks."""
    if len(statement.cases) == 1:
        return ["{", *print_block(statement.cases[0]), "}"]
    lines = [f"switch ({statement.index}) {{"]
    for k, block in enumerate(statement.cases):
        label = f"case {k}" if k < len(statement.cases) - 1 else "default"
        lines += [f"  {label}: {{", *print_block(block, 2), "    break;", "  }"]
    return [*lines, "}"]


def print_function(function: Function) -> str:
    """Return the text of a function of scalars."""
    parameters = ", ".join(f"{t} {name}" for t, name in function.parameters) or "void"
    body = "\n".join(print_block(function.block))
    head = f"static {function.ctype} {function.name}({parameters}) {{"
    return f"{head}\n{body}\n  return {function.result};\n}}"
