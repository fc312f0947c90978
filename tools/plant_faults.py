"""Plant small faults in the package, one at a time, and count how many the tests notice.

    .venv/bin/python tools/plant_faults.py --count 200 --seed 0 --out faults.jsonl

A fault is one operator, comparison, constant or condition changed, or one statement dropped. They
are drawn from all of `src/weft` by the seed, and each is planted in a copy of the checkout. Noticed
means that the tests of the file's mirror (or, below `api/`, after those the conformance suite) fail
or do not end in time. Faults that pass are printed with their line; whether such a fault changes
anything that can be observed is for a person to say.
"""

import argparse
import ast
import concurrent.futures
import contextlib
import importlib.util
import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGE = CHECKOUT / "src/weft"
CONFORMANCE = "tests/primitives/test_conformance.py"
CONFORMING = ("core/", "passes/", "xla/", "primitives/", "transforms/", "control/", "dtypes.py")

# Each with one that is close to it: a fault that is easy to make and hard to see.
BINARY = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "*",
    ast.Pow: "*", ast.LShift: ">>", ast.RShift: "<<", ast.BitOr: "&", ast.BitAnd: "|",
    ast.BitXor: "|",
}  # fmt: skip
COMPARISONS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip


class Fault(NamedTuple):
    """A piece of a file's text, by offsets in bytes, and what replaces it."""

    file: str
    line: int
    start: int
    end: int
    text: str


def list_faults(file: Path) -> Iterator[Fault]:
    """Every fault that can be planted in a file; annotations and texts stay as they are."""
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

    def replace(node: ast.AST, new: str) -> Fault:
        return Fault(str(file.relative_to(PACKAGE)), node.lineno, *span(node), new)

    def visit(node: ast.AST, inside: bool) -> Iterator[Fault]:
        match node:
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
                        child, inside or isinstance(node, ast.FunctionDef | ast.Lambda)
                    )

    yield from visit(ast.parse(source), False)


def find_tests() -> dict[str, str]:
    """The test file of each file of the package, as tests/test_house.py states it."""
    spec = importlib.util.spec_from_file_location("test_house", CHECKOUT / "tests/test_house.py")
    house = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(house)
    elsewhere = {file: home for home, files in house.TESTED_IN.items() for file in files.split()}
    found = {}
    for file in PACKAGE.rglob("*.py"):
        place = file.relative_to(PACKAGE)
        home = elsewhere.get(str(place), str(place.with_name(f"test_{place.name}")))
        if (CHECKOUT / "tests" / home).exists():
            found[str(place)] = f"tests/{home}"
    return found


class Copy:
    """A copy of the checkout in which faults are planted, one at a time."""

    def __init__(self, root: Path):
        self.root = root
        left_out = shutil.ignore_patterns(".*", "__pycache__", "out")
        shutil.copytree(CHECKOUT, root, ignore=left_out)

    def run(self, tests: str, timeout: float | None) -> tuple[bool, float]:
        """Whether the tests pass, and in how many seconds."""
        cache = os.environ.get("WEFT_CACHE_DIR", str(CHECKOUT / ".cache/faults"))
        env = {**os.environ, "WEFT_CACHE_DIR": cache, "PYTHONDONTWRITEBYTECODE": "1"}
        env.pop("PYTHONPATH", None)  # pyproject.toml names the copy's own src
        if "/on8/" in tests:
            env["WEFT_TEST_DEVICES"] = "8"
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", tests]
        start = time.monotonic()
        process = subprocess.Popen(
            command, cwd=self.root, env=env, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            passed = process.wait(timeout) == 0
        except subprocess.TimeoutExpired:
            passed = False
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # and what the tests have started
            process.wait()
        return passed, time.monotonic() - start

    def try_fault(self, fault: Fault, tests: list[str], limits: dict[str, float]) -> str | None:
        """The test file that notices a fault, or None."""
        file = self.root / "src/weft" / fault.file
        source = file.read_bytes()
        planted = source[: fault.start] + fault.text.encode() + source[fault.end :]
        ast.parse(planted)
        file.write_bytes(planted)
        try:
            return next((t for t in tests if not self.run(t, limits[t])[0]), None)
        finally:
            file.write_bytes(source)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="faults to plant")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing of faults")
    parser.add_argument("--jobs", type=int, default=2, help="copies that run side by side")
    parser.add_argument("--only", default="", help="draw from files whose path begins so")
    parser.add_argument(
        "--out", type=Path, default=Path("faults.jsonl"), help="the report, a fault a line"
    )
    options = parser.parse_args()
    # A shell starts what runs in the background with Ctrl-C ignored; tests interrupt themselves.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    homes = find_tests()
    files = [PACKAGE / place for place in sorted(homes) if place.startswith(options.only)]
    everything = [fault for file in files for fault in list_faults(file)]
    drawn = random.Random(options.seed).sample(everything, min(options.count, len(everything)))
    print(f"{len(drawn)} of {len(everything)} faults in {len(files)} files", flush=True)

    with tempfile.TemporaryDirectory() as folder, options.out.open("w") as report:
        copies: queue.Queue[Copy] = queue.Queue()
        for i in range(options.jobs):
            copies.put(Copy(Path(folder) / str(i)))

        def with_copy(work, *args):
            copy = copies.get()
            try:
                return work(copy, *args)
            finally:
                copies.put(copy)

        def measure(copy: Copy, tests: str) -> tuple[str, float]:
            passed, seconds = copy.run(tests, None)
            if not passed:
                raise SystemExit(f"{tests} must pass before faults are planted")
            return tests, 60 + 5 * seconds

        def try_one(copy: Copy, fault: Fault, limits: dict[str, float]) -> bool:
            home = homes[fault.file]
            tests = [home, CONFORMANCE] if fault.file.startswith(CONFORMING) else [home]
            by = copy.try_fault(fault, list(dict.fromkeys(tests)), limits)
            line = (PACKAGE / fault.file).read_text().splitlines()[fault.line - 1].strip()
            print("." if by else f"\npassed: {fault.file}:{fault.line}: {line} -> {fault.text}",
                  end="", flush=True)  # fmt: skip
            report.write(json.dumps({**fault._asdict(), "was": line, "by": by}) + "\n")
            report.flush()
            return by is not None

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            needed = sorted({homes[fault.file] for fault in drawn} | {CONFORMANCE})
            limits = dict(pool.map(lambda tests: with_copy(measure, tests), needed))
            noticed = sum(pool.map(lambda fault: with_copy(try_one, fault, limits), drawn))
    print(f"\n{noticed} of {len(drawn)} noticed")


if __name__ == "__main__":
    main()
