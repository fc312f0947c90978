"""`Expr` writes what its operators compute in NumPy."""

from fractions import Fraction

import numpy as np
import pytest

import weft
from weft import lax
from weft.primitives.elementwise import Elementwise
from weft.primitives.expr import LARGE, Expr, concatenate_exprs, count_along

X = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]], np.float32)
Y = np.array([[2.0, 4.0, -1.0], [0.5, 1.0, 8.0]], np.float32)
Z = (X + 1j * Y).astype(np.complex64)


def run(write, *xs):
    """The value of a formula whose result has the type of its first operand."""
    op = lambda hlo, aval, *values: write(*(Expr(hlo, v) for v in values)).value
    return np.asarray(Elementwise("toy", op, takes="any").apply(*xs)[0])


@pytest.mark.parametrize(
    "formula",
    [
        lambda x, y: 1 - x * y + 2 / y - (x - 1) / 2,
        lambda x, y: abs(-x) + y,
        lambda x, y: 2.0 * x + 3 * y,
    ],
)
def test_arithmetic(formula):
    np.testing.assert_allclose(run(formula, X, Y), formula(X, Y), rtol=1e-6)


def test_products_and_powers_of_two_are_exact():
    rng = np.random.RandomState(0)
    with weft.enable_x64(True):
        for dtype in (np.float32, np.float64):
            x, y = (rng.uniform(-9, 9, 40).astype(dtype) for _ in range(2))
            error = run(lambda x, y: x.product_error(y, x * y), x, y)
            third = run(lambda x: x.product_error(0.1, x * 0.1), x.astype(np.float64))
            for a, b, e, t in zip(x, y, error, third, strict=True):
                assert Fraction(float(a)) * Fraction(float(b)) - Fraction(float(a * b)) == float(e)
                assert Fraction(float(a)) * Fraction(0.1) - Fraction(float(a) * 0.1) == float(t)
        n = np.array([-1022.0, -3, 0, 1023])
        np.testing.assert_array_equal(run(lambda n: n.power_of_two(), n), 2.0**n)
        x, n = np.array([1.5, 0.75, 3, 1.25]), np.array([-1000.0, 1024, -7, 5])
        np.testing.assert_array_equal(
            run(lambda x, n: x.scale(n), x, n), np.ldexp(x, n.astype(int))
        )


def test_comparisons_choose():
    got = run(lambda x, y: ((x < y) & ~(x <= 0) | (y >= 8)).select(x, y), X, Y)
    np.testing.assert_array_equal(got, np.where((X < Y) & ~(X <= 0) | (Y >= 8), X, Y))
    got = run(lambda x: (x > 0).select(x, 0), X)
    np.testing.assert_array_equal(got, np.maximum(X, 0))
    got = run(lambda x: x.clamp(-1, 2), X)
    np.testing.assert_array_equal(got, np.clip(X, -1, 2))


def test_shapes():
    turned = lambda x: x.transpose((1, 0)).reshape((6,)).slice_axis(0, 6).reshape((3, 2))
    np.testing.assert_array_equal(run(lambda x: turned(x).transpose((1, 0)), X), X)
    got = run(lambda x: concatenate_exprs([x.slice_axis(2, 3), x.slice_axis(0, 2)], -1), X)
    np.testing.assert_array_equal(got, np.roll(X, 1, 1))
    got = run(lambda x: x.pad((0, 1), (0, -1), 7.0), X)
    np.testing.assert_array_equal(got, np.pad(X, ((0, 0), (1, 0)), constant_values=7)[:, :3])
    row = run(lambda x: x + x.slice((0, 0), (1, 3)).reshape((3,)).broadcast((2, 3), (1,)), X)
    np.testing.assert_array_equal(row, X + X[0])


def test_a_shorter_shape_repeats_along_the_last_axes():
    got = run(lambda x: x * x.slice_axis(0, 1).reshape((2,)), X)
    np.testing.assert_array_equal(got, X * X[:, :1])


def test_parts_bits_and_counts():
    np.testing.assert_array_equal(run(lambda z: z.conjugate(), Z), Z.conj())
    np.testing.assert_array_equal(run(lambda x: x.part("real").conjugate(), X), X)
    same = run(lambda x: (x.bitcast(np.int32) & -1 ^ 0).bitcast(np.float32), X)
    np.testing.assert_array_equal(same, X)
    got = run(lambda x: count_along(x.hlo, x.aval, 1), X)
    np.testing.assert_array_equal(got, np.arange(3, dtype=np.float32) + 0 * X)


@pytest.mark.usefixtures("as_for_users")
def test_a_quotient_used_twice_ends_no_loop():
    write = lambda hlo, aval, x: (lambda q: q * q + q)(Expr(hlo, x) / (Expr(hlo, x) + 2)).value
    toy = Elementwise("toy", write, takes="any")
    for dtype in (np.float32, np.float64):
        x = np.linspace(-1, 9, LARGE).astype(dtype)
        with weft.enable_x64(True):
            compiled = weft.jit(lambda x: toy.apply(x)[0]).lower(x).compile()
            got = np.asarray(compiled(x))
        main = compiled.as_text().partition("\nENTRY")[2]
        assert main.count(" fusion(") + main.count(" call(") == 1
        np.testing.assert_array_max_ulp(got, (x / (x + 2)) ** 2 + x / (x + 2), 8)


def test_quotients_of_many_int32_are_exact():
    """Quotients of large arrays are computed in float64, others by integers."""
    ends = [-(2**31), 1 - 2**31, -(2**30), -7, -2, -1, 0, 1, 2, 3, 7, 2**30, 2**31 - 2, 2**31 - 1]
    pairs = np.array([(a, b) for a in ends for b in ends])
    rng = np.random.default_rng(0)
    big = rng.integers(-(2**31), 2**31, (3000, 2)), rng.integers(-(2**31), 2**31, (3000, 2))
    big[1][:, 1] >>= rng.integers(0, 31, 3000)
    near = rng.integers(1, 2**15, (3000, 2))  # products, and one less and more
    near = [np.stack([near.prod(1) + k, near[:, 1]], 1) for k in (-1, 0, 1)]
    x, y = np.concatenate([pairs, *big, *near]).T
    found = weft.jit(lambda x, y: (lax.div(x, y), lax.rem(x, y)))(*(np.int32(v) for v in (x, y)))
    safe = np.where(y == 0, 1, y)
    quotient = np.sign(x) * np.sign(safe) * (abs(x) // abs(safe))
    rest = np.where(y == 0, x, x - quotient * safe)
    np.testing.assert_array_equal(found[0], np.where(y == 0, -1, quotient).astype(np.int32))
    np.testing.assert_array_equal(found[1], rest)
