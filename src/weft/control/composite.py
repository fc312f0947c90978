"""`composite` as a primitive: a program under a name that compilers may know.

Pytrees and staging are api/composite.py's.
"""

from __future__ import annotations

from weft.control.call import Call
from weft.control.jit import jit_p
from weft.xla.lower import lower_jaxpr


class Composite(Call):
    """Call `jaxpr`, or what the compiler has in its place under `name`, `version`, `attributes`.

    `attributes` are pairs of a name and a text. Transformed, it is a call of a program without that
    name: what is known by the name is the operation itself. Source: StableHLO, composite.
    """

    name = "composite"
    dce = None  # type: ignore[assignment]

    def bodies(self, params):
        (body,) = super().bodies(params)
        return [body._replace(label=params["name"])]

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
            name=f'"{name}"',
            composite_attributes=f"{{{', '.join(f'{k} = {text}' for k, text in attributes)}}}",
            decomposition=f"@{function}",
            version=f"{version} : i32",
        )


composite_p = Composite()
