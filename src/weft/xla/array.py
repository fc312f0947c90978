"""`Array`: a buffer on a device and its type. Making one, reading one, letting one go.

The class is jaxlib's, in C++; what is here needs no computation. Operators and methods that compute
are attached by numpy/methods.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxlib import _jax

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.trace import Tracer
from weft.errors import DeletedError, DtypeError, ShapeError
from weft.xla.client import SingleDeviceSharding, default_device, sharding_on

ArrayImpl = _jax.ArrayImpl
COPY_NOW = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL


class _ArrayMeta(type):
    def __instancecheck__(cls, x: object) -> bool:
        return type(x) is ArrayImpl or isinstance(x, Tracer)

    def __subclasscheck__(cls, other: type) -> bool:
        return other is ArrayImpl or issubclass(other, Tracer) or type.__subclasscheck__(cls, other)

    def __getattr__(cls, name: str) -> Any:
        return getattr(ArrayImpl, name)  # so that `help(weft.Array.sum)` works

    def __dir__(cls) -> list[str]:
        return dir(ArrayImpl)


class Array(metaclass=_ArrayMeta):
    """The type of weft's arrays: `isinstance(x, weft.Array)` holds for arrays and traced values.

    Not to be called: arrays come from `jnp.array` and its kin. They have the operators, methods and
    properties of NumPy's arrays, `dir(weft.Array)`, but never change: `x.at[i].set(y)` is a new
    array, in place of `x[i] = y`.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Array: must be made by a function; got a call. Hint: jnp.array(...).")


def put(x: Any, sharding: SingleDeviceSharding | None = None, committed: bool = False) -> Any:
    """`x` as an Array where `sharding` says; itself where it is there already."""
    if type(x) is ArrayImpl:
        if sharding is None or x._sharding == sharding:
            return x
        return _jax.batched_copy_array_to_devices_with_sharding(
            [x],
            [sharding._internal_device_list],
            [sharding],
            [_jax.ArrayCopySemantics.REUSE_INPUT],
        )[0]
    aval = typeof(x)
    sharding = sharding or sharding_on(default_device())
    host = np.asarray(x, aval.dtype, order="C")
    return _jax.batched_device_put(
        aval, sharding, [host], [sharding.device], committed, host_buffer_semantics=COPY_NOW
    )


def with_type(x: Any, aval: ShapedArray) -> Any:
    """The same buffer under another type with equal shape and dtype (weak or not)."""
    return x._rewrap_with_aval_and_sharding(aval, x._sharding)


def host_view(x: Any) -> np.ndarray:
    """The array's content as a read-only NumPy array, without a copy where memory is shared."""
    try:
        return np.asarray(memoryview(x))  # waits for a small result ten times faster than below
    except BufferError:  # deleted, on another device, or of a dtype that NumPy does not know
        if x.is_deleted():
            raise deleted(x) from None
    view = x._single_device_array_to_np_array_did_copy()[0]
    view.flags.writeable = False
    return view


def deleted(x: Any) -> DeletedError:
    """The error for using an array that is gone."""
    return DeletedError(
        f"array: must not be used after it was deleted or donated; got {x.aval}. Hint: use the "
        "result of the call it was donated to, or drop donate_argnums there."
    )


def scalar(x: Any, op: str) -> Any:
    """The one element of an array, as a NumPy scalar."""
    view = host_view(x)
    if view.size != 1:
        hint = " Hint: x.any() or x.all()." if op == "bool()" else ""
        raise ShapeError(f"{op}: needs an array of one element; got {x.aval}.{hint}")
    return view.reshape(())[()]


def array_repr(x: Any) -> str:
    """As NumPy shows it, with the dtype always."""
    if x.is_deleted():
        return f"Array(deleted, {x.aval})"
    weak = ", weak_type=True" if x.aval.weak_type else ""
    body = np.array2string(
        host_view(x), separator=", ", prefix="Array(", suffix=f", dtype={x.dtype.name}{weak})"
    )
    if x.size == 0 and x.ndim > 0:
        body = f"[], shape={x.shape}"
    line = body.rsplit("\n", 1)[-1]
    tail = f"dtype={x.dtype.name}{weak})"
    limit = np.get_printoptions()["linewidth"]
    indent = 6 if "\n" not in body else 0
    gap = " " if len(line) + len(tail) + 2 + indent <= limit else "\n      "
    return f"Array({body},{gap}{tail}"


def _dlpack(x: Any, *, stream=None, max_version=None, dl_device=None, copy=None) -> Any:
    if x.is_deleted():
        raise deleted(x)
    if dtypes.is_bool(x.dtype) or copy:  # what the engine's exporter does not do itself
        return np.array(host_view(x)).__dlpack__()
    return _jax.buffer_to_dlpack_managed_tensor(x, stream=stream)


def _dlpack_device(x: Any) -> tuple[int, int]:
    kinds = {"cpu": 1, "cuda": 2, "gpu": 2, "rocm": 10}
    device = x._sharding.device
    if device.platform not in kinds:
        raise DtypeError(f"__dlpack_device__: needs a CPU or GPU array; got {device.platform}.")
    return kinds[device.platform], getattr(device, "local_hardware_id", None) or 0


def array_from_host(host: np.ndarray, weak_type: bool) -> Any:
    """An array with the content of `host`, for unpickling."""
    aval = ShapedArray(host.shape, host.dtype, weak_type)
    sharding = sharding_on(default_device())
    return _jax.batched_device_put(aval, sharding, [host], [sharding.device], False)


def _hash(x: Any) -> int:
    raise TypeError(
        f"hash(): an array is no key, for `==` compares its elements; got {x.aval}. "
        "Hint: x.item() for one number, x.tobytes() for many, id(x) for the object."
    )


def _length(x: Any) -> int:
    if not x.aval.shape:
        raise ShapeError(f"len(): needs an array with an axis; got {x.aval}.")
    return x.aval.shape[0]


def _integer(x: Any) -> int:
    if not dtypes.is_integer(x.dtype) or x.ndim:
        raise TypeError(f"index(): needs an integer scalar array; got {x.aval}.")
    return int(scalar(x, "index()"))


def _attach() -> None:
    """Give the engine's class the attributes of an array."""
    read = {
        "shape": lambda x: x.aval.shape,
        "dtype": lambda x: x.aval.dtype,
        "ndim": lambda x: x.aval.ndim,
        "size": lambda x: x.aval.size,
        "weak_type": lambda x: x.aval.weak_type,
        "itemsize": lambda x: x.aval.dtype.itemsize,
        "nbytes": lambda x: x.aval.size * x.aval.dtype.itemsize,
        "sharding": lambda x: x._sharding,
        "committed": lambda x: x._committed,
        "device": lambda x: x._sharding.device,
        "is_fully_addressable": lambda x: True,
        "is_fully_replicated": lambda x: True,
        "__array_priority__": lambda x: 100,
    }
    for name, get in read.items():
        setattr(ArrayImpl, name, property(get))
    for name, method in {
        "devices": lambda x: x._sharding.device_set,
        "item": lambda x, *i: host_view(x).item(*i),
        "tolist": lambda x: host_view(x).tolist(),
        "tobytes": lambda x, order="C": host_view(x).tobytes(order),
        "copy_to_host_async": lambda x: x._copy_single_device_array_to_host_async(),
        "addressable_data": lambda x, index=0: x,
        "__array__": lambda x, dtype=None, copy=None: np.array(
            host_view(x), dtype, copy=bool(copy)
        )
        if copy or (dtype is not None and dtype != x.dtype)
        else host_view(x),
        "__dlpack__": _dlpack,
        "__dlpack_device__": _dlpack_device,
        "__bool__": lambda x: bool(scalar(x, "bool()")),
        "__int__": lambda x: int(scalar(x, "int()")),
        "__float__": lambda x: float(scalar(x, "float()")),
        "__complex__": lambda x: complex(scalar(x, "complex()")),
        "__index__": _integer,
        "__len__": _length,
        "__repr__": array_repr,
        "__str__": lambda x: f"Array(deleted, {x.aval})" if x.is_deleted() else str(host_view(x)),
        "__format__": lambda x, spec: format(
            host_view(x)[()] if x.ndim == 0 else host_view(x), spec
        ),
        "__reduce__": lambda x: (array_from_host, (np.array(host_view(x)), x.weak_type)),
    }.items():
        setattr(ArrayImpl, name, method)
    ArrayImpl.__hash__ = _hash


_attach()
