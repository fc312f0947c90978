"""Plant small faults in the package, one at a time, and count how many the tests notice.

    .venv/bin/python -m pip install coverage
    .venv/bin/python tools/plant_faults.py --count 200 --seed 0 --out faults.jsonl

A fault is one operator, comparison, constant or condition changed, or one statement dropped. They
are drawn from all of `src/weft` by the seed, and each is planted in a copy of the checkout. Noticed
means that the tests of the file's mirror, the tables of all functions for users, the conformance
suite below `api/`, or the texts of programs and refusals up to it, fail or do not end in time.
Faults that pass are printed with their line; whether such a fault changes anything that can be
observed is for a person to say.

The tests that run the changed line are asked first, the quickest of them before the others. Which
they are is found out once, by running a mirror with coverage, and kept in `.cache/faults` while the
files and the tests are the same; a mirror that one fault alone asks is run as it is. Each fault is
tried in a fork of a process that has imported what weft imports. What is drawn is tried in that
order: the report of a run that is stopped is a drawing of fewer.
"""

import argparse
import ast
import collections
import concurrent.futures
import contextlib
import hashlib
import importlib
import json
import multiprocessing
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import coverage
import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGE = CHECKOUT / "src/weft"
KEPT = CHECKOUT / ".cache/faults"
# A row for each primitive, for each as a power series, for each operation that refuses operands,
# and what rules write.
CONFORMANCE = (
    "tests/primitives/test_conformance.py", "tests/experimental/test_jet_primitives.py",
    "tests/primitives/test_errors.py", "tests/primitives/test_rules.py",
)  # fmt: skip
# Tests of the errors of functions of api/, and of the programs that transformations make.
TEXTS = ("tests/api/test_refusals.py", "tests/transforms/test_texts.py")
CONFORMING = ("core/", "passes/", "xla/", "primitives/", "transforms/", "control/", "dtypes.py")
SIGNATURES = ("tests/test_signatures.py", "tests/test_calls.py")  # of all functions for users

# Modules that tests import besides weft, imported once: none of them starts a thread.
HEAVY = """
numpy numpy.testing ml_dtypes jaxlib._jax opt_einsum scipy.linalg scipy.special scipy.stats
scipy.signal scipy.optimize scipy.integrate scipy.interpolate scipy.ndimage scipy.sparse.linalg
scipy.spatial.transform scipy.cluster.vq scipy.fft mpmath hypothesis _pytest.assertion.rewrite
"""

# Each with a similar one: a fault that is easy to make and hard to see.
BINARY = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "*",
    ast.Pow: "*", ast.LShift: ">>", ast.RShift: "<<", ast.BitOr: "&", ast.BitAnd: "|",
    ast.BitXor: "|",
}  # fmt: skip
COMPARISONS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip

UNSEEN = ("strict", "slots", "maxsize")  # arguments that change nothing in a program that is right


class Fault(NamedTuple):
    """A piece of a file's text, by offsets in bytes, and what replaces it."""

    file: str
    line: int
    lines: tuple[int, int]  # the first and last of it, and of the statement that it is in
    statement: tuple[int, int]
    start: int
    end: int
    text: str
    inside: bool  # a function: it does not run when the file is imported


def list_faults(file: Path) -> Iterator[Fault]:
    """Yield every fault that can be planted in a file; annotations and texts are not changed."""
    source = file.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def span(node: ast.AST) -> tuple[int, int]:
        return (
            starts[node.lineno - 1] + node.col_offset,
            starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def text(node: ast.AST) -> str:
        start, end = span(node)
        return source[start:end].decode()

    def visit(node: ast.AST, inside: bool, statement: tuple[int, int] = (0, 0)) -> Iterator[Fault]:
        def replace(node: ast.AST, new: str) -> Fault:
            place, lines = str(file.relative_to(PACKAGE)), (node.lineno, node.end_lineno)
            return Fault(place, node.lineno, lines, statement, *span(node), new, inside)

        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            statement = (node.lineno, body[0].lineno - 1 if body else node.end_lineno)

        match node:
            case ast.keyword(arg) if arg in UNSEEN:
                return
            case ast.BinOp(left, op, right) if inside and type(op) in BINARY:
                yield replace(node, f"({text(left)}) {BINARY[type(op)]} ({text(right)})")
            case ast.Compare(left, [op], [right]):
                yield replace(node, f"({text(left)}) {COMPARISONS[type(op)]} ({text(right)})")
            case ast.BoolOp(op, values):
                word = " or " if isinstance(op, ast.And) else " and "
                yield replace(node, "(" + word.join(f"({text(v)})" for v in values) + ")")
            case ast.UnaryOp(ast.USub() | ast.Not() | ast.Invert(), operand):
                yield replace(node, f"({text(operand)})")
            case ast.Constant(bool() as value):
                yield replace(node, str(not value))
            case ast.Constant(int() as value) if inside:
                yield replace(node, f"({value + 1})")
            case ast.If(test) | ast.IfExp(test) | ast.While(test):
                yield replace(test, f"(not ({text(test)}))")
            case ast.Expr(ast.Call() | ast.Await()) | ast.AugAssign() | ast.Raise() if inside:
                yield replace(node, "pass")
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                    yield from visit(
                        child, inside or isinstance(node, ast.FunctionDef | ast.Lambda), statement
                    )

    yield from visit(ast.parse(source), False)


def find_tests() -> dict[str, list[str]]:
    """The test files of each file of the package, as tests/test_house.py states them."""
    house = ast.parse((CHECKOUT / "tests/test_house.py").read_text())  # imports weft: only read
    only, also = [
        {home: files.split() for home, files in ast.literal_eval(node.value).items()}
        for node in house.body
        if isinstance(node, ast.Assign) and "TESTED_IN" in ast.unparse(node.targets[0])
    ]
    found = {}
    for file in PACKAGE.rglob("*.py"):
        place = file.relative_to(PACKAGE)
        name = f"test_{place.name}"
        homes = [home for home, files in only.items() if str(place) in files]
        homes = homes or [place.with_name(name), Path("parallel/on8", name)]
        homes += [home for home, files in also.items() if str(place) in files]
        found[str(place)] = [f"tests/{h}" for h in homes if (CHECKOUT / "tests" / h).exists()]
    return {place: homes for place, homes in found.items() if homes}


class Asked:
    """A plugin of pytest: runs only some tests, in order, and records the lines that each runs."""

    def __init__(self, tests: list[str] | None = None, tracer: coverage.Coverage | None = None):
        self.tests, self.tracer = tests, tracer
        self.failed: list[str] = []
        self.seconds: dict[str, float] = {}
        self.starting: set[str] = set()  # tests that start a process, which may run anything
        self.now = ""

    def pytest_configure(self) -> None:
        del os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.tests is not None:
            place = {test: i for i, test in enumerate(self.tests)}
            items[:] = [item for item in items if item.nodeid in place]
            items.sort(key=lambda item: place[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.now = nodeid
        self.seconds[nodeid] = time.process_time()
        if self.tracer:
            self.tracer.switch_context(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.seconds[nodeid] = round(time.process_time() - self.seconds[nodeid], 3)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def watch(self, event: str, _: tuple) -> None:
        if event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
            self.starting.add(self.now)


class Copy:
    """A copy of the checkout for planting faults, one at a time."""

    def __init__(self, root: Path):
        self.root = root
        left_out = shutil.ignore_patterns(".*", "__pycache__", "out")
        shutil.copytree(CHECKOUT, root, ignore=left_out)

    def run_child(self, tests: str, work: Callable[[], object], cpu: float) -> object:
        """Return the result of `work` in a new process, or None if it does not end in time."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.setsid()
            log = os.open(self.root / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1), os.dup2(log, 2)
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu), int(cpu)))
            os.chdir(self.root)
            os.environ["PYTHONPATH"] = str(self.root / "src")
            os.environ.setdefault("WEFT_CACHE_DIR", str(KEPT / "programs"))
            if "/on8/" in tests:
                os.environ["WEFT_TEST_DEVICES"] = "8"
            try:
                result = json.dumps(work()).encode()
                with os.fdopen(writing, "wb") as pipe:
                    pipe.write(result)
            finally:
                os._exit(0)
        os.close(writing)
        result, until = b"", time.monotonic() + 60 + 6 * cpu
        while select.select([reading], [], [], max(0, until - time.monotonic()))[0]:
            if not (part := os.read(reading, 1 << 20)):
                break
            result += part
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # and what the tests have started
        os.waitpid(child, 0)
        return json.loads(result) if result else None

    def trace(self, tests: str, files: Iterable[str]) -> dict | None:
        """Return the lines of the package that each test of a file runs, and its seconds.

        None if the tests do not end. Tests that fail without a fault are not used.

        Cached results are valid as long as the tests and `files` are unchanged.
        """
        kept = KEPT / (tests.replace("/", "-") + ".json")
        if kept.exists():
            result = json.loads(kept.read_text())
            now = {file: digest(PACKAGE / file) for file in files}
            then = {file: result["lines"].get(file, {}).get("digest", now[file]) for file in now}
            if result["digest"] == digest_tests(tests) and now == then:
                return result

        def work() -> dict:
            package = f"{self.root}/src/weft/"
            tracer = coverage.Coverage(data_file=None, source=[package], config_file=False)
            asked = Asked(tracer=tracer)
            sys.addaudithook(asked.watch)
            tracer.start()
            status = run_pytest(tests, asked)
            tracer.stop()
            data, lines = tracer.get_data(), {}
            number = {test: i for i, test in enumerate(asked.seconds)}
            for file in data.measured_files():
                place = file.removeprefix(package)
                found = data.contexts_by_lineno(file)
                by = {line: [number.get(test, -1) for test in by] for line, by in found.items()}
                lines[place] = {"digest": digest(Path(file)), **by}
            starting = sorted(number[test] for test in asked.starting if test in number)
            return {
                "status": int(status),
                "failed": asked.failed,
                "digest": digest_tests(tests, self.root),
                "seconds": asked.seconds,
                "starting": starting,
                "lines": lines,
            }

        result = self.run_child(tests, work, 3600)
        if not result or result["failed"] or result["status"] != 0:
            log = (self.root / "log").read_text(errors="replace")[-3000:]
            print(f"{tests} should pass before faults are planted\n{log}", flush=True)
        if not result:
            return None
        KEPT.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(result))
        return result

    def ask(self, tests: str, chosen: list[str] | None, cpu: float) -> str | None:
        """The test of a file that fails, of those chosen; None if all pass."""

        def work() -> list:
            sys.dont_write_bytecode = True
            asked = Asked(chosen)
            status = run_pytest(tests, asked)
            return [int(status), *asked.failed, ""]

        status, failed, *_ = self.run_child(tests, work, cpu) or (-1, "")
        if status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return None
        return failed or f"{tests}: {'no end' if status < 0 else status}"

    def try_fault(
        self, fault: Fault, plan: list[tuple[str, list[str] | None, float]]
    ) -> str | None:
        """The test that notices a fault, or None."""
        file = self.root / "src/weft" / fault.file
        source, stat = file.read_bytes(), file.stat()
        planted = source[: fault.start] + fault.text.encode() + source[fault.end :]
        ast.parse(planted)
        file.write_bytes(planted)
        try:
            asked = (self.ask(tests, chosen, 30 + 4 * seconds) for tests, chosen, seconds in plan)
            return next((by for by in asked if by), None)
        finally:
            file.write_bytes(source)
            os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def run_pytest(tests: str, asked: Asked) -> int:
    sys.argv = ["pytest"]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # that asked.pytest_configure takes back
    stop = [] if asked.tests is None and asked.tracer else ["-x"]
    return pytest.main(["-q", "-p", "no:cacheprovider", "--tb=line", *stop, tests], [asked])


def digest(*files: Path) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def digest_tests(tests: str, root: Path = CHECKOUT) -> str:
    rows = sorted(root.glob("tests/primitives/cases*.py")) if tests in CONFORMANCE else []
    return digest(root / tests, *rows)


def choose_tests(fault: Fault, run: dict) -> tuple[list[str], float]:
    """The tests of a file that run a fault's line, the quickest first, and their seconds.

    Tests that start processes are among them if none else runs it, and all are if it is run when
    the package is imported.
    """
    names = list(run["seconds"])
    lines = run["lines"].get(fault.file, {})
    ran = lambda first, last: {i for n in range(first, last + 1) for i in lines.get(str(n), ())}
    by = ran(*fault.lines) or ran(*fault.statement)  # a constant has no line where it is folded
    if by == {-1} or not fault.inside:  # a file may be imported by the first test that needs it
        by = set(range(len(names)))
    by = by - {-1} or set(run["starting"])
    chosen = sorted({names[i] for i in by} - {*run["failed"]}, key=run["seconds"].get)
    return chosen, sum(run["seconds"][name] for name in chosen)


def choose_others(chosen: list[str], run: dict) -> tuple[list[str], float]:
    """The tests of a file that are not among those chosen, and their seconds."""
    others = [t for t in run["seconds"] if t not in {*chosen, *run["failed"]}]
    return others, sum(run["seconds"][name] for name in others)


COPY: Copy  # of the process that forks


def make_copy(folder: str) -> None:
    global COPY
    # A shell starts what runs in the background with Ctrl-C ignored; tests interrupt themselves.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    COPY = Copy(Path(folder) / str(os.getpid()))
    for name in HEAVY.split():
        importlib.import_module(name)


def trace(tests: str, files: set[str]) -> dict | None:
    return COPY.trace(tests, files)


def try_one(fault: Fault, plan: list) -> tuple[Fault, str | None, float]:
    start = time.monotonic()
    return fault, COPY.try_fault(fault, plan), round(time.monotonic() - start, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="faults to plant")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing of faults")
    parser.add_argument("--jobs", type=int, default=2, help="copies that run side by side")
    parser.add_argument("--only", nargs="*", default=[""], help="draw from files that begin so")
    parser.add_argument("--again", type=Path, help="a report: plant what passed there instead")
    parser.add_argument("--skip", nargs="*", default=[], help="files not to draw from")
    parser.add_argument(
        "--out", type=Path, default=Path("faults.jsonl"), help="the report, a fault a line"
    )
    options = parser.parse_args()

    homes = find_tests()
    files = [
        f for f in sorted(homes) if f.startswith(tuple(options.only)) and f not in options.skip
    ]
    everything = [fault for file in files for fault in list_faults(PACKAGE / file)]
    drawn = random.Random(options.seed).sample(everything, min(options.count, len(everything)))
    if options.again:
        rows = map(json.loads, options.again.read_text().splitlines())
        passed = {(row["file"], row["start"], row["text"]) for row in rows if not row["by"]}
        drawn = [fault for fault in everything if (fault.file, fault.start, fault.text) in passed]
    print(f"{len(drawn)} of {len(everything)} faults in {len(files)} files", flush=True)

    def files_asked(fault: Fault) -> dict:
        suite = SIGNATURES
        if fault.file.startswith(CONFORMING):
            suite += CONFORMANCE + TEXTS
        elif fault.file.startswith(("api/", "mesh/", "parallel/")):
            suite += TEXTS
        return dict.fromkeys([*homes[fault.file], *suite])

    often = collections.Counter(tests for fault in drawn for tests in files_asked(fault))
    asked: dict[str, set[str]] = collections.defaultdict(set)  # files, by the tests that are asked
    for fault in drawn:
        for tests in files_asked(fault):
            asked[tests].add(fault.file)
    with (
        tempfile.TemporaryDirectory() as folder,
        options.out.open("w") as report,
        concurrent.futures.ProcessPoolExecutor(
            options.jobs, multiprocessing.get_context("fork"), make_copy, (folder,)
        ) as pool,
    ):
        runs: dict[str, concurrent.futures.Future] = {}
        noticed = tried = 0

        def tell(done: concurrent.futures.Future) -> None:
            nonlocal noticed, tried
            fault, by, seconds = done.result()
            noticed, tried = noticed + (by is not None), tried + 1
            line = (PACKAGE / fault.file).read_text().splitlines()[fault.line - 1].strip()
            print("." if by else f"\npassed: {fault.file}:{fault.line}: {line} -> {fault.text}",
                  end="", flush=True)  # fmt: skip
            entry = {**fault._asdict(), "was": line, "by": by, "seconds": seconds}
            report.write(json.dumps(entry) + "\n")
            report.flush()

        # A mirror that is used once runs without tracing, which would take longer.
        traced = {tests for tests, count in often.items() if count > 1}
        for i, fault in enumerate(drawn):
            # A fault is tried as soon as its tests are traced, while the next tests are being
            # traced.
            near = {t: None for other in drawn[i : i + 8] for t in files_asked(other)}
            for tests in [t for t in near if t in traced and t not in runs]:
                runs[tests] = pool.submit(trace, tests, asked[tests])
            found = {t: runs[t].result() for t in files_asked(fault) if t in traced}
            if not all(found.values()):
                continue
            plan = [
                (tests, *choose_tests(fault, found[tests])) if tests in found else (tests, None, 90)
                for tests in files_asked(fault)
            ]
            # What one test has staged, compiled or put aside, the next finds in a cache, and a
            # trace has not seen: the others come last, where they are quick or of the mirror.
            plan += [
                (tests, *others)
                for tests, chosen, _ in plan
                if chosen
                for others in [choose_others(chosen, found[tests])]
                if (tests in homes[fault.file] or others[1] < 15)
            ]
            job = pool.submit(try_one, fault, [step for step in plan if step[1] != []])
            job.add_done_callback(tell)
    print(f"\n{noticed} of {tried} noticed")


if __name__ == "__main__":
    main()
