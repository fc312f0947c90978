"""A script explained as a whole."""

import os
import subprocess
import sys

SCRIPT = """
import jax, jax.numpy as jnp
@jax.jit
def step(x):
    return x @ x  # product
x = jnp.ones((64, 64))
for _ in range(5):
    y = step(x)
y = step(jnp.ones((32, 32)))
print("done")
last = jax.jit(lambda x: jnp.sort(jnp.sort(x) + 1))
last(last(last(jnp.ones(100_000))))  # nobody awaits them
raise SystemExit(3)
"""


def test_a_script_is_explained_when_it_ends(tmp_path):
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    run = subprocess.run(
        [sys.executable, "-m", "weft", "explain", str(file)],
        env={**os.environ, "XLA_FLAGS": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 3, run.stderr
    head, _, report = run.stdout.partition("\n\n")
    assert head == "done"
    (row,) = [r for r in report.splitlines() if " step " in r]
    assert row.split()[2] == "6"  # calls
    assert "script.py:9: argument `x` was float32[64,64], is float32[32,32]." in row
    assert "wait_for_programs" not in report
    (row,) = [r for r in report.splitlines() if r.endswith(" _lambda_")]
    assert row.split()[2] == "3"
    (line,) = [r for r in report.splitlines() if "# product" in r]
    assert "script.py:5" in line and "2.69 M" in line  # 5 * 2 * 64**3 + 2 * 32**3
