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
from weft.core.primitive import Linear, Zero, not_linear
from weft.errors import ShapeError
from weft.primitives.elementwise import add, difference, mul, rem, sub
from weft.primitives.layout import broadcasted_iota, convert, full_like, reduce_sum
from weft.primitives.matrices import (
    NAN,
    MatrixPrimitive,
    check_alike,
    check_matrix,
    columns,
    identity_like,
    product,
    rows,
    shaped,
    swap,
)
from weft.primitives.slicing import concatenate, lower_slice
from weft.xla.hlo import i64s

LIMIT = 4  # the largest number of rows or columns that is written out


def is_small(x: ShapedArray) -> bool:
    """Whether operations on matrices of this type are written out."""
    return max(x.shape[-2:]) <= LIMIT


# --- elements -------------------------------------------------------------------------------


class Cell:
    """One element of each matrix of a batch, or one row or column of each: a value to write with.

    Elements have the axes of the batch, rows and columns one more, along which elements repeat.
    """

    __slots__ = ("hlo", "value")

    def __init__(self, hlo: Any, value: Any):
        self.hlo = hlo
        self.value = value

    def apply(self, name: str, *others: Cell) -> Cell:
        """An operation with one result of the operands' type."""
        cells = (self, *others)
        widest = max((c.value.aval for c in cells), key=lambda a: a.ndim)
        values = [c.spread(widest) for c in cells]
        return Cell(self.hlo, self.hlo.like(name, *values)[0])

    def spread(self, like: ShapedArray) -> Any:
        """The value, repeated along an axis that it lacks."""
        x = self.value
        if x.aval.shape == like.shape:
            return x
        out = x.aval.update(shape=like.shape)
        dims = i64s(range(x.aval.ndim))
        return self.hlo.op("stablehlo.broadcast_in_dim", [x], [out], broadcast_dimensions=dims)[0]

    def __add__(self, other: Cell) -> Cell:
        return self.apply("add", other)

    def __sub__(self, other: Cell) -> Cell:
        return self.apply("subtract", other)

    def __mul__(self, other: Cell) -> Cell:
        return self.apply("multiply", other)

    def __truediv__(self, other: Cell) -> Cell:
        return self.apply("divide", other)

    def __and__(self, other: Cell) -> Cell:
        return self.apply("and", other)

    def __invert__(self) -> Cell:
        return self.apply("not")

    def compare(self, direction: str, other: Cell) -> Cell:
        """Whether it is so, as truth values."""
        return Cell(self.hlo, self.hlo.compare(direction, self.value, other.value))

    def choose(self, yes: Cell, no: Cell) -> Cell:
        """`yes` where this is true, else `no`."""
        aval = yes.value.aval
        operands = [self.spread(aval), yes.value, no.value]
        return Cell(self.hlo, self.hlo.op("stablehlo.select", operands, [aval])[0])

    def number(self, value: Any) -> Cell:
        """A number in the type of this."""
        return Cell(self.hlo, self.hlo.constant(value, self.value.aval.strong()))

    def part(self, name: str) -> Cell:
        """The real or imaginary part, or a real cell itself."""
        aval = self.value.aval
        if not dtypes.is_complex(aval.dtype):
            return self
        out = aval.update(dtype=dtypes.real_dtype(aval.dtype))
        return Cell(self.hlo, self.hlo.op(f"stablehlo.{name}", [self.value], [out])[0])

    def conjugate(self) -> Cell:
        """The complex conjugate."""
        if not dtypes.is_complex(self.value.aval.dtype):
            return self
        parts = [self.part("real").value, self.part("imag").apply("negate").value]
        return Cell(self.hlo, self.hlo.op("stablehlo.complex", parts, [self.value.aval])[0])

    def size(self) -> Cell:
        """|x|, or |Re x| + |Im x|, by which LAPACK compares pivots."""
        size = self.part("real").apply("abs")
        complex_valued = dtypes.is_complex(self.value.aval.dtype)
        return size + self.part("imag").apply("abs") if complex_valued else size


def lines(hlo: Any, x: Any, axis: int) -> list[Cell]:
    """The rows (axis -2) or columns (axis -1) of matrices."""
    *batch, m, n = x.aval.shape
    at = x.aval.ndim + axis
    other = n if axis == -2 else m
    out = []
    for i in range(x.aval.shape[at]):
        starts, limits = [0] * x.aval.ndim, list(x.aval.shape)
        starts[at], limits[at] = i, i + 1
        cut = x.aval.update(shape=tuple(b - a for a, b in zip(starts, limits, strict=True)))
        line = lower_slice(hlo, x, starts, limits, None, cut)
        flat = x.aval.update(shape=(*batch, other))
        out.append(Cell(hlo, hlo.op("stablehlo.reshape", [line], [flat])[0]))
    return out


def cells(hlo: Any, x: Any) -> list[list[Cell]]:
    """The elements of matrices, row by row."""
    *batch, m, n = x.aval.shape
    one = x.aval.update(shape=tuple(batch))
    none = [0] * len(batch)
    out = []
    for i in range(m):
        row = []
        for j in range(n):
            cut = x.aval.update(shape=(*batch, 1, 1))
            cell = lower_slice(hlo, x, (*none, i, j), (*batch, i + 1, j + 1), None, cut)
            row.append(Cell(hlo, hlo.op("stablehlo.reshape", [cell], [one])[0]))
        out.append(row)
    return out


def assembled(hlo: Any, parts: Sequence[Cell], out: ShapedArray, axis: int) -> Any:
    """The array whose slices along an axis, all of size 1, are `parts`."""
    shape = list(out.shape)
    shape[axis] = 1
    piece = out.update(shape=tuple(shape), dtype=parts[0].value.aval.dtype)
    values = [hlo.op("stablehlo.reshape", [c.value], [piece])[0] for c in parts]
    if len(values) == 1:
        return values[0]
    return hlo.op("stablehlo.concatenate", values, [out], dimension=f"{axis} : i64")[0]


def matrix_of(hlo: Any, x: Sequence[Sequence[Cell]], out: ShapedArray) -> Any:
    """Matrices, from their elements."""
    *batch, m, n = out.shape
    flat = out.update(shape=(*batch, m * n))
    line = assembled(hlo, [c for row in x for c in row], flat, len(batch))
    return hlo.op("stablehlo.reshape", [line], [out])[0]


# --- eliminations ---------------------------------------------------------------------------


def eliminated(a: list[list[Cell]], steps: int) -> list[Cell]:
    """Factor in place with partial pivoting, as LAPACK's getrf; the pivots (int32) are returned.

    As many columns as there are `steps` are eliminated; what stands right of them moves along.
    """
    m = len(a)
    pivots = []
    for k in range(steps):
        pivots.append(pivoted(a, k))
        head = a[k][k]
        zero = head.compare("EQ", head.number(0))
        for i in range(k + 1, m):
            # Where the pivot is 0 so are all below it, which LAPACK leaves as they are.
            factor = a[i][k] = zero.choose(a[i][k], a[i][k] / head)
            for j in range(k + 1, len(a[i])):
                a[i][j] = a[i][j] - factor * a[k][j]
    return pivots


def pivoted(a: list[list[Cell]], k: int) -> Cell:
    """Exchange row k with the one that has the largest element in column k; its number."""
    m, hlo = len(a), a[0][0].hlo
    largest = a[k][k].size()
    number = ShapedArray(largest.value.aval.shape, np.int32)
    place = Cell(hlo, hlo.constant(k, number))
    for i in range(k + 1, m):
        size = a[i][k].size()
        larger = size.compare("GT", largest)
        largest = larger.choose(size, largest)
        place = larger.choose(place.number(i), place)
    taken = {i: place.compare("EQ", place.number(i)) for i in range(k + 1, m)}
    for j in range(len(a[k])):
        before = chosen = a[k][j]
        for i, here in taken.items():
            chosen = here.choose(a[i][j], chosen)
            a[i][j] = here.choose(before, a[i][j])
        a[k][j] = chosen
    return place


def write_lu(hlo: Any, x: Any) -> tuple[Any, Any]:
    """Write the LU factors of small matrices in one matrix, and the pivots."""
    a = cells(hlo, x)
    *batch, m, n = x.aval.shape
    pivots = eliminated(a, min(m, n))
    out = ShapedArray((*batch, min(m, n)), np.int32)
    return matrix_of(hlo, a, x.aval), assembled(hlo, pivots, out, len(batch))


def write_cholesky(hlo: Any, x: Any) -> Any:
    """Write the lower Cholesky factors of small matrices; NaN where there are none."""
    a = cells(hlo, x)
    n = len(a)
    good = None
    for j in range(n):
        head = a[j][j].part("real")
        for k in range(j):
            square = a[j][k] * a[j][k].conjugate()
            head = head - square.part("real")
        positive = head.compare("GT", head.number(0))
        good = positive if good is None else good & positive
        a[j][j] = as_dtype(head.apply("sqrt"), x.aval.dtype)
        for i in range(j + 1, n):
            total = a[i][j]
            for k in range(j):
                total = total - a[i][k] * a[j][k].conjugate()
            a[i][j] = total / a[j][j]
            a[j][i] = a[j][j].number(0)
    nan = a[0][0].number(NAN[x.aval.dtype.kind])
    for i in range(n):
        a[i][: i + 1] = [good.choose(c, nan) for c in a[i][: i + 1]]
    return matrix_of(hlo, a, x.aval)


def as_dtype(x: Cell, dtype: Any) -> Cell:
    """A real cell as a complex one, where that is the dtype."""
    return Cell(x.hlo, x.hlo.convert(x.value, dtype))


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
    e = cells(hlo, a)
    if transpose_a == left_side:  # the right side's system is that of the transposes
        e, lower = [list(row) for row in zip(*e, strict=True)], not lower
    if conjugate_a:
        e = [[c.conjugate() for c in row] for row in e]
    axis = -2 if left_side else -1
    x = substituted(e, lines(hlo, b, axis), lower, unit_diagonal)
    return assembled(hlo, x, b.aval, b.aval.ndim + axis)


def substituted(e: list[list[Cell]], b: list[Cell], lower: bool, unit: bool = False) -> list[Cell]:
    """The rows of x for which e x = b, for triangular e."""
    n = len(b)
    x: list[Any] = [None] * n
    for i in range(n) if lower else reversed(range(n)):
        total = b[i]
        for j in range(i) if lower else range(i + 1, n):
            total = total - e[i][j] * x[j]
        x[i] = total if unit else total / e[i][i]
    return x


# --- solve and det --------------------------------------------------------------------------


class SmallSolve(MatrixPrimitive):
    """x for which a x = b, by elimination with partial pivoting; inf or NaN where a is singular.

    Shapes: a (..., n, n) with n <= 4, b and x (..., n, k). Dtypes: as LAPACK has them. Source:
    Higham, "Accuracy and Stability of Numerical Algorithms" (2002), algorithm 9.2.
    """

    name = "small_solve"

    def abstract_eval(self, a, b):
        check_alike(self.name, a, b)
        check_matrix(self.name, a, square=True)
        check_size(self.name, a)
        if b.ndim < 2 or b.shape[:-1] != a.shape[:-1]:
            raise ShapeError(
                f"{self.name}: operands must be of shapes (..., n, n) and (..., n, k); "
                f"got {a}, {b}."
            )
        return [ShapedArray(b.shape, b.dtype, a.weak_type and b.weak_type)]

    def write(self, hlo, outs, a, b):
        e = cells(hlo, a)
        n = len(e)
        for row, line in zip(e, lines(hlo, b, -2), strict=True):
            row.append(line)
        eliminated(e, n)
        x = substituted(e, [row[n] for row in e], lower=False)
        return [assembled(hlo, x, outs[0].strong(), b.aval.ndim - 2)]

    def jvp(self, primals, tangents):
        """a dx = db - da x."""
        (a, _), (da, db) = primals, tangents
        (x,) = self.bind(*primals)
        moved = db
        if not isinstance(da, Zero):
            moved = difference(db, product(da, x))
        return [x], self.bind(a, moved)

    def transpose(self, cts, a, b):
        if isinstance(a, Linear):
            raise not_linear(self.name, (a, b))
        return [None, *self.bind(swap(a), cts[0])]


def check_size(op: str, a: ShapedArray) -> None:
    """Raise unless matrices are small enough to be written out."""
    if not is_small(a):
        raise ShapeError(f"{op}: matrices must have at most {LIMIT} rows; got {a}.")


small_solve_p = SmallSolve()


def solve_small(a: Any, b: Any) -> Any:
    """x for which a x = b, for a (..., n, n) with n <= 4 and b (..., n, k)."""
    return small_solve_p.bind(a, b)[0]


def inv_small(a: Any) -> Any:
    """The inverse of a (..., n, n) with n <= 4."""
    return solve_small(a, identity_like(a))


class SmallDet(MatrixPrimitive):
    """The determinant, by elimination with partial pivoting.

    Shapes: a (..., n, n) with n <= 4, out (...). Dtypes: as LAPACK has them. The derivative, by
    cofactors, holds for singular matrices too.
    """

    name = "small_det"

    def abstract_eval(self, a):
        check_matrix(self.name, a, square=True)
        check_size(self.name, a)
        return [shaped(a, a.shape[:-2])]

    def lower(self, hlo, a):
        (out,) = self.type_of((a.aval,), {})
        if not a.aval.size:
            return [hlo.constant(1, out.strong())]
        # The last two rows need no pivot: a d - b c is as exact as what elimination makes of it.
        e = cells(hlo, a)
        n = len(e)
        pivots = eliminated(e, n - 2)
        det = e[-2][-2] * e[-1][-1] - e[-2][-1] * e[-1][-2] if n > 1 else e[0][0]
        for k, pivot in enumerate(pivots):
            head = e[k][k]
            moved = pivot.compare("NE", pivot.number(k))
            det = det * moved.choose(head.apply("negate"), head)
        return [det.value]

    def jvp(self, primals, tangents):
        (a,), (t,) = primals, tangents
        n = typeof(a).ndim
        return self.bind(a), [reduce_sum(mul(cofactors(a), t), (n - 2, n - 1))]


small_det_p = SmallDet()


def det_small(a: Any) -> Any:
    """The determinant of a (..., n, n) with n <= 4."""
    return small_det_p.bind(a)[0]


def cofactors(a: Any) -> Any:
    """The matrix of cofactors of matrices of up to four rows: the derivative of the determinant.

    Element (i, j) is the minor of the rows and columns that follow i and j around, with the sign of
    bringing them back in order: none for three rows, (-1)^(i + j) for two or four.
    """
    n = typeof(a).shape[-1]
    if n < 2:
        return full_like(a, 1)
    around = twice(twice(a, -2), -1)

    def moved(i: int, j: int) -> Any:
        """a[(r + i) mod n, (c + j) mod n] at (r, c)."""
        return columns(rows(around, i, i + n), j, j + n)

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
    return out if n == 3 else mul(out, checkered(a))


def twice(a: Any, axis: int) -> Any:
    """Matrices with their rows (axis -2) or columns (axis -1) written twice."""
    return concatenate([a, a], typeof(a).ndim + axis)


def checkered(a: Any) -> Any:
    """1 and -1 by turns, as the squares of a chess board, in the type of a."""
    shape = typeof(a).shape
    places = add(*(broadcasted_iota(np.int32, shape, len(shape) - k) for k in (1, 2)))
    return convert(sub(1, mul(2, rem(places, 2))), typeof(a).dtype)
