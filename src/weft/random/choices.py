"""Integers, orders and choices: randint, permutation, choice, categorical."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

import weft.numpy as jnp
from weft import dtypes
from weft.core.aval import typeof
from weft.errors import DtypeError, ShapeError
from weft.numpy.promotion import as_array, axis_of, shape_of
from weft.primitives.elementwise import add, clamp, mul, rem, sub
from weft.primitives.layout import broadcast_to_rank, convert, iota, literal, zeros
from weft.primitives.reshard import compute_freely
from weft.primitives.sort import sort, top_k
from weft.random import sampling
from weft.random.continuous import draw_gumbel
from weft.random.keys import Words, draw_bits, read_one_key, split_pair
from weft.run.operation import operation
from weft.util import SymbolicSize, is_below
from weft.xla.typing import Array, ArrayLike, DTypeLike, Shape, ShardingLike

__all__ = ["categorical", "choice", "permutation", "randint"]


def clamp_bound(x: Any, dtype: np.dtype, low: int, high: int) -> tuple[Any, Any]:
    """An integer bound within [low, high] in a dtype, and whether it was above."""
    if isinstance(x, float) and x.is_integer():
        x = int(x)  # as np.prod(()) is
    if type(x) is int:
        return literal(min(max(x, low), high), dtype), x > high
    x = as_array(x, "randint")
    if not dtypes.is_integer(x.dtype):
        raise DtypeError(f"randint: minval and maxval must be integers; got {x.aval}.")
    limits = dtypes.iinfo(x.dtype)
    least, most = (literal(min(max(n, limits.min), limits.max), x.dtype) for n in (low, high))
    return convert(clamp(least, x, most), dtype), x > most


def draw_integers(key: Words, shape: tuple[int, ...], minval: Any, maxval: Any, dtype: Any) -> Any:
    """Integers in [minval, maxval); two words each, so that none is favoured by much."""
    limits = dtypes.iinfo(dtype)
    narrow = dtypes.itemsize_bits(dtype) < 32
    work = np.dtype(np.int32) if narrow else dtype
    low, _ = clamp_bound(minval, work, limits.min, limits.max)
    high, beyond = clamp_bound(maxval, work, limits.min, limits.max + narrow)
    width = dtypes.itemsize_bits(work)
    words = np.dtype(f"uint{width}")
    low, high = (
        jnp.broadcast_to(x, shape) if np.ndim(x) else jnp.asarray(x, work) for x in (low, high)
    )
    first, second = (draw_bits(k, shape, width) for k in split_pair(key))
    span = jnp.where(high <= low, literal(1, words), convert(sub(high, low), words))
    every = None  # whether all words are in the span, whose length is zero then
    if not narrow and beyond is not False:  # the span reaches one beyond what the dtype holds
        span = jnp.where(beyond & (high > low), add(span, literal(1, words)), span)
        every = span == 0
        span = jnp.where(every, literal(1, words), span)  # XLA stops the process at x % 0
    half = rem(jnp.full_like(span, 2 ** (width // 2)), span)
    whole = rem(mul(half, half), span)
    offset = rem(add(mul(rem(first, span), whole), rem(second, span)), span)
    if every is not None:
        offset = jnp.where(every, second, offset)
    return convert(add(low, convert(offset, work)), dtype)


@sampling.sampler
def randint(
    key: ArrayLike,
    shape: Shape,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
) -> Array:
    """Sample integers that are uniform in [minval, maxval).

    Each integer of the interval has probability 1 / (maxval - minval), up to a bias that is
    negligible: each sample uses two random words.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      shape: the shape of the result, a tuple or list of integers. The bounds must broadcast to it.
        Static under `jit`.
      minval: the smallest integer; an integer scalar or array.
      maxval: the upper bound, which is not included; an integer scalar or array. One more than the
        largest integer of the dtype is allowed.
      dtype: an integer dtype. By default int32, with enable_x64 int64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype. Where maxval <= minval, the result is minval.

    Raises:
      DtypeError: `dtype` is not an integer dtype, or a bound is not an integer.
      OverflowError: a bound is a Python integer that does not fit the dtype.
      ShapeError: the bounds do not broadcast to `shape`.

    >>> print(random.randint(random.PRNGKey(0), (5,), 0, 10))
    [8 1 3 8 8]

    Bounds may be arrays:

    >>> low = jnp.array([0, 10, 20])
    >>> print(random.randint(random.PRNGKey(0), (3,), low, low + 1))
    [ 0 10 20]
    """
    key = read_one_key("randint", key)
    shape = sampling.choose_shape(
        "randint",
        shape,
        *(jnp.zeros(()) if type(x) is int else x for x in (minval, maxval)),
        more="minval and maxval",
    )
    dtype = sampling.choose_int_dtype("randint", dtype)
    limits = dtypes.iinfo(np.int32 if dtypes.itemsize_bits(dtype) < 32 else dtype)
    for bound in (minval, maxval):
        if type(bound) is int and not min(limits.min, -(2**31)) <= bound <= limits.max + 1:
            raise OverflowError(
                f"randint: minval and maxval must fit {dtype.name}; got {bound}. Hint: a wider "
                "dtype, which enable_x64 may have to allow."
            )
    return draw_integers(key, shape, minval, maxval, dtype)


def shuffle_lines(key: Words, x: Any, axis: int) -> Any:
    """The elements along an axis in random order, each line in its own: sorted by random words."""
    shape = typeof(x).shape
    for words, needed in draw_rounds(key, shape):
        _, y = sort((words, x), axis)
        x = y if needed is True else jnp.where(needed, y, x)
    return x


# Up to these sizes, equal words are unlikely to matter after 0, 1, 2 and 3 rounds of sorting. The
# cube of each is at most (2**32 - 1) to the power of the number of rounds.
ROUND_LIMITS = (1, 1625, 2642245, 2**32 - 1)


def draw_rounds(key: Words, shape: tuple[int, ...]) -> list[tuple[Any, Any]]:
    """Draw words for rounds of sorting: enough rounds that equal words are unlikely to matter.

    With each round comes True, or a traced condition for it, which depends on a symbolic size.
    """
    size, rounds = math.prod(shape), []
    symbolic = isinstance(size, SymbolicSize)
    for limit in ROUND_LIMITS[: 3 if symbolic else 4]:  # a symbolic size is a number of 32 bits
        if is_below(size, limit + 1):
            break
        key, other = split_pair(key)
        needed = jnp.asarray(size) > limit if symbolic else True
        rounds.append((draw_bits(other, shape, 32), needed))
    return rounds


def draw_order(key: Words, count: int) -> Any:
    """0, 1, ..., count - 1 in random order.

    As `shuffle_lines` orders them; but no round waits for another, so all are sorted side by side.
    """
    dtype = dtypes.default_int()
    narrow = np.dtype(np.int32) if is_below(count, 2**31 + 1) else dtype
    rounds = draw_rounds(key, (count,))
    numbers = iota(narrow, count)
    if not rounds:
        return convert(numbers, dtype)
    places = jnp.broadcast_to(numbers, (len(rounds), count))
    _, places = sort((jnp.stack([words for words, _ in rounds]), places), 1)
    order = places[0]
    for i, (_, needed) in enumerate(rounds[1:], 1):
        further = jnp.take(order, places[i], unique_indices=True, mode="clip")
        order = further if needed is True else jnp.where(needed, further, order)
    return convert(order, dtype)


@operation(static=("count", "axis", "independent"), name="permutation")
def permute(
    key: Any, x: Any, count: int | None = None, axis: int = 0, independent: bool = False
) -> Any:
    """`permutation`, its arguments in one form: an array, or how many numbers."""
    key = read_one_key("permutation", key)
    if count is not None:
        return draw_order(key, count)
    if independent:
        return shuffle_lines(key, x, axis)
    places = draw_order(key, x.shape[axis])
    return jnp.take(x, places, axis, unique_indices=True, mode="clip")


def permutation(
    key: ArrayLike,
    x: ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return the elements of an array along an axis in random order, or a random order of 0 .. n-1.

    All orders have the same probability, up to a bias that is negligible.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      x: an array with at least one axis, of any dtype; or an integer n, which stands for the
        numbers 0 .. n-1.
      axis: the axis along which elements move, an integer. By default the first.
      independent: if True, each line along the axis gets an order of its own. By default False:
        slices move as a whole.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array with the shape and dtype of x. For an integer n, an integer array (n,).

    Raises:
      ShapeError: the integer is negative, or x has no such axis.
      DtypeError: x is a scalar that is not an integer.

    >>> print(random.permutation(random.PRNGKey(0), 5))
    [1 0 4 3 2]
    >>> x = jnp.arange(6).reshape(2, 3)
    >>> print(random.permutation(random.PRNGKey(1), x, axis=1))
    [[2 0 1]
     [5 3 4]]
    >>> print(random.permutation(random.PRNGKey(1), x, axis=1, independent=True))
    [[1 0 2]
     [5 3 4]]
    """
    if out_sharding is not None:
        how = {"axis": axis, "independent": independent}
        return compute_freely("permutation", out_sharding, permutation, key, x, **how)
    count, x = read_population("permutation", x)
    if count is not None:
        axis_of("permutation", axis, 1)
        return permute(key, None, count)
    return permute(key, x, None, axis_of("permutation", axis, x.ndim), bool(independent))


def read_population(op: str, x: Any) -> tuple[Any, Any]:
    """Return how many numbers from 0 an integer stands for, or None and the given array."""
    if isinstance(x, int | np.integer):
        if x < 0:
            raise ShapeError(f"{op}: the number must not be negative; got {x}.")
        return int(x), None
    if isinstance(x, SymbolicSize):
        return x, None
    x = as_array(x, op)
    if x.ndim:
        return None, x
    if not dtypes.is_integer(x.dtype):
        raise DtypeError(f"{op}: x must be an integer or have an axis; got {x.aval}.")
    return operator.index(x), None


def choice(
    key: ArrayLike,
    a: ArrayLike,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Sample elements of an array along an axis, or integers below n, with or without replacement.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      a: an array with at least one axis, of any dtype; or an integer n, which stands for the
        numbers 0 .. n-1.
      shape: the shape of the samples. By default (): one element. Static.
      replace: if True, the default, an element may be drawn more than once.
      p: the probabilities of the elements, a float array (n,) of the size of the axis. They need
        not sum to 1. By default all elements have the same probability.
      axis: the axis of `a` to draw from, an integer. By default the first.
      mode: for draws with `p` and without replacement, which use Gumbel numbers: "low" or "high",
        as for `gumbel`. By default "low".

    Returns:
      An array of the dtype of `a` and of its shape, with `shape` in place of the axis. For an
      integer n, an integer array of shape `shape`.

    Raises:
      ShapeError: more elements are drawn without replacement than the axis has, the axis is empty,
        or `p` does not have the size of the axis.
      ValueError: `p` is a NumPy array with a negative element or only zeros, or `mode` is another
        name.

    >>> print(random.choice(random.PRNGKey(0), 5, (3,), replace=False))
    [1 0 4]

    With probabilities, and along an axis:

    >>> p = jnp.array([0.0, 0.0, 1.0])
    >>> print(random.choice(random.PRNGKey(0), jnp.array([10, 20, 30]), (2,), p=p))
    [30 30]
    >>> random.choice(random.PRNGKey(0), jnp.ones((3, 4)), (2, 5), axis=1).shape
    (3, 2, 5)
    """
    shape = shape_of("choice", shape)
    count, a = read_population("choice", a)
    axis = axis_of("choice", axis, 1 if a is None else a.ndim)
    total = count if a is None else a.shape[axis]
    draws = math.prod(shape)
    if p is not None and typeof(p, "choice").shape != (total,):
        raise ShapeError(f"choice: p must be ({total},), as a along axis {axis}; got {typeof(p)}.")
    if isinstance(p, np.ndarray):
        sampling.check_range("choice", "p", p, False)
        if total and not p.any():
            raise ValueError(f"choice: some of p must be positive; got {typeof(p)} of zeros.")
    if draws and not total:
        raise ShapeError("choice: a must have elements to draw from; got none.")
    if not replace and draws > total:
        raise ShapeError(
            f"choice: without replacement at most {total} can be drawn; got shape {shape}."
        )
    return choose_elements(key, a, p, total, shape, bool(replace), axis, mode)


@operation(static=("total", "shape", "replace", "axis", "mode"), name="choice")
def choose_elements(
    key: Any, a: Any, p: Any, total: int, shape: tuple, replace: bool, axis: int, mode: str | None
) -> Any:
    """`choice`, its arguments in one form; `a` is None where numbers are drawn."""
    key = read_one_key("choice", key)
    draws = math.prod(shape)
    if not draws:
        places = jnp.zeros(shape, dtypes.default_int())
    elif p is None:
        places = (
            draw_integers(key, shape, 0, total, dtypes.default_int())
            if replace
            else draw_order(key, total)[:draws]
        )
    else:
        p = jnp.asarray(p)
        dtype = p.dtype if dtypes.is_float(p.dtype) else dtypes.default_float()
        p = sampling.widen_floats(convert(p, dtype))
        dtype = p.dtype
        if replace:
            sums = jnp.cumsum(p)
            places = jnp.searchsorted(
                sums, sums[-1] * (1 - sampling.draw_uniform("choice", key, shape, dtype))
            )
        else:
            drawn = draw_gumbel("choice", key, (total,), dtype, mode) + jnp.log(p)
            places = top_k(drawn, draws)[1]
    places = places.reshape(shape)
    return places if a is None else jnp.take(a, places, axis, mode="clip")


@sampling.sampler
def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Shape | None = None,
    replace: bool = True,
    mode: str | None = None,
) -> Array:
    """Sample indices with probabilities that are given by their logarithms.

    Index i has probability exp(logits[i]) / sum(exp(logits)): it samples from the softmax of the
    scores of a network. The method adds Gumbel numbers to the logits and takes the index of the
    maximum (the Gumbel-max trick).

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      logits: a float array: the logarithms of the probabilities along `axis`, up to a constant. An
        index with logit -inf has probability 0.
      axis: the axis of `logits` that the indices are for. By default the last. Static under `jit`.
      shape: the shape of the result. It ends with the other axes of `logits`; axes before these are
        for more samples. By default the other axes of `logits`. Static under `jit`.
      replace: if False, no index comes twice along the axes of `shape` for more samples. By default
        True. Static under `jit`.
      mode: how finely the Gumbel numbers are drawn: "low", the default, or "high", as for `gumbel`.
        Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An integer array of shape `shape`.

    Raises:
      ShapeError: the other axes of `logits` do not broadcast to `shape`, or more indices are drawn
        without replacement than there are.
      ValueError: `mode` is another name.

    >>> logits = jnp.log(jnp.array([0.0, 1.0]))
    >>> print(random.categorical(random.PRNGKey(0), logits, shape=(5,)))
    [1 1 1 1 1]

    Three samples for each of two rows of logits:

    >>> random.categorical(random.PRNGKey(0), jnp.zeros((2, 4)), shape=(3, 2)).shape
    (3, 2)
    """
    op = "categorical"
    key = read_one_key(op, key)
    logits = as_array(logits, op)
    if not dtypes.is_float(logits.dtype):
        logits = convert(logits, sampling.choose_float_dtype(op, None))
    logits = sampling.widen_floats(logits)
    axis = axis_of(op, axis, logits.ndim)
    rest = (*logits.shape[:axis], *logits.shape[axis + 1 :])
    others = typeof(logits).update(shape=rest)
    given = sampling.choose_shape(op, shape, zeros(others), more="axes of logits but the one")
    lead = given[: len(given) - len(rest)]
    if replace:
        full = (*given[: len(lead) + axis], logits.shape[axis], *given[len(lead) + axis :])
        drawn = draw_gumbel(op, key, full, logits.dtype, mode)
        return jnp.argmax(drawn + broadcast_to_rank(logits, drawn.ndim), len(lead) + axis)
    draws = math.prod(lead)
    if draws > logits.shape[axis]:
        raise ShapeError(
            f"{op}: without replacement at most {logits.shape[axis]} can be drawn; got {draws}."
        )
    drawn = draw_gumbel(op, key, logits.shape, logits.dtype, mode) + logits
    places = top_k(drawn, draws, axis=axis)[1]
    return jnp.moveaxis(places, axis, 0).reshape(given)
