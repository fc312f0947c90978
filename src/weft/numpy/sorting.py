"""Order by value: sorting, and finding places in what is sorted.

Finding elements that satisfy a condition is searching.py's, distinct elements are sets.py's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft.core.aval import typeof
from weft.errors import DtypeError, ShapeError
from weft.numpy.indexing import PLAIN, broadcast_last, getitem_with, take_along_axis
from weft.numpy.manipulation import as_arrays
from weft.numpy.promotion import as_array, axis_of, check_vector, promote_operands
from weft.primitives import elementwise as ops
from weft.primitives.dynamic_slicing import index_dtype
from weft.primitives.families import check_integer
from weft.primitives.layout import literal
from weft.primitives.sort import partition_p
from weft.run.operation import operation
from weft.util import check_option
from weft.xla.typing import Array, ArrayLike, DTypeLike

INT32 = np.dtype(np.int32)


# --- sorting ----------------------------------------------------------------------------------


def refuse_kind(op: str, kind: Any, order: Any) -> None:
    """Refuse NumPy's keywords for which there is no choice here."""
    if kind is not None:
        raise TypeError(f"{op}: kind must be None; got {kind!r}. Hint: stable=True.")
    if order is not None:
        raise TypeError(f"{op}: order must be None: arrays have no fields; got {order!r}.")


def flatten_or_check(op: str, a: Any, axis: int | None) -> tuple[Any, int]:
    """The array to sort and the axis; None flattens."""
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
    """A sorted copy along an axis, by default the last; None sorts the flattened array.

    NaN is larger than all numbers; complex numbers go by real part, then imaginary part.

    >>> jnp.sort(jnp.array([3, 1, 2]), descending=True)
    Array([3, 2, 1], dtype=int32)
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
    """The indices that sort an array along an axis: take_along_axis(a, argsort(a)) is sort(a).

    Equal elements keep their order, also in descending order.

    Args:
      dtype: the integer dtype of the indices; None is the default one.
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
    """The elements sorted along the last axis, as complex numbers."""
    out = sort(a, -1)
    return ops.convert(out, dtypes.complex_dtype(dtypes.inexact_dtype(out.dtype)))


def lexsort(
    keys: ArrayLike | Sequence[ArrayLike], axis: int = -1, *, batch_size: int = 16
) -> Array:
    """The indices that sort by several keys: by the last, ties by the one before it, and so on.

    One sort compares `batch_size` keys; of more keys, the last ones are sorted after the others.

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
    """`lexsort` for arrays."""
    places = lax.broadcasted_iota(INT32, keys[0].shape, axis)
    *_, out = lax.sort((*reversed(keys), places), axis, num_keys=len(keys))
    return ops.convert(out, dtypes.default_int())


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The elements along an axis, the k-th smallest in its place, smaller ones before it.

    The others are in no particular order. NaN is larger than all numbers.

    >>> jnp.partition(jnp.array([3, 1, 2]), 1)[1]
    Array(2, dtype=int32)
    """
    return partition_about("partition", a, kth, axis, False)


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The indices that bring the k-th smallest element to its place, smaller ones before it."""
    return partition_about("argpartition", a, kth, axis, True)


def partition_about(op: str, a: Any, kth: Any, axis: int, places: bool) -> Any:
    """`partition` or, for `places`, `argpartition`."""
    x = as_array(a, op)
    axis = axis_of(op, axis, x.ndim)
    n, k = x.shape[axis], check_integer(op, "kth", kth)
    if not -n <= k < n:
        raise ShapeError(f"{op}: kth must be in [-{n}, {n}) for axis {axis} of {x.aval}; got {k}.")
    return partition_array(x, k % n, axis, places)


@operation(static=("kth", "axis", "places"))
def partition_array(x: Any, kth: int, axis: int, places: bool) -> Any:
    """`partition_about` an array, along an axis counted from the front."""
    shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    about = lax.full(shape, kth, INT32)
    (out,) = partition_p.apply(x, about, axis=axis, places=places)
    return out


@operation(static=("k", "axis", "mode"))
def top_k(
    x: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> tuple[Array, Array]:
    """The k largest elements along an axis in descending order, and where they are.

    With mode "smallest" the smallest ones in ascending order. Of equal ones the first comes first;
    NaN counts as largest. They are in order also where `sorted` does not ask for it.

    >>> jnp.top_k(jnp.array([3, 1, 4, 1]), 2)
    (Array([4, 3], dtype=int32), Array([2, 0], dtype=int32))
    """
    x = as_array(x, "top_k")
    axis = axis_of("top_k", axis, x.ndim)
    check_option("top_k", "mode", mode, "largest", "smallest")
    if mode == "largest":
        values, places = lax.top_k_p.apply(x, k=check_integer("top_k", "k", k), axis=axis)
        return values, ops.convert(places, dtypes.default_int())
    places = lax.broadcasted_iota(INT32, x.shape, axis)
    values, places = lax.sort((x, places), axis, num_keys=1)
    values, places = (lax.slice_in_dim(v, 0, k, 1, axis) for v in (values, places))
    return values, ops.convert(places, dtypes.default_int())


# --- finding places ---------------------------------------------------------------------------


def comes_before(x: Any, y: Any, or_equal: bool) -> Any:
    """Whether x sorts before y, or at the same place: NaN last, complex by real then imaginary."""
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
    """Where to insert `v` into the sorted vector `a` so that it stays sorted.

    `side` says whether before ("left") or after ("right") equal elements; `sorter` are the indices
    that sort `a`. `method="compare_all"` compares all pairs, the others halve the range in turn.

    >>> jnp.searchsorted(jnp.array([1, 3, 5]), jnp.array([3, 4]), side="right")
    Array([2, 2], dtype=int32)
    """
    check_option("searchsorted", "side", side, "left", "right")
    check_option("searchsorted", "method", method, *METHODS)
    a, v = as_array(a, "searchsorted"), as_array(v, "searchsorted")
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
    """`searchsorted` by halving the range: of n elements from `first` on, some may be before v."""
    x, y = promote_operands("searchsorted", a, v, shaped=False)
    n, dtype = a.size, index_dtype(INT32, a.size)
    first = lax.full(v.shape, 0, dtype)
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


@operation(static=("right", "method"))
def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
) -> Array:
    """The number of the bin that each element falls into; `bins` rise or fall.

    Bin i reaches from bins[i - 1] up to, but without, bins[i]; with `right` it includes bins[i]
    instead of bins[i - 1]. `method` is as in `searchsorted`.
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
