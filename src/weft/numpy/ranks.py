"""Elements of given ranks in sorted order, found without sorting all elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft import lax
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost, Elements
from weft.core.form import Form
from weft.core.primitive import Primitive, Zero
from weft.mesh.plugins import GPUS
from weft.numpy import ufuncs
from weft.numpy.choice import where
from weft.numpy.indexing import take_along_axis
from weft.numpy.manipulation import concatenate
from weft.numpy.reductions import min as least
from weft.primitives import elementwise as ops
from weft.primitives import families
from weft.primitives.constant import stage_whole
from weft.primitives.layout import batched_at_front, literal
from weft.primitives.sort import partition_p
from weft.xla.lower import lower_jaxpr

INT32 = np.dtype(np.int32)
# Sorting is faster for at most MAX_SORTED elements, and for more than MAX_PLACES places.
MAX_SORTED = 16
MAX_PLACES = 4


class SelectRanks(Primitive):
    """The elements of floats x at places k, counted from 0, in ascending order, and the next ones.

    NaN counts as largest. After the last place the next element is the last one. Gradients go to
    the elements found; equal elements have their places in any order.
    Shapes: x [..., n]; k [..., m], places below n; the results are as k. Dtypes: x a float, k
    int32. Source: weft.
    """

    name = "select_ranks"
    form = Form.RANKS
    elements = Elements.CHOSEN
    cost = Cost.TRANSCENDENTAL
    multiple_results = True

    def abstract_eval(self, x, k):
        return [ShapedArray(k.shape, x.dtype)] * 2

    def label_axes(self, avals, outs, **params):
        return families.along_each_other(avals, outs, whole=(avals[0].ndim - 1,))

    def lower(self, hlo, x, k):
        select = self.select_by_sort if hlo.platform in GPUS else self.select_anywhere
        return lower_jaxpr(hlo, stage_whole(select, [x.aval, k.aval]), [x, k])

    def jvp(self, primals, tangents):
        (x, k), (t, _) = primals, tangents
        if type(t) is Zero:
            outs = self.apply(x, k)
            return outs, families.zero_tangents(outs)
        # Elements and tangents are read at the same places. A search of x for the elements found
        # would miss them: XLA may compute x again for it, with another rounding.
        about = concatenate([k, next_place(x, k)], -1)
        (places,) = partition_p.apply(x, about, axis=typeof(x).ndim - 1, places=True)
        chosen = take_ranks(places, k)
        return tuple([take_along_axis(v, place, -1) for place in chosen] for v in (x, t))

    def batch(self, axis, args, dims):
        x, k = (batched_at_front(v, d, axis.size) for v, d in zip(args, dims, strict=True))
        return self.apply(x, k), [0, 0]

    def sorts(self, x: ShapedArray, k: ShapedArray) -> bool:
        """Return True if a sort is faster, or might be for a symbolic size."""
        n, places = x.shape[-1], k.shape[-1]
        return {type(n), type(places)} != {int} or n <= MAX_SORTED or places > MAX_PLACES

    def select_anywhere(self, x: Any, k: Any) -> list:
        """Return the results by operations that are quick on every platform."""
        if self.sorts(typeof(x), typeof(k)):
            return self.select_by_sort(x, k)
        return select_by_bits(x, k)

    def select_by_sort(self, x: Any, k: Any) -> list:
        """Return the results by a sort, for platforms that have a quick one.

        The sort of 512 rows of 512 takes 0.1 ms on an H200, and the loop over bits 0.7.
        """
        return take_ranks(lax.sort(x, -1), k)

    def select_by_partition(self, x: Any, k: Any) -> list:
        """Return the results by a partition, for platforms that have a quick one."""
        about = concatenate([k, next_place(x, k)], -1)
        (ordered,) = partition_p.apply(x, about, axis=x.ndim - 1, places=False)
        return take_ranks(ordered, k)


select_ranks_p = SelectRanks()


def select_ranks(x: Any, k: Any) -> tuple[Any, Any]:
    """Return the elements of rank k along the last axis, and those that follow: `SelectRanks`."""
    here, following = select_ranks_p.apply(x, k)
    return here, following


def next_place(x: Any, k: Any) -> Any:
    """Return the places after k, limited to the last place of x."""
    return ufuncs.minimum(k + 1, x.shape[-1] - 1)


def take_ranks(ordered: Any, k: Any) -> list:
    """Return the elements at places k of elements in order, and the next ones."""
    return [take_along_axis(ordered, at, -1) for at in (k, next_place(ordered, k))]


def select_by_bits(x: Any, k: Any) -> list:
    """Return the elements of rank k, and the next ones, bit by bit.

    The bits of a float, read as an integer, are in the order of floats. From the highest bit down,
    each bit of the k-th smallest is known by counting the elements below a number. That takes one
    pass for each bit, and is several times faster than XLA's sort.
    """
    if x.dtype.itemsize < 2:
        return [
            ops.convert(y, x.dtype) for y in select_by_bits(ops.convert(x, np.dtype(np.float32)), k)
        ]
    keys = lax.expand_dims(encode_floats(x), (x.ndim - 1,))
    word, width = keys.dtype, 8 * x.dtype.itemsize
    low = np.iinfo(word).min

    def count(before: Any) -> Any:
        return lax.reduce_sum(ops.convert(before, INT32), (before.ndim - 1,))

    def next_bit(i: Any, found: Any) -> Any:
        bit = lax.shift_left_p.apply(literal(1, word), ops.convert(width - 1 - i, word))[0]
        tried = found + bit
        return where(count(keys < lax.expand_dims(tried, (x.ndim,))) <= k, tried, found)

    start = ops.add(ops.convert(k * 0, word), literal(low, word))
    found = lax.fori_loop(0, width, next_bit, start)
    each = lax.expand_dims(found, (x.ndim,))
    above = least(where(keys > each, keys, np.iinfo(word).max), -1)
    through = count(keys <= each)
    following = where((through > k + 1) | (through == x.shape[-1]), found, above)
    return [decode_float(y, x.dtype) for y in (found, following)]


def encode_floats(x: Any) -> Any:
    """Return integers in the order of floats, NaN last."""
    width = 8 * x.dtype.itemsize
    word = np.dtype(f"int{width}")
    highest = np.iinfo(word).max
    pattern = lax.bitcast_convert_type(x + literal(0, x.dtype), word)  # -0.0 + 0.0 is 0.0
    return where(x != x, highest, flip_negative(pattern, word))


def flip_negative(pattern: Any, word: np.dtype) -> Any:
    """Convert bits of floats to integers in their order, or back: negative floats are flipped."""
    sign = lax.shift_right_arithmetic_p.apply(pattern, pattern * 0 + (8 * word.itemsize - 1))[0]
    return pattern ^ (sign & literal(np.iinfo(word).max, word))


def decode_float(key: Any, dtype: np.dtype) -> Any:
    """Return the float of a key."""
    return lax.bitcast_convert_type(flip_negative(key, key.dtype), dtype)
