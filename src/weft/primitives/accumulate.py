"""Sums of cotangents in place: `x + (zeros with u written to them)` becomes x with u added there.

The cotangent of a read element is zero elsewhere, and reverse mode adds it to others. In the body
of a loop that costs an array for each element read; in place it costs an element.
"""

from __future__ import annotations

from typing import Any

from weft.core.facts import Cost
from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, memo_jaxpr
from weft.primitives.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p
from weft.primitives.elementwise import add_p
from weft.primitives.families import Part
from weft.util import has_symbolic_size

MIN_RATIO = 4  # the smallest ratio of the sizes of an array and an addend in place


@memo_jaxpr
def add_in_place(jaxpr: Jaxpr) -> Jaxpr:
    """Return `jaxpr` with sums rewritten to update in place.

    A sum is rewritten if its addend is an array of zeros that holds a small array, and nothing else
    uses the addend. The equations that made the addend become dead code.
    """
    if not any(hasattr(eqn.primitive, "find_part") for eqn in jaxpr.eqns):
        return jaxpr
    found = Sums(jaxpr)
    eqns: list[Eqn] = []
    for eqn in jaxpr.eqns:
        eqns += found.write(eqn) if is_sum(eqn) else [eqn]
    return jaxpr.replace(eqns=eqns) if len(eqns) > len(jaxpr.eqns) or found.changed else jaxpr


def is_sum(eqn: Eqn | None) -> bool:
    """Return True if an equation adds two operands."""
    return eqn is not None and eqn.primitive is add_p


class Sums:
    """The sums of a program."""

    def __init__(self, jaxpr: Jaxpr):
        self.makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
        self.uses: dict[Any, list] = {}  # by variable, the equations that read it; None: a result
        self.changed = False
        readers = [(None, jaxpr.outvars), *[(eqn, eqn.invars) for eqn in jaxpr.eqns]]
        for eqn, atoms in readers:
            for a in atoms:
                if type(a) is not Literal:
                    self.uses.setdefault(a, []).append(eqn)

    def find_terms(self, atom: Any) -> list:
        """Return the terms of an atom that is a sum and is used for nothing else."""
        eqn = None if type(atom) is Literal else self.makers.get(atom)
        if not is_sum(eqn) or len(self.uses[atom]) > 1:
            return [atom]
        return [t for a in eqn.invars for t in self.find_terms(a)]

    def write(self, eqn: Eqn) -> list[Eqn]:
        """An equation that adds, or those that add the parts in place."""
        (out,) = eqn.outvars
        readers = self.uses.get(out, [None])
        if len(readers) == 1 and is_sum(readers[0]):
            return [eqn]  # a part of another sum
        terms = [t for a in eqn.invars for t in self.find_terms(a)]
        parts = [self.find_update(t, out) for t in terms]
        whole = [t for t, p in zip(terms, parts, strict=True) if p is None]
        if not whole or len(whole) == len(terms):
            return [eqn]
        self.changed = True
        eqns = []
        for t in whole[1:]:
            eqns.append(eqn.replace(invars=[whole[0], t], outvars=[Var(out.aval)]))
            whole[0] = eqns[-1].outvars[0]
        x = whole[0]
        for part in (p for p in parts if p is not None):
            eqns += write_update(eqn, x, *part)
            (x,) = eqns[-1].outvars
        return [*eqns[:-1], eqns[-1].replace(outvars=[out])]

    def find_update(self, atom: Any, x: Any) -> tuple[Eqn, Part] | None:
        """Return the equation that writes a small array into zeros like x, and its part."""
        eqn = None if type(atom) is Literal else self.makers.get(atom)
        if eqn is None or len(self.uses[atom]) > 1 or atom.aval.shape != x.aval.shape:
            return None
        find_part = getattr(eqn.primitive, "find_part", None)
        part = None if find_part is None else find_part(eqn)
        if part is None or not self.is_zeros(part.background):
            return None
        u = part.part
        same = u.aval.dtype == x.aval.dtype and u.aval.varying is x.aval.varying
        sizes = [u.aval.size, x.aval.size]
        known = type(u) is not Literal and not has_symbolic_size(sizes)
        small = known and MIN_RATIO * sizes[0] <= sizes[1]
        return (eqn, part) if same and small else None

    def is_zeros(self, atom: Any) -> bool:
        """Return True if an atom is zero, or an array that repeats a zero."""
        if type(atom) is Literal:
            return bool(atom.val == 0)
        eqn = self.makers.get(atom)
        if eqn is None or eqn.primitive.cost is not Cost.FREE or not eqn.invars:
            return False
        return type(eqn.invars[0]) is Literal and eqn.invars[0].val == 0


def write_update(around: Eqn, x: Any, eqn: Eqn, part: Part) -> list[Eqn]:
    """x with a part added where `eqn` writes it into zeros, from the line of `around`."""
    out, u, starts = Var(x.aval), part.part, part.starts
    if part.adds:
        return [eqn.replace(invars=[x, *starts, u], outvars=[out], source=around.source)]
    old, new = Var(u.aval), Var(u.aval)
    sizes = {"slice_sizes": u.aval.shape}
    make = lambda prim, ins, v, params: around.replace(
        primitive=prim, invars=ins, outvars=[v], params=params
    )
    return [
        make(dynamic_slice_p, [x, *starts], old, sizes),
        make(add_p, [old, u], new, {}),
        make(dynamic_update_slice_p, [x, new, *starts], out, {}),
    ]
