"""Progress of long work: reported after a while, for the innermost work, if asked for."""

import sys
import threading
import time
import types

import pytest

import weft
from weft import config, lax
from weft.watch import progress


@pytest.fixture
def quick(monkeypatch):
    """Count work of more than a hundredth of a second as long."""
    monkeypatch.setattr(progress, "FIRST", 0.01)


def test_work_is_told_with_its_time(quick, capsys):
    assert progress.run_reporting("compiling f", lambda x: time.sleep(0.1) or x, 3) == 3
    *before, last = capsys.readouterr().err.splitlines()
    assert before and set(before) == {"weft: compiling f: 0 s so far"}
    assert last == "weft: compiling f: took 0.1 s"
    assert not progress._work


def test_short_work_is_not_told(capsys):
    progress.run_reporting("compiling f", lambda: None)
    assert capsys.readouterr().err == ""


def test_what_began_last_is_told_and_errors_pass(quick, capsys):
    def inner():
        time.sleep(0.05)
        raise KeyError("x")

    def outer():
        with pytest.raises(KeyError):
            progress.run_reporting("tracing inner", inner)
        time.sleep(0.1)

    progress.run_reporting("tracing outer", outer)
    told = capsys.readouterr().err
    assert told.index("tracing inner: took") < told.rindex("tracing outer: 0 s so far")
    assert "tracing outer: took 0." in told.splitlines()[-1]


def test_a_terminal_has_one_line(quick, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    progress.run_reporting("compiling f", time.sleep, 0.05)
    told = capsys.readouterr().err
    assert (
        told.startswith("\r\033[Kweft: compiling f: 0 s so far\r\033[K") and told.count("\n") == 1
    )


def test_tracing_lowering_and_compiling_are_reported_when_asked(monkeypatch):
    told = []
    report = lambda what, work, *args: told.append(what) or work(*args)
    for module in ("weft.watch.leaks", "weft.run.pipeline", "weft.xla.compile"):
        monkeypatch.setattr(sys.modules[module], "run_reporting", report)

    def make():
        def body(c, _):
            return c + 1, None

        def train_step(x):
            return lax.scan(body, x, None, length=3)[0]

        return train_step

    weft.jit(make())(1.0)
    assert not told
    with config.scope(progress=True):
        assert weft.jit(make())(1.0) == 4
    assert told[:3] == ["tracing train_step", "tracing body", "lowering train_step"]
    assert told[3].startswith("compiling train_step (") and told[3].endswith(" lines of StableHLO)")


@pytest.mark.parametrize(("is_terminal", "pauses"), [(False, [1, 2, 4, 8]), (True, [1, 1, 1, 1])])
def test_lines_of_a_log_become_rarer(is_terminal, pauses, monkeypatch):
    waited = []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    wait = lambda pause: waited.append(pause) or len(waited) == 4
    progress.tell_work(types.SimpleNamespace(wait=wait))
    assert waited == pauses


def test_the_thread_that_tells_ends_with_the_work():
    before = {*threading.enumerate()}
    during = progress.run_reporting("compiling f", lambda: {*threading.enumerate()} - before)
    (teller,) = during
    assert teller.daemon
    teller.join(5)
    assert not teller.is_alive()
