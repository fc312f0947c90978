"""The programs of examples/ecosystem meet their bars."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parents[2] / "examples/ecosystem"


@pytest.mark.parametrize("name", sorted(file.stem for file in PROGRAMS.glob("*.py")))
def test_program(name):
    weft = ["-m", "weft"] if "weft" in sys.modules else []
    environment = {key: value for key, value in os.environ.items() if key != "WEFT_AS_JAX"}
    done = subprocess.run(
        [sys.executable, *weft, str(PROGRAMS / f"{name}.py")],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
