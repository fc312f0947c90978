"""dtype, stage, shape_as_value: values and types as lax has them."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import lax
from weft.errors import DtypeError
from weft.lax import values


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (1, np.int32),
        (1.0, np.float32),
        (True, bool),
        (1j, np.complex64),
        (np.float64(1), np.float32),
        (np.ones(2), np.float32),
        (jnp.ones(2, jnp.bfloat16), jnp.bfloat16),
        (int, np.int32),
        (bool, bool),
        (jnp.int8, np.int8),
        ("float32", np.float32),
    ],
)
def test_dtype(x, expected):
    assert lax.dtype(x) == np.dtype(expected)


@pytest.mark.parametrize("x", [None, [1], object, "number"])
def test_what_has_no_dtype(x):
    with pytest.raises((TypeError, DtypeError), match="dtype"):
        lax.dtype(x)


def test_dtype_of_a_tracer():
    weft.jit(lambda x: np.testing.assert_equal(lax.dtype(x), np.dtype(np.float32)))(1.0)
    with weft.enable_x64(True):
        assert lax.dtype(np.ones(2)) == np.float64


def test_stage():
    assert isinstance(lax.stage(np.ones(2)), weft.Array) and lax.stage(3).weak_type
    x = jnp.ones(2)
    assert lax.stage(x) is x
    assert weft.grad(lax.stage)(2.0) == 1
    np.testing.assert_array_equal(weft.vmap(lax.stage)(x), x)
    np.testing.assert_array_equal(weft.jit(lambda: lax.stage(np.ones(2)))(), x)
    with pytest.raises(DtypeError, match="stage: "):
        lax.stage([1])


def test_shape_as_value():
    np.testing.assert_array_equal(lax.shape_as_value((2, 3)), [2, 3])
    assert lax.shape_as_value(()).shape == (0,) and lax.shape_as_value(()).dtype == np.int32


def test_doctests():
    check_examples(values)
