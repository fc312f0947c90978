"""The names of `jax._src.dtypes`: which dtype a value has, and which it becomes."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft import dtypes
from weft.compat.typing import DType
from weft.core.aval import typeof
from weft.dtypes import (
    canonicalize_dtype,
    check_user_dtype,
    default_complex,
    default_float,
    default_int,
    dtype_and_weak,
    inexact_dtype,
    result_type,
    short_name,
)
from weft.dtypes import complex_dtype as to_complex_dtype
from weft.util import list_public

__all__ = [
    "DType", "ExtendedDType", "check_and_canonicalize_user_dtype", "check_user_dtype_supported",
    "default_complex_dtype", "default_float_dtype", "default_int_dtype", "default_uint_dtype",
    "dtype", "is_weakly_typed", "jax_dtype", "lattice_result_type", "safe_to_cast",
    "scalar_type_to_dtype", "short_dtype_name", "supports_inf", "to_complex_dtype",
    "to_floating_dtype", "to_inexact_dtype", "to_numeric_dtype",
]  # fmt: skip
__dir__ = list_public(__name__)

default_complex_dtype, default_float_dtype = default_complex, default_float
default_int_dtype, short_dtype_name, to_inexact_dtype = default_int, short_name, inexact_dtype


class ExtendedDType:
    """A dtype with elements that are stored as elements of another dtype, such as random keys."""


def default_uint_dtype() -> np.dtype:
    """Return the dtype of unsigned integers that are asked for without a size."""
    return canonicalize_dtype(np.uint64)


def dtype(x: Any, *, canonicalize: bool = False) -> np.dtype:
    """Return the dtype of an array, a number, or a type of numbers."""
    if isinstance(x, type):
        found = np.dtype(x)
    else:
        found = getattr(x, "dtype", None) or dtypes.python_scalar_dtype(x)
    return canonicalize_dtype(found, allow_extended_dtype=True) if canonicalize else found


def is_weakly_typed(x: Any) -> bool:
    """Return True if the dtype of a value is weak."""
    return typeof(x).weak_type


def jax_dtype(obj: Any, *, align: bool = False, copy: bool = False) -> np.dtype:
    """Return a dtype in its canonical form: without enable_x64, of at most 32 bits."""
    return canonicalize_dtype(dtypes.default_float() if obj is None else obj)


def check_and_canonicalize_user_dtype(dtype: Any, fun_name: str = "dtype") -> np.dtype:
    """Return the canonical form of a user's dtype, with a warning if it differs."""
    return check_user_dtype(dtype, fun_name)


def check_user_dtype_supported(dtype: Any, fun_name: str = "dtype") -> None:
    """Warn of a dtype that needs enable_x64; raise for other objects."""
    check_user_dtype(dtype, fun_name)


def lattice_result_type(*args: Any) -> tuple[np.dtype, bool]:
    """Return the dtype that values promote to, and whether it is weak."""
    return result_type(*args, return_weak_type_flag=True)


def safe_to_cast(input_dtype_or_value: Any, output_dtype_or_value: Any) -> bool:
    """Return True if promotion of the two gives the second's dtype."""
    output = dtype_and_weak(output_dtype_or_value)[0]
    return result_type(input_dtype_or_value, output_dtype_or_value) == output


def scalar_type_to_dtype(typ: type, value: Any = None) -> np.dtype:
    """Return the dtype of the numbers of a Python type."""
    return dtypes.python_scalar_dtype(typ() if value is None else value)


def supports_inf(dtype: Any) -> bool:
    """Return True if a dtype has infinities."""
    return bool(np.isinf(np.asarray(np.inf).astype(dtype)))


def to_floating_dtype(dtype: Any) -> np.dtype:
    """Return the real floating dtype that holds a dtype's real parts."""
    return dtypes.real_dtype(inexact_dtype(np.dtype(dtype)))


def to_numeric_dtype(dtype: Any) -> np.dtype:
    """Return a dtype of numbers: an integer one for bools."""
    return np.dtype(np.int32) if np.dtype(dtype) == np.bool_ else np.dtype(dtype)
