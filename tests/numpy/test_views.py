"""packbits and unpackbits against NumPy."""

import numpy as np
import pytest

import weft.numpy as jnp
from weft import jit, vmap
from weft.errors import DtypeError, ShapeError

BITS = np.random.default_rng(0).integers(0, 3, (3, 11)).astype(np.uint8)


@pytest.mark.sample(one_in=4)
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


@pytest.mark.parametrize(
    "old, new",
    [
        ("float32", "int32"), ("float32", "uint8"), ("float32", "int16"), ("uint8", "float32"),
        ("float32", "complex64"), ("complex64", "float32"), ("complex64", "int32"),
        ("uint8", "bool"), ("bool", "uint8"), ("float32", "float32"), ("int16", "complex64"),
    ],
)  # fmt: skip
def test_views(old, new):
    x = (np.arange(48).reshape(2, 3, 8) % (2 if "bool" in (old, new) else 9)).astype(old)
    got = jnp.array(x).view(new)
    assert got.dtype == new
    np.testing.assert_array_equal(got, x.view(new))


def test_views_of_nothing():
    assert jnp.zeros((0, 4)).view(jnp.uint8).shape == (0, 16)
    assert jnp.zeros((2, 0), jnp.uint8).view(jnp.float32).shape == (2, 0)


def test_views_that_do_not_fit():
    with pytest.raises(ShapeError, match=r"must hold whole items of float32; got u8\[3\]"):
        jnp.ones(3, jnp.uint8).view(jnp.float32)
    with pytest.raises(ShapeError, match="items of a scalar"):
        jnp.float32(1).view(jnp.uint8)


@pytest.mark.parametrize("dtype", ["int16", "float32", "complex64", "uint8"])
def test_byteswap(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    got = jnp.array(x).byteswap()
    np.testing.assert_array_equal(got.view("uint8"), x.byteswap().view("uint8"))
