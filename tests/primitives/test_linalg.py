"""Functions of linalg.py, and what all linear algebra shares: empty matrices, failures, errors."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg

import weft
from tests.docstrings import check_examples
from tests.primitives.matrix_helpers import SIZES, close, random, t
from weft import lax
from weft.cpu.kernels import load_kernels
from weft.errors import DtypeError, MissingRule, ShapeError
from weft.primitives import eigen, factorizations, polar, small
from weft.primitives import linalg as solves

linalg = lax.linalg


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
    """Real matrices do not either; a program kept on disk finds its kernels in a new process."""
    script = """
import sys, numpy as np, weft
from weft import lax
x = np.eye(6, dtype=sys.argv[1]) * 4
f = weft.jit(lax.linalg.cholesky)
print(float(f(x)[0, 0].real), "scipy" in sys.modules)
"""
    env = {**os.environ, "WEFT_CACHE_DIR": str(tmp_path / "cache")}

    def run(dtype):
        done = subprocess.run(
            [sys.executable, "-c", script, dtype],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    assert run("float32") == ["2.0", str(bool(load_kernels()))]
    first = run("complex64")
    assert run("complex64") == first == ["2.0", "True"]


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


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("module", [eigen, factorizations, polar, solves])
def test_doctests(module):
    assert check_examples(module)


@pytest.mark.parametrize("beta", [0.0, 1.0, -2.0])
def test_symmetric_products(beta):
    """Every kind of factor, with derivatives in both operands; the upper triangle is not read."""
    a, c = random((2, 3, 4), np.float64), random((2, 3, 3), np.float64)
    s = c + t(c)
    with weft.enable_x64(True):

        def fun(a, c):
            return [
                linalg.symmetric_product(a, c, alpha=alpha, beta=beta, symmetrize_output=both)
                for alpha in (0.0, 1.0, 3.0)
                for both in (False, True)
            ]

        outs, dots = weft.jit(lambda *xs: weft.jvp(fun, xs, xs))(a, s)
        lower = weft.jit(fun)(a, np.tril(s))
    for i, alpha in enumerate((0.0, 1.0, 3.0)):
        square, both = alpha * a @ t(a), slice(2 * i, 2 * i + 2)
        for y, dot in zip(outs[both], dots[both], strict=True):
            close(y, square + beta * s)
            close(dot, 2 * square + beta * s)
        close(lower[2 * i + 1], square + beta * s)
