"""Programs that consist of calls of kernels, so that XLA has nothing to compile by LLVM.

XLA compiles such a program in half of the time that it takes for a single loop. Here the operations
on elements between kernels become calls of the kernel that runs programs (native/programs.cc), if
nothing else is left to compile.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from weft.core.facts import Cost, Elements
from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var, memo_jaxpr, origin_of, variables_in
from weft.cpu.calls import CpuCall, kernel_equation
from weft.cpu.cheap_programs import BLOCK, PARAMETERS, TYPES, select_instruction
from weft.cpu.elements import chooses_by_element, only_moves
from weft.cpu.kernels import are_floats
from weft.cpu.opcodes import (
    FULL,
    MAX_ROW,
    MAX_SLOTS,
    PER_ROW,
    SCALAR,
    SHARED_ROW,
    Instruction,
    Kind,
    Operand,
    Own,
    Step,
    cheap_instruction,
    encode_program,
    find_instruction,
    is_instruction,
    number_operand,
)
from weft.optimize.views import View, find_views, merge_axes, view_whole
from weft.passes.dce import with_equations
from weft.primitives import elementwise as ops
from weft.primitives.elementwise import Elementwise
from weft.primitives.layout import Iota

MAX_EQUATIONS = 64  # of a program that is looked at
MAX_ELEMENTS, MAX_STEPS = 16384, 16  # of a result, and of its call
# Elements of any array. A program on a larger one stays a loop, also if it reads a small part.
MAX_ARRAY = 1 << 16
# The most bytes that steps write where calls are as quick as XLA: in a program that calls other
# kernels or sums, in one with products by XLA and sums of steps, and in other programs.
MAX_BYTES, MAX_SUMMED_BYTES, MAX_ALONE_BYTES = 1 << 19, 1 << 16, 1 << 17
MAX_CALLS, MAX_CALLS_ALONE = 10, 3
# XLA wakes a thread for a program of MIN_OPERATIONS. In smaller programs each step counts.
MIN_OPERATIONS, MAX_LIGHT_STEPS = 1000, 1
MIN_ROW = 128  # elements of a row; shorter ones take as long
FUNCTION_STEPS = 16  # steps that take as long as a function such as exp
MASK_STEPS = 2  # the same for a comparison of positions, whose result is widened where it is read
# Elements of a matrix that the kernel multiplies by a vector; columns that tiles compute at least.
MIN_MATRIX, MIN_COLUMNS = 4096, 16
MAX_WORK = 1 << 15  # multiplications of float32 of a product that XLA's library would compute
MAX_COUNT = 1 << 24  # of numbers that are added to positions
I32, I64, F32 = map(np.dtype, (np.int32, np.int64, np.float32))


@memo_jaxpr
def call_operations(jaxpr: Jaxpr) -> Jaxpr:
    """Return a program of calls only; the program itself if XLA has to write loops for it."""
    if jaxpr.effects or jaxpr.constvars or not 0 < len(jaxpr.eqns) <= MAX_EQUATIONS:
        return jaxpr
    variables = (*jaxpr.invars, *(v for e in jaxpr.eqns for v in e.outvars))
    if not all(type(v.aval.size) is int and v.aval.size <= MAX_ARRAY for v in variables):
        return jaxpr
    if stays_loop(jaxpr):
        return jaxpr
    plan = Calls(jaxpr)
    eqns = plan.write() if plan.sort() else None
    return with_equations(jaxpr, jaxpr.invars, jaxpr.outvars, eqns) if eqns else jaxpr


def stays_loop(jaxpr: Jaxpr) -> bool:
    """Return True for a small program of several steps or with a function, which XLA runs sooner.

    It has no calls, products or sums. A product and a sum are one step.
    """
    costs = [e.primitive.cost for e in jaxpr.eqns if not only_moves(e)]
    if not {Cost.CHEAP, Cost.TRANSCENDENTAL}.issuperset(costs):
        return False
    small = sum([v.aval.size for e in jaxpr.eqns for v in e.outvars]) < MIN_OPERATIONS
    return small and (Cost.TRANSCENDENTAL in costs or len(costs) > 2 * MAX_LIGHT_STEPS)


def is_converted_to_itself(eqn: Eqn) -> bool:
    """Return True if an equation converts an array to the dtype it has, which XLA leaves out."""
    converts = eqn.primitive.elements is Elements.CONVERTED and type(eqn.invars[0]) is Var
    return converts and eqn.invars[0].aval.dtype == eqn.outvars[0].aval.dtype


def is_in_library(eqn: Eqn) -> bool:
    """Return True if XLA calls a library for an equation, so that it compiles nothing."""
    return eqn.primitive.form is Form.SUM and eqn.outvars[0].aval.dtype.kind == "f"


def is_called_product(eqn: Eqn) -> bool:
    """Return True if a kernel multiplies matrices, or a matrix and a vector, as quickly as XLA."""
    if eqn.primitive.form is not Form.PRODUCT:
        return False
    x, y, _ = avals = [a.aval for a in (*eqn.invars, *eqn.outvars)]
    if not are_floats(*avals):
        return False
    (summed, _), (batch, _) = eqn.params["dimension_numbers"]
    if len(summed) != 1 or batch:
        return False
    k = x.shape[summed[0]]
    if sorted((x.ndim, y.ndim)) == [1, 2]:
        return MIN_MATRIX <= max(x.size, y.size) <= MAX_ELEMENTS
    work = x.size // k * max(y.size // k, MIN_COLUMNS) * k * x.dtype.itemsize // 4
    return x.ndim == y.ndim == 2 and work <= MAX_WORK


def is_function(instruction: Instruction) -> bool:
    """Return True for the instruction of a function such as exp."""
    return isinstance(instruction, Elementwise) and cheap_instruction(instruction) is None


class Calls:
    """The equations of a program: steps of calls, and others.

    Attributes:
      makers: the number of the step that computes a variable.
      views: the view that each variable is of an argument, or of a result of an equation.
      counts: the steps that only positions and numbers are operands of. They are computed in int32.
      stored: the steps whose results are in memory, and the views that stay equations.
      owners: for each step the calls that compute it.
      reads: how often each variable is read.
      copies: the views that a kernel copies.
      numbers: the numbers of the steps.
      products: the calls that multiply matrices, by the number of the equation.
    """

    def __init__(self, jaxpr: Jaxpr):
        self.jaxpr, self.eqns = jaxpr, jaxpr.eqns
        self.makers: dict[Any, int] = {}
        self.moves: dict[Any, int] = {}  # the number of the equation that gives a view
        self.views: dict[Any, View] = {v: view_whole(v) for v in jaxpr.invars}
        self.counts: set[int] = set()
        self.stored: set[int] = set()
        self.owners: list[set[int]] = [set() for _ in jaxpr.eqns]
        self.reads: dict[Any, int] = {}
        self.copies: dict[Any, View] = {}
        self.numbers: set[int] = set()
        self.products: dict[int, Eqn] = {}

    def sort(self) -> bool:
        """Find the steps and the stored arrays; return False if a loop of XLA's remains."""
        for i, eqn in enumerate(self.eqns):
            for v in variables_in(eqn.invars):
                self.reads[v] = self.reads.get(v, 0) + 1
            found = find_views(eqn, self.views)
            if found is not None:
                if len(found) > 1:
                    return False
                self.views.update(zip(eqn.outvars, found, strict=True))
                self.moves[eqn.outvars[0]] = i
                continue
            self.views.update((v, view_whole(v)) for v in eqn.outvars)
            if is_converted_to_itself(eqn):
                self.views[eqn.outvars[0]] = self.views[eqn.invars[0]]
                self.moves[eqn.outvars[0]] = i
            elif not (
                isinstance(eqn.primitive, CpuCall) or is_in_library(eqn) or is_called_product(eqn)
            ):
                if not self.is_step(i):
                    return False
                self.makers[eqn.outvars[0]] = i
        self.numbers.update(self.makers.values())
        if not self.numbers:
            return False
        if not all(map(self.store, self.jaxpr.outvars)):
            return False
        return all(map(self.find_owner, reversed(range(len(self.eqns)))))

    def is_step(self, i: int) -> bool:
        """Return True if the kernel computes an equation."""
        eqn = self.eqns[i]
        prim, args, out = eqn.primitive, eqn.invars, eqn.outvars[0].aval
        sources = [self.views[a].source for a in args if type(a) is Var]
        counts = all(self.makers.get(s) in self.counts for s in sources if type(s) is Var)
        if counts:
            self.counts.add(i)
        types = TYPES | {I64} if counts else TYPES
        if not 0 < out.size <= MAX_ELEMENTS or out.dtype not in types or out.sharded is not None:
            return False
        if isinstance(prim, Iota):
            return out.dtype in (I32, I64)
        operands = args[1:] if chooses_by_element(prim) else args
        kinds = {a.aval.dtype for a in operands}
        if len(kinds) != 1 or not kinds <= types:
            return False
        floats = out.dtype.kind == "f"
        found = find_instruction(prim)
        if prim.form is Form.POWER:
            chosen = {(k, v) for k, v in eqn.params.items() if k == "y"}
            return chosen <= PARAMETERS and (floats or eqn.params.get("y") != -1)
        if found is None or eqn.params.get("rounding_method", 1) != 1:
            return False
        if chooses_by_element(prim):
            return len(args) == 3 and args[0].aval.dtype == bool
        if I64 in (out.dtype, *(a.aval.dtype for a in args)):
            numbers = [a.val for a in args if type(a) is Literal]
            small = all(abs(int(number)) < MAX_COUNT for number in numbers)
            return small and (out.dtype != I64 or is_instruction(prim, ops.add_p, ops.sub_p))
        kernel = getattr(found, "kernel", None)
        if kernel is None:
            return True
        dtype = args[0].aval.dtype
        if prim.form is Form.QUOTIENT or dtype.kind != "f":
            return floats if prim.form is Form.QUOTIENT else cheap_instruction(prim) is not None
        return (kernel.float32 if dtype == F32 else kernel.float64) is not None

    # --- stored arrays ----------------------------------------------------------------------------

    def store(self, a: Atom) -> bool:
        """Have an operand of a kernel, or a result of the program, in memory."""
        if type(a) is Literal:
            return True
        if a in self.moves:  # XLA gives an array another shape without a loop
            eqn = self.eqns[self.moves[a]]
            (x,) = eqn.invars
            self.stored.add(self.moves[a])
            whole = type(x) is Var and x.aval.size == a.aval.size and self.views[a].is_contiguous
            return whole or self.copy(a)
        if a in self.makers:
            self.stored.add(self.makers[a])
        return True

    def copy(self, a: Any) -> bool:
        """Have a kernel copy a view, which is then an array of its own."""
        view = self.views[a]
        if type(view.source) is Literal or a.aval.size > MAX_ELEMENTS or a.aval.dtype not in TYPES:
            return False
        self.copies[a], self.views[a] = view, view_whole(a)
        return self.store(view.source)

    def find_owner(self, i: int) -> bool:
        """Find the calls that compute a step, or what an equation reads."""
        eqn = self.eqns[i]
        if eqn.outvars and eqn.outvars[0] in self.moves:
            return i not in self.stored or self.store(eqn.invars[0])
        if i not in self.numbers:
            if eqn.primitive.form is Form.PRODUCT:
                self.products[i] = self.multiply(eqn)
            return all(map(self.store, self.products.get(i, eqn).invars))
        owners = self.owners[i]
        if i not in self.stored and len(owners) > 1 and i not in self.counts:
            self.stored.add(i)
        if i in self.stored:
            if i in self.counts and eqn.outvars[0].aval.dtype == I64:
                return False
            owners = {i}
        for a in eqn.invars:
            if type(a) is Literal:
                continue
            view = self.views[a]
            if self.find_kind(view, False)[0] is None and not self.copy(a):
                return False
            j = self.makers.get(view.source) if type(view.source) is Var else None
            if j is None:
                continue
            apart = self.find_kind(view, True)[0] in (None, PER_ROW)
            if apart and not isinstance(self.eqns[j].primitive, Iota):
                self.stored.add(j)
            self.owners[j] |= owners
        return True

    def multiply(self, eqn: Eqn) -> Eqn:
        """Return the call of a kernel that multiplies, with operands before they are transposed."""
        given, turned = list[Atom](), list[bool]()
        for a, (axis,) in zip(eqn.invars, eqn.params["dimension_numbers"][0], strict=True):
            first, view = axis == 0, self.views.get(a)
            if view is not None and a.aval.ndim == 2 and type(view.source) is Var:
                rows, columns = a.aval.shape
                if view.source.aval.shape == (columns, rows) and view.steps == (1, rows):
                    a, first = view.source, not first
            given.append(a)
            turned.append(first)
        how: dict[str, Any] = {"left_turned": turned[0], "right_turned": not turned[1]}
        kernel = "weft_dot"
        if eqn.outvars[0].aval.ndim == 1:
            matrix = 0 if given[0].aval.ndim == 2 else 1
            kernel, how = "weft_matvec", {"turned": turned[matrix]}
            given = [given[matrix], given[1 - matrix]]
        return kernel_equation(kernel, given, eqn.outvars, {**how, "extras": ""})

    def find_kind(self, view: View, computed: bool) -> tuple[Kind | None, int]:
        """Return the kind of an operand that is a view, and the size of a row if it has rows.

        If the source is `computed` by the same call, the view has all of its elements.
        """
        n, size = view.source.aval.size, math.prod(view.sizes)
        if n == 1 or (size == 1 and not computed):
            return SCALAR, 0
        if view.is_contiguous and (n == size or not computed):
            return FULL, 0
        sizes, steps = merge_axes(view)
        if len(sizes) == 2 and steps == (0, 1) and (n == sizes[1] or not computed):
            return SHARED_ROW, sizes[1]
        if len(sizes) == 2 and steps == (1, 0) and (n == sizes[0] or not computed):
            return PER_ROW, sizes[1]
        return None, 0

    # --- calls ------------------------------------------------------------------------------------

    def write(self) -> list[Eqn] | None:
        """Return the equations with calls in place of steps; None if XLA is quicker."""
        made: list[Eqn] = []
        written, copied, steps = list[CallOfSteps](), list[Var](), self.numbers
        for i, eqn in enumerate(self.eqns):
            v = eqn.outvars[0]
            if v in self.copies:
                view = self.copies[v]
                sizes, distances = merge_axes(view)
                how = {"start": view.start, "sizes": sizes, "steps": distances}
                made.append(kernel_equation("weft_view", [view.source], [v], how))
                copied.append(v)
            elif i in self.stored and i in steps:
                written.append(CallOfSteps(self, i))
                call = written[-1].write()
                if call is None:
                    return None
                made.append(call)
            elif i not in steps and (v not in self.moves or i in self.stored):
                made.append(self.products.get(i, eqn))
        return made if self.is_quick(written, copied) else None

    def is_quick(self, written: Sequence[CallOfSteps], copied: Sequence[Var]) -> bool:
        """Return True if calls, and those that copy views, take no longer than XLA's loops."""
        count = len(written) + len(copied)
        size = sum(call.count_bytes() for call in written) + sum(v.aval.nbytes for v in copied)
        others = [e for e in self.eqns if isinstance(e.primitive, CpuCall) or is_in_library(e)]
        if others or self.products:
            sums = any(is_in_library(e) and self.is_computed(e.invars[0]) for e in others)
            most = (MAX_SUMMED_BYTES if self.products else 0) if sums else MAX_BYTES
            return count <= MAX_CALLS and size <= most
        if sum(call.count_operations() for call in written) >= MIN_OPERATIONS:
            return count <= MAX_CALLS_ALONE and size <= MAX_ALONE_BYTES
        return count == 1 and all(call.is_light() for call in written)

    def is_computed(self, a: Atom) -> bool:
        """Return True if a step computes an operand."""
        return type(a) is Var and self.views[a].source in self.makers


class CallOfSteps:
    """The call that computes one step and others that it needs, while it is written."""

    def __init__(self, plan: Calls, root: int):
        self.plan, self.root = plan, root
        self.eqn = plan.eqns[root]
        self.size, self.row = self.eqn.outvars[0].aval.size, 0
        self.operands: dict[Any, Operand] = {}
        self.given: list[Atom] = []
        self.steps: dict[Any, Step] = {}
        self.wrong = False
        # steps of this call, for instructions that do the work of several equations
        self.inner = {
            v: plan.eqns[j] for v, j in plan.makers.items() if j == root or j not in plan.stored
        }

    def write(self) -> Eqn | None:
        """Return the call; None if the kernel cannot compute it as quickly as XLA."""
        out = self.eqn.outvars[0]
        if isinstance(self.eqn.primitive, Iota):
            return None
        self.place_step(out)
        row = self.row or BLOCK
        if self.wrong or len(self.steps) > MAX_STEPS or row > MAX_ROW:
            return None
        if len(self.operands) > MAX_SLOTS or (self.row and self.size % row):
            return None
        program = encode_program(
            [*self.operands.values()], [*self.steps.values()], row, max(1, 2 * MAX_ELEMENTS // row)
        )
        if program is None or [*self.steps][-1] is not out:
            return None
        call = kernel_equation("weft_program", self.given, [out], {"program": program})
        call.source, call.origin = self.eqn.source, origin_of(self.eqn)
        return call

    def weigh_steps(self) -> int:
        """Return the number of the steps on all elements, with functions as several.

        An element for each row is repeated, which is a step, too.
        """
        repeated = [x for x in self.operands.values() if x.kind is PER_ROW and x.dtype is None]
        full = [step for step in self.steps.values() if step.kind is FULL]
        return len(repeated) + sum(map(self.weigh_step, full))

    def weigh_step(self, step: Step) -> int:
        """Return the number of cheap steps that take as long as a step on all elements."""
        if self.plan.makers[step.value] in self.plan.counts:
            return MASK_STEPS
        return FUNCTION_STEPS if is_function(step.instruction) else 1

    def count_bytes(self) -> int:
        """Return the number of bytes that the steps write. Elements of short rows count more."""
        long = max(1, MIN_ROW // (self.row or MIN_ROW))
        return self.size * long * self.eqn.outvars[0].aval.dtype.itemsize * self.weigh_steps()

    def count_operations(self) -> int:
        """Return the number of operations that XLA counts, which are those besides functions."""
        steps = [
            s for s in self.steps.values() if s.kind is FULL and not is_function(s.instruction)
        ]
        return self.size * len(steps)

    def is_light(self) -> bool:
        """Return True if the call of a small program takes as long as XLA's code."""
        functions = any(is_function(step.instruction) for step in self.steps.values())
        return not (functions or self.row) and len(self.steps) <= MAX_LIGHT_STEPS

    def kind_of(self, size: int) -> Kind:
        """Return the kind of a step's result that has this number of elements."""
        if size == self.size:
            return FULL
        return SCALAR if size == 1 else SHARED_ROW

    def use_row(self, row: int) -> None:
        """Note the elements of a row, which must be the same for all operands."""
        self.wrong = self.wrong or self.row not in (0, row)
        self.row = row

    def place(self, a: Atom, size: int) -> Hashable:
        """Add what makes an operand of a step on `size` elements, and return its name."""
        if type(a) is Literal:
            return self.read(number_operand((str(a.val), a.aval), a.val, self.narrow(a.aval.dtype)))
        view = self.plan.views[a]
        source = view.source
        if type(source) is Literal:
            return self.place(source, size)
        assert type(source) is Var
        kind, row = self.plan.find_kind(view, source in self.inner)
        if kind is None or (kind in (PER_ROW, SHARED_ROW) and size != self.size):
            self.wrong = True
            return id(a)
        if row:
            self.use_row(row)
        if source in self.inner:
            eqn = self.inner[source]
            if isinstance(eqn.primitive, Iota):
                return self.place_count(source, eqn, kind, size)
            self.wrong = self.wrong or kind is PER_ROW
            return self.place_step(source)
        if kind is FULL and size != self.size:
            kind = SCALAR if size == 1 else SHARED_ROW
        operand = Operand((source, view.start, kind), kind, view.start)
        if operand.value not in self.operands:
            self.given.append(source)
        return self.read(operand)

    def read(self, operand: Operand) -> Hashable:
        """Add an operand, and return its name."""
        return self.operands.setdefault(operand.value, operand).value

    def place_count(self, v: Var, eqn: Eqn, kind: Kind, size: int) -> Hashable:
        """Return the name of positions along an axis."""
        shape, axis = eqn.params["shape"], eqn.params["dimension"]
        outer, n = math.prod(shape[:axis]), shape[axis]
        inner = v.aval.size // (outer * n)
        if kind is FULL and size == self.size and outer == 1 < inner:
            kind, row = PER_ROW, inner
        elif kind is FULL and size == self.size and inner == 1:
            kind, row = SHARED_ROW, n
        elif kind in (PER_ROW, SHARED_ROW) and outer == inner == 1:
            row = self.row
        else:
            self.wrong = True
            return v
        self.use_row(row)
        self.wrong = self.wrong or n > MAX_ROW
        return self.read(Operand(("count", kind), kind, 0, I32))

    def narrow(self, dtype: np.dtype) -> np.dtype:
        """Return the dtype that a step computes in: positions fit into int32."""
        return I32 if dtype == I64 else dtype

    def place_step(self, v: Var) -> Hashable:
        """Add the step that computes a variable, and return its name."""
        if v in self.steps:
            return v
        eqn = self.inner[v]
        size = v.aval.size
        instruction, args = self.select(eqn)
        reads = [self.place(a, size) for a in args]
        kind = self.kind_of(size)
        if kind is SHARED_ROW:
            self.use_row(size)
        self.steps[v] = Step(instruction, v, kind, self.narrow(v.aval.dtype), reads)
        return v

    def select(self, eqn: Eqn) -> tuple[Instruction, Any]:
        """Return an instruction and its operands: a product and a sum are one, as for LLVM."""
        prim, args = eqn.primitive, eqn.invars
        if eqn.outvars[0].aval.dtype.kind == "f" and is_instruction(prim, ops.add_p, ops.sub_p):
            adds = is_instruction(prim, ops.add_p)
            for side in (0, 1):
                product = self.find_product(args[side], eqn)
                if product is not None:
                    other = args[1 - side]
                    how = Own.MULTIPLY_SUBTRACT if side == 0 else Own.SUBTRACT_PRODUCT
                    return (Own.MULTIPLY_ADD if adds else how), [*product.invars, other]
        found = find_instruction(prim)
        if found is not None and cheap_instruction(prim) is None:
            return found, args
        return select_instruction(eqn, self.inner)

    def find_product(self, a: Atom, reader: Eqn) -> Eqn | None:
        """Return the product that an operand is, if nothing else reads it."""
        if type(a) is Literal or self.plan.reads.get(a) != 1 or a not in self.inner:
            return None
        eqn = self.inner[a]
        same = a.aval.size == reader.outvars[0].aval.size
        return eqn if same and is_instruction(eqn.primitive, ops.mul_p) else None
