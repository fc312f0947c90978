"""Elementwise functions against NumPy: values, dtypes, special values, derivatives, errors."""

import numpy as np
import pytest

import weft.numpy as jnp
from weft import grad, hessian, jit, lax, make_jaxpr, vmap
from weft.errors import DtypeError, ShapeError

NAN, INF = np.nan, np.inf
FLOATS = np.array([[0.3, -1.7, 2.5], [-0.5, 3.5, 0.9]], np.float32)
SPECIAL = np.array([NAN, INF, -INF, 0.0, -0.0, 1, -1, 2.5, -2.5, 0.5], np.float32)
INTS = np.array([-7, -1, 0, 1, 2, 7, 50], np.int32)
OTHERS = np.array([3, -3, 2, -2, 5, 7, -7], np.int32)
BOOLS = np.array([True, False, True])
COMPLEX = (FLOATS + 1j * FLOATS[::-1]).astype(np.complex64)

EXPONENTIALS = ["exp", "expm1", "exp2", "log", "log10", "log2", "log1p", "sqrt"]
ANGLES = [
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
]
PARTS = [
    "abs",
    "positive",
    "real",
    "imag",
    "conj",
    "angle",
    "sign",
    "square",
    "negative",
    "reciprocal",
]
ROUNDING = ["floor", "ceil", "trunc", "rint", "round"]
QUESTIONS = ["isnan", "isinf", "isfinite", "isreal", "iscomplex", "logical_not"]
REAL = [
    "fabs",
    "cbrt",
    "deg2rad",
    "rad2deg",
    "signbit",
    "isposinf",
    "isneginf",
    "sinc",
    "i0",
    "spacing",
    "modf",
    "frexp",
]
BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "maximum",
    "minimum",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "fmax",
    "fmin",
    "remainder",
    "floor_divide",
    "fmod",
    "divmod",
]
BINARY_FLOAT = ["arctan2", "hypot", "logaddexp", "logaddexp2", "copysign", "nextafter", "heaviside"]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm"]


def agree(name, *args, rtol=1e-4, **kwargs):
    """The function gives what NumPy's gives."""
    got = getattr(jnp, name)(*args, **kwargs)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(*args, **kwargs)
    for g, w in zip(*[x if isinstance(x, tuple) else (x,) for x in (got, want)], strict=True):
        g = np.asarray(g)
        assert g.shape == w.shape
        assert g.dtype.kind == w.dtype.kind or name in ("signbit", "rint", "reciprocal")
        np.testing.assert_allclose(g, w, rtol=rtol, atol=1e-5)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [*EXPONENTIALS, *ANGLES, *PARTS, *ROUNDING, *QUESTIONS, *REAL])
def test_unary_floats(name):
    agree(name, FLOATS)
    agree(name, SPECIAL)


@pytest.mark.parametrize(
    "name", [*["abs", "positive", "real", "imag", "conj", "sign", "square"], *QUESTIONS]
)
def test_unary_integers(name):
    agree(name, INTS)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [*EXPONENTIALS, *ANGLES, *PARTS, *QUESTIONS, "rint", "sinc"])
def test_unary_complex(name):
    if name != "exp2":
        agree(name, COMPLEX)


@pytest.mark.parametrize("name", ["log2", "log10"])
def test_the_logarithm_of_complex_zero_is_infinite_in_its_real_part(name):
    out = np.asarray(getattr(jnp, name)(np.array([0, INF, 4j], np.complex64)))
    base = {"log2": 2.0, "log10": 10.0}[name]
    np.testing.assert_array_equal(out[:2], np.array([-INF, INF], np.complex64))
    np.testing.assert_allclose(out[2], np.log(4j) / np.log(base), rtol=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [*BINARY, *BINARY_FLOAT])
def test_binary_floats(name):
    agree(name, FLOATS, FLOATS[0])
    agree(name, *np.meshgrid(SPECIAL, SPECIAL))


@pytest.mark.parametrize("name", [*BINARY, *BITS])
def test_binary_integers(name):
    agree(name, INTS, OTHERS)


@pytest.mark.parametrize(
    "name", ["maximum", "minimum", "less", "less_equal", "greater", "fmax", "fmin"]
)
def test_complex_numbers_are_ordered_by_real_part_first(name):
    agree(name, COMPLEX, np.array([0.3 - 2j, -1.7 + 9j, 2.5j], np.complex64))


@pytest.mark.parametrize(
    "name", ["add", "multiply", "logical_and", "bitwise_or", "equal", "maximum"]
)
def test_truth_values(name):
    got = getattr(jnp, name)(BOOLS, BOOLS[::-1].copy())
    assert got.dtype == np.bool_
    np.testing.assert_array_equal(got, getattr(np, name)(BOOLS, BOOLS[::-1]))


def test_shifts_and_bits():
    counts = np.array([0, 1, 2, 3, 4, 31, 5], np.int32)
    agree("left_shift", INTS, counts)
    agree("right_shift", INTS, counts)
    agree("right_shift", INTS.astype(np.uint8), np.uint8(3))
    agree("bitwise_count", INTS)
    agree("invert", INTS)
    agree("invert", BOOLS)
    assert jnp.bitwise_count(INTS).dtype == np.uint8


@pytest.mark.parametrize("decimals", [0, 1, 2, -1])
def test_round(decimals):
    agree("round", FLOATS * 10, decimals)
    assert jnp.round(jnp.ones(3, jnp.bfloat16), decimals).dtype == jnp.bfloat16


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


def test_choosing():
    agree("clip", FLOATS, -1, 1)
    agree("clip", FLOATS, None, FLOATS[0])
    agree("where", FLOATS > 0, FLOATS, np.float32(0))
    agree("where", FLOATS[0] > 0, FLOATS, -FLOATS)
    agree("where", INTS, INTS, OTHERS)
    agree("select", [FLOATS > 2, FLOATS > 0], [FLOATS, FLOATS * 2], 5)
    agree("piecewise", FLOATS, [FLOATS > 0, FLOATS < -1], [lambda x: x * 2, lambda x: -x])
    agree("piecewise", FLOATS, [FLOATS > 2], [7, lambda x: -x])
    agree("nan_to_num", SPECIAL)
    agree("nan_to_num", SPECIAL, nan=1, posinf=2, neginf=3)
    agree("nan_to_num", INTS)


def test_nan_to_num_of_complex_numbers():
    x = np.array([NAN + 1j, 1 + INF * 1j], np.complex64)
    np.testing.assert_allclose(jnp.nan_to_num(x), np.nan_to_num(x))


def test_comparing_arrays():
    x = FLOATS
    assert jnp.array_equal(x, x) and not jnp.array_equal(x, x[0]) and not jnp.array_equal(x, -x)
    assert jnp.array_equal(SPECIAL, SPECIAL, equal_nan=True)
    assert not jnp.array_equal(SPECIAL, SPECIAL)
    assert jnp.array_equiv(x, x[None]) and not jnp.array_equiv(x, x[:, :2])
    assert jnp.allclose(x, x + 1e-7) and not jnp.allclose(x, x + 1e-3)
    for equal_nan in (False, True):
        agree("isclose", *np.meshgrid(SPECIAL, SPECIAL), equal_nan=equal_nan)
    agree("isclose", INTS, INTS + 1, rtol=0.5)
    assert jnp.iscomplexobj(1j) and jnp.isrealobj(x) and jnp.isscalar(jnp.array(1))
    assert not jnp.isscalar(x) and not jnp.iscomplexobj([1, 2])


@pytest.mark.parametrize("x", [0.0, 1e-3, 0.7])
def test_derivatives_where_formulas_break(x):
    import scipy.differentiate

    for name, start in (("sinc", x), ("logaddexp", x)):
        f = (lambda v: jnp.logaddexp(v, 0.3)) if name == "logaddexp" else getattr(jnp, name)
        g = (lambda v: np.logaddexp(v, 0.3)) if name == "logaddexp" else getattr(np, name)
        want = scipy.differentiate.derivative(g, start, order=2, initial_step=0.1).df
        np.testing.assert_allclose(grad(f)(start), want, rtol=1e-2, atol=1e-4)
    assert grad(lambda v: jnp.logaddexp(v, v))(0.0) == 1
    assert np.isfinite(grad(lambda v: jnp.hypot(v, 0.0))(0.0))
    np.testing.assert_allclose(grad(grad(jnp.sinc))(0.0), -(np.pi**2) / 3, rtol=1e-5)
    assert grad(lambda v: jnp.logaddexp(v, -INF))(1.0) == 1


def test_second_derivatives_where_operands_tie():
    curve = hessian(lambda v: jnp.hypot(v[0], v[1]))(jnp.ones(2))
    np.testing.assert_allclose(curve, np.array([[1, -1], [-1, 1]]) / 8**0.5, rtol=1e-6)
    curve = hessian(lambda v: jnp.logaddexp(v[0], v[1]))(jnp.ones(2))
    np.testing.assert_allclose(curve, np.array([[1, -1], [-1, 1]]) / 4, rtol=1e-6)
    curve = hessian(lambda v: lax.cumlogsumexp(v)[-1])(jnp.zeros(3))
    np.testing.assert_allclose(curve, np.eye(3) / 3 - np.ones((3, 3)) / 9, rtol=1e-5)


def test_frexp_differentiates_its_fraction():
    slope = vmap(grad(lambda x: jnp.frexp(x)[0]))(jnp.array([-3.0, 0.75, 4.0]))
    np.testing.assert_array_equal(slope, [0.25, 1.0, 0.125])


def test_under_transformations():
    x = jnp.array(FLOATS)
    larger = lambda a, b: jnp.where(a > b, a, b)
    for f in (jnp.floor_divide, jnp.remainder, jnp.hypot, jnp.logaddexp, jnp.fmax, larger):
        want = f(x, 2.0)
        np.testing.assert_allclose(jit(f)(x, 2.0), want, rtol=1e-6)
        np.testing.assert_allclose(vmap(f, (0, None))(x, 2.0), want, rtol=1e-6)
        np.testing.assert_allclose(vmap(f, (1, None), 1)(x, 2.0), want, rtol=1e-6)
    assert grad(lambda v: jnp.where(v > 0, v * v, 0.0))(3.0) == 6
    assert (
        grad(lambda v: jnp.clip(v, 0, 1))(0.5) == 1 and grad(lambda v: jnp.clip(v, 0, 1))(2.0) == 0
    )


def test_eager_functions_are_one_program():
    """A function of many operations is compiled as one: nothing else is left in the cache."""
    from weft.xla import eager

    before = len(eager._KERNELS)
    jnp.hypot(jnp.ones(11), jnp.ones(11))
    jnp.var(jnp.ones(11))
    assert len(eager._KERNELS) == before


def test_programs_have_no_needless_operations():
    text = str(make_jaxpr(lambda x: jnp.maximum(x * 1.5 + 2, 0.0))(jnp.ones(3)))
    assert text == (
        "{ lambda ; a:f32[3]. let\n    b:f32[3] = mul a 1.5\n    c:f32[3] = add b 2.0\n"
        "    d:f32[3] = max c 0.0\n  in (d,) }"
    )


def test_empty_and_scalar_operands():
    assert jnp.add(jnp.ones((0, 3)), 1).shape == (0, 3)
    assert jnp.sin(jnp.ones((2, 0))).shape == (2, 0)
    assert jnp.add(1, 2) == 3 and jnp.add(1, 2).weak_type
    assert jnp.sin(0.0).shape == ()


class Wrapped:
    """An object that knows how to become an array."""

    def __jax_array__(self):
        return jnp.arange(3)


def test_objects_that_become_arrays():
    np.testing.assert_array_equal(jnp.add(Wrapped(), 1), [1, 2, 3])
    np.testing.assert_array_equal(jnp.arange(3) + Wrapped(), [0, 2, 4])
    np.testing.assert_array_equal(jnp.where(Wrapped(), 1, 0), [0, 1, 1])


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: jnp.add(x, [1, 2]), DtypeError, r"add: operands must be arrays or numbers; got a"
         r" list\. Hint: jnp\.array\(\[1, 2\]\)\."),
        (lambda x: jnp.sin("a"), DtypeError, "sin: .* got a str"),
        (lambda x: jnp.add(x, jnp.ones(4)), ShapeError,
         r"add: shapes must broadcast together; got f32\[3\], f32\[4\]"),
        (lambda x: jnp.where(x, x, jnp.ones(4)), ShapeError, "where: shapes must broadcast"),
        (lambda x: x & x, DtypeError, "bitwise_and: .* Hint: x.astype"),
        (lambda x: jnp.floor(1j * x), DtypeError, "floor: operands must be real"),
        (lambda x: jnp.gcd(x, x), DtypeError, "gcd: operands must be integers"),
        (lambda x: (x > 0) - (x > 0), DtypeError, "subtract: .* Hint: jnp.logical_xor"),
        (lambda x: jnp.arange(3) ** -1, DtypeError, "negative powers.* Hint: x.astype"),
        (lambda x: jnp.round(jnp.arange(3), -1), NotImplementedError, "decimals >= 0"),
        (lambda x: jnp.ldexp(x, x), DtypeError, "ldexp: x2 must be integers"),
        (lambda x: jnp.select([x], [x]), DtypeError, "select: conditions must be bool"),
        (lambda x: jnp.select([], []), ValueError, "one at least"),
        (lambda x: jnp.arange(3) + 2**40, OverflowError, "must fit int32; got 1099511627776"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(jnp.ones(3))
    with pytest.raises(error, match=message):
        jit(call)(jnp.ones(3))


def test_shape_ndim_and_size():
    for x in (FLOATS, jnp.array(FLOATS)):
        assert (jnp.shape(x), jnp.ndim(x), jnp.size(x), jnp.size(x, 1)) == ((2, 3), 2, 6, 3)
    assert jnp.shape(1.0) == () and jnp.size(2, ()) == 1 and jnp.size(FLOATS, (0, -1)) == 6
    assert jit(lambda x: x + jnp.ndim(x) * jnp.size(x))(2) == 2
    with pytest.raises(DtypeError, match="shape: .* got a list"):
        jnp.shape([1, 2])


def test_derivatives_of_i0_at_zero():
    slope = grad(jnp.i0)
    assert slope(0.0) == slope(-0.0) == 0
    np.testing.assert_allclose(grad(slope)(0.0), 0.5)
    np.testing.assert_allclose(slope(-1.0), -0.5651591, rtol=1e-5)


def test_powers_with_truth_values_are_not_weak():
    x = jnp.array([True, False])
    for y in (x**2, 2**x, x ** jnp.asarray(2), jnp.power(True, 2)):
        assert (y.dtype, y.weak_type) == (np.int32, False)
    assert (x**0).tolist() == [1, 1]
    with pytest.raises(DtypeError, match="integers must not be raised to negative powers"):
        x**-1


def test_gcd_and_lcm_take_truth_values_with_integers():
    x = jnp.array([True, False])
    assert jnp.lcm(x, 2).tolist() == [2, 0]
    assert jnp.gcd(jnp.array([4, 3], np.uint8), x).tolist() == [1, 3]
    with pytest.raises(DtypeError, match="gcd: operands must be integers"):
        jnp.gcd(x, x)
