"""`jit` as a primitive: a program that is compiled as one unit.

The public `jit` is api/jit.py's; run/pipeline.py builds programs and run/programs.py runs them.
"""

from __future__ import annotations

from weft.control.call import Call
from weft.control.compiler_options import split_options
from weft.core.facts import Runs
from weft.core.primitive import Body
from weft.core.trace import current
from weft.transforms.linearize import SavingRule, saving_jaxpr
from weft.xla.lower import lower_call


class Jit(Call, SavingRule):
    """Call `jaxpr`, compiled as one unit, which profiles and errors know by `name`.

    `compiler_options` are pairs of an XLA flag and its value, for a program that is not part of
    another, and a pair of "backend" and a pass from jaxpr to jaxpr, which the program goes through
    before XLA compiles it.
    """

    name = "jit"

    def bodies(self, params):
        jaxpr, label = params["jaxpr"], f"jit({params['name']})"
        body = Body(
            jaxpr, "jaxpr", Runs.ONCE, range(len(jaxpr.invars)), label=label, names_flow_in=True
        )
        options = params.get("compiler_options")
        if options and split_options(options)[0] is not None:
            body = body._replace(is_compiled_apart=True)
        return [body]

    def lower(self, hlo, *args, jaxpr, name, compiler_options=()):
        backend, flags = split_options(compiler_options)
        if flags:
            raise ValueError(
                "jit: compiler_options must be given to the outermost jit, which compiles it all; "
                f"got {dict(flags)} for {name} within another."
            )
        if backend is not None:
            jaxpr = backend(jaxpr)
        return lower_call(hlo, jaxpr, args, name)

    def impl(self, *args, jaxpr, name, compiler_options=()):
        return current.trace.run_jaxpr(jaxpr, args, name, compiler_options)

    def save(self, params, policy):
        early, late, saved = saving_jaxpr(params["jaxpr"], policy)
        return ({**params, "jaxpr": early}, {**params, "jaxpr": late}) if saved else None


jit_p = Jit()
