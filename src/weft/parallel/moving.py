"""Moving arrays between devices by the devices: parts are cut where they are, sent, and joined.

On CPUs, whose memory is the host's, xla/shards.py does it with fewer copies.
"""

from __future__ import annotations

from typing import Any

from weft.mesh.sharding import SingleDeviceSharding, sharding_on
from weft.primitives import slicing
from weft.xla.array import ArrayImpl, put
from weft.xla.shards import Bounds, bounds, make_from_parts, shards_of


def can_move_parts(x: Any, sharding: Any) -> bool:
    """Return True if the devices of an accelerator can do it among themselves."""
    now, to = x._sharding, sharding
    return (
        type(x) is ArrayImpl
        and not x.is_deleted()
        and len({d.client for d in (*now.device_set, *to.device_set)}) == 1
        and x.platform() != "cpu"
        and now.is_fully_addressable
        and to.is_fully_addressable
        and not type(now) is type(to) is SingleDeviceSharding
        and now.memory_kind == to.memory_kind == to._device_assignment[0].default_memory().kind
    )


def move_parts(x: Any, sharding: Any) -> Any:
    """An array with another sharding, over devices of one kind."""
    shape = x.aval.shape
    held: dict[Bounds, list] = {}
    for shard in shards_of(x):
        held.setdefault(bounds(shard.index, shape), []).append(shard)
    cut: dict[Bounds, Any] = {}
    indices = sharding.addressable_devices_indices_map(shape)
    parts = [join_parts(held, cut, bounds(i, shape), device) for device, i in indices.items()]
    if type(sharding) is SingleDeviceSharding:
        return put(parts[0], sharding, committed=True)
    return make_from_parts(x.aval, sharding, parts)


def join_parts(held: dict, cut: dict, want: Bounds, device: Any, axis: int = 0) -> Any:
    """Return the region `want` of an array on a device; `cut` caches slices.

    The regions in `held` form a grid, so `want` is joined axis by axis, from `axis` on.
    """
    if axis == len(want):
        (region,) = held  # one region is left
        shard = next((s for s in held[region] if s.device == device), held[region][0])
        piece = shard.data
        if region != want:
            starts, ends = ([w[k] - r[0] for w, r in zip(want, region)] for k in (0, 1))
            if want not in cut:
                cut[want] = slicing.slice(piece, starts, ends)
            piece = cut[want]
        return put(piece, sharding_on(device), committed=True)
    low, high = want[axis]
    pieces = []
    for a, b in sorted({region[axis] for region in held}):
        inner = (max(a, low), min(b, high))
        if inner[0] < inner[1] or low == high == a:
            among = {r: s for r, s in held.items() if r[axis] == (a, b)}
            part = (*want[:axis], inner, *want[axis + 1 :])
            pieces.append(join_parts(among, cut, part, device, axis + 1))
    return pieces[0] if len(pieces) == 1 else slicing.concatenate(pieces, axis)
