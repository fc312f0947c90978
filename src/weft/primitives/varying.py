"""`Varying`, the part of a type that says along which axes of a mesh values may differ.

Also the operations that change it: `pvary` and `psum_invariant`, each the other's transpose, and
casts to and from terms of a sum and reduced values. Other collectives are in collective.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost, Elements, Runs
from weft.core.jaxpr import Eqn, Jaxpr, memo_jaxpr
from weft.core.primitive import References, Zero
from weft.core.source import describe_maker
from weft.errors import ShardingTypeError
from weft.mesh.client import default_device
from weft.mesh.mesh import AbstractMesh, get_abstract_mesh
from weft.mesh.typed import NO_NAMES, Sharded, entries_of
from weft.options import named_axes
from weft.primitives.copies import Meeting, Name, all_reduce, axis_names, name_text, replica_groups
from weft.primitives.elementwise import add_p
from weft.primitives.families import LinearByElement, check_kind, read_element
from weft.primitives.reshard import lay_as
from weft.util import Record


class Varying:
    """The axes of a mesh along which a value may differ, as part of its type; `{V:a}` in print.

    Interned by the set of names, in the order of the mesh. Programs use few subsets of axis names,
    so all objects are kept.
    """

    __slots__ = ("names",)
    _interned: dict[frozenset, Varying] = {}

    names: tuple[Name, ...]

    @classmethod
    def of(cls, names: Iterable[Name]) -> Varying | None:
        """Varying along these axes; None for no axes."""
        names = tuple(names)
        key = frozenset(names)
        found = cls._interned.get(key)
        if found is None and key:
            new = object.__new__(cls)
            new.names = order_by_scope(names)
            found = cls._interned.setdefault(key, new)  # another thread's, if it was quicker
        return found

    def __or__(self, other: Varying) -> Varying:
        return self if other is self else Varying.of((*self.names, *other.names))  # type: ignore

    def without(self, names: Iterable[Name]) -> Varying | None:
        """Return the type without `names`, along which the values no longer differ."""
        gone = set(names)
        return Varying.of([n for n in self.names if n not in gone])

    def missing(self, x: Any) -> tuple[Name, ...]:
        """The axes along which `x` does not vary."""
        has = varying_names(x)
        return tuple([n for n in self.names if n not in has])

    def cast(self, trace: Any, x: Any) -> Any:
        """`x`, under a trace, as a value that varies along these axes too."""
        axes = self.missing(x)
        for prim, part in split_kinds(x, axes):
            x = trace.process(prim, [x], params_of(prim, part))[0]
        return x

    def __str__(self) -> str:
        names = ",".join(map(str, self.names))
        return f"{{V:{names}}}" if len(self.names) == 1 else f"{{V:({names})}}"

    __repr__ = __str__

    def __reduce__(self) -> tuple:
        return Varying.of, (self.names,)


class ManualAxisType(Record):
    """The kinds of a value along the mesh axes of the `shard_map` around it.

    `typeof(x).mat` is the one of a value. `lax.pcast` changes it.

    Args:
      varying: the axes along which the value may differ between devices.
      unreduced: the axes along which the devices hold terms of a sum that is not formed yet.
      reduced: the axes along which all have the same value, whose cotangents are unreduced. All
        three are sets of names, and are empty by default.

    >>> ManualAxisType(varying={"x"}).varying
    frozenset({'x'})
    """

    __slots__ = ("varying", "unreduced", "reduced")

    def __init__(
        self,
        varying: Iterable[Name] = NO_NAMES,
        unreduced: Iterable[Name] = NO_NAMES,
        reduced: Iterable[Name] = NO_NAMES,
    ):
        self.varying = frozenset(varying)
        self.unreduced = frozenset(unreduced)
        self.reduced = frozenset(reduced)

    @classmethod
    def of(cls, aval: ShapedArray) -> ManualAxisType:
        """Return the manual type of values of type `aval`."""
        lies, varying = aval.sharded, axes_of_varying(aval.varying)
        if lies is None:
            return cls(varying)
        manual = frozenset(lies.mesh.manual_axes)
        return cls(varying, lies.unreduced & manual, lies.reduced & manual)

    def _in_types(self) -> Varying | None:
        return Varying.of(self.varying)


def order_by_scope(names: Iterable[Name]) -> tuple[Name, ...]:
    """Return each name once, in the order of the mesh, then of the axes in scope."""
    scope = [*get_abstract_mesh().axis_names, *(axis.name for axis in named_axes.value)]
    place = {name: i for i, name in enumerate(dict.fromkeys(scope))}
    return tuple(sorted(dict.fromkeys(names), key=lambda n: place.get(n, len(scope))))


def axes_of_varying(varying: Varying | None) -> tuple[Name, ...]:
    """The axes that it names; none of None."""
    return () if varying is None else varying.names


def varying_names(x: Any) -> tuple[Name, ...]:
    """The axes of a mesh along which a value may differ."""
    return axes_of_varying(typeof(x).varying)


class PsumInvariant(LinearByElement, Meeting):
    """The sum of x over all devices along `axes` of a mesh, over which it varies, and the sum not.

    Source: StableHLO, all_reduce.
    """

    name = "psum_invariant"

    def abstract_eval(self, x, *, axes):
        check_kind(self.name, "number", x)
        return [x]

    def refers(self, params):
        return References(drops=params["axes"])

    def lower(self, hlo, x, *, axes):
        return all_reduce(hlo, x, replica_groups(hlo, self.name, axes, None), add_p)

    def transpose(self, cts, x, *, axes):
        return pvary_p.apply(cts[0], axes=axes)


psum_invariant_p = PsumInvariant()


class Pvary(LinearByElement):
    """x, as a value that may differ along `axes` of a mesh. Nothing is computed."""

    name = "pvary"
    elements = Elements.PLACED
    cost = Cost.FREE
    element = read_element

    def abstract_eval(self, x, *, axes):
        return [x]

    def refers(self, params):
        return References(adds=Varying.of(params["axes"]))

    def lower(self, hlo, x, *, axes):
        return [x]

    def transpose(self, cts, x, *, axes):
        return psum_invariant_p.apply(cts[0], axes=axes)


pvary_p = Pvary()


# --- terms of sums, and values whose cotangents are -----------------------------------------------


class ManualCast(LinearByElement):
    """A family: x with another kind along the manual `axes`, from `old` to `new`.

    Kinds are "varying", "unreduced" (terms of a sum), "reduced" (the same on all devices, with an
    unreduced cotangent) and "" (the same on all devices, as is the cotangent). `mesh` is the mesh
    of the type of the result.
    """

    elements = Elements.PLACED
    old = new = ""

    def abstract_eval(self, x, *, axes, mesh):
        return [with_kind(x, axes, mesh, self.new)]

    def label_axes(self, avals, outs, **params):
        return None  # the type rule says it

    def refers(self, params):
        axes = params["axes"]
        adds = Varying.of(axes) if self.new == "varying" else None
        return References(adds=adds, drops=axes if self.old == "varying" else ())

    def lower(self, hlo, x, **params):
        return [type(x)(x.name, self.abstract_eval(x.aval, **params)[0])]

    def transpose(self, cts, x, **params):
        return TRANSPOSED[self].apply(cts[0], **params)

    def pretty_params(self, params):
        return {"axes": params["axes"]}


class Preduced(ManualCast):
    """x, whole, as a value whose cotangents are terms of a sum over `axes`."""

    name = "preduced"
    new = "reduced"


class UnreducedPsum(ManualCast, Meeting):
    """The sum of x over `axes`; each device has one term. Source: StableHLO, all_reduce."""

    name = "unreduced_psum"
    old = "unreduced"
    elements = Elements.NEW

    def lower(self, hlo, x, **params):
        groups = replica_groups(hlo, self.name, params["axes"], None)
        return super().lower(hlo, all_reduce(hlo, x, groups, add_p)[0], **params)


class VaryUnreduced(ManualCast):
    """x, which varies along `axes`, as the terms of a sum over them."""

    name = "vary_unreduced_cast_p"
    old, new = "varying", "unreduced"


class ReducedVary(ManualCast):
    """x, reduced along `axes`, as a value that may differ along them."""

    name = "reduced_vary_cast_p"
    old, new = "reduced", "varying"


def with_kind(aval: ShapedArray, axes: Sequence, mesh: AbstractMesh, new: str) -> ShapedArray:
    """Return a type that has the kind `new` along `axes`, and no other kind along them."""
    lies, kinds = aval.sharded, {}
    for kind in KINDS:
        have = getattr(lies, kind, NO_NAMES)
        kinds[kind] = have.union(axes) if new == kind else have.difference(axes)
    return aval.update(sharded=Sharded.of(mesh, entries_of(aval), **kinds))


preduced_p, unreduced_psum_p = Preduced(), UnreducedPsum()
vary_unreduced_p, reduced_vary_p = VaryUnreduced(), ReducedVary()
TRANSPOSED = {preduced_p: unreduced_psum_p, vary_unreduced_p: reduced_vary_p}
TRANSPOSED |= {y: x for x, y in TRANSPOSED.items()}
CASTS: dict = {(p.old, p.new): p for p in TRANSPOSED}
CASTS["", "varying"] = pvary_p
KINDS = ("unreduced", "reduced")
ADDED, SHARED = ("unreduced", ""), ("", "reduced")


def kind_of(x: Any, name: Name) -> str:
    """Return the kind of a value along an axis that its program is for: see `ManualCast`."""
    aval = typeof(x)
    if name in varying_names(x):
        return "varying"
    return next((k for k in KINDS if name in getattr(aval.sharded, k, NO_NAMES)), "")


def split_kinds(x: Any, axes: Sequence[Name]) -> list[tuple[Any, tuple]]:
    """Return the casts that make a value vary along `axes`, each with its axes."""
    if not axes or typeof(x).sharded is None:
        return [(pvary_p, tuple(axes))] if axes else []
    kinds = {n: kind_of(x, n) for n in axes}
    if "unreduced" in kinds.values():
        names = tuple(n for n in axes if kinds[n] == "unreduced")
        raise ShardingTypeError(
            f"pvary: terms of a sum must be added up first; got {typeof(x)}. Hint: "
            f"lax.psum(x, {names if len(names) > 1 else names[0]!r})."
        )
    parts = {k: tuple(n for n in axes if kinds[n] == k) for k in ("reduced", "")}
    return [(CASTS[k, "varying"], names) for k, names in parts.items() if names]


def params_of(prim: Any, axes: tuple) -> dict:
    """The parameters of a cast along `axes`, in the scope where it is applied."""
    return {"axes": axes} if prim is pvary_p else {"axes": axes, "mesh": types_mesh()}


def types_mesh() -> AbstractMesh:
    """The mesh that types of values refer to in the program around."""
    return get_abstract_mesh().update(abstract_device=None)


def pvary(x: Any, names: Sequence[Name]) -> Any:
    """`x` as a value that may differ along axes of a mesh."""
    have = varying_names(x)
    axes = tuple(n for n in order_by_scope(names) if n not in have)
    return apply_casts(x, split_kinds(x, axes))


def apply_casts(x: Any, casts: Sequence[tuple[Any, tuple]]) -> Any:
    """`x` after casts, each along some axes."""
    for prim, axes in casts:
        x = prim.apply(x, **params_of(prim, axes))[0]
    return x


def cast_kinds(x: Any, sharded: Sharded | None) -> Any:
    """`x`, of the kinds of `sharded` along the axes that the program around is for.

    What it has unreduced and `sharded` not is added up.
    """
    names = types_mesh().manual_axes if typeof(x).sharded is not None or sharded is not None else ()
    wanted = {n: next((k for k in KINDS if n in getattr(sharded, k, NO_NAMES)), "") for n in names}
    moves = {n: (kind_of(x, n), k) for n, k in wanted.items()}
    found = {m: tuple(n for n in moves if moves[n] == m) for m in (ADDED, SHARED)}
    return apply_casts(x, [(CASTS[m], axes) for m, axes in found.items() if axes])


def add_terms(ct: Any) -> Any:
    """A cotangent, added up where it is terms of a sum; the same object where it is not."""
    lies = None if type(ct) is Zero else typeof(ct).sharded
    if lies is None or not lies.unreduced:
        return ct
    to = lies.update(unreduced=NO_NAMES)
    return lay_as(cast_kinds(ct, to), to)


# --- where devices take different ways ------------------------------------------------------------


@memo_jaxpr
def list_meetings(jaxpr: Jaxpr) -> tuple[tuple[Eqn, Any], ...]:
    """Return the synchronizing operations of a program in order, each with a key.

    Operations with equal keys may synchronize with each other even in different programs.
    """
    found: list[tuple[Eqn, Any]] = []
    for eqn in jaxpr.eqns:
        prim, params = eqn.primitive, eqn.params
        if isinstance(prim, Meeting):
            shapes = [(a.aval.shape, a.aval.dtype) for a in eqn.invars]
            found.append((eqn, (prim, tuple(shapes), tuple(params.items()))))
        for body in () if prim.memoize_type else prim.bodies(params):
            inner = () if body.jaxpr is None else list_meetings(body.jaxpr)
            once = body.runs in (Runs.ONCE, Runs.AGAIN)
            found += inner if once else [(e, object()) for e, _ in inner]
    return tuple(found)


def check_meetings(op: str, decides: ShapedArray, branches: Sequence[Jaxpr]) -> None:
    """Raise if devices that take different branches would wait for each other forever.

    The value `decides` selects a branch on each device; with one branch, it decides how often the
    branch runs. One synchronizing operation that all branches share is allowed. Several are not,
    since XLA may order them differently in each branch.
    """
    sizes = {axis.name: axis.size for axis in named_axes.value}
    apart = [n for n in axes_of_varying(decides.varying) if sizes.get(n) != 1]
    found = [[m for m in list_meetings(b) if met_along(m[0], apart)] for b in branches if apart]
    keys = [[key for _, key in row] for row in found]
    if not any(keys) or (len(keys) > 1 and len(keys[0]) == 1 and all(k == keys[0] for k in keys)):
        return
    eqn = next(e for row in found for e, _ in row)
    names = tuple(met_along(eqn, apart))
    what = describe_maker(eqn.source, eqn.primitive.name.removesuffix("_invariant"))
    raise ShardingTypeError(
        f"{op}: what decides must be the same on devices that wait for each other; got {decides}, "
        f"and within a value {what}. Hint: lax.pmax(pred, {name_text(names)}) to decide, or the "
        "collective before it."
    )


def met_along(eqn: Eqn, apart: Sequence[Name]) -> list[Name]:
    """Return the axes along which the devices that wait for each other may differ."""
    if eqn.params.get("axis_index_groups"):
        return []  # types do not know groups
    of_all = eqn.primitive.of_all and default_device().platform == "cpu"  # type: ignore[attr-defined]
    return [n for n in apart if of_all or n in axis_names(eqn.params)]
