"""`Array`: a buffer on a device and its type. Arrays are made, read and deleted here.

The class of arrays is jaxlib's, in C++. `Array` holds the members that it gets, none of which
computes. C++ knows NumPy's dtypes only, so an array of random keys is a `KeyArray` with the same
members: it holds its type and an array of the words of the keys. numpy/methods.py attaches
operators and methods that compute. shards.py makes and reads the parts of an array over devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np
from jaxlib import _jax

from weft import display, dtypes
from weft.core.aval import HasAval, ShapedArray, is_masked, is_valid_value, typeof
from weft.core.trace import Tracer
from weft.errors import DeletedError, DtypeError, JaxRuntimeError, ShapeError
from weft.mesh.client import default_device
from weft.mesh.sharding import SingleDeviceSharding, sharding_on, terms_of
from weft.mesh.spec import PartitionSpec
from weft.mesh.transfers import is_own_transfer, move_explicitly
from weft.mesh.typed import typed_for
from weft.options import x64_as, x64_cell
from weft.pytrees import register_call_node
from weft.util import LazyMember, hide_members
from weft.xla import shards
from weft.xla.members import Members

ArrayImpl: Any = _jax.ArrayImpl

# What jaxlib reads in place, or cannot tell from such: to it a Python bool is NumPy's.
HOST = (np.ndarray, np.generic, bool)
SMALL = 1 << 14  # bytes
WIDE_FLOATS = frozenset(filter(dtypes.is_inexact, dtypes.WIDE))


# --- making, moving -------------------------------------------------------------------------


def put(x: Any, sharding: Any = None, committed: bool = False) -> Any:
    """`x` as an Array where `sharding` says; itself where it is there already.

    What a host array holds now is copied; over several devices, the result is committed. float0 has
    no array: such a value stays NumPy's.
    """
    if type(x) is ArrayImpl:
        if x.is_deleted():
            raise deleted_error(x)
        if sharding is None or (x._sharding == sharding and (x._committed or not committed)):
            return x
        return move_array(x, sharding)
    if type(x) is KeyArray:
        words = put(x.words, sharding, committed)
        return x if words is x.words else KeyArray(typed_for(x.aval, words._sharding), words)
    aval = typeof(x)
    sharding = sharding or sharding_on(default_device())
    try:
        host = np.asarray(dtypes.cast_on_host(x, aval.dtype), order="C")
    except DtypeError:  # of a ShapeDtypeStruct
        raise
    except (OverflowError, TypeError) as error:
        hint = dtypes.hint_wide(x) if isinstance(x, int) else ""
        raise type(error)(f"array: a number must fit {aval.dtype}; got {x!r}.{hint}") from None
    if aval.dtype == dtypes.float0:
        return host
    try:
        if type(sharding) is not SingleDeviceSharding:
            return shards.make_from_host(aval, sharding, host)
        now, devices = shards.COPY_NOW, [sharding.device]
        return _jax.batched_device_put(
            aval, sharding, [host], devices, committed, host_buffer_semantics=now
        )
    except JaxRuntimeError as error:
        if is_own_transfer(error, (x, host)):
            return move_explicitly(put, x, sharding, committed)
        raise refuse_dtype(aval, error) from None


def refuse_dtype(aval: ShapedArray, error: Exception) -> Exception:
    """The error for a host array that was not taken, which may be for its dtype."""
    clearer = DtypeError(f"array: must be of a dtype that XLA has arrays of; got {aval}.")
    return clearer if "Unknown NumPy dtype" in str(error) else error


def move_array(x: Any, sharding: Any) -> Any:
    """An array committed to `sharding`; the same buffer where it is on that device."""
    if not type(x._sharding) is type(sharding) is SingleDeviceSharding:
        return shards.reshard_array(x, sharding)
    if x._sharding != sharding:
        x = _jax.batched_copy_array_to_devices_with_sharding(
            [x], [sharding._internal_device_list], [sharding], [_jax.ArrayCopySemantics.REUSE_INPUT]
        )[0]
    return ArrayImpl(typed_for(x.aval, sharding), sharding, [x], committed=True, _skip_checks=True)


def copy_writable(x: Any) -> Any:
    """`x`, or a copy where its memory is NumPy's and can be written to.

    Floats of 64 bits are cast to what arrays have: C++ would let NumPy cast them, and an overflow
    ends the process where warnings are errors.
    """
    if not isinstance(x, HOST) or type(x) is bool:
        return x
    is_array = isinstance(x, np.ndarray)
    if is_array and type(x) is not np.ndarray and is_masked(x):
        typeof(x)  # raises: NumPy's copy would be without the mask
    if x.dtype in WIDE_FLOATS and not x64_cell.value:
        return dtypes.cast_on_host(x, dtypes.canonicalize(x.dtype))
    if not is_array:
        return x
    # an Array costs more to make than a small copy, and a second copy less than a large one
    return put(x) if x.nbytes > SMALL and is_valid_value(x) else np.array(x, order="C")


def array_from_host(host: np.ndarray, weak_type: bool) -> Any:
    """An array that takes over the memory of `host`, which nobody else may write to."""
    aval = ShapedArray(host.shape, host.dtype, weak_type)
    sharding = sharding_on(default_device())
    try:
        if host.dtype in dtypes.WIDE:  # C++ narrows without
            with x64_as(True):
                return _jax.batched_device_put(aval, sharding, [host], [sharding.device], False)
        return _jax.batched_device_put(aval, sharding, [host], [sharding.device], False)
    except JaxRuntimeError as error:
        if is_own_transfer(error, ()):
            return move_explicitly(array_from_host, host, weak_type)
        raise refuse_dtype(aval, error) from None


def array_from_pickle(host: np.ndarray, weak_type: bool) -> Any:
    """Return a pickled array, of 32 bits where `enable_x64` does not allow 64."""
    return array_from_host(host.astype(dtypes.canonicalize(host.dtype), copy=False), weak_type)


def host_from_dlpack(x: Any) -> np.ndarray:
    """Return another library's array as NumPy's; np.from_dlpack refuses some dtypes."""
    imported = _jax.dlpack_managed_tensor_to_buffer(
        x.__dlpack__(), default_device(), None, copy=None
    )
    return shards.read_buffer(imported)


def retype_array(x: Any, aval: ShapedArray) -> Any:
    """The same buffer under another type with equal shape and dtype (weak or not)."""
    return x._rewrap_with_aval_and_sharding(aval, x._sharding)


def array_of_type(aval: ShapedArray, buffer: Any) -> Any:
    """The array of type `aval` that this buffer, of type `aval.physical`, holds."""
    return buffer if aval.physical is aval else KeyArray(aval, buffer)


# --- reading --------------------------------------------------------------------------------


def host_view(x: Any) -> np.ndarray:
    """The array's content as a read-only NumPy array, without a copy where memory is shared."""
    if type(x) is KeyArray:
        raise no_numbers(x)
    look_for(x)
    try:
        return np.asarray(memoryview(x))  # waits for a small result ten times faster than below
    except BufferError:  # deleted, on another device, or of a dtype that NumPy does not know
        if x.is_deleted():
            raise deleted_error(x) from None
    if x._sharding.num_devices > 1 or not x._sharding.is_fully_addressable:
        return shards.assemble_array(x)
    return shards.read_buffer(x)


def look_for(x: Any) -> None:
    """Poll until `x` is computed, if polling was successful lately; otherwise return at once.

    Waking a waiting thread takes 10 us, and 60 us in a virtual machine, which is longer than many
    programs run. A longer program needs the processor, so each unsuccessful poll halves the next
    one.
    """
    if x.is_deleted() or _is_ready(x):
        return
    _looks[0] += 1
    limit = LONGEST if _looks[0] % 32 == 0 else _looks[1]
    end = perf_counter() + limit
    while perf_counter() < end:
        if _is_ready(x):
            _looks[1] = LONGEST
            return
    _looks[1] = min(_looks[1], limit) / 2


LONGEST = 50e-6  # seconds
_looks = [0, LONGEST]  # how many there were, and for how long the next is
_is_ready = ArrayImpl.is_ready


def no_numbers(x: Any) -> TypeError:
    """The error for reading random keys as numbers."""
    return TypeError(
        f"array: random keys are not numbers, which NumPy and Python could read; got {x.aval}. "
        "Hint: weft.random.key_data(keys) for the words that they are made of."
    )


def deleted_error(x: Any) -> DeletedError:
    """The error for using an array that is gone."""
    return DeletedError(
        f"array: must not be used after it was deleted or donated; got {x.aval}. Hint: use the "
        "result of the call it was donated to, or drop donate_argnums there."
    )


def check_alive(x: Any) -> None:
    """Raise where the buffer of an array is gone."""
    if x.is_deleted():
        raise deleted_error(x)


def require_alive(x: Any) -> Any:
    """`x`, which is returned unchanged; an error where it is an array that is gone."""
    if type(x) in ARRAYS and x.is_deleted():
        raise deleted_error(x)
    return x


def read_scalar(x: Any, op: str) -> Any:
    """The value of an array without axes, as a Python number."""
    view = host_view(x)
    if view.shape:
        raise ShapeError(f"{op}: needs an array without axes; got {x.aval}. Hint: {op[:-2]}(x[0]).")
    return view.item()


def array_repr(x: Any) -> str:
    """Format as NumPy does, with the dtype always; lines break where JAX breaks them."""
    if x.is_deleted():
        return f"Array(deleted, {x.aval})"
    if type(x) is KeyArray:
        return f"Array({x.shape}, dtype={x.dtype}) overlaying:\n{x.words}"
    weak = ", weak_type=True" if x.aval.weak_type else ""
    tail = f"dtype={x.dtype.name}{weak})"
    sharding = x._sharding
    if terms_of(sharding):
        return f"Array(shape={x.shape}, dtype={x.dtype.name}, sharding={sharding})"
    if not (x.is_fully_replicated and sharding.has_addressable_devices or x.is_fully_addressable):
        return f"Array(shape={x.shape}, {tail}"
    if x.size == 0:
        return f"Array([], shape={x.shape}, {tail}"
    body = np.array2string(host_view(x), separator=", ", prefix="Array(", suffix=",")
    width = len(body) - body.rfind("\n") + len(tail) + 2
    gap = " " if width <= np.get_printoptions()["linewidth"] else " " * len("Array(")
    return f"Array({body},{gap}{tail}"


# --- the class ------------------------------------------------------------------------------


class _ArrayMeta(type):
    def __instancecheck__(cls, x: object) -> bool:
        return type(x) is ArrayImpl or isinstance(x, Tracer) or type(x) is KeyArray

    def __subclasscheck__(cls, other: type) -> bool:
        known = other is ArrayImpl or other is KeyArray or issubclass(other, Tracer)
        return known or type.__subclasscheck__(cls, other)

    def __getattr__(cls, name: str) -> Any:
        return getattr(ArrayImpl, name)

    def __dir__(cls) -> list[str]:
        return dir(ArrayImpl)


class Array(HasAval, Members, metaclass=_ArrayMeta):
    """An array of weft, on one device or on several.

    `isinstance(x, weft.Array)` holds for arrays and for traced values. The class is not called:
    arrays come from `jnp.array`, `jnp.zeros` and the other functions. Arrays are immutable:
    `x.at[i].set(v)` returns a changed copy. Operators and methods follow NumPy's `ndarray`.

    Attributes:
      shape: the size of each axis, a tuple of ints.
      dtype: the NumPy dtype of the elements.
      ndim: the number of axes.
      size: the number of elements.
      sharding: the devices that hold the parts.
      at: writes, as in `x.at[i].add(v)`, which return new arrays.

    >>> x = jnp.arange(6.0).reshape(2, 3)
    >>> isinstance(x, weft.Array), x.shape, x.sum()
    (True, (2, 3), Array(15., dtype=float32))
    """

    __array_priority__ = 100  # NumPy arrays leave binary operators to us

    is_deleted: Callable[[], bool]
    _copy_single_device_array_to_host_async: Callable[[], None]
    _arrays: list
    _committed: bool
    _sharding: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Array: must be made by a function; got a call. Hint: jnp.array(...).")

    # -- its type

    @property
    def __numpy_dtype__(self) -> np.dtype:
        return self.aval.dtype

    # -- its devices

    @property
    def sharding(self) -> Any:
        """Return the part of the array that each device holds."""
        return self._sharding

    @property
    def committed(self) -> bool:
        """Return True if the array is bound to its device, and so are results computed from it."""
        return self._committed

    @property
    def device(self) -> Any:
        """The device that holds the array; its sharding where several do."""
        sharding = self._sharding
        return sharding.device if type(sharding) is SingleDeviceSharding else sharding

    def devices(self) -> set:
        """The devices that hold a part of the array."""
        return self._sharding.device_set

    @property
    def is_fully_addressable(self) -> bool:
        """Return True if this process can reach all of the array."""
        return self._sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Return True if every device of the array holds all of it."""
        return self._sharding.is_fully_replicated

    @property
    def addressable_shards(self) -> list[shards.Shard]:
        """The parts of the array on this process's devices."""
        check_alive(self)
        return shards.shards_of(self)

    @property
    def global_shards(self) -> list[shards.Shard]:
        """The parts of the array on all devices. Parts in other processes have no data."""
        check_alive(self)
        return shards.shards_of(self, everywhere=True)

    def addressable_data(self, index: int = 0) -> Any:
        """The part of the array on this process's device number `index`."""
        return self.addressable_shards[index].data

    # -- its content on the host

    def copy_to_host_async(self) -> None:
        """Start copying the content to the host; reading it then waits less."""
        check_alive(self)
        for part in [self] if self._sharding.num_devices == 1 else self._arrays:
            part._copy_single_device_array_to_host_async()

    def item(self, *args: int) -> bool | int | float | complex:
        """One element as a Python number: the only one, or the one at an index."""
        return host_view(self).item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return host_view(self).tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """The elements as bytes."""
        return host_view(self).tobytes(order)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(host_view(self), dtype, copy=copy)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        check_alive(self)
        self._on_one_device("__dlpack__")
        elsewhere = dl_device is not None and tuple(dl_device) != self.__dlpack_device__()
        if elsewhere and (tuple(dl_device or ()) != (1, 0) or copy is False):
            raise BufferError(
                f"__dlpack__: dl_device must be the array's or the CPU; got {dl_device}. "
                "Hint: weft.device_put(x, device) first."
            )
        if copy or elsewhere:
            return np.array(host_view(self)).__dlpack__(max_version=max_version)
        return _jax.buffer_to_dlpack_managed_tensor(self, stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        kinds = {"cpu": 1, "cuda": 2, "gpu": 2, "rocm": 10}
        self._on_one_device("__dlpack_device__")
        device = self._sharding._device_assignment[0]
        if device.platform not in kinds:
            raise DtypeError(f"__dlpack_device__: needs a CPU or GPU array; got {device.platform}.")
        # a host has one CPU, however many devices jaxlib makes of it
        number = 0 if device.platform == "cpu" else device.local_hardware_id or 0
        return kinds[device.platform], number

    def _on_one_device(self, op: str) -> None:
        if type(self) is KeyArray:
            raise no_numbers(self)
        if self._sharding.num_devices > 1:
            raise BufferError(
                f"{op}: must be of an array on one device; got {self.aval} over "
                f"{self._sharding.num_devices} devices. Hint: x.addressable_data(0) for one part, "
                "weft.device_put(x, weft.devices()[0]) for all."
            )

    def __reduce__(self) -> tuple:
        return array_from_pickle, (np.array(host_view(self)), self.weak_type)

    # -- as Python sees it

    def __bool__(self) -> bool:
        view = host_view(self)
        if view.size != 1:
            hint = "x.size > 0" if view.size == 0 else "x.any() or x.all()"
            raise ShapeError(
                f"bool(): needs an array of one element; got {self.aval}. Hint: {hint}."
            )
        return bool(view.reshape(())[()])

    def __int__(self) -> int:
        return int(read_scalar(self, "int()"))

    def __float__(self) -> float:
        return float(read_scalar(self, "float()"))

    def __complex__(self) -> complex:
        return complex(read_scalar(self, "complex()"))

    def __index__(self) -> int:
        if not dtypes.is_integer(self.dtype) or self.ndim:
            raise TypeError(f"index(): needs an integer array without axes; got {self.aval}.")
        return int(host_view(self))

    def __iter__(self) -> Iterator[Array]:
        if not self.aval.shape:
            raise ShapeError(f"iter(): needs an array with an axis; got {self.aval}.")
        return (self[i] for i in range(self.aval.shape[0]))

    __hash__ = None  # type: ignore[assignment]  # as `==` compares elements

    __repr__ = array_repr

    def __str__(self) -> str:
        here = not terms_of(self._sharding) and (
            self.is_fully_addressable or self.is_fully_replicated
        )
        return str(host_view(self)) if here and type(self) is not KeyArray else array_repr(self)

    def __format__(self, spec: str) -> str:
        if type(self) is KeyArray and not spec:
            return array_repr(self)
        return format(host_view(self), spec)


def keys_from_host(aval: ShapedArray, words: np.ndarray) -> Any:
    """The array of random keys that are made of these words."""
    return KeyArray(aval, put(words))


class KeyArray(HasAval):
    """An array of a dtype that C++ does not know: its type, and the array of the words it is of.

    The members of `Array` and of numpy/methods.py are attached, as to the class of C++.
    """

    __slots__ = ("__weakref__", "aval", "words")

    is_deleted: Callable[[], bool]

    def __init__(self, aval: ShapedArray, words: Any):
        self.aval = aval
        self.words = words

    @property
    def _sharding(self) -> Any:
        sharding = self.words._sharding
        spec = getattr(sharding, "spec", ())
        if len(spec) <= self.aval.ndim:
            return sharding
        return sharding.with_spec(PartitionSpec(*spec[: self.aval.ndim]))

    @property
    def _committed(self) -> bool:
        return self.words._committed

    @property
    def addressable_shards(self) -> list[shards.Shard]:
        """The parts of the array on this process's devices."""
        return [*map(self._shard, self.words.addressable_shards)]

    @property
    def global_shards(self) -> list[shards.Shard]:
        """The parts of the array on all devices. Parts in other processes have no data."""
        return [*map(self._shard, self.words.global_shards)]

    def _shard(self, shard: shards.Shard) -> shards.Shard:
        """A part of the words as a part of the array."""
        index, words = shard.index[:-1], shard.data
        if words is not None:
            words = KeyArray(self.aval.update(shape=words.shape[:-1]), words)
        return shards.Shard(shard.device, index, shard.replica_id, words)

    def copy_to_host_async(self) -> None:
        """Start copying the words to the host."""
        self.words.copy_to_host_async()

    def __reduce__(self) -> tuple:
        return keys_from_host, (self.aval, np.array(host_view(self.words)))


# The classes of concrete arrays.
ARRAYS: tuple[Any, ...] = (ArrayImpl, KeyArray)


def _guard_deleted(name: str, doc: str) -> Callable[..., Any]:
    """A method of jaxlib's class that, for a deleted array, would end the process."""
    method = getattr(ArrayImpl, name)

    def call(self: Any) -> Any:
        check_alive(self)
        if name == "block_until_ready":
            look_for(self)
        return method(self)

    call.__name__, call.__doc__ = name, doc
    call.__qualname__ = f"Array.{name}"
    return call


def _of_words(name: str) -> Callable[..., Any]:
    """A method of `KeyArray` that does what the method of this name does of the words."""

    def call(self: Any) -> Any:
        out = getattr(self.words, name)()
        if type(out) is not ArrayImpl:
            return out
        return self if out is self.words else KeyArray(self.aval, out)

    call.__name__, call.__doc__ = name, getattr(ArrayImpl, name).__doc__
    call.__qualname__ = f"Array.{name}"
    return call


_ENGINE_METHODS = {
    "block_until_ready": "Wait until the array is computed; returns it.",
    "clone": "The same buffer as another object.",
    "is_ready": "Whether the array is computed.",
    "on_device_size_in_bytes": "The memory that the array takes on its device.",
    "platform": "The name of the platform that holds the array.",
    "unsafe_buffer_pointer": "The address of the buffer, good for as long as the array lives.",
}


def _attach() -> None:
    """Give the C++ class and the class of random keys the members of `Array`."""
    left = ("__new__", "__dict__", "__weakref__", "__module__", "__annotations__", "__slots__")
    for name, member in {**vars(HasAval), **vars(Array)}.items():
        if name not in left:
            setattr(ArrayImpl, name, member)
            if name not in vars(KeyArray):
                setattr(KeyArray, name, member)
    for name, doc in _ENGINE_METHODS.items():
        setattr(ArrayImpl, name, _guard_deleted(name, doc))
    for name in (*_ENGINE_METHODS, "delete", "is_deleted"):
        setattr(KeyArray, name, _of_words(name))


_attach()
hide_members(KeyArray, "words")
LazyMember(lambda: display.values.array_html, "_repr_html_", ARRAYS)
register_call_node(KeyArray, lambda x: ((x.words,), x.aval), lambda aval, xs: KeyArray(aval, *xs))
Array.__module__ = "weft"
