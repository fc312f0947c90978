"""Calls of kernels in C++ without XLA: call frames of its foreign function interface, by ctypes.

A call takes microseconds, since nothing is compiled. Each operand and each result has its own
memory of exactly its size, so the sanitizers detect every access beyond.
"""

import ctypes
import math
from collections.abc import Mapping, Sequence
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_void_p
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.cpu import kernels

DTYPES = dict(  # numbers of XLA's dtypes
    bool=1, i8=2, i16=3, i32=4, i64=5, u8=6, u16=7, u32=8, u64=9, f16=10, f32=11, f64=12, c64=15,
    bf16=16, c128=18, f8_e5m2=19, i4=21, u2=27,
)  # fmt: skip
PACKED = {"i4", "u2"}  # XLA packs several elements into a byte
ARRAY, SCALAR, STRING = 1, 3, 4
EXECUTE = 3
THREADS = 3


def structure(*fields: tuple[str, Any]) -> type[ctypes.Structure]:
    """Return the type of a structure of the interface, which begins with its size."""
    first = [("struct_size", c_size_t), ("extension_start", c_void_p)]
    return type("Structure", (ctypes.Structure,), {"_fields_": [*first, *fields]})


def plain(*fields: tuple[str, Any]) -> type[ctypes.Structure]:
    return type("Plain", (ctypes.Structure,), {"_fields_": fields})


DIMS = POINTER(c_int64)
BUFFER = structure(("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", DIMS))
BUFFERS = structure(("size", c_int64), ("types", POINTER(c_int)), ("items", POINTER(c_void_p)))
TEXT = plain(("ptr", c_char_p), ("len", c_size_t))
NUMBER = plain(("dtype", c_int), ("value", c_void_p))
NUMBERS = plain(("dtype", c_int), ("size", c_size_t), ("data", c_void_p))
ATTRIBUTES = structure(
    ("size", c_int64),
    ("types", POINTER(c_int)),
    ("names", POINTER(c_void_p)),
    ("items", POINTER(c_void_p)),
)
ERROR = structure(("message", c_char_p), ("code", c_int))
TASK = structure(("ctx", c_void_p), ("task", ctypes.CFUNCTYPE(None, c_void_p)), ("data", c_void_p))
COUNT = structure(("ctx", c_void_p), ("count", POINTER(c_int64)))
VERSION = structure(("major", c_int), ("minor", c_int))
FUNCTION = ctypes.CFUNCTYPE(c_void_p, c_void_p)
FUNCTIONS = """
error_create error_message error_destroy register stream type_register context state_set state_get
allocate free schedule num_threads
"""
API = structure(
    ("version", VERSION), ("internal", c_void_p), *((n, FUNCTION) for n in FUNCTIONS.split())
)
FRAME = structure(
    ("api", POINTER(API)),
    ("ctx", c_void_p),
    ("stage", c_int),
    ("args", BUFFERS),
    ("rets", BUFFERS),
    ("attrs", ATTRIBUTES),
    ("future", c_void_p),
)


class Buffer(NamedTuple):
    """An operand or a result: its dtype by its short name, its shape, and the bytes it holds."""

    dtype: str
    shape: tuple[int, ...]
    data: np.ndarray

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(np.int8) if name in PACKED else dtypes.from_short_name(name)


def make_buffer(dtype: str, shape: Sequence[int], value: np.ndarray | None = None) -> Buffer:
    """Return a buffer that holds elements in their order, or bytes that stand for no result."""
    data = np.full(math.prod(shape) * numpy_dtype(dtype).itemsize, 0xA5, np.uint8)
    if value is not None:
        data[:] = value.view(np.uint8)
    return Buffer(dtype, tuple(shape), data)


class Machine:
    """The functions that handlers call, and the memory of the call that is being made."""

    def __init__(self) -> None:
        self.error = ""
        self.kept: list = []
        made = {
            "error_create": FUNCTION(self.create_error),
            "schedule": FUNCTION(self.schedule),
            "num_threads": FUNCTION(self.count_threads),
        }
        self.api = API(struct_size=ctypes.sizeof(API), **made)

    def create_error(self, args: int) -> int:
        self.error = ERROR.from_address(args).message.decode("utf-8", "replace")
        return 1

    def schedule(self, args: int) -> None:
        task = TASK.from_address(args)
        task.task(task.data)

    def count_threads(self, args: int) -> None:
        COUNT.from_address(args).count[0] = THREADS

    def keep(self, value: Any) -> int:
        """Return the address of a value, which stays while the call is made."""
        self.kept.append(value)
        return ctypes.addressof(value)

    def write_buffers(self, buffers: Sequence[Buffer]) -> Any:
        found = []
        for buffer in buffers:
            dims = (c_int64 * len(buffer.shape))(*buffer.shape)
            self.keep(dims)
            data = buffer.data.ctypes.data if buffer.data.size else None
            given = BUFFER(ctypes.sizeof(BUFFER), None, DTYPES[buffer.dtype], data, len(dims), dims)
            found.append(self.keep(given))
        count, items = len(found), (c_void_p * len(found))(*found)
        return BUFFERS(ctypes.sizeof(BUFFERS), None, count, (c_int * count)(*[1] * count), items)

    def write_attribute(self, value: Any) -> tuple[int, int]:
        """Return the number of an attribute's type, and where it is."""
        if isinstance(value, str):
            text = value.encode()
            return STRING, self.keep(TEXT(text, len(text)))
        array = np.array(value)  # a copy of its own
        self.kept.append(array)
        dtype = DTYPES[dtypes.short_name(array.dtype)]
        if array.ndim:
            return ARRAY, self.keep(NUMBERS(dtype, array.size, array.ctypes.data))
        return SCALAR, self.keep(NUMBER(dtype, array.ctypes.data))

    def write_attributes(self, attributes: Mapping[str, Any]) -> Any:
        names, count = sorted(attributes), len(attributes)
        texts = [self.keep(TEXT(n.encode(), len(n.encode()))) for n in names]
        kinds, items = (
            zip(*[self.write_attribute(attributes[n]) for n in names]) if names else ((), ())
        )
        addresses = (c_void_p * count)(*texts), (c_void_p * count)(*items)
        return ATTRIBUTES(
            ctypes.sizeof(ATTRIBUTES), None, count, (c_int * count)(*kinds), *addresses
        )

    def call(
        self,
        handler: Any,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Any],
    ) -> str:
        """Call a handler, which writes the results; return its error, or an empty string."""
        self.error = ""
        given = self.write_buffers(operands), self.write_buffers(results)
        sizes = ctypes.sizeof(FRAME), None, ctypes.pointer(self.api), None, EXECUTE
        frame = FRAME(*sizes, *given, self.write_attributes(attributes), None)
        failed = handler(ctypes.byref(frame))
        self.kept.clear()
        assert bool(failed) == bool(self.error)
        return self.error


def load_handlers() -> dict[str, Any]:
    """Return the handlers by name; none where the kernels are not built."""
    if kernels.load_kernels():
        return {}
    library = ctypes.CDLL(str(min(kernels.FOLDER.glob("kernels.*"))))
    handlers = {name: getattr(library, name) for name in kernels.HANDLERS}
    for handler in handlers.values():
        handler.restype = c_void_p
    return handlers
