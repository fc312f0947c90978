"""Plans for programs of a few cheap operations on each element, or of moved elements.

XLA:CPU gives a program on more than 1,000 elements to another thread, which takes longer to wake
than 100,000 additions take. A kernel, native/programs.cc or transpose.cc, runs where it is called.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.core.aval import ShapedArray
from weft.core.facts import Cost, Elements, Linearity
from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var
from weft.cpu.calls import kernel_equation
from weft.cpu.elements import chooses_by_element, find_direction, only_moves
from weft.cpu.opcodes import (
    Instruction,
    Kind,
    Operand,
    Own,
    Step,
    cheap_instruction,
    encode_program,
    number_operand,
)
from weft.cpu.scope import MAX_SHORT
from weft.dtypes import itemsize_bits
from weft.optimize.views import View, find_views, merge_axes, view_whole
from weft.primitives.elementwise import Elementwise, mul_p, square_p
from weft.util import is_below

EXACT_SIGNS = ("", "?", "+", "*", "+*")  # sequences of operations that XLA does not fuse
# Instructions for operations of StableHLO with a second operand that is not zero and not NaN.
WITH_NUMBER = {"stablehlo.maximum": Own.AT_LEAST, "stablehlo.minimum": Own.AT_MOST}
NEUTRAL = frozenset((0, 1, -1))  # numbers with which a sum or a product may be left out
# Parameters with which the kernel computes an operation: squares and reciprocals, and rounding of
# numbers between two integers to the even one.
PARAMETERS = {("y", 2), ("y", -1), ("rounding_method", 1)}
TYPES = frozenset(map(np.dtype, "?bBifd"))
# Operations on elements, and bytes of a result, between which the kernel is as quick as XLA.
MIN_WORK, MAX_BYTES = 1024, 1 << 22
MIN_VIEW = MIN_WORK // 2  # elements of a view that the kernel copies as quickly
MIN_ELEMENTS = MIN_WORK // 8  # of a result; programs have 8 steps at most
MAX_ELEMENTS = 1 << 28
MAX_STEPS = 8  # operations of one call, and operands
MIN_SIDE = 32  # elements of an axis that the kernel of views walks along
BLOCK = 1024  # elements of intermediate results, which the nearest cache holds
MAX_ONE_THREAD = 1 << 20  # bytes read and written: up to this many, one thread is as fast
PIECE_BYTES = 1 << 18  # bytes read and written that are worth a thread
# Elements of transposed arrays between which the kernel is as quick as XLA's loop.
MIN_TRANSPOSED, MAX_TRANSPOSED = 1 << 15, 1 << 23


class Call(NamedTuple):
    """A call of a kernel, and the number of operations that it does for each element."""

    eqn: Eqn
    steps: int


def plan_calls(jaxpr: Jaxpr) -> list[Eqn]:
    """Return the calls that compute a program; an empty list if XLA compiles it."""
    eqns, outs = jaxpr.eqns, jaxpr.outvars
    calls_library = Cost.LIBRARY in [eqn.primitive.cost for eqn in eqns]
    large = max([v.aval.size for v in outs], default=0) >= MIN_ELEMENTS
    if not (calls_library or large) or not all(map(is_planned, eqns)):
        return []
    if calls_library:
        return plan_beside_library(jaxpr) if outs and all(map(can_stand_beside, eqns)) else []
    sizes = [v.aval.size for v in (*jaxpr.invars, *(v for e in eqns for v in e.outvars))]
    known = outs and all(type(n) is int and n < MAX_ELEMENTS for n in sizes)
    if not known or any(type(v) is Literal or v in jaxpr.invars for v in outs):
        return []
    views: dict[Any, View] = {v: view_whole(v) for v in jaxpr.invars}
    computed = []
    for eqn in eqns:
        found = find_views(eqn, views)
        if found is None:
            computed.append(eqn)
        else:
            views.update(zip(eqn.outvars, found, strict=True))
    moves = [plan_view(v, views[v]) for v in dict.fromkeys(outs) if v in views]
    groups = group_equations(computed, outs, views)
    if groups is None:
        return []
    calls = [plan_group(group, views) for group in groups]
    # XLA writes one loop for all operations; it needs no more room than the results
    several = sum(map(len, groups)) > 1
    planned = [move for move in moves if move is not None]
    if len(planned) < len(moves) or not all(is_quicker(c, len(calls), several) for c in calls):
        return []
    scalars = [eqn for eqn in computed if not eqn.outvars[0].aval.shape]
    return [*[plan_group([eqn], views).eqn for eqn in scalars], *[c.eqn for c in calls], *planned]


def is_planned(eqn: Eqn) -> bool:
    """Return True if an equation may be part of a program that is computed by calls."""
    if only_moves(eqn) or eqn.primitive.cost is Cost.LIBRARY:
        return True
    return not eqn.invars or is_computed_by_kernel(eqn)


def is_computed_by_kernel(eqn: Eqn) -> bool:
    """Return True if the kernel has an instruction for an equation, and XLA's code is as good."""
    prim = eqn.primitive
    power = prim.form is Form.POWER and prim.cost is Cost.CHEAP
    return power or cheap_instruction(prim) is not None


def group_equations(
    eqns: Sequence[Eqn], outs: Sequence[Atom], views: Mapping[Any, View]
) -> list[list[Eqn]] | None:
    """Return equations on arrays in groups, one group a call; None if XLA compiles them.

    All equations are one group if the last one gives all results that are not views.
    """
    arrays = [eqn for eqn in eqns if eqn.outvars[0].aval.shape]
    if not eqns:
        return []
    if not arrays or not are_exact(eqns, arrays, views):
        return None
    if {*outs} - views.keys() == {*arrays[-1].outvars}:
        return [arrays]
    return [[eqn] for eqn in arrays]


def are_exact(eqns: Sequence[Eqn], arrays: Sequence[Eqn], views: Mapping[Any, View]) -> bool:
    """Return True if the kernel computes equations, and XLA would fuse no product and sum."""
    shape, signs = arrays[-1].outvars[0].aval.shape, "".join(map(find_sign, arrays))
    used = [(e, views[a]) for e in eqns for a in e.invars if type(a) is Var and a in views]
    near = all(
        view.sizes == e.outvars[0].aval.shape and view.is_contiguous
        for e, view in used
        if view.source.aval.shape
    )
    return near and signs in EXACT_SIGNS and all(can_call(e, shape) for e in eqns)


def find_sign(eqn: Eqn) -> str:
    """Return the sign of an equation that XLA compiles differently beside others; "" for others.

    XLA fuses a product and a sum, and moves constants to the front. The sign is "+" for a sum or a
    difference, "*" for a product or a quotient, else "?".
    """
    prim = eqn.primitive
    if prim.elements is Elements.CONVERTED or prim.form is Form.POWER:
        return "?"
    linear = prim.linear if isinstance(prim, Elementwise) else Linearity.NONE
    if linear is Linearity.JOINT:
        return "+" if len(eqn.invars) > 1 else "?"
    return "" if linear is Linearity.NONE else "*"


def is_quicker(call: Call, calls: int, several: bool) -> bool:
    """Return True if a call is as quick as XLA, which computes all calls in one loop."""
    out = call.eqn.outvars[0].aval
    width = max(out.dtype.itemsize, 4 if several else 0)
    passes = calls if calls > 1 else max(call.steps - 1, 1)
    fits = out.size * call.steps >= MIN_WORK and out.size * width * passes**2 <= MAX_BYTES
    return fits and max(call.steps, len(call.eqn.invars)) <= MAX_STEPS


# --- calls --------------------------------------------------------------------------------------


def plan_view(out: Any, view: View) -> Eqn | None:
    """Return the call that copies a view, if it is as quick as XLA."""
    attributes = describe_view(out.aval, view)
    if attributes is None:
        return None
    return kernel_equation("weft_view", [view.source], [out], attributes)


def describe_view(aval: ShapedArray, view: View) -> dict[str, Any] | None:
    """Return the attributes of the call that copies a view, if it is as quick as XLA."""
    sizes, steps = merge_axes(view)
    bits, size, side = itemsize_bits(aval.dtype), aval.size, sizes[-1]
    sides = [n for n, step in zip(sizes[:-1], steps, strict=False) if abs(step) == 1]
    least, most = MIN_VIEW, size
    if sides and abs(steps[-1]) > 1:
        # at transposes of wide elements XLA is as quick
        pays = bits == 16 or (bits == 32 and min(steps) < 0)
        least, most = MIN_TRANSPOSED, MAX_TRANSPOSED if pays else size * (bits == 8)
        side = min(side, *sides)
    if bits < 8 or not least <= size <= most or side < MIN_SIDE:
        return None
    return {"start": view.start, "sizes": sizes, "steps": steps}


def plan_group(eqns: Sequence[Eqn], views: Mapping[Any, View]) -> Call:
    """Return the call that computes equations. The last equation gives the result."""
    makers = {eqn.outvars[0]: eqn for eqn in eqns}
    operands: list[tuple[Atom, int]] = []
    steps: dict[Var, Step] = {}  # in order

    def place(a: Atom) -> Hashable:
        """Add what makes `a`, and return the name of its value."""
        if type(a) is Literal or a not in makers:
            view = views.get(a) if type(a) is Var else None
            operand = (a, 0) if view is None else (view.source, view.start)
            if operand not in operands:
                operands.append(operand)
            return operands.index(operand)
        if a not in steps:
            instruction, args = select_instruction(makers[a], makers)
            reads = [*map(place, args)]
            steps[a] = Step(instruction, a, Kind.FULL, a.aval.dtype, reads)
        return a

    out = eqns[-1].outvars[0]
    place(out)
    sources = [source for source, _ in operands]
    arrays = [v.aval for v in sources if v.aval.size != 1]
    kinds = [Kind.SCALAR if v.aval.size == 1 else Kind.FULL for v in sources]
    read = [read_operand(i, *operands[i], kinds[i]) for i in range(len(operands))]
    program = encode_program(read, [*steps.values()], *split_work(out.aval, arrays))
    outs = eqns[-1].outvars
    given = [source for source in sources if type(source) is not Literal]
    return Call(kernel_equation("weft_program", given, outs, {"program": program}), len(steps))


def read_operand(value: Hashable, source: Atom, start: int, kind: Kind) -> Operand:
    """Return an operand of a program; numbers are part of the program, which calls them sooner."""
    if type(source) is Literal:
        return number_operand(value, source.val, source.aval.dtype)
    return Operand(value, kind, start)


def split_work(out: ShapedArray, arrays: Sequence[ShapedArray]) -> tuple[int, int]:
    """Return the elements of a block, and the blocks that are worth a thread."""
    moved = out.size * sum(x.dtype.itemsize for x in (out, *arrays))
    pieces = -(-moved // PIECE_BYTES) if moved > MAX_ONE_THREAD else 1
    return BLOCK, max(1, -(-out.size // (pieces * BLOCK)))


# --- instructions -------------------------------------------------------------------------------


def select_instruction(eqn: Eqn, makers: Mapping[Any, Eqn]) -> tuple[Instruction, Sequence[Atom]]:
    """Return the kernel's instruction for an equation, and the operands that it reads.

    A choice by a comparison with a scalar is one instruction.
    """
    prim, args, dtype = eqn.primitive, eqn.invars, eqn.outvars[0].aval.dtype
    if prim.form is Form.QUOTIENT and (inverse := inverse_of(args[1])):
        return mul_p, [args[0], inverse]
    if prim.form is Form.POWER:
        return Own.INVERSE if eqn.params.get("y") == -1 else square_p, args
    found = cheap_instruction(prim)
    assert found is not None
    with_number = WITH_NUMBER.get(getattr(prim, "operation", ""))
    if with_number and dtype.kind == "f":
        x, y = args if type(args[1]) is Literal else args[::-1]
        if type(y) is Literal and abs(y.val) > 0:
            return with_number, [x, y]
    test = makers.get(args[0]) if chooses_by_element(prim) and type(args[0]) is Var else None
    direction = find_direction(test)
    if test and direction and dtype.kind == "f":
        x, y = test.invars
        if x.aval.dtype is dtype and not y.aval.shape:
            how = "CHOOSE" if args[2].aval.shape else "REPLACE"
            return Own[f"{how}_{direction}"], [x, y, *args[1:]]
    return found, args


def inverse_of(a: Atom) -> Literal | None:
    """Return the reciprocal of a number, if XLA multiplies by it in place of a division."""
    dtype = a.aval.dtype
    if type(a) is not Literal or dtype.kind != "f" or not 1e-30 < abs(float(a.val)) < 1e30:
        return None
    return Literal(dtype.type(1) / dtype.type(a.val), a.aval)


def can_call(eqn: Eqn, shape: tuple, neutral: frozenset = NEUTRAL) -> bool:
    """Return True if the kernel computes an equation, and XLA would do the same work.

    `shape` is the shape of the program's results. Scalars may be converted, too. XLA may leave out
    sums and products with numbers that are `neutral`.
    """
    prim, args, out = eqn.primitive, eqn.invars, eqn.outvars[0].aval
    if not is_computed_by_kernel(eqn):
        return False
    chosen = {(k, v) for k, v in eqn.params.items() if k in ("y", "rounding_method")}
    numbers = {a.val for a in args if type(a) is Literal}
    quotient = prim.form is Form.QUOTIENT
    sums_or_products = find_sign(eqn) in ("+", "*") and not quotient
    if not chosen <= PARAMETERS or (sums_or_products and numbers & neutral):
        return False
    if quotient and not args[-1].aval.shape and not inverse_of(args[-1]):
        return False
    if (quotient or eqn.params.get("y") == -1) and out.dtype.kind != "f":
        return False
    if chooses_by_element(prim) and (len(args) != 3 or args[0].aval.dtype != bool):
        return False
    converts = prim.elements is Elements.CONVERTED
    read = TYPES.union([np.dtype(np.int64)] if converts else ())
    return (
        (out.shape == shape or (converts and not out.shape))
        and {a.aval.shape for a in args} <= {(), out.shape}
        and out.dtype in TYPES
        and {a.aval.dtype for a in args} <= read
    )


# --- beside LAPACK ------------------------------------------------------------------------------


def can_stand_beside(eqn: Eqn) -> bool:
    """Return True if XLA counts few operations for an equation beside calls of LAPACK.

    The kernel computes the equation, or it only moves elements or calls LAPACK.
    """
    out = eqn.outvars[0].aval
    converts = eqn.primitive.elements is Elements.CONVERTED
    if converts or (is_computed_by_kernel(eqn) and not only_moves(eqn)):
        return can_call(eqn, out.shape) and is_below(out.size, MAX_SHORT + 1)
    return type(out.size) is int


def plan_beside_library(jaxpr: Jaxpr) -> list[Eqn]:
    """Return a program that calls LAPACK with the other operations as calls of the kernel.

    XLA counts no operations for LAPACK, and so uses one thread if it has few others.
    """
    shape_of = lambda eqn: eqn.outvars[0].aval.shape
    return [
        plan_group([eqn], {}).eqn if can_call(eqn, shape_of(eqn)) else eqn for eqn in jaxpr.eqns
    ]
