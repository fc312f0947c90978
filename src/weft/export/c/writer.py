"""Write an expanded program as statements: `Writer` goes over its equations.

An equation with an `element` rule becomes a loop nest if its result has to be in memory. Otherwise
it is fused into the loops that read its result. Loops update their carry in place.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, words_of
from weft.core.element import Expression, Number, Read, Reduce, describe_elements, walk
from weft.core.jaxpr import Eqn, Jaxpr, Literal, variables_in
from weft.export.c.emit import Array, Emitter, Lazy, Scalar, reads_elsewhere
from weft.export.c.expand import NotInC, refuse
from weft.export.c.index import Index, index_number
from weft.export.c.kinds import KINDS, write_number
from weft.export.c.memory import MAX_LOCAL
from weft.export.c.nodes import Copy, For, Statement, Store, loads_in, walk_statements
from weft.export.c.sizes import find_typical
from weft.export.dims import Size
from weft.primitives.constant import Constant
from weft.primitives.cumulative import Cumulative
from weft.primitives.dot import DotGeneral

MAX_DEPTH = 64  # of values in a row that are computed where they are read: each is a call in Python
MIN_TERMS = 8  # of sums that are computed a row at a time
TILE = 16  # elements of a row that are copied from different rows: a cache line of float32


class Frame:
    """A program that is being written: the values of variables, and where they are used last.

    Attributes:
      env: the values.
      place: the number of the equation being written.
      last: the number of the last equation that reads a variable; the results count as one more.
      readers: the equation that reads a variable, where there is only one reading of it.
      owned: the buffers whose contents may be replaced when no value needs them.
      targets: where results should be written.
    """

    def __init__(self, jaxpr: Jaxpr, args: Sequence[Any], owned: Sequence[Any]):
        self.env: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
        self.place = 0
        reads = [(v, n) for n, e in enumerate(jaxpr.eqns) for v in variables_in(e.invars)]
        reads += [(v, len(jaxpr.eqns)) for v in variables_in(jaxpr.outvars)]
        counts = collections.Counter(v for v, _ in reads)
        self.last = dict(reads)
        eqns: list[Any] = [*jaxpr.eqns, None]
        self.readers = {v: eqns[n] for v, n in reads if counts[v] == 1}
        self.owned = set(owned)
        self.targets: dict[Any, Array] = {}

    def is_needed(self, buffer: Any, but: Any = None) -> bool:
        """Return True if a variable that is read later has elements in a buffer."""
        return any(
            buffer in x.buffers and self.last.get(v, -1) > self.place
            for v, x in self.env.items()
            if v is not but
        )


class Writer(Emitter):
    """Writes the statements of programs.

    `operations` has a function `write(writer, eqn)` for each opaque operation, by its name, which
    gives the results.
    """

    def __init__(self, operations: Mapping[str, Callable]):
        super().__init__()
        self.operations = operations
        self.frame: Any = None

    def write_program(
        self,
        jaxpr: Jaxpr,
        args: Sequence[Any],
        targets: Sequence[Array | None] = (),
        owned: Sequence[Any] = (),
    ) -> list[Any]:
        """Write a program on values; its results, which may be lazy.

        Args:
          jaxpr: an expanded program.
          args: the values of its parameters.
          targets: where results should be in memory; None where that does not matter.
          owned: the buffers of arguments that may be written in place.
        """
        around, self.frame = self.frame, Frame(jaxpr, args, owned)
        made = {v for e in jaxpr.eqns for v in e.outvars}
        for v, to in zip(jaxpr.outvars, targets, strict=False):
            if to is not None and type(v) is not Literal and v in made and v.aval.shape:
                self.frame.targets.setdefault(v, to)
        try:
            for n, eqn in enumerate(jaxpr.eqns):
                self.frame.place = n
                try:
                    outs = self.write_equation(eqn)
                except NotInC as error:
                    refuse(eqn, eqn.source, error)
                self.frame.env.update(zip(eqn.outvars, outs, strict=True))
            self.frame.place = len(jaxpr.eqns)
            return [self.find(a) for a in jaxpr.outvars]
        finally:
            self.frame = around

    def find(self, atom: Any) -> Any:
        """Return the value of a variable or of a literal."""
        if type(atom) is not Literal:
            return self.frame.env[atom]
        kind = KINDS[atom.aval.dtype]
        return Scalar(write_number(dtypes.cast_on_host(atom.val, kind.dtype), kind), kind)

    # --- equations ---

    def write_equation(self, eqn: Eqn) -> list[Any]:
        """Write an equation; its results."""
        prim = eqn.primitive
        if isinstance(prim, Constant):
            x = np.asarray(words_of(eqn.params["held"].value))
            x = np.asarray(dtypes.cast_on_host(x, eqn.outvars[0].aval.dtype))
            if x.ndim:
                return [self.hold_constant(x)]
            kind = KINDS[x.dtype]
            return [Scalar(write_number(x[()], kind), kind)]
        if prim.element is None:
            write = self.operations.get(eqn.params["operation"])
            if write is None:
                raise NotInC(eqn.params["operation"])
            return write(self, eqn)
        rules = describe_elements(prim, [a.aval for a in eqn.invars], eqn.params)
        if isinstance(prim, DotGeneral):
            product = self.operations["dot_general"](self, eqn)
            if product is not None:
                return product
        if isinstance(prim, Cumulative) and eqn.outvars[0].aval.size:
            return [self.write_running(eqn, *rules[0])]
        return [
            self.write_rule(eqn, v, places, expression)
            for v, (places, expression) in zip(eqn.outvars, rules, strict=True)
        ]

    def write_rule(self, eqn: Eqn, var: Any, places: Any, expression: Any) -> Any:
        """Write a result by its rule, or leave it for where it is read."""
        kind, shape = KINDS[var.aval.dtype], var.aval.shape
        operands = []
        for n, a in enumerate(eqn.invars):
            x = self.find(a)
            if isinstance(x, Lazy) and x.computes:
                reads = sum(isinstance(e, Read) and e.operand == n for e in walk(expression))
                if reads > 1 or count_terms(expression, var.aval) > find_typical(a.aval.size):
                    x = self.settle(a)
            operands.append(x)
        if not shape:
            return Scalar(self.value(expression, operands, {}, kind), kind)
        computes = not isinstance(expression, Read | Number)
        computes = computes or any(isinstance(x, Lazy) and x.computes for x in operands)
        buffers = frozenset().union(*[x.buffers for x in operands])
        depth = 1 + max([x.depth for x in operands if isinstance(x, Lazy)], default=0)
        value = Lazy(places, expression, operands, shape, kind, computes, buffers, depth)
        return self.write_array(value, var) if self.must_be_written(var, value) else value

    def must_be_written(self, var: Any, value: Lazy) -> bool:
        """Return True if a result has to be in memory now."""
        frame = self.frame
        if var in frame.targets or value.depth >= MAX_DEPTH:
            return True
        if not value.computes or var not in frame.last:
            return False
        return frame.readers.get(var) is None or is_long_sum(value)

    def write_running(self, eqn: Eqn, places: Sequence[Any], rule: Any) -> Array:
        """Write a running reduction: each element is the one before combined with one more."""
        (a,), (var,) = eqn.invars, eqn.outvars
        axis, reverse = eqn.params["axis"], eqn.params["reverse"]
        x = self.settle(a)
        to = self.choose_target(eqn, var)
        kind, shape = x.kind, x.shape
        others = (*shape[:axis], *shape[axis + 1 :])
        with self.loops(others) as outer:
            start = self.value(rule.start, [], {}, kind)
            total = self.let(kind.computed, "{0}", [start], mutable=True)
            with self.loop(shape[axis], reverse) as k:
                index = [*outer[:axis], k, *outer[axis:]]
                item = self.read(x, index)
                if rule.combine is None:
                    out = self.add(
                        KINDS[np.dtype(np.float32)] if kind.is_half else kind, total, item
                    )
                else:
                    out = self.apply(rule.combine, [kind, kind], [total, item], {})
                self.assign(total, out)
                self.write_element(to, index, total)
        return to

    # --- arrays ---

    def new_array(self, kind: Any, shape: Sequence[Size]) -> Array:
        """Return a new array, which the program being written owns."""
        found = super().new_array(kind, shape)
        self.frame.owned.add(found.buffer)
        return found

    def choose_target(self, eqn: Eqn | None, var: Any) -> Array:
        """Return where to write a result that is not computed element by element.

        No operand of `eqn` is read from there.
        """
        to = self.frame.targets.get(var)
        if to is not None and not self.frame.is_needed(to.buffer, var):
            values = [] if eqn is None else map(self.find, eqn.invars)
            if not any(to.buffer in x.buffers for x in values):
                return to
        return self.new_array(KINDS[var.aval.dtype], var.aval.shape)

    def write_array(self, value: Any, var: Any = None) -> Array:
        """Write the loops that compute an array."""
        if var is None:
            to = self.new_array(value.kind, value.shape)
        else:
            to = self.choose_target(None, var)
        first = len(self.block)
        if is_long_sum(value) and self.sums_by_rows(value):
            self.fill_by_rows(to, value)
        else:
            self.fill(to, value)
        written = self.block[first:]
        if to.buffer in value.buffers:
            stores = [s for s in walk_statements(written) if isinstance(s, Store)]
            stores = [s for s in stores if s.buffer is to.buffer]
            if any(reads_elsewhere(written, to.buffer, s.index) for s in stores):
                other = self.new_array(value.kind, value.shape)
                for s in stores:
                    s.buffer, s.index = other.buffer, s.index.add(to.offset, -1)
                return other
        return to

    def fill(self, to: Array, value: Any) -> None:
        """Write the elements of a value into memory that it is not read from at other places."""
        if isinstance(value, Array) and value.shape == to.shape:
            if value == to or not to.size:
                return
            size = to.size * (to.kind.bits // 8)
            if find_typical(size) > MAX_LOCAL:
                self.write(Copy(to.pointer, value.pointer, size))
                return
        if self.is_transposition(value):
            self.fill_by_tiles(to, value)
            return
        with self.loops(to.shape) as index:
            self.write_element(to, index, self.read(value, index))

    def is_transposition(self, value: Any) -> bool:
        """Return True if neighbours in a row are copied from different rows of a large array."""
        if not isinstance(value, Lazy) or value.computes or len(value.shape) < 2:
            return False
        if any(type(n) is not int or n < 2 * TILE for n in value.shape[-2:]):
            return False
        block: list[Statement] = []
        with self.within(block), self.loops(value.shape) as index:
            self.read(value, index)
        before, last = ([t.text for t in i.terms] for i in index[-2:])
        for load in [x for s in walk_statements(block) for x in loads_in(s)]:
            steps = {t.text: k for t, k in load.index.terms.items() if type(k) is int}
            if steps.get(before[0]) == 1 and steps.get(last[0], 0) >= TILE:
                return True
        return False

    def fill_by_tiles(self, to: Array, value: Lazy) -> None:
        """Write a transposition: a few elements of each row at a time, whose lines stay cached."""
        *outer, rows, columns = to.shape
        assert isinstance(columns, int)
        for start, count, width in (
            (0, columns // TILE, TILE),
            (columns - columns % TILE, 1, columns % TILE),
        ):
            with self.loops([*outer, count * bool(width), rows, width]) as (*index, tile, i, j):
                at = index_number(start).add(tile, TILE).add(j)
                self.write_element(to, [*index, i, at], self.read(value, [*index, i, at]))

    def sums_by_rows(self, value: Lazy) -> bool:
        """Return True if terms of neighbours in a row are neighbours in memory, and of one not."""
        block: list[Statement] = []
        with self.within(block), self.loops(value.shape) as index:
            self.read(value, index)
        (last,) = index[-1].terms or (None,)
        loops = [s for s in walk_statements(block) if isinstance(s, For)]
        inner = {s.name for s in loops[len([n for n in value.shape if n != 1]) :]}
        for load in [x for s in walk_statements(block) for x in loads_in(s)]:
            steps = {t.text: abs(find_typical(k)) for t, k in load.index.terms.items()}
            along = last is not None and steps.get(last.text) == 1
            if along and any(steps.get(name, 0) > 1 for name in inner):
                return True
        return False

    def fill_by_rows(self, to: Array, value: Lazy) -> None:
        """Write sums into memory a row at a time, term by term: loops that compilers vectorize."""
        rule, shape = value.expression, value.shape
        with self.loops(shape[:-1]) as outer:
            with self.loop(shape[-1]) as j:
                env = dict(zip(value.places, [*outer, j], strict=True))
                start = self.value(rule.start, value.operands, env, value.kind)
                self.write_element(to, [*outer, j], start)
            with self.loops(rule.sizes) as inner, self.loop(shape[-1]) as j:
                env = dict(zip((*value.places, *rule.places), [*outer, j, *inner], strict=True))
                term = self.value(rule.body, value.operands, env, value.kind)
                total = self.add(value.kind, self.read(to, [*outer, j]), term)
                self.write_element(to, [*outer, j], total)

    def settle(self, atom: Any) -> Any:
        """Return the value of a variable as an array in memory, or a scalar."""
        value = self.find(atom)
        if not isinstance(value, Lazy):
            return value
        value = self.frame.env[atom] = self.write_array(value)
        return value

    def copy_value(self, value: Any) -> Array:
        """Return the elements of a value in new memory."""
        to = self.new_array(value.kind, value.shape)
        self.fill(to, value)
        return to

    def settle_array(self, atom: Any) -> Array:
        """Return the value of a variable as an array in memory, a scalar as one of no axes."""
        value = self.settle(atom)
        if isinstance(value, Array):
            return value
        to = self.new_array(value.kind, ())
        self.store(to.buffer, Index(), value.name)
        return to

    def as_scalar(self, x: Array) -> Scalar:
        """Return the only element of an array."""
        return Scalar(self.load(x.buffer, x.offset), x.kind)

    def take(self, eqn: Eqn, atom: Any, var: Any) -> Array:
        """Return the elements of an operand in memory that may be changed, as the result `var`.

        The memory is the operand's own where nothing needs it later; otherwise it is a copy.
        """
        value, frame = self.find(atom), self.frame
        if isinstance(value, Array) and value.buffer in frame.owned:
            shared = sum(value.buffer in self.find(a).buffers for a in eqn.invars)
            is_last = frame.last.get(atom, -1) <= frame.place
            if is_last and shared == 1 and not frame.is_needed(value.buffer, atom):
                return value
        to = self.choose_target(eqn, var)
        self.fill(to, value)
        return to

    def row(self, x: Array, i: Index) -> Any:
        """Return row `i` of an array along its first axis."""
        shape = x.shape[1:]
        at = x.offset.add(i, math.prod(shape))
        if not shape:
            return Scalar(self.load(x.buffer, at), x.kind)
        return Array(x.buffer, at, shape)


def count_terms(expression: Any, aval: ShapedArray) -> int:
    """Return about how many values are combined for all elements of a result."""
    sizes = [n for e in walk(expression) if type(e) is Reduce for n in e.sizes]
    return find_typical(
        math.prod([aval.size, *[n for n in sizes if not isinstance(n, Expression)]])
    )


def is_long_sum(value: Lazy) -> bool:
    """Return True if each element of a row is a sum of many terms."""
    e = value.expression
    if not isinstance(e, Reduce) or e.combine is not None or value.kind.is_half:
        return False
    if any(isinstance(n, Expression) for n in e.sizes) or not value.shape:
        return False
    terms = math.prod([find_typical(n) for n in e.sizes])
    return terms >= MIN_TERMS and find_typical(value.shape[-1]) >= 4


def is_same_place(value: Any, to: Array) -> bool:
    """Return True if a value is in memory where it should be."""
    return isinstance(value, Array) and value.buffer is to.buffer and value.offset == to.offset
