"""Solutions and eigenvalues of sparse matrices against dense ones."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.errors import ShapeError
from weft.experimental import sparse
from weft.experimental.sparse import linalg

rng = np.random.default_rng(0)
A = (np.eye(5) * 4 + rng.normal(size=(5, 5)) * (rng.random((5, 5)) < 0.4)).astype(np.float32)
B = rng.normal(size=(5, 2)).astype(np.float32)
MAT = sparse.BCSR.fromdense(A, nse=20)


def solve(data, b, **given):
    return linalg.spsolve(data, MAT.indices, MAT.indptr, b, **given)


def test_solutions_and_their_derivatives():
    for b in (B, B[:, 0], B.astype(np.complex64) * 1j):
        want = np.linalg.solve(A, b)
        np.testing.assert_allclose(weft.jit(solve)(MAT.data, b), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(solve(MAT.data, b, reorder=0), want, rtol=1e-4, atol=1e-5)

    def dense(data, b):
        mat = sparse.BCSR((data, MAT.indices, MAT.indptr), shape=A.shape).todense()
        return jnp.linalg.solve(mat, b)

    for argnums in (0, 1):
        loss = lambda fun: lambda *args: jnp.sum(jnp.sin(fun(*args)))
        found, want = (weft.grad(loss(f), argnums)(MAT.data, B) for f in (solve, dense))
        np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4)
        move = [(MAT.data, B), (jnp.ones_like(MAT.data), jnp.ones_like(B))]
        tangents = [weft.jvp(f, *move)[1] for f in (solve, dense)]
        np.testing.assert_allclose(*tangents, rtol=1e-3, atol=1e-4)


def test_batches():
    many = weft.vmap(solve, in_axes=(None, 1), out_axes=1)(MAT.data, B)
    np.testing.assert_allclose(many, np.linalg.solve(A, B), rtol=1e-4, atol=1e-5)
    data = jnp.stack([MAT.data, 2 * MAT.data])
    both = weft.vmap(solve, in_axes=(0, None))(data, B[:, 0])
    np.testing.assert_allclose(both[0], 2 * both[1], rtol=1e-4)
    assert np.isnan(solve(MAT.data * 0, B)).all()
    with pytest.raises(ShapeError, match=r"spsolve: data and indices must be \[nse\]"):
        solve(MAT.data, B[:3])


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("kind", ["dense", "sparse", "function"])
def test_largest_eigenvalues(kind):
    n, k = 40, 3
    x = rng.normal(size=(n, n)).astype(np.float32)
    sym = np.where(abs(x + x.T) > 2, x + x.T, 0)
    mat = {"dense": sym, "sparse": sparse.BCOO.fromdense(sym), "function": lambda v: sym @ v}[kind]
    theta, u, steps = linalg.lobpcg_standard(mat, rng.normal(size=(n, k)).astype(np.float32))
    want = np.linalg.eigvalsh(sym)[::-1][:k]
    np.testing.assert_allclose(theta, want, rtol=1e-4)
    np.testing.assert_allclose(sym @ u, u * theta, atol=2e-2)
    np.testing.assert_allclose(u.T @ u, np.eye(k), atol=1e-4)
    assert 0 < steps <= 100
    with pytest.raises(ShapeError, match="lobpcg_standard: X must be"):
        linalg.lobpcg_standard(mat, np.ones((n, 20)))


def test_steps_end_when_residuals_are_small():
    n, tol = 20, 1e-3
    mat = np.diag(np.arange(float(n), dtype=np.float32)) - np.eye(n, k=1, dtype=np.float32)
    mat = (mat + mat.T) / 2
    start = rng.normal(size=(n, 2)).astype(np.float32)
    run = weft.jit(lambda m: linalg.lobpcg_standard(mat, start, m, tol))

    def residuals(theta, u):
        return np.linalg.norm(mat @ u - u * theta, axis=0) / np.abs(theta).max() / n

    theta, u, steps = run(100)
    assert 2 < steps < 30 and (residuals(theta, u) <= 1.01 * tol).all()
    theta, u, before = run(steps - 1)
    assert before == steps - 1 and (residuals(theta, u) > 0.99 * tol).any()
