"""Incomplete gamma and beta functions over their range, and at its ends."""

import mpmath
import numpy as np
import pytest
import scipy.special

import weft
from weft.cpu import kernels
from weft.options import config
from weft.primitives.special import functions as special

needs_kernels = pytest.mark.skipif(bool(kernels.load_kernels()), reason="the kernels are not built")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_incomplete_gamma_and_beta_over_their_range(rng, dtype):
    """The bounds that special.py states, where the values are not small."""
    a = np.exp(rng.uniform(np.log(1e-2), np.log(1e4), 500)).astype(dtype)
    x = (a * np.exp(rng.normal(size=500) * np.minimum(1, 2 / np.sqrt(a)))).astype(dtype)
    b = np.exp(rng.uniform(np.log(1e-1), np.log(1e3), 500)).astype(dtype)
    p = np.clip(rng.beta(a, b), 1e-6, 1 - 1e-6).astype(dtype)
    wide = lambda *xs: [v.astype(np.float64) for v in xs]
    with config.scope(enable_x64=True):
        pairs = [
            (special.igamma(a, x), scipy.special.gammainc(*wide(a, x)), 300),
            (special.igammac(a, x), scipy.special.gammaincc(*wide(a, x)), 300),
            (special.betainc(a, b, p), scipy.special.betainc(*wide(a, b, p)), 8000),
        ]
    for got, want, bound in pairs:
        assert got.dtype == dtype
        plain = want > 0.05
        np.testing.assert_allclose(
            np.asarray(got)[plain], want[plain], rtol=bound * np.finfo(dtype).eps
        )


def test_single_precision_across_the_borders_of_its_formulas(rng):
    """float32 has no loops: each formula holds up to where the next one takes over."""
    a = np.exp(rng.uniform(np.log(1e-6), np.log(1e5), 20000))
    a[:10000] = rng.uniform(0, 40, 10000)
    x = a * np.exp(rng.normal(size=a.size) * np.minimum(1, 2 / np.sqrt(a)))
    x[::4] = np.exp(rng.uniform(np.log(1e-6), np.log(1e5), 5000))
    edges = [0.999, 1.0, 1.001]
    border = [(12 * e, 12 * f * r) for e in edges for f in edges for r in (0.5, 1, 1.5)]
    border += [(10**k, 2 * e) for e in edges for k in (-30, -3, 0)] + [(4e-4, 2e4), (1e4, 1e-4)]
    border += [(m, m * r * e) for m in (13, 300, 1e4) for r in (0.5, 1, 1.5) for e in edges]
    a, x = np.float32([*zip(a, x, strict=True), *border]).T
    for fun, reference in [
        (special.igamma, scipy.special.gammainc),
        (special.igammac, scipy.special.gammaincc),
    ]:
        want = reference(a.astype(np.float64), x.astype(np.float64))
        normal = want > np.finfo(np.float32).tiny
        apart = np.abs(np.asarray(fun(a, x)).astype(np.float64) - want)
        assert (apart / np.spacing(want.astype(np.float32)))[normal].max() < 1.5


ENDS = [np.nan, -np.inf, -1e30, -2.5, -1, -0.3, -0.0, 0, 1e-30, 0.3, 1, 2.5, 40, 1e4, 1e30, np.inf]


def is_sound_polygamma(m, x):
    """Return True where SciPy's polygamma is right.

    At -2.5 it gives a rounding error of terms that cancel.
    """
    return (m < 1e30) & (m != 1e-30) & ((m != 40) | (x != -2.5))


FUNCTIONS = [
    # ours, SciPy's, number of operands, where they are compared
    (special.igamma, scipy.special.gammainc, 2, lambda a, x: True),
    (special.igammac, scipy.special.gammaincc, 2, lambda a, x: True),
    (special.betainc, scipy.special.betainc, 3, lambda a, b, x: True),
    (special.digamma, scipy.special.digamma, 1, lambda x: True),
    (special.lgamma, scipy.special.gammaln, 1, lambda x: x != -np.inf),
    # SciPy gives inf for NaN beside a pole, and NaN for 1/inf to a power
    (special.zeta, scipy.special.zeta, 2, lambda s, q: (s < 1e30) & (s != 1) & ~np.isnan(q)),
    (special.polygamma, scipy.special.polygamma, 2, is_sound_polygamma),
]


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("fun, reference, count, compared", FUNCTIONS)
def test_at_ends_and_beyond(fun, reference, count, compared):
    """Every combination of values that are special, and some that are not, against SciPy."""
    ends = [x for x in ENDS if count < 3 or not 1e3 < abs(x) < np.inf]  # where sums are long
    xs = [v.ravel() for v in np.meshgrid(*[np.float64(ends)] * count)]
    with config.scope(enable_x64=True):
        got = np.asarray(fun(*xs))
    with np.errstate(all="ignore"):
        want, where = reference(*xs), np.broadcast_to(compared(*xs), xs[0].shape)
    np.testing.assert_allclose(got[where], want[where], rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("called", [False, pytest.param(True, marks=needs_kernels)])
def test_zeta_between_whole_numbers(called):
    """Odd powers of terms on both sides of 0 cancel, and the far smaller ones are left."""
    s, q = np.float64([[3, -2.5], [39, -2.5], [41, -7.5], [39, -1e5 - 0.5], [2, -0.3], [3, -0.3]]).T
    want = [float(mpmath.zeta(n, 1 - x)) for n, x in zip(s[:4], q[:4], strict=True)]
    want += [float(mpmath.zeta(n, 0.7) + (-0.3) ** -n) for n in (2, 3)]
    with config.scope(enable_x64=True, native=called):
        np.testing.assert_allclose(weft.jit(special.zeta)(s, q), want, rtol=1e-14)
        assert special.zeta(np.float64(1025), np.float64(-2.5)) == 0  # its terms overflow
        got = special.polygamma(np.float64(40), np.float64(-2.5))
        np.testing.assert_allclose(got, float(mpmath.psi(40, 3.5)), rtol=1e-13)


def integrate_sample_slope(a, x):
    """Return the slope of a sample in its shape: an integral of the density from the near end."""
    a, x = mpmath.mpf(float(a)), mpmath.mpf(float(x))
    side = 1 if x > a else -1
    root, psi = mpmath.sqrt(a), mpmath.digamma(a)
    log_density = lambda t: (a - 1) * mpmath.log(t) - t
    ends = min(50, x / root * 0.999) if side < 0 else 50
    slope = lambda u: (
        (mpmath.log(t := x + side * u * root) - psi) * mpmath.exp(log_density(t) - log_density(x))
    )
    return float(side * root * mpmath.quad(slope, [0, 1, 4, ends]))


@pytest.mark.parametrize("dtype, bound", [(np.float32, 1e-6), (np.float64, 1e-9)])
def test_slope_of_gamma_samples_of_large_shapes(dtype, bound):
    """All quantiles, where sums would need too many terms."""
    a, z = (v.ravel() for v in np.meshgrid([3e5, 1e7, 1e8, 1e12], [-40, -5, -0.1, 0, 3, 40]))
    a = a.astype(dtype)
    x = (a + z * np.sqrt(a)).astype(dtype)
    with config.scope(enable_x64=True), mpmath.workdps(30):
        want = [integrate_sample_slope(*pair) for pair in zip(a, x, strict=True)]
        np.testing.assert_allclose(special.random_gamma_grad(a, x), want, rtol=bound)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("called", [False, pytest.param(True, marks=needs_kernels)])
@pytest.mark.parametrize("fun, reference, count, compared", FUNCTIONS[:2])
def test_incomplete_gamma_with_a_kernel(rng, called, fun, reference, count, compared):
    """Every formula of the kernel, ends and beyond, a scalar for either operand, slopes."""
    a, x = (v.ravel() for v in np.meshgrid(np.float64([*ENDS, 1e300]), [*ENDS, 0.999, 1e300]))
    spread = np.exp(rng.uniform(-9, 9, 5000))
    a, x = np.append(a, spread), np.append(x, spread * rng.uniform(0.3, 2, 5000))
    with config.scope(enable_x64=True, native=called):
        program = weft.jit(fun)
        assert ("weft_program" in program.lower(a, x).as_text()) == called
        got, want = np.asarray(program(a, x)), reference(a, x)
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-300)
        b, y = a[-5000:], x[-5000:]
        slope = weft.grad(lambda y: fun(b, y).sum())(y)
        density = np.exp((b - 1) * np.log(y) - y - scipy.special.gammaln(b))
        sign = 1 if fun is special.igamma else -1
        np.testing.assert_allclose(slope, sign * density, rtol=1e-7, atol=1e-300)
        if called:
            for one in (0.7, 30.0, 400.0):
                np.testing.assert_array_equal(program(one, x), program(np.full_like(a, one), x))
                np.testing.assert_allclose(program(one, 2.0), reference(one, 2.0), rtol=1e-13)
                np.testing.assert_array_equal(program(a, one), program(a, np.full_like(x, one)))
            assert program(a[:0], x[:0]).shape == (0,)


@needs_kernels
@pytest.mark.parametrize("fun", [special.igamma, special.igammac])
def test_digits_of_incomplete_gamma(fun):
    """Against mpmath, where powers and exponentials are of large numbers too."""
    a = np.float64([1e-30, 0.02, 0.7, 0.9, 3, 30, 60, 99, 101, 400, 2500, 2500, 1e4, 1e6])
    x = np.float64([0.03, 0.4, 0.8, 2.5, 7, 11, 90, 80, 98, 230, 4000, 2400, 1.01e4, 1e6])
    with mpmath.workdps(60):
        ends = lambda x: (0, x) if fun is special.igamma else (x, mpmath.inf)
        exact = lambda u, v: float(mpmath.gammainc(u, *ends(v), regularized=True))
        want = [exact(u, v) for u, v in zip(a, x, strict=True)]
    with config.scope(enable_x64=True):
        got = np.asarray(weft.jit(fun)(np.tile(a, 400), np.tile(x, 400)))
    np.testing.assert_allclose(got.reshape(400, -1), [want] * 400, rtol=8e-15)


@needs_kernels
@pytest.mark.parametrize("dtype, units", [(np.float32, 0.6), (np.float64, 4)])
def test_zeta_and_polygamma_with_a_kernel(rng, dtype, units):
    """At ends as the formulas have it, which are held to SciPy above; else against mpmath."""
    q = np.append(rng.uniform(0.01, 10, 40), [1e-4, 1e5, 3e7]).astype(dtype)
    ends = dtype([*ENDS, 39, 60, 300, 1e7])
    s, other = (v.ravel() for v in np.meshgrid(ends, ends))
    with config.scope(enable_x64=True), mpmath.workdps(30):
        for fun, order, exact in [
            (special.zeta, 2.5, lambda q: mpmath.zeta(2.5, q)),
            (special.polygamma, 1, lambda q: mpmath.psi(1, q)),
        ]:
            program = weft.jit(fun)
            assert "weft_program" in program.lower(q, q).as_text()
            want = np.array([float(exact(mpmath.mpf(float(v)))) for v in q])
            got = np.asarray(program(dtype(order), q)).astype(np.float64)
            assert (abs(got - want) / want).max() < units * np.finfo(dtype).eps
            with config.scope(native=False):
                formula = np.asarray(weft.jit(fun)(s, other))
            bound = 2 * units * np.finfo(dtype).eps
            np.testing.assert_allclose(program(s, other), formula, rtol=bound)
