"""where, select, clip, questions and comparisons of arrays against NumPy."""

import functools

import numpy as np
import pytest

import weft.numpy as jnp
from tests.numpy import compare
from tests.numpy.compare import FLOATS, INTS, OTHERS, SPECIAL
from weft import jit, random

NAN, INF = np.nan, np.inf
agree = functools.partial(compare.agree, rtol=1e-4)


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
    keys = random.split(random.key(0))
    assert jnp.isclose(keys, keys[0]).tolist() == [True, False]
    assert jnp.iscomplexobj(1j) and jnp.isrealobj(x) and jnp.isscalar(jnp.array(1))
    assert not jnp.isscalar(x) and not jnp.iscomplexobj([1, 2])


def test_shape_ndim_and_size():
    for x in (FLOATS, jnp.array(FLOATS)):
        assert (jnp.shape(x), jnp.ndim(x), jnp.size(x), jnp.size(x, 1)) == ((2, 3), 2, 6, 3)
    assert jnp.shape(1.0) == () and jnp.size(2, ()) == 1 and jnp.size(FLOATS, (0, -1)) == 6
    assert jit(lambda x: x + jnp.ndim(x) * jnp.size(x))(2) == 2
    for f, expected in ((jnp.shape, (2,)), (jnp.ndim, 1), (jnp.size, 2)):
        with pytest.warns(DeprecationWarning, match=f"{f.__name__}: .* got a list"):
            assert f([1, 2]) == expected
    with pytest.warns(DeprecationWarning, match="got a NoneType"):
        assert jnp.shape(None) == ()


def test_dtypes_are_complex_or_not():
    assert jnp.iscomplexobj(jnp.complex64) and not jnp.iscomplexobj(jnp.float32)
    assert jnp.iscomplexobj(np.complex128) and jnp.isrealobj(jnp.bool_)
