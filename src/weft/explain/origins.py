"""Which of the user's lines wrote an instruction, and in which pass, forward or backward."""

from __future__ import annotations

import linecache
import os
from collections.abc import Sequence
from typing import NamedTuple

from jaxlib import _jax

from weft.core.jaxpr import Eqn
from weft.core.source import TRANSPOSE, is_own_file
from weft.explain.modules import CONTAINERS, FREE, CompiledModule, Instruction
from weft.xla.locating import read_origins

LIBRARY = os.path.dirname(os.__file__) + os.sep  # Python's


class Place(NamedTuple):
    """A line of a source file; "" and 0 where none is known."""

    file: str = ""
    line: int = 0

    @property
    def text(self) -> str:
        """What stands there."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file.rsplit('/', 1)[-1]}:{self.line}" if self.file else "(the compiler)"


NOWHERE = Place()


class Part(NamedTuple):
    """A share of an instruction's work: who asked for it."""

    place: Place
    backward: bool
    operation: str  # the primitive
    share: float
    flops: float


def find_place(eqns: Sequence[Eqn]) -> Place:
    """The user's innermost line of the first equation that has one; no line of Python's library."""
    for eqn in eqns:
        for code, offset in zip(*eqn.source_info.raw_frames(), strict=True):
            file = code.co_filename
            is_library = file.startswith(LIBRARY) and "site-packages" not in file
            if not is_own_file(file) and not is_library:
                return Place(file, _jax.Traceback.code_addr2location(code, offset)[0])
    return NOWHERE


def is_backward(eqns: Sequence[Eqn]) -> bool:
    """Whether what equations compute, from the inside out, is part of a reverse pass."""
    return any(TRANSPOSE in eqn.source_info.scope for eqn in eqns)


class Attribution:
    """The origins of the instructions of a module."""

    def __init__(self, module: CompiledModule, origins: Sequence[Sequence[Eqn]]):
        self.module = module
        self.origins = origins
        self.known: dict[int, tuple[Place, bool, str]] = {}

    def origin(self, instruction: Instruction) -> tuple[Place, bool, str]:
        """The line, whether it is of the reverse pass, and the operation.

        Of what the compiler added, such as copies, those of what makes the operand; at the start
        of a program, of what reads the result; in a loop, of the loop.
        """
        found = self.known.get(instruction.id)
        if found is None:
            self.known[instruction.id] = NOWHERE, False, instruction.opcode  # ends a cycle
            found = self.known[instruction.id] = self.find_origin(instruction)
        return found

    def find_origin(self, instruction: Instruction) -> tuple[Place, bool, str]:
        eqns = read_origins(instruction.path, self.origins)
        if eqns and find_place(eqns) is not NOWHERE:
            return find_place(eqns), is_backward(eqns), eqns[0].primitive.name
        for operand in map(self.module.by_id.get, instruction.operands):
            if operand is not None and operand.opcode not in ("parameter", "constant"):
                place, back, _ = self.origin(operand)
                if place is not NOWHERE:
                    return place, back, instruction.opcode
        caller = self.module.callers.get(instruction.computation)
        if caller is None:
            caller = self.module.users.get(instruction.id)
        if caller is None:
            return NOWHERE, False, instruction.opcode
        return (*self.origin(caller)[:2], instruction.opcode)

    def split(self, instruction: Instruction) -> list[Part]:
        """An instruction's work by line: of a fusion, or a loop run as one, shared by cost."""
        cost = self.module.cost
        is_whole = instruction.opcode not in (*CONTAINERS, "fusion")
        inner = [instruction] if is_whole else self.module.inner(instruction)
        every = [i for i in inner if i.opcode not in FREE] or [instruction]
        weights = [cost(i).weight for i in every]
        if not sum(weights):  # it moves values: the one that gives the result is what was asked for
            every, weights = [instruction], [1.0]
        whole = cost(instruction).flops
        counted = sum(cost(i).flops for i in every) or 1.0
        total = sum(weights)
        return [
            Part(*self.origin(i), w / total, whole * cost(i).flops / counted)
            for i, w in zip(every, weights, strict=True)
            if w
        ]
