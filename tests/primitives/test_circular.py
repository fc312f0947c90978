"""Functions of large float32 arrays, with the kernel and without, against NumPy's in float64."""

import numpy as np
import pytest
import scipy.special

import weft
import weft.numpy as jnp
from weft import config, lax, nn
from weft.cpu import kernels
from weft.primitives.expr import LARGE
from weft.scipy import special

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, -2]
# nearest to a multiple of pi / 2, and the largest
FAR = [16367173 * 2.0**72, 3.4028235e38, -1e10, 1e-37, np.pi, np.pi / 2, -355.0]

needs_kernels = pytest.mark.skipif(bool(kernels.load_kernels()), reason="the kernels are not built")
BOTH = pytest.mark.parametrize("called", [False, pytest.param(True, marks=needs_kernels)])


def run(called, fun, *args):
    """The result of a program that calls the kernel, or does not."""
    with config.scope(native=called):
        compiled = weft.jit(fun)
        assert ("weft_program" in compiled.lower(*args).as_text()) == called
        return np.asarray(compiled(*args))


def assert_near(got, want, units):
    """Assert a number of float64 units, which are below float32's; zeros' signs and NaN too."""
    rounded = want.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    finite = np.isfinite(rounded) & (abs(want) >= np.finfo(np.float32).tiny)
    np.testing.assert_array_equal(np.isinf(got), np.isinf(rounded))
    np.testing.assert_array_equal(got[np.isinf(got)], rounded[np.isinf(got)])
    tiny = abs(want) < np.finfo(np.float32).tiny
    assert (abs(got[tiny]) <= np.finfo(np.float32).tiny).all()
    got, want, rounded = got[finite | tiny], want[finite | tiny], rounded[finite | tiny]
    np.testing.assert_array_equal(np.signbit(got), np.signbit(rounded))
    got, want = got[abs(want) >= np.finfo(np.float32).tiny], want[finite[finite | tiny]]
    unit = 2.0 ** (np.frexp(want)[1] - 24)
    off = abs(got - want) / unit
    assert off.max(initial=0) <= units, (off.max(), want[off.argmax()])


def log_odds(x):
    """Near 1/2 the logarithm of the quotient is not exact."""
    near = abs(x - 0.5) < 0.25
    return np.where(near, 2 * np.arctanh(np.where(near, 2 * x - 1, 0)), scipy.special.logit(x))


def assert_exact(got, want):
    """Equal to rounding, signs of zeros and NaN too."""
    want = want.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    got, want = np.where(np.isnan(got), 0, got), np.where(np.isnan(want), 0, want)
    np.testing.assert_array_max_ulp(got, want, 1)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


# the largest errors of kernels, in units, over all floats
UNITS = {
    "sin": 0.51, "cos": 0.51, "tan": 1.49, "arctan": 1.36, "arcsin": 1.17, "arccos": 1.14,
    "cbrt": 0.54, "sinh": 1.1, "cosh": 1.0, "arcsinh": 0.86, "arccosh": 0.94, "arctanh": 1.22,
    "exp2": 0.93, "expm1": 1.28, "log1p": 0.95, "log2": 1.06, "exp": 1.0, "log": 0.93,
    "sqrt": 0.5, "tanh": 1.63, "rsqrt": 1.5, "logistic": 2.3, "logit": 1.28, "erfc": 2.8,
    "erfinv": 2.5,
}  # fmt: skip
# those that NumPy has not
OTHERS = {
    "rsqrt": (lax.rsqrt, lambda x: 1 / np.sqrt(x)),
    "logistic": (nn.sigmoid, scipy.special.expit),
    "logit": (special.logit, log_odds),
    "erfc": (special.erfc, scipy.special.erfc),
    "erfinv": (special.erfinv, lambda x: np.copysign(scipy.special.erfinv(x), x)),
}
find = lambda name: OTHERS.get(name) or (getattr(jnp, name), getattr(np, name))
NAMES = ["sin", "cos", "tan", "arctan", "arcsin", "arccos", "cbrt"]  # XLA computes others


@pytest.mark.parametrize(
    "name, called",
    [(name, False) for name in NAMES]
    + [pytest.param(name, True, marks=needs_kernels) for name in UNITS],
)
@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero|overflow)")
def test_functions_of_one_operand(name, called):
    rng = np.random.RandomState(0)
    all_sizes = rng.choice([-1, 1], LARGE) * np.exp(rng.uniform(-80, 80, LARGE))
    x = [SPECIAL, FAR, rng.uniform(-1, 1, LARGE), rng.standard_cauchy(LARGE) * 100, all_sizes]
    x = np.concatenate([*x, rng.uniform(-88, 88, 1001 + called * 8 * LARGE)]).astype(np.float32)
    fun, exact = find(name)
    got, want = run(called, fun, x), exact(x.astype(np.float64))
    if called:
        assert_near(got, want, UNITS[name])
    else:
        assert_exact(got, want)


@needs_kernels
@pytest.mark.parametrize("name", UNITS)
@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero|overflow)")
def test_each_binade_is_as_exact(name):
    steps = np.arange(0x00800000, 0x7F800000, 65537, dtype=np.uint32)
    edges = [0x3F000000, 0x3F800000, 0x47800000, 0x45800000, 0x42B17218, 0x43000000, 0x21800000]
    near = np.add.outer(np.array(edges, np.uint32), np.arange(-40, 40)).ravel().astype(np.uint32)
    x = np.concatenate([steps, near]).view(np.float32)
    x = np.concatenate([x, -x])
    fun, exact = find(name)
    assert_near(run(True, fun, x), exact(x.astype(np.float64)), UNITS[name])


@needs_kernels
@pytest.mark.parametrize("size", [1, 3, 15, 16, 17, 255, 256, 257, 4095])
def test_what_is_left_over_of_blocks(size):
    x = np.random.RandomState(0).uniform(-1, 1, 2 * LARGE + size).astype(np.float32)
    x[-1] = np.nan
    part = x[-size:]  # a scalar at a time, at the end of a piece
    got = run(True, jnp.arcsin, x)
    whole = run(True, jnp.arcsin, np.resize(part, 2 * LARGE))
    np.testing.assert_array_equal(got[-size:], whole[:size])
    with config.scope(enable_x64=True):
        wide = run(True, lambda x, y: lax.pow(x, y), abs(x).astype(np.float64), np.float64(1.7))
    np.testing.assert_allclose(wide, abs(x).astype(np.float64) ** 1.7, rtol=1e-15)


@needs_kernels
def test_the_logarithm_of_a_sum():
    rng = np.random.RandomState(0)
    x, y = (v.ravel() for v in np.meshgrid([*SPECIAL, 100, -100], [*SPECIAL, 100, -100]))
    x = np.concatenate([x, rng.standard_normal(LARGE) * 9, rng.uniform(-1, 1, LARGE)])
    y = np.concatenate([y, rng.standard_normal(LARGE) * 9, rng.uniform(-1, 1, LARGE)])
    x, y = x.astype(np.float32), y.astype(np.float32)
    with np.errstate(invalid="ignore"):
        want = np.logaddexp(x.astype(np.float64), y.astype(np.float64))
    got = run(True, jnp.logaddexp, x, y)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    infinite = np.isinf(want)
    np.testing.assert_array_equal(got[infinite], want[infinite])
    # where two parts cancel each other, in units of the larger operand
    got, want, part = (v[np.isfinite(want)] for v in (got, want, abs(np.maximum(x, y))))
    unit = np.spacing(np.maximum(np.maximum(abs(want), part), 0.7).astype(np.float32))
    assert (abs(got - want) / unit).max() <= 1.9
    zero = np.float32(0)
    up = run(True, lambda x: jnp.logaddexp(x, zero), x)
    with np.errstate(invalid="ignore"):
        assert_near(up, np.logaddexp(x.astype(np.float64), 0), 1.9)
    np.testing.assert_array_equal(run(True, lambda x: jnp.logaddexp(zero, x), x), up)
    with config.scope(native=False):
        slope = weft.jit(weft.grad(lambda x: nn.softplus(x).sum()))(x[200:])
    np.testing.assert_allclose(
        weft.jit(weft.vmap(weft.grad(nn.softplus)))(x[200:]), slope, rtol=1e-6, atol=1e-37
    )


@needs_kernels
def test_gelu_is_exact_in_both_tails():
    rng = np.random.RandomState(0)
    x = np.concatenate([SPECIAL, rng.uniform(-13.1, 10, 9 * LARGE), rng.standard_normal(LARGE)])
    x = np.concatenate([x, [-20, -1e10, 3e38], np.exp(rng.uniform(-80, 1, 999))])
    x = x.astype(np.float32)
    with np.errstate(invalid="ignore"):
        want = x.astype(np.float64) * scipy.special.ndtr(x.astype(np.float64))
    exact = lambda x: nn.gelu(x, approximate=False)
    assert_near(run(True, exact, x), want, 6.7)
    other = run(False, exact, x)
    np.testing.assert_array_equal(np.isnan(other), np.isnan(want))
    usual = abs(x) < 9
    np.testing.assert_allclose(other[usual], want[usual], rtol=2e-6)
    slope = weft.jit(weft.vmap(weft.grad(exact)))(x[usual])
    z = x[usual].astype(np.float64)
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(slope, scipy.special.ndtr(z) + z * density, rtol=1e-5, atol=1e-6)


@pytest.mark.sample(one_in=2)
@needs_kernels
@pytest.mark.parametrize("name", ["exp", "tanh", "sqrt", "logistic", "erfc", "erfinv", "log"])
def test_what_is_called_where_it_is_all_of_a_program(name):
    x, fun = np.linspace(0.1, 0.45, 9 * LARGE, dtype=np.float32), find(name)[0]
    want = run(True, fun, x)
    twice = lambda x: fun(x) + fun(x * 2)
    np.testing.assert_allclose(run(False, twice, x), want + run(True, fun, x * 2), 1e-6, 1e-6)
    assert "weft_program" not in weft.jit(fun).lower(x[: 8 * LARGE]).as_text()
    slope = weft.jit(weft.vmap(weft.grad(fun)))
    calls = 1 if name == "log" else 0  # of a division
    assert slope.lower(x).as_text().count("weft_program") == calls
    step = (fun(x + 1e-2) - fun(x - 1e-2)) / 2e-2
    np.testing.assert_allclose(slope(x), step, rtol=1e-2, atol=1e-3)
    rows = x.reshape(-1, 4)
    np.testing.assert_array_equal(run(True, weft.vmap(fun), rows), want.reshape(-1, 4))
    given = weft.jit(fun, donate_argnums=0)
    assert "weft_program" not in given.lower(x).as_text()
    half = x.astype(jnp.bfloat16)  # of two results, as one is cpu/rows.py's
    assert "weft_program" not in weft.jit(lambda x: (fun(x), x)).lower(half).as_text()
    with config.scope(native=False):
        np.testing.assert_allclose(run(False, fun, x), want, rtol=2e-6)


@BOTH
def test_the_angle_of_a_point(called):
    rng = np.random.RandomState(0)
    y, x = (v.ravel() for v in np.meshgrid(SPECIAL, SPECIAL))
    y = np.concatenate([y, rng.standard_cauchy(LARGE)]).astype(np.float32)
    x = np.concatenate([x, rng.standard_cauchy(LARGE)]).astype(np.float32)
    got = run(called, jnp.arctan2, y, x)
    assert_exact(got, np.arctan2(y.astype(np.float64), x.astype(np.float64)))


@pytest.mark.parametrize(
    ("dtype", "most", "called"),
    [
        pytest.param(np.float32, 21, True, marks=needs_kernels),
        pytest.param(np.float32, 27, True, marks=needs_kernels),
        (np.float32, 27, False),
        (np.float64, 49, False),
    ],
)
@pytest.mark.parametrize("far", [False, True])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_the_remainder_is_exact(dtype, most, called, far):
    rng = np.random.RandomState(0)
    x, y = (v.ravel().astype(dtype) for v in np.meshgrid(SPECIAL, SPECIAL))
    some = rng.uniform(1, 9, LARGE).astype(dtype)
    multiple = (some * 2.0 ** rng.uniform(0, most, LARGE).round(1)).astype(dtype)
    multiple[::2] = (some * rng.randint(1, 1 << most, LARGE))[::2]
    less = np.nextafter(multiple, dtype(0))
    x = np.concatenate([x, multiple, less, -multiple, some, dtype([1e30 if far else 1])])
    y = np.concatenate([y, some, -some, some, multiple, dtype([1])])
    with config.scope(enable_x64=dtype is np.float64):
        got = np.asarray(run(called, lax.rem, x, y))
    want = np.fmod(x, y)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


def test_a_formula_is_for_large_float32_alone():
    text = lambda n, dtype: weft.jit(jnp.sin).lower(jnp.zeros(n, dtype)).as_text()
    assert "sine" not in text(LARGE, np.float32)
    assert all("stablehlo.sine" in text(*of) for of in [(8, np.float32), (8, np.float16)])
    x = np.linspace(-9, 9, LARGE).astype(np.float16)
    want = np.sin(x.astype(np.float64)).astype(np.float16)
    np.testing.assert_array_max_ulp(np.asarray(weft.jit(jnp.sin)(x)), want, 1)


@BOTH
@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero|overflow)")
def test_powers_are_exact(called):
    rng = np.random.RandomState(0)
    x, y = (v.ravel() for v in np.meshgrid([*SPECIAL, 3, -3, 7.5], [*SPECIAL, 3, -3, 7.5]))
    x = np.concatenate([x, np.exp(rng.uniform(-9, 9, LARGE)), -rng.randint(1, 9, 99)])
    y = np.concatenate([y, rng.uniform(-7, 7, LARGE), rng.randint(-9, 9, 99)])
    x, y = x.astype(np.float32), y.astype(np.float32)
    got, want = run(called, lax.pow, x, y), x.astype(np.float64) ** y.astype(np.float64)
    assert_exact(got, want)
    x, y = abs(x), np.float32(1.7)
    assert_exact(run(called, lambda x: lax.pow(x, y), x), x.astype(np.float64) ** np.float64(y))
    assert_exact(run(called, lambda x: lax.pow(y, x), x), np.float64(y) ** x.astype(np.float64))


@needs_kernels
@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero)")
def test_what_calls_the_kernel():
    text = lambda n, of=jnp.sin, dtype=np.float32: (
        weft.jit(of).lower(weft.ShapeDtypeStruct((n,), dtype)).as_text()
    )
    calls = lambda *args: text(*args).count("weft_program")
    assert calls(LARGE) == 0 and calls(LARGE + 1) == 1
    twice = lambda x: jnp.sin(x) + jnp.arctan(x * 2)  # one call, with the sum
    assert calls(2 * LARGE, twice) == 1 and calls(2 * LARGE, jnp.arctan) == 1
    assert calls(2 * LARGE, jnp.expm1) == 1 and calls(2 * LARGE, lambda x: jnp.expm1(x * 2)) == 0
    angle = lambda x: jnp.arctan2(x, jnp.sin(x))
    assert calls(2 * LARGE, angle) == 1 and calls(2 * LARGE, lambda x: jnp.arctan2(x, x)) == 1
    assert calls(1 << 23) == 1 and calls(1 << 23, twice) == 0
    with config.scope(enable_x64=True):
        assert calls(2 * LARGE, jnp.cbrt, np.float64) == 0
        assert calls(2 * LARGE, lambda x: x**1.7, np.float64) == 1
        assert calls(2 * LARGE, lambda x: (x + 1) ** 1.7, np.float64) == 0
    x = np.linspace(-9, 9, 3 * 1367).astype(np.float32).reshape(3, 1367)
    slope = weft.jit(weft.vmap(weft.grad(lambda row: (jnp.sin(row) * row).sum())))(x)
    np.testing.assert_allclose(slope, np.sin(x) + np.cos(x) * x, rtol=1e-4, atol=1e-5)
    for name in ("sin", "arctanh"):
        half = x.astype(np.float16)
        want = getattr(np, name)(half.astype(np.float64)).astype(np.float16)
        np.testing.assert_array_max_ulp(weft.jit(getattr(jnp, name))(half), want, 1)


@needs_kernels
@pytest.mark.parametrize(
    "name", [*NAMES, "sinh", "arcsinh", "arccosh", "arctanh", "arctan2", "power", "by a number"]
)
def test_the_kernel_takes_bfloat16(name):
    every = np.arange(1 << 16, dtype=np.uint16).view(jnp.bfloat16)[5:]  # NaN, infinities among them
    number = every.dtype.type(1.7)
    fun = getattr(jnp, name, lambda x: x ** number.astype(x.dtype))
    args = (every, every[::-1]) if name in ("arctan2", "power") else (every,)
    program = weft.jit(lambda *xs: (fun(*xs), xs[0]))  # of two results, as one is cpu/rows.py's
    text = program.lower(*args).as_text()
    assert "weft_program" in text and "stablehlo.convert" not in text
    got = np.asarray(program(*args)[0])
    with np.errstate(all="ignore"):
        want = np.asarray(program(*[x.astype(np.float32) for x in args])[0]).astype(got.dtype)
    assert (np.isnan(got) == np.isnan(want)).all() and np.isnan(want).any()
    got, want = (np.where(np.isnan(want), 0, x).view(np.uint16) for x in (got, want))
    np.testing.assert_array_equal(got, want)


@needs_kernels
def test_bfloat16_that_is_computed_is_widened_before():
    x = weft.ShapeDtypeStruct((2 * LARGE,), jnp.bfloat16)
    text = weft.jit(lambda x: (jnp.sin(x * 3), x)).lower(x).as_text()
    assert "weft_program" in text and text.count("stablehlo.convert") == 2
