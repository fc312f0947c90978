import ml_dtypes
import numpy as np
import pytest

import weft
from tests.docstrings import check_examples
from weft import dlpack
from weft.errors import DtypeError


def test_doctests():
    check_examples(dlpack)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint16, np.complex64, bool])
def test_arrays_of_other_libraries(dtype):
    theirs = np.arange(6).reshape(2, 3).astype(dtype)
    for options in ({}, {"copy": True}, {"device": weft.devices()[0]}):
        mine = dlpack.from_dlpack(theirs, **options)
        assert isinstance(mine, weft.Array) and mine.dtype == dtype
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(np.from_dlpack(mine), theirs)


def test_supported_dtypes():
    for dtype in (bool, "int8", "uint64", "float16", ml_dtypes.bfloat16, "complex128"):
        assert dlpack.is_supported_dtype(dtype)
    for dtype in (ml_dtypes.int4, ml_dtypes.float8_e4m3fn, weft.float0):
        assert not dlpack.is_supported_dtype(dtype)


def test_errors():
    with pytest.raises(DtypeError, match=r"needs an object with __dlpack__; got \[1\]"):
        dlpack.from_dlpack([1])
