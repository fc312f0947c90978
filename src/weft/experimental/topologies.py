"""Devices that are described and not there, to compile for: `jax.experimental.topologies`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib import _jax

from weft.api.devices import devices
from weft.experimental.mesh_utils import create_device_mesh
from weft.mesh.client import platforms
from weft.mesh.mesh import Mesh
from weft.mesh.plugins import find_plugins, load_plugin
from weft.util import list_public

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]
__dir__ = list_public(__name__)


class TopologyDescription:
    """A description of devices, which may be attached or only described.

    Args:
      devices: the list of the devices.

    >>> len(TopologyDescription(weft.devices()).devices) == weft.device_count()
    True
    """

    def __init__(self, devices: list[Any]):
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """Return a description of the attached devices of a platform.

    Args:
      platform: the name of the platform, such as `"cpu"`. None, the default, is the default
        platform.

    Returns:
      A `TopologyDescription`, whose devices are `weft.devices(platform)`.

    Raises:
      RuntimeError: the platform does not exist.

    >>> get_attached_topology("cpu").devices[0].platform
    'cpu'
    """
    return TopologyDescription(devices(platform))


def get_topology_desc(
    topology_name: str = "", platform: str | None = None, **options: Any
) -> TopologyDescription:
    """Describe the devices of a platform by its plugin, to lower and compile without the devices.

    Args:
      topology_name: the name of a topology that the plugin knows, a str. The default is the empty
        name.
      platform: the name of the platform, such as `"cuda"`. None, the default, is the default
        platform.
      options: options for the plugin.

    Returns:
      A `TopologyDescription`. A program can be compiled for its devices but not run on them.

    Raises:
      NotImplementedError: the platform has no plugin that describes devices. CPUs have none.

    >>> try:
    ...     get_topology_desc(platform="cpu")
    ... except NotImplementedError as error:
    ...     print(str(error).split(";")[0])
    get_topology_desc: the platform must have a plugin that describes devices
    """
    platform = platform or next(iter(platforms().clients))
    plugin = find_plugins().get(platform)
    if plugin is None:
        raise NotImplementedError(
            "get_topology_desc: the platform must have a plugin that describes devices; got "
            f"{platform!r}, and there are plugins for {sorted(find_plugins())}. Hint: "
            "get_attached_topology() has the devices that are there."
        )
    topology = _jax.get_c_api_topology(load_plugin(plugin), topology_name, options)
    return TopologyDescription(topology._make_compile_only_devices())


def make_mesh(
    topo: TopologyDescription, mesh_shape: Sequence[int], axis_names: tuple[str, ...], *,
    contiguous_submeshes: bool = False,
) -> Mesh:  # fmt: skip
    """Return a mesh of the devices of a description.

    Args:
      topo: the description, as from `get_attached_topology` or `get_topology_desc`.
      mesh_shape: the sizes of the axes, a sequence of ints. Their product must be the number of
        devices.
      axis_names: the names of the axes, a tuple of strs.
      contiguous_submeshes: ignored; it is about TPUs.

    Returns:
      A `Mesh`.

    Raises:
      ValueError: the shape needs more devices or fewer devices than the description has.

    >>> make_mesh(get_attached_topology(), (1,), ("x",)).axis_names
    ('x',)
    """
    placed = create_device_mesh(
        mesh_shape, list(topo.devices), contiguous_submeshes=contiguous_submeshes
    )
    return Mesh(placed, axis_names)
