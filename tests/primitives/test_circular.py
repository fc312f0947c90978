"""Functions of large float32 arrays, with the kernel and without, against NumPy's in float64."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import config, lax
from weft.primitives.expr import LARGE
from weft.xla import native

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, -2]
# nearest to a multiple of pi / 2, and the largest
FAR = [16367173 * 2.0**72, 3.4028235e38, -1e10, 1e-37, np.pi, np.pi / 2, -355.0]

needs_kernels = pytest.mark.skipif(bool(native.load_kernels()), reason="the kernels are not built")
BOTH = pytest.mark.parametrize("called", [False, pytest.param(True, marks=needs_kernels)])


def run(called, fun, *args):
    """The result of a program that calls the kernel, or does not."""
    with config.scope(native=called):
        compiled = weft.jit(fun)
        assert ("weft_function" in compiled.lower(*args).as_text()) == called
        return np.asarray(compiled(*args))


def assert_exact(got, want):
    """Equal to rounding, signs of zeros and NaN too."""
    want = want.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    got, want = np.where(np.isnan(got), 0, got), np.where(np.isnan(want), 0, want)
    np.testing.assert_array_max_ulp(got, want, 1)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


NAMES = ["sin", "cos", "tan", "arctan", "arcsin", "arccos", "cbrt"]
CALLED_ALONE = ["sinh", "arcsinh", "arccosh", "arctanh"]  # else they are the engine's


@pytest.mark.parametrize(
    "name, called",
    [(name, False) for name in NAMES]
    + [pytest.param(name, True, marks=needs_kernels) for name in NAMES + CALLED_ALONE],
)
@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero|overflow)")
def test_functions_of_one_operand(name, called):
    rng = np.random.RandomState(0)
    all_sizes = rng.choice([-1, 1], LARGE) * np.exp(rng.uniform(-80, 80, LARGE))
    x = [SPECIAL, FAR, rng.uniform(-1, 1, LARGE), rng.standard_cauchy(LARGE) * 100, all_sizes]
    x = np.concatenate([*x, rng.uniform(-88, 88, 1001)]).astype(np.float32)
    got = run(called, getattr(jnp, name), x)
    assert_exact(got, getattr(np, name)(x.astype(np.float64)))


@BOTH
def test_the_angle_of_a_point(called):
    rng = np.random.RandomState(0)
    y, x = (v.ravel() for v in np.meshgrid(SPECIAL, SPECIAL))
    y = np.concatenate([y, rng.standard_cauchy(LARGE)]).astype(np.float32)
    x = np.concatenate([x, rng.standard_cauchy(LARGE)]).astype(np.float32)
    got = run(called, jnp.arctan2, y, x)
    assert_exact(got, np.arctan2(y.astype(np.float64), x.astype(np.float64)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("far", [False, True])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_the_remainder_is_exact(dtype, far):
    rng = np.random.RandomState(0)
    x, y = (v.ravel().astype(dtype) for v in np.meshgrid(SPECIAL, SPECIAL))
    some = rng.uniform(1, 9, LARGE).astype(dtype)
    most = 27 if dtype is np.float32 else 49
    multiple = (some * 2.0 ** rng.uniform(0, most, LARGE).round(1)).astype(dtype)
    multiple[::2] = (some * rng.randint(1, 1 << most, LARGE))[::2]
    less = np.nextafter(multiple, dtype(0))
    x = np.concatenate([x, multiple, less, -multiple, some, dtype([1e30 if far else 1])])
    y = np.concatenate([y, some, -some, some, multiple, dtype([1])])
    with config.scope(enable_x64=dtype is np.float64):
        got = np.asarray(weft.jit(lax.rem)(x, y))
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
    calls = lambda *args: text(*args).count("weft_function")
    assert calls(LARGE) == 0 and calls(LARGE + 1) == 1
    twice = lambda x: jnp.sin(x) + jnp.arctan(x * 2)
    assert calls(2 * LARGE, twice) == 1 and calls(2 * LARGE, jnp.arctan) == 1
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
@pytest.mark.parametrize("name", [*NAMES, *CALLED_ALONE, "arctan2", "power", "by a number"])
def test_the_kernel_takes_bfloat16(name):
    every = np.arange(1 << 16, dtype=np.uint16).view(jnp.bfloat16)[5:]  # NaN, infinities among them
    number = every.dtype.type(1.7)
    fun = getattr(jnp, name, lambda x: x ** number.astype(x.dtype))
    args = (every, every[::-1]) if name in ("arctan2", "power") else (every,)
    program = weft.jit(fun)
    text = program.lower(*args).as_text()
    assert "weft_function" in text and "stablehlo.convert" not in text
    got = np.asarray(program(*args))
    with np.errstate(all="ignore"):
        want = np.asarray(program(*[x.astype(np.float32) for x in args])).astype(got.dtype)
    assert (np.isnan(got) == np.isnan(want)).all() and np.isnan(want).any()
    got, want = (np.where(np.isnan(want), 0, x).view(np.uint16) for x in (got, want))
    np.testing.assert_array_equal(got, want)


@needs_kernels
def test_bfloat16_that_is_computed_is_widened_before():
    x = weft.ShapeDtypeStruct((2 * LARGE,), jnp.bfloat16)
    text = weft.jit(lambda x: jnp.sin(x * 3)).lower(x).as_text()
    assert "weft_function" in text and text.count("stablehlo.convert") == 2
