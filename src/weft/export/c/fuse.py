"""Loop nests merged, so that the values between them are variables and not arrays in memory.

Nests over the same places become one nest if each iteration needs only what the same iteration made
before. Loops of a few iterations in it are unrolled. An element that is stored and then read is a
variable. Sums of the merged loop are added up in lanes (loops.py): without that, a compiler would
vectorize the separate nests, and not the merged one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from weft.export.c.index import Index, index_number, index_term
from weft.export.c.names import find_names
from weft.export.c.nodes import (
    Assign,
    Buffer,
    Call,
    Copy,
    For,
    If,
    Let,
    Load,
    Statement,
    Store,
    Switch,
    While,
    blocks_in,
    walk_statements,
)
from weft.export.c.rewrite import Effects, Renaming, copy_block, list_accesses

MAX_UNROLLED = 4  # iterations of an inner loop that is written without a loop
MIN_COUNT = 8  # iterations of an innermost loop that is worth merging: a vector of float32
MAX_STATEMENTS = 800  # of a merged nest, for the time of compilers
MAX_NESTS = 300  # statements of a block that is looked at: each pair of nests is compared
COMPARISON = re.compile(r"([\d\s+*-]+?)(<=|<|==)([\d\s+*-]+)")
CALLED = re.compile(r"(?<!weft_)\b(?!weft_|sqrtf?\b|fabsf?\b)[a-zA-Z]\w*\(")


class Nest:
    """A loop nest without inner loops of a few iterations, and the facts that merging needs.

    Attributes:
      loop: the outer loop.
      effects: what it reads and writes.
      inside: the variables that each iteration makes.
      accesses: the indices at which it reads or writes each buffer.
      is_innermost: True if no loop is in it.
      size: the number of its statements.
    """

    def __init__(self, loop: For):
        every = list(walk_statements([loop]))
        self.loop = loop
        self.effects = Effects(loop)
        self.inside = {s.name for s in every if isinstance(s, Let | For)}
        self.accesses = list_accesses(loop.body)
        self.is_innermost = sum(isinstance(s, For) for s in every) == 1
        self.size = len(every)


class Step:
    """A statement of a block whose nests are merged.

    Attributes:
      statement: the statement.
      effects: what it reads and writes.
      is_nest: True for a loop nest that may be merged.
      plain: a copy of the nest as a `Nest`, once that is needed.
    """

    def __init__(self, statement: Any):
        self.statement = statement
        self.effects = Effects(statement)
        self.is_nest = is_candidate(statement)
        self.plain: Nest | None = None


class Fuser:
    """Merges the loop nests of a program.

    Attributes:
      merged: how many innermost loops are part of another one.
      forwarded: how many loads are variables.
    """

    def __init__(self, new_name: Callable[..., str]):
        self.new_name = new_name
        self.merged = self.forwarded = 0
        self.assigned: set[str] = set()
        self.sums: set[str] = set()

    def fuse(self, block: list[Statement]) -> None:
        """Merge nests in a block and in its nested blocks, where that makes loads unnecessary."""
        self.assigned |= {s.name for s in walk_statements(block) if isinstance(s, Assign)}
        self.sums |= {s.name for s in walk_statements(block) if isinstance(s, Let) and s.is_sum}
        self.fuse_block(block)

    def fuse_block(self, block: list[Statement]) -> None:
        """Merge nests in a block and in its nested blocks."""
        for s in block:
            for inner in blocks_in(s):
                self.fuse_block(inner)
        if sum(map(is_candidate, block)) < 2 or len(block) > MAX_NESTS:
            return
        tried, before = copy_block(block), (self.merged, self.forwarded)
        self.merge(tried)
        if self.merged == before[0]:
            return
        self.assigned |= {s.name for s in walk_statements(tried) if isinstance(s, Assign)}
        self.forward(tried, {}, Renaming({}))
        if self.forwarded > before[1]:
            block[:] = tried

    # --- merging ---

    def merge(self, block: list[Statement]) -> None:
        """Merge each nest of a block with the last earlier one with which that is possible."""
        if sum(isinstance(s, For) for s in block) < 2:
            return
        steps = [Step(s) for s in block]
        place = 0
        while place < len(steps):
            earlier = range(place - 1, -1, -1) if steps[place].is_nest else ()
            if not any(self.merge_pair(steps, k, place) for k in earlier):
                place += 1
        block[:] = [step.statement for step in steps]

    def merge_pair(self, steps: list[Step], place: int, other: int) -> bool:
        """Merge the nest at `other` into the one at `place`; return False if that is impossible.

        Statements between them that the later nest needs are moved in front of the earlier one.
        """
        left, right = steps[place], steps[other]
        if not left.is_nest or left.statement.count != right.statement.count:
            return False
        needed = [other]
        for k in range(other - 1, place, -1):
            if any(steps[k].effects.meets(steps[n].effects) for n in needed):
                if steps[k].effects.meets(left.effects):
                    return False
                needed.append(k)
        first, second = self.find_plain(left), self.find_plain(right)
        flat = first.is_innermost
        count = first.loop.count.number or 0
        is_long = count >= MIN_COUNT
        if is_long and flat != second.is_innermost:
            return False
        if first.size + second.size > MAX_STATEMENTS:
            return False
        if is_long and flat and not all(self.is_vectorized(n.loop) for n in (first, second)):
            return False
        if not may_merge(first, second):
            return False
        loop, later = first.loop, second.loop
        variable = index_term(loop.name, 0, count - 1)
        Renaming({later.name: loop.name}, {later.name: variable}).change_block(later.body)
        loop.body += later.body
        self.merge(loop.body)
        self.merged += is_long and flat
        moved = sorted(needed[1:])
        kept = [k for k in range(place + 1, other) if k not in moved]
        joined = Step(loop)
        joined.plain = Nest(loop)
        steps[place : other + 1] = [*[steps[k] for k in moved], joined, *[steps[k] for k in kept]]
        return True

    def find_plain(self, step: Step) -> Nest:
        """Return a copy of a nest, whose loops of a few iterations are unrolled."""
        if step.plain is None:
            (loop,) = copy_block([step.statement])
            self.unroll(loop.body)
            step.plain = Nest(loop)
        return step.plain

    def is_vectorized(self, s: For) -> bool:
        """Return True if a compiler probably vectorizes a loop, with its sums in lanes.

        Calls of libm, branches, and values that go on to the next iteration keep it from that.
        """
        for x in s.body:
            if isinstance(x, If) or (isinstance(x, Assign) and x.name not in self.sums):
                return False
            if isinstance(x, Let) and "(" in x.pattern and CALLED.search(x.pattern):
                return False
        return True

    def unroll(self, block: list[Statement]) -> None:
        """Write the iterations of loops of a few iterations one after another."""
        out: list[Statement] = []
        for s in block:
            for inner in blocks_in(s):
                self.unroll(inner)
            count = s.count.number if isinstance(s, For) and not s.reverse else None
            if not isinstance(s, For) or count is None or count > MAX_UNROLLED:
                out.append(s)
                continue
            for k in range(count):
                body = copy_block(s.body)
                names = {s.name: str(k)}
                for x in walk_statements(body):
                    if isinstance(x, Let | For):
                        names[x.name] = self.new_name("i" if isinstance(x, For) else "t")
                    if isinstance(x, Let) and x.is_sum:
                        self.sums.add(names[x.name])
                Renaming(names, {s.name: index_number(k)}).change_block(body)
                out += fold(body)
        block[:] = out

    # --- variables in place of elements ---

    def forward(
        self, block: list[Statement], known: dict[tuple[Buffer, Index], str], renaming: Renaming
    ) -> None:
        """Replace loads of elements that were stored before by the variables that were stored."""
        out: list[Statement] = []
        for s in block:
            renaming.change(s)
            if isinstance(s, Let) and s.pattern == "{0}" and not s.mutable:
                load = s.args[0]
                name = known.get((load.buffer, load.index)) if isinstance(load, Load) else None
                if name is not None:
                    renaming.names[s.name] = name
                    self.forwarded += 1
                    continue
            out.append(s)
            if isinstance(s, Store):
                for key in [k for k in known if k[0] is s.buffer]:
                    if not key[1].add(s.index, -1).number:  # equal, or not known to be different
                        del known[key]
                if isinstance(s.atom, str) and s.atom not in self.assigned:
                    known[s.buffer, s.index] = s.atom
                continue
            if isinstance(s, Let):  # a new name: no element that is known has it
                continue
            effects = Effects(s)
            for key in list(known):
                terms = " ".join([t.text for t in key[1].terms])
                if key[0] in effects.stored or effects.made & set(find_names(terms)):
                    del known[key]
            for inner in blocks_in(s):
                self.forward(inner, dict(known), renaming)
        block[:] = out


def is_candidate(s: Statement) -> bool:
    """Return True for a loop nest over places of arrays, of known sizes."""
    if not isinstance(s, For):
        return False
    for x in walk_statements([s]):
        if isinstance(x, Call | Copy | While | Switch):
            return False
        if isinstance(x, For) and (x.reverse or x.count.number is None):
            return False
    return True


def may_merge(first: Nest, second: Nest) -> bool:
    """Return True if iterations need nothing that other iterations of the other loop make.

    So each iteration of both loops must use its own part of a buffer: a range of indices whose
    place is the iteration times the length of the range.
    """
    a, b = first.effects, second.effects
    if (a.made - first.inside) & (b.read | b.made) or (b.made - second.inside) & a.read:
        return False
    for buffer in (a.stored & (b.stored | b.loaded)) | (a.loaded & b.stored):
        forms, low, high = set(), [], []
        for nest in (first, second):
            for index in nest.accesses[buffer]:
                step, around, rest = 0, {}, index_number(index.constant)
                for t, k in index.terms.items():
                    if t.text == nest.loop.name:
                        step = k
                    elif nest.inside & set(find_names(t.text)):
                        rest = rest.add(Index({t: k}))
                    else:
                        around[t.text] = k
                forms.add((step, tuple(sorted(around.items()))))
                low.append(rest.low)
                high.append(rest.high)
        ((step, _),) = forms if len(forms) == 1 else ((0, ()),)
        if type(step) is not int or step <= max(high) - min(low):
            return False
    return True


def fold(block: list[Statement]) -> list[Statement]:
    """Take the known branches, and name values that are assigned once."""
    out: list[Statement] = []
    for s in block:
        taken = evaluate(s.condition) if isinstance(s, If) else None
        if isinstance(s, If) and taken is not None:
            out += fold(s.yes if taken else s.no)
            continue
        for inner in blocks_in(s):
            inner[:] = fold(inner)
        out.append(s)
    for k, s in enumerate(out):
        if isinstance(s, Let) and s.mutable:
            end = next((n for n, x in enumerate(out) if n > k and s.name in Effects(x).read), None)
            found = out[end] if end is not None else None
            every = [x for x in walk_statements(out) if isinstance(x, Assign) and x.name == s.name]
            if isinstance(found, Assign) and every == [found]:
                assert end is not None
                out[end] = Let(s.name, s.ctype, "{0}", [found.atom])
                out[k] = Let(s.name, s.ctype, "", ())  # taken out below
    return [s for s in out if not (isinstance(s, Let) and not s.pattern)]


def evaluate(condition: str) -> bool | None:
    """Return the value of comparisons of numbers, joined by `&&`; None for other conditions."""
    known = True
    for part in condition.split("&&"):
        match = COMPARISON.fullmatch(part.strip())
        if match is None:
            return None
        left, right = add_up(match[1]), add_up(match[3])
        known &= {"<": left < right, "<=": left <= right, "==": left == right}[match[2]]
    return known


def add_up(text: str) -> int:
    """Return the value of a sum of products of numbers."""
    total = 0
    for sign, product in re.findall(r"([+-]?)\s*(\d+(?:\s*\*\s*\d+)*)", text):
        value = 1
        for factor in product.split("*"):
            value *= int(factor)
        total += -value if sign == "-" else value
    return total
