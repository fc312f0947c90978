"""Find the user's line that an instruction comes from, and its pass, forward or backward."""

from __future__ import annotations

import collections
import itertools
import linecache
import os
from collections.abc import Container, Sequence
from typing import NamedTuple

from jaxlib import _jax

from weft.api.stages import count_work
from weft.core import facts
from weft.core.jaxpr import Eqn, Jaxpr, bodies_of
from weft.core.source import TRANSPOSE, is_own_file
from weft.explain.modules import (
    CONTAINERS,
    FREE,
    PRODUCTS,
    CompiledModule,
    Cost,
    Instruction,
    read_costs,
)
from weft.mesh.client import default_device
from weft.options import config
from weft.primitives.lapack_shapes import PREFIXES
from weft.run.pipeline import JitSpec, lower_program
from weft.run.programs import eqn_jaxpr
from weft.util import name_line
from weft.xla.compile import write_hlo
from weft.xla.locating import read_origins
from weft.xla.lower import lower_jaxpr
from weft.xla.placement import on_device

LIBRARY = os.path.dirname(os.__file__) + os.sep  # Python's


class Place(NamedTuple):
    """A line of a source file; "" and 0 if the line is unknown."""

    file: str = ""
    line: int = 0

    @property
    def text(self) -> str:
        """Return the text of the line."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return name_line(self.file, self.line) if self.file else "(the compiler)"


NOWHERE = Place()


class Part(NamedTuple):
    """A share of an instruction's work, and the line and operation that it comes from."""

    place: Place
    backward: bool
    operation: str  # the primitive
    share: float
    flops: float


def is_kernel(instruction: Instruction) -> bool:
    """Return True for a kernel in C++, except for those with costs that follow from shapes."""
    return instruction.target.startswith("weft_") and instruction.target not in PRODUCTS


def is_product(instruction: Instruction) -> bool:
    """Return True for a product of matrices or a convolution."""
    return instruction.target in PRODUCTS or instruction.opcode in ("dot", "convolution")


def find_place(eqns: Sequence[Eqn]) -> Place:
    """Return the innermost user's line of the first equation that has a user's line.

    Lines of Python's standard library do not count. Equations that a lowering rule stages have no
    line of their own, so the search goes on with the equation around them.
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
    """Return True if any of these nested equations belongs to a reverse pass."""
    return any(TRANSPOSE in eqn.source_info.scope for eqn in eqns)


def find_reads(jaxpr: Jaxpr) -> set[int]:
    """Return the ids of the variables that something in a program reads, or that it returns."""
    found = set(map(id, jaxpr.outvars))
    for eqn in jaxpr.eqns:
        found.update(map(id, eqn.invars))
        for body in bodies_of(eqn):
            if body.jaxpr is not None:
                found |= find_reads(body.jaxpr)
    return found


def count_equation(eqn: Eqn, reads: Container[int] | None = None) -> Cost:
    """Return the cost of an equation without our kernels, by XLA's analysis.

    The equation is lowered to the plain operations that the kernels replace. Work for results that
    nothing reads does not count, if `reads` has the ids of the variables that are read.
    """
    avals = tuple([v.aval for v in eqn.invars])
    name, client = eqn.primitive.name, default_device().client
    with config.scope(native=False, locate_operations=False):
        program = eqn_jaxpr(eqn.primitive, eqn.params, avals)
        read = [reads is None or id(v) in reads for v in eqn.outvars]
        program = program.replace(outvars=[*itertools.compress(program.outvars, read)])
        lowered = lower_program(program, (), JitSpec(name), on_device(default_device(), True))
        text = lowered.module.text
        if '"stablehlo.while"' in text:  # compiling finds the number of iterations
            module = CompiledModule(lowered.compile().loaded)
            return module.total(module.entry)
    return read_costs(count_work(client, write_hlo(text).get_hlo_module()))


class Attribution:
    """The origins of the instructions of a module.

    `program` is the program that was lowered, if it is known: results that it does not read are
    no work, even if a kernel computes them.
    """

    def __init__(
        self, module: CompiledModule, origins: Sequence[Sequence[Eqn]], program: Jaxpr | None = None
    ):
        self.module = module
        self.reads = find_reads(program) if program is not None else None
        self.origins = origins
        self.known: dict[int, tuple[Place, bool, str]] = {}
        self.counted: dict[Eqn, Cost] = {}
        self.kernels: collections.Counter[Eqn] = collections.Counter()
        # Operations in LAPACK and in products of matrices, whose counts follow from shapes.
        self.library: collections.Counter[Eqn] = collections.Counter()
        # Operations of factorizations of small matrices, which are written out for XLA.
        self.written: collections.Counter[Eqn] = collections.Counter()
        apart = ("fusion", *CONTAINERS)  # the instructions in them count by themselves
        for i in module.by_id.values():
            for eqn in self.innermost(i):
                if is_kernel(i):
                    self.kernels[eqn] += 1
                elif i.target.startswith(PREFIXES) or is_product(i):
                    self.library[eqn] += int(module.cost(i).flops)
                elif eqn.primitive.cost is facts.Cost.LIBRARY and i.opcode not in apart:
                    self.written[eqn] += int(module.cost(i).flops)

    def innermost(self, instruction: Instruction) -> list[Eqn]:
        """Return a list with the equation of an instruction, empty if it is unknown."""
        return read_origins(instruction.path, self.origins)[:1]

    def cost(self, instruction: Instruction) -> Cost:
        """Return the cost of one execution of an instruction.

        The cost of a kernel in C++ is XLA's count for the operations that the kernel replaces. If
        an equation has several kernels, each gets an equal part.

        A factorization of small matrices is written out for XLA, which computes parts of it again
        in many fusions. They share the count of the equation.
        """
        if not is_kernel(instruction):
            cost = self.module.cost(instruction)
            for eqn in self.innermost(instruction):
                if self.written[eqn]:
                    most = max(self.count(eqn).flops - self.library[eqn], 0.0)
                    return cost._replace(flops=cost.flops * min(1.0, most / self.written[eqn]))
            return cost
        moved = self.module.moved_bytes(instruction)
        for eqn in self.innermost(instruction):
            whole, parts = self.count(eqn), self.kernels[eqn]
            flops = max(whole.flops - self.library[eqn] - self.written[eqn], 0.0)
            return Cost(flops / parts, whole.transcendentals / parts, moved)
        return Cost(bytes=moved)

    def count(self, eqn: Eqn) -> Cost:
        """Return the cost of an equation without our kernels."""
        if eqn not in self.counted:
            self.counted[eqn] = count_equation(eqn, self.reads)
        return self.counted[eqn]

    def origin(self, instruction: Instruction) -> tuple[Place, bool, str]:
        """Return the line of an instruction, True for the reverse pass, and the operation.

        Instructions that the compiler added, such as copies, have no line of their own. They get
        the line of the instruction that makes their operand. If no operand has a line, they get
        the line of the loop or other caller around them. At the start of a program, they get the
        line of the instruction that reads their result.
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
        """Return the kernels that run for an instruction, and how often each runs.

        For a loop or a branch, these are the kernels inside it. A loop with an unknown number of
        iterations counts as one iteration.
        """
        if instruction.opcode not in CONTAINERS:
            return [] if instruction.opcode in FREE else [(instruction, 1)]
        turns = self.turns(instruction) or 1
        inner = [i for c in instruction.called for i in self.module.computations[c]]
        return [(k, times * turns) for i in inner for k, times in self.members(i)]

    def turns(self, container: Instruction) -> int | None:
        """Return how often a computation runs in a run of its instruction; None if unknown."""
        if container.opcode == "conditional":
            return None
        if container.opcode != "while":
            return 1
        eqns = read_origins(container.path, self.origins)[:1]
        known = [len(b.turns) for e in eqns for b in bodies_of(e) if b.turns is not None]
        return max(known, default=self.module.turns(container))

    def count_runs(self, instruction: Instruction) -> int | None:
        """Return how often an instruction runs in a run of the program; None if values decide."""
        caller = self.module.callers.get(instruction.computation)
        if caller is None:
            return 1
        outer, turns = self.count_runs(caller), self.turns(caller)
        return None if outer is None or turns is None else outer * turns

    def split(self, kernel: Instruction) -> list[Part]:
        """Return the work of a kernel by line, in proportion to the costs of fused operations."""
        cost, computations = self.cost, self.module.computations
        inner = [kernel]
        if kernel.opcode == "fusion":
            inner = [i for c in kernel.called for i in computations[c] if i.opcode not in FREE]
        total = sum(cost(i).weight for i in inner)
        if not total:  # it only moves values: all goes to the root of the kernel
            return [Part(*self.origin(kernel), 1.0, 0.0)]
        return [
            Part(*self.origin(i), cost(i).weight / total, cost(i).flops)
            for i in inner
            if cost(i).weight
        ]
