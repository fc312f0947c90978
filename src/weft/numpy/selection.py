"""The k-th smallest elements, found without sorting.

The bits of a float, read as an integer, are in the order of floats; from the highest bit down, that
of the k-th smallest is known by counting the elements below a number: one pass for each bit, which
is several times faster than a sort. What quantiles make of these is statistics.py's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.api.custom_rules import custom_jvp
from weft.api.while_loop import fori_loop
from weft.numpy.choice import where
from weft.numpy.indexing import take_along_axis
from weft.numpy.reductions import argmax
from weft.numpy.reductions import min as least
from weft.numpy.ufuncs import minimum
from weft.primitives import bits
from weft.primitives import elementwise as ops
from weft.primitives.cumulative import cumsum
from weft.primitives.layout import expand_dims, literal, reduce_sum
from weft.primitives.sort import sort as sort_together

INT32 = np.dtype(np.int32)
# Of fewer elements, or for more places than this many, sorting is faster.
SMALL, MANY = 16, 4


@custom_jvp
def smallest(x: Any, k: Any) -> tuple[Any, Any]:
    """The elements of floats x at places k, counted from 0, in ascending order, and the next ones.

    x: [..., n]; k: int32[..., m], places below n, NaN counting as largest. After the last place
    the next element is the last one. Gradients go to the elements found: the first of equal ones
    has the lowest place.
    """
    if x.shape[-1] <= SMALL or k.shape[-1] > MANY:
        ordered = sort_together(x, -1)
        following = minimum(k + 1, x.shape[-1] - 1)
        return take_along_axis(ordered, k, -1), take_along_axis(ordered, following, -1)
    return selected(x, k)


def selected(x: Any, k: Any) -> tuple[Any, Any]:
    """`smallest`, bit by bit."""
    if x.dtype.itemsize < 2:
        return tuple(ops.convert(y, x.dtype) for y in selected(ops.convert(x, np.float32), k))
    keys = expand_dims(keys_of(x), (x.ndim - 1,))
    word, width = keys.dtype, 8 * x.dtype.itemsize
    low = np.iinfo(word).min

    def count(before: Any) -> Any:
        return reduce_sum(ops.convert(before, INT32), (before.ndim - 1,))

    def next_bit(i: Any, found: Any) -> Any:
        bit = bits.shift_left_p.bind(literal(1, word), ops.convert(width - 1 - i, word))[0]
        tried = found + bit
        return where(count(keys < expand_dims(tried, (x.ndim,))) <= k, tried, found)

    start = ops.add(ops.convert(k * 0, word), literal(low, word))
    found = fori_loop(0, width, next_bit, start)
    each = expand_dims(found, (x.ndim,))
    above = least(where(keys > each, keys, np.iinfo(word).max), -1)
    through = count(keys <= each)
    following = where((through > k + 1) | (through == x.shape[-1]), found, above)
    return float_of(found, x.dtype), float_of(following, x.dtype)


@smallest.defjvp
def smallest_jvp(primals: tuple, tangents: tuple) -> tuple:
    """The tangents of the elements found."""
    x, k = primals
    out = smallest(x, k)
    places = place(x, out[0], k), place(x, out[1], minimum(k + 1, x.shape[-1] - 1))
    return out, tuple(take_along_axis(tangents[0], p, -1) for p in places)


def place(x: Any, value: Any, k: Any) -> Any:
    """Where the element of rank k is, whose value is known: equal ones are in order of place."""
    x, value = expand_dims(x, (x.ndim - 1,)), expand_dims(value, (x.ndim,))
    hit = ops.convert(x == value, INT32)
    rank = k - reduce_sum(ops.convert(x < value, INT32), (x.ndim - 1,))
    seen = cumsum(hit, x.ndim - 1)
    return argmax((hit == 1) & (seen == expand_dims(rank + 1, (x.ndim - 1,))), -1)


def keys_of(x: Any) -> Any:
    """Integers in the order of floats, NaN last."""
    width = 8 * x.dtype.itemsize
    word = np.dtype(f"int{width}")
    highest = np.iinfo(word).max
    pattern = bits.bitcast_convert_type(x + literal(0, x.dtype), word)  # -0.0 + 0.0 is 0.0
    return where(x != x, highest, flipped(pattern, word))


def flipped(pattern: Any, word: np.dtype) -> Any:
    """Between the bits of floats and integers in their order: the others of negative ones flip."""
    sign = bits.shift_right_arithmetic_p.bind(pattern, pattern * 0 + (8 * word.itemsize - 1))[0]
    return pattern ^ (sign & literal(np.iinfo(word).max, word))


def float_of(key: Any, dtype: np.dtype) -> Any:
    """The float of a key."""
    return bits.bitcast_convert_type(flipped(key, key.dtype), dtype)
