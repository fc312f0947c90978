"""`shard_map` with the arguments of `jax.experimental.shard_map`; see `weft.shard_map`."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

from weft.api.shard_map import shard_map as mapped
from weft.mesh.mesh import Mesh
from weft.util import list_public

__all__ = ["shard_map"]
__dir__ = list_public(__name__)


def shard_map(
    f: Callable,
    mesh: Mesh,
    in_specs: Any,
    out_specs: Any,
    check_rep: bool = True,
    auto: Set[Any] = frozenset(),
) -> Callable:
    """Do as `weft.shard_map` does; its `check_vma` is `check_rep` here.

    `auto` names the axes of the mesh that the compiler splits over.

    >>> mesh = weft.make_mesh((1,), ("x",))
    >>> shard_map(lambda x: x * 2, mesh, weft.P("x"), weft.P("x"))(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """
    names = {n for n in mesh.axis_names if n not in auto}
    return mapped(
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=names, check_vma=check_rep
    )
