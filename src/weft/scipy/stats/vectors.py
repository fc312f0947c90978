"""Distributions of vectors: Dirichlet, multinomial, and normal ones."""

from __future__ import annotations

from typing import Any

import weft.numpy as jnp
from weft import dtypes
from weft.errors import ShapeError
from weft.numpy.promotion import as_array
from weft.options import config
from weft.primitives.elementwise import convert
from weft.primitives.linalg import cholesky, triangular_solve
from weft.run.operation import operation
from weft.scipy.stats.distribution import define_module, is_whole, prepare_operands
from weft.scipy.stats.kernels import LOG_2PI, log_poisson, split_edges


def compute_dirichlet(op: str, x: Any, alpha: Any) -> Any:
    """Compute the density of the Dirichlet distribution, or its log, as the name `op` says."""
    (x, alpha), plan = prepare_operands(op, [as_array(x), as_array(alpha)], shaped=False)
    if alpha.ndim != 1 or x.ndim < 1 or x.shape[0] not in (alpha.size, alpha.size - 1):
        raise ShapeError(
            f"{op}: alpha must be of shape (k,), and x of (k, ...) or (k - 1, ...); "
            f"got {x.aval}, {alpha.aval}."
        )
    if x.shape[0] < alpha.size:
        x = jnp.concatenate([x, 1 - jnp.sum(x, 0, keepdims=True)], 0)
    tolerance = max(1e-6, float(dtypes.finfo(plan.dtype).eps))
    inside = jnp.all(x >= 0, 0) & (jnp.abs(jnp.sum(x, 0) - 1) <= tolerance)
    x = jnp.where(inside, x, 0.5)
    alpha = jnp.broadcast_to(alpha.reshape(-1, *[1] * (x.ndim - 1)), x.shape)
    total = jnp.sum(alpha, 0)
    constant = (alpha.shape[0] - 1) * jnp.log(total) - log_poisson(total - 1, total)
    constant = constant + total * (jnp.sum(x, 0) - 1)
    if op == "dirichlet.pdf":
        log, powers = split_edges(alpha - 1, total, x)
        out, outside = jnp.exp(jnp.sum(log, 0) + constant) * jnp.prod(powers, 0), 0
    else:
        out, outside = jnp.sum(log_poisson(alpha - 1, total * x), 0) + constant, -jnp.inf
    out = jnp.where(jnp.all(alpha > 0, 0), jnp.where(inside, out, outside), jnp.nan)
    return convert(out, plan.dtype, plan.weak)


@operation
def dirichlet_logpdf(x: Any, alpha: Any) -> Any:
    """Compute the logarithm of the density of the Dirichlet distribution.

    The density is proportional to the product of `x[i]**(alpha[i] - 1)` over i, for points x of the
    simplex: positive numbers that add up to 1.

    Args:
      x: points of the simplex along the first axis, a float array of shape (k, ...). The last part
        may be left out, as in (k - 1, ...); it is then 1 minus the sum.
      alpha: the parameters, a float array of shape (k,).

    Returns:
      An array of the shape of the other axes of x. It is -inf where x is not in the simplex: its
      sum may be off by 1e-6, or by the spacing of the dtype. It is NaN where an alpha is not
      positive.

    Raises:
      ShapeError: `alpha` has more than one axis, or the first axis of x does not fit.

    >>> from weft.scipy.stats import dirichlet
    >>> x = jnp.array([0.25, 0.75])
    >>> print(np.asarray(dirichlet.logpdf(x, jnp.array([2.0, 3.0]))).round(4))
    0.5232
    """
    return compute_dirichlet("dirichlet.logpdf", x, alpha)


@operation
def dirichlet_pdf(x: Any, alpha: Any) -> Any:
    """Compute the density of the Dirichlet distribution.

    It is proportional to the product of `x[i]**(alpha[i] - 1)` over i, for points x of the simplex:
    positive numbers that add up to 1.

    Args:
      x: points of the simplex along the first axis, a float array of shape (k, ...). The last part
        may be left out, as in (k - 1, ...); it is then 1 minus the sum.
      alpha: the parameters, a float array of shape (k,).

    Returns:
      An array of the shape of the other axes of x. It is 0 where x is not in the simplex, and NaN
      where an alpha is not positive.

    Raises:
      ShapeError: `alpha` has more than one axis, or the first axis of x does not fit.

    >>> from weft.scipy.stats import dirichlet
    >>> x = jnp.array([0.25, 0.75])
    >>> print(np.asarray(dirichlet.pdf(x, jnp.array([2.0, 3.0]))).round(4))
    1.6875
    """
    return compute_dirichlet("dirichlet.pdf", x, alpha)


dirichlet = define_module(
    "dirichlet",
    """the Dirichlet distribution.

    Its density is proportional to the product of x[i]**(alpha[i] - 1) over i.""",
    logpdf=dirichlet_logpdf,
    pdf=dirichlet_pdf,
)


def compute_multinomial(op: str, x: Any, n: Any, p: Any) -> Any:
    """Compute the probability of the multinomial distribution, or its log, as `op` says."""
    args = [as_array(v, op) for v in (x, n, p)]
    with config.scope(numpy_dtype_promotion="standard"):  # counts are integers
        (x, n, p), plan = prepare_operands(op, args, shaped=False)
    if not x.ndim or not p.ndim or x.shape[-1] != p.shape[-1]:
        raise ShapeError(
            f"{op}: x and p must have last axes of equal size; got {x.aval}, {p.aval}."
        )
    n = jnp.broadcast_to(n, jnp.broadcast_shapes(n.shape, x.shape[:-1], p.shape[:-1]))
    x, p, trials = jnp.broadcast_arrays(x, p, n[..., None])
    possible = jnp.all((x >= 0) & is_whole(x), -1) & (jnp.sum(x, -1) == n)
    counts = jnp.where(possible[..., None], x, 0)
    constant = n * (jnp.sum(p, -1) - 1) - log_poisson(n, n, counts=True)
    if op == "multinomial.pmf":
        log, powers = split_edges(counts, trials, p, counts=True)
        out, impossible = jnp.exp(jnp.sum(log, -1) + constant) * jnp.prod(powers, -1), 0
    else:
        out = jnp.sum(log_poisson(counts, trials * p, counts=True), -1) + constant
        impossible = -jnp.inf
    proper = (n >= 0) & jnp.all((p >= 0) & (p <= 1), -1)
    out = jnp.where(proper, jnp.where(possible, out, impossible), jnp.nan)
    return convert(out, plan.dtype, plan.weak)


@operation
def multinomial_logpmf(x: Any, n: Any, p: Any) -> Any:
    """Compute the logarithm of the probability of counts of the multinomial distribution.

    The counts say how often each of k outcomes comes in n independent trials.

    Args:
      x: the counts, an array of shape (..., k).
      n: the number of trials, an int or an array that broadcasts with the axes of x except the
        last.
      p: the probabilities of the outcomes, a float array of shape (..., k). They must add up to 1,
        which is not checked.

    Returns:
      An array of the broadcast shape without the last axis. It is -inf where n is not the sum of x,
      and NaN where a probability is not from 0 to 1.

    Raises:
      ShapeError: the last axes of x and p differ in size.

    >>> from weft.scipy.stats import multinomial
    >>> print(np.asarray(multinomial.logpmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))).round(4))
    -0.6931
    """
    return compute_multinomial("multinomial.logpmf", x, n, p)


@operation
def multinomial_pmf(x: Any, n: Any, p: Any) -> Any:
    """Compute the probability of counts of the multinomial distribution.

    The counts say how often each of k outcomes comes in n independent trials.

    Args:
      x: the counts, an array of shape (..., k).
      n: the number of trials, an int or an array that broadcasts with the axes of x except the
        last.
      p: the probabilities of the outcomes, a float array of shape (..., k). They must add up to 1,
        which is not checked.

    Returns:
      An array of the broadcast shape without the last axis. It is 0 where n is not the sum of x,
      and NaN where a probability is not from 0 to 1.

    Raises:
      ShapeError: the last axes of x and p differ in size.

    >>> from weft.scipy.stats import multinomial
    >>> print(multinomial.pmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5])))
    0.5
    """
    return compute_multinomial("multinomial.pmf", x, n, p)


multinomial = define_module(
    "multinomial",
    """the multinomial distribution.

    It is the number of times that each of k outcomes comes in n independent trials.""",
    logpmf=multinomial_logpmf,
    pmf=multinomial_pmf,
)


def log_normal_density(x: Any, factor: Any) -> Any:
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


@operation(static=("allow_singular",))
def multivariate_normal_logpdf(x: Any, mean: Any, cov: Any, allow_singular: None = None) -> Any:
    """Compute the logarithm of the density of the normal distribution of vectors.

    Args:
      x: the points, a float array of shape (..., n).
      mean: the means, of shape (..., n). If it is a scalar and `cov` too, each element of x is a
        point of its own.
      cov: the covariance matrices, of shape (..., n, n). A scalar stands for that number times the
        identity. The axes in front of the three arguments broadcast together.
      allow_singular: it must be None, the default.

    Returns:
      A float array of the broadcast shape of the axes in front. It is NaN where `cov` is not
      positive definite.

    Raises:
      ShapeError: the sizes of the last axes differ.
      NotImplementedError: `allow_singular` is not None, since a singular covariance has no density.

    >>> from weft.scipy.stats import multivariate_normal
    >>> x = jnp.array([[0.0, 0.0], [1.0, 0.0]])
    >>> print(np.asarray(multivariate_normal.logpdf(x, jnp.zeros(2), jnp.eye(2))).round(4))
    [-1.8379 -2.3379]
    """
    if allow_singular is not None:
        raise NotImplementedError(
            "multivariate_normal.logpdf: allow_singular must be None, for a singular covariance "
            f"has no density; got {allow_singular}. Hint: cov + 1e-6 * jnp.eye(n)."
        )
    args = [as_array(v, "multivariate_normal.logpdf") for v in (x, mean, cov)]
    (x, mean, cov), plan = prepare_operands("multivariate_normal.logpdf", args, shaped=False)
    n = mean.shape[-1] if mean.ndim else 1
    if cov.ndim and (cov.shape[-2:] != (n, n) or (x.ndim and mean.ndim and x.shape[-1] != n)):
        raise ShapeError(
            "multivariate_normal.logpdf: for x and mean (..., n), cov must be (..., n, n) or a "
            f"scalar; got {x.aval}, {mean.aval}, {cov.aval}."
        )
    y = x - mean
    if cov.ndim:
        out = log_normal_density(y if mean.ndim else y[..., None], cholesky(cov))
    else:
        squares = jnp.sum(y * y, -1) if mean.ndim else y * y
        out = -0.5 * (squares / cov + n * (LOG_2PI + jnp.log(cov)))
    return convert(out, plan.dtype, plan.weak)


@operation
def multivariate_normal_pdf(x: Any, mean: Any, cov: Any) -> Any:
    """Compute the density of the normal distribution of vectors.

    Args:
      x: the points, a float array of shape (..., n).
      mean: the means, of shape (..., n). If it is a scalar and `cov` too, each element of x is a
        point of its own.
      cov: the covariance matrices, of shape (..., n, n). A scalar stands for that number times the
        identity. The axes in front of the three arguments broadcast together.

    Returns:
      A float array of the broadcast shape of the axes in front. It is NaN where `cov` is not
      positive definite.

    Raises:
      ShapeError: the sizes of the last axes differ.

    >>> from weft.scipy.stats import multivariate_normal
    >>> print(multivariate_normal.pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)))
    0.15915495
    """
    return jnp.exp(multivariate_normal_logpdf(x, mean, cov))


multivariate_normal = define_module(
    "multivariate_normal",
    """the normal distribution of vectors.

    Its density is proportional to exp(-x^T cov^-1 x / 2).""",
    logpdf=multivariate_normal_logpdf,
    pdf=multivariate_normal_pdf,
)
