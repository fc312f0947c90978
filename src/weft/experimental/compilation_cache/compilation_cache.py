"""The directory of compiled programs, under JAX's names; docs/cache.md describes its contents."""

from __future__ import annotations

import os

from weft.options import config
from weft.util import list_public

__all__ = ["is_initialized", "reset_cache", "set_cache_dir"]
__dir__ = list_public(__name__)


def set_cache_dir(path: str | os.PathLike) -> None:
    """Keep compiled programs in a directory, as `config.compilation_cache_dir` says."""
    config.update("compilation_cache_dir", os.fspath(path))


def is_initialized() -> bool:
    """Return True if compiled programs are kept; they are, unless that was turned off."""
    return config.enable_compilation_cache


def reset_cache() -> None:
    """Store programs in the default directory again; stored programs are not lost."""
    config.update("compilation_cache_dir", None)
