"""The programs of examples/ecosystem meet their bars; tutorials print the same numbers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import jax  # noqa: F401 - `record` needs it
import numpy as np
import pytest

PROGRAMS = Path(__file__).resolve().parents[2] / "examples/ecosystem"
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")


def names_in(folder):
    return sorted(file.stem for file in folder.glob("*.py"))


def run(file):
    weft = ["-m", "weft"] if "weft" in sys.modules else []
    environment = {key: value for key, value in os.environ.items() if key != "WEFT_AS_JAX"}
    done = subprocess.run(
        [sys.executable, *weft, str(file)], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", names_in(PROGRAMS))
def test_program(name):
    run(PROGRAMS / f"{name}.py")


@pytest.mark.parametrize("name", names_in(PROGRAMS / "tutorials"))
def test_tutorial(name, record):
    record(np.array(NUMBER.findall(run(PROGRAMS / "tutorials" / f"{name}.py")), float))
