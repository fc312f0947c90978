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
    """Return the clients of all platforms of this process.

    Clients that do not exist yet are made.

    Returns:
      A dict of the clients of jaxlib by the names of their platforms. The default platform is the
      first.

    >>> from weft.extend import backend
    >>> "cpu" in backend.backends()
    True
    """
    return platforms().clients


def get_backend(platform: Any = None) -> Any:
    """Return the client of a platform.

    A client of jaxlib lists devices and compiles programs. `get_backend.cache_clear()` is
    `clear_backends()`.

    Args:
      platform: the name of a platform, such as "cpu". None takes the default platform. A client is
        returned unchanged.

    Returns:
      A client of jaxlib.

    Raises:
      RuntimeError: the platform does not exist in this process.

    >>> from weft.extend import backend
    >>> backend.get_backend("cpu").platform
    'cpu'
    """
    if platform is None:
        return client()
    return devices_of(platform)[0].client if isinstance(platform, str) else platform


def backend_xla_version(platform: str | None = None) -> int | None:
    """Return the version of XLA that the plugin of a platform was built with.

    Args:
      platform: the name of a platform, such as "cpu". None takes the default platform.

    Returns:
      An int, or None if the plugin does not tell its version. The CPU does not.

    Raises:
      RuntimeError: the platform does not exist in this process.

    >>> from weft.extend import backend
    >>> backend.backend_xla_version("cpu") is None
    True
    """
    return getattr(get_backend(platform), "xla_version", None)


def register_backend_factory(
    name: str, factory: Callable[[], Any], *, priority: int = 0, **options: Any
) -> None:
    """Register a function that makes the client of a platform.

    It is for platforms that no installed plugin has. Register the function before a device is used
    for the first time; it is called then. Registered platforms come before all others. If the
    function raises an error, the platform is not used and a warning is logged.

    Args:
      name: the name of the platform.
      factory: a function without arguments that returns a client of jaxlib.
      priority: the registered platform with the highest priority is the default platform. The
        default is 0.
      **options: ignored. They exist for calls that are written for JAX.

    >>> from weft.extend import backend
    >>> def make_client():
    ...     return my_plugin.make_client()
    >>> backend.register_backend_factory("mine", make_client)  # doctest: +SKIP
    """
    FACTORIES[name] = priority, factory


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Register a cache that `clear_backends` empties.

    It is for caches of objects that belong to a client, such as devices and compiled programs.

    Args:
      cache: an object with a method `cache_clear()`, such as a function under `functools.cache`.
      for_what: a description of the cache. It is ignored.

    >>> import functools
    >>> from weft.extend import backend
    >>> @functools.cache
    ... def find_devices(platform):
    ...     return weft.devices(platform)
    >>> backend.register_backend_cache(find_devices, "devices by platform")
    """
    _caches.append(cache)


def clear_backends() -> None:
    """Forget all compiled programs and clients.

    The next use of a device makes new clients, for instance with other options. Arrays and devices
    that exist belong to the old clients, and must not be used any more. Caches that
    `register_backend_cache` registered are emptied too.

    >>> from weft.extend import backend
    >>> backend.clear_backends()  # doctest: +SKIP
    """
    clear_caches()
    forget_clients()
    for cache in _caches:
        cache.cache_clear()


get_backend.cache_clear = clear_backends  # type: ignore[attr-defined]


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Any = None,
    env_options_overrides: Mapping[str, Any] | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Any = None,
) -> Any:
    """Return jaxlib's options for compiling a program, as weft sets them.

    It is for compiling a program with a client, without `weft.jit`.

    Args:
      num_replicas: the number of replicas of the program, an int.
      num_partitions: the number of partitions of each replica, an int. XLA partitions the program
        if it is more than 1.
      device_assignment: the devices or their numbers, of shape (replicas, partitions). One replica
        may be a plain sequence. None leaves the choice to the client.
      env_options_overrides: values of XLA flags by name. None sets none.
      fdo_profile: a profile for feedback-directed optimization, bytes. The default passes no
        profile.
      detailed_logging: ignored. The parameter exists for calls that are written for JAX.
      backend: the name of a platform, or a client. Its flags are the defaults. None takes the
        default platform.

    Returns:
      A CompileOptions of jaxlib.

    Raises:
      RuntimeError: the platform does not exist in this process.

    >>> from weft.extend import backend
    >>> options = backend.get_compile_options(1, 2, device_assignment=[[0, 1]])
    >>> options.num_replicas, options.num_partitions
    (1, 2)
    >>> options.executable_build_options.use_spmd_partitioning
    True
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
