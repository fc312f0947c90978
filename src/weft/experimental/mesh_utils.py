"""Orders of devices for a mesh: `create_device_mesh` and `create_hybrid_device_mesh`.

On CPU and GPU any order is as good as another within a host; what matters is which axes cross the
hosts. A mesh itself is `weft.sharding.Mesh`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.mesh.client import all_devices
from weft.mesh.mesh import device_count_error
from weft.util import list_public

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]
__dir__ = list_public(__name__)


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Return an array of devices in the shape of a mesh, for `Mesh`.

    On CPU and GPU the devices keep their order.

    Args:
      mesh_shape: the shape, a sequence of ints. Their product must be the number of devices.
      devices: the devices to use, a sequence. None, the default, is all devices.
      contiguous_submeshes: ignored; it is about TPUs.
      allow_split_physical_axes: ignored; it is about TPUs.

    Returns:
      A NumPy array of devices, of shape `mesh_shape`.

    Raises:
      ValueError: the shape needs more devices or fewer devices than there are.

    >>> create_device_mesh((1, 1)).shape
    (1, 1)
    """
    shape = tuple(map(int, mesh_shape))
    given = list(all_devices() if devices is None else devices)
    count = math.prod(shape)
    if count > len(given):
        raise device_count_error("create_device_mesh", "mesh_shape", shape, devices)
    if count != len(given):
        raise ValueError(
            f"create_device_mesh: mesh_shape must take all devices; got {shape}, which takes "
            f"{count} of {len(given)}. Hint: devices=weft.devices()[:{count}]."
        )
    return np.array(given, object).reshape(shape)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Return an array of the devices of several hosts, for `Mesh`.

    Links between hosts are slower than links within a host. The array has the hosts along few axes,
    and collectives over the other axes stay within a host. A granule is a slice of a TPU or, on
    other devices, the devices of a process.

    Args:
      mesh_shape: the shape of the array of one granule's devices, a sequence of ints.
      dcn_mesh_shape: the shape of the array of granules, a sequence of ints with the same axes.
      devices: the devices to use, a sequence. None, the default, is all devices.
      process_is_granule: if True, processes are granules even where devices have a `slice_index`.
        The default is False.
      should_sort_granules_by_key: if True, the default, granules are in the order of their number.
        If False, they are in the order of `devices`.
      allow_split_physical_axes: ignored; it is about TPUs.

    Returns:
      A NumPy array of devices. Its shape is the product of the two shapes, axis by axis.

    Raises:
      ValueError: the two shapes have different lengths, or do not need all granules or all devices.

    >>> create_hybrid_device_mesh((1, 1), (1, 1)).shape
    (1, 1)
    """
    op = "create_hybrid_device_mesh"
    inner, outer = tuple(map(int, mesh_shape)), tuple(map(int, dcn_mesh_shape))
    if len(inner) != len(outer):
        raise ValueError(
            f"{op}: mesh_shape and dcn_mesh_shape must have the same axes; got {inner} and {outer}."
            " Hint: 1 for an axis that does not cross granules."
        )
    given = list(all_devices() if devices is None else devices)
    sliced = not process_is_granule and all(hasattr(d, "slice_index") for d in given)
    granules: dict[int, list] = {}
    for d in given:
        granules.setdefault(d.slice_index if sliced else d.process_index, []).append(d)
    keys = sorted(granules) if should_sort_granules_by_key else list(granules)
    if math.prod(outer) != len(keys):
        raise ValueError(
            f"{op}: dcn_mesh_shape must take all {len(keys)} "
            f"{'slices' if sliced else 'processes'}; got {outer}, which takes {math.prod(outer)}."
        )
    blocks = np.empty(outer, object)
    for place, key in zip(np.ndindex(*outer), keys, strict=True):
        blocks[place] = create_device_mesh(inner, granules[key])
    return np.block(blocks.tolist())
