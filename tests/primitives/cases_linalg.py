"""Rows for linalg.py. Matrices of 3 rows are written out, matrices of 5 rows go to LAPACK."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.primitives.cases import Case
from tests.primitives.matrix_helpers import DTYPES, positive, t
from weft.primitives import linalg
from weft.primitives.matrices import identity_like

REAL = "f32 f64"


def triangular(a: np.ndarray, b: np.ndarray, **p: bool) -> np.ndarray:
    """Return the documented result of `triangular_solve`."""
    a = np.tril(a) if p["lower"] else np.triu(a)
    if p["unit_diagonal"]:
        a = a - a * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    a = np.swapaxes(a, -1, -2) if p["transpose_a"] else a
    a = a.conj() if p["conjugate_a"] else a
    if p["left_side"]:
        return np.linalg.solve(a, b)
    return np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


def triangular_case(n: int, flags: str, **more: Any) -> Case:
    """A row with the flags whose first letters are given."""
    names = {"l": "left_side", "b": "lower", "t": "transpose_a", "c": "conjugate_a"}
    params = {name: letter in flags for letter, name in {**names, "u": "unit_diagonal"}.items()}
    b = (2, n, 2) if params["left_side"] else (2, 2, n)
    # A large diagonal: random triangles are nearly singular.
    fun = lambda a, b: linalg.triangular_solve_p.apply(a + 3 * identity_like(a), b, **params)
    return Case(
        linalg.triangular_solve_p,
        [(2, n, n), b],
        lambda a, b: triangular(a + 3 * np.eye(n), b, **params),
        fun=fun,
        dtypes=DTYPES,
        tol=100,
        label=f"{n} {flags}",
        **more,
    )


def banded(dl: Any, d: Any, du: Any, b: Any) -> np.ndarray:
    """Return the documented result of `tridiagonal_solve`."""
    n = d.shape[-1]
    low, high = np.eye(n, k=-1) * dl[..., None], np.eye(n, k=1) * du[..., None]
    return np.linalg.solve(low + np.eye(n) * (d + 5)[..., None] + high, b)


CASES = [
    *(
        Case(
            linalg.cholesky_p,
            [(2, n, n)],
            lambda x: np.linalg.cholesky(positive(x)),
            fun=lambda x: linalg.cholesky_p.apply(positive(x)),
            dtypes=DTYPES,
            tol=50,
            label=str(n),
        )
        for n in (3, 5)
    ),
    *(triangular_case(3, flags) for flags in ("", "lb", "t", "lct", "bcu", "lbtu")),
    *(triangular_case(5, flags) for flags in ("", "lb", "t", "lct", "bcu", "lbtu")),
    Case(
        linalg.cholesky_update_p,
        [(4, 4), (4,)],
        lambda x, w: t(np.linalg.cholesky(positive(x) + np.outer(w, w))),
        fun=lambda x, w: linalg.cholesky_update_p.apply(
            linalg.swap(linalg.cholesky_p.apply(positive(x))[0]), w
        ),
        dtypes=REAL,
        tol=50,
    ),
    Case(
        linalg.symmetric_product_p,
        [(2, 4, 3), (2, 4, 4)],
        lambda x, c: 2 * x @ t(x) - 0.5 * c,
        {"alpha": 2.0, "beta": -0.5},
        dtypes="f32 f64 bf16",
        also=[((4, 0), (4, 4)), ((0, 3), (0, 0))],
        tol=20,
    ),
    Case(
        linalg.tridiagonal_solve_p,
        [(2, 5), (2, 5), (2, 5), (2, 5, 2)],
        banded,
        fun=lambda dl, d, du, b: linalg.tridiagonal_solve_p.apply(
            dl, d + 5, du, b, perturb_singular=False
        ),
        dtypes=DTYPES,
        tol=50,
    ),
]
