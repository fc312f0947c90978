"""Forward mode and batching of what runs operation by operation: rules as compiled programs.

A rule is applied as it is written at first, for what is applied a few times would take longer to
compile than the operations that the rule is made of. From its `USES`th use on it is one program, or
one operation where that is all that it does. Reverse mode is tape.py's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.api.tape import RuleTrace, can_tape, find_rule
from weft.core.aval import typeof
from weft.core.jaxpr import Jaxpr, uses_axis
from weft.core.primitive import Axis, Primitive, Zero, tangents_of
from weft.core.trace import current
from weft.errors import TracerError
from weft.options import x64_cell
from weft.primitives.constant import stage_whole
from weft.transforms.batch import BatchTrace, BatchTracer
from weft.transforms.jvp import JVPTrace, JVPTracer
from weft.xla.eager import compile_program, kernel_of

USES = 16  # a program costs as much to compile as a thousand uses of it save


class CompiledRule:
    """A rule of an operation at given types. `call` is its program, None until there is one."""

    __slots__ = ("call", "facts", "made_of", "uses")
    verb = ""

    def __init__(self, prim: Primitive, params: dict, avals: tuple, given: Any):
        self.made_of = prim, params, avals, given
        self.uses = 0
        self.call: Callable[..., list] | None = None
        self.facts: Any = None  # what `write` says of the results

    def write(self) -> Jaxpr:
        """The rule as a program; it sets `facts`."""
        raise NotImplementedError

    def count_use(self) -> Callable[..., list] | None:
        """Note one more use, and give the program if there is one from now on."""
        self.uses += 1
        if self.uses == USES or not self.made_of[0].memoize_type:  # else a program each time
            try:
                jaxpr = self.write()
            except TracerError:  # it asks for values, as a library's may
                return None
            prim = self.made_of[0]
            if len(jaxpr.eqns) == 1 and jaxpr.eqns[0].primitive.impl is None:
                (eqn,) = jaxpr.eqns
                if list(eqn.invars) == jaxpr.invars and list(eqn.outvars) == jaxpr.outvars:
                    self.call = kernel_of(eqn.primitive, eqn.params)
                    return self.call
            self.call = compile_program(jaxpr, f"{self.verb}_{prim.name}")
        return self.call


class JVPRule(CompiledRule):
    """From operands and the tangents of those that move to results and their tangents.

    `facts`: which of the results move.
    """

    __slots__ = ()
    verb = "jvp"

    def write(self) -> Jaxpr:
        prim, params, avals, moved = self.made_of

        def apply(*xs: Any) -> list:
            primals, given = xs[: len(avals)], xs[len(avals) :]
            outs, dots = prim.jvp(list(primals), tangents_of(primals, given, moved), **params)
            self.facts = [type(t) is not Zero for t in dots]
            return [*outs, *[t for t in dots if type(t) is not Zero]]

        tangents = [a.to_tangent() for a, m in zip(avals, moved, strict=True) if m]
        return stage_whole(apply, [*avals, *tangents], prim.name)


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
        call = None if rule is None else rule.call or rule.count_use()
        if call is None:
            return super().process(prim, args, params)
        try:
            current.trace = self.parent
            outs = call(*primals, *dots)
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
    verb = "vmap"

    def write(self) -> Jaxpr:
        prim, params, avals, (axis, dims) = self.made_of

        def apply(*xs: Any) -> list:
            outs, self.facts = prim.batch(axis, list(xs), list(dims), **params)
            return list(outs)

        return stage_whole(apply, avals, prim.name)


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
        call = None if rule is None else rule.call or rule.count_use()
        if call is None:
            return super().process(prim, args, params)
        try:
            current.trace = self.parent
            outs = call(*values)
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
