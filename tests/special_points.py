"""Points at which derivatives are easily wrong: removable singularities, branches, ties and edges.

`EXISTING` are points with derivatives, or limits of them: a function, how it is called, the same
in mpmath, and the points. `CHOSEN` are points where there is none, what there is instead, and why;
docs/derivatives.md shows them; `python -m tests.special_points` writes its table anew. A new
function with such a point has a row here; test_special_points.py compares.
"""

from collections.abc import Callable
from pathlib import Path
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
    """As `vector`, of a matrix of 2 rows and 2 columns."""
    return vector(lambda x: fun(x.reshape(2, 2)))


def weigh(ys: Any) -> Any:
    """What `vector` makes of several results, in mpmath."""
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


def unary(names: str, namespace: Any, points: list, **exact: Callable) -> list[Row]:
    """Rows of functions whose name in mpmath is theirs, or given."""
    rename = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh"}
    rename |= {"arctanh": "atanh", "sinc": "sincpi", "gammaln": "loggamma", "expi": "ei"}
    found = [(n, exact.get(n) or getattr(mp, rename.get(n, n))) for n in names.split()]
    return [Row(n, getattr(namespace, n), f, [(x,) for x in points]) for n, f in found]


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
    Row("hypot", jnp.hypot, mp.hypot, [(3, 4), (0, 1), (1, 0), (1, 1), (-1, -1)]),
    Row("arctan2", jnp.arctan2, mp.atan2, [(0, 1), (1, 0), (1, 1), (-1, 0)]),
    Row("logaddexp", jnp.logaddexp, lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
        [(0, 0), (2, 2), (-1, 0), (0, 60)]),
    Row("logaddexp2", jnp.logaddexp2, lambda x, y: mp.log(2**x + 2**y, 2), [(0, 0), (2, 2)]),
    Row("power", jnp.power, lambda x, y: x**y, [(2, 0), (2, 1), (1, 0), (1, 1), (0, 3), (0, 2.5)]),
    *[Row(f"power {p!r}", lambda x, p=p: jnp.power(x, p), lambda x, p=p: x**p, [(0,), (1,), (2,)])
      for p in (0, 1, 2, 3, 0.0, 1.0, 2.0, 3.0)],
    *[Row(f"power {p!r}", lambda x, p=p: jnp.power(x, p), lambda x, p=p: x**p, [(-1,), (-2,)])
      for p in (-1, 0, 2.0, 3.0)],
    Row("prod", vector(jnp.prod), lambda *x: mp.fprod(x), TRIPLES),
    Row("cumprod", vector(jnp.cumprod), lambda a, b, c: a + 2 * a * b + 4 * a * b * c, TRIPLES),
    Row("var", vector(jnp.var), lambda *x: deviation(*x) ** 2, TRIPLES),
    Row("std", vector(jnp.std), deviation, [(0, 0, 2), (0, 1, 2), (3, 4, 0)]),
    *[Row(f"norm {p}", vector(lambda x, p=p: L.norm(x, p)), norm_of(p), [(3, 4, 1), (1, 1, 1)])
      for p in (2, 3, 0.5)],
    Row("norm", vector(L.norm), norm_of(2), [(0, 0, 2), (3, 4, 0), (0, 1, 2)]),
    Row("det", matrix(L.det), lambda a, b, c, d: a * d - b * c, SQUARES),
    Row("inv", matrix(L.inv), exact_inverse, [(1, 0, 0, 1), (2, 0, 0, 1), (0, 1, 1, 0)]),
    Row("pinv", matrix(L.pinv), exact_inverse, [(1, 0, 0, 1), (2, 0, 0, 1), (0, 1, 1, 0)]),
    Row("matrix_power", matrix(lambda x: L.matrix_power(x, 2)),
        lambda a, b, c, d: weigh((a * a + b * c, b * (a + d), c * (a + d), b * c + d * d)),
        SQUARES),
    # --- scipy.special ---
    Row("xlogy", special.xlogy, lambda x, y: x * mp.log(y), [(0, 1), (0, 2), (0, 0.5), (1, 1)]),
    Row("xlog1py", special.xlog1py, lambda x, y: x * mp.log1p(y), [(0, 0), (0, 1), (1, 0)]),
    Row("kl_div", special.kl_div, lambda p, q: p * mp.log(p / q) - p + q, PAIRS),
    Row("rel_entr", special.rel_entr, lambda p, q: p * mp.log(p / q), PAIRS),
    Row("boxcox", special.boxcox, boxcox, [(1, 0), (2, 0), (0.5, 0), (1, 0.5), (0, 2), (0, 3)]),
    Row("boxcox1p", special.boxcox1p, lambda x, p: boxcox(1 + x, p),
        [(0, 0), (1, 0), (0, 0.5), (-1, 2), (-1, 3)]),
    Row("spence", special.spence, lambda x: mp.polylog(2, 1 - x), [(1,), (2,), (0.5,)]),
    *unary("gammaln gamma digamma", special, [1, 2, 0.5]),
    *unary("erf erfc erfinv dawsn expit", special, [0, 0.5], dawsn=dawson, expit=sigmoid),
    *unary("expi exp1", special, [1, 0.5], exp1=mp.e1),
    *unary("i0 i1", special, [0, 1], i0=lambda x: mp.besseli(0, x), i1=lambda x: mp.besseli(1, x)),
    *unary("ndtr log_ndtr", special, [0, -3, 2], ndtr=phi, log_ndtr=lambda x: mp.log(phi(x))),
    *unary("entr logit", special, [0.5, 0.25], entr=lambda x: -x * mp.log(x),
           logit=lambda x: mp.log(x / (1 - x))),
    Row("sici[0]", lambda x: special.sici(x)[0], mp.si, [(0,), (1,)]),
    Row("fresnel[0]", lambda x: special.fresnel(x)[0], mp.fresnels, [(0,), (1,)]),
    Row("fresnel[1]", lambda x: special.fresnel(x)[1], mp.fresnelc, [(0,), (1,)]),
    *[Row(f"gammainc {a}", lambda x, a=a: special.gammainc(a, x),
          lambda x, a=a: mp.gammainc(a, 0, x, regularized=True), [(0,), (1,), (3,)])
      for a in (1.0, 2.0, 3.0)],
    Row("gammaincc 3", lambda x: special.gammaincc(3.0, x),
        lambda x: mp.gammainc(3, x, mp.inf, regularized=True), [(0,), (1,)]),
    Row("expn 4", lambda x: special.expn(4, x), lambda x: mp.expint(4, x), [(0,), (1,)]),
    Row("hyp1f1 2 3", lambda x: special.hyp1f1(2.0, 3.0, x), lambda x: mp.hyp1f1(2, 3, x),
        [(0,), (1,), (-1,)]),
    Row("beta", special.beta, mp.beta, [(1, 1), (2, 1), (0.5, 0.5)]),
    Row("logsumexp", vector(special.logsumexp), lambda *x: mp.log(sum(map(mp.exp, x))), TRIPLES),
    Row("logsumexp b",
        lambda a, b, c: special.logsumexp(jnp.stack([a, a + 1]), b=jnp.stack([b, c])),
        lambda a, b, c: mp.log(b * mp.exp(a) + c * mp.exp(a + 1)),
        [(0, 1, 0), (0, 0, 1), (0, 1, 1)]),
    # --- scipy.stats ---
    Row("norm.cdf", stats.norm.cdf, phi, [(0,), (-2,)]),
    Row("norm.logpdf", stats.norm.logpdf, lambda x: mp.log(density(x)), [(0,), (1,)]),
    Row("gennorm.logpdf", stats.gennorm.logpdf,
        lambda x, b: mp.log(b / 2) - mp.loggamma(1 / b) - abs(x) ** b, [(0, 2), (0, 3), (1, 1)]),
    Row("logistic.cdf", stats.logistic.cdf, sigmoid, [(0,), (1,)]),
    Row("cauchy.cdf", stats.cauchy.cdf, lambda x: mp.atan(x) / mp.pi + 0.5, [(0,), (1,)]),
    Row("gamma.logpdf", stats.gamma.logpdf, log_gamma_density, [(1, 1), (2, 1), (1, 2.5)]),
    Row("poisson.cdf 2", lambda m: stats.poisson.cdf(2.0, m),
        lambda m: mp.exp(-m) * (1 + m + m * m / 2), [(0,), (1,)]),
    # --- nn ---
    *unary("softplus log_sigmoid sigmoid silu mish tanh", nn, [0, 1, -3], softplus=softplus,
           log_sigmoid=lambda x: -softplus(-x), sigmoid=sigmoid, silu=lambda x: x * sigmoid(x),
           mish=lambda x: x * mp.tanh(softplus(x))),
    Row("gelu", lambda x: nn.gelu(x, False), lambda x: x * phi(x), [(0,), (1,), (-2,)]),
    Row("squareplus", nn.squareplus, lambda x: (x + mp.sqrt(x * x + 4)) / 2, [(0,), (1,)]),
    Row("log1mexp", nn.log1mexp, lambda x: mp.log1p(-mp.exp(-x)), [(0.6931472,), (1,), (0.1,)]),
    Row("softmax", vector(nn.softmax),
        lambda *x: weigh(mp.exp(v) for v in x) / sum(map(mp.exp, x)), TRIPLES),
    Row("log_softmax", vector(nn.log_softmax),
        lambda *x: weigh(x) - 7 * mp.log(sum(map(mp.exp, x))), TRIPLES),
]  # fmt: skip

ZERO, ZEROS = [[0]], [[0, 0], [0, 0]]
NONE3 = [[0] * 3] * 3
CORNER = "a corner: "

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
    Choice("numpy.std", vector(jnp.std), (1, 1, 1), [NAN] * 3, None, "a cone"),
    Choice("numpy.linalg.norm", vector(L.norm), (0, 0, 0), [NAN] * 3, None, "a cone"),
    Choice("numpy.linalg.eigh", matrix(lambda x: L.eigh(x)[1]), (1, 0, 0, 1), [NAN] * 4, None,
           "vectors of equal values may turn by any angle"),
    Choice("numpy.linalg.eigvalsh", matrix(L.eigvalsh), (1, 0, 0, 1), [1, 0, 0, 2], None,
           "equal values: as if they were told apart by their vectors; no second derivatives"),
    Choice("numpy.linalg.svd", matrix(lambda x: L.svd(x)[0]), (1, 0, 0, 1), [NAN] * 4, None,
           "vectors of equal values may turn by any angle"),
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
    Choice("scipy.stats.laplace.pdf", stats.laplace.pdf, (0,), [-0.5], None,
           CORNER + "the derivative from the right"),
    Choice("scipy.stats.gennorm.logpdf", stats.gennorm.logpdf, (0, 1), [0, 0.4227843], None,
           CORNER + "0 in x"),
    Choice("nn.relu", nn.relu, (0,), [0], ZERO, CORNER + "the derivative from the left"),
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
