"""Points at which derivatives are easily wrong: removable singularities, branches, ties and edges.

`EXISTING` are points with derivatives, or limits of them: a function, its call, the same function
in mpmath, and the points. `CHOSEN` are points without a derivative, with weft's choice and the
reason; docs/derivatives.md shows them, and `python -m tests.special_points` writes its table anew.
A new function with such a point needs a row here; other functions are listed in `ELSEWHERE`.
test_special_points.py compares the points.
"""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import mpmath as mp

import weft.numpy as jnp
from weft import nn
from weft.scipy import special, stats

DOC = Path(__file__).parents[1] / "docs/derivatives.md"
MARK = "<!-- made by tests/special_points.py -->\n"
INF, NAN = float("inf"), float("nan")


class Row(NamedTuple):
    """A function of floats, the same in mpmath, and points; `side` is where limits are taken."""

    name: str
    fun: Callable
    exact: Callable
    points: list
    side: int = 1


class Choice(NamedTuple):
    """A function at a point, its first and second derivatives (None: not to rely on), and why."""

    name: str
    fun: Callable
    point: tuple
    first: list
    second: Any
    why: str


def vector(fun: Callable) -> Callable:
    """A function of a vector as one of its elements; of several results, 1, 2, 4 ... of each."""

    def call(*xs: Any) -> Any:
        y = fun(jnp.stack(xs))
        return y if y.ndim == 0 else y.ravel() @ (2.0 ** jnp.arange(y.size))

    return call


def matrix(fun: Callable) -> Callable:
    """Like `vector`, for a matrix of 2 rows and 2 columns."""
    return vector(lambda x: fun(x.reshape(2, 2)))


def weigh(ys: Any) -> Any:
    """Combine several results in mpmath as `vector` does."""
    return sum(2**i * y for i, y in enumerate(ys))


def exact_inverse(a: Any, b: Any, c: Any, d: Any) -> Any:
    return weigh(x / (a * d - b * c) for x in (d, -b, -c, a))


def phi(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def density(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def boxcox(x: Any, p: Any) -> Any:
    return mp.log(x) if p == 0 else (x**p - 1) / p


def dawson(x: Any) -> Any:
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def log_gamma_density(x: Any, a: Any) -> Any:
    return (a - 1) * mp.log(x) - x - mp.loggamma(a)


def softplus(x: Any) -> Any:
    return mp.log1p(mp.exp(x))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def norm_of(p: float) -> Callable:
    return lambda *xs: sum(abs(x) ** p for x in xs) ** (mp.mpf(1) / p)


def deviation(*xs: Any) -> Any:
    mean = sum(xs) / len(xs)
    return mp.sqrt(sum((x - mean) ** 2 for x in xs) / len(xs))


def standardize(*xs: Any) -> Any:
    mean = sum(xs) / len(xs)
    return weigh(x - mean for x in xs) / mp.sqrt(deviation(*xs) ** 2 + mp.mpf("1e-5"))


def softmax(*x: Any) -> Any:
    return weigh(mp.exp(v) for v in x) / sum(map(mp.exp, x))


def log_softmax(*x: Any) -> Any:
    return weigh(x) - (2 ** len(x) - 1) * mp.log(sum(map(mp.exp, x)))


def owens_t(h: Any, a: Any) -> Any:
    return mp.quad(lambda x: mp.exp(-h * h * (1 + x * x) / 2) / (1 + x * x), [0, a]) / (2 * mp.pi)


def unary(names: str, namespace: Any, points: list, **exact: Callable) -> list[Row]:
    """Rows of functions whose name in mpmath is theirs, or given."""
    rename = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh"}
    rename |= {"arctanh": "atanh", "sinc": "sincpi", "gammaln": "loggamma", "expi": "ei"}
    found = [(n, exact.get(n) or getattr(mp, rename.get(n, n))) for n in names.split()]
    prefix = namespace.__name__.removeprefix("weft.")
    return [
        Row(f"{prefix}.{n}", getattr(namespace, n), f, [(x,) for x in points]) for n, f in found
    ]


L = jnp.linalg
PAIRS = [(1, 2), (2, 1), (1, 1), (0.5, 2)]
TRIPLES = [(0, 0, 2), (0, 1, 2), (0, 0, 0), (1, 1, 1), (3, 4, 0)]
SQUARES = [(1, 0, 0, 1), (1, 1, 1, 1), (0, 0, 0, 0), (0, 1, 0, 0), (2, 0, 0, 1)]

EXISTING = [
    # --- numpy ---
    *unary("sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arctanh exp expm1 log1p sinc",
           jnp, [0, 0.5, -0.5]),
    *unary("exp2 square i0", jnp, [0, 1, -2], exp2=lambda x: 2**x, square=lambda x: x * x,
           i0=lambda x: mp.besseli(0, x)),
    Row("numpy.hypot", jnp.hypot, mp.hypot, [(3, 4), (0, 1), (1, 0), (1, 1), (-1, -1)]),
    Row("numpy.arctan2", jnp.arctan2, mp.atan2, [(0, 1), (1, 0), (1, 1), (-1, 0)]),
    Row("numpy.logaddexp", jnp.logaddexp, lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
        [(0, 0), (2, 2), (-1, 0), (0, 60)]),
    Row("numpy.logaddexp2", jnp.logaddexp2, lambda x, y: mp.log(2**x + 2**y, 2), [(0, 0), (2, 2)]),
    Row("numpy.power", jnp.power, lambda x, y: x**y, [(2, 0), (2, 1), (1, 0), (1, 1), (0, 3), (0,
        2.5)]),
    *[Row(f"numpy.power {p!r}", lambda x, p=p: jnp.power(x, p), lambda x, p=p: x**p,
          [(0,), (1,), (2,)])
      for p in (0, 1, 2, 3, 0.0, 1.0, 2.0, 3.0)],
    *[Row(f"numpy.power {p!r}", lambda x, p=p: jnp.power(x, p), lambda x, p=p: x**p, [(-1,), (-2,)])
      for p in (-1, 0, 2.0, 3.0)],
    Row("numpy.prod", vector(jnp.prod), lambda *x: mp.fprod(x), TRIPLES),
    Row("numpy.cumprod", vector(jnp.cumprod), lambda a, b, c: a + 2 * a * b + 4 * a * b * c,
        TRIPLES),
    Row("numpy.var", vector(jnp.var), lambda *x: deviation(*x) ** 2, TRIPLES),
    Row("numpy.std", vector(jnp.std), deviation, [(0, 0, 2), (0, 1, 2), (3, 4, 0)]),
    Row("numpy.nanprod", vector(jnp.nanprod), lambda *x: mp.fprod(x), TRIPLES),
    Row("numpy.nancumprod", vector(jnp.nancumprod), lambda a, b, c: a + 2 * a * b + 4 * a * b * c,
        TRIPLES),
    Row("numpy.nanvar", vector(jnp.nanvar), lambda *x: deviation(*x) ** 2, TRIPLES),
    Row("numpy.nanstd", vector(jnp.nanstd), deviation, [(0, 0, 2), (0, 1, 2), (3, 4, 0)]),
    Row("numpy.float_power", jnp.float_power, lambda x, y: x**y, [(2, 0), (1, 1), (0, 3)]),
    *[Row(f"numpy.linalg.norm {p}", vector(lambda x, p=p: L.norm(x, p)), norm_of(p),
          [(3, 4, 1), (1, 1, 1)])
      for p in (2, 3, 0.5)],
    Row("numpy.linalg.norm", vector(L.norm), norm_of(2), [(0, 0, 2), (3, 4, 0), (0, 1, 2)]),
    Row("numpy.linalg.det", matrix(L.det), lambda a, b, c, d: a * d - b * c, SQUARES),
    Row("numpy.linalg.inv", matrix(L.inv), exact_inverse, [(1, 0, 0, 1), (2, 0, 0, 1), (0, 1, 1,
        0)]),
    Row("numpy.linalg.pinv", matrix(L.pinv), exact_inverse, [(1, 0, 0, 1), (2, 0, 0, 1), (0, 1, 1,
        0)]),
    Row("numpy.linalg.matrix_power", matrix(lambda x: L.matrix_power(x, 2)),
        lambda a, b, c, d: weigh((a * a + b * c, b * (a + d), c * (a + d), b * c + d * d)),
        SQUARES),
    Row("numpy.linalg.solve", matrix(lambda x: L.solve(x, jnp.array([1.0, 2.0]))),
        lambda a, b, c, d: (d - 2 * b + 2 * (2 * a - c)) / (a * d - b * c),
        [(1, 0, 0, 1), (0, 1, 1, 0)]),
    Row("numpy.linalg.slogdet[1]", matrix(lambda x: L.slogdet(x)[1]),
        lambda a, b, c, d: mp.log(abs(a * d - b * c)), [(1, 0, 0, 1), (0, 1, 1, 0)]),
    # --- scipy.special ---
    Row("scipy.special.xlogy", special.xlogy, lambda x, y: x * mp.log(y),
        [(0, 1), (0, 2), (0, 0.5), (1, 1)]),
    Row("scipy.special.xlog1py", special.xlog1py, lambda x, y: x * mp.log1p(y),
        [(0, 0), (0, 1), (1, 0)]),
    Row("scipy.special.kl_div", special.kl_div, lambda p, q: p * mp.log(p / q) - p + q, PAIRS),
    Row("scipy.special.rel_entr", special.rel_entr, lambda p, q: p * mp.log(p / q), PAIRS),
    Row("scipy.special.boxcox 2", lambda p: special.boxcox(2.0, p), lambda p: boxcox(2, p),
        [(0,), (0.001,), (-0.2,), (1.2,), (1.6,)]),
    Row("scipy.special.boxcox", special.boxcox, boxcox, [(1, 0), (2, 0), (0.5, 0), (1, 0.5), (0,
        2), (0, 3)]),
    Row("scipy.special.boxcox1p", special.boxcox1p, lambda x, p: boxcox(1 + x, p),
        [(0, 0), (1, 0), (0, 0.5), (-1, 2), (-1, 3)]),
    Row("scipy.special.spence", special.spence, lambda x: mp.polylog(2, 1 - x),
        [(1,), (2,), (0.5,)]),
    *unary("gammaln gamma digamma", special, [1, 2, 0.5]),
    *unary("erf erfc erfinv dawsn expit", special, [0, 0.5], dawsn=dawson, expit=sigmoid),
    *unary("expi exp1", special, [1, 0.5], exp1=mp.e1),
    *unary("i0 i1", special, [0, 1], i0=lambda x: mp.besseli(0, x), i1=lambda x: mp.besseli(1, x)),
    *unary("ndtr log_ndtr", special, [0, -3, 2], ndtr=phi, log_ndtr=lambda x: mp.log(phi(x))),
    *unary("entr logit", special, [0.5, 0.25], entr=lambda x: -x * mp.log(x),
           logit=lambda x: mp.log(x / (1 - x))),
    Row("scipy.special.sici[0]", lambda x: special.sici(x)[0], mp.si, [(0,), (1,)]),
    Row("scipy.special.fresnel[0]", lambda x: special.fresnel(x)[0], mp.fresnels, [(0,), (1,)]),
    Row("scipy.special.fresnel[1]", lambda x: special.fresnel(x)[1], mp.fresnelc, [(0,), (1,)]),
    *[Row(f"scipy.special.gammainc {a}", lambda x, a=a: special.gammainc(a, x),
          lambda x, a=a: mp.gammainc(a, 0, x, regularized=True), [(0,), (1,), (3,)])
      for a in (1.0, 2.0, 3.0)],
    Row("scipy.special.gammaincc 3", lambda x: special.gammaincc(3.0, x),
        lambda x: mp.gammainc(3, x, mp.inf, regularized=True), [(0,), (1,)]),
    Row("scipy.special.expn 4", lambda x: special.expn(4, x), lambda x: mp.expint(4, x),
        [(0,), (1,)]),
    Row("scipy.special.hyp1f1 2 3", lambda x: special.hyp1f1(2.0, 3.0, x), lambda x: mp.hyp1f1(2,
        3, x),
        [(0,), (1,), (-1,)]),
    Row("scipy.special.beta", special.beta, mp.beta, [(1, 1), (2, 1), (0.5, 0.5)]),
    Row("scipy.special.logsumexp", vector(special.logsumexp), lambda *x: mp.log(sum(map(mp.exp,
        x))), TRIPLES),
    Row("scipy.special.logsumexp b",
        lambda a, b, c: special.logsumexp(jnp.stack([a, a + 1]), b=jnp.stack([b, c])),
        lambda a, b, c: mp.log(b * mp.exp(a) + c * mp.exp(a + 1)),
        [(0, 1, 0), (0, 0, 1), (0, 1, 1)]),
    Row("scipy.special.betainc 2 3", lambda x: special.betainc(2.0, 3.0, x),
        lambda x: x * x * (6 - 8 * x + 3 * x * x), [(0,), (1,), (0.5,)]),
    Row("scipy.special.hyp2f1 .5 2 3", lambda x: special.hyp2f1(0.5, 2.0, 3.0, x),
        lambda x: mp.hyp2f1(0.5, 2, 3, x), [(0,), (0.5,), (-1,)]),
    Row("scipy.special.owens_t", special.owens_t, owens_t, [(0, 1), (0, 0), (1, 0), (1, 1)]),
    Row("scipy.special.comb", special.comb, mp.binomial, [(3, 1), (2, 1), (2.5, 0.5)]),
    Row("scipy.special.comb 0", special.comb, lambda n, k: 0 * n, [(3, 4), (3, -1), (-1, 1)]),
    Row("scipy.special.poch", special.poch, mp.rf,
        [(1, 0), (1, 1), (2, 1), (0.5, 0.5), (0, 1), (0, 2), (-1, 3)]),
    Row("scipy.special.polygamma 1", lambda x: special.polygamma(1, x), lambda x: mp.psi(1, x),
        [(1,), (2,)]),
    Row("scipy.special.bessel_jn 2", lambda x: special.bessel_jn(x, v=2)[2],
        lambda x: mp.besselj(2, x), [(0,), (1,)]),
    Row("scipy.special.softmax", vector(special.softmax), softmax, TRIPLES),
    Row("scipy.special.log_softmax", vector(special.log_softmax), log_softmax, TRIPLES),
    # --- scipy.stats ---
    Row("scipy.stats.norm.cdf", stats.norm.cdf, phi, [(0,), (-2,)]),
    Row("scipy.stats.norm.logpdf", stats.norm.logpdf, lambda x: mp.log(density(x)), [(0,), (1,)]),
    Row("scipy.stats.gennorm.logpdf", stats.gennorm.logpdf,
        lambda x, b: mp.log(b / 2) - mp.loggamma(1 / b) - abs(x) ** b, [(0, 2), (0, 3), (1, 1)]),
    Row("scipy.stats.gennorm.cdf", lambda x: stats.gennorm.cdf(x, 2.0),
        lambda x: phi(x * mp.sqrt(2)), [(0,), (1,), (-1,)]),
    Row("scipy.stats.logistic.cdf", stats.logistic.cdf, sigmoid, [(0,), (1,)]),
    Row("scipy.stats.cauchy.cdf", stats.cauchy.cdf, lambda x: mp.atan(x) / mp.pi + 0.5,
        [(0,), (1,)]),
    Row("scipy.stats.gamma.logpdf", stats.gamma.logpdf, log_gamma_density,
        [(1, 1), (2, 1), (1, 2.5)]),
    Row("scipy.stats.poisson.cdf 2", lambda m: stats.poisson.cdf(2.0, m),
        lambda m: mp.exp(-m) * (1 + m + m * m / 2), [(0,), (1,)]),
    *[Row(f"scipy.stats.geom.pmf {k}", lambda p, k=k: stats.geom.pmf(k, p),
          lambda p, k=k: p * (1 - p) ** (k - 1), [(1,), (0.5,), (0.25,)]) for k in (1, 2, 3)],
    *[Row(f"scipy.stats.bernoulli.pmf {k}", lambda p, k=k: stats.bernoulli.pmf(k, p),
          lambda p, k=k: p if k else 1 - p, [(1,), (0,)]) for k in (0, 1)],
    Row("scipy.stats.binom.pmf 0", lambda p: stats.binom.pmf(0, 5, p), lambda p: (1 - p) ** 5,
        [(0,), (0.5,)]),
    Row("scipy.stats.poisson.pmf 0", lambda m: stats.poisson.pmf(0, m), lambda m: mp.exp(-m),
        [(0,), (1,)]),
    Row("scipy.stats.nbinom.pmf 0", lambda p: stats.nbinom.pmf(0, 2, p), lambda p: p * p,
        [(1,), (0.5,)]),
    # edges of the support
    Row("scipy.stats.poisson.pmf 2", lambda m: stats.poisson.pmf(2, m),
        lambda m: m * m * mp.exp(-m) / 2, [(0,)]),
    Row("scipy.stats.poisson.pmf 1", lambda m: stats.poisson.pmf(1, m), lambda m: m * mp.exp(-m),
        [(0,)]),
    Row("scipy.stats.binom.pmf 1", lambda p: stats.binom.pmf(1, 5, p),
        lambda p: 5 * p * (1 - p) ** 4, [(0,), (1,)]),
    Row("scipy.stats.binom.pmf 4", lambda p: stats.binom.pmf(4, 5, p),
        lambda p: 5 * p**4 * (1 - p), [(0,), (1,)]),
    Row("scipy.stats.nbinom.pmf 1", lambda p: stats.nbinom.pmf(1, 2, p),
        lambda p: 2 * p * p * (1 - p), [(1,)]),
    *[Row(f"scipy.stats.multinomial.pmf {k}",
          lambda *p, k=k: stats.multinomial.pmf(jnp.array(k), sum(k), jnp.stack(p)),
          lambda *p, k=k: mp.factorial(sum(k)) * mp.fprod(q**n / mp.factorial(n)
                                                          for q, n in zip(p, k, strict=True)),
          [(0, 0.25, 0.75), (0, 0, 1), (0.5, 0, 0.5)]) for k in ((0, 1, 2), (1, 1, 2), (2, 0, 1))],
    *[Row(f"scipy.stats.dirichlet.pdf {a}",
          lambda *x, a=a: stats.dirichlet.pdf(jnp.stack(x), jnp.array(a)),
          lambda *x, a=a: mp.gamma(sum(a)) * mp.fprod(y ** (b - 1) / mp.gamma(b)
                                                      for y, b in zip(x, a, strict=True)),
          [(0, 0.25, 0.75), (0.5, 0, 0.5)]) for a in ((1.0, 2.0, 3.0), (2.0, 1.0, 4.0))],
    Row("scipy.stats.dirichlet.logpdf", lambda *x: stats.dirichlet.logpdf(jnp.stack(x),
        jnp.array([1.0, 2.0])), lambda x, y: mp.log(2 * y), [(0, 1), (0.25, 0.75)]),
    *[Row(f"scipy.stats.gamma.{n} {a}", lambda x, a=a, n=n: getattr(stats.gamma, n)(x, a),
          lambda x, a=a, f=f: f(mp.gammainc(a, 0, x, regularized=True)), [(0,), (1,)])
      for a in (1.0, 2.0) for n, f in (("cdf", lambda p: p), ("sf", lambda p: 1 - p),
                                       ("logsf", lambda p: mp.log(1 - p)))],
    Row("scipy.stats.chi2.cdf 2", lambda x: stats.chi2.cdf(x, 2.0), lambda x: 1 - mp.exp(-x / 2),
        [(0,), (1,)]),
    *[Row(f"scipy.stats.beta.{n} {a} {b}",
          lambda x, a=a, b=b, n=n: getattr(stats.beta, n)(x, a, b),
          lambda x, a=a, b=b, f=f: f(1 - (1 - x) ** b if a == 1 else x**a), points)
      for n, a, b, f, points in (
          ("cdf", 1.0, 3.0, lambda p: p, [(0,), (1,)]),
          ("sf", 3.0, 1.0, lambda p: 1 - p, [(0,), (1,)]),
          ("logsf", 1.0, 3.0, lambda p: mp.log(1 - p), [(0,)]),
          ("logcdf", 3.0, 1.0, mp.log, [(1,)]))],
    *[Row(f"scipy.stats.beta.pdf {a} {b}", lambda x, a=a, b=b: stats.beta.pdf(x, a, b),
          lambda x, a=a, b=b: x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b), [(0,), (1,)])
      for a, b in ((2, 2), (1, 3), (3, 1))],
    *[Row(f"scipy.stats.truncnorm.{n} {a} {b}",
          lambda x, a=a, b=b, n=n: getattr(stats.truncnorm, n)(x, a, b),
          lambda x, a=a, b=b, f=f: f((phi(x) - phi(a)) / (phi(b) - phi(a))), points)
      for n, f, points in (
          ("cdf", lambda p: p, [(-1,), (2,), (0.5,)]), ("sf", lambda p: 1 - p, [(-1,), (2,)]),
          ("logcdf", mp.log, [(2,)]), ("logsf", lambda p: mp.log(1 - p), [(-1,)]))
      for a, b in ((-1, 2),)],
    Row("scipy.stats.truncnorm.cdf 3 5", lambda x: stats.truncnorm.cdf(x, 3.0, 5.0),
        lambda x: (phi(x) - phi(3)) / (phi(5) - phi(3)), [(3,), (5,)]),
    Row("scipy.stats.t.logpdf", lambda x: stats.t.logpdf(x, 2.0),
        lambda x: -1.5 * mp.log(1 + x * x / 2), [(0,), (1,)]),
    Row("scipy.stats.vonmises.logpdf", lambda x: stats.vonmises.logpdf(x, 1.0), mp.cos,
        [(0,), (1,)]),
    Row("scipy.stats.multivariate_normal.logpdf",
        lambda x: stats.multivariate_normal.logpdf(x, 0.0, 1.0), lambda x: -x * x / 2,
        [(0,), (1,)]),
    # --- nn ---
    *unary("softplus log_sigmoid sigmoid silu mish tanh", nn, [0, 1, -3], softplus=softplus,
           log_sigmoid=lambda x: -softplus(-x), sigmoid=sigmoid, silu=lambda x: x * sigmoid(x),
           mish=lambda x: x * mp.tanh(softplus(x))),
    Row("nn.gelu", lambda x: nn.gelu(x, False), lambda x: x * phi(x), [(0,), (1,), (-2,)]),
    Row("nn.squareplus", nn.squareplus, lambda x: (x + mp.sqrt(x * x + 4)) / 2, [(0,), (1,)]),
    Row("nn.log1mexp", nn.log1mexp, lambda x: mp.log1p(-mp.exp(-x)), [(0.6931472,), (1,), (0.1,)]),
    Row("nn.standardize", vector(nn.standardize), standardize, [(0, 0, 2), (1, 1, 1)]),
    Row("nn.logmeanexp", vector(nn.logmeanexp), lambda *x: mp.log(sum(map(mp.exp, x))), TRIPLES),
    Row("nn.glu", vector(nn.glu), lambda x, y: x * sigmoid(y), [(0, 0), (1, 1)]),
    Row("nn.softmax", vector(nn.softmax),
        softmax, TRIPLES),
    Row("nn.log_softmax", vector(nn.log_softmax),
        log_softmax, TRIPLES),
]  # fmt: skip

ZERO, ZEROS = [[0]], [[0, 0], [0, 0]]
NONE3 = [[0] * 3] * 3
CORNER = "a corner: "
EDGE = "the edge of the support: from within"

CHOSEN = [
    Choice("numpy.abs", jnp.abs, (0,), [1], ZERO, CORNER + "the derivative from the right"),
    Choice("numpy.sign", jnp.sign, (0,), [0], ZERO, "a jump: that of its pieces"),
    Choice("numpy.sqrt", jnp.sqrt, (0,), [INF], None, "infinite from the right"),
    Choice("numpy.cbrt", jnp.cbrt, (0,), [INF], None, "infinite"),
    Choice("numpy.maximum", jnp.maximum, (1, 1), [0.5, 0.5], ZEROS, "a tie: a half for each"),
    Choice("numpy.minimum", jnp.minimum, (1, 1), [0.5, 0.5], ZEROS, "a tie: a half for each"),
    Choice("numpy.clip", lambda x: jnp.clip(x, -1.0, 1.0), (1,), [0.5], ZERO,
           "a tie of x with the bound"),
    Choice("numpy.hypot", jnp.hypot, (0, 0), [0.5, 0.5], ZEROS, "a cone: as that of max(|x|, |y|)"),
    Choice("numpy.fmax", jnp.fmax, (1, 1), [0, 1], ZEROS, "a tie: the second operand"),
    Choice("numpy.fmin", jnp.fmin, (1, 1), [0, 1], ZEROS, "a tie: the second operand"),
    Choice("numpy.heaviside", jnp.heaviside, (0, 1), [0, 1], ZEROS, "a jump: that of its pieces"),
    Choice("numpy.copysign", jnp.copysign, (0, 1), [1, 0], ZEROS, "as of a positive operand"),
    Choice("numpy.remainder", jnp.remainder, (4, 2), [1, -2], ZEROS, "a jump: from the right"),
    Choice("numpy.fmod", jnp.fmod, (4, 2), [1, -2], ZEROS, "a jump: from the right"),
    Choice("numpy.divmod[1]", lambda x, y: jnp.divmod(x, y)[1], (4, 2), [1, -2], ZEROS,
           "a jump: from the right"),
    Choice("numpy.modf[0]", lambda x: jnp.modf(x)[0], (2,), [1], ZERO, "a jump: from the right"),
    Choice("numpy.frexp[0]", lambda x: jnp.frexp(x)[0], (2,), [0.25], ZERO,
           "a jump: from the right"),
    Choice("numpy.angle", jnp.angle, (0,), [NAN], None, "as arctan2(0, 0)"),
    Choice("numpy.nan_to_num", jnp.nan_to_num, (INF,), [0], ZERO, "what is replaced is constant"),
    Choice("numpy.interp", lambda x: jnp.interp(x, jnp.arange(3.0), jnp.arange(3.0) ** 2), (1,),
           [3], ZERO, CORNER + "the derivative from the right"),
    Choice("numpy.unwrap", vector(jnp.unwrap), (0, 4, 0), [1, 2, 4], NONE3,
           "that of its pieces"),
    Choice("numpy.arctan2", jnp.arctan2, (0, 0), [NAN, NAN], None, "every angle is a limit"),
    Choice("numpy.power", jnp.power, (0, 0), [0, 0], ZEROS,
           "not continuous: that in x along y = 0; that in y is 0 where x is"),
    Choice("numpy.power", jnp.power, (0, 1), [1, 0], ZEROS,
           "the mixed derivative is -inf; where x is 0, derivatives in y are 0"),
    Choice("numpy.logaddexp", jnp.logaddexp, (-INF, -INF), [0.5, 0.5], ZEROS,
           "any two that add up to 1 are limits: the symmetric ones"),
    Choice("numpy.max", vector(jnp.max), (1, 1, 0), [0.5, 0.5, 0], NONE3, "a tie: equal shares"),
    Choice("numpy.min", vector(jnp.min), (1, 1, 1), [1 / 3] * 3, NONE3, "a tie: equal shares"),
    Choice("numpy.sort", vector(jnp.sort), (1, 1, 0), [2, 4, 1], NONE3,
           "a tie: the order of the elements, as the sort is stable"),
    Choice("numpy.median", vector(jnp.median), (1, 1, 0), [1, 0, 0], NONE3, "a tie: as sort"),
    Choice("numpy.nanmax", vector(jnp.nanmax), (1, 1, 0), [0.5, 0.5, 0], NONE3, "as max"),
    Choice("numpy.nanmin", vector(jnp.nanmin), (1, 1, 1), [1 / 3] * 3, NONE3, "as min"),
    Choice("numpy.minmax", vector(lambda x: jnp.stack(jnp.minmax(x))), (1, 1, 0), [1, 1, 1], NONE3,
           "as min and max"),
    Choice("numpy.sort_complex", vector(lambda x: jnp.sort_complex(x).real), (1, 1, 0), [2, 4, 1],
           NONE3, "as sort"),
    Choice("numpy.partition", vector(lambda x: jnp.partition(x, 1)), (1, 1, 0), [2, 4, 1], NONE3,
           "as sort"),
    Choice("numpy.top_k", vector(lambda x: jnp.top_k(x, 2)[0]), (1, 1, 0), [1, 2, 0], NONE3,
           "a tie: the order of the elements"),
    Choice("numpy.unique", vector(lambda x: jnp.unique(x, size=3)), (1, 1, 0), [2, 0, 5], NONE3,
           "a tie: the first of the equal elements"),
    Choice("numpy.quantile", vector(lambda x: jnp.quantile(x, 0.5)), (1, 1, 0), [1, 0, 0], NONE3,
           "a tie: as sort"),
    Choice("numpy.percentile", vector(lambda x: jnp.percentile(x, 50.0)), (1, 1, 0), [1, 0, 0],
           NONE3, "a tie: as sort"),
    Choice("numpy.nanmedian", vector(jnp.nanmedian), (1, 1, 0), [1, 0, 0], NONE3, "as median"),
    Choice("numpy.nanquantile", vector(lambda x: jnp.nanquantile(x, 0.5)), (1, 1, 0), [1, 0, 0],
           NONE3, "as quantile"),
    Choice("numpy.nanpercentile", vector(lambda x: jnp.nanpercentile(x, 50.0)), (1, 1, 0),
           [1, 0, 0], NONE3, "as percentile"),
    Choice("numpy.corrcoef", matrix(jnp.corrcoef), (1, 1, 1, 1), [NAN] * 4, None,
           "a row of equal values has no correlation"),
    Choice("numpy.nanstd", vector(jnp.nanstd), (1, 1, 1), [NAN] * 3, None, "a cone"),
    Choice("numpy.std", vector(jnp.std), (1, 1, 1), [NAN] * 3, None, "a cone"),
    Choice("numpy.linalg.norm", vector(L.norm), (0, 0, 0), [NAN] * 3, None, "a cone"),
    Choice("numpy.linalg.norm", vector(lambda x: L.norm(x, jnp.inf)), (1, 1, 0), [0.5, 0.5, 0],
           NONE3, "of order inf, a tie: equal shares"),
    Choice("numpy.linalg.vector_norm", vector(L.vector_norm), (0, 0, 0), [NAN] * 3, None,
           "a cone"),
    Choice("numpy.linalg.matrix_norm", matrix(L.matrix_norm), (0, 0, 0, 0), [NAN] * 4, None,
           "a cone"),
    Choice("numpy.linalg.cond", matrix(L.cond), (1, 0, 0, 1), [1, 0, 0, -1], None, "as svdvals"),
    Choice("numpy.linalg.eigvals", matrix(lambda x: L.eigvals(x).real), (1, 0, 0, 1),
           [1, 0, 0, 2], None, "as eigvalsh"),
    Choice("numpy.linalg.cholesky", matrix(L.cholesky), (0, 0, 0, 0), [NAN] * 4, None,
           "not positive definite"),
    Choice("numpy.linalg.eigh", matrix(lambda x: L.eigh(x)[1]), (1, 0, 0, 1), [0] * 4, None,
           "vectors of equal values do not turn into each other"),
    Choice("numpy.linalg.eigvalsh", matrix(L.eigvalsh), (1, 0, 0, 1), [1, 0, 0, 2], None,
           "equal values: as if they were told apart by their vectors; second derivatives lack"
           " what their space adds"),
    Choice("numpy.linalg.svd", matrix(lambda x: L.svd(x)[0]), (1, 0, 0, 1), [0, -0.5, 0.5, 0], None,
           "vectors of equal values turn as U V^H demands"),
    Choice("numpy.linalg.svdvals", matrix(L.svdvals), (1, 0, 0, 1), [1, 0, 0, 2], None,
           "as eigvalsh"),
    Choice("scipy.special.xlogy", special.xlogy, (0, 0), [-INF, 0], None,
           "infinite in x; in y the limit along x = 0"),
    Choice("scipy.special.kl_div", special.kl_div, (0, 1), [-INF, 1], None, "infinite in p"),
    Choice("scipy.special.kl_div", special.kl_div, (0, 0), [0, 0], ZEROS, "every pair is a limit"),
    Choice("scipy.special.rel_entr", special.rel_entr, (0, 1), [0, 0], ZEROS,
           "-inf in p: 0, so that what has no probability weighs nothing"),
    Choice("scipy.special.kl_div", special.kl_div, (1, -1), [0, 0], ZEROS, "out of its domain"),
    Choice("scipy.special.i0e", special.i0e, (0,), [0], None, CORNER + "the mean of both sides"),
    Choice("scipy.special.comb", special.comb, (2, 0), [0, 1.5], None,
           "a jump in k: the derivative from the right"),
    Choice("scipy.special.poch", special.poch, (-2, 1), [1, NAN], None,
           "gamma has a pole at both of its arguments"),
    Choice("scipy.special.i1e", special.i1e, (0,), [0.5], ZERO,
           "the second derivative jumps: the mean of both sides"),
    Choice("scipy.special.factorial", special.factorial, (-2,), [0], ZERO, "0 where it is 0"),
    Choice("scipy.stats.sem", vector(stats.sem), (1, 1, 1), [NAN] * 3, None, "a cone, as std"),
    Choice("scipy.stats.uniform.pdf", stats.uniform.pdf, (0,), [0], ZERO, EDGE),
    Choice("scipy.stats.uniform.cdf", stats.uniform.cdf, (0,), [1], ZERO, EDGE),
    Choice("scipy.stats.expon.pdf", stats.expon.pdf, (0,), [-1], [[1]], EDGE),
    Choice("scipy.stats.expon.cdf", stats.expon.cdf, (0,), [1], [[-1]], EDGE),
    Choice("scipy.stats.pareto.pdf", lambda x: stats.pareto.pdf(x, 2.0), (1,), [-6], [[24]], EDGE),
    Choice("scipy.stats.gamma.pdf", lambda x: stats.gamma.pdf(x, 1.0), (0,), [-1], [[1]], EDGE),
    Choice("scipy.stats.chi2.pdf", lambda x: stats.chi2.pdf(x, 2.0), (0,), [-0.25], [[0.125]],
           EDGE),
    Choice("scipy.stats.truncnorm.pdf", lambda x: stats.truncnorm.pdf(x, -1.0, 1.0), (-1,),
           [0.3544377], ZERO, EDGE),
    Choice("scipy.stats.laplace.pdf", stats.laplace.pdf, (0,), [-0.5], None,
           CORNER + "the derivative from the right"),
    Choice("scipy.stats.gennorm.logpdf", stats.gennorm.logpdf, (0, 1), [0, 0.4227843], None,
           CORNER + "0 in x"),
    Choice("nn.relu", nn.relu, (0,), [0], ZERO, CORNER + "the derivative from the left"),
    Choice("nn.relu6", nn.relu6, (0,), [0], ZERO, CORNER + "the derivative from the left"),
    Choice("nn.hard_sigmoid", nn.hard_sigmoid, (3,), [0], ZERO,
           CORNER + "the derivative from the right"),
    Choice("nn.hard_silu", nn.hard_silu, (3,), [1], ZERO, CORNER + "the derivative from the right"),
    Choice("nn.sparse_sigmoid", nn.sparse_sigmoid, (1,), [0.25], ZERO,
           CORNER + "the mean of both sides"),
    Choice("nn.squareplus", lambda x: nn.squareplus(x, 0.0), (0,), [NAN], None,
           "for b = 0, where it is relu"),
    Choice("nn.relu6", nn.relu6, (6,), [0], ZERO, CORNER + "the derivative from the right"),
    Choice("nn.leaky_relu", nn.leaky_relu, (0,), [1], ZERO,
           CORNER + "the derivative from the right"),
    Choice("nn.elu", nn.elu, (0,), [1], [[1]], "the second derivative jumps: that from the left"),
    Choice("nn.celu", nn.celu, (0,), [1], [[1]], "the second derivative jumps: that from the left"),
    Choice("nn.selu", nn.selu, (0,), [1.758099], [[1.758099]], CORNER + "those from the left"),
    Choice("nn.hard_tanh", nn.hard_tanh, (1,), [1], ZERO, CORNER + "the derivative from within"),
    Choice("nn.sparse_plus", nn.sparse_plus, (1,), [1], ZERO, "the second derivative jumps"),
    Choice("nn.soft_sign", nn.soft_sign, (0,), [1], [[-2]], "the second derivative jumps"),
]  # fmt: skip


# What needs no row: public functions by reason and namespace, and `module.a,b` for methods.
ELSEWHERE = {
    "gives or takes no floats, or is no function of arrays": {
        "numpy": """all allclose any argmax argmin argpartition argsort argwhere array_equal
            array_equiv array_repr array_str bartlett bitwise_and bitwise_count bitwise_invert
            bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor blackman broadcast_shapes
            can_cast count_nonzero diag_indices diag_indices_from digitize einsum_path empty
            empty_like equal eye flatnonzero from_dlpack frombuffer fromfile fromfunction fromiter
            frompyfunc fromstring gcd get_printoptions greater greater_equal hamming hanning
            identity indices isclose iscomplex iscomplexobj isdtype isfinite isin isinf isnan
            isneginf isposinf isreal isrealobj isscalar issubdtype iterable ix_ lcm less less_equal
            lexsort load logical_and logical_not logical_or logical_xor mask_indices nanargmax
            nanargmin ndim nonzero not_equal ones ones_like packbits printoptions promote_types
            ravel_multi_index result_type save savez searchsorted set_printoptions shape signbit
            size tri tril_indices tril_indices_from triu_indices triu_indices_from unpackbits
            unravel_index zeros zeros_like""",
        "numpy.fft": "fftfreq rfftfreq",
        "numpy.linalg": "matrix_rank",
        "scipy.special": "bernoulli lpmn lpmn_values",
        "scipy.stats": "rankdata bernoulli.ppf",
        "nn": "one_hot get_scaled_dot_general_config",
    },
    "piecewise constant: derivatives are 0": {
        "numpy": """ceil floor floor_divide histogram histogram2d histogram_bin_edges histogramdd
            nextafter rint round spacing trunc""",
        "scipy.special": "gammasgn",
        "scipy.stats": "bernoulli.cdf",
    },
    "linear, or products and sums of what it is given": {
        "numpy": """add average bincount conj convolve correlate cov cross cumsum cumulative_prod
            cumulative_sum deg2rad diff dot ediff1d einsum gradient inner kron linspace matmul
            matvec mean multiply nancumsum nanmean nansum negative outer piecewise poly polyadd
            polyder polyint polymul polysub polyval positive rad2deg subtract sum tensordot trace
            trapezoid vander vdot vecdot vecmat""",
        "numpy.fft": """fft fft2 fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2
            irfftn rfft rfft2 rfftn""",
        "numpy.linalg": "cross multi_dot outer trace",
        "scipy.stats": "uniform.ppf",
        "nn": "scaled_dot_general scaled_matmul",
    },
    "moves, chooses or makes elements": {
        "numpy": """append apply_along_axis apply_over_axes arange array array_split asarray astype
            atleast_1d atleast_2d atleast_3d block broadcast_arrays broadcast_to choose
            column_stack compress concat concatenate copy delete diag diagflat diagonal dsplit
            dstack expand_dims extract fill_diagonal flip fliplr flipud full full_like hsplit
            hstack imag insert intersect1d matrix_transpose meshgrid moveaxis pad permute_dims
            place ptp put put_along_axis ravel real repeat reshape resize roll rollaxis rot90
            select setdiff1d setxor1d split squeeze stack swapaxes take take_along_axis tile
            transpose tril trim_zeros triu union1d unique_all unique_counts unique_inverse
            unique_values unstack vectorize vsplit vstack where""",
        "numpy.linalg": "diagonal",
        "scipy.stats": "mode",
        "nn": "identity",
    },
    "smooth wherever its value is finite": {
        "numpy": """arccosh divide fabs geomspace kaiser ldexp log log10 log2 logspace polydiv
            polyfit reciprocal roots""",
        "numpy.linalg": "eig lstsq qr tensorinv tensorsolve",
        "scipy.special": """betaln erfcinv erfcx loggamma multigammaln ndtri sph_harm_y
            wofz zeta""",
        "scipy.stats": """bernoulli.logpmf beta.logpdf betabinom.logpmf,pmf
            binom.logpmf cauchy.isf,logcdf,logpdf,logsf,pdf,ppf,sf chi2.logcdf,logpdf,logsf,sf
            expon.logcdf,logpdf,logsf,ppf,sf gamma.logcdf
            gennorm.pdf geom.logpmf gumbel_l.cdf,logcdf,logpdf,logsf,pdf,ppf,sf
            gumbel_r.cdf,logcdf,logpdf,logsf,pdf,ppf,sf laplace.cdf,logpdf
            logistic.isf,logpdf,pdf,ppf,sf multinomial.logpmf multivariate_normal.pdf
            nbinom.logpmf norm.isf,logcdf,logsf,pdf,ppf,sf pareto.cdf,logcdf,logpdf,logsf,ppf,sf
            poisson.entropy,logpmf t.pdf truncnorm.logpdf uniform.logpdf
            vonmises.pdf wrapcauchy.logpdf,pdf""",
        "nn": "dot_product_attention",
    },
}


def find_public() -> dict[str, Callable]:
    """The public functions that need a row, or a place in ELSEWHERE."""
    spaces = {"numpy": jnp, "numpy.linalg": L, "numpy.fft": jnp.fft, "nn": nn}
    spaces |= {"scipy.special": special, "scipy.stats": stats}
    for name in stats.__all__:
        if isinstance(getattr(stats, name), ModuleType):
            spaces[f"scipy.stats.{name}"] = getattr(stats, name)
    found = {f"{s}.{n}": getattr(module, n) for s, module in spaces.items() for n in module.__all__}
    return {
        n: getattr(x, "alias_of", x)
        for n, x in found.items()
        if callable(x) and not isinstance(x, type)
    }


def find_placed() -> list[str]:
    """The names of functions that have a row, or a place in ELSEWHERE."""
    names = [row.name.split()[0].split("[")[0] for row in [*EXISTING, *CHOSEN]]
    for spaces in ELSEWHERE.values():
        for space, listed in spaces.items():
            for entry in listed.split():
                *module, methods = f"{space}.{entry}".split(".")
                names += [".".join([*module, m]) for m in methods.split(",")]
    return names


def limits(row: Row, point: tuple) -> tuple:
    """First and second derivatives of `row.exact` next to a point, by differences of 80 digits."""
    n, step = len(point), mp.mpf(10) ** -14
    units = [[step * (i == j) for j in range(n)] for i in range(n)]

    def value(*moves: list) -> Any:
        at = (x + sum(m) for x, *m in zip(start, *moves, strict=True))
        return mp.re(row.exact(*at))

    def mixed(u: list, v: list) -> Any:
        back = lambda w: [-x for x in w]
        return (value(u, v) - value(u, back(v)) - value(back(u), v) + value(back(u), back(v))) / 4

    with mp.workdps(80):
        start = [mp.mpf(x) + row.side * 10 * step for x in point]
        zero = [mp.mpf(0)] * n
        first = [(value(u, zero) - value([-x for x in u], zero)) / (2 * step) for u in units]
        second = [[mixed(u, v) / step**2 for v in units] for u in units]
    return [float(x) for x in first], [[float(x) for x in r] for r in second]


def show(x: Any) -> str:
    """A derivative as the documentation shows it."""
    if isinstance(x, list):
        return "[" + ", ".join(map(show, x)) + "]"
    return "" if x is None else f"{x:.4g}"


def make_table() -> str:
    """The table of the documentation."""
    lines = ["| function | at | first | second | |", "|---|---|---|---|---|"]
    for c in CHOSEN:
        at = ", ".join(f"{x:g}" for x in c.point)
        second = "none to rely on" if c.second is None else show(c.second)
        lines.append(f"| `{c.name}` | {at} | {show(c.first)} | {second} | {c.why} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = DOC.read_text()
    DOC.write_text(text[: text.index(MARK) + len(MARK)] + make_table())
