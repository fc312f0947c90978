"""Settings every test runs under; they are made before the first `import weft`.

What pytest itself is told (warnings are errors, import mode) stands in pyproject.toml.
`pytest --all` runs every case of every table, with programs compiled as for users; without it, a
test marked `sample(one_in=n)` runs one of n of its cases, which are the same in every run, and one
marked `slow` does not run.
"""

import collections
import gc
import importlib.metadata
import itertools
import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
collect_ignore = ["ecosystem"]  # in an environment of its own: make test-ecosystem

# The environment must not decide what is tested: weft's defaults do, float32 among them.
KEPT = {"WEFT_CACHE_DIR", "WEFT_TEST_ALL", "WEFT_TEST_ARGUMENTS", "WEFT_TEST_DEVICES"}
for name in [name for name in os.environ if name.startswith("WEFT_") and name not in KEPT]:
    del os.environ[name]

# Read here and not by pytest_configure: the flags below come before the first import. The variable
# tells the processes that tests and pytest-xdist start.
if "--all" in sys.argv:
    os.environ["WEFT_TEST_ALL"] = "1"
ALL = "WEFT_TEST_ALL" in os.environ

# The programs of tests are many and small, and most run once: XLA compiles them in less than half
# the time if it is told not to optimize them. The flags are part of the key of the disk cache.
# A test of the speed, memory or text of a compiled program asks for `as_for_users`.
QUICK = {"xla_backend_optimization_level": (0, 3)}  # here, and for users
if importlib.metadata.version("jaxlib").startswith("0.10."):  # later ones have no other emitters
    QUICK["xla_cpu_use_fusion_emitters"] = (False, True)
    QUICK["xla_cpu_parallel_codegen_split_count"] = (1, 32)  # a module of LLVM's costs 2 ms
flags = [] if ALL else [f"--{name}={here}" for name, (here, _) in QUICK.items()]

# Tests of many devices are run with that many; see tests/parallel/devices.py.
if "WEFT_TEST_DEVICES" in os.environ:
    count = os.environ["WEFT_TEST_DEVICES"]
    flags += [f"--xla_force_host_platform_device_count={count}"]

os.environ["XLA_FLAGS"] = " ".join(flags).lower()

# Compiled programs are shared by all tests and workers, and kept from run to run.
os.environ.setdefault("WEFT_CACHE_DIR", str(CHECKOUT / ".cache" / "weft"))


# Collecting tests makes millions of objects that stay: the garbage collector is to pass over them.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
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
    """Which of a test's cases to run: about `count`, the same in every run.

    Every value that several cases have is in one of them, and of pairs of values as many as can be.
    """

    def values(case: pytest.Function) -> list:
        return [(name, id(value)) for name, value in sorted(case.callspec.params.items())]

    often = collections.Counter(itertools.chain(*map(values, cases)))

    def met(case: pytest.Function) -> set:
        shared = [value for value in values(case) if often[value] > 1]
        return {*shared, *itertools.combinations(shared, 2)}

    def gain(case: pytest.Function) -> tuple[int, int]:
        new = met(case) - seen
        return sum(isinstance(x[0], str) for x in new), len(new)

    left = sorted(cases, key=lambda case: zlib.crc32(case.nodeid.encode()))
    seen: set = set()
    chosen: set[str] = set()
    while left:
        best = max(left, key=gain)
        if len(chosen) >= count and gain(best)[0] == 0:
            break
        left.remove(best)
        chosen.add(best.nodeid)
        seen |= met(best)
    return chosen


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
    """XLA compiles every program of the test as for users, those of eager calls too."""
    import weft
    from weft.xla import compile as engine

    options = engine.default_options

    def users_options(platform: str) -> tuple[bytes, tuple]:
        defaults, overrides = options(platform)
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
