"""The names of `jax.extend.backend`, `jax.lib.xla_bridge`: the engine's clients."""

from __future__ import annotations

from typing import Any

from weft.api.devices import default_backend, device_count, devices, process_count, process_index
from weft.api.jit import clear_caches
from weft.mesh.client import client, default_device, devices_of, has_clients, platforms
from weft.util import list_public

__all__ = [
    "backends", "clear_in_memory_compilation_cache", "default_backend", "device_count", "devices",
    "get_backend", "get_default_device", "process_count", "process_index",
]  # fmt: skip
__dir__ = list_public(__name__)

clear_in_memory_compilation_cache = clear_caches
get_default_device = default_device


def backends() -> dict[str, Any]:
    """The clients by platform."""
    return platforms().clients


def get_backend(platform: Any = None) -> Any:
    """The client of a platform, or of the default one."""
    if platform is None:
        return client()
    return devices_of(platform)[0].client if isinstance(platform, str) else platform


def __getattr__(name: str) -> Any:
    if name == "_backends":  # by platform; none where none is made yet
        return backends() if has_clients() else {}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
