"""The steps from a closed jaxpr to an executable: parameters of a text, and consts."""

import re

import numpy as np
import pytest

import weft
from weft import make_jaxpr
from weft.core.stage import close_jaxpr
from weft.run.pipeline import JitSpec, lower_program
from weft.xla.placement import on_device

A = np.array([1.0, 2.0, 3.0], np.float32)


def test_the_spec_of_a_compilation():
    closed = make_jaxpr(lambda x, y: x + 1)(A, A)
    here = on_device(weft.devices()[0], False)
    lowered = lower_program(closed.jaxpr, (), JitSpec("f", donated=(0,)), here)
    text = lowered.module.text
    assert lowered.kept == [True, False] and "tf.aliasing_output = 0" in text
    assert "module @jit_f" in text
    spec = JitSpec("f", donated=(1,), keep_unused=True)
    lowered = lower_program(closed.jaxpr, (), spec, here)
    text = lowered.module.text
    assert lowered.kept == [True, True] and ("buffer_donor" in text or "aliasing" in text)


def test_small_consts_are_written_and_large_ones_passed():
    small, large, unused = np.full(3, 7.0, np.float32), np.ones(3000, np.float32), A[:2] + 0.5
    arrays = [weft.device_put(x) for x in (small, large, unused)]
    fun = lambda x: (x + arrays[0], x[0] * arrays[1], arrays[2] * 2)[:2]
    closed = make_jaxpr(fun)(A)
    here = on_device(weft.devices()[0], False)
    jaxpr = close_jaxpr(closed.jaxpr)
    lowered = lower_program(jaxpr, closed.consts, JitSpec("f"), here)
    assert [c.shape for c in lowered.consts] == [(3000,)] and lowered.kept == [True]
    text = lowered.module.text
    assert text.count("dense<0x40E00000> : tensor<3xf32>") == 1 and "0x3FC00000" not in text
    outs = lowered.compile()(A)
    np.testing.assert_array_equal(outs[0], A + 7)
    np.testing.assert_array_equal(outs[1], large)


@pytest.mark.filterwarnings("ignore:Some donated buffers")
@pytest.mark.parametrize("donated", [(0,), (2,), (1, 3), (0, 2, 3)])
@pytest.mark.parametrize("keep_unused", [True, False])
def test_donated_parameters_are_counted_among_those_that_are_left(donated, keep_unused):
    large = weft.device_put(np.ones(3000, np.float32))  # is the first parameter
    fun = lambda a, b, c, d: (large * d[0], a + 1, c + 1, d + 1)
    closed = make_jaxpr(fun)(*[np.ones(n, np.float32) for n in (1, 2, 3, 4)])
    spec = JitSpec("f", donated=donated, keep_unused=keep_unused)
    here = on_device(weft.devices()[0], False)
    lowered = lower_program(close_jaxpr(closed.jaxpr), closed.consts, spec, here)
    assert lowered.kept == [True, keep_unused, True, True]
    given = r"tensor<(\d)xf32> {(?:tf.aliasing_output = (\d)|jax.buffer_donor)"
    found = dict(re.findall(given, lowered.module.text))
    results = {0: ("1", "1"), 2: ("3", "2"), 3: ("4", "3")}  # the size, and which result it holds
    expected = dict(results[i] for i in donated if i in results)
    assert found == expected | ({"2": ""} if 1 in donated and keep_unused else {})
