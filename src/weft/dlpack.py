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
    """An array of what another library holds; the object must have `__dlpack__`.

    The elements are shared where the device and their layout allow it; with `copy=True`
    they never are.

    >>> print(from_dlpack(np.arange(3, dtype=np.float32)))
    [0. 1. 2.]
    """
    return creation.from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be shared by DLPack.

    >>> is_supported_dtype("bfloat16"), is_supported_dtype("int4")
    (True, False)
    """
    return np.dtype(dtype) in SUPPORTED
