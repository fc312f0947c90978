"""Which of the user's lines wrote an instruction, and in which pass, forward or backward."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from jaxlib import _jax

from weft.core.jaxpr import Eqn, bodies_of
from weft.core.source import TRANSPOSE, is_own_file
from weft.explain.modules import CONTAINERS, FREE, CompiledModule, Instruction
from weft.xla.locating import read_origins
from weft.xla.lower import lower_jaxpr

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
        if not self.file:
            return "(the compiler)"
        cell = name_cell(self.file)
        return (
            f"{cell}, line {self.line}" if cell else f"{self.file.rsplit('/', 1)[-1]}:{self.line}"
        )


def name_cell(file: str) -> str:
    """Return the name of a notebook's cell, as `Cell In[6]`; "" for any other file."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    named = getattr(getattr(shell, "compile", None), "format_code_name", lambda file: None)(file)
    return " ".join(named) if named else ""


NOWHERE = Place()


class Part(NamedTuple):
    """A share of an instruction's work: who asked for it."""

    place: Place
    backward: bool
    operation: str  # the primitive
    share: float
    flops: float


def find_place(eqns: Sequence[Eqn]) -> Place:
    """The user's innermost line of the first equation that has one; no line of Python's library.

    What a lowering stages, as the sum of a cumulative sum, has none: it is asked for by a call.
    """
    for eqn in eqns:
        for code, offset in zip(*eqn.source_info.raw_frames(), strict=True):
            file = code.co_filename
            if code is lower_jaxpr.__code__:
                break
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
            while caller is not None and not caller.path:
                caller = self.module.users.get(caller.id)
        if caller is None:
            return NOWHERE, False, instruction.opcode
        return (*self.origin(caller)[:2], instruction.opcode)

    def members(self, instruction: Instruction) -> list[tuple[Instruction, int]]:
        """The kernels that run for an instruction, and how often: of a loop or branch, its own.

        A loop of which the program does not say how often it turns is counted as one turn.
        """
        if instruction.opcode not in CONTAINERS:
            return [] if instruction.opcode in FREE else [(instruction, 1)]
        turns = self.turns(instruction) or 1
        inner = [i for c in instruction.called for i in self.module.computations[c]]
        return [(k, times * turns) for i in inner for k, times in self.members(i)]

    def turns(self, container: Instruction) -> int | None:
        """How often what an instruction holds runs in a run of it; None if values say that."""
        if container.opcode == "conditional":
            return None
        if container.opcode != "while":
            return 1
        eqns = read_origins(container.path, self.origins)[:1]
        known = [len(b.turns) for e in eqns for b in bodies_of(e) if b.turns is not None]
        return max(known, default=None)

    def count_runs(self, instruction: Instruction) -> int | None:
        """How often an instruction runs in a run of the program; None if values say that."""
        caller = self.module.callers.get(instruction.computation)
        if caller is None:
            return 1
        outer, turns = self.count_runs(caller), self.turns(caller)
        return None if outer is None or turns is None else outer * turns

    def split(self, kernel: Instruction) -> list[Part]:
        """The work of a kernel by line: where several are fused, shared by what each costs."""
        cost, computations = self.module.cost, self.module.computations
        inner = [kernel]
        if kernel.opcode == "fusion":
            inner = [i for c in kernel.called for i in computations[c] if i.opcode not in FREE]
        total = sum(cost(i).weight for i in inner)
        if not total:  # it moves values: what gives the result is what was asked for
            return [Part(*self.origin(kernel), 1.0, 0.0)]
        return [
            Part(*self.origin(i), cost(i).weight / total, cost(i).flops)
            for i in inner
            if cost(i).weight
        ]
