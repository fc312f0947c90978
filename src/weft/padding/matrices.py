"""Rules for factorizations and solves of padded matrices.

The padding of a matrix A is set so that the padded matrix is [[A, 0], [0, I]]. Its factors are
block diagonal too. The first rows and columns hold the factors of A, and the others the factors of
the identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import weft.numpy as jnp
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Eqn
from weft.padding.contents import OrNaN, is_zero, strip_nan
from weft.padding.rules import Rule, apply_padded, is_padded, pad_batch
from weft.padding.sizes import FACTOR, IDENTITY, Sizes, choose_elements, refusal
from weft.primitives.eigen import Eigh, Svd
from weft.primitives.factorizations import Lu, Qr
from weft.primitives.layout import LeadingBatch, convert
from weft.primitives.linalg import Cholesky, TriangularSolve


def has_padded_core(eqn: Eqn) -> bool:
    """Return True if the matrices themselves are padded."""
    aval = eqn.invars[0].aval
    return any(is_padded(aval, a) for a in (aval.ndim - 2, aval.ndim - 1))


def complete(x: Any, aval: ShapedArray, sizes: Sizes) -> Any:
    """Return square matrices with 1 on the diagonal of the padding, and 0 elsewhere in it."""
    known = sizes.find_known(x)
    if IDENTITY in known:
        return known[IDENTITY] if known[IDENTITY] is not True else x
    inside = sizes.is_inside(aval, (aval.ndim - 2, aval.ndim - 1))
    if inside is None:
        return x
    padding = convert(sizes.is_on_diagonal(typeof(x).shape), typeof(x).dtype)
    found = choose_elements(inside, x, padding)
    sizes.note(x, {IDENTITY: found})
    sizes.note(found, {IDENTITY: True})
    return found


def pad_factorization(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Compute the LU or QR factors of [[A, 0], [0, I]], or of [[A, 0], [0, 0]] if A is not square.

    In a tall matrix, a 1 in the first column of the padding would be exchanged with, or reflected
    to, a row of A. Columns of zeros leave the rows of A where they are.
    """
    if not has_padded_core(eqn):
        return pad_batch(eqn, sizes, ins)
    aval = eqn.invars[0].aval
    if aval.shape[-2] != aval.shape[-1]:
        axes = (aval.ndim - 2, aval.ndim - 1)
        return apply_padded(eqn, sizes, [sizes.mask(ins[0], aval, axes, 0)])
    return apply_padded(eqn, sizes, [complete(ins[0], eqn.invars[0].aval, sizes)])


def pad_cholesky(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Compute the Cholesky factor of [[A, 0], [0, I]], which is [[L, 0], [0, I]].

    If A is not positive definite, all elements of the factor are NaN.
    """
    outs = pad_factorization(eqn, sizes, ins)
    if has_padded_core(eqn):
        sizes.note(outs[0], {IDENTITY: True, FACTOR: True})
    return outs


def pad_qr(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Compute the QR factors of [[A, 0], [0, I]].

    Pivoting is refused, because it could move columns of the padding to the front.
    """
    if has_padded_core(eqn) and eqn.params["pivoting"]:
        raise refusal(eqn, "a decomposition with pivots must have matrices of known sizes")
    return pad_factorization(eqn, sizes, ins)


def pad_triangular_solve(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Solve [[A, 0], [0, I]] x = [b, 0].

    The padding of x need not be 0: 0 * inf is NaN. But where all of a row of b is 0, so is the row
    of x that is solved with a Cholesky factor from the right, as the factor has no infinite numbers
    beside its diagonal, and no zeros on it. If the factor is NaN, so is all that is solved with it.
    Likewise for columns, from the left. If all of b is NaN, so is x.
    """
    a, b = ins
    of_a, of_b = [v.aval for v in eqn.invars]
    if not has_padded_core(eqn):
        return apply_padded(eqn, sizes, ins)
    axis = of_b.ndim - (2 if eqn.params["left_side"] else 1)
    other = 2 * of_b.ndim - 3 - axis
    whole = complete(a, of_a, sizes)
    is_factor = sizes.find_known(whole).get(FACTOR, False)
    if not is_zero(strip_nan(sizes.find_known(b).get(axis))):
        b = sizes.mask(b, of_b, (axis, other) if is_factor else (axis,), 0)
    outs = apply_padded(eqn, sizes, [whole, b])
    across = sizes.find_known(b).get(other)
    if is_factor and is_zero(strip_nan(across)):
        sizes.note(outs[0], {other: OrNaN(strip_nan(across))})
    return outs


def pad_eigh(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Compute eigenvalues with a diagonal in the padding that exceeds all eigenvalues of A.

    Eigenvalues are in ascending order, so the eigenvalues of the padding come last.
    """
    if not has_padded_core(eqn):
        return pad_batch(eqn, sizes, ins)
    if eqn.params["subset_by_index"] is not None:
        raise refusal(eqn, "a subset of eigenvalues must be of matrices of known sizes")
    return apply_padded(eqn, sizes, [complete_beyond(ins[0], eqn.invars[0].aval, sizes)])


def complete_beyond(x: Any, aval: ShapedArray, sizes: Sizes) -> Any:
    """Return square matrices [[A, 0], [0, cI]]; c exceeds all eigen- and singular values of A."""
    inner = sizes.mask(x, aval, (aval.ndim - 2, aval.ndim - 1), 0)
    norm = jnp.sum(jnp.abs(inner), axis=(-2, -1), keepdims=True)  # at least the largest one
    beyond = jnp.broadcast_to(2 * norm + 1, typeof(x).shape)
    inside = sizes.is_inside(aval, (aval.ndim - 2, aval.ndim - 1))
    if inside is None:
        return x
    on = jnp.logical_and(jnp.logical_not(inside), sizes.is_on_diagonal(typeof(inside).shape))
    return choose_elements(on, convert(beyond, aval.dtype), inner)


def pad_svd(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Compute singular values, and singular vectors of square matrices.

    The singular values of [[A, 0], [0, 0]] are those of A, followed by zeros. If A is singular, its
    vectors for the value 0 mix with those of the padding. So vectors are computed of
    [[A, 0], [0, cI]], where c exceeds all singular values. The values c and their vectors come
    first and are rotated to the end. In a matrix of two different sizes, the padding is not square:
    it has rows or columns without c, which are vectors for the value 0 again.
    """
    if not has_padded_core(eqn):
        return pad_batch(eqn, sizes, ins)
    aval = eqn.invars[0].aval
    vectors, square = eqn.params["compute_uv"], aval.shape[-1] == aval.shape[-2]
    if (vectors and not square) or eqn.params["subset_by_index"] is not None:
        raise refusal(
            eqn,
            "singular vectors must be of square matrices, or of matrices of known sizes",
            "jnp.linalg.svd(x, compute_uv=False), or jnp.linalg.eigh(x.T @ x)",
        )
    if vectors:
        outs = apply_padded(eqn, sizes, [complete_beyond(ins[0], aval, sizes)])
        n, axes = sizes.value(aval.shape[-1]), (-1, -1, -2)
        return [jnp.roll(y, n, axis) for y, axis in zip(outs, axes, strict=True)]
    return apply_padded(eqn, sizes, [sizes.mask(ins[0], aval, (aval.ndim - 2, aval.ndim - 1), 0)])


MATRIX_RULES: dict[type, Rule] = {
    LeadingBatch: lambda eqn, sizes, ins: (
        None if eqn.primitive.element is not None else pad_batch(eqn, sizes, ins)
    ),
    Cholesky: pad_cholesky,
    Lu: pad_factorization,
    Qr: pad_qr,
    TriangularSolve: pad_triangular_solve,
    Eigh: pad_eigh,
    Svd: pad_svd,
}
