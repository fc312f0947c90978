"""The checks for cuDNN say that it is not used, and judge shapes as JAX's do."""

import numpy as np
import pytest

import weft
from weft.compat import cudnn, private

SHAPES = {  # of queries, keys and values, by time and heads, and the error
    "fit": ([(2, 64, 4, 32)] * 3, None),
    "fewer heads of keys": ([(2, 64, 4, 32), (2, 64, 2, 32), (2, 64, 2, 32)], None),
    "rank": ([(2, 64, 4)] * 3, "query must have 4 axes"),
    "batch": ([(2, 64, 4, 32), (3, 64, 4, 32), (3, 64, 4, 32)], "the same batch size"),
    "features": ([(2, 64, 4, 32), (2, 64, 4, 16), (2, 64, 4, 32)], "number of features"),
    "time": ([(2, 64, 4, 32), (2, 60, 4, 32), (2, 64, 4, 32)], "length of keys and values"),
    "heads": ([(2, 64, 4, 32), (2, 64, 4, 32), (2, 64, 2, 32)], "heads of keys and values"),
}


@pytest.mark.parametrize("case", SHAPES)
@pytest.mark.parametrize("name", ["BTNH", "bnth", "BSNH"])
def test_shapes_of_attention(case, name):
    shapes, error = SHAPES[case]
    layout = cudnn._normalize_layout(name)
    if layout is cudnn.AttentionLayout.BNTH:
        shapes = [(s[0], s[2], s[1], *s[3:]) if len(s) == 4 else s for s in shapes]
    arrays = [weft.ShapeDtypeStruct(s, np.float16) for s in shapes]
    if error is None:
        assert cudnn.check_layout(*arrays, *[None] * 7, layout) is None
    else:
        with pytest.raises(ValueError, match=error):
            cudnn.check_layout(*arrays, *[None] * 7, layout)


def test_cudnn_is_not_there():
    for check in (cudnn.check_cudnn_version, cudnn.check_is_flash_attention):
        with pytest.raises(RuntimeError, match="must find cuDNN"):
            check()
    assert cudnn.check_compute_capability("8.0") is False
    with pytest.raises(ValueError, match="must be 'BTNH' or 'BNTH'; got 'NTBH'"):
        cudnn._normalize_layout("NTBH")


def test_no_array_is_an_earray():
    assert not isinstance(weft.random.key(0), private.EArray)
    with pytest.raises(NotImplementedError, match="EArray: must hold a dtype"):
        private.EArray()
