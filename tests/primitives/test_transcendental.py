"""Exponentials and powers beyond the rows of cases_transcendental.py."""

import math

import numpy as np
import pytest

import weft
from weft.primitives import transcendental

ONES = np.ones(3, np.float32)


@pytest.mark.parametrize("accuracy", ["a", {1}])
def test_an_accuracy_that_is_none_is_an_error_of_ours(accuracy):
    with pytest.raises(ValueError, match=r"^exp: accuracy must be a lax\.Tolerance or"):
        transcendental.exp(1.0, accuracy=accuracy)


def test_accuracy_is_kept_as_a_parameter_only_where_it_is_given():
    highest = transcendental.AccuracyMode.HIGHEST
    fun = lambda x: transcendental.exp(transcendental.exp(x, accuracy=highest))
    first, second = weft.make_jaxpr(fun)(ONES).eqns
    assert (first.params, second.params) == ({"accuracy": highest}, {})
    bound = transcendental.Tolerance(rtol=1e-3, ulps=2)
    got = weft.grad(lambda x: transcendental.log(x, accuracy=bound))(2.0)
    assert got == 0.5


def test_exp2_is_exact_at_whole_numbers():
    x = np.arange(-126, 128, dtype=np.float32)
    np.testing.assert_array_equal(transcendental.exp2(x), np.exp2(x.astype(np.float64)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log1p_is_exact_to_two_units(dtype):
    with weft.enable_x64(True):
        x = np.array([-1, -0.9999, -0.4, -1e-9, -0.0, 1e-300, 1e-9, 0.42, 1.6, 3e38, np.inf], dtype)
        got = weft.jit(transcendental.log1p)(x)
    want = [-np.inf if v == -1 else math.log1p(v) for v in x]
    np.testing.assert_array_max_ulp(np.asarray(got), np.array(want, dtype), 2)
    assert np.signbit(got[4])
