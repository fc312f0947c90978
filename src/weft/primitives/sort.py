"""Sorting: `sort` of several arrays by keys, `partition`, `top_k`; the places of true elements.

Derivatives follow the permutation by `gather`. argsort, unique, searchsorted and the like are
numpy/'s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost, Elements
from weft.core.form import Form
from weft.core.primitive import Primitive, Zero
from weft.errors import DtypeError, ShapeError
from weft.mesh.plugins import GPUS
from weft.primitives import families, layout
from weft.primitives.constant import stage_whole
from weft.primitives.cumulative import cumsum
from weft.primitives.dynamic_slicing import index_dtype
from weft.primitives.elementwise import lt, neg, select, sub
from weft.primitives.expr import Expr, order_bits
from weft.primitives.indexing import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    gather,
    scatter_max,
)
from weft.primitives.layout import batched_at_front, broadcasted_iota, expand_dims, iota_p
from weft.util import is_below, name_function
from weft.xla.hlo import bool_text
from weft.xla.lower import lower_jaxpr
from weft.xla.typing import Array, ArrayLike

Operands = TypeVar("Operands")
INT32 = np.dtype(np.int32)


class Sort(Primitive):
    """The operands in the order of the first `num_keys` of them, along axis `dimension`.

    Ascending. Floats are ordered as numbers, -0.0 equal to 0.0 and NaN last; complex numbers by
    real part, then imaginary part. Stable unless told that it need not be.
    Shapes: equal, of rank 1 at least. Dtypes: any. Source: StableHLO, sort.
    """

    name = "sort"
    form = Form.SORT
    elements = Elements.PLACED
    cost = Cost.TRANSCENDENTAL
    multiple_results = True

    def abstract_eval(self, *avals, dimension, is_stable, num_keys):
        families.check_equal_shapes(self.name, avals)
        families.check_axes(self.name, (dimension,), avals[0].ndim)
        if not 1 <= num_keys <= len(avals):
            raise ShapeError(
                f"{self.name}: num_keys must be from 1 to the number of operands, {len(avals)}; "
                f"got {num_keys}."
            )
        if any(a.physical is not a for a in avals[:num_keys]):
            listed = ", ".join(map(str, avals[:num_keys]))
            raise DtypeError(f"{self.name}: random keys have no order; got {listed}.")
        return list(avals)

    def label_axes(self, avals, outs, *, dimension, **params):
        return families.along_each_other(avals, outs, whole=(dimension,))

    def lower(self, hlo, *xs, dimension, is_stable, num_keys):
        if xs[0].aval.size == 0:
            return list(xs)
        if not dtypes.PACKED.isdisjoint(x.aval.dtype for x in xs):
            wide = [hlo.convert(x, dtypes.whole_byte_dtype(x.aval.dtype)) for x in xs]
            params = {"is_stable": is_stable, "num_keys": num_keys}
            outs = self.lower(hlo, *wide, dimension=dimension, **params)
            return [hlo.convert(y, x.aval.dtype) for x, y in zip(xs, outs, strict=True)]
        if hlo.platform in GPUS and len(xs) == 1 and has_float_order(xs[0].aval.dtype):
            return lower_sort(hlo, xs, 1, dimension, is_stable)
        keys = [key for x in xs[:num_keys] for key in lower_keys(hlo, x)]
        if keys == list(xs):  # nothing but integers, which are their own keys
            return lower_sort(hlo, keys, len(keys), dimension, is_stable)
        return lower_sort(hlo, [*keys, *xs], len(keys), dimension, is_stable)[len(keys) :]

    def jvp(self, primals, tangents, *, dimension, is_stable, num_keys):
        params = dict(dimension=dimension, is_stable=is_stable, num_keys=num_keys)
        shape = typeof(primals[0]).shape
        place = broadcasted_iota(np.int32, shape, dimension)
        *outs, place = self.apply(*primals, place, **params)
        return outs, [
            t if isinstance(t, Zero) else take_along(t, place, dimension) for t in tangents
        ]

    def batch(self, axis, args, dims, *, dimension, **params):
        if all(d == dims[0] for d in dims):
            moved = dimension + (dimension >= dims[0])
        else:
            args = [batched_at_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)]
            dims, moved = [0] * len(args), dimension + 1
        return self.apply(*args, dimension=moved, **params), list(dims)


def lower_keys(hlo: Any, x: Any) -> list:
    """Return integers with the lexicographic order of the elements of `x`.

    Integers are returned unchanged.
    """
    x = Expr(hlo, x)
    if dtypes.is_complex(x.dtype):
        return [key for p in ("real", "imag") for key in lower_keys(hlo, x.part(p).value)]
    x = x.convert(dtypes.whole_byte_dtype(x.dtype))
    if not dtypes.is_float(x.dtype):
        return [x.value]
    if float(dtypes.finfo(x.dtype).min) > 0:  # float8_e8m0fnu: bits without a sign, and NaN last
        return [x.bitcast(np.uint8).value]
    key = order_bits(x.bitcast(f"int{x.dtype.itemsize * 8}"))
    key = x.compare("EQ", 0).select(key.like(0), key)
    highest = key.like(int(dtypes.iinfo(key.dtype).max))
    return [x.compare("NE", x).select(highest, key).value]


def lower_sort(hlo: Any, xs: Sequence[Any], num_keys: int, dimension: int, stable: bool) -> list:
    """Write a sort of arrays by the first `num_keys` of them: integers, or one of floats."""

    def before(*pairs: Any) -> list:
        """Return True if the left element comes first: by the last key, then the one before, ..."""
        result = None
        for k in reversed(range(num_keys)):
            x, y = (Expr(hlo, v) for v in pairs[2 * k : 2 * k + 2])
            if dtypes.is_float(x.dtype):
                return [comes_before(x, y)]
            less = x < y
            result = less if result is None else less | x.compare("EQ", y) & result
        return [result.value]

    return hlo.op(
        "stablehlo.sort",
        xs,
        [x.aval for x in xs],
        [hlo.block([ShapedArray((), x.aval.dtype) for x in xs for _ in range(2)], before)],
        dimension=f"{dimension} : i64",
        is_stable=bool_text(stable),
    )


def has_float_order(dtype: np.dtype) -> bool:
    """Return True if XLA has kernels for a GPU that sort floats of this dtype."""
    return dtypes.is_float(dtype) and dtype.itemsize > 1


def comes_before(*pair: Expr) -> Any:
    """Write whether the first float comes first, in the form that those kernels are chosen by."""
    zeros_alike = (x.compare("EQ", 0).select(x.like(0), x) for x in pair)
    x, y = (
        x.compare("NE", x).select(x.like(np.nan), key).value
        for x, key in zip(pair, zeros_alike, strict=True)
    )
    return pair[0].hlo.compare("LT", x, y, "TOTALORDER")


def has_native_order(x: ShapedArray) -> bool:
    """Return True if the kernels can sort by an array: no floats of a byte, no parts of a byte."""
    if dtypes.itemsize_bits(x.dtype) < 8 or not is_below(x.size, 2**32):
        return False
    return x.dtype.itemsize > 1 or not dtypes.is_float(x.dtype)


sort_p = Sort()


def take_along(x: Any, indices: Any, dimension: int) -> Any:
    """x at `indices`, distinct ones along one axis, for each position on the others."""
    ndim = typeof(x).ndim
    others = tuple(i for i in range(ndim) if i != dimension)
    numbers = GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(dimension,),
        start_index_map=(dimension,),
        operand_batching_dims=others,
        start_indices_batching_dims=others,
    )
    return gather(
        x,
        expand_dims(indices, (ndim,)),
        numbers,
        (1,) * ndim,
        unique_indices=True,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def sort(
    operand: Operands, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Operands:
    """Sort arrays along an axis.

    Several arrays may be sorted together: the first ones are the keys, and the others are carried
    along. The order of floats is total: -0.0 equals 0.0, and NaN comes last. The derivative
    permutes the tangents as the elements.

    Args:
      operand: an array, or a sequence of arrays of one shape.
      dimension: the axis, an int. The default is the last.
      is_stable: if True, the default, elements with equal keys keep their order.
      num_keys: the number of arrays that are keys, an int >= 1. Later keys decide if earlier ones
        are equal. The default is 1.

    Returns:
      An array of the shape and dtype of the operand; a tuple of arrays for a sequence.

    Raises:
      ShapeError: the operands differ in shape, do not have the axis, or are fewer than `num_keys`.

    >>> print(lax.sort(jnp.array([3, 1, 2])))
    [1 2 3]
    >>> a, b = lax.sort((jnp.array([2, 1, 2]), jnp.array([5, 6, 4])), num_keys=2)
    >>> print(a, b)
    [1 2 2] [6 4 5]
    """
    several = isinstance(operand, Sequence)
    xs = tuple(operand) if several else (operand,)
    dimension = families.normalize_axis("sort", dimension, typeof(xs[0], "sort").ndim if xs else 1)
    num_keys = families.check_integer("sort", "num_keys", num_keys)
    outs = sort_p.apply(*xs, dimension=dimension, is_stable=bool(is_stable), num_keys=num_keys)
    return tuple(outs) if several else outs[0]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort an array of keys along an axis, and an array of values in the same order.

    Args:
      keys: an array.
      values: an array of the same shape and any dtype.
      dimension: the axis, an int. The default is the last.
      is_stable: if True, the default, values with equal keys keep their order.

    Returns:
      A pair of arrays: the sorted keys, and the values in their order.

    Raises:
      ShapeError: the arrays differ in shape.

    >>> keys, values = lax.sort_key_val(jnp.array([3, 1, 2]), jnp.array([10, 11, 12]))
    >>> print(keys, values)
    [1 2 3] [11 12 10]
    """
    out, carried = sort((keys, values), dimension, is_stable)
    return out, carried


# --- partition ------------------------------------------------------------------------------


class Partition(Primitive):
    """x rearranged along `axis` so that given ranks hold the elements that sorting puts there.

    The elements before such a rank are not larger, and the elements after it not smaller. The order
    is `sort`'s. `kth` holds the ranks; ranks out of range are ignored. With `places` the
    result is the original indices of the elements (int32). Shapes: x and kth of one rank, alike
    except along the axis; the result's is x's. Dtypes: x any, kth int32. Source: weft.
    """

    name = "partition"
    form = Form.PARTITION
    elements = Elements.CHOSEN
    cost = Cost.TRANSCENDENTAL

    def abstract_eval(self, x, kth, *, axis, places):
        families.check_axes(self.name, (axis,), x.ndim)
        if x.physical is not x:
            raise DtypeError(f"{self.name}: random keys have no order; got {x}.")
        if kth.dtype != np.int32:
            raise DtypeError(f"{self.name}: kth must be int32; got {kth}.")
        without = [a.shape[:axis] + a.shape[axis + 1 :] for a in (x, kth)]
        if kth.ndim != x.ndim or without[0] != without[1]:
            raise ShapeError(
                f"{self.name}: kth must be of the operand's shape but along axis {axis}; "
                f"got {x} and {kth}."
            )
        return [ShapedArray(x.shape, np.int32) if places else x]

    def label_axes(self, avals, outs, *, axis, **params):
        return families.along_each_other(avals, outs, whole=(axis,))

    def lower(self, hlo, x, kth, *, axis, places):
        by_sort = stage_whole(lambda x: [sort_as_partition(x, axis, places)], [x.aval])
        return lower_jaxpr(hlo, by_sort, [x])

    def jvp(self, primals, tangents, *, axis, places):
        x, kth = primals
        (place,) = self.apply(x, kth, axis=axis, places=True)
        if places:
            return [place], families.zero_tangents([place])
        y = take_along(x, place, axis)
        if isinstance(tangents[0], Zero):
            return [y], families.zero_tangents([y])
        return [y], [take_along(tangents[0], place, axis)]

    def batch(self, mapped, args, dims, *, axis, places):
        x, kth = (batched_at_front(x, d, mapped.size) for x, d in zip(args, dims, strict=True))
        return self.apply(x, kth, axis=axis + 1, places=places), [0]


partition_p = Partition()


def sort_as_partition(x: Any, axis: int, places: bool) -> Any:
    """Return a valid result of `partition`, by a sort: the sorted elements, or their places."""
    xs = [x]
    if places:
        xs.append(broadcasted_iota(np.int32, typeof(x).shape, axis))
    return sort_p.apply(*xs, dimension=axis, is_stable=True, num_keys=1)[-1]


# --- the largest ----------------------------------------------------------------------------


class TopK(families.AlongAxis):
    """The k largest elements along `axis`, descending, and their indices (int32); first on ties.

    Floats in the order of IEEE 754's totalOrder: NaN first, -0.0 after 0.0, -NaN last.
    Dtypes: real. Source: CHLO, top_k.
    """

    name = "top_k"
    form = Form.TOP_K
    elements = Elements.CHOSEN
    cost = Cost.TRANSCENDENTAL
    multiple_results = True

    def abstract_eval(self, x, *, k, axis):
        families.check_axes(self.name, (axis,), x.ndim)
        families.check_kind(self.name, "real", x)
        if not 0 <= k <= x.shape[axis]:
            raise ShapeError(
                f"{self.name}: k must be from 0 to the size of the axis; "
                f"got k={k} for axis {axis} of {x}."
            )
        shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
        return [x.update(shape=shape), ShapedArray(shape, np.int32)]

    def lower(self, hlo, x, *, k, axis):
        order = [i for i in range(x.aval.ndim) if i != axis] + [axis]
        dtype = x.aval.dtype
        x = Expr(hlo, x).transpose(order).convert(dtypes.whole_byte_dtype(dtype))
        outs = self.abstract_eval(x.aval, k=k, axis=len(order) - 1)
        outs = hlo.op("chlo.top_k", [x.value], outs, k=f"{k} : i64")
        value, place = (Expr(hlo, y).transpose(np.argsort(order)) for y in outs)
        return [value.convert(dtype).value, place.value]

    def jvp(self, primals, tangents, *, k, axis):
        value, place = self.apply(*primals, k=k, axis=axis)
        return [value, place], [
            take_along(*tangents, place, axis),
            *families.zero_tangents([place]),
        ]


top_k_p = TopK()
approx_top_k_p = top_k_p  # approximate ones are exact here


def top_k(
    operand: ArrayLike, k: int, *, axis: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Return the k largest elements along an axis, in descending order, and their indices.

    Of equal elements the one with the smaller index comes first. NaN counts as the largest value.

    Args:
      operand: an array of integers or floats.
      k: the number of elements, an int from 0 to the size of the axis.
      axis: the axis, an int. The default is the last.
      is_stable: is accepted for compatibility with JAX; equal elements keep their order anyway.

    Returns:
      A pair (values, indices) of arrays with k elements on the axis: values of the operand's dtype,
      and int32 indices.

    Raises:
      ShapeError: k is larger than the axis.

    >>> values, indices = lax.top_k(jnp.array([3, 1, 3, 2]), 2)
    >>> print(values, indices)
    [3 3] [0 2]
    """
    axis = families.normalize_axis("top_k", axis, typeof(operand, "top_k").ndim)
    value, place = top_k_p.apply(operand, k=families.check_integer("top_k", "k", k), axis=axis)
    return value, place


APPROXIMATE_DOC = """Return the k {0} elements along an axis, and their indices.

    In JAX the result is approximate on TPUs. Here it is exact on every platform, so the recall
    is 1. For integers, or equal elements in a fixed order, use `top_k`.

    Args:
      operand: an array of floats.
      k: the number of elements, an int from 0 to the size of the axis.
      reduction_dimension: the axis, an int. The default is the last.
      recall_target: a number in (0, 1]; it is accepted for compatibility with JAX.
      reduction_input_size_override: is accepted for compatibility with JAX, and ignored.
      aggregate_to_topk: is accepted for compatibility with JAX, and ignored.

    Returns:
      A pair (values, indices) of arrays with k elements on the axis: values of the operand's
      dtype, and int32 indices.

    Raises:
      DtypeError: the operand is not of floats.
      ShapeError: k is larger than the axis.

    >>> values, indices = lax.{1}(jnp.array([3.0, 1.0, 0.0]), 2)
    >>> print(values, indices)
    {2}
    """


def define_approximate(name: str, extremum: str, negate: bool) -> Callable[..., Any]:
    """`approx_max_k` or `approx_min_k`."""

    def fun(
        operand: ArrayLike,
        k: int,
        reduction_dimension: int = -1,
        recall_target: float = 0.95,
        reduction_input_size_override: int = -1,
        aggregate_to_topk: bool = True,
    ) -> tuple[Array, Array]:
        families.check_kind(name, "float", typeof(operand))
        if not isinstance(recall_target, int | float) or not 0 < recall_target <= 1:
            raise ShapeError(f"{name}: recall_target must be in (0, 1]; got {recall_target}.")
        value, place = top_k(neg(operand) if negate else operand, k, axis=reduction_dimension)
        return neg(value) if negate else value, place

    example = "[0. 1.] [2 1]" if negate else "[3. 1.] [0 1]"
    return name_function(fun, name, APPROXIMATE_DOC.format(extremum, name, example))


approx_max_k = define_approximate("approx_max_k", "largest", False)
approx_min_k = define_approximate("approx_min_k", "smallest", True)


# --- places -----------------------------------------------------------------------------------


class FindPlaces(families.AlongAxis):
    """The places of the first `size` true elements along `axis`, ascending; then its length.

    The last is given where no more are found. The result is int32, or int64 where that is needed.

    Dtypes: bool.
    """

    name = "find_places"
    form = Form.PLACES
    cost = Cost.TRANSCENDENTAL

    def abstract_eval(self, x, *, size, axis):
        families.check_axes(self.name, (axis,), x.ndim)
        if not dtypes.is_bool(x.dtype):
            raise DtypeError(f"{self.name}: the operand must be bool; got {x}.")
        shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
        return [x.update(shape=shape, dtype=index_dtype(INT32, x.shape[axis]))]

    def lower(self, hlo, x, *, size, axis):
        order = [i for i in range(x.aval.ndim) if i != axis] + [axis]
        x = Expr(hlo, x).transpose(order)
        *shape, n = x.shape
        rows = x.reshape((math.prod(shape), n))
        jaxpr = stage_whole(lambda mask: [find_places_by_rank(mask, size)], [rows.aval])
        (y,) = lower_jaxpr(hlo, jaxpr, [rows.value])
        return [Expr(hlo, y).reshape((*shape, size)).transpose(np.argsort(order)).value]

    def jvp(self, primals, tangents, **params):
        outs = self.apply(*primals, **params)
        return outs, families.zero_tangents(outs)


def find_places_by_rank(mask: Any, size: int) -> Any:
    """Return `find_places` along rows: the position of the k-th True for each k below `size`.

    Each position is written at the number of True before it; the last write wins. All positions are
    written, since a branch on the mask would be mispredicted.
    """
    rows, n = typeof(mask).shape
    dtype = index_dtype(INT32, n)
    mask = layout.convert(mask, dtype)
    number = layout.reduce_sum(mask, (1,))
    found = scatter_max(
        layout.fill((rows, size), 0, dtype),
        expand_dims(sub(cumsum(mask, 1), mask), (2,)),
        count_columns(dtype, (rows, n)),
        ScatterDimensionNumbers((), (1,), (1,), (0,), (0,)),
        mode=GatherScatterMode.ONE_HOT,
    )
    there = lt(
        count_columns(dtype, (rows, size)), layout.broadcast_in_dim(number, (rows, size), (0,))
    )
    return select(there, found, layout.fill((rows, size), n, dtype))


def count_columns(dtype: np.dtype, shape: tuple[int, int]) -> Any:
    """The number of the column at each place, in a dtype that may have 64 bits in any case."""
    return iota_p.apply(dtype=dtype, shape=shape, dimension=1, sharding=None)[0]


find_places_p = FindPlaces()


def find_places(mask: Any, size: int) -> Any:
    """The places of the first `size` true elements of the last axis; its length where none is."""
    return find_places_p.apply(mask, size=size, axis=typeof(mask).ndim - 1)[0]
