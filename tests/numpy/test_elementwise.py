"""Elementwise functions of several operations against NumPy: rounding, powers, bits, frexp."""

import functools
import itertools
import math
import operator
from fractions import Fraction

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.numpy import compare
from tests.numpy.compare import BOOLS, FLOATS, INTS, OTHERS, SPECIAL
from weft import dtypes, grad, hessian, jit, lax, make_jaxpr, vmap
from weft.errors import DtypeError

NAN, INF = np.nan, np.inf
agree = functools.partial(compare.agree, rtol=1e-4)

UNARY = """
abs angle bitwise_count ceil conj deg2rad fabs floor frexp imag log10 modf positive rad2deg real
reciprocal rint round sinc spacing trunc
""".split()  # noqa: SIM905
BINARY = """
copysign divmod float_power floor_divide fmax fmin fmod gcd heaviside hypot lcm ldexp left_shift
logaddexp logaddexp2 nextafter power remainder right_shift
""".split()  # noqa: SIM905
OPERANDS = {
    "float32": np.meshgrid(SPECIAL, SPECIAL),
    "float16": np.meshgrid(*[FLOATS.astype(np.float16)] * 2),
    "int32": np.meshgrid(INTS, OTHERS),
    "uint8": np.meshgrid(np.uint8([0, 1, 2, 7, 200]), np.uint8([1, 2, 5, 7, 200])),
    "bool": np.meshgrid(BOOLS, BOOLS),
    "complex64": np.meshgrid(*[(FLOATS + 1j * FLOATS[::-1]).astype(np.complex64)] * 2),
}
# Where NumPy's result is of another kind, or refused.
NOT_NUMPYS = {
    ("reciprocal", "int32"), ("reciprocal", "uint8"), ("reciprocal", "bool"), ("power", "int32"),
    ("spacing", "int32"), ("spacing", "uint8"), ("spacing", "bool"),
    ("floor_divide", "bool"), ("divmod", "bool"), ("positive", "bool"), ("round", "bool"),
    ("deg2rad", "complex64"), ("rad2deg", "complex64"),
    ("logaddexp", "complex64"), ("logaddexp2", "complex64"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", OPERANDS)
def test_values_and_what_is_refused_are_numpys(dtype):
    """One program of all functions that NumPy has for the dtype; the others are errors."""
    x, y = OPERANDS[dtype]
    calls, wanted = [], []
    for name in [n for n in UNARY + BINARY if (n, dtype) not in NOT_NUMPYS]:
        args = (x,) if name in UNARY else (x, y)
        try:
            wanted.append(getattr(np, name)(*args))
            calls.append((name, args))
        except TypeError:
            with pytest.raises(DtypeError, match=f"^{name}: .*; got "):
                getattr(jnp, name)(*args)
    run = lambda *xs: [getattr(jnp, name)(*xs[: len(args)]) for name, args in calls]
    found = jit(run)(x, y)
    for (name, _), got, want in zip(calls, found, wanted, strict=True):
        several = isinstance(want, tuple)
        for g, w in zip(got if several else [got], want if several else [want], strict=True):
            assert g.dtype.kind == w.dtype.kind or dtype == "bool", name
            tol = 2e-3 if np.float16 in (g.dtype, w.dtype) else 1e-4
            np.testing.assert_allclose(g, w.astype(g.dtype), rtol=tol, atol=tol / 2, err_msg=name)


def test_sums_of_complex_exponentials():
    x, y = OPERANDS["complex64"]
    for name, exp in (("logaddexp", np.exp), ("logaddexp2", np.exp2)):
        got = getattr(jnp, name)(x, y)
        want = np.log(exp(x) + exp(y)) / np.log(exp(1))  # the angle of a log is in (-pi, pi]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@compare.in_one_program()
def test_shifts_and_bits():
    counts = np.array([0, 1, 2, 3, 4, 31, 5], np.int32)
    agree("left_shift", INTS, counts)
    agree("right_shift", INTS, counts)
    agree("right_shift", INTS.astype(np.uint8), np.uint8(3))
    agree("bitwise_count", INTS)
    agree("invert", INTS)
    agree("invert", BOOLS)
    assert jnp.bitwise_count(INTS).dtype == np.uint8
    agree("angle", (FLOATS + 1j * FLOATS[::-1]).astype(np.complex64), deg=True)
    np.testing.assert_allclose(jnp.reciprocal(INTS[[0, -1]]), [-1 / 7, 0.02], rtol=1e-6)


@pytest.mark.parametrize("decimals", [0, 1, 2, -1])
def test_round(decimals):
    agree("round", FLOATS * 10, decimals)
    assert jnp.round(jnp.ones(3, jnp.bfloat16), decimals).dtype == jnp.bfloat16


def test_round_compiled_and_beyond_the_digits_there_are():
    x = np.float32([1.25, -2.5, 0.0])
    decimals = (-400, -38, -37, -2, 1, 37, 38, 300, 301, 400)
    rows = weft.jit(lambda x: [jnp.round(x, n) for n in decimals])(x)
    for n, row in zip(decimals, rows, strict=True):
        want = np.round(x, n) if -30 < n < 30 else x if n > 0 else 0 * x
        np.testing.assert_allclose(row, want, rtol=1e-6, err_msg=str(n))
    with weft.enable_x64():
        assert weft.jit(lambda x: jnp.round(x, 300))(1.25e-299) == 1.2e-299


def test_round_as_python_does():
    x = jnp.float32(-12.5)
    assert round(x) == -12 and round(x).dtype == np.int32
    assert round(x, 0) == -12 and round(x, 0).dtype == np.float32 and round(x, -1) == -10
    assert round(jnp.float32(1.375), 2) == np.float32(1.38) and round(jnp.int8(7)).dtype == np.int8
    assert round(jnp.int8(7), -1) == 10 and round(jnp.int8(7), -1).dtype == np.int8


@compare.in_one_program()
def test_power():
    agree("power", np.abs(FLOATS), FLOATS)
    agree("power", INTS, np.abs(OTHERS))
    agree("power", np.int32(-3), np.arange(5, dtype=np.int32))
    x = jnp.array([1.5, -2.0])
    for n in range(-3, 5):
        np.testing.assert_allclose(x**n, np.asarray(x) ** n, rtol=1e-6)
    assert (jnp.arange(3) ** 2).dtype == np.int32
    assert (jnp.arange(3) ** 2.0).dtype == np.float32
    np.testing.assert_allclose(2.0**x, 2.0 ** np.asarray(x), rtol=1e-6)
    assert jnp.float_power(2, 3).dtype == np.float32
    assert grad(lambda y: 0.0**y)(2.0) == 0
    assert grad(lambda x: x**3)(2.0) == 12


def test_powers_of_integer_arrays_have_derivatives_at_zero():
    features = lambda x: jnp.sum(x ** jnp.arange(4))
    for g in (grad(features), jit(grad(features))):
        np.testing.assert_allclose(vmap(g)(jnp.array([0.0, 2.0])), [1, 17])
    assert (jnp.ones(2, jnp.bfloat16) ** jnp.arange(2)).dtype == jnp.bfloat16
    assert not (2.0 ** jnp.arange(2)).weak_type and (2.0 ** jnp.arange(2)).dtype == np.float32


def test_power_of_a_python_integer_multiplies():
    assert "integer_pow[y=3]" in str(make_jaxpr(lambda x: x**3)(1.0))
    assert "pow a 3.0" in str(make_jaxpr(lambda x: x**3.0)(1.0))


def test_float_parts():
    for x in (FLOATS, np.float32([1e-40, 1e-45, -3e-39]), FLOATS.astype(np.float16)):
        agree("frexp", x)
    agree("ldexp", FLOATS[0], np.array([3, -3, 200], np.int32))
    agree("ldexp", np.float32([1e-30, 1e30]), np.array([200, -200], np.int32))
    agree("nextafter", SPECIAL, np.float32(1))


@pytest.mark.parametrize("dtype, n", [(np.float32, 200), (np.float64, 1500)])
def test_exponents_that_a_program_knows_are_those_of_arguments(dtype, n):
    """XLA multiplies factors that it knows with each other before others."""
    small = dtype(2.0) ** dtype(-n // 2)
    with weft.enable_x64():
        for x, power in [(small, n), (1 / small, -n), (-small, n), (dtype(0), n), (dtype(3), -n)]:
            want = np.ldexp(x, power)
            for known in (power, np.array([power, power], np.int32)):
                found = weft.jit(lambda x, known=known: jnp.ldexp(x, known))(x)
                assert np.all(np.asarray(found) == want), (x, power)


def test_second_derivatives_where_operands_tie():
    curve = jit(hessian(lambda v: jnp.hypot(v[0], v[1])))(jnp.ones(2))
    np.testing.assert_allclose(curve, np.array([[1, -1], [-1, 1]]) / 8**0.5, rtol=1e-6)
    curve = jit(hessian(lambda v: jnp.logaddexp(v[0], v[1])))(jnp.ones(2))
    np.testing.assert_allclose(curve, np.array([[1, -1], [-1, 1]]) / 4, rtol=1e-6)
    curve = jit(hessian(lambda v: lax.cumlogsumexp(v)[-1]))(jnp.zeros(3))
    np.testing.assert_allclose(curve, np.eye(3) / 3 - np.ones((3, 3)) / 9, rtol=1e-5)


def test_frexp_differentiates_its_fraction():
    slope = vmap(grad(lambda x: jnp.frexp(x)[0]))(jnp.array([-3.0, 0.75, 4.0]))
    np.testing.assert_array_equal(slope, [0.25, 1.0, 0.125])


def test_powers_with_truth_values_are_not_weak():
    x = jnp.array([True, False])
    for y in (x**2, 2**x, x ** jnp.asarray(2), jnp.power(True, 2)):
        assert (y.dtype, y.weak_type) == (np.int32, False)
    assert (x**0).tolist() == [1, 1]
    with pytest.raises(DtypeError, match="integers must not be raised to negative powers"):
        x**-1


# functions of two integers -> Python's; divisors, powers and shifts are positive
ANY_PAIR = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "gcd": math.gcd,
    "lcm": math.lcm,
    "maximum": max,
    "minimum": min,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "greater": operator.gt,
}
BY_POSITIVE = {
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "fmod": lambda x, y: int(math.copysign(1, x)) * (abs(x) % y),
    "power": lambda x, y: pow(x, y, 2**64),
    "left_shift": lambda x, y: x << min(y, 64),
    "right_shift": lambda x, y: x >> min(y, 64),
}
OF_ONE = {
    "abs": abs,
    "negative": operator.neg,
    "square": lambda x: x * x,
    "invert": operator.inv,
    "bitwise_count": lambda x: abs(x).bit_count(),
    "sign": lambda x: (x > 0) - (x < 0),
    "positive": operator.pos,
    "trunc": math.trunc,
}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_integers_at_the_extremes_of_their_dtype(dtype):
    """Results are Python's integers modulo 2 ** bits."""
    info = np.iinfo(dtype)
    numbers = [info.min, info.min + 1, info.min // 2, info.max, info.max - 1, info.max // 3]
    numbers = sorted({*numbers, 0, 1, 2, 3, 6, 31, 64, *([-1, -2, -3, -64] if info.min else [])})
    pairs = [(x, y) for x in numbers for y in numbers]
    below = [(x, y) for x, y in pairs if y > 0]
    with weft.enable_x64(info.bits == 64):
        array = lambda rows: [np.array(v, dtype) for v in zip(*rows, strict=True)]
        tables = (OF_ONE, [(x,) for x in numbers]), (ANY_PAIR, pairs), (BY_POSITIVE, below)
        got = jit(
            lambda *columns: [
                {name: getattr(jnp, name)(*xs) for name in functions}
                for (functions, _), xs in zip(tables, columns, strict=True)
            ]
        )(*[array(rows) for _, rows in tables])
    for (functions, rows), outs in zip(tables, got, strict=True):
        for name, function in functions.items():
            out = np.asarray(outs[name])
            want = [int(function(*row)) % 2**64 for row in rows]
            want = np.array(want, np.uint64).astype(out.dtype)
            np.testing.assert_array_equal(out, want, err_msg=name)


def test_a_negative_power_of_integers_that_is_computed_is_a_reciprocal_without_its_fraction():
    base, n = jnp.array([0, 1, -1, -1, 3]), jnp.array([-1, -3, -2, -3, -5])
    for power in (jnp.power, jit(jnp.power)):
        np.testing.assert_array_equal(power(base, n), [0, 1, 1, -1, 0])


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32"])
def test_integers_are_rounded_to_tens(kind):
    limits = np.iinfo(kind)
    x = np.unique(np.clip(np.arange(-256, 256), limits.min, limits.max)).astype(kind)
    for decimals in (0, -1, -2, -3, -10):
        step = 10**-decimals
        want = [step * round(Fraction(int(v), step)) for v in x]
        want = np.array(want).astype(kind)  # modulo the dtype's range
        np.testing.assert_array_equal(jnp.round(jnp.asarray(x), decimals), want)


@pytest.mark.parametrize("kind", ["bool", "int8", "uint8", "uint16", "int32"])
def test_powers_take_as_many_steps_as_the_exponent_has_bits(kind):
    """All bits of the exponent count, its sign too, and no more: the results are as Python's."""
    dtype = np.dtype(kind)
    least, most = (0, 1) if kind == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    exponents = np.array([least, 0, 1, most // 2, most], dtype)
    base = np.array([3, -5, 7, 9, -11], np.int32)
    jaxpr = weft.make_jaxpr(jnp.power)(base, exponents).jaxpr
    steps = 1 if kind == "bool" else 8 * dtype.itemsize - (dtype.kind == "i")
    assert [eqn.primitive.name for eqn in jaxpr.eqns].count("and") == steps
    want = [0 if n < 0 else pow(int(x), int(n), 1 << 32) for x, n in zip(base, exponents)]
    found = jnp.power(base, jnp.asarray(exponents))  # reciprocals of these bases round to 0
    np.testing.assert_array_equal(found, np.array(want, np.uint32).astype(found.dtype))


def test_gcd_and_lcm_take_truth_values_with_integers():
    x = jnp.array([True, False])
    assert jnp.lcm(x, 2).tolist() == [2, 0]
    assert jnp.gcd(jnp.array([4, 3], np.uint8), x).tolist() == [1, 3]
    with pytest.raises(DtypeError, match="gcd: operands must be integers"):
        jnp.gcd(x, x)


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_spacing_down_to_subnormals(dtype):
    """In bits: a processor that takes subnormals for 0 cannot count them."""
    dtype = dtypes.canonicalize(dtype)
    limits = dtypes.finfo(dtype)
    tiny, least = np.array([limits.tiny, limits.smallest_subnormal], dtype)
    x = np.array([0, -0.0, least, -3 * least, tiny, 2 * tiny, 1, -1.5, limits.max], dtype)
    want = [least, least, least, -least, least, 2 * least, limits.eps, -limits.eps]
    if dtype == np.float16:  # always to the next number above, in NumPy too
        want = np.abs(want)
    largest = np.float64(limits.max) - np.float64(np.nextafter(limits.max, dtype.type(0)))
    got = np.asarray(jnp.spacing(x))
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, np.array([*want, largest], dtype))


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extrema_of_complex_numbers_keep_nan(name):
    parts = [0.0, 1.0, np.nan, np.inf]
    x = np.array([complex(a, b) for a in parts for b in parts], np.complex64)
    y = x[:, None]
    with np.errstate(invalid="ignore"):
        want = getattr(np, name)(x, y)
    got = np.asarray(getattr(jnp, name)(x, y))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    kept = ~np.isnan(want)
    np.testing.assert_array_equal(got[kept], want[kept])
    reduced = getattr(jnp, name[:3])(x)
    assert np.isnan(reduced)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int16", "float32", "float16", "bfloat16"])
def test_many_numbers_divided_by_one(dtype):
    """A divisor that is known when the program runs, and dividends around its multiples."""
    dtype = np.dtype(dtype)
    largest = 2**8 if dtype.itemsize == 1 else 2**15
    whole = np.arange(8192) % largest  # so many that formulas for large arrays are chosen
    whole = whole.astype(dtype).astype(np.int64)  # as the dtype rounds them
    if dtype.kind == "f":
        whole = np.where(np.arange(8192) % 2, whole, -whole)
    both = lambda x, y: (jnp.floor_divide(x, y), jnp.remainder(x, y))
    # The second program has an array of divisors, which XLA finds to be one number.
    divide = [jit(both), jit(lambda x, y: both(x, jnp.broadcast_to(jnp.reshape(y, 1), x.shape)))]
    for divisor in [1, 2, 3, 5, 7, 9, 10, 49, 98, 103, 107, 127, *range(195, 253, 3), 248]:
        if dtype.itemsize == 1 and divisor > 127:
            continue
        y = np.asarray(divisor).astype(dtype)
        multiples = whole // int(y) * int(y)
        multiples = multiples.astype(dtype).astype(np.int64)
        for x, program in itertools.product((whole, multiples), divide):
            quotient, rest = program(x.astype(dtype), y)
            np.testing.assert_array_equal(quotient, (x // int(y)).astype(dtype))
            if dtype.itemsize > 2 or dtype.kind != "f":
                np.testing.assert_array_equal(rest, (x % int(y)).astype(dtype))
