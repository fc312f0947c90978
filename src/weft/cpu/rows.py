"""Which programs on floats of 16 bits one kernel does: of each element, or along rows.

XLA:CPU wakes a thread for them, writes intermediate values to memory, and rounds each. The kernel,
native/programs.cc, computes in float32, and rounds results, what is compared, and what the
program converts to float32, unless for a sum.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.core.aval import ShapedArray
from weft.core.jaxpr import Eqn, Jaxpr, Literal
from weft.cpu.alone import FEWEST
from weft.cpu.opcodes import MAX_ROW, MAX_SLOTS, REDUCTIONS, Kind, Operand, Step, encode_program
from weft.dtypes import bfloat16

BOOL, INT, F32, F16, BF16 = map(np.dtype, (bool, np.int32, np.float32, np.float16, bfloat16))
HALVES = frozenset((F16, BF16))
FLOATS = HALVES | {F32}
COMPARED = {
    "eq": "mask_eq", "ne": "mask_ne", "lt": "mask_lt", "le": "mask_le", "gt": "mask_lt",
    "ge": "mask_le",
}  # fmt: skip
ALIKE = {"broadcast_in_dim", "reshape", "squeeze", "stop_gradient"}
NAMES = ALIKE.union(COMPARED, (
    *("abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "clamp"),
    *("convert_element_type", "cos", "cosh", "div", "exp", "exp2", "expm1", "gelu", "integer_pow"),
    *("is_finite", "log", "log1p", "log2", "logaddexp", "logistic", "max", "min", "mul", "neg"),
    *("pow", "reduce_max", "reduce_sum", "rsqrt", "select_n", "sign", "sin", "sinh", "sqrt"),
    *("square", "sub", "tan", "tanh"),
))  # fmt: skip
DTYPE_OF, SIZE_OF = operator.attrgetter("dtype"), operator.attrgetter("size")
MIN_ROW, BLOCK, STEPS = 64, 1024, 48  # elements of a row, of a block where there are none; steps
PIECE = 1 << 14  # elements that are worth a thread
EXACT = {"abs", "round_bfloat16", "max", "min"}  # whose results need no rounding
# Opcodes of 16-bit floats: operations on bits, of which there may be several, and others.
BITWISE, DIRECT = {"abs", "neg", "max", "min"}, {"add", "sub", "mul"}
FEW = 6  # steps on each element of float16 up to which it is quicker
SCALAR, PER_ROW, SHARED_ROW, FULL = Kind


class Value(NamedTuple):
    """The result of a step, or an operand: its number, its kind, and the dtype that it fits."""

    number: int
    kind: Kind
    dtype: Any = None


def plan_rows(jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> tuple[dict, list[Literal]] | None:
    """The attributes of the kernel's call, and numbers that are operands too; or None."""
    avals = [*jaxpr.in_avals, *jaxpr.out_avals]
    kinds, sizes = {*map(DTYPE_OF, avals)}, [*map(SIZE_OF, avals)]
    if len(jaxpr.outvars) != 1 or {*map(type, sizes)} != {int}:
        return None
    names = {eqn.primitive.name for eqn in jaxpr.eqns}
    if not (names <= NAMES and kinds <= {BOOL, INT, *FLOATS}) or names <= ALIKE.union(COMPARED):
        return None
    plan = Plan(jaxpr, max(sizes))
    for v, value in zip(jaxpr.constvars, consts, strict=True):
        plan.env[v] = None if v.aval.shape else plan.read(Literal(np.asarray(value)[()], v.aval))
    fits = max(sizes) >= FEWEST and (not plan.n or (MIN_ROW <= plan.n <= MAX_ROW))
    fits = fits and max(sizes) % (plan.n or 1) == 0 and 0 not in sizes
    return plan.finish(jaxpr) if fits and all(map(plan.write, jaxpr.eqns)) else None


class Plan:
    """A program as steps of the kernel: a name, what it makes, and what of."""

    def __init__(self, jaxpr: Jaxpr, size: int):
        self.size, self.n, self.steps, self.count = size, 0, list[tuple](), 0
        self.summed = {e.invars[0] for e in jaxpr.eqns if e.primitive.name == "reduce_sum"}
        for eqn in jaxpr.eqns:  # how long a row is, where there are such
            x, y = eqn.invars[0].aval, eqn.outvars[0].aval
            if eqn.primitive.name[:6] == "reduce":
                self.n = (0, *x.shape)[-1]
            elif eqn.primitive.name == "broadcast_in_dim" and 1 < x.size < y.size == size:
                self.n = y.shape[-1]
        kinds = {self.n: SHARED_ROW, 1: SCALAR, size: FULL}
        make = lambda a: self.make(kinds[a.size], a.dtype) if a.size in kinds else None
        self.env: dict = {v: make(v.aval) for v in jaxpr.invars}
        self.numbers: dict[str, tuple[Literal, Value]] = {}

    def make(self, kind: Kind, dtype: Any = None) -> Value:
        """Another value."""
        self.count += 1
        return Value(self.count - 1, kind, dtype)

    def read(self, atom: Any) -> Any:
        """The value of a variable or number, if the kernel takes it."""
        if type(atom) is not Literal:
            return self.env[atom]
        made = self.make(SCALAR, atom.aval.dtype)
        made = self.numbers.setdefault(f"{atom.val!r} {atom.aval}", (atom, made))[1]
        return made if made.dtype in FLOATS else None

    def step(self, name: str, *xs: Value, full: bool, dtype: Any = None) -> Value:
        """What a step makes; `full`: of all elements."""
        kind = FULL if full else max(PER_ROW, *[x.kind for x in xs])
        if kind >= SHARED_ROW and name != "spread":
            xs = tuple([self.spread(x) for x in xs])
        out = self.make(PER_ROW if name in REDUCTIONS else kind, dtype)
        self.steps.append((name, out, xs))
        return out

    def spread(self, x: Value) -> Value:
        """The same on all of a row."""
        return self.step("spread", x, full=True, dtype=x.dtype) if x.kind == PER_ROW else x

    def round(self, x: Value, dtype: np.dtype) -> Value:
        """The same as it is in a dtype."""
        if x.dtype == dtype or dtype not in HALVES:
            return x
        return self.step("round_" + dtype.name, x, full=x.kind == FULL, dtype=dtype)

    def write(self, eqn: Eqn) -> Value | None:
        """Write an equation; None where the kernel does not do it."""
        xs: list[Any] = [*map(self.read, eqn.invars)]
        out, name = eqn.outvars[0], eqn.primitive.name
        avals, full = [a.aval for a in eqn.invars], out.aval.size == self.size
        kinds, dtypes = {x and x.kind for x in xs}, {a.dtype for a in avals}
        masks = BOOL in dtypes and name != "select_n" and name not in ALIKE
        made = None
        if None in kinds or masks or INT in dtypes or not dtypes <= {BOOL, *FLOATS}:
            pass
        elif name in ALIKE:
            made = xs[0] if self.is_alike(eqn, xs[0].kind) else None
        elif name == "convert_element_type":
            wide = out.aval.dtype in (INT, F32) and out not in self.summed
            made = self.round(xs[0], avals[0].dtype) if wide else xs[0]
            made = made if out.aval.dtype in {INT, *FLOATS} else None
        elif name[:6] == "reduce":
            fits = avals[0].size == self.size and avals[0].shape[-1] == self.n
            fits = fits and eqn.params["axes"] == (avals[0].ndim - 1,)
            if fits and (name == "reduce_sum" or eqn.params.get("nan") == "any"):
                made = self.step(name, self.spread(xs[0]), full=True)
        elif full or not {PER_ROW, SHARED_ROW} <= kinds:
            made = self.compute(name, xs, eqn, full)
        self.env[out] = made
        return made

    def is_alike(self, eqn: Eqn, kind: Kind) -> bool:
        """Whether a result lies as its operand does, or may be read in its place."""
        x, out = eqn.invars[0].aval, eqn.outvars[0].aval
        if x.size in (1, out.size):
            return True
        moved = zip(eqn.params["broadcast_dimensions"], x.shape, strict=True)
        axes, last = {axis for axis, n in moved if n > 1}, out.ndim - 1
        fits = axes == {last} if kind == SHARED_ROW else last not in axes
        return fits and out.size == self.size and out.shape[-1] == self.n

    def compute(self, name: str, xs: list[Value], eqn: Eqn, full: bool) -> Value | None:
        """Write an operation on each element."""
        step = lambda name, *xs: self.step(name, *xs, full=full)
        number = lambda value: self.read(Literal(value, ShapedArray((), F32)))
        power = {"square": 2, "integer_pow": eqn.params.get("y")}.get(name, 1)
        if name in COMPARED or name == "is_finite":
            xs = [self.round(x, a.aval.dtype) for x, a in zip(xs, eqn.invars, strict=True)]
            if name == "is_finite":
                return step("mask_lt", step("abs", *xs), number(math.inf))
            return step(COMPARED[name], *xs[:: -1 if name[0] == "g" else 1])
        if name == "select_n":
            which, no, *yes = xs
            if len(yes) != 1 or eqn.invars[0].aval.dtype != BOOL:
                return None
            zero = type(eqn.invars[2]) is Literal and str(float(eqn.invars[2].val)) == "0.0"
            if zero and self.steps and self.steps[-1] == ("mask_le", which, (no, *yes)):
                return step("max", no, *yes)  # as relu is
            return step("join", step("drop", which, no), step("keep", which, *yes))
        if name == "clamp":
            return step("min", step("max", xs[1], xs[0]), xs[2])
        if power in (2, 3):
            return step("mul", *xs, *xs if power == 2 else [step("mul", *xs, *xs)])
        if power == -1:
            return step("div", number(1.0), *xs)
        if name == "div" and full and xs[1].kind == PER_ROW:
            return step("mul", xs[0], self.step("div", number(1.0), xs[1], full=False))
        return step(name, *xs) if power == 1 else None

    def finish(self, jaxpr: Jaxpr) -> tuple[dict[str, Any], list[Literal]] | None:
        """The call's attributes, and its numbers."""
        (size,), y = [a.size for a in jaxpr.out_avals], self.read(jaxpr.outvars[0])
        given = [self.env[v] for v in jaxpr.invars]
        operands = [*given, *[x for _, x in self.numbers.values()]]
        if y is None or None in given or len(operands) > MAX_SLOTS:
            return None
        y = self.spread(y) if size == self.size else y
        needed = {y.number}
        steps: list[Any] = []
        for made in reversed(self.steps):
            if made[1].number in needed:
                steps.insert(0, made)
                needed.update(x.number for x in made[2])
        kinds = {self.size // (self.n or 1): PER_ROW, self.size: FULL}
        half = any(x.dtype == F16 for x in given)  # of which some processors have arithmetic
        most = FEW if half and not self.n else STEPS
        if not (steps or y == given[0]) or y.kind != kinds.get(size) or len(steps) > most:
            return None
        names, out = {name for name, *_ in steps}, jaxpr.out_avals[0].dtype
        alike = {v.aval.dtype for v in jaxpr.invars} == {out} and (steps or out == BF16)
        exact = alike and names <= EXACT and (len(steps) != 1 or "round_bfloat16" in names)
        if not self.n and ("join" in names or exact):
            return None  # XLA is quicker at choices, which it makes of 16 bits
        numbers = [*self.numbers.values()]
        direct = bool(steps) and (names <= BITWISE or (len(steps) == 1 and names <= DIRECT))
        if direct and out in HALVES and {x.dtype for x in operands} == {out}:
            made = [
                Step(name, z.number, z.kind, out, [x.number for x in xs]) for name, z, xs in steps
            ]
        else:
            numbers = [(widen_number(number), x._replace(dtype=F32)) for number, x in numbers]
            operands[len(given) :] = [x for _, x in numbers]
            narrow = [x for x in operands if x.dtype != F32 and x.number in needed]
            made = write_steps(steps, narrow, y, out)
        row, arrays = self.n or BLOCK, [Operand(x.number, x.kind) for x in operands]
        program = encode_program(arrays, made, row, max(1, PIECE // row))
        if program is None:
            return None
        return {"program": program}, [number for number, _ in numbers]


def widen_number(number: Literal) -> Literal:
    """Return a number as float32, which has all digits of the shorter floats."""
    if number.aval.dtype == F32:
        return number
    value = np.asarray(number.val, number.aval.dtype).astype(F32)[()]
    return Literal(value, ShapedArray((), F32))


def write_steps(
    steps: Sequence[tuple], narrow: Sequence[Value], y: Value, out: np.dtype
) -> list[Step]:
    """Return steps in float32 that give `y` in the dtype `out`, after conversions of `narrow`."""
    places = {x.number: ("wide", x.number) for x in narrow}
    place = lambda x: places.get(x.number, x.number)
    load = {BOOL: "load_mask"}
    made = [
        Step(load.get(x.dtype, "convert_element_type"), place(x), x.kind, F32, [x.number])
        for x in narrow
    ]
    made += [Step(name, z.number, z.kind, F32, [*map(place, xs)]) for name, z, xs in steps]
    if out != F32 or not steps:
        name = "store_mask" if out == BOOL else "convert_element_type"
        made.append(Step(name, "out", y.kind, out, [place(y)]))
    return made
