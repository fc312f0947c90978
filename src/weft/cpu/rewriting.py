"""The walk of the passes for CPUs: equations replaced by others, also in programs that are held.

What replaces an equation is a function of its operands, written with operations of the language. It
is staged at the types of the operands and inlined.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from weft import cpu
from weft.core.aval import ShapedArray
from weft.core.facts import Runs
from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var, bodies_of, memo_jaxpr, origin_of
from weft.core.primitive import Body
from weft.core.stage import stage
from weft.core.trace import current, eval_context
from weft.cpu.elements import fills_with_number, only_moves
from weft.cpu.scope import Scope, Target
from weft.passes.dce import with_equations
from weft.passes.inline import rename_atoms
from weft.primitives.constant import stage_whole, write_consts
from weft.primitives.layout import broadcast_in_dim

MAX_MOVES = 64  # equations; larger programs are not tested for whether they only move


class Reading(NamedTuple):
    """A replacement that reads other atoms of the program than the operands of the equation.

    Attributes:
      fun: a function of the atoms, which gives the results.
      atoms: variables that are computed before the equation, and literals.
    """

    fun: Callable[..., Sequence[Any]]
    atoms: Sequence[Atom]


# The replacement of an equation: a function from its operands to its results, a closed jaxpr of
# such a function, or a `Reading`.
Replacement: TypeAlias = Callable[..., Sequence[Any]] | Jaxpr | Reading
# A function from an equation and its scope to the replacement, or to None to keep the equation.
Choice: TypeAlias = Callable[[Eqn, Scope], Replacement | None]


class Rewriter(NamedTuple):
    """A pass that replaces equations: it holds the choice of replacements, and the target."""

    choose: Choice
    target: Target

    def __repr__(self) -> str:
        return getattr(self.choose, "__name__", "Rewriter")

    def rewrite(self, jaxpr: Jaxpr) -> Jaxpr:
        """Return a program whose inputs are computed, after the pass."""
        return rewrite_program(jaxpr, self.choose, self.target, (False,) * len(jaxpr.invars))


@memo_jaxpr
def rewrite_program(
    jaxpr: Jaxpr, choose: Choice, target: Target, given: tuple[bool, ...], alone: bool = False
) -> Jaxpr:
    """Replace the equations of a program, and of the programs that it holds and runs.

    Args:
      jaxpr: a program.
      choose: says what replaces an equation. It is asked again about what replaces one, except
        for the same operation.
      target: what the program may use.
      given: which inputs are arguments of the compiled function that the program is part of.
      alone: whether the program is compiled by itself.

    Returns:
      A program with the same inputs and results; `jaxpr` itself if nothing is replaced.
    """
    arguments = itertools.compress(jaxpr.invars, given)
    rewriter = Rewriter(choose, target)
    moves = alone and len(jaxpr.eqns) <= MAX_MOVES and all(map(only_moves, jaxpr.eqns))
    scope = Scope(target, arguments, jaxpr, alone, moves, rewriter)
    new: dict[Var, Atom] = {}
    eqns = scope.eqns
    for old in jaxpr.eqns:
        eqn = rename_operands(old, new) if new else old
        found = choose(eqn, scope)
        if found is None and eqn.primitive.memoize_type:  # as most are
            eqns.append(eqn)
        else:
            write_equation(eqn, found, scope, new)
        if found is not None and eqn.primitive.form is Form.KEEP:  # read from memory from now on
            pairs = zip(old.invars, old.outvars, strict=True)
            new.update({a: new.get(v, v) for a, v in pairs if type(a) is Var})
    if new:
        return jaxpr.replace(outvars=rename_atoms(jaxpr.outvars, new), eqns=eqns)
    return with_equations(jaxpr, jaxpr.invars, jaxpr.outvars, eqns)


def rename_operands(eqn: Eqn, new: dict[Var, Atom]) -> Eqn:
    """Return an equation that reads the atoms that its operands are now."""
    if new and any([a in new for a in eqn.invars if type(a) is not Literal]):
        return eqn.replace(invars=rename_atoms(eqn.invars, new))
    return eqn


def write_equation(eqn: Eqn, found: Replacement | None, scope: Scope, new: dict[Var, Atom]) -> None:
    """Append an equation, or its replacement `found`, to the equations of the scope.

    Results that are now other atoms are entered in `new`.
    """
    choose = scope.rewriter.choose
    if found is None:
        if not eqn.primitive.memoize_type:
            eqn = rewrite_bodies(eqn, choose, scope)
        scope.eqns.append(eqn)
        return
    fun, atoms = found if isinstance(found, Reading) else (found, eqn.invars)
    body = fun if isinstance(fun, Jaxpr) else stage_replacement(fun, atoms, eqn.primitive.name)
    if any([a.aval.sharded is not None for a in (*atoms, *eqn.outvars)]):
        given = tuple(map(scope.is_argument, atoms))
        body = rewrite_program(body, choose, scope.target, given)
        call = cpu.plain_call.plain_call_p
        eqn = eqn.replace(invars=list(atoms), primitive=call, params={"jaxpr": body})
        scope.eqns.append(eqn)
        return
    # results keep their variables, and with them types that are weak or sharded
    computed = are_computed(body)
    outs = dict(zip(body.outvars, eqn.outvars, strict=True)) if computed else {}
    inner: dict[Var, Atom] = dict(zip(body.invars, atoms, strict=True))
    origin, prim = origin_of(eqn), eqn.primitive
    for step in body.eqns:
        outvars = [outs.get(v) or Var(v.aval) for v in step.outvars]
        invars = rename_atoms(step.invars, inner)
        if len(outvars) == 1:  # a tenth of the time of `zip`
            inner[step.outvars[0]] = outvars[0]
        else:
            inner.update(zip(step.outvars, outvars, strict=True))
        step = Eqn(step.primitive, invars, step.params, outvars, eqn.source)
        step.origin = origin
        again = step.primitive is prim and repeats(step, eqn)
        found = None if again else choose(step, scope)
        if found is None and step.primitive.memoize_type:  # as most are
            scope.eqns.append(step)
        else:
            write_equation(step, found, scope, inner)
    if not computed:
        new.update(zip(eqn.outvars, rename_atoms(body.outvars, inner), strict=True))


def repeats(step: Eqn, eqn: Eqn) -> bool:
    """Return True if a step with the primitive of `eqn` is the same operation on other operands.

    Such a step is not replaced again, which would never end.
    """
    if step.params != eqn.params:
        return False
    types = ([(a.aval.shape, a.aval.dtype) for a in e.invars] for e in (step, eqn))
    return next(types) == next(types)


@memo_jaxpr
def are_computed(body: Jaxpr) -> bool:
    """Return True if a program computes each of its results, and they are distinct."""
    made = {v for eqn in body.eqns for v in eqn.outvars}
    outs = {v for v in body.outvars if type(v) is not Literal}
    return len(outs) == len(body.outvars) and made.issuperset(outs)


def stage_replacement(fun: Callable[..., Sequence[Any]], atoms: Sequence[Atom], name: str) -> Jaxpr:
    """Return the closed jaxpr of a replacement, at the types of `atoms` without shardings."""
    avals = [ShapedArray(a.aval.shape, a.aval.dtype) for a in atoms]
    with eval_context():
        return stage_whole(lambda *xs: list(fun(*xs)), avals, name)


def running_bodies(eqn: Eqn) -> list[Body]:
    """Return the programs that an equation holds and runs on arrays, and that XLA compiles.

    Reducers of scalars and functions of the host are none.
    """
    runs = (Runs.ONCE, Runs.AGAIN, Runs.BRANCH, Runs.LOOP, Runs.CONDITION)
    return [
        b
        for b in bodies_of(eqn)
        if b.jaxpr is not None and (b.runs in runs or b.on_each_device) and not b.is_compiled_apart
    ]


def replace_bodies(eqn: Eqn, rewrite: Callable[[Body], Jaxpr]) -> Eqn:
    """Return an equation whose running programs are what `rewrite` makes of them."""
    bodies = running_bodies(eqn)
    new = {id(b.jaxpr): made for b in bodies if (made := rewrite(b)) is not b.jaxpr}
    if not new:
        return eqn

    def replace(x: Any) -> Any:
        if isinstance(x, tuple):
            made = tuple(map(replace, x))
            return x if all(map(operator.is_, made, x)) else made
        return new.get(id(x), x)

    params = {k: replace(x) if isinstance(x, tuple | Jaxpr) else x for k, x in eqn.params.items()}
    return eqn.replace(params=params)


def rewrite_bodies(eqn: Eqn, choose: Choice, scope: Scope) -> Eqn:
    """Rewrite the programs that an equation holds and runs on arrays; return the new equation."""

    def rewrite(body: Body) -> Jaxpr:
        count, target, alone = len(body.jaxpr.invars), scope.target, False
        if body.on_each_device:
            given, target = (True,) * count, target._replace(each_device=True)
        elif body.names_flow_in:  # a jitted function, which is compiled as a function
            given, alone = (True,) * count, scope.alone
        elif body.runs in (Runs.LOOP, Runs.CONDITION):
            given, target = (False,) * count, target._replace(loops=True)
        else:
            given = tuple([scope.is_argument(eqn.invars[i]) for i in body.operands])
        return rewrite_program(body.jaxpr, choose, target, given, alone)

    return replace_bodies(eqn, rewrite)


def write_in_shape(shape: tuple[int, ...], eqn: Eqn, values: list) -> Sequence[Any]:
    """Return the results of an operation on each element, for arrays of another shape."""
    if fills_with_number(eqn):
        return [broadcast_in_dim(values[0], shape, ())]
    return eqn.primitive.apply(*values, **eqn.params)


def read_inputs(jaxpr: Jaxpr, *args: Any) -> dict:
    """Return the values of the inputs of a program, to start `restage` with."""
    return dict(zip(jaxpr.invars, args, strict=True))


def read_results(jaxpr: Jaxpr, env: dict) -> list:
    """Return the values of the results of a program, to finish `restage` with."""
    return [v.read() if type(v) is Literal else env[v] for v in jaxpr.outvars]


def restage(
    jaxpr: Jaxpr,
    in_avals: Sequence[ShapedArray],
    start: Callable[..., dict],
    write: Callable[[Eqn, list], Sequence[Any]],
    finish: Callable[[dict], list],
) -> Jaxpr:
    """Return a closed program with each equation written again, at its old source location.

    Args:
      jaxpr: a program.
      in_avals: the types of the new program's inputs.
      start: gives the values of the variables that are known at first, from the inputs.
      write: gives the results of an equation, from the equation and its operands.
      finish: gives the results of the program, from the values of all variables.
    """

    def run(*args: Any) -> list:
        env = start(*args)
        trace: Any = current.trace
        for eqn in jaxpr.eqns:
            current.source, count = eqn.source, len(trace.eqns)
            values = [a.read() if type(a) is Literal else env[a] for a in eqn.invars]
            env.update(zip(eqn.outvars, write(eqn, values), strict=True))
            for made in trace.eqns[count:]:
                made.origin = origin_of(eqn)
        return finish(env)

    source = current.source
    try:
        with eval_context():
            made, consts = stage(run, in_avals, jaxpr.name)
    finally:
        current.source = source
    return write_consts(made, consts)
