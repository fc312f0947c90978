"""Arrays over several devices: made of parts, read whole, resharded.

How an array is made and read where one device holds it is array.py's, whose members call this; what
part a device holds is a sharding's to say (mesh/sharding.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.mesh.sharding import GSPMDSharding, Index, SingleDeviceSharding
from weft.mesh.typed import check_readable, check_writable, typed_for

ArrayImpl: Any = _jax.ArrayImpl
COPY_NOW = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL

Bounds = tuple[tuple[int, int], ...]


class Shard:
    """The part of an array that one device holds. `x.addressable_shards` lists them.

    Attributes:
      device: the device.
      index: the position of the part in the array, a tuple of slices.
      replica_id: the number of this copy among the devices that hold the same part, from 0.
      data: the part, an array on this device; None if the device belongs to another process.

    >>> shard = jnp.ones(3).addressable_shards[0]
    >>> shard.index, shard.replica_id, shard.data.shape
    ((slice(None, None, None),), 0, (3,))
    """

    def __init__(self, device: Any, index: Index, replica_id: int, data: Any):
        self.device = device
        self.index = index
        self.replica_id = replica_id
        self.data = data

    def __repr__(self) -> str:
        return (
            f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, "
            f"data={self.data})"
        )


def bounds(index: Index, shape: Sequence[int]) -> Bounds:
    """Return the beginning and the end of a part along each axis."""
    return tuple(s.indices(n)[:2] for s, n in zip(index, shape, strict=True))


def shards_of(x: Any, everywhere: bool = False) -> list[Shard]:
    """The parts of an array on this process's devices, or on all."""
    sharding, aval = x._sharding, x.aval
    if type(sharding) is SingleDeviceSharding:
        if not everywhere and not sharding.is_fully_addressable:
            return []
        return [Shard(sharding.device, (slice(None),) * aval.ndim, 0, x)]
    type_ = ShapedArray(sharding.shard_shape(aval.shape), aval.dtype, aval.weak_type)
    here = dict(zip(sharding._internal_device_list.addressable_device_list, x._arrays, strict=True))
    found: list[Shard] = []
    replicas: dict[Bounds, int] = {}
    for device, index in sharding.devices_indices_map(aval.shape).items():
        key = bounds(index, aval.shape)
        replicas[key] = replicas.get(key, -1) + 1
        if device in here:
            one = SingleDeviceSharding(device, memory_kind=sharding.memory_kind)
            data = ArrayImpl(type_, one, [here[device]], committed=True, _skip_checks=True)
            found.append(Shard(device, index, replicas[key], data))
        elif everywhere:
            found.append(Shard(device, index, replicas[key], None))
    return found


def share_result(x: Any, whole: Any) -> Any:
    """Return a result that only one device has, which made a call of Python, with sharding `whole`.

    Others are returned unchanged. The host copies it: in the program the other devices would wait
    for a call that fails.
    """
    sharding = x._sharding
    alone = type(sharding) is GSPMDSharding and sharding._hlo.is_maximal()
    if not alone or not sharding.is_fully_addressable:
        return x
    owner = SingleDeviceSharding(sharding._device_assignment[0], memory_kind=sharding.memory_kind)
    part = ArrayImpl(x.aval, owner, x._arrays[:1], committed=True, _skip_checks=True)
    return make_from_host(x.aval, whole, read_buffer(part))


# --- reading --------------------------------------------------------------------------------


def buffers_of(x: Any) -> dict[Bounds, list[tuple[Any, Any]]]:
    """For each part of an array that is here, the devices that hold it and their buffers."""
    sharding, shape = x._sharding, x.aval.shape
    if type(sharding) is SingleDeviceSharding:
        held = [(sharding.device, x)] if sharding.is_fully_addressable else []
        return {tuple((0, n) for n in shape): held} if held else {}
    indices = sharding.addressable_devices_indices_map(shape)
    found: dict[Bounds, list[tuple[Any, Any]]] = {}
    for (device, index), buffer in zip(indices.items(), x._arrays, strict=True):
        found.setdefault(bounds(index, shape), []).append((device, buffer))
    return found


def read_buffer(buffer: Any) -> np.ndarray:
    """A read-only view of what one device holds, without a copy where memory is shared."""
    view = buffer._single_device_array_to_np_array_did_copy()[0]
    view.flags.writeable = False
    return view


def read_region(x: Any, parts: dict[Bounds, list[tuple[Any, Any]]], want: Bounds) -> np.ndarray:
    """A part of an array on the host, put together from the parts that are here."""
    if want in parts:
        return read_buffer(parts[want][0][1])
    out = np.empty([high - low for low, high in want], x.aval.dtype)
    filled = 0
    for have, held in parts.items():
        both = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(want, have, strict=True)]
        if all(low < high for low, high in both):
            into = tuple(slice(a - w, b - w) for (a, b), (w, _) in zip(both, want, strict=True))
            of = tuple(slice(a - h, b - h) for (a, b), (h, _) in zip(both, have, strict=True))
            out[into] = read_buffer(held[0][1])[of]
            filled += out[into].size
    if filled < out.size:
        raise remote_parts_error(x)
    return out


def assemble_array(x: Any) -> np.ndarray:
    """The content of an array over several devices, read-only; kept with it, as a copy was made."""
    check_readable(x)
    kept = x._npy_value
    if kept is None:
        parts = buffers_of(x)
        if not parts:
            raise remote_parts_error(x)
        kept = read_region(x, parts, tuple((0, n) for n in x.aval.shape))
        kept.flags.writeable = False
        x._npy_value = kept
    return kept


def remote_parts_error(x: Any) -> RuntimeError:
    """The error for reading what other processes hold."""
    devices = x._sharding._device_assignment
    mine = x._sharding.addressable_devices
    others = sorted({d.process_index for d in devices if d not in mine})
    ids = [d.id for d in devices if d not in mine]
    what = f"process{'es' if len(others) > 1 else ''} {', '.join(map(str, others))}"
    return RuntimeError(
        f"array: must lie on this process's devices to be read; got {x.aval} with parts of it on "
        f"{what} (devices {', '.join(map(str, ids))}). Hint: multihost_utils.process_allgather(x), "
        "or x.addressable_shards for the parts that are here."
    )


# --- making ---------------------------------------------------------------------------------


def make_from_parts(
    aval: ShapedArray, sharding: Any, parts: Sequence[Any], copied: bool = False
) -> Any:
    """Return an array over several devices, given the parts of this process's devices in order.

    Parts on the host are used without a copy, so nobody may write to them, unless they are
    `copied`.
    """
    devices = list(sharding._internal_device_list.addressable_device_list)
    semantics = COPY_NOW if copied else _jax.HostBufferSemantics.ZERO_COPY
    return _jax.batched_device_put(
        typed_for(aval, sharding),
        sharding,
        list(parts),
        devices,
        True,
        host_buffer_semantics=semantics,
    )


def make_from_host(aval: ShapedArray, sharding: Any, host: np.ndarray) -> Any:
    """An array over several devices with the content of a host array, which is copied."""
    check_writable(aval, sharding)
    return make_from_pieces(
        aval, sharding, {k: host[i] for k, i in local_pieces(aval, sharding).items()}
    )


def local_pieces(aval: ShapedArray, sharding: Any) -> dict[Bounds, Index]:
    """Return the parts that this process's devices hold, each once."""
    indices = sharding.addressable_devices_indices_map(aval.shape).values()
    return {bounds(index, aval.shape): index for index in indices}


def make_from_pieces(aval: ShapedArray, sharding: Any, held: dict[Bounds, Any]) -> Any:
    """Return an array over several devices, given its parts. Parts on the host are copied."""
    indices = sharding.addressable_devices_indices_map(aval.shape).values()
    wanted = [bounds(index, aval.shape) for index in indices]
    # jaxlib 0.10 and 0.12 fail to copy if some devices share a part and others, maybe those of
    # other processes, have another part.
    shared = len(held) < len(wanted) and not sharding.is_fully_replicated
    for key, x in held.items():
        if type(x) is not ArrayImpl:
            copied = np.array if shared else np.asarray
            held[key] = copied(dtypes.cast_on_host(x, aval.dtype), order="C")
    return make_from_parts(aval, sharding, [held[key] for key in wanted], copied=not shared)


def reshard_array(x: Any, sharding: Any) -> Any:
    """An array with another sharding; devices that hold their part already keep it."""
    source, aval = x._sharding, typed_for(x.aval, sharding)
    check_readable(x)
    if source.is_equivalent_to(sharding, aval.ndim):
        if source.num_devices == 1:
            return ArrayImpl(aval, sharding, [x], committed=True, _skip_checks=True)
        return x._rewrap_with_aval_and_sharding(aval, sharding)
    sharding.shard_shape(aval.shape)  # refuses what does not divide
    check_writable(x.aval, sharding)
    if hold_same_parts(source, sharding, aval.ndim):
        among = sharding._internal_device_list
        reuse = _jax.ArrayCopySemantics.REUSE_INPUT
        copy = _jax.batched_copy_array_to_devices_with_sharding
        (moved,) = copy([x], [among], [sharding], [reuse])
        return moved if moved.aval is aval else moved._rewrap_with_aval_and_sharding(aval, sharding)
    have = buffers_of(x)
    cut: dict[Bounds, np.ndarray] = {}
    parts = []
    for device, index in sharding.addressable_devices_indices_map(aval.shape).items():
        want = bounds(index, aval.shape)
        if want in have:
            held = dict(have[want])
            parts.append(held.get(device, have[want][0][1]))
        else:
            if want not in cut:
                cut[want] = np.asarray(read_region(x, have, want), order="C")
            parts.append(cut[want])
    return make_from_parts(aval, sharding, parts)


def hold_same_parts(a: Any, b: Any, ndim: int) -> bool:
    """Return True if the devices of two shardings, in their order, hold the same parts."""
    if a.num_devices != b.num_devices:
        return False
    (counts_a, places_a), (counts_b, places_b) = a._tiles(ndim), b._tiles(ndim)
    return counts_a == counts_b and np.array_equal(places_a, places_b)
