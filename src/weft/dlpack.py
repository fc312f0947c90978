"""Arrays shared with other libraries by DLPack: `from_dlpack`, and which dtypes can be.

An array gives itself away by its own `__dlpack__`, which the other library calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft import dtypes
from weft.numpy import creation
from weft.util import list_public

__all__ = ["from_dlpack", "is_supported_dtype"]
__dir__ = list_public(__name__)

SUPPORTED = frozenset(
    np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128", dtypes.bfloat16),
    )
)


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Any:
    """Return an array of the elements that another library holds.

    Args:
      external_array: an object with the method `__dlpack__`, such as an array of NumPy or PyTorch.
      device: the device of the result. None, the default, is the device of the elements.
      copy: None, the default, shares the memory where the device and the layout allow it. True
        always copies. False never does.

    Returns:
      An array of the shape and dtype of the object.

    >>> print(from_dlpack(np.arange(3, dtype=np.float32)))
    [0. 1. 2.]
    """
    return creation.from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: Any) -> bool:
    """Return True if arrays of a dtype can be shared by DLPack.

    Args:
      dtype: a dtype, a scalar type or a name.

    Returns:
      A bool.

    >>> is_supported_dtype("bfloat16"), is_supported_dtype("int4")
    (True, False)
    """
    return np.dtype(dtype) in SUPPORTED
