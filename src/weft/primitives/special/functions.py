"""Special functions: error function, gamma and beta families, zeta, Bessel.

Rows of a table: how each is computed is in XLA or in the formulas of gamma.py, error.py and
bessel.py; here are its derivatives. docs/special.md says how exact they are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from weft.core.aval import typeof
from weft.core.facts import Cost
from weft.core.form import Form
from weft.primitives.elementwise import (
    Costly,
    abs,
    add,
    binary_op,
    div,
    eq,
    gt,
    lt,
    match_numbers,
    mul,
    neg,
    no_derivative,
    select,
    sign,
    square,
    sub,
    unary_op,
)
from weft.primitives.expr import F64, Expr
from weft.primitives.kernels import Called, ElementFormula, Kernel
from weft.primitives.layout import literal
from weft.primitives.special import bessel as bessel_formulas
from weft.primitives.special import error as error_formulas
from weft.primitives.special import gamma as gammas
from weft.primitives.special.formula import formula
from weft.primitives.transcendental import exp, integer_pow, log, log1p, pow, sqrt
from weft.xla.typing import Array, ArrayLike


def define_special(name: str, op: str | Callable, doc: str, *derivs: Callable | str) -> Costly:
    """Define a function of floats. An operand's name in `derivs` says that it has no derivative."""
    given = [no_derivative(name, d) if isinstance(d, str) else d for d in derivs]
    return Costly(name, op, given, takes="float", doc=doc)


# --- error function -------------------------------------------------------------------------

_SLOPE = 2 / math.sqrt(math.pi)

erf_p = define_special(
    "erf",
    "chlo.erf",
    """Return the error function.

    >>> jnp.array([0.5, 2.0])
    [0.52  0.995]
    """,
    lambda t, y, x: mul(t, mul(_SLOPE, exp(neg(square(x))))),
)
erfc_p = define_special(
    "erfc",
    formula(error_formulas.write_erfc, wide=False),
    """Return 1 - erf(x), which is accurate for large x too.

    >>> jnp.array([0.5, 2.0])
    [0.48  0.005]
    """,
    lambda t, y, x: mul(t, mul(-_SLOPE, exp(neg(square(x))))),
)
gelu_p = define_special(
    "gelu",
    formula(lambda x: x * error_formulas.normal_cdf(x), wide=False),
    "x times the normal probability of less than x.",
    lambda t, y, x: mul(t, gelu_slope(x)),
)


def gelu_slope(x: Any) -> Any:
    """The normal probability of less than x, and x times its density."""
    below = mul(0.5, erfc(mul(-math.sqrt(0.5), x)))
    return add(below, mul(mul(_SLOPE * math.sqrt(0.125), x), exp(mul(-0.5, square(x)))))


erf_inv_p = define_special(
    "erf_inv",
    formula(error_formulas.erf_inverse, wide=False),
    """Return the inverse of the error function.

    >>> jnp.array([0.0, 0.5])
    [0.    0.477]
    """,
    lambda t, y, x: mul(t, mul(1 / _SLOPE, exp(square(y)))),
)

ANYWHERE, ALONE_LARGE = Called.ANYWHERE, Called.ALONE_LARGE
erf_p.kernel, gelu_p.kernel = Kernel(34, float64=ANYWHERE), Kernel(37, ANYWHERE)
erfc_p.kernel, erf_inv_p.kernel = Kernel(35, ALONE_LARGE), Kernel(36, ALONE_LARGE)


def write_double_erf(x: Expr) -> Expr:
    """Write the error function of float64."""
    return x.new(formula(error_formulas.write_erf)(x.hlo, x.aval, x.value))


erf_p.formulas = {F64: ElementFormula(write_double_erf, least=2)}

# --- gamma, digamma, zeta -------------------------------------------------------------------

lgamma_p = define_special(
    "lgamma",
    formula(gammas.log_gamma),
    """Return the logarithm of the absolute value of the gamma function.

    >>> jnp.array([0.5, 3.0])
    [0.572 0.693]
    """,
    lambda t, y, x: mul(t, digamma(x)),
)
digamma_p = define_special(
    "digamma",
    formula(gammas.write_digamma),
    """Return the digamma function, the derivative of `lgamma`.

    >>> jnp.array([0.5, 2.0])
    [-1.964  0.423]
    """,
    lambda t, y, x: mul(t, polygamma(literal(1, typeof(x).dtype), x)),
)
polygamma_p = define_special(
    "polygamma",
    formula(gammas.write_polygamma),
    """Return the polygamma function of order m: the derivative number m of `digamma`.

    >>> 1.0, jnp.array([1.0, 2.0])
    [1.645 0.645]
    """,
    "m",
    lambda t, z, m, x: mul(t, polygamma(add(m, literal(1, typeof(m).dtype)), x)),
)
# Coefficients of Euler and Maclaurin's formula: Bernoulli numbers over factorials, B_2j / (2j)!.
_EULER = [
    *(1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000),
    *(1 / 74724249600, -3617 / 10670622842880000),
]


def zeta_slope(x: Any, q: Any) -> Any:
    """The derivative of `zeta` in x: ten terms of the sum, and Euler and Maclaurin's formula."""
    one = literal(1, typeof(x).dtype)
    total = literal(0, typeof(x).dtype)
    for k in range(10):
        base = add(q, k)
        total = sub(total, mul(log(base), pow(base, neg(x))))
    w = add(q, 10)
    slope = log(w)
    power, over, inverse = pow(w, neg(x)), div(one, sub(x, 1)), div(one, w)
    rest = mul(mul(w, over), add(slope, over))
    rest = add(rest, mul(0.5, slope))
    # The product of (x + i) / w and its derivative. Beyond 30 the power of w outweighs all of it.
    held = select(lt(mul(x, inverse), 30), x, mul(30, w))
    product, moved = mul(held, inverse), inverse
    for j, c in enumerate(_EULER):
        rest = add(rest, mul(c, sub(mul(slope, product), moved)))
        for i in (2 * j + 1, 2 * j + 2):
            factor = mul(add(held, i), inverse)
            product, moved = mul(product, factor), add(mul(moved, factor), mul(product, inverse))
    return sub(total, mul(power, rest))


zeta_p = define_special(
    "zeta",
    formula(gammas.hurwitz),
    """Return the Hurwitz zeta function: the sum of 1 / (k + q) ** x over k = 0, 1, ...

    >>> 2.0, jnp.array([1.0, 2.0])
    [1.645 0.645]
    """,
    lambda t, z, x, q: mul(t, zeta_slope(x, q)),
    lambda t, z, x, q: mul(t, mul(neg(x), zeta(add(x, literal(1, typeof(x).dtype)), q))),
)
polygamma_p.form = zeta_p.form = Form.ZETA
zeta_p.kernel = Kernel(69, float64=ANYWHERE)

# --- Bessel functions -----------------------------------------------------------------------


def divide_i1(x: Any, y: Any, scale: Any = 1.0) -> Any:
    """y / x of y = scale i1(x); below 1 by its power series, which has all derivatives at 0."""
    small = lt(abs(x), 1)
    zero, one = (literal(v, typeof(x).dtype) for v in (0, 1))
    square, series = mul(0.25, integer_pow(select(small, x, zero), 2)), zero
    for k in reversed(range(11)):
        series = add(0.5 / (math.factorial(k) * math.factorial(k + 1)), mul(series, square))
    return select(small, mul(series, scale), div(y, select(small, one, x)))


def list_bessel_gaps(count: int) -> list[float]:
    """The coefficients of |x|**-k, k = 1, 2, ..., in (i0e(x) - |i1e(x)|) sqrt(2 pi |x|)."""
    terms, found = [1.0, 1.0], []  # of both functions (DLMF 10.40.1)
    for k in range(1, count + 1):
        odd = (2 * k - 1) ** 2
        terms = [-a * (4 * order - odd) / (8 * k) for order, a in enumerate(terms)]
        found.append(terms[0] - terms[1])
    return found


_BESSEL_GAPS = list_bessel_gaps(12)
_BESSEL_FAR = 30  # from here on the series is exact in float64, and the difference cancels


def bessel_gap(x: Any, y0: Any, y1: Any) -> Any:
    """y0 - |y1| of y0 = i0e(x) and y1 = i1e(x), without cancellation for a large x."""
    size, (total, one) = abs(x), (literal(v, typeof(x).dtype) for v in (0, 1))
    far = gt(size, _BESSEL_FAR)
    inverse = div(one, select(far, size, one))
    for c in reversed(_BESSEL_GAPS):
        total = mul(add(total, c), inverse)
    series = mul(total, sqrt(mul(inverse, 0.5 / math.pi)))
    return select(far, series, sub(y0, mul(sign(x), y1)))


def bessel_i1e_slope(x: Any, y: Any) -> Any:
    """i0e(x) - i1e(x) (sign(x) + 1/x), which is 1/2 at 0."""
    side = sign(x)  # 0 at 0: the derivatives there equal i1's
    return sub(bessel_gap(x, bessel_i0e(x), y), divide_i1(x, y, exp(neg(mul(side, x)))))


def bessel_i0e_slope(x: Any, y: Any) -> Any:
    """i1e(x) - sign(x) i0e(x)."""
    near = sub(bessel_i1e(x), mul(sign(x), y))
    gap = bessel_gap(x, y, bessel_i1e(x))
    return select(gt(abs(x), _BESSEL_FAR), neg(mul(sign(x), gap)), near)


bessel_i0e_p = define_special(
    "bessel_i0e",
    formula(bessel_formulas.i0e, wide=False),
    """Return the modified Bessel function of order 0, times exp(-|x|).

    >>> jnp.array([0.5, 2.0])
    [0.645 0.309]
    """,
    lambda t, y, x: mul(t, bessel_i0e_slope(x, y)),
)
bessel_i1e_p = define_special(
    "bessel_i1e",
    formula(bessel_formulas.i1e, wide=False),
    """Return the modified Bessel function of order 1, times exp(-|x|).

    >>> jnp.array([0.5, 2.0])
    [0.156 0.215]
    """,
    lambda t, y, x: mul(t, bessel_i1e_slope(x, y)),
)

# --- incomplete gamma -----------------------------------------------------------------------


def igamma_slope(a: Any, x: Any) -> Any:
    """x**(a-1) exp(-x) / gamma(a); at 0 as a product, since the logarithm has no derivatives."""
    at_zero, one = eq(x, 0), literal(1, typeof(x).dtype)
    safe = select(at_zero, one, x)
    away = exp(sub(sub(mul(sub(a, 1), log(safe)), x), lgamma(a)))
    return select(
        at_zero, mul(pow(select(at_zero, x, one), sub(a, 1)), exp(neg(add(x, lgamma(a))))), away
    )


igamma_p = define_special(
    "igamma",
    formula(functools.partial(gammas.incomplete_gamma, lower=True)),
    """Return the regularized lower incomplete gamma function P(a, x).

    >>> 2.0, jnp.array([1.0, 2.0])
    [0.264 0.594]
    """,
    lambda t, z, a, x: mul(t, igamma_grad_a(a, x)),
    lambda t, z, a, x: mul(t, igamma_slope(a, x)),
)
igammac_p = define_special(
    "igammac",
    formula(functools.partial(gammas.incomplete_gamma, lower=False)),
    """Return the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    >>> 2.0, jnp.array([1.0, 2.0])
    [0.736 0.406]
    """,
    lambda t, z, a, x: neg(mul(t, igamma_grad_a(a, x))),
    lambda t, z, a, x: neg(mul(t, igamma_slope(a, x))),
)
igamma_p.kernel, igammac_p.kernel = (Kernel(code, float64=ANYWHERE) for code in (67, 68))
igamma_grad_a_p = define_special(
    "igamma_grad_a",
    formula(gammas.gamma_derivative),
    """Return the derivative of `igamma` with respect to a.

    >>> 2.0, jnp.array([1.0, 2.0])
    [-0.276 -0.294]
    """,
    "a",
    "x",
)
random_gamma_grad_p = define_special(
    "random_gamma_grad",
    formula(gammas.sample_derivative),
    """Return the derivative of samples of the gamma distribution by its parameter.

    The parameter is x, and y are the samples.

    >>> 2.0, jnp.array([1.0, 2.0])
    [0.751 1.086]
    """,
    "a",
    "x",
)

# --- incomplete beta ------------------------------------------------------------------------


def beta_slope(a: Any, b: Any, x: Any) -> Any:
    """x**(a-1) (1-x)**(b-1) / beta(a, b); at 0 and 1 as a product, as igamma_slope."""
    norm = sub(lgamma(add(a, b)), add(lgamma(a), lgamma(b)))
    at_edge, half = eq(mul(x, sub(x, 1)), 0), literal(0.5, typeof(x).dtype)
    safe, edge = select(at_edge, half, x), select(at_edge, x, half)
    powers = add(mul(sub(a, 1), log(safe)), mul(sub(b, 1), log1p(neg(safe))))
    product = mul(pow(edge, sub(a, 1)), pow(add(neg(edge), 1), sub(b, 1)))
    return select(at_edge, mul(product, exp(norm)), exp(add(powers, norm)))


regularized_incomplete_beta_p = define_special(
    "regularized_incomplete_beta",
    formula(gammas.incomplete_beta),
    "The regularized incomplete beta function I(x; a, b).",
    "a",
    "b",
    lambda t, z, a, b, x: mul(t, beta_slope(a, b, x)),
)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized incomplete beta function I(x; a, b).

    It is the distribution function of the beta distribution.

    Args:
      a: the first parameter, an array of positive floats, or a number.
      b: the second parameter, likewise.
      x: the upper end of the integral, from 0 to 1, likewise.

    Returns:
      An array of the shape and dtype of the operands.

    >>> print(np.asarray(lax.betainc(1.0, 2.0, jnp.array([0.5, 1.0]))).round(3))
    [0.75 1.  ]
    """
    return regularized_incomplete_beta_p.apply(match_numbers(a, x)[0], match_numbers(b, x)[0], x)[0]


for _prim in (
    *(igamma_p, igammac_p, igamma_grad_a_p, random_gamma_grad_p, regularized_incomplete_beta_p),
    *(polygamma_p, zeta_p),
):
    _prim.cost = Cost.ITERATIVE

erf = unary_op(erf_p)
erfc = unary_op(erfc_p)
erf_inv = unary_op(erf_inv_p)
lgamma = unary_op(lgamma_p)
digamma = unary_op(digamma_p)
bessel_i0e = unary_op(bessel_i0e_p)
bessel_i1e = unary_op(bessel_i1e_p)
polygamma = binary_op(polygamma_p, operands="m x")
zeta = binary_op(zeta_p, operands="x q")
igamma = binary_op(igamma_p, operands="a x")
igammac = binary_op(igammac_p, operands="a x")
igamma_grad_a = binary_op(igamma_grad_a_p, operands="a x")
random_gamma_grad = binary_op(random_gamma_grad_p)
