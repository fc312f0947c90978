"""Common subexpressions: equal computations are done once."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var, memo_jaxpr
from weft.dtypes import NUMBERS
from weft.passes.dce import has_effects, with_equations
from weft.passes.rewrite import rewrite_held

VALUES = (*NUMBERS, np.generic)


@memo_jaxpr
def cse_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` with equal computations done once, also in the programs that it holds.

    Those with effects are left as they are.
    """
    first: dict[tuple, Sequence[Var]] = {}
    new: dict[Var, Atom] = {}
    eqns: list[Eqn] = []
    for before in jaxpr.eqns:
        eqn = before if before.primitive.memoize_type else rewrite_held(before, cse_jaxpr)
        old = eqn.invars
        invars = [new.get(a, a) if type(a) is not Literal else a for a in old]  # type: ignore
        if not has_effects(eqn):
            atoms = (exact_value(a.val, a.aval) if type(a) is Literal else a for a in invars)
            key = (
                eqn.primitive,
                *atoms,
                None,
                *((k, exact_value(v)) for k, v in eqn.params.items()),
            )
            earlier = first.setdefault(key, eqn.outvars)
            if earlier is not eqn.outvars:
                new.update(zip(eqn.outvars, earlier, strict=True))
                continue
        eqns.append(eqn if all(map(operator.is_, invars, old)) else eqn.replace(invars=invars))
    if not new:
        return with_equations(jaxpr, jaxpr.invars, jaxpr.outvars, eqns)
    outvars = [a if type(a) is Literal else new.get(a, a) for a in jaxpr.outvars]  # type: ignore
    return jaxpr.replace(outvars=outvars, eqns=eqns)


def exact_value(x: Any, kind: Any = None) -> Any:
    """A stand-in for `x` that is equal only for the same value: 0.0, -0.0, 0 and False differ."""
    if isinstance(x, tuple):
        return (type(x), *map(exact_value, x))
    if isinstance(x, VALUES):
        return type(x), kind, repr(x)
    return x
