"""`reshard`: a value with another layout over the explicit axes of a mesh.

Layouts are mesh/typed.py's; the public function, with pytrees and checks, is api/shardings.py's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Elements
from weft.core.primitive import Primitive
from weft.core.trace import Tracer, current
from weft.dtypes import is_bool
from weft.mesh import typed
from weft.mesh.mesh import AbstractMesh, AxisType, Mesh, get_abstract_mesh, get_mesh, retype_axes
from weft.mesh.sharding import NamedSharding, check_divisible, terms_of
from weft.mesh.spec import PartitionSpec, insert_entry
from weft.primitives.families import LinearPrimitive, along_each_other
from weft.util import memoize
from weft.xla.array import put


class Reshard(LinearPrimitive):
    """out = x, split over the explicit axes of a mesh as `dst_sharding` says.

    Along axes of the mesh where x is unreduced and the result is not, terms are added up. Where
    only the result is unreduced, the first device of each group has the value, and the others have
    zeros. Axes of the mesh that are automatic in `dst_sharding` and explicit in x are left to the
    compiler. `free` names the value with a layout that the compiler chooses, "operand" or "result".
    `src_mesh` is the mesh of x if its axes have other types than in `dst_sharding`. Source: Shardy,
    sharding_constraint.
    """

    name = "reshard"
    elements = Elements.PLACED

    def abstract_eval(self, x, *, dst_sharding, free="", src_mesh=None):
        out = typed.typed_for(x, dst_sharding)
        check_divisible(self.name, dst_sharding, x.shape, f"the operand {x}")
        out = keep_kinds(out, x, dst_sharding.mesh)
        if out.sharded is not None and (out.sharded.mesh.manual_axes or is_bool(x.dtype)):
            typed.check_terms(self.name, out, (x, ()))
        return [out]

    def impl(self, x, *, dst_sharding, free="", src_mesh=None):
        if dst_sharding.mesh.empty:
            return [x]  # the type has no mesh
        sharding = typed.with_every_entry(find_concrete(dst_sharding, x), typeof(x).ndim)
        sharding = keep_automatic(sharding, x) if src_mesh is not None or free else sharding
        terms = terms_of(getattr(x, "sharding", None)) | sharding.spec.unreduced
        if terms or not getattr(x, "is_fully_addressable", True):
            return current.trace.run_compiled(self, [x], {"dst_sharding": sharding})
        return [put(x, sharding, committed=True)]

    def lower(self, hlo, x, *, dst_sharding, **params):
        out = self.abstract_eval(x.aval, dst_sharding=dst_sharding)[0]
        has, gets = (getattr(a.sharded, "unreduced", typed.NO_NAMES) for a in (x.aval, out))
        if gets - has:
            return write_terms(hlo, x, out, gets - has)
        # lower_jaxpr writes the sharding of results.
        return write_scattered_sum(hlo, x, out) or [type(x)(x.name, out)]

    def transpose(self, cts, x, *, dst_sharding, free="", src_mesh=None):
        if src_mesh is not None:
            lies = typed.dual_of(x.aval)
            to = NamedSharding(src_mesh, PartitionSpec() if lies is None else lies.spec)
            return self.apply(cts[0], dst_sharding=to, src_mesh=dst_sharding.mesh)
        if free == "operand":
            return [hide_layout(cts[0])]
        if free == "result":
            return self.apply(cts[0], dst_sharding=typed.dual_of(x.aval).named, free="operand")
        return [lay_as(cts[0], typed.dual_of(x.aval), force=True)]

    def batch(self, axis, args, dims, *, dst_sharding, **params):
        (x,), (d,) = args, dims
        inserted = insert_axis(dst_sharding, d, x, d, axis.spmd)
        return self.apply(x, dst_sharding=inserted, **params), [d]

    def pretty_params(self, params):
        return {"free": params["free"]} if params.get("free") else {}

    def read_params(self, params, avals, out_avals):
        (x,), (out,) = avals, out_avals
        lies = out.sharded or x.sharded
        mesh = get_abstract_mesh() if lies is None else lies.mesh
        mesh = make_automatic(mesh) if params.get("free") == "result" else mesh
        spec = PartitionSpec() if out.sharded is None else out.sharded.spec
        return {"dst_sharding": NamedSharding(mesh, spec), **params}


reshard_p = Reshard()


def write_scattered_sum(hlo: Any, x: Any, out: ShapedArray) -> list | None:
    """Terms of a sum, added up and split in one step; None where `out` asks for something else.

    XLA adds them up on every device, and cuts, but where it is told of each device's program. That
    is only where all axes of the mesh are explicit.
    """
    has, gets = x.aval.sharded, out.sharded
    if None in (has, gets) or not hlo.devices or hlo.part or has.mesh != gets.mesh:
        return None
    mesh, terms = has.mesh, has.unreduced - gets.unreduced
    pairs = list(zip(has.entries, gets.entries, strict=True))
    changed = [i for i, (a, b) in enumerate(pairs) if a != b]
    if mesh.axis_names != mesh.explicit_axes or gets.unreduced or len(changed) != 1:
        return None
    (dim,) = changed
    before, after = pairs[dim]
    names = after[len(before) :]
    if after[: len(before)] != before or terms != set(names):
        return None
    sizes = [mesh.shape[n] for n in mesh.axis_names]
    ids = np.arange(math.prod(sizes)).reshape(sizes)
    ids = np.moveaxis(ids, [mesh.axis_names.index(n) for n in names], range(-len(names), 0))
    groups = ids.reshape(-1, math.prod(mesh.shape[n] for n in names)).tolist()
    cell = x.aval.update(shape=(), sharded=None)

    def sum_parts(y: Any, part: ShapedArray) -> list:
        return hlo.op(
            "stablehlo.reduce_scatter",
            [y],
            [part],
            [hlo.block([cell, cell], lambda a, b: hlo.op("stablehlo.add", [a, b], [cell]))],
            channel_handle="#stablehlo.channel_handle<handle = 1, type = 1>",
            replica_groups=f"dense<{groups}> : tensor<{len(groups)}x{len(groups[0])}xi64>",
            scatter_dimension=f"{dim} : i64",
            use_global_device_ids="unit",
        )

    return write_on_parts(hlo, [x], [has], out, sum_parts)


def write_terms(hlo: Any, x: Any, out: ShapedArray, names: frozenset) -> list:
    """Write `x` as terms of a sum along `names`: the first device along them has x, others zeros.

    XLA has a layout for terms, but converts constants to it incorrectly.
    """
    gets, mesh = out.sharded, out.sharded.mesh
    whole = gets.update(unreduced=gets.unreduced - names)
    aval = out.update(sharded=whole)
    x = hlo.constrain(type(x)(x.name, aval), aval, mesh)
    order = [n for n in mesh.axis_names if n in names]
    count = math.prod(mesh.shape[n] for n in order)
    ids = ShapedArray((count,), np.int32)
    (place,) = hlo.op("stablehlo.iota", [], [ids], iota_dimension="0 : i64")

    def choose(y: Any, at: Any, part: ShapedArray) -> list:
        at = hlo.op("stablehlo.reshape", [at], [ShapedArray((), np.int32)])[0]
        first = hlo.compare("EQ", at, hlo.constant(0, at.aval))
        return hlo.op("stablehlo.select", [first, y, hlo.constant(0, part)], [part])

    return write_on_parts(
        hlo, [x, place], [whole, typed.Sharded.of(mesh, [tuple(order)])], out, choose
    )


def write_on_parts(
    hlo: Any, xs: list, lies: list[typed.Sharded | None], out: ShapedArray, write: Callable
) -> list:
    """Write a computation that each device does on its parts of `xs`.

    `lies` are the shardings of `xs`. `write` gets the parts and the type of the result's part.
    """
    mesh = out.sharded.mesh
    named = [NamedSharding(mesh, PartitionSpec()) if s is None else s.named for s in lies]
    to = out.sharded.named
    part_of = lambda a, s: a.update(shape=s.shard_shape(a.shape), sharded=None)
    xs = constrain_terms(hlo, xs)

    def body() -> None:
        ys = [hlo.value(part_of(x.aval, s)) for x, s in zip(xs, named, strict=True)]
        hlo.lines.append(f"^bb0({', '.join(f'{y.name}: {y.aval.hlo}' for y in ys)}):")
        hlo.op("sdy.return", write(*ys, part_of(out, to)), [])

    placed = lambda avals, every: ", ".join(
        s.sdy(a.ndim, hlo.named(mesh)) for a, s in zip(avals, every, strict=True)
    )
    listed = ", ".join(f'"{n}"' for n in mesh.explicit_axes)
    return hlo.op(
        "sdy.manual_computation",
        xs,
        [out],
        [body],
        in_shardings=f"#sdy.sharding_per_value<[{placed([x.aval for x in xs], named)}]>",
        out_shardings=f"#sdy.sharding_per_value<[{placed([out], [to])}]>",
        manual_axes=f"#sdy<manual_axes{{{listed}}}>",
    )


def constrain_terms(hlo: Any, xs: Sequence) -> list:
    """Return values with a constraint, if each device's program takes its part of them.

    Compilers since jaxlib 0.11 pass terms of a sum into such a program only if a constraint says
    that they are terms.
    """
    has_terms = lambda lies: lies is not None and lies.unreduced
    say = lambda x: hlo.constrain(x, x.aval, x.aval.sharded.mesh)
    return [say(x) if has_terms(x.aval.sharded) else x for x in xs]


def pack_terms(hlo: Any, xs: Sequence, avals: Sequence) -> list:
    """Return values of types `avals` in the form that a loop of XLA can carry.

    XLA's loops lose the information that values are terms of a sum. Terms become parts of one
    array, along a last axis that their mesh axes split.
    """
    pairs = [(x, a, pack_type(a)) for x, a in zip(xs, avals, strict=True)]
    return [x if to is None else move_terms(hlo, x, a, to) for x, a, to in pairs]


def unpack_terms(hlo: Any, xs: Sequence, avals: Sequence) -> list:
    """Return the values of types `avals` that `pack_terms` packed."""
    found = []
    for x, a in zip(xs, avals, strict=True):
        held = pack_type(a)
        if held is not None:
            x = move_terms(hlo, x, held, a)
        found.append(x if a.sharded is None else type(x)(x.name, a))
    return found


def pack_type(aval: Any) -> ShapedArray | None:
    """Return the type of a value in a loop, or None if its own type can be carried."""
    lies = aval.sharded
    if lies is None or not (lies.unreduced and {*lies.mesh.explicit_axes} & lies.unreduced):
        return None
    names = tuple(n for n in lies.mesh.axis_names if n in lies.unreduced)
    shape = (*aval.shape, math.prod(lies.mesh.shape[n] for n in names))
    return aval.update(
        shape=shape, sharded=lies.with_axis(aval.ndim, names).update(unreduced=typed.NO_NAMES)
    )


def move_terms(hlo: Any, x: Any, aval: ShapedArray, out: ShapedArray) -> Any:
    """Convert terms of type `aval` to another type that has the same elements on each device."""
    write = lambda y, part: hlo.op("stablehlo.reshape", [y], [part])
    return write_on_parts(hlo, [type(x)(x.name, aval)], [aval.sharded], out, write)[0]


def keep_kinds(out: ShapedArray, x: ShapedArray, mesh: Any) -> ShapedArray:
    """Return the type `out`, with the kinds of `x` along the manual axes of a mesh."""
    lies = x.sharded
    if lies is None or not (lies.unreduced or lies.reduced) or not mesh.manual_axes:
        return out
    names = frozenset(mesh.manual_axes)
    kinds = {
        k: (getattr(out.sharded, k, typed.NO_NAMES) - names) | (getattr(lies, k) & names)
        for k in ("unreduced", "reduced")
    }
    return out.update(sharded=typed.Sharded.of(lies.mesh, typed.entries_of(out), **kinds))


def find_concrete(sharding: NamedSharding, x: Any) -> NamedSharding:
    """A sharding over the devices that an array is on, where it is over a mesh without devices."""
    meshes = getattr(getattr(x, "sharding", None), "mesh", None), get_mesh()
    fits = lambda m: isinstance(m, Mesh) and m.shape == sharding.mesh.shape
    mesh = None if isinstance(sharding.mesh, Mesh) else next(filter(fits, meshes), None)
    if mesh is None:
        return sharding
    return sharding.update(mesh=mesh.update(axis_types=sharding.mesh.axis_types))


def keep_automatic(sharding: NamedSharding, x: Any) -> NamedSharding:
    """Return a sharding under which an array stays split over the axes that are automatic in it."""
    now = getattr(x, "sharding", None)
    auto = sharding.mesh.auto_axes
    if not (auto and isinstance(now, NamedSharding) and now.mesh.shape == sharding.mesh.shape):
        return sharding
    spec = sharding.spec
    taken = {n for i in range(len(spec)) for n in spec.axes(i)}
    kept = lambda i: [n for n in now.spec.axes(i) if n in auto and n not in taken]
    entries = [(*spec.axes(i), *kept(i)) for i in range(typeof(x).ndim)]
    return sharding.with_spec(spec.update(partitions=entries))


def hide_layout(x: Any) -> Any:
    """Return `x` with a type without a layout, so that the compiler decides how it is split."""
    sharded = typeof(x).sharded if hasattr(x, "aval") else None
    if sharded is None:
        return x
    mesh = make_automatic(sharded.mesh)
    to = NamedSharding(mesh, PartitionSpec(*sharded.entries))
    return reshard_p.apply(x, dst_sharding=to, free="result")[0]


@memoize
def make_automatic(mesh: AbstractMesh) -> AbstractMesh:
    """The same axes of a mesh, where those that are explicit are automatic."""
    return retype_axes(mesh, mesh.explicit_axes, AxisType.Auto)


def lay_out(op: str, x: Any, out_sharding: Any, *like: Any) -> Any:
    """Return `x` split as the argument `out_sharding` of `op` says; unchanged if that is None.

    A spec is over the mesh in scope, or else over the mesh of `x` or of a value in `like`.
    """
    if out_sharding is None:
        return x
    aval = typeof(x)
    sharding = typed.resolve_sharding(op, out_sharding, aval.ndim, x, *like)
    if isinstance(x, Tracer) and typed.typed_for(aval, sharding) is aval:
        return x
    return reshard_p.apply(x, dst_sharding=sharding)[0]


def lay_out_alike(op: str, xs: list) -> list:
    """Values of one shape, all split as an operation on their elements would have its result."""
    avals = list(map(typeof, xs))
    if all(a.sharded is None for a in avals):
        return xs
    like = SimpleNamespace(name=op, label_axes=along_each_other)
    (out,) = typed.split_results(like, avals, [avals[0].update(sharded=None)], {})
    if out.sharded is None:
        return xs
    to = {"dst_sharding": out.sharded.named}
    every = zip(xs, avals, strict=True)
    return [x if a.sharded is out.sharded else reshard_p.apply(x, **to)[0] for x, a in every]


def cast_to_terms(x: Any, sharding: NamedSharding) -> Any:
    """`x`, as terms of a sum along the axes of the mesh along which `sharding` has them."""
    lies, terms = typeof(x).sharded, sharding.spec.unreduced
    if lies is not None and terms <= lies.unreduced:
        return x
    lies = lies and lies.without(terms)
    spec = PartitionSpec(unreduced=terms) if lies is None else lies.spec.update(unreduced=terms)
    return reshard_p.apply(x, dst_sharding=sharding.with_spec(spec))[0]


def compute_freely(op: str, out_sharding: Any, fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """Return `fun(*args, **kwargs)`, split as the argument `out_sharding` of `op` says.

    The compiler decides the layout of intermediate values, so the rules of operations need not know
    it. Arguments may be tuples of values.
    """
    if out_sharding is None:
        return fun(*args, **kwargs)
    leaves = [v for a in (*args, *kwargs.values()) for v in (a if type(a) is tuple else (a,))]
    hide = lambda a: tuple(map(hide_layout, a)) if type(a) is tuple else hide_layout(a)
    x = fun(*map(hide, args), **{k: hide(a) for k, a in kwargs.items()})
    sharding = typed.resolve_sharding(op, out_sharding, typeof(x).ndim, *leaves)
    return reshard_p.apply(x, dst_sharding=sharding, free="operand")[0]


def lay_as(x: Any, sharded: typed.Sharded | None, force: bool = False) -> Any:
    """Return `x`, split over the explicit axes of a mesh as `sharded` says; whole if that is None.

    An array without a mesh, which can be used with any mesh, stays unchanged, unless `force`.
    """
    have = typeof(x).sharded
    terms = sharded is not None and sharded.unreduced
    free = not terms and not force and not isinstance(x, Tracer)
    if have is sharded or (have is None and free):
        return x
    to = NamedSharding(have.mesh, PartitionSpec()) if sharded is None else sharded.named
    return reshard_p.apply(x, dst_sharding=to)[0]


def sharding_of_cotangent(
    aval: ShapedArray, operands: Any = (), axes: Any = None
) -> NamedSharding | None:
    """Return the sharding of a cotangent of values of type `aval`, or None if nothing is split.

    `operands` are the values that the cotangent is computed from. Axis k of the computed value is
    axis axes[k] of the cotangent. The result has terms of a sum along the axes that split all
    operands.
    """
    sharded = typed.dual_of(aval)
    if operands and sharded is not None:
        for lies in [typeof(x).sharded for x in operands] if sharded.unreduced else ():
            split = () if lies is None else (*lies.names, *lies.unreduced)
            sharded = sharded and sharded.update(unreduced=sharded.unreduced.intersection(split))
    if sharded is None:
        found = (typeof(x).sharded for x in operands)
        like = next((s for s in found if s is not None), None)
        return None if like is None else NamedSharding(like.mesh, PartitionSpec())
    if axes is not None:
        sharded = sharded.update(entries=tuple(sharded.entries[a] for a in axes))
    return sharded.named


def show_spec(params: dict, name: str) -> dict:
    """Return parameters for printing: the spec instead of the sharding; types show the mesh."""
    sharding = params.get(name)
    return params if sharding is None else {**params, name: sharding.spec}


def read_spec(params: dict, name: str, avals: Any) -> dict:
    """Parameters with the sharding that the spec in a text stands for, among values of types."""
    spec = params.get(name)
    if not isinstance(spec, PartitionSpec):
        return params
    mesh = next((a.sharded.mesh for a in avals if a.sharded is not None), get_abstract_mesh())
    return {**params, name: NamedSharding(mesh, spec)}


class Placed(Primitive):
    """A family: what results are split over can be said, by the parameter `sharding`."""

    def pretty_params(self, params):
        return show_spec(params, "sharding")

    def read_params(self, params, avals, out_avals):
        return read_spec(params, "sharding", (*avals, *out_avals))


def insert_axis(sharding: NamedSharding | None, at: int, x: Any, dim: int | None, spmd: Any) -> Any:
    """The sharding of results with a mapped axis at `at`, which is axis `dim` of `x`."""
    if sharding is None:
        return None
    have = typeof(x).sharded
    names = () if have is None or dim is None else have.entries[dim]
    if not names and spmd is not None:
        names = spmd if isinstance(spmd, tuple) else (spmd,)
    return sharding.with_spec(insert_entry(sharding.spec, at, names or None))
