"""Derivatives of the orders 1 to 4 against mpmath: of special functions, of nn and scipy.stats."""

import mpmath as mp
import numpy as np
import pytest

import weft
from weft import nn
from weft.scipy import special, stats

ORDER = 4


def log_multigamma(a):
    return mp.mpf(1.5) * mp.log(mp.pi) + sum(mp.loggamma(a - mp.mpf(j) / 2) for j in range(3))


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def log_gamma_density(x, a):
    return (a - 1) * mp.log(x) - x - mp.loggamma(a)


# name: the function, the same in mpmath, points
QUICK = {
    "polygamma 1": (lambda x: special.polygamma(1, x), lambda x: mp.psi(1, x), [0.7, 7.5, -0.4]),
    "silu": (nn.silu, lambda x: x * sigmoid(x), [-3, 0, 0.7]),
    "softplus": (nn.softplus, lambda x: mp.log1p(mp.exp(x)), [-3, 0, 0.7]),
    "norm.logcdf": (stats.norm.logcdf, lambda x: mp.log(mp.ncdf(x)), [-8, -0.5, 4]),
    "t.logpdf": (
        lambda x: stats.t.logpdf(x, 3.0), lambda x: -2 * mp.log1p(x * x / 3), [0, 0.7, -4]
    ),
    "gamma.logpdf": (
        lambda x: stats.gamma.logpdf(x, 2.5), lambda x: log_gamma_density(x, 2.5), [0.7, 4]
    ),
}  # fmt: skip
SLOW = {  # XLA compiles some of them for seconds
    "multigammaln 3": (lambda x: special.multigammaln(x, 3), log_multigamma, [1.4, 7.5]),
    "polygamma 3": (lambda x: special.polygamma(3, x), lambda x: mp.psi(3, x), [0.7, 7.5]),
    "digamma": (special.digamma, lambda x: mp.psi(0, x), [0.7, 7.5, -0.4, 1.4616]),
    "gammaln": (special.gammaln, lambda x: mp.loggamma(x).real, [0.7, 1, 7.5, -0.4]),
    "beta": (lambda x: special.beta(x, 1.5), lambda x: mp.beta(x, 1.5), [0.7, 2, 7.5]),
    "betaln": (
        lambda x: special.betaln(x, 1.5), lambda x: mp.log(mp.beta(x, 1.5)), [0.7, 2, 7.5]
    ),
    "hyp1f1": (
        lambda x: special.hyp1f1(1.5, 2.5, x), lambda x: mp.hyp1f1(1.5, 2.5, x), [0, 0.7, -2, 7.5]
    ),
    "hyp2f1": (
        lambda x: special.hyp2f1(1.5, 0.7, 2.5, x), lambda x: mp.hyp2f1(1.5, 0.7, 2.5, x),
        [0, 0.4, -0.6, 0.8],
    ),
    "zeta": (lambda x: special.zeta(3.0, x), lambda x: mp.zeta(3, x), [0.7, 7.5]),
    "gelu": (
        lambda x: nn.gelu(x, approximate=False), lambda x: x * mp.ncdf(x), [-3, 0, 0.7]
    ),
    "mish": (nn.mish, lambda x: x * mp.tanh(mp.log1p(mp.exp(x))), [-3, 0, 0.7]),
    "elu": (nn.elu, mp.expm1, [-3, -0.1]),
    "celu": (nn.celu, mp.expm1, [-3, -0.1]),
    "selu": (nn.selu, lambda x: 1.0507009873554805 * 1.6732632423543772 * mp.expm1(x), [-3, -0.1]),
    "log_sigmoid": (nn.log_sigmoid, lambda x: -mp.log1p(mp.exp(-x)), [-3, 0, 0.7]),
    "squareplus": (nn.squareplus, lambda x: (x + mp.sqrt(x * x + 4)) / 2, [-3, 0, 0.7]),
    "soft_sign": (nn.soft_sign, lambda x: x / (1 + abs(x)), [-3, 0.7]),
    "cauchy.logpdf": (stats.cauchy.logpdf, lambda x: -mp.log1p(x * x), [0, 0.7, -4]),
    "logistic.logpdf": (
        stats.logistic.logpdf, lambda x: x - 2 * mp.log1p(mp.exp(x)), [0, 0.7, -4]
    ),
    "laplace.logpdf": (stats.laplace.logpdf, lambda x: -abs(x), [0.7, -4]),
    "beta.logpdf": (
        lambda x: stats.beta.logpdf(x, 2.0, 3.5),
        lambda x: mp.log(x) + 2.5 * mp.log(1 - x), [0.2, 0.9],
    ),
    "beta.logpdf in a": (
        lambda a: stats.beta.logpdf(0.3, a, 3.5),
        lambda a: (a - 1) * mp.log(mp.mpf(0.3)) - mp.log(mp.beta(a, 3.5)), [0.7, 4],
    ),
    "gamma.logpdf in a": (
        lambda a: stats.gamma.logpdf(1.3, a), lambda a: log_gamma_density(mp.mpf(1.3), a), [0.7, 4]
    ),
    "t.logpdf in df": (
        lambda v: stats.t.logpdf(0.7, v),
        lambda v: mp.loggamma((v + 1) / 2) - mp.loggamma(v / 2) - mp.log(v) / 2
        - (v + 1) / 2 * mp.log1p(mp.mpf(0.7) ** 2 / v), [0.7, 4],
    ),
    "poisson.logpmf in mu": (
        lambda m: stats.poisson.logpmf(3, m), lambda m: 3 * mp.log(m) - m, [0.7, 4]
    ),
    "nbinom.logpmf in n": (
        lambda n: stats.nbinom.logpmf(3, n, 0.4),
        lambda n: mp.loggamma(n + 3) - mp.loggamma(n) + n * mp.log(mp.mpf(0.4)), [0.7, 4],
    ),
    "pareto.logpdf": (
        lambda x: stats.pareto.logpdf(x, 2.5), lambda x: -3.5 * mp.log(x), [1.5, 4]
    ),
    "chi2.cdf": (
        lambda x: stats.chi2.cdf(x, 3.0),
        lambda x: mp.gammainc(1.5, 0, x / 2, regularized=True), [0.7, 4],
    ),
    "beta.cdf": (
        lambda x: stats.beta.cdf(x, 1.5, 2.5),
        lambda x: mp.betainc(1.5, 2.5, 0, x, regularized=True), [0.2, 0.9],
    ),
}  # fmt: skip
ROWS = [
    *QUICK, *[pytest.param(name, marks=pytest.mark.slow) for name in SLOW],
]  # fmt: skip


def differentiate(fun, points):
    """The derivatives of the orders 1 to 4 at points."""

    def all_at(x):
        funs = [fun]
        for _ in range(ORDER):
            funs.append(lambda x, f=funs[-1]: weft.jvp(f, (x,), (1.0,))[1])
        return [f(x) for f in funs[1:]]

    with weft.enable_x64(True):
        return np.array(weft.jit(weft.vmap(all_at))(np.array(points, float))).T


def expand(exact, x):
    """The same in mpmath, next to a point."""
    with mp.workdps(120):
        terms = mp.taylor(exact, mp.mpf(x) + mp.mpf(10) ** -18, ORDER, h=mp.mpf(10) ** -15)
        return [float(mp.re(v * mp.factorial(k))) for k, v in enumerate(terms)][1:]


@pytest.mark.parametrize("name", ROWS)
def test_derivatives_to_order_four(name):
    fun, exact, points = {**QUICK, **SLOW}[name]
    got, want = differentiate(fun, points), np.array([expand(exact, x) for x in points])
    size = np.abs(want).max(1, keepdims=True)  # beside larger ones an order loses digits
    assert (np.abs(got - want) <= 1e-9 * np.abs(want) + 1e-11 * size).all(), (points, got, want)
