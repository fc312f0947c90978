"""Special functions, the same in mpmath, and generators of points over their whole ranges.

The points of golden/special.json are float32 numbers of middle size. These are float64 numbers by
their exponents: the least and the largest, next to poles, zeros and the ends of the range.
"""

import mpmath as mp
import numpy as np

from weft.scipy import special


def sized(low, high):
    """Points whose logarithms to base 10 are uniform, half of them of middle size."""

    def draw(rng, n):
        near = 10.0 ** rng.uniform(max(low, -4), min(high, 4), n)
        return np.where(rng.random(n) < 0.5, 10.0 ** rng.uniform(low, high, n), near)

    return draw


def signed(low, high):
    """The same, of both signs."""
    return lambda rng, n: sized(low, high)(rng, n) * rng.choice([-1, 1], n)


def uniform(low, high):
    """Points of an interval."""
    return lambda rng, n: rng.uniform(low, high, n)


def whole(low, high):
    """Whole numbers."""
    return lambda rng, n: rng.integers(low, high, n) + 0.0


def near_whole(low, high):
    """Points next to whole numbers, from both sides."""
    return lambda rng, n: (
        rng.integers(low, high, n) + 10.0 ** rng.uniform(-14, -0.3, n) * rng.choice([-1, 1], n)
    )


def mix(*draws):
    """Points of several generators."""
    return lambda rng, n: np.choose(
        rng.integers(0, len(draws), n), [draw(rng, n) for draw in draws]
    )


PART = mix(sized(-300, 0), uniform(0, 1), lambda rng, n: 1 - 10.0 ** rng.uniform(-15, 0, n))


def normal(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def log_normal(x):
    return mp.log1p(-normal(-x)) if x > 0 else mp.log(normal(x))


def lower(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def upper(a, x):
    return mp.gammainc(a, x, mp.inf, regularized=True)


def log_beta(a, b):
    return mp.log(abs(mp.beta(a, b)))


def general_integral(n, x):
    with mp.workdps(200):  # mpmath's has 5 digits of 50 at (48, 273)
        return mp.expint(n, x)


def box_cox(log, x, power):
    return mp.expm1(power * log(x)) / power


def log_multigamma(a):
    return 3 * mp.log(mp.pi) + sum(mp.loggamma(a - mp.mpf(j) / 2) for j in range(4))


POSITIVE = mix(sized(-300, 3), uniform(0, 10))
# name: (the function, the same in mpmath, units in the last place, generators of its arguments)
FUNCTIONS = {
    "digamma": (
        special.digamma, lambda x: mp.psi(0, x), 8,
        mix(signed(-300, 14), near_whole(-30, 5), uniform(1.4, 1.5)),
    ),
    "gamma": (
        special.gamma, mp.gamma, 8,
        mix(signed(-300, 2.2), near_whole(-160, 170), uniform(-170, 171)),
    ),
    "gammaln": (
        special.gammaln, lambda x: mp.log(abs(mp.gamma(x))), 40,
        mix(signed(-300, 15), near_whole(-60, 5), sized(-300, 300)),
    ),
    "factorial": (special.factorial, mp.factorial, 5, mix(sized(-300, 2.2), near_whole(1, 170))),
    "erf": (special.erf, mp.erf, 4, signed(-300, 1)),
    "erfc": (special.erfc, mp.erfc, 5, mix(signed(-300, 1.5), uniform(0, 27))),
    "erfcx": (special.erfcx, lambda x: mp.erfc(x) * mp.exp(x * x), 6, signed(-300, 1.4)),
    "erfinv": (special.erfinv, mp.erfinv, 5, PART),
    "expi": (special.expi, mp.ei, 8, mix(signed(-300, 2.8), uniform(0.36, 0.38))),
    "exp1": (special.exp1, mp.e1, 6, sized(-300, 2.8)),
    "expit": (special.expit, lambda x: 1 / (1 + mp.exp(-x)), 4, signed(-300, 2.85)),
    "logit": (
        special.logit, lambda x: mp.log(x) - mp.log1p(-x), 5, mix(PART, uniform(0.4, 0.6))
    ),
    "entr": (special.entr, lambda x: -x * mp.log(x), 4, mix(sized(-300, 300), uniform(0.9, 1.1))),
    "dawsn": (
        special.dawsn, lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), 5,
        signed(-300, 2),
    ),
    "ndtr": (special.ndtr, normal, 6, mix(signed(-300, 1.5), uniform(-38, 9))),
    "log_ndtr": (special.log_ndtr, log_normal, 6, mix(signed(-300, 2), uniform(-40, 9))),
    "i0": (special.i0, lambda x: mp.besseli(0, x), 6, signed(-300, 2.8)),
    "i1": (special.i1, lambda x: mp.besseli(1, x), 6, signed(-300, 2.8)),
    "i0e": (special.i0e, lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), 5, signed(-300, 5)),
    "i1e": (special.i1e, lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), 5, signed(-300, 5)),
    "spence": (
        special.spence, lambda x: mp.polylog(2, 1 - x), 5,
        mix(sized(-300, 30), uniform(0.9, 1.1), uniform(0, 4)),
    ),
    "fresnel": (lambda x: special.fresnel(x)[0], mp.fresnels, 5, signed(-100, 6)),
    "sici": (lambda x: special.sici(x)[0], mp.si, 5, signed(-300, 6)),
    "zeta": (
        special.zeta, mp.zeta, 12,
        mix(uniform(1, 40), signed(-300, 1.5), uniform(-100, 1), near_whole(1, 2)),
    ),
    "beta": (special.beta, mp.beta, 6, POSITIVE, POSITIVE),
    "betaln": (special.betaln, log_beta, 6, *2 * [mix(sized(-300, 10), uniform(0, 10))]),
    "gammainc": (special.gammainc, lower, 30, sized(-10, 4), sized(-10, 4)),
    "gammaincc": (special.gammaincc, upper, 60, sized(-10, 4), sized(-10, 4)),
    "betainc": (
        special.betainc, lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True), 200,
        sized(-3, 2.5), sized(-3, 2.5), PART,
    ),
    "expn": (
        lambda n, x: special.expn(n.astype(int), x), general_integral, 30, whole(0, 60),
        sized(-10, 2.5),
    ),
    "polygamma": (
        lambda n, x: special.polygamma(n.astype(int), x), lambda n, x: mp.psi(int(n), x), 12,
        whole(0, 20), mix(sized(-8, 8), uniform(0, 20)),
    ),
    "poch": (
        special.poch, mp.rf, 8, mix(sized(-5, 4), uniform(-5, 20)),
        mix(uniform(-5, 5), signed(-10, 1)),
    ),
    "xlogy": (
        special.xlogy, lambda x, y: x * mp.log(y), 4, signed(-100, 100),
        mix(sized(-300, 300), uniform(0.9, 1.1)),
    ),
    "xlog1py": (
        special.xlog1py, lambda x, y: x * mp.log1p(y), 4, signed(-100, 100),
        mix(sized(-300, 300), uniform(-1, 0)),
    ),
    "rel_entr": (
        special.rel_entr, lambda x, y: x * mp.log(x / y), 6, sized(-100, 100), sized(-100, 100)
    ),
    "kl_div": (
        special.kl_div, lambda x, y: x * mp.log(x / y) - x + y, 4, sized(-300, 300),
        sized(-300, 300),
    ),
    "boxcox": (
        special.boxcox, lambda x, p: box_cox(mp.log, x, p), 6,
        mix(sized(-30, 30), uniform(0.9, 1.1)), signed(-20, 1),
    ),
    "boxcox1p": (
        special.boxcox1p, lambda x, p: box_cox(mp.log1p, x, p), 8,
        mix(sized(-30, 30), uniform(-0.9, 1.1)), signed(-20, 1),
    ),
    "multigammaln": (
        lambda a: special.multigammaln(a, 4), log_multigamma, 5,
        lambda rng, n: 1.5 + 10.0 ** rng.uniform(-10, 8, n),
    ),
}  # fmt: skip
