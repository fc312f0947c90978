"""Factorizations in C of matrices that are hard: of low rank, with equal values, far apart."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import export, lax


def make_matrices(m, n):
    """Random matrices, one of rank one, zeros, ones with equal columns, and values far apart."""
    rng = np.random.default_rng(0)
    x, row = rng.normal(size=(m, n)), rng.normal(size=n)
    scales = 10.0 ** -np.arange(0, 4 * n, 4)
    return np.stack([x, np.outer(x[:, 0], row), 0 * x, np.ones((m, n)), x * scales, np.eye(m, n)])


def factor(tall, square):
    wide = tall.mT
    symmetric = square + square.mT
    definite = square @ square.mT + 0.1 * jnp.eye(square.shape[-1])
    return {
        "tall": (tall, *jnp.linalg.svd(tall, full_matrices=False)),
        "wide": (wide, *jnp.linalg.svd(wide, full_matrices=False)),
        "values": jnp.linalg.svd(tall, compute_uv=False),
        "eigh": (symmetric, *jnp.linalg.eigh(symmetric)),
        "qr": (tall, *jnp.linalg.qr(tall)),
        "cholesky": (definite, jnp.linalg.cholesky(definite)),
        "inverse": (definite, jnp.linalg.inv(definite)),
        "det": (square, jnp.linalg.det(square)),
        "triangular": lax.linalg.triangular_solve(
            jnp.linalg.cholesky(definite), square, left_side=True, lower=True, transpose_a=True
        ),
    }


@pytest.fixture(scope="module")
def found():
    with weft.enable_x64(True):
        args = make_matrices(9, 6), make_matrices(7, 7)
        return export.to_c(factor)(*args).build(flags=["-O1"])(*args)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def is_orthonormal(q):
    identity = np.eye(q.shape[-1])
    want = np.broadcast_to(identity, (*q.shape[:-2], *identity.shape))
    np.testing.assert_allclose(adjoint(q) @ q, want, atol=1e-12)


@pytest.mark.parametrize("name", ["tall", "wide"])
def test_singular_values(found, name):
    x, u, s, vt = found[name]
    np.testing.assert_allclose(s, np.linalg.svd(x, compute_uv=False), 1e-12, 1e-12)
    np.testing.assert_allclose((u * s[:, None]) @ vt, x, atol=1e-12)
    is_orthonormal(u)
    is_orthonormal(np.swapaxes(vt, -1, -2))
    np.testing.assert_allclose(found["values"], s, 1e-12, 1e-12)


def test_eigenvalues(found):
    x, values, vectors = found["eigh"]
    np.testing.assert_allclose(values, np.linalg.eigvalsh(x), 1e-12, 1e-12)
    np.testing.assert_allclose(x @ vectors, vectors * values[:, None], atol=1e-12)
    is_orthonormal(vectors)


def test_matrices_whose_squares_are_out_of_range():
    x = make_matrices(4, 3)[0].astype(np.float32)
    symmetric = x[:3] + x[:3].T
    fun = lambda x, y: (jnp.linalg.svd(x, compute_uv=False), jnp.linalg.eigh(y)[0])
    call = export.to_c(fun)(x, symmetric).build(flags=["-O1"])
    want = np.linalg.svd(x, compute_uv=False), np.linalg.eigvalsh(symmetric)
    for scale in (np.float32(2.0**-90), np.float32(2.0**90)):
        for a, b in zip(call(x * scale, symmetric * scale), want, strict=True):
            np.testing.assert_allclose(a / scale, b, 1e-5, 1e-6)


def test_other_factors(found):
    x, q, r = found["qr"]
    np.testing.assert_allclose(q @ r, x, atol=1e-12)
    is_orthonormal(q)
    x, low = found["cholesky"]
    np.testing.assert_allclose(low @ np.swapaxes(low, -1, -2), x, 1e-12, 1e-12)
    x, inverse = found["inverse"]
    np.testing.assert_allclose(x @ inverse, np.broadcast_to(np.eye(7), x.shape), atol=1e-9)
    x, det = found["det"]
    np.testing.assert_allclose(det, np.linalg.det(x), 1e-9, 1e-18)
    want = np.linalg.solve(np.swapaxes(low, -1, -2), make_matrices(7, 7))
    np.testing.assert_allclose(found["triangular"], want, 1e-9, 1e-12)
