"""The engine's clients: platforms, devices, and the sharding of an array on one device.

The first use of a device makes the clients; importing weft does not. What plugins there are is
plugins.py's to say, what processes there are parallel/distributed.py's, meshes are parallel/'s.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxlib import _hlo, _jax  # type: ignore[attr-defined]

from weft.mesh.plugins import GPUS, advice, found_plugins, has_hardware, plugin_client
from weft.options import config
from weft.util import Logger

if "jax" in sys.modules and not getattr(sys.modules["jax"], "__weft__", False):
    raise ImportError(
        "weft: jaxlib must belong to one library in a process; got jax imported before weft. "
        "Hint: import only one of them, each in a process of its own."
    )

Device = _jax.Device

logger = Logger("weft.platforms")

# The platforms that are the default where several are there, first; plugins that are not named
# here come before these, CPU after all.
PREFERRED = ("tpu", "cuda", "rocm")


class Together(NamedTuple):
    """How this process belongs to several: see parallel/distributed.py."""

    client: Any  # the engine's connection to the coordinator
    rank: int
    size: int
    local_devices: tuple[int, ...] | None = None  # of the process's accelerators, those it uses
    partition: int | None = None


class Platforms(NamedTuple):
    """The clients by platform, the default one first, and why others could not be made."""

    clients: dict[str, Any]
    failures: dict[str, str]


_making = threading.Lock()
_placing = threading.Lock()
_together: list[Together] = []


def join(together: Together | None) -> None:
    """Say that the clients, which are not made yet, are one process's of several; None: alone."""
    _together[:] = [] if together is None else [together]


def has_clients() -> bool:
    """Whether devices have been used."""
    return made_platforms.cache_info().currsize > 0


def platforms() -> Platforms:
    """The clients, made on first use, by one thread."""
    with _making:
        return made_platforms()


@functools.lru_cache(maxsize=1)
def made_platforms() -> Platforms:
    """The clients of the process: of the platforms asked for, or of all that there are."""
    asked = config.platforms or ""
    names = [n.strip().lower() for n in asked.split(",") if n.strip()]
    clients: dict[str, Any] = {}
    failures: dict[str, str] = {}
    for name in wanted(names):
        try:
            clients[name] = cpu_client() if name == "cpu" else accelerator(name)
        except Exception as error:  # whatever a plugin says, there may be another platform
            failures[name] = str(error).strip().rstrip(".")
    if not clients:
        said = "; ".join(f"{name}: {why}" for name, why in failures.items())
        raise RuntimeError(
            f"weft: the platforms asked for must have devices; got platforms={asked!r} ({said})."
            f"{advice(names[0])}"
        )
    left = "the other platforms" if not names else f"those of {asked!r} that there are"
    for name, why in failures.items():
        logger.warning(
            "weft: platform %s is not used, for its devices could not be had: %s. Going on with "
            "%s: %s.%s", name, why, left, ", ".join(clients), advice(name)
        )  # fmt: skip
    return Platforms(clients, failures)


def wanted(names: Sequence[str]) -> list[str]:
    """The platforms to make clients of, the default first."""
    if names:
        both = {"gpu": [n for n in GPUS if n in found_plugins()] or ["cuda"]}
        return list(dict.fromkeys(n for name in names for n in both.get(name, [name])))
    found = [n for n in found_plugins() if has_hardware(n) is not False]
    for name in PREFERRED:
        if name not in found and has_hardware(name) and name != "tpu":
            logger.warning(
                "weft: this machine seems to have devices of platform %s, and there is no plugin "
                "for them; they are not used.%s", name, advice(name)
            )  # fmt: skip
    order = {n: i for i, n in enumerate(PREFERRED, 1)}
    return [*sorted(found, key=lambda n: order.get(n, 0)), "cpu"]


def cpu_client() -> Any:
    """A client of as many CPU devices as are asked for."""
    count = config.num_cpu_devices
    options: dict[str, Any] = {"asynchronous": True}
    if count is not None and count >= 0:
        options["num_devices"] = count
    for together in _together:
        options |= {
            "distributed_client": together.client,
            "node_id": together.rank,
            "num_nodes": together.size,
            "collectives": cpu_collectives(together),
        }
    return _jax.get_tfrt_cpu_client(**options)


def few_threads(devices: int) -> bool:
    """Whether the engine has fewer than two threads for each of so many CPU devices."""
    given = os.environ.get("NPROC", "")  # what the engine takes the number of cores from
    if given.isdigit():
        return int(given) < 2 * devices
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (cores or 1) < 2 * devices


def cpu_collectives(together: Together) -> Any:
    """What carries values from the CPUs of one process to those of others."""
    kind = config.cpu_collectives_implementation
    if kind == "gloo":
        return _jax.make_gloo_tcp_collectives(together.client)
    if kind == "mpi":
        collectives = _jax.make_mpi_collectives()
        collectives.Init()
        return collectives
    return None


def accelerator(platform: str) -> Any:
    """A client of a platform that has a plugin."""
    plugin = found_plugins().get(platform)
    if plugin is None:
        known = ", ".join(sorted({"cpu", *found_plugins()}))
        raise RuntimeError(f"no installed package has a plugin for it (there are: {known})")
    given: dict[str, Any] = {}
    if platform == "cuda" and config.cuda_visible_devices != "all":
        given["visible_devices"] = [int(i) for i in config.cuda_visible_devices.split(",")]
    joined: dict[str, Any] = {}
    for together in _together:
        joined["distributed_client"] = together.client
        if platform in GPUS:
            given |= {"node_id": together.rank, "num_nodes": together.size}
            if together.local_devices is not None:
                given["visible_devices"] = list(together.local_devices)
            if together.partition is not None:
                given["partition_index"] = together.partition
    return plugin_client(plugin, given, **joined)


def clients() -> tuple:
    """The client of each platform, the default one first."""
    return tuple(platforms().clients.values())


@functools.lru_cache(maxsize=1)
def client() -> Any:
    """The client of the default platform: the first, or the one that `platform_name` says."""
    name = config.platform_name
    return (
        devices_of(name, "weft: platform_name")[0].client
        if name
        else next(iter(platforms().clients.values()))
    )


@functools.lru_cache(maxsize=1)
def all_devices() -> tuple:
    """Every device of the default platform, those of other processes too."""
    return tuple(client().devices())


def default_device() -> Any:
    """Where new arrays go: the option `default_device`, else this process's first device."""
    device = config.default_device
    if device is None:
        return first_device()
    return local_devices_of(devices_of(device))[0] if isinstance(device, str) else device


@functools.lru_cache(maxsize=1)
def first_device() -> Any:
    """The first device of this process on the default platform."""
    return local_devices_of(all_devices())[0]


def local_devices_of(devices: Sequence[Any]) -> list[Any]:
    """Those devices that are this process's."""
    return [d for d in devices if d.process_index == d.client.process_index()]


def platform_of(device: Any) -> str:
    """The platform that programs for a device are written for: `cuda`, where a GPU is that."""
    return device.client._raw_platform


# asked in each call on another platform than the default one; the clients stay
@functools.cache
def devices_of(platform: str, what: str = "device: the platform") -> tuple:
    """The devices of a platform; where there are none, an error that begins with `what`."""
    clients, failures = platforms()
    names = GPUS if platform == "gpu" else (platform,)
    found = next((clients[n] for n in names if n in clients), None)
    found = found or next((c for c in clients.values() if c.platform == platform), None)
    if found is None:
        why = next((f" ({n}: {failures[n]})" for n in names if n in failures), "")
        raise RuntimeError(
            f"{what} must be one of {', '.join(sorted(clients))}; got {platform!r}{why}."
            f"{advice(platform)}"
        )
    return tuple(found.devices())


def pickled_devices(op: str, platform: str, ids: Sequence[int]) -> list[Any]:
    """The devices with these numbers, for unpickling what names them."""
    known = {d.id: d for d in devices_of(platform, f"{op}: the platform of pickled devices")}
    lost = sorted({*ids} - {*known})
    if lost:
        hint = f" Hint: {more_devices(max(lost) + 1)}" if platform == "cpu" else ""
        raise ValueError(
            f"{op}: pickled devices must exist here; got ids {lost}, and {len(known)} "
            f"devices.{hint}"
        )
    return [known[i] for i in ids]


def more_devices(count: int) -> str:
    """How to have so many devices, as the end of a hint."""
    return (
        "on CPU, ask for more before the first use of weft: "
        f"WEFT_NUM_CPU_DEVICES={count} or XLA_FLAGS=--xla_force_host_platform_device_count={count}."
    )


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
        if found is None:
            with _placing:  # another thread must not see it before it is whole
                found = cls._made.get((device, memory_kind))
                if found is None:
                    found = super().__new__(cls)
                    found._make(device, memory_kind)
        return found

    def __init__(self, device: Any, *, memory_kind: str | None = None):
        pass

    def _make(self, device: Any, memory_kind: str | None) -> None:
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
        device = self.device
        return single_device_sharding_of, (device.platform, device.id, self.memory_kind)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device!r}, memory_kind={self.memory_kind})"


def make_single_device_sharding(
    device: Any, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """The sharding that puts an array whole on `device`."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


def single_device_sharding_of(
    platform: str, device_id: int, memory_kind: str | None
) -> SingleDeviceSharding:
    """The sharding on the device with this id, for unpickling."""
    (device,) = pickled_devices("SingleDeviceSharding", platform, [device_id])
    return SingleDeviceSharding(device, memory_kind=memory_kind)


# one for each list of devices that a program runs on, of which there are few
@functools.cache
def device_list(*devices: Any) -> Any:
    """A list of devices as the engine wants it."""
    return _jax.DeviceList(devices)


@functools.cache
def sharding_on(device: Any) -> SingleDeviceSharding:
    """The sharding that puts an array whole on `device`."""
    return SingleDeviceSharding(device)
