"""Rows for primitives/special/functions.py. Accuracy over the whole range: test_special.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from tests.primitives.cases import Arg, Case
from weft.primitives.special import functions as special

SHAPE = (2, 3)
ONE = (((0, 3),), ((),))
TWO = [((0, 3), (0, 3)), ((), ()), ((), SHAPE), (SHAPE, ())]
ORDER = Arg(SHAPE, values=[0, 1, 2, 3, 1, 2], moves=False)


def unary(prim: Any, reference: Any, low: float, high: float, **more: Any) -> Case:
    return Case(prim, [Arg(SHAPE, low, high)], reference, **{"also": ONE, "tol": 16, **more})


def sample_slope(a: Any, x: Any) -> Any:
    """-(dP/da) / (dP/dx), by differences."""
    h = 1e-4
    p = scipy.special.gammainc
    dp_da = (8 * (p(a + h, x) - p(a - h, x)) - (p(a + 2 * h, x) - p(a - 2 * h, x))) / (12 * h)
    return -dp_da / np.exp((a - 1) * np.log(x) - x - scipy.special.gammaln(a))


def slope_in_a(a: Any, x: Any) -> Any:
    """dP/da, by differences."""
    return -sample_slope(a, x) * np.exp((a - 1) * np.log(x) - x - scipy.special.gammaln(a))


CASES = [
    unary(special.erf_p, scipy.special.erf, -2, 2),
    unary(special.erfc_p, scipy.special.erfc, -2, 2),
    unary(special.erf_inv_p, scipy.special.erfinv, -0.8, 0.8),
    unary(special.gelu_p, lambda x: x * scipy.special.ndtr(x), -3, 3),
    unary(special.lgamma_p, scipy.special.gammaln, 2.5, 5),
    unary(special.digamma_p, scipy.special.digamma, 2, 5),
    unary(special.bessel_i0e_p, scipy.special.i0e, -3, 12),
    unary(special.bessel_i1e_p, scipy.special.i1e, -3, 12),
    Case(
        special.polygamma_p,
        [ORDER, Arg(SHAPE, 1, 4)],
        lambda m, x: scipy.special.polygamma(m.astype(int), x),
        tol=32,
    ),
    Case(
        special.zeta_p, [Arg(SHAPE, 1.5, 4), Arg(SHAPE, 1, 3)], scipy.special.zeta, also=TWO, tol=16
    ),
    *[
        Case(
            prim,
            [Arg(SHAPE, *a), Arg(SHAPE, *x)],
            reference,
            also=TWO,
            tol=64,
            skip="second",  # the derivative of the derivative in a is not written
            label=label,
        )
        for prim, reference in [
            (special.igamma_p, scipy.special.gammainc),
            (special.igammac_p, scipy.special.gammaincc),
        ]
        for label, a, x in [("", (0.5, 2), (1, 4)), ("series", (3, 6), (1, 3))]
    ],
    *[
        Case(
            prim,
            [Arg(SHAPE, *a), Arg(SHAPE, *x)],
            reference,
            dtypes="f32",
            tol=256,
            skip="jvp transpose second",  # nobody has written their derivatives
            label=label,
        )
        for prim, reference in [
            (special.igamma_grad_a_p, slope_in_a),
            (special.random_gamma_grad_p, sample_slope),
        ]
        for label, a, x in [("", (0.5, 2), (2, 4)), ("series", (3, 6), (1, 3))]
    ],
    Case(
        special.regularized_incomplete_beta_p,
        [*[Arg(SHAPE, 0.5, 4, moves=False)] * 2, Arg(SHAPE, 0.1, 0.9)],
        scipy.special.betainc,
        also=[((0,), (0,), (0,)), ((), (), ()), ((), (), SHAPE)],
        tol=64,
    ),
]
