"""`Varying`, the part of a type that says along which axes of a mesh values may differ.

Also the two operations that change it, `pvary` and `psum_invariant`: each is the other's transpose.
Other collectives are in collective.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from weft.core.aval import typeof
from weft.core.primitive import References
from weft.options import named_axes
from weft.primitives.copies import Name, all_reduce, replica_groups
from weft.primitives.elementwise import add_p
from weft.primitives.families import LinearByElement, check_kind


class Varying:
    """The axes of a mesh along which a value may differ, as types carry it; `{V:a}` in print.

    Interned by the set of names, which stand in the order of the mesh; there are as few of them as
    subsets of axis names that programs use, so they are kept.
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
        """What is left when values no longer differ along `names`."""
        gone = set(names)
        return Varying.of([n for n in self.names if n not in gone])

    def missing(self, x: Any) -> tuple[Name, ...]:
        """The axes along which `x` does not vary."""
        has = varying_names(x)
        return tuple([n for n in self.names if n not in has])

    def cast(self, trace: Any, x: Any) -> Any:
        """`x`, under a trace, as a value that varies along these axes too."""
        axes = self.missing(x)
        return trace.process(pvary_p, [x], {"axes": axes})[0] if axes else x

    def __str__(self) -> str:
        names = ",".join(map(str, self.names))
        return f"{{V:{names}}}" if len(self.names) == 1 else f"{{V:({names})}}"

    __repr__ = __str__

    def __reduce__(self) -> tuple:
        return Varying.of, (self.names,)


def order_by_scope(names: Iterable[Name]) -> tuple[Name, ...]:
    """Each name once, in the order of the axes in scope."""
    scope = [axis.name for axis in named_axes.value]
    place = {name: i for i, name in enumerate(scope)}
    return tuple(sorted(dict.fromkeys(names), key=lambda n: place.get(n, len(scope))))


def axes_of_varying(varying: Varying | None) -> tuple[Name, ...]:
    """The axes that it names; none of None."""
    return () if varying is None else varying.names


def varying_names(x: Any) -> tuple[Name, ...]:
    """The axes of a mesh along which a value may differ."""
    return axes_of_varying(typeof(x).varying)


class PsumInvariant(LinearByElement):
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
    elements = "placed"

    def abstract_eval(self, x, *, axes):
        return [x]

    def refers(self, params):
        return References(adds=Varying.of(params["axes"]))

    def lower(self, hlo, x, *, axes):
        return [x]

    def transpose(self, cts, x, *, axes):
        return psum_invariant_p.apply(cts[0], axes=axes)


pvary_p = Pvary()


def pvary(x: Any, names: Sequence[Name]) -> Any:
    """`x` as a value that may differ along axes of a mesh."""
    have = varying_names(x)
    axes = tuple(n for n in order_by_scope(names) if n not in have)
    return pvary_p.apply(x, axes=axes)[0] if axes else x
