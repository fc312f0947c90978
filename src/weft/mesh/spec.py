"""`PartitionSpec`: which axes of a mesh each axis of an array is split over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Unconstrained:
    """The entry of a spec that leaves an axis to the compiler: `PartitionSpec.UNCONSTRAINED`."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = Unconstrained()


class PartitionSpec:
    """The axes of a mesh over which each axis of an array is split. Its short name is `weft.P`.

    Args:
      *partitions: an entry for each axis of the array. None: the axis is not split, so every device
        has all of it. A name: it is split over that mesh axis. A tuple of names: it is split over
        all of them, the first one outermost. `P.UNCONSTRAINED`: the compiler decides. Axes without
        an entry are not split.
      unreduced: a set of names of mesh axes. Along them, each device holds a term of a sum that is
        still to be formed. The default is the empty set.
      reduced: a set of names of mesh axes. Along them all devices have the same values, and the
        cotangents are unreduced. The default is the empty set.

    >>> P = PartitionSpec
    >>> P("x", None), P(("x", "y"))
    (P('x', None), P(('x', 'y'),))
    """

    __slots__ = ("_hash", "partitions", "reduced", "unreduced")

    UNCONSTRAINED = UNCONSTRAINED

    partitions: tuple
    unreduced: frozenset
    reduced: frozenset

    def __init__(self, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()):
        self.partitions = tuple(map(normalize_entry, partitions))
        self.unreduced = _check_axis_set("unreduced", unreduced)
        self.reduced = _check_axis_set("reduced", reduced)
        try:
            self._hash = hash((self.partitions, self.unreduced, self.reduced))
        except TypeError:
            raise TypeError(
                "PartitionSpec: entries must be None, names of mesh axes, or tuples of names; "
                f"got {', '.join(map(repr, partitions))}."
            ) from None

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is PartitionSpec
            and other.partitions == self.partitions
            and other.unreduced == self.unreduced
            and other.reduced == self.reduced
        )

    def __hash__(self) -> int:
        return self._hash

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, i: Any) -> Any:
        return self.partitions[i]

    def __iter__(self) -> Iterator:
        return iter(self.partitions)

    def __add__(self, other: Any) -> PartitionSpec:
        known = isinstance(other, PartitionSpec | tuple)
        return self.update(partitions=(*self, *other)) if known else NotImplemented

    def __radd__(self, other: Any) -> PartitionSpec:
        known = isinstance(other, tuple)
        return self.update(partitions=(*other, *self)) if known else NotImplemented

    def index(self, value: Any) -> int:
        """Return the first array axis with this entry."""
        return self.partitions.index(normalize_entry(value))

    def count(self, value: Any) -> int:
        """Return the number of array axes with this entry."""
        return self.partitions.count(normalize_entry(value))

    def update(
        self, partitions: Any = None, unreduced: Any = None, reduced: Any = None
    ) -> PartitionSpec:
        """Return the spec with other fields; None keeps a field."""
        return PartitionSpec(
            *(self.partitions if partitions is None else partitions),
            unreduced=self.unreduced if unreduced is None else unreduced,
            reduced=self.reduced if reduced is None else reduced,
        )

    def axes(self, i: int) -> tuple:
        """The mesh axes that array axis `i` is split over, outermost first."""
        entry = self.partitions[i] if i < len(self.partitions) else None
        if entry is None or entry is UNCONSTRAINED:
            return ()
        return entry if isinstance(entry, tuple) else (entry,)

    def __reduce__(self) -> tuple:
        return _make_spec, (self.partitions, self.unreduced, self.reduced)

    def __repr__(self) -> str:
        more = [n for n in ("unreduced", "reduced") if getattr(self, n)]
        if not more:
            return f"P{self.partitions!r}"
        shown = [*map(repr, self.partitions), *(f"{n}={set(getattr(self, n))!r}" for n in more)]
        return f"P({', '.join(shown)})"


P = PartitionSpec  # as users write it


def normalize_entry(x: Any) -> Any:
    """An entry of a spec in its one form: a list is a tuple, a tuple of one name is the name."""
    if isinstance(x, list | tuple):
        return None if not x else x[0] if len(x) == 1 else tuple(x)
    return x


def names_in_spec(spec: PartitionSpec) -> tuple:
    """The axes of the mesh that a spec splits over."""
    return tuple(n for i in range(len(spec)) for n in spec.axes(i))


def insert_entry(spec: PartitionSpec, dim: int, entry: Any) -> PartitionSpec:
    """A spec with one more entry, for axis `dim`."""
    entries = [*spec, *[None] * (dim - len(spec))]
    return spec.update(partitions=(*entries[:dim], entry, *entries[dim:]))


def _check_axis_set(name: str, axes: Any) -> frozenset:
    if not isinstance(axes, set | frozenset):
        raise TypeError(
            f"PartitionSpec: {name} must be a set of axis names; got {axes!r}. "
            f"Hint: {name}={{'x'}}."
        )
    return frozenset(axes)


def _make_spec(partitions: tuple, unreduced: frozenset, reduced: frozenset) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)
