"""Linear systems, inverses, determinants and least squares, each with its derivative.

numpy/linalg.py and scipy/linalg/ share these functions. Operands are arrays here, of float or
complex dtype. Derivatives come from the equations that results solve; none is the derivative of
a factorization.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft.api.custom_rules import custom_jvp
from weft.core.aval import typeof
from weft.errors import ShapeError
from weft.numpy.choice import where
from weft.numpy.elementwise import abs, imag, real
from weft.numpy.manipulation import broadcast_to, diagonal
from weft.numpy.promotion import as_array, as_inexact, broadcast_shapes, promote_operands
from weft.numpy.reductions import any, cumsum, max, prod, square_size, sum
from weft.numpy.sorting import argsort, sort
from weft.numpy.ufuncs import log, sign
from weft.primitives import matrices
from weft.primitives.eigen import eigh, invert_where, svd
from weft.primitives.factorizations import geqrf, lu, lu_solve
from weft.primitives.lapack import LETTERS
from weft.primitives.layout import convert
from weft.primitives.linalg import triangular_solve
from weft.primitives.small import det_small, is_small, solve_small

# What is computed without LAPACK takes half precision too.
HALF_TOO = ("float16", "bfloat16", *LETTERS)

# --- operands -------------------------------------------------------------------------------


def check_matrices(op: str, a: Any, square: bool = False) -> Any:
    """An operand as an array of matrices, of a dtype that LAPACK has."""
    x = as_inexact(op, a)
    matrices.check_matrix(op, x.aval, square)
    return x


def check_right_side(
    op: str, a: Any, b: Any, kinds: tuple[str, ...] = tuple(LETTERS)
) -> tuple[Any, Any, bool]:
    """Square matrices, columns of one dtype with them, and whether b was one vector."""
    a, b = promote_operands(op, as_array(a, op), as_array(b, op), inexact=True, shaped=False)
    matrices.check_matrix(op, a.aval, True, kinds)
    vector = b.ndim == 1
    if not b.ndim or b.shape[0 if vector else -2] != a.shape[-1]:
        hint = " Hint: b[..., None] for one vector for each matrix." * (b.shape == a.shape[:-1])
        raise ShapeError(
            f"{op}: operands must be of shapes (..., n, n) and (n,) or (..., n, k); "
            f"got {a.aval}, {b.aval}.{hint}"
        )
    return a, matrices.to_column(b) if vector else b, vector


def broadcast_batches(op: str, *xs: Any) -> list:
    """Arrays of matrices with their leading axes broadcast."""
    try:
        lead = broadcast_shapes(*[x.shape[:-2] for x in xs])
    except ShapeError:
        avals = ", ".join(str(x.aval) for x in xs)
        raise ShapeError(f"{op}: leading axes must broadcast together; got {avals}.") from None
    return [broadcast_to(x, (*lead, *x.shape[-2:])) for x in xs]


# --- systems --------------------------------------------------------------------------------


def solve_operands(op: str, a: Any, b: Any) -> Any:
    """Solve a x = b for a user's operands: a (..., n, n) and b (n,) or (..., n, k)."""
    a, b, vector = check_right_side(op, a, b)
    x = (
        apply_over_columns(a, b, solve_matrices)
        if a.ndim == 2
        else solve_matrices(*broadcast_batches(op, a, b))
    )
    return lax.squeeze(x, (x.ndim - 1,)) if vector else x


def apply_over_columns(a: Any, b: Any, apply: Any) -> Any:
    """apply(a, b) for one matrix and a batch b (..., n, k), whose columns stand side by side."""
    if b.ndim == 2:
        return apply(a, b)
    *lead, n, k = b.shape
    wide = lax.transpose(b, (b.ndim - 2, *range(b.ndim - 2), b.ndim - 1))
    x = apply(a, lax.reshape(wide, (n, math.prod(lead) * k)))
    x = lax.reshape(x, (x.shape[0], *lead, k))
    return lax.transpose(x, (*range(1, b.ndim - 1), 0, b.ndim - 1))


def solve_matrices(a: Any, b: Any) -> Any:
    """Solve a x = b, for a (..., n, n) and b (..., n, k)."""
    if is_small(typeof(a)):
        return solve_small(a, b)
    factors, _, permutation = lu(lax.stop_gradient(a))
    return solve_factored(a, factors, permutation, b)


def solve_factored(a: Any, factors: Any, permutation: Any, b: Any) -> Any:
    """Solve a x = b, given the LU factors of a; the factors get no derivative."""
    return lax.custom_linear_solve(
        functools.partial(matrices.product, a),
        b,
        lambda _, y: lu_solve(factors, permutation, y),
        lambda _, y: solve_transposed(factors, permutation, y),
    )


def solve_transposed(factors: Any, permutation: Any, b: Any, conjugate: bool = False) -> Any:
    """Solve A^T x = b, or A^H x = b, given the LU factors of A."""
    kind = {"left_side": True, "transpose_a": True, "conjugate_a": conjugate}
    y = triangular_solve(factors, b, **kind)
    y = triangular_solve(factors, y, lower=True, unit_diagonal=True, **kind)
    return matrices.take_rows(y, argsort(permutation))


def invert(a: Any) -> Any:
    """The inverses of a (..., n, n)."""
    return solve_matrices(a, matrices.identity_like(a))


# --- determinants ---------------------------------------------------------------------------


def find_pivot_sign(factors: Any, pivots: Any) -> Any:
    """1, or -1 where an odd number of rows were exchanged, in the dtype of the factors."""
    places = lax.broadcasted_iota(pivots.dtype, pivots.shape, pivots.ndim - 1)
    odd = sum(pivots != places, -1) & 1
    return convert(1 - 2 * odd, factors.dtype)


def compute_determinant(a: Any) -> Any:
    """The determinants of a (..., n, n)."""
    if dtypes.itemsize_bits(a.dtype) == 16:
        return convert(compute_determinant(convert(a, np.dtype(np.float32))), a.dtype)
    return det_small(a) if is_small(typeof(a)) else det_from_lu(a)


@custom_jvp
def det_from_lu(a: Any) -> Any:
    """The product of the pivots."""
    factors, pivots, _ = lu(a)
    return prod(diagonal(factors, 0, -2, -1), -1) * find_pivot_sign(factors, pivots)


@det_from_lu.defjvp
def differentiate_det(primals: tuple, tangents: tuple) -> tuple:
    """Jacobi's formula: d det(a) = tr(adj(a) da)."""
    (a,), (t,) = primals, tangents
    factors, pivots, permutation = lu(a)
    pivot = diagonal(factors, 0, -2, -1)
    parity = find_pivot_sign(factors, pivots)
    adj = compute_adjugate(factors, permutation, pivot, parity)
    return prod(pivot, -1) * parity, sum(matrices.swap(adj) * t, (-2, -1))


def compute_adjugate(factors: Any, permutation: Any, pivot: Any, parity: Any) -> Any:
    """adj(a) = det(a) a^-1 from LU factors, also where one pivot is 0; 0 where more are.

    With Y = U'^-1 L^-1 P, where U' has s in place of a pivot k that is 0, the adjugate is
    s^2 U'^-1 e_k e_k^T Y times the product of the other pivots.
    """
    zero = pivot == 0
    first = zero & (cumsum(zero, -1) == 1)
    scale = max(abs(pivot), -1, keepdims=True)
    scale = convert(where(scale == 0, 1, scale), pivot.dtype)
    shape = factors.shape
    filled = lax.broadcast_in_dim(where(zero, scale, pivot), shape, range(len(shape) - 1))
    upper = where(matrices.mask_diagonal(shape), filled, factors)
    y = matrices.take_rows(matrices.identity_like(factors), permutation)
    y = triangular_solve(factors, y, left_side=True, lower=True, unit_diagonal=True)
    y = triangular_solve(upper, y, left_side=True)
    chosen = matrices.to_column(convert(first, pivot.dtype))
    column = triangular_solve(upper, chosen, left_side=True)
    singular = (scale**2)[..., None] * column * sum(chosen * y, -2, keepdims=True)
    others = prod(where(first, 1, pivot), -1) * parity
    return others[..., None, None] * where(any(zero, -1)[..., None, None], singular, y)


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def compute_log_determinant(a: Any, by_qr: bool) -> tuple[Any, Any]:
    """The sign of the determinants of a (..., n, n), and the logarithm of their absolute value."""
    if by_qr:
        return multiply_pivots(*find_qr_pivots(a))
    factors, pivots, _ = lu(a)
    return multiply_pivots(diagonal(factors, 0, -2, -1), find_pivot_sign(factors, pivots))


def multiply_pivots(pivot: Any, parity: Any) -> tuple[Any, Any]:
    """The sign and the logarithm of the size of a product."""
    return prod(sign(pivot), -1) * parity, sum(log(abs(pivot)), -1)


def find_qr_pivots(a: Any) -> tuple[Any, Any]:
    """The diagonal of R of a QR factorization, and the determinant of Q."""
    factors, taus = geqrf(a)
    # That of I - tau v v^H, which is unitary, is -tau / conj(tau).
    still = taus == 0
    turn = -(sign(where(still, 1, taus)) ** 2)
    return diagonal(factors, 0, -2, -1), prod(where(still, 1, turn), -1)


@compute_log_determinant.defjvp
def differentiate_log_determinant(by_qr: bool, primals: tuple, tangents: tuple) -> tuple:
    """d log det(a) = tr(a^-1 da): its real part moves the logarithm, the rest turns the sign."""
    (a,), (t,) = primals, tangents
    out, inverted = compute_log_determinant(a, by_qr), invert(a)
    rate = sum(matrices.swap(inverted) * t, (-2, -1))
    if dtypes.is_complex(a.dtype):
        return out, (out[0] * (1j * imag(rate)), real(rate))
    return out, (0 * out[0], rate)


# --- singular values ------------------------------------------------------------------------


def compute_hermitian_svd(a: Any) -> tuple[Any, Any, Any]:
    """The singular value decomposition (U, s, V^H) of Hermitian a (..., n, n)."""
    v, w = eigh(a)
    size = abs(w)
    # The larger first: columns are put in order by their transposes' rows.
    descending = argsort(-size)
    order = lambda x: matrices.swap(matrices.take_rows(matrices.swap(x), descending))
    s, turned = -sort(-size), matrices.scale_columns(v, convert(where(w < 0, -1, 1), v.dtype))
    return order(v), s, matrices.adjoint(order(turned))


def decompose(a: Any, hermitian: bool) -> tuple[Any, Any, Any]:
    """The singular value decomposition (U, s, V^H) of a (..., m, n), without more columns."""
    return compute_hermitian_svd(a) if hermitian else svd(a, full_matrices=False)


def find_kept_values(s: Any, cutoff: Any) -> Any:
    """Return True for singular values above `cutoff`, of shape (...), times the largest."""
    if not s.shape[-1]:
        return s > 0
    return s > one_per_row(cutoff) * s[..., :1]


def one_per_row(x: Any) -> Any:
    """Return numbers of shape (...) as (..., 1), for rows of their own; a scalar as it is."""
    x = as_array(x)
    return x[..., None] if x.ndim else x


@functools.partial(custom_jvp, nondiff_argnums=(3,))
def solve_least_squares(a: Any, b: Any, cutoff: Any, hermitian: bool) -> tuple[Any, Any]:
    """Return the shortest x that minimizes the norm of a x - b, and the singular values of a.

    a (..., m, n); b (..., m, k), or None for the identity: then x is the pseudoinverse. Singular
    values up to `cutoff` times the largest count as 0.
    """
    u, s, vh = decompose(a, hermitian)
    inverted = invert_where(s, find_kept_values(s, cutoff))
    return multiply_pseudoinverse(u, inverted, vh, b), s


def multiply_pseudoinverse(u: Any, inverted: Any, vh: Any, b: Any) -> Any:
    """V diag(inverted) U^H b."""
    right = matrices.adjoint(u) if b is None else matrices.product(matrices.adjoint(u), b)
    return matrices.product(
        matrices.adjoint(vh), matrices.scale_rows(convert(inverted, right.dtype), right)
    )


@solve_least_squares.defjvp
def differentiate_least_squares(hermitian: bool, primals: tuple, tangents: tuple) -> tuple:
    """The solution moves as the pseudoinverse says, the singular values by diag(U^H da V)."""
    (a, b, cutoff), (da, db, _) = primals, tangents
    u, s, vh = decompose(a, hermitian)
    held = map(lax.stop_gradient, (u, invert_where(s, find_kept_values(s, cutoff)), vh))
    x, dx = move_solution(a, b, join_pseudoinverse(a, *held), da, db)
    ds = real(
        sum(matrices.swap(matrices.product(matrices.adjoint(u), da)) * matrices.adjoint(vh), -2)
    )
    return (x, s), (dx, ds)


@custom_jvp
def join_pseudoinverse(a: Any, u: Any, inverted: Any, vh: Any) -> Any:
    """Return the pseudoinverse of a from its factors, differentiated only in a.

    The factors have no derivatives if singular values are equal, but the pseudoinverse has one.
    """
    return multiply_pseudoinverse(u, inverted, vh, None)


@join_pseudoinverse.defjvp
def differentiate_pseudoinverse(primals: tuple, tangents: tuple) -> tuple:
    """The pseudoinverse as the solution for the identity."""
    return move_solution(primals[0], None, join_pseudoinverse(*primals), tangents[0], None)


def move_solution(a: Any, b: Any, inverse: Any, da: Any, db: Any) -> tuple[Any, Any]:
    """The least-squares solution for b, from the pseudoinverse of a, and how it moves.

    Golub and Pereyra, "The differentiation of pseudo-inverses" (1973), equation 4.12.
    """
    x = inverse if b is None else matrices.product(inverse, b)
    *lead, m, _ = a.shape
    whole = convert(matrices.mask_diagonal((*lead, m, m)), a.dtype) if b is None else b
    rest = whole - matrices.product(a, x)
    moved = -matrices.product(da, x) if db is None else db - matrices.product(da, x)
    back = matrices.adjoint(inverse)
    dx = matrices.product(
        inverse, moved + matrices.product(back, matrices.product(matrices.adjoint(da), rest))
    )
    outside = matrices.product(matrices.adjoint(da), matrices.product(back, x))
    return x, dx + outside - matrices.product(inverse, matrices.product(a, outside))


def compute_residual(a: Any, x: Any, b: Any) -> Any:
    """The sums of squares of the columns of a x - b."""
    return sum(square_size(b - matrices.product(a, x)), -2)


def find_epsilon(a: Any) -> float:
    """The spacing of numbers at 1 in the dtype of a."""
    return float(dtypes.finfo(typeof(a).dtype).eps)
