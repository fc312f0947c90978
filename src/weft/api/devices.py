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
from weft.xla.layouts import AutoLayout, Format, sharding_of_format


def devices(backend: str | None = None) -> list[Any]:
    """Return the devices of a platform, of all processes.

    Args:
      backend: the name of a platform, such as "cpu" or "gpu". The default is the platform in use.

    Returns:
      A list of devices.

    Raises:
      RuntimeError: the platform does not exist.
      TypeError: the platform is not a str or None.

    >>> weft.devices("cpu")[:1]
    [CpuDevice(id=0)]
    """
    if not isinstance(backend, str | None):
        raise TypeError(f"devices: the platform must be a name; got {backend!r}.")
    return list(all_devices() if backend is None else devices_of(backend, "devices: the platform"))


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Any]:
    """Return the devices of one process.

    Args:
      process_index: the rank of the process, an int. The default is this process.
      backend: the name of a platform. The default is the platform in use.
      host_id: an older name of `process_index`.

    Returns:
      A list of devices.

    Raises:
      ValueError: no process has this rank.

    >>> weft.local_devices()[:1] == weft.devices()[:1]
    True
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
    """Return the number of devices of a platform, of all processes.

    Args:
      backend: the name of a platform. The default is the platform in use.

    Returns:
      An int.

    Raises:
      RuntimeError: the platform does not exist.

    >>> weft.device_count() == len(weft.devices())
    True
    """
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """Return the number of devices of this process.

    Args:
      backend: the name of a platform. The default is the platform in use.

    Returns:
      An int.

    Raises:
      RuntimeError: the platform does not exist.

    >>> weft.local_device_count() == len(weft.local_devices())
    True
    """
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """Return the rank of this process.

    Args:
      backend: the name of a platform. The default is the platform in use.

    Returns:
      An int from 0 to `process_count() - 1`. A program of one process has rank 0.

    Raises:
      RuntimeError: the platform does not exist.

    >>> weft.process_index()
    0
    """
    return (devices(backend)[0].client if backend else client()).process_index()


def process_indices(backend: str | None = None) -> list[int]:
    """Return the ranks of all processes, in ascending order.

    Args:
      backend: the name of a platform. The default is the platform in use.

    Returns:
      A list of ints.

    Raises:
      RuntimeError: the platform does not exist.

    >>> weft.process_indices()
    [0]
    """
    return sorted({d.process_index for d in devices(backend)})


def process_count(backend: str | None = None) -> int:
    """Return the number of processes of the program.

    Args:
      backend: the name of a platform. The default is the platform in use.

    Returns:
      An int.

    Raises:
      RuntimeError: the platform does not exist.

    >>> weft.process_count()
    1
    """
    return len({d.process_index for d in devices(backend)})


# JAX's older names
host_count, host_id = alias(process_count, "host_count"), alias(process_index, "host_id")
host_ids = alias(process_indices, "host_ids")


def default_backend() -> str:
    """Return the name of the platform that arrays are put on. It takes no parameters.

    Returns:
      A str: "cpu", "gpu" or "tpu".

    >>> weft.default_backend() in ("cpu", "gpu", "tpu")
    True
    """
    return all_devices()[0].platform


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None
) -> Any:
    """Put a pytree of arrays on a device, or shard them over several devices.

    An array that is put on a device is bound to it: operations on it run there, and operands that
    are bound to different devices cannot be mixed. A sharding over several devices splits each
    array, or repeats it. In a function that is traced, a sharding is a constraint on the value.

    Args:
      x: a pytree of arrays, NumPy arrays and numbers.
      device: the target: a device, a sharding, a PartitionSpec over the mesh that `weft.set_mesh`
        put in scope, or a pytree prefix of `x` of these. A `Format` counts as its sharding; its
        layout must be row by row, as all arrays are stored. None, the default, puts values that
        are not arrays on the default device, and does not move arrays.
      src: where x is stored, for compatibility with JAX; it is ignored.
      donate: a bool, or a pytree prefix of bools. True says that x is not used again. On
        accelerators its memory is free after the copy. On the CPU it has no effect.
      may_alias: a bool, or a pytree prefix of bools. False makes a copy even if the array is on the
        device already. By default the result may share memory with x.

    Returns:
      A pytree of arrays like x, of the same values, shapes and dtypes.

    Raises:
      DtypeError: a leaf of x is not an array or a number.
      ValueError: `device` is not a device or a sharding; both `donate` and `may_alias` are True;
        the layout of a `Format` does not name each axis once.
      NotImplementedError: the layout of a `Format` is not row by row.

    >>> device_put([1.0, 2])
    [Array(1., dtype=float32, weak_type=True), Array(2, dtype=int32, weak_type=True)]
    >>> x = weft.device_put(np.ones(2, np.float32), weft.devices("cpu")[0])
    >>> x.devices()
    {CpuDevice(id=0)}
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
        x.delete()  # jaxlib keeps it until the copy is made


def _is_plain(x: Any) -> bool:
    return isinstance(x, ARRAYS) or type(x) in HOST_TYPES


def _resolve_target(x: Any, device: Any) -> Any:
    """The sharding that is meant for a leaf; None where it is left open."""
    if isinstance(device, Format):
        if isinstance(device.layout, AutoLayout):
            raise ValueError(
                f"device_put: device must have a layout that says an order; got {device}. "
                "Hint: leave the layout out."
            )
        traced = isinstance(x, Tracer)
        device = (
            device.sharding
            if traced
            else sharding_of_format("device_put", "device", device, np.ndim(x))
        )
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
    """Return True if a program that exchanges parts can reshard the array."""
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
    """Return the values of a pytree of arrays as NumPy arrays.

    The copies of all arrays are started before the first is waited for.

    Args:
      x: a pytree of arrays.

    Returns:
      A pytree like x with NumPy arrays of the same shapes and dtypes. Leaves that are not arrays of
      weft, such as numbers and traced values, are returned unchanged.

    >>> weft.device_get({"a": jnp.arange(3), "b": 1.5})
    {'a': array([0, 1, 2], dtype=int32), 'b': 1.5}
    """
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
    """Wait until every array in a pytree is computed.

    Calls of compiled programs may return before the results are computed. Use this in measurements
    of time, and before memory is counted.

    Args:
      x: a pytree of arrays. Other leaves and traced values are ignored.

    Returns:
      The pytree x.

    >>> weft.block_until_ready((jnp.arange(2) + 1, "label"))
    (Array([1, 2], dtype=int32), 'label')
    """
    for leaf in pytrees.flatten(x)[0]:
        wait = getattr(leaf, "block_until_ready", None)
        if wait is not None and not isinstance(leaf, Tracer):
            wait()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Start copying every array in a pytree to the host, without waiting for it.

    A later `device_get` or `np.asarray` then finds the values on the host.

    Args:
      x: a pytree of arrays. Other leaves are ignored.

    Returns:
      The pytree x.

    >>> weft.copy_to_host_async([jnp.arange(2)])
    [Array([0, 1], dtype=int32)]
    """
    for leaf in pytrees.flatten(x)[0]:
        if isinstance(leaf, ARRAYS):
            leaf.copy_to_host_async()
    return x


def live_arrays(platform: str | None = None) -> list[Any]:
    """Return every array that holds memory.

    Use it to find arrays that keep memory longer than they should. An array over several devices
    counts as one. Arrays that weft caches for itself are left out.

    Args:
      platform: the name of a platform. The default is all platforms.

    Returns:
      A list of arrays.

    Raises:
      RuntimeError: the platform does not exist.

    >>> x = jnp.arange(12345)
    >>> any(y is x for y in weft.live_arrays())
    True
    """
    if platform is not None:
        devices_of(platform, "live_arrays: the platform")
    own = {id(x) for held in HELD for x in held.values()}
    xs = [x for c in clients() for x in c.live_arrays() if x.aval is not None and id(x) not in own]
    return xs if platform is None else [x for x in xs if x.platform() == platform]
