"""Linear systems, least squares and determinants: values, singular matrices, derivatives."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.numpy.compare import close
from weft.errors import ShapeError

DTYPES = [np.float32, np.complex64]


def randn(*shape, dtype=np.float32, seed=0):
    rng = np.random.RandomState(seed)
    x = np.asarray(rng.randn(*shape))
    return (x + 1j * rng.randn(*shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


# Shapes of a and b, and whether NumPy takes them as weft does.
SYSTEMS = [
    ((3, 3), (3,)),
    ((5, 5), (5,)),
    ((5, 5), (5, 2)),
    ((2, 5, 5), (5,)),
    ((2, 5, 5), (5, 2)),
    ((5, 5), (2, 3, 5, 2)),
    ((2, 1, 3, 3), (4, 3, 2)),
    ((0, 0), (0,)),
    ((2, 0, 0), (2, 0, 3)),
    ((0, 5, 5), (5, 2)),
    ((5, 5), (5, 0)),
]


@pytest.mark.parametrize(("a", "b"), SYSTEMS, ids=str)
def test_solve(a, b):
    for dtype in DTYPES:
        a_, b_ = randn(*a, dtype=dtype), randn(*b, seed=1)
        got = jnp.linalg.solve(a_, b_)
        close(got, np.linalg.solve(a_, b_), 1e-3)
        assert got.dtype == dtype


@pytest.mark.parametrize("n", [3, 5])
def test_singular(n):
    x = np.ones((n, n), np.float32)
    assert not np.isfinite(jnp.linalg.solve(x, np.ones(n, np.float32))).all()
    assert not np.isfinite(jnp.linalg.inv(x)).all()
    assert jnp.linalg.det(x) == 0
    assert [float(y) for y in jnp.linalg.slogdet(x)] == [0, -np.inf]
    assert jnp.linalg.cond(x, 1) == np.inf
    assert jnp.linalg.cond(0 * x) == np.inf
    assert np.isnan(jnp.linalg.cholesky(-x)).any()


LSTSQ = [((5, 3), (5,)), ((5, 3), (5, 2)), ((3, 5), (3, 2)), ((0, 2), (0, 3)), ((3, 0), (3,))]


@pytest.mark.parametrize(("a", "b"), LSTSQ, ids=str)
def test_lstsq(a, b):
    a, b = randn(*a), randn(*b, seed=1)
    got, want = jnp.linalg.lstsq(a, b, numpy_resid=True), np.linalg.lstsq(a, b)
    for g, w in zip(got, want, strict=True):
        close(g, w)
    close(jnp.linalg.pinv(a), np.linalg.pinv(a))
    flat = np.ones_like(a)
    close(jnp.linalg.lstsq(flat, b)[0], np.linalg.lstsq(flat, b)[0])
    assert jnp.linalg.lstsq(flat, b)[2] == min(1, flat.size)


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_derivative_of_a_determinant_that_is_zero(n):
    """The cofactors, whichever pivot is zero; none where the rank is lower still."""
    slope = weft.jit(weft.grad(jnp.linalg.det))
    with weft.enable_x64(True):
        x = randn(n, n, dtype=np.float64)
        for kind in ("first", "last", "equal"):
            y = x.copy()
            if kind == "equal":
                y[:, -1] = y[:, 0]
            else:
                y[:, 0 if kind == "first" else -1] = 0
            u, s, vh = np.linalg.svd(y)
            s = np.array([np.prod(np.delete(s, i)) for i in range(n)])
            want = np.linalg.det(u) * np.linalg.det(vh) * (u * s) @ vh
            close(slope(y), want)
        close(slope(0 * x), 0 * x)


def test_solve_under_vmap():
    a, b = randn(3, 5, 5), randn(3, 5)
    solve = jnp.linalg.solve
    want = np.linalg.solve(a, b[..., None])[..., 0]
    close(weft.vmap(solve)(a, b), want, 1e-3)
    close(weft.vmap(solve, (0, None))(a, b[0]), np.linalg.solve(a, b[0]), 1e-3)
    close(weft.vmap(solve, (None, 0))(a[0], b), np.linalg.solve(a[0], b.T).T, 1e-3)
    loss = lambda a, b: jnp.sum(solve(a, b) ** 2)
    slopes = weft.grad(loss, (0, 1))
    one = weft.jit(weft.vmap(slopes, (None, 0)))(a[0], b)
    slopes = weft.jit(slopes)
    many = [slopes(a[0], x) for x in b]
    for g, w in zip(one, zip(*many, strict=True), strict=True):
        close(g, np.stack(w), 1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_determinants_by_either_factorization(dtype):
    """Signs and phases too, of permutations and of matrices with columns that need no turn."""
    n = 4
    cases = [randn(n, n, dtype=dtype, seed=k) for k in range(4)]
    cases += [np.eye(n, dtype=dtype)[list(p)] for p in ((0, 1, 2, 3), (1, 0, 2, 3), (1, 2, 3, 0))]
    cases += [np.triu(cases[0]), -np.eye(n, dtype=dtype), 0 * cases[0]]
    x = np.stack(cases)
    for method in ("lu", "qr"):
        got = jnp.linalg.slogdet(x, method=method)
        for g, w in zip(got, np.linalg.slogdet(x), strict=True):
            np.testing.assert_allclose(g, w, atol=1e-4)
    close(jnp.linalg.det(x), np.linalg.det(x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_values_of_hermitian_matrices(dtype):
    x = randn(3, 4, 4, dtype=dtype)
    x = x + x.mT.conj()  # of both signs
    u, s, vh = jnp.linalg.svd(x, hermitian=True)
    close(s, np.linalg.svd(x)[1])
    close((u * s[..., None, :]) @ vh, x)
    for q in (u, vh):
        close(q @ np.asarray(q).mT.conj(), np.stack([np.eye(4)] * 3))
    close(jnp.linalg.pinv(x, hermitian=True), np.linalg.pinv(x), 2e-3)
    assert jnp.linalg.matrix_rank(x, hermitian=True).tolist() == [4, 4, 4]


def test_small_singular_values_are_taken_for_zero():
    a = (randn(5, 3) * [1, 1e-2, 1e-4]).astype(np.float32)
    u, _, vh = np.linalg.svd(a, False)
    a = ((u * [1, 1e-2, 1e-4]) @ vh).astype(np.float32)
    b = randn(5, 2, seed=1)
    for cutoff, rank in ((1e-3, 2), (0.1, 1), (1e-6, 3)):
        x, _, found, s = jnp.linalg.lstsq(a, b, rcond=cutoff)
        assert found == rank
        close(x, np.linalg.lstsq(a, b, rcond=cutoff)[0], 2e-2)
        close(jnp.linalg.pinv(a, cutoff), np.linalg.pinv(a, cutoff), 2e-2)
        assert jnp.linalg.matrix_rank(a, cutoff) == rank
    both = jnp.linalg.pinv(np.stack([a, a]), np.float32([1e-3, 0.1]))
    close(both, np.stack([np.linalg.pinv(a, 1e-3), np.linalg.pinv(a, 0.1)]), 2e-2)
    assert jnp.linalg.matrix_rank(np.zeros(3)) == 0 and jnp.linalg.matrix_rank(np.ones(3)) == 1
    with pytest.raises(NotImplementedError, match="subset_by_index must be None for hermitian"):
        jnp.linalg.svd(a[:3], hermitian=True, subset_by_index=(0, 1))
    with pytest.raises(ShapeError, match=r"matrix_norm: x must hold matrices"):
        jnp.linalg.matrix_norm(np.ones(3))
