"""The accuracy of the elementary functions, in units in the last place, against mpmath.

`python -m tests.numpy.elementary_accuracy` writes their table in docs/special.md. Points are
distributed over the whole domain of a function, by their exponents, and near its zeros, its poles
and the ends of its branches. Errors of complex results are relative to their modulus.
"""

import itertools
from fractions import Fraction
from pathlib import Path

import mpmath as mp
import numpy as np

import weft
import weft.numpy as jnp
from weft import lax, nn

DOC = Path(__file__).parents[2] / "docs/special.md"
MARK = "<!-- made by tests/numpy/elementary_accuracy.py -->\n"
NEXT = "\n## Special functions\n"
DTYPES = ("float32", "float64", "complex64", "complex128")
PI = np.pi
mp.mp.prec = 400


def find_arctan(z):
    """The arc tangent; mpmath's takes logarithms near 1."""
    exact = min(abs(z.real), abs(z.imag)) > 1e-20 if isinstance(z, mp.mpc) else True
    with mp.workprec(mp.mp.prec if exact else 2500):
        return mp.atan(z)


def find_remainder(x, y):
    """The remainder, which takes the exponents of both to be exact."""
    found = Fraction(float(x)) % Fraction(float(y))
    return mp.mpf(found.numerator) / found.denominator


# name: (the function, the same in mpmath, points that are hard, by kind: "r" real, "c" complex too)
UNARY = {
    "exp": (jnp.exp, mp.exp, [], "c"),
    "exp2": (jnp.exp2, lambda x: mp.mpf(2) ** x, [], "r"),
    "expm1": (jnp.expm1, mp.expm1, [2j * PI], "c"),
    "log": (jnp.log, mp.log, [1, 1j, -1], "c"),
    "log2": (jnp.log2, lambda z: mp.log(z) / mp.log(2), [1, 1j], "c"),
    "log10": (jnp.log10, lambda z: mp.log(z) / mp.log(10), [1, 1j], "c"),
    "log1p": (jnp.log1p, mp.log1p, [-1, -2], "c"),
    "sqrt": (jnp.sqrt, mp.sqrt, [], "c"),
    "cbrt": (jnp.cbrt, lambda x: mp.sign(x) * mp.cbrt(abs(x)), [], "r"),
    "rsqrt": (lax.rsqrt, lambda z: 1 / mp.sqrt(z), [], "c"),
    "square": (jnp.square, lambda z: z * z, [], "c"),
    "reciprocal": (jnp.reciprocal, lambda z: 1 / z, [], "c"),
    "sin": (jnp.sin, mp.sin, [PI, 100 * PI, 1e5 * PI], "c"),
    "cos": (jnp.cos, mp.cos, [PI / 2, 1e4 * PI + PI / 2], "c"),
    "tan": (jnp.tan, mp.tan, [PI / 2, PI, 1e4 * PI], "c"),
    "arcsin": (jnp.arcsin, mp.asin, [1, -1], "c"),
    "arccos": (jnp.arccos, mp.acos, [1, -1], "c"),
    "arctan": (jnp.arctan, find_arctan, [1, 1j, -1j], "c"),
    "sinc": (jnp.sinc, mp.sincpi, [1, 2, 100], "r"),
    "sinh": (jnp.sinh, mp.sinh, [1j * PI], "c"),
    "cosh": (jnp.cosh, mp.cosh, [1j * PI / 2], "c"),
    "tanh": (jnp.tanh, mp.tanh, [1j * PI / 2, 1j * PI], "c"),
    "arcsinh": (jnp.arcsinh, mp.asinh, [1j, -1j], "c"),
    "arccosh": (jnp.arccosh, mp.acosh, [1, -1], "c"),
    "arctanh": (jnp.arctanh, lambda z: find_arctan(z * 1j) / 1j, [1, -1], "c"),
    "abs": (jnp.abs, abs, [], "c"),
    "i0": (jnp.i0, lambda x: mp.besseli(0, x), [], "r"),
    "sigmoid": (nn.sigmoid, lambda x: 1 / (1 + mp.exp(-x)), [], "r"),
    "softplus": (nn.softplus, lambda x: mp.log1p(mp.exp(x)), [], "r"),
    "log_sigmoid": (nn.log_sigmoid, lambda x: -mp.log1p(mp.exp(-x)), [], "r"),
    "deg2rad": (jnp.deg2rad, lambda x: x * mp.pi / 180, [], "r"),
    "rad2deg": (jnp.rad2deg, lambda x: x * 180 / mp.pi, [], "r"),
}
BINARY = {
    "power": (jnp.power, lambda x, y: x**y),
    "arctan2": (jnp.arctan2, mp.atan2),
    "hypot": (jnp.hypot, mp.hypot),
    "logaddexp": (jnp.logaddexp, lambda x, y: mp.log(mp.exp(x) + mp.exp(y))),
    "logaddexp2": (jnp.logaddexp2, lambda x, y: mp.log(mp.mpf(2) ** x + mp.mpf(2) ** y, 2)),
    "remainder": (jnp.remainder, find_remainder),
    "divide": (jnp.divide, lambda x, y: x / y),
}
FUNCTIONS = {
    dtype: [n for n, row in UNARY.items() if row[3] == "c"]
    if dtype[0] == "c"
    else [*UNARY, *BINARY]
    for dtype in DTYPES
}


def make_points(name, dtype):
    """The operands of a function, as arrays of `dtype`."""
    rng = np.random.default_rng(0)
    real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    wide = {"float32": 37, "float64": 300}[real]
    eps = float(np.finfo(real).eps)
    sizes = np.concatenate([
        10.0 ** rng.uniform(-wide, wide, 40), 10.0 ** rng.uniform(-4, 3, 60),
        1 + 10.0 ** -np.arange(1.0, 7),
    ])  # fmt: skip
    signed = np.concatenate([sizes, -sizes])
    if name in BINARY:
        some = np.concatenate(
            [rng.choice(signed, 60), [1.0, 2, 0.5, 1 + 4 * eps, 1 - 4 * eps, 3, 700]]
        )
        pairs = np.array([*itertools.product(some, some)])[rng.permutation(len(some) ** 2)[:400]]
        if name == "power":
            pairs[:, 0] = abs(pairs[:, 0])
        return [pairs[:, 0].astype(real), pairs[:, 1].astype(real)]
    hard = np.array([
        p + sign * d for p in UNARY[name][2] for sign in (1, -1, 1j, -1j)
        for d in [0, *10.0 ** -np.arange(1.0, 17), eps, 4 * eps]
        if dtype[0] == "c" or np.imag(p + sign * d) == 0
    ])  # fmt: skip
    if dtype[0] != "c":
        return [np.concatenate([signed, np.real(hard)]).astype(real)]
    near = 10.0 ** rng.uniform(-3, 1.5, (2, 120)) * rng.choice([-1, 1], (2, 120))
    far = rng.choice(signed, (2, 120))
    z = np.concatenate([near[0] + 1j * near[1], far[0] + 1j * far[1], hard])
    z = z.astype(dtype)
    return [z[(z.imag != 0) & (z.real != 0)]]  # on a cut mpmath may choose the other side


def find_exact(name, xs):
    """The exact values, None where mpmath has none."""
    exact = BINARY[name][1] if name in BINARY else UNARY[name][1]
    to_mp = lambda v: (
        mp.mpc(float(v.real), float(v.imag)) if np.iscomplexobj(v) else mp.mpf(float(v))
    )
    found = []
    for row in zip(*xs, strict=True):
        try:
            y = exact(*map(to_mp, row))
            real = not np.iscomplexobj(xs[0])
            found.append(None if real and mp.im(y) != 0 or not mp.isfinite(y) else y)
        except (ZeroDivisionError, ValueError, OverflowError, mp.libmp.NoConvergence):
            found.append(None)
    return found


def run(name, dtype):
    """The operands and the results of a function."""
    points = make_points(name, dtype)
    with weft.config.scope(enable_x64=True):
        return points, np.asarray(weft.jit((BINARY.get(name) or UNARY[name])[0])(*points))


def measure(name, dtype):
    """The largest error of a function, in units in the last place, and where it is."""
    points, results = run(name, dtype)
    limits = np.finfo(dtype)
    low, high, digits = float(limits.tiny) * 8, float(limits.max), limits.nmant
    worst, where = 0.0, None
    with np.errstate(all="ignore"):
        for x, got, want in zip(
            zip(*points, strict=True), results, find_exact(name, points), strict=True
        ):
            parts = np.array([np.real(v) for v in x] + [np.imag(v) for v in x])
            if (
                want is None
                or not low < abs(want) < high / 2
                or (abs(parts[parts != 0]) < low).any()
            ):
                continue
            found = mp.mpc(complex(got)) if np.iscomplexobj(got) else mp.mpf(float(got))
            unit = mp.mpf(2) ** (mp.floor(mp.log(abs(want), 2)) - digits)
            error = float(abs(found - want) / unit) if mp.isfinite(found) else np.inf
            if not error <= worst:
                worst, where = error, (x, got, mp.nstr(want, 17))
    return worst, where


def make_table():
    """The table of the documentation."""
    lines = [f"| function | {' | '.join(DTYPES)} |", "|---|---|---|---|---|"]
    for name in sorted({n for names in FUNCTIONS.values() for n in names}):
        cells = [f"{measure(name, d)[0]:.1f}" if name in FUNCTIONS[d] else "" for d in DTYPES]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = DOC.read_text()
    start = text.index(MARK) + len(MARK)
    DOC.write_text(text[:start] + make_table() + text[text.index(NEXT) :])
