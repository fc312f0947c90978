"""The small IR between programs and C: loops, loads, stores, and scalar variables.

Statements are in three-address form. Their operands are `Atom`s: the name of a variable, a number
in C, or an element of a buffer. `Let` and `Assign` hold C with a place for each operand.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
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
BLOCKS: Mapping[type, Callable[[Any], Sequence[list[Statement]]]] = {
    For: lambda s: (s.body,),
    If: lambda s: (s.yes, s.no),
    Switch: lambda s: s.cases,
    While: lambda s: (s.head, s.body),
}

# The functions below look at each statement many times while a program is written. A comparison of
# types takes a third of the time of `match`, and a generator in another one is slow.


def blocks_in(statement: Any) -> Sequence[list[Statement]]:
    """Return the lists of statements that a statement holds."""
    find = BLOCKS.get(type(statement))
    return find(statement) if find else ()


def walk_statements(block: Sequence[Statement]) -> Iterator[Statement]:
    """Iterate over statements and their nested statements."""
    around = [iter(block)]
    while around:
        for statement in around[-1]:
            yield statement
            if type(statement) in BLOCKS:
                around += [iter(inner) for inner in reversed(blocks_in(statement))]
                break
        else:
            around.pop()


def loads_in(statement: Any) -> list[Load]:
    """Return the elements that a statement reads itself."""
    kind = type(statement)
    if kind is Let:
        return [a for a in statement.args if type(a) is Load]
    if (kind is Store or kind is Assign) and type(statement.atom) is Load:
        return [statement.atom]
    return []


def buffers_in(statement: Any) -> list[Buffer]:
    """Return the buffers that a statement itself reads or writes."""
    found = [load.buffer for load in loads_in(statement)]
    kind = type(statement)
    if kind is Store:
        found.append(statement.buffer)
    elif kind is Call:
        found += [a.buffer for a in statement.args if type(a) is Pointer]
    elif kind is Copy:
        found += [statement.to.buffer, statement.source.buffer]
    return found
