"""The kinds of memory a device reaches: `weft.device_put(x, weft.memory.Space.Host)`."""

from __future__ import annotations

import enum

__all__ = ["Space"]


class Space(enum.Enum):
    """Which memory holds an array: the device's own, or the host's, from which it can be fetched.

    Arrays stay over the same devices; `x.sharding.memory_kind` names the memory.
    """

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"
