"""The number of threads of a process."""

import os
import subprocess
import sys

import pytest

from weft.mesh import threads


@pytest.fixture
def groups(tmp_path):
    """Folders as Linux shows groups of processes: writes limits, and reads the quota."""

    def read(own, **limits):
        (tmp_path / "own").write_text(own)
        for path, text in limits.items():
            file = tmp_path / "cgroup" / path.replace("__", "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return threads.read_quota(tmp_path / "cgroup", tmp_path / "own")

    def write(path, text):
        file = tmp_path / "cgroup" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    read.write = write
    return read


def test_no_limit(groups):
    assert groups("0::/\n") is None
    groups.write("cpu.max", "max 100000\n")
    assert groups("0::/\n") is None
    groups.write("cpu/cpu.cfs_quota_us", "-1\n")
    groups.write("cpu/cpu.cfs_period_us", "100000\n")
    assert groups("1:cpu,cpuacct:/\n0::/\n") is None
    assert threads.read_quota(own=threads.Path("/nonexistent/cgroup")) is None


def test_the_least_limit_counts_rounded_up(groups):
    groups.write("cpu.max", "800000 100000\n")
    groups.write("jobs/cpu.max", "250000 100000\n")
    groups.write("jobs/mine/cpu.max", "max 100000\n")
    assert groups("0::/jobs/mine\n") == 3
    assert groups("0::/\n") == 8
    groups.write("cpu/pod/cpu.cfs_quota_us", "50000\n")
    groups.write("cpu/pod/cpu.cfs_period_us", "100000\n")
    assert groups("4:memory:/x\n1:cpu,cpuacct:/pod\n") == 1


def test_a_quota_below_the_processors_is_the_default(monkeypatch):
    monkeypatch.setenv("NPROC", "")  # which the end of the test puts back
    monkeypatch.delenv("NPROC")
    monkeypatch.setattr(threads, "read_quota", lambda: 3)
    monkeypatch.setattr(threads, "count_processors", lambda: 2)
    threads.limit_threads()
    assert "NPROC" not in os.environ and threads.count_threads() == 2
    monkeypatch.setattr(threads, "count_processors", lambda: 64)
    threads.limit_threads()
    assert os.environ["NPROC"] == "3" and threads.count_threads() == 3
    monkeypatch.setattr(threads, "read_quota", lambda: 1)
    threads.limit_threads()
    assert threads.count_threads() == 3  # the user's variable, or an earlier call's, stays


COUNTS = """
import os, sys, numpy
import weft
import weft.numpy as jnp
from weft.mesh.threads import count_threads
x = jnp.ones((300, 300)) @ jnp.ones((300, 300))
x.block_until_ready()
jnp.linalg.inv(x + jnp.eye(300)).block_until_ready()
names = [open(f"/proc/self/task/{t}/comm").read().strip() for t in os.listdir("/proc/self/task")]
print(count_threads(), sum("Eigen" in name for name in names), os.environ["OPENBLAS_NUM_THREADS"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
def test_the_variable_sets_the_pool_of_the_engine():
    found = []
    for count in (1, 5):
        env = {**os.environ, "WEFT_NUM_THREADS": str(count), "XLA_FLAGS": ""}
        env.pop("NPROC", None)
        command = [sys.executable, "-c", COUNTS]
        run = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        found.append([*map(int, run.stdout.split())])
    (one, few, blas_one), (five, more, blas_five) = found
    assert (one, five, blas_one, blas_five) == (1, 5, 1, 5)
    assert more - few == 4
