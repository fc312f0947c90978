"""Programs that the disk knows before they are lowered.

A process that finds its executable on disk does not need passes and text. So the disk has notes as
well, which executable a description stands for. The description of a jaxpr is
passes/describe.py's, the notes are xla/compile.py's; here is what else may change the text. See
docs/design/028-known-programs.md.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft import cpu
from weft.core.jaxpr import Jaxpr
from weft.mesh.blocks import FOLDER, find_library
from weft.mesh.client import platform_of
from weft.options import OPTIONS, config, mesh_in_scope
from weft.passes.describe import FOLDERS, describe_jaxpr
from weft.util import IMPORTED
from weft.watch import events
from weft.xla.compile import load_described
from weft.xla.diskcache import cache_key
from weft.xla.placement import Placement

ROOT = Path(__file__).parents[1]
SOURCES = ".py", ".so", ".pyd", ".dylib"
MARGIN = 1.0  # seconds: times of files may be wrong by less


def find_known(
    jaxpr: Jaxpr, consts: Sequence[Any], placement: Placement, name: str, *settings: Any
) -> tuple[str | None, Any]:
    """Return the description of a program, and its executable if memory or the disk has it.

    Either may be None. `consts` are the values of the constvars.
    """
    start = time.perf_counter()
    described = describe_program(jaxpr, consts, placement, name, *settings)
    if described is None:
        return None, None
    seconds = time.perf_counter() - start
    loaded = load_described(described, placement.devices, name)
    if loaded is not None:
        events.record_work(events.LOWER, seconds, fun_name=f"jit({name})")
    return described, loaded


def describe_program(
    jaxpr: Jaxpr, consts: Sequence[Any], placement: Placement, *settings: Any
) -> str | None:
    """Return what decides the text of a program for one device of the CPU; None for others.

    It has the jaxpr, `settings`, all options, and the versions and the sources that write the text.
    """
    device, sources = placement.devices[0], describe_sources()
    if sources is None or device is None or platform_of(device) != "cpu":
        return None
    if placement.partitioned or placement.platform or mesh_in_scope.value is not None:
        return None
    looks = config.dump or config.enable_checks or config.locate_operations
    if looks or not config.enable_compilation_cache:
        return None
    found = describe_jaxpr(jaxpr, consts, *settings)
    options = [getattr(config, option.name) for option in OPTIONS]
    around = options, cpu.kernels.are_kernels_wanted(), device.client.device_count()
    return found and f"{found}\n{around!r}\n{sources}"


@functools.cache
def describe_sources() -> str | None:
    """Return a digest of the state of the files that programs are compiled by, and of versions.

    None if they are not files, or if one has changed since this process began: it may run the code
    that was there before.
    """
    library = find_library(FOLDER)
    try:
        found = [(str(library), library.stat())] if library else []
        found += list_sources(ROOT)
    except OSError:
        return None
    if not found or max(max(s.st_mtime, s.st_ctime) for _, s in found) > IMPORTED - MARGIN:
        return None
    rows = sorted(f"{path} {s.st_size} {s.st_mtime_ns} {s.st_ctime_ns}" for path, s in found)
    return cache_key("\n".join([sys.version, np.__version__, *rows]))


def list_sources(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The source files of FOLDERS and of the package itself, with their states."""
    folders = [str(root), *(str(root / name) for name in FOLDERS)]
    for folder in folders:  # which grows
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(SOURCES):
                    yield entry.path, entry.stat()
                elif "." not in name and folder != folders[0] and name != "__pycache__":
                    folders += [entry.path] * entry.is_dir()
