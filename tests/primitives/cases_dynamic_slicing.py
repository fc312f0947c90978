"""Rows for dynamic_slicing.py. Functions and errors: test_dynamic_slicing.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.primitives.cases import ALL, Arg, Case
from weft.primitives import dynamic_slicing

EVERY = ALL + " f64 c128"
INDEX = Arg((), -3, 6, np.int32)  # reaches out on both sides


def placed(x: np.ndarray, sizes: Any, starts: Any) -> tuple:
    """The subscript of a window that is moved inside x."""
    ends = [n - m for n, m in zip(x.shape, sizes, strict=True)]
    starts = [min(max(int(i), 0), e) for i, e in zip(starts, ends, strict=True)]
    return tuple(np.s_[i : i + m] for i, m in zip(starts, sizes, strict=True))


def np_update(x: np.ndarray, update: np.ndarray, *starts: Any) -> np.ndarray:
    out = x.copy()
    out[placed(x, update.shape, starts)] = update
    return out


CASES = [
    Case(
        dynamic_slicing.dynamic_slice_p,
        [(3, 4), INDEX, INDEX],
        lambda x, *starts: x[placed(x, (2, 3), starts)],
        {"slice_sizes": (2, 3)},
        dtypes=EVERY,
    ),
    Case(
        dynamic_slicing.dynamic_slice_p,
        [(3, 4), INDEX, Arg((), 0, 3, np.int32)],
        lambda x, i, j: x[placed(x, (3, 1), (i, j))],
        {"slice_sizes": (3, 1)},
        label="whole axis",
    ),
    Case(dynamic_slicing.dynamic_slice_p, [()], lambda x: x, {"slice_sizes": ()}, label="scalar"),
    Case(
        dynamic_slicing.dynamic_update_slice_p,
        [(3, 4), (2, 3), INDEX, INDEX],
        np_update,
        dtypes=EVERY,
        also=[((3, 4), (0, 3), (), ()), ((3, 4), (3, 4), (), ()), ((0, 4), (0, 1), (), ())],
    ),
    Case(
        dynamic_slicing.dynamic_update_slice_p, [(), ()], lambda x, u: u, label="scalar", weak=False
    ),
]
