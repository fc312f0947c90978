"""Rows for collective.py, along an axis that vmap names; over devices is test_collective.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.primitives.cases import FLAT, Case
from weft import lax, vmap
from weft.primitives import collective


def along_axis(
    prim: Any, fun: Callable, reference: Callable, skip: str = "second", weak: Any = True
) -> Case:
    """A row for three copies, each of a row of a square matrix."""
    mapped = vmap(fun, axis_name="i")
    return Case(prim, [(3, 3)], reference, fun=mapped, dtypes="f32", skip=skip, weak=weak)


def spread(x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x, (3, *x.shape))


CASES = [
    along_axis(collective.psum_p, lambda x: lax.psum(x, "i"), lambda x: spread(x.sum(0))),
    along_axis(collective.pmax_p, lambda x: lax.pmax(x, "i"), lambda x: spread(x.max(0)), ""),
    along_axis(collective.pmin_p, lambda x: lax.pmin(x, "i"), lambda x: spread(x.min(0)), ""),
    along_axis(collective.all_gather_p, lambda x: lax.all_gather(x, "i"), spread),
    along_axis(collective.reduce_scatter_p, lambda x: lax.psum_scatter(x, "i"), lambda x: x.sum(0)),
    along_axis(collective.all_to_all_p, lambda x: lax.all_to_all(x, "i", 0, 0), lambda x: x.T),
    along_axis(
        collective.ppermute_p,
        lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)]),
        lambda x: np.stack([0 * x[0], x[0], x[1]]),
        weak=None,  # the zeros where nothing arrives are not
    ),
    along_axis(
        collective.pbroadcast_p, lambda x: lax.pbroadcast(x, "i", 1), lambda x: spread(x[1])
    ),
    along_axis(
        collective.axis_index_p,
        lambda x: lax.axis_index("i") + 0 * x.astype(np.int32),
        lambda x: np.arange(3, dtype=np.int32)[:, None] + np.zeros((3, 3), np.int32),
        FLAT + " weak",
    ),
]
