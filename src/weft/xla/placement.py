"""The placement of a program: the devices that its arguments are bound to.

Shardings are mesh/sharding.py's; here they are only compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.core.jaxpr import Jaxpr, held_jaxprs, memo_jaxpr
from weft.core.primitive import Primitive
from weft.mesh.client import default_device, platform_of
from weft.mesh.mesh import AbstractMesh, Mesh, get_mesh, has_same_grid
from weft.mesh.plugins import GPUS
from weft.mesh.sharding import (
    NamedSharding,
    SingleDeviceSharding,
    is_abstract,
    placement_error,
    sharding_on,
)
from weft.mesh.spec import PartitionSpec
from weft.mesh.typed import GIVEN
from weft.options import mesh_in_scope
from weft.xla.array import ArrayImpl, KeyArray


class Placement(NamedTuple):
    """The devices of a program, in the order of their numbers in the program.

    For a program over an abstract mesh they are stand-ins, used for its text only. `whole` is the
    sharding of a value that each device has a copy of. `arguments`, for a program over a mesh, has
    the sharding of each argument, or None where XLA may choose. Results of `committed` programs are
    bound to their devices.
    """

    devices: tuple
    committed: bool
    whole: Any
    arguments: tuple = ()
    partitioned: bool = False  # it is over a mesh
    platform: str = ""  # of the stand-ins


def on_device(device: Any, committed: bool) -> Placement:
    """On one device."""
    return Placement((device,), committed, sharding_on(device))


def bound_to(x: Any) -> Any:
    """The sharding that a value, or a struct of its type, is bound to; None where it is free."""
    if type(x) is ArrayImpl or type(x) is KeyArray:
        return x._sharding if x._committed else None
    sharding = getattr(x, "sharding", None)
    return None if is_abstract(sharding) else sharding


def over_mesh(args: Sequence[Any], abstract: Any) -> Placement:
    """Over the mesh in scope, on which values are that are bound to nothing.

    `abstract` is a sharding over an abstract mesh that the program names, else None. Where the mesh
    in scope is not of its axes, the program can be written, but not compiled.
    """
    mesh: Any = get_mesh()
    if mesh.empty and abstract is None:
        return on_device(default_device(), False)
    if abstract is None or has_same_grid(mesh, abstract.mesh):
        whole = NamedSharding(mesh, PartitionSpec())
        return Placement(mesh._device_assignment, True, whole, (None,) * len(args), True)
    mesh = abstract.mesh
    platform = getattr(mesh.abstract_device, "platform", platform_of(default_device()))
    given = [s if is_abstract(s := getattr(x, "sharding", None)) else None for x in args]
    platform = GPUS[0] if platform == "gpu" else platform
    return Placement((None,) * mesh.size, False, abstract.whole, tuple(given), True, platform)


def placement_of(
    args: Sequence[Any],
    over: Sequence[Any] = (),
    op: str = "array",
    names: Callable[[], Sequence[str]] = tuple,
) -> Placement:
    """Return the placement for these values, with a program that names the shardings in `over`.

    `names()` returns the names of the values, for errors.
    """
    kinds = list(map(bound_to, args))
    named = [*over, *filter(None, kinds)]
    arrays = {ArrayImpl, KeyArray}.issuperset(map(type, args))
    if arrays and not named and mesh_in_scope.value is None:
        return on_device(default_device(), False)
    named = [s for s in named if not is_abstract(s)]
    if not named:
        # types of single operations may be over a mesh that values are not on yet
        every = (*over, *[getattr(x, "sharding", None) for x in args]) if op == "jit" else ()
        return over_mesh(args, next(filter(is_abstract, every), None))
    wide = next((s for s in named if type(s) is not SingleDeviceSharding), None)
    first = named[0] if wide is None else wide
    devices = first._device_assignment
    for s in named:
        if s is not first and s._device_assignment != devices:
            raise placement_error(op, args, names(), kinds, s, first)
    mesh: Any = get_mesh()
    if not mesh.empty and mesh._device_assignment != devices and first in kinds:
        raise placement_error(op, args, names(), kinds, first, NamedSharding(mesh, PartitionSpec()))
    if wide is None:
        return Placement(devices, True, first)
    arguments = [s if hasattr(s, "mesh") else None for s in kinds]
    return Placement(devices, True, wide.whole, tuple(arguments), True)


@memo_jaxpr
def shardings_in(jaxpr: Jaxpr) -> tuple:
    """The shardings that equations of a program name, or of programs that those hold."""
    every = {}
    for eqn in jaxpr.eqns:
        prim, own = eqn.primitive, None
        if type(prim).refers is not Primitive.refers:
            own = prim.refers(eqn.params).places()
            every.update(dict.fromkeys(own))
        if eqn.outvars and eqn.outvars[0].aval.sharded is not None:  # perhaps by a parameter
            given = (eqn.params.get(name) for name in GIVEN)
            every.update({s: None for s in given if s is not None})
        if not prim.memoize_type and not own:  # else it holds no programs
            for held in held_jaxprs(eqn):
                every.update(dict.fromkeys(shardings_in(held)))
    return tuple(every)


def explicit_mesh(placement: Placement) -> Mesh | AbstractMesh | None:
    """Return the mesh of the explicit axes in a program's types; None if they have none."""
    meshes = (getattr(s, "mesh", None) for s in (*placement.arguments, placement.whole))
    return next((m for m in meshes if m is not None and m.explicit_axes), None)


def wide_sharding(x: Any) -> Any:
    """Return the sharding of an array that is bound to a mesh; None for other values."""
    sharding = bound_to(x)
    return sharding if hasattr(sharding, "mesh") else None
