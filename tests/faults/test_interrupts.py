"""Ctrl-C at any instruction that switches traces, options or scopes leaves nothing switched."""

import pytest

from tests.faults.injection import BLOCKS, PROGRAMS, interrupt, places_in, run_block


def left_behind(name, step, only_where_python_looks):
    """Return the state left behind by interrupts at each instruction, first and last."""
    program = PROGRAMS[name]
    program(), program()
    cases = [
        (place, at)
        for place, (count, looks) in places_in(program).items()
        for at in sorted({1, count})
        if looks or not only_where_python_looks
    ]
    assert len(cases) > 40
    return [*filter(None, (interrupt(program, place, at) for place, at in cases[::step]))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_interruption_leaves_nothing_in_force(name):
    assert left_behind(name, 97 if name == "trace" else 11, True) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_interruption_at_any_instruction_leaves_nothing_in_force(name):
    assert left_behind(name, 1, True) == []
    assert left_behind(name, 11 if name == "trace" else 1, False) == []


@pytest.mark.parametrize("name", BLOCKS)
def test_what_holds_in_a_block_ends_with_it(name):
    """Interrupts at any instruction of Python, also in contextlib."""
    program, everything = lambda: run_block(BLOCKS[name]), lambda code: True
    program()
    places = [place for place, (_, looks) in places_in(program, everything).items() if looks]
    assert len(places) > 10
    left = [interrupt(program, place, 1, everything) for place in places]
    assert [*filter(None, left)] == []
