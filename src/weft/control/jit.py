"""`jit` as a primitive: a program that is compiled as one unit.

The public `jit` is api/jit.py's; run/pipeline.py builds programs and run/programs.py runs them.
"""

from __future__ import annotations

from weft.control.call import Call
from weft.core.facts import Runs
from weft.core.primitive import Body
from weft.core.trace import current
from weft.transforms.linearize import SavingRule, saving_jaxpr
from weft.xla.lower import lower_call


class Jit(Call, SavingRule):
    """Call `jaxpr`, compiled as one unit, which profiles and errors know by `name`.

    `compiler_options` are pairs of an XLA flag and its value, for a program that is not part of
    another.
    """

    name = "jit"

    def bodies(self, params):
        jaxpr, label = params["jaxpr"], f"jit({params['name']})"
        operands = range(len(jaxpr.invars))
        return [Body(jaxpr, "jaxpr", Runs.ONCE, operands, label=label, names_flow_in=True)]

    def lower(self, hlo, *args, jaxpr, name, compiler_options=()):
        if compiler_options:
            raise ValueError(
                "jit: compiler_options must be given to the outermost jit, which compiles it all; "
                f"got {dict(compiler_options)} for {name} within another."
            )
        return lower_call(hlo, jaxpr, args, name)

    def impl(self, *args, jaxpr, name, compiler_options=()):
        return current.trace.run_jaxpr(jaxpr, args, name, compiler_options)

    def save(self, params, policy):
        early, late, saved = saving_jaxpr(params["jaxpr"], policy)
        return ({**params, "jaxpr": early}, {**params, "jaxpr": late}) if saved else None


jit_p = Jit()
