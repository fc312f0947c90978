"""The normal distribution of vectors: density proportional to exp(-x^T cov^-1 x / 2)."""

from __future__ import annotations

from typing import Any

import weft.numpy as jnp
from weft.errors import ShapeError
from weft.numpy.fused import fused
from weft.numpy.promotion import as_array
from weft.primitives.elementwise import convert
from weft.primitives.linalg import cholesky, triangular_solve
from weft.scipy.stats.families import floats
from weft.scipy.stats.kernels import LOG_2PI

__all__ = ["logpdf", "pdf"]


def log_density(x: Any, factor: Any) -> Any:
    """The log of the density at vectors x (..., n) for mean 0 and covariance factor factor^T.

    The lower triangular `factor` is (..., n, n), with axes in front that broadcast with x's.
    """
    n = factor.shape[-1]
    if factor.ndim == 2:  # one matrix: all vectors are columns of one right-hand side
        white = triangular_solve(factor, x.reshape(-1, n).T, left_side=True, lower=True)
        squares = jnp.sum(white * white, 0).reshape(x.shape[:-1])
    else:
        batch = jnp.broadcast_shapes(factor.shape[:-2], x.shape[:-1])
        factor = jnp.broadcast_to(factor, (*batch, n, n))
        x = jnp.broadcast_to(x, (*batch, n))
        white = triangular_solve(factor, x[..., None], left_side=True, lower=True)
        squares = jnp.sum(white * white, (-2, -1))
    scale = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), -1)
    return -0.5 * (squares + n * LOG_2PI) - scale


@fused(static=("allow_singular",))
def logpdf(x: Any, mean: Any, cov: Any, allow_singular: None = None) -> Any:
    """The log of the density of the multivariate normal distribution.

    x (..., n), mean (..., n) and cov (..., n, n) broadcast in the axes before those named. A scalar
    `cov` stands for that number times the identity; with a scalar `mean` too, the elements of x
    are numbers of their own. NaN where cov is not positive definite.

    >>> import weft.numpy as jnp
    >>> from weft.scipy.stats import multivariate_normal
    >>> print(multivariate_normal.pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)))
    0.15915495
    """
    if allow_singular is not None:
        raise NotImplementedError(
            "multivariate_normal.logpdf: allow_singular must be None, for a singular covariance "
            f"has no density; got {allow_singular}. Hint: cov + 1e-6 * jnp.eye(n)."
        )
    args = [as_array(v, "multivariate_normal.logpdf") for v in (x, mean, cov)]
    (x, mean, cov), plan = floats("multivariate_normal.logpdf", args, shaped=False)
    n = mean.shape[-1] if mean.ndim else 1
    if cov.ndim and (cov.shape[-2:] != (n, n) or (x.ndim and mean.ndim and x.shape[-1] != n)):
        raise ShapeError(
            "multivariate_normal.logpdf: for x and mean (..., n), cov must be (..., n, n) or a "
            f"scalar; got {x.aval}, {mean.aval}, {cov.aval}."
        )
    y = x - mean
    if cov.ndim:
        out = log_density(y if mean.ndim else y[..., None], cholesky(cov))
    else:
        squares = jnp.sum(y * y, -1) if mean.ndim else y * y
        out = -0.5 * (squares / cov + n * (LOG_2PI + jnp.log(cov)))
    return convert(out, plan.dtype, plan.weak)


@fused
def pdf(x: Any, mean: Any, cov: Any) -> Any:
    """The density of the multivariate normal distribution; see `logpdf`."""
    return jnp.exp(logpdf(x, mean, cov))
