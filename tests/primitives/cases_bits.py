"""Rows for primitives/bits.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.primitives.cases import INTS, Arg, Case
from weft.primitives import bits

SHAPE = (2, 3)
FLAT = "jvp transpose second"  # nothing to differentiate
TWO = [((0, 3), (0, 3)), ((), ()), ((), SHAPE), (SHAPE, ())]
ANY_INT = dict(dtypes=INTS + " i16 u16 i64 u64", also=TWO, skip=FLAT)


def wide(x: Any, y: Any) -> Any:
    """The upper half of a product, by Python's integers."""
    high = lambda a, b: (int(a) * int(b)) >> (8 * x.dtype.itemsize)
    return np.vectorize(high, otypes=[x.dtype])(x, y)


def leading_zeros(x: Any) -> Any:
    width = 8 * x.dtype.itemsize
    mask = (1 << width) - 1
    count = lambda a: width - (int(a) & mask).bit_length()
    return np.vectorize(count, otypes=[x.dtype])(x)


def bits_set(x: Any) -> Any:
    mask = (1 << 8 * x.dtype.itemsize) - 1
    return np.vectorize(lambda a: (int(a) & mask).bit_count(), otypes=[x.dtype])(x)


def shifted_right(x: Any, y: Any) -> Any:
    """Zeros come in from above, whatever the sign."""
    unsigned = x.view(f"u{x.dtype.itemsize}")
    return (unsigned >> y.view(unsigned.dtype)).astype(unsigned.dtype).view(x.dtype)


def bitcast(old: Any, new: Any, shape: tuple) -> Case:
    new = np.dtype(new)
    return Case(
        bits.bitcast_convert_type_p,
        [Arg(shape, -100, 100, dtype=old)],
        # the function is given doubles, which hold the float32 values
        lambda x: np.ascontiguousarray(x.astype(old)).view(new).reshape(target(shape, old, new)),
        dict(new_dtype=new),
        dtypes="i32" if np.dtype(old).kind == "i" else "f32",
        out_dtype=new,
        weak=None,
        skip=FLAT,
        label=f"{np.dtype(old).name} to {new.name}",
    )


def target(shape: tuple, old: Any, new: np.dtype) -> tuple:
    before, after = np.dtype(old).itemsize, new.itemsize
    if before == after:
        return shape
    return (*shape, before // after) if before > after else shape[:-1]


CASES = [
    Case(bits.shift_left_p, [Arg(SHAPE), Arg(SHAPE, 0, 6)], np.left_shift, **ANY_INT),
    Case(
        bits.shift_right_arithmetic_p,
        [Arg(SHAPE, -100, 100), Arg(SHAPE, 0, 6)],
        np.right_shift,
        **ANY_INT,
    ),
    Case(
        bits.shift_right_logical_p,
        [Arg(SHAPE, -100, 100), Arg(SHAPE, 0, 6)],
        shifted_right,
        **ANY_INT,
    ),
    Case(
        bits.population_count_p, [Arg(SHAPE, -100, 100)], bits_set, dtypes=INTS + " i64", skip=FLAT
    ),
    Case(bits.clz_p, [Arg(SHAPE, -100, 100)], leading_zeros, dtypes=INTS + " i64", skip=FLAT),
    Case(
        bits.mulhi_p,
        [Arg(SHAPE, -100, 100), Arg(SHAPE, 50, 100)],
        wide,
        dtypes=INTS + " i64 u64",
        skip=FLAT,
    ),
    Case(
        bits.nextafter_p,
        [SHAPE, SHAPE],
        lambda x, y: np.nextafter(x.astype(np.float32), y.astype(np.float32)),
        dtypes="f32",
        tol=0,
        skip=FLAT,  # nobody has written its derivative
    ),
    bitcast(np.float32, np.int32, (2, 3)),
    bitcast(np.int32, np.float32, (2, 3)),
    bitcast(np.float32, np.uint8, (2, 3)),
    bitcast(np.int16, np.int32, (3, 2)),
    bitcast(np.int32, np.int32, (2, 3)),
]
