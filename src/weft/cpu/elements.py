"""Which equations compute each element of their result from the elements at the same place."""

from __future__ import annotations

from weft.core.facts import Cost
from weft.core.jaxpr import Eqn
from weft.cpu.formula import Formula
from weft.primitives.bits import BitcastConvertType
from weft.primitives.elementwise import Elementwise, SelectN
from weft.primitives.families import LinearByElement
from weft.primitives.layout import BroadcastInDim

FAMILIES = (BitcastConvertType, Elementwise, LinearByElement, SelectN)


def computes_by_element(eqn: Eqn) -> bool:
    """Return True if an equation is written as operations on elements at the same place.

    The shapes of its results are then those of its operands, and no loop is written.
    """
    prim = eqn.primitive
    if isinstance(prim, Formula):
        return eqn.params["by_element"]
    if not isinstance(prim, FAMILIES) or prim.cost is Cost.ITERATIVE:
        return False
    shape = eqn.outvars[0].aval.shape
    return all(a.aval.shape in ((), shape) for a in eqn.invars)


def fills_with_number(eqn: Eqn) -> bool:
    """Return True if an equation gives an array of one number, which is its operand."""
    return isinstance(eqn.primitive, BroadcastInDim) and not eqn.invars[0].aval.shape
