"""Transformations whose rules are compiled programs, as far as eager operations need to know them.

A function that runs as one program is one operation to such a transformation: `as_operation` says
which. The traces themselves are in api/.
"""

from __future__ import annotations

from weft.control.jit import jit_p
from weft.core.jaxpr import Jaxpr
from weft.core.primitive import Primitive
from weft.core.trace import Trace


class RuleTrace(Trace):
    """A family: traces over the bottom, and over each other, whose rules are compiled programs."""

    __slots__ = ()


def as_operation(jaxpr: Jaxpr, name: str) -> tuple[Primitive, dict]:
    """The primitive and parameters that do what a closed jaxpr does: a call, or its only one."""
    eqn = jaxpr.eqns[0] if len(jaxpr.eqns) == 1 else None
    whole = eqn and list(eqn.invars) == jaxpr.invars and list(eqn.outvars) == jaxpr.outvars
    if eqn and whole and eqn.primitive.impl is None:
        return eqn.primitive, eqn.params
    return jit_p, {"name": name, "jaxpr": jaxpr}
