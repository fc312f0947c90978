"""Making arrays: of values, of constants, and of numbers at regular steps.

Small constants made eagerly are written by NumPy and handed over, which compiles nothing. Grids and
triangles are in grids.py.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import HOST_TYPES, ShapedArray, is_masked, not_array_error, typeof
from weft.core.source import trim_traceback
from weft.core.trace import Tracer, is_eager
from weft.errors import ConcretizationTypeError, DtypeError, ShapeError
from weft.lax.values import put_like, put_on_device
from weft.mesh.typed import resolve_sharding
from weft.numpy.promotion import (
    NUMBERS,
    as_array,
    as_array_beside,
    as_operand,
    axis_of,
    broadcast_operands,
    check_int_range,
    promote_operands,
    shape_of,
)
from weft.primitives import elementwise as ops
from weft.primitives import layout, slicing, transcendental
from weft.primitives.families import check_integer
from weft.primitives.layout import broadcast_in_dim, literal
from weft.run.operation import operation
from weft.util import SymbolicSize, is_below, max_size, name_function
from weft.xla.array import ARRAYS, ArrayImpl, array_from_host, host_from_dlpack, put, require_alive
from weft.xla.typing import Array, ArrayLike, DeviceLike, DTypeLike, Shape, ShardingLike

MAX_AXES = 64  # as in NumPy
ALIGNMENT = 64  # bytes; XLA:CPU copies arrays with a smaller alignment

# Up to this many elements a constant is written by the host; beyond, on the device.
SMALL = 1 << 14
MAX_PARTS = 2**15  # of `linspace` of integers: the square fits 32 bits


def is_written_by_host(shape: Sequence[int]) -> bool:
    """Return True if a constant of this shape is made by NumPy: now, and small."""
    # of sizes above SMALL, 0 among them, NumPy may refuse the product
    small = is_eager() and is_below(math.prod(shape), SMALL + 1)
    return small and max(shape, default=0) <= SMALL


def choose_dtype(dtype: Any, default: Any, op: str) -> np.dtype:
    """A dtype argument, checked, or the default."""
    return default() if dtype is None else dtypes.check_user_dtype(dtype, op)


# --- of values ------------------------------------------------------------------------------


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Make an array of a number, of nested lists, or of anything that NumPy can read.

    It converts data for computing. The result never shares memory that can be written to. Python
    numbers and 64-bit NumPy arrays become 32-bit unless enable_x64 is on. A single Python number
    gives a weakly typed array, whose dtype yields to the dtype of other operands; a list does not.
    The result is differentiable in the arrays and traced values that lists hold.

    Args:
      object: a number, an array, nested lists or tuples of them with equal lengths, or an object
        with `__jax_array__`, `__array__`, `__dlpack__` or the buffer protocol.
      dtype: the dtype of the result. None, the default, is the common dtype of the elements, and
        the default float dtype for empty lists.
      copy: True, the default, copies an operand that is an array already. False returns it.
      order: "K", "A", "C" or None, which all mean the same, because arrays have no strides.
      ndmin: the least number of axes, an int. Axes of size 1 are added in front. The default is 0.
      device: a Device or a Sharding to put the result on. None, the default, leaves an array where
        it is, and puts other data on the default device.
      out_sharding: how the result is split over explicit axes of a mesh: a spec over the mesh in
        scope, or a NamedSharding. Without it, all devices of a mesh in scope hold the whole result.

    Returns:
      an array with the shape of the data.

    Raises:
      ShapeError: if the lists are ragged: lists side by side have different lengths.
      DtypeError: if an element is not a number, as None or a text, or for a masked array.
      OverflowError: if a Python integer does not fit the dtype.
      NotImplementedError: if `order` is "F".

    >>> jnp.array([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    >>> x = jnp.array([1.0, 2.0])
    >>> jnp.array([x, 2 * x], dtype=jnp.float16)
    Array([[1., 2.],
           [2., 4.]], dtype=float16)
    >>> jnp.array(2.0).weak_type
    True
    """
    if order not in ("K", "A", "C", None):
        raise NotImplementedError(
            f"array: order must be 'K', 'A' or 'C', for arrays have no strides; got {order!r}."
        )
    if dtype is not None:
        dtype = dtypes.check_user_dtype(dtype, "array")
    x = parse_value(object, dtype)
    if dtype is not None and (x.dtype != dtype or x.aval.weak_type):
        x = ops.convert(x, dtype)
    elif copy and x is object:
        x = layout.copy(x)
    if ndmin and check_integer("array", "ndmin", ndmin, most=MAX_AXES) > x.ndim:
        dims = range(ndmin - x.ndim, ndmin)
        x = broadcast_in_dim(x, (1,) * (ndmin - x.ndim) + x.shape, dims)
    return put_on_device(x, device, out_sharding, "array")


def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Make an array of any data, without a copy if the data are an array of the right dtype.

    It is for functions that take numbers, lists and arrays alike. The conversion is the one that
    `array` makes.

    Args:
      a: a number, an array, nested lists of them, or any other object that `array` reads.
      dtype: the dtype of the result. None, the default, is the common dtype of the elements.
      order: "K", "A", "C" or None, which all mean the same, because arrays have no strides.
      copy: True always copies. None, the default, and False return an operand of the right dtype.
      device: a Device or a Sharding to put the result on. None, the default, leaves an array where
        it is, and puts other data on the default device.
      out_sharding: how the result is split over explicit axes of a mesh: a spec over the mesh in
        scope, or a NamedSharding. Without it, all devices of a mesh in scope hold the whole result.

    Returns:
      an array with the shape of the data.

    Raises:
      ShapeError: if the lists are ragged.
      DtypeError: if an element is not a number.
      OverflowError: if a Python integer does not fit the dtype.

    >>> x = jnp.asarray([1.0, 2.0])
    >>> x
    Array([1., 2.], dtype=float32)
    >>> jnp.asarray(x) is x
    True
    """
    if type(a) is ArrayImpl and dtype is None and not copy and device is out_sharding is None:
        return require_alive(a)
    try:
        return array(a, dtype, bool(copy), order, device=device, out_sharding=out_sharding)
    except Exception as error:
        trim_traceback(error)
        raise


def asarray_beside(values: Any, like: Any) -> Any:
    """Return `asarray(values)` of values that are put into `like`.

    Integers that the default dtype cannot hold get the dtype of `like`.
    """
    try:
        return asarray(values)
    except OverflowError:
        return asarray(values, like.dtype)


def parse_value(x: Any, dtype: np.dtype | None) -> Any:
    """Whatever `array` takes as an Array or a tracer; in `dtype` where it costs nothing."""
    if type(x) in ARRAYS or isinstance(x, Tracer):
        return require_alive(x)
    if hasattr(x, "__jax_array__"):
        return parse_value(x.__jax_array__(), dtype)
    if type(x) in HOST_TYPES or isinstance(x, int | float | complex):
        return put(x if dtype is None else convert_on_host(x, dtype))
    if isinstance(x, list | tuple):
        return parse_list(x, dtype)
    if is_masked(x):
        typeof(x, "array")  # raises
    if hasattr(x, "__dlpack__") and not isinstance(x, np.ndarray):
        return from_dlpack(x, copy=True)
    if x is None or (isinstance(x, str | bytes) and dtype is None):
        raise not_array_error("array", x)
    if not hasattr(x, "__array__") and not isinstance(x, str | bytes):
        with contextlib.suppress(TypeError):
            x = memoryview(x)
    return put(check_numbers(np.asarray(x), x, dtype))


def convert_on_host(x: Any, dtype: np.dtype) -> np.ndarray:
    """A NumPy array or a number in `dtype`: a Python integer that does not fit is refused."""
    if isinstance(x, np.ndarray | np.generic):
        if x.dtype.kind in "SU":
            return read_texts(x, dtype)
        if not dtypes.valid_dtype(x.dtype):
            raise not_array_error("array", x)
        return dtypes.cast_on_host(np.asarray(x), dtype)
    return read_numbers(x, dtype)


def read_numbers(x: Any, dtype: np.dtype) -> np.ndarray:
    """Python's numbers, in lists or not, as a NumPy array of `dtype`."""
    try:
        return dtypes.cast_on_host(x, dtype)
    except OverflowError:
        hint = (
            dtypes.hint_wide(*np.ravel(np.array(x, object)))
            if dtype == dtypes.default_int()
            else ""
        )
        raise OverflowError(f"array: integers must fit {dtype}; got {x!r:.60}.{hint}") from None
    except (ValueError, TypeError) as error:
        if isinstance(x, float | complex) or isinstance(error, TypeError):
            raise type(error)(f"array: numbers must fit {dtype}; got {x!r:.60}.") from None
        raise ShapeError(f"array: elements of a list must have one shape; got {x!r:.60}.") from None


def read_texts(x: Any, dtype: np.dtype) -> np.ndarray:
    """Read a NumPy array of texts as numbers of `dtype`."""
    try:
        return x.astype(dtype if dtype.kind != "V" else np.float64).astype(dtype)
    except (ValueError, OverflowError) as error:
        raise type(error)(f"array: texts must be numbers of {dtype}; got {x!r:.60}.") from None


def check_numbers(host: np.ndarray, x: Any, dtype: np.dtype | None) -> np.ndarray:
    """A NumPy array made of x, if its elements are numbers."""
    if dtype is not None and host.dtype.kind in "SU":
        return read_texts(host, dtype)
    if not dtypes.valid_dtype(host.dtype):
        raise DtypeError(
            f"array: elements must be numbers; got {x!r:.60} of type {type(x).__name__}."
        )
    return host if dtype is None else dtypes.cast_on_host(host, dtype)


def parse_list(x: Sequence, dtype: np.dtype | None) -> Any:
    """Nested lists: NumPy reads them unless there are arrays in them, which are stacked."""
    types: dict[Any, Any] = {}
    collect_types(x, types)
    if any(issubclass(t, (*ARRAYS, Tracer)) or hasattr(t, "__jax_array__") for t in types):
        return stack_nested(x, find_list_dtype(types) if dtype is None else dtype)
    for kind in types:
        if kind is type(None) or (issubclass(kind, str | bytes) and dtype is None):
            raise DtypeError(
                f"array: elements must be numbers; got a {kind.__name__} in {x!r:.60}."
            )
    if not types:
        return put(np.asarray(x, dtype or dtypes.default_float()))
    if dtype is None:
        dtype = find_list_dtype(types)
    if types.keys() <= NUMBERS:
        return put(read_numbers(x, dtype))
    return put(check_numbers(np.asarray(x), x, dtype))


def collect_types(x: Any, types: dict[Any, Any]) -> None:
    """Gather an example of each type and dtype among the leaves of nested lists."""
    for item in x:
        kind = type(item)
        if kind is list or kind is tuple:
            collect_types(item, types)
        elif kind in NUMBERS:
            types[kind] = item
        else:
            if is_masked(item):
                typeof(item, "array")  # raises
            types.setdefault(kind, item)
            dtype = getattr(item, "dtype", None)
            if dtype is not None and types[kind].dtype != dtype:
                types[kind] = np.empty(0, dtypes.promote_types(types[kind].dtype, dtype))


def find_list_dtype(types: dict[Any, Any]) -> np.dtype:
    """The dtype of an array of elements of these types."""
    found = []
    for kind, example in types.items():
        if kind in NUMBERS or hasattr(example, "dtype"):
            found.append(example)
        elif hasattr(example, "__jax_array__"):
            found.append(example.__jax_array__())
        else:
            found.append(np.asarray(example))
    return dtypes.canonicalize(dtypes.result_type(*found))


@operation(static=("dtype",))
def stack_nested(x: Any, dtype: np.dtype) -> Any:
    """Nested lists with arrays in them as one array."""
    if not isinstance(x, list | tuple):
        return ops.convert(as_operand("array", x), dtype)
    rows = [stack_nested(item, dtype) for item in x]
    if not rows:
        return layout.full((0,), 0, dtype)
    shape = typeof(rows[0]).shape
    for row in rows:
        if typeof(row).shape != shape:
            raise ShapeError(
                "array: the elements of a list must have equal shapes; "
                f"got {typeof(rows[0])}, {typeof(row)}."
            )
    dims = range(1, len(shape) + 1)
    return slicing.concatenate([broadcast_in_dim(r, (1, *shape), dims) for r in rows], 0)


@operation(arrays=1)
def copy(a: ArrayLike, order: str | None = None) -> Array:
    """Copy an array into memory of its own.

    Arrays do not change, so that a copy is needed only where one of two equal arrays is given away,
    for example donated to a compiled function.

    Args:
      a: an array or scalar of any shape and dtype.
      order: "K", "A", "C" or None, which all mean the same, because arrays have no strides.

    Returns:
      an array with the shape and dtype of `a`.

    Raises:
      DtypeError: if `a` is a list or not numeric.

    >>> x = jnp.arange(3.0)
    >>> jnp.copy(x), jnp.copy(x) is x
    (Array([0., 1., 2.], dtype=float32), False)
    """
    return array(as_operand("copy", a), copy=True, order=order)


def from_dlpack(x: Any, /, *, device: DeviceLike = None, copy: bool | None = None) -> Array:
    """Return an array with the elements of an array of another library, by way of DLPack.

    The elements are copied, so that writing to them does not change the array. With `copy=False`
    they are shared. Their memory must then be on the host, contiguous and aligned to 64 bytes, and
    of a dtype that is not converted. It must not be written to.

    Args:
      x: an object with `__dlpack__`: an array of NumPy, for example.
      device: a Device or a Sharding to put the array on. None, the default, is the default device.
      copy: False to share the elements. None, the default, and True copy them.

    Returns:
      an array with the shape of `x`, and its dtype; 64-bit dtypes become 32-bit unless enable_x64
      is on.

    Raises:
      ValueError: if `copy` is False and the elements cannot be shared.
      DtypeError: if `x` has no `__dlpack__`, or its elements are not numbers.

    >>> jnp.from_dlpack(np.arange(3, dtype=np.float32))
    Array([0., 1., 2.], dtype=float32)
    """
    if type(x) in ARRAYS or isinstance(x, Tracer):
        return array(x, copy=bool(copy), device=device)
    if not hasattr(x, "__dlpack__"):
        raise DtypeError(f"from_dlpack: needs an object with __dlpack__; got {x!r:.60}.")
    try:
        host = np.from_dlpack(x)
    except (BufferError, RuntimeError) as error:
        try:  # it may be a dtype that NumPy does not know, as bfloat16
            host = host_from_dlpack(x)
        except Exception:
            raise DtypeError(f"from_dlpack: {str(error).rstrip('.')}.") from None
    host = check_numbers(host, x, None)
    if copy is not False:
        return put_on_device(put(host), device)
    obstacle = find_obstacle(host)
    if obstacle:
        raise ValueError(
            f"from_dlpack: memory must be contiguous, aligned to {ALIGNMENT} bytes and of a dtype "
            f"that is not converted to be shared; got {obstacle}. Hint: copy=None."
        )
    return put_on_device(array_from_host(host, False), device)


def find_obstacle(host: np.ndarray) -> str:
    """Return why an array cannot take over the memory of a NumPy array, or "" if it can."""
    if dtypes.canonicalize(host.dtype) != host.dtype:
        return f"{host.dtype}, which needs enable_x64"
    if not host.flags.c_contiguous:
        return f"strides {host.strides}"
    rest = host.ctypes.data % ALIGNMENT
    return f"an address {rest} bytes after a multiple" if rest else ""


# --- of constants ---------------------------------------------------------------------------


def is_truncated(value: Any, dtype: np.dtype | None) -> bool:
    """Return True if a Python float becomes an integer, which truncates it as `astype` does."""
    return type(value) is float and dtype is not None and dtypes.is_integer(dtype)


@operation(static=("shape", "dtype"))
def fill_array(shape: tuple[int, ...], value: Any, dtype: np.dtype | None) -> Any:
    """A new array of one value, an array that broadcasts to the shape, in `dtype` or its own."""
    if type(value) in NUMBERS and not is_truncated(value, dtype):
        return layout.full(shape, value, dtype)
    x = as_operand("full", value)
    of = typeof(x)
    if dtypes.is_complex(of.dtype) and of.weak_type and not dtypes.is_complex(dtype or of.dtype):
        raise DtypeError(f"full: the fill value must be real for {dtype}; got {value!r}.")
    x = x if dtype is None else ops.convert(x, dtype)
    ndim = typeof(x).ndim
    ShapedArray(shape, typeof(x).dtype)  # an error of its own where it is too large
    try:
        return broadcast_in_dim(as_array(x), shape, range(len(shape) - ndim, len(shape)))
    except ShapeError:
        raise ShapeError(
            f"full: the fill value must broadcast to the shape; got {typeof(x)}, {shape}."
        ) from None


def write_constant(op: str, shape: Any, value: Any, dtype: Any, out_sharding: Any = None) -> Any:
    """An array of zeros or ones; of zeros split so, which may be terms of a sum."""
    shape = shape_of(op, shape)
    if dtype == dtypes.float0:  # NumPy's, since jaxlib has no arrays of this dtype
        return np.zeros(shape, dtype)
    if out_sharding is not None and value == 0:
        sharding = resolve_sharding(op, out_sharding, len(shape))
        return layout.fill(shape, value, dtype, sharding)
    if out_sharding is not None or not isinstance(dtype, np.dtype):
        return layout.full(shape, value, dtype)
    fill = fill_on_host if is_written_by_host(shape) else fill_constant
    return fill(shape, value, dtype)


@operation(arrays=0)
def fill_on_host(shape: tuple[int, ...], value: int, dtype: np.dtype) -> Any:
    """An array of zeros or ones, by NumPy."""
    return array_from_host(np.full(shape, value, dtype), False)


@operation(static=("shape", "value", "dtype"), name="full")
def fill_constant(shape: tuple[int, ...], value: int, dtype: np.dtype) -> Any:
    """An array of zeros or ones."""
    return layout.fill(shape, value, dtype)


def make_constant(name: str, value: int, doc: str) -> Callable:
    """`zeros`, `ones` or `empty`."""

    def fun(
        shape: Shape,
        dtype: DTypeLike | None = None,
        *,
        device: DeviceLike = None,
        out_sharding: ShardingLike = None,
    ) -> Array:
        if isinstance(dtype, int) and not isinstance(dtype, bool):
            raise TypeError(
                f"{name}: a shape of several sizes must be one argument; got {shape!r} and "
                f"{dtype!r}. Hint: jnp.{name}(({shape!r}, {dtype!r}))."
            )
        dtype = dtypes.default_float() if dtype is None else dtypes.check_user_dtype(dtype, name)
        x = write_constant(name, shape, value, dtype, out_sharding if device is None else None)
        return put_on_device(x, device, out_sharding, name)

    return operation(name_function(fun, name, doc), arrays=0)


zeros = make_constant(
    "zeros",
    0,
    """Make an array of zeros.

    Under `jit`, `shape` and `dtype` must be static.

    Args:
      shape: the shape, an int or a sequence of ints, none of them negative. It is one argument:
        `jnp.zeros((2, 3))`.
      dtype: the dtype of the result. None, the default, is the default float dtype (float32, or
        float64 with enable_x64).
      device: a Device or a Sharding to put the result on. None, the default, is the default device.
      out_sharding: how the result is split over explicit axes of a mesh: a spec over the mesh in
        scope, or a NamedSharding. Without it, all devices of a mesh in scope hold the whole result.

    Returns:
      an array of the given shape and dtype.

    Raises:
      ShapeError: if a size is negative.
      TypeError: if a size is not an int, or the second size is given as `dtype`.
      DtypeError: if `dtype` is not a dtype of numbers.

    >>> jnp.zeros((2, 3))
    Array([[0., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    >>> jnp.zeros(3, dtype=int)
    Array([0, 0, 0], dtype=int32)
    """,
)
ones = make_constant(
    "ones",
    1,
    """Make an array of ones.

    Under `jit`, `shape` and `dtype` must be static.

    Args:
      shape: the shape, an int or a sequence of ints, none of them negative. It is one argument:
        `jnp.ones((2, 3))`.
      dtype: the dtype of the result. None, the default, is the default float dtype (float32, or
        float64 with enable_x64).
      device: a Device or a Sharding to put the result on. None, the default, is the default device.
      out_sharding: how the result is split over explicit axes of a mesh: a spec over the mesh in
        scope, or a NamedSharding. Without it, all devices of a mesh in scope hold the whole result.

    Returns:
      an array of the given shape and dtype.

    Raises:
      ShapeError: if a size is negative.
      TypeError: if a size is not an int, or the second size is given as `dtype`.
      DtypeError: if `dtype` is not a dtype of numbers.

    >>> jnp.ones(3)
    Array([1., 1., 1.], dtype=float32)
    >>> jnp.ones((1, 2), dtype=bool)
    Array([[ True,  True]], dtype=bool)
    """,
)
empty = make_constant(
    "empty",
    0,
    """Make an array of zeros, for programs that fill it later.

    In NumPy the elements are arbitrary. Here every array is written before it can be read, so that
    this function is `zeros` under another name. Under `jit`, `shape` and `dtype` must be static.

    Args:
      shape: the shape, an int or a sequence of ints, none of them negative. It is one argument:
        `jnp.empty((2, 3))`.
      dtype: the dtype of the result. None, the default, is the default float dtype (float32, or
        float64 with enable_x64).
      device: a Device or a Sharding to put the result on. None, the default, is the default device.
      out_sharding: how the result is split over explicit axes of a mesh: a spec over the mesh in
        scope, or a NamedSharding. Without it, all devices of a mesh in scope hold the whole result.

    Returns:
      an array of the given shape and dtype.

    Raises:
      ShapeError: if a size is negative.
      TypeError: if a size is not an int, or the second size is given as `dtype`.
      DtypeError: if `dtype` is not a dtype of numbers.

    >>> jnp.empty(2)
    Array([0., 0.], dtype=float32)
    """,
)


@operation(arrays=0)
def full(
    shape: Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Make an array of one value, or of an array that is broadcast to the shape.

    The result is differentiable in the value. A Python number without `dtype` gives a weakly typed
    array. Under `jit`, `shape` and `dtype` must be static; the value may be traced.

    Args:
      shape: the shape, an int or a sequence of ints, none of them negative.
      fill_value: a number, or an array that broadcasts to the shape.
      dtype: the dtype of the result. None, the default, is the dtype of the value. A float becomes
        an integer by truncation toward zero.
      device: a Device or a Sharding to put the result on. None, the default, is the default device.
      out_sharding: how the result is split over explicit axes of a mesh: a spec over the mesh in
        scope, or a NamedSharding. Without it, all devices of a mesh in scope hold the whole result.

    Returns:
      an array of the given shape.

    Raises:
      ShapeError: if a size is negative, or the value does not broadcast to the shape.
      TypeError or DtypeError: if the value is complex and `dtype` is real.
      OverflowError: if a Python integer does not fit the dtype.

    >>> jnp.full((2, 2), 7.5, dtype=jnp.float32)
    Array([[7.5, 7.5],
           [7.5, 7.5]], dtype=float32)
    >>> jnp.full((2, 3), jnp.arange(3))
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    shape = shape_of("full", shape)
    fill_value = as_operand("full", fill_value)
    dtype = None if dtype is None else dtypes.check_user_dtype(dtype, "full")
    if dtype is None and type(fill_value) is int and fill_value.bit_length() > 63:
        raise OverflowError(f"full: an integer must fit 64 bits; got {fill_value}.")
    by_host = type(fill_value) in NUMBERS and is_written_by_host(shape)
    if by_host and not is_truncated(fill_value, dtype):
        weak = dtype is None and type(fill_value) is not bool
        host = read_numbers(fill_value, dtype or dtypes.python_scalar_dtype(fill_value))
        x = array_from_host(np.full(shape, host), weak)
    else:
        x = fill_array(shape, fill_value, dtype)
    return put_on_device(x, device, out_sharding, "full", strong=True)


def find_shape_and_dtype(op: str, a: Any, dtype: Any, shape: Any) -> tuple[Any, Any, bool]:
    """Return the result of a `_like` function: shape, dtype, and whether that is weak."""
    if hasattr(a, "shape") and hasattr(a, "dtype") and not isinstance(a, np.ndarray):
        like_shape, like_dtype = a.shape, dtypes.canonicalize(a.dtype)
        weak = getattr(a, "weak_type", False)
    else:
        aval = typeof(as_operand(op, a))
        like_shape, like_dtype, weak = aval.shape, aval.dtype, aval.weak_type
    if dtype is not None:
        like_dtype, weak = dtypes.check_user_dtype(dtype, op), False
    return like_shape if shape is None else shape_of(op, shape), like_dtype, weak


def decides_alone(a: Any, dtype: Any, shape: Any, device: Any, out_sharding: Any) -> bool:
    """Return True if the type of `a` decides the result of a `_like` function, on any device."""
    alone = dtype is shape is device is out_sharding is None
    return alone and type(a) is ArrayImpl and not a._committed


@operation(arrays=0)
def fill_like(op: str, aval: ShapedArray, value: int | float) -> Any:
    """An array of this type, of one number."""
    dtype = dtypes.canonicalize(aval.dtype)
    if type(value) is int and 0 <= value <= 1:
        x = write_constant(op, aval.shape, value, dtype)
    else:
        x = fill_array(aval.shape, as_operand(op, value), dtype)
    return ops.convert(x, dtype, True) if aval.weak_type else x


def make_constant_like(name: str, value: int, doc: str) -> Callable:
    """`zeros_like` or `ones_like`."""

    def fun(
        a: ArrayLike,
        dtype: DTypeLike | None = None,
        shape: Shape | None = None,
        *,
        device: DeviceLike = None,
        out_sharding: ShardingLike = None,
    ) -> Array:
        if decides_alone(a, dtype, shape, device, out_sharding):
            return fill_like(name, a.aval, value)
        shape, dtype, weak = find_shape_and_dtype(name, a, dtype, shape)
        x = write_constant(name, shape, value, dtype)
        x = ops.convert(x, dtype, True) if weak else x
        return put_like(x, a, device, out_sharding, name)

    return name_function(fun, name, doc)


zeros_like = make_constant_like(
    "zeros_like",
    0,
    """Make an array of zeros with the shape and dtype of another array.

    No element of `a` is read, so that a shape and a dtype are enough: a `ShapeDtypeStruct`, for
    example. The result is weakly typed if `a` is and no `dtype` is given. Under `jit`, `shape` and
    `dtype` must be static.

    Args:
      a: an array, a number, or any object with a shape and a dtype.
      dtype: the dtype of the result. None, the default, is the dtype of `a`.
      shape: the shape of the result, an int or a sequence of ints. None, the default, is the shape
        of `a`.
      device: a Device or a Sharding to put the result on. None, the default, chooses it by `a`.
      out_sharding: how the result is split over explicit axes of a mesh: a spec over the mesh in
        scope, or a NamedSharding. Without it, all devices of a mesh in scope hold the whole result.

    Returns:
      an array with the shape and dtype of `a`, unless others are given.

    Raises:
      DtypeError: if `a` is a list or not numeric, or `dtype` is not a dtype of numbers.

    >>> jnp.zeros_like(jnp.arange(3))
    Array([0, 0, 0], dtype=int32)
    >>> jnp.zeros_like(weft.ShapeDtypeStruct((2,), jnp.float16))
    Array([0., 0.], dtype=float16)
    """,
)
ones_like = make_constant_like(
    "ones_like",
    1,
    """Make an array of ones with the shape and dtype of another array.

    No element of `a` is read, so that a shape and a dtype are enough: a `ShapeDtypeStruct`, for
    example. The result is weakly typed if `a` is and no `dtype` is given. Under `jit`, `shape` and
    `dtype` must be static.

    Args:
      a: an array, a number, or any object with a shape and a dtype.
      dtype: the dtype of the result. None, the default, is the dtype of `a`.
      shape: the shape of the result, an int or a sequence of ints. None, the default, is the shape
        of `a`.
      device: a Device or a Sharding to put the result on. None, the default, chooses it by `a`.
      out_sharding: how the result is split over explicit axes of a mesh: a spec over the mesh in
        scope, or a NamedSharding. Without it, all devices of a mesh in scope hold the whole result.

    Returns:
      an array with the shape and dtype of `a`, unless others are given.

    Raises:
      DtypeError: if `a` is a list or not numeric, or `dtype` is not a dtype of numbers.

    >>> jnp.ones_like(jnp.arange(3))
    Array([1, 1, 1], dtype=int32)
    >>> jnp.ones_like(jnp.arange(3), dtype=float, shape=(2,))
    Array([1., 1.], dtype=float32)
    """,
)


def empty_like(
    prototype: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Make an array of zeros with the shape and dtype of another array.

    In NumPy the elements are arbitrary. Here this function is `zeros_like` under another name. No
    element of `prototype` is read, so that a shape and a dtype are enough: a `ShapeDtypeStruct`,
    for example. The result is weakly typed if `prototype` is and no `dtype` is given. Under `jit`,
    `shape` and `dtype` must be static.

    Args:
      prototype: an array, a number, or any object with a shape and a dtype.
      dtype: the dtype of the result. None, the default, is the dtype of `prototype`.
      shape: the shape of the result, an int or a sequence of ints. None, the default, is the shape
        of `prototype`.
      device: a Device or a Sharding to put the result on. None, the default, chooses it by
        `prototype`.
      out_sharding: how the result is split over explicit axes of a mesh: a spec over the mesh in
        scope, or a NamedSharding. Without it, all devices of a mesh in scope hold the whole result.

    Returns:
      an array with the shape and dtype of `prototype`, unless others are given.

    Raises:
      DtypeError: if `prototype` is a list or not numeric, or `dtype` is not a dtype of numbers.

    >>> jnp.empty_like(jnp.arange(3))
    Array([0, 0, 0], dtype=int32)
    """
    return zeros_like(prototype, dtype, shape, device=device, out_sharding=out_sharding)


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Make an array of one value, with the shape and dtype of another array.

    The value is converted to the dtype; a float becomes an integer by truncation toward zero, as in
    NumPy. The result is differentiable in the value. No element of `a` is read, so that a shape and
    a dtype are enough: a `ShapeDtypeStruct`, for example. The result is weakly typed if `a` is and
    no `dtype` is given. Under `jit`, `shape` and `dtype` must be static.

    Args:
      a: an array, a number, or any object with a shape and a dtype.
      fill_value: a number, or an array that broadcasts to the shape.
      dtype: the dtype of the result. None, the default, is the dtype of `a`.
      shape: the shape of the result, an int or a sequence of ints. None, the default, is the shape
        of `a`.
      device: a Device or a Sharding to put the result on. None, the default, chooses it by `a`.
      out_sharding: how the result is split over explicit axes of a mesh: a spec over the mesh in
        scope, or a NamedSharding. Without it, all devices of a mesh in scope hold the whole result.

    Returns:
      an array with the shape and dtype of `a`, unless others are given.

    Raises:
      DtypeError: if `a` is a list or not numeric, or `dtype` is not a dtype of numbers.
      ShapeError: if the value does not broadcast to the shape.

    >>> jnp.full_like(jnp.arange(3), 7)
    Array([7, 7, 7], dtype=int32)
    >>> jnp.full_like(jnp.zeros((2, 2)), jnp.array([1.0, 2.0]))
    Array([[1., 2.],
           [1., 2.]], dtype=float32)
    """
    if type(fill_value) in (int, float) and decides_alone(a, dtype, shape, device, out_sharding):
        return fill_like("full_like", a.aval, fill_value)
    shape, dtype, weak = find_shape_and_dtype("full_like", a, dtype, shape)
    x = fill_array(shape, as_operand("full_like", fill_value), dtype)
    x = ops.convert(x, dtype, True) if weak and np.ndim(fill_value) == 0 else x
    # An array that is broadcast stays on its device.
    like = a if np.ndim(fill_value) == 0 else fill_value
    return put_like(x, like, device, out_sharding, "full_like")


# --- at regular steps -----------------------------------------------------------------------


def require_number(op: str, x: Any, what: str) -> Any:
    """A number that must be known now, as Python's or NumPy's."""
    if type(x) in NUMBERS or x is None or isinstance(x, SymbolicSize):
        return x
    if isinstance(x, Tracer):
        hint = "a number, or x.shape, is known when the program is written."
        x = x.concrete(ConcretizationTypeError, f"{op}: {what}", hint)
    if np.ndim(x) != 0:
        raise ShapeError(f"{op}: {what} must be a number; got {typeof(as_operand(op, x))}.")
    if hasattr(x, "dtype"):
        weak = getattr(x, "weak_type", False)
        return np.asarray(x)[()].item() if weak else np.asarray(x)[()]
    return check_integer(op, what, x)


@operation(arrays=0)
def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return numbers at equal steps in the half-open interval from `start` to `stop`.

    `arange(n)` counts from 0 to n - 1. For steps that are not integers, `linspace` is safer: by
    rounding, the length of the result may differ by one from the expected length. The values of the
    arguments decide the shape. For this reason they must be known when the program is traced; sizes
    such as `x.shape[0]` are.

    Args:
      start: a real number, the first element. If `stop` is None, it is the stop, and the first
        element is 0.
      stop: a real number, which the result does not contain. None, the default, takes it from
        `start`.
      step: a real number other than 0, the difference of neighbours; negative to count down. None,
        the default, is 1.
      dtype: the dtype of the result. None, the default, is the default integer dtype for integers
        and the common dtype of the arguments otherwise.
      device: a Device or a Sharding to put the result on. None, the default, is the default device.
      out_sharding: how the result is split over explicit axes of a mesh: a spec over the mesh in
        scope, or a NamedSharding. Without it, all devices of a mesh in scope hold the whole result.

    Returns:
      an array with one axis, of size `max(0, ceil((stop - start) / step))`.

    Raises:
      ZeroDivisionError: if `step` is 0.
      ValueError: if an argument is not finite.
      ShapeError: if an argument has axes.
      DtypeError: if an argument is complex, or the dtype is bool.
      OverflowError: if an element does not fit the default integer dtype.
      ConcretizationTypeError: if an argument is traced.

    >>> jnp.arange(4)
    Array([0, 1, 2, 3], dtype=int32)
    >>> jnp.arange(2, 10, 3)
    Array([2, 5, 8], dtype=int32)
    >>> jnp.arange(1, 0, -0.25)
    Array([1.  , 0.75, 0.5 , 0.25], dtype=float32)
    """
    start = require_number("arange", start, "stop" if stop is None else "start")
    stop = require_number("arange", stop, "stop")
    step = require_number("arange", step, "step")
    if start is None:
        raise TypeError("arange: must be given where to stop; got None. Hint: jnp.arange(3).")
    if isinstance(start, SymbolicSize) or isinstance(stop, SymbolicSize):
        return put_on_device(count_symbolic(start, stop, step, dtype), device, out_sharding)
    if stop is None:
        start, stop = type(start)(0), start
    given = [x for x in (start, stop, step) if x is not None]
    of_ints = {int}.issuperset(map(type, given))  # and so finite
    if not of_ints and any(isinstance(x, complex | np.complexfloating) for x in given):
        raise DtypeError(f"arange: arguments must be real; got {given}.")
    if dtype is None and of_ints:
        found = dtypes.default_int()
    elif dtype is None:
        found = dtypes.canonicalize(dtypes.result_type(*given))
    else:
        found = dtypes.check_user_dtype(dtype, "arange")
    if dtypes.is_bool(found):
        raise DtypeError("arange: must count in numbers; got dtype bool. Hint: dtype=int.")
    if step == 0:
        raise ZeroDivisionError("arange: step must not be 0; got 0.")
    if not of_ints and not all(map(math.isfinite, given)):
        raise ValueError(f"arange: arguments must be finite; got {given}.")
    size = max(0, math.ceil((stop - start) / (1 if step is None else step)))
    if size and dtype is None and of_ints:
        for x in (start, start + (size - 1) * (1 if step is None else step)):
            check_int_range(x, "arange")
    return put_on_device(count_up(size, start, step, found), device, out_sharding, "arange")


def count_symbolic(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    """Return `arange` of integers, some of which are symbolic sizes."""
    start, stop = (0, start) if stop is None else (start, stop)
    step = 1 if step is None else step
    given = [int(x) if isinstance(x, float) and x == x // 1 else x for x in (start, stop, step)]
    if not isinstance(given[2], int) or step == 0 or any(isinstance(x, float) for x in given):
        raise TypeError(
            "arange: the start and step of symbolic sizes must be integers, the step not 0; got "
            f"{start!r} and {step!r}."
        )
    of_floats = any(isinstance(x, float) for x in (start, stop, step))
    found = dtypes.default_float() if of_floats else dtypes.default_int()
    found = found if dtype is None else dtypes.check_user_dtype(dtype, "arange")
    start, stop, step = given
    size = max_size((stop - start + step - (1 if step > 0 else -1)) // step, 0)
    x = layout.broadcasted_iota(found, (size,), 0)
    x = x if step == 1 else ops.mul(x, literal(step, found))
    return x if start == 0 else ops.add(x, layout.literal_size(start, x))


def count_up(size: int, start: Any, step: Any, dtype: np.dtype) -> Any:
    """start + i * step for i below `size`."""
    if is_written_by_host((size,)) and dtype.kind in "iuf":
        host = np.arange(size, dtype=dtype)
        if step is not None or start != 0:
            with np.errstate(over="ignore", invalid="ignore"):
                host = host if step is None else np.asarray(step).astype(dtype) * host
                host = host + np.asarray(start).astype(dtype)
        return array_from_host(host, False)
    x = layout.broadcasted_iota(dtype, (size,), 0)
    if step is not None:
        x = ops.mul(literal(convert_to_python(step, dtype), dtype), x)
    return (
        x
        if start == 0 and step is None
        else ops.add(literal(convert_to_python(start, dtype), dtype), x)
    )


def convert_to_python(x: Any, dtype: np.dtype) -> Any:
    """A number as Python's, of the kind that `dtype` is of."""
    return dtypes.scalar_type_of(dtype)(x)


@operation(arrays=0)
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: DeviceLike = None,
) -> Array:
    """Return numbers at equal steps from one end to another.

    The first element is `start`, and the last is `stop`, exactly. If the ends are arrays, their
    elements are pairs of ends, each of them with its own numbers. The result is differentiable in
    the ends. Under `jit`, the ends may be traced; all other arguments must be static.

    Args:
      start: a number or an array of any shape: the first element.
      stop: a number or an array that broadcasts together with `start`: the end.
      num: the number of elements, an int of at least 0. The default is 50.
      endpoint: True, the default, makes `stop` the last element. False leaves it out: the steps are
        then as large as with `num + 1` elements.
      retstep: True returns the step as well. The default is False.
      dtype: the dtype of the result. None, the default, is the float or complex dtype of the
        computation. For an integer dtype the numbers are rounded down, as in NumPy.
      axis: the axis of the result along which the numbers are. The default, 0, is the first axis;
        it matters only if the ends have axes.
      device: a Device or a Sharding to put the result on. None, the default, is the default device.

    Returns:
      an array of float or complex dtype, unless `dtype` is given. Its shape is the common shape of
      the ends with an axis of size `num` at `axis`. With `retstep`, a tuple of it and the step,
      which is NaN if there are fewer than two elements.

    Raises:
      ShapeError: if `num` is negative, or `axis` is out of range.
      TracerIntegerConversionError: if `num` is traced.

    >>> jnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    >>> jnp.linspace(0, 1, 4, endpoint=False, retstep=True)
    (Array([0.  , 0.25, 0.5 , 0.75], dtype=float32), Array(0.25, dtype=float32))
    >>> jnp.linspace(jnp.array([0.0, 10.0]), 1.0, 3, axis=1)
    Array([[ 0. ,  0.5,  1. ],
           [10. ,  5.5,  1. ]], dtype=float32)
    """
    num = num if type(num) is int and num >= 0 else check_integer("linspace", "num", num, 0)
    axis = check_integer("linspace", "axis", axis)
    found = None if dtype is None else dtypes.check_user_dtype(dtype, "linspace")
    if found is not None and dtypes.is_integer(found):
        start, stop = map(read_whole, (start, stop))
    out = space_evenly(start, stop, num, bool(endpoint), bool(retstep), found, axis)
    return (put_on_device(out[0], device), out[1]) if retstep else put_on_device(out, device)


@operation(static=("num", "endpoint", "retstep", "dtype", "axis"), name="linspace")
def space_evenly(
    start: Any, stop: Any, num: int, endpoint: bool, retstep: bool, dtype: Any, axis: int
) -> Any:
    """`linspace`, and with `retstep` its step."""
    parts = num - 1 if endpoint else num
    whole = space_integers(start, stop, num, parts, dtype)
    start, stop = promote_ends("linspace", start, stop)
    computed = start.dtype
    if dtypes.is_short_float(computed):  # it may not hold all of the numbers
        start, stop = [ops.convert(x, np.dtype(np.float32)) for x in (start, stop)]
    step = ops.sub(stop, start)
    if isinstance(parts, SymbolicSize) or parts > 0:
        step = ops.div(step, layout.literal_size(parts, step))
    elif num == 0 or endpoint:
        step = layout.full((), float("nan"), start.dtype)
    out = interpolate_ends(start, stop, num, parts) if whole is None else whole
    result = computed if dtype is None else dtype
    if whole is None and dtypes.is_integer(result) and dtypes.is_float(computed):
        out = ops.floor(out)
    out = ops.convert(out, result)
    out = place_axis("linspace", out, axis)
    return (out, ops.convert(step, computed)) if retstep else out


def read_whole(x: Any) -> Any:
    """Return a Python float that is a whole number of 32 bits as an int; other values unchanged."""
    return int(x) if type(x) is float and x.is_integer() and abs(x) < 2**31 else x


def space_integers(start: Any, stop: Any, num: int, parts: Any, dtype: Any) -> Any:
    """Return `linspace` of integers in an integer dtype, exact; None if it is not of these.

    Element i is (stop * i + start * (parts - i)) // parts.
    """
    if dtype is None or not dtypes.is_integer(dtype) or type(parts) is not int:
        return None
    ends = [as_array_beside("linspace", x, np.empty((), dtype)) for x in (start, stop)]
    if not all(dtypes.is_integer(x.dtype) for x in ends) or not 0 < parts < MAX_PARTS:
        return None
    start, stop = broadcast_operands("linspace", *promote_operands("linspace", *ends, shaped=False))
    shape = start.shape or stop.shape
    narrow = dtypes.itemsize_bits(start.dtype) < 32
    wide = np.dtype(np.int32) if narrow else start.dtype
    out_shape = (num, *shape)
    i = layout.broadcasted_iota(wide, out_shape, 0)
    start, stop = [
        broadcast_in_dim(
            ops.convert(x, wide), out_shape, range(len(out_shape) - x.ndim, len(out_shape))
        )
        for x in (start, stop)
    ]
    return blend_integers(start, stop, i, parts)


def blend_integers(first: Any, last: Any, i: Any, parts: int) -> Any:
    """Return (last * i + first * (parts - i)) // parts of integers of one shape and dtype.

    `first` and `last` are divided first, so that nothing overflows.
    """
    divisor = layout.full(i.shape, parts, i.dtype)
    rest = ops.sub(divisor, i)
    total = left = layout.full(i.shape, 0, i.dtype)
    for end, share in ((last, i), (first, rest)):
        quotient, remainder = divide_down(end, divisor)
        total = ops.add(total, ops.mul(quotient, share))
        left = ops.add(left, ops.mul(remainder, share))
    return ops.add(total, ops.div(left, divisor))


def divide_down(x: Any, divisor: Any) -> tuple[Any, Any]:
    """Return quotients of integers by positive ones, rounded down, and the remainders."""
    quotient, remainder = ops.div(x, divisor), ops.rem(x, divisor)
    below = ops.lt(remainder, layout.full(x.shape, 0, x.dtype))
    borrow = ops.convert(below, x.dtype)
    return ops.sub(quotient, borrow), ops.add(remainder, ops.mul(borrow, divisor))


def promote_ends(op: str, start: Any, stop: Any) -> list:
    """Two ends as arrays of one inexact dtype and one shape."""
    ends = promote_operands(op, as_operand(op, start), as_operand(op, stop), inexact=True)
    start, stop = broadcast_operands(op, *map(as_array, ends))
    shape = start.shape or stop.shape
    return [
        broadcast_in_dim(ops.convert(x, start.dtype), shape, range(x.ndim)) for x in (start, stop)
    ]


def place_axis(op: str, x: Any, axis: int) -> Any:
    """x with its first axis at `axis`."""
    order = list(range(1, x.ndim))
    order.insert(axis_of(op, axis, x.ndim), 0)
    return layout.transpose(x, order)


def interpolate_ends(start: Any, stop: Any, num: int, parts: int) -> Any:
    """Return `num` numbers along a new first axis; `parts` steps lead from `start` to `stop`."""
    rest = range(1, start.ndim + 1)
    if num < 2:
        first = broadcast_in_dim(start, (1, *start.shape), rest)
        return slicing.slice_in_dim(first, 0, num)
    whole = (parts, *start.shape)
    real = dtypes.real_dtype(start.dtype)
    t = ops.div(layout.broadcasted_iota(real, (parts,), 0), literal(parts, real))
    t = ops.convert(t, start.dtype)
    t, u = (broadcast_in_dim(v, whole, (0,)) for v in (t, ops.sub(literal(1, start.dtype), t)))
    a, b = (broadcast_in_dim(v, whole, rest) for v in (start, stop))
    # start * (1-t) + stop * t is exact at the start; the end is put there unchanged
    out = ops.add(ops.mul(a, u), ops.mul(b, t))
    if parts == num:
        return out
    return slicing.concatenate([out, broadcast_in_dim(stop, (1, *stop.shape), rest)], 0)


@operation(arrays=0)
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Return numbers whose logarithms have equal steps, given the logarithms of the ends.

    The result is `base ** linspace(start, stop, num)`. `geomspace` takes the ends themselves. The
    result is differentiable in the ends. Under `jit`, the ends may be traced; all other arguments
    must be static.

    Args:
      start: a number or an array of any shape: the logarithm of the first element.
      stop: a number or an array that broadcasts together with `start`: the logarithm of the end.
      num: the number of elements, an int of at least 0. The default is 50.
      endpoint: True, the default, makes `stop` the last element. False leaves it out: the steps are
        then as large as with `num + 1` elements.
      base: the base of the logarithms, a number or an array that broadcasts against the result. The
        default is 10.
      dtype: the dtype of the result. None, the default, is the float or complex dtype of the
        computation.
      axis: the axis of the result along which the numbers are. The default, 0, is the first axis;
        it matters only if the ends have axes.

    Returns:
      an array of float or complex dtype, unless `dtype` is given. Its shape is the common shape of
      the ends with an axis of size `num` at `axis`.

    Raises:
      ShapeError: if `num` is negative, or `axis` is out of range.
      TracerIntegerConversionError: if `num` is traced.

    >>> jnp.logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    >>> jnp.logspace(0, 3, 4, base=2)
    Array([1., 2., 4., 8.], dtype=float32)
    """
    num, axis = check_integer("logspace", "num", num, 0), check_integer("logspace", "axis", axis)
    found = None if dtype is None else dtypes.check_user_dtype(dtype, "logspace")
    return space_logarithms(start, stop, base, num, bool(endpoint), found, axis)


@operation(static=("num", "endpoint", "dtype", "axis"), name="logspace")
def space_logarithms(
    start: Any, stop: Any, base: Any, num: int, endpoint: bool, dtype: Any, axis: int
) -> Any:
    """`logspace`."""
    x = space_evenly(start, stop, num, endpoint, False, None, axis)
    base, x = promote_operands("logspace", as_operand("logspace", base), x, inexact=True)
    out = transcendental.pow(base, x)
    return out if dtype is None else ops.convert(out, dtype)


@operation(arrays=0)
def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Return numbers in geometric progression: each is the same multiple of the one before.

    The elements are NaN where an end is 0; NumPy raises an error there. They are also NaN where
    real ends have different signs; NumPy keeps the ends there. `logspace` takes the logarithms of
    the ends. The result is differentiable in the ends. Under `jit`, the ends may be traced; all
    other arguments must be static.

    Args:
      start: a number or an array of any shape: the first element.
      stop: a number or an array that broadcasts together with `start`: the end.
      num: the number of elements, an int of at least 0. The default is 50.
      endpoint: True, the default, makes `stop` the last element. False leaves it out: the steps are
        then as large as with `num + 1` elements.
      dtype: the dtype of the result. None, the default, is the float or complex dtype of the
        computation. For an integer dtype the numbers are rounded to the nearest integer; NumPy
        truncates them.
      axis: the axis of the result along which the numbers are. The default, 0, is the first axis;
        it matters only if the ends have axes.

    Returns:
      an array of float or complex dtype, unless `dtype` is given. Its shape is the common shape of
      the ends with an axis of size `num` at `axis`.

    Raises:
      ShapeError: if `num` is negative, or `axis` is out of range.
      TracerIntegerConversionError: if `num` is traced.

    >>> jnp.geomspace(1, 100, 3)
    Array([  1.,  10., 100.], dtype=float32)
    >>> jnp.geomspace(-1, -8, 4, dtype=int)
    Array([-1, -2, -4, -8], dtype=int32)
    >>> jnp.geomspace(0, 8, 4)
    Array([nan, nan, nan, nan], dtype=float32)
    """
    num, axis = check_integer("geomspace", "num", num, 0), check_integer("geomspace", "axis", axis)
    found = None if dtype is None else dtypes.check_user_dtype(dtype, "geomspace")
    return space_ratios(start, stop, num, bool(endpoint), found, axis)


@operation(static=("num", "endpoint", "dtype", "axis"), name="geomspace")
def space_ratios(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    """`geomspace`: exp of equal steps between logarithms, times the sign of `start`."""
    start, stop = promote_ends("geomspace", start, stop)
    sign, nan = ops.sign(start), literal(float("nan"), start.dtype)
    low, high = (transcendental.log(ops.div(x, sign)) for x in (start, stop))
    high = ops.select(ops.eq(stop, literal(0, stop.dtype)), nan, high)
    both = ops.add(low, high)
    exists = ops.eq(both, both)
    out = transcendental.exp(space_evenly(low, high, num, endpoint, False, None, 0))
    rows = range(1, out.ndim)
    out = ops.mul(out, broadcast_in_dim(sign, out.shape, rows))
    if num > 1:  # the ends unchanged
        start, stop = (ops.select(exists, x, nan) for x in (start, stop))
        first, last = (broadcast_in_dim(x, (1, *x.shape), rows) for x in (start, stop))
        inner = slicing.slice_in_dim(out, 1, num - 1 if endpoint else num)
        out = slicing.concatenate([first, inner, last][: 3 if endpoint else 2], 0)
    if dtype is not None:
        out = ops.convert(ops.round(out, 1) if dtypes.is_integer(dtype) else out, dtype)
    return place_axis("geomspace", out, axis)
