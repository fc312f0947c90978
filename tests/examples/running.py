"""Run an example as a user does, or import it to test its functions."""

import contextlib
import importlib.util
import io
import os
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType
from unittest import mock

from weft.options import config

CHECKOUT = Path(__file__).resolve().parents[2]
EXAMPLES = CHECKOUT / "examples"


def run_example(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The finished process of `python examples/NAME.py ARGUMENTS`."""
    return subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
    )


def run_example_here(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The same in this process, which has imported already what takes 2 s to import."""
    command = [str(EXAMPLES / f"{name}.py"), *map(str, arguments)]
    out, err, double = io.StringIO(), io.StringIO(), config.enable_x64
    status: str | int | None = 0
    with (
        mock.patch.object(sys, "argv", command),
        mock.patch.object(sys, "path", [str(EXAMPLES), *sys.path]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        try:
            runpy.run_path(command[0], run_name="__main__")
        except SystemExit as end:
            status = end.code
        finally:
            config.update("enable_x64", double)
    return subprocess.CompletedProcess(command, status or 0, out.getvalue(), err.getvalue())


def load_example(name: str) -> ModuleType:
    """The example as a module, its `main` not run."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(EXAMPLES))


def is_picture(path: Path) -> bool:
    """Return True if the file is a PNG."""
    return path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def check_run(name: str, folder: Path, least: float, *options: object, picture: str = "") -> None:
    """Run an example, which must say an accuracy above `least` percent and draw."""
    done = run_example(name, *options, "--out", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert float(re.search(r"accuracy ([\d.]+)%", done.stdout)[1]) > least
    assert is_picture(folder / f"{picture or name}.png")
