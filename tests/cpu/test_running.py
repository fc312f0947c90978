"""cpu/running.py: what takes the place of running reductions; results are in primitives/."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import NO_KERNELS, expect, show_prepared
from weft import lax

X = jnp.ones((3, 40))


def test_a_running_sum_is_the_kernel_on_three_axes():
    expect(
        show_prepared(lambda x: lax.cumsum(x, 1, reverse=True), X),
        """
        { lambda ; a:f32[3,40]. let
            b:f32[3,40,1] = reshape[dimensions=None new_sizes=(3, 40, 1) sharding=None] a
            c:f32[3,40,1] = cpu_call[kernel=weft_cumulative kind='cumsum' reverse=True] b
            d:f32[3,40] = reshape[dimensions=None new_sizes=(3, 40) sharding=None] c
          in (d,) }
        """,
    )


def test_without_kernels_it_is_loops():
    text = show_prepared(lambda x: lax.cummax(x, 1), X, target=NO_KERNELS)
    assert "settings=(cummax, False, Rewriter(choose=choose_form, " in text
    assert "write=write_loops" in text


def test_narrow_floats_run_in_float32():
    text = show_prepared(lambda x: lax.cumprod(x), X.astype(np.float16))
    assert "f32[1,3,40] = cpu_call" in text


@pytest.mark.parametrize("dtype, native", [(np.int16, False), (np.complex64, True)])
def test_which_sums_the_kernel_computes(dtype, native):
    text = show_prepared(lambda x: lax.cumsum(x), X.astype(dtype))
    assert ("cpu_call" in text) == native
    assert "cpu_call" not in show_prepared(lambda x: lax.cumlogsumexp(x), X)


def test_one_element_is_its_own_sum():
    text = show_prepared(lambda x: lax.cumsum(x), X[:1])
    assert "cpu_call" not in text and "formula" not in text


@pytest.mark.parametrize(
    "shape, step, native",
    [
        ((100,), lambda np, x: np.cumsum(x), False),
        ((8, 100), lambda np, x: np.cumsum(x, 1), False),
        ((101,), lambda np, x: np.cumsum(x), True),  # longer than XLA's loop is quick for
        ((20, 100), lambda np, x: np.cumsum(x, 1), True),  # many elements
        ((20, 20), lambda np, x: np.cumsum(0.01 * x @ x, 1), True),  # the loop is several functions
    ],
)
def test_short_sums_in_loops_of_one_function_call_no_kernel(shape, step, native):
    loop = lambda x: lax.fori_loop(0, 9, lambda i, x: step(jnp, x), x)
    x = np.random.RandomState(0).rand(*shape).astype("f") / shape[-1]
    assert ("weft_cumulative" in show_prepared(loop, x)) == native
    expected = x.astype(float)
    for _ in range(9):
        expected = step(np, expected)
    np.testing.assert_allclose(weft.jit(loop)(x), expected, rtol=1e-5)
