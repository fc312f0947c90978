"""Run the tests of libraries written for JAX on weft and on JAX, and write docs/ecosystem.md.

    make test-ecosystem                        a sample of each, in an environment of its own
    make test-ecosystem ARGS=--all             all tests, some hours, and the page
    make test-ecosystem ARGS='optax mctx'      samples of some; with --all, all of theirs
    make test-ecosystem ARGS='--fresh optax'   what was run before again
    make test-ecosystem ARGS='--seconds 60'    as much as fits, on each side
    make test-ecosystem ARGS=--table           only write the page

A library's own tests run from its wheel or its source archive, and those of ours,
tests/ecosystem/test_LIBRARY.py: under the switch and on JAX at the same time, in one environment.
The sample is the same on both sides: tests whose names' checksums divide by a number. Results are
kept in .cache/ecosystem as they come, and a run goes on where the last one stopped. The exit status
is 1 if a library passes less than 99% of what it passes on JAX; after a sample, if a test fails for
which no reason is known.
"""

import argparse
import concurrent.futures
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

CHECKOUT = Path(__file__).resolve().parents[1]
SUITES = CHECKOUT / "tests/ecosystem"
KEPT = CHECKOUT / ".cache/ecosystem"
PAGE = CHECKOUT / "docs/ecosystem.md"
SITE = Path(np.__file__).parents[1]  # where libraries are installed
BAR = 0.99
TEST_SECONDS = 300  # that one test may take


class Suite(NamedTuple):
    """Tests of a library: in its `package`, in folder `tests` of its source archive, or ours."""

    library: str
    package: str = ""
    tests: str = ""
    environment: dict[str, str] = {}
    sample: int = 1  # one test of this many is in the sample

    @property
    def name(self) -> str:
        return self.library if self.package or self.tests else f"{self.library}*"


FLAX = {  # as its own tests/run_all_tests.sh sets it
    "JAX_NUMPY_RANK_PROMOTION": "raise",
    "FLAX_PROFILE": "1",
    "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
}
OF_LIBRARIES = [
    Suite("optax", "optax", sample=80),
    Suite("chex", "chex", sample=16),
    Suite("einops", "einops", environment={"EINOPS_TEST_BACKENDS": "numpy,jax"}, sample=2),
    Suite("mctx", "mctx", sample=6),
    Suite("dm-haiku", "haiku", sample=128),
    Suite("distrax", "distrax", sample=512),
    Suite("jraph", "jraph", sample=8),
    Suite("rlax", "rlax", sample=32),
    Suite("flax", tests="tests", environment=FLAX, sample=64),
]
OURS = {
    "equinox": 4,
    "jaxtyping": 1,
    "lineax": 8,
    "optimistix": 8,
    "diffrax": 24,
    "flax": 16,
    "orbax-checkpoint": 1,
    "treescope": 1,
    "examples": 6,
    "programs": 1,  # those whose libraries are installed: tests/ecosystem/programs
}
ALL = [*OF_LIBRARIES, *(Suite(library, sample=n) for library, n in OURS.items())]

# Files that are not tests, or cannot be installed here, with the reason.
LEFT_OUT = {
    "test_utils.py": "holds no tests",
    "jraph/ogb_examples/": "needs a data set of the network",
    "haiku/_src/integration/jax2tf_test.py": "needs TensorFlow",
    "haiku/_src/reshape_test.py": "needs TensorFlow",
    "haiku/_src/integration/checkpoint_test.py": "reads files that the wheel has not",
    "tests/tensorboard_test.py": "needs TensorBoard",
}

# Tests that cannot pass here, by a part of their name or message, and the reason. They count.
CANNOT = {
    "Fp8Test": "a dtype whose rules flax gives by private classes of JAX",
    "test_separate_opt_sharding": "set_mesh gives new arrays no devices of the mesh",
    "test_logical_rules": "set_mesh gives new arrays no devices of the mesh",
    **dict.fromkeys(
        (
            "test_vmap_and_cond_passthrough_error",
            "branch_structure_error",
            "rank_promotion_exc",
            "test_vmap_in_axes_different_size",
        ),
        "matches the text of an error of JAX",
    ),
    "JaxprInfoTest": "compares the operations and scopes of a derivative with those of JAX",
    "StatefulTest::test_remat": "a primitive without lowering, under checkpoint outside of jit",
    "SummaryTest": "compares the number of operations with that of JAX's programs",
}

# Files that set what a process can set only once, before it computes: each runs in its own.
ALONE = (
    *("fake_set_n_cpu_devices_test.py", "restrict_backends_test.py", "pop_art_test.py"),
    *("rational_quadratic_spline_float64_test.py", "normal_float64_test.py"),
    *("uniform_float64_test.py", "no_flax_test.py"),
)

HEAD = """# Libraries written for JAX

What `make test-ecosystem ARGS=--all` found: tests of libraries, unchanged, under the switch
([coming-from-jax.md](coming-from-jax.md)) and on JAX {jax}, in one environment. Where a wheel or a
source archive has tests, they are those; those with a * are ours, whose
numbers must also be equal. "Tests" counts all of the library that either side found, "run" those
that ran on both sides and did not skip themselves, and "both" those that pass on JAX and here; a
file that cannot be imported here counts with all tests that it has on JAX. "All here" says how many
passed of all that ran here, also where JAX's side, several times slower, was not run or cannot
import the file. Seconds are those of the processor in the tests that ran on both sides, without
the start of the process, with the programs that weft keeps on disk from earlier runs, if any.

| library | version | tests | run | passed here | passed on JAX | both | all here | s here | JAX |
|---|---|---|---|---|---|---|---|---|---|
"""

TAIL = """
## Further libraries

A program of each, by hand, printed the same here and on JAX, up to rounding and draws that are
weft's own ([random.md](random.md)):

- probability: numpyro, blackjax, flowjax, gpjax, dynamax, tinygp, bayex, distreqx 0.0.3, liesel
  0.2.8, PyMC 5.28 (`sample_numpyro_nuts`), NIFTy (`nifty8.re`), TensorFlow Probability's substrate
- physics: jax-md 0.2.29, jax-cosmo 0.1.0, brax 0.14.2 (environments), MuJoCo's MJX 3.17, exojax,
  s2fft, e3nn-jax, dynamiqs 0.3.7, jaxquantum 0.3.0, NetKet 3.23, PennyLane 0.45, quimb 1.15
- optimization: jaxopt, kfac-jax, evosax, QDax, qpax, mpax, optimagic 0.5.3, ott-jax, pyhf 0.7.6
- agents: pgx, gymnax, flashbax, jumanji 1.1.2, XLand-MiniGrid
- networks: Keras 3 (`KERAS_BACKEND=jax`), a transformer in flax's nnx, penzai, brainstate 0.5.4,
  DeepXDE 1.15
- arrays: quax, quadax, matfree, interpax, jaxlie, jaxwt 0.1.1, einshape 1.0, jax-dataclasses 1.6.3,
  PyTensor 2.38 (`mode="JAX"`), signax, simple-pytree, traceax

<!-- tests/ecosystem/programs -->
Programs with further libraries, one of each, as their first pages show them. Their numbers are
compared with JAX's, line by line, where the libraries are installed. What is known of them:

| library | version | program | here | numbers as on JAX |
|---|---|---|---|---|
| jax-tqdm | 0.4.0 | progress bars in scan and fori_loop | runs | yes |
| sparsejac | 0.2.0 | sparse Jacobians, forward and reverse | runs | yes |
| paramax | 0.0.5 | constrained parameters, their derivatives | runs | yes |
| sympy2jax | 0.0.8 | expressions of SymPy, trained | runs | yes |
| dm-pix | 0.4.5 | pictures changed and compared, derivatives | runs | not run on JAX |
| exponax | 0.2.0 | five equations in time, Jacobians of a step | runs | not run on JAX |
| folx | 0.2.30 | Laplacians, forward and sparse | runs | not run on JAX |
| gmmx | 0.7 | a mixture fitted by expectation and maximization | runs | not run on JAX |
| jaxkd | 0.1.2 | nearest neighbours by a tree | runs | yes |
| pytreeclass | 0.11.1 | classes that are trees, changed at places | runs | not run on JAX |
| qujax | 1.1.0 | a circuit, its energy and derivatives | runs | yes |

Not counted, since they have not been run on JAX: cola-ml 0.0.7 (plum finds `add` of operators
ambiguous), rax 0.4.0's `approx_t12n` (asks for `jax.util`) and jaxga 0.0.2 (`static_argnames` of a
name that is no argument) end with these errors here.

What does not run, and why:

- PennyLane: `jit` of a derivative of a QNode that shifts its parameters, where its `interface` is
  "auto": it asks whether `jnp.asarray([0])` is traced, which is a value here. Say
  `interface="jax-jit"`.
- Keras: `random.gamma`, `beta` and `binomial` draw other numbers than on JAX.
- quaxed, desc-opt: they copy JAX's private functions for vectorize and jacobians.
- flax's fp8: a dtype of a private class of JAX.
- On neither: bayeux-ml 0.1.15 and oryx 0.2.9 (`jax.util`), coax 0.1.13, fedjax 0.0.17 and sbijax
  0.3.4 (`jax.tree_map`), clu 0.0.12 (`clip(a_min=...)`), haliax 1.3 (private names), jaxfit 0.0.5
  (`jax.config` as a module), jaxls 2024.0.1 (`jax.core.JaxprEqn`), PPO of brax 0.14.2
  (`jax.device_put_replicated`).

## Whole programs

<!-- bench/libraries.py -->
Two are timed from the start of the process to its end. Seconds of the processor,
on two shared cores, the least of two to six runs, with nothing compiled on disk (cold) and with
what that run has left (warm):

| program | cold here | on JAX | warm here | on JAX |
|---|---|---|---|---|
| four files of optax's tests | 31.5 | 79.1 | 6.7 | 25.5 |
| `examples/ecosystem/flax_digits.py` | 4.8 | 8.2 | 2.4 | 3.6 |

Cold, most of it is XLA compiling: of the tests 27 seconds, for 850 programs here and 1091 on JAX,
most of them one operation on a few numbers. Of jaxlib 0.10's two ways to write loops, weft takes
for programs on at most 4096 elements the one that compiles in half the time. Warm, XLA reads the
programs in 3.0 seconds, imports and pytest take 1.3, and tracing and lowering the rest. Of the
script's 2.4 seconds, 0.9 import scikit-learn, 0.5 NumPy, jaxlib, optax and flax, all of which
JAX's process does too; 0.15 are weft's import, 0.65 the 220 steps, in flax's own Python and XLA's
work, and 0.35 tracing, lowering and reading 18 programs.
"""


def load_record():
    """The plugin, for what reads its files."""
    os.environ.setdefault("ECOSYSTEM_RESULTS", os.devnull)
    spec = importlib.util.spec_from_file_location("record", SUITES / "record.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


record = load_record()


def fetch_source(library: str) -> Path:
    """The folder of a library's source archive, from the index at its first use."""
    version = importlib.metadata.version(library)
    folder = KEPT / "sources" / f"{library}-{version}"
    if not folder.exists():
        fetched = KEPT / "sources/fetched"
        fetched.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary"]
        subprocess.run([*command, library, f"{library}=={version}"], cwd=fetched, check=True)
        (archive,) = fetched.glob("*.tar.gz")
        with tarfile.open(archive) as file:
            file.extractall(fetched, filter="data")
        archive.unlink()
        (unpacked,) = fetched.iterdir()
        unpacked.rename(folder)
    return folder


def find_tests(suite: Suite) -> tuple[Path, list[Path]]:
    """The folder that names of a suite's tests start from, and its files."""
    if not suite.package and not suite.tests:
        return SUITES, sorted(SUITES.glob(f"test_{suite.library.split('-')[0]}*.py"))
    root = fetch_source(suite.library) if suite.tests else SITE
    folder = root / (suite.tests or suite.package)
    files = sorted({*folder.rglob("*_test.py"), *folder.rglob("test_*.py")})
    return root, [file for file in files if not any(part in str(file) for part in LEFT_OUT)]


def find_results(suite: Suite, mode: str) -> Path:
    return KEPT / f"{suite.name.replace('*', '.ours')}.{mode}.jsonl"


def list_commands(suite: Suite, mode: str) -> Iterator[list[str]]:
    """Yield the commands that run a suite, in the number of processes that it needs."""
    root, files = find_tests(suite)
    together = [file for file in files if file.name not in ALONE]
    for group in [together, *([file] for file in files if file not in together)]:
        command = [sys.executable, *(["-m", "weft"] if mode == "weft" else []), "-m", "pytest"]
        command += ["-c", SUITES / "pytest.ini", "--rootdir", root, "-p", "record", "-q"]
        command += ["-p", "no:cacheprovider", "--tb=short", "--continue-on-collection-errors"]
        command += [f"--timeout={TEST_SECONDS}", "--timeout-method=thread"]
        command += ["--import-mode=importlib"] if suite.tests else []
        if group:
            yield [*map(str, command), *map(str, group)]


def run_tests(suite: Suite, mode: str, args: argparse.Namespace) -> None:
    """Run the remaining tests of a suite, on weft or on JAX, for about `args.seconds`."""
    results = find_results(suite, mode)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{CHECKOUT / 'src'}:{SUITES}",
        "ECOSYSTEM_RESULTS": str(results),
        "ECOSYSTEM_ONE_IN": str(args.one_in or (1 if args.all else suite.sample)),
        "WEFT_CACHE_DIR": str(KEPT / "programs"),
        "JAX_PLATFORMS": "cpu",
        **suite.environment,
    }
    environment.pop("WEFT_AS_JAX", None)
    work = KEPT / f"work.{mode}/run"  # tests write files where they run, and read ../PACKAGE/...
    shutil.rmtree(work.parent, ignore_errors=True)
    work.mkdir(parents=True)
    if suite.package:
        (work.parent / suite.package).symlink_to(SITE / suite.package)
    end = time.monotonic() + args.seconds
    for command in list_commands(suite, mode):
        stopped = True
        while stopped and (left := end - time.monotonic()) > 0:  # after a test stopped it, the rest
            before = count_stopped(results)
            command_now = [*command, f"--session-timeout={left:.0f}"]
            with open(results.with_suffix(".log"), "a") as log:
                subprocess.run(command_now, env=environment, cwd=work, stdout=log, stderr=log)
            stopped = count_stopped(results) > before


def count_stopped(results: Path) -> int:
    """Return the number of tests that ended their process."""
    return sum(line["outcome"] == "stopped" for line in record.read_results(results).values())


def compare(suite: Suite) -> dict:
    """Compare the tests that ran on both sides."""
    here, there = (record.read_results(find_results(suite, mode)) for mode in ("weft", "jax"))
    tests = [name for name, line in there.items() if line["outcome"] != "error"]
    for name in tests:  # of a file that only JAX could import
        error = here.get(name.split("::")[0], {})
        if name not in here and error.get("outcome") == "error":
            here[name] = {**error, "seconds": 0}
    ran = [name for name in tests if is_run(here.get(name)) and is_run(there[name])]
    ran = [name for name in ran if {here[name]["outcome"], there[name]["outcome"]} != {"skipped"}]
    failed = {}
    for name in ran:
        a, b = here[name], there[name]
        if b["outcome"] == "passed" and a["outcome"] != "passed":
            failed[name] = a["why"] or a["outcome"]
        elif b["outcome"] == "passed" and not agree(a["values"], b["values"]):
            failed[name] = "the numbers differ from those of JAX"
    good = [sum(side[name]["outcome"] == "passed" for name in ran) for side in (here, there)]
    seconds = [sum(side[name]["seconds"] for name in ran) for side in (here, there)]
    ends = [x["outcome"] for name, x in here.items() if "::" in name]
    alone = f"{ends.count('passed')} of {len(ends) - ends.count('listed') - ends.count('skipped')}"
    lone = {
        name: x["why"]
        for name, x in here.items()
        if "::" in name and x["outcome"] in ("failed", "stopped") and not is_run(there.get(name))
    }
    found = dict(tests=len(tests), ran=len(ran), good=good, seconds=seconds, failed=failed)
    return {**found, "alone": alone, "lone": lone}


def find_reason(test: str, error: str) -> str:
    """Why a test cannot pass here; empty if it should."""
    return next((CANNOT[part] for part in CANNOT if part in test or part in error), "")


def group_failures(name: str, failed: dict[str, str]) -> str:
    """Lines of the page: the tests of a suite that failed, by the reason why."""
    alike: dict[str, list[str]] = {}
    for test, error in failed.items():
        reason = find_reason(test, error) or f"`{error.replace('`', '')}`"
        alike.setdefault(reason, []).append(f"`{test.split('/')[-1]}`")
    return "".join(f"- {name}: {reason}: {', '.join(tests)}\n" for reason, tests in alike.items())


def is_run(line: dict | None) -> bool:
    return line is not None and line["outcome"] != "listed"


def agree(a: list, b: list) -> bool:
    """Return True if recorded arrays have equal types and close numbers."""
    if [kind for kind, _ in a] != [kind for kind, _ in b]:
        return False
    return all(is_near(x, y, dtype, rtol) for ((dtype, _, rtol), x), (_, y) in zip(a, b))


def is_near(x: list, y: list, dtype: str, rtol: float | None) -> bool:
    if rtol is None:
        rtol = {"float64": 1e-7, "complex128": 1e-7, "float32": 1e-4, "complex64": 1e-4}.get(dtype)
    if rtol is None:
        rtol = 2e-2 if "float" in dtype else 0
    largest = max((abs(v) for v in y if np.isfinite(v)), default=0.0)
    largest = max(largest, 1e-3)  # derivatives that are zero up to rounding
    return np.allclose(x, y, rtol=rtol, atol=rtol * largest, equal_nan=True)


def make_page(sampled: bool) -> tuple[str, bool]:
    """Return the table of all cached results, and True if every library meets the bar.

    A sample may have a larger part of the tests that cannot pass; they are not failures there.
    """
    text = HEAD.format(jax=importlib.metadata.version("jax"))
    why, lone, met = "", "", True
    for suite in ALL:
        found = compare(suite)
        if not found["ran"]:
            continue
        plain = suite.library in ("examples", "programs")
        version = "" if plain else importlib.metadata.version(suite.library)
        both = found["good"][1] - len(found["failed"])
        share = both / max(found["good"][1], 1)
        new = [test for test, error in found["failed"].items() if not find_reason(test, error)]
        met &= not new if sampled else share >= BAR
        text += f"| {suite.name} | {version} | {found['tests']} | {found['ran']} "
        text += f"| {found['good'][0]} | {found['good'][1]} | {both} ({share:.1%}) "
        text += "| {} | {:.0f} | {:.0f} |\n".format(found["alone"], *found["seconds"])
        why += group_failures(suite.name, found["failed"])
        lone += group_failures(suite.name, found["lone"])
    if why:
        text += f"\n## What passes on JAX and not here\n\n{why}"
    if lone:
        text += f"\n## What fails here and did not run on JAX\n\n{lone}"
    left = "".join(f"- `{name}`: {reason}\n" for name, reason in LEFT_OUT.items())
    return f"{text}\n## What is left out\n\n{left}{TAIL}", met


def main() -> None:
    libraries = {suite.library: None for suite in ALL}
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", default=list(libraries))
    parser.add_argument("--all", action="store_true", help="all tests, and write the page")
    parser.add_argument("--fresh", action="store_true", help="forget what was found before")
    parser.add_argument("--seconds", type=float, default=7200, help="for a library on one side")
    parser.add_argument("--one-in", type=int, default=0, help="run one test of so many")
    parser.add_argument("--table", action="store_true", help="only write the page")
    parser.add_argument("--sides", nargs="*", choices=["weft", "jax"], default=["weft", "jax"])
    args = parser.parse_args()
    if unknown := set(args.libraries) - set(libraries):
        parser.error(f"no such library: {', '.join(sorted(unknown))}")
    KEPT.mkdir(parents=True, exist_ok=True)
    chosen = [suite for library in args.libraries for suite in ALL if suite.library == library]
    for suite in () if args.table else chosen:
        begin = time.monotonic()
        if args.fresh:
            for mode in args.sides:
                find_results(suite, mode).unlink(missing_ok=True)
        find_tests(suite)  # which may fetch them
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(lambda mode, suite=suite: run_tests(suite, mode, args), args.sides))
        print(f"{suite.name}: {time.monotonic() - begin:.0f} s", flush=True)
    text, met = make_page(not (args.all or args.table))
    print(text)
    if args.all or args.table:
        PAGE.write_text(text)
    sys.exit(not met)


if __name__ == "__main__":
    main()
