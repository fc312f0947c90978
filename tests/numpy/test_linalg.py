"""numpy.linalg against NumPy, with derivatives against finite differences."""

import functools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.numpy.compare import close
from weft.errors import DtypeError, ShapeError

RNG = np.random.RandomState(0)
SHAPES = [(3, 3), (5, 5), (2, 5, 5), (2, 3, 4, 4)]
DTYPES = [np.float32, np.complex64]


def randn(*shape, dtype=np.float32, seed=0):
    rng = np.random.RandomState(seed)
    x = np.asarray(rng.randn(*shape))
    return (x + 1j * rng.randn(*shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def hermitian(x):
    return (x + np.swapaxes(x.conj(), -1, -2)) / 2


def positive(x):
    return x @ np.swapaxes(x.conj(), -1, -2) + x.shape[-1] * np.eye(x.shape[-1], dtype=x.dtype)


# How each function is called, on matrices prepared so.
VALUES = {
    "inv": (np.linalg.inv, None),
    "det": (np.linalg.det, None),
    "slogdet": (np.linalg.slogdet, None),
    "cholesky": (np.linalg.cholesky, positive),
    "eigvalsh": (np.linalg.eigvalsh, hermitian),
    "svdvals": (functools.partial(np.linalg.svd, compute_uv=False), None),
    "pinv": (np.linalg.pinv, None),
    "matrix_rank": (np.linalg.matrix_rank, None),
    "cond": (np.linalg.cond, None),
    "matrix_norm": (np.linalg.matrix_norm, None),
    "diagonal": (np.linalg.diagonal, None),
    "trace": (np.linalg.trace, None),
    "matrix_transpose": (np.linalg.matrix_transpose, None),
}


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", VALUES)
def test_values(name, shape, dtype):
    reference, prepare = VALUES[name]
    x = randn(*shape, dtype=dtype)
    x = prepare(x) if prepare else x
    got, want = getattr(jnp.linalg, name)(x), reference(x)
    if isinstance(want, tuple):
        assert got._fields == want._fields
        for g, w in zip(got, want, strict=True):
            close(g, w)
    else:
        close(got, want, 1e-3)
        assert got.dtype == want.dtype or name == "matrix_rank"


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 4)], ids=str)
def test_decompositions(shape, dtype):
    x = randn(*shape, dtype=dtype)
    for mode in ("reduced", "complete"):
        q, r = jnp.linalg.qr(x, mode)
        want = np.linalg.qr(x, mode)
        assert q.shape == want.Q.shape and r.shape == want.R.shape
        close(q @ r, x)
    close(jnp.linalg.qr(x, "r"), np.linalg.qr(x, "r"))
    if x.ndim == 2:
        for g, w in zip(jnp.linalg.qr(x, "raw"), np.linalg.qr(x, "raw"), strict=True):
            close(g, w)
    for full in (True, False):
        out, want = jnp.linalg.svd(x, full), np.linalg.svd(x, full)
        assert [y.shape for y in out] == [y.shape for y in want]
        assert out._fields == want._fields
        k = out.S.shape[-1]
        close((out.U[..., :k] * out.S[..., None, :]) @ out.Vh[..., :k, :], x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvectors(dtype):
    x = randn(2, 5, 5, dtype=dtype)
    h = hermitian(x)
    w, v = jnp.linalg.eigh(h)
    close(v * w[..., None, :], h @ np.asarray(v))
    w, v = jnp.linalg.eig(x)
    close(v * w[..., None, :], x @ np.asarray(v))
    close(jnp.linalg.eigvals(x), w)
    u, s, vh = jnp.linalg.svd(h, hermitian=True)
    close((u * s[..., None, :]) @ vh, h)
    close(s, np.linalg.svd(h)[1])
    close(jnp.linalg.svd(h, compute_uv=False, hermitian=True), s)
    close(jnp.linalg.pinv(h, hermitian=True), np.linalg.pinv(h))
    assert np.array_equal(jnp.linalg.matrix_rank(h, hermitian=True), [5, 5])
    lower, upper = (np.linalg.eigvalsh(x, uplo) for uplo in "LU")
    close(jnp.linalg.eigvalsh(x, "L", symmetrize_input=False), lower)
    close(jnp.linalg.eigh(x, "U", symmetrize_input=False)[0], upper)


ORDERS = {
    "vector": [None, 0, 1, 2, 3, -1, 2.5, np.inf, -np.inf],
    "matrix": [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_norms(dtype, keepdims):
    x = randn(2, 3, 4, dtype=dtype)

    def every(linalg, x):
        for ord in ORDERS["vector"]:
            for axis in (0, -1):
                yield linalg.norm(x, ord, axis, keepdims)
            yield linalg.vector_norm(x, axis=(0, 2), keepdims=keepdims, ord=ord)
        for ord in ORDERS["matrix"]:
            for axis in ((0, 1), (2, 0), (-1, -2)):
                yield linalg.norm(x, ord, axis, keepdims)
            yield linalg.matrix_norm(x, keepdims=keepdims, ord=ord)
        yield linalg.norm(x, keepdims=keepdims)

    found = weft.jit(lambda x: list(every(jnp.linalg, x)))(x)
    for got, want in zip(found, every(np.linalg, x), strict=True):
        close(got, want)


def test_norms_of_other_types():
    assert jnp.linalg.norm(jnp.arange(3)).dtype == np.float32
    assert jnp.linalg.norm(jnp.ones(3, jnp.bfloat16), 3).dtype == jnp.bfloat16
    assert jnp.linalg.norm(jnp.zeros(0), np.inf) == 0
    assert jnp.linalg.det(jnp.eye(6, dtype=jnp.float16)).dtype == np.float16


def test_conditions():
    x = randn(4, 4)
    for p in (None, 1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc"):
        close(jnp.linalg.cond(x, p), np.linalg.cond(x, p), 1e-3)


def test_products():
    xs = [randn(*s) for s in ((2, 6), (6, 3), (3, 7), (7, 2))]
    close(jnp.linalg.multi_dot(xs), np.linalg.multi_dot(xs))
    close(
        jnp.linalg.multi_dot([xs[0][0], *xs[1:-1], xs[-1][:, 0]]),
        (xs[0] @ xs[1] @ xs[2] @ xs[3])[0, 0],
    )
    x = randn(2, 5, 5)
    for n in (-3, -1, 0, 1, 2, 7):
        close(jnp.linalg.matrix_power(x, n), np.linalg.matrix_power(x, n), 2e-3)
    ints = np.arange(4).reshape(2, 2)
    assert jnp.linalg.matrix_power(ints, 3).dtype == np.int32
    y, z = randn(2, 3), randn(2, 3, seed=1)
    close(jnp.linalg.cross(y, z), np.linalg.cross(y, z))
    close(jnp.linalg.outer(y[0], z[0]), np.outer(y[0], z[0]))
    close(jnp.linalg.vecdot(y, z), (y * z).sum(-1))
    close(jnp.linalg.tensordot(y, z, axes=((1,), (1,))), y @ z.T)
    close(jnp.linalg.matmul(y, z.T), y @ z.T)
    close(jnp.linalg.diagonal(x, offset=-1), np.diagonal(x, -1, -2, -1))
    close(jnp.linalg.trace(x, offset=1), np.trace(x, 1, -2, -1))


def test_tensors():
    x = randn(4, 6, 8, 3)
    close(jnp.linalg.tensorinv(x), np.linalg.tensorinv(x), 2e-3)
    x, b = randn(2, 3, 6), randn(2, 3, seed=1)
    close(jnp.linalg.tensorsolve(x, b), np.linalg.tensorsolve(x, b), 1e-3)
    x = np.moveaxis(x, 2, 1)
    close(jnp.linalg.tensorsolve(x, b, axes=(1,)), np.linalg.tensorsolve(x, b, axes=(1,)), 1e-3)


# --- derivatives ----------------------------------------------------------------------------

# Smooth functions of a matrix, with results that do not depend on a choice of phase.
DERIVATIVES = {
    "det": jnp.linalg.det,
    "slogdet": jnp.linalg.slogdet,
    "inv": jnp.linalg.inv,
    "solve": lambda a: jnp.linalg.solve(a, a[..., :2] + 1),
    "solve_vector": lambda a: jnp.linalg.solve(a, a[..., 0]),
    "cholesky": lambda a: jnp.linalg.cholesky(a @ jnp.conj(a.mT) + jnp.eye(a.shape[-1])),
    "eigvalsh": lambda a: jnp.linalg.eigvalsh(a),
    "eigh": lambda a: (lambda w, v: (v * w[None, :] ** 2) @ jnp.conj(v.T))(*jnp.linalg.eigh(a)),
    "eigvals": lambda a: jnp.sum(jnp.linalg.eigvals(a) ** 3),
    "svdvals": jnp.linalg.svdvals,
    "svd": lambda a: (lambda u, s, vh: (u * s[None, :] ** 3) @ vh)(*jnp.linalg.svd(a)),
    "svd_hermitian": lambda a: (lambda u, s, vh: (u * s[None, :] ** 3) @ vh)(
        *jnp.linalg.svd((a + jnp.conj(a.T)) / 2, hermitian=True)
    ),
    "qr": lambda a: jnp.linalg.qr(a)[0],
    "pinv": lambda a: jnp.linalg.pinv(a[:, :3]),
    "pinv_wide": lambda a: jnp.linalg.pinv(a[:3]),
    "pinv_low_rank": lambda a: jnp.linalg.pinv(a[:, :2] @ a[:2], rtol=1e-3),
    "pinv_hermitian": lambda a: jnp.linalg.pinv(a + jnp.conj(a.T), hermitian=True),
    "lstsq": lambda a: jnp.linalg.lstsq(a[:, :2], a[:, 2:])[:2],
    "lstsq_wide": lambda a: jnp.linalg.lstsq(a[:2], a[:2, 0])[0],
    "lstsq_values": lambda a: jnp.linalg.lstsq(a[:, :2], a[:, 2])[3],
    "nuc": lambda a: jnp.linalg.norm(a, "nuc"),
    "norm_3": lambda a: jnp.linalg.norm(a, 3, axis=0),
    "norm_fro": jnp.linalg.norm,
    "cond": jnp.linalg.cond,
    "matrix_power": lambda a: jnp.linalg.matrix_power(a, -2),
    "tensorsolve": lambda a: jnp.linalg.tensorsolve(a, a[0]),
}


def check_derivatives(f, x, tol=2e-3):
    """Forward against differences, reverse against forward, in double precision."""
    t = randn(*x.shape, dtype=x.dtype, seed=2)
    f = weft.jit(f)
    eps = 1e-5
    ys, dots = weft.jvp(f, (x,), (t,))
    ahead, behind = f(x + eps * t), f(x - eps * t)
    for dot, p, m in zip(*map(weft.tree.leaves, (dots, ahead, behind)), strict=True):
        close(dot, (np.asarray(p) - np.asarray(m)) / (2 * eps), tol)
    _, pull = weft.vjp(f, x)
    cts = weft.tree.map(lambda y: jnp.asarray(randn(*y.shape, dtype=y.dtype, seed=3)), ys)
    (back,) = pull(cts)
    left = sum(
        np.sum(np.asarray(c) * np.asarray(d))
        for c, d in zip(*map(weft.tree.leaves, (cts, dots)), strict=True)
    )
    close(np.real(left), np.real(np.sum(np.asarray(back) * t)), 1e-5)


@pytest.mark.sample(one_in=16)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name, dtype):
    with weft.enable_x64(True):
        check_derivatives(DERIVATIVES[name], randn(5, 5, dtype=dtype))


@pytest.mark.parametrize("name", ["det", "slogdet", "inv", "solve", "cholesky"])
def test_derivatives_of_small_matrices(name):
    with weft.enable_x64(True):
        check_derivatives(DERIVATIVES[name], randn(3, 3, dtype=np.float64))


@pytest.mark.parametrize("name", ["det", "slogdet", "inv", "eigvalsh", "svdvals", "pinv", "cond"])
def test_batches(name):
    """vmap, over any axis, is what leading axes do; and so are derivatives under it."""
    f = getattr(jnp.linalg, name)
    x = randn(3, 5, 5)
    want = f(x)
    moved = weft.jit(weft.vmap(f, in_axes=1))(np.moveaxis(x, 0, 1))
    for g, w in zip(*map(weft.tree.leaves, (moved, want)), strict=True):
        close(g, w)
    total = lambda a: sum(jnp.sum(y) for y in weft.tree.leaves(f(a)))
    mapped, once = weft.jit(lambda x: (weft.vmap(weft.grad(total))(x), weft.grad(total)(x)))(x)
    close(mapped, once, 1e-3)


# --- mistakes -------------------------------------------------------------------------------

L = jnp.linalg
E = np.eye(3, dtype=np.float32)
MISTAKES = [
    (lambda: L.inv(E[:2]), ShapeError, r"inv: the operand must hold square matrices.*f32\[2,3\]"),
    (lambda: L.inv(jnp.bfloat16(E)), DtypeError, r"inv: the dtype must be one of float32"),
    (lambda: L.det(E[0]), ShapeError, r"det: the operand must hold square matrices"),
    (lambda: L.slogdet(E, method="x"), ValueError, r"slogdet: method must be None, 'lu' or 'qr'"),
    (lambda: L.solve(E, E[:2]), ShapeError, r"solve: operands must be of shapes .*f32\[2,3\]"),
    (lambda: L.solve(np.stack([E] * 2), E[:2]), ShapeError, r"Hint: b\[..., None\]"),
    (lambda: L.solve(np.stack([E] * 2), np.stack([E] * 3)), ShapeError, r"leading axes must"),
    (lambda: L.lstsq(E, E[:2]), ShapeError, r"lstsq: operands must be of shapes \(m, n\) and"),
    (lambda: L.pinv(E, 1.0, rcond=1.0), ValueError, r"pinv: only one of rtol and rcond"),
    (lambda: L.matrix_rank(E, 1.0, tol=1.0), ValueError, r"matrix_rank: only one of rtol and tol"),
    (lambda: L.qr(E, "full"), ValueError, r"qr: mode must be 'reduced'"),
    (lambda: L.eigh(E, "X"), ValueError, r"eigh: UPLO must be 'L', 'U' or None; got 'X'"),
    (lambda: L.norm(E, "inf"), ValueError, r"norm: ord must be 'fro', 'nuc'.* for matrices"),
    (lambda: L.norm(E[0], "fro"), ValueError, r"norm: ord must be a number for vectors"),
    (lambda: L.norm(np.stack([E] * 2), 2), ShapeError, r"norm: there must be one axis"),
    (lambda: L.norm(E, axis=(0, 0)), ShapeError, r"norm: axes must be distinct"),
    (lambda: L.cond(np.zeros((0, 0), np.float32)), ShapeError, r"cond: matrices must not be empty"),
    (lambda: L.multi_dot([E]), ShapeError, r"multi_dot: operands must be two or more matrices"),
    (lambda: L.multi_dot([E, E[:2]]), ShapeError, r"multi_dot: neighbours must fit as factors"),
    (lambda: L.matrix_power(E, 1.5), TypeError, r"integer"),
    (lambda: L.matrix_power(E[:2], 2), ShapeError, r"matrix_power: a must hold square matrices"),
    (lambda: L.tensorinv(E, 0), ShapeError, r"tensorinv: ind must be at least 1"),
    (lambda: L.tensorinv(E, 2), ShapeError, r"tensorinv: the first 2 sizes must multiply"),
    (lambda: L.tensorsolve(E, E[:2]), ShapeError, r"tensorsolve: a must have the shape of b"),
    (lambda: L.cross(E, E, axis=5), ShapeError, "cross: an axis of an array of rank 2 must be in"),
    (lambda: L.cross(E[:, :2], E[:, :2]), ShapeError, r"cross: vectors must be of length 3"),
    (lambda: L.outer(E, E), ShapeError, r"outer: operands must be vectors.*Hint: jnp.outer"),
    (lambda: L.inv([[1.0]]), TypeError, r"inv: .*list"),
]


@pytest.mark.parametrize(("call", "kind", "text"), MISTAKES, ids=[m[2][:24] for m in MISTAKES])
def test_mistakes(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("name", ["det", "slogdet", "inv", "solve", "pinv", "lstsq"])
def test_second_derivatives(name):
    """A gradient is a function like any other."""
    f = DERIVATIVES[name]

    def total(a):
        return sum(jnp.sum(y * y) for y in weft.tree.leaves(f(a)))

    with weft.enable_x64(True):
        check_derivatives(weft.grad(total), randn(5, 5, dtype=np.float64), 1e-2)


def test_cross_products_along_the_last_axis():
    x, y = randn(2, 4, 3), randn(2, 4, 3, seed=1)
    close(jnp.linalg.cross(x, y), np.linalg.cross(x, y))
    close(jnp.linalg.cross(x[0, 0], y[0, 0]), np.linalg.cross(x[0, 0], y[0, 0]))
    close(jnp.linalg.cross(x.T, y.T, axis=0), np.linalg.cross(x.T, y.T, axis=0))


@pytest.mark.parametrize("shape", [(2, 5, 3), (2, 3, 5), (2, 1, 3, 3)])
def test_every_mode_of_qr_of_batches(rng, shape):
    x = rng.standard_normal(shape).astype(np.float32)
    for mode in ("reduced", "complete"):
        (q, r), want = jnp.linalg.qr(x, mode), np.linalg.qr(x, mode)
        assert (q.shape, r.shape) == (want.Q.shape, want.R.shape)
        np.testing.assert_allclose(q @ r, x, atol=1e-5)
        np.testing.assert_allclose(np.abs(r), np.abs(want.R), atol=1e-5)
        qt = np.swapaxes(q, -1, -2)
        np.testing.assert_allclose(
            qt @ q, np.broadcast_to(np.eye(q.shape[-1]), (qt @ q).shape), atol=1e-5
        )
