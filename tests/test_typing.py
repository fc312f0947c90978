"""Types of public functions, as a user's type checker sees them."""

import inspect
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import weft
import weft.numpy as jnp
from weft import lax, nn, random

HERE = pathlib.Path(__file__).parent
SOURCE = pathlib.Path(weft.__file__).parents[1]
PROGRAMS = HERE / "typing"
UNTYPED = (inspect.Parameter.empty, "")


@pytest.mark.parametrize("module", [weft, jnp, lax, nn, random], ids=lambda m: m.__name__)
def test_every_parameter_has_a_type(module):
    functions = [getattr(module, name) for name in module.__all__]
    mine = [f for f in functions if inspect.isfunction(f) and f.__module__.startswith("weft.")]
    wrong = [
        f"{f.__name__}({p.name})"
        for f in mine
        for p in inspect.signature(f).parameters.values()
        if p.annotation in UNTYPED
    ]
    assert len(mine) > 20
    assert not wrong


def test_stubs_say_what_is_there():
    tool = HERE.parent / "tools/make_stubs.py"
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, tool, "--check"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert not done.returncode, done.stdout + done.stderr + "\nrun python tools/make_stubs.py"


def run_mypy(folder):
    """Places of errors, and messages, as mypy in strict mode finds them."""
    command = ["-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", str(PROGRAMS)]
    environment = os.environ | {"MYPYPATH": str(SOURCE)}
    command += ["--python-version=3.11", f"--cache-dir={folder}"]
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment
    )
    lines = re.findall(r"(\w+)\.pyi?:(\d+): error: (.*)", done.stdout)
    return {(file, int(line)): text for file, line, text in lines}


def run_pyright(folder):
    """The same as pyright in strict mode finds them."""
    config = {"typeCheckingMode": "strict", "extraPaths": [str(SOURCE)], "pythonVersion": "3.11"}
    file = folder / "pyrightconfig.json"
    file.write_text(json.dumps(config | {"include": [str(PROGRAMS)]}))
    command = ["-m", "basedpyright", "-p", str(file), "--pythonpath", sys.executable]
    done = subprocess.run(
        [sys.executable, *command, "--outputjson"], capture_output=True, text=True
    )
    found = [d for d in json.loads(done.stdout)["generalDiagnostics"] if d["severity"] == "error"]
    place = lambda d: (pathlib.Path(d["file"]).stem, d["range"]["start"]["line"] + 1)
    return {place(d): d["message"] for d in found}


@pytest.mark.parametrize("check", [run_mypy, pytest.param(run_pyright, marks=pytest.mark.slow)])
def test_checkers_take_what_is_right_and_nothing_else(check, tmp_path):
    found = check(tmp_path)
    lines = (PROGRAMS / "wrong.py").read_text().splitlines()
    marked = {("wrong", i) for i, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(marked) > 25
    more = {place: text for place, text in found.items() if place not in marked}
    assert not more
    assert marked <= set(found)
