"""Forward mode on flat functions and programs: what carries a tangent, and what Zero means."""

import numpy as np
import pytest

import weft
from weft import lax
from weft.core.aval import typeof
from weft.core.primitive import Zero
from weft.core.stage import stage_closed
from weft.core.trace import current_trace
from weft.passes.check import check_jaxpr
from weft.transforms.jvp import JVPTracer, jvp, jvp_jaxpr

A = np.array([1.0, 2.0, 3.0], np.float32)
ZERO = Zero(typeof(A).to_tangent())


def program(fun, *args):
    return stage_closed(fun, [typeof(x) for x in args])[0]


def test_values_and_tangents():
    outs, dots = jvp(lambda x, y: [x * y, lax.sin(x)], [A, A], [A, 2 * A])
    np.testing.assert_allclose(outs[0], A * A)
    np.testing.assert_allclose(dots[0], A * A + A * 2 * A)
    np.testing.assert_allclose(dots[1], np.cos(A) * A, rtol=1e-6)


def test_a_zero_tangent_goes_in_and_comes_out_uncomputed():
    seen = []

    def f(x, y):
        seen.append((type(x), type(y)))
        return [x * 2, y * 2, 3.0, x > 0]

    _, dots = jvp(f, [A, A], [ZERO, A])
    assert seen == [(np.ndarray, JVPTracer)]
    assert [type(t) is Zero for t in dots] == [True, False, True, True]
    assert [str(t.aval) for t in (dots[0], dots[2])] == ["f32[3]", "f32[]"]
    assert dots[3].aval.dtype == weft.dtypes.float0


def test_a_result_that_does_not_depend_on_what_moves_has_zero():
    _, (dot,) = jvp(lambda x: [lax.stop_gradient(x) * 2], [A], [A])
    assert type(dot) is Zero or not np.asarray(dot).any()


def test_rules_run_under_the_parent_and_the_trace_is_left_on_an_error():
    before = current_trace()
    with pytest.raises(ZeroDivisionError):
        jvp(lambda x: [x * 1, 1 / 0], [A], [A])
    assert current_trace() is before


def test_the_tracer_gives_python_its_primal():
    jvp(lambda x: [x * float(x)] if x > 1 and int(x) == 2 and range(3)[lax_int(x)] == 2 else 1 / 0,
        [np.float32(2)], [np.float32(1)])  # fmt: skip


def lax_int(x):
    return lax.convert_element_type(x, np.dtype(np.int32))


def test_the_derivative_of_a_program_is_a_program_made_once():
    jaxpr = program(lambda x, y: [x * y, lax.sin(y), x + 1], A, A)
    both, out_moved = jvp_jaxpr(jaxpr, (True, False))
    assert jvp_jaxpr(jaxpr, (True, False))[0] is both
    assert jvp_jaxpr(jaxpr, (True, True))[0] is not both
    check_jaxpr(both)
    assert out_moved == [True, False, True]
    assert (len(both.in_avals), len(both.out_avals)) == (3, 5)
    outs = both(A, 2 * A, A)
    np.testing.assert_allclose(outs[3], 2 * A * A)
    np.testing.assert_allclose(outs[4], A)


def test_a_tangent_may_be_forced_to_be_a_value():
    jaxpr = stage_closed(lambda x, y: [lax.sin(x), y], [typeof(A), typeof(A)])[0]
    both, moved = jvp_jaxpr(jaxpr, (True, False), (False, True))
    assert moved == [True, True]
    assert both(A, A, A)[3].tolist() == [0.0, 0.0, 0.0]
    assert jvp_jaxpr(jaxpr, (True, False))[1] == [True, False]


def test_options_that_change_inside():
    """Numbers have the type that they had where they were made, whatever holds when they move."""

    def f(x):
        with weft.enable_x64():
            wide = lax.convert_element_type(x, np.float64) * 3.0
            with weft.enable_x64(False):
                narrow = lax.convert_element_type(wide, np.float32) * 2.0
            return wide * narrow

    (y,), (dot,) = jvp(lambda x: [f(x)], [np.float32(2)], [np.float32(1)])
    assert (float(y), float(dot)) == (72.0, 72.0)
    assert (y.dtype, dot.dtype) == (np.float64, np.float64)
