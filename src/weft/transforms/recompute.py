"""Residuals of a program that was split in two: the stored ones, and the recomputed ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.jaxpr import Eqn, Jaxpr, Var, variables_in
from weft.passes.dependence import find_dependences
from weft.passes.inline import rename_atoms
from weft.primitives.elementwise import Costly, Elementwise, SelectN
from weft.primitives.layout import BroadcastInDim, ConvertElementType, Reshape, Squeeze
from weft.primitives.slicing import Slice
from weft.primitives.varying import Pvary


def recompute_residuals(
    early: Jaxpr, late: Jaxpr, residuals: list[Any], known: Sequence[int], num_outs: int
) -> tuple[list[Any], Jaxpr]:
    """Return `late` with residuals recomputed if that is cheap and needs no more memory.

    So a mask, a broadcast or a scaled copy is not stacked; its operands are. Residuals are
    variables of `early`, which `late` takes first; the remaining ones are returned. `known` counts
    the inputs of `early` by groups.
    """
    makers = {v: e for e in early.eqns for v in e.outvars}
    carry = early.invars[known[0] : known[0] + known[1]]
    at_hand: set[Any] = {v for v in early.invars if v not in carry}
    at_hand |= {*variables_in(early.outvars[known[1] : num_outs])}
    needs = find_dependences(early.replace(outvars=residuals))
    at_hand |= {
        v
        for v, need in zip(residuals, needs, strict=True)
        if need >> known[0] == 0 or v not in makers or not is_cheap(makers[v])
    }
    again: set[Eqn] = set()
    for v in residuals:
        if v not in at_hand:
            eqns, leaves = find_recipe(v, makers, at_hand)
            smaller = sum(u.aval.nbytes for u in leaves) <= v.aval.nbytes
            fits = len(eqns) <= MAX_RECIPE and smaller
            at_hand |= leaves if fits else {v}
            again |= eqns if fits else set()
    if not again:
        return residuals, late
    names: dict[Any, Any] = dict(zip(residuals, late.invars, strict=False))
    left = [v for v in residuals if v in at_hand]
    copies = []
    for eqn in [e for e in early.eqns if e in again]:
        for v in variables_in(eqn.invars):
            if v not in names:
                names[v] = Var(v.aval)
                left.append(v)
        for v in eqn.outvars:
            names.setdefault(v, Var(v.aval))
        invars, outvars = rename_atoms(eqn.invars, names), rename_atoms(eqn.outvars, names)
        copies.append(eqn.replace(invars=invars, outvars=outvars))
    invars = [*[names[v] for v in left], *late.invars[len(residuals) :]]
    return left, late.replace(invars=invars, eqns=[*copies, *late.eqns])


MAX_RECIPE = 8  # equations computed again for one residual, so that this stays cheap
CHEAP = (Elementwise, SelectN, ConvertElementType, BroadcastInDim, Reshape, Squeeze, Slice, Pvary)


def is_cheap(eqn: Eqn) -> bool:
    """Return True if computing a result again costs less than keeping it until it is needed."""
    return isinstance(eqn.primitive, CHEAP) and not isinstance(eqn.primitive, Costly)


def find_recipe(v: Any, makers: dict[Var, Eqn], at_hand: set) -> tuple[set[Eqn], set]:
    """Return the cheap equations that make a variable, and their operands that are not at hand."""
    eqns: set[Eqn] = set()
    leaves = set()
    todo = [v]
    while todo and len(eqns) <= MAX_RECIPE:
        v = todo.pop()
        eqn = makers.get(v)
        if eqn is None or not is_cheap(eqn):
            leaves.add(v)
        elif eqn not in eqns:
            eqns.add(eqn)
            todo += [a for a in variables_in(eqn.invars) if a not in at_hand]
    return eqns, leaves
