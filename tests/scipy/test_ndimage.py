import numpy as np
import pytest
import scipy.ndimage

import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import grad, jit, vmap
from weft.errors import DtypeError, ShapeError
from weft.scipy import ndimage
from weft.scipy.ndimage import map_coordinates

# What SciPy calls our modes.
MODES = {
    "constant": "grid-constant", "nearest": "nearest", "wrap": "grid-wrap", "mirror": "mirror",
    "reflect": "reflect", "grid-constant": "grid-constant", "grid-wrap": "grid-wrap",
    "grid-mirror": "grid-mirror",
}  # fmt: skip


def test_doctests():
    check_examples(ndimage)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("mode", MODES)
def test_values_are_scipys(mode, order, rng):
    for shape in ((5,), (4, 3), (1, 3)):
        x = rng.normal(size=shape).astype(np.float32)
        points = rng.uniform(-9, 12, (len(shape), 50)).astype(np.float32)
        for cval in (0.0, -2.5):
            want = scipy.ndimage.map_coordinates(
                x, points, order=order, mode=MODES[mode], cval=cval
            )
            got = map_coordinates(x, points, order, mode, cval)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
        traced = jit(lambda x, p, c: map_coordinates(x, list(p), order, mode=mode, cval=c))
        np.testing.assert_allclose(traced(x, points, -2.5), got, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int16, bool, np.complex64, jnp.bfloat16])
def test_dtypes(dtype, rng):
    x = rng.integers(0, 2 if np.dtype(dtype) == bool else 100, (4, 5)).astype(dtype)
    points = [np.array([0.5, 1.25, 3.0, -1]), np.array([0.5, 2.5, 3.75, 7])]
    for order in (0, 1):
        got = map_coordinates(x, points, order, "nearest")
        assert got.dtype == dtype
        wide = x.astype(complex)
        want = map_coordinates(wide.real.astype(np.float32), points, order, "nearest")
        if np.dtype(dtype).kind in "iu":
            want = np.floor(want + 0.5)
        if np.dtype(dtype) == bool:
            want = want != 0
        np.testing.assert_allclose(got.astype(complex), np.asarray(want, complex), rtol=1e-2)


def test_coordinates_broadcast_and_integers_do():
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    got = map_coordinates(x, [np.arange(3)[:, None], np.arange(4)], 1)
    np.testing.assert_array_equal(got, x)
    assert np.isnan(map_coordinates(x, [np.array([np.nan]), np.ones(1)], 1)[0])
    assert map_coordinates(x[:0], [np.ones(2), np.ones(2)], 1, cval=3.0).tolist() == [3, 3]
    assert map_coordinates(np.float32(2), [], 1) == 2


@pytest.mark.parametrize("mode", ["constant", "nearest", "mirror"])
def test_derivatives_and_batches(mode, rng):
    x = rng.normal(size=(4, 3)).astype(np.float32)
    points = np.array([[0.3, 1.6, 2.2], [0.7, 1.4, 1.5]], np.float32)
    f = lambda x, p: jnp.sum(jnp.sin(map_coordinates(x, p, 1, mode)))
    for i, at in enumerate((x, points)):
        slope = grad(f, i)(x, points)
        direction = rng.normal(size=at.shape).astype(np.float32)
        moves = [direction if i == k else 0 for k in range(2)]
        up, down = ((x + h * moves[0], points + h * moves[1]) for h in (1e-3, -1e-3))
        difference = (f(*up) - f(*down)) / 2e-3
        np.testing.assert_allclose(jnp.vdot(slope, direction), difference, rtol=1e-2, atol=1e-2)
    g = lambda x, p: map_coordinates(x, p, 1, mode)
    both = vmap(g)(np.stack([x, -x]), np.stack([points, points]))
    np.testing.assert_allclose(both, np.stack([g(x, points), -g(x, points)]), rtol=1e-6)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x, p: map_coordinates(x, p[:1], 1), ShapeError,
         r"one array for each axis of input; got 1 for f32\[2,2\]"),
        (lambda x, p: map_coordinates(x, p, 3), NotImplementedError, "order must be 0 or 1; got 3"),
        (lambda x, p: map_coordinates(x, p, 1, "edge"), NotImplementedError, "got 'edge'"),
        (lambda x, p: map_coordinates(x, [p[0], p[1] * 1j], 1), DtypeError, "must be real; got"),
        (lambda x, p: map_coordinates(x[:0], p, 1, "wrap"), ShapeError, "input must have elements"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(np.ones((2, 2), np.float32), np.ones((2, 3), np.float32))
