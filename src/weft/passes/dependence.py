"""Find which results of a program depend on which of its inputs."""

from __future__ import annotations

from weft.core.jaxpr import Jaxpr, Literal, Var, held_jaxprs, memo_jaxpr
from weft.core.primitive import Primitive
from weft.passes.dce import has_effects


@memo_jaxpr
def find_dependences(jaxpr: Jaxpr, through: bool = True) -> list[int]:
    """Return for each result of a closed jaxpr the inputs it depends on, as a bit mask.

    The results of a primitive that holds programs, or that uses a named axis, count as depending on
    all its operands if `through`, and otherwise on none. So the dependences are an upper bound with
    `through`, and otherwise a lower bound. An operation with effects may depend on anything.
    """
    bits: dict[Var, int] = {v: 1 << i for i, v in enumerate(jaxpr.invars)}
    for eqn in jaxpr.eqns:
        found = -1 if through and has_effects(eqn) else 0
        prim = eqn.primitive
        is_plain = through or (prim.memoize_type and type(prim).refers is Primitive.refers)
        if is_plain or not (held_jaxprs(eqn) or prim.refers(eqn.params).uses):
            for a in eqn.invars:
                if type(a) is not Literal:
                    found |= bits[a]  # type: ignore[index]
        for v in eqn.outvars:
            bits[v] = found
    return [0 if type(a) is Literal else bits[a] for a in jaxpr.outvars]  # type: ignore[index]
