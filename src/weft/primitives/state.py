"""Primitives that hold programs with state, where they are not staged: the values go through them.

A program that calls functions with rules of their own, which may use references, is run unchanged
written. Else the references are read, the program without references (passes/discharge.py) is bound
under the trace in force, and what comes back is written. A forward rule that shares references
with its function is given values too (`discharge_fwd_rule`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from weft.core.aval import typeof
from weft.core.facts import Runs
from weft.core.jaxpr import Jaxpr, bodies_of, jaxprs_in_params, memo_jaxpr
from weft.core.primitive import Body, Primitive
from weft.core.ref import AbstractRef, is_ref
from weft.core.stage import close_jaxpr
from weft.core.trace import current, is_eager
from weft.errors import RefError
from weft.options import config
from weft.passes.discharge import (
    discharge_jaxpr,
    has_state,
    holds_state,
    iter_state,
    state_effects,
    thread_state,
)
from weft.primitives.refs import load_ref, store_ref
from weft.watch.leaks import stage_function


@memo_jaxpr
def gives_references(jaxpr: Jaxpr) -> bool:
    """Return True if functions with rules of their own are given references in a program."""
    held = [(eqn.primitive, body) for eqn in jaxpr.eqns for body in bodies_of(eqn) if body.jaxpr]
    return any(is_given(prim, body) or gives_references(body.jaxpr) for prim, body in held)


def is_given(prim: Primitive, body: Body) -> bool:
    """Return True if a function with rules of its own is given a reference."""
    own_rules = body.inlines and prim.partial_eval is None
    return own_rules and AbstractRef in map(type, body.jaxpr.in_avals)


def uses_references(params: dict[str, Any]) -> bool:
    """Return True if programs use references, or the rules of functions in them may."""
    return any(has_state(x) or gives_references(x) for x in jaxprs_in_params(params))


def run_stateful(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list:
    """Apply a primitive whose programs use references among the operands, or make them."""
    concrete = is_eager()  # where programs take no references, not even those that no line uses
    body = next(iter(prim.bodies(params)))
    if is_given(prim, body):
        return current.trace.process(prim, args, params)
    if body.runs is Runs.ONCE and not concrete and gives_references(body.jaxpr):
        return body.jaxpr(*args)
    if not concrete and not holds_state(params):
        return current.trace.process(prim, args, params)
    used = {id(args[i]) for i, _ in iter_state(prim, params)}
    refs = [id(x) if id(x) in used or (concrete and is_ref(x)) else None for x in args]
    params, order, places = thread_state(prim, params, refs, concrete)
    values = [x if r is None else load_ref(x) for x, r in zip(args, refs, strict=True)]
    given = [values[i] for i in order]
    own = concrete and not config.disable_jit
    if own:
        written = {~p for p in places if p < 0}
        donated = tuple([k for k, i in enumerate(order) if i in written and args[i].owned])
        # one compiled program, which may take over buffers of operands
        params = dict(params)
        options = params.pop("compiler_options", ())
        name = str(params.get("name", prim.name))
        home = next(jaxprs_in_params(params))
        found = current.trace.run_holder(prim, given, params, home, name, donated, options)
    elif holds_state(params):
        raise RefError(
            f"{prim.name}: the rules of a staged function must not use references from outside; "
            "got one that a custom_vjp function's forward rule does. Hint: pass it as an argument."
        )
    else:
        found = prim.apply(*given, **params)
    outs = []
    for place, y in zip(places, found, strict=True):
        if place >= 0:
            outs.append(y)
        elif own:
            args[~place].hold(y, True)
        else:
            store_ref(args[~place], y)
    return outs


def refuse_sharing(name: str, what: str, hint: str) -> RefError:
    """The error for a reference that a function shares with its rules."""
    return RefError(
        "custom_vjp: in a loop or a branch that is differentiated, a reference that a function "
        f"and its rules share must not {what}; got one of {name}. Hint: {hint}"
    )


def discharge_fwd_rule(
    fwd: Callable, refs: Sequence[Hashable | None], written: Sequence[int], name: str
) -> Callable:
    """A forward rule that is given values in place of `refs`, which are places among its primals.

    What the references `written` hold at the end is given after the other results.
    """

    places = [i for i, r in enumerate(refs) if r is not None]

    def on_values(primals: Sequence, perturbed: Sequence[bool]) -> tuple[list, list, Callable]:
        if any(perturbed[i] for i in places):
            raise refuse_sharing(name, "hold differentiated values", "pass it r[...].")
        found: list = []

        def flat(*given: Any) -> list:
            outs, residuals, pull = fwd(given, perturbed)
            if any(x is given[i] for x in residuals for i in places):
                raise refuse_sharing(name, "be used by bwd as well", "one of its own for bwd.")
            found[:] = len(outs), pull
            return [*outs, *residuals]

        avals = [
            AbstractRef(typeof(x)) if i in places else typeof(x) for i, x in enumerate(primals)
        ]
        staged, consts = stage_function(flat, avals, name)
        rule, n = close_jaxpr(staged), len(consts)
        effects = state_effects(rule)
        if any(e.writes for i in places if i not in written for e in effects.get(n + i, ())):
            raise refuse_sharing(name, "be written only by the rule", "ref.addupdate(r, ..., 0).")
        finals = tuple([n + i for i in written])
        rule = discharge_jaxpr(rule, tuple([n + i for i in places]), finals, False)
        both = rule(*consts, *primals)
        count, pull = found
        last = len(both) - len(written)
        return [*both[:count], *both[last:]], both[count:last], pull

    on_values.__name__ = getattr(fwd, "__name__", "fwd")
    return on_values
