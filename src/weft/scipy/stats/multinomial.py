"""The multinomial distribution: how often each of k outcomes comes in n independent trials."""

from __future__ import annotations

from typing import Any

import weft.numpy as jnp
from weft.errors import ShapeError
from weft.numpy.fused import fused
from weft.numpy.promotion import as_array
from weft.primitives.elementwise import convert
from weft.scipy.stats.families import floats, valid, whole
from weft.scipy.stats.kernels import log_poisson

__all__ = ["logpmf", "pmf"]


@fused
def logpmf(x: Any, n: Any, p: Any) -> Any:
    """The log of the probability of counts x (..., k) in n trials with probabilities p (..., k).

    n, of no axes or of those before the last of x, must be the sum of x; else the result is -inf.
    p must have the sum 1, which is not checked.

    >>> import weft.numpy as jnp
    >>> from weft.scipy.stats import multinomial
    >>> print(multinomial.pmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5])))
    0.5
    """
    args = [as_array(v, "multinomial.logpmf") for v in (x, n, p)]
    (x, n, p), plan = floats("multinomial.logpmf", args, shaped=False)
    if not x.ndim or not p.ndim or x.shape[-1] != p.shape[-1]:
        raise ShapeError(
            "multinomial.logpmf: x and p must have last axes of equal size; "
            f"got {x.aval}, {p.aval}."
        )
    n = jnp.broadcast_to(n, jnp.broadcast_shapes(n.shape, x.shape[:-1], p.shape[:-1]))
    x, p, trials = jnp.broadcast_arrays(x, p, n[..., None])
    possible = jnp.all((x >= 0) & whole(x), -1) & (jnp.sum(x, -1) == n)
    out = jnp.sum(log_poisson(jnp.where(possible[..., None], x, 0), trials * p, counts=True), -1)
    out = out - log_poisson(n, n, counts=True) + n * (jnp.sum(p, -1) - 1)
    out = valid((n >= 0) & jnp.all((p >= 0) & (p <= 1), -1), jnp.where(possible, out, -jnp.inf))
    return convert(out, plan.dtype, plan.weak)


@fused
def pmf(x: Any, n: Any, p: Any) -> Any:
    """The probability of counts x (..., k) in n trials with probabilities p; see `logpmf`."""
    return jnp.exp(logpmf(x, n, p))
