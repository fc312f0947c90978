"""Rows for layout.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tests.primitives.cases import ALL, FLAT, FLOATS, INEXACT, NUMBERS, ONE, REALS, SHAPE, Arg, Case
from weft.primitives import layout, tokens


def shape_op(prim: Any, shape: tuple, reference: Callable, params: dict, **more: Any) -> Case:
    """A row for one operand that is moved about."""
    return Case(prim, [shape], reference, params, **{"dtypes": ALL, **more})


def spread(shape: tuple, dims: tuple) -> Callable:
    """broadcast_in_dim in NumPy."""
    kept = lambda x: [x.shape[dims.index(i)] if i in dims else 1 for i in range(len(shape))]
    return lambda x: np.broadcast_to(x.reshape(kept(x)), shape)


CASES = [
    shape_op(
        layout.broadcast_in_dim_p,
        (3,),
        spread((2, 3, 4), (1,)),
        dict(shape=(2, 3, 4), broadcast_dimensions=(1,), sharding=None),
    ),
    shape_op(
        layout.broadcast_in_dim_p,
        (1, 3),
        spread((2, 4, 3), (0, 2)),
        dict(shape=(2, 4, 3), broadcast_dimensions=(0, 2), sharding=None),
        label="stretch",
    ),
    shape_op(
        layout.broadcast_in_dim_p,
        (),
        spread((0, 2), ()),
        dict(shape=(0, 2), broadcast_dimensions=(), sharding=None),
        label="scalar",
    ),
    shape_op(
        layout.reduce_sum_p,
        (2, 3, 4),
        lambda x: x.sum((0, 2), dtype=x.dtype),
        dict(axes=(0, 2)),
        dtypes=NUMBERS,
        also=(((0, 3, 4),), ((2, 0, 4),)),
    ),
    shape_op(
        layout.reshape_p,
        (2, 6),
        lambda x: x.reshape(3, 4),
        dict(new_sizes=(3, 4), dimensions=None, sharding=None),
    ),
    shape_op(
        layout.transpose_p,
        (2, 3, 4),
        lambda x: x.transpose(2, 0, 1),
        dict(permutation=(2, 0, 1)),
        also=(((0, 3, 4),),),
    ),
    shape_op(layout.squeeze_p, (1, 3, 1, 2), lambda x: x[0, :, 0], dict(dimensions=(0, 2))),
    shape_op(
        layout.rev_p, SHAPE, lambda x: x[::-1, ::-1], dict(dimensions=(0, 1)), also=(((0, 3),),)
    ),
    shape_op(layout.copy_p, SHAPE, lambda x: x, {}, also=ONE),
    Case(
        layout.iota_p,
        [],
        lambda: np.arange(3, dtype=np.int32)[None].repeat(2, 0),
        dict(dtype=np.dtype(np.int32), shape=SHAPE, dimension=1, sharding=None),
        dtypes="i32",
        skip=FLAT + " batch weak",  # it has no operands
    ),
    *[
        Case(barrier, [SHAPE, Arg((2,), dtype=np.int32)], lambda x, y: [x, y], dtypes=INEXACT)
        for barrier in (tokens.optimization_barrier_p, tokens.keep_p)
    ],
    *[
        Case(
            layout.convert_element_type_p,
            [Arg(SHAPE, 0, 100)],
            lambda x, to=to: x.real.astype(to) if np.dtype(to).kind != "c" else x.astype(to),
            dict(new_dtype=np.dtype(to), weak_type=False),
            dtypes=dtypes,
            out_dtype=to,
            weak=False,
            skip=skip,
            tol=1,
            label=np.dtype(to).name,
        )
        for to, dtypes, skip in [
            (np.int32, ALL + " c64", "jvp transpose second"),
            (np.uint8, FLOATS + " i32 bool", "jvp transpose second"),
            (np.bool_, ALL, "jvp transpose second"),
            (
                ml_dtypes.bfloat16,
                REALS + " bool",
                "jvp transpose second",
            ),  # too coarse to difference
            (np.float32, "f16 bf16 c64 i32 u8 bool", "jvp transpose second"),
            (np.float64, "f64", ""),
            (np.complex128, "f64 c128", ""),
        ]
    ],
]
