"""The names of `jax.experimental.compilation_cache.compilation_cache`: where programs are kept."""

from __future__ import annotations

from weft.options import config
from weft.util import list_public

__all__ = ["is_initialized", "reset_cache", "set_cache_dir"]
__dir__ = list_public(__name__)


def set_cache_dir(path: str) -> None:
    """Keep compiled programs in a directory."""
    config.update("compilation_cache_dir", str(path))


def is_initialized() -> bool:
    """Whether compiled programs are kept; they are, unless that was turned off."""
    return config.enable_compilation_cache


def reset_cache() -> None:
    """Nothing: the directory is read and written anew each time."""
