"""The names of dtypes and constants: equal to NumPy's, and they make arrays."""

import ml_dtypes
import numpy as np
import pytest

import weft.numpy as jnp
from tests.docstrings import check_function
from weft.numpy.scalars import SCALAR_TYPES


def test_names_of_dtypes():
    assert jnp.float32 == np.float32 and hash(jnp.float32) == hash(np.float32)
    assert np.dtype(jnp.bfloat16) == ml_dtypes.bfloat16
    assert jnp.ones(2).dtype == jnp.float32 and jnp.bool_ is jnp.bool
    x = jnp.float16(3)
    assert x.dtype == np.float16 and x.shape == () and not x.weak_type
    assert jnp.int8([1, 2]).shape == (2,)
    assert isinstance(np.float32(1), jnp.float32) and not isinstance(x, jnp.float32)
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating) and jnp.isdtype(jnp.int8, "integral")
    assert jnp.finfo(jnp.float32).max == np.finfo(np.float32).max
    assert repr(jnp.float32) == "<class 'weft.numpy.float32'>"
    assert isinstance(x, jnp.ndarray) and jnp.newaxis is None and jnp.pi == np.pi


def test_every_dtype_that_there_is_has_its_name():
    from weft.numpy.scalars import ALIASES, NAMES, SCALAR_TYPES

    for name in {*NAMES, *ALIASES} & set(SCALAR_TYPES):
        assert np.dtype(getattr(jnp, name)).name == ALIASES.get(name, name)
    for name in ("float32", "int16", "bool", "complex64", "bfloat16", "uint4"):
        x = getattr(jnp, name)(1)
        assert x.dtype.name == name and x.shape == () and x == 1
    assert {jnp.int_, jnp.int64} == {np.int64} and jnp.int8 != np.int16


def test_what_is_numpys_is_numpys():
    for name in ("can_cast", "floating", "generic", "printoptions", "dtype", "iterable"):
        assert getattr(jnp, name) is getattr(np, name)
    assert (jnp.e, jnp.inf, jnp.euler_gamma) == (np.e, np.inf, np.euler_gamma)
    assert type(jnp.pi) is float and jnp.nan != jnp.nan


@pytest.mark.parametrize("name", [*SCALAR_TYPES])
def test_the_example_of_a_scalar_type_is_right(name):
    assert check_function(name, SCALAR_TYPES[name])
