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
    with pytest.raises(TypeError, match="scalar"):
        len(weft.ShapeDtypeStruct((), np.int8))
