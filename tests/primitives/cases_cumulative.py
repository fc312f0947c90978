"""Rows for primitives/cumulative.py. Lengths, ties and a fault of XLA: test_cumulative.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.primitives.cases import FLOATS, INTS, NUMBERS, Arg, Case
from weft.primitives import cumulative as cum

REALS = FLOATS + " " + INTS


def along(prim: Any, ufunc: Any, shape: Any, axis: int, reverse: bool, **more: Any) -> Case:
    """A row for a running reduction."""

    def reference(x: np.ndarray) -> np.ndarray:
        x = np.flip(x, axis) if reverse else x
        out = ufunc.accumulate(x, axis, dtype=x.dtype) if x.size else x
        return np.flip(out, axis) if reverse else out

    direction = "back" if reverse else "forth"
    return Case(
        prim,
        [shape if isinstance(shape, Arg) else Arg(shape)],
        reference,
        {"axis": axis, "reverse": reverse},
        label=more.pop("label", f"{shape} axis {axis} {direction}"),
        **{"tol": 16, **more},
    )


CASES = [
    along(cum.cumsum_p, np.add, (5, 3), 0, False, dtypes=NUMBERS, also=[((1, 2),), ((0, 3),)]),
    along(cum.cumsum_p, np.add, (2, 7, 3), 1, True, dtypes="f32 c64 i32"),
    along(cum.cumsum_p, np.add, (2, 300), 1, False, dtypes="f32 bf16", tol=300),
    along(cum.cumsum_p, np.add, (1, 303), 1, True, dtypes="f32", tol=300),
    along(cum.cumprod_p, np.multiply, (5, 3), 0, False, dtypes=NUMBERS),
    along(cum.cumprod_p, np.multiply, (2, 6), 1, True, dtypes="f32 c64"),
    along(
        cum.cumprod_p, np.multiply, Arg((6,), values=[2, 0, 3, 0, -1, 2]), 0, False, label="zeros"
    ),
    along(cum.cummax_p, np.maximum, (5, 3), 0, False, dtypes=REALS),
    along(cum.cummax_p, np.maximum, (2, 8), 1, True),
    along(cum.cummin_p, np.minimum, (5, 3), 0, True, dtypes=REALS),
    along(cum.cummin_p, np.minimum, (20, 9), 1, False),
    along(cum.cumlogsumexp_p, np.logaddexp, (5, 3), 0, False, dtypes=FLOATS),
    along(cum.cumlogsumexp_p, np.logaddexp, (18, 4), 1, True),
    Case(cum.logaddexp_p, [(5, 3), (5, 3)], np.logaddexp, dtypes=FLOATS),
]
