"""Which equations compute each element of their result from the elements at the same place."""

from __future__ import annotations

from weft.core.facts import Cost
from weft.core.jaxpr import Eqn
from weft.core.primitive import Primitive
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
    if isinstance(eqn.primitive, Formula):
        return eqn.params["by_element"]
    shapes = {a.aval.shape for a in (*eqn.invars, *eqn.outvars)}
    return is_by_element(eqn.primitive) and len(shapes - {()}) <= 1


def is_by_element(prim: Primitive) -> bool:
    """Return True if a primitive is written as operations on elements at the same place."""
    return isinstance(prim, FAMILIES) and prim.cost is not Cost.ITERATIVE


def fills_with_number(eqn: Eqn) -> bool:
    """Return True if an equation gives an array of one number, which is its operand."""
    return isinstance(eqn.primitive, BroadcastInDim) and not eqn.invars[0].aval.shape
