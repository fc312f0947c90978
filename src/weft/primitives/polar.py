"""The polar decomposition by QDWH iterations: products and factorizations, no eigenvalues.

Other decompositions are in factorizations.py and eigen.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import typeof
from weft.errors import ShapeError
from weft.primitives import families, layout, matrices
from weft.primitives.elementwise import abs, add, div, le, lt, mul, select, sub
from weft.primitives.factorizations import qr
from weft.primitives.linalg import cholesky, triangular_solve
from weft.primitives.reduction import reduce_max
from weft.primitives.slicing import concatenate
from weft.primitives.transcendental import sqrt
from weft.xla.typing import Array, ArrayLike


def weights(tolerance: float) -> Iterator[tuple[float, float, float]]:
    """a, b, c of each iteration, from a lower bound of the singular values that climbs to 1.

    The bound starts at `tolerance`, whatever the matrix: so the weights are numbers known now.
    """
    low = tolerance
    while math.fabs(low - 1) > 10 * tolerance:
        square = low * low
        d = (4 * (1 - square) / square**2) ** (1 / 3)
        root = math.sqrt(1 + d)
        a = root + math.sqrt(8 - 4 * d + 8 * (2 - square) / (square * root)) / 2
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        yield a, b, c
        low = min(low * (a + b * square) / (1 + c * square), 1.0)


def step_halley(u: Any, a: float, b: float, c: float) -> Any:
    """One step: u (a I + b u^H u) (I + c u^H u)^-1."""
    if c > 100:  # the small singular values of u^H u would be lost
        *lead, m, n = typeof(u).shape
        above = mul(u, math.sqrt(c))
        identity = matrices.identity_like(layout.full_like(u, 0, shape=(*lead, n, n)))
        q, _ = qr(concatenate([above, identity], len(lead)), full_matrices=False)
        turned = matrices.product(
            matrices.slice_rows(q, 0, m), matrices.adjoint(matrices.slice_rows(q, m, None))
        )
        return add(mul(u, b / c), mul(turned, (a - b / c) / math.sqrt(c)))
    gram = matrices.product(matrices.adjoint(u), u)
    factor = cholesky(add(matrices.identity_like(gram), mul(gram, c)), symmetrize_input=False)
    turned = triangular_solve(factor, u, lower=True, transpose_a=True, conjugate_a=True)
    turned = triangular_solve(factor, turned, lower=True)
    return add(mul(u, b / c), mul(turned, a - b / c))


def norm(x: Any, axis: int) -> Any:
    """The largest sum of sizes along rows (-1) or columns (-2)."""
    sums = layout.reduce_sum(abs(x), (typeof(x).ndim + axis,))
    return reduce_max(sums, (typeof(sums).ndim - 1,))


def read_tolerance(eps: Any) -> float:
    """Return `eps` of `qdwh`, the tolerance of the iteration; raise if it is not in (0, 1)."""
    if not isinstance(eps, int | float | np.number) or not 0 < eps < 1:
        raise ValueError(f"qdwh: eps must be a number above 0 and below 1; got {eps!r}.")
    return float(eps)


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Compute the polar decomposition x = U H.

    U has orthonormal columns, and H is Hermitian and positive semidefinite. The method is by
    Nakatsukasa, Bai and Gygi, "Optimizing Halley's iteration for computing the matrix polar
    decomposition" (2010), equations 3.8 to 3.12, with one more step by Newton and Schulz.

    Args:
      x: an array of floats or complex numbers of shape (..., m, n) with m >= n.
      is_hermitian: if True, x is known to be Hermitian. The default is False.
      max_iterations: the largest number of iterations. None, the default, is as many as `eps`
        needs.
      eps: the smallest singular value, relative to the largest, that counts as different from 0. It
        decides the number of iterations, which is the same for all matrices. None is the default of
        the dtype.
      dynamic_shape: a pair (rows, columns): only these first rows and columns of x are used. None,
        the default, uses all.

    Returns:
      A tuple (U, H, number of iterations, converged). The last is a bool.

    >>> u, h, _, converged = lax.linalg.qdwh(jnp.array([[0., -2.], [1., 0.]]))
    >>> print(abs(h).round(3), converged)
    [[1. 0.]
     [0. 2.]] True
    """
    aval = typeof(x, "qdwh")
    matrices.check_matrix("qdwh", aval)
    if aval.shape[-2] < aval.shape[-1]:
        raise ShapeError(
            f"qdwh: there must be at least as many rows as columns; got {aval}. "
            "Hint: take the adjoint, x = H U."
        )
    if dynamic_shape is not None:
        sizes = families.as_sequence("qdwh", "dynamic_shape", dynamic_shape)
        if len(sizes) != 2:
            raise ValueError(f"qdwh: dynamic_shape must be (rows, columns); got {sizes}.")
        for size, axis in zip(sizes, (aval.ndim - 2, aval.ndim - 1), strict=True):
            inside = lt(layout.broadcasted_iota(np.int32, aval.shape, axis), size)
            x = select(inside, x, layout.full_like(x, 0))
    tolerance = float(dtypes.finfo(aval.dtype).eps) if eps is None else read_tolerance(eps)
    steps = list(weights(tolerance))
    count = len(steps)
    if max_iterations is not None:
        count = min(count, families.check_integer("qdwh", "max_iterations", max_iterations, 0))
    size = sqrt(mul(norm(x, -1), norm(x, -2)))
    one = layout.full_like(size, 1)
    size = layout.convert(select(le(size, layout.full_like(size, 0)), one, size), aval.dtype)
    u = div(x, layout.broadcast_in_dim(size, aval.shape, range(aval.ndim - 2)))
    for a, b, c in steps[:count]:
        u = step_halley(u, a, b, c)
    # Where U is done, U U^H U is U; the last step squares the error.
    cube = matrices.product(u, matrices.adjoint(u), u)
    moved = norm(sub(cube, u), -1)
    furthest = reduce_max(moved, tuple(range(typeof(moved).ndim)))
    u = sub(mul(u, 1.5), mul(cube, 0.5))
    h = matrices.symmetrize(matrices.product(matrices.adjoint(u), x))
    return u, h, np.int32(count), le(furthest, math.sqrt(tolerance))
