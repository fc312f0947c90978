"""Which programs on floats of 16 bits one kernel does: of each element, or along rows.

XLA:CPU wakes a thread for them, writes intermediate values to memory, and rounds each. The kernel,
in native/functions.cc, computes all of a row in float32, and runs where it is called. Values are
rounded where the program converts them to float32, unless for a sum, where it compares them, and
at last.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from weft.core.aval import ShapedArray
from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var
from weft.dtypes import bfloat16
from weft.passes.alone import FEWEST

BOOL, INT, F32, *HALVES = map(np.dtype, (bool, np.int32, np.float32, np.float16, bfloat16))
FLOATS = {F32, *HALVES}
EXACT = {"neg", "abs", "sign", "max", "min", "keep", "drop", "join", "reduce_max", "spread"}
COMPARED = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "lt", "ge": "le"}
ALIKE = {"broadcast_in_dim", "reshape", "squeeze", "stop_gradient"}
NAMES = EXACT.union(COMPARED, ALIKE, (
    *("acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh"),
    *("div", "exp", "exp2", "expm1", "gelu", "log", "log1p", "log2", "logaddexp", "logistic"),
    *("mul", "pow", "reduce_sum", "rsqrt", "sin", "sinh", "sqrt", "sub", "tan", "tanh"),
    *("select_n", "clamp", "square", "integer_pow", "convert_element_type"),
))  # fmt: skip
LEAST, MOST, BLOCK, SLOTS, STEPS = 64, 4096, 1024, 16, 48  # of rows, and what the kernel takes
NUMBER, CELL, LINE, FULL = range(4)  # one, one for each row, what all rows share, all elements


class Value(NamedTuple):
    """The result of a step, or an operand: its own number, how it lies, and if it has 16 bits."""

    index: int
    kind: int
    exact: bool = True


def plan_rows(jaxpr: Jaxpr) -> tuple[dict[str, Any], list[Literal]] | None:
    """The attributes of the kernel's call, and numbers that are operands too; or None."""
    avals = [*jaxpr.in_avals, *jaxpr.out_avals]
    sizes, kinds = [a.size for a in avals], {a.dtype for a in avals}
    known = {*map(type, sizes)} == {int} and kinds <= {BOOL, INT, *FLOATS}
    names = {eqn.primitive.name for eqn in jaxpr.eqns}
    few = len(jaxpr.outvars) == 1 and names <= NAMES and known and not kinds.isdisjoint(HALVES)
    moves = names <= ALIKE  # and computes nothing
    if not few or moves or max(sizes) < FEWEST or 0 in sizes or len(jaxpr.invars) > SLOTS:
        return None
    writer = Writer(jaxpr, max(sizes))
    done = writer.fits and all(map(writer.write, jaxpr.eqns))
    return writer.finish(jaxpr.outvars[0]) if done else None


def find_row(jaxpr: Jaxpr, size: int) -> int:
    """How long rows are that a program reduces, or makes by repeating; 0 if there are none."""
    for eqn in jaxpr.eqns:
        name, x, y = eqn.primitive.name, eqn.invars[0].aval, eqn.outvars[0].aval
        if name[:6] == "reduce" or (name == "broadcast_in_dim" and 1 < x.size < y.size == size):
            return (x if name[:6] == "reduce" else y).shape[-1]
    return 0


class Writer:
    """Writes a program as steps of the kernel: a name, what it makes, and what of."""

    def __init__(self, jaxpr: Jaxpr, size: int):
        self.size, self.n = size, find_row(jaxpr, size)  # of all, and of a row
        self.steps: list[tuple[str, Value, tuple[Value, ...]]] = []
        self.summed = {e.invars[0] for e in jaxpr.eqns if e.primitive.name == "reduce_sum"}
        self.numbers: dict[str, tuple[Literal, Value]] = {}
        self.count = 0
        kinds = {self.n: LINE, 1: NUMBER, size: FULL}
        self.env = {v: self.make(kinds.get(v.aval.size, CELL)) for v in jaxpr.invars}
        self.given = [*self.env.values()]
        rows = self.n == 0 or (LEAST <= self.n <= MOST and size % self.n == 0)
        self.fits = rows and all(x.kind != CELL for x in self.given)

    def make(self, kind: int, exact: bool = True) -> Value:
        """Another value."""
        self.count += 1
        return Value(self.count - 1, kind, exact)

    def read(self, atom: Var | Literal) -> Value:
        """The value of a variable or number."""
        if not isinstance(atom, Literal):
            return self.env[atom]
        known = self.numbers.setdefault(f"{atom.val!r} {atom.aval}", (atom, self.make(NUMBER)))
        return known[1]

    def step(self, name: str, *xs: Value, full: bool) -> Value:
        """What a step makes; `full`: of all elements."""
        kind = FULL if full else max(CELL, *[x.kind for x in xs])
        if kind >= LINE and name != "spread":
            xs = tuple([self.spread(x) for x in xs])
        exact = name in COMPARED or (name in EXACT and all(x.exact for x in xs))
        out = self.make(CELL if name[:6] == "reduce" else kind, exact)
        self.steps.append((name, out, xs))
        return out

    def spread(self, x: Value) -> Value:
        """The same on all of a row."""
        return self.step("spread", x, full=True) if x.kind == CELL else x

    def round(self, x: Value, dtype: np.dtype) -> Value:
        """The same in 16 bits, if it is to have those."""
        if x.exact or dtype not in HALVES:
            return x
        return self.step(dtype.name, x, full=x.kind == FULL)._replace(exact=True)

    def write(self, eqn: Eqn) -> Value | None:
        """Write an equation; None where the kernel does not do it."""
        avals, out = [a.aval for a in eqn.invars], eqn.outvars[0]
        if any(a.dtype not in {BOOL, *FLOATS} for a in avals):
            return None
        xs, name = [*map(self.read, eqn.invars)], eqn.primitive.name
        dtypes = {a.dtype for a in avals[1 if name == "select_n" else 0 :]}
        if name in ALIKE:
            made = xs[0] if self.is_alike(eqn, xs[0]) else None
        elif not dtypes <= FLOATS:
            made = None
        elif name == "convert_element_type":
            x, dtype = xs[0], out.aval.dtype
            x = x if dtype in HALVES or out in self.summed else self.round(x, avals[0].dtype)
            widened = dtype == F32 or dtype == avals[0].dtype
            made = x._replace(exact=x.exact and widened) if dtype in {INT, *FLOATS} else None
        elif name[:6] == "reduce":
            shape = avals[0].shape
            fits = eqn.params["axes"] == (len(shape) - 1,) and shape[-1] == self.n
            fits = fits and eqn.params.get("nan", "any") == "any" and avals[0].size == self.size
            made = self.step(name, self.spread(xs[0]), full=True) if fits else None
        elif out.aval.size != self.size and {CELL, LINE} <= {x.kind for x in xs}:
            made = None
        else:
            made = self.compute(name, xs, eqn, out.aval.size == self.size)
        self.env[out] = made
        return made

    def is_alike(self, eqn: Eqn, x: Value) -> bool:
        """Whether a result lies as its operand does, or may be read in its place."""
        size, out = eqn.invars[0].aval.size, eqn.outvars[0].aval
        if size in (1, out.size):
            return True
        moved = zip(eqn.params["broadcast_dimensions"], eqn.invars[0].aval.shape, strict=True)
        axes, last = {axis for axis, n in moved if n > 1}, out.ndim - 1
        fits = axes == {last} if x.kind == LINE else last not in axes
        return fits and out.size == self.size and out.shape[-1] == self.n

    def compute(self, name: str, xs: list[Value], eqn: Eqn, full: bool) -> Value | None:
        """Write an operation on each element."""
        step = lambda name, *xs: self.step(name, *xs, full=full)
        if name in COMPARED:
            xs = [self.round(x, a.aval.dtype) for x, a in zip(xs, eqn.invars, strict=True)]
            return step(COMPARED[name], *xs[:: -1 if name[0] == "g" else 1])
        if name == "select_n":
            which, *others = xs
            fits = len(others) == 2 and eqn.invars[0].aval.dtype == BOOL
            return step("join", *map(step, ("drop", "keep"), (which,) * 2, others)) if fits else None
        if name == "clamp":
            return step("min", step("max", xs[1], xs[0]), xs[2])
        power = {"square": 2, "integer_pow": eqn.params.get("y")}.get(name, 1)
        one = lambda: self.read(Literal(1.0, ShapedArray((), F32)))
        if power in (2, 3):
            return step("mul", *xs, *xs if power == 2 else [step("mul", *xs, *xs)])
        if power == -1:
            return step("div", one(), *xs)
        if name == "div" and full and xs[1].kind == CELL:
            return step("mul", xs[0], self.step("div", one(), xs[1], full=False))
        return step(name, *xs) if power == 1 else None

    def finish(self, out: Var | Literal) -> tuple[dict[str, Any], list[Literal]] | None:
        """The call's attributes and numbers, with a place for each value while it is needed."""
        if isinstance(out, Literal):
            return None
        y = self.env[out]
        y = self.spread(y) if out.aval.size == self.size else y
        numbers = [number for number, _ in self.numbers.values()]
        operands = [*self.given, *[x for _, x in self.numbers.values()]]
        kinds = {self.size // (self.n or 1): CELL, self.size: FULL}
        last = self.steps[-1][1] if self.steps else operands[0]
        if y.index != last.index or y.kind != kinds.get(out.aval.size) or len(self.steps) > STEPS:
            return None
        uses = {x.index: i for i, (_, _, xs) in enumerate(self.steps) for x in xs}
        places = {x.index: i for i, x in enumerate(operands)}
        kept, free = {x.index for x in operands if x.kind != FULL}, [*range(SLOTS)][len(operands) :]
        text = []
        for i, (name, made, xs) in enumerate(self.steps):
            read = [places[x.index] for x in xs]
            free += {places[x.index] for x in xs if uses[x.index] == i and x.index not in kept}
            if not free:
                return None
            places[made.index] = free.pop()
            cell = made.kind == CELL and name[:6] != "reduce"
            text.append(name + chr(places[made.index] + (65 if cell else 97)))
            text[-1] += chr(read[0] + 97) + chr(read[-1] + 97)
        return {"n": self.n or BLOCK, "program": " ".join(text)}, numbers
