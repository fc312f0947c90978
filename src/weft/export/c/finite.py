"""Terms left out that are zero where all numbers are finite: `to_c(f, finite_math=True)`.

0 * x is 0 unless x is NaN or infinite, and x + 0 is x unless x is -0. IEEE arithmetic keeps both,
and so do C compilers. Small constant matrices have many zeros: a loop of a few iterations over them
is unrolled where that makes terms unnecessary, and zeros are followed from stores to loads.

A program may hold infinities itself, such as a mask of -inf. Products of values that are computed
from them are not left out.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.export.c.fuse import MAX_STATEMENTS, Fuser, evaluate, is_short
from weft.export.c.kinds import KINDS, write_number
from weft.export.c.nodes import (
    Assign,
    Buffer,
    Call,
    Copy,
    Let,
    Load,
    Pointer,
    Role,
    Statement,
    Store,
    blocks_in,
    buffers_in,
    walk_statements,
)
from weft.export.c.rewrite import Effects, KnownElements, Renaming, copy_block

MAX_ROUNDS = 4  # each follows the zeros that the last one has found
FLOATS = {k.computed: k for k in KINDS.values() if k.name in ("f32", "f64")}
NUMBER = re.compile(r"\(?(-?\d[\d.]*(?:e[+-]?\d+)?)f?\)?")
CAST = re.compile(r"\((\w+)\)\((-?\d+)\)")
CHOICE = re.compile(r"([^?{}]+) \? \{0\} : \{1\}")
EXTREME = re.compile(r"weft_(max|min)_")
INFINITE = re.compile(r"INFINITY|HUGE_VAL|NAN")
NEUTRAL = {  # the numbers that a maximum or a minimum of finite numbers never is
    "max": ("(-INFINITY)", "(-HUGE_VAL)"), "min": ("INFINITY", "HUGE_VAL"),
}  # fmt: skip
COMPARED = {
    "{0} == {1}": operator.eq, "{0} != {1}": operator.ne, "{0} < {1}": operator.lt,
    "{0} <= {1}": operator.le, "{0} > {1}": operator.gt, "{0} >= {1}": operator.ge,
}  # fmt: skip
NANS = ("NAN", "(double)NAN")
EXACT = {k.computed for k in KINDS.values() if k.letter in "iub"}


class ZeroDropper:
    """Leaves terms out that are zero where all numbers are finite.

    Attributes:
      dropped: how many products, quotients and sums are left out.
      zeros: how many zeros are stored in place of variables.
      integers: the values of variables that are known integers.
      assigned: the variables that change.
      infinite: the variables and the buffers that are computed from infinities of the program.
    """

    def __init__(self, new_name: Callable[..., str]):
        self.fuser = Fuser(new_name)
        self.dropped = self.zeros = 0
        self.integers: dict[str, int] = {}
        self.assigned: set[str] = set()
        self.infinite: set[str | Buffer] = set()

    def drop(self, block: list[Statement]) -> None:
        """Rewrite a program."""
        for _ in range(MAX_ROUNDS):
            before = self.dropped
            add_infinite(block, self.infinite)
            self.assigned = {s.name for s in walk_statements(block) if isinstance(s, Assign)}
            block[:] = self.rewrite(block, KnownElements(), Renaming({}))
            if self.dropped == before:
                return

    def rewrite(
        self, block: list[Statement], memory: KnownElements, renaming: Renaming
    ) -> list[Statement]:
        """Return the statements without the terms; `memory` and `renaming` go on after them."""
        out: list[Statement] = []
        for s in block:
            unrolled = self.unroll(s, memory, renaming) if is_short(s) else None
            if unrolled is not None:
                out += unrolled
                continue
            before = s.atom if isinstance(s, Store) else ""
            renaming.change(s)
            if isinstance(s, Let):
                atom = None if s.mutable else self.simplify(s, memory)
                if atom is None:
                    out.append(s)
                else:
                    renaming.names[s.name] = atom
                continue
            out.append(s)
            if isinstance(s, Store):
                memory.store(s, self.assigned)
                self.zeros += read_number(s.atom) == 0 and read_number(before) is None
                continue
            memory.forget(Effects(s))
            for inner in blocks_in(s):
                inner[:] = self.rewrite(inner, memory.copy(), renaming)
        return out

    def unroll(
        self, loop: Statement, memory: KnownElements, renaming: Renaming
    ) -> list[Statement] | None:
        """Return the iterations of a short loop, if that makes terms unnecessary."""
        tried = copy_block([loop])
        self.fuser.unroll(tried)
        if sum(1 for _ in walk_statements(tried)) > MAX_STATEMENTS:
            return None
        self.assigned |= {s.name for s in walk_statements(tried) if isinstance(s, Assign)}
        add_infinite(tried, self.infinite)
        before = self.dropped, self.zeros
        known, names = memory.copy(), Renaming(dict(renaming.names))
        out = self.rewrite(tried, known, names)
        if (self.dropped, self.zeros) == before:
            return None
        memory.held = known.held
        renaming.names.update(names.names)
        return out

    def simplify(self, s: Let, memory: KnownElements) -> str | None:
        """Return the variable or the number that a new variable is; None if it is none of them."""
        if any(isinstance(a, Load) for a in s.args):
            return self.find_element(s.args[0], memory) if s.pattern == "{0}" else None
        args: list[Any] = list(s.args)
        found = args[0] if s.pattern == "{0}" else None
        if s.ctype in FLOATS and found is None:
            found = self.drop_terms(s, args)
        if found is None:
            return self.find_known(s, args)
        if found in self.assigned:
            s.pattern, s.args = "{0}", [found]
            return None
        return str(found)

    def find_element(self, load: Any, memory: KnownElements) -> str | None:
        """Return the variable or the number that an element is; None if that is not known."""
        buffer, at = load.buffer, load.index.number
        if buffer.role is Role.CONSTANT and at is not None:
            return write_number(buffer.value.reshape(-1)[at], buffer.kind)
        return memory.find(load)

    def drop_terms(self, s: Let, args: list[Any]) -> str | None:
        """Return the operand or the zero that an operation on floats is; None if it is neither.

        An operation that becomes a change of sign is changed.
        """
        x, *rest = [read_number(a) for a in args] or [None]
        y = rest[0] if rest else None
        zero = write_number(0, FLOATS[s.ctype])
        is_finite = not any(is_infinite(a, self.infinite) for a in args)
        out: Any = None
        match s.pattern:
            case "{0} * {1}":
                if x == 0 or y == 0:
                    out = zero if is_finite else None
                elif x == 1 or y == 1:
                    return args[1] if x == 1 else args[0]
            case "{0} / {1}" if y == 1:
                out = args[0]
            case "{0} / {1}" if x == 0 and y != 0 and is_finite:
                out = zero
            case "{0} + {1}" if x == 0 or y == 0:
                out = args[1] if x == 0 else args[0]
            case "{0} - {1}" if y == 0:
                out = args[0]
            case "{0} - {1}" if x == 0:
                s.pattern, s.args = "-{0}", [args[1]]
            case "-{0}" if x == 0:
                out = zero
        self.dropped += out is not None
        return out

    def find_known(self, s: Let, args: list[Any]) -> str | None:
        """Return the number that a conversion, a comparison or a choice gives; None if unknown."""
        cast, choice = CAST.fullmatch(s.pattern), CHOICE.fullmatch(s.pattern)
        if cast and not args:
            return self.hold_integer(s, int(cast[2]))
        if choice or s.pattern == "{0} ? {1} : {2}":
            test, *pair = (choice[1], *args) if choice else args
            known = {"true": True, "false": False}.get(test, evaluate(test))
            out = None if known is None else pair[0 if known else 1]
            return None if out in self.assigned else out
        values: list[Any] = [self.integers.get(a) for a in args]
        if s.pattern in COMPARED and None not in values:
            return "true" if COMPARED[s.pattern](*values) else "false"
        if s.pattern == f"({s.ctype}){{0}}":
            value = {"true": 1, "false": 0}.get(args[0], values[0])
            return None if value is None else self.hold_integer(s, value)
        return None

    def hold_integer(self, s: Let, value: int) -> str | None:
        """Return an integer as a float; remember that of a variable of another type."""
        if s.ctype in FLOATS:
            return write_number(value, FLOATS[s.ctype]) if abs(value) < 1 << 24 else None
        self.integers[s.name] = value
        return None


def read_number(atom: Any) -> float | None:
    """Return the value of a number in C; None for a variable."""
    found = NUMBER.fullmatch(atom) if isinstance(atom, str) else None
    return float(found[1]) if found else None


def is_infinite(a: Any, known: set[str | Buffer]) -> bool:
    """Return True for an operand that is an infinity or a NaN, or is computed from one."""
    if isinstance(a, Load):
        return a.buffer in known
    return a in known or INFINITE.search(a) is not None


def add_infinite(block: Sequence[Statement], known: set[str | Buffer]) -> None:
    """Add the variables and buffers to a set that are computed from infinities of a program.

    A NaN that a test chooses or a branch assigns marks a failure, as of a Cholesky factorization:
    where numbers are finite, it is never chosen. The initial value of a maximum counts as finite.
    """
    every = list(walk_statements(block))
    constants = {b for s in every for b in buffers_in(s) if b.role is Role.CONSTANT}
    known |= {
        b for b in constants if b.kind.letter in "fc" and not np.isfinite(np.asarray(b.value)).all()
    }
    extremes = find_extremes(every)
    while True:
        before = len(known)
        for s in every:
            match s:
                case Let() if s.ctype not in EXACT and s.name not in extremes:
                    if any(is_infinite(a, known) for a in list_possible(s)):
                        known.add(s.name)
                case Assign() if s.atom not in NANS and is_infinite(s.atom, known):
                    known.add(s.name)
                case Store() if s.buffer.kind.letter in "fc" and is_infinite(s.atom, known):
                    known.add(s.buffer)
                case Copy() if s.source.buffer in known:
                    known.add(s.to.buffer)
                case Call():
                    passed = {a.buffer for a in s.args if isinstance(a, Pointer)}
                    known |= passed if passed & known else set()
        if len(known) == before:
            return


def list_possible(s: Let) -> list[Any]:
    """Return the operands, and the pattern, that the value may be infinite because of."""
    extreme = EXTREME.search(s.pattern)
    if extreme:
        return [a for a in s.args if a not in NEUTRAL[extreme[1]]] or list(s.args)
    is_choice = " ? " in s.pattern
    return [a for a in (*s.args, s.pattern) if not (is_choice and a in NANS)]


def find_extremes(every: Sequence[Statement]) -> set[str]:
    """Return the variables that begin with an infinity, and become maxima or minima with others."""
    makers = {s.name: s for s in every if isinstance(s, Let)}
    found = set()
    for s in every:
        maker = makers.get(s.atom) if isinstance(s, Assign) and isinstance(s.atom, str) else None
        extreme = EXTREME.search(maker.pattern) if maker else None
        if isinstance(s, Assign) and maker and extreme and s.name in maker.args:
            first = makers.get(s.name)
            if first and first.args and first.args[0] in NEUTRAL[extreme[1]]:
                found.add(s.name)
    return found
