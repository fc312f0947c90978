"""Copies of statements with other names and indices, and what statements read and write."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from weft.export.c.index import Index, Term
from weft.export.c.names import NAME, find_names
from weft.export.c.nodes import (
    Assign,
    Buffer,
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
    blocks_in,
    loads_in,
    walk_statements,
)


def atoms_in(s: Statement) -> Sequence[Any]:
    """Return the operands of a statement itself."""
    match s:
        case Let() | Call():
            return s.args
        case Assign() | Store():
            return (s.atom,)
        case Copy():
            return (s.to, s.source)
    return ()


def read_texts(block: Sequence[Statement]) -> tuple[list[Index], list[str]]:
    """Return the indices of elements in statements, and their other texts that are read."""
    indices: list[Index] = []
    texts: list[str] = []
    for s in walk_statements(block):
        match s:
            case Let():
                texts.append(s.pattern)
            case Store():
                indices.append(s.index)
            case For():
                texts.append(s.count.text)
            case If() | While():
                texts.append(s.condition)
            case Switch():
                texts.append(s.index)
        for a in atoms_in(s):
            if isinstance(a, Load | Pointer):
                indices.append(a.index)
            else:
                texts.append(a)
    return indices, texts


class Effects:
    """The variables and the buffers that a statement reads and writes.

    Attributes:
      made: the variables that it makes or assigns to.
      read: the variables that it reads; those that it assigns to count as read.
      stored: the buffers that it writes.
      loaded: the buffers that it reads.
    """

    def __init__(self, statement: Statement):
        every = list(walk_statements([statement]))
        indices, texts = read_texts([statement])
        texts += [t.text for index in indices for t in index.terms]
        self.made = {s.name for s in every if isinstance(s, Let | Assign)}
        self.read = set(find_names(" ".join(texts)))
        self.read |= {s.name for s in every if isinstance(s, Assign)}
        self.loaded = {load.buffer for s in every for load in loads_in(s)}
        self.stored: set[Buffer] = set()
        for s in every:
            match s:
                case Store():
                    self.stored.add(s.buffer)
                case Copy():
                    self.stored.add(s.to.buffer)
                    self.loaded.add(s.source.buffer)
                case Call():
                    passed = {a.buffer for a in s.args if isinstance(a, Pointer)}
                    self.stored |= passed
                    self.loaded |= passed

    def meets(self, other: Effects) -> bool:
        """Return True if the order of two statements matters."""
        return bool(
            self.made & (other.read | other.made)
            or self.read & other.made
            or self.stored & (other.stored | other.loaded)
            or self.loaded & other.stored
        )


def list_accesses(block: Sequence[Statement]) -> dict[Buffer, list[Index]]:
    """Return the indices at which statements read or write each buffer."""
    found: dict[Buffer, list[Index]] = {}
    for s in walk_statements(block):
        for load in loads_in(s):
            found.setdefault(load.buffer, []).append(load.index)
        if isinstance(s, Store):
            found.setdefault(s.buffer, []).append(s.index)
    return found


def copy_block(block: Sequence[Statement]) -> list[Any]:
    """Return copies of statements and of their nested statements."""
    out: list[Any] = []
    for statement in block:
        s = dataclasses.replace(statement)
        match s:
            case For():
                s.body = copy_block(s.body)
            case If():
                s.yes, s.no = copy_block(s.yes), copy_block(s.no)
            case Switch():
                s.cases = list(map(copy_block, s.cases))
            case While():
                s.head, s.body = copy_block(s.head), copy_block(s.body)
        out.append(s)
    return out


class Renaming:
    """New names of variables, and indices in place of loop variables."""

    def __init__(self, names: dict[str, str], indices: Mapping[str, Index] | None = None):
        self.names = names
        self.given = indices or {}

    def text(self, text: str) -> str:
        """Return a text of C with the new names."""
        return NAME.sub(lambda m: self.names.get(m[0], m[0]), text)

    def index(self, index: Index) -> Index:
        """Return an index with the new names and indices."""
        out = Index(constant=index.constant)
        for t, k in index.terms.items():
            found = self.given.get(t.text)
            if found is None:
                found = Index({Term(self.text(t.text), t.low, t.high): 1})
            out = out.add(found, k)
        return out

    def atom(self, a: Any) -> Any:
        """Return an operand with the new names and indices."""
        if isinstance(a, Load | Pointer):
            return type(a)(a.buffer, self.index(a.index))
        return self.text(a)

    def change(self, s: Statement) -> None:
        """Rename the variables in a statement itself."""
        match s:
            case Let():
                s.name, s.pattern = self.names.get(s.name, s.name), self.text(s.pattern)
                s.args = list(map(self.atom, s.args))
            case Assign():
                s.name, s.atom = self.names.get(s.name, s.name), self.atom(s.atom)
            case Store():
                s.index, s.atom = self.index(s.index), self.atom(s.atom)
            case For():
                s.name, s.count = self.names.get(s.name, s.name), self.index(s.count)
            case If() | While():
                s.condition = self.text(s.condition)
            case Switch():
                s.index = self.text(s.index)
            case Call():
                s.args = list(map(self.atom, s.args))
            case Copy():
                s.to, s.source = self.atom(s.to), self.atom(s.source)

    def change_block(self, block: Sequence[Statement]) -> None:
        """Rename the variables in statements and in their nested statements."""
        for s in block:
            self.change(s)
            for inner in blocks_in(s):
                self.change_block(inner)
