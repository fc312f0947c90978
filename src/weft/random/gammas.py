"""The gamma distribution, differentiable in its shape, and those that are made of it."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import weft.numpy as jnp
from weft import dtypes
from weft.api.custom_rules import custom_jvp
from weft.errors import ShapeError
from weft.numpy.horner import polynomial
from weft.numpy.promotion import shape_of
from weft.primitives.elementwise import div, mul
from weft.primitives.layout import convert, literal
from weft.primitives.special.functions import random_gamma_grad
from weft.primitives.transcendental import rsqrt
from weft.random.continuous import draw_exponential, draw_normal, draw_signs, smallest_normal
from weft.random.keys import Words, read_one_key, split_pair
from weft.random.rejection import draw_until_taken
from weft.random.sampling import (
    check_method,
    choose_float_dtype,
    choose_shape,
    convert_params,
    draw_uniform,
    read_arguments,
    require_count,
    sampler,
)
from weft.xla.typing import Array, ArrayLike, DTypeLike, Shape

__all__ = [
    "ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "t",
]  # fmt: skip


def propose_cubes(key: Words, d: Any) -> tuple[Any, Any]:
    """(1 + c x)**3 of normal x, and whether the method takes it: d times it is of a = d + 1/3.

    Source: Marsaglia and Tsang, ACM Transactions on Mathematical Software 26 (2000), for a >= 1, of
    which one in twenty at most is rejected.
    """
    first, second = split_pair(key)
    x = draw_normal(first, d.shape, d.dtype)
    v = 1 + x / jnp.sqrt(9 * d)
    cube = v * v * v
    positive = v > 0
    bound = 0.5 * jnp.square(x) + d * (1 - cube + jnp.log(jnp.where(positive, cube, 1)))
    u = draw_uniform("gamma", second, d.shape, d.dtype)
    return cube, positive & (jnp.log1p(-u) < bound)


def is_huge(a: Any) -> Any:
    """Return True where gamma samples equal their parameter except for rounding, or it is inf."""
    info = dtypes.finfo(a.dtype)
    return a > literal(min(float(info.eps) ** -3, float(info.max)), a.dtype)


@functools.partial(custom_jvp, nondiff_argnums=(0, 2))
def draw_log_gamma(impl: Any, words_and_a: tuple, shape: tuple) -> Any:
    """Logs of gamma samples of a, broadcast to a shape; differentiable in a, the shape parameter.

    Below 1 a sample of a + 1 is taken times u**(1/a), which in logs does not vanish.
    """
    data, a = words_and_a
    work = a.dtype
    a = jnp.broadcast_to(a, shape).ravel()
    huge = is_huge(a)
    valid = (a > 0) & ~huge
    safe = jnp.where(valid, a, 1)
    small = safe < 1
    d = jnp.where(small, safe + 1, safe) - literal(1 / 3, work)
    first, second = split_pair(Words(data, impl))
    v = draw_until_taken(first, propose_cubes, d)
    boost = jnp.log(draw_uniform("gamma", second, a.shape, work, smallest_normal(work), 1.0)) / safe
    logs = jnp.log(d) + jnp.log(v) + jnp.where(small, boost, 0)
    edge = jnp.where((a == 0) | huge, jnp.log(a), literal(np.nan, work))
    return jnp.where(valid, logs, edge).reshape(shape)


@draw_log_gamma.defjvp
def draw_log_gamma_jvp(impl: Any, shape: tuple, primals: tuple, tangents: tuple) -> tuple:
    """d log x = dx / x, where x moves with its shape parameter at a fixed quantile.

    Above 1e5 by the Wilson-Hilferty approximation, which is nearer there than the series.
    """
    ((data, a),), ((_, t),) = primals, tangents
    logs = draw_log_gamma(impl, (data, a), shape)
    wide = jnp.broadcast_to(a, shape)
    many, huge = wide > 1e5, is_huge(wide)
    x = jnp.maximum(jnp.exp(logs), literal(smallest_normal(a.dtype), a.dtype))
    root = jnp.where(huge | ~many, 1, jnp.cbrt(x / wide))
    far = (1 + 3 / root * (1 / (18 * wide) - (root - 1) / 2)) / wide
    x = jnp.where(many, 1, x)
    slope = jnp.where(many, far, div(random_gamma_grad(jnp.where(many, 1, wide), x), x))
    return logs, mul(slope, jnp.broadcast_to(t, shape))


# A series for the cube root of a gamma sample divided by its shape parameter c: coefficients of
# the powers of x / sqrt(2 c), with x normal. Each is a polynomial in 1 / (2 c). JAX 0.12 has the
# same coefficients, so samples agree.
CUBE_ROOT = (
    (1.0, -0.22373679280281067, -0.015139039605855942),
    (0.4713940918445587, 0.02607082948088646, -0.008986007422208786),
    (0.00013480280176736414, 0.011281860060989857, 0.022776789963245392),
    (-0.008553069084882736, -0.011537609621882439, -0.01323292963206768),
    (0.0031255800276994705, 0.005169653799384832, -0.006950356066226959),
    (-0.0008426812128163874, 0.00253000995144248, 0.0010604379931464791),
    (9.780498658074066e-05, -0.001450116978958249, 0.0015653260052204132),
)
RAISED = 4  # a gamma sample of a is one of a + 4 times powers of four uniform numbers


def approximate_log_gamma(key: Words, a: Any, shape: tuple) -> Any:
    """Return logs of approximate gamma samples of a, broadcast to a shape, without rejection.

    A polynomial in a normal number gives the cube root of a sample of a + 4. Each step from a + k
    + 1 down to a + k multiplies by u**(1 / (a + k)) of a uniform u. Differentiable in a.
    """
    work = a.dtype
    a = jnp.broadcast_to(a, shape)
    first, second = split_pair(key)
    raised = a + RAISED
    double = 2 * raised
    x = draw_normal(first, shape, work) * rsqrt(double)
    root = polynomial(x, [polynomial(1 / double, row) for row in CUBE_ROOT])
    root = jnp.maximum(root, literal(smallest_normal(work), work))
    logs = jnp.log(raised) + 3 * jnp.log(root)
    steps = jnp.arange(RAISED, dtype=work).reshape(-1, *[1] * len(shape))
    lower = draw_exponential(second, (RAISED, *shape), work)
    logs = logs + jnp.sum(-lower / (a[None] + steps), 0)
    return jnp.where(a >= 0, jnp.where(a == jnp.inf, a, logs), literal(np.nan, work))


def widen_params(*params: Any) -> list[Any]:
    """Return parameters as float32 if they have 16 bits or fewer.

    The logarithms of gamma samples need more digits than such a dtype has: an error of them is a
    relative error of the sample.
    """
    short = [dtypes.itemsize_bits(x.dtype) < 32 for x in params]
    return [
        convert(x, np.dtype(np.float32)) if s else x for s, x in zip(short, params, strict=True)
    ]


def sample_log_gamma(key: Words, a: Any, shape: tuple, method: str = "exact") -> Any:
    """Logs of gamma samples."""
    if not math.prod(shape):
        return jnp.zeros(shape, a.dtype)
    if method == "approximate":
        return approximate_log_gamma(key, a, shape)
    return draw_log_gamma(key.dtype, (key.data, a), shape)


def draw_gamma(key: Words, a: Any, shape: tuple, method: str = "exact") -> tuple[Any, Any]:
    """Gamma samples, and 1 in place of those that are their parameter except for rounding."""
    huge = is_huge(a)
    logs = jnp.where(huge, 0, sample_log_gamma(key, a, shape, method))
    return jnp.where(huge, a, jnp.exp(logs)), jnp.exp(logs)


@sampler(positive=("a",))
def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
) -> Array:
    """Sample the logarithm of numbers of the gamma distribution.

    For small `a` most gamma samples are too small for a float, and `gamma` returns 0. Their
    logarithms are accurate here. Samples are differentiable with respect to the parameters, at a
    fixed quantile (implicit reparameterization).

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      a: the shape parameter, a real scalar or array, not negative.
      shape: the shape of the result. The parameters must broadcast to it. By default their
        broadcast shape. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      method: "exact", the default, draws by rejection. "approximate" uses a fixed number of
        operations, from a distribution whose quantiles are right to about 1e-3. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype. It is -inf for a = 0 and NaN for a < 0.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: `a` is negative, in a Python number or a NumPy array. Other arrays are not
        checked.
      ValueError: `method` is another name.

    >>> x = random.loggamma(random.PRNGKey(0), 1e-4, (1000,))
    >>> bool(jnp.isfinite(x).all()), bool((jnp.exp(x) == 0).any())
    (True, True)
    """
    check_method("loggamma", method)
    key, dtype, shape, a = read_arguments("loggamma", key, dtype, shape, a)
    return sample_log_gamma(key, *widen_params(a), shape, method).astype(dtype)


@sampler(positive=("a",))
def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
) -> Array:
    """Sample from the gamma distribution with scale 1.

    The density is x**(a - 1) * exp(-x) / Gamma(a) for x >= 0: mean and variance are a. For a scale
    or a rate, multiply or divide the samples. Samples are differentiable with respect to the
    parameters, at a fixed quantile (implicit reparameterization).

    Source: Marsaglia and Tsang, ACM Transactions on Mathematical Software 26 (2000).

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      a: the shape parameter, a real scalar or array, not negative.
      shape: the shape of the result. The parameters must broadcast to it. By default their
        broadcast shape. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      method: "exact", the default, draws by rejection. "approximate" uses a fixed number of
        operations, from a distribution whose quantiles are right to about 1e-3. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype. It is 0 for a = 0 and NaN for a < 0.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: `a` is negative, in a Python number or a NumPy array. Other arrays are not
        checked.
      ValueError: `method` is another name.

    >>> x = random.gamma(random.PRNGKey(0), 2.0, (10000,))
    >>> print(f"{x.mean():.1f}")
    2.0
    >>> x = random.gamma(random.PRNGKey(0), 2.0, (10000,), method="approximate")
    >>> print(f"{x.mean():.1f}")
    2.0

    The derivative of the mean, a, is 1:

    >>> mean = lambda a: random.gamma(random.PRNGKey(0), a, (10000,)).mean()
    >>> print(f"{weft.grad(mean)(2.0):.1f}")
    1.0
    """
    check_method("gamma", method)
    key, dtype, shape, a = read_arguments("gamma", key, dtype, shape, a)
    return draw_gamma(key, *widen_params(a), shape, method)[0].astype(dtype)


@sampler(positive=("a", "b"))
def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
) -> Array:
    """Sample from the beta distribution.

    The density is x**(a - 1) * (1 - x)**(b - 1) / B(a, b) for x in [0, 1]. The mean is a / (a + b).
    Samples are differentiable with respect to the parameters, at a fixed quantile (implicit
    reparameterization).

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      a: the first shape parameter, a real scalar or array, positive.
      b: the second shape parameter, a real scalar or array, positive.
      shape: the shape of the result. The parameters must broadcast to it. By default their
        broadcast shape. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      method: "exact", the default, draws by rejection. "approximate" uses a fixed number of
        operations, from a distribution whose quantiles are right to about 1e-3. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: `a` or `b` is negative, in a Python number or a NumPy array. Other arrays are not
        checked.
      ValueError: `method` is another name.

    >>> x = random.beta(random.PRNGKey(0), 2.0, 8.0, (10000,))
    >>> print(f"{x.mean():.1f}")
    0.2
    """
    check_method("beta", method)
    key, dtype, shape, a, b = read_arguments("beta", key, dtype, shape, a, b)
    (first, second), (a, b) = split_pair(key), widen_params(a, b)
    logs = (sample_log_gamma(first, a, shape, method), sample_log_gamma(second, b, shape, method))
    log_x, log_y = (jnp.minimum(x, dtypes.finfo(a.dtype).max) for x in logs)
    most = jnp.maximum(log_x, log_y)
    x, y = jnp.exp(log_x - most), jnp.exp(log_y - most)
    out = jnp.where(jnp.isinf(a) & jnp.isinf(b), literal(np.nan, a.dtype), x / (x + y))
    return out.astype(dtype)


@sampler(positive=("alpha",))
def dirichlet(
    key: ArrayLike, alpha: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Sample vectors of probabilities from the Dirichlet distribution.

    The density is proportional to the product of x[i]**(alpha[i] - 1) over vectors of nonnegative
    numbers whose sum is 1. The mean is alpha / sum(alpha). Samples are differentiable with respect
    to the parameters, at a fixed quantile (implicit reparameterization).

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      alpha: a real array (..., n) of positive concentrations.
      shape: the shape of the result without its last axis. The leading axes of `alpha` must
        broadcast to it. By default these axes. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array (*shape, n) of the dtype, whose sum along the last axis is 1.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: `alpha` is a scalar, or its leading axes do not broadcast to `shape`.
      ValueError: `alpha` is negative, in a Python number or a NumPy array. Other arrays are not
        checked.

    >>> x = random.dirichlet(random.PRNGKey(0), jnp.array([1.0, 2.0, 7.0]), (10000,))
    >>> x.shape
    (10000, 3)
    >>> print(np.asarray(x.mean(0)).round(1))
    [0.1 0.2 0.7]
    """
    key, dtype = read_one_key("dirichlet", key), choose_float_dtype("dirichlet", dtype)
    (alpha,) = widen_params(*convert_params("dirichlet", dtype, alpha))
    if alpha.ndim < 1:
        raise ShapeError(f"dirichlet: alpha must be (..., n); got {alpha.aval}.")
    lead = jnp.zeros(alpha.shape[:-1])
    shape = choose_shape("dirichlet", shape, lead, more="axes of alpha before the last")
    logs = sample_log_gamma(key, alpha, (*shape, alpha.shape[-1]))
    logs = jnp.minimum(logs, dtypes.finfo(alpha.dtype).max)
    x = jnp.exp(logs - jnp.max(logs, -1, keepdims=True, initial=-jnp.inf))
    several = jnp.sum(jnp.isinf(alpha), -1, keepdims=True) > 1  # whose shares nothing says
    shares = x / jnp.sum(x, -1, keepdims=True)
    return jnp.where(several, literal(np.nan, alpha.dtype), shares).astype(dtype)


@sampler(positive=("df",))
def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
) -> Array:
    """Sample from the chi-square distribution.

    It is the sum of squares of `df` standard normal numbers. The density is x**(df/2 - 1) *
    exp(-x/2) / (2**(df/2) * Gamma(df/2)) for x >= 0: mean df, variance 2 df. Samples are
    differentiable with respect to the parameters, at a fixed quantile (implicit
    reparameterization).

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      df: the degrees of freedom, a real scalar or array, not negative.
      shape: the shape of the result. The parameters must broadcast to it. By default their
        broadcast shape. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      method: "exact", the default, draws by rejection. "approximate" uses a fixed number of
        operations, from a distribution whose quantiles are right to about 1e-3. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: `df` is negative, in a Python number or a NumPy array. Other arrays are not
        checked.
      ValueError: `method` is another name.

    >>> x = random.chisquare(random.PRNGKey(0), 5.0, (10000,))
    >>> print(f"{x.mean():.0f}")
    5
    """
    check_method("chisquare", method)
    key, dtype, shape, df = read_arguments("chisquare", key, dtype, shape, df)
    (df,) = widen_params(df)
    return (2 * draw_gamma(key, df / 2, shape, method)[0]).astype(dtype)


@sampler(positive=("dfnum", "dfden"))
def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Sample from the F distribution.

    It is the ratio of two chi-square numbers, each divided by its degrees of freedom. With d1 =
    dfnum and d2 = dfden, the density is proportional to x**(d1/2 - 1) * (1 + d1 x / d2)**(-(d1 +
    d2)/2) for x >= 0. The mean is d2 / (d2 - 2) for d2 > 2. Samples are differentiable with respect
    to the parameters, at a fixed quantile (implicit reparameterization).

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      dfnum: the degrees of freedom of the numerator, a real scalar or array, positive.
      dfden: the degrees of freedom of the denominator, a real scalar or array, positive.
      shape: the shape of the result. The parameters must broadcast to it. By default their
        broadcast shape. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: `dfnum` or `dfden` is negative, in a Python number or a NumPy array. Other arrays
        are not checked.

    >>> x = random.f(random.PRNGKey(0), 4.0, 20.0, (10000,))
    >>> print(f"{x.mean():.1f}, {20 / 18:.1f}")
    1.1, 1.1
    """
    key, dtype, shape, above, below = read_arguments("f", key, dtype, shape, dfnum, dfden)
    first, second = split_pair(key)
    above, below = widen_params(above, below)
    above, below = (
        2 * draw_gamma(sub, df / 2, shape)[1] / jnp.where(is_huge(df / 2), 2, df)
        for sub, df in ((first, above), (second, below))
    )
    return (above / below).astype(dtype)


@sampler(positive=("df",))
def t(
    key: ArrayLike, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Sample from Student's t distribution.

    The density is proportional to (1 + x**2 / df)**(-(df + 1) / 2) for all real x. The mean is 0
    for df > 1, the variance df / (df - 2) for df > 2. Samples are differentiable with respect to
    the parameters, at a fixed quantile (implicit reparameterization).

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      df: the degrees of freedom, a real scalar or array, positive.
      shape: the shape of the result. The parameters must broadcast to it. By default their
        broadcast shape. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: `df` is negative, in a Python number or a NumPy array. Other arrays are not
        checked.

    >>> x = random.t(random.PRNGKey(0), 10.0, (10000,))
    >>> print(f"{abs(x.mean()):.1f}")
    0.0
    """
    key, dtype, shape, df = read_arguments("t", key, dtype, shape, df)
    (first, second), (df,) = split_pair(key), widen_params(df)
    half = df / 2
    ratio = jnp.where(is_huge(half), 1, half) / draw_gamma(second, half, shape)[1]
    return (draw_normal(first, shape, df.dtype) * jnp.sqrt(ratio)).astype(dtype)


def draw_generalized(key: Words, p: Any, shape: tuple) -> Any:
    """Numbers of density proportional to exp(-|x|**p); of p = inf, those between -1 and 1."""
    first, second = split_pair(key)
    p = jnp.minimum(p, literal(float(dtypes.finfo(p.dtype).max) ** 0.75, p.dtype))
    logs = sample_log_gamma(first, 1 / p, shape)
    return draw_signs(second, shape, p.dtype) * jnp.exp(logs / p)


@sampler(positive=("p",))
def generalized_normal(
    key: ArrayLike, p: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Sample from the generalized normal distribution.

    The density is p * exp(-|x|**p) / (2 * Gamma(1 / p)) for all real x. p = 1 gives the Laplace
    distribution, p = 2 a normal distribution of variance 1/2, and p = inf the uniform distribution
    on (-1, 1).

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      p: the exponent, a real scalar or array, positive.
      shape: the shape of the result. The parameters must broadcast to it. By default (), so it must
        be given for parameters that are arrays. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: `p` is negative, in a Python number or a NumPy array. Other arrays are not
        checked.

    >>> x = random.generalized_normal(random.PRNGKey(0), 2.0, (10000,))
    >>> print(f"{x.var():.1f}")
    0.5
    """
    key, dtype, shape, p = read_arguments("generalized_normal", key, dtype, shape, p)
    return draw_generalized(key, *widen_params(p), shape).astype(dtype)


@sampler(static=("d",), positive=("p",))
def ball(
    key: ArrayLike, d: int, p: ArrayLike = 2, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Sample points that are uniform in the unit ball of the p-norm.

    The ball consists of the points x with sum(|x|**p)**(1 / p) <= 1. Source: Barthe, Guedon,
    Mendelson and Naor, Annals of Probability 33 (2005).

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      d: the dimension, an integer. Static under `jit`.
      p: the order of the norm, a positive scalar. By default 2, the Euclidean norm; inf gives a
        cube.
      shape: the leading axes of the result, for several points. By default (): one point. Static
        under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array (*shape, d) of the dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: `d` is negative or not an integer; or `key` is an array of several keys.
      ValueError: `p` is negative, in a Python number or a NumPy array. Other arrays are not
        checked.

    >>> x = random.ball(random.PRNGKey(0), 3, shape=(1000,))
    >>> x.shape, bool((jnp.linalg.norm(x, axis=-1) <= 1).all())
    ((1000, 3), True)
    """
    key, dtype = read_one_key("ball", key), choose_float_dtype("ball", dtype)
    shape, d = shape_of("ball", shape), require_count("ball", "d", d)
    (p,) = widen_params(*convert_params("ball", dtype, p))
    first, second = split_pair(key)
    x = draw_generalized(first, p, (*shape, d))
    total = jnp.sum(jnp.power(jnp.abs(x), p), -1) + draw_exponential(second, shape, p.dtype)
    return (x / jnp.power(total, 1 / p)[..., None]).astype(dtype)
