"""Statements that do not depend on a loop, moved out of it."""

from __future__ import annotations

from weft.export.c.names import find_names
from weft.export.c.nodes import (
    Assign,
    Buffer,
    Call,
    Copy,
    For,
    Let,
    Load,
    Statement,
    Store,
    blocks_in,
    walk_statements,
)
from weft.export.c.sizes import is_at_least


def names_read(statement: Let) -> set[str]:
    """Return the variables that the value of a new variable reads."""
    texts = [statement.pattern]
    for a in statement.args:
        texts.append(a.index.text if isinstance(a, Load) else str(a))
    return set(find_names(" ".join(texts)))


def list_written(block: list[Statement]) -> tuple[set[str], set[Buffer]]:
    """Return the variables and the buffers that statements write."""
    names: set[str] = set()
    buffers: set[Buffer] = set()
    for s in walk_statements(block):
        match s:
            case Let() | Assign() | For():
                names.add(s.name)
            case Store():
                buffers.add(s.buffer)
            case Copy():
                buffers.add(s.to.buffer)
            case Call():
                buffers.update(a.buffer for a in s.args if not isinstance(a, str))
    return names, buffers


def hoist(block: list[Statement]) -> None:
    """Move variables that are the same in each iteration in front of their loops."""
    out: list[Statement] = []
    for statement in block:
        for inner in blocks_in(statement):
            hoist(inner)
        if isinstance(statement, For) and is_at_least(statement.count.low, 1):
            out += split_loop(statement)
        out.append(statement)
    block[:] = out


def split_loop(loop: For) -> list[Statement]:
    """Remove the loop-invariant statements from a loop, and return them."""
    names, buffers = list_written(loop.body)
    names.add(loop.name)
    moved: list[Statement] = []
    kept: list[Statement] = []
    for s in loop.body:
        stays = not isinstance(s, Let) or s.mutable or bool(names_read(s) & names)
        if not stays and isinstance(s, Let):
            stays = any(isinstance(a, Load) and a.buffer in buffers for a in s.args)
        if stays:
            kept.append(s)
        else:
            assert isinstance(s, Let)
            names.discard(s.name)
            moved.append(s)
    loop.body[:] = kept
    return moved
