"""How arrays lie on devices: meshes, specs and shardings; the names of `jax.sharding`.

The objects are parallel/'s; arrays are laid out by `weft.device_put` and `weft.jit`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.api.shard_map import reshard, with_sharding_constraint
from weft.mesh.mesh import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_abstract_mesh,
    use_mesh,
)
from weft.mesh.sharding import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    make_single_device_sharding,
)
from weft.mesh.spec import PartitionSpec
from weft.util import list_public

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "Mesh", "NamedSharding", "PartitionSpec",
    "Sharding", "SingleDeviceSharding", "auto_axes", "explicit_axes", "get_abstract_mesh",
    "get_mesh", "make_single_device_sharding", "reshard", "set_mesh", "use_abstract_mesh",
    "use_mesh",
]  # fmt: skip
__dir__ = list_public(__name__)


def auto_axes(
    f: Callable | None = None, /, *, axes: Any = None, out_sharding: Any = None
) -> Callable:
    """Leave to the compiler how values lie within `f`; its results lie as `out_sharding` says.

    Explicit axes behave as Auto ones here, so `axes` changes nothing. The sharding of the results
    (a pytree prefix) can be given at the call too.

    >>> mesh = weft.make_mesh((1,), ("x",))
    >>> over_x = NamedSharding(mesh, PartitionSpec("x"))
    >>> weft.jit(auto_axes(jnp.sin, out_sharding=over_x))(jnp.zeros(2))
    Array([0., 0.], dtype=float32)
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    default = out_sharding

    @functools.wraps(f)
    def laid(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        where = default if out_sharding is None else out_sharding
        out = f(*args, **kwargs)
        return out if where is None else with_sharding_constraint(out, where)

    return laid


def explicit_axes(
    f: Callable | None = None, /, *, axes: Any = None, in_sharding: Any = None
) -> Callable:
    """Have the arguments of `f` lie as `in_sharding` says (a pytree prefix of their tuple).

    Explicit axes behave as Auto ones here, so `axes` changes nothing, and from there on the
    compiler decides. The sharding can be given at the call too.

    >>> mesh = weft.make_mesh((1,), ("x",))
    >>> over_x = NamedSharding(mesh, PartitionSpec("x"))
    >>> weft.jit(explicit_axes(jnp.sin, in_sharding=over_x))(jnp.zeros(2))
    Array([0., 0.], dtype=float32)
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    default = in_sharding

    @functools.wraps(f)
    def laid(*args: Any, in_sharding: Any = None, **kwargs: Any) -> Any:
        where = default if in_sharding is None else in_sharding
        if where is not None:
            args = with_sharding_constraint(args, where)
        return f(*args, **kwargs)

    return laid
