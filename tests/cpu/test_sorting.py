"""cpu/sorting.py: which kernels and forms take the place of sorts; results against NumPy."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import NO_KERNELS, OVER_MESH, expect, show_prepared
from weft import lax

X = jnp.array([[3.0, 1.0, 2.0, 0.0], [5.0, 7.0, 6.0, 4.0], [8.0, 9.0, 11.0, 10.0]])


def test_a_sort_along_the_first_axis_is_the_kernel_on_rows():
    expect(
        show_prepared(lambda x: lax.sort(x, 0), X),
        """
        { lambda ; a:f32[3,4]. let
            b:f32[4,3] = transpose[permutation=(1, 0)] a
            c:f32[4,3] = cpu_call[kernel=weft_sort num_keys=1] b
            d:f32[3,4] = transpose[permutation=(1, 0)] c
          in (d,) }
        """,
    )


@pytest.mark.parametrize("target", [NO_KERNELS, OVER_MESH], ids=["no kernels", "over a mesh"])
def test_without_kernels_one_key_is_packed_with_its_place(target):
    expect(
        show_prepared(lambda x: lax.sort(x, 1), X, target=target),
        """
        { lambda ; a:f32[3,4]. let
            b:f32[3,4] = formula[settings=(1,) write=write_packed_sort] a
          in (b,) }
        """,
    )


def test_integers_need_no_form_without_kernels():
    text = show_prepared(lambda x: lax.sort(x, 1), X.astype(np.int32), target=NO_KERNELS)
    assert "formula" not in text and "cpu_call" not in text


def test_keys_of_parts_of_a_byte_are_packed():
    text = show_prepared(lambda k, x: lax.sort((k, x), num_keys=1), X.astype("int4"), X)
    assert "write_packed_sort" in text and "cpu_call" not in text


def test_several_keys_of_floats_of_a_byte_stay():
    keys = X.astype("float8_e4m3fn")
    text = show_prepared(lambda k, x: lax.sort((k, k, x), num_keys=2), keys, X)
    assert "cpu_call" not in text and "formula" not in text


@pytest.mark.parametrize("k, kernel", [(1, "weft_top_k"), (3, "weft_sort")])
def test_few_of_long_rows_are_found_by_the_kernel_of_the_largest(k, kernel):
    x = jnp.ones((2, 8 * k if kernel == "weft_top_k" else 4))
    assert kernel in show_prepared(lambda x: lax.top_k(x, k), x)


def test_programs_that_are_held_are_rewritten():
    held = weft.jit(lambda x: lax.sort(x))
    loop = lambda x: lax.fori_loop(0, 3, lambda i, x: held(x) + i, x)
    assert show_prepared(loop, X).count("cpu_call") == 1


def test_a_partition_without_kernels_is_a_sort():
    text = show_prepared(lambda x: jnp.partition(x, 1), X, target=NO_KERNELS)
    assert "partition" not in text and "write_packed_sort" in text


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("dtype", ["float32", "int32", "float64", "uint64"])
@pytest.mark.parametrize("n", [(1 << 17) - 1, (1 << 17) + 5, 300_000])
def test_long_rows_are_sorted_stably_whatever_their_values(dtype, n, rng):
    draws = {
        "normal": rng.normal(size=n) * 1e5,
        "few far apart": rng.choice([0, 3, 1e4, 2e9], n),
        "of all magnitudes": 2.0 ** rng.uniform(0, 31, n),
        "descending": np.arange(n)[::-1],
        "one": np.ones(n),
    }
    with weft.enable_x64(True):
        for x in draws.values():
            x = x.astype(np.int64).astype(dtype)
            assert np.array_equal(jnp.argsort(x), np.argsort(x, kind="stable"))


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint32", "bfloat16", "int4"])
def test_results_are_those_of_numpy(native, dtype):
    x = (X - 4).astype(dtype) if dtype != "uint32" else X.astype(dtype)
    host = np.asarray(x).astype(np.float64)
    with weft.config.scope(native=native):
        assert np.array_equal(np.asarray(jnp.sort(x, axis=0)).astype(np.float64), np.sort(host, 0))
        value, place = lax.top_k(x, 2)
        order = np.argsort(-host, axis=1, kind="stable")[:, :2]
        assert np.array_equal(np.asarray(place), order)
        wanted = np.take_along_axis(host, order, 1)
        assert np.array_equal(np.asarray(value).astype(np.float64), wanted)
        least = np.sort(np.asarray(jnp.partition(x, 1, axis=1)).astype(np.float64)[:, :2], 1)
        assert np.array_equal(least, np.sort(host, 1)[:, :2])
