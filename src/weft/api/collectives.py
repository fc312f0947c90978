"""Collectives on pytrees: `psum`, `all_gather`, `ppermute` and the others that name an axis.

The axis is one of a vmap, a pmap or a shard_map around. The operations and their rules are in
primitives/collective.py; users find these functions in `weft.lax`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.errors import ShapeError
from weft.primitives import collective, layout
from weft.primitives.copies import Groups, count_copies, name_text, named_axis
from weft.primitives.elementwise import div
from weft.primitives.families import (
    check_integer,
    check_parameter,
    index_pairs,
    index_tuple,
    normalize_axis,
)
from weft.primitives.reduction import reduce_max, reduce_min
from weft.primitives.varying import CASTS, apply_casts, kind_of, types_mesh, unreduced_psum_p
from weft.primitives.varying import pvary as mark_varying
from weft.pytrees import leaves, register_pytree_node, tree_map
from weft.util import check_option

AxisName = Hashable
AxisIndexGroups = Sequence[Sequence[int]] | None


class CollectiveAxes(NamedTuple):
    """The axes of a collective: their names, how many copies there are along them, and groups."""

    names: tuple
    size: int
    groups: Groups | None
    tracked: tuple  # the names of mesh axes whose program tracks varying values
    positional: tuple[int, ...]  # axes of the operand, for reductions

    @property
    def group_size(self) -> int:
        """Return the number of copies in a group, where groups are even."""
        return self.size if self.groups is None else len(self.groups[0])

    def has_even_groups(self) -> bool:
        return self.groups is None or len({len(g) for g in self.groups}) == 1

    def vary(self, x: Any) -> Any:
        """`x` as a value that may differ from device to device along the axes."""
        return mark_varying(x, self.tracked) if self.tracked else x


def resolve_axes(
    op: str, axis_name: Any, groups: AxisIndexGroups = None, reduces: bool = False
) -> CollectiveAxes:
    """The axes that the user named, all in scope; to reductions, integers are axes of leaves."""
    given = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    check_parameter(op, "axis_name", axis_name, "a name or a tuple of names", lambda _: hash(given))
    positional = tuple([n for n in given if reduces and type(n) is int])
    names = tuple([n for n in given if not reduces or type(n) is not int])
    if len(set(given)) != len(given):
        raise ValueError(f"{op}: axis_name must name each axis once; got {given}.")
    axes = [named_axis(op, n) for n in names]
    size = math.prod([a.size for a in axes])
    tracked = tuple([a.name for a in axes if a.tracked])
    return CollectiveAxes(names, size, check_groups(op, given, size, groups), tracked, positional)


def check_groups(op: str, names: tuple, size: int, groups: AxisIndexGroups) -> Groups | None:
    """Groups of copies as tuples; an error unless each copy is in one."""
    if groups is None:
        return None
    name = "axis_index_groups"
    read = lambda groups: tuple([index_tuple(group, op, name) for group in groups])
    out = check_parameter(op, name, groups, "sequences of integers", read)
    if sorted(i for g in out for i in g) != list(range(size)) or not all(out):
        raise ValueError(
            f"{op}: axis_index_groups must hold each index of axis {name_text(names)} (size "
            f"{size}) once; got {[list(g) for g in out]}."
        )
    return out


def bind_leaves(op: str, prim: Any, x: Any, where: CollectiveAxes, **params: Any) -> Any:
    """Bind a collective of one operand and one result to each leaf."""

    def bind(leaf: Any) -> Any:
        typeof(leaf, op)  # raises in the name of the operation
        return prim.apply(where.vary(leaf), **params)[0]

    return tree_map(bind, x)


# --- reductions ---------------------------------------------------------------------------------


def psum(x: Any, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> Any:
    """Sum arrays over a named axis of a `vmap`, a `pmap` or a `shard_map`.

    Data-parallel training sums gradients over devices with it. Each copy of the function receives
    the same total.

    Args:
      x: a pytree of arrays and numbers of any shapes. Bools count as int32.
      axis_name: the name of an axis that is in scope, or a tuple of names. The sum is over all of
        them. Integers in it are axes of the arrays themselves, which are summed as well.
      axis_index_groups: a list of lists of indices along the named axis, which together hold each
        index once. Each copy receives the sum of its own group. None, the default, sums over all
        copies.

    Returns:
      A pytree of the shapes and dtypes of `x`. A Python number or a NumPy array is the same in all
      copies, so its sum is computed at once without communication: `psum(1, "i")` is the size of
      the axis.

    Raises:
      UnboundAxisError: no axis of that name is in scope. It is a NameError.
      ValueError: the groups do not hold each index once.

    >>> weft.vmap(lambda x: x / weft.lax.psum(x, "i"), axis_name="i")(jnp.arange(4.0))
    Array([0.        , 0.16666667, 0.33333334, 0.5       ], dtype=float32)
    >>> pairs = lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 3]])
    >>> print(weft.vmap(pairs, axis_name="i")(jnp.arange(4.0)))
    [1. 1. 5. 5.]
    """
    where = resolve_axes("psum", axis_name, axis_index_groups, reduces=True)
    return tree_map(lambda leaf: sum_leaf("psum", leaf, where), x)


def sum_leaf(op: str, x: Any, where: CollectiveAxes) -> Any:
    """The sum of a leaf."""
    aval = typeof(x, op)
    if dtypes.is_bool(aval.dtype):
        x = int(x) if type(x) is bool else convert_bool(x)
    x = reduce_positions(op, x, where, layout.reduce_sum)
    if isinstance(x, dtypes.NUMBERS) and where.has_even_groups():
        return x * where.group_size
    if isinstance(x, np.ndarray | np.generic) and where.has_even_groups():
        return x * x.dtype.type(where.group_size)  # type: ignore[operator]
    terms = [n for n in where.tracked if kind_of(x, n) == "unreduced"] if where.tracked else []
    if not terms:
        return collective.psum(where.vary(x), where.names, where.groups) if where.names else x
    if where.groups is not None:
        raise ValueError(
            f"{op}: terms of a sum must be added up along all of an axis; got {typeof(x)} and "
            f"axis_index_groups {where.groups}."
        )
    x = apply_casts(x, [(unreduced_psum_p, tuple(terms))])
    rest = where._replace(names=tuple(n for n in where.names if n not in terms))
    rest = rest._replace(tracked=tuple(n for n in where.tracked if n not in terms))
    return collective.psum(rest.vary(x), rest.names, None) if rest.names else x


def convert_bool(x: Any) -> Any:
    """A bool leaf as int32, which sums of truth values are."""
    if isinstance(x, np.ndarray | np.generic):
        return x.astype(np.int32)
    return layout.convert(x, np.dtype(np.int32))


def reduce_positions(op: str, x: Any, where: CollectiveAxes, reduce: Callable) -> Any:
    """Reduce a leaf over its own axes among the named ones."""
    if not where.positional:
        return x
    if where.groups is not None:
        raise ValueError(
            f"{op}: axis_index_groups are for named axes alone; got axis_name "
            f"{(*where.positional, *where.names)}."
        )
    ndim = typeof(x).ndim
    return reduce(x, [normalize_axis(op, a, ndim) for a in where.positional])


def pmean(x: Any, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> Any:
    """Average arrays over a named axis of a `vmap`, a `pmap` or a `shard_map`.

    Args:
      x: a pytree of arrays and numbers of any shapes.
      axis_name: the name of an axis that is in scope, or a tuple of names. Integers in it are axes
        of the arrays themselves, as in `psum`.
      axis_index_groups: a list of lists of indices along the named axis, which together hold each
        index once. Each copy receives the mean of its own group. None, the default, averages all
        copies.

    Returns:
      A pytree of the shapes of `x`. Integers and bools become the default float dtype.

    Raises:
      UnboundAxisError: no axis of that name is in scope.
      ValueError: the groups do not hold each index once.

    >>> weft.vmap(lambda x: x - weft.lax.pmean(x, "i"), axis_name="i")(jnp.arange(3.0))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    where = resolve_axes("pmean", axis_name, axis_index_groups, reduces=True)

    def mean(leaf: Any) -> Any:
        aval = typeof(leaf, "pmean")
        shape = aval.shape
        if type(leaf) not in dtypes.NUMBERS and not dtypes.is_inexact(aval.dtype):
            leaf = layout.convert(leaf, dtypes.default_float())  # a sum of integers may wrap around
        total = sum_leaf("pmean", leaf, where)
        if type(total) in dtypes.NUMBERS:
            return total / where.group_size
        dtype = typeof(total).dtype
        if where.has_even_groups():
            count = where.group_size * math.prod([shape[a] for a in where.positional])
            return div(total, layout.literal(float(count), dtype))
        sizes = sum_leaf("pmean", layout.convert(1.0, dtype), where)
        return div(total, layout.broadcast_in_dim(sizes, typeof(total).shape, ()))

    return tree_map(mean, x)


def reduce_extremum(prim: Any, reduce: Callable, x: Any, axis_name: Any, groups: Any) -> Any:
    """Reduce a pytree by `pmax` or `pmin`."""
    where = resolve_axes(prim.name, axis_name, groups, reduces=True)

    def one(leaf: Any) -> Any:
        typeof(leaf, prim.name)
        y = reduce_positions(prim.name, leaf, where, reduce)
        if not where.names:
            return y
        return prim.apply(where.vary(y), axes=where.names, axis_index_groups=where.groups)[0]

    return tree_map(one, x)


def pmax(x: Any, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> Any:
    """Take the maximum of arrays over a named axis of a `vmap`, a `pmap` or a `shard_map`.

    Args:
      x: a pytree of arrays and numbers of any shapes, of real dtypes.
      axis_name: the name of an axis that is in scope, or a tuple of names. Integers in it are axes
        of the arrays themselves, as in `psum`.
      axis_index_groups: a list of lists of indices along the named axis, which together hold each
        index once. Each copy receives the maximum of its own group. None, the default, compares all
        copies.

    Returns:
      A pytree of the shapes and dtypes of `x`. It can be differentiated. Copies that tie for the
      maximum share the cotangent equally. JAX defines no derivative of `pmax`.

    Raises:
      UnboundAxisError: no axis of that name is in scope.
      ValueError: the groups do not hold each index once.

    >>> weft.vmap(lambda x: weft.lax.pmax(x, "i"), axis_name="i")(jnp.array([3, 1, 2]))
    Array([3, 3, 3], dtype=int32)
    """
    return reduce_extremum(collective.pmax_p, reduce_max, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> Any:
    """Take the minimum of arrays over a named axis of a `vmap`, a `pmap` or a `shard_map`.

    Args:
      x: a pytree of arrays and numbers of any shapes, of real dtypes.
      axis_name: the name of an axis that is in scope, or a tuple of names. Integers in it are axes
        of the arrays themselves, as in `psum`.
      axis_index_groups: a list of lists of indices along the named axis, which together hold each
        index once. Each copy receives the minimum of its own group. None, the default, compares all
        copies.

    Returns:
      A pytree of the shapes and dtypes of `x`. It can be differentiated. Copies that tie for the
      minimum share the cotangent equally.

    Raises:
      UnboundAxisError: no axis of that name is in scope.
      ValueError: the groups do not hold each index once.

    >>> weft.vmap(lambda x: weft.lax.pmin(x, "i"), axis_name="i")(jnp.array([3, 1, 2]))
    Array([1, 1, 1], dtype=int32)
    """
    return reduce_extremum(collective.pmin_p, reduce_min, x, axis_name, axis_index_groups)


# --- gathering and scattering -------------------------------------------------------------------


def all_gather(
    x: Any,
    axis_name: AxisName,
    *,
    axis_index_groups: AxisIndexGroups = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """Gather the arrays of all copies along a named axis, so that each copy has them all.

    Args:
      x: a pytree of arrays and numbers.
      axis_name: the name of an axis that is in scope, or a tuple of names. Its size is n below.
      axis_index_groups: a list of lists of equal length of indices along the named axis, which
        together hold each index once. Each copy receives the arrays of its own group, and n is the
        size of a group. None, the default, gathers from all copies.
      axis: the axis of the result along which the copies are. The default is 0.
      tiled: if False, the default, the arrays are stacked along a new axis. If True, they are
        joined along the axis `axis` that they have.
      to: how the result counts in a `shard_map` that checks which values vary. "varying", the
        default: as a value that may differ along the axis, although all copies have the same.
        "invarying": as the same value everywhere. "reduced": the same, and its cotangent is a sum
        that is not yet formed.

    Returns:
      A pytree of arrays of the dtypes of `x`. An operand of shape (a, b) gives (n, a, b) with
      `axis=0`, and (n * a, b) if `tiled`.

    Raises:
      UnboundAxisError: no axis of that name is in scope.
      ShapeError: `axis` is out of range. It is so for scalars if `tiled`.

    >>> weft.vmap(lambda x: weft.lax.all_gather(x, "i"), axis_name="i")(jnp.arange(2.0))
    Array([[0., 1.],
           [0., 1.]], dtype=float32)
    >>> joined = weft.vmap(lambda x: lax.all_gather(x, "i", tiled=True), axis_name="i")
    >>> joined(jnp.ones((2, 3))).shape
    (2, 6)
    """
    where = resolve_axes("all_gather", axis_name, axis_index_groups)
    collective.check_even("all_gather", where.groups)
    prim = collective.all_gather_p
    params: dict[str, Any] = {"axis_index_groups": where.groups}
    check_option("all_gather", "to", to, "varying", "invarying", "reduced")
    if to != "varying" and where.tracked:
        if where.groups is not None or where.tracked != where.names:
            raise ValueError(
                f"all_gather: to={to!r} is for whole axes of a mesh; got axis_name "
                f"{axis_name!r}, axis_index_groups {axis_index_groups}."
            )
        prim, params = collective.all_gather_invariant_p, {}
        if to == "reduced":
            prim, params = collective.all_gather_reduced_p, {"mesh": types_mesh()}

    def gather(leaf: Any) -> Any:
        k = normalize_axis("all_gather", axis, typeof(leaf, "all_gather").ndim + (not tiled))
        return prim.apply(
            where.vary(leaf),
            all_gather_dimension=k,
            axis_name=where.names,
            axis_size=where.group_size,
            tiled=bool(tiled),
            **params,
        )[0]

    return tree_map(gather, x)


def psum_scatter(
    x: Any,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: AxisIndexGroups = None,
    tiled: bool = False,
) -> Any:
    """Sum arrays over a named axis, and keep one part of the sum in each copy.

    It computes what `psum` and then a choice by `axis_index` compute, with less communication.
    Sharded optimizers sum gradients this way.

    Args:
      x: a pytree of arrays. Bools count as int32.
      axis_name: the name of an axis that is in scope, or a tuple of names.
      scatter_dimension: the axis of the arrays that is divided among the copies. The default is 0.
      axis_index_groups: a list of lists of equal length of indices along the named axis, which
        together hold each index once. Sums are within groups. None, the default, sums over all
        copies.
      tiled: if False, the default, the size of `scatter_dimension` must equal the number of copies,
        and the axis is removed. If True, it is divided into equal consecutive parts.

    Returns:
      A pytree of arrays of the dtypes of `x`. Copy i has element i, or part i, along
      `scatter_dimension`.

    Raises:
      UnboundAxisError: no axis of that name is in scope.
      ShapeError: the size of `scatter_dimension` does not fit the number of copies.

    >>> weft.vmap(lambda x: weft.lax.psum_scatter(x, "i"), axis_name="i")(jnp.ones((3, 3)))
    Array([3., 3., 3.], dtype=float32)
    >>> tiled = weft.vmap(lambda x: lax.psum_scatter(x, "i", tiled=True), axis_name="i")
    >>> print(tiled(jnp.arange(8.0).reshape(2, 4)))
    [[ 4.  6.]
     [ 8. 10.]]
    """
    where = resolve_axes("psum_scatter", axis_name, axis_index_groups)
    collective.check_even("psum_scatter", where.groups)

    def scatter(leaf: Any) -> Any:
        aval = typeof(leaf, "psum_scatter")
        if dtypes.is_bool(aval.dtype):
            leaf = convert_bool(leaf)
        k = normalize_axis("psum_scatter", scatter_dimension, aval.ndim)
        check_parts("psum_scatter: the size of scatter_dimension", aval, k, where, tiled)
        prim: Any = collective.reduce_scatter_p
        params: dict[str, Any] = {"axis_index_groups": where.groups}
        if where.tracked and {kind_of(leaf, n) for n in where.names} == {"unreduced"}:
            prim, params = collective.unreduced_reduce_scatter_p, {"mesh": types_mesh()}
        return prim.apply(
            leaf if "mesh" in params else where.vary(leaf),
            **params,
            axis_name=where.names,
            axis_size=where.group_size,
            scatter_dimension=k,
            tiled=bool(tiled),
        )[0]

    return tree_map(scatter, x)


def check_parts(what: str, aval: ShapedArray, k: int, where: CollectiveAxes, tiled: bool) -> None:
    """Raise unless axis `k` falls into a part for each copy, of size 1 if not `tiled`."""
    n = aval.shape[k]
    if n % where.group_size if tiled else n != where.group_size:
        whose = "" if where.groups is None else "the groups along "
        fit = "divisible by" if tiled else "equal to"
        size = where.group_size
        hint = "" if tiled or n % size else " Hint: tiled=True is for parts of the axis."
        raise ShapeError(
            f"{what} must be {fit} the size of {whose}axis {name_text(where.names)}, {size}; "
            f"got {n} (axis {k} of {aval}).{hint}"
        )


# --- exchanging ---------------------------------------------------------------------------------


def all_to_all(
    x: Any,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: AxisIndexGroups = None,
    tiled: bool = False,
) -> Any:
    """Send part i of each array to copy i, and join the parts that arrive.

    It transposes data over devices: arrays that are split along one of their axes become split
    along another.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis that is in scope, or a tuple of names.
      split_axis: the axis of the arrays that is divided among the copies.
      concat_axis: the axis of the results along which the parts that arrive are, in the order of
        the senders.
      axis_index_groups: a list of lists of equal length of indices along the named axis, which
        together hold each index once. Parts are exchanged within groups. None, the default, makes
        one group.
      tiled: if False, the default, the size of `split_axis` must equal the number of copies. The
        axis is removed, and the parts are stacked along a new axis `concat_axis`. If True, the axis
        is divided into equal consecutive parts, which are joined along `concat_axis`.

    Returns:
      A pytree of arrays of the dtypes of `x`.

    Raises:
      UnboundAxisError: no axis of that name is in scope.
      ShapeError: the size of `split_axis` does not fit the number of copies.

    >>> x = jnp.arange(4.0).reshape(2, 2)
    >>> weft.vmap(lambda x: weft.lax.all_to_all(x, "i", 0, 0), axis_name="i")(x)
    Array([[0., 2.],
           [1., 3.]], dtype=float32)
    >>> tiled = weft.vmap(lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), axis_name="i")
    >>> print(tiled(jnp.arange(8).reshape(2, 4)))
    [[0 1 4 5]
     [2 3 6 7]]
    """
    where = resolve_axes("all_to_all", axis_name, axis_index_groups)
    collective.check_even("all_to_all", where.groups)

    def exchange(leaf: Any) -> Any:
        aval = typeof(leaf, "all_to_all")
        split = normalize_axis("all_to_all", split_axis, aval.ndim)
        concat = normalize_axis("all_to_all", concat_axis, aval.ndim)
        check_parts("all_to_all: the size of split_axis", aval, split, where, tiled)
        if tiled or split == concat:
            return bind_exchange(leaf, where, split, concat, tiled)
        concat += split < concat  # counted before the split axis is gone
        y = layout.expand_dims(leaf, (concat,))
        split += concat <= split
        return layout.squeeze(bind_exchange(y, where, split, concat, tiled), (split,))

    return tree_map(exchange, x)


def bind_exchange(x: Any, where: CollectiveAxes, split: int, concat: int, tiled: bool) -> Any:
    """The exchange of parts of `x`, joined."""
    return collective.all_to_all_p.apply(
        where.vary(x),
        axis_index_groups=where.groups,
        axis_name=where.names[0] if len(where.names) == 1 else where.names,
        axis_size=where.group_size,
        concat_axis=concat,
        split_axis=split,
        tiled=bool(tiled),
    )[0]


def pswapaxes(
    x: Any, axis_name: AxisName, axis: int, *, axis_index_groups: AxisIndexGroups = None
) -> Any:
    """Exchange a named axis with an axis of the arrays.

    It is `all_to_all` with the same axis for both positions.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis that is in scope, or a tuple of names.
      axis: the axis of the arrays. Its size must equal the size of the named axis.
      axis_index_groups: a list of lists of equal length of indices along the named axis, which
        together hold each index once. The exchange is within groups. None, the default, makes one
        group.

    Returns:
      A pytree of arrays of the shapes and dtypes of `x`.

    Raises:
      UnboundAxisError: no axis of that name is in scope.
      ShapeError: the size of `axis` is not the size of the named axis.

    >>> x = jnp.arange(4.0).reshape(2, 2)
    >>> weft.vmap(lambda x: weft.lax.pswapaxes(x, "i", 0), axis_name="i")(x)
    Array([[0., 2.],
           [1., 3.]], dtype=float32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def ppermute(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """Send the arrays of copy i to copy j, for each pair (i, j) of a permutation.

    Pipelines and ring algorithms pass data to their neighbours with it. The transpose sends the
    cotangents back along the same pairs.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis that is in scope, or a tuple of names.
      perm: a list of pairs (source, destination) of indices along the axis. An index may be a
        source once and a destination once.

    Returns:
        A pytree of arrays of the shapes and dtypes of `x`. A copy that receives nothing has zeros.

    Raises:
      UnboundAxisError: no axis of that name is in scope.
      ValueError: an index is a source or a destination twice, or out of range.

    >>> shift = [(0, 1), (1, 2)]
    >>> weft.vmap(lambda x: weft.lax.ppermute(x, "i", shift), axis_name="i")(jnp.arange(1.0, 4.0))
    Array([0., 1., 2.], dtype=float32)
    """
    return permute_leaves("ppermute", x, axis_name, perm)


def permute_leaves(op: str, x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """`ppermute` in the name of `op`."""
    where = resolve_axes(op, axis_name)
    pairs = index_pairs(op, "perm", perm)
    for k, what in enumerate(("sources", "destinations")):
        ends = [pair[k] for pair in pairs]
        if len(set(ends)) != len(ends) or not all(0 <= i < where.size for i in ends):
            raise ValueError(
                f"{op}: {what} must be distinct indices of axis {name_text(where.names)}, in [0, "
                f"{where.size}); got {ends}."
            )

    return bind_leaves(op, collective.ppermute_p, x, where, axis_name=where.names, perm=pairs)


def pshuffle(x: Any, axis_name: AxisName, perm: Sequence[int]) -> Any:
    """Permute the copies: copy i receives the arrays of copy `perm[i]`.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis that is in scope.
      perm: a list that holds each index along the axis once. `perm[i]` is the source of copy i.

    Returns:
      A pytree of arrays of the shapes and dtypes of `x`.

    Raises:
      UnboundAxisError: no axis of that name is in scope.
      ValueError: `perm` does not hold each index once.

    >>> x = jnp.array([10.0, 20.0, 30.0])
    >>> weft.vmap(lambda x: weft.lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(x)
    Array([30., 10., 20.], dtype=float32)
    """
    sources = index_tuple(perm, "pshuffle", "perm")
    size = resolve_axes("pshuffle", axis_name).size
    if sorted(sources) != list(range(size)):
        raise ValueError(
            f"pshuffle: perm must hold each index of axis {name_text(axis_name)} (size {size}) "
            f"once; got {list(sources)}."
        )
    return permute_leaves("pshuffle", x, axis_name, [(i, j) for j, i in enumerate(sources)])


def pbroadcast(x: Any, axis_name: AxisName, source: int) -> Any:
    """Send the arrays of one copy to all copies.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis that is in scope, or a tuple of names.
      source: the index along the axis of the copy that is sent, an int.

    Returns:
      A pytree of arrays of the shapes and dtypes of `x`, the same in all copies.

    Raises:
      UnboundAxisError: no axis of that name is in scope.
      ValueError: `source` is out of range.

    >>> weft.vmap(lambda x: weft.lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.arange(3.0))
    Array([1., 1., 1.], dtype=float32)
    """
    where = resolve_axes("pbroadcast", axis_name)
    source = check_integer("pbroadcast", "source", source)
    if not 0 <= source < where.size:
        raise ValueError(
            f"pbroadcast: source must be an index of axis {name_text(where.names)}, in [0, "
            f"{where.size}); got {source}."
        )
    name = where.names[0] if len(where.names) == 1 else where.names

    return bind_leaves(
        "pbroadcast", collective.pbroadcast_p, x, where, axis_name=name, source=source
    )


# --- types and places ---------------------------------------------------------------------------


def pvary(x: Any, axis_name: AxisName) -> Any:
    """Mark arrays as values that may differ along axes of a mesh.

    The mark belongs to the types in a `shard_map` that checks which values vary: operands of one
    operation must vary along the same axes. Nothing is computed. Along axes of `vmap` it does
    nothing.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis that is in scope, or a tuple of names.

    Returns:
      The same arrays, marked as varying along the axes.

    Raises:
      UnboundAxisError: no axis of that name is in scope.

    >>> weft.vmap(lambda x: weft.lax.pvary(x, "i"), axis_name="i")(jnp.arange(2.0))
    Array([0., 1.], dtype=float32)
    """
    where = resolve_axes("pvary", axis_name)
    return tree_map(where.vary, x)


def pcast(x: Any, axis_name: AxisName, *, to: str) -> Any:
    """Mark arrays as values of another kind along axes of the mesh of a `shard_map`.

    The kind belongs to the types in a `shard_map` that checks which values vary. Nothing is
    computed.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis that is in scope, or a tuple of names.
      to: the new kind. "varying": the values may differ from device to device, as after `pvary`.
        "unreduced", for values that vary: they are the terms of a sum that `psum` forms, or
        `reshard` outside the `shard_map`. "reduced", for values that are the same on all devices:
        their cotangents are unreduced.

    Returns:
      The same arrays, with other types.

    Raises:
      UnboundAxisError: no axis of that name is in scope.
      ValueError: `to` is not one of the three, or the value cannot become that.

    >>> weft.vmap(lambda x: weft.lax.pcast(x, "i", to="varying"), axis_name="i")(jnp.arange(2.0))
    Array([0., 1.], dtype=float32)
    """
    if to not in ("varying", "unreduced", "reduced"):
        raise ValueError(
            f"pcast: to must be 'varying', 'unreduced' or 'reduced'; got {to!r}. Hint: psum, pmax "
            "or all_gather(..., to='invarying') makes a value that does not vary."
        )
    where = resolve_axes("pcast", axis_name)

    def cast(leaf: Any) -> Any:
        typeof(leaf, "pcast")
        moves: dict[Any, tuple] = {}
        for n in where.tracked:
            kind = kind_of(leaf, n)
            if (kind, to) not in CASTS and not kind == to == "varying":
                raise ValueError(
                    f"pcast: a value must be {SOURCES[to]} along {n!r} to become {to}; got "
                    f"{typeof(leaf)}, {kind or 'the same on all devices'}."
                )
            if kind != to:
                moves[CASTS[kind, to]] = (*moves.get(CASTS[kind, to], ()), n)
        return apply_casts(leaf, list(moves.items()))

    return tree_map(cast, x)


# The required kinds of the operand of `pcast`, for error messages.
SOURCES = {
    "varying": "the same on all devices, or reduced,",
    "unreduced": "varying",
    "reduced": "the same on all devices",
}


def axis_index(axis_name: AxisName) -> Any:
    """Return the index of this copy along a named axis, counted from 0.

    Args:
      axis_name: the name of an axis of a `vmap`, a `pmap` or a `shard_map` in scope, or a tuple of
        names. Along several axes the last name counts fastest.

    Returns:
      A scalar array of int32.

    Raises:
      UnboundAxisError: no axis of that name is in scope.

    >>> weft.vmap(lambda x: x + 10 * weft.lax.axis_index("i"), axis_name="i")(jnp.arange(3))
    Array([ 0, 11, 22], dtype=int32)
    """
    return collective.copy_index(resolve_axes("axis_index", axis_name).names)


def axis_size(axis_name: AxisName) -> int:
    """Return the number of copies along a named axis.

    Args:
      axis_name: the name of an axis of a `vmap`, a `pmap` or a `shard_map` in scope, or a tuple of
        names. For several names it is the product of the sizes.

    Returns:
      A Python int, also under `jit`.

    Raises:
      UnboundAxisError: no axis of that name is in scope.

    >>> weft.vmap(lambda x: x / weft.lax.axis_size("i"), axis_name="i")(jnp.ones(2))
    Array([0.5, 0.5], dtype=float32)
    """
    names = axis_name if isinstance(axis_name, tuple | list) else (axis_name,)
    return count_copies("axis_size", tuple(names))


# --- a permutation in two steps -----------------------------------------------------------------


class Sent:
    """The result of `psend`, for `precv`: arrays on their way along an axis."""

    def __init__(self, value: Any, where: tuple):
        self.value = value
        self.where = where


register_pytree_node(Sent, lambda s: ((s.value,), s.where), lambda where, xs: Sent(xs[0], where))


def psend(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Sent:
    """Send arrays from copy to copy as `ppermute` does; `precv` receives them.

    Operations between the two calls do not depend on the transfer, so a compiler may overlap them.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis that is in scope, or a tuple of names.
      perm: a list of pairs (source, destination) of indices along the axis.

    Returns:
      A token for `precv`.

    Raises:
      UnboundAxisError: no axis of that name is in scope.
      ValueError: an index is a source or a destination twice, or out of range.

    >>> def shift(x):
    ...     token = lax.psend(x, "i", [(0, 1), (1, 0)])
    ...     return lax.precv(token, x, "i", [(0, 1), (1, 0)])
    >>> print(weft.vmap(shift, axis_name="i")(jnp.arange(2)))
    [1 0]
    """
    return Sent(ppermute(x, axis_name, perm), (axis_name, tuple(map(tuple, perm))))


def precv(token: Sent, out_shape: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """Receive the arrays that `psend` sent.

    Args:
      token: the result of `psend`.
      out_shape: a pytree of arrays or `ShapeDtypeStruct`s with the shapes and dtypes that were
        sent.
      axis_name: the axis of the call of `psend`.
      perm: the permutation of the call of `psend`.

    Returns:
      A pytree of arrays. A copy that is not a destination has zeros.

    Raises:
      ValueError: the token is not of `psend` along this axis by this permutation.
      ShapeError: other shapes or dtypes were sent.

    >>> def pass_on(x):
    ...     token = lax.psend(x, "i", [(0, 1)])
    ...     return lax.precv(token, x, "i", [(0, 1)])
    >>> print(weft.vmap(pass_on, axis_name="i")(jnp.array([5, 6])))
    [0 5]
    """
    where = (axis_name, tuple(map(tuple, perm)))
    if not isinstance(token, Sent) or token.where != where:
        got = f"{token.where}" if isinstance(token, Sent) else repr(token)
        raise ValueError(
            f"precv: the token must be that of psend along the same axis; got {got} for {where}."
        )
    found = [typeof(y) for y in leaves(token.value)]
    wanted = [typeof(y) for y in leaves(out_shape)]
    if [(a.shape, a.dtype) for a in found] != [(a.shape, a.dtype) for a in wanted]:
        raise ShapeError(
            "precv: out_shape must be of the types that were sent; got "
            f"{', '.join(map(str, wanted))} for {', '.join(map(str, found))}."
        )
    return token.value
