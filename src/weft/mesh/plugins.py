"""Accelerators: finds and loads the PJRT plugins of installed packages, and makes their clients.

A plugin's own Python module imports jax, so it is not run. Only the library beside it is used, and
the modules of kernels, which import jaxlib at most. client.py chooses the platforms.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jaxlib import _jax
from jaxlib.version import __version__ as jaxlib_version

GPUS = ("cuda", "rocm")
PLATFORMS = ("cpu", *GPUS, "tpu")  # that programs can be written for

# What to install for a platform; the version is jaxlib's.
PACKAGES = {
    "cuda": f'"jax-cuda13-plugin[with-cuda]=={jaxlib_version}"',
    "rocm": f"jax-rocm7-plugin=={jaxlib_version}",
    "tpu": "libtpu",
}

# `re` compiles a pattern at its first use and keeps it, so `import weft` does not.
_LIBRARY = r"(?i)(.*(plugin|pjrt).*|libtpu)\.(so|dylib|dll)"
_NAME = r"(?:xla_)?(.+?)\d*(?:_(?:plugin|pjrt))?"


class Plugin(NamedTuple):
    """The library of a platform, and what brought it."""

    platform: str
    library: str
    origin: str


def find_plugins() -> dict[str, Plugin]:
    """The plugins here, by platform: those that the environment names come before packages'."""
    found: dict[str, Plugin] = {}
    for plugin in (*list_environment_plugins(os.environ), *list_installed_plugins(sys.path)):
        found.setdefault(plugin.platform, plugin)
    return found


def list_environment_plugins(environ: Mapping[str, str]) -> Iterator[Plugin]:
    """List the plugins of PJRT_NAMES_AND_LIBRARY_PATHS and TPU_LIBRARY_PATH."""
    variable = "PJRT_NAMES_AND_LIBRARY_PATHS"
    for item in filter(None, environ.get(variable, "").split(",")):
        name, _, path = item.strip().partition(":")
        if not name or not path:
            raise RuntimeError(
                f"weft: {variable} must be name:path, separated by commas; got {item!r}."
            )
        yield Plugin(name, path, variable)
    path = environ.get("TPU_LIBRARY_PATH", "")
    if path:
        yield Plugin("tpu", path, "TPU_LIBRARY_PATH")


def list_installed_plugins(paths: Sequence[str]) -> Iterator[Plugin]:
    """List the plugins of the packages in these folders, the newest of a kind first.

    A package says that it has one by an entry point of the group `jax_plugins`, or by a module in
    the namespace of that name; libtpu by its own name.
    """
    for path in dict.fromkeys(paths):
        try:  # not by pathlib, which takes twice the time, in the first operation of a process
            names = sorted(os.listdir(path or "."), reverse=True)
        except OSError:  # the folder is missing
            continue
        homes: list[tuple[str, Path]] = []
        if "jax_plugins" in names:
            homes += [(home.name, home) for home in list_subfolders(Path(path, "jax_plugins"))]
        if "libtpu" in names:
            homes.append(("tpu", Path(path, "libtpu")))
        for info in names:
            if info.endswith((".dist-info", ".egg-info")):
                for name, module in read_entry_points(os.path.join(path, info)):
                    home = Path(path, *module.split("."))
                    homes.append((name, home if home.is_dir() else home.parent))
        for name, home in {h: (n, h) for n, h in homes}.values():
            files = sorted(home.iterdir()) if home.is_dir() else []
            library = next((f for f in files if re.fullmatch(_LIBRARY, f.name)), None)
            if library is not None:
                yield Plugin(platform_of_module(name), str(library), str(home))


def list_subfolders(path: Path) -> list[Path]:
    """Return the folders in `path`, the last name first; [] if it is a file."""
    if not path.is_dir():
        return []
    with os.scandir(path) as entries:
        names = [e.name for e in entries if e.is_dir()]
    return [path / name for name in sorted(names, reverse=True)]


def read_entry_points(info: str) -> Iterator[tuple[str, str]]:
    """(name, module) of the entry points of the group `jax_plugins` that a distribution has.

    importlib.metadata would say it too, after an import of a tenth of a second.
    """
    try:
        with open(os.path.join(info, "entry_points.txt"), "rb", buffering=0) as file:
            data = file.read()
    except OSError:
        return
    if b"jax_plugins" in data:
        group = ""
        for line in map(str.strip, data.decode("utf-8", "replace").splitlines()):
            if line.startswith("["):
                group = line.strip("[] ")
            elif group == "jax_plugins" and "=" in line:
                name, _, value = line.partition("=")
                yield name.strip(), value.partition(":")[0].strip()


def platform_of_module(module: str) -> str:
    """The platform whose plugin a module is: cuda of xla_cuda13."""
    match = re.fullmatch(_NAME, module)
    return match[1] if match else module


def has_hardware(platform: str) -> bool | None:
    """Return True if the machine has such devices, as far as files tell; None where they don't."""
    signs = {
        "cuda": ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"),
        "rocm": ("/dev/kfd",),
        "tpu": ("/dev/accel0", "/dev/vfio/0"),
    }
    if platform not in signs or not sys.platform.startswith("linux"):
        return None
    return any(map(os.path.exists, signs[platform]))


# --- clients --------------------------------------------------------------------------------


def make_plugin_client(plugin: Plugin, given: Mapping[str, Any], **processes: Any) -> Any:
    """Make the client of a plugin, with options `given` and options of a process group."""
    load_plugin(plugin)
    options = {**(make_gpu_options(plugin.platform) if plugin.platform in GPUS else {}), **given}
    return _jax.get_c_api_client(plugin.platform, options, **processes)


@functools.cache
def load_plugin(plugin: Plugin) -> Any:
    """Load a plugin's library, make its kernels and its profiler known; gives jaxlib's handle."""
    from jaxlib import _profiler  # type: ignore[attr-defined]

    if not os.path.exists(plugin.library):
        raise RuntimeError(f"there is no library {plugin.library}, which {plugin.origin} names")
    c_api = _jax.load_pjrt_plugin(plugin.platform, plugin.library)
    _profiler.register_plugin_profiler(c_api)  # or profiles have nothing of what its devices run
    _jax.initialize_pjrt_plugin(plugin.platform)
    if plugin.platform in GPUS:
        register_kernels(plugin, c_api)
    return c_api


def make_gpu_options(platform: str) -> dict[str, Any]:
    """Return the options of a GPU's memory, from XLA_PYTHON_CLIENT_PREALLOCATE and so on."""
    from jaxlib import xla_client

    return {**xla_client.generate_pjrt_gpu_plugin_options(), "platform_name": platform}


# The modules of a GPU's package of kernels that hold what our programs call.
KERNELS = ("_solver", "_linalg", "_prng", "_hybrid", "_sparse")


def register_kernels(plugin: Plugin, c_api: Any) -> None:
    """Make the kernels known that a GPU's package of them has; without it, programs do without."""
    extension = import_kernels(plugin, f"{plugin.platform}_plugin_extension")
    if extension is None:
        return
    platform = {"cuda": "CUDA", "rocm": "ROCM"}[plugin.platform]
    for name, kernel in extension.ffi_types().items():
        extension.register_custom_type(c_api, name, kernel)
    kernels = dict(extension.ffi_handlers())
    for name in KERNELS:
        module = import_kernels(plugin, name)
        if module is not None:
            if name == "_hybrid":  # calls functions of LAPACK, which it takes from SciPy
                module.initialize()
            kernels.update(module.registrations())
    for name, kernel in kernels.items():
        extension.register_custom_call_target(c_api, name, kernel, platform, 1)
    _REGISTRIES[plugin.platform] = extension, c_api
    for register in _WAITING.pop(plugin.platform, ()):
        register(extension, c_api)


# What users register for a GPU before its plugin is loaded waits for that.
_REGISTRIES: dict[str, tuple[Any, Any]] = {}
_WAITING: dict[str, list[Callable[[Any, Any], None]]] = {}


def register_on_gpu(platform: str, register: Callable[[Any, Any], None]) -> None:
    """Call `register(extension, c_api)` with what a GPU's plugin takes kernels by, once loaded."""
    if platform in _REGISTRIES:
        register(*_REGISTRIES[platform])
    else:
        _WAITING.setdefault(platform, []).append(register)


def import_kernels(plugin: Plugin, name: str) -> Any:
    """A module of the package of kernels that goes with a plugin; None where it is not here."""
    package = Path(plugin.library).parent.name.replace("xla_", "jax_") + "_plugin"
    try:
        return importlib.import_module(f"{package}.{name}")
    except ImportError:
        return None


@functools.cache
def find_cuda_tools() -> str | None:
    """The folder with CUDA's own tools (ptxas, libdevice) where a package brought them."""
    for path in map(Path, sys.path):
        for place in ("nvidia/cu13", "nvidia/cuda_nvcc"):
            if (path / place / "nvvm").is_dir() or (path / place / "bin" / "ptxas").exists():
                return str(path / place)
    return None


def install_hint(platform: str) -> str:
    """Return the advice how to have a platform, as the end of an error; "" for unknown ones."""
    name = "cuda" if platform == "gpu" else platform
    if name in find_plugins() and name == "cuda":
        return " Hint: nvidia-smi shows what GPUs there are; WEFT_PLATFORMS=cpu does without."
    return f" Hint: pip install {PACKAGES[name]}." if name in PACKAGES else ""
