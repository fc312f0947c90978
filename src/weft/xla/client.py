"""The engine's client: platform, devices, and the sharding of an array on one device.

The first use of a device makes the client; importing weft does not. Many devices and other
platforms are parallel/'s.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import Any, ClassVar

import numpy as np
from jaxlib import _hlo, _jax  # type: ignore[attr-defined]

from weft.options import config

if "jax" in sys.modules and not getattr(sys.modules["jax"], "__weft__", False):
    raise ImportError(
        "weft: jaxlib must belong to one library in a process; got jax imported before weft. "
        "Hint: import only one of them, each in a process of its own."
    )

Device = _jax.Device


_making_client = threading.Lock()


def client() -> Any:
    """The PJRT client, made on first use, by one thread."""
    with _making_client:
        return made_client()


@functools.lru_cache(maxsize=1)
def made_client() -> Any:
    """The one client of the process."""
    count = config.num_cpu_devices
    if count is None or count < 0:
        return _jax.get_tfrt_cpu_client(asynchronous=True)
    return _jax.get_tfrt_cpu_client(asynchronous=True, num_devices=count)


@functools.lru_cache(maxsize=1)
def all_devices() -> tuple:
    """Every device of the client."""
    return tuple(client().devices())


def default_device() -> Any:
    """Where new arrays go: the option `default_device`, else the first device."""
    device = config.default_device
    if device is None:
        return all_devices()[0]
    return devices_of(device)[0] if isinstance(device, str) else device


@functools.cache
def devices_of(platform: str, what: str = "device: the platform") -> tuple:
    """The devices of a platform; where there are none, an error that begins with `what`."""
    found = tuple(d for d in all_devices() if d.platform == platform)
    if not found:
        known = ", ".join(sorted({d.platform for d in all_devices()}))
        raise RuntimeError(f"{what} must be one of {known}; got {platform!r}.")
    return found


def memory_kind_of(op: str, device: Any, memory_kind: str | None) -> str:
    """The kind of memory that is meant: the device's default one where none is named."""
    kinds = [memory.kind for memory in device.addressable_memories()]
    if memory_kind not in (None, *kinds):
        raise ValueError(
            f"{op}: memory_kind must be one of {', '.join(kinds)}; got {memory_kind!r}."
        )
    return memory_kind or device.default_memory().kind


class SingleDeviceSharding(_jax.SingleDeviceSharding):
    """An array whole on one device.

    One object for each device and memory kind, so that the C++ call path, which compares shardings
    at every call, compares identities.
    """

    _made: ClassVar[dict[tuple, SingleDeviceSharding]] = {}

    def __new__(cls, device: Any, *, memory_kind: str | None = None) -> SingleDeviceSharding:
        found = cls._made.get((device, memory_kind))
        return super().__new__(cls) if found is None else found

    def __init__(self, device: Any, *, memory_kind: str | None = None):
        if (device, memory_kind) in self._made:
            return
        if not isinstance(device, Device):
            raise TypeError(
                f"SingleDeviceSharding: device must be a device; got {device!r}. "
                "Hint: weft.devices()[0]."
            )
        default = device.default_memory().kind
        self.memory_kind = memory_kind_of("SingleDeviceSharding", device, memory_kind)
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
    def num_devices(self) -> int:
        """The number of devices that hold a part of the array."""
        return 1

    @property
    def addressable_devices(self) -> set:
        """Those of them that belong to this process."""
        return {self.device} if self.is_fully_addressable else set()

    @property
    def has_addressable_devices(self) -> bool:
        """Whether some of them belong to this process."""
        return self.is_fully_addressable

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all of them belong to this process."""
        return self.device.process_index == self.device.client.process_index()

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict:
        """For each device, the part of an array of this shape that it holds."""
        return {self.device: (slice(None),) * len(global_shape)}

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> dict:
        """The same for this process's devices."""
        return self.devices_indices_map(global_shape) if self.is_fully_addressable else {}

    def check_compatible_aval(self, shape: tuple[int, ...]) -> None:
        """An array of any shape can lie so."""

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the part that a device holds."""
        return tuple(global_shape)

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether arrays of rank `ndim` lie alike under both."""
        return self is other or (
            isinstance(other, _jax.Sharding)
            and other.num_devices == 1
            and other._device_assignment == self._device_assignment
            and other.memory_kind == self.memory_kind
        )

    def _tiles(self, ndim: int) -> tuple[tuple[int, ...], np.ndarray]:
        return (1,) * ndim, np.zeros((1, ndim), int)

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """The same device, another of its memories."""
        return SingleDeviceSharding(self.device, memory_kind=kind)

    @property
    def _device_assignment(self) -> tuple:
        return (self.device,)

    @property
    def _internal_device_list(self) -> Any:
        return device_list(self.device)

    is_fully_replicated = True

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return _hlo.HloSharding.replicate()

    def __reduce__(self) -> tuple:
        return single_device_sharding_of, (self.device.id, self.memory_kind)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device!r}, memory_kind={self.memory_kind})"


def make_single_device_sharding(
    device: Any, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """The sharding that puts an array whole on `device`."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


def single_device_sharding_of(device_id: int, memory_kind: str | None) -> SingleDeviceSharding:
    """The sharding on the device with this id, for unpickling."""
    device = next(d for d in all_devices() if d.id == device_id)
    return SingleDeviceSharding(device, memory_kind=memory_kind)


@functools.cache
def device_list(*devices: Any) -> Any:
    """A list of devices as the engine wants it."""
    return _jax.DeviceList(devices)


@functools.cache
def sharding_on(device: Any) -> SingleDeviceSharding:
    """The sharding that puts an array whole on `device`."""
    return SingleDeviceSharding(device)
