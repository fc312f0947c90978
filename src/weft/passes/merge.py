"""Equal nested programs made one, so that each is lowered once."""

from __future__ import annotations

from typing import Any

from weft.core.jaxpr import Eqn, Jaxpr, Literal, memo_jaxpr, subjaxprs
from weft.core.source import SourceInfo, user_expression
from weft.core.trace import current, run_once
from weft.options import trace_context
from weft.passes.equal import jaxpr_equal
from weft.passes.rewrite import rewrite_equations

Known = dict[tuple, list[Jaxpr]]
MAX_ALIKE = 256  # programs kept that differ only in parameters and literals; the oldest goes


@memo_jaxpr
def merge_equal_programs(jaxpr: Jaxpr) -> Jaxpr:
    """Return a program that holds equal programs as one object.

    Nested programs are equal if only the names of their variables differ. A function that each
    layer jits anew is then one function of the compiled module. The source lines of the first
    program are used for all. Programs in named scopes are not merged.

    Args:
      jaxpr: a `Jaxpr`.
    Returns:
      An equivalent `Jaxpr`; `jaxpr` itself if nothing changes.

    >>> from weft.passes import merge_equal_programs
    >>> f, g = (weft.jit(lambda x: jnp.sin(x) * 2) for _ in range(2))
    >>> jaxpr = weft.make_jaxpr(lambda x: g(f(x)))(1.0).jaxpr
    >>> first, second = merge_equal_programs(jaxpr).eqns
    >>> first.params["jaxpr"] is second.params["jaxpr"]
    True
    """
    return merge_held(jaxpr, {})


def merge_held(jaxpr: Jaxpr, known: Known) -> Jaxpr:
    """Do as `merge_equal_programs` does, with the facts that are known outside."""
    return rewrite_equations(jaxpr, lambda held: find_equal(held, known), lambda eqn: None)


def find_equal(jaxpr: Jaxpr, known: Known) -> Jaxpr:
    """A program that was met before and is equal, or this one, met now."""
    jaxpr = merge_held(jaxpr, known)
    return jaxpr if has_scopes(jaxpr) else find_first(jaxpr, known)


def find_first(jaxpr: Jaxpr, known: Known) -> Jaxpr:
    """Return the first of the `known` programs that is equal to this one, or add this one."""
    names = tuple([eqn.primitive for eqn in jaxpr.eqns])
    alike = known.setdefault((*jaxpr.in_avals, None, *jaxpr.out_avals, jaxpr.name, names), [])
    for other in alike:
        if other is jaxpr or jaxpr_equal(other, jaxpr):
            return other
    alike.append(jaxpr)
    del alike[:-MAX_ALIKE]
    return jaxpr


@memo_jaxpr
def has_scopes(jaxpr: Jaxpr) -> bool:
    """Return True if an equation of a program, or of one that it holds, is in a named scope."""
    own = any(type(e.source) is SourceInfo for e in jaxpr.eqns)
    return own or any(map(has_scopes, subjaxprs(jaxpr)))


def find_staged(jaxpr: Jaxpr) -> Jaxpr:
    """Return the equal program that was staged before within the same function, or this one.

    A loop over layers may checkpoint or jit a new function for each layer. If their programs are
    one object, each transformation and each pass is applied to it once. So that nothing else
    changes, equal programs have the same source lines, and were staged under the same options.
    """
    known: dict[Any, Any] | None = current.trace.programs
    if known is None or not jaxpr.eqns:
        return jaxpr
    found = known.get(jaxpr)
    if found is None:
        found = known[jaxpr] = find_like(jaxpr, known)
    return found


def find_like(jaxpr: Jaxpr, known: dict[Any, Any]) -> Jaxpr:
    """Return the first of the `known` programs that has the lines of this one, or add this one."""
    context = trace_context()
    types = *jaxpr.in_avals, None, *jaxpr.out_avals
    first = known.setdefault((context, jaxpr.name, len(jaxpr.eqns), types), jaxpr)
    if first is jaxpr:  # its lines are described once another program is like it
        return jaxpr
    try:
        known.setdefault((context, describe_lines(first, known)), first)
        return known.setdefault((context, describe_lines(jaxpr, known)), jaxpr)
    except TypeError:  # parameters without a hash
        return jaxpr


def describe_lines(jaxpr: Jaxpr, known: dict[Any, Any]) -> tuple:
    """Return a key that two programs share if they differ only in the names of variables.

    `known` also keeps what was found for places in the user's program.
    """
    found = jaxpr.memo.get(describe_lines)
    if found is not None:
        return found
    numbers: dict[Any, int] = {v: i for i, v in enumerate((*jaxpr.constvars, *jaxpr.invars))}
    key: list[Any] = [jaxpr.name, *jaxpr.in_avals]
    for eqn in (*jaxpr.eqns, Eqn(None, jaxpr.outvars, {}, ())):  # type: ignore[arg-type]
        place: Any = eqn.source
        scope: tuple = ()
        if type(place) is SourceInfo:
            place, scope = place
        line = known.get(place, known)
        if line is known:
            # within the traced function: the callers of a part of weft, which is kept, differ
            line = known[place] = user_expression(place, run_once.__code__)
        key += eqn.primitive, line, scope, *eqn.params.items()
        for a in eqn.invars:
            if type(a) is Literal:
                x = a.val
                key += a.aval, type(x), x if x and x == x else str(x)  # as -0.0 equals 0.0
            else:
                key.append(numbers[a])
        for v in eqn.outvars:
            numbers[v] = len(numbers)
            key.append(v.aval)
    found = jaxpr.memo[describe_lines] = tuple(key)
    return found
