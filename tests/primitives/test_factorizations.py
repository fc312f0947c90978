"""LU and QR factorizations beyond the rows of cases_factorizations.py."""

import numpy as np
import pytest
import scipy.linalg

import weft
import weft.numpy as jnp
from tests.primitives.matrix_helpers import close, random, t, unitary
from weft import dtypes, lax
from weft.primitives import factorizations

linalg = lax.linalg


def exchanged(pivots, n):
    order = np.arange(n)
    for i, p in enumerate(pivots):
        order[[i, p]] = order[[p, i]]
    return order


@pytest.mark.sample(one_in=3)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (1, 4), (2, 5, 5), (6, 3), (3, 6)])
def test_lu(dtype, shape):
    x = random(shape, dtype)
    y, pivots, order = linalg.lu(x)
    (getrf,) = scipy.linalg.get_lapack_funcs(("getrf",), (x,))
    for i in np.ndindex(shape[:-2]):
        want, places, _ = getrf(x[i])
        close(y[i], want, 10)
        np.testing.assert_array_equal(pivots[i], places)
        np.testing.assert_array_equal(order[i], exchanged(places, shape[-2]))


@pytest.mark.parametrize("k", [3, 16, 30])  # written out, and in a loop
def test_permutations_of_pivots(k, rng):
    pivots = np.stack([[rng.integers(i, k + 4) for i in range(k)] for _ in range(3)]).astype("i4")
    got = linalg.lu_pivots_to_permutation(pivots, k + 4)
    np.testing.assert_array_equal(got, [exchanged(p, k + 4) for p in pivots])


def test_factors_are_those_that_xla_completes(dtype, rng):
    """Triangles, and NaN where a routine fails: by kernels as by XLA.

    Results of LAPACK are equal to the bit. Kernels factorize real matrices themselves.
    """
    x = random((3, 12, 12), dtype)
    hermitian = x @ t(x) + 12 * np.eye(12, dtype=dtype)
    hermitian[1, 5, 5] = -4  # not positive definite
    broken = x.copy()
    broken[2, 3, 4] = np.nan
    diagonals = np.ones((2, 12), dtype), np.zeros((2, 12), dtype)

    pivots = rng.integers(0, 20, (2, 3, 20)).astype(np.int32)

    def run(native):
        with weft.config.scope(native=native):
            return weft.tree.leaves(
                [
                    linalg.cholesky(hermitian, symmetrize_input=False),
                    linalg.qr(x[:, :7], full_matrices=True),
                    linalg.qr(x[:, :, :7], full_matrices=False, pivoting=True),
                    linalg.eigh(broken),
                    linalg.svd(broken[1:], full_matrices=True),
                    linalg.eig(broken[:2]),
                    linalg.tridiagonal_solve(*diagonals, diagonals[0], np.ones((2, 12, 1), dtype)),
                    linalg.lu_pivots_to_permutation(pivots, 25),
                    linalg.lu(np.tile(x[0] + 0j, (3, 3))),
                    [linalg.cholesky(np.zeros(s, dtype)) for s in ((0, 0), (0, 12, 12), (1, 1))],
                ]
            )

    ours, xlas = run(True), run(False)
    failed = np.isnan(ours[0])
    assert failed[1][np.tril_indices(12)].all() and failed.sum() == 12 * 13 / 2
    by_kernels = 0 if dtypes.is_complex(x.dtype) else 3  # of Cholesky and QR
    for i, (a, b) in enumerate(zip(ours, xlas, strict=True)):
        assert a.dtype == b.dtype
        tol = 50 * np.finfo(dtype).eps if i < by_kernels else 0
        np.testing.assert_allclose(a, b, rtol=0, atol=tol)


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 5), (4, 4)])
@pytest.mark.parametrize("full", [False, True])
def test_qr(dtype, shape, full):
    x = random(shape, dtype)
    q, r = linalg.qr(x, full_matrices=full)
    unitary(q)
    close(q @ r, x)
    assert not np.tril(r, -1).any()
    q, r, p = linalg.qr(x, full_matrices=full, pivoting=True)
    unitary(q)
    close(q @ r, np.take_along_axis(x, np.asarray(p)[..., None, :], -1))
    sizes = np.abs(np.diagonal(r, axis1=-2, axis2=-1))
    assert (np.diff(sizes) <= 1e-5).all()


def test_reflections(dtype):
    x = random((2, 6, 3), dtype)
    geqrf, orgqr = scipy.linalg.get_lapack_funcs(
        ("geqrf", "ungqr" if dtype.kind == "c" else "orgqr"), (x,)
    )
    a, taus = (np.stack(y) for y in zip(*[geqrf(m)[:2] for m in x], strict=True))
    q = linalg.householder_product(a, taus)
    close(q, np.stack([orgqr(m, s)[0] for m, s in zip(a, taus, strict=True)]))
    square = np.concatenate([a, np.zeros((2, 6, 3), dtype)], -1)
    q = np.asarray(linalg.householder_product(square, taus))  # all of Q
    c = random((2, 6, 4), dtype, 1)
    close(linalg.ormqr(a, taus, c), q @ c)
    close(linalg.ormqr(a, taus, c, transpose=True), t(q) @ c)
    close(linalg.ormqr(a, taus, t(c), left=False), t(c) @ q)
    close(linalg.ormqr(a, taus, t(c), left=False, transpose=True), t(c) @ t(q))


def test_lu_solve():
    a, b = random((2, 5, 5), np.float32), random((2, 5, 2), np.float32, 1)
    factors, _, order = linalg.lu(a)
    close(factorizations.lu_solve(factors, order, b), np.linalg.solve(a, b), 10)


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 5, 3), (1, 2, 3, 3)])
def test_derivatives_of_lu_of_batches(shape, rng):
    """For wide and tall matrices, the derivatives of L and U give the matrix's tangent."""
    x, dx = rng.standard_normal((2, *shape)).astype(np.float32)
    k = min(shape[-2:])

    def factors(x):
        lu, _, permutation = lax.linalg.lu(x)
        lower = jnp.tril(lu[..., :, :k], -1) + jnp.eye(shape[-2], k)
        return lower, jnp.triu(lu[..., :k, :]), permutation

    (lower, upper, order), (dl, du, _) = weft.jit(lambda x, dx: weft.jvp(factors, (x,), (dx,)))(
        x, dx
    )
    take = lambda a: np.take_along_axis(a, np.asarray(order)[..., None], -2)
    np.testing.assert_allclose(lower @ upper, take(x), atol=1e-5)
    np.testing.assert_allclose(dl @ upper + lower @ du, take(dx), atol=1e-4)
