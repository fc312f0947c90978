"""The sources are those of a release, and the tables of platforms are consistent."""

import importlib.util
import pathlib
import re
import sys

import pytest

from weft.cpu.kernels import HANDLERS

ROOT = pathlib.Path(__file__).parents[1]


def load_tool(name):
    """Load a file of tools/, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_version_changelog_and_citation_agree():
    assert not load_tool("check_release").list_problems()


def test_a_wheel_is_checked(tmp_path):
    """A wheel that lacks its kernels, its notices or a symbol, or is too large, is found."""
    pytest.importorskip("hatchling")
    sys.modules.pop("hatch_build", None)
    tool = load_tool("make_wheels")
    assert tool.read_handlers() == [*HANDLERS]
    assert tool.SYSTEMS.keys() == {re.match(r"[a-z]+", p)[0] for p in tool.PLATFORMS}
    library = tool.Library("PE", "AMD64", frozenset(HANDLERS), frozenset({"KERNEL32.dll"}))
    assert not tool.check_library(library, "win_amd64")
    assert tool.check_library(library, "manylinux_2_17_aarch64") == [
        "it must be ELF for AARCH64; got PE for AMD64.",
        "it must need libraries of the system only; got KERNEL32.dll.",
    ]
    lacking = library._replace(exports=library.exports - {"weft_sum"})
    assert tool.check_library(lacking, "win_amd64") == ["the library must export weft_sum."]
    wheel = tmp_path / "weft-0-py3-none-win_amd64.whl"
    with tool.zipfile.ZipFile(wheel, "w") as file:
        file.writestr("weft/__init__.py", bytes(5_000_000))
    wrong = " ".join(tool.check_wheel(wheel, "win_amd64"))
    assert "at most 4000000 bytes" in wrong and "kernels.dll" in wrong and "licence" in wrong
