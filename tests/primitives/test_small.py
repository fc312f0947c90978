"""Closed forms of small matrices: as exact as LAPACK."""

import numpy as np
import pytest
import scipy.linalg

import weft
from tests.primitives.matrix_helpers import close, random
from weft import lax
from weft.errors import ShapeError
from weft.options import config
from weft.primitives import small
from weft.primitives.matrices import identity_like

linalg = lax.linalg


def ill_conditioned(n, rng):
    """Batches of matrices with condition numbers up to 1e12, and badly scaled ones."""
    a = rng.normal(size=(300, n, n))
    u, s, vh = np.linalg.svd(a)
    s = s[:, :1] * 10.0 ** (-rng.uniform(0, 12, (300, 1)) * np.linspace(0, 1, n))
    graded = a * 10.0 ** rng.integers(-6, 7, (300, n, 1)) * 10.0 ** rng.integers(-6, 7, (300, 1, n))
    vandermonde = np.stack([np.vander(x, n) for x in rng.uniform(0, 1, (300, n))])
    return np.concatenate([(u * s[:, None]) @ vh, graded, vandermonde])


@pytest.mark.parametrize("n", [2, 3, 4])
def test_small_solutions_are_as_exact_as_lapack(n, rng):
    with config.scope(enable_x64=True):
        a = ill_conditioned(n, rng)
        b = rng.normal(size=(len(a), n, 1))

        def backward_error(x):
            x = np.asarray(x)
            size = np.abs(a).sum(-1).max(-1) * np.abs(x).max((-1, -2))
            return np.abs(a @ x - b).max((-1, -2)) / (size + np.abs(b).max((-1, -2)))

        ours, theirs = (
            backward_error(small.solve_small(a, b)),
            backward_error(np.linalg.solve(a, b)),
        )
        eps = np.finfo(np.float64).eps
        assert ours.max() <= max(1.5 * theirs.max(), 4 * eps)
        assert np.median(ours) <= 1.2 * np.median(theirs) + eps / 8


@pytest.mark.parametrize("n", [2, 3, 4])
def test_small_determinants_are_as_exact_as_lapack(n, rng):
    a = ill_conditioned(n, rng).astype(np.float32)
    exact = np.linalg.det(a.astype(np.float64))
    a, exact = a[np.abs(exact) > 0], exact[np.abs(exact) > 0]

    def by_lapack(m):
        factors, pivots, _ = scipy.linalg.lapack.sgetrf(m)
        return np.diag(factors).prod() * (-1) ** (pivots != range(n)).sum()

    def error(x):
        return np.abs(np.asarray(x) - exact) / np.abs(exact)

    ours, theirs = error(small.det_small(a)), error([by_lapack(m) for m in a])
    assert np.median(ours) <= 1.2 * np.median(theirs)
    assert np.quantile(ours, 0.9) <= 1.5 * np.quantile(theirs, 0.9)


def test_solving_for_the_inverse_of_a_small_matrix(dtype):
    a = random((2, 3, 3), dtype)
    close(small.solve_small(a, identity_like(a)), np.linalg.inv(a), 10)
    none = np.zeros((0, 3, 3), dtype)
    assert small.solve_small(none, none).shape == (0, 3, 3)
    assert float(small.det_small(np.zeros((0, 0), np.float32))) == 1


def test_the_gradient_of_a_determinant_where_it_is_zero():
    for n in (1, 2, 3, 4):
        x = random((n, n), np.float32)
        x[:, 0] = 0
        eps = 1e-1
        want = np.zeros((n, n))
        for i in np.ndindex(n, n):
            step = np.zeros((n, n))
            step[i] = eps  # exact: linear in each element
            want[i] = np.linalg.det(x + step) / eps
        np.testing.assert_allclose(weft.grad(small.det_small)(x), want, atol=1e-5)


def test_matrices_must_be_square_and_small():
    for call in (small.small_det_p.apply, weft.jit(small.small_det_p.apply)):
        for shape in ((2, 3), (3,), ()):
            with pytest.raises(ShapeError, match="small_det: .*square"):
                call(np.ones(shape, np.float32))
        with pytest.raises(ShapeError, match="small_det: "):
            call(np.ones((9, 9), np.float32))
