"""Loops rewritten so that compilers vectorize them: one loop for two, and sums in lanes."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence

from weft.export.c.index import Index, Term, index_number, index_term
from weft.export.c.kinds import KINDS, write_number
from weft.export.c.names import find_names
from weft.export.c.nodes import (
    Assign,
    Buffer,
    For,
    Let,
    Load,
    Role,
    Statement,
    Store,
    blocks_in,
    walk_statements,
)
from weft.export.c.rewrite import Renaming, copy_block, read_texts

KIND_OF = {k.computed: k for k in KINDS.values() if k.name in ("f32", "f64")}
LANES = 8  # of a sum: a vector register of AVX2 has 8 float32 numbers
MAX_SUMS = 24  # sums of one loop that are in lanes: 768 bytes of float32 in local arrays


def collapse(block: list[Statement]) -> None:
    """Replace two nested loops by one loop, where all indices allow it.

    Compilers vectorize one loop of 30 iterations, and do not vectorize 10 loops of 3.
    """
    for statement in block:
        for inner in blocks_in(statement):
            collapse(inner)
        while isinstance(statement, For) and collapse_pair(statement):
            pass


def collapse_pair(outer: For) -> bool:
    """Merge a loop with the loop that is its only statement; return False if that is impossible."""
    inner = outer.body[0] if len(outer.body) == 1 else None
    if not isinstance(inner, For) or outer.reverse or inner.reverse:
        return False
    n, m = outer.count.number, inner.count.number
    if n is None or m is None or m < 1:
        return False
    indices, texts = read_texts(inner.body)
    variables = {outer.name, inner.name}
    if variables & set(find_names(" ".join(texts))):
        return False
    for index in indices:
        steps = {t.text: k for t, k in index.terms.items()}
        if steps.pop(outer.name, 0) != m * steps.pop(inner.name, 0):
            return False
        if variables & set(find_names(" ".join(steps))):
            return False
    place = Index({Term(inner.name, 0, n * m - 1): 1})
    # the outer variable is replaced by 0, the inner one by the variable of both loops
    Renaming({}, {outer.name: Index(), inner.name: place}).change_block(inner.body)
    outer.name, outer.count, outer.body = inner.name, index_number(n * m), inner.body
    return True


class LaneWriter:
    """Adds up sums of known lengths in lanes.

    A processor adds vectors of lanes, and an addition need not wait for the one before. The lanes
    are local arrays, which all loops share: compilers hold them in registers.
    """

    def __init__(self, new_name: Callable[..., str]):
        self.new_name = new_name
        self.lanes: dict[tuple[str, int], Buffer] = {}
        self.totals: set[str] = set()

    def write(self, block: list[Statement]) -> None:
        """Rewrite the sums in a block and in its nested blocks."""
        self.totals = {s.name for s in walk_statements(block) if isinstance(s, Let) and s.is_sum}
        self.write_block(block)

    def write_block(self, block: list[Statement]) -> None:
        """Rewrite the sums in a block and in its nested blocks."""
        out: list[Statement] = []
        for s in block:
            for inner in blocks_in(s):
                self.write_block(inner)
            sums = self.find_sums(s) if isinstance(s, For) else {}
            out += self.split_loop(s, sums) if isinstance(s, For) and sums else [s]
        block[:] = out

    def find_sums(self, loop: For) -> dict[str, Let]:
        """Return the sums of a loop that does nothing else but stores, each with an addition."""
        count = loop.count.number
        if count is None or count < LANES or loop.reverse:
            return {}
        sums: dict[str, Let] = {}
        made: dict[str, Let] = {}
        for s in loop.body:
            match s:
                case Let(mutable=False):
                    made[s.name] = s
                case Assign(atom=str()):
                    add = made.get(s.atom)
                    if add is None or add.pattern != "{0} + {1}" or add.args[0] != s.name:
                        return {}
                    if add.ctype not in KIND_OF or s.name not in self.totals:
                        return {}
                    sums[s.name] = add
                case Store():
                    pass
                case _:
                    return {}
        indices, texts = read_texts(loop.body)
        counts = collections.Counter(find_names(" ".join(texts)))
        assigned = collections.Counter(s.name for s in loop.body if isinstance(s, Assign))
        terms = {t.text for index in indices for t in index.terms} - {loop.name}
        if loop.name in counts or loop.name in find_names(" ".join(terms)):
            return {}
        if len(sums) > MAX_SUMS or any(counts[name] != assigned[name] for name in sums):
            return {}
        return sums

    def split_loop(self, loop: For, sums: dict[str, Let]) -> list[Statement]:
        """Return the statements that add up the sums of a loop in lanes."""
        lanes: dict[str, Buffer] = {}
        for name, add in sums.items():
            kind = KIND_OF[add.ctype]
            key = kind.name, sum(b.kind is kind for b in lanes.values())
            if key not in self.lanes:
                self.lanes[key] = Buffer(self.new_name("b"), kind, LANES, Role.LOCAL)
            lanes[name] = self.lanes[key]
        count = loop.count.number
        assert count is not None
        whole, rest = divmod(count, LANES)
        out: list[Statement] = []
        if whole > 1:
            k = self.new_lane(LANES)
            zeros = [Store(b, k, write_number(0, b.kind)) for b in lanes.values()]
            out.append(close(k, LANES, zeros))
        k = self.new_lane(LANES)
        if whole > 1:
            block = index_term(self.new_name("i"), 0, whole - 1)
            body = self.write_lane(loop, k.add(block, LANES), k, lanes, False)
            out.append(close(block, whole, [close(k, LANES, body)]))
        else:
            out.append(close(k, LANES, self.write_lane(loop, k, k, lanes, True)))
        if rest:
            k = self.new_lane(rest)
            at = k.add(index_number(whole * LANES))
            out.append(close(k, rest, self.write_lane(loop, at, k, lanes, False)))
        return [*out, *self.join_lanes(sums, lanes)]

    def new_lane(self, width: int) -> Index:
        """Return the variable of a new loop over lanes."""
        return index_term(self.new_name("i"), 0, width - 1)

    def write_lane(
        self, loop: For, at: Index, lane: Index, lanes: dict[str, Buffer], is_first: bool
    ) -> list[Statement]:
        """Return the body of a loop at an index, with lanes in place of sums.

        The first terms are stored in lanes that hold nothing yet.
        """
        body = copy_block(loop.body)
        names = {s.name: self.new_name() for s in body if isinstance(s, Let)}
        Renaming(names, {loop.name: at}).change_block(body)
        started: set[str] = set()
        out: list[Statement] = []
        for s in body:
            if isinstance(s, Assign):
                started.add(s.name)
                s = Store(lanes[s.name], lane, s.atom)
            elif isinstance(s, Let) and s.args and s.args[0] in lanes:
                name = str(s.args[0])
                if is_first and name not in started:
                    s = Let(s.name, s.ctype, "{0}", [s.args[1]])
                else:
                    old = self.new_name()
                    out.append(Let(old, s.ctype, "{0}", [Load(lanes[name], lane)]))
                    s = Let(s.name, s.ctype, s.pattern, [old, s.args[1]])
            out.append(s)
        return out

    def join_lanes(self, sums: dict[str, Let], lanes: dict[str, Buffer]) -> list[Statement]:
        """Return the statements that add up the lanes of each sum."""
        k = self.new_lane(LANES // 2)
        halves: list[Statement] = []
        for name, add in sums.items():
            both = Load(lanes[name], k), Load(lanes[name], k.add(index_number(LANES // 2)))
            steps = self.add_all(add, both)
            halves += [*steps, Store(lanes[name], k, steps[-1].name)]
        out: list[Statement] = [close(k, LANES // 2, halves)]
        for name, add in sums.items():
            loads = [Load(lanes[name], index_number(n)) for n in range(LANES // 2)]
            left, right = self.add_all(add, loads[::2]), self.add_all(add, loads[1::2])
            last = self.add_all(add, [left[-1].name, right[-1].name])
            last += self.add_all(add, [name, last[-1].name])
            out += [*left, *right, *last, Assign(name, last[-1].name)]
        return out

    def add_all(self, add: Let, pair: Sequence[Load | str]) -> list[Let]:
        """Return the statements of an addition like another one; the last one is the sum."""
        out: list[Let] = []
        for a in pair:
            if isinstance(a, Load):
                out.append(Let(self.new_name(), add.ctype, "{0}", [a]))
        args = [s.name for s in out] or list(pair)
        return [*out, Let(self.new_name(), add.ctype, add.pattern, args)]


def close(variable: Index, count: int, body: list[Statement]) -> For:
    """Return a loop of a variable."""
    ((term, _),) = variable.terms.items()
    return For(term.text, index_number(count), body)
