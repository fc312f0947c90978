"""Rows for slicing.py. Functions and errors: test_slicing.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.primitives.cases import ALL, Case
from weft.primitives import slicing

EVERY = ALL + " f64 c128"


def np_pad(x: np.ndarray, value: Any, config: Any) -> np.ndarray:
    """Padding by placing each element, one axis at a time."""
    for axis, (low, high, interior) in enumerate(config):
        n = x.shape[axis]
        size = low + high + n + max(n - 1, 0) * interior
        out = np.full((*x.shape[:axis], size, *x.shape[axis + 1 :]), value, x.dtype)
        for i in range(n):
            at = low + i * (interior + 1)
            if 0 <= at < size:
                np.moveaxis(out, axis, 0)[at] = np.moveaxis(x, axis, 0)[i]
        x = out
    return x


def cut(label: str, shape: Any, starts: Any, limits: Any, strides: Any, **more: Any) -> Case:
    window = tuple(
        np.s_[a:b:s] for a, b, s in zip(starts, limits, strides or (1,) * len(shape), strict=True)
    )
    params = {"start_indices": starts, "limit_indices": limits, "strides": strides}
    return Case(slicing.slice_p, [shape], lambda x: x[window], params, label=label, **more)


def padded(label: str, shape: Any, *config: Any, **more: Any) -> Case:
    return Case(
        slicing.pad_p,
        [shape, ()],
        lambda x, v: np_pad(x, v, config),
        {"padding_config": config},
        label=label,
        **more,
    )


CASES = [
    cut("", (3, 4), (0, 1), (2, 4), None, dtypes=EVERY),
    cut("strided", (3, 7), (0, 1), (3, 6), (2, 3)),
    cut("whole", (3, 4), (0, 0), (3, 4), (1, 1)),
    cut("empty", (3, 4), (1, 4), (1, 4), (1, 2)),
    cut("scalar", (), (), (), None),
    padded("", (3, 4), (1, 2, 0), (0, 1, 0), dtypes=EVERY, also=[((0, 4), ()), ((3, 0), ())]),
    padded("interior", (3, 4), (1, 0, 2), (0, 3, 1), also=[((1, 0), ()), ((0, 1), ())]),
    padded("negative", (3, 4), (-1, 2, 0), (-2, -1, 0)),
    padded("negative after interior", (3, 4), (-2, -1, 2), (1, -3, 1)),
    padded("nothing", (3, 4), (0, 0, 0), (0, 0, 0)),
    padded("scalar", ()),
    Case(
        slicing.concatenate_p,
        [(3, 4), (3, 2), (3, 1)],
        lambda *xs: np.concatenate(xs, 1),
        {"dimension": 1},
        dtypes=EVERY,
        also=[((0, 4), (0, 2), (0, 1)), ((3, 0), (3, 2), (3, 0))],
    ),
    Case(slicing.concatenate_p, [(3, 4)], lambda x: x, {"dimension": 0}, label="one"),
    Case(
        slicing.split_p,
        [(3, 4)],
        lambda x: [x[:, :1], x[:, 1:1], x[:, 1:]],
        {"sizes": (1, 0, 3), "axis": 1},
        dtypes=EVERY,
        also=[((0, 4),)],
    ),
    Case(
        slicing.stack_p,
        [(3, 4), (3, 4)],
        lambda *xs: np.stack(xs, 1),
        {"axis": 1},
        dtypes=EVERY,
        also=[((0, 4), (0, 4))],
    ),
    Case(slicing.stack_p, [(), ()], lambda *xs: np.stack(xs), {"axis": 0}, label="scalars"),
    Case(
        slicing.unstack_p,
        [(3, 4)],
        lambda x: list(np.moveaxis(x, 1, 0)),
        {"axis": 1},
        dtypes=EVERY,
        also=[((0, 4),), ((3, 1),)],
    ),
    Case(
        slicing.tile_p,
        [(3, 4)],
        lambda x: np.tile(x, (2, 3)),
        {"reps": (2, 3)},
        dtypes=EVERY,
        also=[((0, 4),), ((1, 1),)],
    ),
    Case(slicing.tile_p, [(3, 4)], lambda x: x[:0], {"reps": (0, 1)}, label="to nothing"),
]
