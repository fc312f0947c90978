"""Sorts, partitions, the largest elements and places of true ones, as CPUs compute them quickest.

So are elements looked up among others. The kernels are in native/sort.cc, partition.cc, top_k.cc
and members.cc. They go along the last axis.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Eqn
from weft.cpu.calls import call_kernel
from weft.cpu.formula import apply_formula
from weft.cpu.scope import Scope
from weft.primitives.bits import bitcast_convert_type_p, shift_right_arithmetic
from weft.primitives.dynamic_slicing import MOST
from weft.primitives.elementwise import bitwise_and, bitwise_not, bitwise_xor
from weft.primitives.expr import Expr, count_along
from weft.primitives.layout import broadcasted_iota, convert, reshape, transpose
from weft.primitives.slicing import slice_in_dim
from weft.primitives.sort import has_native_order, lower_keys, lower_sort, sort_as_partition
from weft.util import has_symbolic_size, inverse_permutation, is_below
from weft.xla.hlo import i64s

BOOL, INT32 = np.dtype(np.bool_), np.dtype(np.int32)
# The kernel that finds the k largest is quicker than a sort for rows of up to this many times k.
MAX_TOP_K_RATIO = 8
# Elements that are looked up as quickly as a second thread is woken, from as many comparisons on as
# XLA wakes it for.
MAX_LOOKED_UP, MIN_COMPARED = 1 << 13, 1000
MAX_MEMBERS = 1 << 24  # their table takes up to 64 bytes for each


def call_along_rows(
    kernel: str,
    xs: Sequence[Any],
    outs: Sequence[ShapedArray],
    axis: int,
    attributes: Mapping[str, Any],
) -> list:
    """Call a kernel that goes along the last axis for an axis of its operands.

    `outs` are the types of the results, with the axes of the operands.
    """
    order = [*(i for i in range(typeof(xs[0]).ndim) if i != axis), axis]
    turned = [transpose(x, order) for x in xs]
    outs = [ShapedArray([y.shape[i] for i in order], y.dtype) for y in outs]
    found = call_kernel(kernel, turned, outs, attributes)
    return [transpose(y, inverse_permutation(order)) for y in found]


def choose_sort(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Sort by the kernel; one key of at most 32 bits as one array of 64-bit integers."""
    avals, count = [a.aval for a in eqn.invars], eqn.params["num_keys"]
    keys, axis = avals[:count], eqn.params["dimension"]
    if avals[0].size == 0:
        return None
    if scope.target.kernels and all(map(has_native_order, keys)):
        attributes = {"num_keys": count}
        return lambda *xs: call_along_rows("weft_sort", xs, avals, axis, attributes)
    simple = dtypes.is_integer(keys[0].dtype) and dtypes.itemsize_bits(keys[0].dtype) >= 8
    if count > 1 or (simple and len(avals) == 1) or dtypes.is_complex(keys[0].dtype):
        return None
    if dtypes.itemsize_bits(keys[0].dtype) > 32 or not is_below(keys[0].size, 2**31):
        return None
    return lambda *xs: apply_formula(write_packed_sort, xs, avals, axis)


def write_packed_sort(hlo: Any, *args: Any) -> list:
    """Write a sort by one key of 32 bits at most: XLA:CPU sorts one array 4 times faster than two.

    A key and its index form one 64-bit integer. The other operands are gathered by the indices.
    """
    *xs, dimension = args
    (key,) = lower_keys(hlo, xs[0])
    shape, size = key.aval.shape, key.aval.size
    order = [*(i for i in range(len(shape)) if i != dimension), dimension]
    key = Expr(hlo, key).transpose(order)
    turned = key.shape
    wide = np.dtype(np.int64 if dtypes.is_signed(key.dtype) else np.uint64)
    place = count_along(hlo, ShapedArray((size,), wide), 0).reshape(turned)
    packed = key.convert(wide).apply("shift_left", 32) | place
    (place,) = lower_sort(hlo, [packed.value], 1, len(turned) - 1, False)
    place = Expr(hlo, place).convert(INT32).reshape((size, 1))
    numbers = "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
    outs = []
    for x in xs:
        line = Expr(hlo, x).transpose(order).reshape((size,))
        y = line.make(
            "gather",
            line.aval,
            place,
            dimension_numbers=f"#stablehlo.gather<{numbers}>",
            slice_sizes=i64s([1]),
            indices_are_sorted="false",
        )
        outs.append(y.reshape(turned).transpose(inverse_permutation(order)).value)
    return outs


def choose_partition(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Partition by the kernel, else by a sort, which may have a kernel or a form of its own."""
    x, params = eqn.invars[0].aval, eqn.params
    axis, places = params["axis"], params["places"]
    if x.size and scope.target.kernels and has_native_order(x):
        outs, attributes = [v.aval for v in eqn.outvars], {"want_places": places}
        return lambda *xs: call_along_rows("weft_partition", xs, outs, axis, attributes)
    return lambda x, kth: [sort_as_partition(x, axis, places)]


def choose_top_k(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Find the largest by a kernel, in rows."""
    x = eqn.invars[0].aval
    dtype = dtypes.whole_byte_dtype(x.dtype)
    if not scope.target.kernels or not has_native_order(x.update(dtype=dtype)):
        return None
    return functools.partial(find_largest, dtype=dtype, **eqn.params)


def find_largest(x: Any, dtype: np.dtype, k: int, axis: int) -> list:
    """Return the k largest elements along an axis, and their indices.

    Elements are converted to `dtype`, a dtype of whole bytes, and compared in it.
    """
    given = typeof(x)
    order = [*(i for i in range(given.ndim) if i != axis), axis]
    x = convert(transpose(x, order), dtype)
    *shape, n = x.shape
    if not is_below(n, MAX_TOP_K_RATIO * k):
        rows = math.prod(shape)
        lines = [ShapedArray((rows, k), d) for d in (dtype, INT32)]
        found = call_kernel("weft_top_k", [reshape(x, (rows, n))], lines)
        found = [reshape(y, (*shape, k)) for y in found]
    else:
        found = take_first_sorted(x, k)
    value, place = (transpose(y, inverse_permutation(order)) for y in found)
    return [convert(value, given.dtype), place]


def take_first_sorted(x: Any, k: int) -> list:
    """Return the k largest elements of rows, and their indices, by the kernel that sorts.

    The keys are integers that sort in the reverse order of the elements.
    """
    aval = typeof(x)
    bits = np.dtype(f"int{aval.dtype.itemsize * 8}")
    is_float = dtypes.is_float(aval.dtype)
    key = order_words(bitcast_convert_type_p.apply(x, new_dtype=bits)[0]) if is_float else x
    key = bitwise_not(key)
    axis = aval.ndim - 1
    place = broadcasted_iota(INT32, aval.shape, axis)
    pair = [key, place]
    found = call_kernel("weft_sort", pair, [*map(typeof, pair)], {"num_keys": 1})
    key, place = (slice_in_dim(y, 0, k, 1, axis) for y in found)
    key = bitwise_not(key)
    if is_float:
        key = bitcast_convert_type_p.apply(order_words(key), new_dtype=aval.dtype)[0]
    return [key, place]


def order_words(bits: Any) -> Any:
    """Return the bits of floats, as signed integers, in IEEE 754's totalOrder; and back."""
    info = dtypes.iinfo(typeof(bits).dtype)
    sign = shift_right_arithmetic(bits, info.bits - 1)
    return bitwise_xor(bits, bitwise_and(sign, int(info.max)))


def choose_places(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Find the places of true elements by the kernel, in rows."""
    x, size, axis = eqn.invars[0].aval, eqn.params["size"], eqn.params["axis"]
    if not scope.target.kernels or has_symbolic_size((*x.shape, size)) or x.shape[axis] > MOST:
        return None

    def find(x: Any) -> list:
        order = [*(i for i in range(x.ndim) if i != axis), axis]
        *shape, n = (x.shape[i] for i in order)
        rows = reshape(transpose(x, order), (math.prod(shape), n))
        out = ShapedArray((math.prod(shape), size), INT32)
        (y,) = call_kernel("weft_find_places", [rows], [out])
        return [transpose(reshape(y, (*shape, size)), inverse_permutation(order))]

    return find


def choose_ranks(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Find elements by their ranks by the kernel that partitions, else as other platforms do."""
    prim: Any = eqn.primitive
    x, k = (a.aval for a in eqn.invars)
    partitions = scope.target.kernels and has_native_order(x) and not prim.sorts(x, k)
    return prim.select_by_partition if partitions else prim.select_anywhere


def choose_members(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Look elements up in a table by the kernel: among many, and where XLA would wake a thread."""
    prim: Any = eqn.primitive
    x, members = (a.aval for a in eqn.invars)
    real = has_native_order(x) and not dtypes.is_complex(x.dtype)
    if not scope.target.kernels or not real or not is_below(members.size, MAX_MEMBERS):
        return None
    alone = (
        scope.light and is_below(x.size, MAX_LOOKED_UP) and x.size * members.size >= MIN_COMPARED
    )
    if prim.compares(members) and not alone:
        return prim.find_plainly  # which passes may read, unlike the primitive
    return lambda *xs: call_kernel("weft_members", xs, [ShapedArray(x.shape, BOOL)])
