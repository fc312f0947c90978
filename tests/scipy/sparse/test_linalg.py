import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import grad, jacfwd, jit, vmap
from weft.errors import PytreeError, ShapeError
from weft.scipy.sparse import linalg
from weft.scipy.sparse.linalg import bicgstab, cg, gmres

N = 6
SOLVERS = {
    "cg": cg,
    "bicgstab": bicgstab,
    "gmres": gmres,
    "gmres incremental": lambda *a, **k: gmres(*a, solve_method="incremental", **k),
    "gmres restarted": lambda *a, **k: gmres(*a, restart=3, **k),
}
TIGHT = {"tol": 1e-7}


def problem(name, dtype=np.float32, n=N):
    """A matrix the method is for, and a right-hand side."""
    rng = np.random.default_rng(0)
    real = lambda *shape: rng.normal(size=shape)
    draw = lambda *s: real(*s) + 1j * real(*s) if np.dtype(dtype).kind == "c" else real(*s)
    a = draw(n, n) / np.sqrt(n)
    a = a @ a.conj().T + np.eye(n) if name == "cg" else 0.3 * a + 2 * np.diag(np.arange(1, n + 1))
    return a.astype(dtype), draw(n).astype(dtype)


def close(got, want, tol=2e-5):
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


def test_doctests():
    check_examples(linalg)


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("name", SOLVERS)
def test_solutions(name, dtype):
    solver, (a, b) = SOLVERS[name], problem(name, dtype)
    want = np.linalg.solve(a, b)
    diagonal = np.diag(1 / np.diag(a)).astype(dtype)
    for options in (
        TIGHT,
        {"x0": np.ones(N, np.float32), "tol": 0.0, "atol": 1e-5},
        {"M": diagonal, **TIGHT},
        {"M": lambda x: diagonal @ x, **TIGHT},
    ):
        x, info = solver(a, b, **options)
        assert x.dtype == dtype and int(info) == 0
        close(x, want)
    x, info = jit(lambda b: solver(lambda x: a @ x, b, **TIGHT))(b)
    close(x, want)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", SOLVERS)
def test_what_does_not_converge_says_so(name):
    a, b = problem(name)
    x, info = SOLVERS[name](a, b, maxiter=1, tol=1e-12)
    assert np.all(np.isfinite(x)) and int(info) == 1
    x, info = SOLVERS[name](a, b, maxiter=0)
    assert not np.any(x) and int(info) == 1
    x, info = SOLVERS[name](a, 0 * b)
    assert not np.any(x) and int(info) == 0
    x, info = SOLVERS[name](a, b, tol=0.0, maxiter=60)  # beyond what can be reached
    close(x, np.linalg.solve(a, b))


@pytest.mark.parametrize("name", ["bicgstab", "gmres", "gmres incremental"])
def test_breakdowns(name):
    rotation = np.array([[0.0, 1], [-1, 0]], np.float32)  # r.Ar = 0 for every r
    x, info = SOLVERS[name](rotation, np.array([1.0, 2], np.float32), maxiter=20)
    assert np.all(np.isfinite(x))
    if name != "bicgstab":
        close(x, [-2, 1])
    singular = np.diag([1.0, 2, 0]).astype(np.float32)
    x, _ = SOLVERS[name](singular, np.array([1.0, 2, 0], np.float32))
    close(x, [1, 1, 0])


@pytest.mark.parametrize("name", SOLVERS)
def test_pytrees(name):
    a, b = problem(name)
    flat = lambda t: jnp.concatenate([t["x"].ravel(), t["y"][None]])
    tree = lambda v: {"x": v[:-1].reshape(5, 1), "y": v[-1]}
    x, _ = SOLVERS[name](lambda t: tree(a @ flat(t)), tree(jnp.array(b)), **TIGHT)
    close(flat(x), np.linalg.solve(a, b))


def exact(a, b):
    """Gauss and Jordan."""
    m = jnp.concatenate([a, b[:, None]], 1)
    for i in range(N):
        m = m - jnp.outer(m[:, i] * (np.arange(N) != i), m[i] / m[i, i])
    return m[:, -1] / jnp.diagonal(m)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", SOLVERS)
def test_derivatives_are_those_of_the_solution(name):
    a, b = problem(name)
    if name == "cg":  # a must stay symmetric
        mine = lambda a, b: SOLVERS[name](lambda x: (a + a.T) @ x / 2, b, **TIGHT)[0]
        want = lambda a, b: exact((a + a.T) / 2, b)
    else:
        mine, want = (lambda a, b: SOLVERS[name](a, b, **TIGHT)[0]), exact
    for transform in (
        lambda f: grad(lambda a, b: jnp.sum(jnp.sin(f(a, b))), argnums=(0, 1)),
        lambda f: jacfwd(f, argnums=1),
        lambda f: jit(lambda a, b: vmap(f, (None, 1))(a, jnp.stack([b, 2 * b], 1))),
        lambda f: (
            lambda a, b: vmap(grad(lambda a, b: f(a, b)[0]))(
                jnp.stack([a, 1.2 * a]), jnp.stack([b, b])
            )
        ),
    ):
        found, wanted = jit(transform(mine))(a, b), jit(transform(want))(a, b)
        weft.tree.map(lambda x, y: close(x, y, 1e-4), found, wanted)


def test_complex_derivatives():
    a, b = problem("cg", np.complex64)
    loss = lambda f: lambda b: jnp.sum(jnp.abs(f(a, b)) ** 2)
    for solver in (cg, bicgstab, gmres):
        mine = lambda a, b, solver=solver: solver(a, b, **TIGHT)[0]
        close(jit(grad(loss(mine)))(b), jit(grad(loss(exact)))(b), 1e-4)


FORMS = {
    "function": lambda m: lambda x: m @ x,
    "jitted": lambda m: jit(lambda x: jnp.matmul(m, x)),
    "matrix": lambda m: m,
    "solve": lambda m: lambda x: jnp.linalg.solve(jnp.linalg.inv(m), x),
    "iteration": lambda m: (
        lambda x: weft.lax.fori_loop(
            0, 3, lambda i, y: y + 0.2 * (x - jnp.diag(1 / jnp.diag(m)) @ y), 0 * x
        )
    ),
}


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize(
    "name, form, dtype",
    [
        ("cg", "function", np.complex64),
        ("bicgstab", "matrix", np.complex64),
        ("bicgstab", "jitted", np.float32),
        ("gmres", "solve", np.complex64),
        ("bicgstab", "iteration", np.float32),
        ("gmres", "function", np.float32),
    ],
)
def test_derivatives_with_a_preconditioner(name, form, dtype):
    """Few steps suffice for the transposed system only if the transpose of M is used."""
    a, b = problem(name, dtype)
    a = a if name == "cg" else a + np.triu(np.full_like(a, 4), 1)  # far from its transpose
    m = np.linalg.inv(a)
    few = {"maxiter": 40 if form == "iteration" else 3, "tol": 1e-6, "atol": 1e-6}
    few |= {"restart": 2} if name == "gmres" else {}
    dot = lambda x: jnp.real(jnp.vdot(np.arange(1, N + 1).astype(dtype), jnp.sin(x)))
    # cg wants A to stay Hermitian, where it moves
    whole = (lambda a: (a + a.conj().T) / 2) if name == "cg" else lambda a: a

    def loss(a, b, m):
        A = whole(a)
        return dot(SOLVERS[name](lambda x: A @ x, b, M=FORMS[form](m), **few)[0])

    args = (a, b, m.astype(dtype))
    pulled = jit(grad(loss, (0, 1, 2)))(*args)
    want = jit(grad(lambda a, b: dot(jnp.linalg.solve(whole(a), b)), (0, 1)))(a, b)
    for got, wanted in zip(pulled, (*want, 0 * a), strict=True):
        close(got, wanted, 2e-4)
    moves = [np.cos(np.arange(x.size)).reshape(x.shape).astype(dtype) for x in args]
    pushed = jit(lambda *xs: weft.jvp(loss, xs, tuple(moves))[1])(*args)
    inner = sum(np.sum(np.asarray(g) * d).real for g, d in zip(want, moves, strict=False))
    close(pushed, inner, 2e-4)


def test_derivatives_of_mapped_trees_with_a_preconditioner():
    a, b = problem("gmres")
    flat = lambda t: jnp.concatenate([t["x"].ravel(), t["y"][None]])
    tree = lambda v: {"x": v[:-1].reshape(5, 1), "y": v[-1]}
    m = np.linalg.inv(a)

    def loss(b):
        times = lambda a: lambda t: tree(a @ flat(t))
        return jnp.sum(flat(gmres(times(a), tree(b), M=times(m), maxiter=2, **TIGHT)[0]) ** 2)

    found = jit(vmap(grad(loss)))(jnp.stack([b, 2 * b]))
    want = vmap(grad(lambda b: jnp.sum(jnp.linalg.solve(a, b) ** 2)))(jnp.stack([b, 2 * b]))
    close(found, want, 2e-4)


def test_dtypes():
    a, b = problem("cg")
    ints = np.arange(N)
    x, _ = cg(a, ints)
    assert x.dtype == np.float32
    close(x, np.linalg.solve(a, ints), 1e-3)
    x, _ = cg(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), tol=1e-2)
    assert x.dtype == jnp.bfloat16
    x, _ = gmres(a.astype(np.complex64), b)
    assert x.dtype == np.complex64
    with weft.enable_x64(True):
        x, _ = gmres(a.astype(np.float64), b.astype(np.float64), tol=1e-14)
        close(x, np.linalg.solve(a.astype(np.float64), b), 1e-12)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda a, b: cg(a[:3], b), ShapeError,
         r"cg: A must be a function or a square matrix; got f32\[3,6\]"),
        (lambda a, b: cg(a, b, M=b), ShapeError, "M must be a function or a square matrix"),
        (lambda a, b: cg(a, b, x0=np.ones(3)), ShapeError, "x0 must have the shapes of b"),
        (lambda a, b: cg(a, b, x0=[b]), PytreeError, "x0 must have the structure of b"),
        (lambda a, b: cg(lambda x: x[:3], b), ShapeError, r"A\(b\) must have the shapes of b"),
        (lambda a, b: gmres(lambda x: [x], b), PytreeError, r"A\(b\) must have the structure of"),
        (lambda a, b: bicgstab(a, b, tol="small"), TypeError, "bicgstab: .* got "),
        (lambda a, b: gmres(a, b, solve_method="fast"), ValueError, "'batched' or 'incremental'"),
        (lambda a, b: gmres(a, b, restart=0), ValueError, "restart must be at least 1; got 0"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(*problem("cg"))


class Operator:
    """An object with a shape and a product that is not an array."""

    shape = (2, 2)

    def __matmul__(self, x):
        return jnp.array([[2.0, 1.0], [1.0, 3.0]]) @ x


def test_matrix_may_be_any_object_with_a_product():
    for solve in (linalg.cg, linalg.gmres, linalg.bicgstab):
        np.testing.assert_allclose(solve(Operator(), jnp.ones(2))[0], [0.4, 0.2], rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("solve_method", ["batched", "incremental"])
def test_as_many_steps_as_unknowns_are_enough(rng, solve_method, dtype):
    """In exact arithmetic, without a restart: wrong rotations would be mended by one."""
    a = rng.standard_normal((6, 6)) + rng.standard_normal((6, 6)) * (
        1j if dtype != np.float64 else 1
    )
    b = rng.standard_normal(6)
    options = {"restart": 6, "maxiter": 1, "tol": 1e-14, "solve_method": solve_method}
    with weft.enable_x64():
        x, _ = gmres(a.astype(dtype), b.astype(dtype), **options)
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-8)


@pytest.mark.parametrize("name", ["cg", "bicgstab"])
def test_what_has_converged_is_told_at_every_tolerance(name):
    """`info` is 0 if and only if the residual is as small as requested."""
    a = np.diag(np.arange(1.0, 7)) + 0.3
    b = np.ones(6)
    solve = lambda k, tol: getattr(linalg, name)(a, b, tol=tol, maxiter=k)
    with weft.enable_x64(True):
        steps, tols = map(np.ravel, np.meshgrid([1, 2, 3, 4], np.geomspace(1e-3, 0.9, 12)))
        x, info = weft.jit(weft.vmap(solve))(steps, tols)
    rest = np.linalg.norm(b - np.asarray(x) @ a, axis=-1)
    np.testing.assert_array_equal(np.asarray(info) == 0, rest <= tols * np.linalg.norm(b))
