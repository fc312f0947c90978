"""Linearization of flat functions, and programs cut in two: known now, unknown later."""

import itertools

import numpy as np
import pytest

from weft import jit, lax
from weft.core.aval import typeof
from weft.core.stage import stage_closed
from weft.core.trace import current_trace
from weft.passes.check import check_jaxpr
from weft.transforms.linearize import linearize, saving_jaxpr, select_residuals, split_jaxpr
from weft.util import merge, partition

A = np.array([1.0, 2.0, 3.0], np.float32)


def program(fun, *args):
    return stage_closed(fun, [typeof(x) for x in args])[0]


def names(jaxpr):
    return [e.primitive.name for e in jaxpr.eqns]


def test_the_linear_program_has_only_what_waits_for_the_tangents():
    outs, jaxpr, residuals, out_moved = linearize(lambda x: [lax.sin(x) * x, 3.0], [A])
    np.testing.assert_allclose(outs[0], np.sin(A) * A, rtol=1e-6)
    assert out_moved == [True, False]
    assert not {"sin", "cos"} & set(names(jaxpr))
    assert len(residuals) == len(jaxpr.constvars)
    check_jaxpr(jaxpr)


def test_inputs_that_do_not_move():
    outs, jaxpr, _, out_moved = linearize(lambda x, y: [x * y, y * 2], [A, A], [True, False])
    assert out_moved == [True, False] and len(jaxpr.invars) == 1
    assert outs[1] is not None


def test_an_error_leaves_the_trace_as_it_was():
    before = current_trace()
    with pytest.raises(ZeroDivisionError):
        linearize(lambda x: [1 / 0], [A])
    assert current_trace() is before


def mixed(x, y, z):
    return [lax.sin(x) * y, lax.cos(y) * z, x + 1.0, z, y]


PROGRAMS = {
    "flat": mixed,
    "nested": lambda x, y, z: list(jit(lambda x, y: (lax.exp(x) * y, y + 1.0))(x * y, z)),
    "deep": lambda x, y, z: [jit(lambda a: jit(lambda b: b * y)(a * x))(z)],
    "empty": lambda x, y, z: [],
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("unknown", list(itertools.product((False, True), repeat=3)))
def test_the_two_halves_together_are_the_program(name, unknown):
    jaxpr = program(PROGRAMS[name], A, A, A)
    args = [A, 2 * A, 0.5 * A]
    early, late, out_unknown, sources = split_jaxpr(jaxpr, unknown)
    check_jaxpr(early), check_jaxpr(late)
    known, held = partition(unknown, args)
    first = early(*known)
    count = len(out_unknown) - sum(out_unknown)
    residuals = select_residuals(sources, known, first[count:])
    got = merge(out_unknown, first[:count], late(*residuals, *held))
    for g, w in zip(got, jaxpr(*args), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6)


def test_what_is_known_is_done_in_the_first_half():
    jaxpr = program(mixed, A, A, A)
    early, late, out_unknown, sources = split_jaxpr(jaxpr, (False, False, True))
    assert out_unknown == [False, True, False, True, False]
    assert {"sin", "cos"} <= set(names(early)) and names(late) == ["mul"]
    assert split_jaxpr(jaxpr, (False, False, True))[0] is early


def test_a_residual_that_is_an_input_is_not_passed_through():
    jaxpr = program(lambda w, x: [w * x], A, A)
    early, _, _, sources = split_jaxpr(jaxpr, (False, True))
    assert sources == [0] and early.outvars == []


def test_split_program_of_a_call_keeps_the_call_on_both_sides():
    jaxpr = program(PROGRAMS["nested"], A, A, A)
    early, late, _, _ = split_jaxpr(jaxpr, (False, False, True))
    assert "jit" in names(early) and "jit" in names(late)


def test_what_a_policy_saves():
    """The first program gives the values chosen too, the second is given them."""
    asked = []

    def policy(prim, *avals, **params):
        asked.append((prim.name, [str(a) for a in avals], sorted(params)))
        return prim.name in ("sin", "dot_general")

    inner = jit(lambda x: lax.cos(lax.sin(x)))
    jaxpr = program(lambda x: [lax.sin(x) * inner(x) + lax.dot(x, x)], A)
    early, late, count = saving_jaxpr(jaxpr, policy)
    check_jaxpr(early), check_jaxpr(late)
    assert count == 3 and len(early.outvars) == 4 and len(late.invars) == 4
    assert ("sin", ["f32[3]"], []) in asked and "jit" not in [a[0] for a in asked]
    assert not {"sin", "dot_general"} & set(names(late)) and "mul" in names(late)
    out, *saved = early(A)
    assert [np.shape(s) for s in saved] == [(3,), (3,), ()]
    np.testing.assert_allclose(late(A, *saved)[0], out, rtol=1e-6)
    np.testing.assert_allclose(out, jaxpr(A)[0], rtol=1e-6)
    nothing = saving_jaxpr(jaxpr, lambda *_, **__: False)
    assert nothing[2] == 0 and names(nothing[0]) == names(nothing[1]) == names(jaxpr)
