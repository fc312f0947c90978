"""Whole programs that use libraries written for JAX: on JAX, and on weft under the switch.

Each runs in a new process, in the environment of `make test-ecosystem`, timed from its start to its
end: `cold` without compiled programs on disk, `warm` with those of the cold run. JAX caches all
programs here, which it does not do by default.
"""

import subprocess
import tempfile
import time

from worker import CHECKOUT, environment, keep_programs, last_line

PYTHON = CHECKOUT / ".venv-ecosystem/bin/python"

# A fixed part of optax's tests: files whose tests compile, trace and compute, each in other shares.
OPTAX = [
    *("_src/transform_test.py", "losses/_classification_test.py"),
    *("projections/_projections_test.py", "transforms/_accumulation_test.py"),
]

SCRIPTS = {"optax_tests": None, "flax_digits": "examples/ecosystem/flax_digits.py"}
PROGRAMS = {name: [f"libraries/{name}_{state}" for state in ("cold", "warm")] for name in SCRIPTS}


def write_command(name: str, impl: str) -> list[str]:
    """The command line of a program on `jax` or on `weft`."""
    run = [str(PYTHON), *(["-m", "weft"] if impl == "weft" else [])]
    if script := SCRIPTS[name]:
        return [*run, str(CHECKOUT / script)]
    (optax,) = (PYTHON.parents[1] / "lib").glob("python*/site-packages/optax")
    settings = ["-q", "-p", "no:cacheprovider", "-c", str(CHECKOUT / "tests/ecosystem/pytest.ini")]
    return [*run, "-m", "pytest", *settings, *(str(optax / file) for file in OPTAX)]


def time_program(name: str, impl: str) -> dict[str, float | str]:
    """Seconds of a program, cold and warm, or {"error": why there are none}."""
    if not PYTHON.exists():
        return {"error": "no environment of libraries. Hint: make .venv-ecosystem/.made"}
    found: dict[str, float | str] = {}
    with tempfile.TemporaryDirectory() as cache:
        variables = {
            **environment(cache),
            "JAX_PLATFORMS": "cpu",
            **(keep_programs(cache) if impl == "jax" else {}),
        }
        for case in PROGRAMS[name]:
            start = time.perf_counter()
            done = subprocess.run(
                write_command(name, impl), env=variables, cwd=cache, capture_output=True, text=True
            )
            found[case] = time.perf_counter() - start
            if done.returncode:
                return {"error": last_line(done.stdout + done.stderr)}
    return found
