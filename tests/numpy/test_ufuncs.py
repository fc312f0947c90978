"""Elementwise functions against NumPy: values, dtypes, special values, derivatives, errors."""

import functools
import inspect

import numpy as np
import pytest

import weft.numpy as jnp
from tests.numpy import compare
from tests.numpy.compare import BOOLS, FLOATS, INTS, OTHERS, SPECIAL
from weft import grad, jit, make_jaxpr, vmap
from weft.errors import DtypeError, ShapeError
from weft.numpy import ufuncs

NAN, INF = np.nan, np.inf
agree = functools.partial(compare.agree, rtol=1e-4)
COMPLEX = (FLOATS + 1j * FLOATS[::-1]).astype(np.complex64)

UNARY = """
exp expm1 exp2 log log2 log1p sqrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh
arctanh sign square negative isnan isinf isfinite isreal iscomplex logical_not
""".split()  # noqa: SIM905
REAL = ["cbrt", "signbit", "isposinf", "isneginf"]
BINARY = """
add subtract multiply divide maximum minimum equal not_equal less less_equal greater greater_equal
logical_and logical_or logical_xor
""".split()  # noqa: SIM905


@pytest.mark.sample(one_in=4)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [*UNARY, *REAL])
def test_unary_floats(name):
    agree(name, FLOATS)
    agree(name, SPECIAL)


@pytest.mark.parametrize("name", UNARY[-9:])
def test_unary_integers(name):
    agree(name, INTS)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", UNARY)
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
@pytest.mark.parametrize("name", [*BINARY, "arctan2"])
def test_binary_floats(name):
    agree(name, FLOATS, FLOATS[0])
    agree(name, *np.meshgrid(SPECIAL, SPECIAL))


@pytest.mark.parametrize("name", [*BINARY, "bitwise_and", "bitwise_or", "bitwise_xor"])
def test_binary_integers(name):
    agree(name, INTS, OTHERS)


@pytest.mark.parametrize("name", ["maximum", "minimum", "less", "less_equal", "greater"])
def test_complex_numbers_are_ordered_by_real_part_first(name):
    agree(name, COMPLEX, np.array([0.3 - 2j, -1.7 + 9j, 2.5j], np.complex64))


@pytest.mark.parametrize(
    "name", ["add", "multiply", "logical_and", "bitwise_or", "equal", "maximum"]
)
def test_truth_values(name):
    got = getattr(jnp, name)(BOOLS, BOOLS[::-1].copy())
    assert got.dtype == np.bool_
    np.testing.assert_array_equal(got, getattr(np, name)(BOOLS, BOOLS[::-1]))


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
    from weft.run import eager

    before = len(eager.KERNELS)
    jnp.hypot(jnp.ones(11), jnp.ones(11))
    jnp.var(jnp.ones(11))
    assert len(eager.KERNELS) == before


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
    knows = type("Knows", (), {"__jax_array__": lambda x: NotImplemented})()
    type(knows).__rmul__ = lambda x, y: "its own"
    with pytest.raises(TypeError, match="unsupported operand"):
        jnp.arange(3) + knows
    assert jnp.arange(3) * knows == "its own"


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
        (lambda x: jnp.power(2, -1), DtypeError, r"got i32\[\], -1\. Hint: x.astype"),
        (lambda x: jnp.arange(3) ** np.int64(-1), DtypeError, r"got i32\[3\], -1\. Hint"),
        (lambda x: jnp.power(True, np.array([1, -1])), DtypeError, r"got bool\[\], \[ 1 -1\]"),
        (lambda x: jnp.ldexp(x, x), DtypeError, "ldexp: x2 must be integers"),
        (lambda x: jnp.add(x, x, out=x), NotImplementedError, "add: out must be None"),
        (lambda x: jnp.sin(x, out=x), NotImplementedError, "sin: out must be None"),
        (lambda x: jnp.add(x, x, where=x > 0), NotImplementedError, "where must be None, .*Hi"),
        (lambda x: jnp.sin(x, where=x > 0), NotImplementedError, r"jnp.where\(mask, jnp.sin\("),
        (lambda x: -(x > 0), DtypeError, "negative: operands must be numbers; got bool. Hint"),
        (lambda x: jnp.sign(x > 0), DtypeError, r"sign: operands must be numbers; .*logical_not"),
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


def test_invert_takes_python_numbers():
    assert not jnp.invert(True) and jnp.invert(2) == -3


MADE = [n for n in jnp.__all__ if getattr(getattr(jnp, n), "__module__", "") == ufuncs.__name__]


@pytest.mark.parametrize("name", MADE)
def test_the_documentation_is_composed_of_a_row_and_its_kind(name):
    fun = getattr(jnp, name)
    args, _, rest = fun.__doc__.partition("Args:")[2].partition("Returns:")
    for parameter in inspect.signature(fun).parameters:
        assert f"\n      {parameter}: " in args, parameter
    made_as = getattr(fun, "alias_of", fun).__name__
    assert "Raises:" in rest and f">>> jnp.{made_as}(" in rest
    assert ("An array of bools" in rest) == (fun(1, 2).dtype == bool if fun.nin == 2 else False)
