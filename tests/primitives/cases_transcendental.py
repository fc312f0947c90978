"""Rows for transcendental.py. Values at edges are in test_elementwise.py."""

from __future__ import annotations

import numpy as np

from tests.primitives.cases import FLOATS, INEXACT, NUMBERS, SHAPE, Arg, Case, binary, unary
from weft.primitives import transcendental as tr

CASES = [
    unary(tr.exp_p, np.exp),
    unary(tr.exp2_p, np.exp2),
    unary(tr.expm1_p, np.expm1),
    unary(tr.log_p, np.log, 0.5, 4),
    unary(tr.log2_p, np.log2, 0.5, 4),
    unary(tr.log1p_p, np.log1p, -0.5, 4),
    unary(tr.logistic_p, lambda x: 1 / (1 + np.exp(-x))),
    unary(tr.tanh_slope_p, lambda x: 1 / np.cosh(x) ** 2),
    unary(tr.logistic_slope_p, lambda x: 1 / (2 + 2 * np.cosh(x))),
    unary(tr.sqrt_p, np.sqrt, 0.5, 4),
    unary(tr.rsqrt_p, lambda x: 1 / np.sqrt(x), 0.5, 4),
    unary(tr.cbrt_p, np.cbrt, dtypes=FLOATS, grad_tol=1e-5),
    *[
        unary(
            tr.integer_pow_p, lambda x, n=n: x**n, *bounds, params=dict(y=n), label=str(n), **more
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
