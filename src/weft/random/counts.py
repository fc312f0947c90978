"""Counts: the Poisson, binomial, multinomial and geometric distributions.

Where few are expected, probabilities are summed until they pass one uniform number; else numbers
are drawn from a hat over the distribution until one is taken, for the whole array at once.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import weft.numpy as jnp
from weft import dtypes
from weft.api.contexts import enable_x64
from weft.api.while_loop import while_loop
from weft.core.aval import typeof
from weft.errors import ShapeError
from weft.numpy.horner import polynomial
from weft.primitives.layout import broadcast_to_rank
from weft.primitives.random import fast_log1p
from weft.primitives.special.functions import erfc
from weft.random import sampling
from weft.random.continuous import draw_normal
from weft.random.keys import Words, fold_words, read_one_key, split_pair
from weft.random.rejection import draw_until_taken
from weft.xla.typing import Array, ArrayLike, DTypeLike, Shape

__all__ = ["binomial", "geometric", "multinomial", "poisson"]

# From this expected count on, samples are drawn by rejection. Below it, probabilities are summed.
MIN_EXPECTED = 10


@sampling.sampler(chances=("p",))
def geometric(
    key: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Sample the number of trials up to the first success.

    The probability of k is (1 - p)**(k - 1) * p for k = 1, 2, ...; the mean is 1 / p. The result is
    not differentiable.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      p: the probability of success of a trial, in (0, 1], a real scalar or array.
      shape: the shape of the result. The parameters must broadcast to it. By default their
        broadcast shape. Static under `jit`.
      dtype: an integer dtype. By default int32, with enable_x64 int64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not an integer dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: `p` is not in [0, 1], in a Python number or a NumPy array. Other arrays are not
        checked.

    >>> x = random.geometric(random.PRNGKey(0), 0.5, (10000,))
    >>> print(f"{x.mean():.1f}")
    2.0
    """
    key, dtype = read_one_key("geometric", key), sampling.choose_int_dtype("geometric", dtype)
    shape = sampling.choose_shape("geometric", shape, p)
    work = dtypes.default_float()
    (p,) = sampling.convert_params("geometric", work, p, shape=shape)
    u = sampling.draw_uniform("geometric", key, shape, work)
    log_u = jnp.log(jnp.where(u == 0, 1, u))
    return (jnp.floor(log_u / fast_log1p(-p)) + 1).astype(dtype)


def count_by_sums(key: Words, first: Any, ratio: Callable) -> Any:
    """Return the first count at which the sum of probabilities passes a uniform number.

    `first` is the probability of 0. `ratio(k)` is the probability of k, divided by that for k - 1.
    """
    u = sampling.draw_uniform("random", key, first.shape, first.dtype)

    def more(carry: tuple) -> Any:
        k, left, mass, _ = carry
        return jnp.any((left >= mass) & (mass > 0))

    def step(carry: tuple) -> tuple:
        k, left, mass, count = carry
        beyond = (left >= mass) & (mass > 0)
        left = jnp.where(beyond, left - mass, left)
        mass = jnp.where(beyond, mass * ratio(k + 1), mass)
        return k + 1, left, mass, jnp.where(beyond, k + 1, count)

    zero = jnp.zeros((), first.dtype)
    return while_loop(more, step, (zero, u, first, jnp.zeros_like(first)))[3]


def sum_stirling_series(n: Any) -> Any:
    """log n!, n >= 8, by Stirling's series."""
    series = (1 / 12 - 1 / (360 * n * n)) / n
    return (n + 0.5) * jnp.log(n) - n + 0.5 * math.log(2 * math.pi) + series


def log_factorial(k: Any) -> Any:
    """log k!; below 10 of a larger number, less the factors between."""
    small = k < 10
    product = functools.reduce(operator.mul, (jnp.where(small, k, 0) + i for i in range(1, 9)))
    return sum_stirling_series(jnp.where(small, k + 8, k)) - jnp.where(small, jnp.log(product), 0)


def draw_hat(key: Words, shape: tuple, dtype: np.dtype) -> tuple[Any, Any, Any]:
    """Draw numbers of [-1/2, 1/2) and others of [0, 1), as float64: (u, 1/2 - |u|, v)."""
    first, second = split_pair(key)
    u, v = (
        sampling.draw_uniform("random", k, shape, dtype).astype(np.float64) for k in (first, second)
    )
    return u - 0.5, 0.5 - jnp.abs(u - 0.5), v


def draw_many(key: Words, propose: Callable, xs: Sequence[Any], done: Any) -> Any:
    """Draw large counts by rejection, as float64.

    The logarithm of the probability of a count is the difference of numbers as large as the count
    is, so float32 has it only for small ones.
    """
    dtype = xs[0].dtype
    with enable_x64(True):
        wide = [x.astype(np.float64).ravel() for x in xs]
        draw = lambda key, *xs: propose(key, dtype, *xs)
        return draw_until_taken(key, draw, *wide, done=done.ravel()).reshape(xs[0].shape)


def propose_poisson(key: Words, dtype: np.dtype, lam: Any) -> tuple[Any, Any]:
    """Counts, and whether algorithm PTRS takes them, of lam >= 10."""
    u, us, v = draw_hat(key, lam.shape, dtype)
    b = 0.931 + 2.53 * jnp.sqrt(lam)
    a = -0.059 + 0.02483 * b
    k = jnp.floor((2 * a / us + b) * u + lam + 0.43)
    inside = (k >= 0) & ((us >= 0.013) | (v <= us))
    quick = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
    height = jnp.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (us * us) + b))
    mass = k * jnp.log(lam) - lam - log_factorial(jnp.maximum(k, 0))
    return k, inside & (quick | (height <= mass))


def propose_binomial(key: Words, dtype: np.dtype, n: Any, p: Any) -> tuple[Any, Any]:
    """Counts, and whether algorithm BTRS takes them, of n p >= 10, p <= 1/2."""
    u, us, v = draw_hat(key, n.shape, dtype)
    root = jnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * root
    a = -0.0873 + 0.0248 * b + 0.01 * p
    k = jnp.floor((2 * a / us + b) * u + n * p + 0.5)
    inside = (k >= 0) & (k <= n)
    quick = (us >= 0.07) & (v <= 0.92 - 4.2 / b)
    height = jnp.log(v * (2.83 + 5.1 / b) * root / (a / (us * us) + b))
    safe, mode = jnp.clip(k, 0, n), jnp.floor((n + 1) * p)
    ways = sum_stirling_series(mode) + sum_stirling_series(n - mode)
    ways = ways - log_factorial(safe) - log_factorial(n - safe)
    return k, inside & (quick | (height <= ways + (safe - mode) * jnp.log(p / (1 - p))))


MAX_SUMMED = 7  # the expected count below which the distribution function is summed
TERMS = 19  # of that sum: the count 18 is passed by one in 10,000 of an expected 7


def approximate_poisson(z: Any, lam: Any) -> Any:
    """Return the quantiles of Poisson distributions at normal numbers, as floats.

    Source: Peizer and Pratt, Journal of the American Statistical Association 63 (1968), for the
    normal number of a count; the first guess is by Cornish and Fisher's expansion.
    """
    below = 0.5 * erfc(-z * math.sqrt(0.5))
    mass = total = jnp.exp(-lam)
    few = (total < below).astype(z.dtype)
    for k in range(1, TERMS):
        mass = mass * (lam / k)
        total = total + mass
        few = few + (total < below)
    root = jnp.sqrt(lam)
    guess = lam + root * z - 2 / 3 + z * z / 6 + z * (1 - z * z) / (72 * root)
    count = jnp.ceil(guess + 0.6)
    many = count + 1 - (poisson_normal(count, lam) >= z) - (poisson_normal(count - 1, lam) >= z)
    return jnp.where(lam < MAX_SUMMED, few, jnp.maximum(many, 0))


def poisson_normal(k: Any, lam: Any) -> Any:
    """Return the normal number with as much probability below it as counts up to k have."""
    count = jnp.maximum(k, 0)
    ratio = (count + 0.5) / lam
    x = ratio - 1
    near = jnp.abs(x) < 0.25
    series = x * polynomial(x, [-2 / (i * (i + 1)) * (-1) ** i for i in range(2, 11)])
    r, d = jnp.where(near, 2, ratio), jnp.where(near, 1, x)
    spread = jnp.where(near, series, (1 - r * r + 2 * r * jnp.log(r)) / (d * d))
    z = (count - lam + 2 / 3 + 0.02 / (count + 1)) * jnp.sqrt((1 + spread) / lam)
    return jnp.where(k < 0, -jnp.inf, z)


@sampling.sampler(positive=("lam",))
def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
) -> Array:
    """Sample the number of events if `lam` are expected: the Poisson distribution.

    The probability of k is lam**k * exp(-lam) / k! for k = 0, 1, ...; mean and variance are lam.
    The result is not differentiable with respect to `lam`: gradients are 0.

    Source: Hormann, Insurance: Mathematics and Economics 12 (1993), algorithm PTRS.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      lam: the expected number, a real scalar or array, not negative.
      shape: the shape of the result. The parameters must broadcast to it. By default their
        broadcast shape. Static under `jit`.
      dtype: an integer dtype. By default int32, with enable_x64 int64. Static under `jit`.
      method: "exact", the default, draws by rejection. "approximate" inverts the distribution
        function at one normal number for each sample, by a fixed number of operations; an infinite
        `lam` is not supported then. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype. It is -1 where `lam` is negative or NaN. Counts that the
      dtype cannot hold, as for an infinite `lam`, become its largest number.

    Raises:
      DtypeError: `dtype` is not an integer dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: `lam` is negative, in a Python number or a NumPy array. Other arrays are not
        checked.
      ValueError: `method` is another name.

    >>> x = random.poisson(random.PRNGKey(0), 4.0, (10000,))
    >>> print(f"{x.mean():.0f}")
    4
    >>> print(random.poisson(random.PRNGKey(0), jnp.array([0.0, -1.0])))
    [ 0 -1]
    """
    sampling.check_method("poisson", method)
    key, dtype = read_one_key("poisson", key), sampling.choose_int_dtype("poisson", dtype)
    shape = sampling.choose_shape("poisson", shape, lam)
    work = dtypes.default_float()
    lam = jnp.broadcast_to(*sampling.convert_params("poisson", work, lam), shape)
    if method == "approximate":
        found = approximate_poisson(draw_normal(key, shape, work), lam)
        return jnp.where(lam >= 0, found, -1).astype(dtype)
    valid, many = lam >= 0, (lam >= MIN_EXPECTED) & jnp.isfinite(lam)
    small, large = jnp.where(valid & ~many, lam, 0), jnp.where(many, lam, MIN_EXPECTED)
    first, second = split_pair(key)
    few = count_by_sums(first, jnp.exp(-small), lambda k: small / k)
    counts = draw_many(second, propose_poisson, [large], ~many)
    with enable_x64(True):
        counts = jnp.where(many, counts, few.astype(np.float64))
        found = jnp.where(valid, jnp.where(lam == jnp.inf, jnp.inf, counts), -1)
        return found.astype(dtype)


def draw_binomial(key: Words, n: Any, p: Any, shape: tuple) -> Any:
    """Counts of successes of n trials of probability p, as floats; NaN where there are none such.

    Source: Hormann, Journal of Statistical Computation and Simulation 46 (1993), algorithm BTRS.
    """
    n, p = jnp.broadcast_to(n, shape), jnp.broadcast_to(p, shape)
    valid = (n >= 0) & (p >= 0) & (p <= 1)
    turned = p > 0.5
    q = jnp.where(valid, jnp.where(turned, 1 - p, p), 0)
    n = jnp.where(valid, jnp.floor(n), 0)
    many = n * q >= MIN_EXPECTED
    first, second = split_pair(key)
    odds = q / (1 - q)
    none = jnp.where(many, 1, jnp.exp(n * jnp.log1p(-q)))
    few = count_by_sums(first, none, lambda k: jnp.maximum(n - k + 1, 0) / k * odds)
    trials, rate = jnp.where(many, n, 4 * MIN_EXPECTED), jnp.where(many, q, 0.5)
    counts = draw_many(second, propose_binomial, [trials, rate], ~many).astype(n.dtype)
    counts = jnp.where(many, counts, few)
    return jnp.where(valid, jnp.where(turned, n - counts, counts), jnp.nan)


@sampling.sampler(positive=("n",), chances=("p",))
def binomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Sample the number of successes in n trials: the binomial distribution.

    The probability of k is n! / (k! * (n - k)!) * p**k * (1 - p)**(n - k) for k = 0, ..., n; the
    mean is n * p. The result is not differentiable: gradients are 0.

    Source: Hormann, Journal of Statistical Computation and Simulation 46 (1993), algorithm BTRS.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      n: the number of trials, a real scalar or array, not negative; a fraction is dropped.
      p: the probability of success in [0, 1], a real scalar or array.
      shape: the shape of the result. The parameters must broadcast to it. By default their
        broadcast shape. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of whole numbers in a float dtype. It is NaN where n is negative or p is not in [0,
      1].

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: n is negative or p is not in [0, 1], in a Python number or a NumPy array. Other
        arrays are not checked.

    >>> x = random.binomial(random.PRNGKey(0), 10, 0.5, (10000,))
    >>> print(f"{x.mean():.0f}")
    5
    """
    key, _, shape, n, p = sampling.read_arguments("binomial", key, dtype, shape, n, p)
    return draw_binomial(key, n, p, shape)


@sampling.sampler(positive=("n", "p"))
def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Sample how many of n trials have each of k outcomes: the multinomial distribution.

    The probability of counts c is n! * prod(p**c / c!) for counts whose sum is n; the mean is n *
    p. Each count is drawn from a binomial distribution, given the counts before it.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      n: the number of trials, a real scalar or array (...), not negative.
      p: the probabilities of the outcomes, a real array (..., k). They are divided by their sum.
      shape: the shape of the result, (..., k). `p` and `n` (with an axis appended) must broadcast
        to it. By default their broadcast shape. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      unroll: not used; it is there for programs that were written for JAX. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array (..., k) of whole numbers in a float dtype, whose sum along the last axis is n.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: `p` is a scalar, or `p` and `n` do not broadcast to `shape`.
      ValueError: `n` or `p` is negative, in a Python number or a NumPy array. Other arrays are not
        checked.

    >>> p = jnp.array([0.5, 0.25, 0.25])
    >>> x = random.multinomial(random.PRNGKey(0), 100, p, shape=(1000, 3))
    >>> x.shape, bool((x.sum(-1) == 100).all())
    ((1000, 3), True)
    >>> print(np.asarray(x.mean(0)).round(0))
    [50. 25. 25.]
    """
    key, dtype = read_one_key("multinomial", key), sampling.choose_float_dtype("multinomial", dtype)
    if typeof(p, "multinomial").ndim < 1:
        raise ShapeError(f"multinomial: p must be (..., k); got {typeof(p)}.")
    n, p = sampling.convert_params("multinomial", dtype, n, p)
    p = broadcast_to_rank(p, n.ndim + 1) if p.ndim == 1 else p
    shape = sampling.choose_shape("multinomial", shape, p, n[..., None], more="p and n")
    rest = jnp.flip(jnp.cumsum(jnp.flip(p, -1), -1), -1)
    share = jnp.clip(jnp.where(rest <= 0, 0, p / jnp.where(rest <= 0, 1, rest)), 0, 1)
    left, counts = jnp.broadcast_to(n, shape[:-1]), []
    for i in range(shape[-1] - 1):
        sub = Words(fold_words(key, jnp.asarray(i, np.uint32)), key.dtype)
        counts.append(draw_binomial(sub, left, share[..., i], shape[:-1]))
        left = left - counts[-1]
    return jnp.stack([*counts, left], -1) if shape[-1] else jnp.zeros(shape, dtype)
