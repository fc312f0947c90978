"""Run test files in a separate process, with the number of CPU devices that they need.

A process fixes the number of devices when it first uses them, and the main run has one.
"""

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def environment(count: int) -> dict[str, str]:
    """The variables of a process with `count` CPU devices, whose tests are of many devices."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    paths = [str(CHECKOUT / "src"), str(CHECKOUT), os.environ.get("PYTHONPATH", "")]
    flags = [os.environ.get("XLA_FLAGS", ""), f"--xla_force_host_platform_device_count={count}"]
    return inherited | {
        "WEFT_TEST_DEVICES": str(count),
        "XLA_FLAGS": " ".join(flags),  # for programs that are not run by pytest
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }


def run_with_devices(count: int, *files: Path) -> None:
    """Run the tests in `files` on `count` CPU devices; raises with their output if they fail."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, files)]
    done = subprocess.run(
        command, env=environment(count), cwd=CHECKOUT, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, f"on {count} devices:\n{done.stdout}\n{done.stderr}"
    assert " passed" in done.stdout, done.stdout
