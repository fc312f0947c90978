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
    """Return the folder of compiled programs on disk.

    Returns:
      A path; None if the cache is off.

    >>> path = weft.cache.directory()
    >>> path is None or isinstance(path, str)
    True
    """
    return current_cache().directory or None


def stats() -> Stats:
    """Count the entries on disk, and the hits and misses of this process.

    Returns:
      A `Stats` with the attributes `directory`, `problem`, `entries`, `bytes`, `max_bytes`, `hits`
      and `misses`. `problem` says why nothing is kept; it is None if the cache works.

    >>> weft.cache.stats().hits >= 0
    True
    """
    return current_cache().stats()


def clear() -> int:
    """Remove all compiled programs from the disk.

    Programs that a process has loaded still run. Programs that are compiled later are kept again.

    Returns:
      The number of programs that were removed.

    >>> weft.cache.clear()  # doctest: +SKIP
    """
    forget_loaded()
    return current_cache().clear()
