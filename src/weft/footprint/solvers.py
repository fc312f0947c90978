"""`inline_solvers`: the solvers of linear systems in place of the systems."""

from __future__ import annotations

from typing import Any

from weft.control.linear import LinearSolve, split_operands
from weft.core.jaxpr import Eqn, Jaxpr, memo_jaxpr, subjaxprs
from weft.passes.inline import rename_atoms, splice_call
from weft.passes.rewrite import rewrite_held


@memo_jaxpr
def holds_solver(jaxpr: Jaxpr) -> bool:
    """Return True if a program, or one that it holds, solves a linear system."""
    here = any(isinstance(eqn.primitive, LinearSolve) for eqn in jaxpr.eqns)
    return here or any(map(holds_solver, subjaxprs(jaxpr)))


@memo_jaxpr
def inline_solvers(jaxpr: Jaxpr) -> Jaxpr:
    """Return a program with the solvers in place of linear solves, here and in nested programs.

    It computes the same results. Its derivative is that of the solvers, not of the solutions.
    """
    if not holds_solver(jaxpr):
        return jaxpr
    new: dict[Any, Any] = {}
    eqns: list[Eqn] = []
    for eqn in jaxpr.eqns:
        eqn = rewrite_held(eqn, inline_solvers)
        eqn = eqn.replace(invars=rename_atoms(eqn.invars, new)) if new else eqn
        if not isinstance(eqn.primitive, LinearSolve):
            eqns.append(eqn)
            continue
        consts, b = split_operands(eqn.invars, eqn.params["counts"])
        call = eqn.replace(invars=[*consts[2], *b])
        outs = splice_call(eqn.params["solve"], call, eqns)
        new.update(zip(eqn.outvars, outs, strict=True))
    return jaxpr.replace(outvars=rename_atoms(jaxpr.outvars, new), eqns=eqns)
