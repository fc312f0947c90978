"""Eigenvalues, singular values and reductions beyond the rows of cases_eigen.py."""

import numpy as np
import pytest
import scipy.linalg

import weft
from tests.primitives.matrix_helpers import close, random, t, unitary
from weft import lax
from weft.errors import ShapeError
from weft.passes.check import check_jaxpr
from weft.passes.dce import dce_jaxpr
from weft.primitives import lapack

linalg = lax.linalg


@pytest.mark.parametrize("lower", [False, True])
def test_eigh(dtype, lower):
    x = random((2, 5, 5), dtype)
    half = np.tril(x, -1) if lower else np.triu(x, 1)
    diagonal = np.eye(5) * x.real
    h = (half + t(half) + diagonal).astype(dtype)
    for v, w in (linalg.eigh(h), linalg.eigh(x, lower=lower, symmetrize_input=False)):
        unitary(v)
        close((v * w[..., None, :]) @ t(v), h)
        close(w, np.linalg.eigvalsh(h))
    v, w = linalg.eigh(h)
    part_v, part_w = linalg.eigh(h, subset_by_index=(1, 4))
    close(part_v, v[..., 1:4])
    close(part_w, w[..., 1:4])


def test_tridiagonal_and_hessenberg(dtype):
    x = random((2, 5, 5), dtype)
    h = x + t(x)
    for lower, where in ((True, -1), (False, 1)):
        a, d, e, taus = linalg.tridiagonal(h, lower=lower)
        assert [y.dtype for y in (a, d, e, taus)] == [dtype, d.dtype, d.dtype, dtype]
        for i in range(2):
            close(scipy.linalg.eigvalsh_tridiagonal(d[i], e[i]), np.linalg.eigvalsh(h[i]))
        close(np.diagonal(a, where, -2, -1).real, e)
    a, taus = (np.asarray(y) for y in linalg.hessenberg(x))
    reflections = np.zeros_like(a)
    reflections[:, 1:, :4] = np.tril(a, -2)[:, 1:, :4]
    q = np.zeros_like(a)
    q[:, 0, 0] = 1
    q[:, 1:, 1:] = linalg.householder_product(reflections[:, 1:, :4], taus)
    close(q @ np.triu(a, -1) @ t(q), x)


def test_eig_and_schur(dtype):
    x = random((2, 5, 5), dtype)
    w, left, right = (np.asarray(y) for y in linalg.eig(x))
    close(x @ right, right * w[:, None], 10)
    close(t(left) @ x, w[..., None] * t(left), 10)
    close(np.linalg.norm(right, axis=-2), np.ones((2, 5), w.real.dtype))
    for side in ("left", "right"):
        other = {f"compute_{side}_eigenvectors": False}
        assert len(linalg.eig(x, **other)) == 2
    upper, z = linalg.schur(x)
    unitary(z)
    close(z @ upper @ t(z), x)
    assert not np.tril(upper, -1 if dtype.kind == "c" else -2).any()
    (alone,) = linalg.schur(x, compute_schur_vectors=False)
    close(alone, upper)


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 5), (4, 4)])
@pytest.mark.parametrize("algorithm", [None, linalg.SvdAlgorithm.QR])
def test_svd(dtype, shape, algorithm):
    x = random(shape, dtype)
    k = min(shape[-2:])
    for full in (False, True):
        u, s, vh = map(np.asarray, linalg.svd(x, full_matrices=full, algorithm=algorithm))
        unitary(u)
        unitary(t(vh))
        close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x)
        close(s, np.linalg.svd(x, compute_uv=False))
    close(linalg.svd(x, compute_uv=False, algorithm=algorithm), s)
    part = linalg.svd(x, full_matrices=False, subset_by_index=(1, 3), algorithm=algorithm)
    for got, want in zip(part, (u[..., 1:3], s[..., 1:3], vh[..., 1:3, :]), strict=True):
        close(got, want)


def test_derivatives_of_equal_values():
    """Of values they are right; vectors have none."""
    eye = np.eye(3, dtype=np.float32)
    values = weft.grad(lambda x: linalg.eigh(x)[1].sum())(eye)
    np.testing.assert_allclose(values, eye)
    jac = np.asarray(weft.jacfwd(lambda x: linalg.eigh(x)[0])(eye))
    assert not np.isfinite(jac).all()
    np.testing.assert_allclose(weft.grad(lambda x: linalg.svd(x)[1].sum())(eye), eye)
    for part in (0, 2):  # U and V^H
        turned = weft.jacfwd(lambda x: linalg.svd(x)[part])(eye)  # noqa: B023
        assert not np.isfinite(turned).all()
    dw = weft.grad(
        lambda x: linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[
            0
        ].real.sum()
    )(eye)
    np.testing.assert_allclose(dw, eye, atol=1e-6)


def test_deprecated_names():
    with pytest.warns(DeprecationWarning, match="use_magma is deprecated"):
        linalg.eig(np.eye(5, dtype=np.float32), use_magma=False)


@pytest.mark.parametrize("name", ["eig", "eigh", "schur", "hessenberg", "tridiagonal"])
def test_matrices_are_square(name):
    with pytest.raises(ShapeError, match=rf"{name}: .* square"):
        getattr(lax.linalg, name)(np.ones((2, 3), np.float32))


def test_what_is_not_used_is_not_computed():
    x = random((2, 4, 4), np.dtype(np.float32))
    x = x + t(x)
    eigh_part = lambda *at: lambda x: linalg.eigh(x, subset_by_index=at or None)[1]
    rows = [
        (eigh_part(), "compute_vectors=False"),
        (eigh_part(1, 3), "compute_vectors=False"),
        (lambda x: linalg.eigh(x)[0], None),
        (lambda x: linalg.svd(x)[1], "compute_uv=False"),
        (lambda x: linalg.svd(x)[2], "compute_uv=True"),
        (lambda x: linalg.eig(x)[0], "compute_left_eigenvectors=False"),
        (lambda x: linalg.eig(x)[1], "compute_right_eigenvectors=False"),
        (lambda x: linalg.eig(x, compute_left_eigenvectors=False)[1], "right_eigenvectors=True"),
        (lambda x: linalg.schur(x)[0], "compute_schur_vectors=False"),
        (lambda x: linalg.schur(x)[1], "compute_schur_vectors=True"),
    ]
    for fun, said in rows:
        lean, _ = dce_jaxpr(weft.make_jaxpr(fun)(x).jaxpr)
        check_jaxpr(lean)
        assert dce_jaxpr(lean)[0] is lean
        assert said is None or said in str(lean)
        close(np.sort(lean(x)[0]), np.sort(fun(x)), 10)
        if "schur" not in str(lean) and "eig[" not in str(lean):
            moved = weft.jvp(lambda x: lean(x)[0], (x,), (x * x,))  # noqa: B023
            close(moved[1], weft.jvp(fun, (x,), (x * x,))[1], 100)


def test_a_process_ends_after_what_it_computes(rng):
    x = rng.standard_normal((400, 400)).astype(np.float32)
    xs = [linalg.svd(x + i, compute_uv=False) for i in range(3)]
    deleted = linalg.svd(x, compute_uv=False)
    deleted.delete()
    lapack.wait_for_arrays()
    assert all(x.is_ready() for x in xs)
    assert deleted.is_deleted()
