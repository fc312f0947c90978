"""Questions about the elements of equations, answered by facts of their primitives."""

from __future__ import annotations

from weft.core.facts import LIGHT, Cost, Elements
from weft.core.jaxpr import Eqn
from weft.core.primitive import Primitive
from weft.cpu.formula import Formula
from weft.primitives.bits import BitcastConvertType
from weft.primitives.elementwise import Comparison, Elementwise, SelectN
from weft.primitives.families import LinearByElement

FAMILIES = (BitcastConvertType, Elementwise, LinearByElement, SelectN)
FUSED = LIGHT | {Cost.JOIN}


def computes_by_element(eqn: Eqn) -> bool:
    """Return True if an equation is lowered to elementwise operations.

    Its results then have the shape of its operands, and no loop is written.
    """
    prim = eqn.primitive
    if isinstance(prim, Formula):
        return eqn.params["by_element"]
    if not isinstance(prim, FAMILIES) or prim.cost is Cost.ITERATIVE:
        return False
    shape = eqn.outvars[0].aval.shape
    return all(a.aval.shape in ((), shape) for a in eqn.invars)


def only_moves(eqn: Eqn) -> bool:
    """Return True if an equation only moves, repeats, joins or converts elements."""
    prim = eqn.primitive
    moves = prim.elements in (Elements.MOVED, Elements.CONVERTED)
    return moves or prim.cost in (Cost.JOIN, Cost.PART)


def fills_with_number(eqn: Eqn) -> bool:
    """Return True if an equation gives an array of one number, which is its operand."""
    prim = eqn.primitive
    moves = prim.elements is Elements.MOVED and prim.cost is Cost.FREE and len(eqn.invars) == 1
    return moves and not eqn.invars[0].aval.shape and bool(eqn.outvars[0].aval.shape)


def chooses_by_element(prim: Primitive) -> bool:
    """Return True if a primitive chooses elements of operands by the elements of the first one."""
    return prim.elements is Elements.PLACED and prim.cost is Cost.CHEAP


def find_direction(eqn: Eqn | None) -> str:
    """Return how an equation compares numbers, such as "LE"; "" for others, or if there is none."""
    if eqn is None or not isinstance(eqn.primitive, Comparison) or eqn.primitive.is_total:
        return ""
    return eqn.primitive.direction


def is_fused(eqn: Eqn) -> bool:
    """Return True if XLA computes the results of an equation within the loop that reads them."""
    prim = eqn.primitive
    return isinstance(prim, FAMILIES) or prim.elements is Elements.MOVED or prim.cost in FUSED
