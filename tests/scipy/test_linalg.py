"""scipy.linalg against SciPy, with derivatives against finite differences."""

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg as reference

import weft
import weft.numpy as jnp
import weft.scipy.linalg as linalg
from tests.numpy.test_linalg import check_derivatives, close, hermitian, positive, randn
from weft.errors import DtypeError, MissingRule, ShapeError

DTYPES = [np.float32, np.complex64]

# Matrices of a known form: name, arguments.
KNOWN = [
    ("toeplitz", randn(3)),
    ("toeplitz", randn(3, dtype=np.complex64)),
    ("toeplitz", np.arange(3), np.arange(4)),
    ("hankel", randn(3)),
    ("hankel", np.arange(3), np.arange(4)),
    ("circulant", randn(4)),
    ("companion", randn(4)),
    ("companion", randn(2)),
    ("leslie", randn(4), randn(3)),
    ("fiedler", randn(4)),
    ("fiedler_companion", np.arange(1.0, 8, dtype=np.float32)),
    ("fiedler_companion", np.arange(1.0, 7, dtype=np.float32)),
    ("fiedler_companion", randn(3)),
    ("fiedler_companion", randn(2)),
    *[("convolution_matrix", randn(3), 5, mode) for mode in ("full", "same", "valid")],
    *[("convolution_matrix", randn(4), 2, mode) for mode in ("full", "same", "valid")],
    ("block_diag", randn(2, 2), randn(1, 3), randn(2), 1.0),
    ("dft", 4),
    ("dft", 1),
    ("dft", 5, "n"),
    ("dft", 5, "sqrtn"),
    ("hadamard", 8),
    ("helmert", 4),
    ("helmert", 4, True),
    ("hilbert", 4),
    ("invhilbert", 5),
    *[
        (name, 5, kind)
        for name in ("pascal", "invpascal")
        for kind in ("symmetric", "lower", "upper")
    ],
]


@pytest.mark.parametrize("case", KNOWN, ids=lambda c: c[0])
def test_known_matrices(case):
    name, *args = case
    close(getattr(linalg, name)(*args), getattr(reference, name)(*args), 1e-5)


def test_known_matrices_of_batches():
    x = randn(2, 4)
    for name in ("toeplitz", "circulant", "companion", "fiedler", "hankel", "fiedler_companion"):
        want = np.stack([getattr(linalg, name)(v) for v in x])
        close(getattr(linalg, name)(x), want)
    assert linalg.toeplitz(jnp.ones(3, bool)).dtype == bool
    assert linalg.block_diag().shape == (1, 0)
    with weft.enable_x64(True):
        close(weft.grad(lambda c: jnp.sum(linalg.toeplitz(c) ** 2))(jnp.ones(3)), [6.0, 8, 4])


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("b", [(5,), (5, 2)], ids=str)
def test_systems(b, dtype):
    a, b = randn(5, 5, dtype=dtype), randn(*b, dtype=dtype, seed=1)
    close(linalg.solve(a, b), np.linalg.solve(a, b), 1e-3)
    s = positive(a)
    for lower in (False, True):
        for x in (a, s):
            for trans in (0, 1, 2, "N", "T", "C"):
                for unit in (False, True):
                    want = reference.solve_triangular(x, b, trans, lower, unit)
                    close(linalg.solve_triangular(x, b, trans, lower, unit), want, 2e-3)
        half = np.tril(s) if lower else np.triu(s)
        close(linalg.solve(half, b, lower=lower, assume_a="pos"), np.linalg.solve(s, b), 1e-3)
        close(linalg.cholesky(half, lower), reference.cholesky(half, lower))
        c, which = linalg.cho_factor(half, lower)
        assert which == lower
        close(linalg.cho_solve((c, lower), b), np.linalg.solve(s, b), 1e-3)
    for got, want in zip(linalg.lu_factor(a), reference.lu_factor(a), strict=True):
        close(got, want)
    for trans in (0, 1, 2):
        want = reference.lu_solve(reference.lu_factor(a), b, trans)
        close(linalg.lu_solve(linalg.lu_factor(a), b, trans), want, 1e-3)
    close(linalg.inv(a), reference.inv(a), 1e-3)
    close(linalg.det(a), reference.det(a), 1e-3)


def test_systems_of_batches():
    a, b = randn(2, 5, 5), randn(5, 3)
    want = np.linalg.solve(a, b)
    close(linalg.solve(a, b), want, 1e-3)
    close(linalg.lu_solve(linalg.lu_factor(a), b), want, 1e-3)
    s = positive(a)
    close(linalg.cho_solve(linalg.cho_factor(s), b), np.linalg.solve(s, b), 1e-3)
    half = linalg.solve_triangular(jnp.bfloat16(np.eye(3)), jnp.ones(3, jnp.bfloat16))
    assert half.dtype == jnp.bfloat16


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)], ids=str)
def test_factorizations(shape, dtype):
    a = randn(*shape, dtype=dtype)
    for got, want in zip(linalg.lu(a), reference.lu(a), strict=True):
        close(got, want)
    for got, want in zip(
        linalg.lu(a, permute_l=True), reference.lu(a, permute_l=True), strict=True
    ):
        close(got, want)
    for mode in ("full", "economic", "r"):
        for pivoting in (False, True):
            got = linalg.qr(a, mode=mode, pivoting=pivoting)
            want = reference.qr(a, mode=mode, pivoting=pivoting)
            for g, w in zip(got, want, strict=True):
                close(g, w)
    for driver in ("gesdd", "gesvd"):
        u, s, vh = linalg.svd(a, False, lapack_driver=driver)
        close((u * s) @ vh, a)
        close(linalg.svd(a, compute_uv=False, lapack_driver=driver), s)
    for left, conjugate in ((True, False), (False, True)):
        mode = "left" if left else "right"
        c = randn(*((min(shape), 2) if left else (2, shape[0])), dtype=dtype, seed=1)
        for c_ in (c, c[:, 0] if left else c[0]):
            options = {"pivoting": True, "conjugate": conjugate}
            got = linalg.qr_multiply(a, c_, mode, **options)
            want = reference.qr_multiply(a, c_, mode, **options)
            for g, w in zip(got, want, strict=True):
                close(g, w)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues(dtype):
    a, b = hermitian(randn(5, 5, dtype=dtype)), positive(randn(5, 5, dtype=dtype, seed=1))
    for kind in (1, 2, 3):
        w, v = linalg.eigh(a, b, type=kind)
        close(w, reference.eigh(a, b, type=kind, eigvals_only=True), 1e-3)
        v = np.asarray(v)
        left, right = {1: (a @ v, b @ v), 2: (a @ b @ v, v), 3: (b @ a @ v, v)}[kind]
        close(left, right * w, 1e-3)
    close(linalg.eigh(a, eigvals_only=True), reference.eigvalsh(a))
    close(linalg.eigh(a, eigvals=(1, 2))[0], reference.eigvalsh(a)[1:3])
    d, e = randn(5), randn(4, dtype=dtype, seed=1)
    t = np.diag(d) + np.diag(e, -1) + np.diag(e.conj(), 1)
    w, v = linalg.eigh_tridiagonal(d, e)
    close(w, np.linalg.eigvalsh(t))
    close(t @ np.asarray(v), v * w, 1e-3)
    some = linalg.eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(1, 3))
    close(some, w[1:4])


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 6])
def test_reductions(n, dtype):
    a = randn(n, n, dtype=dtype)
    h, q = linalg.hessenberg(a, calc_q=True)
    close(q @ h @ np.asarray(q).conj().T, a)
    close(linalg.hessenberg(a), h)
    assert np.abs(np.tril(h, -2)).max(initial=0) == 0
    for output in ("real", "complex"):
        t, z = linalg.schur(a, output)
        close(z @ t @ np.asarray(z).conj().T, a)
    t, z = linalg.rsf2csf(*linalg.schur(a))
    close(z @ t @ np.asarray(z).conj().T, a)
    assert np.abs(np.tril(t, -1)).max(initial=0) == 0
    batch = np.stack([a, 2 * a])
    t, z = linalg.rsf2csf(*linalg.schur(batch))
    close(z @ t @ jnp.conj(z).mT, batch)


# Matrices that are far from normal: the norm of their exponential is much less than exp(norm).
FAR_FROM_NORMAL = [
    [[1, 1e6], [0, -1]],
    [[-1, 0], [1e6, 1]],
    [[1, 1e10], [0, -2]],
    [[0, 1e30], [0, 0]],
    [[0, 1e4], [-1e-4, 0]],
    [[1, 2e5], [-3e-6, -1]],
    [[-49, 24], [-64, 31]],
    [[1e5, 0], [0, 1]],  # its exponential overflows
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials_of_matrices_far_from_normal(dtype):
    with weft.enable_x64(dtype == np.float64):
        a = np.array(FAR_FROM_NORMAL, dtype)
        found, dots = map(np.asarray, linalg.expm_frechet(a, np.sign(a)))
    limit = 50 * np.finfo(dtype).eps
    for got, dot, matrix in zip(found, dots, a, strict=True):
        n = 2 * len(matrix)
        with mp.workdps(60), np.errstate(over="ignore"):
            # The exponential of [[A, E], [0, A]] holds the one of A, and its derivative.
            both = np.block([[matrix, np.sign(matrix)], [np.zeros_like(matrix), matrix]])
            both = mp.expm(mp.matrix(both.astype(float).tolist()))
            want = np.array(both.tolist(), float).reshape(n, n)[: n // 2].astype(dtype)
        if np.isfinite(want).all():
            value, slope = np.hsplit(want, 2)
            assert np.abs(got - value).max() <= 2 * limit * np.abs(value).max(), matrix
            assert np.abs(dot - slope).max() <= 20 * limit * np.abs(slope).max(), matrix
        else:
            assert not np.isfinite(got).all(), matrix


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions(dtype):
    a = randn(5, 5, dtype=dtype)
    for scale in (0, 1e-3, 1, 20):
        close(linalg.expm(scale * a), reference.expm(scale * a.astype(np.complex128)), 1e-3)
    upper = np.triu(a)
    close(linalg.expm(upper, upper_triangular=True), reference.expm(upper), 1e-3)
    close(linalg.expm(np.stack([a, 9 * a]))[1], linalg.expm(9 * a), 1e-4)
    assert np.isnan(linalg.expm(1e8 * a)).all()
    assert np.isnan(linalg.expm(20 * a, max_squarings=1)).all()
    e = randn(5, 5, dtype=dtype, seed=1)
    for got, want in zip(linalg.expm_frechet(a, e), reference.expm_frechet(a, e), strict=True):
        close(got, want, 1e-3)
    close(linalg.expm_frechet(a, e, compute_expm=False), linalg.expm_frechet(a, e)[1])
    root = linalg.sqrtm(a)
    close(root @ root, a)
    singular = np.zeros((3, 5, 5), dtype)  # with several eigenvalues 0
    singular[1, :2, :2] = [[2, 1], [1, 3]]
    singular[2] = a[:, :2] @ a[:, :2].T.conj()
    roots = linalg.sqrtm(singular)
    close(roots @ roots, singular)
    assert np.isnan(linalg.sqrtm(np.eye(2, k=1))).any()  # it has none
    close(linalg.sqrtm(np.stack([a, 4 * a]))[1], 2 * root)
    f, error = linalg.funm(a, jnp.exp, disp=False)
    close(f, reference.expm(a), 1e-3)
    assert 0 < error < 1e-4
    close(linalg.funm(a, lambda x: x**2), a @ a, 1e-3)
    for x in (a, a[:3], a[:, :3]):
        for side in ("right", "left"):
            for got, want in zip(linalg.polar(x, side), reference.polar(x, side), strict=True):
                close(got, want)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("method", ["schur", "eigen"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sylvester(dtype, method):
    a, b, c = randn(4, 4, dtype=dtype), randn(3, 3, seed=1), randn(4, 3, seed=2)
    got = linalg.solve_sylvester(a, b, c, method=method)
    close(a @ got + got @ b, c, 1e-3)
    assert got.dtype == dtype
    many = linalg.solve_sylvester(a, np.stack([b, 2 * b]), c, method=method)
    close(a @ many[1] + many[1] @ (2 * b), c, 1e-3)
    assert np.isnan(linalg.solve_sylvester(a, -a, a, method=method, tol=1e-3)).all()


DERIVATIVES = {
    "expm": linalg.expm,
    "expm_of_small": lambda a: linalg.expm(a / 100),
    "sqrtm": linalg.sqrtm,
    "sylvester": lambda a: linalg.solve_sylvester(a, a[:3, :3], a[:, :3]),
    "sylvester_eigen": lambda a: linalg.solve_sylvester(a, a[:3, :3], a[:, :3], method="eigen"),
    "polar": linalg.polar,
    "polar_tall": lambda a: linalg.polar(a[:, :3]),
    "polar_wide": lambda a: linalg.polar(a[:3], "left"),
    "solve_pos": lambda a: linalg.solve(a @ jnp.conj(a.T), a, assume_a="pos"),
    "lu_solve": lambda a: linalg.lu_solve(linalg.lu_factor(a), a[0], trans=1),
    "lu": lambda a: linalg.lu(a)[1:],
    "eigh_generalized": lambda a: linalg.eigh(a, a @ jnp.conj(a.T), eigvals_only=True),
    "eigh_tridiagonal": lambda a: linalg.eigh_tridiagonal(
        jnp.real(a[0]), a[1, 1:], eigvals_only=True
    ),
    "qr_multiply": lambda a: linalg.qr_multiply(a, a[0])[0],
    "companion": lambda a: linalg.companion(a[0]),
}


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name, dtype):
    with weft.enable_x64(True):
        check_derivatives(DERIVATIVES[name], randn(5, 5, dtype=dtype))


def test_polar_derivative_of_equal_singular_values():
    """It exists even if singular vectors have no derivatives."""
    with weft.enable_x64(True):
        check_derivatives(lambda a: linalg.polar(a)[0], np.eye(4)[::-1].copy())


def test_vmap_of_functions():
    a = randn(3, 4, 4)
    for f in (linalg.expm, linalg.sqrtm, lambda a: linalg.solve_sylvester(a, a, a), linalg.polar):
        one = weft.tree.leaves(weft.vmap(f)(a))
        for got, want in zip(one, weft.tree.leaves(f(a)), strict=True):
            close(got, want, 1e-3)


E = np.eye(3, dtype=np.float32)
MISTAKES = [
    (lambda: linalg.solve(E, E, assume_a="x"), ValueError, r"solve: assume_a must be 'gen'"),
    (
        lambda: linalg.solve_triangular(E, E[0], trans=3),
        ValueError,
        r"solve_triangular: trans must",
    ),
    (lambda: linalg.solve_triangular(E, E[:2]), ShapeError, r"solve_triangular: operands must be"),
    (
        lambda: linalg.cho_solve((E[:2], True), E),
        ShapeError,
        r"cho_solve: the operand must hold sq",
    ),
    (lambda: linalg.lu_solve((E, np.arange(3)), E, 3), ValueError, r"lu_solve: trans must be 0, 1"),
    (
        lambda: linalg.lu_solve((E, np.int32([0])), E),
        ShapeError,
        r"lu_solve: there must be a pivot",
    ),
    (lambda: linalg.qr(E, mode="raw"), ValueError, r"qr: mode must be 'full', 'r' or 'economic'"),
    (lambda: linalg.qr_multiply(E, E[:, :2]), ShapeError, r"qr_multiply: c must have 3 columns"),
    (lambda: linalg.qr_multiply(E, np.ones((2, 2)), "left"), ShapeError, r"must have 3 rows"),
    (lambda: linalg.qr_multiply(E, np.ones((4, 3))[:, :2]), ShapeError, r"must have 3 columns"),
    (lambda: linalg.qr_multiply(E, np.float32(1)), ShapeError, r"must have 3 columns"),
    (lambda: linalg.dft(-1), ShapeError, r"dft: n must be at least 0; got -1"),
    (lambda: linalg.rsf2csf(E, E[:2]), ShapeError, r"rsf2csf: .*square"),
    (lambda: linalg.qr_multiply(E, E, "x"), ValueError, r"qr_multiply: mode must be 'right' or"),
    (lambda: linalg.svd(E, lapack_driver="x"), ValueError, r"svd: lapack_driver must be 'gesdd'"),
    (lambda: linalg.eigh(E, type=4), ValueError, r"eigh: type must be 1, 2 or 3; got 4"),
    (lambda: linalg.eigh(E[:2]), ShapeError, r"eigh: .*square"),
    (lambda: linalg.eigh(E, E[:2, :2]), ShapeError, r"eigh: a and b must be of one size"),
    (lambda: linalg.eigh_tridiagonal(E[0], E[0]), ShapeError, r"\(n,\) and \(n - 1,\)"),
    (
        lambda: linalg.eigh_tridiagonal(E[0], E[0, 1:], select="v"),
        NotImplementedError,
        r"eigh_tridiagonal: select must be 'a' or 'i'",
    ),
    (lambda: linalg.schur(E, "x"), ValueError, r"schur: output must be 'real' or 'complex'"),
    (lambda: weft.grad(lambda a: linalg.schur(a)[0].sum())(E), MissingRule, r"schur: has no deriv"),
    (lambda: linalg.expm(jnp.bfloat16(E)), DtypeError, r"expm: the dtype must be one of"),
    (
        lambda: linalg.expm_frechet(E, E[:2, :2]),
        ShapeError,
        r"expm_frechet: A and E must be of one",
    ),
    (lambda: linalg.funm(np.stack([E, E]), jnp.exp), ShapeError, r"funm: A must be one square"),
    (lambda: linalg.solve_sylvester(E, E, E[:2]), ShapeError, r"\(..., m, n\); got f32"),
    (lambda: linalg.solve_sylvester(E, E, E, method="x"), ValueError, r"method must be 'schur' or"),
    (lambda: linalg.polar(E, "x"), ValueError, r"polar: side must be 'right' or 'left'"),
    (lambda: linalg.polar(E, method="x"), ValueError, r"polar: method must be 'qdwh' or 'svd'"),
    (lambda: linalg.rsf2csf(E, E[:2, :2]), ShapeError, r"rsf2csf: T and Z must be of one size"),
    (lambda: linalg.block_diag(E[None]), ShapeError, r"block_diag: operands must have 2 axes"),
    (lambda: linalg.leslie(E[0], E[0]), ShapeError, r"leslie: s must be one element shorter"),
    (lambda: linalg.companion(E[0, :1]), ShapeError, r"companion: vectors must have at least 2"),
    (
        lambda: linalg.convolution_matrix(E[0], 0),
        ShapeError,
        r"convolution_matrix: n must be at least 1; got 0",
    ),
    (lambda: linalg.convolution_matrix(E[0], 2, "x"), ValueError, r"mode must be 'full', 'valid'"),
    (lambda: linalg.dft(3, "x"), ValueError, r"dft: scale must be None, 'sqrtn' or 'n'; got 'x'"),
    (lambda: linalg.hadamard(3), ShapeError, r"hadamard: n must be a positive power of 2; got 3"),
    (lambda: linalg.hilbert(-1), ShapeError, r"hilbert: n must be at least 0; got -1"),
    (lambda: linalg.pascal(3, "x"), ValueError, r"pascal: kind must be 'symmetric'"),
]


@pytest.mark.parametrize(("call", "kind", "text"), MISTAKES, ids=[m[2][:24] for m in MISTAKES])
def test_mistakes(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("name", ["hilbert", "invhilbert", "pascal", "invpascal"])
def test_the_order_of_a_matrix_no_memory_holds_is_an_error(name):
    said = r"^array: must have fewer than 2\*\*63 bytes; got object\[10000000000000000000,"
    with pytest.raises(ShapeError, match=said):
        getattr(linalg, name)(10**19)


def test_complex_schur_forms_of_rotations():
    """Every pair of conjugate eigenvalues is turned, at any place and of any size."""
    for n in (2, 3, 4, 5):
        a = np.random.default_rng(n).normal(size=(n, n)).astype(np.float32)
        t, z = map(np.asarray, linalg.rsf2csf(*linalg.schur(a - a.T)))
        np.testing.assert_array_equal(np.tril(t, -1), 0)
        np.testing.assert_allclose(z @ t @ z.conj().T, a - a.T, atol=1e-5)
