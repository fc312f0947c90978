"""Calling an exported program from another: the primitive that stands for it there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.api.ffi_call import check_registered
from weft.control.scan import bind_scan
from weft.core.aval import typeof
from weft.core.primitive import join_varying
from weft.core.stage import stage_closed
from weft.export.dynamic import INT, DynamicBuilder
from weft.export.lapack_calls import check_lapack_calls
from weft.export.modules import call_module, find_custom_calls, refine_module
from weft.primitives.effects import OpaqueCall
from weft.primitives.layout import move_to_front
from weft.util import merge, partition
from weft.xla.foreign import refuse_private_target
from weft.xla.hlo import Builder, PlaceholderMesh, Value


class CallExported(OpaqueCall):
    """The results, of types `result_avals`, of the exported program `exported`."""

    name = "call_exported"
    memoize_type = False  # a type that is remembered would keep the program

    def describe(self, params):
        return f"the exported {params['exported'].fun_name}"

    def abstract_eval(self, *avals, result_avals, **params):
        varying = join_varying(avals)
        return [a.update(varying=varying) for a in result_avals]

    def lower(self, hlo, *args, exported, result_avals):
        count = len(hlo.devices) or 1
        if exported.nr_devices > 1 and (exported.nr_devices != count or hlo.part is not None):
            raise ValueError(
                f"{exported.fun_name}: an exported program must be called over as many devices as "
                f"it was exported for, {exported.nr_devices}; got {count}. Hint: put arguments "
                "over a mesh, weft.device_put(x, exported.in_shardings_jax(mesh)[0])."
            )
        module, index = exported._module_for(hlo.platform)
        leading = [] if index is None else [index]
        if exported.uses_global_constants and not isinstance(hlo, DynamicBuilder):
            module, leading = refine_module(module, leading, [v.aval for v in args]), []
        check_lapack_calls(exported.fun_name, module)
        for target in find_custom_calls(module):
            refuse_private_target(exported.fun_name, target)
            check_registered(target, hlo.platform)
        shardings = [exported._in_named_shardings[i] for i in exported.module_kept_var_idx]
        args = constrain_lowered(hlo, args, shardings)
        given = [hlo.constant(i, INT) for i in leading]
        outs = call_module(hlo, module, [*given, *args], result_avals)
        return constrain_lowered(hlo, outs, exported._out_named_shardings)

    def batch(self, axis, args, dims, **params):
        """It is called for each element along the mapped axis, in a loop."""
        fixed = [d is None for d in dims]
        rows, consts = partition(fixed, [move_to_front(x, d) for x, d in zip(args, dims)])
        n = len(consts)
        row_avals = [typeof(x).update(shape=typeof(x).shape[1:]) for x in rows]
        call = lambda *xs: self.apply(*merge(fixed, xs[n:], xs[:n]), **params)
        jaxpr, more = stage_closed(call, [*map(typeof, consts), *row_avals])
        how = {"length": axis.size, "reverse": False, "unroll": 1}
        outs = bind_scan(jaxpr, [*more, *consts], [], rows, how)
        return outs, [0] * len(outs)

    def pretty_params(self, params):
        return {"exported": params["exported"].fun_name}


call_exported_p = CallExported()


def constrain_lowered(
    hlo: Builder, values: Sequence[Value], shardings: Sequence[Any]
) -> list[Value]:
    """Constrain values to shardings of meshes without devices; the caller's devices are used."""
    out = []
    for x, s in zip(values, shardings, strict=True):
        if s is not None:
            mesh = hlo.named(PlaceholderMesh(s.mesh.sdy("").removeprefix("sdy.mesh  = ")))
            text = f"#sdy.sharding{s.sdy(x.aval.ndim, mesh)}"
            (x,) = hlo.op("sdy.sharding_constraint", [x], [x.aval], sharding=text)
        out.append(x)
    return out
