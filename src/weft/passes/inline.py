"""Inlining: programs in place of the calls of them."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var, bodies_of, memo_jaxpr
from weft.core.source import nested_source


@memo_jaxpr
def inline_calls(jaxpr: Jaxpr, jits: bool = False) -> Jaxpr:
    """Return `jaxpr` with programs in place of the equations that hold them, if a body `inlines`.

    With `jits`, jitted functions are inlined too.
    """
    bodies = [
        None
        if e.primitive.memoize_type  # as for most, which hold nothing
        else next((b.jaxpr for b in bodies_of(e) if b.inlines or (jits and b.names_flow_in)), None)
        for e in jaxpr.eqns
    ]
    if not any(body is not None for body in bodies):
        return jaxpr
    new: dict[Var, Atom] = {}
    eqns: list[Eqn] = []
    for eqn, body in zip(jaxpr.eqns, bodies, strict=True):
        eqn = eqn.replace(invars=rename_atoms(eqn.invars, new)) if new else eqn
        if body is None:
            eqns.append(eqn)
        else:
            outs = splice_call(inline_calls(body, jits), eqn, eqns)
            new.update(zip(eqn.outvars, outs, strict=True))
    return jaxpr.replace(outvars=rename_atoms(jaxpr.outvars, new), eqns=eqns)


def splice_call(body: Jaxpr, call: Eqn, eqns: list[Eqn]) -> list[Atom]:
    """Add the equations of `body` to `eqns` in place of `call`, with variables of their own.

    They are in the scopes of the call. Returned are the results.
    """
    new: dict[Var, Atom] = dict(zip(body.invars, call.invars, strict=True))
    scope = call.source_info.scope
    for eqn in body.eqns:
        outvars = [type(v)(v.aval) for v in eqn.outvars]
        source = nested_source(scope, eqn.source)
        eqns.append(
            eqn.replace(invars=rename_atoms(eqn.invars, new), outvars=outvars, source=source)
        )
        new.update(zip(eqn.outvars, outvars, strict=True))
    return rename_atoms(body.outvars, new)


def rename_atoms(atoms: Sequence[Atom], new: dict[Var, Atom]) -> list[Atom]:
    return [a if type(a) is Literal else new.get(a, a) for a in atoms]  # type: ignore[arg-type]
