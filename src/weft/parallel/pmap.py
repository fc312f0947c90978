"""`xla_pmap`: one program on several devices, each with an element of the operands.

It is a mapped axis that is spread over devices, not pushed into operations: each rule transforms
the program and binds it again. A pmap within a pmap takes as many devices for each of the outer
one's. Pytrees, the axes of arguments and the choice of devices are api/pmap.py's.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from weft.control.jit import jaxpr_uses_axis, live_call
from weft.core.aval import typeof
from weft.core.jaxpr import Jaxpr, jaxprs_in_params, memo_jaxpr
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
from weft.errors import ShapeError
from weft.mesh.client import default_device, devices_of, more_devices_hint
from weft.mesh.mesh import Mesh
from weft.mesh.sharding import NamedSharding
from weft.mesh.spec import PartitionSpec
from weft.parallel.shard_map import write_manual
from weft.primitives.constant import stage_whole
from weft.primitives.layout import moved_to_front, reduce_sum, reshape
from weft.transforms.batch import Axis, batch_jaxpr, in_scope, unmapped_aval
from weft.transforms.jvp import jvp_jaxpr
from weft.transforms.linearize import residual_values, split_jaxpr
from weft.transforms.transpose import backward_jaxpr
from weft.util import merge, partition, select_masked
from weft.xla.run import run_primitive


class Pmap(Primitive):
    """Run `call_jaxpr` on `axis_size` devices at once, along the axis named `axis_name`.

    Of an operand for which `mapped_invars` is true, each device has one element along the first
    axis; of another, all of it. Results have one more axis in front. `devices` is None for the
    first ones of the platform, and `global_axis_size` where one process runs all of them.
    """

    name = "xla_pmap"
    memoize_type = False

    def abstract_eval(self, *avals, call_jaxpr, axis_size, **params):
        return [unmapped_aval(a, axis_size, 0) for a in call_jaxpr.out_avals]

    def places(self, params):
        return (NamedSharding(mesh_of(params), PartitionSpec()),)

    def uses_axis(self, name, params):
        return name != params["axis_name"] and jaxpr_uses_axis(params["call_jaxpr"], name)

    def impl(self, *args, **params):
        return run_primitive(self, args, params, params["call_jaxpr"])

    def lower(self, hlo, *args, **params):
        mesh, around = hlo.memo.get(write_manual) or (mesh_of(params), ())
        if around is None:
            raise NotImplementedError(
                f"pmap: must not be within a shard_map; got one along {params['axis_name']!r}. "
                "Hint: vmap, or shard_map over one more axis of the mesh."
            )
        own, mapped = mesh.axis_names[len(around)], params["mapped_invars"]
        split = PartitionSpec(own)
        jaxpr = per_device(params["call_jaxpr"], mapped, axis_of(params))
        return write_manual(
            hlo,
            args,
            jaxpr=jaxpr,
            mesh=mesh,
            in_specs=[split if m else PartitionSpec() for m in mapped],
            out_specs=[split] * len(jaxpr.outvars),
            manual_axes=(own,),
            axes=(*around, params["axis_name"]),
        )

    def jvp(self, primals, tangents, *, call_jaxpr, mapped_invars, **params):
        moved = moving(tangents)
        with in_scope([axis_of(params)]):
            both, out_moved = jvp_jaxpr(call_jaxpr, moved)
        given = [t for t in tangents if type(t) is not Zero]
        mapped = (*mapped_invars, *select_masked(mapped_invars, moved))
        outs = self.bind(*primals, *given, call_jaxpr=both, mapped_invars=mapped, **params)
        n = len(call_jaxpr.outvars)
        return outs[:n], tangents_of(outs[:n], outs[n:], out_moved)

    def partial_eval(self, trace, unknown, args, params):
        with in_scope([axis_of(params)]):
            early, late, out_unknown, sources = split_jaxpr(params["call_jaxpr"], tuple(unknown))
        known_mapped, held_mapped = partition(unknown, params["mapped_invars"])
        known, held = partition(unknown, args)
        fields = {**params, "call_jaxpr": early, "mapped_invars": tuple(known_mapped)}
        try:
            current.trace = trace.parent
            outs = self.bind(*known, **fields)
        finally:
            current.trace = trace
        n_known = len(out_unknown) - sum(out_unknown)
        new = outs[n_known:]
        residuals = residual_values(sources, known, new)
        mapped = residual_values(sources, known_mapped, [True] * len(new))
        fields = {**params, "call_jaxpr": late, "mapped_invars": (*mapped, *held_mapped)}
        later = trace.later.process(self, [*residuals, *held], fields)
        return merge(out_unknown, outs[:n_known], later)

    def transpose(self, cts, *args, call_jaxpr, mapped_invars, **params):
        linear, moved = solved_for(args), moving(cts)
        with in_scope([axis_of(params)]):
            back, out_moved = backward_jaxpr(call_jaxpr, linear, moved)
        held, solved = partition(linear, mapped_invars)
        values = [x for x in args if type(x) is not Linear]
        given = [ct for ct in cts if type(ct) is not Zero]
        mapped = (*held, *[True] * len(given))
        grads = self.bind(*values, *given, call_jaxpr=back, mapped_invars=mapped, **params)
        # of an operand that all devices have, each gives its part of the cotangent
        grads = [
            g if m else reduce_sum(g, (0,))
            for g, m in zip(grads, select_masked(solved, out_moved), strict=True)
        ]
        return cotangents_of(args, grads, out_moved)

    def batch(self, axis, args, dims, *, call_jaxpr, mapped_invars, **params):
        # the axis of devices stays in front of what it maps
        args = [
            moved_to_front(x, 1) if m and d == 0 else x
            for x, d, m in zip(args, dims, mapped_invars, strict=True)
        ]
        inner = [
            d if d is None or not m else max(d - 1, 0)
            for d, m in zip(dims, mapped_invars, strict=True)
        ]
        with in_scope([axis_of(params)]):
            mapped, out_dims = batch_jaxpr(call_jaxpr, axis, tuple(inner))
        outs = self.bind(*args, call_jaxpr=mapped, mapped_invars=mapped_invars, **params)
        return outs, [d if d is None else d + 1 for d in out_dims]

    def dce(self, eqn, live):
        return live_call(eqn, live, "call_jaxpr", ["mapped_invars"])


xla_pmap_p = Pmap()


def axis_of(params: dict) -> Axis:
    """The axis that a pmap is along."""
    return Axis(params["axis_size"], params["axis_name"])


@memo_jaxpr
def per_device(jaxpr: Jaxpr, mapped: tuple[bool, ...], axis: Axis) -> Jaxpr:
    """The program of a device on parts of one element: without their first axes, and with one."""

    def fun(*args: Any) -> list:
        outs = jaxpr(*[reshape(x, typeof(x).shape[1:]) if m else x for x, m in zip(args, mapped)])
        return [reshape(y, (1, *typeof(y).shape)) for y in outs]

    avals = [
        unmapped_aval(a, 1, 0) if m else a for a, m in zip(jaxpr.in_avals, mapped, strict=True)
    ]
    with in_scope([axis]):
        return stage_whole(fun, avals, jaxpr.name)


# --- devices --------------------------------------------------------------------------------


def inner_sizes(jaxpr: Jaxpr) -> tuple[int, ...]:
    """The sizes of the pmaps within a program, the outermost first."""
    found = jaxpr.memo.get("pmaps")
    if found is None:
        found = ()
        for eqn in jaxpr.eqns:
            sizes = (eqn.params["axis_size"],) if isinstance(eqn.primitive, Pmap) else ()
            for held in jaxprs_in_params(eqn.params):
                inner = (*sizes, *inner_sizes(held))
                if inner and found and inner != found:
                    raise ShapeError(
                        "pmap: pmaps within one must be of the same sizes, for they share its "
                        f"devices; got sizes {found} and {inner}."
                    )
                found = inner or found
        jaxpr.memo["pmaps"] = found
    return found


def mesh_of(params: dict) -> Mesh:
    """The devices of a pmap, with an axis for it and for each of those within it."""
    sizes = (params["axis_size"], *inner_sizes(params["call_jaxpr"]))
    name = params["axis_name"]
    first = name if isinstance(name, str) else "pmap"
    names = (first, *[f"{first}_{i}" for i in range(1, len(sizes))])
    return mesh_for(sizes, names, params["devices"], params["backend"], default_device())


# asked in each call; meshes are kept anyway
@functools.cache
def mesh_for(
    sizes: tuple[int, ...], names: tuple[str, ...], devices: Any, backend: Any, default: Any
) -> Mesh:
    """The mesh of the first devices, or of those given."""
    given = devices or devices_of(backend or default.platform, "pmap: backend")
    need = math.prod(sizes)
    if need > len(given):
        within = f" with pmaps of {', '.join(map(str, sizes[1:]))} within" if sizes[1:] else ""
        raise ValueError(
            f"pmap: the mapped axis must not be longer than there are devices; got size {sizes[0]}"
            f"{within}, which takes {need}, and {len(given)} exist. Hint: vmap maps without "
            f"devices; {more_devices_hint(need)}"
        )
    grid = np.empty(need, object)
    grid[:] = list(given)[:need]
    return Mesh(grid.reshape(sizes), names)
