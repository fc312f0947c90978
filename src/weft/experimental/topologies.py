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
    """A list of devices, `devices`."""

    def __init__(self, devices: list[Any]):
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices that are there, of a platform or of the default one."""
    return TopologyDescription(devices(platform))


def get_topology_desc(
    topology_name: str = "", platform: str | None = None, **options: Any
) -> TopologyDescription:
    """Describe the devices of a platform by its plugin, to lower and compile without the devices.

    `options` are the plugin's. Raises NotImplementedError if the platform has no plugin that
    describes devices, such as CPUs.
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
    """A mesh of the devices of a description; see `mesh_utils.create_device_mesh`.

    >>> make_mesh(get_attached_topology(), (1,), ("x",)).axis_names
    ('x',)
    """
    placed = create_device_mesh(
        mesh_shape, list(topo.devices), contiguous_submeshes=contiguous_submeshes
    )
    return Mesh(placed, axis_names)
