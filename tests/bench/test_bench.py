"""The benchmark's machinery, on NumPy so that it is quick: it measures, reports, and survives."""

import json
import os
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"


def run_bench(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, BENCH / script, *arguments], capture_output=True, text=True, timeout=300
    )


def test_peers_times_one_implementation():
    done = run_bench("peers.py", "numpy", "--only", "eager/add", "--budget", "0.01")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["errors"] == {}
    assert set(found["results"]) == {"eager/add", "eager/add_scalar"}
    assert all(0 < seconds < 1e-3 for seconds in found["results"].values())


def test_run_compares_and_writes_the_page(tmp_path):
    page = tmp_path / "benchmarks.md"
    done = run_bench(
        "run.py", "--quick", "--only", "eager/add", "--peers", "numpy", "again=numpy",
        "--out", str(page),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"written: {page}" in done.stdout
    text = page.read_text()
    assert "| case | numpy | again | again / numpy | goal | met |" in text
    assert "| eager/add |" in text and "≤ 0.9x" in text


def test_run_shows_what_is_missing_as_a_dash():
    done = run_bench(
        "run.py", "--quick", "--only", "eager/add", "--peers", "numpy", "no_such_package"
    )
    assert done.returncode == 0, done.stderr
    assert "no_such_package: process died: ModuleNotFoundError" in done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("eager/add ")]
    assert " - - ≤ 0.9x - numpy " in " ".join(line.split())
    assert "0 of 1 goals met, 0 missed, 1 not measured" in done.stdout


def test_run_fails_where_nothing_was_measured():
    done = run_bench("run.py", "--only", "no/such/case", "--peers", "numpy", "again=numpy")
    assert done.returncode == 1
    assert "run: nothing was measured" in done.stderr


def test_every_goal_is_a_case():
    program = (
        "from cases_devices import devices_suite; from cases_jax import jax_suite;"
        "from goals import RATIOS, VALUES; from run import *;"
        "served = {*jax_suite('weft').cases, *devices_suite('weft').cases};"
        "cases = {*served, *sum(FRESH.values(), ()), *sum(PROGRAMS.values(), [])};"
        "print(sorted({*RATIOS, *VALUES} - cases))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=BENCH,
        env={**os.environ, "PYTHONPATH": str(BENCH.parent / "src")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == "[]\n", done.stderr


def test_eager_compares_with_jit():
    done = run_bench("eager.py", "--only", "scipy.special.xlog", "V*V", "--seconds", "0.001")
    assert done.returncode == 0, done.stderr
    *lines, last = done.stdout.splitlines()
    assert [line.split()[3] for line in lines] == [
        "scipy.special.xlog1py",
        "scipy.special.xlogy",
        "V*V",
    ]
    assert all(float(number) > 0 for line in lines for number in line.split()[:3])
    assert " of 3 take more than 1.3 times" in last


def test_the_survey_sorts_cases_by_what_they_are_missed_by():
    wanted = "xp.isnan(a)", "xp.any(a & ~a)", "nn.relu6(a)"  # NumPy has no relu6
    done = run_bench("survey.py", "--quick", "--only", *wanted, "--peers", "numpy", "again=numpy")
    assert (done.returncode, done.stderr) == (0, "")
    head, *lines = [line.split() for line in done.stdout.splitlines()]
    assert head == ["numpy", "again"]
    assert {line[3] for line in lines} == {"xp.isnan(a)", "xp.any(a"}
    assert float(lines[0][0]) >= float(lines[1][0]) > 0
