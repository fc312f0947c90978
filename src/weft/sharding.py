"""How arrays lie on devices: meshes, specs and shardings; the names of `jax.sharding`.

The objects are parallel/'s; arrays are laid out by `weft.device_put` and `weft.jit`.
"""

from weft.parallel.mesh import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    PartitionSpec,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_abstract_mesh,
    use_mesh,
)
from weft.parallel.sharding import NamedSharding, Sharding
from weft.sharded import reshard
from weft.xla.client import SingleDeviceSharding, make_single_device_sharding

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "AxisType",
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "Sharding",
    "SingleDeviceSharding",
    "get_abstract_mesh",
    "get_mesh",
    "make_single_device_sharding",
    "reshard",
    "set_mesh",
    "use_abstract_mesh",
    "use_mesh",
]
