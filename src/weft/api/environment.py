"""`print_environment_info`: the facts about an installation that a report of a bug needs."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import opt_einsum
from jaxlib.version import __version__ as jaxlib_version

from weft.api.devices import devices, process_count
from weft.cpu.kernels import load_kernels
from weft.mesh.blocks import FOLDER, choose_limit, load_library
from weft.mesh.threads import count_processors, count_threads
from weft.options import OPTIONS, config
from weft.xla.diskcache import cpu_features, disk_cache

# Variables that affect compilation or execution, besides the variables of weft's options.
VARIABLES = re.compile(r"(WEFT|JAX|XLA|PJRT|CUDA_VISIBLE|TPU|TF_CPP|OMP|OPENBLAS|MKL)_\w+|NPROC")
SECRET = re.compile(r"SECRET|TOKEN|PASSWORD|KEY")
INSTRUCTIONS = ("neon", "asimd", "sve", "avx", "avx2", "fma", "f16c", "avx512f", "avx512dq",
                "avx512bw", "avx512vl", "avx512_bf16", "amx_bf16")  # fmt: skip


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the facts that a report of a bug needs; `weft env` does so in a terminal.

    They are the versions, the devices, the instruction sets and threads of the CPU, whether the
    kernels in C++ are used, the cache on disk, and the options and environment variables that are
    set. Variables that may hold a secret are named without their values.

    Args:
      return_string: True: return the text, and print nothing.

    Returns:
      The text if `return_string` is True, else None.

    >>> print(print_environment_info(return_string=True))  # doctest: +ELLIPSIS
    weft:         ...
    jaxlib:       ...
    """
    text = "\n".join(f"{name + ':':<13} {value}" for name, value in list_facts())
    if return_string:
        return text
    print(text)
    return None


def list_facts() -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each fact."""
    import scipy  # few programs need it

    versions = {
        "weft": sys.modules["weft"].__version__,
        "jaxlib": jaxlib_version,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "ml_dtypes": ml_dtypes.__version__,
        "opt_einsum": opt_einsum.__version__,
        "python": sys.version.replace("\n", " "),
    }
    yield from versions.items()
    yield "platform", platform.platform()
    kinds: dict[str, int] = {}
    for device in devices():
        kinds[device.device_kind] = kinds.get(device.device_kind, 0) + 1
    yield "devices", ", ".join(f"{n} x {kind}" for kind, n in kinds.items())
    yield "processes", str(process_count())
    yield "instructions", list_instructions()
    yield "threads", f"{count_threads()} of {count_processors()} processors that may be used"
    yield "kernels", describe_kernels()
    limit = choose_limit() if load_library() else 0
    yield "memory kept", f"at most {limit / 2**20:.0f} MiB of arrays that died"
    cache = disk_cache(config.compilation_cache_dir).stats()
    size = f"{cache.entries} programs, {cache.bytes / 2**20:.1f} MiB"
    yield "cache", f"off: {cache.problem}" if cache.problem else f"{cache.directory}, {size}"
    changed = {o.name: config.read(o.name) for o in OPTIONS}
    changed = {o.name: changed[o.name] for o in OPTIONS if changed[o.name] != o.default}
    yield "options", ", ".join(f"{name}={value!r}" for name, value in changed.items()) or "defaults"
    for name in sorted(filter(VARIABLES.fullmatch, os.environ)):
        yield name, "(set)" if SECRET.search(name) else os.environ[name]


def describe_kernels() -> str:
    """Return whether the kernels in C++ are used, and where they are, or why not."""
    if not config.native:
        return "off (WEFT_NATIVE)"
    return load_kernels() or f"in use, of {FOLDER}"


def list_instructions() -> str:
    """Return the instruction sets of the CPU that matter to speed."""
    found = {*cpu_features().replace("\n", " ").split()}
    return " ".join(name for name in INSTRUCTIONS if name in found) or platform.machine()
