"""Primitives that hold programs with state, where they are not staged: the values go through them.

A program that calls functions with rules of their own, which may use references, is run unchanged
written. Else the references are read, the program without references (passes/discharge.py) is bound
under the trace in force, and what comes back is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.facts import Runs
from weft.core.jaxpr import Jaxpr, bodies_of, jaxprs_in_params, memo_jaxpr
from weft.core.primitive import Body, Primitive
from weft.core.ref import AbstractRef, is_ref
from weft.core.trace import current, is_eager
from weft.errors import RefError
from weft.options import config
from weft.passes.discharge import has_state, holds_state, iter_state, thread_state
from weft.primitives.refs import load_ref, store_ref


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
