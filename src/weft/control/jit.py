"""`jit` as a primitive: a call of a program that is compiled as one unit.

The public `jit` is api/jit.py's; what builds and runs programs is xla/building.py and xla/run.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.jaxpr import Eqn, Jaxpr
from weft.core.primitive import (
    Linear,
    Primitive,
    Zero,
    cotangents_of,
    moving,
    solved_for,
    tangents_of,
)
from weft.core.trace import current
from weft.passes.dce import dce_jaxpr
from weft.transforms.batch import batch_jaxpr
from weft.transforms.check import checked_jaxpr
from weft.transforms.jvp import jvp_jaxpr
from weft.transforms.linearize import residual_values, saving_jaxpr, split_jaxpr
from weft.transforms.transpose import backward_jaxpr
from weft.util import merge, partition, select_masked
from weft.xla.lower import lower_call
from weft.xla.run import run_jaxpr


class Jit(Primitive):
    """Call `jaxpr`, compiled as one unit. Every rule transforms the program it holds."""

    name = "pjit"
    memoize_type = False
    names_flow_in = True  # printed with the names its operands and results have outside

    def abstract_eval(self, *avals, jaxpr, **params):
        return jaxpr.out_avals

    def path_name(self, params):
        return f"jit({params['name']})"

    def lower(self, hlo, *args, jaxpr, name):
        return lower_call(hlo, jaxpr, args, name)

    def steps(self, *args, jaxpr, **params):
        yield jaxpr, args

    def impl(self, *args, jaxpr, name):
        return run_jaxpr(jaxpr, args, name)

    def jvp(self, primals, tangents, *, jaxpr, **params):
        both, out_moved = jvp_jaxpr(jaxpr, moving(tangents))
        given = [t for t in tangents if type(t) is not Zero]
        outs = self.bind(*primals, *given, jaxpr=both, **params)
        n = len(jaxpr.outvars)
        return outs[:n], tangents_of(outs[:n], outs[n:], out_moved)

    def partial_eval(self, trace, unknown, args, params):
        early, late, out_unknown, sources = split_jaxpr(params["jaxpr"], tuple(unknown))
        known, held = partition(unknown, args)
        try:
            current.trace = trace.parent
            outs = self.bind(*known, **{**params, "jaxpr": early})
        finally:
            current.trace = trace
        n_known = len(out_unknown) - sum(out_unknown)
        residuals = residual_values(sources, known, outs[n_known:])
        later = trace.later.process(self, [*residuals, *held], {**params, "jaxpr": late})
        return merge(out_unknown, outs[:n_known], later)

    def transpose(self, cts, *args, jaxpr, **params):
        back, out_moved = backward_jaxpr(jaxpr, solved_for(args), moving(cts))
        values = [x for x in args if type(x) is not Linear]
        given = [c for c in cts if type(c) is not Zero]
        grads = self.bind(*values, *given, jaxpr=back, **params)
        return cotangents_of(args, grads, out_moved)

    def batch(self, axis, args, dims, *, jaxpr, **params):
        mapped, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims))
        return self.bind(*args, jaxpr=mapped, **params), out_dims

    def checked(self, trace, args, params):
        program = checked_jaxpr(params["jaxpr"], trace.errors)
        return trace.absorb(program, self.bind(*args, **{**params, "jaxpr": program.jaxpr}))

    def jetted(self, trace, args, params):
        return params["jaxpr"](*args)

    def saving(self, params, policy):
        early, late, saved = saving_jaxpr(params["jaxpr"], policy)
        return ({**params, "jaxpr": early}, {**params, "jaxpr": late}) if saved else None

    def uses_axis(self, name, params):
        return jaxpr_uses_axis(params["jaxpr"], name)

    def dce(self, eqn, live):
        return live_call(eqn, live)


jit_p = Jit()


def live_call(
    eqn: Eqn,
    live: Sequence[bool],
    name: str = "jaxpr",
    of_operands: Sequence[str] = (),
    of_results: Sequence[str] = (),
) -> Eqn | None:
    """A call without what nobody reads; None where nothing is left of it.

    The parameter `name` is the program; those of the others have an entry for each operand or each
    result.
    """
    jaxpr, used = dce_jaxpr(eqn.params[name], tuple(live), False)
    if not jaxpr.eqns and not jaxpr.outvars:
        return None
    params = {**eqn.params, name: jaxpr}
    params |= {k: tuple(select_masked(params[k], used)) for k in of_operands}
    params |= {k: tuple(select_masked(params[k], live)) for k in of_results}
    invars, outvars = select_masked(eqn.invars, used), select_masked(eqn.outvars, live)
    return eqn.replace(invars=invars, outvars=outvars, params=params)


def jaxpr_uses_axis(jaxpr: Jaxpr, name: Any) -> bool:
    """Whether any equation of a program refers to the named axis."""
    key = ("uses_axis", name)
    found = jaxpr.memo.get(key)
    if found is None:
        found = any(e.primitive.uses_axis(name, e.params) for e in jaxpr.eqns)
        jaxpr.memo[key] = found
    return found
