"""Arrays over many devices, from their parts: made by a callback, as arrays, or by each process.

`device_put` in api/devices.py lays out arrays that are complete on the host or on a device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.api.shardings import as_sharding
from weft.core.aval import ShapedArray, typeof, words_of
from weft.errors import ShapeError
from weft.mesh.client import Device
from weft.mesh.sharding import Index, Sharding, SingleDeviceSharding, check_divisible
from weft.mesh.spec import PartitionSpec
from weft.mesh.typed import typed_for
from weft.primitives.families import index_tuple
from weft.pytrees import broadcast_prefix, flatten, unflatten
from weft.xla.array import ArrayImpl, KeyArray, array_of_type, host_view, put
from weft.xla.shards import Bounds, bounds, local_pieces, make_from_pieces


def make_array_from_callback(
    shape: Sequence[int], sharding: Any, data_callback: Callable[[Index], Any], dtype: Any = None
) -> Any:
    """Return an array whose parts a function supplies, each from its position in the array.

    Each process makes only the parts of its own devices, so no process has to hold the whole array.

    Args:
      shape: the shape of the whole array.
      sharding: the sharding, which says which device holds which part.
      data_callback: a function from a tuple of slices to that part of the array. It is called once
        for every different part of this process's devices.
      dtype: the dtype of the array. None, the default, takes it from the parts. It must be given
        where this process holds none.

    Returns:
      An array of that shape and sharding.

    Raises:
      ShapeError: a part has not the shape of its slices.

    >>> from weft.sharding import NamedSharding, PartitionSpec
    >>> from weft import make_mesh
    >>> whole = np.arange(8.0, dtype=np.float32)
    >>> over_x = NamedSharding(make_mesh((1,), ("x",)), PartitionSpec("x"))
    >>> make_array_from_callback((8,), over_x, lambda index: whole[index])
    Array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float32)
    """
    op = "make_array_from_callback"
    shape = index_tuple(shape, op, "shape")
    sharding = check_sharding(op, sharding, shape, "the array")
    kind = None if dtype is None else dtypes.canonicalize(dtype, op)
    held: dict[Bounds, Any] = {}
    for index in sharding.addressable_devices_indices_map(shape).values():
        key = bounds(index, shape)
        if key in held:
            continue
        part = data_callback(index)
        aval = typeof(part, op)
        want = tuple(high - low for low, high in key)
        if aval.shape != want:
            raise ShapeError(
                f"{op}: data_callback must return the part asked for; got {aval} for "
                f"{index_text(index)} of an array of shape {shape}, whose parts have shape {want}."
            )
        if dtype is None and kind not in (None, aval.dtype):
            raise TypeError(
                f"{op}: data_callback must return one dtype; got {aval.dtype} for "
                f"{index_text(index)}, and {kind} before. Hint: dtype={str(kind)!r}, "
                "and x.astype in the callback."
            )
        kind = kind or aval.dtype
        held[key] = host_view(part) if type(part) is ArrayImpl else part
    if kind is None:
        raise TypeError(
            f"{op}: dtype must be given where this process holds no part of the array; got None "
            f"for {sharding}. Hint: dtype='float32'."
        )
    return make_array(ShapedArray(shape, kind), sharding, held)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Any, arrays: Sequence[Any], *, dtype: Any = None
) -> Any:
    """Return an array made of parts that are on their devices already. Nothing is copied.

    Args:
      shape: the shape of the whole array.
      sharding: the sharding, which says which device holds which part.
      arrays: a list with one array for each of this process's devices, in any order.
      dtype: the dtype of the array. It must be given where this process holds no part.

    Returns:
      An array of that shape and sharding.

    Raises:
      TypeError: `arrays` is empty, and `dtype` is None.

    >>> x = jnp.arange(3)
    >>> make_array_from_single_device_arrays((3,), x.sharding, [x])
    Array([0, 1, 2], dtype=int32)
    """
    op = "make_array_from_single_device_arrays"
    if not isinstance(arrays, list | tuple):
        raise TypeError(f"{op}: arrays must be a list; got a {type(arrays).__name__}. Hint: [x].")
    if arrays and all(type(x) is KeyArray and x.dtype is arrays[0].dtype for x in arrays):
        kind = arrays[0].dtype
        words = [x.words for x in arrays]
        made = make_array_from_single_device_arrays((*shape, kind.words), sharding, words)
        return KeyArray(ShapedArray(shape, kind), made)
    shape = index_tuple(shape, op, "shape")
    sharding = check_sharding(op, sharding, shape, "the array")
    local = sharding.addressable_devices_indices_map(shape)
    by_device: dict[Any, Any] = {}
    for i, x in enumerate(arrays):
        if type(x) is not ArrayImpl or x._sharding.num_devices != 1:
            got = x.aval if type(x) is ArrayImpl else type(x).__name__
            raise TypeError(
                f"{op}: arrays must be on one device each; got {got} at place {i}. "
                "Hint: weft.device_put(part, device)."
            )
        (device,) = x.devices()
        if device in by_device:
            raise ValueError(f"{op}: arrays must be on different devices; got two on {device!r}.")
        if x.aval.shape != sharding.shard_shape(shape):
            raise ShapeError(
                f"{op}: arrays must have the shape of a part, {sharding.shard_shape(shape)}; got "
                f"{x.aval} at place {i}, for an array of shape {shape}."
            )
        by_device[device] = x
    kinds = {x.dtype for x in arrays} | ({np.dtype(dtype)} if dtype is not None else set())
    if len(kinds) != 1:
        listed = ", ".join(sorted(k.name for k in kinds)) or "no arrays and no dtype"
        raise TypeError(f"{op}: arrays must have one dtype; got {listed}.")
    if {*by_device} != {*local}:
        raise ValueError(
            f"{op}: arrays must be on this process's {len(local)} devices of the sharding, one on "
            f"each; got {len(by_device)} on {sorted(d.id for d in by_device)} for devices "
            f"{sorted(d.id for d in local)}."
        )
    weak = bool(arrays) and all(x.weak_type for x in arrays)
    aval = ShapedArray(shape, kinds.pop(), weak)
    parts = [by_device[d] for d in local]
    return ArrayImpl(typed_for(aval, sharding), sharding, parts, committed=True, _skip_checks=True)


def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: Any = None
) -> Any:
    """Return an array that is made of the data of each process.

    A batch is loaded this way: every process reads its own share. In one process this is
    `device_put(local_data, sharding)`.

    Args:
      sharding: the sharding of the array, or a pytree prefix of shardings.
      local_data: a pytree of host arrays: for each array, the block that this process's devices are
        to hold.
      global_shape: the shape of the whole array, or a pytree prefix of shapes. By default it is the
        local shape times the number of blocks. An axis of the local size is one that all processes
        have in full.

    Returns:
      A pytree of arrays with the sharding.

    >>> from weft.sharding import NamedSharding, PartitionSpec
    >>> from weft import make_mesh
    >>> over_x = NamedSharding(make_mesh((1,), ("x",)), PartitionSpec("x"))
    >>> make_array_from_process_local_data(over_x, np.ones(2))
    Array([1., 1.], dtype=float32)
    """
    op = "make_array_from_process_local_data"
    leaves, tree = flatten(local_data)
    names = ("sharding", "local_data")
    places = broadcast_prefix(sharding, local_data, op=op, names=names)
    is_shape = lambda s: s is None or isinstance(s, tuple) and all(type(n) is int for n in s)
    names = ("global_shape", "local_data")
    shapes = broadcast_prefix(global_shape, local_data, is_shape, op=op, names=names)
    return unflatten(tree, map(assemble_local, leaves, places, shapes))


def assemble_local(local: Any, sharding: Any, shape: tuple[int, ...] | None) -> Any:
    """One array of the parts that each process has."""
    op = "make_array_from_process_local_data"
    aval = typeof(local, op)
    if type(local) is KeyArray:
        words = assemble_local(local.words, sharding, shape and (*shape, local.dtype.words))
        return KeyArray(aval.update(shape=words.shape[:-1]), words)
    sharding = check_sharding(op, sharding, None)
    counts, places = sharding._tiles(aval.ndim)
    mine = [d in sharding.addressable_devices for d in sharding._device_assignment]
    here = [sorted(set(column)) for column in places[mine].T.tolist()]
    if shape is None:
        shape = tuple(
            n * count // max(len(held), 1)
            for n, count, held in zip(aval.shape, counts, here, strict=True)
        )
    check_divisible(op, sharding, shape, "the array")
    sizes = sharding.shard_shape(shape)
    for i, (n, whole, size, held) in enumerate(zip(aval.shape, shape, sizes, here, strict=True)):
        if n not in (whole, size * len(held)):
            raise ShapeError(
                f"{op}: axis {i} of local_data must have size {size * len(held)}, what this "
                f"process's devices hold of {whole}; got {aval} for global_shape {shape}."
            )

    def local_part(key: Bounds) -> tuple[slice, ...]:
        out = []
        for i, (low, high) in enumerate(key):
            whole = aval.shape[i] == shape[i]
            start = low if whole else here[i].index(low // sizes[i]) * sizes[i]
            out.append(slice(start, start + high - low))
        return tuple(out)

    host = host_view(local) if type(local) is ArrayImpl else dtypes.cast_on_host(local, aval.dtype)
    full = ShapedArray(shape, aval.dtype)
    if type(sharding) is SingleDeviceSharding:
        return put(host, sharding, committed=True)
    return make_array(
        full, sharding, {key: host[local_part(key)] for key in local_pieces(full, sharding)}
    )


def make_array(aval: ShapedArray, sharding: Any, held: dict[Bounds, Any]) -> Any:
    """An array of its parts, over one device or several."""
    if aval.physical is not aval:
        count = aval.physical.shape[-1]
        words = {(*k, (0, count)): host_view(words_of(x)) for k, x in held.items()}
        return array_of_type(aval, make_array(aval.physical, sharding, words))
    if type(sharding) is SingleDeviceSharding:
        (whole,) = held.values()
        return put(dtypes.cast_on_host(whole, aval.dtype), sharding, committed=True)
    return make_from_pieces(aval, sharding, held)


def check_sharding(op: str, sharding: Any, shape: tuple[int, ...] | None, what: str = "") -> Any:
    """The sharding that an argument gives (also a device or a spec), checked for a shape."""
    if not isinstance(sharding, Sharding | PartitionSpec | Device):
        raise TypeError(
            f"{op}: sharding must be a sharding; got {sharding!r} of type "
            f"{type(sharding).__name__}. Hint: NamedSharding(mesh, P('x'))."
        )
    sharding = as_sharding(op, "sharding", sharding)
    if shape is not None:
        check_divisible(op, sharding, shape, what)
    return sharding


def index_text(index: Index) -> str:
    """Return a tuple of slices as text."""
    parts = (":" if s == slice(None) else f"{s.start}:{s.stop}" for s in index)
    return f"x[{', '.join(parts)}]" if index else "x"
