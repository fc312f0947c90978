"""Write tests/golden/special.json: values of special functions to 17 digits, by mpmath.

Run it where mpmath and NumPy are installed: `python tools/make_special.py`. Arguments are
float32 numbers: one table serves float32 and float64. tests/scipy/special_accuracy.py reads it.
"""

import json
from pathlib import Path

import mpmath as mp
import numpy as np

mp.mp.dps = 50
RANDOM = np.random.RandomState(0)
MORE = np.random.RandomState(1)  # of its own, so that other points stay where they are
HALF = mp.mpf(1) / 2


def line(low, high, n=60):
    return RANDOM.uniform(low, high, n)


def scale(low, high, n=60):
    """Numbers whose logarithm to base 10 is spread from low to high."""
    return 10.0 ** RANDOM.uniform(low, high, n)


def dense(low, high, n=300):
    """Points where the error changes quickly: its largest value needs many of them."""
    return MORE.uniform(low, high, n)


def both(*parts):
    return np.concatenate(parts)


def normal(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def quantile(p):
    if p > 1e-6:
        return mp.sqrt(2) * mp.erfinv(2 * p - 1)
    return mp.findroot(lambda x: mp.log(normal(x)) - mp.log(p), -mp.sqrt(-2 * mp.log(p)))


def dawson(x):
    with mp.workdps(60):
        return mp.exp(-x * x) * mp.erfi(x) * mp.sqrt(mp.pi) / 2


def owen(h, a):
    integrand = lambda x: mp.exp(-h * h * (1 + x * x) / 2) / (1 + x * x)
    return mp.quad(integrand, [0, a / 4, a / 2, a]) / (2 * mp.pi)


def lower_gamma(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def upper_gamma(a, x):
    return mp.gammainc(a, x, mp.inf, regularized=True)


A = scale(-2, 2.5, 150)
X = A * both(scale(-2, 0.5, 100), line(0.8, 1.2, 50))
P, Q = scale(-1.5, 2, 120), scale(-1.5, 2, 120)
NEAR = np.clip(P / (P + Q) * RANDOM.uniform(0.7, 1.3, 120), 1e-4, 0.999)
CASES = {
    "bessel_jn": (lambda x: mp.besselj(2, x), line(0, 20)),
    "beta": (mp.beta, scale(-2, 1.3), scale(-2, 1.3)),
    "betainc": (lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True), P, Q, NEAR),
    "betaln": (lambda a, b: mp.log(mp.beta(a, b)), scale(-2, 4), scale(-2, 4)),
    "boxcox": (lambda x, k: (x**k - 1) / k, scale(-3, 3), both(line(-2, 2, 30), scale(-8, -1, 30))),
    "boxcox1p": (
        lambda x, k: ((1 + x) ** k - 1) / k,
        scale(-8, 3),
        both(line(-2, 2, 30), scale(-8, -1, 30)),
    ),
    "comb": (mp.binomial, line(6, 50), line(0, 6)),
    "dawsn": (dawson, both(line(-10, 10), scale(-5, 1))),
    "digamma": (mp.digamma, both(line(0, 12), line(1.4, 1.5, 20), scale(-5, 5))),
    "entr": (lambda x: -x * mp.log(x), both(line(0, 3), scale(-20, 5))),
    "erf": (mp.erf, both(line(-5, 5), scale(-20, 0))),
    "erfc": (mp.erfc, both(line(-5, 5), line(5, 9.2))),
    "erfcinv": (
        lambda p: mp.erfinv(1 - p),
        both(line(0.02, 1.98), scale(-20, -1), dense(0.1, 1.9)),
    ),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), both(line(-5, 5), scale(-5, 3))),
    "erfinv": (mp.erfinv, both(line(-1, 1), scale(-20, -1), 1 - scale(-7, -1), dense(-1, 1))),
    "exp1": (mp.e1, both(line(0, 5), scale(-10, 1.9))),
    "expi": (mp.ei, both(line(-5, 5), line(0.35, 0.4), scale(-10, 1.9))),
    "expit": (lambda x: 1 / (1 + mp.exp(-x)), line(-80, 80)),
    "expn": (mp.expint, np.floor(line(0, 40)), scale(-3, 1.8)),
    "factorial": (mp.factorial, both(np.arange(30.0), line(0, 33))),
    "fresnel.0": (mp.fresnels, both(line(-6, 6), scale(-5, 3))),
    "fresnel.1": (mp.fresnelc, both(line(-6, 6), scale(-5, 3))),
    "gamma": (mp.gamma, both(line(-5, 5), line(-30, 34), scale(-10, 0))),
    "gammainc": (lower_gamma, A, X),
    "gammaincc": (upper_gamma, A, X),
    "gammaln": (mp.loggamma, both(line(0, 10), line(0.9, 2.1), scale(-20, 30))),
    "hyp1f1": (mp.hyp1f1, line(0, 5), line(0.5, 6), line(-30, 30)),
    "hyp2f1": (mp.hyp2f1, line(0, 5), line(0.5, 6), line(0.5, 8), line(-5, 0.97)),
    "i0": (lambda x: mp.besseli(0, x), line(-80, 80)),
    "i0e": (lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), both(line(-12, 12), scale(-5, 3))),
    "i1": (lambda x: mp.besseli(1, x), both(line(-80, 80), scale(-8, 0))),
    "i1e": (lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), both(line(-12, 12), scale(-5, 3))),
    "kl_div": (lambda p, q: p * mp.log(p / q) - p + q, scale(-3, 3), scale(-3, 3)),
    "log_ndtr": (
        lambda x: mp.log(normal(x)) if x < 5 else mp.log1p(-normal(-x)),
        both(line(-6, 6), -scale(0, 4)),
    ),
    "logit": (
        lambda p: mp.log(p / (1 - p)),
        both(line(0, 1), line(0.49, 0.51), scale(-20, -1), dense(0, 1)),
    ),
    "multigammaln": (
        lambda a: mp.log(mp.pi) * 1.5 + mp.fsum(mp.loggamma(a - k * HALF) for k in range(3)),
        line(3, 50),
    ),
    "ndtr": (normal, both(line(-6, 6), line(-13, -6))),
    "ndtri": (quantile, both(line(0, 1), scale(-20, -1), dense(0, 1))),
    "owens_t": (owen, line(-4, 4), line(-3, 3)),
    "poch": (mp.rf, both(line(-5, 5, 30), line(0, 20, 30)), both(line(-3, 3, 30), line(0, 9, 30))),
    "polygamma": (lambda m, x: mp.psi(int(m), x), np.floor(line(0, 6)), scale(-2, 3)),
    "rel_entr": (lambda p, q: p * mp.log(p / q), scale(-3, 3), scale(-3, 3)),
    "sici.0": (mp.si, both(line(-20, 20), scale(-5, 4))),
    "sici.1": (lambda x: mp.ci(abs(x)), both(line(-20, 20), scale(-5, 4))),
    "spence": (lambda x: mp.polylog(2, 1 - x).real, both(line(0, 3), scale(-5, 5))),
    "xlog1py": (
        lambda x, y: x * mp.log1p(y),
        line(-5, 5),
        both(line(-0.9, 3, 30), scale(-9, 5, 30)),
    ),
    "xlogy": (lambda x, y: x * mp.log(y), line(-5, 5), scale(-9, 9)),
    "zeta": (mp.zeta, line(1.01, 20), scale(-2, 1)),
    "zeta.riemann": (mp.zeta, both(line(-10, 10), line(-20, 20))),
}


def main():
    out = {}
    for name, (reference, *grids) in CASES.items():
        grids = [np.float32(g) for g in grids]
        values = []
        for point in zip(*grids, strict=True):
            with mp.workdps(50):
                values.append(float(mp.re(reference(*[mp.mpf(float(v)) for v in point]))))
        out[name] = [[*map(float, map(str, g))] for g in grids] + [values]
        print(name, len(values))
    text = json.dumps(out).replace('], "', '],\n"')
    (Path(__file__).parents[1] / "tests/golden/special.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
