"""Functions of dynamic_slicing.py: forms of arguments, errors. Rules: cases_dynamic_slicing.py."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
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


@pytest.mark.parametrize("known", [True, False])
def test_starts_out_of_bounds_are_told_under_check_bounds(known):
    """On each axis, at the first and last place inside and the next on either side."""
    x, u = jnp.ones((3, 5)), jnp.zeros((2, 1))
    index = (lambda *i: i) if known else (lambda *i: [*map(jnp.int32, i)])
    slicing = lambda *i: lax.dynamic_slice(x, index(*i), (2, 1), allow_negative_indices=False)
    updating = lambda *i: lax.dynamic_update_slice(x, u, index(*i), allow_negative_indices=False)
    with weft.config.scope(check_bounds="all"):
        for name, run in (("dynamic_slice", slicing), ("dynamic_update_slice", updating)):
            for inside in ((0, 0), (1, 4), (0, 4)):
                run(*inside)
            for at, axis, last in (
                ((2, 0), 0, 1),
                ((0, 5), 1, 4),
                ((-1, 0), 0, 1),
                ((1, -1), 1, 4),
            ):
                with pytest.raises(weft.errors.IndexingError) as info:
                    run(*at)
                said = f"start must be in [0, {last}] on axis {axis} of f32[3,5]; got {at[axis]}."
                assert str(info.value).startswith(f"{name}: {said}")
