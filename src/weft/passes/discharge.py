"""Discharge: references of a program become values.

A reference that is passed in becomes an array, and its final contents become a result.
primitives/refs.py has the operations on references. The rule `discharge` of a primitive that holds
programs passes values into and out of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, jaxprs_in_params, memo_jaxpr, variables_in
from weft.core.primitive import Primitive
from weft.core.ref import MAKE, AbstractRef, StateEffect
from weft.core.source import inner_source, source_line
from weft.core.stage import StagedTracer, StageTrace, run_staged
from weft.core.trace import current
from weft.errors import DeletedError, RefError
from weft.passes.inline import inline_calls

Kinds = frozenset[StateEffect]


@memo_jaxpr
def has_state(jaxpr: Jaxpr) -> bool:
    """Return True if a program, or one that it holds, makes, reads or writes references."""
    return any(
        type(eqn.primitive.effect) is StateEffect or holds_state(eqn.params)
        for eqn in jaxpr.eqns
        if not eqn.primitive.memoize_type  # else it holds nothing
    )


def holds_state(params: dict[str, Any]) -> bool:
    """Return True if any program among the parameters of an equation has state."""
    return any(map(has_state, jaxprs_in_params(params)))


@memo_jaxpr
def state_effects(jaxpr: Jaxpr) -> dict[int, Kinds]:
    """Return the effects of a program on the references that it is passed.

    The effects tell which references a program reads and which references it writes to, in the
    program itself and in the programs that it holds, such as bodies of loops.

    Args:
      jaxpr: a `Jaxpr`.
    Returns:
      A dict from the position of an input, an int, to a frozenset of effects. Constvars count
      before the inputs. References without effects have no entry.

    >>> from weft.ref import new_ref, state_effects
    >>> def f(ref, x):
    ...     ref[...] = x
    >>> jaxpr = weft.make_jaxpr(f)(new_ref(0.0), 2.0).jaxpr
    >>> state_effects(jaxpr)
    {0: frozenset({Write})}
    """
    kinds: dict[Any, set[StateEffect]] = {}
    for eqn in jaxpr.eqns:
        for i, effect in iter_state(eqn.primitive, eqn.params):
            kinds.setdefault(eqn.invars[i], set()).add(effect)
    inputs = enumerate([*jaxpr.constvars, *jaxpr.invars])
    return {i: frozenset(kinds[v]) for i, v in inputs if v in kinds}


def iter_state(prim: Primitive, params: dict[str, Any]) -> Iterator[tuple[int, StateEffect]]:
    """Return the effects of an application on its operands that are references, by position."""
    if type(prim.effect) is StateEffect and prim.effect is not MAKE:
        yield 0, prim.effect
    if not prim.memoize_type and holds_state(params):
        for body in prim.bodies(params):
            if body.jaxpr is not None and has_state(body.jaxpr):
                places = body.operands or range(len(body.jaxpr.invars))
                for i, kinds in state_effects(body.jaxpr).items():
                    yield from ((places[i], e) for e in kinds)


class RuleRefs(NamedTuple):
    """The references that the rules of functions in a program may use, as places of its inputs.

    A program that is differentiated keeps the calls of functions with rules of their own.

    Attributes:
      given: the references that a backward rule may be given. It runs when the program has ended,
        so that it needs the reference itself beside the value that goes through the program.
      stored: the references that a forward rule may write to.
    """

    given: tuple[int, ...]
    stored: tuple[int, ...]

    def among(self, operands: Sequence[int | None]) -> RuleRefs:
        """Return the same references as places among `operands`, which are places here."""
        place = lambda chosen: tuple([k for k, i in enumerate(operands) if i in chosen])
        return RuleRefs(*map(place, self))


@memo_jaxpr
def rule_writes(jaxpr: Jaxpr) -> frozenset[int]:
    """Return the inputs that are references which forward rules in a program write to."""
    written = {
        eqn.invars[i]
        for eqn in jaxpr.eqns
        if not eqn.primitive.memoize_type and any(type(a.aval) is AbstractRef for a in eqn.invars)
        for i in iter_rule_writes(eqn.primitive, eqn.params)
    }
    return frozenset(i for i, v in enumerate(jaxpr.invars) if v in written)


def iter_rule_writes(prim: Primitive, params: dict[str, Any]) -> Iterator[int]:
    """Return the operands that are references which forward rules in an application write to."""
    if hasattr(prim, "rule_writes"):
        yield from [i + params["num_consts"] for i in prim.rule_writes(params)]
    for body in prim.bodies(params):
        if body.jaxpr is not None:
            places = body.operands or range(len(body.jaxpr.invars))
            yield from [places[i] for i in rule_writes(body.jaxpr)]


def discharge_state(
    jaxpr: Jaxpr, should_discharge: Sequence[bool] | bool = True
) -> tuple[Jaxpr, tuple[int, ...]]:
    """Return a program on arrays in place of a program on references.

    The new program has no side effects: reads become slices, and writes become updates of arrays.
    Transformations that have no rules for references may be applied to it. References that the
    program itself makes are always replaced.

    Args:
      jaxpr: a `Jaxpr` without constvars, some of whose inputs are references.
      should_discharge: the inputs to replace. A sequence of bools, one for each input, or a bool
        for all. Inputs that are not references are not changed. The default is True.

    Returns:
      A pair of the new `Jaxpr` and a tuple of ints. The replaced inputs are arrays. The ints are
      the positions of the replaced inputs that the program writes to. Their final values come after
      the other results, in this order.

    >>> from weft.ref import discharge_state, new_ref
    >>> def f(ref, x):
    ...     ref[...] = x
    ...     return x + 1
    >>> jaxpr = weft.make_jaxpr(f)(new_ref(0.0), 2.0).jaxpr
    >>> values, written = discharge_state(jaxpr)
    >>> print([str(aval) for aval in values.in_avals], written)
    ['f32[]', 'f32[]'] (0,)
    >>> print([float(y) for y in weft.core.eval_jaxpr(values, [], 0.0, 2.0)])
    [3.0, 2.0]
    """
    marks = should_discharge
    marks = marks if isinstance(marks, Sequence) else (marks,) * len(jaxpr.invars)
    refs = [i for i, a in enumerate(jaxpr.in_avals) if type(a) is AbstractRef and marks[i]]
    effects = state_effects(jaxpr)
    written = tuple(i for i in refs if any(e.writes for e in effects.get(i, ())))
    return discharge_jaxpr(jaxpr, tuple(refs), written), written


def discharge_jaxpr(
    jaxpr: Jaxpr, refs: tuple[int, ...] = (), finals: tuple[int, ...] = ()
) -> Jaxpr:
    """`jaxpr` with arrays for the inputs `refs`, and what `finals` of them hold as last results.

    It is for nothing else but to be lowered: custom rules are not kept.
    """
    return discharge_walk(jaxpr, refs, finals, None)[0]


@memo_jaxpr
def discharge_walk(
    jaxpr: Jaxpr, refs: tuple[int, ...], finals: tuple[int, ...], rules: RuleRefs | None
) -> tuple[Jaxpr, list[int]]:
    """Return the program of `discharge_jaxpr`, and which references are its last inputs.

    These are for backward rules, where `rules` allows. If `rules` is None, no rule is kept.
    """
    if rules is None:
        jaxpr = inline_calls(jaxpr)
    trace = StageTrace(None, jaxpr.name)
    work = Discharge(trace, jaxpr.invars, rules)
    for i, v in enumerate(jaxpr.invars):
        if i in refs:
            work.refs.add(v)
            work.env[v] = trace.new_arg(v.aval.inner_aval)  # type: ignore[attr-defined]
        else:
            trace.args.append(v)
            work.env[v] = StagedTracer(trace, v.aval, v)
    work.env.update({v: StagedTracer(trace, v.aval, v) for v in jaxpr.constvars})

    def write() -> list:
        for eqn in jaxpr.eqns:
            current.source = inner_source(eqn.source)
            work.step(eqn)
        outs = [a if type(a) is Literal else trace.atom(work.read(a)) for a in jaxpr.outvars]
        return [*outs, *[trace.atom(work.read(jaxpr.invars[i])) for i in finals]]

    outvars = run_staged(trace, write, ())
    if trace.consts:
        raise NotImplementedError("discharge: an index must not use arrays of its own.")
    program = Jaxpr(jaxpr.constvars, trace.args, outvars, trace.eqns, name=jaxpr.name)
    return program, [*map(jaxpr.invars.index, work.handed)]


class Discharge:
    """One walk, with each variable's value. For a variable in `refs` it is the present array."""

    def __init__(self, trace: StageTrace, invars: Sequence[Var], rules: RuleRefs | None):
        self.trace = trace
        self.rules = rules
        self.env: dict[Any, Any] = {}
        self.refs: set[Any] = set()
        self.given = {v: i for i, v in enumerate(invars)}
        self.ended: set[Any] = set()
        self.handed: dict[Any, Any] = {}  # references that are inputs beside their values

    def read(self, atom: Any) -> Any:
        """The value of an atom."""
        if type(atom) is Literal:
            return atom.read()
        if atom in self.ended:
            place = source_line(current.source)
            raise DeletedError(
                f"Ref: must not be used after it was freed; got a {atom.aval}"
                f"{' at ' + place if place else ''}. Hint: use what freeze gives."
            )
        return self.env[atom]

    def rules_of(self, refs: Sequence[Any]) -> RuleRefs | None:
        """The references among operands that rules may use. Rules may write to those made here."""
        if self.rules is None:
            return None
        places = [self.given.get(r) for r in refs]
        within = [r in self.refs and p is None for r, p in zip(refs, places, strict=True)]
        given, stored = self.rules.among(places)
        return RuleRefs(given, (*stored, *[k for k, w in enumerate(within) if w]))

    def hand(self, ref: Any) -> Any:
        """A reference itself; it becomes an input."""
        if ref not in self.handed:
            self.handed[ref] = self.trace.new_arg(ref.aval)
        return self.handed[ref]

    def step(self, eqn: Eqn) -> None:
        """Write what an equation stands for."""
        prim, params = eqn.primitive, eqn.params
        used = not self.refs.isdisjoint(variables_in(eqn.invars))
        kept = not used and any(type(a.aval) is AbstractRef for a in eqn.invars)
        if type(prim.effect) is StateEffect and not (kept and prim.effect is not MAKE):
            self.touch(eqn)
        elif not prim.memoize_type and (
            holds_state(params) or (used and next(jaxprs_in_params(params), None) is not None)
        ):
            self.thread(eqn)
        else:  # if it has references, it is the linear map that a backward rule transposes
            value = lambda v: self.hand(v) if self.rules and v in self.refs else self.env[v]
            atoms = [a if type(a) is Literal else self.trace.atom(value(a)) for a in eqn.invars]
            self.trace.eqns.append(eqn.replace(invars=atoms))
            for v in eqn.outvars:
                self.env[v] = StagedTracer(self.trace, v.aval, v)

    def touch(self, eqn: Eqn) -> None:
        """An operation on a reference: its results, and what the reference holds then."""
        outs, new = eqn.primitive.run_on_value(*map(self.read, eqn.invars), **eqn.params)  # type: ignore[attr-defined]
        self.env.update(zip(eqn.outvars, outs, strict=True))
        self.refs.update(v for v in eqn.outvars if type(v.aval) is AbstractRef)
        if new is ENDED:
            if eqn.invars[0] in self.given or eqn.invars[0] not in self.refs:
                raise freed_outside(eqn)
            self.ended.add(eqn.invars[0])
        elif new is not None:
            self.env[eqn.invars[0]] = new

    def thread(self, eqn: Eqn) -> None:
        """An equation that holds programs: values go in for references, and come out."""
        for a in eqn.invars:
            self.read(a)
        refs = [a if type(a) is not Literal and a in self.refs else None for a in eqn.invars]
        params, order, places = thread_state(eqn.primitive, eqn.params, refs, self.rules_of(refs))
        operands = [
            self.read(eqn.invars[i]) if i >= 0 else self.hand(eqn.invars[~i]) for i in order
        ]
        outs = self.trace.process(eqn.primitive, operands, params)
        for place, y in zip(places, outs, strict=True):
            self.env[eqn.outvars[place] if place >= 0 else eqn.invars[~place]] = y


class Ended:
    """Return the result of `apply` for the value of a reference that it ends."""


ENDED = Ended()


def freed_outside(eqn: Eqn) -> RefError:
    """The error for a reference that is freed by a function which it was passed to."""
    place = source_line(eqn.source)
    return RefError(
        f"{eqn.primitive}: a reference must be freed where it was made; got a "
        f"{eqn.invars[0].aval} from outside of a traced function{' at ' + place if place else ''}. "
        "Hint: r[...] to read it."
    )


def thread_state(
    prim: Primitive, params: dict[str, Any], refs: Sequence[Hashable | None], rules: RuleRefs | None
) -> tuple[dict[str, Any], Sequence[int], Sequence[int]]:
    """An application with references, as one without.

    `refs` has, for each operand that is a reference to be replaced, what tells it from others, else
    None. Returned: the parameters; the operands in their new order, with ~i for the reference
    operand i itself, beside its value; and for each new result its place among the results before,
    or ~i where it is what the reference operand i holds then. `rules` are places of operands.
    """
    names = {r: i for i, r in reversed([*enumerate(refs)]) if r is not None}
    same = tuple([None if r is None else names[r] for r in refs])
    home = next(jaxprs_in_params(params))
    key = ("discharge", prim, tuple(params.items()), same, rules)
    found = home.memo.get(key)
    if found is None:
        if prim.discharge is None:
            raise prim.missing("discharge")
        written = {i for i, e in iter_state(prim, params) if e.writes and refs[i] is not None}
        if rules is not None and rules.stored:
            by_rules = iter_rule_writes(prim, params)
            written.update(i for i in by_rules if i in rules.stored and refs[i] is not None)
        verb = DischargeBody({i for i, r in enumerate(refs) if r is not None}, rules)
        found = home.memo[key] = prim.discharge(params, same, sorted(written), verb)
    return found


class DischargeBody:
    """Replaces the references `refs`, which are operands of an application, in its programs."""

    def __init__(self, refs: set[int], rules: RuleRefs | None):
        self.refs = refs
        self.rules = rules

    @property
    def given(self) -> list[int]:
        """Return the references that a backward rule may be given."""
        return sorted(self.refs.intersection(self.rules.given)) if self.rules else []

    def __call__(
        self,
        jaxpr: Jaxpr,
        operands: Sequence[int],
        finals: Sequence[int] = (),
        keeps_rules: bool = True,
    ) -> tuple[Jaxpr, list[int]]:
        """Return a program whose inputs are some operands, and which gives `finals` at the end.

        Also returned: the operands that are references and its last inputs, for backward rules.
        """
        refs = tuple([k for k, i in enumerate(operands) if i in self.refs])
        rules = self.rules.among(operands) if self.rules and keeps_rules else None
        last = tuple(map(operands.index, finals))
        body, handed = discharge_walk(jaxpr, refs, last, rules)
        return body, [operands[k] for k in handed]
