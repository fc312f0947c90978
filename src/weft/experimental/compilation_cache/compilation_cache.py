"""The directory of compiled programs, under JAX's names; docs/cache.md describes its contents."""

from __future__ import annotations

import os

from weft.options import config
from weft.util import list_public

__all__ = ["is_initialized", "reset_cache", "set_cache_dir"]
__dir__ = list_public(__name__)


def set_cache_dir(path: str | os.PathLike) -> None:
    """Store compiled programs in a directory, from now on in this process.

    It sets `config.compilation_cache_dir`.

    Args:
      path: the directory, a str or a path.

    >>> before = weft.config.compilation_cache_dir
    >>> set_cache_dir("programs")
    >>> weft.config.compilation_cache_dir
    'programs'
    >>> weft.config.update("compilation_cache_dir", before)
    """
    config.update("compilation_cache_dir", os.fspath(path))


def is_initialized() -> bool:
    """Return True if compiled programs are stored on disk.

    They are stored, unless `config.enable_compilation_cache` was set to False.

    Returns:
      A bool.

    >>> is_initialized() == weft.config.enable_compilation_cache
    True
    """
    return config.enable_compilation_cache


def reset_cache() -> None:
    """Store compiled programs in the default directory again.

    It sets `config.compilation_cache_dir` to None. Programs that are stored in another directory
    are not deleted.

    >>> before = weft.config.compilation_cache_dir
    >>> reset_cache()
    >>> print(weft.config.compilation_cache_dir)
    None
    >>> weft.config.update("compilation_cache_dir", before)
    """
    config.update("compilation_cache_dir", None)
