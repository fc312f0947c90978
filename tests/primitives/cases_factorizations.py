"""Rows for factorizations.py. Factors themselves are in test_factorizations.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from tests.primitives.cases import FLAT, Arg, Case
from tests.primitives.matrix_helpers import DTYPES, of_rows, t
from weft.primitives import factorizations
from weft.primitives.matrices import adjoint, product


def lu_parts(x: Any) -> list:
    return factorizations.lu_p.apply(x)[:1]


def packed_lu(x: np.ndarray) -> np.ndarray:
    """LAPACK's own, by SciPy."""
    (getrf,) = scipy.linalg.get_lapack_funcs(("getrf",), (x,))
    return of_rows(lambda a: getrf(a)[0], x)


def qr_parts(**params: bool) -> Any:
    """R R^H and Q's projection, which no choice of signs changes."""

    def fun(x: Any) -> list:
        q, r, *_ = factorizations.qr_p.apply(x, use_magma=None, **params)
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


def packed_qr(x: Any) -> list:
    """LAPACK's own, by NumPy: its "raw" mode has the matrix transposed."""
    parts = [np.linalg.qr(a, mode="raw") for a in x]
    return [np.stack([h.T for h, _ in parts]), np.stack([taus for _, taus in parts])]


def orthogonal(a: np.ndarray, taus: np.ndarray) -> np.ndarray:
    """The product of reflections, one after another; all of its columns."""
    q = np.broadcast_to(np.eye(a.shape[-2]), (len(a), a.shape[-2], a.shape[-2]))
    for i in range(taus.shape[-1]):
        v = np.tril(a, -1)[..., i : i + 1] + np.eye(a.shape[-2])[:, i : i + 1]
        q = q - taus[..., i, None, None] * (q @ v) @ t(v)
    return q


# Primitives of reflections have no derivative.
REFLECTIONS = [
    Case(factorizations.geqrf_p, [(2, 4, 3)], packed_qr, dtypes="f32 c64", tol=200, skip=FLAT),
    Case(
        factorizations.householder_product_p,
        [(2, 4, 3), (2, 3)],
        lambda a, taus: orthogonal(a, taus)[..., :3],
        dtypes="f32 c64",
        tol=200,
        skip=FLAT,
    ),
    Case(
        factorizations.ormqr_p,
        [(2, 4, 3), (2, 3), (2, 4, 2)],
        lambda a, taus, c: orthogonal(a, taus) @ c,
        {"left": True, "transpose": False},
        dtypes="f32 c64",
        tol=200,
        skip=FLAT,
    ),
]

CASES = [
    *REFLECTIONS,
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
