"""The dtypes of tensors in ONNX, and the dtypes that operators are computed in.

An operator is computed in the dtype of its operands if onnxruntime has a kernel for it, otherwise
in a wider dtype that gives the same results.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from weft import dtypes

F16, F32, F64 = (np.dtype(t) for t in (np.float16, np.float32, np.float64))
BF16 = np.dtype(ml_dtypes.bfloat16)
BOOL, I32, I64 = np.dtype(np.bool_), np.dtype(np.int32), np.dtype(np.int64)
U8, U16, U32, U64 = (np.dtype(f"uint{8 * n}") for n in (1, 2, 4, 8))
I8, I16 = np.dtype(np.int8), np.dtype(np.int16)

KINDS = frozenset((F16, BF16, F32, F64, BOOL, I8, I16, I32, I64, U8, U16, U32, U64))

_HALF = {F16: F32, BF16: F32}
_SHORT = {I16: I32, U16: I32}
_SUMS = {**_HALF, **_SHORT, I8: I32, U8: I32, U32: I64, U64: I64, BOOL: I32}
_POWERS = {**_HALF, **_SHORT, I8: I32, U8: I32, U32: I64, U64: I64}

# The dtype that an operator is computed in, by the dtype of its operands. Sums and products of
# unsigned integers have the same bits as sums and products of signed integers.
WIDE: dict[str, dict[np.dtype, np.dtype]] = {
    "Max": {**_HALF, **_SHORT},
    "Min": {**_HALF, **_SHORT},
    "Where": {**_HALF, **_SHORT, BOOL: U8, U64: I64},
    "Neg": {**_HALF, U8: I8, U16: I16, U32: I32, U64: I64},
    "Pow": _POWERS,
    "ReduceSum": _SUMS, "ReduceProd": _SUMS, "CumSum": _SUMS, "MatMul": _SUMS, "Einsum": _SUMS,
    "ReduceMax": {**_HALF, **_SHORT, U32: I64},
    "ReduceMin": {**_HALF, **_SHORT, U32: I64},
    "ArgMax": {**_HALF, **_SHORT, U32: I64, BOOL: U8},
    "ArgMin": {**_HALF, **_SHORT, U32: I64, BOOL: U8},
    "TopK": {**_HALF, U16: I32, U32: I64, BOOL: U8},
    "Pad": {**_HALF, **_SHORT},
    "Range": {**_HALF, I8: I32, U8: I32, U16: I32, U32: I64, U64: I64, BOOL: I32},
    "Expand": {BF16: F32},
    "ScatterElements": _HALF,
}  # fmt: skip


def wide_dtype(operator: str, dtype: np.dtype) -> np.dtype:
    """Return the dtype that an operator is computed in for operands of a dtype."""
    return WIDE.get(operator, _HALF).get(dtype, dtype)


def has_kind(dtype: np.dtype) -> bool:
    """Return True if tensors of ONNX can have this dtype, and operators compute with it."""
    return dtype in KINDS


def unsigned_dtype(dtype: np.dtype) -> np.dtype:
    """Return the unsigned integer dtype of the same width."""
    return np.dtype(f"uint{8 * dtype.itemsize}")


def is_unsigned(dtype: np.dtype) -> bool:
    """Return True if a dtype is of unsigned integers."""
    return dtypes.is_integer(dtype) and not dtypes.is_signed(dtype)
