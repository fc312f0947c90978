"""The Dirichlet distribution: density proportional to the product of x[i]**(alpha[i] - 1)."""

from __future__ import annotations

from typing import Any

import weft.numpy as jnp
from weft import dtypes
from weft.errors import ShapeError
from weft.numpy.fused import fused
from weft.numpy.promotion import as_array
from weft.primitives.elementwise import convert
from weft.scipy.stats.families import floats
from weft.scipy.stats.kernels import log_poisson

__all__ = ["logpdf", "pdf"]


@fused
def logpdf(x: Any, alpha: Any) -> Any:
    """The log of the density of the Dirichlet distribution.

    x (k, ...) holds points of the simplex along its first axis, of which the last part may be left
    out, (k - 1, ...); alpha is (k,). The result is of the shape of the other axes: -inf where x is
    not inside of the simplex (its sum may be off by 1e-6, or the spacing of the dtype), NaN where
    an alpha is not positive.

    >>> import weft.numpy as jnp
    >>> from weft.scipy.stats import dirichlet
    >>> print(dirichlet.logpdf(jnp.array([0.25, 0.75]), jnp.array([1.0, 1.0])))
    0.0
    """
    (x, alpha), plan = floats("dirichlet.logpdf", [as_array(x), as_array(alpha)], shaped=False)
    if alpha.ndim != 1 or x.ndim < 1 or x.shape[0] not in (alpha.size, alpha.size - 1):
        raise ShapeError(
            "dirichlet.logpdf: alpha must be of shape (k,), and x of (k, ...) or (k - 1, ...); "
            f"got {x.aval}, {alpha.aval}."
        )
    if x.shape[0] < alpha.size:
        x = jnp.concatenate([x, 1 - jnp.sum(x, 0, keepdims=True)], 0)
    tolerance = max(1e-6, float(dtypes.finfo(plan.dtype).eps))
    inside = jnp.all(x > 0, 0) & (jnp.abs(jnp.sum(x, 0) - 1) <= tolerance)
    x = jnp.where(inside, x, 0.5)
    alpha = jnp.broadcast_to(alpha.reshape(-1, *[1] * (x.ndim - 1)), x.shape)
    total = jnp.sum(alpha, 0)
    out = jnp.sum(log_poisson(alpha - 1, total * x), 0)
    out = out - log_poisson(total - 1, total) + (alpha.shape[0] - 1) * jnp.log(total)
    out = jnp.where(jnp.all(alpha > 0, 0), jnp.where(inside, out, -jnp.inf), jnp.nan)
    return convert(out, plan.dtype, plan.weak)


@fused
def pdf(x: Any, alpha: Any) -> Any:
    """The density of the Dirichlet distribution; see `logpdf`."""
    return jnp.exp(logpdf(x, alpha))
