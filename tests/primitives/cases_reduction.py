"""Rows for primitives/reduction.py. Functions, errors, special values: test_reduction.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.primitives.cases import FLOATS, INTS, NUMBERS, Arg, Case
from weft.primitives import bits
from weft.primitives import reduction as red
from weft.primitives.elementwise import add, mul

BITS = INTS + " bool"


def over(prim: Any, reference: Any, axes: tuple, shape: Any = (2, 3, 4), **more: Any) -> Case:
    """A row for a reduction over `axes`."""
    more.setdefault("label", f"axes {axes}")
    return Case(prim, [shape], lambda x: reference(x, axes), {"axes": axes}, **more)


def place(prim: Any, reference: Any, shape: Any, axis: int, **more: Any) -> Case:
    """A row for argmax or argmin."""
    return Case(
        prim,
        [shape],
        lambda x: reference(x, axis).astype(np.int32),
        {"axes": (axis,), "index_dtype": np.dtype(np.int32)},
        weak=False,
        label=f"{shape} axis {axis}",
        **more,
    )


def product(x: np.ndarray, axes: tuple) -> np.ndarray:
    """The product in the dtype of x; NumPy's is in a wider one for small integers."""
    return np.prod(x, axes, dtype=x.dtype)


def both(x: Any, y: Any) -> Any:
    """(1 + x) (1 + y) - 1: associative, and no operation of one equation."""
    return add(add(x, y), mul(x, y))


def together(a: Any, b: Any) -> Any:
    return add(a[0], b[0]), mul(a[1], b[1])


CASES = [
    over(red.reduce_max_p, np.max, (1,), dtypes=FLOATS + " c64 " + BITS, also=[((2, 1, 4),)]),
    over(red.reduce_max_p, np.max, (0, 2)),
    over(red.reduce_max_p, np.max, (), (3,)),
    Case(
        red.reduce_max_p,
        [(2, 3, 4)],
        lambda x: np.max(x, (1,)),
        {"axes": (1,), "nan": "any"},
        label="axes (1,), NaN passed over",
    ),
    Case(
        red.reduce_min_p,
        [(2, 3, 4)],
        lambda x: np.nanmin(x, (1,)),
        {"axes": (1,), "nan": "skip"},
        dtypes=FLOATS + " c64 " + BITS,
        label="axes (1,), NaN skipped",
    ),
    over(red.reduce_min_p, np.min, (1,), dtypes=FLOATS + " c64 " + BITS),
    over(red.reduce_min_p, np.min, (0, 1, 2)),
    over(
        red.reduce_prod_p, product, (1,), dtypes=NUMBERS, tol=8, also=[((2, 0, 4),), ((0, 3, 4),)]
    ),
    over(red.reduce_prod_p, np.prod, (0, 2), (3, 2, 3), tol=8, dtypes="f32 c64"),
    Case(
        red.reduce_prod_p,
        [Arg((2, 5), values=[[1, 0, 2, 3, -1], [0, 2, 0, 1, 3]])],
        lambda x: np.prod(x, 1),
        {"axes": (1,)},
        label="zeros",
    ),
    Case(
        red.reduce_nansum_p,
        [(2, 3, 4)],
        lambda x: np.nansum(x, (0, 2), dtype=x.dtype),
        {"axes": (0, 2), "counts": False},
        dtypes=FLOATS,
        label="axes (0, 2)",
    ),
    Case(
        red.reduce_nansum_p,
        [Arg((3, 2), values=[[np.nan, 0], [2, np.nan], [-1, np.nan]])],
        lambda x: np.nansum(x, 0),
        {"axes": (0,), "counts": False},
        label="NaN",
    ),
    Case(
        red.reduce_nansum_p,
        [Arg((3, 2), values=[[np.nan, 0], [2, np.nan], [-1, np.nan]])],
        lambda x: np.sum(x == x, 1, dtype=x.dtype),
        {"axes": (1,), "counts": True},
        dtypes=FLOATS,
        label="counts",
    ),
    over(red.reduce_and_p, np.bitwise_and.reduce, (1,), (2, 3), dtypes=BITS, also=[((2, 0),)]),
    over(red.reduce_or_p, np.bitwise_or.reduce, (0,), (2, 3), dtypes=BITS, also=[((0, 3),)]),
    over(red.reduce_xor_p, np.bitwise_xor.reduce, (1,), (2, 3), dtypes=BITS),
    place(red.argmax_p, np.argmax, (3, 4), 0, dtypes=FLOATS + " " + BITS),
    place(red.argmax_p, np.argmax, (2, 70), 1, dtypes=FLOATS + " " + BITS),
    place(red.argmin_p, np.argmin, (3, 4), 1, dtypes=FLOATS + " " + BITS),
    place(red.argmin_p, np.argmin, (70, 2), 0, dtypes=FLOATS + " " + BITS),
    Case(
        bits.reduce_precision_p,
        [Arg((3, 2), values=[[1, 1.5, -2.25], [0, 8, 0.125]])],
        lambda x: x,
        {"exponent_bits": 5, "mantissa_bits": 4},
        skip="jvp transpose second",  # tangents are rounded too, and differences see only steps
    ),
    Case(
        red.reduce_p,
        [
            (3, 4),
            Arg(values=0.0),
        ],  # XLA may use another value than the identity any number of times
        lambda x, i: (1 + i) * np.prod(1 + x, 0) - 1,
        fun=lambda x, i: red.reduce(x, i, both, (0,)),
        dtypes="f32 c64",
        tol=32,
        weak=False,
        label="product",
    ),
    Case(
        red.reduce_p,
        [(2, 5, 3), (2, 5, 3), Arg(values=0.0), Arg(values=1.0)],
        lambda x, y, i, j: [i + x.sum((1, 2)), j * y.prod((1, 2))],
        fun=lambda x, y, i, j: red.reduce((x, y), (i, j), together, (1, 2)),
        dtypes="f32",
        tol=64,
        weak=False,
        label="two",
    ),
]
