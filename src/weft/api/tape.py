"""Reverse mode of what runs operation by operation: a tape of operations and their pullbacks.

Where nothing asks for a program, none is written. Each operation is applied at once, by a compiled
program that also gives the residuals, and noted on the tape with another, which takes cotangents of
its results to those of its operands. Both are made from the operation's rules by linearization and
transposition (transforms/), once for its parameters and types.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Jaxpr
from weft.core.primitive import Linear, Primitive, Zero
from weft.core.source import JVP
from weft.core.stage import StagedTracer, StageTrace, close_jaxpr, has_tracked_axes, run_staged
from weft.core.trace import Trace, current, run_once, typed_values
from weft.options import config, trace_context, x64_as, x64_cell
from weft.passes.discharge import holds_state
from weft.primitives.constant import write_consts
from weft.primitives.elementwise import add
from weft.primitives.replay import WRITTEN
from weft.transforms.jvp import JVPTracer
from weft.transforms.linearize import linearize
from weft.transforms.transpose import backward, backward_jaxpr
from weft.watch.observer import find_observer
from weft.xla.array import array_from_host
from weft.xla.eager import compile_program, kernel_of


class TapeTracer(JVPTracer):
    """A value whose cotangent has a place on a tape."""

    __slots__ = ("slot",)

    def __init__(self, trace: TapeTrace, primal: Any, aval: ShapedArray, slot: int):
        self.owner = trace
        self.primal = primal
        self.aval = aval
        self.slot = slot
        self.tangent = None


class Pull(NamedTuple):
    """From residuals and cotangents of results to cotangents of the operands that move.

    `moved` says which of these there is one for; the others are zero.
    """

    jaxpr: Jaxpr
    call: Callable[..., list]
    moved: list[bool]


class Pullback:
    """The pullback of an operation, by which of its results have cotangents.

    A zero must not take part: it would be NaN where the derivative of its result is infinite.
    """

    __slots__ = ("linear", "name", "pulls")

    def __init__(self, linear: Jaxpr, name: str):
        self.linear = linear
        self.name = name
        self.pulls: dict[tuple[bool, ...], Pull] = {}

    def choose(self, given: tuple[bool, ...]) -> Pull:
        """The program for the results that are `given` a cotangent."""
        found = self.pulls.get(given)
        return self.make(given) if found is None else found

    def make(self, given: tuple[bool, ...]) -> Pull:
        """Transpose the linear program, in a program."""
        is_linear = (False,) * len(self.linear.constvars) + (True,) * len(self.linear.invars)
        jaxpr, moved = backward_jaxpr(close_jaxpr(self.linear), is_linear, given)
        self.pulls[given] = Pull(jaxpr, compile_program(jaxpr, self.name), moved)
        return self.pulls[given]


class Rule:
    """How the tape applies an operation to operands of given types, some of which move.

    `apply` gives the results and then new residuals; `sources` says of each residual whether it is
    an operand (i), a result (count of operands + i) or, None, the next new one.
    """

    __slots__ = ("apply", "out_avals", "out_moved", "pull", "sources")

    def __init__(
        self, prim: Primitive, params: dict, avals: tuple[ShapedArray, ...], moved: Sequence[bool]
    ):
        early = StageTrace(current.trace)
        args = [early.new_arg(a) for a in avals]

        def run() -> tuple:
            return linearize(lambda *xs: prim.apply(*xs, **params), args, moved)

        outs, linear, residuals, self.out_moved = run_staged(early, run, ())
        self.out_avals = [typeof(x) for x in outs]
        known = {id(x.variable): i for i, x in enumerate([*args, *outs]) if hasattr(x, "variable")}
        place = lambda r: known.get(id(r.variable)) if type(r) is StagedTracer else None
        self.sources = [*map(place, residuals)]
        new = [r for r, s in zip(residuals, self.sources) if s is None]
        jaxpr = write_consts(*early.finish([*outs, *new]))
        plain = len(jaxpr.eqns) == 1 and not new and jaxpr.eqns[0].primitive is prim
        if plain and jaxpr.eqns[0].invars == jaxpr.invars:
            self.apply = kernel_of(prim, params)
        else:
            self.apply = compile_program(jaxpr, prim.name)
        self.pull = Pullback(linear, f"transpose_{prim.name}")

    def pick_residuals(self, primals: list, outs: list) -> list:
        """The residuals of operands and what `apply` gave."""
        known = primals + outs
        if None not in self.sources:
            return [known[s] for s in self.sources]  # type: ignore[index]
        new = iter(outs[len(self.out_avals) :])
        return [next(new) if s is None else known[s] for s in self.sources]


_RULES: dict[tuple, Any] = {}


def forget_rules() -> None:
    """Empty the memory of rules."""
    _RULES.clear()
    WRITTEN.clear()
    make_one.cache_clear()


@functools.cache
def make_one(dtype: np.dtype, device: Any) -> Any:
    """The number 1 as an array, there already: a number is sent to the device in each call."""
    return array_from_host(np.ones((), dtype), False)


def find_rule(kind: type, prim: Primitive, params: dict, avals: tuple, given: tuple) -> Any:
    """What `kind` makes of an operation at types, once; None if that holds or runs programs.

    That of a call of a compiled program is kept with the program.
    """
    rules: dict | None = _RULES
    if not prim.memoize_type:
        rules = getattr(params.get("jaxpr"), "memo", None)
    elif prim.impl is not None or prim.effect is not None:
        return None
    # Where programs are watched by now, the lines must be those of this use.
    if rules is None or config.debug != "off":
        return None
    key = (kind, prim, avals, given, trace_context(), *params.items())
    try:
        found = rules.get(key)
    except TypeError:  # parameters without a hash
        return None
    if found is None and (prim.memoize_type or is_compiled_call(prim, params)):
        found = rules[key] = kind(prim, params, avals, given)
    return found


def is_compiled_call(prim: Primitive, params: dict) -> bool:
    """Whether an application is the call of a program that is one unit, and nothing else."""
    body, *others = prim.bodies(params)
    plain = body.names_flow_in and not others and len(params) == 2  # no compiler_options
    return plain and not (body.jaxpr.effects or holds_state(params) or config.disable_jit)


class Entry:
    """An operation that was applied: where cotangents come from and go to."""

    __slots__ = ("inputs", "outputs", "pull", "residuals")

    def __init__(self, pull: Any, inputs: list[int], outputs: list[int], residuals: slice):
        self.pull = pull
        self.inputs = inputs
        self.outputs = outputs
        self.residuals = residuals


class RuleTrace(Trace):
    """A family: traces over the bottom, whose rules are compiled programs."""

    __slots__ = ()


class TapeTrace(RuleTrace):
    """Applies each operation, and notes the pullback of those that touch its tracers."""

    __slots__ = ("count", "entries", "residuals", "x64")

    def __init__(self, parent: Trace):
        self.parent = parent
        self.live = True
        self.x64 = x64_cell.value
        self.count = 0
        self.entries: list[Entry] = []
        self.residuals: list[Any] = []

    def new_tracer(self, x: Any, aval: ShapedArray) -> TapeTracer:
        """A value with a place for its cotangent."""
        slot = self.count
        self.count = slot + 1
        return TapeTracer(self, x, aval, slot)

    def process(self, prim: Primitive, args: Any, params: dict) -> list:
        primals, avals, inputs, moved = [], [], [], []
        for x in args:
            if type(x) is TapeTracer and x.owner is self:
                primals.append(x.primal)
                avals.append(x.aval)
                inputs.append(x.slot)
                moved.append(True)
            else:
                primals.append(x)
                avals.append(typeof(x, prim.name))
                moved.append(False)
        parent: Trace = self.parent  # type: ignore[assignment]
        try:
            current.trace = parent
            if not inputs:
                return parent.process(prim, primals, params)
            source = current.source or current.capture()
            rule = None
            if x64_cell.value is self.x64:
                rule = find_rule(Rule, prim, params, tuple(avals), tuple(moved))
            if rule is None:
                outs, pull, residuals, out_moved = self.linearize(prim, params, primals, moved)
                out_avals = [*map(typeof, outs)]
            else:
                pull, out_moved, out_avals = rule.pull, rule.out_moved, rule.out_avals
                outs = rule.apply(*primals)
                residuals = rule.pick_residuals(primals, outs)
        finally:
            current.trace = self
        results, outputs = [], []
        for out, aval, m in zip(outs, out_avals, out_moved):
            if m:
                out = self.new_tracer(out, aval)
                out.source = source
                outputs.append(out.slot)
            results.append(out)
        if outputs:
            kept = self.residuals
            start = len(kept)
            kept += residuals
            self.entries.append(Entry(pull, inputs, outputs, slice(start, len(kept))))
        return results

    def linearize(self, prim: Primitive, params: dict, primals: list, moved: list) -> tuple:
        """As `linearize`, of one operation; its tangents have types as where the tape began."""
        inside = x64_cell.value

        def bind(*xs: Any) -> list:
            with x64_as(inside):
                return current.trace.process(prim, xs, params)

        with x64_as(self.x64):
            return linearize(bind, primals, moved)


class Tape:
    """What is left of a function that ran on a tape: the way back."""

    def __init__(
        self, trace: TapeTrace, inputs: Sequence[TapeTracer], outputs: Sequence[int | None]
    ):
        self.entries = trace.entries
        self.count = trace.count
        self.x64 = trace.x64
        self.inputs = [x.slot for x in inputs]
        self.in_avals = [x.aval for x in inputs]
        self.outputs = outputs

    def backward(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list:
        """Cotangents of the inputs, each a value or Zero, from those of the outputs that move."""
        sums: list[Any] = [None] * self.count
        for slot, ct in zip((s for s in self.outputs if s is not None), cts, strict=True):
            if type(ct) is not Zero:
                sums[slot] = ct if sums[slot] is None else add(sums[slot], ct)
        same = x64_cell.value is self.x64
        for entry in reversed(self.entries):
            cts = [sums[s] for s in entry.outputs]
            given = tuple([ct is not None for ct in cts])
            if True not in given:
                continue
            for s in entry.outputs:
                sums[s] = None
            grads = pull_entry(entry.pull, residuals[entry.residuals], cts, given, same)
            for slot, ct in zip(entry.inputs, grads, strict=True):
                if ct is not None:
                    before = sums[slot]
                    sums[slot] = ct if before is None else add(before, ct)
        zero = lambda aval: Zero(aval.to_tangent())
        found = zip((sums[s] for s in self.inputs), self.in_avals, strict=True)
        return [zero(a) if ct is None else ct for ct, a in found]


def pull_entry(
    pull: Any, residuals: Sequence[Any], cts: list, given: tuple[bool, ...], same: bool
) -> list:
    """Cotangents of the moved operands of one operation; None in them and in `cts` is zero.

    `given` says which of `cts` are not; `same`, that `enable_x64` is as where the tape began.
    """
    if type(pull) is not Pullback:
        unknown = [Linear(v.aval) for v in pull.invars]
        zeros = [Zero(a) if ct is None else ct for ct, a in zip(cts, pull.out_avals, strict=True)]
        grads = backward(pull, residuals, unknown, zeros)
        return [None if type(g) is Zero else g for g in grads]
    jaxpr, call, moved = pull.choose(given)
    values = [*residuals, *[ct for ct in cts if ct is not None]]
    if not same:
        values = typed_values(values, jaxpr.invars)
    found = iter(call(*values) if current.trace.parent is None else jaxpr(*values))
    return [next(found) if m else None for m in moved]


def can_tape() -> bool:
    """Whether we compute here, and nobody watches single operations."""
    return (
        current.trace.parent is None
        and find_observer() is None
        and not config.check_tracer_leaks
        and not has_tracked_axes()
    )


def record(
    fun: Callable, primals: Sequence[Any], moved: Sequence[bool]
) -> tuple[list, Tape, list, list[bool]]:
    """(outputs, tape, residuals, which outputs move) of a flat function, where `can_tape()`."""
    trace = TapeTrace(current.trace)
    args = [trace.new_tracer(x, typeof(x)) if m else x for x, m in zip(primals, moved, strict=True)]
    results = run_once(trace, fun, args, JVP)
    mine = [type(x) is TapeTracer and x.owner is trace for x in results]
    outs = [x.primal if m else x for x, m in zip(results, mine, strict=True)]
    slots = [x.slot if m else None for x, m in zip(results, mine, strict=True)]
    inputs = [x for x, m in zip(args, moved, strict=True) if m]
    return outs, Tape(trace, inputs, slots), trace.residuals, mine
