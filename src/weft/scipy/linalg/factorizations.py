"""Linear systems, factorizations and eigenvalues: `solve`, `lu`, `qr`, `svd`, `eigh` and others."""

from __future__ import annotations

import functools
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
    """The determinants of square matrices."""
    return linalg.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverses of square matrices; inf or NaN where there is none. Prefer `solve`."""
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
    """x for which a x = b, for a (..., n, n) and b (n,) or (..., n, k).

    With `assume_a` "pos", a is positive definite, NaN coming out where it is not, and only its
    upper triangle is read, or the `lower` one. "gen", "sym" and "her" solve general systems.
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
    """x for which op(a) x = b, for triangular a (..., n, n) and b (n,) or (..., n, k).

    `trans` is 0 or "N" for a, 1 or "T" for its transpose, 2 or "C" for its conjugate transpose.
    Only the upper triangle is read, or the `lower` one, without the diagonal if `unit_diagonal`.

    >>> print(solve_triangular(jnp.array([[2., 1.], [0., 4.]]), jnp.array([4., 8.])))
    [1. 2.]
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
    """U, upper triangular, with a = U^H U; or with `lower` L, with a = L L^H.

    For positive definite a (..., n, n); NaN where it is not. The triangle that is read is the one
    of the result.
    """
    x = systems.check_matrices("cholesky", a, square=True)
    if lower:
        return triangular.cholesky(x, symmetrize_input=False)
    return matrices.adjoint(triangular.cholesky(matrices.adjoint(x), symmetrize_input=False))


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """(c, lower), what `cho_solve` takes: the Cholesky factor of a, and which one it is."""
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
    """x for which a x = b, from the `cho_factor` of a (..., n, n), for b (n,) or (..., n, k)."""
    c, lower = check_pair("cho_solve", "c_and_lower", c_and_lower)
    return cho_solve_arrays(c, b, bool(lower))


@operation(static=STATIC, name="cho_solve")
def cho_solve_arrays(c: Any, b: Any, lower: bool) -> Any:
    """`cho_solve`."""
    c, b, vector = systems.check_right_side("cho_solve", c, b, systems.HALF_TOO)
    x = solve_factored("cho_solve", c, lower, b)
    return x[..., 0] if vector else x


def solve_factored(op: str, c: Any, lower: bool, b: Any) -> Any:
    """x for which a x = b, from a Cholesky factor c of a and b (..., n, k)."""
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
    """(lu, pivots), what `lu_solve` takes: L below the diagonal of one matrix, and U; row i was
    exchanged with row pivots[i].
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
    """x for which a x = b, from the `lu_factor` of a (..., n, n), for b (n,) or (..., n, k).

    `trans` is 1 for the transpose of a, 2 for its conjugate transpose.
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
    """a = P L U: a permutation matrix, a lower one of unit diagonal, an upper one; or (P L, U).

    For a (..., m, n), L has min(m, n) columns and U as many rows.
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
    """a = Q R, or a[:, p] = Q R with `pivoting`: (Q, R), (Q, R, p); (R,), (R, p) for `mode` "r".

    For a (..., m, n), Q has m columns, or min(m, n) for `mode` "economic".
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
    """(c Q, R), or (Q c, R) for the "left" `mode`, and p with `pivoting`, where a[:, p] = Q R.

    For a (..., m, n) Q has min(m, n) columns. c is (..., p, m), or (..., min(m, n), p) on the left,
    or a vector. `conjugate` takes conj(Q) for Q.
    """
    check_option("qr_multiply", "mode", mode, "right", "left")
    a, c = promote_operands("qr_multiply", as_array(a), as_array(c), inexact=True, shaped=False)
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
    """a = U diag(s) Vh, as numpy.linalg.svd; s alone if not `compute_uv`.

    `lapack_driver` is "gesdd", which divides and conquers, or "gesvd".
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
    """Eigenvalues w, ascending, and eigenvectors v (columns) of Hermitian a (..., n, n).

    With b, positive definite, those of a v = w b v; of a b v = w v for `type` 2; of b a v = w v for
    type 3. `eigvals` asks for the eigenvalues of numbers first to last alone. Both operands are
    made Hermitian first, as (a + a^H) / 2, so `lower` is of no consequence.
    """
    check_option("eigh", "type", type, 1, 2, 3)
    subset = None
    if eigvals is not None:
        ((first, last),) = index_pairs("eigh", "eigvals", (eigvals,))
        subset = (first, last + 1)
    if b is None:
        v, w = eigen.eigh(systems.check_matrices("eigh", a, square=True), subset_by_index=subset)
        return w if eigvals_only else (w, v)
    a, b = promote_operands("eigh", as_array(a), as_array(b), inexact=True, shaped=False)
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
    """Eigenvalues, ascending, and eigenvectors of Hermitian tridiagonal matrices.

    d (n,) is the diagonal, e (n - 1,) the one below it. `select` is "a" for all eigenvalues, or "i"
    for those of numbers select_range[0] to select_range[1]. With eigenvectors, the matrix is built
    and decomposed as a whole. `tol` and `key` are of no consequence.
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
        subset = (int(select_range[0]), int(select_range[1]) + 1)
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
        """How many eigenvalues are less than x: as many as there are negative pivots of T - x I."""

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
    """That of the whole matrix."""
    return jvp(lambda d, e: tridiagonal_eigh(d, e, (start, stop))[1], primals, tangents)


@operation(static=STATIC)
def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """(T, Z) with a = Z T Z^H, for a (..., n, n): unitary Z, upper triangular T.

    For real a, complex eigenvalues are 2 x 2 blocks on the diagonal of T, unless `output` is
    "complex".
    """
    check_option("schur", "output", output, "real", "complex")
    as_matrices = complex_matrices if output == "complex" else systems.check_matrices
    t, z = eigen.schur(as_matrices("schur", a))
    return t, z


@operation(static=STATIC)
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """H with a = Q H Q^H and zeros below the subdiagonal; (H, Q) with `calc_q`."""
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
