"""Devices, and moving pytrees of arrays to and from them.

One host and its devices; meshes and processes are parallel/'s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.core.aval import HOST_TYPES, is_valid_value
from weft.core.trace import Tracer
from weft.errors import DtypeError
from weft.primitives.layout import copy
from weft.pytrees import broadcast_prefix, flatten, flatten_with_path, keystr, tree_map, unflatten
from weft.xla.array import ArrayImpl, host_view, put
from weft.xla.client import (
    Device,
    SingleDeviceSharding,
    all_devices,
    client,
    default_device,
    devices_of,
    sharding_on,
)

__all__ = [
    "Device",
    "block_until_ready",
    "copy_to_host_async",
    "default_backend",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "process_count",
    "process_index",
    "process_indices",
]


def devices(backend: str | None = None) -> list[Any]:
    """Every device of the platform in use, or of `backend`."""
    return list(all_devices() if backend is None else devices_of(backend, "devices: the platform"))


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Any]:
    """The devices of this process."""
    return [d for d in devices(backend) if d.process_index == (process_index or 0)]


def device_count(backend: str | None = None) -> int:
    """The number of devices."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process."""
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """The rank of this process."""
    return client().process_index()


def process_indices(backend: str | None = None) -> list[int]:
    """The ranks of all processes, in order."""
    return sorted({d.process_index for d in devices(backend)})


def process_count(backend: str | None = None) -> int:
    """The number of processes."""
    return len({d.process_index for d in all_devices()})


def default_backend() -> str:
    """The platform that arrays are put on: 'cpu', 'gpu' or 'tpu'."""
    return default_device().platform


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: bool = False) -> Any:
    """A pytree of arrays on `device`: a device, a sharding, or a pytree prefix of such.

    Arrays put on a device stay there: operations on them run there. Without a device, values that
    are not arrays yet go to the default one, and arrays stay where they are.

    >>> device_put([1.0, 2])
    [Array(1., dtype=float32, weak_type=True), Array(2, dtype=int32, weak_type=True)]
    """
    leaves, tree = flatten(x)
    for path, leaf in flatten_with_path(x)[0] if not all(map(_known, leaves)) else ():
        if not is_valid_value(leaf):
            raise DtypeError(
                f"device_put: values must be arrays or numbers; got {leaf!r} of type "
                f"{type(leaf).__name__} at x{keystr(path)}."
            )
    targets = broadcast_prefix(
        device,
        x,
        is_leaf=lambda d: d is None,
        op="device_put",
        prefix_name="device",
        full_name="x",
    )
    return unflatten(tree, [_put(v, d) for v, d in zip(leaves, targets, strict=True)])


def _known(x: Any) -> bool:
    return type(x) is ArrayImpl or type(x) in HOST_TYPES


def _put(x: Any, device: Any) -> Any:
    if isinstance(x, Tracer):
        return copy(x)
    if device is None:
        return put(x)
    if isinstance(device, Device):
        device = sharding_on(device)
    if not isinstance(device, SingleDeviceSharding):
        raise ValueError(
            f"device_put: must be given a device or a sharding; got {device!r} of type "
            f"{type(device).__name__}. Hint: weft.devices()[0]."
        )
    return put(x, device, committed=True)


def device_get(x: Any) -> Any:
    """A pytree of NumPy arrays with the values of one of arrays."""
    for leaf in flatten(x)[0]:
        if type(leaf) is ArrayImpl and not leaf.is_deleted():
            leaf.copy_to_host_async()
    return tree_map(_get, x)


def _get(x: Any) -> Any:
    if type(x) is ArrayImpl:
        return host_view(x)
    return np.asarray(x) if isinstance(x, Tracer) else x


def block_until_ready(x: Any) -> Any:
    """Wait until every array in a pytree is computed; returns the pytree."""
    for leaf in flatten(x)[0]:
        wait = getattr(leaf, "block_until_ready", None)
        if wait is not None and not isinstance(leaf, Tracer):
            wait()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Start copying every array in a pytree to the host; returns the pytree."""
    for leaf in flatten(x)[0]:
        if type(leaf) is ArrayImpl:
            leaf.copy_to_host_async()
    return x


def live_arrays(platform: str | None = None) -> list[Any]:
    """Every array that holds memory."""
    every = client().live_arrays()
    return every if platform is None else [x for x in every if x.device.platform == platform]
