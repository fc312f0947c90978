import numpy as np
import pytest
import scipy.interpolate

import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import grad, jit, vmap
from weft.errors import DtypeError, ShapeError
from weft.scipy import interpolate
from weft.scipy.interpolate import RegularGridInterpolator

GRID = (np.array([0.0, 1, 2.5, 4], np.float32), np.array([-1.0, 0, 3], np.float32))


def test_doctests():
    check_examples(interpolate)


def close(got, want, tol=1e-5):
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("fill", [np.nan, 7.5, None])
@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_values_are_scipys(method, fill, rng):
    points = rng.uniform(-2, 5, (40, 2)).astype(np.float32)
    points[:4] = [[0, -1], [4, 3], [1, 0], [np.nan, 0]]
    for grid in (GRID, tuple(g[::-1] for g in GRID)):
        for shape in ((4, 3), (4, 3, 2)):
            values = rng.normal(size=shape).astype(np.float32)
            theirs = scipy.interpolate.RegularGridInterpolator(grid, values, method, False, fill)
            mine = RegularGridInterpolator(grid, values, method, False, fill)
            close(mine(points), theirs(points))
            close(mine(points.reshape(5, 8, 2)), theirs(points).reshape(5, 8, *shape[2:]))
            close(mine((points[:, 0], points[:, 1])), theirs(points))
            assert mine(points[0]).shape == (1, *shape[2:])
    close(jit(lambda v: RegularGridInterpolator(GRID, v, method, False, fill)(points))(values),
          RegularGridInterpolator(GRID, values, method, False, fill)(points))  # fmt: skip


def test_lines_points_and_dtypes():
    line = RegularGridInterpolator((np.arange(3.0),), np.array([0, 10, 40]))
    close(line(np.array([0.5, 1.5])), [5, 25])
    close(line(np.array([0.5]), method="nearest"), [0])
    point = RegularGridInterpolator((np.arange(1.0),), np.array([3.0]))
    np.testing.assert_array_equal(point(np.array([0.0, 1])), [3, np.nan])
    z = RegularGridInterpolator(GRID, np.ones((4, 3), np.complex64) * 1j)
    assert z(np.ones((2, 2))).dtype == np.complex64
    ints = RegularGridInterpolator(GRID, np.arange(12).reshape(4, 3), "nearest", False, None)
    assert ints(np.ones((2, 2))).dtype == np.int32
    assert repr(line).startswith("RegularGridInterpolator((f32[3]), i32[3]")


def test_derivatives_and_batches(rng):
    values = rng.normal(size=(4, 3)).astype(np.float32)
    at = np.array([1.7, 1.0], np.float32)
    f = lambda x, v: RegularGridInterpolator(GRID, v)(x)[0]
    slope = grad(f)(at, values)
    want = [(f(at + h, values) - f(at - h, values)) / 0.02 for h in 0.01 * np.eye(2, dtype="f")]
    close(slope, want, 1e-3)
    weights = grad(f, 1)(at, values)
    close(jnp.sum(weights * values), f(at, values))
    close(jnp.sum(weights), 1)
    many = rng.uniform(0, 3, (6, 2)).astype(np.float32)
    close(vmap(f, (0, None))(many, values), RegularGridInterpolator(GRID, values)(many))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda v: RegularGridInterpolator(GRID, v, "cubic"), ValueError, "got 'cubic'"),
        (lambda v: RegularGridInterpolator(GRID, v)(np.ones(2), "cubic"), ValueError, "'cubic'"),
        (lambda v: RegularGridInterpolator(GRID, v, bounds_error=True), NotImplementedError,
         "bounds_error must be False, .*; got True. Hint: bounds_error=False gives fill_value"),
        (lambda v: RegularGridInterpolator(GRID, v[0]), ShapeError, "an axis for each of the"),
        (lambda v: RegularGridInterpolator(GRID, v.T), ShapeError,
         r"points\[0\] must be a vector as long as axis 0 of values; got f32\[4\], f32\[3,4\]"),
        (lambda v: RegularGridInterpolator((GRID[0][[0, 2, 1, 3]], GRID[1]), v), ValueError,
         r"points\[0\] must be strictly ascending or descending"),
        (lambda v: RegularGridInterpolator(GRID, [[1.0]]), DtypeError, "got a list"),
        (lambda v: RegularGridInterpolator(GRID, v)(np.ones(3)), ShapeError,
         r"must have a coordinate for each axis of the grid, 2; got f32\[1,3\]"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(np.ones((4, 3), np.float32))
