"""Processes interrupted, killed, forked or starved: they end well, or report an error."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from weft.xla.diskcache import DiskCache

PROGRAMS = Path(__file__).with_name("programs.py")


def start(cache, *args):
    paths = str(PROGRAMS.parents[2] / "src")
    return subprocess.Popen(
        [sys.executable, str(PROGRAMS), *args],
        env={
            **os.environ,
            "PYTHONPATH": paths,
            "WEFT_CACHE_DIR": str(cache),
            "XLA_FLAGS": "--xla_backend_optimization_level=0",  # fast compilation
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(cache, *args):
    """(exit status, output, errors) of one of the programs."""
    with start(cache, *args) as process:
        try:
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    return process.returncode, out, err


# --- Ctrl-C ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["compiles", "loads", "runs", "callbacks", "threads"])
def test_fifty_interruptions_end_neither_the_process_nor_what_follows(tmp_path, name):
    """A few come while Python runs a callback of a weak reference, whose errors it passes over."""
    status, out, err = run(tmp_path if name == "loads" else "off", name, "50")
    (caught, after), *failures = map(str.split, out.splitlines() or ["0 0"])
    assert status == 0 and 40 <= int(caught) <= 50 and after == "3.0", err
    assert failures in ([], [["[]"]])


@pytest.mark.slow
def test_the_end_of_a_process_waits_for_a_compile_that_was_left():
    for _ in range(3):
        assert run("off", "ends_in_a_compile")[:2] == (0, "left\n")


# --- killed ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_killed_while_it_compiles_and_writes_leaves_whole_entries(tmp_path, how):
    for count in (1, 2, 5):
        with start(tmp_path, "told_to_end") as process:
            for _ in range(count):
                process.stdout.readline()
            time.sleep(random.uniform(0, 0.05))
            process.send_signal(how)
            process.communicate(timeout=60)
        assert process.returncode == -how
    disk = DiskCache(tmp_path, 1 << 30)
    keys = [entry.key for entry in disk.entries()]
    assert keys and all(disk.get(key) for key in keys)
    assert run(tmp_path, "small_files_alone")[0] == 0


# --- forked ---------------------------------------------------------------------------------------


def test_a_fork_is_warned_of_and_its_child_does_not_hang():
    status, out, err = run("off", "fork")
    assert status == 0 and "RuntimeWarning: os.fork: a process that has used weft must" in err
    refused = "weft: must not compute in a process forked from one that used weft"
    assert out.splitlines() == ["192.0", refused, refused, refused, "3 4.0"]


# --- starved --------------------------------------------------------------------------------------


def test_without_file_descriptors(tmp_path):
    status, out, err = run(tmp_path, "no_more_files")
    said = "_lambda_: must be a program that XLA compiles for cpu"
    assert (status, out.splitlines()) == (0, ["None", said, "3.0"]), err


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("how", ["repr", "asarray", "device_get"])
def test_a_result_without_memory_is_an_error(how):
    """XLA's own error comes too late: NumPy ends the process when it reads such a result."""
    assert run("off", "too_large", how)[:2] == (0, "RESOURCE_EXHAUSTED 0.0\n")


@pytest.mark.slow
def test_a_full_disk(tmp_path):
    assert run(tmp_path, "small_files_alone")[:2] == (0, "0.0\n[]\n")


@pytest.mark.slow
def test_recursion_without_end_is_an_error_and_leaves_nothing():
    assert run("off", "deep")[:2] == (0, "RecursionError 3.0\n" * 4)


@pytest.mark.slow
def test_exceptions_at_the_end_of_objects_and_of_the_process():
    status, _, err = run("off", "fails_at_exit")
    assert status == 0 and "ValueError: in __del__" in err
