"""Plans for programs on 16-bit floats as one call of a kernel: element by element, or along rows.

XLA:CPU uses a second thread for such a program, writes intermediate results to memory and rounds
each of them. The kernel, native/programs.cc, computes in float32. It rounds results, operands of
comparisons, and what the program converts to float32, except for operands of sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.core.aval import ShapedArray
from weft.core.facts import Cost, Elements
from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, variables_in
from weft.cpu.calls import kernel_equation
from weft.cpu.cheap_programs import BLOCK, MIN_WORK
from weft.cpu.elements import chooses_by_element, find_direction
from weft.cpu.opcodes import (
    MAX_ROW,
    MAX_SLOTS,
    Instruction,
    Kind,
    Operand,
    Own,
    Step,
    encode_program,
    find_instruction,
)
from weft.cpu.scope import HALVES, REDUCING
from weft.dtypes import bfloat16
from weft.optimize.views import find_views, merge_axes, view_whole
from weft.primitives import elementwise as ops
from weft.primitives.reduction import Extremum

BOOL, INT, F32, F16, BF16 = map(np.dtype, (bool, np.int32, np.float32, np.float16, bfloat16))
FLOATS = HALVES | {F32}
TYPES = FLOATS | {BOOL, INT}
# Instructions that give a mask, and whether their operands change places.
MASKS = {
    "EQ": (Own.MASK_EQ, False), "NE": (Own.MASK_NE, False), "LT": (Own.MASK_LT, False),
    "LE": (Own.MASK_LE, False), "GT": (Own.MASK_LT, True), "GE": (Own.MASK_LE, True),
}  # fmt: skip
MIN_ROW = 64  # elements of a row
MIN_SINGLES = MIN_WORK // 2  # of float32: XLA wakes a thread for two operations on each
MAX_SINGLES = 1 << 14  # elements of float32 that take less time than it takes to wake a thread
MAX_STEPS = 48
MAX_FLOAT16_STEPS = 6  # for each element; XLA uses the processor's arithmetic of float16
PIECE_ELEMENTS = 1 << 14  # elements that are worth a thread
# Instructions whose results need no rounding. XLA is quicker at programs of these only.
EXACT = frozenset((ops.abs_p, Own.ROUND_BFLOAT16, ops.max_p, ops.min_p))
# Instructions on 16-bit floats: those on bits, which may follow each other, and others.
BITWISE = frozenset((ops.abs_p, ops.neg_p, ops.max_p, ops.min_p))
DIRECT = frozenset((ops.add_p, ops.sub_p, ops.mul_p))
JOINING = Own.REDUCE_SUM, Own.REDUCE_MAX, Own.REDUCE_SQUARES
ROUNDING = {F16: Own.ROUND_FLOAT16, BF16: Own.ROUND_BFLOAT16}
SCALAR, PER_ROW, SHARED_ROW, FULL = Kind


class Value(NamedTuple):
    """An operand or the result of a step: its number, its kind, and the dtype that it is exact in.

    A result that was not rounded has no dtype.
    """

    number: int
    kind: Kind
    dtype: Any = None


class PlannedStep(NamedTuple):
    """A step in float32: the instruction, the result, and the values that it reads."""

    instruction: Instruction
    out: Value
    reads: tuple[Value, ...]


def plan_rows(jaxpr: Jaxpr) -> Eqn | None:
    """Return the call of the kernel that computes a program; None if XLA compiles it."""
    avals = [*jaxpr.in_avals, *jaxpr.out_avals]
    if len(jaxpr.outvars) != 1 or not all(type(a.size) is int for a in avals):
        return None
    if not all(a.dtype in TYPES for a in avals) or not all(map(is_known, jaxpr.eqns)):
        return None
    if all(is_view(eqn) or find_direction(eqn) for eqn in jaxpr.eqns):
        return None
    sizes = [a.size for a in avals]
    plan = RowPlan(jaxpr, max(sizes))
    row = plan.row_size
    least, most = (MIN_WORK, math.inf) if plan.narrow else (MIN_SINGLES, MAX_SINGLES)
    if 0 in sizes or not least <= max(sizes) <= most or (row and not MIN_ROW <= row <= MAX_ROW):
        return None
    if max(sizes) % (row or 1) or not all(map(plan.write, jaxpr.eqns)):
        return None
    return plan.finish(jaxpr)


def is_view(eqn: Eqn) -> bool:
    """Return True if an equation gives its operand under other indices."""
    return eqn.primitive.cost is Cost.FREE and len(eqn.invars) == 1


def is_known(eqn: Eqn) -> bool:
    """Return True if the kernel may have instructions for an equation."""
    prim = eqn.primitive
    if prim.form in REDUCING:
        return not isinstance(prim, Extremum) or prim.largest
    if is_view(eqn) or prim.form is Form.POWER:
        return True
    found = find_instruction(prim)
    kernel = getattr(found, "kernel", None)
    return found is not None and (kernel is None or kernel.float32 is not None)


class RowPlan:
    """A program as steps of the kernel, while its equations are written one by one.

    Attributes:
      size: the number of elements of the largest array.
      row_size: the elements of a row; 0 if nothing goes along rows.
      narrow: the program has 16-bit floats, so that results in float32 need not be the nearest.
      steps: the steps so far.
      env: the values of variables; None for what the kernel does not compute.
      numbers: the literals that are operands, with their values.
    """

    def __init__(self, jaxpr: Jaxpr, size: int):
        self.size, self.row_size = size, 0
        self.steps: list[PlannedStep] = []
        self.count = 0
        self.summed = {e.invars[0] for e in jaxpr.eqns if e.primitive.form is Form.SUM}
        self.narrow = not HALVES.isdisjoint(a.dtype for a in (*jaxpr.in_avals, *jaxpr.out_avals))
        for eqn in jaxpr.eqns:
            x, y = eqn.invars[0].aval, eqn.outvars[0].aval
            if eqn.primitive.form in REDUCING:
                self.row_size = math.prod(x.shape[a] for a in eqn.params["axes"])
            elif is_view(eqn) and 1 < x.size < y.size == size:  # repeated
                self.row_size = y.shape[-1]
        kinds = {self.row_size: SHARED_ROW, 1: SCALAR, size: FULL}
        self.env: dict[Any, Value | None] = {}
        for v in jaxpr.invars:
            kind = kinds.get(v.aval.size)
            self.env[v] = None if kind is None else self.new_value(kind, v.aval.dtype)
        self.numbers: dict[str, tuple[Literal, Value]] = {}

    def new_value(self, kind: Kind, dtype: Any = None) -> Value:
        """Return a value with a new number."""
        self.count += 1
        return Value(self.count - 1, kind, dtype)

    def read(self, atom: Any) -> Value | None:
        """Return the value of a variable or of a number, if the kernel takes it."""
        if type(atom) is not Literal:
            return self.env[atom]
        made = self.new_value(SCALAR, atom.aval.dtype)
        made = self.numbers.setdefault(f"{atom.val!r} {atom.aval}", (atom, made))[1]
        return made if made.dtype in FLOATS else None

    def read_number(self, number: float) -> Value:
        """Return the value of a number of float32."""
        made = self.read(Literal(number, ShapedArray((), F32)))
        assert made is not None
        return made

    # --- steps ------------------------------------------------------------------------------

    def step(self, instruction: Instruction, *reads: Value, full: bool, dtype: Any = None) -> Value:
        """Append a step and return its result, which has all elements if `full`.

        Without rows, a value that is not full is a scalar: the kernel refuses values for each row
        where the size is no multiple of a row's.
        """
        least = PER_ROW if self.row_size else SCALAR
        kind = FULL if full else max(least, *[x.kind for x in reads])
        if kind >= SHARED_ROW and instruction not in (Own.SPREAD, Own.REDUCE_SQUARES):
            reads = tuple([self.spread(x) for x in reads])
        reduces = instruction in JOINING
        out = self.new_value(PER_ROW if reduces else kind, dtype)
        self.steps.append(PlannedStep(instruction, out, reads))
        return out

    def spread(self, x: Value) -> Value:
        """Repeat a value of each row on all elements of the row; return other values unchanged."""
        return self.step(Own.SPREAD, x, full=True, dtype=x.dtype) if x.kind == PER_ROW else x

    def round(self, x: Value, dtype: np.dtype) -> Value:
        """Return a value rounded to a 16-bit dtype; for other dtypes the value itself."""
        if x.dtype == dtype or dtype not in HALVES:
            return x
        return self.step(ROUNDING[dtype], x, full=x.kind == FULL, dtype=dtype)

    # --- equations --------------------------------------------------------------------------

    def write(self, eqn: Eqn) -> Value | None:
        """Write an equation, and return its value; None if the kernel does not compute it."""
        self.env[eqn.outvars[0]] = made = self.find_value(eqn)
        return made

    def find_value(self, eqn: Eqn) -> Value | None:
        """Write the steps of an equation, and return its value."""
        xs = [x for x in map(self.read, eqn.invars) if x is not None]
        dtypes, prim, out = {a.aval.dtype for a in eqn.invars}, eqn.primitive, eqn.outvars[0].aval
        if len(xs) < len(eqn.invars) or not dtypes <= FLOATS | {BOOL}:
            return None
        if is_view(eqn):
            return xs[0] if self.keeps_rows(eqn, xs[0].kind) else None
        if BOOL in dtypes and not chooses_by_element(prim):
            return None
        if prim.elements is Elements.CONVERTED:
            return self.convert(eqn, xs[0])
        if prim.form in REDUCING:
            return self.reduce(eqn, xs[0])
        full = out.size == self.size
        if not full and {PER_ROW, SHARED_ROW} <= {x.kind for x in xs}:
            return None
        return self.compute(eqn, xs, full)

    def keeps_rows(self, eqn: Eqn, kind: Kind) -> bool:
        """Return True if a view has its operand's elements in order, or repeats them along rows.

        The kernel then reads the operand in the place of the view.
        """
        x, out = eqn.invars[0].aval, eqn.outvars[0].aval
        if x.size == 1:
            return True
        views = find_views(eqn, {eqn.invars[0]: view_whole(eqn.invars[0])})
        if not views or views[0].start:
            return False
        (view,) = views
        if out.size == x.size:
            return view.is_contiguous
        row = self.row_size
        rows = self.size // row
        wanted = ((rows, row), (0, 1) if kind == SHARED_ROW else (1, 0))
        return out.size == self.size and out.shape[-1] == row and merge_axes(view) == wanted

    def convert(self, eqn: Eqn, x: Value) -> Value | None:
        """Convert a value: it is rounded to the dtype it had, if the program can tell."""
        (atom,), (out,) = eqn.invars, eqn.outvars
        if out.aval.dtype not in FLOATS | {INT}:
            return None
        if out.aval.dtype in HALVES or out in self.summed:
            return x
        return self.round(x, atom.aval.dtype)

    def reduce(self, eqn: Eqn, x: Value) -> Value | None:
        """Reduce along rows. The kernel's maximum does not keep NaN."""
        aval = eqn.invars[0].aval
        first = aval.ndim - len(axes := eqn.params["axes"])
        is_row = (
            axes == (*range(first, aval.ndim),) and math.prod(aval.shape[first:]) == self.row_size
        )
        keeps_nan = eqn.primitive.form is Form.EXTREMUM and eqn.params.get("nan") != "any"
        if not is_row or aval.size != self.size or keeps_nan:
            return None
        if eqn.primitive.form is not Form.SUM:
            return self.step(Own.REDUCE_MAX, self.spread(x), full=True)
        root = self.find_reads(x, ops.mul_p)
        if root and root[0] == root[1] and root[0].kind == FULL:  # a sum of squares
            shift = self.find_reads(root[0], ops.sub_p)
            spread = shift and self.find_reads(shift[1], Own.SPREAD)
            if spread and shift[0].kind == FULL:
                return self.step(Own.REDUCE_SQUARES, *spread, shift[0], full=True)
            return self.step(Own.REDUCE_SQUARES, self.read_number(0.0), root[0], full=True)
        return self.step(Own.REDUCE_SUM, self.spread(x), full=True)

    def find_reads(self, x: Value, instruction: Instruction) -> Sequence[Value]:
        """Return the operands of the step of an instruction that computes a value, if one does."""
        made = [s for s in self.steps if s.out.number == x.number]
        return made[0].reads if made and made[0].instruction == instruction else ()

    def compute(self, eqn: Eqn, xs: list[Value], full: bool) -> Value | None:
        """Write an operation on each element."""
        prim = eqn.primitive
        step = lambda instruction, *xs: self.step(instruction, *xs, full=full)
        operation, direction = getattr(prim, "operation", ""), find_direction(eqn)
        is_finite = operation == "stablehlo.is_finite"
        if prim.form is Form.POWER:
            return self.raise_to_power(eqn.params.get("y", 2), xs[0], full)
        if direction or is_finite:
            xs = [self.round(x, a.aval.dtype) for x, a in zip(xs, eqn.invars, strict=True)]
            if is_finite:
                return step(Own.MASK_LT, step(ops.abs_p, *xs), self.read_number(math.inf))
            test, exchanged = MASKS[direction]
            return step(test, *(xs[::-1] if exchanged else xs))
        if chooses_by_element(prim):
            return self.choose(eqn, xs, full)
        if operation == "stablehlo.clamp":
            least, x, most = xs
            return step(ops.min_p, step(ops.max_p, x, least), most)
        if self.narrow and prim.form is Form.QUOTIENT and full and xs[1].kind == PER_ROW:
            inverse = self.step(ops.div_p, self.read_number(1.0), xs[1], full=False)
            return step(ops.mul_p, xs[0], inverse)  # one division a row
        return step(find_instruction(prim), *xs)

    def raise_to_power(self, power: int, x: Value, full: bool) -> Value | None:
        """Write the square, the cube or the reciprocal of each element."""
        if power == -1:
            return self.step(ops.div_p, self.read_number(1.0), x, full=full)
        if power not in (2, 3):
            return None
        square = self.step(ops.mul_p, x, x, full=full)
        return square if power == 2 else self.step(ops.mul_p, x, square, full=full)

    def choose(self, eqn: Eqn, xs: list[Value], full: bool) -> Value | None:
        """Write a choice between two values by a mask; relu as a maximum."""
        which, no, *yes = xs
        if len(yes) != 1 or eqn.invars[0].aval.dtype != BOOL:
            return None
        step = lambda instruction, *xs: self.step(instruction, *xs, full=full)
        zero = type(eqn.invars[2]) is Literal and str(float(eqn.invars[2].val)) == "0.0"
        if zero and self.steps and self.steps[-1] == (Own.MASK_LE, which, (no, *yes)):
            return step(ops.max_p, no, *yes)
        return step(Own.JOIN, step(Own.DROP, which, no), step(Own.KEEP, which, *yes))

    # --- the call ---------------------------------------------------------------------------

    def finish(self, jaxpr: Jaxpr) -> Eqn | None:
        """Return the call of the kernel, if it is quicker than XLA."""
        out, y = jaxpr.out_avals[0], self.read(jaxpr.outvars[0])
        given = [x for v in jaxpr.invars if (x := self.env[v]) is not None]
        numbers = [*self.numbers.values()]
        fits = len(given) + len(numbers) <= MAX_SLOTS
        if y is None or len(given) < len(jaxpr.invars) or not fits:
            return None
        kinds = {self.size // (self.row_size or 1): PER_ROW, self.size: FULL}
        if out.size == self.size:
            y = self.spread(y)
        steps, read = self.find_needed(y)
        if y.kind != kinds.get(out.size) or not self.is_quicker(steps, given, y, out.dtype):
            return None
        operands = [*given, *[x for _, x in numbers]]
        if is_direct(steps, operands, out.dtype):
            made = [
                Step(instruction, z.number, z.kind, out.dtype, [x.number for x in xs])
                for instruction, z, xs in steps
            ]
        else:
            numbers = [(widen_number(number), x._replace(dtype=F32)) for number, x in numbers]
            operands = [*given, *[x for _, x in numbers]]
            narrow = [x for x in operands if x.dtype != F32 and x.number in read]
            made = write_wide_steps(steps, narrow, y, out.dtype)
        row, arrays = self.row_size or BLOCK, [Operand(x.number, x.kind) for x in operands]
        program = encode_program(arrays, made, row, max(1, PIECE_ELEMENTS // row))
        if program is None:
            return None
        atoms: list[Atom] = [*jaxpr.invars, *[number for number, _ in numbers]]
        outs = variables_in(jaxpr.outvars)
        return kernel_equation("weft_program", atoms, outs, {"program": program})

    def find_needed(self, y: Value) -> tuple[list[PlannedStep], set[int]]:
        """Return the steps that a value is computed by, and the numbers of all values they read."""
        needed, steps = {y.number}, list[PlannedStep]()
        for step in reversed(self.steps):
            if step.out.number in needed:
                steps.append(step)
                needed.update(x.number for x in step.reads)
        return steps[::-1], needed

    def is_quicker(
        self, steps: Sequence[PlannedStep], given: Sequence[Value], y: Value, dtype: np.dtype
    ) -> bool:
        """Return True if the kernel takes less time than XLA's code."""
        if not steps and y != given[0]:
            return False
        by_element = not self.row_size
        many = by_element and any(x.dtype == F16 for x in given)
        if len(steps) > (MAX_FLOAT16_STEPS if many else MAX_STEPS):
            return False
        instructions = {step.instruction for step in steps}
        same_dtype = {x.dtype for x in given} == {dtype} and (steps or dtype == BF16)
        one = len(steps) == 1 and Own.ROUND_BFLOAT16 not in instructions
        exact = same_dtype and instructions <= EXACT and not one
        # XLA makes choices and other exact operations on 16 bits
        return not (by_element and (Own.JOIN in instructions or exact))


def is_direct(steps: Sequence[PlannedStep], operands: Sequence[Value], dtype: np.dtype) -> bool:
    """Return True if the kernel has the steps in a 16-bit dtype, which all operands have."""
    instructions = {step.instruction for step in steps}
    known = instructions <= BITWISE or (len(steps) == 1 and instructions <= DIRECT)
    return bool(steps) and known and dtype in HALVES and {x.dtype for x in operands} == {dtype}


def widen_number(number: Literal) -> Literal:
    """Return a number as float32, which has all digits of the shorter floats."""
    if number.aval.dtype == F32:
        return number
    value = np.asarray(number.val, number.aval.dtype).astype(F32)[()]
    return Literal(value, ShapedArray((), F32))


def write_wide_steps(
    steps: Sequence[PlannedStep], narrow: Sequence[Value], y: Value, out: np.dtype
) -> list[Step]:
    """Return steps in float32 that give `y` in the dtype `out`, after conversions of `narrow`.

    Reductions read 16-bit floats as they are.
    """
    others = [x.number for step in steps if step.instruction not in JOINING for x in step.reads]
    narrow = [x for x in narrow if x.number in (*others, y.number)]
    names = {x.number: ("wide", x.number) for x in narrow}
    name_of = lambda x: names.get(x.number, x.number)
    made = []
    for x in narrow:
        load = Own.LOAD_MASK if x.dtype == BOOL else Own.CONVERT_ELEMENT_TYPE
        made.append(Step(load, name_of(x), x.kind, F32, [x.number]))
    for instruction, z, reads in steps:
        made.append(Step(instruction, z.number, z.kind, F32, [*map(name_of, reads)]))
    if out != F32 or not steps:
        store = Own.STORE_MASK if out == BOOL else Own.CONVERT_ELEMENT_TYPE
        made.append(Step(store, "out", y.kind, out, [name_of(y)]))
    return made
