"""Equal nested programs made one, so that each is lowered once."""

from __future__ import annotations

from collections.abc import Callable

from weft.core.jaxpr import Jaxpr, held_jaxprs, memo_jaxpr, subjaxprs
from weft.core.source import SourceInfo
from weft.core.stage import StageTrace
from weft.core.trace import current, walk_up
from weft.options import trace_context
from weft.passes.equal import jaxpr_equal
from weft.passes.rewrite import rewrite_equations

Known = dict[tuple, list[Jaxpr]]
MAX_ALIKE = 16  # programs kept that differ only in parameters and literals; the oldest goes


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


def find_first(
    jaxpr: Jaxpr, known: Known, equal: Callable[[Jaxpr, Jaxpr], bool] = jaxpr_equal
) -> Jaxpr:
    """Return the first of the `known` programs that is equal to this one, or add this one."""
    names = tuple([eqn.primitive for eqn in jaxpr.eqns])
    alike = known.setdefault((*jaxpr.in_avals, None, *jaxpr.out_avals, jaxpr.name, names), [])
    for other in alike:
        if other is jaxpr or equal(other, jaxpr):
            return other
    alike.append(jaxpr)
    del alike[:-MAX_ALIKE]
    return jaxpr


def find_staged(jaxpr: Jaxpr) -> Jaxpr:
    """Return the equal program that was staged before within the same function, or this one.

    A loop over layers may checkpoint or jit a new function for each layer. If their programs are
    one object, each transformation and each pass is applied to it once. So that nothing else
    changes, equal programs have the same source lines, and were staged under the same options.
    """
    home = None
    for trace in walk_up(current.trace):
        if type(trace) is StageTrace:
            home = trace
    if home is None or not jaxpr.eqns:
        return jaxpr
    return find_first(jaxpr, home.programs.setdefault(trace_context(), {}), are_same)


def are_same(a: Jaxpr, b: Jaxpr) -> bool:
    """Return True if two programs are equal, and their equations come from the same lines."""
    return jaxpr_equal(a, b) and have_same_sources(a, b)


def have_same_sources(a: Jaxpr, b: Jaxpr) -> bool:
    """Return True if the equations of two equal programs come from the same lines."""
    if a is b:
        return True
    return all(
        x.source == y.source and all(map(have_same_sources, held_jaxprs(x), held_jaxprs(y)))
        for x, y in zip(a.eqns, b.eqns, strict=True)
    )


@memo_jaxpr
def has_scopes(jaxpr: Jaxpr) -> bool:
    """Return True if an equation of a program, or of one that it holds, is in a named scope."""
    own = any(type(e.source) is SourceInfo for e in jaxpr.eqns)
    return own or any(map(has_scopes, subjaxprs(jaxpr)))
