"""The check of a GPU: it runs on CPU as well, and reports that there is no GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "gpu_smoke.py"


def run(*args, **environment):
    return subprocess.run(
        [sys.executable, str(SCRIPT), *args],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_without_a_gpu_there_is_nothing_to_check():
    done = run(WEFT_PLATFORMS="cpu")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("gpu-smoke: nothing to check: devices: the platform must be one")


def test_every_program_is_right_on_cpu():
    done = run("--platform", "cpu", "--size", "48", "--jax", "/nowhere")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("on cpu") and len(lines) == 27
    assert "WRONG" not in done.stdout and "FAILED" not in done.stdout


def test_a_wrong_result_is_told():
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        import gpu_smoke
    finally:
        sys.path.pop(0)
    right = {"name": "dot", "ok": True, "off": 0.0, "first": 1.0, "again": 1.0, "ms": 1.0}
    rows = [
        {"device": "cpu"},
        right,
        {**right, "ok": False},
        {"name": "x", "ok": False, "error": ""},
    ]
    assert gpu_smoke.report(rows, [json.loads(json.dumps(right))]) == 2


def test_without_a_plugin_there_is_nothing_to_compile_with():
    done = run("--compile-only", WEFT_PLATFORMS="cpu")
    assert done.returncode == 0, done.stderr
    assert "nothing to compile with" in done.stdout or "compiles in" in done.stdout
