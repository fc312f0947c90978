"""The types of C that hold values of a dtype, and numbers written in C.

A value is stored in one type and computed in another: a 16-bit float is stored as its bits, and
computed as a float that is rounded after each operation.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes


class Kind(NamedTuple):
    """The representation of a dtype in C.

    Attributes:
      dtype: the dtype.
      name: a short name, a part of the names of functions.
      stored: the type of an element of an array.
      computed: the type of a variable.
      letter: "f" float, "i" signed, "u" unsigned, "b" bool, "c" complex.
      bits: the width of a stored element.
    """

    dtype: np.dtype
    name: str
    stored: str
    computed: str
    letter: str
    bits: int

    @property
    def is_half(self) -> bool:
        """Return True for 16-bit floats."""
        return self.letter == "f" and self.bits == 16

    @property
    def wide(self) -> str:
        """The unsigned C type for sums and products of integers. Its arithmetic wraps."""
        return "uint64_t" if self.bits == 64 else "uint32_t"

    @property
    def unsigned(self) -> str:
        """The unsigned integer type of the same width."""
        return f"uint{self.bits}_t"

    @property
    def by_value(self) -> bool:
        """Return True if a scalar argument is passed by value."""
        return self.letter != "c" and not self.is_half


def list_kinds() -> dict[np.dtype, Kind]:
    """Return the kinds by dtype."""
    rows = [
        ("bool", "b", "bool", "bool", "b", 8),
        ("float32", "f32", "float", "float", "f", 32),
        ("float64", "f64", "double", "double", "f", 64),
        ("bfloat16", "bf16", "uint16_t", "float", "f", 16),
        ("float16", "f16", "uint16_t", "float", "f", 16),
        ("complex64", "c64", "float complex", "float complex", "c", 64),
        ("complex128", "c128", "double complex", "double complex", "c", 128),
    ]
    for bits in (8, 16, 32, 64):
        rows.append((f"int{bits}", f"i{bits}", *[f"int{bits}_t"] * 2, "i", bits))
        rows.append((f"uint{bits}", f"u{bits}", *[f"uint{bits}_t"] * 2, "u", bits))
    return {(d := np.dtype(name)): Kind(d, *rest) for name, *rest in rows}


KINDS = list_kinds()
CTYPES = {
    "b": ctypes.c_bool, "f32": ctypes.c_float, "f64": ctypes.c_double, "i8": ctypes.c_int8,
    "i16": ctypes.c_int16, "i32": ctypes.c_int32, "i64": ctypes.c_int64, "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64,
}  # fmt: skip
PARTS = {"c64": KINDS[np.dtype(np.float32)], "c128": KINDS[np.dtype(np.float64)]}
FULL_DIGITS = {"float": np.float32, "double": np.float64}


def has_kind(dtype: np.dtype) -> bool:
    """Return True if C can hold values of a dtype."""
    return dtype in KINDS


def write_float(x: Any, ctype: str) -> str:
    """Return a real number in the notation of C, for "float" or "double"."""
    x = FULL_DIGITS[ctype](x)
    if math.isnan(x):
        return "NAN" if ctype == "float" else "(double)NAN"
    if math.isinf(x):
        text = "INFINITY" if ctype == "float" else "HUGE_VAL"
        return text if x > 0 else f"(-{text})"
    text = np.format_float_scientific(x, unique=True, trim="0")
    if 1e-4 <= abs(float(x)) < 1e9 or x == 0:
        text = np.format_float_positional(x, unique=True, trim="0")
    text += "f" * (ctype == "float")
    return f"({text})" if text.startswith("-") else text


def write_integer(x: int, kind: Kind) -> str:
    """Return an integer in the notation of C."""
    if kind.bits == 64:
        if x == -(1 << 63):
            return f"(-INT64_C({(1 << 63) - 1}) - 1)"
        text = f"{'U' * (kind.letter == 'u')}INT64_C({abs(x)})"
        return f"(-{text})" if x < 0 else text
    if x == -(1 << 31):
        return f"(-{(1 << 31) - 1} - 1)"
    text = f"{abs(x)}{'u' * (kind.letter == 'u' and kind.bits == 32)}"
    return f"(-{text})" if x < 0 else text


def write_number(x: Any, kind: Kind) -> str:
    """Return a number in the notation of C, of the type that variables of a kind have."""
    if kind.letter == "b":
        return "true" if x else "false"
    if kind.letter in "iu":
        return write_integer(int(dtypes.cast_on_host(x, kind.dtype)), kind)
    x = dtypes.cast_on_host(x, kind.dtype)
    if kind.letter == "c":
        part = PARTS[kind.name].computed
        return f"weft_{kind.name}({write_float(x.real, part)}, {write_float(x.imag, part)})"
    return write_float(x, kind.computed)


def list_elements(x: np.ndarray, kind: Kind) -> list[str]:
    """Return the elements of an array as initializers of an array of stored values."""
    flat = np.ascontiguousarray(dtypes.cast_on_host(x, kind.dtype)).reshape(-1)
    if kind.letter == "c":
        part = PARTS[kind.name]
        return [write_float(v, part.computed) for v in flat.view(part.dtype)]
    if kind.is_half:
        return [f"{int(v)}u" for v in flat.view(np.uint16)]
    return [write_number(v, kind) for v in flat]
