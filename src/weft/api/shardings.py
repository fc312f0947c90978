"""Shardings as users give them: pytree prefixes of shardings, devices, specs over a mesh in scope.

What shardings are is mesh/sharding.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.api.functions import argument_origins, leaf_names
from weft.api.programs import StagedProgram
from weft.api.structures import broadcast_to_structure
from weft.core.aval import ShapedArray, typeof
from weft.mesh.client import Device
from weft.mesh.mesh import AbstractMesh, Mesh, get_entered_mesh, get_mesh
from weft.mesh.sharding import NamedSharding, Sharding, check_divisible, sharding_on
from weft.mesh.spec import PartitionSpec
from weft.mesh.typed import mesh_around, typed_as
from weft.pytrees import PyTreeDef, broadcast_prefix, flatten, is_none, unflatten
from weft.xla.layouts import Format, sharding_of_format
from weft.xla.placement import bound_to


class Prefix(tuple):
    """A pytree prefix of shardings as a key: its leaves and its structure."""

    __slots__ = ()


def make_prefix(op: str, what: str, tree: Any) -> Prefix:
    """The shardings that the user gave for `what`, checked up to their fit."""
    leaves, treedef = flatten(tree, lambda x: x is None)
    for x in leaves:
        if x is not None and not isinstance(x, Sharding | PartitionSpec | Device | Format):
            raise TypeError(
                f"{op}: {what} must hold shardings, specs or None; got {x!r} of type "
                f"{type(x).__name__}. Hint: NamedSharding(mesh, P('x')), or P('x') with "
                "weft.set_mesh(mesh)."
            )
    return Prefix((tuple(leaves), treedef))


class RequestedShardings(NamedTuple):
    """Shardings requested of arguments and results: pytree prefixes, as keys."""

    op: str
    arguments: Prefix
    results: Prefix

    def find_shardings(self, program: StagedProgram) -> tuple[tuple, tuple]:
        """Return the shardings of all arguments and all results of a program, flat; () for none."""
        out_tree = program.out_tree
        ins = self.of_arguments(program.fun(), program.in_tree, program.in_avals)
        names = lambda: leaf_names("the result", out_tree)
        return ins, self.fit("out_shardings", self.results, out_tree, program.out_avals, names)

    def of_arguments(self, fun: Callable, in_tree: PyTreeDef, avals: Sequence) -> tuple:
        """Return the shardings of all arguments, flat; () for none."""
        tree = in_tree.children()[0]
        count = tree.num_leaves  # of positional arguments
        names: Callable = lambda: argument_origins(fun, in_tree)[:count]
        ins = self.fit("in_shardings", self.arguments, tree, avals[:count], names)
        return ins and ins + (None,) * (len(avals) - count)

    def type_arguments(self, fun: Callable, in_tree: PyTreeDef, avals: Sequence) -> list:
        """Return the types of arguments with the requested shardings."""
        ins = self.of_arguments(fun, in_tree, avals) or (None,) * len(avals)
        return list(map(typed_as, avals, ins))

    def open(self, args: tuple, places: Sequence[int]) -> RequestedShardings:
        """Return the shardings of a call after some arguments became lists of arrays."""
        leaves, treedef = self.arguments
        names = ("in_shardings", "the values")
        given = unflatten(treedef, leaves)
        spread = broadcast_prefix(given, args, is_none, op=self.op, names=names)
        spread += [None] * (len(places) - len(spread))
        objects = dict(reversed([x for x in zip(places, spread, strict=True) if x[0] >= 0]))
        rest = [s for s, p in zip(spread, places, strict=True) if p < 0]
        ins = ([objects[i] for i in range(len(objects))], rest)
        outs = (unflatten(self.results[1], self.results[0]), None)
        return RequestedShardings(
            self.op, make_prefix(self.op, names[0], ins), make_prefix(self.op, "outs", outs)
        )

    def fit(
        self,
        what: str,
        prefix: Prefix,
        tree: PyTreeDef,
        avals: Sequence[ShapedArray],
        names: Callable[[], list[str]],
    ) -> tuple:
        """The sharding of each leaf of a pytree, None where it is left open; () for all.

        `names()` has the names of the leaves, for errors.
        """
        leaves, treedef = prefix
        if all(x is None for x in leaves) and treedef.num_leaves <= 1:
            return ()
        given = unflatten(treedef, leaves)
        names_of = (what, "the values")
        spread = broadcast_to_structure(given, tree, is_none, op=self.op, names=names_of)
        given = [
            sharding_of_format(self.op, what, x, aval.ndim) if isinstance(x, Format) else x
            for x, aval in zip(spread, avals, strict=True)
        ]
        found = [as_sharding(self.op, what, x) for x in given]
        for sharding, aval, name in zip(found, avals, names(), strict=True):
            if sharding is not None and sharding.num_devices > 1:
                check_divisible(self.op, sharding, aval.shape, name)
        return tuple(found) if any(s is not None for s in found) else ()

    def check_bound(self, leaves: Sequence[Any], shardings: Sequence[Any]) -> None:
        """Raise where an argument is bound to another sharding than is requested."""
        for x, s in zip(leaves, shardings, strict=True):
            bound = None if s is None else bound_to(x)
            if bound is not None and bound is not s and not bound.is_equivalent_to(s, x.ndim):
                raise ValueError(
                    f"{self.op}: in_shardings must be those that bound arguments have; "
                    f"got {s} for {typeof(x)} with {bound}. Hint: weft.device_put(x, sharding) "
                    "first, or leave in_shardings out."
                )


def request_shardings(op: str, in_shardings: Any, out_shardings: Any) -> RequestedShardings | None:
    """The shardings that a user requests; None for none."""
    if in_shardings is None and out_shardings is None:
        return None
    if isinstance(in_shardings, list):
        in_shardings = tuple(in_shardings)
    ins = make_prefix(op, "in_shardings", in_shardings)
    return RequestedShardings(op, ins, make_prefix(op, "out_shardings", out_shardings))


def as_sharding(op: str, what: str, x: Any, value: Any = None) -> Any:
    """Return the sharding for a device, a format, or a spec over the mesh in scope.

    A sharding over an abstract mesh gets the devices of the mesh in scope, or of the mesh of
    `value`.
    """
    if isinstance(x, Device):
        return sharding_on(x)
    if isinstance(x, Format):
        x = sharding_of_format(op, what, x)
    if isinstance(x, NamedSharding) and isinstance(x.mesh, AbstractMesh):
        meshes = (
            get_mesh(),
            get_entered_mesh(),
            getattr(getattr(value, "sharding", None), "mesh", None),
        )
        found = next((m for m in meshes if isinstance(m, Mesh) and m.shape == x.mesh.shape), None)
        return x if found is None else NamedSharding(found, x.spec, memory_kind=x.memory_kind)
    if not isinstance(x, PartitionSpec):
        return x
    mesh = mesh_around(value)
    if mesh.empty:
        raise ValueError(
            f"{op}: {what} must hold shardings where no mesh is in scope; got {x}. "
            f"Hint: NamedSharding(mesh, {x}), or with weft.set_mesh(mesh): ..."
        )
    return NamedSharding(mesh, x)
