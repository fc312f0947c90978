"""Bounds of sizes, their values at run time, and errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import weft
from weft.core.aval import ShapedArray
from weft.errors import ShapeError
from weft.export.specs import symbolic_shape
from weft.padding.sizes import Sizes, find_range, is_symbolic

EXPRESSIONS = "n, m, n + m, 2*n, n*m, n - 1, 10 - n, n^2 - n, floordiv(n, 3) + 1, mod(n, 3), "
EXPRESSIONS += "max(n, m), min(n - 2, m), n - floordiv(n, 2), 3*n - 2*m, floordiv(n*m, n + m)"
BUCKETS = {"n": 8, "m": 5}


def test_ranges_hold_for_all_sizes():
    for size in symbolic_shape(EXPRESSIONS):
        low, high = find_range(size, BUCKETS)
        for n, m in itertools.product(range(1, 9), range(1, 6)):
            assert low <= size.evaluate({"n": n, "m": m}) <= high, size


def test_sizes_at_run_time():
    every = symbolic_shape(EXPRESSIONS)
    compute = weft.jit(
        lambda n, m: [Sizes(BUCKETS, {"n": n, "m": m}).value(size) for size in every]
    )
    for n, m in ((1, 1), (7, 3), (8, 5)):
        got = compute(np.int32(n), np.int32(m))
        assert [int(x) for x in got] == [size.evaluate({"n": n, "m": m}) for size in every]


def test_padded_types():
    n, m = symbolic_shape("n, m")
    sizes = Sizes(BUCKETS, {})
    aval = ShapedArray((n + 1, 3, m), np.dtype(np.float32), True)
    assert is_symbolic(aval) and not is_symbolic(sizes.pad_type(aval))
    assert sizes.pad_type(aval) is ShapedArray((9, 3, 5), np.dtype(np.float32))
    assert sizes.substitute((n, (0, m), "n")) == (8, (0, 5), "n")
    with pytest.raises(ShapeError, match=r"sizes: an axis must have less than 2\*\*30 elements"):
        Sizes({"n": 2**29}, {}).bound(n * 4)


def test_masks():
    (n,) = symbolic_shape("n")
    aval = ShapedArray((2, n), np.dtype(np.float32))
    sizes = Sizes(BUCKETS, {"n": np.int32(3)})
    x = np.full((2, 8), np.nan, np.float32)
    got = np.asarray(sizes.mask(x, aval, (1,), 7))
    assert np.isnan(got[:, :3]).all() and (got[:, 3:] == 7).all()
    assert sizes.mask(x, aval, (0,), 7) is x
