"""The pass that fuses a whole program of cheap operations into calls of kernels.

XLA:CPU gives a program on more than 1,000 elements to another thread, which takes longer to wake
than the program takes. Kernels run where they are called.
"""

from __future__ import annotations

import operator

from weft.core.jaxpr import Atom, Eqn, Jaxpr, memo_jaxpr, variables_in
from weft.cpu.alone import KNOWN, plan_calls
from weft.cpu.calls import kernel_equation
from weft.cpu.rows import HALVES, plan_rows
from weft.cpu.scope import Target

MAX_EQUATIONS = 64  # of a program that is looked at

NAME_OF, DTYPE_OF = operator.attrgetter("primitive.name"), operator.attrgetter("aval.dtype")


@memo_jaxpr
def fuse_clusters(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Return the calls of kernels that compute a program; the program itself where XLA is to.

    A program is one cluster or none. Programs whose operations are to be told apart in a profile
    are none, nor are those that may reuse the buffers of arguments.
    """
    possible = target.kernels and not (target.devices or target.donated or target.located)
    if not possible or jaxpr.constvars or not 0 < len(jaxpr.eqns) <= MAX_EQUATIONS:
        return jaxpr
    if KNOWN.issuperset(map(NAME_OF, jaxpr.eqns)) and (calls := plan_calls(jaxpr)):
        return jaxpr.replace(
            eqns=[
                call
                if type(call) is Eqn
                else kernel_equation(call.kernel, call.invars, call.outvars, call.attributes)
                for call in calls
            ]
        )
    halves = not HALVES.isdisjoint(map(DTYPE_OF, (*jaxpr.invars, *jaxpr.outvars)))
    if halves and (plan := plan_rows(jaxpr)):
        attributes, numbers = plan
        operands: list[Atom] = [*jaxpr.invars, *numbers]
        outs = variables_in(jaxpr.outvars)
        return jaxpr.replace(eqns=[kernel_equation("weft_program", operands, outs, attributes)])
    return jaxpr
