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
    """Run a function on every device of a mesh, each on its own part of the arguments.

    It is `weft.shard_map` with the arguments of `jax.experimental.shard_map`.

    Args:
      f: a function of pytrees of arrays.
      mesh: the devices, a `Mesh`.
      in_specs: a pytree prefix of the arguments, of `PartitionSpec`s. `P("x", None)` gives each
        device its rows, and `P()` the complete array.
      out_specs: a pytree prefix of the results, of `PartitionSpec`s. `P("x")` joins the results of
        the devices, and `P()` states that all devices have the same result.
      check_rep: if True, the default, a result that `out_specs` declares equal on all devices must
        be equal by its type. It is `check_vma` of `weft.shard_map`.
      auto: a set of names of axes of the mesh. The compiler splits over these axes, and specs must
        not name them. The default is the empty set.

    Returns:
      A function of the complete arguments of `f`, which returns the complete results.

    Raises:
      ValueError: a spec names an axis that the mesh does not have, or a result that `out_specs`
        declares equal may differ between devices.

    >>> mesh = weft.make_mesh((1,), ("x",))
    >>> shard_map(lambda x: x * 2, mesh, weft.P("x"), weft.P("x"))(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """
    names = {n for n in mesh.axis_names if n not in auto}
    return mapped(
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=names, check_vma=check_rep
    )
