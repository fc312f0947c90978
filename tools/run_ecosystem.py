"""Run the tests of libraries written for JAX on weft and on JAX, and write docs/ecosystem.md.

    make test-ecosystem                        all, in an environment of its own
    make test-ecosystem ARGS='optax mctx'      some
    make test-ecosystem ARGS='--fresh optax'   what was run before again
    make test-ecosystem ARGS='--seconds 60'    as much as fits, on each side
    make test-ecosystem ARGS=--table           only write the page

A library's own tests run where its wheel has them, else ours, tests/ecosystem/test_LIBRARY.py;
once under the switch and once on JAX, in one environment. Results are kept in .cache/ecosystem as
they come, and a run goes on where the last one stopped. The exit status is 1 if a library passes
less than 99% of what it passes on JAX.
"""

import argparse
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

CHECKOUT = Path(__file__).resolve().parents[1]
SUITES = CHECKOUT / "tests/ecosystem"
KEPT = CHECKOUT / ".cache/ecosystem"
PAGE = CHECKOUT / "docs/ecosystem.md"
SITE = Path(np.__file__).parents[1]  # where libraries are installed
BAR = 0.99

# A library's name in the index, and the folder of its package; None where the tests are ours.
LIBRARIES = {
    "optax": "optax",
    "chex": "chex",
    "einops": "einops",
    "mctx": "mctx",
    "dm-haiku": "haiku",
    "distrax": "distrax",
    "jraph": "jraph",
    "rlax": "rlax",
    "orbax-checkpoint": None,
    "equinox": None,
    "jaxtyping": None,
    "lineax": None,
    "optimistix": None,
    "diffrax": None,
    "flax": None,
    "treescope": None,
    "examples": None,
}

# Files that are no tests, or need what cannot be installed here: with the reason.
LEFT_OUT = {
    "test_utils.py": "holds no tests",
    "jraph/ogb_examples/": "needs a data set of the network",
    "haiku/_src/integration/jax2tf_test.py": "needs TensorFlow",
}

# Files that set what a process can set only once, before it computes: each runs in its own.
ALONE = ("fake_set_n_cpu_devices_test.py", "restrict_backends_test.py")

HEAD = """# Libraries written for JAX

What `make test-ecosystem` found: tests of libraries, unchanged, under the switch
([coming-from-jax.md](coming-from-jax.md)) and on JAX {jax}, in one environment. Where a wheel has
tests, they are those; where it has none (*), they are the suite in `tests/ecosystem/`, whose
numbers must also be equal. "Run" counts the tests that ran on both sides and did not skip
themselves, "both" those that pass on JAX and here. Seconds are those of the processor in the tests,
without the start of the process, with the programs that weft keeps on disk from earlier runs, if
there were any{part}.

| library | version | run | passed here | passed on JAX | both | seconds here | on JAX |
|---|---|---|---|---|---|---|---|
"""


def load_record():
    """The plugin, for what reads its files."""
    os.environ.setdefault("ECOSYSTEM_RESULTS", os.devnull)
    spec = importlib.util.spec_from_file_location("record", SUITES / "record.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find_tests(library: str) -> list[Path]:
    """The files of tests of a library: in its package, or ours."""
    package = LIBRARIES[library]
    if package is None:
        return [SUITES / f"test_{library.split('-')[0]}.py"]
    files = [*(SITE / package).rglob("*_test.py"), *(SITE / package).rglob("test_*.py")]
    return sorted(file for file in set(files) if not any(part in str(file) for part in LEFT_OUT))


def run_tests(library: str, mode: str, args: argparse.Namespace) -> None:
    """Run what is left of a library's tests, on weft or on JAX, for at most `args.seconds`."""
    files = [file for file in find_tests(library) if file.exists()]
    together = [file for file in files if file.name not in ALONE]
    root = SUITES if LIBRARIES[library] is None else SITE
    environment = {
        **os.environ,
        "PYTHONPATH": f"{CHECKOUT / 'src'}:{SUITES}",
        "ECOSYSTEM_RESULTS": str(KEPT / f"{library}.{mode}.jsonl"),
        "ECOSYSTEM_ONE_IN": str(args.one_in),
        "WEFT_CACHE_DIR": str(KEPT / "programs"),
        "EINOPS_TEST_BACKENDS": "numpy,jax",
        "JAX_PLATFORMS": "cpu",
    }
    environment.pop("WEFT_AS_JAX", None)
    end = time.monotonic() + args.seconds
    for group in [together, *([file] for file in files if file not in together)]:
        command = [sys.executable, *(["-m", "weft"] if mode == "weft" else []), "-m", "pytest"]
        command += ["-c", SUITES / "pytest.ini", "--rootdir", root, "-p", "record", "-q"]
        command += [
            "-p",
            "no:cacheprovider",
            "--tb=short",
            "--continue-on-collection-errors",
            *group,
        ]
        work = KEPT / "work"  # tests write files where they run
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        for _ in range(5 if group else 0):  # after a crash, the rest
            left = end - time.monotonic()
            with open(KEPT / f"{library}.{mode}.log", "a") as log:
                process = subprocess.Popen(
                    list(map(str, command)), env=environment, cwd=work, stdout=log, stderr=log
                )
                try:
                    code = process.wait(timeout=max(left, 1))
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    code = None
            if code is None or code >= 0:
                break


def compare(library: str, record) -> dict:
    """What ran on both sides, and what does not agree."""
    sides = [record.read_results(KEPT / f"{library}.{mode}.jsonl") for mode in ("weft", "jax")]
    here, there = sides
    names = [name for name in there if name in here]
    ran = [name for name in names if {here[name]["outcome"], there[name]["outcome"]} != {"skipped"}]
    failed = {}
    for name in ran:
        a, b = here[name], there[name]
        if b["outcome"] == "passed" and a["outcome"] != "passed":
            failed[name] = a["why"] or a["outcome"]
        elif b["outcome"] == "passed" and not agree(a["values"], b["values"]):
            failed[name] = "the numbers differ from those of JAX"
    good = [sum(side[name]["outcome"] == "passed" for name in ran) for side in sides]
    seconds = [sum(side[name]["seconds"] for name in ran) for side in sides]
    return dict(ran=len(ran), good=good, seconds=seconds, failed=failed)


def agree(a: list, b: list) -> bool:
    return len(a) == len(b) and all(
        len(x) == len(y) and np.allclose(x, y, rtol=1e-3, atol=1e-5, equal_nan=True)
        for x, y in zip(a, b)
    )


def write_page(part: str) -> bool:
    """Write the table from all results that are kept; whether every library meets the bar."""
    record = load_record()
    text = HEAD.format(jax=importlib.metadata.version("jax"), part=part)
    why, met = "", True
    for library in LIBRARIES:
        found = compare(library, record)
        if not found["ran"]:
            continue
        ours = LIBRARIES[library] is None
        version = "" if library == "examples" else importlib.metadata.version(library)
        both = found["good"][1] - len(found["failed"])
        share = both / max(found["good"][1], 1)
        met &= share >= BAR
        text += f"| {library}{'*' if ours else ''} | {version} | {found['ran']} "
        text += f"| {found['good'][0]} | {found['good'][1]} | {both} ({share:.1%}) "
        text += "| {:.0f} | {:.0f} |\n".format(*found["seconds"])
        for name, reason in found["failed"].items():
            why += f"- {library}: `{name.split('/')[-1]}`: `{reason.replace('`', '')}`\n"
    if why:
        text += f"\n## What passes on JAX and not here\n\n{why}"
    left = "".join(f"- `{name}`: {reason}\n" for name, reason in LEFT_OUT.items())
    PAGE.write_text(f"{text}\n## What is left out\n\n{left}")
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", default=list(LIBRARIES))
    parser.add_argument("--fresh", action="store_true", help="forget what was found before")
    parser.add_argument("--seconds", type=float, default=7200, help="for a library on one side")
    parser.add_argument("--one-in", type=int, default=1, help="run one test of so many")
    parser.add_argument("--table", action="store_true", help="only write the page")
    parser.add_argument("--sides", nargs="*", choices=["weft", "jax"], default=["weft", "jax"])
    args = parser.parse_args()
    if unknown := set(args.libraries) - set(LIBRARIES):
        parser.error(f"no such library: {', '.join(sorted(unknown))}")
    KEPT.mkdir(parents=True, exist_ok=True)
    for library in () if args.table else args.libraries:
        for mode in args.sides:
            if args.fresh:
                (KEPT / f"{library}.{mode}.jsonl").unlink(missing_ok=True)
            print(f"{library} on {mode} ...", flush=True)
            run_tests(library, mode, args)
    part = f"; of large libraries, one test in {args.one_in}, as far as the time given went"
    part = "" if args.one_in == 1 else part
    met = write_page(part)
    print(PAGE.read_text())
    sys.exit(not met)


if __name__ == "__main__":
    main()
