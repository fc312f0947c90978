"""The bits of an array read otherwise: `view` as another dtype, and `byteswap`."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import ShapeError
from weft.numpy.fused import fused
from weft.numpy.manipulation import flip, reshape, stack
from weft.numpy.promotion import as_array
from weft.primitives import elementwise as ops
from weft.primitives.bits import bitcast_convert_type
from weft.primitives.slicing import index_in_dim


def view(x: Any, dtype: Any = None, type: None = None) -> Any:
    """The same bits read as another dtype; the last axis grows or shrinks with the items' size."""
    if type is not None:
        raise NotImplementedError("view: type must be None, for there is one type of array.")
    return x if dtype is None else viewed(x, dtypes.check_user_dtype(dtype, "view"))


@fused(static=("dtype",), name="view")
def viewed(x: Any, dtype: np.dtype) -> Any:
    """`view`."""
    x = as_array(x, "view")
    if dtypes.is_complex(x.dtype) and x.dtype != dtype:
        parts = stack([ops.real(x), ops.imag(x)], axis=-1)
        return viewed(merged(x, parts), dtype)
    if dtypes.is_complex(dtype) and x.dtype != dtype:
        parts = halved(viewed(x, dtypes.real_dtype(dtype)), 2, dtype)
        return ops.complex(*(index_in_dim(parts, i, -1, keepdims=False) for i in range(2)))
    if dtypes.is_bool(x.dtype) and not dtypes.is_bool(dtype):
        return viewed(ops.convert(x, np.dtype(np.uint8)), dtype)
    if dtypes.is_bool(dtype) and not dtypes.is_bool(x.dtype):
        return ops.convert(viewed(x, np.dtype(np.uint8)), dtype)
    if x.dtype == dtype:
        return ops.convert(x, dtype)
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(dtype)
    if new > old:
        return bitcast_convert_type(halved(x, new // old, dtype), dtype)
    out = bitcast_convert_type(x, dtype)
    return out if old == new else merged(x, out)


def merged(x: Any, parts: Any) -> Any:
    """The parts of x, along a new last axis, as more items along its last axis."""
    if not x.ndim:
        raise ShapeError(
            f"view: the items of a scalar must stay of one size; got {x.aval}, items of "
            f"{parts.dtype}. Hint: x.reshape(1).view(dtype)."
        )
    return reshape(parts, (*x.shape[:-1], x.shape[-1] * parts.shape[-1]))


def halved(x: Any, count: int, dtype: np.dtype) -> Any:
    """x with each `count` items of its last axis along a new one."""
    if not x.ndim or x.shape[-1] % count:
        raise ShapeError(f"view: the last axis must hold whole items of {dtype}; got {x.aval}.")
    return reshape(x, (*x.shape[:-1], x.shape[-1] // count, count))


@fused
def byteswap(x: Any) -> Any:
    """The array with the bytes of each element in reverse order."""
    size = x.dtype.itemsize // (2 if dtypes.is_complex(x.dtype) else 1)
    if size == 1:
        return x
    parts = viewed(reshape(x, (x.size, 1)), np.dtype(np.uint8))
    parts = flip(reshape(parts, (-1, size)), 1)
    whole = viewed(reshape(parts, (x.size, x.dtype.itemsize)), x.dtype)
    return reshape(whole, x.shape)
