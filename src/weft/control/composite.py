"""`composite` as a primitive: a program under a name that compilers may know.

Pytrees and staging are api/composite.py's.
"""

from __future__ import annotations

from weft.control.call import Call
from weft.control.jit import jit_p
from weft.primitives.annotations import MlirAttributes, join_attributes
from weft.xla.hlo import quote_text
from weft.xla.lower import lower_jaxpr


class Composite(MlirAttributes, Call):
    """Call `jaxpr`, or what the compiler has in its place under `name`, `version`, `attributes`.

    Transformed, it calls a program without that name. Source: StableHLO, composite.
    """

    name = "composite"
    dce = None  # type: ignore[assignment]

    def bodies(self, params):
        return [body._replace(label=params["name"]) for body in super().bodies(params)]

    def rebuild(self, params, jaxpr, arrange=None):
        return jit_p, {"jaxpr": jaxpr, "name": params["name"]}

    def lower(self, hlo, *args, attributes, jaxpr, name, version):
        if jaxpr.calls_host:  # functions that do take and give more than their operands
            return lower_jaxpr(hlo, jaxpr, args)
        function = hlo.memo.get((self, jaxpr))
        if function is None:
            write = lambda *xs: lower_jaxpr(hlo, jaxpr, xs)
            function = hlo.memo[self, jaxpr] = hlo.function(name, jaxpr.in_avals, write)
        return hlo.op(
            "stablehlo.composite",
            args,
            jaxpr.out_avals,
            name=quote_text(name),
            composite_attributes=join_attributes(attributes),
            decomposition=f"@{function}",
            version=f"{version} : i32",
        )


composite_p = Composite()
