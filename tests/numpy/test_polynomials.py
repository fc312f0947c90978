"""Polynomials against NumPy: arithmetic, calculus, roots, fits, errors."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.numpy.compare import agree, in_one_program
from weft import export, grad, jit, vmap
from weft.errors import ConcretizationTypeError, ShapeError

P, Q = np.array([2.0, -3.0, 0.5, 4.0], np.float32), np.array([1.5, 2.0], np.float32)
X = np.linspace(-1, 2, 12).astype(np.float32)


@pytest.mark.parametrize("name", ["polyadd", "polysub", "polymul"])
@in_one_program()
def test_arithmetic(name):
    for a, b in ((P, Q), (Q, P), (P.astype(np.int32), Q), (P + 1j, Q), (P, Q[:1])):
        agree(name, a, b)
    ints = getattr(jnp, name)(jnp.array([1, 2]), jnp.array([3]))
    assert ints.dtype == (np.float32 if name == "polymul" else np.int32)


def test_division():
    for u, v in ((P, Q), (P, P), (np.array([1, 5, 6]), np.array([2, 1])), (P + 1j, Q)):
        quotient, rest = jnp.polydiv(u, v)
        want, want_rest = np.polydiv(u, v)
        np.testing.assert_allclose(quotient, want, rtol=1e-5)
        assert rest.size == u.size
        back = jnp.polyadd(jnp.polymul(quotient, v), rest)
        np.testing.assert_allclose(back[-u.size :], u, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(rest[-want_rest.size :], want_rest, rtol=1e-4, atol=1e-5)
    quotient, rest = jnp.polydiv(Q, P)
    assert quotient.tolist() == [0] and rest.tolist() == Q.tolist()
    assert jnp.polydiv(P, P, trim_leading_zeros=True)[1].size == 0
    padded = np.concatenate([np.zeros(2, np.float32), P])
    got = jnp.polymul(padded, Q, trim_leading_zeros=True)
    np.testing.assert_allclose(got, np.polymul(P, Q), rtol=1e-6)


@in_one_program()
def test_calculus():
    for m in (0, 1, 2, 5):
        np.testing.assert_allclose(jnp.polyder(P, m), np.polyder(P, m) if m < 4 else np.zeros(0))
        agree("polyint", P, m)
    agree("polyint", P, 2, k=np.array([5.0, 6.0]))
    agree("polyint", P.astype(np.int32), 3, k=2)


@in_one_program()
def test_values():
    agree("polyval", P, X)
    agree("polyval", np.array([3, 1, 2]), 4)
    agree("polyval", P + 1j, X)
    agree("polyval", P[:1], X)
    agree("polyval", P[:0], X)
    assert jnp.polyval(jnp.ones((2, 3)), jnp.arange(3)).tolist() == [1, 2, 3]
    slope = vmap(grad(lambda x: jnp.polyval(P, x)))(X)
    np.testing.assert_allclose(slope, np.polyval(np.polyder(P), X), rtol=1e-4, atol=1e-5)


@in_one_program()
def test_roots():
    zeros = np.array([1.0, -2.0, 0.5], np.float32)
    agree("poly", zeros)
    agree("poly", np.array([2, 3]))
    agree("poly", zeros[:0])
    agree("poly", np.array([1j, -1j], np.complex64))
    got = jnp.poly(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_allclose(got, np.poly(np.array([[1.0, 2.0], [3.0, 4.0]])), rtol=1e-5)
    for p in (np.poly(zeros), [1, 0, 1], [0, 0, 2, -4], [1, -2, 0, 0], [3], [0], []):
        got, want = jnp.roots(jnp.asarray(p)), np.roots(p)
        assert got.shape == want.shape and got.dtype == np.complex64
        np.testing.assert_allclose(np.sort_complex(got), np.sort_complex(want), atol=1e-4)
    any_degree = jit(lambda p: jnp.roots(p, strip_zeros=False))
    got = any_degree(jnp.array([0.0, 0.0, 1.0, -2.0]))
    np.testing.assert_allclose(got[0], 2.0, rtol=1e-5)
    assert np.isnan(np.asarray(got)[1:]).all()
    largest = jit(grad(lambda p: jnp.roots(p, strip_zeros=False).real.max()))(
        jnp.array([1.0, -3.0, 2.0])
    )
    np.testing.assert_allclose(largest, [-4.0, -2.0, -1.0], rtol=1e-4)


@in_one_program()
def test_fits():
    y = (X**2 - X + 0.1 * np.sin(9 * X)).astype(np.float32)
    both = np.stack([y, -y], 1)
    for kwargs in ({}, {"w": np.arange(12) + 1.0}, {"cov": True}, {"cov": "unscaled"}):
        agree("polyfit", X, y, 2, rtol=1e-3, **kwargs)
    agree("polyfit", X, both, 1, rtol=1e-3)
    agree("polyfit", X, both, 1, rtol=1e-3, cov=True)
    c, residuals, rank, s, rcond = jnp.polyfit(X, y, 2, full=True)
    want = np.polyfit(X, y, 2, full=True)
    for got, w in zip((c, residuals, rank, s), want, strict=False):
        np.testing.assert_allclose(got, w, rtol=1e-3)
    assert rcond == want[4]
    assert jnp.polyfit(jnp.arange(4), jnp.arange(4), 1).dtype == np.float32
    slope = grad(lambda y: jnp.polyfit(X, y, 1)[0])(y)
    np.testing.assert_allclose(slope.sum(), 0, atol=1e-5)
    np.testing.assert_allclose((slope * X).sum(), 1, rtol=1e-4)


def test_errors():
    with pytest.raises(ShapeError, match=r"polyadd: polynomials must be vectors; got f32\[2,2\]"):
        jnp.polyadd(jnp.ones((2, 2)), Q)
    with pytest.raises(ConcretizationTypeError, match="roots.*strip_zeros=False"):
        jit(jnp.roots)(P)
    with pytest.raises(ValueError, match="polyder: m must be at least 0; got -1"):
        jnp.polyder(P, -1)
    with pytest.raises(ShapeError, match="k must be a number, or a vector of 3"):
        jnp.polyint(P, 3, k=Q)
    with pytest.raises(ShapeError, match="polyval: p must be a vector of coefficients"):
        jnp.polyval(1.0, X)
    with pytest.raises(ShapeError, match="poly: roots must be a vector, or a square matrix"):
        jnp.poly(jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="polyfit: deg must not be negative"):
        jnp.polyfit(X, X, -1)
    with pytest.raises(ShapeError, match="polyfit: x must be a vector, and y one as long"):
        jnp.polyfit(X, X[:3], 1)
    with pytest.raises(ShapeError, match="w must have the shape of x"):
        jnp.polyfit(X, X, 1, w=X[:3])
    with pytest.raises(ValueError, match='more points than coefficients; got 3 and 3. Hint: cov="'):
        jnp.polyfit(X[:3], X[:3], 2, cov=True)


@pytest.mark.parametrize(
    ("name", "args"),
    [("polyder", ()), ("polyder", (2,)), ("polyint", ()), ("polyint", (2,)), ("polyint", (1, 3.0))],
)
def test_calculus_of_a_symbolic_number_of_coefficients(name, args):
    shape = export.symbolic_shape("n", constraints=["n >= 3"])
    program = export.export(jit(lambda p: getattr(jnp, name)(p, *args)))
    stored = program(weft.ShapeDtypeStruct(shape, np.float32))
    for p in (P, X):
        np.testing.assert_allclose(stored.call(p), getattr(np, name)(p, *args), rtol=1e-6)
