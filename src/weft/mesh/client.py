"""jaxlib's clients: the platforms of this process and their devices.

The first use of a device makes the clients; importing weft does not. plugins.py finds the plugins,
parallel/distributed.py joins several processes.
"""

from __future__ import annotations

import copyreg
import enum
import functools
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any, NamedTuple, cast

from jaxlib import _jax

from weft.mesh.blocks import keep_blocks
from weft.mesh.plugins import GPUS, find_plugins, has_hardware, install_hint, make_plugin_client
from weft.mesh.threads import count_threads, limit_threads
from weft.options import HELD, config
from weft.util import Logger

# --- one library in a process ---------------------------------------------------------------

ONE_LIBRARY = (
    "weft: jaxlib must belong to one library in a process; got jax imported {} weft. "
    "Hint: import only one of them, each in a process of its own."
)


class JaxFinder:
    """Finds JAX where it is installed, and refuses to import it: its classes would be jaxlib's.

    jaxlib imports it too, to make an array of a part or of a copy, and does without where it is
    not found; it is told so at once, as looking through the folders of packages takes 300 us.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """A spec that says that JAX is here, if it is."""
        if name != "jax":
            return None
        frame: Any = sys._getframe()
        while frame is not None and frame.f_code.co_filename in (__file__, *IMPORTLIB):
            frame = frame.f_back
        if frame is not None and frame.f_globals.get("__name__", "").startswith("weft."):
            raise ModuleNotFoundError("jax: is nothing that weft imports", name=name)
        return ModuleSpec(name, cast(Any, self)) if PathFinder.find_spec(name, path) else None

    def create_module(self, spec: Any) -> None:
        """Leave that to Python."""

    def exec_module(self, module: Any) -> None:
        """Raise ImportError."""
        raise ImportError(ONE_LIBRARY.format("after"))


IMPORTLIB = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")

if "jax" in sys.modules and not getattr(sys.modules["jax"], "__weft__", False):
    raise ImportError(ONE_LIBRARY.format("before"))
sys.meta_path.insert(0, cast(Any, JaxFinder()))


Device = _jax.Device

logger = Logger("weft.platforms")

# The platforms that are the default where several are there, first; plugins that are not named
# here come before these, CPU after all.
PREFERRED = ("tpu", "cuda", "rocm")


class Space(enum.Enum):
    """The memory that holds an array.

    `device_put` takes a member. The array stays over the same devices. `x.sharding.memory_kind` is
    the name of its memory.

    Attributes:
      Device: the memory of the device.
      Host: the memory of the host; the device can fetch the array from there.
      Any: either of them.

    >>> x = weft.device_put(jnp.ones(2), weft.memory.Space.Host)
    >>> x.sharding.memory_kind
    'pinned_host'
    """

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


class ProcessGroup(NamedTuple):
    """The place of this process among several; see parallel/distributed.py."""

    client: Any  # jaxlib's connection to the coordinator
    rank: int
    size: int
    # Of its accelerators, the numbers of those it uses.
    local_devices: tuple[int, ...] | None = None
    partition: int | None = None
    name_lost: Callable[[Exception], Exception | None] = lambda error: None


class Platforms(NamedTuple):
    """The clients by platform, the default one first, and why others could not be made."""

    clients: dict[str, Any]
    failures: dict[str, str]


_making = threading.Lock()
# The priority of a platform and the function that makes its client, as registered by users.
FACTORIES: dict[str, tuple[int, Callable[[], Any]]] = {}
_process_group: list[ProcessGroup] = []


def set_process_group(group: ProcessGroup | None) -> None:
    """Set the process group of the clients, before they are made. None: this process only."""
    _process_group[:] = [] if group is None else [group]


def name_lost_processes(error: Exception) -> Exception | None:
    """Return an error that names the lost processes, if `error` of jaxlib is caused by them."""
    return next((group.name_lost(error) for group in _process_group), None)


def has_clients() -> bool:
    """Return True if devices have been used."""
    return make_clients.cache_info().currsize > 0


def platforms() -> Platforms:
    """The clients, made on first use, by one thread."""
    with _making:
        return make_clients()


@functools.lru_cache(maxsize=1)
def make_clients() -> Platforms:
    """The clients of the process: of the platforms that the option names, or of all that exist."""
    asked = config.platforms or ""
    names = [n.strip().lower() for n in asked.split(",") if n.strip()]
    clients: dict[str, Any] = {}
    failures: dict[str, str] = {}
    for name in choose_platforms(names):
        try:
            clients[name] = make_client(name)
        except Exception as error:  # whatever a plugin says, there may be another platform
            failures[name] = str(error).strip().rstrip(".")
    if not clients:
        said = "; ".join(f"{name}: {why}" for name, why in failures.items())
        raise RuntimeError(
            f"weft: the platforms asked for must have devices; got platforms={asked!r} ({said})."
            f"{install_hint(names[0])}"
        )
    left = "the other platforms" if not names else f"those of {asked!r} that there are"
    for name, why in failures.items():
        logger.warning(
            "weft: platform %s is not used, for its devices could not be had: %s. Going on with "
            "%s: %s.%s", name, why, left, ", ".join(clients), install_hint(name)
        )  # fmt: skip
    return Platforms(clients, failures)


def make_client(platform: str) -> Any:
    """A client of a platform."""
    if platform in FACTORIES:
        return FACTORIES[platform][1]()
    return make_cpu_client() if platform == "cpu" else make_accelerator_client(platform)


def forget_clients() -> None:
    """Have the clients made again when a device is used; arrays stay with those there were."""
    with _making:
        for kept in (make_clients, client, all_devices, first_device, devices_of, *HELD):
            kept.cache_clear()


def choose_platforms(names: Sequence[str]) -> list[str]:
    """The platforms to make clients of, the default first."""
    if names:
        both = {"gpu": [n for n in GPUS if n in find_plugins()] or ["cuda"]}
        return list(dict.fromkeys(n for name in names for n in both.get(name, [name])))
    found = [n for n in find_plugins() if has_hardware(n) is not False]
    for name in PREFERRED:
        if name not in found and has_hardware(name) and name != "tpu":
            logger.warning(
                "weft: this machine seems to have devices of platform %s, and there is no plugin "
                "for them; they are not used.%s", name, install_hint(name)
            )  # fmt: skip
    order = {n: i for i, n in enumerate(PREFERRED, 1)}
    given = sorted(FACTORIES, key=lambda n: -FACTORIES[n][0])
    return list(dict.fromkeys([*given, *sorted(found, key=lambda n: order.get(n, 0)), "cpu"]))


def make_cpu_client() -> Any:
    """Make a client with the number of CPU devices that the options say."""
    limit_threads()
    keep_blocks()
    count = config.num_cpu_devices
    options: dict[str, Any] = {"asynchronous": config.cpu_enable_async_dispatch}
    if count is not None and count >= 0:
        options["num_devices"] = count
    for group in _process_group:
        options |= {
            "distributed_client": group.client,
            "node_id": group.rank,
            "num_nodes": group.size,
            "collectives": make_cpu_collectives(group),
        }
    return _jax.get_tfrt_cpu_client(**options)


def has_few_threads(devices: int) -> bool:
    """Return True if jaxlib has fewer than two threads for each of this many CPU devices."""
    return count_threads() < 2 * devices


def make_cpu_collectives(group: ProcessGroup) -> Any:
    """Return the library for collectives between the CPUs of different processes."""
    kind = config.cpu_collectives_implementation
    if kind == "gloo":
        return _jax.make_gloo_tcp_collectives(group.client)
    if kind == "mpi":
        collectives = _jax.make_mpi_collectives()
        collectives.Init()
        return collectives
    return None


def make_accelerator_client(platform: str) -> Any:
    """A client of a platform that has a plugin."""
    plugin = find_plugins().get(platform)
    if plugin is None:
        known = ", ".join(sorted({"cpu", *find_plugins()}))
        raise RuntimeError(f"no installed package has a plugin for it (there are: {known})")
    given: dict[str, Any] = {}
    if platform == "cuda" and config.cuda_visible_devices != "all":
        given["visible_devices"] = [int(i) for i in config.cuda_visible_devices.split(",")]
    joined: dict[str, Any] = {}
    for group in _process_group:
        joined["distributed_client"] = group.client
        if platform in GPUS:
            given |= {"node_id": group.rank, "num_nodes": group.size}
            if group.local_devices is not None:
                given["visible_devices"] = list(group.local_devices)
            if group.partition is not None:
                given["partition_index"] = group.partition
    return make_plugin_client(plugin, given, **joined)


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
    """Return every device of the default platform, including devices of other processes."""
    return tuple(client().devices())


def default_device() -> Any:
    """Return the device on which new arrays are placed.

    It is the device of `config.default_device` if that is set. Otherwise it is the first device of
    this process on the default platform. If the option names a platform, it is the first device of
    that platform.

    Returns:
      A device, as in `weft.devices()`.

    >>> from weft.extend import backend
    >>> backend.get_default_device() == weft.local_devices()[0]
    True
    """
    device = config.default_device
    if device is None:
        return first_device()
    return local_devices_of(devices_of(device))[0] if isinstance(device, str) else device


@functools.lru_cache(maxsize=1)
def first_device() -> Any:
    """The first device of this process on the default platform."""
    return local_devices_of(all_devices())[0]


def local_devices_of(devices: Sequence[Any]) -> list[Any]:
    """Return the devices that belong to this process."""
    return [d for d in devices if d.process_index == d.client.process_index()]


def platform_of(device: Any) -> str:
    """The platform that programs for a device are written for: `cuda`, where a GPU is that."""
    return device.client._raw_platform


# called for each call on another platform than the default one; the clients do not change
@functools.cache
def devices_of(platform: str, what: str = "device: the platform") -> tuple:
    """The devices of a platform; where there are none, an error that begins with `what`."""
    clients, failures = platforms()
    names = GPUS if platform == "gpu" else (platform,)
    found = next((clients[n] for n in names if n in clients), None)
    found = found or next((c for c in clients.values() if c.platform == platform), None)
    if found is None:
        why = next((f" ({n}: {failures[n]})" for n in names if n in failures), " (Unknown backend)")
        raise RuntimeError(
            f"{what} must be one of {', '.join(sorted(clients))}; got {platform!r}{why}."
            f"{install_hint(platform)}"
        )
    return tuple(found.devices())


def restore_device(platform: str, number: int) -> Any:
    """Return the device of a platform with a number, to unpickle it."""
    return find_devices("pickle", platform, [number])[0]


copyreg.pickle(_jax.Device, lambda d: (restore_device, (d.platform, d.id)))


def find_devices(op: str, platform: str, ids: Sequence[int]) -> list[Any]:
    """The devices with these numbers, for unpickling what names them."""
    known = {d.id: d for d in devices_of(platform, f"{op}: the platform of pickled devices")}
    lost = sorted({*ids} - {*known})
    if lost:
        hint = f" Hint: {more_devices_hint(max(lost) + 1)}" if platform == "cpu" else ""
        raise ValueError(
            f"{op}: pickled devices must exist here; got ids {lost}, and {len(known)} "
            f"devices.{hint}"
        )
    return [known[i] for i in ids]


def more_devices_hint(count: int) -> str:
    """Return the advice how to have this many devices, as the end of a hint."""
    return (
        "on CPU, ask for more before the first use of weft: "
        f"WEFT_NUM_CPU_DEVICES={count} or XLA_FLAGS=--xla_force_host_platform_device_count={count}."
    )


def resolve_memory_kind(op: str, device: Any, memory_kind: str | None) -> str:
    """The kind of memory that is meant: the device's default one where none is named."""
    kinds = [memory.kind for memory in device.addressable_memories()]
    if memory_kind not in (None, *kinds):
        raise ValueError(
            f"{op}: memory_kind must be one of {', '.join(kinds)}; got {memory_kind!r}."
        )
    return memory_kind or device.default_memory().kind


# Programs run on few lists of devices, so each list is made once.
@functools.cache
def device_list(*devices: Any) -> Any:
    """A list of devices as jaxlib wants it."""
    return _jax.DeviceList(devices)
