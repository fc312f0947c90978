"""The pass that computes a function and the cheap operations around it by one call of the kernel.

XLA fuses nothing with the call of a kernel, so an operation between two calls is a loop of its own.
It takes a second to compile forty products with different numbers, one for each loop, and each loop
writes its result to memory. In a program of the kernel (cpu/opcodes.py) they are further steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from weft.core.facts import Runs
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var, memo_jaxpr, origin_of, variables_in
from weft.core.primitive import Body
from weft.cpu.calls import CpuCall, kernel_equation
from weft.cpu.cheap_programs import can_call, select_instruction
from weft.cpu.elements import fills_with_number, is_fused
from weft.cpu.opcodes import Instruction, Kind, Operand, Step, encode_program
from weft.cpu.rewriting import replace_bodies
from weft.cpu.scope import ROW_ELEMENTS, Target
from weft.passes.dce import with_equations
from weft.primitives.expr import F32, F64

MAX_MEMBERS = 64  # equations of a call
MAX_OPERANDS = 12  # arrays and numbers of a call: the kernel has slots for 16 values at a time
# Bytes of a result up to which a cheap operation on the result of a function is a step. On larger
# ones a loop of XLA's, which takes over the buffer of its operand, is 1.1 times as fast.
MAX_LAST_BYTES = 1 << 21
HEAD = 3  # numbers of a program before its operands: a row, a piece, and how many operands it has
STEP_HEAD = 4  # numbers of a step before the operands that it reads


@memo_jaxpr
def fuse_chains(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Return a program whose functions are computed together with the operations around them.

    A profile shows operations one by one, so nothing is fused if operations are named.
    """
    if not target.kernels or target.located:
        return jaxpr
    return fuse_program(jaxpr, (True,) * len(jaxpr.invars), False)


@memo_jaxpr
def fuse_program(jaxpr: Jaxpr, stored: tuple[bool, ...], loops: bool) -> Jaxpr:
    """Return a program with fused calls, also in the programs that it holds.

    Args:
      jaxpr: a program.
      stored: which inputs are in memory, rather than perhaps fused with the equations that read
        them.
      loops: whether the program is the body of a loop. XLA writes its results over the carry, but
        copies the result of a call there.
    """
    kinds = {e.primitive for e in jaxpr.eqns}
    if all(p.memoize_type and not isinstance(p, CpuCall) for p in kinds):
        return jaxpr  # as most are
    eqns = [e if e.primitive.memoize_type else fuse_bodies(e) for e in jaxpr.eqns]
    calls = [read_function(e) if isinstance(e.primitive, CpuCall) else None for e in eqns]
    if any(calls):
        eqns = Chains(jaxpr, eqns, calls, stored, loops).fuse()
    return with_equations(jaxpr, jaxpr.invars, jaxpr.outvars, eqns)


def fuse_bodies(eqn: Eqn) -> Eqn:
    """Return an equation with fused calls in the programs that it holds."""

    def fuse(body: Body) -> Jaxpr:
        loops = body.runs in (Runs.LOOP, Runs.CONDITION)
        given = loops or body.on_each_device or body.names_flow_in
        return fuse_program(body.jaxpr, (given,) * len(body.jaxpr.invars), loops)

    return replace_bodies(eqn, fuse)


def read_function(eqn: Eqn) -> tuple[int, int] | None:
    """Return the instruction of a function that the kernel computes alone, and its piece.

    The piece is the number of rows that are worth a thread. The function has the dtype of its
    operands, which are not views.
    """
    if eqn.params["kernel"] != "weft_program":
        return None
    (name, attribute), *_ = eqn.params["attributes"]
    code, out, count = attribute.value, eqn.outvars[0].aval, len(eqn.invars)
    start = HEAD + 2 * count
    if len(code) != start + STEP_HEAD + count or code[0] != ROW_ELEMENTS:
        return None
    starts = code[HEAD + 1 : start : 2]
    in_order = list(code[start + STEP_HEAD :]) == [*range(count)]
    same = {out.dtype} == {a.aval.dtype for a in eqn.invars} and out.dtype in (F32, F64)
    if any(starts) or not in_order or not same or out.sharded is not None:
        return None
    return code[start], code[1]


class Chains:
    """The equations of a program, which are grouped around the functions that the kernel computes.

    A group is one call. It has one result, so only its last equation may be read by others.

    Attributes:
      eqns: the equations.
      calls: for each equation, what `read_function` says of it.
      makers: the number of the equation that computes a variable.
      readers: the numbers of the equations that read a variable; -1 for the caller.
      stored: variables that are in memory, whether or not equations are fused.
      numbers: by the variable of an array of one number, the number.
      carried: the results of the body of a loop.
      ends: the numbers of the equations that may end a group with a function in it.
    """

    def __init__(
        self,
        jaxpr: Jaxpr,
        eqns: Sequence[Eqn],
        calls: Sequence[Any],
        stored: Sequence[bool],
        loops: bool,
    ):
        self.eqns, self.calls = eqns, calls
        self.makers = {v: i for i, eqn in enumerate(eqns) for v in eqn.outvars}
        self.readers: dict[Any, set[int]] = {}
        self.stored: set[Any] = {*jaxpr.constvars, *itertools.compress(jaxpr.invars, stored)}
        for i, eqn in enumerate(eqns):
            for a in eqn.invars:
                if type(a) is Var:
                    self.readers.setdefault(a, set()).add(i)
            if not is_fused(eqn):
                self.stored.update(a for a in (*eqn.invars, *eqn.outvars) if type(a) is Var)
        self.numbers = {
            e.outvars[0]: a
            for e in eqns
            if fills_with_number(e) and (type(a := e.invars[0]) is Literal or a in self.stored)
        }
        for v in variables_in(jaxpr.outvars):
            self.readers.setdefault(v, set()).add(-1)
        self.carried: set[Any] = {*variables_in(jaxpr.outvars)} if loops else set()
        self.taken: set[int] = set()
        self.ends: set[int] = set()
        for i, eqn in enumerate(eqns):
            makers = [self.makers.get(a) for a in eqn.invars if type(a) is Var]
            if calls[i] or (not self.ends.isdisjoint(makers) and self.is_cheap(i)):
                self.ends.add(i)

    def fuse(self) -> list[Eqn]:
        """Return the equations, with a call in the place of the last equation of each group."""
        made = list(self.eqns)
        for i in reversed(range(len(made))):
            if i not in self.taken and self.may_end(i):
                made[i] = self.fuse_from(i) or made[i]
        return [eqn for i, eqn in enumerate(made) if i not in self.taken or eqn is not self.eqns[i]]

    def may_end(self, i: int) -> bool:
        """Return True if an equation may be the last one of a group."""
        if self.calls[i]:
            return True
        out = self.eqns[i].outvars[0] if i in self.ends else None
        return out is not None and out not in self.carried and out.aval.nbytes <= MAX_LAST_BYTES

    def is_cheap(self, i: int) -> bool:
        """Return True if an equation is a step that takes the kernel few machine operations."""
        eqn = self.eqns[i]
        out = eqn.outvars[0].aval if len(eqn.outvars) == 1 else None
        if out is None or out.dtype not in (F32, F64) or not out.shape or type(out.size) is not int:
            return False
        same = all([a.aval.dtype == out.dtype for a in eqn.invars])
        return same and out.sharded is None and can_call(eqn, out.shape, frozenset())

    def fuse_from(self, root: int) -> Eqn | None:
        """Return the call that computes an equation and what it reads; None if none is fused."""
        most = MAX_MEMBERS
        while most > 1:
            members = self.find_members(root, most)
            if len(members) < 2 or not any(self.calls[i] for i in members):
                return None
            if call := self.write_call(members):
                self.taken |= self.find_only_read(root, {*members})
                for a in call.invars:  # also what a member read that is computed twice
                    if type(a) is Var:
                        self.readers[a].add(root)
                return call
            most = len(members) * 2 // 3
        return None

    def find_members(self, root: int, most: int) -> list[int]:
        """Return the numbers of the equations that one call computes, in order."""
        shape, dtype = self.type_of(root)
        found, waiting = {root}, {root}
        while waiting and len(found) < most:
            i = max(waiting)
            waiting.remove(i)
            near = {self.makers[a] for a in self.arrays_of(i) if a in self.makers} - found
            for j in near:
                is_step = self.calls[j] or self.is_cheap(j)
                if j not in self.taken and is_step and self.type_of(j) == (shape, dtype):
                    found.add(j)
                    waiting.add(j)
        while len(found) > 1:
            only = self.find_only_read(root, found)
            wrong = {i for i in found if not self.may_join(i, found, only)}
            if not wrong:
                break
            found -= wrong
            if root in wrong:
                return []
        return sorted(found)

    def find_only_read(self, root: int, members: set[int]) -> set[int]:
        """Return the members of a group that are needed for nothing but the result of `root`."""
        only = {root}
        for i in sorted(members - only, reverse=True):
            if self.readers[self.eqns[i].outvars[0]] <= only:
                only.add(i)
        return only

    def type_of(self, i: int) -> tuple:
        """Return the shape and the dtype of the first result of an equation."""
        aval = self.eqns[i].outvars[0].aval
        return aval.shape, aval.dtype

    def arrays_of(self, i: int) -> list[Var]:
        """Return the variables that an equation reads, except for arrays of one number."""
        return [a for a in self.eqns[i].invars if type(a) is Var and a not in self.numbers]

    def may_join(self, i: int, members: set[int], only: set[int]) -> bool:
        """Return True if an equation may be a member of a group.

        An equation that is read elsewhere too, so not in `only`, is computed twice. So it must be
        cheap, and read one array that is stored.
        """
        arrays = self.arrays_of(i)
        if i not in only:
            is_read = bool(self.readers[self.eqns[i].outvars[0]] & members)
            return is_read and not self.calls[i] and len(arrays) == 1 and arrays[0] in self.stored
        near = (a in self.stored or self.makers.get(a) in members for a in arrays)
        return bool(self.calls[i]) or all(near)

    def write_call(self, members: Sequence[int]) -> Eqn | None:
        """Return the call of a program; None if it has too many operands or steps."""
        made = {self.eqns[i].outvars[0]: self.eqns[i] for i in members}
        atoms: dict[Any, tuple[int, Atom]] = {}
        steps, piece = list[Step](), 1 << 30

        def place(a: Atom) -> Any:
            """Return the name of the value of an atom."""
            a = self.numbers.get(a, a) if type(a) is Var else a
            if type(a) is Var and a in made:
                return a
            key = (str(a.val), a.aval) if type(a) is Literal else a
            return atoms.setdefault(key, (len(atoms), a))[0]

        for i in members:
            eqn, call = self.eqns[i], self.calls[i]
            instruction: Instruction
            if call:
                instruction, args = call[0], eqn.invars
                piece = min(piece, call[1])
            else:
                instruction, args = select_instruction(eqn, {})
            out = eqn.outvars[0]
            names = [place(a) for a in args]
            steps.append(Step(instruction, out, Kind.FULL, out.aval.dtype, names))
        operands = [
            Operand(n, Kind.FULL if a.aval.shape else Kind.SCALAR) for n, a in atoms.values()
        ]
        if len(operands) > MAX_OPERANDS:
            return None
        program = encode_program(operands, steps, ROW_ELEMENTS, piece)
        if program is None:
            return None
        last = self.eqns[members[-1]]
        given = [a for _, a in atoms.values()]
        call = kernel_equation("weft_program", given, last.outvars, {"program": program})
        call.source, call.origin = last.source, origin_of(last)
        return call
