"""Products with a sparse matrix: `coo_dot`, `csr_dot`, their adjoint `coo_sample`, and `resample`.

`resample` is for banded matrices. A matrix is given by the values of its entries and their places,
which are integers without derivatives. Each product is linear in two operands; the transposes of
the three consist of the three. experimental/sparse/ has the sparse arrays for users.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost
from weft.core.form import Form
from weft.core.primitive import not_linear
from weft.errors import DtypeError, ShapeError
from weft.primitives import indexing, layout
from weft.primitives.constant import stage_whole
from weft.primitives.cumulative import cumsum
from weft.primitives.dot import Bilinear
from weft.primitives.elementwise import add, bitwise_and, ge, lt, mul, select
from weft.primitives.families import is_linear
from weft.primitives.layout import batched_at_front, move_to_front, reduce_sum, reshape, transpose
from weft.primitives.slicing import concatenate, slice_in_dim
from weft.xla.lower import lower_jaxpr


class SparseProduct(Bilinear):
    """A family: products with a sparse matrix, linear in x and y, with the places of its entries.

    A member has `compute`, which computes it by gathering and adding.
    """

    form = Form.SPARSE_PRODUCT
    cost = Cost.REDUCTION
    compute: Callable[..., Any]

    def check(self, x: ShapedArray, y: ShapedArray, indices: ShapedArray, *fits: bool) -> None:
        """Raise where the operands do not go together."""
        if x.dtype != y.dtype or dtypes.is_bool(x.dtype) or not dtypes.is_integer(indices.dtype):
            raise DtypeError(
                f"{self.name}: must be of numbers of one dtype, at integer indices; got "
                f"{x}, {y}, {indices}."
            )
        if not all(fits):
            raise ShapeError(
                f"{self.name}: the entries must be [n], at indices [n, 2] (csr: [n]), and the "
                f"matrices of equal width; got {x}, {y}, {indices}."
            )

    def lower(self, hlo, *xs, **params):
        multiply = lambda *xs: [self.compute_widely(*xs, **params)]
        return lower_jaxpr(hlo, stage_whole(multiply, [x.aval for x in xs]), xs)

    def compute_widely(self, x: Any, y: Any, *places: Any, **params: Any) -> Any:
        """Return the product. Narrow floats are added up in float32."""
        dtype = typeof(x).dtype
        narrow = dtypes.is_float(dtype) and dtype.itemsize < 4
        wide = [layout.convert(v, np.dtype(np.float32)) if narrow else v for v in (x, y)]
        return layout.convert(self.compute(*wide, *places, **params), dtype)


class CooDot(SparseProduct):
    """out[i, l] = sum over entries k with indices[k] = (i, j) of data[k] * dense[j, l].

    Shapes: data [n], dense [cols, lanes], indices [n, 2]; the result is [rows, lanes]. If
    `transpose`, indices[k] = (j, i). Entries whose indices are outside of the matrix count for
    nothing. Dtypes: numbers, the same for data and dense; integers for indices.
    """

    name = "coo_dot"

    def abstract_eval(self, data, dense, indices, *, rows, transpose):
        fits = data.ndim == 1 and dense.ndim == 2 and indices.shape == (*data.shape, 2)
        self.check(data, dense, indices, fits)
        return [ShapedArray((rows, dense.shape[1]), data.dtype)]

    def compute(self, data: Any, dense: Any, indices: Any, *, rows: int, transpose: bool) -> Any:
        row, col = split_places(indices, transpose)
        lanes = dense.shape[1]
        row = select(is_inside(col, dense.shape[0]), row, layout.full_like(row, -1))
        terms = mul(
            gather_rows(dense, col), layout.broadcast_in_dim(data, (*data.shape, lanes), (0,))
        )
        return add_rows(rows, row, terms)

    def transpose(self, cts, data, dense, indices, *, rows, transpose):
        (ct,) = cts
        if is_linear(data) and not is_linear(dense):
            pair = (dense, ct) if transpose else (ct, dense)
            return [coo_sample(*pair, indices), None, None]
        if is_linear(dense) and not is_linear(data):
            (back,) = self.apply(
                data, ct, indices, rows=dense.aval.shape[0], transpose=not transpose
            )
            return [None, back, None]
        raise not_linear(self.name, [data, dense])

    def batch(self, axis, args, dims, *, rows, transpose):
        if dims[0] is None and dims[2] is None:
            return batch_lanes(self, axis.size, args, dims[1], rows=rows, transpose=transpose)
        data, dense, indices = (batched_at_front(x, d, axis.size) for x, d in zip(args, dims))
        sizes = (typeof(dense).shape[1], rows) if transpose else (rows, typeof(dense).shape[1])
        indices = join_places(indices, sizes)
        fixed = {"rows": axis.size * rows, "transpose": transpose}
        (out,) = self.apply(merge_front(data), merge_front(dense), indices, **fixed)
        return [reshape(out, (axis.size, rows, typeof(out).shape[1]))], [0]


class CsrDot(SparseProduct):
    """out[i, l] = sum over k from indptr[i] to indptr[i + 1] of data[k] * dense[indices[k], l].

    Shapes: data and indices [n], indptr [rows + 1], dense [cols, lanes]; the result is
    [rows, lanes]. Dtypes: as coo_dot. Entries outside of the matrix count for nothing.
    """

    name = "csr_dot"

    def abstract_eval(self, data, dense, indices, indptr):
        fits = data.ndim == 1 and dense.ndim == 2 and indices.shape == data.shape
        fits = fits and indptr.ndim == 1 and indptr.shape[0] > 0
        self.check(data, dense, indices, fits and dtypes.is_integer(indptr.dtype))
        return [ShapedArray((indptr.shape[0] - 1, dense.shape[1]), data.dtype)]

    def compute(self, data: Any, dense: Any, indices: Any, indptr: Any) -> Any:
        return coo_dot_p.compute(data, dense, expand_rows(indices, indptr), **as_coo(indptr))

    def transpose(self, cts, data, dense, indices, indptr):
        args = data, dense, expand_rows(indices, indptr)
        return [*coo_dot_p.transpose(cts, *args, **as_coo(indptr)), None]

    def batch(self, axis, args, dims):
        if dims[0] is None and dims[2] is None and dims[3] is None:
            return batch_lanes(self, axis.size, args, dims[1])
        data, dense, *places = (batched_at_front(x, d, axis.size) for x, d in zip(args, dims))
        args = data, dense, expand_rows(*places)
        return coo_dot_p.batch(axis, args, (0, 0, 0), **as_coo(places[1]))


class CooSample(SparseProduct):
    """out[k] = sum over l of lhs[i, l] * rhs[j, l], with indices[k] = (i, j): entries of lhs rhs^T.

    Shapes: lhs [rows, lanes], rhs [cols, lanes], indices [n, 2]; the result is [n], 0 where indices
    are outside. Dtypes: as coo_dot; it is the adjoint of coo_dot.
    """

    name = "coo_sample"

    def abstract_eval(self, lhs, rhs, indices):
        fits = lhs.ndim == rhs.ndim == indices.ndim == 2 and lhs.shape[1] == rhs.shape[1]
        self.check(lhs, rhs, indices, fits and indices.shape[1] == 2)
        return [ShapedArray(indices.shape[:1], lhs.dtype)]

    def compute(self, lhs: Any, rhs: Any, indices: Any) -> Any:
        row, col = split_places(indices, False)
        both = bitwise_and(is_inside(row, lhs.shape[0]), is_inside(col, rhs.shape[0]))
        found = reduce_sum(mul(gather_rows(lhs, row), gather_rows(rhs, col)), (1,))
        return select(both, found, layout.full_like(found, 0))

    def transpose(self, cts, lhs, rhs, indices):
        (ct,) = cts
        if is_linear(lhs) == is_linear(rhs):
            raise not_linear(self.name, [lhs, rhs])
        if is_linear(lhs):
            return [coo_dot(ct, rhs, indices, lhs.aval.shape[0]), None, None]
        return [None, coo_dot(ct, lhs, indices, rhs.aval.shape[0], transpose=True), None]

    def batch(self, axis, args, dims):
        lhs, rhs, indices = (batched_at_front(x, d, axis.size) for x, d in zip(args, dims))
        count = typeof(indices).shape[1]
        indices = join_places(indices, (typeof(lhs).shape[1], typeof(rhs).shape[1]))
        (out,) = self.apply(merge_front(lhs), merge_front(rhs), indices)
        return [reshape(out, (axis.size, count))], [0]


class Resample(Bilinear):
    """out[i, t, l] = sum over j of weights[t, j] * x[i, starts[t] + j, l], for a banded matrix.

    Shapes: x [rows, n, lanes], weights [m, k], starts [m], from 0 to n - k. back [n, h] and firsts
    [n] are the weights and starts of the transposed matrix. Dtypes: a float; int32 for starts and
    firsts.
    """

    name = "resample"
    form = Form.RESAMPLE
    cost = Cost.REDUCTION

    def abstract_eval(self, x, weights, starts, back, firsts):
        fits = x.ndim == 3 and back.shape[:1] == firsts.shape == x.shape[1:2]
        if not fits or weights.shape[:1] != starts.shape or {back.ndim, weights.ndim} != {2}:
            raise ShapeError(f"{self.name}: must be [r, n, l], bands; got {x}, {weights}, {back}.")
        return [ShapedArray((x.shape[0], weights.shape[0], x.shape[2]), x.dtype)]

    def lower(self, hlo, x, weights, starts, *back):
        xs = [x, weights, starts]
        return lower_jaxpr(hlo, stage_whole(add_near_rows, [v.aval for v in xs]), xs)

    def transpose(self, cts, x, weights, starts, back, firsts):
        if is_linear(weights):
            raise not_linear(self.name, [x, weights])
        return [*self.apply(cts[0], back, firsts, weights, starts), None, None, None, None]

    def batch(self, axis, args, dims):
        if any(d is not None for d in dims[1:]):
            raise self.missing("batch")
        x = move_to_front(args[0], dims[0])
        (out,) = self.apply(merge_front(x), *args[1:])
        return [reshape(out, (*typeof(x).shape[:2], *typeof(out).shape[1:]))], [0]


def add_near_rows(x: Any, weights: Any, starts: Any) -> list:
    """Return the result of `Resample`, by gathering."""
    (rows, n, lanes), (m, k) = typeof(x).shape, typeof(weights).shape
    places = layout.broadcasted_iota(np.dtype(np.int32), (m, k), 1)
    places = reshape(add(layout.broadcast_in_dim(starts, (m, k), (0,)), places), (m * k,))
    found = gather_rows(reshape(transpose(x, (1, 0, 2)), (n, rows * lanes)), places)
    weights = layout.broadcast_in_dim(weights, (m, k, rows, lanes), (0, 1))
    terms = mul(reshape(found, (m, k, rows, lanes)), weights)
    return [transpose(reduce_sum(terms, (1,)), (1, 0, 2))]


coo_dot_p, csr_dot_p, coo_sample_p = CooDot(), CsrDot(), CooSample()
resample_p = Resample()


def coo_dot(data: Any, dense: Any, indices: Any, rows: int, transpose: bool = False) -> Any:
    """The product of a sparse matrix of `rows` rows and a dense one; see `CooDot`."""
    return coo_dot_p.apply(data, dense, indices, rows=rows, transpose=transpose)[0]


def csr_dot(data: Any, dense: Any, indices: Any, indptr: Any) -> Any:
    """The product of a sparse matrix, given row by row, and a dense one; see `CsrDot`."""
    return csr_dot_p.apply(data, dense, indices, indptr)[0]


def coo_sample(lhs: Any, rhs: Any, indices: Any) -> Any:
    """Entries of lhs rhs^T; see `CooSample`."""
    return coo_sample_p.apply(lhs, rhs, indices)[0]


def as_coo(indptr: Any) -> dict:
    """The parameters of coo_dot for a matrix with these starts of rows."""
    return {"rows": typeof(indptr).shape[-1] - 1, "transpose": False}


def is_inside(index: Any, size: int) -> Any:
    """Return True where an index is at least 0 and below `size`."""
    dtype = typeof(index).dtype
    if type(size) is int and size > np.iinfo(dtype).max:
        return ge(index, layout.literal(0, dtype))
    return bitwise_and(ge(index, layout.literal(0, dtype)), lt(index, layout.literal(size, dtype)))


def split_places(indices: Any, swapped: bool) -> tuple[Any, Any]:
    """The rows and columns of [n, 2] indices, of int32 at least."""
    if typeof(indices).dtype.itemsize < 4:
        indices = layout.convert(indices, np.dtype(np.int32))
    n = typeof(indices).shape[0]
    row, col = (reshape(slice_in_dim(indices, i, i + 1, 1, 1), (n,)) for i in (0, 1))
    return (col, row) if swapped else (row, col)


def gather_rows(x: Any, rows: Any) -> Any:
    """The rows of a matrix, zeros where there is none."""
    (n,), (size, lanes) = typeof(rows).shape, typeof(x).shape
    if not size:
        return layout.full((n, lanes), 0, typeof(x).dtype)
    dims = indexing.GatherDimensionNumbers((1,), (0,), (0,))
    mode = indexing.GatherScatterMode.FILL_OR_DROP
    return indexing.gather(x, reshape(rows, (n, 1)), dims, (1, lanes), mode=mode, fill_value=0)


def add_rows(count: int, rows: Any, updates: Any) -> Any:
    """Return a matrix of `count` rows that sums `updates` by row number; others are dropped."""
    n, lanes = typeof(updates).shape
    dims = indexing.ScatterDimensionNumbers((1,), (0,), (0,))
    zeros = layout.full((count, lanes), 0, typeof(updates).dtype)
    return indexing.scatter_add(zeros, reshape(rows, (n, 1)), updates, dims, mode="drop")


def expand_rows(indices: Any, indptr: Any) -> Any:
    """The [*batch, n, 2] indices of entries that stand row by row.

    Shapes: indices [*batch, n], indptr [*batch, rows + 1]. Entries of no row get one outside.
    """
    *batch, n = typeof(indices).shape
    count, rows = math.prod(batch), typeof(indptr).shape[-1] - 1
    dtype = np.promote_types(typeof(indices).dtype, typeof(indptr).dtype)
    dtype = np.promote_types(dtype, np.int32)
    ends = slice_in_dim(reshape(layout.convert(indptr, dtype), (count, rows + 1)), 1, None, 1, 1)
    # The number of rows that end at each entry, with a place for rows that end after all of them.
    starts = mul(layout.broadcasted_iota(dtype, (count, rows), 0), layout.literal(n + 1, dtype))
    ones = layout.full((count * rows, 1), 1, dtype)
    ended = add_rows(count * (n + 1), reshape(add(ends, starts), (count * rows,)), ones)
    ended = slice_in_dim(reshape(ended, (count, n + 1)), 0, n, 1, 1)
    pair = [reshape(x, (*batch, n, 1)) for x in (cumsum(ended, 1), layout.convert(indices, dtype))]
    return concatenate(pair, len(batch) + 1)


def merge_front(x: Any) -> Any:
    """An array with its first two axes as one."""
    shape = typeof(x).shape
    return reshape(x, (shape[0] * shape[1], *shape[2:]))


def join_places(indices: Any, sizes: tuple[int, int]) -> Any:
    """The [batch * n, 2] indices into matrices of `sizes` one below and beside the other."""
    batch, n, _ = typeof(indices).shape
    dtype = np.promote_types(typeof(indices).dtype, np.int32)
    if type(batch) is int and batch * max(*sizes, 1) > np.iinfo(dtype).max:
        dtype = np.dtype(np.int64)
    indices, limits = layout.convert(indices, dtype), np.array(sizes, dtype)
    starts = mul(
        layout.broadcasted_iota(dtype, (batch, n, 2), 0),
        layout.broadcast_in_dim(limits, (batch, n, 2), (2,)),
    )
    limits = layout.broadcast_in_dim(limits, (batch, n, 2), (2,))
    valid = bitwise_and(ge(indices, layout.literal(0, dtype)), lt(indices, limits))
    return merge_front(select(valid, add(indices, starts), layout.full_like(indices, -1)))


def batch_lanes(
    prim: SparseProduct, size: int, args: Any, dim: int, **params: Any
) -> tuple[list, list]:
    """The product with many dense matrices at once, side by side."""
    data, dense, *places = args
    dense = transpose(move_to_front(dense, dim), (1, 0, 2))
    cols, _, lanes = typeof(dense).shape
    (out,) = prim.apply(data, reshape(dense, (cols, size * lanes)), *places, **params)
    return [reshape(out, (typeof(out).shape[0], size, lanes))], [1]
