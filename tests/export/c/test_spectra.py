"""Eigenvalues, Schur forms and singular values in C, real and complex, of hard matrices."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.export.c.test_matrices import adjoint, is_orthonormal, make_matrices
from weft import export, lax


def split(x):
    """Factors of square matrices by eigenvalues and singular values, and tridiagonal systems."""
    hermitian, part = x + jnp.conj(x.mT), x[..., 2:]
    diagonals = jnp.diagonal(jnp.roll(x, 1, -1), 0, -1, -2), jnp.diagonal(x, 0, -1, -2)
    ends = (*diagonals, jnp.diagonal(jnp.roll(x, -1, -1), 0, -1, -2))
    solve = lax.linalg.tridiagonal_solve
    return {
        "eig": (x, *lax.linalg.eig(x)),
        "schur": (x, *lax.linalg.schur(x)),
        "hermitian": (hermitian, *jnp.linalg.eigh(hermitian)),
        "svd": (part, *jnp.linalg.svd(part)),
        "short": (part.mT, *jnp.linalg.svd(part.mT)),
        "pivoted": (part, *lax.linalg.qr(part, pivoting=True)),
        "reduced": (lax.linalg.hessenberg(x)[0], *lax.linalg.tridiagonal(hermitian, lower=False)),
        "solved": (*ends, solve(*ends, x), solve(*ends, x, perturb_singular=True)),
    }


def make_square(n):
    """The matrices of `make_matrices`, and ones with pairs of values or without all vectors."""
    jordan, turns = np.eye(n) + np.eye(n, k=1), np.roll(np.eye(n), 1, 0)
    return np.concatenate([make_matrices(n, n), [jordan, turns]])


@pytest.fixture(scope="module")
def answers():
    """Results of XLA, and of C."""
    with weft.enable_x64(True):
        real = make_square(6)
        args = real, real + 1j * np.roll(real, 1, -1)
        fun = lambda x, y: {"f64": split(x), "c128": split(y)}
        by_c = export.to_c(fun)(*args).build(flags=["-O1"])(*args)
        return weft.tree.map(np.asarray, weft.jit(fun)(*args)), by_c


@pytest.fixture(scope="module")
def found(answers):
    return answers[1]


KINDS = pytest.mark.parametrize("kind", ["f64", "c128"])


@KINDS
def test_eigenvalues_and_schur_forms_of_general_matrices(found, kind):
    x, w, left, right = found[kind]["eig"]
    np.testing.assert_allclose(x @ right, right * w[:, None], atol=1e-12)
    np.testing.assert_allclose(adjoint(left) @ x, w[..., None] * adjoint(left), atol=1e-12)
    for v in (left, right):
        np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1, 1e-12)
        assert np.all(abs(v.real).max(-2) >= abs(v).max(-2) - 1e-12)  # the largest one is real
    x, t, z = found[kind]["schur"]
    np.testing.assert_allclose(z @ t @ adjoint(z), x, atol=1e-12)
    is_orthonormal(z)
    below = np.diagonal(t, -1, -2, -1)
    assert not np.tril(t, -2).any() and not (below[:, 1:] * below[:, :-1]).any()
    assert kind == "f64" or not below.any()
    np.testing.assert_allclose(np.trace(x, axis1=-2, axis2=-1), w.sum(-1), atol=1e-12)
    want = np.linalg.eigvals(x[0])
    np.testing.assert_allclose(np.sort_complex(w[0]), np.sort_complex(want), 1e-12)


@KINDS
def test_values_of_hermitian_matrices_and_of_parts(found, kind):
    x, w, v = found[kind]["hermitian"]
    np.testing.assert_allclose(w, np.linalg.eigvalsh(x), 1e-12, 1e-12)
    np.testing.assert_allclose(x @ v, v * w[:, None], atol=1e-12)
    is_orthonormal(v)
    for name in ("svd", "short"):
        x, u, s, vh = found[kind][name]
        np.testing.assert_allclose(s, np.linalg.svd(x, compute_uv=False), 1e-12, 1e-12)
        np.testing.assert_allclose((u[..., :4] * s[:, None]) @ vh[:, :4], x, atol=1e-12)
        is_orthonormal(u)
        is_orthonormal(adjoint(vh))
    x, q, r, places = found[kind]["pivoted"]
    np.testing.assert_allclose(q @ r, np.take_along_axis(x, places[:, None], -1), atol=1e-12)
    is_orthonormal(q)
    sizes = abs(np.diagonal(r, 0, -1, -2))
    assert np.all(sizes[:, 1:] <= sizes[:, :-1] + 1e-12)


@KINDS
def test_reduced_forms_and_tridiagonal_systems_as_lapack_has_them(answers, kind):
    by_xla, by_c = (found[kind] for found in answers)
    for a, b in zip(by_xla["reduced"], by_c["reduced"], strict=True):
        np.testing.assert_allclose(b[0], a[0], 1e-9, 1e-12)  # others are not determined
    *_, x, perturbed = by_c["solved"]
    *_, want, wanted = by_xla["solved"]
    assert np.array_equal(np.isnan(x), np.isnan(want))
    np.testing.assert_allclose(x[0], want[0], 1e-9)
    if kind == "f64":
        np.testing.assert_allclose(perturbed[0], wanted[0], 1e-9)
        assert np.isfinite(perturbed).all()
