"""The IR: `Var`, `Literal`, `Eqn`, `Jaxpr`, `ClosedJaxpr`, and evaluation.

A jaxpr is a function: typed parameters, equations in order, results. Calling one applies its
equations under the current trace, so Python and IR are interchangeable to every rule. Printing is
in pretty.py, making one from Python in stage.py; checks and rewrites are in passes/.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Runs
from weft.core.primitive import Body, Primitive, Program, programs_in
from weft.core.ref import AbstractRef, StateEffect
from weft.core.source import SourceInfo, inner_source
from weft.core.trace import current, typed_value, typed_values
from weft.errors import ShapeError


class Var:
    """A variable of a jaxpr.

    Variables are compared by identity. They are named when a jaxpr is printed.

    Args:
      aval: the type of the value, a `ShapedArray`.

    >>> from weft.extend import core
    >>> x = core.Var(weft.typeof(jnp.zeros(3)))
    >>> x.aval
    ShapedArray(float32[3])
    >>> core.Jaxpr([], [x], [x, x], [])
    { lambda ; a:f32[3]. let  in (a, a) }
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval}"


class DropVar(Var):
    """A variable for a result that nothing uses.

    It is for jaxprs that are written by hand; an equation has one variable for each of its results.

    Args:
      aval: the type of the result, a `ShapedArray`.

    >>> from weft.extend import core
    >>> unused = core.DropVar(weft.typeof(1.0))
    >>> isinstance(unused, core.Var)
    True
    """

    __slots__ = ()


class UnreadVar(Var):
    """A parameter that a program takes only because others do; its name ends in `_`."""

    __slots__ = ()


class Literal:
    """A scalar that is written into a jaxpr as an operand.

    Args:
      val: the number: a Python number or a NumPy scalar.
      aval: the type, a `ShapedArray` of shape (). None takes the type of `val`, which is weak for
        Python numbers.

    Raises:
      DtypeError: `aval` is None and `val` is not a number.

    >>> from weft.extend import core
    >>> two = core.Literal(2.0)
    >>> two
    Literal(2.0:f32[])
    >>> two.val, two.aval
    (2.0, ShapedArray(float32[], weak_type=True))
    """

    __slots__ = ("aval", "val")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, val: Any, aval: ShapedArray | None = None):
        self.val = val
        self.aval = typeof(val) if aval is None else aval

    def read(self) -> Any:
        """The value, of the literal's type also where `enable_x64` has changed since."""
        return typed_value(self.val, self.aval)

    def __repr__(self) -> str:
        return f"Literal({self.val}:{self.aval})"


Atom = Var | Literal


class Eqn:
    """An equation of a jaxpr: `outvars = primitive[params] invars`.

    Passes and interpreters read the equations of a program in order. An equation is also made by
    `new_jaxpr_eqn`, which fills in `source`. `replace(**changes)` returns an equation with other
    fields.

    Args:
      primitive: the `Primitive` that is applied.
      invars: the operands, a sequence of `Var` and `Literal`.
      params: the parameters of the primitive by name.
      outvars: the variables of the results, a sequence of `Var`.
      source: the place in the user's program, a traceback or a `SourceInfo`. None if it is not
        known. Its text is made only when it is read.

    If a pass wrote the equation in place of another one, `origin` is the equation of the user's
    program. Other equations do not have this attribute.

    >>> program = weft.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
    >>> for eqn in program.eqns:
    ...     print(eqn.primitive, len(eqn.invars), len(eqn.outvars), eqn.params)
    sin 1 1 {}
    mul 2 1 {}
    """

    __slots__ = ("invars", "origin", "outvars", "params", "primitive", "source")

    origin: Eqn

    def __init__(
        self,
        primitive: Primitive,
        invars: Sequence[Atom],
        params: dict[str, Any],
        outvars: Sequence[Var],
        source: Any = None,
    ):
        self.primitive = primitive
        self.invars = invars
        self.params = params
        self.outvars = outvars
        self.source = source

    @property
    def source_info(self) -> SourceInfo:
        """Return the place where it was written: `traceback` and `name_stack`."""
        source = self.source
        return source if type(source) is SourceInfo else SourceInfo(source, ())

    @property
    def effects(self) -> frozenset:
        effect = self.primitive.effect
        return frozenset() if effect is None else frozenset((effect,))

    def __reduce__(self) -> tuple:  # the source line is known only in this process
        return Eqn, (self.primitive, self.invars, self.params, self.outvars)

    def replace(self, **changes: Any) -> Eqn:
        """The same equation except for the given fields."""
        made = Eqn(self.primitive, self.invars, self.params, self.outvars, self.source)
        if hasattr(self, "origin"):
            made.origin = self.origin
        for name, value in changes.items():
            setattr(made, name, value)
        return made


def origin_of(eqn: Eqn) -> Eqn:
    """Return the equation of the user's program that an equation was written for."""
    return getattr(eqn, "origin", eqn)


class Jaxpr(Program):
    """A program: a list of equations with input and output variables.

    `weft.make_jaxpr` makes one from a Python function. A jaxpr is a function as well: a call
    applies its equations under the current trace and returns the list of results. A jaxpr without
    constvars is closed, and can be a parameter of primitives that hold programs. Jaxprs are
    immutable; `replace(**changes)` returns a jaxpr with other fields. Facts that passes derive from
    a jaxpr are kept in its `memo`.

    Args:
      constvars: the variables of the constants, a sequence of `Var`. `ClosedJaxpr` holds their
        values.
      invars: the variables of the arguments, a sequence of `Var`.
      outvars: the results, a sequence of `Var` and `Literal`.
      eqns: the equations in program order, a sequence of `JaxprEqn`.
      effects: ignored, as the equations determine the effects. The parameter exists for calls that
        are written for JAX.
      debug_info: a `DebugInfo` that describes the traced function, or None.
      name: the name of the traced function, a string.

    >>> from weft.extend import core
    >>> x = core.Var(weft.typeof(1.0))
    >>> y = core.Var(weft.typeof(1.0))
    >>> program = core.Jaxpr([], [x], [y], [core.JaxprEqn(lax.neg_p, [x], {}, [y])])
    >>> program
    { lambda ; a:f32[]. let b:f32[] = neg a in (b,) }
    >>> [float(result) for result in program(3.0)]
    [-3.0]
    """

    __slots__ = (
        "__weakref__", "constvars", "eqns", "in_avals", "invars", "memo", "name", "out_avals",
        "outvars",
    )  # fmt: skip

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[Eqn],
        effects: Any = None,
        debug_info: Any = None,
        name: str = "",
    ):
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        self.name = name
        self.in_avals = [v.aval for v in invars]
        self.out_avals = [v.aval for v in outvars]
        self.memo: dict[Any, Any] = {} if debug_info is None else {"debug_info": debug_info}

    def __call__(self, *args: Any) -> list:
        """Apply to values under the current trace; a list of results."""
        return eval_jaxpr(self, (), *args)

    @property
    def jaxpr(self) -> Jaxpr:
        """Itself, so that a closed jaxpr may be read as a ClosedJaxpr."""
        return self

    consts: Any = property(lambda self: [])
    num_consts = property(lambda self: len(self.jaxpr.constvars))
    all_invars = property(lambda self: [*self.jaxpr.constvars, *self.jaxpr.invars])

    def with_consts(self, consts: Sequence[Any]) -> ClosedJaxpr:
        """The program with these values of its constvars."""
        return ClosedJaxpr(self.jaxpr, consts)

    @property
    def effects(self) -> frozenset:
        """Return the effects of the program."""
        found = self.memo.get("effects")
        if found is None:
            every: Sequence[Any] = (*self.eqns, *subjaxprs(self))
            found = self.memo["effects"] = frozenset().union(*(x.effects for x in every))
        return found

    @property
    def ordered(self) -> bool:
        """Return True if the program has effects whose order matters."""
        return any(effect.ordered for effect in self.effects)

    @property
    def calls_host(self) -> bool:
        """Return True if the program, or a program that it holds, calls Python functions."""
        found = self.memo.get("calls_host")
        if found is None:
            found = False
            for eqn in self.eqns:
                if not eqn.primitive.memoize_type:  # else it holds nothing
                    tell = getattr(eqn.primitive.lower, "calls_host", None)  # if a library wrote it
                    found = found or (tell is not None and tell(eqn))
                    for b in bodies_of(eqn):
                        found = found or (b.jaxpr.calls_host if b.jaxpr else b.runs is Runs.HOST)
            self.memo["calls_host"] = found
        return found

    def __reduce__(self) -> tuple:
        return Jaxpr, (self.constvars, self.invars, self.outvars, self.eqns, None, None, self.name)

    def replace(self, **changes: Any) -> Jaxpr:
        """The same program except for the given fields."""
        fields = {k: getattr(self, k) for k in ("constvars", "invars", "outvars", "eqns", "name")}
        return Jaxpr(**{**fields, **changes})


class ClosedJaxpr(Program):
    """A jaxpr together with the values of its constvars.

    A call applies the program to one array or number for each input variable, and returns the list
    of results.

    Args:
      jaxpr: the program, a `Jaxpr`.
      consts: the values of the constvars, arrays or numbers, one for each constvar. The default is
        none.

    Raises:
      ShapeError: the number of values is not the number of constvars.

    >>> from weft.extend import core
    >>> x = core.Var(weft.typeof(jnp.zeros(3)))
    >>> program = core.ClosedJaxpr(core.Jaxpr([x], [], [x], []), [jnp.arange(3.0)])
    >>> program
    { lambda a:f32[3]; . let  in (a,) }
    >>> print(*program())
    [0. 1. 2.]
    """

    __slots__ = ("__weakref__", "consts", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()):
        if len(jaxpr.constvars) != len(consts):
            raise ShapeError(
                "ClosedJaxpr: there must be one value for each constvar; "
                f"got {len(consts)} for {len(jaxpr.constvars)}."
            )
        self.jaxpr = jaxpr
        self.consts = list(consts)

    in_avals = property(lambda self: self.jaxpr.in_avals)
    out_avals = property(lambda self: self.jaxpr.out_avals)
    num_consts = Jaxpr.num_consts
    all_invars = Jaxpr.all_invars
    with_consts: Any = Jaxpr.with_consts
    eqns = property(lambda self: self.jaxpr.eqns)
    effects = property(lambda self: self.jaxpr.effects)

    def __call__(self, *args: Any) -> list:
        """Apply to values under the current trace; a list of results."""
        return eval_jaxpr(self.jaxpr, self.consts, *args)

    def replace(self, **changes: Any) -> ClosedJaxpr:
        """The same except for the given fields."""
        return ClosedJaxpr(**{"jaxpr": self.jaxpr, "consts": self.consts, **changes})


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list:
    """Apply a jaxpr to values.

    The equations run in order under the current trace, so the function may be transformed: `jit` of
    it stages the equations, and eager calls compute them. Each intermediate value is released after
    its last use.

    Args:
      jaxpr: the `Jaxpr` to apply; `closed.jaxpr` of a ClosedJaxpr.
      consts: a sequence of values, one for each constvar of the jaxpr; `closed.consts`.
      *args: the arguments; an array or a tracer for each invar, of the shape and dtype of the
        invar.

    Returns:
      A list of the results, with the shapes and dtypes of the outvars.

    Raises:
      ShapeError: the number of arguments is not the number of invars.

    >>> from weft.core import eval_jaxpr
    >>> closed = weft.make_jaxpr(lambda x: jnp.sin(x) * 2)(0.0)
    >>> [y] = eval_jaxpr(closed.jaxpr, closed.consts, 1.0)
    >>> print(y)
    1.6829419
    """
    if len(args) != len(jaxpr.invars):
        raise ShapeError(
            f"eval_jaxpr: there must be one argument for each invar; got {len(args)} "
            f"for {len(jaxpr.invars)}."
        )
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, typed_values(consts, jaxpr.constvars)))
    env.update(zip(jaxpr.invars, args, strict=True))
    around = current.source
    try:
        dying = last_uses(jaxpr)
        stateful = jaxpr.memo["stateful"]
        for eqn, dead in zip(jaxpr.eqns, dying, strict=True):
            ins = [a.read() if type(a) is Literal else env[a] for a in eqn.invars]  # type: ignore
            current.source = inner_source(eqn.source)
            if stateful:  # `bind` knows what to do with references
                outs = eqn.primitive.apply(*ins, **eqn.params)
            else:
                outs = current.trace.process(eqn.primitive, ins, eqn.params)
            enter_results(env, eqn.outvars, outs)
            for v in dead:
                del env[v]
    finally:
        current.source = around
    return [a.read() if type(a) is Literal else env[a] for a in jaxpr.outvars]  # type: ignore


def enter_results(env: dict, variables: Sequence[Any], values: Sequence[Any]) -> None:
    """Enter the results of an equation in `env`; `zip` takes ten times as long for one result."""
    if len(variables) == 1:
        (env[variables[0]],) = values
    else:
        env.update(zip(variables, values, strict=True))


def last_uses(jaxpr: Jaxpr) -> list[list[Var]]:
    """For each equation, the variables that nothing after it reads."""
    found = jaxpr.memo.get("last_uses")
    if found is None:
        seen = {*variables_in(jaxpr.outvars)}
        found = []
        stateful = AbstractRef in map(type, jaxpr.in_avals)
        for eqn in reversed(jaxpr.eqns):
            if type(eqn.primitive.effect) is StateEffect:
                stateful = True
            ends = {*variables_in(eqn.invars), *eqn.outvars} - seen
            seen |= ends
            found.append(list(ends))
        found.reverse()
        jaxpr.memo["last_uses"], jaxpr.memo["stateful"] = found, stateful
    return found


def variables_in(atoms: Iterable[Atom]) -> list[Var]:
    """Return the atoms that are not literals."""
    return [a for a in atoms if type(a) is not Literal]  # type: ignore[misc]


def read_vars(jaxpr: Jaxpr) -> set[Var]:
    """The variables that something in a program reads."""
    return {*variables_in(jaxpr.outvars), *variables_in(a for e in jaxpr.eqns for a in e.invars)}


def bodies_of(eqn: Eqn) -> Sequence[Body]:
    """Return the programs that an equation holds, and how they run."""
    return () if eqn.primitive.memoize_type else eqn.primitive.bodies(eqn.params)


def held_jaxprs(eqn: Eqn) -> list[Jaxpr]:
    """The programs that an equation holds."""
    return [b.jaxpr for b in bodies_of(eqn) if b.jaxpr is not None]


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Return the programs that the equations of a jaxpr hold, one level down.

    They are the branches of `cond`, the bodies of loops, and the functions of calls. Visit the
    programs that those hold by calling `subjaxprs` on each.

    Args:
      jaxpr: a `Jaxpr`.

    Returns:
      An iterator of `Jaxpr`, in the order of the equations.

    >>> from weft.extend import core
    >>> program = weft.make_jaxpr(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(1.0)
    >>> for branch in core.subjaxprs(program.jaxpr):
    ...     print(branch)
    { lambda ; a:f32[]. let b:f32[] = cos a in (b,) }
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """
    for eqn in jaxpr.eqns:
        if not eqn.primitive.memoize_type:
            yield from held_jaxprs(eqn)


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """Return the programs among the parameters of an equation.

    Args:
      params: parameters by name. A program is a `Jaxpr` or a `ClosedJaxpr`, as a value or in a
        tuple or list.

    Returns:
      An iterator of `Jaxpr`. A `ClosedJaxpr` is returned without its constants.

    >>> from weft.extend import core
    >>> program = weft.make_jaxpr(jnp.sin)(1.0)
    >>> [*core.jaxprs_in_params({"body": program, "length": 3})]
    [{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }]
    """
    return (jaxpr for _, jaxpr in programs_in(params))


def uses_axis(prim: Primitive, params: dict[str, Any], name: Any) -> bool:
    """Return True if an application of a primitive refers to a named axis, or a program in it does.

    What a Python function does is not known: it may.
    """
    found = prim.refers(params)
    if prim.memoize_type or name in found.uses or name in found.binds:
        return name in found.uses
    return any(
        b.runs is not Runs.HOST if b.jaxpr is None else jaxpr_uses_axis(b.jaxpr, name)
        for b in prim.bodies(params)
    )


ITSELF = object()  # in the place of a jaxpr in its own memo, which would else keep it alive


def memo_jaxpr(verb: Callable) -> Callable:
    """Make a `verb_jaxpr(jaxpr, *args)` function remember its results on the jaxpr itself.

    Of a ClosedJaxpr the program is transformed, and the values of its constvars stay.
    """

    def remembering(jaxpr: Any, *args: Any, **named: Any) -> Any:
        if named:
            jaxpr, *given = inspect.signature(verb).bind(jaxpr, *args, **named).args
            args = tuple(given)
        if type(jaxpr) is ClosedJaxpr:
            out = remembering(jaxpr.jaxpr, *args)
            return jaxpr.replace(jaxpr=out) if type(out) is Jaxpr else out
        key = (verb, args)
        out = jaxpr.memo.get(key)
        if out is None:
            out = verb(jaxpr, *args)
            jaxpr.memo[key] = ITSELF if out is jaxpr else out
        return jaxpr if out is ITSELF else out

    return functools.wraps(verb)(remembering)


@memo_jaxpr
def jaxpr_uses_axis(jaxpr: Jaxpr, name: Any) -> bool:
    """Return True if any equation of a program refers to a named axis."""
    return any(uses_axis(e.primitive, e.params, name) for e in jaxpr.eqns)
