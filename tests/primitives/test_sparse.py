"""Products with sparse matrices: kernels against gathers, orders of entries, outside entries."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.errors import DtypeError, ShapeError
from weft.options import config
from weft.primitives import sparse

SIZE, COUNT = (300, 200), 70_000  # several pieces of a kernel, rows that cross their borders
rng = np.random.default_rng(0)
PLACES = np.stack([rng.integers(0, n + 9, COUNT) for n in SIZE], 1).astype(np.int32)
SORTED = PLACES[np.argsort(PLACES[:, 0], kind="stable")]
STARTS = np.searchsorted(SORTED[:, 0], np.arange(SIZE[0] + 1)).astype(np.int32)
DATA = rng.normal(size=COUNT).astype(np.float32)


def both(fun, *args):
    """A function with kernels and without."""
    results = []
    for native in (True, False):
        with config.scope(native=native):
            results.append(np.asarray(weft.jit(lambda *xs: fun(*xs))(*args)))
    return results


@pytest.mark.parametrize("lanes", [1, 39])
def test_kernels_agree_with_gathers(lanes):
    import scipy.sparse

    x = rng.normal(size=(SIZE[1], lanes)).astype(np.float32)
    y = rng.normal(size=(SIZE[0], lanes)).astype(np.float32)
    inside = (PLACES < SIZE).all(1)
    want = scipy.sparse.coo_array((DATA[inside], tuple(PLACES[inside].T)), SIZE).toarray() @ x
    with_it, without = both(lambda i: sparse.coo_dot(DATA, x, i, SIZE[0]), PLACES)
    np.testing.assert_allclose(with_it, want, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(with_it, without, rtol=1e-3, atol=1e-3)
    for fun in (
        lambda i: sparse.coo_dot(DATA, y, i, SIZE[1], transpose=True),
        lambda i: sparse.coo_sample(y, x, i),
    ):
        np.testing.assert_allclose(*both(fun, PLACES), rtol=1e-3, atol=1e-3)
    rows = both(lambda d, i, p: sparse.csr_dot(d, x, i, p), DATA, SORTED[:, 1], STARTS)
    np.testing.assert_allclose(*rows, rtol=1e-3, atol=1e-3)
    in_order = weft.jit(lambda i: sparse.coo_dot(DATA, x, i, SIZE[0]))(SORTED)
    np.testing.assert_array_equal(in_order, rows[0])  # the same sums in the same order


def test_entries_outside_count_for_nothing():
    data = jnp.array([1.0, np.nan, np.inf, np.nan])
    indices = jnp.array([[0, 0], [0, 2], [-1, 0], [2, 0]])
    x = jnp.ones((2, 1))
    for y in both(lambda d: sparse.coo_dot(d, x, indices, 2), data):
        np.testing.assert_array_equal(y, [[1], [0]])
    for y in both(lambda x: sparse.coo_sample(x, x, indices), x * np.nan):
        np.testing.assert_array_equal(y, [np.nan, 0, 0, 0])


def test_mistakes():
    x, indices = jnp.ones((2, 1)), jnp.zeros((3, 2), int)
    with pytest.raises(ShapeError, match=r"coo_dot: the entries must be \[n\]"):
        sparse.coo_dot(jnp.ones(2), x, indices, 2)
    with pytest.raises(DtypeError, match="coo_sample: must be of numbers of one dtype"):
        sparse.coo_sample(x, x.astype(bool), indices)


def test_narrow_indices_and_no_rows():
    """int8 indices, which end at 127 of 200 rows; and no indices at all."""
    data, at = np.float32([1, 2, 3]), np.int8([[0, 0], [127, 1], [-1, 0]])
    dense = np.float32([[5, 6], [7, 8]])
    want = np.zeros((200, 2), np.float32)
    want[0], want[127] = dense[0], 2 * dense[1]
    np.testing.assert_array_equal(sparse.coo_dot(data, dense, at, 200), want)
    nothing = sparse.coo_dot(data, np.zeros((0, 2), np.float32), at, 3)
    np.testing.assert_array_equal(nothing, np.zeros((3, 2)))
