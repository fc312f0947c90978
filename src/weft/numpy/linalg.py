"""Linear algebra by NumPy's names: `weft.numpy.linalg`.

The last two axes of an array are its matrices, the axes before them a batch. What systems,
determinants and least squares compute is in systems.py, factorizations in weft.lax.linalg.
"""

from __future__ import annotations

import builtins
import math
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

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
from weft.util import check_option, list_public
from weft.xla.typing import Array, ArrayLike, Axis, DTypeLike

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
    "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose",
    "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
    "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip
__dir__ = list_public(__name__)


# What functions of several results give.
EigResult = namedtuple("EigResult", "eigenvalues eigenvectors")
EighResult = namedtuple("EighResult", "eigenvalues eigenvectors")
QRResult = namedtuple("QRResult", "Q R")
SlogdetResult = namedtuple("SlogdetResult", "sign logabsdet")
SVDResult = namedtuple("SVDResult", "U S Vh")


# --- systems --------------------------------------------------------------------------------


@operation
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """x for which a x = b, for a (..., n, n) and b (n,) or (..., n, k); leading axes broadcast.

    Where a is singular the result is inf or NaN.

    >>> print(jnp.linalg.solve(jnp.array([[2., 1.], [1., 3.]]), jnp.array([3., 4.])))
    [1. 1.]
    """
    return systems.solve_operands("solve", a, b)


@operation
def inv(a: ArrayLike) -> Array:
    """The inverses of square matrices; inf or NaN where there is none. Prefer `solve`."""
    return systems.invert(systems.check_matrices("inv", a, square=True))


@operation(name="lstsq")
def lstsq_of_columns(a: Any, b: Any, rcond: Any = None) -> tuple[Any, Any, Any, Any]:
    """`lstsq`, with the residuals of all columns."""
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
    cutoff = systems.find_epsilon(a) * builtins.max(*a.shape) if rcond is None else rcond
    cutoff = where(as_array(cutoff) < 0, systems.find_epsilon(a), cutoff)
    x, s = systems.solve_least_squares(a, columns, cutoff, False)
    rank = sum(systems.find_kept_values(s, cutoff), -1)
    rest = systems.compute_residual(a, x, columns)
    return reshape(x, (*x.shape[:-1], *b.shape[1:])), rest, rank, s


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: ArrayLike | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The shortest x that makes |a x - b| as small as can be: (x, residuals, rank, s).

    For a (m, n) and b (m,) or (m, k). Singular values s of a up to `rcond` times the largest, by
    default eps * max(m, n), are taken for 0. Residuals are the sums of squares of a x - b for each
    column; with `numpy_resid` there are none where a has not full column rank, or not more rows
    than columns, which needs concrete values. Differentiable where the rank does not change.

    >>> x, residuals, rank, s = jnp.linalg.lstsq(jnp.ones((4, 1)), jnp.array([1., 2., 6., 7.]))
    >>> print(jnp.round(x), jnp.round(residuals), rank)
    [4.] [26.] 1
    """
    x, rest, rank, s = lstsq_of_columns(a, b, rcond)
    m, n = as_array(a).shape
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
    """The Moore-Penrose inverses (..., n, m) of matrices (..., m, n).

    Singular values up to `rtol` (or `rcond`, its old name) times the largest, by default
    10 * eps * max(m, n), are taken for 0. `hermitian` uses eigenvalues. Differentiable where the
    rank does not change.
    """
    a = systems.check_matrices("pinv", a, square=hermitian)
    rtol = choose_one("pinv", rtol=rtol, rcond=rcond)
    if rtol is None:
        rtol = 10.0 * builtins.max(*a.shape[-2:]) * systems.find_epsilon(a)
    return systems.solve_least_squares(a, None, rtol, bool(hermitian))[0]


def choose_one(op: str, **named: Any) -> Any:
    """The one of two arguments that is given, or None."""
    given = {k: x for k, x in named.items() if x is not None}
    if len(given) > 1:
        raise ValueError(f"{op}: only one of {' and '.join(named)} may be given; got both.")
    return next(iter(given.values()), None)


@operation(static=("ind",))
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse for `tensordot` over the first `ind` axes, whose sizes multiply to the others'.

    The shape is a.shape[ind:] + a.shape[:ind].
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
    """`tensorsolve`, its axes in one form."""
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
    """x for which tensordot(a, x, x.ndim) = b, of the shape a.shape[b.ndim:].

    `axes` of a are moved to its end first.
    """
    return tensorsolve_axes(a, b, () if axes is None else as_sequence("tensorsolve", "axes", axes))


# --- determinants, powers, ranks ------------------------------------------------------------


@operation
def det(a: ArrayLike) -> Array:
    """The determinants of square matrices; for those of up to four rows, without LAPACK.

    Derivatives hold for singular matrices too.
    """
    x = as_inexact("det", a)
    check_matrix("det", x.aval, True, systems.HALF_TOO)
    return systems.compute_determinant(x)


@operation(static=("method",))
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The sign and the logarithm of the absolute value of the determinants of square matrices.

    It neither overflows nor vanishes as `det` may; the sign is a complex number of size 1 for
    complex matrices, and 0 for singular ones, whose logarithm is -inf. `method` is "lu", the
    default, or "qr".
    """
    check_option("slogdet", "method", method, None, "lu", "qr")
    x = systems.check_matrices("slogdet", a, square=True)
    return SlogdetResult(*systems.compute_log_determinant(x, method == "qr"))


@operation(static=("n",))
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Square matrices multiplied n times by themselves; for negative n, their inverses."""
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
    """Count the singular values that are above `rtol` times the largest, or above `tol`.

    Args:
      M: a matrix, or a stack of them. A vector or a number has rank 1, or 0 if all of it is 0.
      rtol: the share of the largest singular value, eps * max(m, n) by default.
      hermitian: use eigenvalues in place of singular values.
      tol: the least size of a singular value, in place of `rtol`.
    """
    x = as_inexact("matrix_rank", M)
    choose_one("matrix_rank", rtol=rtol, tol=tol)
    if x.ndim < 2:
        return sum(any(x != 0))
    check_matrix("matrix_rank", x.aval, hermitian)
    s = -sort(-abs(eigvalsh(x))) if hermitian else svdvals(x)
    if tol is not None:
        return sum(s > expand_dims(as_array(tol, "matrix_rank"), -1), -1)
    if rtol is None:
        rtol = builtins.max(*x.shape[-2:]) * systems.find_epsilon(x)
    return sum(systems.find_kept_values(s, rtol), -1)


@operation(static=("p",))
def cond(x: ArrayLike, p: ArrayLike | None = None) -> Array:
    """The condition numbers of matrices: norm(x, p) * norm(inv(x), p); inf where x is singular.

    For p None or 2, and -2, it is a quotient of singular values, and x need not be square.
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
    """L, lower triangular, with a = L L^H; or with `upper` U, with a = U^H U.

    For positive definite a (..., n, n); NaN where it is not. a is made Hermitian first, as
    (a + a^H) / 2, unless `symmetrize_input` says not to: then only its lower triangle is read.

    >>> print(jnp.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]])))
    [[2. 0.]
     [1. 2.]]
    """
    x = systems.check_matrices("cholesky", a, square=True)
    out = stacked.cholesky(x, symmetrize_input=symmetrize_input)
    return adjoint(out) if upper else out


@operation(static=("mode",))
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """a = Q R with unitary Q and upper triangular R, for a (..., m, n).

    `mode` is "reduced" (Q has min(m, n) columns), "complete" (m columns), "r" (R alone) or "raw"
    (R over Householder reflections, transposed, and their taus).
    """
    x = systems.check_matrices("qr", a)
    check_option("qr", "mode", mode, "reduced", "complete", "r", "raw")
    if mode == "raw":
        factors, taus = factorizations.geqrf(x)
        return QRResult(swap(factors), taus)
    q, r = factorizations.qr(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


def reads_lower(op: str, UPLO: str | None) -> bool:
    """Which triangle UPLO names."""
    check_option(op, "UPLO", UPLO, "L", "U", None)
    return UPLO != "U"


@operation(static=("UPLO", "symmetrize_input"))
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """The eigenvalues, ascending, and eigenvectors (columns) of Hermitian a (..., n, n).

    a is made Hermitian first, as (a + a^H) / 2, unless `symmetrize_input` says not to: then only
    its lower triangle is read, or the upper one where UPLO is "U".

    >>> print(jnp.linalg.eigh(jnp.array([[2., 1.], [1., 2.]])).eigenvalues)
    [1. 3.]
    """
    lower = reads_lower("eigh", UPLO)
    x = systems.check_matrices("eigh", a, square=True)
    v, w = eigen.eigh(x, lower=lower, symmetrize_input=symmetrize_input)
    return EighResult(w, v)


@operation(static=("UPLO", "symmetrize_input"))
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues, ascending, of Hermitian matrices: those of `eigh`.

    `symmetrize_input` is as in `eigh`.
    """
    lower = reads_lower("eigvalsh", UPLO)
    x = systems.check_matrices("eigvalsh", a, square=True)
    return eigen.eigh(x, lower=lower, symmetrize_input=symmetrize_input)[1]


@operation
def eig(a: ArrayLike) -> EigResult:
    """The eigenvalues and right eigenvectors (columns) of a (..., n, n); both are complex.

    Eigenvectors have norm 1 and no derivative; `lax.linalg.eig` has one with
    `enable_eigvec_derivs`.
    """
    x = systems.check_matrices("eig", a, square=True)
    return EigResult(*eigen.eig(x, compute_left_eigenvectors=False))


@operation
def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of a (..., n, n), complex, in LAPACK's order."""
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
    """a = U diag(S) Vh with unitary U and Vh, S descending, for a (..., m, n); S alone if not
    `compute_uv`.

    Without `full_matrices`, U has min(m, n) columns, and Vh as many rows. `hermitian` uses
    eigenvalues. `subset_by_index` asks for singular values start to stop alone.
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
    """The singular values of matrices, descending."""
    return eigen.svd(systems.check_matrices("svdvals", x), compute_uv=False)


# --- products -------------------------------------------------------------------------------


def multi_dot(arrays: Sequence[Any], *, precision: PrecisionLike = None) -> Array:
    """The product of matrices in the order that takes the fewest multiplications.

    The first and the last may be vectors: a row and a column. `precision` is as in `jnp.dot`.

    >>> jnp.linalg.multi_dot([jnp.ones((100, 2)), jnp.ones((2, 100)), jnp.ones(100)]).shape
    (100,)
    """
    return multiply_chain(as_sequence("multi_dot", "arrays", arrays), precision)


@operation(static=("precision",), name="multi_dot")
def multiply_chain(arrays: tuple, precision: Any) -> Any:
    """`multi_dot`."""
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
    """Where to split each chain of matrices, matrix i being sizes[i] by sizes[i + 1].

    Source: Cormen et al., "Introduction to Algorithms", section 14.2.
    """
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
    """The cross product of vectors of length 3 along an axis."""
    x, y = as_array(x1, "cross"), as_array(x2, "cross")
    places = [normalize_axis("cross", axis, v.ndim) for v in (x, y) if v.ndim]
    if len(places) < 2 or x.shape[axis] != 3 or y.shape[axis] != 3:
        raise ShapeError(f"cross: vectors must be of length 3; got {x.aval}, {y.aval}.")
    return cross_of(x, y, axis=axis)


@operation
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """All products of an element of one vector and one of another."""
    x, y = as_array(x1, "outer"), as_array(x2, "outer")
    if x.ndim != 1 or y.ndim != 1:
        raise ShapeError(
            f"outer: operands must be vectors; got {x.aval}, {y.aval}. Hint: jnp.outer."
        )
    return outer_of(x, y)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices (..., m, n), the main ones or `offset` above them."""
    return diagonal_of(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of the diagonals of matrices (..., m, n)."""
    return trace_of(x, offset, -2, -1, dtype)


# --- norms ----------------------------------------------------------------------------------


@operation(static=("ord", "axis", "keepdims"))
def norm(
    x: ArrayLike, ord: int | float | str | None = None, axis: Axis = None, keepdims: bool = False
) -> Array:
    """The norms of vectors along one axis, or of matrices in two; without `axis`, of all of x.

    Vectors: `ord` is a number p, for sum(|x|^p)^(1/p), 2 by default; inf or -inf for the largest
    or smallest |x|; 0 for how many are not 0. Matrices: "fro", the default, for the root of the sum
    of squares; "nuc" for the sum of singular values; 2 and -2 for the largest and smallest; 1 and
    -1, inf and -inf for the largest and smallest sums of |x| in columns, and in rows. Without
    `ord` and `axis`, x may have any number of axes.

    >>> print(jnp.linalg.norm(jnp.array([3., 4.])), jnp.linalg.norm(jnp.eye(3), "nuc"))
    5.0 3.0
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
    """The norms of the elements along axes, taken for one vector; `ord` as in `norm`."""
    x = as_inexact("vector_norm", x)
    axes = axes_of("vector_norm", axis, x.ndim)
    return compute_vector_norms("vector_norm", x, axes, 2 if ord is None else ord, keepdims)


@operation(static=("keepdims", "ord"))
def matrix_norm(
    x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str = "fro"
) -> Array:
    """The norms of matrices, in the last two axes; `ord` as in `norm`."""
    x = as_inexact("matrix_norm", x)
    if x.ndim < 2:
        raise ShapeError(f"matrix_norm: x must hold matrices (..., m, n); got {x.aval}.")
    axes = (x.ndim - 2, x.ndim - 1)
    return compute_matrix_norms("matrix_norm", x, axes, "fro" if ord is None else ord, keepdims)


def compute_vector_norms(op: str, x: Any, axes: tuple[int, ...], ord: Any, keepdims: bool) -> Any:
    """Norms over axes."""
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
    """Norms over two axes, of rows and of columns."""
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
