"""unique and the operations on sets against NumPy; sizes that are given."""

import itertools
import sys

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.numpy.compare import same_values
from weft.errors import ConcretizationTypeError, ShapeError


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique(axis):
    host = np.array([[2, 1, 2], [2, 1, 2], [0, 1, 0]], np.int32)
    x = jnp.asarray(host)
    want = np.unique(host, True, True, True, axis=axis)
    for got, w in zip(jnp.unique(x, True, True, True, axis), want, strict=True):
        same_values(got, w.reshape(got.shape))
    n = want[0].shape[axis or 0]
    for size in (1, n, n + 2):
        fixed = weft.jit(lambda v, size=size: jnp.unique(v, True, True, True, axis, size=size))(x)
        shown = min(size, n)
        values = np.moveaxis(np.asarray(fixed[0]), axis or 0, 0)
        all_values = np.moveaxis(want[0], axis or 0, 0)
        same_values(values[:shown], all_values[:shown])
        assert all((v == all_values[0]).all() for v in values[shown:])
        same_values(fixed[1][:shown], want[1][:shown])
        same_values(fixed[2], want[2].reshape(fixed[2].shape))
        same_values(fixed[3], np.pad(want[3][:shown], (0, size - shown)))


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
        same_values(getattr(jnp, name)(x, y), want)
        fixed = weft.jit(lambda x, y, f=getattr(jnp, name): f(x, y, size=7, fill_value=-1))(x, y)
        same_values(fixed, np.pad(want, (0, 7 - len(want)), constant_values=-1))
    want = np.intersect1d(a, b, return_indices=True)
    for got, w in zip(jnp.intersect1d(x, y, return_indices=True), want, strict=True):
        same_values(got, w)
    fixed = jnp.intersect1d(x, y, return_indices=True, size=3)
    assert [v.tolist() for v in fixed] == [[0, 2, 0], [4, 1, 5], [2, 0, 4]]
    same_values(jnp.isin(x, y), np.isin(a, b))
    same_values(jnp.isin(x.reshape(1, 5), y, invert=True), np.isin(a.reshape(1, 5), b, invert=True))
    assert not jnp.isin(x, jnp.zeros(0, int)).any()
    for f in (jnp.setdiff1d, jnp.setxor1d, jnp.intersect1d, jnp.union1d):
        assert f(jnp.zeros(0), jnp.zeros(0)).size == 0


@pytest.mark.parametrize("axis", [None, 1])
def test_unique_gives_what_is_asked_for(axis):
    """All combinations of results, with a fixed size and without."""
    x = np.array([[3, 1, 3, 1, 7], [2, 0, 2, 1, 7]], np.int32)
    names = ("return_index", "return_inverse", "return_counts")
    choices = [dict(zip(names, c, strict=True)) for c in itertools.product([False, True], repeat=3)]
    tupled = lambda y: y if isinstance(y, tuple) else (y,)
    size = 7 if axis is None else 4
    fixed = weft.jit(lambda x: [jnp.unique(x, axis=axis, size=size, **c) for c in choices])(x)
    for choice, found in zip(choices, fixed, strict=True):
        want = tupled(np.unique(x, axis=axis, **choice))
        for got, padded, w in zip(
            tupled(jnp.unique(x, axis=axis, **choice)), tupled(found), want, strict=True
        ):
            same_values(got, w)
            same_values(np.asarray(padded)[tuple(slice(n) for n in w.shape)], w)


SETS = [jnp.union1d, jnp.intersect1d, jnp.setdiff1d, jnp.setxor1d, jnp.isin]


@pytest.mark.parametrize("fun", SETS, ids=lambda f: f.__name__)
def test_sets_take_few_programs(fun):
    """A hot call enters few functions: a program of its own, and not one for each operation."""
    a, b = jnp.array([3, 1, 2, 3]), jnp.array([1, 5])
    for _ in range(6):
        found = fun(a, b)
    np.testing.assert_array_equal(found, getattr(np, fun.__name__)(np.array(a), np.array(b)))
    count = 0

    def note(frame, event, _):
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        fun(a, b)
    finally:
        sys.setprofile(None)
    assert count < 100, count


def test_differences_of_sets_are_differentiated():
    a, b = jnp.array([3.0, 1.0, 2.0]), jnp.array([1.0, 5.0])
    found = weft.grad(lambda a: jnp.setdiff1d(a, b) @ jnp.array([10.0, 20.0]))(a)
    assert found.tolist() == [20, 0, 10]
