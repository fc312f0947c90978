"""Operations on small arrays that XLA compiles together, as one function of one thread.

XLA 0.12 writes a loop for each fusion by its MLIR emitters and compiles it as a module of its own,
in 15 to 30 ms even for a single number. It compiles a small while loop as one function instead, by
its older emitter, which needs a tenth of that for each fusion. Here the equations between kernels,
products and loops become a call that XLA treats like such a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.core.facts import Cost, Elements, Runs
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Var, memo_jaxpr
from weft.core.primitive import Body, Primitive
from weft.cpu.called_programs import call_operations
from weft.cpu.calls import CpuCall
from weft.cpu.elements import FAMILIES
from weft.cpu.rewriting import replace_bodies, running_bodies
from weft.cpu.scope import Target
from weft.passes.dce import with_equations
from weft.primitives.layout import Iota
from weft.primitives.slicing import Pad
from weft.util import JAXLIB
from weft.xla.lower import lower_jaxpr

# Elements of an array of a group, and of a function such as exp in it. XLA computes larger ones by
# several threads.
MAX_ELEMENTS, MAX_FUNCTION_ELEMENTS = 16384, 4096
SMALL_CALL = {"mhlo.frontend_attributes": '{inlineable = "false", xla_cpu_small_call = "true"}'}
MARK = ShapedArray((), np.dtype(np.int32))


class TupleType(NamedTuple):
    """The type of a tuple of values in StableHLO."""

    hlo: str


class Group(Primitive):
    """Call `jaxpr`, which XLA compiles as one function.

    It stands only in programs that are about to be lowered for a CPU, so it has no derivative and
    no batching.
    """

    name = "cpu_group"
    memoize_type = False
    multiple_results = True

    def bodies(self, params):
        jaxpr = params["jaxpr"]
        return [Body(jaxpr, "jaxpr", Runs.ONCE, range(len(jaxpr.invars)))]

    def abstract_eval(self, *avals, jaxpr):
        return jaxpr.out_avals

    def lower(self, hlo, *args, jaxpr):
        """Write a function of one tuple, and its call.

        XLA ends the process where such a function reads none of its operands, which XLA may find
        out later than we do. So the tuple also holds a number that is returned.

        Operations are named as they would be outside of the function. XLA puts the name of a call
        before the names of loops in it, so this call has none.
        """
        start = len(hlo.lines)
        mark = hlo.op("stablehlo.constant", [], [MARK], value="dense<0> : tensor<i32>")
        avals = [x.aval for x in (*args, *mark)]
        whole = TupleType(f"tuple<{', '.join(a.hlo for a in avals)}>")

        def write(operands: Any) -> list:
            *inner, mark = (
                hlo.op("stablehlo.get_tuple_element", [operands], [a], index=f"{i} : i32")[0]
                for i, a in enumerate(avals)
            )
            return [*lower_jaxpr(hlo, jaxpr, inner), mark]

        around = hlo.path.removesuffix(self.name).removesuffix("/")
        name = hlo.function("group", [whole], write, path=around)
        operands = hlo.op("stablehlo.tuple", [*args, *mark], [whole])
        outs = hlo.call(name, operands, [*jaxpr.out_avals, MARK], SMALL_CALL)
        hlo.locate(start, "")
        return outs[:-1]


group_p = Group()


def group_operations(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Return a program whose operations on small arrays are in groups."""
    if JAXLIB < (0, 12) or not target.kernels or target.devices or target.located:
        return jaxpr
    called = jaxpr if target.donated else call_operations(jaxpr)
    return called if called is not jaxpr else group_program(jaxpr)


@memo_jaxpr
def group_program(jaxpr: Jaxpr) -> Jaxpr:
    """Group the operations of a program, and of programs that it holds."""
    if jaxpr.effects:
        return jaxpr
    eqns = [*map(group_bodies, jaxpr.eqns)]
    fits: dict[ShapedArray, bool] = {}
    joins = [joins_group(e, fits) for e in eqns]
    if any(j and not views_operand(e) for j, e in zip(joins, eqns, strict=True)):
        eqns = Grouping(jaxpr, eqns, joins).write()
    return with_equations(jaxpr, jaxpr.invars, jaxpr.outvars, eqns)


def group_bodies(eqn: Eqn) -> Eqn:
    """Group the operations of the programs that an equation holds.

    XLA compiles a loop without kernels and products of matrices as one function itself. Where a
    loop reads and stacks slices of arrays, XLA computes the slices where they are read and written.
    """
    if eqn.primitive.memoize_type:
        return eqn
    params = eqn.params
    carry = params.get("num_carry")
    if carry is not None and (
        len(eqn.outvars) > carry or len(eqn.invars) > params["num_consts"] + carry
    ):
        return eqn

    def group(body: Body) -> Jaxpr:
        if body.runs is Runs.BRANCH or (body.runs is Runs.LOOP and calls_functions(body.jaxpr)):
            return group_program(body.jaxpr)
        return body.jaxpr

    return replace_bodies(eqn, group)


@memo_jaxpr
def calls_functions(jaxpr: Jaxpr) -> bool:
    """Return True if a program has a product of two matrices, or calls a kernel."""
    for eqn in jaxpr.eqns:
        prim = eqn.primitive
        if isinstance(prim, CpuCall):
            return True
        # XLA writes the loops of a product with a vector itself
        if prim.cost is Cost.CONTRACTION and sum(n != 1 for n in eqn.outvars[0].aval.shape) > 1:
            return True
        if not prim.memoize_type and any(calls_functions(b.jaxpr) for b in running_bodies(eqn)):
            return True
    return False


def joins_group(eqn: Eqn, fits: dict[ShapedArray, bool]) -> bool:
    """Return True if an equation may be part of a group; `fits` has the answers for arrays."""
    prim = eqn.primitive
    moves = prim.elements is Elements.MOVED and prim.cost in (Cost.FREE, Cost.JOIN)
    if not (moves or isinstance(prim, (*FAMILIES, Iota, Pad))) or "lower" in vars(prim):
        return False
    if prim.cost is Cost.TRANSCENDENTAL and eqn.outvars[0].aval.size > MAX_FUNCTION_ELEMENTS:
        return False
    if prim.cost is Cost.ITERATIVE:
        return False
    for a in (*eqn.invars, *eqn.outvars):
        if a.aval not in fits:
            fits[a.aval] = fits_group(a.aval)
        if not fits[a.aval]:
            return False
    return True


def fits_group(aval: ShapedArray) -> bool:
    """Return True for a small array of numbers."""
    dtype = aval.dtype
    if dtypes.is_extended(dtype) or type(aval.size) is not int:
        return False
    usual = dtype.kind in "fiub" and (dtype.itemsize >= 4 or dtype.kind == "b")
    return usual and aval.size <= MAX_ELEMENTS


def views_operand(eqn: Eqn) -> bool:
    """Return True if an equation gives elements of its operand in another order."""
    prim = eqn.primitive
    return (prim.elements is Elements.MOVED and prim.cost is Cost.FREE) or isinstance(prim, Iota)


def fuses(eqn: Eqn) -> bool:
    """Return True if XLA computes operands of an equation that is in no group within its loop."""
    prim = eqn.primitive
    if not prim.memoize_type:
        return is_inlined(eqn)
    return not (isinstance(prim, CpuCall) or prim.cost is Cost.CONTRACTION)


def is_inlined(eqn: Eqn) -> bool:
    """Return True if an equation runs a program that XLA inlines, such as a jitted function."""
    return not eqn.primitive.memoize_type and any(
        b.runs in (Runs.ONCE, Runs.AGAIN) for b in running_bodies(eqn)
    )


def count_reread(eqns: Sequence[Eqn], calls: Sequence[Eqn]) -> int:
    """Return how many values XLA would compute where they are read, were they not in memory.

    They are results of groups, and operands of groups from programs that XLA inlines.
    """
    made = {v for call in calls for v in call.outvars}
    inlined = {v for eqn in eqns if is_inlined(eqn) for v in eqn.outvars} - made
    count = 0
    for eqn in eqns:
        grouped = isinstance(eqn.primitive, Group)
        if grouped or (fuses(eqn) and not views_operand(eqn)):
            read = made | inlined if grouped else made
            count += sum(type(a) is Var and a in read for a in eqn.invars)
    return count


class Grouping:
    """The equations of a program, and the number of the group that each is computed in.

    The others are computed directly after the group of their number, or before all groups if that
    is -1.
    """

    def __init__(self, jaxpr: Jaxpr, eqns: Sequence[Eqn], joins: list[bool]):
        self.jaxpr, self.eqns, self.joins = jaxpr, eqns, joins
        makers: dict[Atom, int] = {}
        self.makers: list[list[int]] = []  # the places of what computes each equation's operands
        self.users: list[list[int]] = []  # the places of what reads each equation's results
        # XLA computes these while it compiles, or where they are read
        self.constant: list[bool] = []
        for i, eqn in enumerate(eqns):
            made: list[int] = []
            constant = joins[i]
            for a in eqn.invars:
                if type(a) is Var:
                    k = makers.get(a)
                    if k is not None:
                        made.append(k)
                        self.users[k].append(i)
                    constant = constant and k is not None and self.constant[k]
            joins[i] = joins[i] and not constant
            self.constant.append(constant)
            self.makers.append(made)
            self.users.append([])
            for v in eqn.outvars:
                makers[v] = i
        self.outs = {makers[a] for a in jaxpr.outvars if type(a) is Var and a in makers}
        for i in reversed(range(len(eqns))):
            if joins[i] and i not in self.outs:
                users = self.users[i]
                if not any([joins[k] for k in users]):
                    fused = views_operand(eqns[i])  # also into a product
                    joins[i] = not fused and any([not fuses(eqns[k]) for k in users])
        self.numbers = self.find_first()
        self.delay()

    def find_first(self) -> list[int]:
        """Return the first group that each equation may be computed in."""
        numbers: list[int] = []
        for joined, made in zip(self.joins, self.makers, strict=True):
            if joined:
                numbers.append(max([numbers[k] + (not self.joins[k]) for k in made], default=0))
            else:
                numbers.append(max([numbers[k] for k in made], default=-1))
        return numbers

    def delay(self) -> None:
        """Compute the equations of groups as late as possible, so that few results are stored."""
        numbers = self.numbers
        last = max((n for n, j in zip(numbers, self.joins, strict=True) if j), default=0)
        for i in reversed(range(len(self.eqns))):
            if self.joins[i]:
                numbers[i] = max(numbers[i], min([last, *[numbers[k] for k in self.users[i]]]))

    def write(self) -> list[Eqn]:
        """Return the equations of the program, with calls of the groups."""
        places: dict[int, list[int]] = {}
        for i, number in enumerate(self.numbers):
            places.setdefault(number, []).append(i)
        written: list[Eqn] = []
        for number in sorted(places):
            group = [i for i in places[number] if self.joins[i]]
            if group:
                written += self.write_group(group)
            written += [self.eqns[i] for i in places[number] if not self.joins[i]]
        calls = [e for e in written if isinstance(e.primitive, Group)]
        return written if count_reread(written, calls) < len(calls) else list(self.eqns)

    def write_group(self, group: list[int]) -> list[Eqn]:
        """Return the call of a group; its equations if they compute no arrays."""
        eqns = [self.eqns[i] for i in group]
        if all(views_operand(e) or e.outvars[0].aval.size == 1 for e in eqns):
            return eqns
        body = [self.eqns[i] for i in self.add_constants(group)]
        made = {v for e in body for v in e.outvars}
        reads = dict.fromkeys(a for e in body for a in e.invars if type(a) is Var and a not in made)
        results = [v for i in group if self.is_stored(i) for v in self.eqns[i].outvars]
        jaxpr = Jaxpr([], [*reads], results, body, name="group")
        return [Eqn(group_p, [*reads], {"jaxpr": jaxpr}, results, None)]

    def is_stored(self, i: int) -> bool:
        """Return True if results of an equation of a group are read outside of it."""
        joins, numbers = self.joins, self.numbers
        return i in self.outs or any(
            [not joins[k] or numbers[k] != numbers[i] for k in self.users[i]]
        )

    def add_constants(self, group: Sequence[int]) -> list[int]:
        """Return the places of a group, and of the constants that it is computed from."""
        left, within = [*group], {*group}
        while left:
            for k in self.makers[left.pop()]:
                if self.constant[k] and k not in within:
                    within.add(k)
                    left.append(k)
        return sorted(within)
