"""`xla_pmap`: one program on several devices, each with an element of the operands.

It is a mapped axis that is divided over devices and not batched into operations: each rule
transforms the program and binds it again. A pmap within a pmap takes its number of devices for each
device of the outer one. api/pmap.py has pytrees, the axes of arguments and the choice of devices.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.control.call import Call, Holder
from weft.core.aval import typeof
from weft.core.jaxpr import Jaxpr, held_jaxprs, memo_jaxpr
from weft.core.primitive import Axis, Body, References, Zero
from weft.core.ref import write_error
from weft.errors import ShapeError
from weft.mesh.client import default_device, devices_of, more_devices_hint
from weft.mesh.mesh import Mesh
from weft.mesh.sharding import NamedSharding
from weft.mesh.spec import PartitionSpec
from weft.parallel.shard_map import write_manual
from weft.primitives.constant import stage_whole
from weft.primitives.dynamic_slicing import dynamic_index_in_dim
from weft.primitives.elementwise import ne
from weft.primitives.layout import move_to_front, reduce_sum, reshape
from weft.primitives.reduction import argmax
from weft.transforms.batch import in_scope, unmapped_aval
from weft.transforms.check import checkify_jaxpr
from weft.util import memoize


class Pmap(Call):
    """Run `call_jaxpr` on `axis_size` devices at once, along the axis named `axis_name`.

    If `mapped_invars` is true for an operand, each device has one element along its first axis;
    otherwise each device has the entire operand. Results have one more axis in front. `devices` is
    None for the first devices of the platform, and `global_axis_size` if one process runs all
    devices.
    """

    name = "xla_pmap"
    program = "call_jaxpr"
    impl = Holder.impl

    def bodies(self, params):
        return [Body(params["call_jaxpr"], "call_jaxpr", on_each_device=True)]  # of elements

    def refers(self, params):
        places = lambda: (NamedSharding(mesh_of(params), PartitionSpec()),)
        return References(binds=(params["axis_name"],), places=places)

    def abstract_eval(self, *avals, call_jaxpr, axis_size, **params):
        return [unmapped_aval(a, axis_size, 0) for a in call_jaxpr.out_avals]

    def lower(self, hlo, *args, **params):
        part = hlo.part
        mesh, around = (mesh_of(params), ()) if part is None else (part.mesh, part.pmaps)
        if around is None:
            raise NotImplementedError(
                f"pmap: must not be within a shard_map; got one along {params['axis_name']!r}. "
                "Hint: vmap, or shard_map over one more axis of the mesh."
            )
        own, mapped = mesh.axis_names[len(around)], params["mapped_invars"]
        split = PartitionSpec(own)
        jaxpr = stage_per_device(params["call_jaxpr"], mapped, axis_of(params))
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

    def transform(self, verb, params, *how):
        with in_scope([axis_of(params)]):
            return super().transform(verb, params, *how)

    def rebuild(self, params, jaxpr, arrange=None):
        mapped = params["mapped_invars"]
        if arrange is not None:
            mapped, _ = arrange(mapped, [True] * len(params["call_jaxpr"].outvars))
        return self, {**params, "call_jaxpr": jaxpr, "mapped_invars": tuple(mapped)}

    def discharge(self, params, refs, written, verb):
        shared = [i for i in written if not params["mapped_invars"][i]]
        if shared:
            raise write_error(params["call_jaxpr"].in_avals[shared[0]], axis_of(params))
        return super().discharge(params, refs, written, verb)

    def transpose(self, cts, *args, **params):
        # of an operand that all devices have, each gives its part of the cotangent
        grads = super().transpose(cts, *args, **params)
        return [
            g if g is None or type(g) is Zero or m else reduce_sum(g, (0,))
            for g, m in zip(grads, params["mapped_invars"], strict=True)
        ]

    def batch(self, axis, args, dims, **params):
        # The device axis stays in front of the mapped axis.
        mapped = params["mapped_invars"]
        args = [
            move_to_front(x, 1) if m and d == 0 else x
            for x, d, m in zip(args, dims, mapped, strict=True)
        ]
        inner = [d and d - 1 if m else d for d, m in zip(dims, mapped, strict=True)]
        outs, out_dims = super().batch(axis, args, inner, **params)
        return outs, [d if d is None else d + 1 for d in out_dims]

    def checked(self, trace, args, params):
        """Keep the first failure where something fails on several devices."""
        with in_scope([axis_of(params)]):
            program = checkify_jaxpr(params["call_jaxpr"], trace.errors)
        outs = self.apply(*args, **{**params, "call_jaxpr": program.jaxpr})
        n = program.size
        if n:
            first = argmax(ne(outs[0], 0), 0, np.int32)
            outs[:n] = [dynamic_index_in_dim(y, first, 0, keepdims=False) for y in outs[:n]]
        return trace.absorb(program, outs)

    def run_series(self, trace, args, params):
        return None


xla_pmap_p = Pmap()


def axis_of(params: dict) -> Axis:
    """The axis that a pmap is along."""
    return Axis(params["axis_size"], params["axis_name"])


@memo_jaxpr
def stage_per_device(jaxpr: Jaxpr, mapped: tuple[bool, ...], axis: Axis) -> Jaxpr:
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


@memo_jaxpr
def inner_sizes(jaxpr: Jaxpr) -> tuple[int, ...]:
    """The sizes of the pmaps within a program, the outermost first."""
    found: tuple[int, ...] = ()
    for eqn in jaxpr.eqns:
        sizes = (eqn.params["axis_size"],) if isinstance(eqn.primitive, Pmap) else ()
        for held in held_jaxprs(eqn):
            inner = (*sizes, *inner_sizes(held))
            if inner and found and inner != found:
                raise ShapeError(
                    "pmap: pmaps within one must be of the same sizes, for they share its "
                    f"devices; got sizes {found} and {inner}."
                )
            found = inner or found
    return found


def find_mesh(jaxpr: Jaxpr) -> Mesh:
    """Return the mesh of the one mapped function that a program holds."""
    (eqn,) = [e for e in jaxpr.eqns if e.primitive is xla_pmap_p]
    return mesh_of(eqn.params)


def mesh_of(params: dict) -> Mesh:
    """The devices of a pmap, with an axis for it and for each of those within it."""
    sizes = (params["axis_size"], *inner_sizes(params["call_jaxpr"]))
    name = params["axis_name"]
    first = name if isinstance(name, str) else "pmap"
    names = (first, *[f"{first}_{i}" for i in range(1, len(sizes))])
    return mesh_for(sizes, names, params["devices"], params["backend"], default_device())


# asked in each call; meshes are kept anyway
@memoize
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
