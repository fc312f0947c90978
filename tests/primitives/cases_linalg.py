"""Rows for linalg.py, factorizations.py, eigen.py and small.py.

Matrices of 3 rows are written out, those of 5 go to LAPACK. Factors themselves, failures, empty
matrices and refused operands are in test_linalg.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from tests.primitives.cases import Arg, Case
from weft.primitives import eigen, factorizations, linalg, small
from weft.primitives.matrices import (
    adjoint,
    identity_like,
    product,
    scale_columns,
    slice_columns,
    slice_rows,
)

DTYPES = "f32 f64 c64 c128"
REAL = "f32 f64"


def t(x: Any) -> Any:
    """The conjugate transpose."""
    return np.swapaxes(x, -1, -2).conj()


def positive(x: Any) -> Any:
    """A positive definite matrix, of weft's or NumPy's."""
    if isinstance(x, np.ndarray) and x.dtype in (np.float64, np.complex128):
        return x @ t(x) + np.eye(x.shape[-1])
    return product(x, adjoint(x)) + identity_like(x)


def of_rows(fun: Any, *xs: np.ndarray) -> np.ndarray:
    """A function of single matrices, for each of a batch."""
    batch = xs[0].shape[:-2]
    flat = [x.reshape(-1, *x.shape[len(batch) :]) for x in xs]
    return np.stack([fun(*one) for one in zip(*flat, strict=True)]).reshape(
        *batch, *xs[-1].shape[-2:]
    )


def triangular(a: np.ndarray, b: np.ndarray, **p: bool) -> np.ndarray:
    """What `triangular_solve` is said to compute."""
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
    fun = lambda a, b: linalg.triangular_solve_p.bind(a + 3 * identity_like(a), b, **params)
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
    """What `tridiagonal_solve` is said to compute."""
    n = d.shape[-1]
    low, high = np.eye(n, k=-1) * dl[..., None], np.eye(n, k=1) * du[..., None]
    return np.linalg.solve(low + np.eye(n) * (d + 5)[..., None] + high, b)


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


def eigh_parts(x: Any, subset: Any = None) -> list:
    """w and V w V^H."""
    v, w = eigen.eigh_p.bind(
        positive(x), lower=True, sort_eigenvalues=True, subset_by_index=subset, algorithm=None
    )
    return [w, product(scale_columns(v, w.astype(v.dtype)), adjoint(v))]


def eigh_reference(x: np.ndarray, subset: Any = None) -> list:
    w, v = np.linalg.eigh(positive(x))
    w, v = w[..., slice(*(subset or (None,)))], v[..., slice(*(subset or (None,)))]
    return [w, v * w[..., None, :] @ t(v)]


def svd_parts(full: bool = False, subset: Any = None) -> Any:
    """s, and the unitary U V^H; with all columns, the projection on those that are added."""

    def fun(x: Any) -> list:
        s, u, vh = eigen.svd_p.bind(
            x, full_matrices=full, compute_uv=True, subset_by_index=subset, algorithm=None
        )
        k = s.shape[-1]
        u, more = slice_columns(u, 0, k), slice_columns(u, k, None)
        return [
            s,
            product(u, slice_rows(vh, 0, k)),
            *([product(more, adjoint(more))] if full else []),
        ]

    return fun


def svd_reference(full: bool = False, subset: Any = None) -> Any:
    def fun(x: np.ndarray) -> list:
        u, s, vh = np.linalg.svd(x, full)
        k = s.shape[-1]
        cut = slice(*(subset or (k,)))
        more = u[..., k:]
        return [s[..., cut], u[..., cut] @ vh[..., cut, :], *([more @ t(more)] if full else [])]

    return fun


def svd_case(shape: Any, full: bool = False, subset: Any = None, **more: Any) -> Case:
    return Case(
        eigen.svd_p,
        [shape],
        svd_reference(full, subset),
        fun=svd_parts(full, subset),
        dtypes=DTYPES,
        tol=200,
        label=f"{shape[-2]}x{shape[-1]}{' full' * full}{f' {subset}' if subset else ''}",
        **more,
    )


def eig_parts(x: Any, vectors: bool) -> list:
    """Values, and both kinds of vectors; for derivatives alone, as values have no order."""
    return eigen.eig_p.bind(
        x,
        compute_left_eigenvectors=vectors,
        compute_right_eigenvectors=vectors,
        enable_eigvec_derivs=vectors,
        implementation=None,
    )


CASES = [
    *(
        Case(
            linalg.cholesky_p,
            [(2, n, n)],
            lambda x: np.linalg.cholesky(positive(x)),
            fun=lambda x: linalg.cholesky_p.bind(positive(x)),
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
        fun=lambda x, w: linalg.cholesky_update_p.bind(
            linalg.swap(linalg.cholesky_p.bind(positive(x))[0]), w
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
        fun=lambda dl, d, du, b: linalg.tridiagonal_solve_p.bind(
            dl, d + 5, du, b, perturb_singular=False
        ),
        dtypes=DTYPES,
        tol=50,
    ),
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
    *(
        Case(
            eigen.eigh_p,
            [(2, 4, 4)],
            lambda x, s=s: eigh_reference(x, s),
            fun=lambda x, s=s: eigh_parts(x, s),
            dtypes=DTYPES,
            tol=200,
            weak=None,  # the parts are strong
            label=f"{s or ''}",
        )
        for s in (None, (1, 3))
    ),
    *(
        Case(
            eigen.eig_p,
            [(4, 4)],
            None,
            fun=lambda x, v=v: eig_parts(x, v),
            dtypes=DTYPES,
            tol=200,
            skip="value",
            label="vectors" * v,
        )
        for v in (False, True)
    ),
    svd_case((5, 3)),
    svd_case((3, 5), True),
    svd_case((5, 3), True),
    svd_case((2, 4, 4)),
    svd_case((5, 3), False, (1, 3)),
    *(
        Case(
            small.small_solve_p,
            [(2, n, n), (2, n, 2)],
            np.linalg.solve,
            dtypes=DTYPES,
            tol=500,
            label=str(n),
        )
        for n in (1, 2, 3, 4)
    ),
    *(
        Case(small.small_det_p, [(2, n, n)], np.linalg.det, dtypes=DTYPES, tol=50, label=str(n))
        for n in (1, 2, 3, 4)
    ),
]
