"""Walk along the equations of a program, and into the programs they hold, for passes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from weft.core.jaxpr import Atom, Eqn, Jaxpr, Var, held_jaxprs
from weft.passes.dce import with_equations
from weft.passes.inline import rename_atoms


def rewrite_held(eqn: Eqn, verb: Callable[[Jaxpr], Jaxpr]) -> Eqn:
    """Return an equation with other programs in place of those that it holds and runs."""
    held = {id(p) for p in held_jaxprs(eqn)}
    if not held:
        return eqn

    def rewrite(x: Any) -> Any:
        if isinstance(x, tuple):
            new = tuple(map(rewrite, x))
            return x if all(map(operator.is_, new, x)) else new
        return verb(x) if id(x) in held else x

    params = {k: rewrite(x) if isinstance(x, tuple | Jaxpr) else x for k, x in eqn.params.items()}
    same = all(x is params[k] for k, x in eqn.params.items())
    return eqn if same else eqn.replace(params=params)


def rewrite_equations(
    jaxpr: Jaxpr,
    verb: Callable[[Jaxpr], Jaxpr],
    rewrite: Callable[[Eqn], Eqn | Sequence[Atom] | None],
) -> Jaxpr:
    """Return a program of the results of `rewrite` for each equation; `verb` is for held programs.

    `rewrite` takes the equation with renamed operands. It returns an equation in its place, or the
    values of its results, or None to keep it. Results must have the same types.
    """
    new: dict[Var, Atom] = {}
    eqns: list[Eqn] = []
    for old in jaxpr.eqns:
        eqn = old.replace(invars=rename_atoms(old.invars, new)) if new else old
        if not eqn.primitive.memoize_type:
            eqn = rewrite_held(eqn, verb)
        made = rewrite(eqn)
        if made is None or isinstance(made, Eqn):
            made = made or eqn
            same = all(map(operator.is_, made.invars, old.invars))
            kept = same and made.params is old.params and made.primitive is old.primitive
            eqns.append(old if kept else made)
        else:
            new.update(zip(old.outvars, made, strict=True))
    outvars = rename_atoms(jaxpr.outvars, new) if new else jaxpr.outvars
    if any(a is not b for a, b in zip(outvars, jaxpr.outvars, strict=True)):
        return jaxpr.replace(outvars=outvars, eqns=eqns)
    return with_equations(jaxpr, jaxpr.invars, jaxpr.outvars, eqns)
