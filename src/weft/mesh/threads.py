"""The number of threads that this process computes with on CPUs.

XLA's pool, which the kernels in C++ use too, takes its size from the variable NPROC when the first
device is used. The libraries of BLAS have pools of their own.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from weft.options import config

# Read by the libraries of BLAS when they are loaded, as SciPy's is after the first device is used.
BLAS_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
# The functions of OpenBLAS that set its number of threads, as NumPy's and SciPy's wheels name them.
_SETTERS = tuple(
    f"{prefix}openblas_set_num_threads{suffix}"
    for prefix in ("scipy_", "")
    for suffix in ("64_", "")
)


def limit_threads() -> None:
    """Limit the threads of libraries to `config.num_threads`, before XLA's pool is made.

    If the option is -1, the limit is the CPU quota of the process's cgroup, as in a container. XLA
    itself counts the processors that it may run on and does not see the quota.
    """
    count = config.num_threads
    if count > 0:
        os.environ["NPROC"] = str(count)
        limit_blas(count)
    elif "NPROC" not in os.environ:
        quota = read_quota()
        if quota is not None and quota < count_processors():
            os.environ["NPROC"] = str(quota)


def count_threads() -> int:
    """Return the size of XLA's pool of threads, before or after it is made."""
    given = os.environ.get("NPROC", "")
    return int(given) if given.isdigit() and int(given) else count_processors()


def count_processors() -> int:
    """Return the number of processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def read_quota(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> int | None:
    """Return the CPU quota of this cgroup in processors, rounded up; None if there is none.

    The smallest limit of the group and of all groups around it counts.
    """
    limits = [n for folder in list_group_folders("cpu", root, own) for n in read_limit(folder)]
    return max(1, min(limits)) if limits else None


def list_group_folders(
    kind: str, root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> list[Path]:
    """Return the folders of the cgroups of this process that limit `kind`, such as "memory".

    They belong to the group that the process is in and to all groups around it.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return []
    found: list[Path] = []
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if kinds and kind not in kinds.split(","):
            continue
        top = root / kind if kinds else root
        group = top / path.lstrip("/")
        for folder in (group, *group.parents):
            if folder == root.parent:
                break
            found.append(folder)
    return found


def read_limit(folder: Path) -> list[int]:
    """Return the limit that a folder of a group sets, in either version's form; [] if none."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota, period = (
                (folder / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period")
            )
        numbers = float(quota), float(period)
    except (OSError, ValueError):  # there is none, or it is "max"
        return []
    return [-int(-numbers[0] // numbers[1])] if numbers[0] > 0 else []


def limit_blas(count: int) -> None:
    """Set the number of threads of BLAS: by variables, and in libraries that are loaded already."""
    for name in BLAS_VARIABLES:
        os.environ.setdefault(name, str(count))
    for package in ("numpy", "scipy"):
        if package in sys.modules:
            home = Path(sys.modules[package].__path__[0])
            for folder in (home.with_name(f"{package}.libs"), home / ".dylibs"):
                for library in folder.glob("*openblas*"):
                    set_blas_threads(library, count)


def set_blas_threads(library: Path, count: int) -> None:
    """Set the number of threads of a library of OpenBLAS."""
    try:
        loaded = ctypes.CDLL(str(library))
    except OSError:
        return
    for name in _SETTERS:
        if hasattr(loaded, name):
            getattr(loaded, name)(ctypes.c_int(count))
            return
