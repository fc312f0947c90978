"""Reductions: max, min, prod, and, or, xor, argmax, argmin, and `reduce` for a user's function.

`reduce_sum` is in layout.py, the adjoint of broadcasting; reductions over windows are in window.py,
running ones in cumulative.py. Here also stands `reduce_precision`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.primitive import Primitive, Zero
from weft.errors import DtypeError, ShapeError
from weft.primitives.elementwise import (
    KINDS,
    convert,
    div,
    eq,
    lower_compare,
    mul,
)
from weft.primitives.layout import (
    LinearPrimitive,
    broadcast_in_dim,
    check_axes,
    reduce_sum,
)
from weft.xla.hlo import i64s


def without(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """`shape` without the sizes of `axes`."""
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def spread_back(y: Any, shape: Sequence[int], axes: Sequence[int]) -> Any:
    """A result reduced over `axes`, repeated along them to `shape`."""
    return broadcast_in_dim(y, shape, tuple(i for i in range(len(shape)) if i not in axes))


def lowest(dtype: np.dtype) -> Any:
    """The least value of a dtype: -inf where there is one. The identity of max."""
    return _extreme(dtype, -1)


def highest(dtype: np.dtype) -> Any:
    """The greatest value of a dtype: inf where there is one. The identity of min."""
    return _extreme(dtype, 1)


def _extreme(dtype: np.dtype, side: int) -> Any:
    if dtypes.is_bool(dtype):
        return side > 0
    if dtypes.is_complex(dtype):
        return complex(side * np.inf, side * np.inf)
    if dtypes.is_integer(dtype):
        info = ml_dtypes.iinfo(dtype)
        return int(info.max if side > 0 else info.min)
    inf = np.asarray(side * np.inf).astype(dtype)
    if np.isinf(inf.astype(np.float64)):
        return side * np.inf
    info = ml_dtypes.finfo(dtype)
    return float(info.max if side > 0 else info.min)


class Reduction(Primitive):
    """A family: out = the elements of x along `axes`, which are removed, combined by `op`.

    `identity(dtype)` is the result for no elements. A member writes its `jvp`.
    Dtypes: as `takes` says; the result has x's. Source: StableHLO, reduce.
    """

    def __init__(self, name: str, op: str, identity: Callable, takes: str, doc: str):
        self.name = name
        self.op = op
        self.identity = identity
        self.takes = takes
        self.__doc__ = doc

    def abstract_eval(self, x, *, axes):
        check_axes(self.name, axes, x.ndim)
        if not KINDS[self.takes](x.dtype):
            raise DtypeError(f"{self.name}: needs an operand of {self.takes} dtype; got {x}.")
        return [ShapedArray(without(x.shape, axes), x.dtype, x.weak_type)]

    def lower(self, hlo, x, *, axes):
        out = ShapedArray(without(x.aval.shape, axes), x.aval.dtype)
        return lower_reduce(hlo, x, out, axes, self.op, self.identity(x.aval.dtype))

    def jvp(self, primals, tangents, *, axes):
        outs = self.bind(*primals, axes=axes)
        return outs, [Zero(typeof(outs[0]).to_tangent())]

    def batch(self, axis, args, dims, *, axes):
        (x,), (d,) = args, dims
        axes = tuple(a + (a >= d) for a in axes)
        return self.bind(x, axes=axes), [d - sum(a < d for a in axes)]


def lower_reduce(
    hlo: Any, x: Any, out: ShapedArray, axes: Sequence[int], op: str, identity: Any
) -> list:
    """Write the reduction of `x` over `axes` by the StableHLO operation `op`."""
    cell = ShapedArray((), x.aval.dtype)
    body = hlo.block([cell, cell], lambda a, b: lower_combine(hlo, op, a, b))
    init = hlo.constant(identity, cell)
    return hlo.op("stablehlo.reduce", [x, init], [out], [body], dimensions=i64s(axes))


def lower_combine(hlo: Any, op: str, a: Any, b: Any) -> list:
    """Write `op(a, b)`."""
    return hlo.like(op, a, b)


class Extremum(Reduction):
    """The reductions max and min: elements that tie for the result share the derivative equally."""

    def jvp(self, primals, tangents, *, axes):
        (x,), (t,) = primals, tangents
        (out,) = self.bind(x, axes=axes)
        if isinstance(t, Zero):
            return [out], [Zero(typeof(out).to_tangent())]
        hit = eq(x, spread_back(out, typeof(x).shape, axes))
        share = convert(hit, typeof(t).dtype)
        return [out], [div(reduce_sum(mul(t, share), axes), reduce_sum(share, axes))]


reduce_max_p = Extremum(
    "reduce_max", "maximum", lowest, "any", "The maximum over `axes`; NaN where there is one."
)
reduce_min_p = Extremum(
    "reduce_min", "minimum", highest, "any", "The minimum over `axes`; NaN where there is one."
)
reduce_prod_p = Reduction(
    "reduce_prod", "multiply", lambda dtype: 1, "number", "The product over `axes`."
)
reduce_and_p = Reduction(
    "reduce_and",
    "and",
    lambda dtype: highest(dtype) if not dtypes.is_signed(dtype) else -1,
    "bool or integer",
    "x & y & ... over `axes`, bit by bit.",
)
reduce_or_p = Reduction(
    "reduce_or", "or", lambda dtype: 0, "bool or integer", "x | y | ... over `axes`, bit by bit."
)
reduce_xor_p = Reduction(
    "reduce_xor", "xor", lambda dtype: 0, "bool or integer", "x ^ y ^ ... over `axes`, bit by bit."
)


def reducer(prim: Reduction) -> Callable[[Any, Sequence[int]], Any]:
    """The function of a reduction, `prim.bind(x, axes=axes)[0]`."""

    def fun(operand: Any, axes: Sequence[int]) -> Any:
        axes = tuple(map(operator.index, axes))
        return prim.bind(operand, axes=axes)[0] if axes else operand

    fun.__name__ = fun.__qualname__ = prim.name
    fun.__doc__ = prim.__doc__
    return fun


reduce_max, reduce_min, reduce_prod = map(reducer, (reduce_max_p, reduce_min_p, reduce_prod_p))
reduce_and, reduce_or, reduce_xor = map(reducer, (reduce_and_p, reduce_or_p, reduce_xor_p))


class ArgExtremum(Primitive):
    """out = the index along `axes` (one axis) of the maximum or minimum; the first one on ties.

    A NaN counts as the extremum. Dtypes: real operands; the result is `index_dtype`.
    Errors: where the axis has no elements.
    """

    def __init__(self, name: str, extremum: Reduction):
        self.name = name
        self.extremum = extremum

    def abstract_eval(self, x, *, axes, index_dtype):
        check_axes(self.name, axes, x.ndim)
        if not dtypes.is_integer(index_dtype):
            raise DtypeError(f"{self.name}: index_dtype must be an integer type; got {index_dtype}.")
        if dtypes.is_complex(x.dtype):
            raise DtypeError(f"{self.name}: needs an operand of real dtype; got {x}.")
        if len(axes) != 1 or x.shape[axes[0]] == 0:
            raise ShapeError(
                f"{self.name}: needs one axis that has elements; got axes {axes} for {x}."
            )
        return [ShapedArray(without(x.shape, axes), index_dtype)]

    def lower(self, hlo, x, *, axes, index_dtype):
        # Two plain reductions, which XLA vectorizes, instead of one over (value, index) pairs.
        aval = x.aval
        flags = ShapedArray(aval.shape, np.bool_)
        (best,) = self.extremum.lower(hlo, x, axes=axes)
        kept = i64s(i for i in range(aval.ndim) if i not in axes)
        (best,) = hlo.op(
            "stablehlo.broadcast_in_dim", [best], [aval], broadcast_dimensions=kept
        )
        hit = lower_compare("EQ")(hlo, flags, x, best)
        if dtypes.is_inexact(aval.dtype):
            nan = lower_compare("NE")(hlo, flags, x, x)
            (hit,) = hlo.like("or", hit, nan)
        index = ShapedArray(aval.shape, np.dtype(np.int32))
        (place,) = hlo.op("stablehlo.iota", [], [index], iota_dimension=f"{axes[0]} : i64")
        last = hlo.constant(aval.shape[axes[0]] - 1, index)
        (place,) = hlo.op("stablehlo.select", [hit, place, last], [index])
        (out,) = reduce_min_p.lower(hlo, place, axes=axes)
        return [hlo.convert(out, index_dtype)]

    def jvp(self, primals, tangents, **params):
        outs = self.bind(*primals, **params)
        return outs, [Zero(typeof(outs[0]).to_tangent())]

    def batch(self, axis, args, dims, *, axes, index_dtype):
        (x,), (d,) = args, dims
        axes = tuple(a + (a >= d) for a in axes)
        return self.bind(x, axes=axes, index_dtype=index_dtype), [d - sum(a < d for a in axes)]


argmax_p = ArgExtremum("argmax", reduce_max_p)
argmin_p = ArgExtremum("argmin", reduce_min_p)


def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The index of the maximum along `axis`, which is removed; of a NaN where there is one."""
    dtype = dtypes.canonicalize(index_dtype)
    return argmax_p.bind(operand, axes=(operator.index(axis),), index_dtype=dtype)[0]


def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The index of the minimum along `axis`, which is removed; of a NaN where there is one."""
    dtype = dtypes.canonicalize(index_dtype)
    return argmin_p.bind(operand, axes=(operator.index(axis),), index_dtype=dtype)[0]


class ReducePrecision(LinearPrimitive):
    """x rounded to a float with the given numbers of exponent and mantissa bits.

    The tangent and the cotangent are rounded too. Source: StableHLO, reduce_precision.
    """

    name = "reduce_precision"

    def abstract_eval(self, x, *, exponent_bits, mantissa_bits):
        if not dtypes.is_float(x.dtype):
            raise DtypeError(f"{self.name}: needs an operand of float dtype; got {x}.")
        if exponent_bits < 1 or mantissa_bits < 0:
            raise ShapeError(
                f"{self.name}: exponent_bits must be at least 1 and mantissa_bits at least 0; "
                f"got {exponent_bits} and {mantissa_bits}."
            )
        return [x]

    def lower(self, hlo, x, *, exponent_bits, mantissa_bits):
        return hlo.op(
            "stablehlo.reduce_precision",
            [x],
            [x.aval],
            exponent_bits=f"{exponent_bits} : i32",
            mantissa_bits=f"{mantissa_bits} : i32",
        )

    def transpose(self, cts, x, **params):
        return self.bind(cts[0], **params)

    def batch(self, axis, args, dims, **params):
        return self.bind(*args, **params), list(dims)


reduce_precision_p = ReducePrecision()


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """x rounded to a float of the given numbers of exponent and mantissa bits."""
    return reduce_precision_p.bind(
        operand,
        exponent_bits=operator.index(exponent_bits),
        mantissa_bits=operator.index(mantissa_bits),
    )[0]
