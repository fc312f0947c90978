"""Rows for primitives/sparse.py. Orders of entries, and kernels against gathers: test_sparse.py."""

from __future__ import annotations

import numpy as np

from tests.primitives.cases import NUMBERS, Arg, Case
from weft import numpy as jnp
from weft.core.aval import typeof
from weft.primitives import sparse

# two at one place, one outside by its row, one by its column
PLACES = np.array([[0, 1], [0, 3], [2, 0], [0, 1], [3, 1], [1, 4], [1, 2]])
INDICES = Arg((7, 2), values=PLACES, dtype=np.int32)
SORTED = Arg((7, 2), values=PLACES[np.argsort(PLACES[:, 0], kind="stable")], dtype=np.int16)
COLUMNS = Arg((7,), values=[1, 3, 1, 4, 2, 0, 0], dtype=np.int32)
STARTS = Arg((4,), values=[0, 3, 5, 6], dtype=np.int32)


def multiply(data, dense, indices, rows=3, transpose=False):
    out = np.zeros((rows, dense.shape[1]), np.result_type(data, dense))
    for value, place in zip(data, indices, strict=True):
        i, j = place[::-1] if transpose else place
        if i < rows and j < dense.shape[0]:
            out[i] += value * dense[j]
    return out


def multiply_rows(data, dense, indices, indptr):
    rows = np.repeat(np.arange(len(indptr)), np.diff([*indptr, len(data)]))
    return multiply(data, dense, np.stack([rows, indices], 1), len(indptr) - 1)


def sample(lhs, rhs, indices):
    fits = lambda i, j: i < lhs.shape[0] and j < rhs.shape[0]
    return np.array([lhs[i] @ rhs[j] if fits(i, j) else 0 * lhs[0, 0] for i, j in indices])


def coo(dense, indices, transpose, **more):
    params = {"rows": 4 if transpose else 3, "transpose": transpose}
    fun = lambda *xs: multiply(*xs, **params)
    return Case(sparse.coo_dot_p, [(7,), dense, indices], fun, params, tol=16, weak=False, **more)


# a matrix of bands, and the weights and starts of it and of its transpose
BANDS = np.array([[1, 2, 3, 0, 0], [0, 0.5, -1, 2, 0], [0, 4, 0, 1, 0], [0, 0, -2, 1, 0.25]])
FROM = np.int32([0, 1, 1, 2])
NEAR = np.stack([row[i : i + 3] for row, i in zip(BANDS, FROM, strict=True)]), FROM
NEAR += BANDS.T, np.zeros(5, np.int32)


def resample(x):
    """`resample` of x with these."""
    weights, starts, back, firsts = NEAR
    weights, back = (jnp.asarray(w).astype(typeof(x).dtype) for w in (weights, back))
    return sparse.resample_p.apply(x, weights, starts, back, firsts)


CASES = [
    coo((4, 3), INDICES, False, dtypes=NUMBERS + " f64 c128 i64", label="lanes"),
    coo((4, 1), SORTED, False, label="sorted"),
    coo((3, 2), INDICES, True, label="transpose"),
    Case(
        sparse.csr_dot_p,
        [(7,), (4, 5), COLUMNS, STARTS],
        multiply_rows,
        dtypes=NUMBERS + " f64",
        tol=16,
        weak=False,
    ),
    Case(
        sparse.coo_sample_p,
        [(3, 5), (4, 5), INDICES],
        sample,
        dtypes=NUMBERS + " f64",
        tol=16,
        weak=False,
    ),
    Case(
        sparse.resample_p,
        [(3, 5, 2)],
        lambda x: np.einsum("ts,isl->itl", BANDS, x),
        fun=resample,
        tol=16,
        also=[[(0, 5, 1)], [(20, 5, 1)]],
        weak=False,
    ),
]
