"""mode, rankdata and sem against SciPy."""

import numpy as np
import pytest
import scipy.stats

import weft.numpy as jnp
from weft.errors import ShapeError
from weft.scipy import stats

INF, NAN = np.inf, np.nan


SAMPLE = np.array([[1, 2, 2, 3], [5, 5, 4, 4], [1, 1, 1, 9]])


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_mode(axis):
    for keepdims in (False, True):
        want = scipy.stats.mode(SAMPLE, axis=axis, keepdims=keepdims)
        for got, expected in zip(stats.mode(SAMPLE, axis, keepdims=keepdims), want, strict=True):
            assert got.dtype == np.int32 and got.shape == np.shape(expected)
            np.testing.assert_array_equal(got, expected)


def test_mode_of_odd_things():
    assert stats.mode(jnp.array([1.0, NAN, NAN]))[1] == 2
    assert stats.mode(3) == stats.mode(3, axis=0) == stats.mode(3, axis=-1) == (3, 1)
    with pytest.raises(ShapeError, match="axis"):
        stats.mode(3, axis=1)
    empty = stats.mode(jnp.zeros((0, 3)))
    assert np.isnan(empty.mode).all() and (empty.count == 0).all() and empty.mode.shape == (3,)
    with pytest.raises(
        NotImplementedError, match="mode: nan_policy must be 'propagate'; got 'omit'"
    ):
        stats.mode(jnp.ones(3), nan_policy="omit")


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
def test_rankdata(method, rng):
    x = rng.integers(0, 6, (4, 9))
    for axis in (None, 0, -1):
        got = stats.rankdata(x, method, axis=axis)
        want = scipy.stats.rankdata(x, method, axis=axis)
        np.testing.assert_array_equal(got, want if axis is not None else want.reshape(-1))
    holes = np.where(x == 3, NAN, x)[:2].astype(np.float32)
    want = scipy.stats.rankdata(holes, method, axis=1)
    np.testing.assert_array_equal(stats.rankdata(holes, method, axis=1), want)
    assert stats.rankdata(jnp.zeros(0), method).shape == (0,)
    assert stats.rankdata(3, method).tolist() == [1.0]


def test_rankdata_errors():
    with pytest.raises(ValueError, match="rankdata: method must be 'average', 'min', 'max'"):
        stats.rankdata(jnp.ones(3), "median")


def test_sem():
    holes = np.where(SAMPLE == 4, NAN, SAMPLE).astype(np.float32)
    for axis in (0, 1, None):
        for ddof in (0, 1):
            want = scipy.stats.sem(SAMPLE, axis, ddof)
            np.testing.assert_allclose(stats.sem(SAMPLE, axis, ddof), want, rtol=1e-6)
        want = scipy.stats.sem(holes, axis, nan_policy="omit")
        np.testing.assert_allclose(stats.sem(holes, axis, nan_policy="omit"), want, rtol=1e-6)
    assert stats.sem(SAMPLE, 1, keepdims=True).shape == (3, 1)
