"""Collectives: operations on the values that copies of a program hold along named axes.

A copy is an element of a vmap, or a device of a mesh. Under vmap the batch rules turn them into
operations along the mapped dimension; on a mesh they are communication. What types say of values
over a mesh is in varying.py. The functions that users call, with pytrees and checks, are in
weft/api/collectives.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Elements
from weft.core.primitive import Primitive, References
from weft.errors import ShapeError
from weft.options import named_axes
from weft.primitives import copies, layout
from weft.primitives.dynamic_slicing import dynamic_index_in_dim, dynamic_slice_in_dim
from weft.primitives.elementwise import add, add_p, div, eq, mul, select
from weft.primitives.expr import Expr
from weft.primitives.families import (
    Discrete,
    LinearPrimitive,
    check_axes,
    check_kind,
    label_together,
)
from weft.primitives.reduction import Reduction, reduce_max_p, reduce_min_p
from weft.primitives.slicing import concatenate, slice_in_dim
from weft.primitives.tokens import keep_p
from weft.primitives.varying import Varying, psum_invariant_p, pvary, varying_names, with_kind
from weft.util import inverse_permutation

# --- the family ---------------------------------------------------------------------------------


class Collective(copies.Meeting):
    """A family: the result in each copy depends on the operand in all copies along named axes.

    `axes` or `axis_name` names the axes; several axes count as one, the last one fastest. A member
    defines `apply_along(x, d, size, params)`. It gets the operand of all copies along dimension `d`
    of `x`, and returns the result and the dimension of the copies in it (None: all copies have the
    same result). With `axis_index_groups`, each group of copies computes separately. `lower` writes
    the communication on a mesh, in StableHLO.
    """

    hidden: tuple[str, ...] = ()  # parameters that are not printed
    axis_params: tuple[str, ...] = ()  # those that name an axis of the operand

    def refers(self, params):
        return References(uses=copies.axis_names(params))

    def pretty_params(self, params):
        return {k: v for k, v in params.items() if k not in self.hidden}

    def apply_along(self, x: Any, d: int, size: int, params: dict) -> tuple[Any, int | None]:
        raise self.missing("apply_along")

    def shift_params(self, params: dict, d: int) -> dict:
        """The parameters when an axis `d` is put into the operand."""
        return {**params, **{k: params[k] + (d <= params[k]) for k in self.axis_params}}

    def batch_beside(self, x: Any, d: int, params: dict) -> tuple[list, list]:
        """Apply the operation under vmap of axis `d`, which is not one of the named axes."""
        return self.apply(x, **self.shift_params(params, d)), [d]

    def batch(self, axis, args, dims, **params):
        (x,), (d,) = args, dims
        names = copies.axis_names(params)
        if axis.name not in names:
            return self.batch_beside(x, d, params)
        if len(names) > 1:
            return self.batch_one_of(axis, x, d, names, params)
        if params.get("axis_index_groups") is None:
            if d is None:
                x, d = layout.batched_at_front(x, None, axis.size), 0
            out, d = self.apply_along(x, d, axis.size, params)
            return [out], [d]
        return [self.apply_whole(layout.batched_at_front(x, d, axis.size), axis.size, params)], [0]

    def apply_whole(self, x: Any, size: int, params: dict) -> Any:
        """All of it along the first axis of `x`; the result has the copies in front."""
        groups = params.get("axis_index_groups")
        if groups is None:
            return layout.batched_at_front(*self.apply_along(x, 0, size, params), size)
        # in even groups: one more axis in front, which counts them
        order = [i for group in groups for i in group]
        count, each = len(groups), len(groups[0])
        x = copies.split_dim(copies.arrange(x, order, 0), 0, count)
        out, d = self.apply_along(x, 1, each, self.shift_params(params, 0))
        if d is None:
            shape = typeof(out).shape
            kept = [i for i in range(len(shape) + 1) if i != 1]
            out = layout.broadcast_in_dim(out, (count, each, *shape[1:]), kept)
        else:
            out = copies.move_dim(out, d, 1)
        return copies.arrange(copies.merge_dims(out, 0), inverse_permutation(order), 0)

    def batch_one_of(self, axis, x, d, names, params):
        """With a mapped axis that is one of several named: fetch all copies, and keep one's own."""
        y, sizes, rest = gather_copies(self.name, axis, x, d, names)
        out = self.apply_whole(y, math.prod(sizes), params)
        at = names.index(axis.name)
        before, after = math.prod(sizes[:at]), math.prod(sizes[at + 1 :])
        shape = typeof(out).shape[1:]
        out = copies.move_dim(layout.reshape(out, (before, axis.size, after, *shape)), 1, 2)
        out = layout.reshape(out, (before * after, axis.size, *shape))
        return [dynamic_index_in_dim(out, copy_index(rest), 0, keepdims=False)], [0]


def gather_copies(op: str, axis: Any, x: Any, d: int | None, names: Sequence[copies.Name]) -> tuple:
    """Gather the operand from all copies along `names`, one of which is the mapped `axis`.

    Returns the operands with the copies along a new first axis, the sizes of the axes, and the
    names of those that are not mapped.
    """
    sizes = [axis.size if n == axis.name else copies.named_axis(op, n).size for n in names]
    at = names.index(axis.name)
    rest = (*names[:at], *names[at + 1 :])
    before, after = math.prod(sizes[:at]), math.prod(sizes[at + 1 :])
    y = all_gather(layout.batched_at_front(x, d, axis.size), rest, before * after)
    shape = typeof(y).shape[2:]
    y = copies.move_dim(layout.reshape(y, (before, after, axis.size, *shape)), 2, 1)
    return layout.reshape(y, (math.prod(sizes), *shape)), sizes, rest


def check_even(op: str, groups: copies.Groups | None) -> None:
    """Raise where groups differ in size, and results would in shape."""
    if groups is not None and len({len(g) for g in groups}) > 1:
        raise ShapeError(
            f"{op}: axis_index_groups must be of one size; got groups of "
            f"{', '.join(str(len(g)) for g in groups)}."
        )


# --- reductions ---------------------------------------------------------------------------------


class AllReduce(Collective):
    """A family: the operand in all copies along `axes`, combined. Result: shape and dtype of x."""

    combine: Primitive
    label_axes = label_together

    def abstract_eval(self, x, *, axes, axis_index_groups):
        return [x]

    def refers(self, params):
        axes = params["axes"]
        whole = params["axis_index_groups"] is None
        return References(uses=copies.axis_names(params), drops=axes if whole else ())

    def lower(self, hlo, x, *, axes, axis_index_groups):
        groups = copies.replica_groups(hlo, self.name, axes, axis_index_groups)
        return copies.all_reduce(hlo, x, groups, self.combine)

    def apply_whole(self, x, size, params):
        groups = params["axis_index_groups"]
        if groups is None or len({len(g) for g in groups}) == 1:
            return super().apply_whole(x, size, params)
        parts = [self.apply_along(copies.arrange(x, g, 0), 0, len(g), params)[0] for g in groups]
        found = concatenate([layout.batched_at_front(y, None, 1) for y in parts], 0)
        place = {i: k for k, g in enumerate(groups) for i in g}
        return copies.arrange(found, [place[i] for i in range(size)], 0)

    def batch_one_of(self, axis, x, d, names, params):
        if params["axis_index_groups"] is not None:
            return super().batch_one_of(axis, x, d, names, params)
        rest = tuple(n for n in names if n != axis.name)
        (x,), dims = self.batch(axis, [x], [d], axes=(axis.name,), axis_index_groups=None)
        return self.apply(x, axes=rest, axis_index_groups=None), dims


class Psum(AllReduce, LinearPrimitive):
    """The sum of x over all copies along `axes`. Dtypes: numbers. Source: StableHLO, all_reduce.

    If types record which values vary over a mesh, this primitive is used for groups only; other
    sums are `psum_invariant`.
    """

    name = "psum"
    combine = add_p

    def abstract_eval(self, x, *, axes, axis_index_groups):
        check_kind(self.name, "number", x)
        return [x]

    def transpose(self, cts, x, **params):
        return self.apply(cts[0], **params)

    def batch(self, axis, args, dims, *, axes, axis_index_groups):
        params = {"axes": axes, "axis_index_groups": axis_index_groups}
        (x,), (d,) = args, dims
        if d is not None or axis_index_groups is not None:
            return super().batch(axis, args, dims, **params)
        rest = tuple(n for n in axes if n != axis.name)
        y = mul(x, layout.literal(axis.size, typeof(x).dtype))
        return (self.apply(y, axes=rest, axis_index_groups=None) if rest else [y]), [None]

    def apply_along(self, x, d, size, params):
        return layout.reduce_sum(x, (d,)), None


psum_p = Psum()


class AllExtremum(AllReduce):
    """The maximum or minimum of x over all copies along `axes`; NaN where there is one.

    Complex numbers are compared by their real parts first. Copies that tie for the result share
    the derivative equally. Source: StableHLO, all_reduce.
    """

    elements = Elements.CHOSEN

    def __init__(self, name: str, reduction: Reduction):
        self.name = name
        self.reduction = reduction
        self.combine = reduction.combine

    def lower(self, hlo, x, *, axes, axis_index_groups):
        if dtypes.is_float(x.aval.dtype):
            reduce = lambda x: AllReduce.lower(
                self, hlo, x, axes=axes, axis_index_groups=axis_index_groups
            )
            return [self.reduction.lower_by_order(hlo, x, lambda x: reduce(x)[0])]
        if not dtypes.is_complex(x.aval.dtype):
            return super().lower(hlo, x, axes=axes, axis_index_groups=axis_index_groups)
        # XLA reduces no complex numbers this way
        rows = copies.device_rows(hlo, self.name, axes)
        y = copies.fetch_copies(
            hlo, x, rows, axis_index_groups, self.reduction.identity(x.aval.dtype)
        )
        return self.reduction.lower(hlo, y, axes=(0,))

    def jvp(self, primals, tangents, *, axes, axis_index_groups):
        (x,), (t,) = primals, tangents
        (kept,) = keep_p.apply(x)  # else XLA may round x in two ways
        (out,) = self.apply(x, axes=axes, axis_index_groups=axis_index_groups)
        share = layout.convert(eq(kept, out), typeof(t).dtype)
        total, count = (psum(y, axes, axis_index_groups) for y in (mul(t, share), share))
        return [out], [div(total, count)]

    def batch(self, axis, args, dims, **params):
        if dims[0] is not None or params["axis_index_groups"] is not None:
            return super().batch(axis, args, dims, **params)
        rest = tuple(n for n in params["axes"] if n != axis.name)
        return self.apply(*args, **{**params, "axes": rest}) if rest else list(args), [None]

    def apply_along(self, x, d, size, params):
        return self.reduction.apply(x, axes=(d,))[0], None


pmax_p = AllExtremum("pmax", reduce_max_p)
pmin_p = AllExtremum("pmin", reduce_min_p)


def psum(x: Any, names: Sequence[copies.Name], groups: copies.Groups | None = None) -> Any:
    """The sum of `x` over copies along axes; in a typed program it does not vary along them."""
    have = varying_names(x)
    typed = tuple(n for n in names if n in have) if groups is None else ()
    others = tuple(n for n in names if n not in typed)
    if others:
        (x,) = psum_p.apply(x, axes=others, axis_index_groups=groups)
    return psum_invariant_p.apply(x, axes=typed)[0] if typed else x


# --- gathering and scattering -------------------------------------------------------------------


class AllGather(Collective, LinearPrimitive):
    """The operands of all copies, stacked along a new axis `all_gather_dimension` of the result.

    `tiled`: joined along that axis of the operand. Source: StableHLO, all_gather.
    """

    name = "all_gather"
    axis_params = ("all_gather_dimension",)
    elements = Elements.PLACED

    def abstract_eval(
        self, x, *, all_gather_dimension, axis_index_groups, axis_name, axis_size, tiled
    ):
        check_even(self.name, axis_index_groups)
        k = all_gather_dimension
        check_axes(self.name, (k,), x.ndim + (not tiled))
        middle = (axis_size * x.shape[k],) if tiled else (axis_size,)
        return [x.update(shape=(*x.shape[:k], *middle, *x.shape[k + tiled :]))]

    def lower(
        self, hlo, x, *, axis_name, axis_size, tiled, all_gather_dimension, axis_index_groups=None
    ):
        groups = copies.replica_groups(hlo, self.name, axis_name, axis_index_groups)
        return copies.gather_devices(hlo, x, groups, axis_size, all_gather_dimension, tiled)

    def transpose(self, cts, x, *, all_gather_dimension, **params):
        return reduce_scatter_p.apply(cts[0], scatter_dimension=all_gather_dimension, **params)

    def apply_along(self, x, d, size, params):
        k = params["all_gather_dimension"]
        x = copies.move_dim(x, d, k)
        return (copies.merge_dims(x, k) if params["tiled"] else x), None

    def batch_beside(self, x, d, params):
        new = self.shift_params(params, d)
        after = not params["tiled"] and new["all_gather_dimension"] <= d
        return self.apply(x, **new), [d + after]

    def batch_one_of(self, axis, x, d, names, params):
        if params["axis_index_groups"] is not None:
            return super().batch_one_of(axis, x, d, names, params)
        y, sizes, _ = gather_copies(self.name, axis, x, d, names)
        out, d = self.apply_along(y, 0, math.prod(sizes), params)
        return [out], [d]


all_gather_p = AllGather()


def all_gather(x: Any, names: Sequence[copies.Name], size: int) -> Any:
    """The operands of all copies along axes, in front of `x`."""
    return all_gather_p.apply(
        x,
        all_gather_dimension=0,
        axis_index_groups=None,
        axis_name=tuple(names),
        axis_size=size,
        tiled=False,
    )[0]


class AllGatherInvariant(AllGather):
    """Gather along axes of a mesh over which x varies; the result does not vary there."""

    name = "all_gather_invariant"

    def abstract_eval(self, x, **params):
        return super().abstract_eval(x, axis_index_groups=None, **params)

    def refers(self, params):
        return References(drops=params["axis_name"])  # of a mesh, and no vmap's

    def transpose(self, cts, x, *, all_gather_dimension, axis_name, axis_size, tiled):
        ct = pvary(cts[0], axis_name)
        at, k = copy_index(axis_name), all_gather_dimension
        if not tiled:
            return [dynamic_index_in_dim(ct, at, k, keepdims=False)]
        each = x.aval.shape[k]
        return [dynamic_slice_in_dim(ct, mul(at, each), each, k)]


all_gather_invariant_p = AllGatherInvariant()


class ReduceScatter(Collective, LinearPrimitive):
    """The sum of x over all copies; copy i gets element i of it along `scatter_dimension`.

    `tiled`: the axis is divided into `axis_size` equal parts, and copy i gets part i. Dtypes:
    numbers. Source: StableHLO, reduce_scatter.
    """

    name = "reduce_scatter"
    axis_params = ("scatter_dimension",)

    def abstract_eval(
        self, x, *, axis_index_groups, axis_name, axis_size, scatter_dimension, tiled
    ):
        check_kind(self.name, "number", x)
        check_even(self.name, axis_index_groups)
        k = scatter_dimension
        check_axes(self.name, (k,), x.ndim)
        n = x.shape[k]
        if n % axis_size if tiled else n != axis_size:
            fit = "divisible by" if tiled else "equal to"
            raise ShapeError(
                f"{self.name}: the size of scatter_dimension must be {fit} the size of axis "
                f"{copies.name_text(axis_name)}{' in a group' if axis_index_groups else ''}, "
                f"{axis_size}; got {n} (axis {k} of {x})."
            )
        middle = (n // axis_size,) if tiled else ()
        return [x.update(shape=(*x.shape[:k], *middle, *x.shape[k + 1 :]))]

    def lower(self, hlo, x, *, axis_index_groups, axis_name, axis_size, scatter_dimension, tiled):
        cell = x.aval.update(shape=())
        shape = list(x.aval.shape)
        shape[scatter_dimension] //= axis_size
        (y,) = hlo.op(
            "stablehlo.reduce_scatter",
            [x],
            [x.aval.update(shape=tuple(shape))],
            [hlo.block([cell, cell], lambda a, b: add_p.lower(hlo, a, b))],
            channel_handle=copies.CHANNEL,
            replica_groups=copies.replica_groups(hlo, self.name, axis_name, axis_index_groups),
            scatter_dimension=f"{scatter_dimension} : i64",
            use_global_device_ids="unit",
        )
        if tiled:
            return [y]
        del shape[scatter_dimension]
        return hlo.op("stablehlo.reshape", [y], [y.aval.update(shape=tuple(shape))])

    def transpose(self, cts, x, *, scatter_dimension, **params):
        return all_gather_p.apply(cts[0], all_gather_dimension=scatter_dimension, **params)

    def apply_along(self, x, d, size, params):
        total = layout.reduce_sum(x, (d,))
        k = params["scatter_dimension"]
        return (copies.split_dim(total, k, size) if params["tiled"] else total), k

    def batch_beside(self, x, d, params):
        new = self.shift_params(params, d)
        before = not params["tiled"] and new["scatter_dimension"] < d
        return self.apply(x, **new), [d - before]


reduce_scatter_p = ReduceScatter()


class AllGatherReduced(AllGatherInvariant):
    """Gather as all_gather_invariant does; the cotangent of the result is the terms of a sum."""

    name = "all_gather_reduced"
    hidden = ("mesh",)

    def abstract_eval(self, x, *, mesh, **params):
        (out,) = super().abstract_eval(x, **params)
        return [with_kind(out, params["axis_name"], mesh, "reduced")]

    def label_axes(self, avals, outs, **params):
        return None  # the type rule says it

    def lower(self, hlo, x, *, mesh, **params):
        (y,) = super().lower(hlo, x, **params)
        return [type(y)(y.name, with_kind(y.aval, params["axis_name"], mesh, "reduced"))]

    def transpose(self, cts, x, *, all_gather_dimension, **params):
        k = all_gather_dimension
        return unreduced_reduce_scatter_p.apply(cts[0], scatter_dimension=k, **params)


class UnreducedReduceScatter(ReduceScatter):
    """Scatter the terms of a sum over axes of a mesh; the result varies along them."""

    name = "unreduced_reduce_scatter"
    hidden = ("mesh",)

    def abstract_eval(self, x, *, mesh, **params):
        (out,) = super().abstract_eval(x, axis_index_groups=None, **params)
        return [with_kind(out, params["axis_name"], mesh, "")]

    def label_axes(self, avals, outs, **params):
        return None  # the type rule says it

    def refers(self, params):
        return References(adds=Varying.of(params["axis_name"]))

    def lower(self, hlo, x, *, mesh, **params):
        return super().lower(hlo, x, axis_index_groups=None, **params)

    def transpose(self, cts, x, *, scatter_dimension, **params):
        k = scatter_dimension
        return all_gather_reduced_p.apply(cts[0], all_gather_dimension=k, **params)


all_gather_reduced_p = AllGatherReduced()
unreduced_reduce_scatter_p = UnreducedReduceScatter()


# --- exchanging ---------------------------------------------------------------------------------


class AllToAll(Collective, LinearPrimitive):
    """Split x along `split_axis`, send part i to copy i, and join the received parts.

    The received parts are joined along `concat_axis`. `tiled` records the option of the caller:
    without it, parts and received parts have size 1. Source: StableHLO, all_to_all.
    """

    name = "all_to_all"
    axis_params = ("split_axis", "concat_axis")
    elements = Elements.PLACED
    hidden = ("axis_size",)

    def read_params(self, params, avals, out_avals):
        """Return `params` with `axis_size`, from the axes in scope or from the shapes."""
        axis, names = params["split_axis"], params["axis_name"]
        known = {a.name: a.size for a in named_axes.value}
        names = names if type(names) is tuple else (names,)
        if params["axis_index_groups"]:
            size = len(params["axis_index_groups"][0])
        elif all(n in known for n in names):
            size = math.prod(known[n] for n in names)
        else:
            size = avals[0].shape[axis] // (out_avals[0].shape[axis] or 1) if out_avals else 1
        return {"axis_size": size, **params}

    def abstract_eval(
        self, x, *, axis_index_groups, axis_name, axis_size, concat_axis, split_axis, tiled
    ):
        check_even(self.name, axis_index_groups)
        check_axes(self.name, (split_axis,), x.ndim)
        check_axes(self.name, (concat_axis,), x.ndim)
        n = x.shape[split_axis]
        if n % axis_size:
            raise ShapeError(
                f"{self.name}: the size of split_axis must be divisible by the size of axis "
                f"{copies.name_text(axis_name)}, {axis_size}; got {n} (axis {split_axis} of {x})."
            )
        shape = list(x.shape)
        shape[split_axis] //= axis_size
        shape[concat_axis] *= axis_size
        return [x.update(shape=tuple(shape))]

    def lower(self, hlo, x, **params):
        groups = params["axis_index_groups"]
        return hlo.op(
            "stablehlo.all_to_all",
            [x],
            self.abstract_eval(x.aval, **params),
            channel_handle=copies.CHANNEL,
            concat_dimension=f"{params['concat_axis']} : i64",
            replica_groups=copies.replica_groups(hlo, self.name, copies.axis_names(params), groups),
            split_count=f"{params['axis_size']} : i64",
            split_dimension=f"{params['split_axis']} : i64",
        )

    def transpose(self, cts, x, *, concat_axis, split_axis, **params):
        return self.apply(cts[0], concat_axis=split_axis, split_axis=concat_axis, **params)

    def apply_along(self, x, d, size, params):
        split, concat = params["split_axis"], params["concat_axis"]
        # the sender, ..., the receiver, part, ...
        x = copies.split_dim(layout.move_to_front(x, d), split + 1, size)
        x = copies.move_dim(x, split + 1, 0)  # the receiver, the sender, ...
        return copies.merge_dims(copies.move_dim(x, 1, concat + 1), concat + 1), 0


all_to_all_p = AllToAll()


class Ppermute(Collective, LinearPrimitive):
    """x of copy i in copy j, for each (i, j) of `perm`; zeros where none arrives.

    Source: StableHLO, collective_permute.
    """

    name = "ppermute"
    elements = Elements.PLACED
    of_all = True
    label_axes = label_together

    def abstract_eval(self, x, *, axis_name, perm):
        return [x]

    def lower(self, hlo, x, *, axis_name, perm):
        rows = copies.device_rows(hlo, self.name, axis_name)
        pairs = [(row[i], row[j]) for row in rows for i, j in perm]
        if not pairs:
            return [hlo.constant(0, x.aval.strong())]
        return hlo.op(
            "stablehlo.collective_permute",
            [x],
            [x.aval],
            channel_handle=copies.CHANNEL,
            source_target_pairs=copies.i64_matrix(pairs),
        )

    def transpose(self, cts, x, *, axis_name, perm):
        return self.apply(cts[0], axis_name=axis_name, perm=tuple((j, i) for i, j in perm))

    def apply_along(self, x, d, size, params):
        sources = [-1] * size
        for i, j in params["perm"]:
            sources[j] = i
        return copies.arrange(x, sources, d), d


ppermute_p = Ppermute()


class Pbroadcast(Collective, LinearPrimitive):
    """x of copy `source` in all copies.

    On a mesh the others add -0.0 or 0 to it, which changes nothing: XLA's own broadcast is
    not for all devices. Source: StableHLO, all_reduce.
    """

    name = "pbroadcast"
    elements = Elements.PLACED
    label_axes = label_together

    def abstract_eval(self, x, *, axis_name, source):
        return [x]

    def lower(self, hlo, x, *, axis_name, source):
        names = copies.axis_names({"axis_name": axis_name})
        rows = copies.device_rows(hlo, self.name, names)
        here = Expr(hlo, copies.own_index(hlo, rows)).compare("EQ", source)
        part = here.select(Expr(hlo, x), -0.0 if dtypes.is_inexact(x.aval.dtype) else 0)
        combine = reduce_max_p.combine if dtypes.is_bool(x.aval.dtype) else add_p
        return copies.all_reduce(hlo, part.value, copies.i64_matrix(rows), combine)

    def transpose(self, cts, x, *, axis_name, source):
        ct = cts[0]
        names = copies.axis_names({"axis_name": axis_name})
        # the sum stays varying: all but the source take nothing from it
        total = pvary(psum(ct, names), varying_names(ct))
        here = eq(copy_index(names), layout.literal(source, copies.INT))
        here = layout.broadcast_in_dim(here, typeof(ct).shape, ())
        return [select(here, total, layout.zeros(typeof(total)))]

    def apply_along(self, x, d, size, params):
        at = params["source"]
        y = slice_in_dim(x, at, at + 1, 1, d)
        shape = typeof(x).shape
        return layout.reshape(y, (*shape[:d], *shape[d + 1 :])), None


pbroadcast_p = Pbroadcast()


# --- which copy this is -------------------------------------------------------------------------


class AxisIndex(Discrete):
    """Return the index of this copy along the axis `axis_name`, an int32.

    `tracked`: the axis is of a mesh, and types say that the result varies along it.
    Source: StableHLO, partition_id.
    """

    name = "axis_index"

    def refers(self, params):
        axes = (params["axis_name"],)
        return References(uses=axes, adds=Varying.of(axes) if params["tracked"] else None)

    def pretty_params(self, params):
        return {"axis_name": params["axis_name"]}

    def read_params(self, params, avals, out_avals):
        tracked = bool(out_avals) and out_avals[0].varying is not None
        return {"tracked": tracked, **params}

    def abstract_eval(self, *, axis_name, tracked):
        return [ShapedArray((), copies.INT)]

    def lower(self, hlo, *, axis_name, tracked):
        place = lambda device: copies.index_along(hlo, self.name, axis_name, device).value
        return [copies.write_for_device(hlo, place)]

    def batch(self, axis, args, dims, *, axis_name, tracked):
        return [layout.iota(copies.INT, axis.size)], [0]


axis_index_p = AxisIndex()


def copy_index(names: Sequence[copies.Name]) -> Any:
    """Return the index of this copy along axes that count as one, the last one fastest."""
    total: Any = None
    for name in names:
        axis = copies.named_axis("axis_index", name)
        (index,) = axis_index_p.apply(axis_name=name, tracked=axis.tracked)
        total = index if total is None else add(mul(total, axis.size), index)
    return total
