"""where, select, clip, questions and comparisons of arrays against NumPy."""

import numpy as np
import pytest

import weft.numpy as jnp
from weft import jit
from weft.errors import DtypeError

NAN, INF = np.nan, np.inf


FLOATS = np.array([[0.3, -1.7, 2.5], [-0.5, 3.5, 0.9]], np.float32)


SPECIAL = np.array([NAN, INF, -INF, 0.0, -0.0, 1, -1, 2.5, -2.5, 0.5], np.float32)


INTS = np.array([-7, -1, 0, 1, 2, 7, 50], np.int32)


OTHERS = np.array([3, -3, 2, -2, 5, 7, -7], np.int32)


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


def test_shape_ndim_and_size():
    for x in (FLOATS, jnp.array(FLOATS)):
        assert (jnp.shape(x), jnp.ndim(x), jnp.size(x), jnp.size(x, 1)) == ((2, 3), 2, 6, 3)
    assert jnp.shape(1.0) == () and jnp.size(2, ()) == 1 and jnp.size(FLOATS, (0, -1)) == 6
    assert jit(lambda x: x + jnp.ndim(x) * jnp.size(x))(2) == 2
    with pytest.raises(DtypeError, match="shape: .* got a list"):
        jnp.shape([1, 2])


def test_dtypes_are_complex_or_not():
    assert jnp.iscomplexobj(jnp.complex64) and not jnp.iscomplexobj(jnp.float32)
    assert jnp.iscomplexobj(np.complex128) and jnp.isrealobj(jnp.bool_)
