"""Compile the kernels in C++ when weft is built. Without a compiler, weft is built without them.

`CXX` names the compiler and `CXXFLAGS` adds options. `WEFT_BUILD` says how:

- `quick`: with -O1 and without the loops for AVX-512, for developers: the kernels run slower;
- `none`: no kernels, which makes a wheel for every platform;
- a platform of PLATFORMS: kernels for that platform, by the Clang of the package `ziglang`.

The headers are jaxlib's, of the oldest release that weft supports: a library that is compiled with
them runs on later releases too. `python hatch_build.py` compiles in place and shows its progress.
"""

import hashlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
OBJECTS = ROOT / "build" / "kernels"  # by a digest of what they are made from
MAX_DAYS = 7  # after which an object that no build used is removed

# Fuse products and sums, as GCC does in C++ by default. Kernels are faster and more exact by it;
# Clang would do so only within an expression.
FLAGS = ("-std=c++17", "-fPIC", "-w", "-ffp-contract=fast")
X86_64 = ("x86_64", "amd64")
EXPORTS = "{ global: weft_*; local: *; };"  # other names could be those of another library
OPTIMIZED, QUICK = ("-O3",), ("-O1", "-DWEFT_AVX2_ONLY")
AVX2 = "-mavx2"  # a processor without AVX2 runs without the kernels
SLOWEST = ("arithmetic", "cumulative", "functions", "sort")  # to compile, which go first

# The target that Zig knows a platform of a wheel by.
PLATFORMS = {
    "manylinux_2_17_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu.2.17",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
    "win_amd64": "x86_64-windows-gnu",
}


class Build(NamedTuple):
    """How to compile for a platform, and the name of the library there."""

    compiler: tuple[str, ...]
    options: tuple[str, ...]
    link: tuple[str, ...]
    library: str
    platform: str


def choose_build(mode: str) -> Build:
    """Return the commands for this platform, or for the one that `mode` names."""
    if mode in PLATFORMS:
        zig = (sys.executable, "-m", "ziglang", "c++", "-target", PLATFORMS[mode])
        avx2 = (AVX2,) * mode.endswith(X86_64)
        library = "kernels.dll" if mode.startswith("win") else "kernels.so"
        return Build(zig, (*FLAGS, *avx2), ("-s",), library, mode)
    if mode not in ("", "quick"):
        known = ", ".join(["quick", "none", *PLATFORMS])
        raise ValueError(f"WEFT_BUILD must be one of {known}; got {mode!r}.")
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if not compiler:
        raise OSError("there is no C++ compiler")
    avx2 = (AVX2,) * (platform.machine().lower() in X86_64)
    library = "kernels.dll" if sys.platform == "win32" else "kernels.so"
    here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return Build(tuple(shlex.split(compiler)), (*FLAGS, *avx2), (), library, here)


def find_headers() -> Path:
    """Return the folder of jaxlib's headers."""
    jaxlib = importlib.util.find_spec("jaxlib")
    if jaxlib is None:
        raise OSError("jaxlib is not there, whose headers are needed")
    return Path(jaxlib.submodule_search_locations[0]) / "include"


def compile_kernels(folder: Path, mode: str | None = None, into: Path | None = None) -> Path:
    """Compile the sources in `folder`, and return the library, in `into` or beside them.

    A source is compiled again only if it, a header, the command or the compiler has changed.

    Raises:
      OSError: there is no compiler, or no jaxlib.
      subprocess.CalledProcessError: the compiler fails.
    """
    mode = os.environ.get("WEFT_BUILD", "") if mode is None else mode
    build = choose_build(mode)
    started = time.monotonic()
    sources = sorted(folder.glob("*.cc"), key=lambda s: (s.stem not in SLOWEST, -s.stat().st_size))
    include = find_headers()
    version = subprocess.run([*build.compiler, "--version"], capture_output=True).stdout
    shared = version + (include / "xla" / "ffi" / "api" / "c_api.h").read_bytes()
    objects = choose_objects(build, shared, mode, sources)
    missing = [s for s, (made, _) in objects.items() if not made.exists()]
    report(f"compiling {len(missing)} of {len(sources)} files of kernels for {build.platform} with "
           f"{' '.join(build.compiler)}"
           + ", which takes a minute of CPU" * (len(missing) > 5))  # fmt: skip
    OBJECTS.mkdir(parents=True, exist_ok=True)

    def compile_source(source: Path) -> None:
        made, options = objects[source]
        unfinished = made.with_suffix(f".{os.getpid()}.o")
        paths = [f"-I{include}", "-c", str(source), "-o", str(unfinished)]
        subprocess.run([*build.compiler, *options, *paths], check=True)
        os.replace(unfinished, made)
        report(f"  {source.name} after {time.monotonic() - started:.0f} s")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_source, missing))
    library = (into or folder) / build.library
    made = [str(made) for made, _ in objects.values()]
    unfinished = str(library) + ".new"
    options = next(iter(objects.values()))[1]  # such as -fsanitize, which linking needs too
    link = [*build.compiler, *options, "-shared", *build.link, *made, "-o", unfinished]
    if "linux" in build.platform:
        exports = OBJECTS / "exports.map"
        exports.write_text(EXPORTS)
        link.append(f"-Wl,--version-script={exports}")
    subprocess.run(link, check=True)
    os.replace(unfinished, library)  # a process that has loaded the old library keeps it
    drop_unused({made for made, _ in objects.values()})
    report(f"made {build.library} of {library.stat().st_size / 1e6:.1f} MB "
           f"in {time.monotonic() - started:.0f} s")  # fmt: skip
    return library


def choose_objects(build: Build, shared: bytes, mode: str, sources: list[Path]) -> dict:
    """Return for each source the file of its object, named by a digest, and its options."""
    more = shlex.split(os.environ.get("CXXFLAGS", ""))
    objects = {}
    for source in sources:
        level = QUICK if mode == "quick" else OPTIMIZED
        options = [*build.options, *level, *more]
        command = "\0".join([*build.compiler, *options]).encode()
        files = list_files(source)
        content = b"".join(path.read_bytes() for path in files)
        digest = hashlib.sha256(command + shared + content).hexdigest()[:24]
        objects[source] = OBJECTS / f"{source.stem}-{digest}.o", options
    return objects


def list_files(source: Path) -> list[Path]:
    """Return a source and the headers beside it that it names, directly or by another header."""
    found = [source]
    for path in found:
        for name in re.findall(r'"(\w+\.h)"', path.read_text()):
            header = source.parent / name
            if header not in found and header.exists():
                found.append(header)
    return found


def drop_unused(used: set[Path]) -> None:
    """Remove objects that no build has used for MAX_DAYS."""
    for path in used:
        os.utime(path)
    for path in OBJECTS.glob("*.o"):
        if time.time() - path.stat().st_mtime > MAX_DAYS * 86_400:
            path.unlink(missing_ok=True)


def report(text: str) -> None:
    """Print a line of progress, which `pip install -v` shows."""
    print(f"weft: {text}", file=sys.stderr, flush=True)


class NativeHook(BuildHookInterface):
    """A hook that adds the library to a wheel. An editable install gets it in place."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict) -> None:
        mode = os.environ.get("WEFT_BUILD", "")
        if self.target_name != "wheel" or mode == "none":
            return
        sources = Path(self.root) / "src" / "weft" / "native"
        self.made = tempfile.TemporaryDirectory()
        into = sources if version == "editable" else Path(self.made.name)
        try:
            library = compile_kernels(sources, mode, into)
        except (OSError, subprocess.CalledProcessError) as error:
            if mode in PLATFORMS:
                raise
            self.app.display_warning(f"weft: built without its kernels in C++: {error}")
            return
        if version != "editable":
            build_data["force_include"][str(library)] = f"weft/native/{library.name}"
        build_data["pure_python"] = False
        # The kernels hold no Python, so a wheel serves all Pythons of a platform.
        build_data["tag"] = f"py3-none-{choose_build(mode).platform}"

    def finalize(self, version: str, build_data: dict, artifact_path: str) -> None:
        if hasattr(self, "made"):
            self.made.cleanup()


if __name__ == "__main__":
    try:
        if os.environ.get("WEFT_BUILD") == "none":
            report("no kernels are compiled, since WEFT_BUILD is none")
        else:
            compile_kernels(ROOT / "src" / "weft" / "native")
    except (OSError, subprocess.CalledProcessError) as failure:
        report(f"going on without the kernels in C++: {failure}")
