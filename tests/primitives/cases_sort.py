"""Rows for primitives/sort.py and numpy/members.py; test_sort.py has special values and errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.primitives.cases import ALL, FLOATS, INTS, Arg, Case
from weft.numpy.members import find_members_p
from weft.primitives import sort

REAL = FLOATS + " " + INTS + " bool"


def params(dimension: int, num_keys: int = 1) -> dict:
    return {"dimension": dimension, "is_stable": True, "num_keys": num_keys}


def carried(x: np.ndarray, y: np.ndarray, axis: int) -> list:
    """Sorted by x."""
    order = np.argsort(x, axis, kind="stable")
    return [np.take_along_axis(z, order, axis) for z in (x, y)]


def by_two(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> list:
    """Sorted by x, then y."""
    order = np.lexsort((y, x), axis=-1)
    return [np.take_along_axis(a, order, -1) for a in (x, y, z)]


def largest(x: np.ndarray, k: int, axis: int) -> list:
    """The k largest, the first of equals first."""
    rank = -x.astype(np.float64)
    order = np.take(np.argsort(rank, axis, kind="stable"), range(k), axis)
    return [np.take_along_axis(x, order, axis), order.astype(np.int32)]


def top(shape: Any, k: int, axis: int, **more: Any) -> Case:
    return Case(
        sort.top_k_p,
        [shape],
        lambda x: largest(x, k, axis),
        {"k": k, "axis": axis},
        weak=None,
        label=f"{k} of axis {axis}",
        **more,
    )


def about(
    shape: Any, kth: Any, axis: int, reference: Any, places: bool = False, **more: Any
) -> Case:
    """Rows as short as these are sorted, in the order of places where they are equal."""
    kept = tuple(len(kth) if i == axis else n for i, n in enumerate(shape))
    each = np.broadcast_to(np.expand_dims(kth, tuple(range(1, len(shape) - axis))), kept)
    return Case(
        sort.partition_p,
        [shape, Arg(kept, values=each.tolist(), dtype=np.int32)],
        lambda x, kth: reference(x, axis),
        {"axis": axis, "places": places},
        weak=None,
        label="places" if places else f"axis {axis}",
        **more,
    )


def argsort(x: np.ndarray, axis: int) -> np.ndarray:
    return np.argsort(x, axis, kind="stable").astype(np.int32)


def places(x: np.ndarray, size: int, axis: int) -> np.ndarray:
    """Return the places of True elements along an axis, filled up with its length."""
    i = np.where(np.moveaxis(x, axis, -1), np.arange(x.shape[axis]), x.shape[axis])
    fill = np.full((*i.shape[:-1], size), x.shape[axis])
    return np.moveaxis(np.concatenate([np.sort(i), fill], -1)[..., :size], -1, axis).astype("i4")


def find(shape: Any, size: int, axis: int) -> Case:
    return Case(
        sort.find_places_p,
        [shape],
        lambda x: places(x, size, axis),
        {"size": size, "axis": axis},
        dtypes="bool",
        weak=None,
        label=f"{size} along {axis}",
    )


def among(members: list[int]) -> Case:
    return Case(
        find_members_p,
        [Arg((7,), values=[0, 1, 2, 3, 1, 5, 4]), Arg((len(members),), values=members)],
        np.isin,
        dtypes=ALL,
        weak=None,
        label=f"{len(members)} members",
    )


KEYS = Arg((2, 6), values=[[2, 1, 2, 0, 1, 1], [0, 0, 2, 2, 1, 0]], dtype=np.int32)

CASES = [
    Case(sort.sort_p, [(3, 5)], lambda x: np.sort(x, 1), params(1), dtypes=ALL),
    Case(
        sort.sort_p,
        [(3, 2, 4)],
        lambda x: np.sort(x, 0),
        params(0),
        also=[((0, 2, 3),), ((1, 2, 3),)],
        label="axis 0",
    ),
    Case(
        sort.sort_p,
        [(4, 3), (4, 3)],
        lambda x, y: carried(x, y, 0),
        params(0),
        dtypes="f32 f16 bf16 f64",
        label="two",
    ),
    Case(
        sort.sort_p,
        [KEYS, (2, 6)],
        lambda x, y: carried(x, y, 1),
        params(1),
        label="keys",
        weak=None,
    ),
    Case(
        sort.sort_p,
        [KEYS, (2, 6), (2, 6)],
        by_two,
        params(1, 2),
        label="two keys",
        dtypes="f32 c64",
    ),
    top((3, 5), 2, 1, dtypes=REAL),
    top((5, 2), 3, 0),
    top((2, 3), 0, 1),
    about((3, 5), [2], 1, np.sort, dtypes=ALL),
    about((5, 2), [0, 3], 0, np.sort),
    about((2, 5), [1, -1, 9], 1, argsort, places=True, dtypes=ALL),
    find((3, 5), 2, 1),
    find((6, 2), 8, 0),
    among([1, 3, 1]),
    among([*range(1, 80, 2)]),  # so many that no element is compared with all of them
]
