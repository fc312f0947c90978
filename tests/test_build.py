"""The kernels are compiled once, and again only if something they are made from has changed."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("hatchling")

import hatch_build

pytestmark = pytest.mark.skipif(
    not (shutil.which("c++") or shutil.which("g++")), reason="there is no compiler"
)


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A folder of two small sources, and a place for objects."""
    monkeypatch.setattr(hatch_build, "OBJECTS", tmp_path / "objects")
    for name in ("CXX", "CXXFLAGS", "WEFT_BUILD"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "native"
    folder.mkdir()
    (folder / "number.h").write_text("constexpr int kNumber = 7;\n")
    (folder / "sort.cc").write_text(
        '#include "number.h"\nextern "C" int weft_number() { return kNumber; }\n'
    )
    (folder / "other.cc").write_text('extern "C" int weft_other() { return __OPTIMIZE__; }\n')
    return folder


def count_compiled(capfd):
    """Return how many files the last build compiled, as it says."""
    said = capfd.readouterr().err
    (line,) = [line for line in said.splitlines() if "compiling" in line]
    return int(line.split("compiling ")[1].split()[0])


def test_a_build_compiles_what_has_changed(sources, capfd):
    library = hatch_build.compile_kernels(sources)
    assert library.parent == sources and count_compiled(capfd) == 2
    assert ctypes.CDLL(str(library)).weft_number() == 7
    hatch_build.compile_kernels(sources)
    assert count_compiled(capfd) == 0
    (sources / "other.cc").write_text('extern "C" int weft_other() { return 9; }\n')
    hatch_build.compile_kernels(sources)
    assert count_compiled(capfd) == 1
    (sources / "number.h").write_text("constexpr int kNumber = 8;\n")
    elsewhere = sources.parent / "elsewhere"
    elsewhere.mkdir()
    moved = hatch_build.compile_kernels(sources, into=elsewhere)
    assert count_compiled(capfd) == 1 and moved.parent == elsewhere  # the one that names it
    assert ctypes.CDLL(str(moved)).weft_number() == 8
    assert not list(sources.glob("*.o")) and not list(sources.glob("*.new"))


@pytest.mark.skipif(sys.platform != "linux", reason="only ELF libraries have such a list")
def test_a_library_exports_its_handlers_only(sources):
    more = "int helper() { return 1; }\n"
    more += "template <int n> int shared() { static int k = n; return ++k; }\n"
    path = sources / "other.cc"
    path.write_text(f'{more}extern "C" int weft_other() {{ return helper() + shared<3>(); }}\n')
    library = ctypes.CDLL(str(hatch_build.compile_kernels(sources)))
    assert library.weft_other() == 5
    names = "_Z6helperv", "_Z6sharedILi3EEiv", "_ZZ6sharedILi3EEivE1k"
    assert not [name for name in names if hasattr(library, name)]


def test_a_quick_build_optimizes_less(sources):
    build = hatch_build.choose_build("")
    levels = lambda mode: {
        source.stem: [option for option in options if option.startswith(("-O", "-D"))]
        for source, (_, options) in hatch_build.choose_objects(
            build, b"", mode, sorted(sources.glob("*.cc"))
        ).items()
    }
    assert levels("") == {"sort": ["-O3"], "other": ["-O3"]}
    assert levels("quick") == dict.fromkeys(("sort", "other"), ["-O1", "-DWEFT_AVX2_ONLY"])


def test_a_build_that_nobody_knows_is_an_error(sources):
    with pytest.raises(
        ValueError, match=r"^WEFT_BUILD must be one of quick, none, manylinux_\w+, .*"
    ):
        hatch_build.compile_kernels(sources, "fast")


def test_a_build_without_kernels_compiles_nothing(sources):
    environment = {**os.environ, "WEFT_BUILD": "none"}
    script = hatch_build.__file__
    ended = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment
    )
    assert ended.returncode == 0
    assert ended.stderr == "weft: no kernels are compiled, since WEFT_BUILD is none\n"


def test_old_objects_go(sources):
    hatch_build.compile_kernels(sources)
    old = hatch_build.OBJECTS / "sort-old.o"
    old.write_bytes(b"")
    long_ago = old.stat().st_mtime - (hatch_build.MAX_DAYS + 1) * 86_400
    hatch_build.os.utime(old, (long_ago, long_ago))
    hatch_build.compile_kernels(sources)
    assert not old.exists() and len(list(hatch_build.OBJECTS.glob("*.o"))) == 2


NATIVE = Path(hatch_build.__file__).parent / "src" / "weft" / "native"
MAKES_VECTOR = re.compile(r"^ *(?:WEFT_INLINE|inline)(?: static)? (?:V|Lanes<T>) (\w+)\(", re.M)


def test_loops_of_one_width_call_no_function_that_returns_vectors_and_is_compiled_without():
    """Clang, with which wheels are built, refuses such calls, and GCC does not."""
    included = {*NATIVE.glob("*_lanes.h"), NATIVE / "lanes.h"}
    made = {True: set(), False: set()}
    for path in NATIVE.glob("*.h"):
        made[path in included] |= {*MAKES_VECTOR.findall(path.read_text())}
    assert "Load" in made[False] and "Load" in made[True]
    wrong = [
        f"{path.name}: {name}"
        for path in included
        for name in made[False] - made[True]
        if re.search(rf"\b{name}(?:<\w+>)?\(", path.read_text())
    ]
    assert not wrong
