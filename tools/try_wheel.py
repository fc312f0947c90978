"""Install a wheel as a stranger would, and run tests of the kernels from it: `make try-wheel`.

The environment is new, HOME is an empty folder, and PATH has only the environment's own programs,
so that there is no compiler. pip's cache is the user's. Arguments after the wheel go to pytest.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ("tests/cpu", "tests/test_tiny.py", "tests/test_command.py")
NEEDED = ("hypothesis", "mpmath", "pytest", "pytest-xdist")


def try_wheel(wheel: Path, python: str, tests: list[str]) -> int:
    """Install a wheel with an interpreter, run tests from it, and return pytest's status."""
    with tempfile.TemporaryDirectory() as folder:
        home, venv = Path(folder, "home"), Path(folder, "venv")
        home.mkdir()
        cache = subprocess.run(
            [sys.executable, "-m", "pip", "cache", "dir"], capture_output=True, text=True
        ).stdout.strip()
        kept = {k: v for k, v in os.environ.items() if k.startswith("PIP_") or k == "SSL_CERT_FILE"}
        env = {**kept, "HOME": str(home), "PATH": str(venv / "bin"), "PIP_CACHE_DIR": cache}

        def run(*command: str | Path) -> None:
            before = time.monotonic()
            subprocess.run([str(c) for c in command], env=env, cwd=ROOT, check=True)
            print(f"try_wheel: {time.monotonic() - before:.1f} s: {' '.join(map(str, command))}")

        subprocess.run([python, "-m", "venv", str(venv)], check=True)
        run(venv / "bin" / "pip", "install", "-q", wheel)
        size = sum(f.stat().st_size for f in (venv / "lib").rglob("weft/**/*") if f.is_file())
        print(f"try_wheel: the wheel has {wheel.stat().st_size:,} bytes, installed {size:,}")
        run(venv / "bin" / "weft", "env")
        run(venv / "bin" / "pip", "install", "-q", *NEEDED)
        # The tests import weft from the environment: pyproject.toml would have them use src/.
        where = "import weft; assert 'site-packages' in weft.__file__, weft.__file__"
        run(venv / "bin" / "python", "-c", where)
        command = [str(venv / "bin" / "python"), "-m", "pytest", "-q", "-o", "pythonpath=.", *tests]
        return subprocess.run(command, env=env, cwd=ROOT).returncode


def main() -> int:
    """Try the wheel that the command line names; return the exit status."""
    parser = argparse.ArgumentParser(description="Install a wheel, and run tests from it.")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", default=sys.executable, help="the interpreter")
    args, rest = parser.parse_known_args()
    return try_wheel(args.wheel.resolve(), args.python, rest or list(TESTS))


if __name__ == "__main__":
    sys.exit(main())
