"""The release of JAX whose interface weft has: the one place that names it."""

__all__ = ["__version__", "__version_info__"]

__version__ = "0.10.2"
__version_info__ = tuple(map(int, __version__.split(".")))
