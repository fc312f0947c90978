"""Copies of statements with other names and indices, and what statements read and write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from weft.export.c.index import Index, Term
from weft.export.c.names import NAME, find_names, is_variable
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


def atoms_in(s: Any) -> Sequence[Any]:
    """Return the operands of a statement itself."""
    kind = type(s)
    if kind is Let or kind is Call:
        return s.args
    if kind is Store or kind is Assign:
        return (s.atom,)
    return (s.to, s.source) if kind is Copy else ()


def texts_of(s: Any) -> list[str]:
    """Return the texts that a statement itself reads, other than the indices of elements."""
    kind = type(s)
    if kind is Let:
        return [s.pattern, *[a for a in s.args if type(a) is str]]
    if kind is Store or kind is Assign:
        return [s.atom] if type(s.atom) is str else []
    if kind is For:
        return [s.count.text]
    if kind is Call:
        return [a for a in s.args if type(a) is str]
    if kind is Copy:
        return []
    return [s.index if kind is Switch else s.condition]


def indices_of(s: Statement) -> list[Index]:
    """Return the indices of elements in a statement itself."""
    found = [a.index for a in atoms_in(s) if type(a) is not str]
    return [s.index, *found] if type(s) is Store else found


def names_in(s: Statement) -> list[str]:
    """Return the variables that a statement itself reads."""
    texts = texts_of(s)
    for index in indices_of(s):
        texts += [t.text for t in index.terms]
    names: list[str] = []
    others: list[str] = []
    for text in texts:  # most texts are names: a regular expression takes longer
        (names if is_variable(text) else others).append(text)
    return names + find_names(" ".join(others)) if others else names


def read_texts(block: Sequence[Statement]) -> tuple[list[Index], list[str]]:
    """Return the indices of elements in statements, and their other texts that are read."""
    indices: list[Index] = []
    texts: list[str] = []
    for s in walk_statements(block):
        indices += indices_of(s)
        texts += texts_of(s)
    return indices, texts


class Effects:
    """The variables and the buffers that statements read and write.

    Attributes:
      made: the variables that they make or assign to.
      read: the variables that they read; those that they assign to count as read.
      stored: the buffers that they write.
      loaded: the buffers that they read.
    """

    def __init__(self, statement: Statement):
        self.made: set[str] = set()
        self.read: set[str] = set()
        self.stored: set[Buffer] = set()
        self.loaded: set[Buffer] = set()
        for s in walk_statements([statement]):
            self.add(s)

    def add(self, s: Statement) -> None:
        """Add what a statement itself does."""
        self.read.update(names_in(s))
        match s:
            case Let():
                self.made.add(s.name)
            case Assign():
                self.made.add(s.name)
                self.read.add(s.name)
            case Store():
                self.stored.add(s.buffer)
            case Copy():
                self.stored.add(s.to.buffer)
                self.loaded.add(s.source.buffer)
            case Call():
                passed = {a.buffer for a in s.args if isinstance(a, Pointer)}
                self.stored |= passed
                self.loaded |= passed
        self.loaded.update([load.buffer for load in loads_in(s)])

    def include(self, other: Effects) -> None:
        """Add the effects of other statements."""
        self.made |= other.made
        self.read |= other.read
        self.stored |= other.stored
        self.loaded |= other.loaded

    def meets(self, other: Effects) -> bool:
        """Return True if the order of two statements matters."""
        return not (
            self.made.isdisjoint(other.read)
            and self.made.isdisjoint(other.made)
            and self.read.isdisjoint(other.made)
            and self.stored.isdisjoint(other.stored)
            and self.stored.isdisjoint(other.loaded)
            and self.loaded.isdisjoint(other.stored)
        )


class KnownElements:
    """The variables and the numbers that elements of buffers are known to be.

    Attributes:
      held: by buffer and index, the variable or the number.
    """

    def __init__(self, held: Mapping[Buffer, Mapping[Index, str]] | None = None):
        self.held = {buffer: dict(names) for buffer, names in (held or {}).items()}

    def copy(self) -> KnownElements:
        """Return a copy that changes by itself."""
        return KnownElements(self.held)

    def find(self, load: Load) -> str | None:
        """Return what an element is; None if that is not known."""
        return self.held.get(load.buffer, {}).get(load.index)

    def store(self, s: Store, assigned: Set[str]) -> None:
        """Note the stored atom. Variables in `assigned` change, so they are not noted."""
        names = self.held.setdefault(s.buffer, {})
        for index in [i for i in names if not i.add(s.index, -1).number]:
            del names[index]  # equal, or not known to be different
        if isinstance(s.atom, str) and s.atom not in assigned:
            names[s.index] = s.atom

    def forget(self, effects: Effects) -> None:
        """Forget the elements that statements change, or whose indices they change."""
        for buffer, names in self.held.items():
            if buffer in effects.stored:
                names.clear()
            for index in [i for i in names if effects.made & find_index_names(i)]:
                del names[index]


def find_index_names(index: Index) -> set[str]:
    """Return the variables that an index reads."""
    return set(find_names(" ".join([t.text for t in index.terms])))


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
        s: Any = object.__new__(type(statement))
        s.__dict__.update(statement.__dict__)  # dataclasses.replace takes five times as long
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
        if is_variable(text) or not self.names:
            return self.names.get(text, text)
        return NAME.sub(lambda m: self.names.get(m[0], m[0]), text)

    def index(self, index: Index) -> Index:
        """Return an index with the new names and indices."""
        texts = {t: self.text(t.text) for t in index.terms}
        if all(t.text not in self.given and t.text == text for t, text in texts.items()):
            return index
        out = Index(constant=index.constant)
        for t, k in index.terms.items():
            found = self.given.get(t.text)
            if found is None:
                found = Index({Term(texts[t], t.low, t.high): 1})
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
