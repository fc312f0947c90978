"""LU and QR factorizations, and the products of Householder reflections that QR is made of.

Decompositions by eigenvalues and singular values are in eigen.py, closed forms for small matrices
in small.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost
from weft.core.form import Form
from weft.errors import DtypeError, ShapeError
from weft.mesh.plugins import GPUS
from weft.primitives import matrices
from weft.primitives.elementwise import add, neg, sub
from weft.primitives.expr import Expr, count_along, scalar
from weft.primitives.families import Discrete, check_equal_dtypes, check_integer, zero_tangents
from weft.primitives.lapack import call_lapack
from weft.primitives.layout import full_like
from weft.primitives.linalg import triangular_solve
from weft.primitives.slicing import concatenate
from weft.primitives.small import is_small, write_lu
from weft.util import has_symbolic_size, min_size
from weft.xla.typing import Array, ArrayLike

# --- LU -------------------------------------------------------------------------------------


class Lu(matrices.MatrixPrimitive):
    """The factors of P x = L U in one matrix, below and from the diagonal; pivots; P as an order.

    L has a unit diagonal that is not stored. In step i, rows i and pivots[i] change places, for the
    largest pivot; row i of P x is row permutation[i] of x. Shapes: x (..., m, n), pivots
    (..., min(m, n)), permutation (..., m). Singular x gives zeros in the diagonal of U. Source:
    LAPACK getrf; derivative: Walter and Lehmann, "Algorithmic differentiation of linear algebra
    functions" (2010), section on the LU decomposition, extended to rectangular x.
    """

    name = "lu"
    form = Form.LU
    multiple_results = True

    def abstract_eval(self, x):
        matrices.check_matrix(self.name, x)
        *batch, m, n = x.shape
        pivots, order = (
            matrices.type_like(x, (*batch, min_size(m, n)), np.int32),
            matrices.type_like(x, (*batch, m), np.int32),
        )
        return [x, pivots, order]

    def write(self, hlo, outs, x):
        y, swaps = self.write_factors(hlo, outs[:2], x)
        return [y, swaps, lower_permutation(hlo, swaps, outs[2])]

    def write_factors(self, hlo: Any, outs: Sequence[ShapedArray], x: Any) -> list:
        """Write the factors and the pivots."""
        out, pivots = outs
        if is_small(out):
            return [*write_lu(hlo, x)]
        info = ShapedArray(out.shape[:-2], np.int32)
        y, swaps, _ = matrices.call_kernel(hlo, "getrf", [x], [out, pivots, info], {0: 0})
        return [y, (Expr(hlo, swaps) - 1).value]

    def jvp(self, primals, tangents):
        """With M = L^-1 P dx U^-1: dL = L tril(M, -1), dU = triu(M) U."""
        outs = self.apply(*primals)
        y, _, order = outs
        (t,) = tangents
        *_, m, n = typeof(y).shape
        k = min_size(m, n)
        # Extend L and U to square matrices with columns, or rows, of the identity.
        corner = matrices.slice_columns(y, 0, k)
        left = add(matrices.lower_part(corner, -1), matrices.identity_like(corner))
        left = grow_by_identity(left, m - k, right=True)
        right = grow_by_identity(
            matrices.upper_part(matrices.slice_rows(y, 0, k)), n - k, right=False
        )
        inner = triangular_solve(
            left, matrices.take_rows(t, order), left_side=True, lower=True, unit_diagonal=True
        )
        inner = triangular_solve(right, inner)
        dot = add(
            matrices.product(left, matrices.lower_part(inner, -1)),
            matrices.product(matrices.upper_part(inner), right),
        )
        return outs, [dot, *zero_tangents(outs[1:])]


def grow_by_identity(x: Any, by: int, right: bool) -> Any:
    """Append `by` columns of a square identity to x on the right, or as rows below."""
    if not by:
        return x
    shape = typeof(x).shape
    size = shape[-2] if right else shape[-1]
    square = full_like(x, 0, shape=(*shape[:-2], size, size))
    part = (matrices.slice_columns if right else matrices.slice_rows)(
        matrices.identity_like(square), size - by, size
    )
    return concatenate([x, part], len(shape) - 1 if right else len(shape) - 2)


lu_p = Lu()


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """Compute the LU factorization P x = L U with row exchanges.

    Args:
      x: an array of floats or complex numbers of shape (..., m, n). k is min(m, n) below.

    Returns:
      A tuple (lu, pivots, permutation). `lu` has L below its diagonal, without the ones on L's
      diagonal, and U on and above it. `pivots`, of shape (..., k): in step i, rows i and pivots[i]
      were exchanged. `permutation`, of shape (..., m): `x[permutation]` is P x.

    >>> factors, pivots, permutation = lax.linalg.lu(jnp.array([[1., 2.], [4., 6.]]))
    >>> print(factors, pivots, permutation)
    [[4.   6.  ]
     [0.25 0.5 ]] [1 1] [1 0]
    """
    factors, pivots, permutation = lu_p.apply(x)
    return factors, pivots, permutation


class LuPivotsToPermutation(Discrete, matrices.MatrixPrimitive):
    """The order that exchanging elements i and pivots[i] of 0, 1, ..., one i after another, gives.

    Shapes: pivots (..., k); out (..., permutation_size). Dtypes: int32.
    """

    name = "lu_pivots_to_permutation"
    form = Form.PIVOTS
    cost = Cost.REDUCTION
    core_rank = 1

    def abstract_eval(self, pivots, *, permutation_size):
        if pivots.dtype != np.int32:
            raise DtypeError(f"{self.name}: pivots must be int32; got {pivots}.")
        if pivots.ndim < 1 or pivots.shape[-1] > permutation_size:
            raise ShapeError(
                f"{self.name}: pivots must be vectors, no longer than the permutation; "
                f"got {pivots} for size {permutation_size}."
            )
        return [matrices.type_like(pivots, (*pivots.shape[:-1], permutation_size))]

    def write(self, hlo, outs, pivots, *, permutation_size):
        return [lower_permutation(hlo, pivots, outs[0])]


def lower_permutation(hlo: Any, pivots: Any, out: ShapedArray) -> Any:
    """Write the permutation for pivots.

    Each place is followed back through the exchanges, the last one first, to the original place of
    its element. So nothing is gathered or scattered, and the elements of a batch are independent.
    """
    *batch, k = pivots.aval.shape
    places = count_along(hlo, out, out.ndim - 1)

    def step(*state: Any) -> list:
        i, pivots, places = (Expr(hlo, x) for x in state)
        pivot = pivots.slice_at([*[i.like(0)] * len(batch), i], (*batch, 1))
        places = lower_exchange(places, i.new(hlo.spread(i.value, out)), pivot)
        return [(i - 1).value, pivots.value, places.value]

    def going(i: Any, *_: Any) -> list:
        return [(Expr(hlo, i) >= 0).value]

    if has_symbolic_size((k,)) or k > UNROLLED:
        if hlo.platform in GPUS:  # where each step of a loop takes 16 us
            kernel = "lu_pivots_to_permutation"
            return call_lapack(hlo, kernel, [pivots], [out], len(batch))[0]
        return hlo.while_loop([scalar(hlo, k - 1).value, pivots, places.value], going, step)[2]
    for i in reversed(range(k)):
        pivot = Expr(hlo, pivots).slice_axis(i, i + 1)
        places = lower_exchange(places, places.like(i), pivot)
    return places.value


UNROLLED = 16  # unrolled exchanges, which are compiled to one kernel


def lower_exchange(places: Expr, i: Expr, pivot: Expr) -> Expr:
    """Write places with `i` and `pivot`, which has one element for each row, exchanged."""
    pivot = pivot.broadcast(places.shape)
    other = places.compare("EQ", pivot).select(i, places)
    return places.compare("EQ", i).select(pivot, other)


lu_pivots_to_permutation_p = LuPivotsToPermutation()


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Convert the row exchanges of an LU factorization to a permutation.

    Args:
      pivots: an integer array of shape (..., k): in step i, rows i and pivots[i] are exchanged.
      permutation_size: the number of rows m, an int of at least k.

    Returns:
      An integer array of shape (..., m). `x[permutation]` has the rows in the new order.

    >>> print(lax.linalg.lu_pivots_to_permutation(jnp.array([1, 2]), 3))
    [1 2 0]
    """
    size = check_integer("lu_pivots_to_permutation", "permutation_size", permutation_size, 0)
    return lu_pivots_to_permutation_p.apply(pivots, permutation_size=size)[0]


def lu_solve(factors: Any, permutation: Any, b: Any) -> Any:
    """Solve A x = b, given the LU factors of A (..., n, n) and b (..., n, k)."""
    y = matrices.take_rows(b, permutation)
    y = triangular_solve(factors, y, left_side=True, lower=True, unit_diagonal=True)
    return triangular_solve(factors, y, left_side=True)


# --- QR -------------------------------------------------------------------------------------


class HouseholderProduct(matrices.MatrixPrimitive):
    """The first n columns of H_1 H_2 ... H_k, where H_i = I - taus[i] v_i v_i^H.

    v_i is column i of a below the diagonal, 1 on it and 0 above. Shapes: a (..., m, n) with m >= n,
    taus (..., k) with k <= n. Source: LAPACK orgqr.
    """

    name = "householder_product"
    no_derivative = "lax.linalg.qr, which has one"

    def abstract_eval(self, a, taus):
        matrices.check_matrix(self.name, a)
        check_reflections(self.name, a, taus)
        if a.shape[-2] < a.shape[-1] or taus.shape[-1] > a.shape[-1]:
            raise ShapeError(
                f"{self.name}: there must be at least as many rows as columns, and as many columns "
                f"as reflections; got {a}, {taus}."
            )
        return [ShapedArray(a.shape, a.dtype, a.weak_type and taus.weak_type)]

    def write(self, hlo, outs, a, taus):
        return [lower_product(hlo, a, taus)]


def check_reflections(op: str, a: ShapedArray, taus: ShapedArray) -> None:
    """Raise unless `taus` goes with `a`."""
    check_equal_dtypes(op, a, taus)
    if taus.shape[:-1] != a.shape[:-2] or taus.ndim < 1:
        raise ShapeError(
            f"{op}: operands must be of shapes (..., m, n) and (..., k); got {a}, {taus}."
        )


def lower_product(hlo: Any, a: Any, taus: Any) -> Any:
    """Write the product of reflections."""
    return matrices.call_kernel(hlo, "orgqr", [a, taus], [a.aval], {0: 0})[0]


householder_product_p = HouseholderProduct()


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """Multiply Householder reflections, which gives the unitary matrix Q.

    Reflection i is I - taus[i] v v^H. The vector v is column i of a below the diagonal, with 1 on
    the diagonal and 0 above it. It has no derivative.

    Args:
      a: the vectors, an array of shape (..., m, n), as LAPACK's geqrf returns them.
      taus: the factors, of shape (..., k) with k <= n.

    Returns:
      The first n columns of the product, an array of shape (..., m, n).

    >>> a = jnp.array([[0.0], [1.0]])  # v = (1, 1)
    >>> print(lax.linalg.householder_product(a, jnp.array([1.0])))
    [[ 0.]
     [-1.]]
    """
    return householder_product_p.apply(a, taus)[0]


class Ormqr(matrices.MatrixPrimitive):
    """Q c, or c Q where it is not `left`; Q^H in place of Q to `transpose`; Q = H_1 H_2 ... H_k.

    Shapes: a (..., r, k), taus (..., k) as of `householder_product`, c (..., m, n) with m = r, or
    n = r for the right side. Source: LAPACK ormqr.
    """

    name = "ormqr"
    no_derivative = "lax.linalg.qr, which has one, and a product"

    def abstract_eval(self, a, taus, c, *, left, transpose):
        matrices.check_matrix(self.name, a)
        check_reflections(self.name, a, taus)
        check_equal_dtypes(self.name, a, c)
        size = c.shape[-2 if left else -1] if c.ndim > 1 else None
        if c.shape[:-2] != a.shape[:-2] or size != a.shape[-2] or taus.shape[-1] > size:
            wanted = "(..., r, n)" if left else "(..., m, r)"
            raise ShapeError(
                f"{self.name}: operands must be of shapes (..., r, k), (..., k) and {wanted} with "
                f"k <= r; got {a}, {taus}, {c}."
            )
        return [ShapedArray(c.shape, c.dtype, a.weak_type and taus.weak_type and c.weak_type)]

    def lower(self, hlo, a, taus, c, *, left, transpose):
        if not (a.aval.size and taus.aval.size and c.aval.size):
            return [c]  # the product of no reflections is the identity
        options = {"left": str(bool(left)).lower(), "transpose": str(bool(transpose)).lower()}
        return matrices.call_kernel(hlo, "ormqr", [a, taus, c], [c.aval], {0: 2}, **options)


ormqr_p = Ormqr()


def ormqr(
    a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False
) -> Array:
    """Multiply by the unitary matrix Q of Householder reflections, without forming Q.

    It has no derivative.

    Args:
      a: the vectors of the reflections, of shape (..., r, k), as `householder_product` takes them.
      taus: their factors, of shape (..., k).
      c: the matrices that are multiplied: of shape (..., r, n) if `left`, else (..., m, r).
      left: if True, the default, the result is Q c. If False, it is c Q.
      transpose: if True, Q^H takes the place of Q. The default is False.

    Returns:
      An array of the shape of c.

    >>> a = jnp.array([[0.0], [1.0]])  # v = (1, 1)
    >>> print(lax.linalg.ormqr(a, jnp.array([1.0]), jnp.array([[1.0], [2.0]])))
    [[-2.]
     [-1.]]
    """
    return ormqr_p.apply(a, taus, c, left=bool(left), transpose=bool(transpose))[0]


class Geqrf(matrices.MatrixPrimitive):
    """x = Q R: R over the reflections that Q is made of in one matrix, and their taus.

    Shapes: x (..., m, n), taus (..., min(m, n)). Source: LAPACK geqrf.
    """

    name = "geqrf"
    no_derivative = "lax.linalg.qr, which has one"
    multiple_results = True

    def abstract_eval(self, x):
        matrices.check_matrix(self.name, x)
        return [x, matrices.type_like(x, (*x.shape[:-2], min_size(*x.shape[-2:])))]

    def write(self, hlo, outs, x):
        return matrices.call_kernel(hlo, "geqrf", [x], outs, {0: 0})


geqrf_p = Geqrf()


def geqrf(x: Any) -> tuple[Any, Any]:
    """R over the Householder reflections of a QR factorization in one matrix, and their taus.

    `householder_product` and `ormqr` take them. Without a derivative.
    """
    factors, taus = geqrf_p.apply(x)
    return factors, taus


class Qr(matrices.MatrixPrimitive):
    """x = Q R, or x[:, p] = Q R with `pivoting`: Q unitary, R upper triangular with real diagonal.

    Shapes: x (..., m, n); Q (..., m, k), R (..., k, n) where k = min(m, n), or m with
    `full_matrices`; p (..., n). With pivoting |R[i, i]| descends. Source: LAPACK geqrf, geqp3,
    orgqr; derivative: Walter and Lehmann (2010), section on the QR decomposition. The columns that
    `full_matrices` adds to Q are moved as the first ones demand, and not among themselves.
    """

    name = "qr"
    form = Form.QR
    multiple_results = True

    def abstract_eval(self, x, *, pivoting, full_matrices, use_magma):
        matrices.check_matrix(self.name, x)
        *batch, m, n = x.shape
        k = m if full_matrices else min_size(m, n)
        outs = [matrices.type_like(x, (*batch, m, k)), matrices.type_like(x, (*batch, k, n))]
        return [*outs, matrices.type_like(x, (*batch, n), np.int32)] if pivoting else outs

    def write(self, hlo, outs, x, *, pivoting, full_matrices, use_magma):
        q, r, *order = outs
        *batch, m, n = x.aval.shape
        taus = ShapedArray((*batch, min_size(m, n)), x.aval.dtype)
        if pivoting:
            free = hlo.constant(0, order[0].strong())
            made = [x.aval, free.aval, taus]
            y, places, taus = matrices.call_kernel(hlo, "geqp3", [x, free], made, {0: 0, 1: 1})
            order = [(Expr(hlo, places) - 1).value]
        else:
            y, taus = matrices.call_kernel(hlo, "geqrf", [x], [x.aval, taus], {0: 0})
        k = q.shape[-1]
        upper = lower_corner(hlo, y, r.shape[-2], n)
        return [
            lower_product(hlo, lower_corner(hlo, y, m, k), taus),
            self.completion.write_triangle(hlo, upper, "LE"),
            *order,
        ]

    def jvp(self, primals, tangents, **params):
        """Use that Q^H dQ is skew-Hermitian: Q^H dx R^-1 below the diagonal determines it."""
        outs = self.apply(*primals, **params)
        q, r, *order = outs
        (t,) = tangents
        if order:
            t = matrices.swap(matrices.take_rows(matrices.swap(t), order[0]))
        *_, m, n = typeof(t).shape
        k = min_size(m, n)
        moved = triangular_solve(
            matrices.slice_columns(matrices.slice_rows(r, 0, k), 0, k),
            matrices.slice_columns(t, 0, k),
        )
        inner = matrices.product(matrices.adjoint(q), moved)
        top = matrices.slice_rows(inner, 0, k)
        below = matrices.lower_part(top, -1)
        turn = sub(below, matrices.adjoint(below))
        if dtypes.is_complex(typeof(turn).dtype):
            turn = add(turn, matrices.imaginary_diagonal(top))
        if typeof(q).shape[-1] == k < m:
            dq = add(moved, matrices.product(q, sub(turn, top)))
        else:
            turn = complete_skew(turn, matrices.slice_rows(inner, k, None)) if m > k else turn
            dq = matrices.product(q, turn)
        dr = matrices.upper_part(
            sub(matrices.product(matrices.adjoint(q), t), matrices.product(turn, r))
        )
        return outs, [dq, dr, *zero_tangents(order)]


def complete_skew(x: Any, below: Any) -> Any:
    """[[x, -below^H], [below, 0]]: a skew-Hermitian matrix from its first columns."""
    right = neg(matrices.adjoint(below))
    corner = full_like(below, 0, shape=(*typeof(below).shape[:-1], typeof(below).shape[-2]))
    n = typeof(x).ndim
    return concatenate([concatenate([x, right], n - 1), concatenate([below, corner], n - 1)], n - 2)


def lower_corner(hlo: Any, x: Any, m: int, n: int) -> Any:
    """Write the first m rows and n columns of x, or x with more of them, zeros."""
    *batch, p, q = x.aval.shape
    none = [0] * len(batch)
    return Expr(hlo, x).pad([*none, 0, 0], [*none, m - p, n - q]).value


qr_p = Qr()


def qr(
    x: ArrayLike,
    *,
    pivoting: bool = False,
    full_matrices: bool = True,
    use_magma: bool | None = None,
) -> tuple:
    """Compute the QR factorization x = Q R.

    Args:
      x: an array of floats or complex numbers of shape (..., m, n). k is min(m, n) below.
      pivoting: if True, columns are exchanged so that the diagonal of R descends in size, and x[:,
        p] = Q R. The default is False.
      full_matrices: if True, the default, Q is square. If False, it has k columns.
      use_magma: a choice of library on GPUs. It has no effect on CPUs.

    Returns:
      A tuple (Q, R), or (Q, R, p) with pivoting. Q has orthonormal columns, and R is upper
      triangular. p is an integer array of shape (..., n).

    >>> q, r = lax.linalg.qr(jnp.array([[3., 1.], [4., 2.]]))
    >>> print(abs(q @ r - jnp.array([[3., 1.], [4., 2.]])).max() < 1e-6)
    True
    """
    return tuple(
        qr_p.apply(
            x, pivoting=bool(pivoting), full_matrices=bool(full_matrices), use_magma=use_magma
        )
    )
