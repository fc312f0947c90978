"""Hypergeometric functions 1F1 and 2F1 of real arguments, by series after a transformation.

Exact to a few hundred units in float64 for moderate parameters of one sign; where terms of a series
cancel (large parameters of different signs) digits are lost, as in SciPy.
"""

from __future__ import annotations

import math

from weft.primitives.elementwise import no_derivative
from weft.primitives.expr import Expr
from weft.primitives.special.formula import choose, equal, exp, floor, log, repeat, where
from weft.primitives.special.gamma import avoid_zero, gamma_sign, is_whole, log_gamma, power
from weft.scipy.special.definitions import define_pair, define_primitive


def kummer_series(a: Expr, b: Expr, x: Expr, active: Expr) -> tuple[Expr, Expr, Expr]:
    """The sum of (a)_n x**n / ((b)_n n!), and its derivatives in a and in b."""
    zero, one = x.like(0.0), x.like(1.0)

    def step(n: Expr, c: Expr, da: Expr, db: Expr, s: Expr, sa: Expr, sb: Expr) -> list:
        top, bottom = a + (n - 1), avoid_zero(b + (n - 1))
        r = x / (bottom * n)
        da = (da * top + c) * r
        db = db * top * r - c * top * r / bottom
        c = c * top * r
        s, sa, sb = s + c, sa + da, sb + db
        sums = ((c, s), (da, sa), (db, sb))
        more = equal(one, zero)
        for term, total in sums:
            more = more | (abs(term) > abs(total) * (x.eps / 8))
        return [more | (n < 3), c, da, db, s, sa, sb]

    *_, s, sa, sb = repeat(step, [one, zero, zero, one, zero, zero], active)
    return s, sa, sb


def kummer(a: Expr, b: Expr, x: Expr, moved: str = "") -> Expr:
    """1F1(a; b; x), or its derivative in `moved`, a or b."""
    whole = (a <= 0) & is_whole(a)
    pole = (b <= 0) & is_whole(b) & ~((whole & (b <= a)) if not moved else equal(b, math.nan))
    # a polynomial keeps its terms, but not in the derivative in a, which is none
    negative = (x < 0) if moved == "a" else (x < 0) & ~whole
    sb = where(pole, 1.0, b)
    first, size = where(negative, sb - a, a), where(negative, -x, x)
    ends = (first <= 0) & is_whole(first)
    if moved:  # the asymptotic series below is for the value only
        _, sa, sb_ = kummer_series(first, sb, size, equal(size, size))
        by_a, by_b = where(negative, -sa, sa), where(negative, sa + sb_, sb_)
        out = where(negative, exp(x), 1.0) * (by_a if moved == "a" else by_b)
        return where(pole, math.nan, out)
    far = (abs(size) > 100) & ~ends & ((a * a + sb * sb) < 400)
    held = where(far, 1.0, size)
    s, *_ = kummer_series(first, sb, held, equal(held, held))
    scale = where(negative, exp(where(far, -1.0, x)), 1.0)
    out = where(far, kummer_far(a, sb, where(far, x, 200.0)), scale * s)
    return choose(out, (pole, math.inf))


def kummer_far(a: Expr, b: Expr, x: Expr) -> Expr:
    """1F1 for large |x|, by the larger of its asymptotic series (DLMF 13.7.2)."""
    up = x > 0
    p, q = where(up, b - a, a), where(up, 1 - a, a - b + 1)
    y = abs(x)
    total, term = x.like(1.0), x.like(1.0)
    for n in range(20):
        term = term * (p + n) * (q + n) / (y * (n + 1))
        total = total + term
    other = where(up, a, b - a)
    exponent = where(up, x, 0.0) + where(up, a - b, -a) * log(y)
    sign = gamma_sign(b) * gamma_sign(other)
    vanishes = (other <= 0) & is_whole(other)
    factor = exp(exponent + log_gamma(b) - log_gamma(where(vanishes, 1.0, other)))
    return where(vanishes, 0.0, total * factor * sign)


def gauss_series(a: Expr, b: Expr, c: Expr, x: Expr, active: Expr) -> Expr:
    """The sum of (a)_n (b)_n x**n / ((c)_n n!)."""

    def step(n: Expr, term: Expr, total: Expr) -> list:
        k = n - 1
        term = term * ((a + k) * (b + k) / (avoid_zero(c + k) * n)) * x
        total = total + term
        # what follows is a geometric series of ratio |x| at most, once n is large
        rest = where(abs(x) < 1, 1 - abs(x), 1.0)
        more = abs(term) > abs(total) * (x.eps / 8) * rest
        return [(more | (n < 3)) & ~equal(term, 0), term, total]

    return repeat(step, [x.like(1.0), x.like(1.0)], active, 20_000)[1]


def ratio_of_gammas(tops: tuple, bottoms: tuple) -> Expr:
    """The product of gamma over `tops`, over that over `bottoms`, where a pole gives 0."""
    exponent, sign, zero = 0.0, 1.0, None
    for x, direction in [(t, 1) for t in tops] + [(b, -1) for b in bottoms]:
        pole = (x <= 0) & is_whole(x)
        if direction < 0:
            zero = pole if zero is None else zero | pole
        x = where(pole, 1.0, x)
        exponent = exponent + direction * log_gamma(x)
        sign = sign * gamma_sign(x)
    return where(zero, 0.0, exp(exponent) * sign)


def gauss(a: Expr, b: Expr, c: Expr, x: Expr) -> Expr:
    """2F1(a, b; c; x) for x <= 1, by Pfaff's and Euler's transformations and that to 1 - x."""
    ends_a, ends_b = ((v <= 0) & is_whole(v) for v in (a, b))
    finite = ends_a | ends_b
    pole = (c <= 0) & is_whole(c) & ~((ends_a & (c <= a)) | (ends_b & (c <= b)))
    c = where(pole, 1.0, c)
    negative = (x < 0) & ~finite
    safe = where((x >= 1) & ~finite, 0.0, x)
    # Pfaff: (1 - x)**-a F(a, c - b; c; x / (x - 1))
    y = where(negative, safe / (safe - 1), safe)
    q = where(negative, c - b, b)
    factor = where(negative, power(1 - where(negative, safe, 0.0), -a), 1.0)
    s = c - a - q
    near = (y > 0.9) & ~finite & (abs(s - floor(s + 0.5)) > 0.001)
    # Euler: (1 - y)**s F(c - a, c - q; c; y), whose terms fall faster for s < 0
    euler = (s < 0) & ~near & ~finite & (y > 0)
    ea, eq = where(euler, c - a, a), where(euler, c - q, q)
    stretch = where(euler, power(1 - where(euler, y, 0.0), s), 1.0)
    direct = stretch * gauss_series(ea, eq, c, where(near, 0.0, y), equal(y, y))
    z = where(near, where(negative, 1 / (1 - safe), 1 - safe), 0.0)
    st = where(near, s, 0.5)
    first = ratio_of_gammas((c, st), (c - a, c - q)) * gauss_series(a, q, 1 - st, z, near)
    second = ratio_of_gammas((c, -st), (a, q)) * power(where(near, z, 1.0), st)
    second = second * gauss_series(c - a, c - q, 1 + st, z, near)
    out = factor * where(near, first + second, direct)
    t = c - a - b
    at_one = where(t > 0, ratio_of_gammas((c, where(t > 0, t, 1.0)), (c - a, c - b)), math.inf)
    return choose(
        out,
        ((x > 1) & ~finite, math.inf),
        (equal(x, 1) & ~finite, at_one),
        (pole & ~equal(x, 0), math.inf),
        (equal(x, 0), 1.0),
    )


hyp1f1_a_p = define_primitive(
    "hyp1f1_a",
    lambda a, b, x: kummer(a, b, x, "a"),
    [no_derivative("hyp1f1", n) for n in "abx"],
    "The derivative of 1F1 in a.",
)
hyp1f1_b_p = define_primitive(
    "hyp1f1_b",
    lambda a, b, x: kummer(a, b, x, "b"),
    [no_derivative("hyp1f1", n) for n in "abx"],
    "The derivative of 1F1 in b.",
)
hyp1f1_p, hyp1f1 = define_pair(
    "hyp1f1",
    kummer,
    [
        lambda t, y, a, b, x: t * hyp1f1_a_p.apply(a, b, x)[0],
        lambda t, y, a, b, x: t * hyp1f1_b_p.apply(a, b, x)[0],
        lambda t, y, a, b, x: t * (a / b) * hyp1f1_p.apply(a + 1, b + 1, x)[0],
    ],
    """Compute Kummer's hypergeometric function 1F1(a; b; x).

    It is the sum of `(a)_n x**n / ((b)_n n!)` over n. The sum ends where a is a whole number <= 0.
    For a whole b <= 0 it is inf, unless the sum ends before. Digits are lost where the terms
    cancel.

    All three operands have derivatives, a and b only the first. Those are NaN where their series
    overflow, for |x| above about 700.

    a: the parameter of the numerators.
    b: the parameter of the denominators.

    >>> 1.0, 2.0, jnp.array([0.0, 1.0])
    [1.     1.7183]
    """,
    strong=True,
)
hyp2f1_p, hyp2f1 = define_pair(
    "hyp2f1",
    gauss,
    [
        *[no_derivative("hyp2f1", n) for n in "abc"],
        lambda t, y, a, b, c, x: t * (a * b / c) * hyp2f1_p.apply(a + 1, b + 1, c + 1, x)[0],
    ],
    """Compute Gauss's hypergeometric function 2F1(a, b; c; x).

    It is the sum of `(a)_n (b)_n x**n / ((c)_n n!)` over n, and its continuation to x < -1. The sum
    ends where a or b is a whole number <= 0 (DLMF 15.2.4); otherwise the result is inf for x > 1.
    For a whole c <= 0 it is inf, unless the sum ends before or at once (DLMF 15.2.5). There
    SciPy has `(1 - x)**-b` if a = c. Only x has a derivative.

    a: the first parameter of the numerators.
    b: the second parameter of the numerators.
    c: the parameter of the denominators.

    >>> 1.0, 1.0, 2.0, jnp.array([-1.0, 0.0, 0.5])
    [0.6931 1.     1.3863]
    """,
    strong=True,
)
