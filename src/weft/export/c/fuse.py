"""Loop nests merged, so that the values between them are variables and not arrays in memory.

Nests over the same places become one nest if each iteration needs only what the same iteration made
before. Loops of a few iterations in it are unrolled. An element that is stored and then read is a
variable. Sums of the merged loop are added up in lanes (loops.py): without that, a compiler would
vectorize the separate nests, and not the merged one.
"""

from __future__ import annotations

import collections
import functools
import re
from collections.abc import Callable
from typing import Any

from weft.export.c.index import Index, index_number, index_term
from weft.export.c.names import find_names
from weft.export.c.nodes import (
    Assign,
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
from weft.export.c.rewrite import Effects, KnownElements, Renaming, copy_block, list_accesses

MAX_UNROLLED = 4  # iterations of an inner loop that is written without a loop
MIN_COUNT = 8  # iterations of an innermost loop that is worth merging: a vector of float32
MAX_STATEMENTS = 800  # of a merged nest, for the time of compilers
MAX_NESTS = 300  # statements of a block that is looked at: each pair of nests is compared
COMPARISON = re.compile(r"([\d\s+*-]+?)(<=|<|==)([\d\s+*-]+)")
CALLED = re.compile(r"(?<!weft_)\b(?!weft_|sqrtf?\b|fabsf?\b)[a-zA-Z]\w*\(")


class Nest:
    """A loop nest without inner loops of a few iterations, and the facts that merging needs.

    Names of loop variables that merging has replaced stay in the facts.

    Attributes:
      loop: the outer loop.
      effects: what it reads and writes.
      variables: the names of the outer loop's variable.
      inside: the variables that each iteration makes.
      accesses: the indices at which it reads or writes each buffer.
      is_innermost: True if no loop is in it.
      size: the number of its statements.
    """

    def __init__(self, loop: For, effects: Effects):
        every = list(walk_statements([loop]))
        self.loop = loop
        self.effects = effects
        self.variables = {loop.name}
        self.inside = {s.name for s in every if isinstance(s, Let | For)}
        self.accesses = list_accesses(loop.body)
        self.is_innermost = sum(isinstance(s, For) for s in every) == 1
        self.size = len(every)

    def include(self, other: Nest) -> None:
        """Add the facts of a nest whose body has become a part of this one."""
        self.effects.include(other.effects)
        self.variables |= other.variables
        self.inside |= other.inside
        for buffer, indices in other.accesses.items():
            self.accesses.setdefault(buffer, []).extend(indices)
        self.is_innermost = self.is_innermost and other.is_innermost
        self.size += other.size - 1


class Step:
    """A statement of a block whose nests are merged.

    Attributes:
      statement: the statement.
      is_nest: True for a loop nest that may be merged.
      plain: the nest as a `Nest`, once that is needed.
    """

    def __init__(self, statement: Any):
        self.statement = statement
        self.is_nest = is_candidate(statement)
        self.plain: Nest | None = None

    @functools.cached_property
    def effects(self) -> Effects:
        """The variables and the buffers that the statement reads and writes."""
        return Effects(self.statement)


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
        nests = [s for s in block if is_candidate(s)] if len(block) <= MAX_NESTS else []
        if len({s.count for s in nests if isinstance(s, For)}) == len(nests):
            return  # none has as many iterations as another one
        tried, before = copy_block(block), (self.merged, self.forwarded)
        self.merge(tried)
        if self.merged == before[0]:
            return
        self.assigned |= {s.name for s in walk_statements(tried) if isinstance(s, Assign)}
        self.forward(tried, KnownElements(), Renaming({}))
        if self.forwarded > before[1]:
            block[:] = tried

    # --- merging ---

    def merge(self, block: list[Statement]) -> None:
        """Merge each nest of a block with the last earlier one with which that is possible."""
        steps = [Step(s) for s in block]
        counts = collections.Counter(s.statement.count for s in steps if s.is_nest)
        if all(n < 2 for n in counts.values()):
            return
        place = 0
        while place < len(steps):
            is_single = not steps[place].is_nest or counts[steps[place].statement.count] < 2
            if is_single or not self.merge_earlier(steps, place):
                place += 1
        block[:] = [step.statement for step in steps]

    def merge_earlier(self, steps: list[Step], other: int) -> bool:
        """Merge a nest with the last earlier one with which that is possible; False if none is.

        Statements between them that the later nest needs are moved in front of the earlier one.
        """
        right = steps[other]
        needed = [other]  # the nest, and the statements that it needs among those after `place`
        for place in range(other - 1, -1, -1):
            left = steps[place]
            is_like = left.is_nest and left.statement.count == right.statement.count
            is_first = not any(left.effects.meets(steps[n].effects) for n in needed[1:])
            if is_like and is_first and self.merge_pair(left, right):
                moved = sorted(needed[1:])
                kept = [k for k in range(place + 1, other) if k not in moved]
                steps[place : other + 1] = [steps[k] for k in (*moved, place, *kept)]
                return True
            if any(left.effects.meets(steps[n].effects) for n in needed):
                needed.append(place)
        return False

    def merge_pair(self, left: Step, right: Step) -> bool:
        """Merge a nest into an earlier one; return False if that is impossible."""
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
        if not (flat and second.is_innermost):
            self.merge(loop.body)
        self.merged += is_long and flat
        first.include(second)
        left.statement, left.effects = loop, first.effects
        return True

    def find_plain(self, step: Step) -> Nest:
        """Return a nest whose loops of a few iterations are unrolled; the statement stays as is."""
        if step.plain is None:
            loop, effects = step.statement, step.effects
            if any(is_short(s) for s in walk_statements(loop.body)):
                (loop,) = copy_block([loop])
                self.unroll(loop.body)
                effects = Effects(loop)
            step.plain = Nest(loop, effects)
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
            if not isinstance(s, For) or not is_short(s):
                out.append(s)
                continue
            for k in range(s.count.number or 0):
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

    def forward(self, block: list[Statement], known: KnownElements, renaming: Renaming) -> None:
        """Replace loads of elements that were stored before by the variables that were stored.

        `known` goes on after the statements.
        """
        out: list[Statement] = []
        for s in block:
            renaming.change(s)
            if isinstance(s, Let) and s.pattern == "{0}" and not s.mutable:
                load = s.args[0]
                name = known.find(load) if isinstance(load, Load) else None
                if name is not None:
                    renaming.names[s.name] = name
                    self.forwarded += 1
                    continue
            out.append(s)
            if isinstance(s, Store):
                known.store(s, self.assigned)
                continue
            if isinstance(s, Let):  # a new name: no element that is known has it
                continue
            known.forget(Effects(s))
            for inner in blocks_in(s):
                self.forward(inner, known.copy(), renaming)
        block[:] = out


def is_short(s: Statement) -> bool:
    """Return True for a loop of a few iterations, which can be written without a loop."""
    if not isinstance(s, For) or s.reverse:
        return False
    count = s.count.number
    return count is not None and count <= MAX_UNROLLED


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
                    if t.text in nest.variables:
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
    if any(isinstance(s, Let) and s.mutable for s in out):
        name_assigned_once(out)
    return out


def name_assigned_once(block: list[Statement]) -> None:
    """Replace mutable variables that are assigned once, before they are read, by constant ones."""
    counts = collections.Counter(s.name for s in walk_statements(block) if isinstance(s, Assign))
    first: dict[str, int] = {}  # the number of the first statement that reads or assigns to a name
    for n, s in enumerate(block):
        for name in Effects(s).read:
            first.setdefault(name, n)
    gone = set()
    for k, s in enumerate(block):
        if isinstance(s, Let) and s.mutable and counts[s.name] == 1:
            found = block[first[s.name]] if first.get(s.name, -1) > k else None
            if isinstance(found, Assign) and found.name == s.name:
                block[first[s.name]] = Let(s.name, s.ctype, "{0}", [found.atom])
                gone.add(k)
    block[:] = [s for k, s in enumerate(block) if k not in gone]


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
