"""Indices of gather and of the scatters, checked under the option `check_bounds` "all"."""

import numpy as np
import pytest

import weft
from weft import lax

X = np.arange(12, dtype=np.float32).reshape(3, 4)
READ = lax.GatherDimensionNumbers((1, 2), (), (1, 0))  # a window of (2, 3) at (column, row)
WRITE = lax.ScatterDimensionNumbers((1, 2), (), (1, 0))
UPDATES = np.ones((1, 2, 3), np.float32)
SCATTERS = ["scatter", *(f"scatter_{x}" for x in ("add", "sub", "mul", "min", "max"))]


def call(name, **mode):
    if name == "gather":
        return lambda i: lax.gather(X, i, READ, (2, 3), **mode)
    if name == "scatter_apply":
        return lambda i: lax.scatter_apply(
            X, i, lambda a: a + 1, WRITE, update_shape=(1, 2, 3), **mode
        )
    return lambda i: getattr(lax, name)(X, scatter_indices=i, updates=UPDATES,
                                        dimension_numbers=WRITE, **mode)  # fmt: skip


@pytest.mark.parametrize("name", ["gather", "scatter_apply", *SCATTERS])
def test_windows_that_reach_out(name):
    inside, column, row = np.int32([[1, 1]]), np.int32([[2, 0]]), np.int32([[0, -1]])
    with weft.config.scope(check_bounds="all"):
        for run in (call(name), weft.jit(call(name))) if name == "gather" else (call(name),):
            assert run(inside).size
            with pytest.raises(IndexError, match=rf"{name}: .* \[0, 1\] on axis 1 of .*; got 2\."):
                run(column)
            with pytest.raises(IndexError, match=rf"{name}: .* \[0, 1\] on axis 0 of .*; got -1\."):
                run(row)
        assert call(name, mode="clip")(column).size  # that is an answer
    assert call(name)(column).size
