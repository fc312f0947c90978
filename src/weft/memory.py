"""The kinds of memory a device reaches: `weft.device_put(x, weft.memory.Space.Host)`."""

from weft.mesh.client import Space

__all__ = ["Space"]
