"""Sorting: the order of special values, stability, ties, errors. Rows: cases_sort.py."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import weft.numpy as jnp
from weft import grad, jit, jvp, lax, make_jaxpr, vmap
from weft.core.jaxpr import Jaxpr, Var
from weft.errors import DtypeError, ShapeError
from weft.mesh.client import all_devices
from weft.options import config
from weft.primitives import sort
from weft.primitives.elementwise import mul
from weft.primitives.layout import reduce_sum
from weft.xla.compile import Executable, compile_text
from weft.xla.hlo import Builder
from weft.xla.placement import on_device

NAN, INF = np.nan, np.inf
MIXED = [1.0, NAN, -NAN, INF, 0.0, -0.0, 2.0, -INF, -2.0, 2.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64])
def test_floats_are_ordered_as_numbers_with_nan_last(dtype):
    with config.scope(enable_x64=True):
        out = np.asarray(sort.sort(np.array(MIXED, dtype))).astype(np.float64)
    np.testing.assert_array_equal(out, [-INF, -2, 0, 0, 1, 2, 2, INF, NAN, NAN])
    np.testing.assert_array_equal(np.signbit(out[2:4]), [False, True])  # equal: as they came


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_neighbouring_floats_are_told_apart(dtype, rng):
    starts = np.array([1e-3, 0.5, 1, 2, 3, 100], dtype).view(f"u{np.dtype(dtype).itemsize}")
    x = (starts[:, None] + np.arange(8, dtype=starts.dtype)).ravel().view(dtype)
    x = np.concatenate([-x[::-1], x])
    np.testing.assert_array_equal(np.asarray(sort.sort(rng.permutation(x))), x)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_the_comparison_for_a_gpu_makes_the_same_order(dtype):
    x = jnp.array(MIXED, dtype)
    hlo = Builder((), "cuda")
    write = lambda x: sort.sort_p.lower(hlo, x, dimension=0, is_stable=True, num_keys=1)
    hlo.function("main", [x.aval], write, "public")
    here = on_device(all_devices()[0], False)
    loaded, _ = compile_text(hlo.module("m"), here)
    (out,) = Executable(loaded, Jaxpr((), [Var(x.aval)], [Var(x.aval)], []), here)(x)
    out, ordered = (np.asarray(y).astype(np.float32) for y in (out, jnp.sort(x)))
    np.testing.assert_array_equal(out, ordered)
    np.testing.assert_array_equal(np.signbit(out[:-2]), np.signbit(ordered[:-2]))


def test_sort_is_stable():
    keys = np.array([0.0, 1.0, -0.0, NAN, 1.0, -NAN], np.float32)
    _, order = sort.sort_key_val(keys, np.arange(6))
    np.testing.assert_array_equal(order, [0, 2, 1, 4, 3, 5])
    x = np.random.default_rng(0).integers(0, 9, 500).astype(np.int8)
    _, order = sort.sort((x, np.arange(500)), num_keys=1)
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))


def test_complex_numbers_by_parts():
    x = np.array([1 + 1j, 1 - 1j, NAN + 0j, 0 + 5j, complex(1, NAN)], np.complex64)
    np.testing.assert_array_equal(sort.sort(x), [5j, 1 - 1j, 1 + 1j, complex(1, NAN), NAN])


@pytest.mark.parametrize("dtype", [np.uint32, np.uint8, bool, ml_dtypes.int4, np.int32])
def test_keys_of_every_kind_carry_values(dtype):
    keys = np.array([3, 0, 2**31, 1, 0, 7]).astype(np.uint32).astype(dtype)
    out, order = sort.sort_key_val(keys, np.arange(6))
    want = np.argsort(keys.astype(np.int64), kind="stable")
    np.testing.assert_array_equal(order, want)
    np.testing.assert_array_equal(np.asarray(out), keys[want])


def test_axes_and_several_keys():
    x = np.array([[3, 1, 2], [1, 2, 3], [1, 0, 3]], np.float32)
    y = np.array([[1, 2, 3], [9, 8, 7], [4, 5, 6]], np.int32)
    got = sort.sort((x, y), 0, num_keys=2)
    order = np.lexsort((y, x), axis=0)
    np.testing.assert_array_equal(got[1], np.take_along_axis(y, order, 0))
    np.testing.assert_array_equal(sort.sort(x, -2), np.sort(x, 0))
    assert isinstance(sort.sort([x]), tuple)


def test_derivatives_follow_the_order():
    x = np.array([[3.0, 1, 2], [1, 2, 3]], np.float32)
    t = np.array([[10.0, 20, 30], [40, 50, 60]], np.float32)
    _, dot = jvp(lambda x: sort.sort(x, 0), (x,), (t,))
    np.testing.assert_array_equal(dot, [[40, 20, 30], [10, 50, 60]])
    weights = np.array([1.0, 10, 100], np.float32)
    pull = grad(lambda x: reduce_sum(mul(sort.sort(x), weights), (0,)))
    np.testing.assert_array_equal(vmap(pull)(x), [[100, 1, 10], [1, 10, 100]])
    top = grad(lambda x: reduce_sum(sort.top_k(x, 1, axis=0)[0], (0, 1)))
    np.testing.assert_array_equal(top(x), [[1, 0, 0], [0, 1, 1]])


def test_top_k_has_nan_first_and_zeros_by_sign():
    value, place = sort.top_k(np.array(MIXED, np.float32), 7)
    np.testing.assert_array_equal(value, [NAN, INF, 2, 2, 1, 0, -0.0])
    np.testing.assert_array_equal(place, [1, 3, 6, 9, 0, 4, 5])


def test_top_k_of_small_integers():
    value, place = sort.top_k(np.array([1, 7, 3, 7]).astype(ml_dtypes.int4), 2)
    assert value.dtype == ml_dtypes.int4
    np.testing.assert_array_equal(place, [1, 3])


def test_approximate_searches_are_exact():
    x = np.array([[3.0, 1, 2], [1, 2, 3]], np.float32)
    np.testing.assert_array_equal(sort.approx_max_k(x, 2)[0], [[3, 2], [3, 2]])
    value, place = sort.approx_min_k(x, 1, reduction_dimension=0)
    np.testing.assert_array_equal(value, [[1, 1, 2]])
    np.testing.assert_array_equal(place, [[1, 0, 0]])


def test_one_equation():
    x = np.zeros((2, 3), np.float32)
    text = str(make_jaxpr(lambda x: sort.sort((x, x), num_keys=2))(x))
    assert "sort[dimension=1 is_stable=True num_keys=2] a a" in " ".join(text.split())


@pytest.mark.parametrize("call, error, text", [
    (lambda x: sort.sort(x, 2), ShapeError, "sort: an axis of an array of rank 2"),
    (lambda x: sort.sort(x[0, 0]), ShapeError, "rank 0"),
    (lambda x: sort.sort((x, x[0])), ShapeError, "equal shapes; got f32[2,3], f32[3]"),
    (lambda x: sort.sort(()), ShapeError, "got none"),
    (lambda x: sort.sort((x,), num_keys=2), ShapeError, "num_keys must be from 1"),
    (lambda x: sort.top_k(x, 4), ShapeError, "got k=4 for axis 1 of f32[2,3]"),
    (lambda x: sort.top_k(x, -1), ShapeError, "got k=-1"),
    (lambda x: sort.top_k(x * 1j, 1), DtypeError, "real dtype"),
    (lambda x: sort.approx_max_k(x.astype(int), 1), DtypeError, "float dtype"),
    (lambda x: sort.approx_min_k(x, 1, recall_target=2), ShapeError, "recall_target"),
])  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error) as caught:
        call(np.zeros((2, 3), np.float32))
    assert text in str(caught.value)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "uint8", "complex64"])
def test_two_keys_of_special_values(dtype, native):
    """NaN after all, zeros of both signs alike, and then the second key; the order is stable."""
    special = [0, 1, 2, 3, 100] if dtype == "uint8" else [-100, -1, -0.0, 0.0, 1, 100]
    if "int" not in dtype:
        special += [np.inf, -np.inf, np.nan, 1e-7, -1e-7]
    if dtype == "complex64":
        special += [1 + 1j, 1 - 1j, complex(0, np.nan), complex(np.inf, 1), complex(-1, 2)]
    x = np.array(special * 3).astype(jnp.dtype(dtype))
    x = x[np.random.default_rng(0).permutation(len(x))]
    second, place = np.arange(len(x)) % 2, np.arange(len(x))
    by_two = jit(lambda *xs: lax.sort(xs, num_keys=2)[2])
    with config.scope(native=native):
        got = by_two(x, second.astype(x.dtype), place)
    wide = x.astype(np.complex128)
    real, imag = np.nan_to_num(
        np.stack([wide.real, wide.imag]), nan=np.inf, posinf=1e9, neginf=-1e9
    )
    np.testing.assert_array_equal(got, np.lexsort((place, second, imag, real)))


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("n", [0, 1, 9, 1025, 140_001])
def test_places_of_true_elements(native, n):
    """Masks with few, some and all True; fewer places requested than there are, and more than n."""
    rng = np.random.default_rng(n)
    masks = np.stack([rng.uniform(size=n) < part for part in (0, 0.01, 0.5, 1)])
    sizes = {0, 1, n // 3, n + 2}

    @jit
    def find(masks):
        return [(sort.find_places(masks, size), sort.find_places(masks[2], size)) for size in sizes]

    with config.scope(native=native):
        found = find(masks)
    for size, (rows, one) in zip(sizes, found, strict=True):
        for got, mask in zip([*rows, one], [*masks, masks[2]], strict=True):
            want = np.append(np.flatnonzero(mask), [n] * size)[:size]
            np.testing.assert_array_equal(got, want)


def test_places_are_of_truth_values():
    with pytest.raises(DtypeError, match=r"find_places: the operand must be bool; got f32\[2\]"):
        sort.find_places(np.zeros(2, np.float32), 1)


@pytest.mark.parametrize("native", [True, False])
def test_the_order_of_floats_without_a_sign(native):
    dtype = ml_dtypes.float8_e8m0fnu
    x = np.array([1, 2, 0.5, 4, np.nan, 2.0**-127, 2.0**127]).astype(dtype)
    order = [5, 2, 0, 1, 3, 6, 4]

    def run(x):
        pair = lax.sort((x, x[::-1]), num_keys=1)
        return jnp.argsort(x), lax.sort(x), pair[1], lax.top_k(x, 3)[1], jnp.argmax(x)

    with config.scope(native=native):
        found = [np.asarray(y).astype(np.float32) for y in jit(run)(x)]
    wide = x.astype(np.float32)
    for got, want in zip(found, (order, wide[order], wide[::-1][order], [4, 6, 3], 4), strict=True):
        np.testing.assert_array_equal(got, want)
