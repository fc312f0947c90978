"""Reverse mode of functions that run operation by operation: a tape of derivatives.

Each operation is applied at once, by a compiled rule that also returns its residuals (rules.py),
and its derivative is noted on the tape. The tape is a linear map like the programs of
transforms/linearize.py, and the same walk of transforms/transpose.py takes cotangents back along
it. A walk that is hot is one program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.core.aval import typeof
from weft.core.jaxpr import Jaxpr, eval_jaxpr
from weft.core.primitive import Linear, Primitive, Zero, tangent_zero
from weft.core.trace import Trace, current
from weft.options import trace_context, x64_as, x64_cell
from weft.passes.dce import dce_jaxpr
from weft.primitives.constant import stage_whole
from weft.run.rules import (
    MAX_WALKS,
    WALKS,
    LinearizeRule,
    Rule,
    RuleTrace,
    apply_compiled,
    compiles_rules,
    fill_types,
)
from weft.transforms.jvp import JVPTrace, is_nested, jvp
from weft.transforms.linearize import linearize
from weft.transforms.transpose import add_cotangent, backward, pull_cotangents
from weft.util import keep_newest
from weft.xla.array import ArrayImpl

# A longer walk would take XLA seconds to compile.
MAX_STEPS = 256


class LinearMap(NamedTuple):
    """A linear program as a map, with its transpose. Its constvars are the residuals."""

    jaxpr: Jaxpr

    def push(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list:
        """Apply the map; derivatives around it need not differentiate what no result needs."""
        jaxpr = dce_jaxpr(self.jaxpr)[0] if is_nested(1) else self.jaxpr
        return eval_jaxpr(jaxpr, residuals, *tangents)

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list:
        """Apply the transpose: take cotangents of the results, return the operands', or Zero."""
        return backward(self.jaxpr, residuals, [Linear(v.aval) for v in self.jaxpr.invars], cts)


class TapeTrace(JVPTrace, RuleTrace):
    """Forward mode whose tangents are slots of a tape, on which derivatives are noted.

    A step of the tape is (slots of operands, slots of results, the derivative, the first of its
    residuals, and the end of them).
    """

    __slots__ = ("count", "residuals", "ruled", "steps")

    def __init__(self, parent: Trace, count: int):
        super().__init__(parent)
        self.count = count  # of slots in use
        self.steps: list[tuple] = []
        self.residuals: list[Any] = []
        self.ruled = True  # False once an operation ran without a compiled rule

    def apply_rule(
        self, prim: Primitive, primals: list, tangents: list, types: list, params: dict
    ) -> tuple:
        applied = None
        if x64_cell.value is self.x64:
            avals = given = tuple(types)
            if None in given:
                avals = fill_types(prim, primals, types)
                tangents = [t for t in tangents if t is not None]
            applied = apply_compiled(LinearizeRule, prim, params, avals, given, primals)
        kept = self.residuals
        start = len(kept)
        if applied is None:
            self.ruled = False
            moved = [a is not None for a in types]
            tangents = [t for t in tangents if t is not None]
            outs, linear, residuals, out_moved = self.linearize(prim, params, primals, moved)
            count = sum(out_moved)
            kept += residuals
        else:
            outs, (linear, sources, count, out_moved) = applied
            known = primals + outs  # new residuals come after the results
            for s in sources:
                kept.append(known[s])
        first = self.count
        slots = (first,) if count == 1 else tuple(range(first, first + count))
        if slots:
            self.count += count
            self.steps.append((tuple(tangents), slots, linear, start, len(kept)))
        else:
            del kept[start:]
        if not out_moved:  # all results move
            return outs, slots
        places = iter(slots)
        return outs, [next(places) if m else tangent_zero(x) for x, m in zip(outs, out_moved)]

    def linearize(self, prim: Primitive, params: dict, primals: list, moved: list) -> tuple:
        """Linearize one operation by its rules; tangents have the tape's first types."""
        inside = x64_cell.value

        def bind(*xs: Any) -> list:
            with x64_as(inside):
                return current.trace.process(prim, xs, params)

        with x64_as(self.x64):
            outs, jaxpr, residuals, out_moved = linearize(bind, primals, moved)
        return outs, LinearMap(jaxpr), residuals, out_moved


class Tape:
    """The derivative of a function that ran on a tape, as a `LinearMap`: one program once hot."""

    def __init__(self, trace: TapeTrace, inputs: Sequence[Any], outputs: Sequence[int]):
        self.steps = tuple(trace.steps)
        self.ruled = trace.ruled and 1 < len(self.steps) <= MAX_STEPS
        self.x64 = trace.x64
        self.inputs = range(len(inputs))  # their slots
        self.in_avals = [typeof(x) for x in inputs]
        self.outputs = tuple(outputs)

    def push(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list:
        """Take tangents of the inputs, and return the tangents of the outputs that move."""
        return self.walk(Tape.push_each, residuals, tangents)

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list:
        """Take cotangents of the outputs that move, and return the inputs', or Zero."""
        cts = [None if type(ct) is Zero else ct for ct in cts]
        grads = self.walk(Tape.pull_each, residuals, cts)
        zero = lambda aval: Zero(aval.to_tangent())
        return [zero(a) if ct is None else ct for ct, a in zip(grads, self.in_avals, strict=True)]

    def walk(self, way: Callable, residuals: Sequence[Any], dots: Sequence[Any]) -> list:
        """Apply `way` to residuals and (co)tangents, as one program if it is hot; None is zero."""
        if self.ruled and x64_cell.value is self.x64 and compiles_rules():
            given = tuple([t is not None for t in dots])
            values = [*residuals, *[t for t in dots if t is not None]]
            types = tuple([x.aval if type(x) is ArrayImpl else typeof(x) for x in values])
            key = (way, given, self.steps, len(self.inputs), self.outputs, types, trace_context())
            found = WALKS.get(key)
            if found is None:
                found = WalkRule(way, self, len(residuals), given, types)
                keep_newest(WALKS, key, found, MAX_WALKS)
            program = found.program or found.count_use()
            if program is not None:
                outs = iter(current.trace.apply_program(program, values))
                return [next(outs) if m else None for m in found.facts]
        return way(self, residuals, dots)

    def push_each(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list:
        """Push tangents step by step."""
        dots: dict[int, Any] = dict(zip(self.inputs, tangents, strict=True))
        for operands, results, linear, start, stop in self.steps:
            found = linear.push(residuals[start:stop], [dots[s] for s in operands])
            dots.update(zip(results, found, strict=True))
        return [dots[s] for s in self.outputs]

    def pull_each(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list:
        """Pull cotangents step by step; None is zero."""
        sums: dict[int, Any] = {}
        for slot, ct in zip(self.outputs, cts, strict=True):
            if ct is not None:
                add_cotangent(sums, slot, ct)
        pull = lambda step, cts: step[2].pull(residuals[step[3] : step[4]], cts)
        pull_cotangents(self.steps, sums, pull)
        return [sums.get(s) for s in self.inputs]


class WalkRule(Rule):
    """A walk along a tape as one program; `facts` says which of its results are not zero."""

    __slots__ = ()

    def write(self) -> tuple[Jaxpr, str]:
        way, tape, count, given, types = self.made_of

        def apply(*xs: Any) -> list:
            dots = iter(xs[count:])
            found = way(tape, xs[:count], [next(dots) if g else None for g in given])
            self.facts = [x is not None for x in found]
            return [x for x in found if x is not None]

        return stage_whole(apply, types, way.__name__), way.__name__


def record(
    fun: Callable, primals: Sequence[Any], moved: Sequence[bool]
) -> tuple[list, Tape, list, list[bool]]:
    """(outputs, tape, residuals, which outputs move) of a flat function, where rules are compiled.

    As `linearize`, whose linear program the tape stands for.
    """
    inputs = [x for x, m in zip(primals, moved, strict=True) if m]
    trace = TapeTrace(current.trace, len(inputs))
    slots = iter(range(len(inputs)))
    places = [next(slots) if m else tangent_zero(x) for x, m in zip(primals, moved, strict=True)]
    outs, dots = jvp(fun, primals, places, trace)
    out_moved = [type(t) is not Zero for t in dots]
    tape = Tape(trace, inputs, [t for t, m in zip(dots, out_moved, strict=True) if m])
    return outs, tape, trace.residuals, out_moved
