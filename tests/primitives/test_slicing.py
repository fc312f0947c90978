"""Functions of slicing.py: forms of arguments, errors, programs. Rules: cases_slicing.py."""

from __future__ import annotations

import numpy as np
import pytest

from weft.core.aval import ShapedArray
from weft.core.primitive import Axis, Linear
from weft.core.stage import stage
from weft.errors import DtypeError, IndexingError, ShapeError
from weft.primitives import dynamic_slicing as ds
from weft.primitives import slicing
from weft.transforms.batch import batch

X = np.arange(12, dtype=np.float32).reshape(3, 4)
F = ShapedArray((3, 4), np.float32)
I32 = ShapedArray((), np.int32)


def program(fun, *avals):
    return str(stage(lambda *xs: [fun(*xs)], avals)[0])


def test_slice_in_dim_counts_from_the_end():
    np.testing.assert_array_equal(slicing.slice_in_dim(X, -2, None, 1, -1), X[:, 2:])
    np.testing.assert_array_equal(slicing.slice_in_dim(X, None, -1, 2), X[:-1:2])


def test_index_in_dim():
    np.testing.assert_array_equal(slicing.index_in_dim(X, -1), X[-1:])
    np.testing.assert_array_equal(slicing.index_in_dim(X, 1, 1, keepdims=False), X[:, 1])


def test_concatenate_takes_an_array_as_its_rows():
    np.testing.assert_array_equal(
        slicing.concatenate(slicing.slice(X, (0, 0), (3, 4)), 0), X.ravel()
    )
    assert slicing.concatenate([X], 0) is X


def test_split_stack_unstack_tile():
    assert [y.shape for y in slicing.split(X, [1, 3], -1)] == [(3, 1), (3, 3)]
    assert slicing.stack([X, X], -1).shape == (3, 4, 2)
    assert len(slicing.unstack(X, -1)) == 4
    assert slicing.tile(X, [2, 1]).shape == (6, 4)


def test_padding_takes_a_number():
    x = np.ones((2,), np.int8)
    out = slicing.pad(x, 3, [(1, 0, 1)])
    assert out.tolist() == [3, 1, 3, 1]
    assert out.dtype == np.int8


def test_the_cotangent_of_a_padding_value_is_exact():
    ct = np.array([1, np.inf, np.inf], np.float32)
    value = Linear(ShapedArray((), np.float32))
    _, value_ct = slicing.pad_p.transpose([ct], X[0, :2], value, padding_config=((1, 0, 0),))
    assert float(value_ct) == 1


def test_programs_are_those_of_the_field():
    text = program(lambda x, i: ds.dynamic_slice(x, (i, 0), (1, 2)), F, I32)
    assert "dynamic_slice[slice_sizes=(1, 2)]" in text
    assert "select_n" in text
    assert "slice[limit_indices=(2, 4) start_indices=(0, 0) strides=(1, 1)]" in program(
        lambda x: slicing.slice_in_dim(x, 0, 2), F
    )
    assert "concatenate[dimension=0]" in program(lambda x: slicing.concatenate([x, x], 0), F)
    assert "pad[padding_config=((0, 0, 0), (1, 0, 2))]" in program(
        lambda x: slicing.pad(x, 0.0, [(0, 0, 0), (1, 0, 2)]), F
    )


def test_batching_keeps_the_mapped_axis_where_it_is():
    x = np.zeros((3, 5, 4), np.float32)
    for fun in (
        lambda x: slicing.slice(x, (0, 1), (2, 3)),
        lambda x: slicing.pad(x, 0.0, [(1, 0, 0), (0, 0, 0)]),
        lambda x: slicing.concatenate([x, x], 1),
        lambda x: slicing.tile(x, (1, 2)),
        lambda x: ds.dynamic_slice(x, (0, 1), (2, 2)),
    ):
        outs, dims = batch(lambda x, fun=fun: [fun(x)], [x], [1], Axis(5))
        assert dims == [1]
        assert outs[0].shape[1] == 5


ERRORS = [
    (lambda: slicing.slice(X, (0,), (3,)), ShapeError, "slice: start_indices, limit_indices and"),
    (lambda: slicing.slice(X, (2, 0), (1, 4)), ShapeError, "0 <= start <= limit <= size"),
    (lambda: slicing.slice(X, (0, 0), (3, 5)), ShapeError, r"got .* for f32\[3,4\]"),
    (lambda: slicing.slice(X, (0, 0), (3, 4), (0, 1)), ShapeError, "stride > 0"),
    (lambda: slicing.slice_in_dim(X, 0, 1, 1, 2), ShapeError, r"in \[-2, 2\); got 2"),
    (lambda: slicing.index_in_dim(X, 3), IndexingError, r"index must be in \[-3, 3\) on axis 0"),
    (lambda: slicing.pad(X, np.int32(0), [(0, 0, 0)] * 2), DtypeError, "pad: operands must have"),
    (lambda: slicing.pad(X, 0.0, [(0, 0, 0)]), ShapeError, "pad: padding_value must be a scalar"),
    (lambda: slicing.pad(X, 0.0, [(0, 0, -1)] * 2), ShapeError, "pad: interior padding"),
    (lambda: slicing.pad(X, 0.0, [(-4, 0, 0)] * 2), ShapeError, "sizes that result must be >= 0"),
    (
        lambda: slicing.concatenate([], 0),
        DtypeError,
        "concatenate: operands must have equal dtypes",
    ),
    (lambda: slicing.concatenate([X, X[0]], 0), ShapeError, r"on axis 0; got f32\[3,4\], f32\[4\]"),
    (lambda: slicing.concatenate([X, X], -1), ShapeError, "concatenate: axes must be distinct"),
    (lambda: slicing.concatenate([X, X.astype(np.int32)], 0), DtypeError, "must have equal dtypes"),
    (lambda: slicing.split(X, [1, 1]), ShapeError, "split: sizes must be >= 0 and add up"),
    (lambda: slicing.stack([X, X[0]]), ShapeError, "stack: operands must have equal shapes"),
    (lambda: slicing.stack([]), DtypeError, "operands must have equal dtypes; got none"),
    (lambda: slicing.unstack(X, 2), ShapeError, "unstack: an axis of an array of rank 2"),
    (lambda: slicing.tile(X, (1,)), ShapeError, "tile: reps must have one entry >= 0"),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()
