"""Quantiles and covariances against NumPy: methods, axes, dtypes, NaN, gradients, errors."""

import numpy as np
import pytest

import weft.numpy as jnp
from tests.numpy.compare import agree, in_one_program
from weft import ShapeDtypeStruct, config, enable_x64, export, grad, hessian, jit, make_jaxpr, vmap
from weft.errors import DtypeError, ShapeError
from weft.numpy.statistics import METHODS, select_ranks

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4, 30)).astype(np.float32).round(1)  # with ties
HOLES = np.where(X > 1, np.nan, X).astype(np.float32)
HOLES[0] = np.nan
QS = [0.0, 0.05, 0.3, 0.5, 0.99, 1.0]


@pytest.mark.parametrize("method", METHODS)
@in_one_program()
def test_methods(method):
    for n in (30, 7, 1):
        agree("quantile", X[0, :, :n], np.array(QS), axis=1, method=method)
    got = jit(lambda q: jnp.quantile(X[0], q, axis=1, method=method))(np.float32(0.3))
    np.testing.assert_allclose(got, np.quantile(X[0], 0.3, axis=1, method=method), rtol=1e-5)


def place_by_hand(x, share):
    """Return the linear quantile of numbers without NaN, where 0 * inf is 0."""
    x, at = sorted(x), share * (len(x) - 1)
    low = int(at)
    if at == low or x[low] == x[low + 1]:
        return x[low]
    return x[low] * (1 - at + low) + x[low + 1] * (at - low)


def test_infinities():
    """An infinity counts only as a neighbour; between opposite infinities the result is NaN."""
    inf = np.inf
    rows = [[1, inf, inf], [-inf, -inf, 1], [-inf, 1, inf], [inf, inf, inf], [-inf, inf, inf]]
    rows = np.float32([r + [last] for r in rows for last in (2, -inf, inf)])
    shares = np.float32([0, 0.25, 0.375, 0.5, 0.75, 1])
    holes = np.insert(rows, 1, np.nan, 1)
    for x in (rows[:, :3], rows):
        want = [[place_by_hand(r.tolist(), float(q)) for r in x] for q in shares]
        results = jit(
            lambda x, holes, q: (
                [jnp.quantile(x, q, 1), jnp.percentile(x, 100 * shares.astype(float), 1)],
                [jnp.nanquantile(holes, q, 1), jnp.nanpercentile(holes, 100 * q, 1)],
                [jnp.median(x, 1), jnp.nanmedian(holes, 1)],
            )
        )(x, holes[:, : x.shape[1] + 1], shares)
        for got in (*results[0], *results[1]):
            np.testing.assert_allclose(got, want, rtol=1e-5)
        for got in results[2]:
            np.testing.assert_array_equal(got, want[3])
    assert jnp.median(jnp.array([1, inf, inf])) == inf
    # by rank, where rows are long
    long = jnp.where(jnp.arange(101) % 2 == 0, inf, jnp.arange(101.0))
    assert jnp.median(long) == inf and jnp.quantile(long, 0.1) == 21
    ends = jnp.array([0.0, 1.0, 1.0, 2.0]), jnp.array([inf, inf, 3.0, -inf])
    got = jnp.interp(jnp.array([0.0, 0.5, 1.0, 1.5, 2.0]), *ends)
    np.testing.assert_array_equal(got, [inf, inf, 3, -inf, -inf])


@pytest.mark.sample(one_in=8)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (2, 1)])
@in_one_program()
def test_axes(axis, keepdims):
    for name, x in (("", X), ("nan", HOLES)):
        agree(f"{name}median", x, axis=axis, keepdims=keepdims)
        agree(f"{name}quantile", x, 0.3, axis=axis, keepdims=keepdims)
        agree(f"{name}percentile", x, np.array([30, 60.5]), axis=axis, keepdims=keepdims)
    agree("percentile", X, np.array([[30, 60.5]]), axis=axis, keepdims=keepdims)
    agree("median", HOLES, axis=axis)


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("native", [False, True])  # by bits, and by the kernel that sorts
@pytest.mark.parametrize("n", [16, 17, 200])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float8_e5m2"])
def test_selection_is_what_sorting_gives(dtype, n, native):
    x = RNG.standard_normal((2, n)).astype(np.float32)
    x[0, 3], x[0, 4:6], x[1, 7], x[0, 8:12] = np.inf, 0.0, -np.inf, -0.0
    x[1, 2:5] = x[1, 5]
    x = jnp.asarray(x, dtype)
    k = jnp.asarray([[0, 1, n // 2, n - 1]] * 2)
    ordered = np.sort(np.asarray(x).astype(np.float32), -1)
    with config.scope(native=native):
        found = jit(select_ranks)(x, k)
    for got, shift in zip(found, (0, 1), strict=True):
        assert got.dtype == x.dtype
        want = np.take_along_axis(ordered, np.minimum(k + shift, n - 1), -1)
        np.testing.assert_array_equal(np.asarray(got).astype(np.float32), want)


def test_medians_are_staged_alike_on_every_platform():
    x, texts = jnp.asarray(X[0], np.float32), set()
    for native in (False, True):
        with config.scope(native=native):
            texts.add(str(make_jaxpr(lambda x: jnp.median(x, 1))(x)))
    assert len(texts) == 1 and "select_ranks" in texts.pop()
    exported = export.export(jit(lambda x: jnp.median(x, 1)), platforms=["cpu", "tpu"])(x)
    assert "sort" not in exported.mlir_module()  # which is slower, if no kernel partitions
    np.testing.assert_allclose(exported.call(x), np.median(X[0], 1), rtol=1e-6)


def test_a_program_is_lowered_outside_of_the_scope_it_was_staged_in():
    x = RNG.standard_normal((3, 40))
    with config.scope(enable_x64=True):
        traced = jit(lambda x: jnp.median(x, 1)).trace(x)
    compiled = traced.lower().compile()
    with config.scope(enable_x64=True):
        np.testing.assert_array_equal(compiled(x), np.median(x, 1))


def test_medians_of_any_number_of_rows():
    (m,) = export.symbolic_shape("m")
    rows = ShapeDtypeStruct((m, 30), np.float32)
    exported = export.export(jit(lambda x: jnp.median(x, 1)))(rows)
    np.testing.assert_allclose(exported.call(X[0]), np.median(X[0], 1), rtol=1e-6)


@pytest.mark.parametrize("dtype", [bool, np.int32, np.float16, jnp.bfloat16])
def test_dtypes(dtype):
    x = np.array([3, 1, 2, 0, 5]).astype(dtype)
    got = jnp.quantile(x, 0.5)
    assert got.dtype == (dtype if np.dtype(dtype).kind in "fV" else np.float32)
    np.testing.assert_allclose(np.float32(got), np.median(x.astype(np.float32)))
    assert jnp.quantile(x, jnp.array([0.5])).dtype == got.dtype


def test_float64():
    with config.scope(enable_x64=True):
        x = np.random.default_rng(1).standard_normal((2, 100))
        x[0, 5] = -np.inf
        got = jnp.quantile(jnp.asarray(x), 0.3, axis=1)
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, np.quantile(x, 0.3, axis=1), rtol=1e-14)


def test_special_values():
    inf = np.inf
    assert jnp.quantile(jnp.array([1.0, inf, inf]), 0.8) == inf
    assert jnp.quantile(jnp.array([-inf, 1.0, inf]), 0.5) == 1
    assert np.isnan(jnp.quantile(jnp.array([1.0, np.nan]), 0.0))
    assert np.isnan(jnp.nanmedian(jnp.array([np.nan, np.nan])))
    assert jnp.median(jnp.float32(3)) == 3 and jnp.median(7) == 7
    # of 2 ** 24 elements the place in float32 would be wrong; a number q is exact
    assert jnp.quantile(jnp.arange(1001.0), 0.3335) == np.float32(333.5)
    assert jnp.quantile(jnp.arange(3.0), jnp.array([-1.0, 2.0])).tolist() == [0, 2]


@in_one_program()
def test_weights():
    w = np.abs(X[0, 0, :4]) + 0.1
    for q in (0.0, 0.2, np.array([0.5, 1.0])):
        agree("quantile", X[:, :, 0], q, axis=1, weights=w, method="inverted_cdf")
        agree("quantile", X, q, weights=np.abs(X), method="inverted_cdf")
    agree("percentile", X[..., 0], 30, axis=(1, 0), weights=np.ones((4, 3)), method="inverted_cdf")


@in_one_program()
def test_weights_where_elements_are_missing():
    x, w = X[0].copy(), np.abs(X[0]) + 0.1
    x[:, ::3] = np.nan
    for q in (0.0, 0.3, np.array([0.5, 1.0])):
        agree("nanquantile", x, q, axis=1, weights=w, method="inverted_cdf")
    agree("nanpercentile", x, 30, weights=w, method="inverted_cdf")


def test_gradients_go_to_the_elements():
    x = jnp.array([3.0, 1.0, 2.0, 1.0])
    np.testing.assert_allclose(jit(grad(jnp.median))(x), [0.0, 0.0, 0.5, 0.5])
    big = jnp.asarray(X[0])
    for f in (jnp.median, jnp.nanmedian, lambda x: jnp.quantile(x, 0.27)):
        np.testing.assert_allclose(jit(grad(f))(big).sum(), 1.0, rtol=1e-6)
    distinct = jnp.asarray(RNG.permutation(40).astype(np.float32))
    slope = jit(grad(lambda x: jnp.quantile(x, 0.33)))(distinct)
    np.testing.assert_allclose(slope[jnp.argsort(distinct)][12:14], [0.13, 0.87], rtol=1e-4)
    tied = jit(grad(jnp.median))(jnp.ones(40))
    assert sorted(tied.tolist())[-2:] == [0.5, 0.5]
    np.testing.assert_allclose(
        jit(grad(lambda q: jnp.quantile(distinct, q)))(0.33), 39.0, rtol=1e-4
    )
    np.testing.assert_allclose(jit(vmap(jnp.median))(X), np.median(X, (1, 2)), rtol=1e-6)
    rows = jit(vmap(grad(jnp.median)))(jnp.asarray(X[0]))
    np.testing.assert_allclose(rows.sum(1), np.ones(4), rtol=1e-6)


@pytest.mark.parametrize("n", [1000, 100_000])
def test_covariances_far_from_zero(n):
    """NumPy computes them in float64; in float32 a mean of 1e6 is rounded by 0.03."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2, n))
    far = (rows + np.array([[1e6], [-1e5]])).astype(np.float32)
    far[1] += far[0] - 1e6
    for fun, exact in ((jnp.cov, np.cov), (jnp.corrcoef, np.corrcoef)):
        np.testing.assert_allclose(fun(far), exact(far.astype(float)), rtol=1e-5)
        np.testing.assert_allclose(fun(far.T, rowvar=False), exact(far.astype(float)), rtol=1e-5)
    counts = np.arange(n) % 3
    exact = np.cov(far.astype(float), fweights=counts)
    np.testing.assert_allclose(jnp.cov(far, fweights=counts), exact, rtol=1e-5)


def test_derivatives_of_covariances_far_from_zero():
    """The observation that is subtracted has no part in them, to the second order."""
    x = np.random.default_rng(0).normal(size=20)
    far = (x + 1e4).astype(np.float32)
    n, d = len(x), far.astype(float) - far.astype(float).mean()
    first = grad(lambda x: jnp.cov(x))(far)
    np.testing.assert_allclose(first, 2 * d / (n - 1), atol=1e-6)
    second = hessian(lambda x: jnp.cov(x))(far)
    np.testing.assert_allclose(second, 2 * (np.eye(n) - 1 / n) / (n - 1), atol=1e-6)


def test_covariances():
    m, y = X[0], X[1, :2]
    counts, worths = np.arange(30) % 3 + 1, np.abs(X[2, 0]) + 0.1
    for kwargs in (
        {}, {"bias": True}, {"ddof": 0}, {"y": y}, {"fweights": counts}, {"aweights": worths},
        {"fweights": counts, "aweights": worths}, {"aweights": worths, "ddof": 0},
    ):  # fmt: skip
        agree("cov", m, **kwargs)
    agree("cov", m.T, rowvar=False)
    agree("cov", m[:1], rowvar=False, ddof=0)  # one observation of many variables
    agree("cov", m[0])
    agree("cov", m[0], m[1])
    agree("cov", m + 1j * m[::-1])
    agree("cov", m[:0])
    agree("corrcoef", m)
    agree("corrcoef", m, y)
    agree("corrcoef", m.T[:3], rowvar=False)
    agree("corrcoef", m + 1j * m[::-1])
    assert jnp.corrcoef(m[0]) == 1
    assert jnp.cov(m, dtype=jnp.bfloat16).dtype == jnp.bfloat16
    assert jnp.cov(m.astype(np.int32)).dtype == np.float32
    pair, h = m[:2].astype(np.float64), 1e-6
    with enable_x64():
        slope = jit(grad(lambda m: jnp.corrcoef(m)[0, 1]))(pair)
    step = np.zeros_like(pair)
    step[1, 2] = h
    around = [np.corrcoef(pair + s)[0, 1] for s in (step, -step)]
    np.testing.assert_allclose(slope[1, 2], (around[0] - around[1]) / (2 * h), rtol=1e-5)


def test_errors():
    with pytest.raises(ValueError, match=r"quantile: q must be in \[0, 1\]; got 1.5"):
        jnp.quantile(X, 1.5)
    with pytest.raises(ValueError, match=r"percentile: q must be in \[0, 100\]"):
        jnp.percentile(X, [10.0, 110.0])
    with pytest.raises(ValueError, match="method must be 'linear', 'lower', .*; got 'best'"):
        jnp.quantile(X, 0.5, method="best")
    with pytest.raises(DtypeError, match="median: operands must be real; got c64"):
        jnp.median(X * 1j)
    with pytest.raises(DtypeError, match="q must be real numbers"):
        jnp.quantile(X, "half")
    with pytest.raises(ShapeError, match="median: needs at least one element"):
        jnp.median(X[:0])
    with pytest.raises(NotImplementedError, match="overwrite_input must be False"):
        jnp.median(X, overwrite_input=True)
    with pytest.raises(NotImplementedError, match="out must be None"):
        jnp.quantile(X, 0.5, out=X)
    with pytest.raises(NotImplementedError, match='method must be "inverted_cdf"; got .linear'):
        jnp.quantile(X, 0.5, weights=X)
    with pytest.raises(ShapeError, match="weights must have the shape of x"):
        jnp.quantile(X, 0.5, weights=X[0], method="inverted_cdf")
    with pytest.raises(ShapeError, match="cov: operands must have 2 axes at most"):
        jnp.cov(X)
    with pytest.raises(DtypeError, match="fweights must be integers"):
        jnp.cov(X[0], fweights=np.ones(30, np.float32))
    with pytest.raises(ShapeError, match="aweights must be a vector of length 30"):
        jnp.cov(X[0], aweights=np.ones(3))
    with pytest.raises(ShapeError, match="as many observations each"):
        jnp.cov(X[0], X[0, :, :5])
