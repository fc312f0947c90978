"""Write primitives/special/tables.json: Chebyshev series of the parts of special functions.

Run it where mpmath is installed: `python tools/make_special_tables.py`. Each function is
interpolated at Chebyshev points with 40 digits. Terms that a double sum cannot tell, below 2**-56
of the largest, are left out, as are the digits of the others below 1e-21 of it.
"""

import json
import math
from pathlib import Path

import mpmath as mp

mp.mp.dps = 40


def chebyshev(f, low, high, points=64):
    """The coefficients of f on [low, high] that matter."""
    angles = [mp.pi * (k + mp.mpf(1) / 2) / points for k in range(points)]
    values = [f(low + (high - low) * (1 + mp.cos(a)) / 2) for a in angles]
    coefficients = [
        2 * mp.fsum(v * mp.cos(j * a) for v, a in zip(values, angles, strict=True)) / points
        for j in range(points)
    ]
    coefficients[0] /= 2
    largest = max(map(abs, coefficients))
    while abs(coefficients[-1]) < largest * mp.mpf(2) ** -56:
        coefficients.pop()
    return coefficients


def limit(f, at, value):
    """f, whose value at `at` is a limit."""
    return lambda x: value if abs(x - at) < mp.mpf("1e-25") else f(x)


def erfcx(x):
    return mp.exp(x * x) * mp.erfc(x)


def erfc_inverse(y):
    """The x >= 0 whose erfc is y, by Newton's method on its logarithm."""
    x = mp.sqrt(max(-mp.log(y), mp.mpf("0.01")))
    for _ in range(60):
        value = erfcx(x)
        step = (mp.log(value) - x * x - mp.log(y)) * value * mp.sqrt(mp.pi) / 2
        x += step
        if abs(step) < mp.mpf("1e-36"):
            break
    return x


def dawson(x):
    return mp.exp(-x * x) * mp.erfi(x) * mp.sqrt(mp.pi) / 2


def auxiliary_f(x):
    """Return the auxiliary function of the sine integrals: f = (pi/2 - Si) cos + Ci sin."""
    with mp.workdps(60):
        return (mp.pi / 2 - mp.si(x)) * mp.cos(x) + mp.ci(x) * mp.sin(x)


def auxiliary_g(x):
    with mp.workdps(60):
        return (mp.pi / 2 - mp.si(x)) * mp.sin(x) - mp.ci(x) * mp.cos(x)


def fresnel_f(x):
    with mp.workdps(80):
        a = mp.pi * x * x / 2
        return (0.5 - mp.fresnels(x)) * mp.cos(a) - (0.5 - mp.fresnelc(x)) * mp.sin(a)


def fresnel_g(x):
    with mp.workdps(80):
        a = mp.pi * x * x / 2
        return (0.5 - mp.fresnelc(x)) * mp.cos(a) + (0.5 - mp.fresnels(x)) * mp.sin(a)


def at_infinity(f, value):
    """f(1 / t), whose value at t = 0 is given."""
    return lambda t: value if t < mp.mpf("1e-25") else f(1 / t)


def at_infinity_squared(f, value):
    """f(1 / sqrt(t))."""
    return at_infinity(lambda s: f(mp.sqrt(s)), value)


def scaled_bessel(order):
    """sqrt(x) exp(-x) times a modified Bessel function, in 1 / x."""
    f = lambda x: mp.sqrt(x) * mp.exp(-x) * mp.besseli(order, x)
    return at_infinity(f, 1 / mp.sqrt(2 * mp.pi))


def sine_part(f, power):
    """x**power f(x), an auxiliary function of the sine integrals, in 1 / x**2."""
    return at_infinity_squared(lambda x: x**power * f(x), 1)


def fresnel_part(f, power):
    """pi**power x**(2 power - 1) f(x), one of Fresnel's auxiliary functions, in 1 / x**4."""
    return at_infinity(
        lambda u: mp.pi**power * mp.root(u, 4) ** (2 * power - 1) * f(mp.root(u, 4)), 1
    )


def scaled_ei():
    """x exp(-x) Ei(x), in 1 / x."""
    return at_infinity(lambda x: x * mp.exp(-x) * mp.ei(x), 1)


def complementary(t):
    """erfcx(x) (1 + 2x), t = (x - 2) / (x + 2)."""
    if abs(t - 1) < mp.mpf("1e-25"):
        return 2 / mp.sqrt(mp.pi)
    x = 2 * (1 + t) / (1 - t)
    return erfcx(x) * (1 + 2 * x)


PSI_ZERO = mp.findroot(mp.digamma, 1.4616)
EI_ZERO = mp.findroot(mp.ei, 0.3725)


def lgamma_over(x):
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def series_si(t):
    x = mp.sqrt(t)
    return mp.si(x) / x if t else mp.mpf(1)


def series_cin(t):
    """(log x + gamma - Ci x) / x**2, in t = x**2."""
    x = mp.sqrt(t)
    return (mp.log(x) + mp.euler - mp.ci(x)) / t if t > mp.mpf("1e-20") else mp.mpf(1) / 4


def near_ei_zero(x):
    """(Ei x - log(x / x0)) / (x - x0)."""
    d = x - EI_ZERO
    return (mp.ei(x) - mp.log(x / EI_ZERO)) / d if abs(d) > mp.mpf("1e-20") else None


TABLES = {
    # sin(pi x) / x in x**2
    "SIN_PI": (lambda t: mp.sin(mp.pi * mp.sqrt(t)) / mp.sqrt(t), 0, 0.25),
    # log gamma
    "LGAMMA_1": (lgamma_over, 0.5, 1.5),
    "LGAMMA_2": (lgamma_over, 1.5, 3),
    "LGAMMA_3": (mp.loggamma, 3, 8),
    # (x - 1) zeta(x)
    "ZETA": (limit(lambda x: (x - 1) * mp.zeta(x), 1, mp.mpf(1)), 0, 2),
    # digamma(x) / (x - its zero), and digamma
    "DIGAMMA_1": (lambda x: mp.digamma(x) / (x - PSI_ZERO), 1, 2),
    "DIGAMMA_2": (mp.digamma, 2, 4),
    "DIGAMMA_3": (mp.digamma, 4, 8),
    # erfcx(x) (1 + 2x) in (x - 2) / (x + 2), for x >= 0; erf(x) / x in x**2
    "ERFCX": (complementary, -1, 1),
    "ERF": (lambda t: mp.erf(mp.sqrt(t)) / mp.sqrt(t), 0, 1),
    # the inverse of erf, over x, in x**2; the inverse of erfc in r = sqrt(-log y)
    "ERFINV": (lambda t: mp.erfinv(mp.sqrt(t)) / mp.sqrt(t), 0, 0.5625),
    "ERFCINV_1": (lambda r: erfc_inverse(mp.exp(-r * r)), 1.15, 2.5),
    "ERFCINV_2": (lambda r: erfc_inverse(mp.exp(-r * r)), 2.5, 7),
    "ERFCINV_3": (lambda r: erfc_inverse(mp.exp(-r * r)), 7, 28),
    # Dawson's integral over x in x**2; on intervals; x times it in 1 / x**2
    "DAWSON_1": (lambda t: dawson(mp.sqrt(t)) / mp.sqrt(t), 0, 1.5),
    "DAWSON_2": (dawson, 1.224744, 3),
    "DAWSON_3": (dawson, 3, 6),
    "DAWSON_4": (at_infinity_squared(lambda x: x * dawson(x), mp.mpf(1) / 2), 0, 1 / mp.mpf(36)),
    # (E1(x) + log x + gamma) / x for x <= 1; x exp(x) E1(x) in 1 / x
    "E1_1": (lambda x: (mp.e1(x) + mp.log(x) + mp.euler) / x, 0, 1),
    "E1_2": (at_infinity(lambda x: x * mp.exp(x) * mp.e1(x), 1), 0.25, 1),
    "E1_3": (at_infinity(lambda x: x * mp.exp(x) * mp.e1(x), 1), 0.0625, 0.25),
    "E1_4": (at_infinity(lambda x: x * mp.exp(x) * mp.e1(x), 1), 0, 0.0625),
    # (Ei(x) - log(x / x0)) / (x - x0), x0 its zero; x exp(-x) Ei(x)
    "EI_1": (near_ei_zero, 0, 3),
    "EI_2": (lambda x: x * mp.exp(-x) * mp.ei(x), 3, 6),
    "EI_3": (lambda x: x * mp.exp(-x) * mp.ei(x), 6, 12),
    "EI_4": (lambda x: x * mp.exp(-x) * mp.ei(x), 12, 24),
    "EI_5": (scaled_ei(), 1 / mp.mpf(48), 1 / mp.mpf(24)),
    "EI_6": (scaled_ei(), 0, 1 / mp.mpf(48)),
    # the dilogarithm of w, over w
    "DILOG": (lambda w: (mp.polylog(2, w) / w).real, -0.5, 0.5),
    # Si(x) / x and (log x + gamma - Ci(x)) / x**2 in x**2; the auxiliary functions in 1 / x**2
    "SI": (series_si, 0, 16),
    "CIN": (series_cin, 0, 16),
    "SICI_F1": (sine_part(auxiliary_f, 1), 1 / mp.mpf(64), 1 / mp.mpf(16)),
    "SICI_F2": (sine_part(auxiliary_f, 1), 0, 1 / mp.mpf(64)),
    "SICI_G1": (sine_part(auxiliary_g, 2), 1 / mp.mpf(64), 1 / mp.mpf(16)),
    "SICI_G2": (sine_part(auxiliary_g, 2), 0, 1 / mp.mpf(64)),
    # Fresnel's S(x) / x**3 and C(x) / x in x**4; the auxiliary functions in 1 / x**4
    "FRESNEL_S": (lambda t: mp.fresnels(mp.root(t, 4)) / mp.root(t, 4) ** 3, 0, 6.5536),
    "FRESNEL_C": (lambda t: mp.fresnelc(mp.root(t, 4)) / mp.root(t, 4), 0, 6.5536),
    "FRESNEL_F1": (fresnel_part(fresnel_f, 1), 0.03, 1 / mp.mpf("6.5536")),
    "FRESNEL_F2": (fresnel_part(fresnel_f, 1), 0, 0.03),
    "FRESNEL_G1": (fresnel_part(fresnel_g, 2), 0.03, 1 / mp.mpf("6.5536")),
    "FRESNEL_G2": (fresnel_part(fresnel_g, 2), 0, 0.03),
    # exp(-x) I0(x), exp(-x) I1(x) / x, and both times sqrt(x), in 1 / x
    "I0E_1": (lambda x: mp.exp(-x) * mp.besseli(0, x), 0, 4),
    "I0E_2": (lambda x: mp.exp(-x) * mp.besseli(0, x), 4, 10),
    "I0E_3": (scaled_bessel(0), 0, 0.1),
    "I1E_1": (limit(lambda x: mp.exp(-x) * mp.besseli(1, x) / x, 0, mp.mpf(1) / 2), 0, 4),
    "I1E_2": (lambda x: mp.exp(-x) * mp.besseli(1, x), 4, 10),
    "I1E_3": (scaled_bessel(1), 0, 0.1),
}  # fmt: skip


def main():
    lines = []
    for name, (f, low, high) in TABLES.items():
        low, high = mp.mpf(low), mp.mpf(high)
        coefficients = chebyshev(f, low, high)
        size = mp.fsum(map(abs, coefficients))
        mono = mp.fsum(map(abs, monomial(coefficients)))
        print(f"{name} {len(coefficients)} terms, growth {float(mono / size):.1f}")
        places = 21 - math.floor(math.log10(max(map(abs, coefficients))))
        rounded = [round(float(c), places) for c in coefficients]
        lines.append(f'"{name}": {json.dumps([float(low), float(high), rounded])}')
    home = Path(__file__).parents[1] / "src/weft/primitives/special/tables.json"
    home.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def monomial(coefficients):
    """The same polynomial in powers."""
    one, two = [mp.mpf(0)], [mp.mpf(0)]
    for c in reversed(coefficients[1:]):
        new = [mp.mpf(0)] + [2 * v for v in one]
        for i, v in enumerate(two):
            new[i] -= v
        new[0] += c
        one, two = new, one
    out = [mp.mpf(0), *one]
    for i, v in enumerate(two):
        out[i] -= v
    out[0] += coefficients[0]
    return out


if __name__ == "__main__":
    main()
