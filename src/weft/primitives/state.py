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
from weft.core.primitive import Body, Primitive, Zero
from weft.core.ref import AbstractRef, find_mapping, is_ref
from weft.core.stage import close_jaxpr
from weft.core.trace import current, is_eager
from weft.errors import RefError
from weft.options import config
from weft.passes.discharge import (
    RuleRefs,
    discharge_walk,
    has_state,
    holds_state,
    iter_state,
    state_effects,
    thread_state,
)
from weft.primitives.refs import load_ref, store_ref
from weft.util import insert_at
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
    return run_on_values(prim, args, params, concrete)


def run_on_values(
    prim: Primitive, args: Sequence[Any], params: dict[str, Any], concrete: bool
) -> list:
    """Apply a primitive whose programs use references to the values of these references.

    `concrete` is True if operations compute here.
    """
    used = {id(args[i]) for i, _ in iter_state(prim, params)}
    refs = [id(x) if id(x) in used or (concrete and is_ref(x)) else None for x in args]
    marked = [i for i, r in enumerate(refs) if r is not None]
    stored = [i for i in marked if find_mapping(args[i]) is None]
    rules = None if concrete else RuleRefs(tuple(marked), tuple(stored))
    params, order, places = thread_state(prim, params, refs, rules)
    values = [x if r is None else load_ref(x) for x, r in zip(args, refs, strict=True)]
    given = [values[i] if i >= 0 else args[~i] for i in order]
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
        found = current.trace.process(prim, given, params)
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


def writes_of_rule(fwd: Callable, avals: Sequence[Any], name: str) -> list[int]:
    """Return the primals that are references which a forward rule writes to."""
    flat = lambda *primals: fwd(primals, [False] * len(primals))[0]
    staged, consts = stage_function(flat, avals, name)
    kinds = state_effects(staged)
    return [i for i in range(len(avals)) if any(e.writes for e in kinds.get(len(consts) + i, ()))]


def discharge_fwd_rule(
    fwd: Callable,
    refs: Sequence[Hashable | None],
    written: Sequence[int],
    handed: Sequence[int],
    name: str,
) -> Callable:
    """A forward rule that is given values in place of `refs`, which are places among its primals.

    The references `written` hold something at the end, which is given after the other results.
    The references `handed` themselves are the last primals, so that they may be residuals.
    """

    places = [i for i, r in enumerate(refs) if r is not None]

    def on_values(primals: Sequence, perturbed: Sequence[bool]) -> tuple[list, list, Callable]:
        primals, own = primals[: len(refs)], primals[len(refs) :]
        perturbed = perturbed[: len(refs)]
        if any(perturbed[i] for i in places):
            raise refuse_sharing(name, "hold differentiated values", "pass it r[...].")
        found: list = []

        def flat(*given: Any) -> list:
            outs, residuals, pull = fwd(given, perturbed)
            sources = {id(x): i for i, x in enumerate(given)}
            held = {k: sources[id(x)] for k, x in enumerate(residuals) if is_ref(x)}
            found[:] = len(outs), pull, held
            return [*outs, *[x for x in residuals if not is_ref(x)]]

        avals = [
            AbstractRef(typeof(x)) if i in places else typeof(x) for i, x in enumerate(primals)
        ]
        staged, consts = stage_function(flat, avals, name)
        rule, n = close_jaxpr(staged), len(consts)
        effects = state_effects(rule)
        if any(e.writes for i in places if i not in written for e in effects.get(n + i, ())):
            hint = "pass it to vmap with an axis of in_axes."
            raise refuse_sharing(name, "be written by fwd where vmap does not map it", hint)
        count, pull, held = found
        if any(i in places and i not in handed for i in held.values()):
            raise refuse_sharing(
                name, "be made within if bwd uses it, which runs later", "make it outside."
            )
        at = [n + i for i in places]
        finals = tuple([n + i for i in written])
        allowed = RuleRefs(tuple([n + i for i in handed]), tuple(at))
        rule, more = discharge_walk(rule, tuple(at), finals, allowed)
        itself = {**dict(enumerate(primals)), **dict(zip(handed, own, strict=True))}
        both = rule(*consts, *primals, *[itself[i - n] for i in more])
        last = len(both) - len(written)
        residuals = insert_at(both[count:last], {k: itself[i] for k, i in held.items()})
        blank = [Zero(typeof(r).to_tangent()) for r in own]
        pull_all = lambda held, cts: [*pull(held, cts), *blank]
        return [*both[:count], *both[last:]], residuals, pull_all

    on_values.__name__ = getattr(fwd, "__name__", "fwd")
    return on_values
