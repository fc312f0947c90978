import importlib

import numpy as np
import pytest
import scipy.cluster.vq

import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import grad, jit, vmap
from weft.errors import DtypeError, ShapeError
from weft.scipy.cluster.vq import vq


def test_doctests():
    check_examples(importlib.import_module("weft.scipy.cluster.vq"))


@pytest.mark.parametrize("shape", [(7, 3), (7, 1), (7,), (0, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_nearest_centres_are_scipys(shape, dtype, rng):
    x = (4 * rng.normal(size=shape)).astype(dtype)
    centres = (4 * rng.normal(size=(5, *shape[1:]))).astype(dtype)
    codes, distances = jit(vq)(x, centres)
    assert codes.dtype == np.int32 and distances.dtype == np.float32
    if x.size:
        want = scipy.cluster.vq.vq(x, centres)
        np.testing.assert_array_equal(codes, want[0])
        np.testing.assert_allclose(distances, want[1], rtol=1e-5, atol=1e-5)


def test_derivatives_and_batches(rng):
    x, centres = (rng.normal(size=(n, 3)).astype(np.float32) for n in (6, 4))
    x[0] = centres[2]  # where the distance is 0 its derivative is 0
    codes, distances = vq(x, centres)
    slope = grad(lambda x: jnp.sum(vq(x, centres)[1]))(x)
    want = (x - centres[codes]) / np.maximum(distances, 1e-30)[:, None]
    np.testing.assert_allclose(slope, want, rtol=1e-5, atol=1e-6)
    both = vmap(vq, (0, None))(np.stack([x, x]), centres)
    np.testing.assert_array_equal(both[0][1], codes)
    z, far = vq(x * 1j, centres * 1j)
    np.testing.assert_array_equal(z, codes)
    assert far.dtype == np.float32


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: vq(x, x[0]), ShapeError, r"vectors or matrices; got f32\[4,2\], f32\[2\]"),
        (lambda x: vq(x, x[:, :1]), ShapeError, "the same number of features"),
        (lambda x: vq(x, x[:0]), ShapeError, "must have a centre at least"),
        (lambda x: vq([[1.0]], x), DtypeError, "vq: .* got a list"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(np.ones((4, 2), np.float32))
