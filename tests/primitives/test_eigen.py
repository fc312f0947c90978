"""Eigenvalues, singular values and reductions beyond the rows of cases_eigen.py."""

import numpy as np
import pytest
import scipy.linalg

import weft
from tests.primitives.matrix_helpers import close, random, t, unitary
from weft import lax
from weft import numpy as jnp
from weft.errors import ShapeError
from weft.passes.check import check_jaxpr
from weft.passes.dce import dce_jaxpr
from weft.primitives import lapack

linalg = lax.linalg


@pytest.mark.sample(one_in=2)
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


@pytest.mark.sample(one_in=4)
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


def eigh_invariants(xp, a, p, c):
    """Return invariants of equal eigenvalues and their space; p is equal for equal eigenvalues."""
    w, v = xp.linalg.eigh(a)
    space = xp.real((v * p) @ xp.conj(v.T) * c).sum()
    return xp.stack([xp.exp(w).sum(), (p * w**2).sum(), space])


def svd_invariants(xp, a, p, c):
    """Like `eigh_invariants`; U V^H also depends on the rotation of U against V."""
    u, s, vh = xp.linalg.svd(a)
    u, vh = u * p, vh[: p.size]
    space = xp.real(u @ xp.conj(u.T) * c[:, : p.size]).sum()
    return xp.stack([xp.sin(s).sum(), (p * s).sum(), space, xp.real(u @ vh * c).sum()])


def with_values(values, shape, draw):
    """Matrices of a shape with these eigenvalues or singular values: diagonal, and not."""
    d = np.zeros(shape)
    np.fill_diagonal(d, values)
    u, v = (np.linalg.qr(draw(n, n))[0] for n in shape)
    return [d.astype(u.dtype), u @ d @ t(u if shape[0] == shape[1] else v)]


SPECTRA = ([1, 1, 1], [1, 2, 2], [2, 2, 3], [0, 0, 2], [-1, -1, 2])


@pytest.mark.parametrize("kind", [np.float32, np.complex128], ids=["f32", "c128"])
@pytest.mark.parametrize("fun", [eigh_invariants, svd_invariants])
def test_derivatives_where_values_are_equal(fun, kind):
    rng, hermitian = np.random.default_rng(0), fun is eigh_invariants
    real = lambda *s: rng.normal(size=s)
    draw = real if kind is np.float32 else lambda *s: real(*s) + 1j * real(*s)
    spectra = SPECTRA if hermitian else [s[::-1] for s in SPECTRA[:3]]
    shape = (3, 3) if hermitian else (3, 4)
    a = np.stack([x for s in spectra for x in with_values(s, shape, draw)])
    p = np.repeat([[1.0 + 2 * (v == s[-1]) for v in s] for s in spectra], 2, 0)
    move, c = draw(*a.shape), draw(*a.shape)
    if hermitian:
        move, c = move + t(move), c + t(c)
    near = lambda h: np.stack([fun(np, *xs) for xs in zip(a + h * move, p, c, strict=True)])
    want = (near(1e-6) - near(-1e-6)) / 2e-6
    with weft.enable_x64(kind is not np.float32):
        a, move, c = (x.astype(kind) for x in (a, move, c))
        xs = [a, move, p.astype(kind(0).real.dtype), c]
        push = lambda a, m, p, c: weft.jvp(lambda a: fun(jnp, a, p, c), (a,), (m,))[1]
        pull = weft.jacrev(lambda a, p, c: fun(jnp, a, p, c))
        got = weft.jit(weft.vmap(push))(*xs)
        slopes = np.asarray(weft.jit(weft.vmap(pull))(xs[0], *xs[2:]))
    near = {"rtol": 1e-3, "atol": 1e-3} if kind is np.float32 else {"rtol": 1e-5, "atol": 1e-7}
    np.testing.assert_allclose(got, want, **near)
    np.testing.assert_allclose((slopes * move[:, None]).real.sum((-2, -1)), want, **near)


def test_vectors_of_equal_values_do_not_turn():
    eye = np.eye(3, dtype=np.float32)
    assert not np.any(weft.jacfwd(lambda x: linalg.eigh(x)[0])(eye))
    for part in (0, 2):  # U and V^H
        turned = np.asarray(weft.jacfwd(lambda x: linalg.svd(x)[part])(eye))  # noqa: B023
        assert np.isfinite(turned).all()
    dw = weft.grad(
        lambda x: linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[
            0
        ].real.sum()
    )(eye)
    np.testing.assert_allclose(dw, eye, atol=1e-6)
    # values that are apart have second derivatives, whatever others are equal
    curved = weft.hessian(lambda x: linalg.eigh(x)[1][2])(np.diag([1, 1, 3]).astype(np.float32))
    np.testing.assert_allclose(curved[2, 0, 2, 0], 0.25, rtol=1e-5)


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


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_eigenvalues_of_tiny_and_huge_matrices(dtype):
    """LAPACK scales such matrices, and OpenBLAS's geev then returns wrong eigenvalues."""
    rng = np.random.default_rng(0)
    wide = dtype in ("float64", "complex128")
    size = np.array([10.0**k for k in ((-250, -150, 0, 150, 250) if wide else (-30, -9, 0, 9, 30))])
    x = rng.normal(size=(5, 3, 3))
    if dtype.startswith("complex"):
        x = x + 1j * rng.normal(size=x.shape)
    x = (x * size[:, None, None]).astype(dtype)
    with weft.enable_x64(True):
        w, _, v = (np.asarray(y, np.complex128) for y in lax.linalg.eig(x))
    w = w / size[:, None]
    back = v * w[:, None] @ np.linalg.inv(v) - x / size[:, None, None]
    assert np.abs(back).max() < (1e-12 if wide else 1e-4)
