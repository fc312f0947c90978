"""Derivatives of float32 functions where their values hardly move, against mpmath.

A formula made of the value, such as 1 - y**2, is 0 there, though the dtype holds the derivative. A
square overflows long before the derivative is 0.
"""

import mpmath as mp
import numpy as np
import pytest

import weft.numpy as jnp
from weft import enable_x64, grad, jit, jvp, nn, vmap
from weft.scipy import special, stats

SIZES = [1e-30, 1e-10, 1e-3, 0.5, 1.5, 4, 7, 10, 15, 20, 30, 60, 85, 1e3, 1e5, 1e10, 1e15, 1e25]
BOTH = [*SIZES, *[-v for v in SIZES]]
UP_TO = lambda end, points=BOTH: [v for v in points if abs(v) <= end]
INSIDE = [s * v for v in (1e-30, 0.1, 0.7, 0.99, 1 - 2**-20) for s in (1, -1)]
C = mp.sqrt(2 / mp.pi)


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def softplus(x):
    return mp.log1p(mp.exp(x)) if x < 0 else x + mp.log1p(mp.exp(-x))


def elu(x):
    return x if x > 0 else mp.expm1(x)


def tanh_gelu(x):
    return x * sigmoid(mp.sqrt(8 / mp.pi) * (x + mp.mpf(0.044715) * x**3))


# name: the function, the same in mpmath, points
ROWS = {
    "arcsinh": (jnp.arcsinh, mp.asinh, BOTH),
    "arccosh": (jnp.arccosh, mp.acosh, [v for v in SIZES if v > 1]),
    "arctan": (jnp.arctan, mp.atan, UP_TO(1e15)),
    "arctanh": (jnp.arctanh, mp.atanh, INSIDE),
    "arcsin": (jnp.arcsin, mp.asin, INSIDE),
    "expm1": (jnp.expm1, mp.expm1, UP_TO(85)),
    "tanh": (jnp.tanh, mp.tanh, UP_TO(30)),
    "log1p": (jnp.log1p, mp.log1p, [*SIZES, *INSIDE]),
    "logaddexp": (lambda x: jnp.logaddexp(x, 1.0), lambda x: softplus(x - 1) + 1, BOTH),
    "hypot": (lambda x: jnp.hypot(x, 2.0), lambda x: mp.hypot(x, 2), BOTH),
    "hypot of large numbers": (
        lambda x: jnp.hypot(x, 1e30), lambda x: mp.hypot(x, mp.mpf(float(np.float32(1e30)))), SIZES
    ),
    "arctan2": (lambda x: jnp.arctan2(x, 2.0), lambda x: mp.atan2(x, 2), UP_TO(1e15)),
    "sigmoid": (nn.sigmoid, sigmoid, UP_TO(85)),
    "softplus": (nn.softplus, softplus, BOTH),
    "log_sigmoid": (nn.log_sigmoid, lambda x: -softplus(-x), BOTH),
    "silu": (nn.silu, lambda x: x * sigmoid(x), BOTH),
    "mish": (nn.mish, lambda x: x * mp.tanh(softplus(x)), BOTH),
    "exact gelu": (
        lambda x: nn.gelu(x, approximate=False), lambda x: x * mp.ncdf(x), UP_TO(10) + SIZES
    ),
    "gelu": (nn.gelu, tanh_gelu, [v for v in UP_TO(9.5) + SIZES if v < 1e12]),
    "soft_sign": (nn.soft_sign, lambda x: x / (1 + abs(x)), BOTH),
    "squareplus": (nn.squareplus, lambda x: (x + mp.sqrt(x * x + 4)) / 2, BOTH),
    "elu": (nn.elu, elu, BOTH),
    "celu": (nn.celu, elu, BOTH),
    "sparse_plus": (nn.sparse_plus, lambda x: max(x, 0), [v for v in SIZES if v > 1]),
    "erf": (special.erf, mp.erf, UP_TO(7)),
    "erfc": (special.erfc, mp.erfc, UP_TO(7)),
    "ndtr": (special.ndtr, mp.ncdf, UP_TO(10)),
    "log_ndtr": (special.log_ndtr, lambda x: mp.log(mp.ncdf(x)), UP_TO(10)),
    "erfcx": (
        special.erfcx, lambda x: mp.exp(x * x) * mp.erfc(x), [v for v in UP_TO(1e3) if v > -5]
    ),
    "dawsn": (
        special.dawsn,
        lambda x: C * mp.pi / 2 / mp.sqrt(2) * mp.exp(-x * x) * mp.erfi(x),
        [v for v in UP_TO(60) if v != 1.5],
    ),
    "i0e": (special.i0e, lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), UP_TO(1e3)),
    "i1e": (special.i1e, lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), UP_TO(1e3)),
    "betaln": (
        lambda x: special.betaln(x, 2.0), lambda x: -mp.log(x * (x + 1)), UP_TO(1e5, SIZES)
    ),
    "gammaln": (special.gammaln, mp.loggamma, SIZES[1:]),
    "boxcox": (  # exp(88.7) is the largest power
        lambda p: special.boxcox(10.0, p), lambda p: (mp.power(10, p) - 1) / p,
        [0.5, 3, 38, 38.6, 39],
    ),
    "logit": (special.logit, lambda x: mp.log(x / (1 - x)), [v for v in INSIDE if v > 0]),
}  # fmt: skip


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("name", ROWS)
def test_derivatives_where_values_saturate(name):
    fun, exact, points = ROWS[name]
    xs = np.array(points, np.float32)
    got = np.asarray(vmap(grad(fun))(xs)).astype(float)
    want = []
    with mp.workdps(150):
        for x in map(float, xs):
            step = mp.mpf(x) * mp.mpf(10) ** -25
            want.append(float((exact(x + step) - exact(x - step)) / (2 * step)))
    want = np.array(want)
    normal = (np.abs(want) > 2 * np.finfo(np.float32).tiny) & np.isfinite(np.float32(want))
    np.testing.assert_allclose(got[normal], want[normal], rtol=1e-5)


TWICE = {  # functions with softplus's second derivative
    "softplus": nn.softplus,
    "logaddexp": lambda x: jnp.logaddexp(0.0, x),
    "log_sigmoid": lambda x: -nn.log_sigmoid(-x),
}


@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives_of_sums_in_logs(name):
    """They equal the logistic function's, at a tie as well, and where exp(-x) is below eps."""
    xs = np.array([-80, -30, -5, 0, 5, 12, 25, 60, 80], np.float32)
    got = np.asarray(vmap(grad(grad(TWICE[name])))(xs)).astype(float)
    want = [float(sigmoid(mp.mpf(float(x))) * sigmoid(-mp.mpf(float(x)))) for x in xs]
    np.testing.assert_allclose(got, want, rtol=1e-5)


def normal_log(x):
    upper = mp.erfc(abs(x) / mp.sqrt(2)) / 2
    return mp.log(upper) if x < 0 else mp.log1p(-upper)


def gamma_log(a, x, upper):
    return mp.log(mp.gammainc(a, *((x, mp.inf) if upper else (0, x)), regularized=True))


def beta_log(a, b, x):
    return mp.log(mp.betainc(a, b, 0, x, regularized=True))


FAR = [s * v for v in (0.5, 3, 5, 7, 10, 14, 30, 100, 1e3, 1e4) for s in (1, -1)]
POSITIVE = [v for v in FAR if v > 0]
# name: the function, the same in mpmath, points, the highest order of a derivative
TAILS = {
    "sigmoid": (nn.sigmoid, sigmoid, FAR, 3),
    "log_sigmoid": (nn.log_sigmoid, lambda x: -softplus(-x), FAR, 3),
    "silu": (nn.silu, lambda x: x * sigmoid(x), FAR, 3),
    "mish": (nn.mish, lambda x: x * mp.tanh(softplus(x)), FAR, 3),
    "exact gelu": (
        lambda x: nn.gelu(x, approximate=False), lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2, FAR, 3
    ),
    "log_ndtr": (special.log_ndtr, normal_log, FAR, 3),
    "norm.logsf": (stats.norm.logsf, lambda x: normal_log(-x), FAR, 3),
    "logistic.sf": (stats.logistic.sf, lambda x: sigmoid(-x), FAR, 3),
    "cauchy.sf": (stats.cauchy.sf, lambda x: mp.atan2(1, x) / mp.pi, FAR, 3),
    "cauchy.logsf": (stats.cauchy.logsf, lambda x: mp.log(mp.atan2(1, x) / mp.pi), FAR, 3),
    "gumbel_r.logsf": (
        stats.gumbel_r.logsf, lambda x: mp.log(-mp.expm1(-mp.exp(-x))), [-2, 1.5, 2.5, *POSITIVE], 3
    ),
    "gumbel_l.logcdf": (
        stats.gumbel_l.logcdf, lambda x: mp.log(-mp.expm1(-mp.exp(x))), [-v for v in POSITIVE], 3
    ),
    "expon.logcdf": (stats.expon.logcdf, lambda x: mp.log(-mp.expm1(-x)), POSITIVE, 3),
    "gamma.logsf": (
        lambda x: stats.gamma.logsf(x, 2.5), lambda x: gamma_log(2.5, x, True), POSITIVE, 2
    ),
    "gamma.logsf of 200": (
        lambda x: stats.gamma.logsf(x, 200.0), lambda x: gamma_log(200, x, True),
        [280, 400, 700, 3e3], 2,
    ),
    "gamma.logcdf": (
        lambda x: stats.gamma.logcdf(x, 5.0), lambda x: gamma_log(5, x, False),
        [1e-30, 1e-10, 0.05, 0.5, 3], 2,
    ),
    "gamma.logcdf of 200": (
        lambda x: stats.gamma.logcdf(x, 200.0), lambda x: gamma_log(200, x, False),
        [1e-3, 1, 50, 90], 2,
    ),
    "chi2.logsf": (
        lambda x: stats.chi2.logsf(x, 3.0), lambda x: gamma_log(1.5, x / 2, True), POSITIVE, 1
    ),
    "beta.logcdf": (
        lambda x: stats.beta.logcdf(x, 60.0, 40.0), lambda x: beta_log(60, 40, x),
        [1e-10, 0.0078125, 0.125, 0.375, 0.5], 2,
    ),
    "beta.logsf": (
        lambda x: stats.beta.logsf(x, 1.5, 80.0), lambda x: beta_log(80, 1.5, 1 - x),
        [0.125, 0.5, 0.75, 0.875, 1 - 2**-12], 2,
    ),
}  # fmt: skip


def differentiate(fun, xs, order):
    """The values of a function and its derivatives up to an order."""
    funs = [fun]
    for _ in range(order):
        funs.append(lambda x, f=funs[-1]: jvp(f, (x,), (jnp.ones_like(x),))[1])
    return np.array([np.asarray(v, float) for v in jit(lambda x: [f(x) for f in funs])(xs)])


def expand(exact, x, order, digits):
    """The same in mpmath, by differences, whose errors are below the least number of the dtype."""
    with mp.workdps(digits):
        h = mp.mpf(10) ** (-digits // 11) * abs(mp.mpf(x))
        a, b, c, d, e = (exact(mp.mpf(x) + k * h) for k in range(-2, 3))
        found = [c, (d - b) / (2 * h), (d - 2 * c + b) / h**2]
        return [*found, (e - 2 * d + 2 * b - a) / (2 * h**3)][: order + 1]


@pytest.mark.sample(one_in=20)
@pytest.mark.parametrize("name", TAILS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tails_and_their_derivatives(name, dtype):
    """Values and derivatives have a relative accuracy where the dtype holds them."""
    fun, exact, points, order = TAILS[name]
    xs, limits = np.array(points, dtype), np.finfo(dtype)
    digits = 450 if dtype == "float64" else 170
    with enable_x64(dtype == "float64"):
        got = differentiate(fun, xs, order)
    for i, x in enumerate(map(float, xs)):
        for k, want in enumerate(expand(exact, x, order, digits)):
            if 8 * abs(x) * limits.tiny < abs(want) < limits.max:  # silu is x times a tiny number
                error = abs(mp.mpf(got[k, i]) - want) / abs(want)
                assert error < 300 * 10**k * limits.eps, (x, k, got[k, i], want, error)
