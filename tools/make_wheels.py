"""Build a wheel for each platform on one Linux machine, and check each: `make wheels`.

The kernels are compiled by the Clang of the package `ziglang` (hatch_build.py). The wheel for all
other platforms has no kernels. If names of platforms are given as arguments, only those are built.
The checks read files; tools/try_wheel.py installs the wheel of this machine and runs it.
"""

import argparse
import os
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hatch_build import PLATFORMS  # noqa: E402

DIST = ROOT / "dist"
PURE = "none"
MAX_BYTES = 4_000_000


class Library(NamedTuple):
    """The facts about a library that a check reads from its file, with symbols as C names them."""

    format: str
    machine: str
    exports: frozenset[str]
    needs: frozenset[str]


# For each platform: the format of its libraries, and the system's libraries, which may be needed.
SYSTEMS = {
    "manylinux": ("ELF", r"(libc|libm|libdl|libpthread|librt)\.so\.\d+|ld-linux-.*"),
    "macosx": ("MACHO", r"/usr/lib/libSystem\.B\.dylib"),
    "win": ("PE", r"(kernel32|ntdll|advapi32|ws2_32|api-ms-win-crt-[\w-]+)\.dll"),
}
MACHINES = {"x86_64": ("X86_64", "AMD64"), "aarch64": ("AARCH64",), "arm64": ("ARM64",)}
MACHINES["amd64"] = MACHINES["x86_64"]


def build_wheel(mode: str) -> Path:
    """Build the wheel of a platform, or the one without kernels; return its file."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(DIST)]
    env = {**os.environ, "WEFT_BUILD": mode, "SOURCE_DATE_EPOCH": read_commit_time()}
    before = time.time()
    subprocess.run(command, cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL)
    suffix = "none-any" if mode == PURE else mode
    found = [w for w in DIST.glob(f"*-{suffix}.whl") if w.stat().st_mtime >= before - 1]
    if len(found) != 1:
        raise SystemExit(f"make_wheels: one wheel of {mode} must be built; got {found}.")
    return found[0]


def read_commit_time() -> str:
    """Return the time of the last commit, which all files of a wheel get."""
    command = ["git", "log", "-1", "--format=%ct"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return made.stdout.strip() or str(int(time.time()))


def read_handlers() -> list[str]:
    """Return the symbols that weft looks for in a library, from cpu/kernels.py."""
    text = (ROOT / "src" / "weft" / "cpu" / "kernels.py").read_text()
    (listed,) = re.findall(r"^KERNELS = \((.*?)\)", text, re.M | re.S)
    return ["weft_" + name for name in ("keep", *re.sub('"', "", listed).split())]


def check_wheel(wheel: Path, mode: str) -> list[str]:
    """Return the faults of a wheel: its size, its contents, its library."""
    wrong = []
    if wheel.stat().st_size > MAX_BYTES:
        wrong.append(f"it must have at most {MAX_BYTES} bytes; got {wheel.stat().st_size}.")
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        libraries = [n for n in names if "/native/" in n]
        library = "kernels.dll" if mode.startswith("win") else "kernels.so"
        wanted = [] if mode == PURE else [f"weft/native/{library}"]
        if libraries != wanted:
            wrong.append(f"native/ must hold {wanted}; got {libraries}.")
        licenses = {n.rpartition("/")[2] for n in names if "/licenses/" in n}
        if licenses != {"LICENSE", "NOTICE"}:
            wrong.append(f"the licence and the notices must be there; got {sorted(licenses)}.")
        for library in libraries:
            wrong += check_library(read_library(file.read(library)), mode)
    if mode.startswith("manylinux"):
        wrong += audit_wheel(wheel, mode)
    return wrong


def read_library(content: bytes) -> Library:
    """Read the format, the processor, the exported symbols and the needed libraries."""
    import lief

    lief.logging.disable()  # it remarks on what strip has removed
    found = lief.parse(content)
    kind = found.format.name
    prefix = "_" if kind == "MACHO" else ""
    machine = {"ELF": "machine_type", "MACHO": "cpu_type", "PE": "machine"}[kind]
    needs = [x if isinstance(x, str) else x.name for x in found.libraries]
    own = [found.get(lief.MachO.LoadCommand.TYPE.ID_DYLIB)] if kind == "MACHO" else []
    return Library(
        kind,
        getattr(found.header, machine).name,
        frozenset(f.name.removeprefix(prefix) for f in found.exported_functions),
        frozenset(needs) - {x.name for x in own if x},
    )


def check_library(library: Library, mode: str) -> list[str]:
    """Return the faults of a library: its format, missing symbols, libraries of others."""
    kind, system = next(known for prefix, known in SYSTEMS.items() if mode.startswith(prefix))
    machines = next(known for name, known in MACHINES.items() if mode.endswith(name))
    wrong = []
    if library.format != kind or library.machine not in machines:
        wrong.append(
            f"it must be {kind} for {machines[0]}; got {library.format} for {library.machine}."
        )
    wrong += [f"the library must export {s}." for s in read_handlers() if s not in library.exports]
    others = [x for x in sorted(library.needs) if not re.fullmatch(system, x, re.IGNORECASE)]
    return wrong + [f"it must need libraries of the system only; got {x}." for x in others]


def audit_wheel(wheel: Path, mode: str) -> list[str]:
    """Return auditwheel's complaint if a wheel needs a newer system than its name says."""
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    shown = subprocess.run(command, capture_output=True, text=True)
    said = re.sub(r"\s+", " ", shown.stdout + shown.stderr)
    fits = f'is consistent with the following platform tag: "{mode}"' in said
    return [] if fits else [f"auditwheel must find it consistent with {mode}; it said: {said}"]


def main() -> int:
    """Build and check the wheels that the command line names; return its exit status."""
    parser = argparse.ArgumentParser(description="Build weft's wheels and check them.")
    known = [*PLATFORMS, PURE]
    parser.add_argument("platforms", nargs="*", help="of " + ", ".join(known))
    asked = parser.parse_args().platforms or known
    if unknown := [p for p in asked if p not in known]:
        parser.error(f"platforms must be of {', '.join(known)}; got {', '.join(unknown)}")
    failed = False
    for mode in asked:
        before = time.monotonic()
        wheel = build_wheel(mode)
        wrong = check_wheel(wheel, mode)
        took = time.monotonic() - before
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, {took:.0f} s", *wrong, sep="\n  ")
        failed |= bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
