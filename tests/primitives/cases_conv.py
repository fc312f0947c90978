"""Rows for primitives/conv.py. Functions made of it, texts and errors: test_conv.py."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.primitives.cases import Arg, Case
from weft.primitives import conv


def spread(x: np.ndarray, dilation: Sequence[int]) -> np.ndarray:
    """`x` with zeros between neighbours along its axes from 2 on."""
    sizes = [(n - 1) * d + 1 if n else 0 for n, d in zip(x.shape[2:], dilation, strict=True)]
    out = np.zeros((*x.shape[:2], *sizes), x.dtype)
    out[(slice(None), slice(None), *(slice(None, None, d) for d in dilation))] = x
    return out


def padded(x: np.ndarray, padding: Sequence[tuple[int, int]]) -> np.ndarray:
    """`x` padded, or cut, along its axes from 2 on."""
    x = np.pad(x, [(0, 0), (0, 0), *((max(lo, 0), max(hi, 0)) for lo, hi in padding)])
    cuts = [
        slice(max(-lo, 0), n - max(-hi, 0))
        for n, (lo, hi) in zip(x.shape[2:], padding, strict=True)
    ]
    return x[(slice(None), slice(None), *cuts)]


def loops(
    x: np.ndarray,
    k: np.ndarray,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
    dimension_numbers: Any,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    **ignored: Any,
) -> np.ndarray:
    """The convolution by its definition: a loop over groups and places."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    dtype = x.dtype
    x, k = np.transpose(x, lhs_spec), np.transpose(k, rhs_spec)
    x, k = padded(spread(x, lhs_dilation), padding), spread(k, rhs_dilation)
    sizes = [
        max((n - w) // s + 1, 0)
        for n, w, s in zip(x.shape[2:], k.shape[2:], window_strides, strict=True)
    ]
    groups = feature_group_count * batch_group_count
    out = []
    for j in range(groups):
        xs = np.array_split(x, groups, 1 if feature_group_count > 1 else 0)[j]
        ks = np.array_split(k, groups, 0)[j]
        y = np.zeros((xs.shape[0], ks.shape[0], *sizes), dtype)
        for place in itertools.product(*map(range, sizes)):
            window = tuple(
                slice(p * s, p * s + w)
                for p, s, w in zip(place, window_strides, k.shape[2:], strict=True)
            )
            seen = xs[(slice(None), slice(None), *window)]
            summed = np.tensordot(seen, ks, [range(1, ks.ndim)] * 2)
            y[(slice(None), slice(None), *place)] = summed
        out.append(y)
    return np.transpose(np.concatenate(out, 1), np.argsort(out_spec))


def row(label: str, lhs: Any, rhs: Any, numbers: Any = None, **more: Any) -> Case:
    """Return a row with defaults: stride 1, no padding, no dilation, no groups."""
    spatial = len(lhs) - 2
    names = ("window_strides", "lhs_dilation", "rhs_dilation")
    params = {
        **{name: more.pop(name, (1,) * spatial) for name in names},
        "padding": more.pop("padding", ((0, 0),) * spatial),
        "dimension_numbers": conv.conv_dimension_numbers(lhs, rhs, numbers),
        "feature_group_count": more.pop("features", 1),
        "batch_group_count": more.pop("batches", 1),
        "precision": None,
        "preferred_element_type": None,
        "out_sharding": None,
    }
    return Case(
        conv.conv_general_dilated_p,
        [Arg(lhs), Arg(rhs)],
        lambda x, k: loops(x, k, **params),
        params,
        label=label,
        **{"tol": 16, "dtypes": "f32", **more},
    )


EVERYTHING = {
    "window_strides": (2, 1),
    "padding": ((1, 2), (-1, 3)),
    "lhs_dilation": (1, 2),
    "rhs_dilation": (2, 1),
}
LAST = ("NHWC", "HWIO", "NHWC")

CASES = [
    row(
        "plain",
        (2, 3, 5, 4),
        (4, 3, 2, 3),
        dtypes="f32 f64 bf16 f16 c64 i32 i8 u8 bool",
        also=[((0, 3, 5, 4), (4, 3, 2, 3)), ((2, 0, 5, 4), (4, 0, 2, 3))]
        + [((2, 3, 5, 2), (4, 3, 2, 3)), ((2, 3, 5, 4), (0, 3, 2, 3))],
    ),
    row("line", (2, 3, 7), (4, 3, 3), window_strides=(2,), padding=((1, 1),)),
    row("no window", (2, 3), (4, 3)),
    row("solid", (1, 2, 3, 4, 3), (2, 2, 2, 2, 2), padding=((1, 0), (0, 0), (0, 1))),
    row("everything", (2, 3, 6, 5), (4, 3, 2, 3), **EVERYTHING, dtypes="f32 c64 i32"),
    row("everything last", (2, 6, 5, 3), (2, 3, 3, 4), LAST, **EVERYTHING),
    row(
        "odd axes",
        (6, 3, 2, 5),
        (3, 4, 3, 2),
        ("HCNW", "WOIH", "WNHC"),
        window_strides=(1, 2),
        padding=((2, -1), (0, 2)),
        rhs_dilation=(2, 2),
        lhs_dilation=(2, 1),
    ),
    row("uncovered", (2, 3, 8, 6), (4, 3, 2, 1), window_strides=(3, 4)),
    row("cut", (2, 3, 6, 5), (4, 3, 2, 2), padding=((-2, -1), (3, -2))),
    row("features", (2, 6, 5, 4), (4, 3, 2, 3), features=2, **EVERYTHING, dtypes="f32 c64 i32"),
    row("depthwise last", (2, 5, 4, 3), (2, 3, 1, 6), LAST, features=3, padding=((1, 1),) * 2),
    row("batches", (4, 3, 5, 4), (6, 3, 2, 3), batches=2, **EVERYTHING, dtypes="f32 c64 i32"),
    row("batches last", (6, 5, 4, 2), (2, 3, 2, 3), LAST, batches=3, window_strides=(2, 2)),
]
