"""Pairs of floats against fractions, and the functions that formulas are made of."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from weft.core.primitive import Primitive
from weft.options import config
from weft.primitives.expr import Expr
from weft.primitives.special import formula as f
from weft.primitives.special.formula import Pair

RNG = np.random.default_rng(0)
X = RNG.normal(size=40) * 10.0 ** RNG.integers(-6, 6, 40)
Y = RNG.normal(size=40) * 10.0 ** RNG.integers(-6, 6, 40)
DIGITS = {np.float32: 24, np.float64: 53}


class Several(Primitive):
    """The values of Exprs that a function makes of one for each operand."""

    name, multiple_results = "several", True

    def abstract_eval(self, *avals, fun, count, eps):
        return [avals[0]] * count

    def lower(self, hlo, *values, fun, count, eps):
        return [x.value for x in fun(*(Expr(hlo, v, eps) for v in values))]


def run(dtype, fun, count, *xs, eps=None):
    """Return fun(*Exprs), a list of `count`, computed in a dtype with the accuracy `eps`."""
    with config.scope(enable_x64=True):
        eps = float(np.finfo(dtype).eps) if eps is None else eps
        xs = [np.asarray(x, dtype) for x in xs]
        outs = Several().apply(*xs, fun=fun, count=count, eps=eps)
        return [np.asarray(y).astype(np.float64) for y in outs]


def exact(hi, lo=0.0):
    return [Fraction(float(a)) + Fraction(float(b)) for a, b in np.broadcast(hi, lo)]


@pytest.mark.parametrize("dtype", DIGITS)
def test_pairs_have_twice_the_digits(dtype):
    """In each result, hi is the float nearest to hi + lo."""
    x, y = X.astype(dtype), Y.astype(dtype)
    small = np.finfo(dtype).eps / 8
    u, v = (x * small * np.sign(np.roll(x, 1))).astype(dtype), (y * small).astype(dtype)
    third = Fraction(1, 3 if dtype == np.float64 else 4)  # constants have two parts in float64
    ways = [
        (lambda a, b: a + b, 0),
        (lambda a, b: a - b, 0),
        (lambda a, b: a * b, 3),
        (lambda a, b: a / b, 4),
        (lambda a, b: 3 - b, 0),
        (lambda a, b: 2 * a + third, 0),
        (lambda a, b: 1 / b, 4),
        (lambda a, b: -a, 0),
    ]

    def program(x, y, u, v):
        made = []
        for (hi, lo), (other, rest) in (((x, 0.0), (y, 0.0)), ((x, u), (y, v)), ((x, u), (y, 0.0))):
            a, b = f.renormalize(hi, lo), f.renormalize(other, rest)
            made += [way(a, b) for way, _ in ways]
        return [
            part if isinstance(part, Expr) else x.like(part) for p in made for part in (p.hi, p.lo)
        ]

    outs = iter(run(dtype, program, 3 * 2 * len(ways), x, y, u, v))
    zero = 0 * x
    for first, second in (((x, zero), (y, zero)), ((x, u), (y, v)), ((x, u), (y, zero))):
        for way, noise in ways:
            hi, lo = next(outs), next(outs)
            np.testing.assert_array_equal((hi.astype(dtype) + lo.astype(dtype)), hi)
            operands = list(zip(exact(*first), exact(*second), strict=True))
            for got, (a, b) in zip(exact(hi, lo), operands, strict=True):
                want = way(a, b)
                size = max(abs(want), *([abs(a), abs(b), 1] if not noise else [0]))
                bound = Fraction(1, 2 ** (2 * DIGITS[dtype] - 5))
                assert abs(got - want) <= size * bound * max(noise, 1)


def test_where_less_is_wanted_pairs_have_no_second_part():
    def program(x, y):
        a, b = f.to_pair(x), f.to_pair(y)
        for p in (a + b, a - b, a * b, a / b, 1.0 / a, f.renormalize(x, y), f.log_pair(x)):
            assert type(p.lo) is float and p.lo == 0
        assert f.exact_sum(x, y)[1] == f.exact_product(x, y)[1] == 0.0
        return [(a + b).value, (a * b).value, (a / b).value, f.log_pair(Pair(x, y)).value]

    outs = run(np.float64, program, 4, abs(X), abs(Y), eps=2.0**-23)
    wants = abs(X) + abs(Y), abs(X * Y), abs(X / Y), np.log(abs(X) + abs(Y))
    for got, want in zip(outs, wants, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-15)


def test_logarithms_and_exponentials_of_pairs():
    dtype = np.float64  # whose log 2 is written in two parts
    x = np.abs(X).astype(dtype)
    x[:4] = 1, 2, 1 + np.finfo(dtype).eps, 0.70710678
    u = (x * np.finfo(dtype).eps / 8).astype(dtype)
    small = np.float64(np.clip(X, -20, 20)).astype(dtype)

    def program(x, u, small):
        m, e = f.split_exponent(Pair(x, u))
        plain, pair = f.log_pair(x), f.log_pair(Pair(x, u))
        turned = f.exp_pair(Pair(small, small * (x.eps / 8)))
        return [m.hi, m.lo, e, plain.hi, plain.lo, pair.hi, pair.lo, turned]

    m, rest, e, *logs, turned = run(dtype, program, 8, x, u, small)
    assert ((m >= np.float32(0.70710677)) & (m <= np.float32(1.4142137))).all()
    assert exact(m * 2.0**e, rest * 2.0**e) == exact(x, u)
    with mpmath.workdps(60):
        to_mpf = lambda q: mpmath.mpf(q.numerator) / q.denominator
        for (hi, lo), operands in (
            ((logs[0], logs[1]), exact(x)),
            ((logs[2], logs[3]), exact(x, u)),
        ):
            for got, q in zip(exact(hi, lo), operands, strict=True):
                want = mpmath.log(to_mpf(q))
                assert abs(to_mpf(got) - want) <= 2.0**-85 * abs(want)
        for got, s in zip(turned, small, strict=True):
            want = mpmath.exp(mpmath.mpf(float(s)) * (1 + np.finfo(dtype).eps / 8))
            assert abs(got - want) <= 8 * np.finfo(dtype).eps * want


def test_functions_of_one_operand():
    x = np.concatenate([np.arange(-6, 7) / 2, X[abs(X) < 100], [0.0, 1e9, 1e9 + 1, -1e9 + 1]])

    def program(x):
        whole = f.nearest(x)
        return [
            f.sin_pi(x),
            f.cos_pi(x),
            f.where(f.is_odd(whole), x.like(1.0), x.like(0.0)),
            f.log1p(abs(x)),
            f.log1p(x.like(-0.4)),
            x.polynomial((1.0, -2.0, 0.5)),
            f.minimum(x, 1.0) + f.maximum(x, 2.0),
            f.choose(x, (x > 1, x.like(5.0)), (x > 3, 7.0)),
        ]

    sine, cosine, odd, log, log_of, cubic, ends, chosen = run(np.float64, program, 8, x)
    near = x - 2 * np.round(x / 2)
    np.testing.assert_allclose(sine, np.sin(np.pi * near), atol=4e-16)
    np.testing.assert_allclose(cosine, np.cos(np.pi * near), atol=4e-16)
    assert (sine[x == np.round(x)] == 0).all() and (cosine[abs(near) == 0.5] == 0).all()
    np.testing.assert_array_equal(odd, np.round(x) % 2)
    np.testing.assert_allclose(log, np.log1p(abs(x)), rtol=3e-16)
    np.testing.assert_allclose(log_of, np.log1p(-0.4), rtol=3e-16)
    np.testing.assert_allclose(cubic, 1 - 2 * x + 0.5 * x * x, rtol=1e-15, atol=1e-15)
    np.testing.assert_array_equal(ends, np.minimum(x, 1) + np.maximum(x, 2))
    np.testing.assert_array_equal(chosen, np.select([x > 3, x > 1], [7, 5], x))


def test_loops_run_element_by_element_and_end():
    """An element keeps its state once its test fails; the limit bounds the steps."""

    def program(x):
        halve = lambda n, v, count: [v > 2, v * 0.5, count + n.like(1.0)]
        ended = f.repeat(halve, [x, x.like(0.0)], x > 1)
        forever = f.repeat(lambda n, v: [x.compare("EQ", x), n], [x.like(0.0)], x > 0, 7)
        return [*ended, *forever]

    x = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 100.0, -1.0])
    value, count, last = run(np.float64, program, 3, x)
    want = []
    for v in x:
        steps, active = 0, v > 1
        while active:
            active, v, steps = v > 2, v / 2, steps + 1
        want.append((v, steps))
    np.testing.assert_array_equal(np.stack([value, count], 1), want)
    np.testing.assert_array_equal(last, np.where(x > 0, 7, 0))


def test_chebyshev_series_as_powers():
    """They equal Chebyshev's own sums up to rounding; beyond the interval, the value at its end."""
    table = 1.0, 3.0, (0.5, -0.25, 2.0, 1e-3, 1e-12)
    x = np.array([-5.0, 1.0, 1.7, 2.0, 2.9, 3.0, 9.0])
    (got,) = run(np.float64, lambda x: [f.series(x, table)], 1, x)
    want = np.polynomial.chebyshev.chebval(np.clip(x, 1, 3) - 2, table[2])
    np.testing.assert_allclose(got, want, rtol=1e-15)
    assert len(f.powers(table[2], 2.0**-52)) == 5 and len(f.powers(table[2], 2.0**-23)) == 4
    np.testing.assert_allclose(
        f.powers(table[2], 2.0**-52), np.polynomial.chebyshev.cheb2poly(table[2]), rtol=1e-15
    )
