"""Which passes a program goes through, and in which order."""

import weft.passes
from tests.core.toys import cos, f32, make, sin
from weft.options import config
from weft.passes import PASSES, run_passes
from weft.passes.dce import drop_dead_code, used_inputs


def program(x, y):
    cos(y)
    return sin(x)


def test_the_list_of_passes():
    assert PASSES[-1] is drop_dead_code
    lean = run_passes(make(program, f32(), f32()))
    assert len(lean.eqns) == 1 and used_inputs(lean) == (True, False)


def test_programs_are_checked_after_every_pass(monkeypatch):
    done = []
    passes = [lambda jaxpr, i=i: done.append(i) or jaxpr for i in range(2)]
    monkeypatch.setattr(weft.passes, "PASSES", passes)
    monkeypatch.setattr(weft.passes, "check_jaxpr", lambda jaxpr: done.append("checked"))
    jaxpr = make(program, f32(), f32())
    with config.scope(enable_checks=True):
        assert run_passes(jaxpr) is jaxpr
    assert done == [0, "checked", 1, "checked"]
