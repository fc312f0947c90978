"""cpu/extrema.py: which kernels and forms take the place of extrema; results are elsewhere."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import NO_KERNELS, OVER_MESH, expect, show_prepared
from weft import lax, nn

X = jnp.ones((32, 100))


def test_rows_are_compared_by_the_kernel():
    expect(
        show_prepared(lambda x: jnp.max(x, 1), X),
        """
        { lambda ; a:f32[32,100]. let
            b:f32[32,100,1] = reshape[
              dimensions=None
              new_sizes=(32, 100, 1)
              sharding=None
            ] a
            c:f32[32,1] = cpu_call[kernel=weft_extremum largest=True skips_nan=False] b
            d:f32[32] = reshape[dimensions=None new_sizes=(32,) sharding=None] c
          in (d,) }
        """,
    )


def test_without_kernels_large_floats_keep_nan_in_a_loop():
    expect(
        show_prepared(lambda x: jnp.min(x, 1), X, target=NO_KERNELS),
        """
        { lambda ; a:f32[32,100]. let
            b:f32[32] = formula[settings=(reduce_min, (1,)) write=write_extremum] a
          in (b,) }
        """,
    )
    small = show_prepared(lambda x: jnp.min(x, 1), X[:2], target=NO_KERNELS)
    assert "formula" not in small and "cpu_call" not in small


@pytest.mark.parametrize("rows", [2, 32])
def test_over_a_mesh_floats_of_any_number_are_compared_as_integers(rows):
    text = show_prepared(lambda x: jnp.min(x, 1), X[:rows], target=OVER_MESH)
    assert "formula[settings=(reduce_min, (1,)) write=write_over_devices]" in text
    assert "formula" not in show_prepared(lambda x: nn.softmax(x), X, target=OVER_MESH)


def test_axes_apart_are_reduced_one_after_the_other():
    text = show_prepared(lambda x: jnp.max(x, (0, 2)), X.reshape(4, 8, 100))
    assert "cpu_call" in text and "reduce_max[axes=(0,)" in text


def test_integers_are_the_kernel_where_they_are_an_argument():
    x = X.astype(np.int32)
    assert "weft_extremum" in show_prepared(lambda x: jnp.max(x, 1), x)
    assert "weft_extremum" not in show_prepared(lambda x: jnp.max(x * 2, 1), x)
    assert "weft_extremum" not in show_prepared(lambda x: jnp.max(x, 0), x)


def test_an_index_is_the_kernel_or_two_reductions():
    assert "weft_extremum" in show_prepared(lambda x: jnp.argmax(x, 1), X)
    text = show_prepared(lambda x: jnp.argmax(x, 1), X, target=NO_KERNELS)
    assert "argmax" not in text and "write_extremum" in text and "reduce_min" in text
    assert "argmax" in show_prepared(lambda x: jnp.argmax(x, 1), X[:, :9], target=NO_KERNELS)


def test_what_skips_nan_is_the_kernel_or_operations():
    x = jnp.ones((512, 128))
    fun = lambda x: [jnp.nanmax(x, 1), jnp.nansum(x, 1), jnp.nanmean(x, 1)]
    text = show_prepared(fun, x)
    assert text.count("weft_extremum") == 1 and text.count("weft_sum") == 3
    text = show_prepared(fun, x, target=NO_KERNELS)
    assert "cpu_call" not in text and "reduce_nansum" not in text and "nan=skip" not in text


def test_products_of_rows():
    x = jnp.ones((512, 128))
    assert "weft_sum" in show_prepared(lambda x: jnp.prod(x, 1), x)
    assert "optimization_barrier" in show_prepared(lambda x: jnp.prod(x * 2, 1), x)
    assert "weft_sum" not in show_prepared(lambda x: jnp.prod(x, 0), x)


@pytest.mark.parametrize("native", [True, False])
def test_nan_is_found_and_skipped(native):
    x = np.ones((40, 300), np.float32)
    x[3, 7], x[5] = np.nan, np.nan
    fun = lambda x: [jnp.max(x, 1), jnp.argmax(x, 1), jnp.nanmax(x, 1), jnp.max(x, (0, 1))]
    with weft.config.scope(native=native):
        greatest, place, skipped, all_of_it = weft.jit(lambda x: fun(x))(x)
    np.testing.assert_array_equal(np.isnan(greatest), np.isnan(x).any(1))
    assert place[3] == 7 and place[5] == 0 and place[0] == 0
    np.testing.assert_array_equal(np.isnan(skipped), np.isnan(x).all(1))
    assert np.isnan(all_of_it)


def test_exported_programs_keep_nan():
    x = np.ones((40, 300), np.float32)
    x[3, 7] = np.nan
    fun = weft.jit(lambda x: lax.reduce_max(x, (1,)))
    (n,) = weft.export.symbolic_shape("n")
    for shape in (x.shape, (40, n)):
        exported = weft.export.export(fun)(weft.ShapeDtypeStruct(shape, np.float32))
        assert np.isnan(exported.call(x)[3]) and not np.isnan(exported.call(x)[0])
        assert "weft_" not in exported.mlir_module()
