"""jaxlib's clients: the names of `jax.extend.backend`.

To make one for a platform that no installed plugin has, register what makes it before the first use
of a device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxlib import _ifrt_proxy as ifrt_proxy
from jaxlib import _jax

from weft.api.devices import default_backend, device_count, devices, process_count, process_index
from weft.api.jit import clear_caches
from weft.cpu.flags import DEFAULT as CPU_FLAGS
from weft.mesh.client import (
    FACTORIES,
    client,
    default_device,
    devices_of,
    forget_clients,
    has_clients,
    platform_of,
    platforms,
)
from weft.util import list_public
from weft.xla.compile import default_options

__all__ = [
    "backend_xla_version", "backends", "clear_backends", "clear_in_memory_compilation_cache",
    "default_backend", "device_count", "devices", "get_backend", "get_compile_options",
    "get_default_device", "ifrt_proxy", "process_count", "process_index", "register_backend_cache",
    "register_backend_factory",
]  # fmt: skip
__dir__ = list_public(__name__)

clear_in_memory_compilation_cache = clear_caches
get_default_device = default_device
_caches: list[Any] = []


def backends() -> dict[str, Any]:
    """The clients by platform."""
    return platforms().clients


def get_backend(platform: Any = None) -> Any:
    """The client of a platform, or of the default one. `get_backend.cache_clear()` forgets all."""
    if platform is None:
        return client()
    return devices_of(platform)[0].client if isinstance(platform, str) else platform


get_backend.cache_clear = forget_clients  # type: ignore[attr-defined]


def backend_xla_version(platform: str | None = None) -> int | None:
    """The version of XLA in the plugin of a platform; None where it does not say, as on CPU."""
    return getattr(get_backend(platform), "xla_version", None)


def register_backend_factory(
    name: str, factory: Callable[[], Any], *, priority: int = 0, **options: Any
) -> None:
    """Have `factory()` make the client of platform `name`, when a device is first used.

    Registered platforms come before all others; the one with the highest `priority` is the default.
    If the factory raises, the platform is not used, and a warning is logged. `options` are accepted
    for compatibility with JAX.
    """
    FACTORIES[name] = priority, factory


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Have `clear_backends` call `cache.cache_clear()`; `for_what` describes the cache."""
    _caches.append(cache)


def clear_backends() -> None:
    """Forget all programs and clients; the next use of a device makes new ones.

    Arrays and devices that are still there belong to the clients before, and must not be used.
    """
    clear_caches()
    forget_clients()
    for cache in _caches:
        cache.cache_clear()


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Any = None,
    env_options_overrides: Mapping[str, Any] | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Any = None,
) -> Any:
    """jaxlib's options for compiling, as weft sets them for the platform of `backend`.

    `device_assignment` has the numbers of the devices, (replicas, partitions);
    `env_options_overrides` are XLA flags by name. `detailed_logging` changes nothing.
    """
    platform = platform_of(get_backend(backend).devices()[0])
    extra = CPU_FLAGS.extra if platform == "cpu" else ()
    defaults, overrides = default_options(platform, extra)
    options = _jax.CompileOptions.ParseFromString(defaults)
    built = options.executable_build_options
    options.num_replicas = built.num_replicas = num_replicas
    options.num_partitions = built.num_partitions = num_partitions
    built.use_spmd_partitioning = built.use_shardy_partitioner = num_partitions > 1
    options.env_option_overrides = [*overrides, *(env_options_overrides or {}).items()]
    if fdo_profile:
        built.fdo_profile = fdo_profile
    if device_assignment is not None:
        numbers = [[getattr(d, "id", d) for d in row] for row in np.atleast_2d(device_assignment)]
        assignment = _jax.DeviceAssignment.create(np.array(numbers, np.int32))
        options.device_assignment = built.device_assignment = assignment
    return options


def __getattr__(name: str) -> Any:
    if name == "_backends":  # by platform; none where none is made yet
        return backends() if has_clients() else {}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
