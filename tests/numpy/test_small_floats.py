"""Functions of short floats: rounded once, and finite where intermediate values overflow."""

import numpy as np
import pytest
import scipy.signal
import scipy.special
import scipy.stats

import weft
import weft.numpy as jnp
from weft import dtypes, lax, nn
from weft.scipy import signal, special, stats

SOME = np.array([250, -300, 180, -220, 300, 270, -90, 60, 300], np.float16)
LARGE = np.array([2e4, -3e4, 6e4, 5e4, -6e4, 1e4, 1.5e4, -2.5e4], np.float16)
MANY = np.full(3000, 100, np.float16)
ENDS = np.array([-6e4, 6e4], np.float16)
positive = lambda x: np.maximum(x, 0)
log_of_many = lambda x: np.log(x.size) + x.max()

# name: the function, the same in NumPy or SciPy of float64, the operand
ROWS = {
    **{
        f"norm {p}": (lambda x, p=p: jnp.linalg.norm(x, p), lambda x, p=p: np.linalg.norm(x, p), x)
        for p, x in [(None, SOME), (1, SOME), (3, SOME), (0.5, SOME[:3]), (np.inf, LARGE),
                     (2, LARGE[:2]), ("fro", SOME.reshape(3, 3)), (-1, SOME.reshape(3, 3))]
    },
    **{
        f"{n} of {what}": (getattr(jnp, n), getattr(np, n), x)
        for n in ("mean", "std", "nanmean", "nanstd", "average", "median")
        for what, x in (("large", LARGE), ("many", MANY))
    },
    "var": (jnp.var, np.var, SOME / np.float16(2)),
    "nanvar": (jnp.nanvar, np.nanvar, SOME / np.float16(2)),
    "cov": (jnp.cov, np.cov, SOME / np.float16(4)),
    "corrcoef": (lambda x: jnp.corrcoef(x, x[::-1]), lambda x: np.corrcoef(x, x[::-1]), LARGE),
    "quantile": (lambda x: jnp.quantile(x, 0.3), lambda x: np.quantile(x, 0.3), LARGE),
    "weighted average": (
        lambda x: jnp.average(x, weights=abs(x)), lambda x: np.average(x, weights=abs(x)), SOME
    ),
    "trapezoid": (
        lambda x: jnp.trapezoid(x, dx=0.01), lambda x: np.trapezoid(x, dx=0.01), LARGE
    ),
    "interp": (
        lambda x: jnp.interp(x / 4, x, -x), lambda x: np.interp(x / 4, x, -x), ENDS
    ),
    "density": (
        lambda x: jnp.histogram(x, 4, density=True)[0] * 1000,
        lambda x: np.histogram(x, 4, density=True)[0] * 1000, SOME,
    ),
    "linspace": (lambda x: jnp.linspace(*x, 5), lambda x: np.linspace(*x, 5), ENDS),
    "polyval": (
        lambda x: jnp.polyval(jnp.array([1, -300, 2], x.dtype), x),
        lambda x: np.polyval([1, -300, 2], x), np.array([300], np.float16),
    ),
    "hypot": (lambda x: jnp.hypot(x, x), lambda x: np.hypot(x, x), LARGE[:2]),
    "arcsinh": (jnp.arcsinh, np.arcsinh, LARGE),
    "arctan2": (lambda x: jnp.arctan2(x, x), lambda x: np.arctan2(x, x), LARGE),
    "logsumexp": (nn.logsumexp, log_of_many, np.full(80_000, 3, np.float16)),
    "log_softmax": (
        lambda x: nn.log_softmax(x)[0], lambda x: -np.log(x.size), np.zeros(80_000, np.float16)
    ),
    "special.logsumexp": (special.logsumexp, log_of_many, np.full(80_000, 3, np.float16)),
    "standardize": (nn.standardize, lambda x: (x - x.mean()) / x.std(), LARGE),
    **{
        n: (getattr(nn, n), positive, LARGE)
        for n in ("gelu", "silu", "mish", "softplus", "squareplus", "sparse_plus", "hard_silu")
    },
    "gammaln": (special.gammaln, scipy.special.gammaln, abs(SOME)),
    "log_ndtr": (special.log_ndtr, scipy.special.log_ndtr, -abs(SOME)),
    "cauchy": (stats.cauchy.logpdf, scipy.stats.cauchy.logpdf, SOME),
    "t": (lambda x: stats.t.logpdf(x, 3.0), lambda x: scipy.stats.t.logpdf(x, 3), SOME),
    "cross": (
        lambda x: jnp.cross(x, x + jnp.float16(1)), lambda x: np.cross(x, x + 1),
        np.array([[300, 200, 1], [-8, 250, 40]], np.float16),
    ),
    "sem": (stats.sem, lambda x: np.std(x, ddof=1) / x.size**0.5, SOME),
    "fft": (lambda x: jnp.abs(jnp.fft.fft(x)), lambda x: np.abs(np.fft.fft(x)), SOME),
    "detrend": (signal.detrend, scipy.signal.detrend, SOME),
}  # fmt: skip


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("name", ROWS)
def test_results_that_float16_holds(name):
    fun, exact, x = ROWS[name]
    want = np.asarray(exact(x.astype(np.float64)))
    assert np.abs(want).max() < np.finfo(np.float16).max
    got = np.asarray(fun(jnp.asarray(x))).astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=4e-3, atol=4e-3 * np.abs(want).max())


ROUNDED_ONCE = {
    1: (
        "jnp.arccosh jnp.arcsinh jnp.arctanh jnp.cbrt jnp.cosh jnp.exp jnp.exp2 jnp.expm1 jnp.i0 "
        "jnp.log jnp.log10 jnp.log1p jnp.log2 jnp.reciprocal jnp.sin jnp.sinc jnp.sinh jnp.sqrt "
        "jnp.tan jnp.tanh lax.erf lax.lgamma lax.logistic lax.rsqrt nn.log_sigmoid nn.softplus "
        "nn.squareplus special.expit special.logit"
    ),
    2: (
        "jnp.arctan2 jnp.hypot jnp.logaddexp jnp.logaddexp2 jnp.power "
        "special.rel_entr special.xlog1py special.xlogy"
    ),
}
MODULES = {"jnp": jnp, "lax": lax, "nn": nn, "special": special}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_functions_are_rounded_once(dtype):
    """Against float64, which other tests compare with mpmath; in units in the last place."""
    dtype = dtypes.canonicalize(dtype)
    rng, limits = np.random.default_rng(0), dtypes.finfo(dtype)
    bits = rng.integers(0, 1 << 16, 400, np.uint16).view(dtype)
    near = np.concatenate([np.linspace(-20, 20, 121), rng.uniform(-2, 2, 79)]).astype(dtype)
    x = np.concatenate([bits, near])
    with np.errstate(invalid="ignore"):
        sizes = np.abs(x.astype(float))
    x = x[(sizes >= float(limits.tiny)) & (sizes < np.inf)]  # processors take the least for 0
    pair = x, rng.permutation(x)
    rows = [
        (n, MODULES[n.split(".")[0]], k) for k, names in ROUNDED_ONCE.items() for n in names.split()
    ]

    @weft.jit
    def compute(*xs):
        return {n: getattr(module, n.split(".")[1])(*xs[:k]) for n, module, k in rows}

    with weft.enable_x64():
        got = compute(*map(jnp.asarray, pair))
        exact = compute(*[jnp.asarray(v.astype(np.float64)) for v in pair])
    for name, want in exact.items():
        found, want = np.asarray(got[name]).astype(np.float64), np.asarray(want)
        with np.errstate(all="ignore"):
            rounded = want.astype(dtype).astype(np.float64)
        held = np.isfinite(rounded) & (np.abs(rounded) >= float(limits.tiny))
        assert np.isfinite(found[held]).all(), name
        unit = np.exp2(np.floor(np.log2(np.abs(rounded[held]))) - limits.nmant)
        error = np.abs(found[held] - want[held]) / unit
        assert error.max() < 0.52, (name, error.max(), [v[held][error.argmax()] for v in pair])


EXTREMES = {
    "sinc": (jnp.sinc, [2.0, -7, 1e5, 1e9, 3e38], [0.0, 0, 0, 0, 0]),
    "rel_entr": (
        special.rel_entr, [(1e29, 3e-35), (1e-30, 1e30)], [1.4626683e31, -1.3815511e-28]
    ),
    "squareplus": (nn.squareplus, [3.4e38, 1e20, -1e20], [3.4e38, 1e20, 1e-20]),
    "i0e": (special.i0e, [3.4e38], [(2 * np.pi * 3.4e38) ** -0.5]),
    "poch": (
        special.poch, [(5e34, 5e6), (1e26, -40.0), (-30156504.0, 12.1), (-1e8, 2.0), (-1e8, 0.05)],
        [np.inf, 0, 0, 1e16, 0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXTREMES)
def test_extreme_arguments_of_float32(name):
    fun, points, want = EXTREMES[name]
    xs = [jnp.array(column, jnp.float32) for column in np.array(points).reshape(len(points), -1).T]
    np.testing.assert_allclose(fun(*xs), np.array(want, np.float32), 2e-6)


# Formats of a byte or less, of which an array can hold every number.
BYTES = """
float4_e2m1fn float8_e3m4 float8_e4m3 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2
float8_e5m2fnuz float8_e8m0fnu
""".split()  # noqa: SIM905


@pytest.mark.parametrize("name", BYTES)
def test_all_numbers_of_a_byte(name):
    dtype = jnp.dtype(name)
    count = 16 if name == "float4_e2m1fn" else 256
    x = np.arange(count, dtype=np.uint8).view(dtype)
    wide = x.astype(np.float32)
    numbers = ~np.isnan(wide)
    found, want = np.asarray(jnp.signbit(x)), np.signbit(wide)
    np.testing.assert_array_equal(found[numbers], want[numbers])
    with np.errstate(over="ignore"):
        doubled = (wide.astype(np.float64) * 2).astype(dtype)
    found = np.asarray(jnp.ldexp(x, 1)).astype(np.float32)
    kept = wide != 2.0**-127  # of float8_e8m0fnu: XLA computes with zero in its place
    np.testing.assert_array_equal(found[kept], doubled.astype(np.float32)[kept])
    finite = np.isfinite(wide)
    fraction, exponent = map(np.asarray, jnp.frexp(x))
    assert fraction.dtype == dtype and exponent.dtype == np.int32
    if float(dtypes.finfo(dtype).tiny) <= 0.25:  # the format holds fractions
        halves = np.frexp(wide)
        np.testing.assert_array_equal(exponent[finite], halves[1][finite])
        np.testing.assert_array_equal(fraction[finite].astype(np.float32), halves[0][finite])


def test_numbers_that_a_byte_does_not_hold():
    x = jnp.array([0, 1, 3], jnp.float8_e4m3fn)
    np.testing.assert_array_equal(nn.one_hot(x, 300).argmax(1), [0, 1, 3])
    assert jnp.linspace(0, 1, 40, dtype=jnp.float8_e4m3fn).shape == (40,)
