"""Assign each buffer of a program an offset in the arena, so that the arena is small.

Two buffers may share memory if their lifetimes do not overlap. A buffer that is used before a loop
and in it is alive until the loop ends. Buffers of symbolic sizes come after the others. They are in
slots, one after another; each slot is as large as the largest buffer in it.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import NamedTuple

from weft.export.c.names import find_names
from weft.export.c.nodes import (
    Assign,
    Buffer,
    Call,
    Copy,
    For,
    If,
    Let,
    Pointer,
    Role,
    Statement,
    Store,
    Switch,
    While,
    blocks_in,
    buffers_in,
    loads_in,
    walk_statements,
)
from weft.export.c.rewrite import names_in
from weft.export.c.sizes import find_typical, is_at_least
from weft.export.dims import Size

ALIGNMENT = 16  # bytes, as vectors of most processors want it
MAX_LOCAL = 64  # bytes of an array that is a local one, and
MAX_LOCALS = 4096  # of all of them: stacks of small devices are small


def drop_unused(block: list[Statement], extra: str = "") -> None:
    """Take out variables that nothing reads, and blocks that have nothing in them."""
    while True:
        names = {s: names_in(s) for s in walk_statements(block)}
        counts = collections.Counter(find_names(extra))
        makers: dict[str, list[Statement]] = {}
        for s, read in names.items():
            counts.update(read)
            if isinstance(s, Let | Assign):
                makers.setdefault(s.name, []).append(s)
        unread = [name for name in makers if not counts[name]]
        for name in unread:  # the list grows: variables that only unread ones read are unread
            for s in makers[name]:
                counts.subtract(names[s])
                unread += [x for x in dict.fromkeys(names[s]) if not counts[x] and x in makers]
        if not prune(block, set(unread)):  # an empty block may have had the last use of a variable
            return


def drop_unread(block: list[Statement]) -> None:
    """Take out the stores to buffers of the arena that nothing in a program reads."""
    while True:
        statements = list(walk_statements(block))
        read = {load.buffer for s in statements for load in loads_in(s)}
        read |= {s.source.buffer for s in statements if isinstance(s, Copy)}
        for s in statements:
            if isinstance(s, Call):
                read |= {a.buffer for a in s.args if isinstance(a, Pointer)}
        unread = {b for b in list_used(block) if b.role is Role.WORK and b not in read}
        if not unread:
            return
        prune_stores(block, unread)
        drop_unused(block)


def prune_stores(block: list[Statement], unread: set[Buffer]) -> None:
    """Take out statements that write to buffers of a set."""
    for statement in block:
        for inner in blocks_in(statement):
            prune_stores(inner, unread)
    block[:] = [
        s
        for s in block
        if not (isinstance(s, Store) and s.buffer in unread)
        and not (isinstance(s, Copy) and s.to.buffer in unread)
    ]


def prune(block: list[Statement], unread: set[str]) -> bool:
    """Take out variables of a set, and statements whose blocks are empty; True for the latter."""
    found_empty, kept = False, list[Statement]()
    for statement in block:
        if isinstance(statement, Let | Assign):
            if statement.name not in unread:
                kept.append(statement)
            continue
        for inner in blocks_in(statement):
            found_empty = prune(inner, unread) or found_empty
        if isinstance(statement, For | If | Switch) and not any(blocks_in(statement)):
            found_empty = True
        else:
            kept.append(statement)
    block[:] = kept
    return found_empty


class Lives:
    """The first and the last statement during which each buffer holds something, by number.

    A buffer that is used both in a loop and outside of it holds something throughout the loop.
    """

    def __init__(self, block: Sequence[Statement]):
        self.count = 0
        self.uses: dict[Buffer, list[int]] = {}
        self.loops: list[tuple[int, int, dict[Buffer, None]]] = []
        self.visit(block)
        self.first = {b: min(places) for b, places in self.uses.items()}
        self.last = {b: max(places) for b, places in self.uses.items()}
        for start, stop, used in self.loops:
            for b in used:
                if not all(start <= place <= stop for place in self.uses[b]):
                    self.first[b] = min(self.first[b], start)
                    self.last[b] = max(self.last[b], stop)

    def overlap(self, a: Buffer, b: Buffer) -> bool:
        """Return True if two buffers hold something at the same time."""
        return self.first[a] <= self.last[b] and self.first[b] <= self.last[a]

    def visit(self, block: Sequence[Statement]) -> dict[Buffer, None]:
        """Number statements; the buffers of the arena that they use, in order of first use.

        In a set they would be in another order in each process, and so would the source: libraries
        are stored by their source.
        """
        every: dict[Buffer, None] = {}
        for statement in block:
            self.count += 1
            start = self.count
            used = dict.fromkeys([b for b in buffers_in(statement) if b.role is Role.WORK])
            for buffer in used:
                self.uses.setdefault(buffer, []).append(start)
            for inner in blocks_in(statement):
                used |= self.visit(inner)
            if isinstance(statement, For | While):
                self.count += 1
                self.loops.append((start, self.count, used))
            every |= used
        return every


class Arena(NamedTuple):
    """The memory of a program: the bytes of its buffers of known sizes, and of each slot."""

    fixed: int
    slots: Sequence[Size]

    @property
    def bytes(self) -> Size:
        """The size in bytes, with what slots lose by alignment."""
        return sum(self.slots, self.fixed + (ALIGNMENT - 1) * len(self.slots))


def plan_arena(block: Sequence[Statement]) -> Arena:
    """Give each buffer of the arena its place."""
    choose_locals(block)
    lives = Lives(block)
    known = [b for b in lives.first if type(b.bytes) is int]
    symbolic = [b for b in lives.first if type(b.bytes) is not int]
    return Arena(place_known(known, lives), place_symbolic(symbolic, lives))


def choose_locals(block: Sequence[Statement]) -> None:
    """Make small buffers local arrays of the function.

    A compiler unrolls loops of a few iterations and holds the elements of local arrays in registers
    where no pointer refers to them. Stores through other pointers might change a buffer in the
    arena.
    """
    passed = {
        a.buffer
        for s in walk_statements(block)
        for a in (s.args if isinstance(s, Call) else ())
        if isinstance(a, Pointer)
    }
    total = 0
    for buffer in list_used(block):
        size = buffer.bytes
        is_small = type(size) is int and 0 < size <= MAX_LOCAL and total + size <= MAX_LOCALS
        if buffer.role is Role.WORK and is_small and buffer not in passed:
            buffer.role = Role.LOCAL
            total += size


def place_symbolic(buffers: Sequence[Buffer], lives: Lives) -> list[Size]:
    """Give each buffer of a symbolic size its slot; the sizes of the slots."""
    sizes: list[Size] = []
    tenants: list[list[Buffer]] = []
    for buffer in sorted(buffers, key=lambda b: (-find_typical(b.bytes), lives.first[b])):
        for k, held in enumerate(tenants):
            free = not any(lives.overlap(buffer, b) for b in held)
            if free and is_at_least(sizes[k], buffer.bytes):
                break
        else:
            k = len(sizes)
            sizes.append(buffer.bytes)
            tenants.append([])
        tenants[k].append(buffer)
        buffer.slot = k + 1
    return sizes


def place_known(buffers: Sequence[Buffer], lives: Lives) -> int:
    """Give each buffer of a known size its offset; the bytes of all."""
    placed: list[Buffer] = []
    size = 0
    for buffer in sorted(buffers, key=lambda b: (-b.bytes, lives.first[b])):
        busy = sorted((b.offset, b.offset + b.bytes) for b in placed if lives.overlap(buffer, b))
        offset = 0
        for low, high in busy:
            if offset + buffer.bytes <= low:
                break
            offset = max(offset, -(-high // ALIGNMENT) * ALIGNMENT)
        buffer.offset = offset
        placed.append(buffer)
        size = max(size, offset + buffer.bytes)
    return -(-size // ALIGNMENT) * ALIGNMENT


def list_used(block: Sequence[Statement]) -> list[Buffer]:
    """Return the buffers that statements use, each once."""
    return list(dict.fromkeys(b for s in walk_statements(block) for b in buffers_in(s)))
