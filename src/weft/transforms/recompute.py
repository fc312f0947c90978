"""Residuals of a program that was split in two: the stored ones, and the recomputed ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.jaxpr import Eqn, Jaxpr, Var, memo_jaxpr, variables_in
from weft.core.stage import stage
from weft.passes.dependence import find_dependences
from weft.passes.inline import rename_atoms, splice_call
from weft.primitives.elementwise import Costly, Elementwise, SelectN
from weft.primitives.layout import BroadcastInDim, ConvertElementType, Reshape, Squeeze
from weft.primitives.slicing import Slice
from weft.primitives.transcendental import Slope, may_keep_operand
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


@memo_jaxpr
def slopes_of_results(jaxpr: Jaxpr, steps: int) -> Jaxpr:
    """Return the body of a loop with derivatives computed from results, where it pays.

    The derivative of tanh at an operand is then made from the result of tanh, which the way back
    needs as well. So a loop of `steps` steps stacks one array in place of two.
    """
    results: dict[tuple, Var] = {}  # of functions of one operand
    names: dict[Any, Any] = {}
    eqns: list[Eqn] = []
    for old in jaxpr.eqns:
        prim, x = old.primitive, old.invars[0] if old.invars else None
        eqn = old.replace(invars=rename_atoms(old.invars, names)) if names else old
        y = results.get((prim.function, id(x))) if isinstance(prim, Slope) else None
        if y is not None and not may_keep_operand(y.aval, steps):
            formula, _ = stage(lambda y, prim=prim: [prim.of_result(y)], [y.aval])
            names[old.outvars[0]] = splice_call(formula, eqn.replace(invars=[y]), eqns)[0]
            continue
        eqns.append(eqn)
        if isinstance(prim, Costly) and not eqn.params:
            results[prim, id(x)] = eqn.outvars[0]
    return jaxpr.replace(outvars=rename_atoms(jaxpr.outvars, names), eqns=eqns) if names else jaxpr
