"""Closed forms for matrices of up to four rows: elimination written out, for a whole batch at once.

What linalg.py and factorizations.py write in place of a loop over LAPACK calls, and the primitives
`small_solve` and `small_det`. All pivot as LAPACK does, and are as stable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost
from weft.core.primitive import Linear, Zero, not_linear
from weft.errors import ShapeError
from weft.primitives import matrices
from weft.primitives.elementwise import add, mul, rem, sub
from weft.primitives.expr import Expr, concatenate_exprs
from weft.primitives.families import check_equal_dtypes
from weft.primitives.layout import broadcasted_iota, convert, full_like, reduce_sum
from weft.primitives.slicing import concatenate
from weft.util import has_symbolic_size

LIMIT = 4  # the largest number of rows or columns that is written out


def is_small(x: ShapedArray) -> bool:
    """Return True if operations on matrices of this type are written out."""
    rows, columns = x.shape[-2:]
    if has_symbolic_size((rows, columns)):
        return all(n <= LIMIT if type(n) is int else n.is_below(LIMIT + 1) for n in (rows, columns))
    return max(rows, columns) <= LIMIT


# --- elements -------------------------------------------------------------------------------
#
# An element of each matrix of a batch is an Expr with the axes of the batch. A row or a column has
# one more axis, along which the element index varies.


def pivot_size(x: Expr) -> Expr:
    """Return |x|, or |Re x| + |Im x| for complex x, as LAPACK compares pivots."""
    size = abs(x.part("real"))
    return size + abs(x.part("imag")) if dtypes.is_complex(x.dtype) else size


def split_lines(hlo: Any, x: Any, axis: int) -> list[Expr]:
    """The rows (axis -2) or columns (axis -1) of matrices."""
    *batch, m, n = x.aval.shape
    shape = (*batch, n if axis == -2 else m)
    whole = Expr(hlo, x)
    return [whole.slice_axis(i, i + 1, axis).reshape(shape) for i in range(x.aval.shape[axis])]


def split_elements(hlo: Any, x: Any) -> list[list[Expr]]:
    """The elements of matrices, row by row."""
    *batch, m, n = x.aval.shape
    none, whole = [0] * len(batch), Expr(hlo, x)

    def element(i: int, j: int) -> Expr:
        return whole.slice((*none, i, j), (*batch, i + 1, j + 1)).reshape(batch)

    return [[element(i, j) for j in range(n)] for i in range(m)]


def stack_parts(parts: Sequence[Expr], axis: int) -> Expr:
    """The array whose slices along an axis, all of size 1, are `parts`."""
    shape = parts[0].shape
    return concatenate_exprs([c.reshape((*shape[:axis], 1, *shape[axis:])) for c in parts], axis)


def join_elements(x: Sequence[Sequence[Expr]]) -> Any:
    """Matrices, from their elements."""
    batch = x[0][0].shape
    line = stack_parts([c for row in x for c in row], len(batch))
    return line.reshape((*batch, len(x), len(x[0]))).value


# --- eliminations ---------------------------------------------------------------------------


def eliminate_columns(a: list[list[Expr]], steps: int) -> list[Expr]:
    """Factor in place with partial pivoting, as LAPACK's getrf; return the pivots (int32).

    The first `steps` columns are eliminated; the columns to their right are updated.
    """
    m = len(a)
    pivots = []
    for k in range(steps):
        pivots.append(pivot_rows(a, k))
        head = a[k][k]
        zero = head.compare("EQ", 0)
        for i in range(k + 1, m):
            # Where the pivot is 0 so are all below it, which LAPACK leaves unchanged.
            factor = a[i][k] = zero.select(a[i][k], a[i][k] / head)
            for j in range(k + 1, len(a[i])):
                a[i][j] = a[i][j] - factor * a[k][j]
    return pivots


def pivot_rows(a: list[list[Expr]], k: int) -> Expr:
    """Exchange row k with the one that has the largest element in column k; its number."""
    m, hlo = len(a), a[0][0].hlo
    largest = pivot_size(a[k][k])
    place = Expr(hlo, hlo.constant(k, ShapedArray(largest.shape, np.int32)))
    for i in range(k + 1, m):
        size = pivot_size(a[i][k])
        larger = size > largest
        largest = larger.select(size, largest)
        place = larger.select(place.like(i), place)
    taken = {i: place.compare("EQ", i) for i in range(k + 1, m)}
    for j in range(len(a[k])):
        before = chosen = a[k][j]
        for i, here in taken.items():
            chosen = here.select(a[i][j], chosen)
            a[i][j] = here.select(before, a[i][j])
        a[k][j] = chosen
    return place


def write_lu(hlo: Any, x: Any) -> tuple[Any, Any]:
    """Write the LU factors of small matrices in one matrix, and the pivots."""
    a = split_elements(hlo, x)
    pivots = eliminate_columns(a, min(x.aval.shape[-2:]))
    return join_elements(a), stack_parts(pivots, x.aval.ndim - 2).value


def write_cholesky(hlo: Any, x: Any) -> Any:
    """Write the lower Cholesky factors of small matrices; NaN where there are none."""
    a = split_elements(hlo, x)
    n = len(a)
    good = None
    for j in range(n):
        head = a[j][j].part("real")
        for k in range(j):
            square = a[j][k] * a[j][k].conjugate()
            head = head - square.part("real")
        positive = head > 0
        good = positive if good is None else good & positive
        a[j][j] = head.apply("sqrt").convert(x.aval.dtype)
        for i in range(j + 1, n):
            total = a[i][j]
            for k in range(j):
                total = total - a[i][k] * a[j][k].conjugate()
            a[i][j] = total / a[j][j]
            a[j][i] = a[j][j].like(0)
    nan = a[0][0].like(matrices.NAN[x.aval.dtype.kind])
    for i in range(n):
        a[i][: i + 1] = [good.select(c, nan) for c in a[i][: i + 1]]
    return join_elements(a)


def write_triangular(
    hlo: Any,
    a: Any,
    b: Any,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Any:
    """Write the solution of small triangular systems, by substitution."""
    e = split_elements(hlo, a)
    if transpose_a == left_side:  # x op(a) = b is solved as its transpose
        e, lower = [list(row) for row in zip(*e, strict=True)], not lower
    if conjugate_a:
        e = [[c.conjugate() for c in row] for row in e]
    axis = -2 if left_side else -1
    x = solve_triangle(e, split_lines(hlo, b, axis), lower, unit_diagonal)
    return stack_parts(x, b.aval.ndim + axis).value


def solve_triangle(e: list[list], b: list[Expr], lower: bool, unit: bool = False) -> list[Expr]:
    """Return the rows of the solution x of e x = b, for triangular e."""
    n = len(b)
    x: list[Any] = [None] * n
    for i in range(n) if lower else reversed(range(n)):
        total = b[i]
        for j in range(i) if lower else range(i + 1, n):
            total = total - e[i][j] * x[j]
        x[i] = total if unit else total / e[i][i]
    return x


# --- solve and det --------------------------------------------------------------------------


class SmallSolve(matrices.MatrixPrimitive):
    """The solution x of a x = b, by elimination with partial pivoting.

    inf or NaN where a is singular. Shapes: a (..., n, n) with n <= 4, b and x (..., n, k). Dtypes:
    as in LAPACK. Source: Higham, "Accuracy and Stability of Numerical Algorithms" (2002), algorithm
    9.2.
    """

    name = "small_solve"
    cost = Cost.REDUCTION

    def abstract_eval(self, a, b):
        check_equal_dtypes(self.name, a, b)
        matrices.check_matrix(self.name, a, square=True)
        check_size(self.name, a)
        if b.ndim < 2 or b.shape[:-1] != a.shape[:-1]:
            raise ShapeError(
                f"{self.name}: operands must be of shapes (..., n, n) and (..., n, k); "
                f"got {a}, {b}."
            )
        return [ShapedArray(b.shape, b.dtype, a.weak_type and b.weak_type)]

    def write(self, hlo, outs, a, b):
        e = split_elements(hlo, a)
        n = len(e)
        for row, line in zip(e, split_lines(hlo, b, -2), strict=True):
            row.append(line)
        eliminate_columns(e, n)
        x = solve_triangle(e, [row[n] for row in e], lower=False)
        return [stack_parts(x, b.aval.ndim - 2).value]

    def jvp(self, primals, tangents):
        """a dx = db - da x."""
        (a, _), (da, db) = primals, tangents
        (x,) = self.apply(*primals)
        moved = db
        if not isinstance(da, Zero):
            moved = matrices.subtract_tangents(db, matrices.product(da, x))
        return [x], self.apply(a, moved)

    def transpose(self, cts, a, b):
        if isinstance(a, Linear):
            raise not_linear(self.name, (a, b))
        return [None, *self.apply(matrices.swap(a), cts[0])]


def check_size(op: str, a: ShapedArray) -> None:
    """Raise unless matrices are small enough to be written out."""
    if not is_small(a):
        raise ShapeError(f"{op}: matrices must have at most {LIMIT} rows; got {a}.")


small_solve_p = SmallSolve()


def solve_small(a: Any, b: Any) -> Any:
    """Solve a x = b, for a (..., n, n) with n <= 4 and b (..., n, k)."""
    return small_solve_p.apply(a, b)[0]


class SmallDet(matrices.MatrixPrimitive):
    """The determinant, by elimination with partial pivoting.

    Shapes: a (..., n, n) with n <= 4, out (...). Dtypes: as LAPACK has them. The derivative, by
    cofactors, holds for singular matrices too.
    """

    name = "small_det"
    cost = Cost.REDUCTION

    def abstract_eval(self, a):
        matrices.check_matrix(self.name, a, square=True)
        check_size(self.name, a)
        return [matrices.type_like(a, a.shape[:-2])]

    def lower(self, hlo, a):
        (out,) = self.type_of((a.aval,), {})
        if not a.aval.size:
            return [hlo.constant(1, out.strong())]
        # The last two rows need no pivot: a d - b c is as exact as what elimination makes of it.
        e = split_elements(hlo, a)
        n = len(e)
        pivots = eliminate_columns(e, n - 2)
        det = e[-2][-2] * e[-1][-1] - e[-2][-1] * e[-1][-2] if n > 1 else e[0][0]
        for k, pivot in enumerate(pivots):
            head = e[k][k]
            det = det * pivot.compare("NE", k).select(-head, head)
        return [det.value]

    def jvp(self, primals, tangents):
        (a,), (t,) = primals, tangents
        n = typeof(a).ndim
        return self.apply(a), [reduce_sum(mul(cofactors(a), t), (n - 2, n - 1))]


small_det_p = SmallDet()


def det_small(a: Any) -> Any:
    """The determinant of a (..., n, n) with n <= 4."""
    return small_det_p.apply(a)[0]


def cofactors(a: Any) -> Any:
    """The matrix of cofactors of matrices of up to four rows: the derivative of the determinant.

    Element (i, j) is the minor of the rows and columns that follow i and j around, with the sign of
    bringing them back in order: none for three rows, (-1)^(i + j) for two or four.
    """
    n = typeof(a).shape[-1]
    if n < 2:
        return full_like(a, 1)
    around = repeat_lines(repeat_lines(a, -2), -1)

    def moved(i: int, j: int) -> Any:
        """a[(r + i) mod n, (c + j) mod n] at (r, c)."""
        return matrices.slice_columns(matrices.slice_rows(around, i, i + n), j, j + n)

    if n == 2:
        out = moved(1, 1)
    elif n == 3:
        out = sub(mul(moved(1, 1), moved(2, 2)), mul(moved(1, 2), moved(2, 1)))
    else:
        out = None
        for i, j, k in ((1, 2, 3), (2, 3, 1), (3, 1, 2)):
            inner = sub(mul(moved(2, j), moved(3, k)), mul(moved(2, k), moved(3, j)))
            term = mul(moved(1, i), inner)
            out = term if out is None else add(out, term)
    return out if n == 3 else mul(out, checkered_signs(a))


def repeat_lines(a: Any, axis: int) -> Any:
    """Matrices with their rows (axis -2) or columns (axis -1) written twice."""
    return concatenate([a, a], typeof(a).ndim + axis)


def checkered_signs(a: Any) -> Any:
    """1 and -1 by turns, as the squares of a chess board, in the type of a."""
    shape = typeof(a).shape
    places = add(*(broadcasted_iota(np.int32, shape, len(shape) - k) for k in (1, 2)))
    return convert(sub(1, mul(2, rem(places, 2))), typeof(a).dtype)
