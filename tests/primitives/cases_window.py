"""Rows for primitives/window.py. Functions, padding types and errors: test_window.py."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.primitives.cases import FLOATS, INTS, NUMBERS, Case
from weft.primitives import window as win
from weft.primitives.elementwise import add, ge_p, le_p, mul

Params = dict[str, Any]


def params(
    size: tuple, strides: Any = None, padding: Any = None, base: Any = None, wide: Any = None
) -> Params:
    """The parameters of a window, with defaults."""
    ones = (1,) * len(size)
    return {
        "base_dilation": base or ones,
        "padding": padding or ((0, 0),) * len(size),
        "window_dilation": wide or ones,
        "window_dimensions": size,
        "window_strides": strides or ones,
    }


def undilated(p: Params) -> Params:
    return {k: v for k, v in p.items() if not k.endswith("dilation")}


def windows(x: np.ndarray, fill: Any, p: Params) -> dict[tuple, dict[tuple, Any]]:
    """The elements of each window by their place on the operand; `fill` has none."""
    base = p.get("base_dilation", (1,) * x.ndim)
    wide = p.get("window_dilation", (1,) * x.ndim)
    dilated = [(n - 1) * b + 1 if n else 0 for n, b in zip(x.shape, base, strict=True)]
    reach = [(w - 1) * d + 1 for w, d in zip(p["window_dimensions"], wide, strict=True)]
    counts = [
        max(0, (n + lo + hi - r) // s + 1)
        for n, (lo, hi), r, s in zip(dilated, p["padding"], reach, p["window_strides"], strict=True)
    ]
    found = {}
    for at in itertools.product(*map(range, counts)):
        elements: dict[tuple, Any] = {}
        for place in itertools.product(*map(range, p["window_dimensions"])):
            on = [
                i * s + k * d - lo
                for i, s, k, d, (lo, _) in zip(
                    at, p["window_strides"], place, wide, p["padding"], strict=True
                )
            ]
            real = all(0 <= i < n and i % b == 0 for i, n, b in zip(on, dilated, base, strict=True))
            index = tuple(i // b for i, b in zip(on, base, strict=True))
            elements[place, index if real else None] = x[index] if real else fill
        found[at] = elements
    return found


def reduced(x: np.ndarray, p: Params, fun: Callable, fill: Any) -> np.ndarray:
    """`fun` of the list of elements of each window."""
    found = windows(x, fill, p)
    shape = [max((at[k] for at in found), default=-1) + 1 for k in range(x.ndim)]
    out = np.zeros(shape, x.dtype)
    for at, elements in found.items():
        out[at] = fun(np.array(list(elements.values()), x.dtype))
    return out


def least(dtype: Any, sign: int) -> Any:
    if dtype.kind == "f":
        return sign * np.inf
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


def summed(label: str, shape: tuple, p: Params, **more: Any) -> Case:
    return Case(
        win.reduce_window_sum_p,
        [shape],
        lambda x: reduced(x, p, lambda v: v.sum(dtype=v.dtype), 0),
        p,
        tol=16,
        label=label,
        **more,
    )


def extremum(prim: Any, label: str, shape: tuple, p: Params, **more: Any) -> Case:
    fun, sign = (np.max, -1) if prim is win.reduce_window_max_p else (np.min, 1)
    return Case(
        prim, [shape], lambda x: reduced(x, p, fun, least(x.dtype, sign)), p, label=label, **more
    )


def chosen(x: np.ndarray, p: Params, sign: int) -> dict[tuple, Any]:
    """The place on the operand of each window's first extremum."""
    return {
        at: max(
            (index for _, index in elements if index is not None),
            key=lambda i: (sign * x[i], tuple(-k for k in i)),
        )
        for at, elements in windows(x, np.nan, p).items()
    }


def gathered(t: np.ndarray, x: np.ndarray, p: Params, sign: int) -> np.ndarray:
    where = chosen(x, p, sign)
    out = np.zeros([max(at[k] for at in where) + 1 for k in range(x.ndim)], t.dtype)
    for at, index in where.items():
        out[at] = t[index]
    return out


def scattered(source: np.ndarray, x: np.ndarray, p: Params, sign: int) -> np.ndarray:
    out = np.zeros(x.shape, source.dtype)
    for at, index in chosen(x, p, sign).items():
        out[index] += source[at]
    return out


POOL = params((2, 2), (2, 2))
SAME = params((3, 2), (2, 1), ((1, 1), (0, 1)))
ODD = params((2, 2), (2, 1), ((1, -1), (2, 0)), (2, 1), (1, 2))
BACK = params((2,), (2,), ((-1, 2),))

CASES = [
    summed("pool", (4, 6), POOL, dtypes=NUMBERS),
    summed("same", (5, 4), SAME, dtypes="f32 c64 i32"),
    summed("dilated", (4, 5), ODD),
    summed("negative", (6,), BACK),
    extremum(win.reduce_window_max_p, "pool", (4, 6), POOL, dtypes=FLOATS + " " + INTS),
    extremum(win.reduce_window_max_p, "same", (5, 4), SAME),
    extremum(win.reduce_window_max_p, "dilated", (4, 5), params((2, 2), wide=(2, 1), base=(1, 2))),
    extremum(win.reduce_window_max_p, "negative", (6,), BACK),
    extremum(win.reduce_window_min_p, "pool", (4, 6), POOL, dtypes=FLOATS + " " + INTS),
    extremum(win.reduce_window_min_p, "same", (5, 4), SAME),
    Case(
        win.select_and_gather_add_p,
        [(5, 4), (5, 4)],
        lambda t, x: gathered(t, x, SAME, 1),
        {"select_prim": ge_p, **SAME},
        weak=False,
    ),
    Case(
        win.select_and_scatter_add_p,
        [(3, 4), (5, 4)],
        lambda s, x: scattered(s, x, SAME, -1),
        {"select_prim": le_p, **undilated(SAME)},
        weak=False,
    ),
    Case(
        win.reduce_window_p,
        [(5, 4)],
        lambda x: reduced(1 + x, SAME, np.prod, 1) - 1,
        fun=lambda x: win.reduce_window(
            x, 0.0, lambda a, b: add(add(a, b), mul(a, b)), (3, 2), (2, 1), ((1, 1), (0, 1))
        ),
        dtypes="f32 c64",
        tol=64,
        weak=False,
        label="product",
    ),
    Case(
        win.reduce_window_p,
        [(6,), (6,)],
        lambda x, y: [reduced(x, BACK, np.sum, 0), reduced(y, BACK, np.prod, 1)],
        fun=lambda x, y: win.reduce_window(
            (x, y),
            (0.0, 1.0),
            lambda a, b: (add(a[0], b[0]), mul(a[1], b[1])),
            (2,),
            (2,),
            ((-1, 2),),
        ),
        dtypes="f32",
        tol=16,
        weak=False,
        label="two",
    ),
]
