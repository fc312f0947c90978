"""Distributions of real numbers, a row each: densities, probabilities, quantiles."""

import math
from typing import Any

import weft.numpy as jnp
from weft.scipy import special
from weft.scipy.special.elementary import log1mexp
from weft.scipy.special.gamma_family import log_beta_lower, log_beta_upper
from weft.scipy.stats.distribution import define_distribution, evaluate_inside, evaluate_quantile
from weft.scipy.stats.kernels import (
    LOG_2,
    LOG_2PI,
    log1p_square,
    log_beta_density,
    log_lower_gamma,
    log_of_part,
    log_poisson,
    log_upper_gamma,
    replace_edge,
)

INF = jnp.inf


norm = define_distribution(
    "norm",
    """the normal distribution.

    Its density is exp(-x**2 / 2) / sqrt(2 pi).""",
    logpdf=lambda x: -0.5 * (x * x + LOG_2PI),
    cdf=lambda x: special.ndtr(x),
    logcdf=lambda x: special.log_ndtr(x),
    sf=lambda x: special.ndtr(-x),
    logsf=lambda x: special.log_ndtr(-x),
    ppf=lambda q: special.ndtri(q),
    isf=lambda q: -special.ndtri(q),
)

laplace = define_distribution(
    "laplace",
    """the Laplace distribution.

    Its density is exp(-abs(x)) / 2.""",
    logpdf=lambda x: -jnp.abs(x) - LOG_2,
    cdf=lambda x: split_tail(0.5 * jnp.exp(-jnp.abs(x)), x),
)


def logistic_logpdf(x: Any) -> Any:
    far = jnp.where(x < 0, x, -x)  # not -abs(x), which has no second derivative at 0
    return far - 2 * jnp.log1p(jnp.exp(far))


logistic = define_distribution(
    "logistic",
    """the logistic distribution.

    Its density is exp(-x) / (1 + exp(-x))**2.""",
    logpdf=logistic_logpdf,
    cdf=lambda x: special.expit(x),
    sf=lambda x: special.expit(-x),
    ppf=lambda x: special.logit(x),
    isf=lambda x: -special.logit(x),
)

# exp(-exp(x)) is 0 beyond it, in each dtype; there exp(x) overflows, and derivatives were 0 * inf
DOUBLE_END = 8.0


# Coefficients of y**2, y**4, ... in log((1 - exp(-y)) / y) + y / 2.
LOG_SERIES = (1 / 24, -1 / 2880, 1 / 181440, -1 / 9676800, 1 / 479001600)


def log_of_rare(x: Any) -> Any:
    """Return log(1 - exp(-exp(x))), by a series where exp(x) is small.

    The series is x plus a small function. Second derivatives of the logarithm would cancel.
    """
    small = x < -2
    near = evaluate_inside(
        ~small & (x < DOUBLE_END), lambda x: log1mexp(jnp.exp(x)), x, 1, 0
    )  # fmt: skip
    far = jnp.where(small, x, -2)
    y = jnp.exp(far)
    series = 0.0 * y
    for c in reversed(LOG_SERIES):
        series = y * y * (c + series)
    return jnp.where(small, far + (series - 0.5 * y), near)


gumbel_l = define_distribution(
    "gumbel_l",
    """the left-skewed Gumbel distribution.

    Its density is exp(x - exp(x)), that of the minimum of many exponential variables.""",
    logpdf=lambda x: evaluate_inside(x < INF, lambda x: x - jnp.exp(x), x, 1, -INF),
    pdf=lambda x: evaluate_inside(x < DOUBLE_END, lambda x: jnp.exp(x - jnp.exp(x)), x, 1, 0),
    cdf=lambda x: evaluate_inside(x < DOUBLE_END, lambda x: -jnp.expm1(-jnp.exp(x)), x, 1, 1),
    logcdf=lambda x: log_of_rare(x),
    sf=lambda x: evaluate_inside(x < DOUBLE_END, lambda x: jnp.exp(-jnp.exp(x)), x, 1, 0),
    logsf=lambda x: -jnp.exp(x),
    ppf=lambda p: evaluate_quantile(lambda p: jnp.log(-jnp.log1p(-p)), p),
)

gumbel_r = define_distribution(
    "gumbel_r",
    """the right-skewed Gumbel distribution.

    Its density is exp(-x - exp(-x)), that of the maximum of many exponential variables.""",
    logpdf=lambda x: evaluate_inside(x > -INF, lambda x: -x - jnp.exp(-x), x, 1, -INF),
    pdf=lambda x: evaluate_inside(x > -DOUBLE_END, lambda x: jnp.exp(-x - jnp.exp(-x)), x, 1, 0),
    cdf=lambda x: evaluate_inside(x > -DOUBLE_END, lambda x: jnp.exp(-jnp.exp(-x)), x, 1, 0),
    logcdf=lambda x: -jnp.exp(-x),
    sf=lambda x: evaluate_inside(x > -DOUBLE_END, lambda x: -jnp.expm1(-jnp.exp(-x)), x, 1, 1),
    logsf=lambda x: log_of_rare(-x),
    ppf=lambda p: evaluate_quantile(lambda p: -jnp.log(-jnp.log(p)), p),
)

expon = define_distribution(
    "expon",
    """the exponential distribution.

    Its density is exp(-x) for x >= 0.""",
    logpdf=lambda x: jnp.where(x < 0, -INF, -x),
    cdf=lambda x: jnp.where(x < 0, 0, -jnp.expm1(-x)),
    logcdf=lambda x: evaluate_inside(x > 0, log1mexp, x, 1, -INF),
    logsf=lambda x: jnp.where(x < 0, 0, -x),
    ppf=lambda q: evaluate_quantile(lambda q: -jnp.log1p(-q), q),
)

uniform = define_distribution(
    "uniform",
    """the uniform distribution.

    Its density is 1 for 0 <= x <= 1.""",
    logpdf=lambda x: evaluate_inside((x >= 0) & (x <= 1), jnp.zeros_like, x, 0, -INF),
    cdf=lambda x: jnp.where(x < 0, 0, jnp.where(x > 1, 1, x)),
    ppf=lambda q: evaluate_quantile(lambda q: q, q),
)

pareto = define_distribution(
    "pareto",
    """the Pareto distribution.

    Its density is b / x**(b + 1) for x >= 1.""",
    proper=lambda b: b > 0,
    logpdf=lambda x, b: evaluate_inside(
        x >= 1, lambda x: jnp.log(b) - (b + 1) * jnp.log(x), x, 1, -INF
    ),
    cdf=lambda x, b: evaluate_inside(x >= 1, lambda x: -jnp.expm1(-b * jnp.log(x)), x, 1, 0),
    logcdf=lambda x, b: evaluate_inside(x > 1, lambda x: log1mexp(b * jnp.log(x)), x, 2, -INF),
    logsf=lambda x, b: evaluate_inside(x >= 1, lambda x: -b * jnp.log(x), x, 1, 0),
    ppf=lambda q, b: evaluate_quantile(lambda q: jnp.exp(-jnp.log1p(-q) / b), q),
)

gennorm = define_distribution(
    "gennorm",
    """the generalized normal distribution.

    Its density is beta exp(-abs(x)**beta) / (2 gamma(1 / beta)).""",
    proper=lambda beta: beta > 0,
    takes=(),
    logpdf=lambda x, beta: jnp.log(beta / 2) - special.gammaln(1 / beta) - raise_size(x, beta),
    cdf=lambda x, beta: gennorm_cdf(x, beta),
)


def raise_size(x: Any, beta: Any) -> Any:
    """abs(x)**beta, whose derivative at 0 is 0, also for beta up to 1 where it has none."""
    away = (x != 0) | (beta > 1)
    return jnp.where(away, jnp.abs(jnp.where(away, x, 1)) ** beta, 0)


def gennorm_cdf(x: Any, beta: Any) -> Any:
    """At 0 by its tangent, as the derivative of the incomplete gamma function is infinite there."""
    at_zero = x == 0
    size = jnp.abs(jnp.where(at_zero, 1, x)) ** beta
    away = split_tail(0.5 * special.gammaincc(1 / beta, size), x)
    return jnp.where(at_zero, 0.5 + x * beta / 2 * jnp.exp(-special.gammaln(1 / beta)), away)


def split_tail(tail: Any, x: Any) -> Any:
    """Return the cumulative probability of a symmetric distribution, given the tail beyond |x|."""
    return jnp.where(x < 0, tail, 1 - tail)


# --- Cauchy, Student's t and distributions of angles ------------------------------------------


def cauchy_below(x: Any) -> Any:
    """The probability of a value that is not greater, for both tails."""
    return jnp.arctan2(1, -x) / math.pi


def cauchy_point(q: Any) -> Any:
    """-1 / tan(pi q), from the end or the middle that q is near."""
    end = jnp.minimum(q, 1 - q)
    middle = end > 0.25
    far = jnp.where(q < 0.5, -1, 1) / jnp.tan(math.pi * jnp.where(middle, 0.25, end))
    return jnp.where(middle, jnp.tan(math.pi * jnp.where(middle, q - 0.5, 0)), far)


cauchy = define_distribution(
    "cauchy",
    """the Cauchy distribution.

    Its density is 1 / (pi (1 + x**2)).""",
    logpdf=lambda x: -math.log(math.pi) - log1p_square(x),
    cdf=lambda x: cauchy_below(x),
    logcdf=lambda x: log_of_part(cauchy_below(x), cauchy_below(-x)),
    sf=lambda x: cauchy_below(-x),
    logsf=lambda x: log_of_part(cauchy_below(-x), cauchy_below(x)),
    ppf=lambda q: evaluate_quantile(cauchy_point, q),
    isf=lambda q: -evaluate_quantile(cauchy_point, q),
)


def t_logpdf(x: Any, df: Any) -> Any:
    normal = df == INF
    m = jnp.where(normal, 1, df / 2)
    # log of gamma(m + 1/2) / (gamma(m) sqrt(2 pi m)), by kernels that stay small
    constant = log_poisson(m - 1, m) - log_poisson(m - 0.5, m) - 0.5 * LOG_2PI
    out = constant - (m + 0.5) * log1p_square(x / jnp.sqrt(2 * m))
    return jnp.where(normal, -0.5 * (x * x + LOG_2PI), out)


t = define_distribution(
    "t",
    """the Student t distribution.

    Its density is proportional to (1 + x**2 / df)**(-(df + 1) / 2).""",
    proper=lambda df: df > 0,
    logpdf=t_logpdf,
)

vonmises = define_distribution(
    "vonmises",
    """the von Mises distribution.

    Its density is exp(kappa cos(x)) / (2 pi i0(kappa)) for an angle x in radians. With kappa = 0 it
    is uniform over the circle.""",
    proper=lambda kappa: kappa >= 0,
    takes=(),
    # cos(x) - 1 = -2 sin(x / 2)**2, which is accurate for small x.
    logpdf=lambda x, kappa: (
        -2 * kappa * jnp.sin(x / 2) ** 2 - LOG_2PI - jnp.log(special.i0e(kappa))
    ),
)


def wrapcauchy_logpdf(x: Any, c: Any) -> Any:
    def log(x: Any) -> Any:
        square = (1 - c) ** 2 + 4 * c * jnp.sin(x / 2) ** 2  # 1 + c**2 - 2 c cos(x)
        return jnp.log((1 - c) * (1 + c)) - LOG_2PI - jnp.log(square)

    return evaluate_inside((x >= 0) & (x <= 2 * math.pi), log, x, 1, -INF)


wrapcauchy = define_distribution(
    "wrapcauchy",
    """the wrapped Cauchy distribution.

    Its density is (1 - c**2) / (2 pi (1 + c**2 - 2 c cos(x))) for 0 <= x <= 2 pi.""",
    proper=lambda c: (c > 0) & (c < 1),
    takes=(),
    logpdf=wrapcauchy_logpdf,
)


# --- gamma and beta ---------------------------------------------------------------------------


def gamma_density(x: Any, a: Any) -> Any:
    edge = lambda c, x: x ** (a - 1) * jnp.exp(c + 1 - x)
    return replace_edge(x == 0, lambda x: log_poisson(a - 1, x), x, 1, edge)


def beta_density(x: Any, a: Any, b: Any) -> Any:
    mean = a / (a + b)  # where the powers and the density are near each other in size
    powers = (a - 1) * jnp.log(mean) + (b - 1) * jnp.log1p(-mean)
    # Held below overflow: where 1 / beta(a, b) is infinite, the power beside it is 0.
    most = math.log(jnp.finfo(x.dtype).max) - 1
    edge = lambda c, x: x ** (a - 1) * (1 - x) ** (b - 1) * jnp.exp(jnp.minimum(c - powers, most))
    at_edge = (x == 0) | (x == 1)
    return replace_edge(at_edge, lambda x: log_beta_density(x, a, b), x, mean, edge)


gamma = define_distribution(
    "gamma",
    """the gamma distribution.

    Its density is x**(a - 1) exp(-x) / gamma(a) for x >= 0.""",
    proper=lambda a: a > 0,
    pdf=lambda x, a: evaluate_inside((x >= 0) & (x < INF), lambda x: gamma_density(x, a), x, 1, 0),
    logpdf=lambda x, a: evaluate_inside(
        (x >= 0) & (x < INF), lambda x: log_poisson(a - 1, x), x, 1, -INF
    ),
    cdf=lambda x, a: evaluate_inside(x >= 0, lambda x: special.gammainc(a, x), x, 1, 0),
    logcdf=lambda x, a: evaluate_inside(x > 0, lambda x: log_lower_gamma(a, x), x, 1, -INF),
    sf=lambda x, a: evaluate_inside(x >= 0, lambda x: special.gammaincc(a, x), x, 1, 1),
    logsf=lambda x, a: evaluate_inside(x >= 0, lambda x: log_upper_gamma(a, x), x, 1, 0),
)

chi2 = define_distribution(
    "chi2",
    """the chi-squared distribution.

    It is the distribution of 2 y, where y has a gamma distribution with a = df / 2.""",
    pdf=lambda x, df: gamma.pdf(x, df / 2, scale=2),
    logpdf=lambda x, df: gamma.logpdf(x, df / 2, scale=2),
    cdf=lambda x, df: gamma.cdf(x, df / 2, scale=2),
    logcdf=lambda x, df: gamma.logcdf(x, df / 2, scale=2),
    sf=lambda x, df: gamma.sf(x, df / 2, scale=2),
    logsf=lambda x, df: gamma.logsf(x, df / 2, scale=2),
)


def beta_above(x: Any, a: Any, b: Any) -> Any:
    """The probability of a value greater than x, from the tail that x is in."""
    upper = x > (a + 1) / (a + b + 2)  # nearer to 1 than the mean: that tail is exact
    swapped = jnp.where(upper, b, a), jnp.where(upper, a, b)
    p = special.betainc(*swapped, jnp.where(upper, 1 - x, x))
    return jnp.where(upper, p, 1 - p)


beta = define_distribution(
    "beta",
    """the beta distribution.

    Its density is x**(a - 1) (1 - x)**(b - 1) / beta(a, b) for 0 <= x <= 1.""",
    proper=lambda a, b: (a > 0) & (b > 0),
    pdf=lambda x, a, b: evaluate_inside(
        (x >= 0) & (x <= 1), lambda x: beta_density(x, a, b), x, 0.5, 0
    ),
    logpdf=lambda x, a, b: evaluate_inside(
        (x >= 0) & (x <= 1), lambda x: log_beta_density(x, a, b), x, 0.5, -INF
    ),
    cdf=lambda x, a, b: evaluate_inside(
        (x >= 0) & (x <= 1), lambda x: special.betainc(a, b, x), x, 0.5, jnp.where(x > 0, 1, 0)
    ),
    logcdf=lambda x, a, b: evaluate_inside(
        (x > 0) & (x <= 1), lambda x: log_beta_lower(a, b, x), x, 0.5, jnp.where(x > 0, 0, -INF)
    ),
    sf=lambda x, a, b: evaluate_inside(
        (x >= 0) & (x <= 1), lambda x: beta_above(x, a, b), x, 0.5, jnp.where(x > 0, 0, 1)
    ),
    logsf=lambda x, a, b: evaluate_inside(
        (x >= 0) & (x < 1), lambda x: log_beta_upper(a, b, x), x, 0.5, jnp.where(x > 0, -INF, 0)
    ),
)


# --- the normal distribution between two bounds -----------------------------------------------


def log_normal_mass(a: Any, b: Any) -> Any:
    """The log of the normal probability of [a, b], a < b, from the tail that they are in.

    Of a narrow interval, probabilities of its ends would cancel: a series is taken.
    """
    apart = a < b
    a, b = jnp.where(apart, a, -1), jnp.where(apart, b, 1)
    narrow = (b - a) * (1 + jnp.minimum(jnp.abs(a), jnp.abs(b))) < 0.1
    series = log_narrow_mass(jnp.where(narrow, a, -0.01), jnp.where(narrow, b, 0.01))
    a, b = jnp.where(narrow, -1, a), jnp.where(narrow, 1, b)
    right, left = a > 0, b <= 0
    tail = right | left
    near = jnp.where(tail, jnp.where(right, -a, b), -1)  # mirrored to the left tail
    far = jnp.where(tail, jnp.where(right, -b, a), -2)
    top = special.log_ndtr(near)
    in_tail = top + log1mexp(top - special.log_ndtr(far))
    low, high = jnp.where(tail, -1, a), jnp.where(tail, 1, b)
    across = jnp.log1p(-special.ndtr(low) - special.ndtr(-high))
    out = jnp.where(narrow, series, jnp.where(tail, in_tail, across))
    return jnp.where(apart, out, -INF)


def log_narrow_mass(a: Any, b: Any) -> Any:
    """The log of the normal probability of [a, b], by powers of the width around the middle."""
    middle, width = 0.5 * (a + b), b - a
    m, h = middle * middle, width * width
    third = (((m - 15) * m + 45) * m - 15) * h / 322560  # Hermite polynomials over 2**n (n + 1)!
    more = (m - 1) / 24 + (((m - 6) * m + 3) / 1920 + third) * h
    return jnp.log(width) - 0.5 * (m + LOG_2PI) + jnp.log1p(more * h)


def log_normal_share(part: tuple, rest: tuple, a: Any, b: Any) -> Any:
    """log of the share of [a, b] that an interval has, from the rest of it where that is small."""
    part, rest, total = log_normal_mass(*part), log_normal_mass(*rest), log_normal_mass(a, b)
    most = part > rest
    direct = jnp.where(most, 0, part) - total
    others = jnp.where(most, rest, total - 1) - total
    return jnp.where(most, jnp.log1p(-jnp.exp(others)), direct)


def edge_share(x: Any, edge: Any, a: Any, b: Any) -> Any:
    """The share of [a, b] that [edge, x] has, negative for x < edge; for x at the edge itself.

    It is 0, and has the derivatives that the log of a share has not.
    """
    at_edge = (x == edge) & (jnp.abs(edge) < INF)
    x, edge = jnp.where(at_edge, x, 1), jnp.where(at_edge, edge, 1)
    side = jnp.where(edge > 0, -1, 1)  # the tail that the edge is in
    log = special.log_ndtr(side * edge)
    grown = jnp.expm1(special.log_ndtr(side * x) - log)
    return jnp.where(at_edge, side * jnp.exp(log - log_normal_mass(a, b)) * grown, 0)


def truncnorm_logcdf(x: Any, a: Any, b: Any) -> Any:
    log = lambda x: log_normal_share((a, x), (x, b), a, b)
    beyond = jnp.where(x <= a, -INF, jnp.log1p(edge_share(x, b, a, b)))
    return evaluate_inside((x > a) & (x < b), log, x, jnp.clip(0, a, b), beyond)


def truncnorm_cdf(x: Any, a: Any, b: Any) -> Any:
    return jnp.exp(truncnorm_logcdf(x, a, b)) + edge_share(x, a, a, b)


truncnorm = define_distribution(
    "truncnorm",
    """the truncated normal distribution.

    It is the normal distribution given that a <= x <= b. As in SciPy, the scale multiplies the
    bounds a and b, and the location moves them.""",
    proper=lambda a, b: a < b,
    logpdf=lambda x, a, b: evaluate_inside(
        (x >= a) & (x <= b), lambda x: -0.5 * (x * x + LOG_2PI) - log_normal_mass(a, b), x, 0, -INF
    ),
    cdf=truncnorm_cdf,
    logcdf=truncnorm_logcdf,
    sf=lambda x, a, b: truncnorm_cdf(-x, -b, -a),
    logsf=lambda x, a, b: truncnorm_logcdf(-x, -b, -a),
)
