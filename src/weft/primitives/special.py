"""Special functions: error function, gamma and beta families, zeta, Bessel.

Those the engine has are rows of a table; the others are written here as functions of arrays, staged
when a program is lowered, with loops where a series or a continued fraction is summed. Sixteen-bit
and smaller floats are computed in float32.

Accuracy against SciPy, in units in the last place (float32, float64): erf 5, 2; erfc 60, 11;
erf_inv 64, and 1e-12 near 1; zeta 8, 3; bessel_i0e 3, 3; bessel_i1e 9, 7; lgamma, digamma and
polygamma 60, 40 away from their zeros, where the error stays 1e-6, 1e-14; igamma and igammac 300
for values that are not small, 2000 in the tails; betainc 500, and 8000 for parameters of 1e4 and
more, where the continued fraction has many factors.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.stage import stage
from weft.primitives.elementwise import (
    Costly,
    abs,
    add,
    binary_op,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    div,
    eq,
    ge,
    gt,
    integer_pow,
    le,
    lt,
    match,
    max,
    mul,
    neg,
    no_derivative,
    select,
    sign,
    square,
    sub,
    unary_op,
)
from weft.primitives.layout import literal
from weft.primitives.transcendental import exp, log, log1p, sqrt
from weft.xla.lower import lower_jaxpr

# --- functions of arrays as lowerings -------------------------------------------------------


def staged(hlo: Any, fun: Callable, values: Sequence[Any]) -> list:
    """Write a function of arrays, made of primitives, in the place where `hlo` stands."""
    jaxpr, consts = stage(fun, [v.aval.strong() for v in values])
    assert not consts, "a lowering is made of operations and literals alone"
    return lower_jaxpr(hlo, jaxpr, values)


def in_full_precision(write: Callable) -> Callable:
    """The lowering `write(hlo, *values) -> Value`, given and giving at least float32."""

    def lower(hlo: Any, aval: ShapedArray, *values: Any) -> Any:
        wide = np.dtype(np.float64 if aval.dtype == np.float64 else np.float32)
        return hlo.convert(write(hlo, *[hlo.convert(v, wide) for v in values]), aval.dtype)

    return lower


def composed(fun: Callable) -> Callable:
    """The lowering of a function of arrays."""
    return in_full_precision(lambda hlo, *values: staged(hlo, lambda *xs: [fun(*xs)], values)[0])


_ROUNDS = 10_000  # of a loop: a bound that only NaN or arguments beyond 1e6 come near


def iterate(hlo: Any, start: Callable, step: Callable, operands: Sequence[Any]) -> list:
    """The state `start(*operands)`, replaced by `step(n, *operands, *state)` until none is active.

    Its first part says which elements are active; only those are replaced, and what is returned
    is the rest. n counts from 1.
    """
    count = hlo.constant(1, ShapedArray((), np.dtype(np.int32)))
    state = [count, *staged(hlo, start, operands)]
    avals = [v.aval for v in state]

    def going(n: Any, active: Any, *rest: Any) -> list:
        flag = ShapedArray((), np.dtype(bool))
        either = hlo.block([flag, flag], lambda x, y: hlo.like("or", x, y))
        dims = ", ".join(map(str, range(active.aval.ndim)))
        (some,) = hlo.op(
            "stablehlo.reduce",
            [active, hlo.constant(False, flag)],
            [flag],
            [either],
            dimensions=f"array<i64: {dims}>" if dims else "array<i64>",
        )
        bounded = hlo.compare("LE", n, hlo.constant(_ROUNDS, n.aval))
        return hlo.like("and", some, bounded)

    def body(n: Any, *now: Any) -> list:
        number = hlo.spread(hlo.convert(n, operands[0].aval.dtype), operands[0].aval)
        new = staged(hlo, step, [number, *operands, *now])
        kept = [
            hlo.op("stablehlo.select", [now[0], x, y], [x.aval])[0]
            for x, y in zip(new, now, strict=True)
        ]
        return [*hlo.like("add", n, hlo.constant(1, n.aval)), *kept]

    regions = [hlo.block(avals, going), hlo.block(avals, body)]
    return hlo.op("stablehlo.while", state, avals, regions)[2:]


def epsilon(x: Any) -> float:
    """The spacing of floats at 1 in the dtype of x."""
    return float(dtypes.finfo(typeof(x).dtype).eps)


def chebyshev(x: Any, coefficients: Sequence[float]) -> Any:
    """A sum of Chebyshev polynomials of x (Clenshaw 1955), of the terms that x's dtype can tell."""
    kept = [c for c in coefficients if builtins.abs(c) > epsilon(x) / 32]
    one = two = mul(x, 0)
    for c in reversed(kept[1:]):
        one, two = add(sub(mul(mul(2, x), one), two), c), one
    return add(sub(mul(x, one), two), kept[0])


# --- error function -------------------------------------------------------------------------

_SLOPE = 2 / math.sqrt(math.pi)

erf_p = Costly(
    "erf",
    "chlo.erf",
    [lambda t, y, x: mul(t, mul(_SLOPE, exp(neg(square(x)))))],
    takes="float",
    doc="The error function, 2/sqrt(pi) times the integral of exp(-t**2) from 0 to x.",
)
erfc_p = Costly(
    "erfc",
    "chlo.erfc",
    [lambda t, y, x: mul(t, mul(-_SLOPE, exp(neg(square(x)))))],
    takes="float",
    doc="1 - erf(x), exact to rounding where it is small.",
)
erf_inv_p = Costly(
    "erf_inv",
    "chlo.erf_inv",
    [lambda t, y, x: mul(t, mul(1 / _SLOPE, exp(square(y))))],
    takes="float",
    doc="The x whose error function is given; inf at 1, NaN beyond.",
)

# --- gamma, digamma, zeta -------------------------------------------------------------------

lgamma_p = Costly(
    "lgamma",
    "chlo.lgamma",
    [lambda t, y, x: mul(t, digamma(x))],
    takes="float",
    doc="log |gamma(x)|; inf at 0 and the negative integers.",
)
digamma_p = Costly(
    "digamma",
    "chlo.digamma",
    [lambda t, y, x: mul(t, polygamma(literal(1, typeof(x).dtype), x))],
    takes="float",
    doc="The derivative of log gamma(x); NaN at 0 and the negative integers.",
)
polygamma_p = Costly(
    "polygamma",
    "chlo.polygamma",
    [
        no_derivative("polygamma", "m"),
        lambda t, z, m, x: mul(t, polygamma(add(m, literal(1, typeof(m).dtype)), x)),
    ],
    takes="float",
    doc="The derivative of order m of digamma at x, m a whole number.",
)
zeta_p = Costly(
    "zeta",
    "chlo.zeta",
    [
        no_derivative("zeta", "x"),
        lambda t, z, x, q: mul(t, mul(neg(x), zeta(add(x, literal(1, typeof(x).dtype)), q))),
    ],
    takes="float",
    doc="Hurwitz's zeta function, the sum of (n + q)**-x over n = 0, 1, ...",
)

# --- Bessel functions -----------------------------------------------------------------------

# i0e(x) for x <= 8 in x / 4 - 1, and sqrt(x) i0e(x) for x >= 8 in 16 / x - 1: interpolated at 44
# Chebyshev points from values of 48 digits, by the power series and the asymptotic one.
_I0E_NEAR = (
    0.33839763720473803,
    -0.3046826723431984,
    0.17162090152220877,
    -0.09490109704804764,
    0.04930528423967071,
    -0.02373741480589947,
    0.010546460394594998,
    -0.004324309995050576,
    0.0016394756169413357,
    -0.0005763755745385824,
    0.00018850288509584165,
    -5.754195010082104e-05,
    1.6448448070728896e-05,
    -4.4167383584587505e-06,
    1.1173875391201037e-06,
    -2.670793853940612e-07,
    6.046995022541919e-08,
    -1.300025009986248e-08,
    2.6598237246823866e-09,
    -5.189795601635263e-10,
    9.675809035373237e-11,
    -1.726826291441556e-11,
    2.95505266312964e-12,
    -4.856446783111929e-13,
    7.676185498604936e-14,
    -1.1685332877993451e-14,
    1.715391285555133e-15,
    -2.431279846547955e-16,
)
_I0E_FAR = (
    0.4022452055070544,
    0.0033691164782556943,
    6.889758346916825e-05,
    2.8913705208347567e-06,
    2.0489185894690638e-07,
    2.266668990498178e-08,
    3.3962320257083865e-09,
    4.94060238822497e-10,
    1.1889147107846439e-11,
    -3.1499165279632416e-11,
    -1.3215811840447713e-11,
    -1.7941785315068062e-12,
    7.180124451383666e-13,
    3.8527783827421426e-13,
    1.54008621752141e-14,
    -4.150569347287222e-14,
    -9.554846698828307e-15,
    3.8116806693526224e-15,
    1.7725601330565263e-15,
    -3.4254856196772195e-16,
    -2.8276239805165836e-16,
    3.461222867697477e-17,
    4.465621420296738e-17,
    -4.830504485944371e-18,
)


def bessel_i0e_of(x: Any) -> Any:
    """exp(-|x|) I0(x), by Chebyshev series to both sides of |x| = 8."""
    x = abs(x)
    near = chebyshev(sub(mul(x, 0.25), 1), _I0E_NEAR)
    beyond = max(x, literal(8, typeof(x).dtype))
    far = div(chebyshev(sub(div(16, beyond), 1), _I0E_FAR), sqrt(beyond))
    return select(le(x, 8), near, far)


def bessel_i1e_slope(x: Any, y: Any) -> Any:
    """i0e(x) - i1e(x) (sign(x) + 1/x), which is 1/2 at 0."""
    away = gt(abs(x), epsilon(x))
    safe = select(away, x, epsilon(x))
    slope = sub(bessel_i0e(safe), mul(y, add(sign(safe), integer_pow(safe, -1))))
    return select(away, slope, 0.5)


bessel_i0e_p = Costly(
    "bessel_i0e",
    composed(bessel_i0e_of),
    [lambda t, y, x: mul(t, sub(bessel_i1e(x), mul(sign(x), y)))],
    takes="float",
    doc="exp(-|x|) times the modified Bessel function of order 0.",
)
bessel_i1e_p = Costly(
    "bessel_i1e",
    "chlo.bessel_i1e",
    [lambda t, y, x: mul(t, bessel_i1e_slope(x, y))],
    takes="float",
    doc="exp(-|x|) times the modified Bessel function of order 1.",
)

# --- incomplete gamma -----------------------------------------------------------------------


def stirling_error(a: Any) -> Any:
    """lgamma(a + 1) less Stirling's formula, (a + 1/2) log a - a + log(2 pi) / 2 (Loader 2000)."""
    big = max(a, literal(10, typeof(a).dtype))
    terms = (691 / 360360, 1 / 1188, 1 / 1680, 1 / 1260, 1 / 360, 1 / 12)
    series = mul(a, 0)
    for c in terms:
        series = sub(c, div(series, square(big)))
    small = select(gt(a, 0), min_of(a, 10.0), 1)
    direct = add(
        sub(lgamma(add(small, 1)), mul(add(small, 0.5), log(small))),
        sub(small, 0.5 * math.log(2 * math.pi)),
    )
    return select(ge(a, 10), div(series, big), direct)


def min_of(x: Any, bound: float) -> Any:
    """x where it is below `bound`, else that."""
    return select(lt(x, bound), x, bound)


def deviance(a: Any, x: Any) -> Any:
    """a log(a / x) + x - a, without cancellation where x is near a (Loader 2000, bd0)."""
    v = div(sub(a, x), add(a, x))
    terms = mul(v, 0)
    for j in range(8, 0, -1):
        terms = mul(square(v), add(terms, 1 / (2 * j + 1)))
    near = add(mul(sub(a, x), v), mul(mul(2, a), mul(v, terms)))
    far = add(mul(a, log(div(a, x))), sub(x, a))
    return select(lt(abs(v), 0.1), near, far)


def gamma_density(a: Any, x: Any) -> Any:
    """x**a exp(-x) / gamma(a + 1), as the saddle point has it, whose exponents are small."""
    exponent = neg(add(stirling_error(a), deviance(a, x)))
    return div(exp(exponent), sqrt(mul(2 * math.pi, a)))


def series_start(a: Any, x: Any) -> list:
    """The first term of the series of P(a, x) gamma(a + 1) / (x**a exp(-x)), and its derivative."""
    one, zero = add(mul(x, 0), 1), mul(x, 0)
    return [in_series(a, x), one, one, zero, zero]


def series_step(n: Any, a: Any, x: Any, active: Any, c: Any, s: Any, dc: Any, ds: Any) -> list:
    """One term more: c is the last one, s the sum; dc and ds are their derivatives in a."""
    r = add(a, n)
    c = div(mul(c, x), r)
    dc = div(sub(mul(dc, x), c), r)
    s, ds = add(s, c), add(ds, dc)
    more = bitwise_or(gt(c, mul(s, epsilon(x))), gt(abs(dc), mul(abs(ds), epsilon(x))))
    return [bitwise_and(active, more), c, s, dc, ds]


def fraction_start(a: Any, x: Any) -> list:
    """The continued fraction of Q(a, x) gamma(a) / (x**a exp(-x)), at its first denominator.

    State: active, c, d and their derivatives in a, the value h, the derivative of log h.
    """
    b = add(sub(x, a), 1)
    d = integer_pow(select(eq(b, 0), 1, b), -1)
    far = add(mul(x, 0), 0.1 / float(dtypes.finfo(typeof(x).dtype).tiny) ** 0.5)
    return [bitwise_not(in_series(a, x)), far, d, mul(x, 0), square(d), d, d]


def fraction_step(
    n: Any, a: Any, x: Any, active: Any, c: Any, d: Any, dc: Any, dd: Any, h: Any, dlog: Any
) -> list:
    """One denominator more, by the modified algorithm of Lentz (Thompson and Barnett 1986)."""
    top = mul(n, sub(a, n))
    b = add(add(sub(x, a), 1), mul(2, n))
    dc = sub(div(sub(n, mul(top, div(dc, c))), c), 1)
    c = add(b, div(top, c))
    bottom = add(b, mul(top, d))
    dbottom = sub(add(mul(n, d), mul(top, dd)), 1)
    d = integer_pow(bottom, -1)
    dd = neg(mul(dbottom, square(d)))
    factor = mul(c, d)
    change = add(div(dc, c), div(dd, d))
    dlog = add(dlog, change)
    more = gt(abs(sub(factor, 1)), epsilon(x))
    more = bitwise_or(more, gt(abs(change), mul(abs(dlog), epsilon(x))))
    return [bitwise_and(active, more), c, d, dc, dd, mul(h, factor), dlog]


def in_series(a: Any, x: Any) -> Any:
    """Whether the series is what converges fast; elsewhere the continued fraction does."""
    return bitwise_or(le(x, 1), le(x, a))


def proper(a: Any, x: Any) -> Any:
    """Whether neither argument is at an end of its range, beyond it, or NaN."""
    return bitwise_and(
        bitwise_and(gt(a, 0), lt(a, math.inf)), bitwise_and(gt(x, 0), lt(x, math.inf))
    )


def lower_gamma(finish: Callable) -> Callable:
    """The lowering of finish(a, x, s, ds, h, dlog): from the sums to the function wanted."""

    def write(hlo: Any, a: Any, x: Any) -> Any:
        safe = staged(
            hlo,
            lambda a, x: [select(proper(a, x), a, 1), select(proper(a, x), x, 1)],
            [a, x],
        )
        _, s, _, ds = iterate(hlo, series_start, series_step, safe)
        *_, h, dlog = iterate(hlo, fraction_start, fraction_step, safe)
        out = lambda a, x, *sums: [finish(a, x, *sums)]
        return staged(hlo, out, [a, x, *safe, s, ds, h, dlog])[0]

    return in_full_precision(write)


def both(x: Any, y: Any, value: float) -> Any:
    """Whether x and y are both `value`."""
    return bitwise_and(eq(x, value), eq(y, value))


def with_ends(out: Any, a: Any, x: Any, at_low: float, at_high: float) -> Any:
    """`out`, but for the ends: `at_low` for x = 0 or a = inf, `at_high` for x = inf or a = 0.

    NaN where an argument is negative or NaN, both are 0, or both are inf.
    """
    out = select(bitwise_or(eq(x, 0), eq(a, math.inf)), at_low, out)
    out = select(bitwise_or(eq(x, math.inf), eq(a, 0)), at_high, out)
    undecided = bitwise_or(both(a, x, 0), both(a, x, math.inf))
    valid = bitwise_and(bitwise_and(ge(a, 0), ge(x, 0)), bitwise_not(undecided))
    return select(valid, out, math.nan)


def regularized(lower: bool) -> Callable:
    """P(a, x), or with `lower` false Q(a, x) = 1 - P(a, x), each from the sum that it is near."""

    def finish(a: Any, x: Any, sa: Any, sx: Any, s: Any, ds: Any, h: Any, dlog: Any) -> Any:
        density = gamma_density(sa, sx)
        by_series, by_fraction = mul(density, s), mul(mul(density, sa), h)
        if lower:
            out = select(in_series(sa, sx), by_series, sub(1, by_fraction))
            return with_ends(out, a, x, 0, 1)
        out = select(in_series(sa, sx), sub(1, by_series), by_fraction)
        return with_ends(out, a, x, 1, 0)

    return finish


def finish_grad(a: Any, x: Any, sa: Any, sx: Any, s: Any, ds: Any, h: Any, dlog: Any) -> Any:
    """dP/da = -dQ/da."""
    density = gamma_density(sa, sx)
    by_series = mul(density, add(mul(s, sub(log(sx), digamma(add(sa, 1)))), ds))
    slope = add(sub(log(sx), digamma(sa)), dlog)
    by_fraction = neg(mul(mul(density, sa), mul(h, slope)))
    return with_ends(select(in_series(sa, sx), by_series, by_fraction), a, x, 0, 0)


def finish_sample(a: Any, x: Any, sa: Any, sx: Any, s: Any, ds: Any, h: Any, dlog: Any) -> Any:
    """-(dP/da) / (dP/dx): the density, which may underflow, cancels."""
    by_series = neg(mul(div(sx, sa), add(mul(s, sub(log(sx), digamma(add(sa, 1)))), ds)))
    by_fraction = mul(sx, mul(h, add(sub(log(sx), digamma(sa)), dlog)))
    return with_ends(select(in_series(sa, sx), by_series, by_fraction), a, x, 0, 0)


def igamma_slope(a: Any, x: Any) -> Any:
    """x**(a-1) exp(-x) / gamma(a)."""
    return exp(sub(sub(mul(sub(a, 1), log(x)), x), lgamma(a)))


igamma_p = Costly(
    "igamma",
    lower_gamma(regularized(lower=True)),
    [
        lambda t, z, a, x: mul(t, igamma_grad_a(a, x)),
        lambda t, z, a, x: mul(t, igamma_slope(a, x)),
    ],
    takes="float",
    doc="The regularized lower incomplete gamma function P(a, x).",
)
igammac_p = Costly(
    "igammac",
    lower_gamma(regularized(lower=False)),
    [
        lambda t, z, a, x: neg(mul(t, igamma_grad_a(a, x))),
        lambda t, z, a, x: neg(mul(t, igamma_slope(a, x))),
    ],
    takes="float",
    doc="The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).",
)
igamma_grad_a_p = Costly(
    "igamma_grad_a",
    lower_gamma(finish_grad),
    [no_derivative("igamma_grad_a", "a"), no_derivative("igamma_grad_a", "x")],
    takes="float",
    doc="The derivative of P(a, x) in a.",
)
random_gamma_grad_p = Costly(
    "random_gamma_grad",
    lower_gamma(finish_sample),
    [no_derivative("random_gamma_grad", "a"), no_derivative("random_gamma_grad", "x")],
    takes="float",
    doc="How a gamma sample x moves with its shape a, at a fixed quantile: -(dP/da) / (dP/dx).",
)

# --- incomplete beta ------------------------------------------------------------------------


def beta_density(a: Any, b: Any, x: Any) -> Any:
    """x**a (1-x)**b / beta(a, b), as the saddle point has it, whose exponents are small."""
    n, rest = add(a, b), sub(1, x)
    exponent = sub(stirling_error(n), add(stirling_error(a), stirling_error(b)))
    exponent = sub(exponent, add(deviance(a, mul(n, x)), deviance(b, mul(n, rest))))
    return mul(sqrt(mul(div(a, mul(2 * math.pi, n)), b)), exp(exponent))


def beta_start(a: Any, b: Any, x: Any) -> list:
    """The continued fraction of I(x; a, b) a / beta_density: active, c, d and the value h."""
    one = add(mul(x, 0), 1)
    d = div(1, nonzero(sub(1, div(mul(add(a, b), x), add(a, 1)))))
    return [eq(one, one), one, d, d]


def nonzero(x: Any) -> Any:
    """x, or something tiny where it is 0."""
    return select(eq(x, 0), float(dtypes.finfo(typeof(x).dtype).tiny) ** 0.5, x)


def beta_step(m: Any, a: Any, b: Any, x: Any, active: Any, c: Any, d: Any, h: Any) -> list:
    """Two denominators more, by the modified algorithm of Lentz (Thompson and Barnett 1986)."""
    even = add(a, mul(2, m))
    tops = (
        div(mul(mul(m, sub(b, m)), x), mul(sub(even, 1), even)),
        neg(div(mul(mul(add(a, m), add(add(a, b), m)), x), mul(even, add(even, 1)))),
    )
    for top in tops:
        d = div(1, nonzero(add(1, mul(top, d))))
        c = nonzero(add(1, div(top, c)))
        factor = mul(c, d)
        h = mul(h, factor)
    return [bitwise_and(active, gt(abs(sub(factor, 1)), epsilon(x))), c, d, h]


def beta_arguments(a: Any, b: Any, x: Any) -> list:
    """Arguments that the fraction converges fast for: ordinary ones, from the nearer end."""
    inside = bitwise_and(gt(x, 0), lt(x, 1))
    inside = bitwise_and(inside, bitwise_and(proper(a, b), gt(b, 0)))
    a, b, x = select(inside, a, 1), select(inside, b, 1), select(inside, x, 0.5)
    turned = turn(a, b, x)
    return [
        select(turned, b, a),
        select(turned, a, b),
        select(turned, sub(1, x), x),
        turned,
    ]


def turn(a: Any, b: Any, x: Any) -> Any:
    """Whether 1 - I(1-x; b, a) is what to compute."""
    return gt(x, div(add(a, 1), add(add(a, b), 2)))


def finish_beta(a: Any, b: Any, x: Any, sa: Any, sb: Any, sx: Any, turned: Any, h: Any) -> Any:
    """I(x; a, b) from the continued fraction, with its ends."""
    part = div(mul(beta_density(sa, sb, sx), h), sa)
    out = select(turned, sub(1, part), part)
    out = select(bitwise_or(eq(a, 0), eq(b, math.inf)), 1, out)
    out = select(bitwise_or(eq(b, 0), eq(a, math.inf)), 0, out)
    out = select(eq(x, 0), 0, select(eq(x, 1), 1, out))
    undecided = bitwise_or(both(a, b, 0), both(a, b, math.inf))
    valid = bitwise_and(bitwise_and(ge(x, 0), le(x, 1)), bitwise_not(undecided))
    valid = bitwise_and(valid, bitwise_and(ge(a, 0), ge(b, 0)))
    return select(valid, out, math.nan)


def lower_beta(hlo: Any, a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function."""
    *safe, turned = staged(hlo, beta_arguments, [a, b, x])
    *_, h = iterate(hlo, beta_start, beta_step, safe)
    return staged(hlo, lambda *xs: [finish_beta(*xs)], [a, b, x, *safe, turned, h])[0]


def beta_slope(a: Any, b: Any, x: Any) -> Any:
    """x**(a-1) (1-x)**(b-1) / beta(a, b)."""
    norm = sub(lgamma(add(a, b)), add(lgamma(a), lgamma(b)))
    powers = add(mul(sub(a, 1), log(x)), mul(sub(b, 1), log1p(neg(x))))
    return exp(add(powers, norm))


regularized_incomplete_beta_p = Costly(
    "regularized_incomplete_beta",
    in_full_precision(lower_beta),
    [
        no_derivative("betainc", "a"),
        no_derivative("betainc", "b"),
        lambda t, z, a, b, x: mul(t, beta_slope(a, b, x)),
    ],
    takes="float",
    doc="The regularized incomplete beta function I(x; a, b).",
)


def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function I(x; a, b)."""
    return regularized_incomplete_beta_p.bind(match(a, x)[0], match(b, x)[0], x)[0]


erf, erfc, erf_inv, lgamma, digamma = map(unary_op, (erf_p, erfc_p, erf_inv_p, lgamma_p, digamma_p))
bessel_i0e, bessel_i1e = unary_op(bessel_i0e_p), unary_op(bessel_i1e_p)
polygamma, zeta = binary_op(polygamma_p), binary_op(zeta_p)
igamma, igammac = binary_op(igamma_p), binary_op(igammac_p)
igamma_grad_a, random_gamma_grad = binary_op(igamma_grad_a_p), binary_op(random_gamma_grad_p)
