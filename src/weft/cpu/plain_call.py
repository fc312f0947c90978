"""Calls of programs without shardings on operands that are sharded over a mesh.

rewriting.py imports this module when a program over a mesh with explicit axes is rewritten: calls
have derivatives and batch rules, whose modules a program that only runs does not need.
"""

from __future__ import annotations

from weft.control.call import Call
from weft.xla.hlo import Value
from weft.xla.lower import lower_jaxpr


class PlainCall(Call):
    """Call a program of types without shardings on operands that are sharded over a mesh.

    It replaces an equation with sharded types of operands or results. If its program were inlined,
    the types of intermediate values would say that they are not sharded. Within this call, the
    compiler chooses their shardings.
    """

    name = "plain_call"

    def lower(self, hlo, *values, jaxpr):
        pairs = zip(values, jaxpr.in_avals, strict=True)
        return lower_jaxpr(hlo, jaxpr, [Value(v.name, aval, v.scalar) for v, aval in pairs])


plain_call_p = PlainCall()
