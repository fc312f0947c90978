"""Running reductions: every way to cut an axis, ties, infinities, a fault of XLA. Rows:
cases_cumulative.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from weft import dtypes, grad, jit
from weft.errors import DtypeError, ShapeError
from weft.primitives import cumulative as cum
from weft.primitives.layout import reduce_sum
from weft.primitives.slicing import pad

UFUNCS = {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
    "cumlogsumexp": np.logaddexp,
}
# Short, long, with and without a divisor near the root; few and many rows and lanes.
SHAPES = [
    ((1,), 0), ((4,), 0), ((255,), 0), ((256,), 0), ((1009,), 0), ((3, 700), 1), ((18, 300), 1),
    ((40, 30), 0), ((17, 5, 3), 1), ((2, 300, 3), 1), ((5, 6, 20), 1), ((70000,), 0),
]  # fmt: skip


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", UFUNCS)
@pytest.mark.parametrize("shape, axis", SHAPES)
def test_every_way_to_cut_an_axis(name, shape, axis):
    x = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    x = np.exp(x / 100) if name == "cumprod" else x
    for reverse in (False, True):
        got = getattr(cum, name)(x, axis, reverse)
        wide = np.flip(x, axis) if reverse else x
        want = UFUNCS[name].accumulate(wide.astype(np.float64), axis)
        want = np.flip(want, axis) if reverse else want
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-3 if shape[0] > 5000 else 1e-4)


def test_every_way_to_cut_an_axis_without_a_kernel():
    """A dtype without a kernel; int16 wraps as NumPy's does."""
    xs = [np.random.default_rng(0).integers(-99, 99, s).astype(np.int16) for s, _ in SHAPES]
    ways = [(k, axis, reverse) for k, (_, axis) in enumerate(SHAPES) for reverse in (False, True)]
    found = jit(lambda xs: [cum.cumsum(xs[k], axis, reverse) for k, axis, reverse in ways])(xs)
    for got, (k, axis, reverse) in zip(found, ways, strict=True):
        wide = np.flip(xs[k], axis) if reverse else xs[k]
        want = np.cumsum(wide, axis, dtype=np.int16)
        np.testing.assert_array_equal(got, np.flip(want, axis) if reverse else want)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("shape", [(1000,), (20, 50)])
def test_narrow_floats_add_up_in_float32(dtype, shape):
    x = np.ones(shape, dtypes.canonicalize(dtype))
    got = cum.cumsum(x, len(shape) - 1)
    assert got.dtype == x.dtype
    want = np.cumsum(np.ones(shape), -1).astype(x.dtype)
    np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_sums_of_negative_zeros_are_such(dtype):
    for n in (2, 5, 300):
        x = np.full((n,), -np.zeros((), dtype))
        for reverse in (False, True):
            got = np.asarray(cum.cumsum(x, 0, reverse))
            assert np.signbit(got.view(np.float32)).all()


def test_sums_of_a_padded_element():
    """XLA:CPU adds wrongly here where the sum is a reduction over windows."""
    x = np.array([[0.75]], np.float32)
    for low, high in [(1, 1), (2, 0), (0, 2), (2, 2)]:
        for axis in (0, 1):
            config = [(0, 0, 0), (0, 0, 0)]
            config[axis] = (low, high, 0)
            got = jit(lambda x: cum.cumsum(pad(x, 0.0, config), axis))(x)  # noqa: B023
            want = np.cumsum(np.pad(x, [c[:2] for c in config]), axis)
            np.testing.assert_array_equal(got, want)


def test_ties_share_as_in_a_tree():
    x = np.array([1.0, 1, 1, 2, 1], np.float32)
    total = grad(lambda x: reduce_sum(cum.cummax(x), (0,)))(x)
    np.testing.assert_array_equal(total, [1.75, 0.75, 0.5, 2, 0])


def test_logarithms_of_sums_at_infinities():
    inf = np.inf
    x = np.array([-inf, -inf, 1, inf, 2, np.nan, 3], np.float32)
    np.testing.assert_array_equal(cum.cumlogsumexp(x), [-inf, -inf, 1, inf, inf, np.nan, np.nan])
    slope = grad(lambda x: cum.cumlogsumexp(x)[3])(np.array([-inf, -inf, 1, 2], np.float32))
    np.testing.assert_allclose(slope, [0, 0, 0.26894143, 0.7310586], rtol=1e-6)
    big = np.full(3, 1e4, np.float32)
    np.testing.assert_allclose(cum.cumlogsumexp(big), 1e4 + np.log([1, 2, 3]), rtol=1e-6)


def test_complex_logarithms_of_sums():
    x = np.array([1 + 1j, 2 - 0.5j, -1 + 0.25j], np.complex64)
    want = np.log(np.cumsum(np.exp(x.astype(np.complex128))))
    np.testing.assert_allclose(cum.cumlogsumexp(x), want, rtol=1e-5)


def test_empty():
    assert cum.cumsum(np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert cum.cummax(np.zeros((3, 0), np.float32), 1).shape == (3, 0)


@pytest.mark.parametrize("call, error, text", [
    (lambda: cum.cumsum(np.array([True])), DtypeError, "cumsum: needs an operand of number"),
    (lambda: cum.cumlogsumexp(np.array([1])), DtypeError, "inexact dtype; got i32[1]"),
    (lambda: cum.cumsum(np.float32(1)), ShapeError, "rank 0"),
    (lambda: cum.cumprod(np.ones(3, np.float32), -1), ShapeError, "got (-1,)"),
    (lambda: cum.cummin(np.ones(3, np.float32), 1), ShapeError, "got (1,)"),
])  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
