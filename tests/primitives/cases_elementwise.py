"""Rows for elementwise.py. Values and derivatives at edges are in test_elementwise.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.primitives.cases import (
    ALL,
    COMPLEX,
    FLAT,
    FLOATS,
    INEXACT,
    INTS,
    NUMBERS,
    REALS,
    SHAPE,
    Arg,
    Case,
    binary,
    unary,
)
from weft.primitives import elementwise as ew


def lexicographic(better: Callable, extremum: Callable) -> Callable:
    """max and min; of complex numbers by real part first."""

    def reference(x: Any, y: Any) -> Any:
        if x.dtype.kind != "c":
            return extremum(x, y)
        tied = (x.real == y.real) & better(x.imag, y.imag)
        return np.where(better(x.real, y.real) | tied, x, y)

    return reference


def quotient(x: Any, y: Any) -> Any:
    """Division; of integers, towards zero."""
    return np.trunc(x / y).astype(x.dtype) if x.dtype.kind in "iu" else x / y


def away_from_zero(x: Any) -> Any:
    return np.trunc(x + np.copysign(0.5, x))


ARITHMETIC = [
    binary(ew.add_p, np.add, dtypes=NUMBERS),
    binary(ew.sub_p, np.subtract, dtypes=NUMBERS),
    binary(ew.mul_p, np.multiply, dtypes=NUMBERS),
    Case(ew.mul_p, [(), SHAPE], np.multiply, dtypes=INEXACT, label="scalar"),
    Case(ew.sub_p, [SHAPE, ()], np.subtract, dtypes=INEXACT, label="scalar"),
    binary(ew.div_p, quotient, (), (1, 3), dtypes=NUMBERS),
    binary(ew.rem_p, np.fmod, (-9, 9), (1, 3), dtypes=REALS),
    binary(ew.rem_p, np.fmod, (-9, 9), (-3, -1), dtypes=FLOATS + " i32 i8", label="negative"),
    unary(ew.neg_p, np.negative, dtypes=NUMBERS),
    binary(ew.max_p, lexicographic(np.greater, np.maximum), dtypes=ALL),
    binary(ew.min_p, lexicographic(np.less, np.minimum), dtypes=ALL),
    unary(ew.square_p, np.square, dtypes=NUMBERS),
    unary(ew.one_minus_square_p, lambda x: 1 - x * x),
    unary(ew.sign_p, np.sign, dtypes=REALS, skip=FLAT),
    unary(ew.sign_p, lambda x: x / np.abs(x), dtypes=COMPLEX, skip=FLAT, label="complex"),
    unary(ew.floor_p, np.floor, dtypes=FLOATS),
    unary(ew.ceil_p, np.ceil, dtypes=FLOATS),
    unary(ew.round_p, away_from_zero, dtypes=FLOATS, params=dict(rounding_method=0)),
    unary(ew.round_p, np.rint, dtypes=FLOATS, params=dict(rounding_method=1), label="even"),
    unary(ew.is_finite_p, np.isfinite, dtypes=FLOATS, skip=FLAT),
    unary(ew.abs_p, np.abs, dtypes=NUMBERS),
    unary(ew.real_p, np.real, dtypes=COMPLEX),
    unary(ew.imag_p, np.imag, dtypes=COMPLEX),
    binary(ew.complex_p, lambda x, y: x + 1j * y, dtypes="f32 f64"),
    unary(
        ew.conj_p,
        lambda x: np.conj(x).astype(np.complex128),
        dtypes="c64 c128 f32 f64",
        fun=ew.conj,
    ),
    *[
        binary(prim, reference, (-2, 2), (-2, 2), dtypes=dtypes, skip=FLAT)
        for prim, reference, dtypes in [
            (ew.eq_p, np.equal, ALL),
            (ew.ne_p, np.not_equal, ALL),
            (ew.lt_p, np.less, REALS + " bool"),
            (ew.le_p, np.less_equal, REALS + " bool"),
            (ew.gt_p, np.greater, REALS + " bool"),
            (ew.ge_p, np.greater_equal, REALS + " bool"),
            (ew.eq_to_p, np.equal, REALS),
            (ew.lt_to_p, np.less, REALS),
            (ew.le_to_p, np.less_equal, REALS),
        ]
    ],
    *[
        binary(prim, reference, dtypes=INTS + " bool", skip=FLAT)
        for prim, reference in [
            (ew.and_p, np.bitwise_and),
            (ew.or_p, np.bitwise_or),
            (ew.xor_p, np.bitwise_xor),
        ]
    ],
    unary(ew.not_p, np.invert, dtypes=INTS + " bool", skip=FLAT),
]

CHOICE = [
    Case(
        ew.select_n_p,
        [Arg(SHAPE, dtype=np.bool_), SHAPE, SHAPE],
        lambda p, x, y: np.where(p, y, x),
        dtypes=ALL,
        also=[((0, 3),) * 3, ((), (), ()), ((), SHAPE, SHAPE), (SHAPE, (), SHAPE)],
    ),
    Case(
        ew.select_n_p,
        [Arg(SHAPE, 0, 2, dtype=np.int32), SHAPE, SHAPE, SHAPE],
        lambda i, *xs: np.choose(i, xs),
        dtypes="f32 c64",
        also=[((), SHAPE, SHAPE, SHAPE)],
        label="three",
    ),
    Case(
        ew.select_n_p,
        [Arg((), dtype=np.bool_), SHAPE, SHAPE],
        lambda p, x, y: np.where(p, y, x),
        label="scalar",
    ),
    Case(
        ew.clamp_p,
        [Arg(SHAPE, -1, -0.5), SHAPE, Arg(SHAPE, 0.5, 1)],
        lambda lo, x, hi: np.minimum(np.maximum(lo, x), hi),
        dtypes=REALS,
        also=[((), SHAPE, ()), ((), (), ()), ((0,), (0,), (0,))],
    ),
    Case(
        ew.clamp_p,
        [Arg((), -1, -0.5), SHAPE, Arg((), 0.5, 1)],
        lambda lo, x, hi: np.minimum(np.maximum(lo, x), hi),
        label="scalars",
    ),
]

CASES = [*ARITHMETIC, *CHOICE]
