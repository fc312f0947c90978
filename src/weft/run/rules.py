"""Rules of primitives as compiled programs, for what runs operation by operation.

A rule at given types (its jvp, its batch rule, its linearization, a transpose of that) is one
mechanism, `Rule`: it is applied as written at first, because a few uses take less time than to
compile it, and as one compiled program once it is hot. The traces of transforms/ apply rules in one
method, `apply_rule`, and the traces here override only that. Reverse mode is tape.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from weft.control.jit import Jit, jit_p
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Jaxpr, uses_axis
from weft.core.primitive import Axis, Primitive, Zero, tangents_of
from weft.core.ref import AbstractRef
from weft.core.stage import StagedTracer, StageTrace, close_jaxpr, has_tracked_axes, run_staged
from weft.core.trace import Trace, current, typed_values
from weft.errors import TracerError
from weft.options import config, trace_context, x64_cell
from weft.passes.discharge import holds_state
from weft.primitives.constant import stage_whole, write_consts
from weft.primitives.replay import MAX_RULES, RULES
from weft.run.eager import compile_program, kernel_of
from weft.run.hot import is_hot_after
from weft.transforms.batch import BatchTrace
from weft.transforms.jvp import MIN_SHARING, JVPTrace, is_nested
from weft.transforms.linearize import linearize
from weft.transforms.transpose import backward_jaxpr
from weft.util import keep_cache, keep_newest, memoize
from weft.xla.array import array_from_host

MAX_WALKS = 128  # walks along tapes; each holds up to 256 operations and a program
WALKS: dict[tuple, Rule] = keep_cache("walks along tapes", {})


def forget_rules() -> None:
    """Empty the cache of rules, because a rule has changed."""
    RULES.clear()
    WALKS.clear()


@memoize
def make_one(dtype: np.dtype, device: Any) -> Any:
    """The number 1 as an array, for the cotangent of a gradient: a number is sent at each call."""
    return array_from_host(np.ones((), dtype), False)


def as_operation(jaxpr: Jaxpr, name: str) -> tuple[Primitive, dict]:
    """The operation and parameters that do what a closed jaxpr does: a call, or its only one."""
    eqn = jaxpr.eqns[0] if len(jaxpr.eqns) == 1 else None
    whole = eqn and list(eqn.invars) == jaxpr.invars and list(eqn.outvars) == jaxpr.outvars
    if eqn and whole and eqn.primitive.impl is None:
        return eqn.primitive, eqn.params
    return jit_p, {"name": name, "jaxpr": jaxpr}


class RuleTrace(Trace):
    """A family: traces over the bottom, and over each other, whose rules are compiled programs."""

    __slots__ = ()
    compiles_rules = True
    as_operation = staticmethod(as_operation)

    def apply_program(self, program: Program, args: list) -> list:
        return self.process(program.prim, args, program.params)


def compiles_rules() -> bool:
    """Return True if operations are computed one by one here, and nobody watches them.

    Rules of rules of rules are programs that double with each: those are written operation by
    operation.
    """
    return (
        current.trace.compiles_rules
        and not is_nested(MIN_SHARING)
        and config.debug == "off"
        and not config.check_tracer_leaks
        and not has_tracked_axes()
    )


# --- programs -----------------------------------------------------------------------------------


class Program(NamedTuple):
    """A closed jaxpr that traces apply as one unit: by `call`, or as an operation.

    While a program is staged, the jaxpr is inlined.
    """

    jaxpr: Jaxpr
    call: Callable[..., list]
    prim: Primitive
    params: dict


def make_program(jaxpr: Jaxpr, name: str) -> Program:
    """A closed jaxpr as a `Program`."""
    prim, params = as_operation(jaxpr, name)
    call = compile_program(jaxpr, name) if prim is jit_p else kernel_of(prim, params)
    return Program(jaxpr, call, prim, params)


# --- the mechanism ------------------------------------------------------------------------------


class Rule:
    """A rule at given types, `made_of` these, that is one compiled program once it is hot.

    `program` is None before that. `facts` describe the results; writing the program finds them.
    """

    __slots__ = ("at_once", "facts", "made_of", "program", "uses", "wants_values")
    compiles_at_once: ClassVar[bool] = False

    def __init__(self, *made_of: Any, at_once: bool = False):
        self.made_of = made_of
        self.at_once = at_once or self.compiles_at_once
        self.uses = 0
        self.wants_values = False
        self.program: Program | None = None
        self.facts: Any = None

    def write(self) -> tuple[Jaxpr, str]:
        """Return the program and its name, and set `facts`."""
        raise NotImplementedError

    def count_use(self) -> Program | None:
        """Count a use before there is a program; return the program if the rule is hot now."""
        self.uses += 1
        if (self.at_once or is_hot_after(self.uses)) and not self.wants_values:
            try:
                self.program = make_program(*self.write())
            except TracerError:  # the rule asks for values, as a library's may: it stays as written
                self.wants_values = True
        return self.program


def apply_compiled(
    kind: type, prim: Primitive, params: dict, avals: tuple, given: tuple, operands: list
) -> tuple[list, Any] | None:
    """Apply the program of a rule at types; return its results and the facts of the rule.

    Return None if the rule has no program by this use. What holds or runs programs has no rule,
    except for the call of a compiled program: its rules are kept with that program.
    """
    rules = RULES if prim.memoize_type else getattr(params.get("jaxpr"), "memo", None)
    if rules is None:
        return None
    key = (kind, prim, avals, given, trace_context(), *params.items())
    try:
        found = rules.get(key)
    except TypeError:  # parameters without a hash
        return None
    if found is None:
        if not has_rules(prim, params):
            return None
        # Without a program, a rule of a call would make a new one at each use.
        found = kind(prim, params, avals, given, at_once=not prim.memoize_type)
        if rules is RULES:
            keep_newest(RULES, key, found, MAX_RULES)
        else:
            rules[key] = found
    program = found.program or found.count_use()
    if program is None:
        return None
    return current.trace.apply_program(program, operands), found.facts


def fill_types(prim: Primitive, primals: list, types: list) -> tuple:
    """Return the types of all operands; `types` has None for those that do not move."""
    name = prim.name
    return tuple([typeof(x, name) if a is None else a for x, a in zip(primals, types)])


def has_rules(prim: Primitive, params: dict) -> bool:
    """Return True if the rules of an application can be compiled.

    The rules of an operation without an `impl` and without an effect can, and the rules of a call
    of a compiled program. While programs are watched nothing is compiled anew, because the
    equations must have the lines of this use.
    """
    if config.debug != "off":
        return False
    if prim.memoize_type:
        return prim.impl is None and prim.effect is None
    plain = isinstance(prim, Jit) and not (params.get("compiler_options") or config.disable_jit)
    if not plain or params["jaxpr"].effects or holds_state(params):
        return False
    return AbstractRef not in map(type, params["jaxpr"].in_avals)  # for a rule of its own to write


# --- forward mode -------------------------------------------------------------------------------


class JVPRule(Rule):
    """The jvp of a primitive: operands and tangents to results and their tangents.

    `facts` has an entry for each result: its tangent if that is Zero, else None. It is empty if
    all results move.
    """

    __slots__ = ()

    def write(self) -> tuple[Jaxpr, str]:
        prim, params, avals, types = self.made_of
        moved = [a is not None for a in types]

        def apply(*xs: Any) -> list:
            primals, given = xs[: len(avals)], xs[len(avals) :]
            outs, dots = prim.jvp(list(primals), tangents_of(primals, given, moved), **params)
            zeros = [t if type(t) is Zero else None for t in dots]
            self.facts = zeros if any(zeros) else ()
            return [*outs, *[t for t in dots if type(t) is not Zero]]

        tangents = [a.to_tangent() for a, m in zip(avals, moved, strict=True) if m]
        return stage_whole(apply, [*avals, *tangents], prim.name), f"jvp_{prim.name}"


class CompiledJVP(JVPTrace, RuleTrace):
    """Forward mode by compiled rules."""

    __slots__ = ()

    def apply_rule(
        self, prim: Primitive, primals: list, tangents: list, types: list, params: dict
    ) -> tuple:
        applied = None
        if x64_cell.value is self.x64:
            avals = given = tuple(types)
            moving = tangents
            if None in given:
                avals = fill_types(prim, primals, types)
                moving = [t for t in tangents if t is not None]
            applied = apply_compiled(JVPRule, prim, params, avals, given, primals + moving)
        if applied is None:
            return super().apply_rule(prim, primals, tangents, types, params)
        found, zeros = applied
        if not zeros:
            n = len(found) // 2
            return found[:n], found[n:]
        dots = iter(found[len(zeros) :])
        return found[: len(zeros)], [next(dots) if zero is None else zero for zero in zeros]


def open_jvp() -> JVPTrace | None:
    """Return a trace whose rules are compiled, if they are here."""
    return CompiledJVP(current.trace) if compiles_rules() else None


# --- batching -----------------------------------------------------------------------------------


class BatchRule(Rule):
    """The batch rule of a primitive; `facts` has the mapped axis of each result, or None."""

    __slots__ = ()

    def write(self) -> tuple[Jaxpr, str]:
        prim, params, avals, (axis, *dims) = self.made_of

        def apply(*xs: Any) -> list:
            outs, self.facts = prim.batch(axis, list(xs), list(dims), **params)
            return list(outs)

        return stage_whole(apply, avals, prim.name), f"vmap_{prim.name}"


class CompiledBatch(BatchTrace, RuleTrace):
    """Batching by compiled rules."""

    __slots__ = ()

    def apply_rule(self, prim: Primitive, values: list, dims: list, params: dict) -> tuple:
        axis, applied = self.axis, None
        if axis.name is None or not uses_axis(prim, params, axis.name):
            avals = []
            for x in values:
                aval = getattr(x, "aval", None)  # as `typeof`, without a call in most cases
                avals.append(aval if type(aval) is ShapedArray else typeof(x, prim.name))
            given = (axis, *dims)
            applied = apply_compiled(BatchRule, prim, params, tuple(avals), given, values)
        return applied or super().apply_rule(prim, values, dims, params)


def open_batch(axis: Axis) -> BatchTrace | None:
    """Return a trace that maps along an axis and compiles rules, if they are compiled here."""
    compiles = compiles_rules() and axis.split is None and not axis.spmd
    return CompiledBatch(current.trace, axis) if compiles else None


# A tracer shows the name of the class of its trace; users know these names.
CompiledJVP.__name__ = JVPTrace.__name__
CompiledBatch.__name__ = BatchTrace.__name__


# --- linearization and its transposes -----------------------------------------------------------


class LinearizeRule(Rule):
    """The linearization of a primitive: operands to results and then new residuals.

    `facts` has the derivative; the source of each residual among the operands, the results and the
    new residuals; the number of results that move; and which ones, or () if all move. The rule is
    compiled on first use: one program replaces two or more operations, which would each be compiled
    as well.
    """

    __slots__ = ()
    compiles_at_once = True

    def write(self) -> tuple[Jaxpr, str]:
        prim, params, avals, types = self.made_of
        moved = [a is not None for a in types]
        early = StageTrace(current.trace)
        args = [early.new_arg(a) for a in avals]

        def run() -> tuple:
            return linearize(lambda *xs: prim.apply(*xs, **params), args, moved)

        outs, linear, residuals, out_moved = run_staged(early, run, ())
        known = {id(x.variable): i for i, x in enumerate([*args, *outs]) if hasattr(x, "variable")}
        place = lambda r: known.get(id(r.variable)) if type(r) is StagedTracer else None
        new = [r for r in residuals if place(r) is None]
        later = {id(r): len(args) + len(outs) + i for i, r in enumerate(new)}
        sources = [later.get(id(r), place(r)) for r in residuals]
        marks = () if all(out_moved) else out_moved
        self.facts = LinearizedRule(linear, prim.name), sources, sum(out_moved), marks
        return write_consts(*early.finish([*outs, *new])), prim.name


class LinearizedRule:
    """The derivative of an operation, as a `LinearMap` by compiled programs.

    There is a program for tangents, and one for each choice of cotangents that are not zero: a zero
    must not take part, as it would be NaN where the derivative of its result is infinite.
    """

    __slots__ = ("is_linear", "jaxpr", "name", "programs", "x64")

    def __init__(self, jaxpr: Jaxpr, name: str):
        self.is_linear = (False,) * len(jaxpr.constvars) + (True,) * len(jaxpr.invars)
        self.jaxpr = close_jaxpr(jaxpr)
        self.name = name
        self.x64 = x64_cell.value
        self.programs: dict[tuple[bool, ...], tuple[Program, list[bool]]] = {}

    def __getstate__(self) -> tuple:
        """Everything is pickled except for the programs, which this process compiled."""
        return None, {**{s: getattr(self, s) for s in self.__slots__}, "programs": {}}

    def push(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list:
        """Apply the map."""
        return self.apply([*residuals, *tangents], ())

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list:
        """Apply the transpose; None is zero, both in `cts` and in the result."""
        given = tuple([ct is not None for ct in cts])
        return self.apply([*residuals, *[ct for ct in cts if ct is not None]], given)

    def apply(self, values: list, given: tuple[bool, ...]) -> list:
        """Apply the program for the cotangents that are `given`; () is the one for tangents.

        If `enable_x64` has changed since the operation ran, numbers get the types they had then.
        """
        found = self.programs.get(given)
        if found is None:
            jaxpr, moved, verb = self.jaxpr, [True] * len(self.jaxpr.outvars), "jvp"
            if given:
                jaxpr, moved = backward_jaxpr(jaxpr, self.is_linear, given)
                verb = "transpose"
            found = self.programs[given] = make_program(jaxpr, f"{verb}_{self.name}"), moved
        program, moved = found
        if x64_cell.value is not self.x64:
            values = typed_values(values, program.jaxpr.invars)
        outs = iter(current.trace.apply_program(program, values))
        return [next(outs) if m else None for m in moved]
