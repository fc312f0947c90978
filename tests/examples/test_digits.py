"""The digits demo, run as a user runs it: what it prints, draws and returns."""

import os
import re
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def run_digits(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CHECKOUT / "examples" / "digits.py", *arguments],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_digits_reaches_the_goal_and_draws_it(tmp_path):
    done = run_digits("--epochs", "12", "--out", str(tmp_path / "new" / "folder"))
    assert done.returncode == 0, done.stdout + done.stderr
    accuracy = re.search(r"held-out accuracy ([\d.]+)%", done.stdout)
    assert accuracy is not None and float(accuracy[1]) > 95
    assert "12/12" in done.stderr  # the progress bar came to its end
    for name in ("training.png", "predictions.png"):
        picture = tmp_path / "new" / "folder" / name
        assert str(picture) in done.stdout
        assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_digits_fails_below_the_goal(tmp_path):
    done = run_digits("--epochs", "1", "--out", str(tmp_path))
    assert done.returncode == 1
    assert "digits: missed the bar: held-out accuracy above 95%" in done.stderr


def test_digits_refuses_no_epochs(tmp_path):
    done = run_digits("--epochs", "0", "--out", str(tmp_path))
    assert done.returncode == 2
    assert "--epochs must be at least 1; got 0" in done.stderr
