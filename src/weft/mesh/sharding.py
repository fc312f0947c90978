"""Shardings: `SingleDeviceSharding`, `NamedSharding` by mesh and spec, `GSPMDSharding` by tiles.

They say which part of an array each device holds; xla/array.py and xla/shards.py move the values.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from jaxlib import _hlo, _jax  # type: ignore[attr-defined]

from weft import display
from weft.core.aval import typeof
from weft.errors import ShapeError
from weft.mesh.client import Device, find_devices, resolve_memory_kind
from weft.mesh.mesh import AbstractMesh, Mesh, axis_text
from weft.mesh.spec import UNCONSTRAINED, PartitionSpec, names_in_spec
from weft.util import LazyMember, hide_members, memoize

HloSharding = _hlo.HloSharding
REPLICATED = _hlo.OpSharding.Type.REPLICATED

Index = tuple[slice, ...]
# Into how many parts each axis is split, and for each device which part of each axis it holds.
Tiles = tuple[tuple[int, ...], np.ndarray]


class _ShardingMeta(type):
    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, _jax.Sharding)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, _jax.Sharding)


class Sharding(metaclass=_ShardingMeta):
    """The distribution of an array over devices. `isinstance(s, Sharding)` is true for every kind.

    The class is not called: `NamedSharding(mesh, spec)` and `SingleDeviceSharding(device)` make
    them.

    Attributes:
      device_set: the set of devices that hold parts.
      memory_kind: the name of the memory, or None.

    >>> isinstance(jnp.ones(3).sharding, weft.sharding.Sharding)
    True
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "Sharding: must be made as one of its kinds; got a call. "
            "Hint: NamedSharding(mesh, PartitionSpec(...))."
        )


_interning = threading.RLock()


def intern_sharding(cls: Any, base: Any, key: tuple) -> Any:
    """The one sharding of a class with these arguments, made by its `_make` on first use.

    Equal shardings are one object, since the C++ call path, which compares the shardings of every
    argument, compares identities. They are kept: a program names few.
    """
    found = cls._made.get(key)
    if found is None:
        with _interning:  # another thread must not see it before it is whole
            found = cls._made.get(key)
            if found is None:
                found = base.__new__(cls)
                found._make(*key)
    return found


class SingleDeviceSharding(_jax.SingleDeviceSharding):
    """The distribution of an array that is on one device as a whole.

    Args:
      device: the device, one of `weft.devices()`.
      memory_kind: the name of one of its memories. None, the default, is the default memory.

    >>> s = SingleDeviceSharding(weft.devices()[0])
    >>> weft.device_put(jnp.ones(3), s).sharding == s
    True
    """

    _made: ClassVar[dict[tuple, SingleDeviceSharding]] = {}

    num_devices = 1
    is_fully_replicated = True

    def __new__(cls, device: Any, *, memory_kind: str | None = None) -> SingleDeviceSharding:
        return intern_sharding(cls, _jax.SingleDeviceSharding, (device, memory_kind))

    def __init__(self, device: Any, *, memory_kind: str | None = None):
        pass

    def _make(self, device: Any, memory_kind: str | None) -> None:
        if not isinstance(device, Device):
            raise TypeError(
                f"SingleDeviceSharding: device must be a device; got {device!r}. "
                "Hint: weft.devices()[0]."
            )
        default = device.default_memory().kind
        self.memory_kind = resolve_memory_kind("SingleDeviceSharding", device, memory_kind)
        super().__init__(device, self.memory_kind)
        self.device = device
        self._made[device, memory_kind] = self
        if self.memory_kind == default:  # named or not, it is one sharding
            self._made[device, None] = self._made[device, default] = self

    @property
    def device_set(self) -> set:
        """The devices that hold a part of the array."""
        return {self.device}

    @property
    def whole(self) -> SingleDeviceSharding:
        """The sharding on the same devices under which each holds all of an array."""
        return self

    @property
    def addressable_devices(self) -> set:
        """Return the devices among them that belong to this process."""
        return {self.device} if self.is_fully_addressable else set()

    @property
    def has_addressable_devices(self) -> bool:
        """Return True if some of them belong to this process."""
        return self.is_fully_addressable

    @property
    def is_fully_addressable(self) -> bool:
        """Return True if all of them belong to this process."""
        return self.device.process_index == self.device.client.process_index()

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict:
        """For each device, the part of an array of this shape that it holds."""
        return {self.device: (slice(None),) * len(global_shape)}

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> dict:
        """The same for this process's devices."""
        return self.devices_indices_map(global_shape) if self.is_fully_addressable else {}

    def check_compatible_aval(self, aval_shape: tuple[int, ...]) -> None:
        """Accept any shape."""

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the part that a device holds."""
        return tuple(global_shape)

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Return True if both put the same parts of an array of rank `ndim` on the same devices."""
        return self is other or are_equivalent(self, other, ndim)

    def _tiles(self, ndim: int) -> Tiles:
        return (1,) * ndim, np.zeros((1, ndim), int)

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """The same device, another of its memories."""
        return SingleDeviceSharding(self.device, memory_kind=kind)

    @property
    def _device_assignment(self) -> tuple:
        return (self.device,)

    @property
    def _addressable_device_assignment(self) -> tuple:  # orbax reads it
        return tuple(self.addressable_devices)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return HloSharding.replicate()

    def __reduce__(self) -> tuple:
        device = self.device
        return _unpickle_single_device, (device.platform, device.id, self.memory_kind)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device!r}, memory_kind={self.memory_kind})"


def _unpickle_single_device(
    platform: str, device_id: int, memory_kind: str | None
) -> SingleDeviceSharding:
    (device,) = find_devices("SingleDeviceSharding", platform, [device_id])
    return SingleDeviceSharding(device, memory_kind=memory_kind)


def make_single_device_sharding(
    device: Any, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """Return the sharding of an array that is on one device as a whole.

    Args:
      device: the device, one of `weft.devices()`.
      memory_kind: the name of one of its memories. None, the default, is the default memory.

    Returns:
      A `SingleDeviceSharding`.

    >>> make_single_device_sharding(weft.devices()[0]).memory_kind
    'device'
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


@functools.cache
def sharding_on(device: Any) -> SingleDeviceSharding:
    """The sharding that puts an array whole on `device`."""
    return SingleDeviceSharding(device)


class _MultiDeviceSharding(_jax.GSPMDSharding):
    """The base of shardings over several devices, made of `_device_assignment` and `_tiles`.

    Of jaxlib's classes that the C++ call path accepts, only this one needs no Python of JAX.
    """

    memory_kind: str | None
    _device_assignment: tuple
    _internal_device_list: Any

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def _tiles(self, ndim: int) -> Tiles:
        raise NotImplementedError

    @property
    def device_set(self) -> set:
        """The devices that hold a part of the array."""
        return set(self._device_assignment)

    @property
    def num_devices(self) -> int:
        """The number of devices that hold a part of the array."""
        return len(self._device_assignment)

    @property
    def addressable_devices(self) -> set:
        """Return the devices among them that belong to this process."""
        return set(self._internal_device_list.addressable_device_list)

    @property
    def _addressable_device_assignment(self) -> tuple:
        return tuple(self._internal_device_list.addressable_device_list)

    @property
    def has_addressable_devices(self) -> bool:
        """Return True if some of them belong to this process."""
        return bool(self.addressable_devices)

    @property
    def is_fully_addressable(self) -> bool:
        """Return True if all of them belong to this process."""
        return self._internal_device_list.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Return True if every device holds all of the array."""
        raise NotImplementedError

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        """For each device, the part of an array of this shape that it holds."""
        return dict(zip(self._device_assignment, indices(self, tuple(global_shape)), strict=True))

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        """The same for this process's devices."""
        every = self.devices_indices_map(global_shape)
        return {d: every[d] for d in self._internal_device_list.addressable_device_list}

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the part that a device holds."""
        shape = tuple(global_shape)
        check_divisible(type(self).__name__, self, shape)
        counts, _ = self._tiles(len(shape))
        return tuple(n // count for n, count in zip(shape, counts, strict=True))

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Raise where an array of this shape has too few axes for the sharding."""
        self._tiles(len(aval_shape))

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Return True if both put the same parts of an array of rank `ndim` on the same devices."""
        return self is other or are_equivalent(self, other, ndim)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        raise NotImplementedError


def are_equivalent(a: Any, b: Any, ndim: int) -> bool:
    """Return True if the same devices hold the same parts of arrays of rank `ndim`."""
    if not isinstance(b, _jax.Sharding) or a.memory_kind != b.memory_kind:
        return False
    if terms_of(a) != terms_of(b):
        return False
    if mesh_or_devices(a) != mesh_or_devices(b):
        return False
    if a.is_fully_replicated or b.is_fully_replicated:
        return a.is_fully_replicated and b.is_fully_replicated
    counts_a, places_a = a._tiles(ndim)
    counts_b, places_b = b._tiles(ndim)
    return counts_a == counts_b and np.array_equal(places_a, places_b)


def terms_of(sharding: Any) -> frozenset:
    """The axes of its mesh along which devices hold terms of a sum that is still to be formed."""
    spec = getattr(sharding, "spec", None)
    return frozenset() if spec is None else spec.unreduced


def is_abstract(sharding: Any) -> bool:
    """Return True if a sharding is over a mesh that has no devices."""
    mesh = getattr(sharding, "mesh", None)
    return mesh is not None and not getattr(mesh, "_device_assignment", None)


def mesh_or_devices(sharding: Any) -> Any:
    """The devices of a sharding in order, or the mesh where it has none."""
    return sharding.mesh if is_abstract(sharding) else sharding._device_assignment


def device_names(sharding: Any) -> str:
    """The devices of a sharding, for errors."""
    names = [repr(d) for d in sharding._device_assignment]
    return names[0] if len(names) == 1 else f"{len(names)} devices ({', '.join(names)})"


def placement_error(
    op: str, args: Sequence[Any], names: Sequence[str], kinds: Sequence[Any], one: Any, other: Any
) -> ValueError:
    """Return the error for values on different devices; `kinds` has the sharding of each."""

    def show(sharding: Any, unknown: str) -> str:
        i = next((i for i, k in enumerate(kinds) if k is sharding), None)
        if i is None:
            return unknown
        return f"{names[i]}, {typeof(args[i])}," if names else str(typeof(args[i]))

    target = "NamedSharding(mesh, P())" if hasattr(other, "mesh") else "y.sharding"
    return ValueError(
        f"{op}: operands must be on one device, or over one mesh; got {show(one, 'a value')} on "
        f"{device_names(one)} where {show(other, 'another') if names else 'another'} is on "
        f"{device_names(other)}. Hint: weft.device_put(x, {target})."
    )


# called for each array that is read or made
@memoize
def indices(sharding: _MultiDeviceSharding, shape: tuple[int, ...]) -> tuple[Index, ...]:
    """For each device of a sharding, in order, the part of an array of this shape it holds."""
    sizes = sharding.shard_shape(shape)
    counts, places = sharding._tiles(len(shape))
    return tuple(
        tuple(
            slice(None) if count == 1 else slice(int(p) * size, (int(p) + 1) * size)
            for count, size, p in zip(counts, sizes, place, strict=True)
        )
        for place in places
    )


def check_divisible(op: str, sharding: Any, shape: Sequence[int], what: str = "") -> None:
    """Raise where an axis does not fall into equal parts over the devices, or there are too few.

    `op` and `what` begin the error: the operation, and the value that is checked.
    """
    if len(getattr(sharding, "spec", ())) > len(shape):
        raise rank_error(op, sharding.spec, len(shape), what)
    counts, _ = sharding._tiles(len(shape))
    for i, (size, count) in enumerate(zip(shape, counts, strict=True)):
        if size % count:
            fit = -(-size // count) * count
            spec = getattr(sharding, "spec", None)
            over = ""
            if spec is not None:
                axes = "axes" if len(spec.axes(i)) > 1 else "axis"
                over = f", the size of mesh {axes} {sized_axes(sharding.mesh, spec.axes(i))}"
            raise ShapeError(
                f"{op}: axis {i}{what and f' of {what}'} must be divisible by {count}{over}; "
                f"got size {size} in shape {tuple(shape)}"
                f"{f' with {spec}' if spec is not None else ''}. Hint: pad the axis to {fit}, or "
                f"have None at place {i} of the spec."
            )


def sized_axes(mesh: Any, names: Iterable) -> str:
    """Axes of a mesh with their sizes, for errors."""
    return " and ".join([f"{n!r} ({mesh.shape[n]})" for n in names])


def rank_error(op: str, spec: PartitionSpec, ndim: int, what: str = "") -> ShapeError:
    """The error for a spec that is longer than the rank of an array."""
    return ShapeError(
        f"{op}: {spec} must have no more entries than {what or 'the array'} has axes; got "
        f"{len(spec)} for rank {ndim}. Hint: {PartitionSpec(*spec[:ndim])}."
    )


class NamedSharding(_MultiDeviceSharding):
    """The distribution of an array over the devices of a mesh.

    Args:
      mesh: a `Mesh`, or an `AbstractMesh` for a type without devices.
      spec: a `PartitionSpec`, which says over which mesh axes each axis of the array is split.
      memory_kind: the name of one of the memories of each device. None, the default, is the default
        memory.

    >>> from weft.mesh.mesh import make_mesh
    >>> mesh = make_mesh((1,), ("x",))
    >>> NamedSharding(mesh, PartitionSpec("x")).shard_shape((8, 4))
    (8, 4)
    """

    _made: ClassVar[dict[tuple, NamedSharding]] = {}

    mesh: Mesh | AbstractMesh
    spec: PartitionSpec

    def __new__(
        cls, mesh: Mesh | AbstractMesh, spec: PartitionSpec, *, memory_kind: str | None = None
    ) -> NamedSharding:
        try:
            return intern_sharding(cls, _MultiDeviceSharding, (mesh, spec, memory_kind))
        except TypeError:  # perhaps not hashable: the check names the argument
            check_spec(mesh, spec)
            raise

    def __init__(
        self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, *, memory_kind: str | None = None
    ):
        pass

    def _make(
        self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, memory_kind: str | None
    ) -> None:
        check_spec(mesh, spec)
        kind = memory_kind
        if isinstance(mesh, Mesh) and not mesh.empty:
            device = mesh._device_assignment[0]
            kind = resolve_memory_kind("NamedSharding", device, memory_kind)
            super().__init__(mesh._internal_device_list, HloSharding.replicate(), kind)
        self.__dict__.update(mesh=mesh, memory_kind=kind, _tiled={})
        self.__dict__["spec"] = spec
        self._made[mesh, spec, memory_kind] = self
        if isinstance(mesh, Mesh) and not mesh.empty and kind == device.default_memory().kind:
            self._made[mesh, spec, None] = self._made[mesh, spec, kind] = self

    def _concrete_mesh(self) -> Mesh:
        if isinstance(self.mesh, AbstractMesh) or self.mesh.empty:
            raise ValueError(
                f"NamedSharding: the mesh must have devices for this; got {self.mesh}. "
                "Hint: weft.make_mesh(axis_shapes, axis_names)."
            )
        return self.mesh

    @property
    def _device_assignment(self) -> tuple:
        return self._concrete_mesh()._device_assignment

    @property
    def _internal_device_list(self) -> Any:
        return self._concrete_mesh()._internal_device_list

    @property
    def num_devices(self) -> int:
        """The number of devices that hold a part of the array."""
        return self.mesh.size

    @property
    def is_fully_replicated(self) -> bool:
        """Return True if every device holds all of the array."""
        sizes, spec = self.mesh.shape, self.spec
        return not spec.unreduced and all(sizes[n] == 1 for n in names_in_spec(spec))

    @property
    def replicated_axes(self) -> frozenset:
        """The mesh axes that no array axis is split over."""
        return frozenset(self.mesh.axis_names).difference(names_in_spec(self.spec))

    def update(self, **changes: Any) -> NamedSharding:
        """The same sharding except for `mesh`, `spec` or `memory_kind`."""
        names = ("mesh", "spec", "memory_kind")
        return NamedSharding(**{**{n: getattr(self, n) for n in names}, **changes})

    def with_spec(self, spec: PartitionSpec) -> NamedSharding:
        """The same mesh, another spec."""
        return self.update(spec=spec)

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The same, in another memory of each device."""
        return self.update(memory_kind=kind)

    def _tiles(self, ndim: int) -> Tiles:
        found = self._tiled.get(ndim)
        if found is None:
            if ndim < len(self.spec):
                raise rank_error("NamedSharding", self.spec, ndim)
            found = self._tiled[ndim] = tiles_of_spec(self.mesh, self.spec, ndim)
        return found

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        self._tiles(num_dimensions)  # refuses too few axes
        return make_hlo_sharding(self.mesh, self.spec, num_dimensions)

    @property
    def whole(self) -> NamedSharding:
        """The sharding over the same mesh under which each device holds all of an array."""
        return self.update(spec=PartitionSpec())

    def of_engine(self, hlo: Any, ndim: int) -> Any:
        """Return jaxlib's sharding of a value in a program over this mesh as one of weft's."""
        return sharding_of_result(hlo, self._concrete_mesh(), ndim)

    def sdy(self, ndim: int, mesh: str = "@mesh", open: bool = False) -> str:
        """The sharding of a value of rank `ndim`, in a program that declares its mesh as `mesh`.

        Where it is `open`, the compiler may split the value over further axes.
        """
        self._tiles(ndim)
        dims = []
        for i in range(ndim):
            names = list(map(axis_text, self.spec.axes(i)))
            if open or (i < len(self.spec) and self.spec[i] is UNCONSTRAINED):
                names.append("?")
            dims.append(f"{{{', '.join(names)}}}")
        terms = ", ".join(axis_text(n) for n in self.mesh.axis_names if n in self.spec.unreduced)
        return f"<{mesh}, [{', '.join(dims)}]{f', unreduced={{{terms}}}' if terms else ''}>"

    def __reduce__(self) -> tuple:
        return _unpickle_named, (self.mesh, self.spec, self.memory_kind)

    def __repr__(self) -> str:
        kind = f", memory_kind={self.memory_kind}" if self.memory_kind else ""
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}{kind})"


def _unpickle_named(mesh: Any, spec: PartitionSpec, kind: str | None) -> NamedSharding:
    return NamedSharding(mesh, spec, memory_kind=kind)


def check_spec(mesh: Any, spec: Any) -> None:
    """Raise where a spec does not fit a mesh."""
    if not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(
            f"NamedSharding: mesh must be a Mesh; got {mesh!r} of type {type(mesh).__name__}. "
            "Hint: weft.make_mesh(axis_shapes, axis_names)."
        )
    if not isinstance(spec, PartitionSpec):
        inner = ", ".join(map(repr, spec)) if isinstance(spec, tuple | list) else repr(spec)
        raise TypeError(
            f"NamedSharding: spec must be a PartitionSpec; got {spec!r} of type "
            f"{type(spec).__name__}. Hint: P({'' if spec is None else inner})."
        )
    seen: set = set()
    kinds = [spec.unreduced, spec.reduced]
    for names in (*map(spec.axes, range(len(spec))), *kinds):
        for name in names:
            if name not in mesh.axis_names:
                known = ", ".join(map(repr, mesh.axis_names)) or "none"
                raise ValueError(
                    f"NamedSharding: the axes of a spec must be axes of the mesh; got {name!r} in "
                    f"{spec} for a mesh with axes {known}."
                )
            if name in seen:
                raise ValueError(
                    f"NamedSharding: a mesh axis must split one array axis at most; got {name!r} "
                    f"twice in {spec}."
                )
            if names in kinds and name in mesh.auto_axes:
                raise ValueError(
                    "NamedSharding: values must be unreduced or reduced along explicit axes of a "
                    f"mesh; got {name!r} in {spec} for {mesh}. Hint: AxisType.Explicit."
                )
            seen.add(name)


def tiles_of_spec(mesh: Any, spec: PartitionSpec, ndim: int) -> Tiles:
    """The parts that a spec makes of an array; see `_tiles`."""
    sizes, total = mesh.shape, math.prod(mesh.axis_sizes)
    coordinates = dict(
        zip(mesh.axis_names, np.indices(mesh.axis_sizes).reshape(len(sizes), total), strict=True)
    )
    counts, places = [], []
    for i in range(ndim):
        place = np.zeros(total, int)
        for name in spec.axes(i):
            place = place * sizes[name] + coordinates[name]
        counts.append(math.prod(sizes[n] for n in spec.axes(i)))
        places.append(place)
    return tuple(counts), np.array(places, int).reshape(ndim, total).T


# called for each transfer and call; the keys live as long as the shardings, which are kept
@memoize
def make_hlo_sharding(mesh: Any, spec: PartitionSpec, ndim: int) -> Any:
    """Return the form of a sharding that jaxlib takes: it numbers devices by place in the mesh."""
    sizes = mesh.shape
    split = [n for i in range(ndim) for n in spec.axes(i)]
    whole = [n for n in mesh.axis_names if n not in split]
    dims = [math.prod(sizes[n] for n in spec.axes(i)) for i in range(ndim)]
    if math.prod(dims) == 1:
        return HloSharding.replicate()
    rest = math.prod(sizes[n] for n in whole)
    order = [mesh.axis_names.index(n) for n in (*split, *whole)]
    if rest > 1:
        dims.append(rest)
    types = [REPLICATED] if rest > 1 else []
    return HloSharding.iota_tile(dims, list(mesh.axis_sizes), order, types)


class GSPMDSharding(_MultiDeviceSharding):
    """A sharding that is described by XLA's own tiles.

    It is for shardings that no `PartitionSpec` over a mesh describes, and for libraries that read
    shardings from compiled programs. Prefer `NamedSharding` elsewhere.

    Args:
      devices: the devices, a sequence of them. The tiles number the devices by their place in it.
      op_sharding: the tiles: an OpSharding or an HloSharding of jaxlib.
      memory_kind: the memory of the devices, such as "device" or "pinned_host". None takes the
        default memory.

    Raises:
      ValueError: the devices do not have the memory.

    >>> from weft.extend.sharding import GSPMDSharding
    >>> replicated = GSPMDSharding.get_replicated(weft.devices()[:1])
    >>> replicated
    GSPMDSharding({replicated}, memory_kind=device)
    >>> replicated.shard_shape((4, 2))
    (4, 2)
    """

    _made: ClassVar[dict[tuple, GSPMDSharding]] = {}

    def __new__(
        cls, devices: Any, op_sharding: Any, *, memory_kind: str | None = None
    ) -> GSPMDSharding:
        key = (tuple(devices), as_hlo_sharding(op_sharding), memory_kind)
        return intern_sharding(cls, _MultiDeviceSharding, key)

    def __init__(self, devices: Any, op_sharding: Any, *, memory_kind: str | None = None):
        pass

    def _make(self, assignment: tuple, hlo: Any, memory_kind: str | None) -> None:
        kind = resolve_memory_kind("GSPMDSharding", assignment[0], memory_kind)
        super().__init__(_jax.DeviceList(assignment), hlo, kind)
        self.__dict__.update(memory_kind=kind, _device_assignment=assignment, _hlo=hlo)
        for given in {memory_kind, kind}:
            self._made[assignment, hlo, given] = self

    @classmethod
    def get_replicated(cls, devices: Any, *, memory_kind: str | None = None) -> GSPMDSharding:
        """An array whole on every device."""
        return cls(devices, HloSharding.replicate(), memory_kind=memory_kind)

    @property
    def whole(self) -> GSPMDSharding:
        """The sharding on the same devices under which each holds all of an array."""
        return GSPMDSharding.get_replicated(self._device_assignment)

    def of_engine(self, hlo: Any, ndim: int) -> Any:
        """Return jaxlib's sharding of a value in a program over these devices as one of weft's."""
        return sharding_of_result(hlo, self._device_assignment, ndim)

    @property
    def is_fully_replicated(self) -> bool:
        """Return True if every device holds all of the array."""
        return self._hlo.is_replicated() or self.num_devices == 1

    def with_memory_kind(self, kind: str) -> GSPMDSharding:
        """The same, in another memory of each device."""
        return GSPMDSharding(self._device_assignment, self._hlo, memory_kind=kind)

    def _tiles(self, ndim: int) -> Tiles:
        return tiles_of_hlo(self._hlo, self.num_devices, ndim)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return self._hlo

    def __reduce__(self) -> tuple:
        ids, proto = [d.id for d in self._device_assignment], self._hlo.to_proto()
        platform = self._device_assignment[0].platform
        return _unpickle_gspmd, (platform, ids, proto.SerializeToString(), self.memory_kind)

    def __repr__(self) -> str:
        return f"GSPMDSharding({self._hlo!r}, memory_kind={self.memory_kind})"


LazyMember(
    lambda: display.values.sharding_html,
    "_repr_html_",
    (SingleDeviceSharding, _MultiDeviceSharding),
)
for _cls in (SingleDeviceSharding, _MultiDeviceSharding):
    hide_members(_cls, "of_engine sdy whole")


def _unpickle_gspmd(platform: str, ids: list[int], proto: bytes, kind: str | None) -> GSPMDSharding:
    op = _hlo.OpSharding()
    op.ParseFromString(proto)
    devices = find_devices("GSPMDSharding", platform, ids)
    return GSPMDSharding(devices, op, memory_kind=kind)


def as_hlo_sharding(x: Any) -> Any:
    """jaxlib's sharding in its one form."""
    return HloSharding.from_proto(x) if isinstance(x, _hlo.OpSharding) else x


def tiles_of_hlo(hlo: Any, count: int, ndim: int) -> Tiles:
    """The parts that jaxlib's sharding makes of an array; see `_tiles`."""
    if hlo.is_replicated():
        return (1,) * ndim, np.zeros((count, ndim), int)
    grid = np.array(list(hlo.tile_assignment_devices()), int).reshape(
        list(hlo.tile_assignment_dimensions())
    )
    if grid.ndim < ndim:
        raise ShapeError(
            f"GSPMDSharding: must be for arrays of rank {grid.ndim}; got rank {ndim} and {hlo!r}."
        )
    places = np.empty((count, ndim), int)
    for place in np.ndindex(*grid.shape):
        places[grid[place]] = place[:ndim]
    return tuple(grid.shape[:ndim]), places


def sharding_of_result(hlo: Any, where: Mesh | Sequence[Any], ndim: int) -> Any:
    """Return jaxlib's sharding of a result of rank `ndim` as a sharding of weft's.

    Args:
      hlo: jaxlib's sharding, of an executable's results.
      where: the mesh the program ran over, or its devices.
      ndim: the rank of the result.

    Returns:
      A NamedSharding where `where` is a mesh and a spec over it says the same, whose entries end
      with one that splits; else a GSPMDSharding; for one device that is not a mesh, its sharding.
    """
    hlo = as_hlo_sharding(hlo)
    if not isinstance(where, Mesh):
        devices = (where,) if isinstance(where, Device) else tuple(where)
        if len(devices) == 1:
            return SingleDeviceSharding(devices[0])
        return GSPMDSharding(devices, hlo)
    spec = spec_of(hlo, where, ndim)
    if spec is None:
        return GSPMDSharding(where._device_assignment, hlo)
    return NamedSharding(where, spec)


# called for each result of each program; few shardings occur
@memoize
def spec_of(hlo: Any, mesh: Mesh, ndim: int) -> PartitionSpec | None:
    """The spec that splits arrays of rank `ndim` over a mesh as jaxlib says, if one does."""
    if hlo.is_replicated() or mesh.size == 1:
        return PartitionSpec()
    if not hlo.is_tiled():
        return None
    counts, places = tiles_of_hlo(hlo, mesh.size, ndim)
    grid = places.reshape(*mesh.axis_sizes, ndim)
    # one step along each mesh axis from its corner moves that far through the parts of each axis
    steps = {
        name: np.moveaxis(grid, k, 0)[(1, *(0,) * (len(mesh.axis_sizes) - 1))]
        for k, (name, size) in enumerate(mesh.shape_tuple)
        if size > 1
    }
    entries = [
        tuple(sorted((n for n in steps if steps[n][i] > 0), key=lambda n: -steps[n][i]))
        for i in range(ndim)
    ]
    while entries and not entries[-1]:
        entries.pop()
    used = [n for names in entries for n in names]
    if len(set(used)) != len(used):
        return None
    spec = PartitionSpec(*entries)
    made = tiles_of_spec(mesh, spec, ndim)
    return spec if made[0] == counts and np.array_equal(made[1], places) else None
