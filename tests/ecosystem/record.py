"""A pytest plugin that writes the outcome of each test, a line of JSON, as soon as it is known.

tools/run_ecosystem.py runs libraries' tests with it, under the switch and on JAX. Tests that the
file ECOSYSTEM_RESULTS has already are skipped, so that an interrupted run continues. A test that
began and never ended has stopped the process. The plugin imports neither weft nor jax.
"""

import json
import os
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

RESULTS = Path(os.environ["ECOSYSTEM_RESULTS"])
ONE_IN = int(os.environ.get("ECOSYSTEM_ONE_IN", 1))

found: dict[str, dict[str, Any]] = {}


def write(**line: Any) -> None:
    with RESULTS.open("a") as file:
        print(json.dumps(line), file=file)


def read_results(path: Path) -> dict[str, dict[str, Any]]:
    """The last that the file says of each test: "listed" until it was run, then its outcome."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {line["id"]: line for line in map(json.loads, lines)}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known = read_results(RESULTS)
    for item in items:
        if item.nodeid not in known:
            known[item.nodeid] = {"outcome": "listed"}
            write(id=item.nodeid, outcome="listed")
    run = [
        item
        for item in items
        if known[item.nodeid]["outcome"] == "listed"
        and zlib.crc32(item.nodeid.encode()) % ONE_IN == 0
    ]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(run)])
    items[:] = run


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        write(id=report.nodeid, outcome="error", why=last_line(report.longreprtext))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    write(id=item.nodeid, outcome="stopped", seconds=0, why="the process ended, or took too long")
    line = found[item.nodeid] = dict(id=item.nodeid, outcome="passed", why="", values=[])
    begin = time.process_time()
    try:
        return (yield)
    finally:
        write(**line, seconds=round(time.process_time() - begin, 3))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    line = found[report.nodeid]
    if type(report) is not pytest.TestReport or report.passed or line["outcome"] == "failed":
        return  # reports of a test's parts: it fails itself
    line["outcome"] = report.outcome
    line["why"] = last_line(report.longreprtext) if report.failed else ""


def last_line(text: str) -> str:
    """The line of a traceback that says what the error is."""
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    return (lines or text.splitlines()[-1:] or [""])[0][:200]


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Any:
    """Return a function that writes a pytree's arrays, to compare with those of the other run.

    They agree to the precision of their dtype, or within `rtol` times the largest number of the
    array: results of solvers are only as accurate as their tolerance.
    """

    def write_arrays(tree: Any, rtol: float | None = None) -> None:
        for leaf in sys.modules["jax"].tree.leaves(tree):
            x = np.asarray(leaf)
            kind = [str(x.dtype), list(x.shape), rtol]
            if np.issubdtype(x.dtype, np.complexfloating):
                x = np.stack([x.real, x.imag])
            numbers = x.astype(np.float64).ravel()[:1000].tolist()
            found[request.node.nodeid]["values"].append([kind, numbers])

    return write_arrays
