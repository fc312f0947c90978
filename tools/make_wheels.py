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

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hatch_build import PLATFORMS  # noqa: E402

DIST = ROOT / "dist"
PURE = "none"
MAX_BYTES = 4_000_000
# The first bytes of a platform's library, and the form of a symbol in its table.
MAGIC = {"manylinux": b"\x7fELF", "macosx": b"\xcf\xfa\xed\xfe", "win": b"MZ"}


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
            wrong += check_library(file.read(library), mode)
    if mode.startswith("manylinux"):
        wrong += audit_wheel(wheel, mode)
    return wrong


def check_library(content: bytes, mode: str) -> list[str]:
    """Return the faults of a library: its format, or missing symbols."""
    (magic,) = (m for prefix, m in MAGIC.items() if mode.startswith(prefix))
    wrong = [] if content.startswith(magic) else [f"it must begin with {magic!r}."]
    prefix = b"_" if mode.startswith("macosx") else b""
    symbols = [s for s in read_handlers() if prefix + s.encode() + b"\0" not in content]
    return wrong + [f"the library must export {s}." for s in symbols]


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
