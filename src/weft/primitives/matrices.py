"""The base of operations on matrices: the family, its checks, and small steps of their rules.

The last two axes of an array are its matrices, the axes before them a batch. The operations are in
linalg.py, factorizations.py and eigen.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost
from weft.core.primitive import Zero
from weft.errors import DtypeError, MissingRule, ShapeError
from weft.primitives import layout
from weft.primitives.dot import Precision, batch_matmul
from weft.primitives.elementwise import add, complex, conj, eq, ge, imag, mul, neg, select, sub
from weft.primitives.expr import Expr, count_along
from weft.primitives.indexing import GatherDimensionNumbers, GatherScatterMode, gather
from weft.primitives.lapack import LETTERS, call_lapack
from weft.primitives.slicing import slice_in_dim

# --- the family -----------------------------------------------------------------------------


class Completion:
    """Postprocessing of the results of LAPACK's routines, by operations of XLA."""

    def write_triangle(self, hlo: Any, x: Any, direction: str) -> Any:
        """Write x, with zeros where the comparison of row number and column number is false."""
        rows, columns = lower_numbers(hlo, x.aval)
        return rows.compare(direction, columns).select(Expr(hlo, x), 0).value

    def mark_failures(self, hlo: Any, info: Any, outs: Sequence[Any]) -> list:
        """Write the results of a routine, with NaN for the elements of a batch where it failed.

        Integer results stay unchanged: they are counts.
        """
        good = Expr(hlo, info).compare("EQ", 0).broadcast
        mark = lambda y: good(y.aval.shape).select(Expr(hlo, y), NAN[y.aval.dtype.kind]).value
        return [mark(y) if y.aval.dtype.kind in NAN else y for y in outs]


class MatrixPrimitive(layout.LeadingBatch):
    """A family: an operation on the last axes of its operands; all axes before them are a batch.

    A member writes `write`, its lowering where no operand is empty, and `jvp` where it has one.
    """

    cost = Cost.LIBRARY
    no_derivative = "lax.stop_gradient(x)"  # what to do where there is none
    completion = Completion()

    def lower(self, hlo, *values, **params):
        outs = self.type_of(tuple(v.aval for v in values), params)
        if not all(v.aval.size for v in values):
            return [lower_identity(hlo, out) for out in outs]
        return self.write(hlo, outs, *values, **params)

    def write(self, hlo, outs, *values, **params):
        raise self.missing("lower")

    def call_routine(
        self,
        hlo: Any,
        routine: str,
        operands: Sequence[Any],
        outs: Sequence[ShapedArray],
        aliases: dict[int, int] | None = None,
        **options: str,
    ) -> list:
        """Write a call of a LAPACK routine; NaN for the matrices of a batch where it failed."""
        info = ShapedArray(operands[0].aval.shape[:-2], np.int32)
        *ys, failed = call_kernel(hlo, routine, operands, [*outs, info], aliases, **options)
        return self.completion.mark_failures(hlo, failed, ys)

    def jvp(self, primals, tangents, **params):
        raise MissingRule(
            f"{self.name}: has no derivative; got a tangent for an operand. "
            f"Hint: {self.no_derivative}."
        )


def check_matrix(
    op: str, x: ShapedArray, square: bool = False, kinds: Sequence[str] = tuple(LETTERS)
) -> None:
    """Raise unless `x` holds matrices of a dtype that LAPACK has."""
    if x.dtype.name not in kinds:
        hint = "" if dtypes.is_complex(x.dtype) else " Hint: x.astype(float)."
        raise DtypeError(f"{op}: the dtype must be one of {', '.join(kinds)}; got {x}.{hint}")
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        wanted = "square matrices, of shape (..., n, n)" if square else "matrices (..., m, n)"
        raise ShapeError(f"{op}: the operand must hold {wanted}; got {x}.")


def type_like(like: ShapedArray, shape: Sequence[int], dtype: Any = None) -> ShapedArray:
    """A type that is weak as `like` is."""
    return ShapedArray(shape, like.dtype if dtype is None else dtype, like.weak_type)


# --- steps of rules -------------------------------------------------------------------------


def subtract_tangents(x: Any, y: Any) -> Any:
    """x - y, where x may be Zero."""
    return neg(y) if type(x) is Zero else sub(x, y)


def swap(x: Any) -> Any:
    """The transposes of matrices."""
    n = typeof(x).ndim
    return layout.transpose(x, (*range(n - 2), n - 1, n - 2))


def conjugate(x: Any) -> Any:
    """The complex conjugate; real arrays stay real."""
    return conj(x) if dtypes.is_complex(typeof(x).dtype) else x


def adjoint(x: Any) -> Any:
    """The conjugate transposes of matrices."""
    return conjugate(swap(x))


def symmetrize(x: Any) -> Any:
    """(x + x^H) / 2."""
    return mul(add(x, adjoint(x)), 0.5)


def product(x: Any, y: Any, *more: Any) -> Any:
    """The product of matrices, in full precision."""
    out = batch_matmul(x, y, Precision.HIGHEST)
    return product(out, *more) if more else out


def mask_below(shape: Sequence[int], offset: int) -> Any:
    """Return True for elements at or below the diagonal `offset`, for each matrix of a batch."""
    rows, columns = (layout.broadcasted_iota(np.int32, shape[-2:], i) for i in (0, 1))
    mask = ge(add(rows, offset) if offset else rows, columns)
    return layout.broadcast_in_dim(mask, shape, (len(shape) - 2, len(shape) - 1))


def lower_part(x: Any, offset: int = 0) -> Any:
    """x with zeros above the diagonal `offset`."""
    return select(mask_below(typeof(x).shape, offset), x, layout.full_like(x, 0))


def upper_part(x: Any, offset: int = 0) -> Any:
    """x with zeros below the diagonal `offset`."""
    return select(mask_below(typeof(x).shape, offset - 1), layout.full_like(x, 0), x)


def mask_diagonal(shape: Sequence[int]) -> Any:
    """Return True for elements on the diagonal, for each matrix of a batch."""
    rows, columns = (layout.broadcasted_iota(np.int32, shape[-2:], i) for i in (0, 1))
    return layout.broadcast_in_dim(eq(rows, columns), shape, (len(shape) - 2, len(shape) - 1))


def identity_like(x: Any) -> Any:
    """Identity matrices of the type of x."""
    aval = typeof(x)
    return layout.convert(mask_diagonal(aval.shape), aval.dtype, aval.weak_type)


def diagonal(x: Any) -> Any:
    """The diagonals of square matrices, as vectors."""
    kept = select(mask_diagonal(typeof(x).shape), x, layout.full_like(x, 0))
    return layout.reduce_sum(kept, (typeof(x).ndim - 1,))


def scale_rows(v: Any, x: Any) -> Any:
    """diag(v) x: each row of a matrix times an element of a vector."""
    return mul(layout.broadcast_in_dim(v, typeof(x).shape, range(typeof(v).ndim)), x)


def scale_columns(x: Any, v: Any) -> Any:
    """x diag(v): each column of a matrix times an element of a vector."""
    n = typeof(x).ndim
    return mul(x, layout.broadcast_in_dim(v, typeof(x).shape, (*range(n - 2), n - 1)))


def pair_elements(v: Any) -> tuple[Any, Any]:
    """For vectors, the matrices whose elements (i, j) are v[j], and v[i]."""
    shape = typeof(v).shape
    n = len(shape)
    square = (*shape, shape[-1])
    return tuple(layout.broadcast_in_dim(v, square, (*range(n - 1), at)) for at in (n, n - 1))


def imaginary_diagonal(x: Any) -> Any:
    """i times the imaginary part of the diagonal of square complex matrices, as matrices."""
    part = imag(x)
    none = layout.full_like(part, 0)
    return complex(none, select(mask_diagonal(typeof(part).shape), part, none))


def take_rows(x: Any, order: Any) -> Any:
    """Matrices with their rows in the given order, a permutation for each."""
    shape = typeof(x).shape
    if not typeof(x).size:
        return x
    batch = tuple(range(len(shape) - 2))
    numbers = GatherDimensionNumbers(
        offset_dims=(len(shape) - 1,),
        collapsed_slice_dims=(len(shape) - 2,),
        start_index_map=(len(shape) - 2,),
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
    )
    return gather(
        x,
        to_column(order),
        numbers,
        (1,) * (len(shape) - 1) + shape[-1:],
        unique_indices=True,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def to_column(v: Any) -> Any:
    """Vectors as matrices of one column."""
    return layout.expand_dims(v, (typeof(v).ndim,))


def slice_rows(x: Any, start: int | None, stop: int | None) -> Any:
    """Some rows of matrices."""
    return slice_in_dim(x, start, stop, axis=-2)


def slice_columns(x: Any, start: int | None, stop: int | None) -> Any:
    """Some columns of matrices."""
    return slice_in_dim(x, start, stop, axis=-1)


# --- steps of lowerings ---------------------------------------------------------------------


def lower_identity(hlo: Any, out: ShapedArray) -> Any:
    """Write what an operation on empty matrices gives: identity matrices, and 0, 1, 2, ..."""
    if not out.size:
        return hlo.constant(0, out.strong())
    if not dtypes.is_inexact(out.dtype):
        return count_along(hlo, out, out.ndim - 1).value
    rows, columns = lower_numbers(hlo, out)
    return rows.compare("EQ", columns).convert(out.dtype).value


def lower_numbers(hlo: Any, out: ShapedArray) -> list[Expr]:
    """Write the number of its row, and of its column, for each element of matrices."""
    number = ShapedArray(out.shape, np.int32)
    return [count_along(hlo, number, i) for i in (out.ndim - 2, out.ndim - 1)]


def lower_swap(hlo: Any, x: Any) -> Any:
    """Write the transposes of matrices."""
    n = x.aval.ndim
    return Expr(hlo, x).transpose((*range(n - 2), n - 1, n - 2)).value


def call_kernel(
    hlo: Any, routine: str, operands: Sequence[Any], outs: Any, aliases: Any = None, **options: Any
) -> list:
    """Write the call of a routine of LAPACK on matrices, for their dtype, without a check."""
    batch = operands[0].aval.ndim - 2
    return call_lapack(hlo, routine, operands, outs, batch, aliases, **options)


NAN = {"f": float("nan"), "c": np.complex128(np.nan + 1j * np.nan)}
