"""Large float64 arrays, by formulas and by kernels, against NumPy's longer floats, and mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.special

import weft
import weft.numpy as jnp
from weft import config, lax, nn
from weft.cpu import kernels
from weft.primitives.expr import LARGE

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, -2, 1e-8, 1e-300, -3e-308]
TINY = [5e-324, -1e-310, 2.2e-308]  # XLA flushes them to 0
BEYOND = [1.7976931348623157e308, -1e22, 1e6]
MULTIPLES = np.arange(1 << 19) * (np.longdouble(np.pi) / 2 + 6.123233995736766e-17)
SLACK = 0 if np.finfo(np.longdouble).nmant > 60 else 1  # long doubles may be doubles

pytestmark = [
    pytest.mark.usefixtures("kernels_as_for_users"),
    pytest.mark.filterwarnings("ignore:(invalid value|divide by zero|overflow|underflow)"),
]

needs_kernels = pytest.mark.skipif(bool(kernels.load_kernels()), reason="the kernels are not built")
BOTH = pytest.mark.parametrize("called", [False, pytest.param(True, marks=needs_kernels)])


def run(fun, *operands, called=False):
    with config.scope(enable_x64=True, native=called):
        compiled = weft.jit(fun)
        assert ("weft_program" in compiled.lower(*operands).as_text()) == called
        return np.asarray(compiled(*operands))


def assert_near(got, exact, units):
    """Assert a number of units in the last place; signs of zeros and NaN must be equal."""
    want = exact.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    got, want, exact = (v[~np.isnan(want)] for v in (got, want, exact))
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    ends = ~np.isfinite(want) | (abs(want) < 2.3e-308)
    np.testing.assert_array_equal(got[ends], want[ends])
    off = abs(got - exact)[~ends] / np.spacing(abs(want[~ends]))
    assert off.max() <= units + SLACK


def draw(low, high, scale=1.0):
    """Numbers of a range evenly, and of all magnitudes."""
    rng = np.random.RandomState(0)
    signs = rng.choice([-1, 1], LARGE)
    return [rng.uniform(low, high, 2 * LARGE), signs * np.exp(rng.uniform(-700, scale, LARGE))]


ROUND = [SPECIAL, TINY, *draw(-10, 10, 13), np.random.RandomState(1).uniform(-8e5, 8e5, LARGE)]
UNIT = [SPECIAL, *draw(-1, 1, 0), *[s * (1 - np.exp(draw(-40, -0.5)[0])) for s in (-1, 1)]]


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize(
    "name, units, parts",
    [
        ("sin", 0.85, ROUND),
        ("cos", 0.85, ROUND),
        ("tan", 1.0, ROUND),
        ("cos", 0.85, [*ROUND, BEYOND]),
        ("tan", 1.5, [*ROUND, BEYOND]),
        ("sin", 0.6, [MULTIPLES, np.nextafter(MULTIPLES.astype(np.float64), 0)]),
        ("cos", 0.6, [MULTIPLES]),
        ("tan", 1.1, [MULTIPLES]),
        ("arcsin", 1.8, UNIT),
        ("arccos", 1.3, UNIT),
        ("arctan", 1.9, [SPECIAL, TINY, *draw(-9, 9, 709)]),
        ("log", 0.95, [SPECIAL, TINY[::2], *map(abs, draw(-9, 9, 709)), *draw(0.9, 1.1)[:1]]),
        ("sinh", 1.4, [SPECIAL, TINY, *draw(-711, 711), *draw(-1, 1)]),
        ("cosh", 1.4, [SPECIAL, TINY, *draw(-711, 711), *draw(-1, 1)]),
        ("arcsinh", 2.1, [SPECIAL, TINY, *draw(-9, 9, 709)]),
        ("cbrt", 0.7, [SPECIAL, TINY, *draw(-9, 9, 709), *draw(0, 2e-308)[:1]]),
    ],
)
def test_functions_of_one_operand(name, units, parts):
    x = np.concatenate(parts).astype(np.float64)
    fun, exact = getattr(jnp, name), getattr(np, name)(x.astype(np.longdouble))
    assert_near(run(fun, x), exact, units)
    if name in ("sin", "cos", "tan", "log") and not kernels.load_kernels():
        assert_near(run(fun, np.resize(x, x.size + 9 * LARGE), called=True)[: x.size], exact, units)


@pytest.mark.parametrize("name", ["sinh", "cosh"])
def test_hyperbolic_functions_in_float32_beside_other_operations(name):
    """Near overflow, too, where XLA's own are 25 units off; signs of zeros are kept."""
    bits = np.arange(0x00800000, 0x7F800000, 40_009, dtype=np.uint32)
    near = np.linspace(80, 89.5, 20_001, dtype=np.float32)
    x = np.concatenate([bits.view(np.float32), near])
    x = np.concatenate([x, -x, np.float32([0, -0.0, np.inf, -np.inf, np.nan])])
    fun, exact = getattr(jnp, name), getattr(np, name)
    found = np.asarray(weft.jit(lambda x: [fun(x), jnp.sign(x)])(x)[0])
    with np.errstate(over="ignore"):
        want = exact(x.astype(np.longdouble))
        rounded = want.astype(np.float32)
    same = ~np.isfinite(rounded)
    np.testing.assert_array_equal(found[same], rounded[same])
    np.testing.assert_array_equal(np.signbit(found[:-1]), np.signbit(rounded[:-1]))
    errors = np.abs(found - want)[~same] / np.spacing(np.abs(rounded[~same]))
    assert errors.max() < 2.5, x[~same][errors.argmax()]


@needs_kernels
@pytest.mark.parametrize("name", ["sinh", "cosh"])
def test_hyperbolic_functions_by_a_kernel(name):
    x = np.concatenate([SPECIAL, TINY, *draw(-711, 711), *draw(-1, 1)]).astype(np.float64)
    exact = getattr(np, name)(x.astype(np.longdouble))
    assert_near(run(getattr(jnp, name), x, called=True), exact, 1.4)
    rows = run(
        weft.vmap(weft.grad(lambda row: getattr(jnp, name)(row).sum())),
        x[:9999].reshape(9, 1111),
        called=True,
    )
    other = getattr(np, {"sinh": "cosh", "cosh": "sinh"}[name])(x[:9999])
    np.testing.assert_allclose(rows.ravel(), other, rtol=1e-15)


@needs_kernels
def test_exponentials_by_a_kernel():
    x = np.concatenate([SPECIAL, TINY, *draw(-708, 709.7), *draw(-1, 1)]).astype(np.float64)
    x = np.resize(x, 9 * LARGE)
    exact = np.exp(x.astype(np.longdouble))
    share = 1 / (1 + 1 / exact)
    exact[exact < 2.3e-308] = share[share < 2.3e-308] = 0  # they are flushed
    assert_near(run(jnp.exp, x, called=True), exact, 0.8)
    assert_near(run(nn.sigmoid, x, called=True), share, 2.0)
    twice = lambda x: jnp.exp(x) - nn.sigmoid(x)
    np.testing.assert_allclose(run(twice, x[-99:]), np.float64(exact - share)[-99:], rtol=1e-14)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_of_an_array_with_an_angle_far_away_all_are_the_engines(name):
    x = np.linspace(-9, 9, 2 * LARGE)
    x[0] = 6381956970095103 * 2.0**797  # nearest of all to a multiple of pi / 2
    fun = getattr(jnp, name)
    np.testing.assert_array_equal(run(fun, x)[:99], run(fun, x[:99]))


@needs_kernels
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_of_a_block_with_an_angle_far_away_that_is_the_c_librarys(name):
    x = np.linspace(-9, 9, 2 * LARGE)
    x[:3] = 6381956970095103 * 2.0**797, -1e22, np.inf
    got = run(getattr(jnp, name), x, called=True)
    with mpmath.workprec(1200):
        want = [float(getattr(mpmath, name)(mpmath.mpf(v))) for v in x[:2]]
    np.testing.assert_allclose(got[:2], want, rtol=2e-15)  # least numbers are flushed to 0
    assert np.isnan(got[2])
    exact = getattr(np, name)(x[3:].astype(np.longdouble))
    assert_near(got[3:], exact, 1.5)


def test_the_angle_of_a_point():
    ends = [*SPECIAL, 1e308, -1.797e308, 2.3e-308, -2.4e-308]
    y, x = (v.ravel() for v in np.meshgrid(ends, ends))
    rng = np.random.RandomState(0)
    y = np.concatenate([y, rng.standard_cauchy(LARGE), *draw(-1, 1, 700)])
    x = np.concatenate([x, rng.standard_cauchy(LARGE), *draw(-1, 1, 700)[::-1]])
    x[-LARGE:] = x[-LARGE:][::-1]
    kept = ~((np.arctan2(y, x) != 0) & (abs(np.arctan2(y, x)) < 3e-308))
    y, x = y[kept], x[kept]
    exact = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
    assert_near(run(lax.atan2, y, x), exact, 1.9)


@BOTH
def test_the_error_function(called):
    x = np.concatenate([SPECIAL, *draw(-7, 7)[:1], *draw(-1.5, 1.5, 0)])
    got, want = run(lax.erf, x, called=called), scipy.special.erf(x)
    np.testing.assert_array_max_ulp(got, want, 3)  # SciPy is 2.4 units off
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    some = np.linspace(len(SPECIAL), len(x) - 1, 800).astype(int)
    with mpmath.workprec(80):
        off = [abs(mpmath.mpf(a) - mpmath.erf(b)) for a, b in zip(got[some], x[some])]
        assert max(float(d) / np.spacing(abs(v)) for d, v in zip(off, got[some])) <= 1.1


@BOTH
@pytest.mark.parametrize(
    "draw_bases, largest",
    [
        (lambda rng: np.exp(rng.uniform(-700, 700, 2 * LARGE)), 1),
        (lambda rng: 1 + rng.uniform(-1e-3, 1e-3, 2 * LARGE), 7e5),
        (lambda rng: rng.uniform(0.8, 1.3, 2 * LARGE), 2500),
    ],
)
def test_powers(draw_bases, largest, called):
    rng = np.random.RandomState(0)
    ends = [*SPECIAL, 3, -3, 1e17, -1e17, 1 + 2**-52, 4503599627370497, -(2.0**53)]
    x, y = (v.ravel() for v in np.meshgrid(ends, ends))
    x = np.concatenate([x, [5e-324, 1e-310], draw_bases(rng), -rng.uniform(0.1, 9, 99)])
    y = np.concatenate([y, [0.5, -0.5], rng.uniform(-largest, largest, 2 * LARGE), np.arange(99)])
    got = run(lax.pow, x, y, called=called)
    exact = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    least = abs(exact) < 2.3e-308  # XLA flushes it to 0
    assert (abs(got[least]) < 2.3e-308).all()
    assert_near(got[~least], exact[~least], 0.9)


def test_formulas_are_for_large_arrays_alone():
    with config.scope(enable_x64=True, native=False):
        text = lambda f, n: weft.jit(f).lower(np.zeros(n)).as_text()
        assert "case" not in text(jnp.sin, LARGE) and "case" in text(jnp.sin, 2 * LARGE)
        assert "cbrt" in text(jnp.cbrt, LARGE - 1) and "stablehlo.cbrt" not in text(jnp.cbrt, LARGE)


def test_derivatives_and_batches():
    x = np.linspace(-3, 3, 3 * LARGE)
    slope = run(weft.grad(lambda x: (jnp.sin(x) * jnp.exp(x)).sum()), x)
    np.testing.assert_allclose(slope, (np.sin(x) + np.cos(x)) * np.exp(x), rtol=1e-13, atol=1e-14)
    rows = run(weft.vmap(jnp.tan), x.reshape(3, LARGE))
    np.testing.assert_allclose(rows.ravel(), np.tan(x), rtol=1e-15)
