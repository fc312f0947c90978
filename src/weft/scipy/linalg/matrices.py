"""Matrices of a known form: toeplitz, hankel, hilbert and others.

Those that depend on a size alone are computed by the host; the others take vectors in the last
axis, with any axes before it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft import dtypes
from weft import numpy as jnp
from weft.core.aval import check_extent
from weft.errors import ShapeError
from weft.numpy.promotion import as_array, as_inexact, broadcast_shapes
from weft.primitives.families import check_integer
from weft.primitives.layout import broadcast_to_rank
from weft.run.operation import operation
from weft.util import check_option
from weft.xla.typing import Array, ArrayLike, DTypeLike

# --- of vectors -----------------------------------------------------------------------------


def check_vectors(op: str, x: Any, least: int = 1) -> Any:
    """An array of vectors; a number is a vector of one."""
    x = as_array(x, op)
    x = x if x.ndim else jnp.reshape(x, (1,))
    if x.shape[-1] < least:
        raise ShapeError(f"{op}: vectors must have at least {least} elements; got {x.aval}.")
    return x


def join_vectors(x: Any, y: Any) -> Any:
    """Vectors one after the other, their leading axes broadcast."""
    lead = broadcast_shapes(x.shape[:-1], y.shape[:-1])
    parts = [jnp.broadcast_to(v, (*lead, v.shape[-1])) for v in (x, y)]
    return jnp.concatenate(parts, -1)


def grid_indices(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The number of its row, and of its column, for each place of a matrix."""
    return np.ogrid[:m, :n]


def read_order(op: str, n: Any) -> int:
    """The number of rows of a square matrix, which the host computes in Python's objects."""
    n = check_integer(op, "n", n, 0, math.inf)
    check_extent((n, n), np.dtype(object))
    return n


def choose_entries(mask: Any, x: Any, y: Any) -> Any:
    """Matrices with entries of x where a mask of one matrix or row holds, else those of y."""
    rank = max(np.ndim(x), np.ndim(y))
    lifted = (v if np.ndim(v) == 0 else broadcast_to_rank(v, rank) for v in (mask, x, y))
    return jnp.where(*lifted)


@operation
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Matrices with constant diagonals: c is the first column, r the first row, by default conj(c).

    r[0] is not read.

    >>> print(toeplitz(jnp.array([1, 2, 3])))
    [[1 2 3]
     [2 1 2]
     [3 2 1]]
    """
    c = check_vectors("toeplitz", c)
    r = jnp.conj(c) if r is None else check_vectors("toeplitz", r)
    m, n = c.shape[-1], r.shape[-1]
    i, j = grid_indices(m, n)
    return join_vectors(c[..., ::-1], r[..., 1:])[..., m - 1 - i + j]


@operation
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Matrices with constant antidiagonals: c is the first column, r the last row, by default 0.

    r[0] is not read.
    """
    c = check_vectors("hankel", c)
    r = jnp.zeros_like(c) if r is None else check_vectors("hankel", r)
    i, j = grid_indices(c.shape[-1], r.shape[-1])
    return join_vectors(c, r[..., 1:])[..., i + j]


@operation
def circulant(c: ArrayLike) -> Array:
    """Matrices whose columns are c, each one place further around than the one before."""
    c = check_vectors("circulant", c)
    n = c.shape[-1]
    i, j = grid_indices(n, n)
    return c[..., (i - j) % n]


@operation
def companion(a: ArrayLike) -> Array:
    """Companion matrices of polynomials a[0] x^n + ... + a[n]: -a[1:] / a[0] above a diagonal."""
    a = as_inexact("companion", check_vectors("companion", a, 2))
    return combine_first_row(-a[..., 1:] / a[..., :1], np.ones(a.shape[-1] - 2))


def combine_first_row(row: Any, below: Any) -> Any:
    """Matrices with a first row, and what is below the diagonal."""
    n = row.shape[-1]
    i, j = grid_indices(n, n)
    below = jnp.asarray(below, row.dtype)[..., None, :] if n > 1 else jnp.zeros((1, 1), row.dtype)
    wide = jnp.concatenate([below, jnp.zeros((*below.shape[:-1], 1), row.dtype)], -1)[..., :n]
    return choose_entries(i == 0, row[..., None, :], choose_entries(i == j + 1, wide, 0))


@operation
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie matrices of populations: births f in the first row, survival s below the diagonal."""
    f, s = check_vectors("leslie", f), check_vectors("leslie", s)
    if s.shape[-1] != f.shape[-1] - 1:
        raise ShapeError(f"leslie: s must be one element shorter than f; got {f.aval}, {s.aval}.")
    f, s = f.astype(dtypes.result_type(f, s)), s.astype(dtypes.result_type(f, s))
    return combine_first_row(f, s)


@operation(static=("n", "mode"))
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Matrices C with C @ v = jnp.convolve(a, v, mode) for vectors v of length n."""
    a, n = check_vectors("convolution_matrix", a), check_integer("convolution_matrix", "n", n, 1)
    m = a.shape[-1]
    check_option("convolution_matrix", "mode", mode, "full", "valid", "same")
    size = {"full": m + n - 1, "same": max(m, n), "valid": max(m, n) - min(m, n) + 1}[mode]
    start = {"full": 0, "same": (min(m, n) - 1) // 2, "valid": min(m, n) - 1}[mode]
    i, j = grid_indices(size, n)
    k = i + start - j
    return choose_entries((k >= 0) & (k < m), a[..., np.clip(k, 0, m - 1)], 0)


@operation
def fiedler(a: ArrayLike) -> Array:
    """Symmetric matrices with |a[i] - a[j]| at (i, j)."""
    a = check_vectors("fiedler", a)
    return jnp.abs(a[..., :, None] - a[..., None, :])


@operation
def fiedler_companion(a: ArrayLike) -> Array:
    """Pentadiagonal companion matrices of polynomials a[0] x^n + ... + a[n].

    Source: Fiedler, "A note on companion matrices" (2003).
    """
    a = as_inexact("fiedler_companion", check_vectors("fiedler_companion", a))
    a = a / a[..., :1]
    n = a.shape[-1] - 1
    if n == 0:
        return jnp.zeros((0,), a.dtype)
    i, j = grid_indices(n, n)
    # Coefficients are left and right of the diagonal in every other row.
    own = ((i == 0) & (j < 2)) | ((i % 2 == 0) & (i > 0) & ((j == i - 1) | (j == i + 1)))
    which = np.where(j < i, j + 2, j + 1)
    one = ((i % 2 == 0) & (j == i + 2)) | ((i % 2 == 1) & (j == i - 2)) | ((i == 1) & (j == 0))
    return choose_entries(own, -a[..., np.clip(which, 0, n)], jnp.asarray(one, a.dtype))


@operation
def block_diag(*arrs: ArrayLike) -> Array:
    """A matrix with the given ones on its diagonal, zeros elsewhere; vectors are rows.

    >>> print(block_diag(jnp.ones((1, 2)), 3.0))
    [[1. 1. 0.]
     [0. 0. 3.]]
    """
    arrs = arrs or (np.zeros((1, 0), np.float32),)
    parts = [jnp.atleast_2d(as_array(a, "block_diag")) for a in arrs]
    for a in parts:
        if a.ndim != 2:
            raise ShapeError(f"block_diag: operands must have 2 axes at most; got {a.aval}.")
    dtype = dtypes.result_type(*parts)
    total, done, rows = sum(a.shape[1] for a in parts), 0, []
    for a in parts:
        after = total - done - a.shape[1]
        rows.append(jnp.pad(a.astype(dtype), ((0, 0), (done, after))))
        done += a.shape[1]
    return jnp.concatenate(rows)


# --- of a size ------------------------------------------------------------------------------


def as_floats(x: Any) -> Any:
    """Numbers in the default float dtype."""
    return jnp.asarray(np.asarray(x, np.float64), dtypes.default_float())


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the Fourier transform of n points; `scale` "n" divides by n, "sqrtn" by a root.

    dft(n) @ x is jnp.fft.fft(x). `dtype` is by default the complex one of the default float.
    """
    n = check_integer("dft", "n", n, 0)
    check_option("dft", "scale", scale, None, "sqrtn", "n")
    i, j = grid_indices(n, n)
    x = np.exp(-2j * np.pi * ((i * j) % max(n, 1)) / max(n, 1))
    x = x / {None: 1, "n": max(n, 1), "sqrtn": math.sqrt(max(n, 1))}[scale]
    return jnp.asarray(x, dtypes.complex_dtype(dtypes.default_float()) if dtype is None else dtype)


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """The Hadamard matrix of n rows, a power of 2: 1 and -1, with orthogonal rows."""
    n = check_integer("hadamard", "n", n, most=math.inf)
    if n < 1 or n & (n - 1):
        raise ShapeError(f"hadamard: n must be a positive power of 2; got {n}.")
    x = np.ones((1, 1), np.int32)
    while len(x) < n:
        x = np.block([[x, x], [x, -x]])
    return jnp.asarray(x, dtype)


def helmert(n: int, full: bool = False) -> Array:
    """The Helmert matrix: n - 1 orthonormal rows, or n, the first constant, if `full`."""
    n = check_integer("helmert", "n", n, 0)
    i, j = grid_indices(n, n)
    x = np.where(j < i, 1.0, np.where(j == i, -i, 0.0)) / np.sqrt(np.maximum(i * (i + 1), 1))
    x[:1] = 1 / math.sqrt(max(n, 1))
    return as_floats(x if full else x[1:])


def hilbert(n: int) -> Array:
    """The Hilbert matrix: 1 / (i + j + 1) at (i, j)."""
    i, j = grid_indices(*[read_order("hilbert", n)] * 2)
    return as_floats(1 / (i + j + 1))


def invhilbert(n: int) -> Array:
    """The inverse of the Hilbert matrix, whose elements are integers."""
    n = read_order("invhilbert", n)
    comb = math.comb

    def element(i: int, j: int) -> int:
        size = (i + j + 1) * comb(n + i, n - j - 1) * comb(n + j, n - i - 1) * comb(i + j, i) ** 2
        return -size if (i + j) % 2 else size

    return as_floats([[element(i, j) for j in range(n)] for i in range(n)]).reshape(n, n)


def pascal(n: int, kind: str | None = None) -> Array:
    """The Pascal matrix of binomial coefficients: comb(i + j, i) at (i, j).

    `kind` is "symmetric", the default, "lower" for comb(i, j), or "upper" for its transpose.
    """
    return pascal_matrix("pascal", n, kind, 1)


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of the Pascal matrix of the kind."""
    return pascal_matrix("invpascal", n, kind, -1)


def pascal_matrix(op: str, n: int, kind: str | None, sign: int) -> Any:
    """Pascal's matrices and, where `sign` is -1, their inverses."""
    n = read_order(op, n)
    check_option(op, "kind", kind, "symmetric", "lower", "upper", None)
    x = np.array([[sign ** (i + j) * math.comb(i, j) for j in range(n)] for i in range(n)], object)
    x = x.reshape(n, n)
    if kind in (None, "symmetric"):
        x = x @ x.T if sign > 0 else x.T @ x
    return as_floats(x.T if kind == "upper" else x)
