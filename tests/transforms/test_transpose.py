"""The backward walk: sums of cotangents, Zero and None in its answer, programs transposed."""

import numpy as np
import pytest

import weft
from weft import jit, lax
from weft.core.aval import typeof
from weft.core.primitive import Linear, Primitive, Zero
from weft.core.stage import stage_closed
from weft.errors import MissingRule
from weft.passes.check import check_jaxpr
from weft.transforms.transpose import backward, backward_jaxpr

A = np.array([1.0, 2.0, 3.0], np.float32)
LINEAR = Linear(typeof(A))


def program(fun, *args):
    return stage_closed(fun, [typeof(x) for x in args])[0]


def test_uses_of_one_variable_add_up():
    jaxpr = program(lambda x: [x * 2 + x, x], A)
    (got,) = backward(jaxpr, (), [LINEAR], [A, 10 * A])
    np.testing.assert_allclose(got, 3 * A + 10 * A)


def test_values_zeros_and_none_in_the_answer():
    jaxpr = program(lambda w, x, y: [w * x], A, A, A)
    got = backward(jaxpr, (), [2 * A, LINEAR, LINEAR], [A])
    assert got[0] is None and type(got[2]) is Zero
    np.testing.assert_allclose(got[1], 2 * A * A)


def test_a_cotangent_of_zero_is_not_computed_with():
    jaxpr = program(lambda x: [x * 2, x * 3], A)
    got = backward(jaxpr, (), [LINEAR], [Zero(typeof(A)), A])
    np.testing.assert_allclose(got[0], 3 * A)
    assert type(backward(jaxpr, (), [LINEAR], [Zero(typeof(A))] * 2)[0]) is Zero


def test_what_does_not_touch_a_linear_variable_is_evaluated():
    jaxpr = program(lambda w, x: [lax.sin(w) * x], A, A)
    got = backward(jaxpr, (), [A, LINEAR], [A])
    np.testing.assert_allclose(got[1], np.sin(A) * A, rtol=1e-6)


def test_consts():
    closed = weft.make_jaxpr(lambda x: x * weft.device_put(A))(A)
    (got,) = backward(closed.jaxpr, closed.consts, [LINEAR], [A])
    np.testing.assert_allclose(got, A * A)


def test_a_function_that_is_not_linear():
    with pytest.raises(MissingRule, match="sin: has no `transpose` rule"):
        backward(program(lambda x: [lax.sin(x)], A), (), [LINEAR], [A])


def test_a_rule_that_returns_too_few_cotangents():
    class Both(Primitive):
        name = "both"

        def abstract_eval(self, x, y):
            return [x]

        def transpose(self, cts, *args):
            return cts

    both_p = Both()
    jaxpr = program(lambda x, y: both_p.apply(x, y), A, A)
    with pytest.raises(ValueError, match="one cotangent for each operand; got 1 for 2"):
        backward(jaxpr, (), [LINEAR, LINEAR], [A])


def test_the_transpose_of_a_program_is_a_program_made_once():
    jaxpr = program(lambda w, x, y: [w * x, y * 2, x * 0.5], A, A, A)
    linear, moved = (False, True, True), (True, False, True)
    back, out_moved = backward_jaxpr(jaxpr, linear, moved)
    check_jaxpr(back)
    assert backward_jaxpr(jaxpr, linear, moved)[0] is back
    assert out_moved == [True, False]
    (got,) = back(A, A, A)
    np.testing.assert_allclose(got, A * A + 0.5 * A)


def test_a_cotangent_may_be_forced_to_be_a_value():
    jaxpr = program(lambda x, y: [x * 2, y], A, A)
    back, moved = backward_jaxpr(jaxpr, (True, True), (True, False), (False, True))
    check_jaxpr(back)
    assert moved == [True, True]
    assert back(A)[1].tolist() == [0.0, 0.0, 0.0]
    assert backward_jaxpr(jaxpr, (True, True), (True, False))[1] == [True, False]


def test_calls_are_transposed_as_calls():
    jaxpr = program(lambda x: [jit(lambda x: lax.reduce_sum(x * 2, (0,)))(x)], A)
    back, _ = backward_jaxpr(jaxpr, (True,), (True,))
    assert [e.primitive.name for e in back.eqns] == ["jit"]
    np.testing.assert_allclose(back(np.float32(3))[0], [6, 6, 6])


def test_ten_thousand_steps_are_no_recursion():
    def f(x):
        for _ in range(10_000):
            x = x * 1.0001
        return [x]

    jaxpr = program(f, np.float32(1))
    (got,) = backward(jaxpr, (), [Linear(typeof(np.float32(1)))], [np.float32(1)])
    np.testing.assert_allclose(got, 1.0001**10_000, rtol=1e-3)
