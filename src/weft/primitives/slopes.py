"""Derivatives of tanh and the logistic function in loops, made of the results of the functions."""

from __future__ import annotations

from typing import Any

from weft.core.jaxpr import Eqn, Jaxpr, Var, memo_jaxpr
from weft.core.stage import stage
from weft.passes.inline import rename_atoms, splice_call
from weft.primitives.elementwise import Costly
from weft.primitives.transcendental import Slope, may_stack_operand


@memo_jaxpr
def slopes_of_results(jaxpr: Jaxpr, steps: Any) -> Jaxpr:
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
        if y is not None and not may_stack_operand(y.aval, steps):
            formula, _ = stage(lambda y, prim=prim: [prim.of_result(y)], [y.aval])
            names[old.outvars[0]] = splice_call(formula, eqn.replace(invars=[y]), eqns)[0]
            continue
        eqns.append(eqn)
        if isinstance(prim, Costly) and not eqn.params:
            results[prim, id(x)] = eqn.outvars[0]
    return jaxpr.replace(outvars=rename_atoms(jaxpr.outvars, names), eqns=eqns) if names else jaxpr
