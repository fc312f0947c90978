"""Options: values from the environment and from flags, and the page that lists them."""

import importlib.util
import pathlib
import re
import sys

import pytest

from weft.options import OPTIONS, config, read_variable
from weft.options.flags import FLAGS

ROOT = pathlib.Path(__file__).parents[1]
BOOLS = [o for o in OPTIONS if isinstance(o.default, bool)]
NUMBERS = [o for o in OPTIONS if isinstance(o.default, int) and o not in BOOLS]


@pytest.mark.parametrize("prefix", ["WEFT_", "JAX_"])
@pytest.mark.parametrize("option", BOOLS, ids=[o.name for o in BOOLS])
def test_a_bool_is_a_bool(option, prefix, monkeypatch):
    variable = prefix + option.name.upper()
    for text, value in (("1", True), ("True", True), ("on", True), ("y", True), ("", False),
                        ("0", False), ("FALSE", False), ("no", False), ("f", False)):  # fmt: skip
        monkeypatch.setenv(variable, text)
        assert read_variable(option) is value
    for text in ("maybe", "2", "None", "tru", "-1", " "):
        monkeypatch.setenv(variable, text)
        with pytest.raises(ValueError, match=rf"^config: {variable} must be 1 or .*; got '{text}'"):
            read_variable(option)


def test_numbers_flags_and_words(monkeypatch):
    for option in NUMBERS:
        monkeypatch.setenv(f"WEFT_{option.name.upper()}", "3")
        assert read_variable(option) == 3
        monkeypatch.setenv(f"WEFT_{option.name.upper()}", "x")
        with pytest.raises(ValueError, match=r"^config: WEFT_\w+ must be an integer; got 'x'\.$"):
            read_variable(option)
    (bounds,) = [o for o in OPTIONS if o.name == "check_bounds"]
    monkeypatch.setenv("WEFT_CHECK_BOUNDS", "all")
    assert read_variable(bounds) == "all"
    monkeypatch.setenv("WEFT_CHECK_BOUNDS", "some")
    with pytest.raises(ValueError, match=r"must be 1 or true, 'all', or 0 or false; got 'some'"):
        read_variable(bounds)
    monkeypatch.undo()
    flag = next(name for name, default in FLAGS.items() if default is False and name[:4] == "jax_")
    monkeypatch.setenv(flag.upper(), "maybe")
    with pytest.raises(ValueError, match=f"^config: {flag.upper()} must be 1 or true, or 0 or fal"):
        config.read_environment()
    monkeypatch.setattr(sys, "argv", ["x", "--jax_enable_x64=maybe"])
    with pytest.raises(ValueError, match="^config: --jax_enable_x64 must be 1 or true, or 0 or"):
        config.parse_flags_with_absl()


def load_tool():
    """Load tools/make_options.py, which is not in a package."""
    spec = importlib.util.spec_from_file_location(
        "make_options", ROOT / "tools" / "make_options.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_options_is_as_written_from_them():
    tool = load_tool()
    assert tool.PAGE.read_text() == tool.write_page(), "run tools/make_options.py"


def test_the_page_names_every_variable_that_the_package_reads():
    tool = load_tool()
    told = {
        name for rows in tool.VARIABLES.values() for names in rows for name in names.split(", ")
    }
    options = {f"WEFT_{option.name.upper()}" for option in OPTIONS}
    assert not told & options
    read, named = set(), set()
    for file in [*(ROOT / "src" / "weft").rglob("*.py"), ROOT / "hatch_build.py"]:
        text = file.read_text()
        named |= set(re.findall(r"\bWEFT_[A-Z0-9_]*[A-Z0-9]\b", text))
        read |= set(re.findall(r"environ(?:\.get|\.setdefault)?[\[(]\s*\"([A-Z_]+)\"", text))
    others = {"WEFT_NAME", "WEFT_COMPLEX"}  # of a docstring, and of a header in C
    assert named - others <= told | options
    clusters = {name for name in read if name.split("_")[0] in ("SLURM", "OMPI", "PMIX", "PMI")}
    assert read <= told | options | tool.READ_ONLY | clusters | {"TPU_WORKER_HOSTNAMES"}
    assert {name for name in told if name[:5] == "WEFT_"} <= named | {"WEFT_COORDINATOR_PORT"}
