"""Staging: `StageTrace` writes equations down instead of computing; `stage` makes a jaxpr.

The same trace serves `jit` and `make_jaxpr` (everything is written down) and, in
transforms/linearize.py, the linear part of a derivative.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray, python_scalar_aval, typeof
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var
from weft.core.primitive import TYPES, Linear, LinearUsed, Primitive
from weft.core.ref import AbstractRef, Ref, is_ref
from weft.core.source import describe_maker, scoped_source
from weft.core.trace import Trace, Tracer, current, get_traceback, run_once, typed_values
from weft.dtypes import NUMBERS, cast_on_host
from weft.errors import Origin, RefError
from weft.options import config, named_axes
from weft.util import SymbolicSize, allocate, collecting_rarely


def has_tracked_axes() -> bool:
    """Return True if the types of the current program say which values vary over its mesh."""
    axes = named_axes.value
    return bool(axes) and any(axis.tracked for axis in axes)


class StagedTracer(Tracer):
    """A value of a program that is being traced: it stands for a variable of the program.

    `jit`, `make_jaxpr` and control flow pass such values to functions. They have a type and no
    concrete value.

    Attributes:
      variable: the variable of the program.
      aval: the type of the value, a `ShapedArray` or a reference type.

    >>> from weft.interpreters import partial_eval as pe
    >>> def f(x):
    ...     print(isinstance(x, pe.DynamicJaxprTracer), x.aval)
    ...     return x
    >>> _ = weft.make_jaxpr(f)(jnp.ones(3))
    True f32[3]
    """

    __slots__ = ("variable",)

    owner: StageTrace

    def __init__(self, trace: StageTrace, aval: ShapedArray, var: Var):
        self.owner = trace
        self.aval = aval
        self.variable = var

    def origin(self) -> str:
        return self.owner.origin(self.variable)

    def arguments(self) -> list[Origin]:
        return self.owner.arguments(self.variable)


class StageTrace(Trace):
    """Writes each application down as an equation; a concrete value becomes a const."""

    __slots__ = (
        "arg_names", "args", "consts", "eqns", "look", "name", "programs", "replays", "tracked",
    )  # fmt: skip

    def __init__(self, parent: Trace | None = None, name: str = ""):
        self.parent = parent
        self.live = True
        self.name = name
        self.eqns: list[Eqn] = []
        self.args: list[Var] = []
        self.arg_names: Sequence[str] | Callable[[], Sequence[str]] = ()
        self.consts: dict[int, tuple[Var, Any]] = {}  # id of the value -> its var, and the value
        found = None if parent is None else parent.programs
        self.programs: dict[Any, Any] = {} if found is None else found
        self.look: Any = None  # what gives Python the values that it asks for (parallel/parts.py)
        # whether types say what varies over a mesh
        self.tracked = has_tracked_axes() if named_axes.value else False
        self.replays = not self.tracked

    @property
    def targets(self) -> Any:
        return (self, self) if self.look is None and not self.tracked else None

    def new_arg(self, aval: ShapedArray) -> StagedTracer:
        """One more parameter of the program."""
        var = Var(aval)
        self.args.append(var)
        return StagedTracer(self, aval, var)

    def process(self, prim: Primitive, args: Any, params: dict) -> list:
        if prim.staged is not None:
            args, params = prim.staged(args, params)
        if self.tracked and prim.memoize_type:
            args = self.aligned(args)
        atoms: list[Atom] = []
        given = []
        for x in args:
            if type(x) is StagedTracer and x.owner is self:
                atoms.append(x.variable)
                given.append(x.aval)
            else:
                atom = self.atom(x, prim.name)
                atoms.append(atom)
                given.append(atom.aval)
        avals = tuple(given)
        try:  # as `type_of`, without a call in most cases
            types = TYPES.get((prim, avals, *params.items()) if params else (prim, avals))
        except TypeError:  # a parameter without a hash
            types = None
        if types is None:
            types = prim.type_of(avals, params)
        outvars: list[Var] = []
        outs = []
        for aval in types:
            # Objects without a call of `__init__`, which would take half the time of this method.
            var = allocate(Var)
            var.aval = aval
            outvars.append(var)
            out = allocate(StagedTracer)
            out.owner = self
            out.aval = aval
            out.variable = var
            outs.append(out)
        eqn = allocate(Eqn)
        eqn.primitive = prim
        eqn.invars = atoms
        eqn.params = params
        eqn.outvars = outvars
        eqn.source = current.source or current.capture()
        self.eqns.append(eqn)
        return outs

    def aligned(self, args: Sequence[Any]) -> Sequence[Any]:
        """Operands that vary over a mesh as the others do: what that takes is written down."""
        kinds = [None if type(x) in NUMBERS else typeof(x).varying for x in args]
        given = {k for k in kinds if k is not None}
        if not given or (len(given) == 1 and None not in kinds):
            return args
        most = functools.reduce(operator.or_, given)
        return [
            x if k is most or type(x) in NUMBERS else most.cast(self, x)
            for x, k in zip(args, kinds, strict=True)
        ]

    def atom(self, x: Any, op: str = "array") -> Atom:
        """A value as an operand in the program: its variable, a literal, or a const."""
        if type(x) in NUMBERS:
            literal = allocate(Literal)  # as in `process`
            literal.val = x
            literal.aval = python_scalar_aval(x)
            return literal
        if isinstance(x, np.generic) or (type(x) is np.ndarray and x.ndim == 0):
            aval = typeof(x)
            return Literal(cast_on_host(np.asarray(x), aval.dtype)[()], aval)
        if type(x) is StagedTracer and x.owner is self:
            return x.variable
        found = self.consts.get(id(x))
        if found is None:
            if isinstance(x, Tracer):
                x.check_live()
            elif type(x) is Linear:
                raise LinearUsed
            elif isinstance(x, SymbolicSize):
                return x.stage(self).variable
            found = self.consts[id(x)] = (Var(typeof(x, op)), x)
        return found[0]

    def finish(self, outs: Sequence[Any], close: bool = True) -> tuple[Jaxpr, list]:
        """The program with the given results, and its consts; the trace is over."""
        outvars = [
            x.variable if type(x) is StagedTracer and x.owner is self else self.atom(x)
            for x in outs
        ]
        if int in map(type, outs):
            check_fit(outvars, self.name)
        self.live = not close
        constvars = [var for var, _ in self.consts.values()]
        consts = [value for _, value in self.consts.values()]
        if consts:
            consts = typed_values(consts, constvars)
        jaxpr = Jaxpr(constvars, self.args, outvars, self.eqns, name=self.name)
        if AbstractRef in map(type, jaxpr.out_avals):
            var: Any = next(v for v in outvars if is_ref(v))
            raise RefError(
                f"{self.name or 'jit'}: a reference must not be returned from a traced function; "
                f"got a {var.aval} {self.origin(var)}. Hint: return r[...], or weft.freeze(r)."
            )
        return jaxpr, consts

    def origin(self, var: Var) -> str:
        if any(arg is var for arg in self.args):
            unnamed = f"an argument of {self.name or 'the traced function'}"
            return f"from {next(iter(self.arguments(var)), unnamed)}"
        if any(v is var for v, _ in self.consts.values()):
            return "closed over from outside"
        return self.maker(var) or "of unknown origin"

    def arguments(self, var: Var) -> list[Origin]:
        """Return the arguments that a variable depends on, also arguments of outer functions."""
        needed = {var}
        for eqn in reversed(self.eqns):
            if not needed.isdisjoint(eqn.outvars):
                needed.update(a for a in eqn.invars if type(a) is Var)
        names = self.arg_names() if callable(self.arg_names) else self.arg_names
        found = [n for a, n in zip(self.args, names, strict=False) if a in needed]
        for v, x in self.consts.values():
            found += x.arguments() if v in needed and isinstance(x, Tracer) else ()
        return [x for x in found if type(x) is Origin]

    def maker(self, var: Var) -> str:
        """Name the operation and the line that made a variable; "" if this trace did not."""
        for eqn in self.eqns:
            if any(v is var for v in eqn.outvars):
                return describe_maker(eqn.source, eqn.primitive.name)
        return ""


def check_fit(atoms: Sequence[Atom], name: str) -> None:
    """Raise where a Python integer among the results of a program does not fit its type."""
    for a in atoms:
        if type(a) is Literal and type(a.val) is int:
            try:
                a.aval.dtype.type(a.val)
            except OverflowError:
                raise OverflowError(
                    f"{name or 'jit'}: integers among the results must fit {a.aval.dtype}; got "
                    f"{a.val}. Hint: jnp.uint32(x), jnp.float32(x), or weft.enable_x64(True)."
                ) from None


def is_staged_within(home: Trace) -> bool:
    """Return True if a tracer of `home` is used in a program below it, or after its end."""
    trace = current.trace
    while trace is not home:
        if trace is None or type(trace) is StageTrace:
            return True
        trace = trace.parent
    return False


def holds_here(ref: Any) -> bool:
    """Return True if `ref` is a `Ref` whose value can be used here."""
    return type(ref) is Ref and not is_staged_within(ref.trace)


def run_staged(trace: StageTrace, fun: Callable, args: Sequence[Any]) -> Any:
    """`fun(*args)` with a StageTrace in force, which is marked for the C++ call cache."""
    with collecting_rarely():
        capture = scoped_source if config.locate_operations else get_traceback
        return run_once(trace, fun, args, "", "staging", capture)


def stage(
    fun: Callable, in_avals: Sequence[ShapedArray], name: str = "", arg_names: Any = ()
) -> tuple[Jaxpr, list]:
    """The jaxpr of a flat function (values in, a list out) at the given types, and its consts."""
    trace = StageTrace(current.trace, name)
    trace.arg_names = arg_names
    return trace.finish(run_staged(trace, fun, [trace.new_arg(a) for a in in_avals]))


def stage_closed(fun: Callable, in_avals: Sequence[ShapedArray], name: str = "") -> tuple:
    """Stage with the consts as leading parameters: a closed jaxpr, and what to pass first."""
    jaxpr, consts = stage(fun, in_avals, name)
    return close_jaxpr(jaxpr), consts


def close_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """Turn the constvars of a jaxpr into its first inputs.

    Args:
      jaxpr: a `Jaxpr`.

    Returns:
      A `Jaxpr` without constvars. Its inputs are the constvars and then the inputs of the given
      one.

    >>> from weft.interpreters import partial_eval as pe
    >>> table = jnp.arange(3.0)
    >>> jaxpr = weft.make_jaxpr(lambda x: x + table)(table).jaxpr
    >>> print(jaxpr)
    { lambda a:f32[3]; b:f32[3]. let c:f32[3] = add b a in (c,) }
    >>> print(pe.convert_constvars_jaxpr(jaxpr))
    { lambda ; a:f32[3] b:f32[3]. let c:f32[3] = add b a in (c,) }
    """
    if not jaxpr.constvars:
        return jaxpr
    return jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
