"""Order by value, searching and sets against NumPy; sizes that are fixed; under jit, grad, vmap."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.errors import ConcretizationTypeError, ShapeError

HOST = np.array([[3, 1, 2, 1], [0, -5, 7, 7], [2, 2, 2, -1]], np.float32)
NAN = np.array([3, np.nan, -np.inf, 1, np.inf, -0.0, np.nan, 0.0], np.float32)
COMPLEX = np.array([1 + 2j, 1 - 1j, 0, -3 + 1j, 1 + 1j], np.complex64)


def same(got, want):
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "bool", "bfloat16", "float16"])
def test_sort(axis, dtype):
    x = jnp.asarray(np.abs(HOST)).astype(dtype)
    host = np.asarray(x)
    same(jnp.sort(x, axis), np.sort(host, axis))
    same(jnp.argsort(x, axis), np.argsort(host, axis, kind="stable"))
    down = jnp.sort(x, axis, descending=True)
    same(down, np.flip(np.sort(host, axis), -1 if axis is None else axis))


def test_sort_puts_nan_last_and_keeps_ties_in_order():
    x = jnp.asarray(NAN)
    same(jnp.sort(x), np.sort(NAN))
    same(jnp.argsort(x), np.argsort(NAN, kind="stable"))
    same(jnp.sort(jnp.asarray(COMPLEX)), np.sort(COMPLEX))
    same(jnp.sort_complex(jnp.array([3, 1])), np.sort_complex([3, 1]))
    assert jnp.argsort(jnp.array([1, 1, 0]), descending=True).tolist() == [0, 1, 2]
    assert jnp.argsort(jnp.array([1, 0]), dtype="int8").dtype == "int8"


def test_sort_under_transformations():
    x = jnp.asarray(HOST)
    same(weft.jit(jnp.sort)(x), np.sort(HOST))
    same(weft.vmap(jnp.argsort, in_axes=1)(x), np.argsort(HOST.T, kind="stable"))
    weights = jnp.arange(4.0)
    grad = weft.grad(lambda v: (jnp.sort(v) * weights).sum())(jnp.array([3.0, 0.0, 2.0, 9.0]))
    assert grad.tolist() == [2, 0, 1, 3]


def test_partition_and_lexsort():
    x = jnp.asarray(HOST)
    for kth in (0, 2, -1):
        got = np.asarray(jnp.partition(x, kth, axis=1))
        want = np.sort(HOST, 1)[:, kth]
        same(got[:, kth], want)
        assert (got[:, :kth] <= want[:, None]).all() if kth > 0 else True
        same(np.take_along_axis(HOST, np.asarray(jnp.argpartition(x, kth, 1)), 1)[:, kth], want)
    keys = [jnp.array([1, 0, 1]), jnp.array([2, 1, 1])]
    same(jnp.lexsort(keys), np.lexsort([np.asarray(k) for k in keys]))
    same(jnp.lexsort(jnp.stack(keys)), np.lexsort([np.asarray(k) for k in keys]))
    assert int(jnp.lexsort((1, 2))) == 0


@pytest.mark.parametrize("axis", [0, -1])
def test_top_k(axis):
    n = HOST.shape[axis]
    values, places = jnp.top_k(jnp.asarray(HOST), n - 1, axis=axis)
    same(values, np.flip(np.sort(HOST, axis), axis).take(range(n - 1), axis))
    same(np.take_along_axis(HOST, np.asarray(places), axis), values)
    values, places = jnp.top_k(jnp.asarray(HOST), 2, axis=axis, mode="smallest")
    same(values, np.sort(HOST, axis).take(range(2), axis))
    same(np.take_along_axis(HOST, np.asarray(places), axis), values)
    with pytest.raises(ValueError, match="top_k: mode must be 'largest' or 'smallest'; got 'best'"):
        jnp.top_k(jnp.asarray(HOST), 1, mode="best")


def test_sort_errors():
    with pytest.raises(TypeError, match="kind must be None; got 'stable'. Hint: stable=True"):
        jnp.sort(jnp.zeros(2), kind="stable")
    with pytest.raises(ShapeError, match="axis must"):
        jnp.sort(jnp.float32(1))
    with pytest.raises(ShapeError, match=r"kth must be in \[-2, 2\)"):
        jnp.partition(jnp.zeros(2), 2)
    with pytest.raises(TypeError, match="operands must be arrays"):
        jnp.sort([2, 1])
    with pytest.raises(TypeError, match="at least one key"):
        jnp.lexsort([])


@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "sort", "compare_all"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side, method):
    for a, v in (
        (np.sort(NAN), NAN),
        (np.sort(HOST.ravel()), HOST),
        (np.arange(0), np.array([1])),
        (np.sort(COMPLEX), COMPLEX),
        (np.array([1, 3, 5], np.int32), np.float32(3.5)),
    ):
        got = jnp.searchsorted(jnp.asarray(a), jnp.asarray(v), side, method=method)
        same(got, np.searchsorted(a, v, side))
        assert got.dtype == np.int32


def test_searchsorted_otherwise():
    a = jnp.array([2, 1, 3])
    assert int(jnp.searchsorted(a, 2, sorter=jnp.argsort(a))) == 1
    rows = jnp.array([[0.0, 2.0], [1.0, 5.0]])
    assert weft.vmap(lambda r: jnp.searchsorted(r, 1.0, side="right"))(rows).tolist() == [1, 1]
    with pytest.raises(ShapeError, match="a must be a vector"):
        jnp.searchsorted(rows, 1.0)
    with pytest.raises(ValueError, match="side must be"):
        jnp.searchsorted(a, 1, side="middle")
    with pytest.raises(ValueError, match="method must be one of"):
        jnp.searchsorted(a, 1, method="magic")


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[2.0, 4.0], [4.0, 2.0], [3.0], []])
def test_digitize(bins, right):
    x = np.arange(6, dtype=np.float32)
    got = jnp.digitize(jnp.asarray(x), jnp.array(bins), right)
    same(got, np.digitize(x, np.array(bins), right))


# --- searching --------------------------------------------------------------------------------


@pytest.mark.parametrize("host", [HOST > 1, HOST, NAN, np.zeros((2, 0)), np.zeros(3)], ids=str)
def test_nonzero(host):
    x = jnp.asarray(host)
    for got, want in zip(jnp.nonzero(x), np.nonzero(host), strict=True):
        same(got, want)
    for got, want in zip(jnp.where(x), np.nonzero(host), strict=True):
        same(got, want)
    same(jnp.flatnonzero(x), np.flatnonzero(host))
    same(jnp.argwhere(x), np.argwhere(host))
    for size in (0, 2, 15):
        found = [
            np.pad(i[:size], (0, max(size - len(i), 0)), constant_values=-1)
            for i in np.nonzero(host)
        ]
        got = weft.jit(lambda v, size=size: jnp.nonzero(v, size=size, fill_value=-1))(x)
        for g, w in zip(got, found, strict=True):
            same(g, w)


def test_nonzero_fills_and_errors():
    x = jnp.asarray(HOST > 2)
    assert [i.tolist()[-1] for i in jnp.nonzero(x, size=9)] == [0, 0]
    assert [i.tolist()[-1] for i in jnp.nonzero(x, size=9, fill_value=(3, 4))] == [3, 4]
    assert weft.vmap(lambda r: jnp.flatnonzero(r, size=2))(x).tolist() == [[0, 0], [2, 3], [0, 0]]
    assert jnp.argwhere(jnp.float32(3)).shape == (1, 0)
    with pytest.raises(ConcretizationTypeError, match=r"Hint: jnp.nonzero\(..., size=n\)"):
        weft.jit(jnp.nonzero)(x)
    with pytest.raises(ShapeError, match="needs at least one axis"):
        jnp.nonzero(jnp.float32(1))
    with pytest.raises(ShapeError, match="one for each axis; got 1"):
        jnp.nonzero(x, size=2, fill_value=(1,))
    with pytest.raises(TypeError, match="both x and y, or neither"):
        jnp.where(x, 1)


def test_compress_and_extract():
    x, host = jnp.asarray(HOST), HOST
    for axis, condition in (
        (None, [True, False, True]),
        (0, [False, True, True]),
        (1, [True, False]),
    ):
        got = jnp.compress(jnp.array(condition), x, axis)
        same(got, np.compress(condition, host, axis))
    same(x.compress(jnp.array([True, False, True]), 0), host[[0, 2]])
    same(jnp.extract(x > 1, x), np.extract(host > 1, host))
    fixed = weft.jit(lambda v: jnp.extract(v > 1, v, size=8, fill_value=-9))(x)
    same(fixed, np.pad(np.extract(host > 1, host), (0, 1), constant_values=-9))
    with pytest.raises(ConcretizationTypeError, match="size=n"):
        weft.jit(lambda v: jnp.extract(v > 1, v))(x)


# --- sets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique(axis):
    host = np.array([[2, 1, 2], [2, 1, 2], [0, 1, 0]], np.int32)
    x = jnp.asarray(host)
    want = np.unique(host, True, True, True, axis=axis)
    for got, w in zip(jnp.unique(x, True, True, True, axis), want, strict=True):
        same(got, w.reshape(got.shape))
    n = want[0].shape[axis or 0]
    for size in (1, n, n + 2):
        fixed = weft.jit(lambda v, size=size: jnp.unique(v, True, True, True, axis, size=size))(x)
        shown = min(size, n)
        values = np.moveaxis(np.asarray(fixed[0]), axis or 0, 0)
        all_values = np.moveaxis(want[0], axis or 0, 0)
        same(values[:shown], all_values[:shown])
        assert all((v == all_values[0]).all() for v in values[shown:])
        same(fixed[1][:shown], want[1][:shown])
        same(fixed[2], want[2].reshape(fixed[2].shape))
        same(fixed[3], np.pad(want[3][:shown], (0, size - shown)))


def test_unique_of_nan_fills_and_parts():
    x = jnp.array([np.nan, 1.0, np.nan])
    np.testing.assert_array_equal(jnp.unique(x), [1, np.nan])
    np.testing.assert_array_equal(jnp.unique(x, size=3), [1, np.nan, 1])
    assert jnp.unique(x, equal_nan=False).size == 3
    assert jnp.unique(x, equal_nan=False, size=4, fill_value=0).tolist()[3] == 0
    y = jnp.array([[3, 1], [1, 2]])
    found = jnp.unique_all(y)
    assert found.values.tolist() == [1, 2, 3]
    assert found.indices.tolist() == [1, 3, 0]
    assert found.inverse_indices.tolist() == [[2, 0], [0, 1]]
    assert found.counts.tolist() == [2, 1, 1]
    assert jnp.unique_counts(y).counts.tolist() == [2, 1, 1]
    assert jnp.unique_inverse(y).inverse_indices.shape == y.shape
    assert jnp.unique_values(y, size=2).tolist() == [1, 2]
    assert jnp.unique(jnp.zeros(0), size=2, fill_value=5).tolist() == [5, 5]
    with pytest.raises(ShapeError, match="needs a fill_value"):
        jnp.unique(jnp.zeros(0), size=2)
    with pytest.raises(ConcretizationTypeError, match="size=n"):
        weft.jit(jnp.unique)(x)


def test_sets():
    a, b = np.array([5, 2, 7, 2, 0], np.int32), np.array([2, 9, 0, 9], np.int32)
    x, y = jnp.asarray(a), jnp.asarray(b)
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        want = getattr(np, name)(a, b)
        same(getattr(jnp, name)(x, y), want)
        fixed = weft.jit(lambda x, y, f=getattr(jnp, name): f(x, y, size=7, fill_value=-1))(x, y)
        same(fixed, np.pad(want, (0, 7 - len(want)), constant_values=-1))
    want = np.intersect1d(a, b, return_indices=True)
    for got, w in zip(jnp.intersect1d(x, y, return_indices=True), want, strict=True):
        same(got, w)
    fixed = jnp.intersect1d(x, y, return_indices=True, size=3)
    assert [v.tolist() for v in fixed] == [[0, 2, 0], [4, 1, 5], [2, 0, 4]]
    same(jnp.isin(x, y), np.isin(a, b))
    same(jnp.isin(x.reshape(1, 5), y, invert=True), np.isin(a.reshape(1, 5), b, invert=True))
    assert not jnp.isin(x, jnp.zeros(0, int)).any()
    for f in (jnp.setdiff1d, jnp.setxor1d, jnp.intersect1d, jnp.union1d):
        assert f(jnp.zeros(0), jnp.zeros(0)).size == 0
