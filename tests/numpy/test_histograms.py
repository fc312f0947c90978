"""Counts and histograms against NumPy: bins, ranges, weights, densities, errors."""

import numpy as np
import pytest

import weft.numpy as jnp
from weft import grad, jit, vmap
from weft.errors import ConcretizationTypeError, DtypeError, ShapeError

X = np.random.default_rng(0).standard_normal((4, 25)).astype(np.float32)
Y = X[::-1].copy()
W = np.abs(Y)
EDGES = np.array([-2.0, -0.5, -0.25, 0.0, 1.5], np.float32)


def agree(name, *args, **kwargs):
    want, got = getattr(np, name)(*args, **kwargs), getattr(jnp, name)(*args, **kwargs)
    flat = [[got, want]] if name == "bincount" else zip(got, want, strict=True)
    for g, w in flat:
        for a, b in zip(
            *((v if isinstance(v, list | tuple) else [v]) for v in (g, w)), strict=True
        ):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_bincount():
    x = np.array([1, 3, 1, 0, 7], np.int32)
    agree("bincount", x)
    agree("bincount", x, minlength=10)
    agree("bincount", x, weights=np.array([0.5, 1.5, 2.0, 3.0, 4.0], np.float32))
    agree("bincount", x.astype(np.uint8))
    agree("bincount", x[:0], minlength=2)
    fixed = jit(lambda x: jnp.bincount(x, length=4))
    assert fixed(x).tolist() == [1, 2, 0, 1]
    assert jnp.bincount(jnp.array([-5, 1])).tolist() == [1, 1]
    assert jnp.bincount(jnp.array([True, False, True])).tolist() == [1, 2]
    rows = vmap(lambda x: jnp.bincount(x, length=3))(jnp.array([[0, 1], [2, 2]]))
    assert rows.tolist() == [[1, 1, 0], [0, 0, 2]]


@pytest.mark.parametrize("bins", [10, 3, EDGES, EDGES[:2], "auto", "sturges"], ids=str)
def test_histogram(bins):
    for kwargs in ({}, {"weights": W}, {"density": True}, {"range": (-1, 1.5)}):
        if isinstance(bins, str) and "weights" in kwargs:
            continue
        agree("histogram", X, bins, **kwargs)
        got = jnp.histogram(X, bins, **kwargs)[0]
        assert got.dtype == np.float32


def test_histogram_at_edges():
    agree("histogram", np.array([0, 1, 2, 3, 3]), 3)
    agree("histogram", np.ones(4, np.float32))
    agree("histogram", np.zeros(0, np.float32), 2)
    counts = jnp.histogram(jnp.array([1.0, jnp.nan, 2.0, jnp.inf]), 2, (1, 2))[0]
    assert counts.tolist() == [1, 1]
    many = jnp.histogram(jnp.ones(1000, jnp.bfloat16), 1)[0]
    assert many.dtype == jnp.bfloat16 and many.tolist() == [1000]
    jitted = jit(lambda x: jnp.histogram(x, 5))(X)
    np.testing.assert_array_equal(jitted[0], np.histogram(X, 5)[0])
    weights = grad(lambda w: (jnp.histogram(X, EDGES, weights=w)[0] * jnp.arange(4.0)).sum())(W)
    inside = (EDGES[0] <= X) & (EDGES[-1] >= X)
    np.testing.assert_array_equal(weights, np.where(inside, np.digitize(X, EDGES) - 1, 0))


def test_histograms_of_several_axes():
    x, y, w = X.ravel(), Y.ravel(), W.ravel()
    for kwargs in (
        {}, {"bins": 3}, {"bins": [2, 4]}, {"bins": [EDGES, 3]}, {"density": True},
        {"range": [(-1, 1), (0, 2)]}, {"weights": w},
    ):  # fmt: skip
        agree("histogram2d", x, y, **kwargs)
    agree("histogram2d", x, y, bins=[EDGES, EDGES])
    points = np.stack([x, y, x + y], 1)
    agree("histogramdd", points, bins=3)
    agree("histogramdd", points, bins=(2, 3, 4), density=True, weights=w)
    assert jnp.histogramdd(points, 2)[0].dtype == np.int32


def test_errors():
    with pytest.raises(DtypeError, match="bincount: x must be a vector of integers; got f32"):
        jnp.bincount(jnp.ones(2))
    with pytest.raises(ShapeError, match="bincount: x must be a vector of integers; got i32"):
        jnp.bincount(jnp.ones((2, 2), int))
    with pytest.raises(ConcretizationTypeError, match=r"jnp.bincount\(..., length=n\)"):
        jit(jnp.bincount)(jnp.arange(3))
    with pytest.raises(ShapeError, match="weights must have the shape of x"):
        jnp.bincount(jnp.arange(3), weights=jnp.ones(2))
    with pytest.raises(ConcretizationTypeError, match=r"jnp.histogram\(..., bins=n\)"):
        jit(lambda x: jnp.histogram(x, "auto"))(X)
    with pytest.raises(ValueError, match="bins must be at least 1; got 0"):
        jnp.histogram(X, 0)
    with pytest.raises(ValueError, match=r"range must be finite and ascend; got \(2, 1\)"):
        jnp.histogram(X, range=(2, 1))
    with pytest.raises(ShapeError, match="edges must be a vector"):
        jnp.histogram(X, X)
    with pytest.raises(DtypeError, match="elements must be real"):
        jnp.histogram(X * 1j)
    with pytest.raises(ShapeError, match="weights must have the shape of a"):
        jnp.histogram(X, weights=X[0])
    with pytest.raises(ShapeError, match="bins must be one for each of 4 axes; got 2"):
        jnp.histogramdd(X.T, bins=(2, 3))
    with pytest.raises(ShapeError, match="sample must have a row for each point"):
        jnp.histogramdd(X[0])
    with pytest.raises(ShapeError, match="x and y must be vectors of one length"):
        jnp.histogram2d(X[0], X)


@pytest.mark.parametrize(
    "low, high", [(-3, 3), (1e6, 1e6 + 1), (0, 3e-30), (-3e38, 3e38), (0.5, 0.5)]
)
def test_bins_of_one_width_are_those_that_a_search_finds(low, high):
    rng = np.random.RandomState(0)
    x = np.concatenate([rng.uniform(low, high, 999), [np.nan, np.inf, -np.inf, low, high, 0]])
    x = x.astype(np.float32)
    counts, edges = jnp.histogram(x, 50, range=(low, high))
    edges = np.asarray(edges)
    found = np.searchsorted(edges, x, "right")
    found[x == edges[-1]] = 50
    np.testing.assert_array_equal(counts, np.bincount(found, minlength=52)[1:51])
