"""The selection of tests, and shared fixtures; settings.py makes their environment.

The options of pytest itself (warnings are errors, import mode) are in pyproject.toml. `pytest
--all` runs every case of every table, with programs compiled as for users. Without it, a test
marked `sample(one_in=n)` runs one of n of its cases, the same ones in every run, and a test marked
`slow` does not run.
"""

import collections
import functools
import gc
import heapq
import itertools
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests.settings import ALL, QUICK

collect_ignore = ["ecosystem"]  # in an environment of its own: make test-ecosystem


# Collecting tests makes millions of lasting objects, which the garbage collector should skip.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # caches grow meanwhile, and are searched as well
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="every case of every table of tests")


@pytest.hookimpl(trylast=True)  # after the choice that -k makes
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out slow tests, and the cases that are not in the sample of their test."""
    if odd := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"names of cases must be the same in each process; got {odd[0]}")
    if ALL:
        return
    left_out = {item.nodeid for item in items if item.get_closest_marker("slow")}
    tests = collections.defaultdict(list)
    for item in items:
        if item.get_closest_marker("sample") and hasattr(item, "callspec"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        share = cases[0].get_closest_marker("sample").kwargs["one_in"]
        left_out |= {case.nodeid for case in cases} - sample(cases, -(-len(cases) // share))
    config.hook.pytest_deselected(items=[i for i in items if i.nodeid in left_out])
    items[:] = [i for i in items if i.nodeid not in left_out]


def sample(cases: Sequence[pytest.Function], count: int) -> set[str]:
    """Return the cases of a test to run: about `count`, the same in every run.

    Each value that several cases have is in one of them, and as many pairs of values as possible.
    """

    def values(case: pytest.Function) -> list:
        return [(name, id(value)) for name, value in sorted(case.callspec.params.items())]

    often = collections.Counter(itertools.chain(*map(values, cases)))

    def met(case: pytest.Function) -> tuple[set, set]:
        shared = [value for value in values(case) if often[value] > 1]
        return set(shared), set(itertools.combinations(shared, 2))

    # A gain only shrinks while cases are chosen: whatever still has its last gain and leads, leads.
    left = []
    for place, case in enumerate(sorted(cases, key=lambda case: zlib.crc32(case.nodeid.encode()))):
        singles, pairs = met(case)
        left.append((-len(singles), -len(pairs), place, case.nodeid, singles, pairs))
    heapq.heapify(left)
    chosen: set[str] = set()
    seen: set = set()
    while left:
        old_singles, old_pairs, place, nodeid, singles, pairs = left[0]
        singles, pairs = singles - seen, pairs - seen
        if (-len(singles), -len(pairs)) != (old_singles, old_pairs):
            heapq.heapreplace(left, (-len(singles), -len(pairs), place, nodeid, singles, pairs))
            continue
        if len(chosen) >= count and not singles:
            break
        heapq.heappop(left)
        chosen.add(nodeid)
        seen |= singles | pairs
    return chosen


@pytest.fixture(autouse=True, scope="session")
def parsed_programs() -> None:
    """Give XLA programs as parsed here: of the 13 ms of a small one that saves 2.

    Users do without, since loading the parser takes 40.
    """
    from jaxlib.mlir.ir import MLIRError

    from weft.xla import compile as engine
    from weft.xla.callbacks import parse_module

    compile_now = engine.compile_now

    @functools.wraps(compile_now)
    def compile_parsed(text: str, devices: Any, options: Any, *entries: list) -> Any:
        if not entries and "f6E" not in text:  # parsed there, and looked at there
            compile_it = devices[0].client.compile_and_load
            try:
                return engine.run_to_end(lambda: compile_it(parse_module(text), devices, options))
            except (RuntimeError, ValueError, MLIRError):
                pass  # told as users are told, who give the text
        return compile_now(text, devices, options, *entries)

    engine.compile_now = compile_parsed


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator that gives every test the same numbers in every run."""
    return np.random.default_rng(0)


@pytest.fixture
def as_for_users() -> dict[str, object]:
    """Compiler options that make XLA compile a program as it does for users."""
    return {name: users for name, (_, users) in QUICK.items()}


@pytest.fixture
def kernels_as_for_users(
    monkeypatch: pytest.MonkeyPatch, as_for_users: dict[str, object]
) -> Iterator[None]:
    """Let XLA compile every program of the test, including eager calls, as for users."""
    import weft
    from weft.xla import compile as engine

    options = engine.default_options

    def users_options(platform: str, *kind: bool) -> tuple[bytes, tuple]:
        defaults, overrides = options(platform, *kind)
        return defaults, (*overrides, *as_for_users.items())

    weft.clear_caches()
    monkeypatch.setattr(engine, "default_options", users_options)
    yield
    weft.clear_caches()


@pytest.fixture
def executables(monkeypatch: pytest.MonkeyPatch) -> list:
    """The list that grows with each executable that is made."""
    from weft.xla.compile import Executable

    made: list = []
    init = Executable.__init__

    def noted(self: Executable, *args: object, **kwargs: object) -> None:
        made.append(1)
        init(self, *args, **kwargs)

    monkeypatch.setattr(Executable, "__init__", noted)
    return made


@pytest.fixture(autouse=True, scope="session")
def programs_are_lowered() -> None:
    """Have every program lowered, also those known on disk, as tests change how weft lowers them.

    The tests of run/known.py, and processes that tests start, do as for users.
    """
    from weft.run import known

    known.describe_sources = lambda: None  # type: ignore[assignment]
