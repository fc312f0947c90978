"""Functions of matrices: exponentials, roots and general ones, polar factors, Sylvester equations.

Those of triangular matrices are built column by column, each by one triangular system.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft import dtypes, lax
from weft import numpy as jnp
from weft.api.custom_rules import custom_jvp
from weft.api.functions import check_callable
from weft.api.grad import jvp
from weft.errors import ShapeError
from weft.numpy.promotion import as_array, as_inexact, promote_operands
from weft.numpy.systems import broadcast_batches, check_matrices, find_epsilon, solve_matrices
from weft.primitives.eigen import eig, schur, svd
from weft.primitives.families import as_number, check_integer
from weft.primitives.linalg import triangular_solve
from weft.primitives.matrices import (
    adjoint,
    check_matrix,
    identity_like,
    product,
    swap,
    to_column,
    upper_part,
)
from weft.run.operation import operation
from weft.scipy.linalg.matrices import choose_entries
from weft.util import check_option
from weft.xla.typing import Array, ArrayLike

# --- the exponential ------------------------------------------------------------------------

# For each precision: the coefficients of the numerator of Pade's approximation of exp, and the
# 1-norm up to which its error is below the rounding error. Source: Higham, "The scaling and
# squaring method for the matrix exponential revisited" (2005), table 2.3.
PADE = {
    32: ((17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1), 3.925724783138660),
    64: (
        (
            64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800,
            129060195264000, 10559470521600, 670442572800, 33522128640, 1323241920, 40840800,
            960960, 16380, 182, 1,
        ),
        5.371920351148152,
    ),
}  # fmt: skip


@operation(static=("upper_triangular", "max_squarings"))
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Compute the exponential of matrices: I + A + A @ A / 2 + ...

    It solves linear differential equations: the solution of x' = A x at time t is expm(t A) @ x(0).
    The algorithm is Pade's approximation with scaling and squaring. Source: Higham (2005), Al-Mohy
    and Higham (2009).

    Args:
      A: square matrices, an array (..., n, n).
      upper_triangular: True promises that A is upper triangular, which saves time. By default
        False. Static under `jit`.
      max_squarings: the largest number of squarings, an integer. By default 16, which suffices up
        to a 1-norm of about 2**17, and beyond it if powers of A grow less than those of its norm.
        Static under `jit`.

    Returns:
      An array (..., n, n). It has the dtype of A; integers become the default float. A matrix that
      needs more squarings gives NaN.

    Raises:
      ShapeError: A does not hold square matrices, or `max_squarings` is negative.
      TypeError: `max_squarings` is not an integer.

    >>> from weft.scipy.linalg import expm
    >>> print(expm(jnp.zeros((2, 2))))
    [[1. 0.]
     [0. 1.]]
    >>> rotation = expm(jnp.array([[0.0, -1.0], [1.0, 0.0]]) * jnp.pi / 2)
    >>> bool(jnp.allclose(rotation, jnp.array([[0.0, -1.0], [1.0, 0.0]]), atol=1e-5))
    True
    """
    a = check_matrices("expm", A, square=True)
    max_squarings = check_integer("expm", "max_squarings", max_squarings, 0)
    if not a.size:
        return a
    coefficients, limit = PADE[dtypes.itemsize_bits(dtypes.real_dtype(a.dtype))]
    count = jnp.maximum(jnp.ceil(jnp.log2(bound_powers(a) / limit)), 0)
    scaled = a / jnp.exp2(count).astype(a.dtype)[..., None, None]
    even, odd = evaluate_pade(scaled, coefficients)
    if upper_triangular:
        x = triangular_solve(even - odd, even + odd, left_side=True)
    else:
        x = solve_matrices(even - odd, even + odd)
    x = square_repeatedly(x, count, max_squarings)
    return jnp.where((count <= max_squarings)[..., None, None], x, math.nan)


def bound_powers(a: Any) -> Any:
    """Return t so that the 1-norm of a^k is at most t^k for each k >= 12.

    The error of Pade's approximation is a series of such powers. For a matrix that is far from
    normal, such as [[1, 1e6], [0, -1]], t is much less than the norm. Every k >= 12 is a sum of
    fours and fives, so that norms of the fourth and the fifth power of abs(a) are enough. With
    abs(a) no terms cancel, so that t bounds the rounding errors of the powers as well. Source:
    Al-Mohy and Higham, "A new scaling and squaring algorithm for the matrix exponential" (2009).
    """
    size = lax.stop_gradient(jnp.abs(a))
    norm = sums = jnp.sum(size, -2)
    roots = []
    for k in range(2, 6):
        sums = jnp.sum(sums[..., :, None] * size, -2)
        if k >= 4:
            roots.append(jnp.max(sums, -1) ** (1 / k))
    # The powers of a large matrix overflow, also to NaN by inf * 0: the norm is a bound as well.
    return jnp.fmin(jnp.max(norm, -1), jnp.maximum(*roots))


def evaluate_pade(a: Any, coefficients: tuple) -> tuple[Any, Any]:
    """The even and the odd part of the polynomial with these coefficients."""
    square, power = product(a, a), identity_like(a)
    even, odd = coefficients[0] * power, coefficients[1] * power
    for i in range(2, len(coefficients), 2):
        power = square if i == 2 else product(power, square)
        even = even + coefficients[i] * power
        odd = odd + coefficients[i + 1] * power
    return even, product(a, odd)


def square_repeatedly(x: Any, count: Any, most: int) -> Any:
    """Square each matrix of x its own number of times, `count`."""
    last = jnp.max(count)

    def step(x: Any, i: Any) -> tuple[Any, None]:
        again = lambda x: jnp.where((i < count)[..., None, None], product(x, x), x)
        return lax.cond(i < last, again, lambda x: x, x), None

    return lax.scan(step, x, jnp.arange(most, dtype=count.dtype))[0]


@operation(static=("method", "compute_expm"))
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Any:
    """Compute the exponential of a matrix and its derivative in a direction.

    The derivative is the limit of (expm(A + h E) - expm(A)) / h for small h. `jvp` of `expm`
    computes the same.

    Args:
      A: a square matrix or several, an array (..., n, n).
      E: the direction, an array of the shape of A.
      method: not used; it is there for programs that were written for SciPy. Static under `jit`.
      compute_expm: if False, return the derivative only. By default True. Static under `jit`.

    Returns:
      A pair: expm(A) and the derivative, arrays (..., n, n) of the promoted float dtype. With
      `compute_expm=False` the derivative only.

    Raises:
      ShapeError: the matrices are not square, or A and E differ in shape.

    >>> from weft.scipy.linalg import expm_frechet
    >>> value, derivative = expm_frechet(jnp.zeros((2, 2)), jnp.eye(2))
    >>> print(derivative)
    [[1. 0.]
     [0. 1.]]
    """
    a, e = promote_operands(
        "expm_frechet",
        as_array(A, "expm_frechet"),
        as_array(E, "expm_frechet"),
        inexact=True,
        shaped=False,
    )
    for x in (a, e):
        check_matrix("expm_frechet", x.aval, square=True)
    if a.shape != e.shape:
        raise ShapeError(f"expm_frechet: A and E must be of one shape; got {a.aval}, {e.aval}.")
    out, dot = jvp(expm, (a,), (e,))
    return (out, dot) if compute_expm else dot


# --- by Schur forms -------------------------------------------------------------------------


def complex_matrices(op: str, a: Any) -> Any:
    """An operand as an array of complex square matrices."""
    x = as_inexact(op, a)
    return check_matrices(op, x.astype(dtypes.complex_dtype(x.dtype)), square=True)


def complex_schur(a: Any) -> tuple[Any, Any]:
    """The complex Schur form (T, Z) of a = Z T Z^H."""
    t, z = schur(a.astype(dtypes.complex_dtype(a.dtype)))
    return t, z


def replace_columns(n: int, x: Any, column: Callable) -> Any:
    """Matrices x (..., n, n) with column j replaced by column(j, x), for one j after the other."""

    def step(j: Any, x: Any) -> Any:
        return choose_entries(jnp.arange(n) == j, column(j, x), x)

    return lax.fori_loop(0, n, step, x)


def embed_corner(x: Any, j: Any) -> Any:
    """x, but beyond its first j rows and columns the identity."""
    inside = jnp.arange(x.shape[-1]) < j
    return choose_entries(inside[:, None] & inside[None], x, identity_like(x))


def take_column(x: Any, j: Any) -> Any:
    """Column j, as a matrix."""
    at = (jnp.arange(x.shape[-1]) == j).astype(x.dtype)
    return to_column(jnp.sum(x * lax.broadcast_to_rank(at, x.ndim), -1))


def keep_above(x: Any, j: Any) -> Any:
    """Columns with zeros from row j on."""
    return choose_entries((jnp.arange(x.shape[-2]) < j)[:, None], x, 0)


def take_entry(x: Any, j: Any) -> Any:
    """Row j of columns."""
    at = (jnp.arange(x.shape[-2]) == j)[:, None]
    return jnp.sum(choose_entries(at, x, 0), -2, keepdims=True)


@operation(static=("blocksize",))
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """Compute the principal square roots of matrices: S @ S is A, up to rounding.

    The eigenvalues of the principal root have a nonnegative real part. Source: Bjorck and
    Hammarling, A Schur method for the square root of a matrix (1983).

    Args:
      A: square matrices, an array (..., n, n).
      blocksize: not used; it is there for programs that were written for SciPy. Static under `jit`.

    Returns:
      A complex array (..., n, n). It holds NaN or inf where no root is found, as for some singular
      matrices.

    Raises:
      ShapeError: A does not hold square matrices.

    >>> from weft.scipy.linalg import sqrtm
    >>> print(sqrtm(jnp.array([[4., 0.], [0., 9.]])).real)
    [[2. 0.]
     [0. 3.]]
    """
    return principal_root(complex_matrices("sqrtm", A))


@custom_jvp
def principal_root(a: Any) -> Any:
    """The principal square roots of complex matrices."""
    t, z = complex_schur(a)

    def column(j: Any, x: Any) -> Any:
        """(X + r I) y = t above the diagonal, where r is the root of T's element on it."""
        right = take_column(t, j)
        r = jnp.sqrt(take_entry(right, j))
        left = embed_corner(x + r * identity_like(x), j)
        y = solve_singular_rows(left, keep_above(right, j))
        return choose_entries((jnp.arange(t.shape[-1]) == j)[:, None], r, y)

    return product(z, replace_columns(t.shape[-1], jnp.zeros_like(t), column), adjoint(z))


def solve_singular_rows(a: Any, b: Any) -> Any:
    """Solve a y = b for triangular matrices, whose rows may have 0 on the diagonal.

    Such a row is a sum of two roots that are 0. Its y is 0 if the others fulfil the row, as they do
    where A is a matrix of zeros; it is NaN if not, and A has no root.
    """
    n = a.shape[-1]
    empty = jnp.diagonal(a, axis1=-2, axis2=-1)[..., None] == 0
    y = triangular_solve(
        jnp.where(empty, identity_like(a), a), jnp.where(empty, 0, b), left_side=True
    )
    size = jnp.max(jnp.abs(b), -2, keepdims=True) + jnp.max(jnp.abs(y), -2, keepdims=True)
    near = n * dtypes.finfo(a.dtype).eps * size
    return jnp.where(empty & (jnp.abs(product(a, y) - b) > near), jnp.nan, y)


@principal_root.defjvp
def principal_root_tangent(primals: tuple, tangents: tuple) -> tuple:
    """X dX + dX X = dA."""
    x = principal_root(*primals)
    return x, solve_sylvester_arrays(x, x, tangents[0], "schur", 0.0)


def funm(A: ArrayLike, func: Callable, disp: bool = True) -> Array:
    """Apply a function of complex numbers to a square matrix.

    For a matrix with eigenvectors V and eigenvalues w it is V @ diag(func(w)) @ inv(V). It is
    computed from the Schur form by Parlett's recurrence, which loses digits where eigenvalues are
    close to each other. Where they are equal and the matrix is not diagonalizable, the result is
    wrong above the diagonal of the Schur form, as SciPy's is: such elements are derivatives of
    `func`. `expm` and `sqrtm` are right there. Source: Golub and Van Loan, Matrix Computations,
    algorithm 9.1.1.

    Args:
      A: one square matrix, an array (n, n).
      func: the function; it is called with a complex vector (n,) and returns a vector (n,).
      disp: if False, return an estimate of the relative error as well. By default True.

    Returns:
      A complex array (n, n). With `disp=False` a pair: this array and the estimate, a real scalar,
      which is large where eigenvalues are close to each other.

    Raises:
      ShapeError: A is not one square matrix. Use `vmap` for several.
      TypeError: `func` is not a function.

    >>> from weft.scipy.linalg import funm
    >>> print(funm(jnp.array([[4., 0.], [0., 9.]]), jnp.sqrt).real)
    [[2. 0.]
     [0. 3.]]
    """
    a = check_matrices("funm", A, square=True)
    if a.ndim != 2:
        raise ShapeError(f"funm: A must be one square matrix; got {a.aval}. Hint: weft.vmap.")
    check_callable("funm", func)
    t, z = complex_schur(a)
    f = evaluate_parlett(t, z, as_array(func(jnp.diagonal(t)), "funm").astype(t.dtype))
    return f if disp else (f, estimate_error(f, t))


@operation
def evaluate_parlett(t: Any, z: Any, values: Any) -> Any:
    """Z F Z^H, where F commutes with triangular T (n, n) and has these values on its diagonal."""
    n = t.shape[0]
    eigenvalues = jnp.diagonal(t)

    def column(j: Any, f: Any) -> Any:
        """(T - t I) y = F t - f t above the diagonal, for f in F where t is in T."""
        right = take_column(t, j)
        value = take_entry(to_column(values), j)
        gap = eigenvalues - take_entry(right, j)[0]
        left = embed_corner(
            upper_part(t, 1) + jnp.diag(jnp.where(gap == 0, find_epsilon(t), gap)), j
        )
        right = keep_above(right, j)
        y = triangular_solve(left, keep_above(product(f, right) - value * right, j), left_side=True)
        return choose_entries((jnp.arange(n) == j)[:, None], value, y)

    return product(z, replace_columns(n, jnp.zeros_like(t), column), adjoint(z))


@operation
def estimate_error(f: Any, t: Any) -> Any:
    """Return the error of Parlett's recurrence: it grows as the least gap shrinks."""
    w, eps = jnp.diagonal(t), find_epsilon(t)
    gaps = jnp.abs(w[:, None] - w[None]) + jnp.where(jnp.eye(len(w), dtype=bool), math.inf, 0)
    least = jnp.min(gaps, initial=1)
    size = jnp.linalg.norm(jnp.triu(t, 1), 1)
    estimate = jnp.clip(jnp.where(least == 0, eps, eps / least) * size, eps, None)
    bad = jnp.any(~jnp.isfinite(f))
    return jnp.where(bad, math.inf, jnp.minimum(1, estimate))


@operation(static=("method", "tol"))
def solve_sylvester(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8
) -> Array:
    """Solve the Sylvester equation A X + X B = C for X.

    It arises in control theory and in the derivatives of matrix functions. Leading axes of the
    operands broadcast. Source: Bartels and Stewart (1972).

    Args:
      A: square matrices, an array (..., m, m).
      B: square matrices, an array (..., n, n).
      C: matrices, an array (..., m, n).
      method: "schur", the default, or "eigen", which is faster, but less accurate where
        eigenvectors are far from orthogonal. Static under `jit`.
      tol: the equation counts as singular where the sum of an eigenvalue of A and one of B is not
        greater in size. By default 1e-8. Static under `jit`.

    Returns:
      An array (..., m, n) of the promoted float or complex dtype; NaN where the equation is
      singular.

    Raises:
      ShapeError: A or B are not square, or C does not fit them.
      ValueError: `method` is another name.

    >>> from weft.scipy.linalg import solve_sylvester
    >>> a, b = jnp.array([[1.0, 2.0], [0.0, 3.0]]), jnp.eye(2)
    >>> x = solve_sylvester(a, b, jnp.ones((2, 2)))
    >>> bool(jnp.allclose(a @ x + x @ b, 1.0, atol=1e-5))
    True
    """
    op = "solve_sylvester"
    a, b, c = promote_operands(
        op,
        as_array(A, "solve_sylvester"),
        as_array(B, "solve_sylvester"),
        as_array(C, "solve_sylvester"),
        inexact=True,
        shaped=False,
    )
    check_option(op, "method", method, "schur", "eigen")
    for x in (a, b):
        check_matrix(op, x.aval, square=True)
    if c.ndim < 2 or c.shape[-2:] != (a.shape[-1], b.shape[-1]):
        raise ShapeError(
            f"{op}: operands must be of shapes (..., m, m), (..., n, n) and (..., m, n); "
            f"got {a.aval}, {b.aval}, {c.aval}."
        )
    return solve_sylvester_arrays(
        *broadcast_batches(op, a, b, c), method, as_number(op, "tol", tol)
    )


def solve_sylvester_arrays(a: Any, b: Any, c: Any, method: str, tol: float) -> Any:
    """`solve_sylvester` of arrays, with the derivative of the equation."""
    way = solve_by_schur if method == "schur" else solve_by_eigenvectors
    return lax.custom_linear_solve(
        lambda x: product(a, x) + product(x, b),
        c,
        lambda _, c: way(a, b, c, tol),
        lambda _, c: way(swap(a), swap(b), c, tol),
    )


def solve_by_schur(a: Any, b: Any, c: Any, tol: float) -> Any:
    """Solve A X + X B = C by Schur forms: (R + s I) y = f - Y s, column by column."""
    (r, u), (s, v) = complex_schur(a), complex_schur(b)
    f = product(adjoint(u), c.astype(u.dtype), v)
    n = s.shape[-1]

    def step(j: Any, y: Any) -> Any:
        right = take_column(s, j)
        left = r + take_entry(right, j) * identity_like(r)
        new = take_column(f, j) - product(y, keep_above(right, j))
        new = triangular_solve(left, new, left_side=True)
        return choose_entries(jnp.arange(n) == j, new, y)

    y = lax.fori_loop(0, n, step, jnp.zeros_like(f))
    x = product(u, y, adjoint(v))
    sums = jnp.diagonal(r, 0, -2, -1)[..., :, None] + jnp.diagonal(s, 0, -2, -1)[..., None, :]
    return mark_singular(x, sums, tol, c.dtype)


def solve_by_eigenvectors(a: Any, b: Any, c: Any, tol: float) -> Any:
    """Solve A X + X B = C in coordinates that make A and B diagonal."""
    (w, u), (z, v) = (eig(x, compute_left_eigenvectors=False) for x in (a, b))
    sums = w[..., :, None] + z[..., None, :]
    inner = product(solve_matrices(u, c.astype(u.dtype)), v) / sums
    x = product(u, swap(solve_matrices(swap(v), swap(inner))))
    return mark_singular(x, sums, tol, c.dtype)


def mark_singular(x: Any, sums: Any, tol: float, dtype: Any) -> Any:
    """x in the dtype of the equation, NaN where a sum of eigenvalues is too small."""
    x = x if dtypes.is_complex(dtype) else jnp.real(x)
    least = jnp.min(jnp.abs(sums), (-2, -1), keepdims=True, initial=math.inf)
    return jnp.where(least > tol, x, math.nan)


@operation(static=("check_finite",))
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Convert a real Schur form to the complex Schur form.

    A rotation makes each 2 x 2 block on the diagonal triangular. The product Z @ T @ Z^H does not
    change. Source: Golub and Van Loan, Matrix Computations, section 7.4.

    Args:
      T: the real Schur form, an array (..., n, n).
      Z: its orthogonal factor, an array (..., n, n).
      check_finite: not used; it is there for programs that were written for SciPy. Static under
        `jit`.

    Returns:
      A pair of complex arrays (..., n, n): the upper triangular T and the unitary Z.

    Raises:
      ShapeError: the matrices are not square, or T and Z differ in size.

    >>> from weft.scipy.linalg import rsf2csf, schur
    >>> t, z = rsf2csf(*schur(jnp.array([[0.0, -1.0], [1.0, 0.0]])))
    >>> bool(jnp.allclose(t[1, 0], 0, atol=1e-6))
    True
    """
    t, z = promote_operands(
        "rsf2csf", as_array(T, "rsf2csf"), as_array(Z, "rsf2csf"), inexact=True, shaped=False
    )
    for x in (t, z):
        check_matrix("rsf2csf", x.aval, square=True)
    if t.shape[-1] != z.shape[-1]:
        raise ShapeError(f"rsf2csf: T and Z must be of one size; got {t.aval}, {z.aval}.")
    kind = dtypes.complex_dtype(t.dtype)
    t, z = (x.astype(kind) for x in broadcast_batches("rsf2csf", t, z))
    if t.shape[-1] < 2 or not t.size:
        return t, z
    return jnp.vectorize(rotate_blocks, signature="(n,n),(n,n)->(n,n),(n,n)")(t, z)


def rotate_blocks(t: Any, z: Any) -> tuple[Any, Any]:
    """`rsf2csf` of one matrix."""
    n, eps = t.shape[0], find_epsilon(t)

    def step(i: Any, state: tuple) -> tuple:
        t, z = state
        m = n - 1 - i
        pair = jnp.stack([m - 1, m])
        (a, b), (c, d) = t[pair][:, pair]
        middle = (a + d) / 2
        shift = middle + jnp.sqrt(((a - d) / 2) ** 2 + b * c) - d
        length = jnp.sqrt(jnp.abs(shift) ** 2 + jnp.abs(c) ** 2)
        turns = jnp.abs(c) > eps * (jnp.abs(a) + jnp.abs(d))
        length = jnp.where(turns, length, 1)
        length = length.astype(shift.dtype)
        cosine, sine = jnp.where(turns, shift / length, 1), jnp.where(turns, c / length, 0)
        g = jnp.array([[jnp.conj(cosine), jnp.conj(sine)], [-sine, cosine]])
        t = t.at[pair].set(product(g, t[pair]))
        t = t.at[:, pair].set(product(t[:, pair], adjoint(g)))
        return t.at[m, m - 1].set(0), z.at[:, pair].set(product(z[:, pair], adjoint(g)))

    t, z = lax.fori_loop(0, n - 1, step, (t, z))
    return jnp.triu(t), z


# --- the polar decomposition ----------------------------------------------------------------


@operation(static=("side", "method", "eps", "max_iterations"))
def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """Compute the polar decomposition of matrices: a = U P, a rotation and a stretch.

    U has orthonormal columns, or orthonormal rows if m < n; among such matrices it is the closest
    to a. P is positive semidefinite.

    Args:
      a: matrices, an array (..., m, n).
      side: "right", the default, for a = U P with P of shape (..., n, n); "left" for a = P U with P
        of shape (..., m, m). Static under `jit`.
      method: "qdwh" or "svd"; singular values are used for both. Static under `jit`.
      eps: not used; it is there for programs that were written for JAX. Static under `jit`.
      max_iterations: not used, likewise. Static under `jit`.

    Returns:
      A pair: U (..., m, n) and P. They have the dtype of a; integers become the default float.

    Raises:
      ShapeError: a has fewer than two axes.
      ValueError: `side` or `method` is another name.

    >>> from weft.scipy.linalg import polar
    >>> u, p = polar(jnp.array([[0., -2.], [3., 0.]]))
    >>> print(jnp.round(u), jnp.round(p))
    [[ 0. -1.]
     [ 1.  0.]] [[3. 0.]
     [0. 2.]]
    """
    x = check_matrices("polar", a)
    check_option("polar", "side", side, "right", "left")
    check_option("polar", "method", method, "qdwh", "svd")
    u = unitary_factor(x) if x.shape[-2] >= x.shape[-1] else adjoint(unitary_factor(adjoint(x)))
    p = product(adjoint(u), x) if side == "right" else product(x, adjoint(u))
    return u, (p + adjoint(p)) / 2


@custom_jvp
def unitary_factor(a: Any) -> Any:
    """U of a = U P, for a (..., m, n) with m >= n."""
    u, _, vh = svd(a, full_matrices=False)
    return product(u, vh)


@unitary_factor.defjvp
def unitary_factor_tangent(primals: tuple, tangents: tuple) -> tuple:
    """Use that with P = diag(s), U^H dU is (M - M^H) / (s[i] + s[j]) for M = U^H da."""
    (a,), (t,) = primals, tangents
    u, s, vh = svd(a, full_matrices=False)
    moved = product(t, adjoint(vh))
    inner = product(adjoint(u), moved)
    turn = (inner - adjoint(inner)) / (s[..., :, None] + s[..., None, :])
    outside = (moved - product(u, inner)) / s[..., None, :]
    return product(u, vh), product(product(u, turn) + outside, vh)
