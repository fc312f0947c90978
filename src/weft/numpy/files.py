"""Arrays in files, buffers and texts: `load`, `save`, `frombuffer` and the like."""

from __future__ import annotations

import contextlib
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from weft import dtypes
from weft.lax.values import put_on_device
from weft.numpy.creation import array
from weft.numpy.promotion import call_numpy
from weft.xla.array import put
from weft.xla.typing import Array, ArrayLike, DTypeLike

# What NumPy's reader raises for damaged bytes beside ValueError. A RuntimeError is of an archive
# that is encrypted, or compressed in an unknown way.
DAMAGES: tuple[type[Exception], ...] = (
    MemoryError, RuntimeError, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
if zipfile.lzma is not None:  # type: ignore[attr-defined]
    DAMAGES += (zipfile.lzma.LZMAError,)  # type: ignore[attr-defined]
# The types of ml_dtypes by name.
EXTENDED = {name: kind for name, kind in vars(ml_dtypes).items() if isinstance(kind, type)}


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """Make a vector of the bytes of a buffer. The bytes are copied.

    Args:
      buffer: an object with the buffer protocol, such as bytes.
      dtype: the dtype of the elements; float by default, which is float32 unless 64 bits are
        enabled.
      count: the number of elements to read; -1 (default) for all.
      offset: the number of bytes to skip; 0 by default.

    Returns:
      A vector of that dtype.

    Raises:
      ValueError: if the bytes are not a multiple of the size of an element.

    >>> jnp.frombuffer(b"\\x01\\x02\\x03", dtype=jnp.uint8, offset=1)
    Array([2, 3], dtype=uint8)
    """
    dtype = np.dtype(dtypes.check_user_dtype(dtype, "frombuffer"))
    host = call_numpy("frombuffer", np.frombuffer, buffer, dtype, count, offset)
    return put_on_device(put(host), None)


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Make a vector of the numbers that a text lists.

    Args:
      string: the text.
      dtype: the dtype of the elements; float by default, which is float32 unless 64 bits are
        enabled.
      count: the number of elements to read; -1 (default) for all.
      sep: the text between numbers, such as ",". It must not be empty.

    Returns:
      A vector of that dtype.

    Raises:
      ValueError: if something in the text is not a number, or `sep` is empty.

    >>> jnp.fromstring("1, 2, 3", dtype=int, sep=",")
    Array([1, 2, 3], dtype=int32)
    """
    dtype = np.dtype(dtypes.check_user_dtype(dtype, "fromstring"))
    host = call_numpy("fromstring", np.fromstring, string, dtype, count, sep=sep)
    return put_on_device(put(host), None)


def fromfile(*args: Any, **kwargs: Any) -> Array:
    """Raise an error: use `jnp.asarray(np.fromfile(...))` in place of this function.

    A function that reads a file is not pure: its result depends on more than its arguments.

    Args:
      args: ignored.
      kwargs: ignored.

    Returns:
      Nothing: it always raises.

    Raises:
      NotImplementedError: always.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     np.arange(3.0).tofile(file)
    ...     _ = file.seek(0)
    ...     print(jnp.asarray(np.fromfile(file)))
    [0. 1. 2.]
    """
    raise NotImplementedError(
        "fromfile: must be NumPy's, for functions here are pure. "
        "Hint: jnp.asarray(np.fromfile(...))."
    )


def fromiter(*args: Any, **kwargs: Any) -> Array:
    """Raise an error: use `jnp.asarray(np.fromiter(...))` in place of this function.

    A function that reads an iterator is not pure: a second call finds the iterator empty.

    Args:
      args: ignored.
      kwargs: ignored.

    Returns:
      Nothing: it always raises.

    Raises:
      NotImplementedError: always.

    >>> jnp.asarray(np.fromiter(range(3), int))
    Array([0, 1, 2], dtype=int32)
    """
    raise NotImplementedError(
        "fromiter: must be NumPy's, for functions here are pure. "
        "Hint: jnp.asarray(np.fromiter(...))."
    )


def save(file: Any, arr: ArrayLike, allow_pickle: bool = True) -> None:
    """Save an array in a .npy file, as `numpy.save` does.

    Args:
      file: a path (.npy is added if it is missing), or a file open for writing.
      arr: an array of any dtype and shape, those that NumPy lacks (bfloat16, float8) included.
      allow_pickle: as in `numpy.save`; arrays of numbers are never pickled.

    Returns:
      None.

    >>> import io
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.ones(2, jnp.bfloat16))
    >>> _ = file.seek(0)
    >>> jnp.load(file)
    Array([1, 1], dtype=bfloat16)
    """
    np.save(file, name_dtype(np.asanyarray(arr)), allow_pickle)


def savez(file: Any, *args: ArrayLike, allow_pickle: bool = True, **kwds: ArrayLike) -> None:
    """Save arrays in a .npz file, as `numpy.savez` does.

    Args:
      file: a path (.npz is added if it is missing), or a file open for writing.
      args: arrays, which are named arr_0, arr_1, ...
      allow_pickle: as in `numpy.savez`.
      kwds: arrays by their names.

    Returns:
      None.

    >>> import io
    >>> file = io.BytesIO()
    >>> jnp.savez(file, jnp.ones(2), b=jnp.zeros(3))
    >>> _ = file.seek(0)
    >>> sorted(jnp.load(file))
    ['arr_0', 'b']
    """
    arrays = [name_dtype(np.asanyarray(x)) for x in args]
    named = {name: name_dtype(np.asanyarray(x)) for name, x in kwds.items()}
    if not allow_pickle:  # a parameter since NumPy 2.0
        named["allow_pickle"] = False  # type: ignore[assignment]
    np.savez(file, *arrays, **named)


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the array in a .npy file, or a mapping of the NumPy arrays in a .npz file.

    Args:
      file: a path, or a file open for reading.
      args: positional arguments of `numpy.load`.
      kwargs: keywords of `numpy.load`.

    Returns:
      An array of the dtype and shape that were saved. For a .npz file, a mapping from names to
      NumPy arrays; each is read from the file when it is looked up.

    Raises:
      ValueError: if the bytes are damaged.
      EOFError: if no bytes are left in the file.

    >>> import io
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.arange(3))
    >>> _ = file.seek(0)
    >>> jnp.load(file)
    Array([0, 1, 2], dtype=int32)
    """
    with refuse_damage():
        out = np.load(file, *args, **kwargs)
    if isinstance(out, np.lib.npyio.NpzFile):
        out.__class__ = Archive
    return array(find_named_dtype(out)) if isinstance(out, np.ndarray) else out


class Archive(np.lib.npyio.NpzFile):
    """The arrays of a .npz file by name, with the dtypes that they had when they were saved."""

    def __getitem__(self, key: str) -> Any:
        with refuse_damage(EOFError):  # of an entry that ends early
            return find_named_dtype(super().__getitem__(key))


@contextlib.contextmanager
def refuse_damage(*more: type[Exception]) -> Iterator[None]:
    """Raise ValueError in place of what NumPy's reader raises for damaged bytes, or of `more`."""
    try:
        yield
    except (*DAMAGES, OSError, *more) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the system: without a number it is bzip2's
        raise ValueError(
            f"load: must be a file that save or savez wrote; got {type(error).__name__}: {error}."
        ) from error


def name_dtype(x: np.ndarray) -> np.ndarray:
    """Return an array in a dtype that a .npy file can describe.

    NumPy describes the dtypes of ml_dtypes only by their size. That is enough for bfloat16, and
    other programs read and write it in this way. Any other dtype is written as the only field of a
    record.
    """
    dtype = x.dtype
    if dtype.type is not EXTENDED.get(dtype.name) or dtype == dtypes.bfloat16:
        return x
    return x.view([(dtype.name, f"V{dtype.itemsize}")])


def find_named_dtype(x: Any) -> Any:
    """Return an array of a file in the dtype that `name_dtype` has described."""
    dtype = getattr(x, "dtype", None)
    if dtype == np.dtype("V2"):
        return x.view(dtypes.bfloat16)
    names = getattr(dtype, "names", None) or ("",)
    return x.view(EXTENDED[names[0]]) if len(names) == 1 and names[0] in EXTENDED else x
