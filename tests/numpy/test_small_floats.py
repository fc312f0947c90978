"""Functions of float16 with finite results and intermediate values that overflow."""

import numpy as np
import pytest
import scipy.signal
import scipy.special
import scipy.stats

import weft.numpy as jnp
from weft import nn
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


@pytest.mark.sample(one_in=3)
@pytest.mark.parametrize("name", ROWS)
def test_results_that_float16_holds(name):
    fun, exact, x = ROWS[name]
    want = np.asarray(exact(x.astype(np.float64)))
    assert np.abs(want).max() < np.finfo(np.float16).max
    got = np.asarray(fun(jnp.asarray(x))).astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=4e-3, atol=4e-3 * np.abs(want).max())
