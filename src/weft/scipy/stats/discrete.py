"""Distributions of whole numbers, a row each."""

import math
from typing import Any

import weft.numpy as jnp
from weft.primitives.layout import broadcast_to_rank
from weft.scipy.special import gammaincc, xlog1py
from weft.scipy.stats.distribution import (
    define_distribution,
    evaluate_inside,
    evaluate_quantile,
    is_whole,
)
from weft.scipy.stats.kernels import (
    LOG_2,
    log_beta_density,
    log_binomial,
    log_poisson,
    replace_edge,
)

INF = jnp.inf
MAX_LOG = 80  # of a number of float32: larger ones count as often as 0 to a high power does


def choose_outcome(k: Any, one: Any, none: Any, other: Any) -> Any:
    """One value for k = 1, one for k = 0, and one for other k; NaN of NaN."""
    out = jnp.where(k == 1, one, jnp.where(k == 0, none, other))
    return jnp.where(jnp.isnan(k), jnp.nan, out)


bernoulli = define_distribution(
    "bernoulli",
    """the Bernoulli distribution.

    The probability of k = 1 is p, and of k = 0 it is 1 - p.""",
    proper=lambda p: (p >= 0) & (p <= 1),
    takes=["loc"],
    fixed=["cdf", "ppf"],
    pmf=lambda k, p: choose_outcome(k, p, 1 - p, 0),
    logpmf=lambda k, p: choose_outcome(
        k, jnp.log(jnp.where(k == 1, p, 1)), jnp.log1p(-jnp.where(k == 0, p, 0)), -INF
    ),
    cdf=lambda k, p: choose_outcome(jnp.clip(jnp.floor(k), -1, 1), 1, 1 - p, 0),
    ppf=lambda q, p: evaluate_quantile(lambda q: jnp.where(q > 1 - p, 1, 0), q),
)


def binom_density(k: Any, n: Any, p: Any) -> Any:
    rest = jnp.maximum(n - k, 0)
    edge = lambda c, p: p**k * (1 - p) ** rest * jnp.exp(jnp.minimum(c + n * LOG_2, MAX_LOG))
    at_edge = (p == 0) | (p == 1)
    return replace_edge(at_edge, lambda p: log_binomial(k, n, p), p, 0.5, edge)


binom = define_distribution(
    "binom",
    """the binomial distribution.

    It is the number k of successes in n trials, each with probability p.""",
    proper=lambda n, p: (n >= 0) & is_whole(n) & (p >= 0) & (p <= 1),
    takes=["loc"],
    pmf=lambda k, n, p: evaluate_inside(
        (k >= 0) & (k <= n) & is_whole(k), lambda k: binom_density(k, n, p), k, 0, 0
    ),
    logpmf=lambda k, n, p: evaluate_inside(
        (k >= 0) & (k <= n) & is_whole(k), lambda k: log_binomial(k, n, p), k, 0, -INF
    ),
)


def betabinom_logpmf(k: Any, n: Any, a: Any, b: Any) -> Any:
    def log(k: Any) -> Any:
        # Bayes' rule at the mean of p given k, where none of the terms is large
        p = (k + a) / (n + a + b)
        prior = log_beta_density(p, a, b)
        posterior = log_beta_density(p, k + a, jnp.maximum(n - k, 0) + b)
        return log_binomial(k, n, p) + prior - posterior

    return evaluate_inside((k >= 0) & (k <= n) & is_whole(k), log, k, 0, -INF)


betabinom = define_distribution(
    "betabinom",
    """the beta-binomial distribution.

    It is the binomial distribution with a random p, which has a beta distribution of a and b.""",
    proper=lambda n, a, b: (n >= 0) & is_whole(n) & (a > 0) & (b > 0),
    takes=["loc"],
    logpmf=betabinom_logpmf,
)


def log_nbinom(k: Any, n: Any, p: Any) -> Any:
    trials = n + k
    ends = log_poisson(k, trials * (1 - p), counts=True) + log_poisson(n - 1, trials * p)
    return ends - log_poisson(trials - 1, trials) + jnp.log(p)


def nbinom_density(k: Any, n: Any, p: Any) -> Any:
    scale = lambda c: jnp.exp(jnp.minimum(c + (n + k) * LOG_2, MAX_LOG))
    edge = lambda c, p: p**n * (1 - p) ** k * scale(c)
    return replace_edge(p == 1, lambda p: log_nbinom(k, n, p), p, 0.5, edge)


nbinom = define_distribution(
    "nbinom",
    """the negative binomial distribution.

    It is the number k of failures before the n-th success, each with success probability p.""",
    proper=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    takes=["loc"],
    pmf=lambda k, n, p: evaluate_inside(
        (k >= 0) & is_whole(k), lambda k: nbinom_density(k, n, p), k, 0, 0
    ),
    logpmf=lambda k, n, p: evaluate_inside(
        (k >= 0) & is_whole(k), lambda k: log_nbinom(k, n, p), k, 0, -INF
    ),
)


def geom_pmf(k: Any, p: Any) -> Any:
    """By a power for large p, whose derivatives are finite at p = 1 and where 1 - p is exact."""

    def prob(k: Any) -> Any:
        low = jnp.where(p < 0.5, p, 0.5)
        small = jnp.exp(xlog1py(k - 1, -low) + jnp.log(low))
        return jnp.where(p < 0.5, small, p * (1 - p) ** (k - 1))

    return evaluate_inside((k >= 1) & is_whole(k), prob, k, 1, 0)


geom = define_distribution(
    "geom",
    """the geometric distribution.

    The probability of k = 1, 2, ... trials up to the first success is p (1 - p)**(k - 1).""",
    proper=lambda p: (p > 0) & (p <= 1),
    takes=["loc"],
    logpmf=lambda k, p: evaluate_inside(
        (k >= 1) & is_whole(k), lambda k: xlog1py(k - 1, -p) + jnp.log(p), k, 1, -INF
    ),
    pmf=geom_pmf,
)


def poisson_entropy(mu: Any) -> Any:
    large = mu > 100
    low, high = jnp.where(large, 1, mu), jnp.where(large, mu, 100)
    counts = broadcast_to_rank(jnp.arange(256, dtype=mu.dtype), low.ndim + 1)
    log = log_poisson(counts, low[..., None], counts=True)
    happens = log > -INF
    log = jnp.where(happens, log, 0)
    summed = -jnp.sum(jnp.where(happens, jnp.exp(log) * log, 0), -1)
    series = jnp.zeros_like(high)
    for c in (863 / 2520, 9 / 80, 19 / 360, 1 / 24, 1 / 12):  # (Evans and Boersma 1988)
        series = (series + c) / high
    many = 0.5 * (math.log(2 * math.pi) + 1 + jnp.log(high)) - series
    return jnp.where(large, many, summed)


def poisson_density(k: Any, mu: Any) -> Any:
    edge = lambda c, mu: mu**k * jnp.exp(c + 1 - mu)
    return replace_edge(mu == 0, lambda mu: log_poisson(k, mu, counts=True), mu, 1, edge)


poisson = define_distribution(
    "poisson",
    """the Poisson distribution.

    The probability of k = 0, 1, ... is mu**k exp(-mu) / k!.""",
    proper=lambda mu: mu >= 0,
    takes=["loc"],
    pmf=lambda k, mu: evaluate_inside(
        (k >= 0) & is_whole(k), lambda k: poisson_density(k, mu), k, 0, 0
    ),
    logpmf=lambda k, mu: evaluate_inside(
        (k >= 0) & is_whole(k), lambda k: log_poisson(k, mu, counts=True), k, 0, -INF
    ),
    cdf=lambda k, mu: evaluate_inside(k >= 0, lambda k: gammaincc(jnp.floor(k) + 1, mu), k, 0, 0),
    entropy=poisson_entropy,
)
