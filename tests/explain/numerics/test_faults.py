"""Planted faults are named, by their line; stable programs are not accused.

Run as `python -m tests.explain.numerics.test_faults` for what the reports say of all of them.
"""

import inspect

import pytest

import weft
from tests.explain.numerics import faults64
from tests.explain.numerics.faults import FAULTS, STABLE
from tests.settings import ALL

# Names of faults whose line is known not to be named: at most four of forty.
MISSED: frozenset[str] = frozenset()


def find_line(fun):
    rows, start = inspect.getsourcelines(fun)
    return start + next(i for i, row in enumerate(rows) if row.rstrip().endswith("# <-"))


def draw_sample(names, every):
    names = sorted(names)
    return names if ALL else names[::every]


def accused(fun, args):
    return [f.place.line for f in weft.explain.numerics(fun)(*args).findings]


def test_there_are_forty_faults_and_twenty_stable_programs():
    assert len(FAULTS) >= 40
    assert len(STABLE) >= 20
    assert len(FAULTS) - len(MISSED) >= 0.9 * len(FAULTS)


@pytest.mark.parametrize("name", draw_sample(FAULTS, 12))
def test_the_faulty_line_is_named_first(name):
    fun, args = FAULTS[name]
    if name in MISSED:
        pytest.xfail("known")
    assert accused(fun, args)[:1] == [find_line(fun)]


@pytest.mark.parametrize("name", draw_sample(STABLE, 10))
def test_a_stable_program_is_not_accused(name):
    fun, args = STABLE[name]
    assert not accused(fun, args)


@pytest.mark.parametrize("name", draw_sample(faults64.FAULTS, 25))
def test_the_faulty_line_of_a_program_in_float64_is_named_first(name):
    fun, args = faults64.FAULTS[name]
    with weft.enable_x64(True):
        assert accused(fun, args)[:1] == [find_line(fun)]


@pytest.mark.parametrize("name", draw_sample(faults64.STABLE, 25))
def test_a_stable_program_in_float64_is_not_accused(name):
    fun, args = faults64.STABLE[name]
    with weft.enable_x64(True):
        assert not accused(fun, args)


if __name__ == "__main__":
    for names, kind in ((FAULTS, "fault"), (STABLE, "stable")):
        for name, (fun, args) in names.items():
            print(kind, name, "\n   ", weft.explain.numerics(fun)(*args).findings)
