"""Where a program runs: on the device, or over the devices, that its arguments are bound to.

Shardings are mesh/sharding.py's; here they are only compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.core.aval import typeof
from weft.core.jaxpr import Jaxpr, held_jaxprs
from weft.core.primitive import Primitive
from weft.mesh.client import default_device
from weft.mesh.mesh import AbstractMesh, Mesh
from weft.mesh.sharding import NamedSharding, SingleDeviceSharding, sharding_on
from weft.mesh.spec import PartitionSpec
from weft.mesh.typed import GIVEN
from weft.xla.array import ArrayImpl, KeyArray


class Placement(NamedTuple):
    """The devices of a program, in the order in which it counts them.

    `whole` is the sharding of a value that each of them holds all of. `arguments`, of a program
    over a mesh, has the sharding of each argument, None where the engine may choose. What
    `committed` programs compute is bound to where it is computed.
    """

    devices: tuple
    committed: bool
    whole: Any
    arguments: tuple = ()
    partitioned: bool = False  # whether it is over a mesh


def on_device(device: Any, committed: bool) -> Placement:
    """On one device."""
    return Placement((device,), committed, sharding_on(device))


def bound_to(x: Any) -> Any:
    """The sharding that a value, or a struct of its type, is bound to; None where it is free."""
    if type(x) is ArrayImpl or type(x) is KeyArray:
        return x._sharding if x._committed else None
    sharding = getattr(x, "sharding", None)
    return None if isinstance(getattr(sharding, "mesh", None), AbstractMesh) else sharding


def placement_of(
    args: Sequence[Any],
    over: Sequence[Any] = (),
    op: str = "array",
    names: Callable[[], Sequence[str]] = tuple,
) -> Placement:
    """Where to compute on these values, with a program that names the shardings in `over`.

    `names()` are those of the values, for errors.
    """
    kinds = list(map(bound_to, args))
    named = [*over, *filter(None, kinds)]
    if not named:
        return on_device(default_device(), False)
    wide = next((s for s in named if type(s) is not SingleDeviceSharding), None)
    first = named[0] if wide is None else wide
    devices = first._device_assignment
    for s in named:
        if s is not first and s._device_assignment != devices:
            raise placement_error(op, args, names(), kinds, s, first)
    if wide is None:
        return Placement(devices, True, first)
    arguments = [s if hasattr(s, "mesh") else None for s in kinds]
    return Placement(devices, True, wide.whole, tuple(arguments), True)


def shardings_in(jaxpr: Jaxpr) -> tuple:
    """The shardings that equations of a program name, or of programs that those hold."""
    found = jaxpr.memo.get("shardings")
    if found is None:
        every = {}
        for eqn in jaxpr.eqns:
            prim, own = eqn.primitive, None
            if type(prim).refers is not Primitive.refers:
                own = prim.refers(eqn.params).places()
                every.update(dict.fromkeys(own))
            if eqn.outvars and eqn.outvars[0].aval.sharded is not None:  # perhaps by a parameter
                given = (eqn.params.get(name) for name in GIVEN)
                every.update({s: None for s in given if s is not None and isinstance(s.mesh, Mesh)})
            if not prim.memoize_type and not own:  # else it holds no programs
                for held in held_jaxprs(eqn):
                    every.update(dict.fromkeys(shardings_in(held)))
        found = jaxpr.memo["shardings"] = tuple(every)
    return found


def explicit_mesh(placement: Placement) -> Mesh | None:
    """The mesh of a program whose explicit axes types refer to; None where it has none."""
    for s in (*placement.arguments, placement.whole):
        mesh = getattr(s, "mesh", None)
        if isinstance(mesh, Mesh) and mesh.explicit_axes:
            return mesh
    return None


def sharding_of(aval: Any, mesh: Mesh) -> NamedSharding:
    """The sharding over the devices of a mesh that the type of a value says."""
    spec = PartitionSpec() if aval.sharded is None else aval.sharded.spec
    return NamedSharding(mesh, spec)


def wide_sharding(x: Any) -> Any:
    """The sharding of an array that is bound to a mesh; None of any other value."""
    sharding = bound_to(x)
    return sharding if hasattr(sharding, "mesh") else None


def device_names(sharding: Any) -> str:
    """The devices of a sharding, for errors."""
    names = [repr(d) for d in sharding._device_assignment]
    return names[0] if len(names) == 1 else f"{len(names)} devices ({', '.join(names)})"


def placement_error(
    op: str, args: Sequence[Any], names: Sequence[str], kinds: Sequence[Any], one: Any, other: Any
) -> ValueError:
    """The error for values on different devices, of which each is bound to one of `kinds`."""

    def show(sharding: Any, unknown: str) -> str:
        i = next((i for i, k in enumerate(kinds) if k is sharding), None)
        if i is None:
            return unknown
        return f"{names[i]}, {typeof(args[i])}," if names else str(typeof(args[i]))

    target = "NamedSharding(mesh, P())" if hasattr(other, "mesh") else "y.sharding"
    return ValueError(
        f"{op}: operands must be on one device, or over one mesh; got {show(one, 'a value')} on "
        f"{device_names(one)} where {show(other, 'another') if names else 'another'} is on "
        f"{device_names(other)}. Hint: weft.device_put(x, {target})."
    )
