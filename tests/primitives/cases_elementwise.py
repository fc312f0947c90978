"""Rows for layout.py, elementwise.py and transcendental.py.

Values and derivatives at edges are in test_elementwise.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tests.primitives.cases import ALL, FLOATS, INEXACT, INTS, NUMBERS, Arg, Case
from weft.primitives import elementwise as ew
from weft.primitives import layout
from weft.primitives import transcendental as tr

SHAPE = (2, 3)
ONE = (((0, 3),), ((),))  # other shapes for one operand
TWO = (((0, 3), (0, 3)), ((), ()), ((), SHAPE), (SHAPE, ()))
REALS = FLOATS + " " + INTS
COMPLEX = "c64"
FLAT = "jvp transpose second"  # nothing to differentiate


def unary(
    prim: Any, reference: Callable, low: float = -2.0, high: float = 2.0, **more: Any
) -> Case:
    """A row for one operand."""
    return Case(
        prim, [Arg(SHAPE, low, high)], reference, **{"dtypes": INEXACT, "also": ONE, **more}
    )


def binary(prim: Any, reference: Callable, first: Any = (), second: Any = (), **more: Any) -> Case:
    """A row for two operands; `first` and `second` are their bounds."""
    args = [Arg(SHAPE, *first), Arg(SHAPE, *second)]
    return Case(prim, args, reference, **{"also": TWO, **more})


def shape_op(prim: Any, shape: tuple, reference: Callable, params: dict, **more: Any) -> Case:
    """A row for one operand that is moved about."""
    return Case(prim, [shape], reference, params, **{"dtypes": ALL, **more})


def spread(shape: tuple, dims: tuple) -> Callable:
    """broadcast_in_dim in NumPy."""
    kept = lambda x: [x.shape[dims.index(i)] if i in dims else 1 for i in range(len(shape))]
    return lambda x: np.broadcast_to(x.reshape(kept(x)), shape)


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


LAYOUT = [
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
        layout.rev_p,
        SHAPE,
        lambda x: x[::-1, ::-1],
        dict(dimensions=(0, 1)),
        also=(((0, 3),),),
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
    Case(
        layout.optimization_barrier_p,
        [SHAPE, Arg((2,), dtype=np.int32)],
        lambda x, y: [x, y],
        dtypes=INEXACT,
    ),
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
    *[
        unary(
            ew.integer_pow_p, lambda x, n=n: x**n, *bounds, params=dict(y=n), label=str(n), **more
        )
        for n, bounds, more in [
            (0, (), dict(dtypes=NUMBERS)),
            (2, (), dict(dtypes=NUMBERS)),
            (3, (), dict(dtypes=NUMBERS)),
            (7, (), dict(tol=8)),
            (-1, (0.5, 2), {}),
            (-3, (0.5, 2), dict(tol=8)),
        ]
    ],
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

TRANSCENDENTAL = [
    unary(tr.exp_p, np.exp),
    unary(tr.exp2_p, np.exp2),
    unary(tr.expm1_p, np.expm1),
    unary(tr.log_p, np.log, 0.5, 4),
    unary(tr.log2_p, np.log2, 0.5, 4),
    unary(tr.log1p_p, np.log1p, -0.5, 4),
    unary(tr.logistic_p, lambda x: 1 / (1 + np.exp(-x))),
    unary(tr.sqrt_p, np.sqrt, 0.5, 4),
    unary(tr.rsqrt_p, lambda x: 1 / np.sqrt(x), 0.5, 4),
    unary(tr.cbrt_p, np.cbrt, dtypes=FLOATS, grad_tol=1e-5),
    binary(tr.pow_p, np.power, (0.5, 2), (), dtypes=INEXACT, tol=8),
    Case(
        tr.pow_p,
        [Arg(SHAPE, 0.5, 2), Arg(SHAPE, -3, 3, dtype=np.int32)],
        np.power,
        dtypes=INEXACT,
        also=[((0, 3), (0, 3)), ((), SHAPE), (SHAPE, ())],
        tol=8,
        label="integer",
    ),
    unary(tr.sin_p, np.sin),
    unary(tr.cos_p, np.cos),
    unary(tr.tan_p, np.tan, -1, 1),
    unary(tr.tanh_p, np.tanh),
    unary(tr.asin_p, np.arcsin, -0.8, 0.8),
    unary(tr.acos_p, np.arccos, -0.8, 0.8),
    unary(tr.atan_p, np.arctan, -0.8, 0.8),
    unary(tr.sinh_p, np.sinh),
    unary(tr.cosh_p, np.cosh),
    unary(tr.asinh_p, np.arcsinh, -0.8, 0.8),
    unary(tr.acosh_p, np.arccosh, 1.2, 3),
    unary(tr.atanh_p, np.arctanh, -0.8, 0.8),
    binary(tr.atan2_p, np.arctan2),
]

CASES = [*LAYOUT, *ARITHMETIC, *CHOICE, *TRANSCENDENTAL]
