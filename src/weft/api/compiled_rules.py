"""Forward mode and batching of what runs operation by operation: rules as compiled programs.

A rule is applied as it is written at first, for what is applied a few times would take longer to
compile than the operations that the rule is made of. From its `USES`th use on it is one program, or
one operation where that is all that it does. Reverse mode is tape.py's.
"""

from __future__ import annotations

from typing import Any

from weft.api.tape import CompiledRule, can_tape, find_rule
from weft.core.aval import typeof
from weft.core.jaxpr import Jaxpr, uses_axis
from weft.core.primitive import Axis, Primitive, Zero, tangents_of
from weft.core.trace import current
from weft.options import x64_cell
from weft.primitives.constant import stage_whole
from weft.run.rules import RuleTrace
from weft.transforms.batch import BatchTrace, BatchTracer
from weft.transforms.jvp import JVPTrace, JVPTracer


class JVPRule(CompiledRule):
    """From operands and the tangents of those that move to results and their tangents.

    `facts`: which of the results move.
    """

    __slots__ = ()

    def write(self) -> tuple[Jaxpr, str]:
        prim, params, avals, moved = self.made_of

        def apply(*xs: Any) -> list:
            primals, given = xs[: len(avals)], xs[len(avals) :]
            outs, dots = prim.jvp(list(primals), tangents_of(primals, given, moved), **params)
            self.facts = [type(t) is not Zero for t in dots]
            return [*outs, *[t for t in dots if type(t) is not Zero]]

        tangents = [a.to_tangent() for a, m in zip(avals, moved, strict=True) if m]
        return stage_whole(apply, [*avals, *tangents], prim.name), f"jvp_{prim.name}"


class CompilingJVP(JVPTrace, RuleTrace):
    """Compiles rules. For where `can_tape()`: we compute, and nobody watches single operations."""

    __slots__ = ()

    def process(self, prim: Primitive, args: Any, params: dict) -> list:
        primals, avals, moved, dots = [], [], [], []
        for x in args:
            if type(x) is JVPTracer and x.owner is self:
                primals.append(x.primal)
                dots.append(x.tangent)
                moved.append(True)
                avals.append(x.aval)
            else:
                primals.append(x)
                moved.append(False)
                avals.append(typeof(x, prim.name))
        if not dots or x64_cell.value is not self.x64:
            return super().process(prim, args, params)
        rule = find_rule(JVPRule, prim, params, tuple(avals), tuple(moved))
        program = None if rule is None else rule.program or rule.count_use()
        if program is None:
            return super().process(prim, args, params)
        try:
            current.trace = self.parent
            outs = program.apply([*primals, *dots])
        finally:
            current.trace = self
        source = current.source or current.capture()
        found = iter(outs[len(rule.facts) :])
        results = []
        for x, moves in zip(outs, rule.facts):
            if moves:
                x = JVPTracer(self, x, next(found))
                x.source = source
            results.append(x)
        return results


class BatchRule(CompiledRule):
    """From operands, mapped along some axes, to results; `facts`: those of the results."""

    __slots__ = ()

    def write(self) -> tuple[Jaxpr, str]:
        prim, params, avals, (axis, dims) = self.made_of

        def apply(*xs: Any) -> list:
            outs, self.facts = prim.batch(axis, list(xs), list(dims), **params)
            return list(outs)

        return stage_whole(apply, avals, prim.name), f"vmap_{prim.name}"


class CompilingBatch(BatchTrace, RuleTrace):
    """Compiles rules, as `CompilingJVP` does."""

    __slots__ = ()

    def process(self, prim: Primitive, args: Any, params: dict) -> list:
        values, avals, dims = [], [], []
        mapped = False
        for x in args:
            if type(x) is BatchTracer and x.owner is self:
                x, dim = x.value, x.dim
                mapped = True
            else:
                dim = None
            values.append(x)
            avals.append(typeof(x, prim.name))
            dims.append(dim)
        axis = self.axis
        if not mapped or (axis.name is not None and uses_axis(prim, params, axis.name)):
            return super().process(prim, args, params)
        rule = find_rule(BatchRule, prim, params, tuple(avals), (axis, tuple(dims)))
        program = None if rule is None else rule.program or rule.count_use()
        if program is None:
            return super().process(prim, args, params)
        try:
            current.trace = self.parent
            outs = program.apply(values)
        finally:
            current.trace = self
        source = current.source or current.capture()
        results = []
        for y, dim in zip(outs, rule.facts):
            if dim is not None:
                y = BatchTracer(self, y, dim)
                y.source = source
            results.append(y)
        return results


CompilingBatch.__name__ = BatchTrace.__name__  # as a tracer shows it: the difference is ours alone


def choose_trace(axis: Axis) -> type:
    """The trace that maps along an axis here."""
    return CompilingBatch if can_tape() and axis.split is None and not axis.spmd else BatchTrace
