"""The cache of compiled programs on disk: its directory, its statistics, clearing it.

`weft cache` does the same in a terminal. The cache itself is `weft/xla/diskcache.py`.
"""

from weft.options import config
from weft.util import list_public
from weft.xla.compile import forget_loaded
from weft.xla.diskcache import DiskCache, Stats, disk_cache

__all__ = ["clear", "directory", "stats"]
__dir__ = list_public(__name__)


def current_cache() -> DiskCache:
    """Return the cache that `config` and the environment ask for now."""
    return disk_cache(config.compilation_cache_dir)


def directory() -> str | None:
    """Return where compiled programs are kept; None if the cache is off."""
    return current_cache().directory or None


def stats() -> Stats:
    """Count what is kept on disk, and what this process found there (`hits`, `misses`).

    `problem` says why nothing is kept, where that is so.
    """
    return current_cache().stats()


def clear() -> int:
    """Remove all compiled programs kept on disk and return how many there were.

    What this or another process has loaded goes on working; what is compiled anew is kept again.
    """
    forget_loaded()
    return current_cache().clear()
