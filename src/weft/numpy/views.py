"""Arrays in another dtype: `astype`; and the same bits, `view`, `byteswap`, `packbits`."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft import dtypes
from weft.api.devices import device_put
from weft.errors import DtypeError, ShapeError
from weft.lax.values import put_on_device
from weft.numpy import creation
from weft.numpy.choice import literal_like
from weft.numpy.manipulation import flip, reshape, stack
from weft.numpy.promotion import as_array, axis_of, is_nonzero
from weft.primitives import bits
from weft.primitives import elementwise as ops
from weft.primitives.bits import bitcast_convert_type
from weft.primitives.layout import broadcast_in_dim, broadcasted_iota, literal, reduce_sum
from weft.primitives.layout import copy as copy_array
from weft.primitives.slicing import index_in_dim, pad, slice_in_dim
from weft.run.operation import operation
from weft.util import check_option
from weft.xla.array import require_alive
from weft.xla.typing import Array, ArrayLike, DeviceLike, DTypeLike


def astype(
    x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = False, device: DeviceLike = None
) -> Array:
    """Convert an array to another dtype.

    Floats are rounded toward zero when converted to integers. Of complex numbers, a real dtype
    keeps the real part.

    Args:
      x: array of any dtype.
      dtype: the dtype of the result, such as `int` or `jnp.float16`.
      copy: return a copy even if `x` has this dtype already. False by default.
      device: the device or sharding of the result; None (default) leaves it on the device of `x`.

    Returns:
      An array of the shape of `x`, of that dtype.

    Raises:
      DtypeError: if `dtype` is not a dtype.

    >>> jnp.astype(jnp.array([1.7, -1.7]), int)
    Array([ 1, -1], dtype=int32)
    >>> jnp.astype(jnp.array([0.0, 2.0]), bool)
    Array([False,  True], dtype=bool)
    """
    made = cast(x, dtype, copy)
    return made if device is None else put_on_device(made, device)


@operation(arrays=1, name="astype")
def cast(x: ArrayLike, dtype: DTypeLike, copy: bool = False) -> Array:
    """Return x in another dtype, on its device."""
    x = as_array(x, "astype")
    found = creation.choose_dtype(dtype, dtypes.default_float, "astype")
    if x.dtype == found and not x.aval.weak_type:
        return copy_array(x) if copy else x
    return ops.convert(x, found)


def view(x: Array, dtype: DTypeLike | None = None, type: None = None) -> Array:
    """The same bits read as another dtype; the last axis grows or shrinks with the items' size."""
    if isinstance(dtype, int | tuple | list):
        sizes = (dtype, type) if isinstance(type, int) else dtype
        raise TypeError(
            f"view: dtype must be a dtype, as with NumPy; got {sizes}. Hint: x.reshape({sizes})."
        )
    if type is not None:
        raise NotImplementedError("view: type must be None, for there is one type of array.")
    return require_alive(x) if dtype is None else view_as(x, dtypes.check_user_dtype(dtype, "view"))


@operation(static=("dtype",), name="view")
def view_as(x: Any, dtype: np.dtype) -> Any:
    """`view`."""
    x = as_array(x, "view")
    if dtypes.is_complex(x.dtype) and x.dtype != dtype:
        parts = stack([ops.real(x), ops.imag(x)], axis=-1)
        return view_as(merge_items(x, parts), dtype)
    if dtypes.is_complex(dtype) and x.dtype != dtype:
        parts = group_items(view_as(x, dtypes.real_dtype(dtype)), 2, dtype)
        return ops.complex(*(index_in_dim(parts, i, -1, keepdims=False) for i in range(2)))
    if dtypes.is_bool(x.dtype) and not dtypes.is_bool(dtype):
        return view_as(ops.convert(x, np.dtype(np.uint8)), dtype)
    if dtypes.is_bool(dtype) and not dtypes.is_bool(x.dtype):
        return ops.convert(view_as(x, np.dtype(np.uint8)), dtype)
    if x.dtype == dtype:
        return ops.convert(x, dtype)
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(dtype)
    if new > old:
        return bitcast_convert_type(group_items(x, new // old, dtype), dtype)
    out = bitcast_convert_type(x, dtype)
    return out if old == new else merge_items(x, out)


def merge_items(x: Any, parts: Any) -> Any:
    """The parts of x, along a new last axis, as more items along its last axis."""
    if not x.ndim:
        raise ShapeError(
            f"view: the items of a scalar must stay of one size; got {x.aval}, items of "
            f"{parts.dtype}. Hint: x.reshape(1).view(dtype)."
        )
    return reshape(parts, (*x.shape[:-1], x.shape[-1] * parts.shape[-1]))


def group_items(x: Any, count: int, dtype: np.dtype) -> Any:
    """x with each `count` items of its last axis along a new one."""
    if not x.ndim or x.shape[-1] % count:
        raise ShapeError(f"view: the last axis must hold whole items of {dtype}; got {x.aval}.")
    return reshape(x, (*x.shape[:-1], x.shape[-1] // count, count))


@operation
def byteswap(x: Array) -> Array:
    """The array with the bytes of each element in reverse order."""
    size = x.dtype.itemsize // (2 if dtypes.is_complex(x.dtype) else 1)
    if size == 1:
        return x
    parts = view_as(reshape(x, (x.size, 1)), np.dtype(np.uint8))
    parts = flip(reshape(parts, (-1, size)), 1)
    whole = view_as(reshape(parts, (x.size, x.dtype.itemsize)), x.dtype)
    return reshape(whole, x.shape)


# --- truth values as bits -------------------------------------------------------------------


UINT8 = np.dtype(np.uint8)


def check_bits_operand(op: str, a: Any, axis: int | None, bitorder: str) -> tuple[Any, int]:
    """The array, and an axis of it; None flattens."""
    x = as_array(a, op)
    check_option(op, "bitorder", bitorder, "big", "little")
    if axis is None or not x.ndim:
        return reshape(x, (x.size,)), 0
    return x, axis_of(op, axis, x.ndim)


def count_shifts(shape: tuple[int, ...], axis: int, bitorder: str) -> Any:
    """For the eight places along an axis, how far the bit there is shifted."""
    place = broadcasted_iota(UINT8, shape, axis)
    return ops.sub(literal_like(7, place), place) if bitorder == "big" else place


def pad_end(x: Any, axis: int, count: int) -> Any:
    """x with zeros behind it along an axis, or without its last elements."""
    return pad(x, literal(0, x.dtype), [(0, count if i == axis else 0, 0) for i in range(x.ndim)])


@operation(static=("axis", "bitorder"))
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Pack truth values as bits into uint8 numbers, eight in each.

    Args:
      a: array of bools or integers; an element that is not 0 is the bit 1.
      axis: the axis to pack along; None (default) flattens `a` first. A Python value, static under
        tracing.
      bitorder: "big" (default) makes the first of eight elements the highest bit, "little" the
        lowest bit. A Python value, static under tracing.

    Returns:
      A uint8 array. The axis of n elements becomes one of ceil(n / 8); zeros fill the last number.

    Raises:
      DtypeError: if `a` is of floats or complex numbers.
      ValueError: if `bitorder` is another name.

    >>> jnp.packbits(jnp.array([1, 0, 1]))
    Array([160], dtype=uint8)
    >>> jnp.packbits(jnp.array([1, 0, 1]), bitorder="little")
    Array([5], dtype=uint8)
    """
    x, axis = check_bits_operand("packbits", a, axis, bitorder)
    if dtypes.is_inexact(x.dtype):
        raise DtypeError(
            f"packbits: operands must be bool or integers; got {x.aval}. Hint: x != 0."
        )
    x = ops.convert(is_nonzero(x, "packbits"), UINT8)
    x = pad_end(x, axis, -x.shape[axis] % 8)
    shape = (*x.shape[:axis], x.shape[axis] // 8, 8, *x.shape[axis + 1 :])
    moved = bits.shift_left_p.apply(reshape(x, shape), count_shifts(shape, axis + 1, bitorder))[0]
    return reduce_sum(moved, (axis + 1,))


@operation(static=("axis", "count", "bitorder"))
def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """Unpack the bits of uint8 numbers. This undoes `packbits`.

    Args:
      a: array of dtype uint8.
      axis: the axis to unpack along; None (default) flattens `a` first. A Python value, static
        under tracing.
      count: the number of bits to return along the axis: zeros are added if there are fewer. A
        negative count leaves out the last -count bits. None (default) returns all. A Python value,
        static under tracing.
      bitorder: "big" (default) returns the highest bit first, "little" the lowest. A Python value,
        static under tracing.

    Returns:
      A uint8 array of zeros and ones; the axis of n numbers becomes one of 8 * n, or of `count`.

    Raises:
      DtypeError: if `a` is of another dtype than uint8.

    >>> jnp.unpackbits(jnp.array([160], jnp.uint8))
    Array([1, 0, 1, 0, 0, 0, 0, 0], dtype=uint8)
    >>> jnp.unpackbits(jnp.array([160], jnp.uint8), count=3)
    Array([1, 0, 1], dtype=uint8)
    """
    x, axis = check_bits_operand("unpackbits", a, axis, bitorder)
    if x.dtype != UINT8:
        raise DtypeError(f"unpackbits: operands must be uint8; got {x.aval}.")
    shape = (*x.shape[: axis + 1], 8, *x.shape[axis + 1 :])
    dims = [i for i in range(len(shape)) if i != axis + 1]
    spread = broadcast_in_dim(x, shape, dims)
    shifted = bits.shift_right_logical_p.apply(spread, count_shifts(shape, axis + 1, bitorder))[0]
    n = 8 * x.shape[axis]
    out = reshape(
        ops.bitwise_and(shifted, literal_like(1, shifted)),
        (*x.shape[:axis], n, *x.shape[axis + 1 :]),
    )
    if count is None:
        return out
    kept = max(count if count >= 0 else n + count, 0)
    return pad_end(out, axis, kept - n) if kept > n else slice_in_dim(out, 0, kept, 1, axis)


def cast_array(self: Any, dtype: DTypeLike, copy: bool = False, device: DeviceLike = None) -> Array:
    """The array in another dtype; complex to real drops the imaginary part."""
    if device is None and copy is False:
        return cast(self, dtype)
    return astype(self, dtype, copy=copy, device=device)


def to_device(self: Any, device: DeviceLike, *, stream: Any = None) -> Array:
    """The array on another device."""
    if stream is not None:
        raise NotImplementedError("to_device: stream must be None; the engine orders transfers.")
    return device_put(self, device)
