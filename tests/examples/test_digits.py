"""The digits demo, run as a user runs it: its output, pictures and result."""

import re
import sys

from tests.examples.running import is_picture, load_example, run_example


def test_digits_reaches_the_goal_and_draws_it(tmp_path):
    done = run_example("digits", "--epochs", 12, "--out", tmp_path / "new" / "folder")
    assert done.returncode == 0, done.stdout + done.stderr
    accuracy = re.search(r"held-out accuracy ([\d.]+)%", done.stdout)
    assert accuracy is not None and float(accuracy[1]) > 95
    assert "12/12" in done.stderr  # the progress bar came to its end
    for name in ("training.png", "predictions.png"):
        picture = tmp_path / "new" / "folder" / name
        assert str(picture) in done.stdout
        assert is_picture(picture)


def test_digits_fails_below_the_goal(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["digits.py", "--epochs", "1", "--out", str(tmp_path)])
    example = load_example("digits")
    monkeypatch.setattr(example, "plot_history", lambda *_: None)
    monkeypatch.setattr(example, "plot_predictions", lambda *_: None)
    assert example.main() == 1
    assert "digits: missed the bar: held-out accuracy above 95%" in capsys.readouterr().err
