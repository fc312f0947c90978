"""vectorize, apply_along_axis and apply_over_axes."""

import numpy as np
import pytest

import weft.numpy as jnp
from weft import grad, jit
from weft.errors import ShapeError
from weft.experimental.sparse import BCOO

X = jnp.arange(6.0).reshape(2, 3)
CUBE = jnp.arange(24).reshape(2, 3, 4)


def test_vectorize_broadcasts():
    f = jnp.vectorize(lambda x, y: x * y + 1)
    np.testing.assert_allclose(f(X[:, :1], X), X[:, :1] * X + 1)
    np.testing.assert_allclose(f(X, 2), 2 * X + 1)
    assert f(2, 3) == 7 and f(jnp.ones((1, 1, 3)), X).shape == (1, 2, 3)
    assert f.__name__ == "<lambda>"
    both = jnp.vectorize(lambda x, y: (x + y, x - y))(X, 1.0)
    np.testing.assert_allclose(both[1], X - 1)


def test_vectorize_passes_names():
    f = jnp.vectorize(lambda x, n=1: x * n)
    np.testing.assert_allclose(f(X, n=X), X * X)
    g = jnp.vectorize(lambda x, n, axis=None: x.sum(axis) * n, excluded={1, "axis"})
    np.testing.assert_allclose(g(X, 3, axis=()), X * 3)


def test_vectorize_with_a_signature():
    f = jnp.vectorize(jnp.dot, signature="(n, m), (m) -> (n)")
    assert f(jnp.ones((5, 1, 2, 3)), jnp.ones((4, 3))).shape == (5, 4, 2)
    centered = jnp.vectorize(lambda x: (x - x.mean(), x.mean()), signature="(n)->(n),()")
    np.testing.assert_allclose(centered(X)[0], [[-1, 0, 1]] * 2)
    np.testing.assert_allclose(jit(centered)(X)[1], [1, 4])
    cross = jnp.vectorize(jnp.cross, signature="(3),(3)->(3)")
    assert cross(jnp.ones((1, 3)), jnp.ones((4, 3))).shape == (4, 3)
    assert jnp.vectorize(lambda x: jnp.ones(2), signature="()->(k)")(X).shape == (2, 3, 2)
    assert grad(lambda x: f(X, x).sum())(jnp.ones(3)).tolist() == [3, 5, 7]
    jagged = BCOO.fromdense(jnp.eye(3))  # a pytree that has a shape is a result
    scaled = jnp.vectorize(lambda x: x * jagged, signature="()->(n,n)")(jnp.ones((1, 2)))
    assert scaled.shape == (1, 2, 3, 3)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_apply_along_axis(axis):
    for f, g in (
        (jnp.sum, np.sum),
        (lambda v: jnp.stack([v.max(), v.min()]), lambda v: np.stack([v.max(), v.min()])),
        (lambda v: jnp.outer(v, v), lambda v: np.outer(v, v)),
    ):
        got = jnp.apply_along_axis(f, axis, CUBE)
        np.testing.assert_array_equal(got, np.apply_along_axis(g, axis, np.asarray(CUBE)))
    got = jnp.apply_along_axis(lambda v, n, by=1: v * n + by, axis, CUBE, 2, by=3)
    np.testing.assert_array_equal(got, CUBE * 2 + 3)


def test_apply_over_axes():
    got = jnp.apply_over_axes(jnp.sum, CUBE, (0, -1))
    np.testing.assert_array_equal(got, np.apply_over_axes(np.sum, np.asarray(CUBE), (0, -1)))
    np.testing.assert_array_equal(jnp.apply_over_axes(jnp.cumsum, CUBE, 1), CUBE.cumsum(1))


def test_errors():
    f = jnp.vectorize(jnp.dot, signature="(n,m),(m)->(n)")
    with pytest.raises(ShapeError, match=r"vectorize\(dot\): axis 'm' must have one size; got 3 a"):
        f(X, jnp.ones(2))
    with pytest.raises(ShapeError, match=r"an argument must have the axes \('n', 'm'\)"):
        f(X[0], X[0])
    with pytest.raises(TypeError, match="an argument for each part of .*, 2; got 1"):
        f(X)
    with pytest.raises(ValueError, match="signature must name axes as"):
        jnp.vectorize(jnp.dot, signature="(n,m)(m)->(n)")
    with pytest.raises(ShapeError, match=r"a result must have the axes \('n', 'n'\); got f32\[3\]"):
        jnp.vectorize(lambda x: x, signature="(n)->(n,n)")(X)
    with pytest.raises(TypeError, match="the function must give 2 results; got 1"):
        jnp.vectorize(lambda x: x, signature="(n)->(n),()")(X)
    with pytest.raises(TypeError, match="excluded must be numbers and names"):
        jnp.vectorize(jnp.dot, excluded={1.5})
    with pytest.raises(ShapeError, match="apply_over_axes: the function must give as many axes"):
        jnp.apply_over_axes(lambda x, axis: x.sum(), CUBE, 0)
