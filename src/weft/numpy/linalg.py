"""Linear algebra by NumPy's names: `weft.numpy.linalg`.

The last two axes of an array are its matrices, the axes before them a batch. The computations of
systems, determinants and least squares are in systems.py, factorizations in weft.lax.linalg.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from weft import dtypes
from weft.errors import ShapeError
from weft.numpy import reductions, systems
from weft.numpy.choice import isnan, where
from weft.numpy.elementwise import abs, power
from weft.numpy.grids import eye
from weft.numpy.manipulation import broadcast_to, expand_dims, matrix_transpose, moveaxis
from weft.numpy.manipulation import diagonal as diagonal_of
from weft.numpy.products import cross as cross_of
from weft.numpy.products import matmul, tensordot, vecdot
from weft.numpy.products import outer as outer_of
from weft.numpy.products import trace as trace_of
from weft.numpy.promotion import as_array, as_inexact, axes_of, promote_operands
from weft.numpy.reductions import any, compute_widely, square_size, sum
from weft.numpy.sorting import sort
from weft.numpy.ufuncs import sqrt
from weft.primitives import eigen, factorizations
from weft.primitives import linalg as stacked
from weft.primitives.dot import PrecisionLike
from weft.primitives.families import as_sequence, check_integer, normalize_axis
from weft.primitives.layout import convert, reshape
from weft.primitives.matrices import adjoint, check_matrix, swap, to_column
from weft.run.operation import operation
from weft.util import SymbolicSize, check_option, list_public, max_size
from weft.xla.typing import Array, ArrayLike, Axis, DTypeLike

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
    "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose",
    "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
    "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip
__dir__ = list_public(__name__)


# The results of functions that return several arrays.
class EigResult(NamedTuple):
    """Eigenvalues (..., n), and eigenvectors (..., n, n) in columns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Real eigenvalues (..., n), ascending, and eigenvectors (..., n, n) in columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """The factors of a QR decomposition."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """The sign of determinants, and the logarithms of their absolute values."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """The factors of a singular value decomposition; S descends."""

    U: Array
    S: Array
    Vh: Array


# --- systems --------------------------------------------------------------------------------


@operation
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve systems of linear equations: find x with `a @ x = b`.

    Solving is faster and more accurate than a product with `inv(a)`. A system is solved with an LU
    factorization. Leading axes are a batch, and broadcast.

    Args:
      a: square matrices (..., n, n). The dtype is float32, float64, complex64 or complex128;
        integers and booleans are converted to floats.
      b: one vector (n,), which is used for every matrix, or matrices (..., n, k) with one system
        for each of k columns. One vector for each matrix is written `b[..., None]`. The dtype is
        promoted with the dtype of `a`.

    Returns:
      x (..., n) if `b` is a vector, else (..., n, k), in the promoted dtype. For a singular matrix
      the elements are inf or NaN, where NumPy raises LinAlgError.

    Raises:
      ShapeError: if the matrices are not square, or if `b` does not fit.
      DtypeError: if the promoted dtype is float16 or bfloat16.

    >>> a = jnp.array([[2., 1.], [1., 3.]])
    >>> print(jnp.linalg.solve(a, jnp.array([3., 4.])))
    [1. 1.]
    >>> jnp.linalg.solve(a, jnp.ones((5, 2, 1))).shape
    (5, 2, 1)
    """
    return systems.solve_operands("solve", a, b)


@operation
def inv(a: ArrayLike) -> Array:
    """Return the inverses of square matrices.

    For the solution of linear equations, `solve` is faster and more accurate.

    Args:
      a: square matrices (..., n, n). The dtype is float32, float64, complex64 or complex128;
        integers and booleans are converted to floats.

    Returns:
      The inverses (..., n, n), in the same dtype. For a singular matrix the elements are inf or
      NaN, where NumPy raises LinAlgError.

    Raises:
      ShapeError: if the matrices are not square.
      DtypeError: if the dtype is float16 or bfloat16.

    >>> print(jnp.linalg.inv(jnp.array([[1., 2.], [0., 4.]])))
    [[ 1.   -0.5 ]
     [ 0.    0.25]]
    """
    return systems.invert(systems.check_matrices("inv", a, square=True))


@operation(name="lstsq")
def lstsq_of_columns(a: Any, b: Any, rcond: Any = None) -> tuple[Any, Any, Any, Any]:
    """Compute `lstsq` with the residuals of all columns."""
    a, b = promote_operands(
        "lstsq", as_array(a, "lstsq"), as_array(b, "lstsq"), inexact=True, shaped=False
    )
    check_matrix("lstsq", a.aval)
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ShapeError(
            "lstsq: operands must be of shapes (m, n) and (m,) or (m, k); "
            f"got {a.aval}, {b.aval}. Hint: weft.vmap(jnp.linalg.lstsq) for a batch."
        )
    columns = to_column(b) if b.ndim == 1 else b
    cutoff = systems.find_epsilon(a) * max_size(*a.shape) if rcond is None else rcond
    cutoff = where(as_array(cutoff) < 0, systems.find_epsilon(a), cutoff)
    x, s = systems.solve_least_squares(a, columns, cutoff, False)
    rank = sum(systems.find_kept_values(s, cutoff), -1)
    rest = systems.compute_residual(a, x, columns)
    return reshape(x, (*x.shape[:-1], *b.shape[1:])), rest, rank, s


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: ArrayLike | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Solve least squares problems: find the x that minimizes `norm(a @ x - b)`.

    If several x have the smallest residual, the result is the x with the smallest norm. The
    solution is computed from a singular value decomposition, so `a` may have any rank. Derivatives
    are valid where the rank does not change.

    Args:
      a: one matrix (m, n). The dtype is float32, float64, complex64 or complex128; integers and
        booleans are converted to floats. Use `weft.vmap` for a batch.
      b: a vector (m,), or a matrix (m, k) with one problem for each column.
      rcond: a scalar. Singular values up to `rcond` times the largest are treated as zero. None
        stands for eps * max(m, n), where eps is the machine epsilon of the dtype; a negative number
        for eps.
      numpy_resid: if True, the residuals are empty where NumPy's are: if the rank is less than n,
        or if m <= n. This needs the value of the rank, so it fails under `jit` if m > n.

    Returns:
      A tuple (x, residuals, rank, s). x has the shape (n,) or (n, k). residuals (1,) or (k,) are
      the sums of squares of `a @ x - b`, one for each column. rank is a scalar of the default
      integer dtype. s (min(m, n),) holds the singular values of `a`, in descending order.

    Raises:
      ShapeError: if the operands do not have these shapes.
      ConcretizationTypeError: if `numpy_resid` is True, m > n, and `a` is traced.

    >>> x, residuals, rank, s = jnp.linalg.lstsq(jnp.ones((4, 1)), jnp.array([1., 2., 6., 7.]))
    >>> print(jnp.round(x), jnp.round(residuals), rank)
    [4.] [26.] 1
    """
    x, rest, rank, s = lstsq_of_columns(a, b, rcond)
    m, n = as_array(a, "lstsq").shape
    if numpy_resid and (m <= n or int(rank) < n):
        rest = rest[:0]
    return x, rest, rank, s


@operation(static=("hermitian",))
def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """Return the Moore-Penrose inverses of matrices.

    The product `pinv(a) @ b` solves least squares problems, as `lstsq` does. The inverse is
    computed from a singular value decomposition. Derivatives are valid where the rank does not
    change.

    Args:
      a: matrices (..., m, n), or (..., n, n) if `hermitian`. The dtype is float32, float64,
        complex64 or complex128; integers and booleans are converted to floats.
      rtol: a number, or an array that broadcasts with the batch axes. Singular values up to `rtol`
        times the largest are treated as zero. None stands for 10 * eps * max(m, n), where eps is
        the machine epsilon of the dtype.
      hermitian: if True, `a` is taken to be Hermitian, and eigenvalues are used. Static under
        `jit`.
      rcond: the old name of `rtol`.

    Returns:
      The inverses (..., n, m), in the same dtype.

    Raises:
      ShapeError: if `a` is not a matrix, or not square where `hermitian` is True.
      ValueError: if both `rtol` and `rcond` are given.

    >>> a = jnp.array([[1., 0.], [0., 2.], [0., 0.]])
    >>> print(jnp.round(jnp.linalg.pinv(a), 2))
    [[1.  0.  0. ]
     [0.  0.5 0. ]]
    """
    a = systems.check_matrices("pinv", a, square=hermitian)
    rtol = choose_one("pinv", rtol=rtol, rcond=rcond)
    if rtol is None:
        rtol = 10.0 * max_size(*a.shape[-2:]) * systems.find_epsilon(a)
    return systems.solve_least_squares(a, None, rtol, bool(hermitian))[0]


def choose_one(op: str, **named: Any) -> Any:
    """Return the argument that is not None, or None; raise if there are several."""
    given = {k: x for k, x in named.items() if x is not None}
    if len(given) > 1:
        raise ValueError(f"{op}: only one of {' and '.join(named)} may be given; got both.")
    return next(iter(given.values()), None)


@operation(static=("ind",))
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Return the inverse of an array under `tensordot`.

    The array is a linear map from its last axes to its first `ind` axes. With `y = tensorinv(a,
    ind)`, `tensordot(y, tensordot(a, x, x.ndim), ind)` is x again.

    Args:
      a: an array. The product of its first `ind` sizes must equal the product of the others. The
        dtype is float32, float64, complex64 or complex128; integers and booleans are converted to
        floats.
      ind: the number of first axes, at least 1. Static under `jit`.

    Returns:
      An array of the shape `a.shape[ind:] + a.shape[:ind]`, in the same dtype; inf or NaN if the
      map has no inverse.

    Raises:
      ShapeError: if the products of sizes differ, or `ind` is less than 1.

    >>> a = jnp.eye(24).reshape(4, 6, 8, 3)
    >>> jnp.linalg.tensorinv(a).shape
    (8, 3, 4, 6)
    """
    x = as_inexact("tensorinv", a)
    ind = check_integer("tensorinv", "ind", ind, 1)
    shape, n = x.shape, math.prod(x.shape[:ind])
    if n != math.prod(shape[ind:]):
        raise ShapeError(
            f"tensorinv: the first {ind} sizes must multiply to what the others do; got {x.aval}."
        )
    return reshape(inv(reshape(x, (n, n))), (*shape[ind:], *shape[:ind]))


@operation(static=("axes",), name="tensorsolve")
def tensorsolve_axes(a: Any, b: Any, axes: tuple[int, ...]) -> Any:
    """Compute `tensorsolve` with its axes as a tuple."""
    x, y = as_array(a, "tensorsolve"), as_array(b, "tensorsolve")
    axes = axes_of("tensorsolve", axes, x.ndim)
    x = moveaxis(x, axes, tuple(range(-len(axes), 0))) if axes else x
    n, shape = y.size, x.shape[y.ndim :]
    if x.shape[: y.ndim] != y.shape or math.prod(shape) != n:
        raise ShapeError(
            "tensorsolve: a must have the shape of b followed by axes of as many elements, once "
            f"axes {axes} are moved to its end; got {x.aval}, {y.aval}."
        )
    x, y = reshape(x, (n, n)), reshape(y, (n,))
    return reshape(systems.solve_operands("tensorsolve", x, y), shape)


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Solve `tensordot(a, x, x.ndim) = b` for x.

    This is `solve` for equations whose unknowns and right-hand sides have several axes.

    Args:
      a: an array of the shape `b.shape + x.shape`, where `b` and x have the same number of
        elements. The dtype is float32, float64, complex64 or complex128; integers and booleans
        become floats.
      b: an array of any shape.
      axes: the axes of `a` to move to its end before the equation is read, in this order. None
        moves no axis. Static under `jit`.

    Returns:
      x, of the shape `a.shape[b.ndim:]`, in the promoted dtype; inf or NaN for singular equations.

    Raises:
      ShapeError: if the shape of `a` does not begin with the shape of `b`, or if the numbers of
        elements differ.

    >>> a = jnp.eye(24).reshape(6, 4, 2, 3, 4)
    >>> jnp.linalg.tensorsolve(a, jnp.ones((6, 4))).shape
    (2, 3, 4)
    """
    return tensorsolve_axes(a, b, () if axes is None else as_sequence("tensorsolve", "axes", axes))


# --- determinants, powers, ranks ------------------------------------------------------------


@operation
def det(a: ArrayLike) -> Array:
    """Return the determinants of square matrices.

    Matrices of up to four rows are expanded without LAPACK; larger ones are factorized. A
    determinant of a large matrix may overflow or underflow, where `slogdet` does not. Derivatives
    are finite for singular matrices too.

    Args:
      a: square matrices (..., n, n), of a float or complex dtype, float16 and bfloat16 included.
        Integers and booleans are converted to floats. The determinant of an empty matrix is 1.

    Returns:
      The determinants (...), in the same dtype.

    Raises:
      ShapeError: if the matrices are not square.

    >>> a = jnp.array([[1., 2.], [2., 4.]])
    >>> print(jnp.linalg.det(a))
    0.0
    >>> print(weft.grad(jnp.linalg.det)(a))
    [[ 4. -2.]
     [-2.  1.]]
    """
    x = as_inexact("det", a)
    check_matrix("det", x.aval, True, systems.HALF_TOO)
    return systems.compute_determinant(x)


@operation(static=("method",))
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Return the signs of determinants and the logarithms of their absolute values.

    The determinant is `sign * exp(logabsdet)`. The logarithm does not overflow or underflow, as
    `det` may for large matrices. It is the usual form in a log-likelihood of a normal distribution.

    Args:
      a: square matrices (..., n, n). The dtype is float32, float64, complex64 or complex128;
        integers and booleans are converted to floats.
      method: the factorization: "lu" or "qr"; None stands for "lu". Static under `jit`.

    Returns:
      A named tuple (sign, logabsdet), both of shape (...). sign has the dtype of the matrices: -1
      or 1 if they are real, a number of absolute value 1 if they are complex. logabsdet is real. A
      singular matrix has the sign 0 and the logarithm -inf; its derivatives are infinite.

    Raises:
      ShapeError: if the matrices are not square.
      ValueError: if `method` is not one of these.

    >>> sign, logabsdet = jnp.linalg.slogdet(-jnp.eye(3))
    >>> print(sign, logabsdet)
    -1.0 0.0
    """
    check_option("slogdet", "method", method, None, "lu", "qr")
    x = systems.check_matrices("slogdet", a, square=True)
    return SlogdetResult(*systems.compute_log_determinant(x, method == "qr"))


@operation(static=("n",))
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Raise square matrices to an integer power.

    The power is computed by repeated squaring, with about 2 * log2(n) products at most. A negative
    power is a power of the inverses; the power 0 is the identity.

    Args:
      a: square matrices (..., n, n) of any numeric dtype. For a negative `n`, integers are
        converted to floats.
      n: the exponent, an int. Static under `jit`.

    Returns:
      The powers (..., n, n), in the dtype of `a`.

    Raises:
      ShapeError: if the matrices are not square.
      TypeError: if `n` is not an integer.

    >>> print(jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 5))
    [[1 5]
     [0 1]]
    >>> print(jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), -1))
    [[ 1. -1.]
     [ 0.  1.]]
    """
    x = as_array(a, "matrix_power")
    n = check_integer("matrix_power", "n", n)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"matrix_power: a must hold square matrices; got {x.aval}.")
    if n == 0:
        return broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape)
    x, n = (inv(x), -n) if n < 0 else (x, n)
    out = None
    while True:
        if n & 1:
            out = x if out is None else matmul(out, x)
        n >>= 1
        if not n:
            return out
        x = matmul(x, x)


@operation(static=("hermitian",))
def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """Return the ranks of matrices: the number of singular values that are not negligible.

    Args:
      M: matrices (..., m, n). The dtype is float32, float64, complex64 or complex128; integers and
        booleans are converted to floats. A vector or a scalar has the rank 0 if all its elements
        are 0, else 1.
      rtol: a number, or an array that broadcasts with the batch axes. Singular values up to `rtol`
        times the largest are not counted. None stands for eps * max(m, n), where eps is the machine
        epsilon of the dtype.
      hermitian: if True, the matrices are taken to be Hermitian, and the absolute values of the
        eigenvalues are used. Static under `jit`.
      tol: a number, or an array that broadcasts with the batch axes. Singular values up to `tol`
        are not counted. It replaces `rtol`.

    Returns:
      The ranks (...), integers of the default dtype.

    Raises:
      ShapeError: if the matrices are not square and `hermitian` is True.
      ValueError: if both `rtol` and `tol` are given.

    >>> print(jnp.linalg.matrix_rank(jnp.array([[1., 2.], [2., 4.]])))
    1
    >>> print(jnp.linalg.matrix_rank(jnp.diag(jnp.array([3., 1., 0.1])), tol=0.5))
    2
    """
    x = as_inexact("matrix_rank", M)
    choose_one("matrix_rank", rtol=rtol, tol=tol)
    if x.ndim < 2:
        return sum(any(x != 0))
    check_matrix("matrix_rank", x.aval, hermitian)
    s = -sort(-abs(eigvalsh(x))) if hermitian else svdvals(x)
    if tol is not None:
        return sum(s > systems.one_per_row(as_array(tol, "matrix_rank")), -1)
    if rtol is None:
        rtol = max_size(*x.shape[-2:]) * systems.find_epsilon(x)
    return sum(systems.find_kept_values(s, rtol), -1)


@operation(static=("p",))
def cond(x: ArrayLike, p: ArrayLike | None = None) -> Array:
    """Return the condition numbers of matrices: `norm(x, p) * norm(inv(x), p)`.

    A condition number bounds how much a relative error of the right-hand side grows in `solve`.

    Args:
      x: matrices (..., m, n), square unless `p` is None, 2 or -2. The dtype is float32, float64,
        complex64 or complex128; integers and booleans are converted to floats.
      p: the order of the norm. None and 2 divide the largest singular value by the smallest, -2 the
        smallest by the largest. The others are 1, -1, inf, -inf, "fro" and "nuc", as in `norm`.
        Static under `jit`.

    Returns:
      The condition numbers (...), real. A singular matrix has the number inf, or a very large one
      if rounding hides the singularity.

    Raises:
      ShapeError: if the matrices are empty, or not square where they must be.
      ValueError: if `p` is not the order of a norm of matrices.

    >>> x = jnp.array([[4., 0.], [0., 2.]])
    >>> print(jnp.linalg.cond(x), jnp.linalg.cond(x, 1))
    2.0 2.0
    """
    a = systems.check_matrices("cond", x, square=p not in (None, 2, -2))
    if not a.size:
        raise ShapeError(f"cond: matrices must not be empty; got {a.aval}.")
    if p in (None, 2, -2):
        s = svdvals(a)
        r = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        r = matrix_norm(a, ord=p) * matrix_norm(systems.invert(a), ord=p)
    return where(isnan(r) & ~any(isnan(a), (-2, -1)), math.inf, r)


# --- decompositions -------------------------------------------------------------------------


@operation(static=("upper", "symmetrize_input"))
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Return the Cholesky factors of positive definite matrices.

    The factor L is lower triangular, with a positive diagonal and `a = L @ L.mH`. It serves to
    solve equations, to compute log-determinants and to sample from normal distributions with
    covariance `a`.

    Args:
      a: Hermitian positive definite matrices (..., n, n). The dtype is float32, float64, complex64
        or complex128; integers and booleans are converted to floats.
      upper: if True, return the upper triangular U with `a = U.mH @ U`. Static under `jit`.
      symmetrize_input: if True, `(a + a.mH) / 2` is factorized, so that derivatives are Hermitian.
        If False, only the lower triangle of `a` is read, as in NumPy. Static under `jit`.

    Returns:
      The factors (..., n, n), in the same dtype. If a matrix is not positive definite, the triangle
      is NaN, where NumPy raises LinAlgError.

    Raises:
      ShapeError: if the matrices are not square.
      DtypeError: if the dtype is float16 or bfloat16.

    >>> a = jnp.array([[4., 2.], [2., 5.]])
    >>> print(jnp.linalg.cholesky(a))
    [[2. 0.]
     [1. 2.]]
    >>> print(jnp.linalg.cholesky(a, upper=True))
    [[2. 1.]
     [0. 2.]]
    """
    x = systems.check_matrices("cholesky", a, square=True)
    out = stacked.cholesky(x, symmetrize_input=symmetrize_input)
    return adjoint(out) if upper else out


@operation(static=("mode",))
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """Compute QR decompositions: `a = Q @ R`, with orthonormal columns of Q and upper triangular R.

    The signs of the diagonal of R are LAPACK's: they may be negative.

    Args:
      a: matrices (..., m, n). The dtype is float32, float64, complex64 or complex128; integers and
        booleans are converted to floats. k is min(m, n) below.
      mode: "reduced" returns Q (..., m, k) and R (..., k, n). "complete" returns Q (..., m, m) and
        R (..., m, n). "r" returns R (..., k, n) only. "raw" returns LAPACK's Householder form: the
        transposed factors (..., n, m) and the scales of the reflections (..., k). Static under
        `jit`.

    Returns:
      A named tuple (Q, R), in the dtype of `a`; one array for the mode "r". Derivatives are defined
      if the first k columns of `a` are linearly independent, else they are NaN. The mode "raw" has
      none.

    Raises:
      ShapeError: if `a` has fewer than two axes.
      ValueError: if `mode` is not one of these.

    >>> q, r = jnp.linalg.qr(jnp.array([[3., 1.], [4., 2.]]))
    >>> print(jnp.allclose(q @ r, jnp.array([[3., 1.], [4., 2.]])))
    True
    >>> jnp.linalg.qr(jnp.ones((4, 3)), "complete").Q.shape
    (4, 4)
    >>> jnp.linalg.qr(jnp.ones((4, 3)), "r").shape
    (3, 3)
    """
    x = systems.check_matrices("qr", a)
    check_option("qr", "mode", mode, "reduced", "complete", "r", "raw")
    if mode == "raw":
        factors, taus = factorizations.geqrf(x)
        return QRResult(swap(factors), taus)
    q, r = factorizations.qr(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


def reads_lower(op: str, UPLO: str | None) -> bool:
    """Return True if UPLO names the lower triangle."""
    check_option(op, "UPLO", UPLO, "L", "U", None)
    return UPLO != "U"


@operation(static=("UPLO", "symmetrize_input"))
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Return the eigenvalues and eigenvectors of Hermitian matrices.

    Each matrix is `v @ diag(w) @ v.mH`, with eigenvalues w in ascending order and eigenvectors in
    the columns of the unitary matrix v.

    Args:
      a: Hermitian matrices (..., n, n). The dtype is float32, float64, complex64 or complex128;
        integers and booleans are converted to floats.
      UPLO: the triangle to read if `symmetrize_input` is False: "L" or "U"; None stands for "L". It
        has no effect otherwise. Static under `jit`.
      symmetrize_input: if True, `(a + a.mH) / 2` is decomposed. If False, only one triangle is
        read, as in NumPy. Static under `jit`.

    Returns:
      A named tuple (eigenvalues, eigenvectors): real eigenvalues (..., n) and eigenvectors (..., n,
      n) in the dtype of `a`. Eigenvectors of equal eigenvalues are not unique; terms of their
      derivatives that divide by the difference of equal eigenvalues are taken as 0. That is right
      for functions that do not depend on the choice of these vectors, such as `f(w).sum()`. The
      derivative of `(v * f(w)) @ v.T` lacks a term with f' there: see docs/derivatives.md.

    Raises:
      ShapeError: if the matrices are not square.
      DtypeError: if the dtype is float16 or bfloat16.
      ValueError: if `UPLO` is not one of these.

    >>> w, v = jnp.linalg.eigh(jnp.array([[2., 1.], [1., 2.]]))
    >>> print(w)
    [1. 3.]
    >>> print(jnp.round(v @ jnp.diag(w) @ v.T, 3))
    [[2. 1.]
     [1. 2.]]
    """
    lower = reads_lower("eigh", UPLO)
    x = systems.check_matrices("eigh", a, square=True)
    v, w = eigen.eigh(x, lower=lower, symmetrize_input=symmetrize_input)
    return EighResult(w, v)


@operation(static=("UPLO", "symmetrize_input"))
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Return the eigenvalues of Hermitian matrices, in ascending order.

    The result is `eigh(a).eigenvalues`, without the computation of eigenvectors.

    Args:
      a: Hermitian matrices (..., n, n). The dtype is float32, float64, complex64 or complex128;
        integers and booleans are converted to floats.
      UPLO: the triangle to read if `symmetrize_input` is False: "L" or "U"; None stands for "L".
        Static under `jit`.
      symmetrize_input: if True, `(a + a.mH) / 2` is used. If False, only one triangle is read, as
        in NumPy. Static under `jit`.

    Returns:
      The eigenvalues (..., n), real.

    Raises:
      ShapeError: if the matrices are not square.
      ValueError: if `UPLO` is not one of these.

    >>> print(jnp.linalg.eigvalsh(jnp.array([[2., 1.], [1., 2.]])))
    [1. 3.]
    """
    lower = reads_lower("eigvalsh", UPLO)
    x = systems.check_matrices("eigvalsh", a, square=True)
    return eigen.eigh(x, lower=lower, symmetrize_input=symmetrize_input)[1]


@operation
def eig(a: ArrayLike) -> EigResult:
    """Return the eigenvalues and right eigenvectors of square matrices.

    For Hermitian matrices, `eigh` is faster and its results are real where they can be. The
    function has no derivative. `eigvals` has one, and so has `lax.linalg.eig` with
    `enable_eigvec_derivs`.

    Args:
      a: square matrices (..., n, n). The dtype is float32, float64, complex64 or complex128;
        integers and booleans are converted to floats.

    Returns:
      A named tuple (eigenvalues, eigenvectors), of shapes (..., n) and (..., n, n), in LAPACK's
      order. Eigenvectors are columns of norm 1. Both are always complex, where NumPy returns real
      arrays if all eigenvalues are real.

    Raises:
      ShapeError: if the matrices are not square.
      DtypeError: if the dtype is float16 or bfloat16.

    >>> w, v = jnp.linalg.eig(jnp.array([[0., -1.], [1., 0.]]))
    >>> print(w)
    [0.+1.j 0.-1.j]
    >>> v.dtype
    dtype('complex64')
    """
    x = systems.check_matrices("eig", a, square=True)
    return EigResult(*eigen.eig(x, compute_left_eigenvectors=False))


@operation
def eigvals(a: ArrayLike) -> Array:
    """Return the eigenvalues of square matrices.

    For Hermitian matrices, `eigvalsh` is faster and returns real eigenvalues in ascending order.

    Args:
      a: square matrices (..., n, n). The dtype is float32, float64, complex64 or complex128;
        integers and booleans are converted to floats.

    Returns:
      The eigenvalues (..., n), in LAPACK's order. They are always complex, where NumPy returns real
      ones if none has an imaginary part.

    Raises:
      ShapeError: if the matrices are not square.

    >>> print(jnp.linalg.eigvals(jnp.array([[0., -1.], [1., 0.]])))
    [0.+1.j 0.-1.j]
    """
    x = systems.check_matrices("eigvals", a, square=True)
    return eigen.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@operation(static=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Compute singular value decompositions: `a = U @ diag(S) @ Vh`, with unitary U and Vh.

    They serve for low-rank approximations, principal components, pseudoinverses and ranks.

    Args:
      a: matrices (..., m, n), or (..., n, n) if `hermitian`. The dtype is float32, float64,
        complex64 or complex128; integers and booleans are converted to floats. k is min(m, n)
        below.
      full_matrices: if True, U has the shape (..., m, m) and Vh (..., n, n). If False, U has the
        shape (..., m, k) and Vh (..., k, n). Static under `jit`, as are the next three.
      compute_uv: if False, only S is computed and returned.
      hermitian: if True, `a` is taken to be Hermitian, and its eigenvalues are used.
      subset_by_index: a pair (start, stop): compute only these singular values, counted from the
        largest, and their vectors. With `compute_uv` it needs `full_matrices=False`.

    Returns:
      A named tuple (U, S, Vh); only S if `compute_uv` is False. S has the shape (..., k), is real
      and in descending order; U and Vh have the dtype of `a`. Vectors of equal singular values are
      not unique; terms of their derivatives that divide by the difference of equal values are taken
      as 0. The derivative of `(u * f(s)) @ vh` lacks a term with f' there, as that of `eigh`.

    Raises:
      ShapeError: if `a` has fewer than two axes, or is not square where `hermitian` is True, or if
        the subset is out of range.
      ValueError: if a subset is combined with `compute_uv` and `full_matrices`.
      NotImplementedError: if a subset is combined with `hermitian`.

    >>> a = jnp.array([[3., 0.], [0., 4.], [0., 0.]])
    >>> u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    >>> print(s, u.shape, vh.shape)
    [4. 3.] (3, 2) (2, 2)
    >>> print(jnp.linalg.svd(a, compute_uv=False, subset_by_index=(0, 1)))
    [4.]
    """
    x = systems.check_matrices("svd", a, square=hermitian)
    if hermitian and subset_by_index is not None:
        raise NotImplementedError(
            f"svd: subset_by_index must be None for hermitian=True; got {subset_by_index}."
        )
    if hermitian:
        if not compute_uv:
            return -sort(-abs(eigvalsh(x)))
        return SVDResult(*systems.compute_hermitian_svd(x))
    out = eigen.svd(
        x, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index
    )
    return SVDResult(*out) if compute_uv else out


@operation
def svdvals(x: ArrayLike, /) -> Array:
    """Return the singular values of matrices, in descending order.

    Args:
      x: matrices (..., m, n). The dtype is float32, float64, complex64 or complex128; integers and
        booleans are converted to floats.

    Returns:
      The singular values (..., min(m, n)), real and not negative.

    Raises:
      ShapeError: if `x` has fewer than two axes.

    >>> print(jnp.linalg.svdvals(jnp.array([[3., 0.], [0., 4.]])))
    [4. 3.]
    """
    return eigen.svd(systems.check_matrices("svdvals", x), compute_uv=False)


# --- products -------------------------------------------------------------------------------


def multi_dot(arrays: Sequence[Any], *, precision: PrecisionLike = None) -> Array:
    """Multiply a chain of matrices in the order that needs the fewest multiplications.

    The order depends only on the shapes, so it costs nothing in a compiled program.

    Args:
      arrays: two or more matrices. The number of columns of each must equal the number of rows of
        the next. The first may be a vector, which is a row, and the last a vector, which is a
        column.
      precision: the precision of the products, as in `jnp.dot`; None is the default precision.

    Returns:
      The product, in the promoted dtype: (m, n), without the axis of each end that is a vector.

    Raises:
      ShapeError: if there are fewer than two operands, or if their ranks or sizes do not fit.

    >>> jnp.linalg.multi_dot([jnp.ones((100, 2)), jnp.ones((2, 100)), jnp.ones(100)]).shape
    (100,)
    """
    return multiply_chain(as_sequence("multi_dot", "arrays", arrays), precision)


@operation(static=("precision",), name="multi_dot")
def multiply_chain(arrays: tuple, precision: Any) -> Any:
    """Compute `multi_dot` of a tuple of operands."""
    xs = [as_array(x, "multi_dot") for x in arrays]
    ends = {0, len(xs) - 1}
    avals = ", ".join(str(x.aval) for x in xs)
    if len(xs) < 2 or builtins.any(
        x.ndim != 2 and not (i in ends and x.ndim == 1) for i, x in enumerate(xs)
    ):
        raise ShapeError(
            "multi_dot: operands must be two or more matrices, of which the first and the last may "
            f"be vectors; got {avals or 'none'}."
        )
    sizes = [x.shape[0] for x in xs[1:]]
    if builtins.any(x.shape[-1] != n for x, n in zip(xs[:-1], sizes, strict=True)):
        raise ShapeError(f"multi_dot: neighbours must fit as factors; got {avals}.")
    first = 1 if xs[0].ndim == 1 else xs[0].shape[0]
    last = 1 if xs[-1].ndim == 1 else xs[-1].shape[1]
    splits = find_best_splits((first, *sizes, last))

    def multiply(i: int, j: int) -> Any:
        if i == j:
            return xs[i]
        k = splits[i, j]
        return matmul(multiply(i, k), multiply(k + 1, j), precision=precision)

    return multiply(0, len(xs) - 1)


def find_best_splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Find where to split each chain of matrices. Matrix i is sizes[i] by sizes[i + 1].

    Symbolic sizes count as large.
    Source: Cormen et al., "Introduction to Algorithms", section 14.2.
    """
    sizes = [1000 if isinstance(n, SymbolicSize) else n for n in sizes]
    n = len(sizes) - 1
    cost, splits = {(i, i): 0 for i in range(n)}, {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], splits[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return splits


@operation(static=("axis",))
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Return cross products of vectors of length 3.

    This is the form of the array API standard. `jnp.cross` also takes vectors of length 2.

    Args:
      x1: vectors of any numeric dtype. The size along `axis` must be 3.
      x2: vectors of the same length. The other axes broadcast with the axes of `x1`.
      axis: the axis of the components, in both operands and in the result. Static under `jit`.

    Returns:
      The products, of the broadcast shape, in the promoted dtype.

    Raises:
      ShapeError: if the vectors do not have length 3.

    >>> print(jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0])))
    [0 0 1]
    """
    x, y = as_array(x1, "cross"), as_array(x2, "cross")
    places = [normalize_axis("cross", axis, v.ndim) for v in (x, y) if v.ndim]
    if len(places) < 2 or x.shape[axis] != 3 or y.shape[axis] != 3:
        raise ShapeError(f"cross: vectors must be of length 3; got {x.aval}, {y.aval}.")
    return cross_of(x, y, axis=axis)


@operation
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the outer product of two vectors: `out[i, j] = x1[i] * x2[j]`.

    This is the form of the array API standard. `jnp.outer` also takes arrays of other ranks, and
    flattens them.

    Args:
      x1: a vector (m,) of any numeric dtype.
      x2: a vector (n,).

    Returns:
      The products (m, n), in the promoted dtype.

    Raises:
      ShapeError: if an operand is not a vector.

    >>> print(jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4])))
    [[3 4]
     [6 8]]
    """
    x, y = as_array(x1, "outer"), as_array(x2, "outer")
    if x.ndim != 1 or y.ndim != 1:
        raise ShapeError(
            f"outer: operands must be vectors; got {x.aval}, {y.aval}. Hint: jnp.outer."
        )
    return outer_of(x, y)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Return the diagonals of matrices.

    The matrices are in the last two axes, as everywhere in `linalg`; `jnp.diagonal` takes the first
    two.

    Args:
      x: matrices (..., m, n) of any dtype.
      offset: the number of columns from the main diagonal to the right; negative to the left.

    Returns:
      The diagonals (..., k), where k is the length of the diagonal, in the same dtype.

    Raises:
      ShapeError: if `x` has fewer than two axes.

    >>> print(jnp.linalg.diagonal(jnp.arange(9).reshape(3, 3), offset=1))
    [1 5]
    """
    return diagonal_of(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Return the traces of matrices: the sums of their diagonals.

    The matrices are in the last two axes, as everywhere in `linalg`; `jnp.trace` takes the first
    two.

    Args:
      x: matrices (..., m, n) of any numeric dtype.
      offset: the number of columns from the main diagonal to the right; negative to the left.
      dtype: the dtype of the sums. None stands for the dtype that `jnp.sum` returns for `x`.

    Returns:
      The sums (...).

    Raises:
      ShapeError: if `x` has fewer than two axes.

    >>> print(jnp.linalg.trace(jnp.arange(9).reshape(3, 3)))
    12
    >>> print(jnp.linalg.trace(jnp.arange(9).reshape(3, 3), offset=-1, dtype=float))
    10.0
    """
    return trace_of(x, offset, -2, -1, dtype)


# --- norms ----------------------------------------------------------------------------------


@operation(static=("ord", "axis", "keepdims"))
def norm(
    x: ArrayLike, ord: int | float | str | None = None, axis: Axis = None, keepdims: bool = False
) -> Array:
    """Return norms of vectors along one axis, or of matrices in two axes.

    The order of a norm is one of these. Sums of rows and columns are sums of absolute values.

    | ord            | vectors                           | matrices                          |
    |----------------|-----------------------------------|-----------------------------------|
    | "fro"          |                                   | root of the sum of squares        |
    | "nuc"          |                                   | sum of singular values            |
    | inf, -inf      | largest, smallest absolute value  | largest, smallest sum in a row    |
    | 1, -1          | as any p                          | largest, smallest sum in a column |
    | 2, -2          | as any p                          | largest, smallest singular value  |
    | 0              | number of elements other than 0   |                                   |
    | another number | `sum(abs(x) ** p) ** (1 / p)`     |                                   |

    The derivative of the norm of order 2 is NaN at a vector of zeros, as it divides by the norm.
    For the order inf, elements of equal absolute value share the derivative.

    Args:
      x: an array. Its dtype is a float or complex one; integers and booleans are converted to
        floats.
      ord: the order of the norm, as in the table. None is 2 for vectors and "fro" for matrices.
        Static under `jit`, as are the next two.
      axis: one axis, for norms of vectors, or two, for norms of matrices. None takes all axes: of
        an array of any rank if `ord` is None, else of a vector or one matrix.
      keepdims: if True, the reduced axes stay, with size 1.

    Returns:
      The norms, real, of the shape of `x` without the reduced axes.

    Raises:
      ShapeError: if there are not one or two axes where `ord` or `axis` is given.
      ValueError: if `ord` is not an order for these norms.

    >>> x = jnp.array([[3., 4.], [0., 0.]])
    >>> print(jnp.linalg.norm(x), jnp.linalg.norm(x, axis=1), jnp.linalg.norm(x, 1))
    5.0 [5. 0.] 4.0
    >>> print(jnp.linalg.norm(jnp.eye(3), "nuc"))
    3.0
    """
    x = as_inexact("norm", x)
    axes = axes_of("norm", axis, x.ndim)
    if (ord is None and axis is None) or len(axes) == 1:
        return compute_vector_norms("norm", x, axes, 2 if ord is None else ord, keepdims)
    if len(axes) != 2:
        raise ShapeError(
            "norm: there must be one axis, for vectors, or two, for matrices; "
            f"got axis {axis} of {x.aval}. Hint: jnp.linalg.vector_norm."
        )
    return compute_matrix_norms("norm", x, axes, "fro" if ord is None else ord, keepdims)


@operation(static=("axis", "keepdims", "ord"))
def vector_norm(
    x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: int | float | str = 2
) -> Array:
    """Return norms of vectors along any number of axes.

    All elements along the axes count as one vector, so a matrix has the norm of its flattened form.

    Args:
      x: an array. Its dtype is a float or complex one; integers and booleans are converted to
        floats.
      axis: one axis or several; None takes all axes. Static under `jit`, as are the next two.
      keepdims: if True, the reduced axes stay, with size 1.
      ord: the order of the norm, a number; 2 is the Euclidean norm. The others are as in `norm`.

    Returns:
      The norms, real, of the shape of `x` without the reduced axes. Derivatives at zero are as in
      `norm`.

    Raises:
      ValueError: if `ord` is a string.

    >>> x = jnp.array([[3., 4.], [0., 12.]])
    >>> print(jnp.linalg.vector_norm(x), jnp.linalg.vector_norm(x, axis=0, ord=1))
    13.0 [ 3. 16.]
    """
    x = as_inexact("vector_norm", x)
    axes = axes_of("vector_norm", axis, x.ndim)
    return compute_vector_norms("vector_norm", x, axes, 2 if ord is None else ord, keepdims)


@operation(static=("keepdims", "ord"))
def matrix_norm(
    x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str = "fro"
) -> Array:
    """Return norms of matrices in the last two axes.

    Args:
      x: matrices (..., m, n), of a float or complex dtype; integers and booleans are converted to
        floats. The orders 2, -2 and "nuc" need float32, float64, complex64 or complex128.
      keepdims: if True, the last two axes stay, with size 1. Static under `jit`, as is `ord`.
      ord: the order of the norm: "fro" (the default), "nuc", 1, -1, 2, -2, inf or -inf, as in
        `norm`.

    Returns:
      The norms (...), real.

    Raises:
      ShapeError: if `x` has fewer than two axes.
      ValueError: if `ord` is not one of these.
      DtypeError: if an order that needs singular values is used with float16 or bfloat16.

    >>> x = jnp.array([[[3., 4.], [0., 0.]]])
    >>> print(jnp.linalg.matrix_norm(x), jnp.linalg.matrix_norm(x, ord=jnp.inf))
    [5.] [7.]
    """
    x = as_inexact("matrix_norm", x)
    if x.ndim < 2:
        raise ShapeError(f"matrix_norm: x must hold matrices (..., m, n); got {x.aval}.")
    axes = (x.ndim - 2, x.ndim - 1)
    return compute_matrix_norms("matrix_norm", x, axes, "fro" if ord is None else ord, keepdims)


def compute_vector_norms(op: str, x: Any, axes: tuple[int, ...], ord: Any, keepdims: bool) -> Any:
    """Compute norms over axes."""
    if isinstance(ord, str):
        raise ValueError(f"{op}: ord must be a number for vectors; got {ord!r}. Hint: jnp.inf.")
    return compute_widely(lambda x: sum_powers(x, axes, ord, keepdims), x)


def sum_powers(x: Any, axes: tuple[int, ...], ord: Any, keepdims: bool) -> Any:
    """Compute norms over axes in the dtype of x."""
    if ord == 2:
        return sqrt(sum(square_size(x), axes, keepdims=keepdims))
    if ord == math.inf:
        return reductions.max(abs(x), axes, keepdims=keepdims, initial=0)
    if ord == -math.inf:
        return reductions.min(abs(x), axes, keepdims=keepdims)
    if ord == 0:
        return sum(convert(x != 0, dtypes.real_dtype(x.dtype)), axes, keepdims=keepdims)
    if ord == 1:
        return sum(abs(x), axes, keepdims=keepdims)
    return power(sum(power(abs(x), ord), axes, keepdims=keepdims), 1 / ord)


def compute_matrix_norms(op: str, x: Any, axes: tuple[int, ...], ord: Any, keepdims: bool) -> Any:
    """Compute norms over two axes, of rows and of columns."""
    if ord == "fro":
        return compute_vector_norms(op, x, axes, 2, keepdims)
    row, column = axes
    if ord in (1, -1, math.inf, -math.inf):
        summed, chosen = (column, row) if math.isinf(ord) else (row, column)
        sums = compute_vector_norms(op, x, (summed,), 1, True)
        out = (
            reductions.max(sums, chosen, keepdims=True, initial=0)
            if ord > 0
            else reductions.min(sums, chosen, keepdims=True)
        )
        return out if keepdims else out.squeeze(axes)
    if ord not in ("nuc", 2, -2):
        raise ValueError(
            f"{op}: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf for matrices; got {ord!r}."
        )
    check_matrix(op, x.aval)
    s = svdvals(moveaxis(x, axes, (-2, -1)))
    if ord == 2:
        out = reductions.max(s, -1, initial=0)
    else:
        out = sum(s, -1) if ord == "nuc" else reductions.min(s, -1)
    return expand_dims(out, axes) if keepdims else out
