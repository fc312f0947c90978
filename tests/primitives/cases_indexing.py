"""Rows for primitives/indexing.py. Fill values, functions and errors: test_indexing.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.primitives.cases import ALL, Arg, Case
from weft.primitives import indexing
from weft.primitives.indexing import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)

CLIP, DROP = GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP
EVERY = ALL + " f64 c128"


def places(shape: Any, indices: np.ndarray, dims: Any, sizes: Any, mode: Any) -> list:
    """For each index vector: where it is in the indices, and its window of the operand, or None."""
    _, _, mapped, batching, index_batching = dims
    found = []
    for b in np.ndindex(indices.shape[:-1]):
        start = [0] * len(shape)
        for k, d in enumerate(mapped):
            start[d] = int(indices[b][k])
        for d, i in zip(batching, index_batching, strict=True):
            start[d] = b[i]
        ends = [n - m for n, m in zip(shape, sizes, strict=True)]
        if mode is CLIP:
            start = [min(max(i, 0), e) for i, e in zip(start, ends, strict=True)]
        inside = all(0 <= i <= e for i, e in zip(start, ends, strict=True))
        window = tuple(np.s_[i : i + m] for i, m in zip(start, sizes, strict=True))
        found.append((b, window if inside else None))
    return found


def at(b: tuple, windows: Any, rank: int) -> tuple:
    """The subscript, in a result or in updates, of the window at `b`."""
    batch = iter(b)
    return tuple(np.s_[:] if d in windows else next(batch) for d in range(rank))


def np_gather(x: np.ndarray, indices: np.ndarray, dims: Any, sizes: Any, mode: Any):
    rank = indices.ndim - 1 + len(dims.offset_dims)
    dropped = (*dims.collapsed_slice_dims, *dims.operand_batching_dims)
    kept = iter([n for d, n in enumerate(sizes) if d not in dropped])
    batch = iter(indices.shape[:-1])
    out = np.full([next(kept if d in dims.offset_dims else batch) for d in range(rank)], 0, x.dtype)
    for b, window in places(x.shape, indices, dims, sizes, mode):
        if window is not None:
            out[at(b, dims.offset_dims, rank)] = x[window].squeeze(dropped)
    return out


def np_scatter(
    combine: Callable, x: np.ndarray, indices: np.ndarray, updates: Any, dims: Any, mode: Any
):
    out = x.copy()
    dropped = (*dims.inserted_window_dims, *dims.operand_batching_dims)
    windows = iter([updates.shape[d] for d in dims.update_window_dims])
    sizes = [1 if d in dropped else next(windows) for d in range(x.ndim)]
    for b, window in places(x.shape, indices, dims, sizes, mode):
        if window is not None:
            update = updates[at(b, dims.update_window_dims, updates.ndim)]
            out[window] = combine(out[window], np.expand_dims(update, dropped))
    return out


def taken(
    label: str, shape: Any, index: Arg, dims: Any, sizes: Any, mode: Any, **more: Any
) -> Case:
    dims = GatherDimensionNumbers(*dims)
    params = {
        "dimension_numbers": dims,
        "slice_sizes": sizes,
        "unique_indices": False,
        "indices_are_sorted": False,
        "mode": mode,
        "fill_value": 0 if mode is DROP else None,
    }
    return Case(
        indexing.gather_p,
        [shape, index],
        lambda x, i: np_gather(x, i, dims, sizes, mode),
        params,
        label=label,
        **more,
    )


def written(
    prim: Any, combine: Callable, label: str, shape: Any, index: Arg, update: Any, dims: Any,
    mode: Any, unique: bool = False, **more: Any,
) -> Case:  # fmt: skip
    dims = ScatterDimensionNumbers(*dims)

    def fun(x: Any, indices: Any, updates: Any) -> Any:
        scatter = indexing.define_scatter(prim, "", "")
        return scatter(x, indices, updates, dims, mode=mode, unique_indices=unique)

    return Case(
        prim,
        [shape, index, update],
        lambda x, i, u: np_scatter(combine, x, i, u, dims, mode),
        fun=fun,
        label=label,
        **{"dtypes": "f32", "weak": None, **more},
    )


ROWS = ((1,), (0,), (0,))  # an index vector names a row of a matrix
CORNERS = ((1, 2), (), (0, 1))  # it names the corner of a window
COLUMN = ((0,), (1,), (1,))  # the window's axis first
BATCH = ((2,), (1,), (1,), (0,), (0,))
ANY = Arg((5, 1), -2, 5, np.int32)
PAIR = Arg((4, 2), -1, 4, np.int32)

CASES = [
    taken("rows", (3, 4), ANY, ROWS, (1, 4), CLIP, dtypes=EVERY),
    taken("rows or fill", (3, 4), ANY, ROWS, (1, 4), DROP, dtypes=EVERY, also=[((3, 4), (0, 1))]),
    taken("column", (3, 4), ANY, COLUMN, (2, 1), DROP),
    taken("corners", (3, 4), PAIR, CORNERS, (2, 2), CLIP),
    taken("corners or fill", (3, 4), PAIR, CORNERS, (2, 2), DROP),
    taken("elements", (3, 4), Arg((2, 4, 2), 0, 2, np.int32), ((), (0, 1), (1, 0)), (1, 1), CLIP),
    taken("one", (3, 4), Arg((1,), 0, 2, np.int32), ((0,), (0,), (0,)), (1, 4), CLIP),
    taken("batch", (2, 3, 4), Arg((2, 5, 1), -2, 5, np.int32), BATCH, (1, 1, 4), DROP),
    taken("all", (3, 4), Arg((2, 0), dtype=np.int32), ((1, 2), (), ()), (3, 4), CLIP),
    # its transpose: test_indexing.py, since XLA:CPU writes at bytes wrongly where not optimizing
    taken(
        "bytes",
        (300,),
        Arg((5, 1), -3, 127, np.int8),
        ((), (0,), (0,)),
        (1,),
        DROP,
        dtypes="f32",
        skip="transpose",
    ),
]

FAMILY = [
    (indexing.scatter_add_p, lambda a, b: a + b, {}),
    (indexing.scatter_sub_p, lambda a, b: a - b, {}),
    (indexing.scatter_mul_p, lambda a, b: a * b, {"unique": True}),
    (indexing.scatter_min_p, np.minimum, {}),
    (indexing.scatter_max_p, np.maximum, {}),
    (indexing.scatter_p, lambda a, b: b, {}),
]
ONCE = Arg((4, 1), values=[2, 0, 5, -1], dtype=np.int32)
TWICE = Arg((4, 1), values=[2, 0, 5, 2], dtype=np.int32)
for prim, combine, more in FAMILY:
    numbers = ALL if prim in (indexing.scatter_p, indexing.scatter_min_p) else "f32 bf16 c64 i32 u8"
    CASES += [
        written(prim, combine, "rows", (3, 4), ONCE, (4, 4), ROWS, DROP, dtypes=numbers, **more),
        written(
            prim,
            combine,
            "clip",
            (3, 4),
            TWICE,
            (4, 4),
            ROWS,
            CLIP,
            skip="jvp transpose second" if more else "",
        ),
        written(
            prim,
            combine,
            "window",
            (3, 4),
            Arg((2,), 0, 2, np.int32),
            (2, 2),
            ((0, 1), (), (0, 1)),
            CLIP,
            **more,
        ),
        written(
            prim,
            combine,
            "window or not",
            (3, 4),
            Arg((1, 2), 0, 3, np.int32),
            (1, 2, 2),
            CORNERS,
            DROP,
            **more,
        ),
        written(
            prim,
            combine,
            "batch",
            (2, 3, 4),
            Arg((2, 2, 1), values=[0, 2, 1, 3], dtype=np.int32),
            (2, 2, 4),
            BATCH,
            DROP,
            **more,
        ),
        written(
            prim,
            combine,
            "elements",
            (3, 4),
            Arg((2, 2), values=[0, 1, 2, 3], dtype=np.int32),
            (2,),
            ((), (0, 1), (0, 1)),
            DROP,
            **more,
        ),
    ]
CASES += [
    written(
        indexing.scatter_add_p,
        lambda a, b: a + b,
        "overlap",
        (3, 4),
        PAIR,
        (4, 2, 2),
        CORNERS,
        CLIP,
    ),
    written(
        indexing.scatter_p,
        lambda a, b: b,
        "overlap",
        (3, 4),
        PAIR,
        (4, 2, 2),
        CORNERS,
        CLIP,
        skip="jvp transpose second",
    ),
]
