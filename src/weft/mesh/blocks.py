"""Memory of dead arrays on CPUs that is kept for new results: its limit, and its release.

XLA frees the memory of an array that dies, and asks the system for memory of each result, page by
page. native/blocks.cc keeps large blocks in between. This file finds the C++ library and sets the
limit. If the library or the system does not support it, nothing is kept.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path

from weft.mesh.threads import list_group_folders
from weft.options import config

FOLDER = Path(os.environ.get("WEFT_KERNELS") or Path(__file__).parents[1] / "native")
SHARE = 8  # the limit is this part of the memory that the process may use: 1 / SHARE
IDLE_SECONDS = 10.0  # after which a block goes back to the system


def find_library(folder: Path) -> Path | None:
    """Return the library of the kernels in C++ in a folder; None where it is not built."""
    try:
        found = [name for name in os.listdir(folder) if name.startswith("kernels.")]
    except OSError:
        return None
    return folder / min(found) if found else None


@functools.cache
def load_library() -> ctypes.CDLL | None:
    """Load the functions that keep blocks; None where the library is missing or not usable."""
    found = find_library(FOLDER)
    if found is None or not sys.platform.startswith("linux"):  # as blocks.cc says
        return None
    try:
        library = ctypes.CDLL(str(found))
        library.weft_keep_blocks.argtypes = (ctypes.c_uint64, ctypes.c_double)
        library.weft_keep_blocks.restype = ctypes.c_bool
        library.weft_count_kept_bytes.restype = ctypes.c_uint64
    except (AttributeError, OSError):  # load_kernels logs the reason
        return None
    return library


def keep_blocks(seconds: float = IDLE_SECONDS) -> bool:
    """Keep freed blocks for reuse, up to `config.kept_memory` bytes.

    Returns:
      True if blocks are kept: the option is not 0, and the system and jaxlib allow it.
    """
    limit = choose_limit()
    library = load_library() if limit or load_library.cache_info().currsize else None
    return library is not None and library.weft_keep_blocks(limit, seconds) and limit > 0


def choose_limit() -> int:
    """Return how many bytes may be kept."""
    if config.kept_memory >= 0:
        return config.kept_memory
    if not sys.platform.startswith("linux"):
        return 0
    return count_usable_bytes() // SHARE


def count_usable_bytes() -> int:
    """Return the least of the machine's memory and the limits of this process and its groups."""
    import resource  # Linux has it, Windows does not

    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            limits.append(soft)
    for folder in list_group_folders("memory"):
        for name in ("memory.max", "memory.high", "memory.limit_in_bytes"):
            try:
                limits.append(int((folder / name).read_text()))
            except (OSError, ValueError):  # there is none, or it is "max"
                continue
    return min(limits)


def count_kept_bytes() -> int:
    """Return how many bytes of arrays that died are kept."""
    library = load_library() if load_library.cache_info().currsize else None
    return library.weft_count_kept_bytes() if library is not None else 0


def free_kept_blocks() -> None:
    """Return all kept blocks to the system."""
    library = load_library() if load_library.cache_info().currsize else None
    if library is not None:
        library.weft_free_kept_blocks()
