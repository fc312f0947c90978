"""softmax and its kin, standardize and one_hot against NumPy and SciPy: axes, masks, extremes."""

import numpy as np
import pytest
import scipy.special

import weft.numpy as jnp
from weft import enable_x64, grad, jit, nn, vmap
from weft.errors import DtypeError, ShapeError, TracerError
from weft.scipy import special
from weft.test_util import check_grads

X = np.array([[1.0, 2.0, -3.0, 80.0], [0.5, -200.0, 0.25, 0.75]], np.float32)
MASK = np.array([True, False, True, True])
SOFTMAX, LOG_SOFTMAX = scipy.special.softmax, scipy.special.log_softmax


@pytest.mark.parametrize("axis", [-1, 0, (0, 1), None])
def test_softmax(axis):
    np.testing.assert_allclose(nn.softmax(X, axis), SOFTMAX(X, axis), rtol=1e-6)
    np.testing.assert_allclose(nn.log_softmax(X, axis), LOG_SOFTMAX(X, axis), rtol=1e-6, atol=1e-7)


def test_softmax_of_some():
    want = np.insert(SOFTMAX(X[:, MASK], -1), 1, 0, -1)
    np.testing.assert_allclose(nn.softmax(X, where=MASK), want, rtol=1e-6)
    want = np.insert(LOG_SOFTMAX(X[:, MASK], -1), 1, -np.inf, -1)
    np.testing.assert_allclose(nn.log_softmax(X, where=MASK), want, rtol=1e-6)
    assert nn.softmax(X, where=False).tolist() == np.zeros_like(X).tolist()
    slope = grad(lambda x: (nn.softmax(x, where=MASK) ** 2).sum())(X)
    assert np.isfinite(slope).all() and (slope[:, 1] == 0).all()
    with pytest.raises(DtypeError, match="softmax: where must be bool; got i32"):
        nn.softmax(X, where=jnp.ones(4, int))


def test_softmax_of_odd_things():
    assert nn.softmax(jnp.arange(3)).dtype == np.float32
    assert nn.softmax(jnp.zeros((2, 0))).shape == (2, 0)
    assert nn.softmax(jnp.array([1e30, -1e30, -np.inf])).tolist() == [1, 0, 0]
    for odd in ([-np.inf] * 3, [np.inf, 1, 2], [np.inf, -np.inf, np.inf]):
        for softmax in (nn.softmax, nn.log_softmax, special.softmax, special.log_softmax):
            assert np.isnan(softmax(jnp.array(odd))).all()
    assert nn.softmax(X.astype(jnp.bfloat16)).dtype == jnp.bfloat16


@pytest.mark.parametrize(
    "fun", [nn.softmax, nn.log_softmax, lambda x: special.logsumexp(x, -1, keepdims=True)]
)
def test_nan_spoils_its_row_alone_where_rows_are_many(fun, rng):
    x = rng.normal(size=(32, 300)).astype(np.float32)
    x[3, 7] = x[5] = x[9, 299] = np.nan
    x[7, 200:] = -np.inf
    out = np.asarray(fun(jnp.array(x)))
    assert np.isnan(out[[3, 5, 9]]).all()
    rest = np.delete(np.arange(32), [3, 5, 9])
    want = scipy.special.logsumexp(x.astype(np.float64)[rest], -1, keepdims=True)
    if fun is nn.softmax or fun is nn.log_softmax:
        want = x[rest] - want
    np.testing.assert_allclose(out[rest], np.exp(want) if fun is nn.softmax else want, rtol=2e-5)


def test_derivatives():
    with enable_x64():
        x = X.astype(np.float64)[:, :3]
        functions = (nn.softmax, nn.log_softmax, nn.logmeanexp, nn.standardize, nn.logsumexp)
        check_grads(jit(lambda x: [f(x) for f in functions]), (x,), order=2)
        f = lambda x: nn.standardize(x, algorithm="stable", where=MASK[:3])
        check_grads(jit(f), (x,), order=1)


def test_logmeanexp():
    x = X.astype(np.float64)
    want = np.log(np.mean(np.exp(x), -1))
    np.testing.assert_allclose(nn.logmeanexp(X, -1), want, rtol=1e-6)
    np.testing.assert_allclose(nn.logmeanexp(X), np.log(np.mean(np.exp(x))), rtol=1e-6)
    got = nn.logmeanexp(X, -1, where=MASK, keepdims=True)
    np.testing.assert_allclose(got[:, 0], np.log(np.mean(np.exp(x[:, MASK]), -1)), rtol=1e-6)
    assert np.isnan(nn.logmeanexp(X[0], where=False))


@pytest.mark.parametrize("algorithm", ["fast", "stable"])
def test_standardize(algorithm):
    x = X[:, :3] / 10
    want = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(nn.standardize(x, algorithm=algorithm), want, rtol=1e-4, atol=1e-5)
    some = x[:, MASK[:3]]
    mean, var = some.mean(-1, keepdims=True), some.var(-1, keepdims=True)
    got = nn.standardize(x, where=MASK[:3], epsilon=0.5, algorithm=algorithm)
    np.testing.assert_allclose(got, (x - mean) / np.sqrt(var + 0.5), rtol=1e-4, atol=1e-5)
    got = nn.standardize(x, mean=1.0, variance=4.0, epsilon=0, algorithm=algorithm)
    np.testing.assert_allclose(got, (x - 1) / 2, rtol=1e-6)
    assert (nn.standardize(jnp.full(4, 3.3), algorithm=algorithm) == 0).all()


def test_standardize_far_from_zero():
    x = np.float32([1, 2, 3, 4]) + 10_000
    want = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
    np.testing.assert_allclose(nn.standardize(x, algorithm="stable"), want, rtol=1e-5)
    with pytest.raises(ValueError, match="algorithm must be 'fast' or 'stable'; got 'slow'"):
        nn.standardize(x, algorithm="slow")


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(axis):
    x = np.array([[0, 2, 5], [1, -1, 2]])
    want = np.moveaxis(x[..., None] == np.arange(3), -1, axis)
    got = nn.one_hot(x, 3, axis=axis)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, want)
    got = vmap(lambda v: nn.one_hot(v, 3, dtype=int, axis=0), out_axes=0)(x)
    np.testing.assert_array_equal(got, np.moveaxis(x[..., None] == np.arange(3), -1, 1))


def test_one_hot_of_odd_things():
    assert nn.one_hot(1, 3).tolist() == [0, 1, 0] and nn.one_hot([0.0, 0.5], 2)[1].sum() == 0
    assert nn.one_hot(jnp.zeros(2, int), 0).shape == (2, 0)
    assert nn.one_hot(jnp.array([100, -100], jnp.int8), 300).sum() == 1
    with pytest.raises(ShapeError, match="one_hot: num_classes must be at least 0; got -1"):
        nn.one_hot(jnp.zeros(2), -1)
    with pytest.raises(ShapeError, match="one_hot: axis must name an axis"):
        nn.one_hot(jnp.zeros(2), 3, axis=2)
    with pytest.raises(TracerError, match="argument `n`"):
        jit(lambda n: nn.one_hot(jnp.zeros(2), n))(3)
