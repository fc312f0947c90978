"""packbits and unpackbits against NumPy."""

import numpy as np
import pytest

import weft.numpy as jnp
from weft import jit, vmap
from weft.errors import DtypeError

BITS = np.random.default_rng(0).integers(0, 3, (3, 11)).astype(np.uint8)


@pytest.mark.parametrize("order", ["big", "little"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_against_numpy(axis, order):
    for x in (BITS, BITS > 1, BITS.astype(np.int32), BITS[:, :8], BITS[:0]):
        got = jnp.packbits(jnp.asarray(x), axis, order)
        np.testing.assert_array_equal(got, np.packbits(x, axis, order))
        assert got.dtype == np.uint8
    for count in (None, 5, 30, -3):
        got = jnp.unpackbits(jnp.asarray(BITS), axis, count, order)
        np.testing.assert_array_equal(got, np.unpackbits(BITS, axis, count, order))


def test_under_transformations():
    packed = jit(vmap(jnp.packbits))(BITS)
    np.testing.assert_array_equal(packed, np.packbits(BITS, axis=1))
    assert jnp.packbits(jnp.uint8(1)).tolist() == [128]


def test_errors():
    with pytest.raises(DtypeError, match="packbits: operands must be bool or integers; got f32"):
        jnp.packbits(jnp.ones(2))
    with pytest.raises(DtypeError, match="unpackbits: operands must be uint8; got i32"):
        jnp.unpackbits(jnp.arange(2))
    with pytest.raises(ValueError, match="bitorder must be 'big' or 'little'; got 'up'"):
        jnp.packbits(BITS, bitorder="up")
