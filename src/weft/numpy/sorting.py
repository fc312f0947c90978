"""Order by value: sorting, and finding positions in sorted vectors.

The search for elements that satisfy a condition is in searching.py, distinct elements in sets.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft.api.while_loop import while_loop
from weft.core.aval import typeof
from weft.errors import DtypeError, ShapeError
from weft.numpy.indexing import PLAIN, broadcast_last, getitem_with, take_along_axis
from weft.numpy.manipulation import as_arrays
from weft.numpy.promotion import (
    as_array,
    as_arrays_together,
    axis_of,
    check_vector,
    promote_operands,
)
from weft.primitives import elementwise as ops
from weft.primitives.dynamic_slicing import index_dtype
from weft.primitives.families import check_integer
from weft.primitives.layout import literal
from weft.primitives.sort import partition_p
from weft.run.operation import operation
from weft.util import SymbolicSize, check_option
from weft.xla.typing import Array, ArrayLike, DTypeLike

INT32 = np.dtype(np.int32)


# --- sorting ----------------------------------------------------------------------------------


def refuse_kind(op: str, kind: Any, order: Any) -> None:
    """Refuse the keywords of NumPy that offer no choice here."""
    if kind is not None:
        raise TypeError(f"{op}: kind must be None; got {kind!r}. Hint: stable=True.")
    if order is not None:
        raise TypeError(f"{op}: order must be None: arrays have no fields; got {order!r}.")


def flatten_or_check(op: str, a: Any, axis: int | None) -> tuple[Any, int]:
    """Return the array to sort and the axis; None flattens."""
    x = as_array(a, op)
    if axis is None:
        return lax.reshape(x, (x.size,)), 0
    return x, axis_of(op, axis, x.ndim)


@operation(static=("axis", "kind", "order", "stable", "descending"))
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """Return a sorted copy of an array.

    NaN is larger than all numbers, so it comes last in ascending order and first in descending
    order. Complex numbers are ordered by the real part, then by the imaginary part. The derivative
    follows each element to its new position.

    Args:
      a: an array of any dtype with at least one axis; a scalar needs axis=None.
      axis: the axis to sort along. None sorts the flattened array. Static under `jit`, as are the
        others.
      kind: must be None. There is one algorithm; `stable` replaces NumPy's names of them.
      order: must be None, as arrays have no fields.
      stable: if True, equal elements keep their order, which only `argsort` and derivatives show.
      descending: if True, sort in descending order. NumPy has no such argument.

    Returns:
      An array of the shape and dtype of `a`; a vector if `axis` is None.

    Raises:
      ShapeError: if the array lacks this axis.
      TypeError: if `kind` or `order` is given.

    >>> jnp.sort(jnp.array([3, 1, 2]), descending=True)
    Array([3, 2, 1], dtype=int32)
    >>> print(jnp.sort(jnp.array([[3, 1], [2, 0]]), axis=0), jnp.sort(jnp.array([3., jnp.nan, 1.])))
    [[2 0]
     [3 1]] [ 1.  3. nan]
    """
    refuse_kind("sort", kind, order)
    x, axis = flatten_or_check("sort", a, axis)
    out = lax.sort(x, axis, is_stable=stable)
    return lax.rev(out, (axis,)) if descending else out


@operation(static=("axis", "kind", "order", "stable", "descending", "dtype"))
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return the indices that sort an array: `take_along_axis(a, argsort(a), -1)` is `sort(a)`.

    Equal elements keep their order, in descending order too, where the reversed result of NumPy
    does not. The indices have no derivative.

    Args:
      a: an array of any dtype with at least one axis; a scalar needs axis=None.
      axis: the axis to sort along. None sorts the flattened array. Static under `jit`, as are the
        others.
      kind: must be None. There is one algorithm; `stable` replaces NumPy's names of them.
      order: must be None, as arrays have no fields.
      stable: if True, equal elements keep their order.
      descending: if True, sort in descending order. NumPy has no such argument.
      dtype: the integer dtype of the indices; None stands for the default integer dtype.

    Returns:
      Indices of the shape of `a`; a vector if `axis` is None.

    Raises:
      ShapeError: if the array lacks this axis.
      TypeError: if `kind` or `order` is given.

    >>> x = jnp.array([3, 1, 2, 1])
    >>> print(jnp.argsort(x), jnp.argsort(x, descending=True))
    [1 3 2 0] [0 2 1 3]
    """
    refuse_kind("argsort", kind, order)
    x, axis = flatten_or_check("argsort", a, axis)
    kept = dtypes.default_int() if dtype is None else dtypes.check_user_dtype(dtype, "argsort")
    places = lax.broadcasted_iota(index_dtype(INT32, x.shape[axis]), x.shape, axis)
    if descending:  # of the reversed array, so that reversing back keeps equal elements in order
        x, places = lax.rev(x, (axis,)), lax.rev(places, (axis,))
    _, out = lax.sort((x, places), axis, is_stable=stable, num_keys=1)
    return ops.convert(lax.rev(out, (axis,)) if descending else out, kept)


@operation
def sort_complex(a: ArrayLike) -> Array:
    """Return the elements as complex numbers, sorted along the last axis.

    The order is by the real part, then by the imaginary part.

    Args:
      a: an array of any dtype with at least one axis.

    Returns:
      An array of the shape of `a` and a complex dtype.

    Raises:
      ShapeError: if `a` is a scalar.

    >>> jnp.sort_complex(jnp.array([3, 1]))
    Array([1.+0.j, 3.+0.j], dtype=complex64)
    """
    out = sort(a, -1)
    return ops.convert(out, dtypes.complex_dtype(dtypes.inexact_dtype(out.dtype)))


def lexsort(
    keys: ArrayLike | Sequence[ArrayLike], axis: int = -1, *, batch_size: int = 16
) -> Array:
    """Return the indices that sort by several keys, as the rows of a table are sorted by columns.

    The last key counts first. Ties are ordered by the key before it, and so on; equal rows keep
    their order.

    Args:
      keys: arrays of equal shape, of any dtypes, or one array with the keys along its first axis.
      axis: the axis to sort along. Static under `jit`.
      batch_size: the number of keys that one sort compares, at least 1. If there are more, the keys
        are sorted in batches, the last keys after the others. The result is the same.

    Returns:
      Indices of the shape of a key, of the default integer dtype.

    Raises:
      ShapeError: if the keys differ in shape, or lack the axis.
      TypeError: if `keys` is empty.

    >>> jnp.lexsort((jnp.array([1, 0, 1]), jnp.array([2, 1, 1])))
    Array([1, 2, 0], dtype=int32)
    """
    arrays = as_arrays("lexsort", keys)
    if not arrays:
        raise TypeError("lexsort: needs at least one key; got none.")
    if any(k.shape != arrays[0].shape for k in arrays):
        listed = ", ".join(str(k.aval) for k in arrays)
        raise ShapeError(f"lexsort: keys must have equal shapes; got {listed}.")
    if not arrays[0].ndim:
        check_integer("lexsort", "axis", axis)
        return ops.convert(lax.full((), 0, INT32), dtypes.default_int())
    axis = axis_of("lexsort", axis, arrays[0].ndim)
    size = check_integer("lexsort", "batch_size", batch_size, 1)
    if len(arrays) <= size:
        return lexsort_arrays(arrays, axis)
    places = lexsort_arrays(arrays[:size], axis)
    for i in range(size, len(arrays), size):
        batch = [take_along_axis(k, places, axis) for k in arrays[i : i + size]]
        places = take_along_axis(places, lexsort_arrays(batch, axis), axis)
    return places


@operation(static=("axis",))
def lexsort_arrays(keys: list, axis: int) -> Any:
    """Compute `lexsort` of arrays."""
    places = lax.broadcasted_iota(INT32, keys[0].shape, axis)
    *_, out = lax.sort((*reversed(keys), places), axis, num_keys=len(keys))
    return ops.convert(out, dtypes.default_int())


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Reorder elements so that the k-th smallest is in its place, with the smaller ones before it.

    The other elements are in no particular order. NaN is larger than all numbers. This is for a
    median, or for some of the smallest elements, where a sort does more than is needed.

    Args:
      a: an array of any dtype with at least one axis.
      kth: the position, from 0; a negative one is counted from the end. It is an int, where NumPy
        takes several positions too. Static under `jit`, as is `axis`.
      axis: the axis to reorder along.

    Returns:
      An array of the shape and dtype of `a`.

    Raises:
      ShapeError: if `kth` is out of range, or if the array lacks this axis.
      TypeError: if `kth` is not an integer.

    >>> x = jnp.partition(jnp.array([3, 1, 2, 0, 4]), 2)
    >>> print(x[2], jnp.sort(x[:2]))
    2 [0 1]
    """
    return partition_about("partition", a, kth, axis, False)


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Return the indices that reorder elements as `partition` does.

    The k-th index is the position of the k-th smallest element, and the indices of smaller elements
    come before it. The indices have no derivative.

    Args:
      a: an array of any dtype with at least one axis.
      kth: the position, from 0; a negative one is counted from the end. Static under `jit`, as is
        `axis`.
      axis: the axis to reorder along.

    Returns:
      Indices of the shape of `a`, int32.

    Raises:
      ShapeError: if `kth` is out of range, or if the array lacks this axis.
      TypeError: if `kth` is not an integer.

    >>> i = jnp.argpartition(jnp.array([30, 10, 20, 0]), 1)
    >>> print(i[1], i[0])
    1 3
    """
    return partition_about("argpartition", a, kth, axis, True)


def partition_about(op: str, a: Any, kth: Any, axis: int, places: bool) -> Any:
    """Compute `partition` or, for `places`, `argpartition`."""
    x = as_array(a, op)
    axis = axis_of(op, axis, x.ndim)
    n, k = x.shape[axis], check_integer(op, "kth", kth)
    if not -n <= k < n:
        raise ShapeError(f"{op}: kth must be in [-{n}, {n}) for axis {axis} of {x.aval}; got {k}.")
    return partition_array(x, k % n, axis, places)


@operation(static=("kth", "axis", "places"))
def partition_array(x: Any, kth: int, axis: int, places: bool) -> Any:
    """Compute `partition_about` of an array, along an axis counted from the front."""
    shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    about = lax.full(shape, kth, INT32)
    (out,) = partition_p.apply(x, about, axis=axis, places=places)
    return out


@operation(static=("k", "axis", "mode"))
def top_k(
    x: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> tuple[Array, Array]:
    """Return the k largest elements along an axis, and their indices.

    The values are in descending order. With mode "smallest", they are the smallest elements in
    ascending order. Of equal elements, the first comes first. NaN counts as the largest.

    Args:
      x: an array of a real dtype with at least one axis.
      k: the number of elements, from 0 to the size of the axis. Static under `jit`, as are `axis`
        and `mode`.
      axis: the axis to select along.
      mode: "largest" or "smallest".
      sorted: accepted, without effect: the results are always in order.

    Returns:
      A pair (values, indices), both with size k along the axis. The indices have the default
      integer dtype.

    Raises:
      ShapeError: if `k` is larger than the size of the axis.
      ValueError: if `mode` is not one of these.

    >>> jnp.top_k(jnp.array([3, 1, 4, 1]), 2)
    (Array([4, 3], dtype=int32), Array([2, 0], dtype=int32))
    >>> jnp.top_k(jnp.array([3, 1, 4, 1]), 2, mode="smallest")
    (Array([1, 1], dtype=int32), Array([1, 3], dtype=int32))
    """
    x = as_array(x, "top_k")
    axis = axis_of("top_k", axis, x.ndim)
    check_option("top_k", "mode", mode, "largest", "smallest")
    k = check_integer("top_k", "k", k)
    lax.top_k_p.abstract_eval(typeof(x), k=k, axis=axis)  # checks both modes
    if mode == "largest":
        values, places = lax.top_k_p.apply(x, k=k, axis=axis)
        return values, ops.convert(places, dtypes.default_int())
    places = lax.broadcasted_iota(INT32, x.shape, axis)
    values, places = lax.sort((x, places), axis, num_keys=1)
    values, places = (lax.slice_in_dim(v, 0, k, 1, axis) for v in (values, places))
    return values, ops.convert(places, dtypes.default_int())


# --- finding places ---------------------------------------------------------------------------


def comes_before(x: Any, y: Any, or_equal: bool) -> Any:
    """Return True where x sorts before y, or is equal: NaN last, complex numbers by part."""
    if or_equal:  # XLA takes half the time for it as for x <= y or y is NaN
        return ops.bitwise_not(comes_before(y, x, False))
    if dtypes.is_complex(typeof(x).dtype):
        a, b = ops.real(x), ops.real(y)
        imaginary = comes_before(ops.imag(x), ops.imag(y), False)
        tie = ops.bitwise_and(comes_before(a, b, True), imaginary)
        return ops.bitwise_or(comes_before(a, b, False), tie)
    if not dtypes.is_inexact(typeof(x).dtype):
        return ops.lt(x, y)
    last = ops.bitwise_and(ops.ne(y, y), ops.eq(x, x))
    return ops.bitwise_or(ops.lt(x, y), last)


def check_positions(op: str, a: Any) -> None:
    """Refuse a vector whose end has a position that integers cannot hold."""
    most = int(np.iinfo(dtypes.default_int()).max)
    if isinstance(a.size, int) and a.size > most:
        raise DtypeError(
            f"{op}: a position must fit {dtypes.default_int()}, so a vector at most {most} "
            f"elements; got {a.aval}. Hint: config.update('enable_x64', True)."
        )


METHODS = ("default", "scan", "scan_unrolled", "sort", "compare_all")


@operation(static=("side", "method"))
def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Array:
    """Find the positions in a sorted vector where inserted values keep it sorted.

    NaN is larger than all numbers. Complex numbers are ordered by the real part, then by the
    imaginary part.

    Args:
      a: a vector (n,) in ascending order, of any dtype. Another order is not detected.
      v: the values, an array of any shape. The operands are promoted to one dtype.
      side: "left" for the position before equal elements, "right" for the position after them.
        Static under `jit`.
      sorter: the indices (n,) that sort `a`, as `argsort` returns them, if `a` is not sorted.
      method: "compare_all" compares each value with all elements, which suits short vectors on
        accelerators. "scan", "scan_unrolled", "sort" and "default" search by halving. Static under
        `jit`.

    Returns:
      Positions from 0 to n, of the shape of `v` and the default integer dtype.

    Raises:
      ShapeError: if `a` is not a vector.
      ValueError: if `side` or `method` is not one of these.

    >>> jnp.searchsorted(jnp.array([1, 3, 5]), jnp.array([3, 4]), side="right")
    Array([2, 2], dtype=int32)
    >>> a = jnp.array([5, 1, 3])
    >>> print(jnp.searchsorted(a, 3, sorter=jnp.argsort(a)))
    1
    """
    check_option("searchsorted", "side", side, "left", "right")
    check_option("searchsorted", "method", method, *METHODS)
    a, v = as_arrays_together("searchsorted", a, v)
    check_vector("searchsorted", "a", a)
    check_positions("searchsorted", a)
    if sorter is not None:
        a = getitem_with(a, as_array(sorter, "searchsorted"), PLAIN)
    if method != "compare_all":
        return ops.convert(search_by_halving(a, v, side), dtypes.default_int())
    x, y = promote_operands("searchsorted", a, v, shaped=False)
    shape = (*v.shape, a.size)
    y = lax.broadcast_in_dim(y, shape, range(v.ndim))
    before = comes_before(broadcast_last(x, shape), y, side == "right")
    return lax.reduce_sum(ops.convert(before, dtypes.default_int()), (v.ndim,))


@operation(static=("side",))
def search_by_halving(a: Any, v: Any, side: str) -> Any:
    """Compute `searchsorted` by halving the range: n elements from `first` on may be before v."""
    x, y = promote_operands("searchsorted", a, v, shaped=False)
    n, dtype = a.size, index_dtype(INT32, a.size)
    first = lax.full(v.shape, 0, dtype)
    if isinstance(n, SymbolicSize):
        return search_in_loop(x, y, first, literal(n, dtype), side)
    dims = lax.GatherDimensionNumbers((), (0,), (0,))
    while n:
        half = (n + 1) // 2
        if n == a.size:  # all are compared with one
            middle = lax.reshape(lax.slice_in_dim(x, half - 1, half), ())
            middle = lax.broadcast_in_dim(middle, v.shape, ())
        else:
            i = lax.expand_dims(ops.add(first, literal(half - 1, dtype)), (v.ndim,))
            middle = lax.gather(x, i, dims, (1,), mode="promise_in_bounds")
        before = comes_before(middle, y, side == "right")
        first = ops.select(before, ops.add(first, literal(half, dtype)), first)
        n //= 2
    return first


def search_in_loop(x: Any, y: Any, first: Any, n: Any, side: str) -> Any:
    """Halve a range of symbolic size, whose number of steps is known only when the program runs."""
    dims = lax.GatherDimensionNumbers((), (0,), (0,))

    def step(state: tuple) -> tuple:
        first, n = state
        half = lax.shift_right_logical(ops.add(n, 1), literal(1, n.dtype))
        upper = ops.add(first, lax.broadcast_in_dim(half, y.shape, ()))
        i = lax.expand_dims(ops.sub(upper, 1), (y.ndim,))
        middle = lax.gather(x, i, dims, (1,), mode="promise_in_bounds")
        before = comes_before(middle, y, side == "right")
        return ops.select(before, upper, first), lax.shift_right_logical(n, literal(1, n.dtype))

    return while_loop(lambda state: ops.gt(state[1], 0), step, (first, n))[0]


@operation(static=("right", "method"))
def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
) -> Array:
    """Return the number of the bin that each element falls into.

    For ascending `bins`, bin i is the range bins[i - 1] <= x < bins[i]; numbers below all edges get
    0, numbers above all get n.

    Args:
      x: an array of any shape and dtype.
      bins: the edges of the bins, a vector (n,) in ascending or descending order.
      right: if True, a bin includes its upper edge instead of its lower one: bins[i - 1] < x <=
        bins[i]. Static under `jit`.
      method: the method of `searchsorted`; None stands for "scan". Static under `jit`.

    Returns:
      Numbers from 0 to n, of the shape of `x` and the default integer dtype.

    Raises:
      ShapeError: if `bins` is not a vector.

    >>> x, bins = jnp.array([0.5, 1., 2.5]), jnp.array([0., 1., 2.])
    >>> print(jnp.digitize(x, bins), jnp.digitize(x, bins, right=True), jnp.digitize(x, bins[::-1]))
    [1 2 3] [1 1 3] [2 1 0]
    """
    x, bins = as_array(x, "digitize"), as_array(bins, "digitize")
    check_vector("digitize", "bins", bins)
    check_positions("digitize", bins)
    if not bins.size:
        return lax.full(x.shape, 0, dtypes.default_int())
    method = method or "scan"
    side = "left" if right else "right"
    n = bins.size
    rising = ops.ge(getitem_with(bins, n - 1, PLAIN), getitem_with(bins, 0, PLAIN))
    up = searchsorted(bins, x, side, method=method)
    down = searchsorted(lax.rev(bins, (0,)), x, side, method=method)
    return ops.select(rising, up, ops.sub(literal(n, up.dtype), down))
