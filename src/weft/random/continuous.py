"""Distributions of real numbers that come from uniform and normal numbers in closed form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import weft.numpy as jnp
from weft import dtypes, lax
from weft.api.cond import cond
from weft.errors import DtypeError, ShapeError
from weft.numpy.promotion import shape_of
from weft.primitives.layout import convert, literal
from weft.primitives.random import fast_erf_inv, fast_log1p, fast_tan
from weft.random.keys import Words, draw_bits, read_one_key, split_pair
from weft.random.sampling import (
    broadcast_bounds,
    choose_float_dtype,
    choose_shape,
    convert_params,
    draw_uniform,
    read_arguments,
    require_count,
    sampler,
    spread_uniform,
    step_towards,
    widen_floats,
)
from weft.util import check_option
from weft.xla.typing import Array, ArrayLike, DTypeLike, Shape

__all__ = [
    "bernoulli", "bits", "cauchy", "double_sided_maxwell", "exponential", "gumbel", "laplace",
    "logistic", "lognormal", "maxwell", "multivariate_normal", "normal", "orthogonal", "pareto",
    "rademacher", "rayleigh", "triangular", "truncated_normal", "uniform", "wald", "weibull_min",
]  # fmt: skip


@sampler
def bits(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Sample random bits as unsigned integers.

    Every bit is 0 or 1 with probability 1/2. It is the raw material of the other samplers.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      shape: the shape of the result, a tuple or list of integers. By default (), a scalar. Static
        under `jit`.
      dtype: an unsigned integer dtype of 8, 16, 32 or 64 bits. By default uint32, with enable_x64
        uint64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not an unsigned integer dtype, or `key` is not a key.
      ShapeError: `key` is an array of several keys; use `vmap`.

    >>> print(random.bits(random.PRNGKey(0), (2,)))
    [ 928981903 3453687069]
    >>> random.bits(random.PRNGKey(0), dtype="uint8").dtype
    dtype('uint8')
    """
    key = read_one_key("bits", key)
    found = dtypes.canonicalize(np.uint64 if dtype is None else dtype)
    if not dtypes.is_unsigned(found) or dtypes.itemsize_bits(found) < 8:
        raise DtypeError(f"bits: dtype must be one of unsigned integers; got {found}.")
    return draw_bits(key, shape_of("bits", shape), dtypes.itemsize_bits(found))


@sampler
def uniform(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
) -> Array:
    """Sample from the uniform distribution on [minval, maxval).

    The density is 1 / (maxval - minval) on the interval. Samples are differentiable with respect to
    the bounds.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      shape: the shape of the result, a tuple or list of integers. By default (), a scalar. Static
        under `jit`. The bounds must broadcast to it; with shape (), array bounds scale one draw.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      minval: the lower bound, a real scalar or array. By default 0.
      maxval: the upper bound, which is not included; a real scalar or array. By default 1.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype. Where maxval <= minval, the result is minval.

    Raises:
      DtypeError: `dtype` is not a float dtype, a bound is complex, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.

    >>> print(random.uniform(random.PRNGKey(0), (2,)))
    [0.21629536 0.8041241 ]
    >>> x = random.uniform(random.PRNGKey(0), (1000,), minval=-1.0, maxval=1.0)
    >>> bool(((x >= -1) & (x < 1)).all())
    True
    """
    key = read_one_key("uniform", key)
    dtype = choose_float_dtype("uniform", dtype)
    return draw_uniform("uniform", key, shape_of("uniform", shape), dtype, minval, maxval)


def next_above(x: float, dtype: np.dtype) -> float:
    """The float after x, upwards."""
    return float(step_towards(x, highest_float(dtype), dtype))


def highest_float(dtype: np.dtype) -> float:
    """Infinity; the largest float of a dtype that has none."""
    infinity = np.asarray(np.inf, dtype)
    return float(infinity if np.isinf(infinity) else dtypes.finfo(dtype).max)


def smallest_normal(dtype: np.dtype) -> float:
    """The smallest normal float."""
    return float(dtypes.finfo(dtype).tiny)


def draw_normal(key: Words, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Floats, or complex numbers, of the standard normal distribution."""
    if dtypes.is_complex(dtype):
        part = dtypes.real_dtype(dtype)
        real, imag = (draw_normal(k, shape, part).astype(dtype) for k in split_pair(key))
        whole = lax.add(real, lax.mul(literal(1j, dtype), imag))
        return lax.div(whole, literal(complex(np.sqrt(part.type(2))), dtype))
    then = lambda u: lax.mul(literal(math.sqrt(2), dtype), fast_erf_inv(u))
    return draw_uniform("normal", key, shape, dtype, next_above(-1.0, dtype), 1.0, then)


@sampler
def normal(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Sample from the standard normal distribution.

    The density is exp(-x**2 / 2) / sqrt(2 pi) for all real x: mean 0, variance 1. For another mean
    and deviation, compute `mean + stddev * normal(...)`. Complex samples have unit variance, 1/2 in
    each part.

    The numbers of a key depend on the option `threefry_partitionable`; see `random.key`.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      shape: the shape of the result, a tuple or list of integers. By default (), a scalar. Static
        under `jit`.
      dtype: a float or complex dtype. By default float32, with enable_x64 float64. Static under
        `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is neither a float nor a complex dtype, or `key` is not a key.
      ShapeError: `key` is an array of several keys; use `vmap`.

    >>> print(random.normal(random.PRNGKey(0), (3,)))
    [ 1.8160863  -0.48262316  0.33988908]
    >>> random.normal(random.PRNGKey(0), (2,), complex).dtype
    dtype('complex64')
    """
    key = read_one_key("normal", key)
    return draw_normal(key, shape_of("normal", shape), choose_float_dtype("normal", dtype, True))


@sampler(positive=("sigma",), widened=True)
def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = 1.0,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Sample from the log-normal distribution: exp(sigma * z) for standard normal z.

    The density is exp(-log(x)**2 / (2 sigma**2)) / (x sigma sqrt(2 pi)) for x > 0. The median is 1.
    Samples are differentiable with respect to `sigma`.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      sigma: the standard deviation of the logarithm, a real scalar or array, not negative. By
        default 1.
      shape: the shape of the result. The parameters must broadcast to it. By default their
        broadcast shape. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: `sigma` is negative, in a Python number or a NumPy array. Other arrays are not
        checked.

    >>> x = random.lognormal(random.PRNGKey(0), 0.5, (10000,))
    >>> print(f"{jnp.log(x).std():.2f}")
    0.51
    """
    key, dtype = read_one_key("lognormal", key), choose_float_dtype("lognormal", dtype)
    shape = choose_shape("lognormal", shape, sigma)
    (sigma,) = broadcast_bounds("lognormal", shape, dtype, sigma)
    return lax.exp(lax.mul(draw_normal(key, shape, dtype), sigma))


@sampler(rising=("lower", "upper"))
def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Sample from the standard normal distribution restricted to (lower, upper).

    The density is proportional to exp(-x**2 / 2) inside the interval and 0 outside. Intervals far
    in a tail are supported. Samples are differentiable with respect to the bounds.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      lower: the lower bound, a real scalar or array; it may be -inf.
      upper: the upper bound, a real scalar or array; it may be inf.
      shape: the shape of the result. The parameters must broadcast to it. By default their
        broadcast shape. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: both bounds are Python numbers and lower > upper. Arrays are not checked.

    >>> x = random.truncated_normal(random.PRNGKey(0), -1.0, 2.0, (1000,))
    >>> bool(((x > -1) & (x < 2)).all())
    True
    """
    op = "truncated_normal"
    bounds = [x for x in (lower, upper) if isinstance(x, int | float)]
    near = len(bounds) == 2 and bounds[0] < FAR and bounds[1] > -FAR
    key, found, shape, low, high = read_arguments(op, key, dtype, shape, lower, upper)
    lower, upper = widen_floats(low), widen_floats(high)
    dtype = lower.dtype
    right, left = (lower >= FAR, upper <= -FAR)
    far = right | left
    a, b = (lower, upper) if near else (jnp.where(far, -1, lower), jnp.where(far, 1, upper))
    root = literal(math.sqrt(2), dtype)
    a, b = lax.erf(lax.div(a, root)), lax.erf(lax.div(b, root))
    unit = draw_uniform(op, key, shape, dtype)
    out = lax.mul(root, fast_erf_inv(spread_uniform(op, unit, a, b)))
    if not near:
        tail = lambda: find_in_tail(unit, left, lower, upper)
        out = jnp.where(far, cond(jnp.any(far), tail, lambda: out), out)
    # rounding must not take it to the bounds, or past them
    least = lax.nextafter(lax.stop_gradient(low), literal(highest_float(found), found))
    most = lax.nextafter(lax.stop_gradient(high), literal(-highest_float(found), found))
    return jnp.minimum(jnp.maximum(convert(out, found), least), most)


FAR = 3  # above this x, float32 has few numbers between erf(x) and 1


def find_in_tail(unit: Any, left: Any, lower: Any, upper: Any) -> Any:
    """Return normal numbers in (lower, upper), of one sign and FAR from 0; other bounds give some.

    Each is made from a uniform number in [0, 1).

    The logarithm of the probability of a number beyond x falls from `lower` on as -e, where e is
    exponential. Newton's method finds x of it: the slope is the inverse of Mills' ratio.
    """
    wide = np.promote_types(unit.dtype, np.float32)
    u, lower, upper = (x.astype(wide) for x in (unit, lower, upper))
    a = jnp.maximum(jnp.where(left, -upper, lower), FAR)
    b = jnp.maximum(jnp.where(left, -lower, upper), FAR)

    def fall(x: Any) -> Any:
        return (x - a) * ((x + a) / 2) + jnp.log(mills_ratio(a) / mills_ratio(x))

    whole = fall(jnp.minimum(b, 2 * a + 20))  # beyond, exp(-whole) is 0
    e = -jnp.log1p(u * jnp.expm1(-whole))
    x = jnp.sqrt(a * a + 2 * e)
    for _ in range(4):
        x = x - (fall(x) - e) * mills_ratio(x)
    return jnp.where(left, -x, x).astype(unit.dtype)


def mills_ratio(x: Any) -> Any:
    """The normal probability of more than x over the density, x >= FAR: Laplace's fraction."""
    below = x
    for k in range(12 if x.dtype.itemsize < 8 else 48, 0, -1):
        below = x + k / below
    return 1 / below


def draw_exponential(key: Words, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Floats of the exponential distribution of mean 1."""
    then = lambda u: lax.neg(fast_log1p(lax.neg(u)))
    return draw_uniform("exponential", key, shape, dtype, then=then)


@sampler(widened=True)
def exponential(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Sample from the exponential distribution of rate 1.

    The density is exp(-x) for x >= 0: mean 1. For a rate `lam`, divide the samples by it.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      shape: the shape of the result, a tuple or list of integers. By default (), a scalar. Static
        under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: `key` is an array of several keys; use `vmap`.

    >>> x = random.exponential(random.PRNGKey(0), (10000,))
    >>> print(f"{x.mean():.1f}")
    1.0
    """
    key, dtype = read_one_key("exponential", key), choose_float_dtype("exponential", dtype)
    return draw_exponential(key, shape_of("exponential", shape), dtype)


def draw_gumbel(op: str, key: Words, shape: tuple, dtype: np.dtype, mode: str | None) -> Any:
    """Numbers of the standard Gumbel distribution."""
    if mode not in (None, "low", "high"):
        raise ValueError(f"{op}: mode must be 'low' or 'high'; got {mode!r}.")
    tiny = smallest_normal(dtype)
    if mode != "high":
        then = lambda u: lax.neg(lax.log(lax.neg(lax.log(u))))
        return draw_uniform(op, key, shape, dtype, tiny, 1.0, then)
    u = draw_uniform(op, key, (2, *shape), dtype)
    high, low = u[0], u[1]
    step = literal(float(dtypes.finfo(dtype).eps), dtype)
    fine = lax.add(lax.add(high, lax.mul(step, low)), literal(tiny, dtype))
    return lax.neg(lax.log(lax.neg(fast_log1p(lax.neg(jnp.where(high >= 0.5, high, fine))))))


@sampler(widened=True)
def gumbel(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, mode: str | None = None
) -> Array:
    """Sample from the standard Gumbel distribution: -log(-log(u)) for uniform u.

    The density is exp(-x - exp(-x)) for all real x. The index of the maximum of `logits +
    gumbel(...)` is a sample of the softmax of the logits; see `categorical`.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      shape: the shape of the result, a tuple or list of integers. By default (), a scalar. Static
        under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      mode: "low" draws one uniform number for each sample. "high" uses twice the bits, so that
        large samples are as rare as they should be. By default "low". Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: `key` is an array of several keys; use `vmap`.
      ValueError: `mode` is another name.

    >>> x = random.gumbel(random.PRNGKey(0), (10000,))
    >>> print(f"{x.mean():.1f}, {np.euler_gamma:.1f}")
    0.6, 0.6
    """
    key, dtype = read_one_key("gumbel", key), choose_float_dtype("gumbel", dtype)
    return draw_gumbel("gumbel", key, shape_of("gumbel", shape), dtype, mode)


@sampler(widened=True)
def laplace(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Sample from the standard Laplace distribution.

    The density is exp(-|x|) / 2 for all real x: mean 0, variance 2.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      shape: the shape of the result, a tuple or list of integers. By default (), a scalar. Static
        under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: `key` is an array of several keys; use `vmap`.

    >>> x = random.laplace(random.PRNGKey(0), (10000,))
    >>> print(f"{abs(x).mean():.1f}")
    1.0
    """
    key, dtype = read_one_key("laplace", key), choose_float_dtype("laplace", dtype)
    then = lambda u: lax.mul(lax.sign(u), fast_log1p(lax.neg(lax.abs(u))))
    shape = shape_of("laplace", shape)
    return draw_uniform("laplace", key, shape, dtype, next_above(-1.0, dtype), 1.0, then)


@sampler(widened=True)
def logistic(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Sample from the standard logistic distribution: log(u / (1 - u)) for uniform u.

    The density is exp(-x) / (1 + exp(-x))**2 for all real x. The distribution function is
    `nn.sigmoid`. The mean is 0, the variance pi**2 / 3.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      shape: the shape of the result, a tuple or list of integers. By default (), a scalar. Static
        under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: `key` is an array of several keys; use `vmap`.

    >>> x = random.logistic(random.PRNGKey(0), (10000,))
    >>> print(f"{(x < 1).mean():.1f}, {nn.sigmoid(1.0):.1f}")
    0.7, 0.7
    """
    key, dtype = read_one_key("logistic", key), choose_float_dtype("logistic", dtype)
    then = lambda u: lax.sub(lax.log(u), fast_log1p(lax.neg(u)))
    shape = shape_of("logistic", shape)
    return draw_uniform("logistic", key, shape, dtype, smallest_normal(dtype), 1.0, then)


@sampler(widened=True)
def cauchy(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Sample from the standard Cauchy distribution: tan(pi (u - 1/2)) for uniform u.

    The density is 1 / (pi (1 + x**2)) for all real x. The distribution has no mean and no variance;
    its median is 0.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      shape: the shape of the result, a tuple or list of integers. By default (), a scalar. Static
        under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: `key` is an array of several keys; use `vmap`.

    >>> x = random.cauchy(random.PRNGKey(0), (10000,))
    >>> print(f"{(abs(x) < 1).mean():.1f}")
    0.5
    """
    key, dtype = read_one_key("cauchy", key), choose_float_dtype("cauchy", dtype)
    eps = float(dtypes.finfo(dtype).eps)
    then = lambda u: fast_tan(lax.mul(literal(math.pi, dtype), lax.sub(u, 0.5)))
    return draw_uniform("cauchy", key, shape_of("cauchy", shape), dtype, eps, 1.0, then)


@sampler(positive=("b",), widened=True)
def pareto(
    key: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Sample from the Pareto distribution with scale 1.

    The density is b / x**(b + 1) for x >= 1. The mean is b / (b - 1) for b > 1, otherwise infinite.
    Samples are differentiable with respect to `b`.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      b: the shape parameter, a real scalar or array, positive.
      shape: the shape of the result. The parameters must broadcast to it. By default their
        broadcast shape. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: `b` is negative, in a Python number or a NumPy array. Other arrays are not
        checked.

    >>> x = random.pareto(random.PRNGKey(0), 3.0, (10000,))
    >>> print(f"{x.mean():.1f}")
    1.5
    """
    key, dtype = read_one_key("pareto", key), choose_float_dtype("pareto", dtype)
    shape = choose_shape("pareto", shape, b)
    (b,) = broadcast_bounds("pareto", shape, dtype, b)
    return lax.exp(lax.div(draw_exponential(key, shape, dtype), b))


@sampler(positive=("scale",), widened=True)
def rayleigh(
    key: ArrayLike, scale: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Sample from the Rayleigh distribution.

    It is the length of a vector of two independent normal numbers with standard deviation `scale`.
    The density is x / scale**2 * exp(-x**2 / (2 scale**2)) for x >= 0. Samples are differentiable
    with respect to `scale`.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      scale: the standard deviation of the components, a real scalar or array, not negative.
      shape: the shape of the result. The parameters must broadcast to it. By default their
        broadcast shape. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: `scale` is negative, in a Python number or a NumPy array. Other arrays are not
        checked.

    >>> x = random.rayleigh(random.PRNGKey(0), 2.0, (10000,))
    >>> print(f"{x.mean():.1f}, {2.0 * np.sqrt(np.pi / 2):.1f}")
    2.5, 2.5
    """
    key, dtype = read_one_key("rayleigh", key), choose_float_dtype("rayleigh", dtype)
    shape = choose_shape("rayleigh", shape, scale)
    (scale,) = broadcast_bounds("rayleigh", shape, dtype, scale)
    u = draw_uniform("rayleigh", key, shape, dtype, smallest_normal(dtype), 1.0)
    return lax.mul(lax.sqrt(lax.mul(lax.log(u), -2.0)), scale)


@sampler(positive=("scale", "concentration"), widened=True)
def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Sample from the Weibull distribution.

    With k = concentration, the density is k / scale * (x / scale)**(k - 1) * exp(-(x / scale)**k)
    for x >= 0. A sample is scale * e**(1 / k) for e of the exponential distribution. Samples are
    differentiable with respect to both parameters.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      scale: the scale parameter, a real scalar or array, positive.
      concentration: the shape parameter, a real scalar or array, positive. With 1 the distribution
        is exponential.
      shape: the shape of the result. The parameters must broadcast to it. By default (), so it must
        be given for parameters that are arrays. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: `scale` or `concentration` is negative, in a Python number or a NumPy array. Other
        arrays are not checked.

    >>> x = random.weibull_min(random.PRNGKey(0), 2.0, 1.0, (10000,))
    >>> print(f"{x.mean():.1f}")
    2.0
    """
    op = "weibull_min"
    key, dtype, shape, scale, power = read_arguments(op, key, dtype, shape, scale, concentration)
    return jnp.power(draw_exponential(key, shape, dtype), lax.div(1.0, power)) * scale


def draw_maxwell(key: Words, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Lengths of vectors of three standard normal numbers."""
    return jnp.sqrt(jnp.sum(jnp.square(draw_normal(key, (*shape, 3), dtype)), -1))


@sampler(widened=True)
def maxwell(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Sample from the Maxwell distribution of scale 1.

    It is the length of a vector of three independent standard normal numbers, such as the speed of
    a particle of a gas. The density is sqrt(2 / pi) * x**2 * exp(-x**2 / 2) for x >= 0.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      shape: the shape of the result, a tuple or list of integers. By default (), a scalar. Static
        under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: `key` is an array of several keys; use `vmap`.

    >>> x = random.maxwell(random.PRNGKey(0), (10000,))
    >>> print(f"{x.mean():.1f}, {2 * np.sqrt(2 / np.pi):.1f}")
    1.6, 1.6
    """
    key, dtype = read_one_key("maxwell", key), choose_float_dtype("maxwell", dtype)
    return draw_maxwell(key, shape_of("maxwell", shape), dtype)


def draw_signs(key: Words, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """1 or -1, either as likely."""
    low = draw_uniform("rademacher", key, shape, dtypes.default_float()) < 0.5
    return jnp.where(low, 1, -1).astype(dtype)


@sampler(positive=("scale",), widened=True)
def double_sided_maxwell(
    key: ArrayLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Sample from the double-sided Maxwell distribution.

    A sample is loc + scale * x: |x| has the Maxwell distribution and both signs have probability
    1/2. With z = (x - loc) / scale the density is z**2 * exp(-z**2 / 2) / (scale * sqrt(2 pi)) for
    all real x. Samples are differentiable with respect to both parameters.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      loc: the center, a real scalar or array.
      scale: the scale, a real scalar or array, positive.
      shape: the shape of the result. The parameters must broadcast to it. By default (), so it must
        be given for parameters that are arrays. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: `scale` is negative, in a Python number or a NumPy array. Other arrays are not
        checked.

    >>> x = random.double_sided_maxwell(random.PRNGKey(0), 5.0, 1.0, (10000,))
    >>> print(f"{x.mean():.1f}")
    5.0
    """
    op = "double_sided_maxwell"
    key, dtype, shape, loc, scale = read_arguments(op, key, dtype, shape, loc, scale)
    first, second = split_pair(key)
    return (
        lax.mul(draw_maxwell(first, shape, dtype), draw_signs(second, shape, dtype)) * scale + loc
    )


@sampler
def rademacher(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Sample 1 or -1, each with probability 1/2.

    Random signs serve for estimates of the trace of a matrix, for example.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      shape: the shape of the result, a tuple or list of integers. By default (), a scalar. Static
        under `jit`.
      dtype: a dtype of signed integers, floats or complex numbers. By default int32, with
        enable_x64 int64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `key` is not a key, or the dtype cannot hold -1.
      ShapeError: `key` is an array of several keys; use `vmap`.

    >>> print(random.rademacher(random.PRNGKey(0), (4,)))
    [-1  1 -1  1]
    """
    key = read_one_key("rademacher", key)
    found = dtypes.default_int() if dtype is None else dtypes.check_user_dtype(dtype, "rademacher")
    if dtypes.is_unsigned(found) or dtypes.is_bool(found):
        raise DtypeError(f"rademacher: dtype must be able to hold -1; got {found}.")
    return draw_signs(key, shape_of("rademacher", shape), found)


@sampler(chances=("p",))
def bernoulli(
    key: ArrayLike, p: ArrayLike = 0.5, shape: Shape | None = None, mode: str = "low"
) -> Array:
    """Sample True with probability p, otherwise False.

    It is the toss of a coin. The result is not differentiable with respect to p.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      p: the probability of True in [0, 1], a real scalar or array. By default 0.5.
      shape: the shape of the result. `p` must broadcast to it. By default the shape of `p`. Static
        under `jit`.
      mode: "low", the default, draws one uniform number for each sample. "high" uses twice the
        bits, so that True is as rare as it should be for small p. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      A bool array of the shape.

    Raises:
      ValueError: `p` is not in [0, 1], in a Python number or a NumPy array (other arrays are not
        checked); or `mode` is another name.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      DtypeError: `key` is not a key.

    >>> print(random.bernoulli(random.PRNGKey(0), 0.5, (4,)))
    [False  True False  True]
    >>> x = random.bernoulli(random.PRNGKey(0), jnp.array([0.0, 1.0]))
    >>> print(x)
    [False  True]
    """
    key = read_one_key("bernoulli", key)
    check_option("bernoulli", "mode", mode, "low", "high")
    shape = choose_shape("bernoulli", shape, p, more="p")
    p = widen_floats(jnp.asarray(p))
    dtype = p.dtype if dtypes.is_float(p.dtype) else dtypes.default_float()
    (p,) = convert_params("bernoulli", dtype, p, shape=shape)
    if mode == "low":
        return draw_uniform("bernoulli", key, shape, dtype) < p
    u = draw_uniform("bernoulli", key, (2, *shape), dtype)
    return lax.mul(u[1], literal(float(dtypes.finfo(dtype).eps), dtype)) < p - u[0]


@sampler(rising=("left", "mode", "right"), widened=True)
def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Sample from the triangular distribution.

    The density rises linearly from 0 at `left` to 2 / (right - left) at `mode`, and falls linearly
    to 0 at `right`. The mean is (left + mode + right) / 3. Samples are differentiable with respect
    to the parameters.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      left: the lower end, a real scalar or array.
      mode: the place of the maximum of the density, a real scalar or array in [left, right].
      right: the upper end, a real scalar or array, greater than `left`.
      shape: the shape of the result. The parameters must broadcast to it. By default their
        broadcast shape. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: the parameters are Python numbers and not in the order left <= mode <= right.
        Arrays are not checked.

    >>> x = random.triangular(random.PRNGKey(0), 0.0, 1.0, 2.0, (10000,))
    >>> print(f"{x.mean():.1f}")
    1.0
    """
    op = "triangular"
    key, dtype, shape, left, mode, right = read_arguments(op, key, dtype, shape, left, mode, right)
    width = right - left
    u = draw_uniform(op, key, shape, dtype)
    rising = left + jnp.sqrt(u * width * (mode - left))
    falling = right - jnp.sqrt((1 - u) * width * (right - mode))
    return jnp.where(u < (mode - left) / width, rising, falling)


@sampler(positive=("mean",), widened=True)
def wald(
    key: ArrayLike, mean: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Sample from the Wald (inverse Gaussian) distribution of concentration 1.

    The density is exp(-(x - mean)**2 / (2 mean**2 x)) / sqrt(2 pi x**3) for x > 0. The variance is
    mean**3. Source: Michael, Schucany and Haas, The American Statistician 30 (1976).

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      mean: the mean, a real scalar or array, positive.
      shape: the shape of the result. The parameters must broadcast to it. By default their
        broadcast shape. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array of the shape and dtype.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: a parameter does not broadcast to `shape`, or `key` is an array of several keys.
      ValueError: `mean` is negative, in a Python number or a NumPy array. Other arrays are not
        checked.

    >>> x = random.wald(random.PRNGKey(0), 0.5, (10000,))
    >>> print(f"{x.mean():.1f}")
    0.5
    """
    key, dtype, shape, mean = read_arguments("wald", key, dtype, shape, mean)
    first, second = split_pair(key)
    y = jnp.square(draw_normal(first, shape, dtype))
    u = draw_uniform("wald", second, shape, dtype)
    root = jnp.sqrt(4 * mean * y + jnp.square(mean) * jnp.square(y))
    # mean (1 + m y / 2 - root / 2) without the cancellation of its terms
    x = 2 * mean / (2 + mean * y + root)
    info = dtypes.finfo(dtype)
    far = mean > min(float(info.eps) ** -2, float(info.max) ** 0.5 / 16)  # its square is too large
    inverse = 1 / jnp.where(far, mean, 1)
    x = jnp.where(far, 2 / (2 * inverse + y + jnp.sqrt(y * (y + 4 * inverse))), x)
    return jnp.where(far | (u <= mean / (mean + x)), x, jnp.square(mean) / x)


@sampler(widened=True)
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
) -> Array:
    """Sample vectors from a multivariate normal distribution.

    The density is exp(-(x - mean).T @ inv(cov) @ (x - mean) / 2) / sqrt(det(2 pi cov)). A sample is
    mean + A @ z for standard normal z and a root A of the covariance, A @ A.T = cov. Samples are
    differentiable with respect to `mean` and `cov`; the derivative depends on the root that is
    taken.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      mean: a real array (..., n).
      cov: a real array (..., n, n): symmetric and positive definite matrices. Singular matrices
        need `method` "eigh" or "svd".
      shape: the shape of the result without its last axis. The leading axes of `mean` and `cov`
        must broadcast to it. By default their broadcast shape. Static under `jit`.
      dtype: a float dtype. By default float32, with enable_x64 float64. Static under `jit`.
      method: how the root is computed: "cholesky", the default and the fastest, "eigh" or "svd".
        Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array (*shape, n) of the dtype. With "cholesky" it is NaN where a matrix is not positive
      definite.

    Raises:
      DtypeError: `dtype` is not a float dtype, or `key` is not a key.
      ShapeError: the shapes of `mean` and `cov` do not fit each other or `shape`.
      ValueError: `method` is another name.

    >>> mean, cov = jnp.zeros(2), jnp.array([[1.0, 0.5], [0.5, 1.0]])
    >>> x = random.multivariate_normal(random.PRNGKey(0), mean, cov, (10000,))
    >>> x.shape
    (10000, 2)
    >>> print(f"{jnp.cov(x.T)[0, 1]:.1f}")
    0.5
    """
    op = "multivariate_normal"
    key, dtype = read_one_key(op, key), choose_float_dtype(op, dtype)
    check_option(op, "method", method, "cholesky", "eigh", "svd")
    mean, cov = convert_params(op, dtype, mean, cov)
    if mean.ndim < 1 or cov.shape[-2:] != (mean.shape[-1],) * 2:
        raise ShapeError(
            f"{op}: mean must be (..., n), cov (..., n, n); got {mean.aval}, {cov.aval}."
        )
    lead = [jnp.zeros(s) for s in (mean.shape[:-1], cov.shape[:-2])]
    shape = choose_shape(op, shape, *lead, more="axes of mean and cov before the last")
    if method == "cholesky":
        root = jnp.linalg.cholesky(cov)
    else:
        values, vectors = jnp.linalg.eigh(cov) if method == "eigh" else jnp.linalg.svd(cov)[1::-1]
        root = vectors * jnp.sqrt(jnp.maximum(values, 0))[..., None, :]
    z = draw_normal(key, (*shape, mean.shape[-1]), dtype)
    return lax.broadcast_to_rank(mean, z.ndim) + jnp.einsum("...ij,...j->...i", root, z)


@sampler(static=("n", "m"))
def orthogonal(
    key: ArrayLike, n: int, shape: Shape = (), dtype: DTypeLike | None = None, m: int | None = None
) -> Array:
    """Sample orthogonal matrices from the uniform (Haar) distribution.

    Complex matrices are unitary. With m other than n the result is a part of such a matrix: its
    rows are orthonormal for n < m, its columns for n > m.

    Args:
      key: one random key. The result depends only on the key and the other arguments.
      n: the number of rows, an integer. Static under `jit`.
      shape: the leading axes of the result, for several matrices. By default (): one matrix. Static
        under `jit`.
      dtype: a float or complex dtype. By default float32, with enable_x64 float64. Static under
        `jit`.
      m: the number of columns, an integer. By default n. Static under `jit`.
      out_sharding: how the result is sharded over explicit axes of a mesh. By default it is not.

    Returns:
      An array (*shape, n, m) of the dtype.

    Raises:
      DtypeError: `dtype` is neither a float nor a complex dtype, or `key` is not a key.
      ShapeError: `n` or `m` is negative or not an integer; or `key` is an array of several keys.

    >>> q = random.orthogonal(random.PRNGKey(0), 3)
    >>> bool(jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-6))
    True
    >>> random.orthogonal(random.PRNGKey(0), 4, (5,), m=2).shape
    (5, 4, 2)
    """
    key, dtype = read_one_key("orthogonal", key), choose_float_dtype("orthogonal", dtype, True)
    shape = shape_of("orthogonal", shape)
    n = require_count("orthogonal", "n", n)
    m = n if m is None else require_count("orthogonal", "m", m)
    q, r = jnp.linalg.qr(draw_normal(key, (*shape, max(n, m), min(n, m)), dtype))
    d = jnp.diagonal(r, axis1=-2, axis2=-1)
    q = q * jnp.sign(d)[..., None, :]
    return jnp.swapaxes(q, -2, -1).conj() if n < m else q
