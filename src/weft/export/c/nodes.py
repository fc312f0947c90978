"""The small IR between programs and C: loops, loads, stores, and scalar variables.

Statements are in three-address form. Their operands are `Atom`s: the name of a variable, a number
in C, or an element of a buffer. `Let` and `Assign` hold C with a place for each operand.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from weft.export.c.index import Index
from weft.export.c.kinds import Kind
from weft.export.dims import Size


class Role(enum.Enum):
    """The owners of buffers."""

    ARGUMENT = enum.auto()  # the caller's, which is only read
    RESULT = enum.auto()  # the caller's, which is written
    CONSTANT = enum.auto()  # part of the program
    WORK = enum.auto()  # part of the arena
    LOCAL = enum.auto()  # an array of the function, which compilers hold in registers


@dataclasses.dataclass(eq=False)
class Buffer:
    """Memory for elements of one kind.

    Attributes:
      name: its name in C.
      kind: the kind of its elements.
      size: how many there are.
      role: whose it is.
      value: the elements of a constant.
      offset: where it begins in the arena, in bytes, if its size is a number.
      slot: otherwise the number of the part of the arena that it is in, from 1 on.
    """

    name: str
    kind: Kind
    size: Size
    role: Role
    value: np.ndarray | None = None
    offset: int = 0
    slot: int = 0

    @property
    def bytes(self) -> Size:
        """The size in bytes."""
        return self.size * (self.kind.bits // 8)


@dataclasses.dataclass(frozen=True)
class Load:
    """The stored element of a buffer."""

    buffer: Buffer
    index: Index


@dataclasses.dataclass(frozen=True)
class Pointer:
    """The address of an element of a buffer."""

    buffer: Buffer
    index: Index


Atom = str | Load


@dataclasses.dataclass(eq=False)
class Let:
    """A new variable of a type of C. It never changes, unless `mutable`.

    `is_sum` says that terms are added to it in loops, and that their order is free.
    """

    name: str
    ctype: str
    pattern: str
    args: Sequence[Atom] = ()
    mutable: bool = False
    is_sum: bool = False


@dataclasses.dataclass(eq=False)
class Assign:
    """A new value of a mutable variable."""

    name: str
    atom: Atom


@dataclasses.dataclass(eq=False)
class Store:
    """A value of the stored type written to an element of a buffer."""

    buffer: Buffer
    index: Index
    atom: Atom


@dataclasses.dataclass(eq=False)
class For:
    """A loop of a variable from 0 up to a number; backwards from its end where `reverse`."""

    name: str
    count: Index
    body: list[Statement]
    reverse: bool = False


@dataclasses.dataclass(eq=False)
class If:
    """One of two lists of statements."""

    condition: str
    yes: list[Statement]
    no: list[Statement]


@dataclasses.dataclass(eq=False)
class Switch:
    """One of several lists of statements, the last one for any other number."""

    index: str
    cases: list[list[Statement]]


@dataclasses.dataclass(eq=False)
class While:
    """Statements repeated until a variable that `head` makes is false."""

    head: list[Statement]
    condition: str
    body: list[Statement]


@dataclasses.dataclass(eq=False)
class Call:
    """A call of a function without a result."""

    function: str
    args: Sequence[str | Pointer]


@dataclasses.dataclass(eq=False)
class Copy:
    """Bytes moved from one buffer to another."""

    to: Pointer
    source: Pointer
    bytes: Size


Statement = Let | Assign | Store | For | If | Switch | While | Call | Copy
NESTING = (For, If, Switch, While)


def blocks_in(statement: Any) -> Sequence[list[Statement]]:
    """Return the lists of statements that a statement holds."""
    match statement:
        case For():
            return (statement.body,)
        case If():
            return (statement.yes, statement.no)
        case Switch():
            return statement.cases
        case While():
            return (statement.head, statement.body)
    return ()


def walk_statements(block: Sequence[Statement]) -> Iterator[Statement]:
    """Iterate over statements and their nested statements."""
    for statement in block:
        yield statement
        if isinstance(statement, NESTING):
            for inner in blocks_in(statement):
                yield from walk_statements(inner)


def loads_in(statement: Statement) -> list[Load]:
    """Return the elements that a statement reads itself."""
    match statement:
        case Let():
            return [a for a in statement.args if isinstance(a, Load)]
        case Assign() | Store():
            return [statement.atom] if isinstance(statement.atom, Load) else []
    return []


def buffers_in(statement: Statement) -> list[Buffer]:
    """Return the buffers that a statement itself reads or writes."""
    found = [load.buffer for load in loads_in(statement)]
    match statement:
        case Store():
            found.append(statement.buffer)
        case Call():
            found += [a.buffer for a in statement.args if isinstance(a, Pointer)]
        case Copy():
            found += [statement.to.buffer, statement.source.buffer]
    return found
