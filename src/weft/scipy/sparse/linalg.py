"""Linear systems whose matrix is a function: `cg`, `bicgstab`, `gmres`.

Vectors are pytrees, within this file flat lists of arrays. Derivatives come from the system itself
(`lax.custom_linear_solve`): they solve another system, and nothing goes through the iterations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft import dtypes
from weft import numpy as jnp
from weft.api.custom_root import custom_linear_solve
from weft.api.grad import linear_transpose
from weft.api.make_jaxpr import eval_shape
from weft.api.while_loop import while_loop
from weft.core.source import boundary
from weft.errors import DtypeError, MissingRule, PytreeError, ShapeError
from weft.lax import linalg
from weft.numpy.promotion import as_array, as_inexact, as_operand, is_arraylike
from weft.primitives.dot import Precision
from weft.primitives.families import check_integer
from weft.pytrees import flatten, unflatten
from weft.util import check_option, list_public, name_function

__all__ = ["bicgstab", "cg", "gmres"]
__dir__ = list_public(__name__)

Vector = list  # of arrays


# --- vectors ----------------------------------------------------------------------------------


def dot(x: Vector, y: Vector) -> Any:
    """The inner product, conjugate-linear in x."""
    return sum(jnp.vdot(a, b, precision=Precision.HIGHEST) for a, b in zip(x, y, strict=True))


def norm_squared(x: Vector) -> Any:
    """The sum of |x|^2, which is real."""
    return jnp.real(dot(x, x))


def add_scaled(x: Vector, step: Any, direction: Vector) -> Vector:
    """x + step * direction."""
    return [a + step.astype(a.dtype) * d for a, d in zip(x, direction, strict=True)]


def subtract(x: Vector, y: Vector) -> Vector:
    """x - y."""
    return [a - b for a, b in zip(x, y, strict=True)]


def select(pred: Any, x: Vector, y: Vector) -> Vector:
    """x where a condition holds, else y."""
    return [jnp.where(pred, a, b) for a, b in zip(x, y, strict=True)]


def divide_safely(a: Any, b: Any) -> Any:
    """a / b, and 0 where b is 0: a step that would be without end is none."""
    return jnp.where(b == 0, 0, a / jnp.where(b == 0, 1, b))


# --- the three iterations: (A, M, b, x, limit, maxiter) -> x, whether it converged, steps -----


def conjugate_gradients(
    A: Callable, M: Callable, b: Vector, x: Vector, limit: Any, maxiter: int
) -> tuple[Vector, Any, Any]:
    """Hestenes and Stiefel, 1952, with a preconditioner."""

    def body(state: tuple) -> tuple:
        x, r, _, gamma, p, k = state
        step = A(p)
        alpha = divide_safely(gamma, jnp.real(dot(p, step)))
        x, r = add_scaled(x, alpha, p), add_scaled(r, -alpha, step)
        z = M(r)
        previous, gamma = gamma, jnp.real(dot(r, z))
        return x, r, norm_squared(r), gamma, add_scaled(z, divide_safely(gamma, previous), p), k + 1

    def more(state: tuple) -> Any:
        _, _, size, gamma, _, k = state
        return (size > limit**2) & (gamma != 0) & (k < maxiter)

    r = subtract(b, A(x))
    z = M(r)
    x, _, size, *_, k = while_loop(more, body, (x, r, norm_squared(r), jnp.real(dot(r, z)), z, 0))
    return x, size <= limit**2, k


def stabilized_gradients(
    A: Callable, M: Callable, b: Vector, x: Vector, limit: Any, maxiter: int
) -> tuple[Vector, Any, Any]:
    """Van der Vorst, "Bi-CGSTAB", 1992, preconditioned from the right.

    Where it would break down it restarts from the current residual.
    """

    def body(state: tuple) -> tuple:
        x, r, shadow, p, v, rho, alpha, omega, k = state
        previous, rho = rho, dot(shadow, r)
        restart_now = (rho == 0) | (omega == 0)
        shadow, rho = select(restart_now, r, shadow), jnp.where(restart_now, dot(r, r), rho)
        beta = jnp.where(restart_now, 0, divide_safely(rho, previous) * divide_safely(alpha, omega))
        p = add_scaled(r, beta, add_scaled(p, -omega, v))
        direction = M(p)
        v = A(direction)
        alpha = divide_safely(rho, dot(shadow, v))
        x, r = add_scaled(x, alpha, direction), add_scaled(r, -alpha, v)
        direction = M(r)
        t = A(direction)
        omega = divide_safely(dot(t, r), dot(t, t))
        omega = jnp.where(norm_squared(r) <= limit**2, 0, omega)  # half a step was enough
        x, r = add_scaled(x, omega, direction), add_scaled(r, -omega, t)
        return x, r, shadow, p, v, rho, alpha, omega, k + 1

    def more(state: tuple) -> Any:
        return (norm_squared(state[1]) > limit**2) & (state[-1] < maxiter)

    r = subtract(b, A(x))
    one = jnp.ones_like(dot(r, r))
    x, r, *_, k = while_loop(more, body, (x, r, r, r, r, one, one, 0 * one, 0))
    return x, norm_squared(r) <= limit**2, k


def minimal_residuals(
    A: Callable,
    M: Callable,
    b: Vector,
    x: Vector,
    limit: Any,
    maxiter: int,
    restart: int,
    early: bool,
) -> tuple[Vector, Any, Any]:
    """Saad and Schultz, "GMRES", 1986, preconditioned from the right, restarted.

    With `early` a cycle ends as soon as the residual is small enough.
    """

    def body(state: tuple) -> tuple:
        x, r, norm, k = state
        x = krylov_step(A, M, x, r, norm, limit if early else None, restart)
        r = subtract(b, A(x))
        return x, r, jnp.sqrt(norm_squared(r)), k + 1

    r = subtract(b, A(x))
    more = lambda state: (state[2] > limit) & (state[3] < maxiter)
    x, _, norm, k = while_loop(more, body, (x, r, jnp.sqrt(norm_squared(r)), 0))
    return x, norm <= limit, k


def krylov_step(
    A: Callable, M: Callable, x: Vector, r: Vector, norm: Any, limit: Any, restart: int
) -> Vector:
    """x moved within a Krylov space to where the residual is least.

    Arnoldi's method gives a basis of the space and A in it, a Hessenberg matrix, whose QR
    decomposition grows by a rotation a step: Q (its adjoint, here) and R.
    """
    kind = dot(r, r).dtype
    basis = [
        jnp.zeros((restart + 1, *a.shape), a.dtype).at[0].set(a / norm.astype(a.dtype)) for a in r
    ]

    def body(state: tuple) -> tuple:
        basis, Q, R, _, k = state
        w, h = orthogonalize(A(M([v[k] for v in basis])), basis, k)
        column = jnp.matmul(Q, h, precision=Precision.HIGHEST)
        a, d = column[k], column[k + 1]
        size = jnp.sqrt(jnp.real(a * jnp.conj(a) + d * jnp.conj(d))).astype(kind)
        c, s = jnp.where(size == 0, 1, divide_safely(a, size)), divide_safely(d, size)
        upper = jnp.conj(c) * Q[k] + jnp.conj(s) * Q[k + 1]
        Q = Q.at[k].set(upper).at[k + 1].set(c * Q[k + 1] - s * Q[k])
        # where A leaves nothing of a direction, an infinite entry keeps the solution out of it
        column = column.at[k].set(jnp.where(size == 0, jnp.inf, size)).at[k + 1].set(0)
        basis = [v.at[k + 1].set(a) for v, a in zip(basis, w, strict=True)]
        return basis, Q, R.at[:, k].set(column), jnp.abs(Q[k + 1, 0]) * norm, k + 1

    def more(state: tuple) -> Any:
        within = state[-1] < restart
        return within if limit is None else within & (state[3] > limit)

    Q, R = jnp.eye(restart + 1, dtype=kind), jnp.eye(restart + 1, restart, dtype=kind)
    basis, Q, R, _, k = while_loop(more, body, (basis, Q, R, norm, 0))
    goal = jnp.where(jnp.arange(restart) < k, Q[:restart, 0] * norm.astype(kind), 0)
    y = linalg.triangular_solve(R[:restart], goal[:, None], left_side=True)[:, 0]
    moves = [contract(y.astype(v.dtype), v[:restart], 1) for v in basis]
    return [a + d for a, d in zip(x, M(moves), strict=True)]


def contract(x: Any, y: Any, axes: int) -> Any:
    """The sum of products over the last axes of x and the first of y, with full precision."""
    return jnp.tensordot(x, y, axes=axes, precision=Precision.HIGHEST)


def orthogonalize(w: Vector, basis: Vector, k: Any) -> tuple[Vector, Any]:
    """Return w orthogonalized against a basis and normalized, and its components.

    Component k + 1 is the norm. Orthogonalizing twice is enough (Giraud et al., 2005). A remainder
    of the size of rounding errors counts as 0.
    """
    before, h = jnp.sqrt(norm_squared(w)), 0
    for _ in range(2):
        parts = [contract(jnp.conj(v), a, a.ndim) for v, a in zip(basis, w, strict=True)]
        part = sum(parts)
        w = [a - contract(part.astype(a.dtype), v, 1) for a, v in zip(w, basis, strict=True)]
        h = h + part
    norm = jnp.sqrt(norm_squared(w))
    norm = jnp.where(norm <= jnp.finfo(norm.dtype).eps * before, 0, norm)
    return [divide_safely(a, norm.astype(a.dtype)) for a in w], h.at[k + 1].set(
        norm.astype(h.dtype)
    )


# --- systems ----------------------------------------------------------------------------------


def as_function(op: str, name: str, A: Any) -> Callable:
    """A linear map that is a function, a matrix, an object with `@`, or None for the identity."""
    if A is None:
        return lambda x: x
    if callable(A):
        return A
    if hasattr(A, "__matmul__") and not is_arraylike(A):
        return lambda x: A @ x
    matrix = as_array(A, op)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ShapeError(f"{op}: {name} must be a function or a square matrix; got {matrix.aval}.")
    return functools.partial(jnp.matmul, matrix, precision=Precision.HIGHEST)


def transpose_preconditioner(M: Callable, b: Any) -> Callable:
    """The transpose of M, a linear function of pytrees like b.

    An inner iteration has no transpose, and serves unchanged: a preconditioner decides how soon a
    system is solved, not for what.
    """

    def transposed(y: Any) -> Any:
        try:
            return linear_transpose(M, b)(y)[0]
        except (MissingRule, TypeError):
            return M(y)

    return transposed


def check_structure(op: str, what: str, tree: Any, x: Any, b: Any) -> None:
    """Raise unless a pytree has the structure and the shapes of the right-hand side."""
    leaves, x_tree = flatten(x)
    if x_tree != tree:
        raise PytreeError(f"{op}: {what} must have the structure of b, {tree}; got {x_tree}.")
    for got, want in zip(leaves, b, strict=True):
        if got.shape != want.shape:
            raise ShapeError(
                f"{op}: {what} must have the shapes of b; got {got.shape} where b has {want.aval}."
            )


def prepare_system(
    op: str, A: Any, b: Any, x0: Any, M: Any
) -> tuple[Callable, list, list, Any, Callable]:
    """A and b of one dtype, the first guess, the structure and the preconditioner.

    The guess is a list of leaves, and so is b.
    """
    matvec = as_function(op, "A", A)
    leaves, tree = flatten(b)
    leaves = [as_inexact(op, x) for x in leaves]
    product = eval_shape(matvec, unflatten(tree, leaves))
    check_structure(op, "A(b)", tree, product, leaves)
    leaves = [
        x.astype(jnp.promote_types(x.dtype, y.dtype))
        for x, y in zip(leaves, flatten(product)[0], strict=True)
    ]
    if x0 is None:
        start = [jnp.zeros_like(x) for x in leaves]
    else:
        guess, guess_tree = flatten(x0)
        guess = [as_array(x, op) for x in guess]
        check_structure(op, "x0", tree, unflatten(guess_tree, guess), leaves)
        for x, y in zip(guess, leaves, strict=True):
            if dtypes.is_complex(x.dtype) and not dtypes.is_complex(y.dtype):
                raise DtypeError(f"{op}: x0 must be real as b is; got {x.aval}, {y.aval}.")
        start = [x.astype(y.dtype) for x, y in zip(guess, leaves, strict=True)]
    return matvec, leaves, start, tree, as_function(op, "M", M)


def solve_system(
    op: str, iterate: Callable, args: tuple, tol: Any, atol: Any, maxiter: Any, hermitian: bool
) -> tuple[Any, Any]:
    """The solution of a system by an iteration; and 0, or the steps where it did not converge."""
    matvec, b, start, tree, M = prepare_system(op, *args)
    tol, atol = as_array(tol, op), as_array(atol, op)
    maxiter = 10 * sum(x.size for x in b) if maxiter is None else as_operand(op, maxiter)

    def solver(M: Callable, x: list) -> Callable:
        flat = lambda f: lambda xs: flatten(f(unflatten(tree, xs)))[0]

        def solve(A: Callable, rhs: Any) -> tuple[Any, Any]:
            rhs = flatten(rhs)[0]
            limit = jnp.maximum(tol * jnp.sqrt(norm_squared(rhs)), atol)
            out, converged, steps = iterate(flat(A), flat(M), rhs, x, limit, maxiter)
            return unflatten(tree, out), jnp.where(converged, 0, jnp.maximum(steps, 1))

        return solve

    symmetric = hermitian and not any(dtypes.is_complex(x.dtype) for x in b)
    transposed = M if symmetric else transpose_preconditioner(M, unflatten(tree, b))
    return custom_linear_solve(
        matvec,
        unflatten(tree, b),
        solver(M, start),
        solver(transposed, [jnp.zeros_like(x) for x in start]),
        symmetric=symmetric,
        has_aux=True,
    )


def define_solver(name: str, iterate: Callable, hermitian: bool, doc: str) -> Callable:
    """`cg` or `bicgstab`."""

    def solver(
        A: Any,
        b: Any,
        x0: Any = None,
        *,
        tol: Any = 1e-5,
        atol: Any = 0.0,
        maxiter: int | None = None,
        M: Any = None,
    ) -> tuple[Any, Any]:
        return solve_system(name, iterate, (A, b, x0, M), tol, atol, maxiter, hermitian)

    return boundary(name_function(solver, name, doc))


cg = define_solver(
    "cg",
    conjugate_gradients,
    True,
    """Solve A x = b by conjugate gradients, for Hermitian positive definite A.

    It can be differentiated in b and in the values that A depends on. The derivative comes from
    another solve and does not go through the iterations, so it is as exact as the solutions are.

    Args:
      A: a linear function of a pytree like b; or a matrix.
      b: the right-hand side, a pytree of arrays: all of them together are one vector.
      x0: the first guess, like b. None, the default, is zeros.
      tol, atol: stop when norm(b - A x) <= max(tol * norm(b), atol). The defaults are 1e-5 and 0.
      maxiter: the largest number of steps. None, the default, is ten times the number of elements.
      M: a preconditioner, close to the inverse of A; a function or a matrix. None is the identity.
        The solution does not depend on it, and has no derivative in what M closes over.

    Returns:
      A pair (x, info). x is like b. `info` is 0, or the number of steps, at least 1, if it did not
      converge.

    >>> x, info = cg(jnp.array([[4.0, 1.0], [1.0, 3.0]]), jnp.array([6.0, 7.0]))
    >>> print(x.round(4), info)
    [1. 2.] 0
    """,
)
bicgstab = define_solver(
    "bicgstab",
    stabilized_gradients,
    False,
    """Solve A x = b by the stabilized biconjugate gradient method, for any regular A.

    Derivatives are those of the solution and come from another solve, so they do not go through the
    iterations. Reverse mode solves with the transpose of A, preconditioned by the transpose of M.

    Args:
      A: a linear function of a pytree like b; or a matrix.
      b: the right-hand side, a pytree of arrays: all of them together are one vector.
      x0: the first guess, like b. None, the default, is zeros.
      tol, atol: stop when norm(b - A x) <= max(tol * norm(b), atol). The defaults are 1e-5 and 0.
      maxiter: the largest number of steps. None, the default, is ten times the number of elements.
      M: a preconditioner, close to the inverse of A; a function or a matrix. None is the identity.
        The solution does not depend on it, and has no derivative in what M closes over.

    Returns:
      A pair (x, info). x is like b. `info` is 0, or the number of steps if it did not converge.

    >>> x, info = bicgstab(jnp.array([[4.0, 1.0], [-2.0, 3.0]]), jnp.array([6.0, 4.0]))
    >>> print(x.round(4), info)
    [1. 2.] 0
    """,
)


@boundary
def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-5,
    atol: Any = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, Any]:
    """Solve A x = b by the generalized minimal residual method, for any regular A.

    Derivatives are the solution's, by implicit differentiation, and not the iterations'.

    Args:
      A: a linear function of arrays or pytrees, or a matrix.
      b: the right-hand side, an array or a pytree of arrays.
      x0: the first guess, like b. None, the default, is 0.
      tol: the residual that is small enough, relative to the norm of b. The default is 1e-5.
      atol: the residual that is small enough, absolute. The default is 0.
      restart: the number of directions in a cycle. It bounds the memory. The default is 20.
      maxiter: the largest number of cycles. None is 10 times the size of b.
      M: an approximate inverse of A, in the forms of A. None, the default, is the identity.
      solve_method: "incremental" ends a cycle as soon as the residual is small enough. "batched",
        the default, completes each cycle, without a decision at every direction.

    Returns:
      A pair (x, info). x is like b. `info` is as that of `cg`.

    >>> x, info = gmres(jnp.array([[4.0, 1.0], [-2.0, 3.0]]), jnp.array([6.0, 4.0]))
    >>> print(x.round(4), info)
    [1. 2.] 0
    """
    check_option("gmres", "solve_method", solve_method, "batched", "incremental")
    check_integer("gmres", "restart", restart, 1)
    size = sum(as_array(x, "gmres").size for x in flatten(b)[0])
    iterate = functools.partial(
        minimal_residuals, restart=min(restart, size), early=solve_method == "incremental"
    )
    return solve_system("gmres", iterate, (A, b, x0, M), tol, atol, maxiter, False)
