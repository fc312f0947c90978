"""Fixtures of the tests of primitives."""

import numpy as np
import pytest

from weft.options import config

NAMES = ["float32", "float64", "complex64", "complex128"]


@pytest.fixture(params=NAMES)
def dtype(request):
    dtype = np.dtype(request.param)
    with config.scope(enable_x64=np.finfo(dtype).dtype == np.float64):
        yield dtype
