"""Every program that a part of the suite stages is read back: see every_program.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["core", "passes", "control", "api", "parallel/on8", "lax"])
def test_every_program_of_the_suite(folder):
    options = "-q -p no:cacheprovider -p tests.jaxpr.every_program".split()  # noqa: SIM905
    paths = [str(CHECKOUT / "src"), str(CHECKOUT), os.environ.get("PYTHONPATH", "")]
    environment = {k: v for k, v in os.environ.items() if k not in ("WEFT_TEST_ALL", "XLA_FLAGS")}
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    if folder == "parallel/on8":
        environment["WEFT_TEST_DEVICES"] = "8"
    command = [sys.executable, "-m", "pytest", *options, f"tests/{folder}"]
    done = subprocess.run(command, env=environment, cwd=CHECKOUT, capture_output=True, text=True)
    assert ", 0 not read back" in done.stdout, done.stdout[-6000:] + done.stderr[-2000:]
