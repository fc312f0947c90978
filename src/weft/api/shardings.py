"""Shardings as users give them: pytree prefixes of shardings, devices, specs over a mesh in scope.

What shardings are is mesh/sharding.py's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.aval import ShapedArray
from weft.mesh.client import Device
from weft.mesh.mesh import get_mesh
from weft.mesh.sharding import NamedSharding, Sharding, check_divisible, sharding_on
from weft.mesh.spec import PartitionSpec
from weft.pytrees import PyTreeDef, broadcast_prefix, flatten, unflatten


class Prefix(tuple):
    """A pytree prefix of shardings as a key: its leaves and its structure."""

    __slots__ = ()


def make_prefix(op: str, what: str, tree: Any) -> Prefix:
    """What the user gave for `what`, checked but for how it fits."""
    leaves, treedef = flatten(tree, lambda x: x is None)
    for x in leaves:
        if x is not None and not isinstance(x, Sharding | PartitionSpec | Device):
            raise TypeError(
                f"{op}: {what} must hold shardings, specs or None; got {x!r} of type "
                f"{type(x).__name__}. Hint: NamedSharding(mesh, P('x')), or P('x') with "
                "weft.set_mesh(mesh)."
            )
    return Prefix((tuple(leaves), treedef))


def fit_shardings(
    op: str, what: str, prefix: Prefix, tree: PyTreeDef, avals: Sequence[ShapedArray], names: Any
) -> tuple:
    """The sharding of each leaf of a pytree, None where the user leaves it open; () for all.

    `names()` has the names of the leaves, for errors.
    """
    leaves, treedef = prefix
    if all(x is None for x in leaves) and treedef.num_leaves <= 1:
        return ()
    full = unflatten(tree, range(tree.num_leaves))
    given = unflatten(treedef, leaves)
    spread = broadcast_prefix(
        given, full, lambda x: x is None, op=op, prefix_name=what, full_name="the values"
    )
    found = [as_sharding(op, what, x) for x in spread]
    for sharding, aval, name in zip(found, avals, names(), strict=True):
        if sharding is not None and sharding.num_devices > 1:
            check_divisible(op, sharding, aval.shape, name)
    return tuple(found) if any(s is not None for s in found) else ()


def as_sharding(op: str, what: str, x: Any) -> Any:
    """A sharding of what stands for one."""
    if isinstance(x, Device):
        return sharding_on(x)
    if not isinstance(x, PartitionSpec):
        return x
    mesh = get_mesh()
    if mesh.empty:
        raise ValueError(
            f"{op}: {what} must hold shardings where no mesh is in scope; got {x}. "
            f"Hint: NamedSharding(mesh, {x}), or with weft.set_mesh(mesh): ..."
        )
    return NamedSharding(mesh, x)
