"""Functions of dynamic_slicing.py: forms of arguments, errors. Rules: cases_dynamic_slicing.py."""

from __future__ import annotations

import numpy as np
import pytest

from weft.errors import DtypeError, ShapeError
from weft.primitives import dynamic_slicing as ds

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_dynamic_indices_count_from_the_end():
    np.testing.assert_array_equal(ds.dynamic_slice(X, (-1, -2), (1, 2)), X[-1:, -2:])
    np.testing.assert_array_equal(
        ds.dynamic_slice(X, (np.int32(-1), np.array(1)), (1, 2)), X[-1:, 1:3]
    )
    np.testing.assert_array_equal(ds.dynamic_slice(X, np.array([-1, 9]), (1, 2)), X[-1:, 2:])
    kept = ds.dynamic_slice(X, (np.array(-1, np.int32), 0), (1, 4), allow_negative_indices=False)
    np.testing.assert_array_equal(kept, X[:1])


def test_narrow_indices_reach_all_of_a_long_axis():
    x = np.arange(300, dtype=np.int32)
    assert ds.dynamic_slice(x, (np.array(-1, np.int8),), (1,)).tolist() == [299]
    assert ds.dynamic_slice(x, (np.array(200, np.uint8),), (1,)).tolist() == [200]


def test_dynamic_conveniences():
    i = np.array(-1, np.int32)
    np.testing.assert_array_equal(ds.dynamic_slice_in_dim(X, i, 1, 1), X[:, -1:])
    np.testing.assert_array_equal(ds.dynamic_index_in_dim(X, i, 0, False), X[-1])
    row = np.full(4, 7, np.float32)
    want = X.copy()
    want[-1] = 7
    np.testing.assert_array_equal(ds.dynamic_update_index_in_dim(X, row, i, 0), want)
    np.testing.assert_array_equal(ds.dynamic_update_slice_in_dim(X, row[None], i, 0), want)
    assert ds.dynamic_update_index_in_dim(X[0], 9.0, 1, 0).tolist() == [0, 9, 2, 3]


ERRORS = [
    (lambda: ds.dynamic_slice(X, (0,), (1, 1)), ShapeError, "dynamic_slice: there must be one"),
    (lambda: ds.dynamic_slice(X, (0.0, 0), (1, 1)), DtypeError, "indices must be integers"),
    (lambda: ds.dynamic_slice(X, (X[0], 0), (1, 1)), ShapeError, "one scalar index"),
    (lambda: ds.dynamic_slice(X, (0, 0), (4, 1)), ShapeError, "slice_sizes must have a size"),
    (lambda: ds.dynamic_update_slice(X, X[0], (0, 0)), ShapeError, "update's shape must have"),
    (lambda: ds.dynamic_update_slice(X, X[:1] > 0, (0, 0)), DtypeError, "must have equal dtypes"),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()
