"""Composites: what the compiler is shown, and that transformations see the decomposition."""

import functools

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import lax, make_jaxpr
from weft.api import composite as composites
from weft.errors import DtypeError, ShapeError

X = np.array([0.5, 1.0, 1.5], np.float32)


def decomposition(x, **attributes):
    return lax.sin(x) / lax.cos(x)


tangent = lax.composite(decomposition, "my.tangent", version=1)


def text_of(**attributes):
    return weft.jit(lambda x: tangent(x, **attributes)).lower(X).as_text()


def test_a_composite_is_its_decomposition():
    np.testing.assert_allclose(tangent(X), np.tan(X), 1e-6)
    np.testing.assert_allclose(weft.jit(tangent)(X), np.tan(X), 1e-6)
    assert tangent.__name__ == "decomposition"
    (eqn,) = make_jaxpr(tangent)(X).eqns
    assert eqn.primitive.name == "composite"
    assert {**eqn.params, "jaxpr": 0} == {
        "attributes": (), "jaxpr": 0, "name": "my.tangent", "version": 1,
    }  # fmt: skip


def test_what_the_compiler_is_shown():
    text = text_of()
    assert '"stablehlo.composite"(%arg0) <{name = "my.tangent", composite_attributes = {}' in text
    assert "decomposition = @my.tangent, version = 1 : i32" in text
    assert "func.func private @my.tangent(%arg0: tensor<3xf32>) -> (tensor<3xf32>)" in text
    twice = weft.jit(lambda x: tangent(tangent(x) * 2)).lower(X).as_text()
    assert twice.count("func.func private @my.tangent") == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3 : i64"),
        (True, "true"),
        (1 << 40, "1099511627776 : i64"),
        (1.5, "0x3FF8000000000000 : f64"),
        (2.0, "2.0 : f64"),
        (float("inf"), "0x7FF0000000000000 : f64"),
        ("a", '"a"'),
        ('q"\\\nü', '"q\\22\\5C\\0A\\C3\\BC"'),
        ((1, (2.0, True)), "[1 : i64, [2.0 : f64, true]]"),
        ([], "[]"),
        ({"k": 1}, '{"k" = 1 : i64}'),
        (np.dtype(np.uint8), "ui8"),
        (np.dtype(ml_dtypes.bfloat16), "bf16"),
        (np.float32(3), "dense<0x40400000> : tensor<f32>"),
        (np.ones((2, 2), bool), "dense<true> : tensor<2x2xi1>"),
        (np.zeros((0, 2), np.int8), "dense<> : tensor<0x2xi8>"),
        (np.arange(2), 'dense<"0x00000000000000000100000000000000"> : tensor<2xi64>'),
    ],
)
def test_attributes(value, text):
    assert f'composite_attributes = {{"tag" = {text}}}' in text_of(tag=value)
    np.testing.assert_allclose(tangent(X, tag=value), np.tan(X), 1e-6)  # and so it parses


def test_the_decomposition_is_given_attributes():
    power = lax.composite(lambda x, *, n, note=None: lax.integer_pow(x, n), "my.power")
    np.testing.assert_allclose(power(X, n=2), X**2, 1e-6)
    np.testing.assert_allclose(power(X, n=3, note=None), X**3, 1e-6)
    text = weft.jit(functools.partial(power, n=2, note=None)).lower(X).as_text()
    assert 'composite_attributes = {"n" = 2 : i64}' in text


def test_each_is_staged_once():
    count = []

    @functools.partial(lax.composite, name="my.counted")
    def counted(x, *, n=1):
        count.append(n)
        return x * n

    for n in (2, 3, 2, 3):
        np.testing.assert_allclose(counted(X, n=n), X * n)
    assert count == [2, 3]


def test_pytrees_and_what_is_closed_over():
    held = jnp.arange(3.0)
    f = lax.composite(lambda t: {"a": t[0] + held, "b": t[1]["k"]}, "my.tree")
    out = f((X, {"k": 1}))
    np.testing.assert_array_equal(out["a"], X + np.arange(3))
    assert out["b"] == 1
    outer = weft.jit(lambda x: lax.composite(lambda y: y * x, "my.closure")(2.0))
    np.testing.assert_array_equal(outer(X), 2 * X)
    np.testing.assert_array_equal(weft.grad(lambda x: outer(x).sum())(X), [2, 2, 2])


def test_transformations():
    slope = 1 / np.cos(X) ** 2
    np.testing.assert_allclose(weft.jvp(tangent, (X,), (2 * X,))[1], 2 * X * slope, 1e-5)
    for g in (lambda x: tangent(x), weft.jit(tangent), weft.checkpoint(tangent)):
        np.testing.assert_allclose(weft.grad(lambda x, g=g: g(x).sum())(X), slope, 1e-5)
        np.testing.assert_allclose(weft.vmap(g)(X), np.tan(X), 1e-6)
    np.testing.assert_allclose(weft.vmap(weft.grad(tangent))(X), slope, 1e-5)
    np.testing.assert_allclose(weft.hessian(tangent)(0.5), 2 * np.tan(0.5) / np.cos(0.5) ** 2, 1e-5)
    doubled = lax.composite(lambda x: 2 * x, "my.double")
    np.testing.assert_allclose(weft.linear_transpose(doubled, X)(X)[0], 2 * X)
    out = lax.scan(lambda c, x: (tangent(c) * 0.5, c), 0.5, None, length=3)[0]
    assert np.isfinite(out)


def test_wrong_use():
    with pytest.raises(ValueError, match="an operation in a namespace; got 'tangent'. Hint"):
        lax.composite(decomposition, "tangent")
    with pytest.raises(TypeError, match="composite: needs a function; got 3"):
        lax.composite(3, "a.b")
    for bad in (jnp.ones(2), 1j, object(), [object()], {1: 2}, {"k": object()}):
        with pytest.raises(TypeError, match="attributes of my.tangent must be numbers.* got tag="):
            tangent(X, tag=bad)
    with pytest.raises(DtypeError, match="composite: arguments must be arrays"):
        tangent("a")


# --- scaled_dot ---------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
F8, E8 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu


def operand(*shape):
    return RNG.integers(-4, 5, shape).astype(F8)


def scales(*shape):
    return (2.0 ** RNG.integers(-2, 3, shape)).astype(E8)


def whole(x, scale, axis):
    x, scale = x.astype(np.float64), scale.astype(np.float64)
    return x * np.repeat(scale, x.shape[axis] // scale.shape[axis], axis)


def test_scaled_dot():
    x, y, sx, sy = operand(4, 8), operand(8, 5), scales(4, 2), scales(4, 5)
    expected = whole(x, sx, 1) @ whole(y, sy, 0)
    out = lax.scaled_dot(x, y, lhs_scale=sx, rhs_scale=sy, preferred_element_type=np.float32)
    np.testing.assert_array_equal(out, expected)
    out = lax.scaled_dot(x, y.T, rhs_scale=sy.T, dimension_numbers=(((1,), (1,)), ((), ())))
    assert out.dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(out.astype(np.float32), x.astype(float) @ whole(y, sy, 0), 1e-2)
    x, y, sx, sy = operand(2, 4, 8), operand(2, 8, 5), scales(2, 4, 2), scales(2, 1, 5)
    out = weft.jit(
        lambda *a: lax.scaled_dot(
            *a[:2], lhs_scale=a[2], rhs_scale=a[3], preferred_element_type="float32"
        )
    )(x, y, sx, sy)
    np.testing.assert_array_equal(out, whole(x, sx, 2) @ whole(y, sy, 1))
    dot = lambda x, y: lax.scaled_dot(x, y, preferred_element_type=np.float32)
    np.testing.assert_array_equal(weft.vmap(dot)(x, y), dot(x, y))
    text = weft.jit(dot).lower(x, y).as_text()
    assert '"dimension_numbers" = [[[2 : i64], [1 : i64]], [[0 : i64], [0 : i64]]]' in text


def test_scaled_dot_has_derivatives():
    x, y, s = np.ones((2, 4), np.float32), np.ones((4, 3), np.float32), np.full((2, 2), 3.0)
    dot = lambda x: lax.scaled_dot(x, y, lhs_scale=s, preferred_element_type=np.float32).sum()
    np.testing.assert_array_equal(weft.grad(dot)(x), np.full((2, 4), 9.0))


@pytest.mark.parametrize(
    ("scale", "text"),
    [
        (np.ones((3, 2)), "lhs_scale must have the shape of lhs.*got f32.3,2. for f32.4,8., contr"),
        (np.ones((4, 3)), "for contracting axes, where it divides it"),
        (np.ones(4), "got f32.4. for f32.4,8., contracting .1,.."),
    ],
)
def test_scales_that_do_not_fit(scale, text):
    with pytest.raises(ShapeError, match=text):
        lax.scaled_dot(np.ones((4, 8)), np.ones((8, 2)), lhs_scale=scale)


def test_scaled_dot_needs():
    with pytest.raises(ShapeError, match="dimension_numbers must be given"):
        lax.scaled_dot(np.ones(2), np.ones(2))
    with pytest.raises(DtypeError, match="preferred_element_type must be of floats; got int32"):
        lax.scaled_dot(np.ones((2, 2)), np.ones((2, 2)), preferred_element_type=np.int32)


def test_doctests():
    check_examples(composites)
