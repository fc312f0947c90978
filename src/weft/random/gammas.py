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
from weft.numpy.promotion import shape_of
from weft.primitives.elementwise import div, mul
from weft.primitives.layout import literal
from weft.primitives.special.functions import random_gamma_grad
from weft.random.continuous import exponentials, normals, signs, smallest
from weft.random.keys import Words, one_key, pair
from weft.random.rejection import until_taken
from weft.random.sampling import count_of, float_dtype, params, sampler, shape_for, uniforms

__all__ = [
    "ball",
    "beta",
    "chisquare",
    "dirichlet",
    "f",
    "gamma",
    "generalized_normal",
    "loggamma",
    "t",
]


def cubes(key: Words, d: Any) -> tuple[Any, Any]:
    """(1 + c x)**3 of normal x, and whether the method takes it: d times it is of a = d + 1/3.

    Source: Marsaglia and Tsang, ACM Transactions on Mathematical Software 26 (2000), for a >= 1, of
    which one in twenty at most is rejected.
    """
    first, second = pair(key)
    x = normals(first, d.shape, d.dtype)
    v = 1 + x / jnp.sqrt(9 * d)
    cube = v * v * v
    positive = v > 0
    bound = 0.5 * jnp.square(x) + d * (1 - cube + jnp.log(jnp.where(positive, cube, 1)))
    u = uniforms("gamma", second, d.shape, d.dtype)
    return cube, positive & (jnp.log1p(-u) < bound)


@functools.partial(custom_jvp, nondiff_argnums=(0, 2))
def log_gammas(impl: Any, words_and_a: tuple, shape: tuple) -> Any:
    """Logs of gamma samples; differentiable in the shape parameter."""
    data, a = words_and_a
    return drawn_logs(Words(data, impl), a, shape)


def drawn_logs(key: Words, a: Any, shape: tuple) -> Any:
    """Logs of gamma samples of a, broadcast to a shape.

    Below 1 a sample of a + 1 is taken times u**(1/a), which in logs does not vanish.
    """
    dtype = a.dtype
    work = np.dtype(np.float32) if dtypes.itemsize_bits(dtype) < 32 else dtype
    a = jnp.broadcast_to(a, shape).astype(work).ravel()
    valid = a > 0
    safe = jnp.where(valid, a, 1)
    small = safe < 1
    d = jnp.where(small, safe + 1, safe) - literal(1 / 3, work)
    first, second = pair(key)
    v = until_taken(first, cubes, d)
    boost = jnp.log(uniforms("gamma", second, a.shape, work, smallest(work), 1.0)) / safe
    logs = jnp.log(d) + jnp.log(v) + jnp.where(small, boost, 0)
    edge = jnp.where(a == 0, literal(-np.inf, work), literal(np.nan, work))
    return jnp.where(valid, logs, edge).reshape(shape).astype(dtype)


@log_gammas.defjvp
def log_gammas_jvp(impl: Any, shape: tuple, primals: tuple, tangents: tuple) -> tuple:
    """d log x = dx / x, where x moves with its shape parameter at a fixed quantile."""
    ((data, a),), ((_, t),) = primals, tangents
    logs = log_gammas(impl, (data, a), shape)
    wide = jnp.broadcast_to(a, shape)
    x = jnp.maximum(jnp.exp(logs), literal(smallest(a.dtype), a.dtype))
    slope = div(random_gamma_grad(wide, x), x)
    return logs, mul(slope, jnp.broadcast_to(t, shape))


def log_samples(op: str, key: Words, a: Any, shape: tuple) -> Any:
    """Logs of gamma samples."""
    if not math.prod(shape):
        return jnp.zeros(shape, a.dtype)
    return log_gammas(key.dtype, (key.data, a), shape)


@sampler(positive=("a",))
def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Logs of numbers of the gamma distribution: of small `a` they are exact where `gamma` is 0."""
    key, dtype = one_key("loggamma", key), float_dtype("loggamma", dtype)
    shape = shape_for("loggamma", shape, a)
    (a,) = params("loggamma", dtype, a)
    return log_samples("loggamma", key, a, shape)


@sampler(positive=("a",))
def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers of the gamma distribution of shape parameter a and scale 1.

    Differentiable in `a`, at a fixed quantile.
    """
    key, dtype = one_key("gamma", key), float_dtype("gamma", dtype)
    shape = shape_for("gamma", shape, a)
    (a,) = params("gamma", dtype, a)
    return jnp.exp(log_samples("gamma", key, a, shape))


@sampler(positive=("a", "b"))
def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers in [0, 1] of the beta distribution, of density x**(a-1) (1-x)**(b-1) / B(a, b)."""
    key, dtype = one_key("beta", key), float_dtype("beta", dtype)
    shape = shape_for("beta", shape, a, b)
    a, b = params("beta", dtype, a, b)
    first, second = pair(key)
    log_x, log_y = log_samples("beta", first, a, shape), log_samples("beta", second, b, shape)
    most = jnp.maximum(log_x, log_y)
    x, y = jnp.exp(log_x - most), jnp.exp(log_y - most)
    return x / (x + y)


@sampler(positive=("alpha",))
def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Vectors (*shape, n) of sum 1, of the Dirichlet distribution of alpha (..., n)."""
    key, dtype = one_key("dirichlet", key), float_dtype("dirichlet", dtype)
    (alpha,) = params("dirichlet", dtype, alpha)
    if alpha.ndim < 1:
        raise ShapeError(f"dirichlet: alpha must be (..., n); got {alpha.aval}.")
    lead = jnp.zeros(alpha.shape[:-1])
    shape = shape_for("dirichlet", shape, lead, more="axes of alpha before the last")
    logs = log_samples("dirichlet", key, alpha, (*shape, alpha.shape[-1]))
    x = jnp.exp(logs - jnp.max(logs, -1, keepdims=True, initial=-jnp.inf))
    return x / jnp.sum(x, -1, keepdims=True)


def chisquares(key: Words, df: Any, shape: tuple) -> Any:
    """Numbers of the chi-square distribution."""
    return 2 * jnp.exp(log_samples("chisquare", key, df / 2, shape))


@sampler(positive=("df",))
def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Sums of squares of `df` standard normal numbers."""
    key, dtype = one_key("chisquare", key), float_dtype("chisquare", dtype)
    shape = shape_for("chisquare", shape, df)
    return chisquares(key, *params("chisquare", dtype, df), shape)


@sampler(positive=("dfnum", "dfden"))
def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers of the F distribution: ratios of chi-square numbers over their degrees of freedom."""
    key, dtype = one_key("f", key), float_dtype("f", dtype)
    shape = shape_for("f", shape, dfnum, dfden)
    above, below = params("f", dtype, dfnum, dfden)
    first, second = pair(key)
    return (chisquares(first, above, shape) / above) / (chisquares(second, below, shape) / below)


@sampler(positive=("df",))
def t(key: Any, df: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers of Student's t distribution of `df` degrees of freedom."""
    key, dtype = one_key("t", key), float_dtype("t", dtype)
    shape = shape_for("t", shape, df)
    (df,) = params("t", dtype, df)
    first, second = pair(key)
    half = df / 2
    return normals(first, shape, dtype) * jnp.sqrt(
        half / jnp.exp(log_samples("t", second, half, shape))
    )


def generalized(key: Words, p: Any, shape: tuple, dtype: np.dtype) -> Any:
    """Numbers of density proportional to exp(-|x|**p)."""
    first, second = pair(key)
    logs = log_samples("generalized_normal", first, 1 / p, shape)
    return signs(second, shape, dtype) * jnp.exp(logs / p)


@sampler(positive=("p",))
def generalized_normal(key: Any, p: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Numbers of density proportional to exp(-|x|**p)."""
    op = "generalized_normal"
    key, dtype = one_key(op, key), float_dtype(op, dtype)
    return generalized(key, *params(op, dtype, p), shape_for(op, shape, p), dtype)


@sampler(static=("d",), positive=("p",))
def ball(key: Any, d: int, p: Any = 2, shape: Any = (), dtype: Any = None) -> Any:
    """Points (*shape, d) of the ball of radius 1 in the norm of order p, all as likely.

    Source: Barthe, Guedon, Mendelson and Naor, Annals of Probability 33 (2005).
    """
    key, dtype = one_key("ball", key), float_dtype("ball", dtype)
    shape, d = shape_of("ball", shape), count_of("ball", "d", d)
    (p,) = params("ball", dtype, p)
    first, second = pair(key)
    x = generalized(first, p, (*shape, d), dtype)
    total = jnp.sum(jnp.power(jnp.abs(x), p), -1) + exponentials(second, shape, dtype)
    return x / jnp.power(total, 1 / p)[..., None]
