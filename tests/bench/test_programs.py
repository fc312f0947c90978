"""The programs of bench/programs: their forms give the same results, and they can be timed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.settings import ALL, CHECKOUT

BENCH = CHECKOUT / "bench"
ONE_IN = 12  # a program takes half a second of the processor, most of it to compile


def run_bench(
    script: str, *arguments: str, python: str | Path = sys.executable
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, BENCH / script, *arguments],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "src")},
        capture_output=True,
        text=True,
        timeout=900,
    )


def list_cases() -> list[str]:
    """The names of all programs and gradients."""
    listed = subprocess.run(
        [sys.executable, "-c", "from cases_programs import *; print(*list_cases('weft'))"],
        cwd=BENCH,
        capture_output=True,
        text=True,
    )
    return listed.stdout.split()


def test_programs_give_what_numpy_gives():
    names = list_cases()
    assert len([name for name in names if not name.endswith(".grad")]) == 60
    done = run_bench("cases_programs.py", "weft", *(names if ALL else names[3::ONE_IN]))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_programs_give_under_jax_what_numpy_gives():
    """The benchmarks therefore compare equal work."""
    python = CHECKOUT / ".venv-bench/bin/python"
    if not python.exists():
        pytest.skip("needs the environment of `make bench`")
    done = run_bench("cases_programs.py", "jax", python=python)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_result_that_differs_is_told():
    program = (
        "import cases_programs as c, sys;"
        "c.PROGRAMS['gemm'].program = lambda xp, *a: a[2] + (xp is not c.np);"
        "sys.argv = ['', 'weft', 'gemm']; sys.exit(c.main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=BENCH,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stdout.startswith("gemm: AssertionError: Not equal to tolerance rtol=1e-09")


def test_the_page_of_programs_has_a_table_for_each_size_and_means(tmp_path):
    page = tmp_path / "programs.md"
    done = run_bench(
        "run.py", "--quick", "--only", "programs/jacobi_1d", "programs/mvt",
        "--peers", "numpy", "numba=numba", "again=numpy", "--out", str(page),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert text.startswith("# Whole programs")
    assert "## programs/small" in text and "Geometric means: " in text
    assert "| case | numpy | numba | again | again / numpy | goal | met | best peer |" in text
    for name in ("jacobi_1d", "mvt"):
        assert f"| programs/{name}/small |" in text
    assert "| ≤ 1.05x |" in text
