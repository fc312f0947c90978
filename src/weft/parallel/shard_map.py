"""`shard_map`: a program that each device of a mesh runs on its part of the operands.

Every rule transforms the program it holds, with the axes of the mesh in scope. Specs (mesh.py) give
the sharding of values, and devices communicate by collectives (primitives/collective.py).
api/shard_map.py has pytrees and checks.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weft.control.call import Call, Holder
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Jaxpr, memo_jaxpr
from weft.core.primitive import Axis, Body, References
from weft.mesh.mesh import (
    AbstractMesh,
    AxisType,
    Mesh,
    MeshScope,
    get_mesh,
    has_same_grid,
    missing_devices_error,
    retype_axes,
)
from weft.mesh.sharding import NamedSharding
from weft.mesh.spec import PartitionSpec, insert_entry, names_in_spec
from weft.mesh.typed import NO_NAMES, Sharded, entries_of, kind_of_mesh
from weft.primitives.collective import psum_p
from weft.primitives.constant import stage_whole
from weft.primitives.elementwise import div
from weft.primitives.layout import literal, reshape
from weft.primitives.reshard import constrain_terms
from weft.primitives.varying import Varying, apply_casts, axes_of_varying, kind_of, vary_unreduced_p
from weft.transforms.batch import batch_jaxpr, in_scope
from weft.util import partition, select_masked
from weft.xla.hlo import TOKEN, Part
from weft.xla.lower import lower_jaxpr


class ShardMap(Call):
    """Run `jaxpr` on every device of `mesh`, on its parts of the operands.

    `in_specs` says over which axes of the mesh each operand is split, `out_specs` how the results
    of the devices form one; of an axis that a spec does not name, all devices have the same. The
    program is for the axes in `manual_axes` alone; over the others the compiler splits it. With
    `check_vma`, types say what varies over the mesh, and collectives follow from them.
    """

    name = "shard_map"
    checked = None  # type: ignore[assignment]

    def impl(self, *args, **params):
        mesh = params["mesh"]
        if isinstance(mesh, AbstractMesh) and not has_same_grid(get_mesh(), mesh):
            raise missing_devices_error(self.name, mesh)
        return Holder.impl(self, *args, **params)

    def bodies(self, params):
        return [Body(params["jaxpr"], "jaxpr", on_each_device=True)]  # of parts

    def refers(self, params):
        places = lambda: (NamedSharding(params["mesh"], PartitionSpec()),)
        return References(binds=params["manual_axes"], places=places)

    def abstract_eval(self, *avals, jaxpr, mesh, out_specs, manual_axes, **params):
        return [
            outer_aval(a, mesh, s, manual_axes)
            for a, s in zip(jaxpr.out_avals, out_specs, strict=True)
        ]

    def lower(self, hlo, *args, **params):
        return write_manual(hlo, args, **params)

    @contextlib.contextmanager
    def scope(self, params):
        mesh, tracked, manual = params["mesh"], params["check_vma"], params["manual_axes"]
        axes = [Axis(size, n, tracked) for n, size in mesh.shape_tuple if n in manual]
        with in_scope(axes), MeshScope(retype_axes(mesh, manual, AxisType.Manual)):
            yield

    def transform(self, verb, params, *how):
        with self.scope(params):
            return super().transform(verb, params, *how)

    def rebuild(self, params, jaxpr, arrange=lambda *specs: specs):
        ins, outs = map(tuple, arrange(params["in_specs"], params["out_specs"]))
        return self, {**params, "jaxpr": jaxpr, "in_specs": ins, "out_specs": outs}

    def pass_residuals(self, early, late, n_known, sources, params):
        axes, tracked = params["manual_axes"], params["check_vma"]
        with self.scope(params):
            return pass_out_residuals(early, late, n_known, tuple(sources), axes, tracked)

    def cotangent_specs(self, ins, outs):
        return list(map(flip_kinds, ins)), list(map(flip_kinds, outs))

    def finish_transpose(self, back, linear, moved, out_moved, params):
        if params["check_vma"]:
            return back
        held, solved = partition(linear, params["in_specs"])
        of = select_masked(params["out_specs"], moved), select_masked(solved, out_moved)
        missing = [find_absent_axes(specs, params) for specs in of]
        with self.scope(params):
            return sum_shared_cotangents(back, len(held), *missing, params["mesh"])

    def batch(self, axis, args, dims, **params):
        over = axis.spmd if axis.spmd is None or type(axis.spmd) is tuple else (axis.spmd,)
        mesh, manual = params["mesh"], params["manual_axes"]
        over = over and tuple(n for n in over if n in manual)
        split = axis.split and axis.split.of_part(manual, params["check_vma"])
        count = math.prod(mesh.shape[n] for n in over or ())
        axis = axis._replace(size=axis.size // count, split=split)
        mapped, out_dims = self.transform(batch_jaxpr, params, axis, tuple(dims))
        put_in = lambda s, d: s if d is None else insert_entry(s, d, over or None)
        arrange = lambda ins, outs: (map(put_in, ins, dims), map(put_in, outs, out_dims))
        return self.apply(*args, **self.rebuild(params, mapped, arrange)[1]), out_dims

    def run_series(self, trace, args, params):
        return None


shard_map_p = ShardMap()
WHOLE = PartitionSpec()


# --- types ----------------------------------------------------------------------------------


def flip_kinds(spec: PartitionSpec) -> PartitionSpec:
    """The spec of cotangents of what a spec is for: reduced is unreduced, and the other way."""
    if not (spec.unreduced or spec.reduced):
        return spec
    return spec.update(unreduced=spec.reduced, reduced=spec.unreduced)


def count_parts(mesh: Mesh, spec: PartitionSpec, i: int, manual: tuple) -> int:
    """Into how many parts the devices of the manual axes cut axis `i` of an array."""
    return math.prod(mesh.shape[n] for n in spec.axes(i) if n in manual)


def inner_aval(
    aval: ShapedArray, mesh: Mesh, spec: PartitionSpec, manual: tuple, tracked: bool
) -> ShapedArray:
    """The type of the part that one device has of an operand."""
    shape = tuple(d // count_parts(mesh, spec, i, manual) for i, d in enumerate(aval.shape))
    varying = aval.varying
    if tracked:
        own = Varying.of(n for n in names_in_spec(spec) if n in manual)
        varying = own if varying is None else varying if own is None else varying | own
    sharded = aval.sharded and aval.sharded.of_part(manual, tracked)
    return aval.update(shape=shape, varying=varying, sharded=sharded)


def outer_aval(aval: ShapedArray, mesh: Mesh, spec: PartitionSpec, manual: tuple) -> ShapedArray:
    """The type of what the results of the devices form together."""
    shape = tuple(d * count_parts(mesh, spec, i, manual) for i, d in enumerate(aval.shape))
    varying = aval.varying
    inner = aval.sharded
    explicit = [n for n in manual if n in mesh.explicit_axes]
    sharded = None
    if explicit or inner:
        own = [tuple(n for n in spec.axes(i) if n in explicit) for i in range(aval.ndim)]
        kinds = join_kinds(inner, spec, manual)
        sharded = Sharded.of(kind_of_mesh(mesh), map(operator.add, own, entries_of(aval)), **kinds)
    return aval.update(shape=shape, varying=varying and varying.without(manual), sharded=sharded)


def join_kinds(inner: Sharded | None, spec: PartitionSpec, manual: tuple) -> dict:
    """Return the unreduced and reduced axes: from a spec if they are `manual`, else from a type.

    The type is the type of one device's part.
    """
    kinds = ("unreduced", "reduced")
    of_type = {k: getattr(inner, k, NO_NAMES) - {*manual} for k in kinds}
    return {k: of_type[k] | getattr(spec, k) for k in kinds}


@memo_jaxpr
def sum_later(jaxpr: Jaxpr, axes: tuple) -> Jaxpr:
    """A program whose results, where they vary along the axes given for each, are terms of sums."""

    def fun(*args: Any) -> list:
        pairs = zip(jaxpr(*args), axes, strict=True)
        varies = lambda y, names: tuple(n for n in names if kind_of(y, n) == "varying")
        return [
            apply_casts(y, [(vary_unreduced_p, n)] if n else [])
            for y, n in [(y, varies(y, names)) for y, names in pairs]
        ]

    return stage_whole(fun, jaxpr.in_avals, jaxpr.name)


# --- derivatives ----------------------------------------------------------------------------


@memo_jaxpr
def pass_out_residuals(
    early: Jaxpr, late: Jaxpr, n_known: int, sources: tuple, axes: tuple, tracked: bool
) -> tuple[Jaxpr, Jaxpr, list[PartitionSpec]]:
    """Return the two parts of a program, with residuals that can leave it, and their specs.

    A residual that differs between devices leaves in one array, along its first axis; a scalar gets
    such an axis. It may differ along all `axes`; if types are `tracked`, they say along which.
    """
    specs = []
    for aval in early.out_avals[n_known:]:
        differs = axes_of_varying(aval.varying)
        names = [n for n in axes if n in differs or not tracked]
        specs.append(PartitionSpec(tuple(names)) if names else PartitionSpec())
    fresh = iter(specs)
    over = [s is None and bool(len(next(fresh))) for s in sources]
    new = [o for o, s in zip(over, sources, strict=True) if s is None]

    def early_fun(*args: Any) -> list:
        outs = early(*args)
        values = zip(outs[n_known:], new, strict=True)
        return [*outs[:n_known], *[lifted(x) if o else x for x, o in values]]

    def late_fun(*args: Any) -> list:
        held = zip(args[: len(over)], over, late.in_avals, strict=False)
        values = [reshape(x, a.shape) if o and not a.ndim else x for x, o, a in held]
        return late(*values, *args[len(over) :])

    def lifted(x: Any) -> Any:
        return x if typeof(x).ndim else reshape(x, (1,))

    late_avals = [
        a.update(shape=(1,)) if i < len(over) and over[i] and not a.ndim else a
        for i, a in enumerate(late.in_avals)
    ]
    return (
        stage_whole(early_fun, early.in_avals, early.name),
        stage_whole(late_fun, late_avals, late.name),
        specs,
    )


def find_absent_axes(specs: Sequence[PartitionSpec], params: dict) -> tuple:
    """For each spec, the axes of the program that it does not name."""
    names = [n for n in params["mesh"].axis_names if n in params["manual_axes"]]
    of = [{*names_in_spec(s), *s.unreduced, *s.reduced} for s in specs]
    return tuple(tuple(n for n in names if n not in named) for named in of)


@memo_jaxpr
def sum_shared_cotangents(back: Jaxpr, first: int, given: tuple, made: tuple, mesh: Mesh) -> Jaxpr:
    """A transposed program, where types do not say what varies.

    Of a result that all devices have, each is given its share of the cotangent; the cotangent of
    an operand that all have is the sum of theirs.
    """

    def fun(*args: Any) -> list:
        cts = [
            div(ct, literal(math.prod(mesh.shape[n] for n in names), typeof(ct).dtype))
            for ct, names in zip(args[first:], given, strict=True)
        ]
        grads = back(*args[:first], *cts)
        return [
            psum_p.apply(g, axes=names, axis_index_groups=None)[0] if names else g
            for g, names in zip(grads, made, strict=True)
        ]

    return stage_whole(fun, back.in_avals, back.name)


# --- text -----------------------------------------------------------------------------------


def write_manual(
    hlo: Any,
    args: Sequence[Any],
    *,
    jaxpr: Jaxpr,
    mesh: Mesh,
    in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
    manual_axes: tuple,
    axes: tuple | None = None,
    **params: Any,
) -> list:
    """Write a program for one device, and the shardings of its operands and results.

    `axes`: other names that collectives use for the first axes of the mesh.
    """
    symbol, free = find_free_axes(hlo, mesh, manual_axes)
    in_avals = [a.update(varying=None) for a in jaxpr.in_avals]
    outer = [outer_aval(a, mesh, s, manual_axes) for a, s in zip(jaxpr.out_avals, out_specs)]
    in_specs = [fill_spec(*pair, manual_axes) for pair in zip(jaxpr.in_avals, in_specs)]
    out_specs = [fill_spec(*pair, manual_axes) for pair in zip(jaxpr.out_avals, out_specs)]
    write: Callable = lambda *xs: lower_jaxpr(hlo, jaxpr, xs)
    if jaxpr.calls_host:
        args, in_avals, in_specs = [hlo.token, *args], [TOKEN, *in_avals], [WHOLE, *in_specs]
        write = hlo.threaded(write, jaxpr.ordered)
        if jaxpr.ordered:
            outer, out_specs = [TOKEN, *outer], [WHOLE, *out_specs]

    # over automatic axes that the program is not for, the compiler splits as it likes
    rest = any(n not in manual_axes for n in mesh.auto_axes)
    shardings = functools.partial(sharding_texts, mesh, symbol, rest)
    inner = symbol, tuple(n for n in free if n not in manual_axes)

    def write_part(xs: Sequence) -> list:
        with for_part(hlo, mesh, axes, inner):
            return list(write(*xs))

    def body() -> None:
        xs = [hlo.value(a) for a in in_avals]
        if xs:
            hlo.lines.append(f"^bb0({', '.join(f'{v.name}: {v.aval.hlo}' for v in xs)}):")
        hlo.op("sdy.return", write_part(xs), [])

    names = ", ".join(f'"{n}"' for n in mesh.axis_names if n in manual_axes)
    if jaxpr.calls_host and mesh.size == 1:  # XLA takes no calls within one that is not split
        parts = [type(x)(x.name, a) for x, a in zip(args, in_avals, strict=True)]
        outs = [type(y)(y.name, a) for y, a in zip(write_part(parts), outer, strict=True)]
    else:
        outs = hlo.op(
            "sdy.manual_computation", constrain_terms(hlo, args), outer, [body],
            in_shardings=shardings(in_specs, [v.aval for v in args]),
            out_shardings=shardings(out_specs, outer), manual_axes=f"#sdy<manual_axes{{{names}}}>",
        )  # fmt: skip
    if jaxpr.ordered:
        hlo.token, *outs = outs
    return outs


@contextlib.contextmanager
def for_part(hlo: Any, mesh: Mesh, axes: tuple | None, automatic: tuple) -> Iterator[None]:
    """Write for one device's part; `automatic` is the mesh, and its automatic axes."""
    # Collectives are written for the mesh, so cached text from outside must not be reused.
    before = hlo.part, hlo.written, hlo.memo
    known_by = (*(axes or ()), *mesh.axis_names[len(axes or ()) :])
    known = tuple(zip(known_by, mesh.axis_sizes, strict=True))
    hlo.part = Part(known, mesh, automatic[0], automatic[1], axes)
    hlo.written = {}
    hlo.memo = {}
    yield
    hlo.part, hlo.written, hlo.memo = before


def fill_spec(inner: ShapedArray, spec: PartitionSpec, manual: tuple) -> PartitionSpec:
    """A spec with the layout over other axes that the type of the part says."""
    lies = inner.sharded
    if lies is None:
        return spec
    entries = [(*spec.axes(i), *names) for i, names in enumerate(lies.entries)]
    return PartitionSpec(*entries, **join_kinds(lies, spec, manual))


def find_free_axes(hlo: Any, mesh: Mesh, manual_axes: tuple) -> tuple[str, tuple]:
    """Return the symbol of a mesh, and its axes that the text is not for a single device of."""
    symbol = hlo.named(mesh)
    part = hlo.part
    free = mesh.axis_names if part is None else part.automatic
    other = part is not None and symbol != part.symbol
    taken = [n for n in manual_axes if other or n not in free]
    if taken:
        raise ValueError(
            "shard_map: within a shard_map or a pmap one must be over other axes of the same mesh; "
            f"got {taken[0]!r} of {mesh}. Hint: shard_map over all axes, with axis_names in each."
        )
    return symbol, free


def sharding_texts(
    mesh: Mesh, symbol: str, rest: bool, specs: Sequence[PartitionSpec], avals: Sequence
) -> str:
    """The attribute that says how values are laid out on a mesh; `rest` leaves axes open."""
    texts = [
        NamedSharding(mesh, s).sdy(a.ndim, symbol, rest and a is not TOKEN)
        for s, a in zip(specs, avals, strict=True)
    ]
    return f"#sdy.sharding_per_value<[{', '.join(texts)}]>"
