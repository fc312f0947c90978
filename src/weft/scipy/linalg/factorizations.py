"""Linear systems, factorizations and eigenvalues: `solve`, `lu`, `qr`, `svd`, `eigh` and others."""

from __future__ import annotations

import functools
import operator
from typing import Any

from weft import dtypes
from weft import numpy as jnp
from weft.api.custom_rules import custom_jvp
from weft.api.grad import jvp
from weft.api.while_loop import fori_loop
from weft.errors import ShapeError
from weft.numpy import linalg, systems
from weft.numpy.promotion import as_array, as_inexact, promote_operands
from weft.primitives import eigen, factorizations, matrices
from weft.primitives import linalg as triangular
from weft.primitives.families import index_pairs
from weft.run.operation import operation
from weft.scipy.linalg.functions import complex_matrices
from weft.util import check_option
from weft.xla.typing import Array, ArrayLike

# The options of the functions here, which are Python values.
STATIC = (
    "assume_a", "calc_q", "check_finite", "compute_uv", "conjugate", "debug", "eigvals",
    "eigvals_only", "full_matrices", "lapack_driver", "lower", "lwork", "mode", "output",
    "overwrite_a", "overwrite_b", "overwrite_c", "permute_l", "pivoting", "select", "select_range",
    "tol", "trans", "turbo", "type", "unit_diagonal",
)  # fmt: skip

# --- systems --------------------------------------------------------------------------------


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Compute the determinants of square matrices.

    The determinant is the product of the pivots of an LU factorization. Leading axes are a batch.

    Args:
      a: array of shape (..., n, n). Integers are converted to floats.
      overwrite_a: accepted for SciPy's sake and ignored: an array is never changed in place.
      check_finite: accepted for SciPy's sake and ignored: NaN and inf in the operand are not
        reported, they spread into the result.

    Returns:
      An array of shape (...), of the inexact dtype of `a`.

    Raises:
      ShapeError: if the last two axes of `a` are not of one size.

    >>> import weft.scipy.linalg
    >>> print(weft.scipy.linalg.det(jnp.array([[1., 2.], [3., 4.]])))
    -2.0
    """
    return linalg.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Compute the inverses of square matrices.

    Use `solve` where the inverse is only multiplied by something: it is cheaper and more precise. A
    singular matrix gives inf or NaN; SciPy raises an error there.

    Args:
      a: array of shape (..., n, n). Integers are converted to floats.
      overwrite_a: accepted for SciPy's sake and ignored: an array is never changed in place.
      check_finite: accepted for SciPy's sake and ignored: NaN and inf in the operand are not
        reported, they spread into the result.

    Returns:
      An array of shape (..., n, n), of the inexact dtype of `a`.

    Raises:
      ShapeError: if the last two axes of `a` are not of one size.

    >>> import weft.scipy.linalg
    >>> print(weft.scipy.linalg.inv(jnp.array([[2., 0.], [0., 4.]])))
    [[0.5  0.  ]
     [0.   0.25]]
    """
    return linalg.inv(a)


@operation(static=STATIC)
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Solve linear systems: find x such that a x = b.

    General matrices are factored as P L U, positive definite ones by Cholesky's method, which takes
    half the operations. Leading axes of `a` and `b` are a batch and broadcast together. A
    singular matrix gives inf or NaN; SciPy raises an error there.

    Args:
      a: array of shape (..., n, n), of a dtype of 32 or 64 bits (64 or 128 for complex numbers).
      b: array of shape (n,), or (..., n, k) for k right sides.
      lower: for `assume_a` "pos", read the lower triangle of `a` only; by default the upper one.
        Ignored otherwise.
      overwrite_a: accepted for SciPy's sake and ignored: an array is never changed in place.
      overwrite_b: accepted for SciPy's sake and ignored.
      debug: accepted for SciPy's sake and ignored.
      check_finite: accepted for SciPy's sake and ignored: NaN and inf in the operand are not
        reported, they spread into the result.
      assume_a: "gen" (default), "sym" and "her" solve a general system; "pos" takes `a` as
        Hermitian and positive definite, and gives NaN where it is not. A Python value, static under
        tracing.

    Returns:
      An array x of shape (n,) if `b` has one axis and `a` two, and of shape (..., n, k) if `b` is a
      matrix or a batch. The dtype is the common inexact dtype of the operands.

    Raises:
      ShapeError: if the operands do not have the shapes above.
      DtypeError: if the operands are 16-bit floats.
      ValueError: if `assume_a` is another name.

    >>> import weft.scipy.linalg
    >>> a, b = jnp.array([[4., 2.], [2., 3.]]), jnp.array([8., 7.])
    >>> print(weft.scipy.linalg.solve(a, b))
    [1.25 1.5 ]

    The same system, by Cholesky's method:

    >>> bool(jnp.allclose(weft.scipy.linalg.solve(a, b, assume_a="pos"), jnp.array([1.25, 1.5])))
    True
    """
    check_option("solve", "assume_a", assume_a, "gen", "sym", "her", "pos")
    if assume_a != "pos":
        return systems.solve_operands("solve", a, b)
    a, b, vector = systems.check_right_side("solve", a, b)
    c = triangular.cholesky(a if lower else matrices.adjoint(a), symmetrize_input=False)
    x = solve_factored("solve", c, True, b)
    return x[..., 0] if vector else x


TRANSPOSED = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


@operation(static=STATIC)
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """Solve triangular linear systems: find x such that op(a) x = b.

    One triangle of `a` is read, by substitution; no factorization is made. Leading axes of `a` and
    `b` are a batch and broadcast together. A zero on the diagonal gives inf or NaN; SciPy raises an
    error there.

    Args:
      a: array of shape (..., n, n), of an inexact dtype, 16-bit floats included.
      b: array of shape (n,), or (..., n, k) for k right sides.
      trans: 0 or "N" (default) solves with `a`, 1 or "T" with its transpose, 2 or "C" with its
        conjugate transpose. A Python value, static under tracing.
      lower: read the lower triangle of `a`; by default the upper one.
      unit_diagonal: take the diagonal as ones and do not read it. False by default.
      overwrite_b: accepted for SciPy's sake and ignored.
      debug: accepted for SciPy's sake and ignored.
      check_finite: accepted for SciPy's sake and ignored: NaN and inf in the operand are not
        reported, they spread into the result.

    Returns:
      An array x of shape (n,) or (..., n, k), of the common inexact dtype of the operands.

    Raises:
      ShapeError: if the operands do not have the shapes above.
      ValueError: if `trans` is another value.

    >>> import weft.scipy.linalg
    >>> a, b = jnp.array([[2., 1.], [0., 4.]]), jnp.array([4., 8.])
    >>> print(weft.scipy.linalg.solve_triangular(a, b))
    [1. 2.]
    >>> print(weft.scipy.linalg.solve_triangular(a, b, trans="T"))
    [2.  1.5]
    """
    check_option("solve_triangular", "trans", trans, *TRANSPOSED)
    kind = TRANSPOSED[trans]
    a, b, vector = systems.check_right_side("solve_triangular", a, b, systems.HALF_TOO)
    x = triangular.triangular_solve(
        *systems.broadcast_batches("solve_triangular", a, b),
        left_side=True,
        lower=lower,
        transpose_a=kind > 0,
        conjugate_a=kind == 2,
        unit_diagonal=unit_diagonal,
    )
    return x[..., 0] if vector else x


# --- Cholesky -------------------------------------------------------------------------------


@operation(static=STATIC)
def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Factor positive definite matrices as U^H U, or as L L^H.

    One triangle of `a` is read: the upper one for U, the lower one for L. The result has NaN in it
    where a matrix is not positive definite; SciPy raises an error there. Leading axes are a batch.

    Args:
      a: array of shape (..., n, n). Integers are converted to floats.
      lower: return L, lower triangular, with a = L L^H; by default U, upper triangular, with
        a = U^H U. A Python value, static under tracing.
      overwrite_a: accepted for SciPy's sake and ignored: an array is never changed in place.
      check_finite: accepted for SciPy's sake and ignored: NaN and inf in the operand are not
        reported, they spread into the result.

    Returns:
      An array of shape (..., n, n), of the inexact dtype of `a`, with zeros in the other triangle.

    Raises:
      ShapeError: if the last two axes of `a` are not of one size.

    >>> import weft.scipy.linalg
    >>> a = jnp.array([[4., 2.], [2., 10.]])
    >>> print(weft.scipy.linalg.cholesky(a))
    [[2. 1.]
     [0. 3.]]
    >>> print(weft.scipy.linalg.cholesky(a, lower=True))
    [[2. 0.]
     [1. 3.]]
    """
    x = systems.check_matrices("cholesky", a, square=True)
    if lower:
        return triangular.cholesky(x, symmetrize_input=False)
    return matrices.adjoint(triangular.cholesky(matrices.adjoint(x), symmetrize_input=False))


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Factor positive definite matrices, as `cho_solve` takes them.

    Factor once and solve for several right sides that are not known together. The other triangle of
    the factor is zero; in SciPy it keeps elements of `a`.

    Args:
      a: array of shape (..., n, n). One triangle is read.
      lower: compute the lower factor; by default the upper one.
      overwrite_a: accepted for SciPy's sake and ignored: an array is never changed in place.
      check_finite: accepted for SciPy's sake and ignored: NaN and inf in the operand are not
        reported, they spread into the result.

    Returns:
      A pair (c, lower): the Cholesky factor, of shape (..., n, n) and the inexact dtype of `a`, and
      the flag `lower`. The factor is NaN where `a` is not positive definite.

    Raises:
      ShapeError: if the last two axes of `a` are not of one size.

    >>> import weft.scipy.linalg
    >>> c, lower = weft.scipy.linalg.cho_factor(jnp.array([[4., 2.], [2., 10.]]))
    >>> print(c, lower)
    [[2. 1.]
     [0. 3.]] False
    """
    return cholesky(a, lower), lower


def check_pair(op: str, name: str, x: Any) -> tuple:
    """A pair that a factorization gave."""
    if not isinstance(x, tuple | list) or len(x) != 2:
        raise TypeError(f"{op}: {name} must be the pair that the factorization gave; got {x!r}.")
    return tuple(x)


def cho_solve(
    c_and_lower: tuple[Any, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve linear systems a x = b, given the Cholesky factor of a.

    Args:
      c_and_lower: the pair (c, lower) that `cho_factor` returned: a factor of shape (..., n, n),
        and a bool, True if it is the lower one.
      b: array of shape (n,), or (..., n, k) for k right sides.
      overwrite_b: accepted for SciPy's sake and ignored.
      check_finite: accepted for SciPy's sake and ignored: NaN and inf in the operand are not
        reported, they spread into the result.

    Returns:
      An array x of shape (n,) or (..., n, k), of the common inexact dtype of the operands.

    Raises:
      TypeError: if `c_and_lower` is not a pair.
      ShapeError: if the operands do not have the shapes above.

    >>> import weft.scipy.linalg
    >>> pair = weft.scipy.linalg.cho_factor(jnp.array([[4., 2.], [2., 10.]]))
    >>> print(weft.scipy.linalg.cho_solve(pair, jnp.array([8., 22.])))
    [1. 2.]
    """
    c, lower = check_pair("cho_solve", "c_and_lower", c_and_lower)
    return cho_solve_arrays(c, b, bool(lower))


@operation(static=STATIC, name="cho_solve")
def cho_solve_arrays(c: Any, b: Any, lower: bool) -> Any:
    """`cho_solve`."""
    c, b, vector = systems.check_right_side("cho_solve", c, b, systems.HALF_TOO)
    x = solve_factored("cho_solve", c, lower, b)
    return x[..., 0] if vector else x


def solve_factored(op: str, c: Any, lower: bool, b: Any) -> Any:
    """Solve a x = b, given a Cholesky factor c of a and b (..., n, k)."""
    c, b = systems.broadcast_batches(op, c, b)
    first = {"transpose_a": not lower, "conjugate_a": not lower}
    last = {"transpose_a": lower, "conjugate_a": lower}
    y = triangular.triangular_solve(c, b, left_side=True, lower=lower, **first)
    return triangular.triangular_solve(c, y, left_side=True, lower=lower, **last)


# --- LU -------------------------------------------------------------------------------------


@operation(static=STATIC)
def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """Factor matrices as P L U with partial pivoting, as `lu_solve` takes them.

    L, whose diagonal of ones is not stored, and U share one matrix. Leading axes are a batch. `lu`
    returns P, L and U as separate matrices.

    Args:
      a: array of shape (..., m, n). Integers are converted to floats.
      overwrite_a: accepted for SciPy's sake and ignored: an array is never changed in place.
      check_finite: accepted for SciPy's sake and ignored: NaN and inf in the operand are not
        reported, they spread into the result.

    Returns:
      A pair (lu, pivots): the factors, of shape (..., m, n) and the inexact dtype of `a`, and int32
      pivots of shape (..., min(m, n)): row i was exchanged with row pivots[i], in order of i.

    Raises:
      ShapeError: if `a` has fewer than two axes.

    >>> import weft.scipy.linalg
    >>> lu, pivots = weft.scipy.linalg.lu_factor(jnp.array([[0., 2.], [4., 2.]]))
    >>> print(lu, pivots)
    [[4. 2.]
     [0. 2.]] [1 1]
    """
    factors, pivots, _ = factorizations.lu(systems.check_matrices("lu_factor", a))
    return factors, pivots


@operation(static=STATIC)
def lu_solve(
    lu_and_piv: tuple[Any, Any],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve linear systems a x = b, given the LU factors of a.

    Args:
      lu_and_piv: the pair (lu, pivots) that `lu_factor` returned for a of shape (..., n, n).
      b: array of shape (n,), or (..., n, k) for k right sides.
      trans: 0 (default) solves with a, 1 with its transpose, 2 with its conjugate transpose. A
        Python value, static under tracing.
      overwrite_b: accepted for SciPy's sake and ignored.
      check_finite: accepted for SciPy's sake and ignored: NaN and inf in the operand are not
        reported, they spread into the result.

    Returns:
      An array x of shape (n,) or (..., n, k), of the common inexact dtype of the operands.

    Raises:
      TypeError: if `lu_and_piv` is not a pair.
      ShapeError: if the operands do not have the shapes above, or the pivots are not n.
      ValueError: if `trans` is another number.

    >>> import weft.scipy.linalg
    >>> pair = weft.scipy.linalg.lu_factor(jnp.array([[4., 2.], [2., 3.]]))
    >>> print(weft.scipy.linalg.lu_solve(pair, jnp.array([8., 7.])))
    [1.25 1.5 ]
    """
    check_option("lu_solve", "trans", trans, 0, 1, 2)
    factors, pivots = check_pair("lu_solve", "lu_and_piv", lu_and_piv)
    factors, b, vector = systems.check_right_side("lu_solve", factors, b)
    pivots = as_array(pivots, "lu_solve")
    if pivots.shape[-1:] != factors.shape[-1:]:
        raise ShapeError(
            f"lu_solve: there must be a pivot for each row; got {pivots.aval} for {factors.aval}."
        )
    order = factorizations.lu_pivots_to_permutation(pivots, factors.shape[-1])
    factors, b = systems.broadcast_batches("lu_solve", factors, b)
    order = jnp.broadcast_to(order, b.shape[:-1])
    if trans:
        x = systems.solve_transposed(factors, order, b, conjugate=trans == 2)
    else:
        x = factorizations.lu_solve(factors, order, b)
    return x[..., 0] if vector else x


@operation(static=STATIC)
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple:
    """Factor matrices as a = P L U with partial pivoting.

    P is a permutation matrix, L is lower triangular with ones on the diagonal, U is upper
    triangular. Leading axes are a batch. To solve systems, use `lu_factor`.

    Args:
      a: array of shape (..., m, n). Integers are converted to floats. Below, k is min(m, n).
      permute_l: return (P L, U) in place of (P, L, U). A Python value, static under tracing.
      overwrite_a: accepted for SciPy's sake and ignored: an array is never changed in place.
      check_finite: accepted for SciPy's sake and ignored: NaN and inf in the operand are not
        reported, they spread into the result.

    Returns:
      A triple (P, L, U) of shapes (..., m, m), (..., m, k) and (..., k, n); or the pair (P L, U)
      with `permute_l`. L and U have the inexact dtype of `a`, P the real dtype of the same
      precision.

    Raises:
      ShapeError: if `a` has fewer than two axes.

    >>> import weft.scipy.linalg
    >>> p, l, u = weft.scipy.linalg.lu(jnp.array([[0., 2.], [4., 2.]]))
    >>> print(u)
    [[4. 2.]
     [0. 2.]]
    >>> print(p @ l @ u)
    [[0. 2.]
     [4. 2.]]
    """
    x = systems.check_matrices("lu", a)
    m, k = x.shape[-2], min(x.shape[-2:])
    factors, _, order = factorizations.lu(x)
    left = matrices.slice_columns(factors, 0, k)
    left, right = (
        matrices.lower_part(left, -1) + matrices.identity_like(left),
        matrices.upper_part(matrices.slice_rows(factors, 0, k)),
    )
    rows = jnp.expand_dims(jnp.arange(m, dtype=order.dtype), (*range(x.ndim - 2), x.ndim - 1))
    p = rows == order[..., None, :]
    if permute_l:
        return matrices.product(p.astype(left.dtype), left), right
    return p.astype(dtypes.real_dtype(x.dtype)), left, right


# --- QR, singular values --------------------------------------------------------------------


@operation(static=STATIC)
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple:
    """Factor matrices as a = Q R: orthonormal columns times an upper triangular matrix.

    Leading axes are a batch. With `pivoting` the columns are permuted so that the diagonal of R
    does not grow in magnitude: a[:, p] = Q R. The derivative is NaN where columns depend on one
    another.

    Args:
      a: array of shape (..., m, n). Integers are converted to floats. Below, k is min(m, n).
      overwrite_a: accepted for SciPy's sake and ignored: an array is never changed in place.
      lwork: accepted for SciPy's sake and ignored.
      mode: "full" (default) returns a square Q; "economic" returns k columns of it; "r" returns R
        without Q. A Python value, static under tracing.
      pivoting: permute columns, and return the permutation as well. False by default.
      check_finite: accepted for SciPy's sake and ignored: NaN and inf in the operand are not
        reported, they spread into the result.

    Returns:
      A tuple (Q, R): of shapes (..., m, m) and (..., m, n), or for "economic" (..., m, k) and
      (..., k, n), both of the inexact dtype of `a`. For "r" the tuple is (R,), of shape (..., m,
      n). With `pivoting` the int32 permutation p, of shape (..., n), is its last element.

    Raises:
      ShapeError: if `a` has fewer than two axes.
      ValueError: if `mode` is another name. SciPy's "raw" is not offered.

    >>> import weft.scipy.linalg
    >>> a = jnp.array([[1., 2.], [3., 4.], [5., 6.]])
    >>> q, r = weft.scipy.linalg.qr(a, mode="economic")
    >>> q.shape, r.shape, bool(jnp.allclose(q @ r, a, atol=1e-5))
    ((3, 2), (2, 2), True)
    >>> q, r, p = weft.scipy.linalg.qr(a, pivoting=True)
    >>> print(p)
    [1 0]
    """
    x = systems.check_matrices("qr", a)
    check_option("qr", "mode", mode, "full", "r", "economic")
    out = factorizations.qr(x, pivoting=pivoting, full_matrices=mode != "economic")
    return out[1:] if mode == "r" else out


@operation(static=STATIC, name="qr_multiply")
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple:
    """Factor a = Q R and multiply a matrix by Q.

    Args:
      a: array of shape (..., m, n). Below, k is min(m, n).
      c: for `mode` "right", array of shape (..., p, m) or (m,); for "left", of shape (..., k, p) or
        (k,).
      mode: "right" (default) computes c Q, "left" computes Q c, for Q of k columns. A Python value,
        static under tracing.
      pivoting: permute the columns of `a`, so that a[:, p] = Q R, and return p as well.
      conjugate: multiply by the complex conjugate of Q, elementwise. False by default.
      overwrite_a: accepted for SciPy's sake and ignored: an array is never changed in place.
      overwrite_c: accepted for SciPy's sake and ignored.

    Returns:
      A tuple (product, R), and p of shape (..., n) with `pivoting`. The product has shape
      (..., p, k) for "right" and (..., m, p) for "left", or one axis if `c` is a vector; R has
      shape (..., k, n). The dtype is the common inexact dtype of `a` and `c`.

    Raises:
      ShapeError: if the sizes of `a` and `c` do not fit.
      ValueError: if `mode` is another name.

    >>> import weft.scipy.linalg
    >>> a, c = jnp.array([[3., 1.], [4., 2.]]), jnp.array([5., 10.])
    >>> product, r = weft.scipy.linalg.qr_multiply(a, c)
    >>> q, _ = weft.scipy.linalg.qr(a)
    >>> bool(jnp.allclose(product, c @ q, atol=1e-5))
    True
    """
    check_option("qr_multiply", "mode", mode, "right", "left")
    a, c = promote_operands(
        "qr_multiply",
        as_array(a, "qr_multiply"),
        as_array(c, "qr_multiply"),
        inexact=True,
        shaped=False,
    )
    matrices.check_matrix("qr_multiply", a.aval)
    vector, left = c.ndim == 1, mode == "left"
    c = (matrices.to_column(c) if left else c[None]) if vector else c
    size = min(a.shape[-2:]) if left else a.shape[-2]
    if c.ndim < 2 or c.shape[-2 if left else -1] != size:
        wanted = "rows" if left else "columns"
        raise ShapeError(
            f"qr_multiply: c must have {size} {wanted} for mode {mode!r}; got {a.aval}, {c.aval}."
        )
    q, r, *order = factorizations.qr(a, pivoting=pivoting, full_matrices=False)
    q = jnp.conj(q) if conjugate else q
    q, c = systems.broadcast_batches("qr_multiply", q, c)
    out = matrices.product(q, c) if left else matrices.product(c, q)
    return out.reshape(out.size) if vector and a.ndim == 2 else out, r, *order


@operation(static=STATIC)
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Compute singular value decompositions, a = U diag(s) Vh.

    The singular values descend. U and V have orthonormal columns. Leading axes are a batch.

    Args:
      a: array of shape (..., m, n). Integers are converted to floats. Below, k is min(m, n).
      full_matrices: return square U and Vh (default); if False, k columns of U and k rows of Vh. A
        Python value, static under tracing.
      compute_uv: return U and Vh as well as s. True by default.
      overwrite_a: accepted for SciPy's sake and ignored: an array is never changed in place.
      check_finite: accepted for SciPy's sake and ignored: NaN and inf in the operand are not
        reported, they spread into the result.
      lapack_driver: "gesdd" (default), which divides and conquers, or "gesvd", by QR iterations.

    Returns:
      A triple (U, s, Vh), of shapes (..., m, m), (..., k) and (..., n, n), or (..., m, k), (..., k)
      and (..., k, n) with full_matrices=False. U and Vh have the inexact dtype of `a`, s the real
      dtype of the same precision. With compute_uv=False, only s.

    Raises:
      ShapeError: if `a` has fewer than two axes.
      ValueError: if `lapack_driver` is another name.

    >>> import weft.scipy.linalg
    >>> print(weft.scipy.linalg.svd(jnp.array([[3., 0.], [0., -5.]]), compute_uv=False))
    [5. 3.]
    >>> u, s, vh = weft.scipy.linalg.svd(jnp.ones((3, 2)), full_matrices=False)
    >>> u.shape, s.shape, vh.shape
    ((3, 2), (2,), (2, 2))
    """
    check_option("svd", "lapack_driver", lapack_driver, "gesdd", "gesvd")
    algorithm = eigen.SvdAlgorithm.QR if lapack_driver == "gesvd" else None
    return eigen.svd(
        systems.check_matrices("svd", a),
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        algorithm=algorithm,
    )


# --- eigenvalues ----------------------------------------------------------------------------


@operation(static=STATIC)
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: tuple[int, int] | None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Compute eigenvalues and eigenvectors of Hermitian matrices.

    The eigenvalues are real and ascend; the eigenvectors are columns. With `b` the problem is the
    generalized one. Both operands are made Hermitian first, as (a + a^H) / 2, so where an
    operand is not Hermitian, results differ from SciPy's: SciPy reads one triangle.

    Args:
      a: array of shape (..., n, n). Integers are converted to floats.
      b: array of shape (..., n, n), Hermitian and positive definite; the result is NaN where it is
        not. None (default) stands for the identity.
      lower: accepted for SciPy's sake and ignored, as both triangles are read.
      eigvals_only: return the eigenvalues without the eigenvectors. False by default.
      overwrite_a: accepted for SciPy's sake and ignored: an array is never changed in place.
      overwrite_b: accepted for SciPy's sake and ignored.
      turbo: accepted for SciPy's sake and ignored.
      eigvals: a pair (first, last) of ints, counted from 0 and both included: compute only
        the eigenvalues of these positions. None (default) computes all. A Python value, static
        under tracing.
      type: 1 (default) solves a v = w b v, 2 solves a b v = w v, 3 solves b a v = w v. Without `b`
        it makes no difference.
      check_finite: accepted for SciPy's sake and ignored: NaN and inf in the operand are not
        reported, they spread into the result.

    Returns:
      A pair (w, v), of shapes (..., k) and (..., n, k), for k eigenvalues; or only w with
      `eigvals_only`. v has the inexact dtype of the operands, w the real dtype of that precision.

    Raises:
      ShapeError: if the operands are not square matrices of one size, or `eigvals` is out of range.
      TypeError: if `eigvals` is not a pair of ints.
      ValueError: if `type` is another number.

    >>> import weft.scipy.linalg
    >>> a = jnp.array([[2., 0.], [0., 3.]])
    >>> print(weft.scipy.linalg.eigh(a, eigvals_only=True))
    [2. 3.]
    >>> b = jnp.array([[4., 0.], [0., 1.]])
    >>> print(weft.scipy.linalg.eigh(a, b, eigvals_only=True))
    [0.5 3. ]
    """
    check_option("eigh", "type", type, 1, 2, 3)
    subset = None
    if eigvals is not None:
        ((first, last),) = index_pairs("eigh", "eigvals", (eigvals,))
        subset = (first, last + 1)
    if b is None:
        v, w = eigen.eigh(systems.check_matrices("eigh", a, square=True), subset_by_index=subset)
        return w if eigvals_only else (w, v)
    a, b = promote_operands(
        "eigh", as_array(a, "eigh"), as_array(b, "eigh"), inexact=True, shaped=False
    )
    for x in (a, b):
        matrices.check_matrix("eigh", x.aval, square=True)
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"eigh: a and b must be of one size; got {a.aval}, {b.aval}.")
    a, b = systems.broadcast_batches("eigh", (a + matrices.adjoint(a)) / 2, b)
    root = triangular.cholesky(b)
    solved = {"left_side": True, "lower": True}
    if type == 1:
        half = triangular.triangular_solve(root, a, **solved)
        inner = matrices.adjoint(
            triangular.triangular_solve(root, matrices.adjoint(half), **solved)
        )
    else:
        inner = matrices.product(matrices.adjoint(root), a, root)
    v, w = eigen.eigh(inner, subset_by_index=subset)
    if eigvals_only:
        return w
    if type == 3:
        return w, matrices.product(root, v)
    return w, triangular.triangular_solve(root, v, transpose_a=True, conjugate_a=True, **solved)


@operation(static=STATIC)
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: ArrayLike | None = None,
) -> Any:
    """Compute eigenvalues and eigenvectors of a Hermitian tridiagonal matrix.

    With `eigvals_only`, the eigenvalues are found by bisection, in memory that grows with n. With
    eigenvectors, the matrix is built and decomposed as a whole, in memory that grows with n * n.

    Args:
      d: array of shape (n,), the diagonal. Integers are converted to floats.
      e: array of shape (n - 1,), the diagonal below it. Complex numbers are allowed.
      eigvals_only: return the eigenvalues without the eigenvectors. False by default.
      select: "a" (default) for all eigenvalues, "i" for the positions in `select_range`. A
        Python value, static under tracing.
      select_range: a pair (first, last) of ints, counted from 0 and both included; only for
        `select` "i".
      tol: accepted for SciPy's sake and ignored: bisection goes on to the precision of the dtype.
      key: accepted for JAX's sake and ignored.

    Returns:
      A pair (w, v), of shapes (k,) and (n, k), for k eigenvalues, ascending, and eigenvectors as
      columns; or only w with `eigvals_only`.

    Raises:
      ShapeError: if the operands are not of shapes (n,) and (n - 1,).
      ValueError: if `select` is "i" and there is no `select_range`, or it names eigenvalues that
        there are not.
      NotImplementedError: if `select` is "v" (values in a range), as the number of eigenvalues, the
        shape of the result, would depend on the values.

    >>> import weft.scipy.linalg
    >>> w = weft.scipy.linalg.eigh_tridiagonal(
    ...     jnp.array([2., 2., 2.]), jnp.array([-1., -1.]), eigvals_only=True
    ... )
    >>> bool(jnp.allclose(w, jnp.array([2 - 2**0.5, 2., 2 + 2**0.5])))
    True
    """
    op = "eigh_tridiagonal"
    d, e = as_inexact(op, d), as_inexact(op, e)
    if d.ndim != 1 or e.ndim != 1 or e.shape[0] != d.shape[0] - 1:
        raise ShapeError(
            f"{op}: operands must be of shapes (n,) and (n - 1,); got {d.aval}, {e.aval}."
        )
    if select not in ("a", "i"):
        raise NotImplementedError(
            f"{op}: select must be 'a' or 'i', for results of known size; got {select!r}."
        )
    subset = None
    if select == "i":
        if select_range is None:
            raise ValueError(f"{op}: select_range must be given for select='i'; got None.")
        first, last = (operator.index(i) for i in select_range)
        if not 0 <= first <= last < d.shape[0]:
            raise ValueError(
                f"{op}: select_range must be (first, last) with 0 <= first <= last < {d.shape[0]}; "
                f"got {select_range}."
            )
        subset = (first, last + 1)
    if eigvals_only:
        return tridiagonal_values(d, e, *(subset or (0, d.shape[0])))
    v, w = tridiagonal_eigh(d, e, subset)
    return w, v


def tridiagonal_eigh(d: Any, e: Any, subset: tuple[int, int] | None) -> tuple[Any, Any]:
    """Eigenvectors and eigenvalues of a Hermitian tridiagonal matrix."""
    a = systems.check_matrices(
        "eigh_tridiagonal", jnp.diag(d) + jnp.diag(e, -1) + jnp.diag(jnp.conj(e), 1)
    )
    return eigen.eigh(a, symmetrize_input=False, subset_by_index=subset)


@functools.partial(custom_jvp, nondiff_argnums=(2, 3))
def tridiagonal_values(d: Any, e: Any, start: int, stop: int) -> Any:
    """Eigenvalues `start` to `stop` of a Hermitian tridiagonal matrix, by bisection.

    Source: Barth, Martin and Wilkinson, "Calculation of the eigenvalues of a symmetric tridiagonal
    matrix by the method of bisection" (1967).
    """
    systems.check_matrices("eigh_tridiagonal", d[None])
    n, size = d.shape[0], jnp.abs(e)
    square = jnp.pad(size * size, (1, 0))
    reach = jnp.pad(size, (1, 0)) + jnp.pad(size, (0, 1))
    numbers = jnp.arange(start, stop)
    low, high = (jnp.full(numbers.shape, x) for x in (jnp.min(d - reach), jnp.max(d + reach)))
    tiny = dtypes.finfo(d.dtype).tiny

    def below(x: Any) -> Any:
        """Count the eigenvalues less than x: the negative pivots of T - x I."""

        def step(i: Any, state: tuple) -> tuple:
            pivot, count = state
            pivot = d[i] - x - square[i] / pivot
            pivot = jnp.where(jnp.abs(pivot) < tiny, -tiny, pivot)
            return pivot, count + (pivot < 0).astype(count.dtype)

        return fori_loop(0, n, step, (jnp.ones_like(x), jnp.zeros_like(numbers)))[1]

    def halve(_: Any, state: tuple) -> tuple:
        low, high = state
        middle = (low + high) / 2
        left = below(middle) > numbers
        return jnp.where(left, low, middle), jnp.where(left, middle, high)

    low, high = fori_loop(0, dtypes.finfo(d.dtype).nmant + 4, halve, (low, high))
    return (low + high) / 2


@tridiagonal_values.defjvp
def tridiagonal_values_tangent(start: int, stop: int, primals: tuple, tangents: tuple) -> tuple:
    """Return the tangent of the eigenvalues, from the decomposition of the whole matrix."""
    return jvp(lambda d, e: tridiagonal_eigh(d, e, (start, stop))[1], primals, tangents)


@operation(static=STATIC)
def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """Compute Schur decompositions, a = Z T Z^H, of square matrices.

    Z is unitary and T upper triangular. For a real matrix and `output` "real", a pair of complex
    eigenvalues is a block of 2 x 2 on the diagonal of T, and both factors are real. Leading axes
    are a batch. Differentiation raises an error.

    Args:
      a: array of shape (..., n, n). Integers are converted to floats.
      output: "real" (default) returns factors of the dtype of `a`; "complex" returns complex ones,
        with T triangular. A Python value, static under tracing.

    Returns:
      A pair (T, Z) of arrays of shape (..., n, n), of the inexact dtype of `a`, or of the complex
      dtype of the same precision for "complex".

    Raises:
      ShapeError: if the last two axes of `a` are not of one size.
      ValueError: if `output` is another name.

    >>> import weft.scipy.linalg
    >>> a = jnp.array([[0., -1.], [1., 0.]])
    >>> t, z = weft.scipy.linalg.schur(a)
    >>> print(t)
    [[ 0. -1.]
     [ 1.  0.]]
    >>> t, z = weft.scipy.linalg.schur(a, output="complex")
    >>> bool(jnp.allclose(z @ t @ z.conj().T, a, atol=1e-5))
    True
    """
    check_option("schur", "output", output, "real", "complex")
    as_matrices = complex_matrices if output == "complex" else systems.check_matrices
    t, z = eigen.schur(as_matrices("schur", a))
    return t, z


@operation(static=STATIC)
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Reduce square matrices to Hessenberg form, a = Q H Q^H.

    H has zeros below the first subdiagonal and the eigenvalues of `a`; Q is unitary. Leading axes
    are a batch. Differentiation raises an error.

    Args:
      a: array of shape (..., n, n). Integers are converted to floats.
      calc_q: return Q as well. False by default. A Python value, static under tracing.
      overwrite_a: accepted for SciPy's sake and ignored: an array is never changed in place.
      check_finite: accepted for SciPy's sake and ignored: NaN and inf in the operand are not
        reported, they spread into the result.

    Returns:
      H, of shape (..., n, n) and the inexact dtype of `a`; or the pair (H, Q) with `calc_q`.

    Raises:
      ShapeError: if the last two axes of `a` are not of one size.

    >>> import weft.scipy.linalg
    >>> a = jnp.array([[1., 2., 3.], [3., 4., 5.], [4., 0., 1.]])
    >>> h, q = weft.scipy.linalg.hessenberg(a, calc_q=True)
    >>> float(h[2, 0]), bool(jnp.allclose(q @ h @ q.T, a, atol=1e-5))
    (0.0, True)
    """
    x = systems.check_matrices("hessenberg", a, square=True)
    reduced, taus = eigen.hessenberg(x)
    h, n = matrices.upper_part(reduced, -1), x.shape[-1]
    if not calc_q:
        return h
    if n < 2:
        return h, matrices.identity_like(x)
    inner = factorizations.householder_product(
        matrices.slice_columns(matrices.slice_rows(reduced, 1, n), 0, n - 1), taus
    )
    edges = [(0, 0)] * (x.ndim - 2) + [(1, 0), (1, 0)]
    inner = jnp.pad(inner, edges)
    first = jnp.arange(n) == 0
    return h, jnp.where(first[None] & first[:, None], 1, inner)
