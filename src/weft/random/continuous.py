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
from weft.primitives.layout import literal
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
    step_towards,
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
    """Random bits, as unsigned integers of 8, 16, 32 or 64 bits.

    >>> print(random.bits(random.PRNGKey(0), (2,)))
    [ 928981903 3453687069]
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
    """Floats in [minval, maxval), all as likely.

    >>> print(random.uniform(random.PRNGKey(0), (2,)))
    [0.21629536 0.8041241 ]
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

    Complex samples have unit variance, 1/2 in each part. The numbers of a key depend on the option
    `threefry_partitionable`; see `random.key`.

    Args:
      key: a random key.
      shape: the shape of the result.
      dtype: a float or complex dtype, by default float32, with enable_x64 float64.

    Returns:
      An array of the shape and dtype.

    >>> print(random.normal(random.PRNGKey(0), (3,)))
    [ 1.8160863  -0.48262316  0.33988908]
    """
    key = read_one_key("normal", key)
    return draw_normal(key, shape_of("normal", shape), choose_float_dtype("normal", dtype, True))


@sampler(positive=("sigma",))
def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = 1.0,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """exp(sigma z) of standard normal z."""
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
    """Numbers of the standard normal distribution, of those in (lower, upper)."""
    op = "truncated_normal"
    bounds = [x for x in (lower, upper) if isinstance(x, int | float)]
    near = len(bounds) == 2 and bounds[0] < FAR and bounds[1] > -FAR
    key, dtype, shape, lower, upper = read_arguments(op, key, dtype, shape, lower, upper)
    right, left = (lower >= FAR, upper <= -FAR)
    far = right | left
    a, b = (lower, upper) if near else (jnp.where(far, -1, lower), jnp.where(far, 1, upper))
    root = literal(math.sqrt(2), dtype)
    a, b = lax.erf(lax.div(a, root)), lax.erf(lax.div(b, root))
    out = lax.mul(root, fast_erf_inv(draw_uniform(op, key, shape, dtype, a, b)))
    if not near:
        tail = lambda: draw_tail(key, shape, dtype, left, lower, upper)
        out = jnp.where(far, cond(jnp.any(far), tail, lambda: out), out)
    # rounding must not take it to the bounds, or past them
    least = lax.nextafter(lax.stop_gradient(lower), literal(highest_float(dtype), dtype))
    most = lax.nextafter(lax.stop_gradient(upper), literal(-highest_float(dtype), dtype))
    return jnp.minimum(jnp.maximum(out, least), most)


FAR = 3  # from which on float32 has few numbers between erf(x) and 1


def draw_tail(
    key: Words, shape: tuple[int, ...], dtype: np.dtype, left: Any, lower: Any, upper: Any
) -> Any:
    """Draw normal numbers in (lower, upper), of one sign and FAR from 0; other bounds give some.

    The logarithm of the probability of a number beyond x falls from `lower` on as -e, where e is
    exponential. Newton's method finds x of it: the slope is the inverse of Mills' ratio.
    """
    wide = np.promote_types(dtype, np.float32)
    u, lower, upper = (
        x.astype(wide) for x in (draw_uniform("truncated_normal", key, shape, dtype), lower, upper)
    )
    a = jnp.maximum(jnp.where(left, -upper, lower), FAR)
    b = jnp.maximum(jnp.where(left, -lower, upper), FAR)

    def fall(x: Any) -> Any:
        return (x - a) * ((x + a) / 2) + jnp.log(mills_ratio(a) / mills_ratio(x))

    whole = fall(jnp.minimum(b, 2 * a + 20))  # beyond, exp(-whole) is 0
    e = -jnp.log1p(u * jnp.expm1(-whole))
    x = jnp.sqrt(a * a + 2 * e)
    for _ in range(4):
        x = x - (fall(x) - e) * mills_ratio(x)
    return jnp.where(left, -x, x).astype(dtype)


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


@sampler
def exponential(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Numbers of the exponential distribution of mean 1."""
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


@sampler
def gumbel(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, mode: str | None = None
) -> Array:
    """Numbers of the standard Gumbel distribution, -log(-log(u)).

    With mode "high" twice the bits are drawn, for large ones as rare as they should be.
    """
    key, dtype = read_one_key("gumbel", key), choose_float_dtype("gumbel", dtype)
    return draw_gumbel("gumbel", key, shape_of("gumbel", shape), dtype, mode)


@sampler
def laplace(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Numbers of the standard Laplace distribution, of density exp(-|x|) / 2."""
    key, dtype = read_one_key("laplace", key), choose_float_dtype("laplace", dtype)
    then = lambda u: lax.mul(lax.sign(u), fast_log1p(lax.neg(lax.abs(u))))
    shape = shape_of("laplace", shape)
    return draw_uniform("laplace", key, shape, dtype, next_above(-1.0, dtype), 1.0, then)


@sampler
def logistic(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Numbers of the standard logistic distribution, log(u / (1 - u))."""
    key, dtype = read_one_key("logistic", key), choose_float_dtype("logistic", dtype)
    then = lambda u: lax.sub(lax.log(u), fast_log1p(lax.neg(u)))
    shape = shape_of("logistic", shape)
    return draw_uniform("logistic", key, shape, dtype, smallest_normal(dtype), 1.0, then)


@sampler
def cauchy(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Numbers of the standard Cauchy distribution, tan(pi (u - 1/2))."""
    key, dtype = read_one_key("cauchy", key), choose_float_dtype("cauchy", dtype)
    eps = float(dtypes.finfo(dtype).eps)
    then = lambda u: fast_tan(lax.mul(literal(math.pi, dtype), lax.sub(u, 0.5)))
    return draw_uniform("cauchy", key, shape_of("cauchy", shape), dtype, eps, 1.0, then)


@sampler(positive=("b",))
def pareto(
    key: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Numbers of the Pareto distribution, of density b / x**(b + 1) for x >= 1."""
    key, dtype = read_one_key("pareto", key), choose_float_dtype("pareto", dtype)
    shape = choose_shape("pareto", shape, b)
    (b,) = broadcast_bounds("pareto", shape, dtype, b)
    return lax.exp(lax.div(draw_exponential(key, shape, dtype), b))


@sampler(positive=("scale",))
def rayleigh(
    key: ArrayLike, scale: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Lengths of vectors of two normal numbers of standard deviation `scale`."""
    key, dtype = read_one_key("rayleigh", key), choose_float_dtype("rayleigh", dtype)
    shape = choose_shape("rayleigh", shape, scale)
    (scale,) = broadcast_bounds("rayleigh", shape, dtype, scale)
    u = draw_uniform("rayleigh", key, shape, dtype, smallest_normal(dtype), 1.0)
    return lax.mul(lax.sqrt(lax.mul(lax.log(u), -2.0)), scale)


@sampler(positive=("scale", "concentration"))
def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """scale e**(1 / concentration) of e of the exponential distribution."""
    op = "weibull_min"
    key, dtype, shape, scale, power = read_arguments(op, key, dtype, shape, scale, concentration)
    return jnp.power(draw_exponential(key, shape, dtype), lax.div(1.0, power)) * scale


def draw_maxwell(key: Words, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Lengths of vectors of three standard normal numbers."""
    return jnp.sqrt(jnp.sum(jnp.square(draw_normal(key, (*shape, 3), dtype)), -1))


@sampler
def maxwell(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Lengths of vectors of three standard normal numbers."""
    key, dtype = read_one_key("maxwell", key), choose_float_dtype("maxwell", dtype)
    return draw_maxwell(key, shape_of("maxwell", shape), dtype)


def draw_signs(key: Words, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """1 or -1, either as likely."""
    low = draw_uniform("rademacher", key, shape, dtypes.default_float()) < 0.5
    return jnp.where(low, 1, -1).astype(dtype)


@sampler(positive=("scale",))
def double_sided_maxwell(
    key: ArrayLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """loc + scale x, where |x| is of the Maxwell distribution and either sign as likely."""
    op = "double_sided_maxwell"
    key, dtype, shape, loc, scale = read_arguments(op, key, dtype, shape, loc, scale)
    first, second = split_pair(key)
    return (
        lax.mul(draw_maxwell(first, shape, dtype), draw_signs(second, shape, dtype)) * scale + loc
    )


@sampler
def rademacher(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """1 or -1, either as likely."""
    key = read_one_key("rademacher", key)
    found = dtypes.default_int() if dtype is None else dtypes.check_user_dtype(dtype, "rademacher")
    return draw_signs(key, shape_of("rademacher", shape), found)


@sampler(chances=("p",))
def bernoulli(
    key: ArrayLike, p: ArrayLike = 0.5, shape: Shape | None = None, mode: str = "low"
) -> Array:
    """Truth values, True with probability p.

    With mode "high" twice the bits are drawn, for small p to be as rare as they should be.

    >>> print(random.bernoulli(random.PRNGKey(0), 0.5, (4,)))
    [False  True False  True]
    """
    key = read_one_key("bernoulli", key)
    check_option("bernoulli", "mode", mode, "low", "high")
    shape = choose_shape("bernoulli", shape, p, more="p")
    p = jnp.asarray(p)
    dtype = p.dtype if dtypes.is_float(p.dtype) else dtypes.default_float()
    (p,) = convert_params("bernoulli", dtype, p, shape=shape)
    if mode == "low":
        return draw_uniform("bernoulli", key, shape, dtype) < p
    u = draw_uniform("bernoulli", key, (2, *shape), dtype)
    return lax.mul(u[1], literal(float(dtypes.finfo(dtype).eps), dtype)) < p - u[0]


@sampler(rising=("left", "mode", "right"))
def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Numbers from left to right, of a density that rises to `mode` and falls from there."""
    op = "triangular"
    key, dtype, shape, left, mode, right = read_arguments(op, key, dtype, shape, left, mode, right)
    width = right - left
    u = draw_uniform(op, key, shape, dtype)
    rising = left + jnp.sqrt(u * width * (mode - left))
    falling = right - jnp.sqrt((1 - u) * width * (right - mode))
    return jnp.where(u < (mode - left) / width, rising, falling)


@sampler(positive=("mean",))
def wald(
    key: ArrayLike, mean: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Numbers of the inverse Gaussian distribution of concentration 1.

    Source: Michael, Schucany and Haas, The American Statistician 30 (1976).
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


@sampler
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
) -> Array:
    """Vectors (*shape, n) of the normal distribution of mean (..., n) and covariance (..., n, n).

    `method` says what root of the covariance is taken: "cholesky", "eigh" or "svd"; the latter two
    take matrices that are singular.
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
    """Matrices (*shape, n, m), m = n by default, of orthonormal rows or columns, all as likely."""
    key, dtype = read_one_key("orthogonal", key), choose_float_dtype("orthogonal", dtype, True)
    shape = shape_of("orthogonal", shape)
    n = require_count("orthogonal", "n", n)
    m = n if m is None else require_count("orthogonal", "m", m)
    q, r = jnp.linalg.qr(draw_normal(key, (*shape, max(n, m), min(n, m)), dtype))
    d = jnp.diagonal(r, axis1=-2, axis2=-1)
    q = q * jnp.sign(d)[..., None, :]
    return jnp.swapaxes(q, -2, -1).conj() if n < m else q
