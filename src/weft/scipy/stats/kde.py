"""`gaussian_kde`: a density as a mixture of normal distributions, one around each sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft.numpy as jnp
from weft import random
from weft.errors import ShapeError
from weft.numpy.promotion import as_array, promote_operands
from weft.primitives.linalg import cholesky, triangular_solve
from weft.pytrees import register_pytree_node_class
from weft.run.operation import operation
from weft.scipy.special import logsumexp, ndtr
from weft.scipy.stats.distribution import prepare_operands
from weft.scipy.stats.kernels import LOG_2PI


@operation
def log_mixture(points: Any, centers: Any, weights: Any, covariance: Any) -> Any:
    """The logs of densities at points (d, m) of normal distributions around centers (d, n)."""
    given = points, centers, weights, covariance
    points, centers, weights, covariance = promote_operands("gaussian_kde", *given, shaped=False)
    factor = cholesky(covariance)
    points, centers = (
        triangular_solve(factor, v, left_side=True, lower=True) for v in (points, centers)
    )
    squares = jnp.sum(jnp.square(points[:, :, None] - centers[:, None, :]), 0)
    scale = jnp.sum(jnp.log(jnp.diagonal(factor))) + 0.5 * len(factor) * LOG_2PI
    return logsumexp(jnp.log(weights)[None] - 0.5 * squares, axis=1) - scale


@register_pytree_node_class
class gaussian_kde:
    """A density estimated from samples, by a normal distribution around each of them.

    Args:
      dataset: samples, (n,) or (d, n).
      bw_method: the factor between the covariance's root of the data and of the kernels: "scott"
        (for None), neff**(-1 / (d + 4)); "silverman", (neff * (d + 2) / 4)**(-1 / (d + 4)); a
        number; or a function that gives it for this object.
      weights: how much each sample counts, (n,); of any sum.

    It is a pytree: it goes into and out of transformed functions.

    >>> from weft.scipy.stats import gaussian_kde
    >>> density = gaussian_kde(jnp.array([0.0, 1.0, 2.0]))
    >>> print(density(1.0))
    [0.31815618]
    """

    def __init__(
        self, dataset: Any, bw_method: str | float | Callable | None = None, weights: Any = None
    ):
        given = [as_array(x, "gaussian_kde") for x in (dataset, weights) if x is not None]
        (data, *rest), _ = prepare_operands("gaussian_kde", given, shaped=False)
        data = jnp.atleast_2d(data)
        if data.ndim != 2 or data.size < 2:
            raise ShapeError(
                "gaussian_kde: dataset must be (n,) or (d, n) with at least 2 elements; "
                f"got {given[0].aval}."
            )
        n = data.shape[1]
        if rest and rest[0].shape != (n,):
            raise ShapeError(
                f"gaussian_kde: weights must be one for each sample, ({n},); got {rest[0].aval}."
            )
        self.dataset = data
        w = rest[0] if rest else jnp.ones(n, data.dtype)
        self.weights = w / jnp.sum(w)
        squares = jnp.sum(jnp.square(self.weights))
        self.neff = 1 / squares
        center = data - jnp.sum(self.weights[None] * data, 1, keepdims=True)
        spread = jnp.matmul(self.weights[None] * center, center.T) / (1 - squares)
        self.covariance = spread * jnp.square(self.factor(bw_method))
        root = cholesky(self.covariance)
        half = triangular_solve(root, jnp.eye(self.d, dtype=data.dtype), left_side=True, lower=True)
        self.inv_cov = half.T @ half

    def factor(self, bw_method: str | float | Callable | None) -> Any:
        """The bandwidth, as the constructor takes it."""
        if bw_method is None or bw_method == "scott":
            return jnp.power(self.neff, -1 / (self.d + 4))
        if isinstance(bw_method, str) and bw_method == "silverman":
            return jnp.power(self.neff * (self.d + 2) / 4, -1 / (self.d + 4))
        if callable(bw_method):
            return bw_method(self)
        if isinstance(bw_method, str) or jnp.ndim(bw_method):
            raise ValueError(
                "gaussian_kde: bw_method must be 'scott', 'silverman', a number or a function; "
                f"got {bw_method!r}."
            )
        return bw_method

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.dataset.shape[1]

    def tree_flatten(self) -> tuple:
        """The arrays that make this up, for pytrees."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, _: None, children: tuple) -> gaussian_kde:
        """The density that these arrays make up, for pytrees."""
        self = object.__new__(cls)
        self.neff, self.dataset, self.weights, self.covariance, self.inv_cov = children
        return self

    def __repr__(self) -> str:
        return f"gaussian_kde({self.n} samples of dimension {self.d})"

    def evaluate(self, points: Any) -> Any:
        """The density at points (d, m) or, of one dimension, (m,): an array (m,)."""
        return jnp.exp(self.logpdf(points))

    __call__ = evaluate

    def pdf(self, x: Any) -> Any:
        """The density at points (d, m) or, of one dimension, (m,): an array (m,)."""
        return self.evaluate(x)

    def logpdf(self, x: Any) -> Any:
        """The log of the density at points (d, m) or, of one dimension, (m,): an array (m,)."""
        (x,), _ = prepare_operands("gaussian_kde", [as_array(x, "gaussian_kde")], shaped=False)
        points = x.reshape(self.d, -1) if x.ndim < 2 and (self.d in (1, x.size)) else x
        if points.ndim != 2 or points.shape[0] != self.d:
            raise ShapeError(
                f"gaussian_kde: points must be ({self.d}, m), as the dataset; got {x.aval}."
            )
        return log_mixture(points, self.dataset, self.weights, self.covariance)

    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        """Return the integral of this density times the density of a normal distribution."""
        mean, cov = jnp.atleast_1d(mean), jnp.atleast_2d(cov)
        if mean.shape != (self.d,) or cov.shape != (self.d, self.d):
            raise ShapeError(
                f"integrate_gaussian: mean must be ({self.d},) and cov ({self.d}, {self.d}); "
                f"got {mean.aval}, {cov.aval}."
            )
        covariance = self.covariance + cov
        return jnp.exp(log_mixture(mean[:, None], self.dataset, self.weights, covariance))[0]

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """The integral of this density, which must be of one dimension, from low to high."""
        if self.d != 1:
            raise ShapeError(f"integrate_box_1d: the density must be of dimension 1; got {self.d}.")
        scale = jnp.sqrt(self.covariance[0, 0])
        low, high = ((v - self.dataset[0]) / scale for v in (low, high))
        # in the left tail, where small probabilities are exact
        flip = jnp.where(low > 0, -1, 1)
        part = flip * (ndtr(flip * high) - ndtr(flip * low))
        return jnp.sum(self.weights * part)

    def integrate_kde(self, other: gaussian_kde) -> Any:
        """The integral of this density times another."""
        if not isinstance(other, gaussian_kde):
            raise TypeError(f"integrate_kde: needs a gaussian_kde; got {other!r}.")
        if other.d != self.d:
            raise ShapeError(
                f"integrate_kde: densities must be of one dimension; got {self.d}, {other.d}."
            )
        covariance = self.covariance + other.covariance
        log = log_mixture(other.dataset, self.dataset, self.weights, covariance)
        return jnp.sum(other.weights * jnp.exp(log))

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Any:
        """Not there: integrals over boxes of more than one dimension have no closed form."""
        raise NotImplementedError(
            f"integrate_box: the density must be of dimension 1; got {self.d}. "
            "Hint: kde.integrate_box_1d(low, high)."
        )

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Not there: a density does not change."""
        raise NotImplementedError(
            "set_bandwidth: a density does not change. "
            "Hint: gaussian_kde(kde.dataset, bw_method, kde.weights)."
        )

    def resample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        """Points drawn from the density, (d, *shape)."""
        first, second = random.split(key)
        places = random.choice(first, self.n, shape, p=self.weights)
        center = jnp.zeros(self.d, self.dataset.dtype)
        noise = random.multivariate_normal(
            second, center, self.covariance, shape, self.dataset.dtype
        )
        return self.dataset[:, places] + jnp.moveaxis(noise, -1, 0)
