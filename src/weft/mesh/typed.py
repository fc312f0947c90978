"""`Sharded`: the part of a type that says how values are split over the explicit axes of a mesh.

This file also computes the split of an operation's results from the split of its operands. Each
primitive declares which axes of its results are which axes of its operands
(`Primitive.label_axes`); the rest is common to all (docs/design/021-explicit-axes.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Linearity
from weft.dtypes import is_bool, is_inexact
from weft.errors import ShardingTypeError
from weft.mesh.mesh import (
    AbstractMesh,
    AxisType,
    Mesh,
    get_abstract_mesh,
    get_entered_mesh,
    get_mesh,
    retype_axes,
)
from weft.mesh.sharding import NamedSharding, check_divisible, sized_axes, terms_of
from weft.mesh.spec import PartitionSpec, names_in_spec
from weft.util import memoize

Names = tuple[Any, ...]
NO_NAMES: frozenset = frozenset()
# Parameters that give the sharding of results; type rules use them (`typed_as`).
GIVEN = ("out_sharding", "sharding", "dst_sharding")


class Sharded:
    """The split of a value over the explicit axes of a mesh, as its type carries it. Interned.

    `entries` has, for each axis of the value, the names of the mesh axes that it is split over.
    Along the axes `unreduced` each device holds a term of a sum that is still to be formed; a value
    that is `reduced` along an axis is whole there, and its cotangent unreduced. A value that is
    whole everywhere has None in place of this.
    """

    __slots__ = ("__weakref__", "entries", "mesh", "reduced", "unreduced")
    _interned: dict[tuple, Sharded] = {}

    mesh: AbstractMesh
    entries: tuple[Names, ...]
    unreduced: frozenset
    reduced: frozenset

    @classmethod
    def of(
        cls, mesh: AbstractMesh, entries: Iterable, unreduced: Any = (), reduced: Any = ()
    ) -> Sharded | None:
        """Return the interned object with these fields; None if nothing is split."""
        key = (mesh, tuple(entries), frozenset(unreduced), frozenset(reduced))
        if not (any(key[1]) or key[2] or key[3]):
            return None
        found = cls._interned.get(key)
        if found is None:
            new = object.__new__(cls)
            new.mesh, new.entries, new.unreduced, new.reduced = key
            found = cls._interned.setdefault(key, new)  # another thread's, if it was quicker
        return found

    @property
    def named(self) -> NamedSharding:
        """The same as a sharding over the mesh, which has no devices."""
        return NamedSharding(self.mesh, self.spec)

    @property
    def spec(self) -> PartitionSpec:
        """The same as a spec."""
        kinds = {"unreduced": self.unreduced, "reduced": self.reduced}
        return PartitionSpec(*self.entries, **kinds)

    @property
    def names(self) -> tuple:
        """The axes of the mesh that some axis of the value is split over."""
        return tuple(n for names in self.entries for n in names)

    def update(self, **changes: Any) -> Sharded | None:
        """The same except for `entries`, `unreduced` or `reduced`."""
        fields = ("entries", "unreduced", "reduced")
        return Sharded.of(self.mesh, **{**{n: getattr(self, n) for n in fields}, **changes})

    def without_axis(self, dim: int) -> Sharded | None:
        """Return the split of a value's elements along axis `dim`."""
        return self.update(entries=(*self.entries[:dim], *self.entries[dim + 1 :]))

    def with_axis(self, dim: int, names: Names = ()) -> Sharded | None:
        """Return the split of values stacked along a new axis `dim`, split over `names`."""
        return self.update(entries=(*self.entries[:dim], names, *self.entries[dim:]))

    def stack(self, aval: ShapedArray, dim: int) -> Sharded | None:
        """Return the split of values of type `aval` joined along an axis `dim` that is split so."""
        if aval.sharded is not None:
            return aval.sharded.with_axis(dim, self.entries[0])
        entries = [()] * (aval.ndim + 1)
        entries[dim] = self.entries[0]
        return self.update(entries=entries)

    def without(self, names: Iterable) -> Sharded | None:
        """The same but whole along the axes `names` of the mesh."""
        gone = set(names)
        left = tuple(tuple(n for n in entry if n not in gone) for entry in self.entries)
        return Sharded.of(self.mesh, left, self.unreduced - gone, self.reduced - gone)

    def of_part(self, names: Sequence, tracked: bool) -> Sharded | None:
        """Return the split of a part of the value, in a program for one device along `names`.

        If types are not `tracked`, they omit the unreduced and reduced axes among `names`.
        """
        whole = self.without(names)
        entries = [()] * len(self.entries) if whole is None else whole.entries
        gone = NO_NAMES if tracked else frozenset(names)
        mesh = make_manual(self.mesh, tuple(names))
        return Sharded.of(mesh, entries, self.unreduced - gone, self.reduced - gone)

    @property
    def dual(self) -> Sharded | None:
        """Return the split of cotangents: reduced values have unreduced ones, and the reverse."""
        if not (self.unreduced or self.reduced):
            return self
        return Sharded.of(self.mesh, self.entries, self.reduced, self.unreduced)

    def sized_text(self, shape: Sequence[int]) -> str:
        """The sizes in the text of a type: `8@X,4`."""
        sizes = zip(shape, self.entries, strict=True)
        return ",".join(f"{n}@{names_text(e)}" if e else str(n) for n, e in sizes)

    def __str__(self) -> str:
        kinds = (("U", self.unreduced), ("R", self.reduced))
        in_order = lambda names: tuple(n for n in self.mesh.axis_names if n in names)
        texts = [f"{k}:{names_text(in_order(names))}" for k, names in kinds if names]
        return f"{{{', '.join(texts)}}}" if texts else ""

    def __repr__(self) -> str:
        return f"Sharded({self.spec})"

    def __reduce__(self) -> tuple:
        return Sharded.of, (self.mesh, self.entries, self.unreduced, self.reduced)

    def lay_out(self, prim: Any, avals: Sequence, outs: list, params: dict) -> list:
        """Return the types of the results of `prim`, where some operands are split."""
        return split_results(prim, avals, outs, params)


def names_text(names: Sequence[Any]) -> str:
    """Axes of a mesh in the text of a type: `X`, `(X,Y)`."""
    return str(names[0]) if len(names) == 1 else f"({','.join(map(str, names))})"


# --- shardings and types ----------------------------------------------------------------------


# called for each array that is made; few shardings occur
@memoize
def sharded_of(sharding: Any, ndim: int) -> Sharded | None:
    """Return the part of a sharding that types of values of rank `ndim` state."""
    mesh = getattr(sharding, "mesh", None)
    explicit = mesh.explicit_axes if isinstance(mesh, Mesh | AbstractMesh) else ()
    if not isinstance(sharding, NamedSharding):
        return None
    spec = sharding.spec
    if not (explicit or spec.unreduced or spec.reduced):
        return None
    entries = [tuple(n for n in spec.axes(i) if n in explicit) for i in range(ndim)]
    return Sharded.of(kind_of_mesh(mesh), entries, spec.unreduced, spec.reduced)


@memoize
def kind_of_mesh(mesh: Mesh | AbstractMesh) -> AbstractMesh:
    """The axes of a mesh, without devices or a kind of them."""
    return mesh.abstract_mesh.update(abstract_device=None)


@memoize
def make_manual(mesh: Mesh | AbstractMesh, names: tuple) -> AbstractMesh:
    """Return the axes of a mesh in a program for one device along the axes `names`."""
    return retype_axes(kind_of_mesh(mesh), names, AxisType.Manual)


def entries_of(aval: ShapedArray) -> Sequence[Names]:
    """For each axis of values of a type, the axes of the mesh that it is split over."""
    return ((),) * aval.ndim if aval.sharded is None else aval.sharded.entries


def dual_of(aval: ShapedArray) -> Sharded | None:
    """Return the split of the cotangents of a type."""
    return aval.sharded and aval.sharded.dual


def typed_for(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """The type of an array of type `aval` that has a sharding."""
    sharded = sharded_of(sharding, aval.ndim)
    return aval if aval.sharded is sharded else aval.update(sharded=sharded)


def typed_as(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """Return the type of a result with the sharding of a parameter; unchanged if it is None."""
    out = aval if sharding is None else typed_for(aval, sharding)
    if out is not aval:
        check_divisible("out_sharding", sharding, aval.shape, f"the result {out}")
    return out


def sharding_of(aval: Any, mesh: Mesh | AbstractMesh) -> NamedSharding:
    """The sharding over the devices of a mesh that the type of a value says."""
    spec = PartitionSpec(*[None] * aval.ndim) if aval.sharded is None else aval.sharded.spec
    return NamedSharding(mesh, spec)


def with_every_entry(sharding: NamedSharding, ndim: int) -> NamedSharding:
    """Return a sharding over explicit axes with an entry for each axis, as types have it."""
    spec, missing = sharding.spec, ndim - len(sharding.spec)
    if missing <= 0 or not sharding.mesh.explicit_axes:
        return sharding
    return sharding.with_spec(spec.update(partitions=(*spec, *[None] * missing)))


def check_terms(op: str, out: ShapedArray, *summed: tuple[ShapedArray, Sequence[int]]) -> None:
    """Raise if a result has terms of a sum along other mesh axes than it is summed over.

    The right axes are those that split summed axes of operands: `summed` has pairs of an operand's
    type and such axes, for all operands (if an operand is not split, jaxlib ends the process).
    """
    if out.sharded is None or not out.sharded.unreduced:
        return
    have = set(out.sharded.unreduced)
    for a, axes in summed:
        split = [] if a.sharded is None else [n for i in axes for n in a.sharded.entries[i]]
        have &= {*split, *(NO_NAMES if a.sharded is None else a.sharded.unreduced)}
    if have != out.sharded.unreduced:
        listed = list_types([a for a, _ in summed])
        raise ShardingTypeError(
            f"{op}: must be unreduced along axes that split what is summed over; got {listed} to "
            f"{out.sharded.spec}. Hint: weft.reshard(result, P(..., unreduced=...))."
        )


def check_readable(x: Any) -> None:
    """Raise where devices hold terms of a sum that is still to be formed."""
    if terms_of(x.sharding):
        raise ShardingTypeError(
            f"array: terms of a sum over a mesh must be added up to be read; got {x.aval}. "
            f"Hint: weft.reshard(x, {x.sharding.spec.update(unreduced=frozenset())})."
        )


def check_writable(aval: ShapedArray, sharding: Any) -> None:
    """Raise where devices would have to be given a value as terms of a sum."""
    if terms_of(sharding):
        raise ShardingTypeError(
            f"array: only a program can make a value terms of a sum over a mesh; got {aval} for "
            f"{sharding.spec}. Hint: weft.reshard(x, {sharding.spec})."
        )


def mesh_around(*like: Any) -> Any:
    """Return the mesh in scope, or the mesh of the first of these values that is split."""
    mesh: Any = get_mesh()
    if mesh.empty or kind_of_mesh(mesh) is not kind_of_mesh(get_abstract_mesh()):
        mesh = get_abstract_mesh()
    mesh = get_entered_mesh() if mesh.empty else mesh
    for x in like if mesh.empty else ():
        lies = typeof(x).sharded if hasattr(x, "aval") else None
        if lies is not None:
            return getattr(getattr(x, "sharding", None), "mesh", lies.mesh)
    return mesh


def resolve_sharding(op: str, sharding: Any, ndim: int, *like: Any) -> NamedSharding | None:
    """The sharding that `out_sharding` stands for; a spec is over the mesh in scope.

    Without one it is over the mesh of the values in `like`. The axes it names must be explicit.
    """
    if sharding is None:
        return None
    if isinstance(sharding, PartitionSpec):
        mesh = mesh_around(*like)
        if mesh.empty:
            raise ShardingTypeError(
                f"{op}: out_sharding must be a sharding where no mesh is in scope; got {sharding}. "
                f"Hint: NamedSharding(mesh, {sharding}), or weft.set_mesh(mesh)."
            )
        sharding = NamedSharding(mesh, sharding)
    if not isinstance(sharding, NamedSharding):
        raise ShardingTypeError(
            f"{op}: out_sharding must be a spec or a NamedSharding; got {sharding!r}. Hint: P('x')."
        )
    mesh, spec = sharding.mesh, sharding.spec
    # within a shard_map kinds along its axes are in types too, and rules give back what types say
    kinds = (*spec.unreduced, *spec.reduced)
    unknown = [n for n in names_in_spec(spec) if n not in mesh.explicit_axes]
    unknown += [n for n in kinds if n in mesh.auto_axes]
    if unknown:
        raise ShardingTypeError(
            f"{op}: out_sharding must name explicit axes of the mesh; got {unknown[0]!r} in {spec} "
            f"of {mesh}. Hint: make_mesh(..., axis_types=AxisType.Explicit), or "
            "with_sharding_constraint for axes that are automatic."
        )
    if len(spec) > ndim:
        raise ShardingTypeError(
            f"{op}: out_sharding must have no more entries than the result has axes; got {spec} "
            f"for rank {ndim}."
        )
    return with_every_entry(sharding, ndim)


# --- results of operations ----------------------------------------------------------------------


def split_results(prim: Any, avals: Sequence, outs: list, params: dict) -> list:
    """Return the types of the results of `prim`, where some operands are split."""
    if any(params.get(name) is not None for name in GIVEN):
        return outs  # the type rule says it
    meshes = {a.sharded.mesh for a in avals if a.sharded is not None}
    if len(meshes) > 1:
        listed = " and ".join(sorted(map(str, meshes)))
        raise ShardingTypeError(f"{prim.name}: operands must be over one mesh; got {listed}.")
    (mesh,) = meshes
    labels = prim.label_axes(avals, outs, **params)
    if labels is None:
        return outs
    found, splitters = join_entries(prim, avals, labels)
    if labels.contracts:
        kept = {label for row in labels.results for label in row}
        for label, count in splitters.items():
            if count > 1 and label not in kept:
                listed = ", ".join(map(repr, found[label]))
                raise ShardingTypeError(
                    f"{prim.name}: the result must have a sharding where the axis that is summed "
                    f"over is split in both operands; got {list_types(avals)}, split over "
                    f"{names_text(found[label])}. Hint: out_sharding=P(...), whole along that axis "
                    f"of the mesh, or P(..., unreduced={{{listed}}}) to add up later."
                )
    unreduced, reduced = join_sums(prim, avals, labels)
    typed = []
    for out, row in zip(outs, labels.results, strict=True):
        entries = [
            sum([found.get(x, ())[names] for x, names in label], ())
            if type(label) is list
            else found.get(label, ())
            for label in row
        ]
        check_entries(prim, avals, out, entries, mesh)
        taken = {n for names in entries for n in names}
        sharded = Sharded.of(mesh, entries, unreduced, reduced - taken)
        typed.append(out.update(sharded=sharded))
    return typed


def join_entries(prim: Any, avals: Sequence, labels: Any) -> tuple[dict, dict]:
    """Return the split of the axes of each label, and the number of split operands."""
    found: dict[Any, Names] = {}
    splitters: dict[Any, int] = {}
    for aval, row in zip(avals, labels.operands, strict=True):
        if aval.sharded is None:
            continue
        for i, (label, names) in enumerate(zip(row, aval.sharded.entries, strict=True)):
            if not names:
                continue
            if label is None:
                whole = [None if k == i else e for k, e in enumerate(aval.sharded.entries)]
                spec = ", ".join(map(repr, PartitionSpec(*whole)))
                raise ShardingTypeError(
                    f"{prim.name}: axis {i} must not be split over a mesh here; got "
                    f"{list_types(avals)}. Hint: {labels.hint or f'weft.reshard(x, P({spec}))'}."
                )
            if found.setdefault(label, names) != names:
                raise ambiguity_error(prim, avals)
            splitters[label] = splitters.get(label, 0) + 1
    return found, splitters


def join_sums(prim: Any, avals: Sequence, labels: Any) -> tuple[frozenset, frozenset]:
    """Along which axes of the mesh results are terms of a sum, and along which reduced."""
    of = [a.sharded for a in avals]
    terms = [NO_NAMES if s is None else s.unreduced for s in of]
    whole = [NO_NAMES if s is None else s.reduced for s in of]
    unreduced, reduced = NO_NAMES.union(*terms), NO_NAMES.union(*whole)
    for a, s, mine in zip(avals, of, terms, strict=True):
        names = () if s is None else s.names
        if is_bool(a.dtype):  # what chooses between terms
            continue
        if not unreduced.isdisjoint(names) or (
            unreduced and not fits_terms(labels.linear, terms, mine, a)
        ):
            raise ShardingTypeError(
                f"{prim.name}: terms of a sum over a mesh must be added up first; got "
                f"{list_types(avals)}. Hint: weft.reshard(x, P(...)), without unreduced."
            )
        if not labels.contracts and not reduced.isdisjoint(names):
            raise ShardingTypeError(
                f"{prim.name}: operands must not be split over an axis along which another is "
                f"reduced; got {list_types(avals)}. Hint: weft.reshard(x, P(...)), without reduced."
            )
    return unreduced, NO_NAMES if labels.contracts else reduced - unreduced


def fits_terms(linear: Linearity, terms: list[frozenset], mine: frozenset, a: ShapedArray) -> bool:
    """Return True if an operand may be combined with others that are terms of a sum."""
    unreduced = NO_NAMES.union(*terms)
    if linear is Linearity.JOINT:
        return mine == unreduced
    if linear is Linearity.NONE:
        return False
    if linear is Linearity.FIRST and not (terms[0] and is_inexact(a.dtype)):
        return False
    if mine:  # one such operand; the others are reduced or the same everywhere
        return mine == unreduced and sum(map(bool, terms)) == 1
    return not a.ndim if a.sharded is None else unreduced <= a.sharded.reduced


def check_entries(prim: Any, avals: Sequence, out: Any, entries: Sequence, mesh: Any) -> None:
    """Raise where a result cannot be split so."""
    names = [n for entry in entries for n in entry]
    if len(set(names)) != len(names):
        raise ambiguity_error(prim, avals)
    for i, (size, entry) in enumerate(zip(out.shape, entries, strict=True)):
        count = math.prod(mesh.shape[n] for n in entry)
        if count > 1 and size % count:
            of = (a.sharded for a in avals)
            split = next(s for s in of if s is not None and not set(entry).isdisjoint(s.names))
            left = split.without(entry)
            raise ShardingTypeError(
                f"{prim.name}: axis {i} of the result must be divisible by {count}, the size of "
                f"mesh axis {sized_axes(mesh, entry)}; got size {size} from {list_types(avals)}. "
                f"Hint: weft.reshard(x, {left.spec if left else 'P()'})."
            )


def list_types(avals: Sequence) -> str:
    """Types as an error lists them."""
    return ", ".join(map(str, avals))


def ambiguity_error(prim: Any, avals: Sequence) -> ShardingTypeError:
    """The error for operands that are split in ways that do not go together."""
    spec = next(a.sharded.spec for a in avals if a.sharded is not None)
    return ShardingTypeError(
        f"{prim.name}: operands must be split alike over the mesh; got {list_types(avals)}, of "
        f"which the result could be split in more than one way. Hint: weft.reshard(y, {spec}) for "
        "the other."
    )
