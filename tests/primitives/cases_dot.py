"""Rows for primitives/dot.py. Precisions, texts and errors: test_dot.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.primitives.cases import ALL, Arg, Case
from weft.primitives import dot

NONE = ((), ())


def product(label: str, formula: str, lhs: Any, rhs: Any, numbers: Any, **more: Any) -> Case:
    """A row for a contraction that einsum spells as `formula`."""
    params = {
        "dimension_numbers": numbers,
        "precision": None,
        "preferred_element_type": None,
        "out_sharding": None,
    }
    return Case(
        dot.dot_general_p,
        [Arg(lhs), Arg(rhs)],
        lambda x, y: np.einsum(formula, x, y),
        params,
        label=label,
        **{"tol": 8, **more},
    )


CASES = [
    product(
        "matmul",
        "mk,kn->mn",
        (2, 3),
        (3, 4),
        (((1,), (0,)), NONE),
        dtypes=ALL + " f64 c128",
        also=[((0, 3), (3, 4)), ((2, 0), (0, 4)), ((2, 3), (3, 0)), ((1, 1), (1, 1))],
    ),
    product("inner", "k,k->", (3,), (3,), (((0,), (0,)), NONE), also=[((0,), (0,))]),
    product("outer", "m,n->mn", (2,), (3,), (((), ()), NONE), dtypes="f32 c64 i32"),
    product("scale", ",mn->mn", (), (2, 3), (((), ()), NONE)),
    product("scalars", ",->", (), (), (((), ()), NONE), dtypes="f32 i32 c64"),
    product("left", "km,nk->mn", (3, 2), (4, 3), (((0,), (1,)), NONE)),
    product(
        "stack", "bmk,bkn->bmn", (5, 2, 3), (5, 3, 4), (((2,), (1,)), ((0,), (0,))),
        dtypes="f32 bf16 c64 i32", also=[((0, 2, 3), (0, 3, 4))],
    ),
    product(
        "scattered batch", "mbk,knb->bmn", (2, 5, 3), (3, 4, 5), (((2,), (0,)), ((1,), (2,)))
    ),
    product(
        "two of each", "akmbl,lbnka->bamn", (2, 3, 2, 4, 5), (5, 4, 3, 3, 2),
        (((1, 4), (3, 0)), ((3, 0), (1, 4))),
    ),
    product("batch only", "b,b->b", (3,), (3,), (((), ()), ((0,), (0,)))),
    product("all contracted", "abc,cab->", (2, 3, 4), (4, 2, 3), (((0, 1, 2), (1, 2, 0)), NONE)),
]  # fmt: skip
