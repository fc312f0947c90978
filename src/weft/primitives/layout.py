"""Operations that move or repeat elements without computing, and their adjoint `reduce_sum`.

Slicing, padding and concatenation are in slicing.py; other reductions in reduction.py. Here also
stand the family of linear operations and the constants every rule needs (`full`, `zeros`).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.primitive import Linear, Primitive, Zero
from weft.errors import ShapeError
from weft.xla.hlo import i64s

_NUMBERS = (bool, int, float, complex)


class LinearPrimitive(Primitive):
    """A family: linear in its one operand, so the tangent moves as the value does.

    A member writes `transpose` and the rest of its rules.
    """

    def jvp(self, primals, tangents, **params):
        outs = self.bind(*primals, **params)
        (t,) = tangents
        if isinstance(t, Zero):
            return outs, [Zero(typeof(y).to_tangent()) for y in outs]
        return outs, self.bind(t, **params)


def literal(x: Any, dtype: np.dtype) -> Any:
    """A Python number as a literal of `dtype`: a Python number where that is its type, else NumPy's.

    Raises OverflowError where the dtype cannot hold it.
    """
    kind = dtypes.scalar_type_of(dtype)
    if dtypes.python_scalar_dtype(kind(0)) == dtype:
        return kind(x)
    return np.asarray(x).astype(dtype)[()] if not isinstance(x, int) else dtype.type(x)


def moved_to_front(x: Any, dim: int | None) -> Any:
    """`x` with its mapped axis `dim` in front."""
    if not dim:
        return x
    return transpose(x, (dim, *(i for i in range(typeof(x).ndim) if i != dim)))


def batched_at_front(x: Any, dim: int | None, size: int) -> Any:
    """`x` with a mapped axis in front: moved there, or repeated where `x` has none."""
    if dim is None:
        shape = typeof(x).shape
        return broadcast_in_dim(x, (size, *shape), tuple(range(1, len(shape) + 1)))
    return moved_to_front(x, dim)


def check_axes(op: str, axes: Sequence[int], ndim: int) -> None:
    """Raise unless `axes` are distinct axes of an array of rank `ndim`."""
    if len(set(axes)) != len(axes) or not all(0 <= a < ndim for a in axes):
        raise ShapeError(
            f"{op}: axes must be distinct and name axes of an array of rank {ndim}; "
            f"got {tuple(axes)}."
        )


class BroadcastInDim(LinearPrimitive):
    """out[i] = x[i[broadcast_dimensions]]: repeat `x` along new axes and axes of size 1.

    Shapes: x's axis k is axis broadcast_dimensions[k] of out, equal in size or 1. Dtypes: any.
    Source: StableHLO, broadcast_in_dim.
    """

    name = "broadcast_in_dim"

    def abstract_eval(self, x, *, shape, broadcast_dimensions, sharding):
        dims = broadcast_dimensions
        if len(dims) != x.ndim or any(a >= b for a, b in zip(dims, dims[1:], strict=False)):
            raise ShapeError(
                f"{self.name}: broadcast_dimensions must be increasing, one for each axis of x; "
                f"got {dims} for {x}."
            )
        check_axes(self.name, dims, len(shape))
        if any(n not in (1, shape[d]) for n, d in zip(x.shape, dims, strict=True)):
            raise ShapeError(
                f"{self.name}: each axis of x must be of size 1 or as in the result; "
                f"got {x} to shape {shape} with broadcast_dimensions {dims}."
            )
        return [ShapedArray(shape, x.dtype, x.weak_type)]

    def lower(self, hlo, x, *, shape, broadcast_dimensions, sharding):
        out = ShapedArray(shape, x.aval.dtype)
        if x.scalar is not None:
            return [hlo.spread(x, out)]
        dims = i64s(broadcast_dimensions)
        return hlo.op("stablehlo.broadcast_in_dim", [x], [out], broadcast_dimensions=dims)

    def transpose(self, cts, x, *, shape, broadcast_dimensions, sharding):
        (ct,) = cts
        kept = set(broadcast_dimensions)
        stretched = [
            d
            for n, d in zip(x.aval.shape, broadcast_dimensions, strict=True)
            if n == 1 != shape[d]
        ]
        axes = tuple(i for i in range(len(shape)) if i not in kept or i in stretched)
        return [reshape(reduce_sum(ct, axes), x.aval.shape)]

    def batch(self, axis, args, dims, *, shape, broadcast_dimensions, sharding):
        x = moved_to_front(args[0], dims[0])
        out = self.bind(
            x,
            shape=(axis.size, *shape),
            broadcast_dimensions=(0, *(d + 1 for d in broadcast_dimensions)),
            sharding=sharding,
        )
        return out, [0]

    def pretty_params(self, params):
        return params


broadcast_in_dim_p = BroadcastInDim()


def broadcast_in_dim(x: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Any:
    """Repeat `x` to `shape`; its axis k becomes axis broadcast_dimensions[k]."""
    shape = tuple(shape)
    if type(x) not in _NUMBERS and typeof(x).shape == shape:
        return x
    return broadcast_in_dim_p.bind(
        x, shape=shape, broadcast_dimensions=tuple(broadcast_dimensions), sharding=None
    )[0]


def full(shape: Sequence[int], value: Any, dtype: Any) -> Any:
    """An array of `shape` filled with a number, as a literal of `dtype`."""
    return broadcast_in_dim_p.bind(
        dtype.type(value), shape=tuple(shape), broadcast_dimensions=(), sharding=None
    )[0]


def zeros(aval: ShapedArray) -> Any:
    """Zeros of a type. float0, which nothing computes with, is NumPy's."""
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    if not aval.shape and not aval.weak_type:
        return literal(0, aval.dtype)
    return full(aval.shape, 0, aval.dtype)


def instantiate(t: Any) -> Any:
    """A (co)tangent as a value: zeros for Zero."""
    return zeros(t.aval) if isinstance(t, Zero) else t


class ReduceSum(LinearPrimitive):
    """out = the sum of x over `axes`, which are removed. Accumulates in x's dtype.

    Dtypes: numbers. The sum of nothing is 0. Source: StableHLO, reduce.
    """

    name = "reduce_sum"

    def abstract_eval(self, x, *, axes):
        check_axes(self.name, axes, x.ndim)
        if dtypes.is_bool(x.dtype):
            raise ShapeError(
                f"{self.name}: needs numbers; got {x}. Hint: x.astype(int) counts the true ones."
            )
        shape = tuple(d for i, d in enumerate(x.shape) if i not in axes)
        return [ShapedArray(shape, x.dtype, x.weak_type)]

    def lower(self, hlo, x, *, axes):
        (out,) = self.abstract_eval(x.aval, axes=axes)
        cell = ShapedArray((), x.aval.dtype)
        add = hlo.block([cell, cell], lambda a, b: hlo.like("add", a, b))
        zero = hlo.constant(0, cell)
        return hlo.op("stablehlo.reduce", [x, zero], [out], [add], dimensions=i64s(axes))

    def transpose(self, cts, x, *, axes):
        kept = tuple(i for i in range(x.aval.ndim) if i not in axes)
        return [broadcast_in_dim(cts[0], x.aval.shape, kept)]

    def batch(self, axis, args, dims, *, axes):
        (x,), (d,) = args, dims
        axes = tuple(a + (a >= d) for a in axes)
        return self.bind(x, axes=axes), [d - sum(a < d for a in axes)]


reduce_sum_p = ReduceSum()


def reduce_sum(x: Any, axes: Sequence[int]) -> Any:
    """The sum over `axes`, which are removed."""
    if not axes:
        return x
    return reduce_sum_p.bind(x, axes=tuple(axes))[0]


class Reshape(LinearPrimitive):
    """The same elements in row-major order under another shape of equal size.

    Source: StableHLO, reshape.
    """

    name = "reshape"

    def abstract_eval(self, x, *, new_sizes, dimensions, sharding):
        size = 1
        for d in new_sizes:
            size *= d
        if size != x.size or any(d < 0 for d in new_sizes):
            raise ShapeError(
                f"{self.name}: the new shape must have as many elements as x; "
                f"got {x} to {tuple(new_sizes)}."
            )
        return [ShapedArray(new_sizes, x.dtype, x.weak_type)]

    def lower(self, hlo, x, *, new_sizes, dimensions, sharding):
        if x.aval.shape == new_sizes:
            return [x]
        return hlo.op("stablehlo.reshape", [x], [ShapedArray(new_sizes, x.aval.dtype)])

    def transpose(self, cts, x, **params):
        return [reshape(cts[0], x.aval.shape)]

    def batch(self, axis, args, dims, *, new_sizes, dimensions, sharding):
        return [reshape(moved_to_front(args[0], dims[0]), (axis.size, *new_sizes))], [0]


reshape_p = Reshape()


def reshape(x: Any, new_sizes: Sequence[int], dimensions: Any = None) -> Any:
    """The same elements under another shape; `dimensions` permutes the axes before."""
    if dimensions is not None:
        x = transpose(x, dimensions)
    new_sizes = tuple(new_sizes)
    if typeof(x).shape == new_sizes:
        return x
    return reshape_p.bind(x, new_sizes=new_sizes, dimensions=None, sharding=None)[0]


class Transpose(LinearPrimitive):
    """out[i] = x with axis permutation[k] of x as axis k of out. Source: StableHLO, transpose."""

    name = "transpose"

    def abstract_eval(self, x, *, permutation):
        if sorted(permutation) != list(range(x.ndim)):
            raise ShapeError(
                f"{self.name}: permutation must name every axis of x once; "
                f"got {tuple(permutation)} for {x}."
            )
        return [ShapedArray([x.shape[p] for p in permutation], x.dtype, x.weak_type)]

    def lower(self, hlo, x, *, permutation):
        out = self.abstract_eval(x.aval, permutation=permutation)
        return hlo.op("stablehlo.transpose", [x], out, permutation=i64s(permutation))

    def transpose(self, cts, x, *, permutation):
        return [transpose(cts[0], np.argsort(permutation).tolist())]

    def batch(self, axis, args, dims, *, permutation):
        d = dims[0]
        return [transpose(args[0], (d, *(p + (p >= d) for p in permutation)))], [0]


transpose_p = Transpose()


def transpose(x: Any, permutation: Sequence[int]) -> Any:
    """Permute the axes: axis permutation[k] of x becomes axis k."""
    permutation = tuple(map(operator.index, permutation))
    if permutation == tuple(range(typeof(x).ndim)):
        return x
    return transpose_p.bind(x, permutation=permutation)[0]


class Squeeze(LinearPrimitive):
    """x without the axes `dimensions`, all of size 1."""

    name = "squeeze"

    def abstract_eval(self, x, *, dimensions):
        check_axes(self.name, dimensions, x.ndim)
        if any(x.shape[d] != 1 for d in dimensions):
            raise ShapeError(
                f"{self.name}: each of dimensions must be an axis of size 1; "
                f"got {tuple(dimensions)} for {x}."
            )
        shape = [n for i, n in enumerate(x.shape) if i not in dimensions]
        return [ShapedArray(shape, x.dtype, x.weak_type)]

    def lower(self, hlo, x, *, dimensions):
        return hlo.op(
            "stablehlo.reshape", [x], self.abstract_eval(x.aval, dimensions=dimensions)
        )

    def transpose(self, cts, x, *, dimensions):
        return [reshape(cts[0], x.aval.shape)]

    def batch(self, axis, args, dims, *, dimensions):
        x = moved_to_front(args[0], dims[0])
        return self.bind(x, dimensions=tuple(d + 1 for d in dimensions)), [0]


squeeze_p = Squeeze()


def squeeze(x: Any, dimensions: Sequence[int]) -> Any:
    """Remove axes of size 1; negative axes count from the end."""
    ndim = typeof(x).ndim
    dimensions = tuple(sorted(d + ndim if d < 0 else d for d in map(operator.index, dimensions)))
    return squeeze_p.bind(x, dimensions=dimensions)[0] if dimensions else x


def expand_dims(x: Any, dimensions: Sequence[int]) -> Any:
    """Insert axes of size 1 where `dimensions` says, counted in the result."""
    shape = typeof(x).shape
    ndim = len(shape) + len(dimensions)
    new = {operator.index(d) + ndim if d < 0 else operator.index(d) for d in dimensions}
    check_axes("expand_dims", tuple(new), ndim)
    if len(new) != len(dimensions):
        raise ShapeError(f"expand_dims: axes must be distinct; got {tuple(dimensions)}.")
    kept = tuple(i for i in range(ndim) if i not in new)
    out = [1] * ndim
    for i, n in zip(kept, shape, strict=True):
        out[i] = n
    return broadcast_in_dim(x, out, kept) if new else x


class Iota(Primitive):
    """out[i] = i[dimension]: counting along one axis. Source: StableHLO, iota."""

    name = "iota"

    def abstract_eval(self, *, dtype, shape, dimension, sharding):
        check_axes(self.name, (dimension,), len(shape))
        return [ShapedArray(shape, dtype)]

    def lower(self, hlo, *, dtype, shape, dimension, sharding):
        out = [ShapedArray(shape, dtype)]
        return hlo.op("stablehlo.iota", [], out, iota_dimension=f"{dimension} : i64")


iota_p = Iota()


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Any:
    """Counting along axis `dimension` of an array of `shape`."""
    return iota_p.bind(
        dtype=dtypes.canonicalize(dtype), shape=tuple(shape), dimension=dimension, sharding=None
    )[0]


class Rev(LinearPrimitive):
    """x with the order of elements along `dimensions` reversed. Source: StableHLO, reverse."""

    name = "rev"

    def abstract_eval(self, x, *, dimensions):
        check_axes(self.name, dimensions, x.ndim)
        return [x]

    def lower(self, hlo, x, *, dimensions):
        return hlo.op("stablehlo.reverse", [x], [x.aval], dimensions=i64s(dimensions))

    def transpose(self, cts, x, *, dimensions):
        return [rev(cts[0], dimensions)]

    def batch(self, axis, args, dims, *, dimensions):
        d = dims[0]
        return [rev(args[0], tuple(i + (i >= d) for i in dimensions))], [d]


rev_p = Rev()


def rev(x: Any, dimensions: Sequence[int]) -> Any:
    """Reverse the order of elements along axes."""
    return rev_p.bind(x, dimensions=tuple(dimensions))[0] if len(dimensions) else x


def is_linear(x: Any) -> bool:
    """Whether a transpose rule is asked to solve for this operand."""
    return isinstance(x, Linear)
