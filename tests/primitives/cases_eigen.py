"""Rows for eigen.py. What the parts are of is in test_eigen.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from tests.primitives.cases import FLAT, Case
from tests.primitives.matrix_helpers import DTYPES, positive, t
from weft.numpy import triu
from weft.primitives import eigen
from weft.primitives.matrices import adjoint, product, scale_columns, slice_columns, slice_rows


def eigh_parts(x: Any, subset: Any = None) -> list:
    """w and V w V^H."""
    v, w = eigen.eigh_p.apply(
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
        s, u, vh = eigen.svd_p.apply(
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
    """Return values and both kinds of vectors, for derivatives only, as values have no order."""
    return eigen.eig_p.apply(
        x,
        compute_left_eigenvectors=vectors,
        compute_right_eigenvectors=vectors,
        enable_eigvec_derivs=vectors,
        implementation=None,
    )


def tridiagonal_parts(x: Any) -> list:
    """Return the diagonal and the magnitudes beside it, which no choice of signs changes."""
    _, d, e, _ = eigen.tridiagonal_p.apply(product(x, adjoint(x)), lower=True)
    return [d, abs(e)]


def tridiagonal_reference(x: np.ndarray) -> list:
    h = np.stack([scipy.linalg.hessenberg(a) for a in x @ t(x)])
    return [np.diagonal(h, 0, 1, 2).real, abs(np.diagonal(h, -1, 1, 2))]


def real_schur(x: Any) -> list:
    """Z T Z^H, and T of a matrix whose eigenvalues are real."""
    z = {"compute_schur_vectors": True, "sort_eig_vals": False, "select_callable": None}
    form, vectors = eigen.schur_p.apply(product(x, adjoint(x)), **z)
    return [product(product(vectors, form), adjoint(vectors))]


# what leads to the parts of others has no derivative
REDUCED = [
    Case(prim, [(2, 4, 4)], reference, fun=fun, dtypes="f32 c64", tol=200, skip=FLAT)
    for prim, reference, fun in (
        (
            eigen.hessenberg_p,
            lambda x: np.stack([np.triu(scipy.linalg.hessenberg(a), -1) for a in x]),
            lambda x: [triu(eigen.hessenberg_p.apply(x)[0], -1)],
        ),
        (eigen.tridiagonal_p, tridiagonal_reference, tridiagonal_parts),
        (eigen.schur_p, lambda x: x @ t(x), real_schur),
    )
]

CASES = [
    *REDUCED,
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
]
