"""Devices, and moving pytrees of arrays to and from them.

Meshes and shardings are in mesh/; how arrays are made and read is in xla/array.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxlib import _jax

from weft import pytrees
from weft.api.jit import jit
from weft.api.shardings import as_sharding
from weft.core.aval import HOST_TYPES, is_valid_value
from weft.core.trace import Tracer
from weft.errors import DtypeError
from weft.mesh.client import Space, all_devices, client, clients, default_device, devices_of
from weft.mesh.sharding import (
    Sharding,
    SingleDeviceSharding,
    check_divisible,
    sharding_on,
    terms_of,
)
from weft.mesh.spec import PartitionSpec
from weft.options import HELD
from weft.parallel.constraint import constrain, put_traced
from weft.parallel.moving import can_move_parts, move_parts
from weft.primitives.layout import copy
from weft.util import alias
from weft.xla.array import ARRAYS, ArrayImpl, host_view, put
from weft.xla.layouts import Format


def devices(backend: str | None = None) -> list[Any]:
    """Every device of the platform in use, or of `backend`."""
    if not isinstance(backend, str | None):
        raise TypeError(f"devices: the platform must be a name; got {backend!r}.")
    return list(all_devices() if backend is None else devices_of(backend, "devices: the platform"))


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Any]:
    """The devices of this process, or of the one whose rank is `process_index` (or `host_id`).

    `backend` names a platform, by default the one in use; so in the functions below.
    """
    rank = host_id if process_index is None else process_index
    wanted = client().process_index() if rank is None else rank
    found = [d for d in devices(backend) if d.process_index == wanted]
    if not found:
        raise ValueError(
            f"local_devices: process_index must be one of {process_indices(backend)}; got {rank}."
        )
    return found


def device_count(backend: str | None = None) -> int:
    """The number of devices."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process."""
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """The rank of this process."""
    return (devices(backend)[0].client if backend else client()).process_index()


def process_indices(backend: str | None = None) -> list[int]:
    """The ranks of all processes, in order."""
    return sorted({d.process_index for d in devices(backend)})


def process_count(backend: str | None = None) -> int:
    """The number of processes."""
    return len({d.process_index for d in devices(backend)})


# JAX's older names
host_count, host_id = alias(process_count, "host_count"), alias(process_index, "host_id")
host_ids = alias(process_indices, "host_ids")


def default_backend() -> str:
    """The platform that arrays are put on: 'cpu', 'gpu' or 'tpu'."""
    return all_devices()[0].platform


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None
) -> Any:
    """A pytree of arrays on `device`: a device, a sharding, or a pytree prefix of such.

    Arrays put on a device stay there: operations on them run there. A sharding over many devices
    splits or repeats each array over them; with `weft.set_mesh`, a PartitionSpec is enough. Of a
    Format the sharding counts: the order of elements in memory is the engine's choice. Without
    a device, values that are not arrays yet go to the default one, and arrays stay where they are.

    The result may share memory with an array that is there already, unless `may_alias` is False.
    `donate` says that x is not used again: on accelerators its memory is free as soon as it is
    copied; on CPU, as without it, when nobody refers to it. Both may be pytree prefixes. `src` says
    where x lies, which arrays know.

    >>> device_put([1.0, 2])
    [Array(1., dtype=float32, weak_type=True), Array(2, dtype=int32, weak_type=True)]
    """
    leaves, tree = pytrees.flatten(x)
    for path, leaf in pytrees.flatten_with_path(x)[0] if not all(map(_is_plain, leaves)) else ():
        if not is_valid_value(leaf):
            raise DtypeError(
                f"device_put: values must be arrays or numbers; got {leaf!r} of type "
                f"{type(leaf).__name__} at x{pytrees.keystr(path)}."
            )
    targets, donated, aliased = (
        [given] * len(leaves)
        if given is None or type(given) is bool
        else pytrees.broadcast_prefix(given, x, pytrees.is_none, op="device_put", names=(name, "x"))
        for name, given in (("device", device), ("donate", donate), ("may_alias", may_alias))
    )
    if any(d and a for d, a in zip(donated, aliased, strict=True)):
        raise ValueError(
            "device_put: a value that is donated must not be shared; got donate=True and "
            "may_alias=True. Hint: leave may_alias out."
        )
    places = list(map(_resolve_target, leaves, targets))
    spread = [s is not None and type(s) is not SingleDeviceSharding for s in places]
    if True in spread:
        paths = pytrees.flatten_with_path(x)[0]
        for (path, leaf), place, check in zip(paths, places, spread, strict=True):
            if check:
                check_divisible("device_put", place, np.shape(leaf), f"x{pytrees.keystr(path)}")
    guard = _jax.guard_lib.thread_local_state()
    guard.explicit_device_put = True  # what weft.transfer_guard("disallow") lets pass
    try:
        placed = list(map(_put_leaf, leaves, places))
    finally:
        guard.explicit_device_put = False
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, ARRAYS) and aliased[i] is False:
            placed[i] = copy(placed[i])
        elif type(leaf) is ArrayImpl and donated[i] and leaf.platform() != "cpu":
            _release(leaf, placed[i])
    return pytrees.unflatten(tree, placed)


def _release(x: Any, placed: Any) -> None:
    """Free the memory of an array that was copied to other devices."""
    if x._sharding.device_set.isdisjoint(placed._sharding.device_set):
        x.delete()  # the engine keeps it until the copy is made


def _is_plain(x: Any) -> bool:
    return isinstance(x, ARRAYS) or type(x) in HOST_TYPES


def _resolve_target(x: Any, device: Any) -> Any:
    """The sharding that is meant for a leaf; None where it is left open."""
    if isinstance(device, Format):
        device = device.sharding
    if device is None or type(device) is SingleDeviceSharding:
        return device
    if isinstance(device, _jax.Device):
        return sharding_on(device)
    if isinstance(device, Space):
        if isinstance(x, Tracer):
            return None
        now = x._sharding if isinstance(x, ARRAYS) else sharding_on(default_device())
        kind = now._device_assignment[0].default_memory().kind
        return now.with_memory_kind("pinned_host" if device is Space.Host else kind)
    if isinstance(device, Sharding | PartitionSpec):
        return as_sharding("device_put", "device", device)
    raise ValueError(
        f"device_put: must be given a device or a sharding; got {device!r} of type "
        f"{type(device).__name__}. Hint: weft.devices()[0]."
    )


def _put_leaf(x: Any, sharding: Any) -> Any:
    if isinstance(x, Tracer):
        return copy(x) if sharding is None else put_traced(x, sharding)
    if sharding is None:
        return put(x)
    if terms_of(sharding):
        return constrain(x, sharding)
    if not sharding.has_addressable_devices:
        others = sorted({d.process_index for d in sharding.device_set})
        raise ValueError(
            "device_put: device must be this process's, or a sharding that has some of its; "
            f"got {sharding}, of process {', '.join(map(str, others))}. Hint: weft.local_devices()."
        )
    if isinstance(x, ARRAYS):
        if type(sharding) is not SingleDeviceSharding and _is_moved_among_devices(x, sharding):
            return jit(_identity, out_shardings=sharding)(x)
        if can_move_parts(x, sharding):
            return move_parts(x, sharding)
    return put(x, sharding, committed=True)


def _is_moved_among_devices(x: Any, sharding: Any) -> bool:
    """Whether to reshard an array by a program, in which the devices exchange parts."""
    now = x._sharding
    return (
        not (now.is_fully_addressable and sharding._device_assignment[0].platform == "cpu")
        and now.num_devices > 1
        and now._device_assignment == sharding._device_assignment
        and now.memory_kind == sharding.memory_kind
        and not now.is_equivalent_to(sharding, x.ndim)
        and not x.is_deleted()
    )


def _identity(x: Any) -> Any:
    return x


def device_get(x: Any) -> Any:
    """A pytree of NumPy arrays with the values of one of arrays; traced values stay as they are."""
    guard = _jax.guard_lib.thread_local_state()
    guard.explicit_device_get = True
    try:
        for leaf in pytrees.flatten(x)[0]:
            if isinstance(leaf, ARRAYS) and not leaf.is_deleted():
                leaf.copy_to_host_async()
        return pytrees.tree_map(lambda y: host_view(y) if type(y) is ArrayImpl else y, x)
    finally:
        guard.explicit_device_get = False


def block_until_ready(x: Any) -> Any:
    """Wait until every array in a pytree is computed; returns the pytree."""
    for leaf in pytrees.flatten(x)[0]:
        wait = getattr(leaf, "block_until_ready", None)
        if wait is not None and not isinstance(leaf, Tracer):
            wait()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Start copying every array in a pytree to the host; returns the pytree."""
    for leaf in pytrees.flatten(x)[0]:
        if isinstance(leaf, ARRAYS):
            leaf.copy_to_host_async()
    return x


def live_arrays(platform: str | None = None) -> list[Any]:
    """Every array that holds memory, of all platforms or of `platform`.

    The parts of one over many devices count as one.
    """
    own = {id(x) for held in HELD for x in held.values()}
    xs = [x for c in clients() for x in c.live_arrays() if x.aval is not None and id(x) not in own]
    return xs if platform is None else [x for x in xs if x.platform() == platform]
