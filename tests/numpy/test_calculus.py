"""Differences, integrals, phases and tables against NumPy; derivatives, batches, errors."""

import ml_dtypes
import numpy as np
import pytest

import weft.numpy as jnp
from tests.numpy.compare import agree, in_one_program
from weft import grad, jit, vmap
from weft.errors import DtypeError, ShapeError

X = np.array([[3.0, -1.0, 4.0, 1.0], [5.0, 9.0, -2.0, 6.0], [5.0, 3.0, 5.0, 8.0]], np.float32)
INTS = X.astype(np.int32)


@pytest.mark.parametrize("x", [X, INTS, X > 0, X + 1j * X[::-1], X[:0]], ids=str)
@in_one_program()
def test_diff(x):
    agree("diff", x)
    agree("diff", x, axis=0)
    if x.size:
        agree("diff", x, n=2, axis=1)
        agree("diff", x, n=0)
        agree("diff", x, prepend=x[:, :1], append=x[:, -1:])
        agree("diff", x, n=9)


def test_diff_with_numbers_at_the_ends():
    agree("diff", X, axis=0, prepend=1.5, append=7)
    assert jnp.diff(jnp.arange(3), append=2.5).dtype == np.float32
    assert jnp.diff(jnp.arange(3, dtype=np.int8)).dtype == np.int8


def test_ediff1d():
    agree("ediff1d", X)
    agree("ediff1d", INTS, to_begin=np.int32(7), to_end=np.array([1, 2], np.int32))
    assert jnp.ediff1d(jnp.arange(3), to_end=1.5).tolist() == [1, 1, 1]


@pytest.mark.parametrize("order", [1, 2])
@in_one_program()
def test_gradient(order):
    places = np.array([0.0, 1.0, 1.5, 4.0])
    agree("gradient", X, edge_order=order)
    agree("gradient", X, 2.0, edge_order=order)
    agree("gradient", X, axis=1, edge_order=order)
    agree("gradient", X, 0.5, places, edge_order=order)
    agree("gradient", X, places, axis=-1, edge_order=order)
    agree("gradient", places, edge_order=order)
    agree("gradient", INTS, axis=(1, 0), edge_order=order)
    agree("gradient", X[:, : order + 1], axis=1, edge_order=order)


def test_gradient_of_infinities_and_numbers():
    x = np.array([0.0, 1.0, np.inf, 2.0, 5.0], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(jnp.gradient(x), np.gradient(x))
    assert jnp.gradient(3.0) == []


@in_one_program()
def test_trapezoid():
    agree("trapezoid", X)
    agree("trapezoid", INTS, dx=0.5, axis=0)
    agree("trapezoid", X, x=np.array([0.0, 1.0, 3.0, 3.5]))
    agree("trapezoid", X, x=X[::-1].copy(), axis=0)
    agree("trapezoid", X[:, :1])
    agree("trapezoid", np.array([np.inf, 1.0, 2.0]))
    assert not jnp.trapezoid(jnp.arange(3)).aval.weak_type


@pytest.mark.parametrize("period", [2 * np.pi, 4.0, 5, 4])
@in_one_program()
def test_unwrap(period):
    steps = np.array([0.0, 1.0, 3.0, -2.0, 0.0, 9.0, 4.0])
    x = steps.astype(np.int32) if isinstance(period, int) else steps.astype(np.float32)
    agree("unwrap", x, period=period)
    agree("unwrap", np.stack([x, -x]), axis=0, period=period)
    agree("unwrap", x, discont=4, period=period)
    assert (jnp.unwrap(x, period=period).dtype == np.int32) == isinstance(period, int)
    assert jnp.unwrap(jnp.zeros(0)).shape == (0,)


@in_one_program()
def test_interp():
    xp, fp = np.array([-1.0, 0.0, 2.0, 2.5]), np.array([1.0, 3.0, -1.0, 0.0])
    x = np.array([[-2.0, -1.0, -0.5, 0.0], [1.0, 2.4, 2.5, 7.0]], np.float32)
    agree("interp", x, xp, fp)
    agree("interp", x, xp, fp, left=-9, right=9.5)
    agree("interp", x, xp, fp * 1j)
    agree("interp", 0.25, xp.astype(int), fp)
    agree("interp", x, xp[::-1].copy(), fp, period=3.5)
    agree("interp", x, xp[:1], fp[:1])
    assert np.isnan(jnp.interp(jnp.nan, xp, fp))
    out = jnp.interp(x, xp, fp, left="extrapolate", right="extrapolate")
    np.testing.assert_allclose(out[0, 0], -1.0)
    np.testing.assert_allclose(out[1, 3], 9.0, rtol=1e-6)


def test_interp_has_derivatives_and_batches():
    xp, fp = jnp.array([0.0, 1.0, 1.0, 2.0]), jnp.array([0.0, 2.0, 3.0, 1.0])
    slope = vmap(grad(jnp.interp), (0, None, None))(jnp.array([-1.0, 0.5, 1.0, 1.5, 3.0]), xp, fp)
    np.testing.assert_allclose(slope, [0.0, 2.0, -2.0, -2.0, 0.0])
    weights = grad(lambda f: jnp.interp(0.25, xp, f))(fp)
    np.testing.assert_allclose(weights, [0.75, 0.25, 0.0, 0.0])
    tables = vmap(lambda f: jnp.interp(0.5, xp, f))(jnp.stack([fp, 2 * fp]))
    np.testing.assert_allclose(tables, [1.0, 2.0])


def test_under_transformations():
    f = jit(lambda x: (jnp.diff(x), jnp.trapezoid(x), jnp.gradient(x), jnp.unwrap(x)))
    for got, want in zip(f(X[0]), (np.diff(X[0]), np.trapezoid(X[0]), np.gradient(X[0]), None)):
        if want is not None:
            np.testing.assert_allclose(got, want, rtol=1e-6)
    np.testing.assert_allclose(grad(jnp.trapezoid)(jnp.ones(4)), [0.5, 1.0, 1.0, 0.5])
    np.testing.assert_allclose(vmap(jnp.diff)(X), np.diff(X))
    np.testing.assert_allclose(grad(lambda x: jnp.unwrap(x)[-1])(jnp.array([0.0, 4.0])), [0.0, 1.0])


def test_errors():
    with pytest.raises(ValueError, match="diff: n must be at least 0; got -1"):
        jnp.diff(X, -1)
    with pytest.raises(ShapeError, match="diff: needs at least one axis; got f32"):
        jnp.diff(1.0)
    with pytest.raises(DtypeError, match="ediff1d: operands must be numbers"):
        jnp.ediff1d(X > 0)
    with pytest.raises(ShapeError, match="gradient: needs at least 2 elements along an axis"):
        jnp.gradient(X[:1])
    with pytest.raises(TypeError, match="distances must be none, one, or one for each axis; got 3"):
        jnp.gradient(X, 1, 2, 3)
    with pytest.raises(ValueError, match="edge_order must be 1 or 2; got 3"):
        jnp.gradient(X, edge_order=3)
    with pytest.raises(ShapeError, match="places must be a vector as long as the axis, 4"):
        jnp.gradient(X, X[:, 0], axis=1)
    with pytest.raises(ValueError, match="left must be a value or 'extrapolate'; got 'zero'"):
        jnp.interp(1.0, X[0], X[0], left="zero")
    with pytest.raises(ShapeError, match="xp and fp must be vectors of the same length"):
        jnp.interp(1.0, X[0], X[0, :2])
    with pytest.raises(DtypeError, match="x and xp must be real"):
        jnp.interp(1j, X[0], X[0])
    with pytest.raises(DtypeError, match="unwrap: operands must be real"):
        jnp.unwrap(X * 1j)


def test_differences_taken_more_often_than_there_are_elements():
    for n in (4, 10**19):
        assert jnp.diff(X, n=n).shape == (3, 0)
    with pytest.raises(TypeError, match=r"diff: n must be an integer; got 'a'\."):
        jnp.diff(X, n="a")


def test_every_axis_of_three():
    y = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32) * 3
    x = np.cumsum(np.abs(y), 1).astype(np.float32)
    calls = []
    for axis in (0, 1, 2, -1, -2):
        n = y.shape[axis]
        along = np.arange(n, dtype=np.float32) ** 2
        one = np.ones(tuple(1 if i == axis % 3 else m for i, m in enumerate(y.shape)), np.float32)
        calls += [
            ("diff", (y,), {"axis": axis}), ("diff", (y, 2), {"axis": axis, "prepend": one}),
            ("diff", (y,), {"axis": axis, "append": 2 * one}),
            ("trapezoid", (y,), {"axis": axis}), ("trapezoid", (y, along), {"axis": axis}),
            ("trapezoid", (y, x), {"axis": axis}), ("trapezoid", (y,), {"axis": axis, "dx": 0.3}),
            ("trapezoid", (y,), {"axis": axis, "dx": along[1:] if axis in (2, -1) else 2.0}),
            ("unwrap", (y,), {"axis": axis}), ("unwrap", (y, 1.0), {"axis": axis, "period": 4.0}),
            ("gradient", (y,), {"axis": axis}), ("gradient", (y, along), {"axis": axis}),
        ]  # fmt: skip
    calls += [("gradient", (y, 0.5, along[:4], 2.0), {})]
    run = lambda m: [getattr(m, name)(*args, **more) for name, args, more in calls]
    for call, got, want in zip(calls, jit(lambda: run(jnp))(), run(np), strict=True):
        got, want = (v if isinstance(v, list | tuple) else [v] for v in (got, want))
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4, err_msg=str(call[::2]))


@pytest.mark.parametrize("name", ["int2", "uint2", "int4", "uint4", "int8", "uint8", "int16"])
def test_unwrap_of_short_integers(name):
    """A step, and half of a period, may be beyond the dtype: they are computed as int32."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    info = ml_dtypes.iinfo(dtype)
    x = np.random.default_rng(0).integers(info.min, int(info.max) + 1, 9)
    for period in (1, 3, 4, 7, 10):
        if period > info.max:
            continue
        found = jnp.unwrap(jnp.asarray(x.astype(dtype)), period=period)
        exact = np.unwrap(x, period=period).astype(dtype)
        np.testing.assert_array_equal(np.asarray(found), exact, err_msg=str(period))
