"""Values and their types as `jax.lax` has them: `dtype`, `stage`, `full`, `shape_as_value`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import api, dtypes
from weft.core.aval import is_valid_value, typeof
from weft.core.trace import Tracer, current, is_eager
from weft.errors import DtypeError
from weft.mesh.mesh import get_mesh
from weft.mesh.sharding import NamedSharding, SingleDeviceSharding
from weft.mesh.spec import PartitionSpec
from weft.mesh.typed import with_every_entry
from weft.primitives import layout
from weft.primitives.families import index_tuple
from weft.primitives.reshard import lay_out
from weft.xla.array import ARRAYS, put
from weft.xla.typing import Array, ArrayLike, DTypeLike, ShardingLike


def dtype(x: Any) -> Any:
    """Return the dtype of a value or a type.

    64-bit types count as their 32-bit types, with a warning, unless `enable_x64`.

    Args:
      x: an array, a number, a dtype, or a Python type of numbers.

    Returns:
      A NumPy dtype.

    Raises:
      DtypeError: x has no dtype that arrays of weft may have.

    >>> lax.dtype(3.0), lax.dtype(bool)
    (dtype('float32'), dtype('bool'))
    """
    if x is None:  # to NumPy a name of float64
        raise DtypeError("dtype: needs a value, or what names a dtype; got None.")
    return typeof(x).dtype if is_valid_value(x) else dtypes.check_user_dtype(x, "dtype")


def stage(x: Any, /) -> Any:
    """Return a number or an array as an array of weft.

    Args:
      x: a number, a NumPy array or an array of weft. Traced values are returned unchanged.

    Returns:
      An array; a Python number becomes weakly typed.

    Raises:
      DtypeError: x is not a number or an array.

    >>> lax.stage(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    aval = typeof(x, "stage")
    return x if isinstance(x, Tracer) or dtypes.is_extended(aval.dtype) else put(x)


def shape_as_value(shape: Sequence[int]) -> Array:
    """Return a shape as an array of ints.

    Args:
      shape: a sequence of ints.

    Returns:
      An integer array of rank 1.

    >>> lax.shape_as_value((2, 3))
    Array([2, 3], dtype=int32)
    """
    return put(np.array(index_tuple(shape, "shape_as_value", "shape"), dtypes.default_int()))


def full(
    shape: Sequence[int],
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    sharding: ShardingLike = None,
) -> Array:
    """Return an array that is filled with a value.

    Args:
      shape: the shape, ints.
      fill_value: a number or a scalar array. For a dtype of random keys, the words of the key.
      dtype: the dtype. The default is the dtype of the value; a Python number makes a weakly typed
        array, unless `sharding` is given.
      sharding: the sharding of the array, or a device. By default the array is on the default
        device.

    Returns:
      An array of the given shape and dtype.

    Raises:
      ShapeError: the value is not a scalar, or a size is negative.

    >>> lax.full((2, 2), 7)
    Array([[7, 7],
           [7, 7]], dtype=int32, weak_type=True)
    """
    return put_on_device(layout.full(shape, fill_value, dtype), sharding, strong=True)


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Sequence[int] | None = None,
    sharding: ShardingLike = None,
) -> Array:
    """Return an array like another one that is filled with a value.

    Args:
      x: an array.
      fill_value: a number or a scalar array.
      dtype: the dtype. The default is the dtype of x.
      shape: the shape, ints. The default is the shape of x.
      sharding: the sharding of the result, or a device. By default it is the sharding of x.

    Returns:
      An array of the given shape and dtype.

    >>> print(lax.full_like(jnp.zeros((2, 2)), 7))
    [[7. 7.]
     [7. 7.]]
    """
    filled = layout.full_like(x, fill_value, dtype, shape)
    return put_like(filled, x, sharding)


def put_on_device(
    x: Any, device: Any, out_sharding: Any = None, op: str = "full", strong: bool = False
) -> Any:
    """Return a new array on `device`, or over a sharding, if one is given.

    Otherwise all devices of the mesh in scope have it. If `strong`, an array that is put on a
    device loses its weak type.
    """
    if device is not None:
        if out_sharding is not None:
            raise ValueError(
                f"{op}: device and out_sharding must not both be given; got {device}, "
                f"{out_sharding}. Hint: out_sharding alone."
            )
        return api.devices.device_put(layout.convert(x, x.dtype) if strong else x, device)
    if out_sharding is not None:
        return lay_out(op, x, out_sharding)
    mesh = get_mesh()
    if not mesh.empty and is_eager() and type(x) in ARRAYS and not x._committed:
        whole = with_every_entry(NamedSharding(mesh, PartitionSpec()), x.ndim)
        return put(x, whole, committed=True)
    return x


def put_like(
    x: Any, like: Any, device: Any = None, out_sharding: Any = None, op: str = "full_like"
) -> Any:
    """Return a new array on the requested device, or else on the committed device of `like`.

    Over a mesh it gets the sharding of `like` if the shapes are equal.
    """
    if device is not None or out_sharding is not None:
        return put_on_device(x, device, out_sharding, op, strong=True)
    if isinstance(like, Tracer) and like.aval.varying is not None:
        x = like.aval.varying.cast(current.trace, x)
    alike = x.shape == getattr(like, "shape", None)
    if type(like) in ARRAYS and like._committed:
        alike = alike or type(like._sharding) is SingleDeviceSharding
        return put_on_device(x, like._sharding if alike else None)
    if alike and hasattr(like, "aval") and like.aval.sharded is not None:
        out_sharding = like.aval.sharded.named
    return put_on_device(x, None, out_sharding, op)
