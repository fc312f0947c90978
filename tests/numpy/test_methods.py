"""Operators, methods and properties: on arrays, on tracers, and against foreign operands."""

import copy
import enum
import operator
import pathlib

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, jit, vmap
from weft.errors import DtypeError
from weft.util import LazyMember

X = np.array([[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)
N = np.array([7, -3, 2], np.int32)
ARITHMETIC = [
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "ne", "lt", "le", "gt", "ge")
]
BITWISE = ["and_", "or_", "xor", "lshift", "rshift"]


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic(name):
    op = getattr(operator, name)
    x, y = jnp.array(abs(X)), jnp.array(abs(X[::-1]))
    np.testing.assert_allclose(op(x, y), op(abs(X), abs(X[::-1])), rtol=1e-5)
    others = (2, 2.0, np.float32(2), np.ones(3, np.float32) * 2, True)
    traced = jit(lambda v: [(op(v, o), op(o, v)) for o in others])(x)
    for other, pair in zip(others, traced, strict=True):
        wanted = op(abs(X), other), op(other, abs(X))
        for got, want in zip(pair, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)
        if type(other) is not bool:
            assert type(op(other, x)) is type(x)
            np.testing.assert_allclose(op(other, x), wanted[1], rtol=1e-5)


@pytest.mark.parametrize("name", BITWISE)
def test_bitwise(name):
    op = getattr(operator, name)
    x, y = jnp.array(N), jnp.array([1, 2, 3])
    np.testing.assert_array_equal(op(x, y), op(N, np.array([1, 2, 3])))
    np.testing.assert_array_equal(op(x, 2), op(N, 2))
    np.testing.assert_array_equal(op(9, y), op(9, np.array([1, 2, 3])))


def test_other_operators():
    x, n = jnp.array(X), jnp.array(N)
    np.testing.assert_array_equal(-x, -X)
    np.testing.assert_array_equal(+x, X)
    np.testing.assert_array_equal(abs(x), abs(X))
    np.testing.assert_array_equal(~n, ~N)
    assert round(x).dtype == np.int32 and round(x, 0).dtype == np.float32
    np.testing.assert_array_equal(round(x), np.round(X))
    np.testing.assert_array_equal(round(x, 0), np.round(X))
    np.testing.assert_allclose(x @ x.T, X @ X.T, rtol=1e-6)
    np.testing.assert_allclose(X @ x.T, X @ X.T, rtol=1e-6)
    for got, want in zip(divmod(x, 2), np.divmod(X, 2), strict=True):
        np.testing.assert_allclose(got, want)
    for got, want in zip(divmod(7, n), np.divmod(7, N), strict=True):
        np.testing.assert_allclose(got, want)
    assert 1.5 in x and 9 not in x


def test_foreign_operands():
    x = jnp.arange(3.0)
    assert (x == None) is False and (x != "a") is True  # noqa: E711
    for other in ("a", None, {}, object()):
        with pytest.raises(TypeError, match="unsupported operand|can only concat|must be str"):
            x + other
    for other in ([1, 2, 3], (1, 2, 3)):
        for call in (lambda o=other: x + o, lambda o=other: o * x, lambda o=other: x == o):
            with pytest.raises(DtypeError, match="got a (list|tuple).*Hint: jnp.array"):
                call()

    class Clever:
        def __radd__(self, other):
            return "mine"

    assert x + Clever() == "mine"


METHODS = {
    "all": {}, "any": {}, "argmax": {"axis": 1}, "argmin": {}, "clip": {"min": 0, "max": 2},
    "conj": {}, "conjugate": {}, "copy": {}, "cumprod": {"axis": 0}, "cumsum": {"axis": 1},
    "diagonal": {}, "flatten": {}, "max": {"axis": 0}, "mean": {"keepdims": True},
    "min": {}, "prod": {"axis": 1}, "ravel": {}, "round": {"decimals": 0}, "squeeze": {},
    "std": {"axis": 0}, "sum": {"axis": -1}, "trace": {}, "transpose": {}, "var": {"ddof": 1},
}  # fmt: skip
PROPERTIES = ["T", "real", "imag", "shape", "ndim", "size", "dtype", "nbytes", "itemsize"]


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    kwargs = METHODS[name]
    want = getattr(X, name)(**kwargs)
    got = getattr(jnp.array(X), name)(**kwargs)
    np.testing.assert_allclose(got, want, rtol=1e-5)
    np.testing.assert_allclose(jit(lambda v: getattr(v, name)(**kwargs))(X), want, rtol=1e-5)


@pytest.mark.parametrize("name", PROPERTIES)
def test_properties(name):
    want = getattr(X, name)
    seen = []
    jit(lambda v: seen.append(getattr(v, name)))(X)
    got = getattr(jnp.array(X), name)
    if isinstance(want, np.ndarray):
        np.testing.assert_array_equal(got, want)
    else:
        assert got == want == seen[0]


def test_methods_with_arguments():
    x = jnp.array(X)
    assert x.reshape(3, 2).shape == x.reshape((3, -1)).shape == (3, 2)
    assert x.transpose(1, 0).shape == x.transpose((1, 0)).shape == x.mT.shape == (3, 2)
    assert x.astype(jnp.int8).dtype == np.int8 and x.astype(int).dtype == np.int32
    np.testing.assert_allclose(x.dot(x.T), X @ X.T, rtol=1e-6)
    assert x.trace() == X.trace() and x.ptp() == 6
    assert x.to_device(weft.devices()[0]).devices() == {weft.devices()[0]}
    assert x.__array_namespace__() is jnp
    assert jnp.arange(3).astype(bool).dtype == np.bool_
    with pytest.raises(NotImplementedError, match="Hint: x.ravel"):
        x.flat
    with pytest.raises(ValueError, match="api_version must be one of"):
        x.__array_namespace__(api_version="1999.1")


def test_copies():
    x = jnp.array(X)
    for y in (copy.copy(x), copy.deepcopy(x), x.copy()):
        np.testing.assert_array_equal(y, X)
        assert y.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()


def test_under_transformations():
    x = jnp.array(X)
    f = lambda v: ((v @ v.T).sum() + abs(v).max() * (v.T[0] ** 2).mean()) / 2
    for i, j in np.ndindex(2, 3):
        up, down = (f(x.at[i, j].add(s)) for s in (1e-2, -1e-2))
        np.testing.assert_allclose(grad(f)(x)[i, j], (up - down) / 2e-2, rtol=2e-2, atol=2e-2)
    np.testing.assert_allclose(
        vmap(lambda v: -v // 2 + v.sum())(x), -X // 2 + X.sum(1, keepdims=True)
    )


# The public names of JAX's arrays, one a line.
NAMES = pathlib.Path(__file__).parent.parent / "golden" / "array_names.txt"


def test_every_name_of_jax_arrays():
    never = {"__module__", "__slots__", "__weakref__"}  # of classes in Python, which ours is not
    known = set(NAMES.read_text().split())
    assert {n for n in known if not hasattr(type(jnp.ones(1)), n)} <= never


class Scaled(tuple):
    """A tuple that knows what a number times it is."""

    def __rmul__(self, x):
        return Scaled(x * y for y in self)


def test_operators_leave_it_to_a_tuple_that_knows():
    assert jnp.float32(2) * Scaled((1, 3)) == (2, 6)
    with pytest.raises(DtypeError, match=r"add: operands must be arrays or numbers; got a Scaled"):
        jnp.float32(2) + Scaled((1, 3))


class Level(enum.IntEnum):
    HIGH = 2


class Length(float):
    """A number with a unit."""


def test_operators_take_subclasses_of_numbers_as_numbers():
    x = np.arange(4, dtype=np.int32)
    for fun, given, plain in (
        (operator.gt, Level.HIGH, 2),
        (operator.and_, Level.HIGH, 2),
        (operator.add, Length(1.5), np.float32(1.5)),
    ):
        for side in (lambda f, a, b: f(a, b), lambda f, a, b: f(b, a)):
            want = side(fun, x, plain)
            for got in (
                side(fun, jnp.array(x), given),
                jit(lambda v: side(fun, v, given))(x),  # noqa: B023
            ):
                assert got.dtype == (np.float32 if fun is operator.add else want.dtype)
                np.testing.assert_array_equal(got, want)
    assert weft.typeof(jnp.asarray(Level.HIGH)).weak_type and weft.typeof(Level.HIGH).weak_type


def test_types_say_that_they_lie_over_no_mesh():
    aval = weft.typeof(jnp.ones((2, 3)))
    assert aval.sharding.mesh.empty and len(aval.sharding.spec) == 2
    assert aval.update(sharding=aval.sharding, memory_space=aval.memory_space) is aval
    draw = weft.random.normal(
        weft.random.key(0), (2,), out_sharding=weft.typeof(aval.ndim).sharding
    )
    assert draw.shape == (2,)


def test_transpose_takes_axes_in_every_form():
    x = np.arange(24).reshape(2, 3, 4)
    for axes in ((), (None,), ((2, 0, 1),), ([2, 0, 1],), (2, 0, 1), (-1, 0, 1)):
        np.testing.assert_array_equal(jnp.array(x).transpose(*axes), x.transpose(*axes))
    assert jnp.arange(3).transpose(0).shape == (3,) and jnp.array(1).transpose().shape == ()


def test_methods_say_what_they_are():
    for name in METHODS:
        method = getattr(weft.Array, name)
        assert method.__doc__ and method.__name__ in (
            name,
            name.replace("conjugate", "conj"),
            "ravel",
        ), name
    assert jnp.ones(2).sum.__self__.shape == (2,)


def test_operands_of_other_kinds_are_left_to_them():
    x = jnp.arange(3)
    for other in (np.arange(3), np.int8(2), 2, 2.5, x):
        np.testing.assert_array_equal(x + other, np.arange(3) + np.asarray(other))
        np.testing.assert_array_equal(other - x, np.asarray(other) - np.arange(3))
    assert x.__add__("a") is NotImplemented and x.__radd__(object()) is NotImplemented


def test_astype_copies_where_it_is_asked_to():
    x = jnp.ones(3)
    assert x.astype(x.dtype) is x
    assert x.astype(x.dtype, copy=True) is not x


@pytest.mark.parametrize("use", [lambda f: f, jit])
def test_asking_for_an_attribute_does_not_look_for_what_was_meant(monkeypatch, use):
    looked = []
    monkeypatch.setattr("weft.numpy.methods.suggest_name", lambda *args: looked.append(args) or "")

    def probe(x):
        assert not hasattr(x, "shap") and getattr(x, "shap", 7) == 7
        return x

    use(probe)(jnp.ones(3))
    assert not looked


def test_a_lazy_member_is_made_once_and_takes_its_own_place():
    class Owner:
        pass

    class Derived(Owner):
        pass

    made = []
    member = lambda: made.append(1) or property(lambda self: 3)
    LazyMember(member, "three", [Owner])
    assert Derived().three == 3 and Owner().three == 3 and made == [1]
    assert type(vars(Owner)["three"]) is property and "three" not in vars(Derived)
    LazyMember(lambda: len, "__len__", [Owner])
    assert Owner.__len__ is len and "__len__" in dir(Owner)
