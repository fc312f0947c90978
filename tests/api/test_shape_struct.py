"""ShapeDtypeStruct as a value."""

import numpy as np
import pytest

import weft


def test_shape_dtype_struct():
    struct = weft.ShapeDtypeStruct((2, 3), "int8")
    assert (struct.size, struct.ndim, len(struct), struct.dtype) == (6, 2, 2, np.int8)
    assert struct == weft.ShapeDtypeStruct([2, 3], np.int8)
    assert hash(struct) == hash(weft.ShapeDtypeStruct((2, 3), np.int8))
    assert struct.update(shape=(4,)) == weft.ShapeDtypeStruct((4,), np.int8)
    assert repr(struct) == "ShapeDtypeStruct(shape=(2, 3), dtype=int8)"
    with pytest.raises(ValueError, match="dtype must be given"):
        weft.ShapeDtypeStruct((3,), None)
    with pytest.raises(TypeError, match="ShapeDtypeStruct: shape must be a sequence; got 3"):
        weft.ShapeDtypeStruct(3, np.int8)
    with pytest.raises(TypeError, match="ShapeDtypeStruct: needs a dtype, .* got 'flat32'. Hint"):
        weft.ShapeDtypeStruct((3,), "flat32")
    with pytest.raises(TypeError, match="scalar"):
        len(weft.ShapeDtypeStruct((), np.int8))


def test_struct_like_an_array():
    x = weft.numpy.ones((2, 3))
    struct = weft.ShapeDtypeStruct.like(x)
    assert (struct.shape, struct.dtype, struct.sharding) == ((2, 3), x.dtype, x.sharding)
    assert weft.ShapeDtypeStruct.like(weft.random.key(0)).dtype == weft.random.key(0).dtype
