"""Norms of vectors and matrices, of every order that NumPy has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft import dtypes
from weft.errors import ShapeError
from weft.numpy.elementwise import abs, power
from weft.numpy.fused import fused
from weft.numpy.manipulation import expand_dims, moveaxis
from weft.numpy.promotion import as_inexact, axes_of
from weft.numpy.reductions import max, min, square_size, sum
from weft.numpy.ufuncs import sqrt
from weft.primitives.eigen import svd
from weft.primitives.layout import convert
from weft.primitives.matrices import check_matrix

Axis = int | Sequence[int] | None


@fused(static=("ord", "axis", "keepdims"))
def norm(x: Any, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Any:
    """The norms of vectors along one axis, or of matrices in two; without `axis`, of all of x.

    Vectors: `ord` is a number p, for sum(|x|^p)^(1/p), 2 by default; inf or -inf for the largest
    or smallest |x|; 0 for how many are not 0. Matrices: "fro", the default, for the root of the sum
    of squares; "nuc" for the sum of singular values; 2 and -2 for the largest and smallest; 1 and
    -1, inf and -inf for the largest and smallest sums of |x| in columns, and in rows. Without
    `ord` and `axis`, x may have any number of axes.

    >>> import weft.numpy as jnp
    >>> print(jnp.linalg.norm(jnp.array([3., 4.])), jnp.linalg.norm(jnp.eye(3), "nuc"))
    5.0 3.0
    """
    x = as_inexact("norm", x)
    axes = axes_of("norm", axis, x.ndim)
    if (ord is None and axis is None) or len(axes) == 1:
        return vector_norms("norm", x, axes, 2 if ord is None else ord, keepdims)
    if len(axes) != 2:
        raise ShapeError(
            "norm: there must be one axis, for vectors, or two, for matrices; "
            f"got axis {axis} of {x.aval}. Hint: jnp.linalg.vector_norm."
        )
    return matrix_norms("norm", x, axes, "fro" if ord is None else ord, keepdims)


@fused(static=("axis", "keepdims", "ord"))
def vector_norm(x: Any, /, *, axis: Axis = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norms of the elements along axes, taken for one vector; `ord` as in `norm`."""
    x = as_inexact("vector_norm", x)
    axes = axes_of("vector_norm", axis, x.ndim)
    return vector_norms("vector_norm", x, axes, 2 if ord is None else ord, keepdims)


@fused(static=("keepdims", "ord"))
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norms of matrices, in the last two axes; `ord` as in `norm`."""
    x = as_inexact("matrix_norm", x)
    if x.ndim < 2:
        raise ShapeError(f"matrix_norm: x must hold matrices (..., m, n); got {x.aval}.")
    axes = (x.ndim - 2, x.ndim - 1)
    return matrix_norms("matrix_norm", x, axes, "fro" if ord is None else ord, keepdims)


def vector_norms(op: str, x: Any, axes: tuple[int, ...], ord: Any, keepdims: bool) -> Any:
    """Norms over axes."""
    if isinstance(ord, str):
        raise ValueError(f"{op}: ord must be a number for vectors; got {ord!r}. Hint: jnp.inf.")
    if ord == 2:
        return sqrt(sum(square_size(x), axes, keepdims=keepdims))
    if ord == math.inf:
        return max(abs(x), axes, keepdims=keepdims, initial=0)
    if ord == -math.inf:
        return min(abs(x), axes, keepdims=keepdims)
    if ord == 0:
        return sum(convert(x != 0, dtypes.real_dtype(x.dtype)), axes, keepdims=keepdims)
    if ord == 1:
        return sum(abs(x), axes, keepdims=keepdims)
    return power(sum(power(abs(x), ord), axes, keepdims=keepdims), 1 / ord)


def matrix_norms(op: str, x: Any, axes: tuple[int, ...], ord: Any, keepdims: bool) -> Any:
    """Norms over two axes, of rows and of columns."""
    if ord == "fro":
        return vector_norms(op, x, axes, 2, keepdims)
    row, column = axes
    if ord in (1, -1, math.inf, -math.inf):
        summed, chosen = (column, row) if math.isinf(ord) else (row, column)
        sums = sum(abs(x), summed, keepdims=True)
        out = (
            max(sums, chosen, keepdims=True, initial=0)
            if ord > 0
            else min(sums, chosen, keepdims=True)
        )
        return out if keepdims else out.squeeze(axes)
    if ord not in ("nuc", 2, -2):
        raise ValueError(
            f"{op}: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf for matrices; got {ord!r}."
        )
    check_matrix(op, x.aval)
    s = svd(moveaxis(x, axes, (-2, -1)), compute_uv=False)
    out = sum(s, -1) if ord == "nuc" else max(s, -1, initial=0) if ord == 2 else min(s, -1)
    return expand_dims(out, axes) if keepdims else out
