"""Rows for factorizations.py. Factors themselves are in test_factorizations.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from tests.primitives.cases import Arg, Case
from tests.primitives.matrix_helpers import DTYPES, of_rows, t
from weft.primitives import factorizations
from weft.primitives.matrices import adjoint, product


def lu_parts(x: Any) -> list:
    return factorizations.lu_p.bind(x)[:1]


def packed_lu(x: np.ndarray) -> np.ndarray:
    """LAPACK's own, by SciPy."""
    (getrf,) = scipy.linalg.get_lapack_funcs(("getrf",), (x,))
    return of_rows(lambda a: getrf(a)[0], x)


def qr_parts(**params: bool) -> Any:
    """R R^H and Q's projection, which no choice of signs changes."""

    def fun(x: Any) -> list:
        q, r, *_ = factorizations.qr_p.bind(x, use_magma=None, **params)
        return [product(adjoint(r), r), product(q, adjoint(q)), product(q, r)]

    return fun


def qr_reference(x: np.ndarray, *, pivoting: bool, full_matrices: bool) -> list:
    if pivoting:
        x = of_rows(lambda a: a[:, scipy.linalg.qr(a, pivoting=True)[2]], x)
    q = np.linalg.qr(x, "complete" if full_matrices else "reduced")[0]
    return [t(x) @ x, q @ t(q), x]


def qr_case(shape: Any, pivoting: bool, full: bool, **more: Any) -> Case:
    params = {"pivoting": pivoting, "full_matrices": full}
    return Case(
        factorizations.qr_p,
        [shape],
        lambda x: qr_reference(x, **params),
        fun=qr_parts(**params),
        dtypes=DTYPES,
        tol=200,
        label=f"{shape[-2]}x{shape[-1]}{' pivoting' * pivoting}{' full' * full}",
        **more,
    )


CASES = [
    *(
        Case(
            factorizations.lu_p,
            [shape],
            packed_lu,
            fun=lu_parts,
            dtypes=DTYPES,
            tol=200,
            grad_tol=1e-5,
            label=f"{shape[-2]}x{shape[-1]}",
        )
        for shape in ((3, 3), (4, 2), (2, 5, 5), (5, 3), (3, 6))
    ),
    Case(
        factorizations.lu_pivots_to_permutation_p,
        [Arg((2, 3), values=[[2, 2, 3], [0, 3, 2]], dtype=np.int32)],
        lambda p: np.array([[2, 0, 3, 1, 4], [0, 3, 2, 1, 4]], np.int32),
        {"permutation_size": 5},
    ),
    *(qr_case((5, 3), p, f) for p in (False, True) for f in (False, True)),
    *(qr_case((2, 3, 5), p, True) for p in (False, True)),
    qr_case((4, 4), False, False),
]
