"""Arithmetic on pairs of float64 against mpmath, compiled: XLA must not simplify it away."""

import mpmath
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.explain.numerics import pairs
from weft.explain.numerics.pairs import Pair

RNG = np.random.default_rng(0)
COUNT = 40


def wide(low, high, sign=True):
    """Numbers that are even on a logarithmic scale, of both signs."""
    x = np.exp(RNG.uniform(np.log(low), np.log(high), COUNT))
    return x * RNG.choice([-1.0, 1.0], COUNT) if sign else x


def near_one(low, high):
    return 1 - wide(low, high, sign=False)


# The function of pairs, mpmath's, and the operands.
FUNCTIONS = {
    "add": (pairs.add, lambda x, y: x + y, wide(1e-20, 1e20), wide(1e-20, 1e20)),
    "subtract": (pairs.subtract, lambda x, y: x - y, 1 + wide(1e-15, 1), 1 + wide(1e-15, 1)),
    "multiply": (pairs.multiply, lambda x, y: x * y, wide(1e-99, 1e99), wide(1e-99, 1e99)),
    "divide": (pairs.divide, lambda x, y: x / y, wide(1e-99, 1e99), wide(1e-99, 1e99)),
    "power": (lambda x: pairs.power(x, -5), lambda x: x**-5, wide(1e-20, 1e20)),
    "sqrt": (pairs.sqrt, mpmath.sqrt, wide(1e-250, 1e250, False)),
    "cbrt": (pairs.cbrt, lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), wide(1e-90, 1e90)),
    "exp": (pairs.exp, mpmath.exp, wide(1e-20, 600)),
    "expm1": (pairs.expm1, mpmath.expm1, wide(1e-30, 600)),
    "exp2": (pairs.exp2, lambda x: mpmath.mpf(2) ** x, wide(1e-20, 800)),
    "log": (pairs.log, mpmath.log, np.append(wide(1e-250, 1e250, False), 1 + wide(1e-15, 0.4))),
    "log1p": (pairs.log1p, mpmath.log1p, np.append(wide(1e-30, 0.9), wide(0.1, 1e200, False))),
    "log2": (pairs.log2, lambda x: mpmath.log(x, 2), wide(1e-250, 1e250, False)),
    "pow": (pairs.raise_to, lambda x, y: x**y, wide(1e-5, 1e5, False), wide(0.1, 50)),
    "logistic": (pairs.logistic, lambda x: 1 / (1 + mpmath.exp(-x)), wide(1e-10, 600)),
    "logaddexp": (
        pairs.logaddexp,
        lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
        wide(0.1, 50),
        wide(0.1, 50),
    ),
    "sinh": (pairs.sinh, mpmath.sinh, wide(1e-20, 600)),
    "cosh": (pairs.cosh, mpmath.cosh, wide(1e-20, 600)),
    "tanh": (pairs.tanh, mpmath.tanh, wide(1e-20, 300)),
    "asinh": (pairs.asinh, mpmath.asinh, wide(1e-20, 1e90)),
    "acosh": (pairs.acosh, mpmath.acosh, 1 + wide(1e-15, 1e50, False)),
    "atanh": (pairs.atanh, mpmath.atanh, np.append(wide(1e-20, 0.9), near_one(1e-15, 0.5))),
    "sin": (pairs.sin, mpmath.sin, wide(1e-20, 1e10)),
    "cos": (pairs.cos, mpmath.cos, wide(1e-20, 1e10)),
    "tan": (pairs.tan, mpmath.tan, wide(1e-20, 1e6)),
    "atan": (pairs.atan, mpmath.atan, wide(1e-20, 1e20)),
    "atan2": (pairs.atan2, mpmath.atan2, wide(1e-20, 1e20), wide(1e-20, 1e20)),
    "asin": (pairs.asin, mpmath.asin, np.append(wide(1e-20, 0.9), near_one(1e-15, 0.5))),
    "acos": (pairs.acos, mpmath.acos, np.append(wide(1e-20, 0.9), near_one(1e-15, 0.5))),
}


def exact(x):
    """The pair of arrays as numbers of mpmath."""
    parts = [np.ravel(np.asarray(p)) for p in x]
    return [mpmath.mpf(float(h)) + mpmath.mpf(float(low)) for h, low in zip(*parts, strict=True)]


def draw(x):
    return Pair(jnp.asarray(x), jnp.asarray(x * RNG.uniform(-1, 1, np.shape(x)) * 2.0**-54))


def find_bits(found, want, unit=None):
    """The number of right bits of the worst result, relative to itself or to a unit."""
    worst = max(
        abs(f - w) / abs(w if unit is None else unit) for f, w in zip(found, want, strict=True)
    )
    return -float(mpmath.log(worst, 2)) if worst else 200


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_more_than_90_bits(name):
    fun, reference, *operands = FUNCTIONS[name]
    with weft.enable_x64(True), mpmath.workdps(60):
        given = [draw(x) for x in operands]
        found = weft.jit(fun)(*given)
        want = [reference(*xs) for xs in zip(*map(exact, given), strict=True)]
        assert find_bits(exact(found), want) > 90
        assert (abs(found.low) <= abs(found.high) * 2.0**-52).all()


def test_constants_are_not_simplified(kernels_as_for_users):
    """XLA simplifies (x + 1) - 1 to x, for floats too."""
    with weft.enable_x64(True):
        x = jnp.array([1e-20])
        total = weft.jit(lambda x: pairs.add(pairs.number(1, x), pairs.pair_of(x)))(x)
        assert total.high[0] == 1
        assert total.low[0] == 1e-20


def test_a_product_is_not_contracted_into_a_sum(kernels_as_for_users):
    with weft.enable_x64(True):
        x, y = jnp.asarray(wide(0.1, 10)), jnp.asarray(wide(0.1, 10))
        found = weft.jit(lambda x, y: pairs.multiply_exactly(x * y, y))(x, y)
        rounded = [mpmath.mpf(float(p)) for p in np.asarray(x) * np.asarray(y)]
        with mpmath.workdps(60):
            want = [p * mpmath.mpf(float(v)) for p, v in zip(rounded, np.asarray(y), strict=True)]
            assert find_bits(exact(found), want) > 100


@pytest.mark.parametrize("shape", [(7, 300, 5), (3, 3, 3)])
def test_products_of_matrices(shape):
    n, k, m = shape
    with weft.enable_x64(True), mpmath.workdps(60):
        x, y = draw(RNG.normal(size=(n, k)) * 1e3), draw(RNG.normal(size=(k, m)))
        product = lambda x, y: pairs.contract(jnp.matmul, x, y, k, ((1,), (0,)))
        found = weft.jit(product)(x, y)
        a, b = np.reshape(exact(x), (n, k)), np.reshape(exact(y), (k, m))
        assert find_bits(exact(found), (a @ b).ravel(), unit=1e3) > 90


def test_sums_that_cancel():
    with weft.enable_x64(True), mpmath.workdps(60):
        x = RNG.normal(size=500)
        x = draw(np.concatenate([x * 1e16, -x * 1e16, wide(1e-3, 1)]))
        total = lambda x: pairs.sum_linearly(lambda v: jnp.sum(v), [x], x.high.size, (0,))
        found = weft.jit(total)(x)
        assert find_bits(exact(found), [sum(exact(x))], unit=1e16) > 90


def test_results_that_are_not_finite_are_those_of_float64():
    with weft.enable_x64(True):
        x = jnp.array([np.inf, -np.inf, np.nan, 0.0, 1e300])
        for fun, plain in (
            (pairs.exp, jnp.exp),
            (pairs.log, jnp.log),
            (pairs.square_pair, jnp.square),
        ):
            found = weft.jit(lambda x, f=fun, p=plain: pairs.guard(p(x), f(pairs.pair_of(x))))(x)
            np.testing.assert_array_equal(np.isfinite(found.high), np.isfinite(plain(x)))
            np.testing.assert_allclose(found.high, plain(x))
            assert np.isfinite(found.low).all()
