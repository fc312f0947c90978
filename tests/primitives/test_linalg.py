"""Linear algebra beyond the rows of cases_linalg.py: factors, failures, empty matrices, errors."""

import doctest
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg

import weft
from weft import lax
from weft.errors import DtypeError, MissingRule, ShapeError
from weft.options import config
from weft.primitives import eigen, factorizations, polar, small
from weft.primitives import linalg as solves
from weft.primitives.matrices import identity_like

linalg = lax.linalg
NAMES = ["float32", "float64", "complex64", "complex128"]
SIZES = (3, 5)  # written out, and LAPACK's


@pytest.fixture(params=NAMES)
def dtype(request):
    dtype = np.dtype(request.param)
    with config.scope(enable_x64=np.finfo(dtype).dtype == np.float64):
        yield dtype


def random(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=(2, *shape))
    return (parts[0] + 1j * parts[1] if np.dtype(dtype).kind == "c" else parts[0]).astype(dtype)


def t(x):
    return np.swapaxes(np.asarray(x), -1, -2).conj()


def close(x, y, factor=1.0):
    """Equal to some hundred units in the last place of the largest."""
    x, y = np.asarray(x), np.asarray(y)
    assert x.shape == y.shape
    scale = max(np.abs(y).max(initial=0), 1e-30)
    np.testing.assert_allclose(x, y, rtol=0, atol=factor * 100 * np.finfo(x.dtype).eps * scale)


def unitary(q):
    close(
        t(q) @ np.asarray(q),
        np.broadcast_to(np.eye(q.shape[-1], dtype=q.dtype), (*q.shape[:-2], *[q.shape[-1]] * 2)),
    )


# --- factors --------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
def test_cholesky(dtype, n):
    a = random((2, n, n), dtype)
    a = a @ t(a) + np.eye(n, dtype=dtype)
    y = np.asarray(linalg.cholesky(a))
    close(y @ t(y), a)
    assert not np.triu(y, 1).any()
    noise = np.triu(random((n, n), dtype, 1), 1)  # above the diagonal nothing is read
    close(linalg.cholesky(a + noise, symmetrize_input=False), y)
    close(linalg.cholesky(a + noise - t(noise)), y)


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


def exchanged(pivots, n):
    order = np.arange(n)
    for i, p in enumerate(pivots):
        order[[i, p]] = order[[p, i]]
    return order


@pytest.mark.parametrize("k", [3, 16, 30])  # written out, and in a loop
def test_permutations_of_pivots(k, rng):
    pivots = np.stack([[rng.integers(i, k + 4) for i in range(k)] for _ in range(3)]).astype("i4")
    got = linalg.lu_pivots_to_permutation(pivots, k + 4)
    np.testing.assert_array_equal(got, [exchanged(p, k + 4) for p in pivots])


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


@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 5), (4, 4)])
@pytest.mark.parametrize("algorithm", [None, linalg.SvdAlgorithm.QR])
def test_svd(dtype, shape, algorithm):
    x = random(shape, dtype)
    k = min(shape[-2:])
    for full in (False, True):
        u, s, vh = linalg.svd(x, full_matrices=full, algorithm=algorithm)
        unitary(u)
        unitary(t(vh))
        close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x)
        close(s, np.linalg.svd(x, compute_uv=False))
    close(linalg.svd(x, compute_uv=False, algorithm=algorithm), s)
    part = linalg.svd(x, full_matrices=False, subset_by_index=(1, 3), algorithm=algorithm)
    for got, want in zip(part, (u[..., 1:3], s[..., 1:3], vh[..., 1:3, :]), strict=True):
        close(got, want)


@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3)])
def test_qdwh(dtype, shape):
    x = random(shape, dtype)
    u, h, count, converged = linalg.qdwh(x)
    unitary(u)
    close(u @ h, x)
    close(h, t(h))
    assert bool(converged)
    assert count < 8
    padded = np.zeros((*shape[:-2], 7, 6), dtype)
    padded[..., : shape[-2], : shape[-1]] = x
    noisy = np.where(padded == 0, dtype.type(3), padded)
    got = linalg.qdwh(noisy, dynamic_shape=shape[-2:])[0]
    close(got[..., : shape[-2], : shape[-1]], u)
    assert not bool(linalg.qdwh(x, max_iterations=1)[3])


def test_cholesky_update_of_a_singular_factor():
    r = np.diag(np.float32([2, 0, -3]))
    w = np.float32([0, 4, 4])
    s = np.asarray(linalg.cholesky_update(r, w))
    np.testing.assert_allclose(s.T @ s, r.T @ r + np.outer(w, w), rtol=1e-5)
    assert np.isfinite(linalg.cholesky_update(1e30 * r, 1e30 * w)).all()


# --- failure and accuracy -------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
def test_what_has_no_factors_is_nan(n):
    eye = np.eye(n, dtype=np.float32)
    both = np.stack([eye, -eye, 0 * eye, np.nan * eye])
    y = np.asarray(linalg.cholesky(both))
    assert np.isfinite(y[0]).all()
    assert np.isnan(y[1:][:, *np.tril_indices(n)]).all()
    y, pivots, _ = linalg.lu(0 * eye)  # singular: zeros, as LAPACK leaves them
    assert not np.asarray(y).any()
    np.testing.assert_array_equal(pivots, range(n))
    bad = np.full((n, n), np.nan, np.float32)
    found = [linalg.lu(bad)[0], *linalg.qr(bad)[:1], *linalg.eigh(bad), *linalg.svd(bad)]
    assert all(np.isnan(y).all() for y in [*found, *linalg.eig(bad), *linalg.schur(bad)])


def test_singular_tridiagonal_systems():
    d, b = np.zeros((2, 4), np.float32), np.ones((2, 4, 1), np.float32)
    d[0] = 2
    x = np.asarray(linalg.tridiagonal_solve(0 * d, d, 0 * d, b))
    assert (x[0] == 0.5).all()
    assert np.isnan(x[1]).all()
    assert np.isfinite(linalg.tridiagonal_solve(0 * d, d, 0 * d, b, perturb_singular=True)).all()


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


# --- empty matrices -------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 5, 5)])
def test_empty_square_matrices(shape):
    x, n = np.zeros(shape, np.float32), shape[-1]
    vector = shape[:-1]
    below = (*shape[:-2], max(n - 1, 0))
    for outs, shapes in [
        ([linalg.cholesky(x)], [shape]),
        (linalg.eigh(x), [shape, vector]),
        (linalg.eig(x), [vector, shape, shape]),
        (linalg.schur(x), [shape, shape]),
        (linalg.hessenberg(x), [shape, below]),
        (linalg.tridiagonal(x), [shape, vector, below, below]),
        ([linalg.triangular_solve(x, x)], [shape]),
        ([linalg.cholesky_update(x, x.sum(-1))], [shape]),
        ([linalg.tridiagonal_solve(*[x.sum(-1)] * 3, x)], [shape]),
    ]:
        assert [y.shape for y in outs] == shapes


@pytest.mark.parametrize(("m", "n"), [(0, 3), (3, 0), (0, 0)])
def test_empty_rectangles(m, n):
    x = np.zeros((m, n), np.float32)
    y, pivots, order = linalg.lu(x)
    assert (y.shape, pivots.shape) == ((m, n), (0,))
    np.testing.assert_array_equal(order, range(m))
    for full, k in ((True, m), (False, 0)):
        q, r = linalg.qr(x, full_matrices=full)
        np.testing.assert_array_equal(q, np.eye(m, k))
        assert r.shape == (k, n)
        u, s, vh = linalg.svd(x, full_matrices=full)
        np.testing.assert_array_equal(u, np.eye(m, k))
        np.testing.assert_array_equal(vh, np.eye(n if full else 0, n))
        assert s.shape == (0,)
    c = np.ones((m, 2), np.float32)
    np.testing.assert_array_equal(linalg.ormqr(x, np.zeros(0, np.float32), c), c)


# --- derivatives ----------------------------------------------------------------------------


def test_derivatives_of_equal_values():
    """Of eigenvalues they are right; of vectors they are not, or 0 for singular ones, as in JAX."""
    eye = np.eye(3, dtype=np.float32)
    values = weft.grad(lambda x: linalg.eigh(x)[1].sum())(eye)
    np.testing.assert_allclose(values, eye)
    jac = np.asarray(weft.jacfwd(lambda x: linalg.eigh(x)[0])(eye))
    assert not np.isfinite(jac).all()
    np.testing.assert_allclose(weft.grad(lambda x: linalg.svd(x)[1].sum())(eye), eye)
    assert np.isfinite(weft.jacfwd(lambda x: linalg.svd(x)[0])(eye)).all()
    dw = weft.grad(
        lambda x: linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[
            0
        ].real.sum()
    )(eye)
    np.testing.assert_allclose(dw, eye, atol=1e-6)


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


def test_what_has_no_derivative_says_so():
    x = random((4, 4), np.float32)
    for fun in (linalg.hessenberg, linalg.schur, linalg.tridiagonal):
        with pytest.raises(MissingRule, match="has no derivative; got a tangent.*Hint: lax"):
            weft.jvp(fun, (x,), (x,))
    with pytest.raises(MissingRule, match="eigenvectors must be asked for.*enable_eigvec_derivs"):
        weft.jvp(linalg.eig, (x,), (x,))


def test_only_the_right_side_is_linear():
    a = np.eye(5, dtype=np.float32)
    transposed = weft.linear_transpose(lambda b: linalg.triangular_solve(a, b), a)
    np.testing.assert_allclose(transposed(a)[0], a)
    for fun in (linalg.triangular_solve, small.solve_small):
        with pytest.raises(TypeError, match="must be linear in what is transposed"):
            weft.linear_transpose(lambda a, fun=fun: fun(a, a), a[:3, :3])(a[:3, :3])


def test_a_mapped_right_side_becomes_columns():
    """One matrix for all: one call, not one for each."""
    a = np.tril(random((5, 5), np.float32)) + 5 * np.eye(5, dtype=np.float32)
    b = random((5, 7, 2), np.float32)
    mapped = weft.vmap(lambda b: linalg.triangular_solve(a, b, left_side=True, lower=True), 1, 1)
    solved = [e for e in weft.make_jaxpr(mapped)(b).eqns if e.primitive.name == "triangular_solve"]
    assert [str(e.outvars[0].aval) for e in solved] == ["f32[5,14]"]
    close(
        mapped(b),
        np.stack([scipy.linalg.solve_triangular(a, b[:, i], lower=True) for i in range(7)], 1),
    )


# --- what programs look like ----------------------------------------------------------------


def test_programs_print_as_in_jax():
    x = np.zeros((5, 3), np.float32)
    text = {
        "svd": "algorithm=None compute_uv=True full_matrices=True subset_by_index=None",
        "qr": "full_matrices=True pivoting=False use_magma=None",
        "lu": "",
    }
    square = {
        "eigh": "algorithm=None lower=True sort_eigenvalues=True subset_by_index=None",
        "eig": "compute_left_eigenvectors=True compute_right_eigenvectors=True "
        "enable_eigvec_derivs=False implementation=None",
        "schur": "compute_schur_vectors=True select_callable=None sort_eig_vals=False",
        "tridiagonal": "lower=True",
        "hessenberg": "",
        "cholesky": "",
    }
    for table, arg in ((text, x), (square, x @ x.T)):
        for name, params in table.items():
            printed = " ".join(str(weft.make_jaxpr(getattr(linalg, name))(arg)).split())
            assert (
                (f"{name}[ {params} ]" in printed or f"{name}[{params}]" in printed)
                if params
                else (f" = {name} " in printed)
            ), printed


def test_weft_alone_does_not_import_scipy(tmp_path):
    """Neither do small matrices; a program kept on disk finds its kernels in a new process."""
    script = """
import sys, numpy as np, weft
from weft import lax
x = np.eye(int(sys.argv[1]), dtype=np.float32) * 4
f = weft.jit(lax.linalg.cholesky)
print(float(f(x)[0, 0]), "scipy" in sys.modules)
"""
    env = {**os.environ, "WEFT_CACHE_DIR": str(tmp_path / "cache")}

    def run(n):
        done = subprocess.run(
            [sys.executable, "-c", script, n], env=env, capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    assert run("3") == ["2.0", "False"]
    first = run("6")
    assert run("6") == first == ["2.0", "True"]


# --- errors ---------------------------------------------------------------------------------

X = np.eye(3, dtype=np.float32)
TALL = np.ones((5, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: linalg.cholesky(TALL), ShapeError, r"cholesky: .*square.*got f32\[5,3\]"),
        (lambda: linalg.cholesky(X[0]), ShapeError, r"cholesky: .*square.*got f32\[3\]"),
        (lambda: linalg.cholesky(X.astype("f2")), DtypeError, r"got f16.*Hint: x.astype\(float\)"),
        (lambda: linalg.cholesky(X.astype(int)), DtypeError, r"cholesky: the dtype.*got i32"),
        (lambda: linalg.lu(X[0]), ShapeError, r"lu: .*matrices.*got f32\[3\]"),
        (lambda: linalg.qr(X.astype(bool)), DtypeError, "qr: the dtype must be one of float32"),
        (lambda: linalg.triangular_solve(X, TALL.T), ShapeError, r"k, n\); got f32\[3,3\]"),
        (lambda: linalg.triangular_solve(X, X + 0j), DtypeError, "equal dtypes; got f32.*c"),
        (lambda: linalg.eigh(X, subset_by_index=(2, 1)), ShapeError, "0 <= start < stop <= 3"),
        (
            lambda: linalg.eigh(X, implementation=linalg.EighImplementation.JACOBI),
            NotImplementedError,
            "on CPU the choice must be one of EighImplementation.QR; got .*JACOBI",
        ),
        (lambda: linalg.eigh(X, implementation="qr"), TypeError, "must be a EighImplementation"),
        (
            lambda: linalg.svd(X, algorithm=linalg.SvdAlgorithm.POLAR),
            NotImplementedError,
            "svd: on CPU the choice",
        ),
        (lambda: linalg.svd(X, subset_by_index=(0, 2)), ValueError, "Hint: full_matrices=False"),
        (lambda: linalg.schur(X, sort_eig_vals=True), NotImplementedError, "in LAPACK's order"),
        (lambda: linalg.lu_pivots_to_permutation(X, 3), DtypeError, "pivots must be int32"),
        (
            lambda: linalg.lu_pivots_to_permutation(np.zeros(3, "i4"), 2),
            ShapeError,
            r"no longer than the permutation; got i32\[3\] for size 2",
        ),
        (lambda: linalg.householder_product(X, TALL), ShapeError, r"\(\.\.\., m, n\) and"),
        (lambda: linalg.householder_product(TALL.T, X[0]), ShapeError, "as many rows as columns"),
        (lambda: linalg.ormqr(X, X[0], TALL), ShapeError, r"\(\.\.\., r, n\) with k <= r"),
        (lambda: linalg.cholesky_update(X, TALL[:, 0]), ShapeError, "the size of the matrix"),
        (lambda: linalg.symmetric_product(TALL, X), ShapeError, r"m, n\) and \(\.\.\., m, m"),
        (lambda: linalg.symmetric_product(X + 0j, X + 0j), DtypeError, "real float dtype; got c64"),
        (lambda: linalg.tridiagonal_solve(X[0], X[0], X[0], X[0]), ShapeError, "hold matrices"),
        (
            lambda: linalg.tridiagonal_solve(X[0], X[0], X[0], TALL),
            ShapeError,
            r"tridiagonal_solve: .*got f32\[3\], f32\[3\], f32\[3\], f32\[5,3\]",
        ),
        (lambda: linalg.qdwh(TALL.T), ShapeError, "at least as many rows as columns"),
        (lambda: small.solve_small(np.eye(5, dtype="f4"), TALL), ShapeError, "at most 4 rows"),
        (lambda: small.solve_small(X, TALL), ShapeError, r"\(\.\.\., n, k\); got"),
    ],
)  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_other_platforms_have_no_lapack():
    from weft.core.aval import ShapedArray
    from weft.xla.hlo import Builder, Value

    x = Value("%0", ShapedArray((5, 5), np.float32))
    hlo = Builder(platform="tpu")
    assert [v.aval.shape for v in linalg.cholesky_p.lower(hlo, x)] == [(5, 5)]
    assert any("stablehlo.cholesky" in line for line in hlo.lines)
    flags = dict.fromkeys(
        ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal"), True
    )
    linalg.triangular_solve_p.lower(hlo, x, x, **flags)
    assert any("stablehlo.triangular_solve" in line for line in hlo.lines)
    with pytest.raises(
        NotImplementedError, match="is computed on CPU and GPUs alone; got platform tpu"
    ):
        linalg.lu_p.lower(hlo, x)


def test_half_precision_triangles_are_solved_in_float32():
    a = (np.tril(random((5, 5), np.float32)) + 4 * np.eye(5)).astype(np.float16)
    x = linalg.triangular_solve(a, a, left_side=True, lower=True)
    assert x.dtype == np.float16
    np.testing.assert_allclose(x, np.eye(5), atol=1e-3)


def test_deprecated_names():
    with pytest.warns(DeprecationWarning, match="use_magma is deprecated"):
        linalg.eig(np.eye(5, dtype=np.float32), use_magma=False)


def test_lu_solve():
    a, b = random((2, 5, 5), np.float32), random((2, 5, 2), np.float32, 1)
    factors, _, order = linalg.lu(a)
    close(factorizations.lu_solve(factors, order, b), np.linalg.solve(a, b), 10)


@pytest.mark.parametrize("module", [eigen, factorizations, polar, solves])
def test_doctests(module):
    done = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert done.attempted
    assert not done.failed
