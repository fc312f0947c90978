"""Compiles the kernels in C++ where weft is built, if there is a compiler; else goes without.

`CXX` names the compiler, `CXXFLAGS` adds options for it, and `WEFT_BUILD_NATIVE=0` leaves the
kernels out. The headers are jaxlib's, of the oldest release that weft supports: what is compiled
with them runs on later ones too.
"""

import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FLAGS = ["-std=c++17", "-O3", "-fPIC", "-w"]
if platform.machine().lower() in ("x86_64", "amd64"):  # those without it go without the kernels
    FLAGS.append("-mavx2")
SLOWEST = ("arithmetic", "cumulative", "functions", "sort")  # to compile, which go first


def compile_kernels(folder: Path) -> Path:
    """The library made of the sources in a folder, beside them; raises where that fails."""
    jaxlib = importlib.util.find_spec("jaxlib")
    if jaxlib is None:
        raise OSError("jaxlib is not there, whose headers are needed")
    include = Path(jaxlib.submodule_search_locations[0]) / "include"
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if not compiler:
        raise OSError("there is no C++ compiler")
    more = shlex.split(os.environ.get("CXXFLAGS", ""))
    command = [*shlex.split(compiler), *FLAGS, *more, f"-I{include}"]
    sources = sorted(folder.glob("*.cc"), key=lambda s: (s.stem not in SLOWEST, -s.stat().st_size))
    objects = [source.with_suffix(".o") for source in sources]

    def compile_source(source: Path, made: Path) -> None:
        subprocess.run([*command, "-c", str(source), "-o", str(made)], check=True)

    library = folder / "kernels.so"
    try:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(compile_source, sources, objects))
        undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
        made = [str(o) for o in objects]
        unfinished = str(library) + ".new"
        subprocess.run([*command, "-shared", *undefined, *made, "-o", unfinished], check=True)
        os.replace(unfinished, library)  # who has loaded the old one keeps that
    finally:
        for made in objects:
            made.unlink(missing_ok=True)
    return library


class NativeHook(BuildHookInterface):
    """Adds the library to a wheel, and builds it in place for an editable install."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict) -> None:
        if self.target_name != "wheel" or os.environ.get("WEFT_BUILD_NATIVE") == "0":
            return
        try:
            library = compile_kernels(Path(self.root) / "src" / "weft" / "native")
        except (OSError, subprocess.CalledProcessError) as error:
            self.app.display_warning(f"weft: built without its kernels in C++: {error}")
            return
        build_data["artifacts"].append(f"/{library.relative_to(self.root)}")
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
