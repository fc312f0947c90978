"""Derivatives of what runs operation by operation: a tape of operations and their derivatives.

Where nothing asks for a program, none is written. Each operation is applied at once, by a compiled
program that also gives the residuals, and noted on the tape with others, which take tangents of its
operands to those of its results, and cotangents back. All are made from the operation's rules by
linearization and transposition (transforms/), once for its parameters and types. Under another such
transformation they are operations, to which that does the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.control.jit import Jit, jit_p
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Jaxpr, eval_jaxpr
from weft.core.primitive import Linear, Primitive, Zero, mark_moving
from weft.core.source import JVP
from weft.core.stage import StagedTracer, StageTrace, close_jaxpr, has_tracked_axes, run_staged
from weft.core.trace import Trace, current, is_eager, run_once, typed_values
from weft.errors import TracerError
from weft.options import config, trace_context, x64_as, x64_cell
from weft.passes.discharge import holds_state
from weft.primitives.constant import stage_whole, write_consts
from weft.primitives.elementwise import add
from weft.primitives.replay import WRITTEN
from weft.run.eager import compile_program, kernel_of
from weft.run.observer import find_observer
from weft.run.rules import RuleTrace, as_operation
from weft.transforms.jvp import JVPTracer
from weft.transforms.linearize import linearize
from weft.transforms.transpose import backward, backward_jaxpr
from weft.xla.array import array_from_host


class TapeTracer(JVPTracer):
    """A value whose cotangent has a place on a tape."""

    __slots__ = ("slot",)

    def __init__(self, trace: TapeTrace, primal: Any, aval: ShapedArray, slot: int):
        self.owner = trace
        self.primal = primal
        self.aval = aval
        self.slot = slot
        self.tangent = None


class Program(NamedTuple):
    """A closed jaxpr that is applied as one: where we compute by `call`, else as an operation."""

    jaxpr: Jaxpr
    call: Callable[..., list]
    prim: Primitive
    params: dict

    def apply(self, args: list) -> list:
        """The results under the current trace. Where programs are asked for, all is written."""
        trace = current.trace
        if isinstance(trace, RuleTrace):
            return trace.process(self.prim, args, self.params)
        if trace.parent is not None:
            return self.jaxpr(*args)
        out = self.call(*args)
        return out if type(out) is list else [out]


def make_program(jaxpr: Jaxpr, name: str) -> Program:
    """A closed jaxpr as one."""
    prim, params = as_operation(jaxpr, name)
    call = compile_program(jaxpr, name) if prim is jit_p else kernel_of(prim, params)
    return Program(jaxpr, call, prim, params)


class CompiledRule:
    """What is applied by one program from some use on; `program` is None until then."""

    __slots__ = ("facts", "made_of", "program", "uses")

    def __init__(self, *made_of: Any):
        self.made_of = made_of
        self.uses = 0
        self.program: Program | None = None
        self.facts: Any = None  # what `write` says of the results

    def write(self) -> tuple[Jaxpr, str]:
        """The program and its name; it sets `facts`."""
        raise NotImplementedError

    def count_use(self) -> Program | None:
        """Note one more use, and give the program if there is one from now on."""
        self.uses += 1
        if self.uses == USES or not getattr(self.made_of[0], "memoize_type", True):
            try:  # at once where it were a program each time
                self.program = make_program(*self.write())
            except TracerError:  # it asks for values, as a library's may
                return None
        return self.program


class Linearized:
    """The derivative of an operation: a closed linear program, whose first inputs are residuals."""

    __slots__ = ("is_linear", "jaxpr", "name", "ways")

    def __init__(self, jaxpr: Jaxpr, name: str):
        self.is_linear = (False,) * len(jaxpr.constvars) + (True,) * len(jaxpr.invars)
        self.jaxpr = close_jaxpr(jaxpr)
        self.name = name
        self.ways: dict[tuple[bool, ...], tuple[Program, list[bool]]] = {}

    def __getstate__(self) -> tuple:
        """What is pickled: all but the programs, which are compiled, of this process alone."""
        return None, {**{s: getattr(self, s) for s in self.__slots__}, "ways": {}}

    def apply(self, values: list, given: tuple[bool, ...], same: bool) -> list:
        """Tangents, or cotangents of those results that are `given` one, taken along; None is 0.

        A zero must not take part: it would be NaN where the derivative of its result is infinite.
        Where `enable_x64` is not the `same` as on the tape, numbers get the types they had.
        """
        found = self.ways.get(given)
        if found is None:
            jaxpr, moved, verb = self.jaxpr, [True] * len(self.jaxpr.outvars), "jvp"
            if given:
                jaxpr, moved = backward_jaxpr(jaxpr, self.is_linear, given)
                verb = "transpose"
            found = self.ways[given] = make_program(jaxpr, f"{verb}_{self.name}"), moved
        program, moved = found
        outs = iter(program.apply(values if same else typed_values(values, program.jaxpr.invars)))
        return [next(outs) if m else None for m in moved]


class Rule:
    """How the tape applies an operation to operands of given types, some of which move.

    `program` gives the results and then new residuals; `sources` are the places of all residuals
    among the operands and what it gives.
    """

    __slots__ = ("linear", "out_avals", "out_moved", "program", "sources")

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
        new = [r for r in residuals if place(r) is None]
        later = {id(r): len(args) + len(outs) + i for i, r in enumerate(new)}
        self.sources: list[Any] = [later.get(id(r), place(r)) for r in residuals]
        self.program = make_program(write_consts(*early.finish([*outs, *new])), prim.name)
        self.linear = Linearized(linear, prim.name)


USES = 16  # a program costs as much to compile as a thousand uses of it save
LONGEST = 256  # operations of one program along a tape
MOST = 128  # such programs
_RULES: dict[tuple, Any] = {}
_WHOLE: dict[tuple, CompiledRule] = {}


def forget_rules() -> None:
    """Empty the memory of rules."""
    _RULES.clear()
    _WHOLE.clear()
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
    if rules is None:
        return None
    key = (kind, prim, avals, given, trace_context(), *params.items())
    try:
        found = rules.get(key)
    except TypeError:  # parameters without a hash
        return None
    # Where programs are watched by now, the lines must be those of this use.
    if found is not None or config.debug != "off":
        return found
    if prim.memoize_type or is_compiled_call(prim, params):
        found = rules[key] = kind(prim, params, avals, given)
    return found


def is_compiled_call(prim: Primitive, params: dict) -> bool:
    """Whether an application is the call of a program that is one unit, and nothing else."""
    plain = isinstance(prim, Jit) and not (params.get("compiler_options") or config.disable_jit)
    return plain and not (params["jaxpr"].effects or holds_state(params))


class TapeTrace(RuleTrace):
    """Applies each operation, and notes the pullback of those that touch its tracers."""

    __slots__ = ("count", "entries", "residuals", "ruled", "x64")

    def __init__(self, parent: Trace):
        self.parent = parent
        self.live = True
        self.x64 = x64_cell.value
        self.count = 0
        # (derivative, a jaxpr without a rule; slots of operands, of results; ends of residuals)
        self.entries: list[tuple] = []
        self.ruled = True
        self.residuals: list[Any] = []

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
                self.ruled = False
                outs, linear, residuals, out_moved = self.linearize(prim, params, primals, moved)
                out_avals = [*map(typeof, outs)]
            else:
                linear, out_moved, out_avals = rule.linear, rule.out_moved, rule.out_avals
                outs = rule.program.apply(primals)
                known = primals + outs
                residuals = [known[s] for s in rule.sources]
        finally:
            current.trace = self
        results, outputs = [], []
        slot = self.count
        for out, aval, m in zip(outs, out_avals, out_moved):
            if m:
                out = TapeTracer(self, out, aval, slot)
                out.source = source
                outputs.append(slot)
                slot += 1
            results.append(out)
        if outputs:
            self.count = slot
            kept = self.residuals
            start = len(kept)
            kept += residuals
            self.entries.append((linear, tuple(inputs), tuple(outputs), start, len(kept)))
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
    """The derivative of a function that ran on a tape: from the `USES`th walk on, one program."""

    def __init__(
        self, trace: TapeTrace, inputs: Sequence[TapeTracer], outputs: Sequence[int | None]
    ):
        self.entries = tuple(trace.entries)
        self.count = trace.count
        self.ruled = trace.ruled and 1 < len(self.entries) <= LONGEST
        self.x64 = trace.x64
        self.inputs = tuple([x.slot for x in inputs])
        self.in_avals = [x.aval for x in inputs]
        self.outputs = tuple([s for s in outputs if s is not None])

    def push(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list:
        """Tangents of the outputs that move, from those of the inputs."""
        return self.apply(Tape.push_each, [*residuals, *tangents], len(residuals), ())

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list:
        """Cotangents of the inputs, each a value or Zero, from those of the outputs that move."""
        values = [*residuals, *[ct for ct in cts if type(ct) is not Zero]]
        grads = self.apply(Tape.pull_each, values, len(residuals), mark_moving(cts))
        zero = lambda aval: Zero(aval.to_tangent())
        return [zero(a) if ct is None else ct for ct, a in zip(grads, self.in_avals, strict=True)]

    def apply(self, way: Callable, values: list, count: int, given: tuple) -> list:
        """`way` applied to residuals, `count` of the values, and to the rest."""
        whole, program, same = None, None, x64_cell.value is self.x64
        if self.ruled and same and can_tape():
            types = tuple([typeof(x) for x in values])
            key = (way, given, self.entries, self.inputs, self.outputs, types, trace_context())
            whole = _WHOLE.get(key)
            if whole is None:
                if len(_WHOLE) >= MOST:
                    del _WHOLE[next(iter(_WHOLE))]
                whole = _WHOLE[key] = Whole(way, self, count, given, types)
            program = whole.program or whole.count_use()
        if program is None:
            return way(self, values[:count], values[count:], given, same)
        found = iter(program.apply(values))
        return [next(found) if m else None for m in whole.facts]  # type: ignore[union-attr]

    def push_each(self, residuals: list, tangents: list, given: tuple, same: bool) -> list:
        """As `push`, operation by operation."""
        dots: list[Any] = [None] * self.count
        for slot, dot in zip(self.inputs, tangents, strict=True):
            dots[slot] = dot
        for linear, inputs, outputs, start, stop in self.entries:
            known, moving = residuals[start:stop], [dots[s] for s in inputs]
            if type(linear) is Linearized:
                found = linear.apply([*known, *moving], given, same)
            else:
                found = eval_jaxpr(linear, known, *moving)
            for slot, dot in zip(outputs, found, strict=True):
                dots[slot] = dot
        return [dots[s] for s in self.outputs]

    def pull_each(self, residuals: list, cts: list, given: tuple, same: bool) -> list:
        """As `pull`, operation by operation; None is zero."""
        sums: list[Any] = [None] * self.count
        for slot, ct in zip((s for s, g in zip(self.outputs, given) if g), cts, strict=True):
            sums[slot] = ct if sums[slot] is None else add(sums[slot], ct)
        for linear, inputs, outputs, start, stop in reversed(self.entries):
            cts = [sums[s] for s in outputs]
            given = tuple([ct is not None for ct in cts])
            if True not in given:
                continue
            for s in outputs:
                sums[s] = None
            if type(linear) is Linearized:
                values = [*residuals[start:stop], *[ct for ct in cts if ct is not None]]
                grads = linear.apply(values, given, same)
            else:
                unknown = [Linear(v.aval) for v in linear.invars]
                cts = [Zero(a) if x is None else x for x, a in zip(cts, linear.out_avals)]
                grads = backward(linear, residuals[start:stop], unknown, cts)
            for slot, ct in zip(inputs, grads, strict=True):
                if ct is not None and type(ct) is not Zero:
                    before = sums[slot]
                    sums[slot] = ct if before is None else add(before, ct)
        return [sums[s] for s in self.inputs]


class Whole(CompiledRule):
    """A `way` along a tape as one program; `facts` says which of its results are not zero."""

    __slots__ = ()

    def write(self) -> tuple[Jaxpr, str]:
        way, tape, count, given, types = self.made_of

        def apply(*xs: Any) -> list:
            found = way(tape, xs[:count], xs[count:], given, True)
            self.facts = [x is not None for x in found]
            return [x for x in found if x is not None]

        return stage_whole(apply, types, way.__name__), way.__name__


def can_tape() -> bool:
    """Whether nothing is written down here, and nobody watches single operations."""
    return (
        (is_eager() or isinstance(current.trace, RuleTrace))
        and find_observer() is None
        and not config.check_tracer_leaks
        and not has_tracked_axes()
    )


def record(
    fun: Callable, primals: Sequence[Any], moved: Sequence[bool]
) -> tuple[list, Tape, list, list[bool]]:
    """(outputs, tape, residuals, which outputs move) of a flat function, where `can_tape()`."""
    trace = TapeTrace(current.trace)
    args = [*primals]
    for i, x in enumerate(primals):
        if moved[i]:
            args[i] = TapeTracer(trace, x, typeof(x), trace.count)
            trace.count += 1
    results = run_once(trace, fun, args, JVP)
    mine = [type(x) is TapeTracer and x.owner is trace for x in results]
    outs = [x.primal if m else x for x, m in zip(results, mine, strict=True)]
    slots = [x.slot if m else None for x, m in zip(results, mine, strict=True)]
    inputs = [x for x, m in zip(args, moved, strict=True) if m]
    return outs, Tape(trace, inputs, slots), trace.residuals, mine
