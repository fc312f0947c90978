"""Which equations compute each element of their result from the elements at the same place."""

from __future__ import annotations

from weft.core.jaxpr import Eqn
from weft.primitives.layout import BroadcastInDim


def computes_by_element(eqn: Eqn) -> bool:
    """Return True if an equation is written as operations on elements at the same place.

    The shapes of its results are then those of its operands, and no loop is written.
    """
    prim, shapes = eqn.primitive, {a.aval.shape for a in (*eqn.invars, *eqn.outvars)}
    if "by_element" in eqn.params:
        return eqn.params["by_element"]
    return prim.by_element and len(shapes - {()}) <= 1


def fills_with_number(eqn: Eqn) -> bool:
    """Return True if an equation gives an array of one number, which is its operand."""
    return isinstance(eqn.primitive, BroadcastInDim) and not eqn.invars[0].aval.shape
