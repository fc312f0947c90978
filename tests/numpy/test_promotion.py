"""Promotion: dtypes and weak types of results, broadcasting, options, axis and shape arguments."""

import itertools
import math

import numpy as np
import pytest

import weft.numpy as jnp
from weft import config, eval_shape, jit, lax, make_jaxpr
from weft.errors import ShapeError, TypePromotionError
from weft.numpy.promotion import axes_of, broadcast_shapes, is_arraylike, shape_of

DTYPES = ["bool", "uint8", "int8", "int32", "bfloat16", "float16", "float32", "complex64"]


@pytest.mark.parametrize("left, right", [*itertools.combinations_with_replacement(DTYPES, 2)])
def test_results_have_the_promoted_dtype(left, right):
    x, y = jnp.ones(2, left), jnp.ones(2, right)
    want = jnp.promote_types(left, right)
    assert (x + y).dtype == want and not (x + y).weak_type
    for a, b in ((x, y), (y, x)):
        for found in eval_shape(lambda a, b: (a + b, a * b, jnp.where(True, a, b)), a, b):
            assert found.dtype == want and not found.weak_type


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("dtype", DTYPES)
def test_python_numbers_are_weak(dtype):
    x = jnp.ones(2, dtype)
    assert (x + 1).dtype == (np.int32 if dtype == "bool" else dtype)
    if dtype in ("bfloat16", "float16", "float32", "complex64"):
        assert (x + 1.5).dtype == dtype and (2.0 * x).dtype == dtype
    else:
        assert (x + 1.5).dtype == np.float32 and (x + 1.5).weak_type
    for f in (lambda v: v + 1, lambda v: v + 1.5, lambda v: 1j * v):
        assert jit(f)(x).dtype == f(x).dtype and jit(f)(x).weak_type == f(x).weak_type


def test_weak_types_stay_weak_among_themselves():
    x = jnp.asarray(1.0)
    assert x.weak_type and (x + 1).weak_type and jnp.sin(x).weak_type
    assert not (x + jnp.float32(1)).weak_type
    assert (x + jnp.ones(2, jnp.bfloat16)).dtype == jnp.bfloat16
    assert jnp.add(1, 2).weak_type and not jnp.add(True, True).weak_type


def test_inexact_functions_of_integers():
    for dtype in ("bool", "int8", "int32"):
        assert jnp.sin(jnp.ones(2, dtype)).dtype == np.float32
    assert jnp.sin(jnp.asarray(1)).weak_type
    assert (jnp.arange(3) / jnp.arange(1, 4)).dtype == np.float32
    with config.scope(enable_x64=True):
        assert jnp.sin(jnp.ones(2, np.int64)).dtype == np.float64
        assert jnp.sin(jnp.ones(2, np.int32)).dtype == np.float32
        assert (jnp.ones(2, np.float32) * 2.0).dtype == np.float32
        assert jnp.asarray(1.0).dtype == np.float64


def test_small_integers_wrap_as_arrays_do():
    x = jnp.ones(2, jnp.int8)
    np.testing.assert_array_equal(x + 300, [45, 45])
    np.testing.assert_array_equal(jit(lambda v: v + 300)(x), [45, 45])
    np.testing.assert_array_equal(jnp.ones(2, jnp.uint8) - 2, [255, 255])
    with pytest.raises(OverflowError, match="must fit int32"):
        jnp.arange(3) + 2**31


def test_no_needless_conversions():
    def eqns(f, *args):
        return [e.primitive.name for e in make_jaxpr(f)(*args).eqns]

    x, n = jnp.ones(3), jnp.arange(3)
    assert eqns(lambda a: a * 2, x) == ["mul"]
    assert eqns(lambda a: a / 2, n) == ["convert_element_type", "div"]
    assert eqns(lambda a, b: a + b, x, n) == ["convert_element_type", "add"]
    assert eqns(lambda a, b: a + b, x, x[0]) == ["add"]
    assert eqns(lambda a, b: a + b, x, jnp.ones((2, 3))) == ["broadcast_in_dim", "add"]
    assert "mul a 2.0" in str(make_jaxpr(lambda a: a * 2)(x))


@pytest.mark.parametrize(
    "shapes", [((3,), (2, 3)), ((2, 1), (3,)), ((), (2, 3)), ((1, 3), (2, 1)), ((0, 3), (1, 3))]
)
def test_broadcasting(shapes):
    a, b = (np.ones(s, np.float32) for s in shapes)
    got = jnp.array(a) + jnp.array(b) * 2
    assert got.shape == (a + b).shape == broadcast_shapes(*shapes)
    np.testing.assert_array_equal(got, a + b * 2)


def test_strict_promotion():
    with config.scope(numpy_dtype_promotion="strict"):
        assert (jnp.ones(2) * 2).dtype == np.float32
        with pytest.raises(TypePromotionError, match="add: .*strict.*Hint"):
            jnp.ones(2) + jnp.arange(2)


def test_rank_promotion():
    x, m = jnp.ones(3), jnp.ones((2, 3))
    with config.scope(numpy_rank_promotion="raise"):
        assert (m + 1).shape == (2, 3)
        with pytest.raises(ShapeError, match=r"add: operands must have equal ranks.*Hint: .*None"):
            x + m
        assert jnp.where(x > 0, m, 0).shape == (2, 3)  # masks may be of any rank
        assert jnp.sum(m, where=x > 0) == jnp.nansum(m, where=x > 0) == 6
        assert jnp.nanmean(m, where=x > 0) == 1
    with config.scope(numpy_rank_promotion="warn"), pytest.warns(UserWarning, match="equal ranks"):
        assert (x + m).shape == (2, 3)
    assert (x + m).shape == (2, 3)


def test_axes_and_shapes():
    assert axes_of("f", None, 2) == (0, 1) and axes_of("f", -1, 2) == (1,)
    assert axes_of("f", (0, -1), 3) == (0, 2) and axes_of("f", np.int64(1), 2) == (1,)
    assert shape_of("f", 3) == (3,) and shape_of("f", [2, np.int32(3)]) == (2, 3)
    with pytest.raises(ShapeError, match="f: axis must name an axis of an array of rank 2; got 2"):
        axes_of("f", 2, 2)
    with pytest.raises(ShapeError, match=r"broadcast_shapes: .* got \(2,\), \(3,\)"):
        broadcast_shapes((2,), (3,))


def test_arguments_are_as_few_and_as_large_as_they_may():
    m = jnp.ones((2, 3))
    assert jnp.fliplr(m).shape == jnp.flipud(m).shape == (2, 3) and jnp.flipud(m[0]).shape == (3,)
    assert shape_of("f", ()) == () and shape_of("f", (0, 2)) == (0, 2) == shape_of("f", np.r_[0, 2])
    assert axes_of("f", [], 2) == () and axes_of("f", range(2), 2) == (0, 1)
    assert axes_of("f", 1, 2) == axes_of("f", -1, 2) == (1,) and axes_of("f", -2, 2) == (0,)
    for x in (1, 1.5, True, 1j, np.float32(1), np.ones(2), m, m.aval):
        assert is_arraylike(x) == (x is not m.aval)
    assert not any(map(is_arraylike, ([1], (1,), None, "a")))


def use_everywhere(x, n):
    """Results of the functions that take a number beside an array, and the number itself."""
    made = [jnp.full(3, n, x.dtype), jnp.full_like(x, n), jnp.array(n, x.dtype)]
    made += [
        jnp.asarray([n, 1], x.dtype),
        jnp.asarray(n).astype(x.dtype),
        lax.full((2,), n, x.dtype),
    ]
    chosen = [jnp.where(x == 1, n, x), jnp.clip(x, n, n), jnp.select([x == 1], [x], n)]
    written = [x.at[0].set(n), x.at[0].add(n), x.at[5].get(mode="fill", fill_value=n)]
    edited = [jnp.pad(x, 1, constant_values=n), jnp.append(x, n), jnp.max(x, initial=n)]
    computed = [x + n, n - x, x * n, n / x, x**n, x // n, x % n, x < n, jnp.hypot(x, n)]
    loop = lax.fori_loop(0, 2, lambda i, c: (c * n).astype(c.dtype), x)
    return made, chosen, written, edited, computed, loop


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of a float64 written to float16
@pytest.mark.parametrize("number", [1e300, np.float64(-1e300), math.inf, math.nan])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_numbers_that_a_dtype_cannot_hold_are_infinite_without_a_warning(dtype, number):
    x = jnp.ones(3, dtype)
    want = np.float32(math.inf * np.sign(number)) if number == number else np.float32(math.nan)
    made, chosen, *_ = jit(lambda x: use_everywhere(x, number))(x)
    eager = [x * number, jnp.full(1, number, dtype), jnp.where(x == 1, number, x)]
    for y in (*made, *chosen[:2], *eager, x.at[0].set(number)):
        np.testing.assert_array_equal(np.float32(y).ravel()[0], want)
