"""The pass that fuses a whole program of cheap operations into calls of kernels.

XLA:CPU gives a program on more than 1,000 elements to another thread, which takes longer to wake
than the program takes. Kernels run where they are called.
"""

from __future__ import annotations

import operator

from weft import cpu
from weft.core.form import Form
from weft.core.jaxpr import Jaxpr, memo_jaxpr
from weft.cpu.cheap_programs import plan_calls
from weft.cpu.scope import HALVES, REDUCING, Target, is_light

MAX_EQUATIONS = 64  # of a program that is looked at

DTYPE_OF = operator.attrgetter("aval.dtype")
FORM_OF = operator.attrgetter("primitive.form")


@memo_jaxpr
def fuse_clusters(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Return a program of kernel calls, or the program itself if XLA should compute it.

    A program is one cluster or none. It is none if a profile has to show its operations one by one,
    or if the program may reuse the buffers of arguments.
    """
    possible = target.kernels and not (target.devices or target.donated or target.located)
    if not possible or jaxpr.constvars or not 0 < len(jaxpr.eqns) <= MAX_EQUATIONS:
        return jaxpr
    if Form.CHOLESKY in map(FORM_OF, jaxpr.eqns):
        jaxpr = cpu.matrices.symmetrize_in_kernels(jaxpr, target)
    if calls := plan_calls(jaxpr):
        return jaxpr.replace(eqns=calls)
    narrow = not HALVES.isdisjoint(map(DTYPE_OF, (*jaxpr.invars, *jaxpr.outvars)))
    reduces = not REDUCING.isdisjoint(map(FORM_OF, jaxpr.eqns)) and not is_light(jaxpr, target)
    if (narrow or reduces) and (call := cpu.row_programs.plan_rows(jaxpr)):
        return jaxpr.replace(eqns=[call])
    return jaxpr
