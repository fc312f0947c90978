"""cpu/windows.py: both ways to scatter, the kernel, slices, and a fault of XLA:CPU."""

import itertools

import numpy as np
import pytest

import weft.numpy as jnp
from tests.cpu.prepared import KERNELS, NO_KERNELS, OVER_MESH, expect, show_prepared
from weft import config, export, jit, lax, vmap
from weft.cpu import windows
from weft.cpu.forms import STAGED
from weft.cpu.kernels import load_kernels
from weft.primitives import window as win
from weft.primitives.elementwise import ge_p, le_p, mul
from weft.primitives.slicing import pad


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("shape, axis", [((1, 1), 0), ((1, 1), 1), ((1, 2), 0), ((1, 3, 1), 0)])
def test_sums_over_a_padded_element(shape, axis, as_for_users):
    """XLA:CPU folds the padding into the windows, and adds wrongly.

    It still does where it is told to use no fusion emitters, which no user does.
    """
    x = np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
    size = [3 if i == axis else 1 for i in range(x.ndim)]
    for (low, high), edge in itertools.product([(1, 1), (2, 2)], [(2, 0), (0, 2), (1, 1)]):
        config = [(low, high, 0) if i == axis else (0, 0, 0) for i in range(x.ndim)]
        edges = [edge if i == axis else (0, 0) for i in range(x.ndim)]
        fun = lambda x: win.reduce_window_sum(pad(x, 0.0, config), size, None, edges)  # noqa: B023
        got = jit(fun, compiler_options=as_for_users)(x)
        wide = np.pad(np.pad(x, [c[:2] for c in config]), edges)
        want = np.lib.stride_tricks.sliding_window_view(wide, 3, axis).sum(-1)
        np.testing.assert_array_equal(got, want)
        text = export.export(jit(fun))(x).mlir_module()
        assert "optimization_barrier" in text


@pytest.mark.parametrize("size, strides, padding", [
    ((2, 2), (2, 2), "VALID"), ((3, 3), (2, 2), "SAME"), ((2, 3), (1, 1), [(1, 0), (-1, 2)]),
])  # fmt: skip
def test_both_ways_to_scatter_agree(monkeypatch, size, strides, padding):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 7)).astype(np.float32)
    y = np.asarray(win.reduce_window_max(x, size, strides, padding))
    source = rng.normal(size=y.shape).astype(np.float32)
    scatter = lambda s, x: win.select_and_scatter_add(s, x, ge_p, size, strides, padding)
    with config.scope(native=False):
        places = jit(lambda s, x: scatter(s, x))(source, x)
        monkeypatch.setattr(windows, "MAX_SCATTER_PLACES", 0)
        STAGED.clear()
        by_windows = jit(lambda s, x: scatter(s, x))
        np.testing.assert_allclose(by_windows(source, x), places, rtol=1e-6)
        assert "select_and_scatter" in by_windows.lower(source, x).as_text()


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize(
    ("shape", "size", "strides", "padding"),
    [
        ((2, 3, 12, 90), (1, 1, 3, 3), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (1, 1))),
        ((3, 70, 9), (1, 2, 2), (1, 2, 2), ((0, 0), (0, 0), (0, 0))),
        ((2, 8, 75), (1, 3, 4), (1, 1, 1), ((0, 0), (2, 0), (3, 3))),
        ((10, 40), (4, 3), (3, 3), ((0, 3), (2, 5))),
        ((4, 150), (1, 5), (1, 4), ((0, 0), (1, 6))),
        ((7,), (3,), (1,), ((1, 1),)),
        ((2, 6), (1, 2), (1, 2), ((0, 0), (-1, 1))),
        ((2, 5), (1, 7), (1, 1), ((0, 0), (1, 1))),
    ],
)
@pytest.mark.parametrize("compare", [ge_p, le_p])
def test_a_kernel_selects_as_whole_arrays_do(shape, size, strides, padding, x64, compare, rng):
    with config.scope(enable_x64=x64):
        dtype = np.float64 if x64 else np.float32
        x = rng.integers(-3, 4, shape).astype(dtype)  # many are equal
        x[rng.random(shape) < 0.05] = np.nan
        x[rng.random(shape) < 0.05] = -np.inf
        places = win.reduce_window_max(x, size, strides, padding).shape
        fun = jit(lambda s, x: win.select_and_scatter_add(s, x, compare, size, strides, padding))
        source = rng.integers(1, 100, places).astype(dtype)
        got, twice = fun(source, x), vmap(fun, (0, None))(np.stack([source, source]), x)
        assert ("weft_select_scatter" in fun.lower(source, x).as_text()) != bool(load_kernels())
        with config.scope(native=False):
            want = fun(source, x)
            assert "weft_select_scatter" not in fun.lower(source, x).as_text()
        assert got.dtype == want.dtype == dtype
        np.testing.assert_array_equal(got, want)  # sums of few integers
        np.testing.assert_array_equal(twice[1], want)


@pytest.mark.parametrize("target", [KERNELS, NO_KERNELS, OVER_MESH])
def test_operands_are_set_apart_once(target):
    expect(
        show_prepared(lambda x: win.reduce_window_sum(x, (2,)), jnp.ones(6), target=target),
        """
        { lambda ; a:f32[6]. let
            b:f32[6] = optimization_barrier a
            c:f32[5] = reduce_window_sum[
              base_dilation=(1,)
              padding=((0, 0),)
              window_dilation=(1,)
              window_dimensions=(2,)
              window_strides=(1,)
            ] b
          in (c,) }
        """,
    )
    by_function = lambda x, y: win.reduce_window((x, y), (1.0, 1.0), multiply_pairs, (2,))
    text = show_prepared(by_function, jnp.ones(6), jnp.ones(6), target=target)
    assert text.count("optimization_barrier") == 1 and text.count("reduce_window") == 1


def multiply_pairs(x, y):
    return mul(x[0], y[0]), mul(x[1], y[1])


@pytest.mark.parametrize("size, slices", [(4, 4), (16, 16), (17, 0)])
def test_few_floats_are_compared_as_slices(size, slices):
    fun = lambda x: win.reduce_window_max(x, (size,))
    text = show_prepared(fun, jnp.ones(40))
    assert text.count("= slice[") == slices
    assert ("lower_window_extremum" in text) == (not slices)
    text = show_prepared(fun, jnp.ones(40, np.int32))
    assert "optimization_barrier" in text and "reduce_window_max" in text


def test_windows_of_size_one_along_spread_elements():
    """XLA:CPU forgets the dilation where there are thousands of elements."""
    x = np.arange(4096.0, dtype=np.float32).reshape(64, 64) + 1
    spread = np.zeros((64, 127), np.float32)
    spread[:, ::2] = x
    window = {"window_strides": (2, 1), "padding": "VALID", "base_dilation": (1, 2)}
    add, largest = jit(
        lambda x: (
            lax.reduce_window(x, 0.0, lax.add, (2, 1), **window),
            lax.reduce_window(x, -1.0, lambda x, y: lax.max(x, y), (20, 1), **window),
        )
    )(x)
    np.testing.assert_array_equal(add, spread[::2] + spread[1::2])
    want = [np.where(np.arange(127) % 2, -1, spread[i : i + 20].max(0)) for i in range(0, 45, 2)]
    np.testing.assert_array_equal(largest, want)
